/* SPDX-License-Identifier: Apache-2.0
 * The router after its GEMM. Sums in double. */
#include "reference/reference.h"

void sc_ref_softmax(enum sc_dtype dtype, const void *logits, float *probs, uint64_t rows, uint32_t experts)
{
  for (uint64_t row = 0; row < rows; row++) {
    const uint64_t base = row * experts;
    double top = -INFINITY, sum = 0.0;
    for (uint32_t e = 0; e < experts; e++)
      top = fmax(top, sc_ref_load(dtype, logits, base + e));
    for (uint32_t e = 0; e < experts; e++)
      sum += exp((double)sc_ref_load(dtype, logits, base + e) - top);
    for (uint32_t e = 0; e < experts; e++)
      probs[base + e] = (float)(exp((double)sc_ref_load(dtype, logits, base + e) - top) / sum);
  }
}

/* NaN counts as -inf, as in the kernel. */
static bool better(float a, int32_t a_index, float b, int32_t b_index)
{
  const float x = isnan(a) ? -INFINITY : a, y = isnan(b) ? -INFINITY : b;
  return x > y || (x == y && a_index < b_index);
}

void sc_ref_topk(const float *probs, int32_t *chosen, float *weights, uint64_t rows, uint32_t experts, uint32_t k)
{
  for (uint64_t row = 0; row < rows; row++) {
    const float *in = probs + row * experts;
    int32_t *out = chosen + row * k;
    uint32_t held = 0;
    for (uint32_t e = 0; e < experts; e++) { /* insertion into the best k so far */
      if (held == k && !better(in[e], (int32_t)e, in[out[k - 1]], out[k - 1]))
        continue;
      uint32_t at = held < k ? held++ : k - 1;
      for (; at > 0 && better(in[e], (int32_t)e, in[out[at - 1]], out[at - 1]); at--)
        out[at] = out[at - 1];
      out[at] = (int32_t)e;
    }
    for (uint32_t j = 0; j < k; j++)
      weights[row * k + j] = in[out[j]];
  }
}

static void override_row(const float *probs, int32_t *chosen, float *weights, uint64_t row, uint32_t experts, uint32_t k,
                         enum sc_route_mode mode, uint64_t seed, uint64_t stream)
{
  const uint32_t hash = sc_ref_hash(sc_ref_stream_key(seed, stream), row);
  uint32_t first = (uint32_t)(seed % experts);
  if (mode == SC_ROUTE_UNIFORM) {
    first = (uint32_t)(((uint64_t)hash * experts) >> 32);
  } else if (mode == SC_ROUTE_SKEWED) {
    first = hash == 0 ? 32 : (uint32_t)__builtin_clz(hash);
    first = first < experts - 1 ? first : experts - 1;
  }
  for (uint32_t j = 0; j < k; j++) {
    chosen[j] = (int32_t)((first + j) % experts);
    weights[j] = probs[chosen[j]];
  }
}

void sc_ref_route_override(const float *probs, int32_t *chosen, float *weights, uint64_t rows, uint32_t experts,
                           uint32_t k, enum sc_route_mode mode, uint64_t seed, uint64_t stream)
{
  for (uint64_t row = 0; row < rows; row++)
    override_row(probs + row * experts, chosen + row * k, weights + row * k, row, experts, k, mode, seed, stream);
}

void sc_ref_renormalize(float *weights, uint64_t rows, uint32_t k)
{
  for (uint64_t row = 0; row < rows; row++) {
    double sum = 0.0;
    for (uint32_t j = 0; j < k; j++)
      sum += weights[row * k + j];
    for (uint32_t j = 0; j < k; j++)
      weights[row * k + j] = (float)(weights[row * k + j] / (sum + 1e-20));
  }
}

void sc_ref_route(enum sc_dtype dtype, const void *logits, int32_t *chosen, float *weights, uint64_t rows,
                  uint32_t experts, uint32_t k, enum sc_route_mode mode, bool renormalize, uint64_t seed, uint64_t stream)
{
  float probs[SC_MAX_EXPERTS];
  for (uint64_t row = 0; row < rows; row++) {
    const char *in = (const char *)logits + row * experts * sc_dtype_size(dtype);
    sc_ref_softmax(dtype, in, probs, 1, experts);
    if (mode == SC_ROUTE_ROUTER)
      sc_ref_topk(probs, chosen + row * k, weights + row * k, 1, experts, k);
    else
      override_row(probs, chosen + row * k, weights + row * k, row, experts, k, mode, seed, stream);
    if (renormalize)
      sc_ref_renormalize(weights + row * k, 1, k);
  }
}
