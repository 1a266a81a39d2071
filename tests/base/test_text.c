/* SPDX-License-Identifier: Apache-2.0
 * Buffers, arrays, patterns, and text for people. */
#include "test_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void buffers_grow_and_stay_terminated(void **state)
{
  (void)state;
  struct sc_buf buf = {0};
  for (int i = 0; i < 1000; ++i)
    sc_buf_printf(&buf, "%d,", i);
  assert_false(buf.failed);
  assert_int_equal(strlen(buf.data), buf.len);
  assert_memory_equal(buf.data, "0,1,2,", 6);
  sc_buf_free(&buf);
  assert_null(buf.data);
  sc_buf_append(&buf, "", 0);
  assert_string_equal(buf.data, "");
  sc_buf_free(&buf);
}

static void arrays_give_zeroed_elements(void **state)
{
  (void)state;
  struct pair {
    int a, b;
  } *list = NULL;
  size_t count = 0, cap = 0;
  for (int i = 0; i < 100; ++i) {
    struct pair *p = sc_array_push(&list, &count, &cap, sizeof *list);
    assert_non_null(p);
    assert_int_equal(p->a | p->b, 0);
    p->a = i;
    p->b = -1;
  }
  assert_int_equal(count, 100);
  assert_int_equal(list[99].a, 99);
  free(list);
}

static void array_overflow_is_refused(void **state)
{
  (void)state;
  char *list = NULL;
  size_t count = SIZE_MAX / 2 + 1, cap = SIZE_MAX / 2 + 1;
  assert_null(sc_array_push(&list, &count, &cap, 16));
  assert_int_equal(count, SIZE_MAX / 2 + 1);
}

static void patterns_match_whole_strings(void **state)
{
  (void)state;
  static const struct {
    const char *pattern, *text;
    bool match;
  } rows[] = {
      {"layer*", "layer:3", true}, {"layer*", "xlayer:3", false}, {"*:3", "layer:3", true}, {"*a*b*c", "xxaybzc", true},
      {"*a*b*c", "xxaybz", false}, {"?", "", false},              {"?", "x", true},         {"", "", true},
      {"", "x", false},            {"*", "", true},               {"a**b", "ab", true},     {"[a]", "[a]", true},
      {"*aab", "aaaaaaaaaaab", true},
  };
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i)
    assert_int_equal(sc_match(rows[i].pattern, rows[i].text), rows[i].match);
}

static void times_have_sensible_digits_and_units(void **state)
{
  (void)state;
  static const struct {
    double us;
    const char *text;
  } rows[] = {
      {0.842, "842 ns"}, {0.0005, "0 ns"},  {10.2, "10.2 us"}, {1.5, "1.50 us"},    {116, "116 us"},
      {999.4, "999 us"}, {999.6, "1.00 ms"}, {1510, "1.51 ms"}, {2.3e6, "2.30 s"},   {0, "0 us"},
      {-3.21, "-3.21 us"}, {NAN, "not measured"}, {99.96, "100 us"}, {9.996, "10.0 us"},
  };
  char buf[SC_TIME_TEXT];
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i)
    assert_string_equal(sc_format_time_us(rows[i].us, buf), rows[i].text);
}

static void printable_text_escapes_control_and_invalid_bytes(void **state)
{
  (void)state;
  struct sc_buf buf = {0};
  const char text[] = "a\x1b[31m\n\xff\xc3\xa9\xc2\x85\xed\xa0\x80\0z";
  sc_buf_put_printable(&buf, text, sizeof text - 1);
  assert_string_equal(buf.data, "a\\x1b[31m\\x0a\\xff\xc3\xa9\\xc2\\x85\\xed\\xa0\\x80\\x00z");
  sc_buf_free(&buf);
}

static void printable_escapes_what_turns_text_around(void **state)
{
  (void)state;
  struct sc_buf buf = {0};
  const char text[] = "a\xe2\x80\xae" "b\xe2\x81\xa6" "c\xe2\x80\xa9" "d\xe2\x80\xa6"; /* the last one is an ellipsis */
  sc_buf_put_printable(&buf, text, sizeof text - 1);
  assert_string_equal(buf.data, "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c\\xe2\\x80\\xa9d\xe2\x80\xa6");
  sc_buf_free(&buf);
}

static void markdown_becomes(const char *text, bool in_code, const char *wanted)
{
  struct sc_buf buf = {0};
  for (size_t i = 0; text[i]; ++i) {
    const char *escape = sc_markdown_escape(text, i, in_code);
    sc_buf_append(&buf, escape ? escape : text + i, escape ? strlen(escape) : 1);
  }
  assert_string_equal(buf.data, wanted);
  sc_buf_free(&buf);
}

static void markdown_makes_no_links_mentions_or_tags(void **state)
{
  (void)state;
  markdown_becomes("http://a.b WWW.a.b a:b", false, "http&#58;//a.b WWW&#46;a.b a:b");
  markdown_becomes("@you #12 #x", false, "@&#8203;you \\#&#8203;12 \\#x");
  markdown_becomes("@you #12", true, "&#64;you \\#12");
  markdown_becomes("<b> & [a](b) | $x$", false, "&lt;b&gt; &amp; \\[a\\](b) &#124; &#36;x&#36;");
}

static void utf8_lengths_follow_the_standard(void **state)
{
  (void)state;
  assert_int_equal(sc_utf8_length("\xf0\x9f\x98\x80", 4), 4);
  assert_int_equal(sc_utf8_length("\xf0\x9f\x98\x80", 3), 0); /* cut */
  assert_int_equal(sc_utf8_length("\xc0\x80", 2), 0);         /* overlong */
  assert_int_equal(sc_utf8_length("\xe0\x80\x80", 3), 0);     /* overlong */
  assert_int_equal(sc_utf8_length("\xf4\x90\x80\x80", 4), 0); /* beyond U+10FFFF */
  assert_int_equal(sc_utf8_length("\x80", 1), 0);
  assert_int_equal(sc_utf8_length("", 0), 0);
}

/* The published values of FNV-1a: ids of sites are such hashes, and stay the same from version to version. */
static void hashes_are_those_of_fnv_1a(void **state)
{
  (void)state;
  assert_true(sc_hash_bytes(SC_HASH_SEED, "", 0) == UINT64_C(0xcbf29ce484222325));
  assert_true(sc_hash_bytes(SC_HASH_SEED, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
  assert_true(sc_hash_bytes(SC_HASH_SEED, "foobar", 6) == UINT64_C(0x85944171f73967e8));
  assert_true(sc_hash_text(SC_HASH_SEED, "foobar") == sc_hash_bytes(SC_HASH_SEED, "foobar\xff", 7));
  assert_true(sc_hash_text(SC_HASH_SEED, NULL) == sc_hash_text(SC_HASH_SEED, ""));
  assert_true(sc_hash_text(sc_hash_text(SC_HASH_SEED, "ab"), "c") !=
              sc_hash_text(sc_hash_text(SC_HASH_SEED, "a"), "bc"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hashes_are_those_of_fnv_1a),
      cmocka_unit_test(buffers_grow_and_stay_terminated),
      cmocka_unit_test(arrays_give_zeroed_elements),
      cmocka_unit_test(array_overflow_is_refused),
      cmocka_unit_test(patterns_match_whole_strings),
      cmocka_unit_test(times_have_sensible_digits_and_units),
      cmocka_unit_test(printable_text_escapes_control_and_invalid_bytes),
      cmocka_unit_test(printable_escapes_what_turns_text_around),
      cmocka_unit_test(markdown_makes_no_links_mentions_or_tags),
      cmocka_unit_test(utf8_lengths_follow_the_standard),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
