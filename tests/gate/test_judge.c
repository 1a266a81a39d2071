/* SPDX-License-Identifier: Apache-2.0
 * Expectations over processes: each occurrence on its own, what does not count, and what is not known. */
#include "analysis/feed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/gate.h"

static struct sc_gate_report *judge_with(struct sc_gate *gate, const struct feed *f, const char *text,
                                         const struct sc_gate_facts *facts)
{
  struct sc_gate_report *report = NULL;
  struct sc_error err = {0};
  if (text && sc_gate_parse(gate, text, &err) != SC_OK)
    fail_msg("%s", err.message);
  if (sc_gate_judge(gate, f->findings, facts, &report, &err) != SC_OK)
    fail_msg("%s", err.message);
  return report;
}

/* The verdict of one expectation over what was fed. */
static enum sc_gate_verdict verdict_of(const struct feed *f, const char *text)
{
  struct sc_gate gate = {0};
  struct sc_gate_report *report = judge_with(&gate, f, text, NULL);
  enum sc_gate_verdict verdict = report->verdict;
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  return verdict;
}

static void assert_unmeasured(const struct feed *f, const char *text, const char *why)
{
  struct sc_gate gate = {0};
  struct sc_gate_report *report = judge_with(&gate, f, text, NULL);
  assert_int_equal(report->verdict, SC_GATE_UNMEASURED);
  if (!strstr(report->results[0].why, why))
    fail_msg("wanted '%s' in '%s'", why, report->results[0].why);
  sc_gate_report_free(report);
  sc_gate_free(&gate);
}

static void layer(struct feed *f, unsigned index, unsigned syncs)
{
  feed_push(f, "", index ? "layer:1" : "layer:0");
  feed_launches(f, 1);
  for (unsigned i = 0; i < syncs; ++i)
    SYNC(f, S1);
  feed_pop(f, "");
}

static void open_tally(struct feed *f, uint64_t warmup)
{
  const struct sc_analysis_options options = {.tally = true, .warmup = warmup};
  feed_open_as(f, &options);
}

static void one_occurrence_too_many_fails(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  for (unsigned i = 0; i < 40; ++i)
    layer(&f, i % 2, i == 17 ? 2 : 1);
  feed_end(&f);
  struct sc_gate gate = {0};
  struct sc_gate_report *report = judge_with(&gate, &f, "range(layer*).syncs_per_occurrence <= 1", NULL);
  const struct sc_gate_result *r = &report->results[0];
  assert_int_equal(report->verdict, SC_GATE_FAILED);
  assert_int_equal(r->compared, 40);
  assert_int_equal(r->failed, 1);
  assert_int_equal(r->places, 2);
  assert_int_equal(r->failure_count, 1);
  assert_string_equal(r->failures[0].what, "layer:1");
  assert_true(r->failures[0].high == 2);
  assert_int_equal(r->extra_count, 1);
  assert_string_equal(r->extras[0].api, "cudaStreamSynchronize");
  assert_string_equal(r->extras[0].cls, "explicit");
  assert_string_equal(r->extras[0].range, "layer:1");
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  assert_int_equal(verdict_of(&f, "range(layer*).syncs_per_occurrence <= 2"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(&f, "range(layer:0).syncs_per_occurrence == 1"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(&f, "range(layer*).syncs_per_occurrence >= 2"), SC_GATE_FAILED);
  assert_int_equal(verdict_of(&f, "syncs == 41"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(&f, "syncs between 1 and 40"), SC_GATE_FAILED);
  assert_int_equal(verdict_of(&f, "range(layer*).syncs == 41"), SC_GATE_PASSED);
  feed_close(&f);
}

static void a_zero_is_a_result_where_work_was_given(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  layer(&f, 0, 0);
  feed_push(&f, "", "idle");
  feed_pop(&f, "");
  SYNC(&f, S1);
  feed_end(&f);
  assert_int_equal(verdict_of(&f, "range(layer:0).syncs_per_occurrence == 0"), SC_GATE_PASSED);
  assert_unmeasured(&f, "range(idle).syncs_per_occurrence == 0", "gave the device no work");
  feed_close(&f);
}

static void what_matches_nothing_is_not_measured(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  layer(&f, 0, 1);
  feed_end(&f);
  assert_unmeasured(&f, "range(lager*).syncs_per_occurrence <= 1", "There were: layer:0");
  assert_unmeasured(&f, "syncs_per_step <= 1", "no steps");
  assert_unmeasured(&f, "rank(3).syncs <= 1", "no process matches rank 3");
  assert_unmeasured(&f, "thread(worker).syncs <= 1", "no thread matches");
  assert_unmeasured(&f, "sorted.syncs_per_layer == 1", "instrumented layers");
  feed_close(&f);
}

static void warm_up_does_not_count(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 2);
  for (unsigned step = 0; step < 5; ++step) {
    feed_push(&f, "", "synccount.step");
    layer(&f, 0, step < 2 ? 9 : 1);
    feed_pop(&f, "");
  }
  feed_end(&f);
  assert_int_equal(verdict_of(&f, "syncs_per_step == 1"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(&f, "range(layer*).syncs_per_occurrence == 1"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(&f, "syncs == 3"), SC_GATE_PASSED);
  feed_close(&f);

  open_tally(&f, 3);
  for (unsigned i = 0; i < 3; ++i)
    layer(&f, 0, 1);
  feed_end(&f);
  assert_unmeasured(&f, "range(layer*).syncs_per_occurrence <= 1", "all 3 occurrences were warm-up");
  assert_unmeasured(&f, "syncs <= 9", "without steps");
  feed_close(&f);
}

static void allowed_ranges_are_exempt_and_listed(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  feed_push(&f, "", "layer:0");
  SYNC(&f, S1);
  feed_push(&f, "", "synccount.allow:logging");
  SYNC(&f, S1);
  SYNC(&f, S1);
  feed_pop(&f, "");
  feed_push(&f, "", "synccount.allow:old");
  feed_pop(&f, "");
  feed_launches(&f, 1);
  feed_pop(&f, "");
  feed_end(&f);
  struct sc_gate gate = {0};
  struct sc_gate_report *report = judge_with(&gate, &f, "range(layer*).syncs_per_occurrence == 1", NULL);
  assert_int_equal(report->verdict, SC_GATE_PASSED);
  assert_int_equal(report->allowed_count, 1);
  assert_string_equal(report->allowed[0].what, "range synccount.allow:logging");
  assert_int_equal(report->allowed[0].syncs, 2);
  assert_int_equal(report->unneeded_count, 1);
  assert_string_equal(report->unneeded[0].what, "range synccount.allow:old");
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  feed_close(&f);
}

static struct sc_gate_exception *except(struct sc_gate *gate, const char *site, const char *range)
{
  struct sc_gate_exception *x = sc_gate_add_exception(gate);
  assert_non_null(x);
  x->site = sc_strdup(site);
  x->range = sc_strdup(range);
  x->reason = sc_strdup("known");
  return x;
}

static void exceptions_take_syncs_of_each_occurrence(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  for (unsigned i = 0; i < 4; ++i) {
    feed_push(&f, "", "layer:0");
    SYNC(&f, S1);
    MEMCPY_D2H(&f);
    MEMCPY_D2H(&f);
    feed_pop(&f, "");
  }
  feed_end(&f);
  struct sc_gate gate = {0};
  struct sc_gate_exception *x = except(&gate, "cudaMemcpy", NULL);
  struct sc_gate_report *report = judge_with(&gate, &f, "range(layer*).syncs_per_occurrence == 1", NULL);
  assert_int_equal(report->verdict, SC_GATE_PASSED);
  assert_int_equal(report->allowed_count, 1);
  assert_int_equal(report->allowed[0].syncs, 8);
  sc_gate_report_free(report);

  x->limited = true;
  x->count = 1;
  report = judge_with(&gate, &f, NULL, NULL);
  assert_int_equal(report->verdict, SC_GATE_FAILED);
  assert_true(report->results[0].high == 2);
  sc_gate_report_free(report);

  x->limited = false;
  x->first_only = true;
  report = judge_with(&gate, &f, NULL, NULL);
  assert_int_equal(report->verdict, SC_GATE_FAILED);
  assert_int_equal(report->results[0].failed, 3); /* the first one is excused */
  assert_int_equal(report->results[0].compared, 4);
  sc_gate_report_free(report);
  sc_gate_free(&gate);

  except(&gate, NULL, "lay*");
  except(&gate, "nowhere.py:*", NULL);
  report = judge_with(&gate, &f, "range(layer*).syncs_per_occurrence == 0", NULL);
  assert_int_equal(report->verdict, SC_GATE_PASSED);
  assert_int_equal(report->unneeded_count, 1);
  assert_string_equal(report->unneeded[0].what, "site nowhere.py:*");
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  feed_close(&f);
}

static void classes_and_calls_are_told_apart_in_each_occurrence(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  feed_push(&f, "", "layer:0");
  SYNC(&f, S1);
  MEMCPY_D2H(&f);
  feed_pop(&f, "");
  feed_end(&f);
  assert_int_equal(verdict_of(&f, "range(layer*).class(copy).syncs_per_occurrence == 1"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(&f, "range(layer*).class(pageable).syncs_per_occurrence == 0"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(&f, "range(layer*).class(explicit).syncs_per_occurrence == 0"), SC_GATE_FAILED);
  assert_int_equal(verdict_of(&f, "class(copy).syncs == 1"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(&f, "site(cudaMemcpy).syncs == 1"), SC_GATE_PASSED);
  assert_unmeasured(&f, "site(model.py:*).syncs == 0", "no stack is known");
  feed_close(&f);
}

static void what_could_not_be_judged_is_no_pass_and_no_excuse(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  feed_push(&f, "", "layer:0");
  SYNC(&f, S1);
  D2H_UNKNOWN(&f, S1);
  feed_pop(&f, "");
  layer(&f, 1, 1);
  feed_end(&f);
  assert_unmeasured(&f, "range(layer:0).syncs_per_occurrence <= 9", "could not be judged");
  assert_int_equal(verdict_of(&f, "range(layer:0).syncs_per_occurrence <= 0"), SC_GATE_FAILED);
  assert_int_equal(verdict_of(&f, "range(layer:1).syncs_per_occurrence <= 1"), SC_GATE_PASSED);
  feed_close(&f);
}

static void lost_records_leave_only_what_is_certain(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  layer(&f, 0, 3);
  feed_end(&f);
  f.process->lost_records = 1;
  assert_unmeasured(&f, "syncs <= 3", "were lost");
  assert_int_equal(verdict_of(&f, "syncs <= 2"), SC_GATE_FAILED); /* more can only be added */
  assert_int_equal(verdict_of(&f, "syncs >= 3"), SC_GATE_PASSED);
  assert_unmeasured(&f, "syncs >= 4", "were lost");
  assert_unmeasured(&f, "range(layer*).syncs_per_occurrence <= 3", "were lost");
  assert_unmeasured(&f, "range(layer*).syncs_per_occurrence <= 2", "were lost"); /* two may have become one */
  feed_close(&f);
}

static void a_process_that_was_not_measured_is_no_pass(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  layer(&f, 0, 1);
  feed_end(&f);
  struct sc_process *other = sc_findings_process(f.findings);
  assert_non_null(other);
  f.process = &f.findings->processes[0];
  other->pid = 4711;
  other->unmeasured = true;
  other->rank = sc_strdup("1");
  f.process->rank = sc_strdup("0");
  assert_unmeasured(&f, "syncs <= 1", "process 4711");
  assert_int_equal(verdict_of(&f, "rank(0).syncs <= 1"), SC_GATE_PASSED);
  feed_close(&f);
}

static void an_open_range_proves_only_too_many(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  layer(&f, 0, 1);
  feed_push(&f, "", "main");
  feed_launches(&f, 1);
  SYNC(&f, S1);
  SYNC(&f, S1);
  feed_end(&f);
  assert_int_equal(verdict_of(&f, "range(main).syncs_per_occurrence <= 1"), SC_GATE_FAILED);
  assert_unmeasured(&f, "range(main).syncs_per_occurrence <= 2", "none of them ended");
  feed_close(&f);
}

static void a_failed_program_is_not_measured_whatever_was_counted(void **state)
{
  struct feed f;
  struct sc_gate gate = {0};
  const struct sc_gate_facts facts = {.source = "python test.py", .trouble = "program failed with 1"};
  (void)state;
  open_tally(&f, 0);
  layer(&f, 0, 5);
  feed_end(&f);
  struct sc_gate_report *report = judge_with(&gate, &f, "syncs <= 1", &facts);
  assert_int_equal(report->results[0].verdict, SC_GATE_FAILED);
  assert_int_equal(report->verdict, SC_GATE_UNMEASURED);
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  feed_close(&f);
}

static void a_failure_wins_over_what_was_not_measured(void **state)
{
  struct feed f;
  struct sc_gate gate = {0};
  struct sc_error err = {0};
  (void)state;
  open_tally(&f, 0);
  layer(&f, 0, 5);
  feed_end(&f);
  assert_int_equal(sc_gate_parse(&gate, "range(none).syncs_per_occurrence <= 1", &err), SC_OK);
  struct sc_gate_report *report = judge_with(&gate, &f, "syncs <= 1", NULL);
  assert_int_equal(report->verdict, SC_GATE_FAILED);
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  feed_close(&f);
}

static void the_simulated_device_has_counts_and_no_waits(void **state)
{
  struct feed f;
  (void)state;
  open_tally(&f, 0);
  layer(&f, 0, 1);
  feed_end(&f);
  assert_int_equal(verdict_of(&f, "wait >= 0us"), SC_GATE_PASSED);
  f.process->simulated = true;
  assert_unmeasured(&f, "wait <= 1s", "has no times");
  assert_int_equal(verdict_of(&f, "syncs == 1"), SC_GATE_PASSED);
  feed_close(&f);
}

/* Without a tally, as from a report: what a minimum and a maximum can tell, and no more. */
static void a_report_tells_the_worst_occurrence_alone(void **state)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  layer(&f, 0, 1);
  layer(&f, 0, 3);
  feed_end(&f);
  assert_int_equal(verdict_of(&f, "range(layer*).syncs_per_occurrence <= 3"), SC_GATE_PASSED);
  assert_int_equal(verdict_of(&f, "range(layer*).syncs_per_occurrence <= 2"), SC_GATE_FAILED);
  assert_int_equal(verdict_of(&f, "range(layer*).syncs_per_occurrence >= 2"), SC_GATE_FAILED);
  assert_int_equal(verdict_of(&f, "class(explicit).syncs == 4"), SC_GATE_PASSED);
  assert_unmeasured(&f, "range(layer*).class(copy).syncs_per_occurrence <= 3", "give the trace");
  feed_close(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_occurrence_too_many_fails),
      cmocka_unit_test(a_zero_is_a_result_where_work_was_given),
      cmocka_unit_test(what_matches_nothing_is_not_measured),
      cmocka_unit_test(warm_up_does_not_count),
      cmocka_unit_test(allowed_ranges_are_exempt_and_listed),
      cmocka_unit_test(exceptions_take_syncs_of_each_occurrence),
      cmocka_unit_test(classes_and_calls_are_told_apart_in_each_occurrence),
      cmocka_unit_test(what_could_not_be_judged_is_no_pass_and_no_excuse),
      cmocka_unit_test(lost_records_leave_only_what_is_certain),
      cmocka_unit_test(a_process_that_was_not_measured_is_no_pass),
      cmocka_unit_test(an_open_range_proves_only_too_many),
      cmocka_unit_test(a_failed_program_is_not_measured_whatever_was_counted),
      cmocka_unit_test(a_failure_wins_over_what_was_not_measured),
      cmocka_unit_test(the_simulated_device_has_counts_and_no_waits),
      cmocka_unit_test(a_report_tells_the_worst_occurrence_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
