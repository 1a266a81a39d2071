/* SPDX-License-Identifier: Apache-2.0
 * A preloaded library that counts some runtime calls and writes the counts at exit. The tracer has no part in it: a
 * second witness for what the probe does. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNTED(X)                                                                                               \
  X(cudaStreamSynchronize, (cudaStream_t a), (a))                                                                \
  X(cudaMemcpyAsync, (void *a, const void *b, size_t c, enum cudaMemcpyKind d, cudaStream_t e), (a, b, c, d, e)) \
  X(cudaMemcpy, (void *a, const void *b, size_t c, enum cudaMemcpyKind d), (a, b, c, d))                         \
  X(cudaMalloc, (void **a, size_t b), (a, b))                                                                    \
  X(cudaFree, (void *a), (a))                                                                                    \
  X(cudaHostAlloc, (void **a, size_t b, unsigned c), (a, b, c))                                                  \
  X(cudaDeviceSynchronize, (void), ())                                                                           \
  X(cudaLaunchKernel, (const void *a, struct dim3 b, struct dim3 c, void **d, size_t e, cudaStream_t f),         \
    (a, b, c, d, e, f))

#define WRAPPER(name, parameters, arguments)                         \
  static atomic_ulong count_of_##name;                               \
  __attribute__((visibility("default"))) cudaError_t name parameters \
  {                                                                  \
    static cudaError_t(*real) parameters;                            \
    if (real == NULL)                                                \
      *(void **)&real = dlsym(RTLD_NEXT, #name);                     \
    atomic_fetch_add(&count_of_##name, 1);                           \
    return real arguments;                                           \
  }
COUNTED(WRAPPER)

__attribute__((destructor)) static void write_counts(void)
{
  const char *path = getenv("COUNT_CALLS");
  FILE *file = path ? fopen(path, "we") : NULL;
  if (file == NULL)
    return;
#define WRITE(name, parameters, arguments) fprintf(file, "%s %lu\n", #name, atomic_load(&count_of_##name));
  COUNTED(WRITE)
  fclose(file);
}
