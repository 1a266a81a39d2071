/* SPDX-License-Identifier: Apache-2.0
 * One step of a hash over words. Quick, and for tables of this process alone: what must not change is hashed with
 * sc_hash_bytes. */
#ifndef SC_TRACER_MIX_H
#define SC_TRACER_MIX_H

#include <stdint.h>

static inline uint64_t sc_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9fb21c651e98df25u;
  return hash ^ hash >> 32;
}

#endif
