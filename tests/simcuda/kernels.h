/* SPDX-License-Identifier: Apache-2.0
 * The kernels that the tests of the stand-in libraries launch, and what the tests share. */
#ifndef TEST_SIMCUDA_KERNELS_H
#define TEST_SIMCUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "test_support.h"

#define OK(call) assert_int_equal((int)(call), 0)
#define FAILS(call, error) assert_int_equal((int)(call), (int)(error))

/* A gate: a kernel or host function that waits at it occupies its stream until the test opens it. */
struct gate {
  atomic_bool open, reached;
};

extern cudaKernel_t kernel_add;    /* (int *where, int value): *where += value */
extern cudaKernel_t kernel_append; /* (int *list, int value): list[++list[0]] = value */
extern cudaKernel_t kernel_pass;   /* (struct gate *gate): waits until it is open */
extern cudaKernel_t kernel_shape;  /* (unsigned *out): grid, block, shared bytes */

int load_kernels(void **state); /* a CMocka group set-up */

void launch_add(int *where, int value, cudaStream_t stream);
void launch_append(int *list, int value, cudaStream_t stream);
void launch_pass(struct gate *gate, cudaStream_t stream);

double now_us(void);
/* Waits (up to a minute: the machine may be busy) until the flag is set; false if it never was. */
bool wait_for(atomic_bool *flag);

#define GATE_MS 100       /* what a call that should block is given to return all the same, with the gate closed */
#define PATIENCE_MS 60000 /* what one that should not block is given: it returns, however slow the machine is */
/* Runs the function on another thread, with the gate closed meanwhile. True when the function returned only after the
 * gate was opened. `stream` is where the gate stands. */
bool blocks(cudaStream_t gate_stream, bool expected, void (*function)(void *), void *argument);

#endif
