/* SPDX-License-Identifier: Apache-2.0
 * Two findings to rows. */
#include "gate/diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *diff_change_name(enum diff_change change)
{
  static const char *const names[] = {"same", "changed", "appeared", "gone"};
  return (unsigned)change < SC_COUNTOF(names) ? names[change] : "unknown";
}

static enum diff_change change_of(double before, double after)
{
  if (isnan(before) && isnan(after))
    return DIFF_SAME;
  if (isnan(before))
    return DIFF_APPEARED;
  if (isnan(after))
    return DIFF_GONE;
  return before == after ? DIFF_SAME : DIFF_CHANGED;
}

struct diff_row *diff_add(struct sc_diff *diff, enum diff_section section, enum diff_kind kind, char *what,
                          const char *measure, double before, double after)
{
  struct diff_row *row = what ? sc_array_push(&diff->rows, &diff->row_count, &diff->row_cap, sizeof *row) : NULL;
  if (!row) {
    free(what);
    diff->failed = true;
    return NULL;
  }
  row->section = section;
  row->kind = kind;
  row->change = change_of(before, after);
  row->what = what;
  row->measure = measure;
  row->before = before;
  row->after = after;
  row->wait_before_us = row->wait_after_us = NAN;
  return row;
}

void diff_doubt(struct sc_diff *diff, const char *format, ...)
{
  char text[400];
  if (diff->why)
    return;
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  diff->why = sc_strdup(text);
  diff->failed |= !diff->why;
}

/* ---- what the machine was -------------------------------------------------------------------- */

static char *field_text(const struct sc_field *field)
{
  switch (field->kind) {
  case SC_FIELD_TEXT: return sc_strdup(field->text ? field->text : "");
  case SC_FIELD_NUMBER: return sc_asprintf("%.10g", field->number);
  case SC_FIELD_BOOL: return sc_strdup(field->boolean ? "yes" : "no");
  case SC_FIELD_NULL: break;
  }
  return sc_strdup("not known");
}

static void compare_field(struct sc_diff *diff, const struct sc_field *before, const struct sc_field *after)
{
  const struct sc_field *either = before ? before : after;
  char *old = before ? field_text(before) : NULL, *fresh = after ? field_text(after) : NULL;
  if ((before && !old) || (after && !fresh)) {
    diff->failed = true;
  } else if (!old || !fresh || strcmp(old, fresh) != 0) {
    struct diff_row *row =
        diff_add(diff, DIFF_FACTS, DIFF_TEXT, sc_asprintf("%s.%s", either->group, either->key), "", NAN, NAN);
    if (row) {
      row->change = !old ? DIFF_APPEARED : !fresh ? DIFF_GONE : DIFF_CHANGED;
      row->before_text = old;
      row->after_text = fresh;
      return;
    }
  }
  free(old);
  free(fresh);
}

static void compare_facts(struct sc_diff *diff)
{
  const struct sc_findings *b = diff->before, *a = diff->after;
  for (size_t i = 0; i < b->field_count && !diff->failed; ++i)
    compare_field(diff, &b->fields[i], sc_findings_field(a, b->fields[i].group, b->fields[i].key));
  for (size_t i = 0; i < a->field_count && !diff->failed; ++i) {
    if (!sc_findings_field(b, a->fields[i].group, a->fields[i].key))
      compare_field(diff, NULL, &a->fields[i]);
  }
}

/* ---- the whole ------------------------------------------------------------------------------- */

enum sc_status sc_diff_make(const struct sc_findings *before, const struct sc_findings *after, struct sc_diff **out,
                            struct sc_error *err)
{
  const bool runs = before->run_count && after->run_count, programs = before->process_count && after->process_count;
  if (!runs && !programs)
    return sc_error_set(err, SC_ERR_MEASURE, "there is nothing to compare: %s",
                        before->run_count || after->run_count
                            ? "one side holds runs of the instrumented layers and the other does not"
                            : "one side holds no process and no run");
  struct sc_diff *diff = calloc(1, sizeof *diff);
  if (!diff)
    return sc_error_no_memory(err);
  diff->before = before;
  diff->after = after;
  diff->of_runs = runs;
  if (runs)
    diff_runs(diff);
  else
    diff_programs(diff);
  compare_facts(diff);
  if (diff->failed) {
    sc_diff_free(diff);
    return sc_error_no_memory(err);
  }
  *out = diff;
  return SC_OK;
}

void sc_diff_free(struct sc_diff *diff)
{
  if (!diff)
    return;
  for (size_t i = 0; i < diff->row_count; ++i) {
    free(diff->rows[i].what);
    free(diff->rows[i].before_text);
    free(diff->rows[i].after_text);
  }
  free(diff->rows);
  free(diff->why);
  free(diff);
}

enum sc_gate_verdict sc_diff_increase(const struct sc_diff *diff, const char **why)
{
  if (why)
    *why = diff->why;
  return diff->more ? SC_GATE_FAILED : diff->why ? SC_GATE_UNMEASURED : SC_GATE_PASSED;
}
