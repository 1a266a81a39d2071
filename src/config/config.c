/* SPDX-License-Identifier: Apache-2.0
 * The schema as tables of fields, one reader for all of them, and the checks that need several fields at once. */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/node.h"

#define MAX_FILE_BYTES (1u << 20)

enum field_kind {
  FIELD_NUMBER,  /* uint64_t */
  FIELD_REAL,    /* struct sc_config_real; null counts as absent */
  FIELD_TEXT,    /* char * */
  FIELD_WORD,    /* an enum: the index in words */
  FIELD_NAME,    /* char *: one of words */
  FIELD_BOOL,    /* bool */
  FIELD_NUMBERS, /* uint64_t * and its size_t count at count_offset */
  FIELD_NAMES,   /* char ** of words and its count */
  FIELD_SECTION, /* a mapping read with `section` at the same base */
};

struct field {
  const char *key;
  enum field_kind kind;
  bool required;
  size_t offset;
  size_t extra;      /* offset of the count of a list, of the bool that says that it was given (SIZE_MAX: none) */
  uint64_t min, max; /* numbers */
  const char *const *words; /* NULL-terminated */
  const struct field *section;
};

#define NO_EXTRA SIZE_MAX
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
static const char *const variant_words[] = {"masked", "sorted", "fused-nvfp4", NULL};

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

static const struct field run_fields[] = {
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
     .words = variant_words},
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
    {.key = "run", .kind = FIELD_SECTION, .extra = offsetof(struct sc_config, run.set), .section = run_fields},
    {.key = NULL},
};

const char *sc_config_dtype_name(enum sc_config_dtype dtype) { return dtype_words[dtype]; }

/* One file that is being read: where the values go and how messages name the file. */
struct target {
  char *base; /* struct sc_config */
  const char *name;
  struct sc_error *err;
};

static enum sc_status out_of_memory(const struct target *target)
{
  return sc_error_set(target->err, SC_ERR_NOMEM, "%s: out of memory", target->name);
}

/* "softmax or sigmoid", "a, b or c", from words[first]. */
static void list_words(const char *const *words, size_t first, struct sc_buf *buf)
{
  for (size_t i = first; words[i]; ++i) {
    if (i > first)
      sc_buf_puts(buf, words[i + 1] ? ", " : " or ");
    sc_buf_puts(buf, words[i]);
  }
}

static bool is_null(const struct node *node)
{
  return node->kind == NODE_SCALAR && !node->quoted &&
         (node->text[0] == '\0' || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

static const char *what_it_is(const struct node *node)
{
  if (node->kind == NODE_MAPPING)
    return "a section";
  if (node->kind == NODE_SEQUENCE)
    return "a list";
  return is_null(node) ? "nothing" : node->quoted ? "quoted text" : node->text;
}

static enum sc_status wrong_type(const struct target *target, const struct node *node, const char *key,
                                 const char *wanted)
{
  return node_error(node, target->name, target->err, "'%s' must be %s, not %.80s", key, wanted, what_it_is(node));
}

static enum sc_status read_number(const struct target *target, const struct field *field, const struct node *node,
                                  uint64_t *out)
{
  char wanted[96];
  snprintf(wanted, sizeof wanted, "a whole number from %llu to %llu", (unsigned long long)field->min,
           (unsigned long long)field->max);
  uint64_t value;
  if (node->kind != NODE_SCALAR || node->quoted || !sc_parse_u64(node->text, &value) || value < field->min ||
      value > field->max)
    return wrong_type(target, node, field->key, wanted);
  *out = value;
  return SC_OK;
}

static enum sc_status read_real(const struct target *target, const struct field *field, const struct node *node)
{
  struct sc_config_real real = {0};
  if (!is_null(node)) {
    if (node->kind != NODE_SCALAR || node->quoted || !sc_parse_double(node->text, &real.value))
      return wrong_type(target, node, field->key, "a number or null");
    real.set = true;
  }
  memcpy(target->base + field->offset, &real, sizeof real);
  return SC_OK;
}

static enum sc_status read_text(const struct target *target, const struct field *field, const struct node *node)
{
  if (node->kind != NODE_SCALAR || is_null(node) || !node->text[0])
    return wrong_type(target, node, field->key, "text");
  char *text = sc_strdup(node->text);
  if (!text)
    return out_of_memory(target);
  memcpy(target->base + field->offset, &text, sizeof text);
  return SC_OK;
}

/* The index of the node's text in the field's words. */
static enum sc_status read_word(const struct target *target, const struct field *field, const struct node *node,
                                size_t *index)
{
  for (size_t i = field->min; node->kind == NODE_SCALAR && field->words[i]; ++i) {
    if (strcmp(node->text, field->words[i]) == 0) {
      *index = i;
      return SC_OK;
    }
  }
  struct sc_buf wanted = {0};
  list_words(field->words, field->min, &wanted);
  enum sc_status status = wanted.failed ? out_of_memory(target) : wrong_type(target, node, field->key, wanted.data);
  sc_buf_free(&wanted);
  return status;
}

static enum sc_status read_enum(const struct target *target, const struct field *field, const struct node *node)
{
  size_t index;
  enum sc_status status = read_word(target, field, node, &index);
  if (status != SC_OK)
    return status;
  unsigned value = (unsigned)index; /* every enum of the structs has this size: see the assertions below */
  memcpy(target->base + field->offset, &value, sizeof value);
  return SC_OK;
}
_Static_assert(sizeof(enum sc_config_dtype) == sizeof(unsigned), "FIELD_WORD");
_Static_assert(sizeof(enum sc_config_layout) == sizeof(unsigned), "FIELD_WORD");
_Static_assert(sizeof(enum sc_config_scoring) == sizeof(unsigned), "FIELD_WORD");

static enum sc_status read_name(const struct target *target, const struct field *field, const struct node *node)
{
  size_t index;
  enum sc_status status = read_word(target, field, node, &index);
  return status == SC_OK ? read_text(target, field, node) : status;
}

static enum sc_status read_bool(const struct target *target, const struct field *field, const struct node *node)
{
  bool yes = node->kind == NODE_SCALAR && !node->quoted && strcmp(node->text, "true") == 0;
  if (!yes && (node->kind != NODE_SCALAR || node->quoted || strcmp(node->text, "false") != 0))
    return wrong_type(target, node, field->key, "true or false");
  memcpy(target->base + field->offset, &yes, sizeof yes);
  return SC_OK;
}

/* A list of at least one element. What was stored before a failure is freed with the whole configuration. */
static enum sc_status read_list(const struct target *target, const struct field *field, const struct node *node)
{
  bool names = field->kind == FIELD_NAMES;
  if (node->kind != NODE_SEQUENCE || node->count == 0)
    return wrong_type(target, node, field->key,
                      names ? "a list of names, like [masked, sorted]" : "a list of numbers, like [4, 8, 16]");
  void *list = sc_calloc_array(node->count, names ? sizeof(char *) : sizeof(uint64_t));
  if (!list)
    return out_of_memory(target);
  memcpy(target->base + field->offset, &list, sizeof list);
  memcpy(target->base + field->extra, &node->count, sizeof node->count);
  size_t i = 0;
  for (const struct node *item = node->first; item; item = item->next, ++i) {
    size_t index = 0;
    enum sc_status status =
        names ? read_word(target, field, item, &index) : read_number(target, field, item, (uint64_t *)list + i);
    if (status != SC_OK)
      return status;
    if (names && !(((char **)list)[i] = sc_strdup(field->words[index])))
      return out_of_memory(target);
  }
  return SC_OK;
}

static enum sc_status read_section(const struct target *target, const struct field *fields, const struct node *node,
                                   const char *name);

static enum sc_status read_field(const struct target *target, const struct field *field, const struct node *node)
{
  enum sc_status status = SC_OK;
  switch (field->kind) {
  case FIELD_NUMBER: {
    uint64_t value = 0;
    status = read_number(target, field, node, &value);
    if (status == SC_OK)
      memcpy(target->base + field->offset, &value, sizeof value);
    break;
  }
  case FIELD_REAL: status = read_real(target, field, node); break;
  case FIELD_TEXT: status = read_text(target, field, node); break;
  case FIELD_WORD: status = read_enum(target, field, node); break;
  case FIELD_NAME: status = read_name(target, field, node); break;
  case FIELD_BOOL: status = read_bool(target, field, node); break;
  case FIELD_NUMBERS:
  case FIELD_NAMES: return read_list(target, field, node);
  case FIELD_SECTION: status = read_section(target, field->section, node, field->key); break;
  }
  if (status == SC_OK && field->extra != NO_EXTRA)
    *(bool *)(target->base + field->extra) = true;
  return status;
}

static enum sc_status unknown_key(const struct target *target, const struct field *fields, const struct node *key,
                                  const char *section)
{
  struct sc_buf known = {0};
  for (const struct field *field = fields; field->key; ++field)
    sc_buf_printf(&known, "%s%s", field == fields ? "" : ", ", field->key);
  enum sc_status status =
      known.failed ? out_of_memory(target)
                   : node_error(key, target->name, target->err, "'%.80s' is not known %s%s; known here: %s", key->text,
                                section ? "in section " : "at the top level", section ? section : "", known.data);
  sc_buf_free(&known);
  return status;
}

/* section is the name for messages, NULL for the file itself. */
static enum sc_status read_section(const struct target *target, const struct field *fields, const struct node *node,
                                   const char *section)
{
  if (node->kind != NODE_MAPPING)
    return wrong_type(target, node, section, "a section (indented 'key: value' lines)");
  for (const struct node *child = node->first; child; child = child->next) {
    const struct field *field = fields;
    while (field->key && strcmp(field->key, child->key->text) != 0)
      ++field;
    enum sc_status status =
        field->key ? read_field(target, field, child) : unknown_key(target, fields, child->key, section);
    if (status != SC_OK)
      return status;
  }
  for (const struct field *field = fields; field->key; ++field) {
    const struct node *child = node->first;
    while (child && strcmp(child->key->text, field->key) != 0)
      child = child->next;
    if (field->required && !child)
      return node_error(node->key ? node->key : node, target->name, target->err, "section '%s' lacks '%s': add it",
                        section, field->key);
  }
  return SC_OK;
}

/* The position of a key in a section, for checks that come after reading; the section itself if it is not there. */
static const struct node *find(const struct node *section, const char *key)
{
  const struct node *child = section->first;
  while (child && strcmp(child->key->text, key) != 0)
    child = child->next;
  return child ? child : section;
}

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
    return node_error(find(node, "w13_layout"), name, err, "%s has no gate: remove 'w13_layout'", model->activation);
  bool plain = strcmp(model->activation, "silu") == 0;
  if ((plain || !model->gated) && (model->alpha.set || model->beta.set))
    return node_error(find(node, model->alpha.set ? "alpha" : "beta"), name, err,
                      "%s takes no alpha and no beta: remove it", model->activation);
  if (!model->gated && model->limit.set)
    return node_error(find(node, "limit"), name, err, "%s takes no limit: remove it", model->activation);
  if (model->limit.set && model->limit.value <= 0)
    return node_error(find(node, "limit"), name, err, "'limit' must be above 0, or null for none");
  return SC_OK;
}

static enum sc_status check_model(const struct target *target, struct sc_config_model *model, const struct node *node)
{
  if (!model->moe_layers)
    model->moe_layers = model->layers;
  model->gated = strcmp(model->activation, "relu2_no_mul") != 0;
  if (model->top_k > model->experts)
    return node_error(find(node, "top_k"), target->name, target->err, "'top_k' (%llu) is more than 'experts' (%llu)",
                      (unsigned long long)model->top_k, (unsigned long long)model->experts);
  if (model->moe_layers > model->layers)
    return node_error(find(node, "moe_layers"), target->name, target->err,
                      "'moe_layers' (%llu) is more than 'layers' (%llu)", (unsigned long long)model->moe_layers,
                      (unsigned long long)model->layers);
  const struct node *router = find(node, "router");
  if (!model->router.groups != !model->router.groups_chosen)
    return node_error(router, target->name, target->err, "'groups' and 'groups_chosen' go together: give both or none");
  if (model->router.groups &&
      (model->experts % model->router.groups || model->router.groups_chosen > model->router.groups))
    return node_error(find(router, "groups"), target->name, target->err,
                      "'groups' must divide 'experts' (%llu) and be at least 'groups_chosen' (%llu)",
                      (unsigned long long)model->experts, (unsigned long long)model->router.groups_chosen);
  return check_activation(target, model, node);
}

static enum sc_status read_root(const struct target *target, struct sc_config *config, const struct node *root)
{
  enum sc_status status = read_section(target, file_fields, root, NULL);
  if (status == SC_OK && config->model.set)
    status = check_model(target, &config->model, find(root, "model"));
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
  enum sc_status status = SC_OK;
  FILE *file = fopen(path, "re");
  if (!file)
    return sc_error_set(err, SC_ERR_IO, "cannot open configuration '%s': %s", path, strerror(errno));
  char piece[4096];
  size_t got;
  while ((got = fread(piece, 1, sizeof piece, file)) > 0 && text.len <= MAX_FILE_BYTES)
    sc_buf_append(&text, piece, got);
  if (ferror(file))
    status = sc_error_set(err, SC_ERR_IO, "cannot read configuration '%s': %s", path, strerror(errno));
  else if (text.failed)
    status = sc_error_set(err, SC_ERR_NOMEM, "out of memory while reading configuration '%s'", path);
  else if (text.len > MAX_FILE_BYTES)
    status = sc_error_set(err, SC_ERR_CONFIG, "%s: larger than 1 MiB: this is no configuration of synccount", path);
  else
    status = sc_config_read_memory(text.data ? text.data : "", text.len, path, out, err);
  sc_buf_free(&text);
  fclose(file);
  return status;
}

void sc_config_free(struct sc_config *config)
{
  if (!config)
    return;
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
  free(config);
}
