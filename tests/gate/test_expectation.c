/* SPDX-License-Identifier: Apache-2.0
 * Expectations from text: what is understood, and what each mistake is told. */
#include "test_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "gate/gate.h"

static void assert_refused(const char *text, const char *what)
{
  struct sc_gate gate = {0};
  struct sc_error err = {0};
  if (sc_gate_parse(&gate, text, &err) != SC_ERR_USAGE)
    fail_msg("'%s' was taken", text);
  if (!strstr(err.message, what))
    fail_msg("wanted '%s' in '%s'", what, err.message);
  assert_int_equal(gate.expectation_count, 0);
  sc_gate_free(&gate);
}

static const struct sc_gate_expectation *parse(struct sc_gate *gate, const char *text)
{
  struct sc_error err = {0};
  if (sc_gate_parse(gate, text, &err) != SC_OK)
    fail_msg("'%s' was refused: %s", text, err.message);
  return &gate->expectations[gate->expectation_count - 1];
}

static void a_variant_and_its_measure_are_understood(void **state)
{
  struct sc_gate gate = {0};
  (void)state;
  const struct sc_gate_expectation *e = parse(&gate, "sorted.syncs_per_layer == 1");
  assert_string_equal(e->variant, "sorted");
  assert_int_equal(e->measure, SC_GATE_PER_LAYER);
  assert_int_equal(e->compare, SC_GATE_EQUALS);
  assert_true(e->low == 1 && e->high == 1);
  assert_string_equal(e->text, "sorted.syncs_per_layer == 1");
  e = parse(&gate, "fused-nvfp4.syncs_per_forward<=0");
  assert_string_equal(e->variant, "fused-nvfp4");
  e = parse(&gate, "masked.syncs_per_layer == expected");
  assert_true(e->expected);
  assert_string_equal(e->text, "masked.syncs_per_layer == expected");
  sc_gate_free(&gate);
}

static void selectors_are_chained(void **state)
{
  struct sc_gate gate = {0};
  (void)state;
  const struct sc_gate_expectation *e =
      parse(&gate, "rank(0).range(layer*).site(model.py:1?7).class(pageable).syncs_per_occurrence >= 2");
  assert_string_equal(e->rank, "0");
  assert_string_equal(e->range, "layer*");
  assert_string_equal(e->site, "model.py:1?7");
  assert_int_equal(e->cls, SC_CLASS_PAGEABLE);
  assert_int_equal(e->compare, SC_GATE_AT_LEAST);
  assert_true(e->low == 2 && isnan(e->high));
  sc_gate_free(&gate);
}

static void a_pattern_may_hold_dots_and_parentheses(void **state)
{
  struct sc_gate gate = {0};
  (void)state;
  assert_string_equal(parse(&gate, "range(f(x) of model.layers.3).syncs <= 1")->range, "f(x) of model.layers.3");
  sc_gate_free(&gate);
}

static void times_need_their_unit(void **state)
{
  struct sc_gate gate = {0};
  (void)state;
  const struct sc_gate_expectation *e = parse(&gate, "range(decode).wait between 200us and 1.5ms");
  assert_true(e->low == 200 && e->high == 1500);
  assert_string_equal(e->text, "range(decode).wait between 200 us and 1.50 ms");
  assert_refused("wait <= 5", "a time with its unit");
  assert_refused("syncs <= 5us", "a number was expected");
  sc_gate_free(&gate);
}

static void what_is_printed_is_understood_again(void **state)
{
  static const char *const texts[] = {
      "sorted.syncs_per_layer == 1", "level(layer).syncs_per_occurrence between 1 and 3",
      "class(implicit).syncs_per_step <= 0", "process(python*).thread(pt*).syncs >= 4", "poll_waits <= 7"};
  struct sc_gate gate = {0};
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(texts); ++i)
    assert_string_equal(parse(&gate, texts[i])->text, texts[i]);
  sc_gate_free(&gate);
}

static void mistakes_are_named_with_their_place(void **state)
{
  (void)state;
  assert_refused("", "at character 1: a name was expected");
  assert_refused("sorted.syncs == ", "a number was expected");
  assert_refused("sorted.syncs = 1", "at character 14: a comparison was expected");
  assert_refused("sorted.syncs < 1", "a comparison was expected");
  assert_refused("sorted.syncs == 1 1", "nothing more was expected");
  assert_refused("sorted.sync == 1", "at character 8: what can be measured");
  assert_refused("sorter.syncs == 1", "no variant has this name");
  assert_refused("sorted.masked.syncs == 1", "selected twice");
  assert_refused("range(a).range(b).syncs == 1", "selected twice");
  assert_refused("range(a.syncs == 1", "')' and '.' are missing");
  assert_refused("range().syncs == 1", "nothing stands in the parentheses");
  assert_refused("file(x).syncs == 1", "what can be selected");
  assert_refused("class(blocking).syncs == 1", "the classes are");
  assert_refused("syncs between 3 and 1", "first number");
  assert_refused("syncs between 3", "'and' was expected");
  assert_refused("syncs == -1", "whole number");
  assert_refused("syncs == 1.5", "whole number");
  assert_refused("syncs <= nan", "a number was expected");
}

static void selectors_that_do_not_go_together_are_refused(void **state)
{
  (void)state;
  assert_refused("sorted.range(x).syncs == 1", "a variant is one of the instrumented layers");
  assert_refused("syncs_per_occurrence == 1", "needs a range or a level");
  assert_refused("range(x).syncs_per_layer == 1", "syncs_per_occurrence");
  assert_refused("range(x).syncs_per_step == 1", "whole steps");
  assert_refused("range(x).floor <= 1us", "instrumented layers alone");
  assert_refused("sorted.wait <= 1us", "say floor");
  assert_refused("site(x).poll_waits <= 1", "takes no site");
  assert_refused("level(row).syncs_per_occurrence == 1", "the levels are");
  assert_refused("sorted.syncs == expected", "syncs_per_layer");
  assert_refused("syncs_per_layer <= expected", "a number was expected");
}

/* The manual without the backslashes of its source. */
static char *manual(void)
{
  char *path = sc_asprintf("%s/docs/synccount-gate.5.scd", getenv("SC_SOURCE"));
  FILE *file = fopen(path, "r");
  struct sc_buf text = {0};
  int c;
  assert_non_null(file);
  while ((c = getc(file)) != EOF) {
    if (c != '\\')
      sc_buf_append(&text, &(char){(char)c}, 1);
  }
  fclose(file);
  free(path);
  assert_false(text.failed);
  return text.data;
}

static void assert_told(const char *text, const char *before, const char *word, const char *after)
{
  char *wanted = sc_asprintf("%s%s%s", before, word, after);
  if (!strstr(text, wanted))
    fail_msg("synccount-gate(5) does not have '%s'", wanted);
  free(wanted);
}

static void the_manual_has_every_selector_and_word(void **state)
{
#define NAME(name) #name,
  static const char *const selectors[] = {SC_SELECTORS(NAME) "class"};
  static const char *const words[] = {SC_VARIANT_WORDS, SC_LEVEL_WORDS, SC_CLASS_WORDS, SC_MEASURE_WORDS};
  char *text = manual();
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(selectors); ++i) {
    assert_told(text, "*", selectors[i], "*");
    if (strcmp(selectors[i], "variant") != 0) /* it stands for itself */
      assert_told(text, "_", selectors[i], "(");
  }
  for (size_t i = 0; i < SC_COUNTOF(words); ++i)
    assert_told(text, "_", words[i], "_");
  free(text);
}

/* Each name of the table is one that an expectation can be given, and is told by. */
static void every_selector_is_read_and_told(void **state)
{
  static const char *const names[] = {SC_SELECTORS(NAME)};
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    const char *value = strcmp(names[i], "variant") == 0 ? "sorted" : strcmp(names[i], "level") == 0 ? "step" : "x";
    struct sc_gate gate = {0};
    struct sc_error err = {0};
    char *text = sc_asprintf("%s(%s).syncs == 1", names[i], value);
    if (sc_gate_parse(&gate, text, &err) != SC_OK)
      fail_msg("%s", err.message);
    assert_string_equal(gate.expectations[0].text, strcmp(names[i], "variant") == 0 ? "sorted.syncs == 1" : text);
    assert_int_equal(sc_gate_select(&gate.expectations[0], names[i], value, &err), SC_ERR_USAGE);
    assert_non_null(strstr(err.message, "selected twice"));
    free(text);
    sc_gate_free(&gate);
  }
}

/* What the gate knows can be written in YAML; what it does not know it refuses itself. */
static void yaml_knows_every_selector_and_word(void **state)
{
  static const char *const names[] = {SC_SELECTORS(NAME) "class"};
  static const struct {
    const char *key, *words[SC_GATE_MEASURE_COUNT + 1];
  } sets[] = {{"variant", {SC_VARIANT_WORDS}},
              {"level", {SC_LEVEL_WORDS}},
              {"class", {SC_CLASS_WORDS}},
              {"measure", {SC_MEASURE_WORDS}}};
  struct sc_buf text = {0};
  (void)state;
  sc_buf_puts(&text, "version: 1\nexpect:\n");
  for (size_t i = 0; i < SC_COUNTOF(sets); ++i) {
    for (size_t k = 0; sets[i].words[k]; ++k)
      sc_buf_printf(&text, "  - equals: 1\n    %s: %s\n%s", sets[i].key, sets[i].words[k],
                    strcmp(sets[i].key, "measure") == 0 ? "" : "    measure: syncs\n");
  }
  for (size_t i = 0; i < SC_COUNTOF(names); ++i)
    sc_buf_printf(&text, "  - equals: 1\n    measure: syncs\n    %s: %s\n", names[i],
                  strcmp(names[i], "variant") == 0 ? "sorted"
                  : strcmp(names[i], "level") == 0 ? "step"
                  : strcmp(names[i], "class") == 0 ? "copy"
                                                   : "x");
  struct sc_config_gate *gate = NULL;
  struct sc_error err = {0};
  if (sc_config_read_gate_memory(text.data, text.len, "g.yaml", &gate, &err) != SC_OK)
    fail_msg("%s", err.message);
  sc_config_gate_free(gate);
  sc_buf_free(&text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_variant_and_its_measure_are_understood),
      cmocka_unit_test(selectors_are_chained),
      cmocka_unit_test(a_pattern_may_hold_dots_and_parentheses),
      cmocka_unit_test(times_need_their_unit),
      cmocka_unit_test(what_is_printed_is_understood_again),
      cmocka_unit_test(mistakes_are_named_with_their_place),
      cmocka_unit_test(selectors_that_do_not_go_together_are_refused),
      cmocka_unit_test(the_manual_has_every_selector_and_word),
      cmocka_unit_test(every_selector_is_read_and_told),
      cmocka_unit_test(yaml_knows_every_selector_and_word),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
