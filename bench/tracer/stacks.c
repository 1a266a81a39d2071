/* SPDX-License-Identifier: Apache-2.0
 * stacks [LIMIT_NS]: what the native stack of a sync costs, in nanoseconds of CPU time over the same sync without: of a
 * stack that the thread remembers (a hot site: no walk), of one that is walked again because others have taken its
 * place, and of one that is new, whose frames are written to the trace as well. Medians of blocks; blocks with and
 * without alternate for the first, the others compare each path with itself. Exit 1 if a remembered stack costs more
 * than LIMIT_NS (1000), or not less than half of a walk. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "toggle.h"
#include "touch.h"

/* PATHS: of one thread, so few that its walks are within what a thread may spend on them. */
enum { BITS = 12, PATHS = 256, BLOCK = 32, THREADS = (1 << BITS) / PATHS, CALLS = 5000 };
enum { THREAD_BLOCKS = PATHS / BLOCK, BLOCKS = THREADS * THREAD_BLOCKS };

struct job {
  struct touch *touch;
  unsigned straight; /* frames above the paths, where all are the same */
  unsigned thread, blocks; /* the running one, and the blocks that are done */
  double plain[BLOCKS], hit[BLOCKS], again[BLOCKS], first[BLOCKS]; /* ns a sync: without a stack; what each kind adds */
  unsigned long long hit_walks, again_walks, first_walks, missing;
};

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- ways down: two functions, so that each path is a stack of its own ------------------------------ */

struct walk {
  struct touch *touch;
  unsigned path, calls;
};
typedef void step_function(struct walk *walk, unsigned left);
static volatile unsigned kept; /* written after each call below, so that none is a jump */

static void go_down(struct walk *walk, unsigned left);

__attribute__((noinline)) static void turn_left(struct walk *walk, unsigned left) {
  go_down(walk, left);
  kept = left;
}
__attribute__((noinline)) static void turn_right(struct walk *walk, unsigned left) {
  go_down(walk, left);
  kept = left + 1;
}
__attribute__((noinline)) static void go_down(struct walk *walk, unsigned left) {
  if (left == 0)
    for (unsigned i = 0; i < walk->calls; i++)
      touch_sync(walk->touch);
  else if (left <= BITS && (walk->path >> (left - 1) & 1) != 0)
    turn_right(walk, left - 1);
  else
    turn_left(walk, left - 1);
  kept = left;
}

__attribute__((noinline)) static double block(struct job *job, unsigned first_path, unsigned paths, unsigned calls) {
  double start = cpu_ns();
  for (unsigned i = 0; i < paths; i++)
    go_down(&(struct walk){ .touch = job->touch, .path = first_path + i, .calls = calls }, BITS + job->straight);
  return (cpu_ns() - start) / (paths * calls);
}

/* ---- measuring -------------------------------------------------------------------------------------- */

static unsigned long long walked(void) { return toggle_counts().walked; }

static void measure_hits(struct job *job) {
  (void)block(job, 0, 1, CALLS);
  unsigned long long before = walked();
  for (unsigned i = 0; i < THREAD_BLOCKS; i++) {
    double side[2];
    for (unsigned j = 0; j < 2; j++) {
      int on = (j ^ (i & 1)) != 0;
      toggle_stacks(on);
      side[on] = block(job, 0, 1, CALLS);
    }
    job->plain[job->blocks + i] = side[0];
    job->hit[job->blocks + i] = side[1] - side[0];
  }
  job->hit_walks += walked() - before;
}

static void measure_walks(struct job *job) {
  double without[THREAD_BLOCKS];
  const unsigned from = job->thread * PATHS;
  toggle_stacks(0);
  for (unsigned i = 0; i < THREAD_BLOCKS; i++)
    without[i] = block(job, from + i * BLOCK, BLOCK, 1);
  toggle_stacks(1);
  for (int round = 0; round < 2; round++) {
    unsigned long long before = walked(), *walks = round == 0 ? &job->first_walks : &job->again_walks;
    for (unsigned i = 0; i < THREAD_BLOCKS; i++)
      (round == 0 ? job->first : job->again)[job->blocks + i] = block(job, from + i * BLOCK, BLOCK, 1) - without[i];
    *walks += walked() - before;
  }
}

static void *work(void *argument) {
  struct job *job = argument;
  unsigned long long missing = toggle_counts().missing;
  toggle_set(1);
  measure_walks(job);
  measure_hits(job);
  toggle_stacks(0);
  toggle_set(0);
  job->missing += toggle_counts().missing - missing;
  job->blocks += THREAD_BLOCKS;
  job->thread++;
  return NULL;
}

/* False if what was measured is not what was meant. */
static int measure(struct job *job) {
  pthread_t thread;
  while (job->thread < THREADS)
    if (pthread_create(&thread, NULL, work, job) != 0 || pthread_join(thread, NULL) != 0)
      return 0;
  const unsigned all = THREADS * PATHS;
  /* The compiler may make two calls of one: then the first of a block's syncs has another stack, and is walked. */
  if (job->hit_walks <= 2 * BLOCKS && job->again_walks >= all * 9 / 10 && job->first_walks == all && job->missing == 0)
    return 1;
  fprintf(stderr,
          "bench: not what was meant: %llu walks of remembered stacks, %llu of %u walked again, %llu of %u new, "
          "%llu not in full: is the machine busy?\n",
          job->hit_walks, job->again_walks, all, job->first_walks, all, job->missing);
  return 0;
}

int main(int argc, char **argv) {
  static const unsigned depths[] = { 2, 14 };
  double limit = argc > 1 ? strtod(argv[1], NULL) : 1000;
  char path[] = "/tmp/bench-tracer-XXXXXX", file[64];
  struct touch touch;
  int failed = 0;
  if (!(limit > 0)) {
    fprintf(stderr, "usage: bench_tracer_stacks [LIMIT_NS]\n");
    return 2;
  }
  if (!touch_begin(&touch) || mkdtemp(path) == NULL)
    return 3;
  (void)snprintf(file, sizeof(file), "%s/t.sctrace", path);
  void *libcuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const void *simulated = libcuda != NULL ? dlsym(libcuda, "simcuda_version") : NULL;
  int begun = toggle_begin(file, simulated) && toggle_native();
  printf("%s; CPU ns that a native stack adds to an idle cudaStreamSynchronize, medians of %d blocks\n",
         simulated != NULL ? "SIMULATED device" : "CUDA device", BLOCKS);
  printf("%8s %10s %14s %14s %14s\n", "frames", "plain", "remembered", "walked again", "new");
  for (size_t i = 0; begun && i < sizeof(depths) / sizeof(depths[0]); i++) {
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL)
      return 3;
    job->touch = &touch;
    job->straight = depths[i];
    begun = measure(job);
    double hit = touch_quantile(job->hit, BLOCKS, 0.5), again = touch_quantile(job->again, BLOCKS, 0.5);
    /* Two frames a step, and those of the benchmark and of the thread's start. */
    printf("%8u %10.0f %+14.0f %+14.0f %+14.0f\n", 2 * (BITS + depths[i]) + 5, touch_quantile(job->plain, BLOCKS, 0.5),
           hit, again, touch_quantile(job->first, BLOCKS, 0.5));
    failed = failed || hit > limit || hit * 2 > again;
    free(job);
  }
  (void)unlink(file);
  (void)rmdir(path);
  if (!begun)
    return 3;
  printf("limit for a remembered stack: %.0f ns, and half of a walk: %s\n", limit, failed ? "MISSED" : "met");
  return failed ? 1 : 0;
}
