/* SPDX-License-Identifier: Apache-2.0
 * stepping STEPS [capture FIRST LAST | sleep | die]: in each step, a range "step:<i>" with "layer:0" and "layer:1", 2
 * read-backs a layer (the first step 5), and 1 inside "synccount.allow:logging"; then a range "synccount.allow:unused"
 * without any. A process of RANK 1 makes 3 read-backs more at the end.
 *   capture  cudaProfilerStart before step FIRST, cudaProfilerStop after step LAST
 *   sleep    cudaDeviceScheduleBlockingSync is set first
 *   die      the process kills itself after the last step */
#include "program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include "items.h"

static bool step(struct items *items, int index) {
  char name[32];
  bool ok = true;
  snprintf(name, sizeof name, "step:%d", index);
  nvtxRangePushA(name);
  for (int layer = 0; ok && layer < 2; layer++) {
    snprintf(name, sizeof name, "layer:%d", layer);
    nvtxRangePushA(name);
    ok = items_many(items, index == 0 ? 5 : 2);
    nvtxRangePop();
  }
  nvtxRangePushA("synccount.allow:logging");
  ok = ok && items_many(items, 1);
  nvtxRangePop();
  nvtxRangePop();
  return ok;
}

int main(int argc, char **argv) {
  const char *mode = argc > 2 ? argv[2] : "", *rank = getenv("RANK");
  int steps = argc > 1 ? atoi(argv[1]) : 0, first = -1, last = -1;
  struct items items = { 0 };
  bool ok = true;
  if (strcmp(mode, "capture") == 0 && argc == 5) {
    first = atoi(argv[3]);
    last = atoi(argv[4]);
  } else if (steps < 1 || argc > 3 || (*mode != '\0' && strcmp(mode, "sleep") != 0 && strcmp(mode, "die") != 0)) {
    fprintf(stderr, "usage: stepping STEPS [capture FIRST LAST | sleep | die]\n");
    return 2;
  }
  if (strcmp(mode, "sleep") == 0 && cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess)
    return 3;
  if (!items_begin(&items))
    return 3;
  for (int i = 0; ok && i < steps; i++) {
    if (i == first)
      ok = cudaProfilerStart() == cudaSuccess;
    ok = ok && step(&items, i);
    if (i == last)
      ok = ok && cudaProfilerStop() == cudaSuccess;
  }
  nvtxRangePushA("synccount.allow:unused");
  nvtxRangePop();
  if (rank != NULL && strcmp(rank, "1") == 0)
    ok = ok && items_many(&items, 3);
  if (strcmp(mode, "die") == 0)
    raise(SIGKILL);
  return ok ? 0 : 1;
}
