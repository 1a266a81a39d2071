/* SPDX-License-Identifier: Apache-2.0
 * The layers: one table of variants, and the controls. A variant is a function that enqueues one layer; a third joins
 * by one row of the table. */
#ifndef SC_PROBE_VARIANTS_H
#define SC_PROBE_VARIANTS_H

#include "host/model.h"

/* One point of the grid. */
struct sc_point {
  struct sc_model *model;
  uint32_t experts, tokens;
};

struct sc_variant {
  const char *name;
  enum sc_status (*layer)(const struct sc_point *point, uint32_t layer, struct sc_error *err);
  /* Whether a run at this point is possible; writes why not. NULL: always. */
  bool (*supports)(const struct sc_point *point, char *reason, size_t size);
  /* y[SC_VERIFY_TOKENS][hidden] in double from the device's own routing; NULL: sc_ref_layer, and outputs equal
   * masked's. */
  enum sc_status (*reference)(const struct sc_model *model, uint32_t layer, uint32_t experts, const int32_t *chosen,
                              const float *weights, double *y, struct sc_error *err);
  bool waits; /* for the device, inside a forward: it cannot be captured into a graph */
};
extern const struct sc_variant sc_variants[]; /* ends with name NULL */
extern const struct sc_variant *const sc_variant_masked;

/* "masked,sorted" -> indices into sc_variants, in the table's order. SC_ERR_USAGE names an unknown one. */
enum { SC_MAX_VARIANTS = 8 };
enum sc_status sc_variants_parse(const char *list, const struct sc_variant *chosen[SC_MAX_VARIANTS], size_t *count,
                                 struct sc_error *err) SC_NODISCARD;

/* Enqueues every layer, inside `forward` and `layer:<i>`. The device may still be busy on return. */
enum sc_status sc_forward(const struct sc_variant *variant, const struct sc_point *point,
                          struct sc_error *err) SC_NODISCARD;

/* ---- controls ---- */
/* top_k FFNs of the expert's shape over all tokens, no routing: the arithmetic of a layer and 0 syncs. */
enum sc_status sc_forward_dense(const struct sc_point *point, struct sc_error *err) SC_NODISCARD;
/* Sorted dispatch with extra[layer] idle 1-byte read-backs spread over the expert slots. */
enum sc_status sc_forward_sorted_syncs(const struct sc_point *point, const uint32_t *extra,
                                       struct sc_error *err) SC_NODISCARD;

/* ---- parts that variants share: layer.c ---- */
/* Router GEMM, softmax, top-k, override, renormalisation: fills chosen (of that layer) and weights. */
enum sc_status sc_layer_route(const struct sc_point *point, uint32_t layer, struct sc_error *err) SC_NODISCARD;
/* The same choices and weights, with one launch behind the router's GEMM. */
enum sc_status sc_layer_route_fused(const struct sc_point *point, uint32_t layer, struct sc_error *err) SC_NODISCARD;
/* out[rows][hidden] = expert(in[rows][hidden]). */
enum sc_status sc_layer_expert(const struct sc_point *point, uint32_t layer, uint32_t expert, uint64_t rows,
                               const void *in, void *out, bool accumulate, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_layer_masked(const struct sc_point *point, uint32_t layer, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_layer_sorted(const struct sc_point *point, uint32_t layer, uint32_t extra_syncs,
                               struct sc_error *err) SC_NODISCARD;

/* The fused layer: fused_variant.c. Prepare: encode scales, once the weights are loaded; before any forward. */
enum sc_status sc_layer_fused(const struct sc_point *point, uint32_t layer, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_fused_prepare(const struct sc_model *model, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_fused_reference(const struct sc_model *model, uint32_t layer, uint32_t experts, const int32_t *chosen,
                                  const float *weights, double *y, struct sc_error *err) SC_NODISCARD;

/* How many experts of each layer received a token in the forward that ran last: hit[layers]. Copies; call it outside
 * ranges. */
enum sc_status sc_read_hits(const struct sc_point *point, uint32_t *hit, struct sc_error *err) SC_NODISCARD;

/* Outputs of all layers: masked's are kept by the first, and whether the present ones equal them is told by the second.
 * Outside ranges; waits for the device. */
enum sc_status sc_keep_output(const struct sc_point *point, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_output_matches(const struct sc_point *point, bool *matches, struct sc_error *err) SC_NODISCARD;

/* Why outputs of the two variants may differ in bits at this shape; NULL when they must not. */
const char *sc_not_comparable(const struct sc_model *model);

#endif
