/* SPDX-License-Identifier: Apache-2.0
 * Callbacks that a benchmark turns on and off around its own loop. */
#ifndef SC_BENCH_TOGGLE_H
#define SC_BENCH_TOGGLE_H

/* Subscribes with an empty callback and every id that the tracer watches; `simulated`: as sc_cupti_bind. 0: it failed
 * and said why. */
int toggle_begin(const char *path, const void *simulated);
void toggle_set(int on); /* 1: the tracer's callback */

/* Prepares native stacks, and leaves them off. 0: they cannot be taken here; said why. */
int toggle_native(void);
void toggle_stacks(int on); /* 1: a stack is taken at each blocking call */
struct toggle_counts {
  unsigned long long taken, walked, missing;
};
struct toggle_counts toggle_counts(void); /* since toggle_native */

#endif
