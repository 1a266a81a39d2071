/* SPDX-License-Identifier: Apache-2.0
 * The engine's state, for the files that make up the engine: engine.c (construction, records; what they count is
 * trace/count.c's), scope.c (the open ranges of a thread), steps.c (steps that marks delimit), finish.c (the end, and
 * what has to be said). */
#ifndef SC_ANALYSIS_ENGINE_H
#define SC_ANALYSIS_ENGINE_H

#include "analysis/internal.h"
#include "trace/count.h"

#define STACK_MAX 1024         /* open push ranges of a thread; deeper ones are only counted */
#define SPANS_MAX 256          /* open start/end ranges of a thread */
#define STRINGS_MAX (1u << 22) /* of importers */
#define EARLY_MAX 256          /* ends of start/end ranges whose start comes later in the file */
#define WHERE_MAX (1 + 8)      /* ranges of a sync that a later call still belongs to */
#define NOTES_MAX 64           /* different notes of one trace that are shown */

#define HIDDEN_MAX 32          /* compiled regions that are named */
#define AUTOGRAD_THREAD "pt_autograd_" /* how PyTorch names the threads that run backward; a number follows */

enum { STEP_OUTSIDE, STEP_WARMUP, STEP_COUNTED };
struct marked_step {
  uint64_t end_ns, syncs;
  uint8_t state;
};
struct marked_steps { /* each begins where the one before it ends */
  struct marked_step *list;
  size_t count;
  uint64_t first_ns; /* where the first one begins */
  enum sc_step_source source;
};

struct tally_mark { /* tally.c: where an occurrence began */
  size_t entry;
  uint64_t uncertain;
};
struct tally_entry { /* syncs of one place */
  uint32_t place;
  uint64_t count, wait_ns;
};

struct range {            /* an open push range of a thread */
  struct sc_node *node;   /* where its calls are counted */
  struct sc_node *origin; /* where its occurrence is counted: another node once a range below it was popped first */
  uint32_t domain, name;
  uint64_t syncs; /* of the thread when it was opened */
  uint64_t start_ns;
  bool occurs;    /* not so: gathered inside what was gathered already */
  struct tally_mark mark;
  bool counted;   /* its occurrence was: not so while nothing is counted (outside the windows) */
};

struct span { /* an open start/end range of a thread */
  struct sc_node *node;
  uint64_t handle, syncs, start_ns;
  uint64_t end_ns; /* its end was seen earlier in the file (on another thread); UINT64_MAX: not yet */
  struct tally_mark mark;
  bool takes;      /* the calls: one of the thread's open spans of a node does, so that each call counts once */
  bool counted;
};

struct raw_site { /* syncs of the same stack, call, class and memory; without a stack, of the same range as well */
  uint32_t stack, api;
  uint8_t kind, cls, direction, memory; /* kind: enum sc_site_kind */
  const struct sc_node *scope;          /* without a stack: its range, part of the key */
  const struct sc_node *node;           /* the innermost range that holds all of them */
  uint64_t count, bytes, read_backs, uploads, idle, merged, wait_ns;
  uint64_t in_steps, in_marked; /* of count: in steps that are ranges, in steps that marks delimit */
  struct sc_hist wait;
  uint64_t drain_ns;
  struct sc_hist drain; /* empty: not measured */
};

struct sc_sites {
  struct raw_site *sites; /* [SITES_MAX] once there is one: their addresses do not change */
  size_t count;
  uint32_t *slots;   /* [SITE_SLOTS], index + 1; open addressing */
  uint64_t gathered; /* syncs that the limit shut out */
};
#define SITES_MAX 2048u  /* and, beyond it, one for each class */
#define SITE_SLOTS 8192u

struct sc_analysis_thread {
  struct sc_analysis *analysis;
  struct raw_site *site; /* of the thread's last sync, */
  struct sc_event event; /* that sync's, if events are kept */
  uint32_t index;        /* of the thread, in the order of their coming */
  bool site_open;        /* its wait is not in the site yet: another call may join it */
  uint64_t site_wait_ns;
  uint64_t serial;
  uint32_t tid;
  char *name;
  struct sc_analysis_thread *next;

  struct sc_counts fresh; /* since the ranges last changed; belongs to `node` and to every open span */
  struct sc_counts total;
  struct sc_node *node;
  struct sc_node *base; /* of calls in no range: the root, or "backward" */
  size_t marked_cursor; /* the first step of analysis->marked that has not ended */
  uint64_t first_ns, last_ns;
  uint64_t steps;       /* that ended */
  size_t window;        /* the first that has not ended */
  uint64_t boundary_ns; /* where counting begins or ends next; UINT64_MAX: nowhere */
  bool outside;         /* all windows: `fresh` will be thrown away */

  struct sc_counter counter; /* its counts are `fresh` */
  struct sc_node *where[WHERE_MAX]; /* [counter.where_count]: the ranges of the call that is followed, once they are no
                                       longer the open ones */

  struct tally_entry *log; /* syncs since the outermost open range was opened, if the analysis has a tally */
  size_t log_count, log_cap, log_compact;
  uint32_t log_place; /* of the last sync, */
  bool log_open;      /* if it has one */

  struct range *stack;
  size_t depth, stack_cap;
  uint64_t beyond; /* pushes past STACK_MAX that are still open */
  struct span *spans;
  size_t span_count, span_cap;
  uint64_t next_end_ns; /* the earliest end_ns of the open spans */
};

struct text {
  char *text;
  size_t length;
};

struct sc_analysis {
  struct sc_tree tree;
  struct sc_call_kind *kinds; /* [65536] */
  struct sc_sites sites;
  struct sc_events *events; /* NULL: not asked for */
  struct tally_maker *tally; /* likewise */
  uint64_t flows;           /* given out */
  const struct sc_stack_source *stacks; /* NULL: none */
  const void *stack_context;
  uint64_t drain_ns;
  struct sc_hist drain; /* of all syncs; empty: not measured */
  char **names;            /* [65536] of importers' calls, or NULL */
  bool late;               /* recording began after CUDA had been used */
  sc_api_of *api_of;
  const void *context;
  struct text *texts; /* of importers, by id */
  size_t text_count, text_cap;

  struct sc_analysis_thread *threads, **last;
  struct sc_analysis_thread **by_serial; /* open addressing */
  size_t by_serial_count, thread_count;

  struct sc_spread steps; /* syncs per occurrence of all ranges of level step */
  uint64_t step_count, step_warmup;
  struct marked_steps marked;
  char *hidden[HIDDEN_MAX]; /* compiled regions */
  size_t hidden_count;
  bool hidden_more, profiler_started;
  uint64_t warmup, from_ns; /* from_ns: UINT64_MAX until the range was seen; 0: from the beginning */
  const struct sc_window *windows; /* NULL: everything is counted */
  size_t window_count;
  struct {
    uint64_t handle, end_ns;
  } early[EARLY_MAX];
  size_t early_count; /* oldest first */
  uint64_t unbalanced, still_open, dropped_spans, crossed_spans, unknown_ends, nameless;
  struct note {
    uint32_t id; /* enum sc_note */
    char *text;
  } * notes;
  size_t note_count, note_cap;
  bool failed; /* out of memory: said by finish */
};

/* scope.c. The open ranges change only through these; every one gives what was counted so far to the ranges it belongs
 * to. */
/* Counts that belong to the call that is being followed, whose ranges are open no longer. */
void sc_scope_late(struct sc_analysis_thread *thread, const struct sc_counts *late);
void sc_scope_range(struct sc_analysis *analysis, struct sc_analysis_thread *thread,
                    const struct sc_record_range *record);
/* Ends start/end ranges whose end was recorded on another thread, if now_ns is at or past it. */
void sc_scope_expire(struct sc_analysis *analysis, struct sc_analysis_thread *thread, uint64_t now_ns);
void sc_scope_finish(struct sc_analysis *analysis, struct sc_analysis_thread *thread);
/* Where counting stands at the beginning, and after boundary_ns was reached at now_ns. */
void sc_scope_first_window(const struct sc_analysis *analysis, struct sc_analysis_thread *thread);
void sc_scope_cross(struct sc_analysis *analysis, struct sc_analysis_thread *thread, uint64_t now_ns);

/* Calls in no range belong to `base` from now on. */
void sc_scope_rebase(struct sc_analysis_thread *thread, struct sc_node *base);

/* steps.c */
void sc_steps_sync(struct sc_analysis_thread *thread, uint64_t time_ns); /* counts it to its step */
bool sc_steps_in_counted(struct sc_analysis_thread *thread, uint64_t time_ns); /* in one that is no warm-up */
size_t sc_steps_index(struct sc_analysis_thread *thread, uint64_t time_ns); /* in marked.list; SIZE_MAX: in none */
uint64_t sc_steps_counted_from(const struct sc_analysis *analysis); /* where the warm-up ends; UINT64_MAX: nowhere */
bool sc_steps_finish(struct sc_analysis *analysis, struct sc_process *process); /* false: out of memory */
bool sc_marks_take(struct sc_analysis *analysis, const struct sc_record_range *record); /* likewise */
bool sc_marks_warn(const struct sc_analysis *analysis, const char *label, struct sc_findings *findings);
void sc_marks_free(struct sc_analysis *analysis);

/* sites.c */
void sc_sites_sync(struct sc_analysis_thread *thread, enum sc_class cls, const struct sc_record_call *call,
                   const struct sc_sync_facts *facts);
/* A call that is part of the last sync. */
void sc_sites_join(struct sc_analysis_thread *thread, const struct sc_record_call *call);
void sc_sites_beside(struct sc_analysis_thread *thread, enum sc_site_kind kind, const struct sc_record_call *call);
void sc_sites_settle(struct sc_analysis_thread *thread); /* no call will join the last sync any more */
/* Fills process->sites and modules; after the totals and steps are known. serial_of (may be NULL): becomes the serial
 * of each raw site's site, the caller's to free, or stays as it is where there are none. False: out of memory. */
bool sc_sites_finish(struct sc_analysis *analysis, struct sc_process *process, uint32_t **serial_of);
void sc_sites_free(struct sc_sites *sites);

/* tally.c. Only to be called if analysis->tally is not NULL. */
struct tally_maker *sc_tally_new(void);
void sc_tally_maker_free(struct tally_maker *maker);
void sc_tally_sync(struct sc_analysis_thread *thread, const struct raw_site *site, const struct sc_record_call *call);
void sc_tally_join(struct sc_analysis_thread *thread, uint64_t wait_ns);
struct tally_mark sc_tally_open(const struct sc_analysis_thread *thread);
void sc_tally_close(struct sc_analysis_thread *thread, const struct sc_node *node, const struct tally_mark *mark,
                    uint64_t now_ns, bool unfinished);
void sc_tally_closed(struct sc_analysis_thread *thread); /* after the range was taken out */
/* Fills process->tally, after its ranges, threads and sites. serial_of: as sc_sites_finish gave it. False: out of
 * memory. */
bool sc_tally_finish(const struct sc_analysis *analysis, const uint32_t *serial_of, struct sc_process *process);

#endif
