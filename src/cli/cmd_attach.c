/* SPDX-License-Identifier: Apache-2.0
 * synccount attach PID: counts in a program that is running already, for as long as is wanted, and lets it go. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/inject.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/session.h"
#include "cli/symbols.h"
#include "cli/target.h"

#define SECONDS_MAX 1e6
#define LOADED_MS 10000 /* what a tracer that was just loaded may take to make its socket */
#define STARTED_MS 1000 /* what one may take in a process that is just starting CUDA */

static const struct cli_option options[] = {
    {CLI_SECONDS, 0, "seconds", "N", "count for N seconds (default: until Ctrl-C, SIGTERM or the\nprogram's end)"},
    {CLI_INJECT, 0, "inject", NULL, "load the tracer into a program that was started without it\n(x86-64, by ptrace)"},
    SETTINGS_ANALYSIS_OPTIONS,
    {CLI_STACKS, 0, "stacks", "LIST", "python, native, both with a comma, or none: where each sync\ncomes from"},
    {CLI_API, 0, "api", "LIST", "whose calls are counted: runtime, driver (default: both)"},
    {CLI_MAX_TRACE, 0, "max-trace", "SIZE",
     "stop recording details when the trace has this size (64M),\nand go on counting"},
    {CLI_KEEP_TRACES, 0, "keep-traces", "DIR", "keep the trace in DIR, for 'synccount report DIR'"},
    {CLI_FORMAT, 0, "format", "FORMAT", SETTINGS_FORMATS_HELP},
    {CLI_OUTPUT, 'o', "output", "FILE", "write the report to FILE instead of standard output"},
    {CLI_QUIET, 'q', "quiet", NULL, "say nothing meanwhile, and only the answer in text reports"},
    {CLI_HELP, 'h', "help", NULL, "print this text"},
    {.id = CLI_END},
};

struct attach {
  struct settings settings;
  double seconds; /* NaN: until told */
  bool inject;
  struct place place;
  struct folder folder;
  struct target target;
  int connection;
  int signals;
  bool gone; /* the process ended before we did */
  struct sc_findings *findings;
};

static bool attach_option(void *context, enum cli_option_id id, const char *argument, struct sc_error *err)
{
  struct attach *attach = context;
  double seconds;
  switch (id) {
  case CLI_INJECT: attach->inject = true; return true;
  case CLI_SECONDS:
    if (sc_parse_double(argument, &seconds) && seconds > 0 && seconds <= SECONDS_MAX) {
      attach->seconds = seconds;
      return true;
    }
    sc_error_set(err, SC_ERR_USAGE, "'%.80s' is no number of seconds above 0 and up to %.0f", argument, SECONDS_MAX);
    return false;
  default: return settings_option(&attach->settings, id, argument, err);
  }
}

/* ---- getting in -------------------------------------------------------------------------------- */

static bool connect_within(struct attach *attach, int ms)
{
  const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
  for (int waited = 0; !target_connect(&attach->target, &attach->connection); waited += 20) {
    if (waited >= ms)
      return false;
    nanosleep(&pause, NULL);
  }
  return true;
}

static enum sc_status wait_for_socket(struct attach *attach, struct sc_error *err)
{
  if (connect_within(attach, LOADED_MS))
    return SC_OK;
  return sc_error_set(err, SC_ERR_MEASURE,
                      "the library was loaded into process %ld (%s) and makes no socket: can that user make a folder "
                      "in its XDG_RUNTIME_DIR, TMPDIR or /tmp, and is the process not stopped?",
                      (long)attach->target.pid, attach->target.name);
}

static enum sc_status put_library_in(struct attach *attach, const char *library, struct sc_error *err)
{
  const struct target *target = &attach->target;
  if (!target->has_cuda)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "process %ld (%s) has no CUDA in it (libcuda.so is not loaded): there is nothing to count. If "
                        "it will use the GPU later, attach again then",
                        (long)target->pid, target->name);
  cli_say(INJECT_WARNING, (long)target->pid);
  enum sc_status status = inject_library(target->pid, library, err);
  return status == SC_OK ? wait_for_socket(attach, err) : status;
}

static enum sc_status get_in(struct attach *attach, struct sc_error *err)
{
  const struct target *target = &attach->target;
  if (connect_within(attach, target->has_library && target->will_sleep && target->has_cuda ? STARTED_MS : 0))
    return SC_OK;
  char *library = realpath(attach->place.tracer, NULL);
  if (!library)
    return sc_error_set(err, SC_ERR_SYSTEM, "cannot use the tracer %s: %s", attach->place.tracer, strerror(errno));
  enum sc_status status = attach->inject && !(target->has_library && target->by_itself)
                              ? put_library_in(attach, library, err)
                              : target_explain(target, library, err);
  free(library);
  return status;
}

/* The process writes the trace: root's folder has to be the process's own. */
static enum sc_status open_folder(struct attach *attach, struct sc_error *err)
{
  const struct target *target = &attach->target;
  enum sc_status status = folder_open(attach->settings.keep_traces, &attach->folder, err);
  if (status == SC_OK && attach->folder.temporary && target->uid != geteuid() &&
      chown(attach->folder.path, target->uid, target->gid) != 0)
    status = sc_error_set(err, SC_ERR_SYSTEM, "cannot give folder %s to user %lu, who writes the trace: %s",
                          attach->folder.path, (unsigned long)target->uid, strerror(errno));
  return status;
}

static bool put_text(char *to, size_t size, const char *text)
{
  int n = snprintf(to, size, "%s", text ? text : "");
  return n >= 0 && (size_t)n < size;
}

/* What the tracer says begins with "not tracing: ". */
static enum sc_status refused(const struct target *target, const struct sc_control_reply *reply, struct sc_error *err)
{
  static const char prefix[] = "not tracing: ";
  const char *why = reply->text;
  if (strncmp(why, prefix, sizeof prefix - 1) == 0)
    why += sizeof prefix - 1;
  return sc_error_set(err, SC_ERR_MEASURE, "process %ld (%s): %s", (long)target->pid, target->name, why);
}

static enum sc_status start(struct attach *attach, struct sc_error *err)
{
  struct sc_control_request request = {0};
  struct sc_control_reply reply;
  const struct settings *settings = &attach->settings;
  const struct target *target = &attach->target;
  enum target_says says;
  if (!put_text(request.output, sizeof request.output, attach->folder.path) ||
      !put_text(request.api, sizeof request.api, settings->api) ||
      !put_text(request.stacks, sizeof request.stacks, settings->stacks) ||
      !put_text(request.max_trace, sizeof request.max_trace, settings->max_trace))
    return sc_error_set(err, SC_ERR_LIMIT, "the folder's path is too long: give a shorter --keep-traces");
  enum sc_status status = target_ask(target, attach->connection, SC_CONTROL_START, &request, &reply, &says, err);
  if (status != SC_OK)
    return status;
  switch (reply.head.what) {
  case SC_CONTROL_DONE: return SC_OK;
  case SC_CONTROL_BUSY:
    return sc_error_set(err, SC_ERR_MEASURE,
                        "process %ld (%s) is being counted already, by process %lu: let that one end first",
                        (long)target->pid, target->name, (unsigned long)reply.other);
  default: return refused(target, &reply, err);
  }
}

/* ---- while it counts --------------------------------------------------------------------------- */

static void say_that_it_counts(const struct attach *attach)
{
  if (attach->settings.quiet)
    return;
  if (isnan(attach->seconds))
    cli_say("counting in process %ld (%s) until Ctrl-C", (long)attach->target.pid, attach->target.name);
  else
    cli_say("counting in process %ld (%s) for %g s", (long)attach->target.pid, attach->target.name, attach->seconds);
}

/* Nothing is said on the connection meanwhile: what can be read is its end. */
static void wait_for_end(struct attach *attach)
{
  const uint64_t start = sc_clock_mono_ns();
  for (;;) {
    struct pollfd fds[2] = {{.fd = attach->connection, .events = POLLIN}, {.fd = attach->signals, .events = POLLIN}};
    const double left =
        isnan(attach->seconds) ? INFINITY : attach->seconds - (double)(sc_clock_mono_ns() - start) / 1e9;
    if (left <= 0)
      return;
    int ready = poll(fds, 2, left > 3600 ? 3600 * 1000 : (int)(left * 1e3) + 1);
    if (ready > 0 && fds[1].revents) {
      struct signalfd_siginfo info;
      ssize_t taken = read(attach->signals, &info, sizeof info); /* so that it does not end us later */
      (void)taken;
      return;
    }
    if (ready > 0 && fds[0].revents) {
      attach->gone = true;
      return;
    }
  }
}

/* Whatever it says, what was counted up to here is in the trace; not if that is another version's. */
static enum sc_status stop(struct attach *attach, struct sc_error *err)
{
  struct sc_control_request request = {0};
  struct sc_control_reply reply;
  struct sc_error why = {0};
  enum target_says says = TARGET_GONE;
  enum sc_status status = SC_OK;
  if (!attach->gone)
    status = target_ask(&attach->target, attach->connection, SC_CONTROL_STOP, &request, &reply, &says, &why);
  switch (says) {
  case TARGET_ANSWERS: /* perhaps that it is just ending: it has closed the trace by itself */
    if (status != SC_OK)
      *err = why;
    return status;
  case TARGET_GONE:
    if (!attach->settings.quiet)
      cli_say("process %ld (%s) ended", (long)attach->target.pid, attach->target.name);
    return SC_OK;
  case TARGET_SILENT:
    cli_say("%s. The report is of what it has done up to now; counting ends when it goes on", why.message);
    return SC_OK;
  }
  return status;
}

/* ---- the command ------------------------------------------------------------------------------- */

static enum sc_status make_report(struct attach *attach, struct sc_error *err)
{
  struct session_outcome outcome;
  char name[96];
  char *argv[] = {name, NULL};
  const struct program program = {.settings = &attach->settings, .folder = &attach->folder, .argv = argv};
  const struct sc_analysis_options how = {.events = attach->settings.analysis.events};
  snprintf(name, sizeof name, "process %ld", (long)attach->target.pid);
  enum sc_status status = program_write_session(&program, err);
  if (status == SC_OK)
    status = session_load(attach->folder.path, &how, attach->findings, &outcome, err);
  folder_close(&attach->folder); /* a signal may end this process from here on */
  if (status == SC_OK)
    status = symbols_look_up(attach->findings, err);
  if (status == SC_OK)
    status = output_report(&attach->settings, attach->findings, err);
  return status;
}

static enum sc_status prepare(struct attach *attach, pid_t pid, struct sc_error *err)
{
  sigset_t set;
  enum sc_status status = output_check(&attach->settings, err);
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGQUIT);
  if (status == SC_OK && (attach->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
    status = sc_error_set(err, SC_ERR_SYSTEM, "cannot watch for signals: %s", strerror(errno));
  if (status == SC_OK && !(attach->findings = sc_findings_new()))
    status = sc_error_no_memory(err);
  if (status == SC_OK)
    status = place_find(&attach->place, err);
  if (status == SC_OK)
    status = target_examine(place_sysroot(), pid, &attach->target, err);
  if (status == SC_OK)
    status = target_check_runs(&attach->target, err);
  if (status == SC_OK)
    status = get_in(attach, err);
  if (status == SC_OK)
    status = open_folder(attach, err);
  return status;
}

static enum sc_status count_in(struct attach *attach, pid_t pid, struct sc_error *err)
{
  enum sc_status status = prepare(attach, pid, err);
  if (status == SC_OK)
    status = start(attach, err);
  if (status != SC_OK)
    return status;
  say_that_it_counts(attach);
  wait_for_end(attach);
  status = stop(attach, err);
  return status == SC_OK ? make_report(attach, err) : status;
}

static int conclude(const struct attach *attach, enum sc_status status, const struct sc_error *err)
{
  if (status != SC_OK)
    return status == SC_ERR_USAGE ? cli_usage(&cli_attach, "%s", err->message) : cli_fail(err);
  if (attach->settings.keep_traces)
    cli_say("the trace is kept in %s; see it again with: synccount report %s", attach->settings.keep_traces,
            attach->settings.keep_traces);
  if (session_measured(attach->findings))
    return CLI_OK;
  cli_say("nothing could be measured (see the report)");
  return CLI_UNMEASURED;
}

static int run(int argc, char **argv)
{
  struct attach attach = {.seconds = NAN, .connection = -1, .signals = -1};
  struct sc_error err = {0};
  uint64_t pid = 0;
  int first, result;
  bool done;
  settings_init(&attach.settings);
  result = cli_parse(&cli_attach, argc, argv, attach_option, &attach, &first, &done);
  if (!done && argc - first != 1) {
    result = cli_usage(&cli_attach, "give the number of one process: synccount attach 4711");
  } else if (!done && (!sc_parse_u64(argv[first], &pid) || pid == 0 || pid > INT32_MAX)) {
    result = cli_usage(&cli_attach, "'%.80s' is no process number: synccount attach 4711", argv[first]);
  } else if (!done) {
    child_hold_signals();
    result = conclude(&attach, count_in(&attach, (pid_t)pid, &err), &err);
    folder_close(&attach.folder);
    child_release_signals();
  }
  if (attach.connection >= 0)
    close(attach.connection);
  if (attach.signals >= 0)
    close(attach.signals);
  target_free(&attach.target);
  sc_findings_free(attach.findings);
  place_free(&attach.place);
  settings_free(&attach.settings);
  return result;
}

const struct cli_command cli_attach = {
    .name = "attach",
    .operands = "PID",
    .summary = "Count in a program that is running, and report.",
    .description = "The program was started with LD_PRELOAD=.../libsynccount.so and SYNCCOUNT_DORMANT=1, or\n"
                   "gets the library now (--inject). Counting ends with this command; the program goes on.\n"
                   "The report follows on standard output, or in the file that -o names.",
    .options = options,
    .run = run,
};
