/* SPDX-License-Identifier: Apache-2.0
 * Which CUDA host calls matter, and what they are, by name. The tracer and the importers both ask here,
 * so that the same name means the same thing whatever the trace came from. */
#ifndef SC_TRACE_CALLS_H
#define SC_TRACE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sc_op { /* stored in traces: values never change */
  SC_OP_NONE = 0,          /* no name we know */
  SC_OP_SYNC_STREAM = 1,
  SC_OP_SYNC_EVENT = 2,
  SC_OP_SYNC_DEVICE = 3,   /* Device-, Ctx-, ThreadSynchronize */
  SC_OP_COPY = 4,          /* every synchronous memcpy form, runtime and driver */
  SC_OP_COPY_ASYNC = 5,    /* every asynchronous one, batches too */
  SC_OP_MEMSET = 6,
  SC_OP_MEMSET_ASYNC = 7,
  SC_OP_QUERY_STREAM = 8,
  SC_OP_QUERY_EVENT = 9,
  SC_OP_FREE = 10,         /* cudaFree, FreeArray, FreeMipmappedArray, cuMemFree, ... */
  SC_OP_FREE_HOST = 11,
  SC_OP_UNREGISTER = 12,
  SC_OP_FREE_ASYNC = 13,
  SC_OP_ALLOC = 14,        /* device, host, managed, pool: followed for memory kinds, not recorded */
  SC_OP_REGISTER = 15,     /* likewise */
  SC_OP_LAUNCH = 16,       /* kernel launches: counted on the thread, not recorded */
  SC_OP_GRAPH_LAUNCH = 17, /* likewise */
  SC_OP_HOST_FUNC = 18,    /* cudaLaunchHostFunc, AddCallback: a submission, recorded */
  SC_OP_PREFETCH = 19,     /* a submission, recorded */
  SC_OP_LIFECYCLE = 20,    /* unloads, destroys, trim, reset, unmap, IPC close: recorded, listed, not counted */
  SC_OP_CAPTURE = 21,      /* begin, end, status of stream capture: followed, not recorded */
  SC_OP_MAP = 22,          /* VMM, IPC open, pool import: followed for memory kinds */
  SC_OP_EVENT_RECORD = 23, /* EventRecord and StreamWaitEvent: followed only while something captures */
  SC_OP_IGNORED = 24,      /* matches the watch pattern, known not to matter (attributes, graph nodes, ...) */
  SC_OP_PROFILER_START = 25, /* cudaProfilerStart, cuProfilerStart: recorded, marks what is to be counted */
  SC_OP_PROFILER_STOP = 26,
  SC_OP_COUNT
};

/* "cudaMemcpyAsync_ptsz_v7000" -> base "cudaMemcpyAsync", per_thread true. Strips, in any order, _vNNNN,
 * _ptsz, _ptds and the driver's _v2, _v3. Importers pass names with or without suffixes. */
struct sc_call_name {
  char base[96];
  bool per_thread; /* a _ptsz or _ptds form: stream 0 means the per-thread default stream */
};
void sc_call_parse_name(const char *name, struct sc_call_name *out);

/* What the call of this (full or base) name is. SC_OP_NONE for names that are not in the table. */
enum sc_op sc_call_op(const char *name);

/* Direction that the NAME alone fixes (cuMemcpyDtoH, cudaMemcpyToSymbol...), else SC_DIRECTION_NONE. */
int sc_call_direction(const char *name);

/* True if a name like this one has to be classified: contains memcpy, synchronize, query, free, alloc,
 * register, unregister, unload, destroy, memset, launch, hostfunc, addcallback, reset, trim, unmap,
 * release, prefetch, capture or ipcclose (any case). The completeness test asks it of every CUPTI id. */
bool sc_call_needs_class(const char *name);

const char *sc_op_name(enum sc_op op); /* "sync-stream", "copy", ... */

#endif
