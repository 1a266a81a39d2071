/* SPDX-License-Identifier: Apache-2.0
 * Shapes and runs: the schema as tables of fields, and the checks that need several fields at once. */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "config/fields.h"
#include "config/tables.h"

#define MODEL(member) offsetof(struct sc_config, model.member)
#define RUN(member) offsetof(struct sc_config, run.member)

static const char *const dtype_words[] = {[SC_CONFIG_BF16] = "bf16", [SC_CONFIG_FP32] = "fp32", NULL};
static const char *const layout_words[] = {[SC_CONFIG_LAYOUT_NONE] = "none",
                                           [SC_CONFIG_LAYOUT_PACKED] = "packed",
                                           [SC_CONFIG_LAYOUT_INTERLEAVED] = "interleaved",
                                           NULL};
static const char *const scoring_words[] = {[SC_CONFIG_SOFTMAX] = "softmax", [SC_CONFIG_SIGMOID] = "sigmoid", NULL};
static const char *const activation_words[] = {"silu", "swigluoai", "swigluoai_uninterleave", "relu2_no_mul", NULL};
static const char *const routing_words[] = {"router", "uniform", "skewed", "one-expert", NULL};
const char *const config_variant_words[] = {"masked", "sorted", "fused-nvfp4", NULL};

/* The tables end with a NULL key. */
static const struct field router_fields[] = {
    {.key = "scoring",
     .kind = FIELD_WORD,
     .required = true,
     .offset = MODEL(router.scoring),
     .extra = NO_EXTRA,
     .words = scoring_words},
    {.key = "renormalize",
     .kind = FIELD_BOOL,
     .required = true,
     .offset = MODEL(router.renormalize),
     .extra = NO_EXTRA},
    {.key = "correction_bias", .kind = FIELD_BOOL, .offset = MODEL(router.correction_bias), .extra = NO_EXTRA},
    {.key = "groups",
     .kind = FIELD_NUMBER,
     .offset = MODEL(router.groups),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_EXPERTS},
    {.key = "groups_chosen",
     .kind = FIELD_NUMBER,
     .offset = MODEL(router.groups_chosen),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_EXPERTS},
    {.key = "scale", .kind = FIELD_REAL, .offset = MODEL(router.scale), .extra = NO_EXTRA},
    {.key = NULL},
};

static const struct field shared_fields[] = {
    {.key = "count",
     .kind = FIELD_NUMBER,
     .required = true,
     .offset = MODEL(shared_experts.count),
     .extra = NO_EXTRA,
     .min = 1,
     .max = 64},
    {.key = "intermediate",
     .kind = FIELD_NUMBER,
     .required = true,
     .offset = MODEL(shared_experts.intermediate),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_WIDTH},
    {.key = NULL},
};

static const struct field model_fields[] = {
    {.key = "name", .kind = FIELD_TEXT, .required = true, .offset = MODEL(name), .extra = NO_EXTRA},
    {.key = "source", .kind = FIELD_TEXT, .offset = MODEL(source), .extra = NO_EXTRA},
    {.key = "notes", .kind = FIELD_TEXT, .offset = MODEL(notes), .extra = NO_EXTRA},
    {.key = "hidden",
     .kind = FIELD_NUMBER,
     .required = true,
     .offset = MODEL(hidden),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_WIDTH},
    {.key = "intermediate",
     .kind = FIELD_NUMBER,
     .required = true,
     .offset = MODEL(intermediate),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_WIDTH},
    {.key = "experts",
     .kind = FIELD_NUMBER,
     .required = true,
     .offset = MODEL(experts),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_EXPERTS},
    {.key = "top_k",
     .kind = FIELD_NUMBER,
     .required = true,
     .offset = MODEL(top_k),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_EXPERTS},
    {.key = "layers",
     .kind = FIELD_NUMBER,
     .required = true,
     .offset = MODEL(layers),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_LAYERS},
    {.key = "moe_layers",
     .kind = FIELD_NUMBER,
     .offset = MODEL(moe_layers),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_LAYERS},
    {.key = "dtype",
     .kind = FIELD_WORD,
     .required = true,
     .offset = MODEL(dtype),
     .extra = NO_EXTRA,
     .words = dtype_words},
    {.key = "activation",
     .kind = FIELD_NAME,
     .required = true,
     .offset = MODEL(activation),
     .extra = NO_EXTRA,
     .words = activation_words},
    {.key = "alpha", .kind = FIELD_REAL, .offset = MODEL(alpha), .extra = NO_EXTRA},
    {.key = "beta", .kind = FIELD_REAL, .offset = MODEL(beta), .extra = NO_EXTRA},
    {.key = "limit", .kind = FIELD_REAL, .offset = MODEL(limit), .extra = NO_EXTRA},
    /* "none" is index 0 and no word of the file: a shape without a gate leaves the key out. */
    {.key = "w13_layout",
     .kind = FIELD_WORD,
     .offset = MODEL(w13_layout),
     .extra = NO_EXTRA,
     .min = SC_CONFIG_LAYOUT_PACKED,
     .words = layout_words},
    {.key = "biases", .kind = FIELD_BOOL, .offset = MODEL(biases), .extra = NO_EXTRA},
    {.key = "router", .kind = FIELD_SECTION, .required = true, .extra = NO_EXTRA, .section = router_fields},
    {.key = "shared_experts", .kind = FIELD_SECTION, .extra = NO_EXTRA, .section = shared_fields},
    {.key = NULL},
};

const struct field config_run_fields[] = {
    {.key = "experts",
     .kind = FIELD_NUMBERS,
     .offset = RUN(experts),
     .extra = RUN(experts_count),
     .min = 1,
     .max = SC_CONFIG_MAX_EXPERTS},
    {.key = "tokens",
     .kind = FIELD_NUMBERS,
     .offset = RUN(tokens),
     .extra = RUN(tokens_count),
     .min = 1,
     .max = SC_CONFIG_MAX_TOKENS},
    {.key = "variants",
     .kind = FIELD_NAMES,
     .offset = RUN(variants),
     .extra = RUN(variants_count),
     .words = config_variant_words},
    {.key = "layers",
     .kind = FIELD_NUMBER,
     .offset = RUN(layers),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_LAYERS},
    {.key = "forwards",
     .kind = FIELD_NUMBER,
     .offset = RUN(forwards),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_FORWARDS},
    {.key = "routing", .kind = FIELD_NAME, .offset = RUN(routing), .extra = NO_EXTRA, .words = routing_words},
    {.key = "seed", .kind = FIELD_NUMBER, .offset = RUN(seed), .extra = RUN(has_seed), .max = INT64_MAX},
    {.key = "dtype", .kind = FIELD_WORD, .offset = RUN(dtype), .extra = RUN(has_dtype), .words = dtype_words},
    {.key = NULL},
};

static const struct field file_fields[] = {
    {.key = "model", .kind = FIELD_SECTION, .extra = offsetof(struct sc_config, model.set), .section = model_fields},
    {.key = "run", .kind = FIELD_SECTION, .extra = offsetof(struct sc_config, run.set), .section = config_run_fields},
    {.key = NULL},
};

const char *sc_config_dtype_name(enum sc_config_dtype dtype) { return dtype_words[dtype]; }

_Static_assert(sizeof(enum sc_config_dtype) == sizeof(unsigned), "FIELD_WORD");
_Static_assert(sizeof(enum sc_config_layout) == sizeof(unsigned), "FIELD_WORD");
_Static_assert(sizeof(enum sc_config_scoring) == sizeof(unsigned), "FIELD_WORD");

static enum sc_status check_activation(const struct target *target, const struct sc_config_model *model,
                                       const struct node *node)
{
  const char *name = target->name;
  struct sc_error *err = target->err;
  if (model->gated && model->w13_layout == SC_CONFIG_LAYOUT_NONE)
    return node_error(node->key, name, err,
                      "section 'model' lacks 'w13_layout', which %s needs: packed (all of gate, then all of up) or "
                      "interleaved (gate0, up0, gate1, ...), as the checkpoint has it",
                      model->activation);
  if (!model->gated && model->w13_layout != SC_CONFIG_LAYOUT_NONE)
    return node_error(fields_find(node, "w13_layout"), name, err, "%s has no gate: remove 'w13_layout'",
                      model->activation);
  bool plain = strcmp(model->activation, "silu") == 0;
  if ((plain || !model->gated) && (model->alpha.set || model->beta.set))
    return node_error(fields_find(node, model->alpha.set ? "alpha" : "beta"), name, err,
                      "%s takes no alpha and no beta: remove it", model->activation);
  if (!model->gated && model->limit.set)
    return node_error(fields_find(node, "limit"), name, err, "%s takes no limit: remove it", model->activation);
  if (model->limit.set && model->limit.value <= 0)
    return node_error(fields_find(node, "limit"), name, err, "'limit' must be above 0, or null for none");
  return SC_OK;
}

static enum sc_status check_model(const struct target *target, struct sc_config_model *model, const struct node *node)
{
  if (!model->moe_layers)
    model->moe_layers = model->layers;
  model->gated = strcmp(model->activation, "relu2_no_mul") != 0;
  if (model->top_k > model->experts)
    return node_error(fields_find(node, "top_k"), target->name, target->err,
                      "'top_k' (%llu) is more than 'experts' (%llu)", (unsigned long long)model->top_k,
                      (unsigned long long)model->experts);
  if (model->moe_layers > model->layers)
    return node_error(fields_find(node, "moe_layers"), target->name, target->err,
                      "'moe_layers' (%llu) is more than 'layers' (%llu)", (unsigned long long)model->moe_layers,
                      (unsigned long long)model->layers);
  const struct node *router = fields_find(node, "router");
  if (!model->router.groups != !model->router.groups_chosen)
    return node_error(router, target->name, target->err, "'groups' and 'groups_chosen' go together: give both or none");
  if (model->router.groups &&
      (model->experts % model->router.groups || model->router.groups_chosen > model->router.groups))
    return node_error(fields_find(router, "groups"), target->name, target->err,
                      "'groups' must divide 'experts' (%llu) and be at least 'groups_chosen' (%llu)",
                      (unsigned long long)model->experts, (unsigned long long)model->router.groups_chosen);
  return check_activation(target, model, node);
}

static enum sc_status read_root(const struct target *target, struct sc_config *config, const struct node *root)
{
  enum sc_status status = fields_read(target, file_fields, root, NULL);
  if (status == SC_OK && config->model.set)
    status = check_model(target, &config->model, fields_find(root, "model"));
  return status;
}

enum sc_status sc_config_read_memory(const char *text, size_t size, const char *name, struct sc_config **out,
                                     struct sc_error *err)
{
  struct node *root = NULL;
  struct sc_config *config = NULL;
  enum sc_status status = node_parse(text, size, name, &root, err);
  if (status != SC_OK)
    goto cleanup;
  config = calloc(1, sizeof *config);
  if (!config) {
    status = sc_error_set(err, SC_ERR_NOMEM, "%s: out of memory", name);
    goto cleanup;
  }
  struct target target = {(char *)config, name, err};
  status = read_root(&target, config, root);
  if (status != SC_OK)
    goto cleanup;
  *out = config;
  config = NULL;
cleanup:
  sc_config_free(config);
  node_free(root);
  return status;
}

enum sc_status sc_config_read(const char *path, struct sc_config **out, struct sc_error *err)
{
  struct sc_buf text = {0};
  enum sc_status status = fields_read_file(path, &text, err);
  if (status == SC_OK)
    status = sc_config_read_memory(text.data ? text.data : "", text.len, path, out, err);
  sc_buf_free(&text);
  return status;
}

void config_release(struct sc_config *config)
{
  free(config->model.name);
  free(config->model.source);
  free(config->model.activation);
  free(config->model.notes);
  free(config->run.experts);
  free(config->run.tokens);
  for (size_t i = 0; config->run.variants && i < config->run.variants_count; ++i)
    free(config->run.variants[i]);
  free(config->run.variants);
  free(config->run.routing);
}

void sc_config_free(struct sc_config *config)
{
  if (!config)
    return;
  config_release(config);
  free(config);
}
