/* SPDX-License-Identifier: Apache-2.0
 * The schema synccount/report/1 as a table, and what "not measured" looks like. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "test_support.h"

/* S string, I integer, R number (integer or real), B boolean, O object, A array, 0 null: any of the letters will do.
 * "[]" walks every element of an array, of which there must be at least one. */
struct key {
  const char *path, *types;
};

static const struct key main_keys[] = {
    {"schema", "S"},
    {"version", "S"},
    {"host", "O"},
    {"host.cpu", "S"},
    {"host.kernel", "S"},
    {"host.virtualization", "S"},
    {"host.driver", "S"},
    {"host.cuda", "S"},
    {"host.cupti", "SI"},
    {"host.pcie", "O"},
    {"device", "O"},
    {"device.name", "S"},
    {"device.simulated", "B"},
    {"device.compute_capability", "S"},
    {"conditions", "O"},
    {"conditions.gpu_numa_node", "I"},
    {"conditions.cpus_allowed", "S0"},
    {"conditions.cgroup_cpu_quota", "R"},
    {"conditions.governor", "S0"},
    {"conditions.schedule_flag", "S0"},
    {"conditions.mig", "B0"},
    {"conditions.mps", "B"},
    {"conditions.wsl", "B0"},
    {"conditions.sm_clock_before", "R0"},
    {"round_trip", "O"},
    {"round_trip.method", "S"},
    {"round_trip.samples", "I"},
    {"round_trip.blocks", "I"},
    {"round_trip.min_us", "R"},
    {"round_trip.p10_us", "R"},
    {"round_trip.p50_us", "R"},
    {"round_trip.mean_us", "R"},
    {"round_trip.p90_us", "R"},
    {"round_trip.p99_us", "R"},
    {"ruler", "A"},
    {"ruler.[].method", "S"},
    {"ruler.[].samples", "I"},
    {"ruler.[].blocks", "I"},
    {"ruler.[].min_us", "R"},
    {"ruler.[].p10_us", "R"},
    {"ruler.[].p50_us", "R"},
    {"ruler.[].mean_us", "R"},
    {"ruler.[].p90_us", "R"},
    {"ruler.[].p99_us", "R"},
    {"ruler.[].block_means_us", "A"},
    {"assumed_round_trips_us.[]", "R"},
    {"marginal_sync", "A"},
    {"marginal_sync.[].experts", "I"},
    {"marginal_sync.[].tokens", "I"},
    {"marginal_sync.[].mean_us", "R"},
    {"marginal_sync.[].low_us", "R"},
    {"marginal_sync.[].high_us", "R"},
    {"controls.[].experts", "I"},
    {"controls.[].tokens", "I"},
    {"controls.[].dense_us", "R"},
    {"controls.[].sorted_us", "R"},
    {"controls.[].masked_us", "R"},
    {"controls.[].sorted_syncs.[].syncs", "I"},
    {"controls.[].sorted_syncs.[].p50_us", "R"},
    {"runs", "A"},
    {"runs.[].variant", "S"},
    {"runs.[].experts", "I"},
    {"runs.[].top_k", "I"},
    {"runs.[].tokens", "I"},
    {"runs.[].hidden", "I"},
    {"runs.[].intermediate", "I"},
    {"runs.[].layers", "I"},
    {"runs.[].model_layers", "I"},
    {"runs.[].dtype", "S"},
    {"runs.[].forwards", "I"},
    {"runs.[].hit", "A"},
    {"runs.[].hit.[]", "I"},
    {"runs.[].routing", "S"},
    {"runs.[].seed", "I"},
    {"runs.[].activation", "S"},
    {"runs.[].act_quant", "S0"},
    {"runs.[].nvfp4_path", "S0"},
    {"runs.[].verified", "O"},
    {"runs.[].verified.ok", "B"},
    {"runs.[].verified.cosine", "R"},
    {"runs.[].verified.rel_error", "R"},
    {"runs.[].verified.tokens", "I"},
    {"runs.[].verified.reason", "S0"},
    {"runs.[].counted", "B"},
    {"runs.[].syncs", "O"},
    {"runs.[].syncs.per_forward", "R"},
    {"runs.[].syncs.per_layer", "O"},
    {"runs.[].syncs.per_layer.min", "I"},
    {"runs.[].syncs.per_layer.max", "I"},
    {"runs.[].syncs.per_layer.mean", "R"},
    {"runs.[].syncs.expected_per_layer", "R"},
    {"runs.[].syncs.bound_per_layer", "R0"},
    {"runs.[].syncs.exact", "B"},
    {"runs.[].syncs.total", "I"},
    {"runs.[].syncs.by_class", "O"},
    {"runs.[].syncs.by_class.explicit", "I"},
    {"runs.[].syncs.by_class.copy", "I"},
    {"runs.[].syncs.by_class.pageable", "I"},
    {"runs.[].syncs.by_class.implicit", "I"},
    {"runs.[].syncs.by_op", "O"},
    {"runs.[].syncs.by_expert", "A0"},
    {"runs.[].syncs.by_expert_op", "O0"},
    {"runs.[].syncs.by_layer_outside", "A0"},
    {"runs.[].syncs.outside_experts", "I"},
    {"runs.[].syncs.read_backs", "I"},
    {"runs.[].syncs.blocking_uploads", "I"},
    {"runs.[].syncs.idle_syncs", "I"},
    {"runs.[].syncs.launches", "I"},
    {"runs.[].syncs.submissions", "I"},
    {"runs.[].syncs.d2h_copies", "I"},
    {"runs.[].syncs.host_functions", "I"},
    {"runs.[].syncs.api_calls", "I"},
    {"runs.[].syncs.poll_waits", "I"},
    {"runs.[].syncs.uncertain", "I"},
    {"runs.[].syncs.failed", "I"},
    {"runs.[].syncs.lifecycle", "I"},
    {"runs.[].syncs.captured", "I"},
    {"runs.[].floor", "O"},
    {"runs.[].floor.low_us", "R"},
    {"runs.[].floor.mean_us", "R"},
    {"runs.[].floor.high_us", "R"},
    {"runs.[].floor.blocks", "I"},
    {"runs.[].assumed_floors.[].round_trip_us", "R"},
    {"runs.[].assumed_floors.[].floor_us", "R"},
    {"runs.[].forward", "O"},
    {"runs.[].forward.p10_us", "R"},
    {"runs.[].forward.p50_us", "R"},
    {"runs.[].forward.p90_us", "R"},
    {"runs.[].forward.samples", "I"},
    {"runs.[].output_matches_masked", "B0"},
    {"runs.[].not_comparable", "S0"},
    {"laws", "A"},
    {"laws.[].variant", "S"},
    {"laws.[].stated", "B"},
    {"laws.[].slope", "R"},
    {"laws.[].intercept", "R"},
    {"laws.[].text", "S"},
    {"processes", "A"},
    {"losses", "O"},
    {"losses.records", "I"},
    {"losses.chunks", "I"},
    {"warnings", "A"},
};

static const struct key process_keys[] = {
    {"processes.[].host", "S"},
    {"processes.[].pid", "I"},
    {"processes.[].rank", "I"},
    {"processes.[].local_rank", "I0"},
    {"processes.[].command", "S"},
    {"processes.[].wall_us", "R"},
    {"processes.[].attached_late", "B"},
    {"processes.[].ended_cleanly", "B"},
    {"processes.[].simulated", "B"},
    {"processes.[].threads.[].tid", "I"},
    {"processes.[].threads.[].name", "S"},
    {"processes.[].threads.[].launches", "I"},
    {"processes.[].threads.[].syncs", "I"},
    {"processes.[].threads.[].wait_us", "R"},
    {"processes.[].threads.[].poll_waits", "I"},
    {"processes.[].threads.[].d2h_copies", "I"},
    {"processes.[].threads.[].host_functions", "I"},
    {"processes.[].ranges.[].path", "S"},
    {"processes.[].ranges.[].name", "S"},
    {"processes.[].ranges.[].domain", "S"},
    {"processes.[].ranges.[].level", "S0"},
    {"processes.[].ranges.[].depth", "I"},
    {"processes.[].ranges.[].occurrences", "I"},
    {"processes.[].ranges.[].unfinished", "I"},
    {"processes.[].ranges.[].spanning", "B"},
    {"processes.[].ranges.[].syncs.total", "I"},
    {"processes.[].ranges.[].syncs.self", "I"},
    {"processes.[].ranges.[].syncs.min", "I"},
    {"processes.[].ranges.[].syncs.median", "R"},
    {"processes.[].ranges.[].syncs.max", "I"},
    {"processes.[].ranges.[].by_class.explicit", "I"},
    {"processes.[].ranges.[].wait_us", "R"},
    {"processes.[].ranges.[].launches", "I"},
    {"processes.[].ranges.[].submissions", "I"},
    {"processes.[].ranges.[].poll_waits", "I"},
    {"processes.[].ranges.[].uncertain", "I"},
    {"processes.[].sites.[].id", "S"},
    {"processes.[].sites.[].kind", "S"},
    {"processes.[].sites.[].class", "S0"},
    {"processes.[].sites.[].api", "S"},
    {"processes.[].sites.[].direction", "S"},
    {"processes.[].sites.[].bytes", "I"},
    {"processes.[].sites.[].memory", "S"},
    {"processes.[].sites.[].pattern", "S"},
    {"processes.[].sites.[].remedy", "S0"},
    {"processes.[].sites.[].count", "I"},
    {"processes.[].sites.[].read_backs", "I"},
    {"processes.[].sites.[].blocking_uploads", "I"},
    {"processes.[].sites.[].per_step", "R"},
    {"processes.[].sites.[].wait_p50_us", "R"},
    {"processes.[].sites.[].wait_total_us", "R"},
    {"processes.[].sites.[].python.[].file", "S"},
    {"processes.[].sites.[].python.[].line", "I"},
    {"processes.[].sites.[].python.[].function", "S"},
    {"processes.[].sites.[].native", "A"},
    {"processes.[].sites.[].range", "S"},
    {"processes.[].measured", "B"},
    {"processes.[].allowed.[].reason", "S"},
    {"processes.[].allowed.[].occurrences", "I"},
    {"processes.[].allowed.[].syncs", "I"},
    {"processes.[].tracer.start_us", "R"},
    {"processes.[].tracer.call_us", "R"},
    {"processes.[].tracer.launch_us", "R"},
    {"processes.[].tracer.calls_us", "R"},
    {"processes.[].stacks.taken", "I"},
    {"processes.[].stacks.walked", "I"},
    {"processes.[].stacks.missing", "I"},
    {"processes.[].stacks.total_us", "R0"},
    {"processes.[].stacks.walked_us", "R0"},
    {"processes.[].stacks.longest_us", "R0"},
    {"processes.[].losses.records", "I"},
    {"processes.[].losses.chunks", "I"},
    {"processes.[].losses.totals_complete", "B"},
    {"processes.[].steps.count", "I"},
    {"processes.[].steps.warmup", "I"},
    {"processes.[].steps.min", "I"},
    {"processes.[].steps.median", "R"},
    {"processes.[].steps.max", "I"},
    {"processes.[].syncs.total", "I"},
    {"processes.[].syncs.by_class.explicit", "I"},
    {"processes.[].syncs.by_class.copy", "I"},
    {"processes.[].syncs.by_class.pageable", "I"},
    {"processes.[].syncs.by_class.implicit", "I"},
    {"processes.[].syncs.poll_waits", "I"},
    {"processes.[].syncs.uncertain", "I"},
    {"processes.[].syncs.failed", "I"},
    {"processes.[].syncs.lifecycle", "I"},
    {"processes.[].syncs.api_calls", "I"},
    {"processes.[].syncs.wait_us", "R"},
    {"ranks.syncs.total", "I"},
    {"ranks.syncs.min", "I"},
    {"ranks.syncs.max", "I"},
    {"ranks.syncs.usual", "I0"},
    {"ranks.waits_most", "I0"},
    {"ranks.waits_least", "I0"},
    {"ranks.each.[].rank", "I"},
    {"ranks.each.[].processes", "I"},
    {"ranks.each.[].syncs", "I"},
    {"ranks.each.[].step_median", "R"},
    {"ranks.each.[].wait_us", "R"},
    {"ranks.each.[].wall_us", "R"},
};

static const char *const top_order[] = {
    "schema",        "version",  "host", "device", "conditions", "round_trip", "ruler",   "assumed_round_trips_us",
    "marginal_sync", "controls", "runs", "laws",   "processes",  "losses",     "warnings",
    "ranks"};

static bool type_is(const json_t *value, char letter)
{
  switch (letter) {
  case 'S': return json_is_string(value);
  case 'I': return json_is_integer(value);
  case 'R': return json_is_number(value);
  case 'B': return json_is_boolean(value);
  case 'O': return json_is_object(value);
  case 'A': return json_is_array(value);
  default: return json_is_null(value);
  }
}

static void check_key(const json_t *value, const char *rest, const struct key *key)
{
  size_t n = strcspn(rest, ".");
  char name[64];

  if (!value)
    fail_msg("%s is missing", key->path);
  if (!*rest) {
    for (const char *letter = key->types; *letter; letter++)
      if (type_is(value, *letter))
        return;
    fail_msg("%s has another type than %s", key->path, key->types);
  }
  snprintf(name, sizeof name, "%.*s", (int)n, rest);
  rest += n + (rest[n] == '.');
  if (strcmp(name, "[]") != 0) {
    check_key(json_object_get(value, name), rest, key);
    return;
  }
  if (!json_array_size(value))
    fail_msg("%s: no element", key->path);
  for (size_t i = 0; i < json_array_size(value); i++)
    check_key(json_array_get(value, i), rest, key);
}

static json_t *parse(const struct sc_findings *f)
{
  char *text = render(f, "json", NULL);
  json_error_t error;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

  if (!root)
    fail_msg("line %d: %s", error.line, error.text);
  free(text);
  return root;
}

/* "runs.0.floor": the value there, NULL when there is none. */
static json_t *at(json_t *root, const char *path)
{
  char name[64];

  while (root && *path) {
    size_t n = strcspn(path, ".");

    snprintf(name, sizeof name, "%.*s", (int)n, path);
    root = json_is_array(root) ? json_array_get(root, strtoul(name, NULL, 10)) : json_object_get(root, name);
    path += n + (path[n] == '.');
  }
  return root;
}

static void assert_null_at(json_t *root, const char *path)
{
  if (!json_is_null(at(root, path)))
    fail_msg("%s is not null", path);
}

static void every_key_of_the_schema_is_there_with_its_type(void **state)
{
  struct sc_findings *main_command = fixture_assumed(), *process = fixture_process();
  json_t *root = parse(main_command);

  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(main_keys); i++)
    check_key(root, main_keys[i].path, &main_keys[i]);
  json_decref(root);
  fixture_add_allowed(process);
  root = parse(process);
  for (size_t i = 0; i < SC_COUNTOF(process_keys); i++)
    check_key(root, process_keys[i].path, &process_keys[i]);
  json_decref(root);
  sc_findings_free(main_command);
  sc_findings_free(process);
}

/* "runs.[].syncs.total" -> "*syncs.total*", as the page has it in the section of runs; elsewhere whole,
 * "*laws[].text*". */
static void check_documented(const char *page, const char *path)
{
  struct sc_buf key = {0};
  const char *section = page, *rest = path, *end = page + strlen(page);

  if (strncmp(path, "runs.[].", 8) == 0 || strncmp(path, "processes.[].", 13) == 0) {
    section = strstr(page, path[0] == 'r' ? "\n# RUNS\n" : "\n# PROCESSES\n");
    assert_non_null(section);
    end = strstr(section + 1, "\n# ");
    rest = strstr(path, "[].") + 3;
  }
  sc_buf_puts(&key, "*");
  for (; *rest; rest++)
    if (rest[0] != '.' || rest[1] != '[')
      sc_buf_append(&key, rest, 1);
  sc_buf_puts(&key, "*");
  if (!memmem(section, (size_t)(end - section), key.data, key.len))
    fail_msg("%s is not in docs/synccount-json.7.scd as %s", path, key.data);
  sc_buf_free(&key);
}

/* Objects and arrays stand in the page by what they hold. */
static bool is_container(const struct key *key)
{
  size_t n = strlen(key->path);

  return strchr("OA", key->types[0]) || strcmp(key->path + n - 3, ".[]") == 0;
}

/* round_trip has the keys of a ruler's row, and the page says so. */
static void every_key_is_in_the_manual(void **state)
{
  char *path = sc_asprintf("%s/docs/synccount-json.7.scd", getenv("SC_SOURCE")), *page = calloc(1, 1 << 18);
  FILE *file = fopen(path, "r");

  (void)state;
  assert_non_null(file);
  assert_true(fread(page, 1, (1 << 18) - 1, file) > 0);
  assert_int_equal(fclose(file), 0);
  for (size_t i = 0; i < SC_COUNTOF(main_keys); i++)
    if (!is_container(&main_keys[i]) && strncmp(main_keys[i].path, "round_trip.", 11) != 0)
      check_documented(page, main_keys[i].path);
  for (size_t i = 0; i < SC_COUNTOF(process_keys); i++)
    check_documented(page, process_keys[i].path);
  free(page);
  free(path);
}

static void keys_stand_in_the_order_of_the_schema(void **state)
{
  struct sc_findings *f = fixture_minimal();
  json_t *root = parse(f), *value;
  const char *key;
  size_t i = 0;

  (void)state;
  json_object_foreach(root, key, value)
  {
    assert_true(i < SC_COUNTOF(top_order));
    assert_string_equal(key, top_order[i++]);
  }
  assert_int_equal(i, SC_COUNTOF(top_order));
  json_decref(root);
  sc_findings_free(f);
}

static void the_schema_says_its_name(void **state)
{
  struct sc_findings *f = fixture_minimal();
  json_t *root = parse(f);

  (void)state;
  assert_string_equal(json_string_value(at(root, "schema")), "synccount/report/1");
  assert_string_equal(json_string_value(at(root, "version")), "1.2.3-test");
  json_decref(root);
  sc_findings_free(f);
}

/* Nowhere a 0 that nobody measured: only what is known even then, the losses, is a number. */
static void no_number(const char *path, const json_t *value)
{
  const char *key;
  json_t *inner;
  size_t i;

  if (json_is_number(value))
    fail_msg("%s is a number though nothing was measured", path);
  if (json_is_object(value))
    json_object_foreach((json_t *)value, key, inner) no_number(key, inner);
  json_array_foreach(value, i, inner) no_number(path, inner);
}

static void nothing_measured_has_no_zero(void **state)
{
  struct sc_findings *f = fixture_minimal();
  json_t *root = parse(f);

  (void)state;
  json_object_del(root, "losses");
  no_number("", root);
  assert_null_at(root, "round_trip");
  assert_null_at(root, "marginal_sync");
  assert_null_at(root, "laws");
  assert_int_equal(json_array_size(at(root, "runs")), 0);
  json_decref(root);
  sc_findings_free(f);
}

static void a_run_that_was_not_counted_has_null_counts_and_floor(void **state)
{
  struct sc_findings *f = fixture_full();
  json_t *root;

  (void)state;
  f->runs[0].counted = false;
  root = parse(f);
  assert_true(json_is_false(at(root, "runs.0.counted")));
  assert_null_at(root, "runs.0.syncs");
  assert_null_at(root, "runs.0.floor");
  assert_true(json_is_object(at(root, "runs.0.forward")));
  assert_true(json_is_object(at(root, "runs.1.syncs")));
  json_decref(root);
  sc_findings_free(f);
}

static void simulated_has_counts_and_no_times(void **state)
{
  struct sc_findings *f = fixture_simulated();
  json_t *root = parse(f);

  (void)state;
  assert_true(json_is_true(at(root, "device.simulated")));
  assert_null_at(root, "round_trip");
  assert_int_equal(json_array_size(at(root, "ruler")), 0);
  assert_null_at(root, "marginal_sync");
  assert_null_at(root, "controls");
  assert_null_at(root, "runs.0.floor");
  assert_null_at(root, "runs.0.forward");
  assert_int_equal(json_integer_value(at(root, "runs.0.syncs.per_forward")), 96);
  assert_true(json_number_value(at(root, "runs.0.assumed_floors.0.floor_us")) == 96 * 120.0);
  json_decref(root);
  sc_findings_free(f);
}

static void a_simulated_process_has_no_times(void **state)
{
  struct sc_findings *f = fixture_process();
  json_t *root;

  (void)state;
  f->processes[0].simulated = true;
  root = parse(f);
  assert_true(json_is_true(at(root, "device.simulated")));
  assert_true(json_is_true(at(root, "processes.0.simulated")));
  assert_null_at(root, "processes.0.wall_us");
  assert_null_at(root, "processes.0.threads.0.wait_us");
  assert_null_at(root, "processes.0.ranges.0.wait_us");
  assert_null_at(root, "processes.0.sites.0.wait_p50_us");
  assert_null_at(root, "processes.0.sites.0.wait_total_us");
  assert_null_at(root, "processes.0.syncs.wait_us");
  assert_int_equal(json_integer_value(at(root, "processes.0.syncs.total")), 3842);
  json_decref(root);
  sc_findings_free(f);
}

static void a_drain_gap_is_there_only_if_it_was_measured(void **state)
{
  struct sc_findings *f = fixture_process();
  json_t *root = parse(f);

  (void)state;
  assert_null(json_object_get(at(root, "processes.0.sites.0"), "drain_gap_total_us"));
  assert_null(json_object_get(at(root, "processes.0.syncs"), "drain_gap_total_us"));
  json_decref(root);
  f->processes[0].sites[0].drain_gap_p50_us = 7.5;
  f->processes[0].sites[0].drain_gap_total_us = 0; /* measured: the device always had work */
  f->processes[0].drain_gap_p50_us = 9.25;
  f->processes[0].drain_gap_total_us = 1200;
  f->processes[0].drain_gaps = 380;
  root = parse(f);
  assert_float_equal(json_number_value(at(root, "processes.0.sites.0.drain_gap_p50_us")), 7.5, 0);
  assert_float_equal(json_number_value(at(root, "processes.0.sites.0.drain_gap_total_us")), 0, 0);
  assert_float_equal(json_number_value(at(root, "processes.0.syncs.drain_gap_p50_us")), 9.25, 0);
  assert_float_equal(json_number_value(at(root, "processes.0.syncs.drain_gap_total_us")), 1200, 0);
  assert_int_equal(json_integer_value(at(root, "processes.0.syncs.drain_gaps")), 380);
  json_decref(root);
  f->processes[0].simulated = true;
  root = parse(f);
  assert_null(json_object_get(at(root, "processes.0.sites.0"), "drain_gap_p50_us"));
  json_decref(root);
  sc_findings_free(f);
}

/* A total is called one: mean_us is a mean of the round trip in runs, and nothing of a process. */
static void the_floor_of_a_process_is_a_total(void **state)
{
  struct sc_findings *f = fixture_traced();
  json_t *root;

  (void)state;
  f->ruler[0].mean_us = 10.5;
  root = parse(f);
  assert_int_equal(json_integer_value(at(root, "processes.0.floor.round_trips")), 3840 + 38);
  assert_true(json_number_value(at(root, "processes.0.floor.round_trip_us")) == 10.5);
  assert_true(json_number_value(at(root, "processes.0.floor.total_us")) == 10.5 * (3840 + 38));
  assert_null(json_object_get(at(root, "processes.0.floor"), "mean_us"));
  json_decref(root);
  sc_findings_free(f);
}

static void not_verified_has_no_forward_time(void **state)
{
  struct sc_findings *f = fixture_not_verified();
  json_t *root = parse(f);

  (void)state;
  assert_true(json_is_object(at(root, "runs.0.forward")));
  assert_null_at(root, "runs.1.forward");
  assert_true(json_is_false(at(root, "runs.1.verified.ok")));
  assert_string_equal(json_string_value(at(root, "runs.1.verified.reason")),
                      "relative error 0.31, at most 1e-05 is allowed");
  json_decref(root);
  sc_findings_free(f);
}

static void unstated_law_and_unknown_values_are_null(void **state)
{
  struct sc_findings *f = fixture_hit();
  json_t *root = parse(f);

  (void)state;
  assert_null_at(root, "laws.0.slope");
  assert_string_equal(json_string_value(at(root, "laws.0.text")), "no single law: hit < E at E = 4, 8");
  assert_null_at(root, "runs.0.output_matches_masked");
  assert_null_at(root, "runs.2.output_matches_masked");
  assert_null_at(root, "runs.2.syncs.bound_per_layer");
  assert_true(json_is_false(at(root, "runs.1.syncs.exact")));
  json_decref(root);
  sc_findings_free(f);
}

static void a_site_without_a_copy_has_no_bytes(void **state)
{
  struct sc_findings *f = fixture_process();
  struct sc_site *site = &f->processes[0].sites[0];
  json_t *root;

  (void)state;
  free(site->direction);
  site->direction = NULL;
  site->bytes = 0;
  site->python[0].line = 0;
  root = parse(f);
  assert_null_at(root, "processes.0.sites.0.direction");
  assert_null_at(root, "processes.0.sites.0.bytes");
  assert_null_at(root, "processes.0.sites.0.python.0.line");
  json_decref(root);
  sc_findings_free(f);
}

static void by_class_sums_to_the_total(void **state)
{
  struct sc_findings *f = fixture_full();
  json_t *root = parse(f), *value;
  const char *key;
  json_int_t sum = 0;

  (void)state;
  json_object_foreach(at(root, "runs.0.syncs.by_class"), key, value) sum += json_integer_value(value);
  assert_int_equal(sum, json_integer_value(at(root, "runs.0.syncs.per_forward")) *
                            json_integer_value(at(root, "runs.0.forwards")));
  json_decref(root);
  sc_findings_free(f);
}

static void numbers_have_no_noise_digits(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text;

  (void)state;
  f->ruler[0].p50_us = 10.2 + 0.01; /* 10.209999999999999 */
  f->runs[0].rel_error = 2.123456789e-7;
  text = render(f, "json", NULL);
  assert_non_null(strstr(text, "\"p50_us\": 10.21,"));
  assert_non_null(strstr(text, "\"rel_error\": 2.12346e-"));
  for (const char *at_digit = text; *at_digit; at_digit++)
    assert_true(strspn(at_digit, "0123456789") <= 10);
  free(text);
  sc_findings_free(f);
}

static void options_change_nothing_for_scripts(void **state)
{
  struct sc_findings *f = fixture_lost();
  char *plain = render(f, "json", NULL);
  char *other =
      render(f, "json", &(struct sc_report_options){.width = 40, .color = true, .per_expert = true, .quiet = true});

  (void)state;
  assert_string_equal(plain, other);
  free(plain);
  free(other);
  sc_findings_free(f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_key_of_the_schema_is_there_with_its_type),
      cmocka_unit_test(every_key_is_in_the_manual),
      cmocka_unit_test(keys_stand_in_the_order_of_the_schema),
      cmocka_unit_test(the_schema_says_its_name),
      cmocka_unit_test(nothing_measured_has_no_zero),
      cmocka_unit_test(a_run_that_was_not_counted_has_null_counts_and_floor),
      cmocka_unit_test(simulated_has_counts_and_no_times),
      cmocka_unit_test(a_simulated_process_has_no_times),
      cmocka_unit_test(a_drain_gap_is_there_only_if_it_was_measured),
      cmocka_unit_test(the_floor_of_a_process_is_a_total),
      cmocka_unit_test(not_verified_has_no_forward_time),
      cmocka_unit_test(unstated_law_and_unknown_values_are_null),
      cmocka_unit_test(a_site_without_a_copy_has_no_bytes),
      cmocka_unit_test(by_class_sums_to_the_total),
      cmocka_unit_test(numbers_have_no_noise_digits),
      cmocka_unit_test(options_change_nothing_for_scripts),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
