/* SPDX-License-Identifier: Apache-2.0
 * An Nsight Systems export as tables with columns that may be missing and values that may be of any type. */
#ifndef SC_IMPORT_NSYS_DB_H
#define SC_IMPORT_NSYS_DB_H

#include <sqlite3.h>

#include "base/base.h"
#include "import/intern.h"

struct nsys_db {
  sqlite3 *sqlite;
  const char *path;
};
/* Read-only and as if nobody else wrote: no lock, no journal, nothing is left beside the file. */
enum sc_status nsys_open(const char *path, struct nsys_db *db, struct sc_error *err) SC_NODISCARD;
void nsys_close(struct nsys_db *db);

/* ---- rows -------------------------------------------------------------------------------------- */
#define NSYS_COLUMNS_MAX 16
struct nsys_table {
  const char *name;
  const char *columns[NSYS_COLUMNS_MAX]; /* ends with NULL; the first `needed` of them must be there */
  int needed;
};
struct nsys_rows {
  const struct nsys_db *db;
  const struct nsys_table *table;
  sqlite3_stmt *statement; /* NULL: there is no such table */
  uint32_t present;        /* bit by column */
};
/* A table that is not there has no rows, and rows->statement is NULL; one without a needed column is an error. order:
 * what follows the table's name, or NULL. */
enum sc_status nsys_rows_open(const struct nsys_db *db, const struct nsys_table *table, const char *order,
                              struct nsys_rows *rows, struct sc_error *err) SC_NODISCARD;
void nsys_rows_close(struct nsys_rows *rows);
enum sc_status nsys_rows_next(struct nsys_rows *rows, bool *more, struct sc_error *err) SC_NODISCARD;
static inline bool nsys_has(const struct nsys_rows *rows, int column) { return rows->present >> column & 1; }

/* An integer, also one that was stored as a real number without a fraction. False: NULL or of another type. */
static inline bool nsys_integer(const struct nsys_rows *rows, int column, int64_t *out)
{
  sqlite3_value *value = sqlite3_column_value(rows->statement, column);
  int type = sqlite3_value_type(value);
  if (__builtin_expect(type == SQLITE_INTEGER, 1)) {
    *out = sqlite3_value_int64(value);
    return true;
  }
  if (type != SQLITE_FLOAT)
    return false;
  double real = sqlite3_value_double(value);
  if (!(real > -9.2e18 && real < 9.2e18))
    return false;
  *out = (int64_t)real;
  return true;
}
/* A text, valid until the next row. NULL: none, or something else. */
const char *nsys_text(const struct nsys_rows *rows, int column, size_t *length);

/* ---- StringIds, looked up as they are needed --------------------------------------------------------- */
struct nsys_strings {
  sqlite3_stmt *statement; /* NULL: the table is missing */
  const struct nsys_db *db;
};
enum sc_status nsys_strings_open(const struct nsys_db *db, struct nsys_strings *strings,
                                 struct sc_error *err) SC_NODISCARD;
void nsys_strings_close(struct nsys_strings *strings);
/* The text of an id, valid until the next look-up; *text is NULL if it is not there. */
enum sc_status nsys_string(struct nsys_strings *strings, int64_t id, const char **text, size_t *length,
                           struct sc_error *err) SC_NODISCARD;

/* ---- numbers that stand for something, by number ------------------------------------------------------ */
struct nsys_map { /* zeroed: empty */
  struct sc_intern keys;
  uint32_t *values;
  size_t count, capacity;
  int64_t last_key; /* what was asked for last is often asked for again */
  uint32_t last_value;
  bool has_last;
};
bool nsys_map_get(struct nsys_map *map, int64_t key, uint32_t *value);
bool nsys_map_put(struct nsys_map *map, int64_t key,
                  uint32_t value); /* a later one replaces it; false: out of memory */
void nsys_map_free(struct nsys_map *map);

#endif
