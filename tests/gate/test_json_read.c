/* SPDX-License-Identifier: Apache-2.0
 * JSON reports read back: nothing that the schema holds is lost, and hostile documents are refused with their place. */
#include "test_support.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

static char *write_text(const char *text)
{
  char *path = sc_strdup("/tmp/synccount-json-XXXXXX");
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  return path;
}

static void assert_refused(const char *text, enum sc_status status, const char *what)
{
  struct sc_findings *f = sc_findings_new();
  struct sc_error err = {0};
  char *path = write_text(text);
  if (sc_report_read_json(path, f, &err) != status)
    fail_msg("'%.100s' gave %s: %s", text, sc_status_name(err.status), err.message);
  if (!strstr(err.message, what))
    fail_msg("wanted '%s' in '%s'", what, err.message);
  unlink(path);
  free(path);
  sc_findings_free(f);
}

#define HEAD "{\"schema\": \"synccount/report/1\", "

static void assert_is_json(const char *before, const char *after, bool wanted)
{
  char *text = sc_asprintf("%s%30000s%s", before, "", after), *path = write_text(text);
  if (sc_report_is_json(path) != wanted)
    fail_msg("'%s' ... '%s' is %sone", before, after, wanted ? "n" : "");
  unlink(path);
  free(path);
  free(text);
}

/* Other tools sort keys and indent; a trace that only speaks of one is none. */
static void a_report_is_known_wherever_its_schema_stands(void **state)
{
  (void)state;
  assert_is_json("{\"schema\": \"synccount/report/1\"", "}", true);
  assert_is_json("{\"device\": {}, ", "\"schema\": \"synccount/report/1\"}", true);
  assert_is_json("", "{\"schema\": \"synccount/report/1\"}", true);
  assert_is_json("{\"traceEvents\": [{\"name\": ", "\"synccount/report/1\"}]}", false);
  assert_is_json("{\"traceEvents\": [{\"name\": \"synccount/report/1\"", "}]}", false);
  assert_is_json("{", "}", false);
  assert_is_json("[\"synccount/report/1\"", "]", false);
  for (int at = 16360; at < 16390; ++at) { /* over the end of what is looked at at a time */
    char *text = sc_asprintf("{%*s\"schema\":\"synccount/report/1\"}", at, ""), *path = write_text(text);
    assert_true(sc_report_is_json(path));
    unlink(path);
    free(path);
    free(text);
  }
}

/* A small file of two long lists must not ask for as many counts as their product. */
static void counts_that_a_report_does_not_have_get_no_memory(void **state)
{
  struct sc_findings *f = sc_findings_new();
  struct sc_error err = {0};
  char *path = write_text(HEAD "\"runs\": [{\"variant\": \"x\", \"experts\": 3, \"syncs\": {\"by_expert\": [1, 1, 1], "
                               "\"by_op\": {\"any\": 2, \"nonzero\": 1}, "
                               "\"by_expert_op\": {\"any\": [1, 1, 0], \"nonzero\": [1]}}}]}");
  (void)state;
  assert_int_equal(sc_report_read_json(path, f, &err), SC_ERR_FORMAT);
  assert_int_equal(f->run_count, 1);
  assert_non_null(f->runs[0].by_expert);
  assert_null(f->runs[0].by_expert_op);
  unlink(path);
  free(path);
  sc_findings_free(f);
}

static void what_is_not_as_described_is_refused_with_its_place(void **state)
{
  (void)state;
  assert_refused("", SC_ERR_FORMAT, "not valid JSON");
  assert_refused("{\"schema\": \"synccount/report/1\"", SC_ERR_FORMAT, ":1:");
  assert_refused("[]", SC_ERR_VERSION, "(none)");
  assert_refused("{\"schema\": \"synccount/report/2\"}", SC_ERR_VERSION, "synccount/report/2");
  assert_refused("{\"schema\": 1}", SC_ERR_VERSION, "(none)");
  assert_refused(HEAD "\"schema\": 1}", SC_ERR_FORMAT, "not valid JSON");
  assert_refused(HEAD "\"runs\": {}}", SC_ERR_FORMAT, "runs is not a list");
  assert_refused(HEAD "\"runs\": [1]}", SC_ERR_FORMAT, "runs[0] is not an object");
  assert_refused(HEAD "\"runs\": [{}]}", SC_ERR_FORMAT, "runs[0].variant is not a text");
  assert_refused(HEAD "\"runs\": [{\"variant\": \"x\", \"experts\": -1}]}", SC_ERR_FORMAT,
                 "runs[0].experts is not a count");
  assert_refused(HEAD "\"runs\": [{\"variant\": \"x\", \"counted\": true}]}", SC_ERR_FORMAT, "runs[0].syncs");
  assert_refused(HEAD "\"processes\": [{\"syncs\": []}]}", SC_ERR_FORMAT, "processes[0].syncs is not an object");
  assert_refused(HEAD "\"processes\": [{}]}", SC_ERR_FORMAT, "processes[0].syncs");
  assert_refused(HEAD "\"processes\": [{\"measured\": false, \"ranges\": [{\"path\": \"a\"}]}]}", SC_ERR_FORMAT,
                 "processes[0].ranges[0].name is not a text");
  assert_refused(
      HEAD "\"processes\": [{\"measured\": false, \"ranges\": [{\"path\": \"a\", \"name\": \"a\", \"depth\": 3}]}]}",
      SC_ERR_FORMAT, "processes[0].ranges[0].depth");
  assert_refused(HEAD "\"processes\": [{\"measured\": false, \"sites\": [{\"class\": \"hard\"}]}]}", SC_ERR_FORMAT,
                 "processes[0].sites[0].class is not a word");
  assert_refused(
      HEAD "\"processes\": [{\"measured\": false, \"sites\": [{\"id\": \"a\", \"api\": \"b\", \"python\": [3]}]}]}",
      SC_ERR_FORMAT, "processes[0].sites[0].python[0] is not an object");
  assert_refused(HEAD "\"laws\": [{\"variant\": \"masked\"}]}", SC_ERR_FORMAT, "laws[0].text is not a text");
  assert_refused(HEAD "\"laws\": [{\"variant\": \"masked\", \"text\": \"3 E\", \"stated\": true}]}", SC_ERR_FORMAT,
                 "laws[0].slope is not there");
#define RUN "\"runs\": [{\"variant\": \"x\", \"layers\": 2, \"experts\": 4000000000, "
  assert_refused(HEAD RUN "\"hit\": [1]}]}", SC_ERR_FORMAT, "runs[0].hit is not a list with one for each layer");
  assert_refused(HEAD RUN "\"hit\": [1, -1]}]}", SC_ERR_FORMAT, "runs[0].hit is not a list of counts");
  assert_refused(HEAD RUN "\"syncs\": {\"by_expert\": [1, 2]}}]}", SC_ERR_FORMAT, "runs[0].by_expert is not a list");
  assert_refused(HEAD RUN "\"syncs\": {\"by_layer_expert\": [[], []]}}]}", SC_ERR_FORMAT, "runs[0].by_layer_expert");
  assert_refused(HEAD RUN "\"syncs\": {\"by_layer_expert\": [[]]}}]}", SC_ERR_FORMAT, "runs[0].by_layer_expert");
  assert_refused(HEAD RUN "\"syncs\": {\"by_layer_outside\": 2}}]}", SC_ERR_FORMAT, "runs[0].by_layer_outside");
  assert_refused(HEAD RUN "\"assumed_floors\": [{\"floor_us\": 1}]}]}", SC_ERR_FORMAT, "runs[0].assumed_floors");
#undef RUN
  assert_refused(HEAD "\"runs\": [{\"variant\": \"x\", \"experts\": 1, \"syncs\": {\"by_expert\": [3], "
                      "\"by_op\": {\"any\": 3}, \"by_expert_op\": {}}}]}",
                 SC_ERR_FORMAT, "runs[0].by_expert_op is not a list for each op");
  assert_refused(HEAD "\"runs\": [{\"variant\": \"x\", \"experts\": 1, \"syncs\": {\"by_expert\": [3], "
                      "\"by_op\": {\"any\": 3}, \"by_expert_op\": {\"any\": [1, 2]}}}]}",
                 SC_ERR_FORMAT, "runs[0].by_expert_op is not a list for each op");
  assert_refused(HEAD "\"assumed_round_trips_us\": [\"26\"]}", SC_ERR_FORMAT, "assumed_round_trips_us");
  assert_refused(HEAD "\"controls\": [{\"sorted_syncs\": 3}]}", SC_ERR_FORMAT, "controls[0].sorted_syncs");
  assert_refused(HEAD "\"processes\": [{\"measured\": false, \"losses\": 3}]}", SC_ERR_FORMAT, "losses");
  assert_refused(HEAD "\"warnings\": [3]}", SC_ERR_FORMAT, "warnings is not a list of texts");
  assert_refused(HEAD "\"losses\": {\"records\": 1.5e300}}", SC_ERR_FORMAT, "records is not a count");
}

static void deep_nesting_is_refused(void **state)
{
  struct sc_buf text = {0};
  (void)state;
  sc_buf_puts(&text, HEAD "\"runs\": ");
  for (int i = 0; i < 100000; ++i)
    sc_buf_puts(&text, "[");
  assert_refused(text.data, SC_ERR_FORMAT, "not valid JSON");
  sc_buf_free(&text);
}

static void only_reports_look_like_reports(void **state)
{
  char *report = write_text("\n {\n \"schema\": \"synccount/report/1\"}"), *other = write_text("{\"traceEvents\": []}");
  (void)state;
  assert_true(sc_report_is_json(report));
  assert_false(sc_report_is_json(other));
  assert_false(sc_report_is_json("/nowhere"));
  assert_false(sc_report_is_json("/tmp"));
  unlink(report);
  unlink(other);
  free(report);
  free(other);
}

static void a_report_that_is_read_and_written_is_the_same(void **state)
{
  char *path = sc_asprintf("%s/reports/h200.json", getenv("SC_SOURCE"));
  struct sc_findings *f = sc_findings_new();
  struct sc_error err = {0};
  struct sc_out *out = sc_out_memory();
  size_t length;
  (void)state;
  if (sc_report_read_json(path, f, &err) != SC_OK)
    fail_msg("%s", err.message);
  assert_int_equal(sc_report_write(f, sc_report_format_find("json"), NULL, out, &err), SC_OK);
  const char *text = sc_out_text(out, &length);
  json_t *before = json_load_file(path, 0, NULL), *after = json_loadb(text, length, 0, NULL);
  assert_non_null(before);
  assert_non_null(after);
  static const char *const parts[] = {"host",  "device",   "conditions", "ruler",   "round_trip",
                                      "laws",  "controls", "losses",     "version", "marginal_sync",
                                      "ranks", "warnings", "processes",  "schema",  "assumed_round_trips_us"};
  for (size_t i = 0; i < SC_COUNTOF(parts); ++i) {
    if (!json_equal(json_object_get(before, parts[i]), json_object_get(after, parts[i])))
      fail_msg("'%s' is not the same: %s", parts[i],
               json_dumps(json_object_get(after, parts[i]), JSON_INDENT(1) | JSON_ENCODE_ANY));
  }
  size_t i, runs = json_array_size(json_object_get(before, "runs"));
  const char *key;
  json_t *value;
  assert_int_equal(runs, 9);
  for (i = 0; i < runs; ++i) {
    json_t *old = json_array_get(json_object_get(before, "runs"), i),
           *fresh = json_array_get(json_object_get(after, "runs"), i);
    json_object_foreach(old, key, value)
    {
      if (!json_equal(value, json_object_get(fresh, key)))
        fail_msg("runs[%zu].%s is not the same: %s", i, key,
                 json_dumps(json_object_get(fresh, key), JSON_INDENT(1) | JSON_ENCODE_ANY));
    }
  }
  json_decref(before);
  json_decref(after);
  sc_out_free(out);
  sc_findings_free(f);
  free(path);
}

/* Reports of an earlier version do not have every key. */
static void what_a_report_does_not_say_is_null_when_written(void **state)
{
  char *path = sc_asprintf("%s/reports/h200.json", getenv("SC_SOURCE"));
  struct sc_findings *f = sc_findings_new();
  struct sc_error err = {0};
  struct sc_out *out = sc_out_memory();
  size_t i, length;
  json_t *run, *root = json_load_file(path, 0, NULL);
  (void)state;
  assert_non_null(root);
  json_array_foreach(json_object_get(root, "runs"), i, run)
      assert_int_equal(json_object_del(json_object_get(run, "syncs"), "by_layer_outside"), 0);
  char *older = json_dumps(root, 0), *older_path = write_text(older);
  if (sc_report_read_json(older_path, f, &err) != SC_OK)
    fail_msg("%s", err.message);
  assert_int_equal(sc_report_write(f, sc_report_format_find("json"), NULL, out, &err), SC_OK);
  const char *text = sc_out_text(out, &length);
  json_t *after = json_loadb(text, length, 0, NULL);
  assert_non_null(after);
  assert_int_equal(json_array_size(json_object_get(after, "runs")), 9);
  json_array_foreach(json_object_get(after, "runs"), i, run)
      assert_true(json_is_null(json_object_get(json_object_get(run, "syncs"), "by_layer_outside")));
  unlink(older_path);
  free(older_path);
  free(older);
  json_decref(root);
  json_decref(after);
  sc_out_free(out);
  sc_findings_free(f);
  free(path);
}

static void two_reports_have_each_law_once(void **state)
{
  char *path = sc_asprintf("%s/reports/h200.json", getenv("SC_SOURCE"));
  struct sc_findings *f = sc_findings_new();
  struct sc_error err = {0};
  (void)state;
  for (int i = 0; i < 2; ++i) {
    if (sc_report_read_json(path, f, &err) != SC_OK)
      fail_msg("%s", err.message);
  }
  assert_int_equal(f->run_count, 18);
  assert_int_equal(f->law_count, 3);
  sc_findings_free(f);
  free(path);
}

/* Its name need not be one of synccount.allow:. */
static void a_range_of_level_allow_may_have_any_name(void **state)
{
  char *path = write_text(HEAD "\"processes\": [{\"syncs\": {\"total\": 2}, \"ranges\": [{\"path\": \"x\", "
                               "\"name\": \"x\", \"level\": \"allow\", \"occurrences\": 1, "
                               "\"syncs\": {\"total\": 2}}]}]}");
  struct sc_findings *f = sc_findings_new();
  struct sc_allowed *allowed = NULL;
  size_t count = 0;
  (void)state;
  assert_int_equal(sc_report_read_json(path, f, NULL), SC_OK);
  assert_true(sc_process_allowed(&f->processes[0], &allowed, &count));
  assert_int_equal(count, 1);
  assert_string_equal(allowed[0].reason, "x");
  assert_int_equal(allowed[0].syncs, 2);
  free(allowed);
  sc_findings_free(f);
  unlink(path);
  free(path);
}

/* A site that does not say how many of its syncs were round trips does not say 0 of them a step. */
static void steps_keep_their_source_and_an_unknown_floor(void **state)
{
  char *path = write_text(
      HEAD "\"ruler\": [{\"method\": \"launch+readback\", \"mean_us\": 10}], \"processes\": [{"
           "\"syncs\": {\"total\": 6, \"read_backs\": 6}, \"steps\": {\"source\": \"optimizer\", \"count\": 3, "
           "\"warmup\": 0, \"min\": 2, \"median\": 2, \"max\": 2}, \"sites\": [{\"id\": \"a\", \"api\": \"b\", "
           "\"kind\": \"sync\", \"count\": 6, \"per_step\": 2}]}]}");
  struct sc_findings *f = sc_findings_new();
  struct sc_process_floor floor;
  (void)state;
  assert_int_equal(sc_report_read_json(path, f, NULL), SC_OK);
  assert_int_equal(f->processes[0].step_source, SC_STEPS_OPTIMIZER);
  assert_true(sc_process_floor(f, &f->processes[0], &floor));
  assert_true(floor.total_us == 60);
  assert_true(isnan(floor.per_step_us));
  sc_findings_free(f);
  unlink(path);
  free(path);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_report_is_known_wherever_its_schema_stands),
      cmocka_unit_test(counts_that_a_report_does_not_have_get_no_memory),
      cmocka_unit_test(what_is_not_as_described_is_refused_with_its_place),
      cmocka_unit_test(deep_nesting_is_refused),
      cmocka_unit_test(only_reports_look_like_reports),
      cmocka_unit_test(a_report_that_is_read_and_written_is_the_same),
      cmocka_unit_test(what_a_report_does_not_say_is_null_when_written),
      cmocka_unit_test(two_reports_have_each_law_once),
      cmocka_unit_test(a_range_of_level_allow_may_have_any_name),
      cmocka_unit_test(steps_keep_their_source_and_an_unknown_floor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
