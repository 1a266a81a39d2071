/* SPDX-License-Identifier: Apache-2.0
 * Text on a terminal: no line is wider than it, and what continues a line stands below its text. */
#include <string.h>

#include "cli/output.h"
#include "test_support.h"

static void check(const char *text, unsigned width, const char *expected)
{
  struct sc_buf out = {0};
  output_wrap(&out, text, width);
  assert_false(out.failed);
  assert_string_equal(out.data ? out.data : "", expected);
  sc_buf_free(&out);
}

static void short_lines_stay(void **state)
{
  (void)state;
  check("a line\n\n  another\n", 40, "a line\n\n  another\n");
  check("", 40, "");
}

static void a_long_line_goes_on_below_its_text(void **state)
{
  (void)state;
  check("FAILED        one two three four five six seven eight nine\n", 40,
        "FAILED        one two three four five\n"
        "              six seven eight nine\n");
  check("    one two three four five six seven eight nine ten eleven\n", 40,
        "    one two three four five six seven\n"
        "      eight nine ten eleven\n");
}

static void a_word_is_not_cut(void **state)
{
  (void)state;
  check("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bb cc\n", 40,
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n  bb cc\n");
}

static void columns_are_characters_and_not_bytes(void **state)
{
  (void)state;
  check("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 "
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 1234567890\n",
        40,
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 "
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 1234567890\n");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(short_lines_stay),
      cmocka_unit_test(a_long_line_goes_on_below_its_text),
      cmocka_unit_test(a_word_is_not_cut),
      cmocka_unit_test(columns_are_characters_and_not_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
