/* SPDX-License-Identifier: Apache-2.0
 * Sorted dispatch: a stable counting sort of the choices by expert (tile histograms, their scan, a scatter that ranks
 * each key inside its tile), the bounds of each expert's slice, and the combination of the results. */
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>

#include "common.cuh"

/* hist[tile][expert], one block a tile. */
extern "C" __global__ void __launch_bounds__(SC_SORT_BLOCK)
    sc_sort_histogram(const int32_t *chosen, uint32_t *hist, uint64_t n, uint32_t experts)
{
  __shared__ uint32_t counts[SC_MAX_EXPERTS];
  for (uint32_t e = threadIdx.x; e < experts; e += SC_SORT_BLOCK)
    counts[e] = 0;
  __syncthreads();
  const uint64_t start = (uint64_t)blockIdx.x * SC_SORT_TILE;
  for (uint32_t i = threadIdx.x; i < SC_SORT_TILE && start + i < n; i += SC_SORT_BLOCK)
    atomicAdd(&counts[chosen[start + i]], 1u);
  __syncthreads();
  for (uint32_t e = threadIdx.x; e < experts; e += SC_SORT_BLOCK)
    hist[(uint64_t)blockIdx.x * experts + e] = counts[e];
}

/* offsets[tile][expert]: where that tile's first key of that expert goes. One block, one thread an expert. */
extern "C" __global__ void __launch_bounds__(SC_BLOCK_SINGLE)
    sc_sort_offsets(const uint32_t *hist, uint32_t *offsets, uint32_t tiles, uint32_t experts)
{
  using Scan = cub::BlockScan<uint32_t, SC_BLOCK_SINGLE>;
  __shared__ typename Scan::TempStorage temp;
  const uint32_t e = threadIdx.x;
  uint32_t total = 0, running = 0;
  if (e < experts)
    for (uint32_t tile = 0; tile < tiles; tile++)
      total += hist[(uint64_t)tile * experts + e];
  Scan(temp).ExclusiveSum(total, running);
  if (e < experts)
    for (uint32_t tile = 0; tile < tiles; tile++) {
      offsets[(uint64_t)tile * experts + e] = running;
      running += hist[(uint64_t)tile * experts + e];
    }
}

/* keys: the sorted experts; order: which choice stands there; inverse: where each choice went. */
extern "C" __global__ void __launch_bounds__(SC_SORT_BLOCK)
    sc_sort_scatter(const int32_t *chosen, const uint32_t *offsets, int32_t *keys, int32_t *order, int32_t *inverse,
                    uint64_t n, uint32_t experts)
{
  using Sort = cub::BlockRadixSort<uint32_t, SC_SORT_BLOCK, SC_SORT_ITEMS, uint32_t>;
  __shared__ typename Sort::TempStorage temp;
  __shared__ uint32_t tile_start[SC_MAX_EXPERTS];
  __shared__ uint32_t last_key[SC_SORT_BLOCK];
  const uint64_t start = (uint64_t)blockIdx.x * SC_SORT_TILE;
  const uint32_t first = threadIdx.x * SC_SORT_ITEMS;
  uint32_t key[SC_SORT_ITEMS], local[SC_SORT_ITEMS];
#pragma unroll
  for (int i = 0; i < SC_SORT_ITEMS; i++) {
    local[i] = first + i;
    key[i] = start + first + i < n ? (uint32_t)chosen[start + first + i] : experts; /* padding sorts last */
  }
  Sort(temp).Sort(key, local, 0, 32 - __clz((int)experts));

  last_key[threadIdx.x] = key[SC_SORT_ITEMS - 1];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < SC_SORT_ITEMS; i++) {
    const bool head = i > 0 ? key[i] != key[i - 1] : threadIdx.x == 0 || key[0] != last_key[threadIdx.x - 1];
    if (head && key[i] < experts)
      tile_start[key[i]] = first + i;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < SC_SORT_ITEMS; i++)
    if (key[i] < experts) {
      const uint32_t at = offsets[(uint64_t)blockIdx.x * experts + key[i]] + (first + i - tile_start[key[i]]);
      const uint64_t from = start + local[i];
      keys[at] = (int32_t)key[i];
      order[at] = (int32_t)from;
      inverse[from] = (int32_t)at;
    }
}

/* searchsorted(keys, arange(experts), right=True): bounds[e] is the end of expert e's slice. */
extern "C" __global__ void sc_search_bounds(const int32_t *keys, int64_t *bounds, uint64_t n, uint32_t experts)
{
  for (uint64_t e = grid_first(); e < experts; e += grid_step()) {
    uint64_t low = 0, high = n;
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      if (keys[middle] <= (int32_t)e)
        low = middle + 1;
      else
        high = middle;
    }
    bounds[e] = (int64_t)low;
  }
}

/* WIDTH neighbouring columns of one row of y, by one access each. */
template <typename T, int WIDTH> struct alignas(WIDTH * sizeof(T)) Columns {
  T value[WIDTH];
};

template <typename T, int WIDTH>
__device__ __forceinline__ void combine_row(const T *sorted_out, const int32_t *place, const float *weight, T *y,
                                            uint32_t k, uint32_t hidden)
{
  using Access = Columns<T, WIDTH>;
  for (uint32_t c = threadIdx.x; c < hidden / WIDTH; c += blockDim.x) {
    Access sum;
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
      sum.value[i] = from_float<T>(0.0f);
#pragma unroll 8
    for (uint32_t j = 0; j < k; j++) {
      const Access in = reinterpret_cast<const Access *>(sorted_out + (uint64_t)place[j] * hidden)[c];
#pragma unroll
      for (int i = 0; i < WIDTH; i++) {
        const T scaled = from_float<T>(__fmul_rn(weight[j], to_float(in.value[i])));
        sum.value[i] = from_float<T>(__fadd_rn(to_float(sum.value[i]), to_float(scaled)));
      }
    }
    reinterpret_cast<Access *>(y)[c] = sum;
  }
}

/* y[t] = sum over its k choices, in ascending order of their places in the sorted list, that is of their experts: the
 * order and the roundings of the masked loop (sc_weighted_add). */
template <typename T>
__device__ void combine(const T *sorted_out, const int32_t *inverse, const float *weights, T *y, uint64_t rows,
                        uint32_t k, uint32_t hidden)
{
  constexpr int WIDTH = sizeof(uint4) / sizeof(T);
  __shared__ int32_t place[SC_MAX_TOP_K];
  __shared__ float weight[SC_MAX_TOP_K];
  const bool wide = hidden % WIDTH == 0 && ((uintptr_t)sorted_out | (uintptr_t)y) % sizeof(uint4) == 0;
  for (uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    __syncthreads(); /* the row before has been read */
    for (uint32_t j = threadIdx.x; j < k; j += blockDim.x) {
      const int32_t mine = inverse[row * k + j];
      uint32_t rank = 0;
      for (uint32_t i = 0; i < k; i++)
        rank += inverse[row * k + i] < mine;
      place[rank] = mine;
      weight[rank] = weights[row * k + j];
    }
    __syncthreads();
    if (wide)
      combine_row<T, WIDTH>(sorted_out, place, weight, y + row * hidden, k, hidden);
    else
      combine_row<T, 1>(sorted_out, place, weight, y + row * hidden, k, hidden);
  }
}

extern "C" __global__ void sc_combine_f32(const float *sorted_out, const int32_t *inverse, const float *weights,
                                          float *y, uint64_t rows, uint32_t k, uint32_t hidden)
{
  combine(sorted_out, inverse, weights, y, rows, k, hidden);
}

extern "C" __global__ void sc_combine_bf16(const bf16 *sorted_out, const int32_t *inverse, const float *weights,
                                           bf16 *y, uint64_t rows, uint32_t k, uint32_t hidden)
{
  combine(sorted_out, inverse, weights, y, rows, k, hidden);
}
