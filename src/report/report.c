/* SPDX-License-Identifier: Apache-2.0
 * The table of formats. A new format is one file and one line here. */
#include <string.h>

#include "report/writers.h"

static const struct sc_report_format formats[] = {
    {"text", "for a terminal: the answer first, then tables", "txt", sc_report_write_text},
    {"json", "schema synccount/report/1, for scripts", "json", sc_report_write_json},
    {"markdown", "the same as text, to paste into an issue", "md", sc_report_write_markdown},
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
