/* SPDX-License-Identifier: Apache-2.0
 * The findings model's own helpers: make, fill, look up, free. */
#include "analysis/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tally.h"

const char *sc_class_name(enum sc_class cls)
{
  static const char *const names[SC_CLASS_COUNT] = {SC_CLASS_WORDS};
  return (unsigned)cls < SC_CLASS_COUNT ? names[cls] : "unknown";
}

int sc_class_named(const char *name)
{
  for (int i = 0; i < SC_CLASS_COUNT; ++i) {
    if (strcmp(sc_class_name((enum sc_class)i), name) == 0)
      return i;
  }
  return -1;
}

const char *sc_memory_name(unsigned memory)
{
  static const char *const names[] = {[SC_MEMORY_UNKNOWN] = "unknown", [SC_MEMORY_PAGEABLE] = "pageable",
                                      [SC_MEMORY_PINNED] = "pinned",   [SC_MEMORY_DEVICE] = "device",
                                      [SC_MEMORY_MANAGED] = "managed", [SC_MEMORY_ARRAY] = "array"};
  return names[memory < SC_COUNTOF(names) ? memory : SC_MEMORY_UNKNOWN];
}

const char *sc_direction_name(unsigned direction)
{
  static const char *const names[] = {[SC_DIRECTION_H2D] = "host-to-device",
                                      [SC_DIRECTION_D2H] = "device-to-host",
                                      [SC_DIRECTION_D2D] = "device-to-device",
                                      [SC_DIRECTION_H2H] = "host-to-host"};
  return direction < SC_COUNTOF(names) ? names[direction] : NULL;
}

struct sc_findings *sc_findings_new(void)
{
  struct sc_findings *findings = calloc(1, sizeof *findings);
  if (!findings)
    return NULL;
  findings->version = sc_strdup(SC_VERSION);
  if (!findings->version) {
    free(findings);
    return NULL;
  }
  return findings;
}

void sc_run_init(struct sc_run *run)
{
  *run = (struct sc_run){.cosine = NAN,
                         .rel_error = NAN,
                         .per_forward = NAN,
                         .per_layer_mean = NAN,
                         .expected_per_layer = NAN,
                         .bound_per_layer = NAN,
                         .floor_low_us = NAN,
                         .floor_mean_us = NAN,
                         .floor_high_us = NAN,
                         .forward_p10_us = NAN,
                         .forward_p50_us = NAN,
                         .forward_p90_us = NAN,
                         .output_matches_masked = -1};
}

struct sc_process *sc_findings_process(struct sc_findings *f)
{
  struct sc_process *process = sc_array_push(&f->processes, &f->process_count, &f->process_cap, sizeof *process);
  if (process)
    process->wall_us = process->step_median = process->drain_gap_total_us = process->drain_gap_p50_us =
        process->start_cost_us = process->call_cost_us = process->launch_cost_us = process->told_cost_us = NAN;
  return process;
}

static void free_rows(uint64_t **rows, uint64_t count)
{
  for (uint64_t i = 0; rows && i < count; ++i)
    free(rows[i]);
  free(rows);
}

void sc_run_free_counts(struct sc_run *run)
{
  for (size_t i = 0; run->by_op && i < run->by_op_count; ++i)
    free(run->by_op[i].name);
  free(run->by_op);
  free(run->by_expert);
  free_rows(run->by_expert_op, run->experts);
  free_rows(run->by_layer_expert, run->layers);
  free(run->by_layer_outside);
}

static void free_run(struct sc_run *run)
{
  free(run->variant);
  free(run->dtype);
  free(run->routing);
  free(run->activation);
  free(run->act_quant);
  free(run->nvfp4_path);
  free(run->hit);
  free(run->not_verified);
  sc_run_free_counts(run);
  free(run->assumed_floor_us);
  free(run->not_comparable);
}

static void free_frames(struct sc_frame *frames, size_t count)
{
  for (size_t i = 0; i < count; ++i) {
    free(frames[i].file);
    free(frames[i].function);
  }
  free(frames);
}

void sc_site_free(struct sc_site *site)
{
  free(site->id);
  free(site->api);
  free(site->pattern);
  free(site->remedy);
  free(site->range);
  free(site->direction);
  free(site->memory);
  free_frames(site->python, site->python_count);
  free_frames(site->native, site->native_count);
}

static void free_process(struct sc_process *process)
{
  sc_events_free(process->events);
  free(process->host);
  free(process->command);
  free(process->trace_path);
  free(process->cwd);
  free(process->rank);
  free(process->local_rank);
  for (size_t i = 0; i < process->thread_count; ++i)
    free(process->threads[i].name);
  free(process->threads);
  for (size_t i = 0; i < process->range_count; ++i) {
    free(process->ranges[i].path);
    free(process->ranges[i].name);
    free(process->ranges[i].domain);
    free(process->ranges[i].level);
  }
  free(process->ranges);
  for (size_t i = 0; i < process->site_count; ++i)
    sc_site_free(&process->sites[i]);
  free(process->sites);
  for (size_t i = 0; i < process->module_count; ++i) {
    free(process->modules[i].path);
    free(process->modules[i].build_id);
  }
  free(process->modules);
  sc_tally_free(process->tally);
}

static void free_field(struct sc_field *field)
{
  free(field->group);
  free(field->key);
  free(field->text);
}

void sc_findings_free(struct sc_findings *findings)
{
  if (!findings)
    return;
  free(findings->version);
  for (size_t i = 0; i < findings->field_count; ++i)
    free_field(&findings->fields[i]);
  free(findings->fields);
  for (size_t i = 0; i < findings->ruler_count; ++i) {
    free(findings->ruler[i].method);
    free(findings->ruler[i].block_means_us);
  }
  free(findings->ruler);
  free(findings->marginal);
  for (size_t i = 0; i < findings->run_count; ++i)
    free_run(&findings->runs[i]);
  free(findings->runs);
  for (size_t i = 0; i < findings->control_count; ++i)
    free(findings->controls[i].steps);
  free(findings->controls);
  for (size_t i = 0; i < findings->law_count; ++i) {
    free(findings->laws[i].variant);
    free(findings->laws[i].text);
  }
  free(findings->laws);
  for (size_t i = 0; i < findings->process_count; ++i)
    free_process(&findings->processes[i]);
  free(findings->processes);
  free(findings->assumed_us);
  for (size_t i = 0; i < findings->warning_count; ++i)
    free(findings->warnings[i]);
  free(findings->warnings);
  free(findings);
}

bool sc_findings_warn(struct sc_findings *findings, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *warning = NULL;
  int length = vasprintf(&warning, format, args);
  va_end(args);
  if (length < 0)
    return false;
  for (size_t i = 0; i < findings->warning_count; ++i) {
    if (strcmp(findings->warnings[i], warning) == 0) {
      free(warning);
      return true;
    }
  }
  char **slot = sc_array_push(&findings->warnings, &findings->warning_count, &findings->warning_cap, sizeof *slot);
  if (!slot) {
    free(warning);
    return false;
  }
  *slot = warning;
  return true;
}

/* A field that is given again is replaced: the last word counts, and no format shows a key twice. */
static struct sc_field *field_slot(struct sc_findings *f, const char *group, const char *key)
{
  struct sc_field *field = (struct sc_field *)sc_findings_field(f, group, key);
  if (field) {
    free(field->text);
    field->text = NULL;
    return field;
  }
  char *new_group = sc_strdup(group), *new_key = sc_strdup(key);
  if (new_group && new_key)
    field = sc_array_push(&f->fields, &f->field_count, &f->field_cap, sizeof *field);
  if (!field) {
    free(new_group);
    free(new_key);
    return NULL;
  }
  field->group = new_group;
  field->key = new_key;
  field->kind = SC_FIELD_NULL;
  return field;
}

bool sc_findings_text(struct sc_findings *f, const char *group, const char *key, const char *value)
{
  char *text = sc_strdup(value);
  if (value && !text)
    return false;
  struct sc_field *field = field_slot(f, group, key);
  if (!field) {
    free(text);
    return false;
  }
  field->kind = text ? SC_FIELD_TEXT : SC_FIELD_NULL;
  field->text = text;
  return true;
}

bool sc_findings_number(struct sc_findings *f, const char *group, const char *key, double value)
{
  struct sc_field *field = field_slot(f, group, key);
  if (!field)
    return false;
  field->kind = isfinite(value) ? SC_FIELD_NUMBER : SC_FIELD_NULL;
  field->number = value;
  return true;
}

bool sc_findings_bool(struct sc_findings *f, const char *group, const char *key, bool value)
{
  struct sc_field *field = field_slot(f, group, key);
  if (!field)
    return false;
  field->kind = SC_FIELD_BOOL;
  field->boolean = value;
  return true;
}

void sc_findings_forget(struct sc_findings *f, const char *group, const char *key)
{
  size_t kept = 0;
  for (size_t i = 0; i < f->field_count; ++i) {
    struct sc_field *field = &f->fields[i];
    if (strcmp(field->group, group) == 0 && (!key || strcmp(field->key, key) == 0)) {
      free_field(field);
    } else {
      f->fields[kept++] = *field;
    }
  }
  f->field_count = kept;
}

const struct sc_field *sc_findings_field(const struct sc_findings *f, const char *group, const char *key)
{
  for (size_t i = 0; i < f->field_count; ++i) {
    if (strcmp(f->fields[i].group, group) == 0 && strcmp(f->fields[i].key, key) == 0)
      return &f->fields[i];
  }
  return NULL;
}

const struct sc_ruler_row *sc_findings_ruler(const struct sc_findings *f, const char *method)
{
  for (size_t i = 0; i < f->ruler_count; ++i) {
    if (strcmp(f->ruler[i].method, method) == 0)
      return &f->ruler[i];
  }
  return NULL;
}
