/* SPDX-License-Identifier: Apache-2.0
 * synccount run -- PROGRAM: any program under the tracer, and a report of its syncs at the end. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/facts.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "cli/symbols.h"
#include "cli/place.h"
#include "cli/session.h"
#include "cli/why.h"

#define CHANGES_MAX 16

static const struct cli_option options[] = {
    SETTINGS_ANALYSIS_OPTIONS,
    {CLI_STACKS, 0, "stacks", "LIST", "python, native, both with a comma, or none: where each sync\ncomes from"},
    {CLI_FOLLOW, 0, "follow", NULL, "trace the processes that the program starts (default)"},
    {CLI_NO_FOLLOW, 0, "no-follow", NULL, "trace only the process that was started"},
    {CLI_API, 0, "api", "LIST", "whose calls are counted: runtime, driver (default: both)"},
    {CLI_MAX_TRACE, 0, "max-trace", "SIZE", "stop recording when a process' trace has this size: 64M"},
    {CLI_KEEP_TRACES, 0, "keep-traces", "DIR", "keep the traces in DIR, for 'synccount report DIR'"},
    {CLI_KEEP_GOING, 0, "keep-going", NULL, "exit with 0 where the program does, measured or not"},
    {CLI_FORMAT, 0, "format", "FORMAT", "text, json or markdown (default: text)"},
    {CLI_OUTPUT, 'o', "output", "FILE", "write the report to FILE instead of standard error"},
    {CLI_QUIET, 'q', "quiet", NULL, "only the answer in text reports"},
    {CLI_HELP, 'h', "help", NULL, "print this text"},
    {.id = CLI_END},
};

struct run {
  struct settings settings;
  struct place place;
  struct folder folder;
  struct sc_findings *findings;
  char **program;
  char *changes[CHANGES_MAX + 1]; /* of the environment */
  size_t change_count;
  struct launch_end end;
};

static enum sc_status no_memory(struct sc_error *err) { return sc_error_set(err, SC_ERR_NOMEM, "out of memory"); }

/* ---- the program's environment ------------------------------------------------------------------ */

/* text is a new string or NULL, and belongs to the run from here on. */
static bool change(struct run *run, char *text)
{
  if (!text || run->change_count == CHANGES_MAX) {
    free(text);
    return false;
  }
  run->changes[run->change_count++] = text;
  return true;
}

static bool change_to(struct run *run, const char *name, const char *value)
{
  return !value || change(run, sc_asprintf("%s=%s", name, value));
}

/* Behind what is preloaded already. The loader splits at spaces and colons, and has no way to quote them. */
static bool preload(struct run *run, const char *tracer)
{
  const char *before = getenv("LD_PRELOAD");
  if (strpbrk(tracer, " :")) {
    cli_say("the path %s holds a space or a colon, so it cannot be preloaded: only processes that keep "
            "CUDA_INJECTION64_PATH are traced, and their first ranges may be missing",
            tracer);
    return true;
  }
  return before && *before ? change(run, sc_asprintf("LD_PRELOAD=%s:%s", before, tracer))
                           : change_to(run, "LD_PRELOAD", tracer);
}

/* The driver loads what CUDA_INJECTION64_PATH names: that reaches programs which drop LD_PRELOAD. Another tool's value
 * is the user's wish. */
static bool inject(struct run *run, const char *name, const char *tracer)
{
  return getenv(name) || change_to(run, name, tracer);
}

static enum sc_status prepare_environment(struct run *run, struct sc_error *err)
{
  const struct settings *settings = &run->settings;
  char *tracer = realpath(run->place.tracer, NULL);
  if (!tracer)
    return sc_error_set(err, SC_ERR_SYSTEM, "cannot use the tracer %s: %s", run->place.tracer, strerror(errno));
  bool ok = preload(run, tracer) && inject(run, "CUDA_INJECTION64_PATH", tracer) &&
            inject(run, "NVTX_INJECTION64_PATH", tracer) && change_to(run, "SYNCCOUNT_OUTPUT", run->folder.path) &&
            change_to(run, "SYNCCOUNT_QUIET", "1") && change(run, sc_strdup("SYNCCOUNT_FIRST")) &&
            change_to(run, "SYNCCOUNT_FOLLOW", settings->no_follow ? "0" : "1") &&
            change_to(run, "SYNCCOUNT_STACKS", settings->stacks) && change_to(run, "SYNCCOUNT_API", settings->api) &&
            change_to(run, "SYNCCOUNT_MAX_TRACE", settings->max_trace);
  free(tracer);
  return ok ? SC_OK : no_memory(err);
}

/* ---- what it left ------------------------------------------------------------------------------ */

struct look {
  size_t traces;
  bool measured, simulated;
  char *cupti;
};

static void look_at(const char *path, struct look *look)
{
  struct sc_reader *reader = NULL;
  struct sc_batch batch;
  bool more;
  if (sc_reader_open(path, &reader, NULL) == SC_OK && sc_reader_next(reader, &batch, &more, NULL) == SC_OK) {
    ++look->traces;
    look->simulated |= (sc_reader_header(reader)->flags & SC_TRACE_SIMULATED) != 0;
    look->measured |= sc_reader_meta(reader, "cupti_version") != NULL; /* written once CUPTI let us in */
    if (!look->cupti)
      look->cupti = sc_strdup(sc_reader_meta(reader, "cupti_version"));
  }
  sc_reader_close(reader);
}

static enum sc_status look_at_traces(const struct folder *folder, struct look *out, struct sc_error *err)
{
  char **names;
  size_t count;
  enum sc_status status = folder_names(folder->path, "*" SC_TRACE_SUFFIX, &names, &count, err);
  for (size_t i = 0; status == SC_OK && i < count; ++i) {
    char *path = folder_file(folder, names[i]);
    if (path)
      look_at(path, out);
    else
      status = no_memory(err);
    free(path);
  }
  if (status == SC_OK || status == SC_ERR_NOMEM)
    folder_free_names(names, count);
  return status;
}

/* Facts, what was not traced and why, and how to read the traces, beside them. */
static enum sc_status write_session(struct run *run, struct sc_error *err)
{
  struct look look = {0};
  struct sc_findings *notes = sc_findings_new();
  enum sc_status status = notes ? look_at_traces(&run->folder, &look, err) : no_memory(err);
  const struct facts_input input = {
      .sysroot = place_sysroot(), .simulated = look.simulated, .sim_round_trip_us = NAN, .cupti = look.cupti};
  const struct why_question question = {
      .program = run->program[0], .no_follow = run->settings.no_follow, .traced = look.traces > 0};
  const struct session_notes session = {.facts = notes, .simulated = look.simulated, .run = &run->settings.analysis};
  if (status == SC_OK)
    status = facts_add(&input, notes, err);
  if (status == SC_OK)
    status = why_add_untraced(&run->folder, notes, err);
  if (status == SC_OK && !look.measured)
    status = why_add_nothing(&question, notes, err);
  if (status == SC_OK)
    status = session_write(&run->folder, &session, err);
  free(look.cupti);
  sc_findings_free(notes);
  return status;
}

/* ---- the command ------------------------------------------------------------------------------- */

/* "-" is standard output, which is the program's: a wish all the same. */
static bool run_option(void *context, enum cli_option_id id, const char *argument, struct sc_error *err)
{
  return settings_option(context, id, id == CLI_OUTPUT && strcmp(argument, "-") == 0 ? "/dev/stdout" : argument, err);
}

static enum sc_status prepare(struct run *run, struct sc_error *err)
{
  enum sc_status status = output_check(&run->settings, err);
  if (status == SC_OK && !(run->findings = sc_findings_new()))
    status = no_memory(err);
  if (status == SC_OK)
    status = place_find(&run->place, err);
  if (status == SC_OK)
    status = folder_open(run->settings.keep_traces, &run->folder, err);
  if (status == SC_OK)
    status = prepare_environment(run, err);
  return status;
}

static enum sc_status make_report(struct run *run, struct sc_error *err)
{
  struct session_outcome outcome;
  enum sc_status status = write_session(run, err);
  if (status == SC_OK)
    status = session_load(run->folder.path, NULL, run->findings, &outcome, err);
  folder_close(&run->folder); /* the report may end this process (a closed pipe), and a signal may again */
  launch_release();
  if (status == SC_OK)
    status = symbols_look_up(run->findings, err);
  if (status == SC_OK)
    status = output_report(&run->settings, run->findings, err);
  return status;
}

/* The program's status, unless that is 0 and ours is not. */
static int conclude(const struct run *run, enum sc_status status, const struct sc_error *err)
{
  int ours = CLI_OK;
  if (run->end.signal)
    cli_say("%s was ended by signal %d (%s)", run->program[0], run->end.signal, strsignal(run->end.signal));
  if (status != SC_OK) {
    cli_fail(err);
    ours = CLI_UNMEASURED;
  } else if (!session_measured(run->findings)) {
    cli_say("nothing could be measured (see the report)");
    ours = CLI_UNMEASURED;
  }
  if (run->settings.keep_traces && status == SC_OK)
    cli_say("traces are kept in %s; see them again with: synccount report %s", run->settings.keep_traces,
            run->settings.keep_traces);
  if (run->end.status)
    return run->end.status;
  return run->settings.keep_going ? CLI_OK : ours;
}

static int run_program(struct run *run)
{
  struct sc_error err = {0};
  const struct launch launch = {.argv = run->program, .environment = (const char *const *)run->changes};
  enum sc_status status = prepare(run, &err);
  if (status != SC_OK)
    return status == SC_ERR_USAGE ? cli_usage(&cli_run, "%s", err.message) : cli_fail(&err);
  status = launch_run(&launch, &run->end, &err);
  if (status != SC_OK) {
    cli_fail(&err);
    return run->end.status;
  }
  status = make_report(run, &err);
  return conclude(run, status, &err);
}

/* A file of ours must not become a standard stream that we were started without. The program is without it as well. */
static void fill_streams(void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
      return; /* nothing to be done about it */
  }
}

static int run(int argc, char **argv)
{
  struct run run = {.settings = {0}};
  int first, result;
  bool done;
  fill_streams();
  settings_init(&run.settings);
  run.settings.to_stderr = true;
  result = cli_parse(&cli_run, argc, argv, run_option, &run.settings, &first, &done);
  if (!done && (first == argc || !argv[first][0])) {
    result = cli_usage(&cli_run, "name a program: synccount run -- python train.py");
  } else if (!done) {
    run.program = argv + first;
    launch_hold();
    result = run_program(&run);
    folder_close(&run.folder);
    launch_release();
  }
  for (size_t i = 0; i < run.change_count; ++i)
    free(run.changes[i]);
  sc_findings_free(run.findings);
  place_free(&run.place);
  settings_free(&run.settings);
  return result;
}

const struct cli_command cli_run = {
    .name = "run",
    .operands = "[--] PROGRAM [ARGUMENT]...",
    .summary = "Run a program and report where it makes the host wait for the GPU.",
    .description = "The program runs as it would without synccount: its standard streams, signals and\n"
                   "exit status are its own. The report follows on standard error, or in the file that\n"
                   "-o names. Settings of the tracer: 'synccount help environment'.",
    .options = options,
    .run = run,
    .takes_program = true,
};
