/* SPDX-License-Identifier: Apache-2.0
 * Builds small traces in a temporary file, for tests of everything that reads traces. Link sc_make_trace.
 * Every failure fails the CMocka test.
 *
 *   struct make_trace *t = mt_new(0);
 *   struct sc_writer_thread *a = mt_thread(t);
 *   mt_push(t, a, "synccount", "layer:0", 100);
 *   mt_launch(a, 3);
 *   mt_call(t, a, "cudaStreamSynchronize_v3020", (struct mt_call){.start_ns = 200, .duration_ns = 50, .stream = 7});
 *   mt_pop(t, a, "synccount", 300);
 *   struct sc_reader *reader = mt_reader(t);
 *   ...
 *   sc_reader_close(reader);
 *   mt_free(t); */
#ifndef SC_MAKE_TRACE_H
#define SC_MAKE_TRACE_H

#include "trace/trace.h"

struct make_trace;

struct mt_call {
  uint64_t start_ns, duration_ns, stream, object, bytes;
  int16_t status;
  uint8_t direction; /* enum sc_direction; 0: what the name says */
  uint8_t dst, src;  /* enum sc_memory */
  uint8_t flags;     /* enum sc_call_flag */
  uint8_t device;
};

/* flags: enum sc_trace_header_flag. The file lies in $TMPDIR or /tmp. */
struct make_trace *mt_new(uint32_t flags);
struct sc_writer *mt_writer(struct make_trace *t);
/* A new thread of the trace, with the next serial. Any number may be made by one real thread. */
struct sc_writer_thread *mt_thread(struct make_trace *t);
/* One call; the name's API record is written to the thread the first time it is used in this trace. */
void mt_call(struct make_trace *t, struct sc_writer_thread *thread, const char *name, struct mt_call call);
/* n kernel launches; n other submissions (copies that are not recorded, host functions...). */
void mt_launch(struct sc_writer_thread *thread, unsigned n);
void mt_submit(struct sc_writer_thread *thread, unsigned n);
/* Ranges. domain NULL or "": the default domain. Strings are defined in the thread the first time they are used. */
void mt_push(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, const char *name, uint64_t ns);
void mt_pop(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, uint64_t ns);
void mt_range_start(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, const char *name,
                    uint64_t handle, uint64_t ns);
void mt_range_end(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, uint64_t handle, uint64_t ns);
void mt_mark(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, const char *name, uint64_t ns);
/* The id of a string, defined in the thread the first time. */
uint32_t mt_string(struct make_trace *t, struct sc_writer_thread *thread, const char *text);
uint32_t mt_api(struct make_trace *t, struct sc_writer_thread *thread, const char *name);
void mt_meta(struct sc_writer_thread *thread, const char *key, const char *value);
void mt_name(struct sc_writer_thread *thread, const char *name);
void mt_note(struct sc_writer_thread *thread, enum sc_note note, const char *text);
/* Cleanly closes the file (once). The path is valid until mt_free, which removes the file. */
const char *mt_close(struct make_trace *t);
/* As if the process had been killed: the file stays as it is, chunks open, no end time. */
const char *mt_kill(struct make_trace *t);
/* mt_close if neither has been called, then a reader of the file; the caller closes it. */
struct sc_reader *mt_reader(struct make_trace *t);
/* Likewise, the file's bytes; the caller frees them. */
unsigned char *mt_bytes(struct make_trace *t, size_t *size);
void mt_free(struct make_trace *t);

#endif
