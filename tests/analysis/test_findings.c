/* SPDX-License-Identifier: Apache-2.0
 * The findings model's helpers. */
#include "test_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings.h"

static void new_findings_are_empty_and_know_their_version(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  assert_non_null(f);
  assert_string_equal(f->version, SC_VERSION);
  assert_int_equal(f->run_count + f->process_count + f->warning_count + f->field_count, 0);
  sc_findings_free(f);
  sc_findings_free(NULL);
}

static void equal_warnings_are_kept_once(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  assert_true(sc_findings_warn(f, "%d records were lost", 3));
  assert_true(sc_findings_warn(f, "%d records were lost", 4));
  assert_true(sc_findings_warn(f, "%d records were %s", 3, "lost"));
  assert_int_equal(f->warning_count, 2);
  assert_string_equal(f->warnings[0], "3 records were lost");
  assert_string_equal(f->warnings[1], "4 records were lost");
  sc_findings_free(f);
}

static void long_warnings_are_whole(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  char text[5000];
  memset(text, 'w', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  assert_true(sc_findings_warn(f, "%s", text));
  assert_string_equal(f->warnings[0], text);
  sc_findings_free(f);
}

static void fields_keep_their_order_and_kind(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  assert_true(sc_findings_text(f, "host", "cpu", "Some CPU"));
  assert_true(sc_findings_number(f, "conditions", "gpu_numa_node", 1));
  assert_true(sc_findings_bool(f, "device", "simulated", false));
  assert_true(sc_findings_number(f, "conditions", "sm_clock_before", NAN));
  assert_true(sc_findings_text(f, "host", "driver", NULL));
  assert_int_equal(f->field_count, 5);
  assert_string_equal(f->fields[0].text, "Some CPU");
  assert_int_equal(f->fields[1].kind, SC_FIELD_NUMBER);
  assert_int_equal(f->fields[2].kind, SC_FIELD_BOOL);
  /* What was not measured is null, never 0. */
  assert_int_equal(f->fields[3].kind, SC_FIELD_NULL);
  assert_int_equal(f->fields[4].kind, SC_FIELD_NULL);
  assert_ptr_equal(sc_findings_field(f, "host", "cpu"), &f->fields[0]);
  assert_null(sc_findings_field(f, "device", "cpu"));
  sc_findings_free(f);
}

static void a_field_given_again_is_replaced(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  assert_true(sc_findings_text(f, "host", "cuda", "12.8"));
  assert_true(sc_findings_number(f, "host", "cuda", 13));
  assert_int_equal(f->field_count, 1);
  assert_int_equal(f->fields[0].kind, SC_FIELD_NUMBER);
  assert_null(f->fields[0].text);
  sc_findings_free(f);
}

static void ruler_rows_are_found_by_method(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  struct sc_ruler_row *row = sc_array_push(&f->ruler, &f->ruler_count, &f->ruler_cap, sizeof *row);
  row->method = sc_strdup("launch+readback");
  assert_ptr_equal(sc_findings_ruler(f, "launch+readback"), &f->ruler[0]);
  assert_null(sc_findings_ruler(f, "launch"));
  sc_findings_free(f);
}

static void classes_have_names(void **state)
{
  (void)state;
  assert_string_equal(sc_class_name(SC_CLASS_EXPLICIT), "explicit");
  assert_string_equal(sc_class_name(SC_CLASS_COPY), "copy");
  assert_string_equal(sc_class_name(SC_CLASS_PAGEABLE), "pageable");
  assert_string_equal(sc_class_name(SC_CLASS_IMPLICIT), "implicit");
  assert_string_equal(sc_class_name(SC_CLASS_COUNT), "unknown");
}

static void counts_add_every_member(void **state)
{
  (void)state;
  struct sc_counts one, sum;
  uint64_t values[sizeof one / sizeof(uint64_t)], sums[sizeof one / sizeof(uint64_t)];
  for (size_t i = 0; i < SC_COUNTOF(values); ++i)
    values[i] = 1000 + i;
  memcpy(&one, values, sizeof one);
  sum = one;
  sc_counts_add(&sum, &one);
  memcpy(sums, &sum, sizeof sum);
  for (size_t i = 0; i < SC_COUNTOF(values); ++i)
    assert_int_equal(sums[i], 2 * values[i]);
}

static void a_new_run_and_process_have_measured_nothing(void **state)
{
  (void)state;
  struct sc_run run;
  sc_run_init(&run);
  const double unmeasured[] = {run.cosine,         run.rel_error,          run.per_forward,
                               run.per_layer_mean, run.expected_per_layer, run.bound_per_layer,
                               run.floor_low_us,   run.floor_mean_us,      run.floor_high_us,
                               run.forward_p10_us, run.forward_p50_us,     run.forward_p90_us};
  for (size_t i = 0; i < SC_COUNTOF(unmeasured); ++i)
    assert_true(isnan(unmeasured[i]));
  assert_int_equal(run.output_matches_masked, -1);
  assert_false(run.counted);
  struct sc_findings *f = sc_findings_new();
  struct sc_process *process = sc_findings_process(f);
  assert_true(isnan(process->wall_us) && isnan(process->step_median));
  sc_findings_free(f);
}

static void half_built_findings_are_freed(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  struct sc_run *run = sc_array_push(&f->runs, &f->run_count, &f->run_cap, sizeof *run);
  run->experts = 4;
  run->by_op_count = 3; /* the arrays failed */
  run = sc_array_push(&f->runs, &f->run_count, &f->run_cap, sizeof *run);
  run->experts = 2;
  run->by_expert_op = calloc(2, sizeof *run->by_expert_op);
  run->by_expert_op[0] = calloc(1, sizeof(uint64_t));
  struct sc_process *process = sc_findings_process(f);
  struct sc_site *site = sc_array_push(&process->sites, &process->site_count, &process->site_cap, sizeof *site);
  site->python = calloc(2, sizeof *site->python);
  site->python_count = 2;
  site->python[1].file = sc_strdup("train.py");
  struct sc_control *control = sc_array_push(&f->controls, &f->control_count, &f->control_cap, sizeof *control);
  control->steps = calloc(1, sizeof *control->steps);
  sc_findings_free(f); /* ASan and LSan judge */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_findings_are_empty_and_know_their_version),
      cmocka_unit_test(equal_warnings_are_kept_once),
      cmocka_unit_test(long_warnings_are_whole),
      cmocka_unit_test(fields_keep_their_order_and_kind),
      cmocka_unit_test(a_field_given_again_is_replaced),
      cmocka_unit_test(ruler_rows_are_found_by_method),
      cmocka_unit_test(classes_have_names),
      cmocka_unit_test(counts_add_every_member),
      cmocka_unit_test(a_new_run_and_process_have_measured_nothing),
      cmocka_unit_test(half_built_findings_are_freed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
