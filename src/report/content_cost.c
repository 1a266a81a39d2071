/* SPDX-License-Identifier: Apache-2.0
 * What one more sync costs in the layer, beside the round trip, and where the masked loop's time goes. */
#include <math.h>
#include <stdio.h>

#include "report/content.h"

/* From here on two costs of the same thing are no longer one story. */
static const double FAR_APART = 1.5;

static void marginal_table(struct sc_doc *doc, const struct sc_findings *f, double trip_us)
{
  sc_doc_table(doc, 2);
  sc_doc_column(doc, true, "E");
  sc_doc_column(doc, true, "tokens");
  sc_doc_column(doc, true, "one more\nsync");
  sc_doc_column(doc, true, "95 %%\ninterval");
  sc_doc_column(doc, true, "round trip,\nmean");
  sc_doc_column(doc, true, "times the\nround trip");
  for (size_t i = 0; i < f->marginal_count; i++) {
    const struct sc_marginal *m = &f->marginal[i];
    double ratio = m->mean_us / trip_us;

    if (isnan(m->mean_us))
      continue;
    bool far = ratio > FAR_APART || ratio < 1 / FAR_APART;
    struct sc_buf tokens = {0}, mean = {0}, range = {0}, trip = {0}, times = {0};

    sc_doc_row(doc, 0);
    sc_doc_cell(doc, SC_TONE_PLAIN, "%llu", (unsigned long long)m->experts);
    sc_put_count(&tokens, m->tokens);
    sc_doc_cell_take(doc, SC_TONE_PLAIN, &tokens);
    sc_put_time(&mean, m->mean_us);
    sc_doc_cell_take(doc, SC_TONE_STRONG, &mean);
    sc_put_range(&range, m->low_us, m->high_us);
    sc_doc_cell_take(doc, SC_TONE_PLAIN, &range);
    sc_put_time(&trip, trip_us);
    sc_doc_cell_take(doc, SC_TONE_PLAIN, &trip);
    sc_buf_printf(&times, isnan(ratio) ? "-" : "%.2f", ratio);
    sc_doc_cell_take(doc, far ? SC_TONE_BAD : SC_TONE_PLAIN, &times);
  }
  sc_doc_table_end(doc);
}

/* Says so when the marginal cost and the round trip tell different stories. */
static void marginal_sentences(struct sc_doc *doc, const struct sc_findings *f, double trip_us)
{
  for (size_t i = 0; i < f->marginal_count; i++) {
    const struct sc_marginal *m = &f->marginal[i];
    double ratio = m->mean_us / trip_us;
    struct sc_buf line = {0};

    if (isnan(ratio) || (ratio <= FAR_APART && ratio >= 1 / FAR_APART))
      continue;
    sc_buf_printf(&line, "E=%llu, ", (unsigned long long)m->experts);
    sc_put_count(&line, m->tokens);
    sc_buf_printf(&line, " token%s: one more sync costs ", sc_plural(m->tokens));
    sc_put_time(&line, m->mean_us);
    sc_buf_puts(&line, " in this layer, a round trip on an idle device ");
    sc_put_time(&line, trip_us);
    sc_buf_puts(&line, ": more than 1.5x apart, so the floor does not tell what removing a sync saves here.");
    sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
  }
}

static void marginal_part(struct sc_doc *doc, const struct sc_findings *f)
{
  const struct sc_ruler_row *trip = sc_round_trip(f);
  double trip_us = trip ? trip->mean_us : NAN;
  bool any = false;

  for (size_t i = 0; i < f->marginal_count; i++)
    any |= !isnan(f->marginal[i].mean_us);
  if (!any)
    return;
  sc_doc_put(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, "Marginal cost: what one more idle read-back adds to a forward");
  marginal_table(doc, f, trip_us);
  marginal_sentences(doc, f, trip_us);
}

static void time_cell(struct sc_doc *doc, double us, bool signed_step)
{
  struct sc_buf text = {0};

  if (signed_step && us >= 0)
    sc_buf_puts(&text, "+");
  sc_put_time(&text, us);
  sc_doc_cell_take(doc, signed_step ? SC_TONE_STRONG : SC_TONE_PLAIN, &text);
}

static void control_row(struct sc_doc *doc, const struct sc_control *c)
{
  double synced = NAN;
  uint64_t syncs = 0;
  struct sc_buf tokens = {0}, head = {0};

  /* The step with the masked loop's own count is the last one of the story. */
  for (size_t i = 0; i < c->step_count; i++) {
    if (c->steps[i].syncs < syncs)
      continue;
    syncs = c->steps[i].syncs;
    synced = c->steps[i].p50_us;
  }
  sc_doc_row(doc, 0);
  sc_doc_cell(doc, SC_TONE_PLAIN, "%llu", (unsigned long long)c->experts);
  sc_put_count(&tokens, c->tokens);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &tokens);
  time_cell(doc, c->dense_us, false);
  time_cell(doc, c->sorted_us - c->dense_us, true);
  time_cell(doc, c->sorted_us, false);
  time_cell(doc, synced - c->sorted_us, true);
  sc_put_time(&head, synced);
  if (!isnan(synced)) {
    sc_buf_puts(&head, " (");
    sc_put_count(&head, syncs);
    sc_buf_puts(&head, ")");
  }
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &head);
  time_cell(doc, c->masked_us - synced, true);
  time_cell(doc, c->masked_us, false);
}

static bool has_times(const struct sc_control *c)
{
  return !isnan(c->dense_us) || !isnan(c->sorted_us) || !isnan(c->masked_us);
}

static void controls_part(struct sc_doc *doc, const struct sc_findings *f)
{
  bool any = false;

  for (size_t i = 0; i < f->control_count; i++)
    any |= has_times(&f->controls[i]);
  if (!any)
    return;
  sc_doc_put(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, "From dense to masked: forward p50 and what each step adds");
  sc_doc_table(doc, 2);
  sc_doc_column(doc, true, "E");
  sc_doc_column(doc, true, "tokens");
  sc_doc_column(doc, true, "dense");
  sc_doc_column(doc, true, "dispatch,\nlaunches");
  sc_doc_column(doc, true, "sorted");
  sc_doc_column(doc, true, "\nwaiting");
  sc_doc_column(doc, true, "sorted+syncs\n(syncs)");
  sc_doc_column(doc, true, "\nthe rest");
  sc_doc_column(doc, true, "masked");
  for (size_t i = 0; i < f->control_count; i++)
    if (has_times(&f->controls[i]))
      control_row(doc, &f->controls[i]);
  sc_doc_table_end(doc);
  sc_doc_put(
      doc, SC_BLOCK_LINE, SC_TONE_PLAIN,
      "Waiting is what idle read-backs add that give sorted dispatch as many syncs as the masked loop has; the rest is "
      "the loop's other kernels and launches. Only the waiting goes away with the syncs alone.");
}

void sc_content_cost(struct sc_doc *doc, const struct sc_findings *f)
{
  if (sc_findings_simulated(f))
    return;
  marginal_part(doc, f);
  controls_part(doc, f);
}
