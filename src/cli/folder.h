/* SPDX-License-Identifier: Apache-2.0
 * The folder of one session: the probe's documents, the traces, and what the command line adds to them. */
#ifndef SC_CLI_FOLDER_H
#define SC_CLI_FOLDER_H

#include <stdio.h>

#include "base/base.h"

#include "cli/job.h"

/* In a folder that the ranks of one job share. */
#define FOLDER_JOB "job-"   /* job-<id>: whose folder it is */
#define FOLDER_RANK "rank-" /* rank-<rank>: the session of that rank */

struct folder {
  char *path;
  bool temporary;
  bool claimed; /* holds our mark: nobody else may begin a session in it */
};

/* keep: a folder to create, or one that is there and holds no session yet. NULL: a fresh one below $TMPDIR or /tmp. */
enum sc_status folder_open(const char *keep, struct folder *out, struct sc_error *err) SC_NODISCARD;
/* The same for one rank of a job: ranks that name the same folder share it, each with a folder of its own in there. No
 * two processes get the same one, whoever is first. Where nothing tells the job, as folder_open. */
enum sc_status folder_open_rank(const char *keep, const struct job *job, struct folder *out,
                                struct sc_error *err) SC_NODISCARD;
/* The folders of a job's ranks in a folder, sorted by name, as folder_names: *count is 0 if it is no such folder. */
enum sc_status folder_ranks(const char *path, char ***out, size_t *count, struct sc_error *err) SC_NODISCARD;
/* Gives free what was held back when the folder was opened, for what is to be written on a disk that is full by now. */
void folder_use_room(const struct folder *folder);
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
