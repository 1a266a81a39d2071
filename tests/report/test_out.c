/* SPDX-License-Identifier: Apache-2.0
 * The output handle and the table of formats: a report that could not be written is never a success. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "test_support.h"

static void memory_holds_everything_written(void **state)
{
  struct sc_out *out = sc_out_memory();
  struct sc_error err;
  size_t len;

  (void)state;
  sc_out_puts(out, "one ");
  sc_out_repeat(out, '-', 200);
  sc_out_write(out, "\0x", 2);
  assert_int_equal(sc_out_flush(out, &err), SC_OK);
  assert_memory_equal(sc_out_text(out, &len), "one ----", 8);
  assert_int_equal(len, 4 + 200 + 2);
  sc_out_free(out);
}

static void an_empty_handle_holds_an_empty_string(void **state)
{
  struct sc_out *out = sc_out_memory();

  (void)state;
  assert_string_equal(sc_out_text(out, NULL), "");
  sc_out_free(out);
  sc_out_free(NULL);
}

static void a_file_gets_what_memory_gets(void **state)
{
  struct sc_findings *f = fixture_full();
  const struct sc_report_format *text = sc_report_format_find("text");
  char *expected = render(f, "text", NULL), *got;
  FILE *file = tmpfile();
  struct sc_out *out = sc_out_file(file);
  size_t n = strlen(expected);

  (void)state;
  assert_int_equal(sc_report_write(f, text, NULL, out, NULL), SC_OK);
  assert_int_equal(ftell(file), n);
  rewind(file);
  got = calloc(1, n + 1);
  assert_int_equal(fread(got, 1, n, file), n);
  assert_string_equal(got, expected);
  free(got);
  free(expected);
  sc_out_free(out);
  fclose(file);
  sc_findings_free(f);
}

/* /dev/full takes writes into the stdio buffer and refuses them when they are pushed: small and large output both
 * fail. */
static void a_full_disk_is_an_error_in_every_format(void **state)
{
  struct sc_findings *small = fixture_minimal(), *large = fixture_process();
  const struct sc_report_format *format;

  (void)state;
  for (size_t i = 0; (format = sc_report_format_at(i)) != NULL; i++) {
    const struct sc_findings *both[] = {small, large};

    /* What tells of programs alone has nothing to write without one. */
    for (size_t k = format->programs; k < 2; k++) {
      FILE *file = fopen("/dev/full", "w");
      struct sc_out *out = sc_out_file(file);
      struct sc_error err = {0};

      assert_int_equal(sc_report_write(both[k], format, NULL, out, &err), SC_ERR_IO);
      assert_non_null(strstr(err.message, "No space left on device"));
      sc_out_free(out);
      fclose(file);
    }
  }
  sc_findings_free(small);
  sc_findings_free(large);
}

static void an_error_in_the_middle_is_not_forgotten(void **state)
{
  FILE *file = fopen("/dev/full", "w");
  struct sc_out *out = sc_out_file(file);
  struct sc_error err = {0};

  (void)state;
  for (int i = 0; i < 10; i++)
    sc_out_repeat(out, 'x', 100000);
  assert_int_equal(sc_out_flush(out, &err), SC_ERR_IO);
  assert_int_equal(sc_out_flush(out, &err), SC_ERR_IO);
  sc_out_free(out);
  fclose(file);
}

static void formats_are_found_by_name(void **state)
{
  (void)state;
  assert_string_equal(sc_report_format_find("text")->name, "text");
  assert_string_equal(sc_report_format_find("json")->extension, "json");
  assert_string_equal(sc_report_format_find("markdown")->extension, "md");
  assert_null(sc_report_format_find("yaml"));
  assert_null(sc_report_format_find("TEXT"));
  assert_null(sc_report_format_find(""));
  assert_null(sc_report_format_find(NULL));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_holds_everything_written),
      cmocka_unit_test(an_empty_handle_holds_an_empty_string),
      cmocka_unit_test(a_file_gets_what_memory_gets),
      cmocka_unit_test(a_full_disk_is_an_error_in_every_format),
      cmocka_unit_test(an_error_in_the_middle_is_not_forgotten),
      cmocka_unit_test(formats_are_found_by_name),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
