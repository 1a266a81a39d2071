/* SPDX-License-Identifier: Apache-2.0
 * The smallest read-back: see items.h. */
#include "items.h"

#include <stdio.h>

static bool ok(const char *what, cudaError_t status) {
  if (status != cudaSuccess)
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(status));
  return status == cudaSuccess;
}

bool items_begin(struct items *items) {
  return ok("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&items->stream, cudaStreamNonBlocking)) &&
         ok("cudaMallocHost", cudaMallocHost(&items->pinned, 4096)) &&
         ok("cudaMalloc", cudaMalloc(&items->device, 4096));
}

bool items_one(struct items *items) {
  return ok("cudaMemcpyAsync",
            cudaMemcpyAsync(items->pinned, items->device, 1, cudaMemcpyDeviceToHost, items->stream)) &&
         ok("cudaStreamSynchronize", cudaStreamSynchronize(items->stream));
}

bool items_many(struct items *items, int count) {
  bool ok = true;
  for (int i = 0; ok && i < count; i++)
    ok = items_one(items);
  return ok;
}
