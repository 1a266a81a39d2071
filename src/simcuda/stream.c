/* SPDX-License-Identifier: Apache-2.0
 * Entry points of streams, events and host functions. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* Resolves a stream handle; on success the lock is held and the caller releases it. */
static int lock_stream(CUstream handle, bool per_thread, CUstream *stream)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_stream_of(context, handle, per_thread, stream)) != 0)
    pthread_mutex_unlock(&sim_lock);
  return error;
}

static int create(CUstream *stream, unsigned flags, int priority)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  if (stream == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  error = sim_stream_new(context, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority, stream);
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuStreamCreate, (CUstream * stream, unsigned flags), (stream, flags), create(stream, flags, 0))
DRIVER(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority), (stream, flags, priority),
       create(stream, flags, priority))

/* Does not wait: work that is queued is still done. */
static int destroy(CUstream handle)
{
  CUstream stream;

  if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
    return sim_ready() != 0 ? sim_ready() : CUDA_ERROR_INVALID_HANDLE;
  int error = lock_stream(handle, false, &stream);
  if (error != 0)
    return error;
  sim_capture_stream_gone(stream);
  stream->destroyed = true;
  pthread_cond_signal(&stream->wake);
  sim_stream_release(stream);
  pthread_mutex_unlock(&sim_lock);
  return 0;
}
DRIVER(cuStreamDestroy_v2, (CUstream stream), (stream), destroy(stream))

static int synchronize(CUstream handle, bool per_thread)
{
  CUstream stream;
  int error = lock_stream(handle, per_thread, &stream);

  if (error != 0)
    return error;
  if ((error = sim_capture_forbid_wait(stream)) == 0)
    sim_wait_stream(stream);
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuStreamSynchronize, _ptsz, (CUstream stream), (stream), synchronize(stream, per_thread))

static int query(CUstream handle, bool per_thread)
{
  CUstream stream;
  int error = lock_stream(handle, per_thread, &stream);

  if (error != 0)
    return error;
  if ((error = sim_capture_forbid_wait(stream)) == 0) {
    if (!sim_stream_idle(stream))
      error = CUDA_ERROR_NOT_READY;
    else
      stream->observed = stream->completed;
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuStreamQuery, _ptsz, (CUstream stream), (stream), query(stream, per_thread))

enum property { FLAGS, PRIORITY, ID, CONTEXT, DEVICE };
static int get_property(CUstream handle, enum property property, void *out, bool per_thread)
{
  CUstream stream;
  int error = lock_stream(handle, per_thread, &stream);

  if (error != 0)
    return error;
  if (out == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  else if (property == FLAGS)
    *(unsigned *)out = stream->flags;
  else if (property == PRIORITY)
    *(int *)out = stream->priority;
  else if (property == ID)
    *(unsigned long long *)out = stream->id;
  else if (property == CONTEXT)
    *(CUcontext *)out = stream->context;
  else
    *(CUdevice *)out = stream->context->device;
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned *flags), (stream, flags),
          get_property(stream, FLAGS, flags, per_thread))
DRIVER_PT(cuStreamGetPriority, _ptsz, (CUstream stream, int *priority), (stream, priority),
          get_property(stream, PRIORITY, priority, per_thread))
DRIVER_PT(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *id), (stream, id),
          get_property(stream, ID, id, per_thread))
DRIVER_PT(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext *context), (stream, context),
          get_property(stream, CONTEXT, context, per_thread))
#if CUDA_VERSION >= 12080
DRIVER_PT(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice *device), (stream, device),
          get_property(stream, DEVICE, device, per_thread))
#endif

/* ---- events ---- */

static struct sim_pool events = {.bytes = sizeof(struct CUevent_st)};

static int create_event(CUevent *event, unsigned flags)
{
  CUcontext context;
  int error = sim_context(&context);
  const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

  if (error != 0)
    return error;
  if (event == NULL || (flags & ~known) != 0 || ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  CUevent made = sim_pool_get(&events);
  if (made != NULL) {
    uint64_t generation = made->generation; /* records still queued for an earlier life must not match */
    *made = (struct CUevent_st){.magic = SIM_EVENT_MAGIC, .context = context, .flags = flags, .generation = generation};
    *event = made;
  }
  pthread_mutex_unlock(&sim_lock);
  return made != NULL ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}
DRIVER(cuEventCreate, (CUevent * event, unsigned flags), (event, flags), create_event(event, flags))

/* Resolves an event handle; on success the lock is held. */
static int lock_event(CUevent event)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if (event == NULL || event->magic != SIM_EVENT_MAGIC) {
    pthread_mutex_unlock(&sim_lock);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return 0;
}

static int destroy_event(CUevent event)
{
  int error = lock_event(event);

  if (error != 0)
    return error;
  if (event->stream != NULL)
    sim_stream_release(event->stream);
  event->stream = NULL;
  free(event->capture_seen);
  event->capture_seen = NULL;
  event->magic = 0;
  event->generation++;
  sim_pool_put(&events, event);
  pthread_mutex_unlock(&sim_lock);
  return 0;
}
DRIVER(cuEventDestroy_v2, (CUevent event), (event), destroy_event(event))

struct record {
  CUevent event;
  uint64_t generation;
};

static void run_record(void *payload)
{
  const struct record *record = payload;
  uint64_t now = sim_now_ns();

  pthread_mutex_lock(&sim_lock);
  if (record->event->generation == record->generation) {
    record->event->time_ns = now;
    record->event->timed = true;
  }
  pthread_mutex_unlock(&sim_lock);
}

static int record_event(CUevent event, CUstream handle, bool per_thread)
{
  CUstream stream;
  int error = lock_event(event);

  if (error != 0)
    return error;
  if ((error = sim_stream_of(event->context, handle, per_thread, &stream)) != 0)
    goto cleanup;
  if (stream->context != event->context) {
    error = CUDA_ERROR_INVALID_HANDLE;
    goto cleanup;
  }
  if (stream->capture != NULL) {
    error = sim_capture_event_record(stream, event);
    goto cleanup;
  }
  struct sim_op *op = sim_op_new(sizeof(struct record), run_record, NULL);
  if (op == NULL) {
    error = CUDA_ERROR_OUT_OF_MEMORY;
    goto cleanup;
  }
  *(struct record *)sim_payload(op) = (struct record){event, event->generation + 1};
  uint64_t seq;
  if ((error = sim_submit(stream, op, &seq)) != 0)
    goto cleanup;
  stream->references++;
  if (event->stream != NULL)
    sim_stream_release(event->stream);
  event->stream = stream;
  event->seq = seq;
  event->generation++;
  event->recorded = true;
  event->timed = false;
  event->capture_id = 0;
cleanup:
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuEventRecord, _ptsz, (CUevent event, CUstream stream), (event, stream),
          record_event(event, stream, per_thread))
DRIVER_PT(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags), (event, stream, flags),
          (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) != 0 ? CUDA_ERROR_INVALID_VALUE
                                                             : record_event(event, stream, per_thread))

static int query_event(CUevent event)
{
  int error = lock_event(event);

  if (error != 0)
    return error;
  if ((error = sim_capture_forbid_event(event)) == 0 && event->recorded) {
    if (event->stream->completed < event->seq)
      error = CUDA_ERROR_NOT_READY;
    else if (event->stream->observed < event->seq)
      event->stream->observed = event->seq;
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuEventQuery, (CUevent event), (event), query_event(event))

static int synchronize_event(CUevent event)
{
  int error = lock_event(event);

  if (error != 0)
    return error;
  if ((error = sim_capture_forbid_event(event)) == 0 && event->recorded)
    sim_wait_seq(event->stream, event->seq);
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuEventSynchronize, (CUevent event), (event), synchronize_event(event))

static int elapsed(float *milliseconds, CUevent start, CUevent end)
{
  int error = lock_event(start);

  if (error != 0)
    return error;
  if (milliseconds == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  else if (end == NULL || end->magic != SIM_EVENT_MAGIC || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) ||
           !start->recorded || !end->recorded)
    error = CUDA_ERROR_INVALID_HANDLE;
  else if (!start->timed || !end->timed)
    error = CUDA_ERROR_NOT_READY;
  else
    *milliseconds = (float)(((double)end->time_ns - (double)start->time_ns) / 1e6);
  pthread_mutex_unlock(&sim_lock);
  return error;
}
#if CUDA_VERSION >= 12080
DRIVER(cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent end), (milliseconds, start, end),
       elapsed(milliseconds, start, end))
#endif

/* A wait is work of its own that does nothing but depend. */
static int wait_event(CUstream handle, CUevent event, unsigned flags, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error == 0 && (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) != 0)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0)
    error = lock_event(event);
  if (error != 0)
    return error;
  if ((error = sim_stream_of(context, handle, per_thread, &stream)) != 0)
    goto cleanup;
  if (event->capture_id != 0 || stream->capture != NULL) {
    error = sim_capture_event_wait(stream, event);
    goto cleanup;
  }
  if (!event->recorded)
    goto cleanup;
  struct sim_op *op = sim_op_new(0, NULL, NULL);
  if (op == NULL) {
    error = CUDA_ERROR_OUT_OF_MEMORY;
    goto cleanup;
  }
  if (event->stream != stream)
    sim_op_depend(op, event->stream, event->seq);
  error = sim_submit(stream, op, NULL);
cleanup:
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags), (stream, event, flags),
          wait_event(stream, event, flags, per_thread))

/* ---- host functions ---- */

struct host_function {
  CUhostFn function;
  CUstreamCallback callback; /* the older form, when function is NULL */
  CUstream stream;
  void *data;
};

static void run_host_function(void *payload)
{
  const struct host_function *host = payload;

  if (host->function != NULL)
    host->function(host->data);
  else
    host->callback(host->stream, CUDA_SUCCESS, host->data);
}

static int submit_host_function(CUstream handle, struct host_function host, bool per_thread)
{
  CUstream stream;
  int error = lock_stream(handle, per_thread, &stream);

  if (error != 0)
    return error;
  /* A callback cannot be part of a graph; a host function can. */
  if (host.function == NULL && stream->capture != NULL)
    error = sim_capture_forbid_wait(stream);
  struct sim_op *op = error == 0 ? sim_op_new(sizeof host, run_host_function, NULL) : NULL;
  if (error == 0 && op == NULL)
    error = CUDA_ERROR_OUT_OF_MEMORY;
  if (error == 0) {
    memcpy(op->payload, &host, sizeof host);
    sim_count_submission();
    error = sim_submit(stream, op, NULL);
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER_PT(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void *data), (stream, function, data),
          function == NULL
              ? CUDA_ERROR_INVALID_VALUE
              : submit_host_function(stream, (struct host_function){.function = function, .data = data}, per_thread))
DRIVER_PT(cuStreamAddCallback, _ptsz, (CUstream stream, CUstreamCallback callback, void *data, unsigned flags),
          (stream, callback, data, flags),
          callback == NULL || flags != 0
              ? CUDA_ERROR_INVALID_VALUE
              : submit_host_function(stream,
                                     (struct host_function){.callback = callback, .stream = stream, .data = data},
                                     per_thread))
