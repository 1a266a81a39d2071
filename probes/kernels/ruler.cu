/* SPDX-License-Identifier: Apache-2.0
 * The ruler's tiny kernels, and the comparison of two outputs. */
#include "common.cuh"

/* One byte changes: the least a kernel can do for a read-back to see it. */
extern "C" __global__ void sc_tiny(uint8_t *value) { *value = (uint8_t)(*value + 1); }

/* Tells a host that spins on mapped memory. */
extern "C" __global__ void sc_write_flag(uint32_t *flag, uint32_t value)
{
  *(volatile uint32_t *)flag = value;
  __threadfence_system();
}

/* Adds to *differ how many of n 16-bit words differ. */
extern "C" __global__ void sc_compare(const uint16_t *a, const uint16_t *b, unsigned long long *differ, uint64_t n)
{
  unsigned long long mine = 0;
  for (uint64_t i = grid_first(); i < n; i += grid_step())
    mine += a[i] != b[i];
  if (mine)
    atomicAdd(differ, mine);
}
