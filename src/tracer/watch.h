/* SPDX-License-Identifier: Apache-2.0
 * Which CUPTI callbacks we want, and what each is: built from CUPTI's own names when tracing starts. */
#ifndef SC_TRACER_WATCH_H
#define SC_TRACER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"
#include "tracer/layout.h"

enum sc_action {
  SC_ACTION_NONE = 0, /* not watched */
  SC_ACTION_RECORD,   /* one record a call */
  SC_ACTION_QUERY,    /* poll records, merged in place */
  SC_ACTION_LAUNCH,   /* counted on the thread */
  SC_ACTION_FOLLOW,   /* changes what we know about memory, streams or events */
};

struct sc_watch {
  const struct sc_layout *layout; /* NULL: arguments not known */
  uint16_t api;                   /* id of its SC_RECORD_API; 0: never recorded */
  uint8_t action;                 /* enum sc_action */
  uint8_t op;                     /* enum sc_op */
  uint8_t role;                   /* enum sc_role */
  uint8_t domain;
  uint8_t direction; /* enum sc_direction that the name fixes */
  bool per_thread;   /* stream 0 is the per-thread default stream */
};

/* Ids of both domains overlap: the table is keyed by domain, then id. */
struct sc_watch_table {
  struct sc_watch *of_domain[3]; /* indexed by CUPTI's domain number */
  uint32_t count[3];
  uint32_t apis; /* ids given out, from 1 */
};

/* What a call of this name is to us. The layout comes from its exact name, the op from its base name. */
void sc_watch_classify(uint8_t domain, const char *name, struct sc_watch *out);

/* Whose calls are counted. Of the runtime alone: the driver's are followed for memory kinds only. Of the driver alone:
 * the runtime is not looked at, and the driver calls inside its calls stand for themselves. */
enum sc_watch_apis { SC_WATCH_RUNTIME = 1, SC_WATCH_DRIVER = 2, SC_WATCH_BOTH = 3 };

/* `name_of` is cuptiGetCallbackName. False when memory is out, or CUPTI knows no names. Freed by nobody: callbacks read
 * it. */
bool sc_watch_build(struct sc_watch_table *table, int (*name_of)(int domain, uint32_t cbid, const char **name),
                    enum sc_watch_apis apis);

static inline const struct sc_watch *sc_watch_find(const struct sc_watch_table *table, unsigned domain, uint32_t cbid) {
  if (domain > SC_DOMAIN_RUNTIME || cbid >= table->count[domain])
    return NULL;
  return &table->of_domain[domain][cbid];
}

#endif
