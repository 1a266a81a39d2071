/* SPDX-License-Identifier: Apache-2.0
 * Order within a stream, independence and dependence between streams, default streams, events, host functions. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "kernels.h"

cudaError_t cudaLaunchKernel_ptsz(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                                  cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream);
cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long *id);

static int *device_ints(size_t count)
{
  int *p;

  OK(cudaMalloc((void **)&p, count * sizeof *p));
  OK(cudaMemset(p, 0, count * sizeof *p));
  OK(cudaDeviceSynchronize()); /* non-blocking streams do not wait for it */
  return p;
}

static void work_of_one_stream_is_done_in_order(void **state)
{
  enum { COUNT = 500 };
  int *list = device_ints(COUNT + 1), back[COUNT + 1];
  cudaStream_t stream;

  (void)state;
  OK(cudaStreamCreate(&stream));
  for (int i = 0; i < COUNT; i++)
    launch_append(list, i, stream);
  OK(cudaMemcpyAsync(back, list, sizeof back, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  assert_int_equal(back[0], COUNT);
  for (int i = 0; i < COUNT; i++)
    assert_int_equal(back[i + 1], i);
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(list));
}

static void arguments_are_copied_at_the_launch(void **state)
{
  struct gate gate = {0};
  int *sum = device_ints(1), back = 0, value = 7;
  cudaStream_t stream;

  (void)state;
  OK(cudaStreamCreate(&stream));
  launch_pass(&gate, stream);
  void *args[] = {&sum, &value};
  OK(cudaLaunchKernel((const void *)kernel_add, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream));
  value = 100;
  atomic_store(&gate.open, true);
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(&back, sum, sizeof back, cudaMemcpyDeviceToHost));
  assert_int_equal(back, 7);
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(sum));
}

static void kernels_get_their_shape(void **state)
{
  unsigned *out = (unsigned *)device_ints(7), back[7];

  (void)state;
  OK(cudaLaunchKernel((const void *)kernel_shape, (dim3){2, 3, 4}, (dim3){8, 4, 2}, (void *[]){&out}, 1234, NULL));
  OK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  const unsigned expected[7] = {2, 3, 4, 8, 4, 2, 1234};
  assert_memory_equal(back, expected, sizeof back);
  OK(cudaFree(out));
}

static void a_busy_stream_does_not_hold_up_another(void **state)
{
  struct gate gate = {0};
  int *sum = device_ints(1), back = 0;
  cudaStream_t busy, free_stream;

  (void)state;
  OK(cudaStreamCreate(&busy));
  OK(cudaStreamCreate(&free_stream));
  launch_pass(&gate, busy);
  launch_add(sum, 5, free_stream);
  OK(cudaMemcpyAsync(&back, sum, sizeof back, cudaMemcpyDeviceToHost, free_stream));
  OK(cudaStreamSynchronize(free_stream));
  assert_int_equal(back, 5);
  FAILS(cudaStreamQuery(busy), cudaErrorNotReady);
  atomic_store(&gate.open, true);
  OK(cudaStreamSynchronize(busy));
  OK(cudaStreamQuery(busy));
  OK(cudaStreamDestroy(busy));
  OK(cudaStreamDestroy(free_stream));
  OK(cudaFree(sum));
}

/* Is work on `later` held up by a gate on `earlier`? */
static bool waits_for(cudaStream_t later, cudaStream_t earlier, bool expected)
{
  struct gate gate = {0};
  cudaEvent_t done;

  launch_pass(&gate, earlier);
  assert_true(wait_for(&gate.reached));
  OK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  OK(cudaEventRecord(done, later));
  bool waits = true;
  for (int i = 0; i < (expected ? GATE_MS : PATIENCE_MS) && waits; i++) {
    waits = cudaEventQuery(done) == cudaErrorNotReady;
    usleep(1000);
  }
  atomic_store(&gate.open, true);
  OK(cudaDeviceSynchronize());
  OK(cudaEventQuery(done));
  OK(cudaEventDestroy(done));
  return waits;
}

static void the_legacy_stream_waits_for_blocking_streams_and_they_for_it(void **state)
{
  cudaStream_t blocking, other, free_stream;

  (void)state;
  OK(cudaStreamCreate(&blocking));
  OK(cudaStreamCreate(&other));
  OK(cudaStreamCreateWithFlags(&free_stream, cudaStreamNonBlocking));
  assert_true(waits_for(NULL, blocking, true));
  assert_true(waits_for(cudaStreamLegacy, blocking, true));
  assert_true(waits_for(blocking, NULL, true));
  assert_false(waits_for(NULL, free_stream, false));
  assert_false(waits_for(free_stream, NULL, false));
  assert_false(waits_for(other, blocking, false));
  OK(cudaStreamDestroy(blocking));
  OK(cudaStreamDestroy(other));
  OK(cudaStreamDestroy(free_stream));
}

static void the_per_thread_default_stream_is_a_blocking_stream_of_its_own(void **state)
{
  (void)state;
  assert_true(waits_for(NULL, cudaStreamPerThread, true));
  assert_true(waits_for(cudaStreamPerThread, NULL, true));
  unsigned long long legacy, mine, by_name;
  OK(cudaStreamGetId(NULL, &legacy));
  OK(cudaStreamGetId_ptsz(NULL, &mine));
  OK(cudaStreamGetId(cudaStreamPerThread, &by_name));
  assert_int_not_equal(legacy, mine);
  assert_int_equal(mine, by_name);
}

static void *read_stream_id(void *out)
{
  OK(cudaStreamGetId_ptsz(NULL, out));
  return NULL;
}

static void each_thread_has_its_own_per_thread_default_stream(void **state)
{
  unsigned long long mine, theirs;
  pthread_t thread;

  (void)state;
  OK(cudaStreamGetId_ptsz(NULL, &mine));
  assert_int_equal(pthread_create(&thread, NULL, read_stream_id, &theirs), 0);
  pthread_join(thread, NULL);
  assert_int_not_equal(mine, theirs);
}

static void ptsz_calls_with_stream_0_mean_the_per_thread_stream(void **state)
{
  struct gate gate = {0}, *argument = &gate;

  (void)state;
  OK(cudaLaunchKernel_ptsz((const void *)kernel_pass, (dim3){1, 1, 1}, (dim3){1, 1, 1}, (void *[]){&argument}, 0,
                           NULL));
  FAILS(cudaStreamQuery_ptsz(NULL), cudaErrorNotReady);
  FAILS(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
  atomic_store(&gate.open, true);
  OK(cudaStreamSynchronize_ptsz(NULL));
  OK(cudaStreamQuery_ptsz(NULL));
}

static void an_event_orders_work_across_streams(void **state)
{
  struct gate gate = {0};
  int *list = device_ints(3), back[3];
  cudaStream_t first, second;
  cudaEvent_t event;

  (void)state;
  OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  OK(cudaEventCreate(&event));
  launch_pass(&gate, first);
  launch_append(list, 1, first);
  OK(cudaEventRecord(event, first));
  OK(cudaStreamWaitEvent(second, event, 0));
  launch_append(list, 2, second);
  usleep(20000);
  FAILS(cudaStreamQuery(second), cudaErrorNotReady);
  atomic_store(&gate.open, true);
  OK(cudaStreamSynchronize(second));
  OK(cudaMemcpy(back, list, sizeof back, cudaMemcpyDeviceToHost));
  assert_int_equal(back[1], 1);
  assert_int_equal(back[2], 2);
  OK(cudaEventDestroy(event));
  OK(cudaStreamDestroy(first));
  OK(cudaStreamDestroy(second));
  OK(cudaFree(list));
}

static void an_event_stands_for_the_work_before_its_last_record(void **state)
{
  struct gate gate = {0};
  cudaStream_t stream;
  cudaEvent_t event;

  (void)state;
  OK(cudaStreamCreate(&stream));
  OK(cudaEventCreate(&event));
  OK(cudaEventQuery(event)); /* never recorded: nothing to wait for */
  OK(cudaEventSynchronize(event));
  OK(cudaEventRecord(event, stream));
  OK(cudaEventSynchronize(event));
  launch_pass(&gate, stream); /* after the record */
  OK(cudaEventQuery(event));
  OK(cudaEventRecord(event, stream));
  FAILS(cudaEventQuery(event), cudaErrorNotReady);
  atomic_store(&gate.open, true);
  OK(cudaEventSynchronize(event));
  OK(cudaEventQuery(event));
  OK(cudaEventDestroy(event));
  OK(cudaStreamDestroy(stream));
}

static void take_20_ms(void *argument)
{
  wait_for(argument);
  usleep(20000);
}

static void elapsed_time_is_the_time_between_two_records(void **state)
{
  cudaEvent_t start, end, untimed;
  float milliseconds = -1;
  atomic_bool asked = false;

  (void)state;
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&end));
  OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  OK(cudaEventRecord(start, NULL));
  OK(cudaLaunchHostFunc(NULL, take_20_ms, &asked));
  OK(cudaEventRecord(end, NULL));
  FAILS(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  atomic_store(&asked, true);
  OK(cudaEventSynchronize(end));
  OK(cudaEventElapsedTime(&milliseconds, start, end));
  assert_true(milliseconds >= 20 && milliseconds < 10000);
  OK(cudaEventRecord(untimed, NULL));
  FAILS(cudaEventElapsedTime(&milliseconds, start, untimed), cudaErrorInvalidResourceHandle);
  OK(cudaEventDestroy(start));
  OK(cudaEventDestroy(end));
  OK(cudaEventDestroy(untimed));
}

struct seen {
  pthread_t thread;
  int order, *counter;
};
static void note_thread(void *argument)
{
  struct seen *seen = argument;

  seen->thread = pthread_self();
  seen->order = ++*seen->counter;
}
static void note_callback(cudaStream_t stream, cudaError_t status, void *argument)
{
  (void)stream;
  if (status == cudaSuccess)
    note_thread(argument);
}

static void host_functions_run_in_order_on_a_thread_that_is_not_the_callers(void **state)
{
  int counter = 0;
  struct seen first = {.counter = &counter}, second = {.counter = &counter};

  (void)state;
  OK(cudaLaunchHostFunc(NULL, note_thread, &first));
  OK(cudaStreamAddCallback(NULL, note_callback, &second, 0));
  OK(cudaStreamSynchronize(NULL));
  assert_int_equal(first.order, 1);
  assert_int_equal(second.order, 2);
  assert_false(pthread_equal(first.thread, pthread_self()));
  assert_false(pthread_equal(second.thread, pthread_self()));
}

static void a_destroyed_stream_still_does_its_work(void **state)
{
  struct gate gate = {0};
  int *sum = device_ints(1), back = 0;
  cudaStream_t stream;

  (void)state;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  launch_pass(&gate, stream);
  launch_add(sum, 3, stream);
  OK(cudaStreamDestroy(stream));
  FAILS(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  FAILS(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  atomic_store(&gate.open, true);
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(&back, sum, sizeof back, cudaMemcpyDeviceToHost));
  assert_int_equal(back, 3);
  OK(cudaFree(sum));
}

static void *read_back_often(void *argument)
{
  int *sum = device_ints(1), *back;
  cudaStream_t stream;

  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaMallocHost((void **)&back, sizeof *back));
  for (int i = 1; i <= 200; i++) {
    launch_add(sum, 1, stream);
    OK(cudaMemcpyAsync(back, sum, sizeof *back, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    if (*back != i)
      *(int *)argument = i;
  }
  OK(cudaStreamDestroy(stream));
  OK(cudaFreeHost(back));
  OK(cudaFree(sum));
  return NULL;
}

static void many_threads_read_back_at_once(void **state)
{
  enum { THREADS = 16 };
  pthread_t threads[THREADS];
  int wrong[THREADS] = {0};

  (void)state;
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, read_back_often, &wrong[i]), 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(wrong[i], 0);
  }
}

static void bad_launches_are_refused(void **state)
{
  int *sum = device_ints(1), value = 1;
  void *args[] = {&sum, &value};

  (void)state;
  FAILS(cudaLaunchKernel((const void *)kernel_add, (dim3){0, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL),
        cudaErrorInvalidConfiguration);
  FAILS(cudaLaunchKernel((const void *)kernel_add, (dim3){1, 1, 1}, (dim3){1025, 1, 1}, args, 0, NULL),
        cudaErrorInvalidConfiguration);
  FAILS(cudaLaunchKernel((const void *)kernel_add, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 60000, NULL),
        cudaErrorInvalidValue);
  FAILS(cudaLaunchKernel((const void *)bad_launches_are_refused, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL),
        cudaErrorInvalidDeviceFunction);
  OK(cudaFuncSetAttribute((const void *)kernel_add, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
  OK(cudaLaunchKernel((const void *)kernel_add, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 60000, NULL));
  FAILS(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  OK(cudaGetLastError());
  cudaLibrary_t library;
  cudaKernel_t kernel;
  OK(cudaLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
  FAILS(cudaLibraryGetKernel(&kernel, library, "no such kernel"), cudaErrorSymbolNotFound);
  OK(cudaLibraryUnload(library));
  FAILS(cudaLibraryUnload(library), cudaErrorInvalidResourceHandle);
  OK(cudaFree(sum));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(work_of_one_stream_is_done_in_order),
      cmocka_unit_test(arguments_are_copied_at_the_launch),
      cmocka_unit_test(kernels_get_their_shape),
      cmocka_unit_test(a_busy_stream_does_not_hold_up_another),
      cmocka_unit_test(the_legacy_stream_waits_for_blocking_streams_and_they_for_it),
      cmocka_unit_test(the_per_thread_default_stream_is_a_blocking_stream_of_its_own),
      cmocka_unit_test(each_thread_has_its_own_per_thread_default_stream),
      cmocka_unit_test(ptsz_calls_with_stream_0_mean_the_per_thread_stream),
      cmocka_unit_test(an_event_orders_work_across_streams),
      cmocka_unit_test(an_event_stands_for_the_work_before_its_last_record),
      cmocka_unit_test(elapsed_time_is_the_time_between_two_records),
      cmocka_unit_test(host_functions_run_in_order_on_a_thread_that_is_not_the_callers),
      cmocka_unit_test(a_destroyed_stream_still_does_its_work),
      cmocka_unit_test(many_threads_read_back_at_once),
      cmocka_unit_test(bad_launches_are_refused),
  };
  return cmocka_run_group_tests(tests, load_kernels, NULL);
}
