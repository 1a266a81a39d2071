/* SPDX-License-Identifier: Apache-2.0
 * The verdict as workflow commands of GitHub Actions, which become annotations at the lines that sync. */
#include <inttypes.h>
#include <string.h>

#include "gate/write.h"

#define ANNOTATIONS_MAX 10 /* GitHub shows ten errors of a step */

/* A command ends at its line's end; a property also at ':' and ','. */
static void put_data(struct sc_buf *buf, const char *text, size_t n, bool property)
{
  for (size_t i = 0; i < n; ++i) {
    if (strchr(property ? "%\r\n:," : "%\r\n", text[i]) && text[i])
      sc_buf_printf(buf, "%%%02X", (unsigned char)text[i]);
    else
      sc_buf_append(buf, &text[i], 1);
  }
}

static void put_data_buf(struct sc_buf *buf, struct sc_buf *plain, bool property)
{
  buf->failed |= plain->failed;
  if (plain->data && !plain->failed)
    put_data(buf, plain->data, plain->len, property);
  sc_buf_free(plain);
}

static void put_property(struct sc_buf *buf, const char *name, const char *value)
{
  struct sc_buf plain = {0};
  gate_put_name(&plain, value);
  sc_buf_printf(buf, "%s=", name);
  put_data_buf(buf, &plain, true);
}

/* "::error file=...,line=...,title=...::"; extra may be NULL. */
static void open_command(struct sc_buf *buf, const struct sc_gate_extra *extra, const char *title)
{
  sc_buf_puts(buf, "::error ");
  if (extra) {
    put_property(buf, "file", extra->relative);
    sc_buf_printf(buf, ",line=%" PRIu64 ",", extra->line);
  }
  put_property(buf, "title", title);
  sc_buf_puts(buf, "::");
}

static bool has_place(const struct sc_gate_extra *extra) { return extra->in_tree && extra->relative && extra->line; }

static const char *title_of(const struct sc_gate_report *report)
{
  return report->simulated ? "synccount (SIMULATED)" : "synccount";
}

static void annotate_extra(const struct sc_gate_report *report, const struct sc_gate_result *r,
                           const struct sc_gate_extra *extra, struct sc_buf *buf)
{
  struct sc_buf message = {0};
  open_command(buf, extra, title_of(report));
  gate_put_name(&message, r->expectation->text);
  sc_buf_puts(&message, " failed: ");
  gate_put_place(&message, extra);
  sc_buf_puts(&message, ": ");
  gate_put_amount(&message, r->expectation->measure, extra);
  if (r->expectation->reason) {
    sc_buf_puts(&message, "\n");
    gate_put_name(&message, r->expectation->reason);
  }
  put_data_buf(buf, &message, false);
  sc_buf_puts(buf, "\n");
}

static void annotate_result(const struct sc_gate_report *report, const struct sc_gate_result *r, struct sc_buf *buf)
{
  struct sc_buf message = {0};
  open_command(buf, NULL, title_of(report));
  gate_put_name(&message, r->expectation->text);
  sc_buf_printf(&message, " %s: ", r->verdict == SC_GATE_FAILED ? "failed" : "could not be measured");
  if (r->why)
    gate_put_name(&message, r->why);
  else
    gate_put_found(&message, r);
  for (size_t i = 0; i < r->extra_count && i < 5; ++i) {
    sc_buf_puts(&message, "\n");
    gate_put_place(&message, &r->extras[i]);
    sc_buf_puts(&message, ": ");
    gate_put_amount(&message, r->expectation->measure, &r->extras[i]);
  }
  put_data_buf(buf, &message, false);
  sc_buf_puts(buf, "\n");
}

void sc_gate_write_annotations(const struct sc_gate_report *report, struct sc_buf *buf)
{
  size_t left = ANNOTATIONS_MAX;
  if (report->trouble) {
    struct sc_buf message = {0};
    open_command(buf, NULL, title_of(report));
    gate_put_name(&message, report->trouble);
    put_data_buf(buf, &message, false);
    sc_buf_puts(buf, "\n");
    --left;
  }
  for (size_t i = 0; i < report->result_count; ++i) {
    const struct sc_gate_result *r = &report->results[i];
    bool placed = false;
    if (r->verdict == SC_GATE_PASSED)
      continue;
    for (size_t k = 0; k < r->extra_count && left; ++k) {
      if (!has_place(&r->extras[k]))
        continue;
      annotate_extra(report, r, &r->extras[k], buf);
      placed = true;
      --left;
    }
    if (!placed && left) {
      annotate_result(report, r, buf);
      --left;
    }
  }
}
