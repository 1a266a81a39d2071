/* SPDX-License-Identifier: Apache-2.0
 * Feeds the engine by hand: one line a CUDA call, with the clock, the heads and the names taken care of. */
#ifndef SC_TEST_FEED_H
#define SC_TEST_FEED_H

#include "test_support.h"

#include "analysis/analysis.h"

#define S1 0x5000u /* two streams of the program */
#define S2 0x6000u
#define EVENT 0x7000u

struct feed {
  struct sc_analysis *analysis;
  struct sc_analysis_thread *thread; /* the one that calls */
  uint64_t now_ns;
  uint32_t launches, others; /* of the thread, for the head of its next record */
  const char *names[64], *strings[4096];
  uint32_t name_count, string_count;
  struct sc_findings *findings; /* after feed_end */
  struct sc_process *process;
  bool whole; /* feed_end: a trace of ours that was recorded to the program's end */
};

struct fed_call {
  const char *name; /* with or without CUPTI's suffixes */
  uint64_t stream, object, bytes, duration_ns;
  uint8_t direction, dst, src, flags;
  uint8_t device; /* plus one; 0: not known */
  int16_t status;
  bool empty; /* bytes really 0 */
};

void feed_open(struct feed *f);
void feed_open_with(struct feed *f, size_t max_ranges);
void feed_open_as(struct feed *f, const struct sc_analysis_options *options);
/* Calls go to this thread from now on. Launches that no record carries yet stay with the old one. */
void feed_thread(struct feed *f, uint64_t serial);
void feed_launches(struct feed *f, uint32_t count);
/* Submissions that are no launches and no records. */
void feed_submissions(struct feed *f, uint32_t count);
/* bytes 0 means 64 unless `empty`, except for queries, whose bytes are the "not ready" answers. */
void feed_call(struct feed *f, struct fed_call call);
void feed_push(struct feed *f, const char *domain, const char *name);
void feed_pop(struct feed *f, const char *domain);
void feed_start(struct feed *f, uint64_t handle, const char *domain, const char *name);
void feed_stop(struct feed *f, uint64_t handle);
/* Ends the process; f->process then holds the findings. */
void feed_end(struct feed *f);
void feed_close(struct feed *f);

const struct sc_range_findings *feed_range(const struct feed *f, const char *path);
/* True if some warning holds the text. */
bool feed_warned(const struct feed *f, const char *text);

/* The usual calls. */
#define CALL(f, call_name, ...) feed_call((f), (struct fed_call){.name = (call_name), __VA_ARGS__})
#define D2H_PINNED(f, s)                                                                            \
  CALL(f, "cudaMemcpyAsync", .stream = (s), .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PINNED, \
       .src = SC_MEMORY_DEVICE)
#define D2H_PAGEABLE(f, s)                                                                            \
  CALL(f, "cudaMemcpyAsync", .stream = (s), .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE, \
       .src = SC_MEMORY_DEVICE)
#define D2H_UNKNOWN(f, s)                                                                            \
  CALL(f, "cudaMemcpyAsync", .stream = (s), .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_UNKNOWN, \
       .src = SC_MEMORY_DEVICE)
#define H2D_ASYNC(f, s, memory) \
  CALL(f, "cudaMemcpyAsync", .stream = (s), .direction = SC_DIRECTION_H2D, .dst = SC_MEMORY_DEVICE, .src = (memory))
#define MEMCPY_D2H(f) \
  CALL(f, "cudaMemcpy", .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE, .src = SC_MEMORY_DEVICE)
#define SYNC(f, s) CALL(f, "cudaStreamSynchronize", .stream = (s))

#endif
