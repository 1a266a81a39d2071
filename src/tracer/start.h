/* SPDX-License-Identifier: Apache-2.0
 * When a process is traced: from its first CUDA call to its end, or, if it is dormant, whenever somebody asks. */
#ifndef SC_TRACER_START_H
#define SC_TRACER_START_H

#include <stdbool.h>

#include "tracer/session.h"

/* Opens the trace, subscribes to CUPTI, records from then on. Once per process; does nothing the next time. `late`:
 * CUDA had been in use before. Never fails loudly: what prevents tracing goes into the trace and onto one line of
 * stderr. */
void sc_tracer_start(bool late);
/* True until CUDA has started. False in a forked child of a traced process. */
bool sc_tracer_awaited(void);
/* Fork handlers, once; safe to call again. */
void sc_tracer_watch_forks(void);

/* ---- dormant ------------------------------------------------------------------------------------------
 * Not subscribed, no trace: a thread waits at a socket (control.h) for somebody who wants to count. */

/* Before anything else: SYNCCOUNT_DORMANT=1 was set. */
void sc_tracer_will_sleep(void);
/* This process is dormant, or will be once it starts CUDA. */
bool sc_tracer_dormant(void);
/* In the place of sc_tracer_start. Does nothing in a process that is traced or dormant already. */
void sc_tracer_sleep(void);
/* For the control thread. False with a sentence: nothing is counted, and nothing is left behind. */
bool sc_tracer_wake(const struct sc_tracer_options *options, char why[SC_SESSION_WHY]);
/* False: nothing was being counted any more. */
bool sc_tracer_sleep_again(struct sc_session_end *out);

#endif
