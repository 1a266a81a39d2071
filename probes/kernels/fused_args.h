/* SPDX-License-Identifier: Apache-2.0
 * What the fused layer's two grouped GEMMs are given: one structure by value, the same for device and CPU. Plain C and
 * CUDA. */
#ifndef SC_PROBE_FUSED_ARGS_H
#define SC_PROBE_FUSED_ARGS_H

#include <stdint.h>

enum {
  SC_FUSED_THREADS = 128,      /* four warps */
  SC_FUSED_UP_COLUMNS = 64,    /* intermediate columns of a block: 16 a warp */
  SC_FUSED_DOWN_COLUMNS = 128, /* output columns of a block: 32 a warp */
  SC_FUSED_ROWS_SMALL = 16,    /* padded rows of a block: an expert's rows are padded to a multiple of it */
  SC_FUSED_ROWS_LARGE = 64,
  SC_FUSED_ALIGN_THREADS = 256,
};

/* Rows are padded rows: expert after expert in ascending order, each padded to whole blocks. Codes are packed two a
 * byte; K (columns of A and W) and n are multiples of 16. */
struct sc_fused_gemm {
  const void *a;               /* codes [rows][k / 2], or bf16 [rows][k] when the activations are not quantised */
  const uint8_t *a_scales;     /* [rows][k / 16] E4M3, row order */
  const int32_t *slot_choice;  /* up: the choice (token * top_k + j) in each padded row, -1 padding. down: not read */
  const int32_t *block_expert; /* expert of each block of rows */
  const int32_t *padded_rows;  /* one number: rows in use, on the device */
  const uint8_t *w;            /* [experts][w_rows][k / 2]; up: rows are [up; gate] */
  const uint8_t *w_scales;     /* [experts][swizzled w_rows x k / 16] */
  const float *alpha;      /* [experts]: 1 / (A's encode scale x W's encode scale), applied in the epilogue in fp32 */
  const float *bias;       /* [experts][w_rows], or NULL */
  const float *out_global; /* up, quantised: the encode scale of the intermediate, one number; NULL: not quantised, bf16
                              is stored */
  void *out;               /* up: codes [rows][n / 2] or bf16 [rows][n]. down: [rows][n] in the layer's type */
  uint8_t *out_scales;     /* up, quantised: [rows][n / 16] E4M3, row order */
  uint64_t w_scale_bytes;  /* of one expert, padding included */
  uint32_t k, n, w_rows, top_k;
  uint32_t gated, act_kind; /* up. act_kind: enum sc_act_kind */
  uint32_t out_bf16;        /* down: 1 bf16, 0 fp32 */
  float act_alpha, act_beta, act_limit;
};

#endif
