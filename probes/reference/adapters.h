/* SPDX-License-Identifier: Apache-2.0
 * How the simulated device's kernels unpack what cudaLaunchKernel was given; and those of the fused layer, for the
 * table. */
#ifndef SC_PROBE_ADAPTERS_H
#define SC_PROBE_ADAPTERS_H

#include <stddef.h>

#define VALUE(type, i) (*(type const *)args[i])
#define POINTER(type, i) VALUE(type *, i)
#define KERNEL_ARGUMENTS const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args
#define KERNEL(name) void name(KERNEL_ARGUMENTS)
#define UNUSED_SHAPE ((void)grid, (void)block, (void)shared_bytes)

/* function, kernel's name, argument count, their sizes in bytes */
#define SC_FUSED_ADAPTER_MAP(X)                                                                      \
  X(sc_adapt_fp4_amax_f32, "sc_fp4_amax_f32", 3, {8, 8, 8})                                          \
  X(sc_adapt_fp4_amax_bf16, "sc_fp4_amax_bf16", 3, {8, 8, 8})                                        \
  X(sc_adapt_fp4_globals, "sc_fp4_globals", 3, {8, 8, 8})                                            \
  X(sc_adapt_fp4_alphas, "sc_fp4_alphas", 4, {8, 8, 8, 8})                                           \
  X(sc_adapt_fp4_quantise_f32, "sc_fp4_quantise_f32", 6, {8, 8, 8, 8, 4, 8})                         \
  X(sc_adapt_fp4_quantise_bf16, "sc_fp4_quantise_bf16", 6, {8, 8, 8, 8, 4, 8})                       \
  X(sc_adapt_fp4_round_trip_f32, "sc_fp4_round_trip_f32", 4, {8, 8, 8, 8})                           \
  X(sc_adapt_fp4_round_trip_bf16, "sc_fp4_round_trip_bf16", 4, {8, 8, 8, 8})                         \
  X(sc_adapt_fp4_to_bf16, "sc_fp4_to_bf16", 3, {8, 8, 8})                                            \
  X(sc_adapt_fp4_reorder_w13, "sc_fp4_reorder_w13", 5, {8, 8, 8, 8, 4})                              \
  X(sc_adapt_fp4_swizzle, "sc_fp4_swizzle", 4, {8, 8, 8, 4})                                         \
  X(sc_adapt_fp4_tile, "sc_fp4_tile", 6, {8, 8, 8, 8, 4, 4})                                         \
  X(sc_adapt_fused_align, "sc_fused_align", 8, {8, 8, 8, 8, 8, 8, 4, 4})                             \
  X(sc_adapt_fused_up_8_split, "sc_fused_up_8_split", 1, {sizeof(struct sc_fused_gemm)})             \
  X(sc_adapt_fused_up_8, "sc_fused_up_8", 1, {sizeof(struct sc_fused_gemm)})                         \
  X(sc_adapt_fused_up_16, "sc_fused_up_16", 1, {sizeof(struct sc_fused_gemm)})                       \
  X(sc_adapt_fused_up_32, "sc_fused_up_32", 1, {sizeof(struct sc_fused_gemm)})                       \
  X(sc_adapt_fused_up_64, "sc_fused_up_64", 1, {sizeof(struct sc_fused_gemm)})                       \
  X(sc_adapt_fused_up_128, "sc_fused_up_128", 1, {sizeof(struct sc_fused_gemm)})                   \
  X(sc_adapt_fused_down_8_split, "sc_fused_down_8_split", 1, {sizeof(struct sc_fused_gemm)})         \
  X(sc_adapt_fused_down_8, "sc_fused_down_8", 1, {sizeof(struct sc_fused_gemm)})                     \
  X(sc_adapt_fused_down_16, "sc_fused_down_16", 1, {sizeof(struct sc_fused_gemm)})                   \
  X(sc_adapt_fused_down_32, "sc_fused_down_32", 1, {sizeof(struct sc_fused_gemm)})                   \
  X(sc_adapt_fused_down_64, "sc_fused_down_64", 1, {sizeof(struct sc_fused_gemm)})                   \
  X(sc_adapt_fused_down_128, "sc_fused_down_128", 1, {sizeof(struct sc_fused_gemm)})

#define SC_FUSED_ADAPTER_DECLARE(function, name, count, ...) void function(KERNEL_ARGUMENTS);
SC_FUSED_ADAPTER_MAP(SC_FUSED_ADAPTER_DECLARE)
#undef SC_FUSED_ADAPTER_DECLARE

#endif
