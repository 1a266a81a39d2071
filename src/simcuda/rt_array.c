/* SPDX-License-Identifier: Apache-2.0
 * The runtime's arrays, volumes, pools, batches and prefetches. */
#include "rt.h"

static size_t at_least_one(size_t value) { return value != 0 ? value : 1; }

/* ---- arrays ---- */

static int describe(CUDA_ARRAY3D_DESCRIPTOR *out, const struct cudaChannelFormatDesc *d, struct cudaExtent extent,
                    unsigned flags)
{
  const int bits[4] = {d->x, d->y, d->z, d->w};
  unsigned channels = 0;

  while (channels < 4 && bits[channels] != 0)
    if (bits[channels++] != d->x)
      return cudaErrorInvalidValue;
  *out = (CUDA_ARRAY3D_DESCRIPTOR){
      .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .NumChannels = channels, .Flags = flags};
  if (d->f == cudaChannelFormatKindFloat && (d->x == 16 || d->x == 32))
    out->Format = d->x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
  else if (d->f == cudaChannelFormatKindUnsigned && (d->x == 8 || d->x == 16 || d->x == 32))
    out->Format = d->x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
                  : d->x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                               : CU_AD_FORMAT_UNSIGNED_INT32;
  else if (d->f == cudaChannelFormatKindSigned && (d->x == 8 || d->x == 16 || d->x == 32))
    out->Format = d->x == 8    ? CU_AD_FORMAT_SIGNED_INT8
                  : d->x == 16 ? CU_AD_FORMAT_SIGNED_INT16
                               : CU_AD_FORMAT_SIGNED_INT32;
  else
    return cudaErrorInvalidValue;
  return 0;
}

static int allocate_array(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
                          unsigned flags)
{
  CUDA_ARRAY3D_DESCRIPTOR d;

  if (array == NULL || desc == NULL)
    return cudaErrorInvalidValue;
  int error = describe(&d, desc, extent, flags);
  return error != 0 ? error : (int)cuArray3DCreate_v2((CUarray *)(void *)array, &d);
}
RUNTIME(cudaMallocArray, v3020,
        (cudaArray_t * array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height, unsigned flags),
        (array, desc, width, height, flags), allocate_array(array, desc, (struct cudaExtent){width, height, 0}, flags))
RUNTIME(cudaMalloc3DArray, v3020,
        (cudaArray_t * array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags),
        (array, desc, extent, flags), allocate_array(array, desc, extent, flags))
RUNTIME(cudaFreeArray, v3020, (cudaArray_t array), (array), array == NULL ? 0 : cuArrayDestroy((CUarray)array))

static int allocate_mipmapped(cudaMipmappedArray_t *array, const struct cudaChannelFormatDesc *desc,
                              struct cudaExtent extent, unsigned levels, unsigned flags)
{
  CUDA_ARRAY3D_DESCRIPTOR d;

  if (array == NULL || desc == NULL)
    return cudaErrorInvalidValue;
  int error = describe(&d, desc, extent, flags);
  return error != 0 ? error : (int)cuMipmappedArrayCreate((CUmipmappedArray *)(void *)array, &d, levels);
}
RUNTIME(cudaMallocMipmappedArray, v5000,
        (cudaMipmappedArray_t * mipmappedArray, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
         unsigned numLevels, unsigned flags),
        (mipmappedArray, desc, extent, numLevels, flags),
        allocate_mipmapped(mipmappedArray, desc, extent, numLevels, flags))
RUNTIME(cudaFreeMipmappedArray, v5000, (cudaMipmappedArray_t mipmappedArray), (mipmappedArray),
        mipmappedArray == NULL ? 0 : cuMipmappedArrayDestroy((CUmipmappedArray)mipmappedArray))

SIMCUDA_EXPORT struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                                  enum cudaChannelFormatKind f)
{
  return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

/* ---- volumes ---- */

static int allocate_3d(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
  CUdeviceptr got;
  size_t pitch;

  if (out == NULL)
    return cudaErrorInvalidValue;
  int error = (int)cuMemAllocPitch_v2(&got, &pitch, extent.width, extent.height * extent.depth, 4);
  if (error == 0)
    *out = (struct cudaPitchedPtr){(void *)(uintptr_t)got, pitch, extent.width, extent.height};
  return error;
}
RUNTIME(cudaMalloc3D, v3020, (struct cudaPitchedPtr * pitchedDevPtr, struct cudaExtent extent), (pitchedDevPtr, extent),
        allocate_3d(pitchedDevPtr, extent))

static bool kind_sides(enum cudaMemcpyKind kind, CUmemorytype *to, CUmemorytype *from)
{
  if ((int)kind < 0 || kind > cudaMemcpyDefault)
    return false;
  *to = kind == cudaMemcpyDefault                                        ? CU_MEMORYTYPE_UNIFIED
        : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
                                                                         : CU_MEMORYTYPE_DEVICE;
  *from = kind == cudaMemcpyDefault                                        ? CU_MEMORYTYPE_UNIFIED
          : kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST
                                                                           : CU_MEMORYTYPE_DEVICE;
  return true;
}

/* Bytes of an array's element: the runtime gives positions and widths in elements when an array takes part. */
static int element_bytes(cudaArray_const_t array, size_t *bytes)
{
  static const size_t channel[] = {
      [CU_AD_FORMAT_UNSIGNED_INT8] = 1, [CU_AD_FORMAT_UNSIGNED_INT16] = 2, [CU_AD_FORMAT_UNSIGNED_INT32] = 4,
      [CU_AD_FORMAT_SIGNED_INT8] = 1,   [CU_AD_FORMAT_SIGNED_INT16] = 2,   [CU_AD_FORMAT_SIGNED_INT32] = 4,
      [CU_AD_FORMAT_HALF] = 2,          [CU_AD_FORMAT_FLOAT] = 4};
  CUDA_ARRAY3D_DESCRIPTOR d;
  int error = (int)cuArray3DGetDescriptor_v2(&d, (CUarray)(uintptr_t)array);

  if (error == 0)
    *bytes = channel[d.Format] * d.NumChannels;
  return error;
}

static int volume(CUDA_MEMCPY3D *out, const struct cudaMemcpy3DParms *p)
{
  CUmemorytype to, from;
  size_t unit = 1;
  int error = 0;

  if (p == NULL)
    return cudaErrorInvalidValue;
  if (!kind_sides(p->kind, &to, &from))
    return cudaErrorInvalidMemcpyDirection;
  if (p->srcArray != NULL || p->dstArray != NULL)
    error = element_bytes(p->srcArray != NULL ? p->srcArray : p->dstArray, &unit);
  if (error != 0)
    return error;
  *out = (CUDA_MEMCPY3D){.srcXInBytes = p->srcPos.x * (p->srcArray != NULL ? unit : 1),
                         .srcY = p->srcPos.y,
                         .srcZ = p->srcPos.z,
                         .srcMemoryType = p->srcArray != NULL ? CU_MEMORYTYPE_ARRAY : from,
                         .srcHost = p->srcPtr.ptr,
                         .srcDevice = DEVICE_POINTER(p->srcPtr.ptr),
                         .srcArray = (CUarray)p->srcArray,
                         .srcPitch = p->srcPtr.pitch,
                         .srcHeight = p->srcPtr.ysize,
                         .dstXInBytes = p->dstPos.x * (p->dstArray != NULL ? unit : 1),
                         .dstY = p->dstPos.y,
                         .dstZ = p->dstPos.z,
                         .dstMemoryType = p->dstArray != NULL ? CU_MEMORYTYPE_ARRAY : to,
                         .dstHost = p->dstPtr.ptr,
                         .dstDevice = DEVICE_POINTER(p->dstPtr.ptr),
                         .dstArray = (CUarray)p->dstArray,
                         .dstPitch = p->dstPtr.pitch,
                         .dstHeight = p->dstPtr.ysize,
                         .WidthInBytes = p->extent.width * unit,
                         .Height = p->extent.height,
                         .Depth = p->extent.depth};
  return 0;
}

static int copy_3d(const struct cudaMemcpy3DParms *p, bool per_thread)
{
  CUDA_MEMCPY3D v;
  int error = volume(&v, p);

  return error != 0 ? error : (int)TWIN(cuMemcpy3D_v2, _ptds)(&v);
}
RUNTIME_PT(cudaMemcpy3D, _ptds, v3020, v7000, (const struct cudaMemcpy3DParms *p), (p), copy_3d(p, per_thread))

static int copy_3d_async(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool per_thread)
{
  CUDA_MEMCPY3D v;
  int error = volume(&v, p);

  return error != 0 ? error : (int)TWIN(cuMemcpy3DAsync_v2, _ptsz)(&v, stream);
}
RUNTIME_PT(cudaMemcpy3DAsync, _ptsz, v3020, v7000, (const struct cudaMemcpy3DParms *p, cudaStream_t stream),
           (p, stream), copy_3d_async(p, stream, per_thread))

/* A slice at a time, unless the slices lie behind each other. */
static int fill_3d(struct cudaPitchedPtr to, int value, struct cudaExtent extent, cudaStream_t stream, bool async,
                   bool per_thread)
{
  bool dense = extent.height == to.ysize || extent.depth == 1;
  size_t height = dense ? extent.height * extent.depth : extent.height, slices = dense ? 1 : extent.depth;
  int error = 0;

  for (size_t slice = 0; slice < slices && error == 0; slice++) {
    CUdeviceptr at = DEVICE_POINTER(to.ptr) + slice * to.pitch * to.ysize;
    error = async
                ? (int)TWIN(cuMemsetD2D8Async, _ptsz)(at, to.pitch, (unsigned char)value, extent.width, height, stream)
                : (int)TWIN(cuMemsetD2D8_v2, _ptds)(at, to.pitch, (unsigned char)value, extent.width, height);
  }
  return error;
}
RUNTIME_PT(cudaMemset3D, _ptds, v3020, v7000,
           (struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent), (pitchedDevPtr, value, extent),
           fill_3d(pitchedDevPtr, value, extent, NULL, false, per_thread))
RUNTIME_PT(cudaMemset3DAsync, _ptsz, v3020, v7000,
           (struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent, cudaStream_t stream),
           (pitchedDevPtr, value, extent, stream), fill_3d(pitchedDevPtr, value, extent, stream, true, per_thread))

/* ---- areas of arrays ---- */

/* `linear` is the pointer's side; offsets into arrays are in bytes. */
static int array_shape(CUDA_MEMCPY2D *out, cudaArray_t to_array, cudaArray_const_t from_array, void *to,
                       size_t to_pitch, const void *from, size_t from_pitch, size_t to_x, size_t to_y, size_t from_x,
                       size_t from_y, size_t width, size_t height, enum cudaMemcpyKind kind)
{
  CUmemorytype to_type, from_type;

  if (!kind_sides(kind, &to_type, &from_type))
    return cudaErrorInvalidMemcpyDirection;
  *out = (CUDA_MEMCPY2D){.srcXInBytes = from_x,
                         .srcY = from_y,
                         .srcMemoryType = from_array != NULL ? CU_MEMORYTYPE_ARRAY : from_type,
                         .srcHost = from,
                         .srcDevice = DEVICE_POINTER(from),
                         .srcArray = (CUarray)(uintptr_t)from_array,
                         .srcPitch = from_pitch,
                         .dstXInBytes = to_x,
                         .dstY = to_y,
                         .dstMemoryType = to_array != NULL ? CU_MEMORYTYPE_ARRAY : to_type,
                         .dstHost = to,
                         .dstDevice = DEVICE_POINTER(to),
                         .dstArray = (CUarray)to_array,
                         .dstPitch = to_pitch,
                         .WidthInBytes = width,
                         .Height = at_least_one(height)};
  return 0;
}

static int copy_shape(int error, const CUDA_MEMCPY2D *shape, cudaStream_t stream, bool async, bool per_thread)
{
  if (error != 0)
    return error;
  return async ? (int)TWIN(cuMemcpy2DAsync_v2, _ptsz)(shape, stream) : (int)TWIN(cuMemcpy2DUnaligned_v2, _ptds)(shape);
}

static int to_array(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                    enum cudaMemcpyKind kind, cudaStream_t stream, bool async, bool per_thread)
{
  CUDA_MEMCPY2D shape;

  if (to == NULL)
    return cudaErrorInvalidValue;
  return copy_shape(array_shape(&shape, to, NULL, NULL, 0, from, pitch, x, y, 0, 0, width, height, kind), &shape,
                    stream, async, per_thread);
}
RUNTIME_PT(cudaMemcpy2DToArray, _ptds, v3020, v7000,
           (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width,
            size_t height, enum cudaMemcpyKind kind),
           (dst, wOffset, hOffset, src, spitch, width, height, kind),
           to_array(dst, wOffset, hOffset, src, spitch, width, height, kind, NULL, false, per_thread))
RUNTIME_PT(cudaMemcpy2DToArrayAsync, _ptsz, v3020, v7000,
           (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width,
            size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
           (dst, wOffset, hOffset, src, spitch, width, height, kind, stream),
           to_array(dst, wOffset, hOffset, src, spitch, width, height, kind, stream, true, per_thread))

static int from_array(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
                      enum cudaMemcpyKind kind, cudaStream_t stream, bool async, bool per_thread)
{
  CUDA_MEMCPY2D shape;

  if (from == NULL)
    return cudaErrorInvalidValue;
  return copy_shape(array_shape(&shape, NULL, from, to, pitch, NULL, 0, 0, 0, x, y, width, height, kind), &shape,
                    stream, async, per_thread);
}
RUNTIME_PT(cudaMemcpy2DFromArray, _ptds, v3020, v7000,
           (void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
            size_t height, enum cudaMemcpyKind kind),
           (dst, dpitch, src, wOffset, hOffset, width, height, kind),
           from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind, NULL, false, per_thread))
RUNTIME_PT(cudaMemcpy2DFromArrayAsync, _ptsz, v3020, v7000,
           (void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
            size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
           (dst, dpitch, src, wOffset, hOffset, width, height, kind, stream),
           from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind, stream, true, per_thread))

static int between_arrays(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                          size_t from_y, size_t width, size_t height, enum cudaMemcpyKind kind, bool per_thread)
{
  CUDA_MEMCPY2D shape;

  if (to == NULL || from == NULL)
    return cudaErrorInvalidValue;
  return copy_shape(array_shape(&shape, to, from, NULL, 0, NULL, 0, to_x, to_y, from_x, from_y, width, height, kind),
                    &shape, NULL, false, per_thread);
}
RUNTIME_PT(cudaMemcpy2DArrayToArray, _ptds, v3020, v7000,
           (cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,
            size_t hOffsetSrc, size_t width, size_t height, enum cudaMemcpyKind kind),
           (dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, width, height, kind),
           between_arrays(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, width, height, kind, per_thread))

/* ---- pools, batches, prefetches ---- */

RUNTIME(cudaDeviceGetDefaultMemPool, v11020, (cudaMemPool_t * memPool, int device), (memPool, device),
        cuDeviceGetDefaultMemPool(memPool, device))
RUNTIME(cudaDeviceGetMemPool, v11020, (cudaMemPool_t * memPool, int device), (memPool, device),
        cuDeviceGetMemPool(memPool, device))
RUNTIME(cudaDeviceSetMemPool, v11020, (int device, cudaMemPool_t memPool), (device, memPool),
        cuDeviceSetMemPool(device, memPool))
RUNTIME(cudaMemPoolDestroy, v11020, (cudaMemPool_t memPool), (memPool), cuMemPoolDestroy(memPool))
RUNTIME(cudaMemPoolTrimTo, v11020, (cudaMemPool_t memPool, size_t minBytesToKeep), (memPool, minBytesToKeep),
        cuMemPoolTrimTo(memPool, minBytesToKeep))
RUNTIME(cudaMemPoolSetAttribute, v11020, (cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value),
        (memPool, attr, value), cuMemPoolSetAttribute(memPool, (CUmemPool_attribute)attr, value))
RUNTIME(cudaMemPoolGetAttribute, v11020, (cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value),
        (memPool, attr, value), cuMemPoolGetAttribute(memPool, (CUmemPool_attribute)attr, value))

static int create_pool(cudaMemPool_t *pool, const struct cudaMemPoolProps *p)
{
  if (p == NULL)
    return cudaErrorInvalidValue;
  CUmemPoolProps properties = {.allocType = (CUmemAllocationType)p->allocType,
                               .handleTypes = (CUmemAllocationHandleType)p->handleTypes,
                               .location = {.type = (CUmemLocationType)p->location.type, .id = p->location.id},
                               .maxSize = p->maxSize};
  return (int)cuMemPoolCreate(pool, &properties);
}
RUNTIME(cudaMemPoolCreate, v11020, (cudaMemPool_t * memPool, const struct cudaMemPoolProps *poolProps),
        (memPool, poolProps), create_pool(memPool, poolProps))

static int allocate_from_pool(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream, bool per_thread)
{
  CUdeviceptr got;

  if (pointer == NULL)
    return cudaErrorInvalidValue;
  int error = (int)TWIN(cuMemAllocFromPoolAsync, _ptsz)(&got, bytes, pool, stream);
  if (error == 0)
    *pointer = (void *)(uintptr_t)got;
  return error;
}
RUNTIME_PT(cudaMallocFromPoolAsync, _ptsz, v11020, v11020,
           (void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream), (ptr, size, memPool, stream),
           allocate_from_pool(ptr, size, memPool, stream, per_thread))

#if CUDART_VERSION >= 13000
RUNTIME_PT(cudaMemcpyBatchAsync, _ptsz, v13000, v13000,
           (void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
            struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, cudaStream_t stream),
           (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, stream),
           TWIN(cuMemcpyBatchAsync_v2, _ptsz)((CUdeviceptr *)(uintptr_t)dsts, (CUdeviceptr *)(uintptr_t)srcs,
                                              (size_t *)(uintptr_t)sizes, count, (CUmemcpyAttributes *)(void *)attrs,
                                              attrsIdxs, numAttrs, stream))
#else
RUNTIME_PT(cudaMemcpyBatchAsync, _ptsz, v12080, v12080,
           (void **dsts, void **srcs, size_t *sizes, size_t count, struct cudaMemcpyAttributes *attrs,
            size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, cudaStream_t stream),
           (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, stream),
           TWIN(cuMemcpyBatchAsync, _ptsz)((CUdeviceptr *)(uintptr_t)dsts, (CUdeviceptr *)(uintptr_t)srcs, sizes, count,
                                           (CUmemcpyAttributes *)(void *)attrs, attrsIdxs, numAttrs, failIdx, stream))
#endif

static int prefetch(const void *pointer, size_t count, struct cudaMemLocation location, unsigned flags,
                    cudaStream_t stream, bool per_thread)
{
  CUmemLocation place = {.type = (CUmemLocationType)location.type, .id = location.id};

  return (int)TWIN(cuMemPrefetchAsync_v2, _ptsz)(DEVICE_POINTER(pointer), count, place, flags, stream);
}
#define PREFETCH_DECL \
  (const void *devPtr, size_t count, struct cudaMemLocation location, unsigned flags, cudaStream_t stream)
#define PREFETCH_ARGS (devPtr, count, location, flags, stream)
#if CUDART_VERSION >= 13000
RUNTIME_PT(cudaMemPrefetchAsync, _ptsz, v12020, v12020, PREFETCH_DECL, PREFETCH_ARGS,
           prefetch(devPtr, count, location, flags, stream, per_thread))
#else
RUNTIME_PT(cudaMemPrefetchAsync_v2, _ptsz, v12020, v12020, PREFETCH_DECL, PREFETCH_ARGS,
           prefetch(devPtr, count, location, flags, stream, per_thread))

static struct cudaMemLocation location_of(int device)
{
  return (struct cudaMemLocation){.type =
                                      device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
                                  .id = device == cudaCpuDeviceId ? 0 : device};
}
RUNTIME_PT(cudaMemPrefetchAsync, _ptsz, v8000, v8000,
           (const void *devPtr, size_t count, int dstDevice, cudaStream_t stream), (devPtr, count, dstDevice, stream),
           prefetch(devPtr, count, location_of(dstDevice), 0, stream, per_thread))
#endif
