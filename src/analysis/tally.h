/* SPDX-License-Identifier: Apache-2.0
 * What single occurrences of ranges were made of, for who has to leave some syncs out and to name the others: the gate.
 * Made when sc_analysis_options.tally is set. */
#ifndef SC_TALLY_H
#define SC_TALLY_H

#include "analysis/findings.h"

#define SC_NOWHERE SIZE_MAX

struct sc_place { /* syncs of one site, range and thread */
  size_t site;    /* the sc_site whose serial this is */
  size_t range;   /* of process->ranges: the innermost push/pop range; SC_NOWHERE: none was open */
  size_t allow;   /* likewise the synccount.allow: range that they were in, of either kind */
  size_t thread;  /* of process->threads */
  bool warmup;    /* they came before the warm-up was over */
  uint64_t count, wait_ns;
};

struct sc_part {
  size_t place; /* of the tally's places */
  uint64_t count, wait_ns;
};

struct sc_profile {     /* occurrences of one range on one thread that were alike: of the same parts */
  size_t range, thread; /* both SC_NOWHERE: a step that marks delimit, of all threads; first: which */
  size_t series;        /* ranges of this name on this thread, whatever their path, have this number; steps
                           whatever their name */
  uint64_t first;       /* which occurrence of the series was the first of them; from 0 */
  uint64_t times;
  uint64_t uncertain; /* of each: calls that could not be judged */
  bool warmup;
  bool unfinished;       /* still open at the end of the trace */
  struct sc_part *parts; /* sums over all `times` for wait_ns, of one occurrence for count; by place */
  size_t part_count;
};

/* Warm-up is by step where the thread has steps, else the first occurrences of each series; and what was before
 * sc_analysis_options.from in any case. */
struct sc_tally {
  struct sc_place *places;
  size_t place_count, place_cap;
  struct sc_profile *profiles;
  size_t profile_count, profile_cap;
  size_t series_count;
  bool overflow;       /* there was more to keep apart than is kept: places and profiles are not complete */
  bool warmup_unknown; /* a warm-up by number was asked for, and a thread with syncs had no steps: its places have none
                        */
  bool all_warmup;     /* the warm-up never ended: there was no step after it, or what was to end it never came */
};
void sc_tally_free(struct sc_tally *tally); /* accepts NULL */

#endif
