/* SPDX-License-Identifier: Apache-2.0
 * A memory plan: sizes are added up by the same function that later hands out the addresses, so that the two cannot
 * disagree. */
#ifndef SC_PROBE_PLAN_H
#define SC_PROBE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SC_PLAN_ALIGN = 256 }; /* bytes; every piece starts at a multiple */

struct sc_plan {
  char *base; /* NULL: only adding up */
  uint64_t bytes;
  bool overflow;
};

/* Room for count elements of size bytes; NULL while only adding up, and on overflow. */
static inline void *sc_plan_take(struct sc_plan *plan, uint64_t count, uint64_t size)
{
  uint64_t bytes, end;
  if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, SC_PLAN_ALIGN - 1, &bytes) ||
      __builtin_add_overflow(plan->bytes, bytes & ~(uint64_t)(SC_PLAN_ALIGN - 1), &end)) {
    plan->overflow = true;
    return NULL;
  }
  void *at = plan->base ? plan->base + plan->bytes : NULL;
  plan->bytes = end;
  return at;
}

#endif
