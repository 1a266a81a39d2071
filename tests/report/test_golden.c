/* SPDX-License-Identifier: Apache-2.0
 * Whole reports, compared with the files in golden/. Run with SC_UPDATE_GOLDEN=1 to write them anew, and read the
 * diff. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "test_support.h"

static const struct {
  const char *name;
  struct sc_findings *(*make)(void);
} fixtures[] = {
    {"full", fixture_full},
    {"minimal", fixture_minimal},
    {"simulated", fixture_simulated},
    {"lost", fixture_lost},
    {"not-verified", fixture_not_verified},
    {"hit", fixture_hit},
    {"assumed", fixture_assumed},
    {"ruler", fixture_ruler},
    {"process", fixture_process},
    {"traced", fixture_traced},
};

static char *golden_path(const char *name, const char *variant, const char *extension)
{
  const char *source = getenv("SC_SOURCE");

  assert_non_null(source); /* ctest sets it */
  return sc_asprintf("%s/tests/report/golden/%s%s.%s", source, name, variant, extension);
}

static char *read_file(const char *path)
{
  FILE *file = fopen(path, "r");
  struct sc_buf buf = {0};
  char block[4096];
  size_t n;

  if (!file)
    fail_msg("%s is missing: run with SC_UPDATE_GOLDEN=1", path);
  while ((n = fread(block, 1, sizeof block, file)) > 0)
    sc_buf_append(&buf, block, n);
  fclose(file);
  assert_non_null(buf.data);
  return buf.data;
}

/* Says where the first difference is: whole reports are too long to print. */
static void compare(const char *path, const char *got, const char *expected)
{
  int line = 1;
  size_t start = 0, i = 0;

  for (; got[i] == expected[i] && got[i]; i++) {
    if (got[i] == '\n') {
      line++;
      start = i + 1;
    }
  }
  if (got[i] != expected[i])
    fail_msg("%s line %d:\n  expected %.*s\n  got      %.*s", path, line, (int)strcspn(expected + start, "\n"),
             expected + start, (int)strcspn(got + start, "\n"), got + start);
}

static void check(const struct sc_findings *f, const char *name, const char *format, const char *variant,
                  const struct sc_report_options *options)
{
  char *path = golden_path(name, variant, sc_report_format_find(format)->extension), *got = render(f, format, options);

  if (getenv("SC_UPDATE_GOLDEN")) {
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(got, file) >= 0);
    assert_int_equal(fclose(file), 0);
  } else {
    char *expected = read_file(path);

    compare(path, got, expected);
    free(expected);
  }
  free(got);
  free(path);
}

static void each_fixture(const char *format, const char *variant, const struct sc_report_options *options)
{
  for (size_t i = 0; i < SC_COUNTOF(fixtures); i++) {
    struct sc_findings *f = fixtures[i].make();

    check(f, fixtures[i].name, format, variant, options);
    sc_findings_free(f);
  }
}

static void text_at_100_columns(void **state)
{
  (void)state;
  each_fixture("text", "-100", &(struct sc_report_options){.width = 100});
}

static void text_at_80_columns_with_experts(void **state)
{
  (void)state;
  each_fixture("text", "-80-experts", &(struct sc_report_options){.width = 80, .per_expert = true});
}

static void markdown(void **state)
{
  (void)state;
  each_fixture("markdown", "", &(struct sc_report_options){.per_expert = true});
}

/* Two are enough: test_json looks at every key. */
static void json(void **state)
{
  struct sc_findings *minimal = fixture_minimal(), *hit = fixture_hit();

  (void)state;
  check(minimal, "minimal", "json", "", NULL);
  check(hit, "hit", "json", "", NULL);
  sc_findings_free(minimal);
  sc_findings_free(hit);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_at_100_columns),
      cmocka_unit_test(text_at_80_columns_with_experts),
      cmocka_unit_test(markdown),
      cmocka_unit_test(json),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
