/* SPDX-License-Identifier: Apache-2.0
 * The JSON scanner: the same tokens however the bytes arrive, errors with their place, and fixed memory. */
#include "test_support.h"

#include "import/json_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source {
  const char *bytes;
  size_t size, at, step; /* step: bytes of one reading at most */
  bool fails;            /* instead of ending */
};

static ptrdiff_t read_source(void *context, void *bytes, size_t size, struct sc_error *err)
{
  struct source *s = context;
  size_t n = s->size - s->at < s->step ? s->size - s->at : s->step;
  if (n > size)
    n = size;
  if (n == 0 && s->fails) {
    sc_error_set(err, SC_ERR_IO, "the disk is on fire");
    return -1;
  }
  memcpy(bytes, s->bytes + s->at, n);
  s->at += n;
  return (ptrdiff_t)n;
}

/* All tokens as one text; what failed as "!" and the message. */
static char *tokens_of(const char *text, size_t size, size_t step)
{
  struct source source = {.bytes = text, .size = size, .step = step};
  struct sc_json *json = sc_json_new(read_source, &source);
  struct sc_buf out = {0};
  struct sc_json_token token;
  static const char *const marks[] = {
      [SC_JSON_OBJECT] = "{", [SC_JSON_OBJECT_END] = "}", [SC_JSON_ARRAY] = "[", [SC_JSON_ARRAY_END] = "]",
      [SC_JSON_TRUE] = "T",   [SC_JSON_FALSE] = "F",      [SC_JSON_NULL] = "0"};
  assert_non_null(json);
  sc_buf_puts(&out, "");
  for (;;) {
    enum sc_json_kind kind = sc_json_next(json, &token);
    if (kind == SC_JSON_END)
      break;
    if (kind == SC_JSON_FAIL) {
      struct sc_error err;
      assert_int_not_equal(sc_json_error(json, &err), SC_OK);
      sc_buf_printf(&out, "!%s", err.message);
      assert_int_equal(sc_json_next(json, &token), SC_JSON_FAIL); /* and it stays so */
      break;
    }
    if (kind == SC_JSON_KEY || kind == SC_JSON_STRING || kind == SC_JSON_NUMBER) {
      size_t length = token.escaped ? sc_json_unescape(token.text, token.length) : token.length;
      sc_buf_puts(&out, kind == SC_JSON_KEY ? "k:" : kind == SC_JSON_STRING ? "s:" : "n:");
      sc_buf_append(&out, token.text, length);
    } else {
      sc_buf_puts(&out, marks[kind]);
    }
    sc_buf_puts(&out, " ");
  }
  sc_json_free(json);
  assert_false(out.failed);
  return out.data;
}

static void expect(const char *text, const char *tokens)
{
  static const size_t steps[] = {1, 2, 3, 7, 1u << 20};
  for (size_t i = 0; i < SC_COUNTOF(steps); ++i) {
    char *got = tokens_of(text, strlen(text), steps[i]);
    assert_string_equal(got, tokens);
    free(got);
  }
}

static void tokens_are_the_same_however_the_bytes_arrive(void **state)
{
  (void)state;
  expect(" {\"a\" : [1, -2.5e3 ,true,false,null,\"x\\\"y\"],\n\"b\":{}, \"c\":[]}\r\n\t",
         "{ k:a [ n:1 n:-2.5e3 T F 0 s:x\"y ] k:b { } k:c [ ] } ");
  expect("\"\"", "s: ");
  expect("12", "n:12 ");
  expect("\xef\xbb\xbf[]", "[ ] ");
}

static void what_profilers_write_is_let_pass(void **state)
{
  (void)state;
  expect("[NaN,-Infinity,nan,inf,Infinity]", "[ n:NaN n:-Infinity n:nan n:inf n:Infinity ] ");
  expect("[1,]", "[ n:1 ] ");
  expect("{\"a\":1,}", "{ k:a n:1 } ");
  expect("[\"\xff\xfe\x01\"]", "[ s:\xff\xfe\x01 ] ");
}

static void escapes_are_resolved_and_bad_ones_stay(void **state)
{
  (void)state;
  expect("[\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\n\\t\\/\\\\\"]",
         "[ s:A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n\t/\\ ] ");
  expect("[\"\\ud83d \\x \\u12\"]", "[ s:\xef\xbf\xbd \\x \\u12 ] ");
}

static void errors_say_where_and_what(void **state)
{
  (void)state;
  expect("[1 2]", "[ n:1 !at byte 3: expected a comma or ']', found '2'");
  expect("{1:2}", "{ !at byte 1: expected a key in double quotes, found '1'");
  expect("{\"a\" 2}", "{ !at byte 5: expected a colon, found '2'");
  expect("{\"a\":}", "{ k:a !at byte 5: expected a value, found '}'");
  expect("[}", "[ !at byte 1: expected a comma or ']', found '}'");
  expect("[,]", "[ !at byte 1: expected a value, found ','");
  expect("[1,,2]", "[ n:1 !at byte 3: expected a value, found ','");
  expect("[truth]", "[ !at byte 1: 'truth' is no value");
  expect("[]]", "[ ] !at byte 2: expected nothing more, found ']'");
  expect("[\x01]", "[ !at byte 1: expected a value, found the byte 0x01");
  expect("", "!at byte 0: the text ends where a value should be");
  expect("[\"abc", "[ !at byte 5: the text ends inside a string");
  expect("[1", "[ n:1 !at byte 2: the text ends before its last bracket");
  expect("{\"a\"", "{ !at byte 4: the text ends after a key");
}

static void nesting_has_a_limit(void **state)
{
  char deep[2 * SC_JSON_DEPTH + 8], *got;
  (void)state;
  memset(deep, '[', SC_JSON_DEPTH);
  memset(deep + SC_JSON_DEPTH, ']', SC_JSON_DEPTH);
  got = tokens_of(deep, (size_t)2 * SC_JSON_DEPTH, 5);
  assert_null(strchr(got, '!'));
  free(got);
  memset(deep, '[', SC_JSON_DEPTH + 1);
  got = tokens_of(deep, SC_JSON_DEPTH + 1, 5);
  assert_non_null(strstr(got, "!at byte 512: nested deeper than 512"));
  free(got);
}

/* Longer than what is kept, than the window, and exactly at the limits. */
static void long_strings_are_cut_and_read_over(void **state)
{
  static const size_t lengths[] = {SC_JSON_TEXT_MAX - 1, SC_JSON_TEXT_MAX, SC_JSON_TEXT_MAX + 1, 1u << 20, 3000000};
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(lengths); ++i) {
    struct sc_buf text = {0};
    sc_buf_puts(&text, "[\"");
    for (size_t k = 0; k < lengths[i] / 50 + 1; ++k)
      sc_buf_puts(&text, "0123456789012345678901234567890123456789012345678\\");
    text.len = 2 + lengths[i];
    text.data[text.len - 1] = 'x'; /* no half an escape at the end */
    sc_buf_puts(&text, "\", \"y\"]");
    for (size_t step = 999; step < 4000000; step *= 1001) {
      struct source source = {.bytes = text.data, .size = text.len, .step = step};
      struct sc_json *json = sc_json_new(read_source, &source);
      struct sc_json_token token;
      assert_int_equal(sc_json_next(json, &token), SC_JSON_ARRAY);
      assert_int_equal(sc_json_next(json, &token), SC_JSON_STRING);
      assert_int_equal(token.cut, lengths[i] > SC_JSON_TEXT_MAX);
      assert_int_equal(token.length, lengths[i] > SC_JSON_TEXT_MAX ? SC_JSON_TEXT_MAX : lengths[i]);
      assert_memory_equal(token.text, text.data + 2, token.length - 1);
      assert_int_equal(sc_json_next(json, &token), SC_JSON_STRING);
      assert_int_equal(token.length, 1);
      assert_int_equal(sc_json_next(json, &token), SC_JSON_ARRAY_END);
      assert_int_equal(sc_json_next(json, &token), SC_JSON_END);
      sc_json_free(json);
    }
    sc_buf_free(&text);
  }
}

static void values_are_read_over_whole(void **state)
{
  static const char text[] = "{\"a\":{\"x\":[1,{\"y\":\"}]\\\"\"}]},\"b\":\"s\\\\\",\"c\":12,\"d\":[[],[2]],\"e\":1}";
  (void)state;
  for (size_t step = 1; step < 70; ++step) {
    struct source source = {.bytes = text, .size = strlen(text), .step = step};
    struct sc_json *json = sc_json_new(read_source, &source);
    struct sc_json_token token;
    assert_int_equal(sc_json_next(json, &token), SC_JSON_OBJECT);
    for (const char *key = "abcd"; *key; ++key) {
      assert_int_equal(sc_json_next(json, &token), SC_JSON_KEY);
      assert_int_equal(*token.text, *key);
      assert_true(sc_json_skip(json));
      assert_int_equal(sc_json_depth(json), 1);
    }
    assert_int_equal(sc_json_next(json, &token), SC_JSON_KEY);
    assert_true(sc_json_leave(json));
    assert_int_equal(sc_json_next(json, &token), SC_JSON_END);
    assert_int_equal(sc_json_offset(json), strlen(text));
    sc_json_free(json);
  }
}

static void brackets_that_do_not_match_are_found_while_reading_over(void **state)
{
  static const char *const wrong[] = {"[[1}]", "[[1,{\"a\":2]]", "[[[", "[\"abc"};
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(wrong); ++i) {
    struct source source = {.bytes = wrong[i], .size = strlen(wrong[i]), .step = 2};
    struct sc_json *json = sc_json_new(read_source, &source);
    struct sc_json_token token;
    assert_int_equal(sc_json_next(json, &token), SC_JSON_ARRAY);
    assert_false(sc_json_skip(json));
    assert_int_equal(sc_json_error(json, NULL), SC_ERR_FORMAT);
    assert_int_equal(sc_json_ended(json), i >= 2);
    sc_json_free(json);
  }
}

static void an_error_of_reading_is_told_as_it_is(void **state)
{
  struct source source = {.bytes = "[1", .size = 2, .step = 2, .fails = true};
  struct sc_json *json = sc_json_new(read_source, &source);
  struct sc_json_token token;
  struct sc_error err;
  (void)state;
  assert_int_equal(sc_json_next(json, &token), SC_JSON_ARRAY);
  while (sc_json_next(json, &token) != SC_JSON_FAIL) {
  }
  assert_int_equal(sc_json_error(json, &err), SC_ERR_IO);
  assert_string_equal(err.message, "the disk is on fire");
  assert_false(sc_json_ended(json));
  sc_json_free(json);
}

static void numbers_become_fixed_point(void **state)
{
  static const struct {
    const char *text;
    unsigned decimals;
    bool ok;
    int64_t value;
  } rows[] = {
      {"0", 3, true, 0},
      {"12", 3, true, 12000},
      {"12.3456", 3, true, 12346},
      {"12.3444", 3, true, 12344},
      {"-1.5", 3, true, -1500},
      {"1695835542514261.5", 3, true, 1695835542514261500},
      {"4203669604595.407", 3, true, 4203669604595407},
      {"1.5e3", 3, true, 1500000},
      {"1e2", 0, true, 100},
      {"9223372036854775807", 0, true, INT64_MAX},
      {"9223372036854775808", 0, false, 0},
      {"99999999999999999999999", 0, false, 0},
      {"9223372036854775807", 3, false, 0},
      {"1e30", 3, false, 0},
      {"NaN", 3, false, 0},
      {"-Infinity", 3, false, 0},
      {"", 0, false, 0},
      {"-", 0, false, 0},
      {"1.2.3", 0, false, 0},
      {"0x10", 0, false, 0},
      {"12a", 0, false, 0},
  };
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i) {
    int64_t value = 0;
    assert_int_equal(sc_json_fixed(rows[i].text, strlen(rows[i].text), rows[i].decimals, &value), rows[i].ok);
    assert_true(value == rows[i].value);
  }
}

static void every_beginning_of_a_text_fails_and_says_that_it_ends(void **state)
{
  static const char text[] = "{\"a\": [1, \"b\\u0041\", {\"c\": null}], \"d\": -2.5}";
  (void)state;
  for (size_t n = 0; n < strlen(text); ++n) {
    char *copy = malloc(n ? n : 1); /* exactly as large as the input, for the sanitizers */
    memcpy(copy, text, n);
    char *got = tokens_of(copy, n, 3);
    assert_non_null(strchr(got, '!'));
    free(got);
    free(copy);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tokens_are_the_same_however_the_bytes_arrive),
      cmocka_unit_test(what_profilers_write_is_let_pass),
      cmocka_unit_test(escapes_are_resolved_and_bad_ones_stay),
      cmocka_unit_test(errors_say_where_and_what),
      cmocka_unit_test(nesting_has_a_limit),
      cmocka_unit_test(long_strings_are_cut_and_read_over),
      cmocka_unit_test(values_are_read_over_whole),
      cmocka_unit_test(brackets_that_do_not_match_are_found_while_reading_over),
      cmocka_unit_test(an_error_of_reading_is_told_as_it_is),
      cmocka_unit_test(numbers_become_fixed_point),
      cmocka_unit_test(every_beginning_of_a_text_fails_and_says_that_it_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
