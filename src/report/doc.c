/* SPDX-License-Identifier: Apache-2.0
 * Building a document: blocks, tables, and the way in for foreign text. */
#include "report/doc.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_COLUMNS = 96, PROSE_MAX_COLUMNS = 1000 };

static void table_free(struct sc_table *table)
{
  if (!table)
    return;
  for (size_t i = 0; i < table->column_count; i++)
    free(table->columns[i].head);
  for (size_t i = 0; i < table->cell_count; i++)
    free(table->cells[i].text);
  free(table->columns);
  free(table->cells);
  free(table->indents);
  free(table);
}

void sc_doc_free(struct sc_doc *doc)
{
  for (size_t i = 0; i < doc->block_count; i++) {
    free(doc->blocks[i].text);
    table_free(doc->blocks[i].table);
  }
  free(doc->blocks);
  *doc = (struct sc_doc){0};
}

/* The text of a buffer, which is emptied; NULL and doc->failed when memory ran out on the way. */
static char *take_text(struct sc_doc *doc, struct sc_buf *buf)
{
  char *text = buf->data;

  if (!buf->failed && !text)
    text = sc_strdup("");
  if (buf->failed || !text) {
    doc->failed = true;
    sc_buf_free(buf);
    return NULL;
  }
  *buf = (struct sc_buf){0};
  return text;
}

static void put_va(struct sc_buf *buf, const char *format, va_list args)
{
  char *text = NULL;

  if (vasprintf(&text, format, args) < 0) {
    buf->failed = true;
    return;
  }
  sc_buf_puts(buf, text);
  free(text);
}

static struct sc_block *new_block(struct sc_doc *doc, enum sc_block_kind kind, enum sc_tone tone)
{
  struct sc_block *block = NULL;

  if (!doc->failed)
    block = sc_array_push(&doc->blocks, &doc->block_count, &doc->block_cap, sizeof *doc->blocks);
  if (!block) {
    doc->failed = true;
    return NULL;
  }
  block->kind = kind;
  block->tone = tone;
  return block;
}

void sc_doc_take(struct sc_doc *doc, enum sc_block_kind kind, enum sc_tone tone, struct sc_buf *buf)
{
  char *text = take_text(doc, buf);
  struct sc_block *block = text ? new_block(doc, kind, tone) : NULL;

  if (block)
    block->text = text;
  else
    free(text);
}

void sc_doc_put(struct sc_doc *doc, enum sc_block_kind kind, enum sc_tone tone, const char *format, ...)
{
  struct sc_buf buf = {0};
  va_list args;

  va_start(args, format);
  put_va(&buf, format, args);
  va_end(args);
  sc_doc_take(doc, kind, tone, &buf);
}

void sc_doc_figure(struct sc_doc *doc, enum sc_figure figure, size_t index)
{
  struct sc_block *block = new_block(doc, SC_BLOCK_FIGURE, SC_TONE_PLAIN);

  if (!block)
    return;
  block->figure = figure;
  block->figure_index = index;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void sc_doc_table(struct sc_doc *doc, size_t keys)
{
  struct sc_table *table = calloc(1, sizeof *table);
  struct sc_block *block = table ? new_block(doc, SC_BLOCK_TABLE, SC_TONE_PLAIN) : NULL;

  if (!block) {
    doc->failed = true;
    free(table);
    return;
  }
  table->keys = keys;
  block->table = table;
}

/* The table under construction; NULL after a failure. */
static struct sc_table *open_table(struct sc_doc *doc)
{
  return doc->failed || !doc->block_count ? NULL : doc->blocks[doc->block_count - 1].table;
}

void sc_doc_column_take(struct sc_doc *doc, bool right, struct sc_buf *buf)
{
  struct sc_table *table = open_table(doc);
  struct sc_column *column = NULL;
  char *head;

  if (!table) {
    sc_buf_free(buf);
    return;
  }
  head = take_text(doc, buf);
  if (head)
    column = sc_array_push(&table->columns, &table->column_count, &table->column_cap, sizeof *table->columns);
  if (!column) {
    doc->failed = true;
    free(head);
    return;
  }
  *column = (struct sc_column){.head = head, .right = right};
}

void sc_doc_column(struct sc_doc *doc, bool right, const char *format, ...)
{
  struct sc_buf buf = {0};
  va_list args;

  va_start(args, format);
  put_va(&buf, format, args);
  va_end(args);
  sc_doc_column_take(doc, right, &buf);
}

void sc_doc_row(struct sc_doc *doc, unsigned indent)
{
  struct sc_table *table = open_table(doc);
  unsigned *slot;

  if (!table)
    return;
  slot = sc_array_push(&table->indents, &table->row_count, &table->row_cap, sizeof *table->indents);
  if (!slot) {
    doc->failed = true;
    return;
  }
  *slot = indent;
}

void sc_doc_cell_take(struct sc_doc *doc, enum sc_tone tone, struct sc_buf *buf)
{
  struct sc_table *table = open_table(doc);
  struct sc_cell *cell = NULL;
  char *text;

  if (!table) {
    sc_buf_free(buf);
    return;
  }
  text = take_text(doc, buf);
  if (text)
    cell = sc_array_push(&table->cells, &table->cell_count, &table->cell_cap, sizeof *table->cells);
  if (!cell) {
    doc->failed = true;
    free(text);
    return;
  }
  *cell = (struct sc_cell){.text = text, .tone = tone};
}

void sc_doc_cell(struct sc_doc *doc, enum sc_tone tone, const char *format, ...)
{
  struct sc_buf buf = {0};
  va_list args;

  va_start(args, format);
  put_va(&buf, format, args);
  va_end(args);
  sc_doc_cell_take(doc, tone, &buf);
}

static bool column_is_empty(const struct sc_table *table, size_t column)
{
  for (size_t row = 0; row < table->row_count; row++) {
    const char *text = table->cells[row * table->column_count + column].text;

    if (*text && strcmp(text, "-") != 0)
      return false;
  }
  return true;
}

static void drop_column(struct sc_table *table, size_t column)
{
  size_t kept = 0;

  for (size_t i = 0; i < table->cell_count; i++) {
    if (i % table->column_count == column)
      free(table->cells[i].text);
    else
      table->cells[kept++] = table->cells[i];
  }
  table->cell_count = kept;
  free(table->columns[column].head);
  memmove(&table->columns[column], &table->columns[column + 1],
          (table->column_count - column - 1) * sizeof *table->columns);
  table->column_count--;
}

void sc_doc_table_end(struct sc_doc *doc)
{
  struct sc_table *table = open_table(doc);

  if (!table)
    return;
  assert(table->cell_count == table->row_count * table->column_count); /* a row without all its cells is our own bug */
  if (table->row_count == 0) {
    table_free(table);
    doc->block_count--;
    return;
  }
  for (size_t column = table->column_count; column-- > table->keys;)
    if (column_is_empty(table, column))
      drop_column(table, column);
}

/* ---- foreign text ------------------------------------------------------------------------------ */

size_t sc_text_columns(const char *text, size_t n)
{
  size_t columns = 0;

  for (size_t i = 0; i < n; i++) {
    unsigned char byte = (unsigned char)text[i];

    columns += (byte & 0xc0) != 0x80 && byte != SC_NAME_BEGIN && byte != SC_NAME_END;
  }
  return columns;
}

/* Byte offset of the given code point of printable text. */
static size_t offset_of(const char *text, size_t n, size_t point)
{
  size_t at = 0;

  while (at < n && point--) {
    size_t length = sc_utf8_length(text + at, n - at);

    at += length ? length : 1;
  }
  return at;
}

/* Printable, and at most max characters: a cut in the middle, since both ends of a path or a name tell. */
static void put_limited(struct sc_buf *buf, const char *text, size_t max)
{
  struct sc_buf whole = {0};
  size_t columns, head, tail;

  sc_buf_put_printable(&whole, text, strlen(text));
  if (whole.failed) {
    buf->failed = true;
    goto cleanup;
  }
  columns = sc_text_columns(whole.data ? whole.data : "", whole.len);
  if (columns <= max) {
    sc_buf_append(buf, whole.data, whole.len);
    goto cleanup;
  }
  head = offset_of(whole.data, whole.len, (max - 3) / 2);
  tail = offset_of(whole.data, whole.len, columns - (max - 3 - (max - 3) / 2));
  sc_buf_append(buf, whole.data, head);
  sc_buf_puts(buf, "...");
  sc_buf_append(buf, whole.data + tail, whole.len - tail);
cleanup:
  sc_buf_free(&whole);
}

void sc_put_name(struct sc_buf *buf, const char *name, size_t max)
{
  char marker = SC_NAME_BEGIN;

  if (!name) {
    sc_buf_puts(buf, "?");
    return;
  }
  sc_buf_append(buf, &marker, 1);
  put_limited(buf, name, max ? max : NAME_MAX_COLUMNS);
  marker = SC_NAME_END;
  sc_buf_append(buf, &marker, 1);
}

void sc_put_prose(struct sc_buf *buf, const char *text) { put_limited(buf, text ? text : "", PROSE_MAX_COLUMNS); }
