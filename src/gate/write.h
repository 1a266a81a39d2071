/* SPDX-License-Identifier: Apache-2.0
 * What the writers have in common. Names come from the program that was traced: every writer escapes them. */
#ifndef SC_GATE_WRITE_H
#define SC_GATE_WRITE_H

#include "gate/gate.h"

#define NAME_MAX_SHOWN 200 /* bytes of a name in formats for people */

/* Printable, cut with "..." after NAME_MAX_SHOWN bytes. */
void gate_put_name(struct sc_buf *buf, const char *text);
const char *gate_name(const struct sc_gate_report *report);
void gate_put_number(struct sc_buf *buf, enum sc_gate_measure measure, double value);
/* "found 1 to 5 in 40 occurrences of 2 ranges, 3 of them not as expected; 6 more were warm-up" */
void gate_put_found(struct sc_buf *buf, const struct sc_gate_result *result);
/* "any" or "model.py:167 in forward (cudaStreamSynchronize, explicit)" */
void gate_put_place(struct sc_buf *buf, const struct sc_gate_extra *extra);
/* "4 a layer, 8 in all" */
void gate_put_amount(struct sc_buf *buf, enum sc_gate_measure measure, const struct sc_gate_extra *extra);
/* "layer:3: 12 in each of 40 occurrences" */
void gate_put_failure(struct sc_buf *buf, enum sc_gate_measure measure, const struct sc_gate_failure *failure);
/* "FAILED: 1 of 3 expectations failed (SIMULATED: ...)" */
void gate_put_headline(struct sc_buf *buf, const struct sc_gate_report *report);
const char *gate_shout(enum sc_gate_verdict verdict); /* "passed", "FAILED", "NOT MEASURED" */

/* Printable text so that Markdown and HTML leave it alone. */
void gate_put_markdown(struct sc_buf *buf, const struct sc_buf *plain);

extern const char gate_simulated[]; /* the sentence that says so */

#endif
