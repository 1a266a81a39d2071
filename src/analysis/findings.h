/* SPDX-License-Identifier: Apache-2.0
 * The findings model: what analysis found and what report and gate see. It mirrors the JSON schema
 * synccount/report/1; a value that was not measured is NaN, NULL, or has its `has_` flag false: never 0. */
#ifndef SC_FINDINGS_H
#define SC_FINDINGS_H

#include "base/base.h"
#include "trace/counts.h"

/* The words of classes, in the order of enum sc_class, and those of levels that ranges can be given. */
#define SC_CLASS_WORDS "explicit", "copy", "pageable", "implicit"
#define SC_LEVEL_WORDS "run", "step", "layer", "expert", "op"
const char *sc_class_name(enum sc_class cls); /* "explicit", "copy", "pageable", "implicit" */
int sc_class_named(const char *name);         /* the enum sc_class of that name; -1: none */
const char *sc_memory_name(unsigned memory);  /* enum sc_memory as a word: "pinned"; "unknown" for any other value */
const char *sc_direction_name(unsigned direction); /* enum sc_direction: "device-to-host"; NULL where it has none */

/* A named fact of host, device or conditions. Order is kept. */
enum sc_field_kind { SC_FIELD_TEXT, SC_FIELD_NUMBER, SC_FIELD_BOOL, SC_FIELD_NULL };
struct sc_field {
  char *group; /* "host", "host.pcie", "device", "conditions" */
  char *key;   /* JSON key, e.g. "gpu_numa_node" */
  enum sc_field_kind kind;
  char *text;  /* TEXT */
  double number;
  bool boolean;
};

struct sc_ruler_row {
  char *method; /* "launch", "readback", "launch+readback", "memcpy-pageable", "memcpy-pinned", "stream-sync-idle",
                   "event-spin", "event-block", "mapped-spin" */
  uint64_t samples, blocks;
  double min_us, p10_us, p50_us, mean_us, p90_us, p99_us;
  double *block_means_us; /* blocks values, in time order; NULL if not kept */
};

struct sc_marginal { /* cost of one more sync, control runs of one expert count and token count */
  uint64_t experts, tokens;
  double mean_us, low_us, high_us;
};

struct sc_named_count {
  char *name;
  uint64_t count;
};

struct sc_run {
  char *variant; /* "masked", "sorted", "fused-nvfp4" */
  uint64_t experts, top_k, tokens, hidden, intermediate, layers, model_layers, forwards; /* forwards: traced ones */
  char *dtype, *routing, *activation;
  char *act_quant, *nvfp4_path; /* of fused-nvfp4; else NULL */
  uint64_t seed;
  uint64_t *hit; /* [layers]; NULL if unknown */
  bool verified; /* compared with the CPU reference and within bounds */
  double cosine, rel_error;
  uint64_t verified_tokens;
  char *not_verified; /* why, NULL if verified */

  bool counted;  /* a traced pass exists */
  struct sc_counts counts; /* totals over the traced forwards */
  double per_forward;
  uint64_t per_layer_min, per_layer_max;
  double per_layer_mean;
  double expected_per_layer; /* mean over layers of E + 2 hit; 1; 0. NaN: no expectation */
  bool exact;                /* every layer of every traced forward had exactly its expected count */
  double bound_per_layer;    /* 3E for masked; NaN otherwise */
  struct sc_named_count *by_op;
  size_t by_op_count;
  uint64_t *by_expert; /* [experts] or NULL */
  uint64_t **by_expert_op; /* [experts][by_op_count] or NULL: for --per-expert */
  uint64_t outside_experts;
  uint64_t **by_layer_expert; /* [layers][experts], totals over the traced forwards; NULL: not counted */
  uint64_t *by_layer_outside; /* [layers], outside of experts; NULL likewise */

  double floor_low_us, floor_mean_us, floor_high_us; /* NaN without a ruler */
  uint64_t floor_blocks;
  double *assumed_floor_us; /* one per findings.assumed, NULL if none */

  double forward_p10_us, forward_p50_us, forward_p90_us; /* untraced; NaN when not measured (simulated, not verified) */
  uint64_t forward_samples;
  int output_matches_masked; /* 1, 0, -1 unknown or not comparable */
  char *not_comparable;      /* why, or NULL */
};

struct sc_control { /* the decomposition of one experts x tokens point; untraced medians, NaN when not measured */
  uint64_t experts, tokens;
  double dense_us, sorted_us, masked_us;
  struct { uint64_t syncs; double p50_us; } *steps; /* sorted+syncs, by syncs per forward */
  size_t step_count;
};

struct sc_law {
  char *variant;
  bool stated; /* an integer law fits every point exactly, at least three expert counts */
  double slope, intercept;
  char *text; /* "3.00 E + 0" or "no single law: hit < E at E = 16" */
};

struct sc_thread_findings {
  uint64_t tid, serial;
  char *name;
  uint64_t launches, syncs, poll_waits;
  uint64_t d2h_copies, host_functions;
  double wait_us, wall_us;
};

struct sc_range_findings {
  char *path;   /* "forward/layer:0/expert:3/any", names escaped only by the writers */
  char *name, *domain, *level; /* level: "run","step","layer","expert","op","allow" or NULL */
  uint64_t depth, occurrences;  /* depth 0 is outermost */
  uint64_t unfinished;          /* of occurrences: still open at the end of the trace; not in min, median, max */
  bool spanning;                /* a start/end range: its own calls only; not part of the total of the range it is listed under */
  struct sc_counts total, self; /* inclusive, exclusive */
  uint64_t min, max;
  double median; /* syncs per occurrence; NaN when none was finished (min and max are then 0) */
};

struct sc_frame {
  char *file, *function; /* of a native frame: the function, or "libx.so+0x1234" until its symbol was looked up */
  uint64_t line;
  size_t module;   /* of a native frame: of process->modules; SIZE_MAX: in no file */
  uint64_t offset; /* likewise: its return address in that file */
};
struct sc_module_findings { /* a file that native frames lie in */
  char *path;
  char *build_id; /* hexadecimal; NULL: it has none */
};
enum sc_site_kind {
  SC_SITE_SYNC,    /* its count is of syncs: over all of this kind they sum to counts.syncs */
  SC_SITE_POLL,    /* of poll waits that asked at least twice; cls means nothing */
  SC_SITE_REFUSED, /* of synchronises that failed because a stream was being captured; cls means nothing */
};
const char *sc_site_kind_name(enum sc_site_kind kind); /* "sync", "poll", "refused" */
struct sc_site {
  enum sc_site_kind kind;
  uint32_t serial; /* what events call it, whatever the order of the sites */
  char *id, *api, *pattern, *remedy, *range, *direction, *memory;
  enum sc_class cls;
  uint64_t count, bytes; /* bytes: of the copies of one sync, the most there were */
  uint64_t read_backs, blocking_uploads, idle_syncs, merged; /* of count; merged: with the stream synchronise after it */
  double per_step, wait_p50_us, wait_total_us;
  double drain_gap_p50_us, drain_gap_total_us; /* NaN: not measured (a trace without device work) */
  struct sc_frame *python, *native; /* innermost first */
  size_t python_count, native_count;
};
/* The frame that people know their program by: the innermost Python frame outside installed packages, else the
 * innermost one; without Python the innermost native one. NULL: there is none. */
const struct sc_frame *sc_site_frame(const struct sc_site *site);

/* ---- single events, for the formats that show each one ------------------------------------------------- */
enum sc_event_kind {
  SC_EVENT_SYNC,  /* what: index of its site */
  SC_EVENT_POLL,  /* a poll wait; likewise */
  SC_EVENT_COPY,  /* a device-to-host copy that nobody has waited for yet; what: nothing */
  SC_EVENT_RANGE, /* what: index of its range */
};
struct sc_event {
  uint64_t start_ns, end_ns; /* on the process's clock; end: of the last call that is part of it */
  uint64_t wait_ns;          /* of syncs: inside the blocking calls */
  uint64_t bytes;
  uint64_t flow;   /* the same number on copies and on the sync that makes them visible; 0: none */
  uint32_t thread; /* index in process->threads */
  uint32_t what;
  uint8_t kind, cls, direction, memory; /* enum sc_event_kind, sc_class, sc_direction, sc_memory */
  bool read_back, unfinished;           /* unfinished: a range that was still open at the end */
};
struct sc_events; /* of one process; in memory, beyond some size in a temporary file */

struct sc_process_floor { /* sc_process_floor */
  uint64_t round_trips;    /* read-backs and blocking uploads */
  double round_trip_us;    /* the mean one */
  double total_us;
  double per_step_us; /* from the sites; NaN without steps, or where no site says how many round trips it had */
};

struct sc_tally;  /* analysis/tally.h */
enum sc_step_source {
  SC_STEPS_RANGES,    /* ranges of level step */
  SC_STEPS_OPTIMIZER, /* from the end of one optimizer step to the end of the next, all threads */
  SC_STEPS_FORWARD,   /* the same of the outermost module's forward */
};
const char *sc_step_source_name(enum sc_step_source source); /* "ranges", "optimizer", "forward" */

struct sc_process {
  struct sc_events *events; /* NULL: not asked for (sc_analysis_options.events) */
  struct sc_tally *tally;   /* what single occurrences were made of; NULL: not asked for */
  int64_t clock_offset_ns;  /* of its clock to the time of day; 0: not known */
  uint64_t trace_start_ns;  /* of our traces, on its clock: with host and pid it tells one trace from another; else 0 */
  char *cwd; /* where it was started; NULL if not known */
  char *host, *command, *trace_path, *rank, *local_rank;
  uint64_t pid;
  double wall_us;
  bool attached_late, simulated, ended_cleanly;
  bool unmeasured;     /* nothing could be counted in it: no CUPTI, slot taken, no capture range; a warning says which */
  double start_cost_us; /* tracer's own time at start and between chunks; NaN: not known */
  double call_cost_us, launch_cost_us; /* tracer's own time for one recorded call and one launch, measured at its end; NaN */
  double told_cost_us;                 /* of all of them, as a report says that was read; NaN: none did */
  uint64_t lost_records, lost_chunks; /* of this process; counts are too low when not 0 */
  double drain_gap_p50_us, drain_gap_total_us; /* device time with nothing to run around syncs; NaN: not measured */
  uint64_t drain_gaps;                         /* syncs that they were measured for */
  struct sc_counts counts;
  struct sc_counts without_detail; /* of counts: calls that had no room for a record. They are in no thread, range, step or
                                      site; lost_records is then not 0, and counts are right all the same */
  uint64_t queue_waits, queue_wait_ns; /* launches that waited for room in the device's queue: no syncs, and in no count */
  bool counts_whole; /* records were lost, and yet no call is missing in counts */
  struct sc_thread_findings *threads; size_t thread_count, thread_cap;
  struct sc_range_findings *ranges;   size_t range_count, range_cap; /* depth-first, parents first */
  struct sc_site *sites;              size_t site_count, site_cap; /* costliest first */
  struct sc_module_findings *modules; size_t module_count, module_cap;
  uint64_t stacks, stack_walks, stacks_missing; /* stacks taken by the tracer; those that had to be walked; those that */
  uint64_t stack_ns;                            /* could not be had in full. The time it took, in no wait; of it, */
  uint64_t stack_walk_ns, stack_longest_ns;     /* that of those walked; and the longest of one that was not */
  bool has_steps;
  enum sc_step_source step_source;
  uint64_t steps, warmup; /* all that began; of them left out of minimum, median and maximum as warm-up */
  uint64_t step_min, step_max;
  double step_median; /* NaN: no step is left (min and max are then 0) */
  bool floor_told;    /* a report that was read says the floor: rounded figures would not give the same again */
  struct sc_process_floor floor;
};

struct sc_findings {
  char *version; /* of synccount */
  bool simulated;
  struct sc_field *fields;        size_t field_count, field_cap;
  struct sc_ruler_row *ruler;     size_t ruler_count, ruler_cap;
  struct sc_marginal *marginal;   size_t marginal_count, marginal_cap;
  struct sc_run *runs;            size_t run_count, run_cap;
  struct sc_control *controls;    size_t control_count, control_cap;
  struct sc_law *laws;            size_t law_count, law_cap;
  struct sc_process *processes;   size_t process_count, process_cap;
  double *assumed_us;             size_t assumed_count; /* --assume-round-trip, as given */
  uint64_t lost_records, lost_chunks;
  char **warnings;                size_t warning_count, warning_cap;
};

struct sc_findings *sc_findings_new(void) SC_NODISCARD; /* NULL: out of memory */
void sc_run_init(struct sc_run *run); /* zero, unmeasured numbers NaN, output_matches_masked -1 */
void sc_findings_free(struct sc_findings *findings);     /* accepts NULL and half-built ones */
bool sc_findings_warn(struct sc_findings *findings, const char *format, ...) SC_PRINTF(2, 3); /* equal texts once */
/* Reads the events of a process from the first one: of each thread in the order in which they ended. False at the end,
 * and when the temporary file cannot be read (sc_process_events_failed). */
bool sc_process_events_rewind(const struct sc_process *process) SC_NODISCARD; /* false: out of memory, or failed */
bool sc_process_events_next(const struct sc_process *process, struct sc_event *out) SC_NODISCARD;
uint64_t sc_process_events_count(const struct sc_process *process); /* 0 without events */
bool sc_process_events_failed(const struct sc_process *process);
/* The end of a frame's file that stays the same on other machines: below the process's folder, or below the folder of
 * installed packages or of Python's own library; else all of it. */
const char *sc_process_file(const struct sc_process *process, const char *file);
/* False: out of memory. */
bool sc_findings_text(struct sc_findings *f, const char *group, const char *key, const char *value);
bool sc_findings_number(struct sc_findings *f, const char *group, const char *key, double value);
bool sc_findings_bool(struct sc_findings *f, const char *group, const char *key, bool value);
/* Of a group the field of this key, or all of them (NULL). */
void sc_findings_forget(struct sc_findings *f, const char *group, const char *key);
/* Appends a zeroed process whose times are NaN; NULL: out of memory. Valid until the next one is added. */
struct sc_process *sc_findings_process(struct sc_findings *f) SC_NODISCARD;
const struct sc_field *sc_findings_field(const struct sc_findings *f, const char *group, const char *key);
const struct sc_ruler_row *sc_findings_ruler(const struct sc_findings *f, const char *method);

/* ---- what several say together; names are borrowed from the findings ---------------------------------- */
struct sc_allowed { /* the syncs of all ranges synccount.allow:<reason>; they stay in every count */
  const char *reason;
  uint64_t occurrences, syncs;
};
bool sc_range_is_allowed(const struct sc_range_findings *range);
/* Of a process, and of all, in the order in which reasons occur. Free *out. False: out of memory. */
bool sc_process_allowed(const struct sc_process *process, struct sc_allowed **out, size_t *count);
bool sc_findings_allowed(const struct sc_findings *findings, struct sc_allowed **out, size_t *count);

/* The thread that waited longest, NULL if none had a sync. waiting (may be NULL): how many had one. Waits of several
 * threads overlap: only one thread's is a share of wall time. */
const struct sc_thread_findings *sc_process_longest_wait(const struct sc_process *process, size_t *waiting);

/* The findings, or one of their processes, come from the simulated device: no speed may be printed. */
bool sc_findings_simulated(const struct sc_findings *findings);
/* Its times are no times of a GPU. Of findings that are simulated as a whole every process is, unless they say which. */
bool sc_process_is_simulated(const struct sc_findings *findings, const struct sc_process *process);

/* True if no call is missing in the process's counts; ranges, sites and threads may lack some all the same. */
bool sc_process_is_whole(const struct sc_process *process);

/* The floor of a process: its read-backs and blocking uploads at the mean round trip of the findings' ruler. An estimate for
 * syncs that each wait for a kernel queued just before. False: no ruler, a simulated device, or nothing to multiply. */
bool sc_process_floor(const struct sc_findings *findings, const struct sc_process *process, struct sc_process_floor *out);

/* What recording cost a process, about: its calls and launches at what the tracer timed at the end. NaN: it was not
 * timed. calls (may be NULL): those that were recorded, launches left out. */
double sc_process_tracer_cost(const struct sc_process *process, uint64_t *calls);

struct sc_rank {
  const char *rank;
  size_t processes; /* children may inherit the rank */
  uint64_t syncs;   /* of all of them */
  double wait_us;   /* of the thread that waited longest; NaN: none */
  double wall_us;   /* of its process */
  double step_median;
};
struct sc_ranks {
  struct sc_rank *list; /* in the order of their numbers */
  size_t count;
  uint64_t total, min, max; /* syncs */
  bool has_usual;           /* more than half of the ranks have `usual` syncs */
  uint64_t usual;
  const struct sc_rank *waits_most, *waits_least; /* NULL: no rank waited */
};
bool sc_findings_ranks(const struct sc_findings *findings, struct sc_ranks *out); /* false: out of memory */
void sc_ranks_free(struct sc_ranks *ranks);

/* True if the mean of the first and the last third of the row's blocks differ by more than 20 %. */
bool sc_ruler_drifts(const struct sc_ruler_row *row, double *first_us, double *last_us);

#endif
