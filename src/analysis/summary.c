/* SPDX-License-Identifier: Apache-2.0
 * What several ranges or several processes say together: allowed syncs by reason, ranks side by side. */
#include "analysis/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALLOW "synccount.allow:"

/* ---- allowed syncs ----------------------------------------------------------------------------- */

static struct sc_allowed *allowed_of(struct sc_allowed **list, size_t *count, size_t *cap, const char *reason)
{
  for (size_t i = 0; i < *count; ++i) {
    if (strcmp((*list)[i].reason, reason) == 0)
      return &(*list)[i];
  }
  struct sc_allowed *fresh = sc_array_push(list, count, cap, sizeof *fresh);
  if (fresh)
    fresh->reason = reason;
  return fresh;
}

bool sc_process_allowed(const struct sc_process *process, struct sc_allowed **out, size_t *count)
{
  struct sc_allowed *list = NULL;
  size_t used = 0, cap = 0;
  for (size_t i = 0; i < process->range_count; ++i) {
    const struct sc_range_findings *range = &process->ranges[i];
    if (!range->level || strcmp(range->level, "allow") != 0)
      continue;
    /* A report that was read back may call any range allowed. */
    const bool ours = strncmp(range->name, ALLOW, strlen(ALLOW)) == 0;
    struct sc_allowed *one = allowed_of(&list, &used, &cap, ours ? range->name + strlen(ALLOW) : range->name);
    if (!one) {
      free(list);
      return false;
    }
    one->occurrences += range->occurrences;
    one->syncs += range->total.syncs;
  }
  *out = list;
  *count = used;
  return true;
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

static struct sc_rank *rank_of(struct sc_ranks *ranks, size_t *cap, const char *name)
{
  for (size_t i = 0; i < ranks->count; ++i) {
    if (strcmp(ranks->list[i].rank, name) == 0)
      return &ranks->list[i];
  }
  struct sc_rank *fresh = sc_array_push(&ranks->list, &ranks->count, cap, sizeof *fresh);
  if (fresh)
    *fresh = (struct sc_rank){.rank = name, .wait_us = NAN, .wall_us = NAN, .step_median = NAN};
  return fresh;
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

/* The count that more than half of the ranks have. */
static void find_usual(struct sc_ranks *ranks)
{
  for (size_t i = 0; i < ranks->count && !ranks->has_usual; ++i) {
    size_t same = 0;
    for (size_t k = 0; k < ranks->count; ++k)
      same += ranks->list[k].syncs == ranks->list[i].syncs;
    ranks->has_usual = same * 2 > ranks->count;
    ranks->usual = ranks->list[i].syncs;
  }
}

bool sc_findings_ranks(const struct sc_findings *findings, struct sc_ranks *out)
{
  size_t cap = 0;
  *out = (struct sc_ranks){0};
  for (size_t i = 0; i < findings->process_count; ++i) {
    const struct sc_process *process = &findings->processes[i];
    if (!process->rank || process->unmeasured)
      continue;
    struct sc_rank *rank = rank_of(out, &cap, process->rank);
    if (!rank) {
      sc_ranks_free(out);
      return false;
    }
    add_to_rank(rank, process);
  }
  if (out->count)
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
  for (size_t i = 0; i < f->process_count; ++i)
    simulated |= f->processes[i].simulated;
  return simulated;
}

bool sc_process_is_simulated(const struct sc_findings *f, const struct sc_process *p)
{
  bool says_which = false;
  for (size_t i = 0; i < f->process_count && !p->simulated; ++i)
    says_which |= f->processes[i].simulated;
  return p->simulated || (f->simulated && !says_which);
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
