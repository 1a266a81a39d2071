/* SPDX-License-Identifier: Apache-2.0
 * The user's program under the tracer: its environment, and the session that its traces make. */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/document.h"
#include "cli/facts.h"
#include "cli/passes.h"
#include "cli/session.h"
#include "cli/why.h"

/* ---- the program's environment ------------------------------------------------------------------ */

/* text is a new string or NULL, and belongs to the run from here on. */
static bool change(struct program *program, char *text)
{
  if (!text || program->change_count == PROGRAM_CHANGES_MAX) {
    free(text);
    return false;
  }
  program->changes[program->change_count++] = text;
  return true;
}

static bool change_to(struct program *program, const char *name, const char *value)
{
  return !value || change(program, sc_asprintf("%s=%s", name, value));
}

/* Behind what is preloaded already. The loader splits at spaces and colons, and has no way to quote them. */
static bool preload(struct program *program, const char *tracer)
{
  const char *before = getenv("LD_PRELOAD");
  if (strpbrk(tracer, " :")) {
    cli_say("the path %s holds a space or a colon, so it cannot be preloaded: only processes that keep "
            "CUDA_INJECTION64_PATH are traced, and their first ranges may be missing",
            tracer);
    return true;
  }
  return before && *before ? change(program, sc_asprintf("LD_PRELOAD=%s:%s", before, tracer))
                           : change_to(program, "LD_PRELOAD", tracer);
}

/* The driver loads what CUDA_INJECTION64_PATH names: that reaches programs which drop LD_PRELOAD. Another tool's value
 * is the user's wish. */
static bool inject(struct program *program, const char *name, const char *tracer)
{
  return getenv(name) || change_to(program, name, tracer);
}

/* Python finds our sitecustomize before any other, which that one then runs. */
static bool name_modules(struct program *program, const char *tracer, const char *python)
{
  const char *before = getenv("PYTHONPATH");
  return change_to(program, "SYNCCOUNT_TORCH_MODULES", tracer) &&
         (before && *before ? change(program, sc_asprintf("PYTHONPATH=%s:%s", python, before))
                            : change_to(program, "PYTHONPATH", python));
}

/* PYTHONPATH has no way to quote a colon. */
static enum sc_status find_python(const struct program *program, char **out, struct sc_error *err)
{
  *out = realpath(program->place->python, NULL);
  if (!*out)
    return sc_error_set(err, SC_ERR_SYSTEM, "cannot use the folder %s: %s", program->place->python, strerror(errno));
  if (strchr(*out, ':'))
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "--torch-modules cannot work from %s: PYTHONPATH cannot name a folder with a colon. Install "
                        "synccount elsewhere",
                        *out);
  return SC_OK;
}

enum sc_status program_prepare(struct program *program, struct sc_error *err)
{
  const struct settings *settings = program->settings;
  char *tracer = realpath(program->place->tracer, NULL);
  if (!tracer)
    return sc_error_set(err, SC_ERR_SYSTEM, "cannot use the tracer %s: %s", program->place->tracer, strerror(errno));
  bool ok = preload(program, tracer) && inject(program, "CUDA_INJECTION64_PATH", tracer) &&
            inject(program, "NVTX_INJECTION64_PATH", tracer) &&
            change_to(program, "SYNCCOUNT_OUTPUT", program->folder->path) &&
            change_to(program, "SYNCCOUNT_QUIET", "1") && change(program, sc_strdup("SYNCCOUNT_FIRST")) &&
            change(program, sc_strdup("SYNCCOUNT_DORMANT")) &&
            change_to(program, "SYNCCOUNT_FOLLOW", settings->no_follow ? "0" : "1") &&
            change_to(program, "SYNCCOUNT_STACKS", settings->stacks) &&
            change_to(program, "SYNCCOUNT_API", settings->api) &&
            change_to(program, "SYNCCOUNT_MAX_TRACE", settings->max_trace);
  enum sc_status status = ok ? SC_OK : sc_error_no_memory(err);
  char *python = NULL;
  if (status == SC_OK && settings->torch_modules)
    status = find_python(program, &python, err);
  if (python && status == SC_OK && !name_modules(program, tracer, python))
    status = sc_error_no_memory(err);
  free(python);
  free(tracer);
  return status;
}

enum sc_status program_run(struct program *program, struct launch_end *end, struct sc_error *err)
{
  const struct launch launch = {.argv = program->argv, .environment = (const char *const *)program->changes};
  return launch_run(&launch, end, err);
}

void program_free(struct program *program)
{
  for (size_t i = 0; i < program->change_count; ++i)
    free(program->changes[i]);
  program->change_count = 0;
}

void program_fill_streams(void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
      return; /* nothing to be done about it */
  }
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
      status = sc_error_no_memory(err);
    free(path);
  }
  if (status == SC_OK || status == SC_ERR_NOMEM)
    folder_free_names(names, count);
  return status;
}

/* Takes the ruler, untraced, now that the program leaves the device alone. What prevents it is a note. *document is
 * NULL then. */
static enum sc_status measure_round_trip(const struct program *program, struct sc_findings *notes,
                                         struct document **document, struct sc_error *err)
{
  const struct device device = {.ordinal = 0};
  const struct passes passes = {.settings = program->settings,
                                .place = program->place,
                                .device = &device,
                                .folder = program->folder};
  struct sc_error why = {0};
  char *path = folder_file(program->folder, passes_document(PASS_RULER_BESIDE));
  if (!path)
    return sc_error_no_memory(err);
  enum sc_status status = passes_run(&passes, PASS_RULER_BESIDE, &why);
  if (status == SC_OK)
    status = document_read(path, document, &why);
  if (status != SC_OK && status != SC_ERR_NOMEM) {
    unlink(path);
    status = sc_findings_warn(notes,
                              "this host's round trip was not measured: %s. Waits are shown as they are; "
                              "'synccount ruler' measures it alone, --no-ruler leaves it out.",
                              why.message)
                 ? SC_OK
                 : SC_ERR_NOMEM;
  }
  free(path);
  return status == SC_ERR_NOMEM ? sc_error_no_memory(err) : status;
}

enum sc_status program_write_session(const struct program *program, struct sc_error *err)
{
  struct look look = {0};
  struct sc_findings *notes = sc_findings_new();
  enum sc_status status = notes ? look_at_traces(program->folder, &look, err) : sc_error_no_memory(err);
  struct document *ruler = NULL;
  struct document_device device;
  struct facts_input input = {
      .sysroot = place_sysroot(), .simulated = look.simulated, .sim_round_trip_us = NAN, .cupti = look.cupti};
  const struct why_question question = {
      .program = program->argv[0], .folder = program->folder->path, .no_follow = program->settings->no_follow,
      .traced = look.traces > 0};
  const struct session_notes session = {
      .facts = notes, .simulated = look.simulated, .run = &program->settings->analysis};
  folder_use_room(program->folder);
  if (status == SC_OK && program->ruler && look.measured && !look.simulated)
    status = measure_round_trip(program, notes, &ruler, err);
  if (ruler) {
    document_device(ruler, &device);
    input.device = &device;
  }
  if (status == SC_OK)
    status = facts_add(&input, notes, err);
  if (status == SC_OK)
    status = why_add_untraced(program->folder, notes, err);
  if (status == SC_OK && !look.measured)
    status = why_add_nothing(&question, notes, err);
  if (status == SC_OK)
    status = session_write(program->folder, &session, err);
  document_free(ruler);
  free(look.cupti);
  sc_findings_free(notes);
  return status;
}
