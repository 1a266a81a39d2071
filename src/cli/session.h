/* SPDX-License-Identifier: Apache-2.0
 * A session: what one main, ruler or run command measured, as files in a folder. The command writes them and reads them
 * back to make its report, so that `synccount report` on kept files says the same by construction. */
#ifndef SC_CLI_SESSION_H
#define SC_CLI_SESSION_H

#include "analysis/analysis.h"
#include "cli/folder.h"

#define SESSION_FILE "session.json"
#define SESSION_TIMES "times.json"   /* the probe's document of the untraced pass */
#define SESSION_COUNTS "counts.json" /* of the traced pass */
#define SESSION_RULER "ruler.json"

struct session_notes {
  const struct sc_findings *facts; /* fields and warnings; the rest is not stored */
  const double *assumed_us;
  size_t assumed_count;
  bool simulated;
  const struct sc_analysis_options
      *run; /* of `synccount run`: how its traces are read. NULL: another command's session */
};

/* Writes SESSION_FILE, naming the documents and traces that lie in the folder. */
enum sc_status session_write(const struct folder *folder, const struct session_notes *notes,
                             struct sc_error *err) SC_NODISCARD;

/* True if the folder holds a session. */
bool session_is_there(const char *path);

struct session_outcome {
  size_t skipped;    /* points that the probe left out */
  size_t unverified; /* runs that differ from the CPU reference */
  size_t uncounted;  /* runs whose syncs could not be counted, or not with certainty */
  bool nothing;      /* of a run: no process was measured */
  size_t unexpected; /* runs whose count or output is not what it must be */
};
/* Fills findings from the folder's files. SC_ERR_FORMAT, SC_ERR_IO, SC_ERR_VERSION if one is damaged or missing.
 * options, which may be NULL: what is set in them replaces what a session of `synccount run` was read with. */
enum sc_status session_load(const char *path, const struct sc_analysis_options *options, struct sc_findings *findings,
                            struct session_outcome *outcome, struct sc_error *err) SC_NODISCARD;

/* Adds another session of the same job: as session_load, but the facts of the machine stay those that are there, and
 * *outcome is added to. */
enum sc_status session_add(const char *path, const struct sc_analysis_options *options, struct sc_findings *findings,
                           struct session_outcome *outcome, struct sc_error *err) SC_NODISCARD;

/* Adds the process of one trace file. A trace that is there already, or its copy, is left out with a warning. */
enum sc_status session_add_trace(const char *file, const struct sc_analysis_options *options,
                                 struct sc_findings *findings, struct sc_error *err) SC_NODISCARD;
/* A trace that cannot be read, and why: one process of many, killed while it made its file, must not cost the report of
 * the others. It is a loss, and a warning. */
enum sc_status session_count_loss(const struct sc_error *why, struct sc_findings *findings,
                                  struct sc_error *err) SC_NODISCARD;

/* True if at least one process of the findings was measured. */
bool session_measured(const struct sc_findings *findings);

#endif
