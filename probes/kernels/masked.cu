/* SPDX-License-Identifier: Apache-2.0
 * The masked loop's small kernels: what `topk_idx == i`, any, nonzero and a boolean-mask index do on the device. Those
 * that need the whole mask run in one block: masks are short, and a second kernel would be one more launch. */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "common.cuh"

extern "C" __global__ void sc_mask_equal(const int32_t *chosen, uint8_t *mask, uint64_t n, int32_t expert)
{
  for (uint64_t i = grid_first(); i < n; i += grid_step())
    mask[i] = chosen[i] == expert;
}

extern "C" __global__ void __launch_bounds__(SC_BLOCK_SINGLE) sc_mask_any(const uint8_t *mask, uint8_t *any, uint64_t n)
{
  int found = 0;
  for (uint64_t i = threadIdx.x; i < n; i += SC_BLOCK_SINGLE)
    found |= mask[i];
  found = __syncthreads_or(found);
  if (threadIdx.x == 0)
    *any = found != 0;
}

/* rows[t] = any of the k choices of token t. */
extern "C" __global__ void sc_mask_rows(const uint8_t *mask, uint8_t *rows, uint64_t row_count, uint32_t k)
{
  for (uint64_t row = grid_first(); row < row_count; row += grid_step()) {
    uint8_t found = 0;
    for (uint32_t j = 0; j < k; j++)
      found |= mask[row * k + j];
    rows[row] = found != 0;
  }
}

extern "C" __global__ void __launch_bounds__(SC_BLOCK_SINGLE)
    sc_mask_count(const uint8_t *mask, int32_t *count, uint64_t n)
{
  using Reduce = cub::BlockReduce<int32_t, SC_BLOCK_SINGLE>;
  __shared__ typename Reduce::TempStorage temp;
  int32_t mine = 0;
  for (uint64_t i = threadIdx.x; i < n; i += SC_BLOCK_SINGLE)
    mine += mask[i] != 0;
  const int32_t total = Reduce(temp).Sum(mine);
  if (threadIdx.x == 0)
    *count = total;
}

/* Positions of the set bytes, ascending. */
extern "C" __global__ void __launch_bounds__(SC_BLOCK_SINGLE)
    sc_mask_compact(const uint8_t *mask, int32_t *positions, uint64_t n)
{
  using Scan = cub::BlockScan<int32_t, SC_BLOCK_SINGLE>;
  __shared__ typename Scan::TempStorage temp;
  uint64_t base = 0;
  for (uint64_t start = 0; start < n; start += SC_BLOCK_SINGLE * SC_COMPACT_ITEMS) {
    const uint64_t first = start + threadIdx.x * SC_COMPACT_ITEMS;
    int32_t flags[SC_COMPACT_ITEMS], ranks[SC_COMPACT_ITEMS], total;
#pragma unroll
    for (int i = 0; i < SC_COMPACT_ITEMS; i++)
      flags[i] = first + i < n ? mask[first + i] != 0 : 0;
    Scan(temp).ExclusiveSum(flags, ranks, total);
#pragma unroll
    for (int i = 0; i < SC_COMPACT_ITEMS; i++)
      if (flags[i])
        positions[base + ranks[i]] = (int32_t)(first + i);
    base += total;
    __syncthreads(); /* temp is used again */
  }
}

extern "C" __global__ void sc_gather_weights(const float *weights, const int32_t *positions, float *out, uint64_t n)
{
  for (uint64_t i = grid_first(); i < n; i += grid_step())
    out[i] = weights[positions[i]];
}

/* y[rows[i]] += weight * expert output: both operations rounded to T, as PyTorch's two kernels do, and never contracted
 * into one, so that sorted dispatch (sc_combine) arrives at the same bits. Rows are distinct. */
template <typename T>
__device__ void weighted_add(T *y, const T *expert_out, const int32_t *rows, const float *weights, uint64_t n,
                             uint32_t hidden)
{
  for (uint64_t i = blockIdx.x; i < n; i += gridDim.x) {
    T *out = y + (uint64_t)rows[i] * hidden;
    const T *in = expert_out + i * hidden;
    const float weight = weights[i];
    for (uint32_t c = threadIdx.x; c < hidden; c += blockDim.x) {
      const T scaled = from_float<T>(__fmul_rn(weight, to_float(in[c])));
      out[c] = from_float<T>(__fadd_rn(to_float(out[c]), to_float(scaled)));
    }
  }
}

extern "C" __global__ void sc_weighted_add_f32(float *y, const float *expert_out, const int32_t *rows,
                                               const float *weights, uint64_t n, uint32_t hidden)
{
  weighted_add(y, expert_out, rows, weights, n, hidden);
}

extern "C" __global__ void sc_weighted_add_bf16(bf16 *y, const bf16 *expert_out, const int32_t *rows,
                                                const float *weights, uint64_t n, uint32_t hidden)
{
  weighted_add(y, expert_out, rows, weights, n, hidden);
}
