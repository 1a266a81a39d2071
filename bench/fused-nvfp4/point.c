/* SPDX-License-Identifier: Apache-2.0
 * A point's options and memory: as many copies of the weights as it takes that none is still in the L2 when its turn
 * comes again, and inputs that take turns. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

static enum sc_status check_model(const struct sc_config_model *m, struct sc_error *err)
{
  const char *what = NULL;
  if (m->router.scoring != SC_CONFIG_SOFTMAX || m->router.groups > 0 || m->router.correction_bias || m->router.scale.set)
    what = "a router that is no plain softmax over all experts";
  else if (m->shared_experts.count > 0)
    what = "shared experts";
  else if (m->dtype != SC_CONFIG_BF16)
    what = "another type than bf16";
  if (what == NULL)
    return SC_OK;
  return sc_error_set(err, SC_ERR_USAGE, "%s has %s, which no layer of this benchmark runs; choose another shape", m->name,
                      what);
}

/* Words of the probe's command line. */
struct words {
  struct bench_point *point;
  char *list[BENCH_MAX_WORDS + 1];
  int count;
};

SC_PRINTF(3, 4) static void add(struct words *w, const char *name, const char *format, ...)
{
  va_list args;
  if (w->count + 2 > BENCH_MAX_WORDS)
    return; /* the table below is far shorter */
  snprintf(w->point->text[w->count], sizeof w->point->text[0], "--%s", name);
  w->list[w->count] = w->point->text[w->count];
  w->count++;
  va_start(args, format);
  vsnprintf(w->point->text[w->count], sizeof w->point->text[0], format, args);
  va_end(args);
  w->list[w->count] = w->point->text[w->count];
  w->count++;
}

static void add_real(struct words *w, const char *name, const struct sc_config_real *value)
{
  if (value->set)
    add(w, name, "%.17g", value->value);
}

static enum sc_status make_options(struct bench_point *p, const struct bench_request *r, struct sc_error *err)
{
  const struct sc_config_model *m = r->model;
  struct words w = {.point = p};
  w.list[w.count++] = strcpy(p->text[0], "bench_fused");
  add(&w, "pass", "times");
  add(&w, "variants", "sorted,fused-nvfp4");
  add(&w, "experts", "%llu", (unsigned long long)m->experts);
  add(&w, "tokens", "%llu", (unsigned long long)r->tokens);
  add(&w, "layers", "%u", p->copies_wanted);
  add(&w, "fit-layers", "1");
  add(&w, "hidden", "%llu", (unsigned long long)m->hidden);
  add(&w, "intermediate", "%llu", (unsigned long long)m->intermediate);
  add(&w, "top-k", "%llu", (unsigned long long)m->top_k);
  add(&w, "dtype", "bf16");
  add(&w, "activation", "%s", m->activation);
  add_real(&w, "alpha", &m->alpha);
  add_real(&w, "beta", &m->beta);
  add_real(&w, "limit", &m->limit);
  add(&w, "act-quant", "%s", r->act_fp4 ? "w4a4" : "w4a16");
  if (m->w13_layout != SC_CONFIG_LAYOUT_NONE)
    add(&w, "w13-layout", "%s", m->w13_layout == SC_CONFIG_LAYOUT_INTERLEAVED ? "interleaved" : "packed");
  add(&w, "biases", "%d", m->biases);
  add(&w, "renormalize", "%d", m->router.renormalize);
  add(&w, "seed", "%llu", (unsigned long long)r->seed);
  return sc_options_parse(w.count, w.list, &p->options, err);
}

/* Between two turns of a copy at least twice the L2 is read. */
static enum sc_status choose_copies(struct bench_point *p, uint64_t tokens, struct sc_error *err)
{
  int l2 = 0;
  SC_CUDA(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, p->gpu->ordinal));
  p->l2_bytes = l2 > 0 ? (uint64_t)l2 : 0;
  const double hit = bench_expected_hit(&p->shape, tokens) * (double)bench_expert_bytes(&p->shape);
  const double copies = ceil(2.0 * (double)p->l2_bytes / hit);
  p->copies_wanted = copies < 1 ? 1 : copies > BENCH_MAX_COPIES ? BENCH_MAX_COPIES : (uint32_t)copies;
  return SC_OK;
}

static enum sc_status make_slots(struct bench_point *p, struct sc_error *err)
{
  struct sc_model *m = &p->model;
  const uint64_t values = (uint64_t)m->max_tokens * m->shape.hidden;
  p->copies = m->layers;
  p->slot_count = (BENCH_INPUTS + p->copies - 1) / p->copies * p->copies;
  SC_CUDA(cudaMalloc(&p->inputs, p->slot_count * values * sc_dtype_size(m->shape.dtype)));
  for (uint32_t i = 0; i < p->slot_count; i++) {
    p->slots[i].layer = i % p->copies;
    p->slots[i].input = (char *)p->inputs + i * values * sc_dtype_size(m->shape.dtype);
    SC_TRY(sc_launch_fill(p->gpu, m->shape.dtype, p->slots[i].input, values, m->shape.seed,
                          sc_ref_stream(i, SC_MATRIX_INPUT), sc_ref_scale(1), err));
  }
  return sc_gpu_sync(p->gpu, err);
}

enum sc_status bench_point_make(struct bench_point *p, const struct bench_request *r, struct sc_error *err)
{
  const struct sc_config_model *m = r->model;
  SC_TRY(check_model(m, err));
  p->shape = (struct bench_shape){m->hidden, m->intermediate, m->experts, m->top_k, m->gated, m->biases};
  SC_TRY(choose_copies(p, r->tokens, err));
  SC_TRY(make_options(p, r, err));
  SC_TRY(sc_model_open(&p->model, p->gpu, &p->options, p->options.dtype, err));
  p->model_input = p->model.input;
  if (!p->model.has_fused)
    return sc_error_set(err, SC_ERR_USAGE, "%s cannot run fused: %s", m->name,
                        sc_fused_unsupported(&p->model.fused_shape));
  SC_TRY(sc_fused_prepare(&p->model, err));
  SC_CUDA(cudaEventCreate(&p->start));
  SC_CUDA(cudaEventCreate(&p->stop));
  SC_TRY(make_slots(p, err));
  p->point = (struct sc_point){&p->model, (uint32_t)m->experts, (uint32_t)r->tokens};
  return SC_OK;
}

void bench_point_close(struct bench_point *p)
{
  for (uint32_t i = 0; i < p->slot_count; i++)
    if (p->slots[i].graph)
      cudaGraphExecDestroy(p->slots[i].graph);
  if (p->start)
    cudaEventDestroy(p->start);
  if (p->stop)
    cudaEventDestroy(p->stop);
  if (p->inputs)
    cudaFree(p->inputs);
  if (p->model_input)
    p->model.input = p->model_input;
  sc_model_close(&p->model);
  sc_options_free(&p->options);
  *p = (struct bench_point){0};
}
