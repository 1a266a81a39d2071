/* SPDX-License-Identifier: Apache-2.0
 * What CUPTI calls. */
#ifndef SC_TRACER_CALLBACK_H
#define SC_TRACER_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer/cupti.h"
#include "tracer/watch.h"

/* Before the first callback of a session is enabled, while no thread is inside: what was known of memory, streams and
 * events is forgotten. `cupti` and `table` must live as long as the process. */
void sc_callback_prepare(const struct sc_cupti *cupti, const struct sc_watch_table *table, struct sc_writer *writer,
                         bool late);
/* With callbacks enabled and the gate still shut: waits until a call has come by, for a moment if none does. What was
 * entered earlier is then known by its number, and is none of the session's. */
void sc_callback_await_one(void);
void sc_callback(void *user, int domain, uint32_t cbid, const void *data);

#endif
