/* SPDX-License-Identifier: Apache-2.0
 * nothing LIBRARY [ROUNDS] [LIMIT_US]: what a process that never uses CUDA pays for the preloaded tracer. Starts itself
 * alternately bare and preloaded; prints medians of the processor time of a whole process life, of its wall time, and
 * of the differences within pairs. Exit 1 if the added processor time is more than LIMIT_US (1000), or if the preloaded
 * process left a file or had a second thread. Processor time, since nothing here waits: wall time is that of the
 * machine's other guests. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <time.h>

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
  qsort(values, n, sizeof(*values), by_value);
  return values[n / 2];
}

/* Threads of this process: entries of /proc/self/task. */
static int threads(void) {
  DIR *dir = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
    count += entry->d_name[0] != '.';
  if (dir != NULL)
    closedir(dir);
  return count;
}

struct life { /* one process, in microseconds */
  double wall, cpu;
};

static bool one(const char *library, const char *folder, char *self, struct life *life) {
  struct rusage usage;
  int status = 0;
  double start = now_us();
  pid_t child = fork();
  if (child == 0) {
    if (library != NULL)
      setenv("LD_PRELOAD", library, 1);
    if (chdir(folder) == 0)
      execl("/proc/self/exe", self, "--child", (char *)NULL);
    _exit(9);
  }
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
    return false;
  life->wall = now_us() - start;
  life->cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
              (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  return true;
}

enum { BARE_CPU, LOADED_CPU, ADDED_CPU, BARE_WALL, LOADED_WALL, ADDED_WALL, COLUMNS };

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--child") == 0)
    return threads() == 1 ? 0 : 8;
  long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 301;
  double limit = argc > 3 ? strtod(argv[3], NULL) : 1000;
  char folder[] = "/tmp/bench-nothing-XXXXXX";
  if (argc < 2 || rounds < 3 || rounds > 100000 || !(limit > 0)) {
    fprintf(stderr, "usage: bench_tracer_nothing LIBRARY [ROUNDS] [LIMIT_US]  (ROUNDS 3 to 100000)\n");
    return 2;
  }
  char *library = realpath(argv[1], NULL);
  double *column[COLUMNS];
  bool ready = library != NULL && mkdtemp(folder) != NULL;
  for (int c = 0; c < COLUMNS; c++)
    ready = (column[c] = calloc((size_t)rounds, sizeof(double))) != NULL && ready;
  if (!ready) {
    fprintf(stderr, "bench: %s: no such library, or no folder for the run\n", argv[1]);
    return 2;
  }
  for (long i = -2; i < rounds; i++) {
    long at = i < 0 ? 0 : i;
    struct life bare, loaded;
    if (!one(NULL, folder, argv[0], &bare) || !one(library, folder, argv[0], &loaded)) {
      fprintf(stderr, "bench: a process without CUDA ran wrong (a second thread, or it did not start)\n");
      return 1;
    }
    column[BARE_CPU][at] = bare.cpu;
    column[LOADED_CPU][at] = loaded.cpu;
    column[ADDED_CPU][at] = loaded.cpu - bare.cpu;
    column[BARE_WALL][at] = bare.wall;
    column[LOADED_WALL][at] = loaded.wall;
    column[ADDED_WALL][at] = loaded.wall - bare.wall;
  }
  bool no_file = rmdir(folder) == 0;
  double m[COLUMNS];
  for (int c = 0; c < COLUMNS; c++)
    m[c] = median(column[c], (size_t)rounds);
  bool met = m[ADDED_CPU] <= limit && no_file;
  printf("process without CUDA, %ld pairs, medians in us\n%-16s %8s %8s %8s\n", rounds, "", "bare", "traced", "added");
  printf("%-16s %8.0f %8.0f %+8.0f\n%-16s %8.0f %8.0f %+8.0f\n", "processor time", m[BARE_CPU], m[LOADED_CPU],
         m[ADDED_CPU], "wall time", m[BARE_WALL], m[LOADED_WALL], m[ADDED_WALL]);
  printf("files left: %s; limit %.0f us: %s\n", no_file ? "none" : "SOME", limit, met ? "met" : "MISSED");
  return met ? 0 : 1;
}
