/* SPDX-License-Identifier: Apache-2.0
 * Building JSON values: not measured is null, strings are valid UTF-8, numbers have as many digits as they mean. */
#ifndef SC_REPORT_JSON_VALUE_H
#define SC_REPORT_JSON_VALUE_H

#include "base/json.h"
#include "report/report.h"

/* New references and a kept failure, as in base/json.h. */
json_t *sc_json_us(double us);          /* rounded to a nanosecond; NaN and infinity: null */
json_t *sc_json_number(double value);   /* six significant digits, whole numbers as integers; NaN: null */
json_t *sc_json_counts(const uint64_t *values, uint64_t n); /* NULL: null */

/* sc_json_put under a key from outside, made valid as sc_json_text does. */
void sc_json_put_named(json_t *object, const char *name, json_t *value, bool *ok);

json_t *sc_json_by_class(const struct sc_counts *counts, bool *ok);
/* poll_waits, uncertain, failed, lifecycle and the other counts beside the classes. */
void sc_json_put_counts(json_t *object, const struct sc_counts *counts, bool *ok);

/* A key of host, device or conditions that is null, and never missing, when nobody found it out. */
bool sc_json_field_is_known(const char *group, const char *key);

json_t *sc_json_rank(const char *rank); /* a number where it is one */
json_t *sc_json_process(const struct sc_findings *findings, const struct sc_process *process, bool simulated, bool *ok);

#endif
