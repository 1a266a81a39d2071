/* SPDX-License-Identifier: Apache-2.0
 * reference: every kernel's operation on the CPU. Two readers: `--pass verify`, for which it is the oracle, and the
 * simulated device, whose kernels these are (adapters.c). No CUDA. Buffers are dense and row-major; a `dtype` buffer
 * holds float or bf16 bit patterns. Nothing here fails except the functions that return a status: they allocate. */
#ifndef SC_PROBE_REFERENCE_H
#define SC_PROBE_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "kernels/launch.h"

/* ---- number types ---- */
enum sc_dtype { SC_F32, SC_BF16 };

static inline size_t sc_dtype_size(enum sc_dtype dtype) { return dtype == SC_F32 ? 4 : 2; }

static inline float sc_ref_from_bf16(uint16_t bits)
{
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Round to nearest, ties to even; a NaN stays one. */
static inline uint16_t sc_ref_to_bf16(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}

static inline float sc_ref_load(enum sc_dtype dtype, const void *data, uint64_t i)
{
  return dtype == SC_F32 ? ((const float *)data)[i] : sc_ref_from_bf16(((const uint16_t *)data)[i]);
}

static inline void sc_ref_store(enum sc_dtype dtype, void *data, uint64_t i, float value)
{
  if (dtype == SC_F32)
    ((float *)data)[i] = value;
  else
    ((uint16_t *)data)[i] = sc_ref_to_bf16(value);
}

/* ---- random numbers: random.c ---- */
uint64_t sc_ref_stream_key(uint64_t seed, uint64_t stream);
uint32_t sc_ref_hash(uint64_t key, uint64_t i);
/* Elements first .. first+count-1 of the stream, as the dtype holds them; as floats, and as they lie in memory. */
void sc_ref_uniform(enum sc_dtype dtype, float *out, uint64_t first, uint64_t count, uint64_t seed, uint64_t stream,
                    float scale);
void sc_ref_fill(enum sc_dtype dtype, void *out, uint64_t count, uint64_t seed, uint64_t stream, float scale);

/* ---- routing: routing.c ---- */
void sc_ref_softmax(enum sc_dtype dtype, const void *logits, float *probs, uint64_t rows, uint32_t experts);
void sc_ref_topk(const float *probs, int32_t *chosen, float *weights, uint64_t rows, uint32_t experts, uint32_t k);
void sc_ref_route_override(const float *probs, int32_t *chosen, float *weights, uint64_t rows, uint32_t experts,
                           uint32_t k, enum sc_route_mode mode, uint64_t seed, uint64_t stream);
void sc_ref_renormalize(float *weights, uint64_t rows, uint32_t k);
/* All of these in one. */
void sc_ref_route(enum sc_dtype dtype, const void *logits, int32_t *chosen, float *weights, uint64_t rows,
                  uint32_t experts, uint32_t k, enum sc_route_mode mode, bool renormalize, uint64_t seed, uint64_t stream);

/* ---- dispatch: dispatch.c ---- */
void sc_ref_mask_equal(const int32_t *chosen, uint8_t *mask, uint64_t n, int32_t expert);
uint8_t sc_ref_mask_any(const uint8_t *mask, uint64_t n);
void sc_ref_mask_rows(const uint8_t *mask, uint8_t *rows, uint64_t row_count, uint32_t k);
int32_t sc_ref_mask_count(const uint8_t *mask, uint64_t n);
void sc_ref_mask_compact(const uint8_t *mask, int32_t *positions, uint64_t n);
void sc_ref_gather_weights(const float *weights, const int32_t *positions, float *out, uint64_t n);
void sc_ref_gather_rows(enum sc_dtype dtype, const void *x, const int32_t *positions, void *out, uint64_t n,
                        uint32_t divisor, uint32_t hidden);
void sc_ref_weighted_add(enum sc_dtype dtype, void *y, const void *expert_out, const int32_t *rows,
                         const float *weights, uint64_t n, uint32_t hidden);
void sc_ref_sort_histogram(const int32_t *chosen, uint32_t *hist, uint64_t n, uint32_t experts);
void sc_ref_sort_offsets(const uint32_t *hist, uint32_t *offsets, uint32_t tiles, uint32_t experts);
/* Stable, tile by tile as the kernel: offsets is read, not written. */
void sc_ref_sort_scatter(const int32_t *chosen, const uint32_t *offsets, int32_t *keys, int32_t *order,
                         int32_t *inverse, uint64_t n, uint32_t experts);
void sc_ref_search_bounds(const int32_t *keys, int64_t *bounds, uint64_t n, uint32_t experts);
void sc_ref_combine(enum sc_dtype dtype, const void *sorted_out, const int32_t *inverse, const float *weights, void *y,
                    uint64_t rows, uint32_t k, uint32_t hidden);
uint64_t sc_ref_compare(const uint16_t *a, const uint16_t *b, uint64_t n);

/* ---- the expert: expert.c ---- */
struct sc_activation {
  enum sc_act_kind kind;
  float alpha, beta, limit; /* limit: +inf when there is none */
};
struct sc_activation_name {
  const char *name;
  bool gated; /* false: no up projection */
  struct sc_activation defaults;
};
extern const struct sc_activation_name sc_activation_names[]; /* ends with name NULL */

double sc_ref_activation(const struct sc_activation *act, double gate, double up); /* the oracle, in double */
/* In float, for the simulated device. out may be gate. */
void sc_ref_activate(enum sc_dtype dtype, const void *gate, const void *up, void *out, uint64_t n,
                     const struct sc_activation *act);

/* ---- the layer: layer.c ---- */
/* Which stream of random numbers fills what: a function of layer and matrix alone, and an expert's place in a matrix
 * does not depend on how many experts there are. */
enum sc_matrix {
  SC_MATRIX_INPUT,
  SC_MATRIX_ROUTER,
  SC_MATRIX_GATE,
  SC_MATRIX_UP,
  SC_MATRIX_DOWN,
  SC_MATRIX_ROUTING,
  SC_MATRIX_BIAS13,
  SC_MATRIX_BIAS2
};
uint64_t sc_ref_stream(uint32_t layer, enum sc_matrix matrix);

struct sc_shape {
  uint32_t hidden, intermediate, experts, top_k;
  enum sc_dtype dtype;
  bool renormalize, gated;
  struct sc_activation activation;
  uint64_t seed;
};
/* The scale that keeps values near unit variance through `columns` products. */
float sc_ref_scale(uint32_t columns);

/* logits[tokens][experts] of one layer, in double, from the first `tokens` rows of the input. */
enum sc_status sc_ref_logits(const struct sc_shape *shape, uint32_t layer, uint32_t tokens, double *logits,
                             struct sc_error *err) SC_NODISCARD;
/* weights[tokens][top_k] for given choices: softmax of the given logits, renormalised if the shape says so. */
void sc_ref_weights(const struct sc_shape *shape, const double *logits, uint32_t tokens, const int32_t *chosen,
                    double *weights);
/* y[tokens][hidden] in double, for given choices and weights. Uses every processor. */
enum sc_status sc_ref_layer(const struct sc_shape *shape, uint32_t layer, uint32_t tokens, const int32_t *chosen,
                            const float *weights, double *y, struct sc_error *err) SC_NODISCARD;

/* ---- comparing ---- */
struct sc_difference {
  double rel_error; /* ||out - ref|| / ||ref||; infinite when anything is not finite or ref is zero and out is not */
  double cosine;
};
struct sc_difference sc_ref_difference(enum sc_dtype dtype, const void *out, const double *ref, uint64_t n);
/* rel_error below the bound of the type (1e-5, 1e-2) and cosine above its own; false for anything not finite. */
bool sc_ref_close(enum sc_dtype dtype, const struct sc_difference *difference);

/* ---- threads: parallel.c ---- */
/* Calls body(ctx, first, last) on ranges that cover 0 .. n-1, on every processor; on this thread alone when no other
 * can be started. */
void sc_ref_parallel(uint64_t n, void (*body)(void *ctx, uint64_t first, uint64_t last), void *ctx);

#endif
