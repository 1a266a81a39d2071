/* SPDX-License-Identifier: Apache-2.0
 * What every kernel file shares: number types, 64-bit indexing, block sizes. Device code only. */
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "launch.h"

using bf16 = __nv_bfloat16;

__device__ __forceinline__ float to_float(float v) { return v; }
__device__ __forceinline__ float to_float(bf16 v) { return __bfloat162float(v); }

template <typename T> __device__ __forceinline__ T from_float(float v);
template <> __device__ __forceinline__ float from_float<float>(float v) { return v; }
template <> __device__ __forceinline__ bf16 from_float<bf16>(float v) { return __float2bfloat16_rn(v); }

/* Position and step of a grid-stride loop. */
__device__ __forceinline__ uint64_t grid_first() { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ uint64_t grid_step() { return (uint64_t)gridDim.x * blockDim.x; }
