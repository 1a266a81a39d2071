/* SPDX-License-Identifier: Apache-2.0
 * The calling thread's native frames: return addresses, and the files they lie in. No name is looked up here: the
 * command line does that. */
#ifndef SC_TRACER_NATIVE_H
#define SC_TRACER_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

struct sc_native_frame {
  uint64_t address; /* return address */
  uint64_t slot;    /* where on the stack it stands; 0: not known */
};

/* When tracing starts: finds the unwinder and lets it set itself up. False: no native frames in this process. */
bool sc_native_prepare(void);
/* Walking ends where the code of this file begins: the file that holds `address`. 0: it never does. */
void sc_native_stop_at(uintptr_t address);

/* Frames, innermost first, those of this library left out; at most SC_STACK_NATIVE_MAX. *cut: there are more, or it
 * took too long. Microseconds a frame: for stacks that are not known yet. Takes no lock: _dl_find_object of glibc 2.35
 * has none, and without it sc_native_prepare fails. */
size_t sc_native_walk(struct sc_native_frame frames[SC_STACK_NATIVE_MAX], bool *cut);

/* The word at an address of this thread's stack that was a slot before. */
uint64_t sc_native_slot(uint64_t slot);

struct sc_native_file {
  const char *path; /* as the loader has it; of the program itself its own path. Valid while the file is loaded */
  uint64_t base, start;
  uint8_t build_id[31], build_id_length;
};
/* The file that holds an address on the stack of a running call (so that it stays loaded). False: none does. */
bool sc_native_file(uint64_t address, struct sc_native_file *out);
/* A number that changes when another file is loaded where this address lies; 0: none is. A few tens of nanoseconds.
 * *start: where that file's memory begins. */
uint64_t sc_native_stamp(uint64_t address, uint64_t *start);
/* Whether the file at one address was linked against the one at another, so that it keeps it loaded. Both are on the
 * stack of a running call. */
bool sc_native_keeps(uint64_t address, uint64_t other);
/* Fills in the build id of a file that sc_native_file found; build_id_length 0: it has none, or none that fits. */
void sc_native_build_id(struct sc_native_file *file);

#endif
