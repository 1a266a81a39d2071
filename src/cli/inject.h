/* SPDX-License-Identifier: Apache-2.0
 * Loading a library into a program that runs already, by ptrace. x86-64 alone; elsewhere it says so. */
#ifndef SC_CLI_INJECT_H
#define SC_CLI_INJECT_H

#include <sys/types.h>

#include "base/base.h"

/* To be said once, on stderr, before the first call. */
#define INJECT_WARNING                                                                                              \
  "this loads a library into the running process %ld by ptrace; one of its threads is away for some milliseconds, " \
  "and should synccount be killed by force in the first or last microseconds of that, the thread may get a wrong "  \
  "result of one system call"

struct inject_outcome {
  pid_t thread;     /* the one that made the calls */
  uint64_t away_ns; /* for how long */
  bool loaded;      /* false: the library was there already */
};

/* Makes process pid load `library` (an absolute path) and call its InitializeInjection, on one thread that waits in, or
 * comes to, a system call that neither malloc nor the loader makes; the other threads are never stopped. Where the
 * library is mapped already, only InitializeInjection is called. On success the thread has gone back to what it did.
 * Every refusal is one sentence with its remedy, and unless the sentence says otherwise the process is unchanged. Takes
 * at most some 20 seconds. The work is done by a child process, so that an interrupt does not cut it short: the caller
 * needs nothing but that nobody reaps it (no wait for any child at the same time). */
enum sc_status inject_library(pid_t pid, const char *library, struct sc_error *err) SC_NODISCARD;
/* The same, and tells what it did. *out is written on success. */
enum sc_status inject_library_told(pid_t pid, const char *library, struct inject_outcome *out,
                                   struct sc_error *err) SC_NODISCARD;

#endif
