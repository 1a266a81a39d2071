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

enum sc_status output_check_file(const char *path, struct sc_error *err) SC_NODISCARD; /* of another file */

/* Text that is complete already, to a file, or to where the report would go if path is NULL. SC_ERR_SYSTEM. */
enum sc_status output_text(const struct settings *settings, const struct sc_buf *text, const char *path,
                           struct sc_error *err) SC_NODISCARD;

/* SC_ERR_SYSTEM if it cannot be written. */
enum sc_status output_report(const struct settings *settings, const struct sc_findings *findings,
                             struct sc_error *err) SC_NODISCARD;

/* Lines of text cut at blanks to `width` columns (40 or more), each continued below where its own text begins. For
 * tests; output_text does so on a terminal. */
void output_wrap(struct sc_buf *out, const char *text, unsigned width);

#endif
