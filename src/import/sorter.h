/* SPDX-License-Identifier: Apache-2.0
 * Sorts more fixed-size items than fit into memory: sorted runs go to a temporary file and are merged on the way out.
 */
#ifndef SC_IMPORT_SORTER_H
#define SC_IMPORT_SORTER_H

#include "base/base.h"

struct sc_key { /* orders by high, then by low */
  uint64_t high, low;
};
/* The order is that of the keys; among items with the same key that of compare, which is as for qsort (and never says
 * equal for two items whose order matters). */
struct sc_order {
  size_t item_size;
  struct sc_key (*key)(const void *item);
  int (*compare)(const void *left, const void *right);
};
struct sc_sorter;
/* memory: bytes of items to keep before a run is written; half as much again is used while they are sorted. NULL: out
 * of memory. */
struct sc_sorter *sc_sorter_new(const struct sc_order *order, size_t memory) SC_NODISCARD;
void sc_sorter_free(struct sc_sorter *sorter); /* accepts NULL */
/* Copies the item in. False: it could not be kept; sc_sorter_next says why. */
bool sc_sorter_add(struct sc_sorter *sorter, const void *item);
/* The items in order, from the first; *item is NULL at the end, and valid until the next call. No adding after this. */
enum sc_status sc_sorter_next(struct sc_sorter *sorter, const void **item, struct sc_error *err) SC_NODISCARD;

#endif
