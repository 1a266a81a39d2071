/* SPDX-License-Identifier: Apache-2.0
 * Attribution to NVTX ranges: inclusive and self, occurrences, levels, and what happens at the edges. */
#include "feed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST(name) static void name(void **state)
#define OPEN     \
  struct feed f; \
  (void)state;   \
  feed_open(&f)

static void syncs(struct feed *f, unsigned n)
{
  for (unsigned i = 0; i < n; ++i)
    SYNC(f, S1);
}

static void range_is(const struct feed *f, const char *path, uint64_t occurrences, uint64_t total, uint64_t self)
{
  const struct sc_range_findings *range = feed_range(f, path);
  assert_int_equal(range->occurrences, occurrences);
  assert_int_equal(range->total.syncs, total);
  assert_int_equal(range->self.syncs, self);
}

static void spread_is(const struct feed *f, const char *path, uint64_t min, double median, uint64_t max)
{
  const struct sc_range_findings *range = feed_range(f, path);
  assert_int_equal(range->min, min);
  assert_int_equal(range->max, max);
  assert_true(range->median == median);
}

TEST(inclusive_and_self_counts)
{
  OPEN;
  syncs(&f, 1);
  feed_push(&f, "synccount", "forward");
  syncs(&f, 2);
  feed_push(&f, "synccount", "layer:0");
  syncs(&f, 4);
  feed_pop(&f, "synccount");
  syncs(&f, 8);
  feed_pop(&f, "synccount");
  syncs(&f, 16);
  feed_end(&f);
  range_is(&f, "forward", 1, 14, 10);
  range_is(&f, "forward/layer:0", 1, 4, 4);
  assert_int_equal(f.process->counts.syncs, 31);
  assert_int_equal(f.process->range_count, 2);
  feed_close(&f);
}

TEST(every_counter_goes_to_the_range)
{
  OPEN;
  feed_push(&f, NULL, "a");
  D2H_PINNED(&f, S1);
  CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 500);
  H2D_ASYNC(&f, S1, SC_MEMORY_PINNED);
  syncs(&f, 2);
  CALL(&f, "cudaFree", .object = 0x1000);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 2);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 2, .status = 1);
  CALL(&f, "cuModuleUnload");
  CALL(&f, "cudaLaunchHostFunc", .stream = S1);
  CALL(&f, "cudaStreamSynchronize", .stream = S1, .flags = SC_CALL_CAPTURED);
  D2H_UNKNOWN(&f, S1);
  feed_launches(&f, 3);
  feed_pop(&f, NULL);
  feed_end(&f);
  const struct sc_counts *got = &feed_range(&f, "a")->total;
  assert_memory_equal(got, &f.process->counts, sizeof *got);
  assert_memory_equal(got, &feed_range(&f, "a")->self, sizeof *got);
  assert_int_equal(got->syncs, 4);
  assert_int_equal(got->read_backs, 1);
  assert_int_equal(got->blocking_uploads, 1);
  assert_int_equal(got->idle_syncs, 1);
  assert_int_equal(got->by_class[SC_CLASS_IMPLICIT], 1);
  assert_int_equal(got->poll_waits, 1);
  assert_int_equal(got->failed, 1);
  assert_int_equal(got->lifecycle, 1);
  assert_int_equal(got->host_functions, 1);
  assert_int_equal(got->captured, 1);
  assert_int_equal(got->uncertain, 1);
  assert_int_equal(got->launches, 3);
  assert_int_equal(got->d2h_copies, 2);
  assert_int_equal(got->wait_ns, 500);
  feed_close(&f);
}

TEST(launches_belong_to_the_range_in_which_they_were_made)
{
  OPEN;
  feed_launches(&f, 1);
  feed_push(&f, NULL, "a"); /* carries the launch before it */
  feed_launches(&f, 2);
  feed_push(&f, NULL, "b");
  feed_launches(&f, 4);
  feed_pop(&f, NULL);
  feed_launches(&f, 8);
  feed_pop(&f, NULL);
  feed_launches(&f, 16);
  feed_end(&f);
  assert_int_equal(feed_range(&f, "a")->self.launches, 10);
  assert_int_equal(feed_range(&f, "a")->total.launches, 14);
  assert_int_equal(feed_range(&f, "a/b")->self.launches, 4);
  assert_int_equal(f.process->counts.launches, 31);
  feed_close(&f);
}

TEST(submissions_without_a_call_belong_to_their_range_too)
{
  OPEN;
  feed_push(&f, NULL, "a");
  feed_submissions(&f, 3);
  feed_pop(&f, NULL);
  feed_push(&f, NULL, "b");
  feed_pop(&f, NULL);
  feed_end(&f);
  assert_int_equal(feed_range(&f, "a")->total.submissions, 3);
  assert_int_equal(feed_range(&f, "b")->total.submissions, 0);
  feed_close(&f);
}

TEST(occurrences_have_minimum_median_and_maximum)
{
  OPEN;
  for (unsigned i = 0; i < 4; ++i) {
    feed_push(&f, NULL, "a");
    syncs(&f, (unsigned[]){7, 2, 3, 2}[i]);
    feed_pop(&f, NULL);
  }
  feed_push(&f, NULL, "without");
  feed_pop(&f, NULL);
  feed_end(&f);
  range_is(&f, "a", 4, 14, 14);
  spread_is(&f, "a", 2, 2.5, 7);
  range_is(&f, "without", 1, 0, 0);
  spread_is(&f, "without", 0, 0, 0);
  feed_close(&f);
}

TEST(medians_of_large_counts_are_exact_while_values_are_few)
{
  OPEN;
  for (unsigned i = 0; i < 31; ++i) {
    feed_push(&f, NULL, "a");
    syncs(&f, 1000 + i % 31);
    feed_pop(&f, NULL);
  }
  feed_end(&f);
  spread_is(&f, "a", 1000, 1015, 1030);
  feed_close(&f);
}

TEST(many_different_values_go_to_a_histogram)
{
  OPEN;
  for (unsigned i = 0; i < 60; ++i) {
    feed_push(&f, NULL, "a");
    syncs(&f, i);
    feed_pop(&f, NULL);
  }
  feed_end(&f);
  range_is(&f, "a", 60, 59 * 60 / 2, 59 * 60 / 2);
  spread_is(&f, "a", 0, 29.5, 59);
  feed_close(&f);
}

TEST(class_range_and_wait_of_a_merged_sync_are_those_of_its_first_call)
{
  OPEN;
  feed_push(&f, NULL, "outer");
  feed_push(&f, NULL, "copy");
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
       .src = SC_MEMORY_DEVICE, .duration_ns = 100);
  feed_pop(&f, NULL);
  feed_push(&f, NULL, "sync");
  CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 7);
  feed_pop(&f, NULL);
  feed_pop(&f, NULL);
  feed_end(&f);
  range_is(&f, "outer", 1, 1, 0);
  range_is(&f, "outer/copy", 1, 1, 1);
  range_is(&f, "outer/sync", 1, 0, 0);
  assert_int_equal(feed_range(&f, "outer/copy")->self.by_class[SC_CLASS_PAGEABLE], 1);
  assert_int_equal(feed_range(&f, "outer/copy")->self.wait_ns, 107);
  assert_int_equal(feed_range(&f, "outer/sync")->self.wait_ns, 0);
  assert_int_equal(feed_range(&f, "outer/sync")->self.api_calls, 1);
  assert_int_equal(feed_range(&f, "outer")->total.wait_ns, 107);
  assert_int_equal(f.process->counts.wait_ns, 107);
  feed_close(&f);
}

TEST(an_uncertain_copy_is_settled_in_its_own_range)
{
  OPEN;
  feed_push(&f, NULL, "copy");
  D2H_UNKNOWN(&f, S1);
  feed_pop(&f, NULL);
  feed_push(&f, NULL, "sync");
  SYNC(&f, S1);
  feed_pop(&f, NULL);
  feed_end(&f);
  assert_int_equal(feed_range(&f, "copy")->total.uncertain, 0);
  assert_int_equal(feed_range(&f, "sync")->total.uncertain, 0);
  assert_int_equal(feed_range(&f, "sync")->total.syncs, 1);
  assert_int_equal(f.process->counts.uncertain, 0);
  feed_close(&f);
}

TEST(a_sync_belongs_to_the_ranges_of_its_own_thread)
{
  OPEN;
  feed_push(&f, NULL, "a");
  feed_thread(&f, 2);
  syncs(&f, 1);
  feed_push(&f, NULL, "a");
  syncs(&f, 2);
  feed_thread(&f, 1);
  syncs(&f, 4);
  feed_pop(&f, NULL);
  feed_thread(&f, 2);
  feed_pop(&f, NULL);
  feed_end(&f);
  range_is(&f, "a", 2, 6, 6);
  spread_is(&f, "a", 2, 3, 4);
  assert_int_equal(f.process->counts.syncs, 7);
  feed_close(&f);
}

TEST(a_recursive_range_counts_once_inclusively)
{
  OPEN;
  feed_push(&f, NULL, "f");
  syncs(&f, 1);
  feed_push(&f, NULL, "f");
  syncs(&f, 2);
  feed_pop(&f, NULL);
  syncs(&f, 4);
  feed_pop(&f, NULL);
  feed_end(&f);
  range_is(&f, "f", 1, 7, 5);
  range_is(&f, "f/f", 1, 2, 2);
  spread_is(&f, "f", 7, 7, 7);
  feed_close(&f);
}

TEST(levels_by_name_in_our_domain)
{
  OPEN;
  static const char *const names[] = {"run:masked:E=4:T=16", "forward", "layer:3", "expert:2", "any", "layer:9"};
  for (size_t i = 0; i < SC_COUNTOF(names); ++i)
    feed_push(&f, "synccount", names[i]);
  for (size_t i = 0; i < SC_COUNTOF(names); ++i)
    feed_pop(&f, "synccount");
  feed_push(&f, "other", "forward");
  feed_pop(&f, "other");
  feed_push(&f, NULL, "layer:0");
  feed_pop(&f, NULL);
  feed_push(&f, "synccount", "any"); /* not in a layer */
  feed_pop(&f, "synccount");
  feed_end(&f);
  assert_string_equal(feed_range(&f, "run:masked:E=4:T=16")->level, "run");
  assert_string_equal(feed_range(&f, "run:masked:E=4:T=16/forward")->level, "step");
  assert_string_equal(feed_range(&f, "run:masked:E=4:T=16/forward/layer:3")->level, "layer");
  assert_string_equal(feed_range(&f, "run:masked:E=4:T=16/forward/layer:3/expert:2")->level, "expert");
  assert_string_equal(feed_range(&f, "run:masked:E=4:T=16/forward/layer:3/expert:2/any")->level, "op");
  /* A level takes the outermost range mapped to it. */
  assert_null(feed_range(&f, "run:masked:E=4:T=16/forward/layer:3/expert:2/any/layer:9")->level);
  assert_null(feed_range(&f, "forward")->level);
  assert_null(feed_range(&f, "layer:0")->level);
  assert_null(feed_range(&f, "any")->level);
  assert_string_equal(feed_range(&f, "forward")->domain, "other");
  assert_string_equal(feed_range(&f, "layer:0")->domain, "");
  assert_int_equal(feed_range(&f, "run:masked:E=4:T=16/forward")->depth, 1);
  feed_close(&f);
}

TEST(levels_by_the_names_of_other_programs)
{
  OPEN;
  for (unsigned i = 0; i < 3; ++i) {
    feed_push(&f, NULL, "synccount.step");
    feed_push(&f, NULL, "synccount.layer:0");
    syncs(&f, 1 + i);
    feed_pop(&f, NULL);
    feed_pop(&f, NULL);
  }
  feed_push(&f, NULL, "synccount.allow:logging");
  feed_pop(&f, NULL);
  feed_end(&f);
  assert_string_equal(feed_range(&f, "synccount.step")->level, "step");
  assert_string_equal(feed_range(&f, "synccount.step/synccount.layer:0")->level, "layer");
  assert_string_equal(feed_range(&f, "synccount.allow:logging")->level, "allow");
  assert_true(f.process->has_steps);
  assert_int_equal(f.process->steps, 3);
  assert_int_equal(f.process->step_min, 1);
  assert_int_equal(f.process->step_max, 3);
  assert_true(f.process->step_median == 2);
  feed_close(&f);
}

static void steps(struct feed *f, const char *name, unsigned count, unsigned syncs_each)
{
  for (unsigned i = 0; i < count; ++i) {
    feed_push(f, NULL, name);
    syncs(f, syncs_each);
    feed_pop(f, NULL);
  }
}

TEST(rules_give_levels_and_the_first_that_matches_wins)
{
  static const struct sc_level_rule rules[] = {{"iter special", "op"}, {"iter*", "step"}, {"block_?", "layer"}};
  struct feed f;
  (void)state;
  feed_open_as(&f, &(struct sc_analysis_options){.levels = rules, .level_count = SC_COUNTOF(rules)});
  feed_push(&f, "theirs", "iter 1");
  feed_push(&f, NULL, "block_7");
  feed_push(&f, NULL, "block_77");
  feed_pop(&f, NULL);
  feed_pop(&f, NULL);
  feed_push(&f, NULL, "iter inner"); /* a level takes its outermost range */
  feed_pop(&f, NULL);
  feed_pop(&f, "theirs");
  feed_push(&f, NULL, "iter special");
  feed_pop(&f, NULL);
  feed_end(&f);
  assert_string_equal(feed_range(&f, "iter 1")->level, "step");
  assert_string_equal(feed_range(&f, "iter 1/block_7")->level, "layer");
  assert_null(feed_range(&f, "iter 1/block_7/block_77")->level);
  assert_null(feed_range(&f, "iter 1/iter inner")->level);
  assert_string_equal(feed_range(&f, "iter special")->level, "op");
  assert_int_equal(f.process->steps, 1);
  assert_false(sc_analysis_has_level("allow"));
  assert_false(sc_analysis_has_level("door"));
  feed_close(&f);
}

TEST(warm_up_steps_of_each_thread_are_left_out_of_the_steps_figures_alone)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &(struct sc_analysis_options){.warmup = 2});
  steps(&f, "synccount.step", 2, 9);
  steps(&f, "synccount.step", 3, 1);
  feed_thread(&f, 2);
  steps(&f, "synccount.step", 2, 7);
  steps(&f, "synccount.step", 1, 2);
  feed_end(&f);
  assert_int_equal(f.process->steps, 8);
  assert_int_equal(f.process->warmup, 4);
  assert_int_equal(f.process->step_min, 1);
  assert_int_equal(f.process->step_max, 2);
  assert_true(f.process->step_median == 1);
  assert_int_equal(f.process->counts.syncs, 18 + 3 + 14 + 2);
  spread_is(&f, "synccount.step", 1, 4.5, 9);
  feed_close(&f);
}

TEST(steps_that_ended_before_a_range_opened_are_left_out)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &(struct sc_analysis_options){.from = "train*"});
  steps(&f, "synccount.step", 3, 5);
  feed_push(&f, NULL, "synccount.step"); /* it is open when the range opens: it counts */
  feed_push(&f, NULL, "training");
  syncs(&f, 2);
  feed_pop(&f, NULL);
  feed_pop(&f, NULL);
  steps(&f, "synccount.step", 2, 1); /* for good: the range needs not be open */
  feed_end(&f);
  assert_int_equal(f.process->steps, 6);
  assert_int_equal(f.process->warmup, 3);
  assert_int_equal(f.process->step_min, 1);
  assert_int_equal(f.process->step_max, 2);
  assert_false(feed_warned(&f, "no range matches"));
  feed_close(&f);
}

TEST(a_range_that_never_opened_leaves_no_step_and_is_told)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &(struct sc_analysis_options){.from = "train*"});
  steps(&f, "synccount.step", 3, 5);
  feed_end(&f);
  assert_int_equal(f.process->warmup, 3);
  assert_true(isnan(f.process->step_median));
  assert_true(feed_warned(&f, "no range matches 'train*'"));
  feed_close(&f);
}

TEST(allowed_syncs_are_listed_by_reason_and_stay_in_the_count)
{
  OPEN;
  struct sc_allowed *list;
  size_t count;
  for (unsigned i = 0; i < 2; ++i) {
    feed_push(&f, i ? "theirs" : NULL, "outer");
    feed_push(&f, NULL, "synccount.allow:logging");
    syncs(&f, 2);
    feed_pop(&f, NULL);
    feed_pop(&f, i ? "theirs" : NULL);
  }
  feed_push(&f, NULL, "synccount.allow:never");
  feed_pop(&f, NULL);
  feed_end(&f);
  assert_true(sc_process_allowed(f.process, &list, &count));
  assert_int_equal(count, 2);
  assert_string_equal(list[0].reason, "logging");
  assert_int_equal(list[0].syncs, 4);
  assert_int_equal(list[0].occurrences, 2);
  assert_string_equal(list[1].reason, "never");
  assert_int_equal(list[1].syncs, 0);
  assert_int_equal(f.process->counts.syncs, 4);
  free(list);
  feed_close(&f);
}

TEST(without_step_ranges_there_are_no_steps)
{
  OPEN;
  feed_push(&f, NULL, "a");
  feed_pop(&f, NULL);
  feed_end(&f);
  assert_false(f.process->has_steps);
  assert_true(isnan(f.process->step_median));
  feed_close(&f);
}

TEST(domains_have_their_own_stacks)
{
  OPEN;
  feed_push(&f, "d1", "a");
  feed_push(&f, "d2", "b");
  syncs(&f, 1);
  feed_pop(&f, "d1"); /* a ends, b goes on without it */
  syncs(&f, 2);
  feed_pop(&f, "d2");
  syncs(&f, 4);
  feed_end(&f);
  range_is(&f, "a", 1, 1, 0);
  range_is(&f, "a/b", 1, 1, 1);
  range_is(&f, "b", 0, 2, 2);
  spread_is(&f, "a", 1, 1, 1);
  spread_is(&f, "a/b", 3, 3, 3); /* the whole occurrence, where it was opened */
  assert_int_equal(f.findings->warning_count, 0);
  feed_close(&f);
}

TEST(the_same_name_in_two_domains_is_two_ranges)
{
  OPEN;
  feed_push(&f, "d1", "a");
  syncs(&f, 1);
  feed_pop(&f, "d1");
  feed_push(&f, "d2", "a");
  syncs(&f, 2);
  feed_pop(&f, "d2");
  feed_end(&f);
  assert_int_equal(f.process->range_count, 2);
  assert_int_equal(f.process->ranges[0].total.syncs, 1);
  assert_int_equal(f.process->ranges[1].total.syncs, 2);
  feed_close(&f);
}

TEST(two_ids_of_one_text_are_one_range)
{
  OPEN;
  assert_true(sc_analysis_string(f.analysis, 70, "a", 1));
  assert_true(sc_analysis_string(f.analysis, 71, "a", 1));
  for (uint32_t id = 70; id <= 71; ++id) {
    struct sc_record_range push = {.head = {.kind = SC_RECORD_RANGE_PUSH, .units = 1}, .time_ns = f.now_ns, .name = id};
    sc_analysis_record(f.analysis, f.thread, &push.head);
    syncs(&f, 1);
    feed_pop(&f, NULL);
  }
  feed_end(&f);
  assert_int_equal(f.process->range_count, 1);
  range_is(&f, "a", 2, 2, 2);
  feed_close(&f);
}

TEST(a_name_that_was_lost_is_said_to_be)
{
  OPEN;
  struct sc_record_range push = {
      .head = {.kind = SC_RECORD_RANGE_PUSH, .units = 1}, .time_ns = 5, .name = 12345, .domain = 54321};
  sc_analysis_record(f.analysis, f.thread, &push.head);
  feed_end(&f);
  assert_string_equal(feed_range(&f, "(unknown name)")->domain, "(unknown domain)");
  feed_close(&f);
}

TEST(pops_without_a_push_are_counted_and_warned_of)
{
  OPEN;
  feed_pop(&f, NULL);
  feed_push(&f, NULL, "a");
  feed_pop(&f, "other");
  syncs(&f, 1);
  feed_pop(&f, NULL);
  feed_end(&f);
  range_is(&f, "a", 1, 1, 1);
  assert_true(feed_warned(&f, "2 range pops had no push"));
  feed_close(&f);
}

TEST(ranges_open_at_the_end_are_counted_but_not_in_the_median)
{
  OPEN;
  feed_push(&f, NULL, "a");
  syncs(&f, 5);
  feed_pop(&f, NULL);
  feed_push(&f, NULL, "a");
  syncs(&f, 1);
  feed_start(&f, 77, NULL, "span");
  feed_push(&f, NULL, "never-finished");
  feed_end(&f);
  range_is(&f, "a", 2, 6, 6);
  spread_is(&f, "a", 5, 5, 5);
  assert_int_equal(feed_range(&f, "a")->unfinished, 1);
  assert_int_equal(feed_range(&f, "a/span")->unfinished, 1);
  assert_true(isnan(feed_range(&f, "a/never-finished")->median));
  assert_true(feed_warned(&f, "3 ranges were still open"));
  feed_close(&f);
}

TEST(paths_over_the_limit_are_gathered_and_the_sums_above_stay_exact)
{
  struct feed f;
  static char names[100][16];
  (void)state;
  feed_open_with(&f, 10);
  for (unsigned round = 0; round < 2; ++round) {
    feed_push(&f, NULL, "top");
    for (unsigned i = 0; i < 100; ++i) {
      snprintf(names[i], sizeof names[i], "step %u", i);
      feed_push(&f, NULL, names[i]);
      feed_push(&f, NULL, "inside");
      syncs(&f, 1);
      feed_pop(&f, NULL);
      feed_pop(&f, NULL);
    }
    feed_pop(&f, NULL);
  }
  feed_end(&f);
  assert_int_equal(feed_range(&f, "top")->total.syncs, 200);
  spread_is(&f, "top", 100, 100, 100);
  /* top, and four or five steps with what is inside them, have paths of their own */
  assert_true(feed_range(&f, "top/(other ranges)")->total.syncs >= 190);
  assert_int_equal(feed_range(&f, "top/step 0")->total.syncs, 2);
  assert_int_equal(feed_range(&f, "top/step 0/inside")->total.syncs, 2);
  uint64_t apart = 0;
  for (size_t i = 0; i < f.process->range_count; ++i) {
    if (f.process->ranges[i].depth == 1)
      apart += f.process->ranges[i].total.syncs;
  }
  assert_int_equal(apart, 200);
  assert_true(f.process->range_count <= 20);
  assert_true(feed_warned(&f, "more than 10 different range paths"));
  feed_close(&f);
}

TEST(deep_nesting_is_gathered_and_pops_still_match)
{
  OPEN;
  feed_push(&f, NULL, "top");
  for (unsigned i = 0; i < 3000; ++i)
    feed_push(&f, NULL, "deeper");
  syncs(&f, 2);
  for (unsigned i = 0; i < 3000; ++i) {
    if (i == 2900)
      syncs(&f, 1); /* gathered, too: nested more than 64 deep still */
    feed_pop(&f, NULL);
  }
  syncs(&f, 1);
  feed_pop(&f, NULL);
  syncs(&f, 1);
  feed_end(&f);
  range_is(&f, "top", 1, 4, 1);
  const struct sc_range_findings *other = NULL;
  for (size_t i = 0; i < f.process->range_count; ++i) {
    if (strcmp(f.process->ranges[i].name, "(other ranges)") == 0)
      other = &f.process->ranges[i];
  }
  assert_non_null(other); /* what is gathered inside itself is one occurrence */
  assert_int_equal(other->occurrences, 1);
  assert_int_equal(other->min, 3);
  assert_int_equal(other->max, 3);
  assert_true(f.process->range_count < 100);
  assert_true(feed_warned(&f, "nested deeper"));
  assert_false(feed_warned(&f, "no push"));
  feed_close(&f);
}

TEST(a_start_end_range_takes_the_calls_of_its_thread)
{
  OPEN;
  feed_push(&f, NULL, "a");
  syncs(&f, 1);
  feed_start(&f, 1, "d", "span");
  feed_push(&f, NULL, "b");
  syncs(&f, 2);
  feed_pop(&f, NULL);
  feed_start(&f, 2, "d", "span");
  syncs(&f, 4);
  feed_stop(&f, 1); /* not nested: ended in the order they began */
  syncs(&f, 8);
  feed_pop(&f, NULL);
  syncs(&f, 16);
  feed_stop(&f, 2);
  syncs(&f, 32);
  feed_end(&f);
  range_is(&f, "a", 1, 15, 13); /* a span is no part of the total it is listed under */
  range_is(&f, "a/b", 1, 2, 2);
  const struct sc_range_findings *span = feed_range(&f, "a/span");
  assert_true(span->spanning);
  assert_int_equal(span->occurrences, 2);
  assert_int_equal(span->total.syncs, 30); /* what both hold counts once */
  spread_is(&f, "a/span", 6, 17, 28);
  assert_int_equal(f.process->counts.syncs, 63);
  feed_close(&f);
}

TEST(steps_may_be_start_end_ranges)
{
  OPEN;
  for (uint64_t i = 1; i <= 5; ++i) {
    feed_start(&f, i, NULL, "synccount.step");
    syncs(&f, 3);
    feed_stop(&f, i);
  }
  feed_end(&f);
  assert_int_equal(f.process->steps, 5);
  assert_int_equal(f.process->step_min, 3);
  assert_int_equal(f.process->step_max, 3);
  feed_close(&f);
}

TEST(a_span_ended_by_another_thread_read_later)
{
  OPEN;
  feed_thread(&f, 1);
  feed_start(&f, 5, NULL, "span");
  syncs(&f, 2);
  feed_thread(&f, 2);
  syncs(&f, 1);
  feed_stop(&f, 5);
  feed_thread(&f, 1);
  syncs(&f, 4);
  feed_end(&f);
  range_is(&f, "span", 1, 2, 2);
  spread_is(&f, "span", 2, 2, 2);
  assert_true(feed_warned(&f, "1 start/end ranges were ended by another thread"));
  feed_close(&f);
}

TEST(a_span_ended_by_another_thread_read_earlier)
{
  OPEN;
  feed_thread(&f, 2); /* the ending thread's chunk comes first in the file */
  f.now_ns = 5000;
  feed_stop(&f, 5);
  feed_thread(&f, 1);
  f.now_ns = 1000;
  feed_start(&f, 5, NULL, "span");
  syncs(&f, 2);
  f.now_ns = 5001;
  syncs(&f, 4);
  feed_end(&f);
  range_is(&f, "span", 1, 2, 2);
  assert_int_equal(feed_range(&f, "span")->unfinished, 0);
  assert_int_equal(f.process->counts.syncs, 6);
  feed_close(&f);
}

TEST(an_end_without_a_start_is_warned_of)
{
  OPEN;
  for (uint64_t i = 1; i <= 300; ++i) /* more than are kept for a start that comes later in the file */
    feed_stop(&f, i);
  feed_start(&f, 300, NULL, "span"); /* one of them came */
  feed_end(&f);
  assert_true(feed_warned(&f, "299 start/end ranges were ended whose start is not in the trace"));
  assert_true(feed_warned(&f, "1 start/end ranges were ended by another thread"));
  feed_close(&f);
}

TEST(a_merged_wait_goes_to_the_span_of_its_first_call_alone)
{
  OPEN;
  feed_start(&f, 1, NULL, "first");
  D2H_PAGEABLE(&f, S1);
  feed_stop(&f, 1);
  feed_start(&f, 2, NULL, "second");
  CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 9);
  feed_stop(&f, 2);
  feed_end(&f);
  assert_int_equal(feed_range(&f, "first")->total.wait_ns, 9);
  assert_int_equal(feed_range(&f, "first")->total.syncs, 1);
  assert_int_equal(feed_range(&f, "second")->total.wait_ns, 0);
  assert_int_equal(feed_range(&f, "second")->total.syncs, 0);
  feed_close(&f);
}

TEST(too_many_open_spans_are_counted_as_not_followed)
{
  OPEN;
  for (uint64_t i = 1; i <= 300; ++i)
    feed_start(&f, i, NULL, "span");
  syncs(&f, 1);
  feed_end(&f);
  assert_true(feed_warned(&f, "44 start/end ranges were not followed"));
  assert_int_equal(feed_range(&f, "span")->occurrences, 256);
  feed_close(&f);
}

TEST(ranges_come_depth_first_parents_first)
{
  OPEN;
  static const char *const order[] = {"a", "a/x", "a/x/y", "a/z", "b"};
  feed_push(&f, NULL, "a");
  feed_push(&f, NULL, "x");
  feed_push(&f, NULL, "y");
  feed_pop(&f, NULL);
  feed_pop(&f, NULL);
  feed_pop(&f, NULL);
  feed_push(&f, NULL, "b");
  feed_pop(&f, NULL);
  feed_push(&f, NULL, "a");
  feed_push(&f, NULL, "z");
  feed_pop(&f, NULL);
  feed_pop(&f, NULL);
  feed_end(&f);
  assert_int_equal(f.process->range_count, SC_COUNTOF(order));
  for (size_t i = 0; i < SC_COUNTOF(order); ++i)
    assert_string_equal(f.process->ranges[i].path, order[i]);
  feed_close(&f);
}

TEST(long_names_are_cut_and_still_told_apart)
{
  OPEN;
  static char one[1000], two[1000];
  memset(one, 'x', sizeof one - 1);
  memset(two, 'x', sizeof two - 1);
  two[sizeof two - 2] = 'y';
  feed_push(&f, NULL, one);
  syncs(&f, 1);
  feed_pop(&f, NULL);
  feed_push(&f, NULL, two);
  syncs(&f, 2);
  feed_pop(&f, NULL);
  feed_end(&f);
  assert_int_equal(f.process->range_count, 2);
  assert_int_equal(strlen(f.process->ranges[0].name), 256);
  assert_int_equal(f.process->ranges[1].total.syncs, 2);
  feed_close(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inclusive_and_self_counts),
      cmocka_unit_test(every_counter_goes_to_the_range),
      cmocka_unit_test(launches_belong_to_the_range_in_which_they_were_made),
      cmocka_unit_test(submissions_without_a_call_belong_to_their_range_too),
      cmocka_unit_test(occurrences_have_minimum_median_and_maximum),
      cmocka_unit_test(medians_of_large_counts_are_exact_while_values_are_few),
      cmocka_unit_test(many_different_values_go_to_a_histogram),
      cmocka_unit_test(class_range_and_wait_of_a_merged_sync_are_those_of_its_first_call),
      cmocka_unit_test(an_uncertain_copy_is_settled_in_its_own_range),
      cmocka_unit_test(a_sync_belongs_to_the_ranges_of_its_own_thread),
      cmocka_unit_test(a_recursive_range_counts_once_inclusively),
      cmocka_unit_test(levels_by_name_in_our_domain),
      cmocka_unit_test(levels_by_the_names_of_other_programs),
      cmocka_unit_test(rules_give_levels_and_the_first_that_matches_wins),
      cmocka_unit_test(warm_up_steps_of_each_thread_are_left_out_of_the_steps_figures_alone),
      cmocka_unit_test(steps_that_ended_before_a_range_opened_are_left_out),
      cmocka_unit_test(a_range_that_never_opened_leaves_no_step_and_is_told),
      cmocka_unit_test(allowed_syncs_are_listed_by_reason_and_stay_in_the_count),
      cmocka_unit_test(without_step_ranges_there_are_no_steps),
      cmocka_unit_test(domains_have_their_own_stacks),
      cmocka_unit_test(the_same_name_in_two_domains_is_two_ranges),
      cmocka_unit_test(two_ids_of_one_text_are_one_range),
      cmocka_unit_test(a_name_that_was_lost_is_said_to_be),
      cmocka_unit_test(pops_without_a_push_are_counted_and_warned_of),
      cmocka_unit_test(ranges_open_at_the_end_are_counted_but_not_in_the_median),
      cmocka_unit_test(paths_over_the_limit_are_gathered_and_the_sums_above_stay_exact),
      cmocka_unit_test(deep_nesting_is_gathered_and_pops_still_match),
      cmocka_unit_test(a_start_end_range_takes_the_calls_of_its_thread),
      cmocka_unit_test(steps_may_be_start_end_ranges),
      cmocka_unit_test(a_span_ended_by_another_thread_read_later),
      cmocka_unit_test(a_span_ended_by_another_thread_read_earlier),
      cmocka_unit_test(an_end_without_a_start_is_warned_of),
      cmocka_unit_test(a_merged_wait_goes_to_the_span_of_its_first_call_alone),
      cmocka_unit_test(too_many_open_spans_are_counted_as_not_followed),
      cmocka_unit_test(ranges_come_depth_first_parents_first),
      cmocka_unit_test(long_names_are_cut_and_still_told_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
