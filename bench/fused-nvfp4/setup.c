/* SPDX-License-Identifier: Apache-2.0
 * Before anything is timed: the layer is right, its routing is drawn and told, and its graphs give the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* What the fused layer left for the first tokens, and what it should have. */
struct evidence {
  int32_t *chosen;
  float *weights;
  void *output;
  double *expected;
};

static void evidence_free(struct evidence *e)
{
  free(e->chosen);
  free(e->weights);
  free(e->output);
  free(e->expected);
}

static enum sc_status run_fused(struct bench_point *p, struct evidence *e, struct sc_error *err)
{
  const struct sc_model *m = &p->model;
  const size_t choices = (size_t)SC_VERIFY_TOKENS * m->shape.top_k, outputs = (size_t)SC_VERIFY_TOKENS * m->shape.hidden,
               bytes = outputs * sc_dtype_size(m->shape.dtype);
  const struct sc_point all = {&p->model, p->point.experts, SC_VERIFY_TOKENS};
  if ((e->chosen = sc_calloc_array(choices, sizeof *e->chosen)) == NULL ||
      (e->weights = sc_calloc_array(choices, sizeof *e->weights)) == NULL ||
      (e->output = sc_calloc_array(bytes, 1)) == NULL ||
      (e->expected = sc_calloc_array(outputs, sizeof *e->expected)) == NULL)
    return sc_error_set(err, SC_ERR_NOMEM, "no host memory to verify the fused layer");
  p->model.input = p->slots[0].input;
  SC_TRY(sc_layer_route(&all, 0, err)); /* the reference wants choices of all its tokens, however few the point has */
  SC_CUDA(cudaMemsetAsync(sc_model_output(m, 0), 0xff, bytes, p->gpu->stream));
  SC_TRY(bench_forward(p, BENCH_FUSED, 0, err));
  SC_TRY(sc_gpu_sync(p->gpu, err));
  SC_CUDA(cudaMemcpy(e->chosen, sc_model_chosen(m, 0), choices * sizeof *e->chosen, cudaMemcpyDeviceToHost));
  SC_CUDA(cudaMemcpy(e->weights, m->weights, choices * sizeof *e->weights, cudaMemcpyDeviceToHost));
  SC_CUDA(cudaMemcpy(e->output, sc_model_output(m, 0), bytes, cudaMemcpyDeviceToHost));
  return sc_fused_reference(m, 0, p->point.experts, e->chosen, e->weights, e->expected, err);
}

/* At the point's own number of tokens, since the layer takes other kernels for many; up to 16 of them are compared. */
static enum sc_status verify_fused(struct bench_point *p, struct sc_error *err)
{
  struct sc_verification *v = &p->verified[BENCH_FUSED];
  struct evidence e = {0};
  const enum sc_status status = run_fused(p, &e, err);
  if (status == SC_OK) {
    const uint64_t rows = p->point.tokens < SC_VERIFY_TOKENS ? p->point.tokens : SC_VERIFY_TOKENS;
    const struct sc_difference d =
        sc_ref_difference(p->model.shape.dtype, e.output, e.expected, rows * p->model.shape.hidden);
    *v = (struct sc_verification){sc_ref_close(SC_BF16, &d), true, d.cosine, d.rel_error, ""};
    if (!v->ok)
      snprintf(v->reason, sizeof v->reason, "output differs from the reference by %.3g (cosine %.6f)", d.rel_error,
               d.cosine);
  }
  evidence_free(&e);
  return status;
}

static enum sc_status verify(struct bench_point *p, const struct bench_request *r, struct sc_error *err)
{
  SC_TRY(verify_fused(p, err));
  p->model.input = p->model_input; /* whose values the reference makes itself */
  if (r->verify_sorted)
    SC_TRY(sc_verify_variant(p->variants[BENCH_SORTED], &p->model, p->point.experts, &p->verified[BENCH_SORTED], err));
  for (int v = 0; v < BENCH_VARIANTS; v++)
    if (p->verified[v].measured && !p->verified[v].ok)
      return sc_error_set(err, SC_ERR_MEASURE, "NOT VERIFIED, so not timed: %s: %s", bench_variant_names[v],
                          p->verified[v].reason);
  return SC_OK;
}

/* One forward, and what its tokens chose. */
static enum sc_status choices_of(struct bench_point *p, enum bench_variant variant, uint32_t slot, int32_t *chosen,
                                 size_t bytes, struct sc_error *err)
{
  SC_CUDA(cudaMemsetAsync(sc_model_chosen(&p->model, p->slots[slot].layer), 0xff, bytes, p->gpu->stream));
  SC_TRY(bench_forward(p, variant, slot, err));
  SC_TRY(sc_gpu_sync(p->gpu, err));
  SC_CUDA(cudaMemcpy(chosen, sc_model_chosen(&p->model, p->slots[slot].layer), bytes, cudaMemcpyDeviceToHost));
  return SC_OK;
}

static enum sc_status draw_slots(struct bench_point *p, int32_t *fused, int32_t *sorted, FILE *file, struct sc_error *err)
{
  const size_t choices = (size_t)p->point.tokens * p->shape.top_k, bytes = choices * sizeof *fused;
  for (uint32_t i = 0; i < p->slot_count; i++) {
    SC_TRY(choices_of(p, BENCH_SORTED, i, sorted, bytes, err));
    SC_TRY(choices_of(p, BENCH_FUSED, i, fused, bytes, err));
    p->slots[i].hit = bench_hit(&p->shape, fused, p->point.tokens);
    if (p->slots[i].hit == UINT32_MAX || memcmp(fused, sorted, bytes) != 0)
      return sc_error_set(err, SC_ERR_MEASURE, "slot %u: sorted and fused chose different experts, or one that does not "
                          "exist; run synccount-probe --pass verify", i);
    if (fwrite(fused, 1, bytes, file) != bytes)
      return sc_error_set(err, SC_ERR_IO, "the routing could not be written: %m");
  }
  return SC_OK;
}

static enum sc_status draw_routing(struct bench_point *p, const char *path, struct sc_error *err)
{
  const size_t choices = (size_t)p->point.tokens * p->shape.top_k;
  int32_t *fused = sc_calloc_array(choices, sizeof *fused), *sorted = sc_calloc_array(choices, sizeof *sorted);
  FILE *file = fopen(path, "wb");
  enum sc_status status = SC_OK;
  if (file == NULL)
    status = sc_error_set(err, SC_ERR_IO, "%s: %m; name a file that can be written", path);
  else if (fused == NULL || sorted == NULL)
    status = sc_error_set(err, SC_ERR_NOMEM, "no host memory for the choices of %u tokens", p->point.tokens);
  else
    status = draw_slots(p, fused, sorted, file, err);
  if (file != NULL && fclose(file) != 0 && status == SC_OK)
    status = sc_error_set(err, SC_ERR_IO, "%s: %m", path);
  free(fused);
  free(sorted);
  return status;
}

/* Bytes that differ between the slot's output now and the one that was kept. */
static enum sc_status compare_output(struct bench_point *p, uint32_t slot, bool *same, struct sc_error *err)
{
  const struct sc_model *m = &p->model;
  const uint64_t words = (uint64_t)p->point.tokens * m->shape.hidden * sc_dtype_size(m->shape.dtype) / 2;
  uint64_t differ = 1;
  SC_CUDA(cudaMemsetAsync(m->differ, 0, sizeof *m->differ, p->gpu->stream));
  SC_TRY(sc_launch_compare(p->gpu, sc_model_output(m, p->slots[slot].layer), m->masked_output, m->differ, words, err));
  SC_TRY(sc_gpu_sync(p->gpu, err));
  SC_CUDA(cudaMemcpy(&differ, m->differ, sizeof differ, cudaMemcpyDeviceToHost));
  *same = differ == 0;
  return SC_OK;
}

/* A replay gives the bits of the launches that were captured. The room of masked's output keeps them. */
static enum sc_status make_graph(struct bench_point *p, uint32_t slot, struct sc_error *err)
{
  const struct sc_model *m = &p->model;
  void *output = sc_model_output(m, p->slots[slot].layer);
  const size_t bytes = (size_t)p->point.tokens * m->shape.hidden * sc_dtype_size(m->shape.dtype);
  bool same = false;
  SC_TRY(bench_capture(p, slot, err));
  SC_TRY(bench_forward(p, BENCH_FUSED, slot, err));
  SC_CUDA(cudaMemcpyAsync(m->masked_output, output, bytes, cudaMemcpyDeviceToDevice, p->gpu->stream));
  SC_CUDA(cudaMemsetAsync(output, 0xff, bytes, p->gpu->stream));
  SC_CUDA(cudaGraphLaunch(p->slots[slot].graph, p->gpu->stream));
  SC_TRY(compare_output(p, slot, &same, err));
  if (!same)
    return sc_error_set(err, SC_ERR_MEASURE, "slot %u: the replayed graph gave other bits than its launches; run "
                        "synccount-probe --pass verify", slot);
  return SC_OK;
}

static const struct sc_variant *find_variant(const char *name)
{
  const struct sc_variant *v = sc_variants;
  while (v->name != NULL && strcmp(v->name, name) != 0)
    v++;
  return v;
}

enum sc_status bench_point_open(struct bench_point *p, struct sc_gpu *gpu, const struct bench_request *r,
                                struct sc_error *err)
{
  p->gpu = gpu;
  p->variants[BENCH_FUSED] = find_variant("fused-nvfp4");
  p->variants[BENCH_SORTED] = find_variant("sorted");
  SC_TRY(bench_point_make(p, r, err));
  SC_TRY(verify(p, r, err));
  SC_TRY(draw_routing(p, r->routing_path, err));
  for (uint32_t i = 0; i < p->slot_count; i++)
    SC_TRY(make_graph(p, i, err));
  return SC_OK;
}
