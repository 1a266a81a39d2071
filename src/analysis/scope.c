/* SPDX-License-Identifier: Apache-2.0
 * Which ranges a thread's calls belong to: its push/pop ranges (a stack for each domain) and the start/end ranges it
 * started. A start/end range may be ended by any thread; its counts are those of the thread that started it. */
#include "analysis/engine.h"

#include <stdlib.h>
#include <string.h>

/* Before the open ranges of a thread change: gives what was counted to the ranges that were open. */
static void settle(struct sc_analysis_thread *t)
{
  /* Remember where the sync was, should another call still join it. */
  if (t->counter.follow != SC_FOLLOW_NONE && t->counter.where_count == 0) {
    t->where[t->counter.where_count++] = t->node;
    for (size_t i = 0; i < t->span_count && t->counter.where_count < WHERE_MAX; ++i) {
      if (t->spans[i].takes)
        t->where[t->counter.where_count++] = t->spans[i].node;
    }
  }
  if (t->outside) {
    t->fresh = (struct sc_counts){0};
    return;
  }
  if (t->fresh.api_calls == 0 && t->fresh.submissions == 0)
    return;
  sc_counts_add(&t->node->self, &t->fresh);
  sc_counts_add(&t->total, &t->fresh);
  for (size_t i = 0; i < t->span_count; ++i) {
    if (t->spans[i].takes)
      sc_counts_add(&t->spans[i].node->self, &t->fresh);
  }
  t->fresh = (struct sc_counts){0};
}

void sc_scope_late(struct sc_analysis_thread *t, const struct sc_counts *late)
{
  if (t->outside) {
    sc_counts_add(&t->fresh, late);
    return;
  }
  sc_counts_add(&t->total, late);
  for (size_t i = 0; i < t->counter.where_count; ++i)
    sc_counts_add(&t->where[i]->self, late);
}

static uint64_t syncs_so_far(const struct sc_analysis_thread *t)
{
  return t->total.syncs + (t->outside ? 0 : t->fresh.syncs);
}

static struct tally_mark mark_of(const struct sc_analysis_thread *t)
{
  return t->analysis->tally ? sc_tally_open(t) : (struct tally_mark){0};
}

static void count_occurrence(struct sc_analysis *a, struct sc_node *node)
{
  ++node->occurrences;
  if (node->level == SC_LEVEL_STEP)
    ++a->step_count;
}

/* One occurrence is over: how many syncs it had. */
static void close_occurrence(struct sc_analysis *a, struct sc_analysis_thread *t, struct sc_node *node,
                             const struct tally_mark *mark, uint64_t syncs, uint64_t now_ns)
{
  if (a->tally)
    sc_tally_close(t, node, mark, now_ns, false);
  if (!sc_spread_add(&node->per_occurrence, syncs))
    a->failed = true;
  if (node->level != SC_LEVEL_STEP)
    return;
  if (t->steps++ < a->warmup || a->from_ns == UINT64_MAX || now_ns < a->from_ns)
    ++a->step_warmup;
  else if (!sc_spread_add(&a->steps, syncs))
    a->failed = true;
}

static void note_range(const struct sc_analysis_thread *t, const struct sc_node *node, uint64_t start_ns,
                       uint64_t end_ns, bool unfinished)
{
  if (t->analysis->events)
    sc_events_add(t->analysis->events, &(struct sc_event){.start_ns = start_ns,
                                                          .end_ns = end_ns,
                                                          .thread = t->index,
                                                          .what = node->serial,
                                                          .kind = SC_EVENT_RANGE,
                                                          .unfinished = unfinished});
}

/* ---- windows: what is counted at all ---------------------------------------------------------- */

static void set_window(const struct sc_analysis *a, struct sc_analysis_thread *t, uint64_t now_ns)
{
  while (t->window < a->window_count && a->windows[t->window].end_ns <= now_ns)
    ++t->window;
  const struct sc_window *window = t->window < a->window_count ? &a->windows[t->window] : NULL;
  t->outside = !window || now_ns < window->start_ns;
  t->boundary_ns = !window ? UINT64_MAX : t->outside ? window->start_ns : window->end_ns;
}

void sc_scope_first_window(const struct sc_analysis *a, struct sc_analysis_thread *t)
{
  t->boundary_ns = UINT64_MAX;
  if (a->windows)
    set_window(a, t, 0);
}

/* Ranges that are open where counting begins occur there. */
void sc_scope_cross(struct sc_analysis *a, struct sc_analysis_thread *t, uint64_t now_ns)
{
  settle(t);
  set_window(a, t, now_ns);
  t->counter.follow = SC_FOLLOW_NONE; /* nothing is concluded across the boundary */
  t->counter.where_count = 0;
  t->counter.poll.open = false;
  for (size_t i = 0; i < t->depth && !t->outside; ++i) {
    struct range *range = &t->stack[i];
    if (range->occurs && !range->counted) {
      range->counted = true;
      range->syncs = syncs_so_far(t);
      range->mark = mark_of(t);
      count_occurrence(a, range->origin);
    }
  }
  for (size_t i = 0; i < t->span_count && !t->outside; ++i) {
    struct span *span = &t->spans[i];
    if (!span->counted) {
      span->counted = true;
      span->syncs = syncs_so_far(t);
      span->mark = mark_of(t);
      count_occurrence(a, span->node);
    }
  }
}

static void note_start(struct sc_analysis *a, const struct sc_node *node, uint64_t now_ns)
{
  if (node->starts && now_ns < a->from_ns)
    a->from_ns = now_ns;
}

static void push_range(struct sc_analysis *a, struct sc_analysis_thread *t, uint32_t domain, uint32_t name,
                       uint64_t now_ns)
{
  settle(t);
  if (t->depth == STACK_MAX) {
    ++t->beyond;
    ++a->tree.too_deep;
    return;
  }
  if (t->depth == t->stack_cap) {
    size_t cap = t->stack_cap ? t->stack_cap * 2 : 16;
    struct range *stack = realloc(t->stack, cap * sizeof *stack);
    if (!stack) {
      a->failed = true;
      return;
    }
    t->stack = stack;
    t->stack_cap = cap;
  }
  struct sc_node *node = sc_tree_child(&a->tree, t->node, false, domain, name);
  bool occurs = node != t->node, counted = occurs && !t->outside;
  t->stack[t->depth++] = (struct range){.node = node,
                                        .origin = node,
                                        .domain = domain,
                                        .name = name,
                                        .syncs = syncs_so_far(t),
                                        .start_ns = now_ns,
                                        .mark = mark_of(t),
                                        .occurs = occurs,
                                        .counted = counted};
  note_start(a, node, now_ns);
  if (counted)
    count_occurrence(a, node);
  t->node = node;
}

static struct sc_node *enclosing(const struct sc_analysis_thread *t, size_t index)
{
  return index ? t->stack[index - 1].node : t->base;
}

void sc_scope_rebase(struct sc_analysis_thread *t, struct sc_node *base)
{
  settle(t);
  t->base = base;
  if (t->depth == 0)
    t->node = base;
}

/* Push/pop stacks are one per domain: the range that is popped need not be the innermost one of all. */
static void pop_range(struct sc_analysis *a, struct sc_analysis_thread *t, uint32_t domain, uint64_t now_ns)
{
  settle(t);
  if (t->beyond) {
    --t->beyond;
    return;
  }
  size_t i = t->depth;
  while (i > 0 && t->stack[i - 1].domain != domain)
    --i;
  if (i == 0) {
    ++a->unbalanced;
    return;
  }
  struct range closed = t->stack[--i];
  if (closed.counted) {
    close_occurrence(a, t, closed.origin, &closed.mark, syncs_so_far(t) - closed.syncs, now_ns);
    note_range(t, closed.origin, closed.start_ns, now_ns, false);
  }
  --t->depth;
  memmove(&t->stack[i], &t->stack[i + 1], (t->depth - i) * sizeof *t->stack);
  for (; i < t->depth; ++i) /* the ranges inside it go on, on a path without it */
    t->stack[i].node = sc_tree_child(&a->tree, enclosing(t, i), false, t->stack[i].domain, t->stack[i].name);
  t->node = enclosing(t, t->depth);
  if (a->tally)
    sc_tally_closed(t);
}

/* ---- start/end ranges: they take the calls of the thread that started them ------------------ */

static void update_next_end(struct sc_analysis_thread *t)
{
  t->next_end_ns = UINT64_MAX;
  for (size_t i = 0; i < t->span_count; ++i) {
    if (t->spans[i].end_ns < t->next_end_ns)
      t->next_end_ns = t->spans[i].end_ns;
  }
}

static struct span *span_of(struct sc_analysis_thread *t, const struct sc_node *node)
{
  for (size_t i = 0; i < t->span_count; ++i) {
    if (t->spans[i].node == node)
      return &t->spans[i];
  }
  return NULL;
}

static void close_span(struct sc_analysis *a, struct sc_analysis_thread *t, size_t index, uint64_t now_ns)
{
  settle(t);
  struct span closed = t->spans[index];
  if (closed.counted) {
    close_occurrence(a, t, closed.node, &closed.mark, syncs_so_far(t) - closed.syncs, now_ns);
    note_range(t, closed.node, closed.start_ns, now_ns, false);
  }
  t->spans[index] = t->spans[--t->span_count];
  if (a->tally)
    sc_tally_closed(t);
  struct span *heir = closed.takes ? span_of(t, closed.node) : NULL;
  if (heir)
    heir->takes = true;
  update_next_end(t);
}

void sc_scope_expire(struct sc_analysis *a, struct sc_analysis_thread *t, uint64_t now_ns)
{
  for (size_t i = t->span_count; i > 0; --i) {
    if (t->spans[i - 1].end_ns <= now_ns)
      close_span(a, t, i - 1, t->spans[i - 1].end_ns);
  }
}

static uint64_t take_early_end(struct sc_analysis *a, uint64_t handle)
{
  for (size_t i = 0; i < a->early_count; ++i) {
    if (a->early[i].handle == handle) {
      uint64_t end_ns = a->early[i].end_ns;
      memmove(&a->early[i], &a->early[i + 1], (--a->early_count - i) * sizeof *a->early);
      ++a->crossed_spans;
      return end_ns;
    }
  }
  return UINT64_MAX;
}

static void start_span(struct sc_analysis *a, struct sc_analysis_thread *t, const struct sc_record_range *record)
{
  settle(t);
  if (t->span_count == SPANS_MAX) {
    ++a->dropped_spans;
    return;
  }
  struct sc_node *node = sc_tree_child(&a->tree, t->node, true, record->domain, record->name);
  bool takes = !span_of(t, node);
  struct span *span = sc_array_push(&t->spans, &t->span_count, &t->span_cap, sizeof *span);
  if (!span) {
    a->failed = true;
    return;
  }
  uint64_t end_ns = take_early_end(a, record->handle);
  *span =
      (struct span){.node = node, .handle = record->handle, .syncs = syncs_so_far(t), .start_ns = record->time_ns,
                    .end_ns = end_ns, .takes = takes};
  span->mark = mark_of(t);
  span->counted = !t->outside;
  note_start(a, node, record->time_ns);
  if (span->counted)
    count_occurrence(a, node);
  update_next_end(t);
}

static bool close_span_of(struct sc_analysis *a, struct sc_analysis_thread *t, uint64_t handle, uint64_t now_ns)
{
  for (size_t i = 0; i < t->span_count; ++i) {
    if (t->spans[i].handle == handle) {
      close_span(a, t, i, now_ns);
      return true;
    }
  }
  return false;
}

static void end_span(struct sc_analysis *a, struct sc_analysis_thread *t, const struct sc_record_range *record)
{
  if (close_span_of(a, t, record->handle, record->time_ns))
    return;
  /* Ended on another thread. A file holds its threads' records a chunk at a time: the starting thread may be ahead or
   * behind by about a chunk here. If ahead, its calls of that chunk have been taken in already. */
  for (struct sc_analysis_thread *other = a->threads; other; other = other->next) {
    if (other->span_count && close_span_of(a, other, record->handle, record->time_ns)) {
      ++a->crossed_spans;
      return;
    }
  }
  if (a->early_count == EARLY_MAX) { /* the oldest is given up */
    memmove(&a->early[0], &a->early[1], --a->early_count * sizeof *a->early);
    ++a->unknown_ends;
  }
  a->early[a->early_count].handle = record->handle;
  a->early[a->early_count++].end_ns = record->time_ns;
}

void sc_scope_range(struct sc_analysis *a, struct sc_analysis_thread *t, const struct sc_record_range *record)
{
  if (record->time_ns >= t->boundary_ns)
    sc_scope_cross(a, t, record->time_ns);
  if (record->time_ns >= t->next_end_ns)
    sc_scope_expire(a, t, record->time_ns);
  if (t->first_ns == 0 || record->time_ns < t->first_ns)
    t->first_ns = record->time_ns;
  if (record->time_ns > t->last_ns)
    t->last_ns = record->time_ns;
  switch ((enum sc_record_kind)record->head.kind) {
  case SC_RECORD_RANGE_PUSH: push_range(a, t, record->domain, record->name, record->time_ns); break;
  case SC_RECORD_RANGE_POP: pop_range(a, t, record->domain, record->time_ns); break;
  case SC_RECORD_RANGE_START: start_span(a, t, record); break;
  default: end_span(a, t, record); break;
  }
}

static void leave_open(struct sc_analysis *a, struct sc_analysis_thread *t, struct sc_node *node, uint64_t start_ns,
                       const struct tally_mark *mark)
{
  if (a->tally)
    sc_tally_close(t, node, mark, t->last_ns, true);
  note_range(t, node, start_ns, t->last_ns > start_ns ? t->last_ns : start_ns, true);
  ++node->unfinished;
  ++a->still_open;
}

void sc_scope_finish(struct sc_analysis *a, struct sc_analysis_thread *t)
{
  settle(t);
  if (t->base->parent && (t->total.api_calls || t->total.submissions)) { /* "backward": one for each thread */
    ++t->base->occurrences;
    ++t->base->unfinished;
  }
  sc_scope_expire(a, t, UINT64_MAX - 1); /* those whose end was seen */
  for (size_t i = 0; i < t->depth; ++i) {
    if (t->stack[i].counted)
      leave_open(a, t, t->stack[i].origin, t->stack[i].start_ns, &t->stack[i].mark);
  }
  for (size_t i = 0; i < t->span_count; ++i) {
    if (t->spans[i].counted)
      leave_open(a, t, t->spans[i].node, t->spans[i].start_ns, &t->spans[i].mark);
  }
}
