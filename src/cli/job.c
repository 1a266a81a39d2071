/* SPDX-License-Identifier: Apache-2.0
 * Launchers of parallel programs name each process' rank; what names the job differs from one to the other. */
#include "cli/job.h"

#include <stdlib.h>
#include <string.h>

#define NAME_LENGTH 128 /* of an id in a file's name */

static const char *variable(const char *name)
{
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

static const char *first_of(const char *const *names, size_t count)
{
  const char *value = NULL;
  for (size_t i = 0; i < count && !value; ++i)
    value = variable(names[i]);
  return value;
}

/* One run of torchrun. Without a rendezvous of its own the id is "none": then its port tells it from another one. */
static char *torchrun_id(void)
{
  const char *run = variable("TORCHELASTIC_RUN_ID"), *port = variable("MASTER_PORT");
  if (!run)
    return NULL;
  return strcmp(run, "none") == 0 && port ? sc_asprintf("%s-%s", run, port) : sc_strdup(run);
}

/* PMIX_ID is "JOB.RANK". */
static char *pmix_id(void)
{
  const char *id = variable("PMIX_ID"), *dot = id ? strrchr(id, '.') : NULL;
  return dot && dot > id ? sc_asprintf("%.*s", (int)(dot - id), id) : NULL;
}

/* A step of an allocation: the batch script itself is none. */
static char *slurm_id(void)
{
  const char *job = variable("SLURM_JOB_ID"), *step = variable("SLURM_STEP_ID");
  return job ? sc_asprintf("%s.%s", job, step ? step : "batch") : NULL;
}

/* A new string; NULL if nothing tells it (or memory is out: then the ranks cannot share a folder, and say so). The most
 * particular first: mpirun runs inside Slurm's allocations, torchrun under both. */
static char *find_id(bool torchrun)
{
  static const char *const mpi[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"};
  static const char *const others[] = {"I_MPI_HYDRA_UUID", "PMI_JOBID"};
  static const char *const queues[] = {"PBS_JOBID", "LSB_JOBID"};
  const char *own = variable("SYNCCOUNT_JOB"), *text = NULL;
  char *id = own ? sc_strdup(own) : torchrun ? torchrun_id() : NULL;
  if (id || own)
    return id;
  if ((text = first_of(mpi, SC_COUNTOF(mpi))))
    return sc_strdup(text);
  if ((id = pmix_id()))
    return id;
  if ((text = first_of(others, SC_COUNTOF(others))))
    return sc_strdup(text);
  if ((id = slurm_id()))
    return id;
  text = first_of(queues, SC_COUNTOF(queues));
  return text ? sc_strdup(text) : NULL;
}

/* In place: what a file's name can hold, whatever the file system. */
static void make_name(char *text)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@+-";
  if (strlen(text) > NAME_LENGTH)
    text[NAME_LENGTH] = '\0';
  for (size_t good; text[good = strspn(text, plain)];)
    text[good] = '_';
}

enum sc_status job_find(struct job *out, struct sc_error *err)
{
  /* In the tracer's order (src/tracer/about.c): the report's rank is the folder's. */
  static const char *const ranks[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                      "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID"};
  const char *rank = first_of(ranks, SC_COUNTOF(ranks)), *restart = variable("TORCHELASTIC_RESTART_COUNT");
  uint64_t number, life = 0;
  *out = (struct job){.ranked = rank && sc_parse_u64(rank, &number)};
  if (!out->ranked)
    return SC_OK;
  const bool torchrun = variable("RANK") != NULL;
  out->id = find_id(torchrun);
  if (!out->id)
    return SC_OK;
  make_name(out->id);
  if (torchrun && restart && sc_parse_u64(restart, &life) && life)
    out->rank = sc_asprintf("%llu.%llu", (unsigned long long)number, (unsigned long long)life);
  else
    out->rank = sc_asprintf("%llu", (unsigned long long)number);
  if (out->rank)
    return SC_OK;
  job_free(out);
  return sc_error_no_memory(err);
}

void job_free(struct job *job)
{
  free(job->id);
  free(job->rank);
  *job = (struct job){0};
}
