/* SPDX-License-Identifier: Apache-2.0
 * The MoE runs of the main command: what was expected, what the range tree of a traced probe says, and the laws. */
#include "analysis/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is expected ------------------------------------------------------------------------ */

static bool is_variant(const struct sc_run *run, const char *name)
{
  return run->variant && strcmp(run->variant, name) == 0;
}

/* Syncs of one layer. False: there is no expectation. */
static bool expected_of_layer(const struct sc_run *run, uint64_t layer, uint64_t *out)
{
  if (is_variant(run, "masked")) {
    if (!run->hit)
      return false;
    *out = run->experts + 2 * run->hit[layer];
    return true;
  }
  if (is_variant(run, "sorted")) {
    *out = 1;
    return true;
  }
  if (is_variant(run, "fused-nvfp4") || is_variant(run, "dense")) {
    *out = 0;
    return true;
  }
  return false;
}

void sc_runs_expect(struct sc_run *run)
{
  run->bound_per_layer = is_variant(run, "masked") ? 3.0 * (double)run->experts : NAN;
  run->expected_per_layer = NAN;
  double sum = 0;
  for (uint64_t layer = 0; layer < run->layers; ++layer) {
    uint64_t expected;
    if (!expected_of_layer(run, layer, &expected))
      return;
    sum += (double)expected;
  }
  if (run->layers)
    run->expected_per_layer = sum / (double)run->layers;
}

size_t sc_runs_range_paths(const struct sc_run *runs, size_t count)
{
  size_t paths = 0;
  for (size_t i = 0; i < count; ++i) {
    /* run, forward, and in each layer: itself, three ops for each expert, and a few ops of its own */
    size_t per_layer = 1 + 4 * (size_t)runs[i].experts + 8;
    paths += 2 + (size_t)runs[i].layers * per_layer;
  }
  return paths > SC_RANGES_DEFAULT ? paths : SC_RANGES_DEFAULT;
}

/* ---- the count ------------------------------------------------------------------------------- */

struct span {
  const struct sc_range_findings *first; /* a range; the ranges below it follow it, up to end */
  const struct sc_range_findings *end;
};

static struct span span_of(const struct sc_process *process, const struct sc_range_findings *range)
{
  struct span span = {.first = range, .end = range + 1};
  while (span.end < process->ranges + process->range_count && span.end->depth > range->depth)
    ++span.end;
  return span;
}

static bool is_ours(const struct sc_range_findings *range, const char *name)
{
  return strcmp(range->domain, "synccount") == 0 && strcmp(range->name, name) == 0;
}

static bool has_level(const struct sc_range_findings *range, const char *level)
{
  return range->level && strcmp(range->level, level) == 0;
}

static const struct sc_range_findings *find_run(const struct sc_process *process, const char *name)
{
  for (size_t i = 0; i < process->range_count; ++i) {
    if (has_level(&process->ranges[i], "run") && is_ours(&process->ranges[i], name))
      return &process->ranges[i];
  }
  return NULL;
}

static const struct sc_range_findings *find_child(struct span span, const char *name)
{
  for (const struct sc_range_findings *range = span.first + 1; range < span.end; ++range) {
    if (range->depth == span.first->depth + 1 && is_ours(range, name))
      return range;
  }
  return NULL;
}

/* "expert:12" -> 12. False for anything else, and for an expert the run does not have. */
static bool expert_index(const struct sc_run *run, const struct sc_range_findings *range, uint64_t *index)
{
  static const char prefix[] = "expert:";
  return has_level(range, "expert") && strncmp(range->name, prefix, sizeof prefix - 1) == 0 &&
         sc_parse_u64(range->name + sizeof prefix - 1, index) && *index < run->experts;
}

static struct sc_named_count *op_slot(struct sc_run *run, size_t *capacity, const char *name)
{
  for (size_t i = 0; i < run->by_op_count; ++i) {
    if (strcmp(run->by_op[i].name, name) == 0)
      return &run->by_op[i];
  }
  struct sc_named_count *slot = sc_array_push(&run->by_op, &run->by_op_count, capacity, sizeof *slot);
  if (!slot)
    return NULL;
  slot->name = sc_strdup(name);
  return slot->name ? slot : NULL;
}

static bool add_ops(struct sc_run *run, struct span forward)
{
  static const char *const usual[] = {"any", "nonzero", "mask-index", "bounds"}; /* in the order they happen */
  size_t capacity = 0;
  for (size_t i = 0; i < SC_COUNTOF(usual); ++i) {
    for (const struct sc_range_findings *range = forward.first; range < forward.end; ++range) {
      if (has_level(range, "op") && strcmp(range->name, usual[i]) == 0) {
        if (!op_slot(run, &capacity, usual[i]))
          return false;
        break;
      }
    }
  }
  for (const struct sc_range_findings *range = forward.first; range < forward.end; ++range) {
    if (!has_level(range, "op"))
      continue;
    struct sc_named_count *slot = op_slot(run, &capacity, range->name);
    if (!slot)
      return false;
    slot->count += range->total.syncs;
  }
  return true;
}

static size_t op_index(const struct sc_run *run, const char *name)
{
  size_t i = 0;
  while (i < run->by_op_count && strcmp(run->by_op[i].name, name) != 0)
    ++i;
  return i;
}

static bool add_experts(struct sc_run *run, struct span forward)
{
  run->by_expert = sc_calloc_array((size_t)run->experts, sizeof *run->by_expert);
  run->by_expert_op = sc_calloc_array((size_t)run->experts, sizeof *run->by_expert_op);
  if (!run->by_expert || !run->by_expert_op)
    return false;
  for (uint64_t i = 0; i < run->experts; ++i) {
    run->by_expert_op[i] = sc_calloc_array(run->by_op_count ? run->by_op_count : 1, sizeof **run->by_expert_op);
    if (!run->by_expert_op[i])
      return false;
  }
  uint64_t inside = 0, expert = 0, expert_depth = UINT64_MAX; /* depth of the expert range we are below */
  for (const struct sc_range_findings *range = forward.first; range < forward.end; ++range) {
    uint64_t index;
    if (range->depth <= expert_depth)
      expert_depth = UINT64_MAX;
    if (expert_index(run, range, &index)) {
      run->by_expert[index] += range->total.syncs;
      inside += range->total.syncs;
      expert = index;
      expert_depth = range->depth;
    } else if (expert_depth != UINT64_MAX && has_level(range, "op")) {
      run->by_expert_op[expert][op_index(run, range->name)] += range->total.syncs;
    }
  }
  run->outside_experts = run->counts.syncs - inside;
  return true;
}

/* The layers' own part of it. The ranges of a layer follow it. */
static bool add_layers(struct sc_run *run, struct span forward, const struct sc_process *process)
{
  run->by_layer_expert = sc_calloc_array((size_t)run->layers, sizeof *run->by_layer_expert);
  run->by_layer_outside = sc_calloc_array((size_t)run->layers, sizeof *run->by_layer_outside);
  if (!run->by_layer_expert || !run->by_layer_outside)
    return false;
  for (uint64_t layer = 0; layer < run->layers; ++layer) {
    uint64_t *row = run->by_layer_expert[layer] = sc_calloc_array((size_t)run->experts, sizeof *row);
    char name[32];
    snprintf(name, sizeof name, "layer:%" PRIu64, layer);
    const struct sc_range_findings *range = find_child(forward, name);
    if (!row)
      return false;
    if (!range)
      continue;
    struct span span = span_of(process, range);
    run->by_layer_outside[layer] = range->total.syncs;
    for (const struct sc_range_findings *below = span.first; below < span.end; ++below) {
      uint64_t index;
      if (!expert_index(run, below, &index))
        continue;
      row[index] += below->total.syncs;
      run->by_layer_outside[layer] -= below->total.syncs;
    }
  }
  return true;
}

/* Every occurrence of every layer had its expected count exactly when each layer's smallest and largest are that count.
 */
static enum sc_status count_layers(struct sc_run *run, struct span forward, struct sc_error *err)
{
  uint64_t in_layers = 0, expected_total = 0;
  bool exact = run->counts.uncertain == 0;
  for (uint64_t layer = 0; layer < run->layers; ++layer) {
    char name[32];
    snprintf(name, sizeof name, "layer:%" PRIu64, layer);
    const struct sc_range_findings *range = find_child(forward, name);
    if (!range || range->occurrences != run->forwards || range->unfinished)
      return sc_error_set(err, SC_ERR_MEASURE,
                          "\"%s\" has %s %" PRIu64 " times in the trace instead of %" PRIu64
                          ": the probe did not finish, or its ranges were lost",
                          forward.first->path, name, range ? range->occurrences - range->unfinished : 0, run->forwards);
    if (layer == 0 || range->min < run->per_layer_min)
      run->per_layer_min = range->min;
    if (range->max > run->per_layer_max)
      run->per_layer_max = range->max;
    in_layers += range->total.syncs;
    uint64_t expected;
    if (expected_of_layer(run, layer, &expected)) {
      exact &= range->min == expected && range->max == expected;
      expected_total += expected * run->forwards;
    } else {
      exact = false;
    }
  }
  run->per_layer_mean = run->layers ? (double)in_layers / ((double)run->layers * (double)run->forwards) : NAN;
  run->exact = exact && run->counts.syncs == expected_total; /* a sync between the layers is one too many */
  return SC_OK;
}

static void forget_count(struct sc_run *run)
{
  sc_run_free_counts(run);
  run->by_layer_expert = NULL;
  run->by_layer_outside = NULL;
  run->by_op = NULL;
  run->by_op_count = 0;
  run->by_expert = NULL;
  run->by_expert_op = NULL;
  run->outside_experts = run->per_layer_min = run->per_layer_max = 0;
  run->counts = (struct sc_counts){0};
  run->per_forward = run->per_layer_mean = NAN;
  run->counted = run->exact = false;
}

static enum sc_status find_forward(const struct sc_run *run, const struct sc_process *process, struct span *out,
                                   struct sc_error *err)
{
  char name[128];
  snprintf(name, sizeof name, "run:%s:E=%" PRIu64 ":T=%" PRIu64, run->variant ? run->variant : "?", run->experts,
           run->tokens);
  const struct sc_range_findings *range = find_run(process, name);
  if (!range)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "the trace has no range \"%s\": was the probe stopped before it came to this run, or were its "
                        "NVTX ranges not recorded?",
                        name);
  struct span span = span_of(process, range);
  for (const struct sc_range_findings *below = span.first; below < span.end; ++below) {
    if (strcmp(below->name, SC_RANGES_OTHER) == 0 && *below->domain == '\0')
      return sc_error_set(
          err, SC_ERR_MEASURE,
          "range \"%s\" holds more range paths than were kept apart: read the trace with a higher limit of ranges",
          name);
  }
  const struct sc_range_findings *forward = find_child(span, "forward");
  if (!forward || forward->occurrences == forward->unfinished)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "range \"%s\" has no finished \"forward\": the probe was stopped before it", name);
  if (forward->unfinished || (run->forwards && forward->occurrences != run->forwards))
    return sc_error_set(
        err, SC_ERR_MEASURE,
        "range \"%s\" has %" PRIu64 " finished forwards of %" PRIu64 ": the probe was stopped, or records were lost",
        name, forward->occurrences - forward->unfinished, run->forwards ? run->forwards : forward->occurrences);
  if (forward->total.submissions == 0)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "range \"%s\" holds no work for the device: its CUDA calls were not recorded", name);
  *out = span_of(process, forward);
  return SC_OK;
}

enum sc_status sc_runs_count(struct sc_run *run, const struct sc_process *process, struct sc_error *err)
{
  struct span forward = {0};
  forget_count(run);
  if (process->lost_records || process->lost_chunks)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "%" PRIu64 " records and %" PRIu64
                        " chunks of the probe's trace are lost: a count from the rest would be too low. "
                        "Free some disk space and run again",
                        process->lost_records, process->lost_chunks);
  enum sc_status status = find_forward(run, process, &forward, err);
  if (status != SC_OK)
    return status;
  run->forwards = forward.first->occurrences;
  run->counts = forward.first->total;
  run->per_forward = (double)run->counts.syncs / (double)run->forwards;
  status = count_layers(run, forward, err);
  if (status == SC_OK && !(add_ops(run, forward) && add_experts(run, forward) && add_layers(run, forward, process)))
    status = sc_error_set(err, SC_ERR_NOMEM, "out of memory while the syncs of a run were added up");
  if (status != SC_OK) {
    forget_count(run);
    return status;
  }
  sc_runs_expect(run);
  run->counted = true;
  return SC_OK;
}

/* ---- laws ------------------------------------------------------------------------------------- */

struct points { /* the counted runs of one variant */
  const struct sc_run **runs;
  size_t count, capacity;
};

static size_t distinct_experts(const struct points *points)
{
  size_t distinct = 0;
  for (size_t i = 0; i < points->count; ++i) {
    size_t j = 0;
    while (j < i && points->runs[j]->experts != points->runs[i]->experts)
      ++j;
    distinct += j == i;
  }
  return distinct;
}

static bool all_hit(const struct sc_run *run)
{
  for (uint64_t layer = 0; run->hit && layer < run->layers; ++layer) {
    if (run->hit[layer] < run->experts)
      return false;
  }
  return true;
}

/* slope and intercept are whole numbers that give every point's count of every layer exactly. */
static bool fits(const struct points *points, int64_t slope, int64_t intercept)
{
  for (size_t i = 0; i < points->count; ++i) {
    const struct sc_run *run = points->runs[i];
    int64_t value = slope * (int64_t)run->experts + intercept;
    if (value < 0 || run->per_layer_min != (uint64_t)value || run->per_layer_max != (uint64_t)value)
      return false;
  }
  return true;
}

static bool find_law(const struct points *points, int64_t *slope, int64_t *intercept)
{
  const struct sc_run *first = points->runs[0], *second = NULL;
  for (size_t i = 1; i < points->count && !second; ++i) {
    if (points->runs[i]->experts != first->experts)
      second = points->runs[i];
  }
  if (!second)
    return false;
  int64_t step = (int64_t)second->experts - (int64_t)first->experts;
  int64_t rise = (int64_t)second->per_layer_min - (int64_t)first->per_layer_min;
  *slope = rise / step; /* if that has a remainder, the second point does not fit */
  *intercept = (int64_t)first->per_layer_min - *slope * (int64_t)first->experts;
  return fits(points, *slope, *intercept);
}

static char *why_no_law(const struct points *points)
{
  static const char *const words[] = {"no", "one", "two"};
  size_t distinct = distinct_experts(points);
  if (distinct < 3)
    return sc_asprintf("%s expert count%s too few for a law", words[distinct], distinct == 1 ? " is" : "s are");
  bool several_tokens = false;
  for (size_t i = 1; i < points->count; ++i)
    several_tokens |= points->runs[i]->tokens != points->runs[0]->tokens;
  for (size_t i = 0; i < points->count; ++i) {
    const struct sc_run *run = points->runs[i];
    if (!is_variant(run, "masked") || all_hit(run))
      continue;
    if (several_tokens)
      return sc_asprintf("no single law: hit < E at E = %" PRIu64 ", T = %" PRIu64, run->experts, run->tokens);
    return sc_asprintf("no single law: hit < E at E = %" PRIu64, run->experts);
  }
  for (size_t i = 0; i < points->count; ++i) {
    const struct sc_run *run = points->runs[i];
    if (run->per_layer_min != run->per_layer_max)
      return sc_asprintf("no single law: layers differ at E = %" PRIu64 " (%" PRIu64 " to %" PRIu64 ")", run->experts,
                         run->per_layer_min, run->per_layer_max);
  }
  return sc_strdup("no single law: the counts are on no straight line of whole numbers");
}

static bool add_law(struct sc_findings *findings, const struct points *points)
{
  int64_t slope = 0, intercept = 0;
  struct sc_law *law = sc_array_push(&findings->laws, &findings->law_count, &findings->law_cap, sizeof *law);
  if (!law)
    return false;
  law->slope = law->intercept = NAN;
  law->variant = sc_strdup(points->runs[0]->variant);
  law->stated = distinct_experts(points) >= 3 && find_law(points, &slope, &intercept);
  if (law->stated) {
    law->slope = (double)slope;
    law->intercept = (double)intercept;
    law->text = sc_asprintf("%.2f E %c %" PRIu64, law->slope, intercept < 0 ? '-' : '+',
                            (uint64_t)(intercept < 0 ? -intercept : intercept));
  } else {
    law->text = why_no_law(points);
  }
  return law->variant && law->text;
}

static bool seen_before(const struct sc_findings *findings, size_t index)
{
  for (size_t i = 0; i < index; ++i) {
    if (findings->runs[i].counted && strcmp(findings->runs[i].variant, findings->runs[index].variant) == 0)
      return true;
  }
  return false;
}

bool sc_runs_laws(struct sc_findings *findings)
{
  for (size_t i = 0; i < findings->law_count; ++i) {
    free(findings->laws[i].variant);
    free(findings->laws[i].text);
  }
  findings->law_count = 0;
  bool ok = true;
  for (size_t i = 0; i < findings->run_count && ok; ++i) {
    if (!findings->runs[i].counted || seen_before(findings, i))
      continue;
    struct points points = {0};
    for (size_t j = i; j < findings->run_count && ok; ++j) {
      if (!findings->runs[j].counted || strcmp(findings->runs[j].variant, findings->runs[i].variant) != 0)
        continue;
      const struct sc_run **slot = sc_array_push(&points.runs, &points.count, &points.capacity, sizeof *slot);
      ok = slot != NULL;
      if (ok)
        *slot = &findings->runs[j];
    }
    ok = ok && add_law(findings, &points);
    free(points.runs);
  }
  return ok;
}
