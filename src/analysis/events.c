/* SPDX-License-Identifier: Apache-2.0
 * Single events of a process. A program may make millions of syncs: what does not fit into a buffer goes to an unlinked
 * temporary file and is read back in order. */
#include "analysis/internal.h"

#include <stdio.h>
#include <stdlib.h>

#define KEPT_MAX 16384u /* events in memory: 1 MiB */

struct sc_events {
  struct sc_event *kept; /* those that are not in the file yet */
  size_t kept_count;
  FILE *spool;
  uint64_t spooled, count;
  uint64_t next; /* to be read */
  uint32_t *sites, *ranges; /* what the events' numbers stand for; sites: serials */
  size_t site_count, range_count;
  uint32_t *site_index; /* index of a site by its serial, as the sites are ordered now */
  size_t serial_count;
  bool failed;
};

struct sc_events *sc_events_new(void)
{
  struct sc_events *events = calloc(1, sizeof *events);
  if (!events)
    return NULL;
  events->kept = sc_calloc_array(KEPT_MAX, sizeof *events->kept);
  if (!events->kept) {
    free(events);
    return NULL;
  }
  return events;
}

void sc_events_free(struct sc_events *events)
{
  if (!events)
    return;
  if (events->spool)
    fclose(events->spool);
  free(events->kept);
  free(events->sites);
  free(events->ranges);
  free(events->site_index);
  free(events);
}

static void spill(struct sc_events *events)
{
  if (!events->spool)
    events->spool = sc_temporary_file();
  if (!events->spool ||
      fwrite(events->kept, sizeof *events->kept, events->kept_count, events->spool) != events->kept_count)
    events->failed = true;
  events->spooled += events->kept_count;
  events->kept_count = 0;
}

void sc_events_add(struct sc_events *events, const struct sc_event *event)
{
  if (events->failed)
    return;
  if (events->kept_count == KEPT_MAX)
    spill(events);
  events->kept[events->kept_count++] = *event;
  ++events->count;
}

void sc_events_finish(struct sc_events *events, uint32_t *sites, size_t site_count, uint32_t *ranges,
                      size_t range_count)
{
  events->sites = sites;
  events->site_count = sites ? site_count : 0;
  events->ranges = ranges;
  events->range_count = ranges ? range_count : 0;
}

/* ---- reading --------------------------------------------------------------------------------------- */

bool sc_process_events_rewind(const struct sc_process *process)
{
  struct sc_events *events = process->events;
  if (!events)
    return true;
  free(events->site_index);
  events->serial_count = process->site_count;
  events->site_index = sc_calloc_array(process->site_count + 1, sizeof *events->site_index);
  events->next = 0;
  if (!events->site_index || (events->spool && fseek(events->spool, 0, SEEK_SET) != 0))
    return false;
  for (size_t i = 0; i < process->site_count; ++i) {
    if (process->sites[i].serial < process->site_count)
      events->site_index[process->sites[i].serial] = (uint32_t)i;
  }
  return !events->failed;
}

static bool read_one(struct sc_events *events, struct sc_event *out)
{
  if (events->next >= events->count || events->failed)
    return false;
  if (events->next >= events->spooled) {
    *out = events->kept[events->next - events->spooled];
  } else if (fread(out, sizeof *out, 1, events->spool) != 1) {
    events->failed = true;
    return false;
  }
  ++events->next;
  return true;
}

/* UINT32_MAX: it stands for nothing that is in the findings. */
static uint32_t index_of(const struct sc_events *events, const struct sc_event *event)
{
  if (event->kind == SC_EVENT_RANGE)
    return event->what < events->range_count ? events->ranges[event->what] : UINT32_MAX;
  if (event->kind == SC_EVENT_COPY || event->what >= events->site_count)
    return UINT32_MAX;
  uint32_t serial = events->sites[event->what];
  return serial < events->serial_count ? events->site_index[serial] : UINT32_MAX;
}

bool sc_process_events_next(const struct sc_process *process, struct sc_event *out)
{
  struct sc_events *events = process->events;
  struct sc_event event;
  if (!events || !read_one(events, &event))
    return false;
  event.what = index_of(events, &event);
  *out = event;
  return true;
}

uint64_t sc_process_events_count(const struct sc_process *process)
{
  return process->events ? process->events->count : 0;
}

bool sc_process_events_failed(const struct sc_process *process) { return process->events && process->events->failed; }
