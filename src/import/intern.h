/* SPDX-License-Identifier: Apache-2.0
 * Byte strings by number: equal ones have one number. */
#ifndef SC_IMPORT_INTERN_H
#define SC_IMPORT_INTERN_H

#include "base/base.h"

struct sc_intern { /* zeroed: empty */
  struct sc_intern_entry {
    uint64_t hash;
    char *bytes; /* NUL-terminated */
    uint32_t length;
  } * entries; /* by number - 1 */
  size_t count, capacity;
  uint32_t *slots;
  size_t slot_count;
  size_t bytes; /* of all entries */
};
/* The number, from 1; *added (may be NULL) tells whether it is new. 0: out of memory. */
uint32_t sc_intern_add(struct sc_intern *intern, const void *bytes, size_t length, bool *added);
uint32_t sc_intern_find(const struct sc_intern *intern, const void *bytes, size_t length);    /* 0: not there */
const struct sc_intern_entry *sc_intern_get(const struct sc_intern *intern, uint32_t number); /* NULL: not there */
void sc_intern_free(struct sc_intern *intern);

#endif
