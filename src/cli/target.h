/* SPDX-License-Identifier: Apache-2.0
 * A running process that somebody wants to attach to: what can be seen of it, and its tracer's socket. */
#ifndef SC_CLI_TARGET_H
#define SC_CLI_TARGET_H

#include <sys/types.h>

#include "base/base.h"
#include "trace/control.h"

struct target {
  const char *root; /* as given to target_examine */
  pid_t pid, inner; /* inner: in its own pid namespace */
  uid_t uid;        /* effective */
  gid_t gid;
  char name[64];    /* of its command */
  bool has_library; /* libsynccount.so is loaded into it, */
  bool by_itself;   /* and it was started with it: its environment names the library */
  bool has_cuda;    /* libcuda.so is */
  bool will_sleep;  /* it was started with SYNCCOUNT_DORMANT=1 */
  char *other_tool; /* CUDA_INJECTION64_PATH, if that names no libsynccount.so; NULL */
  char *runtime, *temporary; /* its XDG_RUNTIME_DIR and TMPDIR; NULL */
};

/* Looks at a process below root/proc (root: "" or a test's). SC_ERR_MEASURE, with the remedy: there is none, it is not
 * ours, it is in another container, or it cannot be looked at. Free it in any case. */
enum sc_status target_examine(const char *root, pid_t pid, struct target *out, struct sc_error *err) SC_NODISCARD;
void target_free(struct target *target);
/* SC_ERR_MEASURE, with the remedy, if it is stopped: it would not answer. */
enum sc_status target_check_runs(const struct target *target, struct sc_error *err) SC_NODISCARD;

/* A connection to its dormant tracer; *fd is the caller's to close. False: there is none (yet). */
bool target_connect(const struct target *target, int *fd);
/* Why there is none, as an error with its remedy. library: ours, to be named. */
enum sc_status target_explain(const struct target *target, const char *library, struct sc_error *err);

enum target_says {
  TARGET_ANSWERS, /* if only that it is of another version */
  TARGET_GONE,    /* the connection is closed */
  TARGET_SILENT,  /* it is stopped, or has said nothing for half a minute */
};
/* One request and its answer. request->head and ->release are filled here. SC_ERR_MEASURE if there is none, or it is
 * another version's library that answers. What it answered is the caller's to judge. */
enum sc_status target_ask(const struct target *target, int fd, enum sc_control_command command,
                          struct sc_control_request *request, struct sc_control_reply *reply, enum target_says *says,
                          struct sc_error *err) SC_NODISCARD;

#endif
