/* SPDX-License-Identifier: Apache-2.0
 * One MoE layer in double, from the seed: weights are made where they are needed, never stored. */
#include <stdlib.h>

#include "reference/reference.h"

uint64_t sc_ref_stream(uint32_t layer, enum sc_matrix matrix) { return (uint64_t)layer * 8 + (uint64_t)matrix; }

float sc_ref_scale(uint32_t columns) { return (float)sqrt(3.0 / columns); }

/* Rows first .. of a matrix with `columns` columns, as floats that the dtype holds. */
static void matrix_row(const struct sc_shape *shape, uint32_t layer, enum sc_matrix matrix, uint64_t row,
                       uint32_t columns, float *out)
{
  sc_ref_uniform(shape->dtype, out, row * columns, columns, shape->seed, sc_ref_stream(layer, matrix),
                 sc_ref_scale(columns));
}

/* The input is the same for every layer: without the norms and the attention between them, chained MoE layers drift to
 * zero or to infinity. Unit variance: sqrt(3) times a uniform number. */
static void input_rows(const struct sc_shape *shape, uint32_t tokens, float *out)
{
  sc_ref_uniform(shape->dtype, out, 0, (uint64_t)tokens * shape->hidden, shape->seed, sc_ref_stream(0, SC_MATRIX_INPUT),
                 sc_ref_scale(1));
}

static double dot(const float *a, const float *b, uint32_t n)
{
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (uint32_t lane = 0; lane < 4; lane++)
      sum[lane] += (double)a[i + lane] * b[i + lane];
  for (; i < n; i++)
    sum[0] += (double)a[i] * b[i];
  return sum[0] + sum[1] + sum[2] + sum[3];
}

static double dot_double(const float *a, const double *b, uint32_t n)
{
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  uint32_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (uint32_t lane = 0; lane < 4; lane++)
      sum[lane] += (double)a[i + lane] * b[i + lane];
  for (; i < n; i++)
    sum[0] += (double)a[i] * b[i];
  return sum[0] + sum[1] + sum[2] + sum[3];
}

static enum sc_status out_of_memory(struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_NOMEM,
                      "the CPU reference of the layer needs more memory than this host gives; "
                      "choose a smaller --hidden or --intermediate");
}

enum sc_status sc_ref_logits(const struct sc_shape *shape, uint32_t layer, uint32_t tokens, double *logits,
                             struct sc_error *err)
{
  float *x = sc_calloc_array((size_t)tokens * shape->hidden, sizeof *x);
  float *row = sc_calloc_array(shape->hidden, sizeof *row);
  if (x == NULL || row == NULL) {
    free(x);
    free(row);
    return out_of_memory(err);
  }
  input_rows(shape, tokens, x);
  for (uint32_t e = 0; e < shape->experts; e++) {
    matrix_row(shape, layer, SC_MATRIX_ROUTER, e, shape->hidden, row);
    for (uint32_t t = 0; t < tokens; t++)
      logits[(size_t)t * shape->experts + e] = dot(row, x + (size_t)t * shape->hidden, shape->hidden);
  }
  free(x);
  free(row);
  return SC_OK;
}

void sc_ref_weights(const struct sc_shape *shape, const double *logits, uint32_t tokens, const int32_t *chosen,
                    double *weights)
{
  for (uint32_t t = 0; t < tokens; t++) {
    const double *in = logits + (size_t)t * shape->experts;
    double *out = weights + (size_t)t * shape->top_k;
    double top = -INFINITY, all = 0.0, picked = 0.0;
    for (uint32_t e = 0; e < shape->experts; e++)
      top = fmax(top, in[e]);
    for (uint32_t e = 0; e < shape->experts; e++)
      all += exp(in[e] - top);
    for (uint32_t j = 0; j < shape->top_k; j++) {
      out[j] = exp(in[chosen[(size_t)t * shape->top_k + j]] - top) / all;
      picked += out[j];
    }
    for (uint32_t j = 0; shape->renormalize && j < shape->top_k; j++)
      out[j] /= picked + 1e-20;
  }
}

/* One expert over the tokens that chose it; `picks` are positions in chosen. */
struct expert_job {
  const struct sc_shape *shape;
  const float *x, *weights;
  const uint32_t *picks;
  double *hidden_act, *y; /* [pick][intermediate], [token][hidden] */
  uint64_t expert;
  uint32_t layer, pick_count;
  _Atomic bool failed; /* a range had no memory */
};

static void up_range(void *ctx, uint64_t first, uint64_t last)
{
  struct expert_job *job = ctx;
  const struct sc_shape *shape = job->shape;
  float *rows = sc_calloc_array((size_t)shape->hidden * 2, sizeof *rows);
  if (rows == NULL) {
    job->failed = true;
    return;
  }
  float *gate_row = rows, *up_row = rows + shape->hidden;
  for (uint64_t i = first; i < last; i++) {
    const uint64_t row = job->expert * shape->intermediate + i;
    matrix_row(shape, job->layer, SC_MATRIX_GATE, row, shape->hidden, gate_row);
    if (shape->gated)
      matrix_row(shape, job->layer, SC_MATRIX_UP, row, shape->hidden, up_row);
    for (uint32_t p = 0; p < job->pick_count; p++) {
      const float *x = job->x + (size_t)(job->picks[p] / shape->top_k) * shape->hidden;
      const double up = shape->gated ? dot(up_row, x, shape->hidden) : 0.0;
      job->hidden_act[(size_t)p * shape->intermediate + i] =
          sc_ref_activation(&shape->activation, dot(gate_row, x, shape->hidden), up);
    }
  }
  free(rows);
}

static void down_range(void *ctx, uint64_t first, uint64_t last)
{
  struct expert_job *job = ctx;
  const struct sc_shape *shape = job->shape;
  float *row = sc_calloc_array(shape->intermediate, sizeof *row);
  if (row == NULL) {
    job->failed = true;
    return;
  }
  for (uint64_t c = first; c < last; c++) {
    matrix_row(shape, job->layer, SC_MATRIX_DOWN, job->expert * shape->hidden + c, shape->intermediate, row);
    for (uint32_t p = 0; p < job->pick_count; p++) {
      const size_t token = job->picks[p] / shape->top_k;
      job->y[token * shape->hidden + c] +=
          (double)job->weights[job->picks[p]] *
          dot_double(row, job->hidden_act + (size_t)p * shape->intermediate, shape->intermediate);
    }
  }
  free(row);
}

enum sc_status sc_ref_layer(const struct sc_shape *shape, uint32_t layer, uint32_t tokens, const int32_t *chosen,
                            const float *weights, double *y, struct sc_error *err)
{
  const size_t choices = (size_t)tokens * shape->top_k;
  enum sc_status status = SC_OK;
  float *x = sc_calloc_array((size_t)tokens * shape->hidden, sizeof *x);
  uint32_t *picks = sc_calloc_array(choices, sizeof *picks);
  double *hidden_act = sc_calloc_array((size_t)tokens * shape->intermediate, sizeof *hidden_act);
  if (x == NULL || picks == NULL || hidden_act == NULL) {
    status = out_of_memory(err);
    goto cleanup;
  }
  input_rows(shape, tokens, x);
  memset(y, 0, (size_t)tokens * shape->hidden * sizeof *y);
  for (uint32_t e = 0; e < shape->experts; e++) {
    uint32_t count = 0;
    for (size_t i = 0; i < choices && count < tokens; i++) /* a token chooses an expert once at most */
      if (chosen[i] == (int32_t)e)
        picks[count++] = (uint32_t)i;
    if (count == 0)
      continue;
    struct expert_job job = {.shape = shape,
                             .x = x,
                             .weights = weights,
                             .picks = picks,
                             .hidden_act = hidden_act,
                             .y = y,
                             .expert = e,
                             .layer = layer,
                             .pick_count = count};
    sc_ref_parallel(shape->intermediate, up_range, &job);
    sc_ref_parallel(shape->hidden, down_range, &job);
    if (job.failed) {
      status = out_of_memory(err);
      goto cleanup;
    }
  }
cleanup:
  free(x);
  free(picks);
  free(hidden_act);
  return status;
}

struct sc_difference sc_ref_difference(enum sc_dtype dtype, const void *out, const double *ref, uint64_t n)
{
  double error = 0.0, ref_norm = 0.0, out_norm = 0.0, product = 0.0;
  for (uint64_t i = 0; i < n; i++) {
    const double value = (double)sc_ref_load(dtype, out, i);
    error += (value - ref[i]) * (value - ref[i]);
    ref_norm += ref[i] * ref[i];
    out_norm += value * value;
    product += value * ref[i];
  }
  struct sc_difference difference = {INFINITY, 0.0};
  if (!isfinite(error) || !isfinite(ref_norm))
    return difference;
  if (ref_norm > 0.0)
    difference.rel_error = sqrt(error / ref_norm);
  else if (error == 0.0)
    difference.rel_error = 0.0;
  if (ref_norm > 0.0 && out_norm > 0.0)
    difference.cosine = product / sqrt(ref_norm * out_norm);
  return difference;
}

/* At a relative error r the cosine is at least 1 - r^2 / 2 or so; its own bound catches what a norm cannot, a zero
 * output. */
bool sc_ref_close(enum sc_dtype dtype, const struct sc_difference *difference)
{
  const double error_bound = dtype == SC_F32 ? 1e-5 : 1e-2, cosine_bound = dtype == SC_F32 ? 0.999999 : 0.9999;
  return difference->rel_error < error_bound && difference->cosine > cosine_bound;
}
