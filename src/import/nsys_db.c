/* SPDX-License-Identifier: Apache-2.0
 * By libsqlite3. The file may be anybody's: only plain tables are read (a view is a program), and no row may be huge.
 */
#include "import/nsys_db.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROW_MAX (16 << 20) /* bytes of one row */

/* What SQLite says went wrong with this file. */
static enum sc_status db_error(const struct nsys_db *db, const char *table, struct sc_error *err)
{
  int code = sqlite3_errcode(db->sqlite) & 0xff;
  if (code == SQLITE_NOMEM)
    return sc_error_set(err, SC_ERR_NOMEM, "out of memory while '%s' was read", db->path);
  if (code == SQLITE_IOERR || code == SQLITE_CANTOPEN || code == SQLITE_FULL)
    return sc_error_set(err, SC_ERR_IO, "cannot read '%s'%s%s: %s", db->path, table ? ", table " : "",
                        table ? table : "", sqlite3_errmsg(db->sqlite));
  return sc_error_set(err, SC_ERR_FORMAT,
                      "'%s'%s%s is damaged, or no Nsight Systems export: %s. Export the report again: "
                      "nsys export --type sqlite --force-overwrite true -o NEW.sqlite REPORT.nsys-rep",
                      db->path, table ? ", table " : "", table ? table : "", sqlite3_errmsg(db->sqlite));
}

/* file:PATH?immutable=1, with what means something in a URI written as %XX. */
static char *uri_of(const char *path)
{
  struct sc_buf uri = {0};
  sc_buf_puts(&uri, "file:");
  for (; *path; ++path) {
    if (strchr("%?#", *path))
      sc_buf_printf(&uri, "%%%02X", (unsigned char)*path);
    else
      sc_buf_append(&uri, path, 1);
  }
  sc_buf_puts(&uri, "?immutable=1");
  if (uri.failed) {
    sc_buf_free(&uri);
    return NULL;
  }
  return uri.data;
}

static enum sc_status configure(struct nsys_db *db, struct sc_error *err)
{
  sqlite3_limit(db->sqlite, SQLITE_LIMIT_LENGTH, ROW_MAX);
  sqlite3_limit(db->sqlite, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  /* Reading the schema is the first look at the file. */
  if (sqlite3_exec(db->sqlite,
                   "PRAGMA cell_size_check=1; PRAGMA cache_size=-16384; SELECT 1 FROM sqlite_schema LIMIT 1", NULL,
                   NULL, NULL) != SQLITE_OK)
    return db_error(db, NULL, err);
  return SC_OK;
}

/* Beside a database lies what is not in it yet, or has to be undone: a write-ahead log, or the journal of a writer that
 * died (one that is done with is empty, or begins with zeros). The file alone would be read as if it were whole. */
static enum sc_status look_for_changes(const char *path, struct sc_error *err)
{
  static const char *const suffixes[] = {"-wal", "-journal"};
  enum sc_status status = SC_OK;
  for (size_t i = 0; i < SC_COUNTOF(suffixes) && status == SC_OK; ++i) {
    char *name = sc_asprintf("%s%s", path, suffixes[i]);
    struct stat info;
    FILE *file = name && stat(name, &info) == 0 && S_ISREG(info.st_mode) ? fopen(name, "re") : NULL;
    int first = file ? getc(file) : 0;
    if (!name)
      status = sc_error_no_memory(err);
    else if (first > 0)
      status = sc_error_set(err, SC_ERR_FORMAT,
                            "'%s' has changes that are not in the file itself but in '%s': end the program that writes "
                            "it, or bring them in: sqlite3 '%s' 'PRAGMA journal_mode=DELETE'",
                            path, name, path);
    if (file)
      fclose(file);
    free(name);
  }
  return status;
}

enum sc_status nsys_open(const char *path, struct nsys_db *db, struct sc_error *err)
{
  *db = (struct nsys_db){.path = path};
  if (access(path, R_OK) != 0)
    return sc_error_set(err, SC_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
  enum sc_status status = look_for_changes(path, err);
  if (status != SC_OK)
    return status;
  char *uri = uri_of(path);
  if (!uri)
    return sc_error_no_memory(err);
  int code = sqlite3_open_v2(uri, &db->sqlite, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
  free(uri);
  if (!db->sqlite)
    status = sc_error_no_memory(err);
  else
    status = code == SQLITE_OK ? configure(db, err) : db_error(db, NULL, err);
  if (status != SC_OK)
    nsys_close(db);
  return status;
}

void nsys_close(struct nsys_db *db)
{
  sqlite3_close(db->sqlite);
  db->sqlite = NULL;
}

/* ---- rows --------------------------------------------------------------------------------------------- */

static enum sc_status prepare(const struct nsys_db *db, const char *table, const char *sql, sqlite3_stmt **out,
                              struct sc_error *err)
{
  return sqlite3_prepare_v2(db->sqlite, sql, -1, out, NULL) == SQLITE_OK ? SC_OK : db_error(db, table, err);
}

/* A table that was made by CREATE TABLE, and nothing that only looks like one. */
static enum sc_status is_table(const struct nsys_db *db, const char *name, bool *out, struct sc_error *err)
{
  sqlite3_stmt *statement = NULL;
  enum sc_status status = prepare(db, name,
                                  "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE AND "
                                  "sql LIKE 'CREATE TABLE%'",
                                  &statement, err);
  if (status != SC_OK)
    return status;
  sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
  int code = sqlite3_step(statement);
  *out = code == SQLITE_ROW;
  if (code != SQLITE_ROW && code != SQLITE_DONE)
    status = db_error(db, name, err);
  sqlite3_finalize(statement);
  return status;
}

/* Which of the columns there are. Generated columns are none: a program again. */
static enum sc_status find_columns(const struct nsys_db *db, const struct nsys_table *table, uint32_t *present,
                                   struct sc_error *err)
{
  sqlite3_stmt *statement = NULL;
  enum sc_status status = prepare(db, table->name, "SELECT name FROM pragma_table_info(?1)", &statement, err);
  if (status != SC_OK)
    return status;
  sqlite3_bind_text(statement, 1, table->name, -1, SQLITE_STATIC);
  int code;
  *present = 0;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(statement, 0);
    for (int i = 0; name && i < NSYS_COLUMNS_MAX && table->columns[i]; ++i) {
      if (sqlite3_stricmp(name, table->columns[i]) == 0)
        *present |= 1u << i;
    }
  }
  if (code != SQLITE_DONE)
    status = db_error(db, table->name, err);
  sqlite3_finalize(statement);
  return status;
}

enum sc_status nsys_rows_open(const struct nsys_db *db, const struct nsys_table *table, const char *order,
                              struct nsys_rows *rows, struct sc_error *err)
{
  bool there = false;
  struct sc_buf sql = {0};
  *rows = (struct nsys_rows){.db = db, .table = table};
  enum sc_status status = is_table(db, table->name, &there, err);
  if (status != SC_OK || !there)
    return status;
  status = find_columns(db, table, &rows->present, err);
  sc_buf_puts(&sql, "SELECT ");
  for (int i = 0; status == SC_OK && i < NSYS_COLUMNS_MAX && table->columns[i]; ++i) {
    bool here = rows->present >> i & 1;
    if (!here && i < table->needed)
      status = sc_error_set(err, SC_ERR_FORMAT,
                            "'%s' is no Nsight Systems export that can be read: its table %s has no column %s",
                            db->path, table->name, table->columns[i]);
    sc_buf_printf(&sql, here ? "%s\"%s\"" : "%sNULL", i ? ", " : "", table->columns[i]);
  }
  sc_buf_printf(&sql, " FROM \"%s\" %s", table->name, order ? order : "");
  if (status == SC_OK && sql.failed)
    status = sc_error_no_memory(err);
  if (status == SC_OK)
    status = prepare(db, table->name, sql.data, &rows->statement, err);
  sc_buf_free(&sql);
  return status;
}

void nsys_rows_close(struct nsys_rows *rows)
{
  sqlite3_finalize(rows->statement);
  rows->statement = NULL;
}

enum sc_status nsys_rows_next(struct nsys_rows *rows, bool *more, struct sc_error *err)
{
  *more = false;
  if (!rows->statement)
    return SC_OK;
  int code = sqlite3_step(rows->statement);
  *more = code == SQLITE_ROW;
  return code == SQLITE_ROW || code == SQLITE_DONE ? SC_OK : db_error(rows->db, rows->table->name, err);
}

static const char *text_of(sqlite3_stmt *statement, int column, size_t *length)
{
  if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
    return NULL;
  const char *text = (const char *)sqlite3_column_text(statement, column);
  *length = text ? (size_t)sqlite3_column_bytes(statement, column) : 0;
  return text;
}

const char *nsys_text(const struct nsys_rows *rows, int column, size_t *length)
{
  return text_of(rows->statement, column, length);
}

/* ---- StringIds ------------------------------------------------------------------------------------------- */

/* Exports have a primary key; other people's tools leave it out. */
static enum sc_status has_index(const struct nsys_db *db, bool *out, struct sc_error *err)
{
  sqlite3_stmt *plan = NULL;
  enum sc_status status =
      prepare(db, "StringIds", "EXPLAIN QUERY PLAN SELECT value FROM main.StringIds WHERE id = 1", &plan, err);
  if (status != SC_OK)
    return status;
  int code = sqlite3_step(plan);
  const char *detail = code == SQLITE_ROW ? (const char *)sqlite3_column_text(plan, 3) : NULL;
  *out = detail && strncmp(detail, "SEARCH", 6) == 0;
  if (code != SQLITE_ROW && code != SQLITE_DONE)
    status = db_error(db, "StringIds", err);
  sqlite3_finalize(plan);
  return status;
}

/* A copy with an index, in a temporary database of SQLite: every look-up would have to read the whole table. */
static enum sc_status copy_strings(const struct nsys_db *db, struct sc_error *err)
{
  static const char sql[] = "CREATE TEMP TABLE indexed_strings AS SELECT id, value FROM main.StringIds;"
                            "CREATE INDEX temp.indexed_strings_id ON indexed_strings (id)";
  return sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL) == SQLITE_OK ? SC_OK : db_error(db, "StringIds", err);
}

enum sc_status nsys_strings_open(const struct nsys_db *db, struct nsys_strings *strings, struct sc_error *err)
{
  bool there = false, indexed = false;
  *strings = (struct nsys_strings){.db = db};
  enum sc_status status = is_table(db, "StringIds", &there, err);
  if (status != SC_OK || !there)
    return status;
  status = has_index(db, &indexed, err);
  if (status == SC_OK && !indexed)
    status = copy_strings(db, err);
  if (status == SC_OK)
    status = prepare(db, "StringIds",
                     indexed ? "SELECT value FROM main.StringIds WHERE id = ?1"
                             : "SELECT value FROM temp.indexed_strings WHERE id = ?1",
                     &strings->statement, err);
  return status;
}

void nsys_strings_close(struct nsys_strings *strings)
{
  sqlite3_finalize(strings->statement);
  strings->statement = NULL;
}

enum sc_status nsys_string(struct nsys_strings *strings, int64_t id, const char **text, size_t *length,
                           struct sc_error *err)
{
  *text = NULL;
  *length = 0;
  if (!strings->statement)
    return SC_OK;
  sqlite3_reset(strings->statement);
  sqlite3_bind_int64(strings->statement, 1, id);
  int code = sqlite3_step(strings->statement);
  if (code == SQLITE_ROW)
    *text = text_of(strings->statement, 0, length);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SC_OK : db_error(strings->db, "StringIds", err);
}

/* ---- maps -------------------------------------------------------------------------------------------------- */

bool nsys_map_get(struct nsys_map *map, int64_t key, uint32_t *value)
{
  if (!map->has_last || map->last_key != key) {
    uint32_t number = sc_intern_find(&map->keys, &key, sizeof key);
    if (!number)
      return false;
    map->has_last = true;
    map->last_key = key;
    map->last_value = map->values[number - 1];
  }
  *value = map->last_value;
  return true;
}

bool nsys_map_put(struct nsys_map *map, int64_t key, uint32_t value)
{
  bool added;
  uint32_t number = sc_intern_add(&map->keys, &key, sizeof key, &added);
  if (!number || (added && !sc_array_push(&map->values, &map->count, &map->capacity, sizeof *map->values)))
    return false;
  map->values[number - 1] = value;
  map->has_last = false;
  return true;
}

void nsys_map_free(struct nsys_map *map)
{
  sc_intern_free(&map->keys);
  free(map->values);
  *map = (struct nsys_map){0};
}
