/* SPDX-License-Identifier: Apache-2.0
 * What being traced costs the program, measured in the program. */
#ifndef SC_TRACER_COST_H
#define SC_TRACER_COST_H

#include "trace/format.h"
#include "tracer/cupti.h"

/* At the clean end, while we are subscribed: makes some hundred calls of cuDriverGetVersion, which needs no context and
 * changes nothing, with and without its callback, and writes down what a callback pair and a record cost. Leaves the
 * counters at 0 where it cannot tell. */
void sc_cost_measure(const struct sc_cupti *cupti, struct sc_trace_live *live);

#endif
