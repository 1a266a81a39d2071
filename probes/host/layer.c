/* SPDX-License-Identifier: Apache-2.0
 * What the variants share: routing, the expert, a forward, and hits read afterwards.
 *
 * SC_PROBE_WRONG == 4 builds a probe that takes each expert's gate for its up projection: verification must catch it.
 */
#include <stdlib.h>

#include "host/variants.h"

#if defined SC_PROBE_WRONG && SC_PROBE_WRONG == 4
enum { GATE = SC_MATRIX_UP, UP = SC_MATRIX_GATE };
#else
enum { GATE = SC_MATRIX_GATE, UP = SC_MATRIX_UP };
#endif

static enum sc_status router(const struct sc_point *point, uint32_t layer, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  return sc_gpu_gemm(m->gpu, m->shape.dtype, point->tokens, point->experts, m->shape.hidden, m->input,
                     sc_model_router(m, layer), m->logits, false, err);
}

enum sc_status sc_layer_route(const struct sc_point *point, uint32_t layer, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const struct sc_shape *s = &m->shape;
  int32_t *chosen = sc_model_chosen(m, layer);
  SC_TRY(router(point, layer, err));
  SC_TRY(sc_launch_softmax(m->gpu, s->dtype, m->logits, m->probs, point->tokens, point->experts, err));
  SC_TRY(sc_launch_topk(m->gpu, m->probs, chosen, m->weights, point->tokens, point->experts, s->top_k, err));
  if (m->routing != SC_ROUTE_ROUTER)
    SC_TRY(sc_launch_route_override(m->gpu, m->probs, chosen, m->weights, point->tokens, point->experts, s->top_k,
                                    m->routing, s->seed, sc_ref_stream(layer, SC_MATRIX_ROUTING), err));
  if (s->renormalize)
    SC_TRY(sc_launch_renormalize(m->gpu, m->weights, point->tokens, s->top_k, err));
  return SC_OK;
}

enum sc_status sc_layer_route_fused(const struct sc_point *point, uint32_t layer, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const struct sc_shape *s = &m->shape;
  SC_TRY(router(point, layer, err));
  return sc_launch_route(m->gpu, s->dtype, m->logits, sc_model_chosen(m, layer), m->weights, point->tokens,
                         point->experts, s->top_k, m->routing, s->renormalize, s->seed,
                         sc_ref_stream(layer, SC_MATRIX_ROUTING), err);
}

enum sc_status sc_layer_expert(const struct sc_point *point, uint32_t layer, uint32_t expert, uint64_t rows,
                               const void *in, void *out, bool accumulate, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const struct sc_shape *s = &m->shape;
  SC_TRY(sc_gpu_gemm(m->gpu, s->dtype, rows, s->intermediate, s->hidden, in,
                     sc_model_matrix(m, (enum sc_matrix)GATE, layer, expert), m->gate_out, false, err));
  if (s->gated)
    SC_TRY(sc_gpu_gemm(m->gpu, s->dtype, rows, s->intermediate, s->hidden, in,
                       sc_model_matrix(m, (enum sc_matrix)UP, layer, expert), m->up_out, false, err));
  SC_TRY(sc_launch_activate(m->gpu, s->dtype, m->gate_out, m->up_out, m->activation_out, rows * s->intermediate,
                            &s->activation, err));
  return sc_gpu_gemm(m->gpu, s->dtype, rows, s->hidden, s->intermediate, m->activation_out,
                     sc_model_matrix(m, SC_MATRIX_DOWN, layer, expert), out, accumulate, err);
}

enum sc_status sc_forward(const struct sc_variant *variant, const struct sc_point *point, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  sc_gpu_push(m->gpu, "forward");
  for (uint32_t layer = 0; layer < m->layers; layer++) {
    sc_gpu_push(m->gpu, m->layer_names[layer]);
    SC_TRY(variant->layer(point, layer, err));
    sc_gpu_pop(m->gpu);
  }
  sc_gpu_pop(m->gpu);
  return SC_OK;
}

static uint32_t count_hit(const int32_t *chosen, uint64_t n, uint32_t experts)
{
  bool seen[SC_MAX_EXPERTS] = {false};
  uint32_t hit = 0;
  for (uint64_t i = 0; i < n; i++)
    if (chosen[i] >= 0 && (uint32_t)chosen[i] < experts && !seen[chosen[i]]) {
      seen[chosen[i]] = true;
      hit++;
    }
  return hit;
}

enum sc_status sc_read_hits(const struct sc_point *point, uint32_t *hit, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const uint64_t n = (uint64_t)point->tokens * m->shape.top_k;
  int32_t *chosen = sc_calloc_array(n, sizeof *chosen);
  if (chosen == NULL)
    return sc_error_set(err, SC_ERR_NOMEM, "no host memory for the choices of %u tokens", point->tokens);
  enum sc_status status = sc_gpu_sync(m->gpu, err);
  for (uint32_t layer = 0; status == SC_OK && layer < m->layers; layer++) {
    const cudaError_t code = cudaMemcpy(chosen, sc_model_chosen(m, layer), n * sizeof *chosen, cudaMemcpyDeviceToHost);
    if (code != cudaSuccess)
      status = sc_gpu_failed(err, code, "cudaMemcpy(chosen)", __FILE_NAME__, __LINE__);
    else
      hit[layer] = count_hit(chosen, n, point->experts);
  }
  free(chosen);
  return status;
}

enum sc_status sc_keep_output(const struct sc_point *point, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  SC_CUDA(cudaMemcpyAsync(m->masked_output, m->output,
                          (size_t)m->layers * m->max_tokens * m->shape.hidden * sc_dtype_size(m->shape.dtype),
                          cudaMemcpyDeviceToDevice, m->gpu->stream));
  return sc_gpu_sync(m->gpu, err);
}

enum sc_status sc_output_matches(const struct sc_point *point, bool *matches, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const uint64_t words = (uint64_t)point->tokens * m->shape.hidden * sc_dtype_size(m->shape.dtype) / 2;
  uint64_t differ;
  SC_CUDA(cudaMemsetAsync(m->differ, 0, sizeof *m->differ, m->gpu->stream));
  for (uint32_t layer = 0; layer < m->layers; layer++)
    SC_TRY(sc_launch_compare(m->gpu, sc_model_output(m, layer),
                             sc_model_row(m, m->masked_output, (uint64_t)layer * m->max_tokens), m->differ, words,
                             err));
  SC_TRY(sc_gpu_sync(m->gpu, err));
  SC_CUDA(cudaMemcpy(&differ, m->differ, sizeof differ, cudaMemcpyDeviceToHost));
  *matches = differ == 0;
  return SC_OK;
}

const char *sc_not_comparable(const struct sc_model *model)
{
  if (model->shape.hidden * sc_dtype_size(model->shape.dtype) % 16 == 0)
    return NULL;
  return "rows are no multiple of 16 bytes, so cuBLAS may choose other kernels for the slices of sorted dispatch";
}
