/* SPDX-License-Identifier: Apache-2.0
 * One typed function for each kernel of the fused layer. */
#include "host/gpu.h"

#define ARGS(...) ((void *[]){__VA_ARGS__})

enum sc_status sc_launch_fp4_amax(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *x, uint64_t n,
                                  float *result, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FP4_AMAX_F32 + dtype, sc_gpu_blocks(n), SC_BLOCK, ARGS(&x, &n, &result), err);
}

enum sc_status sc_launch_fp4_globals(const struct sc_gpu *gpu, const float *amaxes, float *globals, uint64_t n,
                                     struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FP4_GLOBALS, sc_gpu_blocks(n), SC_BLOCK, ARGS(&amaxes, &globals, &n), err);
}

enum sc_status sc_launch_fp4_alphas(const struct sc_gpu *gpu, const float *a_global, const float *w_globals,
                                    float *alphas, uint64_t n, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FP4_ALPHAS, sc_gpu_blocks(n), SC_BLOCK, ARGS(&a_global, &w_globals, &alphas, &n), err);
}

enum sc_status sc_launch_fp4_quantise(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *x, uint8_t *codes,
                                      uint8_t *scales, uint64_t rows, uint32_t columns, const float *global,
                                      struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FP4_QUANTISE_F32 + dtype, sc_gpu_blocks(rows * columns / 16), SC_BLOCK,
                       ARGS(&x, &codes, &scales, &rows, &columns, &global), err);
}

enum sc_status sc_launch_fp4_to_bf16(const struct sc_gpu *gpu, const void *x, void *out, uint64_t n,
                                     struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FP4_TO_BF16, sc_gpu_blocks(n), SC_BLOCK, ARGS(&x, &out, &n), err);
}

enum sc_status sc_launch_fp4_reorder(const struct sc_gpu *gpu, const uint8_t *from, uint8_t *to, uint64_t rows,
                                     uint64_t row_bytes, uint32_t layout, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FP4_REORDER_W13, sc_gpu_blocks(rows * row_bytes), SC_BLOCK,
                       ARGS(&from, &to, &rows, &row_bytes, &layout), err);
}

enum sc_status sc_launch_fp4_swizzle(const struct sc_gpu *gpu, const uint8_t *scales, uint8_t *swizzled, uint64_t rows,
                                     uint32_t blocks, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FP4_SWIZZLE, sc_gpu_blocks((rows + 127) / 128 * 128 * ((blocks + 3) / 4 * 4)),
                       SC_BLOCK, ARGS(&scales, &swizzled, &rows, &blocks), err);
}

enum sc_status sc_launch_fp4_round_trip(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *x, void *out,
                                        uint64_t n, const float *global, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FP4_ROUND_TRIP_F32 + dtype, sc_gpu_blocks(n / 16), SC_BLOCK,
                       ARGS(&x, &out, &n, &global), err);
}

enum sc_status sc_launch_fp4_tile(const struct sc_gpu *gpu, const uint8_t *codes, const uint8_t *scales, uint8_t *tiles,
                                  uint64_t rows, uint32_t columns, bool gated, struct sc_error *err)
{
  const uint64_t lanes = rows / SC_TILE_ROWS * ((columns + SC_TILE_COLUMNS - 1) / SC_TILE_COLUMNS) * SC_WARP;
  uint32_t halves = gated;
  return sc_gpu_launch(gpu, SC_K_FP4_TILE, sc_gpu_blocks(lanes), SC_BLOCK,
                       ARGS(&codes, &scales, &tiles, &rows, &columns, &halves), err);
}

enum sc_status sc_launch_fused_align(const struct sc_gpu *gpu, const int32_t *chosen, int32_t *slot_choice,
                                     int32_t *inverse, struct sc_fused_block *blocks, int32_t *block_count, uint64_t n,
                                     uint32_t experts, uint32_t block_rows, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FUSED_ALIGN, experts, n > 2048 ? SC_FUSED_ALIGN_THREADS : SC_FUSED_ALIGN_THREADS / 4,
                       ARGS(&chosen, &slot_choice, &inverse, &blocks, &block_count, &n, &experts, &block_rows), err);
}

/* The GEMM kernels, in the order of enum sc_kernel: for each the rows of its blocks and the tiles of W beside them. */
struct gemm {
  uint32_t rows, tiles;
  unsigned threads, shared;
};

#define MMA(rows, tiles)                                    \
  {                                                         \
    rows, tiles, SC_MMA_THREADS, SC_MMA_SHARED(rows, tiles) \
  }
static const struct gemm mma[] = {MMA(8, SC_FUSED_SPLIT_TILES), MMA(8, SC_MMA_TILES), MMA(16, SC_MMA_TILES),
                                  MMA(32, SC_MMA_TILES), MMA(64, SC_MMA_TILES)};
#define WGMMA(rows, tiles)                                            \
  {                                                                   \
    rows, tiles, SC_WGMMA_THREADS(rows), SC_WGMMA_SHARED(rows, tiles) \
  }
static const struct gemm wgmma[] = {WGMMA(8, SC_FUSED_SPLIT_TILES), WGMMA(8, SC_WGMMA_TILES),
                                    WGMMA(16, SC_WGMMA_TILES),      WGMMA(32, SC_WGMMA_TILES),
                                    WGMMA(64, SC_WGMMA_TILES),      WGMMA(128, SC_WGMMA_TILES)};
_Static_assert(SC_COUNTOF(wgmma) == SC_K_FUSED_DOWN_8_SPLIT - SC_K_FUSED_UP_8_SPLIT, "a kernel each");

static const struct gemm *gemms_of(const struct sc_gpu *gpu, size_t *count)
{
  *count = gpu->wgmma ? SC_COUNTOF(wgmma) : SC_COUNTOF(mma);
  return gpu->wgmma ? wgmma : mma;
}

enum sc_status sc_launch_fused_prepare(const struct sc_gpu *gpu, struct sc_error *err)
{
  size_t count;
  const struct gemm *gemms = gemms_of(gpu, &count);
  for (size_t i = 0; i < 2 * count; i++) {
    const size_t kernel = i < count ? SC_K_FUSED_UP_8_SPLIT + i : SC_K_FUSED_DOWN_8_SPLIT + i - count;
    SC_CUDA(cudaFuncSetAttribute((const void *)gpu->kernels[kernel], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (int)gemms[i % count].shared));
  }
  return SC_OK;
}

/* Pieces of the output: blocks of rows by the columns of `tiles` tiles. */
static uint64_t pieces(const struct sc_fused_gemm *p, uint64_t blocks, uint32_t tiles, bool up)
{
  const uint32_t width = tiles * (up && p->gated ? SC_TILE_ROWS / 2 : SC_TILE_ROWS);
  return blocks * ((p->n + width - 1) / width);
}

enum sc_status sc_launch_fused_gemm(const struct sc_gpu *gpu, const struct sc_fused_gemm *arguments, uint64_t blocks,
                                    uint32_t block_rows, bool up, struct sc_error *err)
{
  struct sc_fused_gemm copy = *arguments;
  size_t count, i = 1;
  const struct gemm *gemms = gemms_of(gpu, &count);
  while (i < count && gemms[i].rows != block_rows)
    i++;
  if (i == count)
    return sc_error_set(err, SC_ERR_INTERNAL, "the fused layer has no kernel for blocks of %u rows on this device",
                        block_rows);
  /* Pieces too few to share them out evenly are cut. */
  if (block_rows == 8 && pieces(arguments, blocks, gemms[i].tiles, up) < 3 * (uint64_t)gpu->multiprocessors)
    i = 0;
  uint64_t grid = pieces(arguments, blocks, gemms[i].tiles, up);
  if (gpu->wgmma && grid > gpu->multiprocessors)
    grid = gpu->multiprocessors; /* blocks take several */
  return sc_gpu_launch_shared(gpu, (enum sc_kernel)((up ? SC_K_FUSED_UP_8_SPLIT : SC_K_FUSED_DOWN_8_SPLIT) + i), grid,
                              gemms[i].threads, gemms[i].shared, ARGS(&copy), err);
}
