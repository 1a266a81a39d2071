/* SPDX-License-Identifier: Apache-2.0
 * Traced programs with single events, made by the engine from calls: for the formats that show each of them. */
#ifndef SC_TEST_REPORT_PROGRAMS_H
#define SC_TEST_REPORT_PROGRAMS_H

#include "analysis/analysis.h"

/* `syncs` syncs over `threads` threads, in ranges, with flows, poll waits and a start/end range; every name that a
 * program chooses is `name`, or a usual one if NULL. Its times are those of a device. */
struct sc_findings *program_findings(uint64_t syncs, unsigned threads, const char *name);
/* A model as --torch-modules names it: 4 equal layers, one sync in each, 8 experts without any. */
struct sc_findings *model_findings(void);

#endif
