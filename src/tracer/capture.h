/* SPDX-License-Identifier: Apache-2.0
 * Which streams are being captured into a graph. A captured call gives the device nothing and waits for nothing. */
#ifndef SC_TRACER_CAPTURE_H
#define SC_TRACER_CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The per-thread default stream has one handle and is as many streams as there are threads. */
struct sc_stream_key {
  uint64_t stream;
  const void *thread; /* NULL unless stream is SC_STREAM_PER_THREAD */
};

extern _Atomic unsigned sc_capture_count; /* captures that go on; 0 nearly always */
static inline bool sc_capture_any(void) { return atomic_load_explicit(&sc_capture_count, memory_order_relaxed) != 0; }

void sc_capture_begin(struct sc_stream_key origin);
void sc_capture_end(struct sc_stream_key origin); /* the origin and every stream that joined it are free again */
/* An event recorded on a capturing stream belongs to the capture; a stream that waits for such an event joins it. */
void sc_capture_record(uint64_t event, struct sc_stream_key stream);
void sc_capture_wait(struct sc_stream_key stream, uint64_t event);
void sc_capture_drop_stream(struct sc_stream_key stream);
void sc_capture_drop_event(uint64_t event);
void sc_capture_reset(void); /* nothing is known of any capture */
bool sc_capture_holds(struct sc_stream_key stream);

#endif
