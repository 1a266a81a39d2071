/* SPDX-License-Identifier: Apache-2.0
 * company_driver [sleeping]: a program on the driver API alone, as JAX and Triton are, that knows what it does. It makes
 * 20 cuMemcpyDtoH, 7 read-backs of a copy to pinned memory and cuStreamSynchronize, 5 event and 3 context synchronises,
 * 4 copies to pageable memory, 2 cuMemFree, 6 kernel launches and 9 graph launches with a stream synchronise behind
 * each, and prints the counts that its report must show as one line of JSON, for tests/gpu/expect_company.py.
 *   sleeping  4 synchronises of a context made with CU_CTX_SCHED_BLOCKING_SYNC instead */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#define OK(call) checked(#call, call)

static CUstream stream;
static CUdeviceptr device, words;
static CUfunction touch;
static char *pinned, *pageable;

static bool checked(const char *what, CUresult status) {
  const char *name = NULL;
  if (status == CUDA_SUCCESS)
    return true;
  if (cuGetErrorName(status, &name) != CUDA_SUCCESS || name == NULL)
    name = "an unknown error";
  fprintf(stderr, "company_driver: %s: %s\n", what, name);
  return false;
}

static bool begin(void) {
  CUdevice first = 0;
  CUcontext context = NULL;
  CUmodule module = NULL;
  pageable = calloc(1, 4096);
  return pageable != NULL && OK(cuInit(0)) && OK(cuDeviceGet(&first, 0)) &&
         OK(cuDevicePrimaryCtxRetain(&context, first)) && OK(cuCtxSetCurrent(context)) &&
         OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) && OK(cuMemAllocHost((void **)&pinned, 4096)) &&
         OK(cuMemAlloc(&device, 4096)) && OK(cuMemAlloc(&words, 4096)) &&
         OK(cuModuleLoadData(&module, test_kernels_image)) &&
         OK(cuModuleGetFunction(&touch, module, "sc_test_touch")) && OK(cuMemsetD8Async(words, 0, 4096, stream));
}

static bool launch(void) {
  void *arguments[] = { &words };
  return OK(cuLaunchKernel(touch, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static bool copies(void) {
  bool ok = true;
  for (int i = 0; ok && i < 20; i++)
    ok = OK(cuMemcpyDtoH(pageable, device, 64));
  for (int i = 0; ok && i < 7; i++)
    ok = OK(cuMemcpyDtoHAsync(pinned, device, 64, stream)) && OK(cuStreamSynchronize(stream));
  for (int i = 0; ok && i < 4; i++)
    ok = OK(cuMemcpyDtoHAsync(pageable, device, 64, stream));
  return ok;
}

static bool synchronises(void) {
  CUevent event = NULL;
  bool ok = OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  for (int i = 0; ok && i < 5; i++)
    ok = launch() && OK(cuEventRecord(event, stream)) && OK(cuEventSynchronize(event));
  for (int i = 0; ok && i < 3; i++)
    ok = (i > 0 || launch()) && OK(cuCtxSynchronize());
  return ok && OK(cuEventDestroy(event));
}

static bool graphs(void) {
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  bool ok = OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)) &&
            OK(cuMemcpyDtoHAsync(pinned, device, 64, stream)) && OK(cuStreamEndCapture(stream, &graph)) &&
            OK(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; ok && i < 9; i++)
    ok = OK(cuGraphLaunch(exec, stream)) && OK(cuStreamSynchronize(stream));
  return ok;
}

static bool frees(void) {
  CUdeviceptr victims[2];
  return OK(cuMemAlloc(&victims[0], 1 << 20)) && OK(cuMemAlloc(&victims[1], 1 << 20)) && OK(cuMemFree(victims[0])) &&
         OK(cuMemFree(victims[1]));
}

/* CUDA 13 added parameters that a plain context leaves out. */
static CUresult make_context(CUcontext *context, unsigned flags, CUdevice on) {
#if CUDA_VERSION >= 13000
  return cuCtxCreate(context, NULL, flags, on);
#else
  return cuCtxCreate(context, flags, on);
#endif
}

/* A context whose synchronises sleep: four of them. */
static bool sleeping(void) {
  CUdevice first = 0;
  CUcontext context = NULL;
  bool ok = OK(cuInit(0)) && OK(cuDeviceGet(&first, 0)) &&
            OK(make_context(&context, CU_CTX_SCHED_BLOCKING_SYNC, first));
  for (int i = 0; ok && i < 4; i++)
    ok = OK(cuCtxSynchronize());
  printf("{\"processes\": [{\"total\": 4}], \"warnings\": [\"4 of the waits slept instead of spinning\"]}\n");
  return ok;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "sleeping") == 0)
    return sleeping() ? 0 : 1;
  if (!begin() || !copies() || !synchronises() || !graphs() || !frees())
    return 1;
  printf("{\"processes\": [{\"total\": 50, \"by_class\": {\"explicit\": 24, \"copy\": 20, \"pageable\": 4, "
         "\"implicit\": 2}, \"read_backs\": 31, \"d2h_copies\": 31, \"launches\": 15, \"poll_waits\": 0}]}\n");
  return 0;
}
