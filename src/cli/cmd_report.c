/* SPDX-License-Identifier: Apache-2.0
 * synccount report TRACE|DIR...: read kept traces again. */
#include "cli/bench.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/symbols.h"

static const struct cli_option options[] = {
    {CLI_PER_EXPERT, 0, "per-expert", NULL, "also show the syncs by expert and op"},
    SETTINGS_ANALYSIS_OPTIONS,
    SETTINGS_REPORT_OPTIONS(SETTINGS_FORMATS_HELP),
    {.id = CLI_END},
};

static int run(int argc, char **argv)
{
  struct bench bench = {0};
  struct sc_error err = {0};
  int first, result;
  bool done;
  settings_init(&bench.settings);
  result = cli_parse(&cli_report, argc, argv, settings_option, &bench.settings, &first, &done);
  if (!done && (first == argc || !argv[first][0]))
    result =
        cli_usage(&cli_report, "give at least one trace, or the folder that --keep-traces or SYNCCOUNT_OUTPUT named");
  else if (!done) {
    bench.findings = sc_findings_new();
    enum sc_status status = bench.findings
                                ? load_operands(argv + first, (size_t)(argc - first), &bench.settings.analysis,
                                                bench.findings, &bench.outcome, &err)
                                : sc_error_no_memory(&err);
    if (status == SC_OK && bench.settings.format->programs && bench.findings->process_count == 0)
      status = sc_error_set(&err, SC_ERR_USAGE,
                            "--format %s tells of traced programs, and what was read holds none: choose text, json, "
                            "markdown or html",
                            bench.settings.format->name);
    if (status == SC_OK)
      status = symbols_look_up(bench.findings, &err);
    if (status == SC_OK)
      status = output_report(&bench.settings, bench.findings, &err);
    result = status == SC_OK ? bench_verdict(bench.findings, &bench.outcome) : cli_fail(&err);
  }
  sc_findings_free(bench.findings);
  settings_free(&bench.settings);
  return result;
}

const struct cli_command cli_report = {
    .name = "report",
    .operands = "TRACE|DIR...",
    .summary = "Read kept traces again and report what they hold.",
    .description = "A folder that --keep-traces filled gives the report of that run. Other traces, as the\n"
                   "injected library leaves them (*.sctrace), are reported process by process. So are traces\n"
                   "of other tools: SQLite exports of Nsight Systems and traces of PyTorch's profiler. A\n"
                   "JSON report of synccount is read too.",
    .options = options,
    .run = run,
};
