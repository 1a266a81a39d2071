/* SPDX-License-Identifier: Apache-2.0
 * JSON values of this room's two documents: what is not known is null, strings are valid UTF-8. The put functions take
 * the value's reference and keep a failure in *ok. */
#ifndef SC_GATE_JSON_H
#define SC_GATE_JSON_H

#include <jansson.h>

#include "base/base.h"

void gate_json_put(json_t *object, const char *key, json_t *value, bool *ok);
void gate_json_push(json_t *array, json_t *value, bool *ok);
json_t *gate_json_text(const char *text); /* NULL: null */
json_t *gate_json_number(double value);   /* NaN: null */
json_t *gate_json_count(uint64_t value);
/* Appends the document to buf and lets go of root; buf->failed if memory was out. */
void gate_json_write(json_t *root, bool ok, struct sc_buf *buf);

#endif
