/* SPDX-License-Identifier: Apache-2.0
 * A document for a terminal: wrapped lines, aligned tables cut to the width, colours only when asked for. */
#include <stdlib.h>
#include <string.h>

#include "report/content.h"
#include "report/writers.h"

enum { DEFAULT_WIDTH = 100, NARROWEST = 40, WIDEST_LINE = 100, COLUMN_GAP = 2, HEAD_LINES = 2 };

struct text_writer {
  struct sc_out *out;
  size_t width;
  bool color;
};

static void tone_begin(const struct text_writer *w, enum sc_tone tone)
{
  static const char *const codes[] = {
      [SC_TONE_PLAIN] = NULL,       [SC_TONE_STRONG] = "\033[1m", [SC_TONE_GOOD] = "\033[32m",
      [SC_TONE_BAD] = "\033[1;31m", [SC_TONE_NOTE] = "\033[2m",
  };

  if (w->color && codes[tone])
    sc_out_puts(w->out, codes[tone]);
}

static void tone_end(const struct text_writer *w, enum sc_tone tone)
{
  if (w->color && tone != SC_TONE_PLAIN)
    sc_out_puts(w->out, "\033[0m");
}

/* The markers around names are for formats that have a code style; here they go. */
static void put_plain(const struct text_writer *w, const char *text, size_t n)
{
  for (size_t from = 0, i = 0; i <= n; i++) {
    if (i < n && text[i] != SC_NAME_BEGIN && text[i] != SC_NAME_END && text[i] != SC_TIGHT_SPACE)
      continue;
    sc_out_write(w->out, text + from, i - from);
    if (i < n && text[i] == SC_TIGHT_SPACE)
      sc_out_puts(w->out, " ");
    from = i + 1;
  }
}

/* Words to lines of the width; lines after the first are indented by `hang`. A word that is too long keeps its line. */
static void put_wrapped(const struct text_writer *w, enum sc_tone tone, const char *text, const char *first,
                        size_t hang)
{
  size_t limit = w->width < WIDEST_LINE ? w->width : WIDEST_LINE;
  size_t column = strlen(first);
  bool empty = true;

  sc_out_puts(w->out, first);
  tone_begin(w, tone);
  while (*text) {
    size_t n = strcspn(text, " "), columns = sc_text_columns(text, n);

    if (!empty && column + 1 + columns > limit) {
      sc_out_puts(w->out, "\n");
      sc_out_repeat(w->out, ' ', hang);
      column = hang;
      empty = true;
    }
    if (!empty) {
      sc_out_puts(w->out, " ");
      column++;
    }
    put_plain(w, text, n);
    column += columns;
    empty = false;
    text += n;
    text += *text == ' ';
  }
  tone_end(w, tone);
  sc_out_puts(w->out, "\n");
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A head's line counted from the bottom (0: the last), as a span. */
static size_t head_line(const char *head, size_t from_bottom, const char **line)
{
  const char *cut = strchr(head, '\n');

  *line = from_bottom == 0 ? (cut ? cut + 1 : head) : head;
  if (from_bottom == 0)
    return strlen(*line);
  return cut ? (size_t)(cut - head) : 0;
}

static size_t cell_columns(const struct sc_table *table, size_t row, size_t column)
{
  const char *text = table->cells[row * table->column_count + column].text;

  return sc_text_columns(text, strlen(text)) + (column == 0 ? 2 * (size_t)table->indents[row] : 0);
}

static size_t column_width(const struct sc_table *table, size_t column)
{
  size_t width = 0;

  for (size_t i = 0; i < HEAD_LINES; i++) {
    const char *line;
    size_t n = head_line(table->columns[column].head, i, &line), columns = sc_text_columns(line, n);

    if (columns > width)
      width = columns;
  }
  for (size_t row = 0; row < table->row_count; row++) {
    size_t columns = cell_columns(table, row, column);

    if (columns > width)
      width = columns;
  }
  return width;
}

/* One field of a line. Blanks wait in *blanks until something follows them: no line ends in blanks. */
static void put_field(const struct text_writer *w, const char *text, size_t n, size_t indent, size_t width, bool right,
                      size_t *blanks, enum sc_tone tone)
{
  size_t used = sc_text_columns(text, n) + indent, pad = width > used ? width - used : 0;

  if (n == 0) {
    *blanks += width + COLUMN_GAP;
    return;
  }
  sc_out_repeat(w->out, ' ', *blanks + indent + (right ? pad : 0));
  tone_begin(w, tone);
  put_plain(w, text, n);
  tone_end(w, tone);
  *blanks = (right ? 0 : pad) + COLUMN_GAP;
}

/* The columns picked[0..count) as one table. */
static void put_columns(const struct text_writer *w, const struct sc_table *table, const size_t *widths,
                        const size_t *picked, size_t count)
{
  for (size_t line = HEAD_LINES; line-- > 0;) {
    size_t blanks = 0;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
      const char *head;

      any |= head_line(table->columns[picked[i]].head, line, &head) > 0;
    }
    for (size_t i = 0; any && i < count; i++) {
      const char *head;
      size_t n = head_line(table->columns[picked[i]].head, line, &head);

      put_field(w, head, n, 0, widths[picked[i]], table->columns[picked[i]].right, &blanks, SC_TONE_NOTE);
    }
    if (any)
      sc_out_puts(w->out, "\n");
  }
  for (size_t row = 0; row < table->row_count; row++) {
    size_t blanks = 0;

    for (size_t i = 0; i < count; i++) {
      const struct sc_cell *cell = &table->cells[row * table->column_count + picked[i]];
      size_t indent = picked[i] == 0 ? 2 * (size_t)table->indents[row] : 0;

      put_field(w, cell->text, strlen(cell->text), indent, widths[picked[i]], table->columns[picked[i]].right, &blanks,
                cell->tone);
    }
    sc_out_puts(w->out, "\n");
  }
}

/* Where a part ends that begins at column `next` behind the keys: at least one column, then what fits the limit. */
static size_t part_end(const struct sc_table *table, const size_t *widths, size_t next, size_t limit)
{
  size_t used = 0, first = next;

  for (size_t i = 0; i < table->keys; i++)
    used += widths[i] + COLUMN_GAP;
  while (next < table->column_count && (next == first || used + widths[next] <= limit))
    used += widths[next++] + COLUMN_GAP;
  return next;
}

static size_t part_count(const struct sc_table *table, const size_t *widths, size_t limit)
{
  size_t parts = 0;

  for (size_t next = table->keys; next < table->column_count; parts++)
    next = part_end(table, widths, next, limit);
  return parts;
}

/* A table that is too wide is cut into parts below each other, each with the key columns, about equally wide. */
static enum sc_status put_table(const struct text_writer *w, const struct sc_table *table, struct sc_error *err)
{
  size_t *widths = sc_calloc_array(table->column_count, sizeof *widths);
  size_t *picked = sc_calloc_array(table->column_count, sizeof *picked);
  enum sc_status status = SC_OK;
  size_t limit = w->width, parts, next = table->keys;

  if (!widths || !picked) {
    status = sc_error_set(err, SC_ERR_NOMEM, "no memory for a table of the report");
    goto cleanup;
  }
  for (size_t i = 0; i < table->column_count; i++) {
    widths[i] = column_width(table, i);
    picked[i] = i;
  }
  parts = part_count(table, widths, limit);
  while (parts > 1 && limit > 1 && part_count(table, widths, limit - 1) == parts)
    limit--;
  for (size_t part = 0; part == 0 || part < parts; part++) {
    size_t end = part_end(table, widths, next, limit), count = table->keys;

    if (part)
      sc_out_puts(w->out, "\n");
    while (next < end)
      picked[count++] = next++;
    put_columns(w, table, widths, picked, count);
  }
cleanup:
  free(widths);
  free(picked);
  return status;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static enum sc_status put_block(const struct text_writer *w, const struct sc_block *block, struct sc_error *err)
{
  switch (block->kind) {
  case SC_BLOCK_BANNER:
    put_wrapped(w, SC_TONE_BAD, block->text, "", 0);
    sc_out_puts(w->out, "\n");
    break;
  case SC_BLOCK_HEADING:
  case SC_BLOCK_FOLD:
    sc_out_puts(w->out, "\n");
    put_wrapped(w, SC_TONE_STRONG, block->text, "", 2);
    break;
  case SC_BLOCK_LINE: put_wrapped(w, block->tone, block->text, "", 2); break;
  case SC_BLOCK_ITEM: put_wrapped(w, block->tone, block->text, "  ", 4); break;
  case SC_BLOCK_GAP: sc_out_puts(w->out, "\n"); break;
  case SC_BLOCK_TABLE: return put_table(w, block->table, err);
  case SC_BLOCK_FOLD_END:
  case SC_BLOCK_FIGURE: break;
  }
  return SC_OK;
}

enum sc_status sc_report_write_text(const struct sc_findings *findings, const struct sc_report_options *options,
                                    struct sc_out *out, struct sc_error *err)
{
  struct text_writer writer = {.out = out, .width = options->width, .color = options->color};
  struct sc_doc doc = {0};
  enum sc_status status = sc_report_content(&doc, findings, options, err);

  if (writer.width == 0)
    writer.width = DEFAULT_WIDTH;
  if (writer.width < NARROWEST)
    writer.width = NARROWEST;
  for (size_t i = 0; !status && i < doc.block_count; i++)
    status = put_block(&writer, &doc.blocks[i], err);
  sc_doc_free(&doc);
  return status;
}
