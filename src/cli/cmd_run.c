/* SPDX-License-Identifier: Apache-2.0
 * synccount run -- PROGRAM: any program under the tracer, and a report of its syncs at the end. */
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/program.h"
#include "cli/session.h"
#include "cli/symbols.h"

static const struct cli_option options[] = {
    SETTINGS_ANALYSIS_OPTIONS,
    {CLI_STACKS, 0, "stacks", "LIST", "python, native, both with a comma, or none: where each sync\ncomes from"},
    {CLI_TORCH_MODULES, 0, "torch-modules", NULL,
     "a range for each call of a PyTorch module, named as in the\nmodel, and steps by its optimizer"},
    {CLI_FOLLOW, 0, "follow", NULL, "trace the processes that the program starts (default)"},
    {CLI_NO_FOLLOW, 0, "no-follow", NULL, "trace only the process that was started"},
    {CLI_NO_RULER, 0, "no-ruler", NULL, "do not measure the host's round trip when the program has ended"},
    {CLI_API, 0, "api", "LIST", "whose calls are counted: runtime, driver (default: both)"},
    {CLI_MAX_TRACE, 0, "max-trace", "SIZE",
     "stop recording details when a process' trace has this size\n(64M), and go on counting"},
    {CLI_KEEP_TRACES, 0, "keep-traces", "DIR", "keep the traces in DIR, for 'synccount report DIR'"},
    {CLI_KEEP_GOING, 0, "keep-going", NULL, "exit with 0 where the program does, measured or not"},
    {CLI_FORMAT, 0, "format", "FORMAT", SETTINGS_FORMATS_HELP},
    {CLI_OUTPUT, 'o', "output", "FILE", "write the report to FILE instead of standard error"},
    {CLI_QUIET, 'q', "quiet", NULL, "only the answer in text reports"},
    {CLI_HELP, 'h', "help", NULL, "print this text"},
    {.id = CLI_END},
};

struct run {
  struct settings settings;
  struct place place;
  struct folder folder;
  struct job job;
  struct sc_findings *findings;
  struct program program;
  struct launch_end end;
};

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
    status = sc_error_no_memory(err);
  if (status == SC_OK)
    status = place_find(&run->place, err);
  if (status == SC_OK)
    status = job_find(&run->job, err);
  if (status == SC_OK)
    status = folder_open_rank(run->settings.keep_traces, &run->job, &run->folder, err);
  if (status == SC_OK)
    status = program_prepare(&run->program, err);
  return status;
}

static enum sc_status make_report(struct run *run, struct sc_error *err)
{
  struct session_outcome outcome;
  const struct sc_analysis_options how = {.events = run->settings.analysis.events};
  enum sc_status status = program_write_session(&run->program, err);
  if (status == SC_OK)
    status = session_load(run->folder.path, &how, run->findings, &outcome, err);
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
    cli_say("%s was ended by signal %d (%s)", run->program.argv[0], run->end.signal, strsignal(run->end.signal));
  if (status != SC_OK) {
    cli_fail(err);
    ours = CLI_UNMEASURED;
  } else if (!session_measured(run->findings)) {
    if (run->settings.format->programs) { /* such formats have no place for it */
      for (size_t i = 0; i < run->findings->warning_count; ++i)
        cli_say("%s", run->findings->warnings[i]);
    }
    cli_say("nothing could be measured (see the report)");
    ours = CLI_UNMEASURED;
  }
  if (run->settings.keep_traces && status == SC_OK && run->job.id)
    cli_say("the traces of rank %s are kept in %s; see all ranks with: synccount report %s", run->job.rank,
            run->settings.keep_traces, run->settings.keep_traces);
  else if (run->settings.keep_traces && status == SC_OK)
    cli_say("traces are kept in %s; see them again with: synccount report %s", run->settings.keep_traces,
            run->settings.keep_traces);
  if (run->end.status)
    return run->end.status;
  return run->settings.keep_going ? CLI_OK : ours;
}

/* Who ended the program by a signal wants to be done; and one rank of a job measures for all. */
static bool wants_ruler(const struct run *run)
{
  bool first = !run->job.ranked || (run->job.rank && strcmp(run->job.rank, "0") == 0);
  return !run->settings.no_ruler && run->end.signal == 0 && first;
}

static int run_program(struct run *run)
{
  struct sc_error err = {0};
  enum sc_status status = prepare(run, &err);
  if (status != SC_OK)
    return status == SC_ERR_USAGE ? cli_usage(&cli_run, "%s", err.message) : cli_fail(&err);
  status = program_run(&run->program, &run->end, &err);
  if (status != SC_OK) {
    cli_fail(&err);
    return run->end.status;
  }
  run->program.ruler = wants_ruler(run);
  status = make_report(run, &err);
  return conclude(run, status, &err);
}

static int run(int argc, char **argv)
{
  struct run run = {.settings = {0}};
  int first, result;
  bool done;
  program_fill_streams();
  settings_init(&run.settings);
  run.settings.to_stderr = true;
  result = cli_parse(&cli_run, argc, argv, run_option, &run.settings, &first, &done);
  if (!done && (first == argc || !argv[first][0])) {
    result = cli_usage(&cli_run, "name a program: synccount run -- python train.py");
  } else if (!done) {
    run.program =
        (struct program){.settings = &run.settings, .place = &run.place, .folder = &run.folder, .argv = argv + first};
    launch_hold();
    result = run_program(&run);
    folder_close(&run.folder);
    launch_release();
  }
  program_free(&run.program);
  sc_findings_free(run.findings);
  job_free(&run.job);
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
