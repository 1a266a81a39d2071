/* SPDX-License-Identifier: Apache-2.0
 * A loop spread over the processors that this process may use. */
#include <pthread.h>
#include <sched.h>

#include "reference/reference.h"

enum { MAX_THREADS = 64, MIN_RANGE = 64 };

struct part {
  void (*body)(void *ctx, uint64_t first, uint64_t last);
  void *ctx;
  uint64_t first, last;
};

static void *run_part(void *arg)
{
  const struct part *part = arg;
  part->body(part->ctx, part->first, part->last);
  return NULL;
}

static uint64_t usable_processors(void)
{
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  const int n = CPU_COUNT(&set);
  return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (uint64_t)n;
}

void sc_ref_parallel(uint64_t n, void (*body)(void *ctx, uint64_t first, uint64_t last), void *ctx)
{
  uint64_t parts = n / MIN_RANGE;
  if (parts > 1) {
    const uint64_t processors = usable_processors();
    parts = parts < processors ? parts : processors;
  }
  if (parts <= 1) {
    if (n > 0)
      body(ctx, 0, n);
    return;
  }
  struct part part[MAX_THREADS];
  pthread_t thread[MAX_THREADS];
  bool started[MAX_THREADS] = {false};
  for (uint64_t i = 0; i < parts; i++)
    part[i] = (struct part){body, ctx, n / parts * i, i + 1 == parts ? n : n / parts * (i + 1)};
  for (uint64_t i = 1; i < parts; i++)
    started[i] = pthread_create(&thread[i], NULL, run_part, &part[i]) == 0;
  run_part(&part[0]);
  for (uint64_t i = 1; i < parts; i++)
    if (started[i])
      pthread_join(thread[i], NULL);
    else
      run_part(&part[i]);
}
