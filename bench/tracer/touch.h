/* SPDX-License-Identifier: Apache-2.0
 * What the tracer's benchmarks do on a device: launches, read-backs. */
#ifndef SC_BENCH_TOUCH_H
#define SC_BENCH_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

struct touch {
  cudaStream_t stream;
  cudaKernel_t kernel;
  cudaEvent_t event; /* recorded and done: a query of it is ready */
  unsigned *device, *pinned;
};

/* False after one line on stderr. Nothing is ever freed: the process ends. */
bool touch_begin(struct touch *touch);

void touch_launch(struct touch *touch);
void touch_copy(struct touch *touch);
void touch_copy_nothing(struct touch *touch); /* 0 bytes: the call alone, nothing for the device to do */
void touch_sync(struct touch *touch);
void touch_query(struct touch *touch);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t touch_now(void);
/* Sorts, and gives the q-quantile (0.5: the median) of n > 0 values. */
double touch_quantile(double *values, size_t n, double q);

#endif
