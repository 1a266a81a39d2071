/* SPDX-License-Identifier: Apache-2.0
 * The verdict for a terminal, and as Markdown for a step's summary or an issue. */
#include <inttypes.h>
#include <string.h>

#include "gate/write.h"

#define EXTRAS_SHOWN 20
#define MARGIN "              "

static void put_line(struct sc_buf *buf, const char *before, const char *text)
{
  sc_buf_puts(buf, before);
  gate_put_name(buf, text);
  sc_buf_puts(buf, "\n");
}

static void text_details(const struct sc_gate_result *r, struct sc_buf *buf)
{
  const enum sc_gate_measure m = r->expectation->measure;
  for (size_t i = 0; i < r->failure_count; ++i) {
    sc_buf_puts(buf, MARGIN);
    gate_put_failure(buf, m, &r->failures[i]);
    sc_buf_puts(buf, "\n");
  }
  if (r->failure_count == SC_GATE_FAILURES_MAX)
    sc_buf_puts(buf, MARGIN "(and perhaps more: the worst are shown)\n");
  if (r->extra_count)
    sc_buf_puts(buf, MARGIN "where these syncs come from:\n");
  for (size_t i = 0; i < r->extra_count && i < EXTRAS_SHOWN; ++i) {
    sc_buf_puts(buf, MARGIN "  ");
    gate_put_place(buf, &r->extras[i]);
    sc_buf_puts(buf, ": ");
    gate_put_amount(buf, m, &r->extras[i]);
    sc_buf_puts(buf, "\n");
  }
  if (r->extra_count > EXTRAS_SHOWN)
    sc_buf_printf(buf, MARGIN "  and %zu more places\n", r->extra_count - EXTRAS_SHOWN);
}

static void text_result(const struct sc_gate_result *r, bool quiet, struct sc_buf *buf)
{
  sc_buf_printf(buf, "%-12s  ", gate_shout(r->verdict));
  gate_put_name(buf, r->expectation->text);
  sc_buf_puts(buf, ": ");
  gate_put_found(buf, r);
  sc_buf_puts(buf, "\n");
  if (r->why)
    put_line(buf, MARGIN, r->why);
  if (r->expectation->reason && r->verdict != SC_GATE_PASSED)
    put_line(buf, MARGIN "it is expected because: ", r->expectation->reason);
  if (!quiet)
    text_details(r, buf);
}

static void text_allowed(const struct sc_gate_allowed *list, size_t count, bool used, struct sc_buf *buf)
{
  for (size_t i = 0; i < count; ++i) {
    sc_buf_printf(buf, "%-12s  ", used ? "allowed" : "not needed");
    gate_put_name(buf, list[i].what);
    if (used)
      sc_buf_printf(buf, ": %" PRIu64 " sync%s", list[i].syncs, list[i].syncs == 1 ? "" : "s");
    else
      sc_buf_puts(buf, ": no sync is allowed by this any more, it can go");
    if (list[i].reason) {
      sc_buf_puts(buf, " (");
      gate_put_name(buf, list[i].reason);
      sc_buf_puts(buf, ")");
    }
    sc_buf_puts(buf, "\n");
  }
}

static const char *process_note(const struct sc_gate_process *p)
{
  return !p->measured ? "nothing could be counted in it" : p->selected ? "counts" : "does not count";
}

void sc_gate_write_text(const struct sc_gate_report *report, bool quiet, struct sc_buf *buf)
{
  if (report->simulated)
    sc_buf_printf(buf, "%s\n", gate_simulated);
  put_line(buf, "gate: ", gate_name(report));
  put_line(buf, "source: ", report->source);
  for (size_t i = 0; i < report->process_count && !quiet; ++i) {
    sc_buf_puts(buf, "  ");
    gate_put_name(buf, report->processes[i].name);
    sc_buf_printf(buf, ": %s", process_note(&report->processes[i]));
    if (report->processes[i].measured)
      sc_buf_printf(buf, ", %" PRIu64 " sync%s", report->processes[i].syncs,
                    report->processes[i].syncs == 1 ? "" : "s");
    sc_buf_puts(buf, "\n");
  }
  for (size_t i = 0; i < report->result_count; ++i)
    text_result(&report->results[i], quiet, buf);
  text_allowed(report->allowed, report->allowed_count, true, buf);
  text_allowed(report->unneeded, report->unneeded_count, false, buf);
  for (size_t i = 0; i < report->warning_count && !quiet; ++i) {
    sc_buf_puts(buf, "note: ");
    sc_buf_put_printable(buf, report->warnings[i], strlen(report->warnings[i]));
    sc_buf_puts(buf, "\n");
  }
  gate_put_headline(buf, report);
  sc_buf_puts(buf, "\n");
}

/* ---- Markdown -------------------------------------------------------------------------------- */

void gate_put_markdown(struct sc_buf *buf, const struct sc_buf *plain)
{
  buf->failed |= plain->failed;
  for (size_t i = 0; plain->data && !plain->failed && i < plain->len; ++i) {
    const char *escape = sc_markdown_escape(plain->data, i, false);
    sc_buf_append(buf, escape ? escape : plain->data + i, escape ? strlen(escape) : 1);
  }
}

/* Takes the plain text over. */
static void put_plain(struct sc_buf *buf, struct sc_buf *plain, const char *after)
{
  gate_put_markdown(buf, plain);
  sc_buf_puts(buf, after);
  sc_buf_free(plain);
}

static void put_md_name(struct sc_buf *buf, const char *text, const char *after)
{
  struct sc_buf plain = {0};
  gate_put_name(&plain, text);
  put_plain(buf, &plain, after);
}

static void md_row(const struct sc_gate_result *r, struct sc_buf *buf)
{
  struct sc_buf found = {0};
  sc_buf_printf(buf, "| %s%s%s | ", r->verdict == SC_GATE_PASSED ? "" : "**", gate_shout(r->verdict),
                r->verdict == SC_GATE_PASSED ? "" : "**");
  put_md_name(buf, r->expectation->text, " | ");
  gate_put_found(&found, r);
  if (r->why) {
    sc_buf_puts(&found, ": ");
    gate_put_name(&found, r->why);
  }
  put_plain(buf, &found, " |\n");
}

static void md_details(const struct sc_gate_result *r, struct sc_buf *buf)
{
  const enum sc_gate_measure m = r->expectation->measure;
  if (r->verdict != SC_GATE_FAILED)
    return;
  sc_buf_puts(buf, "\n**");
  put_md_name(buf, r->expectation->text, "**\n\n");
  if (r->expectation->reason) {
    sc_buf_puts(buf, "Expected because: ");
    put_md_name(buf, r->expectation->reason, "\n\n");
  }
  for (size_t i = 0; i < r->failure_count; ++i) {
    struct sc_buf plain = {0};
    gate_put_failure(&plain, m, &r->failures[i]);
    sc_buf_puts(buf, "- ");
    put_plain(buf, &plain, "\n");
  }
  if (r->extra_count)
    sc_buf_puts(buf, "\n| syncs | where they come from |\n|---|---|\n");
  for (size_t i = 0; i < r->extra_count && i < EXTRAS_SHOWN; ++i) {
    struct sc_buf amount = {0}, place = {0};
    gate_put_amount(&amount, m, &r->extras[i]);
    gate_put_place(&place, &r->extras[i]);
    sc_buf_puts(buf, "| ");
    put_plain(buf, &amount, " | ");
    put_plain(buf, &place, " |\n");
  }
}

static void md_allowed(const struct sc_gate_allowed *list, size_t count, const char *lead, struct sc_buf *buf)
{
  for (size_t i = 0; i < count; ++i) {
    sc_buf_printf(buf, "- %s: ", lead);
    put_md_name(buf, list[i].what, "");
    if (list[i].syncs)
      sc_buf_printf(buf, ", %" PRIu64 " syncs", list[i].syncs);
    if (list[i].reason) {
      sc_buf_puts(buf, ", ");
      put_md_name(buf, list[i].reason, "");
    }
    sc_buf_puts(buf, "\n");
  }
}

void sc_gate_write_markdown(const struct sc_gate_report *report, struct sc_buf *buf)
{
  struct sc_buf headline = {0};
  gate_put_headline(&headline, report);
  sc_buf_puts(buf, "### ");
  put_md_name(buf, gate_name(report), "\n\n**");
  put_plain(buf, &headline, "**\n\n");
  if (report->simulated)
    sc_buf_printf(buf, "%s\n\n", gate_simulated);
  sc_buf_puts(buf, "Source: ");
  put_md_name(buf, report->source, "\n\n| verdict | expectation | found |\n|---|---|---|\n");
  for (size_t i = 0; i < report->result_count; ++i)
    md_row(&report->results[i], buf);
  for (size_t i = 0; i < report->result_count; ++i)
    md_details(&report->results[i], buf);
  if (report->allowed_count || report->unneeded_count)
    sc_buf_puts(buf, "\n");
  md_allowed(report->allowed, report->allowed_count, "allowed", buf);
  md_allowed(report->unneeded, report->unneeded_count, "not needed any more", buf);
}
