/* SPDX-License-Identifier: Apache-2.0
 * Options in, one checked plan out. */
#include "cli/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/gate.h"

static const char *const known_variants[] = {SC_VARIANT_WORDS, NULL};
static const char *const known_act_quants[] = {"w4a4", "w4a16", NULL};
static const char *const known_paths[] = {"portable", "native", NULL};
static const char *const known_routings[] = {"router", "uniform", "skewed", "one-expert", NULL};

void settings_init(struct settings *settings)
{
  *settings = (struct settings){.sim_round_trip_us = NAN, .format = sc_report_format_find("text")};
}

static void free_texts(char **texts, size_t count)
{
  for (size_t i = 0; i < count; ++i)
    free(texts[i]);
  free(texts);
}

void settings_free(struct settings *settings)
{
  free(settings->experts);
  free(settings->tokens);
  free_texts(settings->variants, settings->variants_count);
  sc_config_free(settings->config);
  free(settings->assumed_us);
  for (size_t i = 0; i < settings->analysis.level_count; ++i)
    free((char *)settings->analysis.levels[i].pattern);
  free((void *)settings->analysis.levels);
}

static bool usage(struct sc_error *err, const char *message, const char *value)
{
  sc_error_set(err, SC_ERR_USAGE, "'%.80s' %s", value, message);
  return false;
}

static bool no_memory(struct sc_error *err)
{
  sc_error_set(err, SC_ERR_NOMEM, "out of memory while reading the options");
  return false;
}

static bool number(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct sc_error *err)
{
  uint64_t value;
  if (sc_parse_u64(text, &value) && value >= min && value <= max) {
    *out = value;
    return true;
  }
  sc_error_set(err, SC_ERR_USAGE, "'%.80s' is not a whole number from %llu to %llu", text, (unsigned long long)min,
               (unsigned long long)max);
  return false;
}

/* A later option replaces an earlier one. */
static bool numbers(const char *text, uint64_t max, uint64_t **list, size_t *count, struct sc_error *err)
{
  uint64_t *fresh;
  size_t fresh_count;
  if (sc_parse_u64_list(text, max, &fresh, &fresh_count, err) != SC_OK)
    return false;
  for (size_t i = 0; i < fresh_count; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (fresh[i] == fresh[j]) {
        sc_error_set(err, SC_ERR_USAGE, "%llu stands twice in '%.80s'", (unsigned long long)fresh[i], text);
        free(fresh);
        return false;
      }
    }
  }
  free(*list);
  *list = fresh;
  *count = fresh_count;
  return true;
}

static bool word(const char *text, const char *const *words, const char **out, struct sc_error *err)
{
  struct sc_buf known = {0};
  for (size_t i = 0; words[i]; ++i) {
    if (strcmp(words[i], text) == 0) {
      *out = words[i];
      sc_buf_free(&known);
      return true;
    }
    sc_buf_printf(&known, "%s%s", i ? ", " : "", words[i]);
  }
  sc_error_set(err, SC_ERR_USAGE, "'%.80s' is none of: %s", text, known.failed ? "" : known.data);
  sc_buf_free(&known);
  return false;
}

static bool variants(struct settings *settings, const char *text, struct sc_error *err)
{
  char **list = NULL;
  size_t count = 0, capacity = 0;
  for (const char *at = text;; ++at) {
    size_t length = strcspn(at, ",");
    const char *name = NULL;
    char *item = sc_strndup(at, length);
    bool ok = item && word(item, known_variants, &name, err);
    for (size_t i = 0; ok && i < count; ++i) {
      if (strcmp(list[i], name) == 0)
        ok = usage(err, "stands twice in the list", name);
    }
    char **slot = ok ? sc_array_push(&list, &count, &capacity, sizeof *list) : NULL;
    if (!slot || !(*slot = sc_strdup(name))) {
      if (!item || ok)
        no_memory(err);
      free(item);
      free_texts(list, count);
      return false;
    }
    free(item);
    at += length;
    if (!*at)
      break;
  }
  free_texts(settings->variants, settings->variants_count);
  settings->variants = list;
  settings->variants_count = count;
  return true;
}

static bool device(struct settings *settings, const char *text, struct sc_error *err)
{
  uint64_t ordinal = 0;
  if (strcmp(text, "auto") == 0) {
    settings->device = DEVICE_AUTO;
  } else if (strcmp(text, "sim") == 0) {
    settings->device = DEVICE_SIM;
  } else if (strcmp(text, "cuda") == 0 ||
             (strncmp(text, "cuda:", 5) == 0 && sc_parse_u64(text + 5, &ordinal) && ordinal < 1024)) {
    settings->device = DEVICE_CUDA;
    settings->ordinal = (unsigned)ordinal;
  } else {
    return usage(err, "is none of: auto, cuda, cuda:N, sim", text);
  }
  return true;
}

#define MAX_ROUND_TRIP_US 1e7

static bool round_trip(const char *text, double *out, struct sc_error *err)
{
  double us;
  if (!sc_parse_time_us(text, &us) || us <= 0 || us > MAX_ROUND_TRIP_US)
    return usage(err, "is not a time above 0 and up to 10s with its unit: 26us, 0.1ms", text);
  *out = us;
  return true;
}

static bool assumed(struct settings *settings, const char *text, struct sc_error *err)
{
  double *list = NULL;
  size_t count = 0, capacity = 0;
  for (const char *at = text;; ++at) {
    size_t length = strcspn(at, ",");
    char *item = sc_strndup(at, length);
    double us = 0;
    double *slot = NULL;
    bool ok = item && round_trip(item, &us, err);
    if (ok && !(slot = sc_array_push(&list, &count, &capacity, sizeof *list)))
      ok = no_memory(err);
    else if (!item)
      ok = no_memory(err);
    free(item);
    if (!ok) {
      free(list);
      return false;
    }
    *slot = us;
    for (size_t i = 0; i + 1 < count; ++i) { /* the same one twice would be the same rows twice */
      if (list[i] == us) {
        --count;
        break;
      }
    }
    at += length;
    if (!*at)
      break;
  }
  free(settings->assumed_us);
  settings->assumed_us = list;
  settings->assumed_count = count;
  return true;
}

static bool dtype(struct settings *settings, const char *text, struct sc_error *err)
{
  static const char *const names[] = {"bf16", "fp32", NULL};
  const char *name;
  if (!word(text, names, &name, err))
    return false;
  settings->has_dtype = true;
  settings->dtype = strcmp(name, "bf16") == 0 ? SC_CONFIG_BF16 : SC_CONFIG_FP32;
  return true;
}

static bool format(struct settings *settings, const char *text, struct sc_error *err)
{
  const struct sc_report_format *found = sc_report_format_find(text), *at;
  if (found) {
    settings->format = found;
    settings->analysis.events = found->events;
    return true;
  }
  struct sc_buf known = {0};
  for (size_t i = 0; (at = sc_report_format_at(i)); ++i)
    sc_buf_printf(&known, "%s%s", i ? ", " : "", at->name);
  sc_error_set(err, SC_ERR_USAGE, "'%.80s' is none of: %s", text, known.failed ? "" : known.data);
  sc_buf_free(&known);
  return false;
}

static bool text_value(const char *text, const char **out, struct sc_error *err)
{
  if (!*text)
    return usage(err, "is an empty name", text);
  *out = text;
  return true;
}

/* ---- run and report ----------------------------------------------------------------------------- */

/* "PATTERN=LEVEL", at the last '=': a pattern may hold one. */
static bool range_rule(struct settings *settings, const char *text, struct sc_error *err)
{
  const char *equals = strrchr(text, '=');
  if (!equals || equals == text || !sc_analysis_has_level(equals + 1)) {
    sc_error_set(err, SC_ERR_USAGE, "'%.80s' is not PATTERN=LEVEL with a level of: step, layer, expert, op, run", text);
    return false;
  }
  char *pattern = sc_strndup(text, (size_t)(equals - text));
  struct sc_level_rule *rule = pattern ? sc_array_push(&settings->analysis.levels, &settings->analysis.level_count,
                                                       &settings->rules_capacity, sizeof *rule)
                                       : NULL;
  if (!rule) {
    free(pattern);
    return no_memory(err);
  }
  *rule = (struct sc_level_rule){pattern, equals + 1};
  return true;
}

static bool known_list(const char *text, const char *const *words, const char **out, struct sc_error *err)
{
  for (const char *at = text;; ++at) {
    size_t length = strcspn(at, ",");
    const char *found;
    char *item = sc_strndup(at, length);
    if (!item)
      return no_memory(err);
    bool ok = word(item, words, &found, err);
    free(item);
    if (!ok)
      return false;
    at += length;
    if (!*at)
      break;
  }
  *out = text;
  return true;
}

static bool stacks(const char *text, const char **out, struct sc_error *err)
{
  static const char *const kinds[] = {"python", "native", "none", NULL};
  if (strcmp(text, "none") != 0 && strstr(text, "none"))
    return usage(err, "asks for stacks and for none", text);
  return known_list(text, kinds, out, err);
}

static bool api(const char *text, const char **out, struct sc_error *err)
{
  static const char *const apis[] = {"runtime", "driver", NULL};
  return known_list(text, apis, out, err);
}

static bool max_trace(const char *text, const char **out, struct sc_error *err)
{
  uint64_t bytes;
  if (!sc_parse_size(text, &bytes) || bytes == 0)
    return usage(err, "is not a size such as 64M", text);
  *out = text;
  return true;
}

static bool capture_range(struct settings *settings, const char *text, struct sc_error *err)
{
  if (strcmp(text, "cudaProfilerApi") != 0)
    return usage(err, "is not cudaProfilerApi, the one kind of range there is", text);
  settings->analysis.capture_range = true;
  return true;
}

bool settings_option(void *context, enum cli_option_id id, const char *argument, struct sc_error *err)
{
  struct settings *s = context;
  switch (id) {
  case CLI_EXPERTS: return numbers(argument, SC_CONFIG_MAX_EXPERTS, &s->experts, &s->experts_count, err);
  case CLI_TOKENS: return numbers(argument, SC_CONFIG_MAX_TOKENS, &s->tokens, &s->tokens_count, err);
  case CLI_VARIANTS: return variants(s, argument, err);
  case CLI_LAYERS: return number(argument, 1, SC_CONFIG_MAX_LAYERS, &s->layers, err);
  case CLI_HIDDEN: return number(argument, 1, SC_CONFIG_MAX_WIDTH, &s->hidden, err);
  case CLI_INTERMEDIATE: return number(argument, 1, SC_CONFIG_MAX_WIDTH, &s->intermediate, err);
  case CLI_TOP_K: return number(argument, 1, SC_CONFIG_MAX_EXPERTS, &s->top_k, err);
  case CLI_DTYPE: return dtype(s, argument, err);
  case CLI_ACT_QUANT: return word(argument, known_act_quants, &s->act_quant, err);
  case CLI_NVFP4_PATH: return word(argument, known_paths, &s->nvfp4_path, err);
  case CLI_ROUTING: return word(argument, known_routings, &s->routing, err);
  case CLI_SEED: s->has_seed = true; return number(argument, 0, INT64_MAX, &s->seed, err); /* JSON's integers */
  case CLI_FORWARDS: return number(argument, 1, SC_CONFIG_MAX_FORWARDS, &s->forwards, err);
  case CLI_CONFIG: return text_value(argument, &s->config_name, err);
  case CLI_DEVICE: return device(s, argument, err);
  case CLI_SIM_ROUND_TRIP: return round_trip(argument, &s->sim_round_trip_us, err);
  case CLI_ASSUME_ROUND_TRIP: return assumed(s, argument, err);
  case CLI_PER_EXPERT: s->per_expert = true; return true;
  case CLI_FORMAT: return format(s, argument, err);
  case CLI_OUTPUT:
    if (!text_value(argument, &s->output, err))
      return false;
    if (strcmp(s->output, "-") == 0)
      s->output = NULL;
    return true;
  case CLI_KEEP_TRACES: return text_value(argument, &s->keep_traces, err);
  case CLI_QUIET: s->quiet = true; return true;
  case CLI_WARMUP: return number(argument, 0, UINT32_MAX, &s->analysis.warmup, err);
  case CLI_FROM: return text_value(argument, &s->analysis.from, err);
  case CLI_RANGES: return range_rule(s, argument, err);
  case CLI_CAPTURE_RANGE: return capture_range(s, argument, err);
  case CLI_THREADS: s->threads = true; return true;
  case CLI_STACKS: return stacks(argument, &s->stacks, err);
  case CLI_FOLLOW:
  case CLI_NO_FOLLOW:
    s->follow = id == CLI_FOLLOW;
    s->no_follow = !s->follow;
    return true;
  case CLI_NO_RULER: s->no_ruler = true; return true;
  case CLI_MAX_TRACE: return max_trace(argument, &s->max_trace, err);
  case CLI_API: return api(argument, &s->api, err);
  case CLI_TORCH_MODULES: s->torch_modules = true; return true;
  case CLI_KEEP_GOING: s->keep_going = true; return true;
  default: sc_error_set(err, SC_ERR_INTERNAL, "an option of the table has no handler"); return false;
  }
}

/* ---- configuration ---------------------------------------------------------------------------- */

enum sc_status settings_load_config(struct settings *settings, const char *configs_folder, struct sc_error *err)
{
  const char *name = settings->config_name;
  if (!name)
    return SC_OK;
  if (strchr(name, '/') || sc_match("*.yaml", name) || sc_match("*.yml", name) || access(name, R_OK) == 0)
    return sc_config_read(name, &settings->config, err);
  char *path = sc_asprintf("%s/%s.yaml", configs_folder, name);
  if (!path)
    return sc_error_no_memory(err);
  enum sc_status status =
      access(path, R_OK) == 0
          ? sc_config_read(path, &settings->config, err)
          : sc_error_set(err, SC_ERR_CONFIG,
                         "there is no file '%.80s', and no shape of that name in %s: 'ls' that folder, or "
                         "give the path of a YAML file",
                         name, configs_folder);
  free(path);
  return status;
}

/* ---- the plan --------------------------------------------------------------------------------- */

static const uint64_t default_experts[] = {4, 8, 16}, default_tokens[] = {4096};

static void plan_lists(const struct settings *s, const struct sc_config_run *run, struct plan *plan)
{
  plan->experts = default_experts;
  plan->experts_count = SC_COUNTOF(default_experts);
  if (plan->model) {
    plan->experts = &plan->model->experts;
    plan->experts_count = 1;
  }
  if (run && run->experts) {
    plan->experts = run->experts;
    plan->experts_count = run->experts_count;
  }
  if (s->experts) {
    plan->experts = s->experts;
    plan->experts_count = s->experts_count;
  }
  plan->tokens = s->tokens ? s->tokens : run && run->tokens ? run->tokens : default_tokens;
  plan->tokens_count = s->tokens            ? s->tokens_count
                       : run && run->tokens ? run->tokens_count
                                            : SC_COUNTOF(default_tokens);
  plan->variants = (const char *const *)(s->variants            ? s->variants
                                         : run && run->variants ? run->variants
                                                                : (char **)known_variants);
  plan->variants_count = s->variants            ? s->variants_count
                         : run && run->variants ? run->variants_count
                                                : SC_COUNTOF(known_variants) - 1;
}

/* The first that is not 0. */
static uint64_t first_of(uint64_t a, uint64_t b, uint64_t c) { return a ? a : b ? b : c; }

static void plan_numbers(const struct settings *s, const struct sc_config_run *run, bool simulated, struct plan *plan)
{
  const struct sc_config_model *model = plan->model;
  plan->hidden = first_of(s->hidden, model ? model->hidden : 0, 512);
  plan->intermediate = first_of(s->intermediate, model ? model->intermediate : 0, 1408);
  plan->top_k = first_of(s->top_k, model ? model->top_k : 0, 1);
  plan->forwards = first_of(s->forwards, run ? run->forwards : 0, simulated ? 1 : 3);
  plan->layers_given = s->layers || (run && run->layers);
  plan->layers = first_of(s->layers, run ? run->layers : 0, model ? model->moe_layers : 8);
  plan->model_layers = model ? model->moe_layers : plan->layers;
  plan->seed = s->has_seed ? s->seed : run && run->has_seed ? run->seed : 0;
  plan->dtype = s->has_dtype ? s->dtype : run && run->has_dtype ? run->dtype : model ? model->dtype : SC_CONFIG_FP32;
  plan->routing = s->routing ? s->routing : run && run->routing ? run->routing : "router";
  plan->activation = model ? model->activation : "silu";
  plan->gated = model ? model->gated : true;
  plan->renormalize = model ? model->router.renormalize : true;
  plan->act_quant = s->act_quant ? s->act_quant : known_act_quants[0];
  plan->nvfp4_path = s->nvfp4_path ? s->nvfp4_path : known_paths[0];
  /* Without a model there is no checkpoint whose layout could be guessed wrong. */
  const enum sc_config_layout layout = model ? model->w13_layout : SC_CONFIG_LAYOUT_PACKED;
  plan->w13_layout = layout == SC_CONFIG_LAYOUT_NONE          ? NULL
                     : layout == SC_CONFIG_LAYOUT_INTERLEAVED ? "interleaved"
                                                              : "packed";
  plan->biases = model && model->biases;
  if (model) {
    plan->alpha = model->alpha;
    plan->beta = model->beta;
    plan->limit = model->limit;
  }
}

static enum sc_status check_plan(const struct settings *s, const struct plan *plan, struct sc_error *err)
{
  for (size_t i = 0; i < plan->experts_count; ++i) {
    if (plan->top_k > plan->experts[i])
      return sc_error_set(err, SC_ERR_USAGE,
                          "top-k %llu is more than %llu experts: give a smaller --top-k or larger --experts",
                          (unsigned long long)plan->top_k, (unsigned long long)plan->experts[i]);
  }
  if (plan->layers > plan->model_layers)
    return sc_error_set(err, SC_ERR_USAGE, "%llu layers were asked for, but %s has %llu MoE layers",
                        (unsigned long long)plan->layers, plan->model->name, (unsigned long long)plan->model_layers);
  if (s->act_quant && !plan_has_variant(plan, SETTINGS_FUSED))
    return sc_error_set(err, SC_ERR_USAGE, "--act-quant is an option of fused-nvfp4, which is not among the variants");
  if (s->nvfp4_path && !plan_has_variant(plan, SETTINGS_FUSED))
    return sc_error_set(err, SC_ERR_USAGE, "--nvfp4-path is an option of fused-nvfp4, which is not among the variants");
  return SC_OK;
}

enum sc_status settings_plan(const struct settings *s, bool simulated, struct plan *out, struct sc_error *err)
{
  const struct sc_config_run *run = s->config && s->config->run.set ? &s->config->run : NULL;
  struct plan plan = {.model = s->config && s->config->model.set ? &s->config->model : NULL};
  plan_lists(s, run, &plan);
  plan_numbers(s, run, simulated, &plan);
  enum sc_status status = check_plan(s, &plan, err);
  if (status == SC_OK)
    *out = plan;
  return status;
}

bool plan_has_variant(const struct plan *plan, const char *name)
{
  for (size_t i = 0; i < plan->variants_count; ++i) {
    if (strcmp(plan->variants[i], name) == 0)
      return true;
  }
  return false;
}

/* The point of the grid that needs most. */
static bool largest_point(const struct plan *plan, struct sc_config_memory *out)
{
  struct sc_config_memory most = {0, 0};
  for (size_t e = 0; e < plan->experts_count; ++e) {
    for (size_t t = 0; t < plan->tokens_count; ++t) {
      struct sc_config_memory memory;
      const struct sc_config_shape shape = {.hidden = plan->hidden,
                                            .intermediate = plan->intermediate,
                                            .experts = plan->experts[e],
                                            .top_k = plan->top_k,
                                            .tokens = plan->tokens[t],
                                            .dtype = plan->dtype,
                                            .gated = plan->gated,
                                            .nvfp4 = plan_has_variant(plan, SETTINGS_FUSED),
                                            .nvfp4_biases = plan->biases};
      if (!sc_config_memory(&shape, &memory))
        return false;
      if (memory.layer_bytes > most.layer_bytes)
        most.layer_bytes = memory.layer_bytes;
      if (memory.fixed_bytes > most.fixed_bytes)
        most.fixed_bytes = memory.fixed_bytes;
    }
  }
  *out = most;
  return true;
}

static double gib(uint64_t bytes) { return (double)bytes / (1024.0 * 1024 * 1024); }

enum sc_status plan_fit(struct plan *plan, uint64_t memory_bytes, const char *whose, struct sc_error *err)
{
  struct sc_config_memory need;
  const uint64_t usable = memory_bytes / 10 * 9; /* the CUDA context, cuBLAS workspaces and fragments take their part */
  if (!largest_point(plan, &need))
    return sc_error_set(err, SC_ERR_LIMIT, "this shape needs more memory than 64 bits can count: give smaller sizes");
  uint64_t fit = sc_config_layers_that_fit(&need, plan->layers, usable);
  if (fit == plan->layers)
    return SC_OK;
  if (fit == 0)
    return sc_error_set(
        err, SC_ERR_LIMIT,
        "one layer of this shape needs %.3g GiB and its activations %.3g GiB, but %s has %.3g GiB: give "
        "fewer --experts or --tokens, or --dtype bf16",
        gib(need.layer_bytes), gib(need.fixed_bytes), whose, gib(memory_bytes));
  if (plan->layers_given || !plan->model)
    return sc_error_set(err, SC_ERR_LIMIT,
                        "%llu layers of this shape need %.3g GiB, but %s has %.3g GiB: %llu layers fit (--layers %llu)",
                        (unsigned long long)plan->layers,
                        gib(need.layer_bytes) * (double)plan->layers + gib(need.fixed_bytes), whose, gib(memory_bytes),
                        (unsigned long long)fit, (unsigned long long)fit);
  plan->layers = fit;
  return SC_OK;
}
