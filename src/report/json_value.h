/* SPDX-License-Identifier: Apache-2.0
 * Building JSON values: not measured is null, strings are valid UTF-8, numbers have as many digits as they mean. */
#ifndef SC_REPORT_JSON_VALUE_H
#define SC_REPORT_JSON_VALUE_H

#include <jansson.h>

#include "report/report.h"

/* All functions return a new reference, NULL when memory is out; the put functions take the value's reference and keep
 * the failure in *ok, so that a whole object is built first and checked once. */
json_t *sc_json_text(const char *text); /* NULL: null; a byte that is no UTF-8 becomes U+FFFD */
json_t *sc_json_count(uint64_t n);      /* beyond 2^63 - 1: a real */
json_t *sc_json_us(double us);          /* rounded to a nanosecond; NaN and infinity: null */
json_t *sc_json_number(double value);   /* six significant digits, whole numbers as integers; NaN: null */
json_t *sc_json_counts(const uint64_t *values, uint64_t n); /* NULL: null */

void sc_json_put(json_t *object, const char *key, json_t *value, bool *ok);
void sc_json_push(json_t *array, json_t *value, bool *ok);
/* The same under a key from outside, made valid as sc_json_text does. */
void sc_json_put_named(json_t *object, const char *name, json_t *value, bool *ok);

json_t *sc_json_by_class(const struct sc_counts *counts, bool *ok);
/* poll_waits, uncertain, failed, lifecycle and the other counts beside the classes. */
void sc_json_put_counts(json_t *object, const struct sc_counts *counts, bool *ok);

json_t *sc_json_rank(const char *rank); /* a number where it is one */
json_t *sc_json_process(const struct sc_findings *findings, const struct sc_process *process, bool simulated, bool *ok);

#endif
