/* SPDX-License-Identifier: Apache-2.0
 * What a gate can select by and measure, and the words for it: for those who read gates and those who judge them. */
#ifndef SC_SELECTORS_H
#define SC_SELECTORS_H

/* Selectors that are texts, in the order in which an expectation is told:
 * variant: of the instrumented layers' runs. process: pattern over a process' command or number. thread: pattern over
 * its name or number. range: pattern over its name; over its path if it holds a '/'. level: of ranges. site: pattern,
 * see sc_gate_site_matches. Beside them stands "class". */
#define SC_SELECTORS(X) X(variant) X(process) X(rank) X(thread) X(range) X(level) X(site)

#define SC_CLASS_WORDS "explicit", "copy", "pageable", "implicit" /* in the order of enum sc_class */
#define SC_LEVEL_WORDS "run", "step", "layer", "expert", "op"
#define SC_VARIANT_WORDS "masked", "sorted", "fused-nvfp4"
/* In the order of enum sc_gate_measure. */
#define SC_MEASURE_WORDS \
  "syncs_per_layer", "syncs_per_forward", "syncs_per_occurrence", "syncs_per_step", "syncs", "wait", "floor", \
  "poll_waits"

#endif
