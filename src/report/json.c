/* SPDX-License-Identifier: Apache-2.0
 * The JSON report, schema synccount/report/1. Other people's scripts read it: fields may be added, none changes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/content.h"
#include "report/json_value.h"
#include "report/writers.h"

/* Enough for every rounded value (at most 15 digits), too few for the noise of binary fractions. */
enum { REAL_DIGITS = 15 };

/* ---- host, device, conditions ------------------------------------------------------------------ */

/* Keys that readers may count on: null when nobody found out. */
static const struct {
  const char *group, *key;
} known_fields[] = {
    {"host", "cpu"},
    {"host", "kernel"},
    {"host", "virtualization"},
    {"host", "driver"},
    {"host", "cuda"},
    {"host", "cupti"},
    {"device", "name"},
    {"device", "compute_capability"},
    {"conditions", "gpu_numa_node"},
    {"conditions", "cpus_allowed"},
    {"conditions", "cgroup_cpu_quota"},
    {"conditions", "governor"},
    {"conditions", "schedule_flag"},
    {"conditions", "mig"},
    {"conditions", "mps"},
    {"conditions", "wsl"},
    {"conditions", "sm_clock_before"},
};

bool sc_json_field_is_known(const char *group, const char *key)
{
  for (size_t i = 0; i < SC_COUNTOF(known_fields); i++)
    if (strcmp(known_fields[i].group, group) == 0 && strcmp(known_fields[i].key, key) == 0)
      return true;
  return false;
}

static json_t *field_value(const struct sc_field *field)
{
  switch (field->kind) {
  case SC_FIELD_TEXT: return sc_json_text(field->text);
  case SC_FIELD_NUMBER: return sc_json_number(field->number);
  case SC_FIELD_BOOL: return json_boolean(field->boolean);
  case SC_FIELD_NULL: break;
  }
  return json_null();
}

/* The object of a group: "host.pcie" is "pcie" in "host". Only the three roots exist; anything else is a condition. */
static json_t *group_object(json_t *root, const char *group, bool *ok)
{
  const char *dot = strchr(group, '.');
  size_t n = dot ? (size_t)(dot - group) : strlen(group);
  json_t *object = json_object_get(root, "conditions"), *inner;

  if ((n == 4 && strncmp(group, "host", n) == 0) || (n == 6 && strncmp(group, "device", n) == 0))
    object = json_object_get(root, n == 4 ? "host" : "device");
  if (!dot)
    return object;
  inner = json_object_get(object, dot + 1);
  if (!json_is_object(inner))
    sc_json_put_named(object, dot + 1, json_object(), ok);
  return json_object_get(object, dot + 1);
}

static void put_fields(json_t *root, const struct sc_findings *f, bool *ok)
{
  sc_json_put(root, "host", json_object(), ok);
  sc_json_put(root, "device", json_object(), ok);
  sc_json_put(root, "conditions", json_object(), ok);
  if (!*ok)
    return;
  for (size_t i = 0; i < SC_COUNTOF(known_fields); i++)
    sc_json_put(json_object_get(root, known_fields[i].group), known_fields[i].key, json_null(), ok);
  sc_json_put(json_object_get(root, "host"), "pcie", json_object(), ok);
  for (size_t i = 0; i < f->field_count; i++) {
    const struct sc_field *field = &f->fields[i];

    sc_json_put_named(group_object(root, field->group, ok), field->key, field_value(field), ok);
  }
  sc_json_put(json_object_get(root, "device"), "simulated", json_boolean(sc_findings_simulated(f)), ok);
}

/* ---- ruler, marginal cost ------------------------------------------------------------------------ */

static json_t *ruler_value(const struct sc_ruler_row *row, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "method", sc_json_text(row->method), ok);
  sc_json_put(object, "samples", sc_json_count(row->samples), ok);
  sc_json_put(object, "blocks", sc_json_count(row->blocks), ok);
  sc_json_put(object, "min_us", sc_json_us(row->min_us), ok);
  sc_json_put(object, "p10_us", sc_json_us(row->p10_us), ok);
  sc_json_put(object, "p50_us", sc_json_us(row->p50_us), ok);
  sc_json_put(object, "mean_us", sc_json_us(row->mean_us), ok);
  sc_json_put(object, "p90_us", sc_json_us(row->p90_us), ok);
  sc_json_put(object, "p99_us", sc_json_us(row->p99_us), ok);
  if (row->block_means_us) {
    json_t *means = json_array();

    for (uint64_t i = 0; i < row->blocks; i++)
      sc_json_push(means, sc_json_us(row->block_means_us[i]), ok);
    sc_json_put(object, "block_means_us", means, ok);
  }
  return object;
}

static json_t *marginal_value(const struct sc_marginal *m, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "experts", sc_json_count(m->experts), ok);
  sc_json_put(object, "tokens", sc_json_count(m->tokens), ok);
  sc_json_put(object, "mean_us", sc_json_us(m->mean_us), ok);
  sc_json_put(object, "low_us", sc_json_us(m->low_us), ok);
  sc_json_put(object, "high_us", sc_json_us(m->high_us), ok);
  return object;
}

static json_t *control_value(const struct sc_control *c, bool *ok)
{
  json_t *object = json_object(), *steps = json_array();

  for (size_t i = 0; i < c->step_count; i++) {
    json_t *step = json_object();

    sc_json_put(step, "syncs", sc_json_count(c->steps[i].syncs), ok);
    sc_json_put(step, "p50_us", sc_json_us(c->steps[i].p50_us), ok);
    sc_json_push(steps, step, ok);
  }
  sc_json_put(object, "experts", sc_json_count(c->experts), ok);
  sc_json_put(object, "tokens", sc_json_count(c->tokens), ok);
  sc_json_put(object, "dense_us", sc_json_us(c->dense_us), ok);
  sc_json_put(object, "sorted_us", sc_json_us(c->sorted_us), ok);
  sc_json_put(object, "masked_us", sc_json_us(c->masked_us), ok);
  sc_json_put(object, "sorted_syncs", steps, ok);
  return object;
}

/* Everything that is a time of the device: absent altogether when the device is simulated. */
static void put_times(json_t *root, const struct sc_findings *f, bool *ok)
{
  bool simulated = sc_findings_simulated(f);
  const struct sc_ruler_row *trip = sc_round_trip(f);
  json_t *ruler = json_array(), *marginal = NULL, *controls = NULL, *assumed = json_array();

  for (size_t i = 0; i < f->ruler_count && !simulated; i++)
    sc_json_push(ruler, ruler_value(&f->ruler[i], ok), ok);
  for (size_t i = 0; i < f->marginal_count && !simulated; i++) {
    marginal = marginal ? marginal : json_array();
    sc_json_push(marginal, marginal_value(&f->marginal[i], ok), ok);
  }
  for (size_t i = 0; i < f->control_count && !simulated; i++) {
    controls = controls ? controls : json_array();
    sc_json_push(controls, control_value(&f->controls[i], ok), ok);
  }
  for (size_t i = 0; i < f->assumed_count; i++)
    sc_json_push(assumed, sc_json_us(f->assumed_us[i]), ok);
  sc_json_put(root, "round_trip", trip ? ruler_value(trip, ok) : json_null(), ok);
  sc_json_put(root, "ruler", ruler, ok);
  sc_json_put(root, "assumed_round_trips_us", assumed, ok);
  sc_json_put(root, "marginal_sync", marginal ? marginal : json_null(), ok);
  sc_json_put(root, "controls", controls ? controls : json_null(), ok);
}

/* ---- runs ---------------------------------------------------------------------------------------- */

static json_t *verified_value(const struct sc_run *run, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "ok", json_boolean(run->verified), ok);
  sc_json_put(object, "cosine", isfinite(run->cosine) ? json_real(round(run->cosine * 1e9) / 1e9) : json_null(), ok);
  sc_json_put(object, "rel_error", sc_json_number(run->rel_error), ok);
  sc_json_put(object, "tokens", sc_json_count(run->verified_tokens), ok);
  sc_json_put(object, "reason", sc_json_text(run->verified ? NULL : run->not_verified), ok);
  return object;
}

/* [[per expert] per layer] */
static json_t *layer_expert_value(const struct sc_run *run, bool *ok)
{
  json_t *rows;

  if (!run->by_layer_expert)
    return json_null();
  rows = json_array();
  for (uint64_t layer = 0; layer < run->layers; layer++)
    sc_json_push(rows, sc_json_counts(run->by_layer_expert[layer], run->experts), ok);
  return rows;
}

/* {"any": [per expert], ...} */
static json_t *expert_op_value(const struct sc_run *run, bool *ok)
{
  json_t *object;

  if (!run->by_expert_op)
    return json_null();
  object = json_object();
  for (size_t op = 0; op < run->by_op_count; op++) {
    json_t *column = json_array();

    for (uint64_t expert = 0; expert < run->experts; expert++)
      sc_json_push(column, sc_json_count(run->by_expert_op[expert][op]), ok);
    sc_json_put_named(object, run->by_op[op].name, column, ok);
  }
  return object;
}

static json_t *run_syncs_value(const struct sc_run *run, bool *ok)
{
  json_t *object, *layer, *by_op;

  if (!run->counted)
    return json_null();
  object = json_object();
  layer = json_object();
  by_op = json_object();
  for (size_t i = 0; i < run->by_op_count; i++)
    sc_json_put_named(by_op, run->by_op[i].name, sc_json_count(run->by_op[i].count), ok);
  sc_json_put(layer, "min", sc_json_count(run->per_layer_min), ok);
  sc_json_put(layer, "max", sc_json_count(run->per_layer_max), ok);
  sc_json_put(layer, "mean", sc_json_number(run->per_layer_mean), ok);
  sc_json_put(object, "per_forward", sc_json_number(run->per_forward), ok);
  sc_json_put(object, "per_layer", layer, ok);
  sc_json_put(object, "expected_per_layer", sc_json_number(run->expected_per_layer), ok);
  sc_json_put(object, "bound_per_layer", sc_json_number(run->bound_per_layer), ok);
  sc_json_put(object, "exact", isnan(run->expected_per_layer) ? json_null() : json_boolean(run->exact), ok);
  sc_json_put(object, "total", sc_json_count(run->counts.syncs), ok);
  sc_json_put_counts(object, &run->counts, ok);
  sc_json_put(object, "by_op", by_op, ok);
  sc_json_put(object, "by_expert", sc_json_counts(run->by_expert, run->experts), ok);
  sc_json_put(object, "by_expert_op", expert_op_value(run, ok), ok);
  sc_json_put(object, "by_layer_expert", layer_expert_value(run, ok), ok);
  sc_json_put(object, "by_layer_outside", sc_json_counts(run->by_layer_outside, run->layers), ok);
  sc_json_put(object, "outside_experts", sc_json_count(run->outside_experts), ok);
  return object;
}

static void put_run_times(json_t *object, const struct sc_findings *f, const struct sc_run *run, bool *ok)
{
  json_t *floor = json_null(), *forward = json_null(), *assumed = json_null();

  if (sc_run_has_floor(f, run)) {
    floor = json_object();
    sc_json_put(floor, "low_us", sc_json_us(run->floor_low_us), ok);
    sc_json_put(floor, "mean_us", sc_json_us(run->floor_mean_us), ok);
    sc_json_put(floor, "high_us", sc_json_us(run->floor_high_us), ok);
    sc_json_put(floor, "blocks", sc_json_count(run->floor_blocks), ok);
  }
  if (sc_run_has_forward(f, run)) {
    forward = json_object();
    sc_json_put(forward, "p10_us", sc_json_us(run->forward_p10_us), ok);
    sc_json_put(forward, "p50_us", sc_json_us(run->forward_p50_us), ok);
    sc_json_put(forward, "p90_us", sc_json_us(run->forward_p90_us), ok);
    sc_json_put(forward, "samples", sc_json_count(run->forward_samples), ok);
  }
  if (run->counted && run->assumed_floor_us && f->assumed_count) {
    assumed = json_array();
    for (size_t i = 0; i < f->assumed_count; i++) {
      json_t *one = json_object();

      sc_json_put(one, "round_trip_us", sc_json_us(f->assumed_us[i]), ok);
      sc_json_put(one, "floor_us", sc_json_us(run->assumed_floor_us[i]), ok);
      sc_json_push(assumed, one, ok);
    }
  }
  sc_json_put(object, "floor", floor, ok);
  sc_json_put(object, "assumed_floors", assumed, ok);
  sc_json_put(object, "forward", forward, ok);
}

static json_t *run_value(const struct sc_findings *f, const struct sc_run *run, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "variant", sc_json_text(run->variant), ok);
  sc_json_put(object, "experts", sc_json_count(run->experts), ok);
  sc_json_put(object, "top_k", sc_json_count(run->top_k), ok);
  sc_json_put(object, "tokens", sc_json_count(run->tokens), ok);
  sc_json_put(object, "hidden", sc_json_count(run->hidden), ok);
  sc_json_put(object, "intermediate", sc_json_count(run->intermediate), ok);
  sc_json_put(object, "layers", sc_json_count(run->layers), ok);
  sc_json_put(object, "model_layers", run->model_layers ? sc_json_count(run->model_layers) : json_null(), ok);
  sc_json_put(object, "dtype", sc_json_text(run->dtype), ok);
  sc_json_put(object, "forwards", sc_json_count(run->forwards), ok);
  sc_json_put(object, "hit", sc_json_counts(run->hit, run->layers), ok);
  sc_json_put(object, "routing", sc_json_text(run->routing), ok);
  sc_json_put(object, "seed", sc_json_count(run->seed), ok);
  sc_json_put(object, "activation", sc_json_text(run->activation), ok);
  sc_json_put(object, "act_quant", sc_json_text(run->act_quant), ok);
  sc_json_put(object, "nvfp4_path", sc_json_text(run->nvfp4_path), ok);
  sc_json_put(object, "verified", verified_value(run, ok), ok);
  sc_json_put(object, "counted", json_boolean(run->counted), ok);
  sc_json_put(object, "syncs", run_syncs_value(run, ok), ok);
  put_run_times(object, f, run, ok);
  sc_json_put(object, "output_matches_masked",
              run->output_matches_masked < 0 ? json_null() : json_boolean(run->output_matches_masked), ok);
  sc_json_put(object, "not_comparable", sc_json_text(run->not_comparable), ok);
  return object;
}

static json_t *laws_value(const struct sc_findings *f, bool *ok)
{
  json_t *laws;

  if (!f->law_count)
    return json_null();
  laws = json_array();
  for (size_t i = 0; i < f->law_count; i++) {
    const struct sc_law *law = &f->laws[i];
    json_t *object = json_object();

    sc_json_put(object, "variant", sc_json_text(law->variant), ok);
    sc_json_put(object, "stated", json_boolean(law->stated), ok);
    sc_json_put(object, "slope", sc_json_number(law->stated ? law->slope : NAN), ok);
    sc_json_put(object, "intercept", sc_json_number(law->stated ? law->intercept : NAN), ok);
    sc_json_put(object, "text", sc_json_text(law->text), ok);
    sc_json_push(laws, object, ok);
  }
  return laws;
}

/* ---- ranks ----------------------------------------------------------------------------------------- */

static json_t *rank_value(const struct sc_rank *rank, bool simulated, bool *ok)
{
  json_t *object = json_object();

  sc_json_put(object, "rank", sc_json_rank(rank->rank), ok);
  sc_json_put(object, "processes", sc_json_count(rank->processes), ok);
  sc_json_put(object, "syncs", sc_json_count(rank->syncs), ok);
  sc_json_put(object, "step_median", sc_json_number(rank->step_median), ok);
  sc_json_put(object, "wait_us", sc_json_us(simulated ? NAN : rank->wait_us), ok);
  sc_json_put(object, "wall_us", sc_json_us(simulated ? NAN : rank->wall_us), ok);
  return object;
}

static json_t *ranks_value(const struct sc_findings *f, bool *ok)
{
  json_t *object, *syncs, *each;
  bool simulated = sc_findings_simulated(f), apart;
  struct sc_ranks ranks = {0};

  *ok &= sc_findings_ranks(f, &ranks);
  if (!ranks.count)
    return json_null();
  object = json_object();
  syncs = json_object();
  each = json_array();
  for (size_t i = 0; i < ranks.count; i++)
    sc_json_push(each, rank_value(&ranks.list[i], simulated, ok), ok);
  sc_json_put(syncs, "total", sc_json_count(ranks.total), ok);
  sc_json_put(syncs, "min", sc_json_count(ranks.min), ok);
  sc_json_put(syncs, "max", sc_json_count(ranks.max), ok);
  sc_json_put(syncs, "usual", ranks.has_usual ? sc_json_count(ranks.usual) : json_null(), ok);
  sc_json_put(object, "syncs", syncs, ok);
  apart = !simulated && ranks.waits_most && ranks.waits_most != ranks.waits_least;
  sc_json_put(object, "waits_most", apart ? sc_json_rank(ranks.waits_most->rank) : json_null(), ok);
  sc_json_put(object, "waits_least", apart ? sc_json_rank(ranks.waits_least->rank) : json_null(), ok);
  sc_json_put(object, "each", each, ok);
  sc_ranks_free(&ranks);
  return object;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static void put_losses(json_t *root, const struct sc_findings *f, bool *ok)
{
  json_t *losses = json_object(), *warnings = json_array();
  struct sc_buf drift = {0};

  sc_json_put(losses, "records", sc_json_count(f->lost_records), ok);
  sc_json_put(losses, "chunks", sc_json_count(f->lost_chunks), ok);
  sc_json_put(root, "losses", losses, ok);
  for (size_t i = 0; i < f->warning_count; i++)
    sc_json_push(warnings, sc_json_text(f->warnings[i]), ok);
  if (sc_put_drift(&drift, f)) {
    for (size_t i = 0; i < drift.len; i++)
      if (drift.data[i] == SC_TIGHT_SPACE)
        drift.data[i] = ' ';
    sc_json_push(warnings, drift.failed ? NULL : sc_json_text(drift.data), ok);
  }
  sc_buf_free(&drift);
  sc_json_put(root, "warnings", warnings, ok);
}

static int write_chunk(const char *bytes, size_t n, void *out)
{
  sc_out_write(out, bytes, n);
  return 0;
}

enum sc_status sc_report_write_json(const struct sc_findings *f, const struct sc_report_options *options,
                                    struct sc_out *out, struct sc_error *err)
{
  json_t *root = json_object(), *runs = json_array(), *processes = json_array();
  bool ok = root && runs && processes;

  (void)options; /* a script gets everything */
  sc_json_put(root, "schema", json_string("synccount/report/1"), &ok);
  sc_json_put(root, "version", sc_json_text(f->version ? f->version : SC_VERSION), &ok);
  put_fields(root, f, &ok);
  put_times(root, f, &ok);
  for (size_t i = 0; i < f->run_count; i++)
    sc_json_push(runs, run_value(f, &f->runs[i], &ok), &ok);
  sc_json_put(root, "runs", runs, &ok);
  sc_json_put(root, "laws", laws_value(f, &ok), &ok);
  for (size_t i = 0; i < f->process_count; i++)
    sc_json_push(processes, sc_json_process(f, &f->processes[i], sc_process_is_simulated(f, &f->processes[i]), &ok), &ok);
  sc_json_put(root, "processes", processes, &ok);
  put_losses(root, f, &ok);
  sc_json_put(root, "ranks", ranks_value(f, &ok), &ok);
  if (ok)
    ok = json_dump_callback(root, write_chunk, out, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS)) == 0;
  json_decref(root);
  if (!ok)
    return sc_error_set(err, SC_ERR_NOMEM, "no memory to lay out the JSON report");
  sc_out_puts(out, "\n");
  return SC_OK;
}
