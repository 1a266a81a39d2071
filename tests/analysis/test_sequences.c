/* SPDX-License-Identifier: Apache-2.0
 * DESIGN.md's table of sequences, row by row, and the sentences of its table of words. */
#include "feed.h"

#include <string.h>

/* What a sequence must give. Counters that are not named must be 0; api calls, submissions, copies and times have their
 * own tests. */
struct expected {
  uint64_t explicit_, copy, pageable, implicit;
  uint64_t read_backs, uploads, idle, polls, uncertain, failed, captured, lifecycle, launches;
};

static void ends_with(struct feed *f, struct expected want)
{
  feed_end(f);
  const struct sc_counts *got = &f->process->counts;
  assert_int_equal(got->by_class[SC_CLASS_EXPLICIT], want.explicit_);
  assert_int_equal(got->by_class[SC_CLASS_COPY], want.copy);
  assert_int_equal(got->by_class[SC_CLASS_PAGEABLE], want.pageable);
  assert_int_equal(got->by_class[SC_CLASS_IMPLICIT], want.implicit);
  assert_int_equal(got->syncs, want.explicit_ + want.copy + want.pageable + want.implicit);
  assert_int_equal(got->read_backs, want.read_backs);
  assert_int_equal(got->blocking_uploads, want.uploads);
  assert_int_equal(got->idle_syncs, want.idle);
  assert_int_equal(got->poll_waits, want.polls);
  assert_int_equal(got->uncertain, want.uncertain);
  assert_int_equal(got->failed, want.failed);
  assert_int_equal(got->captured, want.captured);
  assert_int_equal(got->lifecycle, want.lifecycle);
  assert_int_equal(got->launches, want.launches);
  feed_close(f);
}

#define ENDS_WITH(f, ...) ends_with((f), (struct expected){__VA_ARGS__})
#define NOTHING(f) ends_with((f), (struct expected){0})

#define TEST(name) static void name(void **state)
#define OPEN     \
  struct feed f; \
  (void)state;   \
  feed_open(&f)

/* ---- the table ------------------------------------------------------------------------------- */

TEST(pinned_d2h_alone_is_no_sync)
{
  OPEN;
  D2H_PINNED(&f, S1);
  NOTHING(&f);
}

TEST(pinned_d2h_launches_stream_sync_is_one_explicit)
{
  OPEN;
  D2H_PINNED(&f, S1);
  feed_launches(&f, 2);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1, .read_backs = 1, .launches = 2);
}

TEST(item_is_one_explicit_read_back)
{
  OPEN;
  D2H_PINNED(&f, S1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1, .read_backs = 1);
}

TEST(two_pinned_d2h_and_one_sync_is_one)
{
  OPEN;
  D2H_PINNED(&f, S1);
  D2H_PINNED(&f, S1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1, .read_backs = 1);
}

TEST(tolist_is_one_pageable)
{
  OPEN;
  D2H_PAGEABLE(&f, S1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .pageable = 1, .read_backs = 1);
}

TEST(two_pageable_d2h_and_one_sync_are_two)
{
  OPEN;
  D2H_PAGEABLE(&f, S1);
  D2H_PAGEABLE(&f, S1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .pageable = 2, .read_backs = 2);
}

TEST(a_launch_between_pageable_d2h_and_sync_makes_two)
{
  OPEN;
  D2H_PAGEABLE(&f, S1);
  feed_launches(&f, 1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .pageable = 1, .explicit_ = 1, .read_backs = 1, .launches = 1);
}

TEST(memcpy_d2h_and_sync_of_its_own_stream_is_one_copy)
{
  OPEN;
  MEMCPY_D2H(&f);
  SYNC(&f, SC_STREAM_LEGACY);
  ENDS_WITH(&f, .copy = 1, .read_backs = 1);
}

TEST(memcpy_d2h_and_device_sync_are_two)
{
  OPEN;
  MEMCPY_D2H(&f);
  CALL(&f, "cudaDeviceSynchronize");
  ENDS_WITH(&f, .copy = 1, .explicit_ = 1, .read_backs = 1);
}

TEST(memcpy_d2h_and_event_sync_are_two)
{
  OPEN;
  MEMCPY_D2H(&f);
  CALL(&f, "cudaEventSynchronize", .object = EVENT);
  ENDS_WITH(&f, .copy = 1, .explicit_ = 1, .read_backs = 1);
}

TEST(memcpy_d2h_and_sync_of_another_stream_are_two)
{
  OPEN;
  MEMCPY_D2H(&f);
  SYNC(&f, S1);
  ENDS_WITH(&f, .copy = 1, .explicit_ = 1, .read_backs = 1);
}

TEST(async_h2d_and_sync_is_one_blocking_upload)
{
  static const uint8_t memory[] = {SC_MEMORY_PAGEABLE, SC_MEMORY_PINNED, SC_MEMORY_UNKNOWN};
  for (size_t i = 0; i < SC_COUNTOF(memory); ++i) {
    OPEN;
    H2D_ASYNC(&f, S1, memory[i]);
    SYNC(&f, S1);
    ENDS_WITH(&f, .explicit_ = 1, .uploads = 1);
  }
}

TEST(memcpy_h2d_and_to_symbol_are_one_copy_and_an_upload)
{
  static const char *const names[] = {"cudaMemcpy", "cuMemcpyHtoD_v2", "cudaMemcpyToSymbol"};
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    OPEN;
    CALL(&f, names[i], .direction = SC_DIRECTION_H2D, .dst = SC_MEMORY_DEVICE, .src = SC_MEMORY_PAGEABLE);
    ENDS_WITH(&f, .copy = 1, .uploads = 1);
  }
}

TEST(memcpy_h2h_is_one_copy)
{
  OPEN;
  CALL(&f, "cudaMemcpy", .direction = SC_DIRECTION_H2H, .dst = SC_MEMORY_PAGEABLE, .src = SC_MEMORY_PAGEABLE);
  ENDS_WITH(&f, .copy = 1);
}

TEST(memcpy_from_symbol_is_one_copy_and_a_read_back)
{
  OPEN;
  CALL(&f, "cudaMemcpyFromSymbol", .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE, .src = SC_MEMORY_DEVICE);
  ENDS_WITH(&f, .copy = 1, .read_backs = 1);
}

TEST(stream_sync_with_nothing_outstanding_is_one_explicit)
{
  OPEN;
  D2H_PINNED(&f, S1);
  SYNC(&f, S1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 2, .read_backs = 1, .idle = 1);
}

TEST(copy_on_one_thread_and_sync_on_another_is_one_there)
{
  OPEN;
  feed_thread(&f, 1);
  D2H_PINNED(&f, S1);
  feed_thread(&f, 2);
  SYNC(&f, S1);
  feed_end(&f);
  assert_int_equal(f.process->counts.syncs, 1);
  assert_int_equal(f.process->counts.read_backs, 0);
  assert_int_equal(f.process->thread_count, 2);
  assert_int_equal(f.process->threads[0].syncs, 0);
  assert_int_equal(f.process->threads[1].syncs, 1);
  assert_int_equal(f.process->threads[1].tid, 1002);
  feed_close(&f);
}

TEST(graph_launch_and_sync_is_one_explicit)
{
  OPEN;
  CALL(&f, "cudaGraphLaunch", .stream = S1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1, .launches = 1);
}

TEST(pageable_copy_during_capture_is_no_sync)
{
  OPEN;
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
       .src = SC_MEMORY_DEVICE, .flags = SC_CALL_CAPTURED);
  ENDS_WITH(&f, .captured = 1);
}

TEST(free_of_null_and_of_pool_memory_is_no_sync)
{
  OPEN;
  CALL(&f, "cudaFree", .flags = SC_CALL_NULL_POINTER);
  CALL(&f, "cudaFree", .object = 0x1000, .flags = SC_CALL_POOL_POINTER);
  CALL(&f, "cuMemFree_v2", .object = 0x2000, .flags = SC_CALL_POOL_POINTER);
  NOTHING(&f);
}

/* ---- classes --------------------------------------------------------------------------------- */

TEST(explicit_calls_of_runtime_and_driver)
{
  static const char *const names[] = {"cudaStreamSynchronize_v3020", "cudaStreamSynchronize_ptsz_v7000",
                                      "cuStreamSynchronize",         "cudaEventSynchronize",
                                      "cuEventSynchronize",          "cudaDeviceSynchronize_v3020",
                                      "cudaThreadSynchronize",       "cuCtxSynchronize",
                                      "cuCtxSynchronize_v2"};
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    OPEN;
    CALL(&f, names[i], .stream = S1);
    ENDS_WITH(&f, .explicit_ = 1);
  }
}

TEST(implicit_calls_of_runtime_and_driver)
{
  static const char *const names[] = {
      "cudaFree",       "cuMemFree_v2",           "cudaFreeArray",      "cudaFreeMipmappedArray",
      "cudaFreeHost",   "cuMemFreeHost",          "cudaHostUnregister", "cuMemHostUnregister",
      "cuArrayDestroy", "cuMipmappedArrayDestroy"};
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    OPEN;
    CALL(&f, names[i], .object = 0x1000);
    ENDS_WITH(&f, .implicit = 1);
  }
}

TEST(lifecycle_calls_are_listed_not_counted)
{
  static const char *const names[] = {"cuModuleUnload",     "cudaLibraryUnload",    "cudaMemPoolTrimTo",
                                      "cudaMemPoolDestroy", "cudaGraphExecDestroy", "cudaDeviceReset",
                                      "cuMemUnmap",         "cudaIpcCloseMemHandle"};
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    OPEN;
    CALL(&f, names[i]);
    ENDS_WITH(&f, .lifecycle = 1);
  }
}

TEST(what_does_not_block)
{
  OPEN;
  CALL(&f, "cudaMemcpy", .direction = SC_DIRECTION_D2D, .dst = SC_MEMORY_DEVICE, .src = SC_MEMORY_DEVICE);
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2D, .dst = SC_MEMORY_DEVICE,
       .src = SC_MEMORY_DEVICE);
  H2D_ASYNC(&f, S1, SC_MEMORY_PAGEABLE);
  CALL(&f, "cudaMemsetAsync", .stream = S1, .dst = SC_MEMORY_DEVICE);
  CALL(&f, "cudaMemset", .dst = SC_MEMORY_DEVICE);
  CALL(&f, "cudaMemset3D", .dst = SC_MEMORY_ARRAY);
  CALL(&f, "cudaMalloc");
  CALL(&f, "cudaHostRegister");
  CALL(&f, "cudaEventDestroy");
  CALL(&f, "cudaStreamDestroy");
  CALL(&f, "cudaFreeAsync", .stream = S1, .object = 0x1000);
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2D, .dst = SC_MEMORY_UNKNOWN,
       .src = SC_MEMORY_UNKNOWN);
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_H2D, .dst = SC_MEMORY_UNKNOWN,
       .src = SC_MEMORY_PINNED);
  CALL(&f, "cudaMemcpyPeer", .dst = SC_MEMORY_DEVICE, .src = SC_MEMORY_DEVICE);
  NOTHING(&f);
}

TEST(size_0_does_not_block_and_gives_no_work)
{
  OPEN;
  CALL(&f, "cudaMemcpy", .empty = true, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
       .src = SC_MEMORY_DEVICE);
  CALL(&f, "cudaMemcpyAsync", .empty = true, .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
       .src = SC_MEMORY_DEVICE);
  CALL(&f, "cudaMemcpyAsync", .empty = true, .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_UNKNOWN,
       .src = SC_MEMORY_DEVICE);
  CALL(&f, "cudaMemset", .empty = true, .dst = SC_MEMORY_PINNED);
  feed_end(&f);
  assert_int_equal(f.process->counts.syncs, 0);
  assert_int_equal(f.process->counts.uncertain, 0);
  assert_int_equal(f.process->counts.submissions, 0);
  assert_int_equal(f.process->counts.d2h_copies, 0);
  feed_close(&f);
}

TEST(memset_of_host_and_managed_memory_is_a_copy)
{
  static const uint8_t memory[] = {SC_MEMORY_PAGEABLE, SC_MEMORY_PINNED, SC_MEMORY_MANAGED};
  for (size_t i = 0; i < SC_COUNTOF(memory); ++i) {
    OPEN;
    CALL(&f, "cudaMemset", .dst = memory[i]);
    ENDS_WITH(&f, .copy = 1);
  }
}

TEST(memset_of_unknown_memory_is_uncertain)
{
  OPEN;
  CALL(&f, "cudaMemset", .dst = SC_MEMORY_UNKNOWN);
  SYNC(&f, SC_STREAM_LEGACY); /* one or two syncs: this does not settle it */
  ENDS_WITH(&f, .explicit_ = 1, .uncertain = 1);
}

TEST(async_copy_to_pageable_memory_blocks_whatever_its_source)
{
  static const uint8_t sources[] = {SC_MEMORY_DEVICE, SC_MEMORY_MANAGED, SC_MEMORY_PINNED, SC_MEMORY_PAGEABLE,
                                    SC_MEMORY_UNKNOWN};
  for (size_t i = 0; i < SC_COUNTOF(sources); ++i) {
    OPEN;
    CALL(&f, "cudaMemcpyAsync", .stream = S1, .flags = SC_CALL_UNKNOWN_DIRECTION, .dst = SC_MEMORY_PAGEABLE,
         .src = sources[i]);
    bool from_host = sources[i] == SC_MEMORY_PINNED || sources[i] == SC_MEMORY_PAGEABLE;
    ENDS_WITH(&f, .pageable = 1, .read_backs = !from_host);
  }
}

TEST(async_copy_to_pinned_or_managed_memory_does_not_block)
{
  OPEN;
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .dst = SC_MEMORY_PINNED, .src = SC_MEMORY_DEVICE);
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .dst = SC_MEMORY_MANAGED, .src = SC_MEMORY_DEVICE);
  NOTHING(&f);
}

/* ---- the merge rule -------------------------------------------------------------------------- */

TEST(legacy_and_per_thread_default_streams_are_two)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  MEMCPY_D2H(&f);
  SYNC(&f, SC_STREAM_PER_THREAD);
  ENDS_WITH(&f, .copy = 1, .explicit_ = 1, .read_backs = 1);

  feed_open(&f); /* a _ptds call works on the per-thread default stream */
  CALL(&f, "cudaMemcpy_ptds_v7000", .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE, .src = SC_MEMORY_DEVICE);
  SYNC(&f, SC_STREAM_PER_THREAD);
  ENDS_WITH(&f, .copy = 1, .read_backs = 1);

  feed_open(&f);
  CALL(&f, "cudaMemcpy_ptds_v7000", .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE, .src = SC_MEMORY_DEVICE);
  SYNC(&f, SC_STREAM_LEGACY);
  ENDS_WITH(&f, .copy = 1, .explicit_ = 1, .read_backs = 1);

  feed_open(&f); /* a stream synchronise of an importer that gives 0 for the default stream */
  D2H_PAGEABLE(&f, SC_STREAM_PER_THREAD);
  CALL(&f, "cudaStreamSynchronize_ptsz_v7000", .stream = 0);
  ENDS_WITH(&f, .pageable = 1, .read_backs = 1);
}

TEST(default_streams_of_two_devices_are_two)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  CALL(&f, "cudaMemcpy", .device = 1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
       .src = SC_MEMORY_DEVICE);
  CALL(&f, "cudaStreamSynchronize", .device = 2, .stream = SC_STREAM_LEGACY);
  ENDS_WITH(&f, .copy = 1, .explicit_ = 1, .read_backs = 1);
  feed_open(&f);
  CALL(&f, "cudaMemcpy", .device = 2, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
       .src = SC_MEMORY_DEVICE);
  CALL(&f, "cudaStreamSynchronize", .device = 2, .stream = SC_STREAM_LEGACY);
  ENDS_WITH(&f, .copy = 1, .read_backs = 1);
}

TEST(only_one_synchronise_joins)
{
  OPEN;
  D2H_PAGEABLE(&f, S1);
  SYNC(&f, S1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .pageable = 1, .explicit_ = 1, .read_backs = 1, .idle = 1);
}

TEST(every_submission_between_breaks_the_merge)
{
  static const char *const names[] = {"cudaMemcpyAsync",       "cudaMemsetAsync",      "cudaLaunchHostFunc",
                                      "cudaStreamAddCallback", "cudaMemPrefetchAsync", "cudaLaunchKernel",
                                      "cudaGraphLaunch"};
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    OPEN;
    bool launch = strstr(names[i], "Launch") && !strstr(names[i], "Host");
    D2H_PAGEABLE(&f, S1);
    CALL(&f, names[i], .stream = S2, .direction = SC_DIRECTION_D2D, .dst = SC_MEMORY_DEVICE, .src = SC_MEMORY_DEVICE);
    SYNC(&f, S1);
    ENDS_WITH(&f, .pageable = 1, .explicit_ = 1, .read_backs = 1, .launches = launch);
  }
}

TEST(a_blocking_call_between_breaks_the_merge)
{
  OPEN;
  D2H_PAGEABLE(&f, S1);
  CALL(&f, "cudaFree", .object = 0x1000);
  SYNC(&f, S1);
  ENDS_WITH(&f, .pageable = 1, .implicit = 1, .explicit_ = 1, .read_backs = 1, .idle = 1);
}

TEST(what_neither_blocks_nor_submits_does_not_break_the_merge)
{
  OPEN;
  D2H_PAGEABLE(&f, S1);
  feed_push(&f, NULL, "a");
  CALL(&f, "cudaFree", .flags = SC_CALL_NULL_POINTER);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 1, .status = 600);
  CALL(&f, "cudaMemcpy", .status = 1, .direction = SC_DIRECTION_H2D, .dst = SC_MEMORY_DEVICE,
       .src = SC_MEMORY_PAGEABLE);
  CALL(&f, "cudaMemcpyAsync", .empty = true, .stream = S1, .direction = SC_DIRECTION_H2D, .dst = SC_MEMORY_DEVICE,
       .src = SC_MEMORY_PINNED);
  CALL(&f, "cudaGraphDestroy");
  SYNC(&f, S1);
  feed_pop(&f, NULL);
  ENDS_WITH(&f, .pageable = 1, .read_backs = 1, .failed = 1, .lifecycle = 1);
}

TEST(uploads_and_host_copies_do_not_merge)
{
  OPEN;
  CALL(&f, "cudaMemcpy", .direction = SC_DIRECTION_H2D, .dst = SC_MEMORY_DEVICE, .src = SC_MEMORY_PAGEABLE);
  SYNC(&f, SC_STREAM_LEGACY);
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_H2H, .dst = SC_MEMORY_PAGEABLE,
       .src = SC_MEMORY_PINNED);
  SYNC(&f, S1);
  ENDS_WITH(&f, .copy = 1, .pageable = 1, .explicit_ = 2, .uploads = 1, .idle = 2);
}

TEST(nothing_is_concluded_across_a_gap_in_the_records)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  D2H_PAGEABLE(&f, S1);
  sc_analysis_gap(f.analysis, f.thread);
  SYNC(&f, S1); /* not merged, not idle */
  ENDS_WITH(&f, .pageable = 1, .explicit_ = 1, .read_backs = 1);
  feed_open(&f);
  D2H_PINNED(&f, S1);
  sc_analysis_gap(f.analysis, f.thread);
  SYNC(&f, S1); /* no read-back: somebody may have waited for it */
  ENDS_WITH(&f, .explicit_ = 1);
  feed_open(&f);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 1, .status = 600);
  sc_analysis_gap(f.analysis, f.thread);
  CALL(&f, "cudaEventQuery", .object = EVENT);
  NOTHING(&f);
}

/* ---- failed and captured ---------------------------------------------------------------------- */

TEST(refused_calls_are_failed)
{
  static const int16_t codes[] = {1, 700, 900, 901, 902, 903, 904, 905, 906, 907, 908};
  for (size_t i = 0; i < SC_COUNTOF(codes); ++i) {
    OPEN;
    SYNC(&f, S1);
    CALL(&f, "cudaStreamSynchronize", .stream = S1, .status = codes[i]);
    CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
         .src = SC_MEMORY_DEVICE, .status = codes[i], .flags = SC_CALL_CAPTURED);
    ENDS_WITH(&f, .explicit_ = 1, .failed = 2);
  }
}

TEST(captured_calls_count_only_those_that_could_block)
{
  OPEN;
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PINNED,
       .src = SC_MEMORY_DEVICE, .flags = SC_CALL_CAPTURED);
  CALL(&f, "cudaLaunchHostFunc", .stream = S1, .flags = SC_CALL_CAPTURED);
  CALL(&f, "cudaMemsetAsync", .stream = S1, .flags = SC_CALL_CAPTURED, .dst = SC_MEMORY_DEVICE);
  feed_end(&f);
  assert_int_equal(f.process->counts.captured, 0);
  assert_int_equal(f.process->counts.submissions, 0);
  assert_int_equal(f.process->counts.d2h_copies, 0);
  assert_int_equal(f.process->counts.host_functions, 0);
  feed_close(&f);
}

/* ---- read-backs, uploads, idle ----------------------------------------------------------------- */

TEST(a_sync_of_another_stream_is_no_read_back)
{
  OPEN;
  D2H_PINNED(&f, S1);
  SYNC(&f, S2);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 2, .read_backs = 1);
}

TEST(device_and_event_syncs_make_copies_visible)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  D2H_PINNED(&f, S1);
  D2H_PINNED(&f, S2);
  CALL(&f, "cudaDeviceSynchronize");
  SYNC(&f, S1); /* nothing left to see */
  ENDS_WITH(&f, .explicit_ = 2, .read_backs = 1, .idle = 1);
  feed_open(&f);
  D2H_PINNED(&f, S1);
  CALL(&f, "cudaEventSynchronize", .object = EVENT);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 2, .read_backs = 1);
}

TEST(a_device_sync_of_another_device_shows_nothing)
{
  OPEN;
  CALL(&f, "cudaMemcpyAsync", .device = 1, .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PINNED,
       .src = SC_MEMORY_DEVICE);
  CALL(&f, "cudaDeviceSynchronize", .device = 2);
  ENDS_WITH(&f, .explicit_ = 1);
  feed_open(&f);
  CALL(&f, "cudaMemcpyAsync", .device = 1, .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PINNED,
       .src = SC_MEMORY_DEVICE);
  CALL(&f, "cudaDeviceSynchronize", .device = 2);
  CALL(&f, "cudaDeviceSynchronize", .device = 1);
  ENDS_WITH(&f, .explicit_ = 2, .read_backs = 1);
}

TEST(an_upload_is_one_only_when_nothing_came_between)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  H2D_ASYNC(&f, S1, SC_MEMORY_PINNED);
  feed_launches(&f, 1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1, .launches = 1);
  feed_open(&f);
  H2D_ASYNC(&f, S1, SC_MEMORY_PINNED);
  SYNC(&f, S2);
  ENDS_WITH(&f, .explicit_ = 1);
  feed_open(&f); /* it shows a copy, too: a read-back, and not counted twice in the floor */
  D2H_PINNED(&f, S1);
  H2D_ASYNC(&f, S1, SC_MEMORY_PINNED);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1, .read_backs = 1);
}

TEST(idle_is_said_only_where_the_last_sync_covered_it)
{
  struct feed f;
  (void)state;
  feed_open(&f); /* the first sync of a thread: others may have submitted */
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1);
  feed_open(&f);
  feed_launches(&f, 2); /* on either stream: launches do not say */
  SYNC(&f, S1);
  SYNC(&f, S2);
  ENDS_WITH(&f, .explicit_ = 2, .launches = 2);
  feed_open(&f);
  CALL(&f, "cudaDeviceSynchronize");
  SYNC(&f, S2);
  CALL(&f, "cudaDeviceSynchronize"); /* after a stream's only */
  ENDS_WITH(&f, .explicit_ = 3, .idle = 1);
  feed_open(&f);
  SYNC(&f, S1);
  feed_submissions(&f, 1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 2);
}

/* ---- uncertain ---------------------------------------------------------------------------------- */

TEST(d2h_to_unknown_memory_is_uncertain)
{
  OPEN;
  D2H_UNKNOWN(&f, S1);
  ENDS_WITH(&f, .uncertain = 1);
}

TEST(a_stream_sync_directly_after_settles_unknown_memory)
{
  OPEN;
  D2H_UNKNOWN(&f, S1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1, .read_backs = 1);
}

TEST(a_later_or_another_sync_does_not_settle_it)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  D2H_UNKNOWN(&f, S1);
  feed_launches(&f, 1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1, .read_backs = 1, .uncertain = 1, .launches = 1);
  feed_open(&f);
  D2H_UNKNOWN(&f, S1);
  SYNC(&f, S2);
  ENDS_WITH(&f, .explicit_ = 1, .uncertain = 1);
  feed_open(&f);
  D2H_UNKNOWN(&f, S1);
  CALL(&f, "cudaDeviceSynchronize");
  ENDS_WITH(&f, .explicit_ = 1, .read_backs = 1, .uncertain = 1);
  feed_open(&f);
  D2H_UNKNOWN(&f, S1); /* one or two: as with two pageable copies */
  D2H_UNKNOWN(&f, S1);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1, .read_backs = 1, .uncertain = 1);
}

TEST(unknown_direction_is_uncertain_where_it_matters)
{
  struct feed f;
  (void)state;
  feed_open(&f); /* async, both sides unknown */
  CALL(&f, "cudaMemcpyBatchAsync", .stream = S1, .flags = SC_CALL_UNKNOWN_DIRECTION);
  ENDS_WITH(&f, .uncertain = 1);
  feed_open(&f);
  CALL(&f, "cudaMemcpyBatchAsync", .stream = S1, .flags = SC_CALL_UNKNOWN_DIRECTION);
  SYNC(&f, S1);
  ENDS_WITH(&f, .explicit_ = 1);
  feed_open(&f); /* async to the device, from wherever */
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .flags = SC_CALL_UNKNOWN_DIRECTION, .dst = SC_MEMORY_DEVICE);
  NOTHING(&f);
  feed_open(&f); /* synchronous: device to device does not block */
  CALL(&f, "cuMemcpy", .flags = SC_CALL_UNKNOWN_DIRECTION);
  ENDS_WITH(&f, .uncertain = 1);
  feed_open(&f); /* and a synchronise after an upload would be a second sync */
  CALL(&f, "cuMemcpy", .flags = SC_CALL_UNKNOWN_DIRECTION);
  SYNC(&f, SC_STREAM_LEGACY);
  ENDS_WITH(&f, .explicit_ = 1, .uncertain = 1);
  feed_open(&f); /* from host memory it blocks whichever way it goes */
  CALL(&f, "cuMemcpy", .flags = SC_CALL_UNKNOWN_DIRECTION, .src = SC_MEMORY_PAGEABLE);
  ENDS_WITH(&f, .copy = 1);
}

TEST(a_name_without_known_layout_is_uncertain_unless_the_name_says_it)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  CALL(&f, "cudaMemcpy", .empty = true, .flags = SC_CALL_NO_ARGUMENTS);
  CALL(&f, "cudaMemcpyAsync", .empty = true, .flags = SC_CALL_NO_ARGUMENTS);
  CALL(&f, "cudaFree", .flags = SC_CALL_NO_ARGUMENTS);
  CALL(&f, "cuMemcpyDtoH_v2", .empty = true, .flags = SC_CALL_NO_ARGUMENTS);
  ENDS_WITH(&f, .copy = 1, .read_backs = 1, .uncertain = 3);
  feed_open(&f); /* a synchronise of we do not know which stream, where it could merge */
  D2H_PAGEABLE(&f, S1);
  CALL(&f, "cudaStreamSynchronize", .flags = SC_CALL_NO_ARGUMENTS);
  ENDS_WITH(&f, .pageable = 1, .explicit_ = 1, .read_backs = 1, .uncertain = 1);
}

TEST(uncertain_is_warned_of_with_its_number)
{
  OPEN;
  D2H_UNKNOWN(&f, S1);
  D2H_UNKNOWN(&f, S2);
  feed_end(&f);
  assert_true(feed_warned(&f, "2 calls could not be judged"));
  feed_close(&f);
}

/* ---- polls ---------------------------------------------------------------------------------------- */

TEST(merged_polls_are_one_wait_when_they_end_ready)
{
  OPEN;
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 41, .status = 0);
  CALL(&f, "cudaStreamQuery", .stream = S1, .bytes = 1, .status = 0);
  feed_end(&f);
  assert_int_equal(f.process->counts.poll_waits, 2);
  assert_int_equal(f.process->counts.syncs, 0);
  assert_int_equal(f.process->counts.api_calls, 42 + 2);
  assert_int_equal(f.process->counts.failed, 0);
  feed_close(&f);
}

TEST(a_first_query_that_is_ready_is_no_wait)
{
  OPEN;
  CALL(&f, "cudaEventQuery", .object = EVENT);
  feed_end(&f);
  assert_int_equal(f.process->counts.poll_waits, 0);
  assert_int_equal(f.process->counts.api_calls, 1);
  feed_close(&f);
}

TEST(polls_that_never_become_ready_are_no_wait)
{
  OPEN;
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 5, .status = 600);
  feed_end(&f);
  assert_int_equal(f.process->counts.poll_waits, 0);
  assert_int_equal(f.process->counts.failed, 0);
  assert_int_equal(f.process->counts.api_calls, 5);
  feed_close(&f);
}

TEST(a_poll_cut_in_two_is_still_one_wait)
{
  OPEN;
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 5, .status = 600);
  feed_push(&f, NULL, "a range is no call");
  feed_pop(&f, NULL);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 0, .status = 0);
  ENDS_WITH(&f, .polls = 1);
}

TEST(queries_one_by_one_make_the_same_wait)
{
  OPEN;
  for (int i = 0; i < 4; ++i)
    CALL(&f, "cudaStreamQuery", .stream = S1, .status = 600);
  CALL(&f, "cudaStreamQuery", .stream = S1);
  feed_end(&f);
  assert_int_equal(f.process->counts.poll_waits, 1);
  assert_int_equal(f.process->counts.api_calls, 5);
  feed_close(&f);
}

TEST(a_poll_ends_at_another_call_object_function_or_thread)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 1, .status = 600);
  D2H_PINNED(&f, S1);
  CALL(&f, "cudaEventQuery", .object = EVENT);
  NOTHING(&f);
  feed_open(&f);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 1, .status = 600);
  feed_launches(&f, 1);
  CALL(&f, "cudaEventQuery", .object = EVENT);
  ENDS_WITH(&f, .launches = 1);
  feed_open(&f);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 1, .status = 600);
  CALL(&f, "cudaEventQuery", .object = EVENT + 8);
  NOTHING(&f);
  feed_open(&f);
  CALL(&f, "cudaEventQuery", .object = S1, .bytes = 1, .status = 600);
  CALL(&f, "cudaStreamQuery", .stream = S1);
  NOTHING(&f);
  feed_open(&f);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 1, .status = 600);
  feed_thread(&f, 2);
  CALL(&f, "cudaEventQuery", .object = EVENT);
  NOTHING(&f);
}

TEST(a_query_that_fails_is_failed)
{
  OPEN;
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 3, .status = 700);
  feed_end(&f);
  assert_int_equal(f.process->counts.failed, 1);
  assert_int_equal(f.process->counts.poll_waits, 0);
  assert_int_equal(f.process->counts.api_calls, 4);
  feed_close(&f);
}

/* ---- waits, calls, threads ------------------------------------------------------------------------- */

TEST(wait_is_time_inside_blocking_calls_without_gaps)
{
  OPEN;
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
       .src = SC_MEMORY_DEVICE, .duration_ns = 1000);
  f.now_ns += 1000000;
  CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 200);
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PINNED,
       .src = SC_MEMORY_DEVICE, .duration_ns = 70000);
  CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 30);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 3, .duration_ns = 5000);
  feed_end(&f);
  assert_int_equal(f.process->counts.wait_ns, 1230);
  assert_true(f.process->threads[0].wait_us == 1.23);
  feed_close(&f);
}

TEST(api_calls_submissions_and_launches)
{
  OPEN;
  feed_launches(&f, 3);
  feed_submissions(&f, 2);
  D2H_PINNED(&f, S1);
  SYNC(&f, S1);
  MEMCPY_D2H(&f);
  CALL(&f, "cudaLaunchHostFunc", .stream = S1);
  CALL(&f, "cudaMemset", .dst = SC_MEMORY_DEVICE);
  feed_launches(&f, 1); /* carried by no record: the tail */
  feed_end(&f);
  const struct sc_counts *got = &f.process->counts;
  assert_int_equal(got->launches, 4);
  assert_int_equal(got->submissions, 5 + 1 + 1 + 1 + 1 + 1);
  assert_int_equal(got->api_calls, 5 + 4);
  assert_int_equal(got->d2h_copies, 2);
  assert_int_equal(got->host_functions, 1);
  assert_int_equal(f.process->threads[0].launches, 4);
  feed_close(&f);
}

TEST(threads_have_names_and_their_own_counts)
{
  OPEN;
  assert_true(sc_analysis_thread_name(f.thread, "main", 4));
  SYNC(&f, S1);
  feed_thread(&f, 9);
  feed_launches(&f, 7);
  SYNC(&f, S1);
  SYNC(&f, S1);
  CALL(&f, "cudaEventQuery", .object = EVENT, .bytes = 1);
  feed_end(&f);
  assert_int_equal(f.process->thread_count, 2);
  assert_string_equal(f.process->threads[0].name, "main");
  assert_null(f.process->threads[1].name);
  assert_int_equal(f.process->threads[0].syncs, 1);
  assert_int_equal(f.process->threads[1].syncs, 2);
  assert_int_equal(f.process->threads[1].launches, 7);
  assert_int_equal(f.process->threads[1].poll_waits, 1);
  assert_int_equal(f.process->threads[1].serial, 9);
  feed_close(&f);
}

TEST(many_threads_are_told_apart)
{
  OPEN;
  for (uint64_t i = 1; i <= 500; ++i) {
    feed_thread(&f, i * 977);
    for (uint64_t j = 0; j < i; ++j)
      SYNC(&f, S1);
  }
  for (uint64_t i = 1; i <= 500; ++i) {
    feed_thread(&f, i * 977);
    SYNC(&f, S1);
  }
  feed_end(&f);
  for (size_t i = 0; i < f.process->thread_count; ++i) {
    uint64_t serial = f.process->threads[i].serial;
    assert_int_equal(f.process->threads[i].syncs, serial == 1 ? 0 : serial / 977 + 1);
  }
  assert_int_equal(f.process->thread_count, 501); /* and the one of feed_open */
  feed_close(&f);
}

/* ---- hidden waits ---------------------------------------------------------------------------------- */

TEST(copies_and_host_functions_without_a_blocking_call_raise_a_notice)
{
  OPEN;
  feed_thread(&f, 2);
  assert_true(sc_analysis_thread_name(f.thread, "tf_XLA", 6));
  for (int i = 0; i < 20; ++i) {
    D2H_PINNED(&f, S1);
    CALL(&f, "cuLaunchHostFunc", .stream = S1);
  }
  feed_end(&f);
  assert_int_equal(f.process->counts.syncs, 0);
  assert_true(feed_warned(
      &f, "20 device-to-host copies and 20 host functions on thread 1002 (tf_XLA) without a blocking call"));
  feed_close(&f);
}

/* Where nothing can be missing at the end, that is no explanation. */
TEST(a_copy_whose_wait_may_be_cut_off_is_said_to_be_so)
{
  static const char cut[] = "or recording ended before the call that does";
  for (int whole = 0; whole < 2; ++whole) {
    OPEN;
    f.whole = whole;
    D2H_PINNED(&f, S1);
    feed_end(&f);
    assert_true(feed_warned(&f, "1 device-to-host copies"));
    assert_int_equal(feed_warned(&f, cut), !whole);
    feed_close(&f);
  }
}

TEST(a_thread_with_a_blocking_call_raises_no_notice)
{
  OPEN;
  D2H_PINNED(&f, S1);
  SYNC(&f, S1);
  feed_end(&f);
  assert_int_equal(f.findings->warning_count, 0);
  feed_close(&f);
}

TEST(an_unknown_api_id_is_warned_of)
{
  OPEN;
  struct sc_record_call record = {.head = {.kind = SC_RECORD_CALL, .units = 1}, .start_ns = 5, .api = 999};
  sc_analysis_record(f.analysis, f.thread, &record.head);
  feed_end(&f);
  assert_true(feed_warned(&f, "1 calls have no name"));
  feed_close(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pinned_d2h_alone_is_no_sync),
      cmocka_unit_test(pinned_d2h_launches_stream_sync_is_one_explicit),
      cmocka_unit_test(item_is_one_explicit_read_back),
      cmocka_unit_test(two_pinned_d2h_and_one_sync_is_one),
      cmocka_unit_test(tolist_is_one_pageable),
      cmocka_unit_test(two_pageable_d2h_and_one_sync_are_two),
      cmocka_unit_test(a_launch_between_pageable_d2h_and_sync_makes_two),
      cmocka_unit_test(memcpy_d2h_and_sync_of_its_own_stream_is_one_copy),
      cmocka_unit_test(memcpy_d2h_and_device_sync_are_two),
      cmocka_unit_test(memcpy_d2h_and_event_sync_are_two),
      cmocka_unit_test(memcpy_d2h_and_sync_of_another_stream_are_two),
      cmocka_unit_test(async_h2d_and_sync_is_one_blocking_upload),
      cmocka_unit_test(memcpy_h2d_and_to_symbol_are_one_copy_and_an_upload),
      cmocka_unit_test(memcpy_h2h_is_one_copy),
      cmocka_unit_test(memcpy_from_symbol_is_one_copy_and_a_read_back),
      cmocka_unit_test(stream_sync_with_nothing_outstanding_is_one_explicit),
      cmocka_unit_test(copy_on_one_thread_and_sync_on_another_is_one_there),
      cmocka_unit_test(graph_launch_and_sync_is_one_explicit),
      cmocka_unit_test(pageable_copy_during_capture_is_no_sync),
      cmocka_unit_test(free_of_null_and_of_pool_memory_is_no_sync),
      cmocka_unit_test(explicit_calls_of_runtime_and_driver),
      cmocka_unit_test(implicit_calls_of_runtime_and_driver),
      cmocka_unit_test(lifecycle_calls_are_listed_not_counted),
      cmocka_unit_test(what_does_not_block),
      cmocka_unit_test(size_0_does_not_block_and_gives_no_work),
      cmocka_unit_test(memset_of_host_and_managed_memory_is_a_copy),
      cmocka_unit_test(memset_of_unknown_memory_is_uncertain),
      cmocka_unit_test(async_copy_to_pageable_memory_blocks_whatever_its_source),
      cmocka_unit_test(async_copy_to_pinned_or_managed_memory_does_not_block),
      cmocka_unit_test(legacy_and_per_thread_default_streams_are_two),
      cmocka_unit_test(default_streams_of_two_devices_are_two),
      cmocka_unit_test(only_one_synchronise_joins),
      cmocka_unit_test(every_submission_between_breaks_the_merge),
      cmocka_unit_test(a_blocking_call_between_breaks_the_merge),
      cmocka_unit_test(what_neither_blocks_nor_submits_does_not_break_the_merge),
      cmocka_unit_test(uploads_and_host_copies_do_not_merge),
      cmocka_unit_test(nothing_is_concluded_across_a_gap_in_the_records),
      cmocka_unit_test(refused_calls_are_failed),
      cmocka_unit_test(captured_calls_count_only_those_that_could_block),
      cmocka_unit_test(a_sync_of_another_stream_is_no_read_back),
      cmocka_unit_test(device_and_event_syncs_make_copies_visible),
      cmocka_unit_test(a_device_sync_of_another_device_shows_nothing),
      cmocka_unit_test(an_upload_is_one_only_when_nothing_came_between),
      cmocka_unit_test(idle_is_said_only_where_the_last_sync_covered_it),
      cmocka_unit_test(d2h_to_unknown_memory_is_uncertain),
      cmocka_unit_test(a_stream_sync_directly_after_settles_unknown_memory),
      cmocka_unit_test(a_later_or_another_sync_does_not_settle_it),
      cmocka_unit_test(unknown_direction_is_uncertain_where_it_matters),
      cmocka_unit_test(a_name_without_known_layout_is_uncertain_unless_the_name_says_it),
      cmocka_unit_test(uncertain_is_warned_of_with_its_number),
      cmocka_unit_test(merged_polls_are_one_wait_when_they_end_ready),
      cmocka_unit_test(a_first_query_that_is_ready_is_no_wait),
      cmocka_unit_test(polls_that_never_become_ready_are_no_wait),
      cmocka_unit_test(a_poll_cut_in_two_is_still_one_wait),
      cmocka_unit_test(queries_one_by_one_make_the_same_wait),
      cmocka_unit_test(a_poll_ends_at_another_call_object_function_or_thread),
      cmocka_unit_test(a_query_that_fails_is_failed),
      cmocka_unit_test(wait_is_time_inside_blocking_calls_without_gaps),
      cmocka_unit_test(api_calls_submissions_and_launches),
      cmocka_unit_test(threads_have_names_and_their_own_counts),
      cmocka_unit_test(many_threads_are_told_apart),
      cmocka_unit_test(copies_and_host_functions_without_a_blocking_call_raise_a_notice),
      cmocka_unit_test(a_copy_whose_wait_may_be_cut_off_is_said_to_be_so),
      cmocka_unit_test(a_thread_with_a_blocking_call_raises_no_notice),
      cmocka_unit_test(an_unknown_api_id_is_warned_of),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
