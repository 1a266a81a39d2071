/* SPDX-License-Identifier: Apache-2.0
 * Keeps a log of a thread's syncs while ranges are open. When one is closed, what came since it was opened is its
 * occurrence; equal ones are kept once. */
#include "analysis/engine.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/tally.h"

#define PLACES_MAX (1u << 18)
#define PARTS_MAX (1u << 22)
#define COMPACT_AT 8192u /* entries of a log */

#define STEPS_NAME 1 /* in place of the hash of a name */

enum { WARM_BY_STEP = 1, WARM_BY_TIME = 2, WARM_BY_ORDINAL = 4, WARM_BY_MARK = 8 };

struct raw_place {
  const struct raw_site *site;
  const struct sc_node *node, *allow;
  const struct sc_analysis_thread *thread;
  unsigned warm;
  uint64_t count, wait_ns;
};

struct raw_profile {
  const struct sc_node *node;
  const struct sc_analysis_thread *thread;
  unsigned warm;
  bool unfinished;
  uint64_t uncertain, first, times, hash;
  size_t series;
  size_t parts, part_count; /* in the maker's parts */
};

struct ordinal { /* how often ranges of one name were closed on a thread */
  uint64_t name; /* hash of name and domain */
  const struct sc_analysis_thread *thread;
  uint64_t closed;
};

struct step_part { /* of a step that marks delimit */
  uint32_t step;
  struct tally_entry entry;
};

struct table { /* open addressing: index + 1 of something kept elsewhere */
  uint32_t *slots;
  size_t size, used;
};

struct tally_maker {
  struct raw_place *places;
  size_t place_count, place_cap;
  struct raw_profile *profiles;
  size_t profile_count, profile_cap;
  struct ordinal *ordinals;
  size_t ordinal_count, ordinal_cap;
  struct tally_entry *parts, *scratch;
  size_t part_count, part_cap, scratch_cap;
  struct step_part *steps;
  size_t step_count, step_cap;
  uint64_t counted_from_ns; /* of the steps that marks delimit; 0: not looked up */
  struct table by_place, by_profile, by_ordinal, by_step;
  bool overflow;
};

/* ---- tables: the caller compares ------------------------------------------------------------- */

typedef uint64_t hash_of(const struct tally_maker *m, uint32_t index);

static bool make_room(struct tally_maker *m, struct table *table, hash_of *hash)
{
  if (table->used * 4 < table->size * 3)
    return true;
  size_t size = table->size ? table->size * 2 : 256;
  uint32_t *slots = sc_calloc_array(size, sizeof *slots);
  if (!slots)
    return false;
  for (size_t i = 0; i < table->size; ++i) {
    if (!table->slots[i])
      continue;
    size_t at = hash(m, table->slots[i] - 1) & (size - 1);
    while (slots[at])
      at = (at + 1) & (size - 1);
    slots[at] = table->slots[i];
  }
  free(table->slots);
  table->slots = slots;
  table->size = size;
  return true;
}

static uint64_t hash_place(const struct raw_place *p)
{
  uint64_t hash = sc_hash_mix(sc_hash_mix((uintptr_t)p->site, (uintptr_t)p->node), (uintptr_t)p->thread);
  return sc_hash_mix(sc_hash_mix(hash, (uintptr_t)p->allow), p->warm);
}

static uint64_t place_hash(const struct tally_maker *m, uint32_t index) { return hash_place(&m->places[index]); }
static uint64_t profile_hash(const struct tally_maker *m, uint32_t index) { return m->profiles[index].hash; }
static uint64_t ordinal_hash(const struct tally_maker *m, uint32_t index)
{
  return sc_hash_mix(m->ordinals[index].name, (uintptr_t)m->ordinals[index].thread);
}

static uint64_t hash_step(uint32_t step, uint32_t place)
{
  return sc_hash_mix(sc_hash_mix(step + 1, place), 0x51ed270b);
}
static uint64_t step_hash(const struct tally_maker *m, uint32_t index)
{
  return hash_step(m->steps[index].step, m->steps[index].entry.place);
}

/* ---- a sync ---------------------------------------------------------------------------------- */

static const struct sc_node *allowed_by(const struct sc_analysis_thread *t)
{
  for (const struct sc_node *node = t->node; node; node = node->parent) {
    if (node->level == SC_LEVEL_ALLOW)
      return node;
  }
  for (size_t i = 0; i < t->span_count; ++i) {
    if (t->spans[i].node->level == SC_LEVEL_ALLOW)
      return t->spans[i].node;
  }
  return NULL;
}

static unsigned warm_now(const struct sc_analysis_thread *t, uint64_t now_ns)
{
  const struct sc_analysis *a = t->analysis;
  unsigned by_step = t->steps < a->warmup ? WARM_BY_STEP : 0;
  unsigned by_mark = a->marked.count && now_ns < a->tally->counted_from_ns ? WARM_BY_MARK : 0;
  return by_step | by_mark | (a->from_ns == UINT64_MAX || now_ns < a->from_ns ? WARM_BY_TIME : 0);
}

static bool same_place(const struct raw_place *a, const struct raw_place *b)
{
  return a->site == b->site && a->node == b->node && a->allow == b->allow && a->thread == b->thread &&
         a->warm == b->warm;
}

/* False: there is no room for it. */
static bool place_of(struct tally_maker *m, const struct raw_place *key, uint32_t *index, bool *failed)
{
  if (!make_room(m, &m->by_place, place_hash)) {
    *failed = true;
    return false;
  }
  size_t at = hash_place(key) & (m->by_place.size - 1);
  for (uint32_t slot; (slot = m->by_place.slots[at]) != 0; at = (at + 1) & (m->by_place.size - 1)) {
    if (same_place(&m->places[slot - 1], key)) {
      *index = slot - 1;
      return true;
    }
  }
  if (m->place_count == PLACES_MAX) {
    m->overflow = true;
    return false;
  }
  struct raw_place *place = sc_array_push(&m->places, &m->place_count, &m->place_cap, sizeof *place);
  if (!place) {
    *failed = true;
    return false;
  }
  *place = *key;
  *index = (uint32_t)(m->place_count - 1);
  m->by_place.slots[at] = *index + 1;
  ++m->by_place.used;
  return true;
}

static int by_place(const void *left, const void *right)
{
  const struct tally_entry *a = left, *b = right;
  return (a->place > b->place) - (a->place < b->place);
}

/* Sorts and adds up entries of the same place; returns how many are left. */
static size_t gather(struct tally_entry *entries, size_t count)
{
  size_t kept = 0;
  if (count > 1)
    qsort(entries, count, sizeof *entries, by_place);
  for (size_t i = 0; i < count; ++i) {
    if (kept && entries[kept - 1].place == entries[i].place) {
      entries[kept - 1].count += entries[i].count;
      entries[kept - 1].wait_ns += entries[i].wait_ns;
    } else {
      entries[kept++] = entries[i];
    }
  }
  return kept;
}

/* Where the innermost open range begins in the log: entries before it may not be mixed with those after it. */
static size_t log_floor(const struct sc_analysis_thread *t)
{
  size_t floor = 0;
  for (size_t i = 0; i < t->depth; ++i) {
    if (t->stack[i].counted && t->stack[i].mark.entry > floor)
      floor = t->stack[i].mark.entry;
  }
  for (size_t i = 0; i < t->span_count; ++i) {
    if (t->spans[i].counted && t->spans[i].mark.entry > floor)
      floor = t->spans[i].mark.entry;
  }
  return floor;
}

static void compact(struct sc_analysis_thread *t)
{
  size_t floor = log_floor(t);
  t->log_count = floor + gather(t->log + floor, t->log_count - floor);
  t->log_compact = t->log_count * 2 > COMPACT_AT ? t->log_count * 2 : COMPACT_AT;
}

/* Steps of the whole process: syncs of all threads by time. */
static void count_step(struct sc_analysis_thread *t, uint32_t place, const struct sc_record_call *call)
{
  struct tally_maker *m = t->analysis->tally;
  const size_t index = sc_steps_index(t, call->start_ns);
  if (index == SIZE_MAX)
    return;
  if (!make_room(m, &m->by_step, step_hash)) {
    t->analysis->failed = true;
    return;
  }
  size_t mask = m->by_step.size - 1, at = hash_step((uint32_t)index, place) & mask;
  struct step_part *part = NULL;
  for (uint32_t slot; (slot = m->by_step.slots[at]) != 0 && !part; at = (at + 1) & mask) {
    if (m->steps[slot - 1].step == index && m->steps[slot - 1].entry.place == place)
      part = &m->steps[slot - 1];
  }
  if (!part && m->step_count == PARTS_MAX) {
    m->overflow = true;
    return;
  }
  if (!part) {
    part = sc_array_push(&m->steps, &m->step_count, &m->step_cap, sizeof *part);
    if (!part) {
      t->analysis->failed = true;
      return;
    }
    *part = (struct step_part){.step = (uint32_t)index, .entry = {.place = place}};
    m->by_step.slots[at] = (uint32_t)m->step_count;
    ++m->by_step.used;
  }
  ++part->entry.count;
  part->entry.wait_ns += call->duration_ns;
}

void sc_tally_sync(struct sc_analysis_thread *t, const struct raw_site *site, const struct sc_record_call *call)
{
  struct tally_maker *m = t->analysis->tally;
  if (t->analysis->marked.count && m->counted_from_ns == 0)
    m->counted_from_ns = sc_steps_counted_from(t->analysis);
  const struct raw_place key = {
      .site = site, .node = t->node, .allow = allowed_by(t), .thread = t, .warm = warm_now(t, call->start_ns)};
  uint32_t index;
  t->log_open = false;
  if (!place_of(m, &key, &index, &t->analysis->failed))
    return;
  t->log_place = index;
  t->log_open = true;
  ++m->places[index].count;
  m->places[index].wait_ns += call->duration_ns;
  if (t->analysis->marked.count)
    count_step(t, index, call);
  if (t->depth == 0 && t->span_count == 0) { /* nothing that this could be an occurrence of */
    t->log_count = 0;
    return;
  }
  if (t->log_count >= (t->log_compact ? t->log_compact : COMPACT_AT))
    compact(t);
  struct tally_entry *entry = sc_array_push(&t->log, &t->log_count, &t->log_cap, sizeof *entry);
  if (!entry) {
    t->analysis->failed = true;
    return;
  }
  *entry = (struct tally_entry){.place = index, .count = 1, .wait_ns = call->duration_ns};
}

/* A call that is part of the last sync. Its range may be over: the place has its wait, the occurrence then has not. */
void sc_tally_join(struct sc_analysis_thread *t, uint64_t wait_ns)
{
  if (!t->log_open)
    return;
  t->analysis->tally->places[t->log_place].wait_ns += wait_ns;
  if (t->log_count && t->log[t->log_count - 1].place == t->log_place)
    t->log[t->log_count - 1].wait_ns += wait_ns;
}

/* ---- an occurrence --------------------------------------------------------------------------- */

static uint64_t uncertain_so_far(const struct sc_analysis_thread *t)
{
  return t->total.uncertain + (t->outside ? 0 : t->fresh.uncertain);
}

struct tally_mark sc_tally_open(const struct sc_analysis_thread *t)
{
  return (struct tally_mark){.entry = t->log_count, .uncertain = uncertain_so_far(t)};
}

/* Whatever the path; and steps are one series whatever their names, for those may have numbers in them. */
static struct ordinal *ordinal_of(struct tally_maker *m, const struct sc_node *node, const struct sc_analysis_thread *t)
{
  if (!make_room(m, &m->by_ordinal, ordinal_hash))
    return NULL;
  const uint64_t name =
      node->level == SC_LEVEL_STEP ? STEPS_NAME : sc_hash_text(sc_hash_text(SC_HASH_SEED, node->domain), node->name);
  size_t mask = m->by_ordinal.size - 1, at = sc_hash_mix(name, (uintptr_t)t) & mask;
  for (uint32_t slot; (slot = m->by_ordinal.slots[at]) != 0; at = (at + 1) & mask) {
    if (m->ordinals[slot - 1].name == name && m->ordinals[slot - 1].thread == t)
      return &m->ordinals[slot - 1];
  }
  struct ordinal *made = sc_array_push(&m->ordinals, &m->ordinal_count, &m->ordinal_cap, sizeof *made);
  if (!made)
    return NULL;
  *made = (struct ordinal){.name = name, .thread = t};
  m->by_ordinal.slots[at] = (uint32_t)m->ordinal_count;
  ++m->by_ordinal.used;
  return made;
}

static bool same_profile(const struct tally_maker *m, const struct raw_profile *a, const struct raw_profile *b,
                         const struct tally_entry *parts)
{
  if (a->hash != b->hash || a->node != b->node || a->thread != b->thread || a->warm != b->warm ||
      a->unfinished != b->unfinished || a->uncertain != b->uncertain || a->part_count != b->part_count)
    return false;
  for (size_t i = 0; i < a->part_count; ++i) {
    const struct tally_entry *part = &m->parts[a->parts + i];
    if (part->place != parts[i].place || part->count != parts[i].count)
      return false;
  }
  return true;
}

static bool add_profile(struct tally_maker *m, struct raw_profile *fresh, const struct tally_entry *parts, size_t slot)
{
  if (m->part_count + fresh->part_count > PARTS_MAX) {
    m->overflow = true;
    return true;
  }
  fresh->parts = m->part_count;
  fresh->times = 1;
  for (size_t i = 0; i < fresh->part_count; ++i) {
    struct tally_entry *part = sc_array_push(&m->parts, &m->part_count, &m->part_cap, sizeof *part);
    if (!part)
      return false;
    *part = parts[i];
  }
  struct raw_profile *out = sc_array_push(&m->profiles, &m->profile_count, &m->profile_cap, sizeof *out);
  if (!out)
    return false;
  *out = *fresh;
  m->by_profile.slots[slot] = (uint32_t)m->profile_count;
  ++m->by_profile.used;
  return true;
}

static bool count_profile(struct tally_maker *m, struct raw_profile *fresh, const struct tally_entry *parts)
{
  uint64_t hash =
      sc_hash_mix(sc_hash_mix((uintptr_t)fresh->node, (uintptr_t)fresh->thread), fresh->warm + 8u * fresh->unfinished);
  hash = sc_hash_mix(hash, fresh->uncertain);
  for (size_t i = 0; i < fresh->part_count; ++i)
    hash = sc_hash_mix(sc_hash_mix(hash, parts[i].place), parts[i].count);
  fresh->hash = hash;
  if (!make_room(m, &m->by_profile, profile_hash))
    return false;
  size_t mask = m->by_profile.size - 1, at = hash & mask;
  for (uint32_t slot; (slot = m->by_profile.slots[at]) != 0; at = (at + 1) & mask) {
    struct raw_profile *known = &m->profiles[slot - 1];
    if (!same_profile(m, known, fresh, parts))
      continue;
    ++known->times;
    for (size_t i = 0; i < known->part_count; ++i)
      m->parts[known->parts + i].wait_ns += parts[i].wait_ns;
    return true;
  }
  return add_profile(m, fresh, parts, at);
}

static bool take_slice(struct tally_maker *m, const struct sc_analysis_thread *t, size_t from, size_t *count)
{
  size_t n = t->log_count > from ? t->log_count - from : 0;
  if (n > m->scratch_cap) {
    struct tally_entry *scratch = realloc(m->scratch, n * 2 * sizeof *scratch);
    if (!scratch)
      return false;
    m->scratch = scratch;
    m->scratch_cap = n * 2;
  }
  if (n)
    memcpy(m->scratch, t->log + from, n * sizeof *m->scratch);
  *count = gather(m->scratch, n);
  return true;
}

/* Call before the range is taken out, and before a step is counted as ended. */
void sc_tally_close(struct sc_analysis_thread *t, const struct sc_node *node, const struct tally_mark *mark,
                    uint64_t now_ns, bool unfinished)
{
  struct tally_maker *m = t->analysis->tally;
  struct ordinal *ordinal = ordinal_of(m, node, t);
  struct raw_profile fresh = {.node = node, .thread = t, .warm = warm_now(t, now_ns), .unfinished = unfinished};
  fresh.uncertain = uncertain_so_far(t) - mark->uncertain;
  if (fresh.uncertain > INT64_MAX) /* one that was settled had come before the range */
    fresh.uncertain = 0;
  if (ordinal) {
    fresh.first = ordinal->closed++;
    fresh.series = (size_t)(ordinal - m->ordinals);
    if (fresh.first < t->analysis->warmup)
      fresh.warm |= WARM_BY_ORDINAL;
  }
  if (!ordinal || !take_slice(m, t, mark->entry, &fresh.part_count) || !count_profile(m, &fresh, m->scratch))
    t->analysis->failed = true;
}

void sc_tally_closed(struct sc_analysis_thread *t)
{
  if (t->depth == 0 && t->span_count == 0)
    t->log_count = 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

struct tally_maker *sc_tally_new(void) { return calloc(1, sizeof(struct tally_maker)); }

void sc_tally_maker_free(struct tally_maker *m)
{
  if (!m)
    return;
  free(m->places);
  free(m->profiles);
  free(m->ordinals);
  free(m->parts);
  free(m->scratch);
  free(m->by_place.slots);
  free(m->by_profile.slots);
  free(m->by_ordinal.slots);
  free(m->steps);
  free(m->by_step.slots);
  free(m);
}

static bool has_marked_steps(const struct sc_analysis *a) { return a->step_count == 0 && a->marked.count > 0; }

static bool is_warm(const struct sc_analysis_thread *t, unsigned warm, unsigned by_count)
{
  if (has_marked_steps(t->analysis))
    return (warm & (WARM_BY_TIME | WARM_BY_MARK)) != 0;
  return (warm & WARM_BY_TIME) || (warm & (t->steps ? (unsigned)WARM_BY_STEP : by_count));
}

/* In process->ranges. */
static size_t range_of(const struct sc_analysis *a, const struct sc_node *node)
{
  uint32_t index = node && node != &a->tree.root ? a->tree.range_of[node->serial] : UINT32_MAX;
  return index == UINT32_MAX ? SC_NOWHERE : index;
}

static bool emit_places(const struct sc_analysis *a, const uint32_t *serial_of, struct sc_tally *out)
{
  const struct tally_maker *m = a->tally;
  for (size_t i = 0; i < m->place_count; ++i) {
    const struct raw_place *raw = &m->places[i];
    struct sc_place *place = sc_array_push(&out->places, &out->place_count, &out->place_cap, sizeof *place);
    if (!place)
      return false;
    *place = (struct sc_place){.site = serial_of[raw->site - a->sites.sites],
                               .range = range_of(a, raw->node),
                               .allow = range_of(a, raw->allow),
                               .thread = raw->thread->index,
                               .warmup = is_warm(raw->thread, raw->warm, 0),
                               .count = raw->count,
                               .wait_ns = raw->wait_ns};
    out->warmup_unknown |= a->warmup && raw->thread->steps == 0 && !has_marked_steps(a);
  }
  return true;
}

static bool emit_profiles(const struct sc_analysis *a, struct sc_tally *out)
{
  const struct tally_maker *m = a->tally;
  for (size_t i = 0; i < m->profile_count; ++i) {
    const struct raw_profile *raw = &m->profiles[i];
    if (range_of(a, raw->node) == SC_NOWHERE) /* below a path on which nothing happened: not in process->ranges */
      continue;
    struct sc_profile *profile = sc_array_push(&out->profiles, &out->profile_count, &out->profile_cap, sizeof *profile);
    if (!profile)
      return false;
    *profile = (struct sc_profile){.range = range_of(a, raw->node),
                                   .thread = raw->thread->index,
                                   .series = raw->series,
                                   .first = raw->first,
                                   .times = raw->times,
                                   .uncertain = raw->uncertain,
                                   .warmup = is_warm(raw->thread, raw->warm, WARM_BY_ORDINAL),
                                   .unfinished = raw->unfinished};
    profile->parts = raw->part_count ? sc_calloc_array(raw->part_count, sizeof *profile->parts) : NULL;
    if (raw->part_count && !profile->parts)
      return false;
    for (; profile->part_count < raw->part_count; ++profile->part_count) {
      const struct tally_entry *part = &m->parts[raw->parts + profile->part_count];
      profile->parts[profile->part_count] = (struct sc_part){part->place, part->count, part->wait_ns};
    }
  }
  return true;
}

static int by_step(const void *left, const void *right)
{
  const struct step_part *a = left, *b = right;
  if (a->step != b->step)
    return a->step < b->step ? -1 : 1;
  return (a->entry.place > b->entry.place) - (a->entry.place < b->entry.place);
}

/* One profile a step that marks delimit, whatever its syncs. */
static bool emit_steps(const struct sc_analysis *a, struct sc_tally *out)
{
  struct tally_maker *m = a->tally;
  size_t next = 0;
  if (!has_marked_steps(a))
    return true;
  if (m->step_count)
    qsort(m->steps, m->step_count, sizeof *m->steps, by_step);
  out->series_count = m->ordinal_count + 1;
  for (size_t i = 0; i < a->marked.count; ++i) {
    const size_t first = next;
    while (next < m->step_count && m->steps[next].step == i)
      ++next;
    if (a->marked.list[i].state == STEP_OUTSIDE)
      continue;
    struct sc_profile *profile = sc_array_push(&out->profiles, &out->profile_count, &out->profile_cap, sizeof *profile);
    if (!profile)
      return false;
    *profile = (struct sc_profile){.range = SC_NOWHERE,
                                   .thread = SC_NOWHERE,
                                   .series = m->ordinal_count,
                                   .first = i,
                                   .times = 1,
                                   .warmup = a->marked.list[i].state == STEP_WARMUP};
    profile->parts = next > first ? sc_calloc_array(next - first, sizeof *profile->parts) : NULL;
    if (next > first && !profile->parts)
      return false;
    for (size_t k = first; k < next; ++k)
      profile->parts[profile->part_count++] =
          (struct sc_part){m->steps[k].entry.place, m->steps[k].entry.count, m->steps[k].entry.wait_ns};
  }
  return true;
}

static bool is_all_warmup(const struct sc_analysis *a)
{
  if (a->from_ns == UINT64_MAX)
    return true;
  if (has_marked_steps(a))
    return sc_steps_counted_from(a) == UINT64_MAX;
  return a->step_count > 0 && a->step_warmup == a->step_count;
}

bool sc_tally_finish(const struct sc_analysis *a, const uint32_t *serial_of, struct sc_process *process)
{
  process->tally = calloc(1, sizeof *process->tally);
  if (!process->tally)
    return false;
  process->tally->overflow = a->tally->overflow;
  process->tally->series_count = a->tally->ordinal_count;
  process->tally->all_warmup = is_all_warmup(a);
  return emit_places(a, serial_of, process->tally) && emit_profiles(a, process->tally) && emit_steps(a, process->tally);
}

void sc_tally_free(struct sc_tally *tally)
{
  if (!tally)
    return;
  for (size_t i = 0; i < tally->profile_count; ++i)
    free(tally->profiles[i].parts);
  free(tally->profiles);
  free(tally->places);
  free(tally);
}
