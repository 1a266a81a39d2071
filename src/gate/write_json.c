/* SPDX-License-Identifier: Apache-2.0
 * The verdict as JSON, schema synccount/check/1. Fields may be added; none changes. */
#include "gate/json.h"

#include <math.h>
#include <string.h>

#include "gate/write.h"

void gate_json_put(json_t *object, const char *key, json_t *value, bool *ok)
{
  if (json_object_set_new(object, key, value) != 0)
    *ok = false;
}

void gate_json_push(json_t *array, json_t *value, bool *ok)
{
  if (json_array_append_new(array, value) != 0)
    *ok = false;
}

json_t *gate_json_text(const char *text)
{
  struct sc_buf buf = {0};
  if (!text)
    return json_null();
  sc_buf_put_valid(&buf, text, strlen(text));
  json_t *value = buf.failed ? NULL : json_stringn(buf.data ? buf.data : "", buf.len);
  sc_buf_free(&buf);
  return value;
}

json_t *gate_json_number(double value)
{
  if (!isfinite(value))
    return json_null();
  if (value == floor(value) && fabs(value) < 9e15)
    return json_integer((json_int_t)value);
  return json_real(round(value * 1e6) / 1e6);
}

json_t *gate_json_count(uint64_t value)
{
  return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
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
    gate_json_put(object, "what", gate_json_text(r->failures[i].what), ok);
    gate_json_put(object, "low", gate_json_number(r->failures[i].low), ok);
    gate_json_put(object, "high", gate_json_number(r->failures[i].high), ok);
    gate_json_put(object, "times", r->failures[i].times ? gate_json_count(r->failures[i].times) : json_null(), ok);
    gate_json_push(array, object, ok);
  }
  return array;
}

static json_t *extras_value(const struct sc_gate_result *r, bool *ok)
{
  json_t *array = json_array();
  for (size_t i = 0; i < r->extra_count; ++i) {
    const struct sc_gate_extra *extra = &r->extras[i];
    json_t *object = json_object();
    gate_json_put(object, "op", gate_json_text(extra->op), ok);
    gate_json_put(object, "site", gate_json_text(extra->site), ok);
    gate_json_put(object, "file", gate_json_text(extra->file), ok);
    gate_json_put(object, "line", extra->line ? gate_json_count(extra->line) : json_null(), ok);
    gate_json_put(object, "api", gate_json_text(extra->api), ok);
    gate_json_put(object, "class", gate_json_text(extra->cls), ok);
    gate_json_put(object, "range", gate_json_text(extra->range), ok);
    gate_json_put(object, "other_ranges", gate_json_count(extra->other_ranges), ok);
    gate_json_put(object, "pattern", gate_json_text(extra->pattern), ok);
    gate_json_put(object, "most", gate_json_number(extra->most), ok);
    gate_json_put(object, "total", gate_json_count(extra->total), ok);
    gate_json_push(array, object, ok);
  }
  return array;
}

static void put_selectors(json_t *object, const struct sc_gate_expectation *e, bool *ok)
{
  gate_json_put(object, "variant", gate_json_text(e->variant), ok);
  gate_json_put(object, "range", gate_json_text(e->range), ok);
  gate_json_put(object, "level", gate_json_text(e->level), ok);
  gate_json_put(object, "site", gate_json_text(e->site), ok);
  gate_json_put(object, "class", gate_json_text(e->cls >= 0 ? sc_class_name((enum sc_class)e->cls) : NULL), ok);
  gate_json_put(object, "thread", gate_json_text(e->thread), ok);
  gate_json_put(object, "rank", gate_json_text(e->rank), ok);
  gate_json_put(object, "process", gate_json_text(e->process), ok);
}

static json_t *result_value(const struct sc_gate_result *r, bool *ok)
{
  static const char *const comparisons[] = {"==", "<=", ">=", "between"};
  const struct sc_gate_expectation *e = r->expectation;
  json_t *object = json_object(), *found = json_object();
  gate_json_put(found, "low", gate_json_number(r->low), ok);
  gate_json_put(found, "high", gate_json_number(r->high), ok);
  gate_json_put(object, "text", gate_json_text(e->text), ok);
  gate_json_put(object, "reason", gate_json_text(e->reason), ok);
  gate_json_put(object, "line", e->line ? gate_json_count(e->line) : json_null(), ok);
  put_selectors(object, e, ok);
  gate_json_put(object, "measure", gate_json_text(sc_gate_measure_name(e->measure)), ok);
  gate_json_put(object, "comparison", gate_json_text(comparisons[e->compare]), ok);
  gate_json_put(object, "low", gate_json_number(e->low), ok);
  gate_json_put(object, "high", gate_json_number(e->high), ok);
  gate_json_put(object, "verdict", gate_json_text(sc_gate_verdict_name(r->verdict)), ok);
  gate_json_put(object, "why", gate_json_text(r->why), ok);
  gate_json_put(object, "found", found, ok);
  gate_json_put(object, "compared", gate_json_count(r->compared), ok);
  gate_json_put(object, "failed", gate_json_count(r->failed), ok);
  gate_json_put(object, "warmup", gate_json_count(r->warmup), ok);
  gate_json_put(object, "failures", failures_value(r, ok), ok);
  gate_json_put(object, "syncs", extras_value(r, ok), ok);
  return object;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static json_t *allowed_value(const struct sc_gate_allowed *list, size_t count, bool *ok)
{
  json_t *array = json_array();
  for (size_t i = 0; i < count; ++i) {
    json_t *object = json_object();
    gate_json_put(object, "what", gate_json_text(list[i].what), ok);
    gate_json_put(object, "reason", gate_json_text(list[i].reason), ok);
    gate_json_put(object, "syncs", gate_json_count(list[i].syncs), ok);
    gate_json_push(array, object, ok);
  }
  return array;
}

static json_t *processes_value(const struct sc_gate_report *report, bool *ok)
{
  json_t *array = json_array();
  for (size_t i = 0; i < report->process_count; ++i) {
    const struct sc_gate_process *p = &report->processes[i];
    json_t *object = json_object();
    gate_json_put(object, "name", gate_json_text(p->name), ok);
    gate_json_put(object, "selected", json_boolean(p->selected), ok);
    gate_json_put(object, "measured", json_boolean(p->measured), ok);
    gate_json_put(object, "syncs", p->measured ? gate_json_count(p->syncs) : json_null(), ok);
    gate_json_push(array, object, ok);
  }
  return array;
}

void sc_gate_write_json(const struct sc_gate_report *report, struct sc_buf *buf)
{
  json_t *root = json_object(), *results = json_array(), *warnings = json_array();
  bool ok = root && results && warnings;
  for (size_t i = 0; i < report->result_count; ++i)
    gate_json_push(results, result_value(&report->results[i], &ok), &ok);
  for (size_t i = 0; i < report->warning_count; ++i)
    gate_json_push(warnings, gate_json_text(report->warnings[i]), &ok);
  gate_json_put(root, "schema", json_string("synccount/check/1"), &ok);
  gate_json_put(root, "version", json_string(SC_VERSION), &ok);
  gate_json_put(root, "verdict", gate_json_text(sc_gate_verdict_name(report->verdict)), &ok);
  gate_json_put(root, "simulated", json_boolean(report->simulated), &ok);
  gate_json_put(root, "gate", gate_json_text(report->gate->name), &ok);
  gate_json_put(root, "source", gate_json_text(report->source), &ok);
  gate_json_put(root, "trouble", gate_json_text(report->trouble), &ok);
  gate_json_put(root, "expectations", results, &ok);
  gate_json_put(root, "allowed", allowed_value(report->allowed, report->allowed_count, &ok), &ok);
  gate_json_put(root, "not_needed", allowed_value(report->unneeded, report->unneeded_count, &ok), &ok);
  gate_json_put(root, "processes", processes_value(report, &ok), &ok);
  gate_json_put(root, "warnings", warnings, &ok);
  gate_json_write(root, ok, buf);
}
