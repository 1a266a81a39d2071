/* SPDX-License-Identifier: Apache-2.0
 * What the user asked for: the command line over a configuration over the defaults. */
#ifndef SC_CLI_SETTINGS_H
#define SC_CLI_SETTINGS_H

#include "analysis/analysis.h"
#include "cli/cli.h"
#include "config/config.h"
#include "report/report.h"

#define SETTINGS_FUSED "fused-nvfp4" /* the variant's name */

enum settings_device { DEVICE_AUTO, DEVICE_CUDA, DEVICE_SIM };

struct settings {
  /* NULL, 0, NaN or a false flag: not given. Lists belong to this struct. */
  uint64_t *experts, *tokens;
  size_t experts_count, tokens_count;
  char **variants;
  size_t variants_count;
  uint64_t layers, hidden, intermediate, top_k, forwards, seed;
  bool has_seed, has_dtype;
  enum sc_config_dtype dtype;
  const char *routing, *act_quant, *nvfp4_path;
  const char *config_name; /* as typed */
  struct sc_config *config;

  enum settings_device device;
  unsigned ordinal;
  double sim_round_trip_us;
  double *assumed_us;
  size_t assumed_count;

  const struct sc_report_format *format;
  const char *output;
  const char *keep_traces;
  bool per_expert, quiet;

  /* of run and report */
  struct sc_analysis_options analysis; /* its rules and their patterns belong to this struct */
  size_t rules_capacity;
  bool threads;
  bool to_stderr; /* the report, when no file is named: stdout is the program's */
  const char *stacks, *api, *max_trace; /* for the tracer, checked */
  bool follow, no_follow; /* follow: it was asked for, and a gate does not change it */
  bool no_ruler, keep_going, torch_modules;
};

void settings_init(struct settings *settings);
void settings_free(struct settings *settings);

/* A cli_handler over struct settings for every option of the tables below. */
bool settings_option(void *context, enum cli_option_id id, const char *argument, struct sc_error *err);

/* Reads --config's file: a path, or the name of a shipped shape in configs_folder. */
enum sc_status settings_load_config(struct settings *settings, const char *configs_folder,
                                    struct sc_error *err) SC_NODISCARD;

/* The complete grid that will be run. Pointers borrow from the settings or are literals. */
struct plan {
  const uint64_t *experts, *tokens;
  size_t experts_count, tokens_count;
  const char *const *variants;
  size_t variants_count;
  uint64_t layers, model_layers, hidden, intermediate, top_k, forwards, seed;
  bool layers_given; /* by an option or the file's run section: not to be cut down silently */
  enum sc_config_dtype dtype;
  const char *routing, *activation;
  struct sc_config_real alpha, beta, limit;
  bool renormalize, gated;
  const char *act_quant, *nvfp4_path; /* of fused-nvfp4, as are the next two */
  const char *w13_layout;             /* NULL: the activation has no gate */
  bool biases;
  const struct sc_config_model *model; /* NULL: no configuration with a model */
};
/* Merges and checks; SC_ERR_USAGE names the option, SC_ERR_CONFIG the file. simulated: cheaper defaults. */
enum sc_status settings_plan(const struct settings *settings, bool simulated, struct plan *out,
                             struct sc_error *err) SC_NODISCARD;
/* Cuts plan->layers down to what fits into memory bytes (a model's layers), or refuses: SC_ERR_LIMIT. */
enum sc_status plan_fit(struct plan *plan, uint64_t memory_bytes, const char *whose, struct sc_error *err) SC_NODISCARD;
bool plan_has_variant(const struct plan *plan, const char *name);

/* The options' table rows, so that each command lists its own and all say the same. */
#define SETTINGS_GRID_OPTIONS(variants_default)                                                                       \
  {CLI_EXPERTS, 0, "experts", "LIST",                                                                                 \
   "numbers of experts, one run each (default: 4,8,16, or the\nmodel's own number with --config)"},                   \
      {CLI_VARIANTS, 0, "variants", "LIST", "masked, sorted, fused-nvfp4 (default: " variants_default ")"},           \
      {CLI_LAYERS, 0, "layers", "N", "MoE layers of a forward (default: 8, or the model's)"},                         \
      {CLI_TOKENS, 0, "tokens", "LIST", "tokens of a forward, one run each; 1 is decode (default: 4096)"},            \
      {CLI_HIDDEN, 0, "hidden", "N", "width of a token (default: 512)"},                                              \
      {CLI_INTERMEDIATE, 0, "intermediate", "N", "inner width of an expert (default: 1408)"},                         \
      {CLI_TOP_K, 0, "top-k", "N", "experts that each token is sent to (default: 1)"},                                \
      {CLI_DTYPE, 0, "dtype", "TYPE", "bf16 or fp32 (default: fp32, without TF32)"},                                  \
      {CLI_ROUTING, 0, "routing", "KIND",                                                                             \
       "router, uniform, skewed or one-expert: how tokens meet\nexperts (default: router)"},                          \
      {CLI_ACT_QUANT, 0, "act-quant", "KIND",                                                                         \
       "w4a4 or w4a16: fused-nvfp4 multiplies activations in NVFP4\nas well, or in bf16 (default: w4a4)"},            \
      {CLI_NVFP4_PATH, 0, "nvfp4-path", "PATH",                                                                       \
       "portable or native: fused-nvfp4 unpacks to bf16, or uses the\n"                                               \
       "device's own FP4 conversions, on compute capability 10.0\nand 12.0 alone (default: portable)"},               \
      {CLI_SEED, 0, "seed", "N", "of weights and inputs (default: 0)"},                                               \
      {CLI_FORWARDS, 0, "forwards", "N", "traced forwards of each run (default: 3; simulated: 1)"},                   \
  {                                                                                                                   \
    CLI_CONFIG, 0, "config", "FILE",                                                                                  \
        "a model's shape from a YAML file, or by the name of a shipped\none (mixtral-8x7b, ...); options given here " \
        "win over it"                                                                                                 \
  }
#define SETTINGS_SIM_ROUND_TRIP_OPTION                                      \
  {                                                                         \
    CLI_SIM_ROUND_TRIP, 0, "sim-round-trip", "TIME",                        \
        "round trip that the simulated device plays: 120us (default: 10us)" \
  }
#define SETTINGS_DEVICE_OPTIONS(auto_means)                                                         \
  {CLI_DEVICE, 0, "device", "DEVICE", "auto, cuda, cuda:N or sim (default: auto: " auto_means ")"}, \
      SETTINGS_SIM_ROUND_TRIP_OPTION
/* How traces are read: the same for run and report. */
#define SETTINGS_ANALYSIS_OPTIONS                                                                             \
  {CLI_WARMUP, 0, "warmup", "N", "leave the first N steps of each thread out of the steps' figures"},         \
      {CLI_FROM, 0, "from", "RANGE",                                                                          \
       "leave steps out that ended before a range of this name (* and ?\nas in file names) first opened"},    \
      {CLI_RANGES, 0, "ranges", "RULE",                                                                       \
       "PATTERN=LEVEL: ranges whose name matches are a step, layer, expert,\nop or run; may be given again"}, \
      {CLI_CAPTURE_RANGE, 0, "capture-range", "API",                                                          \
       "cudaProfilerApi: count only between cudaProfilerStart and\ncudaProfilerStop"},                        \
  {                                                                                                           \
    CLI_THREADS, 0, "threads", NULL, "list every thread, silent ones too"                                     \
  }
#define SETTINGS_FORMATS_HELP                                      \
  "text, json, markdown or html; of programs also chrome (trace\n" \
  "events), folded, folded-count (flame graphs), csv, csv-syncs\n(default: text)"
#define SETTINGS_LAYERS_FORMATS_HELP "text, json, markdown or html (default: text)" /* without a traced program */
#define SETTINGS_REPORT_OPTIONS(formats)                                                          \
  {CLI_FORMAT, 0, "format", "FORMAT", formats},                                                   \
      {CLI_OUTPUT, 'o', "output", "FILE", "write the report to FILE instead of standard output"}, \
      {CLI_QUIET, 'q', "quiet", NULL, "no progress line, and only the answer in text reports"},   \
  {                                                                                               \
    CLI_HELP, 'h', "help", NULL, "print this text"                                                \
  }

#endif
