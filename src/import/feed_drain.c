/* SPDX-License-Identifier: Apache-2.0
 * When a device had nothing to run. Work is ordered by when it was submitted: at the end of a sync, all that was
 * submitted before is behind it, and the device is idle from the last end of that work to the first start of what was
 * submitted later. Neither clock of host and device is compared with the other, but for the submission. */
#include <stdlib.h>
#include <string.h>

#include "import/feed_internal.h"

struct interval { /* by submission */
  uint64_t submit_ns;
  uint64_t start_ns, end_ns; /* the first start from here on; the last end up to here */
};
struct device {
  uint32_t number;
  size_t first, count; /* of the intervals */
};

struct drains {
  struct sc_sorter *works;
  struct device_work next; /* the work that was read and belongs to a later process */
  bool has_next, ended, started, cut;
  struct interval *intervals;
  size_t count, capacity;
  struct device *devices;
  size_t device_count, device_cap;
  uint8_t *taken; /* [count]: the gap before this interval was given to a sync */
};

struct drains *drains_new(struct sc_sorter *works)
{
  struct drains *d = calloc(1, sizeof *d);
  if (d)
    d->works = works;
  return d;
}

void drains_free(struct drains *d)
{
  if (!d)
    return;
  free(d->intervals);
  free(d->devices);
  free(d->taken);
  free(d);
}

bool drains_cut(const struct drains *d) { return d->cut; }

static enum sc_status read_next(struct drains *d, struct sc_error *err)
{
  const void *item = NULL;
  enum sc_status status = d->ended ? SC_OK : sc_sorter_next(d->works, &item, err);
  d->started = true;
  d->has_next = item != NULL;
  d->ended |= item == NULL;
  if (item)
    memcpy(&d->next, item, sizeof d->next);
  return status;
}

static bool add_work(struct drains *d, const struct device_work *work)
{
  if (d->count == DRAIN_WORK_MAX) {
    d->cut = true;
    return true;
  }
  struct device *device = d->device_count ? &d->devices[d->device_count - 1] : NULL;
  if (!device || device->number != work->device) {
    device = sc_array_push(&d->devices, &d->device_count, &d->device_cap, sizeof *device);
    if (!device)
      return false;
    device->number = work->device;
    device->first = d->count;
  }
  struct interval *interval = sc_array_push(&d->intervals, &d->count, &d->capacity, sizeof *interval);
  if (!interval)
    return false;
  *interval = (struct interval){.submit_ns = work->submit_ns, .start_ns = work->start_ns, .end_ns = work->end_ns};
  ++device->count;
  return true;
}

static void accumulate(struct interval *list, size_t count)
{
  for (size_t i = 1; i < count; ++i) {
    if (list[i].end_ns < list[i - 1].end_ns)
      list[i].end_ns = list[i - 1].end_ns;
  }
  for (size_t i = count; i-- > 1;) {
    if (list[i - 1].start_ns > list[i].start_ns)
      list[i - 1].start_ns = list[i].start_ns;
  }
}

enum sc_status drains_load(struct drains *d, uint32_t process, struct sc_error *err)
{
  enum sc_status status = d->started ? SC_OK : read_next(d, err);
  d->count = d->device_count = 0;
  d->cut = false;
  for (; status == SC_OK && d->has_next && d->next.process <= process; status = read_next(d, err)) {
    if (d->next.process == process && !add_work(d, &d->next))
      return sc_error_no_memory(err);
  }
  if (status != SC_OK)
    return status;
  for (size_t i = 0; i < d->device_count; ++i)
    accumulate(d->intervals + d->devices[i].first, d->devices[i].count);
  free(d->taken);
  d->taken = sc_calloc_array(d->count + 1, 1);
  return d->taken ? SC_OK : sc_error_no_memory(err);
}

static const struct device *find_device(const struct drains *d, uint32_t number)
{
  if (number == SC_FEED_NO_DEVICE) /* with a single one there is no doubt */
    return d->device_count == 1 ? &d->devices[0] : NULL;
  for (size_t i = 0; i < d->device_count; ++i) {
    if (d->devices[i].number == number)
      return &d->devices[i];
  }
  return NULL;
}

bool drains_take(struct drains *d, uint32_t number, uint64_t end_ns, uint64_t *gap_ns)
{
  const struct device *device = d->cut ? NULL : find_device(d, number);
  if (!device)
    return false;
  const struct interval *list = d->intervals + device->first;
  size_t low = 0, high = device->count; /* the first that was submitted at or after the sync's end */
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (list[middle].submit_ns < end_ns)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0 || low == device->count)
    return false;
  uint64_t from = list[low - 1].end_ns, to = list[low].start_ns;
  uint8_t *taken = &d->taken[device->first + low];
  *gap_ns = to > from && !*taken ? to - from : 0;
  *taken = 1;
  return true;
}
