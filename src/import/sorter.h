/* SPDX-License-Identifier: Apache-2.0
 * Sorts more fixed-size items than fit into memory: sorted runs go to a temporary file and are merged on the way out. */
#ifndef SC_IMPORT_SORTER_H
#define SC_IMPORT_SORTER_H

#include "base/base.h"

struct sc_sorter;
/* compare: as for qsort; items that compare equal come in no particular order. memory: bytes to keep before a run is
 * written. NULL: out of memory. */
struct sc_sorter *sc_sorter_new(size_t item_size, size_t memory,
                                int (*compare)(const void *left, const void *right)) SC_NODISCARD;
void sc_sorter_free(struct sc_sorter *sorter); /* accepts NULL */
/* Copies the item in. False: it could not be kept; sc_sorter_next says why. */
bool sc_sorter_add(struct sc_sorter *sorter, const void *item);
/* The items in order, from the first; *item is NULL at the end, and valid until the next call. No adding after this. */
enum sc_status sc_sorter_next(struct sc_sorter *sorter, const void **item, struct sc_error *err) SC_NODISCARD;

#endif
