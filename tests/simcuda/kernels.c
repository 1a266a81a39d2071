/* SPDX-License-Identifier: Apache-2.0
 * Kernels of the tests, in the form that the simulation takes them: the struct is its ABI, repeated as in any program.
 */
#include "kernels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct simcuda_kernel {
  const char *name;
  void (*run)(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args);
  unsigned arg_count;
  unsigned short arg_bytes[32];
};

#define UNUSED_SHAPE (void)grid, (void)block, (void)shared

static void run_add(const unsigned grid[3], const unsigned block[3], size_t shared, void *const *args)
{
  UNUSED_SHAPE;
  **(int **)args[0] += *(int *)args[1];
}

static void run_append(const unsigned grid[3], const unsigned block[3], size_t shared, void *const *args)
{
  UNUSED_SHAPE;
  int *list = *(int **)args[0];
  list[++list[0]] = *(int *)args[1];
}

static void run_pass(const unsigned grid[3], const unsigned block[3], size_t shared, void *const *args)
{
  UNUSED_SHAPE;
  struct gate *gate = *(struct gate **)args[0];
  atomic_store(&gate->reached, true);
  while (!atomic_load(&gate->open))
    usleep(200);
}

static void run_shape(const unsigned grid[3], const unsigned block[3], size_t shared, void *const *args)
{
  unsigned *out = *(unsigned **)args[0];
  memcpy(out, grid, 3 * sizeof *out);
  memcpy(out + 3, block, 3 * sizeof *out);
  out[6] = (unsigned)shared;
}

extern const struct simcuda_kernel simcuda_kernels[];
__attribute__((visibility("default"))) const struct simcuda_kernel simcuda_kernels[] = {
    {"test_add", run_add, 2, {sizeof(int *), sizeof(int)}},
    {"test_append", run_append, 2, {sizeof(int *), sizeof(int)}},
    {"test_pass", run_pass, 1, {sizeof(struct gate *)}},
    {"test_shape", run_shape, 1, {sizeof(unsigned *)}},
    {NULL, NULL, 0, {0}},
};

cudaKernel_t kernel_add, kernel_append, kernel_pass, kernel_shape;

int load_kernels(void **state)
{
  cudaLibrary_t library;

  (void)state;
  if (dlsym(RTLD_DEFAULT, "simcuda_version") == NULL)
    return 1; /* not on the stand-ins: LD_LIBRARY_PATH is missing */
  return cudaLibraryLoadData(&library, "any image", NULL, NULL, 0, NULL, NULL, 0) != cudaSuccess ||
         cudaLibraryGetKernel(&kernel_add, library, "test_add") != cudaSuccess ||
         cudaLibraryGetKernel(&kernel_append, library, "test_append") != cudaSuccess ||
         cudaLibraryGetKernel(&kernel_pass, library, "test_pass") != cudaSuccess ||
         cudaLibraryGetKernel(&kernel_shape, library, "test_shape") != cudaSuccess;
}

static void launch(cudaKernel_t kernel, void **args, cudaStream_t stream)
{
  OK(cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream));
}

void launch_add(int *where, int value, cudaStream_t stream) { launch(kernel_add, (void *[]){&where, &value}, stream); }
void launch_append(int *list, int value, cudaStream_t stream)
{
  launch(kernel_append, (void *[]){&list, &value}, stream);
}
void launch_pass(struct gate *gate, cudaStream_t stream) { launch(kernel_pass, (void *[]){&gate}, stream); }

double now_us(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

bool wait_for(atomic_bool *flag)
{
  for (int i = 0; i < PATIENCE_MS * 10 && !atomic_load(flag); i++)
    usleep(100);
  return atomic_load(flag);
}

struct attempt {
  void (*function)(void *);
  void *argument;
  atomic_bool entered, returned;
};

static void *try_it(void *argument)
{
  struct attempt *attempt = argument;

  atomic_store(&attempt->entered, true);
  attempt->function(attempt->argument);
  atomic_store(&attempt->returned, true);
  return NULL;
}

bool blocks(cudaStream_t gate_stream, bool expected, void (*function)(void *), void *argument)
{
  struct gate gate = {0};
  struct attempt attempt = {.function = function, .argument = argument};
  pthread_t thread;

  launch_pass(&gate, gate_stream);
  assert_true(wait_for(&gate.reached));
  assert_int_equal(pthread_create(&thread, NULL, try_it, &attempt), 0);
  assert_true(wait_for(&attempt.entered));
  for (int i = 0; i < (expected ? GATE_MS : PATIENCE_MS) && !atomic_load(&attempt.returned); i++)
    usleep(1000);
  bool waited = !atomic_load(&attempt.returned);
  atomic_store(&gate.open, true);
  pthread_join(thread, NULL);
  OK(cudaDeviceSynchronize());
  return waited;
}
