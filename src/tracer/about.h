/* SPDX-License-Identifier: Apache-2.0
 * What the trace says about the process: META records. */
#ifndef SC_TRACER_ABOUT_H
#define SC_TRACER_ABOUT_H

#include "trace/trace.h"

void sc_about_put(struct sc_writer_thread *thread, const char *key, const char *value); /* a NULL or empty value is not
                                                                                           written */
/* command, cwd, exe, driver_version, rank, local_rank, launch_blocking, synccount_version: without a CUDA call. */
void sc_about_process(struct sc_writer_thread *thread);

#endif
