/* SPDX-License-Identifier: Apache-2.0
 * A JSON report that is read back holds what it held: written again it is the same, and so is what people are shown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fixtures.h"
#include "programs.h"
#include "test_support.h"

static enum sc_status read_json(struct sc_findings *f, const char *json, struct sc_error *err)
{
  char path[] = "/tmp/synccount-read-back-XXXXXX";
  int fd = mkstemp(path);
  FILE *file = fdopen(fd, "w");

  assert_non_null(file);
  assert_int_equal(fwrite(json, 1, strlen(json), file), strlen(json));
  assert_int_equal(fclose(file), 0);
  enum sc_status status = sc_report_read_json(path, f, err);
  unlink(path);
  return status;
}

static void read_into(struct sc_findings *f, const char *json)
{
  struct sc_error err = {0};

  if (read_json(f, json, &err) != SC_OK)
    fail_msg("%s", err.message);
}

/* The version is that of who writes. */
static struct sc_findings *read_back(const struct sc_findings *written, const char *json)
{
  struct sc_findings *f = sc_findings_new();

  assert_non_null(f);
  free(f->version);
  f->version = sc_strdup(written->version);
  read_into(f, json);
  return f;
}

static void assert_same(const char *name, const char *format, const char *wanted, const char *got)
{
  size_t line = 1, from = 0, i = 0;

  for (; wanted[i] && wanted[i] == got[i]; i++) {
    if (wanted[i] == '\n') {
      line++;
      from = i + 1;
    }
  }
  if (wanted[i] != got[i])
    fail_msg("%s, %s, line %zu: wanted\n%.*s\ngot\n%.*s", name, format, line, (int)strcspn(wanted + from, "\n") % 2000,
             wanted + from, (int)strcspn(got + from, "\n") % 2000, got + from);
}

static void to_ns(double *us) { *us = round(*us * 1e3) / 1e3; }

/* JSON does not hold a fact that nobody found out; its times have nanoseconds. */
static void make_plain(struct sc_findings *f)
{
  size_t kept = 0;

  for (size_t i = 0; i < f->ruler_count; i++) {
    struct sc_ruler_row *row = &f->ruler[i];
    double *times[] = {&row->min_us, &row->p10_us, &row->p50_us, &row->mean_us, &row->p90_us, &row->p99_us};

    for (size_t k = 0; k < SC_COUNTOF(times); k++)
      to_ns(times[k]);
  }

  for (size_t i = 0; i < f->process_count; i++) {
    for (size_t k = 0; k < f->processes[i].site_count; k++)
      to_ns(&f->processes[i].sites[k].wait_p50_us);
  }
  for (size_t i = 0; i < f->field_count; i++) {
    struct sc_field *field = &f->fields[i];

    if (field->kind != SC_FIELD_NULL) {
      f->fields[kept++] = *field;
      continue;
    }
    free(field->group);
    free(field->key);
    free(field->text);
  }
  f->field_count = kept;
}

/* What is read back from f, which written again is the same. */
static struct sc_findings *check_json(const char *name, const struct sc_findings *f)
{
  char *json = render(f, "json", NULL);
  struct sc_findings *read = read_back(f, json);
  char *again = render(read, "json", NULL);

  assert_same(name, "json", json, again);
  free(json);
  free(again);
  return read;
}

/* And so is what people see. Frees f. */
static void check(const char *name, struct sc_findings *f)
{
  static const char *const formats[] = {"text", "markdown", "html", "csv", "folded", "folded-count"};
  const struct sc_report_options options = {.per_expert = true, .threads = true, .width = 200};
  struct sc_findings *read = check_json(name, f);

  make_plain(f);
  for (size_t i = 0; i < SC_COUNTOF(formats); i++) {
    const struct sc_report_format *format = sc_report_format_find(formats[i]);
    char *wanted, *got;

    if (format->programs && f->process_count == 0)
      continue;
    if (strcmp(formats[i], "html") == 0 && f->process_count && f->processes[0].events) /* it would have a timeline */
      continue;
    if (strcmp(formats[i], "folded") == 0 && sc_findings_simulated(f)) /* it is weighted by waits */
      continue;
    wanted = render(f, formats[i], &options);
    got = render(read, formats[i], &options);
    assert_same(name, formats[i], wanted, got);
    free(wanted);
    free(got);
  }
  sc_findings_free(read);
  sc_findings_free(f);
}

static void every_document_is_the_same_again(void **state)
{
  static const struct {
    const char *name;
    struct sc_findings *(*make)(void);
  } documents[] = {
      {"full", fixture_full},       {"minimal", fixture_minimal},     {"simulated", fixture_simulated},
      {"lost", fixture_lost},       {"not verified", fixture_not_verified}, {"hit", fixture_hit},
      {"assumed", fixture_assumed}, {"ruler", fixture_ruler},         {"process", fixture_process},
      {"traced", fixture_traced},   {"model", model_findings},
  };

  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(documents); i++)
    check(documents[i].name, documents[i].make());
  check("program", program_findings(400, 3, NULL));
}

static void hostile_names_are_the_same_again(void **state)
{
  static const char *const names[] = {"", "\"'\\", "</script>", "a\nb\r\x1b[31m", "\xff\xed\xa0\x80", "7", "%s"};

  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(names); i++) {
    struct sc_findings *fixture = fixture_hostile(names[i]), *program = program_findings(40, 2, names[i]);

    sc_findings_free(check_json(names[i], fixture));
    sc_findings_free(check_json(names[i], program));
    sc_findings_free(fixture);
    sc_findings_free(program);
  }
}

/* Everything that a process can have beside the fixture's, in figures that rounding changes. */
static struct sc_findings *filled(void)
{
  struct sc_findings *f = fixture_traced();
  struct sc_process *p = &f->processes[0];

  f->ruler[0].mean_us = 10.7184321;
  p->without_detail.syncs = 17;
  p->lost_records = f->lost_records = 40;
  p->counts_whole = true;
  p->queue_waits = 3;
  p->queue_wait_ns = 1234567;
  p->stacks = 900;
  p->stack_walks = 31;
  p->stacks_missing = 2;
  p->stack_ns = 7654321;
  p->stack_walk_ns = 654321;
  p->stack_longest_ns = 54321;
  p->start_cost_us = 13000.1234;
  p->call_cost_us = 0.31234567;
  p->launch_cost_us = 0.0123456;
  p->drain_gap_p50_us = 7.1;
  p->drain_gap_total_us = 5000.2;
  p->drain_gaps = 380;
  p->sites[0].drain_gap_p50_us = 7.25;
  p->sites[0].drain_gap_total_us = 4000.125;
  p->sites[1].per_step = 10.0 / 3;
  p->counts.captured = 4;
  p->attached_late = true;
  p->cwd = sc_strdup("/srv/train");
  p->has_steps = true;
  p->step_source = SC_STEPS_OPTIMIZER;
  fixture_add_allowed(f);
  return f;
}

static void what_a_process_has_beside_its_counts_is_kept(void **state)
{
  struct sc_findings *f = filled(), *read;
  char *json = render(f, "json", NULL);
  struct sc_process_floor wanted, got;

  (void)state;
  read = read_back(f, json);
  const struct sc_process *p = &read->processes[0];
  assert_int_equal(p->without_detail.syncs, 17);
  assert_int_equal(p->lost_records, 40);
  assert_true(sc_process_is_whole(p));
  assert_int_equal(p->queue_waits, 3);
  assert_int_equal(p->queue_wait_ns, 1234567);
  assert_int_equal(p->stacks, 900);
  assert_int_equal(p->stack_ns, 7654321);
  assert_int_equal(p->drain_gaps, 380);
  assert_true(p->drain_gap_total_us == 5000.2);
  assert_int_equal(p->sites[1].read_backs, f->processes[0].sites[1].read_backs);
  assert_float_equal(sc_process_tracer_cost(p, NULL), sc_process_tracer_cost(&f->processes[0], NULL), 5e-4);
  assert_true(sc_process_floor(f, &f->processes[0], &wanted));
  assert_true(sc_process_floor(read, p, &got));
  assert_float_equal(got.total_us, wanted.total_us, 5e-4);
  assert_float_equal(got.per_step_us, wanted.per_step_us, 5e-4);
  sc_findings_free(read);
  free(json);
  check("filled", f);
}

static void every_part_of_a_simulated_process_is_the_same_again(void **state)
{
  struct sc_findings *f = filled();

  (void)state;
  f->processes[0].simulated = true;
  check("simulated process", f);
}

static void what_a_run_has_outside_of_experts_is_in_its_heat_map(void **state)
{
  struct sc_findings *f = fixture_full(), *read;
  char *json, *html;

  (void)state;
  for (size_t i = 0; i < f->run_count; i++)
    if (f->runs[i].by_layer_outside)
      f->runs[i].by_layer_outside[2] = 300 + i;
  json = render(f, "json", NULL);
  read = read_back(f, json);
  html = render(read, "html", NULL);
  assert_non_null(strstr(html, "class=\"heat\""));
  assert_int_equal(read->runs[0].by_layer_outside[2], 300);
  assert_int_equal(read->runs[0].by_layer_expert[7][3], f->runs[0].by_layer_expert[7][3]);
  assert_int_equal(read->control_count, f->control_count);
  sc_findings_free(read);
  free(json);
  free(html);
  check("outside", f);
}

/* Each writer says of itself that the ruler drifts: read back it must not stand there twice. */
static void a_drifting_ruler_is_said_once(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text;

  (void)state;
  for (int i = 8; i < 12; i++)
    f->ruler[0].block_means_us[i] *= 1.5;
  f->ruler[0].block_means_us[5] = NAN; /* a block without samples */
  assert_true(sc_findings_warn(f, "another warning"));
  text = render(f, "json", NULL);
  assert_non_null(strstr(text, "\"DRIFT: "));
  free(text);
  check("drift", f);
}

static void two_drifting_rulers_are_both_said(void **state)
{
  struct sc_findings *f = fixture_full(), *both = sc_findings_new(), *read;
  char *json;

  (void)state;
  for (int k = 0; k < 2; k++) {
    for (int i = 8; i < 12; i++)
      f->ruler[0].block_means_us[i] *= 1.5;
    json = render(f, "json", NULL);
    read_into(both, json);
    free(json);
  }
  read = check_json("two drifts", both);
  assert_int_equal(read->warning_count, both->warning_count);
  assert_int_equal(strncmp(read->warnings[read->warning_count - 1], "DRIFT: ", 7), 0);
  sc_findings_free(read);
  sc_findings_free(both);
  sc_findings_free(f);
}

/* A field that nobody knows the key of may be null, too. */
static void facts_of_any_name_are_the_same_again(void **state)
{
  struct sc_findings *f = fixture_full();

  (void)state;
  assert_true(sc_findings_text(f, "host", "odd", NULL));
  assert_true(sc_findings_text(f, "conditions", "simulated", "a word"));
  assert_true(sc_findings_number(f, "device", "third", 1.0 / 3));
  sc_findings_free(check_json("facts", f));
  sc_findings_free(f);
}

/* What one report tells is not put together with another's: where the second knows less, less is told. */
static void facts_of_two_reports_are_not_mixed(void **state)
{
  (void)state;
  struct sc_findings *f = sc_findings_new();
  struct sc_error err = {0};
  assert_int_equal(read_json(f,
                             "{\"schema\": \"synccount/report/1\", \"host\": {\"cpu\": \"x\", \"pcie\": "
                             "{\"link_width\": 16, \"max_link_width\": 16}}, \"conditions\": {\"gpu_numa_node\": 0, "
                             "\"gpu_numa_cpus\": 16, \"gpu_numa_allowed\": false}}",
                             &err),
                   SC_OK);
  assert_int_equal(read_json(f,
                             "{\"schema\": \"synccount/report/1\", \"host\": {\"pcie\": {\"link_width\": 8}}, "
                             "\"conditions\": {\"gpu_numa_node\": 1}}",
                             &err),
                   SC_OK);
  assert_non_null(sc_findings_field(f, "host", "cpu"));
  assert_null(sc_findings_field(f, "host.pcie", "max_link_width"));
  assert_float_equal(sc_findings_field(f, "host.pcie", "link_width")->number, 8, 0);
  assert_null(sc_findings_field(f, "conditions", "gpu_numa_cpus"));
  assert_null(sc_findings_field(f, "conditions", "gpu_numa_allowed"));
  assert_float_equal(sc_findings_field(f, "conditions", "gpu_numa_node")->number, 1, 0);
  sc_findings_free(f);
}

/* Nothing that a report tells of host, device or conditions is passed over. */
static void facts_of_other_kinds_are_refused(void **state)
{
  static const struct {
    const char *facts, *place;
  } wrong[] = {
      {"\"host\": {\"cpu\": [1, 2]}", "host.cpu"},
      {"\"host\": {\"cpu\": {\"model\": \"x\"}}", "host.cpu"},
      {"\"host\": {\"odd\": []}", "host.odd"},
      {"\"host\": {\"pcie\": {\"link_width\": [16]}}", "host.pcie.link_width"},
      {"\"host\": {\"pcie\": {\"bus_id\": {}}}", "host.pcie.bus_id"},
      {"\"device\": {\"name\": [\"x\"]}", "device.name"},
      {"\"conditions\": {\"mps\": [true]}", "conditions.mps"},
  };

  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(wrong); i++) {
    struct sc_findings *f = sc_findings_new();
    struct sc_error err = {0};
    char *json = sc_asprintf("{\"schema\": \"synccount/report/1\", %s}", wrong[i].facts);
    char *wanted = sc_asprintf(": %s is not a text, a number, true or false: ", wrong[i].place);

    assert_non_null(f);
    assert_non_null(json);
    assert_non_null(wanted);
    assert_int_equal(read_json(f, json, &err), SC_ERR_FORMAT);
    if (!strstr(err.message, wanted))
      fail_msg("no '%s' in '%s'", wanted, err.message);
    free(json);
    free(wanted);
    sc_findings_free(f);
  }
}

/* Each run keeps the floors of what its own report assumed. */
static void reports_that_assumed_other_round_trips_are_read_together(void **state)
{
  struct sc_findings *first = fixture_assumed(), *second = fixture_assumed(), *both = sc_findings_new();
  char *json;

  (void)state;
  json = render(first, "json", NULL);
  read_into(both, json);
  free(json);
  second->assumed_us[0] = 116; /* and 26 is not assumed at all */
  second->assumed_us[1] = 300;
  json = render(second, "json", NULL);
  read_into(both, json);
  free(json);
  assert_int_equal(both->assumed_count, 3);
  assert_true(both->assumed_us[0] == 26 && both->assumed_us[1] == 116 && both->assumed_us[2] == 300);
  const double *old = both->runs[0].assumed_floor_us, *fresh = both->runs[first->run_count].assumed_floor_us;
  assert_true(old[0] == first->runs[0].assumed_floor_us[0] && old[1] == first->runs[0].assumed_floor_us[1]);
  assert_true(isnan(old[2]));
  assert_true(isnan(fresh[0]));
  assert_true(fresh[1] == second->runs[0].assumed_floor_us[0] && fresh[2] == second->runs[0].assumed_floor_us[1]);
  sc_findings_free(first);
  sc_findings_free(second);
  sc_findings_free(both);
}

/* The answer takes a round trip that the run's own report assumed. */
static void a_floor_is_told_at_what_its_report_assumed(void **state)
{
  struct sc_findings *f = fixture_assumed(), *both = sc_findings_new();
  char *text;

  (void)state;
  f->simulated = true;
  text = render(f, "json", NULL);
  read_into(both, "{\"schema\": \"synccount/report/1\", \"assumed_round_trips_us\": [5]}");
  read_into(both, text);
  free(text);
  text = render(both, "text", NULL);
  assert_non_null(strstr(text, "if a round trip costs 26 us"));
  assert_null(strstr(text, "if a round trip costs 5 us"));
  free(text);
  sc_findings_free(both);
  sc_findings_free(f);
}

static void what_was_simulated_stays_so_beside_what_was_not(void **state)
{
  struct sc_findings *simulated = fixture_simulated(), *real = fixture_full(), *both = sc_findings_new();
  char *json = render(simulated, "json", NULL);

  (void)state;
  read_into(both, json);
  free(json);
  json = render(real, "json", NULL);
  read_into(both, json);
  free(json);
  assert_true(sc_findings_simulated(both));
  sc_findings_free(simulated);
  sc_findings_free(real);
  sc_findings_free(both);
}

/* ---- many of everything -------------------------------------------------------------------------- */

enum { MANY = 100000 };

/* A process of a report with MANY threads, two of each number, and ranges: each in the one before it, or all in the
 * first, and each allowed for a reason of its own. */
static void put_many(struct sc_buf *json, bool deep)
{
  sc_buf_puts(json, "{\"schema\": \"synccount/report/1\", \"processes\": [{\"syncs\": {\"total\": 3}, \"threads\": [");
  for (int i = 0; i < MANY; i++)
    sc_buf_printf(json, "%s{\"tid\": %d}", i ? "," : "", i / 2 + 1);
  sc_buf_puts(json, "], \"ranges\": [");
  for (int i = 0; i < MANY; i++)
    sc_buf_printf(json, "%s{\"path\": \"p\", \"name\": \"n%d\", \"depth\": %d, \"level\": \"allow\"}", i ? "," : "", i,
                  deep ? i : i > 0);
  sc_buf_puts(json, "]}]}");
  assert_false(json->failed);
}

/* What grew with the square of it took half a minute and more; the test's time limit would end it under a sanitizer. */
static void a_hundred_thousand_of_everything_take_no_longer_than_each(void **state)
{
  (void)state;
  for (int deep = 0; deep < 2; deep++) {
    struct sc_buf json = {0};
    struct sc_findings *f = sc_findings_new();
    struct sc_allowed *allowed = NULL;
    size_t count = 0;
    char *text;

    put_many(&json, deep);
    read_into(f, json.data);
    const clock_t begun = clock();
    text = render(f, "chrome", NULL);
    assert_non_null(strstr(text, "\"tid\":50000,"));
    assert_non_null(strstr(text, "\"tid\":4000000001,")); /* the second thread of number 1 */
    assert_null(strstr(text, "\"tid\":4000000002,"));
    free(text);
    free(render(f, "text", NULL));
    assert_true(sc_process_allowed(&f->processes[0], &allowed, &count));
    assert_int_equal(count, MANY);
    assert_string_equal(allowed[MANY - 1].reason, "n99999");
    free(allowed);
    const double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
    if (seconds > 10)
      fail_msg("%g s of processor time", seconds);
    sc_buf_free(&json);
    sc_findings_free(f);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_document_is_the_same_again),
      cmocka_unit_test(hostile_names_are_the_same_again),
      cmocka_unit_test(what_a_process_has_beside_its_counts_is_kept),
      cmocka_unit_test(every_part_of_a_simulated_process_is_the_same_again),
      cmocka_unit_test(what_a_run_has_outside_of_experts_is_in_its_heat_map),
      cmocka_unit_test(a_drifting_ruler_is_said_once),
      cmocka_unit_test(two_drifting_rulers_are_both_said),
      cmocka_unit_test(facts_of_any_name_are_the_same_again),
      cmocka_unit_test(facts_of_two_reports_are_not_mixed),
      cmocka_unit_test(facts_of_other_kinds_are_refused),
      cmocka_unit_test(reports_that_assumed_other_round_trips_are_read_together),
      cmocka_unit_test(a_floor_is_told_at_what_its_report_assumed),
      cmocka_unit_test(what_was_simulated_stays_so_beside_what_was_not),
      cmocka_unit_test(a_hundred_thousand_of_everything_take_no_longer_than_each),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
