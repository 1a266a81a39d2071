/* SPDX-License-Identifier: Apache-2.0
 * Folded stacks, "outer;inner;call N" a line: what flamegraph.pl, inferno and speedscope read. Python frames where there
 * are any, else native ones, else ranges. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/content.h"
#include "report/escape.h"
#include "report/writers.h"

static void put_frame(struct sc_buf *line, const struct sc_process *p, const struct sc_frame *frame)
{
  sc_buf_puts(line, ";");
  sc_escape_folded(line, frame->function ? frame->function : "?");
  if (!frame->file)
    return;
  sc_buf_puts(line, " (");
  sc_escape_folded(line, sc_process_file(p, frame->file));
  if (frame->line)
    sc_buf_printf(line, ":%" PRIu64, frame->line);
  sc_buf_puts(line, ")");
}

static void put_ranges(struct sc_buf *line, const char *path)
{
  for (const char *at = path; at && *at;) {
    size_t n = strcspn(at, "/");
    char *name = sc_strndup(at, n);

    sc_buf_puts(line, ";");
    if (name)
      sc_escape_folded(line, name);
    else
      line->failed = true;
    free(name);
    at += n + (at[n] == '/');
  }
}

/* The root: what ran. Several processes of one command stay apart. */
static void put_process(struct sc_buf *line, const struct sc_process *p, bool several)
{
  sc_escape_folded(line, p->command ? p->command : "process");
  if (p->rank) {
    sc_buf_puts(line, " rank ");
    sc_escape_folded(line, p->rank);
  }
  if (several)
    sc_buf_printf(line, " [%" PRIu64 "]", p->pid);
}

static void put_site(struct sc_buf *line, const struct sc_process *p, const struct sc_site *site, bool several)
{
  put_process(line, p, several);
  if (site->python_count) {
    for (size_t i = site->python_count; i > 0; i--)
      put_frame(line, p, &site->python[i - 1]);
  } else if (site->native_count) {
    for (size_t i = site->native_count; i > 0; i--)
      put_frame(line, p, &site->native[i - 1]);
  } else {
    put_ranges(line, site->range);
  }
  sc_buf_puts(line, ";");
  sc_escape_folded(line, site->api ? site->api : "?");
  sc_buf_printf(line, " (%s)", site->kind == SC_SITE_SYNC ? sc_class_name(site->cls) : sc_site_kind_name(site->kind));
}

static enum sc_status write_folded(const struct sc_findings *f, struct sc_out *out, bool by_count, struct sc_error *err)
{
  if (!by_count && sc_findings_simulated(f))
    return sc_error_set(err, SC_ERR_MEASURE,
                        "format folded is weighted by waits, and the simulated device has none (SIMULATED): use "
                        "--format folded-count");
  for (size_t i = 0; i < f->process_count; i++) {
    const struct sc_process *p = &f->processes[i];

    for (size_t k = 0; k < p->site_count; k++) {
      const struct sc_site *site = &p->sites[k];
      uint64_t weight = by_count ? site->count : isnan(site->wait_total_us) ? 0 : (uint64_t)(site->wait_total_us * 1e3);
      struct sc_buf line = {0};

      if (site->kind == SC_SITE_REFUSED || weight == 0)
        continue;
      put_site(&line, p, site, f->process_count > 1);
      sc_buf_printf(&line, " %" PRIu64 "\n", weight);
      if (!line.failed)
        sc_out_write(out, line.data, line.len);
      bool failed = line.failed;
      sc_buf_free(&line);
      if (failed)
        return sc_error_set(err, SC_ERR_NOMEM, "no memory to write a stack");
    }
  }
  return SC_OK;
}

enum sc_status sc_report_write_folded(const struct sc_findings *findings, const struct sc_report_options *options,
                                      struct sc_out *out, struct sc_error *err)
{
  (void)options;
  return write_folded(findings, out, false, err);
}

enum sc_status sc_report_write_folded_count(const struct sc_findings *findings, const struct sc_report_options *options,
                                            struct sc_out *out, struct sc_error *err)
{
  (void)options;
  return write_folded(findings, out, true, err);
}
