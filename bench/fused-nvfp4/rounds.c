/* SPDX-License-Identifier: Apache-2.0
 * Forwards one after the other, timed by events, launched one by one or replayed from graphs. */
#include "bench.h"

const char *const bench_variant_names[BENCH_VARIANTS] = {"fused", "sorted"};

enum sc_status bench_forward(struct bench_point *p, enum bench_variant variant, uint32_t slot, struct sc_error *err)
{
  p->model.input = p->slots[slot].input;
  return p->variants[variant]->layer(&p->point, p->slots[slot].layer, err);
}

enum sc_status bench_capture(struct bench_point *p, uint32_t slot, struct sc_error *err)
{
  cudaGraph_t graph = NULL;
  SC_CUDA(cudaStreamBeginCapture(p->gpu->stream, cudaStreamCaptureModeThreadLocal));
  enum sc_status status = bench_forward(p, BENCH_FUSED, slot, err);
  const cudaError_t ended = cudaStreamEndCapture(p->gpu->stream, &graph);
  if (status == SC_OK && ended != cudaSuccess)
    status = sc_gpu_failed(err, ended, "cudaStreamEndCapture", __FILE_NAME__, __LINE__);
  if (status == SC_OK) {
    const cudaError_t made = cudaGraphInstantiate(&p->slots[slot].graph, graph, 0);
    if (made != cudaSuccess)
      status = sc_gpu_failed(err, made, "cudaGraphInstantiate", __FILE_NAME__, __LINE__);
  }
  if (graph != NULL)
    cudaGraphDestroy(graph);
  return status;
}

static enum sc_status enqueue(struct bench_point *p, enum bench_variant variant, bool graph, uint32_t slot,
                              struct sc_error *err)
{
  if (!graph)
    return bench_forward(p, variant, slot, err);
  SC_CUDA(cudaGraphLaunch(p->slots[slot].graph, p->gpu->stream));
  return SC_OK;
}

enum sc_status bench_round(struct bench_point *p, enum bench_variant variant, bool graph, uint64_t count, double *us,
                           struct sc_error *err)
{
  float ms = 0.0f;
  SC_TRY(enqueue(p, variant, graph, p->slot_count - 1, err));
  SC_CUDA(cudaEventRecord(p->start, p->gpu->stream));
  for (uint64_t i = 0; i < count; i++)
    SC_TRY(enqueue(p, variant, graph, (uint32_t)(i % p->slot_count), err));
  SC_CUDA(cudaEventRecord(p->stop, p->gpu->stream));
  SC_TRY(sc_gpu_sync(p->gpu, err));
  SC_CUDA(cudaEventElapsedTime(&ms, p->start, p->stop));
  *us = (double)ms * 1e3 / (double)count;
  return SC_OK;
}
