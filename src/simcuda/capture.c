/* SPDX-License-Identifier: Apache-2.0
 * Stream capture and graphs. A captured call becomes a node; the order in which nodes were captured is one valid order
 * of the graph, so a graph is a list. Which streams have joined is followed with one vector clock per stream of a
 * capture. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { MAX_STREAMS = 64 }; /* in one capture */

struct sim_capture {
  uint64_t id;
  CUstreamCaptureMode mode;
  pthread_t owner;
  bool invalidated;
  CUstream origin;
  CUgraph graph;
  unsigned count;
  CUstream streams[MAX_STREAMS];
  uint64_t seen[MAX_STREAMS][MAX_STREAMS]; /* [i][j]: last node of stream j that stream i comes after */
  struct sim_capture *next;
};

static struct sim_capture *captures; /* under way, invalidated ones too */
static uint64_t last_capture_id;
static struct sim_pool graphs = {.bytes = sizeof(struct CUgraph_st)}, execs = {.bytes = sizeof(struct CUgraphExec_st)};
static __thread CUstreamCaptureMode thread_mode; /* global is 0, the default */

static int invalidate(struct sim_capture *capture, int error)
{
  capture->invalidated = true;
  return error;
}

static struct sim_capture *capture_by_id(uint64_t id)
{
  for (struct sim_capture *each = captures; each != NULL; each = each->next)
    if (each->id == id)
      return each;
  return NULL;
}

static CUgraph graph_new(void)
{
  CUgraph graph = sim_pool_get(&graphs);

  if (graph == NULL)
    return NULL;
  *graph = (struct CUgraph_st){.magic = SIM_GRAPH_MAGIC, .references = 1};
  return graph;
}

void sim_graph_release(CUgraph graph)
{
  if (--graph->references != 0)
    return;
  for (struct sim_op *op = graph->head, *next; op != NULL; op = next) {
    next = op->next;
    sim_op_free(op);
  }
  graph->magic = 0;
  sim_pool_put(&graphs, graph);
}

/* ---- what captures forbid ---- */

/* Does this capture keep this thread, in its present mode, from unsafe calls? */
static bool restrains(const struct sim_capture *capture)
{
  bool own = pthread_equal(capture->owner, pthread_self()) != 0;

  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return false;
  return own || (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

int sim_capture_forbid_unsafe(void)
{
  int error = 0;

  for (struct sim_capture *each = captures; each != NULL; each = each->next)
    if (restrains(each))
      error = invalidate(each, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return error;
}

int sim_capture_forbid_any(CUcontext context)
{
  int error = 0;

  for (struct sim_capture *each = captures; each != NULL; each = each->next)
    if (each->origin->context == context)
      error = invalidate(each, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return error;
}

int sim_capture_forbid_legacy(CUstream stream)
{
  int error = 0;

  if (!stream->legacy || captures == NULL)
    return 0;
  for (CUstream other = stream->context->streams; other != NULL; other = other->next)
    if (other->capture != NULL && !(other->flags & CU_STREAM_NON_BLOCKING))
      error = invalidate(other->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  return error;
}

int sim_capture_forbid_wait(CUstream stream)
{
  if (captures == NULL)
    return 0;
  if (stream->capture != NULL)
    return stream->capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                        : invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  int error = sim_capture_forbid_legacy(stream);
  return error != 0 ? error : sim_capture_forbid_unsafe();
}

int sim_capture_forbid_event(CUevent event)
{
  struct sim_capture *capture = event->capture_id != 0 ? capture_by_id(event->capture_id) : NULL;

  if (capture != NULL)
    invalidate(capture, 0);
  if (event->capture_id != 0)
    return CUDA_ERROR_CAPTURED_EVENT;
  return sim_capture_forbid_unsafe();
}

/* ---- what captures record ---- */

int sim_capture_add(CUstream stream, struct sim_op *op)
{
  struct sim_capture *capture = stream->capture;

  if (capture->invalidated) {
    sim_op_free(op);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  CUgraph graph = capture->graph;
  if (graph->tail != NULL)
    graph->tail->next = op;
  else
    graph->head = op;
  graph->tail = op;
  capture->seen[stream->capture_index][stream->capture_index] = ++graph->count;
  return 0;
}

int sim_capture_event_record(CUstream stream, CUevent event)
{
  struct sim_capture *capture = stream->capture;

  if (capture->invalidated)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (event->capture_seen == NULL && (event->capture_seen = malloc(sizeof capture->seen[0])) == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(event->capture_seen, capture->seen[stream->capture_index], sizeof capture->seen[0]);
  event->capture_id = capture->id;
  return 0;
}

static int join(struct sim_capture *capture, CUstream stream)
{
  if (capture->count == MAX_STREAMS)
    return invalidate(capture, CUDA_ERROR_OUT_OF_MEMORY);
  stream->capture = capture;
  stream->capture_index = capture->count;
  stream->references++;
  capture->streams[capture->count++] = stream;
  return 0;
}

/* Called when the stream, the event or both are captured. */
int sim_capture_event_wait(CUstream stream, CUevent event)
{
  struct sim_capture *capture = event->capture_id != 0 ? capture_by_id(event->capture_id) : NULL;

  if (stream->capture != NULL && stream->capture->invalidated)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture == NULL) /* outside, or from a capture that is over */
    return stream->capture != NULL ? invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                                   : CUDA_ERROR_CAPTURED_EVENT;
  if (capture->invalidated)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture == NULL) {
    if (stream->legacy)
      return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    int error = join(capture, stream);
    if (error != 0)
      return error;
  } else if (stream->capture != capture) {
    invalidate(capture, 0);
    return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  uint64_t *row = capture->seen[stream->capture_index];
  for (unsigned i = 0; i < MAX_STREAMS; i++)
    if (event->capture_seen[i] > row[i])
      row[i] = event->capture_seen[i];
  return 0;
}

/* Takes the capture apart; its graph stays with the caller. */
static void end(struct sim_capture *capture)
{
  for (struct sim_capture **link = &captures; *link != NULL; link = &(*link)->next)
    if (*link == capture) {
      *link = capture->next;
      break;
    }
  for (unsigned i = 0; i < capture->count; i++) {
    capture->streams[i]->capture = NULL;
    sim_stream_release(capture->streams[i]);
  }
  free(capture);
}

void sim_capture_stream_gone(CUstream stream)
{
  struct sim_capture *capture = stream->capture;

  if (capture == NULL)
    return;
  invalidate(capture, 0);
  if (capture->origin == stream) {
    sim_graph_release(capture->graph);
    end(capture);
  }
}

static int begin_capture(CUstream handle, CUstreamCaptureMode mode, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if ((int)mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  struct sim_capture *capture = NULL;
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) != 0)
    goto cleanup;
  error = stream->legacy            ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
          : stream->capture != NULL ? CUDA_ERROR_ILLEGAL_STATE
                                    : 0;
  if (error != 0)
    goto cleanup;
  error = CUDA_ERROR_OUT_OF_MEMORY;
  if ((capture = calloc(1, sizeof *capture)) == NULL || (capture->graph = graph_new()) == NULL)
    goto cleanup;
  capture->id = ++last_capture_id;
  capture->mode = mode;
  capture->owner = pthread_self();
  capture->origin = stream;
  capture->next = captures;
  captures = capture;
  error = join(capture, stream);
  capture = NULL;
cleanup:
  free(capture);
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode), (stream, mode),
          begin_capture(stream, mode, per_thread))

static bool all_joined(const struct sim_capture *capture)
{
  const uint64_t *origin = capture->seen[capture->origin->capture_index];

  for (unsigned i = 0; i < capture->count; i++)
    if (origin[i] < capture->seen[i][i])
      return false;
  return true;
}

static int end_capture(CUstream handle, CUgraph *graph, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (graph == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *graph = NULL;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) != 0)
    goto cleanup;
  struct sim_capture *capture = stream->capture;
  if (capture == NULL)
    error = CUDA_ERROR_ILLEGAL_STATE;
  else if (capture->origin != stream)
    error = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  else if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->owner, pthread_self()))
    error = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  else {
    if (capture->invalidated)
      error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!all_joined(capture))
      error = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (error == 0)
      *graph = capture->graph;
    else
      sim_graph_release(capture->graph);
    end(capture);
  }
cleanup:
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *graph), (stream, graph),
          end_capture(stream, graph, per_thread))

static int capture_info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (status == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) == 0) {
    /* Asking the legacy stream while a blocking one captures is an error, but spoils nothing. */
    for (CUstream other = context->streams; stream->legacy && other != NULL; other = other->next)
      if (other->capture != NULL && !(other->flags & CU_STREAM_NON_BLOCKING))
        error = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (error == 0) {
    const struct sim_capture *capture = stream->capture;
    *status = capture == NULL        ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (id != NULL && capture != NULL)
      *id = capture->id;
    if (graph != NULL)
      *graph = capture != NULL ? capture->graph : NULL;
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus *status), (stream, status),
          capture_info(stream, status, NULL, NULL, per_thread))

static int capture_info_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                           const CUgraphNode **dependencies, size_t *count, bool per_thread)
{
  /* The simulation's nodes have no handles of their own. */
  if (dependencies != NULL)
    *dependencies = NULL;
  if (count != NULL)
    *count = 0;
  return capture_info(stream, status, id, graph, per_thread);
}
DRIVER_PT(cuStreamGetCaptureInfo_v3, _ptsz,
          (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
           const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count),
          (stream, status, id, graph, dependencies, edges, count),
          ((void)(edges != NULL ? *edges = NULL : NULL),
           capture_info_v3(stream, status, id, graph, dependencies, count, per_thread)))

static int exchange_mode(CUstreamCaptureMode *mode)
{
  if (mode == NULL || (int)*mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  CUstreamCaptureMode before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return 0;
}
DRIVER(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode), exchange_mode(mode))

/* ---- graphs ---- */

static int create_graph(CUgraph *graph, unsigned flags)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (graph == NULL || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  CUgraph made = graph_new();
  pthread_mutex_unlock(&sim_lock);
  if (made == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *graph = made;
  return 0;
}
DRIVER(cuGraphCreate, (CUgraph * graph, unsigned flags), (graph, flags), create_graph(graph, flags))

static int destroy_graph(CUgraph graph)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if (graph == NULL || graph->magic != SIM_GRAPH_MAGIC)
    error = CUDA_ERROR_INVALID_VALUE;
  else {
    graph->magic = 0;
    sim_graph_release(graph);
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuGraphDestroy, (CUgraph graph), (graph), destroy_graph(graph))

static int count_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (nodes != NULL)
    return CUDA_ERROR_NOT_SUPPORTED; /* nodes have no handles here */
  pthread_mutex_lock(&sim_lock);
  if (graph == NULL || graph->magic != SIM_GRAPH_MAGIC || count == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  else
    *count = graph->count;
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count), (graph, nodes, count),
       count_nodes(graph, nodes, count))

static int instantiate(CUgraphExec *exec, CUgraph graph)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (exec == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  CUgraphExec made = NULL;
  if (graph == NULL || graph->magic != SIM_GRAPH_MAGIC)
    error = CUDA_ERROR_INVALID_VALUE;
  else if ((made = sim_pool_get(&execs)) == NULL)
    error = CUDA_ERROR_OUT_OF_MEMORY;
  if (error == 0) {
    *made = (struct CUgraphExec_st){.magic = SIM_EXEC_MAGIC, .graph = graph};
    graph->references++;
    *exec = made;
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags),
       instantiate(exec, graph))

static int destroy_exec(CUgraphExec exec)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if (exec == NULL || exec->magic != SIM_EXEC_MAGIC)
    error = CUDA_ERROR_INVALID_VALUE;
  else {
    exec->magic = 0;
    sim_graph_release(exec->graph);
    sim_pool_put(&execs, exec);
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuGraphExecDestroy, (CUgraphExec exec), (exec), destroy_exec(exec))

static void run_graph(void *payload)
{
  const CUgraph *graph = payload;

  for (struct sim_op *op = (*graph)->head; op != NULL; op = op->next)
    if (op->run != NULL)
      op->run(op->payload);
}
static void drop_graph(void *payload)
{
  CUgraph *graph = payload;

  sim_graph_release(*graph);
}

static int launch_graph(CUgraphExec exec, CUstream handle, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) != 0)
    goto cleanup;
  if (exec == NULL || exec->magic != SIM_EXEC_MAGIC) {
    error = CUDA_ERROR_INVALID_VALUE;
    goto cleanup;
  }
  struct sim_op *op = sim_op_new(sizeof(CUgraph), run_graph, drop_graph);
  if (op == NULL) {
    error = CUDA_ERROR_OUT_OF_MEMORY;
    goto cleanup;
  }
  *(CUgraph *)sim_payload(op) = exec->graph;
  exec->graph->references++;
  sim_count_submission();
  error = sim_submit(stream, op, NULL);
cleanup:
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), (exec, stream),
          launch_graph(exec, stream, per_thread))

/* There is nothing to prepare: only the stream is checked. */
static int upload_graph(CUgraphExec exec, CUstream handle, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) == 0 &&
      (exec == NULL || exec->magic != SIM_EXEC_MAGIC))
    error = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), (exec, stream),
          upload_graph(exec, stream, per_thread))
