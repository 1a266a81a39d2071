/* SPDX-License-Identifier: Apache-2.0
 * Running the user's program as if we were not there: its streams, its process group, its signals, its end. */
#ifndef SC_CLI_LAUNCH_H
#define SC_CLI_LAUNCH_H

#include "base/base.h"

struct launch {
  char *const *argv; /* argv[0] is looked up in PATH, as a shell would */
  const char *const
      *environment; /* "NAME=value" entries that replace or join ours, NULL-terminated; "NAME" alone removes */
};
struct launch_end {
  int status; /* exit status, or 128 + the signal that ended it */
  int signal; /* that ended it, or 0 */
};

/* Holds back the signals that are passed on (SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, those that we were not
 * told to ignore), from here to launch_release. Call before anything is made that has to be tidied up. */
void launch_hold(void);
/* Lets a signal that came since end us as it would have. */
void launch_release(void);

/* Runs the program to its end. Nothing ever stops it but itself and the signals passed on: what the terminal sends goes
 * to the whole process group and reaches it anyway; what a process sends to us is passed on, unless it comes from the
 * program itself. SC_ERR_SYSTEM if it could not be started: out->status is then 127 (not found) or 126. */
enum sc_status launch_run(const struct launch *launch, struct launch_end *out, struct sc_error *err) SC_NODISCARD;

/* Our environment with the changes of struct launch: an array to free, whose strings are borrowed. NULL: memory is out.
 */
char **launch_environment(const char *const *changes) SC_NODISCARD;

#endif
