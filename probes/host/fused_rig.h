/* SPDX-License-Identifier: Apache-2.0
 * A fused layer of its own for verification: fresh random weights, input and routing, quantised twice, by the CPU and
 * by the layer's own loading, and one forward at a time. Independent of the model of the grid: the reference never sees
 * what the device made. */
#ifndef SC_PROBE_FUSED_RIG_H
#define SC_PROBE_FUSED_RIG_H

#include "host/check.h"
#include "host/fused.h"

struct sc_rig_shape { /* vLLM's (m, n, k, e, topk) */
  uint32_t tokens, intermediate, hidden, experts, top_k;
};

struct sc_rig {
  struct sc_check *check; /* owns every buffer: sc_check_release frees them */
  struct sc_rig_shape size;
  enum sc_dtype dtype;
  bool gated;
  size_t matrix, outputs, choices; /* elements: of an expert's gate, up or down; of the output; of the routing */
  /* On the host. Values are those that the dtype holds; matrices in natural order, expert after expert. */
  float *x, *gate, *up, *down, *bias13, *bias2, *choice_weights; /* bias13: rows [up; gate] */
  int32_t *chosen;
  /* Quantised by the CPU, as the layer should hold them. */
  uint8_t *w13, *scales13, *w2, *scales2;
  float *global13, *global2;
  float x_amax;
  void *staging; /* one matrix in dtype */
  /* On the device. */
  struct sc_fused_weights weights;
  struct sc_fused_scratch scratch[2]; /* w4a16, w4a4 */
  void *device_x, *device_gate, *device_up, *device_down, *device_output, *device_chosen, *device_choice_weights;
};

/* x is normal with deviation x_scale, weights with 1/15, biases with 1/4. The rig lives until sc_check_release. */
enum sc_status sc_rig_open(struct sc_rig *rig, struct sc_check *check, struct sc_rig_shape size, enum sc_dtype dtype,
                           bool gated, float x_scale, struct sc_error *err) SC_NODISCARD;

/* What one forward is made with. */
struct sc_rig_case {
  struct sc_activation activation;
  bool a_fp4, biases;
};
struct sc_fused_shape sc_rig_fused_shape(const struct sc_rig *rig, enum nvfp4_w13_layout layout,
                                         const struct sc_rig_case *what);

/* Loads every expert through the layer's own loading, from a checkpoint of that layout. swapped: gate for up and up for
 * gate. */
enum sc_status sc_rig_load(const struct sc_rig *rig, enum nvfp4_w13_layout layout, bool swapped,
                           struct sc_error *err) SC_NODISCARD;
/* Whether the device's codes, scales and encode scales are the CPU's, bit for bit. */
enum sc_status sc_rig_loaded_exactly(const struct sc_rig *rig, bool *exact, struct sc_error *err) SC_NODISCARD;

/* The tiles of all experts' first matrix, of codes and swizzled scales as the rig's w13 and scales13; and their bytes. */
void sc_rig_tile_w13(const struct sc_rig *rig, const uint8_t *codes, const uint8_t *scales, uint8_t *tiles);
uint64_t sc_rig_w13_bytes(const struct sc_rig *rig);

/* The reference. plain_intermediate: gate B's. globals[2]: in for x (0) and the intermediate (1). */
struct sc_rig_reference {
  bool plain_intermediate;
  double (*activate)(const struct sc_activation *act, double gate, double up); /* NULL: the right one */
  double *gates, *ups;                                                         /* NULL: not wanted */
};
enum sc_status sc_rig_refer(const struct sc_rig *rig, const struct sc_rig_case *what,
                            const struct sc_rig_reference *how, const float globals[2], double *y,
                            double *intermediate_amax, struct sc_error *err) SC_NODISCARD;

/* One forward on the device with these encode scales into poisoned memory; output[tokens][hidden] in dtype. */
enum sc_status sc_rig_forward(const struct sc_rig *rig, const struct sc_rig_case *what, const float globals[2],
                              void *output, struct sc_error *err) SC_NODISCARD;
/* The same without the scales set first: with whatever the weights hold now. */
enum sc_status sc_rig_forward_as_is(const struct sc_rig *rig, const struct sc_rig_case *what, void *output,
                                    struct sc_error *err) SC_NODISCARD;

#endif
