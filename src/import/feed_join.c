/* SPDX-License-Identifier: Apache-2.0
 * What the device did is joined to the call that asked for it: both carry one correlation id. A runtime call and the
 * driver call inside it share theirs. */
#include <string.h>

#include "import/feed_internal.h"

#define CALLS_MAX 8 /* calls of one correlation id that learn from its work; there is one, or two that are nested */

struct group {
  struct event calls[CALLS_MAX];
  size_t count;
  uint64_t submit_ns; /* when the first of the calls began; UINT64_MAX: none */
  bool has_place, has_copy, has_memset, has_stream;
  uint32_t syncs;
  uint8_t device, flags;
  uint64_t stream; /* a handle that is none of the default streams' */
  struct event copy;
  uint8_t memset_memory;
  uint64_t memset_bytes;
};

/* Stream numbers are of one context each. */
static uint64_t stream_handle(const struct event *work) { return ((uint64_t)work->extra + 1) << 32 | work->stream; }

static void take_copy(struct group *g, const struct event *work)
{
  if (!g->has_copy) {
    g->copy = *work;
    g->has_copy = true;
    return;
  }
  uint64_t bytes = g->copy.bytes + work->bytes;
  /* Several copies of one call: a batch, or pieces of one. What blocks, or may, stands for all. */
  bool to_host = work->direction == SC_DIRECTION_D2H || work->direction == SC_DIRECTION_H2H;
  bool was_to_host = g->copy.direction == SC_DIRECTION_D2H || g->copy.direction == SC_DIRECTION_H2H;
  bool pageable = (work->memory & 15) == SC_MEMORY_PAGEABLE, was_pageable = (g->copy.memory & 15) == SC_MEMORY_PAGEABLE;
  if ((to_host && !was_to_host) || (to_host == was_to_host && pageable && !was_pageable))
    g->copy = *work;
  g->copy.bytes = bytes;
}

static uint8_t device_of(const struct sc_feed *f, const struct event *work)
{
  const struct feed_process *process = &f->processes[work->process];
  for (size_t i = 0; work->work == SC_FEED_SYNC && i < process->context_count; ++i) {
    if (process->contexts[i].context == work->extra)
      return process->contexts[i].device;
  }
  return work->device;
}

static void take_work(struct sc_feed *f, struct group *g, const struct event *work)
{
  enum sc_feed_work_kind kind = (enum sc_feed_work_kind)work->work;
  if (kind == SC_FEED_FREE || kind == SC_FEED_FREE_POOL) {
    g->flags |= kind == SC_FEED_FREE ? EVENT_FREE_KNOWN : EVENT_FREE_POOL;
    g->memset_memory = work->memory;
    return;
  }
  if (!g->has_place) {
    g->has_place = true;
    g->device = device_of(f, work);
  }
  if (!g->has_stream && work->stream != SC_FEED_NO_STREAM) {
    g->has_stream = true;
    g->stream = stream_handle(work);
  }
  if (kind == SC_FEED_COPY)
    take_copy(g, work);
  if (kind == SC_FEED_MEMSET) {
    g->has_memset = true;
    g->memset_memory = work->memory;
    g->memset_bytes += work->bytes;
  }
  if (kind == SC_FEED_SYNC) {
    ++g->syncs;
    return;
  }
  struct device_work item = {.process = work->process,
                             .device = work->device,
                             .submit_ns = g->submit_ns != UINT64_MAX ? g->submit_ns : work->start_ns,
                             .start_ns = work->start_ns,
                             .end_ns = work->end_ns};
  feed_sort(f, f->works, &item);
}

/* A call learns what the work of its correlation id tells about a call of its kind. */
static void learn(const struct sc_feed *f, const struct group *g, struct event *call)
{
  const struct feed_api *api = &f->api[call->what - 1];
  bool place = g->has_place;
  switch (api->op) {
  case SC_OP_COPY:
  case SC_OP_COPY_ASYNC:
    place = g->has_copy;
    call->bytes = g->copy.bytes;
    call->direction = g->copy.direction;
    call->memory = g->copy.memory;
    break;
  case SC_OP_MEMSET:
  case SC_OP_MEMSET_ASYNC:
    place = g->has_memset;
    call->bytes = g->memset_bytes;
    call->memory = g->memset_memory;
    break;
  case SC_OP_FREE:
  case SC_OP_FREE_HOST:
    call->memory = g->memset_memory;
    call->flags |= g->flags;
    break;
  default: break;
  }
  call->link = place && g->has_stream ? g->stream : 0;
  if (!place)
    return;
  call->device = g->device;
  call->flags |= EVENT_JOINED;
}

static bool is_inside(const struct sc_feed *f, const struct event *inner, const struct event *outer)
{
  return inner != outer && inner->thread == outer->thread && f->api[inner->what - 1].driver &&
         !f->api[outer->what - 1].driver && inner->start_ns >= outer->start_ns && inner->end_ns <= outer->end_ns;
}

static void end_group(struct sc_feed *f, struct group *g)
{
  if (g->count == 0)
    f->totals.syncs_without_call += g->syncs;
  for (size_t i = 0; i < g->count; ++i) {
    bool nested = false;
    for (size_t j = 0; j < g->count && !nested; ++j)
      nested = is_inside(f, &g->calls[i], &g->calls[j]);
    if (nested)
      continue;
    learn(f, g, &g->calls[i]);
    feed_sort(f, f->events, &g->calls[i]);
  }
}

static void begin_group(struct group *g)
{
  memset(g, 0, offsetof(struct group, copy));
  g->copy = (struct event){0};
  g->memset_memory = 0;
  g->memset_bytes = 0;
  g->submit_ns = UINT64_MAX;
}

static void take_call(struct sc_feed *f, struct group *g, const struct event *call)
{
  if (call->start_ns < g->submit_ns)
    g->submit_ns = call->start_ns;
  if (g->count < CALLS_MAX) {
    g->calls[g->count++] = *call;
    return;
  }
  struct event alone = *call;
  alone.link = 0;
  feed_sort(f, f->events, &alone);
}

enum sc_status feed_join(struct sc_feed *f, struct sc_error *err)
{
  static const struct event none;
  const void *item;
  struct group g;
  struct event key = none;
  bool open = false;
  begin_group(&g);
  for (;;) {
    enum sc_status status = sc_sorter_next(f->linked, &item, err);
    if (status != SC_OK)
      return status;
    const struct event *event = item;
    if (open && (!event || event->process != key.process || event->link != key.link || event->link == 0)) {
      end_group(f, &g);
      begin_group(&g);
    }
    if (!event)
      break;
    open = true;
    key = *event;
    if (event->kind == EVENT_CALL)
      take_call(f, &g, event);
    else
      take_work(f, &g, event);
    if (f->failure.status != SC_OK)
      return sc_error_set(err, f->failure.status, "%s", f->failure.message);
  }
  /* What was sorted has been read: its memory is needed for what comes. */
  sc_sorter_free(f->linked);
  f->linked = NULL;
  return SC_OK;
}
