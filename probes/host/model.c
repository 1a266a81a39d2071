/* SPDX-License-Identifier: Apache-2.0
 * The memory plan, the one allocation, and the weights made in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/model.h"
#include "host/plan.h"

static uint64_t largest(const uint64_t *list, size_t count)
{
  uint64_t max = 0;
  for (size_t i = 0; i < count; i++)
    max = list[i] > max ? list[i] : max;
  return max;
}

static void lay_out(struct sc_model *m, struct sc_plan *plan)
{
  const struct sc_shape *s = &m->shape;
  const uint64_t size = sc_dtype_size(s->dtype), tokens = m->max_tokens, choices = tokens * s->top_k;
  const uint64_t matrix = (uint64_t)m->layers * s->experts * s->intermediate * s->hidden;
  m->router = sc_plan_take(plan, (uint64_t)m->layers * s->experts * s->hidden, size);
  m->gate_weights = sc_plan_take(plan, matrix, size);
  m->up_weights = s->gated ? sc_plan_take(plan, matrix, size) : NULL;
  m->down_weights = sc_plan_take(plan, matrix, size);
  m->input = sc_plan_take(plan, tokens * s->hidden, size);
  m->logits = sc_plan_take(plan, tokens * s->experts, size);
  m->probs = sc_plan_take(plan, tokens * s->experts, sizeof *m->probs);
  m->chosen = sc_plan_take(plan, m->layers * choices, sizeof *m->chosen);
  m->weights = sc_plan_take(plan, choices, sizeof *m->weights);
  m->mask = sc_plan_take(plan, choices, 1);
  m->row_mask = sc_plan_take(plan, tokens, 1);
  m->any = sc_plan_take(plan, 1, 1);
  m->count = sc_plan_take(plan, 1, sizeof *m->count);
  m->rows = sc_plan_take(plan, tokens, sizeof *m->rows);
  m->picks = sc_plan_take(plan, choices, sizeof *m->picks);
  m->picked_weights = sc_plan_take(plan, choices, sizeof *m->picked_weights);
  m->hist = sc_plan_take(plan, (uint64_t)sc_sort_tiles(choices) * s->experts, sizeof *m->hist);
  m->offsets = sc_plan_take(plan, (uint64_t)sc_sort_tiles(choices) * s->experts, sizeof *m->offsets);
  m->keys = sc_plan_take(plan, choices, sizeof *m->keys);
  m->order = sc_plan_take(plan, choices, sizeof *m->order);
  m->inverse = sc_plan_take(plan, choices, sizeof *m->inverse);
  m->bounds = sc_plan_take(plan, s->experts, sizeof *m->bounds);
  m->expert_in = sc_plan_take(plan, choices * s->hidden, size);
  m->expert_out = sc_plan_take(plan, choices * s->hidden, size);
  m->gate_out = sc_plan_take(plan, tokens * s->intermediate, size);
  m->up_out = s->gated ? sc_plan_take(plan, tokens * s->intermediate, size) : NULL;
  m->activation_out = sc_plan_take(plan, tokens * s->intermediate, size);
  m->output = sc_plan_take(plan, m->layers * tokens * s->hidden, size);
  m->masked_output = sc_plan_take(plan, m->layers * tokens * s->hidden, size);
  m->differ = sc_plan_take(plan, 1, sizeof *m->differ);
  struct sc_fused_weights unused;
  for (uint32_t layer = 0; m->has_fused && layer < m->layers; layer++)
    sc_fused_plan_weights(m->fused ? &m->fused[layer] : &unused, &m->fused_shape, plan);
  if (m->has_fused)
    sc_fused_plan_scratch(&m->fused_scratch, &m->fused_shape, m->max_tokens, plan);
}

static void set_shape(struct sc_model *m, const struct sc_options *o, enum sc_dtype dtype, uint32_t layers)
{
  m->shape = (struct sc_shape){.hidden = o->hidden,
                               .intermediate = o->intermediate,
                               .experts = (uint32_t)largest(o->experts, o->expert_count),
                               .top_k = o->top_k,
                               .dtype = dtype,
                               .renormalize = o->renormalize,
                               .gated = o->activation_name->gated,
                               .activation = o->activation,
                               .seed = o->seed};
  m->routing = o->routing;
  m->layers = layers;
  const uint64_t tokens = o->pass == SC_PASS_VERIFY ? 0 : largest(o->tokens, o->token_count);
  m->max_tokens = (uint32_t)(tokens > SC_VERIFY_TOKENS ? tokens : SC_VERIFY_TOKENS);
  m->fused_shape = (struct sc_fused_shape){.hidden = o->hidden,
                                           .intermediate = o->intermediate,
                                           .experts = m->shape.experts,
                                           .top_k = o->top_k,
                                           .dtype = dtype,
                                           .gated = m->shape.gated,
                                           .activation = o->activation,
                                           .a_fp4 = o->act_fp4,
                                           .biases = o->biases,
                                           .layout = o->w13_layout};
  m->has_fused = strstr(o->variants, "fused-nvfp4") != NULL && sc_fused_unsupported(&m->fused_shape) == NULL;
}

uint64_t sc_model_bytes(const struct sc_options *options, enum sc_dtype dtype, uint32_t layers)
{
  struct sc_model m = {0};
  struct sc_plan plan = {0};
  set_shape(&m, options, dtype, layers);
  lay_out(&m, &plan);
  return plan.overflow ? UINT64_MAX : plan.bytes;
}

/* How many of the layers fit into `available` bytes. */
static uint32_t layers_that_fit(const struct sc_options *options, enum sc_dtype dtype, uint64_t available)
{
  uint32_t low = 0, high = options->layers;
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (sc_model_bytes(options, dtype, middle) <= available)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

static enum sc_status choose_layers(const struct sc_options *options, enum sc_dtype dtype, uint32_t *layers,
                                    struct sc_error *err)
{
  size_t available = 0, total = 0;
  SC_CUDA(cudaMemGetInfo(&available, &total));
  const uint64_t reserve = total / 50; /* what libraries and lazy loading still take */
  const uint64_t usable = available > reserve ? available - reserve : 0;
  const uint32_t fit = layers_that_fit(options, dtype, usable);
  *layers = options->layers;
  if (fit == options->layers || (options->fit_layers && fit > 0)) {
    *layers = fit;
    return SC_OK;
  }
  const uint64_t bytes = sc_model_bytes(options, dtype, options->layers);
  char what[96];
  if (fit > 0)
    snprintf(what, sizeof what, "reduce --layers to %u, or give --fit-layers 1", fit);
  else
    snprintf(what, sizeof what, "not even one layer fits: reduce --experts, --tokens, --hidden or --intermediate");
  return sc_error_set(err, SC_ERR_LIMIT,
                      "%u layers of up to %llu experts, %u x %u, %s, need %.2f GiB; device %d has %.2f GiB "
                      "free of %.2f GiB; %s",
                      options->layers, (unsigned long long)largest(options->experts, options->expert_count),
                      options->hidden, options->intermediate, sc_dtype_name(dtype), (double)bytes / 0x1p30,
                      options->device, (double)usable / 0x1p30, (double)total / 0x1p30, what);
}

static enum sc_status fill_weights(const struct sc_model *m, struct sc_error *err)
{
  const struct sc_shape *s = &m->shape;
  const uint64_t matrix = (uint64_t)s->experts * s->intermediate * s->hidden, size = sc_dtype_size(s->dtype);
  SC_TRY(sc_launch_fill(m->gpu, s->dtype, m->input, (uint64_t)m->max_tokens * s->hidden, s->seed,
                        sc_ref_stream(0, SC_MATRIX_INPUT), sc_ref_scale(1), err));
  for (uint32_t layer = 0; layer < m->layers; layer++) {
    SC_TRY(sc_launch_fill(m->gpu, s->dtype, (char *)m->router + (uint64_t)layer * s->experts * s->hidden * size,
                          (uint64_t)s->experts * s->hidden, s->seed, sc_ref_stream(layer, SC_MATRIX_ROUTER),
                          sc_ref_scale(s->hidden), err));
    SC_TRY(sc_launch_fill(m->gpu, s->dtype, (char *)m->gate_weights + layer * matrix * size, matrix, s->seed,
                          sc_ref_stream(layer, SC_MATRIX_GATE), sc_ref_scale(s->hidden), err));
    if (s->gated)
      SC_TRY(sc_launch_fill(m->gpu, s->dtype, (char *)m->up_weights + layer * matrix * size, matrix, s->seed,
                            sc_ref_stream(layer, SC_MATRIX_UP), sc_ref_scale(s->hidden), err));
    SC_TRY(sc_launch_fill(m->gpu, s->dtype, (char *)m->down_weights + layer * matrix * size, matrix, s->seed,
                          sc_ref_stream(layer, SC_MATRIX_DOWN), sc_ref_scale(s->intermediate), err));
  }
  return sc_gpu_sync(m->gpu, err);
}

/* The same weights in NVFP4; their biases are made here, as the other variants have none. */
static enum sc_status load_fused(const struct sc_model *m, struct sc_error *err)
{
  const struct sc_fused_shape *s = &m->fused_shape;
  for (uint32_t layer = 0; layer < m->layers; layer++) {
    const struct sc_fused_weights *w = &m->fused[layer];
    for (uint32_t e = 0; e < s->experts; e++)
      SC_TRY(sc_fused_load(m->gpu, s, w, &m->fused_scratch, e, sc_model_matrix(m, SC_MATRIX_GATE, layer, e),
                           s->gated ? sc_model_matrix(m, SC_MATRIX_UP, layer, e) : NULL,
                           sc_model_matrix(m, SC_MATRIX_DOWN, layer, e), err));
    if (!s->biases)
      continue;
    SC_TRY(sc_launch_fill(m->gpu, SC_F32, w->bias13, (uint64_t)s->experts * s->intermediate * (s->gated ? 2 : 1),
                          m->shape.seed, sc_ref_stream(layer, SC_MATRIX_BIAS13), 0.5f, err));
    SC_TRY(sc_launch_fill(m->gpu, SC_F32, w->bias2, (uint64_t)s->experts * s->hidden, m->shape.seed,
                          sc_ref_stream(layer, SC_MATRIX_BIAS2), 0.5f, err));
  }
  return sc_gpu_sync(m->gpu, err);
}

static enum sc_status open_host_side(struct sc_model *m, struct sc_error *err)
{
  SC_CUDA(cudaHostAlloc((void **)&m->host_any, 1, cudaHostAllocDefault));
  SC_CUDA(cudaHostAlloc((void **)&m->host_count, sizeof *m->host_count, cudaHostAllocDefault));
  m->host_bounds = sc_calloc_array(m->shape.experts, sizeof *m->host_bounds);
  m->layer_names = sc_calloc_array(m->layers, sizeof *m->layer_names);
  m->expert_names = sc_calloc_array(m->shape.experts, sizeof *m->expert_names);
  if (!m->host_bounds || !m->layer_names || !m->expert_names)
    return sc_error_set(err, SC_ERR_NOMEM, "no host memory for names and bounds of %u experts", m->shape.experts);
  for (uint32_t i = 0; i < m->layers; i++)
    snprintf(m->layer_names[i], sizeof m->layer_names[i], "layer:%u", i);
  for (uint32_t e = 0; e < m->shape.experts; e++)
    snprintf(m->expert_names[e], sizeof m->expert_names[e], "expert:%u", e);
  return SC_OK;
}

enum sc_status sc_model_open(struct sc_model *model, const struct sc_gpu *gpu, const struct sc_options *options,
                             enum sc_dtype dtype, struct sc_error *err)
{
  uint32_t layers = 0;
  SC_TRY(choose_layers(options, dtype, &layers, err));
  set_shape(model, options, dtype, layers);
  model->gpu = gpu;
  if (model->has_fused && (model->fused = sc_calloc_array(layers, sizeof *model->fused)) == NULL)
    return sc_error_set(err, SC_ERR_NOMEM, "no host memory for %u layers", layers);
  struct sc_plan plan = {0};
  lay_out(model, &plan);
  SC_CUDA(cudaMalloc(&model->memory, plan.bytes));
  plan = (struct sc_plan){.base = model->memory};
  lay_out(model, &plan);
  /* Scratch starts at the logits. Nothing depends on the zeros; they keep copies of unused rows defined. */
  SC_CUDA(cudaMemsetAsync(model->logits, 0, (size_t)(plan.base + plan.bytes - (char *)model->logits), gpu->stream));
  SC_TRY(open_host_side(model, err));
  SC_TRY(fill_weights(model, err));
  return model->has_fused ? load_fused(model, err) : SC_OK;
}

void sc_model_close(struct sc_model *model)
{
  if (model->memory)
    cudaFree(model->memory);
  if (model->host_any)
    cudaFreeHost(model->host_any);
  if (model->host_count)
    cudaFreeHost(model->host_count);
  free(model->host_bounds);
  free(model->fused);
  free(model->layer_names);
  free(model->expert_names);
  *model = (struct sc_model){0};
}

const void *sc_model_router(const struct sc_model *m, uint32_t layer)
{
  return (char *)m->router + (uint64_t)layer * m->shape.experts * m->shape.hidden * sc_dtype_size(m->shape.dtype);
}

const void *sc_model_matrix(const struct sc_model *m, enum sc_matrix matrix, uint32_t layer, uint32_t expert)
{
  const char *base = matrix == SC_MATRIX_GATE ? m->gate_weights
                     : matrix == SC_MATRIX_UP ? m->up_weights
                                              : m->down_weights;
  const uint64_t index = (uint64_t)layer * m->shape.experts + expert;
  return base + index * m->shape.intermediate * m->shape.hidden * sc_dtype_size(m->shape.dtype);
}

int32_t *sc_model_chosen(const struct sc_model *m, uint32_t layer)
{
  return m->chosen + (uint64_t)layer * m->max_tokens * m->shape.top_k;
}

void *sc_model_output(const struct sc_model *m, uint32_t layer)
{
  return sc_model_row(m, m->output, (uint64_t)layer * m->max_tokens);
}
