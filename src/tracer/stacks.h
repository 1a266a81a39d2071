/* SPDX-License-Identifier: Apache-2.0
 * Where a blocking call came from: stacks, written to the trace once each, and the numbers that calls carry. */
#ifndef SC_TRACER_STACKS_H
#define SC_TRACER_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer/thread.h"

struct sc_watch;

/* When a session starts, before the first callback and while no thread is inside. `thread`: where the trace is told what is taken. */
void sc_stacks_prepare(bool python, bool native, struct sc_writer *writer, struct sc_writer_thread *thread);
extern bool sc_stacks_wanted; /* set by sc_stacks_prepare */

/* At the exit of a call, after its duration was taken: the number of the stack it came from, whose records are in the
 * trace; 0 if there is none. errno is kept. No lock that the program could hold is taken. */
uint32_t sc_stack_take(struct sc_thread *thread, const struct sc_watch *watch);
/* What a thread keeps of stacks goes with it, or with the session. */
void sc_stacks_thread_ended(struct sc_thread *thread);

#endif
