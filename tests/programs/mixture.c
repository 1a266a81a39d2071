/* SPDX-License-Identifier: Apache-2.0
 * mixture THREADS ROUNDS [capture]: that many threads, each with a stream of its own, make rounds of every kind of call
 * that is counted; then one more thread, which was not there before, makes 10 rounds. Every count but the number of
 * queries is the same whenever this runs. In thirds, all threads together:
 *   capture  the second third lies between cudaProfilerStart and cudaProfilerStop */
#include "program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

enum { BYTES = 4096, LATE_ROUNDS = 10 };

struct worker {
  cudaStream_t stream;
  cudaEvent_t event;
  cudaKernel_t touch;
  void *pinned, *device;
  char pageable[BYTES];
};

static pthread_barrier_t together;
static cudaLibrary_t library;
static int rounds;
static bool capture;
static atomic_int failures;

#define CHECK(call) CHECK_OR_RETURN(false, call)

static bool launch(struct worker *w, int count) {
  void *args[] = { &w->device };
  for (int i = 0; i < count; i++)
    CHECK(cudaLaunchKernel((const void *)w->touch, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args, 0, w->stream));
  return true;
}

static bool begin(struct worker *w) {
  CHECK(cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&w->event, cudaEventDisableTiming));
  CHECK(cudaLibraryGetKernel(&w->touch, library, "sc_test_touch"));
  CHECK(cudaMallocHost(&w->pinned, BYTES));
  CHECK(cudaMalloc(&w->device, BYTES));
  return true;
}

/* Asks until the stream is done, at least twice. */
static bool poll(struct worker *w) {
  struct gate gate = { 0 };
  CHECK(cudaLaunchHostFunc(w->stream, gate_wait, &gate));
  if (cudaStreamQuery(w->stream) != cudaErrorNotReady)
    return false;
  gate_open(&gate);
  cudaError_t status;
  while ((status = cudaStreamQuery(w->stream)) == cudaErrorNotReady)
    continue;
  CHECK(status);
  return true;
}

static bool one_round(struct worker *w) {
  void *block;
  if (!launch(w, 3))
    return false;
  CHECK(cudaMemcpyAsync(w->pinned, w->device, 8, cudaMemcpyDeviceToHost, w->stream));
  CHECK(cudaStreamSynchronize(w->stream));
  /* One sync, though two calls. */
  CHECK(cudaMemcpyAsync(w->pageable, w->device, 8, cudaMemcpyDeviceToHost, w->stream));
  CHECK(cudaStreamSynchronize(w->stream));
  /* Two. */
  CHECK(cudaMemcpyAsync(w->pageable, w->device, 8, cudaMemcpyDeviceToHost, w->stream));
  if (!launch(w, 1))
    return false;
  CHECK(cudaStreamSynchronize(w->stream));
  CHECK(cudaMemcpy(w->pageable, w->device, 8, cudaMemcpyDeviceToHost));
  CHECK(cudaStreamSynchronize(0));
  CHECK(cudaMemcpyAsync(w->device, w->pinned, 8, cudaMemcpyHostToDevice, w->stream));
  CHECK(cudaStreamSynchronize(w->stream));
  CHECK(cudaEventRecord(w->event, w->stream));
  CHECK(cudaEventSynchronize(w->event));
  CHECK(cudaMalloc(&block, BYTES));
  CHECK(cudaFree(block));
  if (cudaMemcpyAsync(w->pinned, w->device, 8, (enum cudaMemcpyKind)77, w->stream) == cudaSuccess)
    return false;
  (void)cudaGetLastError();
  return poll(w);
}

static bool many(struct worker *w, int count) {
  bool ok = true;
  for (int i = 0; ok && i < count; i++) {
    nvtxRangePushA("round");
    ok = one_round(w);
    nvtxRangePop();
  }
  return ok;
}

static void *work(void *argument) {
  const bool first = argument != NULL;
  struct worker worker = { 0 };
  bool ok = begin(&worker);
  for (int third = 0; third < 3; third++) {
    pthread_barrier_wait(&together);
    if (first && capture && third > 0)
      ok = (third == 1 ? cudaProfilerStart() : cudaProfilerStop()) == cudaSuccess && ok;
    pthread_barrier_wait(&together);
    ok = ok && many(&worker, rounds / 3);
  }
  if (!ok)
    atomic_fetch_add(&failures, 1);
  return NULL;
}

static void *work_late(void *argument) {
  struct worker worker = { 0 };
  (void)argument;
  if (!begin(&worker) || !many(&worker, LATE_ROUNDS))
    atomic_fetch_add(&failures, 1);
  return NULL;
}

int main(int argc, char **argv) {
  int count = argc > 2 ? atoi(argv[1]) : 0;
  pthread_t threads[64];
  rounds = argc > 2 ? atoi(argv[2]) : 0;
  capture = argc == 4 && strcmp(argv[3], "capture") == 0;
  if (count < 1 || count > 64 || rounds < 3 || (argc == 4 && !capture) || argc > 4) {
    fprintf(stderr, "usage: mixture THREADS ROUNDS [capture]\n");
    return 2;
  }
  if (cudaFree(NULL) != cudaSuccess ||
      cudaLibraryLoadData(&library, test_kernels_image, NULL, NULL, 0, NULL, NULL, 0) != cudaSuccess ||
      pthread_barrier_init(&together, NULL, (unsigned)count) != 0)
    return 3;
  for (int i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, work, i == 0 ? threads : NULL) != 0)
      return 3; /* the barrier would never open */
  for (int i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  if (!run_on_thread(work_late, NULL))
    return 3;
  return atomic_load(&failures) > 0 ? 1 : 0;
}
