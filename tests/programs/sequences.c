/* SPDX-License-Identifier: Apache-2.0
 * Known sequences of CUDA runtime calls, one NVTX range each: see rows.h. Built three times: with the legacy default
 * stream, with per-thread default streams (CUDA_API_PER_THREAD_DEFAULT_STREAM), and with the static runtime
 * (TEST_STATIC_CUDART). */
#include "program.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>

#include "rows.h"

#define SMALL 64
#define BLOCK (1u << 20)
#define PAGE 4096u

/* Registration of a device symbol, as compiled CUDA C does it before main; the runtime's headers do not declare it. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterVar(void **handle, char *host_variable, char *device_address, const char *device_name, int external,
                       size_t size, int constant, int global);

/* What a stand-in or an older library may lack is a weak reference: such a row is skipped by name instead of ending the
 * program at its first call. The static runtime is complete, and weak references would not pull its members in. */
#ifdef TEST_STATIC_CUDART
#define LIBRARY_HAS(function) true
#else
#define LIBRARY_HAS(function) (&(function) != NULL)
#define OPTIONAL(function) extern __typeof__(function) function __attribute__((weak))
OPTIONAL(__cudaRegisterFatBinary);
OPTIONAL(__cudaRegisterFatBinaryEnd);
OPTIONAL(__cudaRegisterVar);
OPTIONAL(cudaEventCreateWithFlags);
OPTIONAL(cudaFreeArray);
OPTIONAL(cudaFreeAsync);
OPTIONAL(cudaFreeMipmappedArray);
OPTIONAL(cudaGraphDestroy);
OPTIONAL(cudaGraphExecDestroy);
OPTIONAL(cudaGraphInstantiate);
OPTIONAL(cudaGraphLaunch);
OPTIONAL(cudaHostRegister);
OPTIONAL(cudaHostUnregister);
OPTIONAL(cudaLaunchHostFunc);
OPTIONAL(cudaLibraryGetKernel);
OPTIONAL(cudaLibraryLoadData);
OPTIONAL(cudaMalloc3DArray);
OPTIONAL(cudaMallocArray);
OPTIONAL(cudaMallocAsync);
OPTIONAL(cudaMallocManaged);
OPTIONAL(cudaMallocMipmappedArray);
OPTIONAL(cudaDeviceGetDefaultMemPool);
OPTIONAL(cudaMemPoolTrimTo);
OPTIONAL(cudaMemPrefetchAsync);
OPTIONAL(cudaMemcpy2D);
OPTIONAL(cudaMemcpy2DAsync);
OPTIONAL(cudaMemcpy2DFromArray);
OPTIONAL(cudaMemcpy2DFromArrayAsync);
OPTIONAL(cudaMemcpy2DToArray);
OPTIONAL(cudaMemcpy3D);
OPTIONAL(cudaMemcpy3DAsync);
OPTIONAL(cudaMemcpyBatchAsync);
OPTIONAL(cudaMemcpyFromSymbol);
OPTIONAL(cudaMemcpyFromSymbolAsync);
OPTIONAL(cudaMemcpyPeer);
OPTIONAL(cudaMemcpyToSymbol);
OPTIONAL(cudaMemset2D);
OPTIONAL(cudaStreamBeginCapture);
OPTIONAL(cudaStreamEndCapture);
#endif

struct fixture {
  struct row_run *run;
  cudaStream_t stream, other; /* both non-blocking streams */
  cudaEvent_t event;
  char *pinned, *pinned2, *pageable, *pageable2, *device, *device2;
  cudaKernel_t touch; /* NULL: no_kernel says why */
  const char *no_kernel;
  struct gate gate;
};

static const char *text_of(int status) { return cudaGetErrorName((cudaError_t)status); }

#define OK(call) ROW_OK(f->run, text_of, call)
#define REFUSED(call) ROW_REFUSED(f->run, text_of, call)
#define OR_SKIP(call) ROW_OR_SKIP(f->run, text_of, call)
#define NEEDS(function)                                        \
  do {                                                         \
    if (!LIBRARY_HAS(function)) {                              \
      row_skip(f->run, "this libcudart has no %s", #function); \
      goto out;                                                \
    }                                                          \
  } while (0)
#define BEGIN() row_begin(f->run)
#define END() row_end(f->run)

/* ---- helpers ------------------------------------------------------------------------------ */

static cudaError_t launch_touch(struct fixture *f, cudaStream_t stream) {
  void *word = f->device2;
  void *arguments[] = { &word };
  return cudaLaunchKernel((const void *)f->touch, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, arguments, 0, stream);
}

#define NEEDS_KERNEL()                                 \
  do {                                                 \
    if (f->touch == NULL) {                            \
      row_skip(f->run, "no kernel: %s", f->no_kernel); \
      goto out;                                        \
    }                                                  \
  } while (0)

static void load_kernel(struct fixture *f) {
  cudaLibrary_t library = NULL;
  f->no_kernel = "this libcudart has no cudaLibraryLoadData";
  if (!LIBRARY_HAS(cudaLibraryLoadData) || !LIBRARY_HAS(cudaLibraryGetKernel))
    return;
  cudaError_t status = cudaLibraryLoadData(&library, test_kernels_image, NULL, NULL, 0, NULL, NULL, 0);
  if (status == cudaSuccess)
    status = cudaLibraryGetKernel(&f->touch, library, "sc_test_touch");
  if (status == cudaSuccess)
    return;
  f->touch = NULL;
  f->no_kernel = cudaGetErrorName(status);
}

/* A registered device symbol, or NULL with the row skipped. */
static void *device_symbol(struct fixture *f) {
  static unsigned shadow[16]; /* its address is the symbol; the runtime never reads it */
  static struct {
    int magic, version;
    const void *image;
    void *unused;
  } wrapper = { 0x466243b1, 1, test_kernels_image, NULL };
  static void **handle;
  if (!LIBRARY_HAS(__cudaRegisterFatBinary) || !LIBRARY_HAS(__cudaRegisterVar) ||
      !LIBRARY_HAS(__cudaRegisterFatBinaryEnd)) {
    row_skip(f->run, "this libcudart registers no symbols");
    return NULL;
  }
  if (handle == NULL) {
    handle = __cudaRegisterFatBinary(&wrapper);
    if (handle == NULL) {
      row_fail(f->run, "__cudaRegisterFatBinary gave no handle");
      return NULL;
    }
    __cudaRegisterVar(handle, (char *)shadow, (char *)"sc_test_symbol", "sc_test_symbol", 0, sizeof shadow, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
  }
  return shadow;
}

/* Closes the gate on a stream: until gate_open, nothing queued behind it is done. */
static cudaError_t close_gate(struct fixture *f, cudaStream_t stream) {
  atomic_store(&f->gate.open, false);
  return cudaLaunchHostFunc(stream, gate_wait, &f->gate);
}

/* Asks until the answer is not "not ready", for 10 seconds at most. */
static cudaError_t poll_until(cudaError_t (*query)(void *), void *object) {
  cudaError_t status = query(object);
  for (time_t end = time(NULL) + 10; status == cudaErrorNotReady && time(NULL) < end;)
    status = query(object);
  return status;
}
static cudaError_t query_stream(void *stream) { return cudaStreamQuery(stream); }
static cudaError_t query_event(void *event) { return cudaEventQuery(event); }

/* The stream must be busy: anything but "not ready" fails the row. */
#define NOT_READY(call)                                                                              \
  do {                                                                                               \
    cudaError_t not_ready_ = (call);                                                                 \
    if (not_ready_ != cudaErrorNotReady) {                                                           \
      row_fail(f->run, "line %d: %s: %s, expected not ready", __LINE__, #call, text_of(not_ready_)); \
      goto out;                                                                                      \
    }                                                                                                \
  } while (0)

static cudaError_t d2h(struct fixture *f, void *to, cudaStream_t stream) {
  return cudaMemcpyAsync(to, f->device, SMALL, cudaMemcpyDeviceToHost, stream);
}

/* Every row function ends here: the range is closed whatever happened. */
#define FINISH() \
  out:           \
  END()

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
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void item(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pinned, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void two_pinned_d2h_sync(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pinned, f->stream));
  OK(d2h(f, f->pinned2, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void tolist(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void two_pageable_d2h_sync(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, f->stream));
  OK(d2h(f, f->pageable2, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void pageable_d2h_launch_sync(struct fixture *f) {
  NEEDS_KERNEL();
  BEGIN();
  OK(d2h(f, f->pageable, f->stream));
  OK(launch_touch(f, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void memcpy_d2h_sync_own(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->pageable, f->device, SMALL, cudaMemcpyDeviceToHost));
  OK(cudaStreamSynchronize(0));
  FINISH();
}

static void memcpy_d2h_device_sync(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->pageable, f->device, SMALL, cudaMemcpyDeviceToHost));
  OK(cudaDeviceSynchronize());
  FINISH();
}

static void memcpy_d2h_event_sync(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->pageable, f->device, SMALL, cudaMemcpyDeviceToHost));
  OK(cudaEventRecord(f->event, 0));
  OK(cudaEventSynchronize(f->event));
  FINISH();
}

static void memcpy_d2h_other_sync(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->pageable, f->device, SMALL, cudaMemcpyDeviceToHost));
  OK(cudaStreamSynchronize(f->other));
  FINISH();
}

static void upload_pinned_sync(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpyAsync(f->device, f->pinned, SMALL, cudaMemcpyHostToDevice, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void upload_pageable_sync(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpyAsync(f->device, f->pageable, SMALL, cudaMemcpyHostToDevice, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void memcpy_h2d_pageable(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->device, f->pageable, SMALL, cudaMemcpyHostToDevice));
  FINISH();
}

static void memcpy_h2d_pinned(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->device, f->pinned, SMALL, cudaMemcpyHostToDevice));
  FINISH();
}

static void memcpy_h2h(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->pageable, f->pageable2, SMALL, cudaMemcpyHostToHost));
  FINISH();
}

static void to_symbol(struct fixture *f) {
  void *symbol = device_symbol(f);
  if (symbol == NULL)
    return;
  NEEDS(cudaMemcpyToSymbol);
  /* The first use of a symbol loads its module: not what the row is about. */
  OK(cudaMemcpyToSymbol(symbol, f->pageable, SMALL, 0, cudaMemcpyHostToDevice));
  BEGIN();
  OK(cudaMemcpyToSymbol(symbol, f->pageable, SMALL, 0, cudaMemcpyHostToDevice));
  FINISH();
}

static void from_symbol(struct fixture *f) {
  void *symbol = device_symbol(f);
  if (symbol == NULL)
    return;
  NEEDS(cudaMemcpyFromSymbol);
  OK(cudaMemcpyFromSymbol(f->pageable, symbol, SMALL, 0, cudaMemcpyDeviceToHost));
  BEGIN();
  OK(cudaMemcpyFromSymbol(f->pageable, symbol, SMALL, 0, cudaMemcpyDeviceToHost));
  FINISH();
}

static void idle_sync(struct fixture *f) {
  BEGIN();
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void *thread_copies_in_range(void *argument) {
  struct fixture *f = argument;
  BEGIN();
  OK(d2h(f, f->pinned, f->stream));
  FINISH();
  return NULL;
}

static void copy_on_thread_a(struct fixture *f) {
  if (!run_on_thread(thread_copies_in_range, f))
    row_fail(f->run, "no thread");
  OK(cudaStreamSynchronize(f->stream));
out:;
}

static void *thread_copies(void *argument) {
  struct fixture *f = argument;
  OK(d2h(f, f->pinned, f->stream));
out:
  return NULL;
}

static void sync_on_thread_b(struct fixture *f) {
  if (!run_on_thread(thread_copies, f))
    row_fail(f->run, "no thread");
  BEGIN();
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

static void graph_launch_sync(struct fixture *f) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  NEEDS(cudaStreamBeginCapture);
  NEEDS(cudaStreamEndCapture);
  NEEDS(cudaGraphInstantiate);
  NEEDS(cudaGraphLaunch);
  NEEDS(cudaGraphDestroy);
  NEEDS(cudaGraphExecDestroy);
  OK(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeThreadLocal));
  cudaError_t inside = d2h(f, f->pinned, f->stream);
  OK(cudaStreamEndCapture(f->stream, &graph));
  OK(inside);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  BEGIN();
  OK(cudaGraphLaunch(exec, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
  if (exec != NULL)
    cudaGraphExecDestroy(exec);
  if (graph != NULL)
    cudaGraphDestroy(graph);
}

/* One async D2H copy inside the range while `captured` is being captured. *status: what the copy said. */
static void copy_in_capture(struct fixture *f, void *to, cudaStream_t captured, enum cudaStreamCaptureMode mode,
                            cudaError_t *status) {
  cudaGraph_t graph = NULL;
  *status = cudaErrorUnknown;
  NEEDS(cudaStreamBeginCapture);
  NEEDS(cudaStreamEndCapture);
  NEEDS(cudaGraphDestroy);
  OK(cudaStreamBeginCapture(captured, mode));
  BEGIN();
  *status = d2h(f, to, f->stream);
  END();
  /* A refused call has invalidated the capture; that is the caller's to judge. */
  if (cudaStreamEndCapture(captured, &graph) == cudaSuccess && graph != NULL)
    cudaGraphDestroy(graph);
  FINISH();
}

static void captured_pageable_d2h(struct fixture *f) {
  cudaError_t status;
  copy_in_capture(f, f->pageable, f->stream, cudaStreamCaptureModeRelaxed, &status);
  bool refused = status >= cudaErrorStreamCaptureUnsupported && status <= cudaErrorStreamCaptureWrongThread;
  if (status != cudaSuccess && !refused)
    row_fail(f->run, "the copy said %s", text_of(status));
}

static void captured_pinned_d2h(struct fixture *f) {
  cudaError_t status;
  copy_in_capture(f, f->pinned, f->stream, cudaStreamCaptureModeRelaxed, &status);
  if (status != cudaSuccess)
    row_fail(f->run, "the copy said %s", text_of(status));
}

static void captured_on_other_stream(struct fixture *f) {
  cudaError_t status;
  copy_in_capture(f, f->pageable, f->other, cudaStreamCaptureModeRelaxed, &status);
  if (status != cudaSuccess)
    row_fail(f->run, "the copy said %s", text_of(status));
}

static void free_null(struct fixture *f) {
  BEGIN();
  OK(cudaFree(NULL));
  FINISH();
}

static void free_of_async_pointer(struct fixture *f) {
  void *pointer = NULL;
  NEEDS(cudaMallocAsync);
  OR_SKIP(cudaMallocAsync(&pointer, BLOCK, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  BEGIN();
  OK(cudaFree(pointer));
  FINISH();
}

static void default_then_legacy(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, 0));
  OK(cudaStreamSynchronize(cudaStreamLegacy));
  FINISH();
}

static void default_then_per_thread(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, 0));
  OK(cudaStreamSynchronize(cudaStreamPerThread));
  FINISH();
}

/* ---- explicit ----------------------------------------------------------------------------- */

static void device_sync(struct fixture *f) {
  BEGIN();
  OK(cudaDeviceSynchronize());
  FINISH();
}

static void event_sync(struct fixture *f) {
  BEGIN();
  OK(cudaEventRecord(f->event, f->stream));
  OK(cudaEventSynchronize(f->event));
  FINISH();
}

static void event_sync_sleeping(struct fixture *f) {
  cudaEvent_t event = NULL;
  NEEDS(cudaEventCreateWithFlags);
  OK(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming));
  BEGIN();
  OK(cudaEventRecord(event, f->stream));
  OK(cudaEventSynchronize(event));
  FINISH();
  if (event != NULL)
    cudaEventDestroy(event);
}

static void device_sync_after_d2h(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pinned, f->stream));
  OK(cudaDeviceSynchronize());
  FINISH();
}

static void event_sync_after_d2h(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pinned, f->stream));
  OK(cudaEventRecord(f->event, f->stream));
  OK(cudaEventSynchronize(f->event));
  FINISH();
}

/* ---- copy --------------------------------------------------------------------------------- */

static void memcpy_d2h_pageable(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->pageable, f->device, SMALL, cudaMemcpyDeviceToHost));
  FINISH();
}

static void memcpy_d2h_pinned(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->pinned, f->device, SMALL, cudaMemcpyDeviceToHost));
  FINISH();
}

static void memcpy_d2d(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->device2, f->device, SMALL, cudaMemcpyDeviceToDevice));
  FINISH();
}

static void memcpy_default_d2h(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->pinned, f->device, SMALL, cudaMemcpyDefault));
  FINISH();
}

static void memcpy_default_h2d(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->device, f->pageable, SMALL, cudaMemcpyDefault));
  FINISH();
}

static void memcpy_default_d2d(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->device2, f->device, SMALL, cudaMemcpyDefault));
  FINISH();
}

static void memcpy_2d_d2h(struct fixture *f) {
  NEEDS(cudaMemcpy2D);
  BEGIN();
  OK(cudaMemcpy2D(f->pageable, 128, f->device, 256, SMALL, 4, cudaMemcpyDeviceToHost));
  FINISH();
}

/* A 3D copy of 64 x 2 x 2 bytes from device memory. */
static struct cudaMemcpy3DParms copy_3d(struct fixture *f, void *to) {
  return (struct cudaMemcpy3DParms){
    .srcPtr = { .ptr = f->device, .pitch = 256, .xsize = 256, .ysize = 2 },
    .dstPtr = { .ptr = to, .pitch = 128, .xsize = 128, .ysize = 2 },
    .extent = { .width = SMALL, .height = 2, .depth = 2 },
    .kind = cudaMemcpyDeviceToHost,
  };
}

static void memcpy_3d_d2h(struct fixture *f) {
  struct cudaMemcpy3DParms parameters = copy_3d(f, f->pageable);
  NEEDS(cudaMemcpy3D);
  BEGIN();
  OK(cudaMemcpy3D(&parameters));
  FINISH();
}

static cudaError_t make_array(cudaArray_t *array) {
  struct cudaChannelFormatDesc bytes = { .x = 8, .f = cudaChannelFormatKindUnsigned };
  return cudaMallocArray(array, &bytes, SMALL, 4, 0);
}

static void memcpy_to_array(struct fixture *f) {
  cudaArray_t array = NULL;
  NEEDS(cudaMallocArray);
  NEEDS(cudaFreeArray);
  NEEDS(cudaMemcpy2DToArray);
  OK(make_array(&array));
  BEGIN();
  OK(cudaMemcpy2DToArray(array, 0, 0, f->pageable, SMALL, SMALL, 4, cudaMemcpyHostToDevice));
  FINISH();
  if (array != NULL)
    cudaFreeArray(array);
}

static void memcpy_from_array(struct fixture *f) {
  cudaArray_t array = NULL;
  NEEDS(cudaMallocArray);
  NEEDS(cudaFreeArray);
  NEEDS(cudaMemcpy2DFromArray);
  OK(make_array(&array));
  BEGIN();
  OK(cudaMemcpy2DFromArray(f->pageable, SMALL, array, 0, 0, SMALL, 4, cudaMemcpyDeviceToHost));
  FINISH();
  if (array != NULL)
    cudaFreeArray(array);
}

static void memcpy_peer(struct fixture *f) {
  NEEDS(cudaMemcpyPeer);
  BEGIN();
  OK(cudaMemcpyPeer(f->device2, 0, f->device, 0, SMALL));
  FINISH();
}

static void memcpy_d2h_launch_sync(struct fixture *f) {
  NEEDS_KERNEL();
  BEGIN();
  OK(cudaMemcpy(f->pageable, f->device, SMALL, cudaMemcpyDeviceToHost));
  OK(launch_touch(f, 0));
  OK(cudaStreamSynchronize(0));
  FINISH();
}

static void memset_pinned(struct fixture *f) {
  BEGIN();
  OK(cudaMemset(f->pinned, 0, SMALL));
  FINISH();
}

static void memset_managed(struct fixture *f) {
  void *managed = NULL;
  NEEDS(cudaMallocManaged);
  OK(cudaMallocManaged(&managed, BLOCK, cudaMemAttachGlobal));
  BEGIN();
  OK(cudaMemset(managed, 0, SMALL));
  FINISH();
  if (managed != NULL)
    cudaFree(managed);
}

static void memset_2d_pinned(struct fixture *f) {
  NEEDS(cudaMemset2D);
  BEGIN();
  OK(cudaMemset2D(f->pinned, 128, 0, SMALL, 4));
  FINISH();
}

static void memset_device(struct fixture *f) {
  BEGIN();
  OK(cudaMemset(f->device, 0, SMALL));
  FINISH();
}

static void memset_async_pinned(struct fixture *f) {
  BEGIN();
  OK(cudaMemsetAsync(f->pinned, 0, SMALL, f->stream));
  FINISH();
}

static void memset_async_device(struct fixture *f) {
  BEGIN();
  OK(cudaMemsetAsync(f->device, 0, SMALL, f->stream));
  FINISH();
}

/* ---- pageable ----------------------------------------------------------------------------- */

static void pageable_d2h(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, f->stream));
  FINISH();
}

static void pageable_d2h_other_sync(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, f->stream));
  OK(cudaStreamSynchronize(f->other));
  FINISH();
}

static void pageable_d2h_event_sync(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pageable, f->stream));
  OK(cudaEventRecord(f->event, f->stream));
  OK(cudaEventSynchronize(f->event));
  FINISH();
}

static void async_h2h_pageable(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpyAsync(f->pageable, f->pinned, SMALL, cudaMemcpyHostToHost, f->stream));
  FINISH();
}

static void async_managed_pageable(struct fixture *f) {
  void *managed = NULL;
  NEEDS(cudaMallocManaged);
  OK(cudaMallocManaged(&managed, BLOCK, cudaMemAttachGlobal));
  BEGIN();
  OK(cudaMemcpyAsync(f->pageable, managed, SMALL, cudaMemcpyDefault, f->stream));
  FINISH();
  if (managed != NULL)
    cudaFree(managed);
}

static void async_default_pageable(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpyAsync(f->pageable, f->device, SMALL, cudaMemcpyDefault, f->stream));
  FINISH();
}

static void async_to_managed(struct fixture *f) {
  void *managed = NULL;
  NEEDS(cudaMallocManaged);
  OK(cudaMallocManaged(&managed, BLOCK, cudaMemAttachGlobal));
  BEGIN();
  OK(cudaMemcpyAsync(managed, f->device, SMALL, cudaMemcpyDefault, f->stream));
  FINISH();
  if (managed != NULL)
    cudaFree(managed);
}

static void async_2d_pageable(struct fixture *f) {
  NEEDS(cudaMemcpy2DAsync);
  BEGIN();
  OK(cudaMemcpy2DAsync(f->pageable, 128, f->device, 256, SMALL, 4, cudaMemcpyDeviceToHost, f->stream));
  FINISH();
}

static void async_3d_pageable(struct fixture *f) {
  struct cudaMemcpy3DParms parameters = copy_3d(f, f->pageable);
  NEEDS(cudaMemcpy3DAsync);
  BEGIN();
  OK(cudaMemcpy3DAsync(&parameters, f->stream));
  FINISH();
}

static void async_3d_pinned(struct fixture *f) {
  struct cudaMemcpy3DParms parameters = copy_3d(f, f->pinned);
  NEEDS(cudaMemcpy3DAsync);
  BEGIN();
  OK(cudaMemcpy3DAsync(&parameters, f->stream));
  FINISH();
}

static void async_from_array_pageable(struct fixture *f) {
  cudaArray_t array = NULL;
  NEEDS(cudaMallocArray);
  NEEDS(cudaFreeArray);
  NEEDS(cudaMemcpy2DFromArrayAsync);
  OK(make_array(&array));
  BEGIN();
  OK(cudaMemcpy2DFromArrayAsync(f->pageable, SMALL, array, 0, 0, SMALL, 4, cudaMemcpyDeviceToHost, f->stream));
  FINISH();
  if (array != NULL)
    cudaFreeArray(array);
}

static void async_from_symbol_pageable(struct fixture *f) {
  void *symbol = device_symbol(f);
  if (symbol == NULL)
    return;
  NEEDS(cudaMemcpyFromSymbolAsync);
  OK(cudaMemcpyFromSymbolAsync(f->pageable, symbol, SMALL, 0, cudaMemcpyDeviceToHost, f->stream));
  OK(cudaDeviceSynchronize());
  BEGIN();
  OK(cudaMemcpyFromSymbolAsync(f->pageable, symbol, SMALL, 0, cudaMemcpyDeviceToHost, f->stream));
  FINISH();
}

static void batch_of_one(struct fixture *f, void *to) {
  void *destinations[] = { to };
  size_t sizes[] = { SMALL }, first[] = { 0 };
  struct cudaMemcpyAttributes attributes[] = { { .srcAccessOrder = cudaMemcpySrcAccessOrderStream } };
  NEEDS(cudaMemcpyBatchAsync);
  BEGIN();
#if CUDART_VERSION >= 13000
  const void *sources[] = { f->device };
  OR_SKIP(cudaMemcpyBatchAsync(destinations, sources, sizes, 1, attributes, first, 1, f->stream));
#else
  void *sources[] = { f->device };
  size_t failed;
  OR_SKIP(cudaMemcpyBatchAsync(destinations, sources, sizes, 1, attributes, first, 1, &failed, f->stream));
#endif
  FINISH();
}

static void batch_pageable(struct fixture *f) { batch_of_one(f, f->pageable); }

static void batch_pinned(struct fixture *f) { batch_of_one(f, f->pinned); }

/* ---- memory kinds ------------------------------------------------------------------------- */

static void pinned_interior(struct fixture *f) {
  BEGIN();
  OK(d2h(f, f->pinned + BLOCK / 2 + 4, f->stream));
  FINISH();
}

static void host_alloc_mapped(struct fixture *f) {
  void *mapped = NULL;
  OK(cudaHostAlloc(&mapped, PAGE, cudaHostAllocMapped | cudaHostAllocPortable));
  BEGIN();
  OK(d2h(f, mapped, f->stream));
  FINISH();
  if (mapped != NULL)
    cudaFreeHost(mapped);
}

static void registered(struct fixture *f) {
  char *block = aligned_alloc(PAGE, 4 * PAGE);
  bool registered = false;
  NEEDS(cudaHostRegister);
  NEEDS(cudaHostUnregister);
  OK(cudaHostRegister(block, 4 * PAGE, cudaHostRegisterDefault));
  registered = true;
  BEGIN();
  OK(d2h(f, block + PAGE, f->stream));
  FINISH();
  if (registered)
    cudaHostUnregister(block);
  free(block);
}

static void unregistered(struct fixture *f) {
  char *block = aligned_alloc(PAGE, 4 * PAGE);
  NEEDS(cudaHostRegister);
  NEEDS(cudaHostUnregister);
  OK(cudaHostRegister(block, 4 * PAGE, cudaHostRegisterDefault));
  OK(cudaHostUnregister(block));
  BEGIN();
  OK(d2h(f, block + PAGE, f->stream));
  FINISH();
  free(block);
}

static void beside_registered(struct fixture *f) {
  char *block = aligned_alloc(PAGE, 8 * PAGE);
  bool registered = false;
  NEEDS(cudaHostRegister);
  NEEDS(cudaHostUnregister);
  OK(cudaHostRegister(block + 2 * PAGE, 2 * PAGE, cudaHostRegisterDefault));
  registered = true;
  BEGIN();
  OK(d2h(f, block + 5 * PAGE, f->stream));
  FINISH();
  if (registered)
    cudaHostUnregister(block + 2 * PAGE);
  free(block);
}

/* ---- implicit ----------------------------------------------------------------------------- */

static void free_device(struct fixture *f) {
  void *pointer = NULL;
  OK(cudaMalloc(&pointer, BLOCK));
  BEGIN();
  OK(cudaFree(pointer));
  FINISH();
}

static void free_managed(struct fixture *f) {
  void *pointer = NULL;
  NEEDS(cudaMallocManaged);
  OK(cudaMallocManaged(&pointer, BLOCK, cudaMemAttachGlobal));
  BEGIN();
  OK(cudaFree(pointer));
  FINISH();
}

static void free_array(struct fixture *f) {
  cudaArray_t array = NULL;
  NEEDS(cudaMallocArray);
  NEEDS(cudaFreeArray);
  OK(make_array(&array));
  BEGIN();
  OK(cudaFreeArray(array));
  FINISH();
}

static void free_mipmapped(struct fixture *f) {
  cudaMipmappedArray_t array = NULL;
  struct cudaChannelFormatDesc bytes = { .x = 8, .f = cudaChannelFormatKindUnsigned };
  NEEDS(cudaMallocMipmappedArray);
  NEEDS(cudaFreeMipmappedArray);
  OK(cudaMallocMipmappedArray(&array, &bytes, (struct cudaExtent){ 64, 64, 0 }, 2, 0));
  BEGIN();
  OK(cudaFreeMipmappedArray(array));
  FINISH();
}

static void free_host(struct fixture *f) {
  void *pointer = NULL;
  OK(cudaMallocHost(&pointer, BLOCK));
  BEGIN();
  OK(cudaFreeHost(pointer));
  FINISH();
}

static void unregister(struct fixture *f) {
  char *block = aligned_alloc(PAGE, 4 * PAGE);
  NEEDS(cudaHostRegister);
  NEEDS(cudaHostUnregister);
  OK(cudaHostRegister(block, 4 * PAGE, cudaHostRegisterDefault));
  BEGIN();
  OK(cudaHostUnregister(block));
  FINISH();
  free(block);
}

/* ---- not blocking ------------------------------------------------------------------------- */

static void free_async(struct fixture *f) {
  void *pointer = NULL;
  NEEDS(cudaMallocAsync);
  NEEDS(cudaFreeAsync);
  OR_SKIP(cudaMallocAsync(&pointer, BLOCK, f->stream));
  BEGIN();
  OK(cudaFreeAsync(pointer, f->stream));
  FINISH();
}

static void allocate(struct fixture *f) {
  void *device = NULL, *host = NULL, *mapped = NULL, *managed = NULL, *pooled = NULL;
  char *block = aligned_alloc(PAGE, 4 * PAGE);
  bool registered = false;
  NEEDS(cudaMallocManaged);
  NEEDS(cudaMallocAsync);
  NEEDS(cudaHostRegister);
  BEGIN();
  OK(cudaMalloc(&device, BLOCK));
  OK(cudaMallocHost(&host, BLOCK));
  OK(cudaHostAlloc(&mapped, BLOCK, cudaHostAllocMapped));
  OK(cudaMallocManaged(&managed, BLOCK, cudaMemAttachGlobal));
  OK(cudaMallocAsync(&pooled, BLOCK, f->stream));
  OK(cudaHostRegister(block, 4 * PAGE, cudaHostRegisterDefault));
  registered = true;
  FINISH();
  cudaFree(device);
  cudaFree(managed);
  cudaFree(pooled);
  if (host != NULL)
    cudaFreeHost(host);
  if (mapped != NULL)
    cudaFreeHost(mapped);
  if (registered)
    cudaHostUnregister(block);
  free(block);
}

static void destroy(struct fixture *f) {
  cudaStream_t stream = NULL;
  cudaEvent_t event = NULL;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaEventCreate(&event));
  BEGIN();
  OK(cudaStreamDestroy(stream));
  OK(cudaEventDestroy(event));
  FINISH();
}

static void async_upload(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpyAsync(f->device, f->pinned, SMALL, cudaMemcpyHostToDevice, f->stream));
  OK(cudaMemcpyAsync(f->device2, f->pageable, SMALL, cudaMemcpyHostToDevice, f->stream));
  FINISH();
}

static void memcpy_size_0(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpy(f->pageable, f->device, 0, cudaMemcpyDeviceToHost));
  FINISH();
}

static void pageable_d2h_size_0(struct fixture *f) {
  BEGIN();
  OK(cudaMemcpyAsync(f->pageable, f->device, 0, cudaMemcpyDeviceToHost, f->stream));
  FINISH();
}

static void memset_size_0(struct fixture *f) {
  BEGIN();
  OK(cudaMemset(f->pinned, 0, 0));
  FINISH();
}

static void launch(struct fixture *f) {
  NEEDS_KERNEL();
  BEGIN();
  OK(launch_touch(f, f->stream));
  FINISH();
}

static void host_function(struct fixture *f) {
  NEEDS(cudaLaunchHostFunc);
  atomic_store(&f->gate.open, true);
  BEGIN();
  OK(cudaLaunchHostFunc(f->stream, gate_wait, &f->gate));
  FINISH();
}

static void prefetch(struct fixture *f) {
  void *managed = NULL;
  NEEDS(cudaMallocManaged);
  NEEDS(cudaMemPrefetchAsync);
  OK(cudaMallocManaged(&managed, BLOCK, cudaMemAttachGlobal));
  BEGIN();
#if CUDART_VERSION >= 13000
  OR_SKIP(cudaMemPrefetchAsync(managed, BLOCK, (struct cudaMemLocation){ .type = cudaMemLocationTypeDevice, .id = 0 },
                               0, f->stream));
#else
  OR_SKIP(cudaMemPrefetchAsync(managed, BLOCK, 0, f->stream));
#endif
  FINISH();
  if (managed != NULL)
    cudaFree(managed);
}

static void graph_destroy(struct fixture *f) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  NEEDS(cudaStreamBeginCapture);
  NEEDS(cudaStreamEndCapture);
  NEEDS(cudaGraphInstantiate);
  NEEDS(cudaGraphDestroy);
  NEEDS(cudaGraphExecDestroy);
  OK(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeThreadLocal));
  cudaError_t inside = d2h(f, f->pinned, f->stream);
  OK(cudaStreamEndCapture(f->stream, &graph));
  OK(inside);
  OK(cudaGraphInstantiate(&exec, graph, 0));
  BEGIN();
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  FINISH();
}

static void pool_trim(struct fixture *f) {
  cudaMemPool_t pool = NULL;
  NEEDS(cudaDeviceGetDefaultMemPool);
  NEEDS(cudaMemPoolTrimTo);
  OR_SKIP(cudaDeviceGetDefaultMemPool(&pool, 0));
  BEGIN();
  OK(cudaMemPoolTrimTo(pool, 0));
  FINISH();
}

/* ---- polls -------------------------------------------------------------------------------- */

static void poll_stream(struct fixture *f) {
  NEEDS(cudaLaunchHostFunc);
  OK(close_gate(f, f->stream));
  BEGIN();
  NOT_READY(cudaStreamQuery(f->stream));
  NOT_READY(cudaStreamQuery(f->stream));
  gate_open(&f->gate);
  OK(poll_until(query_stream, f->stream));
  FINISH();
}

static void poll_event(struct fixture *f) {
  NEEDS(cudaLaunchHostFunc);
  OK(close_gate(f, f->stream));
  OK(cudaEventRecord(f->event, f->stream));
  BEGIN();
  NOT_READY(cudaEventQuery(f->event));
  NOT_READY(cudaEventQuery(f->event));
  gate_open(&f->gate);
  OK(poll_until(query_event, f->event));
  FINISH();
}

static void poll_twice(struct fixture *f) {
  NEEDS(cudaLaunchHostFunc);
  BEGIN();
  for (int i = 0; i < 2; i++) {
    OK(close_gate(f, f->stream));
    NOT_READY(cudaStreamQuery(f->stream));
    gate_open(&f->gate);
    OK(poll_until(query_stream, f->stream));
  }
  FINISH();
}

static void poll_ready(struct fixture *f) {
  BEGIN();
  OK(cudaStreamQuery(f->stream));
  FINISH();
}

static void poll_given_up(struct fixture *f) {
  NEEDS(cudaLaunchHostFunc);
  OK(close_gate(f, f->stream));
  BEGIN();
  NOT_READY(cudaStreamQuery(f->stream));
  NOT_READY(cudaStreamQuery(f->stream));
  FINISH();
}

static void *thread_waits(void *argument) {
  struct fixture *f = argument;
  OK(cudaStreamSynchronize(f->stream));
out:
  return NULL;
}

static void poll_interrupted(struct fixture *f) {
  NEEDS(cudaLaunchHostFunc);
  OK(close_gate(f, f->stream));
  BEGIN();
  NOT_READY(cudaStreamQuery(f->stream));
  OK(cudaMemsetAsync(f->device, 0, SMALL, f->other));
  gate_open(&f->gate);
  /* Another thread waits until the stream is idle, so that the next query of this one is ready at once. */
  if (!run_on_thread(thread_waits, f))
    row_fail(f->run, "no thread");
  OK(cudaStreamQuery(f->stream));
  FINISH();
}

static void poll_two_objects(struct fixture *f) {
  NEEDS(cudaLaunchHostFunc);
  OK(close_gate(f, f->stream));
  BEGIN();
  NOT_READY(cudaStreamQuery(f->stream));
  OK(cudaStreamQuery(f->other));
  FINISH();
}

/* ---- refused ------------------------------------------------------------------------------ */

static void failed_memcpy(struct fixture *f) {
  BEGIN();
  REFUSED(cudaMemcpy(NULL, f->device, SMALL, cudaMemcpyDeviceToHost));
  FINISH();
}

static void failed_free(struct fixture *f) {
  BEGIN();
  REFUSED(cudaFree((void *)(uintptr_t)0x1000));
  FINISH();
}

static void failed_capture_sync(struct fixture *f) {
  cudaGraph_t graph = NULL;
  NEEDS(cudaStreamBeginCapture);
  NEEDS(cudaStreamEndCapture);
  OK(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeThreadLocal));
  BEGIN();
  cudaError_t status = cudaStreamSynchronize(f->stream);
  END();
  cudaStreamEndCapture(f->stream, &graph); /* says that the capture is invalid: as it should */
  REFUSED(status);
  FINISH();
}

static void failed_capture_event(struct fixture *f) {
  cudaGraph_t graph = NULL;
  cudaEvent_t event = NULL;
  NEEDS(cudaStreamBeginCapture);
  NEEDS(cudaStreamEndCapture);
  OK(cudaEventCreate(&event));
  OK(cudaStreamBeginCapture(f->stream, cudaStreamCaptureModeThreadLocal));
  cudaError_t recorded = cudaEventRecord(event, f->stream);
  BEGIN();
  cudaError_t status = cudaEventSynchronize(event);
  END();
  cudaStreamEndCapture(f->stream, &graph);
  OK(recorded);
  REFUSED(status);
  FINISH();
  if (event != NULL)
    cudaEventDestroy(event);
}

static void failed_then_item(struct fixture *f) {
  BEGIN();
  REFUSED(cudaMemcpy(NULL, f->device, SMALL, cudaMemcpyDeviceToHost));
  OK(d2h(f, f->pinned, f->stream));
  OK(cudaStreamSynchronize(f->stream));
  FINISH();
}

/* ---- running them ------------------------------------------------------------------------- */

static const struct {
  const char *name;
  void (*function)(struct fixture *f);
} rows[] = {
#define ROW_FUNCTION(name, sequence, ...) { #name, name },
  SC_ROWS_RUNTIME(ROW_FUNCTION) SC_ROWS_LEGACY_DEFAULT(ROW_FUNCTION)
#undef ROW_FUNCTION
};

static bool made(const char *what, cudaError_t status) {
  if (status != cudaSuccess)
    fprintf(stderr, "sequences: %s: %s\n", what, cudaGetErrorName(status));
  return status == cudaSuccess;
}

static bool make_fixture(struct fixture *f) {
  if (!made("cudaSetDevice", cudaSetDevice(0)) ||
      !made("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&f->stream, cudaStreamNonBlocking)) ||
      !made("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&f->other, cudaStreamNonBlocking)) ||
      !made("cudaEventCreate", cudaEventCreate(&f->event)) ||
      !made("cudaMallocHost", cudaMallocHost((void **)&f->pinned, BLOCK)) ||
      !made("cudaMallocHost", cudaMallocHost((void **)&f->pinned2, BLOCK)) ||
      !made("cudaMalloc", cudaMalloc((void **)&f->device, BLOCK)) ||
      !made("cudaMalloc", cudaMalloc((void **)&f->device2, BLOCK)))
    return false;
  f->pageable = aligned_alloc(PAGE, BLOCK);
  f->pageable2 = aligned_alloc(PAGE, BLOCK);
  if (f->pageable == NULL || f->pageable2 == NULL) {
    fprintf(stderr, "sequences: out of memory\n");
    return false;
  }
  memset(f->pageable, 1, BLOCK);
  memset(f->pageable2, 2, BLOCK);
  load_kernel(f);
  /* First launches and copies load code lazily: once, before any row. */
  if (f->touch != NULL &&
      (cudaMemset(f->device2, 0, BLOCK) != cudaSuccess || launch_touch(f, f->stream) != cudaSuccess)) {
    fprintf(stderr, "sequences: the kernel does not launch\n");
    return false;
  }
  return made("cudaDeviceSynchronize", cudaDeviceSynchronize());
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
    /* Outside every range: the next row starts with nothing outstanding and no error left over. */
    cudaError_t after = cudaDeviceSynchronize();
    if (after != cudaSuccess)
      row_fail(&run, "cudaDeviceSynchronize after the row: %s", cudaGetErrorName(after));
    (void)cudaGetLastError();
    row_report(&run);
    failed += run.failed;
  }
  return failed > 0 ? 1 : 0;
}
