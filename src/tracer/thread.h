/* SPDX-License-Identifier: Apache-2.0
 * One thread of the traced program, and the gate that every callback passes: nothing of ours is touched when we do
 * not record, when we were called from our own code, in a forked child, or once the file is being closed. */
#ifndef SC_TRACER_THREAD_H
#define SC_TRACER_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"
#include "tracer/memory.h"

struct sc_watch;

struct sc_open_call { /* the outermost CUDA call that this thread is in */
  const struct sc_watch *watch; /* NULL: in none */
  uint32_t correlation;
  bool captured;    /* its stream was being captured when it was entered */
  bool taken;       /* `block` was the memory that it frees */
  struct sc_block block;
  uint64_t start_ns;
};

struct sc_thread {
  struct sc_thread *next;           /* registry */
  _Atomic uint32_t busy;            /* inside our code: guards against recursion, and holds up the closing of the file */
  struct sc_writer_thread *out;     /* NULL: no room for this thread; its losses are counted */
  struct sc_open_call open;
  struct sc_memory_cache memory;
  const void *context;              /* the last one seen, and its device */
  uint32_t context_uid;
  uint8_t device;
};

enum sc_thread_state { SC_RECORD_OFF = 0, SC_RECORD_ON = 1 };

/* Call once, before recording starts: makes the gate. False if memory is out. */
bool sc_threads_prepare(void);
/* Opens the gate for a writer; the calling thread's record stream is made by sc_thread_enter as everyone's. */
void sc_threads_start(struct sc_writer *writer);
/* Shuts the gate, waits for every thread inside our code, then calls sc_writer_close. False: one did not come out in time;
 * the file is then left as a killed process leaves it, with all that was committed. */
bool sc_threads_stop(void);
/* In a forked child: the gate is shut, and nothing waits for anybody. */
void sc_threads_forked(void);
bool sc_threads_recording(void);

/* NULL: do nothing. Otherwise the thread is inside until sc_thread_leave. */
struct sc_thread *sc_thread_enter(void);
static inline void sc_thread_leave(struct sc_thread *thread) {
  /* Pairs with the acquire in sc_threads_stop: who sees us out sees all that we wrote. */
  atomic_store_explicit(&thread->busy, 0, memory_order_release);
}

/* Room for a record, or NULL with the loss counted. */
void *sc_thread_reserve(struct sc_thread *thread, uint32_t units);

#endif
