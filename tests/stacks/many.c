/* SPDX-License-Identifier: Apache-2.0
 * many THREADS PATHS CALLS ROUNDS PLUGIN...: threads that start together and go down the same PATHS, each a stack of
 * its own, at the bottom of which they synchronise CALLS times, and all of that ROUNDS times; the first loads and
 * unloads the plug-ins, and calls them, meanwhile. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

enum { BITS = 12 };

static pthread_barrier_t start;
static unsigned paths, calls, rounds;
static char **plugins;
static int plugin_count;

struct walk {
  unsigned path, failures;
};
static __thread volatile unsigned mine; /* written after each call, so that none is a jump */

static void go_down(struct walk *walk, unsigned left);
__attribute__((noinline)) static void turn_left(struct walk *walk, unsigned left)
{
  go_down(walk, left);
  mine = left;
}
__attribute__((noinline)) static void turn_right(struct walk *walk, unsigned left)
{
  go_down(walk, left);
  mine = left + 1;
}
__attribute__((noinline)) static void go_down(struct walk *walk, unsigned left)
{
  if (left == 0)
    for (unsigned i = 0; i < calls; i++)
      walk->failures += cudaDeviceSynchronize() != cudaSuccess;
  else if ((walk->path >> (left - 1) & 1) != 0)
    turn_right(walk, left - 1);
  else
    turn_left(walk, left - 1);
  mine = left;
}

static int use_plugin(const char *path)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = library != NULL ? dlsym(library, "plugin_sync") : NULL;
  int (*function)(void);
  if (symbol == NULL)
    return 1;
  memcpy(&function, &symbol, sizeof function);
  int good = function();
  return dlclose(library) != 0 || good != 1;
}

static void *work(void *number)
{
  struct walk walk = {0};
  size_t failures = 0;
  pthread_barrier_wait(&start);
  for (unsigned n = 0; n < paths * rounds; n++) {
    unsigned i = n % paths;
    walk.path = i;
    go_down(&walk, BITS);
    for (int j = 0; number == NULL && i % 8 == 0 && j < plugin_count; j++)
      failures += (size_t)use_plugin(plugins[j]);
  }
  return (void *)(failures + walk.failures);
}

int main(int argc, char **argv)
{
  pthread_t threads[64];
  size_t failures = 0, count = argc > 4 ? strtoul(argv[1], NULL, 10) : 0;
  paths = argc > 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
  calls = argc > 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
  rounds = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
  plugins = argv + 5;
  plugin_count = argc - 5;
  if (count < 1 || count > 64 || paths < 1 || paths > 1u << BITS) {
    fprintf(stderr, "usage: many THREADS PATHS CALLS ROUNDS PLUGIN...\n");
    return 2;
  }
  if (cudaFree(NULL) != cudaSuccess || pthread_barrier_init(&start, NULL, (unsigned)count) != 0)
    return 3;
  for (size_t i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
      return 3;
  for (size_t i = 0; i < count; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    failures += (size_t)failed;
  }
  if (failures)
    fprintf(stderr, "many: %zu calls failed\n", failures);
  return failures != 0;
}
