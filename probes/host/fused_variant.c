/* SPDX-License-Identifier: Apache-2.0
 * The fused NVFP4 layer as a variant of the grid: the model's own routing, input and outputs.
 *
 * SC_PROBE_WRONG == 5 builds a probe whose first layer reads the number of padded rows back, as a layer would that
 * sizes its grids by the counts: the numbers and the capture must catch it. */
#include <stdlib.h>

#include "host/variants.h"

enum sc_status sc_layer_fused(const struct sc_point *point, uint32_t layer, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  SC_TRY(sc_layer_route_fused(point, layer, err));
  SC_TRY(sc_fused_forward(m->gpu, &m->fused_shape, &m->fused[layer], &m->fused_scratch, m->input, point->tokens,
                          point->experts, sc_model_chosen(m, layer), m->weights, sc_model_output(m, layer), err));
#if defined SC_PROBE_WRONG && SC_PROBE_WRONG == 5
  if (layer == 0) {
    SC_CUDA(cudaMemcpyAsync(m->host_count, m->fused_scratch.block_count, sizeof *m->host_count, cudaMemcpyDeviceToHost,
                            m->gpu->stream));
    SC_CUDA(cudaStreamSynchronize(m->gpu->stream));
  }
#endif
  return SC_OK;
}

/* Encode scales come from the first tokens and all experts; a deployed model has them from calibration as well. */
enum sc_status sc_fused_prepare(const struct sc_model *m, struct sc_error *err)
{
  const struct sc_point point = {(struct sc_model *)m, m->shape.experts, m->max_tokens};
  for (uint32_t layer = 0; layer < m->layers; layer++) {
    SC_TRY(sc_layer_route_fused(&point, layer, err));
    SC_TRY(sc_fused_calibrate(m->gpu, &m->fused_shape, &m->fused[layer], &m->fused_scratch, m->input, point.tokens,
                              sc_model_chosen(m, layer), err));
  }
  return sc_gpu_sync(m->gpu, err);
}

enum sc_status sc_fused_reference(const struct sc_model *m, uint32_t layer, uint32_t experts, const int32_t *chosen,
                                  const float *weights, double *y, struct sc_error *err)
{
  const struct sc_fused_shape *s = &m->fused_shape;
  const size_t n = (size_t)SC_VERIFY_TOKENS * s->hidden, size = sc_dtype_size(s->dtype);
  struct sc_fused_copy copy = {.gpu = m->gpu, .shape = s, .weights = &m->fused[layer]};
  float *x = sc_calloc_array(n, sizeof *x), globals[2];
  void *raw = sc_calloc_array(n, size);
  enum sc_status status = x && raw ? sc_fused_read_globals(m->gpu, copy.weights, globals, err)
                                   : sc_error_set(err, SC_ERR_NOMEM, "no host memory to verify the fused layer");
  if (status == SC_OK) {
    const cudaError_t code = cudaMemcpy(raw, m->input, n * size, cudaMemcpyDeviceToHost);
    if (code != cudaSuccess)
      status = sc_gpu_failed(err, code, "cudaMemcpy(input)", __FILE_NAME__, __LINE__);
  }
  if (status == SC_OK) {
    for (size_t i = 0; i < n; i++)
      x[i] = sc_ref_load(s->dtype, raw, i);
    const struct sc_ref_fused reference = {.x = x,
                                           .chosen = chosen,
                                           .weights = weights,
                                           .tokens = SC_VERIFY_TOKENS,
                                           .hidden = s->hidden,
                                           .intermediate = s->intermediate,
                                           .experts = experts,
                                           .top_k = s->top_k,
                                           .gated = s->gated,
                                           .activation = s->activation,
                                           .a_fp4 = s->a_fp4,
                                           .x_global = globals[0],
                                           .intermediate_global = globals[1],
                                           .expert = sc_fused_copy_expert,
                                           .ctx = &copy};
    status = sc_ref_fused_layer(&reference, y, NULL, err);
  }
  sc_fused_copy_close(&copy);
  free(x);
  free(raw);
  return status;
}
