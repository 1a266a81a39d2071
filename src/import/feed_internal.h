/* SPDX-License-Identifier: Apache-2.0
 * The feed's state, for the files that make it up: feed.c (names and events in), feed_join.c (device work to its
 * calls), feed_drain.c (when the device had nothing to run), feed_replay.c (each thread's events to the analysis). */
#ifndef SC_IMPORT_FEED_INTERNAL_H
#define SC_IMPORT_FEED_INTERNAL_H

#include "import/feed.h"
#include "import/intern.h"
#include "import/sorter.h"

#define SORT_MEMORY (64u << 20)      /* bytes of events that are kept in memory before they go to disk */
#define WORK_MEMORY (16u << 20)      /* likewise of device work for drain gaps */
#define STRING_BYTES_MAX (64u << 20) /* of names; further ones become "(other names)" */
#define STRINGS_MAX (1u << 20)       /* different names, likewise */
#define FRAMES_MAX (1u << 20)        /* different frames */
#define STACK_BYTES_MAX (64u << 20)  /* of different stacks */
#define CONTEXTS_MAX 64u             /* of one process whose devices are remembered */
#define DRAIN_WORK_MAX (4u << 20)    /* works of one process that drain gaps are measured from */

enum event_kind { /* in the order in which they are replayed at the same time */
                  EVENT_FRAME,
                  EVENT_OPERATOR,
                  EVENT_RANGE,
                  EVENT_SPAN,
                  EVENT_CALL,
                  EVENT_WORK,
};
enum event_flag {
  EVENT_JOINED = 1,     /* a call that learned its arguments from device work */
  EVENT_FREE_KNOWN = 2, /* a free of real memory */
  EVENT_FREE_POOL = 4,  /* likewise, from a pool */
  EVENT_DRIVER = 8,     /* a call of the driver API */
};
struct event {
  uint64_t start_ns, end_ns;
  uint64_t link; /* correlation id; of a joined call: its stream */
  uint64_t bytes;
  uint32_t process, thread;
  uint32_t what;   /* call: api. Range: name. Frame and operator: frame */
  uint32_t extra;  /* call: stack. Range: domain. Work: context */
  uint32_t stream; /* call: the correlation id's lower half, which tells the order of calls that begin together */
  uint32_t order;  /* as it came in */
  int16_t status;
  uint8_t kind, work;                       /* enum event_kind, enum sc_feed_work_kind */
  uint8_t device, direction, memory, flags; /* memory: as in struct sc_record_call */
};
_Static_assert(sizeof(struct event) == 64, "event");

struct device_work { /* for drain gaps */
  uint32_t process, device;
  uint64_t submit_ns, start_ns, end_ns;
};

struct feed_api {
  enum sc_op op;
  bool driver, may_be_null; /* may_be_null: a free that takes NULL, or pool memory */
  int8_t capture;           /* begins (1) or ends (-1) a capture */
};
struct feed_process {
  uint64_t pid;
  char *facts[SC_FEED_FACTS];
  uint64_t from_ns; /* when the warm-up ended; UINT64_MAX: no such range */
  bool frees_known; /* the trace says which frees were of real memory */
  struct feed_context {
    uint32_t context;
    uint8_t device;
  } contexts[CONTEXTS_MAX]; /* on which device the work of a context ran */
  size_t context_count;
};
struct feed_thread {
  uint32_t process, tid;
  char *name;
};
struct feed_frame {
  uint32_t file, function, line; /* strings */
};
struct feed_stack { /* the key of a stack in `stacks`: this, then its frames */
  uint32_t python, native;
  uint32_t frames[SC_STACK_PYTHON_MAX + SC_STACK_NATIVE_MAX];
};

struct sc_feed {
  struct sc_error failure; /* status SC_OK: none */
  const char *from;        /* pattern of the range that ends the warm-up, or NULL */
  struct sc_intern strings, apis, process_keys, thread_keys, frames, stacks;
  uint64_t other_names, other_stacks;
  struct feed_api *api; /* by id - 1 */
  size_t api_count, api_cap;
  struct feed_process *processes;
  size_t process_count, process_cap;
  struct feed_thread *threads;
  size_t thread_count, thread_cap;
  struct sc_sorter *linked; /* calls and work with a correlation id, by it */
  struct sc_sorter *events; /* what is replayed */
  struct sc_sorter *works;  /* device work by process, device and time of submission */
  uint32_t order;
  uint64_t first_ns;         /* the earliest start; UINT64_MAX: none yet */
  uint64_t zero_ns, real_ns; /* of sc_feed_clock */
  struct sc_feed_totals totals;
  struct sc_stack_address *natives; /* scratch of the stack that was looked up last */
};
void feed_sort(struct sc_feed *feed, struct sc_sorter *sorter, const void *item); /* a failure is kept */

/* feed_join.c: reads `linked` to its end into `events` and `works`. */
enum sc_status feed_join(struct sc_feed *feed, struct sc_error *err);

/* feed_drain.c: the device work of one process at a time, in ascending order of processes. */
struct drains;
struct drains *drains_new(struct sc_sorter *works) SC_NODISCARD; /* NULL: out of memory */
void drains_free(struct drains *drains);
enum sc_status drains_load(struct drains *drains, uint32_t process, struct sc_error *err);
bool drains_cut(const struct drains *drains); /* this process had too much work: nothing is measured */
/* The drain gap of a sync that ended at end_ns: 0 if the device always had work, or if another sync had this gap
 * already. False: not known (no work before it, or none after). */
bool drains_take(struct drains *drains, uint32_t device, uint64_t end_ns, uint64_t *gap_ns);

/* feed_replay.c: reads `events` to its end, a process at a time. */
enum sc_status feed_replay(struct sc_feed *feed, const char *path, const struct sc_analysis_options *options,
                           struct sc_findings *findings, struct sc_error *err);

#endif
