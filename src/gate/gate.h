/* SPDX-License-Identifier: Apache-2.0
 * Expectations of sync counts, and their verdict over findings; and what differs between two findings. Never sees a
 * record, prints nothing itself. */
#ifndef SC_GATE_H
#define SC_GATE_H

#include "analysis/findings.h"

/* ---- expectations ---------------------------------------------------------------------------- */

/* Selectors that are texts, in the order in which an expectation is told:
 * variant: of the instrumented layers' runs. process: pattern over a process' command or number. thread: pattern over
 * its name or number. range: pattern over its name; over its path if it holds a '/'. level: of ranges. site: pattern,
 * see sc_gate_site_matches. Beside them stands "class". */
#define SC_SELECTORS(X) X(variant) X(process) X(rank) X(thread) X(range) X(level) X(site)
#define SC_VARIANT_WORDS "masked", "sorted", "fused-nvfp4"
/* In the order of enum sc_gate_measure. */
#define SC_MEASURE_WORDS \
  "syncs_per_layer", "syncs_per_forward", "syncs_per_occurrence", "syncs_per_step", "syncs", "wait", "floor", \
  "poll_waits"

enum sc_gate_measure {
  SC_GATE_PER_LAYER, /* of the instrumented layers' runs; of programs: of ranges of level layer, one occurrence */
  SC_GATE_PER_FORWARD,    /* of runs alone */
  SC_GATE_PER_OCCURRENCE, /* of the selected ranges, each single occurrence */
  SC_GATE_PER_STEP,
  SC_GATE_TOTAL, /* of a run: all its traced forwards; of a process: all of it */
  SC_GATE_WAIT,  /* time inside the syncs' blocking calls, of a process */
  SC_GATE_FLOOR, /* of runs alone */
  SC_GATE_POLL_WAITS,
  SC_GATE_MEASURE_COUNT
};
const char *sc_gate_measure_name(enum sc_gate_measure measure);
bool sc_gate_measure_is_time(enum sc_gate_measure measure);

enum sc_gate_compare { SC_GATE_EQUALS, SC_GATE_AT_MOST, SC_GATE_AT_LEAST, SC_GATE_BETWEEN };

struct sc_gate_expectation { /* strings are its own; NULL: any */
#define SC_SELECTOR_MEMBER(name) char *name;
  SC_SELECTORS(SC_SELECTOR_MEMBER)
#undef SC_SELECTOR_MEMBER
  int cls; /* enum sc_class; -1: any */
  enum sc_gate_measure measure;
  enum sc_gate_compare compare;
  double low, high; /* microseconds for times; EQUALS has both, AT_MOST high, AT_LEAST low */
  bool expected;    /* EQUALS: what the variant must have, E + 2 hit, 1 or 0, in every layer */
  char *reason;
  char *text;  /* how it is told: "sorted.syncs_per_layer == 1" */
  size_t line; /* in the gate's file; 0: none */
};

struct sc_gate_exception { /* syncs that do not count */
  char *site, *range;      /* patterns: a sync matches both that are given, the range being any that it is in */
  bool limited;
  uint64_t count;  /* at most so many in one occurrence, step or process, as the measure has it */
  bool first_only; /* in the first occurrence alone that has them */
  char *reason;
};

struct sc_gate {
  char *name; /* what the verdict is called by; NULL: "synccount check" */
  struct sc_gate_expectation *expectations;
  size_t expectation_count, expectation_cap;
  struct sc_gate_exception *exceptions;
  size_t exception_count, exception_cap;
};

/* [SELECTOR.]...MEASURE OP VALUE, as docs/synccount-gate.5.scd describes it. Appends it to the gate. SC_ERR_USAGE says
 * what is wrong and where. */
enum sc_status sc_gate_parse(struct sc_gate *gate, const char *text, struct sc_error *err) SC_NODISCARD;
/* MEASURE OP VALUE alone, into an expectation whose selectors come from elsewhere. SC_ERR_USAGE. */
enum sc_status sc_gate_parse_comparison(struct sc_gate_expectation *expectation, const char *text,
                                        struct sc_error *err) SC_NODISCARD;
/* Appends an expectation with cls -1 and nothing selected; NULL: out of memory. Complete it with sc_gate_complete. */
struct sc_gate_expectation *sc_gate_add(struct sc_gate *gate) SC_NODISCARD;
/* Selects by one of SC_SELECTORS or "class". SC_ERR_USAGE: there is no such selector or class, or it is selected
 * already. */
enum sc_status sc_gate_select(struct sc_gate_expectation *expectation, const char *name, const char *value,
                              struct sc_error *err) SC_NODISCARD;
/* Checks that selectors, measure and comparison go together, and fills in `text`. SC_ERR_USAGE. */
enum sc_status sc_gate_complete(struct sc_gate_expectation *expectation, struct sc_error *err) SC_NODISCARD;
struct sc_gate_exception *sc_gate_add_exception(struct sc_gate *gate) SC_NODISCARD; /* NULL: out of memory */
void sc_gate_free(struct sc_gate *gate);                                            /* what it points to */

/* The pattern (sc_match) is held against the site's id, its CUDA call, and of the frame that it is known by
 * (sc_site_frame) FILE:LINE, FILE:FUNCTION, FILE and FUNCTION, with FILE relative to the process' folder and as its
 * name alone. */
bool sc_gate_site_matches(const struct sc_process *process, const struct sc_site *site, const char *pattern);

/* ---- verdict --------------------------------------------------------------------------------- */
enum sc_gate_verdict { SC_GATE_PASSED, SC_GATE_FAILED, SC_GATE_UNMEASURED };
const char *sc_gate_verdict_name(enum sc_gate_verdict verdict); /* "passed", "failed", "not measured" */

struct sc_gate_failure { /* something that is not as expected: a range on a thread, a step, a process, a run */
  char *what;
  double low, high; /* what it has */
  uint64_t times;   /* occurrences that are like this; 0: it is no occurrence */
};

struct sc_gate_extra { /* where syncs of the failures come from */
  char *site;          /* "model.py:167 in forward"; NULL: not known */
  char *api, *cls;     /* NULL: of an op of a run */
  char *op;            /* of a run */
  char *range;         /* the one that has most of them; NULL: they are in none */
  size_t other_ranges; /* besides */
  char *pattern;       /* what it looks like; NULL */
  char *file;          /* of the site, as the process has it; NULL */
  char *relative;      /* the same as it is below the process' folder, or below that of installed packages */
  bool in_tree;        /* it is below the process' folder: a repository may have it */
  uint64_t line;
  double most;    /* in one occurrence, layer, step or process */
  uint64_t total; /* over all failures */
};

struct sc_gate_result {
  const struct sc_gate_expectation *expectation;
  enum sc_gate_verdict verdict;
  char *why;                         /* not measured: why */
  double low, high;                  /* of all that was compared; NaN: nothing was */
  uint64_t compared, failed, warmup; /* occurrences, steps, processes or runs; warmup: left out */
  uint64_t places;                   /* ranges, processes or runs that they are of */
  bool of_runs;                      /* what was compared are runs of the instrumented layers */
  struct sc_gate_failure *failures;  /* at most SC_GATE_FAILURES_MAX */
  size_t failure_count, failure_cap;
  struct sc_gate_extra *extras; /* most first */
  size_t extra_count, extra_cap;
};
#define SC_GATE_FAILURES_MAX 16

struct sc_gate_allowed {
  char *what;   /* "range synccount.allow:logging", "site model.py:*" */
  char *reason; /* NULL: none */
  uint64_t syncs;
};

struct sc_gate_process { /* who was looked at */
  char *name;            /* "process 4711 (python train.py), rank 0" */
  bool selected;         /* by at least one expectation */
  bool measured;
  uint64_t syncs;
};

struct sc_gate_report {
  const struct sc_gate *gate;
  enum sc_gate_verdict verdict; /* failed if one certainly failed, else not measured if one was not */
  bool simulated;
  char *source;  /* what was measured or read */
  char *trouble; /* why the verdict is "not measured" whatever the results say: the program failed; NULL */
  struct sc_gate_result *results;
  size_t result_count;
  struct sc_gate_allowed *allowed; /* those that were used, */
  size_t allowed_count, allowed_cap;
  struct sc_gate_allowed *unneeded; /* and those that were not */
  size_t unneeded_count, unneeded_cap;
  struct sc_gate_process *processes;
  size_t process_count, process_cap;
  char **warnings; /* of the findings; borrowed */
  size_t warning_count;
};

struct sc_gate_facts { /* what the findings do not say; may be NULL */
  const char *source;
  const char *trouble;    /* nothing passes: why */
  const char *incomplete; /* runs are missing: why; NULL: none */
};
/* findings must outlive the report. SC_ERR_NOMEM. Free with sc_gate_report_free. */
enum sc_status sc_gate_judge(const struct sc_gate *gate, const struct sc_findings *findings,
                             const struct sc_gate_facts *facts, struct sc_gate_report **out,
                             struct sc_error *err) SC_NODISCARD;
void sc_gate_report_free(struct sc_gate_report *report); /* accepts NULL */

/* ---- writers: all append to buf; a failed allocation is in buf->failed ----------------------- */
void sc_gate_write_text(const struct sc_gate_report *report, bool quiet, struct sc_buf *buf);
void sc_gate_write_markdown(const struct sc_gate_report *report, struct sc_buf *buf);
void sc_gate_write_json(const struct sc_gate_report *report, struct sc_buf *buf); /* schema synccount/check/1 */
void sc_gate_write_junit(const struct sc_gate_report *report, struct sc_buf *buf);
/* Workflow commands of GitHub: one annotation a place, at most ten errors, as many as GitHub shows. */
void sc_gate_write_annotations(const struct sc_gate_report *report, struct sc_buf *buf);

/* ---- two findings compared ------------------------------------------------------------------- */
struct sc_diff;
/* Both must outlive the diff. SC_ERR_MEASURE if they have nothing in common to compare: one holds runs, the other
 * processes. */
enum sc_status sc_diff_make(const struct sc_findings *before, const struct sc_findings *after, struct sc_diff **out,
                            struct sc_error *err) SC_NODISCARD;
void sc_diff_free(struct sc_diff *diff); /* accepts NULL */
/* PASSED: no increase. FAILED: more syncs. UNMEASURED: an increase cannot be ruled out; *why is then set, and valid as
 * long as the diff. */
enum sc_gate_verdict sc_diff_increase(const struct sc_diff *diff, const char **why);
void sc_diff_write_text(const struct sc_diff *diff, struct sc_buf *buf);
void sc_diff_write_markdown(const struct sc_diff *diff, struct sc_buf *buf);
void sc_diff_write_json(const struct sc_diff *diff, struct sc_buf *buf); /* schema synccount/diff/1 */

#endif
