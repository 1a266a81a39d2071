/* SPDX-License-Identifier: Apache-2.0
 * config: YAML in, checked structs out. Uses base alone. docs/synccount-config.5.scd describes the files. */
#ifndef SC_CONFIG_H
#define SC_CONFIG_H

#include "base/base.h"

/* A parameter that a model may leave out, or set to null, is not passed on: absent is never the same as a number. */
struct sc_config_real {
  bool set;
  double value;
};

enum sc_config_dtype { SC_CONFIG_BF16, SC_CONFIG_FP32 };
const char *sc_config_dtype_name(enum sc_config_dtype dtype); /* "bf16", "fp32" */

/* How the rows of gate and up lie in the checkpoint's first matrix. */
enum sc_config_layout {
  SC_CONFIG_LAYOUT_NONE,        /* the activation has no gate */
  SC_CONFIG_LAYOUT_PACKED,      /* all of gate, then all of up */
  SC_CONFIG_LAYOUT_INTERLEAVED, /* gate0, up0, gate1, up1, ... */
};

enum sc_config_scoring { SC_CONFIG_SOFTMAX, SC_CONFIG_SIGMOID };

struct sc_config_model {
  bool set;     /* the file has a model section */
  char *name;   /* never NULL when set */
  char *source; /* where the figures come from; NULL if the file does not say */
  uint64_t hidden, intermediate, experts, top_k;
  uint64_t layers;     /* of the whole model */
  uint64_t moe_layers; /* of those, the ones with experts: what a run means by layers */
  enum sc_config_dtype dtype;
  char *activation; /* "silu", "swigluoai", "swigluoai_uninterleave", "relu2_no_mul" */
  bool gated;       /* from the activation: the first matrix has gate and up */
  struct sc_config_real alpha, beta, limit;
  enum sc_config_layout w13_layout;
  bool biases;
  struct {
    enum sc_config_scoring scoring;
    bool renormalize;
    bool correction_bias;           /* a bias that is added for the choice only */
    uint64_t groups, groups_chosen; /* 0: no grouped choice */
    struct sc_config_real scale;    /* routed scaling factor */
  } router;
  struct {
    uint64_t count; /* 0: none */
    uint64_t intermediate;
  } shared_experts;
  char *notes; /* NULL if none */
};

/* Options of the command line that a file may set. Absent ones are NULL, 0 or unset. */
struct sc_config_run {
  bool set;
  uint64_t *experts, *tokens;
  size_t experts_count, tokens_count;
  char **variants;
  size_t variants_count;
  uint64_t layers, forwards; /* 0: not given */
  char *routing;             /* NULL: not given */
  bool has_seed;
  uint64_t seed;
  bool has_dtype;
  enum sc_config_dtype dtype;
};

struct sc_config {
  struct sc_config_model model;
  struct sc_config_run run;
};

/* Reads a file. SC_ERR_IO if it cannot be read, SC_ERR_CONFIG with "file:line:column: what, and what to do" if it is
 * refused: anchors, aliases, tags, several documents, duplicate or unknown keys, missing keys, wrong types, impossible
 * sizes. *out is written on success only; the caller frees it with sc_config_free. */
enum sc_status sc_config_read(const char *path, struct sc_config **out, struct sc_error *err) SC_NODISCARD;
/* The same from memory; name stands in error messages. */
enum sc_status sc_config_read_memory(const char *text, size_t size, const char *name, struct sc_config **out,
                                     struct sc_error *err) SC_NODISCARD;
void sc_config_free(struct sc_config *config); /* accepts NULL and half-built ones */

/* ---- gates: docs/synccount-gate.5.scd -------------------------------------------------------- */
struct sc_config_expectation { /* texts are as written, and NULL where absent; what they mean is not config's to say */
  size_t line, column;
  char *expect; /* "sorted.syncs_per_layer == 1"; excludes measure and comparison */
  char *variant, *process, *rank, *thread, *range, *level, *site, *cls;
  char *measure, *equals, *at_most, *at_least, **between; /* exactly one comparison, if there is a measure */
  size_t between_count;                                   /* 2 */
  char *reason;
};
struct sc_config_exception {
  size_t line, column;
  char *site, *range; /* at least one */
  bool has_count, first_only;
  uint64_t count;
  char *reason;
};
struct sc_config_gate {
  struct sc_config probe; /* its run section: what the instrumented layers run */
  char *name;             /* NULL: the file's name stands for it */
  bool has_source, has_probe;
  char *model, *device; /* of the probe; as --config and --device take them */
  uint64_t hidden, intermediate, top_k;
  char **command, **traces, **ranges; /* ranges: PATTERN=LEVEL */
  size_t command_count, traces_count, ranges_count;
  uint64_t warmup;
  char *from, *stacks, *api;
  bool capture_range, torch_modules, follow, has_follow;
  uint64_t version;
  struct sc_config_expectation *expect;
  size_t expect_count;
  struct sc_config_exception *allow;
  size_t allow_count;
};
/* As sc_config_read. Free with sc_config_gate_free. */
enum sc_status sc_config_read_gate(const char *path, struct sc_config_gate **out, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_config_read_gate_memory(const char *text, size_t size, const char *name, struct sc_config_gate **out,
                                          struct sc_error *err) SC_NODISCARD;
void sc_config_gate_free(struct sc_config_gate *gate); /* accepts NULL and half-built ones */

/* Limits of one value, for the file and for the command line alike. */
#define SC_CONFIG_MAX_EXPERTS 4096u
#define SC_CONFIG_MAX_TOKENS (1u << 24)
#define SC_CONFIG_MAX_WIDTH (1u << 20) /* hidden, intermediate */
#define SC_CONFIG_MAX_LAYERS 1024u
#define SC_CONFIG_MAX_FORWARDS 1000000u

/* What one point of a run needs in memory. */
struct sc_config_shape {
  uint64_t hidden, intermediate, experts, top_k, tokens;
  enum sc_config_dtype dtype;
  bool gated;
  bool nvfp4, nvfp4_biases; /* fused-nvfp4 runs too: the same weights once more in NVFP4, biases in fp32 */
};
struct sc_config_memory {
  uint64_t layer_bytes; /* one layer's weights, router included, and what is kept of its forward */
  uint64_t fixed_bytes; /* input, activations, buffers and routing, whatever the number of layers */
};
/* False if a figure is beyond its limit above or the bytes overflow 64 bits. */
bool sc_config_memory(const struct sc_config_shape *shape, struct sc_config_memory *out) SC_NODISCARD;
/* How many layers, at most `wanted`, fit into `available` bytes. 0: not even one does. */
uint64_t sc_config_layers_that_fit(const struct sc_config_memory *memory, uint64_t wanted, uint64_t available);

#endif
