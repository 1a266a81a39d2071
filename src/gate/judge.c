/* SPDX-License-Identifier: Apache-2.0
 * One value against one expectation, and what is kept of it. */
#include "gate/judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum outcome judge_value(const struct judging *j, struct value value)
{
  const double least = isnan(j->e->low) ? 0 : j->e->low, most = isnan(j->e->high) ? INFINITY : j->e->high;
  if (value.low > most)
    return OUTCOME_NOT;
  if (value.unfinished)
    return OUTCOME_NOTHING;
  if (value.high < least)
    return OUTCOME_NOT;
  return value.low >= least && value.high <= most && !value.uncertain ? OUTCOME_AS_EXPECTED : OUTCOME_UNSURE;
}

void judge_unsure(struct judging *j, const char *format, ...)
{
  j->unsure = true;
  if (j->result->why)
    return;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  j->result->why = sc_strdup(text);
  j->failed |= !j->result->why;
}

void judge_count(struct judging *j, struct value value, enum outcome outcome, uint64_t times)
{
  struct sc_gate_result *r = j->result;
  if (outcome == OUTCOME_NOTHING)
    return;
  r->compared += times;
  r->failed += outcome == OUTCOME_NOT ? times : 0;
  if (isnan(r->low) || value.low < r->low)
    r->low = value.low;
  const double high = isfinite(value.high) ? value.high : value.low;
  if (isnan(r->high) || high > r->high)
    r->high = high;
}

/* How far from what was expected. */
static double distance(const struct sc_gate_expectation *e, double low, double high)
{
  double above = isnan(e->high) ? 0 : high - e->high, below = isnan(e->low) ? 0 : e->low - low;
  return above > below ? above : below;
}

void judge_failure(struct judging *j, char *what, struct value value, uint64_t times)
{
  struct sc_gate_result *r = j->result;
  struct sc_gate_failure fresh = {what, value.low, isfinite(value.high) ? value.high : value.low, times};
  if (!what) {
    j->failed = true;
    return;
  }
  for (size_t i = 0; i < r->failure_count; ++i) { /* the same on other threads */
    struct sc_gate_failure *known = &r->failures[i];
    if (known->low == fresh.low && known->high == fresh.high && strcmp(known->what, what) == 0) {
      known->times += times;
      free(what);
      return;
    }
  }
  struct sc_gate_failure *out = NULL;
  if (r->failure_count < SC_GATE_FAILURES_MAX) {
    out = sc_array_push(&r->failures, &r->failure_count, &r->failure_cap, sizeof *out);
    j->failed |= !out;
  } else { /* the one that is least wrong gives way */
    size_t least = 0;
    for (size_t i = 1; i < r->failure_count; ++i) {
      if (distance(j->e, r->failures[i].low, r->failures[i].high) <
          distance(j->e, r->failures[least].low, r->failures[least].high))
        least = i;
    }
    if (distance(j->e, r->failures[least].low, r->failures[least].high) < distance(j->e, fresh.low, fresh.high)) {
      free(r->failures[least].what);
      out = &r->failures[least];
    }
  }
  if (out)
    *out = fresh;
  else
    free(what);
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool copy_text(char **out, const char *text)
{
  *out = sc_strdup(text);
  return *out || !text;
}

/* The range with most of them stands for the others. */
void judge_extra_add(struct judging *j, struct sc_gate_extra *extra, const char *range, double each, uint64_t total)
{
  if (extra->total && !same_text(extra->range, range))
    ++extra->other_ranges;
  if (extra->total == 0 || each > extra->most) {
    free(extra->range);
    j->failed |= !copy_text(&extra->range, range);
    extra->most = each;
  }
  extra->total += total;
}

struct sc_gate_extra *judge_extra(struct judging *j, const struct sc_gate_extra *key)
{
  struct sc_gate_result *r = j->result;
  for (size_t i = 0; i < r->extra_count; ++i) {
    const struct sc_gate_extra *known = &r->extras[i];
    if (same_text(known->site, key->site) && same_text(known->api, key->api) && same_text(known->cls, key->cls) &&
        same_text(known->op, key->op))
      return &r->extras[i];
  }
  struct sc_gate_extra *out = sc_array_push(&r->extras, &r->extra_count, &r->extra_cap, sizeof *out);
  if (!out || !copy_text(&out->site, key->site) || !copy_text(&out->api, key->api) || !copy_text(&out->cls, key->cls) ||
      !copy_text(&out->op, key->op) || !copy_text(&out->pattern, key->pattern) || !copy_text(&out->file, key->file) ||
      !copy_text(&out->relative, key->relative)) {
    j->failed = true;
    return NULL;
  }
  out->line = key->line;
  out->in_tree = key->in_tree;
  return out;
}

char *process_name(const struct sc_process *p)
{
  struct sc_buf buf = {0};
  sc_buf_printf(&buf, "process %" PRIu64, p->pid);
  if (p->command)
    sc_buf_printf(&buf, " (%.200s)", p->command);
  if (p->rank)
    sc_buf_printf(&buf, ", rank %s", p->rank);
  if (p->host && p->rank)
    sc_buf_printf(&buf, " on %s", p->host);
  if (buf.failed) {
    sc_buf_free(&buf);
    return NULL;
  }
  return buf.data;
}
