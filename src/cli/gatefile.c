/* SPDX-License-Identifier: Apache-2.0
 * YAML gates: the command line wins over what they say. */
#include "cli/gatefile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *shipped(const char *name, const char *configs_folder)
{
  return strchr(name, '/') ? NULL : sc_asprintf("%s/%s.yaml", configs_folder, name);
}

bool gatefile_is_one(const char *operand, const char *configs_folder)
{
  if (sc_match("*.yaml", operand) || sc_match("*.yml", operand))
    return true;
  if (access(operand, F_OK) == 0)
    return false;
  char *path = shipped(operand, configs_folder);
  bool found = path && access(path, R_OK) == 0;
  free(path);
  return found;
}

enum sc_status gatefile_read(const char *operand, const char *configs_folder, struct sc_config_gate **out,
                             struct sc_error *err)
{
  if (access(operand, F_OK) == 0 || sc_match("*.yaml", operand) || sc_match("*.yml", operand))
    return sc_config_read_gate(operand, out, err);
  char *path = shipped(operand, configs_folder);
  enum sc_status status = path ? sc_config_read_gate(path, out, err) : sc_error_no_memory(err);
  free(path);
  return status;
}

/* ---- expectations ---------------------------------------------------------------------------- */

static bool copy(char **out, const char *text)
{
  *out = sc_strdup(text);
  return *out || !text;
}

static enum sc_status take_selectors(const struct sc_config_expectation *from, struct sc_gate_expectation *to,
                                     struct sc_error *err)
{
#define SELECTED(name) {#name, from->name},
  const struct {
    const char *name, *value;
  } selected[] = {SC_SELECTORS(SELECTED){"class", from->cls}};
#undef SELECTED
  enum sc_status status = SC_OK;
  for (size_t i = 0; i < SC_COUNTOF(selected) && status == SC_OK; ++i) {
    if (selected[i].value)
      status = sc_gate_select(to, selected[i].name, selected[i].value, err);
  }
  return status;
}

/* "syncs <= 1", for the one parser that knows what may stand there; NULL: memory is out. */
static char *comparison_text(const struct sc_config_expectation *from)
{
  if (from->between)
    return sc_asprintf("%s between %s and %s", from->measure, from->between[0], from->between[1]);
  const char *op = from->equals ? "==" : from->at_most ? "<=" : ">=";
  const char *value = from->equals ? from->equals : from->at_most ? from->at_most : from->at_least;
  return sc_asprintf("%s %s %s", from->measure, op, value);
}

static enum sc_status add_keyed(const struct sc_config_expectation *from, struct sc_gate *gate, struct sc_error *err)
{
  struct sc_gate_expectation *to = sc_gate_add(gate);
  char *text = to ? comparison_text(from) : NULL;
  enum sc_status status = text ? take_selectors(from, to, err) : sc_error_no_memory(err);
  if (status == SC_OK)
    status = sc_gate_parse_comparison(to, text, err);
  if (status == SC_OK)
    status = sc_gate_complete(to, err);
  free(text);
  return status;
}

static enum sc_status add_expectation(const struct sc_config_expectation *from, const char *path, struct sc_gate *gate,
                                      struct sc_error *err)
{
  enum sc_status status = from->expect ? sc_gate_parse(gate, from->expect, err) : add_keyed(from, gate, err);
  if (status == SC_OK) {
    struct sc_gate_expectation *to = &gate->expectations[gate->expectation_count - 1];
    to->line = from->line;
    return copy(&to->reason, from->reason) ? SC_OK : sc_error_no_memory(err);
  }
  if (status == SC_ERR_USAGE) {
    sc_error_prefix(err, "%s:%zu:%zu", path, from->line, from->column);
    err->status = status = SC_ERR_CONFIG;
  }
  return status;
}

enum sc_status gatefile_expectations(const struct sc_config_gate *file, const char *path, struct sc_gate *gate,
                                     struct sc_error *err)
{
  enum sc_status status = SC_OK;
  for (size_t i = 0; i < file->expect_count && status == SC_OK; ++i)
    status = add_expectation(&file->expect[i], path, gate, err);
  for (size_t i = 0; i < file->allow_count && status == SC_OK; ++i) {
    const struct sc_config_exception *from = &file->allow[i];
    struct sc_gate_exception *to = sc_gate_add_exception(gate);
    if (!to || !copy(&to->site, from->site) || !copy(&to->range, from->range) || !copy(&to->reason, from->reason))
      return sc_error_no_memory(err);
    to->limited = from->has_count;
    to->count = from->count;
    to->first_only = from->first_only;
  }
  if (status == SC_OK && !copy(&gate->name, file->name ? file->name : path))
    status = sc_error_no_memory(err);
  return status;
}

/* ---- settings -------------------------------------------------------------------------------- */

static uint64_t unless_given(uint64_t given, uint64_t here) { return given ? given : here; }

static void take_run(struct sc_config_run *run, struct settings *s)
{
  if (!s->experts && run->experts) {
    s->experts = run->experts;
    s->experts_count = run->experts_count;
    run->experts = NULL;
  }
  if (!s->tokens && run->tokens) {
    s->tokens = run->tokens;
    s->tokens_count = run->tokens_count;
    run->tokens = NULL;
  }
  if (!s->variants && run->variants) {
    s->variants = run->variants;
    s->variants_count = run->variants_count;
    run->variants = NULL;
  }
  s->layers = unless_given(s->layers, run->layers);
  s->forwards = unless_given(s->forwards, run->forwards);
  if (!s->routing)
    s->routing = run->routing;
  if (!s->has_seed && run->has_seed) {
    s->has_seed = true;
    s->seed = run->seed;
  }
  if (!s->has_dtype && run->has_dtype) {
    s->has_dtype = true;
    s->dtype = run->dtype;
  }
}

/* As if it were given on the command line, with the same checks. */
static enum sc_status option(struct settings *s, enum cli_option_id id, const char *key, const char *value,
                             const char *path, struct sc_error *err)
{
  if (!value || settings_option(s, id, value, err))
    return SC_OK;
  if (err->status == SC_ERR_USAGE) {
    sc_error_prefix(err, "%s: '%s'", path, key);
    err->status = SC_ERR_CONFIG;
  }
  return err->status;
}

enum sc_status gatefile_settings(struct sc_config_gate *file, const char *path, struct settings *s,
                                 struct sc_error *err)
{
  enum sc_status status = SC_OK;
  take_run(&file->probe.run, s);
  s->hidden = unless_given(s->hidden, file->hidden);
  s->intermediate = unless_given(s->intermediate, file->intermediate);
  s->top_k = unless_given(s->top_k, file->top_k);
  if (!s->config_name)
    s->config_name = file->model;
  s->analysis.warmup = unless_given(s->analysis.warmup, file->warmup);
  if (!s->analysis.from)
    s->analysis.from = file->from;
  s->analysis.capture_range |= file->capture_range;
  s->torch_modules |= file->torch_modules;
  if (!s->follow)
    s->no_follow |= file->has_follow && !file->follow;
  if (s->device == DEVICE_AUTO)
    status = option(s, CLI_DEVICE, "device", file->device, path, err);
  if (status == SC_OK && !s->stacks)
    status = option(s, CLI_STACKS, "stacks", file->stacks, path, err);
  if (status == SC_OK && !s->api)
    status = option(s, CLI_API, "api", file->api, path, err);
  for (size_t i = 0; i < file->ranges_count && status == SC_OK; ++i) /* those of the command line come first */
    status = option(s, CLI_RANGES, "ranges", file->ranges[i], path, err);
  return status;
}
