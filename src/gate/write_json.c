/* SPDX-License-Identifier: Apache-2.0
 * The verdict as JSON, schema synccount/check/1. Fields may be added; none changes. */
#include "gate/json.h"

#include <math.h>

#include "gate/write.h"

json_t *gate_json_number(double value)
{
  if (!isfinite(value))
    return json_null();
  if (value == floor(value) && fabs(value) < 9e15)
    return json_integer((json_int_t)value);
  return json_real(round(value * 1e6) / 1e6);
}

static int append(const char *bytes, size_t n, void *buf)
{
  sc_buf_append(buf, bytes, n);
  return ((struct sc_buf *)buf)->failed ? -1 : 0;
}

void gate_json_write(json_t *root, bool ok, struct sc_buf *buf)
{
  if (!ok || json_dump_callback(root, append, buf, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) != 0)
    buf->failed = true;
  sc_buf_puts(buf, "\n");
  json_decref(root);
}

/* ---- one expectation ------------------------------------------------------------------------- */

static json_t *failures_value(const struct sc_gate_result *r, bool *ok)
{
  json_t *array = json_array();
  for (size_t i = 0; i < r->failure_count; ++i) {
    json_t *object = json_object();
    sc_json_put(object, "what", sc_json_text(r->failures[i].what), ok);
    sc_json_put(object, "low", gate_json_number(r->failures[i].low), ok);
    sc_json_put(object, "high", gate_json_number(r->failures[i].high), ok);
    sc_json_put(object, "times", r->failures[i].times ? sc_json_count(r->failures[i].times) : json_null(), ok);
    sc_json_push(array, object, ok);
  }
  return array;
}

static json_t *extras_value(const struct sc_gate_result *r, bool *ok)
{
  json_t *array = json_array();
  for (size_t i = 0; i < r->extra_count; ++i) {
    const struct sc_gate_extra *extra = &r->extras[i];
    json_t *object = json_object();
    sc_json_put(object, "op", sc_json_text(extra->op), ok);
    sc_json_put(object, "site", sc_json_text(extra->site), ok);
    sc_json_put(object, "file", sc_json_text(extra->file), ok);
    sc_json_put(object, "line", extra->line ? sc_json_count(extra->line) : json_null(), ok);
    sc_json_put(object, "api", sc_json_text(extra->api), ok);
    sc_json_put(object, "class", sc_json_text(extra->cls), ok);
    sc_json_put(object, "range", sc_json_text(extra->range), ok);
    sc_json_put(object, "other_ranges", sc_json_count(extra->other_ranges), ok);
    sc_json_put(object, "pattern", sc_json_text(extra->pattern), ok);
    sc_json_put(object, "most", gate_json_number(extra->most), ok);
    sc_json_put(object, "total", sc_json_count(extra->total), ok);
    sc_json_push(array, object, ok);
  }
  return array;
}

static void put_selectors(json_t *object, const struct sc_gate_expectation *e, bool *ok)
{
  sc_json_put(object, "variant", sc_json_text(e->variant), ok);
  sc_json_put(object, "range", sc_json_text(e->range), ok);
  sc_json_put(object, "level", sc_json_text(e->level), ok);
  sc_json_put(object, "site", sc_json_text(e->site), ok);
  sc_json_put(object, "class", sc_json_text(e->cls >= 0 ? sc_class_name((enum sc_class)e->cls) : NULL), ok);
  sc_json_put(object, "thread", sc_json_text(e->thread), ok);
  sc_json_put(object, "rank", sc_json_text(e->rank), ok);
  sc_json_put(object, "process", sc_json_text(e->process), ok);
}

static json_t *result_value(const struct sc_gate_result *r, bool *ok)
{
  static const char *const comparisons[] = {"==", "<=", ">=", "between"};
  const struct sc_gate_expectation *e = r->expectation;
  json_t *object = json_object(), *found = json_object();
  sc_json_put(found, "low", gate_json_number(r->low), ok);
  sc_json_put(found, "high", gate_json_number(r->high), ok);
  sc_json_put(object, "text", sc_json_text(e->text), ok);
  sc_json_put(object, "reason", sc_json_text(e->reason), ok);
  sc_json_put(object, "line", e->line ? sc_json_count(e->line) : json_null(), ok);
  put_selectors(object, e, ok);
  sc_json_put(object, "measure", sc_json_text(sc_gate_measure_name(e->measure)), ok);
  sc_json_put(object, "comparison", sc_json_text(comparisons[e->compare]), ok);
  sc_json_put(object, "low", gate_json_number(e->low), ok);
  sc_json_put(object, "high", gate_json_number(e->high), ok);
  sc_json_put(object, "verdict", sc_json_text(sc_gate_verdict_name(r->verdict)), ok);
  sc_json_put(object, "why", sc_json_text(r->why), ok);
  sc_json_put(object, "found", found, ok);
  sc_json_put(object, "compared", sc_json_count(r->compared), ok);
  sc_json_put(object, "failed", sc_json_count(r->failed), ok);
  sc_json_put(object, "warmup", sc_json_count(r->warmup), ok);
  sc_json_put(object, "failures", failures_value(r, ok), ok);
  sc_json_put(object, "syncs", extras_value(r, ok), ok);
  return object;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static json_t *allowed_value(const struct sc_gate_allowed *list, size_t count, bool *ok)
{
  json_t *array = json_array();
  for (size_t i = 0; i < count; ++i) {
    json_t *object = json_object();
    sc_json_put(object, "what", sc_json_text(list[i].what), ok);
    sc_json_put(object, "reason", sc_json_text(list[i].reason), ok);
    sc_json_put(object, "syncs", sc_json_count(list[i].syncs), ok);
    sc_json_push(array, object, ok);
  }
  return array;
}

static json_t *processes_value(const struct sc_gate_report *report, bool *ok)
{
  json_t *array = json_array();
  for (size_t i = 0; i < report->process_count; ++i) {
    const struct sc_gate_process *p = &report->processes[i];
    json_t *object = json_object();
    sc_json_put(object, "name", sc_json_text(p->name), ok);
    sc_json_put(object, "selected", json_boolean(p->selected), ok);
    sc_json_put(object, "measured", json_boolean(p->measured), ok);
    sc_json_put(object, "syncs", p->measured ? sc_json_count(p->syncs) : json_null(), ok);
    sc_json_push(array, object, ok);
  }
  return array;
}

void sc_gate_write_json(const struct sc_gate_report *report, struct sc_buf *buf)
{
  json_t *root = json_object(), *results = json_array(), *warnings = json_array();
  bool ok = root && results && warnings;
  for (size_t i = 0; i < report->result_count; ++i)
    sc_json_push(results, result_value(&report->results[i], &ok), &ok);
  for (size_t i = 0; i < report->warning_count; ++i)
    sc_json_push(warnings, sc_json_text(report->warnings[i]), &ok);
  sc_json_put(root, "schema", json_string("synccount/check/1"), &ok);
  sc_json_put(root, "version", json_string(SC_VERSION), &ok);
  sc_json_put(root, "verdict", sc_json_text(sc_gate_verdict_name(report->verdict)), &ok);
  sc_json_put(root, "simulated", json_boolean(report->simulated), &ok);
  sc_json_put(root, "gate", sc_json_text(report->gate->name), &ok);
  sc_json_put(root, "source", sc_json_text(report->source), &ok);
  sc_json_put(root, "trouble", sc_json_text(report->trouble), &ok);
  sc_json_put(root, "expectations", results, &ok);
  sc_json_put(root, "allowed", allowed_value(report->allowed, report->allowed_count, &ok), &ok);
  sc_json_put(root, "not_needed", allowed_value(report->unneeded, report->unneeded_count, &ok), &ok);
  sc_json_put(root, "processes", processes_value(report, &ok), &ok);
  sc_json_put(root, "warnings", warnings, &ok);
  gate_json_write(root, ok, buf);
}
