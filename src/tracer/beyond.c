/* SPDX-License-Identifier: Apache-2.0
 * Counts go to the file's first slot, which is mapped: what was counted survives a SIGKILL as records do. Totals of all
 * threads stand there twice: of everything, and of what was entered between cudaProfilerStart and cudaProfilerStop, since
 * which of them is wanted is for the reader to say. */
#include "tracer/beyond.h"

#include <stdlib.h>
#include <string.h>

#include "trace/count.h"

struct sc_beyond {            /* of a thread */
  struct sc_counter all;      /* each has a state of its own: nothing is concluded across a profiler start or stop */
  struct sc_counter within;
  struct sc_counts counts[2]; /* what the call at hand adds to each */
  bool inside;                /* the thread's last call was between start and stop */
};

_Atomic bool sc_beyond_profiled;

static const struct sc_watch **watches; /* by api id; NULL: memory was out */
static uint32_t watch_count;
static const struct sc_watch_table *table;
static struct sc_writer *writer;
static bool late;

_Static_assert(SC_COUNTS_FIELDS <= SC_BEYOND_COUNTS, "the file has room for every count");

void sc_beyond_prepare(struct sc_writer *to, const struct sc_watch_table *watched, bool is_late) {
  writer = to;
  late = is_late;
  atomic_store_explicit(&sc_beyond_profiled, false, memory_order_relaxed);
  if (table != watched) { /* tables live as long as the process */
    const struct sc_watch **made = calloc((size_t)watched->apis + 1, sizeof(*made));
    for (unsigned domain = SC_DOMAIN_DRIVER; made != NULL && domain <= SC_DOMAIN_RUNTIME; domain++)
      for (uint32_t cbid = 0; cbid < watched->count[domain]; cbid++)
        if (watched->of_domain[domain][cbid].api <= watched->apis)
          made[watched->of_domain[domain][cbid].api] = &watched->of_domain[domain][cbid];
    free(watches); /* of another choice of APIs, in an earlier session: nobody is inside */
    watches = made;
    watch_count = made != NULL ? watched->apis + 1 : 0;
    table = watched;
  }
}

static void add(uint64_t *counter, uint64_t n) { __atomic_fetch_add(counter, n, __ATOMIC_RELAXED); }

struct sc_trace_live *sc_beyond_live(void) { return sc_writer_live(writer); }

void sc_beyond_miss(void) { add(&sc_writer_live(writer)->uncounted, 1); }

static struct sc_call_kind kind_of(const struct sc_watch *watch) {
  struct sc_call_kind kind = { .known = true, .op = watch->op, .direction = watch->direction,
                               .per_thread = watch->per_thread };
  if (late && watch->op == SC_OP_FREE && watch->layout != NULL)
    sc_call_kind_set(&kind, (enum sc_op)watch->op, watch->layout->name, late);
  return kind;
}

/* ---- where the thread stood when room ran out ------------------------------------------------------------ */

/* Feeds what the thread's current chunk holds: the reader will have counted these records, and what the next call means
 * can depend on them. What lies further back (a copy that nobody has waited for, a thousand records ago) is not seen. */
static void catch_up(struct sc_beyond *beyond, const struct sc_writer_thread *out) {
  const struct sc_trace_chunk *chunk = out != NULL ? out->chunk : NULL;
  const unsigned char *at = (const unsigned char *)(chunk + 1);
  uint32_t left = chunk != NULL ? chunk->committed : 0;
  while (left >= SC_TRACE_UNIT) {
    const struct sc_record_head *head = (const void *)at;
    const struct sc_record_call *call = (const void *)at;
    uint32_t size = head->units * SC_TRACE_UNIT;
    if (size == 0 || size > left)
      break;
    if (head->submissions > 0) {
      sc_counter_submissions(&beyond->all, head->submissions, head->launches);
      sc_counter_submissions(&beyond->within, head->submissions, head->launches);
    }
    if (head->kind == SC_RECORD_CALL && SC_CALL_API(call) < watch_count && watches[SC_CALL_API(call)] != NULL) {
      struct sc_call_kind kind = kind_of(watches[SC_CALL_API(call)]);
      sc_counter_call(&beyond->all, call, &kind);
      sc_counter_call(&beyond->within, call, &kind);
    }
    at += size;
    left -= size;
  }
  if (chunk != NULL && chunk->submissions > 0) { /* they stay in the file */
    sc_counter_submissions(&beyond->all, chunk->submissions, chunk->launches);
    sc_counter_submissions(&beyond->within, chunk->submissions, chunk->launches);
  }
}

static struct sc_beyond *begin(struct sc_thread *thread) {
  struct sc_beyond *beyond = calloc(1, sizeof(*beyond));
  if (beyond == NULL)
    return NULL;
  beyond->all.counts = &beyond->counts[0];
  beyond->within.counts = &beyond->counts[1];
  beyond->inside = thread->open.inside_before;
  catch_up(beyond, thread->out);
  if (thread->out != NULL)
    sc_writer_thread_stop(thread->out);
  thread->beyond = beyond;
  return beyond;
}

/* ---- counting ------------------------------------------------------------------------------------------ */

/* The state of `within` at a call or launch that is `inside` or not: as readers take it. */
static void cross(struct sc_beyond *beyond, bool inside) {
  if (beyond->inside == inside)
    return;
  beyond->inside = inside;
  beyond->within.follow = SC_FOLLOW_NONE;
  beyond->within.poll.open = false;
}

static void publish(uint64_t *to, const struct sc_counts *counts) {
  const uint64_t *from = (const uint64_t *)counts;
  for (size_t i = 0; i < SC_COUNTS_FIELDS; i++)
    if (from[i] != 0)
      add(&to[i], from[i]);
}

static void publish_both(const struct sc_beyond *beyond) {
  struct sc_trace_beyond *file = sc_writer_beyond(writer);
  publish(file->all, &beyond->counts[0]);
  if (beyond->inside)
    publish(file->within, &beyond->counts[1]);
}

static void mark(const struct sc_watch *watch, const struct sc_record_call *call) {
  struct sc_trace_beyond *file = sc_writer_beyond(writer);
  bool starts = watch->op == SC_OP_PROFILER_START;
  if (call->status != 0 || (!starts && watch->op != SC_OP_PROFILER_STOP))
    return;
  uint64_t index = __atomic_fetch_add(&file->marks, 1, __ATOMIC_RELAXED);
  uint64_t time_ns = starts ? call->start_ns + call->duration_ns : call->start_ns;
  if (index < SC_BEYOND_MARKS)
    file->mark[index] = time_ns * 2 + starts;
}

void sc_beyond_call(struct sc_thread *thread, const struct sc_watch *watch, const struct sc_record_call *call) {
  struct sc_beyond *beyond = thread->beyond != NULL ? thread->beyond : begin(thread);
  if (beyond == NULL) {
    sc_beyond_miss();
    return;
  }
  struct sc_call_kind kind = kind_of(watch);
  memset(beyond->counts, 0, sizeof(beyond->counts));
  sc_counter_call(&beyond->all, call, &kind);
  cross(beyond, thread->open.inside);
  sc_counter_call(&beyond->within, call, &kind);
  mark(watch, call);
  publish_both(beyond);
}

void sc_beyond_launch(struct sc_thread *thread) {
  struct sc_beyond *beyond = thread->beyond != NULL ? thread->beyond : begin(thread);
  if (beyond == NULL) {
    sc_beyond_miss();
    return;
  }
  memset(beyond->counts, 0, sizeof(beyond->counts));
  sc_counter_submissions(&beyond->all, 1, 1);
  cross(beyond, thread->open.inside);
  sc_counter_submissions(&beyond->within, 1, 1);
  publish_both(beyond);
}

void sc_beyond_thread_ended(struct sc_thread *thread) {
  free(thread->beyond);
  thread->beyond = NULL;
}
