/* SPDX-License-Identifier: Apache-2.0
 * A JSON report, schema synccount/report/1, back into findings. Others may have written or changed the file: nothing in
 * it is trusted, and the first thing that is not as described ends the reading with its place. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report/content.h"
#include "report/json_value.h"

#define SCHEMA "synccount/report/1"
#define FILE_MAX (256u << 20)
#define LOOK 16384 /* bytes that are looked through for the schema at a time */
#define ASSUMED_MAX 1000

struct reading {
  const char *path;
  char place[96]; /* "processes[2].ranges[41]" */
  struct sc_error *err;
  bool failed;
  size_t *assumed; /* where findings have the round trips that this report assumed */
  size_t assumed_count;
};

static void refuse(struct reading *r, const char *key, const char *wanted)
{
  if (r->failed)
    return;
  r->failed = true;
  sc_error_set(r->err, SC_ERR_FORMAT, "%s: %s%s%s is not %s: damaged, or not written by synccount", r->path, r->place,
               *r->place && *key ? "." : "", key, wanted);
}

static void no_memory(struct reading *r)
{
  if (!r->failed)
    sc_error_set(r->err, SC_ERR_NOMEM, "out of memory while %s was read", r->path);
  r->failed = true;
}

/* ---- values: a key that is missing or null leaves *out as it is ----------------------------------------------- */

static const json_t *value_of(const json_t *object, const char *key)
{
  const json_t *value = json_object_get(object, key);
  return json_is_null(value) ? NULL : value;
}

static void take_text(struct reading *r, const json_t *object, const char *key, char **out)
{
  const json_t *value = value_of(object, key);
  if (!value || r->failed)
    return;
  if (json_is_integer(value)) /* ranks */
    *out = sc_asprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
  else if (json_is_string(value))
    *out = sc_strdup(json_string_value(value));
  else
    refuse(r, key, "a text");
  if (!r->failed && !*out)
    no_memory(r);
}

static void need_text(struct reading *r, const json_t *object, const char *key, char **out)
{
  take_text(r, object, key, out);
  if (!*out)
    refuse(r, key, "a text");
}

static bool count_of(const json_t *value, uint64_t *out)
{
  if (json_is_integer(value) && json_integer_value(value) >= 0)
    *out = (uint64_t)json_integer_value(value);
  else if (json_is_real(value) && json_real_value(value) >= 0 && json_real_value(value) < 0x1p64)
    *out = (uint64_t)json_real_value(value); /* beyond 2^63 - 1 */
  else
    return false;
  return true;
}

static void take_count(struct reading *r, const json_t *object, const char *key, uint64_t *out)
{
  const json_t *value = value_of(object, key);
  if (value && !count_of(value, out))
    refuse(r, key, "a count");
}

static void take_number(struct reading *r, const json_t *object, const char *key, double *out)
{
  const json_t *value = value_of(object, key);
  if (!value)
    return;
  if (json_is_number(value) && isfinite(json_number_value(value)))
    *out = json_number_value(value);
  else
    refuse(r, key, "a number");
}

/* A time in microseconds, as nanoseconds. */
static void take_ns(struct reading *r, const json_t *object, const char *key, uint64_t *out)
{
  double us = 0;
  take_number(r, object, key, &us);
  *out = us > 0 && us < 1.8e16 ? (uint64_t)(us * 1e3 + 0.5) : 0;
}

static void take_bool(struct reading *r, const json_t *object, const char *key, bool *out)
{
  const json_t *value = value_of(object, key);
  if (value && json_is_boolean(value))
    *out = json_is_true(value);
  else if (value)
    refuse(r, key, "true or false");
}

/* An object or a list that may be missing. */
static const json_t *part(struct reading *r, const json_t *object, const char *key, json_type type)
{
  const json_t *value = value_of(object, key);
  if (value && json_typeof(value) != type) {
    refuse(r, key, type == JSON_ARRAY ? "a list" : "an object");
    return NULL;
  }
  return value;
}

/* n counts as a new list. A list of another length is refused before there is memory for it. */
static void counts_of(struct reading *r, const json_t *list, const char *key, uint64_t n, uint64_t **out)
{
  const json_t *value;
  uint64_t *counts;
  size_t i;
  if (!json_is_array(list) || json_array_size(list) != n) {
    refuse(r, key, "a list with one for each layer or expert");
    return;
  }
  if (!(counts = sc_calloc_array(n + 1, sizeof *counts))) {
    no_memory(r);
    return;
  }
  json_array_foreach(list, i, value)
  {
    if (!count_of(value, &counts[i]))
      refuse(r, key, "a list of counts");
  }
  *out = counts;
}

static void take_list(struct reading *r, const json_t *object, const char *key, uint64_t n, uint64_t **out)
{
  const json_t *list = value_of(object, key);
  if (list && !r->failed)
    counts_of(r, list, key, n, out);
}

/* Calls take for each element, which must be an object. */
typedef void take_item(struct reading *r, const json_t *item, void *into);

static void each(struct reading *r, const json_t *object, const char *key, take_item *take, void *into)
{
  const json_t *list = part(r, object, key, JSON_ARRAY), *item;
  const size_t before = strlen(r->place);
  size_t i;
  json_array_foreach(list, i, item)
  {
    if (r->failed)
      return;
    snprintf(r->place + before, sizeof r->place - before, "%s%s[%zu]", before ? "." : "", key, i);
    if (json_is_object(item))
      take(r, item, into);
    else
      refuse(r, "", "an object");
    if (!r->failed)
      r->place[before] = '\0';
  }
}

/* ---- counts ---------------------------------------------------------------------------------- */

static void take_classes(struct reading *r, const json_t *object, struct sc_counts *counts)
{
  const json_t *classes = part(r, object, "by_class", JSON_OBJECT);
  for (int i = 0; i < SC_CLASS_COUNT; ++i)
    take_count(r, classes, sc_class_name((enum sc_class)i), &counts->by_class[i]);
}

static void take_counts(struct reading *r, const json_t *object, struct sc_counts *c)
{
  const struct {
    const char *key;
    uint64_t *out;
  } counts[] = {
      {"total", &c->syncs},
      {"read_backs", &c->read_backs},
      {"blocking_uploads", &c->blocking_uploads},
      {"idle_syncs", &c->idle_syncs},
      {"launches", &c->launches},
      {"submissions", &c->submissions},
      {"d2h_copies", &c->d2h_copies},
      {"host_functions", &c->host_functions},
      {"api_calls", &c->api_calls},
      {"poll_waits", &c->poll_waits},
      {"uncertain", &c->uncertain},
      {"failed", &c->failed},
      {"lifecycle", &c->lifecycle},
      {"captured", &c->captured},
  };
  for (size_t i = 0; i < SC_COUNTOF(counts); ++i)
    take_count(r, object, counts[i].key, counts[i].out);
  take_classes(r, object, c);
  take_ns(r, object, "wait_us", &c->wait_ns);
}

/* ---- host, ruler, cost ----------------------------------------------------------------------- */

static bool add_field(struct sc_findings *f, const char *group, const char *key, const json_t *value)
{
  if (json_is_string(value))
    return sc_findings_text(f, group, key, json_string_value(value));
  if (json_is_number(value))
    return sc_findings_number(f, group, key, json_number_value(value));
  if (json_is_boolean(value))
    return sc_findings_bool(f, group, key, json_is_true(value));
  return !json_is_null(value) || sc_json_field_is_known(group, key) || sc_findings_text(f, group, key, NULL);
}

static void take_field(struct reading *r, struct sc_findings *f, const char *group, const char *key,
                       const json_t *value)
{
  if (r->failed)
    return;
  if (json_is_array(value) || json_is_object(value)) {
    snprintf(r->place, sizeof r->place, "%s", group);
    refuse(r, key, "a text, a number, true or false");
  } else if (!add_field(f, group, key, value)) {
    no_memory(r);
  }
}

/* What is told in one sentence with another fact is of the same report as that one. */
static void take_fields(struct reading *r, const json_t *root, const char *group, struct sc_findings *f)
{
  const json_t *object = part(r, root, group, JSON_OBJECT);
  const char *key, *inner;
  json_t *value, *below;
  if (strcmp(group, "conditions") == 0 && json_object_get(object, "gpu_numa_node")) {
    sc_findings_forget(f, group, "gpu_numa_cpus");
    sc_findings_forget(f, group, "gpu_numa_allowed");
  }
  json_object_foreach((json_t *)object, key, value)
  {
    if (json_is_object(value) && !sc_json_field_is_known(group, key)) {
      char *name = sc_asprintf("%s.%s", group, key);
      if (!name)
        no_memory(r);
      else
        sc_findings_forget(f, name, NULL);
      json_object_foreach(value, inner, below)
      {
        take_field(r, f, name, inner, below);
      }
      free(name);
    } else if (!(strcmp(group, "device") == 0 && strcmp(key, "simulated") == 0)) {
      take_field(r, f, group, key, value);
    }
  }
}

static void take_ruler(struct reading *r, const json_t *item, void *into)
{
  struct sc_findings *f = into;
  struct sc_ruler_row *row = sc_array_push(&f->ruler, &f->ruler_count, &f->ruler_cap, sizeof *row);
  if (!row) {
    no_memory(r);
    return;
  }
  row->min_us = row->p10_us = row->p50_us = row->mean_us = row->p90_us = row->p99_us = NAN;
  need_text(r, item, "method", &row->method);
  take_count(r, item, "samples", &row->samples);
  take_number(r, item, "min_us", &row->min_us);
  take_number(r, item, "p10_us", &row->p10_us);
  take_number(r, item, "p50_us", &row->p50_us);
  take_number(r, item, "mean_us", &row->mean_us);
  take_number(r, item, "p90_us", &row->p90_us);
  take_number(r, item, "p99_us", &row->p99_us);
  const json_t *means = part(r, item, "block_means_us", JSON_ARRAY), *value;
  size_t i;
  row->blocks = json_array_size(means);
  if (row->blocks && !(row->block_means_us = sc_calloc_array(row->blocks, sizeof *row->block_means_us)))
    no_memory(r);
  json_array_foreach(means, i, value)
  {
    if (!json_is_number(value) && !json_is_null(value)) /* null: a block without samples */
      refuse(r, "block_means_us", "a list of numbers");
    else if (!r->failed)
      row->block_means_us[i] = json_is_null(value) ? NAN : json_number_value(value);
  }
  if (row->blocks == 0)
    take_count(r, item, "blocks", &row->blocks);
}

static void take_marginal(struct reading *r, const json_t *item, void *into)
{
  struct sc_findings *f = into;
  struct sc_marginal *m = sc_array_push(&f->marginal, &f->marginal_count, &f->marginal_cap, sizeof *m);
  if (!m) {
    no_memory(r);
    return;
  }
  m->mean_us = m->low_us = m->high_us = NAN;
  take_count(r, item, "experts", &m->experts);
  take_count(r, item, "tokens", &m->tokens);
  take_number(r, item, "mean_us", &m->mean_us);
  take_number(r, item, "low_us", &m->low_us);
  take_number(r, item, "high_us", &m->high_us);
}

static void take_control_step(struct reading *r, const json_t *item, void *into)
{
  struct sc_control *c = into;
  c->steps[c->step_count].p50_us = NAN;
  take_count(r, item, "syncs", &c->steps[c->step_count].syncs);
  take_number(r, item, "p50_us", &c->steps[c->step_count].p50_us);
  ++c->step_count;
}

static void take_control(struct reading *r, const json_t *item, void *into)
{
  struct sc_findings *f = into;
  struct sc_control *c = sc_array_push(&f->controls, &f->control_count, &f->control_cap, sizeof *c);
  if (!c || !(c->steps = sc_calloc_array(json_array_size(value_of(item, "sorted_syncs")) + 1, sizeof *c->steps))) {
    no_memory(r);
    return;
  }
  c->dense_us = c->sorted_us = c->masked_us = NAN;
  take_count(r, item, "experts", &c->experts);
  take_count(r, item, "tokens", &c->tokens);
  take_number(r, item, "dense_us", &c->dense_us);
  take_number(r, item, "sorted_us", &c->sorted_us);
  take_number(r, item, "masked_us", &c->masked_us);
  each(r, item, "sorted_syncs", take_control_step, c);
}

/* A longer copy; what is new is NaN. NULL: memory is out. */
static double *grown(const double *values, size_t count, size_t wanted)
{
  double *all = sc_calloc_array(wanted + 1, sizeof *all);
  for (size_t i = 0; all && i < wanted; ++i)
    all[i] = i < count ? values[i] : NAN;
  return all;
}

static bool is_taken(const struct reading *r, size_t at)
{
  for (size_t i = 0; i < r->assumed_count; ++i) {
    if (r->assumed[i] == at)
      return true;
  }
  return false;
}

/* Several reports may have assumed other round trips: findings have all of them. What runs have for them keeps its
 * place; a run has no floor for what its report did not assume. */
static void take_assumed(struct reading *r, const json_t *root, struct sc_findings *f)
{
  const json_t *list = part(r, root, "assumed_round_trips_us", JSON_ARRAY), *value;
  const size_t before = f->assumed_count, n = json_array_size(list);
  size_t i;
  if (n == 0 || n > ASSUMED_MAX) {
    if (n)
      refuse(r, "assumed_round_trips_us", "a short list");
    return;
  }
  double *all = grown(f->assumed_us, before, before + n);
  r->assumed = sc_calloc_array(n, sizeof *r->assumed);
  if (!all || !r->assumed) {
    free(all);
    no_memory(r);
    return;
  }
  free(f->assumed_us);
  f->assumed_us = all;
  json_array_foreach(list, i, value)
  {
    if (!json_is_number(value))
      refuse(r, "assumed_round_trips_us", "a list of numbers");
    size_t at = 0;
    while (at < before && (all[at] != json_number_value(value) || is_taken(r, at)))
      ++at;
    if (at == before)
      all[at = f->assumed_count++] = json_number_value(value);
    r->assumed[r->assumed_count++] = at;
  }
  for (i = 0; i < f->run_count; ++i) {
    double *floors = f->runs[i].assumed_floor_us;
    if (floors && !(f->runs[i].assumed_floor_us = grown(floors, before, f->assumed_count)))
      no_memory(r);
    free(floors);
  }
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void take_ops(struct reading *r, const json_t *syncs, struct sc_run *run)
{
  const json_t *ops = part(r, syncs, "by_op", JSON_OBJECT);
  const char *key;
  json_t *value;
  size_t count = json_object_size(ops);
  if (count == 0)
    return;
  run->by_op = sc_calloc_array(count, sizeof *run->by_op);
  if (!run->by_op) {
    no_memory(r);
    return;
  }
  json_object_foreach((json_t *)ops, key, value)
  {
    struct sc_named_count *op = &run->by_op[run->by_op_count++];
    if (!(op->name = sc_strdup(key)))
      no_memory(r);
    take_count(r, ops, key, &op->count);
  }
}

/* Whether the report has a count for each op of each expert; only then there is memory for them. */
static bool has_expert_ops(const json_t *by_op, const struct sc_run *run)
{
  for (size_t op = 0; op < run->by_op_count; ++op) {
    const json_t *list = value_of(by_op, run->by_op[op].name);
    if (!list || json_array_size(list) != run->experts)
      return false;
  }
  return true;
}

/* Whatever is counted by expert comes after by_expert, which says that there are so many. */
static void take_experts(struct reading *r, const json_t *syncs, struct sc_run *run)
{
  const json_t *by_op = part(r, syncs, "by_expert_op", JSON_OBJECT);
  const size_t ops = run->by_op_count;
  uint64_t *column = NULL;
  take_list(r, syncs, "by_expert", run->experts, &run->by_expert);
  if (!by_op || !run->by_expert)
    return;
  if (r->failed || !has_expert_ops(by_op, run)) {
    refuse(r, "by_expert_op", "a list for each op with one for each expert");
    return;
  }
  run->by_expert_op = sc_calloc_array(run->experts + 1, sizeof *run->by_expert_op);
  for (uint64_t expert = 0; run->by_expert_op && expert < run->experts; ++expert) {
    if (!(run->by_expert_op[expert] = sc_calloc_array(ops + 1, sizeof **run->by_expert_op)))
      no_memory(r);
  }
  if (!run->by_expert_op)
    no_memory(r);
  for (size_t op = 0; op < ops && !r->failed; ++op) {
    take_list(r, by_op, run->by_op[op].name, run->experts, &column);
    for (uint64_t expert = 0; column && expert < run->experts; ++expert)
      run->by_expert_op[expert][op] = column[expert];
    free(column);
    column = NULL;
  }
}

static void take_layers(struct reading *r, const json_t *syncs, struct sc_run *run)
{
  const json_t *rows = part(r, syncs, "by_layer_expert", JSON_ARRAY), *row;
  size_t layer;
  take_list(r, syncs, "by_layer_outside", run->layers, &run->by_layer_outside);
  if (!rows || r->failed)
    return;
  if (json_array_size(rows) != run->layers) {
    refuse(r, "by_layer_expert", "as long as the run has layers");
    return;
  }
  if (!(run->by_layer_expert = sc_calloc_array(run->layers + 1, sizeof *run->by_layer_expert)))
    no_memory(r);
  json_array_foreach(rows, layer, row)
  {
    if (r->failed)
      return;
    counts_of(r, row, "by_layer_expert", run->experts, &run->by_layer_expert[layer]);
  }
}

static void take_run_syncs(struct reading *r, const json_t *item, struct sc_run *run)
{
  const json_t *syncs = part(r, item, "syncs", JSON_OBJECT), *layer = part(r, syncs, "per_layer", JSON_OBJECT);
  take_counts(r, syncs, &run->counts);
  take_number(r, syncs, "per_forward", &run->per_forward);
  take_count(r, layer, "min", &run->per_layer_min);
  take_count(r, layer, "max", &run->per_layer_max);
  take_number(r, layer, "mean", &run->per_layer_mean);
  take_number(r, syncs, "expected_per_layer", &run->expected_per_layer);
  take_number(r, syncs, "bound_per_layer", &run->bound_per_layer);
  take_bool(r, syncs, "exact", &run->exact);
  take_count(r, syncs, "outside_experts", &run->outside_experts);
  take_ops(r, syncs, run);
  take_experts(r, syncs, run);
  take_layers(r, syncs, run);
  if (run->counted && !syncs)
    refuse(r, "syncs", "there, although the run was counted");
}

static void take_assumed_floors(struct reading *r, const json_t *item, const struct sc_findings *f, struct sc_run *run)
{
  const json_t *floors = part(r, item, "assumed_floors", JSON_ARRAY), *floor;
  size_t i;
  if (!floors || r->failed)
    return;
  if (json_array_size(floors) != r->assumed_count) {
    refuse(r, "assumed_floors", "one for each of assumed_round_trips_us");
    return;
  }
  if (!(run->assumed_floor_us = grown(NULL, 0, f->assumed_count))) {
    no_memory(r);
    return;
  }
  json_array_foreach(floors, i, floor)
    take_number(r, floor, "floor_us", &run->assumed_floor_us[r->assumed[i]]);
}

static void take_run_times(struct reading *r, const json_t *item, struct sc_run *run)
{
  const json_t *floor = part(r, item, "floor", JSON_OBJECT), *forward = part(r, item, "forward", JSON_OBJECT);
  take_number(r, floor, "low_us", &run->floor_low_us);
  take_number(r, floor, "mean_us", &run->floor_mean_us);
  take_number(r, floor, "high_us", &run->floor_high_us);
  take_count(r, floor, "blocks", &run->floor_blocks);
  take_number(r, forward, "p10_us", &run->forward_p10_us);
  take_number(r, forward, "p50_us", &run->forward_p50_us);
  take_number(r, forward, "p90_us", &run->forward_p90_us);
  take_count(r, forward, "samples", &run->forward_samples);
}

static void take_run(struct reading *r, const json_t *item, void *into)
{
  struct sc_findings *f = into;
  struct sc_run *run = sc_array_push(&f->runs, &f->run_count, &f->run_cap, sizeof *run);
  bool matches = false;
  if (!run) {
    no_memory(r);
    return;
  }
  sc_run_init(run);
  need_text(r, item, "variant", &run->variant);
  take_count(r, item, "experts", &run->experts);
  take_count(r, item, "top_k", &run->top_k);
  take_count(r, item, "tokens", &run->tokens);
  take_count(r, item, "hidden", &run->hidden);
  take_count(r, item, "intermediate", &run->intermediate);
  take_count(r, item, "layers", &run->layers);
  take_count(r, item, "model_layers", &run->model_layers);
  take_count(r, item, "forwards", &run->forwards);
  take_count(r, item, "seed", &run->seed);
  take_text(r, item, "dtype", &run->dtype);
  take_text(r, item, "routing", &run->routing);
  take_text(r, item, "activation", &run->activation);
  take_text(r, item, "act_quant", &run->act_quant);
  take_text(r, item, "nvfp4_path", &run->nvfp4_path);
  const json_t *verified = part(r, item, "verified", JSON_OBJECT);
  take_bool(r, verified, "ok", &run->verified);
  take_number(r, verified, "cosine", &run->cosine);
  take_number(r, verified, "rel_error", &run->rel_error);
  take_count(r, verified, "tokens", &run->verified_tokens);
  take_text(r, verified, "reason", &run->not_verified);
  take_bool(r, item, "counted", &run->counted);
  take_list(r, item, "hit", run->layers, &run->hit);
  take_run_syncs(r, item, run);
  take_run_times(r, item, run);
  take_assumed_floors(r, item, f, run);
  if (value_of(item, "output_matches_masked")) {
    take_bool(r, item, "output_matches_masked", &matches);
    run->output_matches_masked = matches;
  }
  take_text(r, item, "not_comparable", &run->not_comparable);
}

static void take_law(struct reading *r, const json_t *item, void *into)
{
  struct sc_findings *f = into;
  struct sc_law *law = sc_array_push(&f->laws, &f->law_count, &f->law_cap, sizeof *law);
  if (!law) {
    no_memory(r);
    return;
  }
  law->slope = law->intercept = NAN;
  need_text(r, item, "variant", &law->variant);
  need_text(r, item, "text", &law->text);
  take_bool(r, item, "stated", &law->stated);
  take_number(r, item, "slope", &law->slope);
  take_number(r, item, "intercept", &law->intercept);
  if (law->stated && !(isfinite(law->slope) && isfinite(law->intercept)))
    refuse(r, "slope", "there, although the law is stated");
  for (size_t i = 0; !r->failed && i + 1 < f->law_count; ++i) {
    if (strcmp(f->laws[i].variant, law->variant) == 0 && strcmp(f->laws[i].text, law->text) == 0) {
      free(law->variant); /* of several reports each law once */
      free(law->text);
      --f->law_count;
      return;
    }
  }
}

/* ---- processes ------------------------------------------------------------------------------- */

static void take_thread(struct reading *r, const json_t *item, void *into)
{
  struct sc_process *p = into;
  struct sc_thread_findings *t = sc_array_push(&p->threads, &p->thread_count, &p->thread_cap, sizeof *t);
  if (!t) {
    no_memory(r);
    return;
  }
  t->wait_us = t->wall_us = NAN;
  t->serial = p->thread_count;
  take_count(r, item, "tid", &t->tid);
  take_text(r, item, "name", &t->name);
  take_count(r, item, "launches", &t->launches);
  take_count(r, item, "syncs", &t->syncs);
  take_count(r, item, "poll_waits", &t->poll_waits);
  take_count(r, item, "d2h_copies", &t->d2h_copies);
  take_count(r, item, "host_functions", &t->host_functions);
  take_number(r, item, "wait_us", &t->wait_us);
}

static void take_range(struct reading *r, const json_t *item, void *into)
{
  struct sc_process *p = into;
  struct sc_range_findings *range = sc_array_push(&p->ranges, &p->range_count, &p->range_cap, sizeof *range);
  if (!range) {
    no_memory(r);
    return;
  }
  range->median = NAN;
  need_text(r, item, "path", &range->path);
  need_text(r, item, "name", &range->name);
  take_text(r, item, "domain", &range->domain);
  if (!range->domain && !(range->domain = sc_strdup("")))
    no_memory(r);
  take_text(r, item, "level", &range->level);
  take_count(r, item, "depth", &range->depth);
  take_count(r, item, "occurrences", &range->occurrences);
  take_count(r, item, "unfinished", &range->unfinished);
  take_bool(r, item, "spanning", &range->spanning);
  const json_t *syncs = part(r, item, "syncs", JSON_OBJECT);
  take_count(r, syncs, "total", &range->total.syncs);
  take_count(r, syncs, "self", &range->self.syncs);
  take_count(r, syncs, "min", &range->min);
  take_number(r, syncs, "median", &range->median);
  take_count(r, syncs, "max", &range->max);
  take_classes(r, item, &range->total);
  take_ns(r, item, "wait_us", &range->total.wait_ns);
  take_count(r, item, "launches", &range->total.launches);
  take_count(r, item, "submissions", &range->total.submissions);
  take_count(r, item, "poll_waits", &range->total.poll_waits);
  take_count(r, item, "uncertain", &range->total.uncertain);
  if (range->depth && p->range_count == 1)
    refuse(r, "depth", "0 in the first range");
  if (range->unfinished > range->occurrences)
    refuse(r, "unfinished", "part of the occurrences");
}

struct frames {
  struct sc_frame *list;
  size_t count;
};

static void take_frame(struct reading *r, const json_t *item, void *into)
{
  struct frames *frames = into;
  struct sc_frame *frame = &frames->list[frames->count++];
  frame->module = SIZE_MAX;
  take_text(r, item, "file", &frame->file);
  take_text(r, item, "function", &frame->function);
  take_count(r, item, "line", &frame->line);
}

static void take_frames(struct reading *r, const json_t *item, const char *key, struct sc_frame **list, size_t *count)
{
  struct frames frames = {0};
  size_t n = json_array_size(part(r, item, key, JSON_ARRAY));
  if (n == 0)
    return;
  frames.list = sc_calloc_array(n, sizeof *frames.list);
  if (!frames.list) {
    no_memory(r);
    return;
  }
  each(r, item, key, take_frame, &frames);
  *list = frames.list;
  *count = frames.count;
}

static bool word_of(const char *text, const char *(*name)(int), int count, int *out)
{
  for (int i = 0; i < count; ++i) {
    if (strcmp(name(i), text) == 0) {
      *out = i;
      return true;
    }
  }
  return false;
}

static const char *class_word(int i) { return sc_class_name((enum sc_class)i); }
static const char *source_word(int i) { return sc_step_source_name((enum sc_step_source)i); }
static const char *kind_word(int i) { return sc_site_kind_name((enum sc_site_kind)i); }

static void take_word(struct reading *r, const json_t *item, const char *key, const char *(*name)(int), int count,
                      int *out)
{
  const json_t *value = value_of(item, key);
  if (value && !(json_is_string(value) && word_of(json_string_value(value), name, count, out)))
    refuse(r, key, "a word that is known here");
}

static void take_site(struct reading *r, const json_t *item, void *into)
{
  struct sc_process *p = into;
  struct sc_site *site = sc_array_push(&p->sites, &p->site_count, &p->site_cap, sizeof *site);
  int kind = SC_SITE_SYNC, cls = SC_CLASS_EXPLICIT;
  if (!site) {
    no_memory(r);
    return;
  }
  site->serial = (uint32_t)(p->site_count - 1);
  site->per_step = site->wait_p50_us = site->wait_total_us = site->drain_gap_p50_us = site->drain_gap_total_us = NAN;
  take_word(r, item, "kind", kind_word, SC_SITE_REFUSED + 1, &kind);
  take_word(r, item, "class", class_word, SC_CLASS_COUNT, &cls);
  site->kind = (enum sc_site_kind)kind;
  site->cls = (enum sc_class)cls;
  need_text(r, item, "id", &site->id);
  need_text(r, item, "api", &site->api);
  take_text(r, item, "direction", &site->direction);
  take_text(r, item, "memory", &site->memory);
  take_text(r, item, "pattern", &site->pattern);
  take_text(r, item, "remedy", &site->remedy);
  take_text(r, item, "range", &site->range);
  take_count(r, item, "bytes", &site->bytes);
  take_count(r, item, "count", &site->count);
  take_count(r, item, "read_backs", &site->read_backs);
  take_count(r, item, "blocking_uploads", &site->blocking_uploads);
  take_number(r, item, "per_step", &site->per_step);
  take_number(r, item, "wait_p50_us", &site->wait_p50_us);
  take_number(r, item, "wait_total_us", &site->wait_total_us);
  take_number(r, item, "drain_gap_p50_us", &site->drain_gap_p50_us);
  take_number(r, item, "drain_gap_total_us", &site->drain_gap_total_us);
  take_frames(r, item, "python", &site->python, &site->python_count);
  take_frames(r, item, "native", &site->native, &site->native_count);
}

static void take_steps(struct reading *r, const json_t *item, struct sc_process *p)
{
  const json_t *steps = part(r, item, "steps", JSON_OBJECT);
  int source = SC_STEPS_RANGES;
  if (!steps)
    return;
  p->has_steps = true;
  take_word(r, steps, "source", source_word, SC_STEPS_FORWARD + 1, &source);
  p->step_source = (enum sc_step_source)source;
  take_count(r, steps, "count", &p->steps);
  take_count(r, steps, "warmup", &p->warmup);
  take_count(r, steps, "min", &p->step_min);
  take_number(r, steps, "median", &p->step_median);
  take_count(r, steps, "max", &p->step_max);
  if (p->warmup > p->steps)
    refuse(r, "steps.warmup", "part of the steps");
}

/* The tracer's own time, the stacks and the floor. Their totals are as the report says: its rounded figures would not
 * give the same again. */
static void take_cost(struct reading *r, const json_t *item, struct sc_process *p)
{
  const json_t *tracer = part(r, item, "tracer", JSON_OBJECT), *stacks = part(r, item, "stacks", JSON_OBJECT),
               *floor = part(r, item, "floor", JSON_OBJECT);
  take_number(r, tracer, "start_us", &p->start_cost_us);
  take_number(r, tracer, "call_us", &p->call_cost_us);
  take_number(r, tracer, "launch_us", &p->launch_cost_us);
  take_number(r, tracer, "calls_us", &p->told_cost_us);
  take_count(r, stacks, "taken", &p->stacks);
  take_count(r, stacks, "walked", &p->stack_walks);
  take_count(r, stacks, "missing", &p->stacks_missing);
  take_ns(r, stacks, "total_us", &p->stack_ns);
  take_ns(r, stacks, "walked_us", &p->stack_walk_ns);
  take_ns(r, stacks, "longest_us", &p->stack_longest_ns);
  p->floor.round_trip_us = p->floor.total_us = p->floor.per_step_us = NAN;
  take_count(r, floor, "round_trips", &p->floor.round_trips);
  take_number(r, floor, "round_trip_us", &p->floor.round_trip_us);
  take_number(r, floor, "total_us", &p->floor.total_us);
  take_number(r, floor, "per_step_us", &p->floor.per_step_us);
  p->floor_told = !p->simulated && !isnan(p->floor.total_us) && !isnan(p->floor.round_trip_us);
}

/* What only the syncs of a process have, beside the counts. */
static void take_process_syncs(struct reading *r, const json_t *syncs, struct sc_process *p)
{
  take_counts(r, syncs, &p->counts);
  take_count(r, syncs, "without_detail", &p->without_detail.syncs);
  take_number(r, syncs, "drain_gap_p50_us", &p->drain_gap_p50_us);
  take_number(r, syncs, "drain_gap_total_us", &p->drain_gap_total_us);
  take_count(r, syncs, "drain_gaps", &p->drain_gaps);
  take_count(r, syncs, "queue_waits", &p->queue_waits);
  take_ns(r, syncs, "queue_wait_us", &p->queue_wait_ns);
}

static void take_process(struct reading *r, const json_t *item, void *into)
{
  struct sc_findings *f = into;
  struct sc_process *p = sc_findings_process(f);
  bool measured = true;
  if (!p) {
    no_memory(r);
    return;
  }
  take_text(r, item, "host", &p->host);
  take_count(r, item, "pid", &p->pid);
  take_text(r, item, "rank", &p->rank);
  take_text(r, item, "local_rank", &p->local_rank);
  take_text(r, item, "command", &p->command);
  take_text(r, item, "cwd", &p->cwd);
  take_number(r, item, "wall_us", &p->wall_us);
  take_bool(r, item, "attached_late", &p->attached_late);
  take_bool(r, item, "ended_cleanly", &p->ended_cleanly);
  take_bool(r, item, "simulated", &p->simulated);
  take_bool(r, item, "measured", &measured);
  p->unmeasured = !measured;
  const json_t *syncs = part(r, item, "syncs", JSON_OBJECT);
  take_process_syncs(r, syncs, p);
  take_cost(r, item, p);
  if (measured && !syncs)
    refuse(r, "syncs", "there, although the process was measured");
  take_steps(r, item, p);
  each(r, item, "threads", take_thread, p);
  each(r, item, "ranges", take_range, p);
  each(r, item, "sites", take_site, p);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* A report that does not say which process lost something may mean any. */
static void take_losses(struct reading *r, const json_t *root, struct sc_findings *f, size_t first_process)
{
  const json_t *losses = part(r, root, "losses", JSON_OBJECT), *processes = value_of(root, "processes");
  uint64_t records = 0, chunks = 0;
  take_count(r, losses, "records", &records);
  take_count(r, losses, "chunks", &chunks);
  f->lost_records += records;
  f->lost_chunks += chunks;
  for (size_t i = first_process; i < f->process_count; ++i) {
    struct sc_process *p = &f->processes[i];
    const json_t *own = part(r, json_array_get(processes, i - first_process), "losses", JSON_OBJECT);
    p->lost_records = own ? 0 : records;
    p->lost_chunks = own ? 0 : chunks;
    take_count(r, own, "records", &p->lost_records);
    take_count(r, own, "chunks", &p->lost_chunks);
    take_bool(r, own, "totals_complete", &p->counts_whole);
  }
}

/* That the ruler drifts is said by each writer anew, of the first ruler, as the last warning. */
static void take_warnings(struct reading *r, const json_t *root, bool first_ruler, struct sc_findings *f)
{
  const json_t *list = part(r, root, "warnings", JSON_ARRAY), *item;
  struct sc_buf drift = {0};
  const bool drifts = !r->failed && first_ruler && sc_put_drift(&drift, f);
  size_t i;
  sc_buf_free(&drift);
  json_array_foreach(list, i, item)
  {
    if (!json_is_string(item))
      refuse(r, "warnings", "a list of texts");
    else if (drifts && i + 1 == json_array_size(list) && strncmp(json_string_value(item), "DRIFT: ", 7) == 0)
      continue;
    else if (!sc_findings_warn(f, "%s", json_string_value(item)))
      no_memory(r);
  }
}

static void take_root(struct reading *r, const json_t *root, struct sc_findings *f)
{
  const size_t first_process = f->process_count;
  const bool first_ruler = f->ruler_count == 0;
  bool simulated = false;
  take_fields(r, root, "host", f);
  take_fields(r, root, "device", f);
  take_fields(r, root, "conditions", f);
  take_bool(r, part(r, root, "device", JSON_OBJECT), "simulated", &simulated);
  f->simulated |= simulated;
  each(r, root, "ruler", take_ruler, f);
  each(r, root, "marginal_sync", take_marginal, f);
  each(r, root, "controls", take_control, f);
  take_assumed(r, root, f);
  each(r, root, "runs", take_run, f);
  each(r, root, "laws", take_law, f);
  each(r, root, "processes", take_process, f);
  take_losses(r, root, f, first_process);
  take_warnings(r, root, first_ruler, f);
}

/* Whether the schema stands in the file, wherever: other tools sort keys. What another tool's trace holds is not looked
 * through. */
static bool names_schema(FILE *file)
{
  static const char schema[] = "\"synccount/report/", events[] = "\"traceEvents\"";
  char bytes[LOOK];
  size_t kept = 0, got;
  bool first = true, found = false;
  for (size_t all = 0; !found && all < FILE_MAX && (got = fread(bytes + kept, 1, LOOK - kept, file)) > 0; all += got) {
    const size_t n = kept + got;
    size_t blanks = 0;
    while (first && blanks < n && strchr(" \t\r\n", bytes[blanks]) && bytes[blanks])
      ++blanks;
    if (first && blanks == n) /* up to here */
      continue;
    if (first && bytes[blanks] != '{')
      return false;
    first = false;
    const char *ours = memmem(bytes, n, schema, sizeof schema - 1),
               *theirs = memmem(bytes, n, events, sizeof events - 1);
    if (theirs && (!ours || theirs < ours))
      return false;
    found = ours != NULL;
    kept = n < sizeof schema ? n : sizeof schema;
    memmove(bytes, bytes + n - kept, kept);
  }
  return found;
}

bool sc_report_is_json(const char *path)
{
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) /* a pipe must not hang us */
    return false;
  FILE *file = fopen(path, "re");
  if (!file)
    return false;
  bool ours = names_schema(file);
  fclose(file);
  return ours;
}

static enum sc_status load(const char *path, json_t **out, struct sc_error *err)
{
  json_error_t why;
  struct stat info;
  FILE *file = fopen(path, "re");
  if (!file)
    return sc_error_set(err, SC_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
  if (fstat(fileno(file), &info) == 0 && info.st_size > (off_t)FILE_MAX) {
    fclose(file);
    return sc_error_set(err, SC_ERR_LIMIT, "'%s' is larger than 256 MiB, which a report never is: give the traces",
                        path);
  }
  *out = json_loadf(file, JSON_REJECT_DUPLICATES, &why);
  fclose(file);
  if (!*out)
    return sc_error_set(err, SC_ERR_FORMAT, "%s:%d:%d: not valid JSON: %s", path, why.line, why.column, why.text);
  return SC_OK;
}

enum sc_status sc_report_read_json(const char *path, struct sc_findings *findings, struct sc_error *err)
{
  json_t *root = NULL;
  struct reading reading = {.path = path, .err = err};
  struct sc_error own;
  if (!err)
    reading.err = &own;
  enum sc_status status = load(path, &root, reading.err);
  if (status != SC_OK)
    return status;
  const char *schema = json_string_value(json_object_get(root, "schema"));
  if (!schema || strcmp(schema, SCHEMA) != 0) {
    reading.failed = true;
    sc_error_set(reading.err, SC_ERR_VERSION, "%s: its schema is '%.60s', this synccount reads '" SCHEMA "'", path,
                 schema ? schema : "(none)");
  } else {
    take_root(&reading, root, findings);
  }
  json_decref(root);
  free(reading.assumed);
  return reading.failed ? reading.err->status : SC_OK;
}
