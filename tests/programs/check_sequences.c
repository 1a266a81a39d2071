/* SPDX-License-Identifier: Apache-2.0
 * Compares what the tracer counted in each row's range with the row. */
#include "checker.h"

#include <stdio.h>
#include <string.h>

#include "rows.h"

#define ROW(row_name, words, ...) { .name = #row_name, .sequence = words, .expect = { __VA_ARGS__ } },
static const struct sc_row runtime_rows[] = { SC_ROWS_RUNTIME(ROW) SC_ROWS_LEGACY_DEFAULT(ROW) };
static const struct sc_row per_thread_rows[] = { SC_ROWS_RUNTIME(ROW) SC_ROWS_PER_THREAD_DEFAULT(ROW) };
static const struct sc_row driver_rows[] = { SC_ROWS_DRIVER(ROW) };
#undef ROW

static const struct {
  const char *name, *program;
  const struct sc_row *rows;
  size_t count;
} tables[] = {
  { "runtime", "sequences", runtime_rows, SC_COUNTOF(runtime_rows) },
  { "per-thread", "sequences_per_thread", per_thread_rows, SC_COUNTOF(per_thread_rows) },
  { "static", "sequences_static", runtime_rows, SC_COUNTOF(runtime_rows) },
  { "driver", "sequences_driver", driver_rows, SC_COUNTOF(driver_rows) },
};

/* "name text" from the program's line "row name word text"; false if the row did not run. */
static bool row_outcome(const struct traced *t, const char *name, char *word, size_t word_size, char *text,
                        size_t text_size) {
  size_t length = strlen(name);
  for (const char *p = t->out.data; p != NULL && *p;) {
    const char *end = strchrnul(p, '\n');
    if (strncmp(p, "row ", 4) == 0 && strncmp(p + 4, name, length) == 0 && p[4 + length] == ' ') {
      const char *start = p + 5 + length, *space = memchr(start, ' ', (size_t)(end - start));
      const char *word_end = space != NULL ? space : end;
      snprintf(word, word_size, "%.*s", (int)(word_end - start), start);
      snprintf(text, text_size, "%.*s", space != NULL ? (int)(end - space - 1) : 0, space != NULL ? space + 1 : "");
      return true;
    }
    p = *end ? end + 1 : end;
  }
  return false;
}

static bool listed(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *p = list; *p;) {
    const char *end = strchrnul(p, ',');
    if ((size_t)(end - p) == length && strncmp(p, name, length) == 0)
      return true;
    p = *end ? end + 1 : end;
  }
  return strcmp(list, "*") == 0;
}

/* Appends "what found, expected n" for a count that differs. */
static void differ(struct sc_buf *buf, const char *what, int expected, uint64_t found) {
  if (expected != SC_ROW_ANY && found != (uint64_t)expected)
    sc_buf_printf(buf, "%s%s %llu, expected %d", buf->len > 0 ? "; " : "", what, (unsigned long long)found, expected);
}

static void compare(struct sc_buf *buf, const struct sc_row_counts *expect, const struct sc_range_findings *range) {
  const struct sc_counts *found = &range->total;
  differ(buf, "occurrences", 1, range->occurrences);
  differ(buf, "syncs", expect->explicit_ + expect->copy + expect->pageable + expect->implicit, found->syncs);
  differ(buf, "explicit", expect->explicit_, found->by_class[SC_CLASS_EXPLICIT]);
  differ(buf, "copy", expect->copy, found->by_class[SC_CLASS_COPY]);
  differ(buf, "pageable", expect->pageable, found->by_class[SC_CLASS_PAGEABLE]);
  differ(buf, "implicit", expect->implicit, found->by_class[SC_CLASS_IMPLICIT]);
  differ(buf, "read-backs", expect->read_backs, found->read_backs);
  differ(buf, "blocking uploads", expect->uploads, found->blocking_uploads);
  differ(buf, "poll waits", expect->poll_waits, found->poll_waits);
  differ(buf, "uncertain", expect->uncertain, found->uncertain);
  differ(buf, "failed", expect->failed, found->failed);
  differ(buf, "captured", expect->captured, found->captured);
  differ(buf, "lifecycle", expect->lifecycle, found->lifecycle);
  differ(buf, "launches", expect->launches, found->launches);
  if (expect->idle > 0)
    differ(buf, "idle", expect->idle, found->idle_syncs);
}

static void check_row(struct checker *c, const char *table, const struct traced *t, const struct sc_process *process,
                      const struct sc_row *row) {
  char name[160], word[16] = "", text[512] = "";
  snprintf(name, sizeof name, "%s/%s", table, row->name);
  if (!row_outcome(t, row->name, word, sizeof word, text, sizeof text)) {
    check_fail(c, name, "%s: the program did not get there", row->sequence);
    return;
  }
  if (strcmp(word, "fail") == 0) {
    check_fail(c, name, "%s: the program failed: %s", row->sequence, text);
    return;
  }
  if (strcmp(word, "skip") == 0) {
    if (listed(c->may_skip, row->name))
      check_skip(c, name, "%s: %s", row->sequence, text);
    else
      check_fail(c, name, "%s: skipped, which it may not be here: %s", row->sequence, text);
    return;
  }
  const struct sc_range_findings *range = traced_range(process, row->name);
  if (range == NULL) {
    check_fail(c, name, "%s: the trace has no such range", row->sequence);
    return;
  }
  struct sc_buf differences = { 0 };
  compare(&differences, &row->expect, range);
  if (differences.len > 0)
    check_fail(c, name, "%s: %s", row->sequence, differences.data);
  else
    check_pass(c, name, "%s: %llu syncs", row->sequence, (unsigned long long)range->total.syncs);
  sc_buf_free(&differences);
}

void check_sequences(struct checker *c, const char *table) {
  for (size_t i = 0; i < SC_COUNTOF(tables); i++) {
    if (strcmp(tables[i].name, table) != 0)
      continue;
    struct traced t;
    const char *argv[] = { tables[i].program, NULL };
    /* A failing row is that row's line; only an end that is neither 0 nor 1 fails the whole. */
    bool ok = traced_start(c, table, &t, argv, NULL) && traced_wait(c, table, &t, 300) && traced_read(c, table, &t);
    const struct sc_process *process = ok ? traced_process(&t, t.pid) : NULL;
    if (ok && strstr(t.out.data != NULL ? t.out.data : "", "row ") == NULL)
      check_fail(c, table, "%s did not come to its first row (status %#x); it said: %s", tables[i].program,
                 (unsigned)t.status, t.err.data != NULL ? t.err.data : "nothing");
    else if (ok && process == NULL)
      check_fail(c, table, "%s left no trace; it said: %s", tables[i].program,
                 t.err.data != NULL ? t.err.data : "nothing");
    else if (ok && traced_complete(c, table, &t))
      for (size_t j = 0; j < tables[i].count; j++)
        check_row(c, table, &t, process, &tables[i].rows[j]);
    traced_end(c, &t);
    return;
  }
  check_fail(c, table, "no such table: runtime, per-thread, static, driver");
}
