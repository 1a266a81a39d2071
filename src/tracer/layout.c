/* SPDX-License-Identifier: Apache-2.0
 * The argument layout of every call whose arguments we read: one row per exact name, offsets taken by the compiler
 * from CUPTI's own parameter structs. Where a struct is in the headers of one toolkit only, it is written out here:
 * a name's layout never changes once it has shipped. */
#include "tracer/layout.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

/* cuda.h turns these names into those of their newest versions; here each name means itself. */
#undef cuDevicePrimaryCtxSetFlags
#undef cuEventRecord
#undef cuEventRecordWithFlags
#undef cuGraphLaunch
#undef cuIpcOpenMemHandle
#undef cuLaunchCooperativeKernel
#undef cuLaunchHostFunc
#undef cuLaunchKernel
#undef cuLaunchKernelEx
#undef cuMemAllocAsync
#undef cuMemAllocFromPoolAsync
#undef cuMemAllocHost
#undef cuMemDiscardAndPrefetchBatchAsync
#undef cuMemDiscardBatchAsync
#undef cuMemFree
#undef cuMemFreeAsync
#undef cuMemHostRegister
#undef cuMemPrefetchAsync
#undef cuMemPrefetchAsync_v2
#undef cuMemPrefetchBatchAsync
#undef cuMemcpy
#undef cuMemcpy3DBatchAsync
#undef cuMemcpy3DPeer
#undef cuMemcpy3DPeerAsync
#undef cuMemcpyAsync
#undef cuMemcpyAtoA
#undef cuMemcpyAtoD
#undef cuMemcpyAtoH
#undef cuMemcpyAtoHAsync
#undef cuMemcpyBatchAsync
#undef cuMemcpyDtoA
#undef cuMemcpyDtoD
#undef cuMemcpyDtoDAsync
#undef cuMemcpyDtoH
#undef cuMemcpyDtoHAsync
#undef cuMemcpyHtoA
#undef cuMemcpyHtoAAsync
#undef cuMemcpyHtoD
#undef cuMemcpyHtoDAsync
#undef cuMemcpyPeer
#undef cuMemcpyPeerAsync
#undef cuMemsetD16
#undef cuMemsetD16Async
#undef cuMemsetD2D16
#undef cuMemsetD2D16Async
#undef cuMemsetD2D32
#undef cuMemsetD2D32Async
#undef cuMemsetD2D8
#undef cuMemsetD2D8Async
#undef cuMemsetD32
#undef cuMemsetD32Async
#undef cuMemsetD8
#undef cuMemsetD8Async
#undef cuStreamAddCallback
#undef cuStreamBeginCapture
#undef cuStreamBeginCaptureToGraph
#undef cuStreamDestroy
#undef cuStreamEndCapture
#undef cuStreamQuery
#undef cuStreamSynchronize
#undef cuStreamWaitEvent

/* ---- structs that not every supported toolkit's headers have ----------------------------------------- */
struct runtime_batch_v12080 { /* in 12.8 and 12.9 */
  void **dsts, **srcs;
  size_t *sizes, count;
  void *attrs;
  size_t *attrsIdxs, numAttrs, *failIdx;
  cudaStream_t stream;
};
struct runtime_batch_v13000 {
  void *const *dsts;
  const void *const *srcs;
  const size_t *sizes;
  size_t count;
  void *attrs;
  size_t *attrsIdxs, numAttrs;
  cudaStream_t stream;
};
struct runtime_3d_batch_v12080 {
  size_t numOps;
  struct cudaMemcpy3DBatchOp *opList;
  size_t *failIdx;
  unsigned long long flags;
  cudaStream_t stream;
};
struct runtime_3d_batch_v13000 {
  size_t numOps;
  struct cudaMemcpy3DBatchOp *opList;
  unsigned long long flags;
  cudaStream_t stream;
};
struct driver_batch_v2 {
  CUdeviceptr *dsts, *srcs;
  size_t *sizes, count;
  void *attrs;
  size_t *attrsIdxs, numAttrs;
  CUstream hStream;
};
struct driver_3d_batch_v2 {
  size_t numOps;
  CUDA_MEMCPY3D_BATCH_OP *opList;
  unsigned long long flags;
  CUstream hStream;
};
struct prefetch_v8000 {
  const void *devPtr;
  size_t count;
  int dstDevice;
  cudaStream_t stream;
};
struct prefetch_v12020 {
  const void *devPtr;
  size_t count;
  struct cudaMemLocation location;
  unsigned int flags;
  cudaStream_t stream;
};
struct prefetch_batch {
  void **dptrs;
  size_t *sizes, count;
  void *prefetchLocs;
  size_t *prefetchLocIdxs, numPrefetchLocs;
  unsigned long long flags;
  void *stream;
};
struct discard_batch {
  void **dptrs;
  size_t *sizes, count;
  unsigned long long flags;
  void *stream;
};
struct ctx_create_v4 { /* 13.0's headers are the first that have it */
  CUcontext *pctx;
  void *params;
  unsigned flags;
  CUdevice dev;
};
struct pool_by_location {
  void *memPool;
  void *location;
  int type;
};

#if CUDART_VERSION >= 13000 /* where both are at hand, they have to agree */
#define SAME(mine, theirs, member)                                                                                     \
  _Static_assert(offsetof(struct mine, member) == offsetof(theirs##_params, member), #theirs)
SAME(runtime_batch_v13000, cudaMemcpyBatchAsync_v13000, dsts);
SAME(runtime_batch_v13000, cudaMemcpyBatchAsync_v13000, sizes);
SAME(runtime_batch_v13000, cudaMemcpyBatchAsync_v13000, count);
SAME(runtime_batch_v13000, cudaMemcpyBatchAsync_v13000, stream);
SAME(runtime_3d_batch_v13000, cudaMemcpy3DBatchAsync_v13000, opList);
SAME(runtime_3d_batch_v13000, cudaMemcpy3DBatchAsync_v13000, stream);
SAME(driver_batch_v2, cuMemcpyBatchAsync_v2, count);
SAME(driver_batch_v2, cuMemcpyBatchAsync_v2, hStream);
SAME(driver_3d_batch_v2, cuMemcpy3DBatchAsync_v2, hStream);
SAME(prefetch_v12020, cudaMemPrefetchAsync_v12020, stream);
SAME(prefetch_batch, cudaMemPrefetchBatchAsync_v13000, stream);
SAME(prefetch_batch, cudaMemDiscardAndPrefetchBatchAsync_v13000, stream);
SAME(discard_batch, cudaMemDiscardBatchAsync_v13000, stream);
SAME(pool_by_location, cudaMemGetDefaultMemPool_v13000, location);
SAME(ctx_create_v4, cuCtxCreate_v4, flags);
SAME(ctx_create_v4, cuCtxCreate_v4, dev);
#else
#define SAME(mine, theirs, member)                                                                                     \
  _Static_assert(offsetof(struct mine, member) == offsetof(theirs##_params, member), #theirs)
SAME(runtime_batch_v12080, cudaMemcpyBatchAsync_v12080, count);
SAME(runtime_batch_v12080, cudaMemcpyBatchAsync_v12080, stream);
SAME(runtime_3d_batch_v12080, cudaMemcpy3DBatchAsync_v12080, stream);
SAME(prefetch_v8000, cudaMemPrefetchAsync_v8000, stream);
SAME(prefetch_v12020, cudaMemPrefetchAsync_v2_v12020, stream);
#endif

/* ---- rows -------------------------------------------------------------------------------------------- */
#define AT(type, member)                                                                                               \
  { offsetof(type, member), sizeof(((type *)0)->member) }
#define IN(call, member) AT(call##_params, member)
/* A struct passed by value: only its offset is used. */
#define INSIDE(call, member)                                                                                           \
  { offsetof(call##_params, member), 1 }
#define RT(call, ...)                                                                                                  \
  { .name = #call, .domain = SC_DOMAIN_RUNTIME, __VA_ARGS__ }
#define DR(call, ...)                                                                                                  \
  { .name = #call, .domain = SC_DOMAIN_DRIVER, __VA_ARGS__ }

/* Families of the runtime: calls that differ in nothing but their version share a line. */
#define RT_STREAM(c) RT(c, .stream = IN(c, stream))
#define RT_EVENT(c) RT(c, .object = IN(c, event))
#define RT_COPY(c) RT(c, .dst = IN(c, dst), .src = IN(c, src), .bytes = IN(c, count), .kind = IN(c, kind))
#define RT_COPY_ASYNC(c)                                                                                               \
  RT(c, .dst = IN(c, dst), .src = IN(c, src), .bytes = IN(c, count), .kind = IN(c, kind), .stream = IN(c, stream))
#define RT_COPY_2D(c)                                                                                                  \
  RT(c, .dst = IN(c, dst), .src = IN(c, src), .bytes = IN(c, width), .rows = IN(c, height), .kind = IN(c, kind))
#define RT_COPY_2D_ASYNC(c)                                                                                            \
  RT(c, .dst = IN(c, dst), .src = IN(c, src), .bytes = IN(c, width), .rows = IN(c, height), .kind = IN(c, kind),       \
     .stream = IN(c, stream))
#define RT_TO_ARRAY(c)                                                                                                 \
  RT(c, .flags = SC_LAYOUT_DST_ARRAY, .src = IN(c, src), .bytes = IN(c, count), .kind = IN(c, kind))
#define RT_TO_ARRAY_ASYNC(c)                                                                                           \
  RT(c, .flags = SC_LAYOUT_DST_ARRAY, .src = IN(c, src), .bytes = IN(c, count), .kind = IN(c, kind),                   \
     .stream = IN(c, stream))
#define RT_FROM_ARRAY(c)                                                                                               \
  RT(c, .flags = SC_LAYOUT_SRC_ARRAY, .dst = IN(c, dst), .bytes = IN(c, count), .kind = IN(c, kind))
#define RT_FROM_ARRAY_ASYNC(c)                                                                                         \
  RT(c, .flags = SC_LAYOUT_SRC_ARRAY, .dst = IN(c, dst), .bytes = IN(c, count), .kind = IN(c, kind),                   \
     .stream = IN(c, stream))
#define RT_2D_TO_ARRAY(c)                                                                                              \
  RT(c, .flags = SC_LAYOUT_DST_ARRAY, .src = IN(c, src), .bytes = IN(c, width), .rows = IN(c, height),                 \
     .kind = IN(c, kind))
#define RT_2D_TO_ARRAY_ASYNC(c)                                                                                        \
  RT(c, .flags = SC_LAYOUT_DST_ARRAY, .src = IN(c, src), .bytes = IN(c, width), .rows = IN(c, height),                 \
     .kind = IN(c, kind), .stream = IN(c, stream))
#define RT_2D_FROM_ARRAY(c)                                                                                            \
  RT(c, .flags = SC_LAYOUT_SRC_ARRAY, .dst = IN(c, dst), .bytes = IN(c, width), .rows = IN(c, height),                 \
     .kind = IN(c, kind))
#define RT_2D_FROM_ARRAY_ASYNC(c)                                                                                      \
  RT(c, .flags = SC_LAYOUT_SRC_ARRAY, .dst = IN(c, dst), .bytes = IN(c, width), .rows = IN(c, height),                 \
     .kind = IN(c, kind), .stream = IN(c, stream))
#define BOTH_ARRAYS (SC_LAYOUT_DST_ARRAY | SC_LAYOUT_SRC_ARRAY)
#define RT_TO_SYMBOL(c)                                                                                                \
  RT(c, .flags = SC_LAYOUT_DST_DEVICE, .src = IN(c, src), .bytes = IN(c, count), .kind = IN(c, kind))
#define RT_TO_SYMBOL_ASYNC(c)                                                                                          \
  RT(c, .flags = SC_LAYOUT_DST_DEVICE, .src = IN(c, src), .bytes = IN(c, count), .kind = IN(c, kind),                  \
     .stream = IN(c, stream))
#define RT_FROM_SYMBOL(c)                                                                                              \
  RT(c, .flags = SC_LAYOUT_SRC_DEVICE, .dst = IN(c, dst), .bytes = IN(c, count), .kind = IN(c, kind))
#define RT_FROM_SYMBOL_ASYNC(c)                                                                                        \
  RT(c, .flags = SC_LAYOUT_SRC_DEVICE, .dst = IN(c, dst), .bytes = IN(c, count), .kind = IN(c, kind),                  \
     .stream = IN(c, stream))
#define RT_3D(c) RT(c, .form = SC_FORM_RUNTIME_3D, .block = IN(c, p))
#define RT_3D_ASYNC(c) RT(c, .form = SC_FORM_RUNTIME_3D, .block = IN(c, p), .stream = IN(c, stream))
#define RT_3D_PEER(c) RT(c, .form = SC_FORM_RUNTIME_3D_PEER, .block = IN(c, p))
#define RT_3D_PEER_ASYNC(c) RT(c, .form = SC_FORM_RUNTIME_3D_PEER, .block = IN(c, p), .stream = IN(c, stream))
#define BOTH_DEVICE (SC_LAYOUT_DST_DEVICE | SC_LAYOUT_SRC_DEVICE)
#define RT_BATCH(c, s)                                                                                                 \
  RT(c, .form = SC_FORM_BATCH, .dst = AT(struct s, dsts), .src = AT(struct s, srcs), .bytes = AT(struct s, sizes),     \
     .rows = AT(struct s, count), .stream = AT(struct s, stream))
#define RT_3D_BATCH(c, s)                                                                                              \
  RT(c, .form = SC_FORM_RUNTIME_3D_BATCH, .block = AT(struct s, opList), .rows = AT(struct s, numOps),                 \
     .stream = AT(struct s, stream))
#define RT_MEMSET(c) RT(c, .dst = IN(c, devPtr), .bytes = IN(c, count))
#define RT_MEMSET_ASYNC(c) RT(c, .dst = IN(c, devPtr), .bytes = IN(c, count), .stream = IN(c, stream))
#define RT_MEMSET_2D(c) RT(c, .dst = IN(c, devPtr), .bytes = IN(c, width), .rows = IN(c, height))
#define RT_MEMSET_2D_ASYNC(c)                                                                                          \
  RT(c, .dst = IN(c, devPtr), .bytes = IN(c, width), .rows = IN(c, height), .stream = IN(c, stream))
#define RT_MEMSET_3D(c) RT(c, .form = SC_FORM_PITCHED, .dst = INSIDE(c, pitchedDevPtr), .bytes = INSIDE(c, extent))
#define RT_MEMSET_3D_ASYNC(c)                                                                                          \
  RT(c, .form = SC_FORM_PITCHED, .dst = INSIDE(c, pitchedDevPtr), .bytes = INSIDE(c, extent), .stream = IN(c, stream))
#define RT_PREFETCH(c, s)                                                                                              \
  RT(c, .object = AT(struct s, devPtr), .bytes = AT(struct s, count), .stream = AT(struct s, stream))
#define RT_BATCH_SIZES(c, s)                                                                                           \
  RT(c, .form = SC_FORM_BATCH_SIZES, .bytes = AT(struct s, sizes), .rows = AT(struct s, count),                        \
     .stream = AT(struct s, stream))
#define RT_CAPTURE_BEGIN(c) RT(c, .role = SC_ROLE_CAPTURE_BEGIN, .stream = IN(c, stream))
#define RT_CAPTURE_END(c) RT(c, .role = SC_ROLE_CAPTURE_END, .stream = IN(c, stream))
#define RT_EVENT_RECORD(c) RT(c, .role = SC_ROLE_EVENT_RECORD, .object = IN(c, event), .stream = IN(c, stream))
#define RT_STREAM_WAIT(c) RT(c, .role = SC_ROLE_STREAM_WAIT, .object = IN(c, event), .stream = IN(c, stream))
#define RT_MALLOC_ASYNC(c)                                                                                             \
  RT(c, .role = SC_ROLE_ALLOC_ASYNC, .out = IN(c, devPtr), .bytes = IN(c, size), .stream = IN(c, hStream))
#define RT_MALLOC_FROM_POOL(c)                                                                                         \
  RT(c, .role = SC_ROLE_ALLOC_POOL, .out = IN(c, ptr), .bytes = IN(c, size), .object = IN(c, memPool),                 \
     .stream = IN(c, stream))
#define RT_FREE_ASYNC(c) RT(c, .role = SC_ROLE_FREE, .object = IN(c, devPtr), .stream = IN(c, hStream))

/* Families of the driver API. */
#define DR_STREAM(c) DR(c, .stream = IN(c, hStream))
#define DR_EVENT(c) DR(c, .object = IN(c, hEvent))
#define DR_HTOD(c)                                                                                                     \
  DR(c, .flags = SC_LAYOUT_DST_DEVICE, .dst = IN(c, dstDevice), .src = IN(c, srcHost), .bytes = IN(c, ByteCount))
#define DR_HTOD_ASYNC(c)                                                                                               \
  DR(c, .flags = SC_LAYOUT_DST_DEVICE, .dst = IN(c, dstDevice), .src = IN(c, srcHost), .bytes = IN(c, ByteCount),      \
     .stream = IN(c, hStream))
#define DR_DTOH(c)                                                                                                     \
  DR(c, .flags = SC_LAYOUT_SRC_DEVICE, .dst = IN(c, dstHost), .src = IN(c, srcDevice), .bytes = IN(c, ByteCount))
#define DR_DTOH_ASYNC(c)                                                                                               \
  DR(c, .flags = SC_LAYOUT_SRC_DEVICE, .dst = IN(c, dstHost), .src = IN(c, srcDevice), .bytes = IN(c, ByteCount),      \
     .stream = IN(c, hStream))
#define DR_DTOD(c)                                                                                                     \
  DR(c, .flags = BOTH_DEVICE, .dst = IN(c, dstDevice), .src = IN(c, srcDevice), .bytes = IN(c, ByteCount))
#define DR_DTOD_ASYNC(c)                                                                                               \
  DR(c, .flags = BOTH_DEVICE, .dst = IN(c, dstDevice), .src = IN(c, srcDevice), .bytes = IN(c, ByteCount),             \
     .stream = IN(c, hStream))
#define DR_DTOA(c)                                                                                                     \
  DR(c, .flags = SC_LAYOUT_DST_ARRAY | SC_LAYOUT_SRC_DEVICE, .src = IN(c, srcDevice), .bytes = IN(c, ByteCount))
#define DR_ATOD(c)                                                                                                     \
  DR(c, .flags = SC_LAYOUT_SRC_ARRAY | SC_LAYOUT_DST_DEVICE, .dst = IN(c, dstDevice), .bytes = IN(c, ByteCount))
#define DR_HTOA(c) DR(c, .flags = SC_LAYOUT_DST_ARRAY, .src = IN(c, srcHost), .bytes = IN(c, ByteCount))
#define DR_HTOA_ASYNC(c)                                                                                               \
  DR(c, .flags = SC_LAYOUT_DST_ARRAY, .src = IN(c, srcHost), .bytes = IN(c, ByteCount), .stream = IN(c, hStream))
#define DR_ATOH(c) DR(c, .flags = SC_LAYOUT_SRC_ARRAY, .dst = IN(c, dstHost), .bytes = IN(c, ByteCount))
#define DR_ATOH_ASYNC(c)                                                                                               \
  DR(c, .flags = SC_LAYOUT_SRC_ARRAY, .dst = IN(c, dstHost), .bytes = IN(c, ByteCount), .stream = IN(c, hStream))
#define DR_ATOA(c) DR(c, .flags = BOTH_ARRAYS, .bytes = IN(c, ByteCount))
#define DR_UNIFIED(c) DR(c, .dst = IN(c, dst), .src = IN(c, src), .bytes = IN(c, ByteCount))
#define DR_UNIFIED_ASYNC(c)                                                                                            \
  DR(c, .dst = IN(c, dst), .src = IN(c, src), .bytes = IN(c, ByteCount), .stream = IN(c, hStream))
#define DR_2D(c) DR(c, .form = SC_FORM_DRIVER_2D, .block = IN(c, pCopy))
#define DR_2D_ASYNC(c) DR(c, .form = SC_FORM_DRIVER_2D, .block = IN(c, pCopy), .stream = IN(c, hStream))
#define DR_3D(c) DR(c, .form = SC_FORM_DRIVER_3D, .block = IN(c, pCopy))
#define DR_3D_ASYNC(c) DR(c, .form = SC_FORM_DRIVER_3D, .block = IN(c, pCopy), .stream = IN(c, hStream))
#define DR_3D_PEER(c) DR(c, .form = SC_FORM_DRIVER_3D_PEER, .block = IN(c, pCopy))
#define DR_3D_PEER_ASYNC(c) DR(c, .form = SC_FORM_DRIVER_3D_PEER, .block = IN(c, pCopy), .stream = IN(c, hStream))
#define DR_BATCH(c)                                                                                                    \
  DR(c, .form = SC_FORM_BATCH, .dst = IN(c, dsts), .src = IN(c, srcs), .bytes = IN(c, sizes), .rows = IN(c, count),    \
     .stream = IN(c, hStream))
#define DR_BATCH_2(c)                                                                                                  \
  DR(c, .form = SC_FORM_BATCH, .dst = AT(struct driver_batch_v2, dsts), .src = AT(struct driver_batch_v2, srcs),       \
     .bytes = AT(struct driver_batch_v2, sizes), .rows = AT(struct driver_batch_v2, count),                            \
     .stream = AT(struct driver_batch_v2, hStream))
#define DR_3D_BATCH(c)                                                                                                 \
  DR(c, .form = SC_FORM_DRIVER_3D_BATCH, .block = IN(c, opList), .rows = IN(c, numOps), .stream = IN(c, hStream))
#define DR_3D_BATCH_2(c)                                                                                               \
  DR(c, .form = SC_FORM_DRIVER_3D_BATCH, .block = AT(struct driver_3d_batch_v2, opList),                               \
     .rows = AT(struct driver_3d_batch_v2, numOps), .stream = AT(struct driver_3d_batch_v2, hStream))
#define DR_MEMSET(c, e) DR(c, .element = e, .dst = IN(c, dstDevice), .bytes = IN(c, N))
#define DR_MEMSET_ASYNC(c, e) DR(c, .element = e, .dst = IN(c, dstDevice), .bytes = IN(c, N), .stream = IN(c, hStream))
#define DR_MEMSET_2D(c, e) DR(c, .element = e, .dst = IN(c, dstDevice), .bytes = IN(c, Width), .rows = IN(c, Height))
#define DR_MEMSET_2D_ASYNC(c, e)                                                                                       \
  DR(c, .element = e, .dst = IN(c, dstDevice), .bytes = IN(c, Width), .rows = IN(c, Height), .stream = IN(c, hStream))
#define DR_PREFETCH(c) DR(c, .object = IN(c, devPtr), .bytes = IN(c, count), .stream = IN(c, hStream))
#define DR_BATCH_SIZES(c, s)                                                                                           \
  DR(c, .form = SC_FORM_BATCH_SIZES, .bytes = AT(struct s, sizes), .rows = AT(struct s, count),                        \
     .stream = AT(struct s, stream))
#define DR_CAPTURE_BEGIN(c) DR(c, .role = SC_ROLE_CAPTURE_BEGIN, .stream = IN(c, hStream))
#define DR_CAPTURE_END(c) DR(c, .role = SC_ROLE_CAPTURE_END, .stream = IN(c, hStream))
#define DR_EVENT_RECORD(c) DR(c, .role = SC_ROLE_EVENT_RECORD, .object = IN(c, hEvent), .stream = IN(c, hStream))
#define DR_STREAM_WAIT(c) DR(c, .role = SC_ROLE_STREAM_WAIT, .object = IN(c, hEvent), .stream = IN(c, hStream))
#define DR_LAUNCH_CONFIG(c) DR(c, .form = SC_FORM_DRIVER_CONFIG, .block = IN(c, config))
#define DR_ALLOC_ASYNC(c)                                                                                              \
  DR(c, .role = SC_ROLE_ALLOC_ASYNC, .out = IN(c, dptr), .bytes = IN(c, bytesize), .stream = IN(c, hStream))
#define DR_ALLOC_FROM_POOL(c)                                                                                          \
  DR(c, .role = SC_ROLE_ALLOC_POOL, .out = IN(c, dptr), .bytes = IN(c, bytesize), .object = IN(c, pool),               \
     .stream = IN(c, hStream))
#define DR_FREE_ASYNC(c) DR(c, .role = SC_ROLE_FREE, .object = IN(c, dptr), .stream = IN(c, hStream))

static const struct sc_layout layouts[] = {
  /* runtime: waiting and asking */
  RT_STREAM(cudaStreamSynchronize_v3020), RT_STREAM(cudaStreamSynchronize_ptsz_v7000),
  RT_STREAM(cudaStreamQuery_v3020), RT_STREAM(cudaStreamQuery_ptsz_v7000),
  RT_EVENT(cudaEventSynchronize_v3020), RT_EVENT(cudaEventQuery_v3020),
  RT(cudaDeviceSynchronize_v3020), RT(cudaThreadSynchronize_v3020),
  /* runtime: copies */
  RT_COPY(cudaMemcpy_v3020), RT_COPY(cudaMemcpy_ptds_v7000),
  RT_COPY_ASYNC(cudaMemcpyAsync_v3020), RT_COPY_ASYNC(cudaMemcpyAsync_ptsz_v7000),
  RT_COPY_2D(cudaMemcpy2D_v3020), RT_COPY_2D(cudaMemcpy2D_ptds_v7000),
  RT_COPY_2D_ASYNC(cudaMemcpy2DAsync_v3020), RT_COPY_2D_ASYNC(cudaMemcpy2DAsync_ptsz_v7000),
  RT_TO_ARRAY(cudaMemcpyToArray_v3020), RT_TO_ARRAY(cudaMemcpyToArray_ptds_v7000),
  RT_TO_ARRAY_ASYNC(cudaMemcpyToArrayAsync_v3020), RT_TO_ARRAY_ASYNC(cudaMemcpyToArrayAsync_ptsz_v7000),
  RT_FROM_ARRAY(cudaMemcpyFromArray_v3020), RT_FROM_ARRAY(cudaMemcpyFromArray_ptds_v7000),
  RT_FROM_ARRAY_ASYNC(cudaMemcpyFromArrayAsync_v3020), RT_FROM_ARRAY_ASYNC(cudaMemcpyFromArrayAsync_ptsz_v7000),
  RT_2D_TO_ARRAY(cudaMemcpy2DToArray_v3020), RT_2D_TO_ARRAY(cudaMemcpy2DToArray_ptds_v7000),
  RT_2D_TO_ARRAY_ASYNC(cudaMemcpy2DToArrayAsync_v3020), RT_2D_TO_ARRAY_ASYNC(cudaMemcpy2DToArrayAsync_ptsz_v7000),
  RT_2D_FROM_ARRAY(cudaMemcpy2DFromArray_v3020), RT_2D_FROM_ARRAY(cudaMemcpy2DFromArray_ptds_v7000),
  RT_2D_FROM_ARRAY_ASYNC(cudaMemcpy2DFromArrayAsync_v3020),
  RT_2D_FROM_ARRAY_ASYNC(cudaMemcpy2DFromArrayAsync_ptsz_v7000),
  RT(cudaMemcpyArrayToArray_v3020, .flags = BOTH_ARRAYS, .bytes = IN(cudaMemcpyArrayToArray_v3020, count)),
  RT(cudaMemcpyArrayToArray_ptds_v7000, .flags = BOTH_ARRAYS, .bytes = IN(cudaMemcpyArrayToArray_ptds_v7000, count)),
  RT(cudaMemcpy2DArrayToArray_v3020, .flags = BOTH_ARRAYS, .bytes = IN(cudaMemcpy2DArrayToArray_v3020, width),
     .rows = IN(cudaMemcpy2DArrayToArray_v3020, height)),
  RT(cudaMemcpy2DArrayToArray_ptds_v7000, .flags = BOTH_ARRAYS, .bytes = IN(cudaMemcpy2DArrayToArray_ptds_v7000, width),
     .rows = IN(cudaMemcpy2DArrayToArray_ptds_v7000, height)),
  RT_TO_SYMBOL(cudaMemcpyToSymbol_v3020), RT_TO_SYMBOL(cudaMemcpyToSymbol_ptds_v7000),
  RT_TO_SYMBOL_ASYNC(cudaMemcpyToSymbolAsync_v3020), RT_TO_SYMBOL_ASYNC(cudaMemcpyToSymbolAsync_ptsz_v7000),
  RT_FROM_SYMBOL(cudaMemcpyFromSymbol_v3020), RT_FROM_SYMBOL(cudaMemcpyFromSymbol_ptds_v7000),
  RT_FROM_SYMBOL_ASYNC(cudaMemcpyFromSymbolAsync_v3020), RT_FROM_SYMBOL_ASYNC(cudaMemcpyFromSymbolAsync_ptsz_v7000),
  RT_3D(cudaMemcpy3D_v3020), RT_3D(cudaMemcpy3D_ptds_v7000),
  RT_3D_ASYNC(cudaMemcpy3DAsync_v3020), RT_3D_ASYNC(cudaMemcpy3DAsync_ptsz_v7000),
  RT_3D_PEER(cudaMemcpy3DPeer_v4000), RT_3D_PEER(cudaMemcpy3DPeer_ptds_v7000),
  RT_3D_PEER_ASYNC(cudaMemcpy3DPeerAsync_v4000), RT_3D_PEER_ASYNC(cudaMemcpy3DPeerAsync_ptsz_v7000),
  RT(cudaMemcpyPeer_v4000, .flags = BOTH_DEVICE, .dst = IN(cudaMemcpyPeer_v4000, dst),
     .src = IN(cudaMemcpyPeer_v4000, src), .bytes = IN(cudaMemcpyPeer_v4000, count)),
  RT(cudaMemcpyPeerAsync_v4000, .flags = BOTH_DEVICE, .dst = IN(cudaMemcpyPeerAsync_v4000, dst),
     .src = IN(cudaMemcpyPeerAsync_v4000, src), .bytes = IN(cudaMemcpyPeerAsync_v4000, count),
     .stream = IN(cudaMemcpyPeerAsync_v4000, stream)),
  RT_BATCH(cudaMemcpyBatchAsync_v12080, runtime_batch_v12080),
  RT_BATCH(cudaMemcpyBatchAsync_ptsz_v12080, runtime_batch_v12080),
  RT_BATCH(cudaMemcpyBatchAsync_v13000, runtime_batch_v13000),
  RT_BATCH(cudaMemcpyBatchAsync_ptsz_v13000, runtime_batch_v13000),
  RT_3D_BATCH(cudaMemcpy3DBatchAsync_v12080, runtime_3d_batch_v12080),
  RT_3D_BATCH(cudaMemcpy3DBatchAsync_ptsz_v12080, runtime_3d_batch_v12080),
  RT_3D_BATCH(cudaMemcpy3DBatchAsync_v13000, runtime_3d_batch_v13000),
  RT_3D_BATCH(cudaMemcpy3DBatchAsync_ptsz_v13000, runtime_3d_batch_v13000),
  /* runtime: memset, prefetch, host functions */
  RT_MEMSET(cudaMemset_v3020), RT_MEMSET(cudaMemset_ptds_v7000),
  RT_MEMSET_ASYNC(cudaMemsetAsync_v3020), RT_MEMSET_ASYNC(cudaMemsetAsync_ptsz_v7000),
  RT_MEMSET_2D(cudaMemset2D_v3020), RT_MEMSET_2D(cudaMemset2D_ptds_v7000),
  RT_MEMSET_2D_ASYNC(cudaMemset2DAsync_v3020), RT_MEMSET_2D_ASYNC(cudaMemset2DAsync_ptsz_v7000),
  RT_MEMSET_3D(cudaMemset3D_v3020), RT_MEMSET_3D(cudaMemset3D_ptds_v7000),
  RT_MEMSET_3D_ASYNC(cudaMemset3DAsync_v3020), RT_MEMSET_3D_ASYNC(cudaMemset3DAsync_ptsz_v7000),
  RT_PREFETCH(cudaMemPrefetchAsync_v8000, prefetch_v8000), RT_PREFETCH(cudaMemPrefetchAsync_ptsz_v8000, prefetch_v8000),
  RT_PREFETCH(cudaMemPrefetchAsync_v12020, prefetch_v12020),
  RT_PREFETCH(cudaMemPrefetchAsync_ptsz_v12020, prefetch_v12020),
  RT_PREFETCH(cudaMemPrefetchAsync_v2_v12020, prefetch_v12020),
  RT_PREFETCH(cudaMemPrefetchAsync_v2_ptsz_v12020, prefetch_v12020),
  RT_BATCH_SIZES(cudaMemPrefetchBatchAsync_v13000, prefetch_batch),
  RT_BATCH_SIZES(cudaMemPrefetchBatchAsync_ptsz_v13000, prefetch_batch),
  RT_BATCH_SIZES(cudaMemDiscardAndPrefetchBatchAsync_v13000, prefetch_batch),
  RT_BATCH_SIZES(cudaMemDiscardAndPrefetchBatchAsync_ptsz_v13000, prefetch_batch),
  RT_BATCH_SIZES(cudaMemDiscardBatchAsync_v13000, discard_batch),
  RT_BATCH_SIZES(cudaMemDiscardBatchAsync_ptsz_v13000, discard_batch),
  RT_STREAM(cudaLaunchHostFunc_v10000), RT_STREAM(cudaLaunchHostFunc_ptsz_v10000),
  RT_STREAM(cudaStreamAddCallback_v5000), RT_STREAM(cudaStreamAddCallback_ptsz_v7000),
  /* runtime: memory comes and goes */
  RT(cudaMalloc_v3020, .role = SC_ROLE_ALLOC_DEVICE, .out = IN(cudaMalloc_v3020, devPtr),
     .bytes = IN(cudaMalloc_v3020, size)),
  RT(cudaMallocPitch_v3020, .role = SC_ROLE_ALLOC_PITCH, .out = IN(cudaMallocPitch_v3020, devPtr),
     .block = IN(cudaMallocPitch_v3020, pitch), .rows = IN(cudaMallocPitch_v3020, height)),
  RT(cudaMalloc3D_v3020, .role = SC_ROLE_ALLOC_3D, .out = IN(cudaMalloc3D_v3020, pitchedDevPtr),
     .bytes = INSIDE(cudaMalloc3D_v3020, extent)),
  RT(cudaMallocManaged_v6000, .role = SC_ROLE_ALLOC_MANAGED, .out = IN(cudaMallocManaged_v6000, devPtr),
     .bytes = IN(cudaMallocManaged_v6000, size)),
  RT(cudaMallocHost_v3020, .role = SC_ROLE_ALLOC_PINNED, .out = IN(cudaMallocHost_v3020, ptr),
     .bytes = IN(cudaMallocHost_v3020, size)),
  RT(cudaHostAlloc_v3020, .role = SC_ROLE_ALLOC_PINNED, .out = IN(cudaHostAlloc_v3020, pHost),
     .bytes = IN(cudaHostAlloc_v3020, size)),
  RT(cudaHostRegister_v4000, .role = SC_ROLE_REGISTER, .object = IN(cudaHostRegister_v4000, ptr),
     .bytes = IN(cudaHostRegister_v4000, size)),
  RT(cudaHostUnregister_v4000, .role = SC_ROLE_FREE, .object = IN(cudaHostUnregister_v4000, ptr)),
  RT(cudaFree_v3020, .role = SC_ROLE_FREE, .object = IN(cudaFree_v3020, devPtr)),
  RT(cudaFreeHost_v3020, .role = SC_ROLE_FREE, .object = IN(cudaFreeHost_v3020, ptr)),
  RT_MALLOC_ASYNC(cudaMallocAsync_v11020), RT_MALLOC_ASYNC(cudaMallocAsync_ptsz_v11020),
  RT_MALLOC_FROM_POOL(cudaMallocFromPoolAsync_v11020), RT_MALLOC_FROM_POOL(cudaMallocFromPoolAsync_ptsz_v11020),
  RT_FREE_ASYNC(cudaFreeAsync_v11020), RT_FREE_ASYNC(cudaFreeAsync_ptsz_v11020),
  RT(cudaMallocArray_v3020, .role = SC_ROLE_ALLOC_ARRAY, .out = IN(cudaMallocArray_v3020, array),
     .block = IN(cudaMallocArray_v3020, desc)),
  RT(cudaMalloc3DArray_v3020, .role = SC_ROLE_ALLOC_ARRAY, .out = IN(cudaMalloc3DArray_v3020, array),
     .block = IN(cudaMalloc3DArray_v3020, desc)),
  RT(cudaFreeArray_v3020, .role = SC_ROLE_FREE_ARRAY, .object = IN(cudaFreeArray_v3020, array)),
  RT(cudaFreeMipmappedArray_v5000, .object = IN(cudaFreeMipmappedArray_v5000, mipmappedArray)),
  RT(cudaMemPoolCreate_v11020, .role = SC_ROLE_POOL_CREATE, .out = IN(cudaMemPoolCreate_v11020, memPool),
     .block = IN(cudaMemPoolCreate_v11020, poolProps)),
  RT(cudaDeviceGetDefaultMemPool_v11020, .role = SC_ROLE_POOL_DEVICE,
     .out = IN(cudaDeviceGetDefaultMemPool_v11020, memPool)),
  RT(cudaDeviceGetMemPool_v11020, .role = SC_ROLE_POOL_DEVICE, .out = IN(cudaDeviceGetMemPool_v11020, memPool)),
  RT(cudaMemGetDefaultMemPool_v13000, .role = SC_ROLE_POOL_LOCATION, .out = AT(struct pool_by_location, memPool),
     .block = AT(struct pool_by_location, location), .kind = AT(struct pool_by_location, type)),
  RT(cudaMemGetMemPool_v13000, .role = SC_ROLE_POOL_LOCATION, .out = AT(struct pool_by_location, memPool),
     .block = AT(struct pool_by_location, location), .kind = AT(struct pool_by_location, type)),
  RT(cudaMemPoolDestroy_v11020, .object = IN(cudaMemPoolDestroy_v11020, memPool)),
  RT(cudaMemPoolTrimTo_v11020, .object = IN(cudaMemPoolTrimTo_v11020, memPool)),
  RT(cudaMemPoolImportFromShareableHandle_v11020, .role = SC_ROLE_IMPORT),
  RT(cudaMemPoolImportPointer_v11020, .role = SC_ROLE_IMPORT),
  RT(cudaIpcOpenMemHandle_v4010, .role = SC_ROLE_IMPORT),
  RT(cudaIpcCloseMemHandle_v4010, .object = IN(cudaIpcCloseMemHandle_v4010, devPtr)),
  RT(cudaExternalMemoryGetMappedBuffer_v10000, .role = SC_ROLE_MAPPED_BUFFER,
     .out = IN(cudaExternalMemoryGetMappedBuffer_v10000, devPtr),
     .block = IN(cudaExternalMemoryGetMappedBuffer_v10000, bufferDesc)),
  RT(cudaGraphicsResourceGetMappedPointer_v3020, .role = SC_ROLE_IMPORT),
  RT(cudaDeviceReset_v3020, .role = SC_ROLE_DEVICE_RESET),
  /* runtime: capture, events, streams */
  RT_CAPTURE_BEGIN(cudaStreamBeginCapture_v10000), RT_CAPTURE_BEGIN(cudaStreamBeginCapture_ptsz_v10000),
  RT_CAPTURE_BEGIN(cudaStreamBeginCaptureToGraph_v12030), RT_CAPTURE_BEGIN(cudaStreamBeginCaptureToGraph_ptsz_v12030),
  RT_CAPTURE_END(cudaStreamEndCapture_v10000), RT_CAPTURE_END(cudaStreamEndCapture_ptsz_v10000),
  RT_EVENT_RECORD(cudaEventRecord_v3020), RT_EVENT_RECORD(cudaEventRecord_ptsz_v7000),
  RT_EVENT_RECORD(cudaEventRecordWithFlags_v11010), RT_EVENT_RECORD(cudaEventRecordWithFlags_ptsz_v11010),
  RT_STREAM_WAIT(cudaStreamWaitEvent_v3020), RT_STREAM_WAIT(cudaStreamWaitEvent_ptsz_v7000),
  RT(cudaStreamDestroy_v5050, .role = SC_ROLE_STREAM_DESTROY, .object = IN(cudaStreamDestroy_v5050, stream)),
  RT(cudaEventCreateWithFlags_v3020, .role = SC_ROLE_EVENT_CREATE, .out = IN(cudaEventCreateWithFlags_v3020, event),
     .kind = IN(cudaEventCreateWithFlags_v3020, flags)),
  RT(cudaEventDestroy_v3020, .role = SC_ROLE_EVENT_DESTROY, .object = IN(cudaEventDestroy_v3020, event)),
  RT(cudaSetDeviceFlags_v3020, .role = SC_ROLE_DEVICE_FLAGS, .kind = IN(cudaSetDeviceFlags_v3020, flags)),
  RT(cudaGraphExecDestroy_v10000, .object = IN(cudaGraphExecDestroy_v10000, graphExec)),
  RT(cudaGraphDestroy_v10000, .object = IN(cudaGraphDestroy_v10000, graph)),

  /* driver: waiting and asking */
  DR_STREAM(cuStreamSynchronize), DR_STREAM(cuStreamSynchronize_ptsz), DR_STREAM(cuStreamQuery),
  DR_STREAM(cuStreamQuery_ptsz),
  DR_EVENT(cuEventSynchronize), DR_EVENT(cuEventQuery), DR(cuCtxSynchronize), DR(cuCtxSynchronize_v2),
  /* driver: copies */
  DR_HTOD(cuMemcpyHtoD), DR_HTOD(cuMemcpyHtoD_v2), DR_HTOD(cuMemcpyHtoD_v2_ptds),
  DR_HTOD_ASYNC(cuMemcpyHtoDAsync), DR_HTOD_ASYNC(cuMemcpyHtoDAsync_v2), DR_HTOD_ASYNC(cuMemcpyHtoDAsync_v2_ptsz),
  DR_DTOH(cuMemcpyDtoH), DR_DTOH(cuMemcpyDtoH_v2), DR_DTOH(cuMemcpyDtoH_v2_ptds),
  DR_DTOH_ASYNC(cuMemcpyDtoHAsync), DR_DTOH_ASYNC(cuMemcpyDtoHAsync_v2), DR_DTOH_ASYNC(cuMemcpyDtoHAsync_v2_ptsz),
  DR_DTOD(cuMemcpyDtoD), DR_DTOD(cuMemcpyDtoD_v2), DR_DTOD(cuMemcpyDtoD_v2_ptds),
  DR_DTOD_ASYNC(cuMemcpyDtoDAsync), DR_DTOD_ASYNC(cuMemcpyDtoDAsync_v2), DR_DTOD_ASYNC(cuMemcpyDtoDAsync_v2_ptsz),
  DR_DTOA(cuMemcpyDtoA), DR_DTOA(cuMemcpyDtoA_v2), DR_DTOA(cuMemcpyDtoA_v2_ptds),
  DR_ATOD(cuMemcpyAtoD), DR_ATOD(cuMemcpyAtoD_v2), DR_ATOD(cuMemcpyAtoD_v2_ptds),
  DR_HTOA(cuMemcpyHtoA), DR_HTOA(cuMemcpyHtoA_v2), DR_HTOA(cuMemcpyHtoA_v2_ptds),
  DR_HTOA_ASYNC(cuMemcpyHtoAAsync), DR_HTOA_ASYNC(cuMemcpyHtoAAsync_v2), DR_HTOA_ASYNC(cuMemcpyHtoAAsync_v2_ptsz),
  DR_ATOH(cuMemcpyAtoH), DR_ATOH(cuMemcpyAtoH_v2), DR_ATOH(cuMemcpyAtoH_v2_ptds),
  DR_ATOH_ASYNC(cuMemcpyAtoHAsync), DR_ATOH_ASYNC(cuMemcpyAtoHAsync_v2), DR_ATOH_ASYNC(cuMemcpyAtoHAsync_v2_ptsz),
  DR_ATOA(cuMemcpyAtoA), DR_ATOA(cuMemcpyAtoA_v2), DR_ATOA(cuMemcpyAtoA_v2_ptds),
  DR_UNIFIED(cuMemcpy), DR_UNIFIED(cuMemcpy_ptds), DR_UNIFIED_ASYNC(cuMemcpyAsync),
  DR_UNIFIED_ASYNC(cuMemcpyAsync_ptsz),
  DR_2D(cuMemcpy2D_v2), DR_2D(cuMemcpy2D_v2_ptds), DR_2D(cuMemcpy2DUnaligned_v2), DR_2D(cuMemcpy2DUnaligned_v2_ptds),
  DR_2D_ASYNC(cuMemcpy2DAsync_v2), DR_2D_ASYNC(cuMemcpy2DAsync_v2_ptsz),
  DR_3D(cuMemcpy3D_v2), DR_3D(cuMemcpy3D_v2_ptds), DR_3D_ASYNC(cuMemcpy3DAsync_v2),
  DR_3D_ASYNC(cuMemcpy3DAsync_v2_ptsz),
  DR_3D_PEER(cuMemcpy3DPeer), DR_3D_PEER(cuMemcpy3DPeer_ptds), DR_3D_PEER_ASYNC(cuMemcpy3DPeerAsync),
  DR_3D_PEER_ASYNC(cuMemcpy3DPeerAsync_ptsz),
  DR_DTOD(cuMemcpyPeer), DR_DTOD(cuMemcpyPeer_ptds), DR_DTOD_ASYNC(cuMemcpyPeerAsync),
  DR_DTOD_ASYNC(cuMemcpyPeerAsync_ptsz),
  DR_BATCH(cuMemcpyBatchAsync), DR_BATCH(cuMemcpyBatchAsync_ptsz), DR_BATCH_2(cuMemcpyBatchAsync_v2),
  DR_BATCH_2(cuMemcpyBatchAsync_v2_ptsz),
  DR_3D_BATCH(cuMemcpy3DBatchAsync), DR_3D_BATCH(cuMemcpy3DBatchAsync_ptsz),
  DR_3D_BATCH_2(cuMemcpy3DBatchAsync_v2), DR_3D_BATCH_2(cuMemcpy3DBatchAsync_v2_ptsz),
  /* driver: memset, prefetch, host functions */
  DR_MEMSET(cuMemsetD8, 1), DR_MEMSET(cuMemsetD8_v2, 1), DR_MEMSET(cuMemsetD8_v2_ptds, 1),
  DR_MEMSET(cuMemsetD16, 2), DR_MEMSET(cuMemsetD16_v2, 2), DR_MEMSET(cuMemsetD16_v2_ptds, 2),
  DR_MEMSET(cuMemsetD32, 4), DR_MEMSET(cuMemsetD32_v2, 4), DR_MEMSET(cuMemsetD32_v2_ptds, 4),
  DR_MEMSET_2D(cuMemsetD2D8, 1), DR_MEMSET_2D(cuMemsetD2D8_v2, 1), DR_MEMSET_2D(cuMemsetD2D8_v2_ptds, 1),
  DR_MEMSET_2D(cuMemsetD2D16, 2), DR_MEMSET_2D(cuMemsetD2D16_v2, 2), DR_MEMSET_2D(cuMemsetD2D16_v2_ptds, 2),
  DR_MEMSET_2D(cuMemsetD2D32, 4), DR_MEMSET_2D(cuMemsetD2D32_v2, 4), DR_MEMSET_2D(cuMemsetD2D32_v2_ptds, 4),
  DR_MEMSET_ASYNC(cuMemsetD8Async, 1), DR_MEMSET_ASYNC(cuMemsetD8Async_ptsz, 1),
  DR_MEMSET_ASYNC(cuMemsetD16Async, 2), DR_MEMSET_ASYNC(cuMemsetD16Async_ptsz, 2),
  DR_MEMSET_ASYNC(cuMemsetD32Async, 4), DR_MEMSET_ASYNC(cuMemsetD32Async_ptsz, 4),
  DR_MEMSET_2D_ASYNC(cuMemsetD2D8Async, 1), DR_MEMSET_2D_ASYNC(cuMemsetD2D8Async_ptsz, 1),
  DR_MEMSET_2D_ASYNC(cuMemsetD2D16Async, 2), DR_MEMSET_2D_ASYNC(cuMemsetD2D16Async_ptsz, 2),
  DR_MEMSET_2D_ASYNC(cuMemsetD2D32Async, 4), DR_MEMSET_2D_ASYNC(cuMemsetD2D32Async_ptsz, 4),
  DR_PREFETCH(cuMemPrefetchAsync), DR_PREFETCH(cuMemPrefetchAsync_ptsz), DR_PREFETCH(cuMemPrefetchAsync_v2),
  DR_PREFETCH(cuMemPrefetchAsync_v2_ptsz),
  DR_BATCH_SIZES(cuMemPrefetchBatchAsync, prefetch_batch), DR_BATCH_SIZES(cuMemPrefetchBatchAsync_ptsz, prefetch_batch),
  DR_BATCH_SIZES(cuMemDiscardAndPrefetchBatchAsync, prefetch_batch),
  DR_BATCH_SIZES(cuMemDiscardAndPrefetchBatchAsync_ptsz, prefetch_batch),
  DR_BATCH_SIZES(cuMemDiscardBatchAsync, discard_batch), DR_BATCH_SIZES(cuMemDiscardBatchAsync_ptsz, discard_batch),
  DR_STREAM(cuLaunchHostFunc), DR_STREAM(cuLaunchHostFunc_ptsz), DR_STREAM(cuStreamAddCallback),
  DR_STREAM(cuStreamAddCallback_ptsz),
  /* driver: launches, the runtime's too (the stream tells whether it was captured) */
  DR_STREAM(cuLaunchKernel), DR_STREAM(cuLaunchKernel_ptsz), DR_STREAM(cuLaunchCooperativeKernel),
  DR_STREAM(cuLaunchCooperativeKernel_ptsz),
  DR_LAUNCH_CONFIG(cuLaunchKernelEx), DR_LAUNCH_CONFIG(cuLaunchKernelEx_ptsz), DR_STREAM(cuLaunchGridAsync),
  DR_STREAM(cuGraphLaunch), DR_STREAM(cuGraphLaunch_ptsz),
  /* driver: memory comes and goes */
  DR(cuMemAlloc_v2, .role = SC_ROLE_ALLOC_DEVICE, .out = IN(cuMemAlloc_v2, dptr), .bytes = IN(cuMemAlloc_v2, bytesize)),
  DR(cuMemAllocPitch_v2, .role = SC_ROLE_ALLOC_PITCH, .out = IN(cuMemAllocPitch_v2, dptr),
     .block = IN(cuMemAllocPitch_v2, pPitch), .rows = IN(cuMemAllocPitch_v2, Height)),
  DR(cuMemAllocManaged, .role = SC_ROLE_ALLOC_MANAGED, .out = IN(cuMemAllocManaged, dptr),
     .bytes = IN(cuMemAllocManaged, bytesize)),
  DR(cuMemAllocHost, .role = SC_ROLE_ALLOC_PINNED, .out = IN(cuMemAllocHost, pp),
     .bytes = IN(cuMemAllocHost, bytesize)),
  DR(cuMemAllocHost_v2, .role = SC_ROLE_ALLOC_PINNED, .out = IN(cuMemAllocHost_v2, pp),
     .bytes = IN(cuMemAllocHost_v2, bytesize)),
  DR(cuMemHostAlloc, .role = SC_ROLE_ALLOC_PINNED, .out = IN(cuMemHostAlloc, pp),
     .bytes = IN(cuMemHostAlloc, bytesize)),
  DR(cuMemHostAlloc_v2, .role = SC_ROLE_ALLOC_PINNED, .out = IN(cuMemHostAlloc, pp),
     .bytes = IN(cuMemHostAlloc, bytesize)),
  DR(cuMemHostRegister, .role = SC_ROLE_REGISTER, .object = IN(cuMemHostRegister, p),
     .bytes = IN(cuMemHostRegister, bytesize)),
  DR(cuMemHostRegister_v2, .role = SC_ROLE_REGISTER, .object = IN(cuMemHostRegister_v2, p),
     .bytes = IN(cuMemHostRegister_v2, bytesize)),
  DR(cuMemHostUnregister, .role = SC_ROLE_FREE, .object = IN(cuMemHostUnregister, p)),
  DR(cuMemFree, .role = SC_ROLE_FREE, .object = IN(cuMemFree, dptr)),
  DR(cuMemFree_v2, .role = SC_ROLE_FREE, .object = IN(cuMemFree_v2, dptr)),
  DR(cuMemFreeHost, .role = SC_ROLE_FREE, .object = IN(cuMemFreeHost, p)),
  DR_ALLOC_ASYNC(cuMemAllocAsync), DR_ALLOC_ASYNC(cuMemAllocAsync_ptsz),
  DR_ALLOC_FROM_POOL(cuMemAllocFromPoolAsync), DR_ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz),
  DR_FREE_ASYNC(cuMemFreeAsync), DR_FREE_ASYNC(cuMemFreeAsync_ptsz),
  DR(cuArrayDestroy, .role = SC_ROLE_FREE_ARRAY, .object = IN(cuArrayDestroy, hArray)),
  DR(cuMipmappedArrayDestroy, .object = IN(cuMipmappedArrayDestroy, hMipmappedArray)),
  DR(cuMemCreate, .role = SC_ROLE_VMM_CREATE, .out = IN(cuMemCreate, handle), .block = IN(cuMemCreate, prop)),
  DR(cuMemMap, .role = SC_ROLE_VMM_MAP, .object = IN(cuMemMap, ptr), .bytes = IN(cuMemMap, size),
     .src = IN(cuMemMap, handle)),
  DR(cuMemUnmap, .role = SC_ROLE_VMM_UNMAP, .object = IN(cuMemUnmap, ptr), .bytes = IN(cuMemUnmap, size)),
  DR(cuMemPoolCreate, .role = SC_ROLE_POOL_CREATE, .out = IN(cuMemPoolCreate, pool),
     .block = IN(cuMemPoolCreate, poolProps)),
  DR(cuDeviceGetDefaultMemPool, .role = SC_ROLE_POOL_DEVICE, .out = IN(cuDeviceGetDefaultMemPool, pool_out)),
  DR(cuDeviceGetMemPool, .role = SC_ROLE_POOL_DEVICE, .out = IN(cuDeviceGetMemPool, pool)),
  DR(cuMemGetDefaultMemPool, .role = SC_ROLE_POOL_LOCATION, .out = AT(struct pool_by_location, memPool),
     .block = AT(struct pool_by_location, location), .kind = AT(struct pool_by_location, type)),
  DR(cuMemGetMemPool, .role = SC_ROLE_POOL_LOCATION, .out = AT(struct pool_by_location, memPool),
     .block = AT(struct pool_by_location, location), .kind = AT(struct pool_by_location, type)),
  DR(cuMemPoolDestroy, .object = IN(cuMemPoolDestroy, pool)), DR(cuMemPoolTrimTo, .object = IN(cuMemPoolTrimTo, pool)),
  DR(cuMemPoolImportFromShareableHandle, .role = SC_ROLE_IMPORT), DR(cuMemPoolImportPointer, .role = SC_ROLE_IMPORT),
  DR(cuIpcOpenMemHandle, .role = SC_ROLE_IMPORT), DR(cuIpcOpenMemHandle_v2, .role = SC_ROLE_IMPORT),
  DR(cuIpcCloseMemHandle, .object = IN(cuIpcCloseMemHandle, dptr)),
  DR(cuExternalMemoryGetMappedBuffer, .role = SC_ROLE_MAPPED_BUFFER, .out = IN(cuExternalMemoryGetMappedBuffer, devPtr),
     .block = IN(cuExternalMemoryGetMappedBuffer, bufferDesc)),
  DR(cuGraphicsResourceGetMappedPointer_v2, .role = SC_ROLE_IMPORT),
  DR(cuCtxDestroy_v2, .object = IN(cuCtxDestroy_v2, ctx)),
  DR(cuDevicePrimaryCtxSetFlags, .role = SC_ROLE_DEVICE_FLAGS, .object = IN(cuDevicePrimaryCtxSetFlags, dev),
     .kind = IN(cuDevicePrimaryCtxSetFlags, flags)),
  DR(cuDevicePrimaryCtxSetFlags_v2, .role = SC_ROLE_DEVICE_FLAGS, .object = IN(cuDevicePrimaryCtxSetFlags_v2, dev),
     .kind = IN(cuDevicePrimaryCtxSetFlags_v2, flags)),
  DR(cuCtxCreate_v2, .role = SC_ROLE_DEVICE_FLAGS, .object = IN(cuCtxCreate_v2, dev), .kind = IN(cuCtxCreate_v2, flags)),
  DR(cuCtxCreate_v3, .role = SC_ROLE_DEVICE_FLAGS, .object = IN(cuCtxCreate_v3, dev), .kind = IN(cuCtxCreate_v3, flags)),
  DR(cuCtxCreate_v4, .role = SC_ROLE_DEVICE_FLAGS, .object = AT(struct ctx_create_v4, dev),
     .kind = AT(struct ctx_create_v4, flags)),
  DR(cuCtxSetFlags, .role = SC_ROLE_DEVICE_FLAGS, .kind = IN(cuCtxSetFlags, flags)),
  /* driver: capture, events, streams, unloading */
  DR_CAPTURE_BEGIN(cuStreamBeginCapture), DR_CAPTURE_BEGIN(cuStreamBeginCapture_ptsz),
  DR_CAPTURE_BEGIN(cuStreamBeginCapture_v2), DR_CAPTURE_BEGIN(cuStreamBeginCapture_v2_ptsz),
  DR_CAPTURE_BEGIN(cuStreamBeginCaptureToGraph), DR_CAPTURE_BEGIN(cuStreamBeginCaptureToGraph_ptsz),
  DR_CAPTURE_END(cuStreamEndCapture), DR_CAPTURE_END(cuStreamEndCapture_ptsz),
  DR_EVENT_RECORD(cuEventRecord), DR_EVENT_RECORD(cuEventRecord_ptsz),
  DR_EVENT_RECORD(cuEventRecordWithFlags), DR_EVENT_RECORD(cuEventRecordWithFlags_ptsz),
  DR_STREAM_WAIT(cuStreamWaitEvent), DR_STREAM_WAIT(cuStreamWaitEvent_ptsz),
  DR(cuStreamDestroy, .role = SC_ROLE_STREAM_DESTROY, .object = IN(cuStreamDestroy, hStream)),
  DR(cuStreamDestroy_v2, .role = SC_ROLE_STREAM_DESTROY, .object = IN(cuStreamDestroy_v2, hStream)),
  DR(cuEventCreate, .role = SC_ROLE_EVENT_CREATE, .out = IN(cuEventCreate, phEvent), .kind = IN(cuEventCreate, Flags)),
  DR(cuEventDestroy_v2, .role = SC_ROLE_EVENT_DESTROY, .object = IN(cuEventDestroy_v2, hEvent)),
  DR(cuModuleUnload, .object = IN(cuModuleUnload, hmod)), DR(cuLibraryUnload, .object = IN(cuLibraryUnload, library)),
  DR(cuGraphExecDestroy, .object = IN(cuGraphExecDestroy, hGraphExec)),
  DR(cuGraphDestroy, .object = IN(cuGraphDestroy, hGraph)),
};

const struct sc_layout *sc_layout_all(size_t *count) {
  *count = sizeof(layouts) / sizeof(layouts[0]);
  return layouts;
}

const struct sc_layout *sc_layout_find(uint8_t domain, const char *name) {
  /* Asked once per CUPTI id when tracing starts: a few hundred rows against some 1,300 names. */
  for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
    if (layouts[i].domain == domain && strcmp(layouts[i].name, name) == 0)
      return &layouts[i];
  return NULL;
}
