/* SPDX-License-Identifier: Apache-2.0
 * The runtime's memory: allocations, copies, fills, symbols. */
#include <string.h>

#include "rt.h"

/* ---- allocations ---- */

static int out_pointer(void **pointer, CUdeviceptr got, int error)
{
  if (error == 0)
    *pointer = (void *)(uintptr_t)got;
  return error;
}

static int allocate(void **pointer, size_t bytes)
{
  CUdeviceptr got = 0;

  if (pointer == NULL)
    return cudaErrorInvalidValue;
  if (bytes == 0) { /* the runtime takes 0, the driver does not */
    *pointer = NULL;
    return 0;
  }
  int error = (int)cuMemAlloc_v2(&got, bytes);
  return out_pointer(pointer, got, error);
}
RUNTIME(cudaMalloc, v3020, (void **devPtr, size_t size), (devPtr, size), allocate(devPtr, size))

static int allocate_managed(void **pointer, size_t bytes, unsigned flags)
{
  CUdeviceptr got = 0;

  if (pointer == NULL)
    return cudaErrorInvalidValue;
  int error = (int)cuMemAllocManaged(&got, bytes, flags);
  return out_pointer(pointer, got, error);
}
RUNTIME(cudaMallocManaged, v6000, (void **devPtr, size_t size, unsigned flags), (devPtr, size, flags),
        allocate_managed(devPtr, size, flags))

static int allocate_pitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
  CUdeviceptr got = 0;

  if (pointer == NULL || pitch == NULL)
    return cudaErrorInvalidValue;
  int error = (int)cuMemAllocPitch_v2(&got, pitch, width, height, 4);
  return out_pointer(pointer, got, error);
}
RUNTIME(cudaMallocPitch, v3020, (void **devPtr, size_t *pitch, size_t width, size_t height),
        (devPtr, pitch, width, height), allocate_pitch(devPtr, pitch, width, height))

RUNTIME(cudaMallocHost, v3020, (void **ptr, size_t size), (ptr, size), cuMemHostAlloc(ptr, size, 0))
RUNTIME(cudaHostAlloc, v3020, (void **pHost, size_t size, unsigned flags), (pHost, size, flags),
        cuMemHostAlloc(pHost, size, flags))
RUNTIME(cudaHostGetDevicePointer, v3020, (void **pDevice, void *pHost, unsigned flags), (pDevice, pHost, flags),
        cuMemHostGetDevicePointer_v2((CUdeviceptr *)(void *)pDevice, pHost, flags))
RUNTIME(cudaHostGetFlags, v3020, (unsigned *pFlags, void *pHost), (pFlags, pHost), cuMemHostGetFlags(pFlags, pHost))
RUNTIME(cudaHostRegister, v4000, (void *ptr, size_t size, unsigned flags), (ptr, size, flags),
        cuMemHostRegister_v2(ptr, size, flags))
RUNTIME(cudaHostUnregister, v4000, (void *ptr), (ptr), cuMemHostUnregister(ptr))
RUNTIME(cudaFree, v3020, (void *devPtr), (devPtr), devPtr == NULL ? 0 : cuMemFree_v2(DEVICE_POINTER(devPtr)))
RUNTIME(cudaFreeHost, v3020, (void *ptr), (ptr), ptr == NULL ? 0 : cuMemFreeHost(ptr))
RUNTIME(cudaMemGetInfo, v3020, (size_t * available, size_t *total), (available, total),
        cuMemGetInfo_v2(available, total))

static int allocate_async(void **pointer, size_t bytes, cudaStream_t stream, bool per_thread)
{
  CUdeviceptr got = 0;

  if (pointer == NULL)
    return cudaErrorInvalidValue;
  if (bytes == 0) {
    *pointer = NULL;
    return 0;
  }
  int error = (int)TWIN(cuMemAllocAsync, _ptsz)(&got, bytes, stream);
  return out_pointer(pointer, got, error);
}
RUNTIME_PT(cudaMallocAsync, _ptsz, v11020, v11020, (void **devPtr, size_t size, cudaStream_t hStream),
           (devPtr, size, hStream), allocate_async(devPtr, size, hStream, per_thread))
RUNTIME_PT(cudaFreeAsync, _ptsz, v11020, v11020, (void *devPtr, cudaStream_t hStream), (devPtr, hStream),
           devPtr == NULL ? 0 : TWIN(cuMemFreeAsync, _ptsz)(DEVICE_POINTER(devPtr), hStream))

/* Unknown memory is not an error here: it is "unregistered". */
static int pointer_attributes(struct cudaPointerAttributes *out, const void *pointer)
{
  CUmemorytype type = 0;
  CUdeviceptr device = 0;
  void *host = NULL;
  int ordinal = 0;
  unsigned managed = 0;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void *values[] = {&type, &device, &host, &ordinal, &managed};

  if (out == NULL)
    return cudaErrorInvalidValue;
  int error = (int)cuPointerGetAttributes(5, wanted, values, DEVICE_POINTER(pointer));
  if (error != 0)
    return error;
  memset(out, 0, sizeof *out);
  out->type = managed                        ? cudaMemoryTypeManaged
              : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
              : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                             : cudaMemoryTypeUnregistered;
  out->device = ordinal;
  out->devicePointer = (void *)(uintptr_t)device;
  out->hostPointer = out->type == cudaMemoryTypeUnregistered ? (void *)(uintptr_t)pointer : host;
  return 0;
}
RUNTIME(cudaPointerGetAttributes, v4000, (struct cudaPointerAttributes * attributes, const void *ptr),
        (attributes, ptr), pointer_attributes(attributes, ptr))

/* ---- copies ---- */

static int copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, bool per_thread)
{
  switch (kind) {
  case cudaMemcpyHostToDevice: return (int)TWIN(cuMemcpyHtoD_v2, _ptds)(DEVICE_POINTER(to), from, bytes);
  case cudaMemcpyDeviceToHost: return (int)TWIN(cuMemcpyDtoH_v2, _ptds)(to, DEVICE_POINTER(from), bytes);
  case cudaMemcpyDeviceToDevice:
    return (int)TWIN(cuMemcpyDtoD_v2, _ptds)(DEVICE_POINTER(to), DEVICE_POINTER(from), bytes);
  case cudaMemcpyHostToHost:
  case cudaMemcpyDefault: return (int)TWIN(cuMemcpy, _ptds)(DEVICE_POINTER(to), DEVICE_POINTER(from), bytes);
  default: return cudaErrorInvalidMemcpyDirection;
  }
}
RUNTIME_PT(cudaMemcpy, _ptds, v3020, v7000, (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
           (dst, src, count, kind), copy(dst, src, count, kind, per_thread))

static int copy_async(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream,
                      bool per_thread)
{
  switch (kind) {
  case cudaMemcpyHostToDevice: return (int)TWIN(cuMemcpyHtoDAsync_v2, _ptsz)(DEVICE_POINTER(to), from, bytes, stream);
  case cudaMemcpyDeviceToHost: return (int)TWIN(cuMemcpyDtoHAsync_v2, _ptsz)(to, DEVICE_POINTER(from), bytes, stream);
  case cudaMemcpyDeviceToDevice:
    return (int)TWIN(cuMemcpyDtoDAsync_v2, _ptsz)(DEVICE_POINTER(to), DEVICE_POINTER(from), bytes, stream);
  case cudaMemcpyHostToHost:
  case cudaMemcpyDefault:
    return (int)TWIN(cuMemcpyAsync, _ptsz)(DEVICE_POINTER(to), DEVICE_POINTER(from), bytes, stream);
  default: return cudaErrorInvalidMemcpyDirection;
  }
}
RUNTIME_PT(cudaMemcpyAsync, _ptsz, v3020, v7000,
           (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream),
           (dst, src, count, kind, stream), copy_async(dst, src, count, kind, stream, per_thread))

RUNTIME(cudaMemcpyPeer, v4000, (void *dst, int dstDevice, const void *src, int srcDevice, size_t count),
        (dst, dstDevice, src, srcDevice, count),
        cuMemcpyPeer(DEVICE_POINTER(dst), NULL, DEVICE_POINTER(src), NULL, count))
RUNTIME(cudaMemcpyPeerAsync, v4000,
        (void *dst, int dstDevice, const void *src, int srcDevice, size_t count, cudaStream_t stream),
        (dst, dstDevice, src, srcDevice, count, stream),
        cuMemcpyPeerAsync(DEVICE_POINTER(dst), NULL, DEVICE_POINTER(src), NULL, count, stream))

static bool kind_sides(enum cudaMemcpyKind kind, CUmemorytype *to, CUmemorytype *from)
{
  switch (kind) {
  case cudaMemcpyHostToHost:
    *to = CU_MEMORYTYPE_HOST;
    *from = CU_MEMORYTYPE_HOST;
    return true;
  case cudaMemcpyHostToDevice:
    *to = CU_MEMORYTYPE_DEVICE;
    *from = CU_MEMORYTYPE_HOST;
    return true;
  case cudaMemcpyDeviceToHost:
    *to = CU_MEMORYTYPE_HOST;
    *from = CU_MEMORYTYPE_DEVICE;
    return true;
  case cudaMemcpyDeviceToDevice:
    *to = CU_MEMORYTYPE_DEVICE;
    *from = CU_MEMORYTYPE_DEVICE;
    return true;
  case cudaMemcpyDefault:
    *to = CU_MEMORYTYPE_UNIFIED;
    *from = CU_MEMORYTYPE_UNIFIED;
    return true;
  default: return false;
  }
}

static int shape_2d(CUDA_MEMCPY2D *shape, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                    size_t height, enum cudaMemcpyKind kind)
{
  CUmemorytype to_type, from_type;

  if (!kind_sides(kind, &to_type, &from_type))
    return cudaErrorInvalidMemcpyDirection;
  if (width > to_pitch || width > from_pitch)
    return cudaErrorInvalidPitchValue;
  *shape = (CUDA_MEMCPY2D){.srcMemoryType = from_type,
                           .srcHost = from,
                           .srcDevice = DEVICE_POINTER(from),
                           .srcPitch = from_pitch,
                           .dstMemoryType = to_type,
                           .dstHost = to,
                           .dstDevice = DEVICE_POINTER(to),
                           .dstPitch = to_pitch,
                           .WidthInBytes = width,
                           .Height = height};
  return 0;
}

static int copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                   enum cudaMemcpyKind kind, bool per_thread)
{
  CUDA_MEMCPY2D shape;
  int error = shape_2d(&shape, to, to_pitch, from, from_pitch, width, height, kind);

  return error != 0 ? error : (int)TWIN(cuMemcpy2DUnaligned_v2, _ptds)(&shape);
}
RUNTIME_PT(cudaMemcpy2D, _ptds, v3020, v7000,
           (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
            enum cudaMemcpyKind kind),
           (dst, dpitch, src, spitch, width, height, kind),
           copy_2d(dst, dpitch, src, spitch, width, height, kind, per_thread))

static int copy_2d_async(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind, cudaStream_t stream, bool per_thread)
{
  CUDA_MEMCPY2D shape;
  int error = shape_2d(&shape, to, to_pitch, from, from_pitch, width, height, kind);

  return error != 0 ? error : (int)TWIN(cuMemcpy2DAsync_v2, _ptsz)(&shape, stream);
}
RUNTIME_PT(cudaMemcpy2DAsync, _ptsz, v3020, v7000,
           (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
            enum cudaMemcpyKind kind, cudaStream_t stream),
           (dst, dpitch, src, spitch, width, height, kind, stream),
           copy_2d_async(dst, dpitch, src, spitch, width, height, kind, stream, per_thread))

/* ---- symbols ---- */

static int symbol_place(const void *symbol, size_t offset, size_t count, char **place)
{
  void *base;
  size_t bytes;
  int error = rt_symbol(symbol, &base, &bytes);

  if (error != 0)
    return error;
  if (offset > bytes || count > bytes - offset)
    return cudaErrorInvalidValue;
  *place = (char *)base + offset;
  return 0;
}

static int copy_to_symbol(const void *symbol, const void *from, size_t count, size_t offset, enum cudaMemcpyKind kind,
                          bool per_thread)
{
  char *place;
  int error = symbol_place(symbol, offset, count, &place);

  return error != 0 ? error : copy(place, from, count, kind, per_thread);
}
RUNTIME_PT(cudaMemcpyToSymbol, _ptds, v3020, v7000,
           (const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind),
           (symbol, src, count, offset, kind), copy_to_symbol(symbol, src, count, offset, kind, per_thread))

static int copy_from_symbol(void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                            bool per_thread)
{
  char *place;
  int error = symbol_place(symbol, offset, count, &place);

  return error != 0 ? error : copy(to, place, count, kind, per_thread);
}
RUNTIME_PT(cudaMemcpyFromSymbol, _ptds, v3020, v7000,
           (void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
           (dst, symbol, count, offset, kind), copy_from_symbol(dst, symbol, count, offset, kind, per_thread))

static int copy_to_symbol_async(const void *symbol, const void *from, size_t count, size_t offset,
                                enum cudaMemcpyKind kind, cudaStream_t stream, bool per_thread)
{
  char *place;
  int error = symbol_place(symbol, offset, count, &place);

  return error != 0 ? error : copy_async(place, from, count, kind, stream, per_thread);
}
RUNTIME_PT(cudaMemcpyToSymbolAsync, _ptsz, v3020, v7000,
           (const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind,
            cudaStream_t stream),
           (symbol, src, count, offset, kind, stream),
           copy_to_symbol_async(symbol, src, count, offset, kind, stream, per_thread))

static int copy_from_symbol_async(void *to, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                                  cudaStream_t stream, bool per_thread)
{
  char *place;
  int error = symbol_place(symbol, offset, count, &place);

  return error != 0 ? error : copy_async(to, place, count, kind, stream, per_thread);
}
RUNTIME_PT(cudaMemcpyFromSymbolAsync, _ptsz, v3020, v7000,
           (void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream),
           (dst, symbol, count, offset, kind, stream),
           copy_from_symbol_async(dst, symbol, count, offset, kind, stream, per_thread))

static int symbol_address(void **pointer, const void *symbol)
{
  size_t bytes;

  return pointer == NULL ? (int)cudaErrorInvalidValue : rt_symbol(symbol, pointer, &bytes);
}
RUNTIME(cudaGetSymbolAddress, v3020, (void **devPtr, const void *symbol), (devPtr, symbol),
        symbol_address(devPtr, symbol))

static int symbol_size(size_t *bytes, const void *symbol)
{
  void *pointer;

  return bytes == NULL ? (int)cudaErrorInvalidValue : rt_symbol(symbol, &pointer, bytes);
}
RUNTIME(cudaGetSymbolSize, v3020, (size_t * size, const void *symbol), (size, symbol), symbol_size(size, symbol))

/* ---- fills ---- */

RUNTIME_PT(cudaMemset, _ptds, v3020, v7000, (void *devPtr, int value, size_t count), (devPtr, value, count),
           TWIN(cuMemsetD8_v2, _ptds)(DEVICE_POINTER(devPtr), (unsigned char)value, count))
RUNTIME_PT(cudaMemsetAsync, _ptsz, v3020, v7000, (void *devPtr, int value, size_t count, cudaStream_t stream),
           (devPtr, value, count, stream),
           TWIN(cuMemsetD8Async, _ptsz)(DEVICE_POINTER(devPtr), (unsigned char)value, count, stream))
RUNTIME_PT(cudaMemset2D, _ptds, v3020, v7000, (void *devPtr, size_t pitch, int value, size_t width, size_t height),
           (devPtr, pitch, value, width, height),
           TWIN(cuMemsetD2D8_v2, _ptds)(DEVICE_POINTER(devPtr), pitch, (unsigned char)value, width, height))
RUNTIME_PT(cudaMemset2DAsync, _ptsz, v3020, v7000,
           (void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
           (devPtr, pitch, value, width, height, stream),
           TWIN(cuMemsetD2D8Async, _ptsz)(DEVICE_POINTER(devPtr), pitch, (unsigned char)value, width, height, stream))
