/* SPDX-License-Identifier: Apache-2.0
 * nothing LIBRARY [ROUNDS] [LIMIT_US]: what a process that never uses CUDA pays for the preloaded tracer. Starts itself
 * alternately bare and preloaded; prints the medians of the whole life of the process, and the median of the
 * differences. Exit 1 if that is more than LIMIT_US (1000), or if the preloaded one left a file or started a thread. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Microseconds from fork to the end of the child; negative if it ran wrong. */
static double one(const char *library, const char *folder, char *self) {
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
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    return -1;
  return now_us() - start;
}

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
  double *bare = calloc((size_t)rounds, sizeof(double)), *loaded = calloc((size_t)rounds, sizeof(double)),
         *added = calloc((size_t)rounds, sizeof(double));
  if (library == NULL || bare == NULL || loaded == NULL || added == NULL || mkdtemp(folder) == NULL) {
    fprintf(stderr, "bench: %s: no such library, or no folder for the run\n", argv[1]);
    return 2;
  }
  for (long i = -2; i < rounds; i++) {
    long at = i < 0 ? 0 : i;
    bare[at] = one(NULL, folder, argv[0]);
    loaded[at] = one(library, folder, argv[0]);
    if (bare[at] < 0 || loaded[at] < 0) {
      fprintf(stderr, "bench: a process without CUDA ran wrong (a second thread, or it did not start)\n");
      return 1;
    }
    added[at] = loaded[at] - bare[at];
  }
  int no_file = rmdir(folder) == 0;
  double cost = median(added, (size_t)rounds);
  printf("process without CUDA, %ld pairs: bare %.0f us, with the tracer %.0f us, added %.0f us; files left: %s; limit "
         "%.0f us: %s\n",
         rounds, median(bare, (size_t)rounds), median(loaded, (size_t)rounds), cost, no_file ? "none" : "SOME", limit,
         cost <= limit && no_file ? "met" : "MISSED");
  return cost <= limit && no_file ? 0 : 1;
}
