/* SPDX-License-Identifier: Apache-2.0
 * All expectations over all findings, and what they come to. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/judge.h"

const char *sc_gate_verdict_name(enum sc_gate_verdict verdict)
{
  static const char *const names[] = {"passed", "failed", "not measured"};
  return (unsigned)verdict < SC_COUNTOF(names) ? names[verdict] : "unknown";
}

static void free_allowed(struct sc_gate_allowed *list, size_t count)
{
  for (size_t i = 0; i < count; ++i) {
    free(list[i].what);
    free(list[i].reason);
  }
  free(list);
}

static void free_result(struct sc_gate_result *r)
{
  free(r->why);
  for (size_t i = 0; i < r->failure_count; ++i)
    free(r->failures[i].what);
  free(r->failures);
  for (size_t i = 0; i < r->extra_count; ++i) {
    struct sc_gate_extra *extra = &r->extras[i];
    free(extra->site);
    free(extra->api);
    free(extra->cls);
    free(extra->op);
    free(extra->range);
    free(extra->pattern);
    free(extra->file);
    free(extra->relative);
  }
  free(r->extras);
}

void sc_gate_report_free(struct sc_gate_report *report)
{
  if (!report)
    return;
  for (size_t i = 0; report->results && i < report->result_count; ++i)
    free_result(&report->results[i]);
  free(report->results);
  free_allowed(report->allowed, report->allowed_count);
  free_allowed(report->unneeded, report->unneeded_count);
  for (size_t i = 0; i < report->process_count; ++i)
    free(report->processes[i].name);
  free(report->processes);
  free(report->source);
  free(report->trouble);
  free(report);
}

/* ---- one expectation ------------------------------------------------------------------------- */

static bool needs_runs(const struct sc_gate_expectation *e)
{
  return e->variant || e->expected || e->measure == SC_GATE_PER_FORWARD || e->measure == SC_GATE_FLOOR;
}

static bool needs_processes(const struct sc_gate_expectation *e)
{
  return e->range || e->level || e->site || e->thread || e->rank || e->process ||
         e->measure == SC_GATE_PER_OCCURRENCE || e->measure == SC_GATE_PER_STEP || e->measure == SC_GATE_WAIT ||
         (e->measure == SC_GATE_PER_LAYER && e->cls >= 0);
}

static int by_total(const void *left, const void *right)
{
  const struct sc_gate_extra *a = left, *b = right;
  if (a->total != b->total)
    return a->total > b->total ? -1 : 1;
  return (a->most < b->most) - (a->most > b->most);
}

static int by_value(const void *left, const void *right)
{
  const struct sc_gate_failure *a = left, *b = right;
  if (a->high != b->high)
    return a->high > b->high ? -1 : 1;
  return strcmp(a->what, b->what);
}

static void conclude(struct judging *j, const struct sc_gate_facts *facts)
{
  struct sc_gate_result *r = j->result;
  if (r->extra_count)
    qsort(r->extras, r->extra_count, sizeof *r->extras, by_total);
  if (r->failure_count)
    qsort(r->failures, r->failure_count, sizeof *r->failures, by_value);
  if (r->failed) {
    r->verdict = SC_GATE_FAILED;
    return;
  }
  if (facts && facts->incomplete && j->findings->run_count)
    judge_unsure(j, "%s", facts->incomplete);
  r->verdict = j->unsure ? SC_GATE_UNMEASURED : SC_GATE_PASSED;
}

static void judge_one(struct judging *j, const struct sc_gate_facts *facts)
{
  const bool runs = j->findings->run_count > 0, processes = j->findings->process_count > 0;
  if (facts && facts->trouble && !runs && !processes)
    judge_unsure(j, "nothing was measured");
  else if (runs && processes && !needs_processes(j->e) && !needs_runs(j->e))
    judge_unsure(j, "the instrumented layers and a program were given together, and this could be asked of either: "
                    "say sorted.syncs or process(*).syncs, or give one of them");
  else if (runs && !processes && needs_processes(j->e))
    judge_unsure(j, "this is asked of a program, and what was measured are the instrumented layers: name a program or "
                    "a trace");
  else if (!runs && needs_runs(j->e))
    judge_unsure(j, "this is asked of the instrumented layers, and what was measured is a program: leave the program "
                    "out");
  else if ((j->result->of_runs = runs && !needs_processes(j->e)))
    judge_runs(j);
  else
    judge_processes(j);
  conclude(j, facts);
}

/* ---- exceptions and allowed ranges ----------------------------------------------------------- */

/* Whether an exception that took nothing can be told to be of no use. */
static bool all_measured(const struct sc_gate_report *report)
{
  for (size_t i = 0; i < report->result_count; ++i) {
    if (report->results[i].verdict == SC_GATE_UNMEASURED)
      return false;
  }
  return !report->trouble;
}

static bool add_allowed(struct sc_gate_report *report, char *what, const char *reason, uint64_t syncs)
{
  if (!syncs && !all_measured(report)) {
    bool ok = what != NULL;
    free(what);
    return ok;
  }
  struct sc_gate_allowed *out =
      syncs ? sc_array_push(&report->allowed, &report->allowed_count, &report->allowed_cap, sizeof *out)
            : sc_array_push(&report->unneeded, &report->unneeded_count, &report->unneeded_cap, sizeof *out);
  if (!out || !what) {
    free(what);
    return false;
  }
  *out = (struct sc_gate_allowed){.what = what, .reason = sc_strdup(reason), .syncs = syncs};
  return out->reason || !reason;
}

static char *exception_name(const struct sc_gate_exception *x)
{
  struct sc_buf buf = {0};
  if (x->site)
    sc_buf_printf(&buf, "site %s", x->site);
  if (x->range)
    sc_buf_printf(&buf, "%srange %s", x->site ? " in " : "", x->range);
  if (x->limited)
    sc_buf_printf(&buf, ", at most %llu", (unsigned long long)x->count);
  if (x->first_only)
    sc_buf_puts(&buf, ", first occurrence only");
  if (buf.failed) {
    sc_buf_free(&buf);
    return NULL;
  }
  return buf.data;
}

static bool list_exceptions(struct sc_gate_report *report, const uint64_t *used)
{
  for (size_t i = 0; i < report->gate->exception_count; ++i) {
    const struct sc_gate_exception *x = &report->gate->exceptions[i];
    if (!add_allowed(report, exception_name(x), x->reason, used[i]))
      return false;
  }
  return true;
}

static bool list_ranges(struct sc_gate_report *report, const struct sc_findings *findings)
{
  struct sc_allowed *all = NULL;
  size_t count = 0;
  bool ok = sc_findings_allowed(findings, &all, &count);
  for (size_t i = 0; i < count && ok; ++i)
    ok = add_allowed(report, sc_asprintf("range synccount.allow:%s", all[i].reason), NULL, all[i].syncs);
  free(all);
  return ok;
}

/* ---- who was looked at ----------------------------------------------------------------------- */

static bool list_processes(struct sc_gate_report *report, const struct sc_findings *findings)
{
  for (size_t i = 0; i < findings->process_count; ++i) {
    const struct sc_process *p = &findings->processes[i];
    struct sc_gate_process *out =
        sc_array_push(&report->processes, &report->process_count, &report->process_cap, sizeof *out);
    if (!out || !(out->name = process_name(p)))
      return false;
    out->measured = !p->unmeasured;
    out->syncs = p->counts.syncs;
    for (size_t k = 0; k < report->gate->expectation_count; ++k) {
      const struct sc_gate_expectation *e = &report->gate->expectations[k];
      out->selected |=
          !needs_runs(e) && process_matches(p, e) && (p->unmeasured || p->counts.submissions || p->counts.syncs);
    }
  }
  return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void sum_up(struct sc_gate_report *report)
{
  bool failed = false, unmeasured = false;
  for (size_t i = 0; i < report->result_count; ++i) {
    failed |= report->results[i].verdict == SC_GATE_FAILED;
    unmeasured |= report->results[i].verdict == SC_GATE_UNMEASURED;
  }
  report->verdict = report->trouble ? SC_GATE_UNMEASURED
                    : failed        ? SC_GATE_FAILED
                    : unmeasured    ? SC_GATE_UNMEASURED
                                    : SC_GATE_PASSED;
}

static bool judge_all(struct sc_gate_report *report, const struct sc_findings *findings,
                      const struct sc_gate_facts *facts, uint64_t *most, uint64_t *used)
{
  const struct sc_gate *gate = report->gate;
  for (size_t i = 0; i < gate->expectation_count; ++i) {
    struct sc_gate_result *result = &report->results[i];
    *result = (struct sc_gate_result){.expectation = &gate->expectations[i], .low = NAN, .high = NAN};
    struct judging j = {
        .result = result, .gate = gate, .e = result->expectation, .findings = findings, .used = used};
    memset(used, 0, gate->exception_count * sizeof *used);
    judge_one(&j, facts);
    if (j.failed)
      return false;
    for (size_t k = 0; k < gate->exception_count; ++k)
      most[k] = used[k] > most[k] ? used[k] : most[k];
  }
  return true;
}

enum sc_status sc_gate_judge(const struct sc_gate *gate, const struct sc_findings *findings,
                             const struct sc_gate_facts *facts, struct sc_gate_report **out, struct sc_error *err)
{
  struct sc_gate_report *report = calloc(1, sizeof *report);
  uint64_t *most = sc_calloc_array(gate->exception_count + 1, sizeof *most),
           *used = sc_calloc_array(gate->exception_count + 1, sizeof *used);
  bool ok = report && most && used;
  if (ok) {
    report->gate = gate;
    report->simulated = sc_findings_simulated(findings);
    report->warnings = findings->warnings;
    report->warning_count = findings->warning_count;
    report->source = sc_strdup(facts && facts->source ? facts->source : "findings");
    report->trouble = facts ? sc_strdup(facts->trouble) : NULL;
    report->results = sc_calloc_array(gate->expectation_count + 1, sizeof *report->results);
    ok = report->source && report->results && (report->trouble || !facts || !facts->trouble);
  }
  if (ok) {
    report->result_count = gate->expectation_count;
    ok = judge_all(report, findings, facts, most, used) && list_exceptions(report, most) &&
         list_ranges(report, findings) && list_processes(report, findings);
  }
  free(most);
  free(used);
  if (!ok) {
    sc_gate_report_free(report);
    return sc_error_set(err, SC_ERR_NOMEM, "out of memory while the gate was judged");
  }
  sum_up(report);
  *out = report;
  return SC_OK;
}
