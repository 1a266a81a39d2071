/* SPDX-License-Identifier: Apache-2.0
 * Options: one table for getopt_long, the help text and the handlers' names. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/options.h"

enum {
  MAX_LAYERS = 1024,
  MAX_TOKENS = 1 << 24,
  MAX_WIDTH = 1 << 18,
  MAX_SAMPLES = 10000000,
  MAX_REPEATS = 100000,
  MAX_BLOCKS = 10000,
};

static const char *const pass_names[] = {"times", "counts", "ruler", "verify"};
static const char *const route_names[] = {"router", "uniform", "skewed", "one-expert"};
static const char *const dtype_names[] = {"fp32", "bf16"};
static const char *const act_quant_names[] = {"w4a4", "w4a16"};
static const char *const w13_layout_names[] = {"interleaved", "packed"}; /* enum nvfp4_w13_layout */
static const char *const nvfp4_path_names[] = {"portable", "native"};

const char *sc_pass_name(enum sc_pass pass) { return pass_names[pass]; }

const char *sc_route_name(enum sc_route_mode mode) { return route_names[mode]; }

const char *sc_dtype_name(enum sc_dtype dtype) { return dtype_names[dtype]; }

const char *sc_act_quant_name(bool act_fp4) { return act_quant_names[act_fp4 ? 0 : 1]; }

const char *sc_w13_layout_name(enum nvfp4_w13_layout layout) { return w13_layout_names[layout]; }

const char *sc_nvfp4_path_name(bool native) { return nvfp4_path_names[native ? 1 : 0]; }

/* id, name, argument (NULL: none), meaning */
#define OPTION_MAP(X)                                                                                             \
  X(PASS, "pass", "NAME", "times, counts, ruler or verify (required)")                                            \
  X(VERIFY, "verify", NULL, "the same as --pass verify")                                                          \
  X(OUTPUT, "output", "FILE", "the JSON document; - or nothing is standard output")                               \
  X(VARIANTS, "variants", "LIST", "masked,sorted,fused-nvfp4")                                                    \
  X(EXPERTS, "experts", "LIST", "expert counts (4,8,16)")                                                         \
  X(TOKENS, "tokens", "LIST", "token counts (4096)")                                                              \
  X(LAYERS, "layers", "N", "layers that run (8; 2 in pass verify)")                                               \
  X(MODEL_LAYERS, "model-layers", "N", "layers that the model has (as --layers)")                                 \
  X(FIT_LAYERS, "fit-layers", "0|1", "run as many of the layers as the device's memory holds (0)")                \
  X(HIDDEN, "hidden", "N", "width of a token (512)")                                                              \
  X(INTERMEDIATE, "intermediate", "N", "width inside an expert (1408)")                                           \
  X(TOP_K, "top-k", "N", "experts a token (1)")                                                                   \
  X(DTYPE, "dtype", "NAME", "fp32, without TF32, or bf16 (fp32; both in pass verify)")                            \
  X(ACTIVATION, "activation", "NAME", "silu, swigluoai, swigluoai_uninterleave or relu2_no_mul (silu)")           \
  X(ALPHA, "alpha", "X", "factor inside the sigmoid (the activation's own)")                                      \
  X(BETA, "beta", "X", "added to the up projection (the activation's own)")                                       \
  X(LIMIT, "limit", "X", "clamp of gate and up (the activation's own)")                                           \
  X(ACT_QUANT, "act-quant", "NAME", "fused-nvfp4: w4a4, or w4a16 with bf16 activations (w4a4)")                   \
  X(W13_LAYOUT, "w13-layout", "NAME",                                                                             \
    "fused-nvfp4: the checkpoint's gate and up rows, packed or interleaved (packed)")                             \
  X(BIASES, "biases", "0|1", "fused-nvfp4: biases in both GEMMs (0)")                                             \
  X(NVFP4_PATH, "nvfp4-path", "NAME", "fused-nvfp4: portable (unpack to bf16), or native conversions (portable)") \
  X(RENORMALIZE, "renormalize", "0|1", "divide the chosen weights by their sum (1)")                              \
  X(ROUTING, "routing", "NAME", "router, uniform, skewed or one-expert (router)")                                 \
  X(SEED, "seed", "N", "of weights, input and routing (0; a fresh one in pass verify)")                           \
  X(FORWARDS, "forwards", "N", "forwards in ranges, pass counts (3)")                                             \
  X(REPEATS, "repeats", "N", "timed forwards of each variant and point (20)")                                     \
  X(WARMUP, "warmup", "N", "full-size forwards before anything is measured (2)")                                  \
  X(SAMPLES, "samples", "N", "read-backs of the ruler row launch+readback (5000)")                                \
  X(BLOCKS, "blocks", "N", "blocks that the ruler is cut into (12)")                                              \
  X(CONTROLS, "controls", "0|1", "the controls dense and sorted+syncs as well, pass times (1)")                   \
  X(DEVICE, "device", "N", "CUDA ordinal (0)")                                                                    \
  X(PROGRESS, "progress", NULL, "status lines on stderr, each ended by a carriage return")                        \
  X(HELP, "help", NULL, "this text")

enum option_id {
#define OPTION_ENUM(id, name, argument, meaning) OPT_##id,
  OPTION_MAP(OPTION_ENUM)
#undef OPTION_ENUM
      OPT_COUNT
};

struct option_text {
  const char *name, *argument, *meaning;
};
static const struct option_text option_texts[OPT_COUNT] = {
#define OPTION_TEXT(id, name, argument, meaning) [OPT_##id] = {name, argument, meaning},
    OPTION_MAP(OPTION_TEXT)
#undef OPTION_TEXT
};

void sc_options_help(void)
{
  printf("usage: synccount-probe --pass times|counts|ruler|verify [options]\n"
         "Mixture-of-Experts layers for synccount: timed, counted inside NVTX ranges, or checked against a CPU "
         "reference.\n\n");
  for (int i = 0; i < OPT_COUNT; i++) {
    char left[48];
    snprintf(left, sizeof left, "--%s %s", option_texts[i].name,
             option_texts[i].argument ? option_texts[i].argument : "");
    printf("  %-24s %s\n", left, option_texts[i].meaning);
  }
  printf(
      "\nExit status: 0 done, 1 a verification failed, 2 usage, 3 no device, out of memory, or a CUDA call failed.\n");
}

static enum sc_status bad_value(struct sc_error *err, enum option_id id, const char *got, const char *expected)
{
  return sc_error_set(err, SC_ERR_USAGE, "--%s: \"%s\" is not %s", option_texts[id].name, got, expected);
}

static enum sc_status parse_number(enum option_id id, const char *text, uint64_t low, uint64_t high, uint32_t *out,
                                   struct sc_error *err)
{
  uint64_t value;
  char expected[64];
  if (!sc_parse_u64(text, &value) || value < low || value > high) {
    snprintf(expected, sizeof expected, "a number from %llu to %llu", (unsigned long long)low,
             (unsigned long long)high);
    return bad_value(err, id, text, expected);
  }
  *out = (uint32_t)value;
  return SC_OK;
}

static enum sc_status parse_switch(enum option_id id, const char *text, bool *out, struct sc_error *err)
{
  uint32_t value = 0;
  const enum sc_status status = parse_number(id, text, 0, 1, &value, err);
  if (status == SC_OK)
    *out = value == 1;
  return status;
}

static enum sc_status parse_name(enum option_id id, const char *text, const char *const *names, size_t count, int *out,
                                 struct sc_error *err)
{
  for (size_t i = 0; i < count; i++)
    if (strcmp(text, names[i]) == 0) {
      *out = (int)i;
      return SC_OK;
    }
  struct sc_buf expected = {0};
  sc_buf_puts(&expected, "one of");
  for (size_t i = 0; i < count; i++)
    sc_buf_printf(&expected, " %s", names[i]);
  const enum sc_status status = bad_value(err, id, text, expected.data ? expected.data : "a known name");
  sc_buf_free(&expected);
  return status;
}

static enum sc_status parse_float(enum option_id id, const char *text, float *out, bool *given, struct sc_error *err)
{
  double value;
  if (!sc_parse_double(text, &value) || value < -1e6 || value > 1e6)
    return bad_value(err, id, text, "a number from -1e6 to 1e6");
  *out = (float)value;
  *given = true;
  return SC_OK;
}

static enum sc_status parse_list(enum option_id id, const char *text, uint64_t max, uint64_t **out, size_t *count,
                                 struct sc_error *err)
{
  uint64_t *list = NULL;
  size_t n = 0;
  const enum sc_status status = sc_parse_u64_list(text, max, &list, &n, err);
  if (status != SC_OK) {
    sc_error_prefix(err, "--%s", option_texts[id].name);
    return status == SC_ERR_NOMEM ? status : SC_ERR_USAGE;
  }
  free(*out);
  *out = list;
  *count = n;
  return SC_OK;
}

static enum sc_status parse_activation(const char *text, struct sc_options *options, struct sc_error *err)
{
  for (const struct sc_activation_name *a = sc_activation_names; a->name != NULL; a++)
    if (strcmp(text, a->name) == 0) {
      options->activation_name = a;
      return SC_OK;
    }
  return bad_value(err, OPT_ACTIVATION, text, option_texts[OPT_ACTIVATION].meaning);
}

/* What was given apart from its default. */
struct given {
  float alpha, beta, limit;
  bool has_alpha, has_beta, has_limit, pass, layers, model_layers;
};

static enum sc_status parse_one(enum option_id id, const char *text, struct sc_options *o, struct given *given,
                                struct sc_error *err)
{
  int index = 0;
  enum sc_status status = SC_OK;
  uint32_t number = 0;
  switch (id) {
  case OPT_PASS:
    status = parse_name(id, text, pass_names, SC_COUNTOF(pass_names), &index, err);
    if (status == SC_OK) {
      o->pass = (enum sc_pass)index;
      given->pass = true;
    }
    return status;
  case OPT_VERIFY:
    o->pass = SC_PASS_VERIFY;
    given->pass = true;
    return SC_OK;
  case OPT_OUTPUT: o->output = strcmp(text, "-") == 0 ? NULL : text; return SC_OK;
  case OPT_VARIANTS: o->variants = text; return SC_OK;
  case OPT_EXPERTS: return parse_list(id, text, SC_MAX_EXPERTS, &o->experts, &o->expert_count, err);
  case OPT_TOKENS: return parse_list(id, text, MAX_TOKENS, &o->tokens, &o->token_count, err);
  case OPT_LAYERS: given->layers = true; return parse_number(id, text, 1, MAX_LAYERS, &o->layers, err);
  case OPT_MODEL_LAYERS:
    given->model_layers = true;
    return parse_number(id, text, 1, MAX_LAYERS, &o->model_layers, err);
  case OPT_FIT_LAYERS: return parse_switch(id, text, &o->fit_layers, err);
  case OPT_HIDDEN: return parse_number(id, text, 1, MAX_WIDTH, &o->hidden, err);
  case OPT_INTERMEDIATE: return parse_number(id, text, 1, MAX_WIDTH, &o->intermediate, err);
  case OPT_TOP_K: return parse_number(id, text, 1, SC_MAX_TOP_K, &o->top_k, err);
  case OPT_DTYPE:
    status = parse_name(id, text, dtype_names, SC_COUNTOF(dtype_names), &index, err);
    if (status == SC_OK) {
      o->dtype = (enum sc_dtype)index;
      o->dtype_given = true;
    }
    return status;
  case OPT_ACTIVATION: return parse_activation(text, o, err);
  case OPT_ALPHA: return parse_float(id, text, &given->alpha, &given->has_alpha, err);
  case OPT_BETA: return parse_float(id, text, &given->beta, &given->has_beta, err);
  case OPT_LIMIT:
    status = parse_float(id, text, &given->limit, &given->has_limit, err);
    if (status == SC_OK && !(given->limit > 0.0f))
      status = bad_value(err, id, text, "above 0");
    return status;
  case OPT_ACT_QUANT:
    status = parse_name(id, text, act_quant_names, SC_COUNTOF(act_quant_names), &index, err);
    if (status == SC_OK)
      o->act_fp4 = index == 0;
    return status;
  case OPT_W13_LAYOUT:
    status = parse_name(id, text, w13_layout_names, SC_COUNTOF(w13_layout_names), &index, err);
    if (status == SC_OK)
      o->w13_layout = (enum nvfp4_w13_layout)index;
    return status;
  case OPT_BIASES: return parse_switch(id, text, &o->biases, err);
  case OPT_NVFP4_PATH:
    status = parse_name(id, text, nvfp4_path_names, SC_COUNTOF(nvfp4_path_names), &index, err);
    if (status == SC_OK)
      o->native_fp4 = index == 1;
    return status;
  case OPT_RENORMALIZE: return parse_switch(id, text, &o->renormalize, err);
  case OPT_ROUTING:
    status = parse_name(id, text, route_names, SC_COUNTOF(route_names), &index, err);
    if (status == SC_OK)
      o->routing = (enum sc_route_mode)index;
    return status;
  case OPT_SEED:
    if (!sc_parse_u64(text, &o->seed) || o->seed > INT64_MAX) /* JSON integers are signed */
      return bad_value(err, id, text, "a number from 0 to 2^63 - 1");
    o->seed_given = true;
    return SC_OK;
  case OPT_FORWARDS: return parse_number(id, text, 1, MAX_REPEATS, &o->forwards, err);
  case OPT_REPEATS: return parse_number(id, text, 1, MAX_REPEATS, &o->repeats, err);
  case OPT_WARMUP: return parse_number(id, text, 0, MAX_REPEATS, &o->warmup, err);
  case OPT_SAMPLES: return parse_number(id, text, 1, MAX_SAMPLES, &o->samples, err);
  case OPT_BLOCKS: return parse_number(id, text, 1, MAX_BLOCKS, &o->blocks, err);
  case OPT_CONTROLS: return parse_switch(id, text, &o->controls, err);
  case OPT_DEVICE:
    status = parse_number(id, text, 0, 1023, &number, err);
    if (status == SC_OK)
      o->device = (int)number;
    return status;
  case OPT_PROGRESS: o->progress = true; return SC_OK;
  case OPT_HELP: o->help = true; return SC_OK;
  case OPT_COUNT: break;
  }
  return SC_ERR_INTERNAL;
}

static enum sc_status set_defaults(struct sc_options *o, struct sc_error *err)
{
  *o = (struct sc_options){.pass = SC_PASS_TIMES,
                           .variants = "masked,sorted,fused-nvfp4",
                           .layers = 8,
                           .hidden = 512,
                           .intermediate = 1408,
                           .top_k = 1,
                           .dtype = SC_F32,
                           .activation_name = &sc_activation_names[0],
                           .renormalize = true,
                           .routing = SC_ROUTE_ROUTER,
                           .forwards = 3,
                           .repeats = 20,
                           .warmup = 2,
                           .samples = 5000,
                           .blocks = 12,
                           .controls = true,
                           .act_fp4 = true,
                           .w13_layout = NVFP4_W13_PACKED};
  const enum sc_status status = parse_list(OPT_EXPERTS, "4,8,16", SC_MAX_EXPERTS, &o->experts, &o->expert_count, err);
  return status != SC_OK ? status : parse_list(OPT_TOKENS, "4096", MAX_TOKENS, &o->tokens, &o->token_count, err);
}

/* What only all options together can tell. */
static enum sc_status finish(struct sc_options *o, const struct given *given, struct sc_error *err)
{
  if (!given->pass)
    return sc_error_set(err, SC_ERR_USAGE,
                        "--pass is missing; give times, counts, ruler or verify (--help lists all options)");
  if (o->pass == SC_PASS_VERIFY && !given->layers)
    o->layers = 2;
  if (!given->model_layers)
    o->model_layers = o->layers;
  if (o->model_layers < o->layers)
    return sc_error_set(err, SC_ERR_USAGE, "--layers %u is more than the %u of --model-layers", o->layers,
                        o->model_layers);
  for (size_t i = 0; i < o->token_count; i++)
    if (o->tokens[i] * o->top_k > MAX_TOKENS)
      return sc_error_set(err, SC_ERR_USAGE,
                          "--tokens %llu times --top-k %u is more than %d choices; choose fewer tokens",
                          (unsigned long long)o->tokens[i], o->top_k, MAX_TOKENS);
  if (!o->activation_name->gated && (given->has_alpha || given->has_beta || given->has_limit))
    return sc_error_set(err, SC_ERR_USAGE, "--activation %s takes no --alpha, --beta or --limit",
                        o->activation_name->name);
  o->activation = o->activation_name->defaults;
  if (given->has_alpha)
    o->activation.alpha = given->alpha;
  if (given->has_beta)
    o->activation.beta = given->beta;
  if (given->has_limit)
    o->activation.limit = given->limit;
  if (o->samples < o->blocks)
    return sc_error_set(err, SC_ERR_USAGE, "--samples %u is less than the %u of --blocks: each block needs one",
                        o->samples, o->blocks);
  return SC_OK;
}

enum sc_status sc_options_parse(int argc, char **argv, struct sc_options *options, struct sc_error *err)
{
  struct option long_options[OPT_COUNT + 1] = {0};
  for (int i = 0; i < OPT_COUNT; i++)
    long_options[i] = (struct option){option_texts[i].name, option_texts[i].argument ? required_argument : no_argument,
                                      NULL, 256 + i};
  struct given given = {0};
  enum sc_status status = set_defaults(options, err);
  optind = 1;
  opterr = 0; /* ours say what to do */
  while (status == SC_OK) {
    const int at = optind;
    const int code = getopt_long(argc, argv, ":", long_options, NULL);
    if (code == -1)
      break;
    if (code == ':')
      return sc_error_set(err, SC_ERR_USAGE, "%s needs a value; see --help", argv[optind - 1]);
    if (code < 256)
      return sc_error_set(err, SC_ERR_USAGE, "%s is not an option, is ambiguous, or takes no value; see --help",
                          argv[at < argc ? at : argc - 1]);
    status = parse_one((enum option_id)(code - 256), optarg, options, &given, err);
  }
  if (status != SC_OK || options->help)
    return status;
  if (optind < argc)
    return sc_error_set(err, SC_ERR_USAGE, "\"%s\" is not an option; synccount-probe takes options only, see --help",
                        argv[optind]);
  return finish(options, &given, err);
}

void sc_options_free(struct sc_options *options)
{
  free(options->experts);
  free(options->tokens);
  options->experts = options->tokens = NULL;
}
