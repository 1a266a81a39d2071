/* SPDX-License-Identifier: Apache-2.0
 * Device code of the test programs: something to launch, something that takes a given time, something to copy to by name. */

__device__ unsigned sc_test_symbol[16];

/* Adds 1 to *word: the smallest kernel whose work can be checked. */
extern "C" __global__ void sc_test_touch(unsigned *word) {
  *word += 1;
}

/* Runs for at least `ns` nanoseconds of the GPU's own clock. */
extern "C" __global__ void sc_test_spin(unsigned long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < ns);
}
