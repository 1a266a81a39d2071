/* SPDX-License-Identifier: Apache-2.0
 * What an expert needs around its GEMMs: its rows gathered, and the activation. Both layers use these. */
#include "common.cuh"

/* out[i] = x[positions[i] / divisor]: divisor 1 for row numbers, k for positions among the choices. */
template <typename T>
__device__ void gather_rows(const T *x, const int32_t *positions, T *out, uint64_t n, uint32_t divisor, uint32_t hidden)
{
  const uint64_t row_bytes = (uint64_t)hidden * sizeof(T);
  const bool wide = row_bytes % sizeof(uint4) == 0 && ((uintptr_t)x | (uintptr_t)out) % sizeof(uint4) == 0;
  for (uint64_t i = blockIdx.x; i < n; i += gridDim.x) {
    const uint64_t from = (uint32_t)positions[i] / divisor;
    const T *in_row = x + from * hidden;
    T *out_row = out + i * hidden;
    if (wide) {
      for (uint64_t c = threadIdx.x; c < row_bytes / sizeof(uint4); c += blockDim.x)
        reinterpret_cast<uint4 *>(out_row)[c] = reinterpret_cast<const uint4 *>(in_row)[c];
    } else {
      for (uint32_t c = threadIdx.x; c < hidden; c += blockDim.x)
        out_row[c] = in_row[c];
    }
  }
}

extern "C" __global__ void sc_gather_rows_f32(const float *x, const int32_t *positions, float *out, uint64_t n,
                                              uint32_t divisor, uint32_t hidden)
{
  gather_rows(x, positions, out, n, divisor, hidden);
}

extern "C" __global__ void sc_gather_rows_bf16(const bf16 *x, const int32_t *positions, bf16 *out, uint64_t n,
                                               uint32_t divisor, uint32_t hidden)
{
  gather_rows(x, positions, out, n, divisor, hidden);
}

/* limit is +inf when the activation has none; up is not read by SC_ACT_RELU2. out may be gate. A NaN stays a NaN: a
 * value that was never written must not come out as a plausible number. */
template <typename T>
__device__ void activate(const T *gate, const T *up, T *out, uint64_t n, uint32_t kind, float alpha, float beta,
                         float limit)
{
  for (uint64_t i = grid_first(); i < n; i += grid_step()) {
    float g = to_float(gate[i]), result;
    if (kind == SC_ACT_RELU2) {
      g = g < 0.0f ? 0.0f : g;
      result = g * g;
    } else {
      float u = to_float(up[i]);
      g = g > limit ? limit : g;
      u = u > limit ? limit : u < -limit ? -limit : u;
      result = (u + beta) * (g / (1.0f + expf(-alpha * g)));
    }
    out[i] = from_float<T>(result);
  }
}

extern "C" __global__ void sc_activate_f32(const float *gate, const float *up, float *out, uint64_t n, uint32_t kind,
                                           float alpha, float beta, float limit)
{
  activate(gate, up, out, n, kind, alpha, beta, limit);
}

extern "C" __global__ void sc_activate_bf16(const bf16 *gate, const bf16 *up, bf16 *out, uint64_t n, uint32_t kind,
                                            float alpha, float beta, float limit)
{
  activate(gate, up, out, n, kind, alpha, beta, limit);
}
