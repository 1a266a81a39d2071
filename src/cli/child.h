/* SPDX-License-Identifier: Apache-2.0
 * Running one program and waiting for it, so that neither it nor its files outlive an interrupted synccount. */
#ifndef SC_CLI_CHILD_H
#define SC_CLI_CHILD_H

#include "base/base.h"

/* Holds back SIGINT, SIGTERM, SIGHUP and SIGQUIT, unless ignored, from here on: a pending one ends child_run at once,
 * the caller tidies up, and child_release_signals then lets it end the process as it would have. */
void child_hold_signals(void);
void child_release_signals(void);
bool child_interrupted(void);

struct child {
  char *const *argv; /* argv[0] is the path */
  const char *const
      *environment;  /* "NAME=value" entries that replace or join ours, NULL-terminated; "NAME" alone removes */
  const char *title; /* of the progress line; NULL: none is shown */
  unsigned limit_s;  /* it is stopped after so many seconds; 0: never */
};
struct child_result {
  int status;          /* exit status, or -1 */
  int signal;          /* that ended it, or 0 */
  struct sc_buf lines; /* what it wrote on stderr, progress lines left out; the last 16 KiB. Free with sc_buf_free. */
};
/* stdin is /dev/null, stdout and stderr are taken. A "\r"-ended piece is progress and shown behind the title if stderr
 * is a terminal. SC_ERR_SYSTEM if it cannot be started, took too long, or if a signal interrupted us; the child is dead
 * and reaped on return. */
enum sc_status child_run(const struct child *child, struct child_result *out, struct sc_error *err) SC_NODISCARD;

#endif
