/* SPDX-License-Identifier: Apache-2.0
 * NVTX ranges: the functions that NVTX's copies in the program call instead of doing nothing. */
#ifndef SC_TRACER_NVTX_H
#define SC_TRACER_NVTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sc_thread;

typedef const void *(*sc_nvtx_get_table)(uint32_t id);

/* Fills the tables of one copy of NVTX (each executable and library that uses it has its own). 1 on success, 0 if the
 * copy is not one we know: its ranges then stay no-ops. */
int sc_nvtx_attach(sc_nvtx_get_table get_table);
/* The library was loaded into a program that was running: it may have used NVTX before. */
void sc_nvtx_came_late(void);
/* A sentence that begins with "ranges not available", if some or all of the program's may be missing; else false. */
bool sc_nvtx_obstacle(char *text, size_t size);
/* The ranges that this thread had open before anything was recorded. */
void sc_nvtx_replay(struct sc_thread *thread);
/* In a forked child, where another thread may have held the lock. */
void sc_nvtx_forked(void);

#endif
