/* SPDX-License-Identifier: Apache-2.0
 * Copies and fills, and which of them make the host wait: the table measured on a GPU. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct copy {
  char *to;
  const char *from;
  size_t width, height, to_pitch, from_pitch;
  char *staged; /* owned copy of pageable source memory */
};

static void run_copy(void *payload) {
  const struct copy *copy = payload;

  if (copy->height == 1) {
    memmove(copy->to, copy->from, copy->width);
    return;
  }
  for (size_t row = 0; row < copy->height; row++)
    memmove(copy->to + row * copy->to_pitch, copy->from + row * copy->from_pitch, copy->width);
}
static void drop_copy(void *payload) { free(((struct copy *)payload)->staged); }

enum side { EITHER, HOST, DEVICE }; /* what the call says that the pointer is */

struct request {
  const void *to, *from;
  enum side to_side, from_side;
  size_t width, height, to_pitch, from_pitch;
  CUstream stream;
  bool per_thread, async;
};

static bool device_only(enum sim_memory kind) { return kind == SIM_DEVICE || kind == SIM_POOL; }

static bool side_ok(const void *pointer, size_t extent, enum side side) {
  enum sim_memory kind = sim_kind_of(pointer);

  if (pointer == NULL)
    return false;
  if (side == DEVICE || (side == EITHER && kind != SIM_PAGEABLE))
    return kind != SIM_PAGEABLE && (kind == SIM_REGISTERED || sim_range_ok(pointer, extent));
  return !device_only(kind);
}

static size_t extent(size_t width, size_t height, size_t pitch) { return (height - 1) * pitch + width; }

/* Async copies from pageable memory return once the driver has read it; the work itself waits for its turn. */
static int stage(struct copy *copy) {
  copy->staged = malloc(copy->width * copy->height);
  if (copy->staged == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t row = 0; row < copy->height; row++)
    memcpy(copy->staged + row * copy->width, copy->from + row * copy->from_pitch, copy->width);
  copy->from = copy->staged;
  copy->from_pitch = copy->width;
  return 0;
}

static bool host_waits(const struct request *r, enum sim_memory to, enum sim_memory from) {
  if (r->async)
    return to == SIM_PAGEABLE;
  return !(device_only(to) && device_only(from));
}

static int copy(const struct request *r) {
  CUcontext context;
  CUstream stream;
  uint64_t seq;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, r->stream, r->per_thread, &stream)) != 0)
    goto cleanup;
  if (r->width == 0 || r->height == 0)
    goto cleanup;
  if (!r->async && ((error = sim_capture_forbid_legacy(stream)) != 0 || (error = sim_capture_forbid_unsafe()) != 0))
    goto cleanup;
  error = CUDA_ERROR_INVALID_VALUE;
  if (r->height > 1 && (r->to_pitch < r->width || r->from_pitch < r->width))
    goto cleanup;
  if (!side_ok(r->to, extent(r->width, r->height, r->to_pitch), r->to_side) ||
      !side_ok(r->from, extent(r->width, r->height, r->from_pitch), r->from_side))
    goto cleanup;
  enum sim_memory to = sim_kind_of(r->to), from = sim_kind_of(r->from);
  struct sim_op *op = sim_op_new(sizeof(struct copy), run_copy, drop_copy);
  error = CUDA_ERROR_OUT_OF_MEMORY;
  if (op == NULL)
    goto cleanup;
  struct copy *work = sim_payload(op);
  *work = (struct copy){(char *)r->to, r->from, r->width, r->height, r->to_pitch, r->from_pitch, NULL};
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

static int copy_1d(const void *to, enum side to_side, const void *from, enum side from_side, size_t bytes, CUstream stream,
                   bool async, bool per_thread) {
  struct request r = {to, from, to_side, from_side, bytes, 1, bytes, bytes, stream, per_thread, async};

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
          (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream stream),
          (to, to_context, from, from_context, bytes, stream),
          copy_1d(P(to), DEVICE, P(from), DEVICE, bytes, stream, true, per_thread))

static int copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool async, bool per_thread) {
  static const enum side sides[] = {[CU_MEMORYTYPE_HOST] = HOST, [CU_MEMORYTYPE_DEVICE] = DEVICE, [CU_MEMORYTYPE_UNIFIED] = EITHER};

  if (c == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (c->srcMemoryType < CU_MEMORYTYPE_HOST || c->srcMemoryType > CU_MEMORYTYPE_UNIFIED ||
      c->dstMemoryType < CU_MEMORYTYPE_HOST || c->dstMemoryType > CU_MEMORYTYPE_UNIFIED)
    return CUDA_ERROR_INVALID_VALUE;
  size_t from_pitch = c->srcPitch != 0 ? c->srcPitch : c->WidthInBytes, to_pitch = c->dstPitch != 0 ? c->dstPitch : c->WidthInBytes;
  const char *from = c->srcMemoryType == CU_MEMORYTYPE_HOST ? c->srcHost : P(c->srcDevice);
  const char *to = c->dstMemoryType == CU_MEMORYTYPE_HOST ? c->dstHost : P(c->dstDevice);
  struct request r = {to + c->dstY * to_pitch + c->dstXInBytes,
                      from + c->srcY * from_pitch + c->srcXInBytes,
                      sides[c->dstMemoryType],
                      sides[c->srcMemoryType],
                      c->WidthInBytes,
                      c->Height,
                      to_pitch,
                      from_pitch,
                      stream,
                      per_thread,
                      async};
  return copy(&r);
}
DRIVER_PT(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *c), (c), copy_2d(c, NULL, false, per_thread))
DRIVER_PT(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *c), (c), copy_2d(c, NULL, false, per_thread))
DRIVER_PT(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *c, CUstream stream), (c, stream),
          copy_2d(c, stream, true, per_thread))

/* ---- fills ---- */

struct fill {
  char *to;
  uint32_t value;
  unsigned unit; /* bytes of one element: 1, 2 or 4 */
  size_t width, height, pitch; /* width in elements, pitch in bytes */
};

static void run_fill(void *payload) {
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

static int fill(struct fill fill, CUstream handle, bool async, bool per_thread) {
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
  size_t row = fill.width * fill.unit;
  if ((uintptr_t)fill.to % fill.unit != 0 || (fill.height > 1 && fill.pitch < row) ||
      !side_ok(fill.to, extent(row, fill.height, fill.pitch), DEVICE))
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

static struct fill line(CUdeviceptr to, uint32_t value, unsigned unit, size_t count) {
  return (struct fill){(char *)(uintptr_t)to, value, unit, count, 1, count * unit};
}
static struct fill area(CUdeviceptr to, size_t pitch, uint32_t value, unsigned unit, size_t width, size_t height) {
  return (struct fill){(char *)(uintptr_t)to, value, unit, width, height, pitch};
}

#define MEMSET(bits, type)                                                                                                      \
  DRIVER_PT(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr to, type value, size_t count), (to, value, count),                        \
            fill(line(to, value, bits / 8, count), NULL, false, per_thread))                                                    \
  DRIVER_PT(cuMemsetD##bits##Async, _ptsz, (CUdeviceptr to, type value, size_t count, CUstream stream),                         \
            (to, value, count, stream), fill(line(to, value, bits / 8, count), stream, true, per_thread))                       \
  DRIVER_PT(cuMemsetD2D##bits##_v2, _ptds, (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),             \
            (to, pitch, value, width, height), fill(area(to, pitch, value, bits / 8, width, height), NULL, false, per_thread))  \
  DRIVER_PT(cuMemsetD2D##bits##Async, _ptsz,                                                                                    \
            (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream),                           \
            (to, pitch, value, width, height, stream), fill(area(to, pitch, value, bits / 8, width, height), stream, true, per_thread))
MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned)
