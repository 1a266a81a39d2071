/* SPDX-License-Identifier: Apache-2.0
 * From callbacks to records: outermost calls, polls, submissions, memory kinds, capture. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"
#include "tracer/memory.h"

#define STREAM ((cudaStream_t)(uintptr_t)0x5000)
#define OTHER ((cudaStream_t)(uintptr_t)0x6000)
#define EVENT ((cudaEvent_t)(uintptr_t)0x7000)

static char pageable[64];
static char pinned[64];
static char *const device = (char *)(uintptr_t)0x7f0000000000;

static int begin(void **state) {
  (void)state;
  harness_begin(false);
  return 0;
}

static int end(void **state) {
  (void)state;
  harness_end();
  return 0;
}

static int mark(void **state) {
  (void)state;
  harness_mark();
  return 0;
}

static void device_alloc(void *address, size_t size) {
  void *result = address;
  RUNTIME(cudaMalloc_v3020, 0, .devPtr = &result, .size = size);
}

static void pinned_alloc(void *address, size_t size) {
  void *result = address;
  RUNTIME(cudaHostAlloc_v3020, 0, .pHost = &result, .size = size);
}

static void free_host(void *address) { RUNTIME(cudaFreeHost_v3020, 0, .ptr = address); }
static void free_device(void *address) { RUNTIME(cudaFree_v3020, 0, .devPtr = address); }

/* ---- outermost calls --------------------------------------------------------------------------------- */
static void test_runtime_call_is_one_record(void **state) {
  (void)state;
  RUNTIME(cudaStreamSynchronize_v3020, 0, .stream = STREAM);
  struct sc_record_call call = harness_one();
  assert_string_equal(harness_api(&call), "cudaStreamSynchronize_v3020");
  assert_int_equal(call.stream, (uintptr_t)STREAM);
  assert_int_equal(call.status, 0);
  assert_int_equal(SC_CALL_DEVICE(&call), 0);
  assert_true(call.start_ns > 0 && call.duration_ns < 1000000000u);
}

static void test_driver_call_under_runtime_call_is_dropped(void **state) {
  (void)state;
  struct harness_call outer = {
    RT_ID(cudaMemcpy_v3020),
    PARAMS(cudaMemcpy_v3020, .dst = pageable, .src = device, .count = 8, .kind = cudaMemcpyDeviceToHost), 7, NULL
  };
  struct harness_call inner = {
    DR_ID(cuMemcpyDtoH_v2),
    PARAMS(cuMemcpyDtoH_v2, .dstHost = pageable, .srcDevice = (CUdeviceptr)device, .ByteCount = 8), 7, NULL
  };
  harness_enter(&outer);
  for (int i = 0; i < 18; i++) {
    harness_enter(&inner);
    harness_exit(&inner, 0);
  }
  harness_exit(&outer, 0);
  struct sc_record_call call = harness_one();
  assert_string_equal(harness_api(&call), "cudaMemcpy_v3020");
}

static void test_driver_call_under_runtime_call_is_dropped_without_correlation_ids(void **state) {
  (void)state;
  struct harness_call outer = { RT_ID(cudaStreamSynchronize_v3020),
                                PARAMS(cudaStreamSynchronize_v3020, .stream = STREAM), 0, NULL };
  struct harness_call inner = { DR_ID(cuStreamSynchronize), PARAMS(cuStreamSynchronize, .hStream = STREAM), 0, NULL };
  harness_enter(&outer);
  harness_enter(&inner);
  harness_exit(&inner, 0);
  harness_exit(&outer, 0);
  (void)harness_one();
}

static void test_driver_call_alone_is_recorded(void **state) {
  (void)state;
  DRIVER(cuStreamSynchronize, 0, .hStream = STREAM);
  struct sc_record_call call = harness_one();
  assert_string_equal(harness_api(&call), "cuStreamSynchronize");
}

/* 126 is cudaThreadSynchronize in one domain and cuStreamSynchronize in the other. */
static void test_same_id_in_two_domains_is_two_calls(void **state) {
  (void)state;
  RUNTIME_VOID(cudaThreadSynchronize_v3020, 0);
  DRIVER(cuStreamSynchronize, 0, .hStream = STREAM);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->call_count, 2);
  assert_string_equal(harness_api(&records->calls[0]), "cudaThreadSynchronize_v3020");
  assert_int_equal(records->calls[0].stream, 0);
  assert_string_equal(harness_api(&records->calls[1]), "cuStreamSynchronize");
}

static void test_entry_without_exit_does_not_swallow_what_follows(void **state) {
  (void)state;
  struct harness_call lost = { RT_ID(cudaStreamSynchronize_v3020),
                               PARAMS(cudaStreamSynchronize_v3020, .stream = STREAM), 50, NULL };
  uint64_t lost_before = harness_read()->lost;
  harness_enter(&lost);
  RUNTIME(cudaStreamSynchronize_v3020, 0, .stream = OTHER);
  RUNTIME_VOID(cudaDeviceSynchronize_v3020, 0);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->call_count, 2);
  assert_int_equal(records->calls[0].stream, (uintptr_t)OTHER);
  assert_int_equal(records->lost, lost_before + 1); /* a call that is missing is never "nothing lost" */
}

static void test_exit_without_entry_is_ignored(void **state) {
  (void)state;
  struct harness_call lost = { RT_ID(cudaStreamSynchronize_v3020),
                               PARAMS(cudaStreamSynchronize_v3020, .stream = STREAM), 60, NULL };
  harness_exit(&lost, 0);
  assert_int_equal(harness_read()->call_count, 0);
}

static void test_call_without_arguments_lacks_none(void **state) {
  (void)state;
  RUNTIME_VOID(cudaDeviceSynchronize_v3020, 0);
  struct sc_record_call call = harness_one();
  assert_int_equal(SC_CALL_FLAGS(&call), 0);
  harness_mark();
  RUNTIME_VOID(cudaStreamSynchronize_v3020, 0); /* its stream is missing */
  call = harness_one();
  assert_int_equal(SC_CALL_FLAGS(&call), SC_CALL_NO_ARGUMENTS);
}

static void test_failed_call_keeps_its_status(void **state) {
  (void)state;
  RUNTIME(cudaStreamSynchronize_v3020, cudaErrorStreamCaptureUnsupported, .stream = STREAM);
  assert_int_equal(harness_one().status, 900);
}

static void test_default_streams_are_told_apart(void **state) {
  (void)state;
  RUNTIME(cudaStreamSynchronize_v3020, 0, .stream = NULL);
  RUNTIME(cudaStreamSynchronize_ptsz_v7000, 0, .stream = NULL);
  RUNTIME(cudaStreamSynchronize_v3020, 0, .stream = cudaStreamPerThread);
  RUNTIME(cudaMemcpy_ptds_v7000, 0, .dst = pageable, .src = device, .count = 4, .kind = cudaMemcpyDeviceToHost);
  RUNTIME(cudaMemcpy_v3020, 0, .dst = pageable, .src = device, .count = 4, .kind = cudaMemcpyDeviceToHost);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->call_count, 5);
  static const uint64_t expected[] = { SC_STREAM_LEGACY, SC_STREAM_PER_THREAD, SC_STREAM_PER_THREAD,
                                       SC_STREAM_PER_THREAD, SC_STREAM_LEGACY };
  for (size_t i = 0; i < 5; i++)
    assert_int_equal(records->calls[i].stream, expected[i]);
}

static void test_device_of_context_is_recorded(void **state) {
  (void)state;
  static int other_context;
  struct harness_call call = { RT_ID(cudaDeviceSynchronize_v3020), NULL, 70, &other_context };
  harness_enter(&call);
  harness_exit(&call, 0);
  struct sc_record_call record = harness_one();
  assert_int_equal(SC_CALL_DEVICE(&record), 3);
}

static void test_errno_is_kept(void **state) {
  (void)state;
  errno = 4711;
  RUNTIME(cudaStreamSynchronize_v3020, 0, .stream = STREAM);
  assert_int_equal(errno, 4711);
}

/* ---- submissions ------------------------------------------------------------------------------------- */
static void test_launches_are_counted_before_the_next_record(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++)
    DRIVER(cuLaunchKernel, 0, .hStream = STREAM);
  DRIVER(cuGraphLaunch, 0, .hStream = STREAM);
  DRIVER(cuLaunchKernel, CUDA_ERROR_INVALID_VALUE, .hStream = STREAM); /* gave the device nothing */
  RUNTIME(cudaLaunchKernel_v7000, 0, .stream = STREAM); /* is counted by the driver call that it makes */
  RUNTIME(cudaMemcpyAsync_v3020, 0, .dst = device, .src = pageable, .count = 4, .kind = cudaMemcpyHostToDevice,
          .stream = STREAM);
  RUNTIME(cudaStreamSynchronize_v3020, 0, .stream = STREAM);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->call_count, 2);
  assert_int_equal(records->calls[0].head.submissions, 4);
  assert_int_equal(records->calls[0].head.launches, 4);
  assert_int_equal(records->calls[1].head.submissions, 0); /* the copy is one by its own record */
}

/* ---- polls ------------------------------------------------------------------------------------------- */
static void test_polls_merge_into_one_record(void **state) {
  (void)state;
  for (int i = 0; i < 5; i++)
    RUNTIME(cudaEventQuery_v3020, cudaErrorNotReady, .event = EVENT);
  RUNTIME(cudaEventQuery_v3020, 0, .event = EVENT);
  struct sc_record_call call = harness_one();
  assert_int_equal(call.bytes, 5);
  assert_int_equal(call.status, 0);
  assert_int_equal(call.object, (uintptr_t)EVENT);
}

static void test_ready_at_once_is_a_record_with_0(void **state) {
  (void)state;
  RUNTIME(cudaStreamQuery_v3020, 0, .stream = STREAM);
  RUNTIME(cudaStreamQuery_v3020, 0, .stream = STREAM);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->call_count, 2);
  assert_int_equal(records->calls[0].bytes, 0);
}

static void test_poll_ends_at_another_object_call_or_launch(void **state) {
  (void)state;
  RUNTIME(cudaStreamQuery_v3020, cudaErrorNotReady, .stream = STREAM);
  RUNTIME(cudaStreamQuery_v3020, cudaErrorNotReady, .stream = OTHER);
  DRIVER(cuLaunchKernel, 0, .hStream = STREAM);
  RUNTIME(cudaStreamQuery_v3020, cudaErrorNotReady, .stream = OTHER);
  DRIVER(cuStreamQuery, 600, .hStream = OTHER); /* another function */
  const struct harness_records *records = harness_read();
  assert_int_equal(records->call_count, 4);
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(records->calls[i].status, 600);
}

/* ---- memory ------------------------------------------------------------------------------------------ */
static struct sc_record_call copy_async(void *dst, const void *src, enum cudaMemcpyKind kind) {
  harness_mark();
  RUNTIME(cudaMemcpyAsync_v3020, 0, .dst = dst, .src = src, .count = 16, .kind = kind, .stream = STREAM);
  return harness_one();
}

static void test_pinned_and_pageable_are_told_apart(void **state) {
  (void)state;
  pinned_alloc(pinned, sizeof(pinned));
  struct sc_record_call call = copy_async(pinned + 8, device, cudaMemcpyDeviceToHost);
  assert_int_equal(call.direction, SC_DIRECTION_D2H);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PINNED);
  assert_int_equal(SC_CALL_SRC(&call), SC_MEMORY_DEVICE);
  assert_int_equal(call.bytes, 16);
  call = copy_async(pageable, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
  free_host(pinned);
  call = copy_async(pinned, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
}

static void test_registered_memory_is_pinned_until_unregistered(void **state) {
  (void)state;
  RUNTIME(cudaHostRegister_v4000, 0, .ptr = pageable, .size = sizeof(pageable));
  struct sc_record_call call = copy_async(pageable + 63, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PINNED);
  RUNTIME(cudaHostUnregister_v4000, 0, .ptr = pageable);
  call = copy_async(pageable, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
}

static void test_failed_allocation_and_failed_free_change_nothing(void **state) {
  (void)state;
  void *result = pinned;
  RUNTIME(cudaHostAlloc_v3020, cudaErrorMemoryAllocation, .pHost = &result, .size = sizeof(pinned));
  struct sc_record_call call = copy_async(pinned, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
  pinned_alloc(pinned, sizeof(pinned));
  RUNTIME(cudaFreeHost_v3020, cudaErrorInvalidValue, .ptr = pinned);
  call = copy_async(pinned, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PINNED);
  free_host(pinned);
}

static void test_managed_memory_is_known(void **state) {
  (void)state;
  char *managed = (char *)(uintptr_t)0x7e0000000000;
  void *result = managed;
  RUNTIME(cudaMallocManaged_v6000, 0, .devPtr = &result, .size = 4096);
  struct sc_record_call call = copy_async(managed, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_MANAGED);
  harness_mark();
  RUNTIME(cudaMemset_v3020, 0, .devPtr = managed, .value = 0, .count = 32);
  call = harness_one();
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_MANAGED);
  assert_int_equal(call.bytes, 32);
  free_device(managed);
}

static void test_default_direction_comes_from_the_allocations(void **state) {
  (void)state;
  device_alloc(device, 4096);
  pinned_alloc(pinned, sizeof(pinned));
  struct sc_record_call call = copy_async(pinned, device + 100, cudaMemcpyDefault);
  assert_int_equal(call.direction, SC_DIRECTION_D2H);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PINNED);
  call = copy_async(pageable, device, cudaMemcpyDefault);
  assert_int_equal(call.direction, SC_DIRECTION_D2H);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
  call = copy_async(device, pageable, cudaMemcpyDefault);
  assert_int_equal(call.direction, SC_DIRECTION_H2D);
  call = copy_async(device, device + 64, cudaMemcpyDefault);
  assert_int_equal(call.direction, SC_DIRECTION_D2D);
  call = copy_async(pinned, pageable, cudaMemcpyDefault);
  assert_int_equal(call.direction, SC_DIRECTION_H2H);
  harness_mark();
  DRIVER(cuMemcpy, 0, .dst = (CUdeviceptr)pageable, .src = (CUdeviceptr)device, .ByteCount = 8);
  assert_int_equal(harness_one().direction, SC_DIRECTION_D2H);
  free_device(device);
  free_host(pinned);
}

static void test_free_of_null_and_of_pool_memory_is_flagged(void **state) {
  (void)state;
  void *result = device;
  RUNTIME(cudaFree_v3020, 0, .devPtr = NULL);
  struct sc_record_call call = harness_one();
  assert_int_equal(SC_CALL_FLAGS(&call), SC_CALL_NULL_POINTER);
  RUNTIME(cudaMallocAsync_v11020, 0, .devPtr = &result, .size = 4096, .hStream = STREAM);
  harness_mark();
  free_device(device);
  call = harness_one();
  assert_int_equal(SC_CALL_FLAGS(&call), SC_CALL_POOL_POINTER);
  device_alloc(device, 4096);
  harness_mark();
  free_device(device);
  call = harness_one();
  assert_int_equal(SC_CALL_FLAGS(&call), 0);
  assert_int_equal(call.object, (uintptr_t)device);
}

/* The memory of a free is forgotten when it is entered: another thread may get its address before it returns. */
static void *free_slowly(void *argument) {
  struct harness_call *call = argument;
  harness_exit(call, 0);
  return NULL;
}

static void test_freed_address_may_be_reused_before_the_free_returns(void **state) {
  (void)state;
  pinned_alloc(pinned, sizeof(pinned));
  struct harness_call call = { RT_ID(cudaFreeHost_v3020), PARAMS(cudaFreeHost_v3020, .ptr = pinned), 90, NULL };
  harness_enter(&call);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, (void *(*)(void *))free_slowly, &call), 0);
  assert_int_equal(pthread_join(thread, NULL), 0); /* an exit on a thread that did not enter changes nothing */
  struct sc_block ignored;
  assert_false(sc_memory_take((uintptr_t)pinned, &ignored));
  device_alloc(pinned, sizeof(pinned)); /* as if another thread got it; replaces the open call on this one */
  harness_exit(&call, 0);
  struct sc_record_call copy = copy_async(pinned, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&copy), SC_MEMORY_DEVICE);
  free_device(pinned);
}

static void test_mapped_virtual_memory_has_its_handles_kind(void **state) {
  (void)state;
  CUmemGenericAllocationHandle handle = 0x99;
  CUmemAllocationProp prop = { .location = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA } };
  DRIVER(cuMemCreate, 0, .handle = &handle, .size = 1 << 21, .prop = &prop);
  DRIVER(cuMemMap, 0, .ptr = (CUdeviceptr)device, .size = 1 << 21, .handle = 0x99);
  struct sc_record_call call = copy_async(device + 4096, device + (1 << 22), cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PINNED);
  DRIVER(cuMemUnmap, 0, .ptr = (CUdeviceptr)device, .size = 1 << 21);
  call = copy_async(device + 4096, device + (1 << 22), cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
}

static void test_pool_memory_has_its_pools_kind(void **state) {
  (void)state;
  cudaMemPool_t pool = (cudaMemPool_t)(uintptr_t)0x77000;
  struct cudaMemPoolProps host = { .allocType = cudaMemAllocationTypePinned,
                                   .location = { .type = (enum cudaMemLocationType)CU_MEM_LOCATION_TYPE_HOST } };
  void *result = device;
  RUNTIME(cudaMemPoolCreate_v11020, 0, .memPool = &pool, .poolProps = &host);
  RUNTIME(cudaMallocFromPoolAsync_v11020, 0, .ptr = &result, .size = 4096, .memPool = pool, .stream = STREAM);
  struct sc_record_call call = copy_async(device, device + (1 << 20), cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PINNED);
  RUNTIME(cudaFreeAsync_v11020, 0, .devPtr = device, .hStream = STREAM);
}

static void test_context_reset_forgets_its_memory(void **state) {
  (void)state;
  pinned_alloc(pinned, sizeof(pinned));
  RUNTIME_VOID(cudaDeviceReset_v3020, 0);
  struct sc_record_call call = copy_async(pinned, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
}

static void test_destroyed_context_takes_its_memory(void **state) {
  (void)state;
  pinned_alloc(pinned, sizeof(pinned));
  harness_resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
  struct sc_record_call call = copy_async(pinned, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PINNED);
  harness_resource(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
  call = copy_async(pinned, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
}

static void test_2d_3d_and_array_copies(void **state) {
  (void)state;
  struct cudaMemcpy3DParms cube = {
    .srcPtr = { .ptr = device }, .dstPtr = { .ptr = pageable }, .extent = { 4, 5, 6 }, .kind = cudaMemcpyDeviceToHost
  };
  CUDA_MEMCPY2D plane = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = pageable,
                          .WidthInBytes = 10,
                          .Height = 3 };
  RUNTIME(cudaMemcpy2D_v3020, 0, .dst = pageable, .dpitch = 8, .src = device, .spitch = 8, .width = 8, .height = 4,
          .kind = cudaMemcpyDeviceToHost);
  RUNTIME(cudaMemcpy3D_v3020, 0, .p = &cube);
  DRIVER(cuMemcpy2D_v2, 0, .pCopy = &plane);
  RUNTIME(cudaMemcpyFromArray_v3020, 0, .dst = pageable, .count = 12, .kind = cudaMemcpyDeviceToHost);
  RUNTIME(cudaMemcpyToSymbol_v3020, 0, .src = pageable, .count = 4, .kind = cudaMemcpyHostToDevice);
  DRIVER(cuMemcpy3D_v2, 1, .pCopy = NULL); /* refused by the driver: nothing is read */
  const struct harness_records *records = harness_read();
  assert_int_equal(records->call_count, 6);
  static const uint64_t bytes[] = { 32, 120, 30, 12, 4, 0 };
  static const uint8_t direction[] = { SC_DIRECTION_D2H, SC_DIRECTION_D2H, SC_DIRECTION_D2H,
                                       SC_DIRECTION_D2H, SC_DIRECTION_H2D, SC_DIRECTION_NONE };
  static const uint8_t source[] = { SC_MEMORY_DEVICE, SC_MEMORY_DEVICE,   SC_MEMORY_ARRAY,
                                    SC_MEMORY_ARRAY,  SC_MEMORY_PAGEABLE, 0 };
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(records->calls[i].bytes, bytes[i]);
    assert_int_equal(records->calls[i].direction, direction[i]);
    assert_int_equal(SC_CALL_SRC(&records->calls[i]), source[i]);
  }
  assert_int_equal(SC_CALL_FLAGS(&records->calls[5]), SC_CALL_NO_ARGUMENTS);
}

static void test_array_elements_have_their_size(void **state) {
  (void)state;
  cudaArray_t array = (cudaArray_t)(uintptr_t)0x1234000;
  struct cudaChannelFormatDesc channel = { 32, 32, 0, 0, cudaChannelFormatKindFloat };
  struct cudaMemcpy3DParms cube = {
    .srcArray = array, .dstPtr = { .ptr = pageable }, .extent = { 4, 2, 1 }, .kind = cudaMemcpyDeviceToHost
  };
  RUNTIME(cudaMallocArray_v3020, 0, .array = &array, .desc = &channel, .width = 4, .height = 2);
  harness_mark();
  RUNTIME(cudaMemcpy3D_v3020, 0, .p = &cube);
  assert_int_equal(harness_one().bytes, 4 * 2 * 8);
  RUNTIME(cudaFreeArray_v3020, 0, .array = array);
}

static void test_driver_memset_counts_bytes(void **state) {
  (void)state;
  DRIVER(cuMemsetD32_v2, 0, .dstDevice = (CUdeviceptr)device, .ui = 0, .N = 10);
  struct sc_record_call call = harness_one();
  assert_int_equal(call.bytes, 40);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_DEVICE);
}

#if CUDART_VERSION >= 13000
static void test_batch_is_recorded_as_its_blocking_copy(void **state) {
  (void)state;
  void *dsts[] = { device, pageable, device };
  const void *srcs[] = { pageable, device + 4096, device + 8192 };
  size_t sizes[] = { 10, 20, 30 };
  device_alloc(device, 1 << 20);
  harness_mark();
  RUNTIME(cudaMemcpyBatchAsync_v13000, 0, .dsts = dsts, .srcs = srcs, .sizes = sizes, .count = 3, .stream = STREAM);
  struct sc_record_call call = harness_one();
  assert_int_equal(call.direction, SC_DIRECTION_D2H);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
  assert_int_equal(call.bytes, 60);
  assert_int_equal(call.stream, (uintptr_t)STREAM);
  free_device(device);
}
#endif

static void test_event_made_to_sleep_is_flagged(void **state) {
  (void)state;
  cudaEvent_t event = EVENT;
  RUNTIME(cudaEventCreateWithFlags_v3020, 0, .event = &event, .flags = cudaEventBlockingSync | cudaEventDisableTiming);
  RUNTIME(cudaEventSynchronize_v3020, 0, .event = EVENT);
  RUNTIME(cudaEventDestroy_v3020, 0, .event = EVENT);
  RUNTIME(cudaEventSynchronize_v3020, 0, .event = EVENT);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->call_count, 2);
  assert_int_equal(SC_CALL_FLAGS(&records->calls[0]), SC_CALL_OBJECT_BLOCKING);
  assert_int_equal(SC_CALL_FLAGS(&records->calls[1]), 0);
}

/* ---- capture ----------------------------------------------------------------------------------------- */
static void capture_begin(cudaStream_t stream) { RUNTIME(cudaStreamBeginCapture_v10000, 0, .stream = stream); }
static void capture_end(cudaStream_t stream, int status) {
  cudaGraph_t graph = NULL;
  RUNTIME(cudaStreamEndCapture_v10000, status, .stream = stream, .pGraph = &graph);
}
static bool is_captured(cudaStream_t stream) {
  harness_mark();
  RUNTIME(cudaMemcpyAsync_v3020, 0, .dst = pageable, .src = device, .count = 1, .kind = cudaMemcpyDeviceToHost,
          .stream = stream);
  struct sc_record_call call = harness_one();
  return (SC_CALL_FLAGS(&call) & SC_CALL_CAPTURED) != 0;
}

static void test_capture_follows_its_stream(void **state) {
  (void)state;
  capture_begin(STREAM);
  assert_true(is_captured(STREAM));
  assert_false(is_captured(OTHER));
  capture_end(STREAM, 0);
  assert_false(is_captured(STREAM));
}

static void test_capture_is_joined_by_events(void **state) {
  (void)state;
  RUNTIME(cudaEventRecord_v3020, 0, .event = EVENT, .stream = STREAM); /* before: of no capture */
  capture_begin(STREAM);
  RUNTIME(cudaStreamWaitEvent_v3020, 0, .stream = OTHER, .event = EVENT);
  assert_false(is_captured(OTHER));
  RUNTIME(cudaEventRecord_v3020, 0, .event = EVENT, .stream = STREAM);
  RUNTIME(cudaStreamWaitEvent_v3020, 0, .stream = OTHER, .event = EVENT);
  assert_true(is_captured(OTHER));
  capture_end(STREAM, 0);
  assert_false(is_captured(OTHER));
}

static void test_captured_launches_are_no_submissions(void **state) {
  (void)state;
  CUlaunchConfig config = { .hStream = STREAM };
  capture_begin(STREAM);
  DRIVER(cuLaunchKernel, 0, .hStream = STREAM);
  DRIVER(cuLaunchKernelEx, 0, .config = &config);
  DRIVER(cuLaunchKernel, 0, .hStream = OTHER);
  capture_end(STREAM, 0);
  RUNTIME(cudaStreamSynchronize_v3020, 0, .stream = STREAM);
  assert_int_equal(harness_one().head.launches, 1);
}

static void test_failed_end_of_capture(void **state) {
  (void)state;
  capture_begin(STREAM);
  capture_end(STREAM, cudaErrorStreamCaptureWrongThread); /* goes on */
  assert_true(is_captured(STREAM));
  capture_end(STREAM, cudaErrorStreamCaptureInvalidated); /* is over */
  assert_false(is_captured(STREAM));
}

static void test_captured_free_keeps_its_memory(void **state) {
  (void)state;
  void *result = device;
  RUNTIME(cudaMallocAsync_v11020, 0, .devPtr = &result, .size = 4096, .hStream = STREAM);
  capture_begin(STREAM);
  RUNTIME(cudaFreeAsync_v11020, 0, .devPtr = device, .hStream = STREAM); /* a node of the graph: nothing is freed now */
  capture_end(STREAM, 0);
  struct sc_record_call call = copy_async(pageable, device, cudaMemcpyDefault);
  assert_int_equal(call.direction, SC_DIRECTION_D2H);
  RUNTIME(cudaFreeAsync_v11020, 0, .devPtr = device, .hStream = STREAM);
}

static void test_destroyed_stream_ends_its_capture(void **state) {
  (void)state;
  capture_begin(STREAM);
  RUNTIME(cudaStreamDestroy_v5050, 0, .stream = STREAM);
  assert_false(is_captured(STREAM));
}

/* ---- memory of others: last, since it stays known ---------------------------------------------------- */
static void test_imported_memory_makes_default_directions_unknown(void **state) {
  (void)state;
  void *opened = (void *)(uintptr_t)0x7d0000000000;
  RUNTIME(cudaIpcOpenMemHandle_v4010, 0, .devPtr = &opened);
  RUNTIME(cudaIpcOpenMemHandle_v4010, 0, .devPtr = &opened);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->note_count, 1);
  assert_int_equal(records->note_ids[0], SC_NOTE_UNKNOWN_MEMORY);
  struct sc_record_call call = copy_async(pageable, opened, cudaMemcpyDefault);
  assert_int_equal(call.direction, SC_DIRECTION_NONE);
  assert_int_equal(SC_CALL_FLAGS(&call), SC_CALL_UNKNOWN_DIRECTION);
  call = copy_async(pageable, opened, cudaMemcpyDeviceToHost); /* the program says so: its word counts */
  assert_int_equal(call.direction, SC_DIRECTION_D2H);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
}

int main(void) {
#define T(name) cmocka_unit_test_setup(name, mark)
  const struct CMUnitTest tests[] = {
    T(test_runtime_call_is_one_record),
    T(test_driver_call_under_runtime_call_is_dropped),
    T(test_driver_call_under_runtime_call_is_dropped_without_correlation_ids),
    T(test_driver_call_alone_is_recorded),
    T(test_same_id_in_two_domains_is_two_calls),
    T(test_entry_without_exit_does_not_swallow_what_follows),
    T(test_exit_without_entry_is_ignored),
    T(test_call_without_arguments_lacks_none),
    T(test_failed_call_keeps_its_status),
    T(test_default_streams_are_told_apart),
    T(test_device_of_context_is_recorded),
    T(test_errno_is_kept),
    T(test_launches_are_counted_before_the_next_record),
    T(test_polls_merge_into_one_record),
    T(test_ready_at_once_is_a_record_with_0),
    T(test_poll_ends_at_another_object_call_or_launch),
    T(test_pinned_and_pageable_are_told_apart),
    T(test_registered_memory_is_pinned_until_unregistered),
    T(test_failed_allocation_and_failed_free_change_nothing),
    T(test_managed_memory_is_known),
    T(test_default_direction_comes_from_the_allocations),
    T(test_free_of_null_and_of_pool_memory_is_flagged),
    T(test_freed_address_may_be_reused_before_the_free_returns),
    T(test_mapped_virtual_memory_has_its_handles_kind),
    T(test_pool_memory_has_its_pools_kind),
    T(test_context_reset_forgets_its_memory),
    T(test_destroyed_context_takes_its_memory),
    T(test_2d_3d_and_array_copies),
    T(test_array_elements_have_their_size),
    T(test_driver_memset_counts_bytes),
#if CUDART_VERSION >= 13000
    T(test_batch_is_recorded_as_its_blocking_copy),
#endif
    T(test_event_made_to_sleep_is_flagged),
    T(test_capture_follows_its_stream),
    T(test_capture_is_joined_by_events),
    T(test_captured_launches_are_no_submissions),
    T(test_failed_end_of_capture),
    T(test_captured_free_keeps_its_memory),
    T(test_destroyed_stream_ends_its_capture),
    T(test_imported_memory_makes_default_directions_unknown),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
