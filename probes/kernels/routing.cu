/* SPDX-License-Identifier: Apache-2.0
 * The router after its GEMM: softmax, top-k, an override of the choice, renormalisation. */
#include <math_constants.h>

#include "random.cuh"

/* One warp a row. */
__device__ __forceinline__ uint64_t warp_first() { return grid_first() / SC_WARP; }
__device__ __forceinline__ uint64_t warp_step() { return grid_step() / SC_WARP; }

template <typename T> __device__ void softmax(const T *logits, float *probs, uint64_t rows, uint32_t experts)
{
  const uint32_t lane = threadIdx.x % SC_WARP;
  for (uint64_t row = warp_first(); row < rows; row += warp_step()) {
    const T *in = logits + row * experts;
    float *out = probs + row * experts;
    float top = -CUDART_INF_F;
    for (uint32_t e = lane; e < experts; e += SC_WARP)
      top = fmaxf(top, to_float(in[e]));
    for (int offset = SC_WARP / 2; offset > 0; offset /= 2)
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    float sum = 0.0f;
    for (uint32_t e = lane; e < experts; e += SC_WARP)
      sum += expf(to_float(in[e]) - top);
    for (int offset = SC_WARP / 2; offset > 0; offset /= 2)
      sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    for (uint32_t e = lane; e < experts; e += SC_WARP)
      out[e] = expf(to_float(in[e]) - top) / sum;
  }
}

extern "C" __global__ void sc_softmax_f32(const float *logits, float *probs, uint64_t rows, uint32_t experts)
{
  softmax(logits, probs, rows, experts);
}

extern "C" __global__ void sc_softmax_bf16(const bf16 *logits, float *probs, uint64_t rows, uint32_t experts)
{
  softmax(logits, probs, rows, experts);
}

struct Candidate {
  float value;
  int32_t index;
};

/* The better of `best` and expert e, which must stand strictly behind the one chosen before, so that no mask of chosen
 * experts is needed: the most probable, of equals the one seen first. A NaN counts as -inf, which keeps every index in
 * range whatever the logits were. */
__device__ __forceinline__ Candidate better(const Candidate &best, const Candidate &last, float probability, uint32_t e)
{
  const float v = isnan(probability) ? -CUDART_INF_F : probability;
  const bool behind = v < last.value || (v == last.value && (int32_t)e > last.index);
  return behind && (v > best.value || best.index == INT32_MAX) ? Candidate{v, (int32_t)e} : best;
}

/* Of all lanes'; of equals the lower index. Floats are compared as integers that order alike, above 0, which no
 * candidate has. */
__device__ __forceinline__ Candidate best_of_warp(const Candidate &best)
{
  const unsigned all = 0xffffffffu, sign = 1u << 31, bits = __float_as_uint(best.value + 0.0f); /* no -0 */
  const unsigned mine = best.index == INT32_MAX ? 0 : bits & sign ? ~bits : bits | sign;
  const unsigned top = __reduce_max_sync(all, mine);
  const unsigned index = __reduce_min_sync(all, mine == top ? (unsigned)best.index : (unsigned)INT32_MAX);
  return {__uint_as_float(top & sign ? top & ~sign : ~top), (int32_t)index};
}

/* The k most probable experts of each row, best first. */
extern "C" __global__ void sc_topk(const float *probs, int32_t *chosen, float *weights, uint64_t rows, uint32_t experts,
                                   uint32_t k)
{
  const uint32_t lane = threadIdx.x % SC_WARP;
  for (uint64_t row = warp_first(); row < rows; row += warp_step()) {
    const float *in = probs + row * experts;
    Candidate last = {CUDART_INF_F, -1};
    for (uint32_t j = 0; j < k; j++) {
      Candidate best = {-CUDART_INF_F, INT32_MAX};
      for (uint32_t e = lane; e < experts; e += SC_WARP)
        best = better(best, last, in[e], e);
      last = best_of_warp(best);
      if (lane == 0) {
        chosen[row * k + j] = last.index;
        weights[row * k + j] = in[last.index];
      }
    }
  }
}

/* The first expert of a row whose choice is replaced. uniform: every expert equally likely; skewed: expert j with
 * probability 2^-(j+1), the last one takes the rest; one-expert: the same for all tokens. */
__device__ __forceinline__ uint32_t override_first(uint32_t mode, uint64_t seed, uint32_t hash, uint32_t experts)
{
  if (mode == SC_ROUTE_UNIFORM)
    return (uint32_t)(((uint64_t)hash * experts) >> 32);
  if (mode == SC_ROUTE_SKEWED)
    return min((uint32_t)__clz((int)hash), experts - 1);
  return (uint32_t)(seed % experts);
}

/* Replaces the choice. Further choices are the next experts, cyclically. */
extern "C" __global__ void sc_route_override(const float *probs, int32_t *chosen, float *weights, uint64_t rows,
                                             uint32_t experts, uint32_t k, uint32_t mode, uint64_t seed,
                                             uint64_t stream)
{
  const uint64_t key = stream_key(seed, stream);
  for (uint64_t row = grid_first(); row < rows; row += grid_step()) {
    const uint32_t first = override_first(mode, seed, counter_hash(key, row), experts);
    for (uint32_t j = 0; j < k; j++) {
      const uint32_t e = (first + j) % experts;
      chosen[row * k + j] = (int32_t)e;
      weights[row * k + j] = probs[row * experts + e];
    }
  }
}

extern "C" __global__ void sc_renormalize(float *weights, uint64_t rows, uint32_t k)
{
  for (uint64_t row = grid_first(); row < rows; row += grid_step()) {
    float sum = 0.0f;
    for (uint32_t j = 0; j < k; j++)
      sum += weights[row * k + j];
    for (uint32_t j = 0; j < k; j++)
      weights[row * k + j] /= sum + 1e-20f;
  }
}

/* All of the above in one kernel, with the same bits. A lane keeps the choices of its own number and of 32 more, and
 * with KEEP the probabilities of its experts, ROUTE_KEPT at most. */
constexpr uint32_t ROUTE_KEPT = 8;

template <bool KEEP, typename T>
__device__ void route(const T *logits, int32_t *chosen, float *weights, uint64_t rows, uint32_t experts, uint32_t k,
                      uint32_t mode, uint32_t renormalise, uint64_t seed, uint64_t stream)
{
  static_assert(SC_MAX_TOP_K <= 2 * SC_WARP, "choices a lane keeps");
  const uint64_t key = stream_key(seed, stream);
  const uint32_t lane = threadIdx.x % SC_WARP;
  for (uint64_t row = warp_first(); row < rows; row += warp_step()) {
    const T *in = logits + row * experts;
    float top = -CUDART_INF_F, sum = 0.0f, kept[KEEP ? ROUTE_KEPT : 1];
    const auto each = [&](auto work) {
      if constexpr (KEEP) {
#pragma unroll
        for (uint32_t i = 0; i < ROUTE_KEPT; i++)
          if (lane + i * SC_WARP < experts)
            work(lane + i * SC_WARP, kept[i]);
      } else {
        for (uint32_t e = lane; e < experts; e += SC_WARP)
          work(e, kept[0]);
      }
    };
    each([&](uint32_t e, float &own) {
      own = to_float(in[e]);
      top = fmaxf(top, own);
    });
    for (int offset = SC_WARP / 2; offset > 0; offset /= 2)
      top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    each([&](uint32_t e, float &own) {
      own = expf((KEEP ? own : to_float(in[e])) - top);
      sum += own;
    });
    for (int offset = SC_WARP / 2; offset > 0; offset /= 2)
      sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    const auto probability = [&](uint32_t e) { return expf(to_float(in[e]) - top) / sum; };
    each([&](uint32_t e, float &own) { own = KEEP ? own / sum : 0.0f; });

    Candidate last = {CUDART_INF_F, -1}, low = {}, high = {};
    float total = 0.0f;
    const uint32_t first = mode == SC_ROUTE_ROUTER ? 0 : override_first(mode, seed, counter_hash(key, row), experts);
    for (uint32_t j = 0; j < k; j++) {
      Candidate next;
      if (mode == SC_ROUTE_ROUTER) {
        next = {-CUDART_INF_F, INT32_MAX};
        each([&](uint32_t e, float &own) { next = better(next, last, KEEP ? own : probability(e), e); });
        next = best_of_warp(next);
        last = next;
      } else {
        next = {-CUDART_INF_F, (int32_t)((first + j) % experts)};
      }
      if (next.value == -CUDART_INF_F) /* a NaN is a weight, if no candidate */
        next.value = probability((uint32_t)next.index);
      total += next.value;
      if (j % SC_WARP == lane)
        (j < SC_WARP ? low : high) = next;
    }
    for (uint32_t j = lane; j < k; j += SC_WARP) {
      const Candidate own = j < SC_WARP ? low : high;
      chosen[row * k + j] = own.index;
      weights[row * k + j] = renormalise ? own.value / (total + 1e-20f) : own.value;
    }
  }
}

template <typename T>
__device__ void route(const T *logits, int32_t *chosen, float *weights, uint64_t rows, uint32_t experts, uint32_t k,
                      uint32_t mode, uint32_t renormalise, uint64_t seed, uint64_t stream)
{
  if (experts <= ROUTE_KEPT * SC_WARP)
    route<true>(logits, chosen, weights, rows, experts, k, mode, renormalise, seed, stream);
  else
    route<false>(logits, chosen, weights, rows, experts, k, mode, renormalise, seed, stream);
}

extern "C" __global__ void sc_route_f32(const float *logits, int32_t *chosen, float *weights, uint64_t rows,
                                        uint32_t experts, uint32_t k, uint32_t mode, uint32_t renormalise,
                                        uint64_t seed, uint64_t stream)
{
  route(logits, chosen, weights, rows, experts, k, mode, renormalise, seed, stream);
}

extern "C" __global__ void sc_route_bf16(const bf16 *logits, int32_t *chosen, float *weights, uint64_t rows,
                                         uint32_t experts, uint32_t k, uint32_t mode, uint32_t renormalise,
                                         uint64_t seed, uint64_t stream)
{
  route(logits, chosen, weights, rows, experts, k, mode, renormalise, seed, stream);
}
