/* SPDX-License-Identifier: Apache-2.0
 * Inside libcuda: the device that is simulated. One mutex (sim_lock) guards every structure here; work itself runs
 * unlocked, on one thread per stream, so that the host can observe it unfinished exactly as on a GPU. */
#ifndef SIMCUDA_SIM_H
#define SIMCUDA_SIM_H

#include <cuda.h>
#include <pthread.h>

#include "hooks.h"

enum { SIM_MAX_DEVICES = 16, SIM_MAX_KERNELS = 4096 };

/* ---- settings and faults (config.c) ---- */
struct sim_settings {
  uint64_t round_trip_ns;
  uint64_t memory_bytes;
  int devices;
  int capability;     /* 90: compute capability 9.0 */
  int64_t lost_after; /* -1: never */
  char *subscriber;   /* NULL: slot free */
  int threads;        /* 0: as many as the process may use */
  uint32_t cupti_version;
  int queue; /* submissions that a stream holds; 0: no limit */
};
extern struct sim_settings sim_settings;
int sim_settings_load(void); /* 0, or 1 after a complaint; reads the environment once */
/* Error to inject into this call of `name`, 0 for none. Counts the calls. */
int sim_fault_for(const char *name);
enum sim_pairing { SIM_PAIRED, SIM_ENTER_ONLY, SIM_EXIT_ONLY };
enum sim_pairing sim_pairing_for(const char *name);
void sim_count_submission(void); /* device lost after the settings' number of these */

/* ---- objects ---- */

/* Where handles live. Their memory is never given back to malloc, so a stale handle is recognised by its cleared magic
 * instead of being a crash, and is always reachable, so a handle that a program does not destroy is not a leak of the
 * simulation's. */
struct sim_pool {
  size_t bytes; /* of one object */
  struct sim_pool_item *all, *dead;
};
/* Zeroed the first time an object is used, then as it was left; NULL when the host has no memory. */
void *sim_pool_get(struct sim_pool *pool);
void sim_pool_put(struct sim_pool *pool, void *object);
struct sim_capture;

struct sim_dependency {
  CUstream stream; /* holds a reference */
  uint64_t seq;
};

/* A piece of work in a stream, or a node of a graph (then without stream and dependencies). */
struct sim_op {
  struct sim_op *next;
  uint64_t seq;
  unsigned dependency_count, dependency_room;
  struct sim_dependency *dependencies;
  void (*run)(void *payload);  /* NULL: only order */
  void (*drop)(void *payload); /* frees what the payload owns, NULL: nothing */
  max_align_t payload[];
};
static inline void *sim_payload(struct sim_op *op) { return op->payload; }

struct CUstream_st {
  uint32_t magic;
  unsigned references; /* handle, worker, dependencies, events */
  CUcontext context;
  unsigned flags;
  int priority;
  uint64_t id;
  bool legacy, per_thread, destroyed;
  bool has_conditions;                     /* wake and done were made, in an earlier life */
  struct sim_op *head, *tail;              /* head: the one being done */
  uint64_t submitted, completed, observed; /* sequence numbers; observed: the host has waited for it */
  pthread_cond_t wake, done;
  unsigned waiters;
  bool worker;
  struct sim_capture *capture;
  unsigned capture_index;
  struct CUstream_st *next; /* in its context */
};

struct CUevent_st {
  uint32_t magic;
  CUcontext context;
  unsigned flags;
  bool recorded;
  CUstream stream; /* holds a reference; of the last record */
  uint64_t seq, generation;
  bool timed;
  uint64_t time_ns;
  uint64_t capture_id; /* last recorded in this capture, 0: none */
  uint64_t *capture_seen;
};

struct CUctx_st {
  uint32_t magic;
  uint32_t id;
  int device;
  unsigned flags;
  bool primary;
  int retained;
  CUstream streams;
  CUstream legacy, reaper;
  struct CUctx_st *next;
};

struct sim_kernel {
  const struct simcuda_kernel *kernel;
  int max_dynamic_shared;
};

struct CUgraph_st {
  uint32_t magic; /* cleared when the handle is destroyed; the nodes stay while something refers to them */
  struct sim_op *head, *tail;
  size_t count;
  unsigned references; /* handle, executables, launches under way */
};

struct CUgraphExec_st {
  uint32_t magic;
  CUgraph graph;
};

enum {
  SIM_STREAM_MAGIC = 0x53747265,
  SIM_EVENT_MAGIC = 0x45766e74,
  SIM_CONTEXT_MAGIC = 0x43747874,
  SIM_GRAPH_MAGIC = 0x47726170,
  SIM_EXEC_MAGIC = 0x45786563,
  SIM_LIBRARY_MAGIC = 0x4c696272,
  SIM_ARRAY_MAGIC = 0x41727261,
};

/* An array is linear memory without gaps: pitch = width of a row. Mipmapped arrays are one of these per level. */
struct CUarray_st {
  uint32_t magic;
  char *base;
  size_t row_bytes, height, depth; /* of the memory: at least one */
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
};

extern pthread_mutex_t sim_lock;

/* ---- the device and its contexts (device.c) ---- */
/* 0 when cuInit has succeeded here, else the error a call has to return. */
int sim_ready(void);
bool sim_forked(void); /* this is the child of a process that had initialised */
/* The current context, or an error (3, 201, 46). Every driver entry point that needs a context starts with it. */
int sim_context(CUcontext *context);
bool sim_context_is_live(CUcontext context); /* lock held */
extern CUcontext sim_contexts;               /* lock held */

/* ---- streams and their work (engine.c); all with the lock held ---- */
int sim_stream_new(CUcontext context, unsigned flags, int priority, CUstream *stream);
void sim_stream_release(CUstream stream);
/* Handle given by the caller to a live stream: NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a pointer. */
int sim_stream_of(CUcontext context, CUstream handle, bool per_thread, CUstream *stream);
struct sim_op *sim_op_new(size_t payload_bytes, void (*run)(void *), void (*drop)(void *));
void sim_op_free(struct sim_op *op);
void sim_op_depend(struct sim_op *op, CUstream stream, uint64_t seq);
/* Queues the work (or adds it to the stream's capture) and takes it over, also when it fails. *seq is 0 when it was
 * captured. */
int sim_submit(CUstream stream, struct sim_op *op, uint64_t *seq);
/* Puts work behind everything that the context has queued, in a stream nobody sees. */
void sim_submit_after_all(CUcontext context, struct sim_op *op);
bool sim_stream_idle(CUstream stream); /* legacy: blocking streams too */
/* Blocks until the work is done; the lock is released meanwhile. At least a round trip when the host had not seen it
 * done. */
void sim_wait_stream(CUstream stream);
void sim_wait_seq(CUstream stream, uint64_t seq);
void sim_wait_context(CUcontext context);
void sim_wait_all(void);
uint64_t sim_now_ns(void);

/* ---- capture and graphs (capture.c); all with the lock held ---- */
/* 0, or 900 for a call that is unsafe while a capture forbids it to this thread; that capture is invalidated. */
int sim_capture_forbid_unsafe(void);
/* 0, or 900 when anything in the context captures (synchronising a device that captures). */
int sim_capture_forbid_any(CUcontext context);
/* 0, 906 when the legacy stream would depend on a capturing blocking stream, 900 or 901 when the stream itself
 * captures. */
int sim_capture_forbid_wait(CUstream stream);
int sim_capture_forbid_legacy(CUstream stream);
int sim_capture_add(CUstream stream, struct sim_op *op);
int sim_capture_event_record(CUstream stream, CUevent event);
int sim_capture_event_wait(CUstream stream, CUevent event);
int sim_capture_forbid_event(CUevent event);
void sim_capture_stream_gone(CUstream stream);
void sim_graph_release(CUgraph graph);

/* ---- memory (memory.c); all with the lock held unless it says otherwise ---- */
enum sim_memory { SIM_PAGEABLE, SIM_PINNED, SIM_REGISTERED, SIM_DEVICE, SIM_MANAGED, SIM_POOL, SIM_ARRAY };
struct sim_block {
  char *base;
  size_t bytes;
  enum sim_memory kind;
  unsigned flags;
  int device;
  CUcontext context;
  uint64_t id;
  void *map;
  size_t map_bytes;
};
int sim_alloc(CUcontext context, enum sim_memory kind, size_t bytes, unsigned flags, void **pointer);
int sim_register(CUcontext context, void *pointer, size_t bytes, unsigned flags);
/* Block that holds the address, or NULL. Valid until the lock is released. */
const struct sim_block *sim_block_at(const void *pointer);
enum sim_memory sim_kind_of(const void *pointer);
/* True when [pointer, pointer + bytes) lies in one block. */
bool sim_range_ok(const void *pointer, size_t bytes);
/* Takes the block that starts at `pointer` out of the books; the memory stays until sim_block_free (lock free). */
struct sim_block *sim_block_take(void *pointer);
int sim_block_free(struct sim_block *block); /* 0, or 700 when its guard bytes were overwritten */
void sim_memory_info(int device, size_t *free_bytes, size_t *total_bytes);

/* What is common to every free: waits for all work, unless the block is pool memory, and gives it back. `accepts` names
 * the kinds that this call takes. Takes and releases the lock. */
int sim_free(void *pointer, bool (*accepts)(enum sim_memory));
int sim_allocate_async(CUdeviceptr *out, size_t bytes, CUstream handle, bool per_thread); /* likewise */

/* ---- kernels (kernels.c) ---- */
struct sim_kernel *sim_kernel_handle(const void *handle);

/* ---- the frame of a driver entry point ---- */
/* cuda.h hides the types of the first, 32-bit API; the parameter structs still name them. */
typedef unsigned CUdeviceptr_v1;
typedef struct CUDA_MEMCPY2D_v1_st CUDA_MEMCPY2D_v1;
typedef struct CUDA_MEMCPY3D_v1_st CUDA_MEMCPY3D_v1;
typedef struct CUDA_ARRAY_DESCRIPTOR_v1_st CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1_st CUDA_ARRAY3D_DESCRIPTOR_v1;
#include <generated_cuda_meta.h>

#include <cupti_driver_cbid.h>
#define SIM_SAME(x) (x)
#define DRIVER_(fn, pt, symbol, decl, args, work)                                                                    \
  SIMCUDA_ENTRY(fn, CUresult, SIMCUDA_DRIVER, CUPTI_DRIVER_TRACE_CBID_##fn, (&(fn##_params){SIMCUDA_ARGS args}), pt, \
                0, SIM_SAME, symbol, decl, work)
/* DRIVER: one function. DRIVER0: one without arguments. DRIVER_PT: a function and its per-thread-default-stream twin.
 */
#define DRIVER(fn, decl, args, work) DRIVER_(fn, false, NULL, decl, args, work)
#define DRIVER0(fn, work)                                                                                           \
  SIMCUDA_ENTRY(fn, CUresult, SIMCUDA_DRIVER, CUPTI_DRIVER_TRACE_CBID_##fn, NULL, false, 0, SIM_SAME, NULL, (void), \
                work)
#define DRIVER_PT(fn, suffix, decl, args, work) \
  DRIVER_(fn, false, NULL, decl, args, work)    \
  DRIVER_(fn##suffix, true, NULL, decl, args, work)

#endif
