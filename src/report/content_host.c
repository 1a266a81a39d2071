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
  if (sc_content_has_facts(f, "host") || sc_content_has_facts(f, "device")) {
    sc_doc_put(doc, SC_BLOCK_FOLD, SC_TONE_PLAIN, "Host and device");
    put_version(doc, f);
    sc_content_facts(doc, f, "host");
    sc_content_facts(doc, f, "device");
    sc_doc_put(doc, SC_BLOCK_FOLD_END, SC_TONE_PLAIN, "%s", "");
  }
  if (sc_content_has_facts(f, "conditions")) {
    sc_doc_put(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, "Conditions known to move the round trip");
    sc_content_facts(doc, f, "conditions");
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
