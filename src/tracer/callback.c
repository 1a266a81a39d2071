/* SPDX-License-Identifier: Apache-2.0
 * The callback: finds the outermost CUDA call of each thread and writes one record for it.
 *
 * A call is outermost when its thread is in no other watched call. At entry, a driver call under a runtime call is
 * dropped, and so is any call with the correlation id of the call that is open: they belong to it. Everything else that
 * is entered while a call is open means that the open call's exit was never reported, and takes its place. At exit,
 * only the call that is open counts.
 *
 * Submissions: launches and graph launches only add to the thread's counter (sc_writer_submission), which the next
 * record carries in head.submissions: the submissions strictly before that record, since the previous one. Copies,
 * memsets, host functions and prefetches are records; a record is itself a submission by its op and is never in the
 * counter.
 *
 * No CUDA call is made here. cuptiGetDeviceId is, once per thread and context, with no lock of ours held. */
#include "tracer/callback.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>
#include <cupti.h>

#include "base/base.h"
#include "trace/count.h"
#include "tracer/arguments.h"
#include "tracer/beyond.h"
#include "tracer/capture.h"
#include "tracer/stacks.h"
#include "tracer/thread.h"

#define NOT_READY 600 /* cudaErrorNotReady and CUDA_ERROR_NOT_READY */
#define NO_DEVICE 255
#define AWAIT_MS 50 /* for a call of a program that may make none */

static const struct sc_cupti *cupti;
/* Atomic: a callback that was on its way when an earlier session ended may still look at it. */
static const struct sc_watch_table *_Atomic table;
static _Atomic bool late;            /* memory was allocated before we could see it */
static _Atomic bool imports;         /* memory whose making was not seen has come in */
static _Atomic uint32_t last_before; /* the highest correlation id that came by before the session; 0: none did */
static _Atomic bool sleeping[256];   /* by device: waiting sleeps. NO_DEVICE: set before there was a context, holds for
                                      all */

void sc_callback_prepare(const struct sc_cupti *with, const struct sc_watch_table *watched, struct sc_writer *writer,
                         bool is_late) {
  sc_beyond_prepare(writer, watched, is_late);
  cupti = with;
  sc_memory_reset();
  sc_capture_reset();
  atomic_store_explicit(&imports, false, memory_order_relaxed);
  atomic_store_explicit(&last_before, 0, memory_order_relaxed);
  for (size_t i = 0; i < SC_COUNTOF(sleeping); i++)
    atomic_store_explicit(&sleeping[i], false, memory_order_relaxed);
  atomic_store_explicit(&late, is_late, memory_order_relaxed);
  atomic_store_explicit(&table, watched, memory_order_release);
}

static struct sc_memory_view view(void) {
  return (struct sc_memory_view){ .late = atomic_load_explicit(&late, memory_order_relaxed),
                                  .imports = atomic_load_explicit(&imports, memory_order_relaxed) };
}

static uint8_t device_of(struct sc_thread *thread, const CUpti_CallbackData *data) {
  uint32_t device = NO_DEVICE;
  if (data->context == NULL)
    return NO_DEVICE;
  if (thread->context == data->context && thread->context_uid == data->contextUid)
    return thread->device;
  int saved = errno;
  if (cupti->device_of_context == NULL || cupti->device_of_context(data->context, &device) != 0 || device > NO_DEVICE)
    device = NO_DEVICE;
  errno = saved;
  thread->context = data->context;
  thread->context_uid = data->contextUid;
  thread->device = (uint8_t)device;
  return thread->device;
}

static int status_of(const CUpti_CallbackData *data) {
  int status = 0;
  if (data->functionReturnValue != NULL)
    memcpy(&status, data->functionReturnValue, sizeof(status));
  return status;
}

/* ---- what calls change in what we know --------------------------------------------------------------- */
static void seen_import(struct sc_thread *thread, const char *what) {
  if (atomic_exchange_explicit(&imports, true, memory_order_relaxed) || thread->out == NULL)
    return;
  sc_writer_text(thread->out, SC_RECORD_NOTE, SC_NOTE_UNKNOWN_MEMORY, what, strlen(what));
}

#define ALLOCATION_MANAGED 2 /* CU_MEM_ALLOCATION_TYPE_MANAGED, which 12.8's headers lack: a pool of managed memory */

static uint8_t kind_of_location(int allocation, int location) {
  if (allocation == ALLOCATION_MANAGED)
    return SC_MEMORY_MANAGED;
  /* Host and host NUMA memory that CUDA made is page-locked. */
  return location == CU_MEM_LOCATION_TYPE_DEVICE ? SC_MEMORY_DEVICE : SC_MEMORY_PINNED;
}

/* A pointer-sized value that the call wrote where `out` points. */
static uint64_t written(const void *params, struct sc_field out) {
  const void *where = sc_field_pointer(params, out);
  uint64_t value = 0;
  if (where != NULL)
    memcpy(&value, where, sizeof(value));
  return value;
}

static void add_memory(uint64_t address, uint64_t size, uint8_t kind, bool pool, const void *context) {
  struct sc_block block = {
    .low = (uintptr_t)address, .high = (uintptr_t)(address + size), .kind = kind, .pool = pool, .context = context
  };
  if (address != 0)
    (void)sc_memory_add(&block);
}

static void follow_allocation(struct sc_thread *thread, const struct sc_watch *watch, const CUpti_CallbackData *data) {
  const void *params = data->functionParams;
  const struct sc_layout *layout = watch->layout;
  const void *context = data->context;
  uint64_t kind = SC_MEMORY_UNKNOWN;
  switch (watch->role) {
  case SC_ROLE_ALLOC_DEVICE:
    add_memory(written(params, layout->out), sc_field_read(params, layout->bytes), SC_MEMORY_DEVICE, false, context);
    return;
  case SC_ROLE_ALLOC_MANAGED:
    add_memory(written(params, layout->out), sc_field_read(params, layout->bytes), SC_MEMORY_MANAGED, false, context);
    return;
  case SC_ROLE_ALLOC_PINNED:
    add_memory(written(params, layout->out), sc_field_read(params, layout->bytes), SC_MEMORY_PINNED, false, context);
    return;
  case SC_ROLE_REGISTER:
    add_memory(sc_field_read(params, layout->object), sc_field_read(params, layout->bytes), SC_MEMORY_PINNED, false,
               context);
    return;
  case SC_ROLE_ALLOC_ASYNC:
    add_memory(written(params, layout->out), sc_field_read(params, layout->bytes), SC_MEMORY_DEVICE, true, context);
    return;
  case SC_ROLE_ALLOC_POOL:
    if (!sc_handle_get(SC_HANDLE_POOL, sc_field_read(params, layout->object), &kind))
      seen_import(thread, "memory from a pool whose creation was not seen");
    add_memory(written(params, layout->out), sc_field_read(params, layout->bytes), (uint8_t)kind, true, context);
    return;
  case SC_ROLE_ALLOC_PITCH:
    add_memory(written(params, layout->out), written(params, layout->block) * sc_field_read(params, layout->rows),
               SC_MEMORY_DEVICE, false, context);
    return;
  case SC_ROLE_ALLOC_3D: {
    const struct cudaPitchedPtr *made = sc_field_pointer(params, layout->out);
    struct cudaExtent extent;
    memcpy(&extent, (const char *)params + layout->bytes.offset, sizeof(extent));
    if (made != NULL)
      add_memory((uintptr_t)made->ptr, (uint64_t)made->pitch * extent.height * extent.depth, SC_MEMORY_DEVICE, false,
                 context);
    return;
  }
  case SC_ROLE_ALLOC_ARRAY: {
    const struct cudaChannelFormatDesc *channel = sc_field_pointer(params, layout->block);
    if (channel != NULL)
      sc_handle_set(SC_HANDLE_ARRAY, written(params, layout->out),
                    (uint64_t)(channel->x + channel->y + channel->z + channel->w) / 8);
    return;
  }
  case SC_ROLE_MAPPED_BUFFER: {
    const struct cudaExternalMemoryBufferDesc *buffer = sc_field_pointer(params, layout->block);
    if (buffer != NULL)
      add_memory(written(params, layout->out), buffer->size, SC_MEMORY_DEVICE, false, context);
    return;
  }
  default: return;
  }
}

static void follow_handle(struct sc_thread *thread, const struct sc_watch *watch, const void *params) {
  const struct sc_layout *layout = watch->layout;
  uint64_t kind = SC_MEMORY_UNKNOWN, address;
  switch (watch->role) {
  case SC_ROLE_VMM_CREATE: {
    const CUmemAllocationProp *prop = sc_field_pointer(params, layout->block);
    if (prop != NULL)
      sc_handle_set(SC_HANDLE_VMM, written(params, layout->out),
                    kind_of_location((int)prop->type, (int)prop->location.type));
    return;
  }
  case SC_ROLE_VMM_MAP:
    if (!sc_handle_get(SC_HANDLE_VMM, sc_field_read(params, layout->src), &kind))
      seen_import(thread, "mapped virtual memory whose creation was not seen");
    address = sc_field_read(params, layout->object);
    add_memory(address, sc_field_read(params, layout->bytes), (uint8_t)kind, false, NULL);
    return;
  case SC_ROLE_POOL_CREATE: {
    const CUmemPoolProps *pool = sc_field_pointer(params, layout->block);
    if (pool != NULL)
      sc_handle_set(SC_HANDLE_POOL, written(params, layout->out),
                    kind_of_location((int)pool->allocType, (int)pool->location.type));
    return;
  }
  case SC_ROLE_POOL_DEVICE: sc_handle_set(SC_HANDLE_POOL, written(params, layout->out), SC_MEMORY_DEVICE); return;
  case SC_ROLE_POOL_LOCATION: {
    const CUmemLocation *location = sc_field_pointer(params, layout->block);
    if (location != NULL)
      sc_handle_set(SC_HANDLE_POOL, written(params, layout->out),
                    kind_of_location((int)sc_field_read(params, layout->kind), (int)location->type));
    return;
  }
  default: return;
  }
}

/* cudaMemPoolProps and cudaMemLocation of the runtime are read as the driver's structs. */
_Static_assert(offsetof(struct cudaMemPoolProps, location) == offsetof(CUmemPoolProps, location), "pool properties");
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "location");
_Static_assert(offsetof(struct cudaExternalMemoryBufferDesc, size) == offsetof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size),
               "buffer description");

static void follow_stream(struct sc_thread *thread, const struct sc_watch *watch, const void *params, int status) {
  struct sc_stream_key key = sc_arguments_key(sc_arguments_stream(watch, params), thread);
  uint64_t object = watch->layout->object.size != 0 ? sc_field_read(params, watch->layout->object) : 0;
  switch (watch->role) {
  case SC_ROLE_CAPTURE_BEGIN: sc_capture_begin(key); return;
  case SC_ROLE_CAPTURE_END:
    /* An invalidated or unjoined capture ends as well; one that began elsewhere, or none at all, does not. */
    if (status != cudaErrorStreamCaptureUnmatched && status != cudaErrorStreamCaptureWrongThread &&
        status != cudaErrorIllegalState && status != cudaErrorInvalidValue)
      sc_capture_end(key);
    return;
  case SC_ROLE_EVENT_RECORD: sc_capture_record(object, key); return;
  case SC_ROLE_STREAM_WAIT: sc_capture_wait(key, object); return;
  case SC_ROLE_STREAM_DESTROY: sc_capture_drop_stream(sc_arguments_key(object, thread)); return;
  default: return;
  }
}

static void follow_event(const struct sc_watch *watch, const void *params) {
  const struct sc_layout *layout = watch->layout;
  if (watch->role == SC_ROLE_EVENT_CREATE) {
    uint64_t event = written(params, layout->out);
    if ((sc_field_read(params, layout->kind) & cudaEventBlockingSync) != 0)
      sc_handle_set(SC_HANDLE_SLEEP_EVENT, event, 1);
    else
      sc_handle_drop(SC_HANDLE_SLEEP_EVENT, event);
    return;
  }
  uint64_t event = sc_field_read(params, layout->object);
  sc_handle_drop(SC_HANDLE_SLEEP_EVENT, event);
  if (sc_capture_any())
    sc_capture_drop_event(event);
}

static void follow_device_flags(struct sc_thread *thread, const struct sc_watch *watch,
                                const CUpti_CallbackData *data) {
  const struct sc_layout *layout = watch->layout;
  uint64_t device = device_of(thread, data), flags = sc_field_read(data->functionParams, layout->kind);
  if (layout->object.size != 0)
    device = sc_field_read(data->functionParams, layout->object);
  if (device <= NO_DEVICE)
    atomic_store_explicit(&sleeping[device], (flags & cudaDeviceScheduleMask) == cudaDeviceScheduleBlockingSync,
                          memory_order_relaxed);
}

/* At the exit of the outermost call. */
static void follow(struct sc_thread *thread, const struct sc_watch *watch, const CUpti_CallbackData *data, int status) {
  const void *params = data->functionParams;
  if (status == 0 && watch->role == SC_ROLE_DEVICE_RESET)
    sc_memory_forget_context(data->context);
  if (status == 0 && watch->role == SC_ROLE_IMPORT)
    seen_import(thread, data->functionName != NULL ? data->functionName : "memory import");
  if (params == NULL)
    return;
  switch (watch->role) {
  case SC_ROLE_FREE:
    if (status != 0 && thread->open.taken) /* it is still there */
      (void)sc_memory_add(&thread->open.block);
    return;
  case SC_ROLE_CAPTURE_END: follow_stream(thread, watch, params, status); return;
  default: break;
  }
  if (status != 0)
    return;
  switch (watch->role) {
  case SC_ROLE_FREE_ARRAY: sc_handle_drop(SC_HANDLE_ARRAY, sc_field_read(params, watch->layout->object)); return;
  case SC_ROLE_VMM_CREATE:
  case SC_ROLE_VMM_MAP:
  case SC_ROLE_POOL_CREATE:
  case SC_ROLE_POOL_DEVICE:
  case SC_ROLE_POOL_LOCATION: follow_handle(thread, watch, params); return;
  case SC_ROLE_CAPTURE_BEGIN:
  case SC_ROLE_EVENT_RECORD:
  case SC_ROLE_STREAM_WAIT: follow_stream(thread, watch, params, status); return;
  case SC_ROLE_STREAM_DESTROY:
    if (sc_capture_any())
      follow_stream(thread, watch, params, status);
    return;
  case SC_ROLE_EVENT_CREATE:
  case SC_ROLE_EVENT_DESTROY: follow_event(watch, params); return;
  case SC_ROLE_DEVICE_FLAGS: follow_device_flags(thread, watch, data); return;
  default: follow_allocation(thread, watch, data);
  }
}

/* At entry: what has to be known before the call is made. */
static void prepare(struct sc_thread *thread, const struct sc_watch *watch, const void *params) {
  struct sc_open_call *open = &thread->open;
  if (params == NULL)
    return;
  if (sc_capture_any() && watch->action != SC_ACTION_FOLLOW) {
    uint64_t stream = sc_arguments_stream(watch, params);
    open->captured = stream != 0 && sc_capture_holds(sc_arguments_key(stream, thread));
  }
  if (watch->role == SC_ROLE_FREE && !open->captured) {
    /* Now: once the call is made, another thread may be given the same address. */
    uint64_t address = sc_field_read(params, watch->layout->object);
    open->taken = address != 0 && sc_memory_take((uintptr_t)address, &open->block);
  } else if (watch->role == SC_ROLE_VMM_UNMAP) {
    uint64_t low = sc_field_read(params, watch->layout->object);
    sc_memory_forget((uintptr_t)low, (uintptr_t)(low + sc_field_read(params, watch->layout->bytes)));
  }
}

/* ---- records ----------------------------------------------------------------------------------------- */
static uint8_t sleeps(const struct sc_watch *watch, const struct sc_arguments *arguments, uint8_t device) {
  bool sleep = false;
  if (watch->op == SC_OP_SYNC_EVENT)
    sleep = sc_handle_get(SC_HANDLE_SLEEP_EVENT, arguments->object, NULL);
  else if (watch->op == SC_OP_SYNC_STREAM || watch->op == SC_OP_SYNC_DEVICE)
    sleep = atomic_load_explicit(&sleeping[device], memory_order_relaxed) ||
            atomic_load_explicit(&sleeping[NO_DEVICE], memory_order_relaxed);
  return sleep ? SC_CALL_OBJECT_BLOCKING : 0;
}

static void describe_free(const struct sc_thread *thread, const struct sc_watch *watch,
                          struct sc_arguments *arguments) {
  if (watch->op != SC_OP_FREE && watch->op != SC_OP_FREE_HOST && watch->op != SC_OP_FREE_ASYNC &&
      watch->op != SC_OP_UNREGISTER)
    return;
  if (watch->layout == NULL || watch->layout->object.size == 0)
    return;
  if (arguments->object == 0)
    arguments->flags |= SC_CALL_NULL_POINTER;
  if (thread->open.taken) {
    arguments->dst = thread->open.block.kind;
    if (thread->open.block.pool)
      arguments->flags |= SC_CALL_POOL_POINTER;
  }
}

/* Whether a call is one whose place in the program is wanted: it blocked, or it was refused because a stream was being
 * captured. What counts is for the analysis to say. */
static bool wants_stack(const struct sc_watch *watch, const struct sc_arguments *arguments, int status) {
  if (!sc_stacks_wanted || (status == 0 ? (arguments->flags & SC_CALL_CAPTURED) != 0 : !sc_call_was_refused(status)))
    return false;
  return sc_call_could_block((enum sc_op)watch->op, arguments->direction, arguments->dst, arguments->flags,
                             arguments->bytes);
}

static void put_call(struct sc_thread *thread, const struct sc_watch *watch, const struct sc_arguments *arguments,
                     uint8_t device, int status, uint64_t duration, uint64_t bytes, uint32_t stack) {
  struct sc_record_call homeless, *room = sc_thread_reserve(thread, 1), *record = room != NULL ? room : &homeless;
  *record = (struct sc_record_call){
    .head = { .kind = SC_RECORD_CALL, .units = 1, .stack = stack },
    .start_ns = thread->open.start_ns,
    .duration_ns = duration,
    .stream = arguments->stream,
    .object = arguments->object,
    .bytes = bytes,
    .api = watch->api | (uint32_t)device << 16 | (uint32_t)arguments->flags << 24,
    .status = (int16_t)status,
    .direction = arguments->direction,
    .memory = (uint8_t)(arguments->dst | arguments->src << 4),
  };
  if (__builtin_expect(room != NULL, 1))
    sc_writer_commit_inline(thread->out, 1);
  else
    sc_beyond_call(thread, watch, record);
}

/* Asking again and again about the same thing is one record, whose last answer tells how it ended.
 * The record that this answer goes on, or NULL. */
static struct sc_record_call *open_poll(struct sc_thread *thread, const struct sc_watch *watch,
                                        const struct sc_arguments *arguments, uint8_t device) {
  struct sc_record_call *last = thread->out != NULL ? sc_writer_last_call_inline(thread->out) : NULL;
  uint32_t api = watch->api | (uint32_t)device << 16 | (uint32_t)arguments->flags << 24;
  bool same = last != NULL && last->status == NOT_READY && last->api == api && last->stream == arguments->stream &&
              last->object == arguments->object;
  return same ? last : NULL;
}

static void put_query(struct sc_thread *thread, const struct sc_watch *watch, const struct sc_arguments *arguments,
                      uint8_t device, int status, uint64_t now) {
  struct sc_record_call *last = open_poll(thread, watch, arguments, device);
  uint32_t stack = 0;
  if (last != NULL && last->bytes == 1 && last->head.stack == 0 && sc_stacks_wanted) { /* asked a second time */
    stack = sc_stack_take(thread, watch);
    last = open_poll(thread, watch, arguments, device); /* a new stack's records may have come between */
  }
  if (last != NULL) {
    if (stack != 0)
      last->head.stack = stack;
    last->duration_ns = now - last->start_ns;
    if (status == NOT_READY)
      last->bytes++;
    last->status = (int16_t)status; /* last: a killed process leaves an unfinished wait, not a finished one */
    return;
  }
  put_call(thread, watch, arguments, device, status, now - thread->open.start_ns, status == NOT_READY ? 1 : 0,
           stack);
}

/* ---- launches that wait ------------------------------------------------------------------------------
 * A launch returns at once until about a thousand are outstanding; then it waits for room. That is no sync, but a wait.
 * A clock for each launch would make all of them slower, so launches are timed only when their thread has made
 * QUEUE_TIMED since it last waited for the device: until the queue is full, that tells what a launch takes here. It
 * waited if it took 10 times as long, and longer than a scheduler's hiccup mostly is. Where the queue must be full by
 * the count, less says the same: then each launch takes about as long as a kernel runs, and kernels can be short. */
#define QUEUE_TIMED 512
#define QUEUE_FULL 1000 /* 1,024 outstanding launches, less what the device has taken on */
#define WAIT_NS 50000u
#define WAIT_FULL_NS 10000u

static void time_launch(struct sc_thread *thread) {
  uint64_t took = sc_clock_mono_ns() - thread->open.start_ns, usual = thread->launch_ns;
  bool full = thread->queued > QUEUE_FULL;
  if (usual != 0 && ((took > WAIT_NS && took > 10 * usual) || (full && took > WAIT_FULL_NS && took > 4 * usual))) {
    struct sc_trace_live *live = sc_beyond_live();
    __atomic_fetch_add(&live->queue_waits, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&live->queue_wait_ns, took, __ATOMIC_RELAXED);
  } else if (took < UINT32_MAX && (usual == 0 || !full)) {
    /* As many steps up as down: it settles at the median. */
    uint64_t step = usual / 16 + 1;
    thread->launch_ns = (uint32_t)(usual == 0 ? took : took > usual ? usual + step : usual > step ? usual - step : 1);
  }
}

/* This call has seen the device done with what the thread gave it, or with some of it. */
static void note_wait(struct sc_thread *thread, const struct sc_watch *watch, int status) {
  switch ((enum sc_op)watch->op) {
  case SC_OP_SYNC_STREAM:
  case SC_OP_SYNC_EVENT:
  case SC_OP_SYNC_DEVICE:
  case SC_OP_COPY:
  case SC_OP_QUERY_STREAM:
  case SC_OP_QUERY_EVENT:
    if (status == 0)
      thread->queued = 0;
    return;
  default: return;
  }
}

static void finish(struct sc_thread *thread, const struct sc_watch *watch, const CUpti_CallbackData *data) {
  int status = status_of(data);
  if (watch->action == SC_ACTION_LAUNCH) {
    if (__builtin_expect(thread->queued >= QUEUE_TIMED, 0) && status == 0 && !thread->open.captured)
      time_launch(thread);
    if (thread->queued < UINT32_MAX && !thread->open.captured)
      thread->queued++;
    if (status == 0 && !thread->open.captured && !sc_writer_submission_inline(thread->out, true))
      sc_beyond_launch(thread);
    return;
  }
  uint64_t now = watch->action == SC_ACTION_FOLLOW ? 0 : sc_clock_mono_ns();
  if (watch->role != SC_ROLE_NONE) {
    int saved = errno;
    follow(thread, watch, data, status);
    errno = saved;
  }
  if (watch->action == SC_ACTION_FOLLOW)
    return;
  note_wait(thread, watch, status);
  if (watch->op == SC_OP_PROFILER_START && status == 0)
    atomic_store_explicit(&sc_beyond_profiled, true, memory_order_relaxed);

  struct sc_arguments arguments;
  sc_arguments_read(watch, data->functionParams, &thread->memory, view(), &arguments);
  uint8_t device = device_of(thread, data);
  if (thread->open.captured)
    arguments.flags |= SC_CALL_CAPTURED;
  if (watch->action == SC_ACTION_QUERY) {
    put_query(thread, watch, &arguments, device, status, now);
    return;
  }
  arguments.flags |= sleeps(watch, &arguments, device);
  describe_free(thread, watch, &arguments);
  uint32_t stack =
    thread->beyond == NULL && wants_stack(watch, &arguments, status) ? sc_stack_take(thread, watch) : 0;
  put_call(thread, watch, &arguments, device, status, now - thread->open.start_ns, arguments.bytes, stack);
}

/* ---- entry and exit ---------------------------------------------------------------------------------- */
static bool belongs_to_open(const struct sc_open_call *open, uint32_t correlation) { /* a driver call in a runtime call
                                                                                        does not come this far */
  return open->watch != NULL && correlation != 0 && correlation == open->correlation;
}

/* ---- calls that were entered before the session ------------------------------------------------------
 * They are none of its own, and nor are the driver calls that are made inside them, whose own entry may come when the
 * session has begun. Such a driver call has the id of the call around it, and ids go up: the highest one that came by
 * while the gate was shut tells what had been entered by then, also before there were callbacks. A thread is asked
 * until its first other call. */
static bool is_later(uint32_t correlation, uint32_t than) { return (int32_t)(correlation - than) > 0; }

static void note_before(uint32_t correlation) {
  uint32_t last = atomic_load_explicit(&last_before, memory_order_relaxed);
  while ((last == 0 || is_later(correlation, last)) &&
         !atomic_compare_exchange_weak_explicit(&last_before, &last, correlation, memory_order_relaxed,
                                                memory_order_relaxed))
    continue;
}

void sc_callback_await_one(void) {
  const struct timespec pause = { 0, 100 * 1000 };
  uint64_t until = sc_clock_mono_ns() + (uint64_t)AWAIT_MS * 1000000u;
  uint32_t first = atomic_load_explicit(&last_before, memory_order_relaxed); /* from when not all were enabled */
  while (atomic_load_explicit(&last_before, memory_order_relaxed) == first && sc_clock_mono_ns() < until)
    (void)nanosleep(&pause, NULL);
}

static bool began_before(struct sc_thread *thread, const struct sc_watch *watch, uint32_t correlation) {
  uint32_t last = atomic_load_explicit(&last_before, memory_order_relaxed);
  if (watch->domain == SC_DOMAIN_DRIVER && correlation != 0 &&
      (thread->began_before != 0 ? correlation == thread->began_before : last != 0 && !is_later(correlation, last))) {
    thread->began_before = correlation;
    return true;
  }
  thread->fresh = false;
  return false;
}

/* Events are followed only while something is being captured. */
static bool of_no_interest(const struct sc_watch *watch) {
  return (watch->role == SC_ROLE_EVENT_RECORD || watch->role == SC_ROLE_STREAM_WAIT) &&
         watch->action == SC_ACTION_FOLLOW && !sc_capture_any();
}

static void miss_call(void) {
  sc_thread_lose();
  sc_beyond_miss();
}

static void enter_call(struct sc_thread *thread, const struct sc_watch *watch, const CUpti_CallbackData *data) {
  struct sc_open_call *open = &thread->open;
  if (belongs_to_open(open, data->correlationId))
    return;
  if (__builtin_expect(thread->fresh, 0) && began_before(thread, watch, data->correlationId))
    return;
  if (__builtin_expect(open->watch != NULL, 0) && open->watch->api != 0)
    miss_call(); /* its exit was never reported: a record that is missing, and a count that is too low */
  open->watch = watch;
  open->runtime = watch->domain == SC_DOMAIN_RUNTIME;
  open->correlation = data->correlationId;
  open->captured = false;
  open->taken = false;
  if (watch->op == SC_OP_PROFILER_STOP)
    atomic_store_explicit(&sc_beyond_profiled, false, memory_order_relaxed);
  open->inside_before = open->inside;
  open->inside = atomic_load_explicit(&sc_beyond_profiled, memory_order_relaxed);
  if (watch->role != SC_ROLE_NONE || sc_capture_any()) {
    int saved = errno;
    prepare(thread, watch, data->functionParams);
    errno = saved;
  }
  if (watch->action == SC_ACTION_RECORD || watch->action == SC_ACTION_QUERY ||
      (watch->action == SC_ACTION_LAUNCH && __builtin_expect(thread->queued >= QUEUE_TIMED, 0)))
    open->start_ns = sc_clock_mono_ns();
}

static void exit_call(struct sc_thread *thread, const struct sc_watch *watch, const CUpti_CallbackData *data) {
  struct sc_open_call *open = &thread->open;
  if (open->watch != watch || open->correlation != data->correlationId)
    return;
  finish(thread, watch, data);
  open->watch = NULL;
  open->runtime = false;
}

static void on_resource(uint32_t cbid, const CUpti_ResourceData *data) {
  if (cbid == CUPTI_CBID_RESOURCE_CU_INIT_FINISHED) /* CUDA was not in use before us, whoever called us */
    atomic_store_explicit(&late, false, memory_order_relaxed);
  if (cbid != CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING || data == NULL)
    return;
  struct sc_thread *thread = sc_thread_enter();
  if (thread == NULL)
    return;
  int saved = errno;
  sc_memory_forget_context(data->context);
  errno = saved;
  sc_thread_leave(thread);
}

void sc_callback(void *user, int domain, uint32_t cbid, const void *data) {
  struct sc_thread *current = sc_thread_current;
  (void)user;
  /* First, since it is every other callback: a driver call inside a runtime call is part of it, entry and exit
   * alike. */
  if (domain == SC_DOMAIN_DRIVER && current != NULL && current->open.runtime &&
      current->session == sc_threads_session())
    return;
  if (domain == SC_DOMAIN_RESOURCE) {
    on_resource(cbid, data);
    return;
  }
  const struct sc_watch *watch =
      sc_watch_find(atomic_load_explicit(&table, memory_order_acquire), (unsigned)domain, cbid);
  if (watch == NULL || watch->action == SC_ACTION_NONE || data == NULL || of_no_interest(watch))
    return;
  const CUpti_CallbackData *call = data;
  struct sc_thread *thread = sc_thread_enter_as(current);
  if (thread == NULL) {
    if (current == NULL || atomic_load_explicit(&current->busy, memory_order_relaxed) == 0) /* the gate was shut */
      note_before(call->correlationId);
    return;
  }
  if (call->callbackSite == CUPTI_API_ENTER)
    enter_call(thread, watch, call);
  else
    exit_call(thread, watch, call);
  sc_thread_leave(thread);
}
