/* SPDX-License-Identifier: Apache-2.0
 * HTML, Chrome trace, folded stacks and CSV: their structure holds whatever the program calls its things. */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "programs.h"
#include "test_support.h"

static const char *const names[] = {
    "plain", "", "\"quoted\" 'single' \\ back\\slash", "</script><script>alert(1)</script><style>", "a;b,c\td|e",
    "line\nline\r\nline", "\x1b[31mred\x07\x7f", "bad \xff\xfe utf8 \xed\xa0\x80", "turned \xe2\x80\xae around",
    "=cmd|' /C calc'!A0", "<!-- --> ]]> &amp;", "%s%n%d",
};

static char *huge_name(void)
{
  char *name = malloc(65537);

  assert_non_null(name);
  memset(name, '<', 65536);
  name[65536] = '\0';
  return name;
}

static void each_name(void (*check)(const struct sc_findings *f, const char *name))
{
  char *huge = huge_name();

  for (size_t i = 0; i <= SC_COUNTOF(names); i++) {
    const char *name = i < SC_COUNTOF(names) ? names[i] : huge;
    struct sc_findings *fixture = fixture_hostile(name), *program = program_findings(40, 2, name);

    check(fixture, name);
    check(program, name);
    sc_findings_free(fixture);
    sc_findings_free(program);
  }
  free(huge);
}

static void assert_printable(const char *text)
{
  size_t n = strlen(text);

  for (size_t i = 0; i < n;) {
    size_t length = sc_utf8_length(text + i, n - i);

    assert_int_not_equal(length, 0);
    if (length == 1)
      assert_true(text[i] == '\n' || !iscntrl((unsigned char)text[i]));
    i += length;
  }
}

/* ---- CSV ------------------------------------------------------------------------------------------- */

/* Fields of the record at *at, which it goes past; a quote that is not closed ends the test. */
static size_t csv_fields(const char **at)
{
  size_t fields = 1;
  bool quoted = false;

  for (;; ++*at) {
    assert_true(**at || !quoted);
    if (**at == '"')
      quoted = !quoted;
    else if (**at == ',' && !quoted)
      fields++;
    else if (**at == '\n' && !quoted)
      break;
    assert_int_not_equal(**at, '\0');
  }
  ++*at;
  return fields;
}

static size_t csv_records(const char *text, size_t columns)
{
  size_t records = 0;

  for (const char *at = text; *at; records++)
    assert_int_equal(csv_fields(&at), columns);
  return records;
}

static void check_csv(const struct sc_findings *f, const char *name)
{
  char *sites = render(f, "csv", NULL), *syncs = render(f, "csv-syncs", NULL);
  const struct sc_process *p = &f->processes[0];
  size_t events = 0;
  struct sc_event event;

  (void)name;
  assert_printable(sites);
  assert_printable(syncs);
  assert_int_equal(csv_records(sites, 21), 1 + p->site_count);
  assert_true(sc_process_events_rewind(p));
  while (sc_process_events_next(p, &event))
    events += event.kind == SC_EVENT_SYNC;
  assert_int_equal(csv_records(syncs, 20), 1 + events);
  free(sites);
  free(syncs);
}

static void csv_has_one_whole_record_a_thing(void **state)
{
  (void)state;
  each_name(check_csv);
}

static void csv_of_syncs_adds_up_to_the_count(void **state)
{
  struct sc_findings *f = program_findings(1000, 3, NULL);
  char *text = render(f, "csv-syncs", NULL);

  (void)state;
  assert_true(f->processes[0].counts.syncs > 1000);
  assert_int_equal(csv_records(text, 20), 1 + f->processes[0].counts.syncs);
  assert_non_null(strstr(text, ",explicit,true,cudaStreamSynchronize,device-to-host,pinned,128,"));
  free(text);
  sc_findings_free(f);
}

static void simulated_waits_are_left_empty(void **state)
{
  struct sc_findings *f = program_findings(20, 1, NULL);
  char *text;

  (void)state;
  f->processes[0].simulated = true;
  text = render(f, "csv", NULL);
  assert_non_null(strstr(text, ",true,")); /* the column that says so */
  assert_null(strstr(text, "9000"));
  assert_null(strstr(text, "9.000"));
  free(text);
  sc_findings_free(f);
}

/* ---- folded stacks ----------------------------------------------------------------------------------- */

static void check_folded(const struct sc_findings *f, const char *name)
{
  char *text = render(f, "folded-count", NULL);
  uint64_t sum = 0, expected = 0;
  size_t lines = 0;

  assert_printable(text);
  for (const char *line = text; *line; lines++) {
    size_t n = strcspn(line, "\n");
    const char *space = memrchr(line, ' ', n);
    char number[24];
    uint64_t count;

    assert_non_null(space);
    snprintf(number, sizeof number, "%.*s", (int)(line + n - space - 1), space + 1);
    assert_true(sc_parse_u64(number, &count));
    sum += count;
    for (const char *at = line; at < line + n; at++) /* no frame is made up by a name */
      assert_false(*at == ';' && at[1] == 'b' && at[2] == ',');
    line += n + (line[n] == '\n');
  }
  for (size_t i = 0; i < f->processes[0].site_count; i++)
    expected += f->processes[0].sites[i].kind == SC_SITE_REFUSED ? 0 : f->processes[0].sites[i].count;
  assert_int_equal(sum, expected);
  assert_true(lines > 0);
  (void)name;
  free(text);
}

static void folded_stacks_keep_their_lines_and_sums(void **state)
{
  (void)state;
  each_name(check_folded);
}

static void folded_waits_are_refused_on_the_simulation(void **state)
{
  struct sc_findings *f = program_findings(20, 1, NULL);
  struct sc_out *out = sc_out_memory();
  struct sc_error err = {0};

  (void)state;
  f->processes[0].simulated = true;
  assert_int_equal(sc_report_write(f, sc_report_format_find("folded"), NULL, out, &err), SC_ERR_MEASURE);
  assert_non_null(strstr(err.message, "SIMULATED"));
  sc_out_free(out);
  sc_findings_free(f);
}

/* ---- Chrome trace ------------------------------------------------------------------------------------- */

static void check_chrome(const struct sc_findings *f, const char *name)
{
  char *text = render(f, "chrome", NULL);
  json_error_t error;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error), *events;
  json_t *event;
  size_t i, syncs = 0, expected = 0;
  struct sc_event one;

  if (!root)
    fail_msg("%s at line %d for %.40s", error.text, error.line, name);
  events = json_object_get(root, "traceEvents");
  assert_true(json_is_array(events));
  json_array_foreach(events, i, event) {
    const char *cat = json_string_value(json_object_get(event, "cat"));

    assert_true(json_is_string(json_object_get(event, "ph")));
    assert_true(json_is_string(json_object_get(event, "name")));
    syncs += cat && strcmp(cat, "sync") == 0;
  }
  assert_true(sc_process_events_rewind(&f->processes[0]));
  while (sc_process_events_next(&f->processes[0], &one))
    expected += one.kind == SC_EVENT_SYNC;
  assert_int_equal(syncs, expected);
  json_decref(root);
  free(text);
}

static void chrome_traces_are_json(void **state)
{
  (void)state;
  each_name(check_chrome);
}

static bool is_phase(const json_t *event, const char *phase)
{
  return strcmp(json_string_value(json_object_get(event, "ph")), phase) == 0;
}

static double number_of(const json_t *event, const char *key) { return json_number_value(json_object_get(event, key)); }

static void chrome_flows_lead_from_each_copy_to_its_sync(void **state)
{
  struct sc_findings *f = program_findings(60, 2, NULL);
  char *text = render(f, "chrome", NULL);
  json_t *root = json_loads(text, 0, NULL), *event, *other;
  json_t *events = json_object_get(root, "traceEvents");
  size_t i, k, starts = 0, ends = 0, begun = 0, ended = 0;

  (void)state;
  json_array_foreach(events, i, event) {
    starts += is_phase(event, "s");
    begun += is_phase(event, "b");
    ended += is_phase(event, "e");
    if (!is_phase(event, "f"))
      continue;
    ends++;
    bool found = false;
    json_array_foreach(events, k, other)
      found |= is_phase(other, "s") && number_of(other, "id") == number_of(event, "id") &&
               number_of(other, "tid") == number_of(event, "tid") && number_of(other, "ts") <= number_of(event, "ts");
    assert_true(found);
  }
  assert_int_equal(starts, 120); /* two copies before each of the 60 stream synchronises */
  assert_int_equal(ends, 60);
  assert_int_equal(begun, 2); /* the start/end range of each thread */
  assert_int_equal(ended, 2);
  json_decref(root);
  free(text);
  sc_findings_free(f);
}

static void chrome_says_simulated(void **state)
{
  struct sc_findings *f = program_findings(20, 1, NULL);
  char *text;

  (void)state;
  f->processes[0].simulated = true;
  text = render(f, "chrome", NULL);
  assert_non_null(strstr(text, "\"simulated\":true"));
  assert_non_null(strstr(text, "SIMULATED python train.py"));
  free(text);
  sc_findings_free(f);
}

/* ---- the tree of ranges --------------------------------------------------------------------------------- */

static void equal_modules_are_one_row_and_quiet_ones_none(void **state)
{
  struct sc_findings *f = model_findings();
  char *text = render(f, "text", NULL);

  (void)state;
  assert_non_null(strstr(text, "layers.0 to 3 "));
  assert_non_null(strstr(text, "layers.0.moe "));
  assert_null(strstr(text, "\nlayers.1 ")); /* the sites name theirs */
  assert_null(strstr(text, "experts"));
  assert_non_null(strstr(text, "and 32 ranges without a sync; JSON has them all."));
  free(text);
  sc_findings_free(f);
}

/* ---- HTML ------------------------------------------------------------------------------------------------ */

/* Every tag is one that the writer makes, and every element is closed in its turn. */
static void assert_sound_html(const char *text)
{
  static const char *const known[] = {"html", "head", "body", "title", "style", "header", "main", "footer", "section",
                                      "h1", "h2", "h3", "p", "ul", "li", "div", "table", "thead", "tbody", "tr", "th",
                                      "td", "code", "details", "summary", "figure", "figcaption", "svg", "desc", "g",
                                      "text", "span", "i", "fieldset", "legend", "label"};
  static const char *const empty[] = {"meta", "link", "input", "path", "rect", "circle"};
  char open[64][16];
  size_t depth = 0;

  for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
    bool closes = at[1] == '/', found = false;
    const char *start = at + 1 + closes;
    size_t n = strspn(start, "abcdefghijklmnopqrstuvwxyz0123456789");
    char tag[16] = "";

    if (strncmp(at, "<!DOCTYPE html>", 15) == 0)
      continue;
    assert_in_range(n, 1, sizeof tag - 1);
    memcpy(tag, start, n);
    for (size_t i = 0; i < SC_COUNTOF(empty); i++)
      found |= strcmp(tag, empty[i]) == 0;
    if (found)
      continue;
    for (size_t i = 0; i < SC_COUNTOF(known); i++)
      found |= strcmp(tag, known[i]) == 0;
    if (!found)
      fail_msg("a tag that is not ours: %.60s", at);
    if (!closes) {
      assert_true(depth < SC_COUNTOF(open));
      strcpy(open[depth++], tag);
    } else {
      assert_true(depth > 0);
      assert_string_equal(open[--depth], tag);
    }
  }
  assert_int_equal(depth, 0);
}

static void check_html(const struct sc_findings *f, const char *name)
{
  char *text = render(f, "html", NULL);

  (void)name;
  assert_printable(text);
  assert_sound_html(text);
  assert_null(strstr(text, "<script"));
  assert_null(strstr(text, "//")); /* no address of anything */
  assert_true(strlen(text) < 1000000);
  free(text);
}

static void html_has_no_foreign_structure(void **state)
{
  (void)state;
  each_name(check_html);
}

static void html_has_every_figure_of_the_main_command(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text = render(f, "html", NULL);

  (void)state;
  assert_sound_html(text);
  assert_non_null(strstr(text, "<title>Syncs a layer over experts</title>"));
  assert_non_null(strstr(text, "<title>Distribution of round trips</title>"));
  assert_non_null(strstr(text, "<title>Floor against measured forward</title>"));
  assert_non_null(strstr(text, "<title>Syncs by layer and expert</title>"));
  assert_non_null(strstr(text, "masked: 3.00 E + 0"));
  assert_non_null(strstr(text, "With 16 experts, a forward of 8 layers waits for the GPU 384 times in the masked layer, 8 "
                               "times in the sorted"));
  assert_null(strstr(text, "SIMULATED"));
  free(text);
  sc_findings_free(f);
}

static void html_of_the_simulation_has_no_times(void **state)
{
  struct sc_findings *f = fixture_simulated(), *program = program_findings(50, 1, NULL);
  char *text = render(f, "html", NULL);

  (void)state;
  assert_non_null(strstr(text, "SIMULATED"));
  assert_null(strstr(text, "<title>Distribution of round trips</title>"));
  assert_null(strstr(text, "<title>Floor against measured forward</title>"));
  free(text);
  program->processes[0].simulated = true;
  text = render(program, "html", NULL);
  assert_null(strstr(text, "class=\"timeline\""));
  assert_non_null(strstr(text, "<title>SIMULATED"));
  free(text);
  sc_findings_free(program);
  sc_findings_free(f);
}

static size_t count_of(const char *text, const char *what)
{
  size_t count = 0;

  for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
    count++;
  return count;
}

static void html_draws_a_lane_a_thread(void **state)
{
  struct sc_findings *f = program_findings(300, 3, NULL);
  char *text = render(f, "html", NULL);

  (void)state;
  assert_int_equal(count_of(text, "<div class=\"lane\">"), 3);
  assert_int_equal(count_of(text, "class=\"wait\" d="), 3);
  assert_int_equal(count_of(text, "class=\"poll\" d="), 3);
  assert_non_null(strstr(text, "The longest waits"));
  assert_non_null(strstr(text, "<td class=\"r\">250 us</td>"));
  free(text);
  sc_findings_free(f);
}

static void html_of_a_million_syncs_is_a_megabyte_at_most(void **state)
{
  struct sc_findings *f = program_findings(1000000, 40, NULL);
  char *text = render(f, "html", NULL);

  (void)state;
  assert_true(f->processes[0].counts.syncs >= 1000000);
  assert_sound_html(text);
  assert_in_range(strlen(text), 20000, 1000000);
  assert_non_null(strstr(text, "16 more threads waited"));
  free(text);
  sc_findings_free(f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(csv_has_one_whole_record_a_thing),
      cmocka_unit_test(csv_of_syncs_adds_up_to_the_count),
      cmocka_unit_test(simulated_waits_are_left_empty),
      cmocka_unit_test(folded_stacks_keep_their_lines_and_sums),
      cmocka_unit_test(folded_waits_are_refused_on_the_simulation),
      cmocka_unit_test(chrome_traces_are_json),
      cmocka_unit_test(chrome_flows_lead_from_each_copy_to_its_sync),
      cmocka_unit_test(chrome_says_simulated),
      cmocka_unit_test(equal_modules_are_one_row_and_quiet_ones_none),
      cmocka_unit_test(html_has_no_foreign_structure),
      cmocka_unit_test(html_has_every_figure_of_the_main_command),
      cmocka_unit_test(html_of_the_simulation_has_no_times),
      cmocka_unit_test(html_draws_a_lane_a_thread),
      cmocka_unit_test(html_of_a_million_syncs_is_a_megabyte_at_most),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
