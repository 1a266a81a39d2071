/* SPDX-License-Identifier: Apache-2.0
 * Expectations over the runs of the instrumented layers. */
#include "gate/judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

char *run_name(const struct sc_run *run)
{
  return sc_asprintf("%s, E = %" PRIu64 ", %" PRIu64 " token%s", run->variant, run->experts, run->tokens,
                     run->tokens == 1 ? "" : "s");
}

/* Of one layer, forward or run, as the measure has it. */
static double divisor(const struct judging *j, const struct sc_run *run)
{
  if (j->e->measure == SC_GATE_PER_LAYER)
    return (double)run->forwards * (double)run->layers;
  return j->e->measure == SC_GATE_PER_FORWARD ? (double)run->forwards : 1;
}

static struct value value_of(const struct judging *j, const struct sc_run *run)
{
  const uint64_t syncs = j->e->cls >= 0 ? run->counts.by_class[j->e->cls] : run->counts.syncs;
  switch (j->e->measure) {
  case SC_GATE_PER_LAYER: return (struct value){.low = (double)run->per_layer_min, .high = (double)run->per_layer_max};
  case SC_GATE_PER_FORWARD: {
    double value = (double)syncs / (double)run->forwards;
    return (struct value){.low = value, .high = value};
  }
  case SC_GATE_FLOOR: return (struct value){.low = run->floor_mean_us, .high = run->floor_mean_us};
  case SC_GATE_POLL_WAITS:
    return (struct value){.low = (double)run->counts.poll_waits, .high = (double)run->counts.poll_waits};
  default: return (struct value){.low = (double)syncs, .high = (double)syncs};
  }
}

/* A run's least and most layer are both exact: either may be wrong. */
static enum outcome judge_span(const struct judging *j, struct value span)
{
  enum outcome low = judge_value(j, (struct value){.low = span.low, .high = span.low});
  enum outcome high = judge_value(j, (struct value){.low = span.high, .high = span.high});
  return low == OUTCOME_NOT || high == OUTCOME_NOT ? OUTCOME_NOT : low;
}

/* More than it may have is more, whatever the calls were that could not be judged. */
static enum outcome outcome_of(struct judging *j, const struct sc_run *run, struct value value)
{
  enum outcome outcome;
  if (j->e->expected)
    outcome = isnan(run->expected_per_layer) ? OUTCOME_UNSURE : run->exact ? OUTCOME_AS_EXPECTED : OUTCOME_NOT;
  else
    outcome = judge_span(j, value);
  const bool too_many = !j->e->expected && !isnan(j->e->high) && value.high > j->e->high;
  if (run->counts.uncertain && !too_many) {
    judge_unsure(j, "%s, E = %" PRIu64 ": %" PRIu64 " calls could not be judged (memory of unknown kind)", run->variant,
                 run->experts, run->counts.uncertain);
    return OUTCOME_UNSURE;
  }
  if (!run->verified && outcome == OUTCOME_AS_EXPECTED) {
    judge_unsure(j, "%s, E = %" PRIu64 ": NOT VERIFIED against the CPU reference (%s)", run->variant, run->experts,
                 run->not_verified ? run->not_verified : "no reason given");
    return OUTCOME_UNSURE;
  }
  if (outcome == OUTCOME_UNSURE)
    judge_unsure(j, "%s, E = %" PRIu64 ": it is not known what it must have", run->variant, run->experts);
  return outcome;
}

static void name_op(struct judging *j, const struct sc_run *run, const char *name, uint64_t count)
{
  struct sc_gate_extra *extra = count ? judge_extra(j, &(struct sc_gate_extra){.op = (char *)name}) : NULL;
  if (extra)
    judge_extra_add(j, extra, NULL, (double)count / divisor(j, run), count);
}

static void name_ops(struct judging *j, const struct sc_run *run)
{
  uint64_t named = 0;
  for (size_t i = 0; i < run->by_op_count && !j->failed; ++i) {
    name_op(j, run, run->by_op[i].name, run->by_op[i].count);
    named += run->by_op[i].count;
  }
  if (run->counts.syncs > named)
    name_op(j, run, "(outside every op)", run->counts.syncs - named);
}

static void judge_run(struct judging *j, const struct sc_run *run)
{
  if (!run->counted) {
    judge_unsure(j, "%s, E = %" PRIu64 ": its syncs could not be counted", run->variant, run->experts);
    return;
  }
  if (run->forwards == 0 || run->layers == 0)
    return;
  j->submissions += run->counts.submissions;
  struct value value = value_of(j, run);
  if (isnan(value.low)) {
    judge_unsure(j, j->findings->simulated ? "the simulated device has no times: a floor cannot be measured on it"
                                           : "no round trip was measured, so there is no floor");
    return;
  }
  enum outcome outcome = outcome_of(j, run, value);
  judge_count(j, value, outcome, 1);
  ++j->result->places;
  if (outcome != OUTCOME_NOT)
    return;
  judge_failure(j, run_name(run), value, 0);
  if (!sc_gate_measure_is_time(j->e->measure) && j->e->measure != SC_GATE_POLL_WAITS)
    name_ops(j, run);
}

void judge_runs(struct judging *j)
{
  for (size_t i = 0; i < j->findings->run_count && !j->failed; ++i) {
    const struct sc_run *run = &j->findings->runs[i];
    if (!j->e->variant || strcmp(j->e->variant, run->variant) == 0)
      judge_run(j, run);
  }
  if (j->result->compared == 0)
    judge_unsure(j, "no run of %s was measured", j->e->variant ? j->e->variant : "an instrumented layer");
}
