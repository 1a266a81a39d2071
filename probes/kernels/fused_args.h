/* SPDX-License-Identifier: Apache-2.0
 * What the fused layer's two grouped GEMMs are given: one structure by value, the same for device and CPU. Plain C and
 * CUDA. */
#ifndef SC_PROBE_FUSED_ARGS_H
#define SC_PROBE_FUSED_ARGS_H

#include <stdint.h>

enum {
  /* A tile of weights: 16 rows of W by 64 columns, see fp4.cuh. Of [up; gate] it holds 8 rows of each, the same columns
   * of the intermediate. K is padded to whole tiles with zeros. */
  SC_TILE_ROWS = 16,
  SC_TILE_COLUMNS = 64,
  SC_TILE_BYTES = SC_TILE_ROWS * SC_TILE_COLUMNS / 2 + SC_TILE_ROWS * SC_TILE_COLUMNS / 16,
  SC_FUSED_ALIGN_THREADS = 256,
  /* The GEMM for few rows an expert (fused_narrow.cu): blocks of 8, 16, 32 or 64 rows. */
  SC_NARROW_THREADS = 256,
  SC_NARROW_TILES = 8, /* of W, in a block; with SC_NARROW_SPLIT_TILES two warps share a tile's columns */
  SC_NARROW_SPLIT_TILES = 4,
  /* The GEMM for many (fused_wide.cu): sm_90a alone. */
  SC_WIDE_THREADS = 384, /* two warpgroups that multiply, one that loads */
  SC_WIDE_ROWS = 128,
  SC_WIDE_TILES = 16,
  SC_WIDE_STAGES = 6,                                  /* in the ring, of 64 columns each */
  SC_WIDE_OUT_BYTES = SC_WIDE_ROWS * 64 * 4, /* a warpgroup's room for sums on their way out */
  SC_WIDE_SHARED = SC_WIDE_STAGES * (SC_WIDE_ROWS * SC_TILE_COLUMNS * 2 + SC_WIDE_TILES * SC_TILE_BYTES + 16) +
                   2 * SC_WIDE_OUT_BYTES,
};

/* The narrow kernel's ring: tiles along k a step, steps in it, its bytes. No more than the 99 KiB that a block may have
 * everywhere. */
#define SC_NARROW_STEP_TILES(rows) ((rows) <= 16 ? 4 : 2)
#define SC_NARROW_STAGES(rows) ((rows) == 8 ? 4 : (rows) == 32 ? 5 : 3)
#define SC_NARROW_SHARED(rows, tiles)             \
  (SC_NARROW_STAGES(rows) * SC_NARROW_STEP_TILES(rows) * \
   ((tiles) * SC_TILE_BYTES + (rows) * SC_TILE_COLUMNS * 2))

/* A block of padded rows, and the blocks of the same expert. */
struct sc_fused_block {
  int32_t expert;
  int32_t first; /* of the expert's blocks */
  int32_t count; /* the expert's blocks */
  int32_t rows;  /* in use */
};

/* Rows are padded rows: expert after expert in ascending order, each padded to whole blocks. K (columns of A and W) and n
 * are multiples of 16. */
struct sc_fused_gemm {
  const void *a;                       /* bf16 [rows][k]; up: [tokens][k] */
  const int32_t *slot_choice;          /* up: the choice (token * top_k + j) in each padded row in use. down: not read */
  const struct sc_fused_block *blocks; /* of block_rows padded rows */
  const int32_t *block_count;          /* one number, on the device */
  const uint8_t *w;        /* tiles [experts][w_rows / 16][ceil(k / 64)] */
  const float *alpha;      /* [experts]: 1 / (A's encode scale x W's encode scale), applied in the epilogue in fp32 */
  const float *bias;       /* [experts][w_rows], up: rows are [up; gate]; or NULL */
  const float *out_global; /* up, w4a4: the encode scale of the intermediate, one number: what is stored went through
                              NVFP4, less this scale. NULL: not quantised */
  void *out;               /* up: bf16 [rows][n]. down: [rows][n] in the layer's type. Rows in use are written */
  uint32_t k, n, w_rows, top_k;
  uint32_t gated, act_kind; /* up. act_kind: enum sc_act_kind */
  uint32_t out_bf16;        /* down: 1 bf16, 0 fp32 */
  float act_alpha, act_beta, act_limit;
};

#endif
