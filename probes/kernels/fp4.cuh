/* SPDX-License-Identifier: Apache-2.0
 * NVFP4 in registers: codes to bf16 pairs, block scales, quantisation of 16 values. Device code only.
 *
 * Every e2m1 x e4m3 product is exact in bf16, so unpacked operands carry code x scale, times a power of two that keeps
 * both the arithmetic below and the tensor cores far from subnormal results; the epilogue takes the power out again
 * (FP4_SHIFT each). */
#pragma once

#include <cfloat>

#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include "common.cuh"

constexpr float FP4_UNSHIFT = 0x1p26f; /* per unpacked operand */

/* The order in which 16 values of a block stand after unpacking: pairs (v0,v4) (v1,v5) (v2,v6) (v3,v7) and the same of
 * the second half. A sum over k does not mind, as long as both operands use it. */
__device__ __forceinline__ uint32_t fp4_position(uint32_t i) { return (i & 8) | (i & 3) << 1 | (i >> 2 & 1); }

#ifdef SC_FP4_NATIVE
constexpr float FP4_SHIFT = 1.0f / FP4_UNSHIFT;
#else
constexpr float FP4_SHIFT = 0x1p126f / FP4_UNSHIFT; /* moved nibbles are values x 2^-126 */
#endif

/* E4M3 scale x FP4_SHIFT as a bf16 pair. Scales are never negative. */
__device__ __forceinline__ __nv_bfloat162 fp4_scale_pair(uint8_t scale)
{
  /* The byte's exponent and fraction under fp32's bias are scale x 2^-120, subnormal scales included. */
  const float value = __uint_as_float((uint32_t)scale << 20) * 0x1p120f;
  return __float2bfloat162_rn(value * FP4_SHIFT);
}

#ifdef SC_FP4_NATIVE
/* cvt.rn.f16x2.e2m1x2: targets with the a suffix alone. Codes are exact in bf16. */
__device__ __forceinline__ __nv_bfloat162 fp4_pair_native(uint32_t low, uint32_t high, __nv_bfloat162 scale)
{
  const __half2_raw raw = __nv_cvt_fp4x2_to_halfraw2((__nv_fp4x2_storage_t)(low | high << 4), __NV_E2M1);
  const float2 values = __half22float2(__half2(raw));
  return __hmul2(__floats2bfloat162_rn(values.x, values.y), scale);
}
#endif

/* Eight codes (v0 in the lowest nibble) to four pairs (v0,v4) (v1,v5) (v2,v6) (v3,v7), times the scale. */
__device__ __forceinline__ void fp4_unpack8(uint32_t codes, __nv_bfloat162 scale, uint32_t out[4])
{
#pragma unroll
  for (int i = 0; i < 4; i++) {
#ifdef SC_FP4_NATIVE
    const __nv_bfloat162 pair = fp4_pair_native(codes >> 4 * i & 15u, codes >> (4 * i + 16) & 15u, scale);
#else
    /* A nibble s e e m at a half's top is, moved, a bf16 with that sign, exponent and fraction: the value x 2^-126.
     * Code 1 (0.5) is a bf16 subnormal there: multiplied, not flushed (mul.bf16x2 keeps subnormals). */
    const uint32_t top = codes << (12 - 4 * i);
    const uint32_t bits = (top & 0x80008000u) | (top >> 6 & 0x01c001c0u);
    const __nv_bfloat162 pair = __hmul2(*reinterpret_cast<const __nv_bfloat162 *>(&bits), scale);
#endif
    out[i] = *reinterpret_cast<const uint32_t *>(&pair);
  }
}

/* The E4M3 scale of a block and the factor its values are multiplied with before they are encoded; same order of
 * operations as reference/nvfp4.c. */
__device__ __forceinline__ uint8_t fp4_block_scale(float amax, float global, float *factor)
{
  const uint8_t scale =
      __nv_cvt_float_to_fp8(__fmul_rn(amax, __fmul_rn(global, 1.0f / 6.0f)), __NV_SATFINITE, __NV_E4M3);
  const float decoded = __uint_as_float((uint32_t)scale << 20) * 0x1p120f;
  *factor = decoded > 0.0f ? fminf(__fdiv_rn(1.0f, __fmul_rn(decoded, __fdiv_rn(1.0f, global))), FLT_MAX) : 0.0f;
  return scale;
}

/* Two values to one byte, the first in the low nibble. */
__device__ __forceinline__ uint8_t fp4_encode_pair(float first, float second, float factor)
{
  if (!(factor > 0.0f))
    return 0;
  return __nv_cvt_float2_to_fp4x2(make_float2(__fmul_rn(first, factor), __fmul_rn(second, factor)), __NV_E2M1,
                                  cudaRoundNearest);
}

/* Offset of a block scale in the 128x4 swizzle; `blocks` = columns / 16. */
__device__ __forceinline__ uint64_t fp4_swizzled(uint64_t row, uint64_t block, uint64_t blocks)
{
  return (row / 128 * ((blocks + 3) / 4) + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}
