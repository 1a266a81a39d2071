/* SPDX-License-Identifier: Apache-2.0
 * Matrix products against sums in double, and the promise that a result does not depend on how many rows or columns a
 * call has. */
#include <cublas_v2.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

static cublasHandle_t handle;
static cudaStream_t stream;

static uint64_t random_state = 88172645463325252u;
static float random_value(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (float)((double)(random_state >> 11) / 9007199254740992.0 * 2 - 1);
}

static uint16_t to_bf16(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
static float from_bf16(uint16_t value)
{
  uint32_t bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, 4);
  return result;
}

/* A matrix in device memory with its host copy in fp32, padded to a leading dimension. */
struct matrix {
  int rows, columns, ld;
  bool bf16;
  float *host;
  void *device;
};

static void upload(struct matrix *m)
{
  size_t count = (size_t)m->ld * (size_t)m->columns;
  if (!m->bf16) {
    OK(cudaMemcpy(m->device, m->host, count * 4, cudaMemcpyHostToDevice));
    return;
  }
  uint16_t *narrow = malloc(count * 2);
  assert_non_null(narrow);
  for (size_t i = 0; i < count; i++)
    narrow[i] = to_bf16(m->host[i]);
  OK(cudaMemcpy(m->device, narrow, count * 2, cudaMemcpyHostToDevice));
  free(narrow);
}

static struct matrix matrix_new(int rows, int columns, int pad, bool bf16)
{
  struct matrix m = {.rows = rows, .columns = columns, .ld = rows + pad, .bf16 = bf16};
  size_t count = (size_t)m.ld * (size_t)columns;

  m.host = malloc(count * sizeof *m.host);
  assert_non_null(m.host);
  for (size_t i = 0; i < count; i++)
    m.host[i] = bf16 ? from_bf16(to_bf16(random_value())) : random_value();
  OK(cudaMalloc(&m.device, count * (bf16 ? 2 : 4)));
  upload(&m);
  return m;
}

static float *download(const struct matrix *m)
{
  size_t count = (size_t)m->ld * (size_t)m->columns;
  float *out = malloc(count * sizeof *out);

  assert_non_null(out);
  OK(cudaStreamSynchronize(stream));
  if (!m->bf16) {
    OK(cudaMemcpy(out, m->device, count * 4, cudaMemcpyDeviceToHost));
    return out;
  }
  uint16_t *narrow = malloc(count * 2);
  assert_non_null(narrow);
  OK(cudaMemcpy(narrow, m->device, count * 2, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; i++)
    out[i] = from_bf16(narrow[i]);
  free(narrow);
  return out;
}

static void matrix_free(struct matrix *m)
{
  free(m->host);
  OK(cudaFree(m->device));
}

static void multiply(bool ta, bool tb, int m, int n, int k, float alpha, const struct matrix *a, const struct matrix *b,
                     float beta, struct matrix *c)
{
  cudaDataType in = a->bf16 ? CUDA_R_16BF : CUDA_R_32F, out = c->bf16 ? CUDA_R_16BF : CUDA_R_32F;
  OK(cublasGemmEx(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &alpha, a->device,
                  in, a->ld, b->device, in, b->ld, &beta, c->device, out, c->ld, CUBLAS_COMPUTE_32F,
                  CUBLAS_GEMM_DEFAULT));
}

static double element(const struct matrix *m, bool transposed, int row, int column)
{
  return transposed ? m->host[(size_t)row * (size_t)m->ld + (size_t)column]
                    : m->host[(size_t)column * (size_t)m->ld + (size_t)row];
}

/* Relative error over the whole product, and nothing outside it touched. */
static void check_product(bool ta, bool tb, int m, int n, int k, bool bf16_in, bool bf16_out, float alpha, float beta)
{
  struct matrix a = ta ? matrix_new(k, m, 3, bf16_in) : matrix_new(m, k, 3, bf16_in);
  struct matrix b = tb ? matrix_new(n, k, 1, bf16_in) : matrix_new(k, n, 1, bf16_in);
  struct matrix c = matrix_new(m, n, 2, bf16_out);
  double error = 0, norm = 0;

  multiply(ta, tb, m, n, k, alpha, &a, &b, beta, &c);
  float *out = download(&c);
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < m; i++) {
      double sum = 0;
      for (int p = 0; p < k; p++)
        sum += element(&a, ta, i, p) * element(&b, tb, p, j);
      double expected = alpha * sum + beta * element(&c, false, i, j), got = out[j * c.ld + i];
      error += (got - expected) * (got - expected);
      norm += expected * expected;
    }
    for (int i = m; i < c.ld; i++)
      assert_true(out[j * c.ld + i] == c.host[j * c.ld + i]);
  }
  double limit = bf16_out ? 5e-3 : 1e-6;
  if (!(sqrt(error) <= limit * sqrt(norm)))
    fail_msg("%d x %d x %d, transposes %d%d, bf16 %d%d: relative error %g, at most %g", m, n, k, ta, tb, bf16_in,
             bf16_out, sqrt(error / norm), limit);
  free(out);
  matrix_free(&a);
  matrix_free(&b);
  matrix_free(&c);
}

static void products_equal_sums_in_double(void **state)
{
  static const int shapes[][3] = {{1, 1, 1},    {1, 1, 1000}, {7, 5, 3},      {16, 6, 8},   {33, 13, 385},
                                  {100, 1, 70}, {1, 100, 70}, {400, 97, 500}, {65, 800, 64}};

  (void)state;
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (int t = 0; t < 4; t++) {
      check_product(t & 1, t & 2, shapes[s][0], shapes[s][1], shapes[s][2], false, false, 1, 0);
      check_product(t & 1, t & 2, shapes[s][0], shapes[s][1], shapes[s][2], false, false, -0.5f, 2);
    }
}

static void bf16_products_are_summed_in_fp32(void **state)
{
  (void)state;
  for (int t = 0; t < 4; t++) {
    check_product(t & 1, t & 2, 70, 50, 700, true, false, 1, 0);
    check_product(t & 1, t & 2, 70, 50, 700, true, true, 1, 0);
    check_product(t & 1, t & 2, 33, 20, 65, true, true, 0.5f, 1);
  }
}

static void sgemm_is_the_same_product(void **state)
{
  const float one = 1, zero = 0;
  struct matrix a = matrix_new(20, 30, 0, false), b = matrix_new(30, 10, 0, false), c = matrix_new(20, 10, 0, false),
                d = matrix_new(20, 10, 0, false);

  (void)state;
  multiply(false, false, 20, 10, 30, 1, &a, &b, 0, &c);
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 20, 10, 30, &one, a.device, a.ld, b.device, b.ld, &zero, d.device,
                 d.ld));
  float *x = download(&c), *y = download(&d);
  assert_memory_equal(x, y, 20 * 10 * sizeof *x);
  free(x), free(y);
  matrix_free(&a), matrix_free(&b), matrix_free(&c), matrix_free(&d);
}

/* What the masked loop and the sorted dispatch rely on: the same row gives the same bits alone, in a slice, and in the
 * whole. */
static void an_element_does_not_depend_on_the_number_of_rows_or_columns(void **state)
{
  enum { M = 700, N = 900, K = 1000 };
  static const int cuts[] = {1, 2, 5, 15, 16, 17, 100, 383, 384, 385, 699};

  (void)state;
  for (int bf16 = 0; bf16 < 2; bf16++)
    for (int t = 0; t < 4; t++) {
      bool ta = t & 1, tb = t & 2;
      struct matrix a = ta ? matrix_new(K, M, 0, bf16) : matrix_new(M, K, 0, bf16),
                    b = tb ? matrix_new(N, K, 0, bf16) : matrix_new(K, N, 0, bf16);
      struct matrix whole = matrix_new(M, N, 0, bf16);
      multiply(ta, tb, M, N, K, 1, &a, &b, 0, &whole);
      float *expected = download(&whole);
      for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        int m = cuts[i], n = cuts[sizeof cuts / sizeof cuts[0] - 1 - i];
        struct matrix part = matrix_new(m, n, 0, bf16);
        multiply(ta, tb, m, n, K, 1, &a, &b, 0, &part);
        float *got = download(&part);
        for (int j = 0; j < n; j++)
          assert_memory_equal(got + (size_t)j * (size_t)m, expected + (size_t)j * M, (size_t)m * sizeof *got);
        free(got);
        matrix_free(&part);
      }
      free(expected);
      matrix_free(&a);
      matrix_free(&b);
      matrix_free(&whole);
    }
}

static void beta_0_overwrites_nan(void **state)
{
  struct matrix a = matrix_new(9, 9, 0, false), b = matrix_new(9, 9, 0, false), c = matrix_new(9, 9, 0, false);

  (void)state;
  OK(cudaMemset(c.device, 0xff, 81 * 4));
  OK(cudaDeviceSynchronize());
  multiply(false, false, 9, 9, 9, 1, &a, &b, 0, &c);
  float *out = download(&c);
  for (int i = 0; i < 81; i++)
    assert_false(isnan(out[i]));
  free(out);
  matrix_free(&a), matrix_free(&b), matrix_free(&c);
}

static void empty_products_are_well_defined(void **state)
{
  struct matrix a = matrix_new(4, 4, 0, false), c = matrix_new(4, 4, 0, false);
  const float one = 1, two = 2;

  (void)state;
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 4, 4, &one, a.device, 4, a.device, 4, &one, c.device, 4));
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 0, &one, a.device, 4, a.device, 4, &two, c.device, 4));
  float *out = download(&c);
  for (int i = 0; i < 16; i++)
    assert_true(out[i] == 2 * c.host[i]);
  free(out);
  matrix_free(&a), matrix_free(&c);
}

static void batches_are_independent_products(void **state)
{
  enum { COUNT = 5, M = 12, N = 7, K = 33 };
  const float one = 1, zero = 0;
  struct matrix a = matrix_new(M, K * COUNT, 0, true), b = matrix_new(K, N * COUNT, 0, true),
                c = matrix_new(M, N * COUNT, 0, false), one_by_one = matrix_new(M, N * COUNT, 0, false);

  (void)state;
  OK(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, a.device, CUDA_R_16BF, M, M * K,
                                b.device, CUDA_R_16BF, K, K * N, &zero, c.device, CUDA_R_32F, M, M * N, COUNT,
                                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  for (int i = 0; i < COUNT; i++)
    OK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &one, (uint16_t *)a.device + i * M * K, CUDA_R_16BF, M,
                    (uint16_t *)b.device + i * K * N, CUDA_R_16BF, K, &zero, (float *)one_by_one.device + i * M * N,
                    CUDA_R_32F, M, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  float *x = download(&c), *y = download(&one_by_one);
  assert_memory_equal(x, y, COUNT * M * N * sizeof *x);
  free(x), free(y);
  matrix_free(&a), matrix_free(&b), matrix_free(&c), matrix_free(&one_by_one);
}

static void scalars_may_be_in_device_memory(void **state)
{
  struct matrix a = matrix_new(5, 5, 0, false), c = matrix_new(5, 5, 0, false), d = matrix_new(5, 5, 0, false);
  const float scalars[2] = {3, 0};
  float *device;

  (void)state;
  OK(cudaMalloc((void **)&device, sizeof scalars));
  OK(cudaMemcpy(device, scalars, sizeof scalars, cudaMemcpyHostToDevice));
  multiply(false, false, 5, 5, 5, 3, &a, &a, 0, &c);
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 5, 5, 5, device, a.device, 5, a.device, 5, device + 1, d.device, 5));
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  float *x = download(&c), *y = download(&d);
  assert_memory_equal(x, y, 25 * sizeof *x);
  free(x), free(y);
  OK(cudaFree(device));
  matrix_free(&a), matrix_free(&c), matrix_free(&d);
}

static void products_run_in_stream_order_and_can_be_captured(void **state)
{
  struct gate gate = {0};
  struct matrix a = matrix_new(8, 8, 0, false), c = matrix_new(8, 8, 0, false);
  cudaGraph_t graph;
  cudaGraphExec_t exec;

  (void)state;
  launch_pass(&gate, stream);
  multiply(false, false, 8, 8, 8, 1, &a, &a, 0, &c);
  FAILS(cudaStreamQuery(stream), cudaErrorNotReady);
  atomic_store(&gate.open, true);
  float *x = download(&c);
  OK(cudaMemset(c.device, 0, 64 * 4));
  OK(cudaDeviceSynchronize());
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  multiply(false, false, 8, 8, 8, 1, &a, &a, 0, &c);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream));
  float *y = download(&c);
  assert_memory_equal(x, y, 64 * sizeof *x);
  free(x), free(y);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  matrix_free(&a), matrix_free(&c);
  cudaGetLastError();
}

static void bad_arguments_are_refused(void **state)
{
  struct matrix a = matrix_new(4, 4, 0, false);
  const float one = 1;
  int version;

  (void)state;
  FAILS(cublasSgemm(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a.device, 4, a.device, 4, &one, a.device, 4),
        CUBLAS_STATUS_NOT_INITIALIZED);
  FAILS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a.device, 3, a.device, 4, &one, a.device, 4),
        CUBLAS_STATUS_INVALID_VALUE);
  FAILS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, -1, 4, 4, &one, a.device, 4, a.device, 4, &one, a.device, 4),
        CUBLAS_STATUS_INVALID_VALUE);
  FAILS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, NULL, a.device, 4, a.device, 4, &one, a.device, 4),
        CUBLAS_STATUS_INVALID_VALUE);
  FAILS(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a.device, CUDA_R_64F, 4, a.device, CUDA_R_64F, 4,
                     &one, a.device, CUDA_R_64F, 4, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT),
        CUBLAS_STATUS_NOT_SUPPORTED);
  OK(cublasGetVersion(handle, &version));
  assert_int_equal(version, CUBLAS_VERSION);
  assert_string_equal(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
  matrix_free(&a);
}

static int set_up(void **state)
{
  return load_kernels(state) != 0 || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != 0 ||
         cublasCreate(&handle) != 0 || cublasSetStream(handle, stream) != 0;
}
static int tear_down(void **state)
{
  (void)state;
  return cublasDestroy(handle) != 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_equal_sums_in_double),
      cmocka_unit_test(bf16_products_are_summed_in_fp32),
      cmocka_unit_test(sgemm_is_the_same_product),
      cmocka_unit_test(an_element_does_not_depend_on_the_number_of_rows_or_columns),
      cmocka_unit_test(beta_0_overwrites_nan),
      cmocka_unit_test(empty_products_are_well_defined),
      cmocka_unit_test(batches_are_independent_products),
      cmocka_unit_test(scalars_may_be_in_device_memory),
      cmocka_unit_test(products_run_in_stream_order_and_can_be_captured),
      cmocka_unit_test(bad_arguments_are_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
