/* SPDX-License-Identifier: Apache-2.0
 * What a victim, the library loaded into it and the test say to each other: one page behind SC_VICTIM_FD. */
#ifndef SC_INJECT_SHARED_H
#define SC_INJECT_SHARED_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define VICTIM_THREADS 8

struct victim_page {
  /* the victim */
  _Atomic uint32_t ready;  /* threads that do their work */
  _Atomic uint32_t errors; /* what must not happen */
  _Atomic int32_t error_value[4];
  _Atomic uint64_t turns[VICTIM_THREADS];
  _Atomic uint32_t alarms, queued, users; /* signals that arrived */
  _Atomic int32_t waiter;                 /* thread id of interest to the test */
  /* the library */
  _Atomic uint32_t constructed, started;
  _Atomic int32_t started_on;  /* thread id */
  _Atomic uint32_t misaligned; /* its stack was not as the ABI wants it */
  _Atomic uint32_t constructed_done;
  /* the test */
  _Atomic uint32_t stop;
};

static inline struct victim_page *victim_page(void)
{
  const char *fd = getenv("SC_VICTIM_FD");
  void *page =
      fd ? mmap(NULL, sizeof(struct victim_page), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0) : MAP_FAILED;
  return page == MAP_FAILED ? NULL : page;
}

#endif
