/* SPDX-License-Identifier: Apache-2.0
 * Records in, findings out. No file format, no output format, no CUDA. */
#ifndef SC_ANALYSIS_H
#define SC_ANALYSIS_H

#include "analysis/findings.h"
#include "trace/trace.h"

struct sc_level_rule { /* ranges whose name matches (sc_match) are of this level, whatever their domain */
  const char *pattern;
  const char *level; /* a name that sc_analysis_has_level knows */
};
bool sc_analysis_has_level(const char *name); /* "step", "layer", "expert", "op", "run" */

/* Strings and rules must outlive the analysis. */
struct sc_analysis_options {
  size_t max_ranges; /* 0: 4096 nodes; further range paths are gathered in "(other ranges)" and warned of */
  const struct sc_level_rule *levels; /* before the built-in names; the first that matches wins */
  size_t level_count;
  uint64_t warmup;    /* this many first steps of each thread are left out of the steps' minimum, median and maximum */
  const char *from;   /* so are steps that ended before a range whose name matches this pattern first opened; NULL: none */
  bool events;        /* keep every sync, poll wait, device-to-host copy and range for the formats that show each */
  bool tally;         /* tell single occurrences of ranges apart: process->tally (analysis/tally.h) */
  bool capture_range; /* count only between cudaProfilerStart and cudaProfilerStop. sc_analysis_read alone: importers
                         have no such calls */
};

/* ---- one process ---------------------------------------------------------------------------
 * Feed calls and ranges thread by thread or mixed: each thread's own order matters, threads' does not.
 * Traces (sc_analysis_read) and importers (sc_analysis_record, ...) use the same engine. Memory grows with the number
 * of threads and, up to a limit, of range paths; not with the number of records. */
struct sc_analysis;
/* options may be NULL: the defaults. The caller frees it. NULL: out of memory. */
struct sc_analysis *sc_analysis_new(const struct sc_analysis_options *options) SC_NODISCARD;
void sc_analysis_free(struct sc_analysis *analysis); /* accepts NULL */

/* A thread's state. It belongs to the analysis. serial tells threads apart (tids are reused). NULL: out of memory. */
struct sc_analysis_thread;
struct sc_analysis_thread *sc_analysis_thread(struct sc_analysis *analysis, uint64_t serial, uint32_t tid) SC_NODISCARD;
/* Copies the name; a later one replaces it. False: out of memory. */
bool sc_analysis_thread_name(struct sc_analysis_thread *thread, const char *name, size_t length);

/* What importers define before they use it in a record: a call's id (op SC_OP_NONE: asked by name) and a string's id.
 * Both are copied. False: out of memory, an api id above 65535, or a string id of 4 million and more. */
bool sc_analysis_api(struct sc_analysis *analysis, uint32_t id, enum sc_op op, const char *name);
bool sc_analysis_string(struct sc_analysis *analysis, uint32_t id, const char *text, size_t length);

/* What the stack ids in records (head.stack) stand for, asked when the process is finished. Each function says false for
 * an id that it does not know. Source and context must outlive the analysis; without them stacks are not looked at. */
struct sc_stack_source {
  bool (*stack)(const void *context, uint32_t id, struct sc_stack *out);
  bool (*frame)(const void *context, uint32_t id, struct sc_stack_frame *out);
  bool (*module)(const void *context, uint32_t id, struct sc_module *out); /* NULL where native frames are named */
  /* Native frames that the trace names, by their offset. NULL: they are addresses in modules. */
  bool (*native)(const void *context, uint64_t offset, struct sc_stack_frame *out);
};
void sc_analysis_stacks(struct sc_analysis *analysis, const struct sc_stack_source *source, const void *context);

/* One whole record of a thread: CALL, RANGE_PUSH, _POP, _START, _END, THREAD, NOTE; other kinds are ignored. Launches
 * may be counted in head.launches and head.submissions of the next record, as the tracer does, or be CALLs with op
 * SC_OP_LAUNCH. Polls may be merged, as in traces, or come one query a record. Failure (out of memory) is kept until
 * _finish. */
void sc_analysis_record(struct sc_analysis *analysis, struct sc_analysis_thread *thread,
                        const struct sc_record_head *record);
/* What the thread submitted after its last record. */
void sc_analysis_tail(struct sc_analysis *analysis, struct sc_analysis_thread *thread, uint32_t submissions,
                      uint32_t launches);
/* When a range that ends the warm-up (options.from) first opened, on whatever thread; UINT64_MAX: never. To be told before
 * the first record where threads come one after the other: else it holds from where it is seen. */
void sc_analysis_from(struct sc_analysis *analysis, uint64_t from_ns);
/* Where device work is known. How many syncs the thread has had so far; and, directly after a record that made it one
 * more, how long the device had nothing to run from the end of the work before that sync to the start of the next
 * (0: it always had). Not called for a sync: not measured. */
uint64_t sc_analysis_syncs(const struct sc_analysis_thread *thread);
void sc_analysis_drain(struct sc_analysis_thread *thread, uint64_t gap_ns);
/* Records of this thread are missing here: nothing is concluded across the gap (no merge, no poll wait, no idle). */
void sc_analysis_gap(struct sc_analysis *analysis, struct sc_analysis_thread *thread);

/* Ends the process: fills process->counts, threads, ranges, steps and wall_us (from the records when it was NaN), and
 * adds warnings about what changes the counts' meaning, each starting with `label` (NULL: none). Call once. */
enum sc_status sc_analysis_finish(struct sc_analysis *analysis, const char *label, struct sc_process *process,
                                  struct sc_findings *findings, struct sc_error *err) SC_NODISCARD;

/* Reads a whole trace, appends one sc_process to findings, adds losses, damage and notes as warnings. */
enum sc_status sc_analysis_read(struct sc_reader *reader, const struct sc_analysis_options *options,
                                struct sc_findings *findings, struct sc_error *err) SC_NODISCARD;

/* Gives the sites of a process their pattern, remedy and id, by what is known of them and by their frames' names.
 * sc_analysis_finish has done so; whoever looks symbols up afterwards, and so changes frames, does it again. */
bool sc_sites_describe(struct sc_process *process);

/* ---- the MoE runs of the main command -------------------------------------------------------
 * A traced probe opens one range "run:<variant>:E=<experts>:T=<tokens>" (domain "synccount") around each configuration;
 * inside, each measured forward is a range "forward", with "layer:<i>", "expert:<j>" and the ops below it. Warm-up is
 * outside "forward". Looks the run up by that name in process and fills run->counted, counts, per_layer, by_op,
 * by_expert, exact. run's shape and hit must be set. SC_ERR_MEASURE if there is no such range, no forward in it, or
 * records were lost. */
enum sc_status sc_runs_count(struct sc_run *run, const struct sc_process *process, struct sc_error *err) SC_NODISCARD;
/* The max_ranges that keeps all range paths of a traced probe apart: those of these runs, and never less than the
 * default (a 48-layer model with 128 experts needs more). */
size_t sc_runs_range_paths(const struct sc_run *runs, size_t count);
/* expected_per_layer and bound_per_layer from variant, experts, hit. */
void sc_runs_expect(struct sc_run *run);
/* Floors of every run, in microseconds, from the ruler row "launch+readback" (block means), and from
 * findings->assumed_us. NaN without a ruler or a count. False: out of memory. */
bool sc_runs_floor(struct sc_findings *findings);
/* The law of each counted variant over its expert counts; replaces findings->laws. False: out of memory. */
bool sc_runs_laws(struct sc_findings *findings);
/* Ruler row from samples in time order, cut into `blocks` blocks whose sizes are given; its mean is that of the block
 * means, as the floor's. samples_us stays the caller's and is sorted in place at the end. False: out of memory, *row is
 * then empty. */
bool sc_ruler_from_samples(struct sc_ruler_row *row, const char *method, double *samples_us, const size_t *block_sizes,
                           size_t blocks);
/* Marginal cost, in microseconds a sync, from control points: pairs (syncs per forward, forward time of each repeat).
 * NaNs if n < 3 or all syncs are equal. */
void sc_marginal_fit(struct sc_marginal *marginal, const double *syncs, const double *forward_us, size_t n);

#endif
