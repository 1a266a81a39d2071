/* SPDX-License-Identifier: Apache-2.0
 * What the importers share: events in any order in, the analysis' records in each thread's order out. Memory is
 * bounded: what does not fit is sorted on disk (in TMPDIR).
 *
 * An importer makes processes and threads known, hands over API calls, ranges, frames and device work as it reads them,
 * and finishes. The feed then
 * - joins what the device did to the call that asked for it, by correlation id: a call learns its stream, its bytes,
 * its direction and the memory on both sides;
 * - leaves out calls inside another call of their thread (a driver call inside a runtime call), and calls that the
 *   tracer would not record either (allocations, attributes, event records);
 * - gives push/pop ranges, start/end ranges and frames to the calls that they were open for;
 * - measures drain gaps where there is device work.
 *
 * Failure (out of memory, no room for a temporary file, a limit) is kept: functions that return nothing do nothing from
 * then on, and sc_feed_finish says so. sc_feed_failed lets a long loop stop early. */
#ifndef SC_IMPORT_FEED_H
#define SC_IMPORT_FEED_H

#include "analysis/analysis.h"

struct sc_feed;
struct sc_feed *sc_feed_new(void) SC_NODISCARD; /* NULL: out of memory */
void sc_feed_free(struct sc_feed *feed);        /* accepts NULL */
/* Before the first range: options.from is looked for as ranges come in. The pattern must outlive the feed. NULL: none.
 */
void sc_feed_options(struct sc_feed *feed, const struct sc_analysis_options *options);
bool sc_feed_failed(const struct sc_feed *feed);

/* Where the trace's own clock has its zero, for one that an importer has moved so that no time is negative; real_ns:
 * the time of day there, 0 if the trace does not say. Findings are on the trace's own clock again (or, where it would
 * be negative, on one that begins with the trace). */
void sc_feed_clock(struct sc_feed *feed, uint64_t zero_ns, uint64_t real_ns);

/* ---- names: ids from 1, 0 for NULL. Texts are copied, cut at 16 KiB, equal ones have one id ------------------- */
uint32_t sc_feed_string(struct sc_feed *feed, const char *text, size_t length);
/* A call's name, with or without its suffixes. 0: the call does not matter (sc_feed_call then ignores it). */
uint32_t sc_feed_api(struct sc_feed *feed, const char *name);

/* ---- processes and threads: indices, by any number that tells them apart in this trace -------------------------- */
uint32_t sc_feed_process(struct sc_feed *feed, uint64_t key, uint64_t pid);
/* For formats whose device work does not say whose it is: the pid, once it is known. */
void sc_feed_process_pid(struct sc_feed *feed, uint32_t process, uint64_t pid);
uint32_t sc_feed_thread(struct sc_feed *feed, uint32_t process, uint64_t key, uint32_t tid);
void sc_feed_thread_name(struct sc_feed *feed, uint32_t thread, const char *name, size_t length);
enum sc_feed_fact { SC_FEED_COMMAND, SC_FEED_HOST, SC_FEED_RANK, SC_FEED_LOCAL_RANK, SC_FEED_CWD, SC_FEED_FACTS };
void sc_feed_fact(struct sc_feed *feed, uint32_t process, enum sc_feed_fact fact, const char *text, size_t length);

/* ---- events: in any order. Times are nanoseconds on one clock for host and device; an end before its start is taken
 * to be the start ------------------------------------------------------------------------------------------------- */
struct sc_feed_call {
  uint32_t thread, api;
  uint64_t start_ns, end_ns;
  uint64_t correlation; /* of its process; 0: none */
  int32_t status;       /* 0 if the trace does not say */
  uint32_t stack;       /* of sc_feed_stack; 0: the frames that were open, if any */
};
void sc_feed_call(struct sc_feed *feed, const struct sc_feed_call *call);

enum sc_feed_work_kind {
  SC_FEED_KERNEL, /* also graph launches as a whole, and device work that is nothing of the below */
  SC_FEED_COPY,
  SC_FEED_MEMSET,
  SC_FEED_SYNC, /* no work: tells the device and stream that a synchronise, or a query, was about */
  SC_FEED_FREE, /* no work: the free that has this correlation was of real memory, whose kind is dst, from no pool */
  SC_FEED_FREE_POOL, /* no work: likewise, from a pool */
};
#define SC_FEED_NO_DEVICE 255u
#define SC_FEED_NO_STREAM UINT32_MAX
struct sc_feed_work {
  uint32_t process;
  enum sc_feed_work_kind kind;
  uint64_t correlation;
  uint64_t start_ns, end_ns;
  uint32_t device, context, stream; /* stream: as the trace numbers it, per context; context 0: not known */
  uint64_t bytes;
  uint8_t direction; /* enum sc_direction */
  uint8_t src, dst;  /* enum sc_memory; memset: dst */
};
void sc_feed_work(struct sc_feed *feed, const struct sc_feed_work *work);

/* A range with both its ends. end_ns UINT64_MAX: it was never closed. */
struct sc_feed_range {
  uint32_t thread;
  uint32_t name, domain; /* strings; domain 0: the default one */
  uint64_t start_ns, end_ns;
  bool spanning; /* a start/end range: it counts for the thread that started it */
};
void sc_feed_range(struct sc_feed *feed, const struct sc_feed_range *range);

/* ---- where calls come from ------------------------------------------------------------------------------------- */
/* A frame's id. file and function may be NULL, line 0. native: what a native stack holds (file: the module's path). */
uint32_t sc_feed_frame(struct sc_feed *feed, const char *file, const char *function, uint32_t line);
/* A stack's id, frames innermost first; equal ones have one id. At most SC_STACK_PYTHON_MAX and SC_STACK_NATIVE_MAX are
 * kept. */
uint32_t sc_feed_stack(struct sc_feed *feed, const uint32_t *python, size_t python_count, const uint32_t *native,
                       size_t native_count);
/* A Python function that ran on this thread in this time: its frame is in the stack of every call inside it. */
void sc_feed_ran(struct sc_feed *feed, uint32_t thread, uint32_t frame, uint64_t start_ns, uint64_t end_ns);
/* An operator of the framework that ran on this thread in this time (aten::item, no file): likewise, as a native frame
 * of every call inside it, whether Python frames are open or not. A stream synchronise whose stream the trace does not
 * tell is on the stream of the thread's last copy, if that copy was made by the same innermost operator (PyTorch's
 * blocking copies); sc_feed_totals says how many were. */
void sc_feed_operator(struct sc_feed *feed, uint32_t thread, uint32_t frame, uint64_t start_ns, uint64_t end_ns);

/* ---- the end ---------------------------------------------------------------------------------------------------- */
/* Appends a process for each of the trace that had a call, in the order in which they were made known. path: the trace,
 * for findings and messages. Call once, then sc_feed_free. */
enum sc_status sc_feed_finish(struct sc_feed *feed, const char *path, const struct sc_analysis_options *options,
                              struct sc_findings *findings, struct sc_error *err) SC_NODISCARD;

/* What was handed over, for what an importer has to say about it. */
struct sc_feed_totals {
  uint64_t calls;                           /* with an api, nested ones included */
  uint64_t ranges, frames;                  /* frames: sc_feed_ran */
  uint64_t kernels, copies, memsets, syncs; /* works by kind */
  uint64_t operators;
  /* After sc_feed_finish: stream synchronises whose stream the trace does not tell: taken from their operator's copy,
   * and left unknown; works of kind SYNC that no call asked for (made through an API that the trace leaves out). */
  uint64_t streams_taken, streams_unknown, syncs_without_call;
};
struct sc_feed_totals sc_feed_totals(const struct sc_feed *feed);

#endif
