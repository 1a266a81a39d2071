/* SPDX-License-Identifier: Apache-2.0
 * Programs that are attached to, commands that attach, and what their traces say. Everything that a test starts is gone
 * when it ends: see attached_teardown. */
#ifndef SC_TEST_ATTACHED_H
#define SC_TEST_ATTACHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analysis/analysis.h"

#define PATIENCE_MS 60000 /* instrumented builds on a busy machine are slow */
/* Looks again and again until the condition holds. */
#define wait_until(condition)                                                                                          \
  do {                                                                                                                 \
    for (int waited_ = 0; !(condition); waited_ += 5) {                                                                \
      if (waited_ > PATIENCE_MS)                                                                                       \
        fail_msg("waited in vain for: %s", #condition);                                                                \
      nap(5);                                                                                                          \
    }                                                                                                                  \
  } while (0)

struct program { /* `looping`, or another one */
  pid_t pid;
  int in;          /* to its standard input */
  int out;         /* from its standard output */
  char rest[4096]; /* what it said beyond the last line that was read */
  size_t rest_length;
};

extern char attached_folder[64]; /* of the test that runs: TMPDIR of all that it starts; fresh and empty */

int attached_setup(void **state);
int attached_teardown(void **state);

/* Starts argv with the simulated CUDA. settings: "NAME=value", NULL-terminated, or NULL. */
void program_start(struct program *program, const char *const *argv, const char *const *settings);
/* `looping` with 4 threads and the library preloaded, dormant; returns when its loop runs and its socket is there. */
void program_start_dormant(struct program *program, const char *const *more_settings);
/* The next line that it says. */
const char *program_line(struct program *program);
/* One command, and its answer. */
const char *program_ask(struct program *program, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Waits for its end; waitpid's status. */
int program_wait(struct program *program);
/* "end", and it must end well. */
void program_end(struct program *program);
/* SIGSTOP, and returns when it has stopped; SIGCONT. */
void program_stop(const struct program *program);
void program_continue(const struct program *program);
/* Waits until the process executes the program of that name. */
void wait_for_program(pid_t pid, const char *name);
/* The path of its socket, once it is there. */
const char *program_socket(const struct program *program);

struct command { /* `synccount attach` */
  pid_t pid;
  int number;
  char out[65536], err[8192]; /* once it has ended */
};
/* Extra arguments before the PID, NULL-terminated. The trace goes to folder/keep unless keep is NULL. */
void command_start(struct command *command, pid_t pid, const char *keep, const char *const *arguments);
/* Returns when it says that it counts. */
void command_counts(struct command *command);
/* Waits for its end: the exit status, or 128 + the signal. Reads what it wrote. */
int command_wait(struct command *command);
/* SIGINT, and it must end with 0. */
void command_end(struct command *command);
/* A whole one that must end with `status` and say `text` on standard error. */
void command_expect(pid_t pid, const char *const *arguments, int status, const char *text);

/* The only trace in folder/keep, as findings of one process. */
struct sc_findings *trace_read(const char *keep);
/* The only range of that name, whatever it is in; NULL: there is none. */
const struct sc_range_findings *trace_range(const struct sc_findings *findings, const char *name);
uint64_t trace_driver_calls(const char *keep); /* that were recorded as calls of their own */
/* Whether the only trace in folder/keep has been closed by its process. */
bool trace_is_closed(const char *keep);
uint32_t trace_flags(const char *keep);
char *trace_meta(const char *keep, const char *key); /* a new string, or NULL */

/* Counters of /proc. */
int count_fds(pid_t pid);
int count_sockets(pid_t pid);
int count_threads(pid_t pid);
int count_mappings(pid_t pid);
void nap(int ms);

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

#endif
