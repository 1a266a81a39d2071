/* SPDX-License-Identifier: Apache-2.0
 * looping THREADS [early]: threads that make read-backs at full speed until they are told to end, each on a stream of its
 * own, and that know what they did. Commands on standard input, an answer each on standard output:
 *   mark N   every thread makes N read-backs inside a range "marked", and in it "registered" of domain "looping", while the
 *            loop goes on: "marked N"
 *   turns    "turns TOTAL LONGEST-NS": read-backs so far, and the longest that one took since the last such question
 *   hold     the threads stop after their read-back: "held TOTAL"
 *   go       they go on: "going"
 *   work N   N read-backs by the main thread, inside a range "work": "worked N"
 *   fork     a child that makes no CUDA call and lives half a second longer than we do: "child PID"
 *   exec     likewise, but it executes "sleep 60": "child PID"
 *   close    closes every descriptor above 2, as daemons do: "closed"
 *   load LIBRARY   loads it and calls its InitializeInjection, as a debugger would: "loaded"
 *   end      the threads end: "ended", and exit 0
 * It says "ready" when every thread has made a read-back in its loop.
 * Each thread pushes a range "outer" around its loop and, with "early", the main thread pushes "early" before it starts.
 * A wrong result of a read-back ends the program with status 4. */
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#include "items.h"

#define THREADS_MAX 64

struct worker {
  pthread_t thread;
  struct items items;
  atomic_ullong turns, longest;
  atomic_uint held;
  unsigned marked; /* the mark that it answered last */
};

static struct worker workers[THREADS_MAX];
static int worker_count;
static atomic_uint holding, ending, mark_number, marks_done;
static atomic_int mark_turns;
static nvtxDomainHandle_t domain; /* made once, as libraries do, and used for ever */
static nvtxStringHandle_t registered;

static unsigned long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

/* The byte that comes back is the one that was put on the device. */
static bool turn(struct items *items, unsigned char value) {
  unsigned char *pinned = items->pinned;
  *pinned = (unsigned char)~value;
  return items_one(items) && *pinned == value;
}

static bool put(struct items *items, unsigned char value) {
  *(unsigned char *)items->pinned = value;
  return cudaMemcpyAsync(items->device, items->pinned, 1, cudaMemcpyHostToDevice, items->stream) == cudaSuccess &&
         cudaStreamSynchronize(items->stream) == cudaSuccess;
}

static bool timed_turn(struct worker *worker, unsigned char value) {
  unsigned long long start = now_ns();
  bool ok = turn(&worker->items, value);
  unsigned long long took = now_ns() - start;
  if (took > atomic_load_explicit(&worker->longest, memory_order_relaxed))
    atomic_store_explicit(&worker->longest, took, memory_order_relaxed);
  atomic_fetch_add_explicit(&worker->turns, 1, memory_order_relaxed);
  return ok;
}

static bool answer_mark(struct worker *worker, unsigned char value) {
  unsigned number = atomic_load(&mark_number);
  bool ok = true;
  if (number == worker->marked)
    return true;
  worker->marked = number;
  nvtxEventAttributes_t event = { .version = NVTX_VERSION,
                                  .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                  .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                  .message.registered = registered };
  nvtxRangePushA("marked");
  nvtxDomainRangePushEx(domain, &event);
  for (int i = atomic_load(&mark_turns); i > 0 && ok; i--)
    ok = timed_turn(worker, value);
  nvtxDomainRangePop(domain);
  nvtxRangePop();
  atomic_fetch_add(&marks_done, 1);
  return ok;
}

static void *loop(void *argument) {
  struct worker *worker = argument;
  const struct timespec nap = { .tv_nsec = 100 * 1000 };
  unsigned char value = (unsigned char)(17 + (worker - workers));
  bool ok = put(&worker->items, value);
  nvtxRangePushA("outer");
  while (ok && !atomic_load(&ending)) {
    if (atomic_load(&holding)) {
      atomic_store(&worker->held, 1);
      nanosleep(&nap, NULL);
      continue;
    }
    atomic_store(&worker->held, 0);
    ok = timed_turn(worker, value) && answer_mark(worker, value);
  }
  nvtxRangePop();
  if (!ok) {
    fprintf(stderr, "looping: a read-back went wrong\n");
    _Exit(4);
  }
  return NULL;
}

static unsigned long long total(void) {
  unsigned long long sum = 0;
  for (int i = 0; i < worker_count; i++)
    sum += atomic_load(&workers[i].turns);
  return sum;
}

static void wait_a_little(void) { nanosleep(&(struct timespec){ .tv_nsec = 200 * 1000 }, NULL); }

static void mark(int turns) {
  atomic_store(&mark_turns, turns);
  atomic_store(&marks_done, 0);
  atomic_fetch_add(&mark_number, 1);
  while (atomic_load(&marks_done) < (unsigned)worker_count)
    wait_a_little();
  printf("marked %d\n", turns);
}

static void hold(void) {
  atomic_store(&holding, 1);
  for (int i = 0; i < worker_count; i++)
    while (!atomic_load(&workers[i].held))
      wait_a_little();
  printf("held %llu\n", total());
}

static void tell_turns(void) {
  unsigned long long longest = 0;
  for (int i = 0; i < worker_count; i++) {
    unsigned long long one = atomic_exchange(&workers[i].longest, 0);
    longest = one > longest ? one : longest;
  }
  printf("turns %llu %llu\n", total(), longest);
}

static void make_child(bool execute) {
  int ends[2]; /* the writing one goes with us */
  fflush(stdout);
  if (pipe(ends) != 0)
    exit(3);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    if (execute)
      execlp("sleep", "sleep", "60", (char *)NULL);
    close(ends[1]);
    while (read(ends[0], &byte, 1) > 0)
      continue;
    nanosleep(&(struct timespec){ .tv_nsec = 500 * 1000 * 1000 }, NULL);
    exit(0);
  }
  close(ends[0]);
  printf("child %ld\n", (long)child);
}

static int load(const char *library) {
  void *handle = dlopen(library, RTLD_NOW);
  void *symbol = handle != NULL ? dlsym(handle, "InitializeInjection") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "looping: %s\n", dlerror());
    return 3;
  }
  unsetenv("CUDA_INJECTION64_PATH");
  ((int (*)(void))(uintptr_t)symbol)();
  printf("loaded\n");
  return 0;
}

static int work(struct items *items, int count) {
  nvtxRangePushA("work");
  for (int i = 0; i < count; i++)
    if (!items_one(items))
      return 4;
  nvtxRangePop();
  printf("worked %d\n", count);
  return 0;
}

static int obey(char *line, struct items *items) {
  line[strcspn(line, "\n")] = '\0';
  const char *argument = strchr(line, ' ');
  int number = argument != NULL ? atoi(argument) : 0;
  int status = 0;
  if (strncmp(line, "mark ", 5) == 0)
    mark(number);
  else if (strcmp(line, "turns") == 0)
    tell_turns();
  else if (strcmp(line, "hold") == 0)
    hold();
  else if (strcmp(line, "go") == 0) {
    atomic_store(&holding, 0);
    printf("going\n");
  } else if (strncmp(line, "work ", 5) == 0)
    status = work(items, number);
  else if (strcmp(line, "fork") == 0 || strcmp(line, "exec") == 0)
    make_child(line[0] == 'e');
  else if (strcmp(line, "close") == 0) {
    for (int fd = 3; fd < 4096; fd++)
      close(fd);
    printf("closed\n");
  } else if (strncmp(line, "load ", 5) == 0)
    status = load(argument + 1);
  else
    status = 2;
  fflush(stdout);
  return status;
}

int main(int argc, char **argv) {
  char line[4200];
  struct items items = { 0 };
  int status = 0;
  worker_count = argc > 1 ? atoi(argv[1]) : 0;
  if (worker_count < 0 || worker_count > THREADS_MAX || argc < 2) {
    fprintf(stderr, "usage: looping THREADS [early]\n");
    return 2;
  }
  if (argc > 2 && strcmp(argv[2], "early") == 0)
    nvtxRangePushA("early");
  domain = nvtxDomainCreateA("looping");
  registered = nvtxDomainRegisterStringA(domain, "registered");
  if (!items_begin(&items))
    return 3;
  for (int i = 0; i < worker_count; i++)
    if (!items_begin(&workers[i].items) || pthread_create(&workers[i].thread, NULL, loop, &workers[i]) != 0)
      return 3;
  for (int i = 0; i < worker_count; i++) /* whoever attaches from here on finds "outer" open on each */
    while (atomic_load(&workers[i].turns) == 0)
      wait_a_little();
  printf("ready\n");
  fflush(stdout);
  while (status == 0 && fgets(line, sizeof line, stdin) != NULL && strcmp(line, "end\n") != 0)
    status = obey(line, &items);
  atomic_store(&ending, 1);
  for (int i = 0; i < worker_count; i++)
    pthread_join(workers[i].thread, NULL);
  printf("ended\n");
  return status;
}
