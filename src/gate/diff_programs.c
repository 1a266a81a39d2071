/* SPDX-License-Identifier: Apache-2.0
 * Two traced programs: by range and by site. Processes are added up, for a new run of a program has other numbers;
 * steps too, under one name, for it may have more of them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/diff.h"
#include "gate/judge.h"

struct side {
  uint64_t syncs, by_class[SC_CLASS_COUNT], poll_waits, uncertain, lost;
  double wait_us, step_median; /* of the process with most a step; NaN: no steps */
  size_t measured;
};

struct entry { /* a range or a site of both sides */
  char *key, *what;
  bool there[2];
  uint64_t count[2], times[2], most[2];
  double wait_us[2], per_step[2];
  double in_process; /* a step, of the process that is being added */
};

struct table {
  struct entry *list;
  size_t count, cap;
  uint32_t *slots; /* by key: index + 1 */
  size_t slot_count;
};

static struct side sum_up(const struct sc_findings *f)
{
  struct side s = {.step_median = NAN};
  for (size_t i = 0; i < f->process_count; ++i) {
    const struct sc_process *p = &f->processes[i];
    if (p->unmeasured)
      continue;
    ++s.measured;
    s.syncs += p->counts.syncs;
    for (int c = 0; c < SC_CLASS_COUNT; ++c)
      s.by_class[c] += p->counts.by_class[c];
    s.poll_waits += p->counts.poll_waits;
    s.uncertain += p->counts.uncertain;
    s.wait_us += (double)p->counts.wait_ns / 1e3;
    s.lost += p->lost_records + p->lost_chunks;
    if (p->has_steps && !isnan(p->step_median) && (isnan(s.step_median) || p->step_median > s.step_median))
      s.step_median = p->step_median;
  }
  return s;
}

/* ---- entries by key -------------------------------------------------------------------------- */

static uint64_t hash_of(const char *key)
{
  const uint64_t hash = sc_hash_text(SC_HASH_SEED, key);
  return hash ^ hash >> 32;
}

static bool grow(struct table *table)
{
  size_t size = table->slot_count ? table->slot_count * 2 : 256;
  uint32_t *slots = sc_calloc_array(size, sizeof *slots);
  if (!slots)
    return false;
  for (size_t i = 0; i < table->count; ++i) {
    size_t at = hash_of(table->list[i].key) & (size - 1);
    while (slots[at])
      at = (at + 1) & (size - 1);
    slots[at] = (uint32_t)i + 1;
  }
  free(table->slots);
  table->slots = slots;
  table->slot_count = size;
  return true;
}

/* Takes key over; what it is called is copied when it is new. NULL: memory is out. */
static struct entry *entry_of(struct table *table, char *key, const char *what)
{
  if (!key || (table->count * 2 >= table->slot_count && !grow(table))) {
    free(key);
    return NULL;
  }
  size_t at = hash_of(key) & (table->slot_count - 1);
  while (table->slots[at] && strcmp(table->list[table->slots[at] - 1].key, key) != 0)
    at = (at + 1) & (table->slot_count - 1);
  if (table->slots[at]) {
    free(key);
    return &table->list[table->slots[at] - 1];
  }
  struct entry *entry = sc_array_push(&table->list, &table->count, &table->cap, sizeof *entry);
  if (!entry) {
    free(key);
    return NULL;
  }
  table->slots[at] = (uint32_t)table->count;
  entry->key = key;
  entry->what = sc_strdup(what);
  entry->per_step[0] = entry->per_step[1] = NAN;
  return entry->what ? entry : NULL;
}

static void free_table(struct table *table)
{
  for (size_t i = 0; i < table->count; ++i) {
    free(table->list[i].key);
    free(table->list[i].what);
  }
  free(table->list);
  free(table->slots);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static bool is_step(const struct sc_range_findings *range) { return range->level && strcmp(range->level, "step") == 0; }

/* Numbers become '*'. */
static void put_numberless(struct sc_buf *buf, const char *name)
{
  while (*name) {
    size_t digits = strspn(name, "0123456789");
    if (digits) {
      sc_buf_puts(buf, "*");
      name += digits;
    } else {
      sc_buf_append(buf, name++, 1);
    }
  }
}

#define DEPTH_MAX 128

/* The path, with steps under one name. */
static char *path_of(const struct sc_process *p, const size_t *parents, size_t index)
{
  const struct sc_range_findings *chain[DEPTH_MAX];
  size_t count = 0;
  struct sc_buf buf = {0};
  for (size_t r = index; r != SC_NOWHERE && count < DEPTH_MAX; r = parents[r])
    chain[count++] = &p->ranges[r];
  while (count) {
    const struct sc_range_findings *range = chain[--count];
    if (is_step(range))
      put_numberless(&buf, range->name);
    else
      sc_buf_puts(&buf, range->name);
    if (count)
      sc_buf_puts(&buf, "/");
  }
  if (buf.failed) {
    sc_buf_free(&buf);
    return NULL;
  }
  return buf.data ? buf.data : sc_strdup("");
}

static void add_ranges(struct sc_diff *diff, struct table *table, const struct sc_findings *f, int side)
{
  for (size_t i = 0; i < f->process_count && !diff->failed; ++i) {
    const struct sc_process *p = &f->processes[i];
    size_t *parents = range_parents(p);
    diff->failed |= !parents;
    for (size_t r = 0; r < p->range_count && !diff->failed; ++r) {
      const struct sc_range_findings *range = &p->ranges[r];
      char *path = path_of(p, parents, r);
      char *key = path ? sc_asprintf("%d %s %s", range->spanning, range->domain ? range->domain : "", path) : NULL;
      struct entry *entry = path ? entry_of(table, key, path) : NULL;
      free(path);
      if (!entry) {
        diff->failed = true;
        break;
      }
      entry->there[side] = true;
      entry->count[side] += range->total.syncs;
      entry->times[side] += range->occurrences;
      entry->wait_us[side] += (double)range->total.wait_ns / 1e3;
      if (!isnan(range->median) && range->max > entry->most[side])
        entry->most[side] = range->max;
    }
    free(parents);
  }
}

/* ---- sites ----------------------------------------------------------------------------------- */

/* The lines of a function are one: a sync that went away must not make those behind it look new. */
static char *site_name(const struct sc_process *p, const struct sc_site *site)
{
  const struct sc_frame *frame = sc_site_frame(site);
  const char *file = frame && frame->file ? sc_process_file(p, frame->file) : NULL;
  const char *function = frame && frame->function ? frame->function : NULL;
  struct sc_buf buf = {0};
  if (file)
    sc_buf_printf(&buf, "%s in ", file);
  sc_buf_puts(&buf, function ? function : site->range ? site->range : "(no stack)");
  sc_buf_printf(&buf, " (%s, %s)", site->api, sc_class_name(site->cls));
  if (buf.failed) {
    sc_buf_free(&buf);
    return NULL;
  }
  return buf.data;
}

static bool add_site(struct table *table, const struct sc_process *p, const struct sc_site *site, int side)
{
  char *name = site_name(p, site);
  struct entry *entry = name ? entry_of(table, sc_strdup(name), name) : NULL;
  free(name);
  if (!entry)
    return false;
  entry->there[side] = true;
  entry->count[side] += site->count;
  if (!isnan(site->wait_total_us))
    entry->wait_us[side] += site->wait_total_us;
  if (!isnan(site->per_step))
    entry->in_process += site->per_step;
  return true;
}

/* Of several processes the one with most a step is told. */
static void fold_process(struct table *table, int side)
{
  for (size_t i = 0; i < table->count; ++i) {
    struct entry *entry = &table->list[i];
    if (isnan(entry->per_step[side]) || entry->in_process > entry->per_step[side])
      entry->per_step[side] = entry->in_process;
    entry->in_process = 0;
  }
}

static void add_sites(struct sc_diff *diff, struct table *table, const struct sc_findings *f, int side)
{
  for (size_t i = 0; i < f->process_count; ++i) {
    const struct sc_process *p = &f->processes[i];
    for (size_t k = 0; k < p->site_count && !diff->failed; ++k)
      diff->failed |= p->sites[k].kind == SC_SITE_SYNC && !add_site(table, p, &p->sites[k], side);
    fold_process(table, side);
  }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void emit(struct sc_diff *diff, const struct table *table, enum diff_section section, bool per_step)
{
  const bool simulated[2] = {sc_findings_simulated(diff->before), sc_findings_simulated(diff->after)};
  for (size_t i = 0; i < table->count && !diff->failed; ++i) {
    const struct entry *e = &table->list[i];
    double value[2];
    for (int side = 0; side < 2; ++side) {
      value[side] = section == DIFF_RANGES ? (double)e->most[side]
                    : per_step             ? e->per_step[side]
                                           : (double)e->count[side];
      if (!e->there[side])
        value[side] = NAN;
      else if (isnan(value[side])) /* there, and in no step */
        value[side] = 0;
    }
    struct diff_row *row = diff_add(diff, section, DIFF_COUNT, sc_strdup(e->what),
                                    section == DIFF_RANGES ? "an occurrence, most"
                                    : per_step             ? "a step"
                                                           : "in all",
                                    value[0], value[1]);
    if (!row)
      return;
    row->wait_before_us = simulated[0] || !e->there[0] ? NAN : e->wait_us[0];
    row->wait_after_us = simulated[1] || !e->there[1] ? NAN : e->wait_us[1];
    if (section == DIFF_RANGES) {
      row->times_before = e->times[0];
      row->times_after = e->times[1];
      diff->more |= e->there[0] && e->there[1] && value[1] > value[0];
    }
  }
}

static void add_totals(struct sc_diff *diff, const struct side *b, const struct side *a, bool per_step)
{
  if (per_step)
    diff_add(diff, DIFF_TOTALS, DIFF_COUNT, sc_strdup("syncs"), "a step, median", b->step_median, a->step_median);
  diff_add(diff, DIFF_TOTALS, DIFF_COUNT, sc_strdup("syncs"), "in all", (double)b->syncs, (double)a->syncs);
  for (int c = 0; c < SC_CLASS_COUNT; ++c)
    diff_add(diff, DIFF_TOTALS, DIFF_COUNT, sc_asprintf("syncs, %s", sc_class_name((enum sc_class)c)), "in all",
             (double)b->by_class[c], (double)a->by_class[c]);
  diff_add(diff, DIFF_TOTALS, DIFF_COUNT, sc_strdup("poll waits"), "in all", (double)b->poll_waits,
           (double)a->poll_waits);
  if (!sc_findings_simulated(diff->before) && !sc_findings_simulated(diff->after))
    diff_add(diff, DIFF_TOTALS, DIFF_TIME, sc_strdup("wait"), "in all", b->wait_us, a->wait_us);
}

static void doubt_side(struct sc_diff *diff, const struct side *side, const struct sc_findings *f, const char *which)
{
  if (side->measured < f->process_count)
    diff_doubt(diff, "%s: nothing could be counted in %zu of %zu processes", which, f->process_count - side->measured,
               f->process_count);
  if (side->lost)
    diff_doubt(diff, "%s: %" PRIu64 " records or chunks were lost", which, side->lost);
  if (side->uncertain)
    diff_doubt(diff, "%s: %" PRIu64 " calls could not be judged", which, side->uncertain);
}

void diff_programs(struct sc_diff *diff)
{
  const struct side b = sum_up(diff->before), a = sum_up(diff->after);
  struct table ranges = {0}, sites = {0};
  const bool per_step = !isnan(b.step_median) && !isnan(a.step_median);
  add_totals(diff, &b, &a, per_step);
  add_sites(diff, &sites, diff->before, 0);
  add_sites(diff, &sites, diff->after, 1);
  emit(diff, &sites, DIFF_SITES, per_step);
  add_ranges(diff, &ranges, diff->before, 0);
  add_ranges(diff, &ranges, diff->after, 1);
  emit(diff, &ranges, DIFF_RANGES, per_step);
  const bool one_sided = isnan(b.step_median) != isnan(a.step_median);
  diff->more |= per_step ? a.step_median > b.step_median : !one_sided && a.syncs > b.syncs;
  if (one_sided)
    diff_doubt(diff, "only %s has steps: sums over programs of different length cannot be compared",
               isnan(b.step_median) ? "the second" : "the first");
  doubt_side(diff, &b, diff->before, "before");
  doubt_side(diff, &a, diff->after, "after");
  free_table(&ranges);
  free_table(&sites);
}
