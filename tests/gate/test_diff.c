/* SPDX-License-Identifier: Apache-2.0
 * Comparisons: what is an increase, what is none, and when nobody can tell. */
#include "test_support.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/gate.h"

struct made { /* a program with one range and one site */
  uint64_t syncs, steps, step, line, most, lost, uncertain;
  const char *function;
};

static struct sc_findings *program(struct made m)
{
  struct sc_findings *f = sc_findings_new();
  struct sc_process *p = sc_findings_process(f);
  p->counts.syncs = p->counts.by_class[SC_CLASS_EXPLICIT] = m.syncs;
  p->counts.submissions = 1;
  p->counts.uncertain = m.uncertain;
  p->lost_records = m.lost;
  if (m.steps) {
    p->has_steps = true;
    p->steps = m.steps;
    p->step_min = p->step_max = m.step;
    p->step_median = (double)m.step;
  }
  p->ranges = calloc(1, sizeof *p->ranges);
  p->range_count = p->range_cap = 1;
  p->ranges[0] = (struct sc_range_findings){.path = sc_strdup("layer:0"),
                                            .name = sc_strdup("layer:0"),
                                            .domain = sc_strdup(""),
                                            .occurrences = 4,
                                            .min = m.most,
                                            .max = m.most,
                                            .median = (double)m.most};
  p->sites = calloc(1, sizeof *p->sites);
  p->site_count = p->site_cap = 1;
  p->sites[0].id = sc_strdup("0123");
  p->sites[0].api = sc_strdup("cudaStreamSynchronize");
  p->sites[0].count = m.syncs;
  p->sites[0].per_step = m.steps ? (double)m.step : NAN;
  p->sites[0].wait_total_us = p->sites[0].wait_p50_us = NAN;
  p->sites[0].python = calloc(1, sizeof *p->sites[0].python);
  p->sites[0].python_count = 1;
  p->sites[0].python[0] = (struct sc_frame){.file = sc_strdup("model.py"),
                                            .function = sc_strdup(m.function ? m.function : "forward"),
                                            .line = m.line,
                                            .module = SIZE_MAX};
  return f;
}

/* The verdict, and the JSON document in *root. */
static enum sc_gate_verdict compare(struct sc_findings *before, struct sc_findings *after, json_t **root)
{
  struct sc_diff *diff = NULL;
  struct sc_error err = {0};
  struct sc_buf json = {0};
  if (sc_diff_make(before, after, &diff, &err) != SC_OK)
    fail_msg("%s", err.message);
  enum sc_gate_verdict verdict = sc_diff_increase(diff, NULL);
  sc_diff_write_json(diff, &json);
  assert_non_null(*root = json_loadb(json.data, json.len, 0, NULL));
  sc_buf_free(&json);
  sc_diff_free(diff);
  sc_findings_free(before);
  sc_findings_free(after);
  return verdict;
}

static const char *change_of(const json_t *root, const char *section, size_t index)
{
  const char *change =
      json_string_value(json_object_get(json_array_get(json_object_get(root, section), index), "change"));
  return change ? change : "(none)";
}

static void assert_verdict(struct made before, struct made after, enum sc_gate_verdict wanted)
{
  json_t *root;
  assert_int_equal(compare(program(before), program(after), &root), wanted);
  json_decref(root);
}

static void more_syncs_are_an_increase(void **state)
{
  const struct made base = {.syncs = 4, .most = 1};
  (void)state;
  assert_verdict(base, base, SC_GATE_PASSED);
  assert_verdict(base, (struct made){.syncs = 5, .most = 1}, SC_GATE_FAILED);
  assert_verdict(base, (struct made){.syncs = 3, .most = 1}, SC_GATE_PASSED);
  assert_verdict(base, (struct made){.syncs = 4, .most = 2}, SC_GATE_FAILED); /* in one occurrence */
}

/* A range that is on one side alone is news if it synced; JSON has it in any case. */
static void ranges_without_syncs_are_left_out_of_the_text(void **state)
{
  (void)state;
  for (uint64_t most = 0; most < 2; ++most) {
    struct sc_diff *diff = NULL;
    struct sc_error err = {0};
    struct sc_buf text = {0}, markdown = {0}, json = {0};
    const struct made made = {.syncs = 4, .most = most};
    struct sc_findings *before = program(made), *after = program(made);
    struct sc_range_findings *range = &after->processes[0].ranges[0];
    free(range->path);
    free(range->name);
    assert_non_null(range->path = sc_strdup("layer:1"));
    assert_non_null(range->name = sc_strdup("layer:1"));
    assert_int_equal(sc_diff_make(before, after, &diff, &err), SC_OK);
    sc_diff_write_text(diff, &text);
    sc_diff_write_markdown(diff, &markdown);
    sc_diff_write_json(diff, &json);
    assert_int_equal(strstr(text.data, "layer:1") != NULL, most > 0);
    assert_int_equal(strstr(markdown.data, "layer:1") != NULL, most > 0);
    assert_non_null(strstr(json.data, "layer:1"));
    sc_buf_free(&text);
    sc_buf_free(&markdown);
    sc_buf_free(&json);
    sc_diff_free(diff);
    sc_findings_free(before);
    sc_findings_free(after);
  }
}

static void with_steps_a_longer_run_is_no_increase(void **state)
{
  (void)state;
  assert_verdict((struct made){.syncs = 8, .steps = 4, .step = 2}, (struct made){.syncs = 80, .steps = 40, .step = 2},
                 SC_GATE_PASSED);
  assert_verdict((struct made){.syncs = 8, .steps = 4, .step = 2}, (struct made){.syncs = 3, .steps = 1, .step = 3},
                 SC_GATE_FAILED);
  assert_verdict((struct made){.syncs = 8, .steps = 4, .step = 2}, (struct made){.syncs = 8}, SC_GATE_UNMEASURED);
}

static void what_nobody_counted_is_no_pass(void **state)
{
  (void)state;
  assert_verdict((struct made){.syncs = 4}, (struct made){.syncs = 4, .lost = 1}, SC_GATE_UNMEASURED);
  assert_verdict((struct made){.syncs = 4}, (struct made){.syncs = 4, .uncertain = 1}, SC_GATE_UNMEASURED);
  assert_verdict((struct made){.syncs = 4}, (struct made){.syncs = 5, .lost = 1}, SC_GATE_FAILED);
}

static void a_moved_line_is_the_same_site(void **state)
{
  json_t *root;
  (void)state;
  compare(program((struct made){.syncs = 4, .line = 10}), program((struct made){.syncs = 4, .line = 99}), &root);
  assert_int_equal(json_array_size(json_object_get(root, "sites")), 1);
  assert_string_equal(change_of(root, "sites", 0), "same");
  json_decref(root);
}

static void what_appeared_and_went_is_told(void **state)
{
  json_t *root;
  (void)state;
  assert_int_equal(
      compare(program((struct made){.syncs = 4}), program((struct made){.syncs = 4, .function = "other"}), &root),
      SC_GATE_PASSED); /* it moved */
  assert_int_equal(json_array_size(json_object_get(root, "sites")), 2);
  assert_string_equal(change_of(root, "sites", 0), "gone");
  assert_string_equal(change_of(root, "sites", 1), "appeared");
  json_decref(root);
}

static struct sc_findings *host(const char *driver, uint64_t max, double forward_us)
{
  struct sc_findings *f = sc_findings_new();
  struct sc_run *run = sc_array_push(&f->runs, &f->run_count, &f->run_cap, sizeof *run);
  sc_run_init(run);
  run->variant = sc_strdup("masked");
  run->experts = 4;
  run->layers = run->forwards = 1;
  run->counted = run->verified = true;
  run->per_layer_min = run->per_layer_max = max;
  run->per_forward = (double)max;
  run->forward_p50_us = forward_us;
  struct sc_ruler_row *row = sc_array_push(&f->ruler, &f->ruler_count, &f->ruler_cap, sizeof *row);
  row->method = sc_strdup("launch+readback");
  row->mean_us = row->p50_us = forward_us / 10;
  assert_true(sc_findings_text(f, "host", "driver", driver));
  assert_true(sc_findings_text(f, "host", "cpu", "the same"));
  return f;
}

static void two_hosts_have_equal_counts_and_other_times(void **state)
{
  json_t *root;
  (void)state;
  assert_int_equal(compare(host("580", 12, 100), host("590", 12, 300), &root), SC_GATE_PASSED);
  assert_true(json_is_true(json_object_get(root, "counts_equal")));
  assert_string_equal(change_of(root, "runs", 2), "changed");
  assert_string_equal(change_of(root, "ruler", 0), "changed");
  assert_int_equal(json_array_size(json_object_get(root, "conditions")), 1);
  const json_t *fact = json_array_get(json_object_get(root, "conditions"), 0);
  assert_string_equal(json_string_value(json_object_get(fact, "what")), "host.driver");
  assert_string_equal(json_string_value(json_object_get(fact, "after")), "590");
  json_decref(root);
  assert_int_equal(compare(host("580", 12, 100), host("580", 13, 100), &root), SC_GATE_FAILED);
  assert_true(json_is_false(json_object_get(root, "counts_equal")));
  json_decref(root);
}

static void a_program_and_layers_are_not_compared(void **state)
{
  struct sc_findings *before = host("580", 12, 100), *after = program((struct made){.syncs = 1});
  struct sc_diff *diff = NULL;
  struct sc_error err = {0};
  (void)state;
  assert_int_equal(sc_diff_make(before, after, &diff, &err), SC_ERR_MEASURE);
  assert_null(diff);
  sc_findings_free(before);
  sc_findings_free(after);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(more_syncs_are_an_increase),
      cmocka_unit_test(ranges_without_syncs_are_left_out_of_the_text),
      cmocka_unit_test(with_steps_a_longer_run_is_no_increase),
      cmocka_unit_test(what_nobody_counted_is_no_pass),
      cmocka_unit_test(a_moved_line_is_the_same_site),
      cmocka_unit_test(what_appeared_and_went_is_told),
      cmocka_unit_test(two_hosts_have_equal_counts_and_other_times),
      cmocka_unit_test(a_program_and_layers_are_not_compared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
