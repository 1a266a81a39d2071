/* SPDX-License-Identifier: Apache-2.0
 * The kernels of kernels.cu as C functions, for the simulated device. */
#include <stddef.h>
#include <time.h>

/* simcuda's ABI with the programs it runs, repeated here as its header says: a program includes nothing of src. */
struct simcuda_kernel {
  const char *name;
  void (*run)(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args);
  unsigned arg_count;
  unsigned short arg_bytes[32];
};
extern const struct simcuda_kernel simcuda_kernels[];

static void touch(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args) {
  (void)grid, (void)block, (void)shared_bytes;
  unsigned *word = *(unsigned **)args[0];
  *word += 1;
}

static void spin(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args) {
  (void)grid, (void)block, (void)shared_bytes;
  unsigned long long ns = *(unsigned long long *)args[0];
  struct timespec nap = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
  nanosleep(&nap, NULL);
}

__attribute__((visibility("default"))) const struct simcuda_kernel simcuda_kernels[] = {
  { .name = "sc_test_touch", .run = touch, .arg_count = 1, .arg_bytes = { sizeof(unsigned *) } },
  { .name = "sc_test_spin", .run = spin, .arg_count = 1, .arg_bytes = { sizeof(unsigned long long) } },
  { 0 },
};
