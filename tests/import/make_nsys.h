/* SPDX-License-Identifier: Apache-2.0
 * Writes Nsight Systems exports for tests: a call a line, and what the device did for it. */
#ifndef SC_TEST_MAKE_NSYS_H
#define SC_TEST_MAKE_NSYS_H

#include "test_support.h"

#include "import/import.h"

#include <sqlite3.h>

#define NSYS_PID 4321
#define NSYS_GLOBAL ((int64_t)1 << 48 | (int64_t)NSYS_PID << 24) /* globalPid; globalTid is this plus the thread */

struct nsys_file {
  char path[128];
  sqlite3 *db;
  int64_t now, correlation, thread; /* thread: what calls now, globalTid */
  struct sc_findings *findings;     /* after nsys_read */
  struct sc_process *process;       /* the first */
  struct sc_error error;
};

/* A new file with the tables of schema 3.25. */
void nsys_begin(struct nsys_file *f);
void nsys_sql(struct nsys_file *f, const char *format, ...); /* as sqlite3_mprintf: %Q quotes */
/* Takes 10 us, and starts 1 us after what came before. Returns its correlation id. */
int64_t nsys_call(struct nsys_file *f, const char *name);
int64_t nsys_call_status(struct nsys_file *f, const char *name, int status);
/* Device work of the last call: 4 us, from 3 us after that call began. kind: as ENUM_CUDA_MEMCPY_OPER names it. */
void nsys_kernel(struct nsys_file *f, int stream);
void nsys_copy(struct nsys_file *f, const char *kind, const char *src, const char *dst, int stream, int bytes);
void nsys_sync(struct nsys_file *f, const char *type, int64_t stream); /* of the last call */
/* Reads it, frees what was read before. Fails the test if the status is another one. */
void nsys_read(struct nsys_file *f, enum sc_status wanted);
bool nsys_warned(const struct nsys_file *f, const char *text);
void nsys_end(struct nsys_file *f); /* removes the file */

/* The usual calls: on a stream, with the device's side. */
#define LAUNCH(f, s) (nsys_call((f), "cudaLaunchKernel_v7000"), nsys_kernel((f), (s)))
#define D2H(f, s, memory) (nsys_call((f), "cudaMemcpyAsync_v3020"), nsys_copy((f), "DTOH", "DEVICE", (memory), (s), 64))
#define H2D(f, s, memory) (nsys_call((f), "cudaMemcpyAsync_v3020"), nsys_copy((f), "HTOD", (memory), "DEVICE", (s), 64))
#define SYNC(f, s) (nsys_call((f), "cudaStreamSynchronize_v3020"), nsys_sync((f), "STREAM_SYNCHRONIZE", (s)))

#endif
