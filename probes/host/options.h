/* SPDX-License-Identifier: Apache-2.0
 * The command line of synccount-probe, checked. PROTOCOL.md is its contract. */
#ifndef SC_PROBE_OPTIONS_H
#define SC_PROBE_OPTIONS_H

#include "base/base.h"
#include "reference/nvfp4.h"
#include "reference/reference.h"

enum sc_pass { SC_PASS_TIMES, SC_PASS_COUNTS, SC_PASS_RULER, SC_PASS_VERIFY };

struct sc_options {
  enum sc_pass pass;
  const char *output;   /* NULL: stdout, or no document in pass verify */
  const char *variants; /* names as given; variants.h checks them */
  uint64_t *experts, *tokens;
  size_t expert_count, token_count;
  uint32_t layers, model_layers, hidden, intermediate, top_k;
  enum sc_dtype dtype;
  bool dtype_given; /* pass verify does both types unless one is asked for */
  const struct sc_activation_name *activation_name;
  struct sc_activation activation;
  bool renormalize;
  enum sc_route_mode routing;
  uint64_t seed;
  bool seed_given;
  uint32_t forwards, repeats, warmup, samples, blocks;
  bool controls, fit_layers, progress, help;
  bool act_fp4, biases, native_fp4; /* fused-nvfp4: --act-quant w4a4, --biases 1, --nvfp4-path native */
  enum nvfp4_w13_layout w13_layout; /* fused-nvfp4: how the checkpoint holds gate and up */
  int device;
};

const char *sc_pass_name(enum sc_pass pass);
const char *sc_route_name(enum sc_route_mode mode);
const char *sc_dtype_name(enum sc_dtype dtype);
const char *sc_act_quant_name(bool act_fp4);
const char *sc_w13_layout_name(enum nvfp4_w13_layout layout);
const char *sc_nvfp4_path_name(bool native);

/* Fills *options (also on failure: sc_options_free either way). SC_ERR_USAGE names the option, what it got and what it
 * takes. */
enum sc_status sc_options_parse(int argc, char **argv, struct sc_options *options, struct sc_error *err) SC_NODISCARD;
void sc_options_free(struct sc_options *options);
void sc_options_help(void); /* to stdout */

#endif
