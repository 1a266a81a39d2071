/* SPDX-License-Identifier: Apache-2.0
 * Every single allocation of a writer fails once: an error, never a crash, never a part that passes for the whole. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failing_alloc.h"
#include "fixtures.h"
#include "test_support.h"

/* Fails the n-th allocation; true when the writer came to an end before it. */
static bool write_failing(const struct sc_findings *f, const char *format, long n, const char *expected)
{
  static const struct sc_report_options options = {.width = 80, .per_expert = true};
  struct sc_out *out = sc_out_memory();
  struct sc_error err = {0};
  enum sc_status status;
  bool done;

  failing_alloc_begin(n, true);
  status = sc_report_write(f, sc_report_format_find(format), &options, out, &err);
  done = !failing_alloc_end();
  if (status == SC_OK)
    assert_string_equal(sc_out_text(out, NULL), expected);
  else
    assert_int_equal(status, SC_ERR_NOMEM);
  if (!done && status == SC_OK)
    fail_msg("%s: allocation %ld failed, and nobody noticed", format, n);
  sc_out_free(out);
  return done;
}

static void every_allocation(const char *format)
{
  struct sc_findings *small = fixture_hit(), *process = fixture_process();
  const struct sc_findings *both[] = {small, process};

  process->processes[0].range_count = 18; /* one layer: the rest is the same again */
  json_set_alloc_funcs(failing_malloc, free);
  for (size_t i = 0; i < 2; i++) {
    char *expected = render(both[i], format, &(struct sc_report_options){.width = 80, .per_expert = true});
    long n = 0;

    while (!write_failing(both[i], format, n, expected))
      n++;
    assert_true(n > 30);
    free(expected);
  }
  process->processes[0].range_count = 1 + 8 * 17;
  sc_findings_free(small);
  sc_findings_free(process);
}

static void text_survives_a_failed_allocation(void **state)
{
  (void)state;
  every_allocation("text");
}

static void markdown_survives_a_failed_allocation(void **state)
{
  (void)state;
  every_allocation("markdown");
}

static void json_survives_a_failed_allocation(void **state)
{
  (void)state;
  every_allocation("json");
}

/* Reads the file under the n-th failure; true when it came to an end before it. */
static bool read_failing(const char *path, long n, const char *expected)
{
  struct sc_findings *f = sc_findings_new();
  struct sc_error err = {0};
  enum sc_status status;
  bool done;

  assert_non_null(f);
  failing_alloc_begin(n, true);
  status = sc_report_read_json(path, f, &err);
  done = !failing_alloc_end();
  if (status == SC_OK) {
    free(f->version);
    f->version = sc_strdup("1.2.3-test");
    char *again = render(f, "json", NULL);
    assert_string_equal(again, expected);
    free(again);
  } else if (status != SC_ERR_NOMEM) {
    fail_msg("allocation %ld: %s", n, err.message);
  }
  if (!done && status == SC_OK)
    fail_msg("allocation %ld failed, and nobody noticed", n);
  sc_findings_free(f);
  return done;
}

static void reading_survives_a_failed_allocation(void **state)
{
  struct sc_findings *small = fixture_assumed(), *process = fixture_traced();
  struct sc_findings *both[] = {small, process};
  const size_t runs = small->run_count, ranges = process->processes[0].range_count;

  (void)state;
  small->run_count = 2;
  process->processes[0].range_count = 3;
  for (size_t i = 0; i < 2; i++) {
    char path[] = "/tmp/synccount-memory-XXXXXX", *expected = render(both[i], "json", NULL);
    FILE *file = fdopen(mkstemp(path), "w");
    long n = 0;

    assert_non_null(file);
    fputs(expected, file);
    assert_int_equal(fclose(file), 0);
    while (!read_failing(path, n, expected))
      n++;
    assert_true(n > 50);
    unlink(path);
    free(expected);
  }
  small->run_count = runs;
  process->processes[0].range_count = ranges;
  sc_findings_free(small);
  sc_findings_free(process);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reading_survives_a_failed_allocation), /* jansson has its own allocator yet */
      cmocka_unit_test(text_survives_a_failed_allocation),
      cmocka_unit_test(markdown_survives_a_failed_allocation),
      cmocka_unit_test(json_survives_a_failed_allocation),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
