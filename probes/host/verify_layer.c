/* SPDX-License-Identifier: Apache-2.0
 * A layer against the reference. The reference gets the device's own routing, since in bf16 a rounded logit moves a
 * choice or two in any run; the routing itself is checked apart: the logits against double, the choices against the
 * logits in double, the weights against the device's logits. */
#include <stdio.h>
#include <stdlib.h>

#include "host/verify.h"

/* What one run of one layer left on the device, and what it should have. */
struct evidence {
  struct sc_shape shape;
  uint32_t layer;
  void *logits, *output;
  int32_t *chosen;
  float *weights;
  double *ref_logits, *device_logits, *ref_weights, *ref_output;
};

static void evidence_free(struct evidence *e)
{
  free(e->logits);
  free(e->output);
  free(e->chosen);
  free(e->weights);
  free(e->ref_logits);
  free(e->device_logits);
  free(e->ref_weights);
  free(e->ref_output);
}

static enum sc_status evidence_alloc(struct evidence *e, const struct sc_model *m, uint32_t experts, uint32_t layer,
                                     struct sc_error *err)
{
  const size_t logits = (size_t)SC_VERIFY_TOKENS * experts, choices = (size_t)SC_VERIFY_TOKENS * m->shape.top_k;
  const size_t outputs = (size_t)SC_VERIFY_TOKENS * m->shape.hidden, size = sc_dtype_size(m->shape.dtype);
  *e = (struct evidence){.shape = m->shape, .layer = layer};
  e->shape.experts = experts;
  e->logits = sc_calloc_array(logits, size);
  e->output = sc_calloc_array(outputs, size);
  e->chosen = sc_calloc_array(choices, sizeof *e->chosen);
  e->weights = sc_calloc_array(choices, sizeof *e->weights);
  e->ref_logits = sc_calloc_array(logits, sizeof *e->ref_logits);
  e->device_logits = sc_calloc_array(logits, sizeof *e->device_logits);
  e->ref_weights = sc_calloc_array(choices, sizeof *e->ref_weights);
  e->ref_output = sc_calloc_array(outputs, sizeof *e->ref_output);
  if (e->logits && e->output && e->chosen && e->weights && e->ref_logits && e->device_logits && e->ref_weights &&
      e->ref_output)
    return SC_OK;
  return sc_error_set(err, SC_ERR_NOMEM, "no host memory to verify a layer of %u experts", experts);
}

/* Poison reads as NaN in both types, and as an expert that does not exist. */
static enum sc_status run_layer(struct evidence *e, const struct sc_variant *variant, const struct sc_model *m,
                                struct sc_error *err)
{
  const struct sc_point point = {(struct sc_model *)m, e->shape.experts, SC_VERIFY_TOKENS};
  const size_t size = sc_dtype_size(e->shape.dtype);
  const size_t logit_bytes = (size_t)SC_VERIFY_TOKENS * e->shape.experts * size;
  const size_t choices = (size_t)SC_VERIFY_TOKENS * e->shape.top_k;
  const size_t output_bytes = (size_t)SC_VERIFY_TOKENS * e->shape.hidden * size;
  SC_CUDA(cudaMemsetAsync(m->logits, 0xff, logit_bytes, m->gpu->stream));
  SC_CUDA(cudaMemsetAsync(m->weights, 0xff, choices * sizeof *e->weights, m->gpu->stream));
  SC_CUDA(cudaMemsetAsync(sc_model_chosen(m, e->layer), 0xff, choices * sizeof *e->chosen, m->gpu->stream));
  SC_CUDA(cudaMemsetAsync(sc_model_output(m, e->layer), 0xff, output_bytes, m->gpu->stream));
  SC_TRY(variant->layer(&point, e->layer, err));
  SC_TRY(sc_gpu_sync(m->gpu, err));
  SC_CUDA(cudaMemcpy(e->logits, m->logits, logit_bytes, cudaMemcpyDeviceToHost));
  SC_CUDA(cudaMemcpy(e->weights, m->weights, choices * sizeof *e->weights, cudaMemcpyDeviceToHost));
  SC_CUDA(cudaMemcpy(e->chosen, sc_model_chosen(m, e->layer), choices * sizeof *e->chosen, cudaMemcpyDeviceToHost));
  SC_CUDA(cudaMemcpy(e->output, sc_model_output(m, e->layer), output_bytes, cudaMemcpyDeviceToHost));
  return SC_OK;
}

static int descending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Each chosen expert's logit, in double, is hardly below the k-th best. Relative to the larger of that logit and the
 * row's root mean square: near zero a relative bound alone would ask for more digits than the type has. */
static bool near_best(const struct evidence *e, uint32_t token, double *row, struct sc_verification *result)
{
  const struct sc_shape *s = &e->shape;
  const double tolerance = s->dtype == SC_F32 ? 1e-5 : 0x1p-7;
  double square = 0.0;
  memcpy(row, e->ref_logits + (size_t)token * s->experts, s->experts * sizeof *row);
  for (uint32_t x = 0; x < s->experts; x++)
    square += row[x] * row[x];
  qsort(row, s->experts, sizeof *row, descending);
  const double best = row[s->top_k - 1], scale = fmax(fabs(best), sqrt(square / s->experts));
  for (uint32_t j = 0; j < s->top_k; j++) {
    const double logit = e->ref_logits[(size_t)token * s->experts + (uint32_t)e->chosen[token * s->top_k + j]];
    if (!(logit >= best - tolerance * scale)) {
      snprintf(result->reason, sizeof result->reason,
               "layer %u, token %u: the router chose expert %d with logit %.6g, the %u. "
               "best is %.6g",
               e->layer, token, e->chosen[token * s->top_k + j], logit, s->top_k, best);
      return false;
    }
  }
  return true;
}

static bool choices_valid(const struct evidence *e, uint32_t token, struct sc_verification *result)
{
  const int32_t *chosen = e->chosen + (size_t)token * e->shape.top_k;
  for (uint32_t j = 0; j < e->shape.top_k; j++) {
    bool bad = chosen[j] < 0 || (uint32_t)chosen[j] >= e->shape.experts;
    for (uint32_t i = 0; i < j; i++)
      bad = bad || chosen[i] == chosen[j];
    if (bad) {
      snprintf(result->reason, sizeof result->reason,
               "layer %u, token %u: choice %u is expert %d, out of range or chosen twice", e->layer, token, j,
               chosen[j]);
      return false;
    }
  }
  return true;
}

/* An overridden routing is exact. */
static bool override_exact(const struct evidence *e, const struct sc_model *m, int32_t *expected,
                           struct sc_verification *result)
{
  const struct sc_shape *s = &e->shape;
  const size_t choices = (size_t)SC_VERIFY_TOKENS * s->top_k;
  float *probs = sc_calloc_array((size_t)SC_VERIFY_TOKENS * s->experts, sizeof *probs);
  float *weights = sc_calloc_array(choices, sizeof *weights);
  bool equal = false;
  if (probs && weights) {
    sc_ref_route_override(probs, expected, weights, SC_VERIFY_TOKENS, s->experts, s->top_k, m->routing, s->seed,
                          sc_ref_stream(e->layer, SC_MATRIX_ROUTING));
    equal = memcmp(expected, e->chosen, choices * sizeof *expected) == 0;
  }
  free(probs);
  free(weights);
  if (!equal)
    snprintf(result->reason, sizeof result->reason, "layer %u: the overridden choices are not the reference's",
             e->layer);
  return equal;
}

static bool routing_ok(struct evidence *e, const struct sc_model *m, struct sc_verification *result)
{
  const struct sc_shape *s = &e->shape;
  const size_t logits = (size_t)SC_VERIFY_TOKENS * s->experts, choices = (size_t)SC_VERIFY_TOKENS * s->top_k;
  const struct sc_difference logit_difference = sc_ref_difference(s->dtype, e->logits, e->ref_logits, logits);
  if (!sc_ref_close(s->dtype, &logit_difference)) {
    snprintf(result->reason, sizeof result->reason,
             "layer %u: router logits differ from the reference by %.3g (cosine %.6f)", e->layer,
             logit_difference.rel_error, logit_difference.cosine);
    return false;
  }
  double *row = sc_calloc_array(s->experts, sizeof *row);
  int32_t *expected = sc_calloc_array(choices, sizeof *expected);
  bool ok = row && expected;
  if (!ok)
    snprintf(result->reason, sizeof result->reason, "no host memory to check the routing");
  for (uint32_t t = 0; ok && t < SC_VERIFY_TOKENS; t++)
    ok = choices_valid(e, t, result) && (m->routing != SC_ROUTE_ROUTER || near_best(e, t, row, result));
  if (ok && m->routing != SC_ROUTE_ROUTER)
    ok = override_exact(e, m, expected, result);
  free(row);
  free(expected);
  if (!ok)
    return false;
  for (size_t i = 0; i < logits; i++)
    e->device_logits[i] = (double)sc_ref_load(s->dtype, e->logits, i);
  sc_ref_weights(s, e->device_logits, SC_VERIFY_TOKENS, e->chosen, e->ref_weights);
  const struct sc_difference weight_difference = sc_ref_difference(SC_F32, e->weights, e->ref_weights, choices);
  if (!sc_ref_close(SC_F32, &weight_difference)) {
    snprintf(result->reason, sizeof result->reason,
             "layer %u: routing weights differ from the reference by %.3g (cosine %.6f)", e->layer,
             weight_difference.rel_error, weight_difference.cosine);
    return false;
  }
  return true;
}

static enum sc_status judge(struct evidence *e, const struct sc_variant *variant, const struct sc_model *m,
                            struct sc_verification *result, struct sc_error *err)
{
  const struct sc_shape *s = &e->shape;
  SC_TRY(sc_ref_logits(s, e->layer, SC_VERIFY_TOKENS, e->ref_logits, err));
  if (!routing_ok(e, m, result)) {
    result->ok = false;
    return SC_OK;
  }
  if (variant->reference != NULL)
    SC_TRY(variant->reference(m, e->layer, s->experts, e->chosen, e->weights, e->ref_output, err));
  else
    SC_TRY(sc_ref_layer(s, e->layer, SC_VERIFY_TOKENS, e->chosen, e->weights, e->ref_output, err));
  const struct sc_difference difference =
      sc_ref_difference(s->dtype, e->output, e->ref_output, (uint64_t)SC_VERIFY_TOKENS * s->hidden);
  result->measured = true;
  result->cosine = fmin(result->cosine, difference.cosine);
  result->rel_error = fmax(result->rel_error, difference.rel_error);
  /* NVFP4 is held to the looser of the two pairs of bounds in either type: an intermediate next to a tie may round the
   * other way. */
  if (!sc_ref_close(variant->reference != NULL ? SC_BF16 : s->dtype, &difference)) {
    result->ok = false;
    snprintf(result->reason, sizeof result->reason, "layer %u: output differs from the reference by %.3g (cosine %.6f)",
             e->layer, difference.rel_error, difference.cosine);
  }
  return SC_OK;
}

enum sc_status sc_verify_variant(const struct sc_variant *variant, const struct sc_model *model, uint32_t experts,
                                 struct sc_verification *result, struct sc_error *err)
{
  *result = (struct sc_verification){.ok = true, .cosine = 1.0};
  const uint32_t last = model->layers - 1;
  for (uint32_t layer = 0; result->ok; layer = last) {
    struct evidence e;
    enum sc_status status = evidence_alloc(&e, model, experts, layer, err);
    if (status == SC_OK)
      status = run_layer(&e, variant, model, err);
    if (status == SC_OK)
      status = judge(&e, variant, model, result, err);
    evidence_free(&e);
    if (status != SC_OK)
      return status;
    if (layer == last)
      break;
  }
  return SC_OK;
}
