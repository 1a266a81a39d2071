/* SPDX-License-Identifier: Apache-2.0
 * Sites: which syncs are one place, what they are said to be, and that their ids survive edits. */
#include "analysis/feed.h"
#include "trace/make_trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct sc_site *site_at(const struct feed *f, size_t index)
{
  assert_true(index < f->process->site_count);
  return &f->process->sites[index];
}

static uint64_t syncs_of(const struct sc_process *process)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < process->site_count; ++i)
    sum += process->sites[i].kind == SC_SITE_SYNC ? process->sites[i].count : 0;
  return sum;
}

/* One sync, in a process of its own: its pattern. */
static void expect_pattern(struct feed *f, const char *pattern)
{
  feed_end(f);
  assert_int_equal(f->process->site_count, 1);
  assert_string_equal(site_at(f, 0)->pattern, pattern);
  assert_non_null(site_at(f, 0)->remedy);
  feed_close(f);
}

static void each_kind_of_sync_has_its_pattern(void **state)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .bytes = 4, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PINNED,
       .src = SC_MEMORY_DEVICE);
  SYNC(&f, S1);
  expect_pattern(&f, "scalar read-back");

  feed_open(&f);
  D2H_PINNED(&f, S1);
  SYNC(&f, S1);
  expect_pattern(&f, "read-back");

  feed_open(&f);
  D2H_PAGEABLE(&f, S1);
  SYNC(&f, S1);
  expect_pattern(&f, ".tolist(), .cpu()");

  feed_open(&f);
  D2H_PAGEABLE(&f, S1);
  expect_pattern(&f, "pageable async copy");

  feed_open(&f);
  H2D_ASYNC(&f, S1, SC_MEMORY_PAGEABLE);
  SYNC(&f, S1);
  expect_pattern(&f, "blocking upload");

  feed_open(&f);
  feed_launches(&f, 1);
  CALL(&f, "cudaDeviceSynchronize");
  expect_pattern(&f, "device-wide synchronise");

  feed_open(&f);
  feed_launches(&f, 1);
  CALL(&f, "cudaEventSynchronize", .object = EVENT);
  expect_pattern(&f, "event wait");

  feed_open(&f);
  CALL(&f, "cudaFree", .object = 0x1000, .dst = SC_MEMORY_DEVICE);
  expect_pattern(&f, "cudaFree, allocator");

  feed_open(&f);
  feed_launches(&f, 1);
  SYNC(&f, S1);
  expect_pattern(&f, "stream synchronise");
}

/* bool(tensor) goes through is_nonzero in PyTorch: the read of the scalar decides, not the name around it. */
static void native_names_tell_a_scalar_from_nonzero(void **state)
{
  static const struct {
    const char *inner, *outer, *pattern;
  } rows[] = {
      {"at::native::_local_scalar_dense_cuda(at::Tensor const&)", "at::native::is_nonzero(at::Tensor const&)",
       "scalar read-back"},
      {"at::native::nonzero_cuda(at::Tensor const&)", "at::_ops::nonzero::call(at::Tensor const&)",
       "nonzero, boolean-mask index"},
  };
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i) {
    struct feed f;
    feed_open(&f);
    CALL(&f, "cudaMemcpyAsync", .stream = S1, .bytes = 4, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PINNED,
         .src = SC_MEMORY_DEVICE);
    SYNC(&f, S1);
    feed_end(&f);
    struct sc_site *site = &f.process->sites[0];
    site->native = sc_calloc_array(2, sizeof *site->native);
    assert_non_null(site->native);
    site->native_count = 2;
    site->native[0].function = sc_strdup(rows[i].inner);
    site->native[1].function = sc_strdup(rows[i].outer);
    assert_true(sc_sites_describe(f.process));
    assert_string_equal(site->pattern, rows[i].pattern);
    feed_close(&f);
  }
}

static void syncs_with_nothing_outstanding_are_told(void **state)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  for (int i = 0; i < 5; ++i)
    SYNC(&f, S1);
  expect_pattern(&f, "nothing outstanding"); /* four of five */
}

static void a_poll_wait_and_a_refused_sync_stand_beside_the_count(void **state)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  CALL(&f, "cudaStreamQuery", .stream = S1, .bytes = 7, .status = 0);
  CALL(&f, "cudaStreamSynchronize", .stream = S1, .status = 900);
  SYNC(&f, S1);
  feed_end(&f);
  assert_int_equal(f.process->site_count, 3);
  assert_int_equal(syncs_of(f.process), f.process->counts.syncs);
  assert_int_equal(site_at(&f, 1)->kind, SC_SITE_POLL);
  assert_string_equal(site_at(&f, 1)->pattern, "poll loop");
  assert_int_equal(site_at(&f, 2)->kind, SC_SITE_REFUSED);
  assert_string_equal(site_at(&f, 2)->pattern, "sync while a stream captures");
  feed_close(&f);
}

static void without_a_stack_the_range_is_the_place(void **state)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  for (int i = 0; i < 2; ++i) {
    feed_push(&f, "", i ? "second" : "first");
    for (int j = 0; j <= i; ++j) {
      feed_launches(&f, 1);
      CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 1000);
    }
    feed_pop(&f, "");
  }
  feed_end(&f);
  assert_int_equal(f.process->site_count, 2);
  assert_string_equal(site_at(&f, 0)->range, "second"); /* the costlier one first */
  assert_int_equal(site_at(&f, 0)->count, 2);
  assert_string_equal(site_at(&f, 1)->range, "first");
  assert_true(site_at(&f, 0)->wait_total_us > 1.99 && site_at(&f, 0)->wait_total_us < 2.01);
  assert_string_not_equal(site_at(&f, 0)->id, site_at(&f, 1)->id);
  feed_close(&f);
}

static void a_merged_synchronise_waits_in_its_copys_site(void **state)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  for (int i = 0; i < 3; ++i) {
    CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
         .src = SC_MEMORY_DEVICE, .duration_ns = 4000);
    CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 1000);
  }
  feed_end(&f);
  assert_int_equal(f.process->site_count, 1);
  assert_int_equal(site_at(&f, 0)->count, 3);
  assert_int_equal(site_at(&f, 0)->merged, 3);
  assert_true(fabs(site_at(&f, 0)->wait_total_us - 15) < 0.01);
  assert_true(fabs(site_at(&f, 0)->wait_p50_us - 5) < 0.2);
  assert_string_equal(site_at(&f, 0)->direction, "device-to-host");
  assert_string_equal(site_at(&f, 0)->memory, "pageable");
  feed_close(&f);
}

static void more_places_than_are_kept_are_gathered_and_none_is_lost(void **state)
{
  static char names[3000][32]; /* the feed keeps the pointers */
  struct feed f;
  (void)state;
  feed_open_with(&f, 4000);
  for (int i = 0; i < 3000; ++i) {
    snprintf(names[i], sizeof names[i], "range %d", i);
    feed_push(&f, "", names[i]);
    feed_launches(&f, 1);
    SYNC(&f, S1);
    feed_pop(&f, "");
  }
  feed_end(&f);
  assert_int_equal(syncs_of(f.process), 3000);
  assert_int_equal(f.process->site_count, 2049);
  assert_true(feed_warned(&f, "more different places"));
  feed_close(&f);
}

/* ---- stacks, through a trace ---------------------------------------------------------------------- */

struct line { /* one Python stack of two frames */
  const char *file, *function;
  uint32_t line, caller;
};

static void put_stack(struct make_trace *t, struct sc_writer_thread *thread, uint32_t id, const struct line *line)
{
  uint32_t frames[2] = {2 * id, 2 * id + 1};
  sc_writer_frame(thread, frames[0], mt_string(t, thread, line->file), mt_string(t, thread, line->function), line->line,
                  1);
  sc_writer_frame(thread, frames[1], mt_string(t, thread, "/work-dir/train.py"), mt_string(t, thread, "<module>"),
                  line->caller, 1);
  sc_writer_stack(thread, id, 0, frames, 2, NULL, 0);
}

static void put_sync(struct make_trace *t, struct sc_writer_thread *thread, uint32_t stack, uint64_t at)
{
  uint32_t api = mt_api(t, thread, "cudaStreamSynchronize_v3020");
  mt_launch(thread, 1);
  struct sc_record_call *record = sc_writer_reserve(thread, 1);
  assert_non_null(record);
  *record = (struct sc_record_call){.head = {.kind = SC_RECORD_CALL, .units = 1, .stack = stack},
                                    .start_ns = at,
                                    .duration_ns = 50,
                                    .stream = S1,
                                    .api = api | 255u << 16};
  sc_writer_commit(thread, 1);
}

/* The findings of a process whose syncs come from these lines, one each and stack numbers in another order. */
static struct sc_findings *analyse(const struct line *lines, size_t count)
{
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  struct sc_findings *findings = sc_findings_new();
  struct sc_error err = {0};
  mt_meta(thread, "cwd", "/work-dir");
  for (size_t i = 0; i < count; ++i)
    put_sync(t, thread, (uint32_t)(count - i), 1000 + 100 * i);
  for (size_t i = 0; i < count; ++i)
    put_stack(t, thread, (uint32_t)(count - i), &lines[i]);
  struct sc_reader *reader = mt_reader(t);
  if (sc_analysis_read(reader, NULL, findings, &err) != SC_OK)
    fail_msg("%s", err.message);
  sc_reader_close(reader);
  mt_free(t);
  return findings;
}

static const char *id_at(const struct sc_findings *findings, uint64_t line, uint64_t caller)
{
  const struct sc_process *process = &findings->processes[0];
  for (size_t i = 0; i < process->site_count; ++i) {
    const struct sc_site *site = &process->sites[i];
    if (site->python_count == 2 && site->python[0].line == line && site->python[1].line == caller)
      return site->id;
  }
  fail_msg("no site at line %d", (int)line);
  return NULL;
}

static void a_site_is_a_python_stack_and_its_id_survives_edits(void **state)
{
  static const struct line before[] = {{"/work-dir/model.py", "Moe.forward", 10, 5},
                                       {"/work-dir/model.py", "Moe.forward", 20, 5},
                                       {"/work-dir/model.py", "Other.forward", 30, 6},
                                       {"/work-dir/model.py", "Moe.forward", 10, 5}};
  static const struct line after[] = {{"/work-dir/model.py", "Other.forward", 135, 9},
                                      {"/work-dir/model.py", "Moe.forward", 122, 8},
                                      {"/work-dir/model.py", "Moe.forward", 111, 8}};
  struct sc_findings *one = analyse(before, SC_COUNTOF(before)), *two = analyse(after, SC_COUNTOF(after));
  (void)state;
  assert_int_equal(one->processes[0].site_count, 3);
  assert_int_equal(syncs_of(&one->processes[0]), 4);
  assert_string_equal(id_at(one, 10, 5), id_at(two, 111, 8));
  assert_string_equal(id_at(one, 20, 5), id_at(two, 122, 8));
  assert_string_equal(id_at(one, 30, 6), id_at(two, 135, 9));
  assert_string_not_equal(id_at(one, 10, 5), id_at(one, 20, 5));
  assert_string_equal(sc_process_file(&one->processes[0], "/work-dir/model.py"), "model.py");
  assert_string_equal(sc_process_file(&one->processes[0], "/x/lib/python3.12/site-packages/torch/_tensor.py"),
                      "torch/_tensor.py");
  sc_findings_free(one);
  sc_findings_free(two);
}

static void the_programs_own_line_is_shown_before_a_librarys(void **state)
{
  static const struct line lines[] = {{"/usr/lib/python3.12/site-packages/torch/_tensor.py", "Tensor.item", 99, 5}};
  struct sc_findings *findings = analyse(lines, 1);
  const struct sc_frame *frame = sc_site_frame(&findings->processes[0].sites[0]);
  (void)state;
  assert_non_null(frame);
  assert_string_equal(frame->file, "/work-dir/train.py");
  assert_int_equal(frame->line, 5);
  sc_findings_free(findings);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_kind_of_sync_has_its_pattern),
      cmocka_unit_test(native_names_tell_a_scalar_from_nonzero),
      cmocka_unit_test(syncs_with_nothing_outstanding_are_told),
      cmocka_unit_test(a_poll_wait_and_a_refused_sync_stand_beside_the_count),
      cmocka_unit_test(without_a_stack_the_range_is_the_place),
      cmocka_unit_test(a_merged_synchronise_waits_in_its_copys_site),
      cmocka_unit_test(more_places_than_are_kept_are_gathered_and_none_is_lost),
      cmocka_unit_test(a_site_is_a_python_stack_and_its_id_survives_edits),
      cmocka_unit_test(the_programs_own_line_is_shown_before_a_librarys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
