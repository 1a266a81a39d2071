/* SPDX-License-Identifier: Apache-2.0
 * The engine: makes threads and names known, and takes records in. The loop over records is the tool's hot path:
 * one load by api id tells what a call is, and counts go to the thread until its ranges change. */
#include "analysis/engine.h"

#include <stdlib.h>
#include <string.h>

/* ---- construction -------------------------------------------------------------------------- */

static const char *own_text(const void *context, uint32_t id, size_t *length)
{
  const struct sc_analysis *a = context;
  if (id >= a->text_count || !a->texts[id].text)
    return NULL;
  *length = a->texts[id].length;
  return a->texts[id].text;
}

struct sc_analysis *sc_analysis_new_named(const struct sc_analysis_options *options, sc_text_of *text_of,
                                          sc_api_of *api_of, const void *context, bool late)
{
  struct sc_analysis *a = calloc(1, sizeof *a);
  if (!a)
    return NULL;
  a->kinds = sc_calloc_array(1u << 16, sizeof *a->kinds);
  if (!a->kinds) {
    free(a);
    return NULL;
  }
  a->last = &a->threads;
  a->api_of = api_of;
  a->late = late;
  a->context = context;
  a->warmup = options ? options->warmup : 0;
  a->from_ns = options && options->from ? UINT64_MAX : 0;
  a->events = options && options->events ? sc_events_new() : NULL;
  a->tally = options && options->tally ? sc_tally_new() : NULL;
  a->failed = options && ((options->events && !a->events) || (options->tally && !a->tally));
  sc_tree_init(&a->tree, options, text_of ? text_of : own_text, text_of ? context : a);
  return a;
}

struct sc_analysis *sc_analysis_new(const struct sc_analysis_options *options)
{
  return sc_analysis_new_named(options, NULL, NULL, NULL, false);
}

void sc_analysis_within(struct sc_analysis *a, const struct sc_window *windows, size_t count)
{
  a->windows = windows;
  a->window_count = count;
}

void sc_analysis_from(struct sc_analysis *a, uint64_t from_ns) { a->from_ns = from_ns; }

static void free_thread(struct sc_analysis_thread *t)
{
  free(t->name);
  free(t->stack);
  free(t->spans);
  free(t->log);
  free(t);
}

void sc_analysis_free(struct sc_analysis *a)
{
  if (!a)
    return;
  for (struct sc_analysis_thread *t = a->threads, *next; t; t = next) {
    next = t->next;
    free_thread(t);
  }
  for (size_t i = 0; i < a->text_count; ++i)
    free(a->texts[i].text);
  free(a->texts);
  for (size_t i = 0; i < a->note_count; ++i)
    free(a->notes[i].text);
  free(a->notes);
  free(a->by_serial);
  for (size_t i = 0; a->names && i < 1u << 16; ++i)
    free(a->names[i]);
  free(a->names);
  sc_sites_free(&a->sites);
  sc_tally_maker_free(a->tally);
  sc_hist_free(&a->drain);
  sc_events_free(a->events);
  sc_marks_free(a);
  free(a->kinds);
  sc_spread_free(&a->steps);
  sc_tree_free(&a->tree);
  free(a);
}

static struct sc_analysis_thread **serial_slot(struct sc_analysis_thread **slots, size_t count, uint64_t serial)
{
  size_t i = (serial * 0x9e3779b97f4a7c15u >> 32) & (count - 1);
  while (slots[i] && slots[i]->serial != serial)
    i = (i + 1) & (count - 1);
  return &slots[i];
}

static bool grow_threads(struct sc_analysis *a)
{
  size_t count = a->by_serial_count ? a->by_serial_count * 2 : 64;
  struct sc_analysis_thread **slots = sc_calloc_array(count, sizeof(struct sc_analysis_thread *));
  if (!slots)
    return false;
  for (struct sc_analysis_thread *t = a->threads; t; t = t->next)
    *serial_slot(slots, count, t->serial) = t;
  free(a->by_serial);
  a->by_serial = slots;
  a->by_serial_count = count;
  return true;
}

/* ---- what the counter tells -------------------------------------------------------------------- */

static void on_sync(void *context, enum sc_class cls, const struct sc_record_call *call,
                    const struct sc_sync_facts *facts)
{
  sc_sites_sync(context, cls, call, facts);
}

static void on_join(void *context, const struct sc_record_call *call) { sc_sites_join(context, call); }

/* Copies are events of their own where events are kept. */
static uint64_t on_copy(void *context, uint64_t flow, const struct sc_record_call *call)
{
  struct sc_analysis_thread *t = context;
  struct sc_analysis *a = t->analysis;
  if (!a->events || t->outside)
    return 0;
  if (flow == 0)
    flow = ++a->flows;
  sc_events_add(a->events, &(struct sc_event){.start_ns = call->start_ns,
                                              .end_ns = call->start_ns + call->duration_ns,
                                              .bytes = call->bytes,
                                              .flow = flow,
                                              .thread = t->index,
                                              .what = UINT32_MAX,
                                              .kind = SC_EVENT_COPY,
                                              .direction = SC_DIRECTION_D2H,
                                              .memory = SC_CALL_DST(call)});
  return flow;
}

static void on_late(void *context, const struct sc_counts *late) { sc_scope_late(context, late); }

static void on_beside(void *context, enum sc_beside what, const struct sc_record_call *call)
{
  sc_sites_beside(context, what == SC_BESIDE_POLL ? SC_SITE_POLL : SC_SITE_REFUSED, call);
}

static const struct sc_count_hooks hooks = {.sync = on_sync, .join = on_join, .late = on_late, .copy = on_copy, .beside = on_beside};

struct sc_analysis_thread *sc_analysis_thread(struct sc_analysis *a, uint64_t serial, uint32_t tid)
{
  if (a->by_serial_count) {
    struct sc_analysis_thread *known = *serial_slot(a->by_serial, a->by_serial_count, serial);
    if (known)
      return known;
  }
  if (a->thread_count * 2 >= a->by_serial_count && !grow_threads(a))
    return NULL;
  struct sc_analysis_thread *t = calloc(1, sizeof *t);
  if (!t)
    return NULL;
  t->analysis = a;
  t->serial = serial;
  t->tid = tid;
  t->node = t->base = &a->tree.root;
  t->next_end_ns = UINT64_MAX;
  t->counter = (struct sc_counter){.counts = &t->fresh, .hooks = &hooks, .context = t};
  sc_scope_first_window(a, t);
  *serial_slot(a->by_serial, a->by_serial_count, serial) = t;
  *a->last = t;
  a->last = &t->next;
  t->index = (uint32_t)a->thread_count++;
  return t;
}

bool sc_analysis_thread_name(struct sc_analysis_thread *t, const char *name, size_t length)
{
  char *copy = sc_strndup(name, length);
  if (!copy)
    return false;
  free(t->name);
  t->name = copy;
  if (strncmp(copy, AUTOGRAD_THREAD, strlen(AUTOGRAD_THREAD)) == 0)
    sc_scope_rebase(t, sc_tree_backward(&t->analysis->tree));
  return true;
}

bool sc_analysis_api(struct sc_analysis *a, uint32_t id, enum sc_op op, const char *name)
{
  if (id > 0xffff)
    return false;
  if (!a->names)
    a->names = sc_calloc_array(1u << 16, sizeof *a->names);
  char *copy = a->names ? sc_strdup(name) : NULL;
  if (!copy)
    return false;
  free(a->names[id]);
  a->names[id] = copy;
  sc_call_kind_set(&a->kinds[id], op, name, a->late);
  return true;
}

void sc_analysis_stacks(struct sc_analysis *a, const struct sc_stack_source *source, const void *context)
{
  a->stacks = source;
  a->stack_context = context;
}

bool sc_analysis_string(struct sc_analysis *a, uint32_t id, const char *text, size_t length)
{
  char *copy = id < STRINGS_MAX ? sc_strndup(text, length) : NULL;
  if (!copy)
    return false;
  while (a->text_count <= id) {
    if (!sc_array_push(&a->texts, &a->text_count, &a->text_cap, sizeof *a->texts)) {
      free(copy);
      return false;
    }
  }
  free(a->texts[id].text);
  a->texts[id] = (struct text){.text = copy, .length = strlen(copy)};
  return true;
}

static const struct sc_call_kind *kind_of(struct sc_analysis *a, uint32_t id)
{
  struct sc_call_kind *kind = &a->kinds[id];
  if (__builtin_expect(!kind->known, 0)) {
    enum sc_op op = SC_OP_NONE;
    const char *name = NULL;
    if (a->api_of && a->api_of(a->context, id, &op, &name))
      sc_call_kind_set(kind, op, name, a->late);
    else
      ++a->nameless; /* not remembered: its definition may still come */
  }
  return kind;
}

/* ---- records ------------------------------------------------------------------------------- */

static void on_call(struct sc_analysis *a, struct sc_analysis_thread *t, const struct sc_record_call *call)
{
  if (__builtin_expect(call->start_ns >= t->boundary_ns, 0))
    sc_scope_cross(a, t, call->start_ns);
  if (__builtin_expect(call->start_ns >= t->next_end_ns, 0))
    sc_scope_expire(a, t, call->start_ns);
  if (t->first_ns == 0 || call->start_ns < t->first_ns)
    t->first_ns = call->start_ns;
  if (call->start_ns + call->duration_ns > t->last_ns)
    t->last_ns = call->start_ns + call->duration_ns;
  sc_counter_call(&t->counter, call, kind_of(a, SC_CALL_API(call)));
  if (__builtin_expect(call->start_ns + call->duration_ns >= t->boundary_ns, 0)) /* what is submitted next is beyond it */
    sc_scope_cross(a, t, call->start_ns + call->duration_ns);
}

static void on_text(struct sc_analysis *a, struct sc_analysis_thread *t, const struct sc_record_text *record)
{
  size_t room = (size_t)record->head.units * SC_TRACE_UNIT - offsetof(struct sc_record_text, text);
  size_t length = record->length < room ? record->length : room;
  if (record->head.kind == SC_RECORD_THREAD) {
    if (!sc_analysis_thread_name(t, record->text, length))
      a->failed = true;
    return;
  }
  if (a->note_count == NOTES_MAX)
    return;
  struct note *note = sc_array_push(&a->notes, &a->note_count, &a->note_cap, sizeof *note);
  if (note) {
    note->id = record->id;
    note->text = sc_strndup(record->text, length);
  }
  if (!note || !note->text)
    a->failed = true;
}

static inline void on_record(struct sc_analysis *a, struct sc_analysis_thread *t, const struct sc_record_head *head)
{
  if (head->submissions)
    sc_counter_submissions(&t->counter, head->submissions, head->launches);
  if (__builtin_expect(head->kind == SC_RECORD_CALL, 1))
    on_call(a, t, (const struct sc_record_call *)head);
  else if (head->kind >= SC_RECORD_RANGE_PUSH && head->kind <= SC_RECORD_RANGE_END)
    sc_scope_range(a, t, (const struct sc_record_range *)head);
  else if (head->kind == SC_RECORD_THREAD || head->kind == SC_RECORD_NOTE)
    on_text(a, t, (const struct sc_record_text *)head);
  else if (head->kind == SC_RECORD_MARK && !sc_marks_take(a, (const struct sc_record_range *)head))
    a->failed = true;
}

void sc_analysis_record(struct sc_analysis *a, struct sc_analysis_thread *t, const struct sc_record_head *record)
{
  on_record(a, t, record);
}

void sc_analysis_records(struct sc_analysis *a, struct sc_analysis_thread *t, const unsigned char *bytes, size_t size)
{
  while (size >= SC_TRACE_UNIT) {
    const struct sc_record_head *head = (const struct sc_record_head *)bytes;
    size_t length = (size_t)head->units * SC_TRACE_UNIT;
    if (length == 0 || length > size)
      return;
    on_record(a, t, head);
    bytes += length;
    size -= length;
  }
}

void sc_analysis_tail(struct sc_analysis *a, struct sc_analysis_thread *t, uint32_t submissions, uint32_t launches)
{
  (void)a;
  if (submissions)
    sc_counter_submissions(&t->counter, submissions, launches);
}

void sc_analysis_gap(struct sc_analysis *a, struct sc_analysis_thread *t)
{
  (void)a;
  sc_counter_gap(&t->counter);
}

uint64_t sc_analysis_syncs(const struct sc_analysis_thread *t) { return t->total.syncs + t->fresh.syncs; }

void sc_analysis_drain(struct sc_analysis_thread *t, uint64_t gap_ns)
{
  if (t->outside)
    return;
  t->analysis->drain_ns += gap_ns;
  sc_hist_add(&t->analysis->drain, gap_ns);
  if (!t->site_open) /* memory was out */
    return;
  t->site->drain_ns += gap_ns;
  sc_hist_add(&t->site->drain, gap_ns);
}
