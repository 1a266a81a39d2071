/* SPDX-License-Identifier: Apache-2.0
 * The trace file's layout, version 1. docs/synccount-trace.5.scd is the specification.
 *
 * A file is a sequence of slots of header.slot_size bytes. Slot 0 holds struct sc_trace_header and
 * struct sc_trace_live. Every later chunk starts at a slot boundary and is a whole number of
 * slots. A slot that begins with four zero bytes is unused. All integers little-endian.
 *
 * A thread writes into its home, a chunk that is mapped into the process. Homes grow (4, 16, then 64 KiB), so that a
 * program of thousands of short-lived threads does not leave 64 KiB for each. A full home of 64 KiB is appended to the
 * file as an ordinary chunk and used again, so a thread's home comes after all its other chunks, wherever it lies. */
#ifndef SC_TRACE_FORMAT_H
#define SC_TRACE_FORMAT_H

#include <stdint.h>

#define SC_TRACE_MAGIC "SYNCTRC\n" /* 8 bytes, no NUL */
#define SC_TRACE_VERSION 1
#define SC_TRACE_VERSION_MIN 1
#define SC_TRACE_SLOT 4096u           /* the smallest slot; a writer on a machine with larger pages uses the page size */
#define SC_TRACE_SLOT_MAX 65536u
#define SC_TRACE_CHUNK 65536u         /* what a writer's chunks grow to */
#define SC_TRACE_CHUNK_MAX 262144u    /* no chunk of any kind is larger */
#define SC_TRACE_UNIT 64u             /* records are whole multiples of this */
#define SC_TRACE_STRING_MAX 16384u    /* longer names are cut, SC_STRING_CUT is set */
#define SC_TRACE_SUFFIX ".sctrace"

enum sc_trace_header_flag {
  SC_TRACE_LATE = 1,      /* subscribed after CUDA had been used: earlier memory and ranges are unknown */
  SC_TRACE_SIMULATED = 2, /* the process ran on the simulated device */
};

struct sc_trace_header { /* 256 bytes, written once, then never changed */
  char magic[8];
  uint16_t version;     /* of this file */
  uint16_t version_min; /* the oldest reader version that can read it */
  uint32_t header_size; /* sizeof(struct sc_trace_header) of the writer; struct sc_trace_live follows there */
  uint32_t slot_size;   /* a power of two, SC_TRACE_SLOT to SC_TRACE_SLOT_MAX */
  uint32_t checksum;    /* low 32 bits of XXH3_64bits over header_size bytes with this field 0 */
  uint32_t flags;    /* enum sc_trace_header_flag */
  uint32_t pid, ppid;
  uint32_t reserved0;
  uint64_t start_mono_ns; /* CLOCK_MONOTONIC: the clock of every record */
  uint64_t start_real_ns; /* CLOCK_REALTIME at the same moment */
  char host[64];          /* NUL-padded */
  char reserved1[136];
};

struct sc_trace_live { /* 256 bytes after the header: counters that change while the process runs; no checksum */
  uint64_t lost_records; /* records that found no room */
  uint64_t lost_chunks;  /* chunks that could not be added */
  uint64_t end_mono_ns;  /* 0: the process did not end cleanly (killed, _exit) */
  uint64_t overhead_ns;  /* tracer's own time outside callbacks (start, chunk changes) */
  uint64_t full;         /* 1: recording stopped (disk full, RLIMIT_FSIZE, --max-trace) */
  uint64_t call_cost_ns;   /* what recording one call adds to it, measured at the clean end; 0: not measured */
  uint64_t launch_cost_ns; /* the same of counting one launch */
  uint64_t stacks;         /* times that a stack was taken, */
  uint64_t stack_ns;       /* the time that this took, outside every measured call, */
  uint64_t stack_walks;    /* and how many of them had to walk the native frames */
  uint64_t stacks_missing; /* blocking calls whose stack was wanted and could not be had in full */
  uint64_t beyond_size;    /* of struct sc_trace_beyond behind these counters; 0: only what is recorded is counted */
  uint64_t uncounted;      /* calls that are neither recorded nor counted there */
  uint64_t queue_waits;    /* launches that waited for room in the device's queue, by how long they took; */
  uint64_t queue_wait_ns;  /* the time inside them */
  uint64_t chunks;         /* that are in the file, each counted once it is whole or taken into use; 0: not counted */
  uint64_t stack_walk_ns;    /* of stack_ns: of the stacks that were walked, */
  uint64_t stack_longest_ns; /* and the longest of the others */
  uint64_t reserved[14];
};

/* Behind the live counters, in the same slot: what the calls amount to that had no room for a record. They are counted
 * by the rules that readers count records by (src/trace/count.h), of all threads together. No checksum. */
#define SC_BEYOND_COUNTS 32
#define SC_BEYOND_MARKS 128
struct sc_trace_beyond {
  uint64_t all[SC_BEYOND_COUNTS];    /* struct sc_counts, then 0 */
  uint64_t within[SC_BEYOND_COUNTS]; /* of those, what was entered between profiler start and stop */
  uint64_t marks; /* profiler starts and stops that had no room for a record; the first SC_BEYOND_MARKS are told: */
  uint64_t mark[SC_BEYOND_MARKS]; /* 2 x time, + 1 for a start (when it had returned; a stop: when it was entered) */
};

enum sc_chunk_kind {
  SC_CHUNK_RECORDS = 1, /* unknown kinds are skipped by size */
  SC_CHUNK_VOID = 2,    /* a chunk whose writing was not finished: skipped */
};
enum sc_chunk_flag {
  SC_CHUNK_OPEN = 1,    /* still being written: no checksum; take `committed` bytes */
  SC_CHUNK_DEFINES = 2, /* holds STRING, API, META, MODULE, FRAME or STACK records: set before the first of them is
                           committed, so that a reader can gather definitions without reading every chunk twice */
  SC_CHUNK_HOME = 4,    /* the thread's current or last chunk: read it after all its others. Open, and with the same
                           sequence as another chunk of its thread, its records are in that other one already */
};

#define SC_CHUNK_MAGIC 0x4b484353u /* "SCHK" */
struct sc_trace_chunk { /* 64 bytes */
  uint32_t magic;
  uint16_t kind, flags;
  uint32_t size;        /* bytes, this header included; a multiple of the slot size */
  uint32_t committed;   /* bytes of whole records after this header; stored with release order */
  uint32_t checksum;    /* closed chunks: low 32 bits of XXH3_64bits over this header (checksum 0) and the committed bytes */
  uint32_t tid;         /* kernel thread id */
  uint64_t thread;      /* serial of the thread in this process, from 1; tids are reused, this is not */
  uint64_t sequence;    /* 0, 1, 2... of this thread */
  uint64_t lost;        /* records of this thread lost between its previous chunk and this one */
  uint32_t submissions; /* submissions since the last committed record of this thread (live in an open chunk) */
  uint32_t launches;    /* of those, kernel and graph launches */
  uint32_t reserved[2];
};

enum sc_record_kind { /* unknown kinds are skipped by units */
  SC_RECORD_CALL = 1,
  SC_RECORD_RANGE_PUSH = 2,
  SC_RECORD_RANGE_POP = 3,
  SC_RECORD_RANGE_START = 4, /* process-wide start/end ranges */
  SC_RECORD_RANGE_END = 5,
  SC_RECORD_STRING = 6,
  SC_RECORD_API = 7,
  SC_RECORD_META = 8,   /* "key\0value" about the process */
  SC_RECORD_THREAD = 9, /* the thread's name */
  SC_RECORD_NOTE = 10,  /* a warning for the report, text */
  SC_RECORD_MODULE = 11, /* a loaded file that native frames lie in */
  SC_RECORD_FRAME = 12,  /* a line of Python */
  SC_RECORD_STACK = 13,  /* where a call came from: frames, innermost first */
  SC_RECORD_MARK = 14,   /* a moment: struct sc_record_range without a handle. Of domain "synccount", or named
                            "synccount.*" in the default domain; others are not recorded */
};

struct sc_record_head { /* the first 16 bytes of every record */
  uint16_t kind;
  uint16_t units;       /* length in SC_TRACE_UNIT, at least 1; a record never crosses a chunk's end */
  uint32_t submissions; /* of this thread since its previous record */
  uint32_t launches;    /* of those, kernel and graph launches */
  uint32_t stack;       /* of a CALL: id of the STACK record that says where it came from, 0 none. Of others 0 */
};

enum sc_memory {
  SC_MEMORY_UNKNOWN = 0,
  SC_MEMORY_PAGEABLE = 1,
  SC_MEMORY_PINNED = 2,
  SC_MEMORY_DEVICE = 3,
  SC_MEMORY_MANAGED = 4,
  SC_MEMORY_ARRAY = 5,
};
enum sc_direction {
  SC_DIRECTION_NONE = 0, /* not a copy, or not known (see SC_CALL_UNKNOWN_DIRECTION) */
  SC_DIRECTION_H2D = 1,
  SC_DIRECTION_D2H = 2,
  SC_DIRECTION_D2D = 3,
  SC_DIRECTION_H2H = 4,
};
enum sc_call_flag {
  SC_CALL_CAPTURED = 1,      /* the stream was being captured into a graph */
  SC_CALL_NULL_POINTER = 2,  /* free of NULL */
  SC_CALL_POOL_POINTER = 4,  /* free of memory from cudaMallocAsync or a pool */
  SC_CALL_NO_ARGUMENTS = 8,  /* this name's argument layout is not known: no stream, bytes, memory */
  SC_CALL_UNKNOWN_DIRECTION = 16,
  SC_CALL_OBJECT_BLOCKING = 32, /* event or device set to sleep instead of spin */
};

/* The two default streams are told apart, whatever the call was given. */
#define SC_STREAM_LEGACY 1u
#define SC_STREAM_PER_THREAD 2u

struct sc_record_call { /* 64 bytes: one outermost CUDA call */
  struct sc_record_head head;
  uint64_t start_ns;    /* CLOCK_MONOTONIC */
  uint64_t duration_ns; /* poll records: from the first query to the last */
  uint64_t stream;      /* handle as the program passed it, default streams normalised; 0 none */
  uint64_t object;      /* event; or the pointer that is freed; 0 none */
  uint64_t bytes;       /* of a copy or memset; of a poll record: the number of not-ready answers */
  uint32_t api;         /* SC_RECORD_API id in the low 16 bits; device ordinal (255: not known) in bits 16..23; enum sc_call_flag in bits 24..31 */
  int16_t status;       /* cudaError_t or CUresult; 600 is not ready */
  uint8_t direction;    /* enum sc_direction */
  uint8_t memory;       /* destination in the low 4 bits, source in the high 4: enum sc_memory */
};
#define SC_CALL_API(call) ((call)->api & 0xffffu)
#define SC_CALL_DEVICE(call) (((call)->api >> 16) & 0xffu)
#define SC_CALL_FLAGS(call) ((call)->api >> 24)
#define SC_CALL_DST(call) ((call)->memory & 0xfu)
#define SC_CALL_SRC(call) ((call)->memory >> 4)

/* A query that answers "not ready" opens a poll record; as long as it is the thread's last record and the
 * same object is asked again by the same function, later answers are added to it in place (bytes, duration,
 * and the status of the last answer). One that is ready at once is a record of its own with bytes 0. */

struct sc_record_range { /* 64 bytes: push, pop, start, end, mark */
  struct sc_record_head head;
  uint64_t time_ns;
  uint64_t handle; /* start and end: the range's id in this process */
  uint32_t name;   /* string id; 0 for pop and end */
  uint32_t domain; /* string id of the domain's name, 0 for the default domain */
  uint8_t reserved[24];
};

struct sc_record_text { /* STRING, META, THREAD, NOTE: head, then this, then length bytes, zero-padded */
  struct sc_record_head head;
  uint32_t id;     /* STRING: from 1, never redefined. NOTE: enum sc_note. Others 0 */
  uint32_t length; /* bytes of text, not NUL-terminated */
  uint32_t flags;  /* SC_STRING_CUT */
  uint32_t reserved;
  char text[32];   /* continues in the following units */
};
#define SC_STRING_CUT 1u

enum sc_note { /* what happened that changes what the counts mean */
  SC_NOTE_TEXT = 0,
  SC_NOTE_SLOT_TAKEN = 1, /* another CUPTI subscriber; text: its name */
  SC_NOTE_NO_CUPTI = 2,
  SC_NOTE_OLD_CUPTI = 3,
  SC_NOTE_DRIVER = 4,   /* the driver or CUPTI refused; text: which call and error */
  SC_NOTE_UNKNOWN_MEMORY = 5, /* VMM, pools or IPC imports whose creation was not seen */
};

struct sc_record_api { /* 64 bytes or more: one watched call; all are written first, in the file's first chunk(s) */
  struct sc_record_head head;
  uint32_t id;      /* from 1, fits 16 bits */
  uint32_t cbid;    /* CUPTI callback id in its domain */
  uint8_t domain;   /* 1 driver, 2 runtime (CUPTI's numbers) */
  uint8_t op;       /* enum sc_op of src/trace/calls.h */
  uint16_t length;  /* of name */
  char name[36];    /* CUPTI's name, with version and _ptsz suffix; continues in the following units; zero-padded */
};

struct sc_record_module { /* 64 bytes */
  struct sc_record_head head;
  uint32_t id;    /* from 1, never redefined */
  uint32_t path;  /* string id */
  uint64_t base;  /* what was added to the file's addresses when it was loaded */
  uint8_t build_id_length; /* 0: the file has none */
  uint8_t build_id[31];
};

struct sc_record_frame { /* 64 bytes */
  struct sc_record_head head;
  uint32_t id;         /* from 1, never redefined */
  uint32_t file;       /* string id */
  uint32_t function;   /* string id: the qualified name, before Python 3.11 the plain one */
  uint32_t line;       /* 0: not known */
  uint32_t first_line; /* of the function; 0: not known */
  uint8_t reserved[28];
};

enum sc_stack_flag {
  SC_STACK_PYTHON_CUT = 1,     /* there are more Python frames further out */
  SC_STACK_NATIVE_CUT = 2,     /* likewise native ones */
  SC_STACK_PYTHON_MISSING = 4, /* the thread runs Python, whose frames could not be read */
  SC_STACK_NATIVE_MISSING = 8, /* native frames were wanted, and walking them had taken its share of the time */
};

#define SC_STACK_PYTHON_MAX 64u /* deepest stacks that are written */
#define SC_STACK_NATIVE_MAX 48u

struct sc_stack_address { /* a native frame */
  uint64_t offset; /* the return address, as an address of the module's file; with module 0 as it is in memory */
  uint32_t module; /* MODULE id; 0: in no file */
  uint32_t reserved;
};

struct sc_record_stack { /* head, then this, then the native frames, then the ids of the Python frames; zero-padded */
  struct sc_record_head head;
  uint32_t id;      /* from 1, never redefined */
  uint32_t flags;   /* enum sc_stack_flag */
  uint16_t native;  /* number of struct sc_stack_address */
  uint16_t python;  /* number of FRAME ids, each a uint32_t */
  uint32_t reserved;
  struct sc_stack_address frames[]; /* continues in the following units */
};

_Static_assert(sizeof(struct sc_trace_header) == 256, "header");
_Static_assert(sizeof(struct sc_trace_live) == 256, "live");
_Static_assert(sizeof(struct sc_trace_header) + sizeof(struct sc_trace_live) + sizeof(struct sc_trace_beyond) <=
                 SC_TRACE_SLOT,
               "slot 0");
_Static_assert(sizeof(struct sc_trace_chunk) == 64, "chunk");
_Static_assert(sizeof(struct sc_record_call) == 64, "call");
_Static_assert(sizeof(struct sc_record_range) == 64, "range");
_Static_assert(sizeof(struct sc_record_text) == 64, "text");
_Static_assert(sizeof(struct sc_record_api) == 64, "api");
_Static_assert(sizeof(struct sc_record_module) == 64, "module");
_Static_assert(sizeof(struct sc_record_frame) == 64, "frame");
_Static_assert(sizeof(struct sc_record_stack) == 32, "stack");
_Static_assert(sizeof(struct sc_stack_address) == 16, "stack address");

#endif
