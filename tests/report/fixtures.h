/* SPDX-License-Identifier: Apache-2.0
 * Hand-built findings for the writers' tests. Their figures are made up, consistent with each other. */
#ifndef SC_TEST_REPORT_FIXTURES_H
#define SC_TEST_REPORT_FIXTURES_H

#include "report/report.h"

struct sc_findings *fixture_full(void);         /* two variants, E = 4, 8, 16, every part of the main command filled */
struct sc_findings *fixture_minimal(void);      /* nothing measured */
struct sc_findings *fixture_simulated(void);    /* the full one from the simulated device, its times still filled in */
struct sc_findings *fixture_not_verified(void); /* the sorted variant failed; its times still filled in */
struct sc_findings *fixture_lost(void);
struct sc_findings *fixture_hit(void);                 /* hit < E, and a layer that differs from the expectation */
struct sc_findings *fixture_assumed(void);             /* full, with two assumed round trips */
struct sc_findings *fixture_ruler(void);               /* zero runs: what `synccount ruler` finds */
struct sc_findings *fixture_process(void);
struct sc_findings *fixture_traced(void); /* a PyTorch program on a host whose round trip was measured: several sites */
void fixture_add_allowed(struct sc_findings *f); /* a range synccount.allow:logging without syncs */             /* a traced program: threads, ranges, sites, steps */
struct sc_findings *fixture_hostile(const char *name); /* the given string wherever a string comes from outside */

/* The report as a string; the caller frees it. Fails the test when the writer fails. */
char *render(const struct sc_findings *findings, const char *format, const struct sc_report_options *options);

#endif
