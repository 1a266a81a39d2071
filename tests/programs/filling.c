/* SPDX-License-Identifier: Apache-2.0
 * filling LAUNCHES KERNEL_US [EVERY]: one kernel of 20 ms, then LAUNCHES kernels of KERNEL_US each, as fast as launches
 * return, so that the device's queue fills up; with EVERY, a stream synchronise after each so many. Prints what a launch
 * took by its own clock: "launches N slow S slow_us T median_us M", slow being 50 us or more. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cuda_runtime_api.h>

#define CHECK(call) CHECK_OR_RETURN(3, call)

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static cudaError_t spin(cudaKernel_t kernel, cudaStream_t stream, unsigned long long ns) {
  void *args[] = { &ns };
  return cudaLaunchKernel((const void *)kernel, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, args, 0, stream);
}

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

int main(int argc, char **argv) {
  int count = argc > 2 ? atoi(argv[1]) : 0, kernel_us = argc > 2 ? atoi(argv[2]) : -1, every = argc > 3 ? atoi(argv[3]) : 0;
  cudaLibrary_t library;
  cudaKernel_t kernel;
  cudaStream_t stream;
  static double *took; /* static: a failed call leaves it behind */
  double slow_us = 0;
  int slow = 0;
  took = count > 0 ? calloc((size_t)count, sizeof *took) : NULL;
  if (took == NULL || kernel_us < 0 || argc > 4) {
    fprintf(stderr, "usage: filling LAUNCHES KERNEL_US [EVERY]\n");
    return 2;
  }
  CHECK(cudaLibraryLoadData(&library, test_kernels_image, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(cudaLibraryGetKernel(&kernel, library, "sc_test_spin"));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(spin(kernel, stream, 1000)); /* the first one loads code */
  CHECK(cudaStreamSynchronize(stream));
  CHECK(spin(kernel, stream, 20000000));
  for (int i = 0; i < count; i++) {
    double start = now_us();
    CHECK(spin(kernel, stream, (unsigned long long)kernel_us * 1000));
    took[i] = now_us() - start;
    if (took[i] >= 50) {
      slow++;
      slow_us += took[i];
    }
    if (every > 0 && i % every == every - 1)
      CHECK(cudaStreamSynchronize(stream));
  }
  CHECK(cudaStreamSynchronize(stream));
  qsort(took, (size_t)count, sizeof *took, by_value);
  printf("launches %d slow %d slow_us %.0f median_us %.2f\n", count, slow, slow_us, took[count / 2]);
  free(took);
  return 0;
}
