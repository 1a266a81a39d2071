/* SPDX-License-Identifier: Apache-2.0
 * Bytes, direction and kinds of memory. The API's word counts for which side is the host; where it says "default", the
 * process's own allocations decide. */
#include "tracer/arguments.h"

#include <cuda_runtime_api.h>
#include <cupti.h>

struct sides { /* what is known of both ends: enum sc_memory or SC_MEMORY_UNTRACKED; and of the direction */
  uint8_t dst, src, direction;
  uint64_t bytes;
};

static uint64_t normalise(uint64_t stream, bool per_thread) {
  if (stream == 0)
    return per_thread ? SC_STREAM_PER_THREAD : SC_STREAM_LEGACY;
  return stream;
}

static bool runs_on_a_stream(const struct sc_watch *watch) {
  switch (watch->op) {
  case SC_OP_COPY:
  case SC_OP_MEMSET: return true; /* on the default stream */
  default: return false;
  }
}

uint64_t sc_arguments_stream(const struct sc_watch *watch, const void *params) {
  const struct sc_layout *layout = watch->layout;
  if (layout == NULL || params == NULL)
    return 0;
  if (layout->stream.size != 0)
    return normalise(sc_field_read(params, layout->stream), watch->per_thread);
  if (layout->form == SC_FORM_DRIVER_CONFIG) {
    const CUlaunchConfig *config = sc_field_pointer(params, layout->block);
    return config == NULL ? 0 : normalise((uint64_t)(uintptr_t)config->hStream, watch->per_thread);
  }
  return runs_on_a_stream(watch) ? normalise(0, watch->per_thread) : 0;
}

struct sc_stream_key sc_arguments_key(uint64_t stream, const void *thread) {
  return (struct sc_stream_key){ stream, stream == SC_STREAM_PER_THREAD ? thread : NULL };
}

/* ---- one side ---------------------------------------------------------------------------------------- */
static uint8_t kind_at(struct sc_memory_cache *cache, const void *pointer) {
  return sc_memory_kind(cache, (uintptr_t)pointer);
}

static uint8_t kind_of_driver(struct sc_memory_cache *cache, CUmemorytype type, const void *host, CUdeviceptr device) {
  uint8_t kind;
  switch (type) {
  case CU_MEMORYTYPE_ARRAY: return SC_MEMORY_ARRAY;
  case CU_MEMORYTYPE_DEVICE:
    kind = sc_memory_kind(cache, (uintptr_t)device);
    return kind == SC_MEMORY_UNTRACKED ? SC_MEMORY_DEVICE : kind;
  case CU_MEMORYTYPE_HOST: return kind_at(cache, host);
  default: return sc_memory_kind(cache, (uintptr_t)device); /* unified: the address is in the device field */
  }
}

static int side_of_driver(CUmemorytype type) { /* 1 host, 2 device, 0 the address tells */
  return type == CU_MEMORYTYPE_HOST ? 1 : type == CU_MEMORYTYPE_UNIFIED ? 0 : 2;
}

static uint8_t direction_of_sides(int src, int dst) {
  if (src == 0 || dst == 0)
    return SC_DIRECTION_NONE;
  if (src == 1)
    return dst == 1 ? SC_DIRECTION_H2H : SC_DIRECTION_H2D;
  return dst == 1 ? SC_DIRECTION_D2H : SC_DIRECTION_D2D;
}

static uint8_t direction_of_kind(uint64_t kind, uint8_t otherwise) {
  switch (kind) {
  case cudaMemcpyHostToHost: return SC_DIRECTION_H2H;
  case cudaMemcpyHostToDevice: return SC_DIRECTION_H2D;
  case cudaMemcpyDeviceToHost: return SC_DIRECTION_D2H;
  case cudaMemcpyDeviceToDevice: return SC_DIRECTION_D2D;
  default: return otherwise;
  }
}

/* ---- forms ------------------------------------------------------------------------------------------- */
static void read_driver_2d(const CUDA_MEMCPY2D *copy, struct sc_memory_cache *cache, struct sides *sides) {
  sides->dst = kind_of_driver(cache, copy->dstMemoryType, copy->dstHost, copy->dstDevice);
  sides->src = kind_of_driver(cache, copy->srcMemoryType, copy->srcHost, copy->srcDevice);
  sides->direction = direction_of_sides(side_of_driver(copy->srcMemoryType), side_of_driver(copy->dstMemoryType));
  sides->bytes = (uint64_t)copy->WidthInBytes * copy->Height;
}

static void read_driver_3d(const CUDA_MEMCPY3D *copy, struct sc_memory_cache *cache, struct sides *sides) {
  sides->dst = kind_of_driver(cache, copy->dstMemoryType, copy->dstHost, copy->dstDevice);
  sides->src = kind_of_driver(cache, copy->srcMemoryType, copy->srcHost, copy->srcDevice);
  sides->direction = direction_of_sides(side_of_driver(copy->srcMemoryType), side_of_driver(copy->dstMemoryType));
  sides->bytes = (uint64_t)copy->WidthInBytes * copy->Height * copy->Depth;
}

static void read_driver_3d_peer(const CUDA_MEMCPY3D_PEER *copy, struct sc_memory_cache *cache, struct sides *sides) {
  sides->dst = kind_of_driver(cache, copy->dstMemoryType, copy->dstHost, copy->dstDevice);
  sides->src = kind_of_driver(cache, copy->srcMemoryType, copy->srcHost, copy->srcDevice);
  sides->direction = direction_of_sides(side_of_driver(copy->srcMemoryType), side_of_driver(copy->dstMemoryType));
  sides->bytes = (uint64_t)copy->WidthInBytes * copy->Height * copy->Depth;
}

/* An extent counts elements when an array takes part, else bytes. An array whose making was not seen has elements of
 * 1. */
static uint64_t extent_bytes(struct cudaExtent extent, cudaArray_const_t dst, cudaArray_const_t src) {
  uint64_t element = 1;
  if (dst != NULL)
    (void)sc_handle_get(SC_HANDLE_ARRAY, (uint64_t)(uintptr_t)dst, &element);
  else if (src != NULL)
    (void)sc_handle_get(SC_HANDLE_ARRAY, (uint64_t)(uintptr_t)src, &element);
  return (uint64_t)extent.width * extent.height * extent.depth * element;
}

static void read_runtime_3d(const struct cudaMemcpy3DParms *copy, struct sc_memory_cache *cache, struct sides *sides) {
  sides->dst = copy->dstArray != NULL ? SC_MEMORY_ARRAY : kind_at(cache, copy->dstPtr.ptr);
  sides->src = copy->srcArray != NULL ? SC_MEMORY_ARRAY : kind_at(cache, copy->srcPtr.ptr);
  sides->direction = direction_of_kind(copy->kind, SC_DIRECTION_NONE);
  sides->bytes = extent_bytes(copy->extent, copy->dstArray, copy->srcArray);
}

static void read_runtime_3d_peer(const struct cudaMemcpy3DPeerParms *copy, struct sc_memory_cache *cache,
                                 struct sides *sides) {
  sides->dst = copy->dstArray != NULL ? SC_MEMORY_ARRAY : kind_at(cache, copy->dstPtr.ptr);
  sides->src = copy->srcArray != NULL ? SC_MEMORY_ARRAY : kind_at(cache, copy->srcPtr.ptr);
  sides->direction = SC_DIRECTION_D2D;
  sides->bytes = extent_bytes(copy->extent, copy->dstArray, copy->srcArray);
}

/* ---- both sides together ----------------------------------------------------------------------------- */
static uint8_t host_kind(uint8_t kind, struct sc_memory_view view) {
  if (kind != SC_MEMORY_UNTRACKED)
    return kind;
  return view.late ? SC_MEMORY_UNKNOWN : SC_MEMORY_PAGEABLE;
}

static uint8_t device_kind(uint8_t kind) {
  return kind == SC_MEMORY_UNTRACKED || kind == SC_MEMORY_UNKNOWN ? SC_MEMORY_DEVICE : kind;
}

static uint8_t any_kind(uint8_t kind, struct sc_memory_view view) {
  if (kind != SC_MEMORY_UNTRACKED)
    return kind;
  return view.late || view.imports ? SC_MEMORY_UNKNOWN : SC_MEMORY_PAGEABLE;
}

static bool is_host(uint8_t kind) { return kind == SC_MEMORY_PAGEABLE || kind == SC_MEMORY_PINNED; }

static void settle(struct sides *sides, struct sc_memory_view view, uint8_t *flags) {
  switch (sides->direction) {
  case SC_DIRECTION_H2D:
    sides->src = host_kind(sides->src, view);
    sides->dst = device_kind(sides->dst);
    return;
  case SC_DIRECTION_D2H:
    sides->src = device_kind(sides->src);
    sides->dst = host_kind(sides->dst, view);
    return;
  case SC_DIRECTION_D2D:
    sides->src = device_kind(sides->src);
    sides->dst = device_kind(sides->dst);
    return;
  case SC_DIRECTION_H2H:
    sides->src = host_kind(sides->src, view);
    sides->dst = host_kind(sides->dst, view);
    return;
  default: break;
  }
  sides->src = any_kind(sides->src, view);
  sides->dst = any_kind(sides->dst, view);
  if (sides->src == SC_MEMORY_UNKNOWN || sides->dst == SC_MEMORY_UNKNOWN)
    *flags |= SC_CALL_UNKNOWN_DIRECTION;
  else
    sides->direction = direction_of_sides(is_host(sides->src) ? 1 : 2, is_host(sides->dst) ? 1 : 2);
}

/* One record stands for a whole batch. Copies of several kinds in one batch are recorded as the one that may make the
 * host wait: device to pageable first, then device to what is not known, then device to host, then the rest. */
static int rank(const struct sides *sides) {
  if (sides->direction == SC_DIRECTION_NONE)
    return 3;
  if (sides->direction != SC_DIRECTION_D2H)
    return 1;
  return sides->dst == SC_MEMORY_PAGEABLE ? 4 : sides->dst == SC_MEMORY_UNKNOWN ? 3 : 2;
}

static void keep_foremost(struct sides *all, const struct sides *one, int *foremost) {
  int mine = rank(one);
  uint64_t bytes = all->bytes + one->bytes;
  if (mine > *foremost) {
    *all = *one;
    *foremost = mine;
  }
  all->bytes = bytes;
}

#define BATCH_MAX 65536u /* of a longer batch the first ones are looked at */

static void read_batch(const struct sc_layout *layout, const void *params, struct sc_memory_cache *cache,
                       struct sc_memory_view view, struct sides *all, uint8_t *flags) {
  const void *const *dsts = sc_field_pointer(params, layout->dst), *const *srcs = sc_field_pointer(params, layout->src);
  const size_t *sizes = sc_field_pointer(params, layout->bytes);
  uint64_t count = sc_field_read(params, layout->rows);
  int foremost = 0;
  uint8_t of_all = 0;
  for (uint64_t i = 0; dsts != NULL && srcs != NULL && sizes != NULL && i < count && i < BATCH_MAX; i++) {
    struct sides one = { .dst = kind_at(cache, dsts[i]), .src = kind_at(cache, srcs[i]), .bytes = sizes[i] };
    uint8_t of_one = 0;
    settle(&one, view, &of_one);
    if (rank(&one) > foremost)
      of_all = of_one;
    keep_foremost(all, &one, &foremost);
  }
  *flags |= of_all;
}

static uint8_t kind_of_operand(const struct cudaMemcpy3DOperand *operand, struct sc_memory_cache *cache) {
  return operand->type == cudaMemcpyOperandTypeArray ? SC_MEMORY_ARRAY : kind_at(cache, operand->op.ptr.ptr);
}

/* The driver's CUDA_MEMCPY3D_BATCH_OP is the runtime's struct under another name. */
_Static_assert(sizeof(CUDA_MEMCPY3D_BATCH_OP) == sizeof(struct cudaMemcpy3DBatchOp), "batch operation");
_Static_assert(offsetof(CUDA_MEMCPY3D_BATCH_OP, extent) == offsetof(struct cudaMemcpy3DBatchOp, extent),
               "batch operation");
_Static_assert(offsetof(CUDA_MEMCPY3D_BATCH_OP, dst) == offsetof(struct cudaMemcpy3DBatchOp, dst), "batch operation");

static void read_3d_batch(const struct sc_layout *layout, const void *params, struct sc_memory_cache *cache,
                          struct sc_memory_view view, struct sides *all, uint8_t *flags) {
  const struct cudaMemcpy3DBatchOp *ops = sc_field_pointer(params, layout->block);
  uint64_t count = sc_field_read(params, layout->rows);
  int foremost = 0;
  uint8_t of_all = 0;
  for (uint64_t i = 0; ops != NULL && i < count && i < BATCH_MAX; i++) {
    struct sides one = { .dst = kind_of_operand(&ops[i].dst, cache), .src = kind_of_operand(&ops[i].src, cache) };
    one.bytes = extent_bytes(ops[i].extent, one.dst == SC_MEMORY_ARRAY ? ops[i].dst.op.array.array : NULL,
                             one.src == SC_MEMORY_ARRAY ? ops[i].src.op.array.array : NULL);
    uint8_t of_one = 0;
    settle(&one, view, &of_one);
    if (rank(&one) > foremost)
      of_all = of_one;
    keep_foremost(all, &one, &foremost);
  }
  *flags |= of_all;
}

static uint64_t sum_of_sizes(const struct sc_layout *layout, const void *params) {
  const size_t *sizes = sc_field_pointer(params, layout->bytes);
  uint64_t count = sc_field_read(params, layout->rows), sum = 0;
  for (uint64_t i = 0; sizes != NULL && i < count && i < BATCH_MAX; i++)
    sum += sizes[i];
  return sum;
}

static uint64_t plain_bytes(const struct sc_layout *layout, const void *params) {
  uint64_t bytes = sc_field_read(params, layout->bytes);
  if (layout->rows.size != 0)
    bytes *= sc_field_read(params, layout->rows);
  return layout->element > 1 ? bytes * layout->element : bytes;
}

static uint8_t plain_side(const struct sc_layout *layout, const void *params, struct sc_field field, uint8_t array,
                          uint8_t device, struct sc_memory_cache *cache) {
  if ((layout->flags & array) != 0)
    return SC_MEMORY_ARRAY;
  uint8_t kind = field.size == 0 ? SC_MEMORY_UNTRACKED : sc_memory_kind(cache, (uintptr_t)sc_field_read(params, field));
  return kind == SC_MEMORY_UNTRACKED && (layout->flags & device) != 0 ? SC_MEMORY_DEVICE : kind;
}

static void read_plain(const struct sc_watch *watch, const void *params, struct sc_memory_cache *cache,
                       struct sides *sides) {
  const struct sc_layout *layout = watch->layout;
  sides->dst = plain_side(layout, params, layout->dst, SC_LAYOUT_DST_ARRAY, SC_LAYOUT_DST_DEVICE, cache);
  sides->src = plain_side(layout, params, layout->src, SC_LAYOUT_SRC_ARRAY, SC_LAYOUT_SRC_DEVICE, cache);
  sides->direction = watch->direction;
  if (layout->kind.size != 0)
    sides->direction = direction_of_kind(sc_field_read(params, layout->kind), watch->direction);
  sides->bytes = plain_bytes(layout, params);
}

static void read_copy(const struct sc_watch *watch, const void *params, struct sc_memory_cache *cache,
                      struct sc_memory_view view, struct sc_arguments *out) {
  const struct sc_layout *layout = watch->layout;
  struct sides sides = { .direction = SC_DIRECTION_NONE };
  const void *block = layout->block.size != 0 ? sc_field_pointer(params, layout->block) : NULL;
  bool settled = false;
  switch (layout->form) {
  case SC_FORM_BATCH:
    read_batch(layout, params, cache, view, &sides, &out->flags);
    settled = true;
    break;
  case SC_FORM_RUNTIME_3D_BATCH:
  case SC_FORM_DRIVER_3D_BATCH:
    read_3d_batch(layout, params, cache, view, &sides, &out->flags);
    settled = true;
    break;
  case SC_FORM_PLAIN: read_plain(watch, params, cache, &sides); break;
  default:
    if (block == NULL) { /* the call fails; there is nothing to read */
      out->flags |= SC_CALL_NO_ARGUMENTS;
      return;
    }
    if (layout->form == SC_FORM_RUNTIME_3D)
      read_runtime_3d(block, cache, &sides);
    else if (layout->form == SC_FORM_RUNTIME_3D_PEER)
      read_runtime_3d_peer(block, cache, &sides);
    else if (layout->form == SC_FORM_DRIVER_2D)
      read_driver_2d(block, cache, &sides);
    else if (layout->form == SC_FORM_DRIVER_3D)
      read_driver_3d(block, cache, &sides);
    else
      read_driver_3d_peer(block, cache, &sides);
  }
  if (!settled)
    settle(&sides, view, &out->flags);
  out->direction = sides.direction;
  out->dst = sides.dst;
  out->src = sides.src;
  out->bytes = sides.bytes;
}

static void read_memset(const struct sc_layout *layout, const void *params, struct sc_memory_cache *cache,
                        struct sc_memory_view view, struct sc_arguments *out) {
  uint8_t kind;
  if (layout->form == SC_FORM_PITCHED) {
    struct cudaPitchedPtr target;
    struct cudaExtent extent;
    memcpy(&target, (const char *)params + layout->dst.offset, sizeof(target));
    memcpy(&extent, (const char *)params + layout->bytes.offset, sizeof(extent));
    kind = kind_at(cache, target.ptr);
    out->bytes = (uint64_t)extent.width * extent.height * extent.depth;
  } else {
    kind = sc_memory_kind(cache, (uintptr_t)sc_field_read(params, layout->dst));
    out->bytes = plain_bytes(layout, params);
  }
  if (kind == SC_MEMORY_UNTRACKED) /* a memset takes device memory, or host memory that was made known to CUDA */
    kind = view.late ? SC_MEMORY_UNKNOWN : SC_MEMORY_DEVICE;
  out->dst = kind;
}

/* False for what has none that we read, such as cudaDeviceSynchronize: nothing is missing then. */
static bool takes_arguments(const struct sc_layout *layout) {
  return (layout->stream.size | layout->object.size | layout->dst.size | layout->src.size | layout->bytes.size |
          layout->block.size) != 0;
}

void sc_arguments_read(const struct sc_watch *watch, const void *params, struct sc_memory_cache *cache,
                       struct sc_memory_view view, struct sc_arguments *out) {
  const struct sc_layout *layout = watch->layout;
  *out = (struct sc_arguments){ .direction = SC_DIRECTION_NONE };
  if (layout == NULL || params == NULL) {
    if (layout == NULL || takes_arguments(layout))
      out->flags = SC_CALL_NO_ARGUMENTS;
    out->direction = watch->direction;
    return;
  }
  out->stream = sc_arguments_stream(watch, params);
  if (layout->object.size != 0)
    out->object = sc_field_read(params, layout->object);
  switch (watch->op) {
  case SC_OP_COPY:
  case SC_OP_COPY_ASYNC: read_copy(watch, params, cache, view, out); break;
  case SC_OP_MEMSET:
  case SC_OP_MEMSET_ASYNC: read_memset(layout, params, cache, view, out); break;
  case SC_OP_PREFETCH:
    out->bytes = layout->form == SC_FORM_BATCH_SIZES ? sum_of_sizes(layout, params) : plain_bytes(layout, params);
    break;
  default: break;
  }
}
