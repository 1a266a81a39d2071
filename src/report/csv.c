/* SPDX-License-Identifier: Apache-2.0
 * Comma-separated values (RFC 4180, lines end in LF): one line a site, or one line a sync. What was not measured is
 * empty. */
#include <inttypes.h>
#include <math.h>

#include "report/content.h"
#include "report/escape.h"
#include "report/writers.h"

static void put_text(struct sc_buf *line, const char *text)
{
  sc_buf_puts(line, ",");
  sc_escape_csv(line, text);
}

static void put_u64(struct sc_buf *line, uint64_t n) { sc_buf_printf(line, ",%" PRIu64, n); }

static void put_real(struct sc_buf *line, double value)
{
  sc_buf_puts(line, ",");
  if (isfinite(value))
    sc_buf_printf(line, "%.3f", value);
}

/* The columns that every line begins with. */
static void put_process(struct sc_buf *line, const struct sc_process *p, bool simulated)
{
  sc_escape_csv(line, p->host);
  put_u64(line, p->pid);
  put_text(line, p->rank);
  sc_buf_puts(line, simulated ? ",true" : ",false");
}
#define PROCESS_COLUMNS "host,pid,rank,simulated"

static void put_place(struct sc_buf *line, const struct sc_process *p, const struct sc_site *site)
{
  const struct sc_frame *frame = site ? sc_site_frame(site) : NULL;

  put_text(line, frame && frame->file ? sc_process_file(p, frame->file) : NULL);
  sc_buf_puts(line, ",");
  if (frame && frame->line)
    sc_buf_printf(line, "%" PRIu64, frame->line);
  put_text(line, frame ? frame->function : NULL);
}

static enum sc_status end_line(struct sc_buf *line, struct sc_out *out, struct sc_error *err)
{
  sc_buf_puts(line, "\n");
  if (line->failed)
    return sc_error_set(err, SC_ERR_NOMEM, "no memory to write a line");
  sc_out_write(out, line->data, line->len);
  line->len = 0;
  return SC_OK;
}

static void put_site(struct sc_buf *line, const struct sc_process *p, const struct sc_site *site, bool simulated)
{
  put_process(line, p, simulated);
  put_text(line, site->id);
  put_text(line, sc_site_kind_name(site->kind));
  put_text(line, site->kind == SC_SITE_SYNC ? sc_class_name(site->cls) : NULL);
  put_text(line, site->api);
  put_text(line, site->pattern);
  put_text(line, site->direction);
  put_text(line, site->memory);
  put_u64(line, site->bytes);
  put_u64(line, site->count);
  put_real(line, site->per_step);
  put_u64(line, site->read_backs);
  put_real(line, simulated ? NAN : site->wait_p50_us);
  put_real(line, simulated ? NAN : site->wait_total_us);
  put_text(line, site->range);
  put_place(line, p, site);
}

enum sc_status sc_report_write_csv(const struct sc_findings *f, const struct sc_report_options *options,
                                   struct sc_out *out, struct sc_error *err)
{
  struct sc_buf line = {0};
  enum sc_status status = SC_OK;

  (void)options;
  sc_out_puts(out, PROCESS_COLUMNS ",site,kind,class,api,pattern,direction,memory,bytes,count,per_step,read_backs,"
                                   "wait_p50_us,wait_total_us,range,file,line,function\n");
  for (size_t i = 0; i < f->process_count && status == SC_OK; i++) {
    const struct sc_process *p = &f->processes[i];
    const bool simulated = sc_process_is_simulated(f, p);

    for (size_t k = 0; k < p->site_count && status == SC_OK; k++) {
      put_site(&line, p, &p->sites[k], simulated);
      status = end_line(&line, out, err);
    }
  }
  sc_buf_free(&line);
  return status;
}

/* ---- one line a sync ----------------------------------------------------------------------------------- */

static void put_event(struct sc_buf *line, const struct sc_process *p, const struct sc_event *event, bool simulated)
{
  const struct sc_site *site = event->what < p->site_count ? &p->sites[event->what] : NULL;
  const struct sc_thread_findings *thread = event->thread < p->thread_count ? &p->threads[event->thread] : NULL;

  put_process(line, p, simulated);
  put_u64(line, thread ? thread->tid : 0);
  put_text(line, thread ? thread->name : NULL);
  sc_buf_printf(line, ",%" PRIu64 ".%03u", event->start_ns / 1000, (unsigned)(event->start_ns % 1000));
  put_real(line, simulated ? NAN : (double)event->wait_ns / 1e3);
  put_text(line, sc_class_name((enum sc_class)event->cls));
  sc_buf_puts(line, event->read_back ? ",true" : ",false");
  put_text(line, site ? site->api : NULL);
  put_text(line, sc_direction_name(event->direction));
  put_text(line, event->direction ? sc_memory_name(event->memory) : NULL);
  put_u64(line, event->bytes);
  put_text(line, site ? site->range : NULL);
  put_text(line, site ? site->id : NULL);
  put_text(line, site ? site->pattern : NULL);
  put_place(line, p, site);
}

enum sc_status sc_report_write_csv_syncs(const struct sc_findings *f, const struct sc_report_options *options,
                                         struct sc_out *out, struct sc_error *err)
{
  struct sc_buf line = {0};
  enum sc_status status = SC_OK;

  (void)options;
  sc_out_puts(out, PROCESS_COLUMNS ",tid,thread,start_us,wait_us,class,read_back,api,direction,memory,bytes,range,site,"
                                   "pattern,file,line,function\n");
  for (size_t i = 0; i < f->process_count && status == SC_OK; i++) {
    const struct sc_process *p = &f->processes[i];
    const bool simulated = sc_process_is_simulated(f, p);
    struct sc_event event;

    if (!sc_process_events_rewind(p))
      status = sc_report_events_lost(err);
    while (status == SC_OK && sc_process_events_next(p, &event)) {
      if (event.kind != SC_EVENT_SYNC)
        continue;
      put_event(&line, p, &event, simulated);
      status = end_line(&line, out, err);
    }
    if (status == SC_OK && sc_process_events_failed(p))
      status = sc_report_events_lost(err);
  }
  sc_buf_free(&line);
  return status;
}
