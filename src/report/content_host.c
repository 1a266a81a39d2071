/* SPDX-License-Identifier: Apache-2.0
 * What this host is and how long it takes to wait: ruler, facts, conditions, drift. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/content.h"

static const struct {
  const char *method, *human;
} methods[] = {
    {"launch+readback", "launch + 1-byte copy + stream sync: the round trip"},
    {"launch", "kernel launch, nothing waited for"},
    {"readback", "1-byte copy to pinned memory + stream sync"},
    {"memcpy-pageable", "cudaMemcpy of 1 byte to pageable memory"},
    {"memcpy-pinned", "cudaMemcpy of 1 byte to pinned memory"},
    {"stream-sync-idle", "stream sync, nothing outstanding"},
    {"event-spin", "launch + event sync, the host spins"},
    {"event-block", "launch + event sync, the host sleeps"},
    {"mapped-spin", "kernel writes mapped memory, the host spins on it"},
};

static void us_cell(struct sc_doc *doc, enum sc_tone tone, double us)
{
  if (isnan(us))
    sc_doc_cell(doc, SC_TONE_PLAIN, "-");
  else
    sc_doc_cell(doc, tone, "%.2f", us);
}

static void ruler_row(struct sc_doc *doc, const struct sc_ruler_row *row)
{
  struct sc_buf name = {0}, samples = {0};
  enum sc_tone tone = SC_TONE_PLAIN;
  size_t i = 0;

  while (i < SC_COUNTOF(methods) && (!row->method || strcmp(methods[i].method, row->method) != 0))
    i++;
  if (i == 0)
    tone = SC_TONE_STRONG;
  if (i < SC_COUNTOF(methods))
    sc_buf_puts(&name, methods[i].human);
  else
    sc_put_name(&name, row->method, 48);
  sc_doc_row(doc, 0);
  sc_doc_cell_take(doc, tone, &name);
  us_cell(doc, tone, row->min_us);
  us_cell(doc, tone, row->p10_us);
  us_cell(doc, tone, row->p50_us);
  us_cell(doc, tone, row->p90_us);
  us_cell(doc, tone, row->p99_us);
  sc_put_count(&samples, row->samples);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &samples);
}

static void ruler_part(struct sc_doc *doc, const struct sc_findings *f)
{
  if (!f->ruler_count || sc_findings_simulated(f))
    return;
  sc_doc_put(doc, SC_BLOCK_FOLD, SC_TONE_PLAIN, "Ruler: how long this host waits, in us, untraced");
  sc_doc_figure(doc, SC_FIGURE_RULER, 0);
  sc_doc_table(doc, 1);
  sc_doc_column(doc, false, "way of waiting");
  sc_doc_column(doc, true, "min");
  sc_doc_column(doc, true, "p10");
  sc_doc_column(doc, true, "p50");
  sc_doc_column(doc, true, "p90");
  sc_doc_column(doc, true, "p99");
  sc_doc_column(doc, true, "samples");
  for (size_t i = 0; i < f->ruler_count; i++)
    ruler_row(doc, &f->ruler[i]);
  sc_doc_table_end(doc);
  sc_doc_put(doc, SC_BLOCK_FOLD_END, SC_TONE_PLAIN, "%s", "");
}

static bool in_group(const struct sc_field *field, const char *group)
{
  size_t n = strlen(group);

  return field->group && strncmp(field->group, group, n) == 0 && (field->group[n] == '\0' || field->group[n] == '.');
}

/* "gpu_numa_node" -> "GPU NUMA node" */
static void put_key(struct sc_buf *line, const char *key)
{
  static const char *const spellings[] = {"CPU",  "CPUs", "GPU", "NUMA", "CUDA", "CUPTI",
                                          "PCIe", "SM",   "MIG", "MPS",  "WSL",  "SMT"};
  size_t from = line->len;

  sc_put_prose(line, key);
  while (from < line->len) {
    char *word = line->data + from;
    size_t n = strcspn(word, "_");

    for (size_t i = 0; i < SC_COUNTOF(spellings); i++)
      if (strlen(spellings[i]) == n && strncasecmp(word, spellings[i], n) == 0)
        memcpy(word, spellings[i], n);
    if (word[n] == '_')
      word[n] = ' ';
    from += n + 1;
  }
}

static bool is_bytes(const struct sc_field *field)
{
  size_t n = strlen(field->key);

  return field->kind == SC_FIELD_NUMBER && n > 6 && strcmp(field->key + n - 6, "_bytes") == 0;
}

/* Clocks are in Hz in JSON, and are read back from there without the line that said so. */
static bool is_clock(const struct sc_field *field)
{
  return field->kind == SC_FIELD_NUMBER && strncmp(field->key, "sm_clock_", 9) == 0;
}

/* Bytes and clocks as people say them; JSON has every one of them. */
static void put_number_field(struct sc_buf *line, const struct sc_field *field)
{
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = field->number;
  size_t unit = 0;

  if (isnan(value)) {
    sc_buf_puts(line, "not known");
  } else if (is_bytes(field)) {
    for (; fabs(value) >= 1024 && unit + 1 < SC_COUNTOF(units); unit++)
      value /= 1024;
    sc_buf_printf(line, "%.4g %s", value, units[unit]);
  } else if (is_clock(field)) {
    sc_buf_printf(line, "%.0f MHz", value / 1e6);
  } else {
    sc_buf_printf(line, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.4g", value);
  }
}

static void field_line(struct sc_doc *doc, const struct sc_field *field)
{
  struct sc_buf line = {0};

  if (field->line && !*field->line)
    return; /* told by another field's line */
  if (field->line) {
    sc_put_prose(&line, field->line);
    sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
    return;
  }
  if (strchr(field->group, '.')) {
    put_key(&line, strchr(field->group, '.') + 1);
    sc_buf_puts(&line, " ");
  }
  /* The device's name stands among the host's facts: "name" alone would not say whose. */
  put_key(&line, strcmp(field->group, "device") == 0 && strcmp(field->key, "name") == 0 ? "device" : field->key);
  if (is_bytes(field) && !line.failed)
    line.len -= strlen("_bytes"); /* the value names the unit */
  sc_buf_puts(&line, ": ");
  switch (field->kind) {
  case SC_FIELD_TEXT: sc_put_prose(&line, field->text); break;
  case SC_FIELD_NUMBER: put_number_field(&line, field); break;
  case SC_FIELD_BOOL: sc_buf_puts(&line, field->boolean ? "yes" : "no"); break;
  case SC_FIELD_NULL: sc_buf_puts(&line, "not known"); break;
  }
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
}

static bool has_group(const struct sc_findings *f, const char *group)
{
  for (size_t i = 0; i < f->field_count; i++)
    if (in_group(&f->fields[i], group))
      return true;
  return false;
}

static void fields_of(struct sc_doc *doc, const struct sc_findings *f, const char *group)
{
  for (size_t i = 0; i < f->field_count; i++)
    if (in_group(&f->fields[i], group))
      field_line(doc, &f->fields[i]);
}

static void put_version(struct sc_doc *doc, const struct sc_findings *f)
{
  struct sc_buf line = {0};

  sc_buf_puts(&line, "synccount: ");
  sc_put_prose(&line, f->version ? f->version : SC_VERSION);
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
}

void sc_content_host(struct sc_doc *doc, const struct sc_findings *f)
{
  ruler_part(doc, f);
  if (has_group(f, "host") || has_group(f, "device")) {
    sc_doc_put(doc, SC_BLOCK_FOLD, SC_TONE_PLAIN, "Host and device");
    put_version(doc, f);
    fields_of(doc, f, "host");
    fields_of(doc, f, "device");
    sc_doc_put(doc, SC_BLOCK_FOLD_END, SC_TONE_PLAIN, "%s", "");
  }
  if (has_group(f, "conditions")) {
    sc_doc_put(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, "Conditions known to move the round trip");
    fields_of(doc, f, "conditions");
  }
}

bool sc_put_drift(struct sc_buf *buf, const struct sc_findings *f)
{
  const struct sc_ruler_row *trip = sc_round_trip(f);
  double first, last;

  if (!trip || !trip->block_means_us || !sc_ruler_drifts(trip, &first, &last))
    return false;
  sc_buf_puts(buf, "DRIFT: the round trip was ");
  sc_put_time(buf, first);
  sc_buf_puts(buf, " in the first third of the run and ");
  sc_put_time(buf, last);
  sc_buf_puts(buf, " in the last, more than 20 % apart: repeat on a quieter host before you trust the times.");
  return true;
}

void sc_content_drift(struct sc_doc *doc, const struct sc_findings *f)
{
  struct sc_buf line = {0};

  if (!sc_put_drift(&line, f))
    return;
  sc_doc_put(doc, SC_BLOCK_GAP, SC_TONE_PLAIN, "%s", "");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
}
