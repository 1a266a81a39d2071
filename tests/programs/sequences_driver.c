/* SPDX-License-Identifier: Apache-2.0
 * Known sequences of CUDA driver calls, one NVTX range each: see rows.h. No runtime library in this process (as in
 * JAX). */
#include "program.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

#include "rows.h"

#define SMALL 64
#define BLOCK (1u << 20)
#define PAGE 4096u

/* What a stand-in may lack is a weak reference: such a row is skipped by name. */
#define OPTIONAL(function) extern __typeof__(function) function __attribute__((weak))
OPTIONAL(cuArrayCreate);
OPTIONAL(cuArrayDestroy);
OPTIONAL(cuGraphDestroy);
OPTIONAL(cuGraphExecDestroy);
OPTIONAL(cuGraphInstantiate);
OPTIONAL(cuGraphLaunch);
OPTIONAL(cuLaunchHostFunc);
OPTIONAL(cuMemAllocAsync);
OPTIONAL(cuMemAllocManaged);
OPTIONAL(cuMemFreeAsync);
OPTIONAL(cuMemHostRegister);
OPTIONAL(cuMemHostUnregister);
OPTIONAL(cuMemcpy);
OPTIONAL(cuMemcpy2D);
OPTIONAL(cuMemcpy2DAsync);
OPTIONAL(cuMemcpyAsync);
OPTIONAL(cuMemcpyAtoH);
OPTIONAL(cuModuleGetFunction);
OPTIONAL(cuModuleLoadData);
OPTIONAL(cuMemsetD32);
OPTIONAL(cuMemsetD8);
OPTIONAL(cuMemsetD8Async);
OPTIONAL(cuStreamBeginCapture);
OPTIONAL(cuStreamEndCapture);

struct fixture {
  struct row_run *run;
  CUcontext context;
  CUstream stream, other; /* both non-blocking streams */
  CUevent event;
  char *pinned, *pinned2, *pageable, *pageable2;
  CUdeviceptr device, device2;
  CUfunction touch; /* NULL: no_kernel says why */
  const char *no_kernel;
  struct gate gate;
};

static const char *text_of(int status) {
  const char *name = NULL;
  if (cuGetErrorName((CUresult)status, &name) != CUDA_SUCCESS || name == NULL)
    name = "an unknown error";
  return name;
}

#define OK(call) ROW_OK(f->run, text_of, call)
#define REFUSED(call) ROW_REFUSED(f->run, text_of, call)
#define OR_SKIP(call) ROW_OR_SKIP(f->run, text_of, call)
#define NEEDS(function)                                      \
  do {                                                       \
    if (&(function) == NULL) {                               \
      row_skip(f->run, "this libcuda has no %s", #function); \
      goto out;                                              \
    }                                                        \
  } while (0)
#define NEEDS_KERNEL()                                 \
  do {                                                 \
    if (f->touch == NULL) {                            \
      row_skip(f->run, "no kernel: %s", f->no_kernel); \
      goto out;                                        \
    }                                                  \
  } while (0)
#define NOT_READY(call)                                                                              \
  do {                                                                                               \
    CUresult not_ready_ = (call);                                                                    \
    if (not_ready_ != CUDA_ERROR_NOT_READY) {                                                        \
      row_fail(f->run, "line %d: %s: %s, expected not ready", __LINE__, #call, text_of(not_ready_)); \
      goto out;                                                                                      \
    }                                                                                                \
  } while (0)
#define BEGIN() row_begin(f->run)
#define END() row_end(f->run)
#define FINISH() \
  out:           \
  END()

/* ---- helpers ------------------------------------------------------------------------------ */

static CUresult launch_touch(struct fixture *f, CUstream stream) {
  void *arguments[] = { &f->device2 };
  return cuLaunchKernel(f->touch, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static void load_kernel(struct fixture *f) {
  CUmodule module = NULL;
  f->no_kernel = "this libcuda has no cuModuleLoadData";
  if (&cuModuleLoadData == NULL || &cuModuleGetFunction == NULL)
    return;
  CUresult status = cuModuleLoadData(&module, test_kernels_image);
  if (status == CUDA_SUCCESS)
    status = cuModuleGetFunction(&f->touch, module, "sc_test_touch");
  if (status == CUDA_SUCCESS)
    return;
  f->touch = NULL;
  f->no_kernel = text_of(status);
}

static CUresult close_gate(struct fixture *f, CUstream stream) {
  atomic_store(&f->gate.open, false);
  return cuLaunchHostFunc(stream, gate_wait, &f->gate);
}

static CUresult poll_until(CUresult (*query)(void *), void *object) {
  CUresult status = query(object);
  for (time_t end = time(NULL) + 10; status == CUDA_ERROR_NOT_READY && time(NULL) < end;)
    status = query(object);
  return status;
}
static CUresult query_stream(void *stream) { return cuStreamQuery(stream); }
static CUresult query_event(void *event) { return cuEventQuery(event); }

static CUresult d2h(struct fixture *f, void *to, CUstream stream) {
  return cuMemcpyDtoHAsync(to, f->device, SMALL, stream);
}

/* ---- the table ---------------------------------------------------------------------------- */

static void pinned_d2h(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pinned, f->stream));
  FINISH();
}

static void pinned_d2h_launches_sync(struct fixture *f) {
  NEEDS_KERNEL();
  BEGIN();
  OK(d2h(f, f->pinned, f->stream));
  OK(launch_touch(f, f->stream));
  OK(launch_touch(f, f->stream));
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void item(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pinned, f->stream));
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void two_pinned_d2h_sync(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pinned, f->stream));
  OK(d2h(f, f->pinned2, f->stream));
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void tolist(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, f->stream));
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void two_pageable_d2h_sync(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, f->stream));
  OK(d2h(f, f->pageable2, f->stream));
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void pageable_d2h_launch_sync(struct fixture *f) {
  NEEDS_KERNEL();
  BEGIN();
  OK(d2h(f, f->pageable, f->stream));
  OK(launch_touch(f, f->stream));
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void memcpy_d2h_sync_own(struct fixture *f) {
  BEGIN();
  OK(cuMemcpyDtoH(f->pageable, f->device, SMALL));
  OK(cuStreamSynchronize(0));
  FINISH();
}

static void memcpy_d2h_ctx_sync(struct fixture *f) {
  BEGIN();
  OK(cuMemcpyDtoH(f->pageable, f->device, SMALL));
  OK(cuCtxSynchronize());
  FINISH();
}

static void memcpy_d2h_event_sync(struct fixture *f) {
  BEGIN();
  OK(cuMemcpyDtoH(f->pageable, f->device, SMALL));
  OK(cuEventRecord(f->event, 0));
  OK(cuEventSynchronize(f->event));
  FINISH();
}

static void memcpy_d2h_other_sync(struct fixture *f) {
  BEGIN();
  OK(cuMemcpyDtoH(f->pageable, f->device, SMALL));
  OK(cuStreamSynchronize(f->other));
  FINISH();
}

static void upload_pinned_sync(struct fixture *f) {
  BEGIN();
  OK(cuMemcpyHtoDAsync(f->device, f->pinned, SMALL, f->stream));
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void upload_pageable_sync(struct fixture *f) {
  BEGIN();
  OK(cuMemcpyHtoDAsync(f->device, f->pageable, SMALL, f->stream));
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void memcpy_h2d(struct fixture *f) {
  BEGIN();
  OK(cuMemcpyHtoD(f->device, f->pageable, SMALL));
  FINISH();
}

static void memcpy_d2d(struct fixture *f) {
  BEGIN();
  OK(cuMemcpyDtoD(f->device2, f->device, SMALL));
  FINISH();
}

static void unified(struct fixture *f, CUdeviceptr to, CUdeviceptr from) {
  NEEDS(cuMemcpy);
  BEGIN();
  OK(cuMemcpy(to, from, SMALL));
  FINISH();
}
static void memcpy_unified_d2h(struct fixture *f) { unified(f, (CUdeviceptr)(uintptr_t)f->pinned, f->device); }
static void memcpy_unified_h2d(struct fixture *f) { unified(f, f->device, (CUdeviceptr)(uintptr_t)f->pageable); }
static void memcpy_unified_d2d(struct fixture *f) { unified(f, f->device2, f->device); }
static void memcpy_unified_h2h(struct fixture *f) {
  unified(f, (CUdeviceptr)(uintptr_t)f->pinned2, (CUdeviceptr)(uintptr_t)f->pinned);
}

static CUDA_MEMCPY2D copy_2d(struct fixture *f) {
  return (CUDA_MEMCPY2D){
    .srcMemoryType = CU_MEMORYTYPE_DEVICE,
    .srcDevice = f->device,
    .srcPitch = 256,
    .dstMemoryType = CU_MEMORYTYPE_HOST,
    .dstHost = f->pageable,
    .dstPitch = 128,
    .WidthInBytes = SMALL,
    .Height = 4,
  };
}

static void memcpy_2d_d2h(struct fixture *f) {
  CUDA_MEMCPY2D copy = copy_2d(f);
  NEEDS(cuMemcpy2D);
  BEGIN();
  OK(cuMemcpy2D(&copy));
  FINISH();
}

/* One dimension: cuMemcpyAtoH takes no other. */
static CUresult make_array(CUarray *array) {
  CUDA_ARRAY_DESCRIPTOR shape = { .Width = SMALL, .Height = 0, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1 };
  return cuArrayCreate(array, &shape);
}

static void memcpy_from_array(struct fixture *f) {
  CUarray array = NULL;
  NEEDS(cuArrayCreate);
  NEEDS(cuArrayDestroy);
  NEEDS(cuMemcpyAtoH);
  OK(make_array(&array));
  BEGIN();
  OK(cuMemcpyAtoH(f->pageable, array, 0, SMALL));
  FINISH();
  if (array != NULL)
    cuArrayDestroy(array);
}

static void async_unified_pageable(struct fixture *f) {
  NEEDS(cuMemcpyAsync);
  BEGIN();
  OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)f->pageable, f->device, SMALL, f->stream));
  FINISH();
}

static void async_unified_pinned(struct fixture *f) {
  NEEDS(cuMemcpyAsync);
  BEGIN();
  OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)f->pinned, f->device, SMALL, f->stream));
  FINISH();
}

static void async_2d_pageable(struct fixture *f) {
  CUDA_MEMCPY2D copy = copy_2d(f);
  NEEDS(cuMemcpy2DAsync);
  BEGIN();
  OK(cuMemcpy2DAsync(&copy, f->stream));
  FINISH();
}

static void default_then_legacy(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, 0));
  OK(cuStreamSynchronize(CU_STREAM_LEGACY));
  FINISH();
}

static void default_then_per_thread(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, 0));
  OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  FINISH();
}

static void idle_sync(struct fixture *f) {
  BEGIN();
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void ctx_sync(struct fixture *f) {
  BEGIN();
  OK(cuCtxSynchronize());
  FINISH();
}

static void event_sync(struct fixture *f) {
  BEGIN();
  OK(cuEventRecord(f->event, f->stream));
  OK(cuEventSynchronize(f->event));
  FINISH();
}

static void *thread_copies(void *argument) {
  struct fixture *f = argument;
  OK(cuCtxSetCurrent(f->context));
  OK(d2h(f, f->pinned, f->stream));
out:
  return NULL;
}

static void sync_on_thread_b(struct fixture *f) {
  if (!run_on_thread(thread_copies, f))
    row_fail(f->run, "no thread");
  BEGIN();
  OK(cuStreamSynchronize(f->stream));
  FINISH();
}

static void graph_launch_sync(struct fixture *f) {
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  NEEDS(cuStreamBeginCapture);
  NEEDS(cuStreamEndCapture);
  NEEDS(cuGraphInstantiate);
  NEEDS(cuGraphLaunch);
  NEEDS(cuGraphDestroy);
  NEEDS(cuGraphExecDestroy);
  OK(cuStreamBeginCapture(f->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUresult inside = d2h(f, f->pinned, f->stream);
  OK(cuStreamEndCapture(f->stream, &graph));
  OK(inside);
  OK(cuGraphInstantiate(&exec, graph, 0));
  BEGIN();
  OK(cuGraphLaunch(exec, f->stream));
  OK(cuStreamSynchronize(f->stream));
  FINISH();
  if (exec != NULL)
    cuGraphExecDestroy(exec);
  if (graph != NULL)
    cuGraphDestroy(graph);
}

static void captured_pageable_d2h(struct fixture *f) {
  CUgraph graph = NULL;
  NEEDS(cuStreamBeginCapture);
  NEEDS(cuStreamEndCapture);
  NEEDS(cuGraphDestroy);
  OK(cuStreamBeginCapture(f->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  BEGIN();
  CUresult status = d2h(f, f->pageable, f->stream);
  END();
  if (cuStreamEndCapture(f->stream, &graph) == CUDA_SUCCESS && graph != NULL)
    cuGraphDestroy(graph);
  bool refused = status >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && status <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (status != CUDA_SUCCESS && !refused)
    row_fail(f->run, "the copy said %s", text_of(status));
  FINISH();
}

static void memset_pinned(struct fixture *f) {
  NEEDS(cuMemsetD8);
  BEGIN();
  OK(cuMemsetD8((CUdeviceptr)(uintptr_t)f->pinned, 0, SMALL));
  FINISH();
}

static void memset_managed(struct fixture *f) {
  CUdeviceptr managed = 0;
  NEEDS(cuMemAllocManaged);
  NEEDS(cuMemsetD32);
  OK(cuMemAllocManaged(&managed, BLOCK, CU_MEM_ATTACH_GLOBAL));
  BEGIN();
  OK(cuMemsetD32(managed, 0, SMALL / 4));
  FINISH();
  if (managed != 0)
    cuMemFree(managed);
}

static void memset_device(struct fixture *f) {
  NEEDS(cuMemsetD8);
  BEGIN();
  OK(cuMemsetD8(f->device, 0, SMALL));
  FINISH();
}

static void memset_async_pinned(struct fixture *f) {
  NEEDS(cuMemsetD8Async);
  BEGIN();
  OK(cuMemsetD8Async((CUdeviceptr)(uintptr_t)f->pinned, 0, SMALL, f->stream));
  FINISH();
}

static void registered(struct fixture *f) {
  char *block = aligned_alloc(PAGE, 4 * PAGE);
  bool registered = false;
  NEEDS(cuMemHostRegister);
  NEEDS(cuMemHostUnregister);
  OK(cuMemHostRegister(block, 4 * PAGE, 0));
  registered = true;
  BEGIN();
  OK(d2h(f, block + PAGE, f->stream));
  FINISH();
  if (registered)
    cuMemHostUnregister(block);
  free(block);
}

static void unregistered(struct fixture *f) {
  char *block = aligned_alloc(PAGE, 4 * PAGE);
  NEEDS(cuMemHostRegister);
  NEEDS(cuMemHostUnregister);
  OK(cuMemHostRegister(block, 4 * PAGE, 0));
  OK(cuMemHostUnregister(block));
  BEGIN();
  OK(d2h(f, block + PAGE, f->stream));
  FINISH();
  free(block);
}

static void free_device(struct fixture *f) {
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, BLOCK));
  BEGIN();
  OK(cuMemFree(pointer));
  FINISH();
}

static void free_managed(struct fixture *f) {
  CUdeviceptr pointer = 0;
  NEEDS(cuMemAllocManaged);
  OK(cuMemAllocManaged(&pointer, BLOCK, CU_MEM_ATTACH_GLOBAL));
  BEGIN();
  OK(cuMemFree(pointer));
  FINISH();
}

static void free_array(struct fixture *f) {
  CUarray array = NULL;
  NEEDS(cuArrayCreate);
  NEEDS(cuArrayDestroy);
  OK(make_array(&array));
  BEGIN();
  OK(cuArrayDestroy(array));
  FINISH();
}

static void free_host(struct fixture *f) {
  void *pointer = NULL;
  OK(cuMemAllocHost(&pointer, BLOCK));
  BEGIN();
  OK(cuMemFreeHost(pointer));
  FINISH();
}

static void unregister(struct fixture *f) {
  char *block = aligned_alloc(PAGE, 4 * PAGE);
  NEEDS(cuMemHostRegister);
  NEEDS(cuMemHostUnregister);
  OK(cuMemHostRegister(block, 4 * PAGE, 0));
  BEGIN();
  OK(cuMemHostUnregister(block));
  FINISH();
  free(block);
}

static void free_null(struct fixture *f) {
  BEGIN();
  (void)cuMemFree(0); /* success or invalid value, as the driver pleases: no sync either way */
  row_end(f->run);
}

static void free_of_async_pointer(struct fixture *f) {
  CUdeviceptr pointer = 0;
  NEEDS(cuMemAllocAsync);
  OR_SKIP(cuMemAllocAsync(&pointer, BLOCK, f->stream));
  OK(cuStreamSynchronize(f->stream));
  BEGIN();
  OK(cuMemFree(pointer));
  FINISH();
}

static void free_async(struct fixture *f) {
  CUdeviceptr pointer = 0;
  NEEDS(cuMemAllocAsync);
  NEEDS(cuMemFreeAsync);
  OR_SKIP(cuMemAllocAsync(&pointer, BLOCK, f->stream));
  BEGIN();
  OK(cuMemFreeAsync(pointer, f->stream));
  FINISH();
}

static void allocate(struct fixture *f) {
  CUdeviceptr device = 0, managed = 0, pooled = 0;
  void *host = NULL, *mapped = NULL;
  char *block = aligned_alloc(PAGE, 4 * PAGE);
  bool registered = false;
  NEEDS(cuMemAllocManaged);
  NEEDS(cuMemAllocAsync);
  NEEDS(cuMemHostRegister);
  BEGIN();
  OK(cuMemAlloc(&device, BLOCK));
  OK(cuMemAllocHost(&host, BLOCK));
  OK(cuMemHostAlloc(&mapped, BLOCK, CU_MEMHOSTALLOC_DEVICEMAP));
  OK(cuMemAllocManaged(&managed, BLOCK, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemAllocAsync(&pooled, BLOCK, f->stream));
  OK(cuMemHostRegister(block, 4 * PAGE, 0));
  registered = true;
  FINISH();
  if (device != 0)
    cuMemFree(device);
  if (managed != 0)
    cuMemFree(managed);
  if (pooled != 0)
    cuMemFree(pooled);
  if (host != NULL)
    cuMemFreeHost(host);
  if (mapped != NULL)
    cuMemFreeHost(mapped);
  if (registered)
    cuMemHostUnregister(block);
  free(block);
}

static void destroy(struct fixture *f) {
  CUstream stream = NULL;
  CUevent event = NULL;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
  BEGIN();
  OK(cuStreamDestroy(stream));
  OK(cuEventDestroy(event));
  FINISH();
}

static void memcpy_size_0(struct fixture *f) {
  BEGIN();
  OK(cuMemcpyDtoH(f->pageable, f->device, 0));
  FINISH();
}

static void launch(struct fixture *f) {
  NEEDS_KERNEL();
  BEGIN();
  OK(launch_touch(f, f->stream));
  FINISH();
}

static void poll_stream(struct fixture *f) {
  NEEDS(cuLaunchHostFunc);
  OK(close_gate(f, f->stream));
  BEGIN();
  NOT_READY(cuStreamQuery(f->stream));
  NOT_READY(cuStreamQuery(f->stream));
  gate_open(&f->gate);
  OK(poll_until(query_stream, f->stream));
  FINISH();
}

static void poll_event(struct fixture *f) {
  NEEDS(cuLaunchHostFunc);
  OK(close_gate(f, f->stream));
  OK(cuEventRecord(f->event, f->stream));
  BEGIN();
  NOT_READY(cuEventQuery(f->event));
  NOT_READY(cuEventQuery(f->event));
  gate_open(&f->gate);
  OK(poll_until(query_event, f->event));
  FINISH();
}

static void poll_ready(struct fixture *f) {
  BEGIN();
  OK(cuStreamQuery(f->stream));
  FINISH();
}

static void failed_memcpy(struct fixture *f) {
  BEGIN();
  REFUSED(cuMemcpyDtoH(NULL, f->device, SMALL));
  FINISH();
}

static void failed_free(struct fixture *f) {
  BEGIN();
  REFUSED(cuMemFree((CUdeviceptr)0x1000));
  FINISH();
}

static void failed_capture_sync(struct fixture *f) {
  CUgraph graph = NULL;
  NEEDS(cuStreamBeginCapture);
  NEEDS(cuStreamEndCapture);
  OK(cuStreamBeginCapture(f->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  BEGIN();
  CUresult status = cuStreamSynchronize(f->stream);
  END();
  cuStreamEndCapture(f->stream, &graph); /* says that the capture is invalid: as it should */
  REFUSED(status);
  FINISH();
}

/* ---- running them ------------------------------------------------------------------------- */

static const struct {
  const char *name;
  void (*function)(struct fixture *f);
} rows[] = {
#define ROW_FUNCTION(name, sequence, ...) { #name, name },
  SC_ROWS_DRIVER(ROW_FUNCTION)
#undef ROW_FUNCTION
};

static bool made(const char *what, CUresult status) {
  if (status != CUDA_SUCCESS)
    fprintf(stderr, "sequences_driver: %s: %s\n", what, text_of(status));
  return status == CUDA_SUCCESS;
}

static bool make_fixture(struct fixture *f) {
  CUdevice device = 0;
  if (!made("cuInit", cuInit(0)) || !made("cuDeviceGet", cuDeviceGet(&device, 0)) ||
      !made("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&f->context, device)) ||
      !made("cuCtxSetCurrent", cuCtxSetCurrent(f->context)) ||
      !made("cuStreamCreate", cuStreamCreate(&f->stream, CU_STREAM_NON_BLOCKING)) ||
      !made("cuStreamCreate", cuStreamCreate(&f->other, CU_STREAM_NON_BLOCKING)) ||
      !made("cuEventCreate", cuEventCreate(&f->event, CU_EVENT_DEFAULT)) ||
      !made("cuMemAllocHost", cuMemAllocHost((void **)&f->pinned, BLOCK)) ||
      !made("cuMemAllocHost", cuMemAllocHost((void **)&f->pinned2, BLOCK)) ||
      !made("cuMemAlloc", cuMemAlloc(&f->device, BLOCK)) || !made("cuMemAlloc", cuMemAlloc(&f->device2, BLOCK)))
    return false;
  f->pageable = aligned_alloc(PAGE, BLOCK);
  f->pageable2 = aligned_alloc(PAGE, BLOCK);
  if (f->pageable == NULL || f->pageable2 == NULL) {
    fprintf(stderr, "sequences_driver: out of memory\n");
    return false;
  }
  memset(f->pageable, 1, BLOCK);
  memset(f->pageable2, 2, BLOCK);
  load_kernel(f);
  if (f->touch != NULL && !made("cuLaunchKernel", launch_touch(f, f->stream)))
    return false;
  return made("cuCtxSynchronize", cuCtxSynchronize());
}

int main(int argc, char **argv) {
  struct fixture fixture = { 0 };
  int failed = 0;
  if (!make_fixture(&fixture))
    return 3;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (!row_wanted(rows[i].name, argc, argv))
      continue;
    struct row_run run = { .name = rows[i].name };
    fixture.run = &run;
    rows[i].function(&fixture);
    row_end(&run);
    gate_open(&fixture.gate);
    /* Outside every range: the next row starts with nothing outstanding. */
    CUresult after = cuCtxSynchronize();
    if (after != CUDA_SUCCESS)
      row_fail(&run, "cuCtxSynchronize after the row: %s", text_of(after));
    row_report(&run);
    failed += run.failed;
  }
  return failed > 0 ? 1 : 0;
}
