/* SPDX-License-Identifier: Apache-2.0
 * Expert activations: the table of names, the oracle in double, and the float loop that the simulated device runs. */
#include "reference/reference.h"

/* Names as vLLM's MoEActivation has them. No name implies numbers: a parameter that the model does not give is not
 * passed on, and the kernel's own defaults are plain SwiGLU (alpha 1, beta 0, no limit). gpt-oss states its 1.702, 1
 * and 7. */
const struct sc_activation_name sc_activation_names[] = {
    {"silu", true, {SC_ACT_GATED, 1.0f, 0.0f, INFINITY}},
    {"swigluoai", true, {SC_ACT_GATED, 1.0f, 0.0f, INFINITY}},
    {"swigluoai_uninterleave", true, {SC_ACT_GATED, 1.0f, 0.0f, INFINITY}},
    {"relu2_no_mul", false, {SC_ACT_RELU2, 1.0f, 0.0f, INFINITY}},
    {NULL, false, {SC_ACT_GATED, 0.0f, 0.0f, 0.0f}},
};

double sc_ref_activation(const struct sc_activation *act, double gate, double up)
{
  if (act->kind == SC_ACT_RELU2)
    return gate < 0.0 ? 0.0 : gate * gate;
  const double limit = (double)act->limit;
  const double g = gate > limit ? limit : gate;
  const double u = up > limit ? limit : up < -limit ? -limit : up;
  return (u + (double)act->beta) * g / (1.0 + exp(-(double)act->alpha * g));
}

/* exp in float, about 1 ulp, without a call, so that the loop around it vectorises (glibc's would not without
 * -ffast-math). x = n ln2 + r; exp(r) by Cephes' polynomial; 2^n through the exponent bits in two halves, since n
 * reaches -150. */
static inline float fast_exp(float x)
{
  const float clamped = x > 88.7f ? 88.7f : x < -103.0f ? -103.0f : x;
  const float magic = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
  const float rounded = clamped * 0x1.715476p0f + magic;
  const float n = rounded - magic;
  const float r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t whole = (int32_t)n, half = whole >> 1;
  const uint32_t first = (uint32_t)(half + 127) << 23, second = (uint32_t)(whole - half + 127) << 23;
  float a, b;
  memcpy(&a, &first, sizeof a);
  memcpy(&b, &second, sizeof b);
  return p * a * b;
}

static inline float gated(const struct sc_activation *act, float gate, float up)
{
  const float g = gate > act->limit ? act->limit : gate;
  const float u = up > act->limit ? act->limit : up < -act->limit ? -act->limit : up;
  return (u + act->beta) * (g / (1.0f + fast_exp(-act->alpha * g)));
}

static inline float relu2(float gate)
{
  const float g = gate < 0.0f ? 0.0f : gate;
  return g * g;
}

struct activate_job {
  enum sc_dtype dtype;
  const void *gate, *up;
  void *out;
  struct sc_activation act;
};

static void activate_range(void *ctx, uint64_t first, uint64_t last)
{
  const struct activate_job *job = ctx;
  const struct sc_activation act = job->act;
  if (job->dtype == SC_F32) {
    const float *gate = job->gate, *up = job->up;
    float *out = job->out;
    if (act.kind == SC_ACT_RELU2)
      for (uint64_t i = first; i < last; i++)
        out[i] = relu2(gate[i]);
    else
      for (uint64_t i = first; i < last; i++)
        out[i] = gated(&act, gate[i], up[i]);
    return;
  }
  const uint16_t *gate = job->gate, *up = job->up;
  uint16_t *out = job->out;
  if (act.kind == SC_ACT_RELU2)
    for (uint64_t i = first; i < last; i++)
      out[i] = sc_ref_to_bf16(relu2(sc_ref_from_bf16(gate[i])));
  else
    for (uint64_t i = first; i < last; i++)
      out[i] = sc_ref_to_bf16(gated(&act, sc_ref_from_bf16(gate[i]), sc_ref_from_bf16(up[i])));
}

void sc_ref_activate(enum sc_dtype dtype, const void *gate, const void *up, void *out, uint64_t n,
                     const struct sc_activation *act)
{
  struct activate_job job = {dtype, gate, up, out, *act};
  sc_ref_parallel(n, activate_range, &job);
}
