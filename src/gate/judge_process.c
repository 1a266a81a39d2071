/* SPDX-License-Identifier: Apache-2.0
 * Expectations over processes. Each process, and of ranges and steps each occurrence, is compared on its own: nothing
 * is averaged away. */
#include "gate/judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_SHOWN 8 /* ranges that are named when none matched */

struct scope { /* one process under one expectation */
  struct judging *j;
  const struct sc_process *p;
  const struct sc_tally *tally; /* NULL: it was read from a report */
  const struct sc_site **sites; /* by serial */
  size_t *parents;              /* [range_count]: the range that each is in */
  bool *wanted, *nested;        /* [range_count]; nested: in one that is wanted */
  uint64_t allowed;             /* syncs in synccount.allow: ranges */
  bool *taken;                  /* [place_count]: its syncs count, unless an exception takes them */
  bool *excepted;               /* [exception_count][place_count] */
  uint64_t *first;              /* [exception_count][series_count]: the first occurrence that has such syncs */
  uint64_t *took, *left;        /* [exception_count]; [place_count] of a unit: what an exception took, what remains */
  uint64_t submissions;
  bool several; /* there are more processes */
};

static bool by_range(const struct sc_gate_expectation *e)
{
  return e->range || e->level || e->measure == SC_GATE_PER_LAYER || e->measure == SC_GATE_PER_STEP;
}

static const char *wanted_level(const struct sc_gate_expectation *e)
{
  return e->measure == SC_GATE_PER_LAYER ? "layer" : e->measure == SC_GATE_PER_STEP ? "step" : e->level;
}

static bool wants_range(const struct sc_gate_expectation *e, const struct sc_range_findings *range)
{
  const char *level = wanted_level(e);
  if (level && !(range->level && strcmp(range->level, level) == 0))
    return false;
  return !e->range || range_matches(range, e->range);
}

/* ---- what is selected ------------------------------------------------------------------------ */

static bool place_in(const struct scope *s, const struct sc_place *place, const char *pattern)
{
  for (size_t r = place->range; r != SC_NOWHERE; r = s->parents[r]) {
    if (range_matches(&s->p->ranges[r], pattern))
      return true;
  }
  return false;
}

static bool site_selected(const struct scope *s, const struct sc_place *place)
{
  const struct sc_gate_expectation *e = s->j->e;
  const struct sc_site *site = s->sites[place->site];
  return (!e->site || sc_gate_site_matches(s->p, site, e->site)) && (e->cls < 0 || site->cls == (enum sc_class)e->cls);
}

static bool is_excepted(const struct scope *s, const struct sc_gate_exception *x, const struct sc_place *place)
{
  return (!x->site || sc_gate_site_matches(s->p, s->sites[place->site], x->site)) &&
         (!x->range || place_in(s, place, x->range));
}

static void select_places(struct scope *s)
{
  const struct sc_gate_expectation *e = s->j->e;
  const struct sc_tally *tally = s->tally;
  for (size_t i = 0; i < tally->place_count; ++i) {
    const struct sc_place *place = &tally->places[i];
    s->taken[i] = place->allow == SC_NOWHERE && site_selected(s, place) &&
                  (!e->thread || thread_matches(&s->p->threads[place->thread], e->thread));
    for (size_t k = 0; k < s->j->gate->exception_count; ++k)
      s->excepted[k * tally->place_count + i] = s->taken[i] && is_excepted(s, &s->j->gate->exceptions[k], place);
  }
}

static void select_ranges(struct scope *s)
{
  for (size_t i = 0; i < s->p->range_count; ++i) {
    const struct sc_range_findings *range = &s->p->ranges[i];
    const size_t above = s->parents[i];
    s->wanted[i] = by_range(s->j->e) && wants_range(s->j->e, range);
    s->nested[i] = above != SC_NOWHERE && (s->wanted[above] || s->nested[above]);
    s->allowed += sc_range_is_allowed(range) ? range->total.syncs : 0;
    if (s->wanted[i])
      s->submissions += range->total.submissions;
  }
}

static uint64_t *first_of(const struct scope *s, size_t exception, const struct sc_profile *profile)
{
  return &s->first[exception * s->tally->series_count + profile->series];
}

static bool has_excepted(const struct scope *s, size_t exception, const struct sc_profile *profile)
{
  for (size_t i = 0; i < profile->part_count; ++i) {
    if (s->excepted[exception * s->tally->place_count + profile->parts[i].place])
      return true;
  }
  return false;
}

static void find_first(struct scope *s)
{
  for (size_t k = 0; k < s->j->gate->exception_count; ++k) {
    if (!s->j->gate->exceptions[k].first_only)
      continue;
    for (size_t i = 0; i < s->tally->profile_count; ++i) {
      const struct sc_profile *profile = &s->tally->profiles[i];
      uint64_t *first = first_of(s, k, profile);
      if (!profile->warmup && profile->first < *first && has_excepted(s, k, profile))
        *first = profile->first;
    }
  }
}

static bool scope_open(struct scope *s)
{
  const size_t exceptions = s->j->gate->exception_count;
  s->wanted = sc_calloc_array(s->p->range_count + 1, sizeof *s->wanted);
  s->nested = sc_calloc_array(s->p->range_count + 1, sizeof *s->nested);
  s->parents = range_parents(s->p);
  s->sites = sc_calloc_array(s->p->site_count + 1, sizeof *s->sites);
  if (!s->wanted || !s->nested || !s->parents || !s->sites)
    return false;
  select_ranges(s);
  if (!s->tally)
    return true;
  const size_t places = s->tally->place_count, firsts = s->tally->series_count * exceptions;
  s->taken = sc_calloc_array(places + 1, sizeof *s->taken);
  s->excepted = sc_calloc_array(places * exceptions + 1, sizeof *s->excepted);
  s->first = sc_calloc_array(firsts + 1, sizeof *s->first);
  s->took = sc_calloc_array(exceptions + 1, sizeof *s->took);
  s->left = sc_calloc_array(places + 1, sizeof *s->left);
  if (!s->taken || !s->excepted || !s->first || !s->took || !s->left)
    return false;
  for (size_t i = 0; i < firsts; ++i)
    s->first[i] = UINT64_MAX;
  for (size_t i = 0; i < s->p->site_count; ++i)
    s->sites[s->p->sites[i].serial] = &s->p->sites[i];
  select_places(s);
  find_first(s);
  return true;
}

static void scope_close(struct scope *s)
{
  free(s->sites);
  free(s->wanted);
  free(s->nested);
  free(s->parents);
  free(s->taken);
  free(s->excepted);
  free(s->first);
  free(s->took);
  free(s->left);
}

/* ---- one unit: an occurrence, or a whole process --------------------------------------------- */

struct unit {
  const struct sc_part *parts;
  size_t part_count;
  const struct sc_profile *profile; /* NULL: a process */
  bool is_first;                    /* the first of the profile's occurrences */
  uint64_t times;
};

static bool applies(const struct scope *s, size_t exception, const struct unit *unit)
{
  const struct sc_gate_exception *x = &s->j->gate->exceptions[exception];
  if (!x->first_only || !unit->profile)
    return true;
  return unit->is_first && *first_of(s, exception, unit->profile) == unit->profile->first;
}

/* What exceptions take of the unit is in s->took, and what remains of each part in s->left by its index. */
static void take_exceptions(struct scope *s, const struct unit *unit)
{
  for (size_t i = 0; i < unit->part_count; ++i)
    s->left[i] = s->taken[unit->parts[i].place] ? unit->parts[i].count : 0;
  for (size_t k = 0; k < s->j->gate->exception_count; ++k) {
    const struct sc_gate_exception *x = &s->j->gate->exceptions[k];
    uint64_t room = x->limited ? x->count : UINT64_MAX;
    s->took[k] = 0;
    if (!applies(s, k, unit))
      continue;
    for (size_t i = 0; i < unit->part_count && room; ++i) {
      if (!s->left[i] || !s->excepted[k * s->tally->place_count + unit->parts[i].place])
        continue;
      uint64_t now = s->left[i] < room ? s->left[i] : room;
      s->left[i] -= now;
      room -= now;
      s->took[k] += now;
    }
    s->j->used[k] += s->took[k] * unit->times;
  }
}

/* Syncs, or their wait in microseconds of one of the unit's occurrences. */
static double sum_of(const struct scope *s, const struct unit *unit)
{
  double sum = 0;
  for (size_t i = 0; i < unit->part_count; ++i) {
    const struct sc_part *part = &unit->parts[i];
    if (s->j->e->measure != SC_GATE_WAIT)
      sum += (double)s->left[i];
    else if (part->count)
      sum += (double)part->wait_ns / 1e3 * (double)s->left[i] / (double)part->count;
  }
  return sum;
}

static const char *path_of(const struct scope *s, size_t range)
{
  return range == SC_NOWHERE ? NULL : s->p->ranges[range].path;
}

static bool is_in_tree(const struct sc_process *p, const char *file)
{
  const size_t length = p->cwd ? strlen(p->cwd) : 0;
  return *file != '/' ? *file != '<' : length && strncmp(file, p->cwd, length) == 0 && file[length] == '/';
}

static void name_extra(struct scope *s, const struct sc_site *site, const char *range, double each, uint64_t total)
{
  const struct sc_frame *frame = sc_site_frame(site);
  const char *relative = frame && frame->file ? sc_process_file(s->p, frame->file) : NULL;
  char *name = NULL;
  if (frame && relative && frame->line)
    name = sc_asprintf("%s:%" PRIu64 " in %s", relative, frame->line, frame->function ? frame->function : "?");
  else if (frame)
    name = sc_strdup(frame->function);
  struct sc_gate_extra *extra =
      judge_extra(s->j, &(struct sc_gate_extra){.site = name,
                                                .api = site->api,
                                                .cls = (char *)sc_class_name(site->cls),
                                                .pattern = site->pattern,
                                                .file = frame ? frame->file : NULL,
                                                .relative = (char *)relative,
                                                .in_tree = frame && frame->file && is_in_tree(s->p, frame->file),
                                                .line = frame ? frame->line : 0});
  free(name);
  if (extra)
    judge_extra_add(s->j, extra, range, each, total);
}

static void name_extras(struct scope *s, const struct unit *unit)
{
  for (size_t i = 0; i < unit->part_count && !s->j->failed; ++i) {
    const struct sc_place *place = &s->tally->places[unit->parts[i].place];
    if (s->left[i])
      name_extra(s, s->sites[place->site], path_of(s, place->range), (double)s->left[i], s->left[i] * unit->times);
  }
}

static char *unit_name(const struct scope *s, const struct sc_range_findings *range)
{
  char *process = s->several || !range ? process_name(s->p) : NULL;
  char *name = !range     ? sc_strdup(process)
               : !process ? sc_strdup(range->path)
                          : sc_asprintf("%s in %s", range->path, process);
  free(process);
  return name;
}

static bool has_losses(const struct sc_process *p) { return p->lost_records || p->lost_chunks; }

/* Records that are missing only add to a sum. Of a single occurrence nothing is known then: a lost end of a range makes
 * two occurrences one. */
static struct value value_of(const struct scope *s, double sum, uint64_t uncertain, bool unfinished, bool occurrence)
{
  struct value value = {.low = sum, .high = sum, .unfinished = unfinished};
  if (uncertain && s->j->e->measure != SC_GATE_WAIT) {
    value.uncertain = true;
    value.high += (double)uncertain;
  }
  if (has_losses(s->p)) {
    value.high = INFINITY;
    if (occurrence)
      value.low = 0;
  }
  return value;
}

/* what: the range's path; NULL: it is of all the process. */
static void why_unsure(struct scope *s, const struct value *value, const char *what)
{
  char *process = process_name(s->p);
  const char *name = process ? process : "the process";
  if (has_losses(s->p))
    judge_unsure(s->j, "%s%s%s: %" PRIu64 " records and %" PRIu64 " chunks were lost", what ? what : "",
                 what ? " in " : "", name, s->p->lost_records, s->p->lost_chunks);
  else if (value->uncertain)
    judge_unsure(s->j, "%s%s%s: calls could not be judged (memory of unknown kind)", what ? what : "",
                 what ? " in " : "", name);
  free(process);
}

static bool is_marked_step(const struct sc_profile *profile) { return profile->range == SC_NOWHERE; }

static char *failure_name(const struct scope *s, const struct unit *unit, const struct sc_range_findings *range)
{
  if (!unit->profile || !is_marked_step(unit->profile))
    return unit_name(s, range);
  return s->several ? sc_asprintf("step %" PRIu64 " of process %" PRIu64, unit->profile->first + 1, s->p->pid)
                    : sc_asprintf("step %" PRIu64, unit->profile->first + 1);
}

static void judge_unit(struct scope *s, const struct unit *unit, struct value value,
                       const struct sc_range_findings *range)
{
  enum outcome outcome = judge_value(s->j, value);
  judge_count(s->j, value, outcome, unit->times);
  if (outcome == OUTCOME_UNSURE)
    why_unsure(s, &value, range ? range->path : NULL);
  if (outcome != OUTCOME_NOT)
    return;
  judge_failure(s->j, failure_name(s, unit, range), value, unit->profile ? unit->times : 0);
  if (value.low > (isnan(s->j->e->high) ? INFINITY : s->j->e->high))
    name_extras(s, unit);
}

static void judge_profile(struct scope *s, const struct sc_profile *profile, bool is_first, uint64_t times)
{
  const struct unit unit = {.parts = profile->parts,
                            .part_count = profile->part_count,
                            .profile = profile,
                            .is_first = is_first,
                            .times = times};
  take_exceptions(s, &unit);
  const bool marked = is_marked_step(profile); /* in which step a call was that could not be judged is not known */
  judge_unit(
      s, &unit,
      value_of(s, sum_of(s, &unit), marked ? s->p->counts.uncertain : profile->uncertain, profile->unfinished, true),
      marked ? NULL : &s->p->ranges[profile->range]);
}

static bool has_first_only(const struct sc_gate *gate)
{
  for (size_t k = 0; k < gate->exception_count; ++k) {
    if (gate->exceptions[k].first_only)
      return true;
  }
  return false;
}

static bool thread_selected(const struct scope *s, size_t thread)
{
  return !s->j->e->thread || thread_matches(&s->p->threads[thread], s->j->e->thread);
}

/* Of marked steps a thread's syncs are picked out, as a site's are. */
static bool is_selected(const struct scope *s, const struct sc_profile *profile, bool marked)
{
  if (marked || is_marked_step(profile))
    return marked && is_marked_step(profile);
  return s->wanted[profile->range] && thread_selected(s, profile->thread);
}

static void judge_occurrences(struct scope *s, bool marked)
{
  const bool apart = has_first_only(s->j->gate);
  for (size_t i = 0; i < s->tally->profile_count && !s->j->failed; ++i) {
    const struct sc_profile *profile = &s->tally->profiles[i];
    if (!is_selected(s, profile, marked))
      continue;
    if (profile->warmup) {
      s->j->result->warmup += profile->times;
      continue;
    }
    if (apart)
      judge_profile(s, profile, true, 1);
    if (profile->times > apart)
      judge_profile(s, profile, false, profile->times - apart);
  }
  for (size_t i = 0; i < s->p->range_count; ++i)
    s->j->result->places += s->wanted[i] && s->p->ranges[i].occurrences > 0;
}

/* ---- sums over a process --------------------------------------------------------------------- */

struct gathered {
  uint64_t uncertain, warmup, counted; /* the last two: occurrences of the selected ranges */
};

/* By place: of the places, or of all occurrences of the selected ranges. */
static void gather_parts(const struct scope *s, struct sc_part *parts, struct gathered *sum)
{
  const struct sc_tally *tally = s->tally;
  for (size_t i = 0; i < tally->place_count; ++i)
    parts[i] = (struct sc_part){.place = i};
  if (!by_range(s->j->e)) {
    sum->uncertain = s->p->counts.uncertain;
    for (size_t i = 0; i < tally->place_count; ++i) {
      if (!tally->places[i].warmup) {
        parts[i].count = tally->places[i].count;
        parts[i].wait_ns = tally->places[i].wait_ns;
      }
    }
    return;
  }
  for (size_t i = 0; i < tally->profile_count; ++i) {
    const struct sc_profile *profile = &tally->profiles[i];
    if (is_marked_step(profile) || !s->wanted[profile->range] || s->nested[profile->range])
      continue;
    *(profile->warmup ? &sum->warmup : &sum->counted) += profile->times;
    if (profile->warmup)
      continue;
    sum->uncertain += profile->uncertain * profile->times;
    for (size_t k = 0; k < profile->part_count; ++k) {
      parts[profile->parts[k].place].count += profile->parts[k].count * profile->times;
      parts[profile->parts[k].place].wait_ns += profile->parts[k].wait_ns;
    }
  }
}

static uint64_t occurrences_of(const struct scope *s)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < s->p->range_count; ++i)
    sum += s->wanted[i] ? s->p->ranges[i].occurrences : 0;
  return sum;
}

static uint64_t allowed_syncs(const struct sc_tally *tally)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < tally->place_count; ++i)
    sum += tally->places[i].allow != SC_NOWHERE ? tally->places[i].count : 0;
  return sum;
}

static uint64_t warm_syncs(const struct sc_tally *tally)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < tally->place_count; ++i)
    sum += tally->places[i].warmup ? tally->places[i].count : 0;
  return sum;
}

/* Syncs that were counted without a record, and of which nothing else is known; UINT64_MAX: they were not even counted.
 */
static uint64_t without_detail(const struct scope *s)
{
  uint64_t known = 0;
  for (size_t i = 0; i < s->tally->place_count; ++i)
    known += s->tally->places[i].count;
  return sc_process_is_whole(s->p) && s->p->counts.syncs >= known ? s->p->counts.syncs - known : UINT64_MAX;
}

/* A sum over a process whose trace was full is known all the same where nothing is selected; else between two numbers.
 */
static struct value sum_value(const struct scope *s, double sum, uint64_t uncertain)
{
  struct value value = value_of(s, sum, uncertain, false, false);
  const struct sc_gate_expectation *e = s->j->e;
  const uint64_t missing = has_losses(s->p) ? without_detail(s) : 0;
  if (!has_losses(s->p) || missing == UINT64_MAX || e->measure != SC_GATE_TOTAL || by_range(e))
    return value;
  value.high = sum + (double)missing + (double)uncertain;
  if (!e->site && e->cls < 0 && !e->thread && s->j->gate->exception_count == 0 && allowed_syncs(s->tally) == 0 &&
      warm_syncs(s->tally) == 0)
    value.low = sum + (double)missing;
  return value;
}

/* A sum in which nothing is left beside the warm-up is no 0: nothing was measured. */
static bool is_all_warmup(struct scope *s, const struct gathered *sum)
{
  if (by_range(s->j->e)) {
    s->j->result->warmup += sum->warmup;
    return sum->counted == 0 && sum->warmup > 0;
  }
  if (!s->tally->all_warmup)
    return false;
  if (s->p->has_steps && s->p->steps > 0 && s->p->warmup == s->p->steps)
    judge_unsure(s->j, "all %" PRIu64 " steps of process %" PRIu64 " were warm-up", s->p->steps, s->p->pid);
  else
    judge_unsure(s->j, "the warm-up of process %" PRIu64 " never ended", s->p->pid);
  return true;
}

static void judge_sum(struct scope *s)
{
  struct gathered sum = {0};
  struct sc_part *parts = sc_calloc_array(s->tally->place_count + 1, sizeof *parts);
  if (!parts) {
    s->j->failed = true;
    return;
  }
  gather_parts(s, parts, &sum);
  if (is_all_warmup(s, &sum)) {
    free(parts);
    return;
  }
  const struct unit unit = {.parts = parts, .part_count = s->tally->place_count, .times = 1};
  take_exceptions(s, &unit);
  judge_unit(s, &unit, sum_value(s, sum_of(s, &unit), sum.uncertain), NULL);
  ++s->j->result->places;
  if (s->tally->warmup_unknown && !by_range(s->j->e))
    judge_unsure(s->j,
                 "a number of warm-up steps was given, but process %" PRIu64
                 " has threads with syncs and without steps: name steps with --ranges PATTERN=step",
                 s->p->pid);
  free(parts);
}

static uint64_t polls_of(const struct scope *s)
{
  uint64_t sum = 0;
  if (!by_range(s->j->e))
    return s->p->counts.poll_waits;
  for (size_t i = 0; i < s->p->range_count; ++i)
    sum += s->wanted[i] && !s->nested[i] ? s->p->ranges[i].total.poll_waits : 0;
  return sum;
}

static void judge_polls(struct scope *s)
{
  const struct unit unit = {.times = 1};
  judge_unit(s, &unit, value_of(s, (double)polls_of(s), 0, false, false), NULL);
  ++s->j->result->places;
}

/* ---- what a report can tell ---------------------------------------- */

/* False: what is asked for needs single occurrences. */
static bool bare_is_enough(struct scope *s)
{
  const struct sc_gate_expectation *e = s->j->e;
  const bool sums = e->measure == SC_GATE_TOTAL || e->measure == SC_GATE_WAIT;
  const char *what = NULL;
  if (e->thread)
    what = "of one thread";
  else if (s->j->gate->exception_count)
    what = "without allowed exceptions";
  else if ((e->site || e->cls >= 0) && !(sums && !by_range(e)))
    what = "of one site or class";
  if (what)
    judge_unsure(s->j, "%s cannot be told %s from a report: give the trace", sc_gate_measure_name(e->measure), what);
  return !what;
}

static void bare_extras(struct scope *s, const char *path)
{
  for (size_t i = 0; i < s->p->site_count && !s->j->failed; ++i) {
    const struct sc_site *site = &s->p->sites[i];
    const size_t length = path ? strlen(path) : 0;
    if (site->kind == SC_SITE_SYNC && (!path || (site->range && strncmp(site->range, path, length) == 0)))
      name_extra(s, site, site->range, (double)site->count, site->count);
  }
}

static void judge_bare_value(struct scope *s, double low, double high, uint64_t uncertain, uint64_t times,
                             const struct sc_range_findings *range)
{
  struct value least = value_of(s, low, uncertain, false, range != NULL),
               most = value_of(s, high, uncertain, false, range != NULL);
  /* So many may have to be taken from a number. */
  const double allowed = s->j->e->measure == SC_GATE_WAIT ? 0 : (double)s->allowed;
  least.low = least.low > allowed ? least.low - allowed : 0;
  most.low = most.low > allowed ? most.low - allowed : 0;
  enum outcome first = judge_value(s->j, least), second = judge_value(s->j, most);
  enum outcome outcome = first == OUTCOME_NOT || second == OUTCOME_NOT         ? OUTCOME_NOT
                         : first == OUTCOME_UNSURE || second == OUTCOME_UNSURE ? OUTCOME_UNSURE
                                                                               : OUTCOME_AS_EXPECTED;
  judge_count(s->j, least, OUTCOME_AS_EXPECTED, 0);
  judge_count(s->j, most, outcome, times);
  ++s->j->result->places;
  if (outcome == OUTCOME_UNSURE)
    why_unsure(s, &most, range ? range->path : NULL);
  if (outcome == OUTCOME_UNSURE && allowed > 0)
    judge_unsure(s->j,
                 "%.0f syncs are in synccount.allow: ranges, and what they are to be taken from cannot be told from a "
                 "report: give the trace",
                 allowed);
  if (outcome != OUTCOME_NOT)
    return;
  judge_failure(s->j, unit_name(s, range), (struct value){.low = low, .high = high}, range ? times : 0);
  if (high > (isnan(s->j->e->high) ? INFINITY : s->j->e->high))
    bare_extras(s, range ? range->path : NULL);
}

static void judge_bare_ranges(struct scope *s)
{
  for (size_t i = 0; i < s->p->range_count && !s->j->failed; ++i) {
    const struct sc_range_findings *range = &s->p->ranges[i];
    if (s->wanted[i] && !isnan(range->median))
      judge_bare_value(s, (double)range->min, (double)range->max, range->total.uncertain,
                       range->occurrences - range->unfinished, range);
  }
}

static void judge_bare_steps(struct scope *s)
{
  if (s->p->has_steps && !isnan(s->p->step_median))
    judge_bare_value(s, (double)s->p->step_min, (double)s->p->step_max, s->p->counts.uncertain,
                     s->p->steps - s->p->warmup, NULL);
  s->j->result->warmup += s->p->has_steps ? s->p->warmup : 0;
}

static void judge_bare_sum(struct scope *s)
{
  const struct sc_gate_expectation *e = s->j->e;
  const bool waits = e->measure == SC_GATE_WAIT;
  double sum = 0;
  if (by_range(e)) {
    for (size_t i = 0; i < s->p->range_count; ++i) {
      if (s->wanted[i] && !s->nested[i])
        sum += waits ? (double)s->p->ranges[i].total.wait_ns / 1e3 : (double)s->p->ranges[i].total.syncs;
    }
  } else if (e->site || e->cls >= 0) {
    for (size_t i = 0; i < s->p->site_count; ++i) {
      const struct sc_site *site = &s->p->sites[i];
      if (site->kind == SC_SITE_SYNC && (!e->site || sc_gate_site_matches(s->p, site, e->site)) &&
          (e->cls < 0 || site->cls == (enum sc_class)e->cls))
        sum += waits ? site->wait_total_us : (double)site->count;
    }
  } else {
    sum = waits ? (double)s->p->counts.wait_ns / 1e3 : (double)s->p->counts.syncs;
  }
  judge_bare_value(s, sum, sum, s->p->counts.uncertain, 1, NULL);
}

static void judge_bare(struct scope *s)
{
  if (!bare_is_enough(s))
    return;
  if (s->j->e->measure == SC_GATE_PER_STEP)
    judge_bare_steps(s);
  else if (s->j->e->measure == SC_GATE_TOTAL || s->j->e->measure == SC_GATE_WAIT)
    judge_bare_sum(s);
  else
    judge_bare_ranges(s);
}

/* ---- one process ----------------------------------------------------------------------------- */

static bool has_frames(const struct sc_process *p)
{
  for (size_t i = 0; i < p->site_count; ++i) {
    if (p->sites[i].kind == SC_SITE_SYNC && sc_site_frame(&p->sites[i]))
      return true;
  }
  return p->counts.syncs == 0;
}

/* A pattern over CUDA's calls needs no stacks. */
static bool is_of_calls(const char *pattern)
{
  return strncmp(pattern, "cu", 2) == 0 || strncmp(pattern, "c*", 2) == 0;
}

static bool marks_steps_by_ranges(const struct scope *s)
{
  for (size_t i = 0; i < s->p->range_count; ++i) {
    if (s->wanted[i])
      return true;
  }
  return false;
}

static void judge_selected(struct scope *s)
{
  const struct sc_gate_expectation *e = s->j->e;
  if (e->measure == SC_GATE_POLL_WAITS)
    judge_polls(s);
  else if (!s->tally)
    judge_bare(s);
  else if (e->measure == SC_GATE_TOTAL || e->measure == SC_GATE_WAIT)
    judge_sum(s);
  else
    judge_occurrences(s, e->measure == SC_GATE_PER_STEP && !marks_steps_by_ranges(s));
}

static bool has_selected_thread(const struct scope *s)
{
  for (size_t i = 0; i < s->p->thread_count; ++i) {
    if (thread_selected(s, i))
      return true;
  }
  return s->p->thread_count == 0;
}

/* It gave the device no work and waited for nothing: a launcher, a helper. */
static bool is_idle(const struct sc_process *p) { return p->counts.submissions == 0 && p->counts.syncs == 0; }

static void judge_process(struct judging *j, const struct sc_process *p)
{
  struct scope s = {.j = j, .p = p, .tally = p->tally, .several = j->findings->process_count > 1};
  if (p->unmeasured) {
    judge_unsure(j, "nothing could be counted in process %" PRIu64 "%s%.200s%s", p->pid, p->command ? " (" : "",
                 p->command ? p->command : "", p->command ? ")" : "");
    return;
  }
  if (is_idle(p) || !has_selected_thread(&s))
    return;
  if (sc_gate_measure_is_time(j->e->measure) && sc_process_is_simulated(j->findings, p)) {
    judge_unsure(j, "the simulated device has no times: a wait cannot be measured on it");
    return;
  }
  if (j->e->site && !is_of_calls(j->e->site) && !has_frames(p))
    judge_unsure(j, "no stack is known of the syncs of process %" PRIu64 ", so none can be told by its place", p->pid);
  if (p->tally && p->tally->overflow)
    judge_unsure(j, "process %" PRIu64 " has more different occurrences than can be kept apart", p->pid);
  if (!scope_open(&s)) {
    j->failed = true;
  } else if (!by_range(j->e) || occurrences_of(&s) > 0 || j->e->measure == SC_GATE_PER_STEP) {
    judge_selected(&s);
    j->submissions += by_range(j->e) && s.submissions                       ? s.submissions
                      : by_range(j->e) && j->e->measure != SC_GATE_PER_STEP ? 0
                                                                            : p->counts.submissions;
  }
  scope_close(&s);
}

/* ---- why nothing was compared ---------------------------------------------------------------- */

static bool is_shown(const char *const *names, size_t count, const char *name)
{
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(names[i], name) == 0)
      return true;
  }
  return false;
}

static void name_ranges(const struct judging *j, struct sc_buf *buf)
{
  const char *names[NAMES_SHOWN];
  size_t shown = 0;
  for (size_t i = 0; i < j->findings->process_count; ++i) {
    const struct sc_process *p = &j->findings->processes[i];
    for (size_t r = 0; r < p->range_count && shown < NAMES_SHOWN; ++r) {
      const char *name = p->ranges[r].name;
      if (p->ranges[r].occurrences == 0 || is_shown(names, shown, name))
        continue;
      sc_buf_printf(buf, "%s%.40s", shown ? ", " : "", name);
      names[shown++] = name;
    }
  }
  if (shown == 0)
    sc_buf_puts(buf, "none at all");
}

static void nothing_compared(struct judging *j, size_t matching)
{
  const struct sc_gate_expectation *e = j->e;
  struct sc_buf names = {0};
  if (matching == 0) {
    judge_unsure(j, "no process matches%s%s%s%s", e->rank ? " rank " : "", e->rank ? e->rank : "",
                 e->process ? " " : "", e->process ? e->process : "");
  } else if (j->result->warmup) {
    judge_unsure(j, "all %" PRIu64 " occurrences were warm-up", j->result->warmup);
  } else if (e->measure == SC_GATE_PER_STEP) {
    judge_unsure(j, "the program marked no steps: name them with --ranges PATTERN=step");
  } else if (by_range(e)) {
    name_ranges(j, &names);
    judge_unsure(j, "no range matches%s%s%s%s, or none of them ended. There were: %s", e->range ? " " : "",
                 e->range ? e->range : "", wanted_level(e) ? " level " : "", wanted_level(e) ? wanted_level(e) : "",
                 names.failed ? "" : names.data);
  } else {
    judge_unsure(j, "no process gave the device any work");
  }
  sc_buf_free(&names);
}

static bool some_thread_matches(const struct judging *j)
{
  for (size_t i = 0; i < j->findings->process_count; ++i) {
    const struct sc_process *p = &j->findings->processes[i];
    for (size_t t = 0; t < p->thread_count && process_matches(p, j->e); ++t) {
      if (thread_matches(&p->threads[t], j->e->thread))
        return true;
    }
  }
  return false;
}

void judge_processes(struct judging *j)
{
  size_t matching = 0;
  for (size_t i = 0; i < j->findings->process_count && !j->failed; ++i) {
    const struct sc_process *p = &j->findings->processes[i];
    if (!process_matches(p, j->e))
      continue;
    ++matching;
    judge_process(j, p);
  }
  if (j->result->compared == 0 && j->findings->process_count == 0)
    judge_unsure(j, "no process was traced");
  else if (matching && j->e->thread && !some_thread_matches(j))
    judge_unsure(j, "no thread matches %s", j->e->thread);
  else if (j->result->compared == 0)
    nothing_compared(j, matching);
  else if (j->submissions == 0)
    judge_unsure(j, "what was selected gave the device no work");
}
