/* SPDX-License-Identifier: Apache-2.0
 * What is counted. No records here: reports see these numbers as well. */
#ifndef SC_TRACE_COUNTS_H
#define SC_TRACE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

enum sc_class { SC_CLASS_EXPLICIT, SC_CLASS_COPY, SC_CLASS_PAGEABLE, SC_CLASS_IMPLICIT, SC_CLASS_COUNT };

/* Traces hold these fields in this order (struct sc_trace_beyond): new ones go to the end. */
struct sc_counts {
  uint64_t syncs;
  uint64_t by_class[SC_CLASS_COUNT]; /* sums to syncs */
  uint64_t read_backs;       /* of syncs */
  uint64_t blocking_uploads; /* of syncs: async H2D + stream synchronise, or a blocking H2D copy */
  uint64_t idle_syncs;       /* of syncs: nothing outstanding since the thread's last one */
  uint64_t sleeping_syncs;   /* of syncs: the device or event was set to sleep instead of spin */
  uint64_t poll_waits, uncertain, failed, lifecycle; /* beside the count, never in it */
  uint64_t captured;         /* blocking calls made while the stream was captured */
  uint64_t launches;         /* kernel and graph launches */
  uint64_t submissions;
  uint64_t api_calls;        /* watched outermost calls, launches included */
  uint64_t d2h_copies, host_functions;
  uint64_t wait_ns;          /* inside the syncs' blocking calls */
};
#define SC_COUNTS_FIELDS (sizeof(struct sc_counts) / sizeof(uint64_t))

void sc_counts_add(struct sc_counts *into, const struct sc_counts *from);

#endif
