/* SPDX-License-Identifier: Apache-2.0
 * What several ranges or several processes say together: allowed syncs by reason, ranks side by side. */
#include "analysis/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALLOW "synccount.allow:"

/* ---- what has the same name -------------------------------------------------------------------- */

struct named {
  const char *name;
  size_t first; /* index of the first entry of this name */
};

/* Entries by name, however many there are. */
struct names {
  struct named *slots;
  size_t size; /* a power of two, more than there are names */
};

static bool names_init(struct names *names, size_t count)
{
  names->size = 16;
  while (names->size / 2 < count)
    names->size *= 2;
  names->slots = sc_calloc_array(names->size, sizeof *names->slots);
  return names->slots != NULL;
}

/* The index that was given with this name first. */
static size_t names_first(struct names *names, const char *name, size_t index)
{
  size_t at = (size_t)sc_hash_mix(0, sc_hash_text(SC_HASH_SEED, name)) & (names->size - 1);
  while (names->slots[at].name && strcmp(names->slots[at].name, name) != 0)
    at = (at + 1) & (names->size - 1);
  if (!names->slots[at].name)
    names->slots[at] = (struct named){name, index};
  return names->slots[at].first;
}

/* ---- allowed syncs ----------------------------------------------------------------------------- */

bool sc_range_is_allowed(const struct sc_range_findings *range)
{
  return range->level && strcmp(range->level, "allow") == 0;
}

static size_t allowed_ranges(const struct sc_process *process)
{
  size_t count = 0;
  for (size_t i = 0; i < process->range_count; ++i)
    count += sc_range_is_allowed(&process->ranges[i]);
  return count;
}

static void add_allowed(const struct sc_process *process, struct names *reasons, struct sc_allowed *list, size_t *used)
{
  for (size_t i = 0; i < process->range_count; ++i) {
    const struct sc_range_findings *range = &process->ranges[i];
    if (!sc_range_is_allowed(range))
      continue;
    /* A report that was read back may call any range allowed. */
    const bool ours = strncmp(range->name, ALLOW, strlen(ALLOW)) == 0;
    const char *reason = ours ? range->name + strlen(ALLOW) : range->name;
    const size_t at = names_first(reasons, reason, *used);
    *used += at == *used;
    list[at].reason = reason;
    list[at].occurrences += range->occurrences;
    list[at].syncs += range->total.syncs;
  }
}

static bool sum_allowed(const struct sc_process *processes, size_t process_count, struct sc_allowed **out,
                        size_t *count)
{
  size_t used = 0, ranges = 0;
  for (size_t i = 0; i < process_count; ++i)
    ranges += allowed_ranges(&processes[i]);
  struct names reasons = {0};
  struct sc_allowed *list = sc_calloc_array(ranges + 1, sizeof *list);
  if (!list || !names_init(&reasons, ranges)) {
    free(list);
    return false;
  }
  for (size_t i = 0; i < process_count; ++i)
    add_allowed(&processes[i], &reasons, list, &used);
  free(reasons.slots);
  *out = list;
  *count = used;
  return true;
}

bool sc_process_allowed(const struct sc_process *process, struct sc_allowed **out, size_t *count)
{
  return sum_allowed(process, 1, out, count);
}

bool sc_findings_allowed(const struct sc_findings *findings, struct sc_allowed **out, size_t *count)
{
  return sum_allowed(findings->processes, findings->process_count, out, count);
}

/* ---- threads and ranks -------------------------------------------------------------------------- */

const struct sc_thread_findings *sc_process_longest_wait(const struct sc_process *process, size_t *waiting)
{
  const struct sc_thread_findings *longest = NULL;
  size_t count = 0;
  for (size_t i = 0; i < process->thread_count; ++i) {
    const struct sc_thread_findings *thread = &process->threads[i];
    if (!thread->syncs)
      continue;
    ++count;
    if (!longest || thread->wait_us > longest->wait_us)
      longest = thread;
  }
  if (waiting)
    *waiting = count;
  return longest;
}

static int by_rank(const void *left, const void *right)
{
  const struct sc_rank *a = left, *b = right;
  uint64_t x, y;
  bool number = sc_parse_u64(a->rank, &x), other = sc_parse_u64(b->rank, &y);
  if (number && other)
    return (x > y) - (x < y);
  return number != other ? other - number : strcmp(a->rank, b->rank);
}

static struct sc_rank *rank_of(struct sc_ranks *ranks, struct names *names, const char *name)
{
  struct sc_rank *rank = &ranks->list[names_first(names, name, ranks->count)];
  if (!rank->rank) {
    *rank = (struct sc_rank){.rank = name, .wait_us = NAN, .wall_us = NAN, .step_median = NAN};
    ++ranks->count;
  }
  return rank;
}

static void add_to_rank(struct sc_rank *rank, const struct sc_process *process)
{
  const struct sc_thread_findings *longest = sc_process_longest_wait(process, NULL);
  ++rank->processes;
  rank->syncs += process->counts.syncs;
  if (longest && !(rank->wait_us >= longest->wait_us)) { /* true for NaN as well */
    rank->wait_us = longest->wait_us;
    rank->wall_us = process->wall_us;
  }
  if (process->has_steps && isnan(rank->step_median))
    rank->step_median = process->step_median;
}

/* The count that more than half of the ranks have: only the one that is left when each is struck out with another one
 * can be it. */
static void find_usual(struct sc_ranks *ranks)
{
  size_t left = 0, same = 0;
  for (size_t i = 0; i < ranks->count; ++i) {
    if (left == 0)
      ranks->usual = ranks->list[i].syncs;
    left = ranks->list[i].syncs == ranks->usual ? left + 1 : left - 1;
  }
  for (size_t i = 0; i < ranks->count; ++i)
    same += ranks->list[i].syncs == ranks->usual;
  ranks->has_usual = same * 2 > ranks->count;
}

bool sc_findings_ranks(const struct sc_findings *findings, struct sc_ranks *out)
{
  struct names names = {0};
  *out = (struct sc_ranks){.list = sc_calloc_array(findings->process_count + 1, sizeof *out->list)};
  if (!out->list || !names_init(&names, findings->process_count)) {
    sc_ranks_free(out);
    return false;
  }
  for (size_t i = 0; i < findings->process_count; ++i) {
    const struct sc_process *process = &findings->processes[i];
    if (process->rank && !process->unmeasured)
      add_to_rank(rank_of(out, &names, process->rank), process);
  }
  free(names.slots);
  if (out->count == 0) {
    sc_ranks_free(out);
    return true;
  }
  qsort(out->list, out->count, sizeof *out->list, by_rank);
  for (size_t i = 0; i < out->count; ++i) {
    const struct sc_rank *rank = &out->list[i];
    out->total += rank->syncs;
    if (i == 0 || rank->syncs < out->min)
      out->min = rank->syncs;
    if (rank->syncs > out->max)
      out->max = rank->syncs;
    if (!isnan(rank->wait_us) && (!out->waits_most || rank->wait_us > out->waits_most->wait_us))
      out->waits_most = rank;
    if (!isnan(rank->wait_us) && (!out->waits_least || rank->wait_us < out->waits_least->wait_us))
      out->waits_least = rank;
  }
  find_usual(out);
  return true;
}

void sc_ranks_free(struct sc_ranks *ranks)
{
  free(ranks->list);
  *ranks = (struct sc_ranks){0};
}

bool sc_findings_simulated(const struct sc_findings *f)
{
  bool simulated = f->simulated;
  for (size_t i = 0; i < f->process_count && !simulated; ++i)
    simulated = f->processes[i].simulated;
  return simulated;
}

bool sc_process_is_simulated(const struct sc_findings *f, const struct sc_process *p)
{
  bool says_which = false;
  if (p->simulated || !f->simulated)
    return p->simulated;
  for (size_t i = 0; i < f->process_count && !says_which; ++i)
    says_which = f->processes[i].simulated;
  return !says_which;
}

bool sc_process_is_whole(const struct sc_process *p)
{
  return p->counts_whole || (p->lost_records == 0 && p->lost_chunks == 0);
}

/* ---- floor --------------------------------------------------------------------------------------- */

bool sc_process_floor(const struct sc_findings *f, const struct sc_process *p, struct sc_process_floor *out)
{
  const struct sc_ruler_row *trip = sc_findings_ruler(f, "launch+readback");
  double trips_a_step = NAN;
  uint64_t site_trips = 0;
  *out = p->floor;
  if (p->floor_told)
    return true;
  *out = (struct sc_process_floor){.round_trips = p->counts.read_backs + p->counts.blocking_uploads,
                                   .round_trip_us = trip ? trip->mean_us : NAN};
  if (isnan(out->round_trip_us) || f->simulated || p->simulated || out->round_trips == 0)
    return false;
  out->total_us = (double)out->round_trips * out->round_trip_us;
  for (size_t i = 0; i < p->site_count; ++i) {
    const struct sc_site *site = &p->sites[i];
    if (site->kind != SC_SITE_SYNC || isnan(site->per_step) || site->count == 0)
      continue;
    const uint64_t trips = site->read_backs + site->blocking_uploads;
    double share = (double)trips / (double)site->count;
    site_trips += trips;
    trips_a_step = (isnan(trips_a_step) ? 0 : trips_a_step) + site->per_step * share;
  }
  out->per_step_us = site_trips ? trips_a_step * out->round_trip_us : NAN;
  return true;
}

/* ---- what being traced cost ----------------------------------------------------------------------- */

double sc_process_tracer_cost(const struct sc_process *p, uint64_t *calls)
{
  const uint64_t launches = p->counts.launches;
  const uint64_t others = p->counts.api_calls > launches ? p->counts.api_calls - launches : 0;
  if (calls)
    *calls = others;
  if (!isnan(p->told_cost_us))
    return p->told_cost_us;
  return (double)others * p->call_cost_us + (double)launches * p->launch_cost_us;
}
