/* SPDX-License-Identifier: Apache-2.0
 * What the files that judge have in common. */
#ifndef SC_GATE_JUDGE_H
#define SC_GATE_JUDGE_H

#include "analysis/tally.h"
#include "gate/gate.h"

/* match.c */
bool range_matches(const struct sc_range_findings *range, const char *pattern);
bool thread_matches(const struct sc_thread_findings *thread, const char *pattern);
bool process_matches(const struct sc_process *process, const struct sc_gate_expectation *expectation);
/* A new list: the range that each is in, SC_NOWHERE if it is outermost. NULL: memory is out. */
size_t *range_parents(const struct sc_process *process);

/* judge.c: one expectation while it is judged. */
struct judging {
  struct sc_gate_result *result;
  const struct sc_gate *gate;
  const struct sc_gate_expectation *e;
  const struct sc_findings *findings;
  bool unsure;          /* something could not be judged; result->why says what */
  uint64_t *used;       /* [gate->exception_count]: syncs that each exception took, over all expectations */
  uint64_t submissions; /* of what was selected */
  bool failed;          /* memory is out */
};

/* What is known of one value: it is at least `low` and at most `high`, which are equal where it is exact. */
struct value {
  double low, high;
  bool uncertain;  /* some of its calls could not be judged: it cannot be as expected for certain */
  bool unfinished; /* the occurrence went on: what it has so far is its least, and it proves nothing but too much */
};
enum outcome { OUTCOME_AS_EXPECTED, OUTCOME_NOT, OUTCOME_UNSURE, OUTCOME_NOTHING };
enum outcome judge_value(const struct judging *j, struct value value);

/* The first reason stays. Printf style. */
void judge_unsure(struct judging *j, const char *format, ...) SC_PRINTF(2, 3);
/* Counts `times` comparisons with this outcome, and takes them into the range of what was observed. */
void judge_count(struct judging *j, struct value value, enum outcome outcome, uint64_t times);
/* Keeps a failure; takes the text over. The worst come first. */
void judge_failure(struct judging *j, char *what, struct value value, uint64_t times);
/* The extra of these texts, a new one if there is none; NULL: memory is out. Texts are copied. */
struct sc_gate_extra *judge_extra(struct judging *j, const struct sc_gate_extra *key);

/* `each` in one occurrence, layer, step or process, in this range (NULL: none); `total` over all that are like it. */
void judge_extra_add(struct judging *j, struct sc_gate_extra *extra, const char *range, double each, uint64_t total);

void judge_processes(struct judging *j); /* judge_process.c */
void judge_runs(struct judging *j);      /* judge_runs.c */

/* New strings, as a verdict names them; NULL: memory is out. */
char *process_name(const struct sc_process *process); /* judge.c */
char *run_name(const struct sc_run *run);             /* judge_runs.c */

#endif
