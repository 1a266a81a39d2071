/* SPDX-License-Identifier: Apache-2.0
 * Steps that marks delimit, the calls of autograd's threads, and names of modules: from a trace to findings. */
#include "test_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/tally.h"
#include "trace/make_trace.h"

struct read {
  struct make_trace *t;
  struct sc_writer_thread *thread;
  struct sc_reader *reader;
  struct sc_findings *findings;
  struct sc_process *process;
};

static void open_trace(struct read *r)
{
  *r = (struct read){.t = mt_new(0)};
  r->thread = mt_thread(r->t);
}

static void read_as(struct read *r, const struct sc_analysis_options *options)
{
  struct sc_error err = {0};
  r->reader = mt_reader(r->t);
  r->findings = sc_findings_new();
  if (sc_analysis_read(r->reader, options, r->findings, &err) != SC_OK)
    fail_msg("%s", err.message);
  r->process = &r->findings->processes[0];
}

static void close_trace(struct read *r)
{
  sc_findings_free(r->findings);
  sc_reader_close(r->reader);
  mt_free(r->t);
}

static void sync_at(struct read *r, struct sc_writer_thread *thread, uint64_t now_ns)
{
  mt_launch(thread, 1);
  mt_call(r->t, thread, "cudaDeviceSynchronize_v3020", (struct mt_call){.start_ns = now_ns, .duration_ns = 5});
}

static void profiler(struct read *r, const char *call, uint64_t now_ns)
{
  mt_call(r->t, r->thread, call, (struct mt_call){.start_ns = now_ns, .duration_ns = 1});
}

static const struct sc_range_findings *range_of(const struct read *r, const char *path)
{
  for (size_t i = 0; i < r->process->range_count; ++i) {
    if (strcmp(r->process->ranges[i].path, path) == 0)
      return &r->process->ranges[i];
  }
  return NULL;
}

static bool warned(const struct read *r, const char *text)
{
  for (size_t i = 0; i < r->findings->warning_count; ++i) {
    if (strstr(r->findings->warnings[i], text))
      return true;
  }
  return false;
}

static void expect_steps(const struct read *r, enum sc_step_source source, uint64_t count, uint64_t warmup,
                         uint64_t min, uint64_t max)
{
  assert_true(r->process->has_steps);
  assert_int_equal(r->process->step_source, source);
  assert_int_equal(r->process->steps, count);
  assert_int_equal(r->process->warmup, warmup);
  assert_int_equal(r->process->step_min, min);
  assert_int_equal(r->process->step_max, max);
}

/* Marks at 100, 200, ... 500; step i has i + 1 syncs on the main thread, and one on another. */
static void five_marks(struct read *r, const char *domain, const char *name)
{
  struct sc_writer_thread *other;
  open_trace(r);
  other = mt_thread(r->t);
  sync_at(r, r->thread, 50); /* setup: no step */
  for (uint64_t i = 1; i <= 5; ++i) {
    mt_mark(r->t, r->thread, domain, name, i * 100);
    for (uint64_t k = 0; k < i; ++k)
      sync_at(r, r->thread, i * 100 + 10 + k);
    sync_at(r, other, i * 100 + 50);
  }
}

static void a_step_goes_from_mark_to_mark_and_has_the_syncs_of_all_threads(void **state)
{
  (void)state;
  struct read r;
  five_marks(&r, "synccount", "step-end:0");
  read_as(&r, NULL);
  expect_steps(&r, SC_STEPS_OPTIMIZER, 4, 0, 2, 5);
  assert_true(r.process->step_median == 3.5);
  assert_int_equal(r.process->counts.syncs, 1 + 15 + 5);
  close_trace(&r);
}

static void programs_may_mark_their_steps_in_the_default_domain(void **state)
{
  (void)state;
  struct read r;
  five_marks(&r, "", "synccount.step-end");
  read_as(&r, NULL);
  expect_steps(&r, SC_STEPS_OPTIMIZER, 4, 0, 2, 5);
  close_trace(&r);
  five_marks(&r, "", "step-end"); /* without our name it is not ours */
  read_as(&r, NULL);
  assert_false(r.process->has_steps);
  close_trace(&r);
  five_marks(&r, "synccount", "step-ending");
  read_as(&r, NULL);
  assert_false(r.process->has_steps);
  close_trace(&r);
}

static void the_tally_keeps_marked_steps_apart(void **state)
{
  (void)state;
  struct read r;
  uint64_t counted = 0;
  five_marks(&r, "synccount", "step-end:0");
  read_as(&r, &(struct sc_analysis_options){.warmup = 2, .tally = true});
  const struct sc_tally *tally = r.process->tally;
  assert_int_equal(tally->profile_count, 4);
  for (size_t i = 0; i < 4; ++i) {
    const struct sc_profile *profile = &tally->profiles[i];
    uint64_t syncs = 0;
    for (size_t k = 0; k < profile->part_count; ++k)
      syncs += profile->parts[k].count;
    assert_int_equal(profile->range, SC_NOWHERE);
    assert_int_equal(profile->first, i);
    assert_int_equal(profile->warmup, i < 2);
    assert_int_equal(syncs, i + 2);
  }
  for (size_t i = 0; i < tally->place_count; ++i)
    counted += tally->places[i].warmup ? 0 : tally->places[i].count;
  assert_int_equal(counted, 4 + 5 + 6); /* all threads, from the end of the second step on */
  assert_false(tally->warmup_unknown);
  close_trace(&r);
}

static void warm_up_is_left_out_of_steps_and_sites(void **state)
{
  (void)state;
  struct read r;
  double per_step = 0;
  five_marks(&r, "synccount", "step-end:0");
  read_as(&r, &(struct sc_analysis_options){.warmup = 2});
  expect_steps(&r, SC_STEPS_OPTIMIZER, 4, 2, 4, 5);
  for (size_t i = 0; i < r.process->site_count; ++i)
    per_step += r.process->sites[i].per_step;
  assert_true(fabs(per_step - 4.5) < 1e-9); /* (4 + 5) / 2 */
  close_trace(&r);
}

static void from_a_range_on_steps_count(void **state)
{
  (void)state;
  struct read r;
  five_marks(&r, "synccount", "step-end:0");
  mt_push(r.t, r.thread, "", "ready", 560); /* after the last mark: nothing is left */
  mt_pop(r.t, r.thread, "", 570);
  read_as(&r, &(struct sc_analysis_options){.from = "ready"});
  assert_int_equal(r.process->warmup, 4);
  assert_true(isnan(r.process->step_median));
  close_trace(&r);
}

static void steps_that_end_outside_the_capture_range_are_none(void **state)
{
  (void)state;
  struct read r;
  open_trace(&r);
  for (uint64_t i = 1; i <= 6; ++i) {
    mt_mark(r.t, r.thread, "synccount", "step-end:0", i * 100);
    if (i == 2)
      profiler(&r, "cudaProfilerStart_v4000", 210);
    for (uint64_t k = 0; k < i; ++k)
      sync_at(&r, r.thread, i * 100 + 20 + k);
    if (i == 4)
      profiler(&r, "cudaProfilerStop_v4000", 480);
  }
  read_as(&r, &(struct sc_analysis_options){.capture_range = true});
  expect_steps(&r, SC_STEPS_OPTIMIZER, 2, 0, 2, 3); /* 200 to 300 and 300 to 400; what follows 400 ends outside */
  assert_int_equal(r.process->counts.syncs, 2 + 3 + 4);
  close_trace(&r);
}

static void of_several_optimizers_the_first_that_steps_twice_counts(void **state)
{
  (void)state;
  struct read r;
  open_trace(&r);
  mt_mark(r.t, r.thread, "synccount", "step-end:0", 10); /* once, for a warm-up */
  for (uint64_t i = 1; i <= 4; ++i) {
    mt_mark(r.t, r.thread, "synccount", "step-end:1", i * 100);
    sync_at(&r, r.thread, i * 100 + 10);
    mt_mark(r.t, r.thread, "synccount", "step-end:2", i * 100 + 50);
    sync_at(&r, r.thread, i * 100 + 60);
  }
  read_as(&r, NULL);
  expect_steps(&r, SC_STEPS_OPTIMIZER, 3, 0, 2, 2);
  close_trace(&r);
}

static void forwards_are_steps_where_no_optimizer_steps(void **state)
{
  (void)state;
  struct read r;
  struct sc_writer_thread *other;
  open_trace(&r);
  other = mt_thread(r.t);
  for (uint64_t i = 1; i <= 4; ++i) {
    mt_mark(r.t, other, "synccount", "forward-end:Model", i * 100 + 5); /* the same model on another thread */
    sync_at(&r, r.thread, i * 100 - 50);
    mt_mark(r.t, r.thread, "synccount", "forward-end:Model", i * 100);
  }
  read_as(&r, NULL);
  expect_steps(&r, SC_STEPS_FORWARD, 3, 0, 1, 1);
  close_trace(&r);
  open_trace(&r);
  for (uint64_t i = 1; i <= 4; ++i) {
    mt_mark(r.t, r.thread, "synccount", "forward-end:Model", i * 100);
    sync_at(&r, r.thread, i * 100 + 1);
    if (i > 1)
      mt_mark(r.t, r.thread, "synccount", "step-end:0", i * 100 + 50);
  }
  read_as(&r, NULL);
  expect_steps(&r, SC_STEPS_OPTIMIZER, 2, 0, 1, 1);
  close_trace(&r);
}

static void ranges_of_level_step_win_over_marks(void **state)
{
  (void)state;
  struct read r;
  five_marks(&r, "synccount", "step-end:0");
  mt_push(r.t, r.thread, "", "synccount.step", 600);
  sync_at(&r, r.thread, 610);
  mt_pop(r.t, r.thread, "", 620);
  read_as(&r, NULL);
  expect_steps(&r, SC_STEPS_RANGES, 1, 0, 1, 1);
  close_trace(&r);
}

static void one_mark_makes_no_step(void **state)
{
  (void)state;
  struct read r;
  open_trace(&r);
  sync_at(&r, r.thread, 10);
  mt_mark(r.t, r.thread, "synccount", "step-end:0", 100);
  sync_at(&r, r.thread, 110);
  read_as(&r, NULL);
  assert_false(r.process->has_steps);
  assert_int_equal(r.process->counts.syncs, 2);
  close_trace(&r);
}

static void calls_of_autograd_threads_outside_ranges_are_backward(void **state)
{
  (void)state;
  struct read r;
  struct sc_writer_thread *autograd, *other;
  open_trace(&r);
  autograd = mt_thread(r.t);
  other = mt_thread(r.t);
  mt_name(autograd, "pt_autograd_0");
  mt_name(other, "pt_main_thread");
  sync_at(&r, autograd, 10);
  mt_push(r.t, autograd, "synccount.torch", "layers.1", 20);
  sync_at(&r, autograd, 30);
  sync_at(&r, autograd, 31);
  mt_pop(r.t, autograd, "synccount.torch", 40);
  sync_at(&r, autograd, 50);
  sync_at(&r, other, 60);
  read_as(&r, NULL);
  const struct sc_range_findings *backward = range_of(&r, "backward"), *again = range_of(&r, "backward/layers.1");
  assert_non_null(backward);
  assert_non_null(again);
  assert_int_equal(backward->self.syncs, 2);
  assert_int_equal(backward->total.syncs, 4);
  assert_int_equal(again->total.syncs, 2);
  assert_true(isnan(backward->median)); /* nobody said where one backward ends */
  assert_false(warned(&r, "still open"));
  uint64_t by_site = 0;
  for (size_t i = 0; i < r.process->site_count; ++i) {
    const struct sc_site *site = &r.process->sites[i];
    by_site += site->range && strcmp(site->range, "backward") == 0 ? site->count : 0;
  }
  assert_int_equal(by_site, 2);
  close_trace(&r);
}

static void lists_of_layers_and_experts_have_their_levels(void **state)
{
  (void)state;
  static const struct {
    const char *name, *level;
  } rows[] = {{"model.layers.3", "layer"},       {"h.0", "layer"},         {"encoder.layer.11", "layer"},
              {"transformer.blocks.7", "layer"}, {"decoder.block.2", "layer"}, {"mlp.experts.5", "expert"},
              {"model.layers.3.mlp", NULL},      {"layers", NULL},         {"layers.", NULL},
              {"layers.x", NULL},                {"mylayers.3", NULL},     {"layer1.0", NULL},
              {"3", NULL}};
  struct read r;
  open_trace(&r);
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i) {
    mt_push(r.t, r.thread, "synccount.torch", rows[i].name, 10 * i + 10);
    sync_at(&r, r.thread, 10 * i + 12);
    mt_pop(r.t, r.thread, "synccount.torch", 10 * i + 14);
  }
  mt_push(r.t, r.thread, "", "model.layers.3", 900); /* a range of the program's own is what it was */
  mt_pop(r.t, r.thread, "", 910);
  read_as(&r, NULL);
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i) {
    const struct sc_range_findings *range = range_of(&r, rows[i].name);
    assert_non_null(range);
    if (rows[i].level)
      assert_string_equal(range->level, rows[i].level);
    else
      assert_null(range->level);
  }
  assert_null(r.process->ranges[r.process->range_count - 1].level);
  close_trace(&r);
}

static void more_modules_than_ranges_are_kept_apart(void **state)
{
  (void)state;
  struct read r;
  char name[32];
  open_trace(&r);
  for (int i = 0; i < 40; ++i) {
    snprintf(name, sizeof name, "module.%d", i);
    mt_push(r.t, r.thread, i % 2 ? "synccount.torch" : "", name, 10u * (unsigned)i + 10);
    mt_pop(r.t, r.thread, i % 2 ? "synccount.torch" : "", 10u * (unsigned)i + 15);
  }
  read_as(&r, &(struct sc_analysis_options){.max_ranges = 4});
  assert_non_null(range_of(&r, "module.39"));
  assert_null(range_of(&r, "module.38"));
  assert_non_null(range_of(&r, "module.6"));
  assert_true(warned(&r, "16 ranges were gathered"));
  close_trace(&r);
}

static void compiled_regions_and_a_profiler_are_told(void **state)
{
  (void)state;
  struct read r;
  open_trace(&r);
  mt_mark(r.t, r.thread, "synccount", "compiled:layers.0", 10);
  mt_mark(r.t, r.thread, "synccount", "compiled:layers.1", 11);
  mt_mark(r.t, r.thread, "synccount", "compiled:layers.0", 12);
  sync_at(&r, r.thread, 20);
  read_as(&r, NULL);
  assert_true(warned(&r, "compiled regions hide the modules inside them: layers.0, layers.1."));
  assert_false(warned(&r, "torch.profiler"));
  close_trace(&r);
  open_trace(&r);
  mt_mark(r.t, r.thread, "synccount", "profiler:torch", 10);
  sync_at(&r, r.thread, 20);
  for (int i = 0; i < 40; ++i) {
    char name[32];
    snprintf(name, sizeof name, "compiled:m%d", i);
    mt_mark(r.t, r.thread, "synccount", name, 30u + (unsigned)i);
  }
  read_as(&r, NULL);
  assert_true(warned(&r, "torch.profiler was started"));
  assert_true(warned(&r, "m31, and more."));
  close_trace(&r);
}

static void modules_that_were_asked_for_and_not_seen_are_told(void **state)
{
  (void)state;
  struct read r;
  open_trace(&r);
  mt_meta(r.thread, "torch_modules", "/a/libsynccount.so");
  sync_at(&r, r.thread, 20);
  read_as(&r, NULL);
  assert_true(warned(&r, "--torch-modules saw no call of a PyTorch module"));
  close_trace(&r);
  open_trace(&r);
  mt_meta(r.thread, "torch_modules", "/a/libsynccount.so");
  mt_push(r.t, r.thread, "synccount.torch", "Model", 10);
  sync_at(&r, r.thread, 20);
  mt_pop(r.t, r.thread, "synccount.torch", 30);
  read_as(&r, NULL);
  assert_false(warned(&r, "--torch-modules"));
  close_trace(&r);
}

/* A worker of torch.compile: CUDA is loaded, memory perhaps allocated, nothing runs. */
static void a_process_that_used_no_gpu_is_not_asked_for_its_modules(void **state)
{
  (void)state;
  struct read r;
  open_trace(&r);
  mt_meta(r.thread, "torch_modules", "/a/libsynccount.so");
  mt_call(r.t, r.thread, "cudaMalloc_v3020", (struct mt_call){.start_ns = 20, .duration_ns = 5});
  read_as(&r, NULL);
  assert_true(r.process->counts.api_calls == 1 && !r.process->unmeasured);
  assert_false(warned(&r, "--torch-modules"));
  close_trace(&r);
  open_trace(&r);
  mt_meta(r.thread, "torch_modules", "/a/libsynccount.so");
  mt_call(r.t, r.thread, "cudaMalloc_v3020", (struct mt_call){.start_ns = 20, .duration_ns = 5});
  mt_launch(r.thread, 1); /* after the last record: nothing waits for it */
  read_as(&r, NULL);
  assert_true(warned(&r, "--torch-modules saw no call of a PyTorch module"));
  close_trace(&r);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_step_goes_from_mark_to_mark_and_has_the_syncs_of_all_threads),
      cmocka_unit_test(programs_may_mark_their_steps_in_the_default_domain),
      cmocka_unit_test(the_tally_keeps_marked_steps_apart),
      cmocka_unit_test(warm_up_is_left_out_of_steps_and_sites),
      cmocka_unit_test(from_a_range_on_steps_count),
      cmocka_unit_test(steps_that_end_outside_the_capture_range_are_none),
      cmocka_unit_test(of_several_optimizers_the_first_that_steps_twice_counts),
      cmocka_unit_test(forwards_are_steps_where_no_optimizer_steps),
      cmocka_unit_test(ranges_of_level_step_win_over_marks),
      cmocka_unit_test(one_mark_makes_no_step),
      cmocka_unit_test(calls_of_autograd_threads_outside_ranges_are_backward),
      cmocka_unit_test(lists_of_layers_and_experts_have_their_levels),
      cmocka_unit_test(more_modules_than_ranges_are_kept_apart),
      cmocka_unit_test(compiled_regions_and_a_profiler_are_told),
      cmocka_unit_test(modules_that_were_asked_for_and_not_seen_are_told),
      cmocka_unit_test(a_process_that_used_no_gpu_is_not_asked_for_its_modules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
