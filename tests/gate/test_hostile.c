/* SPDX-License-Identifier: Apache-2.0
 * Names meant to harm, in every place where a string comes from outside, through every writer of the gate. */
#include "test_support.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/tally.h"
#include "gate/gate.h"

static const char *const names[] = {
    " ",
    "\"quoted\" 'single' \\ back\\slash",
    "</script><script>alert(1)</script>",
    "<!-- --> <img src=x onerror=alert(1)> &amp; ]]>",
    "a|b||c ``` ` `` **x** _y_ [z](javascript:alert(1)) ![i](u)",
    "line\nline\r\nline\n\n# heading\n| a | b |\n|---|---|\n",
    "::error file=/etc/passwd,line=1::owned\n::set-output name=x::y\n::stop-commands::z",
    "100%25 % %0A a:b,c::",
    "\t\v\b\f\a\x1b[31mred\x1b[0m\x7f",
    "bad \xff\xfe utf8 \xc3( \xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80 end\xe2\x82",
    "no characters of XML \xef\xbf\xbe \xef\xbf\xbf",
    "turned \xe2\x80\xae around \xe2\x81\xa6 \xe2\x80\xa8 here",
    "%s%n%d%%",
    "@everyone #1 https://example.com $x$",
};

static char *copy(const char *name)
{
  char *text = sc_strdup(name);
  assert_non_null(text);
  return text;
}

/* One range with two syncs of one site, all of whose names are this one. */
static struct sc_findings *hostile_findings(const char *name)
{
  struct sc_findings *f = sc_findings_new();
  struct sc_process *p = sc_findings_process(f);
  p->command = copy(name);
  p->rank = copy(name);
  p->host = copy(name);
  p->cwd = copy("/home");
  p->ranges = calloc(2, sizeof *p->ranges);
  p->range_count = p->range_cap = 2;
  for (size_t i = 0; i < 2; ++i) {
    p->ranges[i] = (struct sc_range_findings){.path = copy(name),
                                              .name = i ? sc_asprintf("synccount.allow:%s", name) : copy(name),
                                              .domain = copy(name),
                                              .level = i ? copy("allow") : NULL,
                                              .occurrences = 1,
                                              .min = 2,
                                              .max = 2,
                                              .median = 2};
    p->ranges[i].total.syncs = 2;
    p->ranges[i].total.submissions = 1;
  }
  p->threads = calloc(1, sizeof *p->threads);
  p->thread_count = p->thread_cap = 1;
  p->threads[0].name = copy(name);
  p->sites = calloc(1, sizeof *p->sites);
  p->site_count = p->site_cap = 1;
  p->sites[0] = (struct sc_site){.id = copy("id"), .api = copy(name), .pattern = copy(name), .range = copy(name)};
  p->sites[0].count = 2;
  p->sites[0].python = calloc(1, sizeof *p->sites[0].python);
  p->sites[0].python_count = 1;
  p->sites[0].python[0] =
      (struct sc_frame){.file = sc_asprintf("/home/%s", name), .function = copy(name), .line = 7, .module = SIZE_MAX};
  p->counts.syncs = 2;
  p->counts.submissions = 1;
  assert_true(sc_findings_warn(f, "%s", name));
  p->tally = calloc(1, sizeof *p->tally);
  p->tally->places = calloc(1, sizeof *p->tally->places);
  p->tally->place_count = 1;
  p->tally->places[0] = (struct sc_place){.range = 0, .allow = SC_NOWHERE, .count = 2};
  p->tally->profiles = calloc(1, sizeof *p->tally->profiles);
  p->tally->profile_count = 1;
  p->tally->profiles[0] = (struct sc_profile){.times = 1, .part_count = 1};
  p->tally->profiles[0].parts = calloc(1, sizeof *p->tally->profiles[0].parts);
  p->tally->profiles[0].parts[0].count = 2;
  return f;
}

static struct sc_gate_report *hostile_report(struct sc_gate *gate, const struct sc_findings *f, const char *name)
{
  struct sc_gate_report *report = NULL;
  struct sc_error err = {0};
  struct sc_gate_expectation *e = sc_gate_add(gate);
  const struct sc_gate_facts facts = {.source = name};
  e->range = copy("*");
  e->measure = SC_GATE_PER_OCCURRENCE;
  e->compare = SC_GATE_AT_MOST;
  e->high = 1;
  e->reason = copy(name);
  assert_int_equal(sc_gate_complete(e, &err), SC_OK);
  free(e->text);
  e->text = copy(name);
  struct sc_gate_exception *x = sc_gate_add_exception(gate);
  x->site = copy("nothing");
  x->reason = copy(name);
  gate->name = copy(name);
  assert_int_equal(sc_gate_judge(gate, f, &facts, &report, &err), SC_OK);
  assert_int_equal(report->verdict, SC_GATE_FAILED);
  assert_int_equal(report->results[0].extra_count, 1);
  return report;
}

/* No control character but the line's end, and valid UTF-8. */
static void assert_printable(const struct sc_buf *buf)
{
  assert_false(buf->failed);
  for (size_t i = 0; i < buf->len;) {
    size_t length = sc_utf8_length(buf->data + i, buf->len - i);
    unsigned char first = (unsigned char)buf->data[i];
    if (length == 0 || (first < 0x20 && first != '\n') || first == 0x7f)
      fail_msg("byte 0x%02x at %zu of '%.300s'", first, i, buf->data);
    i += length;
  }
}

static void text_stays_one_line_a_fact(const struct sc_gate_report *report)
{
  struct sc_buf buf = {0};
  sc_gate_write_text(report, false, &buf);
  assert_printable(&buf);
  for (const char *line = buf.data; *line; line += strcspn(line, "\n") + 1)
    assert_true(strncmp(line, "::", 2) != 0);
  sc_buf_free(&buf);
}

/* What GitHub would make a link or a mention. */
static void assert_no_links(const struct sc_buf *buf)
{
  assert_null(strstr(buf->data, "://"));
  for (const char *at = buf->data; (at = strchr(at, '@')) != NULL; ++at)
    assert_int_equal(strncmp(at + 1, "&#8203;", 7), 0);
  for (const char *at = buf->data; (at = strpbrk(at, "[]")) != NULL; ++at)
    assert_true(at > buf->data && at[-1] == '\\');
}

static void markdown_holds_no_markup(const struct sc_gate_report *report)
{
  struct sc_buf buf = {0};
  sc_gate_write_markdown(report, &buf);
  assert_printable(&buf);
  assert_null(strchr(buf.data, '<'));
  assert_no_links(&buf);
  size_t rows = 0;
  for (const char *at = buf.data; (at = strstr(at, "\n| ")) != NULL; ++at)
    ++rows;
  assert_int_equal(rows, 4); /* two headings, one expectation, one place */
  sc_buf_free(&buf);
}

static void json_is_json_and_keeps_the_name(const struct sc_gate_report *report, const char *name)
{
  struct sc_buf buf = {0}, valid = {0};
  sc_gate_write_json(report, &buf);
  assert_false(buf.failed);
  json_error_t why;
  json_t *root = json_loadb(buf.data, buf.len, JSON_REJECT_DUPLICATES, &why);
  if (!root)
    fail_msg("%s", why.text);
  sc_buf_put_valid(&valid, name, strlen(name));
  assert_string_equal(json_string_value(json_object_get(root, "gate")), valid.data);
  const json_t *expectation = json_array_get(json_object_get(root, "expectations"), 0);
  assert_string_equal(json_string_value(json_object_get(expectation, "reason")), valid.data);
  json_decref(root);
  sc_buf_free(&buf);
  sc_buf_free(&valid);
}

/* One command a line, and none of its own. */
static void annotations_are_one_command(const struct sc_gate_report *report)
{
  struct sc_buf buf = {0};
  sc_gate_write_annotations(report, &buf);
  assert_printable(&buf);
  assert_non_null(buf.data);
  assert_int_equal(strncmp(buf.data, "::error file=", 13), 0);
  const char *end = strchr(buf.data, '\n');
  assert_ptr_equal(end, buf.data + buf.len - 1);
  const char *message = strstr(buf.data + 2, "::");
  assert_non_null(message);
  assert_null(memchr(buf.data + 2, ':', (size_t)(message - buf.data - 2)));
  sc_buf_free(&buf);
}

static void junit_is_valid(const struct sc_gate_report *report)
{
  struct sc_buf buf = {0};
  char path[] = "/tmp/synccount-junit-XXXXXX";
  const char *source = getenv("SC_SOURCE");
  sc_gate_write_junit(report, &buf);
  assert_printable(&buf);
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, buf.data, buf.len), (ssize_t)buf.len);
  close(fd);
  char *command = sc_asprintf("xmllint --huge --noout --schema '%s/tests/gate/junit.xsd' %s 2>/dev/null", source, path);
  int status = system(command);
  unlink(path);
  free(command);
  if (status != 0)
    fail_msg("not accepted by the schema: %.2000s", buf.data);
  sc_buf_free(&buf);
}

static void through_every_writer(const char *name)
{
  struct sc_gate gate = {0};
  struct sc_findings *f = hostile_findings(name);
  struct sc_gate_report *report = hostile_report(&gate, f, name);
  text_stays_one_line_a_fact(report);
  markdown_holds_no_markup(report);
  json_is_json_and_keeps_the_name(report, name);
  annotations_are_one_command(report);
  junit_is_valid(report);
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  sc_findings_free(f);
}

static void no_name_harms_a_writer(void **state)
{
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(names); ++i)
    through_every_writer(names[i]);
}

static void a_name_of_64_kib_is_cut_for_people(void **state)
{
  struct sc_gate gate = {0};
  struct sc_buf buf = {0};
  char *name = malloc(65536 + 1);
  (void)state;
  memset(name, 'n', 65536);
  name[65536] = '\0';
  through_every_writer(name);
  struct sc_findings *f = hostile_findings(name);
  struct sc_gate_report *report = hostile_report(&gate, f, name);
  sc_gate_write_annotations(report, &buf);
  assert_true(buf.len < 4096);
  sc_buf_free(&buf);
  sc_gate_report_free(report);
  sc_gate_free(&gate);
  sc_findings_free(f);
  free(name);
}

static void no_name_harms_a_comparison(void **state)
{
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    struct sc_findings *before = hostile_findings("before"), *after = hostile_findings(names[i]);
    struct sc_diff *diff = NULL;
    struct sc_error err = {0};
    struct sc_buf text = {0}, markdown = {0}, json = {0};
    assert_int_equal(sc_diff_make(before, after, &diff, &err), SC_OK);
    sc_diff_write_text(diff, &text);
    assert_printable(&text);
    sc_diff_write_markdown(diff, &markdown);
    assert_printable(&markdown);
    assert_null(strchr(markdown.data, '<'));
    assert_no_links(&markdown);
    sc_diff_write_json(diff, &json);
    json_t *root = json_loadb(json.data, json.len, 0, NULL);
    assert_non_null(root);
    json_decref(root);
    sc_buf_free(&text);
    sc_buf_free(&markdown);
    sc_buf_free(&json);
    sc_diff_free(diff);
    sc_findings_free(before);
    sc_findings_free(after);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_name_harms_a_writer),
      cmocka_unit_test(a_name_of_64_kib_is_cut_for_people),
      cmocka_unit_test(no_name_harms_a_comparison),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
