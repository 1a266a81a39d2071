/* SPDX-License-Identifier: Apache-2.0
 * Arrays, mipmapped arrays, memory pools and prefetches: as much of them as a program needs to copy, wait and free. */
#include "sim.h"

static struct sim_pool arrays = {.bytes = sizeof(struct CUarray_st)};

static size_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
  size_t channel;

  switch (d->Format) {
  case CU_AD_FORMAT_UNSIGNED_INT8:
  case CU_AD_FORMAT_SIGNED_INT8: channel = 1; break;
  case CU_AD_FORMAT_UNSIGNED_INT16:
  case CU_AD_FORMAT_SIGNED_INT16:
  case CU_AD_FORMAT_HALF: channel = 2; break;
  case CU_AD_FORMAT_UNSIGNED_INT32:
  case CU_AD_FORMAT_SIGNED_INT32:
  case CU_AD_FORMAT_FLOAT: channel = 4; break;
  default: return 0;
  }
  return d->NumChannels == 1 || d->NumChannels == 2 || d->NumChannels == 4 ? channel * d->NumChannels : 0;
}

static size_t at_least_one(size_t value) { return value != 0 ? value : 1; }

static int create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
  enum { MOST = 131072 };
  CUcontext context;
  void *base;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (array == NULL || d == NULL || element_bytes(d) == 0 || d->Width == 0 || d->Width > MOST || d->Height > MOST ||
      d->Depth > MOST)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  CUarray made = NULL;
  size_t row = d->Width * element_bytes(d), height = at_least_one(d->Height), depth = at_least_one(d->Depth);
  if ((error = sim_capture_forbid_unsafe()) != 0 ||
      (error = sim_alloc(context, SIM_ARRAY, row * height * depth, 0, &base)) != 0)
    goto cleanup;
  if ((made = sim_pool_get(&arrays)) == NULL) {
    sim_block_free(sim_block_take(base));
    error = CUDA_ERROR_OUT_OF_MEMORY;
    goto cleanup;
  }
  *made = (struct CUarray_st){
      .magic = SIM_ARRAY_MAGIC, .base = base, .row_bytes = row, .height = height, .depth = depth, .descriptor = *d};
  *array = made;
cleanup:
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuArray3DCreate_v2, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *d), (array, d), create(array, d))
DRIVER(cuArrayCreate_v2, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *d), (array, d),
       d == NULL
           ? CUDA_ERROR_INVALID_VALUE
           : create(array,
                    &(CUDA_ARRAY3D_DESCRIPTOR){
                        .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels}))

static bool is_array_memory(enum sim_memory kind) { return kind == SIM_ARRAY; }

static int destroy(CUarray array)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (array == NULL || array->magic != SIM_ARRAY_MAGIC)
    return CUDA_ERROR_INVALID_HANDLE;
  if ((error = sim_free(array->base, is_array_memory)) != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  array->magic = 0;
  sim_pool_put(&arrays, array);
  pthread_mutex_unlock(&sim_lock);
  return 0;
}
DRIVER(cuArrayDestroy, (CUarray array), (array), destroy(array))

static int describe(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray array)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (d == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (array == NULL || array->magic != SIM_ARRAY_MAGIC)
    return CUDA_ERROR_INVALID_HANDLE;
  *d = array->descriptor;
  return 0;
}
DRIVER(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * d, CUarray array), (d, array), describe(d, array))

/* Only the first level has memory that can be reached: nothing here reads a texture. */
DRIVER(cuMipmappedArrayCreate, (CUmipmappedArray * array, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels),
       (array, d, levels), levels == 0 ? CUDA_ERROR_INVALID_VALUE : create((CUarray *)array, d))
DRIVER(cuMipmappedArrayDestroy, (CUmipmappedArray array), (array), destroy((CUarray)array))
DRIVER(cuMipmappedArrayGetLevel, (CUarray * level, CUmipmappedArray array, unsigned number), (level, array, number),
       level == NULL || array == NULL ? CUDA_ERROR_INVALID_VALUE
       : number != 0                  ? CUDA_ERROR_NOT_SUPPORTED
                                      : (*level = (CUarray)array, 0))

/* ---- pools: a name for memory that is freed in stream order; nothing is kept back ---- */

struct CUmemPoolHandle_st {
  uint32_t magic;
  int device;
  cuuint64_t release_threshold;
};
enum { POOL_MAGIC = 0x506f6f6c };
static struct CUmemPoolHandle_st default_pools[SIM_MAX_DEVICES];
static struct sim_pool pools = {.bytes = sizeof(struct CUmemPoolHandle_st)};
static CUmemoryPool current_pools[SIM_MAX_DEVICES];

static bool is_pool(CUmemoryPool pool) { return pool != NULL && pool->magic == POOL_MAGIC; }

static int default_pool(CUmemoryPool *pool, CUdevice device, bool current)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (pool == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= sim_settings.devices)
    return CUDA_ERROR_INVALID_DEVICE;
  pthread_mutex_lock(&sim_lock);
  default_pools[device].magic = POOL_MAGIC;
  default_pools[device].device = device;
  *pool = current && is_pool(current_pools[device]) ? current_pools[device] : &default_pools[device];
  pthread_mutex_unlock(&sim_lock);
  return 0;
}
DRIVER(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device),
       default_pool(pool, device, false))
DRIVER(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device), default_pool(pool, device, true))

static int set_pool(CUdevice device, CUmemoryPool pool)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (device < 0 || device >= sim_settings.devices)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!is_pool(pool) || pool->device != device)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  current_pools[device] = pool;
  pthread_mutex_unlock(&sim_lock);
  return 0;
}
DRIVER(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool), (device, pool), set_pool(device, pool))

static int create_pool(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (pool == NULL || properties == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (properties->location.id < 0 || properties->location.id >= sim_settings.devices)
    return CUDA_ERROR_INVALID_DEVICE;
  pthread_mutex_lock(&sim_lock);
  CUmemoryPool made = sim_pool_get(&pools);
  if (made != NULL) {
    *made = (struct CUmemPoolHandle_st){.magic = POOL_MAGIC, .device = properties->location.id};
    *pool = made;
  }
  pthread_mutex_unlock(&sim_lock);
  return made != NULL ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}
DRIVER(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *properties), (pool, properties),
       create_pool(pool, properties))

static int destroy_pool(CUmemoryPool pool)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if (!is_pool(pool) || pool == &default_pools[pool->device])
    error = CUDA_ERROR_INVALID_VALUE;
  else {
    pool->magic = 0;
    sim_pool_put(&pools, pool);
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuMemPoolDestroy, (CUmemoryPool pool), (pool), destroy_pool(pool))
DRIVER(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep), (pool, keep),
       sim_ready() != 0 ? sim_ready()
       : is_pool(pool)  ? 0
                        : CUDA_ERROR_INVALID_VALUE)

static int pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value, bool set)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (!is_pool(pool) || value == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    return CUDA_ERROR_NOT_SUPPORTED;
  pthread_mutex_lock(&sim_lock);
  if (set)
    pool->release_threshold = *(const cuuint64_t *)value;
  else
    *(cuuint64_t *)value = pool->release_threshold;
  pthread_mutex_unlock(&sim_lock);
  return 0;
}
DRIVER(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value), (pool, attribute, value),
       pool_attribute(pool, attribute, value, true))
DRIVER(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value), (pool, attribute, value),
       pool_attribute(pool, attribute, value, false))
DRIVER_PT(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream),
          (pointer, bytes, pool, stream),
          !is_pool(pool) ? CUDA_ERROR_INVALID_VALUE : sim_allocate_async(pointer, bytes, stream, per_thread))

/* ---- prefetch: host and device share the memory, so it is work that does nothing ---- */

static int prefetch(CUdeviceptr pointer, size_t bytes, CUstream handle, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  const void *at = (const void *)(uintptr_t)pointer;
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) == 0 &&
      (bytes == 0 || sim_kind_of(at) != SIM_MANAGED || !sim_range_ok(at, bytes)))
    error = CUDA_ERROR_INVALID_VALUE;
  struct sim_op *op = error == 0 ? sim_op_new(0, NULL, NULL) : NULL;
  if (error == 0 && op == NULL)
    error = CUDA_ERROR_OUT_OF_MEMORY;
  if (error == 0) {
    sim_count_submission();
    error = sim_submit(stream, op, NULL);
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuMemPrefetchAsync_v2, _ptsz,
          (CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream),
          (pointer, bytes, location, flags, stream),
          flags != 0 ? CUDA_ERROR_INVALID_VALUE : prefetch(pointer, bytes, stream, per_thread))
