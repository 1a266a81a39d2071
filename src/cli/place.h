/* SPDX-License-Identifier: Apache-2.0
 * Where the parts of synccount are, in a build tree and installed, from wherever it is called. */
#ifndef SC_CLI_PLACE_H
#define SC_CLI_PLACE_H

#include "base/base.h"

struct place {
  char *probe;   /* synccount-probe */
  char *tracer;  /* libsynccount.so */
  char *simcuda; /* folder with the stand-in CUDA libraries */
  char *configs; /* folder with the shipped shapes */
  char *python;  /* folder with the sitecustomize of --torch-modules */
};

/* SC_ERR_SYSTEM names what is missing and where it was looked for. The environment's SYNCCOUNT_PROBE points at another
 * probe. */
enum sc_status place_find(struct place *out, struct sc_error *err) SC_NODISCARD;
void place_free(struct place *place);

/* What is put in front of /proc, /sys and /dev: "", or the environment's SYNCCOUNT_SYSROOT (tests). */
const char *place_sysroot(void);
/* kernel.yama.ptrace_scope, 0 to 3; -1: the kernel has no Yama, or it cannot be read. */
int place_yama_scope(void);

#endif
