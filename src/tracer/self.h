/* SPDX-License-Identifier: Apache-2.0
 * Which file we are, and how we came in. */
#ifndef SC_TRACER_SELF_H
#define SC_TRACER_SELF_H

#include <limits.h>
#include <stdbool.h>

/* The full path of this library. False if it cannot be told. */
bool sc_self_path(char path[static PATH_MAX]);
/* `path` names the file that we were loaded from; false for NULL. */
bool sc_self_is(const char *path);
/* LD_PRELOAD names us: we are here from the program's start. */
bool sc_self_preloaded(void);

#endif
