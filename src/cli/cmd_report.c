/* SPDX-License-Identifier: Apache-2.0
 * synccount report TRACE|DIR...: read kept traces again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/analysis.h"
#include "cli/bench.h"
#include "cli/output.h"
#include "cli/symbols.h"

static const struct cli_option options[] = {
    {CLI_PER_EXPERT, 0, "per-expert", NULL, "also show the syncs by expert and op"},
    SETTINGS_ANALYSIS_OPTIONS,
    SETTINGS_REPORT_OPTIONS,
    {.id = CLI_END},
};

static enum sc_status add_trace(const char *path, const struct sc_analysis_options *how, struct sc_findings *findings,
                                struct sc_error *err)
{
  struct sc_reader *reader = NULL;
  enum sc_status status = sc_reader_open(path, &reader, err);
  if (status == SC_OK)
    status = sc_analysis_read(reader, how, findings, err);
  sc_reader_close(reader);
  return status;
}

static enum sc_status add_folder(const char *path, const struct sc_analysis_options *how, struct sc_findings *findings,
                                 struct sc_error *err)
{
  char **names;
  size_t count;
  enum sc_status status = folder_names(path, "*" SC_TRACE_SUFFIX, &names, &count, err);
  if (status != SC_OK)
    return status;
  if (count == 0)
    status = sc_error_set(err, SC_ERR_IO,
                          "folder '%s' holds no trace (*" SC_TRACE_SUFFIX
                          "): give the folder that --keep-traces or SYNCCOUNT_OUTPUT named",
                          path);
  for (size_t i = 0; status == SC_OK && i < count; ++i) {
    char *file = sc_asprintf("%s/%s", path, names[i]);
    status = file ? add_trace(file, how, findings, err) : sc_error_set(err, SC_ERR_NOMEM, "out of memory");
    free(file);
  }
  folder_free_names(names, count);
  return status;
}

/* The folder whose session an operand is or belongs to, as a new string; NULL if there is none. */
static char *session_of(const char *operand)
{
  struct stat info;
  char *folder = sc_strdup(operand);
  if (!folder || stat(operand, &info) != 0)
    goto none;
  if (!S_ISDIR(info.st_mode)) {
    char *slash = strrchr(folder, '/');
    if (slash)
      slash[slash == folder] = '\0';
    else
      strcpy(folder, "."); /* an operand is never empty here */
  }
  if (session_is_there(folder))
    return folder;
none:
  free(folder);
  return NULL;
}

static enum sc_status add_operand(const char *operand, const struct sc_analysis_options *how,
                                  struct sc_findings *findings, struct sc_error *err)
{
  struct stat info;
  if (stat(operand, &info) != 0)
    return sc_error_set(err, SC_ERR_IO, "cannot read '%s': %s", operand, strerror(errno));
  return S_ISDIR(info.st_mode) ? add_folder(operand, how, findings, err) : add_trace(operand, how, findings, err);
}

/* All operands are of one session: its findings. Otherwise each trace is a process. */
static enum sc_status load(char **operands, int count, struct bench *bench, struct sc_error *err)
{
  char *session = session_of(operands[0]);
  bool one = session != NULL;
  for (int i = 1; i < count && one; ++i) {
    char *other = session_of(operands[i]);
    one = other && strcmp(other, session) == 0;
    free(other);
  }
  enum sc_status status = SC_OK;
  if (one)
    status = session_load(session, &bench->settings.analysis, bench->findings, &bench->outcome, err);
  for (int i = 0; !one && status == SC_OK && i < count; ++i)
    status = add_operand(operands[i], &bench->settings.analysis, bench->findings, err);
  if (!one)
    bench->outcome.nothing = !session_measured(bench->findings);
  free(session);
  return status;
}

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
    enum sc_status status = bench.findings ? load(argv + first, argc - first, &bench, &err)
                                           : sc_error_set(&err, SC_ERR_NOMEM, "out of memory");
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
                   "injected library leaves them (*.sctrace), are reported process by process.",
    .options = options,
    .run = run,
};
