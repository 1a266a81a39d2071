/* SPDX-License-Identifier: Apache-2.0
 * Weights and inputs from a counter: element i of a stream depends on (seed, stream, i) alone, so the CPU reference
 * makes the same numbers without a copy. reference/random.c is the same function, written apart. */
#include "random.cuh"

/* Uniform in [-scale, scale): 24 random bits, exact up to the one multiplication by scale. */
template <typename T> __device__ void fill(T *out, uint64_t count, uint64_t seed, uint64_t stream, float scale)
{
  const uint64_t key = stream_key(seed, stream);
  for (uint64_t i = grid_first(); i < count; i += grid_step()) {
    const float unit = __fadd_rn(__fmul_rn((float)(counter_hash(key, i) >> 8), 0x1p-23f), -1.0f);
    out[i] = from_float<T>(__fmul_rn(unit, scale));
  }
}

extern "C" __global__ void sc_fill_f32(float *out, uint64_t count, uint64_t seed, uint64_t stream, float scale)
{
  fill(out, count, seed, stream, scale);
}

extern "C" __global__ void sc_fill_bf16(bf16 *out, uint64_t count, uint64_t seed, uint64_t stream, float scale)
{
  fill(out, count, seed, stream, scale);
}
