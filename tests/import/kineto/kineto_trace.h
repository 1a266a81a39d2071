/* SPDX-License-Identifier: Apache-2.0
 * A Kineto trace put together line by line, and what the importer finds in it. */
#ifndef SC_TEST_KINETO_TRACE_H
#define SC_TEST_KINETO_TRACE_H

#include "test_support.h"

#include "import/kineto.h"

struct text_source {
  const char *bytes;
  size_t size, at, step;
};
ptrdiff_t text_read(void *context, void *bytes, size_t size, struct sc_error *err);

struct trace {
  struct sc_buf events;       /* the elements of the array */
  uint64_t corr;              /* the last correlation id given */
  double now;                 /* microseconds: calls follow each other */
  const char *before, *after; /* members of the object before and after the events, with their commas */
  struct sc_analysis_options *options;

  struct sc_findings *findings; /* once it was read */
  struct sc_process *process;
};
void trace_open(struct trace *t);
void trace_close(struct trace *t);
void event_put(struct trace *t, const char *format, ...) SC_PRINTF(2, 3); /* one whole event */

/* A call of pid 7, tid 7; the next begins 10 us later. */
void call_put(struct trace *t, const char *name);
void device_put(struct trace *t, const char *category, const char *name, int stream, int bytes); /* of the last call */
void sync_put(struct trace *t, const char *kind, int stream);                                    /* likewise */
/* Something of the host that holds from `from` to t->now. */
void host_put(struct trace *t, const char *category, const char *name, double from);

enum sc_status trace_try(struct trace *t, struct sc_error *err);
void trace_read(struct trace *t); /* it must succeed, with a process */
void text_try(const char *text, size_t size, size_t step, struct trace *t, enum sc_status *status,
              struct sc_error *err);
bool warned(const struct trace *t, const char *part);
void expect_counts(const struct trace *t, uint64_t syncs, uint64_t explicit_, uint64_t copy, uint64_t pageable,
                   uint64_t uncertain);

#endif
