/* SPDX-License-Identifier: Apache-2.0
 * The fused NVFP4 layer: quantisation, tiles, padded permutation, the kernels of the two grouped GEMMs, which are in
 * fused_mma.cu and fused_wgmma.cu. Nothing here tells the host anything: grids are sized by what the host knows. */
#include "fp4.cuh"
#include "fused_args.h"
#include "fused_mma.cu"
#include "fused_wgmma.cu"

/* ---- set-up: largest magnitude, quantisation ---- */

/* amax[0] = max(amax[0], |x|): start it at 0. Bits of non-negative floats order as integers. */
template <typename T> __device__ void amax(const T *x, uint64_t n, float *result)
{
  float top = 0.0f;
  for (uint64_t i = grid_first(); i < n; i += grid_step())
    top = fmaxf(top, fabsf(to_float(x[i])));
  for (int offset = SC_WARP / 2; offset > 0; offset /= 2)
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
  if (threadIdx.x % SC_WARP == 0)
    atomicMax(reinterpret_cast<unsigned *>(result), __float_as_uint(top));
}

extern "C" __global__ void sc_fp4_amax_f32(const float *x, uint64_t n, float *result) { amax(x, n, result); }
extern "C" __global__ void sc_fp4_amax_bf16(const bf16 *x, uint64_t n, float *result) { amax(x, n, result); }

/* global[i] = 2688 / amax[i] (1 when 0); alpha[i] = 1 / (activation's x weight's encode scale). */
extern "C" __global__ void sc_fp4_globals(const float *amaxes, float *globals, uint64_t n)
{
  for (uint64_t i = grid_first(); i < n; i += grid_step())
    globals[i] = amaxes[i] > 0.0f ? fminf(__fdiv_rn(448.0f * 6.0f, amaxes[i]), FLT_MAX) : 1.0f;
}

/* a_global NULL: 1. */
extern "C" __global__ void sc_fp4_alphas(const float *a_global, const float *w_globals, float *alphas, uint64_t n)
{
  for (uint64_t i = grid_first(); i < n; i += grid_step())
    alphas[i] = __fdiv_rn(1.0f, __fmul_rn(a_global ? *a_global : 1.0f, w_globals[i]));
}

/* One thread a block of 16 values. Scales in row order. */
template <typename T>
__device__ void quantise(const T *x, uint8_t *codes, uint8_t *scales, uint64_t rows, uint32_t columns,
                         const float *global)
{
  const uint64_t blocks = columns / 16;
  for (uint64_t i = grid_first(); i < rows * blocks; i += grid_step()) {
    float value[16], top = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; j++) {
      value[j] = to_float(x[i * 16 + j]);
      top = fmaxf(top, fabsf(value[j]));
    }
    float factor;
    const uint8_t scale = fp4_block_scale(top, *global, &factor);
    uint2 packed = {0, 0};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      packed.x |= (uint32_t)fp4_encode_pair(value[2 * j], value[2 * j + 1], factor) << 8 * j;
      packed.y |= (uint32_t)fp4_encode_pair(value[2 * j + 8], value[2 * j + 9], factor) << 8 * j;
    }
    reinterpret_cast<uint2 *>(codes)[i] = packed;
    scales[i] = scale;
  }
}

extern "C" __global__ void sc_fp4_quantise_f32(const float *x, uint8_t *codes, uint8_t *scales, uint64_t rows,
                                               uint32_t columns, const float *global)
{
  quantise(x, codes, scales, rows, columns, global);
}

extern "C" __global__ void sc_fp4_quantise_bf16(const bf16 *x, uint8_t *codes, uint8_t *scales, uint64_t rows,
                                                uint32_t columns, const float *global)
{
  quantise(x, codes, scales, rows, columns, global);
}

/* The values that quantisation leaves, less the global scale: code x scale, exact in bf16. One thread 16 values. */
template <typename T> __device__ void round_trip(const T *x, bf16 *out, uint64_t n, const float *global)
{
  for (uint64_t i = grid_first(); i < n / 16; i += grid_step()) {
    float value[16];
    uint4 packed[2];
#pragma unroll
    for (int j = 0; j < 16; j++)
      value[j] = to_float(x[i * 16 + j]);
    fp4_round_trip(value, *global);
    pack_bf16(value, packed[0]);
    pack_bf16(value + 8, packed[1]);
    reinterpret_cast<uint4 *>(out)[2 * i] = packed[0];
    reinterpret_cast<uint4 *>(out)[2 * i + 1] = packed[1];
  }
}

extern "C" __global__ void sc_fp4_round_trip_f32(const float *x, bf16 *out, uint64_t n, const float *global)
{
  round_trip(x, out, n, global);
}

extern "C" __global__ void sc_fp4_round_trip_bf16(const bf16 *x, bf16 *out, uint64_t n, const float *global)
{
  round_trip(x, out, n, global);
}

extern "C" __global__ void sc_fp4_to_bf16(const float *x, bf16 *out, uint64_t n)
{
  for (uint64_t i = grid_first(); i < n; i += grid_step())
    out[i] = __float2bfloat16_rn(x[i]);
}

/* Checkpoint rows to [up; gate]: layout 0 interleaved (gate0, up0, ...), 1 packed ([gate; up]). Rows of row_bytes
 * bytes. */
extern "C" __global__ void sc_fp4_reorder_w13(const uint8_t *from, uint8_t *to, uint64_t rows, uint64_t row_bytes,
                                              uint32_t layout)
{
  const uint64_t half = rows / 2;
  for (uint64_t i = grid_first(); i < rows * row_bytes; i += grid_step()) {
    const uint64_t row = i / row_bytes, which = row % half;
    const uint64_t source = layout == 0 ? 2 * which + (row < half ? 1 : 0) : row < half ? half + which : which;
    to[i] = from[source * row_bytes + i % row_bytes];
  }
}

/* Row-order block scales to the 128x4 swizzle. Every byte of the padded result is written. */
extern "C" __global__ void sc_fp4_swizzle(const uint8_t *scales, uint8_t *swizzled, uint64_t rows, uint32_t blocks)
{
  const uint64_t padded_blocks = (blocks + 3) / 4 * 4, padded_rows = (rows + 127) / 128 * 128;
  for (uint64_t i = grid_first(); i < padded_rows * padded_blocks; i += grid_step()) {
    const uint64_t row = i / padded_blocks, block = i % padded_blocks;
    swizzled[fp4_swizzled(row, block, blocks)] = row < rows && block < blocks ? scales[row * blocks + block] : 0;
  }
}

/* Codes [rows][columns / 2] and swizzled scales to tiles. gated: rows are [up; gate], and a tile has 8 of each. One
 * thread a lane of a tile. */
extern "C" __global__ void sc_fp4_tile(const uint8_t *codes, const uint8_t *scales, uint8_t *tiles, uint64_t rows,
                                       uint32_t columns, uint32_t gated)
{
  const uint64_t k_tiles = (columns + SC_TILE_COLUMNS - 1) / SC_TILE_COLUMNS, blocks = columns / 16,
                 row_tiles = rows / SC_TILE_ROWS;
  for (uint64_t i = grid_first(); i < row_tiles * k_tiles * SC_WARP; i += grid_step()) {
    const uint64_t tile = i / SC_WARP, row_tile = tile / k_tiles, k_tile = tile % k_tiles;
    const uint32_t lane = i % SC_WARP, r = lane / 4, q = lane % 4;
    const uint64_t row[2] = {gated ? row_tile * 8 + r : row_tile * 16 + r,
                             gated ? rows / 2 + row_tile * 8 + r : row_tile * 16 + 8 + r};
    uint32_t word[4] = {0, 0, 0, 0}, tile_scales[2] = {0, 0};
#pragma unroll
    for (uint32_t t = 0; t < 4; t++) {
      const uint64_t block = k_tile * 4 + t;
      if (block >= blocks)
        break;
#pragma unroll
      for (uint32_t pair = 0; pair < 4; pair++) {
        const uint64_t of = row[pair % 2];
        const uint8_t scale = scales[fp4_swizzled(of, block, blocks)];
        const uint32_t two = scale ? codes[of * (columns / 2) + block * 8 + pair / 2 * 4 + q] : 0; /* codes */
        const uint32_t placed = (two & 7) << 6 | (two & 8) << 12 | (two & 0x70) << 18 | (two & 0x80) << 24;
        const uint32_t bits = rotate_left(placed, 32 - SC_TILE_ROTATION(t, pair)), first = t / 2 * 2;
        if (pair < 3) {
          word[t] |= bits;
        } else {
          word[first] |= bits & SC_TILE_FIRST;
          word[first + 1] |= bits & ~SC_TILE_FIRST;
        }
        if (pair < 2)
          tile_scales[pair] |= rotate_left((uint32_t)fp4_tile_scale(scale) << (t % 2 ? 20 : 4), t < 2 ? 0 : 24);
      }
    }
    const uint64_t group = row_tile / SC_TILE_GROUP * SC_TILE_GROUP,
                   in_group = min((uint64_t)SC_TILE_GROUP, row_tiles - group);
    uint8_t *out = tiles + (group * k_tiles + k_tile * in_group + row_tile % SC_TILE_GROUP) * SC_TILE_BYTES;
    reinterpret_cast<uint4 *>(out)[lane] = make_uint4(word[0], word[1], word[2], word[3]);
    if (q == 0) {
      uint32_t *out_scales = reinterpret_cast<uint32_t *>(out + SC_TILE_ROWS * SC_TILE_COLUMNS / 2);
      out_scales[r] = tile_scales[0];
      out_scales[r + 8] = tile_scales[1];
    }
  }
}

/* ---- permutation ---- */

/* What a warp of sc_fused_align looks at: its share of the choices, in order, 128 at a time so that loads overlap. */
template <typename Work>
__device__ __forceinline__ void each_choice(const int32_t *chosen, uint64_t first, uint64_t last, Work work)
{
  constexpr int AT_ONCE = 4;
  const uint32_t lane = threadIdx.x % SC_WARP;
  for (uint64_t start = first; start < last; start += AT_ONCE * SC_WARP) {
    int32_t expert[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const uint64_t at = start + i * SC_WARP + lane;
      expert[i] = at < last ? chosen[at] : -1;
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
      work(start + i * SC_WARP + lane, expert[i]);
  }
}

/* One block an expert. slot_choice[padded row] = choice, rows in use alone; inverse[choice] = padded row; blocks of
 * block_rows padded rows, *block_count of them. Choices of an expert keep their order. */
extern "C" __global__ void __launch_bounds__(SC_FUSED_ALIGN_THREADS)
    sc_fused_align(const int32_t *chosen, int32_t *slot_choice, int32_t *inverse, sc_fused_block *blocks,
                   int32_t *block_count, uint64_t n, uint32_t experts, uint32_t block_rows)
{
  constexpr uint32_t MOST_WARPS = SC_FUSED_ALIGN_THREADS / SC_WARP;
  __shared__ uint32_t counts[SC_MAX_EXPERTS];
  __shared__ uint32_t warp_blocks[MOST_WARPS], warp_choices[MOST_WARPS];
  const uint32_t expert = blockIdx.x, lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP;
  const uint32_t warps = blockDim.x / SC_WARP;
  const uint64_t share = (n + warps - 1) / warps, first = min(warp * share, n), last = min(first + share, n);
  for (uint32_t e = threadIdx.x; e < experts; e += blockDim.x)
    counts[e] = 0;
  __syncthreads();
  uint32_t own_choices = 0; /* of this warp's share, the expert's */
  each_choice(chosen, first, last, [&](uint64_t, int32_t e) {
    if (e >= 0)
      atomicAdd(&counts[e], 1u);
    own_choices += __popc(__ballot_sync(0xffffffffu, e == (int32_t)expert));
  });
  __syncthreads();

  uint32_t before = 0; /* blocks of the experts before this one */
  for (uint32_t e = threadIdx.x; e < expert; e += blockDim.x)
    before += (counts[e] + block_rows - 1) / block_rows;
  for (int offset = SC_WARP / 2; offset > 0; offset /= 2)
    before += __shfl_xor_sync(0xffffffffu, before, offset);
  if (lane == 0) {
    warp_blocks[warp] = before;
    warp_choices[warp] = own_choices;
  }
  __syncthreads();
  before = 0;
  uint32_t placed = 0; /* choices of the expert in the shares of the warps before */
  for (uint32_t w = 0; w < warps; w++) {
    before += warp_blocks[w];
    placed += w < warp ? warp_choices[w] : 0;
  }
  const uint32_t count = counts[expert], own = (count + block_rows - 1) / block_rows;
  const uint64_t first_row = (uint64_t)before * block_rows;
  if (own_choices > 0)
    each_choice(chosen, first, last, [&](uint64_t i, int32_t e) {
      const uint32_t ballot = __ballot_sync(0xffffffffu, e == (int32_t)expert);
      if (e == (int32_t)expert) {
        const uint64_t row = first_row + placed + __popc(ballot & ((1u << lane) - 1));
        slot_choice[row] = (int32_t)i;
        inverse[i] = (int32_t)row;
      }
      placed += __popc(ballot);
    });
  for (uint32_t b = threadIdx.x; b < own; b += blockDim.x)
    blocks[before + b] = {(int32_t)expert, (int32_t)before, (int32_t)own,
                          (int32_t)min(block_rows, count - b * block_rows)};
  if (expert == experts - 1 && threadIdx.x == 0)
    *block_count = (int32_t)(before + own);
}

/* ---- the grouped GEMMs: [up; gate] with the activation, down; for blocks of 8 to 128 rows ---- */

#define GEMM_KERNEL(name, rows, split, up)                                        \
  extern "C" __global__ void __launch_bounds__(FUSED_THREADS(rows), FUSED_BLOCKS) \
      name(const __grid_constant__ sc_fused_gemm p)                               \
  {                                                                               \
    FUSED_GEMM(rows, split, up);                                                  \
  }

GEMM_KERNEL(sc_fused_up_8_split, 8, true, true)
GEMM_KERNEL(sc_fused_up_8, 8, false, true)
GEMM_KERNEL(sc_fused_up_16, 16, false, true)
GEMM_KERNEL(sc_fused_up_32, 32, false, true)
GEMM_KERNEL(sc_fused_up_64, 64, false, true)
GEMM_KERNEL(sc_fused_down_8_split, 8, true, false)
GEMM_KERNEL(sc_fused_down_8, 8, false, false)
GEMM_KERNEL(sc_fused_down_16, 16, false, false)
GEMM_KERNEL(sc_fused_down_32, 32, false, false)
GEMM_KERNEL(sc_fused_down_64, 64, false, false)
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
GEMM_KERNEL(sc_fused_up_128, SC_WGMMA_MOST_ROWS, false, true)
GEMM_KERNEL(sc_fused_down_128, SC_WGMMA_MOST_ROWS, false, false)
#else /* never launched there */
extern "C" __global__ void sc_fused_up_128(const __grid_constant__ sc_fused_gemm) { __trap(); }
extern "C" __global__ void sc_fused_down_128(const __grid_constant__ sc_fused_gemm) { __trap(); }
#endif
