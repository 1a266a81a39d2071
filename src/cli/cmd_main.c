/* SPDX-License-Identifier: Apache-2.0
 * synccount without a command word: measure the instrumented MoE layers on this host. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/child.h"
#include "cli/passes.h"
#include "cli/session.h"
#include "cli/settings.h"

static const struct cli_option options[] = {
    SETTINGS_GRID_OPTIONS("all three"),
    SETTINGS_DEVICE_OPTIONS("the GPU, or the\nsimulated device if this machine has no NVIDIA device at all"),
    {CLI_ASSUME_ROUND_TRIP, 0, "assume-round-trip", "LIST", "also show the floor for these round trips: 26us,116us"},
    {CLI_PER_EXPERT, 0, "per-expert", NULL, "also show the syncs by expert and op"},
    {CLI_KEEP_TRACES, 0, "keep-traces", "DIR",
     "keep the traces and the probe's documents in DIR, for\n'synccount report DIR'"},
    SETTINGS_REPORT_OPTIONS(SETTINGS_LAYERS_FORMATS_HELP),
    {CLI_VERSION, 'V', "version", NULL, "print the version"},
    {.id = CLI_END},
};

static bool notes_of_model(const struct plan *plan, struct sc_findings *facts)
{
  const struct sc_config_model *model = plan->model;
  bool ok = true;
  if (!model)
    return true;
  if (model->router.scoring != SC_CONFIG_SOFTMAX || model->router.groups || model->router.correction_bias ||
      model->router.scale.set)
    ok = sc_findings_warn(facts,
                          "%s routes by %s%s%s%s; this layer routes by softmax and plain top-k. Counts depend on which "
                          "experts are hit, not on the scores.",
                          model->name, model->router.scoring == SC_CONFIG_SIGMOID ? "sigmoid" : "softmax",
                          model->router.groups ? " in groups" : "",
                          model->router.correction_bias ? " with a correction bias" : "",
                          model->router.scale.set ? " and scales the result" : "");
  if (model->biases)
    ok = ok && sc_findings_warn(facts, "%s has biases in its experts; %s.", model->name,
                                plan_has_variant(plan, SETTINGS_FUSED)
                                    ? "fused-nvfp4 has them too, masked and sorted run without them"
                                    : "this layer runs without them");
  if (model->shared_experts.count)
    ok = ok && sc_findings_warn(facts, "%s has %" PRIu64 " shared expert%s; this layer runs the routed ones alone.",
                                model->name, model->shared_experts.count, model->shared_experts.count == 1 ? "" : "s");
  return ok;
}

/* Everything that runs, in order; what it leaves is in the folder. */
static enum sc_status measure(const struct passes *passes, struct sc_error *err)
{
  enum sc_status status = SC_OK;
  struct sc_findings *notes = sc_findings_new();
  if (!notes || !notes_of_model(passes->plan, notes))
    status = sc_error_no_memory(err);
  if (status == SC_OK && !passes->device->simulated) /* the simulated device has counts, but no times */
    status = passes_run(passes, PASS_TIMES, err);
  if (status == SC_OK)
    status = passes_run(passes, PASS_COUNTS, err);
  if (status == SC_OK)
    status = bench_write_session(passes, PASS_COUNTS, notes, err);
  sc_findings_free(notes);
  return status;
}

static enum sc_status work(struct bench *bench, struct sc_error *err)
{
  struct plan plan;
  const struct passes passes = {&bench->settings, &plan, &bench->place, &bench->device, &bench->folder};
  enum sc_status status = bench_plan(bench, &plan, err);
  if (status == SC_OK)
    status = bench_open_folder(bench, err);
  if (status == SC_OK)
    status = measure(&passes, err);
  if (status == SC_OK)
    status = session_load(bench->folder.path, NULL, bench->findings, &bench->outcome, err);
  return status;
}

static int run(int argc, char **argv) { return bench_command(&cli_main, argc, argv, work); }

const struct cli_command cli_main = {
    .name = NULL,
    .summary = "Shows where a Mixture-of-Experts layer makes this host wait for the GPU, how\n"
               "often, and what that costs here.",
    .description = "It runs an instrumented MoE layer in three variants (masked loop, sorted\n"
                   "dispatch, fused NVFP4), untraced for times and traced for counts, measures this\n"
                   "host's round trip, and reports the syncs per layer, their law over the experts,\n"
                   "and the floor of one forward.",
    .options = options,
    .run = run,
};
