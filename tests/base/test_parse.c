/* SPDX-License-Identifier: Apache-2.0
 * Parsers take the whole string or nothing, and leave *out alone when they refuse. */
#include "test_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void u64_takes_digits_only(void **state)
{
  (void)state;
  uint64_t value = 7;
  assert_true(sc_parse_u64("18446744073709551615", &value));
  assert_true(value == UINT64_MAX);
  const char *bad[] = {"", "-1", "+1", " 1", "1 ", "0x10", "18446744073709551616", "1e3", "4,8"};
  for (size_t i = 0; i < SC_COUNTOF(bad); ++i) {
    value = 7;
    assert_false(sc_parse_u64(bad[i], &value));
    assert_int_equal(value, 7);
  }
}

static void doubles_are_finite_decimals(void **state)
{
  (void)state;
  double value = 0;
  assert_true(sc_parse_double("-1.5e3", &value));
  assert_true(value == -1500);
  const char *bad[] = {"", "nan", "inf", "-inf", "0x1p3", "-0x1p3", "1.5x", "1e999", " 1", "-nan"};
  for (size_t i = 0; i < SC_COUNTOF(bad); ++i)
    assert_false(sc_parse_double(bad[i], &value));
}

static void times_need_a_unit(void **state)
{
  (void)state;
  double us = 0;
  assert_true(sc_parse_time_us("26us", &us) && us == 26);
  assert_true(sc_parse_time_us("1.5ms", &us) && us == 1500);
  assert_true(sc_parse_time_us("0.2s", &us) && us == 200000);
  assert_true(sc_parse_time_us("800ns", &us) && us > 0.799 && us < 0.801);
  const char *bad[] = {"26", "us", "-1us", "26 us", "26usx", "1e308s", "nans", "-0us"};
  for (size_t i = 0; i < SC_COUNTOF(bad); ++i)
    assert_false(sc_parse_time_us(bad[i], &us));
}

static void sizes_are_powers_of_1024(void **state)
{
  (void)state;
  uint64_t bytes = 0;
  assert_true(sc_parse_size("64M", &bytes) && bytes == 64u << 20);
  assert_true(sc_parse_size("1GiB", &bytes) && bytes == 1u << 30);
  assert_true(sc_parse_size("512", &bytes) && bytes == 512);
  const char *bad[] = {"", "M", "-1M", "1.5M", "1X", "1Mx", "99999999999T", "1 M"};
  for (size_t i = 0; i < SC_COUNTOF(bad); ++i)
    assert_false(sc_parse_size(bad[i], &bytes));
}

static void lists_name_the_wrong_part(void **state)
{
  (void)state;
  uint64_t *list = NULL;
  size_t count = 0;
  struct sc_error err;
  assert_int_equal(sc_parse_u64_list("4,8,16", 256, &list, &count, &err), SC_OK);
  assert_int_equal(count, 3);
  assert_int_equal(list[2], 16);
  free(list);
  const char *bad[] = {"", "4,", ",4", "4,,8", "0", "257", "4;8", "-1", "4, 8", "99999999999999999999999999"};
  for (size_t i = 0; i < SC_COUNTOF(bad); ++i) {
    list = NULL;
    assert_int_equal(sc_parse_u64_list(bad[i], 256, &list, &count, &err), SC_ERR_USAGE);
    assert_null(list);
    assert_non_null(strstr(err.message, "1 to 256"));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(u64_takes_digits_only),    cmocka_unit_test(doubles_are_finite_decimals),
      cmocka_unit_test(times_need_a_unit),        cmocka_unit_test(sizes_are_powers_of_1024),
      cmocka_unit_test(lists_name_the_wrong_part),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
