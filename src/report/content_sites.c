/* SPDX-License-Identifier: Apache-2.0
 * Where the syncs of a process come from, costliest first, and what to do about each kind of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/content.h"

enum {
  SITE_ROWS = 20,
  WIDTH = 100,          /* where none is known */
  NARROW = 94,          /* below it a wait is not taken apart */
  FIGURES = 56,         /* columns in front of a site's text, and the gap behind it */
  FIGURES_ALONE = 37,   /* without the parts of a wait */
  FIGURE_STEP = 8,      /* less where nothing is told a step */
  WIDEST = 240,
  FIGURE_DRAIN = 11,    /* what the drain gaps take, of a trace that has any */
  SITE_LEAST = 30,      /* its text, on a very narrow terminal */
  FUNCTION_LEAST = 8,
  FIGURE_COLUMNS = 5
};

struct sites {
  struct sc_doc *doc;
  const struct sc_process *process;
  double trip_us; /* NaN: not known */
  bool simulated;
  size_t columns; /* of a site's text */
};

/* "model/moe.py:163 in forward"; without a file the function alone, which then names its library. */
static void put_place(struct sc_buf *text, const struct sites *sites, const struct sc_frame *frame)
{
  size_t used;

  if (!frame->file) {
    sc_put_name(text, frame->function, sites->columns);
    return;
  }
  sc_put_name(text, sc_process_file(sites->process, frame->file), sites->columns - FUNCTION_LEAST - 4);
  if (frame->line)
    sc_buf_printf(text, ":%llu", (unsigned long long)frame->line);
  used = (text->data ? sc_text_columns(text->data, text->len) : 0) + 4;
  if (used + FUNCTION_LEAST > sites->columns)
    return;
  sc_buf_puts(text, " in ");
  sc_put_name(text, frame->function, sites->columns - used);
}

/* "38.2 us = 11.1 + 27.1": round trip and rest. A wait can be shorter than a round trip, if what it waits for is done. */
static void put_wait(struct sc_buf *text, const struct sc_site *s, double trip_us)
{
  sc_put_time(text, s->wait_p50_us);
  if (isnan(s->wait_p50_us) || isnan(trip_us) || s->kind != SC_SITE_SYNC)
    return;
  if (s->wait_p50_us < trip_us) {
    sc_buf_puts(text, " < round trip");
    return;
  }
  if (s->wait_p50_us < 999.5) {
    sc_buf_printf(text, " = %.1f + %.1f", trip_us, s->wait_p50_us - trip_us);
    return;
  }
  sc_buf_puts(text, " = ");
  sc_put_time(text, trip_us);
  sc_buf_puts(text, " + ");
  sc_put_time(text, s->wait_p50_us - trip_us);
}

/* ---- rows that tell more of the site above them ------------------------------------------------- */

static void detail_row(struct sc_doc *doc, struct sc_buf *text)
{
  if (!text->len && !text->failed)
    return;
  sc_doc_row(doc, 0);
  for (int column = 0; column < FIGURE_COLUMNS; column++)
    sc_doc_cell(doc, SC_TONE_PLAIN, "%s", "");
  sc_doc_cell_take(doc, SC_TONE_NOTE, text);
}

/* Adds a piece to the row that is being filled, or begins a new one; takes the piece. */
static void detail(const struct sites *sites, struct sc_buf *row, struct sc_buf *piece)
{
  size_t used = row->len ? sc_text_columns(row->data, row->len) + 2 : 0;

  if (used && piece->len && used + sc_text_columns(piece->data, piece->len) + 1 > sites->columns) {
    sc_buf_puts(row, ",");
    detail_row(sites->doc, row);
    *row = (struct sc_buf){0};
  } else if (used && piece->len) {
    sc_buf_puts(row, ", ");
  }
  if (piece->len)
    sc_buf_append(row, piece->data, piece->len);
  row->failed |= piece->failed;
  sc_buf_free(piece);
}

static void put_copy(struct sc_buf *text, const struct sc_site *s)
{
  static const struct {
    const char *direction, *words;
  } ways[] = {{"device-to-host", "to host"},
              {"host-to-device", "to device"},
              {"host-to-host", "host to host"},
              {"device-to-device", "on device"}};
  const char *way = s->direction;

  for (size_t i = 0; i < SC_COUNTOF(ways); i++)
    if (strcmp(s->direction, ways[i].direction) == 0)
      way = ways[i].words;
  sc_put_count(text, s->bytes);
  sc_buf_printf(text, " byte%s ", sc_plural(s->bytes));
  if (way == s->direction)
    sc_put_name(text, way, 20);
  else
    sc_buf_puts(text, way);
}

/* "scalar read-back (explicit), cudaStreamSynchronize, 1 byte to host, pinned, in forward/layer:0" */
static void details(const struct sites *sites, const struct sc_site *s)
{
  struct sc_buf row = {0}, piece = {0};

  if (s->pattern)
    sc_put_name(&piece, s->pattern, 32);
  sc_buf_printf(&piece, " (%s)",
                s->kind == SC_SITE_SYNC   ? sc_class_name(s->cls)
                : s->kind == SC_SITE_POLL ? "no sync"
                                          : "refused");
  detail(sites, &row, &piece);
  sc_put_name(&piece, s->api, sites->columns);
  detail(sites, &row, &piece);
  if (s->direction) {
    put_copy(&piece, s);
    detail(sites, &row, &piece);
    if (s->memory && strcmp(s->memory, "unknown") == 0)
      sc_buf_puts(&piece, "memory of unknown kind");
    else if (s->memory)
      sc_put_name(&piece, s->memory, 20);
    detail(sites, &row, &piece);
  }
  if (s->range) {
    sc_buf_puts(&piece, "in ");
    sc_put_name(&piece, s->range, sites->columns - 3);
    detail(sites, &row, &piece);
  }
  detail_row(sites->doc, &row);
}

/* ---- the table ------------------------------------------------------------------------------------- */

static void site_rows(const struct sites *sites, const struct sc_site *s)
{
  const struct sc_frame *frame = sc_site_frame(s);
  struct sc_doc *doc = sites->doc;
  struct sc_buf count = {0}, step = {0}, total = {0}, wait = {0}, drain = {0}, place = {0};

  sc_doc_row(doc, 0);
  sc_put_count(&count, s->count);
  sc_doc_cell_take(doc, SC_TONE_STRONG, &count);
  sc_put_number(&step, s->per_step);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &step);
  sc_put_time(&total, sites->simulated ? NAN : s->wait_total_us);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &total);
  if (!sites->simulated)
    put_wait(&wait, s, sites->trip_us);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &wait);
  if (!sites->simulated && !isnan(s->drain_gap_total_us))
    sc_put_time(&drain, s->drain_gap_total_us);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &drain);
  if (frame)
    put_place(&place, sites, frame);
  else
    sc_buf_puts(&place, "no stack");
  sc_doc_cell_take(doc, SC_TONE_STRONG, &place);
  details(sites, s);
}

/* One sentence for each pattern that was shown, in the order of what it costs. */
static void remedies_list(struct sc_doc *doc, const struct sc_process *p, size_t shown)
{
  sc_doc_put(doc, SC_BLOCK_GAP, SC_TONE_PLAIN, "%s", "");
  for (size_t i = 0; i < shown; i++) {
    const struct sc_site *s = &p->sites[i];
    struct sc_buf line = {0};
    bool said = !s->pattern || !s->remedy;

    for (size_t k = 0; k < i && !said; k++)
      said = p->sites[k].pattern && p->sites[k].remedy && strcmp(p->sites[k].pattern, s->pattern) == 0 &&
             strcmp(p->sites[k].remedy, s->remedy) == 0;
    if (said)
      continue;
    sc_put_prose(&line, s->pattern);
    sc_buf_puts(&line, ": ");
    sc_put_prose(&line, s->remedy);
    sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
  }
}

static bool has_steps(const struct sc_process *p, size_t shown)
{
  for (size_t i = 0; i < shown; i++)
    if (!isnan(p->sites[i].per_step))
      return true;
  return false;
}

void sc_content_sites(struct sc_doc *doc, const struct sc_process *p, bool simulated, const struct sc_ruler_row *trip,
                      unsigned width)
{
  const size_t shown = p->site_count < SITE_ROWS ? p->site_count : SITE_ROWS;
  struct sites sites = {
      .doc = doc, .process = p, .trip_us = trip && !simulated ? trip->p50_us : NAN, .simulated = simulated};

  if (!p->site_count)
    return;
  width = !width ? WIDTH : width < WIDEST ? width : WIDEST;
  if (width < NARROW)
    sites.trip_us = NAN;
  unsigned figures = isnan(sites.trip_us) ? FIGURES_ALONE : FIGURES;
  for (size_t i = 0; i < shown && figures < FIGURES; i++) { /* a trace of another tool has them, and no round trip */
    if (!simulated && !isnan(p->sites[i].drain_gap_total_us)) {
      figures += FIGURE_DRAIN;
      break;
    }
  }
  if (!has_steps(p, shown))
    figures -= FIGURE_STEP;
  sites.columns = width < figures + SITE_LEAST ? SITE_LEAST : width - figures;
  sc_doc_put(doc, SC_BLOCK_GAP, SC_TONE_PLAIN, "%s", "");
  sc_doc_table(doc, 0);
  sc_doc_column(doc, true, "syncs");
  sc_doc_column(doc, true, "a step");
  sc_doc_column(doc, true, "wait");
  sc_doc_column(doc, false, isnan(sites.trip_us) ? "wait p50" : "wait p50 =\nround trip + rest");
  sc_doc_column(doc, true, "drain gap");
  sc_doc_column(doc, false, "site");
  for (size_t i = 0; i < shown; i++)
    site_rows(&sites, &p->sites[i]);
  sc_doc_table_end(doc);
  if (p->site_count > shown)
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_NOTE, "and %zu more sites; JSON has them all.", p->site_count - shown);
  if (!isnan(sites.trip_us))
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_NOTE, "The rest is mostly GPU work that was still running.");
  remedies_list(doc, p, shown);
}
