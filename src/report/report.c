/* SPDX-License-Identifier: Apache-2.0
 * The table of formats. A new format is one file and one line here. */
#include <string.h>

#include "report/writers.h"

static const struct sc_report_format formats[] = {
    {.name = "text", .summary = "for a terminal: the answer first, then tables", .extension = "txt",
     .write = sc_report_write_text},
    {.name = "json", .summary = "schema synccount/report/1, for scripts", .extension = "json",
     .write = sc_report_write_json},
    {.name = "markdown", .summary = "the same as text, to paste into an issue", .extension = "md",
     .write = sc_report_write_markdown},
    {.name = "html", .summary = "the same with figures, one file for a browser", .extension = "html", .events = true,
     .write = sc_report_write_html},
    {.name = "chrome", .summary = "trace events for Perfetto's UI and chrome://tracing", .extension = "trace.json",
     .programs = true, .events = true, .write = sc_report_write_chrome},
    {.name = "folded", .summary = "folded stacks for flame graphs, weighted by nanoseconds waited", .extension = "folded",
     .programs = true, .write = sc_report_write_folded},
    {.name = "folded-count", .summary = "the same, weighted by the count of syncs", .extension = "folded",
     .programs = true, .write = sc_report_write_folded_count},
    {.name = "csv", .summary = "one line a site", .extension = "csv", .programs = true, .write = sc_report_write_csv},
    {.name = "csv-syncs", .summary = "one line a sync", .extension = "csv", .programs = true, .events = true,
     .write = sc_report_write_csv_syncs},
};

const struct sc_report_format *sc_report_format_find(const char *name)
{
  for (size_t i = 0; name && i < SC_COUNTOF(formats); i++) {
    if (strcmp(formats[i].name, name) == 0)
      return &formats[i];
  }
  return NULL;
}

const struct sc_report_format *sc_report_format_at(size_t index)
{
  return index < SC_COUNTOF(formats) ? &formats[index] : NULL;
}

enum sc_status sc_report_write(const struct sc_findings *findings, const struct sc_report_format *format,
                               const struct sc_report_options *options, struct sc_out *out, struct sc_error *err)
{
  static const struct sc_report_options defaults;
  enum sc_status status = format->write(findings, options ? options : &defaults, out, err);

  return status ? status : sc_out_flush(out, err);
}
