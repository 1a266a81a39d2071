/* SPDX-License-Identifier: Apache-2.0
 * Building documents of jansson's values: what is not known is null, strings are valid UTF-8. A library of its own
 * (sc_json): base itself links nothing. */
#ifndef SC_JSON_H
#define SC_JSON_H

#include <jansson.h>

#include "base/base.h"

/* New references, NULL when memory is out. */
json_t *sc_json_text(const char *text); /* NULL: null; a byte that is no UTF-8 becomes U+FFFD */
json_t *sc_json_count(uint64_t n);      /* beyond 2^63 - 1: a real */

/* Both take the value's reference and keep a failure, a value that is NULL among them, in *ok: a whole document is
 * built first and checked once. */
void sc_json_put(json_t *object, const char *key, json_t *value, bool *ok);
void sc_json_push(json_t *array, json_t *value, bool *ok);

#endif
