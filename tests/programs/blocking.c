/* SPDX-License-Identifier: Apache-2.0
 * blocking: which calls make the host wait while a kernel of 4 ms (longer on a busy host) runs on the call's own
 * stream, on another non-blocking stream, or on a blocking stream. It holds the classes of DESIGN.md against what the
 * device does. Prints one PASS or FAIL line a call. Calls that take no stream work on the legacy default stream, which
 * waits for blocking streams only; their "own stream" is a non-blocking one. */
#include "program.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>

#define KERNEL_US 4000.0
#define BLOCKS 0.5 /* of the kernel: no call that does not wait takes that long three times in a row on an idle host */
#define REPEATS 3
#define LONGER 4 /* as long a kernel, for a host that is busy with something else, */
#define LONGEST_US 256000.0
#define PAGE 4096u
#define MEGABYTE (1u << 20)

struct place {
  cudaStream_t stream, other, blocking; /* stream, other: non-blocking */
  cudaKernel_t spin;
  cudaEvent_t event;
  char *pinned, *pageable, *pageable2, *device, *device2, *managed;
  void *victim; /* what the call is about to free, unload or destroy */
  void *symbol;
};

/* ---- calls: `make` runs before the kernel is launched, `call` is timed, `after` runs when the device is idle again
 * ---------- */

#define CALL(name) static cudaError_t name(struct place *p)

CALL(nothing) { return (void)p, cudaSuccess; }
CALL(sync_stream) { return cudaStreamSynchronize(p->stream); }
CALL(sync_event) { return cudaEventSynchronize(p->event); }
CALL(sync_device) { return (void)p, cudaDeviceSynchronize(); }
CALL(d2h_pageable) { return cudaMemcpy(p->pageable, p->device, 1, cudaMemcpyDeviceToHost); }
CALL(d2h_pinned) { return cudaMemcpy(p->pinned, p->device, 1, cudaMemcpyDeviceToHost); }
CALL(h2d_16_pageable) { return cudaMemcpy(p->device, p->pageable, 16, cudaMemcpyHostToDevice); }
CALL(h2d_16_pinned) { return cudaMemcpy(p->device, p->pinned, 16, cudaMemcpyHostToDevice); }
CALL(h2d_1m_pageable) { return cudaMemcpy(p->device, p->pageable, MEGABYTE, cudaMemcpyHostToDevice); }
CALL(h2h) { return cudaMemcpy(p->pageable, p->pageable2, 64, cudaMemcpyHostToHost); }
CALL(d2d) { return cudaMemcpy(p->device2, p->device, 64, cudaMemcpyDeviceToDevice); }
CALL(to_symbol) { return cudaMemcpyToSymbol(p->symbol, p->pageable, 64, 0, cudaMemcpyHostToDevice); }
CALL(from_symbol) { return cudaMemcpyFromSymbol(p->pageable, p->symbol, 64, 0, cudaMemcpyDeviceToHost); }
CALL(set_pinned) { return cudaMemset(p->pinned, 0, 64); }
CALL(set_managed) { return cudaMemset(p->managed, 0, 64); }
CALL(set_device) { return cudaMemset(p->device, 0, 64); }
CALL(async_1_pageable) { return cudaMemcpyAsync(p->pageable, p->device, 1, cudaMemcpyDeviceToHost, p->stream); }
CALL(async_1m_pageable) { return cudaMemcpyAsync(p->pageable, p->device, MEGABYTE, cudaMemcpyDeviceToHost, p->stream); }
CALL(async_h2h_pageable) { return cudaMemcpyAsync(p->pageable, p->pinned, 64, cudaMemcpyHostToHost, p->stream); }
CALL(async_managed_pageable) { return cudaMemcpyAsync(p->pageable, p->managed, 64, cudaMemcpyDefault, p->stream); }
CALL(async_pinned) { return cudaMemcpyAsync(p->pinned, p->device, MEGABYTE, cudaMemcpyDeviceToHost, p->stream); }
CALL(async_h2d_16_pageable) { return cudaMemcpyAsync(p->device, p->pageable, 16, cudaMemcpyHostToDevice, p->stream); }
CALL(async_h2d_1m_pageable) {
  return cudaMemcpyAsync(p->device, p->pageable, MEGABYTE, cudaMemcpyHostToDevice, p->stream);
}
CALL(async_h2d_1m_pinned) { return cudaMemcpyAsync(p->device, p->pinned, MEGABYTE, cudaMemcpyHostToDevice, p->stream); }
CALL(async_to_managed) { return cudaMemcpyAsync(p->managed, p->device, 64, cudaMemcpyDefault, p->stream); }
CALL(async_set_pinned) { return cudaMemsetAsync(p->pinned, 0, 64, p->stream); }
CALL(async_set_device) { return cudaMemsetAsync(p->device, 0, 64, p->stream); }
CALL(size_0) { return cudaMemcpy(p->pageable, p->device, 0, cudaMemcpyDeviceToHost); }
CALL(async_size_0) { return cudaMemcpyAsync(p->pageable, p->device, 0, cudaMemcpyDeviceToHost, p->stream); }
CALL(set_size_0) { return cudaMemset(p->pinned, 0, 0); }

CALL(make_device) { return cudaMalloc(&p->victim, MEGABYTE); }
CALL(make_managed) { return cudaMallocManaged(&p->victim, MEGABYTE, cudaMemAttachGlobal); }
CALL(make_pinned) { return cudaMallocHost(&p->victim, MEGABYTE); }
CALL(make_pooled) {
  cudaError_t status = cudaMallocAsync(&p->victim, MEGABYTE, p->stream);
  return status == cudaSuccess ? cudaStreamSynchronize(p->stream) : status;
}
CALL(make_block) {
  return (p->victim = aligned_alloc(PAGE, MEGABYTE)) != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}
CALL(make_registered) {
  cudaError_t status = make_block(p);
  return status == cudaSuccess ? cudaHostRegister(p->victim, MEGABYTE, cudaHostRegisterDefault) : status;
}
CALL(make_array) {
  struct cudaChannelFormatDesc bytes = { .x = 8, .f = cudaChannelFormatKindUnsigned };
  return cudaMallocArray((cudaArray_t *)&p->victim, &bytes, 1024, 1024, 0);
}
CALL(make_mipmapped) {
  struct cudaChannelFormatDesc bytes = { .x = 8, .f = cudaChannelFormatKindUnsigned };
  return cudaMallocMipmappedArray((cudaMipmappedArray_t *)&p->victim, &bytes, (struct cudaExtent){ 1024, 1024, 0 }, 2,
                                  0);
}
CALL(make_stream) { return cudaStreamCreateWithFlags((cudaStream_t *)&p->victim, cudaStreamNonBlocking); }
CALL(make_event) { return cudaEventCreate((cudaEvent_t *)&p->victim); }
CALL(make_library) {
  return cudaLibraryLoadData((cudaLibrary_t *)&p->victim, test_kernels_image, NULL, NULL, 0, NULL, NULL, 0);
}
CALL(make_graph) {
  cudaGraph_t graph = NULL;
  cudaError_t status = cudaStreamBeginCapture(p->other, cudaStreamCaptureModeThreadLocal);
  if (status == cudaSuccess)
    status = cudaMemsetAsync(p->device2, 0, 64, p->other);
  if (status == cudaSuccess)
    status = cudaStreamEndCapture(p->other, &graph);
  if (status == cudaSuccess)
    status = cudaGraphInstantiate((cudaGraphExec_t *)&p->victim, graph, 0);
  if (graph != NULL)
    cudaGraphDestroy(graph);
  return status;
}
CALL(make_pool) {
  struct cudaMemPoolProps properties = { .allocType = cudaMemAllocationTypePinned,
                                         .location = { .type = cudaMemLocationTypeDevice } };
  return cudaMemPoolCreate((cudaMemPool_t *)&p->victim, &properties);
}
CALL(record_event) { return cudaEventRecord(p->event, p->stream); }

CALL(free_device) { return cudaFree(p->victim); }
CALL(free_null) { return (void)p, cudaFree(NULL); }
CALL(free_host) { return cudaFreeHost(p->victim); }
CALL(free_array) { return cudaFreeArray(p->victim); }
CALL(free_mipmapped) { return cudaFreeMipmappedArray(p->victim); }
CALL(free_async) { return cudaFreeAsync(p->victim, p->stream); }
CALL(host_register) { return cudaHostRegister(p->victim, MEGABYTE, cudaHostRegisterDefault); }
CALL(host_unregister) { return cudaHostUnregister(p->victim); }
CALL(malloc_1m) { return cudaMalloc(&p->victim, MEGABYTE); }
CALL(malloc_256m) { return cudaMalloc(&p->victim, 256u * MEGABYTE); }
CALL(malloc_host) { return cudaMallocHost(&p->victim, MEGABYTE); }
CALL(malloc_async) { return cudaMallocAsync(&p->victim, MEGABYTE, p->stream); }
CALL(destroy_stream) { return cudaStreamDestroy(p->victim); }
CALL(destroy_event) { return cudaEventDestroy(p->victim); }
CALL(unload_library) { return cudaLibraryUnload(p->victim); }
CALL(destroy_exec) { return cudaGraphExecDestroy(p->victim); }
CALL(destroy_pool) { return cudaMemPoolDestroy(p->victim); }
CALL(trim_pool) {
  (void)p;
  cudaMemPool_t pool = NULL;
  cudaError_t status = cudaDeviceGetDefaultMemPool(&pool, 0);
  return status == cudaSuccess ? cudaMemPoolTrimTo(pool, 0) : status;
}
CALL(forget_block) {
  free(p->victim);
  return cudaSuccess;
}
CALL(forget_registered) {
  cudaError_t status = cudaHostUnregister(p->victim);
  free(p->victim);
  return status;
}

/* cells: for the kernel on the call's own stream, on another non-blocking stream, on a blocking stream: 'B' it must
 * block, '-' it must not, '?' shown only. A call of a blocking class must block in one of them, a call of none in none.
 */
static const struct call {
  const char *name, *class_name, *cells;
  cudaError_t (*make)(struct place *p);
  cudaError_t (*call)(struct place *p);
  cudaError_t (*after)(struct place *p);
  bool record; /* record the event behind the kernel on the call's own stream */
} calls[] = {
  { "cudaStreamSynchronize", "explicit", "B--", nothing, sync_stream, nothing, false },
  { "cudaEventSynchronize", "explicit", "B--", nothing, sync_event, nothing, true },
  { "cudaDeviceSynchronize", "explicit", "BBB", nothing, sync_device, nothing, false },
  { "cudaMemcpy D2H pageable 1 B", "copy", "--B", nothing, d2h_pageable, nothing, false },
  { "cudaMemcpy D2H pinned 1 B", "copy", "--B", nothing, d2h_pinned, nothing, false },
  { "cudaMemcpy H2D pageable 16 B", "copy", "--B", nothing, h2d_16_pageable, nothing, false },
  { "cudaMemcpy H2D pinned 16 B", "copy", "--B", nothing, h2d_16_pinned, nothing, false },
  { "cudaMemcpy H2D pageable 1 MB", "copy", "??B", nothing, h2d_1m_pageable, nothing, false },
  { "cudaMemcpy H2H", "copy", "???", nothing, h2h, nothing, false },
  { "cudaMemcpyToSymbol", "copy", "???", nothing, to_symbol, nothing, false },
  { "cudaMemcpyFromSymbol", "copy", "???", nothing, from_symbol, nothing, false },
  { "cudaMemset pinned", "copy", "--B", nothing, set_pinned, nothing, false },
  { "cudaMemset managed", "copy", "???", nothing, set_managed, nothing, false },
  { "cudaMemcpyAsync D2H pageable 1 B", "pageable", "B--", nothing, async_1_pageable, nothing, false },
  { "cudaMemcpyAsync D2H pageable 1 MB", "pageable", "B--", nothing, async_1m_pageable, nothing, false },
  { "cudaMemcpyAsync pinned to pageable", "pageable", "???", nothing, async_h2h_pageable, nothing, false },
  { "cudaMemcpyAsync managed to pageable", "pageable", "???", nothing, async_managed_pageable, nothing, false },
  { "cudaFree", "implicit", "BBB", make_device, free_device, nothing, false },
  { "cudaFree managed", "implicit", "???", make_managed, free_device, nothing, false },
  { "cudaFreeArray", "implicit", "???", make_array, free_array, nothing, false },
  { "cudaFreeMipmappedArray", "implicit", "???", make_mipmapped, free_mipmapped, nothing, false },
  { "cudaFreeHost", "implicit", "BBB", make_pinned, free_host, nothing, false },
  { "cudaHostUnregister", "implicit", "BBB", make_registered, host_unregister, forget_block, false },
  { "cudaMemcpyAsync D2H pinned 1 MB", "none", "---", nothing, async_pinned, nothing, false },
  { "cudaMemcpyAsync H2D pageable 16 B", "none", "---", nothing, async_h2d_16_pageable, nothing, false },
  { "cudaMemcpyAsync H2D pageable 1 MB", "none", "---", nothing, async_h2d_1m_pageable, nothing, false },
  { "cudaMemcpyAsync H2D pinned 1 MB", "none", "---", nothing, async_h2d_1m_pinned, nothing, false },
  { "cudaMemcpyAsync to managed", "none", "---", nothing, async_to_managed, nothing, false },
  { "cudaMemcpy D2D", "none", "---", nothing, d2d, nothing, false },
  { "cudaMemset device", "none", "---", nothing, set_device, nothing, false },
  { "cudaMemsetAsync pinned", "none", "---", nothing, async_set_pinned, nothing, false },
  { "cudaMemsetAsync device", "none", "---", nothing, async_set_device, nothing, false },
  { "cudaMemcpy 0 bytes", "none", "---", nothing, size_0, nothing, false },
  { "cudaMemcpyAsync pageable 0 bytes", "none", "---", nothing, async_size_0, nothing, false },
  { "cudaMemset pinned 0 bytes", "none", "---", nothing, set_size_0, nothing, false },
  { "cudaFree(NULL)", "none", "---", nothing, free_null, nothing, false },
  { "cudaFree of cudaMallocAsync memory", "none", "---", make_pooled, free_device, nothing, false },
  { "cudaFreeAsync", "none", "---", make_pooled, free_async, nothing, false },
  { "cudaMalloc 1 MB", "none", "---", nothing, malloc_1m, free_device, false },
  { "cudaMalloc 256 MB", "none", "---", nothing, malloc_256m, free_device, false },
  { "cudaMallocHost 1 MB", "none", "---", nothing, malloc_host, free_host, false },
  { "cudaMallocAsync 1 MB", "none", "---", nothing, malloc_async, free_device, false },
  { "cudaHostRegister 1 MB", "none", "---", make_block, host_register, forget_registered, false },
  { "cudaStreamDestroy (idle stream)", "none", "---", make_stream, destroy_stream, nothing, false },
  { "cudaEventDestroy", "none", "---", make_event, destroy_event, nothing, false },
  { "cudaLibraryUnload", "lifecycle", "???", make_library, unload_library, nothing, false },
  { "cudaGraphExecDestroy", "lifecycle", "???", make_graph, destroy_exec, nothing, false },
  { "cudaMemPoolTrimTo", "lifecycle", "???", nothing, trim_pool, nothing, false },
  { "cudaMemPoolDestroy", "lifecycle", "???", make_pool, destroy_pool, nothing, false },
};

/* ---- measuring ---------------------------------------------------------------------------- */

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static cudaError_t launch_spin(struct place *p, cudaStream_t stream, double kernel_us) {
  unsigned long long ns = (unsigned long long)(kernel_us * 1e3);
  void *arguments[] = { &ns };
  return cudaLaunchKernel((const void *)p->spin, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, arguments, 0, stream);
}

/* One measurement: how long the call took while the kernel ran. An error, or a kernel that was too short to tell, gives
 * false. */
static bool measure_once(struct place *p, const struct call *c, cudaStream_t kernel_stream, double kernel_us,
                         double *us, char why[256]) {
  cudaError_t status = c->make(p);
  if (status == cudaSuccess)
    status = cudaDeviceSynchronize();
  double launched = now_us();
  if (status == cudaSuccess)
    status = launch_spin(p, kernel_stream, kernel_us);
  if (status == cudaSuccess && c->record)
    status = record_event(p);
  if (status != cudaSuccess) {
    snprintf(why, 256, "before the call: %s", cudaGetErrorName(status));
    return false;
  }
  double before = now_us();
  status = c->call(p);
  double after = now_us();
  cudaError_t idle = cudaDeviceSynchronize();
  double done = now_us();
  cudaError_t cleaned = c->after(p);
  if (status != cudaSuccess || idle != cudaSuccess || cleaned != cudaSuccess) {
    snprintf(why, 256, "%s, then %s, then %s", cudaGetErrorName(status), cudaGetErrorName(idle),
             cudaGetErrorName(cleaned));
    return false;
  }
  if (done - launched < kernel_us || before - launched > kernel_us * BLOCKS / 2) {
    snprintf(why, 256, "the kernel did not run beside the call (%.0f us from launch to idle, %.0f us before the call)",
             done - launched, before - launched);
    return false;
  }
  *us = after - before;
  return true;
}

/* The shortest of a few: a hiccup of the host makes a call look blocking, nothing makes a blocking one look short. */
static bool measure(struct place *p, const struct call *c, cudaStream_t kernel_stream, double kernel_us, double *us,
                    char why[256]) {
  bool any = false;
  for (int i = 0; i < REPEATS; i++) {
    double once = 0;
    if (measure_once(p, c, kernel_stream, kernel_us, &once, why)) {
      if (!any || once < *us)
        *us = once;
      any = true;
    }
  }
  return any;
}

/* Whether the call waits for a kernel on that stream. The host may be busy with something else: where nothing could be
 * measured, or a call seems to wait that should not, a longer kernel tells. */
static bool find(struct place *p, const struct call *c, cudaStream_t kernel_stream, bool expect_none, double *us,
                 char *found, char why[256]) {
  bool measured = false;
  for (double kernel_us = KERNEL_US; kernel_us <= LONGEST_US; kernel_us *= LONGER) {
    if (!measure(p, c, kernel_stream, kernel_us, us, why))
      continue;
    measured = true;
    *found = *us > kernel_us * BLOCKS ? 'B' : '-';
    if (*found == '-' || !expect_none)
      break;
  }
  return measured;
}

static bool is_blocking_class(const char *name) { return strcmp(name, "none") != 0 && strcmp(name, "lifecycle") != 0; }

static bool judge(struct place *p, const struct call *c) {
  cudaStream_t streams[] = { p->stream, p->other, p->blocking };
  double us[3] = { 0 };
  char found[4] = "---", why[256] = "";
  bool agrees = true;
  for (int i = 0; i < 3; i++) {
    if (!find(p, c, streams[i], c->cells[i] == '-', &us[i], &found[i], why)) {
      (void)cudaGetLastError();
      printf("FAIL blocking/%s: %s\n", c->name, why);
      return false;
    }
    agrees = agrees && (c->cells[i] == '?' || c->cells[i] == found[i]);
  }
  bool blocks = strchr(found, 'B') != NULL;
  if (strcmp(c->class_name, "lifecycle") != 0)
    agrees = agrees && blocks == is_blocking_class(c->class_name);
  printf("%s blocking/%s: class %s; kernel on own stream %s %.0f us, on another %s %.0f us, on a blocking one %s %.0f "
         "us%s%s\n",
         agrees ? "PASS" : "FAIL", c->name, c->class_name, found[0] == 'B' ? "BLOCKS" : "no", us[0],
         found[1] == 'B' ? "BLOCKS" : "no", us[1], found[2] == 'B' ? "BLOCKS" : "no", us[2],
         agrees ? "" : "; expected ", agrees ? "" : c->cells);
  fflush(stdout);
  return agrees;
}

/* ---- setting up --------------------------------------------------------------------------- */

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterVar(void **handle, char *host_variable, char *device_address, const char *device_name, int external,
                       size_t size, int constant, int global);

static void *register_symbol(void) {
  static unsigned shadow[16];
  static struct {
    int magic, version;
    const void *image;
    void *unused;
  } wrapper = { 0x466243b1, 1, test_kernels_image, NULL };
  void **handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterVar(handle, (char *)shadow, (char *)"sc_test_symbol", "sc_test_symbol", 0, sizeof shadow, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  return shadow;
}

static bool ok(const char *what, cudaError_t status) {
  if (status != cudaSuccess)
    fprintf(stderr, "blocking: %s: %s\n", what, cudaGetErrorName(status));
  return status == cudaSuccess;
}

static bool set_up(struct place *p) {
  cudaLibrary_t library = NULL;
  if (!ok("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking)) ||
      !ok("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&p->other, cudaStreamNonBlocking)) ||
      !ok("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&p->blocking, cudaStreamDefault)) ||
      !ok("cudaEventCreate", cudaEventCreate(&p->event)) ||
      !ok("cudaMallocHost", cudaMallocHost((void **)&p->pinned, MEGABYTE)) ||
      !ok("cudaMalloc", cudaMalloc((void **)&p->device, MEGABYTE)) ||
      !ok("cudaMalloc", cudaMalloc((void **)&p->device2, MEGABYTE)) ||
      !ok("cudaMallocManaged", cudaMallocManaged((void **)&p->managed, MEGABYTE, cudaMemAttachGlobal)) ||
      !ok("cudaMemset", cudaMemset(p->managed, 0, MEGABYTE)) ||
      !ok("cudaLibraryLoadData", cudaLibraryLoadData(&library, test_kernels_image, NULL, NULL, 0, NULL, NULL, 0)) ||
      !ok("cudaLibraryGetKernel", cudaLibraryGetKernel(&p->spin, library, "sc_test_spin")))
    return false;
  p->pageable = aligned_alloc(PAGE, MEGABYTE);
  p->pageable2 = aligned_alloc(PAGE, MEGABYTE);
  if (p->pageable == NULL || p->pageable2 == NULL)
    return false;
  memset(p->pageable, 1, MEGABYTE);
  memset(p->pageable2, 1, MEGABYTE);
  p->symbol = register_symbol();
  /* Whatever is loaded lazily is loaded now: first kernel, first copy of each size, first use of the symbol. */
  return ok("cudaMemcpyToSymbol", to_symbol(p)) && ok("a kernel", launch_spin(p, p->stream, KERNEL_US)) &&
         ok("a kernel", launch_spin(p, p->blocking, KERNEL_US)) && ok("cudaMemcpy", h2d_1m_pageable(p)) &&
         ok("cudaMemcpyAsync", async_1m_pageable(p)) && ok("cudaEventRecord", record_event(p)) &&
         ok("cudaDeviceSynchronize", cudaDeviceSynchronize());
}

int main(void) {
  struct place place = { 0 };
  size_t failed = 0;
  if (!set_up(&place))
    return 3;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
    failed += !judge(&place, &calls[i]);
  return failed > 0 ? 1 : 0;
}
