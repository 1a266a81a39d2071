/* SPDX-License-Identifier: Apache-2.0
 * The fused NVFP4 layer: weights in the format, and a forward that never asks the host anything. Independent of the
 * grid of points, so that verification can build layers of its own shapes. */
#ifndef SC_PROBE_FUSED_LAYER_H
#define SC_PROBE_FUSED_LAYER_H

#include "host/gpu.h"
#include "host/plan.h"
#include "reference/fused.h"

struct sc_fused_shape {
  uint32_t hidden, intermediate, experts,
      top_k;           /* hidden and intermediate: multiples of 16. experts: the most of any forward */
  enum sc_dtype dtype; /* of input and output */
  bool gated;
  struct sc_activation activation;
  bool a_fp4; /* w4a4: x and the intermediate are quantised; else w4a16 */
  bool biases;
  enum nvfp4_w13_layout layout; /* of the checkpoint that weights come from */
};

/* One layer's weights, device memory. Strides are those of shape.experts. */
struct sc_fused_weights {
  uint8_t *w13, *w2;                          /* tiles, see kernels/fp4.cuh */
  float *amax13, *amax2, *global13, *global2; /* [experts] */
  float *alpha13, *alpha2;                    /* [experts] */
  float *bias13, *bias2;                      /* [experts][rows]; NULL without biases */
  float *amax_a, *global_a;                   /* two numbers: of x, of the intermediate (calibrated) */
};

/* What a forward works in; one for all layers. */
struct sc_fused_scratch {
  uint32_t max_tokens;
  void *x_bf16; /* the input as it is multiplied; NULL where it is what the caller brings */
  int32_t *slot_choice, *inverse, *block_count;
  struct sc_fused_block *blocks;
  void *intermediate; /* [padded rows][intermediate] bf16 */
  void *slots;      /* [padded rows][hidden], dtype */
  void *checkpoint; /* loading: one expert's w13, dtype; then codes and scales as quantised, as the format orders them */
  uint8_t *codes, *scales, *ordered_codes, *ordered_scales, *swizzled_scales;
};

/* Why this shape cannot run; NULL when it can. */
const char *sc_fused_unsupported(const struct sc_fused_shape *shape);
void sc_fused_plan_weights(struct sc_fused_weights *weights, const struct sc_fused_shape *shape, struct sc_plan *plan);
void sc_fused_plan_scratch(struct sc_fused_scratch *scratch, const struct sc_fused_shape *shape, uint32_t max_tokens,
                           struct sc_plan *plan);

/* Quantises one expert from gate, up (not read when not gated) and down, device matrices of the shape's dtype in
 * natural order, by way of the checkpoint's layout. Biases, if any, are the caller's to fill: rows [up; gate].
 * Enqueued. */
enum sc_status sc_fused_load(const struct sc_gpu *gpu, const struct sc_fused_shape *shape,
                             const struct sc_fused_weights *weights, const struct sc_fused_scratch *scratch,
                             uint32_t expert, const void *gate, const void *up, const void *down,
                             struct sc_error *err) SC_NODISCARD;
/* Encode scales of x and of the intermediate from the input and the choices of one forward, and every alpha. After all
 * experts have been loaded. Enqueued. */
enum sc_status sc_fused_calibrate(const struct sc_gpu *gpu, const struct sc_fused_shape *shape,
                                  const struct sc_fused_weights *weights, const struct sc_fused_scratch *scratch,
                                  const void *x, uint32_t tokens, const int32_t *chosen,
                                  struct sc_error *err) SC_NODISCARD;
/* The same from known scales (x's, the intermediate's), as a deployed model brings them. Enqueued; the numbers are
 * copied first. */
enum sc_status sc_fused_set_scales(const struct sc_gpu *gpu, const struct sc_fused_shape *shape,
                                   const struct sc_fused_weights *weights, const float globals[2],
                                   struct sc_error *err) SC_NODISCARD;
/* output[tokens][hidden] for given choices and weights; the first `experts` experts. Enqueued; nothing is read back. */
enum sc_status sc_fused_forward(const struct sc_gpu *gpu, const struct sc_fused_shape *shape,
                                const struct sc_fused_weights *weights, const struct sc_fused_scratch *scratch,
                                const void *x, uint32_t tokens, uint32_t experts, const int32_t *chosen,
                                const float *choice_weights, void *output, struct sc_error *err) SC_NODISCARD;

/* ---- for verification: the layer's own weights, copied to the host one expert at a time ---- */
struct sc_fused_copy {
  const struct sc_gpu *gpu;
  const struct sc_fused_shape *shape;
  const struct sc_fused_weights *weights;
  uint8_t *bytes; /* room for one expert; sc_fused_copy_close frees it */
};
/* A sc_ref_fused.expert callback; ctx is a struct sc_fused_copy. */
enum sc_status sc_fused_copy_expert(void *ctx, uint32_t expert, struct sc_ref_fp4_expert *out,
                                    struct sc_error *err) SC_NODISCARD;
void sc_fused_copy_close(struct sc_fused_copy *copy);
/* Encode scales of x and of the intermediate, as calibrated. */
enum sc_status sc_fused_read_globals(const struct sc_gpu *gpu, const struct sc_fused_weights *weights, float globals[2],
                                     struct sc_error *err) SC_NODISCARD;

#endif
