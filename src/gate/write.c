/* SPDX-License-Identifier: Apache-2.0
 * Words and numbers of the verdict, the same in every format. */
#include "gate/write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char gate_simulated[] = "SIMULATED: the CUDA device was simulated. Counts are real, times are not.";

static const struct {
  const char *one, *many; /* what is compared */
  const char *place, *places;
  const char *each; /* "a layer" */
} words[SC_GATE_MEASURE_COUNT] = {
    [SC_GATE_PER_LAYER] = {"layer call", "layer calls", "range", "ranges", "a layer"},
    [SC_GATE_PER_FORWARD] = {"run", "runs", NULL, NULL, "a forward"},
    [SC_GATE_PER_OCCURRENCE] = {"occurrence", "occurrences", "range", "ranges", "an occurrence"},
    [SC_GATE_PER_STEP] = {"step", "steps", NULL, NULL, "a step"},
    [SC_GATE_TOTAL] = {"process", "processes", NULL, NULL, "in one"},
    [SC_GATE_WAIT] = {"process", "processes", NULL, NULL, "in one"},
    [SC_GATE_FLOOR] = {"run", "runs", NULL, NULL, "a forward"},
    [SC_GATE_POLL_WAITS] = {"process", "processes", NULL, NULL, "in one"},
};

void gate_put_name(struct sc_buf *buf, const char *text)
{
  size_t n = strlen(text), shown = n > NAME_MAX_SHOWN ? NAME_MAX_SHOWN : n;
  while (shown < n && shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80) /* not inside a character */
    --shown;
  sc_buf_put_printable(buf, text, shown);
  if (shown < n)
    sc_buf_puts(buf, "...");
}

const char *gate_name(const struct sc_gate_report *report)
{
  return report->gate->name ? report->gate->name : "synccount check";
}

void gate_put_number(struct sc_buf *buf, enum sc_gate_measure measure, double value)
{
  char text[SC_TIME_TEXT];
  if (sc_gate_measure_is_time(measure))
    sc_buf_puts(buf, sc_format_time_us(value, text));
  else if (value == floor(value))
    sc_buf_printf(buf, "%.0f", value);
  else
    sc_buf_printf(buf, "%.4g", value);
}

/* "1 to 5" */
static void put_span(struct sc_buf *buf, enum sc_gate_measure measure, double low, double high)
{
  gate_put_number(buf, measure, low);
  if (high != low) {
    sc_buf_puts(buf, " to ");
    gate_put_number(buf, measure, high);
  }
}

void gate_put_found(struct sc_buf *buf, const struct sc_gate_result *r)
{
  const enum sc_gate_measure m = r->expectation->measure;
  if (r->compared == 0) {
    sc_buf_puts(buf, "nothing was compared");
  } else {
    sc_buf_puts(buf, "found ");
    put_span(buf, m, r->low, r->high);
    sc_buf_printf(buf, " in %" PRIu64 " %s", r->compared,
                  r->of_runs         ? (r->compared == 1 ? "run" : "runs")
                  : r->compared == 1 ? words[m].one
                                     : words[m].many);
    if (words[m].place && !r->of_runs)
      sc_buf_printf(buf, " of %" PRIu64 " %s", r->places, r->places == 1 ? words[m].place : words[m].places);
    if (r->failed)
      sc_buf_printf(buf, ", %" PRIu64 " of them not as expected", r->failed);
  }
  if (r->warmup)
    sc_buf_printf(buf, "; %" PRIu64 " more %s warm-up", r->warmup, r->warmup == 1 ? "was" : "were");
}

void gate_put_place(struct sc_buf *buf, const struct sc_gate_extra *extra)
{
  if (extra->op) {
    sc_buf_puts(buf, "op ");
    gate_put_name(buf, extra->op);
    return;
  }
  if (extra->site)
    gate_put_name(buf, extra->site);
  else
    gate_put_name(buf, extra->pattern ? extra->pattern : "(no stack)");
  if (extra->api)
    sc_buf_printf(buf, " (");
  if (extra->api)
    gate_put_name(buf, extra->api);
  if (extra->api)
    sc_buf_printf(buf, "%s%s)", extra->cls ? ", " : "", extra->cls ? extra->cls : "");
}

void gate_put_amount(struct sc_buf *buf, enum sc_gate_measure m, const struct sc_gate_extra *extra)
{
  gate_put_number(buf, SC_GATE_TOTAL, extra->most);
  sc_buf_printf(buf, " %s, %" PRIu64 " in all", words[m].each, extra->total);
  if (!extra->range)
    return;
  sc_buf_puts(buf, ", in range ");
  gate_put_name(buf, extra->range);
  if (extra->other_ranges)
    sc_buf_printf(buf, " and %zu more", extra->other_ranges);
}

void gate_put_failure(struct sc_buf *buf, enum sc_gate_measure m, const struct sc_gate_failure *failure)
{
  gate_put_name(buf, failure->what);
  sc_buf_puts(buf, ": ");
  put_span(buf, m, failure->low, failure->high);
  if (failure->times == 1)
    sc_buf_printf(buf, " in one %s", words[m].one);
  else if (failure->times && failure->low == failure->high)
    sc_buf_printf(buf, " in each of %" PRIu64 " %s", failure->times, words[m].many);
  else if (failure->times)
    sc_buf_printf(buf, " in %" PRIu64 " %s", failure->times, words[m].many);
}

const char *gate_shout(enum sc_gate_verdict verdict)
{
  static const char *const names[] = {"passed", "FAILED", "NOT MEASURED"};
  return (unsigned)verdict < SC_COUNTOF(names) ? names[verdict] : "unknown";
}

void gate_put_headline(struct sc_buf *buf, const struct sc_gate_report *report)
{
  size_t counts[3] = {0};
  for (size_t i = 0; i < report->result_count; ++i)
    ++counts[report->results[i].verdict];
  const size_t all = report->result_count;
  sc_buf_printf(buf, "%s: ", gate_shout(report->verdict));
  if (report->trouble)
    gate_put_name(buf, report->trouble);
  else if (report->verdict == SC_GATE_PASSED)
    sc_buf_printf(buf, "%zu expectation%s as asked", all, all == 1 ? "" : "s");
  else if (report->verdict == SC_GATE_FAILED)
    sc_buf_printf(buf, "%zu of %zu expectation%s failed", counts[SC_GATE_FAILED], all, all == 1 ? "" : "s");
  if (!report->trouble && counts[SC_GATE_UNMEASURED])
    sc_buf_printf(buf, "%s%zu of %zu could not be measured", report->verdict == SC_GATE_FAILED ? ", " : "",
                  counts[SC_GATE_UNMEASURED], all);
  if (report->simulated)
    sc_buf_puts(buf, " (SIMULATED)");
}
