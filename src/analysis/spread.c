/* SPDX-License-Identifier: Apache-2.0
 * A distribution of whole numbers. Syncs per occurrence rarely take more than a few values, and a histogram's 8 KiB for
 * each of thousands of range paths would be the bulk of the memory; few values are also exact. */
#include "analysis/internal.h"

#include <math.h>
#include <stdlib.h>

/* Each occurrence moves at most once, so this is constant a record in the long run. */
static void move_to_histogram(struct sc_spread *spread)
{
  for (size_t i = 0; i < spread->used; ++i) {
    for (uint64_t j = 0; j < spread->values[i].times; ++j)
      sc_hist_add(&spread->hist, spread->values[i].value);
  }
  free(spread->values);
  spread->values = NULL;
  spread->used = spread->capacity = 0;
}

static bool add_new_value(struct sc_spread *spread, uint64_t value)
{
  struct sc_spread_value *slot = sc_array_push(&spread->values, &spread->used, &spread->capacity, sizeof *slot);
  if (!slot)
    return false;
  *slot = (struct sc_spread_value){.value = value, .times = 1};
  spread->last = spread->used - 1;
  return true;
}

bool sc_spread_add(struct sc_spread *spread, uint64_t value)
{
  if (spread->count == 0 || value < spread->min)
    spread->min = value;
  if (value > spread->max)
    spread->max = value;
  ++spread->count;
  if (spread->used && spread->values[spread->last].value == value) {
    ++spread->values[spread->last].times;
    return true;
  }
  if (spread->hist.count == 0) {
    size_t i = 0;
    while (i < spread->used && spread->values[i].value != value)
      ++i;
    if (i < spread->used) {
      ++spread->values[i].times;
      spread->last = i;
      return true;
    }
    if (spread->used < SC_SPREAD_EXACT)
      return add_new_value(spread, value);
    move_to_histogram(spread);
  }
  sc_hist_add(&spread->hist, value);
  return spread->hist.buckets != NULL;
}

static int compare_values(const void *left, const void *right)
{
  uint64_t a = ((const struct sc_spread_value *)left)->value, b = ((const struct sc_spread_value *)right)->value;
  return (a > b) - (a < b);
}

/* The value with this rank, of sorted ones. */
static uint64_t value_at(const struct sc_spread_value *values, size_t count, uint64_t rank)
{
  uint64_t seen = 0;
  for (size_t i = 0; i + 1 < count; ++i) {
    seen += values[i].times;
    if (rank < seen)
      return values[i].value;
  }
  return values[count - 1].value;
}

double sc_spread_median(const struct sc_spread *spread)
{
  if (spread->count == 0)
    return NAN;
  if (spread->hist.count)
    return sc_hist_quantile(&spread->hist, 0.5);
  if (spread->used == 0)
    return NAN;
  struct sc_spread_value sorted[SC_SPREAD_EXACT];
  for (size_t i = 0; i < spread->used; ++i)
    sorted[i] = spread->values[i];
  qsort(sorted, spread->used, sizeof *sorted, compare_values);
  uint64_t low = value_at(sorted, spread->used, (spread->count - 1) / 2);
  uint64_t high = value_at(sorted, spread->used, spread->count / 2);
  return ((double)low + (double)high) / 2;
}

void sc_spread_free(struct sc_spread *spread)
{
  free(spread->values);
  sc_hist_free(&spread->hist);
  *spread = (struct sc_spread){0};
}
