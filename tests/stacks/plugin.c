/* SPDX-License-Identifier: Apache-2.0
 * A plug-in that synchronises. Two files are made of it, so that one can be loaded where the other was. */
#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) int plugin_sync(void);
int plugin_sync(void) { return cudaDeviceSynchronize() == cudaSuccess ? 1 : 0; }
