/* SPDX-License-Identifier: Apache-2.0
 * The runs of a probe: counts, exactness, laws, floor, marginal cost. The probe here is the engine fed by hand. */
#include "feed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 3

/* What a probe is made to do; `wrong_layer` gets one sync too many (or one too few). */
struct plan {
  const char *variant;
  unsigned experts, tokens, forwards;
  unsigned hit[LAYERS];
  int extra;       /* +1: an additional .any() read-back in the last layer; -1: its last one missing */
  bool only_first; /* the wrong layer is wrong in the first forward only */
  bool between;    /* a sync between the layers */
  bool warm_up;
  bool uncertain;
  bool tail_op; /* an op of the layer itself, after its experts */
};

static struct sc_run run_of(const struct plan *plan)
{
  struct sc_run run;
  sc_run_init(&run);
  run.variant = sc_strdup(plan->variant);
  run.experts = plan->experts;
  run.tokens = plan->tokens;
  run.layers = LAYERS;
  run.forwards = plan->forwards;
  run.hit = sc_calloc_array(LAYERS, sizeof *run.hit);
  assert_non_null(run.hit);
  for (unsigned i = 0; i < LAYERS; ++i)
    run.hit[i] = plan->hit[i];
  return run;
}

/* Runs own what findings free; tests that have no findings put theirs into some. */
static struct sc_run *add_run(struct sc_findings *findings, struct sc_run run)
{
  struct sc_run *slot = sc_array_push(&findings->runs, &findings->run_count, &findings->run_cap, sizeof *slot);
  assert_non_null(slot);
  *slot = run;
  return slot;
}

static void op(struct feed *f, const char *name)
{
  feed_push(f, "synccount", name);
  feed_launches(f, 2);
  D2H_PINNED(f, S1);
  SYNC(f, S1);
  feed_pop(f, "synccount");
}

static void masked_layer(struct feed *f, const struct plan *plan, unsigned layer, int extra)
{
  static const char *const experts[] = {"expert:0",  "expert:1",  "expert:2",  "expert:3", "expert:4",  "expert:5",
                                        "expert:6",  "expert:7",  "expert:8",  "expert:9", "expert:10", "expert:11",
                                        "expert:12", "expert:13", "expert:14", "expert:15"};
  for (unsigned e = 0; e < plan->experts; ++e) {
    feed_push(f, "synccount", experts[e]);
    op(f, "any");
    if (e < plan->hit[layer]) {
      op(f, "nonzero");
      if (!(extra < 0 && e == 0))
        op(f, "mask-index");
    }
    if (extra > 0 && e == 0)
      op(f, "any");
    feed_launches(f, 5);
    feed_pop(f, "synccount");
  }
  if (plan->tail_op)
    op(f, "any");
}

static void sorted_layer(struct feed *f, int extra)
{
  feed_push(f, "synccount", "bounds");
  feed_launches(f, 3);
  D2H_PAGEABLE(f, S1);
  SYNC(f, S1);
  feed_pop(f, "synccount");
  if (extra > 0)
    SYNC(f, S1);
  feed_launches(f, 4);
}

static void layer(struct feed *f, const struct plan *plan, unsigned index, int extra)
{
  static const char *const names[LAYERS] = {"layer:0", "layer:1", "layer:2"};
  feed_push(f, "synccount", names[index]);
  if (strcmp(plan->variant, "masked") == 0)
    masked_layer(f, plan, index, extra);
  else
    sorted_layer(f, extra);
  feed_pop(f, "synccount");
}

static void play(struct feed *f, const struct plan *plan)
{
  static char names[16][64]; /* strings of a feed must live as long as it */
  static unsigned used;
  char *name = names[used++ % 16];
  snprintf(name, sizeof names[0], "run:%s:E=%u:T=%u", plan->variant, plan->experts, plan->tokens);
  feed_push(f, "synccount", name);
  if (plan->warm_up) {
    for (unsigned i = 0; i < 5; ++i)
      op(f, "any");
  }
  for (unsigned forward = 0; forward < plan->forwards; ++forward) {
    feed_push(f, "synccount", "forward");
    for (unsigned i = 0; i < LAYERS; ++i)
      layer(f, plan, i, i == LAYERS - 1 && (forward == 0 || !plan->only_first) ? plan->extra : 0);
    if (plan->between)
      SYNC(f, S1);
    if (plan->uncertain)
      D2H_UNKNOWN(f, S2);
    feed_pop(f, "synccount");
  }
  feed_pop(f, "synccount");
}

/* Plays one plan and counts it. The feed stays open: f->findings owns the run. */
static struct sc_run *count(struct feed *f, const struct plan *plan)
{
  struct sc_error err = {0};
  feed_open(f);
  play(f, plan);
  feed_end(f);
  struct sc_run *run = add_run(f->findings, run_of(plan));
  if (sc_runs_count(run, f->process, &err) != SC_OK)
    fail_msg("%s", err.message);
  return run;
}

static void masked_counts_e_plus_two_hit(void **state)
{
  (void)state;
  static const struct plan plans[] = {
      {.variant = "masked", .experts = 4, .tokens = 4096, .forwards = 3, .hit = {4, 4, 4}},
      {.variant = "masked", .experts = 8, .tokens = 4096, .forwards = 2, .hit = {8, 8, 8}},
      {.variant = "masked", .experts = 16, .tokens = 4096, .forwards = 1, .hit = {16, 16, 16}},
      {.variant = "masked", .experts = 8, .tokens = 4096, .forwards = 2, .hit = {1, 1, 1}},
      {.variant = "masked", .experts = 4, .tokens = 1, .forwards = 2, .hit = {1, 1, 1}},
      {.variant = "masked", .experts = 8, .tokens = 16, .forwards = 2, .hit = {5, 8, 7}},
  };
  for (size_t i = 0; i < SC_COUNTOF(plans); ++i) {
    struct feed f;
    const struct plan *plan = &plans[i];
    struct sc_run *run = count(&f, plan);
    unsigned low = UINT32_MAX, high = 0, sum = 0;
    for (unsigned l = 0; l < LAYERS; ++l) {
      unsigned want = plan->experts + 2 * plan->hit[l];
      low = want < low ? want : low;
      high = want > high ? want : high;
      sum += want;
    }
    assert_true(run->counted);
    assert_true(run->exact);
    assert_int_equal(run->per_layer_min, low);
    assert_int_equal(run->per_layer_max, high);
    assert_true(run->per_layer_mean == (double)sum / LAYERS);
    assert_true(run->expected_per_layer == (double)sum / LAYERS);
    assert_true(run->bound_per_layer == 3.0 * plan->experts);
    assert_true(run->per_forward == sum);
    assert_int_equal(run->counts.syncs, sum * plan->forwards);
    assert_int_equal(run->counts.by_class[SC_CLASS_EXPLICIT], sum * plan->forwards);
    assert_int_equal(run->counts.read_backs, sum * plan->forwards);
    feed_close(&f);
  }
}

static void sorted_counts_one_whatever_e(void **state)
{
  (void)state;
  for (unsigned experts = 4; experts <= 16; experts *= 2) {
    struct feed f;
    struct plan plan = {.variant = "sorted", .experts = experts, .tokens = 4096, .forwards = 3, .hit = {4, 4, 4}};
    struct sc_run *run = count(&f, &plan);
    assert_true(run->exact);
    assert_int_equal(run->per_layer_min, 1);
    assert_int_equal(run->per_layer_max, 1);
    assert_true(run->expected_per_layer == 1);
    assert_true(isnan(run->bound_per_layer));
    assert_true(run->per_forward == LAYERS);
    assert_int_equal(run->counts.by_class[SC_CLASS_PAGEABLE], 3 * LAYERS);
    assert_int_equal(run->outside_experts, 3 * LAYERS);
    assert_int_equal(run->by_op_count, 1);
    assert_string_equal(run->by_op[0].name, "bounds");
    assert_int_equal(run->by_op[0].count, 3 * LAYERS);
    feed_close(&f);
  }
}

static void by_op_and_by_expert_are_totals_over_the_forwards(void **state)
{
  (void)state;
  struct feed f;
  struct plan plan = {.variant = "masked", .experts = 4, .tokens = 7, .forwards = 2, .hit = {4, 1, 2}};
  struct sc_run *run = count(&f, &plan);
  static const char *const ops[] = {"any", "nonzero", "mask-index"};
  static const uint64_t by_op[] = {2 * 12, 2 * 7, 2 * 7}, by_expert[] = {2 * 9, 2 * 7, 2 * 5, 2 * 5};
  assert_int_equal(run->by_op_count, 3);
  for (size_t i = 0; i < 3; ++i) {
    assert_string_equal(run->by_op[i].name, ops[i]);
    assert_int_equal(run->by_op[i].count, by_op[i]);
  }
  for (size_t i = 0; i < 4; ++i) {
    assert_int_equal(run->by_expert[i], by_expert[i]);
    assert_int_equal(run->by_expert_op[i][0], 2 * 3);
    assert_int_equal(run->by_expert_op[i][0] + run->by_expert_op[i][1] + run->by_expert_op[i][2], by_expert[i]);
  }
  assert_int_equal(run->outside_experts, 0);
  uint64_t classes = 0;
  for (size_t i = 0; i < SC_CLASS_COUNT; ++i)
    classes += run->counts.by_class[i];
  assert_true((double)classes == run->per_forward * (double)run->forwards);
  feed_close(&f);
}

static void ops_outside_experts_belong_to_no_expert(void **state)
{
  (void)state;
  struct feed f;
  struct plan plan = {.variant = "masked", .experts = 2, .tokens = 7, .forwards = 2, .hit = {2, 2, 2}, .tail_op = true};
  struct sc_run *run = count(&f, &plan);
  assert_int_equal(run->outside_experts, 2 * LAYERS);
  assert_int_equal(run->by_op[0].count, 2 * LAYERS * 3);
  assert_int_equal(run->by_expert_op[0][0], 2 * LAYERS);
  assert_int_equal(run->by_expert_op[1][0], 2 * LAYERS);
  assert_int_equal(run->by_expert[1], 2 * LAYERS * 3);
  assert_false(run->exact);
  feed_close(&f);
}

static void warm_up_outside_forward_is_not_counted(void **state)
{
  (void)state;
  struct feed f;
  struct plan plan = {
      .variant = "masked", .experts = 4, .tokens = 4096, .forwards = 1, .hit = {4, 4, 4}, .warm_up = true};
  struct sc_run *run = count(&f, &plan);
  assert_true(run->exact);
  assert_true(run->per_forward == 36);
  assert_int_equal(f.process->counts.syncs, 36 + 5);
  feed_close(&f);
}

static void launches_of_a_run_are_exact(void **state)
{
  (void)state;
  struct feed f;
  struct plan plan = {.variant = "masked", .experts = 4, .tokens = 4096, .forwards = 2, .hit = {4, 4, 4}};
  struct sc_run *run = count(&f, &plan);
  assert_int_equal(run->counts.launches, 2 * LAYERS * (12 * 2 + 4 * 5));
  assert_int_equal(run->counts.api_calls, run->counts.launches + 2 * LAYERS * 12 * 2);
  feed_close(&f);
}

static void a_wrong_probe_is_caught(void **state)
{
  (void)state;
  struct plan good = {.variant = "masked", .experts = 4, .tokens = 4096, .forwards = 3, .hit = {4, 4, 4}};
  struct plan wrong[] = {good, good, good, good, good};
  wrong[0].extra = 1;
  wrong[1].extra = -1;
  wrong[2].extra = 1;
  wrong[2].only_first = true;
  wrong[3].between = true;
  wrong[4].uncertain = true;
  for (size_t i = 0; i < SC_COUNTOF(wrong); ++i) {
    struct feed f;
    struct sc_run *run = count(&f, &wrong[i]);
    assert_true(run->counted);
    assert_false(run->exact);
    if (i < 3) {
      assert_int_equal(run->per_layer_min, 12 - (i == 1));
      assert_int_equal(run->per_layer_max, 12 + (i != 1));
    }
    feed_close(&f);
  }
}

static void missing_counts_cannot_be_measured(void **state)
{
  (void)state;
  struct feed f;
  struct sc_error err = {0};
  struct plan plan = {.variant = "masked", .experts = 4, .tokens = 4096, .forwards = 2, .hit = {4, 4, 4}};
  feed_open(&f);
  play(&f, &plan);
  feed_end(&f);
  struct sc_run *run = add_run(f.findings, run_of(&plan));
  run->tokens = 1;
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_ERR_MEASURE);
  assert_non_null(strstr(err.message, "run:masked:E=4:T=1"));
  assert_false(run->counted);
  run->tokens = 4096;
  run->forwards = 3; /* the probe says three, the trace holds two */
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_ERR_MEASURE);
  assert_non_null(strstr(err.message, "2 finished forwards of 3"));
  run->forwards = 2;
  run->layers = 4; /* one more than there is */
  run->hit = realloc(run->hit, 4 * sizeof *run->hit);
  run->hit[3] = 4;
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_ERR_MEASURE);
  assert_non_null(strstr(err.message, "layer:3"));
  assert_false(run->counted);
  run->layers = 3;
  f.process->lost_records = 1;
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_ERR_MEASURE);
  assert_non_null(strstr(err.message, "1 records and 0 chunks"));
  f.process->lost_records = 0;
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_OK); /* and a refused attempt leaves nothing behind */
  assert_true(run->exact);
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_OK);
  assert_int_equal(run->by_op_count, 3);
  feed_close(&f);
}

static void a_probe_stopped_in_mid_forward_cannot_be_measured(void **state)
{
  (void)state;
  struct feed f;
  struct sc_error err = {0};
  struct plan plan = {.variant = "sorted", .experts = 4, .tokens = 16, .forwards = 2, .hit = {4, 4, 4}};
  feed_open(&f);
  feed_push(&f, "synccount", "run:sorted:E=4:T=16");
  feed_push(&f, "synccount", "forward");
  layer(&f, &plan, 0, 0);
  feed_end(&f);
  struct sc_run *run = add_run(f.findings, run_of(&plan));
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_ERR_MEASURE);
  assert_non_null(strstr(err.message, "stopped"));
  feed_close(&f);
}

static void gathered_ranges_cannot_be_measured(void **state)
{
  (void)state;
  struct feed f;
  struct sc_error err = {0};
  struct plan plan = {.variant = "masked", .experts = 16, .tokens = 16, .forwards = 1, .hit = {16, 16, 16}};
  struct sc_run needs = run_of(&plan);
  feed_open_with(&f, 100);
  play(&f, &plan);
  feed_end(&f);
  struct sc_run *run = add_run(f.findings, needs);
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_ERR_MEASURE);
  assert_non_null(strstr(err.message, "higher limit"));
  feed_close(&f);

  needs = run_of(&plan);
  feed_open_with(&f, sc_runs_range_paths(&needs, 1)); /* what it says is enough, is */
  play(&f, &plan);
  feed_end(&f);
  run = add_run(f.findings, needs);
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_OK);
  assert_true(run->exact);
  feed_close(&f);
}

static void a_run_without_device_work_cannot_be_measured(void **state)
{
  (void)state;
  struct feed f;
  struct sc_error err = {0};
  struct plan plan = {.variant = "dense", .experts = 4, .tokens = 16, .forwards = 1};
  feed_open(&f);
  feed_push(&f, "synccount", "run:dense:E=4:T=16");
  feed_push(&f, "synccount", "forward");
  for (unsigned i = 0; i < LAYERS; ++i) {
    feed_push(&f, "synccount", (const char *[]){"layer:0", "layer:1", "layer:2"}[i]);
    feed_pop(&f, "synccount");
  }
  feed_pop(&f, "synccount");
  feed_pop(&f, "synccount");
  feed_end(&f);
  struct sc_run *run = add_run(f.findings, run_of(&plan));
  assert_int_equal(sc_runs_count(run, f.process, &err), SC_ERR_MEASURE);
  feed_close(&f);
}

static void expectations_by_variant(void **state)
{
  (void)state;
  static const struct {
    const char *variant;
    double expected;
  } rows[] = {
      {"masked", 8 + 2 * (8 + 1 + 3) / 3.0}, {"sorted", 1}, {"fused-nvfp4", 0}, {"dense", 0}, {"somebody-else's", NAN}};
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i) {
    struct plan plan = {.variant = rows[i].variant, .experts = 8, .hit = {8, 1, 3}};
    struct sc_findings *f = sc_findings_new();
    struct sc_run *run = add_run(f, run_of(&plan));
    sc_runs_expect(run);
    assert_true(isnan(rows[i].expected) ? isnan(run->expected_per_layer) : run->expected_per_layer == rows[i].expected);
    free(run->hit);
    run->hit = NULL;
    sc_runs_expect(run);
    if (i == 0) /* hit unknown: no expectation, never a guess */
      assert_true(isnan(run->expected_per_layer));
    sc_findings_free(f);
  }
}

/* ---- laws --------------------------------------------------------------------------------------- */

static struct sc_run *point(struct sc_findings *f, const char *variant, unsigned experts, unsigned tokens, unsigned low,
                            unsigned high, unsigned hit)
{
  struct plan plan = {.variant = variant, .experts = experts, .tokens = tokens, .hit = {hit, hit, hit}};
  struct sc_run *run = add_run(f, run_of(&plan));
  run->counted = true;
  run->per_layer_min = low;
  run->per_layer_max = high;
  return run;
}

static void law_is(struct sc_findings *f, size_t index, bool stated, const char *text)
{
  assert_true(sc_runs_laws(f));
  assert_true(index < f->law_count);
  assert_string_equal(f->laws[index].text, text);
  assert_int_equal(f->laws[index].stated, stated);
  assert_int_equal(isnan(f->laws[index].slope), !stated);
}

static void a_law_is_stated_when_every_point_fits(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  for (unsigned e = 4; e <= 16; e *= 2) {
    point(f, "masked", e, 4096, 3 * e, 3 * e, e);
    point(f, "sorted", e, 4096, 1, 1, e);
  }
  law_is(f, 0, true, "3.00 E + 0");
  law_is(f, 1, true, "0.00 E + 1");
  assert_string_equal(f->laws[0].variant, "masked");
  assert_true(f->laws[0].slope == 3 && f->laws[0].intercept == 0);
  assert_int_equal(f->law_count, 2);
  assert_true(sc_runs_laws(f)); /* replaces */
  assert_int_equal(f->law_count, 2);
  sc_findings_free(f);
}

static void decode_has_its_own_law(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  for (unsigned e = 4; e <= 16; e *= 2)
    point(f, "masked", e, 1, e + 2, e + 2, 1);
  law_is(f, 0, true, "1.00 E + 2");
  sc_findings_free(f);
}

static void a_negative_intercept_is_written_as_one(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  for (unsigned e = 4; e <= 16; e *= 2)
    point(f, "other", e, 1, 2 * e - 3, 2 * e - 3, e);
  law_is(f, 0, true, "2.00 E - 3");
  sc_findings_free(f);
}

static void no_law_when_hit_is_less_than_e_somewhere(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  point(f, "masked", 4, 64, 12, 12, 4);
  point(f, "masked", 8, 64, 24, 24, 8);
  point(f, "masked", 16, 64, 44, 46, 15);
  law_is(f, 0, false, "no single law: hit < E at E = 16");
  sc_findings_free(f);
}

static void too_few_expert_counts_for_a_law(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  point(f, "masked", 4, 64, 12, 12, 4);
  law_is(f, 0, false, "one expert count is too few for a law");
  point(f, "masked", 4, 128, 12, 12, 4);
  law_is(f, 0, false, "one expert count is too few for a law");
  point(f, "masked", 8, 64, 24, 24, 8);
  law_is(f, 0, false, "two expert counts are too few for a law");
  sc_findings_free(f);
}

static void several_token_counts_need_all_points(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  for (unsigned e = 4; e <= 16; e *= 2) {
    point(f, "masked", e, 4096, 3 * e, 3 * e, e);
    point(f, "sorted", e, 4096, 1, 1, e);
    point(f, "masked", e, 1, e + 2, e + 2, 1);
    point(f, "sorted", e, 1, 1, 1, 1);
  }
  law_is(f, 0, false, "no single law: hit < E at E = 4, T = 1");
  law_is(f, 1, true, "0.00 E + 1");
  sc_findings_free(f);
}

static void layers_that_differ_or_points_off_the_line_make_no_law(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  point(f, "sorted", 4, 64, 1, 1, 4);
  point(f, "sorted", 8, 64, 1, 2, 8);
  point(f, "sorted", 16, 64, 1, 1, 16);
  law_is(f, 0, false, "no single law: layers differ at E = 8 (1 to 2)");
  f->runs[1].per_layer_min = 2;
  law_is(f, 0, false, "no single law: the counts are on no straight line of whole numbers");
  /* a straight line, but not of whole numbers */
  f->runs[1].per_layer_min = f->runs[1].per_layer_max = 2;
  f->runs[2].per_layer_min = f->runs[2].per_layer_max = 4;
  law_is(f, 0, false, "no single law: the counts are on no straight line of whole numbers");
  sc_findings_free(f);
}

static void uncounted_runs_are_no_points(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  for (unsigned e = 4; e <= 16; e *= 2)
    point(f, "masked", e, 4096, 3 * e, 3 * e, e);
  f->runs[2].counted = false;
  law_is(f, 0, false, "two expert counts are too few for a law");
  for (size_t i = 0; i < f->run_count; ++i)
    f->runs[i].counted = false;
  assert_true(sc_runs_laws(f));
  assert_int_equal(f->law_count, 0);
  sc_findings_free(f);
}

/* ---- floor, ruler, marginal cost ------------------------------------------------------------------ */

static struct sc_ruler_row *add_row(struct sc_findings *f, double *samples, const size_t *sizes, size_t blocks)
{
  struct sc_ruler_row *row = sc_array_push(&f->ruler, &f->ruler_count, &f->ruler_cap, sizeof *row);
  assert_non_null(row);
  assert_true(sc_ruler_from_samples(row, "launch+readback", samples, sizes, blocks));
  return row;
}

static void ruler_rows_from_samples(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  double samples[] = {10, 12, 14, /**/ 9, 11, /**/ 20};
  static const size_t sizes[] = {3, 2, 1};
  struct sc_ruler_row *row = add_row(f, samples, sizes, 3);
  assert_int_equal(row->samples, 6);
  assert_int_equal(row->blocks, 3);
  assert_true(row->min_us == 9);
  assert_true(row->p50_us == 11.5);
  assert_true(row->mean_us == 14); /* of the block means, not 76 / 6: what the floor is made of */
  assert_true(row->p10_us == 9.5);
  assert_true(row->p90_us == 17);
  assert_true(fabs(row->p99_us - 19.7) < 1e-9);
  assert_true(row->block_means_us[0] == 12 && row->block_means_us[1] == 10 && row->block_means_us[2] == 20);
  assert_true(samples[0] == 9 && samples[5] == 20); /* sorted, in place */
  sc_findings_free(f);
}

static void a_ruler_row_without_samples_measured_nothing(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  struct sc_ruler_row *row = add_row(f, NULL, NULL, 0);
  assert_int_equal(row->samples, 0);
  assert_true(isnan(row->p50_us) && isnan(row->mean_us) && isnan(row->min_us));
  sc_findings_free(f);
}

static void floor_is_read_backs_and_uploads_times_the_mean_of_the_block_means(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  double samples[] = {10, 12, 14, 9, 11, 20};
  static const size_t sizes[] = {3, 2, 1};
  add_row(f, samples, sizes, 3);
  struct sc_run *run = point(f, "masked", 4, 4096, 12, 12, 4);
  run->forwards = 2;
  run->counts.syncs = 50; /* two of them neither: they have no place in the floor */
  run->counts.read_backs = 46;
  run->counts.blocking_uploads = 2;
  struct sc_run *none = point(f, "fused-nvfp4", 4, 4096, 0, 0, 4);
  none->forwards = 2;
  struct sc_run *uncounted = point(f, "sorted", 4, 4096, 0, 0, 4);
  uncounted->counted = false;
  f->assumed_count = 2;
  f->assumed_us = calloc(2, sizeof *f->assumed_us);
  f->assumed_us[0] = 26;
  f->assumed_us[1] = 116;
  assert_true(sc_runs_floor(f));
  assert_true(sc_runs_floor(f)); /* again: nothing leaks */
  run = &f->runs[0];
  assert_true(run->floor_mean_us == 24 * 14.0);
  assert_true(run->floor_low_us == 24 * 10.0);
  assert_true(run->floor_high_us == 24 * 20.0);
  assert_int_equal(run->floor_blocks, 3);
  assert_true(run->assumed_floor_us[0] == 24 * 26.0 && run->assumed_floor_us[1] == 24 * 116.0);
  assert_true(f->runs[1].floor_mean_us == 0); /* measured: nothing to wait for */
  assert_true(isnan(f->runs[2].floor_mean_us) && isnan(f->runs[2].assumed_floor_us[0]));
  sc_findings_free(f);
}

static void without_a_ruler_there_is_no_floor(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  struct sc_run *run = point(f, "masked", 4, 4096, 12, 12, 4);
  run->forwards = 1;
  run->counts.read_backs = 12;
  assert_true(sc_runs_floor(f));
  assert_true(isnan(run->floor_mean_us) && isnan(run->floor_low_us) && isnan(run->floor_high_us));
  assert_int_equal(run->floor_blocks, 0);
  assert_null(run->assumed_floor_us);
  sc_findings_free(f);
}

static void marginal_cost_is_the_slope_with_its_interval(void **state)
{
  (void)state;
  struct sc_marginal marginal = {.experts = 4};
  static const double syncs[] = {0, 0, 32, 32, 64, 64, 96, 96}, times[] = {100, 102, 420, 422, 740, 742, 1060, 1062};
  sc_marginal_fit(&marginal, syncs, times, SC_COUNTOF(syncs));
  assert_true(fabs(marginal.mean_us - 10) < 1e-9);
  assert_true(marginal.low_us < 10 && marginal.low_us > 9.9);
  assert_true(marginal.high_us > 10 && marginal.high_us < 10.1);
  sc_marginal_fit(&marginal, syncs, times, 2);
  assert_true(isnan(marginal.mean_us) && isnan(marginal.low_us) && isnan(marginal.high_us));
}

static void drift_is_a_fifth_between_first_and_last_third(void **state)
{
  (void)state;
  double first, last;
  double steady[] = {10, 10, 10, 50, 11, 11, 11, 50, 11.9, 11.9, 11.9, 11.9};
  double up[] = {10, 10, 10, 10, 11, 11, 11, 11, 12.1, 12.1, 12.1, 12.1};
  double down[] = {12.1, 12.1, 12.1, 12.1, 11, 11, 11, 11, 10, 10, 10, 10};
  struct sc_ruler_row row = {.blocks = 12, .block_means_us = up};
  assert_true(sc_ruler_drifts(&row, &first, &last));
  assert_true(fabs(first - 10) < 1e-12 && fabs(last - 12.1) < 1e-12);
  row.block_means_us = down;
  assert_true(sc_ruler_drifts(&row, &first, &last));
  steady[3] = 10;
  row.block_means_us = steady;
  assert_false(sc_ruler_drifts(&row, &first, &last));
  row.blocks = 2; /* no thirds */
  assert_false(sc_ruler_drifts(&row, &first, &last));
  assert_true(isnan(first));
  row.block_means_us = NULL;
  row.blocks = 12;
  assert_false(sc_ruler_drifts(&row, &first, &last));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(masked_counts_e_plus_two_hit),
      cmocka_unit_test(sorted_counts_one_whatever_e),
      cmocka_unit_test(by_op_and_by_expert_are_totals_over_the_forwards),
      cmocka_unit_test(ops_outside_experts_belong_to_no_expert),
      cmocka_unit_test(warm_up_outside_forward_is_not_counted),
      cmocka_unit_test(launches_of_a_run_are_exact),
      cmocka_unit_test(a_wrong_probe_is_caught),
      cmocka_unit_test(missing_counts_cannot_be_measured),
      cmocka_unit_test(a_probe_stopped_in_mid_forward_cannot_be_measured),
      cmocka_unit_test(gathered_ranges_cannot_be_measured),
      cmocka_unit_test(a_run_without_device_work_cannot_be_measured),
      cmocka_unit_test(expectations_by_variant),
      cmocka_unit_test(a_law_is_stated_when_every_point_fits),
      cmocka_unit_test(decode_has_its_own_law),
      cmocka_unit_test(a_negative_intercept_is_written_as_one),
      cmocka_unit_test(no_law_when_hit_is_less_than_e_somewhere),
      cmocka_unit_test(too_few_expert_counts_for_a_law),
      cmocka_unit_test(several_token_counts_need_all_points),
      cmocka_unit_test(layers_that_differ_or_points_off_the_line_make_no_law),
      cmocka_unit_test(uncounted_runs_are_no_points),
      cmocka_unit_test(ruler_rows_from_samples),
      cmocka_unit_test(a_ruler_row_without_samples_measured_nothing),
      cmocka_unit_test(floor_is_read_backs_and_uploads_times_the_mean_of_the_block_means),
      cmocka_unit_test(without_a_ruler_there_is_no_floor),
      cmocka_unit_test(marginal_cost_is_the_slope_with_its_interval),
      cmocka_unit_test(drift_is_a_fifth_between_first_and_last_third),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
