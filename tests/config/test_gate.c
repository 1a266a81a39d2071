/* SPDX-License-Identifier: Apache-2.0
 * Gates from memory: what is read, and that every refused file is refused at the right place with the right words. */
#include "test_support.h"

#include <string.h>

#include "config/config.h"

static void assert_refused(const char *text, const char *where, const char *what)
{
  struct sc_config_gate *gate = NULL;
  struct sc_error err = {0};
  assert_int_equal(sc_config_read_gate_memory(text, strlen(text), "g.yaml", &gate, &err), SC_ERR_CONFIG);
  assert_null(gate);
  if (strncmp(err.message, where, strlen(where)) != 0 || !strstr(err.message, what))
    fail_msg("wanted '%s ... %s', got '%s'", where, what, err.message);
}

static void a_byte_order_mark_is_passed_over(void **state)
{
  static const char text[] = "\xef\xbb\xbfversion: 1\nexpect:\n  - expect: syncs <= 1\n";
  struct sc_config_gate *gate = NULL;
  struct sc_error err = {0};
  (void)state;
  if (sc_config_read_gate_memory(text, sizeof text - 1, "g.yaml", &gate, &err) != SC_OK)
    fail_msg("%s", err.message);
  sc_config_gate_free(gate);
}

static void a_whole_gate_is_read_into_every_field(void **state)
{
  static const char text[] =
      "version: 1\nname: all of it\n"
      "source:\n  probe:\n    model: mixtral-8x7b\n    device: sim\n    hidden: 64\n"
      "    intermediate: 128\n    top_k: 2\n    experts: [4, 8]\n    tokens: [1]\n"
      "    variants: [sorted]\n    layers: 3\n    forwards: 2\n    seed: 0\n    dtype: fp32\n"
      "    routing: uniform\n"
      "  warmup: 3\n  from: start\n  ranges: ['step:*=step', 'l*=layer']\n  capture_range: true\n"
      "  stacks: none\n  api: driver\n  torch_modules: true\n  follow: false\n"
      "expect:\n  - expect: sorted.syncs_per_layer == 1\n    reason: r\n"
      "  - range: layer*\n    level: layer\n    site: m.py:*\n    thread: main\n    rank: '0'\n"
      "    process: python*\n    class: copy\n    measure: syncs_per_occurrence\n    between: [1, 3]\n"
      "  - variant: masked\n    measure: floor\n    at_most: 200us\n"
      "allow:\n  - site: a.py:f\n    range: r\n    count: 2\n    first_only: true\n    reason: why\n";
  struct sc_config_gate *gate = NULL;
  struct sc_error err = {0};
  (void)state;
  if (sc_config_read_gate_memory(text, sizeof text - 1, "g.yaml", &gate, &err) != SC_OK)
    fail_msg("%s", err.message);
  assert_int_equal(gate->version, 1);
  assert_string_equal(gate->name, "all of it");
  assert_true(gate->has_source && gate->has_probe && gate->has_follow);
  assert_string_equal(gate->model, "mixtral-8x7b");
  assert_string_equal(gate->device, "sim");
  assert_int_equal(gate->hidden, 64);
  assert_int_equal(gate->intermediate, 128);
  assert_int_equal(gate->top_k, 2);
  const struct sc_config_run *run = &gate->probe.run;
  assert_int_equal(run->experts_count, 2);
  assert_int_equal(run->experts[1], 8);
  assert_int_equal(run->tokens[0], 1);
  assert_string_equal(run->variants[0], "sorted");
  assert_int_equal(run->layers, 3);
  assert_int_equal(run->forwards, 2);
  assert_true(run->has_seed && run->has_dtype);
  assert_int_equal(run->dtype, SC_CONFIG_FP32);
  assert_string_equal(run->routing, "uniform");
  assert_int_equal(gate->warmup, 3);
  assert_string_equal(gate->from, "start");
  assert_int_equal(gate->ranges_count, 2);
  assert_string_equal(gate->ranges[1], "l*=layer");
  assert_true(gate->capture_range);
  assert_true(gate->torch_modules);
  assert_string_equal(gate->stacks, "none");
  assert_string_equal(gate->api, "driver");
  assert_false(gate->follow);
  assert_int_equal(gate->expect_count, 3);
  assert_string_equal(gate->expect[0].expect, "sorted.syncs_per_layer == 1");
  assert_string_equal(gate->expect[0].reason, "r");
  const struct sc_config_expectation *e = &gate->expect[1];
  assert_int_equal(e->line, 29);
  assert_string_equal(e->range, "layer*");
  assert_string_equal(e->level, "layer");
  assert_string_equal(e->site, "m.py:*");
  assert_string_equal(e->thread, "main");
  assert_string_equal(e->rank, "0");
  assert_string_equal(e->process, "python*");
  assert_string_equal(e->cls, "copy");
  assert_string_equal(e->measure, "syncs_per_occurrence");
  assert_int_equal(e->between_count, 2);
  assert_string_equal(e->between[1], "3");
  assert_string_equal(gate->expect[2].at_most, "200us");
  assert_int_equal(gate->allow_count, 1);
  assert_true(gate->allow[0].has_count && gate->allow[0].first_only);
  assert_int_equal(gate->allow[0].count, 2);
  assert_string_equal(gate->allow[0].reason, "why");
  sc_config_gate_free(gate);
}

#define GATE "version: 1\nexpect:\n  - measure: syncs\n    at_most: 1\n"

static void unknown_keys_are_refused_with_their_place(void **state)
{
  (void)state;
  assert_refused(GATE "extra: 1\n", "g.yaml:5:1: ", "'extra' is not known at the top level; known here: version, name");
  assert_refused("version: 1\nexpect:\n  - measure: syncs\n    atmost: 1\n",
                 "g.yaml:4:5: ", "'atmost' is not known in section expect; known here: expect, variant");
  assert_refused(GATE "source:\n  probe:\n    expert: 4\n",
                 "g.yaml:7:5: ", "known here: model, device, hidden, intermediate, top_k, experts, tokens");
  assert_refused(GATE "allow:\n  - place: x\n    reason: y\n", "g.yaml:6:5: ", "'place' is not known in section allow");
}

static void what_is_missing_or_twice_is_refused(void **state)
{
  (void)state;
  assert_refused("expect:\n  - measure: syncs\n    at_most: 1\n", "g.yaml:1:1: ", "the file lacks 'version'");
  assert_refused("version: 1\n", "g.yaml:1:1: ", "the file lacks 'expect'");
  assert_refused("version: 1\nexpect: []\n", "g.yaml:2:9: ", "not an empty list");
  assert_refused("", "g.yaml:1:1: ", "a gate has 'version' and 'expect'");
  assert_refused("version: 2\nexpect: []\n", "g.yaml:1:10: ", "from 1 to 1");
  assert_refused("version: 1\nexpect: []\n", "g.yaml:2:9: ", "a list of sections");
  assert_refused("version: 1\nexpect: syncs\n", "g.yaml:2:9: ", "a list of sections");
  assert_refused("version: 1\nexpect: [syncs]\n", "g.yaml:2:10: ", "must be a section");
  assert_refused("version: 1\nexpect:\n  - range: x\n", "g.yaml:3:5: ", "needs 'measure' or 'expect'");
  assert_refused("version: 1\nexpect:\n  - measure: syncs\n", "g.yaml:3:5: ", "here is none");
  assert_refused(GATE "    equals: 2\n", "g.yaml:3:5: ", "here are several");
  assert_refused("version: 1\nexpect:\n  - measure: syncs\n    between: [1]\n", "g.yaml:4:14: ", "takes two numbers");
  assert_refused("version: 1\nexpect:\n  - expect: syncs == 1\n    range: x\n", "g.yaml:3:5: ", "says all of it");
  assert_refused("version: 1\nexpect:\n  - measure: sync\n    equals: 1\n", "g.yaml:3:14: ", "syncs_per_layer");
  assert_refused("version: 1\nexpect:\n  - measure: syncs\n    class: hard\n    equals: 1\n",
                 "g.yaml:4:12: ", "explicit");
  assert_refused(GATE "allow:\n  - site: x\n", "g.yaml:6:5: ", "lacks 'reason'");
  assert_refused(GATE "allow:\n  - reason: x\n", "g.yaml:6:5: ", "needs 'site' or 'range'");
  assert_refused(GATE "allow:\n  - site: x\n    count: 0\n    reason: y\n", "g.yaml:7:12: ", "from 1");
  assert_refused(GATE "source:\n  probe: {experts: [4]}\n  command: [x]\n", "g.yaml:5:1: ", "here are 2 of them");
  assert_refused(GATE "source:\n  command: []\n", "g.yaml:6:12: ", "a list of texts");
  assert_refused(GATE "source:\n  command: ['']\n", "g.yaml:6:12: ", "first word is empty");
  assert_refused(GATE "source:\n  warmup: -1\n", "g.yaml:6:11: ", "whole number");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_byte_order_mark_is_passed_over),
      cmocka_unit_test(a_whole_gate_is_read_into_every_field),
      cmocka_unit_test(unknown_keys_are_refused_with_their_place),
      cmocka_unit_test(what_is_missing_or_twice_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
