/* SPDX-License-Identifier: Apache-2.0
 * What the checks of the test programs share: run a program under the tracer, read its traces, say pass, fail or skip.
 * The very same checks run on the simulated libraries (ctest) and on a GPU (tests/gpu/run). */
#ifndef SC_TEST_CHECKER_H
#define SC_TEST_CHECKER_H

#include <sys/types.h>

#include "analysis/analysis.h"

struct checker {
  const char *programs; /* folder of the test programs */
  const char *tracer;   /* libsynccount.so */
  const char *may_skip; /* "*": any row may be skipped; else a comma list of the rows that may */
  bool keep;            /* leave traces and say where */
  unsigned passed, failed, skipped;
};

/* One line each on stdout: "PASS name: text". */
void check_pass(struct checker *c, const char *name, const char *format, ...) SC_PRINTF(3, 4);
void check_fail(struct checker *c, const char *name, const char *format, ...) SC_PRINTF(3, 4);
void check_skip(struct checker *c, const char *name, const char *format, ...) SC_PRINTF(3, 4);

struct traced {
  char folder[256]; /* of the traces; removed by traced_end */
  pid_t pid;
  bool running;
  int status; /* as waitpid gives it */
  struct sc_buf out, err;
  int out_fd, err_fd;
  struct sc_findings *findings; /* one process a trace file */
  size_t trace_files;
};

/* Runs it without the tracer. False: a SKIP line says that the program does not end with 0 here on its own. */
bool plain_run(struct checker *c, const char *check, const char *const argv[]);

/* Starts programs/argv[0] (or argv[0] itself when it holds a slash) with the tracer preloaded and traces going to a new
 * folder. extra: "NAME=value" settings more, ended by NULL; NULL: none. False: a FAIL line was printed. */
bool traced_start(struct checker *c, const char *check, struct traced *t, const char *const argv[],
                  const char *const *extra);
/* Waits for the end, for `seconds` at most (then kills it and fails the check). */
bool traced_wait(struct checker *c, const char *check, struct traced *t, unsigned seconds);
/* Reads every trace in the folder. False: a FAIL line was printed. */
bool traced_read(struct checker *c, const char *check, struct traced *t);
/* start, wait, read, and demand this exit status. */
bool traced_run(struct checker *c, const char *check, struct traced *t, const char *const argv[],
                const char *const *extra, int exit_status);
void traced_end(struct checker *c, struct traced *t);

/* The range of that name in the rows' domain at the top level; NULL if there is none. */
const struct sc_range_findings *traced_range(const struct sc_process *process, const char *name);
/* The process of that pid, NULL if it left no trace. */
const struct sc_process *traced_process(const struct traced *t, pid_t pid);
/* Fails the check if records were lost or a file was damaged. */
bool traced_complete(struct checker *c, const char *check, const struct traced *t);

/* The checks. */
void check_sequences(struct checker *c, const char *table);
void check_threads(struct checker *c);
void check_fork(struct checker *c);
void check_killed(struct checker *c);
void check_late(struct checker *c);
void check_untouched(struct checker *c);

#endif
