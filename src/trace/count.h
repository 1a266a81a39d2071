/* SPDX-License-Identifier: Apache-2.0
 * One thread's calls to counts, by the rules of DESIGN.md. The analysis counts records with it; the tracer counts with it
 * what it has no room to record, so that both come to the same numbers. No memory is taken and nothing is locked. */
#ifndef SC_TRACE_COUNT_H
#define SC_TRACE_COUNT_H

#include <stdbool.h>

#include "trace/calls.h"
#include "trace/counts.h"
#include "trace/format.h"

#define SC_DEVICE_UNKNOWN 255u
#define SC_COUNT_COPIES 16 /* streams of a thread with copies that nobody has waited for */

struct sc_call_kind { /* what a call is, by its name */
  uint8_t known, op, direction, per_thread;
  uint8_t may_be_pool; /* frees of memory that was made before recording began: from a pool or not, nobody knows */
};

struct sc_count_stream { /* two default streams of different devices have the same handle */
  uint64_t handle;       /* 0: not known */
  uint32_t device;
};

struct sc_count_copy { /* a device-to-host copy, or several on one stream */
  struct sc_count_stream stream;
  uint64_t bytes, flow; /* flow: the hooks' number */
  uint8_t memory; /* enum sc_memory of the host's side */
};

/* What is known of a sync but its class and wait. */
struct sc_sync_facts {
  unsigned direction;
  uint8_t memory;
  uint64_t bytes, flow; /* flow: of the copies that it makes visible; 0: none */
  bool read_back, upload, idle;
};

enum sc_beside { /* what is told of beside syncs */
  SC_BESIDE_POLL,    /* a poll wait ended */
  SC_BESIDE_REFUSED, /* a blocking call was refused because a stream was being captured */
};

struct sc_count_hooks { /* for who wants to know more than numbers */
  void (*sync)(void *context, enum sc_class cls, const struct sc_record_call *call, const struct sc_sync_facts *facts);
  void (*join)(void *context, const struct sc_record_call *call); /* a call that is part of the last sync */
  void (*late)(void *context, const struct sc_counts *late); /* belongs where the call that is followed was counted */
  /* A device-to-host copy that did not block. flow: the number of the copies before it that nobody has waited for on that
   * stream, 0 if none. Returns the number that the sync which makes them visible is told; NULL: there are no numbers. */
  uint64_t (*copy)(void *context, uint64_t flow, const struct sc_record_call *call);
  void (*beside)(void *context, enum sc_beside what, const struct sc_record_call *call);
};

enum sc_follow {     /* what a stream synchronise that follows directly would mean */
  SC_FOLLOW_NONE,
  SC_FOLLOW_MERGES,  /* it is part of the sync before it */
  SC_FOLLOW_SETTLES, /* whether the copy before it blocked makes no difference any more */
};

struct sc_counter { /* zeroed, then the first three set */
  struct sc_counts *counts; /* where they go; may be changed between calls */
  const struct sc_count_hooks *hooks; /* NULL: nobody wants to know */
  void *context;            /* of the hooks */

  enum sc_follow follow;
  struct sc_count_stream follow_stream;
  size_t where_count; /* the hooks' own: not 0 sends what is late to them; 0 again once another call is followed */

  bool submitted;  /* since the last sync */
  bool synced;     /* there was one */
  bool synced_all; /* it covered every stream of its device */
  struct sc_count_stream synced_stream;
  struct sc_count_stream upload; /* the thread's last submission is an upload on this stream */
  struct sc_count_copy uploaded; /* what it was */
  struct sc_count_copy copies[SC_COUNT_COPIES]; /* device-to-host copies that no sync has made visible, oldest first */
  size_t copy_count;
  struct {
    bool open; /* the last call was a query, answered "not ready" */
    enum sc_op op;
    uint64_t object;
  } poll;
};

/* What a call of this full name is. op: SC_OP_NONE asks by the name. late: recording began after CUDA had been used. */
void sc_call_kind_set(struct sc_call_kind *kind, enum sc_op op, const char *name, bool late);

/* Whether such a call could have been a sync, had it not been refused or captured. direction, dst: enum sc_direction
 * and sc_memory, as far as they are known: rather one too many than one too few. */
bool sc_call_could_block(enum sc_op op, unsigned direction, uint32_t dst, uint32_t flags, uint64_t bytes);
/* The status of a call that was refused because a stream was being captured, in both APIs. */
static inline bool sc_call_was_refused(int status) {
  return status >= 900 && status <= 908; /* cudaErrorStreamCaptureUnsupported and its kin */
}

/* The thread's next call that returned. Submissions before it that have no record of their own come first. */
void sc_counter_call(struct sc_counter *counter, const struct sc_record_call *call, const struct sc_call_kind *kind);
void sc_counter_submissions(struct sc_counter *counter, uint32_t submissions, uint32_t launches);
/* Calls are missing here: nothing is concluded from those before. */
void sc_counter_gap(struct sc_counter *counter);

#endif
