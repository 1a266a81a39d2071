/* SPDX-License-Identifier: Apache-2.0
 * Processes that the tracer is in and does not trace. */
#ifndef SC_TRACER_UNTRACED_H
#define SC_TRACER_UNTRACED_H

#include <stdbool.h>

/* With SYNCCOUNT_FOLLOW=0 only the process that was started first is traced, whatever it executes. first: called by the
 * constructor, which notes that process in the environment. False: this is another one. */
bool sc_untraced_wanted(bool first);
/* Remembers to say at exit why a process that did use a GPU was not traced. `self`: full path of this library. */
void sc_untraced_watch(const char *self);

#endif
