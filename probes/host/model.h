/* SPDX-License-Identifier: Apache-2.0
 * What lies on the device: weights, input and scratch memory, made once for the largest point and shared by all points
 * and variants. A smaller point uses the first experts and the first tokens. Nothing is allocated after sc_model_open.
 */
#ifndef SC_PROBE_MODEL_H
#define SC_PROBE_MODEL_H

#include "host/fused.h"
#include "host/gpu.h"
#include "host/options.h"

enum { SC_VERIFY_TOKENS = 16 };

struct sc_model {
  const struct sc_gpu *gpu;
  struct sc_shape shape; /* experts: the most of any point */
  enum sc_route_mode routing;
  uint32_t layers, max_tokens;
  void *memory; /* one allocation; all below point into it */

  void *router, *gate_weights, *up_weights, *down_weights; /* [layers] times the matrix of max experts */
  void *input;                                             /* [max_tokens][hidden] */

  void *logits;    /* [tokens][experts] */
  float *probs;    /* [tokens][experts] */
  int32_t *chosen; /* [layers][max_tokens * top_k]: kept, so that hits are read after a forward, not in it */
  float *weights;  /* [tokens][top_k] */

  uint8_t *mask, *row_mask, *any; /* masked loop */
  int32_t *count, *rows, *picks;
  float *picked_weights;

  uint32_t *hist, *offsets; /* sorted dispatch */
  int32_t *keys, *order, *inverse;
  int64_t *bounds;

  void *expert_in, *expert_out;             /* [tokens * top_k][hidden] */
  void *gate_out, *up_out, *activation_out; /* [tokens][intermediate] */
  void *output, *masked_output;             /* [layers][max_tokens][hidden] */
  uint64_t *differ;

  uint8_t *host_any; /* pinned */
  int32_t *host_count;
  int64_t *host_bounds;                 /* ordinary memory: the copy into it is pageable, as PyTorch's tolist() is */
  uint32_t known_experts, known_tokens; /* only in a wrong probe: see masked.c */
  bool known_hit;

  bool has_fused; /* the fused variant was asked for, and this shape can run it */
  struct sc_fused_shape fused_shape;
  struct sc_fused_weights *fused; /* [layers] */
  struct sc_fused_scratch fused_scratch;

  char (*layer_names)[24], (*expert_names)[24];
};

/* Bytes of device memory that the options ask for with `layers` layers; UINT64_MAX when it overflows. */
uint64_t sc_model_bytes(const struct sc_options *options, enum sc_dtype dtype, uint32_t layers);

/* Allocates and fills. SC_ERR_LIMIT, before anything is allocated, when the device has not enough memory. *model is
 * zeroed by the caller; sc_model_close takes a half-opened one too. */
enum sc_status sc_model_open(struct sc_model *model, const struct sc_gpu *gpu, const struct sc_options *options,
                             enum sc_dtype dtype, struct sc_error *err) SC_NODISCARD;
void sc_model_close(struct sc_model *model);

/* Addresses, for one layer and expert. */
const void *sc_model_router(const struct sc_model *model, uint32_t layer);
const void *sc_model_matrix(const struct sc_model *model, enum sc_matrix matrix, uint32_t layer, uint32_t expert);
int32_t *sc_model_chosen(const struct sc_model *model, uint32_t layer);
void *sc_model_output(const struct sc_model *model, uint32_t layer);
static inline void *sc_model_row(const struct sc_model *model, void *base, uint64_t row)
{
  return (char *)base + row * model->shape.hidden * sc_dtype_size(model->shape.dtype);
}

#endif
