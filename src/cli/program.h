/* SPDX-License-Identifier: Apache-2.0
 * The user's program under the tracer: what `run` and `check` have in common. */
#ifndef SC_CLI_PROGRAM_H
#define SC_CLI_PROGRAM_H

#include "cli/folder.h"
#include "cli/launch.h"
#include "cli/place.h"
#include "cli/settings.h"

#define PROGRAM_CHANGES_MAX 16

struct program {
  const struct settings *settings;
  const struct place *place;
  const struct folder *folder; /* where its traces go */
  char **argv;
  char *changes[PROGRAM_CHANGES_MAX + 1]; /* of the environment */
  size_t change_count;
  bool ruler; /* the host's round trip is wanted beside what it left */
};

/* Fills the changes of the environment. */
enum sc_status program_prepare(struct program *program, struct sc_error *err) SC_NODISCARD;
/* As launch_run; the caller has called launch_hold. */
enum sc_status program_run(struct program *program, struct launch_end *end, struct sc_error *err) SC_NODISCARD;
/* Facts, what was not traced and why, and how to read the traces, beside them. */
enum sc_status program_write_session(const struct program *program, struct sc_error *err) SC_NODISCARD;
void program_free(struct program *program); /* the changes */

/* A file of ours must not become a standard stream that we were started without. The program is without it as well. */
void program_fill_streams(void);

#endif
