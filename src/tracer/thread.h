/* SPDX-License-Identifier: Apache-2.0
 * One thread of the traced program, and the gate that every callback passes: nothing of ours is touched when we do
 * not record, when we were called from our own code, in a forked child, or once the file is being closed.
 *
 * Recording may begin and end many times in one process: each time is a session with a number and a trace of its own.
 * What is kept of a thread lives as long as the thread, and begins afresh with its first record of a session. */
#ifndef SC_TRACER_THREAD_H
#define SC_TRACER_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/writer_inline.h"
#include "tracer/memory.h"

struct sc_watch;
struct sc_stack_cache;
struct sc_beyond;

struct sc_open_call {           /* the outermost CUDA call that this thread is in */
  const struct sc_watch *watch; /* NULL: in none */
  uint32_t correlation;
  bool runtime;  /* it is open and of the runtime API: driver calls are part of it */
  bool captured; /* its stream was being captured when it was entered */
  bool taken;    /* `block` was the memory that it frees */
  bool inside, inside_before; /* it, and the call before it, were entered between profiler start and stop */
  struct sc_block block;
  uint64_t start_ns;
};

struct sc_thread {
  struct sc_thread *next;       /* registry */
  _Atomic uint32_t busy;        /* inside our code: guards against recursion, and holds up the closing of the file */
  uint32_t session;             /* that all below belongs to */
  struct sc_writer_thread *out; /* NULL: no room for this thread; its losses are counted */
  struct sc_open_call open;
  bool fresh;            /* no call of this session has been taken yet */
  uint32_t began_before; /* while fresh: the correlation id of the call that it is in, entered before the session */
  struct sc_memory_cache memory;
  struct sc_beyond *beyond;      /* not NULL: its calls are counted and no longer recorded */
  struct sc_stack_cache *stacks; /* stacks.c's; NULL until one is taken */
  uint32_t queued;    /* launches since it last waited for the device */
  uint32_t launch_ns; /* what one takes while there is room in the queue: about the median; 0: not known */
  const void *context; /* the last one seen, and its device */
  uint32_t context_uid;
  uint8_t device;
};

/* Call once, before recording starts: makes the gate. False if memory is out. */
bool sc_threads_prepare(void);
/* Opens the gate for a writer: a new session. `mine`: a stream that the calling thread has begun already, to go on with;
 * or NULL. Other threads' streams begin with their first record. */
void sc_threads_start(struct sc_writer *writer, struct sc_writer_thread *mine);
/* Shuts the gate and waits for every thread inside our code, half a second at most. True: none is, and none can touch
 * the session's writer any more. False: one did not come out in time. */
bool sc_threads_stop(void);
/* True when no thread is inside our code; waits as sc_threads_stop does. */
bool sc_threads_are_out(void);
/* In a forked child: the gate is shut, and nothing waits for anybody. */
void sc_threads_forked(void);
/* Set by sc_threads_prepare. The gate lies in a page that the kernel wipes in every forked child, whoever forked it and
 * how. */
struct sc_gate {
  _Atomic uint32_t open;  /* the session that records; 0: none */
  _Atomic uint32_t alive; /* 0: this is a forked child, where nothing of the parent's may be touched */
};
extern struct sc_gate *_Atomic sc_thread_gate;
extern bool sc_thread_fence;                         /* the kernel offers no membarrier */
extern __thread struct sc_thread *sc_thread_current; /* NULL: this thread has not been seen */

/* The session that records, 0: none. */
static inline uint32_t sc_threads_session(void) {
  const struct sc_gate *gate = atomic_load_explicit(&sc_thread_gate, memory_order_acquire);
  return gate == NULL ? 0 : atomic_load_explicit(&gate->open, memory_order_relaxed);
}

static inline bool sc_threads_recording(void) { return sc_threads_session() != 0; }

/* The calling thread, with a stream of its own in the session that records. */
struct sc_thread *sc_thread_begin(void);

static inline void sc_thread_leave(struct sc_thread *thread);

/* NULL: do nothing. Otherwise the thread is inside until sc_thread_leave. `current` is sc_thread_current. */
static inline struct sc_thread *sc_thread_enter_as(struct sc_thread *thread) {
  uint32_t session = sc_threads_session();
  if (session == 0)
    return NULL;
  if (__builtin_expect(thread == NULL || thread->session != session, 0) && (thread = sc_thread_begin()) == NULL)
    return NULL;
  if (atomic_load_explicit(&thread->busy, memory_order_relaxed) != 0)
    return NULL;
  atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
  if (__builtin_expect(sc_thread_fence, 0))
    atomic_thread_fence(memory_order_seq_cst);
  else
    atomic_signal_fence(memory_order_seq_cst);
  if (__builtin_expect(sc_threads_session() != thread->session, 0)) {
    sc_thread_leave(thread);
    return NULL;
  }
  return thread;
}

static inline struct sc_thread *sc_thread_enter(void) { return sc_thread_enter_as(sc_thread_current); }

static inline void sc_thread_leave(struct sc_thread *thread) {
  /* Pairs with the acquire in sc_threads_stop: who sees us out sees all that we wrote. */
  atomic_store_explicit(&thread->busy, 0, memory_order_release);
}

/* Counts a record that a thread without a stream of its own could not write. */
void sc_thread_lose(void);

/* Room for a record, or NULL with the loss counted. */
static inline void *sc_thread_reserve(struct sc_thread *thread, uint32_t units) {
  if (__builtin_expect(thread->out != NULL, 1))
    return sc_writer_reserve_inline(thread->out, units);
  sc_thread_lose();
  return NULL;
}

#endif
