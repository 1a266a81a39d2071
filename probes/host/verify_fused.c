/* SPDX-License-Identifier: Apache-2.0
 * The gates of the fused layer, on layers of its own shapes and fresh data.
 *
 * Gate A: against a reference of the same semantics in double. Gate B: against one that leaves the intermediate as it
 * is, with the bounds of vLLM's test. What must not pass is tried as well: a gate that lets a wrong layer through
 * proves nothing. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/fused_rig.h"
#include "host/verify.h"

#define A_COSINE 0.9999
#define A_ERROR 1e-2
#define B_COSINE 0.99
#define B_ABSOLUTE 3e-2
#define B_RELATIVE 2e-1
#define MIN_CLAMPED 0.05 /* of the gates above the limit, of the ups beyond each end */

/* The five activations. clamps: the limit is chosen so that it bites. */
static const struct act_case {
  const char *name;
  bool gated, clamps;
  enum nvfp4_w13_layout layout;
  float alpha, beta;
} act_cases[] = {
    {"silu", true, false, NVFP4_W13_PACKED, 1.0f, 0.0f},
    {"silu with limit", true, true, NVFP4_W13_PACKED, 1.0f, 0.0f},
    {"swigluoai_uninterleave", true, true, NVFP4_W13_PACKED, 1.702f, 1.0f},
    {"swigluoai", true, true, NVFP4_W13_INTERLEAVED, 1.702f, 1.0f},
    {"relu2_no_mul", false, false, NVFP4_W13_PACKED, 1.0f, 0.0f},
};
static const struct act_case *const swigluoai_packed = &act_cases[2];

/* One rig, room for its outputs, and the case that was prepared last. */
struct bench {
  struct sc_rig rig;
  char label[80];
  double *y, *plain, *gates, *ups, *sorted; /* reference, gate B's reference, before the clamp */
  void *output, *other;
  size_t bytes; /* of an output */
  struct sc_rig_case what;
  float globals[2];
  double intermediate_amax;
  double share_gates, share_above, share_below;
};

static enum sc_status open_bench(struct bench *b, struct sc_check *c, struct sc_rig_shape size, enum sc_dtype dtype,
                                 bool gated, float x_scale, struct sc_error *err)
{
  SC_TRY(sc_rig_open(&b->rig, c, size, dtype, gated, x_scale, err));
  const size_t inner = b->rig.choices * size.intermediate;
  b->y = sc_check_host(c, b->rig.outputs, sizeof *b->y);
  b->plain = sc_check_host(c, b->rig.outputs, sizeof *b->plain);
  b->gates = sc_check_host(c, inner, sizeof *b->gates);
  b->ups = sc_check_host(c, inner, sizeof *b->ups);
  b->sorted = sc_check_host(c, inner, sizeof *b->sorted);
  b->bytes = b->rig.outputs * sc_dtype_size(dtype);
  b->output = sc_check_host(c, b->bytes, 1);
  b->other = sc_check_host(c, b->bytes, 1);
  snprintf(b->label, sizeof b->label, "%s (%u,%u,%u,%u,%u)", dtype == SC_F32 ? "fp32" : "bf16", size.tokens,
           size.intermediate, size.hidden, size.experts, size.top_k);
  return b->y && b->plain && b->gates && b->ups && b->sorted && b->output && b->other ? SC_OK : sc_check_no_memory(err);
}

static double quantile(struct bench *b, const double *values, double sign, double part)
{
  const size_t n = b->rig.choices * b->rig.size.intermediate;
  for (size_t i = 0; i < n; i++)
    b->sorted[i] = sign * values[i];
  sc_stats_sort(b->sorted, n);
  return b->sorted[(size_t)(part * (double)(n - 1))];
}

/* The largest limit that a tenth of the gates exceed, and of the ups at either end; then what it does clamp. */
static void choose_limit(struct bench *b)
{
  const size_t n = b->rig.choices * b->rig.size.intermediate;
  const double limit =
      fmin(quantile(b, b->gates, 1.0, 0.9), fmin(quantile(b, b->ups, 1.0, 0.9), quantile(b, b->ups, -1.0, 0.9)));
  size_t gates = 0, above = 0, below = 0;
  b->what.activation.limit = (float)limit;
  for (size_t i = 0; i < n; i++) {
    gates += b->gates[i] > (double)b->what.activation.limit;
    above += b->ups[i] > (double)b->what.activation.limit;
    below += b->ups[i] < -(double)b->what.activation.limit;
  }
  b->share_gates = (double)gates / (double)n;
  b->share_above = (double)above / (double)n;
  b->share_below = (double)below / (double)n;
}

/* Both references of one case, its limit and its encode scales: the intermediate's is 2688 / amax of the reference's.
 */
static enum sc_status prepare(struct bench *b, const struct act_case *act, bool a_fp4, bool biases,
                              struct sc_error *err)
{
  const struct sc_rig *r = &b->rig;
  b->what =
      (struct sc_rig_case){{act->gated ? SC_ACT_GATED : SC_ACT_RELU2, act->alpha, act->beta, INFINITY}, a_fp4, biases};
  b->globals[0] = nvfp4_global(r->x_amax);
  b->globals[1] = 1.0f;
  b->share_gates = b->share_above = b->share_below = 1.0;
  if (act->clamps) {
    const struct sc_rig_reference how = {.plain_intermediate = true, .gates = b->gates, .ups = b->ups};
    SC_TRY(sc_rig_refer(r, &b->what, &how, b->globals, b->plain, NULL, err));
    choose_limit(b);
  }
  SC_TRY(sc_rig_refer(r, &b->what, &(struct sc_rig_reference){.plain_intermediate = true}, b->globals, b->plain,
                      &b->intermediate_amax, err));
  b->globals[1] = nvfp4_global((float)b->intermediate_amax);
  return sc_rig_refer(r, &b->what, &(struct sc_rig_reference){0}, b->globals, b->y, NULL, err);
}

static struct sc_difference difference(const struct bench *b, const double *reference)
{
  return sc_ref_difference(b->rig.dtype, b->output, reference, b->rig.outputs);
}

static bool passes_a(const struct bench *b, struct sc_difference *d)
{
  *d = difference(b, b->y);
  return d->cosine >= A_COSINE && d->rel_error <= A_ERROR;
}

static bool passes_b(const struct bench *b, struct sc_difference *d, size_t *outside)
{
  *d = difference(b, b->plain);
  *outside = 0;
  for (size_t i = 0; i < b->rig.outputs; i++) {
    const double value = (double)sc_ref_load(b->rig.dtype, b->output, i);
    *outside += !(fabs(value - b->plain[i]) <= B_ABSOLUTE + B_RELATIVE * fabs(b->plain[i]));
  }
  return *outside == 0 && d->cosine > B_COSINE;
}

static const char *quant_name(const struct bench *b) { return b->what.a_fp4 ? "w4a4" : "w4a16"; }

/* ---- gate A, and what belongs to a loaded layer ---- */

static enum sc_status load(struct bench *b, enum nvfp4_w13_layout layout, struct sc_error *err)
{
  bool exact;
  SC_TRY(sc_rig_load(&b->rig, layout, false, err));
  SC_TRY(sc_rig_loaded_exactly(&b->rig, &exact, err));
  sc_check_line(b->rig.check, exact, "loading %s from %s rows: every code and scale is the CPU's", b->label,
                !b->rig.gated                ? "ungated"
                : layout == NVFP4_W13_PACKED ? "packed"
                                             : "interleaved");
  return SC_OK;
}

static enum sc_status gate_a(struct bench *b, const struct act_case *act, bool a_fp4, bool biases, struct sc_error *err)
{
  struct sc_difference d;
  SC_TRY(prepare(b, act, a_fp4, biases, err));
  SC_TRY(sc_rig_forward(&b->rig, &b->what, b->globals, b->output, err));
  const bool ok = passes_a(b, &d);
  sc_check_line(b->rig.check, ok, "gate A %-22s %-5s %s%s: error %.3g, cosine %.7f", act->name, quant_name(b), b->label,
                biases ? ", biases" : "", d.rel_error, d.cosine);
  if (act->clamps)
    sc_check_line(b->rig.check,
                  b->share_gates >= MIN_CLAMPED && b->share_above >= MIN_CLAMPED && b->share_below >= MIN_CLAMPED,
                  "gate A clamps %.1f %% of the gates, %.1f %% and %.1f %% of the ups, at %.3g", 100 * b->share_gates,
                  100 * b->share_above, 100 * b->share_below, (double)b->what.activation.limit);
  return SC_OK;
}

/* Fixed order of every sum: the same bits again. */
static enum sc_status same_bits_again(struct bench *b, struct sc_error *err)
{
  SC_TRY(sc_rig_forward(&b->rig, &b->what, b->globals, b->other, err));
  sc_check_line(b->rig.check, memcmp(b->output, b->other, b->bytes) == 0, "two runs give the same bits, %s %s",
                quant_name(b), b->label);
  return SC_OK;
}

/* The layer's own calibration: x exactly, the intermediate as far as the bf16 that it is collected in. */
static enum sc_status calibration(struct bench *b, struct sc_error *err)
{
  const struct sc_rig *r = &b->rig;
  const struct sc_fused_shape shape = sc_rig_fused_shape(r, NVFP4_W13_PACKED, &b->what);
  struct sc_fused_weights weights = r->weights;
  float globals[2];
  if (!b->what.biases)
    weights.bias13 = weights.bias2 = NULL;
  SC_TRY(sc_fused_calibrate(r->check->gpu, &shape, &weights, &r->scratch[b->what.a_fp4], r->device_x, r->size.tokens,
                            r->device_chosen, err));
  SC_TRY(sc_fused_read_globals(r->check->gpu, &weights, globals, err));
  const double error = fabs((double)globals[1] / (double)b->globals[1] - 1.0);
  sc_check_line(r->check, globals[0] == b->globals[0] && error <= 0x1p-7,
                "calibration, %s %s: x exactly, intermediate by %.3g", quant_name(b), b->label, error);
  return SC_OK;
}

static enum sc_status gates_of_rig(struct bench *b, struct sc_error *err)
{
  int loaded = -1;
  for (size_t i = 0; i < SC_COUNTOF(act_cases); i++) {
    const struct act_case *act = &act_cases[i];
    if (act->gated != b->rig.gated)
      continue;
    if (loaded != (int)act->layout)
      SC_TRY(load(b, act->layout, err));
    loaded = (int)act->layout;
    for (int a_fp4 = 1; a_fp4 >= 0; a_fp4--)
      SC_TRY(gate_a(b, act, a_fp4, i % 2 == 1, err));
  }
  SC_TRY(same_bits_again(b, err));
  SC_TRY(gate_a(b, b->rig.gated ? swigluoai_packed : &act_cases[4], true, true, err)); /* the other choice of biases */
  SC_TRY(same_bits_again(b, err));
  return calibration(b, err);
}

static enum sc_status gates_a(struct sc_check *c, enum sc_dtype dtype, struct sc_rig_shape size, struct sc_error *err)
{
  for (int gated = 1; gated >= 0; gated--) {
    struct bench b = {0};
    enum sc_status status = open_bench(&b, c, size, dtype, gated, 1.0f, err);
    if (status == SC_OK)
      status = gates_of_rig(&b, err);
    SC_CHECK(status);
  }
  return SC_OK;
}

/* ---- gate B ---- */

static enum sc_status gate_b(struct bench *b, const struct act_case *act, bool a_fp4, struct sc_error *err)
{
  struct sc_difference d;
  size_t outside;
  SC_TRY(prepare(b, act, a_fp4, false, err));
  SC_TRY(sc_rig_forward(&b->rig, &b->what, b->globals, b->output, err));
  const bool ok = passes_b(b, &d, &outside);
  sc_check_line(b->rig.check, ok, "gate B %-22s %-5s %s: %zu outside, cosine %.5f", act->name, quant_name(b), b->label,
                outside, d.cosine);
  memset(b->output, 0, b->bytes);
  const bool zero = passes_b(b, &d, &outside);
  sc_check_line(b->rig.check, !zero && !(d.cosine > B_COSINE), "gate B refuses zeros: %zu outside, cosine %.3g",
                outside, d.cosine);
  return SC_OK;
}

static enum sc_status gates_b(struct sc_check *c, enum sc_dtype dtype, struct sc_rig_shape size, struct sc_error *err)
{
  for (int gated = 1; gated >= 0; gated--) {
    struct bench b = {0};
    enum sc_status status = open_bench(&b, c, size, dtype, gated, 0.1f, err);
    for (size_t i = 0; status == SC_OK && i < SC_COUNTOF(act_cases); i++) {
      if (act_cases[i].gated != (bool)gated)
        continue;
      status = sc_rig_load(&b.rig, act_cases[i].layout, false, err);
      for (int a_fp4 = 1; status == SC_OK && a_fp4 >= 0; a_fp4--)
        status = gate_b(&b, &act_cases[i], a_fp4, err);
    }
    SC_CHECK(status);
  }
  return SC_OK;
}

/* ---- what gate A must refuse ---- */

static void refused(struct bench *b, const char *what)
{
  struct sc_difference d;
  const bool passed = passes_a(b, &d);
  sc_check_line(b->rig.check, !passed, "gate A refuses %-36s %-5s %s: error %.3g, cosine %.5f", what, quant_name(b),
                b->label, d.rel_error, d.cosine);
}

static double up_not_clamped_from_below(const struct sc_activation *act, double gate, double up)
{
  const double limit = (double)act->limit, g = fmin(gate, limit), u = fmin(up, limit);
  return (u + (double)act->beta) * g / (1.0 + exp(-(double)act->alpha * g));
}

/* What a layer with another activation would put out. */
static enum sc_status with_activation(struct bench *b, double (*activate)(const struct sc_activation *, double, double),
                                      struct sc_error *err)
{
  double *y = sc_calloc_array(b->rig.outputs, sizeof *y);
  if (y == NULL)
    return sc_check_no_memory(err);
  const enum sc_status status =
      sc_rig_refer(&b->rig, &b->what, &(struct sc_rig_reference){.activate = activate}, b->globals, y, NULL, err);
  for (size_t i = 0; i < b->rig.outputs; i++)
    sc_ref_store(b->rig.dtype, b->output, i, (float)y[i]);
  free(y);
  return status;
}

/* The first matrix's codes or scales on the device, replaced. */
static enum sc_status replace(const struct bench *b, void *device, const void *host, size_t bytes, struct sc_error *err)
{
  SC_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, b->rig.check->gpu->stream));
  return sc_gpu_sync(b->rig.check->gpu, err);
}

/* A forward with other codes or scales in the first matrix. */
static enum sc_status with_w13(struct bench *b, const uint8_t *codes, const uint8_t *scales, struct sc_error *err)
{
  const size_t bytes = sc_rig_w13_bytes(&b->rig);
  uint8_t *tiles = sc_calloc_array(bytes, 1);
  if (tiles == NULL)
    return sc_check_no_memory(err);
  sc_rig_tile_w13(&b->rig, codes, scales, tiles);
  enum sc_status status = replace(b, b->rig.weights.w13, tiles, bytes, err);
  if (status == SC_OK)
    status = sc_rig_forward(&b->rig, &b->what, b->globals, b->output, err);
  free(tiles);
  return status;
}

static enum sc_status with_swapped_nibbles(struct bench *b, struct sc_error *err)
{
  const size_t bytes = b->rig.size.experts * b->rig.matrix; /* gate and up, two codes a byte */
  uint8_t *codes = sc_calloc_array(bytes, 1);
  if (codes == NULL)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < bytes; i++)
    codes[i] = (uint8_t)(b->rig.w13[i] << 4 | b->rig.w13[i] >> 4);
  const enum sc_status status = with_w13(b, codes, b->rig.scales13, err);
  free(codes);
  return status;
}

static enum sc_status with_scales_in_row_order(struct bench *b, struct sc_error *err)
{
  const size_t rows = 2 * (size_t)b->rig.size.intermediate, blocks = b->rig.size.hidden / NVFP4_BLOCK;
  const size_t one = nvfp4_swizzled_bytes(rows, blocks);
  uint8_t *scales = sc_calloc_array(b->rig.size.experts * one, 1);
  if (scales == NULL)
    return sc_check_no_memory(err);
  for (size_t e = 0; e < b->rig.size.experts; e++)
    for (size_t row = 0; row < rows; row++)
      for (size_t block = 0; block < blocks; block++)
        scales[e * one + row * blocks + block] = b->rig.scales13[e * one + nvfp4_swizzled_offset(row, block, blocks)];
  const enum sc_status status = with_w13(b, b->rig.w13, scales, err);
  free(scales);
  return status;
}

/* alpha[expert] = 1: the encode scales are not taken out again. */
static enum sc_status without_gemm_alpha(struct bench *b, struct sc_error *err)
{
  const struct sc_fused_shape shape = sc_rig_fused_shape(&b->rig, NVFP4_W13_PACKED, &b->what);
  float *ones = sc_calloc_array(b->rig.size.experts, sizeof *ones);
  if (ones == NULL)
    return sc_check_no_memory(err);
  for (size_t e = 0; e < b->rig.size.experts; e++)
    ones[e] = 1.0f;
  enum sc_status status = sc_fused_set_scales(b->rig.check->gpu, &shape, &b->rig.weights, b->globals, err);
  if (status == SC_OK)
    status = replace(b, b->rig.weights.alpha13, ones, b->rig.size.experts * sizeof *ones, err);
  if (status == SC_OK)
    status = sc_rig_forward_as_is(&b->rig, &b->what, b->output, err);
  free(ones);
  return status;
}

static enum sc_status refuse_wrong_layers(struct bench *b, bool a_fp4, struct sc_error *err)
{
  const struct sc_rig *r = &b->rig;
  SC_TRY(prepare(b, swigluoai_packed, a_fp4, true, err));
  memset(b->output, 0, b->bytes);
  refused(b, "zeros");
  SC_TRY(sc_rig_load(r, NVFP4_W13_PACKED, true, err));
  SC_TRY(sc_rig_forward(r, &b->what, b->globals, b->output, err));
  refused(b, "gate and up swapped");
  SC_TRY(sc_rig_load(r, NVFP4_W13_PACKED, false, err));
  SC_TRY(with_activation(b, up_not_clamped_from_below, err));
  refused(b, "up not clamped from below");
  SC_TRY(with_swapped_nibbles(b, err));
  refused(b, "nibbles swapped");
  SC_TRY(with_scales_in_row_order(b, err));
  refused(b, "scales not swizzled");
  SC_TRY(sc_rig_load(r, NVFP4_W13_PACKED, false, err));
  SC_TRY(without_gemm_alpha(b, err));
  refused(b, "the GEMM's alpha not applied");
  struct sc_rig_case wrong = b->what;
  wrong.activation.alpha = 1.0f;
  SC_TRY(sc_rig_forward(r, &wrong, b->globals, b->output, err));
  refused(b, "the activation's alpha not forwarded");
  wrong = b->what;
  wrong.biases = false;
  SC_TRY(sc_rig_forward(r, &wrong, b->globals, b->output, err));
  refused(b, "biases left out");
  return SC_OK;
}

/* ---- parameters ---- */

static const struct sc_activation *named(const char *name)
{
  for (const struct sc_activation_name *a = sc_activation_names; a->name != NULL; a++)
    if (strcmp(a->name, name) == 0)
      return &a->defaults;
  return NULL;
}

/* Into `other`, and whether it equals `output`. */
static enum sc_status equals(struct bench *b, struct sc_activation act, bool wanted, const char *what,
                             struct sc_error *err)
{
  struct sc_rig_case changed = b->what;
  changed.activation = act;
  SC_TRY(sc_rig_forward(&b->rig, &changed, b->globals, b->other, err));
  const bool equal = memcmp(b->output, b->other, b->bytes) == 0;
  sc_check_line(b->rig.check, equal == wanted, "%-52s %-5s %s", what, quant_name(b), b->label);
  return SC_OK;
}

static enum sc_status parameters(struct bench *b, bool a_fp4, struct sc_error *err)
{
  SC_TRY(prepare(b, swigluoai_packed, a_fp4, false, err)); /* for a limit that bites, and scales */
  const float limit = b->what.activation.limit;
  const struct sc_activation plain = *named("silu");
  SC_TRY(sc_rig_load(&b->rig, NVFP4_W13_PACKED, false, err));
  b->what.activation = plain;
  SC_TRY(sc_rig_forward(&b->rig, &b->what, b->globals, b->output, err));
  SC_TRY(equals(b, *named("swigluoai_uninterleave"), true, "swigluoai_uninterleave without parameters is SwiGLU", err));
  SC_TRY(equals(b, (struct sc_activation){SC_ACT_GATED, 1.0f, 0.0f, FLT_MAX}, true,
                "parameters at their defaults change nothing", err));
  SC_TRY(equals(b, (struct sc_activation){SC_ACT_GATED, 1.702f, 0.0f, INFINITY}, false,
                "an alpha that is set changes the output", err));
  SC_TRY(equals(b, (struct sc_activation){SC_ACT_GATED, 1.0f, 1.0f, INFINITY}, false,
                "a beta that is set changes the output", err));
  SC_TRY(equals(b, (struct sc_activation){SC_ACT_GATED, 1.0f, 0.0f, limit}, false,
                "a limit that is set changes the output", err));
  SC_TRY(sc_rig_load(&b->rig, NVFP4_W13_INTERLEAVED, false, err));
  return equals(b, *named("swigluoai"), true, "swigluoai without parameters is SwiGLU", err);
}

static enum sc_status contrary(struct sc_check *c, enum sc_dtype dtype, struct sc_rig_shape size, struct sc_error *err)
{
  struct bench b = {0};
  enum sc_status status = open_bench(&b, c, size, dtype, true, 1.0f, err);
  for (int a_fp4 = 1; status == SC_OK && a_fp4 >= 0; a_fp4--) {
    status = refuse_wrong_layers(&b, a_fp4, err);
    if (status == SC_OK)
      status = parameters(&b, a_fp4, err);
  }
  SC_CHECK(status);
  return SC_OK;
}

/* ---- all of it ---- */

enum { CONFIG_TOKENS = 33, MAX_CONFIG_EXPERTS = 32 }; /* more experts would only cost memory */

static enum sc_status all_gates(struct sc_check *c, enum sc_dtype dtype, struct sc_rig_shape config,
                                struct sc_error *err)
{
  static const struct sc_rig_shape vllm[] = {{16, 128, 512, 4, 2}, {16, 128, 256, 8, 2}},
                                   more[] = {{1, 128, 512, 4, 2}, {33, 192, 320, 5, 3}};
  for (size_t i = 0; i < SC_COUNTOF(vllm); i++)
    SC_TRY(gates_a(c, dtype, vllm[i], err));
  for (size_t i = 0; i < SC_COUNTOF(more); i++)
    SC_TRY(gates_a(c, dtype, more[i], err));
  if (config.hidden % NVFP4_BLOCK == 0 && config.intermediate % NVFP4_BLOCK == 0)
    SC_TRY(gates_a(c, dtype, config, err));
  for (size_t i = 0; i < SC_COUNTOF(vllm); i++)
    SC_TRY(gates_b(c, dtype, vllm[i], err));
  return contrary(c, dtype, vllm[0], err);
}

enum sc_status sc_verify_fused(const struct sc_gpu *gpu, const struct sc_shape *shape, bool *ok, struct sc_error *err)
{
  struct sc_check c = {.gpu = gpu, .key = sc_ref_stream_key(shape->seed, UINT64_MAX - 2 - (uint64_t)shape->dtype)};
  const uint32_t least = shape->top_k > MAX_CONFIG_EXPERTS ? shape->top_k : MAX_CONFIG_EXPERTS;
  const struct sc_rig_shape config = {CONFIG_TOKENS, shape->intermediate, shape->hidden,
                                      shape->experts < least ? shape->experts : least, shape->top_k};
  const enum sc_status status = all_gates(&c, shape->dtype, config, err);
  *ok = *ok && c.failed == 0 && c.passed > 0;
  return status;
}
