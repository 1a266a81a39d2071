/* SPDX-License-Identifier: Apache-2.0
 * The thread of a dormant process, and the socket at which it waits: trace/control.h says what is spoken there. */
#ifndef SC_TRACER_CONTROL_H
#define SC_TRACER_CONTROL_H

#include <stdbool.h>

/* Starts the thread, which makes the socket. All signals are blocked in it. False if it could not be started: nobody can
 * attach, and nothing else changes. Call once. */
bool sc_control_open(void);
/* At the end of the process: the socket's file goes. The thread is left to end with the process. */
void sc_control_close(void);
/* In a forked child: what it has of the parent's sockets is closed. */
void sc_control_forked(void);

#endif
