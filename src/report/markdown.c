/* SPDX-License-Identifier: Apache-2.0
 * A document as GitHub Markdown, to be pasted into an issue: foreign text can neither break a table, nor make a
 * link, mention or tag. */
#include <string.h>

#include "report/content.h"
#include "report/writers.h"

/* Marks of ours in the text. */
static const char *mark_of(char byte)
{
  switch (byte) {
  case SC_NAME_BEGIN: return "<code>"; /* in code GitHub looks for no mentions, numbers or emoji */
  case SC_NAME_END: return "</code>";
  case SC_TIGHT_SPACE: return " ";
  default: return NULL;
  }
}

/* What would start a list at the beginning of a block, "-", "+", "12." or "12)": where to escape, SIZE_MAX: nowhere. */
static size_t list_mark(const char *text)
{
  size_t digits = strspn(text, "0123456789"), mark = 0;

  if (digits && (text[digits] == '.' || text[digits] == ')'))
    mark = digits;
  else if (*text != '-' && *text != '+')
    return SIZE_MAX;
  return text[mark + 1] == ' ' || !text[mark + 1] ? mark : SIZE_MAX;
}

/* mark: offset of a byte that gets a backslash whatever it is, SIZE_MAX: none. */
static void put_escaped(struct sc_out *out, const char *text, size_t n, size_t mark)
{
  size_t from = 0, i = 0;
  bool in_code = false;

  for (; i < n; i++) {
    const char *escape = mark_of(text[i]);

    if (!escape)
      escape = sc_markdown_escape(text, i, in_code);
    in_code = text[i] == SC_NAME_BEGIN || (in_code && text[i] != SC_NAME_END);
    if (i == mark) {
      sc_out_write(out, text + from, i - from);
      sc_out_puts(out, "\\");
      from = i;
    }
    if (!escape)
      continue;
    sc_out_write(out, text + from, i - from);
    sc_out_puts(out, escape);
    from = i + 1;
  }
  sc_out_write(out, text + from, i - from);
}

/* Text at the beginning of a block. Four blanks would make a code block. */
static void put_line(struct sc_out *out, enum sc_tone tone, const char *text)
{
  text += strspn(text, " ");
  if (tone == SC_TONE_STRONG || tone == SC_TONE_BAD) {
    sc_out_puts(out, "**");
    put_escaped(out, text, strlen(text), SIZE_MAX);
    sc_out_puts(out, "**");
  } else {
    put_escaped(out, text, strlen(text), list_mark(text));
  }
}

/* The two lines of a head as one: "syncs\na layer" -> "syncs a layer". */
static void put_head(struct sc_out *out, const char *head)
{
  size_t n = strcspn(head, "\n");

  put_escaped(out, head, n, SIZE_MAX);
  if (!head[n])
    return;
  sc_out_puts(out, n && head[n - 1] != '-' ? " " : "");
  put_escaped(out, head + n + 1, strlen(head + n + 1), SIZE_MAX);
}

static void put_table(struct sc_out *out, const struct sc_table *table)
{
  for (size_t i = 0; i < table->column_count; i++) {
    sc_out_puts(out, i ? " | " : "| ");
    put_head(out, table->columns[i].head);
  }
  sc_out_puts(out, " |\n");
  for (size_t i = 0; i < table->column_count; i++)
    sc_out_puts(out, table->columns[i].right ? "|---:" : "|:---");
  sc_out_puts(out, "|\n");
  for (size_t row = 0; row < table->row_count; row++) {
    for (size_t i = 0; i < table->column_count; i++) {
      const struct sc_cell *cell = &table->cells[row * table->column_count + i];

      sc_out_puts(out, i ? " | " : "| ");
      for (unsigned level = 0; i == 0 && level < table->indents[row]; level++)
        sc_out_puts(out, "&emsp;");
      /* Every number bold would be none: in a table only what is wrong is. */
      sc_out_puts(out, cell->tone == SC_TONE_BAD ? "**" : "");
      put_escaped(out, cell->text, strlen(cell->text), SIZE_MAX);
      sc_out_puts(out, cell->tone == SC_TONE_BAD ? "**" : "");
    }
    sc_out_puts(out, " |\n");
  }
}

static void put_block(struct sc_out *out, const struct sc_block *block)
{
  switch (block->kind) {
  case SC_BLOCK_BANNER:
    sc_out_puts(out, "> ");
    put_line(out, SC_TONE_BAD, block->text);
    sc_out_puts(out, "\n");
    break;
  case SC_BLOCK_HEADING:
    sc_out_puts(out, "### ");
    put_line(out, SC_TONE_PLAIN, block->text);
    sc_out_puts(out, "\n");
    break;
  case SC_BLOCK_ITEM:
    sc_out_puts(out, "- ");
    put_line(out, block->tone, block->text);
    sc_out_puts(out, "\n");
    break;
  case SC_BLOCK_LINE:
    put_line(out, block->tone, block->text);
    sc_out_puts(out, "\n");
    break;
  case SC_BLOCK_FOLD: /* its headings are our own words, without anything to escape */
    sc_out_puts(out, "<details><summary>");
    sc_out_puts(out, block->text);
    sc_out_puts(out, "</summary>\n");
    break;
  case SC_BLOCK_FOLD_END: sc_out_puts(out, "</details>\n"); break;
  case SC_BLOCK_TABLE: put_table(out, block->table); break;
  case SC_BLOCK_FIGURE:
  case SC_BLOCK_GAP: /* blocks are apart as it is */ break;
  }
}

enum sc_status sc_report_write_markdown(const struct sc_findings *findings, const struct sc_report_options *options,
                                        struct sc_out *out, struct sc_error *err)
{
  struct sc_doc doc = {0};
  enum sc_status status = sc_report_content(&doc, findings, options, err);

  for (size_t i = 0; !status && i < doc.block_count; i++) {
    enum sc_block_kind kind = doc.blocks[i].kind;
    bool in_list = i && kind == SC_BLOCK_ITEM && doc.blocks[i - 1].kind == SC_BLOCK_ITEM;

    if (i && kind != SC_BLOCK_GAP && kind != SC_BLOCK_FIGURE && !in_list)
      sc_out_puts(out, "\n");
    put_block(out, &doc.blocks[i]);
  }
  sc_doc_free(&doc);
  return status;
}
