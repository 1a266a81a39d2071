/* SPDX-License-Identifier: Apache-2.0
 * Entry points that allocate, free, register and describe memory. Which frees wait is the table measured on a GPU. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define POINTER(x) ((void *)(uintptr_t)(x))

static int allocate(enum sim_memory kind, size_t bytes, unsigned flags, void *out)
{
  CUcontext context;
  void *pointer;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_capture_forbid_unsafe()) == 0)
    error = sim_alloc(context, kind, bytes, flags, &pointer);
  pthread_mutex_unlock(&sim_lock);
  if (error == 0)
    memcpy(out, &pointer, sizeof pointer);
  return error;
}

DRIVER(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes), (pointer, bytes), allocate(SIM_DEVICE, bytes, 0, pointer))
DRIVER(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned flags), (pointer, bytes, flags),
       flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST ? CUDA_ERROR_INVALID_VALUE
                                                                    : allocate(SIM_MANAGED, bytes, flags, pointer))
DRIVER(cuMemAllocHost_v2, (void **pointer, size_t bytes), (pointer, bytes), allocate(SIM_PINNED, bytes, 0, pointer))
DRIVER(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags), (pointer, bytes, flags),
       (flags & ~7u) != 0 ? CUDA_ERROR_INVALID_VALUE : allocate(SIM_PINNED, bytes, flags, pointer))

static int allocate_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element)
{
  if (pitch == NULL || width == 0 || height == 0 || width > SIZE_MAX / 2 ||
      (element != 4 && element != 8 && element != 16))
    return CUDA_ERROR_INVALID_VALUE;
  size_t row = (width + 511) / 512 * 512;
  if (height > SIZE_MAX / row)
    return CUDA_ERROR_OUT_OF_MEMORY;
  int error = allocate(SIM_DEVICE, row * height, 0, pointer);
  if (error == 0)
    *pitch = row;
  return error;
}
DRIVER(cuMemAllocPitch_v2, (CUdeviceptr * pointer, size_t *pitch, size_t width, size_t height, unsigned element),
       (pointer, pitch, width, height, element), allocate_pitch(pointer, pitch, width, height, element))

static int register_host(void *pointer, size_t bytes, unsigned flags)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_capture_forbid_unsafe()) == 0)
    error = sim_register(context, pointer, bytes, flags);
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuMemHostRegister_v2, (void *pointer, size_t bytes, unsigned flags), (pointer, bytes, flags),
       register_host(pointer, bytes, flags))

/* ---- frees ---- */

static void run_nothing(void *payload) { (void)payload; }
static void drop_block(void *payload)
{
  struct sim_block **block = payload;

  sim_block_free(*block);
}

/* The block is freed when the work in front of it is done: the memory must not vanish under a kernel. */
static struct sim_op *free_later(struct sim_block *block)
{
  struct sim_op *op = sim_op_new(sizeof block, run_nothing, drop_block);

  if (op != NULL)
    *(struct sim_block **)sim_payload(op) = block;
  return op;
}

/* cuMemFree of pool memory is the one free that does not wait. */
int sim_free(void *pointer, bool (*accepts)(enum sim_memory))
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0 || pointer == NULL)
    return error;
  pthread_mutex_lock(&sim_lock);
  const struct sim_block *found = sim_block_at(pointer);
  if (found == NULL || found->base != pointer || !accepts(found->kind))
    error = CUDA_ERROR_INVALID_VALUE;
  else
    error = sim_capture_forbid_unsafe();
  if (error == 0) {
    if (found->kind != SIM_POOL)
      sim_wait_all();
    struct sim_block *block = sim_block_take(pointer);
    struct sim_op *later = block != NULL && block->kind == SIM_POOL ? free_later(block) : NULL;
    if (block == NULL)
      error = CUDA_ERROR_INVALID_VALUE; /* another thread freed it while this one waited */
    else if (later != NULL)
      sim_submit_after_all(context, later);
    else
      error = sim_block_free(block);
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}

static bool is_device(enum sim_memory kind) { return kind == SIM_DEVICE || kind == SIM_MANAGED || kind == SIM_POOL; }
static bool is_pinned(enum sim_memory kind) { return kind == SIM_PINNED; }
static bool is_registered(enum sim_memory kind) { return kind == SIM_REGISTERED; }

DRIVER(cuMemFree_v2, (CUdeviceptr pointer), (pointer), sim_free(POINTER(pointer), is_device))
DRIVER(cuMemFreeHost, (void *pointer), (pointer), sim_free(pointer, is_pinned))

static int unregister(void *pointer)
{
  if (pointer == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  int error = sim_free(pointer, is_registered);
  return error == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : error;
}
DRIVER(cuMemHostUnregister, (void *pointer), (pointer), unregister(pointer))

/* ---- stream-ordered memory ---- */

/* The memory is there at once: nothing can tell, since it may be used in stream order only. Graphs own no memory here.
 */
int sim_allocate_async(CUdeviceptr *out, size_t bytes, CUstream handle, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  void *pointer;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) == 0)
    error = stream->capture != NULL ? CUDA_ERROR_NOT_SUPPORTED : sim_alloc(context, SIM_POOL, bytes, 0, &pointer);
  pthread_mutex_unlock(&sim_lock);
  if (error == 0)
    *out = (CUdeviceptr)(uintptr_t)pointer;
  return error;
}
DRIVER_PT(cuMemAllocAsync, _ptsz, (CUdeviceptr * pointer, size_t bytes, CUstream stream), (pointer, bytes, stream),
          sim_allocate_async(pointer, bytes, stream, per_thread))

static int free_async(void *pointer, CUstream handle, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error != 0 || pointer == NULL)
    return error;
  pthread_mutex_lock(&sim_lock);
  const struct sim_block *found = sim_block_at(pointer);
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) != 0)
    goto cleanup;
  if (found == NULL || found->base != pointer || (found->kind != SIM_POOL && found->kind != SIM_DEVICE))
    error = CUDA_ERROR_INVALID_VALUE;
  else if (stream->capture != NULL)
    error = CUDA_ERROR_NOT_SUPPORTED;
  if (error != 0)
    goto cleanup;
  struct sim_block *block = sim_block_take(pointer);
  struct sim_op *op = free_later(block);
  if (op != NULL)
    error = sim_submit(stream, op, NULL);
  else {
    sim_wait_all();
    error = sim_block_free(block);
  }
cleanup:
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuMemFreeAsync, _ptsz, (CUdeviceptr pointer, CUstream stream), (pointer, stream),
          free_async(POINTER(pointer), stream, per_thread))

/* ---- questions ---- */

static int info(size_t *free_bytes, size_t *total_bytes)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (free_bytes == NULL || total_bytes == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  sim_memory_info(context->device, free_bytes, total_bytes);
  pthread_mutex_unlock(&sim_lock);
  return 0;
}
DRIVER(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total_bytes), (free_bytes, total_bytes),
       info(free_bytes, total_bytes))

static int address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  const struct sim_block *block = sim_block_at(POINTER(pointer));
  if (block == NULL)
    error = CUDA_ERROR_NOT_FOUND;
  if (error == 0 && base != NULL)
    *base = (CUdeviceptr)(uintptr_t)block->base;
  if (error == 0 && bytes != NULL)
    *bytes = block->bytes;
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *bytes, CUdeviceptr pointer), (base, bytes, pointer),
       address_range(base, bytes, pointer))

static int host_device_pointer(CUdeviceptr *out, void *pointer, unsigned flags)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (out == NULL || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  enum sim_memory kind = sim_kind_of(pointer);
  pthread_mutex_unlock(&sim_lock);
  if (kind != SIM_PINNED && kind != SIM_REGISTERED)
    return CUDA_ERROR_INVALID_VALUE;
  *out = (CUdeviceptr)(uintptr_t)pointer;
  return 0;
}
DRIVER(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void *pointer, unsigned flags), (out, pointer, flags),
       host_device_pointer(out, pointer, flags))

static int host_flags(unsigned *flags, void *pointer)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  const struct sim_block *block = sim_block_at(pointer);
  if (flags == NULL || block == NULL || (block->kind != SIM_PINNED && block->kind != SIM_REGISTERED))
    error = CUDA_ERROR_INVALID_VALUE;
  else
    *flags = block->flags;
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuMemHostGetFlags, (unsigned *flags, void *pointer), (flags, pointer), host_flags(flags, pointer))

/* One attribute of a block; false for one that the simulation does not know. */
static bool describe(const struct sim_block *block, CUpointer_attribute attribute, CUdeviceptr pointer, void *out)
{
  bool host = block->kind == SIM_PINNED || block->kind == SIM_REGISTERED;

  switch ((int)attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)out = block->context; return true;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(CUmemorytype *)out = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return true;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)out = pointer; return true;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    *(void **)out = host || block->kind == SIM_MANAGED ? POINTER(pointer) : NULL;
    return true;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)out = block->kind == SIM_MANAGED; return true;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)out = block->device; return true;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)out = block->id; return true;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)out = (CUdeviceptr)(uintptr_t)block->base; return true;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)out = block->bytes; return true;
  default: return false;
  }
}

static int pointer_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr pointer)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  const struct sim_block *block = sim_block_at(POINTER(pointer));
  if (out == NULL || block == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  else if (!describe(block, attribute, pointer, out))
    error = CUDA_ERROR_NOT_SUPPORTED;
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuPointerGetAttribute, (void *out, CUpointer_attribute attribute, CUdeviceptr pointer),
       (out, attribute, pointer), pointer_attribute(out, attribute, pointer))

/* Unlike the single query, this one answers 0 for memory that it does not know. */
static int pointer_attributes(unsigned count, CUpointer_attribute *wanted, void **out, CUdeviceptr pointer)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (wanted == NULL || out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  const struct sim_block *block = sim_block_at(POINTER(pointer));
  for (unsigned i = 0; i < count && error == 0; i++)
    if (block == NULL) {
      bool wide = wanted[i] == CU_POINTER_ATTRIBUTE_CONTEXT || wanted[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                  wanted[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                  wanted[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || wanted[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE ||
                  wanted[i] == CU_POINTER_ATTRIBUTE_BUFFER_ID;
      memset(out[i], wanted[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? 0xfe : 0, wide ? 8 : 4);
      if (wanted[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        *(int *)out[i] = -2;
    } else if (!describe(block, wanted[i], pointer, out[i]))
      error = CUDA_ERROR_NOT_SUPPORTED;
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuPointerGetAttributes, (unsigned count, CUpointer_attribute *wanted, void **out, CUdeviceptr pointer),
       (count, wanted, out, pointer), pointer_attributes(count, wanted, out, pointer))
