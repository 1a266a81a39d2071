/* SPDX-License-Identifier: Apache-2.0
 * synccount diff BEFORE AFTER: what appeared, what went, and what differs between two hosts. */
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/symbols.h"
#include "gate/gate.h"

static const struct cli_option options[] = {
    {CLI_FAIL_ON_INCREASE, 0, "fail-on-increase", NULL,
     "exit with 1 if there are more syncs, with 3 if nobody can tell"},
    {CLI_WARMUP, 0, "warmup", "N", "leave the first N steps of each thread out of the steps' figures"},
    {CLI_FROM, 0, "from", "RANGE", "leave steps out that ended before a range of this name first\nopened"},
    {CLI_RANGES, 0, "ranges", "RULE",
     "PATTERN=LEVEL: ranges whose name matches are a step, layer, expert,\nop or run; may be given again"},
    {CLI_CAPTURE_RANGE, 0, "capture-range", "API",
     "cudaProfilerApi: count only between cudaProfilerStart and\ncudaProfilerStop"},
    {CLI_FORMAT, 0, "format", "FORMAT", "text, json or markdown (default: text)"},
    {CLI_OUTPUT, 'o', "output", "FILE", "write to FILE instead of standard output"},
    {CLI_HELP, 'h', "help", NULL, "print this text"},
    {.id = CLI_END},
};

static const struct {
  const char *name;
  void (*write)(const struct sc_diff *diff, struct sc_buf *buf);
} formats[] = {{"text", sc_diff_write_text}, {"json", sc_diff_write_json}, {"markdown", sc_diff_write_markdown}};

struct diff_command {
  struct settings settings;
  size_t format;
  bool fail_on_increase;
  struct sc_findings *sides[2];
};

static bool take_option(void *context, enum cli_option_id id, const char *argument, struct sc_error *err)
{
  struct diff_command *command = context;
  if (id == CLI_FAIL_ON_INCREASE) {
    command->fail_on_increase = true;
    return true;
  }
  if (id != CLI_FORMAT)
    return settings_option(&command->settings, id, argument, err);
  for (size_t i = 0; i < SC_COUNTOF(formats); ++i) {
    if (strcmp(formats[i].name, argument) == 0) {
      command->format = i;
      return true;
    }
  }
  sc_error_set(err, SC_ERR_USAGE, "'%.80s' is none of: text, json, markdown", argument);
  return false;
}

static enum sc_status load_side(struct diff_command *command, char *operand, size_t side, struct sc_error *err)
{
  struct session_outcome outcome = {0};
  command->sides[side] = sc_findings_new();
  enum sc_status status = command->sides[side] ? SC_OK : sc_error_no_memory(err);
  if (status == SC_OK)
    status = load_operands(&operand, 1, &command->settings.analysis, command->sides[side], &outcome, err);
  if (status == SC_OK && command->sides[side]->process_count)
    status = symbols_look_up(command->sides[side], err); /* sites are told apart by their functions */
  return status;
}

static int conclude(const struct diff_command *command, const struct sc_diff *diff)
{
  const char *why;
  if (!command->fail_on_increase)
    return CLI_OK;
  switch (sc_diff_increase(diff, &why)) {
  case SC_GATE_PASSED: return CLI_OK;
  case SC_GATE_FAILED: cli_say("there are more syncs than before"); return CLI_FAILED;
  default: cli_say("it cannot be said that there are no more syncs than before: %s", why); return CLI_UNMEASURED;
  }
}

static int compare(struct diff_command *command, char **operands)
{
  struct sc_error err = {0};
  struct sc_diff *diff = NULL;
  struct sc_buf text = {0};
  int result;
  enum sc_status status = output_check(&command->settings, &err);
  for (size_t side = 0; side < 2 && status == SC_OK; ++side)
    status = load_side(command, operands[side], side, &err);
  if (status == SC_OK)
    status = sc_diff_make(command->sides[0], command->sides[1], &diff, &err);
  if (status == SC_OK) {
    formats[command->format].write(diff, &text);
    status = output_text(&command->settings, &text, command->settings.output, &err);
  }
  result = status == SC_OK ? conclude(command, diff) : cli_fail(&err);
  sc_buf_free(&text);
  sc_diff_free(diff);
  return result;
}

static int run(int argc, char **argv)
{
  struct diff_command command = {.format = 0};
  int first, result;
  bool done;
  settings_init(&command.settings);
  result = cli_parse(&cli_diff, argc, argv, take_option, &command, &first, &done);
  if (!done && (argc - first != 2 || !argv[first][0] || !argv[first + 1][0]))
    result = cli_usage(&cli_diff, "give two reports, traces or folders: what was before, and what is after");
  else if (!done)
    result = compare(&command, argv + first);
  sc_findings_free(command.sides[0]);
  sc_findings_free(command.sides[1]);
  settings_free(&command.settings);
  return result;
}

const struct cli_command cli_diff = {
    .name = "diff",
    .operands = "BEFORE AFTER",
    .summary = "Compare two reports or traces: by range and site, or two hosts.",
    .description = "Each side is a JSON report, a trace (ours, Nsight Systems, PyTorch profiler) or a folder.\n"
                   "Of traced programs it tells which syncs appeared and which went; of two reports of the\n"
                   "instrumented layers whether the counts are equal, and how the hosts differ.",
    .options = options,
    .run = run,
};
