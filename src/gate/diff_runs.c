/* SPDX-License-Identifier: Apache-2.0
 * Two reports of the main command: are the counts equal, and what differs between the hosts. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/diff.h"
#include "gate/judge.h"

static bool same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* Of the same layer, so that its counts must be equal. */
static bool same_run(const struct sc_run *a, const struct sc_run *b)
{
  return same(a->variant, b->variant) && a->experts == b->experts && a->tokens == b->tokens && a->top_k == b->top_k &&
         a->hidden == b->hidden && a->intermediate == b->intermediate && a->layers == b->layers &&
         same(a->dtype, b->dtype) && same(a->routing, b->routing) && same(a->act_quant, b->act_quant) &&
         same(a->nvfp4_path, b->nvfp4_path);
}

static const struct sc_run *find_run(const struct sc_findings *f, const struct sc_run *run)
{
  for (size_t i = 0; i < f->run_count; ++i) {
    if (same_run(&f->runs[i], run))
      return &f->runs[i];
  }
  return NULL;
}

static void doubt_run(struct sc_diff *diff, const struct sc_run *run)
{
  if (!run->counted)
    diff_doubt(diff, "%s, E = %" PRIu64 " was not counted", run->variant, run->experts);
  else if (run->counts.uncertain)
    diff_doubt(diff, "%s, E = %" PRIu64 ": %" PRIu64 " calls could not be judged", run->variant, run->experts,
               run->counts.uncertain);
}

static void add_run(struct sc_diff *diff, const struct sc_run *b, const struct sc_run *a)
{
  const struct sc_run *either = b ? b : a;
  const bool b_counted = b && b->counted, a_counted = a && a->counted;
  diff_add(diff, DIFF_RUNS, DIFF_COUNT, run_name(either), "syncs a forward", b_counted ? b->per_forward : NAN,
           a_counted ? a->per_forward : NAN);
  diff_add(diff, DIFF_RUNS, DIFF_COUNT, run_name(either), "syncs a layer, most",
           b_counted ? (double)b->per_layer_max : NAN, a_counted ? (double)a->per_layer_max : NAN);
  const double b_time = b && !sc_findings_simulated(diff->before) ? b->forward_p50_us : NAN,
               a_time = a && !sc_findings_simulated(diff->after) ? a->forward_p50_us : NAN;
  if (!isnan(b_time) || !isnan(a_time))
    diff_add(diff, DIFF_RUNS, DIFF_TIME, run_name(either), "forward p50", b_time, a_time);
  const double b_floor = b ? b->floor_mean_us : NAN, a_floor = a ? a->floor_mean_us : NAN;
  if (!isnan(b_floor) || !isnan(a_floor))
    diff_add(diff, DIFF_RUNS, DIFF_TIME, run_name(either), "floor", b_floor, a_floor);
  if (!b || !a)
    return;
  doubt_run(diff, b);
  doubt_run(diff, a);
  diff->more |= b_counted && a_counted && (a->per_forward > b->per_forward || a->per_layer_max > b->per_layer_max);
}

static void compare_ruler(struct sc_diff *diff, const struct sc_ruler_row *b, const struct sc_ruler_row *a)
{
  const char *method = b ? b->method : a->method;
  diff_add(diff, DIFF_RULER, DIFF_TIME, sc_strdup(method), "mean", b ? b->mean_us : NAN, a ? a->mean_us : NAN);
  diff_add(diff, DIFF_RULER, DIFF_TIME, sc_strdup(method), "p50", b ? b->p50_us : NAN, a ? a->p50_us : NAN);
}

static const struct sc_marginal *find_marginal(const struct sc_findings *f, const struct sc_marginal *m)
{
  for (size_t i = 0; i < f->marginal_count; ++i) {
    if (f->marginal[i].experts == m->experts && f->marginal[i].tokens == m->tokens)
      return &f->marginal[i];
  }
  return NULL;
}

static void add_marginal(struct sc_diff *diff, const struct sc_marginal *b, const struct sc_marginal *a)
{
  const struct sc_marginal *either = b ? b : a;
  diff_add(diff, DIFF_MARGINAL, DIFF_TIME,
           sc_asprintf("E = %" PRIu64 ", %" PRIu64 " tokens", either->experts, either->tokens), "one more sync",
           b ? b->mean_us : NAN, a ? a->mean_us : NAN);
}

void diff_runs(struct sc_diff *diff)
{
  const struct sc_findings *b = diff->before, *a = diff->after;
  size_t common = 0;
  for (size_t i = 0; i < b->run_count && !diff->failed; ++i) {
    const struct sc_run *other = find_run(a, &b->runs[i]);
    common += other != NULL;
    add_run(diff, &b->runs[i], other);
  }
  for (size_t i = 0; i < a->run_count && !diff->failed; ++i) {
    if (!find_run(b, &a->runs[i]))
      add_run(diff, NULL, &a->runs[i]);
  }
  if (common == 0)
    diff_doubt(diff, "no run is of the same layer on both sides");
  const bool times = !sc_findings_simulated(b) && !sc_findings_simulated(a);
  for (size_t i = 0; i < b->ruler_count && times; ++i)
    compare_ruler(diff, &b->ruler[i], sc_findings_ruler(a, b->ruler[i].method));
  for (size_t i = 0; i < a->ruler_count && times; ++i) {
    if (!sc_findings_ruler(b, a->ruler[i].method))
      compare_ruler(diff, NULL, &a->ruler[i]);
  }
  for (size_t i = 0; i < b->marginal_count && times; ++i)
    add_marginal(diff, &b->marginal[i], find_marginal(a, &b->marginal[i]));
  for (size_t i = 0; i < a->marginal_count && times; ++i) {
    if (!find_marginal(b, &a->marginal[i]))
      add_marginal(diff, NULL, &a->marginal[i]);
  }
}
