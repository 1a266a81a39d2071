/* SPDX-License-Identifier: Apache-2.0
 * Traces that other tools took: their calls, ranges and device work go through the same analysis as ours. */
#ifndef SC_IMPORT_H
#define SC_IMPORT_H

#include "analysis/analysis.h"

enum sc_import_kind {
  SC_IMPORT_NONE,
  SC_IMPORT_NSYS_SQLITE, /* Nsight Systems, exported to SQLite */
  SC_IMPORT_NSYS_REP,    /* Nsight Systems' own formats: reading them is refused with the command that exports them */
  SC_IMPORT_KINETO,      /* PyTorch profiler: Chrome trace JSON, plain or gzip */
};
/* By content, not by name: the name only decides whether bytes that are nobody's are told to be a report of Nsight
 * Systems. A file of ours, or of nobody, is NONE. Fails if the file cannot be read. */
enum sc_status sc_import_recognise(const char *path, enum sc_import_kind *out, struct sc_error *err) SC_NODISCARD;
/* Appends one sc_process for each process of the trace to findings, and warnings about what the trace cannot tell. */
enum sc_status sc_import_read(const char *path, enum sc_import_kind kind, const struct sc_analysis_options *options,
                              struct sc_findings *findings, struct sc_error *err) SC_NODISCARD;

/* The formats, for import.c alone. */
enum sc_status sc_import_nsys(const char *path, const struct sc_analysis_options *options, struct sc_findings *findings,
                              struct sc_error *err) SC_NODISCARD;
enum sc_status sc_import_kineto(const char *path, const struct sc_analysis_options *options,
                                struct sc_findings *findings, struct sc_error *err) SC_NODISCARD;

#endif
