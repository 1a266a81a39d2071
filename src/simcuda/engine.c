/* SPDX-License-Identifier: Apache-2.0
 * Streams. Each has a queue and, from its first work on, a thread that does it in order. Everything that makes one
 * stream wait for another (events, the legacy default stream, frees) is a dependency of a piece of work on a sequence
 * number of a stream: taken when the work is queued, so it can only point backwards in time and cannot deadlock. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

static struct sim_pool streams = {.bytes = sizeof(struct CUstream_st)};
static uint64_t last_stream_id;
static unsigned running; /* pieces of work being done now */
static bool closing;     /* the process is at its end */
static pthread_cond_t rested = PTHREAD_COND_INITIALIZER;

uint64_t sim_now_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct sim_pool_item {
  struct sim_pool_item *next_made, *next_dead;
  max_align_t object[];
};

void *sim_pool_get(struct sim_pool *pool)
{
  struct sim_pool_item *item = pool->dead;

  if (item != NULL)
    pool->dead = item->next_dead;
  else if ((item = calloc(1, sizeof *item + pool->bytes)) == NULL)
    return NULL;
  else {
    item->next_made = pool->all;
    pool->all = item;
  }
  return item->object;
}

void sim_pool_put(struct sim_pool *pool, void *object)
{
  struct sim_pool_item *item = (void *)((char *)object - offsetof(struct sim_pool_item, object));

  item->next_dead = pool->dead;
  pool->dead = item;
}

int sim_stream_new(CUcontext context, unsigned flags, int priority, CUstream *stream)
{
  CUstream s = sim_pool_get(&streams);

  if (s == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!s->has_conditions) {
    pthread_cond_init(&s->wake, NULL);
    pthread_cond_init(&s->done, NULL);
    s->has_conditions = true;
  }
  s->magic = SIM_STREAM_MAGIC;
  s->references = 1;
  s->context = context;
  s->flags = flags;
  s->priority = priority;
  s->id = ++last_stream_id;
  s->legacy = s->per_thread = s->destroyed = s->worker = false;
  s->submitted = s->completed = s->observed = 0;
  s->waiters = 0;
  s->capture = NULL;
  s->next = context->streams;
  context->streams = s;
  *stream = s;
  return 0;
}

void sim_stream_release(CUstream stream)
{
  if (--stream->references != 0)
    return;
  for (CUstream *link = &stream->context->streams; *link != NULL; link = &(*link)->next)
    if (*link == stream) {
      *link = stream->next;
      break;
    }
  stream->magic = 0;
  sim_pool_put(&streams, stream);
}

struct sim_op *sim_op_new(size_t payload_bytes, void (*run)(void *), void (*drop)(void *))
{
  struct sim_op *op = calloc(1, sizeof *op + payload_bytes);

  if (op != NULL) {
    op->run = run;
    op->drop = drop;
  }
  return op;
}

void sim_op_free(struct sim_op *op)
{
  for (unsigned i = 0; i < op->dependency_count; i++)
    sim_stream_release(op->dependencies[i].stream);
  free(op->dependencies);
  if (op->drop != NULL)
    op->drop(op->payload);
  free(op);
}

void sim_op_depend(struct sim_op *op, CUstream stream, uint64_t seq)
{
  if (stream->completed >= seq)
    return;
  if (op->dependency_count == op->dependency_room) {
    unsigned room = op->dependency_room == 0 ? 4 : 2 * op->dependency_room;
    struct sim_dependency *grown = realloc(op->dependencies, room * sizeof *grown);
    if (grown == NULL)
      abort(); /* forgetting an order silently would be worse, and the host has no memory left */
    op->dependencies = grown;
    op->dependency_room = room;
  }
  stream->references++;
  op->dependencies[op->dependency_count++] = (struct sim_dependency){stream, seq};
}

/* Waits, lock released meanwhile, until the stream has done everything up to seq. The caller holds a reference. */
static void wait_done(CUstream stream, uint64_t seq)
{
  while (stream->completed < seq && !closing) {
    stream->waiters++;
    pthread_cond_wait(&stream->done, &sim_lock);
    stream->waiters--;
  }
}

/* With a bounded queue: waits for room, as a launch does on a GPU once about a thousand are outstanding. */
static void wait_for_room(CUstream stream)
{
  uint64_t depth = (uint64_t)sim_settings.queue;

  stream->references++;
  if (depth != 0 && stream->submitted >= depth)
    wait_done(stream, stream->submitted - depth + 1);
  sim_stream_release(stream);
}

static void *work(void *argument)
{
  CUstream stream = argument;

  pthread_mutex_lock(&sim_lock);
  for (;;) {
    while (stream->head == NULL && !stream->destroyed && !closing)
      pthread_cond_wait(&stream->wake, &sim_lock);
    struct sim_op *op = stream->head;
    if (op == NULL || closing)
      break;
    for (unsigned i = 0; i < op->dependency_count; i++)
      wait_done(op->dependencies[i].stream, op->dependencies[i].seq);
    if (closing)
      break;
    if (op->run != NULL) {
      running++;
      pthread_mutex_unlock(&sim_lock);
      op->run(op->payload);
      pthread_mutex_lock(&sim_lock);
      if (--running == 0 && closing)
        pthread_cond_signal(&rested);
    }
    stream->head = op->next;
    if (stream->head == NULL)
      stream->tail = NULL;
    stream->completed = op->seq;
    if (stream->waiters != 0)
      pthread_cond_broadcast(&stream->done);
    sim_op_free(op);
  }
  stream->worker = false;
  sim_stream_release(stream);
  pthread_mutex_unlock(&sim_lock);
  return NULL;
}

/* Threads of the simulation belong to no test and to no program: they take no signals. */
static int start_worker(CUstream stream)
{
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;

  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&thread, &attributes, work, stream);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (failed)
    return CUDA_ERROR_OUT_OF_MEMORY;
  stream->worker = true;
  stream->references++;
  return 0;
}

static void queue(CUstream stream, struct sim_op *op)
{
  op->seq = ++stream->submitted;
  op->next = NULL;
  if (stream->tail != NULL)
    stream->tail->next = op;
  else
    stream->head = op;
  stream->tail = op;
  pthread_cond_signal(&stream->wake);
}

/* The legacy stream waits for all blocking streams, and they for it. */
static void depend_by_legacy(CUstream stream, struct sim_op *op)
{
  if (stream->flags & CU_STREAM_NON_BLOCKING)
    return;
  if (!stream->legacy) {
    sim_op_depend(op, stream->context->legacy, stream->context->legacy->submitted);
    return;
  }
  for (CUstream other = stream->context->streams; other != NULL; other = other->next)
    if (other != stream && !(other->flags & CU_STREAM_NON_BLOCKING))
      sim_op_depend(op, other, other->submitted);
}

int sim_submit(CUstream stream, struct sim_op *op, uint64_t *seq)
{
  int error = 0;

  if (seq != NULL)
    *seq = 0;
  if (stream->capture != NULL)
    return sim_capture_add(stream, op);
  if ((error = sim_capture_forbid_legacy(stream)) != 0 || (!stream->worker && (error = start_worker(stream)) != 0)) {
    sim_op_free(op);
    return error;
  }
  wait_for_room(stream);
  depend_by_legacy(stream, op);
  queue(stream, op);
  if (seq != NULL)
    *seq = op->seq;
  return 0;
}

void sim_submit_after_all(CUcontext context, struct sim_op *op)
{
  for (CUcontext each = sim_contexts; each != NULL; each = each->next)
    for (CUstream stream = each->streams; stream != NULL; stream = stream->next)
      if (stream != context->reaper)
        sim_op_depend(op, stream, stream->submitted);
  if (!context->reaper->worker && start_worker(context->reaper) != 0) {
    sim_wait_all();
    op->run(op->payload);
    sim_op_free(op);
    return;
  }
  queue(context->reaper, op);
}

bool sim_stream_idle(CUstream stream)
{
  if (stream->completed < stream->submitted)
    return false;
  if (stream->legacy)
    for (CUstream other = stream->context->streams; other != NULL; other = other->next)
      if (!(other->flags & CU_STREAM_NON_BLOCKING) && other->completed < other->submitted)
        return false;
  return true;
}

/* ---- host waits ---- */

/* Makes the wait that began at `start` last a round trip. Sleeps for the long part only: a sleep overshoots by some 60
 * us. */
static void stretch(uint64_t start)
{
  enum { SLEEP_SLACK_NS = 100000 };
  uint64_t deadline = start + sim_settings.round_trip_ns;

  if (sim_now_ns() + 2 * SLEEP_SLACK_NS < deadline) {
    uint64_t left = deadline - SLEEP_SLACK_NS - sim_now_ns();
    struct timespec nap = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
    nanosleep(&nap, NULL);
  }
  while (sim_now_ns() < deadline)
    __builtin_ia32_pause();
}

struct goal {
  CUstream stream;
  uint64_t seq;
};

/* A wait costs a round trip if it tells the host anything new; on work already seen done it costs nothing. */
static void reach(struct goal *goals, unsigned count)
{
  uint64_t start = sim_settings.round_trip_ns != 0 ? sim_now_ns() : 0;
  bool news = false;

  for (unsigned i = 0; i < count; i++)
    goals[i].stream->references++;
  for (unsigned i = 0; i < count; i++) {
    wait_done(goals[i].stream, goals[i].seq);
    if (goals[i].stream->observed < goals[i].seq) {
      goals[i].stream->observed = goals[i].seq;
      news = true;
    }
  }
  for (unsigned i = 0; i < count; i++)
    sim_stream_release(goals[i].stream);
  if (news && sim_settings.round_trip_ns != 0) {
    pthread_mutex_unlock(&sim_lock);
    stretch(start);
    pthread_mutex_lock(&sim_lock);
  }
}

void sim_wait_seq(CUstream stream, uint64_t seq)
{
  struct goal goal = {stream, seq};

  reach(&goal, 1);
}

/* Waits for each stream of the context (of every context, NULL) that passes the filter. */
static void wait_many(CUcontext only, bool blocking_only)
{
  unsigned count = 0, room = 0;

  for (CUcontext context = sim_contexts; context != NULL; context = context->next)
    for (CUstream stream = context->streams; stream != NULL; stream = stream->next)
      room++;
  struct goal *goals = calloc(room + 1, sizeof *goals);
  if (goals == NULL)
    abort();
  for (CUcontext context = sim_contexts; context != NULL; context = context->next)
    for (CUstream stream = context->streams; stream != NULL; stream = stream->next)
      if ((only == NULL || only == context) && !(blocking_only && (stream->flags & CU_STREAM_NON_BLOCKING)) &&
          stream->submitted > 0 && stream != context->reaper)
        goals[count++] = (struct goal){stream, stream->submitted};
  reach(goals, count);
  free(goals);
}

void sim_wait_stream(CUstream stream)
{
  if (stream->legacy)
    wait_many(stream->context, true);
  else
    sim_wait_seq(stream, stream->submitted);
}

void sim_wait_context(CUcontext context) { wait_many(context, false); }

void sim_wait_all(void) { wait_many(NULL, false); }

/* At the end of the process: no work may run on while static data is torn down, but a kernel that never ends must not
 * keep it alive either. A real device is simply cut off. */
__attribute__((destructor)) static void stop(void)
{
  struct timespec limit;

  if (sim_forked() || pthread_mutex_trylock(&sim_lock) != 0)
    return; /* a child has no workers; or exit was called while some thread is in here */
  closing = true;
  for (CUcontext context = sim_contexts; context != NULL; context = context->next)
    for (CUstream stream = context->streams; stream != NULL; stream = stream->next) {
      pthread_cond_signal(&stream->wake);
      pthread_cond_broadcast(&stream->done);
    }
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_nsec += 200000000;
  if (limit.tv_nsec >= 1000000000) {
    limit.tv_nsec -= 1000000000;
    limit.tv_sec++;
  }
  while (running != 0)
    if (pthread_cond_timedwait(&rested, &sim_lock, &limit) != 0)
      break;
  pthread_mutex_unlock(&sim_lock);
}
