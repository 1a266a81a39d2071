/* SPDX-License-Identifier: Apache-2.0
 * Findings in, text out: one writer per format behind one table. Never sees a record, prints nothing itself. */
#ifndef SC_REPORT_H
#define SC_REPORT_H

#include <stdio.h>

#include "analysis/findings.h"

/* ---- where the bytes go ---------------------------------------------------------------------
 * A handle over a FILE or over memory. The first failed write is remembered, later ones do nothing,
 * and sc_out_flush reports it: a truncated report is never a success. */
struct sc_out;
struct sc_out *sc_out_file(FILE *file) SC_NODISCARD; /* the caller keeps and closes file; NULL: out of memory */
struct sc_out *sc_out_memory(void) SC_NODISCARD;     /* NULL: out of memory */
void sc_out_write(struct sc_out *out, const void *bytes, size_t n);
void sc_out_puts(struct sc_out *out, const char *text);
void sc_out_repeat(struct sc_out *out, char byte, size_t n);
/* Pushes everything to the FILE (fflush included). SC_ERR_IO names errno's reason, SC_ERR_NOMEM for memory. */
enum sc_status sc_out_flush(struct sc_out *out, struct sc_error *err) SC_NODISCARD;
/* What a memory handle holds, NUL-terminated, valid until the next write or free; "" for a FILE. len may be NULL. */
const char *sc_out_text(const struct sc_out *out, size_t *len);
void sc_out_free(struct sc_out *out); /* accepts NULL; drops what was not flushed */

/* ---- formats --------------------------------------------------------------------------------- */
struct sc_report_options {
  unsigned width;  /* columns of the terminal; 0: 100. Text only. */
  bool color;      /* the caller knows the terminal and NO_COLOR; no writer looks at the environment. Text only. */
  bool per_expert; /* adds the table by expert and op; JSON always holds it */
  bool threads;    /* lists every thread, silent ones too; JSON always does */
  bool quiet;      /* the answer and what makes it doubtful, no tables. JSON is always whole. */
};

struct sc_report_format {
  const char *name;      /* as --format takes it */
  const char *summary;   /* half a line for help texts */
  const char *extension; /* without dot */
  bool programs;         /* it tells of traced programs alone: nothing of the main command's runs or a ruler */
  bool events;           /* it shows single events, which sc_analysis_options.events keeps */
  enum sc_status (*write)(const struct sc_findings *findings, const struct sc_report_options *options,
                          struct sc_out *out, struct sc_error *err);
};
/* NULL if there is no such format. */
const struct sc_report_format *sc_report_format_find(const char *name);
/* The formats in order, NULL past the last: for help texts and error messages. */
const struct sc_report_format *sc_report_format_at(size_t index);

/* Writes the whole report and flushes. options may be NULL: the defaults. SC_ERR_NOMEM, SC_ERR_IO.
 * Times of a simulated device and of a variant that was not verified are left out by every format (chrome has no order
 * without them and says SIMULATED). A drifting ruler is
 * warned of by the writers themselves: callers add no warning of their own. */
enum sc_status sc_report_write(const struct sc_findings *findings, const struct sc_report_format *format,
                               const struct sc_report_options *options, struct sc_out *out,
                               struct sc_error *err) SC_NODISCARD;

/* ---- reading ------------------------------------------------------------------------------------ */
/* True if the file begins as a JSON report does, of whatever version. */
bool sc_report_is_json(const char *path);
/* Adds a JSON report to findings, which hold all that the schema has: written again it is the same. Single occurrences
 * are not in it. SC_ERR_IO, SC_ERR_FORMAT with the place, SC_ERR_VERSION, SC_ERR_LIMIT; findings are then half filled. */
enum sc_status sc_report_read_json(const char *path, struct sc_findings *findings, struct sc_error *err) SC_NODISCARD;

#endif
