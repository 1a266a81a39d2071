/* SPDX-License-Identifier: Apache-2.0
 * The folder of one session: the probe's documents, the traces, and what the command line adds to them. */
#ifndef SC_CLI_FOLDER_H
#define SC_CLI_FOLDER_H

#include <stdio.h>

#include "base/base.h"

struct folder {
  char *path;
  bool temporary;
};

/* keep: a folder to create, or one that is there and holds no session yet. NULL: a fresh one below $TMPDIR or /tmp. */
enum sc_status folder_open(const char *keep, struct folder *out, struct sc_error *err) SC_NODISCARD;
/* Removes a temporary folder with all that is in it; keeps any other. */
void folder_close(struct folder *folder);
char *folder_file(const struct folder *folder, const char *name) SC_NODISCARD; /* a new string, NULL: out of memory */
/* A regular file, for reading. NULL with errno if it is none or cannot be opened: a FIFO must not hang us. */
FILE *folder_read_file(const char *path) SC_NODISCARD;

/* Names in a folder that match a sc_match pattern, sorted. Free with folder_free_names. SC_ERR_IO if it cannot be read.
 */
enum sc_status folder_names(const char *path, const char *pattern, char ***out, size_t *count,
                            struct sc_error *err) SC_NODISCARD;
void folder_free_names(char **names, size_t count);

#endif
