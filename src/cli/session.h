/* SPDX-License-Identifier: Apache-2.0
 * A session: what one main or ruler command measured, as files in a folder. The command writes them and reads them back
 * to make its report, so that `synccount report` on kept files says the same by construction. */
#ifndef SC_CLI_SESSION_H
#define SC_CLI_SESSION_H

#include "analysis/findings.h"
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
  size_t unexpected; /* runs whose count or output is not what it must be */
};
/* Fills findings from the folder's files. SC_ERR_FORMAT, SC_ERR_IO, SC_ERR_VERSION if one is damaged or missing. */
enum sc_status session_load(const char *path, struct sc_findings *findings, struct session_outcome *outcome,
                            struct sc_error *err) SC_NODISCARD;

#endif
