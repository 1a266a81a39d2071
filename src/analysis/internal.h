/* SPDX-License-Identifier: Apache-2.0
 * What the files of the analysis room share: the tree of range paths, and the engine's way to names. */
#ifndef SC_ANALYSIS_INTERNAL_H
#define SC_ANALYSIS_INTERNAL_H

#include "analysis/analysis.h"

#define SC_RANGES_DEFAULT 4096
#define SC_RANGE_DEPTH 64     /* deeper paths are gathered: paths stay readable and their sum bounded */
#define SC_RANGE_NAME_MAX 256 /* bytes of a name that are kept */
#define SC_RANGES_OTHER "(other ranges)"

/* Whole numbers, mostly few different ones: exact up to SC_SPREAD_EXACT distinct values, a histogram from there on. */
#define SC_SPREAD_EXACT 32
struct sc_spread {
  struct sc_spread_value {
    uint64_t value, times;
  } * values;                  /* unordered */
  size_t used, capacity, last; /* last: index of the value that came last, the likely next one */
  uint64_t count, min, max;
  struct sc_hist hist; /* takes over when `values` is full */
};
bool sc_spread_add(struct sc_spread *spread, uint64_t value); /* false: out of memory */
double sc_spread_median(const struct sc_spread *spread);      /* NaN when empty */
void sc_spread_free(struct sc_spread *spread);

/* Text of a string id. NULL: not defined. */
typedef const char *sc_text_of(const void *context, uint32_t id, size_t *length);

enum sc_level { SC_LEVEL_NONE, SC_LEVEL_RUN, SC_LEVEL_STEP, SC_LEVEL_LAYER, SC_LEVEL_EXPERT, SC_LEVEL_OP, SC_LEVEL_ALLOW };

struct sc_node { /* one range path of the process, whatever the thread */
  struct sc_node *parent, *first_child, *last_child, *next;
  struct sc_node *other[2]; /* the children that gather what the limits shut out: push/pop and start/end ranges */
  char *name, *domain;      /* domain "" for the default one */
  uint32_t depth;           /* root 0 */
  enum sc_level level;      /* only on the outermost range of that level on this path */
  bool spanning;            /* start/end */
  uint32_t serial;          /* what events call it */
  bool starts;              /* its first occurrence ends the warm-up (options.from) */
  bool in_step;             /* it is of level step, or below one that is */
  uint64_t occurrences, unfinished;
  struct sc_counts self, total; /* total is filled at the end */
  struct sc_spread per_occurrence;
  struct {
    uint64_t ids;
    struct sc_node *node;
  } hint[2]; /* the children last asked for: a push/pop child and a start/end child */
};

struct sc_tree {
  struct sc_node root;
  size_t count, limit;
  size_t module_count; /* of count: nodes of modules, which have a limit of their own */
  struct sc_node *backward; /* NULL until asked for */
  uint64_t gathered; /* occurrences that the limit of paths shut out */
  uint64_t too_deep; /* occurrences that the limit of depth shut out */
  bool failed;       /* out of memory */
  struct sc_tree_slot {
    const struct sc_node *parent;
    uint64_t key;
    uint32_t kind;
    struct sc_node *node;
  } * slots;
  size_t slot_count, slot_used;
  uint32_t *range_of; /* [count]: index in the process's ranges by a node's serial; NULL: nobody asks */
  sc_text_of *text_of;
  const void *context;
  struct sc_analysis_options options; /* level rules and `from`; the rest is not looked at here */
};
void sc_tree_init(struct sc_tree *tree, const struct sc_analysis_options *options, sc_text_of *text_of,
                  const void *context);
void sc_tree_free(struct sc_tree *tree);
/* The node for a range opened under parent. Never NULL: the parent itself when memory is out (tree->failed). */
struct sc_node *sc_tree_child(struct sc_tree *tree, struct sc_node *parent, bool spanning, uint32_t domain,
                              uint32_t name);
/* Where calls of autograd's threads belong that are in no range. Never NULL: the root when memory is out. */
struct sc_node *sc_tree_backward(struct sc_tree *tree);
/* The innermost range that holds both, which may be the root. */
const struct sc_node *sc_tree_common(const struct sc_node *a, const struct sc_node *b);
/* Fills totals and appends all nodes to the process, depth first. False: out of memory. */
bool sc_tree_finish(struct sc_tree *tree, struct sc_process *process);

/* The engine on names that somebody else keeps (a trace reader): they must outlive it. api_of gives op and name of an
 * id. late: recording began after CUDA had been used. */
typedef bool sc_api_of(const void *context, uint32_t id, enum sc_op *op, const char **name);
struct sc_analysis *sc_analysis_new_named(const struct sc_analysis_options *options, sc_text_of *text_of,
                                          sc_api_of *api_of, const void *context, bool late);
/* Counts only what happens in these times, sorted and apart from each other; they must outlive the analysis. */
struct sc_window {
  uint64_t start_ns, end_ns;
};
void sc_analysis_within(struct sc_analysis *analysis, const struct sc_window *windows, size_t count);
/* What marks mean: those of domain "synccount", and "synccount.*" of the default domain. */
#define SC_DOMAIN_NAME "synccount"
#define SC_MODULE_DOMAIN "synccount.torch" /* ranges of modules: src/python/synccount_torch.py */
enum sc_mark { SC_MARK_OTHER, SC_MARK_STEP_END, SC_MARK_FORWARD_END, SC_MARK_COMPILED, SC_MARK_PROFILER };
/* about (may be NULL): what stands behind the colon, "" if nothing does. Not set for SC_MARK_OTHER. */
enum sc_mark sc_mark_of(const char *domain, const char *name, const char **about);

/* Steps of the whole process. A series is one optimizer, or one module on one thread. */
struct sc_step_mark {
  uint64_t time_ns, series, thread; /* thread: 0 for optimizers, whatever thread steps */
  bool forward;
};
struct sc_step_ends {
  const struct sc_step_mark *marks; /* of one series, by time */
  size_t count;
  enum sc_step_source source;
};
/* Sorts the marks; the chosen ones stay among them. */
void sc_steps_choose(struct sc_step_mark *marks, size_t count, struct sc_step_ends *out);
/* After _within and _from. False: out of memory. */
bool sc_analysis_steps(struct sc_analysis *analysis, const struct sc_step_ends *ends);

/* Many records at once: the loop that has to be fast. Stops at a malformed one. */
void sc_analysis_records(struct sc_analysis *analysis, struct sc_analysis_thread *thread, const unsigned char *bytes,
                         size_t size);

void sc_run_free_counts(struct sc_run *run); /* what sc_runs_count allocated; the pointers stay */

void sc_site_free(struct sc_site *site); /* what it points to */

/* ---- events.c. Until sc_events_finish `what` is a raw site's index or a node's serial. ------------------------ */
struct sc_events *sc_events_new(void) SC_NODISCARD; /* NULL: out of memory */
void sc_events_free(struct sc_events *events);      /* accepts NULL */
void sc_events_add(struct sc_events *events, const struct sc_event *event); /* a failure is kept */
/* sites[raw site] is the serial of its site, ranges[node] the index of its range; both become the events'. */
void sc_events_finish(struct sc_events *events, uint32_t *sites, size_t site_count, uint32_t *ranges,
                      size_t range_count);

#endif
