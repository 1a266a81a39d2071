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

enum sc_status sc_launch_fused_align(const struct sc_gpu *gpu, const int32_t *chosen, int32_t *slot_choice,
                                     int32_t *inverse, int32_t *block_expert, int32_t *padded_rows, uint64_t n,
                                     uint32_t experts, uint32_t block_rows, struct sc_error *err)
{
  return sc_gpu_launch(gpu, SC_K_FUSED_ALIGN, experts, SC_FUSED_ALIGN_THREADS,
                       ARGS(&chosen, &slot_choice, &inverse, &block_expert, &padded_rows, &n, &experts, &block_rows),
                       err);
}

enum sc_status sc_launch_fused_gemm(const struct sc_gpu *gpu, const struct sc_fused_gemm *arguments,
                                    uint64_t padded_rows, uint32_t block_rows, bool a_fp4, bool up,
                                    struct sc_error *err)
{
  const uint32_t width = up ? SC_FUSED_UP_COLUMNS : SC_FUSED_DOWN_COLUMNS;
  const uint64_t blocks = (uint64_t)((arguments->n + width - 1) / width) * (padded_rows / block_rows);
  const int kernel =
      SC_K_FUSED_UP_W4A4_SMALL + (up ? 0 : 4) + (a_fp4 ? 0 : 2) + (block_rows == SC_FUSED_ROWS_LARGE ? 1 : 0);
  struct sc_fused_gemm copy = *arguments;
  return sc_gpu_launch(gpu, (enum sc_kernel)kernel, blocks, SC_FUSED_THREADS, ARGS(&copy), err);
}
