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

/* The k most probable experts of each row, best first, the lower index first among equals. Each round looks for the
 * best candidate strictly behind the one chosen before, so that no mask of chosen experts is needed; a NaN counts as
 * -inf, which keeps every index in range whatever the logits were. */
extern "C" __global__ void sc_topk(const float *probs, int32_t *chosen, float *weights, uint64_t rows, uint32_t experts,
                                   uint32_t k)
{
  const uint32_t lane = threadIdx.x % SC_WARP;
  for (uint64_t row = warp_first(); row < rows; row += warp_step()) {
    const float *in = probs + row * experts;
    float last_value = CUDART_INF_F;
    int32_t last_index = -1;
    for (uint32_t j = 0; j < k; j++) {
      float value = -CUDART_INF_F;
      int32_t index = INT32_MAX;
      for (uint32_t e = lane; e < experts; e += SC_WARP) {
        float v = in[e];
        if (isnan(v))
          v = -CUDART_INF_F;
        const bool behind = v < last_value || (v == last_value && (int32_t)e > last_index);
        if (behind && (v > value || index == INT32_MAX)) {
          value = v;
          index = (int32_t)e;
        }
      }
      for (int offset = SC_WARP / 2; offset > 0; offset /= 2) {
        const float other_value = __shfl_xor_sync(0xffffffffu, value, offset);
        const int32_t other_index = __shfl_xor_sync(0xffffffffu, index, offset);
        const bool mine = index != INT32_MAX, other = other_index != INT32_MAX;
        if (other && (!mine || other_value > value || (other_value == value && other_index < index))) {
          value = other_value;
          index = other_index;
        }
      }
      if (lane == 0) {
        chosen[row * k + j] = index;
        weights[row * k + j] = in[index];
      }
      last_value = value;
      last_index = index;
    }
  }
}

/* Replaces the choice. uniform: every expert equally likely; skewed: expert j with probability 2^-(j+1), the last one
 * takes the rest; one-expert: the same k experts for all tokens. Further choices are the next experts, cyclically. */
extern "C" __global__ void sc_route_override(const float *probs, int32_t *chosen, float *weights, uint64_t rows,
                                             uint32_t experts, uint32_t k, uint32_t mode, uint64_t seed,
                                             uint64_t stream)
{
  const uint64_t key = stream_key(seed, stream);
  for (uint64_t row = grid_first(); row < rows; row += grid_step()) {
    const uint32_t hash = counter_hash(key, row);
    uint32_t first = (uint32_t)(seed % experts);
    if (mode == SC_ROUTE_UNIFORM)
      first = (uint32_t)(((uint64_t)hash * experts) >> 32);
    else if (mode == SC_ROUTE_SKEWED)
      first = min((uint32_t)__clz((int)hash), experts - 1);
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
