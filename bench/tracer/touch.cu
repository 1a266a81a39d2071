/* SPDX-License-Identifier: Apache-2.0
 * The tiny kernel of the round trip. */
extern "C" __global__ void sc_bench_touch(unsigned *word) {
  *word += 1;
}
