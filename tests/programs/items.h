/* SPDX-License-Identifier: Apache-2.0
 * The smallest read-back, `.item()`: a pinned copy and a stream synchronise. What the survival programs count. */
#ifndef SC_TEST_ITEMS_H
#define SC_TEST_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

struct items {
  cudaStream_t stream;
  void *pinned, *device;
};

/* Says what failed on stderr. Nothing is freed: the programs end as they please. */
bool items_begin(struct items *items);
bool items_one(struct items *items);
bool items_many(struct items *items, int count);

#endif
