/* SPDX-License-Identifier: Apache-2.0
 * Errors: every code has a name and a text; messages are whole or visibly cut. */
#include "test_support.h"

#include <string.h>

#include "base/base.h"

static void every_status_has_name_and_text(void **state)
{
  (void)state;
  assert_string_equal(sc_status_name(SC_ERR_IO), "SC_ERR_IO");
  for (int i = SC_OK; i <= SC_ERR_INTERNAL; ++i) {
    assert_memory_equal(sc_status_name((enum sc_status)i), "SC_", 3);
    assert_true(strlen(sc_status_text((enum sc_status)i)) > 3);
  }
  assert_string_equal(sc_status_name((enum sc_status)9999), "SC_ERR_UNKNOWN");
}

static void set_returns_the_status_and_takes_null(void **state)
{
  (void)state;
  struct sc_error err;
  assert_int_equal(sc_error_set(NULL, SC_ERR_USAGE, "x"), SC_ERR_USAGE);
  assert_int_equal(sc_error_set(&err, SC_ERR_IO, "cannot read %s", "a.yaml"), SC_ERR_IO);
  assert_int_equal(err.status, SC_ERR_IO);
  assert_string_equal(err.message, "cannot read a.yaml");
  sc_error_prefix(&err, "line %d", 3);
  assert_string_equal(err.message, "line 3: cannot read a.yaml");
  sc_error_prefix(NULL, "nothing");
}

static void long_messages_end_in_dots(void **state)
{
  (void)state;
  struct sc_error err;
  char text[3000];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  sc_error_set(&err, SC_ERR_IO, "%s", text);
  assert_int_equal(strlen(err.message), sizeof err.message - 1);
  assert_string_equal(err.message + sizeof err.message - 5, "a...");
  sc_error_prefix(&err, "%s", text);
  assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static void clocks_advance(void **state)
{
  (void)state;
  uint64_t first = sc_clock_mono_ns(), second = sc_clock_mono_ns();
  assert_true(second >= first);
  assert_true(sc_clock_real_ns() > 1700000000ull * 1000000000ull);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_status_has_name_and_text),
      cmocka_unit_test(set_returns_the_status_and_takes_null),
      cmocka_unit_test(long_messages_end_in_dots),
      cmocka_unit_test(clocks_advance),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
