/* SPDX-License-Identifier: Apache-2.0
 * NVFP4 in registers: codes to bf16 pairs, block scales, quantisation of 16 values. Device code only.
 *
 * Every e2m1 x e4m3 product is exact in bf16, so unpacked weights carry code x scale, times a power of two that comes
 * of how both are stored; the epilogue takes it out again (FP4_UNSHIFT). */
#pragma once

#include <cfloat>

#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include "common.cuh"
#include "fused_args.h"
#include "ptx.cuh"

/* ---- tiles: how the GEMMs hold weights ----
 *
 * SC_TILE_ROWS rows of W by SC_TILE_COLUMNS columns, SC_TILE_BYTES bytes: 512 of codes, then the scales of each row's
 * four blocks. SC_TILE_GROUP rows of tiles stand together (the last such group may have fewer): for each k tile, one
 * tile of each of them.
 *
 * The 16 bytes of lane l (r = l / 4, q = l % 4) are its part of the tile as the tensor cores take it: for columns 16 t
 * to 16 t + 15 the pairs (r; 2q) (r + 8; 2q) (r; 2q + 8) (r + 8; 2q + 8). Words 0 and 1 hold the pairs of t = 0 and 1,
 * words 2 and 3 those of t = 2 and 3. A code s e e m that stands in bits 15, 8, 7, 6 of a half word is a bf16 of its
 * value, x 2^-126, so a pair is SC_TILE_CODES of a word rotated to the left by SC_TILE_ROTATION. Three pairs fill three
 * quarters of a word; the quarters that two words leave free, SC_TILE_FIRST in the first and others in the second, hold
 * the fourth pair of both.
 *
 * A tile's scale is an E4M3 number again, but in 5 bits of exponent (bias 23) and 3 of fraction, so that none is
 * subnormal and the highest bits of an exponent make a bf16 of it. Where the scale is 0 the codes are 0 as well. Scales
 * of a row's blocks 0 and 1 are SC_TILE_SCALES of its word, those of blocks 2 and 3 of the word rotated by 8. */

#ifdef SC_FP4_NATIVE
constexpr uint32_t FP4_EXPONENT = 128; /* the highest bits of a scale's exponent in bf16: scales x 2^24 */
constexpr float FP4_UNSHIFT = 0x1p-24f;
#else
constexpr uint32_t FP4_EXPONENT = 192; /* scales x 2^88, of codes x 2^-126; whatever stands in a tile is finite */
constexpr float FP4_UNSHIFT = 0x1p38f;
#endif

/* E4M3 to a tile's scale. */
__device__ __forceinline__ uint8_t fp4_tile_scale(uint8_t scale)
{
  const uint32_t exponent = scale >> 3 & 15, fraction = scale & 7;
  if (exponent > 0)
    return (uint8_t)((exponent + 16) << 3 | fraction);
  if (fraction == 0)
    return 0;
  const uint32_t top = 31 - __clz((int)fraction); /* fraction x 2^-9 */
  return (uint8_t)((top + 14) << 3 | (fraction << (3 - top) & 7));
}

/* bits: 0 to 32. */
__device__ __forceinline__ uint32_t rotate_left(uint32_t word, uint32_t bits)
{
  return word << (bits & 31) | word >> (-bits & 31);
}

/* A row's scales of blocks 2 i and 2 i + 1. */
__device__ __forceinline__ __nv_bfloat162 fp4_scales(uint32_t scales, int i)
{
  const uint32_t bits =
      select_bits(SC_TILE_SCALES, i == 0 ? scales : rotate_left(scales, 8), FP4_EXPONENT << 7 | FP4_EXPONENT << 23);
  return *reinterpret_cast<const __nv_bfloat162 *>(&bits);
}

/* Two codes in their places, to bf16. */
__device__ __forceinline__ __nv_bfloat162 fp4_pair(uint32_t codes)
{
#ifdef SC_FP4_NATIVE /* cvt.rn.f16x2.e2m1x2: targets with the a suffix alone. Codes are exact in bf16. */
  const uint32_t nibbles = (codes >> 6 & 0x00070007u) | (codes >> 12 & 0x00080008u);
  const __half2_raw raw = __nv_cvt_fp4x2_to_halfraw2((__nv_fp4x2_storage_t)(nibbles | nibbles >> 12), __NV_E2M1);
  const float2 values = __half22float2(__half2(raw));
  return __floats2bfloat162_rn(values.x, values.y);
#else /* 0.5 is a subnormal there, and mul.bf16x2 keeps those */
  return *reinterpret_cast<const __nv_bfloat162 *>(&codes);
#endif
}

__device__ __forceinline__ uint32_t fp4_times(uint32_t codes, __nv_bfloat162 scale)
{
  const __nv_bfloat162 product = __hmul2(fp4_pair(codes & SC_TILE_CODES), scale);
  return *reinterpret_cast<const uint32_t *>(&product);
}

/* A lane's words 2 i and 2 i + 1 of a tile to its part of A for two multiplications. Scales of blocks 2 i and 2 i + 1
 * of rows r (upper) and r + 8 (lower). Shifts stand for rotations where no code comes around. */
__device__ __forceinline__ void fp4_unpack(uint32_t first, uint32_t second, __nv_bfloat162 upper, __nv_bfloat162 lower,
                                           uint32_t out[2][4])
{
  const uint32_t first_8 = rotate_left(first, 8), second_10 = rotate_left(second, 10),
                 left = select_bits(SC_TILE_FIRST, first, second);
  const __nv_bfloat162 upper_0 = __low2bfloat162(upper), lower_0 = __low2bfloat162(lower);
  const __nv_bfloat162 upper_1 = __high2bfloat162(upper), lower_1 = __high2bfloat162(lower);
  out[0][0] = fp4_times(first << 2, upper_0);
  out[0][1] = fp4_times(first_8, lower_0);
  out[0][2] = fp4_times(first_8 << 4, upper_0);
  out[0][3] = fp4_times(left, lower_0);
  out[1][0] = fp4_times(second << 4, upper_1);
  out[1][1] = fp4_times(second_10, lower_1);
  out[1][2] = fp4_times(second_10 << 4, upper_1);
  out[1][3] = fp4_times(left << 6, lower_1);
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
  const __nv_bfloat162 pairs[4] = {__floats2bfloat162_rn(value[0], value[1]), __floats2bfloat162_rn(value[2], value[3]),
                                   __floats2bfloat162_rn(value[4], value[5]),
                                   __floats2bfloat162_rn(value[6], value[7])};
  out = *reinterpret_cast<const uint4 *>(pairs);
}

/* The E2M1 value nearest to x, ties to the even code: steps of 0.5 below 2, of 1 below 4, then of 2, up to 6. */
__device__ __forceinline__ float fp4_nearest(float x)
{
  const float size = fabsf(x),
              step = size < 2.0f   ? 0.5f
                     : size < 4.0f ? 1.0f
                                   : 2.0f,
              inverse = size < 2.0f   ? 2.0f
                        : size < 4.0f ? 1.0f
                                      : 0.5f;
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
