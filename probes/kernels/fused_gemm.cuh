/* SPDX-License-Identifier: Apache-2.0
 * What the fused layer's two GEMM kernels share: which rows and columns a block has, and what becomes of its sums.
 * Device code only. */
#pragma once

#include "fp4.cuh"
#include "fused_args.h"
#include "ptx.cuh"

/* A tile's columns of the output: 8 where it holds up and gate of each, else 16. */
__device__ __forceinline__ uint32_t tile_width(const sc_fused_gemm &p, bool up) { return up && p.gated ? 8 : 16; }

/* What the grid's piece `index` works on: `width` columns of the output by one block of rows. Pieces of the same
 * columns and expert follow each other, so that what they read of W is in the L2. */
struct Piece {
  sc_fused_block block;
  uint32_t index;  /* of the block */
  uint32_t column; /* first */
};

__device__ __forceinline__ Piece piece_of(const sc_fused_gemm &p, uint32_t index, uint32_t column_blocks,
                                          uint32_t width)
{
  const sc_fused_block any = p.blocks[index / column_blocks]; /* one of the expert's blocks, if not the right one */
  const uint32_t in_expert = index - (uint32_t)any.first * column_blocks,
                 block = (uint32_t)any.first + in_expert % any.count;
  return {p.blocks[block], block, in_expert / any.count * width};
}

/* Row of A that stands in padded row `row`, and where it begins. */
template <bool UP> __device__ __forceinline__ const bf16 *row_of_a(const sc_fused_gemm &p, uint64_t row)
{
  const uint64_t from = UP ? (uint32_t)p.slot_choice[row] / p.top_k : row;
  return static_cast<const bf16 *>(p.a) + from * p.k;
}

/* An expert's tiles in row of tiles `row_tile` and those that follow it in its group: of k tile 0, and how far it is to
 * the next. */
struct TileRow {
  const uint8_t *first;
  uint32_t stride;
};

__device__ __forceinline__ TileRow tiles_of_w(const sc_fused_gemm &p, uint32_t expert, uint32_t row_tile)
{
  const uint32_t k_tiles = (p.k + SC_TILE_COLUMNS - 1) / SC_TILE_COLUMNS, row_tiles = p.w_rows / SC_TILE_ROWS;
  const uint32_t within = row_tile % SC_TILE_GROUP, group = row_tile - within;
  return {p.w + ((uint64_t)(expert * row_tiles + group) * k_tiles + within) * SC_TILE_BYTES,
          min((uint32_t)SC_TILE_GROUP, row_tiles - group) * SC_TILE_BYTES};
}

/* A lane's part of a tile in shared memory. */
struct TileWords {
  uint4 codes;
  uint32_t upper, lower; /* scales of rows r and r + 8 */
};

/* Where a lane's codes and scales stand in a tile. */
struct TilePlace {
  uint32_t codes, scales;
};

__device__ __forceinline__ TilePlace tile_place(uint32_t lane)
{
  return {keep(lane * 16), keep(SC_TILE_ROWS * SC_TILE_COLUMNS / 2 + lane / 4 * 4)};
}

__device__ __forceinline__ TileWords read_tile(const uint8_t *tile, const TilePlace &place)
{
  const uint32_t *scales = reinterpret_cast<const uint32_t *>(tile + place.scales);
  return {*reinterpret_cast<const uint4 *>(tile + place.codes), scales[0], scales[8]};
}

/* Columns 32 i to 32 i + 31 of it, as a's part of two multiplications. */
__device__ __forceinline__ void unpack_tile(const TileWords &tile, int i, uint32_t a[2][4])
{
  fp4_unpack(i == 0 ? tile.codes.x : tile.codes.z, i == 0 ? tile.codes.y : tile.codes.w, fp4_scales(tile.upper, i),
             fp4_scales(tile.lower, i), a);
}

/* SC_ACT_GATED. A parameter that was not given is one that changes nothing: limit +inf, alpha 1, beta 0. */
__device__ __forceinline__ float activation(const sc_fused_gemm &p, float gate, float up)
{
  gate = gate > p.act_limit ? p.act_limit : gate;
  up = up > p.act_limit ? p.act_limit : up < -p.act_limit ? -p.act_limit : up;
  return (up + p.act_beta) * __fdividef(gate, 1.0f + __expf(-p.act_alpha * gate));
}

/* SC_ACT_RELU2. */
__device__ __forceinline__ float relu2(float x)
{
  x = x < 0.0f ? 0.0f : x;
  return x * x;
}

/* What a lane needs to make values of its sums: of tile rows r and r + 8 of a tile, r = lane / 4, where the output's
 * columns begin at `column`. */
struct Finish {
  float alpha, bias_upper, bias_lower;
};

__device__ __forceinline__ Finish finish_of(const sc_fused_gemm &p, uint32_t expert, uint32_t column,
                                            uint32_t tile_columns, uint32_t lane)
{
  Finish f = {p.alpha[expert], 0.0f, 0.0f};
  if (p.bias != nullptr && column < p.n) {
    const float *bias = p.bias + (uint64_t)expert * p.w_rows + column + lane / 4;
    f.bias_upper = bias[0];
    f.bias_lower = bias[tile_columns == 8 ? p.n : 8];
  }
  return f;
}

/* The sums of tile rows r and r + 8 for one row of A to the output: scale, biases, activation. x: column r. y: column r
 * + 8 where a tile is 16 columns wide; where it is 8, the two were up and gate of column r. */
template <bool UP, bool GATED>
__device__ __forceinline__ float2 finish_two(const sc_fused_gemm &p, const Finish &f, float upper, float lower)
{
  upper = upper * FP4_UNSHIFT * f.alpha + f.bias_upper;
  lower = lower * FP4_UNSHIFT * f.alpha + f.bias_lower;
  if (!UP)
    return make_float2(upper, lower);
  return GATED ? make_float2(activation(p, lower, upper), 0.0f) : make_float2(relu2(upper), relu2(lower));
}

/* 16 columns of the output. Of the intermediate: bf16, through NVFP4 where that is asked for; else the layer's type. */
template <bool UP>
__device__ __forceinline__ void store(const sc_fused_gemm &p, float value[16], uint64_t row, uint32_t column)
{
  const uint64_t at = row * p.n + column;
  if (UP && p.out_global != nullptr)
    fp4_round_trip(value, *p.out_global);
  if (UP || p.out_bf16) {
    uint4 packed[2];
    pack_bf16(value, packed[0]);
    pack_bf16(value + 8, packed[1]);
    uint4 *out = reinterpret_cast<uint4 *>(static_cast<bf16 *>(p.out) + at);
    out[0] = packed[0];
    out[1] = packed[1];
  } else {
    float4 *out = reinterpret_cast<float4 *>(static_cast<float *>(p.out) + at);
#pragma unroll
    for (int i = 0; i < 4; i++)
      out[i] = make_float4(value[4 * i], value[4 * i + 1], value[4 * i + 2], value[4 * i + 3]);
  }
}
