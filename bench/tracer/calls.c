/* SPDX-License-Identifier: Apache-2.0
 * calls [BLOCKS] [LIMIT_NS]: what recording a call costs over an empty CUPTI subscriber, in nanoseconds a call. Blocks
 * of calls alternate between the empty callback and the tracer's in one process; the figure is the median of the
 * blocks' means (CPU time), and the difference the median of the pairs' differences. The copy is of 0 bytes: a real one
 * wakes the device's worker, and how often that sleeps depends on the pace of the calls. Exit 1 if a recorded call
 * costs more than LIMIT_NS (150). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "toggle.h"
#include "touch.h"

enum { BLOCK = 1000, KINDS = 4 };

/* CPU time of this thread: what others do on the machine meanwhile is not ours. None of the calls sleeps. */
static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double block(void (*call)(struct touch *), struct touch *touch) {
  double start = cpu_ns();
  for (int i = 0; i < BLOCK; i++)
    call(touch);
  double ns = (cpu_ns() - start) / BLOCK;
  touch_sync(touch); /* what was submitted is done before the next block */
  return ns;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*call)(struct touch *);
    int recorded;
  } kinds[KINDS] = {
    { "cudaStreamSynchronize, idle", touch_sync, 1 },
    { "cudaMemcpyAsync, 0 B to pinned", touch_copy_nothing, 1 },
    { "cudaEventQuery, ready", touch_query, 1 },
    { "cudaLaunchKernel (counted only)", touch_launch, 0 },
  };
  long blocks = argc > 1 ? strtol(argv[1], NULL, 10) : 301;
  double limit = argc > 2 ? strtod(argv[2], NULL) : 150;
  char path[] = "/tmp/bench-tracer-XXXXXX";
  struct touch touch;
  if (blocks < 3 || blocks > 100000 || !(limit > 0)) {
    fprintf(stderr, "usage: bench_tracer_calls [BLOCKS] [LIMIT_NS]  (BLOCKS 3 to 100000)\n");
    return 2;
  }
  if (!touch_begin(&touch) || mkdtemp(path) == NULL)
    return 3;
  char file[64];
  (void)snprintf(file, sizeof(file), "%s/t.sctrace", path);
  void *libcuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const void *simulated = libcuda != NULL ? dlsym(libcuda, "simcuda_version") : NULL;
  if (!toggle_begin(file, simulated))
    return 3;
  double *empty = calloc((size_t)blocks, sizeof(double)), *traced = calloc((size_t)blocks, sizeof(double)),
         *added = calloc((size_t)blocks, sizeof(double));
  int failed = 0;
  if (empty == NULL || traced == NULL || added == NULL)
    return 3;
  printf("%s, %ld blocks of %d calls a side, interleaved; CPU ns a call, medians\n%-32s %10s %10s %10s %12s\n",
         simulated != NULL ? "SIMULATED device" : "CUDA device", blocks, BLOCK, "call", "empty", "traced", "added",
         "(best tenth)");
  for (int k = 0; k < KINDS; k++) {
    for (long i = -3; i < blocks; i++) {
      long at = i < 0 ? 0 : i;
      for (int side = 0; side < 2; side++) {
        int on = (side ^ (int)(i & 1)) != 0; /* who goes first alternates as well */
        toggle_set(on);
        *(on ? &traced[at] : &empty[at]) = block(kinds[k].call, &touch);
      }
      added[at] = traced[at] - empty[at];
    }
    toggle_set(0);
    double cost = touch_quantile(added, (size_t)blocks, 0.5);
    printf("%-32s %10.1f %10.1f %+10.1f %+12.1f\n", kinds[k].name, touch_quantile(empty, (size_t)blocks, 0.5),
           touch_quantile(traced, (size_t)blocks, 0.5), cost, touch_quantile(added, (size_t)blocks, 0.1));
    failed = failed || (kinds[k].recorded && cost > limit);
  }
  (void)unlink(file);
  (void)rmdir(path);
  printf("limit for a recorded call: %.0f ns: %s\n", limit, failed ? "MISSED" : "met");
  return failed ? 1 : 0;
}
