/* SPDX-License-Identifier: Apache-2.0
 * What this device reaches: copying, reading, multiplying. Medians of samples, each long enough that its launches are
 * hidden, in buffers far beyond the L2. */
#include "bench.h"

enum { SAMPLES = 5, COPIES = 8, MATMULS = 8, SIDE = 8192, READ_THREADS = 512, READ_BLOCKS_PER_SM = 4 };
static const uint64_t BUFFER_BYTES = UINT64_C(1) << 30;

extern const unsigned char bench_read_image[];
__asm__(".section .rodata\n.balign 64\n.global bench_read_image\n.hidden bench_read_image\nbench_read_image:\n"
        ".incbin \"" READ_FATBIN "\"\n.previous\n");

struct ceiling {
  const struct sc_gpu *gpu;
  char *from, *to; /* BUFFER_BYTES each */
  cudaLibrary_t library;
  cudaKernel_t read;
  unsigned blocks;
  cudaEvent_t start, stop;
};

static enum sc_status copy(const struct ceiling *c, struct sc_error *err)
{
  SC_CUDA(cudaMemcpyAsync(c->to, c->from, BUFFER_BYTES, cudaMemcpyDeviceToDevice, c->gpu->stream));
  return SC_OK;
}

static enum sc_status read_all(const struct ceiling *c, struct sc_error *err)
{
  const void *words = c->from;
  unsigned long long n = BUFFER_BYTES / 16;
  void *sink = c->to;
  void *args[] = {&words, &n, &sink};
  const struct dim3 grid = {c->blocks, 1, 1}, block = {READ_THREADS, 1, 1};
  SC_CUDA(cudaLaunchKernel((const void *)c->read, grid, block, args, 0, c->gpu->stream));
  return SC_OK;
}

static enum sc_status matmul(const struct ceiling *c, struct sc_error *err)
{
  const uint64_t matrix = (uint64_t)SIDE * SIDE * sc_dtype_size(SC_BF16);
  return sc_gpu_gemm(c->gpu, SC_BF16, SIDE, SIDE, SIDE, c->from, c->from + matrix, c->to, false, err);
}

/* Seconds of one call. */
static enum sc_status time_call(const struct ceiling *c, enum sc_status (*call)(const struct ceiling *, struct sc_error *),
                                int calls, double *seconds, struct sc_error *err)
{
  double samples[SAMPLES];
  for (int s = 0; s < SAMPLES; s++) {
    float ms = 0.0f;
    SC_TRY(call(c, err));
    SC_CUDA(cudaEventRecord(c->start, c->gpu->stream));
    for (int i = 0; i < calls; i++)
      SC_TRY(call(c, err));
    SC_CUDA(cudaEventRecord(c->stop, c->gpu->stream));
    SC_TRY(sc_gpu_sync(c->gpu, err));
    SC_CUDA(cudaEventElapsedTime(&ms, c->start, c->stop));
    samples[s] = (double)ms / 1e3 / calls;
  }
  sc_stats_sort(samples, SAMPLES);
  *seconds = sc_stats_quantile(samples, SAMPLES, 0.5);
  return SC_OK;
}

static enum sc_status open_ceiling(struct ceiling *c, struct sc_error *err)
{
  int multiprocessors = 0;
  SC_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, c->gpu->ordinal));
  c->blocks = (unsigned)multiprocessors * READ_BLOCKS_PER_SM;
  SC_CUDA(cudaLibraryLoadData(&c->library, bench_read_image, NULL, NULL, 0, NULL, NULL, 0));
  SC_CUDA(cudaLibraryGetKernel(&c->read, c->library, "bench_read"));
  SC_CUDA(cudaMalloc((void **)&c->from, BUFFER_BYTES));
  SC_CUDA(cudaMalloc((void **)&c->to, BUFFER_BYTES));
  SC_CUDA(cudaEventCreate(&c->start));
  SC_CUDA(cudaEventCreate(&c->stop));
  /* As the layers' data: a matmul of zeros draws less power and runs faster. */
  return sc_launch_fill(c->gpu, SC_BF16, c->from, BUFFER_BYTES / sc_dtype_size(SC_BF16), 0,
                        sc_ref_stream(0, SC_MATRIX_INPUT), sc_ref_scale(1), err);
}

static void close_ceiling(struct ceiling *c)
{
  if (c->start)
    cudaEventDestroy(c->start);
  if (c->stop)
    cudaEventDestroy(c->stop);
  if (c->from)
    cudaFree(c->from);
  if (c->to)
    cudaFree(c->to);
  if (c->library)
    cudaLibraryUnload(c->library);
}

static enum sc_status measure(struct ceiling *c, struct bench_ceilings *out, struct sc_error *err)
{
  double copying = 0, reading = 0, multiplying = 0;
  SC_TRY(open_ceiling(c, err));
  SC_TRY(time_call(c, copy, COPIES, &copying, err));
  SC_TRY(time_call(c, read_all, COPIES, &reading, err));
  SC_TRY(time_call(c, matmul, MATMULS, &multiplying, err));
  *out = (struct bench_ceilings){.copy_gbs = 2.0 * (double)BUFFER_BYTES / copying / 1e9,
                                 .read_gbs = (double)BUFFER_BYTES / reading / 1e9,
                                 .matmul_tflops = 2.0 * SIDE * SIDE * SIDE / multiplying / 1e12};
  return SC_OK;
}

enum sc_status bench_measure_ceilings(const struct sc_gpu *gpu, struct bench_ceilings *out, struct sc_error *err)
{
  struct ceiling c = {.gpu = gpu};
  const enum sc_status status = measure(&c, out, err);
  close_ceiling(&c);
  return status;
}
