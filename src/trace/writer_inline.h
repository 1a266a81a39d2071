/* SPDX-License-Identifier: Apache-2.0
 * The writer's record path, for callers that count nanoseconds (the tracer). Same contract as the functions in
 * trace.h of the same names without _inline. */
#ifndef SC_TRACE_WRITER_INLINE_H
#define SC_TRACE_WRITER_INLINE_H

#include "trace/trace.h"

/* Lives in memory that a forked child sees as zeros (MADV_WIPEONFORK): there no pointer of it leads into the
 * parent's file, and every function below does nothing. Only its own thread changes it, but for `limit`. */
struct __attribute__((aligned(64))) sc_writer_thread { /* aligned: threads do not share cache lines */
  unsigned char *cursor;        /* where the next record goes */
  unsigned char *limit;         /* the chunk's end; NULL when closed or without a chunk; sc_writer_close sets it */
  struct sc_trace_chunk *chunk; /* the current chunk in the mapped file, or NULL */
  struct sc_record_call *last;  /* the last record, if it is a CALL in this chunk and nothing was lost since */
  struct sc_writer *writer;     /* NULL in a forked child */
  struct sc_writer_thread *next, **link; /* the writer's list of threads; next alone in its free list */
  uint64_t serial, sequence;
  uint64_t lost;                /* records since the last chunk was obtained */
  uint64_t retry;               /* a chunk was refused: do not ask again before `lost` is this */
  uint32_t tid;
  bool denied;                  /* a chunk was refused since the last one obtained */
  bool sealed;                  /* by sc_writer_close */
};

void *sc_writer_reserve_slow(struct sc_writer_thread *thread, uint32_t units);

static inline void *sc_writer_reserve_inline(struct sc_writer_thread *thread, uint32_t units) {
  if (__builtin_expect(!thread, 0))
    return NULL;
  uintptr_t end = (uintptr_t)thread->cursor + (uintptr_t)units * SC_TRACE_UNIT;
  if (__builtin_expect(end <= (uintptr_t)__atomic_load_n(&thread->limit, __ATOMIC_RELAXED), 1))
    return thread->cursor;
  return sc_writer_reserve_slow(thread, units);
}

static inline void sc_writer_commit_inline(struct sc_writer_thread *thread, uint32_t units) {
  struct sc_record_head *head = (struct sc_record_head *)(void *)thread->cursor;
  struct sc_trace_chunk *chunk = thread->chunk;

  head->submissions = chunk->submissions;
  head->launches = chunk->launches;
  thread->last = head->kind == SC_RECORD_CALL ? (struct sc_record_call *)(void *)head : NULL;
  thread->cursor += (size_t)units * SC_TRACE_UNIT;
  /* Release: whoever reads this count (after a SIGKILL, from the file) finds the record's bytes. */
  __atomic_store_n(&chunk->committed, (uint32_t)(thread->cursor - (unsigned char *)(chunk + 1)), __ATOMIC_RELEASE);
  chunk->submissions = 0;
  chunk->launches = 0;
}

static inline struct sc_record_call *sc_writer_last_call_inline(struct sc_writer_thread *thread) {
  if (!thread || !thread->last || thread->chunk->submissions || !__atomic_load_n(&thread->limit, __ATOMIC_RELAXED))
    return NULL;
  return thread->last;
}

/* False: there is nowhere to count it. */
static inline bool sc_writer_submission_inline(struct sc_writer_thread *thread, bool launch) {
  struct sc_trace_chunk *chunk;

  if (__builtin_expect(!thread || !__atomic_load_n(&thread->limit, __ATOMIC_RELAXED), 0)) /* no chunk, or a sealed one */
    return false;
  chunk = thread->chunk;
  if (__builtin_expect(chunk->submissions == UINT32_MAX, 0)) /* never wraps to "nothing submitted" */
    return true;
  chunk->submissions++;
  chunk->launches += launch;
  return true;
}

#endif
