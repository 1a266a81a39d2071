/* SPDX-License-Identifier: Apache-2.0
 * Sorted dispatch: choices sorted by expert on the device, the slices' bounds read once, as
 * `searchsorted(...).tolist()` does into pageable memory, then the same expert calls on contiguous slices. One sync a
 * layer.
 *
 * SC_PROBE_WRONG == 3 builds a probe that decides on the device whether a slice is empty: 1 + E syncs. */
#include "host/variants.h"

#ifndef SC_PROBE_WRONG
#define SC_PROBE_WRONG 0
#endif

static enum sc_status sort_choices(const struct sc_point *point, uint32_t layer, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const struct sc_shape *s = &m->shape;
  const uint64_t n = (uint64_t)point->tokens * s->top_k;
  const int32_t *chosen = sc_model_chosen(m, layer);
  SC_TRY(sc_launch_sort_histogram(m->gpu, chosen, m->hist, n, point->experts, err));
  SC_TRY(sc_launch_sort_offsets(m->gpu, m->hist, m->offsets, sc_sort_tiles(n), point->experts, err));
  SC_TRY(sc_launch_sort_scatter(m->gpu, chosen, m->offsets, m->keys, m->order, m->inverse, n, point->experts, err));
  SC_TRY(sc_launch_search_bounds(m->gpu, m->keys, m->bounds, n, point->experts, err));
  return sc_launch_gather_rows(m->gpu, s->dtype, m->input, m->order, m->expert_in, n, s->top_k, s->hidden, err);
}

/* The one read-back; what it brought is checked, since slices are addressed with it. */
static enum sc_status read_bounds(const struct sc_point *point, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const int64_t n = (int64_t)point->tokens * m->shape.top_k;
  SC_CUDA(cudaMemcpyAsync(m->host_bounds, m->bounds, point->experts * sizeof *m->host_bounds, cudaMemcpyDeviceToHost,
                          m->gpu->stream));
  SC_CUDA(cudaStreamSynchronize(m->gpu->stream));
  int64_t start = 0;
  for (uint32_t e = 0; e < point->experts; e++) {
    const int64_t end = m->host_bounds[e];
    if (end < start || end - start > (int64_t)point->tokens || (e + 1 == point->experts && end != n))
      return sc_error_set(err, SC_ERR_INTERNAL,
                          "the slice of expert %u ends at %lld after starting at %lld of %lld: the sort or "
                          "its bounds are wrong; run --pass verify",
                          e, (long long)end, (long long)start, (long long)n);
    start = end;
  }
  return SC_OK;
}

/* An idle read-back: no kernel of its own. */
static enum sc_status idle_read_backs(const struct sc_model *m, uint32_t count, struct sc_error *err)
{
  for (uint32_t i = 0; i < count; i++) {
    SC_CUDA(cudaMemcpyAsync(m->host_any, m->any, 1, cudaMemcpyDeviceToHost, m->gpu->stream));
    SC_CUDA(cudaStreamSynchronize(m->gpu->stream));
  }
  return SC_OK;
}

#if SC_PROBE_WRONG == 3
static enum sc_status device_says_empty(const struct sc_point *point, uint32_t layer, uint32_t expert, bool *empty,
                                        struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const uint64_t n = (uint64_t)point->tokens * m->shape.top_k;
  SC_TRY(sc_launch_mask_equal(m->gpu, sc_model_chosen(m, layer), m->mask, n, (int32_t)expert, err));
  SC_TRY(sc_launch_mask_any(m->gpu, m->mask, m->any, n, err));
  SC_TRY(idle_read_backs(m, 1, err));
  *empty = *m->host_any == 0;
  return SC_OK;
}
#endif

enum sc_status sc_layer_sorted(const struct sc_point *point, uint32_t layer, uint32_t extra_syncs, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const struct sc_shape *s = &m->shape;
  SC_TRY(sc_layer_route(point, layer, err));
  SC_TRY(sort_choices(point, layer, err));
  sc_gpu_push(m->gpu, "bounds");
  SC_TRY(read_bounds(point, err));
  sc_gpu_pop(m->gpu);

  int64_t start = 0;
  for (uint32_t e = 0; e < point->experts; e++) {
    const int64_t end = m->host_bounds[e];
    bool empty = end == start;
    sc_gpu_push(m->gpu, m->expert_names[e]);
#if SC_PROBE_WRONG == 3
    if (layer == 0)
      SC_TRY(device_says_empty(point, layer, e, &empty, err));
#endif
    SC_TRY(idle_read_backs(
        m, (uint32_t)((uint64_t)extra_syncs * (e + 1) / point->experts - (uint64_t)extra_syncs * e / point->experts),
        err));
    if (!empty)
      SC_TRY(sc_layer_expert(point, layer, e, (uint64_t)(end - start), sc_model_row(m, m->expert_in, (uint64_t)start),
                             sc_model_row(m, m->expert_out, (uint64_t)start), false, err));
    sc_gpu_pop(m->gpu);
    start = end;
  }
  return sc_launch_combine(m->gpu, s->dtype, m->expert_out, m->inverse, m->weights, sc_model_output(m, layer),
                           point->tokens, s->top_k, s->hidden, err);
}
