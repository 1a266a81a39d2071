/* SPDX-License-Identifier: Apache-2.0
 * synccount ruler: the round trip and the other ways to wait, alone. */
#include <stdio.h>

#include "cli/bench.h"

static const struct cli_option options[] = {
    {CLI_DEVICE, 0, "device", "DEVICE", "auto, cuda, cuda:N or sim (default: auto: the first GPU, or an error)"},
    SETTINGS_SIM_ROUND_TRIP_OPTION,
    {CLI_KEEP_TRACES, 0, "keep-traces", "DIR", "keep the probe's document in DIR, for 'synccount report DIR'"},
    SETTINGS_REPORT_OPTIONS(SETTINGS_LAYERS_FORMATS_HELP),
    {.id = CLI_END},
};

static enum sc_status measure(const struct passes *passes, struct sc_error *err)
{
  struct sc_findings *notes = sc_findings_new();
  enum sc_status status = notes ? passes_run(passes, PASS_RULER, err) : sc_error_no_memory(err);
  if (status == SC_OK)
    status = bench_write_session(passes, PASS_RULER, notes, err);
  sc_findings_free(notes);
  return status;
}

static enum sc_status work(struct bench *bench, struct sc_error *err)
{
  const struct passes passes = {&bench->settings, NULL, &bench->place, &bench->device, &bench->folder};
  enum sc_status status = device_choose(&bench->settings, &bench->device, err);
  if (status == SC_OK && bench->device.chosen_for_want)
    status = sc_error_set(
        err, SC_ERR_DEVICE,
        "the ruler measures how long this host waits for its GPU, and this machine has no NVIDIA device. "
        "'synccount' counts on the simulated device; '--device sim' runs the ruler there, without a result");
  if (status == SC_OK)
    status = bench_open_folder(bench, err);
  if (status == SC_OK)
    status = measure(&passes, err);
  if (status == SC_OK)
    status = session_load(bench->folder.path, NULL, bench->findings, &bench->outcome, err);
  return status;
}

static int run(int argc, char **argv) { return bench_command(&cli_ruler, argc, argv, work); }

const struct cli_command cli_ruler = {
    .name = "ruler",
    .summary = "Measure this host's round trip and the other ways a host can wait.",
    .description = "The round trip is a minimal read-back on an idle device: one tiny kernel, a 1-byte\n"
                   "copy to pinned memory, a stream synchronise. All rows are taken untraced.",
    .options = options,
    .run = run,
};
