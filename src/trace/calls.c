/* SPDX-License-Identifier: Apache-2.0
 * The one table of CUDA host calls: what each does to the host, by its base name. */
#include "trace/calls.h"

#include <string.h>

#include "base/base.h"
#include "trace/format.h"

struct call {
  const char *base;
  uint8_t op;        /* enum sc_op */
  uint8_t direction; /* enum sc_direction, where the name alone fixes it */
};

#define ROW(base, op) {base, SC_OP_##op, SC_DIRECTION_NONE}
#define COPY_ROW(base, op, direction) {base, SC_OP_##op, SC_DIRECTION_##direction}

/* Sorted by strcmp for the binary search below (a test proves it). Every base name of both CUPTI domains for
 * which sc_call_needs_class holds is here, so a name that a new toolkit adds is found by the completeness test
 * and not silently ignored. Why some are what they are:
 * - cuArrayDestroy and cuMipmappedArrayDestroy are the driver's cudaFreeArray and cudaFreeMipmappedArray: FREE.
 * - The cu64 names are the driver's old 64-bit entry points, same meaning as those without the 64.
 * - To- and FromSymbol have a kind argument; the direction here is its default and yields to the argument.
 * - Array-to-array, AtoD, DtoA and Peer copies stay on devices: D2D. cuMemcpy3DPeer may name host memory.
 * - Event, stream, texture, surface, node and user object destroys do not wait for the device: IGNORED.
 * - Unmapping of graphics resources, L2 reset and fat binary unload may wait and have not been measured: LIFECYCLE. */
static const struct call calls[] = {
  ROW("__cudaLaunchKernel", LAUNCH),
  ROW("__cudaRegisterFatBinary", IGNORED),
  ROW("__cudaRegisterFatBinaryEnd", IGNORED),
  ROW("__cudaRegisterFunction", IGNORED),
  ROW("__cudaRegisterHostVar", IGNORED),
  ROW("__cudaRegisterManagedVar", IGNORED),
  ROW("__cudaRegisterUnifiedTable", IGNORED),
  ROW("__cudaRegisterVar", IGNORED),
  ROW("__cudaUnregisterFatBinary", LIFECYCLE),
  ROW("cu64GraphicsResourceGetMappedPointer", MAP),
  ROW("cu64MemAlloc", ALLOC),
  ROW("cu64MemAllocPitch", ALLOC),
  ROW("cu64MemFree", FREE),
  ROW("cu64MemHostAlloc", ALLOC),
  ROW("cu64Memcpy2D", COPY),
  ROW("cu64Memcpy2DAsync", COPY_ASYNC),
  ROW("cu64Memcpy2DUnaligned", COPY),
  ROW("cu64Memcpy3D", COPY),
  ROW("cu64Memcpy3DAsync", COPY_ASYNC),
  COPY_ROW("cu64MemcpyAtoD", COPY, D2D),
  COPY_ROW("cu64MemcpyDtoA", COPY, D2D),
  COPY_ROW("cu64MemcpyDtoD", COPY, D2D),
  COPY_ROW("cu64MemcpyDtoDAsync", COPY_ASYNC, D2D),
  COPY_ROW("cu64MemcpyDtoH", COPY, D2H),
  COPY_ROW("cu64MemcpyDtoHAsync", COPY_ASYNC, D2H),
  COPY_ROW("cu64MemcpyHtoD", COPY, H2D),
  COPY_ROW("cu64MemcpyHtoDAsync", COPY_ASYNC, H2D),
  ROW("cu64MemsetD16", MEMSET),
  ROW("cu64MemsetD16Async", MEMSET_ASYNC),
  ROW("cu64MemsetD2D16", MEMSET),
  ROW("cu64MemsetD2D16Async", MEMSET_ASYNC),
  ROW("cu64MemsetD2D32", MEMSET),
  ROW("cu64MemsetD2D32Async", MEMSET_ASYNC),
  ROW("cu64MemsetD2D8", MEMSET),
  ROW("cu64MemsetD2D8Async", MEMSET_ASYNC),
  ROW("cu64MemsetD32", MEMSET),
  ROW("cu64MemsetD32Async", MEMSET_ASYNC),
  ROW("cu64MemsetD8", MEMSET),
  ROW("cu64MemsetD8Async", MEMSET_ASYNC),
  ROW("cuArrayDestroy", FREE),
  ROW("cuBinaryFree", IGNORED),
  ROW("cuCtxDestroy", LIFECYCLE),
  ROW("cuCtxDetach", LIFECYCLE),
  ROW("cuCtxResetPersistingL2Cache", LIFECYCLE),
  ROW("cuCtxSynchronize", SYNC_DEVICE),
  ROW("cuD3D10RegisterResource", IGNORED),
  ROW("cuD3D10UnmapResources", IGNORED),
  ROW("cuD3D10UnregisterResource", IGNORED),
  ROW("cuD3D9RegisterResource", IGNORED),
  ROW("cuD3D9RegisterVertexBuffer", IGNORED),
  ROW("cuD3D9UnmapResources", IGNORED),
  ROW("cuD3D9UnmapVertexBuffer", IGNORED),
  ROW("cuD3D9UnregisterResource", IGNORED),
  ROW("cuD3D9UnregisterVertexBuffer", IGNORED),
  ROW("cuDestroyExternalMemory", LIFECYCLE),
  ROW("cuDestroyExternalSemaphore", IGNORED),
  ROW("cuDeviceGraphMemTrim", LIFECYCLE),
  ROW("cuDevicePrimaryCtxRelease", LIFECYCLE),
  ROW("cuDevicePrimaryCtxReset", LIFECYCLE),
  ROW("cuDeviceRegisterAsyncNotification", IGNORED),
  ROW("cuDeviceUnregisterAsyncNotification", IGNORED),
  ROW("cuEGLStreamConsumerReleaseFrame", IGNORED),
  ROW("cuEventDestroy", IGNORED),
  ROW("cuEventQuery", QUERY_EVENT),
  ROW("cuEventRecord", EVENT_RECORD),
  ROW("cuEventRecordWithFlags", EVENT_RECORD),
  ROW("cuEventSynchronize", SYNC_EVENT),
  ROW("cuExternalMemoryGetMappedBuffer", MAP),
  ROW("cuGLRegisterBufferObject", IGNORED),
  ROW("cuGLUnmapBufferObject", LIFECYCLE),
  ROW("cuGLUnmapBufferObjectAsync", LIFECYCLE),
  ROW("cuGLUnregisterBufferObject", LIFECYCLE),
  ROW("cuGraphAddMemAllocNode", IGNORED),
  ROW("cuGraphAddMemFreeNode", IGNORED),
  ROW("cuGraphAddMemcpyNode", IGNORED),
  ROW("cuGraphAddMemsetNode", IGNORED),
  ROW("cuGraphDestroy", LIFECYCLE),
  ROW("cuGraphDestroyNode", IGNORED),
  ROW("cuGraphExecDestroy", LIFECYCLE),
  ROW("cuGraphExecMemcpyNodeSetParams", IGNORED),
  ROW("cuGraphExecMemsetNodeSetParams", IGNORED),
  ROW("cuGraphLaunch", GRAPH_LAUNCH),
  ROW("cuGraphMemAllocNodeGetParams", IGNORED),
  ROW("cuGraphMemFreeNodeGetParams", IGNORED),
  ROW("cuGraphMemcpyNodeGetParams", IGNORED),
  ROW("cuGraphMemcpyNodeSetParams", IGNORED),
  ROW("cuGraphMemsetNodeGetParams", IGNORED),
  ROW("cuGraphMemsetNodeSetParams", IGNORED),
  ROW("cuGraphReleaseUserObject", IGNORED),
  ROW("cuGraphicsD3D10RegisterResource", IGNORED),
  ROW("cuGraphicsD3D11RegisterResource", IGNORED),
  ROW("cuGraphicsD3D9RegisterResource", IGNORED),
  ROW("cuGraphicsEGLRegisterImage", IGNORED),
  ROW("cuGraphicsGLRegisterBuffer", IGNORED),
  ROW("cuGraphicsGLRegisterImage", IGNORED),
  ROW("cuGraphicsResourceGetMappedPointer", MAP),
  ROW("cuGraphicsUnmapResources", LIFECYCLE),
  ROW("cuGraphicsUnregisterResource", LIFECYCLE),
  ROW("cuGraphicsVDPAURegisterOutputSurface", IGNORED),
  ROW("cuGraphicsVDPAURegisterVideoSurface", IGNORED),
  ROW("cuGreenCtxDestroy", LIFECYCLE),
  ROW("cuIpcCloseMemHandle", LIFECYCLE),
  ROW("cuIpcOpenMemHandle", MAP),
  ROW("cuLaunch", LAUNCH),
  ROW("cuLaunchCooperativeKernel", LAUNCH),
  ROW("cuLaunchCooperativeKernelMultiDevice", LAUNCH),
  ROW("cuLaunchGrid", LAUNCH),
  ROW("cuLaunchGridAsync", LAUNCH),
  ROW("cuLaunchHostFunc", HOST_FUNC),
  ROW("cuLaunchKernel", LAUNCH),
  ROW("cuLaunchKernelEx", LAUNCH),
  ROW("cuLibraryUnload", LIFECYCLE),
  ROW("cuLinkDestroy", IGNORED),
  ROW("cuLogsRegisterCallback", IGNORED),
  ROW("cuLogsUnregisterCallback", IGNORED),
  ROW("cuMemAddressFree", LIFECYCLE),
  ROW("cuMemAddressReserve", MAP),
  ROW("cuMemAlloc", ALLOC),
  ROW("cuMemAllocAsync", ALLOC),
  ROW("cuMemAllocFromPoolAsync", ALLOC),
  ROW("cuMemAllocHost", ALLOC),
  ROW("cuMemAllocManaged", ALLOC),
  ROW("cuMemAllocPitch", ALLOC),
  ROW("cuMemCreate", MAP),
  ROW("cuMemDiscardAndPrefetchBatchAsync", PREFETCH),
  ROW("cuMemFree", FREE),
  ROW("cuMemFreeAsync", FREE_ASYNC),
  ROW("cuMemFreeHost", FREE_HOST),
  ROW("cuMemGetAllocationGranularity", IGNORED),
  ROW("cuMemGetAllocationPropertiesFromHandle", IGNORED),
  ROW("cuMemHostAlloc", ALLOC),
  ROW("cuMemHostRegister", REGISTER),
  ROW("cuMemHostUnregister", UNREGISTER),
  ROW("cuMemImportFromShareableHandle", MAP),
  ROW("cuMemMap", MAP),
  ROW("cuMemPeerRegister", IGNORED),
  ROW("cuMemPeerUnregister", IGNORED),
  ROW("cuMemPoolCreate", MAP),
  ROW("cuMemPoolDestroy", LIFECYCLE),
  ROW("cuMemPoolImportFromShareableHandle", MAP),
  ROW("cuMemPoolImportPointer", MAP),
  ROW("cuMemPoolTrimTo", LIFECYCLE),
  ROW("cuMemPrefetchAsync", PREFETCH),
  ROW("cuMemPrefetchBatchAsync", PREFETCH),
  ROW("cuMemRelease", LIFECYCLE),
  ROW("cuMemRetainAllocationHandle", IGNORED),
  ROW("cuMemSetAccess", IGNORED),
  ROW("cuMemSetMemPool", IGNORED),
  ROW("cuMemUnmap", LIFECYCLE),
  ROW("cuMemcpy", COPY),
  ROW("cuMemcpy2D", COPY),
  ROW("cuMemcpy2DAsync", COPY_ASYNC),
  ROW("cuMemcpy2DUnaligned", COPY),
  ROW("cuMemcpy3D", COPY),
  ROW("cuMemcpy3DAsync", COPY_ASYNC),
  ROW("cuMemcpy3DBatchAsync", COPY_ASYNC),
  ROW("cuMemcpy3DPeer", COPY),
  ROW("cuMemcpy3DPeerAsync", COPY_ASYNC),
  ROW("cuMemcpyAsync", COPY_ASYNC),
  COPY_ROW("cuMemcpyAtoA", COPY, D2D),
  COPY_ROW("cuMemcpyAtoD", COPY, D2D),
  COPY_ROW("cuMemcpyAtoH", COPY, D2H),
  COPY_ROW("cuMemcpyAtoHAsync", COPY_ASYNC, D2H),
  ROW("cuMemcpyBatchAsync", COPY_ASYNC),
  COPY_ROW("cuMemcpyDtoA", COPY, D2D),
  COPY_ROW("cuMemcpyDtoD", COPY, D2D),
  COPY_ROW("cuMemcpyDtoDAsync", COPY_ASYNC, D2D),
  COPY_ROW("cuMemcpyDtoH", COPY, D2H),
  COPY_ROW("cuMemcpyDtoHAsync", COPY_ASYNC, D2H),
  COPY_ROW("cuMemcpyHtoA", COPY, H2D),
  COPY_ROW("cuMemcpyHtoAAsync", COPY_ASYNC, H2D),
  COPY_ROW("cuMemcpyHtoD", COPY, H2D),
  COPY_ROW("cuMemcpyHtoDAsync", COPY_ASYNC, H2D),
  COPY_ROW("cuMemcpyPeer", COPY, D2D),
  COPY_ROW("cuMemcpyPeerAsync", COPY_ASYNC, D2D),
  ROW("cuMemsetD16", MEMSET),
  ROW("cuMemsetD16Async", MEMSET_ASYNC),
  ROW("cuMemsetD2D16", MEMSET),
  ROW("cuMemsetD2D16Async", MEMSET_ASYNC),
  ROW("cuMemsetD2D32", MEMSET),
  ROW("cuMemsetD2D32Async", MEMSET_ASYNC),
  ROW("cuMemsetD2D8", MEMSET),
  ROW("cuMemsetD2D8Async", MEMSET_ASYNC),
  ROW("cuMemsetD32", MEMSET),
  ROW("cuMemsetD32Async", MEMSET_ASYNC),
  ROW("cuMemsetD8", MEMSET),
  ROW("cuMemsetD8Async", MEMSET_ASYNC),
  ROW("cuMipmappedArrayDestroy", FREE),
  ROW("cuModuleUnload", LIFECYCLE),
  ROW("cuMultiKernelCooperativeDomainDestroy", IGNORED),
  ROW("cuNNSetAllocator", IGNORED),
  ROW("cuProfilerStart", PROFILER_START),
  ROW("cuProfilerStop", PROFILER_STOP),
  ROW("cuSemaphoreDestroy", IGNORED),
  ROW("cuStreamAddCallback", HOST_FUNC),
  ROW("cuStreamBeginCapture", CAPTURE),
  ROW("cuStreamBeginCaptureToGraph", CAPTURE),
  ROW("cuStreamCreateForCaptureToCig", IGNORED),
  ROW("cuStreamDestroy", IGNORED),
  ROW("cuStreamEndCapture", CAPTURE),
  ROW("cuStreamGetCaptureInfo", CAPTURE),
  ROW("cuStreamIsCapturing", CAPTURE),
  ROW("cuStreamQuery", QUERY_STREAM),
  ROW("cuStreamSynchronize", SYNC_STREAM),
  ROW("cuStreamUpdateCaptureDependencies", IGNORED),
  ROW("cuStreamWaitEvent", EVENT_RECORD),
  ROW("cuSurfObjectDestroy", IGNORED),
  ROW("cuSurfRefDestroy", IGNORED),
  ROW("cuTexObjectDestroy", IGNORED),
  ROW("cuTexRefDestroy", IGNORED),
  ROW("cuThreadExchangeStreamCaptureMode", IGNORED),
  ROW("cuUserObjectRelease", IGNORED),
  ROW("cudaCtxResetPersistingL2Cache", LIFECYCLE),
  ROW("cudaD3D10RegisterResource", IGNORED),
  ROW("cudaD3D10UnmapResources", IGNORED),
  ROW("cudaD3D10UnregisterResource", IGNORED),
  ROW("cudaD3D9RegisterResource", IGNORED),
  ROW("cudaD3D9RegisterVertexBuffer", IGNORED),
  ROW("cudaD3D9UnmapResources", IGNORED),
  ROW("cudaD3D9UnmapVertexBuffer", IGNORED),
  ROW("cudaD3D9UnregisterResource", IGNORED),
  ROW("cudaD3D9UnregisterVertexBuffer", IGNORED),
  ROW("cudaDestroyExternalMemory", LIFECYCLE),
  ROW("cudaDestroyExternalSemaphore", IGNORED),
  ROW("cudaDestroySurfaceObject", IGNORED),
  ROW("cudaDestroyTextureObject", IGNORED),
  ROW("cudaDeviceGraphMemTrim", LIFECYCLE),
  ROW("cudaDeviceRegisterAsyncNotification", IGNORED),
  ROW("cudaDeviceReset", LIFECYCLE),
  ROW("cudaDeviceSynchronize", SYNC_DEVICE),
  ROW("cudaDeviceUnregisterAsyncNotification", IGNORED),
  ROW("cudaEGLStreamConsumerReleaseFrame", IGNORED),
  ROW("cudaEventDestroy", IGNORED),
  ROW("cudaEventQuery", QUERY_EVENT),
  ROW("cudaEventRecord", EVENT_RECORD),
  ROW("cudaEventRecordWithFlags", EVENT_RECORD),
  ROW("cudaEventSynchronize", SYNC_EVENT),
  ROW("cudaExternalMemoryGetMappedBuffer", MAP),
  ROW("cudaFree", FREE),
  ROW("cudaFreeArray", FREE),
  ROW("cudaFreeAsync", FREE_ASYNC),
  ROW("cudaFreeHost", FREE_HOST),
  ROW("cudaFreeMipmappedArray", FREE),
  ROW("cudaGLRegisterBufferObject", IGNORED),
  ROW("cudaGLUnmapBufferObject", LIFECYCLE),
  ROW("cudaGLUnmapBufferObjectAsync", LIFECYCLE),
  ROW("cudaGLUnregisterBufferObject", LIFECYCLE),
  ROW("cudaGraphAddMemAllocNode", IGNORED),
  ROW("cudaGraphAddMemFreeNode", IGNORED),
  ROW("cudaGraphAddMemcpyNode", IGNORED),
  ROW("cudaGraphAddMemcpyNode1D", IGNORED),
  ROW("cudaGraphAddMemcpyNodeFromSymbol", IGNORED),
  ROW("cudaGraphAddMemcpyNodeToSymbol", IGNORED),
  ROW("cudaGraphAddMemsetNode", IGNORED),
  ROW("cudaGraphDestroy", LIFECYCLE),
  ROW("cudaGraphDestroyNode", IGNORED),
  ROW("cudaGraphExecDestroy", LIFECYCLE),
  ROW("cudaGraphExecMemcpyNodeSetParams", IGNORED),
  ROW("cudaGraphExecMemcpyNodeSetParams1D", IGNORED),
  ROW("cudaGraphExecMemcpyNodeSetParamsFromSymbol", IGNORED),
  ROW("cudaGraphExecMemcpyNodeSetParamsToSymbol", IGNORED),
  ROW("cudaGraphExecMemsetNodeSetParams", IGNORED),
  ROW("cudaGraphLaunch", GRAPH_LAUNCH),
  ROW("cudaGraphMemAllocNodeGetParams", IGNORED),
  ROW("cudaGraphMemFreeNodeGetParams", IGNORED),
  ROW("cudaGraphMemcpyNodeGetParams", IGNORED),
  ROW("cudaGraphMemcpyNodeSetParams", IGNORED),
  ROW("cudaGraphMemcpyNodeSetParams1D", IGNORED),
  ROW("cudaGraphMemcpyNodeSetParamsFromSymbol", IGNORED),
  ROW("cudaGraphMemcpyNodeSetParamsToSymbol", IGNORED),
  ROW("cudaGraphMemsetNodeGetParams", IGNORED),
  ROW("cudaGraphMemsetNodeSetParams", IGNORED),
  ROW("cudaGraphReleaseUserObject", IGNORED),
  ROW("cudaGraphicsD3D10RegisterResource", IGNORED),
  ROW("cudaGraphicsD3D11RegisterResource", IGNORED),
  ROW("cudaGraphicsD3D9RegisterResource", IGNORED),
  ROW("cudaGraphicsEGLRegisterImage", IGNORED),
  ROW("cudaGraphicsGLRegisterBuffer", IGNORED),
  ROW("cudaGraphicsGLRegisterImage", IGNORED),
  ROW("cudaGraphicsResourceGetMappedPointer", MAP),
  ROW("cudaGraphicsUnmapResources", LIFECYCLE),
  ROW("cudaGraphicsUnregisterResource", LIFECYCLE),
  ROW("cudaGraphicsVDPAURegisterOutputSurface", IGNORED),
  ROW("cudaGraphicsVDPAURegisterVideoSurface", IGNORED),
  ROW("cudaHostAlloc", ALLOC),
  ROW("cudaHostRegister", REGISTER),
  ROW("cudaHostUnregister", UNREGISTER),
  ROW("cudaIpcCloseMemHandle", LIFECYCLE),
  ROW("cudaIpcOpenMemHandle", MAP),
  ROW("cudaLaunch", LAUNCH),
  ROW("cudaLaunchCooperativeKernel", LAUNCH),
  ROW("cudaLaunchCooperativeKernelMultiDevice", LAUNCH),
  ROW("cudaLaunchHostFunc", HOST_FUNC),
  ROW("cudaLaunchKernel", LAUNCH),
  ROW("cudaLaunchKernelExC", LAUNCH),
  ROW("cudaLibraryUnload", LIFECYCLE),
  ROW("cudaLogsRegisterCallback", IGNORED),
  ROW("cudaLogsUnregisterCallback", IGNORED),
  ROW("cudaMalloc", ALLOC),
  ROW("cudaMalloc3D", ALLOC),
  ROW("cudaMalloc3DArray", ALLOC),
  ROW("cudaMallocArray", ALLOC),
  ROW("cudaMallocAsync", ALLOC),
  ROW("cudaMallocFromPoolAsync", ALLOC),
  ROW("cudaMallocHost", ALLOC),
  ROW("cudaMallocManaged", ALLOC),
  ROW("cudaMallocMipmappedArray", ALLOC),
  ROW("cudaMallocPitch", ALLOC),
  ROW("cudaMemDiscardAndPrefetchBatchAsync", PREFETCH),
  ROW("cudaMemPoolCreate", MAP),
  ROW("cudaMemPoolDestroy", LIFECYCLE),
  ROW("cudaMemPoolImportFromShareableHandle", MAP),
  ROW("cudaMemPoolImportPointer", MAP),
  ROW("cudaMemPoolTrimTo", LIFECYCLE),
  ROW("cudaMemPrefetchAsync", PREFETCH),
  ROW("cudaMemPrefetchBatchAsync", PREFETCH),
  ROW("cudaMemSetMemPool", IGNORED),
  ROW("cudaMemcpy", COPY),
  ROW("cudaMemcpy2D", COPY),
  COPY_ROW("cudaMemcpy2DArrayToArray", COPY, D2D),
  ROW("cudaMemcpy2DAsync", COPY_ASYNC),
  ROW("cudaMemcpy2DFromArray", COPY),
  ROW("cudaMemcpy2DFromArrayAsync", COPY_ASYNC),
  ROW("cudaMemcpy2DToArray", COPY),
  ROW("cudaMemcpy2DToArrayAsync", COPY_ASYNC),
  ROW("cudaMemcpy3D", COPY),
  ROW("cudaMemcpy3DAsync", COPY_ASYNC),
  ROW("cudaMemcpy3DBatchAsync", COPY_ASYNC),
  COPY_ROW("cudaMemcpy3DPeer", COPY, D2D),
  COPY_ROW("cudaMemcpy3DPeerAsync", COPY_ASYNC, D2D),
  COPY_ROW("cudaMemcpyArrayToArray", COPY, D2D),
  ROW("cudaMemcpyAsync", COPY_ASYNC),
  ROW("cudaMemcpyBatchAsync", COPY_ASYNC),
  ROW("cudaMemcpyFromArray", COPY),
  ROW("cudaMemcpyFromArrayAsync", COPY_ASYNC),
  COPY_ROW("cudaMemcpyFromSymbol", COPY, D2H),
  COPY_ROW("cudaMemcpyFromSymbolAsync", COPY_ASYNC, D2H),
  COPY_ROW("cudaMemcpyPeer", COPY, D2D),
  COPY_ROW("cudaMemcpyPeerAsync", COPY_ASYNC, D2D),
  ROW("cudaMemcpyToArray", COPY),
  ROW("cudaMemcpyToArrayAsync", COPY_ASYNC),
  COPY_ROW("cudaMemcpyToSymbol", COPY, H2D),
  COPY_ROW("cudaMemcpyToSymbolAsync", COPY_ASYNC, H2D),
  ROW("cudaMemset", MEMSET),
  ROW("cudaMemset2D", MEMSET),
  ROW("cudaMemset2DAsync", MEMSET_ASYNC),
  ROW("cudaMemset3D", MEMSET),
  ROW("cudaMemset3DAsync", MEMSET_ASYNC),
  ROW("cudaMemsetAsync", MEMSET_ASYNC),
  ROW("cudaPeerRegister", IGNORED),
  ROW("cudaPeerUnregister", IGNORED),
  ROW("cudaProfilerStart", PROFILER_START),
  ROW("cudaProfilerStop", PROFILER_STOP),
  ROW("cudaStreamAddCallback", HOST_FUNC),
  ROW("cudaStreamBeginCapture", CAPTURE),
  ROW("cudaStreamBeginCaptureToGraph", CAPTURE),
  ROW("cudaStreamDestroy", IGNORED),
  ROW("cudaStreamEndCapture", CAPTURE),
  ROW("cudaStreamGetCaptureInfo", CAPTURE),
  ROW("cudaStreamIsCapturing", CAPTURE),
  ROW("cudaStreamQuery", QUERY_STREAM),
  ROW("cudaStreamSynchronize", SYNC_STREAM),
  ROW("cudaStreamUpdateCaptureDependencies", IGNORED),
  ROW("cudaStreamWaitEvent", EVENT_RECORD),
  ROW("cudaThreadExchangeStreamCaptureMode", IGNORED),
  ROW("cudaThreadExit", LIFECYCLE),
  ROW("cudaThreadSynchronize", SYNC_DEVICE),
  ROW("cudaUserObjectRelease", IGNORED),
};
#undef ROW
#undef COPY_ROW

static const char *const op_names[SC_OP_COUNT] = {
  [SC_OP_NONE] = "none",
  [SC_OP_SYNC_STREAM] = "sync-stream",
  [SC_OP_SYNC_EVENT] = "sync-event",
  [SC_OP_SYNC_DEVICE] = "sync-device",
  [SC_OP_COPY] = "copy",
  [SC_OP_COPY_ASYNC] = "copy-async",
  [SC_OP_MEMSET] = "memset",
  [SC_OP_MEMSET_ASYNC] = "memset-async",
  [SC_OP_QUERY_STREAM] = "query-stream",
  [SC_OP_QUERY_EVENT] = "query-event",
  [SC_OP_FREE] = "free",
  [SC_OP_FREE_HOST] = "free-host",
  [SC_OP_UNREGISTER] = "unregister",
  [SC_OP_FREE_ASYNC] = "free-async",
  [SC_OP_ALLOC] = "alloc",
  [SC_OP_REGISTER] = "register",
  [SC_OP_LAUNCH] = "launch",
  [SC_OP_GRAPH_LAUNCH] = "graph-launch",
  [SC_OP_HOST_FUNC] = "host-func",
  [SC_OP_PREFETCH] = "prefetch",
  [SC_OP_LIFECYCLE] = "lifecycle",
  [SC_OP_CAPTURE] = "capture",
  [SC_OP_MAP] = "map",
  [SC_OP_EVENT_RECORD] = "event-record",
  [SC_OP_IGNORED] = "ignored",
  [SC_OP_PROFILER_START] = "profiler-start",
  [SC_OP_PROFILER_STOP] = "profiler-stop",
};

const char *sc_op_name(enum sc_op op) {
  return (unsigned)op < SC_COUNTOF(op_names) && op_names[op] ? op_names[op] : "unknown";
}

/* Length of the suffix that ends the first n bytes of name: "_ptsz", "_ptds" or "_v" and digits; 0 if none. */
static size_t suffix_length(const char *name, size_t n, bool *per_thread) {
  size_t digits = 0;

  if (n > 5 && (memcmp(name + n - 5, "_ptsz", 5) == 0 || memcmp(name + n - 5, "_ptds", 5) == 0)) {
    *per_thread = true;
    return 5;
  }
  while (digits < n && name[n - 1 - digits] >= '0' && name[n - 1 - digits] <= '9')
    digits++;
  if (digits > 0 && n > digits + 2 && memcmp(name + n - digits - 2, "_v", 2) == 0)
    return digits + 2;
  return 0;
}

void sc_call_parse_name(const char *name, struct sc_call_name *out) {
  size_t n = strlen(name), cut;
  bool per_thread = false;

  while ((cut = suffix_length(name, n, &per_thread)) > 0)
    n -= cut;
  if (n >= sizeof(out->base)) /* no CUDA name is this long: it will not be found, which is right */
    n = sizeof(out->base) - 1;
  memcpy(out->base, name, n);
  out->base[n] = '\0';
  out->per_thread = per_thread;
}

static const struct call *find(const char *name) {
  struct sc_call_name parsed;
  size_t low = 0, high = SC_COUNTOF(calls);

  sc_call_parse_name(name, &parsed);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(parsed.base, calls[middle].base);

    if (order == 0)
      return &calls[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

enum sc_op sc_call_op(const char *name) {
  const struct call *call = find(name);

  return call ? (enum sc_op)call->op : SC_OP_NONE;
}

int sc_call_direction(const char *name) {
  const struct call *call = find(name);

  return call ? call->direction : SC_DIRECTION_NONE;
}

bool sc_call_needs_class(const char *name) {
  static const char *const words[] = {"memcpy",   "synchronize", "query",    "free",        "alloc",   "register",
                                      "unregister", "unload",    "destroy",  "memset",      "launch",  "hostfunc",
                                      "addcallback", "reset",    "trim",     "unmap",       "release", "prefetch",
                                      "capture",  "ipcclose"};

  for (size_t i = 0; i < SC_COUNTOF(words); i++)
    if (strcasestr(name, words[i]))
      return true;
  return false;
}
