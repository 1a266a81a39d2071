/* SPDX-License-Identifier: Apache-2.0
 * A comparison as rows: one thing, before and after. */
#ifndef SC_GATE_DIFF_H
#define SC_GATE_DIFF_H

#include "gate/gate.h"

enum diff_section {
  DIFF_TOTALS, /* of all processes */
  DIFF_SITES,
  DIFF_RANGES,
  DIFF_RUNS, /* of the instrumented layers */
  DIFF_RULER,
  DIFF_MARGINAL,
  DIFF_FACTS, /* host, device, conditions: those that differ */
  DIFF_SECTION_COUNT
};
enum diff_kind { DIFF_COUNT, DIFF_TIME, DIFF_TEXT };
enum diff_change { DIFF_SAME, DIFF_CHANGED, DIFF_APPEARED, DIFF_GONE };

struct diff_row {
  enum diff_section section;
  enum diff_kind kind;
  enum diff_change change;
  char *what;
  const char *measure;  /* "syncs a step", "an occurrence"; a literal */
  double before, after; /* NaN: not there, or not measured */
  char *before_text, *after_text;
  double wait_before_us, wait_after_us; /* of sites and ranges; NaN: not measured */
  uint64_t times_before, times_after;   /* occurrences of a range */
};

struct sc_diff {
  const struct sc_findings *before, *after;
  bool of_runs;
  struct diff_row *rows;
  size_t row_count, row_cap;
  bool more;   /* syncs */
  char *why;   /* it cannot be said that there are not more; NULL: it can */
  bool failed; /* memory is out */
};

/* Adds a row, whose change follows from the numbers; takes `what` over. NULL: memory is out, or `what` is NULL. */
struct diff_row *diff_add(struct sc_diff *diff, enum diff_section section, enum diff_kind kind, char *what,
                          const char *measure, double before, double after);
void diff_doubt(struct sc_diff *diff, const char *format, ...) SC_PRINTF(2, 3); /* the first one stays */

void diff_runs(struct sc_diff *diff);     /* diff_runs.c */
void diff_programs(struct sc_diff *diff); /* diff_programs.c */

const char *diff_change_name(enum diff_change change); /* "same", "changed", "appeared", "gone" */

#endif
