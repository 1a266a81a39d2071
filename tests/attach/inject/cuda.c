/* SPDX-License-Identifier: Apache-2.0
 * A libcuda.so.1 by name alone: makes a program one that has CUDA in it. */
int cuInit(unsigned flags);
__attribute__((visibility("default"))) int cuInit(unsigned flags) { return (int)flags; }
