/* SPDX-License-Identifier: Apache-2.0
 * The trace room: a reader for anybody and a writer for the tracer and the tests. */
#ifndef SC_TRACE_H
#define SC_TRACE_H

#include "base/base.h"
#include "trace/calls.h"
#include "trace/format.h"

/* ---- writer: usable inside somebody else's process -----------------------------------------
 * No stdio, no locks on the record path, errno kept, never exits, never raises a signal (SIGBUS, SIGXFSZ).
 * Async-signal tolerant: a killed process leaves every committed record readable. */
struct sc_writer;     /* one per process and file */
struct sc_writer_thread; /* one per thread: its current chunk */

struct sc_writer_options {
  const char *path;      /* created O_EXCL; mode 0600 */
  uint32_t flags;        /* enum sc_trace_header_flag */
  uint64_t max_bytes;    /* 0: no limit of our own */
  bool counts_beyond;    /* the caller counts in sc_writer_beyond what it cannot record: the file promises it */
};
/* The caller ends *out with sc_writer_close or, to have its memory back, sc_writer_free. Failure leaves no file
 * behind. */
enum sc_status sc_writer_open(const struct sc_writer_options *options, struct sc_writer **out, struct sc_error *err) SC_NODISCARD;
/* Registers the calling thread; NULL when memory is out or the writer is closed. Where the file can hold no more, a
 * thread that records nothing and counts what it loses. A thread costs 4 KiB of file, more as it records more. */
struct sc_writer_thread *sc_writer_thread_begin(struct sc_writer *writer) SC_NODISCARD;
/* Closes the thread's chunk with its checksum. thread may be NULL. */
void sc_writer_thread_end(struct sc_writer_thread *thread);
/* Reserves `units` units in the thread's chunk (a new chunk if needed) and zeroes nothing: the caller fills
 * every byte but head.submissions/launches, then commits. NULL: no room, the loss is counted. */
void *sc_writer_reserve(struct sc_writer_thread *thread, uint32_t units);
void sc_writer_commit(struct sc_writer_thread *thread, uint32_t units);
/* The thread's last committed record if it is a CALL in the current chunk and nothing was submitted since: may be
 * changed in place (poll records). NULL otherwise. */
struct sc_record_call *sc_writer_last_call(struct sc_writer_thread *thread);
/* Counts one submission on this thread; launch: it is a kernel or graph launch. No clock, no lock. */
void sc_writer_submission(struct sc_writer_thread *thread, bool launch);
/* STRING/META/THREAD/NOTE records. META text is "key\0value" with its length. Cut at SC_TRACE_STRING_MAX. */
void sc_writer_text(struct sc_writer_thread *thread, enum sc_record_kind kind, uint32_t id, const char *text, size_t length);
void sc_writer_api(struct sc_writer_thread *thread, uint32_t id, uint8_t domain, uint32_t cbid, enum sc_op op, const char *name);
/* MODULE, FRAME and STACK records. A build id longer than its field is left out; too many frames are cut, and said so in
 * the flags. */
void sc_writer_module(struct sc_writer_thread *thread, uint32_t id, uint32_t path, uint64_t base,
                      const uint8_t *build_id, size_t build_id_length);
void sc_writer_frame(struct sc_writer_thread *thread, uint32_t id, uint32_t file, uint32_t function, uint32_t line,
                     uint32_t first_line);
void sc_writer_stack(struct sc_writer_thread *thread, uint32_t id, uint32_t flags, const uint32_t *python,
                     size_t python_count, const struct sc_stack_address *native, size_t native_count);
struct sc_trace_live *sc_writer_live(struct sc_writer *writer);
/* Where the caller counts what it cannot record, with atomic additions. */
struct sc_trace_beyond *sc_writer_beyond(struct sc_writer *writer);
/* The thread records nothing any more, room or not: what it loses from now on is without a gap. */
void sc_writer_thread_stop(struct sc_writer_thread *thread);
/* Clean end: sets end_mono_ns, closes the chunks that the calling thread registered, and stops all others: their next
 * record is a counted loss. Threads may still run, as they do at exit: their chunks stay open, which readers take as well,
 * and nothing that they could still touch is unmapped. */
void sc_writer_close(struct sc_writer *writer);
/* Ends a writer that no thread can touch any more: seals every chunk, closes the file and gives all memory back. May follow
 * sc_writer_close. A fork may copy the process at any moment of it: see that nobody finds the writer by then. */
void sc_writer_free(struct sc_writer *writer);
/* In a forked child: forget the parent's file without touching it. The mappings are MADV_DONTFORK. Threads that were
 * registered record nothing from then on; sc_writer_live gives counters that nobody reads. */
void sc_writer_abandon(struct sc_writer *writer);

/* ---- reader: hostile files are expected -----------------------------------------------------
 * Memory does not grow with the number of records (strings and apis are kept, with limits). */
struct sc_reader;

/* Opens by content: SC_ERR_FORMAT if it is not ours, SC_ERR_VERSION if too new or too old (both versions named). */
enum sc_status sc_reader_open(const char *path, struct sc_reader **out, struct sc_error *err) SC_NODISCARD;
/* For tests and fuzzing: the bytes stay the caller's and must outlive the reader. */
enum sc_status sc_reader_open_memory(const void *bytes, size_t size, const char *name, struct sc_reader **out, struct sc_error *err) SC_NODISCARD;
/* The same trace from its beginning, for who has to look twice; closed apart. */
enum sc_status sc_reader_reopen(const struct sc_reader *reader, struct sc_reader **out, struct sc_error *err) SC_NODISCARD;
void sc_reader_close(struct sc_reader *reader);

const struct sc_trace_header *sc_reader_header(const struct sc_reader *reader);
const struct sc_trace_live *sc_reader_live(const struct sc_reader *reader);
/* What was counted without a record; NULL if nothing was, or could not be (older writers). */
const struct sc_trace_beyond *sc_reader_beyond(const struct sc_reader *reader);
const char *sc_reader_path(const struct sc_reader *reader);

/* One chunk's records at a time; a thread's chunks in the order it wrote them, threads in no order. STRING, API and META
 * records (and those of stacks) have already been taken in when a chunk is returned, but are still in it. */
struct sc_batch {
  uint64_t thread;
  uint32_t tid;
  uint64_t lost;              /* of this thread between its previous batch and this one; at least 1 for each chunk that was
                               * damaged or missing there. It marks a gap: the total is sc_reader_live()->lost_records */
  const unsigned char *bytes; /* whole records; walk by head.units */
  size_t size;
  uint32_t tail_submissions, tail_launches; /* after the last record (open chunks, or at thread end) */
};
/* SC_OK with *more = false at the end. Damage is skipped and counted, never fatal: see sc_reader_damage. batch->bytes
 * is valid until the next call or the close; a malformed record in it has kind 0 and its head's counts. */
enum sc_status sc_reader_next(struct sc_reader *reader, struct sc_batch *batch, bool *more, struct sc_error *err) SC_NODISCARD;

struct sc_damage {
  uint64_t chunks;    /* with a wrong checksum, impossible size, or cut off */
  uint64_t records;   /* malformed records skipped */
  uint64_t truncated; /* 1 if the file ends inside a chunk */
  char first[160];    /* what and at which offset the first was found; "" if none */
};
void sc_reader_damage(const struct sc_reader *reader, struct sc_damage *out);

/* NULL if the id was not defined. text is NUL-terminated but may hold NULs inside; *length may be NULL. */
const char *sc_reader_string(const struct sc_reader *reader, uint32_t id, size_t *length);
uint32_t sc_reader_last_string(const struct sc_reader *reader); /* the highest id that is defined; 0: none is */
struct sc_api {
  uint32_t id, cbid;
  uint8_t domain;
  enum sc_op op;      /* from the file; names are asked again by sc_call_op only if it is SC_OP_NONE */
  const char *name;   /* full CUPTI name */
  bool per_thread;
};
const struct sc_api *sc_reader_api(const struct sc_reader *reader, uint32_t id);
/* What a STACK, FRAME or MODULE id stands for; false if it was not defined. Everything given out lives as long as the
 * reader. Ids inside a stack or frame are as the file has them: they may be undefined. */
struct sc_stack {
  uint32_t flags; /* enum sc_stack_flag */
  size_t python_count, native_count;
  const uint32_t *python;                /* FRAME ids, innermost first */
  const struct sc_stack_address *native; /* innermost first */
};
bool sc_reader_stack(const struct sc_reader *reader, uint32_t id, struct sc_stack *out);
struct sc_stack_frame {
  const char *file, *function; /* NULL: its string is not defined */
  uint32_t line, first_line;
};
bool sc_reader_frame(const struct sc_reader *reader, uint32_t id, struct sc_stack_frame *out);
struct sc_module {
  const char *path; /* NULL: its string is not defined */
  uint64_t base;
  const uint8_t *build_id;
  size_t build_id_length;
};
bool sc_reader_module(const struct sc_reader *reader, uint32_t id, struct sc_module *out);
/* Value of a META key ("command", "cwd", "cupti", "driver", "simcuda", "rank", ...); NULL if absent. Complete only
 * after the first batch was returned. */
const char *sc_reader_meta(const struct sc_reader *reader, const char *key);

/* Walks a batch: returns the next record or NULL at the end; *offset starts at 0. */
const struct sc_record_head *sc_batch_next(const struct sc_batch *batch, size_t *offset);

#endif
