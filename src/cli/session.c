/* SPDX-License-Identifier: Apache-2.0
 * The session file, and documents and traces into findings. */
#include "cli/session.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "cli/document.h"

#define SCHEMA "synccount/session/1"

/* ---- writing ----------------------------------------------------------------------------------- */

static json_t *field_json(const struct sc_field *field)
{
  json_t *value = field->kind == SC_FIELD_TEXT     ? json_string(field->text)
                  : field->kind == SC_FIELD_NUMBER ? json_real(field->number)
                  : field->kind == SC_FIELD_BOOL   ? json_boolean(field->boolean)
                                                   : json_null();
  return json_pack("{s:s, s:s, s:o}", "group", field->group, "key", field->key, "value", value);
}

static json_t *files_json(const struct folder *folder, const char *pattern)
{
  char **names;
  size_t count;
  json_t *list = json_array();
  if (folder_names(folder->path, pattern, &names, &count, NULL) != SC_OK)
    return list;
  for (size_t i = 0; i < count; ++i)
    json_array_append_new(list, json_string(names[i]));
  folder_free_names(names, count);
  return list;
}

static json_t *documents_json(const struct folder *folder)
{
  static const char *const documents[] = {SESSION_TIMES, SESSION_COUNTS, SESSION_RULER};
  json_t *list = json_array();
  for (size_t i = 0; i < SC_COUNTOF(documents); ++i) {
    char *path = folder_file(folder, documents[i]);
    if (path && access(path, F_OK) == 0)
      json_array_append_new(list, json_string(documents[i]));
    free(path);
  }
  return list;
}

/* How the traces of a run are read, or null. */
static json_t *run_json(const struct sc_analysis_options *options)
{
  if (!options)
    return json_null();
  json_t *rules = json_array();
  for (size_t i = 0; i < options->level_count; ++i)
    json_array_append_new(
        rules, json_pack("{s:s, s:s}", "pattern", options->levels[i].pattern, "level", options->levels[i].level));
  if (json_array_size(rules) != options->level_count) {
    json_decref(rules);
    return NULL;
  }
  return json_pack("{s:I, s:s?, s:o, s:b}", "warmup", (json_int_t)options->warmup, "from", options->from, "ranges",
                   rules, "capture_range", options->capture_range);
}

enum sc_status session_write(const struct folder *folder, const struct session_notes *notes, struct sc_error *err)
{
  json_t *fields = json_array(), *assumed = json_array(), *warnings = json_array();
  enum sc_status status = SC_OK;
  for (size_t i = 0; i < notes->facts->field_count; ++i)
    json_array_append_new(fields, field_json(&notes->facts->fields[i]));
  for (size_t i = 0; i < notes->assumed_count; ++i)
    json_array_append_new(assumed, json_real(notes->assumed_us[i]));
  for (size_t i = 0; i < notes->facts->warning_count; ++i)
    json_array_append_new(warnings, json_string(notes->facts->warnings[i]));
  bool whole = json_array_size(fields) == notes->facts->field_count &&
               json_array_size(assumed) == notes->assumed_count &&
               json_array_size(warnings) == notes->facts->warning_count;
  json_t *root = json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", SCHEMA, "version", SC_VERSION,
                           "simulated", notes->simulated, "documents", documents_json(folder), "traces",
                           files_json(folder, "*" SC_TRACE_SUFFIX), "fields", fields, "assumed_us", assumed, "warnings",
                           warnings, "run", run_json(notes->run));
  char *path = folder_file(folder, SESSION_FILE), *part = folder_file(folder, SESSION_FILE ".part");
  if (!whole || !root || !path || !part)
    status = sc_error_no_memory(err);
  /* A whole file or none: others may read the folder while their ranks still run. */
  else if (json_dump_file(root, part, JSON_INDENT(1)) != 0 || rename(part, path) != 0) {
    status = sc_error_set(err, SC_ERR_SYSTEM, "cannot write %s: %s", path, strerror(errno));
    unlink(part);
  }
  json_decref(root);
  free(path);
  free(part);
  return status;
}

/* ---- reading the session file ------------------------------------------------------------------ */

bool session_is_there(const char *path)
{
  char *file = sc_asprintf("%s/" SESSION_FILE, path);
  bool there = file && access(file, F_OK) == 0;
  free(file);
  return there;
}

static enum sc_status malformed(const char *path, const char *what, struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_FORMAT, "%s/" SESSION_FILE ": %s: damaged, or not written by synccount", path, what);
}

static bool load_field(const json_t *object, struct sc_findings *findings)
{
  const char *group = json_string_value(json_object_get(object, "group")),
             *key = json_string_value(json_object_get(object, "key"));
  const json_t *value = json_object_get(object, "value");
  if (!group || !key)
    return false;
  if (json_is_string(value))
    return sc_findings_text(findings, group, key, json_string_value(value));
  if (json_is_number(value))
    return sc_findings_number(findings, group, key, json_number_value(value));
  return json_is_boolean(value) && sc_findings_bool(findings, group, key, json_is_true(value));
}

static bool load_notes(const json_t *root, struct sc_findings *findings)
{
  const json_t *fields = json_object_get(root, "fields"), *assumed = json_object_get(root, "assumed_us"),
               *warnings = json_object_get(root, "warnings");
  const json_t *item;
  size_t i, count = json_array_size(assumed);
  if (!json_is_array(fields) || !json_is_array(assumed) || !json_is_array(warnings))
    return false;
  json_array_foreach(fields, i, item)
  {
    if (!load_field(item, findings))
      return false;
  }
  json_array_foreach(warnings, i, item)
  {
    if (!json_is_string(item) || !sc_findings_warn(findings, "%s", json_string_value(item)))
      return false;
  }
  if (count && !(findings->assumed_us = sc_calloc_array(count, sizeof *findings->assumed_us)))
    return false;
  findings->assumed_count = count;
  json_array_foreach(assumed, i, item)
  {
    findings->assumed_us[i] = json_number_value(item);
    if (!json_is_number(item) || !isfinite(findings->assumed_us[i]) || findings->assumed_us[i] < 0)
      return false;
  }
  findings->simulated |= json_is_true(json_object_get(root, "simulated"));
  return true;
}

static enum sc_status read_session_file(const char *path, json_t **out, struct sc_error *err)
{
  json_error_t why;
  char *file = sc_asprintf("%s/" SESSION_FILE, path);
  if (!file)
    return sc_error_no_memory(err);
  FILE *stream = folder_read_file(file);
  free(file);
  if (!stream)
    return sc_error_set(err, SC_ERR_IO, "cannot read %s/" SESSION_FILE ": %s", path, strerror(errno));
  json_t *root = json_loadf(stream, JSON_REJECT_DUPLICATES, &why);
  fclose(stream);
  if (!root)
    return malformed(path, why.text, err);
  const char *schema = json_string_value(json_object_get(root, "schema"));
  if (!schema || strcmp(schema, SCHEMA) != 0) {
    sc_error_set(err, SC_ERR_VERSION, "%s/" SESSION_FILE ": its schema is '%.60s', this synccount reads '" SCHEMA "'",
                 path, schema ? schema : "(none)");
    json_decref(root);
    return SC_ERR_VERSION;
  }
  *out = root;
  return SC_OK;
}

/* ---- documents and traces ---------------------------------------------------------------------- */

static enum sc_status add_document(const char *path, const char *name, struct sc_findings *findings,
                                   struct session_outcome *outcome, struct sc_error *err)
{
  struct document *document = NULL;
  char *file = sc_asprintf("%s/%s", path, name);
  enum sc_status status = file ? document_read(file, &document, err) : sc_error_no_memory(err);
  if (status == SC_OK)
    status = document_add_ruler(document, findings, err);
  if (status == SC_OK)
    status = document_add_runs(document, findings, err);
  if (status == SC_OK)
    status = document_add_controls(document, findings, err);
  if (status == SC_OK)
    status = document_add_skipped(document, findings, &outcome->skipped, err);
  if (status == SC_OK)
    status = document_add_warnings(document, findings, err);
  document_free(document);
  free(file);
  return status;
}

/* A plain name: a session must not make us read elsewhere. */
static const char *file_name(const json_t *item)
{
  const char *name = json_string_value(item);
  return name && *name && !strchr(name, '/') && strcmp(name, "..") != 0 ? name : NULL;
}

static enum sc_status add_documents(const char *path, const json_t *root, struct sc_findings *findings,
                                    struct session_outcome *outcome, struct sc_error *err)
{
  const json_t *documents = json_object_get(root, "documents"), *item;
  size_t i;
  enum sc_status status = json_is_array(documents) ? SC_OK : malformed(path, "'documents' is no list", err);
  json_array_foreach(documents, i, item)
  {
    const char *name = file_name(item);
    status = name ? add_document(path, name, findings, outcome, err)
                  : malformed(path, "'documents' holds no file name", err);
    if (status != SC_OK)
      break;
  }
  return status;
}

/* The process that came from this trace, or from a copy of it; NULL: none did. */
static const struct sc_process *same_trace(const struct sc_findings *findings, const struct sc_trace_header *header)
{
  for (size_t i = 0; i < findings->process_count; ++i) {
    const struct sc_process *p = &findings->processes[i];
    if (p->pid == header->pid && p->trace_start_ns && p->trace_start_ns == header->start_mono_ns &&
        p->trace_start_ns + (uint64_t)p->clock_offset_ns == header->start_real_ns && p->host &&
        strncmp(p->host, header->host, sizeof header->host) == 0)
      return p;
  }
  return NULL;
}

enum sc_status session_add_trace(const char *file, const struct sc_analysis_options *options,
                                 struct sc_findings *findings, struct sc_error *err)
{
  struct sc_reader *reader = NULL;
  enum sc_status status = sc_reader_open(file, &reader, err);
  const struct sc_process *same = status == SC_OK ? same_trace(findings, sc_reader_header(reader)) : NULL;
  if (same && !sc_findings_warn(findings, "'%s' is left out: it is the same trace as '%s', of process %" PRIu64 ".",
                                file, same->trace_path ? same->trace_path : "another one", same->pid))
    status = sc_error_no_memory(err);
  else if (status == SC_OK && !same)
    status = sc_analysis_read(reader, options, findings, err);
  sc_reader_close(reader);
  return status;
}

enum sc_status session_count_loss(const struct sc_error *why, struct sc_findings *findings, struct sc_error *err)
{
  ++findings->lost_chunks;
  return sc_findings_warn(findings, "%s", why->message) ? SC_OK : sc_error_no_memory(err);
}

static enum sc_status add_trace(const char *path, const char *name, const struct sc_analysis_options *options,
                                struct sc_findings *into, struct sc_error *err)
{
  char *file = sc_asprintf("%s/%s", path, name);
  enum sc_status status = file ? session_add_trace(file, options, into, err) : sc_error_no_memory(err);
  free(file);
  return status;
}

/* All traces of the session into findings of their own: the main report holds runs, not processes. */
static enum sc_status read_traces(const char *path, const json_t *root, const struct sc_findings *findings,
                                  struct sc_findings *traced, struct sc_error *err)
{
  const json_t *traces = json_object_get(root, "traces"), *item;
  const struct sc_analysis_options options = {.max_ranges = sc_runs_range_paths(findings->runs, findings->run_count)};
  size_t i;
  enum sc_status status = json_is_array(traces) ? SC_OK : malformed(path, "'traces' is no list", err);
  json_array_foreach(traces, i, item)
  {
    const char *name = file_name(item);
    status = name ? add_trace(path, name, &options, traced, err) : malformed(path, "'traces' holds no file name", err);
    if (status != SC_OK)
      break;
  }
  return status;
}

/* A run is counted from the trace that has its range; the others say that they do not have it. */
static void count_run(struct sc_run *run, const struct sc_findings *traced, struct sc_findings *findings)
{
  struct sc_error err = {.message = "no process was traced"};
  for (size_t i = 0; i < traced->process_count; ++i) {
    if (sc_runs_count(run, &traced->processes[i], &err) == SC_OK)
      return;
  }
  sc_findings_warn(findings, "%s", err.message);
}

static bool take_warnings(const struct sc_findings *traced, struct sc_findings *findings)
{
  for (size_t i = 0; i < traced->warning_count; ++i) {
    if (!sc_findings_warn(findings, "%s", traced->warnings[i]))
      return false;
  }
  findings->lost_records += traced->lost_records;
  findings->lost_chunks += traced->lost_chunks;
  findings->simulated |= traced->simulated;
  return true;
}

static void judge(const struct sc_findings *findings, struct session_outcome *outcome)
{
  for (size_t i = 0; i < findings->run_count; ++i) {
    const struct sc_run *run = &findings->runs[i];
    /* With calls that may or may not be syncs a count is neither right nor wrong. */
    const bool certain = run->counted && run->counts.uncertain == 0;
    outcome->unverified += !run->verified;
    outcome->uncounted += !certain;
    outcome->unexpected +=
        (certain && !isnan(run->expected_per_layer) && !run->exact) || run->output_matches_masked == 0;
  }
}

static enum sc_status count_runs(const char *path, const json_t *root, struct sc_findings *findings,
                                 struct session_outcome *outcome, struct sc_error *err)
{
  if (findings->run_count == 0)
    return SC_OK;
  struct sc_findings *traced = sc_findings_new();
  enum sc_status status = traced ? read_traces(path, root, findings, traced, err) : sc_error_no_memory(err);
  if (status == SC_OK && !take_warnings(traced, findings))
    status = sc_error_no_memory(err);
  for (size_t i = 0; status == SC_OK && i < findings->run_count; ++i) {
    sc_runs_expect(&findings->runs[i]);
    count_run(&findings->runs[i], traced, findings);
  }
  if (status == SC_OK && (!sc_runs_floor(findings) || !sc_runs_laws(findings)))
    status = sc_error_no_memory(err);
  if (status == SC_OK)
    judge(findings, outcome);
  sc_findings_free(traced);
  return status;
}

bool session_measured(const struct sc_findings *findings)
{
  for (size_t i = 0; i < findings->process_count; ++i) {
    if (!findings->processes[i].unmeasured)
      return true;
  }
  return false;
}

/* ---- the traces of a run: each is a process ------------------------------------------------------- */

/* What the run was read with. Strings are borrowed from root; free out->levels. */
static bool run_options(const json_t *run, struct sc_analysis_options *out)
{
  const json_t *rules = json_object_get(run, "ranges"), *warmup = json_object_get(run, "warmup"), *item;
  size_t i, count = json_array_size(rules);
  struct sc_level_rule *levels = sc_calloc_array(count + 1, sizeof *levels);
  *out = (struct sc_analysis_options){.levels = levels, .level_count = count};
  if (!levels || !json_is_array(rules) || !json_is_integer(warmup) || json_integer_value(warmup) < 0)
    return false;
  json_array_foreach(rules, i, item)
  {
    levels[i].pattern = json_string_value(json_object_get(item, "pattern"));
    levels[i].level = json_string_value(json_object_get(item, "level"));
    if (!levels[i].pattern || !levels[i].level || !sc_analysis_has_level(levels[i].level))
      return false;
  }
  out->warmup = (uint64_t)json_integer_value(warmup);
  out->from = json_string_value(json_object_get(run, "from"));
  out->capture_range = json_is_true(json_object_get(run, "capture_range"));
  return true;
}

static void override(struct sc_analysis_options *options, const struct sc_analysis_options *asked)
{
  if (!asked)
    return;
  if (asked->level_count) {
    options->levels = asked->levels;
    options->level_count = asked->level_count;
  }
  if (asked->warmup)
    options->warmup = asked->warmup;
  if (asked->from)
    options->from = asked->from;
  options->capture_range |= asked->capture_range;
  options->events |= asked->events;
  options->tally |= asked->tally;
}

static enum sc_status load_run(const char *path, const json_t *root, const struct sc_analysis_options *asked,
                               struct sc_findings *findings, struct sc_error *err)
{
  const json_t *run = json_object_get(root, "run"), *traces = json_object_get(root, "traces"), *item;
  struct sc_analysis_options options;
  size_t i;
  if (!run || json_is_null(run))
    return SC_OK;
  enum sc_status status = SC_OK;
  const bool sound = run_options(run, &options) && json_is_array(traces);
  const struct sc_level_rule *stored = options.levels;
  override(&options, asked);
  if (!sound)
    status = malformed(path, "'run' is not as described", err);
  json_array_foreach(traces, i, item)
  {
    if (status != SC_OK)
      break;
    const char *name = file_name(item);
    struct sc_error why = {0};
    status =
        name ? add_trace(path, name, &options, findings, &why) : malformed(path, "'traces' holds no file name", &why);
    if (name && (status == SC_ERR_FORMAT || status == SC_ERR_IO))
      status = session_count_loss(&why, findings, &why);
    if (status != SC_OK)
      sc_error_set(err, status, "%s", why.message);
  }
  free((void *)stored);
  return status;
}

/* notes: those of the session, beside its documents and traces. */
static enum sc_status load(const char *path, const struct sc_analysis_options *options, struct sc_findings *notes,
                           struct sc_findings *findings, struct session_outcome *outcome, struct sc_error *err)
{
  json_t *root = NULL;
  enum sc_status status = read_session_file(path, &root, err);
  if (status == SC_OK && !load_notes(root, notes))
    status = malformed(path, "its fields, warnings or assumed round trips are not as described", err);
  if (status == SC_OK)
    status = add_documents(path, root, findings, outcome, err);
  if (status == SC_OK)
    status = count_runs(path, root, findings, outcome, err);
  if (status == SC_OK)
    status = load_run(path, root, options, findings, err);
  outcome->nothing = json_is_object(json_object_get(root, "run")) && !session_measured(findings);
  json_decref(root);
  return status;
}

enum sc_status session_load(const char *path, const struct sc_analysis_options *options, struct sc_findings *findings,
                            struct session_outcome *outcome, struct sc_error *err)
{
  *outcome = (struct session_outcome){0};
  return load(path, options, findings, findings, outcome, err);
}

enum sc_status session_add(const char *path, const struct sc_analysis_options *options, struct sc_findings *findings,
                           struct session_outcome *outcome, struct sc_error *err)
{
  struct sc_findings *notes = sc_findings_new();
  enum sc_status status = notes ? load(path, options, notes, findings, outcome, err) : sc_error_no_memory(err);
  if (status == SC_OK && !take_warnings(notes, findings))
    status = sc_error_no_memory(err);
  sc_findings_free(notes);
  return status;
}
