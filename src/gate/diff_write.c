/* SPDX-License-Identifier: Apache-2.0
 * A comparison for people: what is the same is only counted. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gate/diff.h"
#include "gate/json.h"
#include "gate/write.h"

static const char *const titles[DIFF_SECTION_COUNT] = {"totals",
                                                       "where syncs come from",
                                                       "ranges",
                                                       "runs of the instrumented layers",
                                                       "ways to wait on this host",
                                                       "cost of one more sync",
                                                       "host, device and conditions"};

/* A program has many ranges, and most of them sync on neither side: JSON has them. */
static bool is_range_without_syncs(const struct diff_row *row)
{
  return row->section == DIFF_RANGES && !(row->before > 0) && !(row->after > 0); /* NAN: it was not there */
}

/* Times of hosts are never equal; everything else is shown only where it differs. */
static bool is_shown(const struct diff_row *row)
{
  if (is_range_without_syncs(row))
    return false;
  return row->change != DIFF_SAME || row->kind == DIFF_TIME || (row->section == DIFF_TOTALS && row->before > 0);
}

static void put_value(struct sc_buf *buf, const struct diff_row *row, bool after)
{
  const double value = after ? row->after : row->before;
  const char *text = after ? row->after_text : row->before_text;
  if (row->kind == DIFF_TEXT)
    gate_put_name(buf, text ? text : "none");
  else if (isnan(value))
    sc_buf_puts(buf, "none");
  else
    gate_put_number(buf, row->kind == DIFF_TIME ? SC_GATE_WAIT : SC_GATE_TOTAL, value);
}

static void put_difference(struct sc_buf *buf, const struct diff_row *row)
{
  if (row->kind == DIFF_TEXT || row->change != DIFF_CHANGED)
    return;
  if (row->kind == DIFF_TIME && row->before > 0)
    sc_buf_printf(buf, " (x %.2f)", row->after / row->before);
  else if (row->kind == DIFF_COUNT)
    sc_buf_printf(buf, " (%+.6g)", row->after - row->before);
}

static void put_wait(struct sc_buf *buf, double before, double after)
{
  char b[SC_TIME_TEXT], a[SC_TIME_TEXT];
  if (!isnan(before) || !isnan(after))
    sc_buf_printf(buf, "; wait %s -> %s", isnan(before) ? "none" : sc_format_time_us(before, b),
                  isnan(after) ? "none" : sc_format_time_us(after, a));
}

/* "5 -> 7 (+2) a step; wait 1.2 ms -> 1.5 ms" */
static void put_change(struct sc_buf *buf, const struct diff_row *row)
{
  put_value(buf, row, false);
  if (row->change != DIFF_SAME || row->kind == DIFF_TIME) {
    sc_buf_puts(buf, " -> ");
    put_value(buf, row, true);
  }
  put_difference(buf, row);
  if (*row->measure)
    sc_buf_printf(buf, " %s", row->measure);
  if (row->section == DIFF_RANGES)
    sc_buf_printf(buf, "; x %" PRIu64 " -> x %" PRIu64, row->times_before, row->times_after);
  put_wait(buf, row->wait_before_us, row->wait_after_us);
}

static void put_verdict(struct sc_buf *buf, const struct sc_diff *diff)
{
  const char *why;
  switch (sc_diff_increase(diff, &why)) {
  case SC_GATE_PASSED: sc_buf_puts(buf, "No more syncs than before."); break;
  case SC_GATE_FAILED: sc_buf_puts(buf, "MORE SYNCS than before."); break;
  case SC_GATE_UNMEASURED:
    sc_buf_puts(buf, "It cannot be said that there are no more syncs than before: ");
    gate_put_name(buf, why);
    break;
  }
}

static size_t counts_that_differ(const struct sc_diff *diff, size_t *compared)
{
  size_t differ = 0;
  *compared = 0;
  for (size_t i = 0; i < diff->row_count; ++i) {
    const struct diff_row *row = &diff->rows[i];
    if (row->section != DIFF_RUNS || row->kind != DIFF_COUNT)
      continue;
    ++*compared;
    differ += row->change != DIFF_SAME;
  }
  return differ;
}

static void put_equality(struct sc_buf *buf, const struct sc_diff *diff)
{
  size_t compared, differ = counts_that_differ(diff, &compared);
  if (!diff->of_runs)
    return;
  if (differ)
    sc_buf_printf(buf, "COUNTS DIFFER in %zu of %zu comparisons. ", differ, compared);
  else
    sc_buf_printf(buf, "Counts are equal, in all %zu comparisons. ", compared);
}

static void put_simulated(struct sc_buf *buf, const struct sc_diff *diff, const char *end)
{
  const bool b = sc_findings_simulated(diff->before), a = sc_findings_simulated(diff->after);
  if (b || a)
    sc_buf_printf(buf, "SIMULATED: %s on a simulated device. Counts are real, times are not.%s",
                  b && a ? "both were"
                  : b    ? "the first was"
                         : "the second was",
                  end);
}

/* Each section with something to show, under its title and what else stands above its rows. */
static void put_sections(struct sc_buf *buf, const struct sc_diff *diff, const char *head,
                         void (*put_row)(const struct diff_row *row, struct sc_buf *buf))
{
  for (int section = 0; section < DIFF_SECTION_COUNT; ++section) {
    bool titled = false;
    for (size_t i = 0; i < diff->row_count; ++i) {
      const struct diff_row *row = &diff->rows[i];
      if (row->section != (enum diff_section)section || !is_shown(row))
        continue;
      if (!titled)
        sc_buf_printf(buf, "\n%s\n%s", titles[section], head);
      titled = true;
      put_row(row, buf);
    }
  }
}

static void text_row(const struct diff_row *row, struct sc_buf *buf)
{
  sc_buf_printf(buf, "  %-8s  ", row->change == DIFF_SAME ? "" : diff_change_name(row->change));
  gate_put_name(buf, row->what);
  sc_buf_puts(buf, ": ");
  put_change(buf, row);
  sc_buf_puts(buf, "\n");
}

void sc_diff_write_text(const struct sc_diff *diff, struct sc_buf *buf)
{
  put_simulated(buf, diff, "\n");
  put_equality(buf, diff);
  put_verdict(buf, diff);
  sc_buf_puts(buf, "\n");
  put_sections(buf, diff, "", text_row);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void md_row(const struct diff_row *row, struct sc_buf *buf)
{
  struct sc_buf what = {0}, change = {0};
  gate_put_name(&what, row->what);
  put_change(&change, row);
  sc_buf_printf(buf, "| %s | ", diff_change_name(row->change));
  gate_put_markdown(buf, &what);
  sc_buf_puts(buf, " | ");
  gate_put_markdown(buf, &change);
  sc_buf_puts(buf, " |\n");
  sc_buf_free(&what);
  sc_buf_free(&change);
}

void sc_diff_write_markdown(const struct sc_diff *diff, struct sc_buf *buf)
{
  struct sc_buf verdict = {0};
  sc_buf_puts(buf, "### synccount diff\n\n");
  put_simulated(buf, diff, "\n\n");
  put_equality(&verdict, diff);
  put_verdict(&verdict, diff);
  sc_buf_puts(buf, "**");
  gate_put_markdown(buf, &verdict);
  sc_buf_puts(buf, "**\n");
  sc_buf_free(&verdict);
  put_sections(buf, diff, "\n| | what | before -> after |\n|---|---|---|\n", md_row);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *row_value(const struct diff_row *row, bool *ok)
{
  json_t *object = json_object();
  sc_json_put(object, "what", sc_json_text(row->what), ok);
  sc_json_put(object, "change", sc_json_text(diff_change_name(row->change)), ok);
  sc_json_put(object, "measure", sc_json_text(row->measure), ok);
  sc_json_put(object, "unit",
              sc_json_text(row->kind == DIFF_TIME    ? "us"
                           : row->kind == DIFF_COUNT ? "count"
                                                     : "text"),
              ok);
  sc_json_put(object, "before", row->kind == DIFF_TEXT ? sc_json_text(row->before_text) : gate_json_number(row->before),
              ok);
  sc_json_put(object, "after", row->kind == DIFF_TEXT ? sc_json_text(row->after_text) : gate_json_number(row->after),
              ok);
  if (row->section == DIFF_SITES || row->section == DIFF_RANGES) {
    sc_json_put(object, "wait_before_us", gate_json_number(row->wait_before_us), ok);
    sc_json_put(object, "wait_after_us", gate_json_number(row->wait_after_us), ok);
  }
  if (row->section == DIFF_RANGES) {
    sc_json_put(object, "occurrences_before", sc_json_count(row->times_before), ok);
    sc_json_put(object, "occurrences_after", sc_json_count(row->times_after), ok);
  }
  return object;
}

void sc_diff_write_json(const struct sc_diff *diff, struct sc_buf *buf)
{
  static const char *const keys[DIFF_SECTION_COUNT] = {"totals", "sites",         "ranges",    "runs",
                                                       "ruler",  "marginal_sync", "conditions"};
  json_t *root = json_object();
  bool ok = root != NULL;
  const char *why;
  size_t compared, differ = counts_that_differ(diff, &compared);
  enum sc_gate_verdict verdict = sc_diff_increase(diff, &why);
  sc_json_put(root, "schema", json_string("synccount/diff/1"), &ok);
  sc_json_put(root, "version", json_string(SC_VERSION), &ok);
  sc_json_put(root, "increase", verdict == SC_GATE_UNMEASURED ? json_null() : json_boolean(verdict == SC_GATE_FAILED),
              &ok);
  sc_json_put(root, "why", sc_json_text(why), &ok);
  sc_json_put(root, "counts_equal", diff->of_runs ? json_boolean(differ == 0) : json_null(), &ok);
  sc_json_put(root, "simulated_before", json_boolean(sc_findings_simulated(diff->before)), &ok);
  sc_json_put(root, "simulated_after", json_boolean(sc_findings_simulated(diff->after)), &ok);
  for (int section = 0; section < DIFF_SECTION_COUNT; ++section) {
    json_t *rows = json_array();
    for (size_t i = 0; i < diff->row_count; ++i) {
      if (diff->rows[i].section == (enum diff_section)section)
        sc_json_push(rows, row_value(&diff->rows[i], &ok), &ok);
    }
    sc_json_put(root, keys[section], rows, &ok);
  }
  gate_json_write(root, ok, buf);
}
