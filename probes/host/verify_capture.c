/* SPDX-License-Identifier: Apache-2.0
 * That a forward waits for nothing, proved without counting: a call that would block during a stream capture is
 * refused. The whole fused forward is captured, instantiated and replayed with the same bits; the masked loop and
 * sorted dispatch must be refused, and after that the stream works again. */
#include <stdio.h>
#include <stdlib.h>

#include "host/check.h"
#include "host/verify.h"

/* Outputs of all layers, on the host. */
static enum sc_status fetch_output(struct sc_check *c, const struct sc_model *m, void *host, size_t bytes,
                                   struct sc_error *err)
{
  return sc_check_fetch(c, host, m->output, bytes, err);
}

static enum sc_status poison_output(const struct sc_model *m, size_t bytes, struct sc_error *err)
{
  SC_CUDA(cudaMemsetAsync(m->output, 0xff, bytes, m->gpu->stream));
  return sc_gpu_sync(m->gpu, err);
}

/* A forward between begin and end. *refused: whether it, or the end of the capture, failed; *graph is NULL then. */
static enum sc_status capture(const struct sc_variant *variant, const struct sc_point *point, cudaGraph_t *graph,
                              bool *refused, char *why, size_t size, struct sc_error *err)
{
  const struct sc_gpu *gpu = point->model->gpu;
  struct sc_error inner = {0};
  *graph = NULL;
  SC_CUDA(cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeGlobal));
  const enum sc_status status = sc_forward(variant, point, &inner);
  const cudaError_t end = cudaStreamEndCapture(gpu->stream, graph);
  *refused = status != SC_OK || end != cudaSuccess;
  why[0] = '\0';
  if (*refused) {
    snprintf(why, size, "%.*s; then cudaStreamEndCapture: %s", (int)strcspn(inner.message, ";"), inner.message,
             cudaGetErrorName(end));
    (void)cudaGetLastError(); /* seen */
    if (*graph != NULL)
      cudaGraphDestroy(*graph);
    *graph = NULL;
  }
  return SC_OK;
}

static enum sc_status replay(const struct sc_gpu *gpu, cudaGraph_t graph, struct sc_error *err)
{
  cudaGraphExec_t exec = NULL;
  SC_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  const cudaError_t code = cudaGraphLaunch(exec, gpu->stream);
  enum sc_status status = code == cudaSuccess ? sc_gpu_sync(gpu, err)
                                              : sc_gpu_failed(err, code, "cudaGraphLaunch", __FILE_NAME__, __LINE__);
  const cudaError_t destroyed = cudaGraphExecDestroy(exec);
  if (status == SC_OK && destroyed != cudaSuccess)
    status = sc_gpu_failed(err, destroyed, "cudaGraphExecDestroy", __FILE_NAME__, __LINE__);
  return status;
}

/* A variant without syncs: what a graph of it puts out is what it puts out itself. */
static enum sc_status expect_captured(struct sc_check *c, const struct sc_variant *variant,
                                      const struct sc_point *point, void *eager, void *other, size_t bytes,
                                      struct sc_error *err)
{
  const struct sc_gpu *gpu = point->model->gpu;
  cudaGraph_t graph;
  bool refused = false;
  char why[400];
  SC_TRY(poison_output(point->model, bytes, err));
  SC_TRY(sc_forward(variant, point, err));
  SC_TRY(fetch_output(c, point->model, eager, bytes, err));
  SC_TRY(poison_output(point->model, bytes, err));
  SC_TRY(capture(variant, point, &graph, &refused, why, sizeof why, err));
  if (refused) {
    sc_check_line(c, false, "capture %s, %u experts: refused: %s", variant->name, point->experts, why);
    return SC_OK;
  }
  size_t nodes = 0;
  enum sc_status status = SC_OK;
  const cudaError_t counted = cudaGraphGetNodes(graph, NULL, &nodes);
  if (counted != cudaSuccess)
    status = sc_gpu_failed(err, counted, "cudaGraphGetNodes", __FILE_NAME__, __LINE__);
  /* A captured forward has not run: the poison is still there. */
  if (status == SC_OK)
    status = fetch_output(c, point->model, other, bytes, err);
  const bool untouched = status == SC_OK && memcmp(eager, other, bytes) != 0;
  if (status == SC_OK)
    status = replay(gpu, graph, err);
  if (status == SC_OK)
    status = fetch_output(c, point->model, other, bytes, err);
  cudaGraphDestroy(graph);
  if (status != SC_OK)
    return status;
  sc_check_line(c, untouched && memcmp(eager, other, bytes) == 0,
                "capture %s, %u experts: %u layers, %zu graph nodes, replayed with the same bits", variant->name,
                point->experts, point->model->layers, nodes);
  return SC_OK;
}

static enum sc_status expect_refused(struct sc_check *c, const struct sc_variant *variant, const struct sc_point *point,
                                     void *eager, void *other, size_t bytes, struct sc_error *err)
{
  cudaGraph_t graph;
  bool refused = false;
  char why[400];
  SC_TRY(poison_output(point->model, bytes, err));
  SC_TRY(sc_forward(variant, point, err));
  SC_TRY(fetch_output(c, point->model, eager, bytes, err));
  SC_TRY(capture(variant, point, &graph, &refused, why, sizeof why, err));
  sc_check_line(c, refused, "capture %s, %u experts: %s%s", variant->name, point->experts,
                refused ? "refused, as it must be: " : "NOT refused", why);
  if (graph != NULL)
    cudaGraphDestroy(graph);
  SC_TRY(poison_output(point->model, bytes, err));
  SC_TRY(sc_forward(variant, point, err));
  SC_TRY(fetch_output(c, point->model, other, bytes, err));
  sc_check_line(c, memcmp(eager, other, bytes) == 0,
                "capture %s, %u experts: the stream works again, with the same bits", variant->name, point->experts);
  return SC_OK;
}

static enum sc_status check_capture(struct sc_check *c, const struct sc_variant *variant, const struct sc_point *point,
                                    struct sc_error *err)
{
  const struct sc_model *m = point->model;
  const size_t bytes = (size_t)m->layers * m->max_tokens * m->shape.hidden * sc_dtype_size(m->shape.dtype);
  void *eager = sc_check_host(c, bytes, 1), *other = sc_check_host(c, bytes, 1);
  if (!eager || !other)
    return sc_check_no_memory(err);
  return (variant->waits ? expect_refused : expect_captured)(c, variant, point, eager, other, bytes, err);
}

enum sc_status sc_verify_capture(const struct sc_variant *variant, const struct sc_point *point, bool *ok,
                                 struct sc_error *err)
{
  struct sc_check check = {.gpu = point->model->gpu}, *c = &check;
  SC_CHECK(check_capture(c, variant, point, err));
  *ok = *ok && c->failed == 0 && c->passed > 0;
  return SC_OK;
}
