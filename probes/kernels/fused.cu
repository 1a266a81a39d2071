/* SPDX-License-Identifier: Apache-2.0
 * The fused NVFP4 layer: quantisation, padded permutation, and the two grouped GEMMs with their epilogues. Nothing here
 * tells the host anything: grids are sized by what the host knows, blocks beyond the rows in use return. */
#include "fp4.cuh"
#include "fused_args.h"

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

/* ---- permutation ---- */

/* One block an expert. slot_choice[padded row] = choice or -1; inverse[choice] = padded row; block_expert[block of
 * block_rows padded rows]; *padded_rows. Choices of an expert keep their order. Rows behind *padded_rows are not
 * written. */
extern "C" __global__ void __launch_bounds__(SC_FUSED_ALIGN_THREADS)
    sc_fused_align(const int32_t *chosen, int32_t *slot_choice, int32_t *inverse, int32_t *block_expert,
                   int32_t *padded_rows, uint64_t n, uint32_t experts, uint32_t block_rows)
{
  constexpr int WARPS = SC_FUSED_ALIGN_THREADS / SC_WARP;
  __shared__ uint32_t counts[SC_MAX_EXPERTS];
  __shared__ uint32_t warp_sums[WARPS];
  __shared__ uint32_t warp_first[WARPS];
  const uint32_t expert = blockIdx.x, lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP;
  for (uint32_t e = threadIdx.x; e < experts; e += blockDim.x)
    counts[e] = 0;
  __syncthreads();
  for (uint64_t i = threadIdx.x; i < n; i += blockDim.x)
    atomicAdd(&counts[chosen[i]], 1u);
  __syncthreads();

  uint32_t before = 0; /* padded rows of the experts before this one */
  for (uint32_t e = threadIdx.x; e < expert; e += blockDim.x)
    before += (counts[e] + block_rows - 1) / block_rows * block_rows;
  for (int offset = SC_WARP / 2; offset > 0; offset /= 2)
    before += __shfl_xor_sync(0xffffffffu, before, offset);
  if (lane == 0)
    warp_sums[warp] = before;
  __syncthreads();
  before = 0;
  for (int w = 0; w < WARPS; w++)
    before += warp_sums[w];
  const uint32_t count = counts[expert], padded = (count + block_rows - 1) / block_rows * block_rows;

  uint32_t placed = 0;
  for (uint64_t start = 0; start < n; start += blockDim.x) {
    const uint64_t i = start + threadIdx.x;
    const bool mine = i < n && chosen[i] == (int32_t)expert;
    const uint32_t ballot = __ballot_sync(0xffffffffu, mine);
    __syncthreads(); /* warp_first of the round before has been read */
    if (lane == 0)
      warp_first[warp] = __popc(ballot);
    __syncthreads();
    uint32_t rank = placed + __popc(ballot & ((1u << lane) - 1)), round = 0;
    for (uint32_t w = 0; w < WARPS; w++) {
      rank += w < warp ? warp_first[w] : 0;
      round += warp_first[w];
    }
    if (mine) {
      slot_choice[before + rank] = (int32_t)i;
      inverse[i] = (int32_t)(before + rank);
    }
    placed += round;
  }
  for (uint32_t r = count + threadIdx.x; r < padded; r += blockDim.x)
    slot_choice[before + r] = -1;
  for (uint32_t b = threadIdx.x; b < padded / block_rows; b += blockDim.x)
    block_expert[before / block_rows + b] = (int32_t)expert;
  if (expert == experts - 1 && threadIdx.x == 0)
    *padded_rows = (int32_t)(before + padded);
}

/* ---- grouped GEMM ---- */

constexpr int K_STEP = 64; /* four scale blocks: one a lane of a quad */
constexpr int A_STRIDE =
    K_STEP + 4;          /* bf16 values a row in shared memory: 8-byte reads of a half-warp hit all banks once */
constexpr int TILES = 4; /* n8 tiles a warp: up 2 x up + 2 x gate, down 4 x 8 columns */

__device__ __forceinline__ void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* One k step of A for one block of rows, unpacked into shared memory in fp4_position order. Rows that are padding, and
 * k beyond the end, are zeros. source_row[r] is the row of A, or -1. */
template <int ROWS, bool A_FP4>
__device__ __forceinline__ void load_a(const sc_fused_gemm &p, const int32_t *source_row, uint32_t k0,
                                       bf16 (*tile)[A_STRIDE])
{
  for (uint32_t i = threadIdx.x; i < ROWS * (K_STEP / 16); i += SC_FUSED_THREADS) {
    const uint32_t row = i / (K_STEP / 16), block = i % (K_STEP / 16), column = k0 + block * 16;
    const int32_t from = source_row[row];
    uint32_t values[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (from >= 0 && column < p.k) {
      if (A_FP4) {
        const uint2 codes =
            *reinterpret_cast<const uint2 *>(static_cast<const uint8_t *>(p.a) + ((uint64_t)from * p.k + column) / 2);
        const __nv_bfloat162 scale = fp4_scale_pair(p.a_scales[((uint64_t)from * p.k + column) / 16]);
        fp4_unpack8(codes.x, scale, values);
        fp4_unpack8(codes.y, scale, values + 4);
      } else {
        const uint4 *in =
            reinterpret_cast<const uint4 *>(static_cast<const bf16 *>(p.a) + (uint64_t)from * p.k + column);
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const uint4 v = in[half]; /* (v0,v1) (v2,v3) (v4,v5) (v6,v7) to (v0,v4) (v1,v5) (v2,v6) (v3,v7) */
          values[4 * half + 0] = __byte_perm(v.x, v.z, 0x5410);
          values[4 * half + 1] = __byte_perm(v.x, v.z, 0x7632);
          values[4 * half + 2] = __byte_perm(v.y, v.w, 0x5410);
          values[4 * half + 3] = __byte_perm(v.y, v.w, 0x7632);
        }
      }
    }
    uint2 *to = reinterpret_cast<uint2 *>(&tile[row][block * 16]);
#pragma unroll
    for (int j = 0; j < 4; j++)
      to[j] = make_uint2(values[2 * j], values[2 * j + 1]);
  }
}

/* A weight tile of one k step in registers: for each of the warp's tiles, row lane / 4, scale block lane % 4. */
struct WeightStep {
  uint2 codes[TILES];
  uint8_t scales[TILES];
};

/* What one lane reads of W: its row in each tile, -1 where the tile has no such row. */
struct WeightRows {
  const uint8_t *codes[TILES];
  const uint8_t *scales[TILES];
};

__device__ __forceinline__ void load_w(const sc_fused_gemm &p, const WeightRows &rows, uint32_t k0, WeightStep &step)
{
  const uint32_t quarter = threadIdx.x % 4;
  const bool inside = k0 + quarter * 16 < p.k;
#pragma unroll
  for (int t = 0; t < TILES; t++) {
    const bool there = inside && rows.codes[t] != nullptr;
    step.codes[t] = there ? __ldg(reinterpret_cast<const uint2 *>(rows.codes[t] + k0 / 2)) : make_uint2(0, 0);
    step.scales[t] = there ? __ldg(rows.scales[t] + (uint64_t)(k0 / K_STEP) * 512) : (uint8_t)0;
  }
}

/* The first value of (limit, alpha, beta) that was not given is a value that changes nothing: +inf, 1, 0. */
__device__ __forceinline__ float activation(const sc_fused_gemm &p, float gate, float up)
{
  if (p.act_kind == SC_ACT_RELU2) {
    gate = gate < 0.0f ? 0.0f : gate;
    return gate * gate;
  }
  gate = gate > p.act_limit ? p.act_limit : gate;
  up = up > p.act_limit ? p.act_limit : up < -p.act_limit ? -p.act_limit : up;
  return (up + p.act_beta) * (gate / (1.0f + expf(-p.act_alpha * gate)));
}

/* Accumulators of a row pair to the intermediate: scale, bias, activation, and quantisation of the 16 columns that a
 * quad holds. */
template <int ROWS, bool A_FP4>
__device__ __forceinline__ void store_up(const sc_fused_gemm &p, float acc[ROWS / 16][TILES][4], uint64_t row0,
                                         uint32_t column0, uint32_t expert, float alpha)
{
  const uint32_t lane = threadIdx.x % SC_WARP, quad_row = lane / 4, quad = lane % 4;
  const float *bias = p.bias ? p.bias + (uint64_t)expert * p.w_rows : nullptr;
  const bool quantised = A_FP4 && p.out_global != nullptr; /* none yet: the calibrating run */
  const float global = quantised ? *p.out_global : 1.0f;
#pragma unroll
  for (int m = 0; m < ROWS / 16; m++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint64_t row = row0 + m * 16 + half * 8 + quad_row;
      float h[4], top = 0.0f;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int tile = i / 2, reg = half * 2 + i % 2;
        const uint32_t column = column0 + tile * 8 + quad * 2 + i % 2;
        float up = acc[m][tile][reg] * alpha, gate = (p.gated ? acc[m][tile + 2][reg] : acc[m][tile][reg]) * alpha;
        if (bias) {
          up += bias[column];
          gate += bias[p.gated ? p.n + column : column];
        }
        h[i] = activation(p, gate, up);
        top = fmaxf(top, fabsf(h[i]));
      }
      if (quantised) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        float factor;
        const uint8_t scale = fp4_block_scale(top, global, &factor);
        uint8_t *codes = static_cast<uint8_t *>(p.out) + (row * p.n + column0) / 2;
        codes[quad] = fp4_encode_pair(h[0], h[1], factor);
        codes[4 + quad] = fp4_encode_pair(h[2], h[3], factor);
        if (quad == 0)
          p.out_scales[(row * p.n + column0) / 16] = scale;
      } else {
        bf16 *out = static_cast<bf16 *>(p.out) + row * p.n + column0 + quad * 2;
        *reinterpret_cast<__nv_bfloat162 *>(out) = __floats2bfloat162_rn(h[0], h[1]);
        *reinterpret_cast<__nv_bfloat162 *>(out + 8) = __floats2bfloat162_rn(h[2], h[3]);
      }
    }
  }
}

template <int ROWS>
__device__ __forceinline__ void store_down(const sc_fused_gemm &p, float acc[ROWS / 16][TILES][4], uint64_t row0,
                                           uint32_t column0, uint32_t expert, float alpha)
{
  const uint32_t lane = threadIdx.x % SC_WARP, quad_row = lane / 4, quad = lane % 4;
  const float *bias = p.bias ? p.bias + (uint64_t)expert * p.w_rows : nullptr;
#pragma unroll
  for (int m = 0; m < ROWS / 16; m++) {
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      const uint32_t column = column0 + t * 8 + quad * 2;
      if (column >= p.n)
        continue;
      const float bias0 = bias ? bias[column] : 0.0f, bias1 = bias ? bias[column + 1] : 0.0f;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const uint64_t at = (row0 + m * 16 + half * 8 + quad_row) * p.n + column;
        const float first = acc[m][t][half * 2] * alpha + bias0, second = acc[m][t][half * 2 + 1] * alpha + bias1;
        if (p.out_bf16)
          *reinterpret_cast<__nv_bfloat162 *>(static_cast<bf16 *>(p.out) + at) = __floats2bfloat162_rn(first, second);
        else
          *reinterpret_cast<float2 *>(static_cast<float *>(p.out) + at) = make_float2(first, second);
      }
    }
  }
}

/* ROWS padded rows x (64 intermediate | 128 output) columns a block; blocks of the same rows follow each other. As many
 * blocks of rows as the host's bound says. */
template <int ROWS, bool A_FP4, bool UP> __device__ __forceinline__ void fused_gemm(const sc_fused_gemm &p)
{
  __shared__ __align__(16) bf16 tile[2][ROWS][A_STRIDE];
  __shared__ int32_t source_row[ROWS];
  constexpr uint32_t WIDTH = UP ? SC_FUSED_UP_COLUMNS : SC_FUSED_DOWN_COLUMNS;
  const uint32_t column_blocks = (p.n + WIDTH - 1) / WIDTH, row_block = blockIdx.x / column_blocks;
  const uint64_t row0 = (uint64_t)row_block * ROWS;
  if ((int64_t)row0 >= *p.padded_rows)
    return;
  const uint32_t expert = (uint32_t)p.block_expert[row_block];
  const uint32_t warp = threadIdx.x / SC_WARP, lane = threadIdx.x % SC_WARP, quad_row = lane / 4, quad = lane % 4;
  for (uint32_t r = threadIdx.x; r < ROWS; r += SC_FUSED_THREADS) {
    const int32_t choice = UP ? p.slot_choice[row0 + r] : 0;
    source_row[r] = UP ? (choice < 0 ? -1 : choice / (int32_t)p.top_k) : (int32_t)(row0 + r);
  }

  const uint32_t column0 = blockIdx.x % column_blocks * WIDTH + warp * (WIDTH / 4);
  WeightRows rows;
#pragma unroll
  for (int t = 0; t < TILES; t++) {
    const uint32_t column =
        column0 + (UP ? t % 2 : t) * 8 + quad_row; /* n is a multiple of 16: a tile is all in or all out */
    const bool there = column < p.n && (!UP || t < 2 || p.gated);
    const uint64_t row = UP && t >= 2 ? p.n + column : column;
    rows.codes[t] = there ? p.w + ((uint64_t)expert * p.w_rows + row) * (p.k / 2) + quad * 8 : nullptr;
    rows.scales[t] = there ? p.w_scales + expert * p.w_scale_bytes + fp4_swizzled(row, quad, p.k / 16) : nullptr;
  }

  float acc[ROWS / 16][TILES][4] = {};
  WeightStep now, next;
  load_w(p, rows, 0, now);
  __syncthreads(); /* source_row */
  load_a<ROWS, A_FP4>(p, source_row, 0, tile[0]);
  __syncthreads();
  int buffer = 0;
  for (uint32_t k0 = 0; k0 < p.k; k0 += K_STEP) {
    const bool more = k0 + K_STEP < p.k;
    if (more) {
      load_w(p, rows, k0 + K_STEP, next);
      load_a<ROWS, A_FP4>(p, source_row, k0 + K_STEP, tile[buffer ^ 1]);
    }
    uint32_t b[TILES][8];
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      const __nv_bfloat162 scale = fp4_scale_pair(now.scales[t]);
      fp4_unpack8(now.codes[t].x, scale, b[t]);
      fp4_unpack8(now.codes[t].y, scale, b[t] + 4);
    }
#pragma unroll
    for (int s = 0; s < 4; s++) {
#pragma unroll
      for (int m = 0; m < ROWS / 16; m++) {
        const uint2 top = *reinterpret_cast<const uint2 *>(&tile[buffer][m * 16 + quad_row][quad * 16 + s * 4]);
        const uint2 low = *reinterpret_cast<const uint2 *>(&tile[buffer][m * 16 + 8 + quad_row][quad * 16 + s * 4]);
        const uint32_t a[4] = {top.x, low.x, top.y, low.y};
#pragma unroll
        for (int t = 0; t < TILES; t++)
          mma_bf16(acc[m][t], a, b[t] + 2 * s);
      }
    }
    now = next;
    buffer ^= 1;
    __syncthreads();
  }

  if (column0 >= p.n)
    return;
  const float alpha = p.alpha[expert] * FP4_UNSHIFT * (A_FP4 ? FP4_UNSHIFT : 1.0f);
  if (UP)
    store_up<ROWS, A_FP4>(p, acc, row0, column0, expert, alpha);
  else
    store_down<ROWS>(p, acc, row0, column0, expert, alpha);
}

#define FUSED_KERNEL(name, rows, a_fp4, up)                                                                    \
  extern "C" __global__ void __launch_bounds__(SC_FUSED_THREADS) name(const __grid_constant__ sc_fused_gemm p) \
  {                                                                                                            \
    fused_gemm<rows, a_fp4, up>(p);                                                                            \
  }

FUSED_KERNEL(sc_fused_up_w4a4_small, SC_FUSED_ROWS_SMALL, true, true)
FUSED_KERNEL(sc_fused_up_w4a4_large, SC_FUSED_ROWS_LARGE, true, true)
FUSED_KERNEL(sc_fused_up_w4a16_small, SC_FUSED_ROWS_SMALL, false, true)
FUSED_KERNEL(sc_fused_up_w4a16_large, SC_FUSED_ROWS_LARGE, false, true)
FUSED_KERNEL(sc_fused_down_w4a4_small, SC_FUSED_ROWS_SMALL, true, false)
FUSED_KERNEL(sc_fused_down_w4a4_large, SC_FUSED_ROWS_LARGE, true, false)
FUSED_KERNEL(sc_fused_down_w4a16_small, SC_FUSED_ROWS_SMALL, false, false)
FUSED_KERNEL(sc_fused_down_w4a16_large, SC_FUSED_ROWS_LARGE, false, false)
