/* SPDX-License-Identifier: Apache-2.0
 * Files as tables of fields, and one reader for all of them. */
#ifndef SC_CONFIG_FIELDS_H
#define SC_CONFIG_FIELDS_H

#include "config/node.h"

enum field_kind {
  FIELD_NUMBER,  /* uint64_t */
  FIELD_REAL,    /* struct sc_config_real; null counts as absent */
  FIELD_TEXT,    /* char * */
  FIELD_WORD,    /* an enum: the index in words */
  FIELD_NAME,    /* char *: one of words */
  FIELD_BOOL,    /* bool */
  FIELD_NUMBERS, /* uint64_t * and its size_t count at count_offset */
  FIELD_NAMES,   /* char ** of words and its count */
  FIELD_SECTION, /* a mapping read with `section` at the same base */
  FIELD_TEXTS,   /* char ** of any text and its count */
  FIELD_ITEMS, /* a list of sections: an array of structs of item_size, each beginning with a struct item_place, and its
                  count */
};

struct field {
  const char *key;
  enum field_kind kind;
  bool required;
  size_t offset;
  size_t extra;      /* offset of the count of a list, of the bool that says that it was given (SIZE_MAX: none) */
  uint64_t min, max; /* numbers */
  const char *const *words;    /* NULL-terminated */
  const struct field *section; /* SECTION, ITEMS. In the last row of a table: the table that goes on */
  size_t item_size;
};

#define NO_EXTRA SIZE_MAX

struct item_place { /* of an item of a list, in its file */
  size_t line, column;
};

/* One file that is being read: where the values go and how messages name the file. */
struct target {
  char *base; /* the struct that the offsets are of */
  const char *name;
  struct sc_error *err;
};

/* Reads a mapping; a table ends with a NULL key. section is the name for messages, NULL for the file itself. What was
 * stored before a failure is freed with the whole struct. */
enum sc_status fields_read(const struct target *target, const struct field *fields, const struct node *node,
                           const char *section) SC_NODISCARD;
/* The position of a key in a section, for checks that come after reading; the section itself if it is not there. */
const struct node *fields_find(const struct node *section, const char *key);
/* A whole file as text, at most 1 MiB. The caller frees the buffer, after a failure too. */
enum sc_status fields_read_file(const char *path, struct sc_buf *out, struct sc_error *err) SC_NODISCARD;

#endif
