/* SPDX-License-Identifier: Apache-2.0
 * The timeline of a process's waits: one lane a thread, the share of each slice of time that the thread spent waiting.
 * However many waits there are, the figure has a bounded number of slices. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/content.h"
#include "report/figures.h"

enum { LANES_MAX = 24, LANE_H = 24, SLICES_LEAST = 200, SLICES_MOST = 4000, SLICE_BYTES = 22, LONGEST = 10, TICKS = 40 };

struct lane {
  size_t thread;         /* index in the process */
  double *waits, *polls; /* [slices]: nanoseconds */
};

struct timeline {
  const struct sc_process *p;
  struct lane lanes[LANES_MAX];
  size_t lane_count, left_out;
  size_t slices;
  uint64_t first_ns, last_ns;
  struct sc_event longest[LONGEST]; /* longest first */
  size_t longest_count;
};

/* ---- gathering ----------------------------------------------------------------------------------------- */

static bool waits(const struct sc_thread_findings *thread) { return thread->syncs || thread->poll_waits; }

static bool is_chosen(const struct timeline *t, size_t thread)
{
  for (size_t i = 0; i < t->lane_count; i++)
    if (t->lanes[i].thread == thread)
      return true;
  return false;
}

/* The threads that waited longest. */
static void choose_lanes(struct timeline *t)
{
  for (;;) {
    size_t best = SIZE_MAX, waiting = 0;

    for (size_t i = 0; i < t->p->thread_count; i++) {
      const struct sc_thread_findings *thread = &t->p->threads[i];

      if (!waits(thread) || is_chosen(t, i))
        continue;
      waiting++;
      if (best == SIZE_MAX || thread->wait_us > t->p->threads[best].wait_us)
        best = i;
    }
    if (best == SIZE_MAX || t->lane_count == LANES_MAX) {
      t->left_out = waiting;
      return;
    }
    t->lanes[t->lane_count++].thread = best;
  }
}

static enum sc_status find_extent(struct timeline *t, struct sc_error *err)
{
  struct sc_event event;

  t->first_ns = UINT64_MAX;
  if (!sc_process_events_rewind(t->p))
    return sc_report_events_lost(err);
  while (sc_process_events_next(t->p, &event)) {
    if (event.start_ns < t->first_ns)
      t->first_ns = event.start_ns;
    if (event.end_ns > t->last_ns)
      t->last_ns = event.end_ns;
  }
  return sc_process_events_failed(t->p) ? sc_report_events_lost(err) : SC_OK;
}

static bool allocate(struct timeline *t, size_t budget)
{
  size_t slices = t->lane_count ? budget / (t->lane_count * SLICE_BYTES) : 0;

  t->slices = slices < SLICES_LEAST ? SLICES_LEAST : slices > SLICES_MOST ? SLICES_MOST : slices;
  for (size_t i = 0; i < t->lane_count; i++) {
    t->lanes[i].waits = sc_calloc_array(t->slices, sizeof *t->lanes[i].waits);
    t->lanes[i].polls = sc_calloc_array(t->slices, sizeof *t->lanes[i].polls);
    if (!t->lanes[i].waits || !t->lanes[i].polls)
      return false;
  }
  return true;
}

static double slice_ns(const struct timeline *t)
{
  return (double)(t->last_ns - t->first_ns) / (double)t->slices;
}

static void add_interval(const struct timeline *t, double *slices, const struct sc_event *event)
{
  double width = slice_ns(t), from = (double)(event->start_ns - t->first_ns), to = (double)(event->end_ns - t->first_ns);

  for (size_t i = (size_t)(from / width); i < t->slices && (double)i * width < to; i++)
    slices[i] += fmin(to, (double)(i + 1) * width) - fmax(from, (double)i * width);
}

static void keep_longest(struct timeline *t, const struct sc_event *event)
{
  size_t at = t->longest_count;

  while (at > 0 && t->longest[at - 1].wait_ns < event->wait_ns)
    at--;
  if (at == LONGEST)
    return;
  if (t->longest_count < LONGEST)
    t->longest_count++;
  memmove(&t->longest[at + 1], &t->longest[at], (t->longest_count - 1 - at) * sizeof *t->longest);
  t->longest[at] = *event;
}

static enum sc_status gather(struct timeline *t, struct sc_error *err)
{
  struct sc_event event;

  if (!sc_process_events_rewind(t->p))
    return sc_report_events_lost(err);
  while (sc_process_events_next(t->p, &event)) {
    if (event.kind != SC_EVENT_SYNC && event.kind != SC_EVENT_POLL)
      continue;
    if (event.kind == SC_EVENT_SYNC)
      keep_longest(t, &event);
    for (size_t i = 0; i < t->lane_count; i++)
      if (t->lanes[i].thread == event.thread)
        add_interval(t, event.kind == SC_EVENT_SYNC ? t->lanes[i].waits : t->lanes[i].polls, &event);
  }
  return sc_process_events_failed(t->p) ? sc_report_events_lost(err) : SC_OK;
}

/* ---- drawing ---------------------------------------------------------------------------------------------- */

/* A step line over the slices; quiet stretches cost nothing. */
static void put_steps(struct sc_buf *html, const struct timeline *t, const double *slices, const char *class)
{
  double width = slice_ns(t);
  int height = 0;
  bool open = false;

  for (size_t i = 0; i <= t->slices; i++) {
    /* What is there can be seen: at least a fifth of the lane. */
    double share = i < t->slices ? fmin(1, slices[i] / width) : 0;
    int next = share > 0 ? (int)fmax(LANE_H / 5.0, round(share * LANE_H)) : 0;

    if (next == height)
      continue;
    if (!open)
      sc_buf_printf(html, "<path class=\"%s\" d=\"", class);
    open = true;
    if (height == 0)
      sc_buf_printf(html, "M%zu %dV%d", i, LANE_H, LANE_H - next);
    else
      sc_buf_printf(html, "H%zuV%d", i, LANE_H - next);
    height = next;
  }
  if (open)
    sc_buf_puts(html, "\"/>");
}

static void put_lane(struct sc_buf *html, const struct timeline *t, const struct lane *lane)
{
  const struct sc_thread_findings *thread = &t->p->threads[lane->thread];
  struct sc_buf label = {0};

  sc_buf_printf(&label, "thread %" PRIu64 " ", thread->tid);
  sc_html_put_name(&label, thread->name, 24);
  sc_buf_printf(&label, ": %" PRIu64 " sync%s, ", thread->syncs, sc_plural(thread->syncs));
  sc_html_put_time(&label, thread->wait_us);
  if (thread->poll_waits)
    sc_buf_printf(&label, ", %" PRIu64 " poll wait%s", thread->poll_waits, sc_plural(thread->poll_waits));
  html->failed |= label.failed;
  sc_buf_printf(html, "<div class=\"lane\"><span>%s</span>", label.data ? label.data : "");
  sc_buf_printf(html,
                "<svg viewBox=\"0 0 %zu %d\" preserveAspectRatio=\"none\" role=\"img\"><title>Waits of %s</title>",
                t->slices, LANE_H, label.data ? label.data : "");
  put_steps(html, t, lane->waits, "wait");
  put_steps(html, t, lane->polls, "poll");
  sc_buf_puts(html, "</svg></div>\n");
  sc_buf_free(&label);
}

static void put_axis(struct sc_buf *html, const struct timeline *t)
{
  double whole_us = (double)(t->last_ns - t->first_ns) / 1e3;

  sc_buf_puts(html, "<div class=\"axis\" aria-hidden=\"true\">");
  for (int i = 0; i < TICKS; i++) {
    sc_buf_printf(html, "<i style=\"left:%.2f%%\">", 100.0 * i / TICKS);
    sc_html_put_time(html, whole_us * i / TICKS);
    sc_buf_puts(html, "</i>");
  }
  sc_buf_puts(html, "</div>");
}

static void put_zoom(struct sc_buf *html, size_t index)
{
  static const char *const levels[] = {"1", "4", "16", "64"};

  sc_buf_puts(html, "<fieldset class=\"zoom\"><legend>Zoom</legend>");
  for (size_t i = 0; i < SC_COUNTOF(levels); i++)
    sc_buf_printf(html, "<label><input type=\"radio\" name=\"zoom%zu\" class=\"z%s\"%s> %sx</label>", index, levels[i],
                  i ? "" : " checked", levels[i]);
  sc_buf_puts(html, "</fieldset>\n");
}

static void put_longest(struct sc_buf *html, const struct timeline *t)
{
  if (!t->longest_count)
    return;
  sc_buf_puts(html, "<h3>The longest waits</h3>");
  sc_html_open_scroll(html, "Table, may scroll sideways");
  sc_buf_puts(html, "<table><thead><tr><th class=\"r\">wait</th><th class=\"r\">at</th>"
                    "<th class=\"r\">thread</th><th>call</th><th>where</th></tr></thead><tbody>\n");
  for (size_t i = 0; i < t->longest_count; i++) {
    const struct sc_event *event = &t->longest[i];
    const struct sc_site *site = event->what < t->p->site_count ? &t->p->sites[event->what] : NULL;
    const struct sc_frame *frame = site ? sc_site_frame(site) : NULL;

    sc_buf_puts(html, "<tr><td class=\"r\">");
    sc_html_put_time(html, (double)event->wait_ns / 1e3);
    sc_buf_puts(html, "</td><td class=\"r\">");
    sc_html_put_time(html, (double)(event->start_ns - t->first_ns) / 1e3);
    sc_buf_printf(html, "</td><td class=\"r\">%" PRIu64 "</td><td><code>",
                  event->thread < t->p->thread_count ? t->p->threads[event->thread].tid : 0);
    sc_html_put_name(html, site ? site->api : "?", 0);
    sc_buf_puts(html, "</code></td><td><code>");
    if (frame && frame->file) {
      sc_html_put_name(html, sc_process_file(t->p, frame->file), 0);
      sc_buf_printf(html, ":%" PRIu64 " ", frame->line);
    }
    if (frame)
      sc_html_put_name(html, frame->function, 0);
    else if (site)
      sc_html_put_name(html, site->range, 0);
    sc_buf_puts(html, "</code></td></tr>\n");
  }
  sc_buf_puts(html, "</tbody></table></div>\n");
}

static void put_timeline(struct sc_buf *html, const struct timeline *t, size_t index)
{
  sc_buf_puts(html, "<figure class=\"timeline\"><figcaption>Waits over time: the height is the share of each moment that the "
                    "thread spent waiting");
  for (size_t i = 0; i < t->lane_count; i++) {
    if (t->p->threads[t->lanes[i].thread].poll_waits) {
      sc_buf_puts(html, " (over them, in violet: poll waits, which are not in the count)");
      break;
    }
  }
  sc_buf_puts(html, ".</figcaption>\n");
  put_zoom(html, index);
  sc_html_open_scroll(html, "Timeline, scrolls sideways when zoomed");
  sc_buf_puts(html, "<div class=\"lanes\">\n");
  for (size_t i = 0; i < t->lane_count; i++)
    put_lane(html, t, &t->lanes[i]);
  put_axis(html, t);
  sc_buf_puts(html, "</div></div>");
  if (t->left_out)
    sc_buf_printf(html, "<p class=\"note\">%zu more threads waited, each for less; the table of threads has them.</p>",
                  t->left_out);
  sc_buf_puts(html, "</figure>\n");
}

enum sc_status sc_figure_timeline(struct sc_buf *html, const struct sc_findings *findings, size_t process,
                                  size_t budget, struct sc_error *err)
{
  const struct sc_process *p = &findings->processes[process];
  struct timeline t = {.p = p};
  enum sc_status status = SC_OK;

  if (sc_process_is_simulated(findings, p) || sc_process_events_count(p) == 0)
    return SC_OK; /* times of a simulated device are none */
  choose_lanes(&t);
  if (t.lane_count == 0)
    return SC_OK;
  status = find_extent(&t, err);
  if (status == SC_OK && t.last_ns > t.first_ns) {
    if (!allocate(&t, budget))
      status = sc_error_set(err, SC_ERR_NOMEM, "no memory for a timeline");
    else
      status = gather(&t, err);
    if (status == SC_OK) {
      put_timeline(html, &t, process);
      put_longest(html, &t);
    }
  }
  for (size_t i = 0; i < t.lane_count; i++) {
    free(t.lanes[i].waits);
    free(t.lanes[i].polls);
  }
  return status;
}
