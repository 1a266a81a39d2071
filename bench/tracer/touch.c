/* SPDX-License-Identifier: Apache-2.0
 * See touch.h. Runs on a GPU and on the simulated device alike; a failed call ends the program, since a figure of
 * failing calls is worth nothing. */
#include "touch.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* simcuda's ABI with the programs it runs. */
struct simcuda_kernel {
  const char *name;
  void (*run)(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args);
  unsigned arg_count;
  unsigned short arg_bytes[32];
};
extern const struct simcuda_kernel simcuda_kernels[];

static void simulated(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args) {
  (void)grid, (void)block, (void)shared_bytes;
  **(unsigned **)args[0] += 1;
}

__attribute__((visibility("default"))) const struct simcuda_kernel simcuda_kernels[] = {
  { .name = "sc_bench_touch", .run = simulated, .arg_count = 1, .arg_bytes = { sizeof(unsigned *) } },
  { .name = NULL },
};

extern const unsigned char touch_image[];
__asm__(".section .rodata\n.balign 64\n.global touch_image\ntouch_image:\n.incbin \"" TOUCH_FATBIN "\"\n.previous\n");

static void check(cudaError_t status, const char *call) {
  if (status == cudaSuccess)
    return;
  fprintf(stderr, "bench: %s failed: %s\n", call, cudaGetErrorString(status));
  exit(3);
}
#define CHECK(call) check((call), #call)

bool touch_begin(struct touch *touch) {
  cudaLibrary_t library;
  cudaError_t status = cudaStreamCreateWithFlags(&touch->stream, cudaStreamNonBlocking);
  if (status != cudaSuccess) {
    fprintf(stderr,
            "bench: no usable CUDA device: %s; put the simulated libraries (build/lib/simcuda) on LD_LIBRARY_PATH to "
            "run without one\n",
            cudaGetErrorString(status));
    return false;
  }
  CHECK(cudaLibraryLoadData(&library, touch_image, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(cudaLibraryGetKernel(&touch->kernel, library, "sc_bench_touch"));
  CHECK(cudaMalloc((void **)&touch->device, sizeof(*touch->device)));
  CHECK(cudaMallocHost((void **)&touch->pinned, sizeof(*touch->pinned)));
  CHECK(cudaMemset(touch->device, 0, sizeof(*touch->device)));
  CHECK(cudaEventCreateWithFlags(&touch->event, cudaEventDisableTiming));
  CHECK(cudaEventRecord(touch->event, touch->stream));
  CHECK(cudaDeviceSynchronize());
  return true;
}

void touch_launch(struct touch *touch) {
  void *args[] = { &touch->device };
  CHECK(cudaLaunchKernel((const void *)touch->kernel, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args, 0, touch->stream));
}

void touch_copy(struct touch *touch) {
  CHECK(cudaMemcpyAsync(touch->pinned, touch->device, 1, cudaMemcpyDeviceToHost, touch->stream));
}
void touch_copy_nothing(struct touch *touch) {
  CHECK(cudaMemcpyAsync(touch->pinned, touch->device, 0, cudaMemcpyDeviceToHost, touch->stream));
}
void touch_sync(struct touch *touch) { CHECK(cudaStreamSynchronize(touch->stream)); }
void touch_query(struct touch *touch) { CHECK(cudaEventQuery(touch->event)); }

uint64_t touch_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double touch_quantile(double *values, size_t n, double q) {
  qsort(values, n, sizeof(*values), by_value);
  double at = q * (double)(n - 1);
  size_t low = (size_t)at;
  return low + 1 < n ? values[low] + (at - (double)low) * (values[low + 1] - values[low]) : values[low];
}
