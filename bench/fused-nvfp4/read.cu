/* SPDX-License-Identifier: Apache-2.0
 * Reads n 16-byte words and writes next to nothing: the ceiling of a layer that reads far more than it writes. */
extern "C" __global__ void __launch_bounds__(512) bench_read(const uint4 *words, unsigned long long n, unsigned *sink)
{
  constexpr int UNROLL = 8;
  const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  for (; i + (UNROLL - 1) * stride < n; i += UNROLL * stride) {
    uint4 part[UNROLL]; /* all loads are under way before the first is used */
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      part[u] = __ldcs(words + i + u * stride);
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      sum += part[u].x ^ part[u].y ^ part[u].z ^ part[u].w;
  }
  for (; i < n; i += stride)
    sum += words[i].x ^ words[i].y ^ words[i].z ^ words[i].w;
  if (sum == 0x9e3779b9u) /* the compiler cannot know that hardly any thread writes */
    *sink = sum;
}
