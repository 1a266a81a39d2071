/* SPDX-License-Identifier: Apache-2.0
 * The fused layer's CPU twins as the simulated device's kernels (see adapters.c, which has the table). */
#include <stdio.h>

#include "reference/adapters.h"
#include "reference/fused.h"

KERNEL(sc_adapt_fp4_amax_f32)
{
  UNUSED_SHAPE;
  sc_ref_fp4_amax(SC_F32, POINTER(const void, 0), VALUE(uint64_t, 1), POINTER(float, 2));
}

KERNEL(sc_adapt_fp4_amax_bf16)
{
  UNUSED_SHAPE;
  sc_ref_fp4_amax(SC_BF16, POINTER(const void, 0), VALUE(uint64_t, 1), POINTER(float, 2));
}

KERNEL(sc_adapt_fp4_globals)
{
  UNUSED_SHAPE;
  sc_ref_fp4_globals(POINTER(const float, 0), POINTER(float, 1), VALUE(uint64_t, 2));
}

KERNEL(sc_adapt_fp4_alphas)
{
  UNUSED_SHAPE;
  sc_ref_fp4_alphas(POINTER(const float, 0), POINTER(const float, 1), POINTER(float, 2), VALUE(uint64_t, 3));
}

static void quantise(enum sc_dtype dtype, void *const *args)
{
  sc_ref_fp4_quantise(dtype, POINTER(const void, 0), POINTER(uint8_t, 1), POINTER(uint8_t, 2), VALUE(uint64_t, 3),
                      VALUE(uint32_t, 4), *POINTER(const float, 5));
}

KERNEL(sc_adapt_fp4_quantise_f32)
{
  UNUSED_SHAPE;
  quantise(SC_F32, args);
}

KERNEL(sc_adapt_fp4_quantise_bf16)
{
  UNUSED_SHAPE;
  quantise(SC_BF16, args);
}

static void round_trip(enum sc_dtype dtype, void *const *args)
{
  sc_ref_fp4_round_trip(dtype, POINTER(const void, 0), POINTER(uint16_t, 1), VALUE(uint64_t, 2), *POINTER(const float, 3));
}

KERNEL(sc_adapt_fp4_round_trip_f32)
{
  UNUSED_SHAPE;
  round_trip(SC_F32, args);
}

KERNEL(sc_adapt_fp4_round_trip_bf16)
{
  UNUSED_SHAPE;
  round_trip(SC_BF16, args);
}

KERNEL(sc_adapt_fp4_to_bf16)
{
  UNUSED_SHAPE;
  const float *in = POINTER(const float, 0);
  uint16_t *out = POINTER(uint16_t, 1);
  for (uint64_t i = 0; i < VALUE(uint64_t, 2); i++)
    out[i] = sc_ref_to_bf16(in[i]);
}

KERNEL(sc_adapt_fp4_reorder_w13)
{
  UNUSED_SHAPE;
  nvfp4_reorder_w13((enum nvfp4_w13_layout)VALUE(uint32_t, 4), true, POINTER(const void, 0), VALUE(uint64_t, 2),
                    VALUE(uint64_t, 3), POINTER(void, 1));
}

KERNEL(sc_adapt_fp4_swizzle)
{
  UNUSED_SHAPE;
  nvfp4_swizzle(POINTER(const uint8_t, 0), VALUE(uint64_t, 2), VALUE(uint32_t, 3), POINTER(uint8_t, 1));
}

KERNEL(sc_adapt_fp4_tile)
{
  UNUSED_SHAPE;
  sc_ref_fp4_tile(POINTER(const uint8_t, 0), POINTER(const uint8_t, 1), POINTER(uint8_t, 2), VALUE(uint64_t, 3),
                  VALUE(uint32_t, 4), VALUE(uint32_t, 5));
}

KERNEL(sc_adapt_fused_align)
{
  UNUSED_SHAPE;
  sc_ref_fused_align(POINTER(const int32_t, 0), POINTER(int32_t, 1), POINTER(int32_t, 2), POINTER(struct sc_fused_block, 3),
                     POINTER(int32_t, 4), VALUE(uint64_t, 5), VALUE(uint32_t, 6), VALUE(uint32_t, 7));
}

/* A kernel cannot fail; verification sees what was not written. */
static void gemm(void *const *args, uint32_t block_rows, bool up)
{
  if (!sc_ref_fused_gemm((const struct sc_fused_gemm *)args[0], block_rows, up))
    fprintf(stderr, "synccount-probe: no host memory for a simulated kernel; its output is missing\n");
}

#define GEMM(name, block_rows)        \
  KERNEL(sc_adapt_fused_up_##name)    \
  {                                   \
    UNUSED_SHAPE;                     \
    gemm(args, block_rows, true);     \
  }                                   \
  KERNEL(sc_adapt_fused_down_##name)  \
  {                                   \
    UNUSED_SHAPE;                     \
    gemm(args, block_rows, false);    \
  }
GEMM(8_split, 8)
GEMM(8, 8)
GEMM(16, 16)
GEMM(32, 32)
GEMM(64, 64)
GEMM(128, SC_WGMMA_MOST_ROWS)
