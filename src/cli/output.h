/* SPDX-License-Identifier: Apache-2.0
 * The report to standard output (of run: to standard error), or whole to a file: under another name first, so that a
 * reader never sees half of it. */
#ifndef SC_CLI_OUTPUT_H
#define SC_CLI_OUTPUT_H

#include "analysis/findings.h"
#include "cli/settings.h"

/* Whether output_report() would find its folder or its device writable, before time is spent on a measurement. Writes
 * nothing. SC_ERR_SYSTEM if not. */
enum sc_status output_check(const struct settings *settings, struct sc_error *err) SC_NODISCARD;

/* SC_ERR_SYSTEM if it cannot be written. */
enum sc_status output_report(const struct settings *settings, const struct sc_findings *findings,
                             struct sc_error *err) SC_NODISCARD;

#endif
