/* SPDX-License-Identifier: Apache-2.0
 * A C program whose syncs come from places that run.py knows: outer > middle > inner, a recursion that is deeper than
 * what is kept, and two plug-ins that follow each other in memory. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#if defined(__clang__) /* knows no noclone, and makes no clones */
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

int inner(void);
int middle(void);
int outer(void);
int deep(int depth);

NOINLINE int inner(void) { return cudaDeviceSynchronize() == cudaSuccess ? 1 : 0; }
NOINLINE int middle(void) { return inner() + 1; }
NOINLINE int outer(void) { return middle() + 1; }
NOINLINE int deep(int depth) { return depth > 0 ? deep(depth - 1) + 1 : inner(); }

static int use_plugin(const char *path) {
  int (*sync)(void);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library != NULL ? dlsym(library, "plugin_sync") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  memcpy(&sync, &symbol, sizeof(sync));
  int done = 0;
  for (int i = 0; i < 5; i++)
    done += sync();
  printf("%p\n", symbol);
  dlclose(library);
  return done == 5;
}

int main(int argc, char **argv) {
  int done = 0;
  if (argc != 3)
    return 2;
  for (int i = 0; i < 7; i++)
    done += outer();
  done += deep(100);
  if (!use_plugin(argv[1]) || !use_plugin(argv[2]))
    return 1;
  return done == 7 * 3 + 101 ? 0 : 1;
}
