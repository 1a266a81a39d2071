/* SPDX-License-Identifier: Apache-2.0
 * Starting and ending to trace a process. */
#ifndef SC_TRACER_START_H
#define SC_TRACER_START_H

#include <stdbool.h>

/* Opens the trace, subscribes to CUPTI, records from then on. Once per process; does nothing the next time. `late`:
 * CUDA had been in use before. Never fails loudly: what prevents tracing goes into the trace and onto one line of
 * stderr. */
void sc_tracer_start(bool late);
/* True until CUDA has started: ranges opened now may still be wanted. False in a forked child of a traced process. */
bool sc_tracer_awaited(void);
/* Fork handlers, once; safe to call again. */
void sc_tracer_watch_forks(void);

#endif
