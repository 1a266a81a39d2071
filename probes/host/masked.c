/* SPDX-License-Identifier: Apache-2.0
 * The masked loop with PyTorch's host behaviour: for each expert, `if mask.any()` waits for one byte; a hit one then
 * waits for the counts of nonzero (rows) and of the boolean-mask index (weights). E + 2 * hit syncs a layer.
 *
 * SC_PROBE_WRONG builds probes that tests must catch: 1 reads `any` of the last layer's expert 0 twice, 2 trusts what
 * it once learned of layer 0's expert 0 instead of waiting. */
#include "host/variants.h"

#ifndef SC_PROBE_WRONG
#define SC_PROBE_WRONG 0
#endif

/* What `.item()` does: an asynchronous copy to pinned memory and a wait for the stream. */
static enum sc_status read_back(const struct sc_model *m, void *pinned, const void *device, size_t bytes,
                                struct sc_error *err)
{
  SC_CUDA(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, m->gpu->stream));
  SC_CUDA(cudaStreamSynchronize(m->gpu->stream));
  return SC_OK;
}

/* Counts the set bytes of a mask and lists their positions: the wait of nonzero. */
static enum sc_status nonzero(const struct sc_model *m, const uint8_t *mask, uint64_t n, uint64_t capacity,
                              int32_t *positions, uint64_t *count, struct sc_error *err)
{
  SC_TRY(sc_launch_mask_count(m->gpu, mask, m->count, n, err));
  SC_TRY(read_back(m, m->host_count, m->count, sizeof *m->host_count, err));
  if (*m->host_count < 0 || (uint64_t)*m->host_count > capacity)
    return sc_error_set(err, SC_ERR_INTERNAL,
                        "a mask of %llu elements counts %d set, more than %llu: the kernel sc_mask_count "
                        "or the routing is wrong; run --pass verify",
                        (unsigned long long)n, *m->host_count, (unsigned long long)capacity);
  *count = (uint64_t)*m->host_count;
  return sc_launch_mask_compact(m->gpu, mask, positions, n, err);
}

static enum sc_status expert_any(const struct sc_point *point, uint32_t layer, uint32_t expert, bool *any,
                                 struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const uint64_t choices = (uint64_t)point->tokens * m->shape.top_k;
  SC_TRY(sc_launch_mask_equal(m->gpu, sc_model_chosen(m, layer), m->mask, choices, (int32_t)expert, err));
  SC_TRY(sc_launch_mask_any(m->gpu, m->mask, m->any, choices, err));
#if SC_PROBE_WRONG == 2
  /* An expert that fewer tokens hit is hit by more: points share their first tokens. */
  const bool trusted = layer == 0 && expert == 0;
  if (trusted && m->known_experts == point->experts && m->known_hit && m->known_tokens <= point->tokens) {
    *any = true;
    return SC_OK;
  }
#endif
  SC_TRY(read_back(m, m->host_any, m->any, 1, err));
  *any = *m->host_any != 0;
#if SC_PROBE_WRONG == 1
  if (layer + 1 == m->layers && expert == 0)
    SC_TRY(read_back(m, m->host_any, m->any, 1, err));
#elif SC_PROBE_WRONG == 2
  if (trusted) {
    point->model->known_experts = point->experts;
    point->model->known_tokens = point->tokens;
    point->model->known_hit = *any;
  }
#endif
  return SC_OK;
}

static enum sc_status hit_expert(const struct sc_point *point, uint32_t layer, uint32_t expert, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const struct sc_shape *s = &m->shape;
  const uint64_t choices = (uint64_t)point->tokens * s->top_k;
  uint64_t rows, picks;
  sc_gpu_push(m->gpu, "nonzero");
  SC_TRY(sc_launch_mask_rows(m->gpu, m->mask, m->row_mask, point->tokens, s->top_k, err));
  SC_TRY(nonzero(m, m->row_mask, point->tokens, point->tokens, m->rows, &rows, err));
  sc_gpu_pop(m->gpu);

  sc_gpu_push(m->gpu, "mask-index");
  SC_TRY(nonzero(m, m->mask, choices, choices, m->picks, &picks, err));
  SC_TRY(sc_launch_gather_weights(m->gpu, m->weights, m->picks, m->picked_weights, picks, err));
  sc_gpu_pop(m->gpu);
  if (picks != rows)
    return sc_error_set(err, SC_ERR_INTERNAL,
                        "expert %u of layer %u was chosen %llu times by %llu tokens: the top-k gave a "
                        "token the same expert twice; run --pass verify",
                        expert, layer, (unsigned long long)picks, (unsigned long long)rows);

  SC_TRY(sc_launch_gather_rows(m->gpu, s->dtype, m->input, m->rows, m->expert_in, rows, 1, s->hidden, err));
  SC_TRY(sc_layer_expert(point, layer, expert, rows, m->expert_in, m->expert_out, false, err));
  return sc_launch_weighted_add(m->gpu, s->dtype, sc_model_output(m, layer), m->expert_out, m->rows, m->picked_weights,
                                rows, s->hidden, err);
}

enum sc_status sc_layer_masked(const struct sc_point *point, uint32_t layer, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const struct sc_shape *s = &m->shape;
  SC_TRY(sc_layer_route(point, layer, err));
  SC_CUDA(cudaMemsetAsync(sc_model_output(m, layer), 0, (size_t)point->tokens * s->hidden * sc_dtype_size(s->dtype),
                          m->gpu->stream));
  for (uint32_t e = 0; e < point->experts; e++) {
    bool any;
    sc_gpu_push(m->gpu, m->expert_names[e]);
    sc_gpu_push(m->gpu, "any");
    SC_TRY(expert_any(point, layer, e, &any, err));
    sc_gpu_pop(m->gpu);
    if (any)
      SC_TRY(hit_expert(point, layer, e, err));
    sc_gpu_pop(m->gpu);
  }
  return SC_OK;
}
