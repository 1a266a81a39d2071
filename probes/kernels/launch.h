/* SPDX-License-Identifier: Apache-2.0
 * Block sizes and limits on which kernels and host code agree. Plain C and CUDA. */
#ifndef SC_PROBE_LAUNCH_H
#define SC_PROBE_LAUNCH_H

enum {
  SC_BLOCK = 256,         /* grid-stride kernels */
  SC_BLOCK_SINGLE = 1024, /* kernels of one block: any, count, compact, offsets */
  SC_COMPACT_ITEMS = 8,   /* mask bytes a thread takes at a time */
  SC_SORT_BLOCK = 512,    /* tile sort: 512 threads x 8 keys */
  SC_SORT_ITEMS = 8,
  SC_SORT_TILE = SC_SORT_BLOCK * SC_SORT_ITEMS,
  SC_WARP = 32,
  SC_MAX_GRID = 65536,   /* more blocks than this loop instead */
  SC_MAX_EXPERTS = 1024, /* one thread of an SC_BLOCK_SINGLE block each */
  SC_MAX_TOP_K = 64,
};

/* How a chosen expert is overridden, after the router has run. */
enum sc_route_mode { SC_ROUTE_ROUTER, SC_ROUTE_UNIFORM, SC_ROUTE_SKEWED, SC_ROUTE_ONE_EXPERT };

/* The two families of expert activations (reference/activation.c has the table of names). */
enum sc_act_kind {
  SC_ACT_GATED, /* g = min(gate, limit), u = clamp(up, -limit, limit): (u + beta) * g * sigmoid(alpha * g) */
  SC_ACT_RELU2, /* max(gate, 0)^2, no up projection */
};

#endif
