/* SPDX-License-Identifier: Apache-2.0
 * synccount check: a sync count as a test. Measures the instrumented layers or a program, or reads traces, and compares
 * with expectations. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench.h"
#include "cli/child.h"
#include "cli/gatefile.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/symbols.h"
#include "gate/gate.h"

#define SUMMARY_MAX (1000u * 1000u) /* GitHub takes 1 MiB of a step */

static const struct cli_option options[] = {
    {CLI_EXPECT, 0, "expect", "EXPECTATION",
     "'sorted.syncs_per_layer == 1', 'syncs_per_step <= 4', ...;\nmay be given again: see synccount-gate(5)"},
    {CLI_MAX_SYNCS, 0, "max-syncs", "N",
     "with --range: at most N syncs in each of its occurrences;\nwithout: at most N in each process"},
    {CLI_RANGE, 0, "range", "PATTERN", "ranges of this name, for --max-syncs"},
    {CLI_SITE, 0, "site", "PATTERN", "syncs of this place (FILE:LINE, FILE:FUNCTION, call),\nfor --max-syncs"},
    {CLI_CLASS, 0, "class", "CLASS", "explicit, copy, pageable or implicit, for --max-syncs"},
    {CLI_THREAD, 0, "thread", "PATTERN", "threads of this name or number, for --max-syncs"},
    {CLI_RANK, 0, "rank", "PATTERN", "processes of this rank, for --max-syncs"},
    {CLI_JUNIT, 0, "junit", "FILE", "also write the verdict as JUnit XML"},
    {CLI_GITHUB, 0, "github", NULL,
     "also write annotations and the step's summary for GitHub\nActions (default where GITHUB_ACTIONS is true)"},
    {CLI_WARMUP, 0, "warmup", "N",
     "leave out the first N steps; where a thread has no steps,\nthe first N occurrences of each range"},
    {CLI_FROM, 0, "from", "RANGE", "leave out what came before a range of this name first opened"},
    {CLI_RANGES, 0, "ranges", "RULE",
     "PATTERN=LEVEL: ranges whose name matches are a step, layer, expert,\nop or run; may be given again"},
    {CLI_CAPTURE_RANGE, 0, "capture-range", "API",
     "cudaProfilerApi: count only between cudaProfilerStart and\ncudaProfilerStop"},
    SETTINGS_GRID_OPTIONS("those of which something\nis expected"),
    SETTINGS_DEVICE_OPTIONS("the GPU, or\nnothing is measured; sim has to be asked for"),
    {CLI_STACKS, 0, "stacks", "LIST", "of a program: python, native, both with a comma, or none"},
    {CLI_TORCH_MODULES, 0, "torch-modules", NULL, "of a program: a range for each call of a PyTorch module"},
    {CLI_FOLLOW, 0, "follow", NULL, "trace the processes that the program starts (default)"},
    {CLI_NO_FOLLOW, 0, "no-follow", NULL, "trace only the process that was started"},
    {CLI_API, 0, "api", "LIST", "whose calls are counted: runtime, driver (default: both)"},
    {CLI_KEEP_TRACES, 0, "keep-traces", "DIR", "keep what was measured in DIR, for 'synccount report DIR'"},
    {CLI_FORMAT, 0, "format", "FORMAT", "text, json or markdown (default: text)"},
    {CLI_OUTPUT, 'o', "output", "FILE",
     "write the verdict to FILE (default: standard output; with a\nprogram standard error: standard output is the "
     "program's)"},
    {CLI_QUIET, 'q', "quiet", NULL, "no progress line, and only the verdict of each expectation"},
    {CLI_HELP, 'h', "help", NULL, "print this text"},
    {.id = CLI_END},
};

enum check_format { CHECK_TEXT, CHECK_JSON, CHECK_MARKDOWN };

/* Options that are selectors of the same name. */
static const struct {
  enum cli_option_id id;
  const char *name;
} max_syncs_selectors[] = {
    {CLI_RANGE, "range"}, {CLI_SITE, "site"}, {CLI_CLASS, "class"}, {CLI_THREAD, "thread"}, {CLI_RANK, "rank"}};
enum { MAX_SYNCS_SELECTORS = SC_COUNTOF(max_syncs_selectors) };

struct check {
  struct bench bench;
  struct sc_gate gate;
  struct sc_config_gate *file;
  const char *gate_path; /* of file, as it was typed; NULL: no gate */
  enum check_format format;
  const char *junit;
  bool github, has_max_syncs, has_warmup, layers_asked; /* the last: by options of the instrumented layers */
  bool tracing_asked;                                   /* by options that only a program which is run can follow */
  double max_syncs;
  const char *selected[MAX_SYNCS_SELECTORS]; /* by the options beside --max-syncs */

  char **program_argv; /* NULL: no program */
  char **traces;       /* borrowed */
  size_t trace_count;
  struct program program;
  struct launch_end end;
  char *source, *trouble;
};

/* ---- options --------------------------------------------------------------------------------- */

static bool take_format(struct check *check, const char *text, struct sc_error *err)
{
  static const char *const names[] = {"text", "json", "markdown"};
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    if (strcmp(names[i], text) == 0) {
      check->format = (enum check_format)i;
      return true;
    }
  }
  sc_error_set(err, SC_ERR_USAGE, "'%.80s' is none of: text, json, markdown", text);
  return false;
}

static bool take_text(const char *text, const char **out, struct sc_error *err)
{
  if (*text) {
    *out = text;
    return true;
  }
  sc_error_set(err, SC_ERR_USAGE, "'' is empty");
  return false;
}

static bool take_max_syncs(struct check *check, const char *text, struct sc_error *err)
{
  uint64_t n;
  if (!sc_parse_u64(text, &n) || n > UINT32_MAX) {
    sc_error_set(err, SC_ERR_USAGE, "'%.80s' is not a whole number", text);
    return false;
  }
  check->has_max_syncs = true;
  check->max_syncs = (double)n;
  return true;
}

static bool check_option(void *context, enum cli_option_id id, const char *argument, struct sc_error *err)
{
  struct check *check = context;
  for (size_t i = 0; i < MAX_SYNCS_SELECTORS; ++i) {
    if (max_syncs_selectors[i].id == id)
      return take_text(argument, &check->selected[i], err);
  }
  switch (id) {
  case CLI_EXPECT: return sc_gate_parse(&check->gate, argument, err) == SC_OK;
  case CLI_MAX_SYNCS: return take_max_syncs(check, argument, err);
  case CLI_JUNIT: return take_text(argument, &check->junit, err);
  case CLI_GITHUB: check->github = true; return true;
  case CLI_WARMUP: check->has_warmup = true; return settings_option(&check->bench.settings, id, argument, err);
  case CLI_FORMAT: return take_format(check, argument, err);
  default: return settings_option(&check->bench.settings, id, argument, err);
  }
}

/* --max-syncs with what stands beside it is one expectation. */
static enum sc_status add_max_syncs(struct check *check, struct sc_error *err)
{
  struct sc_gate_expectation *e = check->has_max_syncs ? sc_gate_add(&check->gate) : NULL;
  if (check->has_max_syncs && !e)
    return sc_error_no_memory(err);
  for (size_t i = 0; i < MAX_SYNCS_SELECTORS; ++i) {
    const char *name = max_syncs_selectors[i].name, *value = check->selected[i];
    if (value && !e)
      return sc_error_set(err, SC_ERR_USAGE, "--%s belongs to --max-syncs, which is missing", name);
    enum sc_status status = value ? sc_gate_select(e, name, value, err) : SC_OK;
    if (status == SC_ERR_USAGE)
      sc_error_prefix(err, "--%s: '%.80s'", name, value);
    if (status != SC_OK)
      return status;
  }
  if (!e)
    return SC_OK;
  e->measure = e->range ? SC_GATE_PER_OCCURRENCE : SC_GATE_TOTAL;
  e->compare = SC_GATE_AT_MOST;
  e->high = check->max_syncs;
  return sc_gate_complete(e, err);
}

/* ---- what is looked at ----------------------------------------------------------------------- */

static bool grid_given(const struct settings *s)
{
  return s->experts || s->tokens || s->variants || s->layers || s->hidden || s->intermediate || s->top_k ||
         s->forwards || s->has_seed || s->has_dtype || s->routing || s->act_quant || s->nvfp4_path || s->config_name;
}

static bool layers_asked(const struct settings *s)
{
  return grid_given(s) || s->device != DEVICE_AUTO || !isnan(s->sim_round_trip_us);
}

static bool tracing_asked(const struct settings *s)
{
  return s->stacks || s->api || s->follow || s->no_follow || s->torch_modules || s->keep_traces;
}

/* A gate whose name is misspelt looks like a trace that is not there. */
static enum sc_status look_for_traces(const struct check *check, struct sc_error *err)
{
  for (size_t i = 0; i < check->trace_count; ++i) {
    if (access(check->traces[i], F_OK) != 0 && errno == ENOENT)
      return sc_error_set(
          err, SC_ERR_IO,
          "cannot read '%s': there is no such trace, report or folder, and no shipped gate of this name in %s",
          check->traces[i], check->bench.place.configs);
  }
  return SC_OK;
}

/* At most one gate, and traces. */
static enum sc_status sort_operands(struct check *check, char **operands, size_t count, struct sc_error *err)
{
  const char *configs = check->bench.place.configs;
  enum sc_status status = SC_OK;
  check->traces = operands;
  for (size_t i = 0; i < count && status == SC_OK; ++i) {
    if (!gatefile_is_one(operands[i], configs)) {
      operands[check->trace_count++] = operands[i];
      continue;
    }
    if (check->gate_path)
      return sc_error_set(err, SC_ERR_USAGE, "%s and %s are two gates: check one at a time", check->gate_path,
                          operands[i]);
    check->gate_path = operands[i];
    status = gatefile_read(check->gate_path, configs, &check->file, err);
    if (status == SC_OK)
      status = gatefile_expectations(check->file, check->gate_path, &check->gate, err);
  }
  if (status == SC_OK && check->program_argv && check->trace_count)
    return sc_error_set(err, SC_ERR_USAGE, "a program and traces (%s) are two sources: give one", operands[0]);
  return status == SC_OK ? look_for_traces(check, err) : status;
}

/* The gate's own source, where the command line names none; and its settings in any case. */
static enum sc_status apply_file(struct check *check, struct sc_error *err)
{
  struct sc_config_gate *file = check->file;
  struct settings *s = &check->bench.settings;
  if (!file)
    return SC_OK;
  const bool from_line = check->program_argv || check->trace_count;
  if (!from_line && file->command) {
    check->program_argv = sc_calloc_array(file->command_count + 1, sizeof *check->program_argv);
    if (!check->program_argv)
      return sc_error_no_memory(err);
    memcpy(check->program_argv, file->command, file->command_count * sizeof *file->command);
  } else if (!from_line && file->traces) {
    check->traces = file->traces;
    check->trace_count = file->traces_count;
  }
  if (check->has_warmup) /* 0 is a number too */
    file->warmup = 0;
  return gatefile_settings(file, check->gate_path, s, err);
}

static bool is_of_program(const struct sc_gate_expectation *e)
{
  return e->range || e->level || e->site || e->thread || e->rank || e->process ||
         e->measure == SC_GATE_PER_OCCURRENCE || e->measure == SC_GATE_PER_STEP || e->measure == SC_GATE_WAIT;
}

static enum sc_status check_source(const struct check *check, struct sc_error *err)
{
  if (check->gate.expectation_count == 0)
    return sc_error_set(err, SC_ERR_USAGE, "nothing is expected: give --expect, --max-syncs, or a gate (YAML)");
  if (check->program_argv || check->trace_count) {
    if (check->layers_asked)
      return sc_error_set(err, SC_ERR_USAGE,
                          "--experts, --device and the other options of the instrumented layers do not go with a "
                          "program or a trace");
    if (check->trace_count && check->tracing_asked)
      return sc_error_set(err, SC_ERR_USAGE,
                          "--stacks, --api, --follow, --no-follow, --torch-modules and --keep-traces are for what is "
                          "run: a trace is as it was taken");
    return SC_OK;
  }
  for (size_t i = 0; i < check->gate.expectation_count; ++i) {
    if (is_of_program(&check->gate.expectations[i]))
      return sc_error_set(err, SC_ERR_USAGE,
                          "'%.200s' is asked of a program: name one behind '--', or a trace: synccount check ... -- "
                          "python test.py",
                          check->gate.expectations[i].text);
  }
  return SC_OK;
}

/* ---- the instrumented layers ----------------------------------------------------------------- */

/* Only the variants that something is expected of are run. */
static enum sc_status choose_variants(struct check *check, struct sc_error *err)
{
  struct settings *s = &check->bench.settings;
  struct sc_buf list = {0};
  if (s->variants || s->config_name)
    return SC_OK;
  for (size_t i = 0; i < check->gate.expectation_count; ++i) {
    const char *variant = check->gate.expectations[i].variant;
    if (!variant) { /* of all */
      sc_buf_free(&list);
      return SC_OK;
    }
    if (!list.data || !strstr(list.data, variant))
      sc_buf_printf(&list, "%s%s", list.len ? "," : "", variant);
  }
  enum sc_status status = list.failed                                                         ? sc_error_no_memory(err)
                          : settings_option(s, CLI_VARIANTS, list.data ? list.data : "", err) ? SC_OK
                                                                                              : err->status;
  sc_buf_free(&list);
  return status;
}

static bool wants_floor(const struct sc_gate *gate)
{
  for (size_t i = 0; i < gate->expectation_count; ++i) {
    if (gate->expectations[i].measure == SC_GATE_FLOOR)
      return true;
  }
  return false;
}

static enum sc_status measure_layers(struct check *check, struct sc_error *err)
{
  struct bench *bench = &check->bench;
  struct plan plan;
  const struct passes passes = {&bench->settings, &plan, &bench->place, &bench->device, &bench->folder};
  struct sc_findings *notes = sc_findings_new();
  enum sc_status status = notes ? choose_variants(check, err) : sc_error_no_memory(err);
  bench->no_silent_simulation = true;
  if (status == SC_OK)
    status = bench_plan(bench, &plan, err);
  if (status == SC_OK)
    status = bench_open_folder(bench, err);
  if (status == SC_OK && wants_floor(&check->gate) && !bench->device.simulated)
    status = passes_run(&passes, PASS_RULER, err);
  if (status == SC_OK)
    status = passes_run(&passes, PASS_COUNTS, err);
  if (status == SC_OK)
    status = bench_write_session(&passes, PASS_COUNTS, notes, err);
  if (status == SC_OK)
    status = session_load(bench->folder.path, NULL, bench->findings, &bench->outcome, err);
  sc_findings_free(notes);
  return status;
}

/* ---- a program ------------------------------------------------------------------------------- */

static enum sc_status measure_program(struct check *check, struct sc_error *err)
{
  struct bench *bench = &check->bench;
  check->program = (struct program){
      .settings = &bench->settings, .place = &bench->place, .folder = &bench->folder, .argv = check->program_argv};
  enum sc_status status = folder_open(bench->settings.keep_traces, &bench->folder, err);
  if (status == SC_OK)
    status = program_prepare(&check->program, err);
  if (status == SC_OK)
    status = program_run(&check->program, &check->end, err);
  if (status == SC_OK)
    status = program_write_session(&check->program, err);
  if (status == SC_OK)
    status = session_load(bench->folder.path, &bench->settings.analysis, bench->findings, &bench->outcome, err);
  if (status != SC_OK || check->end.status == 0)
    return status;
  if (check->end.signal)
    check->trouble =
        sc_asprintf("program was ended by signal %d (%s)", check->end.signal, strsignal(check->end.signal));
  else
    check->trouble = sc_asprintf("program failed with %d", check->end.status);
  return check->trouble ? SC_OK : sc_error_no_memory(err);
}

/* ---- all sources ----------------------------------------------------------------------------- */

static char *join(const char *lead, char *const *words, size_t count)
{
  struct sc_buf buf = {0};
  sc_buf_puts(&buf, lead);
  for (size_t i = 0; i < count; ++i)
    sc_buf_printf(&buf, "%s%s", i ? " " : "", words[i]);
  if (buf.failed) {
    sc_buf_free(&buf);
    return NULL;
  }
  return buf.data;
}

static size_t words_of(char *const *argv)
{
  size_t count = 0;
  while (argv[count])
    ++count;
  return count;
}

static enum sc_status measure(struct check *check, struct sc_error *err)
{
  struct bench *bench = &check->bench;
  enum sc_status status;
  bench->settings.analysis.tally = true;
  if (check->program_argv) {
    check->source = join("", check->program_argv, words_of(check->program_argv));
    status = check->source ? measure_program(check, err) : sc_error_no_memory(err);
  } else if (check->trace_count) {
    check->source = join("", check->traces, check->trace_count);
    status = check->source ? load_operands(check->traces, check->trace_count, &bench->settings.analysis,
                                           bench->findings, &bench->outcome, err)
                           : sc_error_no_memory(err);
  } else {
    check->source = sc_strdup("the instrumented layers");
    status = check->source ? measure_layers(check, err) : sc_error_no_memory(err);
  }
  if (status == SC_OK && bench->findings->process_count)
    status = symbols_look_up(bench->findings, err);
  return status;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static bool wants_github(const struct check *check)
{
  const char *actions = getenv("GITHUB_ACTIONS");
  return check->github || (actions && strcmp(actions, "true") == 0);
}

/* Appends to the file that GitHub shows below the step. Without it the verdict stands all the same. */
static void write_summary(const struct sc_gate_report *report)
{
  const char *path = getenv("GITHUB_STEP_SUMMARY");
  struct sc_buf text = {0};
  if (!path || !*path)
    return;
  sc_gate_write_markdown(report, &text);
  sc_buf_puts(&text, "\n");
  int fd = text.failed || text.len > SUMMARY_MAX ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (text.failed || text.len > SUMMARY_MAX)
    cli_say("the step's summary is left out: it is larger than GitHub shows");
  else if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len)
    cli_say("cannot write the step's summary to '%s': %s", path, strerror(errno));
  if (fd >= 0)
    close(fd);
  sc_buf_free(&text);
}

static void write_annotations(const struct sc_gate_report *report)
{
  struct sc_buf text = {0};
  sc_gate_write_annotations(report, &text);
  if (text.data && !text.failed) {
    fflush(stdout);
    fputs(text.data, stderr);
  }
  sc_buf_free(&text);
}

static enum sc_status write_verdict(const struct check *check, const struct sc_gate_report *report,
                                    struct sc_error *err)
{
  const struct settings *s = &check->bench.settings;
  struct sc_buf text = {0}, junit = {0};
  enum sc_status status = SC_OK;
  if (check->junit) {
    sc_gate_write_junit(report, &junit);
    status = output_text(s, &junit, check->junit, err);
  }
  if (wants_github(check)) {
    write_annotations(report);
    write_summary(report);
  }
  if (check->format == CHECK_JSON)
    sc_gate_write_json(report, &text);
  else if (check->format == CHECK_MARKDOWN)
    sc_gate_write_markdown(report, &text);
  else
    sc_gate_write_text(report, s->quiet, &text);
  struct sc_error second = {0};
  enum sc_status written = output_text(s, &text, s->output, &second);
  if (status == SC_OK && written != SC_OK)
    status = sc_error_set(err, written, "%s", second.message);
  sc_buf_free(&text);
  sc_buf_free(&junit);
  return status;
}

static const char *incomplete(const struct check *check, char text[static 96])
{
  if (check->bench.outcome.skipped == 0)
    return NULL;
  snprintf(text, 96, "%zu points of the grid were left out (see the notes)", check->bench.outcome.skipped);
  return text;
}

static int judge(struct check *check, struct sc_error *err)
{
  char text[96];
  struct sc_gate_report *report = NULL;
  const struct sc_gate_facts facts = {
      .source = check->source, .trouble = check->trouble, .incomplete = incomplete(check, text)};
  enum sc_status status = sc_gate_judge(&check->gate, check->bench.findings, &facts, &report, err);
  int result = CLI_UNMEASURED;
  if (status == SC_OK) {
    result = report->verdict == SC_GATE_PASSED   ? CLI_OK
             : report->verdict == SC_GATE_FAILED ? CLI_FAILED
                                                 : CLI_UNMEASURED;
    status = write_verdict(check, report, err);
  }
  sc_gate_report_free(report);
  if (status == SC_OK)
    return result;
  cli_fail(err);
  return result == CLI_FAILED ? CLI_FAILED : CLI_UNMEASURED; /* a file that cannot be written hides no failure */
}

/* What could not be measured is a verdict too, for whoever reads the files. Mistakes of the caller are none. */
static int conclude(struct check *check, enum sc_status status, struct sc_error *err)
{
  /* Files go first: what follows may end this process. */
  folder_close(&check->bench.folder);
  if (check->program_argv)
    launch_release();
  if (child_interrupted())
    return CLI_UNMEASURED;
  if (status == SC_ERR_USAGE)
    return cli_usage(&cli_check, "%s", err->message);
  if (status == SC_OK)
    return judge(check, err);
  if (status != SC_ERR_DEVICE && status != SC_ERR_MEASURE && status != SC_ERR_SYSTEM)
    return cli_fail(err);
  check->trouble = sc_strdup(err->message);
  return check->trouble ? judge(check, err) : cli_fail(err);
}

static int run_check(struct check *check, char **operands, size_t count)
{
  struct bench *bench = &check->bench;
  struct sc_error err = {0};
  enum sc_status status =
      (bench->findings = sc_findings_new()) ? place_find(&bench->place, &err) : sc_error_no_memory(&err);
  if (status == SC_OK)
    status = sort_operands(check, operands, count, &err);
  check->layers_asked = layers_asked(&bench->settings);
  check->tracing_asked = tracing_asked(&bench->settings);
  if (status == SC_OK)
    status = apply_file(check, &err);
  if (status == SC_OK)
    status = add_max_syncs(check, &err);
  if (status == SC_OK)
    status = check_source(check, &err);
  if (status == SC_OK)
    status = output_check(&bench->settings, &err);
  if (status == SC_OK && check->junit)
    status = output_check_file(check->junit, &err);
  if (status != SC_OK)
    return status == SC_ERR_USAGE ? cli_usage(&cli_check, "%s", err.message) : cli_fail(&err);
  bench->settings.to_stderr = check->program_argv != NULL;
  if (check->program_argv)
    launch_hold();
  status = measure(check, &err);
  int result = conclude(check, status, &err);
  if (!check->program_argv)
    child_release_signals();
  return result;
}

/* argv up to "--" is ours. */
static int own_arguments(int argc, char **argv)
{
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--") == 0)
      return i;
  }
  return argc;
}

static int run(int argc, char **argv)
{
  struct check check = {.max_syncs = NAN};
  const int ours = own_arguments(argc, argv);
  int first, result;
  bool done;
  program_fill_streams();
  signal(SIGXFSZ, SIG_IGN); /* a file size limit is a failed write with a reason */
  settings_init(&check.bench.settings);
  result = cli_parse(&cli_check, ours, argv, check_option, &check, &first, &done);
  if (!done && ours < argc) {
    check.program_argv = argv + ours + 1;
    if (!check.program_argv[0] || !check.program_argv[0][0]) {
      result = cli_usage(&cli_check, "name a program behind '--'");
      done = true;
    }
  }
  char **of_line = check.program_argv;
  if (!done)
    result = run_check(&check, argv + first, (size_t)(ours - first));
  program_free(&check.program);
  if (check.program_argv != of_line)
    free(check.program_argv);
  sc_findings_free(check.bench.findings);
  sc_gate_free(&check.gate);
  place_free(&check.bench.place);
  settings_free(&check.bench.settings);
  sc_config_gate_free(check.file);
  free(check.source);
  free(check.trouble);
  return result;
}

const struct cli_command cli_check = {
    .name = "check",
    .operands = "[GATE|TRACE|DIR]... [-- PROGRAM [ARGUMENT]...]",
    .summary = "Compare sync counts with expectations: a gate for CI.",
    .description = "It measures the instrumented layers, or a program, or reads traces and reports, and exits with\n"
                   "0 if all is as expected, 1 if an expectation failed, 2 for mistakes in the command line\n"
                   "or a file, and 3 if something could not be measured, or if the program failed.",
    .options = options,
    .run = run,
};
