/* SPDX-License-Identifier: Apache-2.0
 * Single JSON values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/json_value.h"

json_t *sc_json_us(double us)
{
  if (!isfinite(us))
    return json_null();
  /* Beyond 2^53 ns there is nothing left to round. */
  return json_real(fabs(us) < 9e12 ? round(us * 1000.0) / 1000.0 : us);
}

json_t *sc_json_number(double value)
{
  char digits[40];

  if (!isfinite(value))
    return json_null();
  if (value == floor(value) && fabs(value) < 9e15)
    return json_integer((json_int_t)value);
  snprintf(digits, sizeof digits, "%.6g", value);
  return json_real(strtod(digits, NULL));
}

json_t *sc_json_counts(const uint64_t *values, uint64_t n)
{
  json_t *array;
  bool ok = true;

  if (!values)
    return json_null();
  array = json_array();
  for (uint64_t i = 0; i < n; i++)
    sc_json_push(array, sc_json_count(values[i]), &ok);
  if (!ok) {
    json_decref(array);
    return NULL;
  }
  return array;
}

void sc_json_put_named(json_t *object, const char *name, json_t *value, bool *ok)
{
  json_t *key = sc_json_text(name ? name : "");

  if (key) {
    sc_json_put(object, json_string_value(key), value, ok);
  } else {
    json_decref(value);
    *ok = false;
  }
  json_decref(key);
}

json_t *sc_json_by_class(const struct sc_counts *counts, bool *ok)
{
  json_t *object = json_object();

  for (int i = 0; i < SC_CLASS_COUNT; i++)
    sc_json_put(object, sc_class_name((enum sc_class)i), sc_json_count(counts->by_class[i]), ok);
  return object;
}

void sc_json_put_counts(json_t *object, const struct sc_counts *c, bool *ok)
{
  const struct {
    const char *key;
    uint64_t value;
  } counts[] = {
      {"read_backs", c->read_backs},
      {"blocking_uploads", c->blocking_uploads},
      {"idle_syncs", c->idle_syncs},
      {"launches", c->launches},
      {"submissions", c->submissions},
      {"d2h_copies", c->d2h_copies},
      {"host_functions", c->host_functions},
      {"api_calls", c->api_calls},
      {"poll_waits", c->poll_waits},
      {"uncertain", c->uncertain},
      {"failed", c->failed},
      {"lifecycle", c->lifecycle},
      {"captured", c->captured},
  };

  sc_json_put(object, "by_class", sc_json_by_class(c, ok), ok);
  for (size_t i = 0; i < SC_COUNTOF(counts); i++)
    sc_json_put(object, counts[i].key, sc_json_count(counts[i].value), ok);
}
