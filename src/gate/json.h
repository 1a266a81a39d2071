/* SPDX-License-Identifier: Apache-2.0
 * What this room's two JSON documents have in common. */
#ifndef SC_GATE_JSON_H
#define SC_GATE_JSON_H

#include "base/json.h"

json_t *gate_json_number(double value); /* six digits behind the point, whole numbers as integers; NaN: null */
/* Appends the document to buf and lets go of root; buf->failed if memory was out. */
void gate_json_write(json_t *root, bool ok, struct sc_buf *buf);

#endif
