/* SPDX-License-Identifier: Apache-2.0
 * The few lines that we say on the program's stderr, and what the environment asks of us. */
#ifndef SC_TRACER_MESSAGE_H
#define SC_TRACER_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "trace/control.h"
#include "tracer/watch.h"

struct sc_tracer_options {
  const char *output;  /* SYNCCOUNT_OUTPUT: folder of the trace; "." */
  const char *cupti;   /* SYNCCOUNT_CUPTI: a libcupti to use; NULL */
  uint64_t max_bytes;  /* SYNCCOUNT_MAX_TRACE; 0: no limit of ours */
  bool quiet;          /* SYNCCOUNT_QUIET=1 */
  enum sc_watch_apis apis; /* SYNCCOUNT_API */
  bool python, native; /* SYNCCOUNT_STACKS: which frames are taken at a blocking call; both */
  char complaint[512]; /* about values that were ignored; "" if none */
};

/* Strings point into the environment. A bad value is named in `complaint` and ignored. */
void sc_tracer_options_read(struct sc_tracer_options *options);

/* What whoever attached asks of us, over what the environment says; its folder is borrowed. The program's stderr is not
 * written to. */
void sc_tracer_options_take(struct sc_tracer_options *options, const struct sc_control_request *asked);

/* Which file stderr is when the program starts. A program may close it, and open a file of its own under its number:
 * then nothing is said. */
void sc_tracer_remember_stderr(void);

/* One line "synccount: ..." on stderr in one write, unless quiet. stdio is the program's and is not touched. */
void sc_tracer_say(const struct sc_tracer_options *options, const char *format, ...) SC_PRINTF(2, 3);

#endif
