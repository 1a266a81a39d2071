/* SPDX-License-Identifier: Apache-2.0
 * Reading memory of our own process that may not be there. */
#ifndef SC_TRACER_PEEK_H
#define SC_TRACER_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies n bytes from an address that may be wrong; false, and no signal, if they cannot all be read. A system call:
 * for what is done seldom. */
bool sc_peek(uint64_t address, void *out, size_t n);

/* What a pointer to an object can be: aligned, not in the first page, in user space. */
static inline bool sc_peek_plausible(uint64_t address) {
  return address >= 4096 && (address & 7) == 0 && address < (uint64_t)1 << 47;
}

#endif
