/* SPDX-License-Identifier: Apache-2.0
 * The specification, docs/synccount-trace.5.scd, says what src/trace/format.h says: every field, its place and size. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/calls.h"
#include "trace/format.h"

struct field {
  const char *section, *name;
  size_t offset, size;
};
#define FIELD(section, type, name) {section, #name, offsetof(struct type, name), sizeof(((struct type *)NULL)->name)}

static const struct field fields[] = {
  FIELD("# FILE HEADER", sc_trace_header, magic),
  FIELD("# FILE HEADER", sc_trace_header, version),
  FIELD("# FILE HEADER", sc_trace_header, version_min),
  FIELD("# FILE HEADER", sc_trace_header, header_size),
  FIELD("# FILE HEADER", sc_trace_header, slot_size),
  FIELD("# FILE HEADER", sc_trace_header, checksum),
  FIELD("# FILE HEADER", sc_trace_header, flags),
  FIELD("# FILE HEADER", sc_trace_header, pid),
  FIELD("# FILE HEADER", sc_trace_header, ppid),
  FIELD("# FILE HEADER", sc_trace_header, reserved0),
  FIELD("# FILE HEADER", sc_trace_header, start_mono_ns),
  FIELD("# FILE HEADER", sc_trace_header, start_real_ns),
  FIELD("# FILE HEADER", sc_trace_header, host),
  FIELD("# FILE HEADER", sc_trace_header, reserved1),
  FIELD("# LIVE COUNTERS", sc_trace_live, lost_records),
  FIELD("# LIVE COUNTERS", sc_trace_live, lost_chunks),
  FIELD("# LIVE COUNTERS", sc_trace_live, end_mono_ns),
  FIELD("# LIVE COUNTERS", sc_trace_live, overhead_ns),
  FIELD("# LIVE COUNTERS", sc_trace_live, full),
  FIELD("# LIVE COUNTERS", sc_trace_live, call_cost_ns),
  FIELD("# LIVE COUNTERS", sc_trace_live, launch_cost_ns),
  FIELD("# LIVE COUNTERS", sc_trace_live, stacks),
  FIELD("# LIVE COUNTERS", sc_trace_live, stack_ns),
  FIELD("# LIVE COUNTERS", sc_trace_live, stack_walks),
  FIELD("# LIVE COUNTERS", sc_trace_live, stacks_missing),
  FIELD("# LIVE COUNTERS", sc_trace_live, beyond_size),
  FIELD("# LIVE COUNTERS", sc_trace_live, uncounted),
  FIELD("# LIVE COUNTERS", sc_trace_live, queue_waits),
  FIELD("# LIVE COUNTERS", sc_trace_live, queue_wait_ns),
  FIELD("# LIVE COUNTERS", sc_trace_live, chunks),
  FIELD("# LIVE COUNTERS", sc_trace_live, stack_walk_ns),
  FIELD("# LIVE COUNTERS", sc_trace_live, stack_longest_ns),
  FIELD("# LIVE COUNTERS", sc_trace_live, reserved),
  FIELD("# COUNTS WITHOUT RECORDS", sc_trace_beyond, all),
  FIELD("# COUNTS WITHOUT RECORDS", sc_trace_beyond, within),
  FIELD("# COUNTS WITHOUT RECORDS", sc_trace_beyond, marks),
  FIELD("# COUNTS WITHOUT RECORDS", sc_trace_beyond, mark),
  FIELD("# CHUNKS", sc_trace_chunk, magic),
  FIELD("# CHUNKS", sc_trace_chunk, kind),
  FIELD("# CHUNKS", sc_trace_chunk, flags),
  FIELD("# CHUNKS", sc_trace_chunk, size),
  FIELD("# CHUNKS", sc_trace_chunk, committed),
  FIELD("# CHUNKS", sc_trace_chunk, checksum),
  FIELD("# CHUNKS", sc_trace_chunk, tid),
  FIELD("# CHUNKS", sc_trace_chunk, thread),
  FIELD("# CHUNKS", sc_trace_chunk, sequence),
  FIELD("# CHUNKS", sc_trace_chunk, lost),
  FIELD("# CHUNKS", sc_trace_chunk, submissions),
  FIELD("# CHUNKS", sc_trace_chunk, launches),
  FIELD("# CHUNKS", sc_trace_chunk, reserved),
  FIELD("# RECORDS", sc_record_head, kind),
  FIELD("# RECORDS", sc_record_head, units),
  FIELD("# RECORDS", sc_record_head, submissions),
  FIELD("# RECORDS", sc_record_head, launches),
  FIELD("# RECORDS", sc_record_head, stack),
  FIELD("## 1: call", sc_record_call, start_ns),
  FIELD("## 1: call", sc_record_call, duration_ns),
  FIELD("## 1: call", sc_record_call, stream),
  FIELD("## 1: call", sc_record_call, object),
  FIELD("## 1: call", sc_record_call, bytes),
  FIELD("## 1: call", sc_record_call, api),
  FIELD("## 1: call", sc_record_call, status),
  FIELD("## 1: call", sc_record_call, direction),
  FIELD("## 1: call", sc_record_call, memory),
  FIELD("## 2: push", sc_record_range, time_ns),
  FIELD("## 2: push", sc_record_range, handle),
  FIELD("## 2: push", sc_record_range, name),
  FIELD("## 2: push", sc_record_range, domain),
  FIELD("## 2: push", sc_record_range, reserved),
  FIELD("## 6: string", sc_record_text, id),
  FIELD("## 6: string", sc_record_text, length),
  FIELD("## 6: string", sc_record_text, flags),
  FIELD("## 6: string", sc_record_text, reserved),
  FIELD("## 6: string", sc_record_text, text),
  FIELD("## 11: module", sc_record_module, id),
  FIELD("## 11: module", sc_record_module, path),
  FIELD("## 11: module", sc_record_module, base),
  FIELD("## 11: module", sc_record_module, build_id_length),
  FIELD("## 11: module", sc_record_module, build_id),
  FIELD("## 12: frame", sc_record_frame, id),
  FIELD("## 12: frame", sc_record_frame, file),
  FIELD("## 12: frame", sc_record_frame, function),
  FIELD("## 12: frame", sc_record_frame, line),
  FIELD("## 12: frame", sc_record_frame, first_line),
  FIELD("## 12: frame", sc_record_frame, reserved),
  FIELD("## 13: stack", sc_record_stack, id),
  FIELD("## 13: stack", sc_record_stack, flags),
  FIELD("## 13: stack", sc_record_stack, native),
  FIELD("## 13: stack", sc_record_stack, python),
  FIELD("## 13: stack", sc_record_stack, reserved),
  FIELD("## 7: api", sc_record_api, id),
  FIELD("## 7: api", sc_record_api, cbid),
  FIELD("## 7: api", sc_record_api, domain),
  FIELD("## 7: api", sc_record_api, op),
  FIELD("## 7: api", sc_record_api, length),
  FIELD("## 7: api", sc_record_api, name),
};

static char *page;

static int read_page(void **state) {
  FILE *file = fopen(PAGE, "r");
  size_t size;

  (void)state;
  page = calloc(1, 1 << 17);
  if (!file || !page)
    return -1;
  size = fread(page, 1, (1 << 17) - 1, file);
  fclose(file);
  return size ? 0 : -1;
}

static int free_page(void **state) {
  (void)state;
  free(page);
  return 0;
}

/* The text from a heading to the next. The caller frees it. */
static char *section(const char *heading) {
  const char *start = strstr(page, heading), *end;

  if (!start)
    fail_msg("the page has no section \"%s\"", heading);
  end = strstr(start + strlen(heading), "\n#");
  return sc_strndup(start, end ? (size_t)(end - start) : strlen(start));
}

static void every_field_is_in_the_page_with_its_place_and_size(void **state) {
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(fields); i++) {
    char *text = section(fields[i].section);
    char *row = sc_asprintf("\n|  %zu\n:  %zu\n:  *%s*\n", fields[i].offset, fields[i].size, fields[i].name);

    assert_non_null(text);
    assert_non_null(row);
    if (!strstr(text, row))
      fail_msg("%s: no row for %s at %zu of %zu bytes", fields[i].section, fields[i].name, fields[i].offset, fields[i].size);
    free(row);
    free(text);
  }
}

static void the_page_has_no_field_that_the_header_lacks(void **state) {
  size_t rows = 0;

  (void)state;
  for (const char *at = page; (at = strstr(at, "\n|  ")); at++)
    rows++;
  assert_int_equal(rows, SC_COUNTOF(fields));
}

static void the_fields_leave_no_hole(void **state) {
  (void)state;
  for (size_t i = 0; i + 1 < SC_COUNTOF(fields); i++)
    if (strcmp(fields[i].section, fields[i + 1].section) == 0)
      assert_int_equal(fields[i].offset + fields[i].size, fields[i + 1].offset);
}

static void the_page_lists_every_op(void **state) {
  char last[32];
  char *text = section("## 7: api");

  (void)state;
  for (char *at = text; *at; at++)
    if (*at == '\n')
      *at = ' ';
  for (int op = 0; op < SC_OP_COUNT; op++) {
    snprintf(last, sizeof last, op ? "%d " : " %d ", op);
    assert_non_null(strstr(strstr(text, "Ops:"), last));
  }
  snprintf(last, sizeof last, " %d ", SC_OP_COUNT); /* and none beyond them */
  assert_null(strstr(strstr(text, "Ops:"), last));
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_field_is_in_the_page_with_its_place_and_size),
    cmocka_unit_test(the_page_has_no_field_that_the_header_lacks),
    cmocka_unit_test(the_fields_leave_no_hole),
    cmocka_unit_test(the_page_lists_every_op),
  };

  return cmocka_run_group_tests(tests, read_page, free_page);
}
