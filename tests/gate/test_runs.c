/* SPDX-License-Identifier: Apache-2.0
 * Expectations over runs of the instrumented layers. */
#include "test_support.h"

#include <math.h>
#include <string.h>

#include "gate/gate.h"

static struct sc_run *add_run(struct sc_findings *f, const char *variant, uint64_t experts, uint64_t min, uint64_t max)
{
  struct sc_run *run = sc_array_push(&f->runs, &f->run_count, &f->run_cap, sizeof *run);
  assert_non_null(run);
  sc_run_init(run);
  run->variant = sc_strdup(variant);
  run->experts = experts;
  run->tokens = 64;
  run->layers = 2;
  run->forwards = 1;
  run->verified = run->counted = true;
  run->per_layer_min = min;
  run->per_layer_max = max;
  run->counts.syncs = min + max;
  run->counts.submissions = 10;
  run->per_forward = (double)(min + max);
  run->expected_per_layer = (double)max;
  run->exact = true;
  return run;
}

static void add_op(struct sc_run *run, const char *name, uint64_t count)
{
  size_t cap = run->by_op_count;
  struct sc_named_count *op = sc_array_push(&run->by_op, &run->by_op_count, &cap, sizeof *op);
  assert_non_null(op);
  op->name = sc_strdup(name);
  op->count = count;
}

static struct sc_gate_report *judge(struct sc_gate *gate, const struct sc_findings *f, const char *text,
                                    const struct sc_gate_facts *facts)
{
  struct sc_gate_report *report = NULL;
  struct sc_error err = {0};
  if (sc_gate_parse(gate, text, &err) != SC_OK || sc_gate_judge(gate, f, facts, &report, &err) != SC_OK)
    fail_msg("%s", err.message);
  return report;
}

static enum sc_gate_verdict verdict_of(const struct sc_findings *f, const char *text)
{
  struct sc_gate gate = {0};
  struct sc_gate_report *report = judge(&gate, f, text, NULL);
  enum sc_gate_verdict verdict = report->verdict;
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  return verdict;
}

static void every_run_of_the_variant_must_hold(void **state)
{
  struct sc_findings *f = sc_findings_new();
  (void)state;
  add_run(f, "sorted", 4, 1, 1);
  add_run(f, "sorted", 8, 1, 1);
  add_run(f, "masked", 4, 12, 12);
  assert_int_equal(verdict_of(f, "sorted.syncs_per_layer == 1"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(f, "sorted.syncs_per_forward == 2"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(f, "sorted.syncs == 2"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(f, "masked.syncs_per_layer == expected"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(f, "syncs_per_layer == 1"), SC_GATE_FAILED);
  assert_int_equal(verdict_of(f, "fused-nvfp4.syncs_per_layer == 0"), SC_GATE_UNMEASURED);
  assert_int_equal(verdict_of(f, "range(x).syncs == 0"), SC_GATE_UNMEASURED);
  f->runs[1].per_layer_max = 9;
  assert_int_equal(verdict_of(f, "sorted.syncs_per_layer == 1"), SC_GATE_FAILED);
  assert_int_equal(verdict_of(f, "sorted.syncs_per_layer <= 9"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(f, "sorted.syncs_per_layer >= 2"), SC_GATE_FAILED);
  f->runs[2].exact = false;
  assert_int_equal(verdict_of(f, "masked.syncs_per_layer == expected"), SC_GATE_FAILED);
  sc_findings_free(f);
}

static void the_ops_of_a_failure_are_named(void **state)
{
  struct sc_findings *f = sc_findings_new();
  struct sc_gate gate = {0};
  (void)state;
  struct sc_run *run = add_run(f, "masked", 4, 12, 12);
  add_op(run, "any", 8);
  add_op(run, "nonzero", 6);
  add_op(run, "never", 0);
  struct sc_gate_report *report = judge(&gate, f, "syncs_per_layer == 1", NULL);
  const struct sc_gate_result *r = &report->results[0];
  assert_int_equal(r->extra_count, 3);
  assert_string_equal(r->extras[0].op, "(outside every op)");
  assert_int_equal(r->extras[0].total, 10);
  assert_string_equal(r->extras[1].op, "any");
  assert_true(r->extras[1].most == 4);
  assert_string_equal(r->extras[2].op, "nonzero");
  assert_true(r->extras[2].most == 3);
  assert_string_equal(r->failures[0].what, "masked, E = 4, 64 tokens");
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  sc_findings_free(f);
}

static void a_layer_that_is_not_verified_or_not_counted_is_no_pass(void **state)
{
  struct sc_findings *f = sc_findings_new();
  (void)state;
  struct sc_run *run = add_run(f, "sorted", 4, 1, 1);
  run->verified = false;
  assert_int_equal(verdict_of(f, "sorted.syncs_per_layer == 1"), SC_GATE_UNMEASURED);
  assert_int_equal(verdict_of(f, "sorted.syncs_per_layer == 0"), SC_GATE_FAILED);
  run->verified = true;
  run->counted = false;
  assert_int_equal(verdict_of(f, "sorted.syncs_per_layer == 1"), SC_GATE_UNMEASURED);
  run->counted = true;
  run->counts.uncertain = 1;
  assert_int_equal(verdict_of(f, "sorted.syncs_per_layer == 1"), SC_GATE_UNMEASURED);
  assert_int_equal(verdict_of(f, "sorted.syncs_per_layer <= 0"), SC_GATE_FAILED);
  sc_findings_free(f);
}

static void a_grid_with_holes_is_no_pass(void **state)
{
  struct sc_findings *f = sc_findings_new();
  struct sc_gate gate = {0};
  const struct sc_gate_facts facts = {.incomplete = "1 points were left out"};
  (void)state;
  add_run(f, "sorted", 4, 1, 1);
  struct sc_gate_report *report = judge(&gate, f, "sorted.syncs_per_layer == 1", &facts);
  assert_int_equal(report->verdict, SC_GATE_UNMEASURED);
  assert_string_equal(report->results[0].why, "1 points were left out");
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  sc_findings_free(f);
}

static void a_floor_needs_a_ruler(void **state)
{
  struct sc_findings *f = sc_findings_new();
  (void)state;
  struct sc_run *run = add_run(f, "sorted", 4, 1, 1);
  assert_int_equal(verdict_of(f, "sorted.floor <= 1s"), SC_GATE_UNMEASURED);
  run->floor_mean_us = 100;
  assert_int_equal(verdict_of(f, "sorted.floor <= 100us"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(f, "sorted.floor <= 99us"), SC_GATE_FAILED);
  sc_findings_free(f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_run_of_the_variant_must_hold),
      cmocka_unit_test(the_ops_of_a_failure_are_named),
      cmocka_unit_test(a_layer_that_is_not_verified_or_not_counted_is_no_pass),
      cmocka_unit_test(a_grid_with_holes_is_no_pass),
      cmocka_unit_test(a_floor_needs_a_ruler),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
