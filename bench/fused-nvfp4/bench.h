/* SPDX-License-Identifier: Apache-2.0
 * The parts of bench_fused: one point (one layer of a shape at one number of tokens), its rounds, its accounting, and the
 * ceilings of the device. Nothing here prints or exits but main.c. */
#ifndef BENCH_FUSED_H
#define BENCH_FUSED_H

#include "base/json.h"
#include "config/config.h"
#include "host/verify.h"

enum {
  BENCH_INPUTS = 4,      /* inputs that take turns, at least */
  BENCH_MAX_COPIES = 16, /* of the layer's weights */
  BENCH_MAX_SLOTS = BENCH_MAX_COPIES + BENCH_INPUTS,
  BENCH_MAX_WORDS = 64, /* of the probe's command line that describes a point */
};

enum bench_variant { BENCH_FUSED, BENCH_SORTED, BENCH_VARIANTS };
extern const char *const bench_variant_names[BENCH_VARIANTS];

/* ---- accounting: account.c ---- */
struct bench_shape {
  uint64_t hidden, intermediate, experts, top_k;
  bool gated, biases;
};
/* As stored: packed codes, one E4M3 scale for 16 of them (without the padding of the swizzled layout, which need not be
 * read), two fp32 scales, fp32 biases if the shape has them. */
uint64_t bench_expert_bytes(const struct bench_shape *shape);
/* Parameters of the matrices of one expert. */
uint64_t bench_expert_parameters(const struct bench_shape *shape);
/* Input and output in bf16. */
uint64_t bench_activation_bytes(const struct bench_shape *shape, uint64_t tokens);
/* Useful operations: a multiplication and an addition for each parameter of each chosen expert of each token. */
uint64_t bench_flops(const struct bench_shape *shape, uint64_t tokens);
/* Experts that a drawn routing is expected to hit. */
double bench_expected_hit(const struct bench_shape *shape, uint64_t tokens);
/* Experts that these choices hit; UINT32_MAX when one is out of range, or a token chose one twice. */
uint32_t bench_hit(const struct bench_shape *shape, const int32_t *chosen, uint64_t tokens);

/* ---- a point ---- */
struct bench_slot { /* what one forward runs on; slots take turns */
  uint32_t layer;   /* the copy of the weights */
  void *input;
  uint32_t hit;
  cudaGraphExec_t graph;
};
struct bench_point {
  struct sc_gpu *gpu;
  struct bench_shape shape;
  struct sc_options options;
  char text[BENCH_MAX_WORDS][40]; /* the words that the options were parsed from: they point into them */
  struct sc_model model;
  struct sc_point point;
  const struct sc_variant *variants[BENCH_VARIANTS];
  void *model_input, *inputs; /* of the model; all slots' in one allocation */
  struct bench_slot slots[BENCH_MAX_SLOTS];
  uint32_t slot_count, copies, copies_wanted;
  uint64_t l2_bytes;
  struct sc_verification verified[BENCH_VARIANTS];
  cudaEvent_t start, stop;
};
struct bench_request { /* of a setup */
  const struct sc_config_model *model;
  uint64_t tokens, seed;
  bool act_fp4;
  bool verify_sorted; /* the fused layer is verified at every point, sorted dispatch when the shape is new */
  const char *routing_path;
};
/* Makes weights, inputs and graphs, verifies, and writes the experts that every slot's tokens choose to routing_path:
 * int32 [slots][tokens][top_k]. *point is zeroed by the caller; bench_point_close takes a half-opened one too.
 * SC_ERR_MEASURE when a result is wrong. setup.c */
enum sc_status bench_point_open(struct bench_point *point, struct sc_gpu *gpu, const struct bench_request *request,
                                struct sc_error *err) SC_NODISCARD;
void bench_point_close(struct bench_point *point);

/* Options and memory of a point, before anything has run on it. point.c */
enum sc_status bench_point_make(struct bench_point *point, const struct bench_request *request,
                                struct sc_error *err) SC_NODISCARD;

/* ---- rounds: rounds.c ---- */
/* Enqueues one forward on a slot. */
enum sc_status bench_forward(struct bench_point *point, enum bench_variant variant, uint32_t slot,
                             struct sc_error *err) SC_NODISCARD;
enum sc_status bench_capture(struct bench_point *point, uint32_t slot, struct sc_error *err) SC_NODISCARD;
/* `count` forwards, every slot in turn, between two events: *us is the time of one. count is a multiple of the number of
 * slots. One more runs before, untimed, so that the device is busy when the first event is recorded. */
enum sc_status bench_round(struct bench_point *point, enum bench_variant variant, bool graph, uint64_t count, double *us,
                           struct sc_error *err) SC_NODISCARD;

/* ---- ceilings: ceilings.c ---- */
struct bench_ceilings {
  double copy_gbs;      /* device to device, bytes read and bytes written */
  double read_gbs;      /* a reduction */
  double matmul_tflops; /* cuBLAS, bf16, 8192 x 8192 x 8192 */
};
enum sc_status bench_measure_ceilings(const struct sc_gpu *gpu, struct bench_ceilings *out,
                                      struct sc_error *err) SC_NODISCARD;

#endif
