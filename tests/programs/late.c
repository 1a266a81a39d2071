/* SPDX-License-Identifier: Apache-2.0
 * late LIBRARY: uses CUDA for a while, then loads the tracer by hand and starts it. Memory allocated before is of
 * unknown kind: a copy to it may or may not have waited, and the trace must say so instead of guessing. Run with
 * NVTX_INJECTION64_PATH set to LIBRARY, so that the ranges (first used after the load) are seen. */
#include "program.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "items.h"

#define SAY(call)                                                    \
  do {                                                               \
    cudaError_t status_ = (call);                                    \
    if (status_ != cudaSuccess) {                                    \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(status_)); \
      return 1;                                                      \
    }                                                                \
  } while (0)

int main(int argc, char **argv) {
  struct items items = { 0 };
  void *after = NULL;
  if (argc != 2 || !items_begin(&items) || !items_one(&items))
    return 3;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  void *symbol = library != NULL ? dlsym(library, "InitializeInjection") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "%s: %s\n", argv[1], dlerror());
    return 3;
  }
  /* A program that names the tracer wants to be counted from now on. */
  if (setenv("CUDA_INJECTION64_PATH", argv[1], 1) != 0)
    return 3;
  ((int (*)(void))(uintptr_t)symbol)();
  SAY(cudaMallocHost(&after, 4096));
  SAY(cudaDeviceSynchronize());

  struct row_run unknown = { .name = "unknown" };
  row_begin(&unknown);
  SAY(cudaMemcpyAsync(items.pinned, items.device, 1, cudaMemcpyDeviceToHost, items.stream));
  row_end(&unknown);
  SAY(cudaDeviceSynchronize());

  struct row_run synced = { .name = "unknown_synced" };
  row_begin(&synced);
  SAY(cudaMemcpyAsync(items.pinned, items.device, 1, cudaMemcpyDeviceToHost, items.stream));
  SAY(cudaStreamSynchronize(items.stream));
  row_end(&synced);
  SAY(cudaDeviceSynchronize());

  struct row_run known = { .name = "known" };
  row_begin(&known);
  SAY(cudaMemcpyAsync(after, items.device, 1, cudaMemcpyDeviceToHost, items.stream));
  row_end(&known);
  SAY(cudaDeviceSynchronize());
  return 0;
}
