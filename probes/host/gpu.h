/* SPDX-License-Identifier: Apache-2.0
 * The device as the probe uses it: one stream, one cuBLAS handle, the embedded kernels, NVTX ranges, and one way to
 * report a failed call. Functions return SC_ERR_DEVICE with the call, its place, what CUDA said and what to do. */
#ifndef SC_PROBE_GPU_H
#define SC_PROBE_GPU_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include "base/base.h"
#include "kernels/fused_args.h"
#include "reference/reference.h"

/* Kernels that exist for both types stand as _F32 and _BF16 in this order: SC_K_x_F32 + dtype. */
#define SC_KERNEL_MAP(X)                                 \
  X(FILL_F32, "sc_fill_f32")                             \
  X(FILL_BF16, "sc_fill_bf16")                           \
  X(SOFTMAX_F32, "sc_softmax_f32")                       \
  X(SOFTMAX_BF16, "sc_softmax_bf16")                     \
  X(TOPK, "sc_topk")                                     \
  X(ROUTE_OVERRIDE, "sc_route_override")                 \
  X(RENORMALIZE, "sc_renormalize")                       \
  X(ROUTE_F32, "sc_route_f32")                           \
  X(ROUTE_BF16, "sc_route_bf16")                         \
  X(MASK_EQUAL, "sc_mask_equal")                         \
  X(MASK_ANY, "sc_mask_any")                             \
  X(MASK_ROWS, "sc_mask_rows")                           \
  X(MASK_COUNT, "sc_mask_count")                         \
  X(MASK_COMPACT, "sc_mask_compact")                     \
  X(GATHER_WEIGHTS, "sc_gather_weights")                 \
  X(GATHER_ROWS_F32, "sc_gather_rows_f32")               \
  X(GATHER_ROWS_BF16, "sc_gather_rows_bf16")             \
  X(ACTIVATE_F32, "sc_activate_f32")                     \
  X(ACTIVATE_BF16, "sc_activate_bf16")                   \
  X(WEIGHTED_ADD_F32, "sc_weighted_add_f32")             \
  X(WEIGHTED_ADD_BF16, "sc_weighted_add_bf16")           \
  X(SORT_HISTOGRAM, "sc_sort_histogram")                 \
  X(SORT_OFFSETS, "sc_sort_offsets")                     \
  X(SORT_SCATTER, "sc_sort_scatter")                     \
  X(SEARCH_BOUNDS, "sc_search_bounds")                   \
  X(COMBINE_F32, "sc_combine_f32")                       \
  X(COMBINE_BF16, "sc_combine_bf16")                     \
  X(TINY, "sc_tiny")                                     \
  X(WRITE_FLAG, "sc_write_flag")                         \
  X(COMPARE, "sc_compare")                               \
  X(FP4_AMAX_F32, "sc_fp4_amax_f32")                     \
  X(FP4_AMAX_BF16, "sc_fp4_amax_bf16")                   \
  X(FP4_GLOBALS, "sc_fp4_globals")                       \
  X(FP4_ALPHAS, "sc_fp4_alphas")                         \
  X(FP4_QUANTISE_F32, "sc_fp4_quantise_f32")             \
  X(FP4_QUANTISE_BF16, "sc_fp4_quantise_bf16")           \
  X(FP4_ROUND_TRIP_F32, "sc_fp4_round_trip_f32")         \
  X(FP4_ROUND_TRIP_BF16, "sc_fp4_round_trip_bf16")       \
  X(FP4_TO_BF16, "sc_fp4_to_bf16")                       \
  X(FP4_REORDER_W13, "sc_fp4_reorder_w13")               \
  X(FP4_SWIZZLE, "sc_fp4_swizzle")                       \
  X(FP4_TILE, "sc_fp4_tile")                             \
  X(FUSED_ALIGN, "sc_fused_align")                       \
  X(FUSED_UP_8_SPLIT, "sc_fused_up_8_split")             \
  X(FUSED_UP_8, "sc_fused_up_8")                         \
  X(FUSED_UP_16, "sc_fused_up_16")                       \
  X(FUSED_UP_32, "sc_fused_up_32")                       \
  X(FUSED_UP_64, "sc_fused_up_64")                       \
  X(FUSED_UP_128, "sc_fused_up_128")                     \
  X(FUSED_DOWN_8_SPLIT, "sc_fused_down_8_split")         \
  X(FUSED_DOWN_8, "sc_fused_down_8")                     \
  X(FUSED_DOWN_16, "sc_fused_down_16")                   \
  X(FUSED_DOWN_32, "sc_fused_down_32")                   \
  X(FUSED_DOWN_64, "sc_fused_down_64")                   \
  X(FUSED_DOWN_128, "sc_fused_down_128")

enum sc_kernel {
#define SC_KERNEL_ENUM(id, name) SC_K_##id,
  SC_KERNEL_MAP(SC_KERNEL_ENUM)
#undef SC_KERNEL_ENUM
      SC_K_COUNT
};
const char *sc_kernel_name(enum sc_kernel kernel);

struct sc_gpu {
  int ordinal;
  cudaStream_t stream;
  cublasHandle_t blas;
  void *workspace;                       /* cuBLAS's own, so that it never allocates inside a forward */
  cudaLibrary_t library, native_library; /* the second only with native_fp4 */
  cudaKernel_t kernels[SC_K_COUNT];
  unsigned multiprocessors;
  bool wgmma;            /* the device has the instruction, and code for it was built */
  unsigned sm_clock_mhz; /* when opened, before any work; 0: not known */
  nvtxDomainHandle_t domain;
  bool ranges; /* false: push and pop do nothing (the controls are no variant) */
};

/* Return from the calling function on failure; it has `struct sc_error *err`. */
#define SC_TRY(expression)                          \
  do {                                              \
    const enum sc_status try_status = (expression); \
    if (try_status != SC_OK)                        \
      return try_status;                            \
  } while (0)
#define SC_CUDA(call)                                                         \
  do {                                                                        \
    const cudaError_t cuda_status = (call);                                   \
    if (cuda_status != cudaSuccess)                                           \
      return sc_gpu_failed(err, cuda_status, #call, __FILE_NAME__, __LINE__); \
  } while (0)
#define SC_CUBLAS(call)                                                              \
  do {                                                                               \
    const cublasStatus_t cublas_status = (call);                                     \
    if (cublas_status != CUBLAS_STATUS_SUCCESS)                                      \
      return sc_gpu_blas_failed(err, cublas_status, #call, __FILE_NAME__, __LINE__); \
  } while (0)
enum sc_status sc_gpu_failed(struct sc_error *err, cudaError_t code, const char *call, const char *file, int line);
enum sc_status sc_gpu_blas_failed(struct sc_error *err, cublasStatus_t code, const char *call, const char *file,
                                  int line);

/* Opens device `ordinal`. native_fp4: the fused layer's kernels with the device's own FP4 conversions; SC_ERR_DEVICE
 * where no code for the device was built. *gpu is zeroed by the caller; sc_gpu_close takes a half-opened one too. */
enum sc_status sc_gpu_open(struct sc_gpu *gpu, int ordinal, bool native_fp4, struct sc_error *err) SC_NODISCARD;
void sc_gpu_close(struct sc_gpu *gpu);
/* The SM clock now, in MHz, of the device with this PCI bus id; 0 when it cannot be told (no NVML, or it refuses). clock.c */
unsigned sc_gpu_sm_clock_mhz(const char *pci_bus_id);

enum sc_status sc_gpu_launch(const struct sc_gpu *gpu, enum sc_kernel kernel, uint64_t blocks, unsigned threads,
                             void **args, struct sc_error *err) SC_NODISCARD;
/* The same with `shared` bytes of dynamic shared memory a block. */
enum sc_status sc_gpu_launch_shared(const struct sc_gpu *gpu, enum sc_kernel kernel, uint64_t blocks, unsigned threads,
                                    unsigned shared, void **args, struct sc_error *err) SC_NODISCARD;
/* Blocks of SC_BLOCK threads that cover n elements, at most SC_MAX_GRID. */
uint64_t sc_gpu_blocks(uint64_t n);
enum sc_status sc_gpu_sync(const struct sc_gpu *gpu, struct sc_error *err) SC_NODISCARD;
/* y[rows][out] = x[rows][in] w[out][in]^T (+ y when accumulate), all row-major: torch's Linear. */
enum sc_status sc_gpu_gemm(const struct sc_gpu *gpu, enum sc_dtype dtype, uint64_t rows, uint32_t out, uint32_t in,
                           const void *x, const void *w, void *y, bool accumulate, struct sc_error *err) SC_NODISCARD;

void sc_gpu_push(const struct sc_gpu *gpu, const char *name);
void sc_gpu_pop(const struct sc_gpu *gpu);

/* What the document says of the device; NULL (and *err) on failure. */
struct json_t;
struct json_t *sc_gpu_describe(const struct sc_gpu *gpu, struct sc_error *err);

/* ---- one typed function a kernel: launch.c. Pointers are device pointers; n and rows may be 0 (nothing is launched).
 * ---- */
enum sc_status sc_launch_fill(const struct sc_gpu *gpu, enum sc_dtype dtype, void *out, uint64_t count, uint64_t seed,
                              uint64_t stream, float scale, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_softmax(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *logits, float *probs,
                                 uint64_t rows, uint32_t experts, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_topk(const struct sc_gpu *gpu, const float *probs, int32_t *chosen, float *weights,
                              uint64_t rows, uint32_t experts, uint32_t k, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_route_override(const struct sc_gpu *gpu, const float *probs, int32_t *chosen, float *weights,
                                        uint64_t rows, uint32_t experts, uint32_t k, enum sc_route_mode mode,
                                        uint64_t seed, uint64_t stream, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_renormalize(const struct sc_gpu *gpu, float *weights, uint64_t rows, uint32_t k,
                                     struct sc_error *err) SC_NODISCARD;
/* The four above in one launch, with the same bits, but no probabilities. */
enum sc_status sc_launch_route(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *logits, int32_t *chosen,
                               float *weights, uint64_t rows, uint32_t experts, uint32_t k, enum sc_route_mode mode,
                               bool renormalize, uint64_t seed, uint64_t stream, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_mask_equal(const struct sc_gpu *gpu, const int32_t *chosen, uint8_t *mask, uint64_t n,
                                    int32_t expert, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_mask_any(const struct sc_gpu *gpu, const uint8_t *mask, uint8_t *any, uint64_t n,
                                  struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_mask_rows(const struct sc_gpu *gpu, const uint8_t *mask, uint8_t *rows, uint64_t row_count,
                                   uint32_t k, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_mask_count(const struct sc_gpu *gpu, const uint8_t *mask, int32_t *count, uint64_t n,
                                    struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_mask_compact(const struct sc_gpu *gpu, const uint8_t *mask, int32_t *positions, uint64_t n,
                                      struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_gather_weights(const struct sc_gpu *gpu, const float *weights, const int32_t *positions,
                                        float *out, uint64_t n, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_gather_rows(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *x,
                                     const int32_t *positions, void *out, uint64_t n, uint32_t divisor, uint32_t hidden,
                                     struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_activate(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *gate, const void *up,
                                  void *out, uint64_t n, const struct sc_activation *act,
                                  struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_weighted_add(const struct sc_gpu *gpu, enum sc_dtype dtype, void *y, const void *expert_out,
                                      const int32_t *rows, const float *weights, uint64_t n, uint32_t hidden,
                                      struct sc_error *err) SC_NODISCARD;
uint32_t sc_sort_tiles(uint64_t n);
enum sc_status sc_launch_sort_histogram(const struct sc_gpu *gpu, const int32_t *chosen, uint32_t *hist, uint64_t n,
                                        uint32_t experts, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_sort_offsets(const struct sc_gpu *gpu, const uint32_t *hist, uint32_t *offsets, uint32_t tiles,
                                      uint32_t experts, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_sort_scatter(const struct sc_gpu *gpu, const int32_t *chosen, const uint32_t *offsets,
                                      int32_t *keys, int32_t *order, int32_t *inverse, uint64_t n, uint32_t experts,
                                      struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_search_bounds(const struct sc_gpu *gpu, const int32_t *keys, int64_t *bounds, uint64_t n,
                                       uint32_t experts, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_combine(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *sorted_out,
                                 const int32_t *inverse, const float *weights, void *y, uint64_t rows, uint32_t k,
                                 uint32_t hidden, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_tiny(const struct sc_gpu *gpu, uint8_t *value, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_write_flag(const struct sc_gpu *gpu, uint32_t *flag, uint32_t value,
                                    struct sc_error *err) SC_NODISCARD;
/* n 16-bit words. */
enum sc_status sc_launch_compare(const struct sc_gpu *gpu, const void *a, const void *b, uint64_t *differ, uint64_t n,
                                 struct sc_error *err) SC_NODISCARD;

/* ---- the fused layer's: launch_fused.c ---- */
enum sc_status sc_launch_fp4_amax(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *x, uint64_t n,
                                  float *result, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_fp4_globals(const struct sc_gpu *gpu, const float *amaxes, float *globals, uint64_t n,
                                     struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_fp4_alphas(const struct sc_gpu *gpu, const float *a_global, const float *w_globals,
                                    float *alphas, uint64_t n, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_fp4_quantise(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *x, uint8_t *codes,
                                      uint8_t *scales, uint64_t rows, uint32_t columns, const float *global,
                                      struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_fp4_to_bf16(const struct sc_gpu *gpu, const void *x, void *out, uint64_t n,
                                     struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_fp4_reorder(const struct sc_gpu *gpu, const uint8_t *from, uint8_t *to, uint64_t rows,
                                     uint64_t row_bytes, uint32_t layout, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_fp4_swizzle(const struct sc_gpu *gpu, const uint8_t *scales, uint8_t *swizzled, uint64_t rows,
                                     uint32_t blocks, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_fp4_round_trip(const struct sc_gpu *gpu, enum sc_dtype dtype, const void *x, void *out, uint64_t n,
                                        const float *global, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_fp4_tile(const struct sc_gpu *gpu, const uint8_t *codes, const uint8_t *scales, uint8_t *tiles,
                                  uint64_t rows, uint32_t columns, bool gated, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_launch_fused_align(const struct sc_gpu *gpu, const int32_t *chosen, int32_t *slot_choice,
                                     int32_t *inverse, struct sc_fused_block *blocks, int32_t *block_count, uint64_t n,
                                     uint32_t experts, uint32_t block_rows, struct sc_error *err) SC_NODISCARD;
/* Once for all launches of sc_launch_fused_gemm. */
enum sc_status sc_launch_fused_prepare(const struct sc_gpu *gpu, struct sc_error *err) SC_NODISCARD;
/* blocks: the host's bound of them. block_rows: 8, 16, 32, 64, or SC_WGMMA_MOST_ROWS where gpu->wgmma. */
enum sc_status sc_launch_fused_gemm(const struct sc_gpu *gpu, const struct sc_fused_gemm *arguments, uint64_t blocks,
                                    uint32_t block_rows, bool up, struct sc_error *err) SC_NODISCARD;

#endif
