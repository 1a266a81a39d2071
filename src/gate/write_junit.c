/* SPDX-License-Identifier: Apache-2.0
 * The verdict as JUnit XML: one test case an expectation, "not measured" is an error. */
#include <inttypes.h>
#include <string.h>

#include "gate/write.h"

/* Three bytes that are valid UTF-8 and no character of XML: U+FFFE and U+FFFF. */
static bool is_no_character(const char *text, size_t n)
{
  return n >= 3 && (unsigned char)text[0] == 0xef && (unsigned char)text[1] == 0xbf && (unsigned char)text[2] >= 0xbe;
}

/* text must be printable; newlines are kept as references. */
static void put_xml(struct sc_buf *buf, const char *text, size_t n)
{
  for (size_t i = 0; i < n; ++i) {
    if (is_no_character(text + i, n - i)) {
      sc_buf_puts(buf, "\xef\xbf\xbd");
      i += 2;
      continue;
    }
    switch (text[i]) {
    case '<': sc_buf_puts(buf, "&lt;"); break;
    case '>': sc_buf_puts(buf, "&gt;"); break;
    case '&': sc_buf_puts(buf, "&amp;"); break;
    case '"': sc_buf_puts(buf, "&quot;"); break;
    case '\'': sc_buf_puts(buf, "&apos;"); break;
    case '\n': sc_buf_puts(buf, "&#10;"); break;
    default: sc_buf_append(buf, &text[i], 1); break;
    }
  }
}

static void put_xml_name(struct sc_buf *buf, const char *text)
{
  struct sc_buf plain = {0};
  sc_buf_put_printable(&plain, text, strlen(text)); /* whole: a test is known by its name */
  buf->failed |= plain.failed;
  if (plain.data && !plain.failed)
    put_xml(buf, plain.data, plain.len);
  sc_buf_free(&plain);
}

/* Takes the plain text over. */
static void put_xml_buf(struct sc_buf *buf, struct sc_buf *plain)
{
  buf->failed |= plain->failed;
  if (plain->data && !plain->failed)
    put_xml(buf, plain->data, plain->len);
  sc_buf_free(plain);
}

static void details(const struct sc_gate_result *r, struct sc_buf *plain)
{
  const enum sc_gate_measure m = r->expectation->measure;
  if (r->expectation->reason) {
    sc_buf_puts(plain, "expected because: ");
    gate_put_name(plain, r->expectation->reason);
    sc_buf_puts(plain, "\n");
  }
  for (size_t i = 0; i < r->failure_count; ++i) {
    gate_put_failure(plain, m, &r->failures[i]);
    sc_buf_puts(plain, "\n");
  }
  for (size_t i = 0; i < r->extra_count; ++i) {
    gate_put_place(plain, &r->extras[i]);
    sc_buf_puts(plain, ": ");
    gate_put_amount(plain, m, &r->extras[i]);
    sc_buf_puts(plain, "\n");
  }
}

static void put_problem(const struct sc_gate_result *r, struct sc_buf *buf)
{
  const bool failed = r->verdict == SC_GATE_FAILED;
  struct sc_buf message = {0}, text = {0};
  gate_put_found(&message, r);
  if (r->why) {
    sc_buf_puts(&message, ": ");
    gate_put_name(&message, r->why);
  }
  details(r, &text);
  sc_buf_printf(buf, "      <%s type=\"%s\" message=\"", failed ? "failure" : "error",
                failed ? "failed" : "not measured");
  put_xml_buf(buf, &message);
  sc_buf_puts(buf, "\">");
  put_xml_buf(buf, &text);
  sc_buf_printf(buf, "</%s>\n", failed ? "failure" : "error");
}

static void put_case(const struct sc_gate_report *report, const struct sc_gate_result *r, struct sc_buf *buf)
{
  sc_buf_puts(buf, "    <testcase classname=\"");
  put_xml_name(buf, gate_name(report));
  sc_buf_puts(buf, "\" name=\"");
  put_xml_name(buf, r->expectation->text);
  if (r->verdict == SC_GATE_PASSED) {
    sc_buf_puts(buf, "\"/>\n");
    return;
  }
  sc_buf_puts(buf, "\">\n");
  put_problem(r, buf);
  sc_buf_puts(buf, "    </testcase>\n");
}

static void put_trouble(const struct sc_gate_report *report, struct sc_buf *buf)
{
  sc_buf_puts(buf, "    <testcase classname=\"");
  put_xml_name(buf, gate_name(report));
  sc_buf_puts(buf, "\" name=\"measurement\">\n      <error type=\"not measured\" message=\"");
  put_xml_name(buf, report->trouble);
  sc_buf_puts(buf, "\"></error>\n    </testcase>\n");
}

static void put_counts(const struct sc_gate_report *report, struct sc_buf *buf)
{
  size_t failures = 0, errors = report->trouble != NULL;
  for (size_t i = 0; i < report->result_count; ++i) {
    failures += report->results[i].verdict == SC_GATE_FAILED;
    errors += report->results[i].verdict == SC_GATE_UNMEASURED;
  }
  sc_buf_printf(buf, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"", report->result_count + (report->trouble != NULL),
                failures, errors);
}

static void put_output(const struct sc_gate_report *report, struct sc_buf *buf)
{
  struct sc_buf text = {0};
  sc_gate_write_text(report, true, &text);
  sc_buf_puts(buf, "    <system-out>");
  put_xml_buf(buf, &text);
  sc_buf_puts(buf, "</system-out>\n");
}

void sc_gate_write_junit(const struct sc_gate_report *report, struct sc_buf *buf)
{
  sc_buf_puts(buf, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"synccount\"");
  put_counts(report, buf);
  sc_buf_puts(buf, ">\n  <testsuite name=\"");
  put_xml_name(buf, gate_name(report));
  sc_buf_puts(buf, report->simulated ? " (SIMULATED)\"" : "\"");
  put_counts(report, buf);
  sc_buf_puts(buf, " skipped=\"0\">\n");
  for (size_t i = 0; i < report->result_count; ++i)
    put_case(report, &report->results[i], buf);
  if (report->trouble)
    put_trouble(report, buf);
  put_output(report, buf);
  sc_buf_puts(buf, "  </testsuite>\n</testsuites>\n");
}
