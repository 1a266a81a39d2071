/* SPDX-License-Identifier: Apache-2.0
 * Names meant to harm, in every place where a string comes from outside, through every writer. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "test_support.h"

static char *huge_name(void)
{
  char *name = malloc(65536 + 1);

  assert_non_null(name);
  memset(name, 'n', 65536);
  name[65536] = '\0';
  return name;
}

static const char *const names[] = {
    "",
    " ",
    "\"quoted\" 'single' \\ back\\slash",
    "</script><script>alert(1)</script>",
    "<!-- --> <img src=x onerror=alert(1)> &amp; ]]>",
    "a|b||c",
    "``` ` `` **x** _y_ [z](javascript:alert(1)) ![i](u)",
    "line\nline\r\nline\n\n# heading\n| a | b |\n|---|---|\n",
    "\t\v\b\f\a\x1b[31mred\x1b[0m\x7f",
    "\x01marker\x02 and \x03 again \x01",
    "bad \xff\xfe utf8 \xc3( \xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80 end\xe2\x82",
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x98\x80 \302\23331m C1",
    "turned \xe2\x80\xae around \xe2\x81\xa6 \xe2\x80\xa8 here",
    "%s%n%d%%",
    "@everyone #1 https://example.com www.example.com :smile: $x$",
    "- 1. + * > ===\n---",
    "../../etc/passwd\0hidden",
};

static void check_printable(const char *text, const char *name)
{
  size_t n = strlen(text);

  for (size_t i = 0; i < n;) {
    size_t length = sc_utf8_length(text + i, n - i);
    unsigned char byte = (unsigned char)text[i];

    if (length == 0 || (byte < 0x20 && byte != '\n') || byte == 0x7f ||
        (length == 2 && byte == 0xc2 && (unsigned char)text[i + 1] < 0xa0))
      fail_msg("byte %02x at %zu for the name %s", byte, i, name);
    i += length;
  }
}

static void each_name(void (*check)(const char *name))
{
  char *huge = huge_name();

  for (size_t i = 0; i < SC_COUNTOF(names); i++)
    check(names[i]);
  check(huge);
  free(huge);
}

static size_t lines(const char *text)
{
  size_t count = 0;

  for (; *text; text++)
    count += *text == '\n';
  return count;
}

/* A name can neither steer the terminal, nor add lines, nor flood it. */
static void check_text(const char *name)
{
  struct sc_findings *f = fixture_hostile(name), *plain = fixture_hostile("plain");
  struct sc_report_options options = {.width = 4000, .per_expert = true};
  char *text = render(f, "text", &options), *other = render(plain, "text", &options);

  check_printable(text, name);
  /* Long prose wraps, at most 1,000 characters of it in a dozen places. */
  assert_in_range(lines(text), lines(other) - 20, lines(other) + (strlen(name) > 1000 ? 60 : 20));
  assert_true(strlen(text) < 60000);
  free(text);
  free(other);
  sc_findings_free(f);
  sc_findings_free(plain);
}

static void text_is_printable_and_bounded(void **state)
{
  (void)state;
  each_name(check_text);
}

/* The only tags are ours, the only unescaped pipes those of tables. */
static void check_markdown(const char *name)
{
  static const char *const tags[] = {"<code>", "</code>", "<details>", "</details>", "<summary>", "</summary>"};
  struct sc_findings *f = fixture_hostile(name);
  char *text = render(f, "markdown", &(struct sc_report_options){.per_expert = true});

  check_printable(text, name);
  assert_true(strlen(text) < 120000);
  for (const char *tag = strchr(text, '<'); tag; tag = strchr(tag + 1, '<')) {
    bool ours = false;

    for (size_t i = 0; i < SC_COUNTOF(tags); i++)
      ours |= strncmp(tag, tags[i], strlen(tags[i])) == 0;
    if (!ours)
      fail_msg("a foreign tag: %.40s", tag);
  }
  for (const char *line = text; *line;) {
    size_t n = strcspn(line, "\n");

    if (*line != '|' && memchr(line, '|', n))
      fail_msg("a pipe outside of a table: %.*s", (int)n, line);
    line += n + (line[n] == '\n');
  }
  assert_null(strstr(text, "@everyone"));
  assert_null(strstr(text, "https://"));
  free(text);
  sc_findings_free(f);
}

static void markdown_has_no_foreign_structure(void **state)
{
  (void)state;
  each_name(check_markdown);
}

/* Valid names come back byte for byte; others come back valid. */
static void check_json(const char *name)
{
  struct sc_findings *f = fixture_hostile(name);
  char *text = render(f, "json", NULL);
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  const char *command;
  bool valid = true;
  size_t n = strlen(name);

  assert_non_null(root);
  command = json_string_value(json_object_get(json_array_get(json_object_get(root, "processes"), 0), "command"));
  assert_non_null(command);
  for (size_t i = 0; i < n; i++) {
    size_t length = sc_utf8_length(name + i, n - i);

    valid &= length > 0;
    i += length ? length - 1 : 0;
  }
  if (valid)
    assert_string_equal(command, name);
  else
    assert_non_null(strstr(command, "\xef\xbf\xbd"));
  json_decref(root);
  free(text);
  sc_findings_free(f);
}

static void json_keeps_valid_names_and_repairs_others(void **state)
{
  (void)state;
  each_name(check_json);
}

static void every_invalid_byte_is_visible_in_json(void **state)
{
  struct sc_findings *f = fixture_minimal();
  char *text;

  (void)state;
  assert_true(sc_findings_warn(f, "a\xff"
                                  "b\xc3"));
  text = render(f, "json", NULL);
  assert_non_null(strstr(text, "\"a\xef\xbf\xbd"
                               "b\xef\xbf\xbd\""));
  free(text);
  sc_findings_free(f);
}

static void a_long_name_keeps_both_ends(void **state)
{
  struct sc_findings *f = fixture_process();
  char *name = huge_name(), *text;

  (void)state;
  memcpy(name, "BEGIN", 5);
  memcpy(name + 65536 - 3, "END", 3);
  free(f->processes[0].command);
  f->processes[0].command = name;
  text = render(f, "text", &(struct sc_report_options){.width = 100});
  assert_non_null(strstr(text, "(BEGINnnnnnnnnn"));
  assert_non_null(strstr(text, "nnn...nnn"));
  assert_non_null(strstr(text, "nnnEND)"));
  free(text);
  sc_findings_free(f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_is_printable_and_bounded),
      cmocka_unit_test(markdown_has_no_foreign_structure),
      cmocka_unit_test(json_keeps_valid_names_and_repairs_others),
      cmocka_unit_test(every_invalid_byte_is_visible_in_json),
      cmocka_unit_test(a_long_name_keeps_both_ends),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
