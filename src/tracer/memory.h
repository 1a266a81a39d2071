/* SPDX-License-Identifier: Apache-2.0
 * What kind of memory a pointer is, from the process's own allocations: an interval set, and what we know about
 * handles (pools, VMM handles, arrays, events that sleep). No CUDA call, and no lock held while CUPTI is called. */
#ifndef SC_TRACER_MEMORY_H
#define SC_TRACER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

/* Beside enum sc_memory: no allocation that we saw holds this address. */
#define SC_MEMORY_UNTRACKED 15

struct sc_block {
  uintptr_t low, high; /* [low, high) */
  uint8_t kind;        /* enum sc_memory */
  bool pool;           /* from cudaMallocAsync or a pool */
  const void *context; /* its memory goes when this context goes */
};

/* A thread's memory of its last answers, good until the set changes. Zero it to start. */
#define SC_MEMORY_CACHE 4
struct sc_memory_cache {
  uint64_t generation;
  unsigned next;
  struct {
    uintptr_t low, high;
    uint8_t kind;
  } entry[SC_MEMORY_CACHE];
};

/* Blocks that overlap the new one are gone: their release was not seen. False when memory is out. */
bool sc_memory_add(const struct sc_block *block);
/* Takes out the block that starts at or holds `address`; false if there is none. */
bool sc_memory_take(uintptr_t address, struct sc_block *out);
/* Forgets what lies in [low, high), cutting blocks that reach beyond it. */
void sc_memory_forget(uintptr_t low, uintptr_t high);
void sc_memory_forget_context(const void *context);
/* Forgets every block and every handle. */
void sc_memory_reset(void);
/* enum sc_memory or SC_MEMORY_UNTRACKED. Takes no lock when the cache knows. */
uint8_t sc_memory_kind(struct sc_memory_cache *cache, uintptr_t address);

enum sc_handle_class {
  SC_HANDLE_POOL = 1,        /* value: enum sc_memory of what it gives */
  SC_HANDLE_VMM = 2,         /* value: enum sc_memory */
  SC_HANDLE_ARRAY = 3,       /* value: bytes per element */
  SC_HANDLE_SLEEP_EVENT = 4, /* waiting for it sleeps */
};
void sc_handle_set(enum sc_handle_class kind, uint64_t handle, uint64_t value);
bool sc_handle_get(enum sc_handle_class kind, uint64_t handle, uint64_t *value);
void sc_handle_drop(enum sc_handle_class kind, uint64_t handle);

#endif
