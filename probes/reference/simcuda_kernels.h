/* SPDX-License-Identifier: Apache-2.0
 * The one symbol that synccount-probe exports. An ABI shared with src/simcuda, which repeats this struct and finds the
 * table by dlsym: change both or neither. `run` gets what cudaLaunchKernel got; args[i] points at argument i, of
 * arg_bytes[i] bytes. */
#ifndef SC_PROBE_SIMCUDA_KERNELS_H
#define SC_PROBE_SIMCUDA_KERNELS_H

#include <stddef.h>

struct simcuda_kernel {
  const char *name;
  void (*run)(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args);
  unsigned arg_count;
  unsigned short arg_bytes[32];
};

extern const struct simcuda_kernel simcuda_kernels[]; /* ends with name NULL */

#endif
