/* SPDX-License-Identifier: Apache-2.0
 * A report as blocks (lines, tables, lists), between what is said (content) and how it looks (text, Markdown).
 *
 * Strings in a document are printable: everything that comes from outside goes in through sc_put_name or
 * sc_put_prose. The marker bytes below are the only control characters; outside text cannot forge them. A failed
 * allocation sets `failed`, later calls do nothing: check once, at the end. */
#ifndef SC_REPORT_DOC_H
#define SC_REPORT_DOC_H

#include "base/base.h"

#define SC_NAME_BEGIN '\x01'
#define SC_NAME_END '\x02'
#define SC_TIGHT_SPACE '\x03' /* a blank that no line is broken at: between a number and its unit */

enum sc_tone { SC_TONE_PLAIN, SC_TONE_STRONG, SC_TONE_GOOD, SC_TONE_BAD, SC_TONE_NOTE };

enum sc_block_kind {
  SC_BLOCK_BANNER, /* before all else */
  SC_BLOCK_HEADING,
  SC_BLOCK_LINE, /* a line of its own, wrapped when too long */
  SC_BLOCK_ITEM, /* an element of a list */
  SC_BLOCK_TABLE,
  SC_BLOCK_GAP,     /* an empty line */
  SC_BLOCK_FOLD,    /* what follows may be folded away under this heading, ... */
  SC_BLOCK_FOLD_END, /* ... up to here */
  SC_BLOCK_FIGURE   /* a place for a figure; formats of text have none */
};

enum sc_figure {
  SC_FIGURE_LAWS,    /* syncs over experts */
  SC_FIGURE_FLOOR,   /* floor in the forward */
  SC_FIGURE_HEAT,    /* syncs by layer and expert */
  SC_FIGURE_RULER,   /* round trips */
  SC_FIGURE_TIMELINE /* waits of one process over time */
};

struct sc_column {
  char *head; /* up to two lines, "syncs\na layer" */
  bool right;
};

struct sc_cell {
  char *text; /* NULL or "": nothing to say */
  enum sc_tone tone;
};

struct sc_table {
  struct sc_column *columns;
  size_t column_count, column_cap;
  size_t keys;           /* leading columns that a narrow terminal repeats */
  struct sc_cell *cells; /* rows x columns */
  size_t cell_count, cell_cap;
  unsigned *indents; /* one a row */
  size_t row_count, row_cap;
};

struct sc_block {
  enum sc_block_kind kind;
  enum sc_tone tone;
  char *text;
  struct sc_table *table;
  enum sc_figure figure;
  size_t figure_index; /* of the process */
};

struct sc_doc {
  struct sc_block *blocks;
  size_t block_count, block_cap;
  bool failed;
};

void sc_doc_free(struct sc_doc *doc);

/* A block with text in printf form; foreign text never goes in through %s. */
void sc_doc_put(struct sc_doc *doc, enum sc_block_kind kind, enum sc_tone tone, const char *format, ...)
    SC_PRINTF(4, 5);
/* The same from a buffer, which it takes and empties. */
void sc_doc_take(struct sc_doc *doc, enum sc_block_kind kind, enum sc_tone tone, struct sc_buf *text);

/* A place for a figure; index: of the process, for SC_FIGURE_TIMELINE. */
void sc_doc_figure(struct sc_doc *doc, enum sc_figure figure, size_t index);

/* A table: columns first, then rows, then its cells from left to right. Columns without any content vanish at
 * sc_doc_table_end, and the whole table if it has no row. */
void sc_doc_table(struct sc_doc *doc, size_t keys);
void sc_doc_column(struct sc_doc *doc, bool right, const char *format, ...) SC_PRINTF(3, 4);
void sc_doc_column_take(struct sc_doc *doc, bool right, struct sc_buf *head);
void sc_doc_row(struct sc_doc *doc, unsigned indent);
void sc_doc_cell(struct sc_doc *doc, enum sc_tone tone, const char *format, ...) SC_PRINTF(3, 4);
void sc_doc_cell_take(struct sc_doc *doc, enum sc_tone tone, struct sc_buf *text);
void sc_doc_table_end(struct sc_doc *doc);

/* A foreign name, printable, framed by the markers, its middle left out beyond max characters (0: 96). NULL: "?". */
void sc_put_name(struct sc_buf *buf, const char *name, size_t max);
/* Foreign prose (warnings, reasons), printable and at most 1,000 characters, without the markers. */
void sc_put_prose(struct sc_buf *buf, const char *text);

/* Columns that a printable string takes (code points; the markers take none). */
size_t sc_text_columns(const char *text, size_t n);

#endif
