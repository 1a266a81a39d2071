/* SPDX-License-Identifier: Apache-2.0
 * The report as one HTML file: no network, no script. The same content as the text report, with figures. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/content.h"
#include "report/escape.h"
#include "report/figures.h"
#include "report/writers.h"

/* Of the megabyte that a page may take, the figures of one kind, and the timelines of all processes. */
/* PAGE_WIDTH: columns that names may take. */
enum { PAGE_WIDTH = 200, HEAT_BUDGET = 200000, TIMELINES_BUDGET = 450000 };

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#57606a;--edge:#d0d7de;--soft:#f3f5f7;--code:#eef1f4;"
    "--bad:#a40e26;--badbg:#fdeef0;--good:#116329;--wait:#bc4c00;--poll:#6639ba;--rest:#c9d1d9;--box:#9ecbff;"
    "--v0:#bc4c00;--v1:#0550ae;--v2:#116329;--v3:#6639ba}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9da7b3;--edge:#343b44;--soft:#161b22;"
    "--code:#1f262e;--bad:#ff9492;--badbg:#3a1416;--good:#6fdd8b;--wait:#f0883e;--poll:#b392f0;--rest:#3d444d;"
    "--box:#1f4a7d;--v0:#f0883e;--v1:#79c0ff;--v2:#6fdd8b;--v3:#b392f0}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"
    "\"Segoe UI\",Roboto,sans-serif}header,main,footer{max-width:76rem;margin:0 auto;padding:0 1rem}\n"
    "header{padding-top:1.25rem}.brand{color:var(--dim);margin:0;font-size:.9rem}h1{font-size:1.55rem;line-height:1.3;"
    "margin:.25rem 0 1rem;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2rem 0 .6rem;padding-top:.6rem;"
    "border-top:1px solid var(--edge);overflow-wrap:anywhere}h3{font-size:1rem;margin:1rem 0 .4rem}p{margin:.35rem 0;"
    "overflow-wrap:anywhere}ul{margin:.4rem 0;padding-left:1.25rem}li{overflow-wrap:anywhere;margin:.15rem 0}\n"
    "code{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--code);border-radius:3px;"
    "padding:.05em .25em;overflow-wrap:anywhere}td code{background:none;padding:0}\n"
    ".banner{background:var(--badbg);color:var(--bad);border:1px solid var(--bad);border-radius:6px;font-weight:600;"
    "padding:.6rem .8rem}.strong{font-weight:600}.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}"
    ".note{color:var(--dim)}\n"
    ".scroll{overflow-x:auto;max-width:100%;margin:.5rem 0}.scroll:focus-visible,input:focus-visible,summary:focus-visible"
    "{outline:2px solid var(--v1);outline-offset:2px}table{border-collapse:collapse;font-size:.88rem;"
    "font-variant-numeric:tabular-nums}th,td{text-align:left;padding:.28rem .6rem .28rem 0;border-bottom:1px solid "
    "var(--edge);vertical-align:top}.more>*{border-bottom:0;padding-bottom:0}thead th{color:var(--dim);font-weight:600;vertical-align:bottom}tbody th"
    "{font-weight:400;min-width:6.5rem}.r{text-align:right;white-space:nowrap}thead th.r{white-space:normal}td{max-width:46rem}\n"
    "details{margin:1rem 0}summary{cursor:pointer;font-weight:600}figure{margin:1.25rem 0}figcaption{color:var(--dim);"
    "font-size:.92rem;margin-bottom:.4rem;overflow-wrap:anywhere}\n"
    ".plot{display:block;width:100%;min-width:34rem;max-width:52rem;height:auto}.heat{display:block;max-width:none;"
    "height:auto}svg text{font:13px system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif;fill:var(--fg)}"
    "svg .end{text-anchor:end}svg .mid{text-anchor:middle}.grid{stroke:var(--edge)}.cells{stroke:var(--edge);"
    "stroke-width:.6;fill:none}.whisker{stroke:var(--dim)}.box{fill:var(--box)}.median{stroke:var(--fg);stroke-width:2}"
    ".mean{fill:var(--wait);fill-opacity:.6}.rest{fill:var(--rest)}.wait{fill:var(--wait)}.poll{fill:var(--poll);"
    "fill-opacity:.55}.hot{fill:var(--wait)}.line{fill:none;stroke-width:2}\n"
    ".line.v0{stroke:var(--v0)}.line.v1{stroke:var(--v1);stroke-dasharray:7 3}.line.v2{stroke:var(--v2);"
    "stroke-dasharray:2 3}.line.v3{stroke:var(--v3);stroke-dasharray:9 3 2 3}circle.v0{fill:var(--v0)}circle.v1"
    "{fill:var(--v1)}circle.v2{fill:var(--v2)}circle.v3{fill:var(--v3)}text.label{font-weight:600}"
    "text.label.v0{fill:var(--v0)}text.label.v1{fill:var(--v1)}text.label.v2{fill:var(--v2)}text.label.v3{fill:var(--v3)}\n"
    ".zoom{border:0;padding:0;margin:0 0 .3rem;font-size:.9rem}.zoom legend{float:left;margin-right:.6rem;"
    "color:var(--dim)}.zoom label{margin-right:.8rem}.lanes{width:100%;min-width:20rem}"
    ".timeline:has(.z4:checked) .lanes{width:400%}.timeline:has(.z16:checked) .lanes{width:1600%}"
    ".timeline:has(.z64:checked) .lanes{width:6400%}.lane span{position:sticky;left:0;display:inline-block;"
    "max-width:min(100%,90vw);font-size:.85rem;color:var(--dim);overflow-wrap:anywhere}.lane svg{display:block;width:100%;"
    "height:28px;background:var(--soft)}.axis{position:relative;height:1.6rem;border-top:1px solid var(--edge);"
    "font-size:.78rem;color:var(--dim);overflow:hidden}.axis i{position:absolute;font-style:normal;padding-left:3px;"
    "border-left:1px solid var(--edge);white-space:nowrap;display:none}.axis i:nth-child(10n+1){display:inline}"
    ".timeline:has(.z4:checked) .axis i:nth-child(5n+1),.timeline:has(.z16:checked) .axis i,.timeline:has(.z64:checked) "
    ".axis i{display:inline}footer{color:var(--dim);font-size:.85rem;margin-top:2rem;padding-bottom:2rem}\n"
    "@media print{:root{--bg:#fff;--fg:#000}body{font-size:11pt}.scroll{overflow:visible}.zoom{display:none}"
    "figure,tr{break-inside:avoid}.hot,.wait,.poll,.rest,.box,.banner{print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}}\n";

static const char *escape_of(char byte)
{
  switch (byte) {
  case SC_NAME_BEGIN: return "<code>";
  case SC_NAME_END: return "</code>";
  case SC_TIGHT_SPACE: return "&nbsp;";
  case '\n': return " ";
  default: return sc_escape_html_byte(byte);
  }
}

void sc_html_put_doc_text(struct sc_buf *html, const char *text)
{
  size_t from = 0, i = 0;

  for (; text[i]; i++) {
    const char *escape = escape_of(text[i]);

    if (!escape)
      continue;
    sc_buf_append(html, text + from, i - from);
    sc_buf_puts(html, escape);
    from = i + 1;
  }
  sc_buf_append(html, text + from, i - from);
}

void sc_html_put_name(struct sc_buf *html, const char *name, size_t max)
{
  struct sc_buf text = {0};

  sc_put_name(&text, name, max);
  html->failed |= text.failed;
  for (const char *at = text.data ? text.data : ""; *at; at++) {
    const char *escape = *at == SC_NAME_BEGIN || *at == SC_NAME_END ? "" : escape_of(*at);

    if (escape)
      sc_buf_puts(html, escape);
    else
      sc_buf_append(html, at, 1);
  }
  sc_buf_free(&text);
}

void sc_html_put_time(struct sc_buf *html, double us)
{
  char text[SC_TIME_TEXT];

  sc_buf_puts(html, isnan(us) ? "-" : sc_format_time_us(us, text));
}

void sc_html_open_scroll(struct sc_buf *html, const char *label)
{
  sc_buf_printf(html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">", label);
}

static const char *class_of(enum sc_tone tone)
{
  switch (tone) {
  case SC_TONE_STRONG: return " class=\"strong\"";
  case SC_TONE_GOOD: return " class=\"good\"";
  case SC_TONE_BAD: return " class=\"bad\"";
  case SC_TONE_NOTE: return " class=\"note\"";
  default: return "";
  }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

struct page {
  struct sc_buf html;
  const struct sc_findings *f;
  bool in_section, in_list;
};

static void close_list(struct page *page)
{
  if (page->in_list)
    sc_buf_puts(&page->html, "</ul>\n");
  page->in_list = false;
}

static void open_section(struct page *page, const char *heading)
{
  close_list(page);
  sc_buf_puts(&page->html, page->in_section ? "</section>\n<section><h2>" : "<section><h2>");
  sc_html_put_doc_text(&page->html, heading);
  sc_buf_puts(&page->html, "</h2>\n");
  page->in_section = true;
}

static void put_cell(struct sc_buf *html, const struct sc_table *table, size_t row, size_t column)
{
  const struct sc_cell *cell = &table->cells[row * table->column_count + column];
  bool key = column < table->keys;
  const char *tone = cell->tone == SC_TONE_BAD ? " bad" : cell->tone == SC_TONE_STRONG ? " strong" : "";

  sc_buf_printf(html, key ? "<th scope=\"row\" class=\"%s%s\"" : "<td class=\"%s%s\"",
                table->columns[column].right ? "r" : "", tone);
  if (column == 0 && table->indents[row])
    sc_buf_printf(html, " style=\"padding-left:%.1fem\"", 1.1 * table->indents[row]);
  sc_buf_puts(html, ">");
  sc_html_put_doc_text(html, cell->text ? cell->text : "");
  sc_buf_puts(html, key ? "</th>" : "</td>");
}

/* The next row says more about the same thing: no line between them. */
static bool goes_on(const struct sc_table *table, size_t row)
{
  const struct sc_cell *next = row + 1 < table->row_count ? &table->cells[(row + 1) * table->column_count] : NULL;

  return next && (!next->text || !*next->text);
}

static void put_table(struct sc_buf *html, const struct sc_table *table)
{
  sc_html_open_scroll(html, "Table, may scroll sideways");
  sc_buf_puts(html, "<table><thead><tr>");
  for (size_t i = 0; i < table->column_count; i++) {
    sc_buf_printf(html, "<th scope=\"col\"%s>", table->columns[i].right ? " class=\"r\"" : "");
    sc_html_put_doc_text(html, table->columns[i].head ? table->columns[i].head : "");
    sc_buf_puts(html, "</th>");
  }
  sc_buf_puts(html, "</tr></thead><tbody>\n");
  for (size_t row = 0; row < table->row_count; row++) {
    sc_buf_puts(html, goes_on(table, row) ? "<tr class=\"more\">" : "<tr>");
    for (size_t i = 0; i < table->column_count; i++)
      put_cell(html, table, row, i);
    sc_buf_puts(html, "</tr>\n");
  }
  sc_buf_puts(html, "</tbody></table></div>\n");
}

static enum sc_status put_figure(struct page *page, const struct sc_block *block, struct sc_error *err)
{
  size_t drawn = page->f->process_count < 12 ? page->f->process_count : 12;
  size_t budget = block->figure == SC_FIGURE_TIMELINE && drawn ? TIMELINES_BUDGET / drawn : HEAT_BUDGET;

  if (block->figure == SC_FIGURE_TIMELINE && block->figure_index >= drawn)
    return SC_OK; /* the tables tell of the others */
  return sc_figure_put(&page->html, page->f, block->figure, block->figure_index, budget, err);
}

static enum sc_status put_block(struct page *page, const struct sc_block *block, struct sc_error *err)
{
  struct sc_buf *html = &page->html;

  if (block->kind == SC_BLOCK_ITEM) {
    if (!page->in_list)
      sc_buf_puts(html, "<ul>\n");
    page->in_list = true;
    sc_buf_printf(html, "<li%s>", class_of(block->tone));
    sc_html_put_doc_text(html, block->text);
    sc_buf_puts(html, "</li>\n");
    return SC_OK;
  }
  close_list(page);
  switch (block->kind) {
  case SC_BLOCK_BANNER:
    sc_buf_puts(html, "<p class=\"banner\" role=\"note\">");
    sc_html_put_doc_text(html, block->text);
    sc_buf_puts(html, "</p>\n");
    break;
  case SC_BLOCK_HEADING: open_section(page, block->text); break;
  case SC_BLOCK_LINE:
    sc_buf_printf(html, "<p%s>", class_of(block->tone));
    sc_html_put_doc_text(html, block->text);
    sc_buf_puts(html, "</p>\n");
    break;
  case SC_BLOCK_FOLD:
    sc_buf_puts(html, "<details open><summary>");
    sc_html_put_doc_text(html, block->text);
    sc_buf_puts(html, "</summary>\n");
    break;
  case SC_BLOCK_FOLD_END: sc_buf_puts(html, "</details>\n"); break;
  case SC_BLOCK_TABLE: put_table(html, block->table); break;
  case SC_BLOCK_FIGURE: return put_figure(page, block, err);
  default: break;
  }
  return SC_OK;
}

/* ---- the verdict in a sentence ------------------------------------------------------------------------------------- */

static void verdict_of_runs(struct sc_buf *text, const struct sc_findings *f)
{
  const struct sc_ruler_row *trip = sc_round_trip(f);
  const struct sc_run *largest = NULL;
  bool first = true;

  for (size_t i = 0; i < f->run_count; i++)
    if (f->runs[i].counted && (!largest || f->runs[i].experts > largest->experts))
      largest = &f->runs[i];
  if (!largest) {
    sc_buf_puts(text, "Syncs could not be counted");
  } else {
    sc_buf_printf(text, "With %" PRIu64 " experts, a forward of %" PRIu64 " layer%s waits for the GPU", largest->experts,
                  largest->layers, sc_plural(largest->layers));
    for (size_t i = 0; i < f->run_count; i++) {
      const struct sc_run *run = &f->runs[i];

      if (!run->counted || run->experts != largest->experts || run->tokens != largest->tokens)
        continue;
      sc_buf_puts(text, first ? " " : ", ");
      sc_put_number(text, run->per_forward);
      sc_buf_printf(text, " time%s in the ", run->per_forward == 1 ? "" : "s");
      sc_put_variant(text, run->variant, false);
      sc_buf_puts(text, first ? " layer" : "");
      first = false;
    }
  }
  if (trip) {
    sc_buf_puts(text, "; a round trip costs ");
    sc_put_time(text, trip->p50_us);
    sc_buf_puts(text, " here");
  }
  sc_buf_puts(text, ".");
}

static void verdict_of_processes(struct sc_buf *text, const struct sc_findings *f)
{
  const struct sc_process *busiest = &f->processes[0];
  uint64_t syncs = 0;

  for (size_t i = 0; i < f->process_count; i++) {
    syncs += f->processes[i].counts.syncs;
    if (f->processes[i].counts.wait_ns > busiest->counts.wait_ns)
      busiest = &f->processes[i];
  }
  sc_put_count(text, syncs);
  sc_buf_printf(text, " sync%s", sc_plural(syncs));
  if (f->process_count > 1)
    sc_buf_printf(text, " in %zu processes", f->process_count);
  const struct sc_thread_findings *longest = sc_process_longest_wait(busiest, NULL);
  if (longest && !sc_findings_simulated(f)) {
    sc_buf_puts(text, f->process_count > 1 ? "; the longest waiting thread waited " : "; its longest waiting thread waited ");
    sc_put_time(text, longest->wait_us);
    if (!isnan(busiest->wall_us)) {
      sc_buf_puts(text, ", ");
      sc_put_share(text, longest->wait_us, busiest->wall_us);
      sc_buf_puts(text, " of wall time");
    }
  }
  const struct sc_frame *frame = busiest->site_count ? sc_site_frame(&busiest->sites[0]) : NULL;
  if (frame && frame->file) {
    sc_buf_puts(text, "; costliest site ");
    sc_put_name(text, sc_process_file(busiest, frame->file), 80);
    sc_buf_printf(text, ":%" PRIu64, frame->line);
  }
  sc_buf_puts(text, ".");
}

static void put_verdict(struct sc_buf *text, const struct sc_findings *f)
{
  const struct sc_ruler_row *trip = sc_round_trip(f);

  if (f->run_count) {
    verdict_of_runs(text, f);
  } else if (f->process_count) {
    verdict_of_processes(text, f);
  } else if (trip) {
    sc_buf_puts(text, "A round trip costs ");
    sc_put_time(text, trip->p50_us);
    sc_buf_puts(text, " on this host.");
  } else {
    sc_buf_puts(text, "Nothing was measured.");
  }
}

/* ---- the page -------------------------------------------------------------------------------------------------------- */

static void put_plain(struct sc_buf *html, const char *text)
{
  for (; *text; text++) { /* a title has no elements */
    const char *escape = *text == SC_NAME_BEGIN || *text == SC_NAME_END ? "" : escape_of(*text);

    if (escape)
      sc_buf_puts(html, escape);
    else
      sc_buf_append(html, text, 1);
  }
}

static void put_head(struct page *page)
{
  struct sc_buf *html = &page->html, verdict = {0};
  bool simulated = sc_findings_simulated(page->f);

  put_verdict(&verdict, page->f);
  html->failed |= verdict.failed;
  sc_buf_puts(html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                    "content=\"width=device-width,initial-scale=1\"><meta name=\"generator\" content=\"synccount ");
  sc_escape_html(html, page->f->version);
  sc_buf_printf(html, "\"><title>%ssynccount: ", simulated ? "SIMULATED " : "");
  put_plain(html, verdict.data ? verdict.data : "");
  sc_buf_puts(html, "</title><link rel=\"icon\" href=\"data:,\"><style>\n");
  sc_buf_puts(html, style);
  sc_buf_puts(html, "</style></head><body>\n<header><p class=\"brand\">synccount: where the host waits for the GPU</p><h1>");
  sc_html_put_doc_text(html, verdict.data ? verdict.data : "");
  sc_buf_puts(html, "</h1></header>\n<main>\n");
  sc_buf_free(&verdict);
}

static void put_foot(struct page *page)
{
  struct sc_buf *html = &page->html;

  close_list(page);
  sc_buf_puts(html, page->in_section ? "</section>\n</main>\n<footer>" : "</main>\n<footer>");
  sc_buf_puts(html, "synccount ");
  sc_escape_html(html, page->f->version ? page->f->version : "");
  sc_buf_puts(html, sc_findings_simulated(page->f) ? ". SIMULATED: no GPU was used." : ".");
  sc_buf_puts(html, " This file needs no network and no script.</footer>\n</body></html>\n");
}

enum sc_status sc_report_write_html(const struct sc_findings *findings, const struct sc_report_options *options,
                                    struct sc_out *out, struct sc_error *err)
{
  struct page page = {.f = findings};
  struct sc_report_options wide = *options;
  struct sc_doc doc = {0};
  enum sc_status status;

  wide.width = PAGE_WIDTH;
  status = sc_report_content(&doc, findings, &wide, err);

  put_head(&page);
  for (size_t i = 0; !status && i < doc.block_count; i++)
    status = put_block(&page, &doc.blocks[i], err);
  put_foot(&page);
  if (!status && page.html.failed)
    status = sc_error_set(err, SC_ERR_NOMEM, "no memory for the page");
  if (!status)
    sc_out_write(out, page.html.data, page.html.len);
  sc_buf_free(&page.html);
  sc_doc_free(&doc);
  return status;
}
