/* SPDX-License-Identifier: Apache-2.0
 * Whether this command was started as one rank of a job (mpirun -n 4 synccount run ...), as the launcher's variables
 * say. */
#ifndef SC_CLI_JOB_H
#define SC_CLI_JOB_H

#include "base/base.h"

/* Names of files: made of letters, digits and "._@+-", never empty. Free with job_free. */
struct job {
  char *id;   /* the same for all ranks, another for another job. NULL: there is no rank, or nothing tells the job */
  char *rank; /* "3", or "3.1" for the second life of a worker that its launcher started again. NULL: as id */
  bool ranked; /* there is a rank, whether or not the job can be told */
};

enum sc_status job_find(struct job *out, struct sc_error *err) SC_NODISCARD;
void job_free(struct job *job);

#endif
