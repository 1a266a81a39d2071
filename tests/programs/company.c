/* SPDX-License-Identifier: Apache-2.0
 * company MODE: a program that knows what it does. At the end it prints one line of JSON, {"processes": [...]}: the
 * counts that each process of this run must show, for tests/gpu/expect_company.py.
 *   calls      20 .item(), 3 cudaMemcpy to the host, 5 event and 3 device synchronises, 4 pageable copies, 2 cudaFree,
 *              1 poll, 6 launches: one before each event and the first device synchronise
 *   threads    two threads that make 11 and 23 read-backs at the same time, the first thread none
 *   exec       20 read-backs, a child by fork and exec that makes 7
 *   graphs     a graph of a copy and, where there is one, a kernel: 9 launches, each followed by a stream synchronise
 *   hidden     20 copies that a host function tells of: the host waits on a flag, no call blocks
 *   sleeping   4 synchronises of an event made with cudaEventBlockingSync
 *   taken-away CUDA_INJECTION64_PATH is set to another tool's library before CUDA starts; then as exec's child
 *   dropped    the same, but the variable is removed */
#include "program.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "items.h"

#define OK(call) checked(#call, call)

static cudaKernel_t touch;
static char *pageable, *scratch; /* host and device memory of this program */

static bool checked(const char *what, cudaError_t status) {
  if (status != cudaSuccess)
    fprintf(stderr, "company: %s: %s\n", what, cudaGetErrorName(status));
  return status == cudaSuccess;
}

static bool begin(struct items *items) {
  cudaLibrary_t library = NULL;
  pageable = calloc(1, 4096);
  return pageable != NULL && items_begin(items) && OK(cudaMalloc((void **)&scratch, 4096)) &&
         OK(cudaMemsetAsync(scratch, 0, 4096, items->stream)) &&
         OK(cudaLibraryLoadData(&library, test_kernels_image, NULL, NULL, 0, NULL, NULL, 0)) &&
         OK(cudaLibraryGetKernel(&touch, library, "sc_test_touch"));
}

static bool launch(const struct items *items) {
  void *arguments[] = { &scratch };
  return OK(cudaLaunchKernel((const void *)touch, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, arguments, 0, items->stream));
}

/* ---- calls -------------------------------------------------------------------------------- */

static bool event_waits(const struct items *items, unsigned flags, int count, bool launches) {
  cudaEvent_t event = NULL;
  bool ok = OK(cudaEventCreateWithFlags(&event, flags));
  for (int i = 0; ok && i < count; i++)
    ok = (!launches || launch(items)) && OK(cudaEventRecord(event, items->stream)) && OK(cudaEventSynchronize(event));
  return ok && OK(cudaEventDestroy(event));
}

static bool poll_once(const struct items *items) {
  struct gate gate = { false };
  bool ok = OK(cudaLaunchHostFunc(items->stream, gate_wait, &gate));
  cudaError_t first = cudaStreamQuery(items->stream), last = first;
  gate_open(&gate);
  for (time_t end = time(NULL) + 10; last == cudaErrorNotReady && time(NULL) < end;)
    last = cudaStreamQuery(items->stream);
  return ok && first == cudaErrorNotReady && OK(last);
}

static bool make_calls(void) {
  struct items items = { 0 };
  char *victims[2];
  bool ok = begin(&items);
  for (int i = 0; ok && i < 2; i++)
    ok = OK(cudaMalloc((void **)&victims[i], 1 << 20));
  ok = ok && items_many(&items, 20);
  for (int i = 0; ok && i < 3; i++)
    ok = OK(cudaMemcpy(pageable, scratch, 64, cudaMemcpyDeviceToHost));
  ok = ok && event_waits(&items, cudaEventDisableTiming, 5, true);
  for (int i = 0; ok && i < 3; i++)
    ok = (i > 0 || launch(&items)) && OK(cudaDeviceSynchronize());
  for (int i = 0; ok && i < 4; i++)
    ok = OK(cudaMemcpyAsync(pageable, scratch, 64, cudaMemcpyDeviceToHost, items.stream));
  for (int i = 0; ok && i < 2; i++)
    ok = OK(cudaFree(victims[i]));
  ok = ok && poll_once(&items);
  if (ok) /* idle: the second and third device synchronise, the second cudaFree */
    printf("{\"processes\": [{\"total\": 37, \"by_class\": {\"explicit\": 28, \"copy\": 3, \"pageable\": 4, "
           "\"implicit\": 2}, \"read_backs\": 27, \"d2h_copies\": 27, \"poll_waits\": 1, \"launches\": 6, "
           "\"host_functions\": 1, \"idle_syncs\": 3}], \"warnings\": [\"1 host function (cudaLaunchHostFunc, "
           "cudaStreamAddCallback) beside\"]}\n");
  return ok;
}

/* ---- threads ------------------------------------------------------------------------------ */

struct worker {
  pthread_t thread;
  pthread_barrier_t *start;
  int count, tid;
  bool ok;
};

static void *work(void *argument) {
  struct worker *worker = argument;
  struct items items = { 0 };
  worker->tid = (int)syscall(SYS_gettid);
  worker->ok = items_begin(&items);
  pthread_barrier_wait(worker->start);
  worker->ok = worker->ok && items_many(&items, worker->count);
  return NULL;
}

static bool two_threads(void) {
  pthread_barrier_t start;
  struct worker workers[] = { { .start = &start, .count = 11 }, { .start = &start, .count = 23 } };
  if (pthread_barrier_init(&start, NULL, 2) != 0)
    return false;
  for (int i = 0; i < 2; i++)
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
      return false; /* the barrier would never open; the process ends */
  for (int i = 0; i < 2; i++)
    pthread_join(workers[i].thread, NULL);
  printf("{\"processes\": [{\"total\": 34, \"read_backs\": 34, \"threads\": {\"%d\": {\"syncs\": 11, "
         "\"d2h_copies\": 11}, \"%d\": {\"syncs\": 23, \"d2h_copies\": 23}}}]}\n",
         workers[0].tid, workers[1].tid);
  return workers[0].ok && workers[1].ok;
}

/* ---- exec --------------------------------------------------------------------------------- */

static bool child_items(void) {
  struct items items = { 0 };
  return items_begin(&items) && items_many(&items, 7);
}

static bool fork_and_exec(void) {
  struct items items = { 0 };
  int status = 0;
  bool ok = items_begin(&items) && items_many(&items, 20);
  fflush(NULL);
  pid_t child = ok ? fork() : -1;
  if (child == 0) {
    execl("/proc/self/exe", "company", "child", (char *)NULL);
    _exit(127);
  }
  ok = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  printf("{\"processes\": [{\"pid\": %ld, \"total\": 20, \"read_backs\": 20}, {\"pid\": %ld, \"total\": 7, "
         "\"read_backs\": 7}]}\n",
         (long)getpid(), (long)child);
  return ok;
}

/* ---- graphs ------------------------------------------------------------------------------- */

static bool graphs(void) {
  struct items items = { 0 };
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  bool ok = begin(&items) && OK(cudaStreamBeginCapture(items.stream, cudaStreamCaptureModeThreadLocal)) &&
            launch(&items) &&
            OK(cudaMemcpyAsync(items.pinned, items.device, 1, cudaMemcpyDeviceToHost, items.stream)) &&
            OK(cudaStreamEndCapture(items.stream, &graph)) && OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; ok && i < 9; i++)
    ok = OK(cudaGraphLaunch(exec, items.stream)) && OK(cudaStreamSynchronize(items.stream));
  /* What is captured gives the device nothing: only the graph's launches are launches. */
  printf("{\"processes\": [{\"total\": 9, \"launches\": 9, \"by_class\": {\"explicit\": 9, \"copy\": 0, "
         "\"pageable\": 0, \"implicit\": 0}, \"read_backs\": 0, \"failed\": 0}]}\n");
  return ok;
}

/* ---- hidden waits ------------------------------------------------------------------------- */

static void raise_flag(void *flag) { atomic_store_explicit((atomic_int *)flag, 1, memory_order_release); }

static bool hidden_waits(void) {
  struct items items = { 0 };
  const struct timespec nap = { .tv_nsec = 20000 };
  atomic_int flag = 0;
  bool ok = items_begin(&items);
  for (int i = 0; ok && i < 20; i++) {
    atomic_store(&flag, 0);
    ok = OK(cudaMemcpyAsync(items.pinned, items.device, 1, cudaMemcpyDeviceToHost, items.stream)) &&
         OK(cudaLaunchHostFunc(items.stream, raise_flag, &flag));
    for (time_t end = time(NULL) + 20; ok && atomic_load_explicit(&flag, memory_order_acquire) == 0;) {
      nanosleep(&nap, NULL);
      ok = time(NULL) < end;
    }
  }
  printf("{\"processes\": [{\"total\": 0, \"d2h_copies\": 20, \"host_functions\": 20, \"threads\": {\"%ld\": "
         "{\"syncs\": 0, \"d2h_copies\": 20, \"host_functions\": 20}}}], \"warnings\": [\"20 device-to-host copies "
         "and 20 host functions\", \"Hidden waits are not in the count\"]}\n",
         (long)getpid());
  return ok;
}

static bool sleeping(void) {
  struct items items = { 0 };
  bool ok = begin(&items) && event_waits(&items, cudaEventBlockingSync, 4, false);
  printf("{\"processes\": [{\"total\": 4}], \"warnings\": [\"4 of the waits slept instead of spinning\"]}\n");
  return ok;
}

int main(int argc, char **argv) {
  const char *mode = argc == 2 ? argv[1] : "";
  bool ok;
  if (strcmp(mode, "taken-away") == 0)
    setenv("CUDA_INJECTION64_PATH", "/nowhere/tool.so", 1);
  else if (strcmp(mode, "dropped") == 0)
    unsetenv("CUDA_INJECTION64_PATH");
  if (strcmp(mode, "calls") == 0) {
    ok = make_calls();
  } else if (strcmp(mode, "threads") == 0) {
    ok = two_threads();
  } else if (strcmp(mode, "exec") == 0) {
    ok = fork_and_exec();
  } else if (strcmp(mode, "graphs") == 0) {
    ok = graphs();
  } else if (strcmp(mode, "hidden") == 0) {
    ok = hidden_waits();
  } else if (strcmp(mode, "sleeping") == 0) {
    ok = sleeping();
  } else if (strcmp(mode, "child") == 0 || strcmp(mode, "taken-away") == 0 || strcmp(mode, "dropped") == 0) {
    ok = child_items();
  } else {
    fprintf(stderr, "usage: company calls|threads|exec|graphs|hidden|sleeping|taken-away|dropped\n");
    return 2;
  }
  return ok ? 0 : 1;
}
