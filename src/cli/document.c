/* SPDX-License-Identifier: Apache-2.0
 * Reading the probe's JSON with jansson, every value checked before it is used. */
#include "cli/document.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "cli/folder.h"
#include "config/config.h"

#define SCHEMA "synccount/probe/1"
#define MAX_SAMPLES 100000000u

struct document {
  json_t *root;
  char *path;
};

/* ---- values ------------------------------------------------------------------------------------ */

static enum sc_status malformed(const struct document *document, struct sc_error *err, const char *what)
{
  return sc_error_set(err, SC_ERR_FORMAT, "%s: %s: not a document of this probe version, or damaged", document->path,
                      what);
}

static enum sc_status no_memory(struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_NOMEM, "out of memory while reading the probe's document");
}

static bool get_u64(const json_t *object, const char *key, uint64_t max, uint64_t *out)
{
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > max)
    return false;
  *out = (uint64_t)json_integer_value(value);
  return true;
}

static const char *get_text(const json_t *object, const char *key)
{
  return json_string_value(json_object_get(object, key));
}

/* A new copy, or NULL with *failed set when it is not text or memory is out. */
static char *copy_text(const json_t *object, const char *key, bool *failed)
{
  char *copy = sc_strdup(get_text(object, key));
  if (!copy)
    *failed = true;
  return copy;
}

/* A list of finite numbers, none negative, as a new array. An absent or empty list gives NULL and 0. */
static bool get_times(const json_t *object, const char *key, double **out, size_t *count)
{
  const json_t *list = json_object_get(object, key), *item;
  size_t i, n = json_array_size(list);
  *out = NULL;
  *count = 0;
  if (!list || json_is_null(list))
    return true;
  if (!json_is_array(list) || n > MAX_SAMPLES)
    return false;
  if (n == 0)
    return true;
  double *values = sc_calloc_array(n, sizeof *values);
  if (!values)
    return false;
  json_array_foreach(list, i, item)
  {
    values[i] = json_number_value(item);
    if (!json_is_number(item) || !isfinite(values[i]) || values[i] < 0) {
      free(values);
      return false;
    }
  }
  *out = values;
  *count = n;
  return true;
}

/* ---- the file ---------------------------------------------------------------------------------- */

enum sc_status document_read(const char *path, struct document **out, struct sc_error *err)
{
  json_error_t why;
  struct document *document = calloc(1, sizeof *document);
  if (!document || !(document->path = sc_strdup(path))) {
    free(document);
    return no_memory(err);
  }
  FILE *file = folder_read_file(path);
  enum sc_status status = SC_OK;
  if (!file) {
    status = sc_error_set(err, SC_ERR_IO, "cannot open the probe's document %s: %s", path, strerror(errno));
  } else if (!(document->root = json_loadf(file, JSON_REJECT_DUPLICATES, &why))) {
    status = sc_error_set(err, SC_ERR_FORMAT, "%s:%d:%d: not valid JSON: %s", path, why.line, why.column, why.text);
  } else {
    const char *schema = get_text(document->root, "schema");
    if (!schema || strcmp(schema, SCHEMA) != 0)
      status = sc_error_set(err, SC_ERR_VERSION, "%s: its schema is '%.60s', this synccount reads '" SCHEMA "'", path,
                            schema ? schema : "(none)");
  }
  if (file)
    fclose(file);
  if (status != SC_OK) {
    document_free(document);
    return status;
  }
  *out = document;
  return SC_OK;
}

void document_free(struct document *document)
{
  if (!document)
    return;
  json_decref(document->root);
  free(document->path);
  free(document);
}

static bool is_pass(const struct document *document, const char *pass)
{
  const char *found = get_text(document->root, "pass");
  return found && strcmp(found, pass) == 0;
}

static void get_bool(const json_t *object, const char *key, bool *has, bool *value)
{
  const json_t *found = json_object_get(object, key);
  *has = json_is_boolean(found);
  *value = json_is_true(found);
}

void document_device(const struct document *document, struct document_device *out)
{
  const json_t *device = json_object_get(document->root, "device");
  *out = (struct document_device){
      .name = get_text(device, "name"),
      .compute_capability = get_text(device, "compute_capability"),
      .pci_bus_id = get_text(device, "pci_bus_id"),
      .schedule_flag = get_text(device, "schedule_flag"),
  };
  const struct {
    const char *key;
    uint64_t *out;
  } numbers[] = {
      {"total_memory_bytes", &out->total_memory_bytes},
      {"multiprocessors", &out->multiprocessors},
      {"l2_bytes", &out->l2_bytes},
      {"driver_version", &out->driver_version},
      {"runtime_version", &out->runtime_version},
      {"cublas_version", &out->cublas_version},
      {"sm_clock_khz", &out->sm_clock_khz},
      {"sm_clock_max_khz", &out->sm_clock_max_khz},
  };
  for (size_t i = 0; i < SC_COUNTOF(numbers); ++i) {
    if (!get_u64(device, numbers[i].key, INT64_MAX, numbers[i].out))
      *numbers[i].out = 0;
  }
  out->has_ordinal = get_u64(device, "ordinal", INT32_MAX, &out->ordinal);
  get_bool(device, "integrated", &out->has_integrated, &out->integrated);
  get_bool(device, "mig", &out->has_mig, &out->mig);
}

/* ---- runs -------------------------------------------------------------------------------------- */

struct shape {
  uint64_t experts, top_k, tokens, hidden, intermediate, layers, model_layers, seed, forwards;
};

static bool get_shape(const json_t *object, struct shape *shape)
{
  return get_u64(object, "experts", SC_CONFIG_MAX_EXPERTS, &shape->experts) &&
         get_u64(object, "tokens", SC_CONFIG_MAX_TOKENS, &shape->tokens) &&
         get_u64(object, "top_k", SC_CONFIG_MAX_EXPERTS, &shape->top_k) &&
         get_u64(object, "hidden", SC_CONFIG_MAX_WIDTH, &shape->hidden) &&
         get_u64(object, "intermediate", SC_CONFIG_MAX_WIDTH, &shape->intermediate) &&
         get_u64(object, "layers", SC_CONFIG_MAX_LAYERS, &shape->layers) &&
         get_u64(object, "model_layers", SC_CONFIG_MAX_LAYERS, &shape->model_layers) &&
         get_u64(object, "seed", INT64_MAX, &shape->seed) &&
         get_u64(object, "forwards", SC_CONFIG_MAX_FORWARDS, &shape->forwards) && shape->experts && shape->layers;
}

static struct sc_run *find_run(struct sc_findings *findings, const char *variant, const struct shape *shape)
{
  for (size_t i = 0; i < findings->run_count; ++i) {
    struct sc_run *run = &findings->runs[i];
    if (strcmp(run->variant, variant) == 0 && run->experts == shape->experts && run->tokens == shape->tokens)
      return run;
  }
  return NULL;
}

static struct sc_run *new_run(struct sc_findings *findings, const json_t *object, const struct shape *shape,
                              bool *failed)
{
  struct sc_run *run = sc_array_push(&findings->runs, &findings->run_count, &findings->run_cap, sizeof *run);
  if (!run) {
    *failed = true;
    return NULL;
  }
  sc_run_init(run);
  run->experts = shape->experts;
  run->top_k = shape->top_k;
  run->tokens = shape->tokens;
  run->hidden = shape->hidden;
  run->intermediate = shape->intermediate;
  run->layers = shape->layers;
  run->model_layers = shape->model_layers;
  run->seed = shape->seed;
  run->verified = true; /* until a document says otherwise */
  run->variant = copy_text(object, "variant", failed);
  run->dtype = copy_text(object, "dtype", failed);
  run->routing = copy_text(object, "routing", failed);
  run->activation = copy_text(object, "activation", failed);
  if (get_text(object, "act_quant")) /* fused-nvfp4 alone has these */
    run->act_quant = copy_text(object, "act_quant", failed);
  if (get_text(object, "nvfp4_path"))
    run->nvfp4_path = copy_text(object, "nvfp4_path", failed);
  return run;
}

/* Text that only some runs have: the same in both passes, or absent in both. */
static bool same_text(const char *known, const json_t *object, const char *key)
{
  const char *text = get_text(object, key);
  return known ? text && strcmp(known, text) == 0 : !text;
}

/* Two passes of one session ran the same thing, or their figures must not be put side by side. */
static bool same_run(const struct sc_run *run, const json_t *object, const struct shape *shape)
{
  const char *dtype = get_text(object, "dtype"), *routing = get_text(object, "routing"),
             *activation = get_text(object, "activation");
  return run->top_k == shape->top_k && run->hidden == shape->hidden && run->intermediate == shape->intermediate &&
         run->layers == shape->layers && run->model_layers == shape->model_layers && run->seed == shape->seed &&
         dtype && routing && activation && strcmp(run->dtype, dtype) == 0 && strcmp(run->routing, routing) == 0 &&
         strcmp(run->activation, activation) == 0 && same_text(run->act_quant, object, "act_quant") &&
         same_text(run->nvfp4_path, object, "nvfp4_path");
}

/* A run is verified when every document that holds it says so. */
static bool add_verified(struct sc_run *run, const json_t *object)
{
  const json_t *verified = json_object_get(object, "verified"), *cosine, *error;
  if (!json_is_object(verified) || !json_is_boolean(json_object_get(verified, "ok")))
    return false;
  cosine = json_object_get(verified, "cosine");
  error = json_object_get(verified, "rel_error");
  if (json_is_number(cosine))
    run->cosine = json_number_value(cosine);
  if (json_is_number(error))
    run->rel_error = json_number_value(error);
  if (!get_u64(verified, "tokens", SC_CONFIG_MAX_TOKENS, &run->verified_tokens))
    run->verified_tokens = 0;
  if (json_is_true(json_object_get(verified, "ok")))
    return true;
  run->verified = false;
  if (!run->not_verified) {
    const char *reason = get_text(verified, "reason");
    run->not_verified = sc_strdup(reason ? reason : "the probe gave no reason");
  }
  return run->not_verified != NULL;
}

/* Unequal in either pass is unequal; null says that nothing was compared. */
static bool add_match(struct sc_run *run, const json_t *object)
{
  const json_t *match = json_object_get(object, "output_matches_masked");
  const char *why = get_text(object, "not_comparable");
  if (json_is_false(match))
    run->output_matches_masked = 0;
  else if (json_is_true(match) && run->output_matches_masked == -1)
    run->output_matches_masked = 1;
  if (why && !run->not_comparable)
    return (run->not_comparable = sc_strdup(why)) != NULL;
  return true;
}

static bool add_hits(struct sc_run *run, const json_t *object)
{
  const json_t *list = json_object_get(object, "hit"), *item;
  size_t i;
  if (!json_is_array(list) || json_array_size(list) != run->layers)
    return false;
  uint64_t *hits = sc_calloc_array(run->layers, sizeof *hits);
  if (!hits)
    return false;
  json_array_foreach(list, i, item)
  {
    hits[i] = (uint64_t)json_integer_value(item);
    if (!json_is_integer(item) || hits[i] > run->experts) {
      free(hits);
      return false;
    }
  }
  free(run->hit);
  run->hit = hits;
  return true;
}

static bool add_forward_times(struct sc_run *run, const json_t *object)
{
  double *times;
  size_t count;
  if (!get_times(object, "forward_us", &times, &count))
    return false;
  if (count) {
    sc_stats_sort(times, count);
    run->forward_p10_us = sc_stats_quantile(times, count, 0.1);
    run->forward_p50_us = sc_stats_quantile(times, count, 0.5);
    run->forward_p90_us = sc_stats_quantile(times, count, 0.9);
    run->forward_samples = count;
  }
  free(times);
  return true;
}

static enum sc_status add_run(const struct document *document, const json_t *object, bool counts,
                              struct sc_findings *findings, struct sc_error *err)
{
  struct shape shape;
  bool failed = false;
  const char *variant = get_text(object, "variant");
  if (!variant || !get_shape(object, &shape))
    return malformed(document, err, "a run lacks its variant or shape");
  struct sc_run *run = find_run(findings, variant, &shape);
  if (run && !same_run(run, object, &shape))
    return malformed(document, err,
                     "a run differs from the other pass's in shape, dtype, routing, activation, quantisation or seed");
  if (!run)
    run = new_run(findings, object, &shape, &failed);
  if (!run || failed)
    return get_text(object, "dtype") && get_text(object, "routing") && get_text(object, "activation")
               ? no_memory(err)
               : malformed(document, err, "a run lacks its dtype, routing or activation");
  if (!add_verified(run, object) || !add_match(run, object))
    return malformed(document, err, "a run's verification is not as described");
  if (counts) {
    run->forwards = shape.forwards;
    if (!add_hits(run, object))
      return malformed(document, err, "a run's hits are not one number for each layer");
  } else if (!add_forward_times(run, object)) {
    return malformed(document, err, "a run's forward times are not a list of times");
  }
  return SC_OK;
}

enum sc_status document_add_runs(const struct document *document, struct sc_findings *findings, struct sc_error *err)
{
  const json_t *runs = json_object_get(document->root, "runs"), *object;
  const bool counts = is_pass(document, "counts");
  size_t i;
  enum sc_status status = SC_OK;
  if (runs && !json_is_array(runs))
    return malformed(document, err, "'runs' is no list");
  json_array_foreach(runs, i, object)
  {
    status = add_run(document, object, counts, findings, err);
    if (status != SC_OK)
      return status;
  }
  return SC_OK;
}

/* ---- ruler ------------------------------------------------------------------------------------- */

/* Block sizes that add up to the samples; a missing list is one block. */
static size_t *block_sizes(const json_t *object, size_t samples, size_t *count)
{
  const json_t *list = json_object_get(object, "block_sizes"), *item;
  size_t i, sum = 0, n = list ? json_array_size(list) : 1;
  if ((list && !json_is_array(list)) || n == 0 || n > samples)
    return NULL;
  size_t *sizes = sc_calloc_array(n, sizeof *sizes);
  if (!sizes)
    return NULL;
  if (!list)
    sizes[0] = sum = samples;
  json_array_foreach(list, i, item)
  {
    sizes[i] = json_is_integer(item) && json_integer_value(item) > 0 ? (size_t)json_integer_value(item) : 0;
    if (sizes[i] == 0 || sizes[i] > samples - sum)
      break;
    sum += sizes[i];
  }
  if (sum != samples) {
    free(sizes);
    return NULL;
  }
  *count = n;
  return sizes;
}

static enum sc_status add_ruler_row(const struct document *document, const json_t *object, struct sc_findings *findings,
                                    struct sc_error *err)
{
  const char *method = get_text(object, "method");
  double *samples = NULL;
  size_t count = 0, blocks = 0, *sizes = NULL;
  enum sc_status status = SC_OK;
  if (!method || !get_times(object, "samples_us", &samples, &count))
    return malformed(document, err, "a row of the ruler lacks its method or samples");
  if (count == 0)
    return SC_OK; /* this way of waiting does not exist here: absent, not 0 */
  sizes = block_sizes(object, count, &blocks);
  if (!sizes) {
    status = malformed(document, err, "a row of the ruler has blocks that do not add up to its samples");
    goto cleanup;
  }
  struct sc_ruler_row row;
  struct sc_ruler_row *slot =
      sc_array_push(&findings->ruler, &findings->ruler_count, &findings->ruler_cap, sizeof *slot);
  if (!slot || !sc_ruler_from_samples(&row, method, samples, sizes, blocks))
    status = no_memory(err);
  else
    *slot = row;
cleanup:
  free(samples);
  free(sizes);
  return status;
}

enum sc_status document_add_ruler(const struct document *document, struct sc_findings *findings, struct sc_error *err)
{
  const json_t *rows = json_object_get(document->root, "ruler"), *object;
  size_t i;
  if (rows && !json_is_array(rows))
    return malformed(document, err, "'ruler' is no list");
  json_array_foreach(rows, i, object)
  {
    enum sc_status status = add_ruler_row(document, object, findings, err);
    if (status != SC_OK)
      return status;
  }
  return SC_OK;
}

/* ---- controls ---------------------------------------------------------------------------------- */

/* The median of a list of times; NaN if it is empty or absent. False if it is no such list. */
static bool median_of(const json_t *object, const char *key, double *out)
{
  double *times;
  size_t count;
  if (!get_times(object, key, &times, &count))
    return false;
  sc_stats_sort(times, count);
  *out = sc_stats_quantile(times, count, 0.5);
  free(times);
  return true;
}

/* All repeats of all steps as pairs for the fit. Arrays belong to the caller, also on failure. */
struct pairs {
  double *syncs, *forward_us;
  size_t syncs_count, syncs_cap, count, cap;
};

static bool add_pairs(struct pairs *pairs, double syncs, const double *times, size_t count)
{
  for (size_t i = 0; i < count; ++i) {
    double *x = sc_array_push(&pairs->syncs, &pairs->syncs_count, &pairs->syncs_cap, sizeof *x);
    double *y = sc_array_push(&pairs->forward_us, &pairs->count, &pairs->cap, sizeof *y);
    if (!x || !y)
      return false;
    *x = syncs;
    *y = times[i];
  }
  return true;
}

static bool add_step(const json_t *object, struct sc_control *control, size_t index, struct pairs *pairs)
{
  double *times;
  size_t count;
  if (!get_u64(object, "syncs", UINT32_MAX, &control->steps[index].syncs) ||
      !get_times(object, "forward_us", &times, &count))
    return false;
  bool ok = add_pairs(pairs, (double)control->steps[index].syncs, times, count);
  sc_stats_sort(times, count);
  control->steps[index].p50_us = sc_stats_quantile(times, count, 0.5);
  free(times);
  return ok;
}

static bool add_steps(const json_t *object, struct sc_control *control, struct pairs *pairs)
{
  const json_t *steps = json_object_get(object, "steps"), *step;
  size_t i, n = json_array_size(steps);
  if (!steps || n == 0)
    return !steps || json_is_array(steps);
  if (n > 1000 || !(control->steps = sc_calloc_array(n, sizeof *control->steps)))
    return false;
  control->step_count = n;
  json_array_foreach(steps, i, step)
  {
    if (!add_step(step, control, i, pairs))
      return false;
  }
  return true;
}

static enum sc_status add_control(const struct document *document, const json_t *object, struct sc_findings *findings,
                                  struct sc_error *err)
{
  struct pairs pairs = {0};
  enum sc_status status = SC_OK;
  struct sc_control *control =
      sc_array_push(&findings->controls, &findings->control_count, &findings->control_cap, sizeof *control);
  if (!control)
    return no_memory(err);
  if (!get_u64(object, "experts", SC_CONFIG_MAX_EXPERTS, &control->experts) ||
      !get_u64(object, "tokens", SC_CONFIG_MAX_TOKENS, &control->tokens) ||
      !median_of(object, "dense_us", &control->dense_us) || !median_of(object, "sorted_us", &control->sorted_us) ||
      !median_of(object, "masked_us", &control->masked_us) || !add_steps(object, control, &pairs)) {
    status = malformed(document, err, "a control run is not as described");
  } else if (pairs.count) {
    struct sc_marginal *marginal =
        sc_array_push(&findings->marginal, &findings->marginal_count, &findings->marginal_cap, sizeof *marginal);
    if (marginal) {
      marginal->experts = control->experts;
      marginal->tokens = control->tokens;
      sc_marginal_fit(marginal, pairs.syncs, pairs.forward_us, pairs.count);
    } else {
      status = no_memory(err);
    }
  }
  free(pairs.syncs);
  free(pairs.forward_us);
  return status;
}

enum sc_status document_add_controls(const struct document *document, struct sc_findings *findings,
                                     struct sc_error *err)
{
  const json_t *controls = json_object_get(document->root, "controls"), *object;
  size_t i;
  if (controls && !json_is_array(controls))
    return malformed(document, err, "'controls' is no list");
  json_array_foreach(controls, i, object)
  {
    enum sc_status status = add_control(document, object, findings, err);
    if (status != SC_OK)
      return status;
  }
  return SC_OK;
}

/* ---- what was left out ------------------------------------------------------------------------- */

enum sc_status document_add_skipped(const struct document *document, struct sc_findings *findings, size_t *count,
                                    struct sc_error *err)
{
  const json_t *skipped = json_object_get(document->root, "skipped"), *object;
  size_t i;
  if (skipped && !json_is_array(skipped))
    return malformed(document, err, "'skipped' is no list");
  json_array_foreach(skipped, i, object)
  {
    const char *variant = get_text(object, "variant"), *reason = get_text(object, "reason");
    uint64_t experts, tokens;
    if (!variant || !reason || !get_u64(object, "experts", SC_CONFIG_MAX_EXPERTS, &experts) ||
        !get_u64(object, "tokens", SC_CONFIG_MAX_TOKENS, &tokens))
      return malformed(document, err, "a skipped point is not as described");
    if (!sc_findings_warn(findings, "skipped: %s, E = %" PRIu64 ", %" PRIu64 " tokens: %s", variant, experts, tokens,
                          reason))
      return no_memory(err);
    ++*count;
  }
  return SC_OK;
}

enum sc_status document_add_warnings(const struct document *document, struct sc_findings *findings,
                                     struct sc_error *err)
{
  const json_t *warnings = json_object_get(document->root, "warnings"), *item;
  size_t i;
  if (warnings && !json_is_array(warnings))
    return malformed(document, err, "'warnings' is no list");
  json_array_foreach(warnings, i, item)
  {
    const char *text = json_string_value(item);
    if (!text)
      return malformed(document, err, "'warnings' holds something that is no text");
    if (!sc_findings_warn(findings, "not measured: %s", text))
      return no_memory(err);
  }
  return SC_OK;
}
