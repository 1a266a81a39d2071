/* SPDX-License-Identifier: Apache-2.0
 * The stand-in CUDA libraries' contract with the outside: the kernel table a program exports, what libcuda.so.1 exports
 * beside the real names, and the environment that sets and breaks the simulation. Repeated in probes/ and in test
 * programs: it is an ABI. */
/* clang-format off
 *
 * SIMCUDA_ROUND_TRIP     a blocking call that tells the host anything new takes at least this long: 120us, 1.5ms (0)
 * SIMCUDA_MEMORY         device memory, with k, M, G or T (8G); an allocation beyond it fails with error 2
 * SIMCUDA_DEVICES        number of devices, 0 to 16 (1); with 0 cuInit fails with error 100
 * SIMCUDA_CAPABILITY     compute capability of every device (9.0)
 * SIMCUDA_THREADS        threads of one matrix product (the CPUs this process may use, at most 16)
 * SIMCUDA_QUEUE          submissions that a stream holds; one more waits for room (0: no limit)
 * SIMCUDA_FAIL           call=error[@n],...  the call (its nth, else each one) fails and does nothing. The error is a
 *                        number or a name (cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY); cuMemAlloc means each
 *                        version of it
 * SIMCUDA_LOST           n  after n submissions the device is gone: all but error and version queries fail with 46
 * SIMCUDA_SUBSCRIBER     a name  CUPTI's one subscriber slot is held by the tool of that name
 * SIMCUDA_UNPAIRED       call[:enter|:exit][@n],...  of that call one callback comes, the ENTER unless :exit is given
 * SIMCUDA_CUPTI_VERSION  what cuptiGetVersion says (CUPTI_API_VERSION of the toolkit)
 *
 * A value that cannot be understood makes cuInit fail with error 1 and puts one line on stderr: a test that asked for a
 * fault must not pass because of a typing error. README.md has examples.
 * clang-format on */
#ifndef SIMCUDA_SIMCUDA_H
#define SIMCUDA_SIMCUDA_H

#include <stddef.h>

/* One kernel, as the program offers it. `run` does the work of the whole grid on one thread of the simulation, in
 * stream order; args[i] points to a private copy, taken at the launch, of the arg_bytes[i] bytes of argument i. */
struct simcuda_kernel {
  const char *name;
  void (*run)(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args);
  unsigned arg_count;
  unsigned short arg_bytes[32];
};

/* Exported by the program (link it with -rdynamic, or ENABLE_EXPORTS in CMake), found by dlsym(RTLD_DEFAULT,
 * "simcuda_kernels"), ended by an entry whose name is NULL. A name that is not in it fails at cudaLibraryGetKernel with
 * cudaErrorSymbolNotFound. */
extern const struct simcuda_kernel simcuda_kernels[];

/* Exported by libcuda.so.1: its presence says that this process runs on the simulation. */
const char *simcuda_version(void);

#endif
