/* SPDX-License-Identifier: Apache-2.0
 * Stream capture: what is recorded, what is refused, and with which error. */
#include <pthread.h>

#include "kernels.h"

static cudaStream_t stream, other;
static cudaEvent_t event;
static int *device, *pinned;

static void clear(void)
{
  OK(cudaMemset(device, 0, sizeof *device));
  OK(cudaDeviceSynchronize()); /* a non-blocking stream does not wait for stream 0 */
}

static void begin(enum cudaStreamCaptureMode mode) { OK(cudaStreamBeginCapture(stream, mode)); }

/* Ends a capture that something has spoiled. */
static void expect_invalidated(void)
{
  cudaGraph_t graph = (cudaGraph_t)1;

  FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  assert_null(graph);
  enum cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(stream, &status));
  assert_int_equal(status, cudaStreamCaptureStatusNone);
  cudaGetLastError();
}

static void end_well(void)
{
  cudaGraph_t graph;

  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphDestroy(graph));
}

static void captured_work_runs_at_each_launch_and_not_before(void **state)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  size_t nodes = 0;
  int back = 0;

  (void)state;
  clear();
  begin(cudaStreamCaptureModeGlobal);
  launch_add(device, 5, stream);
  OK(cudaMemcpyAsync(pinned, device, sizeof *pinned, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphGetNodes(graph, NULL, &nodes));
  assert_int_equal(nodes, 2);
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(&back, device, sizeof back, cudaMemcpyDeviceToHost));
  assert_int_equal(back, 0);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph)); /* the executable keeps what it needs */
  for (int i = 1; i <= 3; i++) {
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    assert_int_equal(*pinned, 5 * i);
  }
  OK(cudaGraphExecDestroy(exec));
  FAILS(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
  FAILS(cudaGraphDestroy(graph), cudaErrorInvalidValue);
}

static void a_graph_may_be_destroyed_while_it_runs(void **state)
{
  struct gate gate = {0};
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int back = 0;

  (void)state;
  clear();
  begin(cudaStreamCaptureModeGlobal);
  launch_pass(&gate, stream);
  launch_add(device, 9, stream);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  atomic_store(&gate.open, true);
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(&back, device, sizeof back, cudaMemcpyDeviceToHost));
  assert_int_equal(back, 9);
}

static void a_pageable_copy_is_captured_without_waiting_and_reads_at_the_launch(void **state)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int source = 1, target = -1;

  (void)state;
  begin(cudaStreamCaptureModeGlobal);
  OK(cudaMemcpyAsync(device, &source, sizeof source, cudaMemcpyHostToDevice, stream));
  OK(cudaMemcpyAsync(&target, device, sizeof target, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  assert_int_equal(target, -1);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  source = 77;
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  assert_int_equal(target, 77);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

/* ---- what spoils a capture ---- */

static int call_stream_synchronize(void) { return (int)cudaStreamSynchronize(stream); }
static int call_stream_query(void) { return (int)cudaStreamQuery(stream); }
static int call_device_synchronize(void) { return (int)cudaDeviceSynchronize(); }
static int call_other_synchronize(void) { return (int)cudaStreamSynchronize(other); }
static int call_event_query(void) { return (int)cudaEventQuery(event); }
static int call_memcpy(void) { return (int)cudaMemcpy(pinned, device, 4, cudaMemcpyDeviceToHost); }
static int call_free(void) { return (int)cudaFree(device); }
static int call_malloc(void)
{
  void *p;
  return (int)cudaMalloc(&p, 100);
}
static int call_malloc_host(void)
{
  void *p;
  return (int)cudaMallocHost(&p, 100);
}

/* error in each mode; 0: allowed */
static const struct {
  const char *name;
  int (*call)(void);
  int global, thread_local_mode, relaxed;
} refusals[] = {
    {"cudaStreamSynchronize of the captured stream", call_stream_synchronize, 900, 900, 900},
    {"cudaStreamQuery of the captured stream", call_stream_query, 900, 900, 900},
    {"cudaDeviceSynchronize", call_device_synchronize, 900, 900, 900},
    {"cudaStreamSynchronize of another stream", call_other_synchronize, 900, 900, 0},
    {"cudaEventQuery", call_event_query, 900, 900, 0},
    {"cudaMemcpy", call_memcpy, 900, 900, 0},
    {"cudaMalloc", call_malloc, 900, 900, 0},
    {"cudaMallocHost", call_malloc_host, 900, 900, 0},
    {"cudaFree", call_free, 900, 900, 0},
};

static void unsafe_calls_are_refused_and_spoil_the_capture(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
    for (int mode = cudaStreamCaptureModeGlobal; mode <= cudaStreamCaptureModeRelaxed; mode++) {
      int expected = mode == cudaStreamCaptureModeGlobal        ? refusals[i].global
                     : mode == cudaStreamCaptureModeThreadLocal ? refusals[i].thread_local_mode
                                                                : refusals[i].relaxed;
      if (refusals[i].call == call_free && expected == 0)
        continue; /* would free what the other rows need */
      begin((enum cudaStreamCaptureMode)mode);
      int error = refusals[i].call();
      if (error != expected)
        fail_msg("%s in mode %d: error %d, expected %d", refusals[i].name, mode, error, expected);
      if (expected != 0)
        expect_invalidated();
      else
        end_well();
    }
}

static void work_on_an_invalidated_capture_says_so(void **state)
{
  (void)state;
  begin(cudaStreamCaptureModeGlobal);
  FAILS(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  FAILS(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream), cudaErrorStreamCaptureInvalidated);
  FAILS(cudaStreamSynchronize(stream), cudaErrorStreamCaptureInvalidated);
  enum cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(stream, &status));
  assert_int_equal(status, cudaStreamCaptureStatusInvalidated);
  expect_invalidated();
}

static void *allocate_elsewhere(void *out)
{
  void *p = NULL;

  *(int *)out = (int)cudaMalloc(&p, 100);
  if (p != NULL)
    OK(cudaFree(p));
  return NULL;
}

static int error_on_another_thread(void *(*function)(void *))
{
  pthread_t thread;
  int error = -1;

  assert_int_equal(pthread_create(&thread, NULL, function, &error), 0);
  pthread_join(thread, NULL);
  return error;
}

static void global_mode_restrains_other_threads_and_thread_local_mode_does_not(void **state)
{
  (void)state;
  begin(cudaStreamCaptureModeGlobal);
  assert_int_equal(error_on_another_thread(allocate_elsewhere), cudaErrorStreamCaptureUnsupported);
  expect_invalidated();
  begin(cudaStreamCaptureModeThreadLocal);
  assert_int_equal(error_on_another_thread(allocate_elsewhere), 0);
  end_well();
}

static void a_thread_may_lift_the_ban_for_itself(void **state)
{
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  void *p;

  (void)state;
  begin(cudaStreamCaptureModeGlobal);
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, cudaStreamCaptureModeGlobal);
  OK(cudaMalloc(&p, 100));
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, cudaStreamCaptureModeRelaxed);
  end_well();
  OK(cudaFree(p));
}

static void the_legacy_stream_must_not_depend_on_a_capturing_blocking_stream(void **state)
{
  cudaStream_t blocking;
  cudaGraph_t graph;
  enum cudaStreamCaptureStatus status;

  (void)state;
  OK(cudaStreamCreate(&blocking));
  OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  FAILS(cudaStreamIsCapturing(NULL, &status), cudaErrorStreamCaptureImplicit);
  FAILS(cudaMemsetAsync(device, 0, 4, NULL), cudaErrorStreamCaptureImplicit);
  FAILS(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed)); /* a non-blocking one leaves stream 0 alone */
  OK(cudaMemsetAsync(device, 0, 4, NULL));
  end_well();
  FAILS(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeRelaxed), cudaErrorStreamCaptureUnsupported);
  OK(cudaStreamDestroy(blocking));
}

static void *end_elsewhere(void *out)
{
  cudaGraph_t graph;

  *(int *)out = (int)cudaStreamEndCapture(stream, &graph);
  return NULL;
}

static void captures_begin_and_end_where_they_should(void **state)
{
  cudaGraph_t graph;

  (void)state;
  FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
  begin(cudaStreamCaptureModeGlobal);
  FAILS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  assert_int_equal(error_on_another_thread(end_elsewhere), cudaErrorStreamCaptureWrongThread);
  end_well();
  begin(cudaStreamCaptureModeRelaxed);
  assert_int_equal(error_on_another_thread(end_elsewhere), 0);
}

static void an_event_brings_another_stream_into_the_capture_and_back(void **state)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t back_event;
  enum cudaStreamCaptureStatus status;
  size_t nodes;

  (void)state;
  OK(cudaEventCreate(&back_event));
  clear();
  begin(cudaStreamCaptureModeGlobal);
  launch_add(device, 1, stream);
  OK(cudaEventRecord(event, stream));
  OK(cudaStreamWaitEvent(other, event, 0));
  OK(cudaStreamIsCapturing(other, &status));
  assert_int_equal(status, cudaStreamCaptureStatusActive);
  launch_add(device, 10, other);
  OK(cudaEventRecord(back_event, other));
  OK(cudaStreamWaitEvent(stream, back_event, 0));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaStreamIsCapturing(other, &status));
  assert_int_equal(status, cudaStreamCaptureStatusNone);
  OK(cudaGraphGetNodes(graph, NULL, &nodes));
  assert_int_equal(nodes, 2);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  assert_int_equal(*pinned, 11);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaEventDestroy(back_event));
}

static void work_that_is_not_joined_back_is_an_error(void **state)
{
  cudaGraph_t graph;

  (void)state;
  begin(cudaStreamCaptureModeGlobal);
  OK(cudaEventRecord(event, stream));
  OK(cudaStreamWaitEvent(other, event, 0));
  launch_add(device, 10, other);
  FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
  begin(cudaStreamCaptureModeGlobal);
  OK(cudaEventRecord(event, stream));
  OK(cudaStreamWaitEvent(other, event, 0));
  FAILS(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
  expect_invalidated();
  OK(cudaEventRecord(event, stream)); /* the event is of this world again */
  OK(cudaEventSynchronize(event));
}

static void events_do_not_cross_the_border_of_a_capture(void **state)
{
  cudaEvent_t outside;
  cudaGraph_t graph;

  (void)state;
  OK(cudaEventCreate(&outside));
  OK(cudaEventRecord(outside, other));
  begin(cudaStreamCaptureModeGlobal);
  FAILS(cudaStreamWaitEvent(stream, outside, 0), cudaErrorStreamCaptureIsolation);
  expect_invalidated();
  begin(cudaStreamCaptureModeGlobal);
  OK(cudaEventRecord(event, stream));
  FAILS(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  expect_invalidated();
  begin(cudaStreamCaptureModeRelaxed);
  OK(cudaEventRecord(event, stream));
  OK(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed));
  FAILS(cudaStreamWaitEvent(other, event, 0), cudaErrorStreamCaptureMerge);
  FAILS(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureInvalidated);
  expect_invalidated();
  OK(cudaEventDestroy(outside));
}

static int set_up(void **state)
{
  return load_kernels(state) != 0 || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != 0 ||
         cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) != 0 || cudaEventCreate(&event) != 0 ||
         cudaMalloc((void **)&device, 100) != 0 || cudaMallocHost((void **)&pinned, 100) != 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(captured_work_runs_at_each_launch_and_not_before),
      cmocka_unit_test(a_graph_may_be_destroyed_while_it_runs),
      cmocka_unit_test(a_pageable_copy_is_captured_without_waiting_and_reads_at_the_launch),
      cmocka_unit_test(unsafe_calls_are_refused_and_spoil_the_capture),
      cmocka_unit_test(work_on_an_invalidated_capture_says_so),
      cmocka_unit_test(global_mode_restrains_other_threads_and_thread_local_mode_does_not),
      cmocka_unit_test(a_thread_may_lift_the_ban_for_itself),
      cmocka_unit_test(the_legacy_stream_must_not_depend_on_a_capturing_blocking_stream),
      cmocka_unit_test(captures_begin_and_end_where_they_should),
      cmocka_unit_test(an_event_brings_another_stream_into_the_capture_and_back),
      cmocka_unit_test(work_that_is_not_joined_back_is_an_error),
      cmocka_unit_test(events_do_not_cross_the_border_of_a_capture),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
