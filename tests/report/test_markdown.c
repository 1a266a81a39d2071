/* SPDX-License-Identifier: Apache-2.0
 * What is pasted into a GitHub issue: real tables, nothing that becomes structure, a link or a mention. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "test_support.h"

#define assert_says(text, part)                     \
  do {                                              \
    if (!strstr(text, part))                        \
      fail_msg("missing: %s\nin:\n%s", part, text); \
  } while (0)

static size_t pipes(const char *line, size_t n)
{
  size_t count = 0;

  for (size_t i = 0; i < n; i++)
    count += line[i] == '|';
  return count;
}

/* Every line that begins with a pipe belongs to a table, and all lines of a table have the same number of pipes. */
static void check_tables(const char *text)
{
  size_t expected = 0, tables = 0;

  for (const char *line = text; *line;) {
    size_t n = strcspn(line, "\n");

    if (*line != '|') {
      expected = 0;
      if (pipes(line, n))
        fail_msg("a pipe outside of a table: %.*s", (int)n, line);
    } else if (!expected) {
      expected = pipes(line, n);
      tables++;
    } else if (pipes(line, n) != expected) {
      fail_msg("a row with %zu pipes in a table of %zu: %.*s", pipes(line, n), expected, (int)n, line);
    }
    line += n + (line[n] == '\n');
  }
  assert_true(tables > 0);
}

static void tables_have_equal_rows(void **state)
{
  struct sc_findings *full = fixture_assumed(), *process = fixture_process(), *hostile = fixture_hostile("a|b||c\\|d");
  const struct sc_findings *all[] = {full, process, hostile};

  (void)state;
  for (size_t i = 0; i < 3; i++) {
    char *text = render(all[i], "markdown", &(struct sc_report_options){.per_expert = true});

    check_tables(text);
    free(text);
  }
  sc_findings_free(full);
  sc_findings_free(process);
  sc_findings_free(hostile);
}

static void tables_have_a_blank_line_before_and_an_alignment_row(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text = render(f, "markdown", NULL);

  (void)state;
  assert_says(text, "\n\n| variant | E | syncs a layer | expected | bound 3E | syncs a forward | floor a forward |");
  assert_says(
      text, "\n|:---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n| masked | 4 | 12 | 12 | 12 | 96 | 1.03 ms |");
  free(text);
  sc_findings_free(f);
}

static void ruler_and_host_are_folded(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text = render(f, "markdown", NULL);

  (void)state;
  assert_says(text,
              "\n<details><summary>Ruler: how long this host waits, in us, untraced</summary>\n\n| way of waiting |");
  assert_says(text, "|\n\n</details>\n\n<details><summary>Host and device</summary>\n\n- synccount: 1.2.3-test\n- "
                    "CPU: Intel Xeon Platinum 8480+\n");
  assert_says(text, "\n\n</details>\n\n### Conditions known to move the round trip\n\n- GPU on NUMA node 0");
  free(text);
  sc_findings_free(f);
}

static void simulated_comes_first(void **state)
{
  struct sc_findings *f = fixture_simulated();
  char *text = render(f, "markdown", NULL);

  (void)state;
  assert_int_equal(strncmp(text, "> **SIMULATED", 13), 0);
  assert_null(strstr(text, "A read-back costs"));
  assert_null(strstr(text, "Ruler"));
  assert_null(strstr(text, "11.6 ms"));
  free(text);
  sc_findings_free(f);
}

static void warning_becomes(const char *warning, const char *markdown)
{
  struct sc_findings *f = fixture_minimal();
  char *text, *got;

  assert_true(sc_findings_warn(f, "%s", warning));
  text = render(f, "markdown", NULL);
  got = strstr(text, "### Warnings\n\n- **");
  assert_non_null(got);
  got += strlen("### Warnings\n\n- **");
  if (strncmp(got, markdown, strlen(markdown)) != 0 || strcmp(got + strlen(markdown), "**\n") != 0)
    fail_msg("expected %s\ngot %s", markdown, got);
  free(text);
  sc_findings_free(f);
}

static void foreign_prose_is_escaped(void **state)
{
  (void)state;
  warning_becomes("**bold** _it_ `code` [a](b) ![c](d)",
                  "\\*\\*bold\\*\\* \\_it\\_ \\`code\\` \\[a\\](b) \\!\\[c\\](d)");
  warning_becomes("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;");
  warning_becomes("a & b | c $x$ ~~d~~", "a &amp; b &#124; c &#36;x&#36; \\~\\~d\\~\\~");
  warning_becomes("@everyone fixes #12, see #x", "@&#8203;everyone fixes \\#&#8203;12, see \\#x");
  warning_becomes("http://x.y and www.x.y", "http&#58;//x.y and www&#46;x.y");
  warning_becomes("line\nline", "line\\\\x0aline");
  warning_becomes("    four blanks", "four blanks");
}

/* A list item in a tone without bold: what would start a list inside the list. */
static void key_becomes(const char *key, const char *markdown)
{
  struct sc_findings *f = fixture_minimal();
  char *text;

  assert_true(sc_findings_text(f, "conditions", key, "y"));
  text = render(f, "markdown", NULL);
  assert_says(text, markdown);
  free(text);
  sc_findings_free(f);
}

static void foreign_text_starts_no_list(void **state)
{
  (void)state;
  key_becomes("- item", "\n- \\- item: y\n");
  key_becomes("+ item", "\n- \\+ item: y\n");
  key_becomes("12. item", "\n- 12\\. item: y\n");
  key_becomes("3) item", "\n- 3\\) item: y\n");
  key_becomes("13.0 is no list", "\n- 13.0 is no list: y\n");
  key_becomes("-1 is none", "\n- -1 is none: y\n");
  key_becomes("# heading", "\n- \\# heading: y\n");
  key_becomes("> quote", "\n- &gt; quote: y\n");
}

static void names_are_code_in_which_nothing_is_found(void **state)
{
  struct sc_findings *f = fixture_hostile("@you `x` </code><b>");
  char *text = render(f, "markdown", NULL);

  (void)state;
  assert_says(text, "<code>&#64;you \\`x\\` &lt;/code&gt;&lt;b&gt;</code>");
  free(text);
  sc_findings_free(f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables_have_equal_rows),
      cmocka_unit_test(tables_have_a_blank_line_before_and_an_alignment_row),
      cmocka_unit_test(ruler_and_host_are_folded),
      cmocka_unit_test(simulated_comes_first),
      cmocka_unit_test(foreign_prose_is_escaped),
      cmocka_unit_test(foreign_text_starts_no_list),
      cmocka_unit_test(names_are_code_in_which_nothing_is_found),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
