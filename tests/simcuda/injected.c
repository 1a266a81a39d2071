/* SPDX-License-Identifier: Apache-2.0
 * A library for CUDA_INJECTION64_PATH: says in the environment how often it was initialised. */
#include <stdlib.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
  const char *before = getenv("TEST_INJECTED");

  return setenv("TEST_INJECTED", before == NULL ? "once" : "again", 1) == 0;
}
