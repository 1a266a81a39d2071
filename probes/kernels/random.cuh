/* SPDX-License-Identifier: Apache-2.0
 * The counter-based hash behind weights, inputs and overridden routings. Device code only. */
#pragma once

#include "common.cuh"

__device__ __forceinline__ uint64_t mix64(uint64_t x)
{
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__device__ __forceinline__ uint32_t mix32(uint32_t x)
{
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

__device__ __forceinline__ uint64_t stream_key(uint64_t seed, uint64_t stream) { return mix64(seed ^ mix64(stream)); }

/* 32 random bits for element i of the stream with this key. 32-bit arithmetic per element, so that the CPU twin
 * vectorises. */
__device__ __forceinline__ uint32_t counter_hash(uint64_t key, uint64_t i)
{
  const uint32_t low = mix32((uint32_t)i + (uint32_t)key);
  return mix32(low ^ (uint32_t)(key >> 32) ^ ((uint32_t)(i >> 32) * 0x9e3779b9u));
}
