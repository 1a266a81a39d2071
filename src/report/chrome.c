/* SPDX-License-Identifier: Apache-2.0
 * Chrome trace events (JSON object format): what Perfetto's UI and chrome://tracing open. Syncs, poll waits and copies
 * are slices of their thread, push/pop ranges as well; start/end ranges are async slices; a flow leads from each
 * device-to-host copy to the sync that made it visible. Written event by event: memory does not grow with their number. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "report/content.h"
#include "report/escape.h"
#include "report/writers.h"

#define OTHER_ID 4000000000u /* and above: stands in for a pid or tid that occurs twice */

struct chrome {
  struct sc_out *out;
  struct sc_buf line;
  uint64_t base_ns; /* of the earliest event, on the time of day where it is known */
  bool first;
  uint64_t async; /* ids given out */
  uint64_t flows; /* of the processes before this one */
};

struct lane { /* of one process */
  const struct sc_process *p;
  uint64_t pid;
  const uint64_t *tids; /* [thread_count], each once */
  bool simulated;
};

static uint64_t real_ns(const struct sc_process *p, uint64_t ns) { return ns + (uint64_t)p->clock_offset_ns; }

static void begin(struct chrome *c, const char *phase, const struct lane *lane, uint64_t tid)
{
  sc_buf_printf(&c->line, "%s\n{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64, c->first ? "" : ",", phase,
                lane->pid, tid);
  c->first = false;
}

static bool end(struct chrome *c)
{
  sc_buf_puts(&c->line, "}");
  if (c->line.failed)
    return false;
  sc_out_write(c->out, c->line.data, c->line.len);
  c->line.len = 0;
  return true;
}

static void put_key(struct chrome *c, const char *key, const char *text)
{
  sc_buf_printf(&c->line, ",\"%s\":", key);
  sc_escape_json(&c->line, text);
}

static void put_us(struct chrome *c, const char *key, uint64_t ns)
{
  sc_buf_printf(&c->line, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void put_span(struct chrome *c, const struct lane *lane, const struct sc_event *event)
{
  put_us(c, "ts", real_ns(lane->p, event->start_ns) - c->base_ns);
  put_us(c, "dur", event->end_ns > event->start_ns ? event->end_ns - event->start_ns : 0);
}

/* ---- what is said once ------------------------------------------------------------------------------------ */

static bool put_meta(struct chrome *c, const struct lane *lane, uint64_t tid, const char *what, const char *value)
{
  begin(c, "M", lane, tid);
  put_key(c, "name", what);
  sc_buf_puts(&c->line, ",\"args\":{\"name\":");
  sc_escape_json(&c->line, value);
  sc_buf_puts(&c->line, "}");
  return end(c);
}

static bool put_names(struct chrome *c, const struct lane *lane)
{
  const struct sc_process *p = lane->p;
  char *name = sc_asprintf("%s%s%s%s", lane->simulated ? "SIMULATED " : "", p->command ? p->command : "process",
                           p->rank ? " rank " : "", p->rank ? p->rank : "");
  bool ok = name && put_meta(c, lane, 0, "process_name", name);

  free(name);
  for (size_t i = 0; i < p->thread_count && ok; i++) {
    const struct sc_thread_findings *t = &p->threads[i];
    char *thread = sc_asprintf("%s %" PRIu64, t->name ? t->name : "thread", t->tid);

    ok = thread && put_meta(c, lane, lane->tids[i], "thread_name", thread);
    free(thread);
  }
  return ok;
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

static void put_site_args(struct chrome *c, const struct lane *lane, const struct sc_site *site)
{
  const struct sc_frame *frame = sc_site_frame(site);

  put_key(c, "site", site->id);
  if (site->pattern)
    put_key(c, "pattern", site->pattern);
  if (site->remedy)
    put_key(c, "remedy", site->remedy);
  if (site->range)
    put_key(c, "range", site->range);
  if (!frame)
    return;
  if (frame->file) {
    put_key(c, "file", sc_process_file(lane->p, frame->file));
    sc_buf_printf(&c->line, ",\"line\":%" PRIu64, frame->line);
  }
  put_key(c, "function", frame->function);
}

static bool put_flow(struct chrome *c, const struct lane *lane, const struct sc_event *event, bool ends)
{
  if (!event->flow)
    return true;
  begin(c, ends ? "f" : "s", lane, lane->tids[event->thread]);
  put_key(c, "name", "copy to sync");
  put_key(c, "cat", "flow");
  sc_buf_printf(&c->line, ",\"id\":%" PRIu64 "%s", c->flows + event->flow, ends ? ",\"bp\":\"e\"" : "");
  put_us(c, "ts", real_ns(lane->p, event->start_ns) - c->base_ns);
  return end(c);
}

static bool put_wait(struct chrome *c, const struct lane *lane, const struct sc_event *event)
{
  const struct sc_site *site = event->what < lane->p->site_count ? &lane->p->sites[event->what] : NULL;
  bool poll = event->kind == SC_EVENT_POLL;

  begin(c, "X", lane, lane->tids[event->thread]);
  put_key(c, "name", site && site->api ? site->api : "?");
  put_key(c, "cat", poll ? "poll wait" : "sync");
  put_span(c, lane, event);
  sc_buf_puts(&c->line, ",\"args\":{\"counted\":");
  sc_buf_puts(&c->line, poll ? "false" : "true");
  if (!poll)
    put_key(c, "class", sc_class_name((enum sc_class)event->cls));
  sc_buf_printf(&c->line, ",\"read_back\":%s", event->read_back ? "true" : "false");
  if (!lane->simulated)
    put_us(c, "wait_us", event->wait_ns);
  if (event->bytes)
    sc_buf_printf(&c->line, ",\"bytes\":%" PRIu64, event->bytes);
  if (site && site->direction)
    put_key(c, "direction", site->direction);
  if (site && site->memory)
    put_key(c, "memory", site->memory);
  if (site)
    put_site_args(c, lane, site);
  sc_buf_puts(&c->line, "}");
  return end(c) && (poll || put_flow(c, lane, event, true));
}

static bool put_copy(struct chrome *c, const struct lane *lane, const struct sc_event *event)
{
  begin(c, "X", lane, lane->tids[event->thread]);
  put_key(c, "name", "device-to-host copy");
  put_key(c, "cat", "copy");
  put_span(c, lane, event);
  sc_buf_printf(&c->line, ",\"args\":{\"bytes\":%" PRIu64 "}", event->bytes);
  return end(c) && put_flow(c, lane, event, false);
}

static void put_range_name(struct chrome *c, const struct sc_range_findings *range)
{
  put_key(c, "name", range->name);
  put_key(c, "cat", range->domain && *range->domain ? range->domain : "range");
}

static bool put_async(struct chrome *c, const struct lane *lane, const struct sc_event *event, bool ends, uint64_t id)
{
  begin(c, ends ? "e" : "b", lane, lane->tids[event->thread]);
  put_range_name(c, &lane->p->ranges[event->what]);
  sc_buf_printf(&c->line, ",\"id\":%" PRIu64, id);
  put_us(c, "ts", real_ns(lane->p, ends ? event->end_ns : event->start_ns) - c->base_ns);
  return end(c);
}

static bool put_range(struct chrome *c, const struct lane *lane, const struct sc_event *event)
{
  const struct sc_range_findings *range = event->what < lane->p->range_count ? &lane->p->ranges[event->what] : NULL;

  if (!range)
    return true;
  if (range->spanning) {
    uint64_t id = ++c->async;
    return put_async(c, lane, event, false, id) && put_async(c, lane, event, true, id);
  }
  begin(c, "X", lane, lane->tids[event->thread]);
  put_range_name(c, range);
  put_span(c, lane, event);
  sc_buf_printf(&c->line, ",\"args\":{\"unfinished\":%s", event->unfinished ? "true" : "false");
  if (range->level)
    put_key(c, "level", range->level);
  sc_buf_puts(&c->line, "}");
  return end(c);
}

static bool put_event(struct chrome *c, const struct lane *lane, const struct sc_event *event)
{
  if (event->thread >= lane->p->thread_count)
    return true;
  switch ((enum sc_event_kind)event->kind) {
  case SC_EVENT_SYNC:
  case SC_EVENT_POLL: return put_wait(c, lane, event);
  case SC_EVENT_COPY: return put_copy(c, lane, event);
  default: return put_range(c, lane, event);
  }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

struct numbered {
  uint64_t id;
  size_t index;
};

static int by_id(const void *left, const void *right)
{
  const struct numbered *a = left, *b = right;

  return a->id != b->id ? (a->id > b->id) - (a->id < b->id) : (a->index > b->index) - (a->index < b->index);
}

/* Ids that are unique, in the order of their indexes: a number that came before is replaced. Takes list. NULL: memory
 * is out. */
static uint64_t *unique_ids(struct numbered *list, size_t count)
{
  uint64_t *ids = list ? sc_calloc_array(count + 1, sizeof *ids) : NULL;

  if (ids && count)
    qsort(list, count, sizeof *list, by_id);
  for (size_t i = 0; ids && i < count; i++)
    ids[list[i].index] = i && list[i].id == list[i - 1].id ? OTHER_ID + list[i].index : list[i].id;
  free(list);
  return ids;
}

static uint64_t *unique_tids(const struct sc_process *p)
{
  struct numbered *list = sc_calloc_array(p->thread_count + 1, sizeof *list);

  for (size_t i = 0; list && i < p->thread_count; i++)
    list[i] = (struct numbered){p->threads[i].tid, i};
  return unique_ids(list, p->thread_count);
}

static uint64_t *unique_pids(const struct sc_findings *f)
{
  struct numbered *list = sc_calloc_array(f->process_count + 1, sizeof *list);

  for (size_t i = 0; list && i < f->process_count; i++)
    list[i] = (struct numbered){f->processes[i].pid, i};
  return unique_ids(list, f->process_count);
}

static enum sc_status find_base(const struct sc_findings *f, uint64_t *base_ns, struct sc_error *err)
{
  *base_ns = UINT64_MAX;
  for (size_t i = 0; i < f->process_count; i++) {
    const struct sc_process *p = &f->processes[i];
    struct sc_event event;

    if (!sc_process_events_rewind(p))
      return sc_report_events_lost(err);
    while (sc_process_events_next(p, &event))
      if (real_ns(p, event.start_ns) < *base_ns)
        *base_ns = real_ns(p, event.start_ns);
    if (sc_process_events_failed(p))
      return sc_report_events_lost(err);
  }
  if (*base_ns == UINT64_MAX)
    *base_ns = 0;
  return SC_OK;
}

static enum sc_status write_process(struct chrome *c, const struct sc_findings *f, const struct sc_process *p,
                                    uint64_t pid, struct sc_error *err)
{
  uint64_t *tids = unique_tids(p);
  struct lane lane = {p, pid, tids, sc_process_is_simulated(f, p)};
  struct sc_event event;
  uint64_t flows = 0;
  bool ok = tids && put_names(c, &lane);
  enum sc_status status = ok && !sc_process_events_rewind(p) ? sc_report_events_lost(err) : SC_OK;

  while (ok && status == SC_OK && sc_process_events_next(p, &event)) {
    ok = put_event(c, &lane, &event);
    if (event.flow > flows)
      flows = event.flow;
  }
  c->flows += flows;
  if (!ok)
    status = sc_error_set(err, SC_ERR_NOMEM, "no memory to write a trace event");
  else if (status == SC_OK && sc_process_events_failed(p))
    status = sc_report_events_lost(err);
  free(tids);
  return status;
}

enum sc_status sc_report_write_chrome(const struct sc_findings *f, const struct sc_report_options *options,
                                      struct sc_out *out, struct sc_error *err)
{
  struct chrome c = {.out = out, .first = true};
  uint64_t *pids = unique_pids(f);
  enum sc_status status =
      pids ? find_base(f, &c.base_ns, err) : sc_error_set(err, SC_ERR_NOMEM, "no memory to number the processes");

  (void)options;
  if (status == SC_OK) {
    sc_buf_puts(&c.line, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"generator\":\"synccount\",\"version\":");
    sc_escape_json(&c.line, f->version ? f->version : "unknown");
    sc_buf_printf(&c.line, ",\"simulated\":%s,\"start_unix_ns\":\"%" PRIu64 "\"},\"traceEvents\":[",
                  sc_findings_simulated(f) ? "true" : "false", c.base_ns);
  }
  for (size_t i = 0; i < f->process_count && status == SC_OK; i++)
    status = write_process(&c, f, &f->processes[i], pids[i], err);
  if (status == SC_OK) {
    sc_buf_puts(&c.line, "\n]}\n");
    if (c.line.failed)
      status = sc_error_set(err, SC_ERR_NOMEM, "no memory to write the trace");
    else
      sc_out_write(out, c.line.data, c.line.len);
  }
  sc_buf_free(&c.line);
  free(pids);
  return status;
}
