/* SPDX-License-Identifier: Apache-2.0
 * killed MODE PROGRESS: makes read-backs and writes the number that have returned into the file PROGRESS (8 bytes,
 * mapped). endless   until somebody kills it abort, exit, segv   1,000 of them, then abort(), _exit(0) or SIGSEGV, with
 * a second thread in mid-run */
#include "program.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "items.h"

static _Atomic uint64_t *progress;

static void *endless(void *argument) {
  struct items *items = argument;
  while (items_one(items))
    continue;
  return NULL;
}

static bool map_progress(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof *progress) != 0)
    return false;
  progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return progress != MAP_FAILED;
}

/* The main thread's read-backs happen inside the range "counted", so that the other thread's do not blur the number. */
static bool counted(struct items *items, uint64_t limit) {
  struct row_run run = { .name = "counted" };
  row_begin(&run);
  for (uint64_t i = 1; limit == 0 || i <= limit; i++) {
    if (!items_one(items))
      return false;
    atomic_store_explicit(progress, i, memory_order_release);
  }
  return true; /* the range stays open: a dying program does not tidy up */
}

int main(int argc, char **argv) {
  const char *mode = argc == 3 ? argv[1] : "";
  struct items items = { 0 }, other = { 0 };
  pthread_t thread;
  if (argc != 3 || !map_progress(argv[2])) {
    fprintf(stderr, "usage: killed endless|abort|exit|segv PROGRESS\n");
    return 2;
  }
  if (!items_begin(&items) || !items_begin(&other) || pthread_create(&thread, NULL, endless, &other) != 0)
    return 3;
  if (strcmp(mode, "endless") == 0)
    return counted(&items, 0) ? 0 : 3;
  if (!counted(&items, 1000))
    return 3;
  if (strcmp(mode, "abort") == 0)
    abort();
  if (strcmp(mode, "segv") == 0)
    raise(SIGSEGV);
  if (strcmp(mode, "exit") == 0)
    _exit(0);
  return 2;
}
