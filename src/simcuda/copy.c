/* SPDX-License-Identifier: Apache-2.0
 * Copies and fills, and which of them make the host wait: the table measured on a GPU. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct copy {
  char *to;
  const char *from;
  size_t width, height, depth; /* bytes, rows, slices */
  size_t to_pitch, to_slice, from_pitch, from_slice;
  char *staged; /* owned copy of pageable source memory */
};

static void run_copy(void *payload)
{
  const struct copy *copy = payload;

  for (size_t slice = 0; slice < copy->depth; slice++)
    for (size_t row = 0; row < copy->height; row++)
      memmove(copy->to + slice * copy->to_slice + row * copy->to_pitch,
              copy->from + slice * copy->from_slice + row * copy->from_pitch, copy->width);
}
static void drop_copy(void *payload) { free(((struct copy *)payload)->staged); }

enum side { EITHER, HOST, DEVICE, ARRAY }; /* what the call says that the pointer is */

/* One end of a copy. */
struct end {
  const void *at;
  enum side side;
  size_t pitch, slice; /* bytes from row to row, and from slice to slice */
};

struct request {
  struct end to, from;
  size_t width, height, depth;
  CUstream stream;
  bool per_thread, async;
};

static bool device_only(enum sim_memory kind) { return kind == SIM_DEVICE || kind == SIM_POOL || kind == SIM_ARRAY; }

static bool range_ok(const void *pointer, size_t extent, enum side side)
{
  enum sim_memory kind = sim_kind_of(pointer);

  if (pointer == NULL)
    return false;
  if (kind == SIM_ARRAY)
    return side == ARRAY && sim_range_ok(pointer, extent);
  if (side == DEVICE || (side == EITHER && kind != SIM_PAGEABLE))
    return kind != SIM_PAGEABLE && (kind == SIM_REGISTERED || sim_range_ok(pointer, extent));
  return side != ARRAY && !device_only(kind);
}

/* Bytes from the first to the last of `count` parts, `step` apart and `bytes` long each. False when no memory is that
 * large. */
static bool extent(size_t count, size_t step, size_t bytes, size_t *total)
{
  size_t steps;

  return !__builtin_mul_overflow(count - 1, step, &steps) && !__builtin_add_overflow(steps, bytes, total);
}

static bool end_ok(const struct end *end, const struct request *r)
{
  size_t area, volume;

  if (!extent(r->height, end->pitch, r->width, &area) || !extent(r->depth, end->slice, area, &volume))
    return false;
  if ((r->height > 1 && end->pitch < r->width) || (r->depth > 1 && end->slice < area))
    return false;
  return range_ok(end->at, volume, end->side);
}

/* Async copies from pageable memory return once the driver has read it; the work itself waits for its turn. */
static int stage(struct copy *copy)
{
  copy->staged = malloc(copy->width * copy->height * copy->depth);
  if (copy->staged == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  char *at = copy->staged;
  for (size_t slice = 0; slice < copy->depth; slice++)
    for (size_t row = 0; row < copy->height; row++, at += copy->width)
      memcpy(at, copy->from + slice * copy->from_slice + row * copy->from_pitch, copy->width);
  copy->from = copy->staged;
  copy->from_pitch = copy->width;
  copy->from_slice = copy->width * copy->height;
  return 0;
}

static bool host_waits(const struct request *r, enum sim_memory to, enum sim_memory from)
{
  if (r->async)
    return to == SIM_PAGEABLE;
  return !(device_only(to) && device_only(from));
}

static int copy(const struct request *r)
{
  CUcontext context;
  CUstream stream;
  uint64_t seq;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, r->stream, r->per_thread, &stream)) != 0)
    goto cleanup;
  if (r->width == 0 || r->height == 0 || r->depth == 0)
    goto cleanup;
  if (!r->async && ((error = sim_capture_forbid_legacy(stream)) != 0 || (error = sim_capture_forbid_unsafe()) != 0))
    goto cleanup;
  error = CUDA_ERROR_INVALID_VALUE;
  if (!end_ok(&r->to, r) || !end_ok(&r->from, r))
    goto cleanup;
  enum sim_memory to = sim_kind_of(r->to.at), from = sim_kind_of(r->from.at);
  struct sim_op *op = sim_op_new(sizeof(struct copy), run_copy, drop_copy);
  error = CUDA_ERROR_OUT_OF_MEMORY;
  if (op == NULL)
    goto cleanup;
  struct copy *work = sim_payload(op);
  *work = (struct copy){(char *)r->to.at, r->from.at,  r->width,      r->height,     r->depth,
                        r->to.pitch,      r->to.slice, r->from.pitch, r->from.slice, NULL};
  bool waits = host_waits(r, to, from);
  if (!waits && from == SIM_PAGEABLE && stream->capture == NULL && (error = stage(work)) != 0) {
    sim_op_free(op);
    goto cleanup;
  }
  sim_count_submission();
  error = sim_submit(stream, op, &seq);
  if (error == 0 && waits && seq != 0)
    sim_wait_seq(stream, seq);
cleanup:
  pthread_mutex_unlock(&sim_lock);
  return error;
}

static int copy_1d(const void *to, enum side to_side, const void *from, enum side from_side, size_t bytes,
                   CUstream stream, bool async, bool per_thread)
{
  struct request r = {
      {to, to_side, bytes, bytes}, {from, from_side, bytes, bytes}, bytes, 1, 1, stream, per_thread, async};

  return copy(&r);
}

#define P(x) ((const void *)(uintptr_t)(x))

DRIVER_PT(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void *from, size_t bytes), (to, from, bytes),
          copy_1d(P(to), DEVICE, from, HOST, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpyDtoH_v2, _ptds, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes),
          copy_1d(to, HOST, P(from), DEVICE, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes),
          copy_1d(P(to), DEVICE, P(from), DEVICE, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes),
          copy_1d(P(to), EITHER, P(from), EITHER, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
          (to, from, bytes, stream), copy_1d(P(to), DEVICE, from, HOST, bytes, stream, true, per_thread))
DRIVER_PT(cuMemcpyDtoHAsync_v2, _ptsz, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
          (to, from, bytes, stream), copy_1d(to, HOST, P(from), DEVICE, bytes, stream, true, per_thread))
DRIVER_PT(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
          (to, from, bytes, stream), copy_1d(P(to), DEVICE, P(from), DEVICE, bytes, stream, true, per_thread))
DRIVER_PT(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
          (to, from, bytes, stream), copy_1d(P(to), EITHER, P(from), EITHER, bytes, stream, true, per_thread))
DRIVER_PT(cuMemcpyPeer, _ptds,
          (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes),
          (to, to_context, from, from_context, bytes),
          copy_1d(P(to), DEVICE, P(from), DEVICE, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpyPeerAsync, _ptsz,
          (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
           CUstream stream),
          (to, to_context, from, from_context, bytes, stream),
          copy_1d(P(to), DEVICE, P(from), DEVICE, bytes, stream, true, per_thread))

/* ---- areas, volumes and arrays ---- */

static bool is_array(const struct CUarray_st *array) { return array != NULL && array->magic == SIM_ARRAY_MAGIC; }

/* Where one end of a described copy lies. */
static int end_of(struct end *end, CUmemorytype type, const void *host, CUdeviceptr device, CUarray array, size_t x,
                  size_t y, size_t z, size_t pitch, size_t height)
{
  static const enum side sides[] = {
      [CU_MEMORYTYPE_HOST] = HOST, [CU_MEMORYTYPE_DEVICE] = DEVICE, [CU_MEMORYTYPE_UNIFIED] = EITHER};
  const char *base = type == CU_MEMORYTYPE_HOST ? host : P(device);

  if (type == CU_MEMORYTYPE_ARRAY) {
    if (!is_array(array))
      return CUDA_ERROR_INVALID_HANDLE;
    base = array->base;
    pitch = array->row_bytes;
    height = array->height;
    end->side = ARRAY;
  } else if (type >= CU_MEMORYTYPE_HOST && type <= CU_MEMORYTYPE_UNIFIED)
    end->side = sides[type];
  else
    return CUDA_ERROR_INVALID_VALUE;
  end->pitch = pitch;
  end->slice = pitch * height;
  end->at = base != NULL ? base + z * end->slice + y * pitch + x : NULL;
  return 0;
}

static int copy_3d(const CUDA_MEMCPY3D *c, CUstream stream, bool async, bool per_thread)
{
  if (c == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  struct request r = {.width = c->WidthInBytes,
                      .height = c->Height,
                      .depth = c->Depth,
                      .stream = stream,
                      .per_thread = per_thread,
                      .async = async};
  int error = end_of(&r.to, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, c->dstZ,
                     c->dstPitch != 0 ? c->dstPitch : c->WidthInBytes, c->dstHeight != 0 ? c->dstHeight : c->Height);
  if (error == 0)
    error = end_of(&r.from, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, c->srcZ,
                   c->srcPitch != 0 ? c->srcPitch : c->WidthInBytes, c->srcHeight != 0 ? c->srcHeight : c->Height);
  return error != 0 ? error : copy(&r);
}
DRIVER_PT(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *c), (c), copy_3d(c, NULL, false, per_thread))
DRIVER_PT(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *c, CUstream stream), (c, stream),
          copy_3d(c, stream, true, per_thread))

static int copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool async, bool per_thread)
{
  if (c == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D volume = {.srcXInBytes = c->srcXInBytes,
                          .srcY = c->srcY,
                          .srcMemoryType = c->srcMemoryType,
                          .srcHost = c->srcHost,
                          .srcDevice = c->srcDevice,
                          .srcArray = c->srcArray,
                          .srcPitch = c->srcPitch,
                          .dstXInBytes = c->dstXInBytes,
                          .dstY = c->dstY,
                          .dstMemoryType = c->dstMemoryType,
                          .dstHost = c->dstHost,
                          .dstDevice = c->dstDevice,
                          .dstArray = c->dstArray,
                          .dstPitch = c->dstPitch,
                          .WidthInBytes = c->WidthInBytes,
                          .Height = c->Height,
                          .Depth = 1};
  return copy_3d(&volume, stream, async, per_thread);
}
DRIVER_PT(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *c), (c), copy_2d(c, NULL, false, per_thread))
DRIVER_PT(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *c), (c), copy_2d(c, NULL, false, per_thread))
DRIVER_PT(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *c, CUstream stream), (c, stream),
          copy_2d(c, stream, true, per_thread))

/* The linear array copies: an offset into the array's memory, and bytes. */
static int copy_array(CUarray to_array, const void *to, size_t to_offset, CUarray from_array, const void *from,
                      size_t from_offset, enum side linear, size_t bytes, CUstream stream, bool async, bool per_thread)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if ((to == NULL && !is_array(to_array)) || (from == NULL && !is_array(from_array)))
    return CUDA_ERROR_INVALID_VALUE;
  return copy_1d(to != NULL ? to : to_array->base + to_offset, to != NULL ? linear : ARRAY,
                 from != NULL ? from : from_array->base + from_offset, from != NULL ? linear : ARRAY, bytes, stream,
                 async, per_thread);
}
DRIVER_PT(cuMemcpyHtoA_v2, _ptds, (CUarray to, size_t offset, const void *from, size_t bytes),
          (to, offset, from, bytes),
          from == NULL ? CUDA_ERROR_INVALID_VALUE
                       : copy_array(to, NULL, offset, NULL, from, 0, HOST, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpyAtoH_v2, _ptds, (void *to, CUarray from, size_t offset, size_t bytes), (to, from, offset, bytes),
          to == NULL ? CUDA_ERROR_INVALID_VALUE
                     : copy_array(NULL, to, 0, from, NULL, offset, HOST, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpyDtoA_v2, _ptds, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
          (to, offset, from, bytes),
          from == 0 ? CUDA_ERROR_INVALID_VALUE
                    : copy_array(to, NULL, offset, NULL, P(from), 0, DEVICE, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
          (to, from, offset, bytes),
          to == 0 ? CUDA_ERROR_INVALID_VALUE
                  : copy_array(NULL, P(to), 0, from, NULL, offset, DEVICE, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpyAtoA_v2, _ptds, (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
          (to, to_offset, from, from_offset, bytes),
          copy_array(to, NULL, to_offset, from, NULL, from_offset, ARRAY, bytes, NULL, false, per_thread))
DRIVER_PT(cuMemcpyHtoAAsync_v2, _ptsz, (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream),
          (to, offset, from, bytes, stream),
          from == NULL ? CUDA_ERROR_INVALID_VALUE
                       : copy_array(to, NULL, offset, NULL, from, 0, HOST, bytes, stream, true, per_thread))
DRIVER_PT(cuMemcpyAtoHAsync_v2, _ptsz, (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream),
          (to, from, offset, bytes, stream),
          to == NULL ? CUDA_ERROR_INVALID_VALUE
                     : copy_array(NULL, to, 0, from, NULL, offset, HOST, bytes, stream, true, per_thread))

/* ---- batches ---- */

/* One copy after the other: a batch promises less order than that. It cannot be captured and takes no legacy stream. */
static int copy_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes, size_t count,
                      const CUmemcpyAttributes *attributes, const size_t *indices, size_t attribute_count,
                      CUstream handle, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (to == NULL || from == NULL || bytes == NULL || count == 0 || attributes == NULL || indices == NULL ||
      attribute_count == 0 || attribute_count > count || indices[0] != 0)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) == 0)
    error = stream->legacy            ? CUDA_ERROR_INVALID_VALUE
            : stream->capture != NULL ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                      : 0;
  pthread_mutex_unlock(&sim_lock);
  for (size_t i = 0; i < count && error == 0; i++)
    error = copy_1d(P(to[i]), EITHER, P(from[i]), EITHER, bytes[i], handle, true, per_thread);
  return error;
}
#if CUDA_VERSION >= 13000
DRIVER_PT(cuMemcpyBatchAsync_v2, _ptsz,
          (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t count, CUmemcpyAttributes *attributes,
           size_t *indices, size_t attribute_count, CUstream stream),
          (to, from, bytes, count, attributes, indices, attribute_count, stream),
          copy_batch(to, from, bytes, count, attributes, indices, attribute_count, stream, per_thread))
#else
static int tell_no_index(size_t *failed, int error)
{
  if (error != 0 && failed != NULL)
    *failed = SIZE_MAX; /* of no copy in particular */
  return error;
}
DRIVER_PT(cuMemcpyBatchAsync, _ptsz,
          (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t count, CUmemcpyAttributes *attributes,
           size_t *indices, size_t attribute_count, size_t *failed, CUstream stream),
          (to, from, bytes, count, attributes, indices, attribute_count, failed, stream),
          tell_no_index(failed,
                        copy_batch(to, from, bytes, count, attributes, indices, attribute_count, stream, per_thread)))
#endif

/* ---- fills ---- */

struct fill {
  char *to;
  uint32_t value;
  unsigned unit;               /* bytes of one element: 1, 2 or 4 */
  size_t width, height, pitch; /* width in elements, pitch in bytes */
};

static void run_fill(void *payload)
{
  const struct fill *fill = payload;

  for (size_t row = 0; row < fill->height; row++) {
    char *at = fill->to + row * fill->pitch;
    if (fill->unit == 1)
      memset(at, (int)fill->value, fill->width);
    else
      for (size_t i = 0; i < fill->width; i++, at += fill->unit)
        memcpy(at, &fill->value, fill->unit);
  }
}

static int fill(struct fill fill, CUstream handle, bool async, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  uint64_t seq;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) != 0 || fill.width == 0 || fill.height == 0)
    goto cleanup;
  if (!async && ((error = sim_capture_forbid_legacy(stream)) != 0 || (error = sim_capture_forbid_unsafe()) != 0))
    goto cleanup;
  error = CUDA_ERROR_INVALID_VALUE;
  size_t row, area;
  if (__builtin_mul_overflow(fill.width, fill.unit, &row) || !extent(fill.height, fill.pitch, row, &area) ||
      (uintptr_t)fill.to % fill.unit != 0 || (fill.height > 1 && fill.pitch < row) || !range_ok(fill.to, area, DEVICE))
    goto cleanup;
  struct sim_op *op = sim_op_new(sizeof fill, run_fill, NULL);
  error = CUDA_ERROR_OUT_OF_MEMORY;
  if (op == NULL)
    goto cleanup;
  memcpy(op->payload, &fill, sizeof fill);
  bool waits = !async && !device_only(sim_kind_of(fill.to));
  sim_count_submission();
  error = sim_submit(stream, op, &seq);
  if (error == 0 && waits && seq != 0)
    sim_wait_seq(stream, seq);
cleanup:
  pthread_mutex_unlock(&sim_lock);
  return error;
}

static struct fill line(CUdeviceptr to, uint32_t value, unsigned unit, size_t count)
{
  return (struct fill){(char *)(uintptr_t)to, value, unit, count, 1, count * unit};
}
static struct fill area(CUdeviceptr to, size_t pitch, uint32_t value, unsigned unit, size_t width, size_t height)
{
  return (struct fill){(char *)(uintptr_t)to, value, unit, width, height, pitch};
}

#define MEMSET(bits, type)                                                                                          \
  DRIVER_PT(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr to, type value, size_t count), (to, value, count),            \
            fill(line(to, value, bits / 8, count), NULL, false, per_thread))                                        \
  DRIVER_PT(cuMemsetD##bits##Async, _ptsz, (CUdeviceptr to, type value, size_t count, CUstream stream),             \
            (to, value, count, stream), fill(line(to, value, bits / 8, count), stream, true, per_thread))           \
  DRIVER_PT(cuMemsetD2D##bits##_v2, _ptds, (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height), \
            (to, pitch, value, width, height),                                                                      \
            fill(area(to, pitch, value, bits / 8, width, height), NULL, false, per_thread))                         \
  DRIVER_PT(cuMemsetD2D##bits##Async, _ptsz,                                                                        \
            (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream),               \
            (to, pitch, value, width, height, stream),                                                              \
            fill(area(to, pitch, value, bits / 8, width, height), stream, true, per_thread))
MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned)
