/* SPDX-License-Identifier: Apache-2.0
 * Call names: suffixes, ops, directions, and that no name of the toolkit's CUPTI is unknown. */
#include "test_support.h"

#include <string.h>

#include "trace/calls.h"
#include "trace/count.h"
#include "trace/format.h"

#ifndef HAVE_CUPTI
#define HAVE_CUPTI 0
#endif
#if HAVE_CUPTI
#include <cupti.h>
#endif

static void assert_base(const char *name, const char *base, bool per_thread) {
  struct sc_call_name parsed;

  sc_call_parse_name(name, &parsed);
  assert_string_equal(parsed.base, base);
  assert_int_equal(parsed.per_thread, per_thread);
}

static void names_lose_their_suffixes_in_any_order(void **state) {
  (void)state;
  assert_base("cudaMemcpyAsync", "cudaMemcpyAsync", false);
  assert_base("cudaMemcpyAsync_v3020", "cudaMemcpyAsync", false);
  assert_base("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync", true);
  assert_base("cudaMemcpy_ptds_v7000", "cudaMemcpy", true);
  assert_base("cuMemcpyDtoH_v2", "cuMemcpyDtoH", false);
  assert_base("cuMemcpyDtoH_v2_ptds", "cuMemcpyDtoH", true);
  assert_base("cudaStreamGetCaptureInfo_v2_ptsz_v11030", "cudaStreamGetCaptureInfo", true);
  assert_base("__cudaLaunchKernel_ptsz_v13000", "__cudaLaunchKernel", true);
}

static void names_that_only_look_suffixed_stay_whole(void **state) {
  (void)state;
  assert_base("", "", false);
  assert_base("_v2", "_v2", false);
  assert_base("_ptsz", "_ptsz", false);
  assert_base("cudaMemcpy_v", "cudaMemcpy_v", false);
  assert_base("cudaMemcpy3D", "cudaMemcpy3D", false);
  assert_base("cuMemsetD32", "cuMemsetD32", false);
  assert_base("12", "12", false);
}

static void overlong_names_are_cut_and_not_found(void **state) {
  char name[4096];
  struct sc_call_name parsed;

  (void)state;
  memset(name, 'a', sizeof name);
  name[sizeof name - 1] = '\0';
  sc_call_parse_name(name, &parsed);
  assert_int_equal(strlen(parsed.base), sizeof parsed.base - 1);
  assert_int_equal(sc_call_op(name), SC_OP_NONE);
}

static void ops_are_those_of_the_design(void **state) {
  static const struct {
    const char *name;
    enum sc_op op;
  } expected[] = {
    {"cudaStreamSynchronize", SC_OP_SYNC_STREAM},
    {"cuStreamSynchronize_ptsz", SC_OP_SYNC_STREAM},
    {"cudaEventSynchronize_v3020", SC_OP_SYNC_EVENT},
    {"cudaDeviceSynchronize_v3020", SC_OP_SYNC_DEVICE},
    {"cudaThreadSynchronize_v3020", SC_OP_SYNC_DEVICE},
    {"cuCtxSynchronize", SC_OP_SYNC_DEVICE},
    {"cuCtxSynchronize_v2", SC_OP_SYNC_DEVICE},
    {"cudaMemcpy", SC_OP_COPY},
    {"cudaMemcpyToSymbol_ptds_v7000", SC_OP_COPY},
    {"cudaMemcpy2DArrayToArray_v3020", SC_OP_COPY},
    {"cuMemcpyDtoH_v2_ptds", SC_OP_COPY},
    {"cuMemcpy2DUnaligned_v2", SC_OP_COPY},
    {"cudaMemcpyAsync_ptsz_v7000", SC_OP_COPY_ASYNC},
    {"cudaMemcpyBatchAsync_v13000", SC_OP_COPY_ASYNC},
    {"cuMemcpy3DBatchAsync_v2_ptsz", SC_OP_COPY_ASYNC},
    {"cudaMemset", SC_OP_MEMSET},
    {"cuMemsetD2D32_v2", SC_OP_MEMSET},
    {"cuMemsetD8Async", SC_OP_MEMSET_ASYNC},
    {"cudaStreamQuery", SC_OP_QUERY_STREAM},
    {"cuEventQuery", SC_OP_QUERY_EVENT},
    {"cudaFree", SC_OP_FREE},
    {"cudaFreeArray", SC_OP_FREE},
    {"cudaFreeMipmappedArray", SC_OP_FREE},
    {"cuMemFree_v2", SC_OP_FREE},
    {"cuArrayDestroy", SC_OP_FREE},
    {"cuMipmappedArrayDestroy", SC_OP_FREE},
    {"cudaFreeHost", SC_OP_FREE_HOST},
    {"cuMemFreeHost", SC_OP_FREE_HOST},
    {"cudaHostUnregister", SC_OP_UNREGISTER},
    {"cuMemHostUnregister", SC_OP_UNREGISTER},
    {"cudaFreeAsync_ptsz_v11020", SC_OP_FREE_ASYNC},
    {"cudaMalloc", SC_OP_ALLOC},
    {"cuMemHostAlloc", SC_OP_ALLOC},
    {"cudaHostRegister", SC_OP_REGISTER},
    {"cudaLaunchKernel_v7000", SC_OP_LAUNCH},
    {"__cudaLaunchKernel_v13000", SC_OP_LAUNCH},
    {"cuLaunchKernelEx_ptsz", SC_OP_LAUNCH},
    {"cudaGraphLaunch_ptsz_v10000", SC_OP_GRAPH_LAUNCH},
    {"cudaLaunchHostFunc", SC_OP_HOST_FUNC},
    {"cuStreamAddCallback", SC_OP_HOST_FUNC},
    {"cudaMemPrefetchAsync", SC_OP_PREFETCH},
    {"cuModuleUnload", SC_OP_LIFECYCLE},
    {"cudaMemPoolTrimTo", SC_OP_LIFECYCLE},
    {"cudaGraphExecDestroy", SC_OP_LIFECYCLE},
    {"cudaDeviceReset", SC_OP_LIFECYCLE},
    {"cuMemUnmap", SC_OP_LIFECYCLE},
    {"cudaIpcCloseMemHandle", SC_OP_LIFECYCLE},
    {"cuStreamBeginCapture_v2_ptsz", SC_OP_CAPTURE},
    {"cudaStreamIsCapturing", SC_OP_CAPTURE},
    {"cuMemMap", SC_OP_MAP},
    {"cudaIpcOpenMemHandle", SC_OP_MAP},
    {"cudaEventRecord", SC_OP_EVENT_RECORD},
    {"cuStreamWaitEvent_ptsz", SC_OP_EVENT_RECORD},
    {"cudaStreamDestroy", SC_OP_IGNORED},
    {"cuEventDestroy_v2", SC_OP_IGNORED},
    {"cudaGraphAddMemcpyNode", SC_OP_IGNORED},
    {"cudaGetLastError", SC_OP_NONE},
    {"hipMemcpy", SC_OP_NONE},
    {"", SC_OP_NONE},
  };

  (void)state;
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    if (sc_call_op(expected[i].name) != expected[i].op)
      fail_msg("%s is %s, not %s", expected[i].name, sc_op_name(sc_call_op(expected[i].name)),
               sc_op_name(expected[i].op));
}

static void directions_come_from_names_that_fix_them(void **state) {
  (void)state;
  assert_int_equal(sc_call_direction("cuMemcpyDtoH_v2"), SC_DIRECTION_D2H);
  assert_int_equal(sc_call_direction("cuMemcpyAtoHAsync_v2_ptsz"), SC_DIRECTION_D2H);
  assert_int_equal(sc_call_direction("cuMemcpyHtoDAsync_v2"), SC_DIRECTION_H2D);
  assert_int_equal(sc_call_direction("cuMemcpyDtoD"), SC_DIRECTION_D2D);
  assert_int_equal(sc_call_direction("cudaMemcpyPeerAsync"), SC_DIRECTION_D2D);
  assert_int_equal(sc_call_direction("cudaMemcpyToSymbol_v3020"), SC_DIRECTION_H2D);
  assert_int_equal(sc_call_direction("cudaMemcpyFromSymbolAsync"), SC_DIRECTION_D2H);
  assert_int_equal(sc_call_direction("cudaMemcpyAsync"), SC_DIRECTION_NONE);
  assert_int_equal(sc_call_direction("cudaMemcpyToArray"), SC_DIRECTION_NONE);
  assert_int_equal(sc_call_direction("cuMemsetD2D8"), SC_DIRECTION_NONE); /* two-dimensional, not device to device */
  assert_int_equal(sc_call_direction("cudaStreamSynchronize"), SC_DIRECTION_NONE);
}

static void every_op_has_a_name_of_its_own(void **state) {
  (void)state;
  for (int op = 0; op < SC_OP_COUNT; op++) {
    assert_string_not_equal(sc_op_name((enum sc_op)op), "unknown");
    for (int other = 0; other < op; other++)
      assert_string_not_equal(sc_op_name((enum sc_op)op), sc_op_name((enum sc_op)other));
  }
  assert_string_equal(sc_op_name(SC_OP_COUNT), "unknown");
  assert_string_equal(sc_op_name((enum sc_op)-1), "unknown");
}

static void the_watch_pattern_ignores_case(void **state) {
  (void)state;
  assert_true(sc_call_needs_class("cudaMemPoolTrimTo_v11020"));
  assert_true(sc_call_needs_class("cuIpcCloseMemHandle"));
  assert_true(sc_call_needs_class("CUMEMCPY"));
  assert_false(sc_call_needs_class("cudaGetLastError"));
  assert_false(sc_call_needs_class(""));
}

static void calls_that_could_block(void **state) {
  static const struct {
    enum sc_op op;
    unsigned direction;
    uint32_t dst, flags;
    uint64_t bytes;
    bool could;
  } rows[] = {
    { SC_OP_SYNC_STREAM, 0, 0, 0, 0, true },
    { SC_OP_COPY, SC_DIRECTION_D2H, SC_MEMORY_PINNED, 0, 4, true },
    { SC_OP_COPY, SC_DIRECTION_H2D, SC_MEMORY_DEVICE, 0, 4, true },
    { SC_OP_COPY, SC_DIRECTION_D2D, SC_MEMORY_DEVICE, 0, 4, false },
    { SC_OP_COPY, SC_DIRECTION_D2H, SC_MEMORY_PINNED, 0, 0, false },
    { SC_OP_COPY, SC_DIRECTION_NONE, SC_MEMORY_UNKNOWN, SC_CALL_NO_ARGUMENTS, 0, true },
    { SC_OP_COPY_ASYNC, SC_DIRECTION_D2H, SC_MEMORY_PAGEABLE, 0, 4, true },
    { SC_OP_COPY_ASYNC, SC_DIRECTION_NONE, SC_MEMORY_PAGEABLE, 0, 4, true },
    { SC_OP_COPY_ASYNC, SC_DIRECTION_D2H, SC_MEMORY_PAGEABLE, 0, 0, false },
    { SC_OP_COPY_ASYNC, SC_DIRECTION_D2H, SC_MEMORY_PINNED, 0, 4, false },
    { SC_OP_COPY_ASYNC, SC_DIRECTION_H2D, SC_MEMORY_DEVICE, 0, 4, false },
    { SC_OP_MEMSET, 0, SC_MEMORY_MANAGED, 0, 4, true },
    { SC_OP_MEMSET, 0, SC_MEMORY_DEVICE, 0, 4, false },
    { SC_OP_FREE, 0, SC_MEMORY_DEVICE, 0, 0, true },
    { SC_OP_FREE, 0, SC_MEMORY_UNKNOWN, SC_CALL_NULL_POINTER, 0, false },
    { SC_OP_FREE, 0, SC_MEMORY_DEVICE, SC_CALL_POOL_POINTER, 0, false },
    { SC_OP_MEMSET_ASYNC, 0, SC_MEMORY_PINNED, 0, 4, false },
    { SC_OP_LAUNCH, 0, 0, 0, 0, false },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (sc_call_could_block(rows[i].op, rows[i].direction, rows[i].dst, rows[i].flags, rows[i].bytes) != rows[i].could)
      fail_msg("row %zu", i);
  assert_false(sc_call_was_refused(0));
  assert_false(sc_call_was_refused(899));
  assert_true(sc_call_was_refused(900));
  assert_true(sc_call_was_refused(908));
  assert_false(sc_call_was_refused(909));
}

#if HAVE_CUPTI
/* Calls check for every name of a domain; returns how many there were. */
static unsigned for_each_name(CUpti_CallbackDomain domain, uint32_t size, void (*check)(const char *name)) {
  unsigned names = 0;

  for (uint32_t id = 1; id < size; id++) {
    const char *name = NULL;

    if (cuptiGetCallbackName(domain, id, &name) == CUPTI_SUCCESS && name) {
      check(name);
      names++;
    }
  }
  return names;
}

static void assert_classified(const char *name) {
  if (sc_call_needs_class(name) && sc_call_op(name) == SC_OP_NONE)
    fail_msg("%s is in this toolkit's CUPTI but not in the table of src/trace/calls.c", name);
}

static void assert_base_is_the_same(const char *name) {
  struct sc_call_name parsed;

  sc_call_parse_name(name, &parsed);
  assert_int_equal(sc_call_op(parsed.base), sc_call_op(name));
  assert_int_equal(sc_call_direction(parsed.base), sc_call_direction(name));
}

static void every_watched_name_of_cupti_is_classified(void **state) {
  (void)state;
  assert_true(for_each_name(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, assert_classified) > 700);
  assert_true(for_each_name(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, assert_classified) > 400);
}

static void names_mean_the_same_with_and_without_suffixes(void **state) {
  (void)state;
  assert_true(for_each_name(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, assert_base_is_the_same) > 0);
  assert_true(for_each_name(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, assert_base_is_the_same) > 0);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_lose_their_suffixes_in_any_order),
    cmocka_unit_test(names_that_only_look_suffixed_stay_whole),
    cmocka_unit_test(overlong_names_are_cut_and_not_found),
    cmocka_unit_test(ops_are_those_of_the_design),
    cmocka_unit_test(directions_come_from_names_that_fix_them),
    cmocka_unit_test(every_op_has_a_name_of_its_own),
    cmocka_unit_test(the_watch_pattern_ignores_case),
    cmocka_unit_test(calls_that_could_block),
#if HAVE_CUPTI
    cmocka_unit_test(every_watched_name_of_cupti_is_classified),
    cmocka_unit_test(names_mean_the_same_with_and_without_suffixes),
#endif
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
