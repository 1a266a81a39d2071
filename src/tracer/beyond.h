/* SPDX-License-Identifier: Apache-2.0
 * Going on to count when there is no room for records any more (a size limit, a full disk). A thread whose record found
 * no room records no call from then on: its calls are counted here, by the rules that the analysis counts records by. */
#ifndef SC_TRACER_BEYOND_H
#define SC_TRACER_BEYOND_H

#include <stdatomic.h>
#include <stdbool.h>

#include "tracer/thread.h"
#include "tracer/watch.h"

/* When tracing starts, before the first callback. late: CUDA had been in use. */
void sc_beyond_prepare(struct sc_writer *writer, const struct sc_watch_table *table, bool late);

/* A call of this thread that returned and found no room. */
void sc_beyond_call(struct sc_thread *thread, const struct sc_watch *watch, const struct sc_record_call *call);
/* A launch that could not be counted in the thread's chunk. */
void sc_beyond_launch(struct sc_thread *thread);
/* A call that can neither be recorded nor counted. */
void sc_beyond_miss(void);
struct sc_trace_live *sc_beyond_live(void); /* the trace's counters */
void sc_beyond_thread_ended(struct sc_thread *thread);

/* Between cudaProfilerStart and cudaProfilerStop, of all threads. Call at the exit of a start that succeeded, and at the
 * entry of a stop. */
extern _Atomic bool sc_beyond_profiled;

#endif
