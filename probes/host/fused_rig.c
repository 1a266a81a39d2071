/* SPDX-License-Identifier: Apache-2.0
 * The data of a fused layer under verification, and its forward and reference. */
#include "host/fused_rig.h"

#include <math.h>
#include <stdlib.h>

#define WEIGHT_SCALE (1.0f / 15.0f)
#define BIAS_SCALE 0.25f

/* ---- random numbers: normal, by Box and Muller ---- */

struct normal_job {
  float *out;
  uint64_t key;
  enum sc_dtype dtype;
  float scale;
};

static void normal_range(void *ctx, uint64_t first, uint64_t last)
{
  const struct normal_job *job = ctx;
  for (uint64_t i = first; i < last; i++) {
    const double u = ((double)sc_ref_hash(job->key, 2 * i) + 0.5) * 0x1p-32,
                 v = (double)sc_ref_hash(job->key, 2 * i + 1) * 0x1p-32;
    const float value = (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v)) * job->scale;
    job->out[i] = job->dtype == SC_F32 ? value : sc_ref_from_bf16(sc_ref_to_bf16(value));
  }
}

static float *normal(struct sc_check *c, size_t n, enum sc_dtype dtype, float scale)
{
  float *out = sc_check_host(c, n, sizeof *out);
  const uint64_t low = sc_check_bits(c);
  struct normal_job job = {out, sc_ref_stream_key((uint64_t)sc_check_bits(c) << 32 | low, 1), dtype, scale};
  if (out != NULL)
    sc_ref_parallel(n, normal_range, &job);
  return out;
}

/* ---- sizes ---- */

static uint32_t rows13(const struct sc_rig *r) { return r->gated ? 2 * r->size.intermediate : r->size.intermediate; }

static size_t scale_bytes13(const struct sc_rig *r)
{
  return nvfp4_swizzled_bytes(rows13(r), r->size.hidden / NVFP4_BLOCK);
}

static size_t scale_bytes2(const struct sc_rig *r)
{
  return nvfp4_swizzled_bytes(r->size.hidden, r->size.intermediate / NVFP4_BLOCK);
}

struct sc_fused_shape sc_rig_fused_shape(const struct sc_rig *r, enum nvfp4_w13_layout layout,
                                         const struct sc_rig_case *what)
{
  return (struct sc_fused_shape){.hidden = r->size.hidden,
                                 .intermediate = r->size.intermediate,
                                 .experts = r->size.experts,
                                 .top_k = r->size.top_k,
                                 .dtype = r->dtype,
                                 .gated = r->gated,
                                 .activation = what->activation,
                                 .a_fp4 = what->a_fp4,
                                 .biases = true,
                                 .layout = layout};
}

/* ---- the host's side ---- */

static float amax(const float *x, size_t n)
{
  float top = 0.0f;
  sc_ref_fp4_amax(SC_F32, x, n, &top);
  return top;
}

/* Softmax over all experts of random scores, and the top-k of it, not renormalised: as vLLM's test routes. */
static enum sc_status route(struct sc_rig *r, struct sc_error *err)
{
  const uint32_t tokens = r->size.tokens, experts = r->size.experts;
  float *scores = normal(r->check, (size_t)tokens * experts, SC_F32, 1.0f);
  float *probs = sc_check_host(r->check, (size_t)tokens * experts, sizeof *probs);
  r->chosen = sc_check_host(r->check, r->choices, sizeof *r->chosen);
  r->choice_weights = sc_check_host(r->check, r->choices, sizeof *r->choice_weights);
  if (!scores || !probs || !r->chosen || !r->choice_weights)
    return sc_check_no_memory(err);
  sc_ref_softmax(SC_F32, scores, probs, tokens, experts);
  sc_ref_topk(probs, r->chosen, r->choice_weights, tokens, experts, r->size.top_k);
  return SC_OK;
}

/* Rows [up; gate] with one encode scale for both, as a checkpoint has one for w13. */
static void quantise_expert(struct sc_rig *r, uint32_t e, uint8_t *scales)
{
  const uint32_t k = r->size.hidden, n = r->size.intermediate;
  const float *gate = r->gate + e * r->matrix, *up = r->gated ? r->up + e * r->matrix : NULL,
              *down = r->down + e * r->matrix;
  const float top = amax(gate, r->matrix);
  uint8_t *w13 = r->w13 + (size_t)e * rows13(r) * k / 2;
  r->global13[e] = nvfp4_global(r->gated ? fmaxf(top, amax(up, r->matrix)) : top);
  if (r->gated)
    sc_ref_fp4_quantise(SC_F32, up, w13, scales, n, k, r->global13[e]);
  const size_t before = r->gated ? r->matrix : 0;
  sc_ref_fp4_quantise(SC_F32, gate, w13 + before / 2, scales + before / NVFP4_BLOCK, n, k, r->global13[e]);
  nvfp4_swizzle(scales, rows13(r), k / NVFP4_BLOCK, r->scales13 + e * scale_bytes13(r));
  r->global2[e] = nvfp4_global(amax(down, r->matrix));
  sc_ref_fp4_quantise(SC_F32, down, r->w2 + (size_t)e * r->matrix / 2, scales, k, n, r->global2[e]);
  nvfp4_swizzle(scales, k, n / NVFP4_BLOCK, r->scales2 + e * scale_bytes2(r));
}

static enum sc_status make_host_side(struct sc_rig *r, float x_scale, struct sc_error *err)
{
  struct sc_check *c = r->check;
  const size_t experts = r->size.experts, all = experts * r->matrix;
  r->x = normal(c, (size_t)r->size.tokens * r->size.hidden, r->dtype, x_scale);
  r->gate = normal(c, all, r->dtype, WEIGHT_SCALE);
  r->up = r->gated ? normal(c, all, r->dtype, WEIGHT_SCALE) : NULL;
  r->down = normal(c, all, r->dtype, WEIGHT_SCALE);
  r->bias13 = normal(c, experts * rows13(r), SC_F32, BIAS_SCALE);
  r->bias2 = normal(c, experts * r->size.hidden, SC_F32, BIAS_SCALE);
  r->w13 = sc_check_host(c, experts * rows13(r), r->size.hidden / 2);
  r->scales13 = sc_check_host(c, experts, scale_bytes13(r));
  r->w2 = sc_check_host(c, all / 2, 1);
  r->scales2 = sc_check_host(c, experts, scale_bytes2(r));
  r->global13 = sc_check_host(c, experts, sizeof *r->global13);
  r->global2 = sc_check_host(c, experts, sizeof *r->global2);
  uint8_t *scales = sc_check_host(c, rows13(r), r->size.hidden / NVFP4_BLOCK); /* of one matrix, row order */
  r->staging = sc_check_host(c, r->matrix > r->outputs ? r->matrix : r->outputs, sizeof(float));
  if (!r->x || !r->gate || (r->gated && !r->up) || !r->down || !r->bias13 || !r->bias2 || !r->w13 || !r->scales13 ||
      !r->w2 || !r->scales2 || !r->global13 || !r->global2 || !scales || !r->staging)
    return sc_check_no_memory(err);
  r->x_amax = amax(r->x, (size_t)r->size.tokens * r->size.hidden);
  for (uint32_t e = 0; e < r->size.experts; e++)
    quantise_expert(r, e, scales);
  return route(r, err);
}

/* ---- the device's side ---- */

static enum sc_status upload(const struct sc_rig *r, const float *values, size_t n, void *device, struct sc_error *err)
{
  for (size_t i = 0; i < n; i++)
    sc_ref_store(r->dtype, r->staging, i, values[i]);
  SC_CUDA(
      cudaMemcpyAsync(device, r->staging, n * sc_dtype_size(r->dtype), cudaMemcpyHostToDevice, r->check->gpu->stream));
  return sc_gpu_sync(r->check->gpu, err); /* the staging is used again */
}

static void lay_out(struct sc_rig *r, struct sc_plan *plan)
{
  const size_t size = sc_dtype_size(r->dtype);
  for (int quant = 0; quant < 2; quant++) {
    const struct sc_fused_shape shape =
        sc_rig_fused_shape(r, NVFP4_W13_PACKED, &(struct sc_rig_case){.a_fp4 = quant == 1, .biases = true});
    if (quant == 0)
      sc_fused_plan_weights(&r->weights, &shape, plan);
    sc_fused_plan_scratch(&r->scratch[quant], &shape, r->size.tokens, plan);
  }
  r->device_x = sc_plan_take(plan, (uint64_t)r->size.tokens * r->size.hidden, size);
  r->device_gate = sc_plan_take(plan, r->matrix, size);
  r->device_up = sc_plan_take(plan, r->matrix, size);
  r->device_down = sc_plan_take(plan, r->matrix, size);
  r->device_output = sc_plan_take(plan, r->outputs, size);
  r->device_chosen = sc_plan_take(plan, r->choices, sizeof(int32_t));
  r->device_choice_weights = sc_plan_take(plan, r->choices, sizeof(float));
}

static enum sc_status make_device_side(struct sc_rig *r, struct sc_error *err)
{
  struct sc_plan plan = {0};
  lay_out(r, &plan);
  if (plan.overflow)
    return sc_error_set(err, SC_ERR_LIMIT, "a layer to verify of %u experts, %u x %u, is beyond 64 bits",
                        r->size.experts, r->size.hidden, r->size.intermediate);
  const uint64_t bytes = plan.bytes;
  plan = (struct sc_plan){0};
  SC_TRY(sc_check_device(r->check, NULL, bytes, &plan.base, err)); /* poisoned */
  lay_out(r, &plan);
  SC_TRY(upload(r, r->x, (size_t)r->size.tokens * r->size.hidden, r->device_x, err));
  const struct {
    void *device;
    const void *host;
    size_t bytes;
  } rest[] = {{r->device_chosen, r->chosen, r->choices * sizeof *r->chosen},
              {r->device_choice_weights, r->choice_weights, r->choices * sizeof *r->choice_weights},
              {r->weights.bias13, r->bias13, (size_t)r->size.experts * rows13(r) * sizeof *r->bias13},
              {r->weights.bias2, r->bias2, (size_t)r->size.experts * r->size.hidden * sizeof *r->bias2}};
  for (size_t i = 0; i < SC_COUNTOF(rest); i++)
    SC_CUDA(
        cudaMemcpyAsync(rest[i].device, rest[i].host, rest[i].bytes, cudaMemcpyHostToDevice, r->check->gpu->stream));
  return sc_gpu_sync(r->check->gpu, err);
}

enum sc_status sc_rig_open(struct sc_rig *r, struct sc_check *check, struct sc_rig_shape size, enum sc_dtype dtype,
                           bool gated, float x_scale, struct sc_error *err)
{
  *r = (struct sc_rig){.check = check,
                       .size = size,
                       .dtype = dtype,
                       .gated = gated,
                       .matrix = (size_t)size.hidden * size.intermediate,
                       .outputs = (size_t)size.tokens * size.hidden,
                       .choices = (size_t)size.tokens * size.top_k};
  SC_TRY(make_host_side(r, x_scale, err));
  return make_device_side(r, err);
}

enum sc_status sc_rig_load(const struct sc_rig *r, enum nvfp4_w13_layout layout, bool swapped, struct sc_error *err)
{
  const struct sc_fused_shape shape = sc_rig_fused_shape(r, layout, &(struct sc_rig_case){.a_fp4 = true});
  for (uint32_t e = 0; e < r->size.experts; e++) {
    SC_TRY(upload(r, r->gate + e * r->matrix, r->matrix, swapped ? r->device_up : r->device_gate, err));
    if (r->gated)
      SC_TRY(upload(r, r->up + e * r->matrix, r->matrix, swapped ? r->device_gate : r->device_up, err));
    SC_TRY(upload(r, r->down + e * r->matrix, r->matrix, r->device_down, err));
    SC_TRY(sc_fused_load(r->check->gpu, &shape, &r->weights, &r->scratch[1], e, r->device_gate, r->device_up,
                         r->device_down, err));
  }
  return sc_gpu_sync(r->check->gpu, err);
}

uint64_t sc_rig_w13_bytes(const struct sc_rig *r)
{
  return r->size.experts * sc_ref_fp4_tiled_bytes(rows13(r), r->size.hidden);
}

void sc_rig_tile_w13(const struct sc_rig *r, const uint8_t *codes, const uint8_t *scales, uint8_t *tiles)
{
  for (size_t e = 0; e < r->size.experts; e++)
    sc_ref_fp4_tile(codes + e * rows13(r) * r->size.hidden / 2, scales + e * scale_bytes13(r),
                    tiles + e * sc_ref_fp4_tiled_bytes(rows13(r), r->size.hidden), rows13(r), r->size.hidden, r->gated);
}

/* *exact stays true if the device's bytes are these. */
static enum sc_status compare(const struct sc_rig *r, const void *device, const void *host, size_t bytes, bool *exact,
                              struct sc_error *err)
{
  void *copy = sc_calloc_array(bytes, 1);
  if (copy == NULL)
    return sc_check_no_memory(err);
  const enum sc_status status = sc_check_fetch(r->check, copy, device, bytes, err);
  *exact = *exact && status == SC_OK && memcmp(copy, host, bytes) == 0;
  free(copy);
  return status;
}

enum sc_status sc_rig_loaded_exactly(const struct sc_rig *r, bool *exact, struct sc_error *err)
{
  const size_t experts = r->size.experts, bytes2 = sc_ref_fp4_tiled_bytes(r->size.hidden, r->size.intermediate);
  uint8_t *w13 = sc_calloc_array(sc_rig_w13_bytes(r), 1), *w2 = sc_calloc_array(experts * bytes2, 1);
  enum sc_status status = w13 && w2 ? SC_OK : sc_check_no_memory(err);
  *exact = true;
  if (status == SC_OK) {
    sc_rig_tile_w13(r, r->w13, r->scales13, w13);
    for (size_t e = 0; e < experts; e++)
      sc_ref_fp4_tile(r->w2 + e * r->matrix / 2, r->scales2 + e * scale_bytes2(r), w2 + e * bytes2, r->size.hidden,
                      r->size.intermediate, false);
    status = compare(r, r->weights.w13, w13, sc_rig_w13_bytes(r), exact, err);
  }
  if (status == SC_OK)
    status = compare(r, r->weights.w2, w2, experts * bytes2, exact, err);
  if (status == SC_OK)
    status = compare(r, r->weights.global13, r->global13, experts * sizeof *r->global13, exact, err);
  if (status == SC_OK)
    status = compare(r, r->weights.global2, r->global2, experts * sizeof *r->global2, exact, err);
  free(w13);
  free(w2);
  return status;
}

/* ---- reference and forward ---- */

struct reference_context {
  const struct sc_rig *rig;
  bool biases;
};

static enum sc_status cpu_expert(void *ctx, uint32_t e, struct sc_ref_fp4_expert *out, struct sc_error *err)
{
  const struct reference_context *context = ctx;
  const struct sc_rig *r = context->rig;
  (void)err;
  *out = (struct sc_ref_fp4_expert){.w13 = r->w13 + (size_t)e * rows13(r) * r->size.hidden / 2,
                                    .scales13 = r->scales13 + e * scale_bytes13(r),
                                    .w2 = r->w2 + (size_t)e * r->matrix / 2,
                                    .scales2 = r->scales2 + e * scale_bytes2(r),
                                    .global13 = r->global13[e],
                                    .global2 = r->global2[e],
                                    .bias13 = context->biases ? r->bias13 + (size_t)e * rows13(r) : NULL,
                                    .bias2 = context->biases ? r->bias2 + (size_t)e * r->size.hidden : NULL};
  return SC_OK;
}

enum sc_status sc_rig_refer(const struct sc_rig *r, const struct sc_rig_case *what, const struct sc_rig_reference *how,
                            const float globals[2], double *y, double *intermediate_amax, struct sc_error *err)
{
  struct reference_context context = {r, what->biases};
  const struct sc_ref_fused layer = {.x = r->x,
                                     .chosen = r->chosen,
                                     .weights = r->choice_weights,
                                     .tokens = r->size.tokens,
                                     .hidden = r->size.hidden,
                                     .intermediate = r->size.intermediate,
                                     .experts = r->size.experts,
                                     .top_k = r->size.top_k,
                                     .gated = r->gated,
                                     .activation = what->activation,
                                     .a_fp4 = what->a_fp4,
                                     .plain_intermediate = how->plain_intermediate,
                                     .x_global = globals[0],
                                     .intermediate_global = globals[1],
                                     .gates = how->gates,
                                     .ups = how->ups,
                                     .activate = how->activate,
                                     .expert = cpu_expert,
                                     .ctx = &context};
  return sc_ref_fused_layer(&layer, y, intermediate_amax, err);
}

enum sc_status sc_rig_forward_as_is(const struct sc_rig *r, const struct sc_rig_case *what, void *output,
                                    struct sc_error *err)
{
  const struct sc_gpu *gpu = r->check->gpu;
  const struct sc_fused_shape shape = sc_rig_fused_shape(r, NVFP4_W13_PACKED, what);
  const struct sc_fused_scratch *scratch = &r->scratch[what->a_fp4];
  struct sc_fused_weights weights = r->weights;
  const size_t bytes = r->outputs * sc_dtype_size(r->dtype);
  if (!what->biases)
    weights.bias13 = weights.bias2 = NULL;
  /* From the scratch's input to its rows of output: whatever a forward does not write itself is NaN. */
  char *const first = scratch->x_bf16 ? (char *)scratch->x_bf16 : (char *)scratch->slot_choice;
  SC_CUDA(cudaMemsetAsync(first, 0xff, (size_t)((char *)scratch->checkpoint - first), gpu->stream));
  SC_CUDA(cudaMemsetAsync(r->device_output, 0xff, bytes, gpu->stream));
  SC_TRY(sc_fused_forward(gpu, &shape, &weights, scratch, r->device_x, r->size.tokens, r->size.experts,
                          r->device_chosen, r->device_choice_weights, r->device_output, err));
  return sc_check_fetch(r->check, output, r->device_output, bytes, err);
}

enum sc_status sc_rig_forward(const struct sc_rig *r, const struct sc_rig_case *what, const float globals[2],
                              void *output, struct sc_error *err)
{
  const struct sc_fused_shape shape = sc_rig_fused_shape(r, NVFP4_W13_PACKED, what);
  SC_TRY(sc_fused_set_scales(r->check->gpu, &shape, &r->weights, globals, err));
  return sc_rig_forward_as_is(r, what, output, err);
}
