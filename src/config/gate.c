/* SPDX-License-Identifier: Apache-2.0
 * Gates: a source, expectations and allowed exceptions. */
#include <stdlib.h>
#include <string.h>

#include "config/tables.h"

#define GATE_VERSION 1

#define GATE(member) offsetof(struct sc_config_gate, member)
#define EXPECT(member) offsetof(struct sc_config_expectation, member)
#define ALLOW(member) offsetof(struct sc_config_exception, member)
#define TEXT_OF(macro, name, member)                                              \
  {                                                                               \
    .key = (name), .kind = FIELD_TEXT, .offset = macro(member), .extra = NO_EXTRA \
  }
#define TEXTS_OF(macro, name, member)                                                           \
  {                                                                                             \
    .key = (name), .kind = FIELD_TEXTS, .offset = macro(member), .extra = macro(member##_count) \
  }

_Static_assert(offsetof(struct sc_config_gate, probe) == 0, "config_run_fields has the offsets of struct sc_config");
_Static_assert(offsetof(struct sc_config_expectation, line) == offsetof(struct item_place, line), "FIELD_ITEMS");
_Static_assert(offsetof(struct sc_config_exception, column) == offsetof(struct item_place, column), "FIELD_ITEMS");

/* As gate and analysis have them, which config does not see; a test of the gate's holds them together. */
static const char *const class_words[] = {"explicit", "copy", "pageable", "implicit", NULL};
static const char *const level_words[] = {"run", "step", "layer", "expert", "op", NULL};
static const char *const measure_words[] = {"syncs_per_layer",
                                            "syncs_per_forward",
                                            "syncs_per_occurrence",
                                            "syncs_per_step",
                                            "syncs",
                                            "wait",
                                            "floor",
                                            "poll_waits",
                                            NULL};

static const struct field probe_fields[] = {
    TEXT_OF(GATE, "model", model),
    TEXT_OF(GATE, "device", device),
    {.key = "hidden",
     .kind = FIELD_NUMBER,
     .offset = GATE(hidden),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_WIDTH},
    {.key = "intermediate",
     .kind = FIELD_NUMBER,
     .offset = GATE(intermediate),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_WIDTH},
    {.key = "top_k",
     .kind = FIELD_NUMBER,
     .offset = GATE(top_k),
     .extra = NO_EXTRA,
     .min = 1,
     .max = SC_CONFIG_MAX_EXPERTS},
    {.key = NULL, .section = config_run_fields},
};

static const struct field source_fields[] = {
    {.key = "probe", .kind = FIELD_SECTION, .extra = GATE(has_probe), .section = probe_fields},
    TEXTS_OF(GATE, "command", command),
    TEXTS_OF(GATE, "traces", traces),
    TEXTS_OF(GATE, "ranges", ranges),
    {.key = "warmup", .kind = FIELD_NUMBER, .offset = GATE(warmup), .extra = NO_EXTRA, .max = UINT32_MAX},
    TEXT_OF(GATE, "from", from),
    {.key = "capture_range", .kind = FIELD_BOOL, .offset = GATE(capture_range), .extra = NO_EXTRA},
    TEXT_OF(GATE, "stacks", stacks),
    TEXT_OF(GATE, "api", api),
    {.key = "torch_modules", .kind = FIELD_BOOL, .offset = GATE(torch_modules), .extra = NO_EXTRA},
    {.key = "follow", .kind = FIELD_BOOL, .offset = GATE(follow), .extra = GATE(has_follow)},
    {.key = NULL},
};

static const struct field expect_fields[] = {
    TEXT_OF(EXPECT, "expect", expect),
    {.key = "variant", .kind = FIELD_NAME, .offset = EXPECT(variant), .extra = NO_EXTRA, .words = config_variant_words},
    TEXT_OF(EXPECT, "process", process),
    TEXT_OF(EXPECT, "rank", rank),
    TEXT_OF(EXPECT, "thread", thread),
    TEXT_OF(EXPECT, "range", range),
    {.key = "level", .kind = FIELD_NAME, .offset = EXPECT(level), .extra = NO_EXTRA, .words = level_words},
    TEXT_OF(EXPECT, "site", site),
    {.key = "class", .kind = FIELD_NAME, .offset = EXPECT(cls), .extra = NO_EXTRA, .words = class_words},
    {.key = "measure", .kind = FIELD_NAME, .offset = EXPECT(measure), .extra = NO_EXTRA, .words = measure_words},
    TEXT_OF(EXPECT, "equals", equals),
    TEXT_OF(EXPECT, "at_most", at_most),
    TEXT_OF(EXPECT, "at_least", at_least),
    TEXTS_OF(EXPECT, "between", between),
    TEXT_OF(EXPECT, "reason", reason),
    {.key = NULL},
};

static const struct field allow_fields[] = {
    TEXT_OF(ALLOW, "site", site),
    TEXT_OF(ALLOW, "range", range),
    {.key = "count",
     .kind = FIELD_NUMBER,
     .offset = ALLOW(count),
     .extra = ALLOW(has_count),
     .min = 1,
     .max = INT64_MAX},
    {.key = "first_only", .kind = FIELD_BOOL, .offset = ALLOW(first_only), .extra = NO_EXTRA},
    {.key = "reason", .kind = FIELD_TEXT, .required = true, .offset = ALLOW(reason), .extra = NO_EXTRA},
    {.key = NULL},
};

static const struct field gate_fields[] = {
    {.key = "version",
     .kind = FIELD_NUMBER,
     .required = true,
     .offset = GATE(version),
     .extra = NO_EXTRA,
     .min = GATE_VERSION,
     .max = GATE_VERSION},
    TEXT_OF(GATE, "name", name),
    {.key = "source", .kind = FIELD_SECTION, .extra = GATE(has_source), .section = source_fields},
    {.key = "expect",
     .kind = FIELD_ITEMS,
     .required = true,
     .offset = GATE(expect),
     .extra = GATE(expect_count),
     .section = expect_fields,
     .item_size = sizeof(struct sc_config_expectation)},
    {.key = "allow",
     .kind = FIELD_ITEMS,
     .offset = GATE(allow),
     .extra = GATE(allow_count),
     .section = allow_fields,
     .item_size = sizeof(struct sc_config_exception)},
    {.key = NULL},
};

/* ---- what several fields say together -------------------------------------------------------- */

static enum sc_status check_source(const struct target *target, const struct sc_config_gate *gate,
                                   const struct node *node)
{
  const unsigned kinds = gate->has_probe + (gate->command != NULL) + (gate->traces != NULL);
  if (kinds > 1)
    return node_error(node->key, target->name, target->err,
                      "a source is one of 'probe', 'command' and 'traces': here are %u of them", kinds);
  if (gate->command && !gate->command[0][0])
    return node_error(fields_find(node, "command"), target->name, target->err, "the command's first word is empty");
  return SC_OK;
}

static enum sc_status check_expectation(const struct target *target, const struct sc_config_expectation *e,
                                        const struct node *node)
{
  const unsigned comparisons =
      (e->equals != NULL) + (e->at_most != NULL) + (e->at_least != NULL) + (e->between != NULL);
  const bool selected =
      e->variant || e->process || e->rank || e->thread || e->range || e->level || e->site || e->cls;
  if (e->expect && (e->measure || comparisons || selected))
    return node_error(node, target->name, target->err,
                      "'expect' says all of it: no selector, measure or comparison beside it");
  if (!e->expect && !e->measure)
    return node_error(node, target->name, target->err, "an expectation needs 'measure' or 'expect': add one");
  if (!e->expect && comparisons != 1)
    return node_error(node, target->name, target->err,
                      "an expectation needs one of 'equals', 'at_most', 'at_least' and 'between': here %s",
                      comparisons ? "are several" : "is none");
  if (e->between && e->between_count != 2)
    return node_error(fields_find(node, "between"), target->name, target->err,
                      "'between' takes two numbers, like [1, 3]");
  return SC_OK;
}

static enum sc_status check_items(const struct target *target, const struct sc_config_gate *gate,
                                  const struct node *root)
{
  const struct node *item = fields_find(root, "expect")->first;
  for (size_t i = 0; item && i < gate->expect_count; ++i, item = item->next) {
    enum sc_status status = check_expectation(target, &gate->expect[i], item);
    if (status != SC_OK)
      return status;
  }
  item = gate->allow_count ? fields_find(root, "allow")->first : NULL;
  for (size_t i = 0; item && i < gate->allow_count; ++i, item = item->next) {
    if (!gate->allow[i].site && !gate->allow[i].range)
      return node_error(item, target->name, target->err, "an exception needs 'site' or 'range': add one");
  }
  return SC_OK;
}

enum sc_status sc_config_read_gate_memory(const char *text, size_t size, const char *name, struct sc_config_gate **out,
                                          struct sc_error *err)
{
  struct node *root = NULL;
  struct sc_config_gate *gate = NULL;
  enum sc_status status = node_parse(text, size, name, &root, err);
  if (status != SC_OK)
    goto cleanup;
  gate = calloc(1, sizeof *gate);
  if (!gate) {
    status = sc_error_set(err, SC_ERR_NOMEM, "%s: out of memory", name);
    goto cleanup;
  }
  const struct target target = {(char *)gate, name, err};
  status = fields_read(&target, gate_fields, root, NULL);
  if (status == SC_OK && gate->has_source)
    status = check_source(&target, gate, fields_find(root, "source"));
  if (status == SC_OK)
    status = check_items(&target, gate, root);
  if (status != SC_OK)
    goto cleanup;
  *out = gate;
  gate = NULL;
cleanup:
  sc_config_gate_free(gate);
  node_free(root);
  return status;
}

enum sc_status sc_config_read_gate(const char *path, struct sc_config_gate **out, struct sc_error *err)
{
  struct sc_buf text = {0};
  enum sc_status status = fields_read_file(path, &text, err);
  if (status == SC_OK)
    status = sc_config_read_gate_memory(text.data ? text.data : "", text.len, path, out, err);
  sc_buf_free(&text);
  return status;
}

static void free_texts(char **texts, size_t count)
{
  for (size_t i = 0; texts && i < count; ++i)
    free(texts[i]);
  free(texts);
}

static void free_expectation(struct sc_config_expectation *e)
{
  char *const texts[] = {e->expect, e->variant, e->process, e->rank,   e->thread,  e->range,    e->level,
                         e->site,   e->cls,     e->measure, e->equals, e->at_most, e->at_least, e->reason};
  for (size_t i = 0; i < SC_COUNTOF(texts); ++i)
    free(texts[i]);
  free_texts(e->between, e->between_count);
}

void sc_config_gate_free(struct sc_config_gate *gate)
{
  if (!gate)
    return;
  config_release(&gate->probe);
  free(gate->name);
  free(gate->model);
  free(gate->device);
  free_texts(gate->command, gate->command_count);
  free_texts(gate->traces, gate->traces_count);
  free_texts(gate->ranges, gate->ranges_count);
  free(gate->from);
  free(gate->stacks);
  free(gate->api);
  for (size_t i = 0; gate->expect && i < gate->expect_count; ++i)
    free_expectation(&gate->expect[i]);
  free(gate->expect);
  for (size_t i = 0; gate->allow && i < gate->allow_count; ++i) {
    free(gate->allow[i].site);
    free(gate->allow[i].range);
    free(gate->allow[i].reason);
  }
  free(gate->allow);
  free(gate);
}
