/* SPDX-License-Identifier: Apache-2.0
 * The JSON document, schema synccount/probe/1 (PROTOCOL.md). */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/passes.h"
#include "host/ruler.h"

static json_t *samples_json(const struct sc_samples *samples)
{
  json_t *out = json_array();
  for (size_t i = 0; i < samples->count; i++)
    json_array_append_new(out, json_real(samples->us[i]));
  return out;
}

/* JSON has no infinity. */
static json_t *number_json(bool known, double value)
{
  return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *verified_json(const struct sc_verification *v)
{
  return json_pack("{s:b, s:o, s:o, s:i, s:o}", "ok", v->ok, "cosine", number_json(v->measured, v->cosine), "rel_error",
                   number_json(v->measured, v->rel_error), "tokens", SC_VERIFY_TOKENS, "reason",
                   v->ok ? json_null() : json_string(v->reason));
}

static json_t *run_json(const struct sc_session *s, const struct sc_result *r)
{
  const struct sc_options *o = s->options;
  const bool rounded = r->variant->reference != NULL;
  const char *not_comparable = rounded ? "NVFP4 rounds weights and activations" : sc_not_comparable(&s->model);
  json_t *hit = r->forwards > 0 ? json_array() : json_null(); /* not measured is not 0 */
  for (uint32_t layer = 0; r->forwards > 0 && layer < s->model.layers; layer++)
    json_array_append_new(hit, json_integer(r->hit[layer]));
  json_t *run = json_pack(
      "{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:s, s:I, s:o, s:i, s:o, s:o, s:o}", "variant",
      r->variant->name, "experts", (int)r->point.experts, "tokens", (int)r->point.tokens, "top_k", (int)o->top_k,
      "hidden", (int)o->hidden, "intermediate", (int)o->intermediate, "layers", (int)s->model.layers, "model_layers",
      (int)o->model_layers, "dtype", sc_dtype_name(o->dtype), "routing", sc_route_name(o->routing), "activation",
      o->activation_name->name, "seed", (json_int_t)o->seed, "hit", hit, "forwards", (int)r->forwards, "verified",
      verified_json(&r->verified), "output_matches_masked", r->matches < 0 ? json_null() : json_boolean(r->matches),
      "not_comparable", not_comparable ? json_string(not_comparable) : json_null());
  if (run != NULL && rounded) {
    json_object_set_new(run, "act_quant", json_string(sc_act_quant_name(o->act_fp4)));
    json_object_set_new(run, "w13_layout",
                        o->activation_name->gated ? json_string(sc_w13_layout_name(o->w13_layout)) : json_null());
    json_object_set_new(run, "nvfp4_path", json_string(sc_nvfp4_path_name(o->native_fp4)));
    json_object_set_new(run, "biases", json_boolean(o->biases));
  }
  if (run != NULL && o->pass == SC_PASS_TIMES && r->verified.ok)
    json_object_set_new(run, "forward_us", samples_json(&r->forward));
  return run;
}

static const struct sc_result *find_result(const struct sc_session *s, size_t point, const char *variant)
{
  for (size_t v = 0; v < s->variant_count; v++)
    if (strcmp(s->results[point * s->variant_count + v].variant->name, variant) == 0)
      return &s->results[point * s->variant_count + v];
  return NULL;
}

static json_t *control_json(const struct sc_session *s, size_t p)
{
  const struct sc_control *c = &s->controls[p];
  json_t *steps = json_array();
  for (int i = 0; i < SC_CONTROL_STEPS; i++)
    json_array_append_new(
        steps, json_pack("{s:I, s:o}", "syncs", (json_int_t)c->syncs[i], "forward_us", samples_json(&c->steps[i])));
  json_t *out = json_pack("{s:i, s:i, s:o, s:o}", "experts", (int)c->point.experts, "tokens", (int)c->point.tokens,
                          "dense_us", samples_json(&c->dense), "steps", steps);
  static const char *const names[] = {"sorted", "masked"}, *const keys[] = {"sorted_us", "masked_us"};
  for (size_t i = 0; i < SC_COUNTOF(names); i++) {
    const struct sc_result *r = find_result(s, p, names[i]);
    if (r != NULL)
      json_object_set_new(out, keys[i], samples_json(&r->forward));
  }
  return out;
}

static json_t *notes_json(const struct sc_options *o)
{
  json_t *notes = json_array();
  json_array_append_new(notes,
                        json_string("every layer reads the same input: without the norms and attention between them, "
                                    "chained MoE layers drift to zero or infinity"));
  json_array_append_new(notes,
                        json_sprintf("routed experts only, softmax top-k routing, %s: shared experts, sigmoid and "
                                     "grouped routers are left out; they add no sync",
                                     o->biases ? "biases in fused-nvfp4 alone" : "no biases"));
  if (o->top_k > 1 && o->routing == SC_ROUTE_ONE_EXPERT)
    json_array_append_new(
        notes, json_sprintf("one-expert with top-%u: all tokens choose the same %u experts", o->top_k, o->top_k));
  return notes;
}

static void put_results(json_t *document, const struct sc_session *s)
{
  json_t *runs = json_array(), *controls = json_array(), *skipped = json_array();
  for (size_t i = 0; i < s->result_count; i++) {
    const struct sc_result *r = &s->results[i];
    if (r->skipped[0])
      json_array_append_new(skipped,
                            json_pack("{s:s, s:i, s:i, s:s}", "variant", r->variant->name, "experts",
                                      (int)r->point.experts, "tokens", (int)r->point.tokens, "reason", r->skipped));
    else
      json_array_append_new(runs, run_json(s, r));
  }
  for (size_t p = 0; p < s->point_count; p++)
    if (s->controls[p].measured)
      json_array_append_new(controls, control_json(s, p));
  json_object_set_new(document, "runs", runs);
  json_object_set_new(document, "controls", controls);
  json_object_set_new(document, "skipped", skipped);
}

/* Of a failed run the error alone: half-filled results are worth nothing. */
static json_t *build(const struct sc_session *s, const struct sc_options *o, const char *failure, struct sc_error *err)
{
  json_t *document =
      json_pack("{s:s, s:s, s:s}", "schema", "synccount/probe/1", "version", SC_VERSION, "pass", sc_pass_name(o->pass));
  if (failure != NULL) {
    json_object_set_new(document, "error", json_string(failure));
    return document;
  }
  json_t *device = sc_gpu_describe(s->gpu, err);
  if (device == NULL) {
    json_decref(document);
    return NULL;
  }
  json_t *warnings = json_array();
  json_object_set_new(document, "device", device);
  json_object_set_new(document, "ruler", s->ruler ? sc_ruler_document(s->ruler, warnings) : json_array());
  put_results(document, s);
  json_object_set_new(document, "notes", notes_json(o));
  json_object_set_new(document, "warnings", warnings);
  return document;
}

/* A device, a pipe or a link, such as /dev/null and /dev/stdout: root could replace it, and must not. */
static bool is_special(const char *path)
{
  struct stat info;
  return lstat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static bool write_whole(const json_t *document, FILE *file)
{
  bool good = json_dumpf(document, file, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0 && fputc('\n', file) != EOF;
  return fclose(file) == 0 && good;
}

static enum sc_status write_special(const json_t *document, const char *path, struct sc_error *err)
{
  FILE *file = fopen(path, "we");
  if (file == NULL || !write_whole(document, file))
    return sc_error_set(err, SC_ERR_IO, "cannot write %s: %s; choose another --output", path, strerror(errno));
  return SC_OK;
}

static enum sc_status write_file(const json_t *document, const char *path, struct sc_error *err)
{
  enum sc_status status = SC_OK;
  char *temporary = sc_asprintf("%s.tmp.%ld", path, (long)getpid());
  FILE *file = temporary ? fopen(temporary, "we") : NULL;
  if (file == NULL) {
    status = sc_error_set(err, SC_ERR_IO, "cannot create %s beside the document: %s; choose another --output", path,
                          strerror(errno));
    goto cleanup;
  }
  if (!write_whole(document, file) || rename(temporary, path) != 0) {
    status = sc_error_set(err, SC_ERR_IO, "cannot write %s: %s; free disk space or choose another --output", path,
                          strerror(errno));
    remove(temporary);
  }
cleanup:
  free(temporary);
  return status;
}

enum sc_status sc_document_write(const char *path, const struct sc_session *session, const struct sc_options *options,
                                 const char *failure, struct sc_error *err)
{
  json_t *document = build(session, options, failure, err);
  if (document == NULL)
    return err->status;
  enum sc_status status = SC_OK;
  if (path != NULL)
    status = is_special(path) ? write_special(document, path, err) : write_file(document, path, err);
  else if (json_dumpf(document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12)) != 0 || fputc('\n', stdout) == EOF ||
           fflush(stdout) != 0)
    status = sc_error_set(err, SC_ERR_IO, "cannot write the document to standard output: %s", strerror(errno));
  json_decref(document);
  return status;
}
