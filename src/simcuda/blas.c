/* SPDX-License-Identifier: Apache-2.0
 * The part of cuBLAS that an MoE layer uses. Its work is a kernel launched through libcudart, so callbacks, streams and
 * captures treat it as they treat the real library's. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"
#include "hooks.h"

#pragma GCC visibility push(default)

struct cublasContext {
  cudaStream_t stream;
  cublasMath_t math;
  cublasPointerMode_t pointers;
  void *workspace; /* device memory of its own, as the real handle has */
};
enum { WORKSPACE_BYTES = 4 << 20 };

static void run_gemm(const unsigned grid[3], const unsigned block[3], size_t shared, void *const *args)
{
  (void)grid, (void)block, (void)shared;
  gemm_run(args[0]);
}
static const struct simcuda_kernel gemm_kernel = {"simcuda_gemm", run_gemm, 1, {sizeof(struct gemm)}};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
  if (handle == NULL)
    return CUBLAS_STATUS_INVALID_VALUE;
  cublasHandle_t made = calloc(1, sizeof *made);
  if (made == NULL)
    return CUBLAS_STATUS_ALLOC_FAILED;
  cudaError_t error = cudaMalloc(&made->workspace, WORKSPACE_BYTES);
  if (error != cudaSuccess) {
    free(made);
    return error == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_NOT_INITIALIZED;
  }
  *handle = made;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
  if (handle == NULL)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  cudaError_t error = cudaFree(handle->workspace);
  free(handle);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
  (void)handle;
  if (version == NULL)
    return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
  if (handle == NULL)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
  if (handle == NULL || stream == NULL)
    return handle == NULL ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_INVALID_VALUE;
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
  if (handle == NULL)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  return bytes == 0 || (workspace != NULL && (uintptr_t)workspace % 256 == 0) ? CUBLAS_STATUS_SUCCESS
                                                                              : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
  if (handle == NULL)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math = mode; /* sums are fp32 in every mode */
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
  if (handle == NULL || mode == NULL)
    return handle == NULL ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_INVALID_VALUE;
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
  if (handle == NULL)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode)
{
  if (handle == NULL || mode == NULL)
    return handle == NULL ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_INVALID_VALUE;
  *mode = handle->pointers;
  return CUBLAS_STATUS_SUCCESS;
}

#define STATUSES(X)                                                                                        \
  X(SUCCESS)                                                                                               \
  X(NOT_INITIALIZED)                                                                                       \
  X(ALLOC_FAILED) X(INVALID_VALUE) X(ARCH_MISMATCH) X(MAPPING_ERROR) X(EXECUTION_FAILED) X(INTERNAL_ERROR) \
      X(NOT_SUPPORTED) X(LICENSE_ERROR)

const char *cublasGetStatusName(cublasStatus_t status)
{
  switch (status) {
#define CASE(name) \
  case CUBLAS_STATUS_##name: return "CUBLAS_STATUS_" #name;
    STATUSES(CASE)
#undef CASE
  default: return "unknown cuBLAS status";
  }
}
const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

/* ---- products ---- */

static int at_least_one(int value) { return value > 1 ? value : 1; }

static cublasStatus_t launch(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, struct gemm gemm,
                             const void *alpha, const void *beta)
{
  void *args[] = {&gemm};

  if (handle == NULL)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (op_a < CUBLAS_OP_N || op_a > CUBLAS_OP_C || op_b < CUBLAS_OP_N || op_b > CUBLAS_OP_C || gemm.m < 0 ||
      gemm.n < 0 || gemm.k < 0 || gemm.batch < 0 || alpha == NULL || beta == NULL)
    return CUBLAS_STATUS_INVALID_VALUE;
  gemm.transpose_a = op_a != CUBLAS_OP_N;
  gemm.transpose_b = op_b != CUBLAS_OP_N;
  if (gemm.lda < at_least_one(gemm.transpose_a ? gemm.k : gemm.m) ||
      gemm.ldb < at_least_one(gemm.transpose_b ? gemm.n : gemm.k) || gemm.ldc < at_least_one(gemm.m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0)
    return CUBLAS_STATUS_SUCCESS;
  if (gemm.c == NULL || (gemm.k != 0 && (gemm.a == NULL || gemm.b == NULL)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointers == CUBLAS_POINTER_MODE_DEVICE) {
    gemm.alpha_pointer = alpha;
    gemm.beta_pointer = beta;
  } else {
    gemm.alpha = *(const float *)alpha;
    gemm.beta = *(const float *)beta;
  }
  void *kernel = simcuda_add_kernel(&gemm_kernel);
  if (kernel == NULL)
    return CUBLAS_STATUS_INTERNAL_ERROR;
  dim3 grid = {(unsigned)(gemm.m + 127) / 128,
               (unsigned)(gemm.n + 127) / 128 < 65535 ? (unsigned)(gemm.n + 127) / 128 : 65535, 1};
  cudaError_t error = cudaLaunchKernel(kernel, grid, (dim3){256, 1, 1}, args, 0, handle->stream);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

static cublasStatus_t gemm_types(cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute,
                                 struct gemm *gemm)
{
  switch (compute) {
  case CUBLAS_COMPUTE_32F:
  case CUBLAS_COMPUTE_32F_PEDANTIC:
  case CUBLAS_COMPUTE_32F_FAST_16F:
  case CUBLAS_COMPUTE_32F_FAST_16BF:
  case CUBLAS_COMPUTE_32F_FAST_TF32: break;
  default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  bool f32 = a == CUDA_R_32F && b == CUDA_R_32F && c == CUDA_R_32F;
  bool bf16 = a == CUDA_R_16BF && b == CUDA_R_16BF && (c == CUDA_R_16BF || c == CUDA_R_32F);
  if (!f32 && !bf16)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  gemm->in = f32 ? GEMM_F32 : GEMM_BF16;
  gemm->out = c == CUDA_R_32F ? GEMM_F32 : GEMM_BF16;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                              int k, const float *alpha, const float *A, int lda, const float *B, int ldb,
                              const float *beta, float *C, int ldc)
{
  struct gemm gemm = {.m = m, .n = n, .k = k, .batch = 1, .a = A, .b = B, .c = C, .lda = lda, .ldb = ldb, .ldc = ldc};

  return launch(handle, transa, transb, gemm, alpha, beta);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                         int m, int n, int k, const float *alpha, const float *A, int lda,
                                         long long strideA, const float *B, int ldb, long long strideB,
                                         const float *beta, float *C, int ldc, long long strideC, int batchCount)
{
  struct gemm gemm = {.m = m,
                      .n = n,
                      .k = k,
                      .batch = batchCount,
                      .a = A,
                      .b = B,
                      .c = C,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = ldc,
                      .stride_a = strideA,
                      .stride_b = strideB,
                      .stride_c = strideC};

  return launch(handle, transa, transb, gemm, alpha, beta);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B,
                            cudaDataType Btype, int ldb, const void *beta, void *C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
  struct gemm gemm = {.m = m, .n = n, .k = k, .batch = 1, .a = A, .b = B, .c = C, .lda = lda, .ldb = ldb, .ldc = ldc};
  cublasStatus_t status = gemm_types(Atype, Btype, Ctype, computeType, &gemm);

  (void)algo;
  return status != CUBLAS_STATUS_SUCCESS ? status : launch(handle, transa, transb, gemm, alpha, beta);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void *alpha, const void *A, cudaDataType Atype,
                                          int lda, long long strideA, const void *B, cudaDataType Btype, int ldb,
                                          long long strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
                                          long long strideC, int batchCount, cublasComputeType_t computeType,
                                          cublasGemmAlgo_t algo)
{
  struct gemm gemm = {.m = m,
                      .n = n,
                      .k = k,
                      .batch = batchCount,
                      .a = A,
                      .b = B,
                      .c = C,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = ldc,
                      .stride_a = strideA,
                      .stride_b = strideB,
                      .stride_c = strideC};
  cublasStatus_t status = gemm_types(Atype, Btype, Ctype, computeType, &gemm);

  (void)algo;
  return status != CUBLAS_STATUS_SUCCESS ? status : launch(handle, transa, transb, gemm, alpha, beta);
}
