/* SPDX-License-Identifier: Apache-2.0
 * What the commands that measure have in common: main and ruler. */
#ifndef SC_CLI_BENCH_H
#define SC_CLI_BENCH_H

#include "cli/device.h"
#include "cli/folder.h"
#include "cli/passes.h"
#include "cli/place.h"
#include "cli/session.h"
#include "cli/settings.h"

struct bench {
  struct settings settings;
  struct place place;
  struct device device;
  struct folder folder;
  struct sc_findings *findings;
  struct session_outcome outcome;
  bool no_silent_simulation; /* without a GPU the simulated device is an error unless it was asked for */
};

/* Parses the options, lets `work` measure and fill the findings, prints the report, tidies up. Returns the exit status.
 * A signal that came meanwhile ends the process after the tidying. */
int bench_command(const struct cli_command *command, int argc, char **argv,
                  enum sc_status (*work)(struct bench *bench, struct sc_error *err));

/* The device and the grid that will be run on it, from the options and the configuration. */
enum sc_status bench_plan(struct bench *bench, struct plan *plan, struct sc_error *err) SC_NODISCARD;
/* From here to the end, signals wait until the folder is tidied up. */
enum sc_status bench_open_folder(struct bench *bench, struct sc_error *err) SC_NODISCARD;

/* Adds host, device and conditions to notes and writes the session file. kind: the pass whose document names the
 * device. */
enum sc_status bench_write_session(const struct passes *passes, enum passes_kind kind, struct sc_findings *notes,
                                   struct sc_error *err) SC_NODISCARD;

/* Prints what could not be measured and returns the exit status for it. */
int bench_verdict(const struct sc_findings *findings, const struct session_outcome *outcome);

#endif
