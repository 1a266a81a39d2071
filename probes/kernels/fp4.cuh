/* SPDX-License-Identifier: Apache-2.0
 * NVFP4 in registers: codes to bf16 pairs, block scales, quantisation of 16 values. Device code only.
 *
 * Every e2m1 x e4m3 product is exact in bf16, so unpacked weights carry code x scale, times 2^-26, a power of two that
 * keeps the arithmetic below in range; the epilogue takes it out again (FP4_UNSHIFT). */
#pragma once

#include <cfloat>

#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include "common.cuh"

constexpr float FP4_UNSHIFT = 0x1p26f;

/* ---- tiles: how the GEMMs hold weights ----
 *
 * SC_TILE_ROWS rows of W by SC_TILE_COLUMNS columns, SC_TILE_BYTES bytes: 512 of codes, then the scales of each row's
 * four blocks. 32-bit word t of the 16 bytes of lane l (r = l / 4, q = l % 4) is that lane's part of columns 16 t to
 * 16 t + 15 as the tensor cores take it: pairs (r; 2q) (r + 8; 2q) (r; 2q + 8) (r + 8; 2q + 8), of which pair i has its
 * first value in nibble i and its second in nibble i + 4.
 *
 * A tile's scale is an E4M3 number again, but in 5 bits of exponent (bias 10) and 3 of fraction, so that none is
 * subnormal and a multiplication and an addition make a bf16 of it. Where the scale is 0 the codes are 0 as well. */

#ifdef SC_FP4_NATIVE
constexpr int FP4_SHIFT_EXPONENT = -26;
#else
constexpr int FP4_SHIFT_EXPONENT = 126 - 26; /* moved nibbles are values x 2^-126 */
#endif

/* E4M3 to a tile's scale. */
__device__ __forceinline__ uint8_t fp4_tile_scale(uint8_t scale)
{
  const uint32_t exponent = scale >> 3 & 15, fraction = scale & 7;
  if (exponent > 0)
    return (uint8_t)((exponent + 3) << 3 | fraction);
  if (fraction == 0)
    return 0;
  const uint32_t top = 31 - __clz((int)fraction); /* fraction x 2^-9 */
  return (uint8_t)((top + 1) << 3 | (fraction << (3 - top) & 7));
}

/* Byte `block` of a row's four tile scales, times the shift, twice in bf16. */
__device__ __forceinline__ __nv_bfloat162 fp4_scale_pair(uint32_t scales, uint32_t block)
{
  const uint32_t one = (127 - 10 + FP4_SHIFT_EXPONENT) << 7;
  const uint32_t bits = (scales >> 8 * block & 255u) * 0x00100010u + one * 0x00010001u;
  return *reinterpret_cast<const __nv_bfloat162 *>(&bits);
}

#ifdef SC_FP4_NATIVE
/* cvt.rn.f16x2.e2m1x2: targets with the a suffix alone. Codes are exact in bf16. */
__device__ __forceinline__ __nv_bfloat162 fp4_pair(uint32_t word, int i)
{
  const uint32_t low = word >> 4 * i & 15u, high = word >> (4 * i + 16) & 15u;
  const __half2_raw raw = __nv_cvt_fp4x2_to_halfraw2((__nv_fp4x2_storage_t)(low | high << 4), __NV_E2M1);
  const float2 values = __half22float2(__half2(raw));
  return __floats2bfloat162_rn(values.x, values.y);
}
#else
/* Nibbles i and i + 4, x 2^-126. A nibble s e e m, moved to a bf16's sign and to its lowest exponent and highest
 * fraction bits, is that value: code 1 (0.5) as a subnormal, which is multiplied, not flushed (mul.bf16x2 keeps
 * subnormals). One multiplication moves both copies. */
__device__ __forceinline__ __nv_bfloat162 fp4_pair(uint32_t word, int i)
{
  const uint32_t half = i < 2 ? word : word >> 8;
  const uint32_t bits =
      (i % 2 ? (half & 0x00f000f0u) * (1u << 2 | 1u << 8) : (half & 0x000f000fu) * (1u << 6 | 1u << 12)) & 0x81c081c0u;
  return *reinterpret_cast<const __nv_bfloat162 *>(&bits);
}
#endif

/* One lane's word of a tile to its part of A: rows r and r + 8 have a scale each. */
__device__ __forceinline__ void fp4_unpack(uint32_t word, __nv_bfloat162 upper, __nv_bfloat162 lower, uint32_t out[4])
{
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const __nv_bfloat162 pair = __hmul2(fp4_pair(word, i), i % 2 ? lower : upper);
    out[i] = *reinterpret_cast<const uint32_t *>(&pair);
  }
}

/* ---- quantisation ---- */

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

/* Eight values to bf16. */
__device__ __forceinline__ void pack_bf16(const float value[8], uint4 &out)
{
  const __nv_bfloat162 pairs[4] = {
      __floats2bfloat162_rn(value[0], value[1]), __floats2bfloat162_rn(value[2], value[3]),
      __floats2bfloat162_rn(value[4], value[5]), __floats2bfloat162_rn(value[6], value[7])};
  out = *reinterpret_cast<const uint4 *>(pairs);
}

/* The E2M1 value nearest to x, ties to the even code: steps of 0.5 below 2, of 1 below 4, then of 2, up to 6. */
__device__ __forceinline__ float fp4_nearest(float x)
{
  const float size = fabsf(x), step = size < 2.0f ? 0.5f : size < 4.0f ? 1.0f : 2.0f, inverse = size < 2.0f ? 2.0f : size < 4.0f ? 1.0f : 0.5f;
  return copysignf(fminf(rintf(size * inverse) * step, 6.0f), x);
}

/* A block of 16 values to NVFP4 and back, less the global scale: code x scale. */
__device__ __forceinline__ void fp4_round_trip(float value[16], float global)
{
  float top = 0.0f, factor;
#pragma unroll
  for (int i = 0; i < 16; i++)
    top = fmaxf(top, fabsf(value[i]));
  const uint8_t scale = fp4_block_scale(top, global, &factor);
  const float decoded = __uint_as_float((uint32_t)scale << 20) * 0x1p120f;
#pragma unroll
  for (int i = 0; i < 16; i++)
    value[i] = factor > 0.0f ? fp4_nearest(__fmul_rn(value[i], factor)) * decoded : 0.0f;
}
