/* SPDX-License-Identifier: Apache-2.0
 * loop [SAMPLES]: times a launch, a pinned copy + stream synchronise, and kernel + copy + synchronise. One line each:
 * name, p50, p10, minimum in nanoseconds, samples. The same binary runs bare, under the tracer and under Nsight
 * Systems: the script `overhead` compares them. */
#include <stdio.h>
#include <stdlib.h>

#include "touch.h"

enum { BLOCK = 100 }; /* the three are interleaved in blocks of this many, so that a slow phase of the host hits all */

static void launches(struct touch *touch, double *ns) {
  for (int i = 0; i < BLOCK; i++) {
    uint64_t start = touch_now();
    touch_launch(touch);
    ns[i] = (double)(touch_now() - start);
    if (i % 20 == 19) /* a full queue would make a launch wait */
      touch_sync(touch);
  }
  touch_sync(touch);
}

static void read_backs(struct touch *touch, double *ns, int with_kernel) {
  for (int i = 0; i < BLOCK; i++) {
    uint64_t start = touch_now();
    if (with_kernel)
      touch_launch(touch);
    touch_copy(touch);
    touch_sync(touch);
    ns[i] = (double)(touch_now() - start);
  }
}

int main(int argc, char **argv) {
  long samples = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;
  static const char *const names[] = { "launch", "copy+sync", "kernel+copy+sync" };
  struct touch touch;
  double *ns[3];
  if (samples < BLOCK || samples > 10000000) {
    fprintf(stderr, "usage: bench_tracer_loop [SAMPLES]  (%d to 10000000)\n", BLOCK);
    return 2;
  }
  long blocks = samples / BLOCK;
  if (!touch_begin(&touch))
    return 3;
  for (int k = 0; k < 3; k++)
    if ((ns[k] = calloc((size_t)blocks * BLOCK, sizeof(*ns[k]))) == NULL)
      return 3;
  for (long warm_up = -5; warm_up < blocks; warm_up++) {
    long at = warm_up < 0 ? 0 : warm_up * BLOCK;
    launches(&touch, ns[0] + at);
    read_backs(&touch, ns[1] + at, 0);
    read_backs(&touch, ns[2] + at, 1);
  }
  for (int k = 0; k < 3; k++) {
    size_t n = (size_t)blocks * BLOCK;
    double p50 = touch_quantile(ns[k], n, 0.5), p10 = touch_quantile(ns[k], n, 0.1);
    printf("%s %.0f %.0f %.0f %zu\n", names[k], p50, p10, ns[k][0], n);
  }
  return 0;
}
