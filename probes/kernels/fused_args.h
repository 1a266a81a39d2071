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
  SC_TILE_GROUP = 8, /* rows of tiles that stand together */
  SC_FUSED_ALIGN_THREADS = 1024, /* at most */
  SC_FUSED_SPLIT_TILES = 4, /* in a block of sc_fused_up_8_split and sc_fused_down_8_split */
  /* The GEMM of every target (fused_mma.cu): blocks of 8, 16, 32 or 64 rows. */
  SC_MMA_THREADS = 256,
  SC_MMA_TILES = 8, /* of W, in a block; with SC_FUSED_SPLIT_TILES two warps share a tile's columns */
  /* The GEMM of sm_90a (fused_wgmma.cu): of 8, 16, 32, 64 or 128. */
  SC_WGMMA_TILES = 16, /* with SC_FUSED_SPLIT_TILES four warpgroups share a tile's columns */
  SC_WGMMA_MOST_ROWS = 128,
};

/* Where the codes of a tile stand in its words, see fp4.cuh. */
#define SC_TILE_CODES 0x81c081c0u
#define SC_TILE_FIRST 0x03060306u
#define SC_TILE_SCALES 0x0ff00ff0u
#define SC_TILE_ROTATION(block, pair) (((block) % 2 ? 0x060e0a04u : 0x000c0802u) >> 8 * (pair) & 31)

/* fused_mma.cu's ring: tiles along k a step, steps in it, its bytes. No more than the 99 KiB that a block may have
 * everywhere. */
#define SC_MMA_STEP_TILES(rows) ((rows) <= 16 ? 4 : 2)
#define SC_MMA_STAGES(rows) ((rows) == 8 ? 4 : (rows) == 32 ? 5 : 3)
#define SC_MMA_SHARED(rows, tiles) \
  (SC_MMA_STAGES(rows) * SC_MMA_STEP_TILES(rows) * ((tiles) * SC_TILE_BYTES + (rows) * SC_TILE_COLUMNS * 2))

/* fused_wgmma.cu: warpgroups that multiply, beside one that loads; the ring; rows that go out at a time. A block has the
 * multiprocessor to itself. */
#define SC_WGMMA_GROUPS(rows) ((rows) == 128 ? 2 : 4)
#define SC_WGMMA_THREADS(rows) ((SC_WGMMA_GROUPS(rows) + 1) * 128)
#define SC_WGMMA_STEP_TILES(rows, tiles) \
  ((rows) == 128 ? 1 : (rows) > 8 ? 2 : (tiles) == SC_FUSED_SPLIT_TILES ? 16 : 4)
#define SC_WGMMA_STAGES(rows, tiles) \
  ((rows) == 128 ? 6 : (rows) == 64 ? 5 : (rows) == 32 ? 7 : (rows) == 16 ? 9 : (tiles) == SC_FUSED_SPLIT_TILES ? 4 : 5)
#define SC_WGMMA_ROUND(rows) ((rows) == 128 ? 64 : (rows) == 64 ? 32 : (rows))
#define SC_WGMMA_OUT_BYTES(rows) (SC_WGMMA_ROUND(rows) * 4 * SC_TILE_ROWS * ((rows) == 128 ? 2 : 1) * 4) /* of a warpgroup */
#define SC_WGMMA_SHARED(rows, tiles)                                          \
  (SC_WGMMA_STAGES(rows, tiles) * (SC_WGMMA_STEP_TILES(rows, tiles) *         \
       ((tiles) * SC_TILE_BYTES + (rows) * SC_TILE_COLUMNS * 2) + 16) +       \
   SC_WGMMA_GROUPS(rows) * SC_WGMMA_OUT_BYTES(rows))

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
  const uint8_t *w;        /* tiles [experts][groups of SC_TILE_GROUP of w_rows / 16][ceil(k / 64)][in the group] */
  const float *alpha;      /* [experts]: 1 / (A's encode scale x W's encode scale), applied in the epilogue in fp32 */
  const float *bias;       /* [experts][w_rows], up: rows are [up; gate]; or NULL */
  const float *out_global; /* up, w4a4: the encode scale of the intermediate, one number: what is stored went through
                              NVFP4, less this scale. NULL: not quantised */
  void *out;               /* up: bf16 [rows][n]. down: [rows][n] in the layer's type. Rows in use are written */
  uint32_t k, n, w_rows, top_k;
  uint32_t gated; /* up: SC_ACT_GATED, else SC_ACT_RELU2 */
  uint32_t out_bf16;        /* down: 1 bf16, 0 fp32 */
  float act_alpha, act_beta, act_limit;
};

#endif
