/* SPDX-License-Identifier: Apache-2.0
 * What /proc shows of one process. root: "" or a test's, as in place.h. */
#ifndef SC_CLI_PROC_H
#define SC_CLI_PROC_H

#include <sys/types.h>

#include "base/base.h"

/* All of root/proc/PID/file, appended to out. False with errno if it cannot be read, or memory is out. */
bool proc_read(const char *root, pid_t pid, const char *file, struct sc_buf *out) SC_NODISCARD;

struct proc_status {
  pid_t process, tracer; /* tracer 0: none */
  pid_t inner;           /* its number in its own pid namespace */
  uid_t user;            /* effective */
  gid_t group;           /* likewise */
  char state;            /* R S D T t Z X */
  unsigned seccomp;      /* 2: filters */
  char name[64];         /* of its command */
};
/* Of a thread of the process; of the process itself if thread is 0. False with errno if there is none such. */
bool proc_status_read(const char *root, pid_t pid, pid_t thread, struct proc_status *out) SC_NODISCARD;

struct proc_map {
  uint64_t start, end, offset;
  bool executable, deleted;
  char *path; /* never NULL; "" without a file */
};
struct proc_maps {
  struct proc_map *at;
  size_t count, capacity;
};
/* False with errno. None at all: it is ending, or a kernel thread. */
bool proc_maps_read(const char *root, pid_t pid, struct proc_maps *out) SC_NODISCARD;
void proc_maps_free(struct proc_maps *maps);

/* What follows the last slash. */
const char *proc_base_name(const char *path);

#endif
