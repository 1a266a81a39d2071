/* SPDX-License-Identifier: Apache-2.0
 * Matrix products on the CPU, for libcublas: C = alpha * op(A) * op(B) + beta * C, column-major, sums in fp32.
 * An element's terms are added in the same order whatever m and n are: a result does not depend on how many rows a call
 * has. */
#ifndef SIMCUDA_GEMM_H
#define SIMCUDA_GEMM_H

#include <stdbool.h>
#include <stdint.h>

enum gemm_type { GEMM_F32, GEMM_BF16 };

struct gemm {
  int m, n, k, batch;
  bool transpose_a, transpose_b;
  enum gemm_type in, out;
  const void *a, *b;
  void *c;
  int64_t lda, ldb, ldc;                /* elements */
  int64_t stride_a, stride_b, stride_c; /* elements, between the products of a batch */
  float alpha, beta;
  const float *alpha_pointer, *beta_pointer; /* device memory, read when the work runs; NULL: the values above */
};

/* Does the product on this thread and on the pool's, if nobody else uses the pool. */
void gemm_run(const struct gemm *gemm);

#endif
