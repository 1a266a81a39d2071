/* SPDX-License-Identifier: Apache-2.0
 * patterns: each way of making the host wait that a report tells apart, three times, each in a function named after it. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#define TIMES 3
#define PLACE __attribute__((noinline)) static bool
#define CHECK(call) CHECK_OR_RETURN(false, call)

static cudaStream_t stream, other;
static cudaEvent_t event;
static void *pinned, *device;
static char pageable[4096];

static bool submit(void) {
  CHECK(cudaMemsetAsync(device, 0, 64, stream));
  return true;
}

PLACE place_item(void) {
  CHECK(cudaMemcpyAsync(pinned, device, 1, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  return true;
}

/* The innermost names decide: this is how PyTorch's own function is called. */
PLACE place_nonzero(void) {
  CHECK(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  return true;
}

PLACE place_tolist(void) {
  CHECK(cudaMemcpyAsync(pageable, device, 256, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  return true;
}

PLACE place_pageable(void) {
  CHECK(cudaMemcpyAsync(pageable, device, 256, cudaMemcpyDeviceToHost, stream));
  return submit();
}

PLACE place_upload(void) {
  CHECK(cudaMemcpyAsync(device, pinned, 256, cudaMemcpyHostToDevice, stream));
  CHECK(cudaStreamSynchronize(stream));
  return true;
}

PLACE place_free(void) {
  void *block;
  CHECK(cudaMalloc(&block, 4096));
  if (!submit())
    return false;
  CHECK(cudaFree(block));
  return true;
}

PLACE place_device(void) {
  if (!submit())
    return false;
  CHECK(cudaDeviceSynchronize());
  return true;
}

PLACE place_event(void) {
  if (!submit())
    return false;
  CHECK(cudaEventRecord(event, stream));
  CHECK(cudaEventSynchronize(event));
  return true;
}

PLACE place_poll(void) {
  struct gate gate = { 0 };
  cudaError_t status;
  CHECK(cudaLaunchHostFunc(stream, gate_wait, &gate));
  for (int i = 0; i < 3; i++)
    if (cudaStreamQuery(stream) != cudaErrorNotReady)
      return false;
  gate_open(&gate);
  while ((status = cudaStreamQuery(stream)) == cudaErrorNotReady)
    continue;
  CHECK(status);
  return true;
}

PLACE place_capture(void) {
  cudaGraph_t graph = NULL;
  CHECK(cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal));
  if (cudaStreamSynchronize(other) == cudaSuccess)
    return false;
  (void)cudaStreamEndCapture(other, &graph); /* the refusal has spoilt it */
  (void)cudaGetLastError();
  return true;
}

PLACE place_nothing(void) {
  CHECK(cudaDeviceSynchronize());
  return true;
}

PLACE place_stream(void) {
  if (!submit())
    return false;
  CHECK(cudaStreamSynchronize(stream));
  return true;
}

int main(void) {
  static bool (*const places[])(void) = { place_item,   place_nonzero, place_tolist, place_pageable,
                                          place_upload, place_free,    place_stream, place_event,
                                          place_poll,   place_capture, place_device, place_nothing };
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
      cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) != cudaSuccess ||
      cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess ||
      cudaMallocHost(&pinned, 4096) != cudaSuccess || cudaMalloc(&device, 4096) != cudaSuccess)
    return 3;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
    for (int k = 0; k < TIMES; k++)
      if (!places[i]())
        return 1;
  return 0;
}
