/* SPDX-License-Identifier: Apache-2.0
 * Inside libcudart: the frame of a runtime entry point, and the driver functions behind it. Everything the runtime does
 * goes through the exported driver functions, so that their callbacks nest in the runtime's as on a GPU. */
#ifndef SIMCUDA_RT_H
#define SIMCUDA_RT_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "hooks.h"

#include <generated_cuda_runtime_api_meta.h>

#include <cupti_runtime_cbid.h>

/* Initialises the driver and gives the thread a context. Error or 0. */
int rt_bind(void);
/* Remembers an error for cudaGetLastError, and returns it. */
int rt_note(int error);
/* Kernel handle for what a launch was given: a handle, or the host function that nvcc made for a kernel. NULL: neither.
 */
void *rt_function(const void *function);
/* Device memory behind a __device__ variable that was registered, at its first use. Error or 0. */
int rt_symbol(const void *symbol, void **pointer, size_t *bytes);

#define RT_SAME(x) (x)
#define RUNTIME_(fn, id, pt, before, after, symbol, decl, args, work)                                                 \
  SIMCUDA_ENTRY(fn, cudaError_t, SIMCUDA_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_##id, (&(id##_params){SIMCUDA_ARGS args}), \
                pt, before, after, symbol, decl, work)
/* RUNTIME: a function of the given callback version. RUNTIME0: one without arguments. RUNTIME_EARLY: one that does not
 * initialise. RUNTIME_PT: a function and its per-thread-default-stream twin, with the callback versions of both. */
#define RUNTIME(fn, version, decl, args, work) \
  RUNTIME_(fn, fn##_##version, false, rt_bind(), rt_note, NULL, decl, args, work)
#define RUNTIME0(fn, version, work)                                                                                  \
  SIMCUDA_ENTRY(fn, cudaError_t, SIMCUDA_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_##fn##_##version, NULL, false, rt_bind(), \
                rt_note, NULL, (void), work)
#define RUNTIME_EARLY(fn, version, decl, args, work) \
  RUNTIME_(fn, fn##_##version, false, 0, rt_note, NULL, decl, args, work)
#define RUNTIME_PT(fn, suffix, version, twin_version, decl, args, work)           \
  RUNTIME_(fn, fn##_##version, false, rt_bind(), rt_note, NULL, decl, args, work) \
  RUNTIME_(fn##suffix, fn##suffix##_##twin_version, true, rt_bind(), rt_note, NULL, decl, args, work)

/* The driver function that belongs to the entry point at hand: plain or per-thread default stream. */
#define TWIN(fn, suffix) (per_thread ? fn##suffix : fn)

#define TWINS(X)                                                                                                       \
  X(cuMemcpy, _ptds)                                                                                                   \
  X(cuMemcpyHtoD_v2, _ptds)                                                                                            \
  X(cuMemcpyDtoH_v2, _ptds) X(cuMemcpyDtoD_v2, _ptds) X(cuMemcpyAsync, _ptsz) X(cuMemcpyHtoDAsync_v2, _ptsz)           \
      X(cuMemcpyDtoHAsync_v2, _ptsz) X(cuMemcpyDtoDAsync_v2, _ptsz) X(cuMemcpyPeer, _ptds) X(cuMemcpyPeerAsync, _ptsz) \
          X(cuMemcpy2DUnaligned_v2, _ptds) X(cuMemcpy2DAsync_v2, _ptsz) X(cuMemcpy3D_v2, _ptds)                        \
              X(cuMemcpy3DAsync_v2, _ptsz) X(cuMemsetD8_v2, _ptds) X(cuMemsetD8Async, _ptsz) X(cuMemsetD2D8_v2, _ptds) \
                  X(cuMemsetD2D8Async, _ptsz) X(cuStreamSynchronize, _ptsz) X(cuStreamQuery, _ptsz)                    \
                      X(cuStreamWaitEvent, _ptsz) X(cuStreamGetFlags, _ptsz) X(cuStreamGetPriority, _ptsz) X(          \
                          cuStreamGetId, _ptsz) X(cuStreamAddCallback, _ptsz) X(cuLaunchHostFunc, _ptsz)               \
                          X(cuStreamBeginCapture_v2, _ptsz) X(cuStreamEndCapture, _ptsz) X(cuStreamIsCapturing, _ptsz) \
                              X(cuEventRecord, _ptsz) X(cuEventRecordWithFlags, _ptsz) X(cuLaunchKernel, _ptsz)        \
                                  X(cuLaunchKernelEx, _ptsz) X(cuLaunchCooperativeKernel, _ptsz)                       \
                                      X(cuGraphLaunch, _ptsz) X(cuGraphUpload, _ptsz) X(cuMemAllocAsync, _ptsz)        \
                                          X(cuMemFreeAsync, _ptsz) X(cuStreamGetDevice, _ptsz)                         \
                                              X(cuStreamGetCaptureInfo_v3, _ptsz) X(cuMemPrefetchAsync_v2, _ptsz)      \
                                                  X(cuMemAllocFromPoolAsync, _ptsz) X(cuMemcpyHtoA_v2, _ptds)          \
                                                      X(cuMemcpyAtoH_v2, _ptds) RT_TWINS_13(X)
#if CUDART_VERSION >= 13000
#define RT_TWINS_13(X) X(cuMemcpyBatchAsync_v2, _ptsz)
#else
#define RT_TWINS_13(X) X(cuMemcpyBatchAsync, _ptsz)
#endif
#define DECLARE_TWIN(fn, suffix) extern __typeof__(fn) fn##suffix;
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags,
                               CUstream stream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                               CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count,
                               CUstream stream);
TWINS(DECLARE_TWIN)

#define DEVICE_POINTER(x) ((CUdeviceptr)(uintptr_t)(x))

#endif
