/* SPDX-License-Identifier: Apache-2.0
 * threads THREADS ITEMS: that many threads start together, each with a stream of its own, and make ITEMS read-backs
 * inside the range "work". */
#include "program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "items.h"

static pthread_barrier_t start;
static int item_count;
static atomic_int failures;

static void *work(void *argument) {
  (void)argument;
  struct items items = { 0 };
  struct row_run run = { .name = "work" };
  bool ok = items_begin(&items);
  pthread_barrier_wait(&start);
  row_begin(&run);
  for (int i = 0; ok && i < item_count; i++)
    ok = items_one(&items);
  row_end(&run);
  if (!ok)
    atomic_fetch_add(&failures, 1);
  return NULL;
}

int main(int argc, char **argv) {
  int count = argc == 3 ? atoi(argv[1]) : 0;
  item_count = argc == 3 ? atoi(argv[2]) : 0;
  if (count < 1 || count > 1024 || item_count < 1) {
    fprintf(stderr, "usage: threads THREADS ITEMS\n");
    return 2;
  }
  pthread_t *threads = calloc((size_t)count, sizeof *threads);
  if (threads == NULL || cudaFree(NULL) != cudaSuccess || pthread_barrier_init(&start, NULL, (unsigned)count) != 0)
    return 3;
  for (int i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, work, NULL) != 0)
      return 3; /* the barrier would never open */
  for (int i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  free(threads);
  return atomic_load(&failures) > 0 ? 1 : 0;
}
