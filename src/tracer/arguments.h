/* SPDX-License-Identifier: Apache-2.0
 * From the arguments of one call to what a record says about it. */
#ifndef SC_TRACER_ARGUMENTS_H
#define SC_TRACER_ARGUMENTS_H

#include "tracer/capture.h"
#include "tracer/memory.h"
#include "tracer/watch.h"

struct sc_arguments {
  uint64_t stream, object, bytes;
  uint8_t direction, dst, src; /* enum sc_direction, enum sc_memory */
  uint8_t flags;               /* enum sc_call_flag */
};

/* How much is known about memory that no allocation of ours holds. */
struct sc_memory_view {
  bool late;    /* allocations before we started were not seen */
  bool imports; /* memory of others was mapped in */
};

/* Stream as records have it; the default streams told apart. 0 for calls without one. */
uint64_t sc_arguments_stream(const struct sc_watch *watch, const void *params);
struct sc_stream_key sc_arguments_key(uint64_t stream, const void *thread);

void sc_arguments_read(const struct sc_watch *watch, const void *params, struct sc_memory_cache *cache,
                       struct sc_memory_view view, struct sc_arguments *out);

#endif
