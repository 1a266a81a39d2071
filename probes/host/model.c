/* SPDX-License-Identifier: Apache-2.0
 * The memory plan, the one allocation, and the weights made in it. */
#include <stdio.h>
#include <stdlib.h>

#include "host/model.h"

enum { ALIGN = 256 };

/* Sizes are added up by the function that later hands out the addresses, so that the two cannot disagree. */
struct plan {
  char *base; /* NULL: only adding up */
  uint64_t bytes;
  bool overflow;
};

static void *take(struct plan *plan, uint64_t count, uint64_t size)
{
  uint64_t bytes, end;
  if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, ALIGN - 1, &bytes) ||
      __builtin_add_overflow(plan->bytes, bytes & ~(uint64_t)(ALIGN - 1), &end)) {
    plan->overflow = true;
    return NULL;
  }
  void *at = plan->base ? plan->base + plan->bytes : NULL;
  plan->bytes = end;
  return at;
}

static uint64_t largest(const uint64_t *list, size_t count)
{
  uint64_t max = 0;
  for (size_t i = 0; i < count; i++)
    max = list[i] > max ? list[i] : max;
  return max;
}

static void lay_out(struct sc_model *m, struct plan *plan)
{
  const struct sc_shape *s = &m->shape;
  const uint64_t size = sc_dtype_size(s->dtype), tokens = m->max_tokens, choices = tokens * s->top_k;
  const uint64_t matrix = (uint64_t)m->layers * s->experts * s->intermediate * s->hidden;
  m->router = take(plan, (uint64_t)m->layers * s->experts * s->hidden, size);
  m->gate_weights = take(plan, matrix, size);
  m->up_weights = s->gated ? take(plan, matrix, size) : NULL;
  m->down_weights = take(plan, matrix, size);
  m->input = take(plan, tokens * s->hidden, size);
  m->logits = take(plan, tokens * s->experts, size);
  m->probs = take(plan, tokens * s->experts, sizeof *m->probs);
  m->chosen = take(plan, m->layers * choices, sizeof *m->chosen);
  m->weights = take(plan, choices, sizeof *m->weights);
  m->mask = take(plan, choices, 1);
  m->row_mask = take(plan, tokens, 1);
  m->any = take(plan, 1, 1);
  m->count = take(plan, 1, sizeof *m->count);
  m->rows = take(plan, tokens, sizeof *m->rows);
  m->picks = take(plan, choices, sizeof *m->picks);
  m->picked_weights = take(plan, choices, sizeof *m->picked_weights);
  m->hist = take(plan, (uint64_t)sc_sort_tiles(choices) * s->experts, sizeof *m->hist);
  m->offsets = take(plan, (uint64_t)sc_sort_tiles(choices) * s->experts, sizeof *m->offsets);
  m->keys = take(plan, choices, sizeof *m->keys);
  m->order = take(plan, choices, sizeof *m->order);
  m->inverse = take(plan, choices, sizeof *m->inverse);
  m->bounds = take(plan, s->experts, sizeof *m->bounds);
  m->expert_in = take(plan, choices * s->hidden, size);
  m->expert_out = take(plan, choices * s->hidden, size);
  m->gate_out = take(plan, tokens * s->intermediate, size);
  m->up_out = s->gated ? take(plan, tokens * s->intermediate, size) : NULL;
  m->activation_out = take(plan, tokens * s->intermediate, size);
  m->output = take(plan, m->layers * tokens * s->hidden, size);
  m->masked_output = take(plan, m->layers * tokens * s->hidden, size);
  m->differ = take(plan, 1, sizeof *m->differ);
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
}

uint64_t sc_model_bytes(const struct sc_options *options, enum sc_dtype dtype, uint32_t layers)
{
  struct sc_model m = {0};
  struct plan plan = {0};
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
  struct plan plan = {0};
  lay_out(model, &plan);
  SC_CUDA(cudaMalloc(&model->memory, plan.bytes));
  plan = (struct plan){.base = model->memory};
  lay_out(model, &plan);
  /* Scratch starts at the logits. Nothing depends on the zeros; they keep copies of unused rows defined. */
  SC_CUDA(cudaMemsetAsync(model->logits, 0, (size_t)(plan.base + plan.bytes - (char *)model->logits), gpu->stream));
  SC_TRY(open_host_side(model, err));
  return fill_weights(model, err);
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
