/* SPDX-License-Identifier: Apache-2.0
 * One time of recording: a trace, a subscription, and their end. A process may have many, one after another. One thread
 * at a time calls these (start.c sees to it), and none of the callbacks. */
#ifndef SC_TRACER_SESSION_H
#define SC_TRACER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer/message.h"

enum sc_session {
  SC_SESSION_RUNS,     /* calls are recorded */
  SC_SESSION_UNTRACED, /* nothing can be recorded; there is a trace that says why */
  SC_SESSION_NONE,     /* not even a trace could be made */
};
#define SC_SESSION_WHY 1100

struct sc_session_how {
  bool late;  /* CUDA was in use before */
  bool joins; /* the calling thread is one of the program's: it is recorded as well, from here on */
};
/* `why` receives one sentence unless the session runs. Options are read here and not kept. */
enum sc_session sc_session_begin(const struct sc_tracer_options *options, const struct sc_session_how *how,
                                 char why[SC_SESSION_WHY]);

struct sc_session_end {
  char path[4096]; /* of the trace */
  uint64_t lost;      /* records that found no room */
  uint64_t uncounted; /* calls that were not counted without one either */
  bool full;   /* recording stopped for want of room */
  bool closed; /* false: a thread was still in a callback, and the trace is as a killed process leaves it */
};
/* Ends a session that runs. measure: finds out first what being traced cost, with calls of cuDriverGetVersion. */
void sc_session_finish(bool measure, struct sc_session_end *out);
/* Ends one that could not trace. keep: its trace, which says why. */
void sc_session_give_up(bool keep);
/* In a forked child: the parent's trace is forgotten. */
void sc_session_forked(void);

#endif
