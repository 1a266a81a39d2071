/* SPDX-License-Identifier: Apache-2.0
 * One typed function a kernel, so that an argument of the wrong type or order is a compiler error. */
#include "host/gpu.h"

#define ARGS(...) ((void *[]){__VA_ARGS__})

/* One warp a row, SC_BLOCK / SC_WARP rows a block. */
static uint64_t warp_blocks(uint64_t rows) { return sc_gpu_blocks(rows * SC_WARP); }

/* One block a row, looping over the columns. */
static uint64_t row_blocks(uint64_t rows) { return rows < SC_MAX_GRID ? rows : SC_MAX_GRID; }

enum sc_status sc_launch_fill(const struct sc_gpu *gpu, enum sc_dtype dtype, void *out, uint64_t count, uint64_t seed,
                              uint64_t stream, float scale, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FILL_F32 + dtype, sc_gpu_blocks(count), SC_BLOCK,
                       ARGS(&out, &count, &seed, &stream, &scale), err);
}

enum sc_status sc_launch_softmax(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *logits, float *probs,
                                 uint64_t rows, uint32_t experts, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_SOFTMAX_F32 + dtype, warp_blocks(rows), SC_BLOCK,
                       ARGS(&logits, &probs, &rows, &experts), err);
}

enum sc_status sc_launch_topk(const struct sc_gpu *gpu, const float *probs, int32_t *chosen, float *weights,
                              uint64_t rows, uint32_t experts, uint32_t k, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_TOPK, warp_blocks(rows), SC_BLOCK,
                       ARGS(&probs, &chosen, &weights, &rows, &experts, &k), err);
}

enum sc_status sc_launch_route_override(const struct sc_gpu *gpu, const float *probs, int32_t *chosen, float *weights,
                                        uint64_t rows, uint32_t experts, uint32_t k, enum sc_route_mode mode,
                                        uint64_t seed, uint64_t stream, struct sc_error *err)
{
  uint32_t kernel_mode = (uint32_t)mode;
  return sc_gpu_launch(gpu, SC_K_ROUTE_OVERRIDE, sc_gpu_blocks(rows), SC_BLOCK,
                       ARGS(&probs, &chosen, &weights, &rows, &experts, &k, &kernel_mode, &seed, &stream), err);
}

enum sc_status sc_launch_renormalize(const struct sc_gpu *gpu, float *weights, uint64_t rows, uint32_t k,
                                     struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_RENORMALIZE, sc_gpu_blocks(rows), SC_BLOCK, ARGS(&weights, &rows, &k), err);
}

enum sc_status sc_launch_route(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *logits, int32_t *chosen,
                               float *weights, uint64_t rows, uint32_t experts, uint32_t k, enum sc_route_mode mode,
                               bool renormalize, uint64_t seed, uint64_t stream, struct sc_error *err)
{
  uint32_t kernel_mode = (uint32_t)mode, kernel_renormalize = renormalize;
  return sc_gpu_launch(gpu, SC_K_ROUTE_F32 + dtype, warp_blocks(rows), SC_BLOCK,
                       ARGS(&logits, &chosen, &weights, &rows, &experts, &k, &kernel_mode, &kernel_renormalize, &seed,
                            &stream),
                       err);
}

enum sc_status sc_launch_mask_equal(const struct sc_gpu *gpu, const int32_t *chosen, uint8_t *mask, uint64_t n,
                                    int32_t expert, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_MASK_EQUAL, sc_gpu_blocks(n), SC_BLOCK, ARGS(&chosen, &mask, &n, &expert), err);
}

enum sc_status sc_launch_mask_any(const struct sc_gpu *gpu, const uint8_t *mask, uint8_t *any, uint64_t n,
                                  struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_MASK_ANY, 1, SC_BLOCK_SINGLE, ARGS(&mask, &any, &n), err);
}

enum sc_status sc_launch_mask_rows(const struct sc_gpu *gpu, const uint8_t *mask, uint8_t *rows, uint64_t row_count,
                                   uint32_t k, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_MASK_ROWS, sc_gpu_blocks(row_count), SC_BLOCK, ARGS(&mask, &rows, &row_count, &k),
                       err);
}

enum sc_status sc_launch_mask_count(const struct sc_gpu *gpu, const uint8_t *mask, int32_t *count, uint64_t n,
                                    struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_MASK_COUNT, 1, SC_BLOCK_SINGLE, ARGS(&mask, &count, &n), err);
}

enum sc_status sc_launch_mask_compact(const struct sc_gpu *gpu, const uint8_t *mask, int32_t *positions, uint64_t n,
                                      struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_MASK_COMPACT, 1, SC_BLOCK_SINGLE, ARGS(&mask, &positions, &n), err);
}

enum sc_status sc_launch_gather_weights(const struct sc_gpu *gpu, const float *weights, const int32_t *positions,
                                        float *out, uint64_t n, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_GATHER_WEIGHTS, sc_gpu_blocks(n), SC_BLOCK, ARGS(&weights, &positions, &out, &n), err);
}

enum sc_status sc_launch_gather_rows(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *x,
                                     const int32_t *positions, void *out, uint64_t n, uint32_t divisor, uint32_t hidden,
                                     struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_GATHER_ROWS_F32 + dtype, row_blocks(n), SC_BLOCK,
                       ARGS(&x, &positions, &out, &n, &divisor, &hidden), err);
}

enum sc_status sc_launch_activate(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *gate, const void *up,
                                  void *out, uint64_t n, const struct sc_activation *act, struct sc_error *err)
{
  uint32_t kind = (uint32_t)act->kind;
  float alpha = act->alpha, beta = act->beta, limit = act->limit;
  return sc_gpu_launch(gpu, SC_K_ACTIVATE_F32 + dtype, sc_gpu_blocks(n), SC_BLOCK,
                       ARGS(&gate, &up, &out, &n, &kind, &alpha, &beta, &limit), err);
}

enum sc_status sc_launch_weighted_add(const struct sc_gpu *gpu, enum sc_dtype dtype, void *y, const void *expert_out,
                                      const int32_t *rows, const float *weights, uint64_t n, uint32_t hidden,
                                      struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_WEIGHTED_ADD_F32 + dtype, row_blocks(n), SC_BLOCK,
                       ARGS(&y, &expert_out, &rows, &weights, &n, &hidden), err);
}

uint32_t sc_sort_tiles(uint64_t n) { return (uint32_t)((n + SC_SORT_TILE - 1) / SC_SORT_TILE); }

enum sc_status sc_launch_sort_histogram(const struct sc_gpu *gpu, const int32_t *chosen, uint32_t *hist, uint64_t n,
                                        uint32_t experts, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_SORT_HISTOGRAM, sc_sort_tiles(n), SC_SORT_BLOCK, ARGS(&chosen, &hist, &n, &experts),
                       err);
}

enum sc_status sc_launch_sort_offsets(const struct sc_gpu *gpu, const uint32_t *hist, uint32_t *offsets, uint32_t tiles,
                                      uint32_t experts, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_SORT_OFFSETS, 1, SC_BLOCK_SINGLE, ARGS(&hist, &offsets, &tiles, &experts), err);
}

enum sc_status sc_launch_sort_scatter(const struct sc_gpu *gpu, const int32_t *chosen, const uint32_t *offsets,
                                      int32_t *keys, int32_t *order, int32_t *inverse, uint64_t n, uint32_t experts,
                                      struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_SORT_SCATTER, sc_sort_tiles(n), SC_SORT_BLOCK,
                       ARGS(&chosen, &offsets, &keys, &order, &inverse, &n, &experts), err);
}

enum sc_status sc_launch_search_bounds(const struct sc_gpu *gpu, const int32_t *keys, int64_t *bounds, uint64_t n,
                                       uint32_t experts, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_SEARCH_BOUNDS, sc_gpu_blocks(experts), SC_BLOCK, ARGS(&keys, &bounds, &n, &experts),
                       err);
}

enum sc_status sc_launch_combine(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *sorted_out,
                                 const int32_t *inverse, const float *weights, void *y, uint64_t rows, uint32_t k,
                                 uint32_t hidden, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_COMBINE_F32 + dtype, row_blocks(rows), SC_BLOCK,
                       ARGS(&sorted_out, &inverse, &weights, &y, &rows, &k, &hidden), err);
}

enum sc_status sc_launch_tiny(const struct sc_gpu *gpu, uint8_t *value, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_TINY, 1, 1, ARGS(&value), err);
}

enum sc_status sc_launch_write_flag(const struct sc_gpu *gpu, uint32_t *flag, uint32_t value, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_WRITE_FLAG, 1, 1, ARGS(&flag, &value), err);
}

enum sc_status sc_launch_compare(const struct sc_gpu *gpu, const void *a, const void *b, uint64_t *differ, uint64_t n,
                                 struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_COMPARE, sc_gpu_blocks(n), SC_BLOCK, ARGS(&a, &b, &differ, &n), err);
}
