/* SPDX-License-Identifier: Apache-2.0
 * The fused NVFP4 layer on the CPU: twins of its kernels for the simulated device, and the layer in double as the
 * oracle. */
#ifndef SC_PROBE_FUSED_H
#define SC_PROBE_FUSED_H

#include "kernels/fused_args.h"
#include "reference/nvfp4.h"
#include "reference/reference.h"

/* ---- twins of the kernels in kernels/fused.cu: same arguments, same results (GEMM sums in another order) ---- */
void sc_ref_fp4_amax(enum sc_dtype dtype, const void *x, uint64_t n, float *result);
void sc_ref_fp4_globals(const float *amaxes, float *globals, uint64_t n);
void sc_ref_fp4_alphas(const float *a_global, const float *w_globals, float *alphas, uint64_t n);
void sc_ref_fp4_quantise(enum sc_dtype dtype, const void *x, uint8_t *codes, uint8_t *scales, uint64_t rows,
                         uint32_t columns, float global);
void sc_ref_fp4_round_trip(enum sc_dtype dtype, const void *x, uint16_t *out, uint64_t n, float global);
/* gated: rows are [up; gate]. tiles: sc_ref_fp4_tiled_bytes. */
void sc_ref_fp4_tile(const uint8_t *codes, const uint8_t *scales, uint8_t *tiles, uint64_t rows, uint32_t columns,
                     bool gated);
void sc_ref_fused_align(const int32_t *chosen, int32_t *slot_choice, int32_t *inverse, struct sc_fused_block *blocks,
                        int32_t *block_count, uint64_t n, uint32_t experts, uint32_t block_rows);
/* block_rows: what align was given. False: out of memory, and the output is not whole. */
bool sc_ref_fused_gemm(const struct sc_fused_gemm *p, uint32_t block_rows, bool up);

/* Of one expert's `rows` x `columns`. */
uint64_t sc_ref_fp4_tiled_bytes(uint64_t rows, uint32_t columns);
/* Back to codes[rows][columns / 2] and swizzled scales, padding zero; codes of blocks whose scale is 0 come back as 0. */
void sc_ref_fp4_untile(const uint8_t *tiles, uint8_t *codes, uint8_t *scales, uint64_t rows, uint32_t columns, bool gated);

/* ---- the oracle: one layer in double ---- */
struct sc_ref_fp4_expert { /* weights as the layer holds them, and their encode scales; biases or NULL */
  const uint8_t *w13, *scales13, *w2, *scales2; /* rows [up; gate] (gated) or intermediate rows; scales swizzled */
  float global13, global2;
  const float *bias13, *bias2;
};
struct sc_ref_fused {
  const float *x;        /* [tokens][hidden], as the layer's type holds them */
  const int32_t *chosen; /* [tokens][top_k] */
  const float *weights;  /* [tokens][top_k] */
  uint32_t tokens, hidden, intermediate, experts, top_k;
  bool gated;
  struct sc_activation activation;
  bool a_fp4;              /* quantise x and the intermediate; else bf16 x and a bf16 intermediate */
  bool plain_intermediate; /* leave the intermediate as it is (the loose gate's reference) */
  float x_global;          /* encode scale of x (a_fp4) */
  float intermediate_global;
  double *gates, *ups; /* what comes out of the first GEMM, [tokens * top_k][intermediate]; NULL: not wanted */
  double (*activate)(const struct sc_activation *act, double gate, double up); /* NULL: sc_ref_activation */
  /* The weights of one expert; called once for each expert that a token chose, and the pointers hold until the next
   * call. */
  enum sc_status (*expert)(void *ctx, uint32_t expert, struct sc_ref_fp4_expert *out, struct sc_error *err);
  void *ctx;
};
/* y[tokens][hidden] in double. *intermediate_amax (may be NULL): the largest magnitude of the intermediate, for
 * calibration. Uses every processor. */
enum sc_status sc_ref_fused_layer(const struct sc_ref_fused *layer, double *y, double *intermediate_amax,
                                  struct sc_error *err) SC_NODISCARD;

#endif
