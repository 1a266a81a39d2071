/* SPDX-License-Identifier: Apache-2.0
 * Checking the device against the CPU reference. */
#ifndef SC_PROBE_VERIFY_H
#define SC_PROBE_VERIFY_H

#include "host/variants.h"

struct sc_verification {
  bool ok, measured;        /* measured: the output was compared, so that the two numbers below mean something */
  double cosine, rel_error; /* of the layer's output; the worst of the layers looked at */
  char reason[256];         /* why not; empty when ok */
};

/* Runs `variant` on the first SC_VERIFY_TOKENS tokens, in the first and in the last layer, into poisoned memory, and
 * compares logits, choices, weights and output with the reference. A wrong result is no error: it is told in *result.
 */
enum sc_status sc_verify_variant(const struct sc_variant *variant, const struct sc_model *model, uint32_t experts,
                                 struct sc_verification *result, struct sc_error *err) SC_NODISCARD;

/* Every kernel, both types, on random inputs of this seed, one line each on stdout; *ok false if any is wrong. */
enum sc_status sc_verify_kernels(const struct sc_gpu *gpu, uint64_t seed, bool *ok, struct sc_error *err) SC_NODISCARD;
/* Those of the fused layer, bit for bit; *ok is not set to true. So with all that follow. */
enum sc_status sc_verify_fused_kernels(const struct sc_gpu *gpu, uint64_t seed, bool *ok,
                                       struct sc_error *err) SC_NODISCARD;
/* The gates of the fused layer in one type: at fixed shapes, and at this one, with fresh data from its seed. */
enum sc_status sc_verify_fused(const struct sc_gpu *gpu, const struct sc_shape *shape, bool *ok,
                               struct sc_error *err) SC_NODISCARD;
/* A forward that waits for nothing can be captured into a graph and replayed; one that waits is refused. */
enum sc_status sc_verify_capture(const struct sc_variant *variant, const struct sc_point *point, bool *ok,
                                 struct sc_error *err) SC_NODISCARD;

#endif
