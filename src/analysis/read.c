/* SPDX-License-Identifier: Apache-2.0
 * A whole trace into one process of the findings: records to the engine, losses, damage and notes to the warnings. */
#include "analysis/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const void *context, uint32_t id, size_t *length)
{
  return sc_reader_string(context, id, length);
}

static bool api_of(const void *context, uint32_t id, enum sc_op *op, const char **name)
{
  const struct sc_api *api = sc_reader_api(context, id);
  if (!api)
    return false;
  *op = api->op;
  *name = api->name;
  return true;
}

static bool stack_of(const void *context, uint32_t id, struct sc_stack *out) { return sc_reader_stack(context, id, out); }
static bool frame_of(const void *context, uint32_t id, struct sc_stack_frame *out)
{
  return sc_reader_frame(context, id, out);
}
static bool module_of(const void *context, uint32_t id, struct sc_module *out)
{
  return sc_reader_module(context, id, out);
}
static const struct sc_stack_source stacks = {.stack = stack_of, .frame = frame_of, .module = module_of};

static bool copy_text(char **out, const char *text)
{
  *out = sc_strdup(text);
  return *out || !text;
}

static bool describe(const struct sc_reader *reader, struct sc_process *process)
{
  const struct sc_trace_header *header = sc_reader_header(reader);
  const struct sc_trace_live *live = sc_reader_live(reader);
  process->pid = header->pid;
  process->attached_late = (header->flags & SC_TRACE_LATE) != 0;
  process->simulated = (header->flags & SC_TRACE_SIMULATED) != 0;
  process->clock_offset_ns = (int64_t)(header->start_real_ns - header->start_mono_ns);
  process->trace_start_ns = header->start_mono_ns;
  process->ended_cleanly = live->end_mono_ns != 0;
  if (live->end_mono_ns > header->start_mono_ns)
    process->wall_us = (double)(live->end_mono_ns - header->start_mono_ns) / 1e3;
  process->host = sc_strndup(header->host, sizeof header->host);
  process->stacks = live->stacks;
  process->stack_ns = live->stack_ns;
  process->stack_walk_ns = live->stack_walk_ns;
  process->stack_longest_ns = live->stack_longest_ns;
  process->stack_walks = live->stack_walks;
  process->stacks_missing = live->stacks_missing;
  process->queue_waits = live->queue_waits;
  process->queue_wait_ns = live->queue_wait_ns;
  return process->host && copy_text(&process->cwd, sc_reader_meta(reader, "cwd")) &&
         copy_text(&process->trace_path, sc_reader_path(reader)) &&
         copy_text(&process->command, sc_reader_meta(reader, "command")) &&
         copy_text(&process->rank, sc_reader_meta(reader, "rank")) &&
         copy_text(&process->local_rank, sc_reader_meta(reader, "local_rank"));
}

/* Records had no room, and what they would have said was counted instead. */
static bool warn_without_detail(const struct sc_process *process, uint64_t records, bool full, const char *label,
                                struct sc_findings *f)
{
  return sc_findings_warn(f,
                          "%s%" PRIu64 " records found no room%s. The totals are complete; %" PRIu64 " of %" PRIu64
                          " syncs have no details: threads, ranges, steps and sites end where the room did.",
                          label, records, full ? " (the disk was full or the trace reached its limit)" : "",
                          process->without_detail.syncs, process->counts.syncs);
}

/* What the trace lacks. `gaps` is what batches say, which knows damage, losses while recording, and chunks that are
 * simply not there (a hole in a copied file): what the first two do not explain is the third. */
static bool add_losses(struct sc_reader *reader, uint64_t gaps, const char *label, struct sc_process *process,
                       struct sc_findings *f)
{
  const struct sc_trace_live *live = sc_reader_live(reader);
  struct sc_damage damage;
  sc_reader_damage(reader, &damage);
  uint64_t explained = damage.chunks + damage.records;
  uint64_t records = gaps > explained && gaps - explained > live->lost_records ? gaps - explained : live->lost_records;
  process->lost_records = records + damage.records;
  process->lost_chunks = live->lost_chunks + damage.chunks;
  f->lost_records += process->lost_records;
  f->lost_chunks += process->lost_chunks;
  bool ok = true;
  /* Gaps that the file does not own up to are holes in it. */
  bool counted = sc_reader_beyond(reader) && live->uncounted == 0 && records == live->lost_records;
  process->counts_whole = counted && !damage.chunks && !damage.records && !damage.truncated;
  if (counted && (records || live->lost_chunks))
    ok &= warn_without_detail(process, records, live->full != 0, label, f);
  else if (records || live->lost_chunks)
    ok &= sc_findings_warn(f, "%s%" PRIu64 " records and %" PRIu64 " chunks were lost%s. Counts are too low.", label,
                           records, live->lost_chunks,
                           live->full ? " (the disk was full or the trace reached its limit)" : "");
  else if (live->full && !counted)
    ok &= sc_findings_warn(
        f, "%srecording stopped early: the disk was full or the trace reached its limit. Counts are too low.", label);
  if (damage.chunks || damage.records || damage.truncated)
    ok &= sc_findings_warn(f,
                           "%sthe trace is damaged: %" PRIu64 " chunks and %" PRIu64
                           " records could not be read%s%s%s. Counts are too low.",
                           label, damage.chunks, damage.records, damage.truncated ? ", and the file was cut off" : "",
                           damage.first[0] ? "; first: " : "", damage.first);
  return ok;
}

/* Fewer may be launches during which the thread lost its processor. */
#define QUEUE_WAITS_TOLD 8

static bool add_conditions(const struct sc_reader *reader, const struct sc_process *process, const char *label,
                           struct sc_findings *f)
{
  const char *blocking = sc_reader_meta(reader, "launch_blocking");
  bool ok = true;
  if (process->attached_late)
    ok &= sc_findings_warn(
        f, "%srecording began after the program had used CUDA: earlier calls, memory and ranges are unknown.", label);
  if (blocking && strcmp(blocking, "0") != 0 && *blocking)
    ok &= sc_findings_warn(f,
                           "%sCUDA_LAUNCH_BLOCKING=%s was set: every launch waits for its kernel. Those waits are not "
                           "in the count, and no time here is "
                           "typical. Unset it.",
                           label, blocking);
  if (process->queue_waits >= QUEUE_WAITS_TOLD) {
    char time[48] = "";
    if (!process->simulated)
      snprintf(time, sizeof time, ", %.3g ms in all", (double)process->queue_wait_ns / 1e6);
    ok &= sc_findings_warn(f,
                           "%s%" PRIu64 " launches waited for room in the device's queue, as far as their length "
                           "tells%s: the host ran ahead of the GPU. Those are waits, but no syncs, and not in the count.",
                           label, process->queue_waits, time);
  }
  if (!process->ended_cleanly)
    ok &= sc_findings_warn(
        f,
        "%sthe program did not end cleanly (killed, _exit, exec, or still running): every call that had returned is counted.",
        label);
  return ok;
}

/* Asked for, and not one seen. A process that waited for nothing and submitted nothing has nothing a module could have
 * told: torch.compile's workers load CUDA and leave the GPU alone. */
static bool warn_of_modules(const struct sc_reader *reader, const struct sc_process *process, const char *label,
                            struct sc_findings *f)
{
  if (!sc_reader_meta(reader, "torch_modules") || process->unmeasured ||
      (process->counts.syncs == 0 && process->counts.submissions == 0))
    return true;
  for (size_t i = 0; i < process->range_count; ++i) {
    if (strcmp(process->ranges[i].domain, SC_MODULE_DOMAIN) == 0 && strcmp(process->ranges[i].path, "backward") != 0)
      return true;
  }
  return sc_findings_warn(
      f,
      "%s--torch-modules saw no call of a PyTorch module. If it is a PyTorch program: Python's options -I, -E and -S, or "
      "a changed PYTHONPATH, keep the names from being added; modules that run only inside a compiled function are not "
      "called; and a PyTorch without CUDA is left alone.",
      label);
}

static enum sc_status take_records(struct sc_reader *reader, struct sc_analysis *analysis, uint64_t *gaps,
                                   struct sc_error *err)
{
  for (;;) {
    struct sc_batch batch;
    bool more = false;
    enum sc_status status = sc_reader_next(reader, &batch, &more, err);
    if (status != SC_OK || !more)
      return status;
    struct sc_analysis_thread *thread = sc_analysis_thread(analysis, batch.thread, batch.tid);
    if (!thread)
      return sc_error_set(err, SC_ERR_NOMEM, "out of memory while %s was read", sc_reader_path(reader));
    if (batch.lost) {
      *gaps += batch.lost;
      sc_analysis_gap(analysis, thread);
    }
    sc_analysis_records(analysis, thread, batch.bytes, batch.size);
    sc_analysis_tail(analysis, thread, batch.tail_submissions, batch.tail_launches);
  }
}

/* ---- what has to be known before the first record is counted ----------------------------------------
 * A trace holds its threads' records a chunk at a time, so what holds for all threads from some moment on is looked for
 * in a first pass over the file. */

struct scan {
  struct mark {
    uint64_t time_ns;
    bool starts;
  } * marks; /* of the profiler */
  size_t mark_count, mark_cap;
  struct sc_window *windows;
  size_t window_count, window_cap;
  bool marks_missing; /* more starts and stops had no room than could be told */
  uint64_t from_ns; /* UINT64_MAX: no such range */
  struct sc_step_mark *steps;
  size_t step_count, step_cap;
};

static void free_scan(struct scan *scan)
{
  free(scan->marks);
  free(scan->windows);
  free(scan->steps);
}

/* Names are known before the first record: most traces have no such mark, and are read once. */
static bool may_have_step_marks(const struct sc_reader *reader)
{
  for (uint32_t id = 1, last = sc_reader_last_string(reader); id <= last; ++id) {
    const char *name = sc_reader_string(reader, id, NULL);
    enum sc_mark mark = sc_mark_of(SC_DOMAIN_NAME, name, NULL);
    if (mark == SC_MARK_OTHER)
      mark = sc_mark_of("", name, NULL);
    if (mark == SC_MARK_STEP_END || mark == SC_MARK_FORWARD_END)
      return true;
  }
  return false;
}

static bool scan_mark(const struct sc_reader *reader, uint64_t thread, const struct sc_record_range *record,
                      struct scan *scan)
{
  const char *domain = record->domain ? sc_reader_string(reader, record->domain, NULL) : "";
  enum sc_mark mark = sc_mark_of(domain, sc_reader_string(reader, record->name, NULL), NULL);
  if (mark != SC_MARK_STEP_END && mark != SC_MARK_FORWARD_END)
    return true;
  struct sc_step_mark *step = sc_array_push(&scan->steps, &scan->step_count, &scan->step_cap, sizeof *step);
  if (!step)
    return false;
  step->time_ns = record->time_ns;
  step->series = (uint64_t)record->domain << 32 | record->name;
  step->forward = mark == SC_MARK_FORWARD_END;
  step->thread = step->forward ? thread : 0;
  return true;
}

static bool scan_call(const struct sc_reader *reader, const struct sc_record_call *call, struct scan *scan)
{
  const struct sc_api *api = sc_reader_api(reader, SC_CALL_API(call));
  if (!api || (api->op != SC_OP_PROFILER_START && api->op != SC_OP_PROFILER_STOP) || call->status != 0)
    return true;
  struct mark *mark = sc_array_push(&scan->marks, &scan->mark_count, &scan->mark_cap, sizeof *mark);
  if (!mark)
    return false;
  mark->starts = api->op == SC_OP_PROFILER_START; /* what follows its return, up to the call of the other */
  mark->time_ns = mark->starts ? call->start_ns + call->duration_ns : call->start_ns;
  return true;
}

static void scan_range(const struct sc_reader *reader, const struct sc_record_range *range, const char *from,
                       struct scan *scan)
{
  size_t length = 0;
  bool opens = range->head.kind == SC_RECORD_RANGE_PUSH || range->head.kind == SC_RECORD_RANGE_START;
  const char *name =
      opens && from && range->time_ns < scan->from_ns ? sc_reader_string(reader, range->name, &length) : NULL;
  if (name && sc_match(from, name))
    scan->from_ns = range->time_ns;
}

static int by_time(const void *left, const void *right)
{
  const struct mark *a = left, *b = right;
  return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* A second start in a row changes nothing, as in CUDA; a window that is never closed lasts to the end. */
static bool make_windows(struct scan *scan)
{
  if (scan->mark_count)
    qsort(scan->marks, scan->mark_count, sizeof *scan->marks, by_time);
  bool open = false;
  for (size_t i = 0; i < scan->mark_count; ++i) {
    const struct mark *mark = &scan->marks[i];
    if (mark->starts && !open) {
      struct sc_window *window = sc_array_push(&scan->windows, &scan->window_count, &scan->window_cap, sizeof *window);
      if (!window)
        return false;
      *window = (struct sc_window){mark->time_ns, UINT64_MAX};
    } else if (!mark->starts && open) {
      scan->windows[scan->window_count - 1].end_ns = mark->time_ns;
    }
    open = mark->starts;
  }
  return true;
}

/* Starts and stops that had no room for a record. */
static bool scan_beyond(const struct sc_reader *reader, struct scan *scan)
{
  const struct sc_trace_beyond *beyond = sc_reader_beyond(reader);
  size_t count = beyond == NULL ? 0 : beyond->marks < SC_BEYOND_MARKS ? (size_t)beyond->marks : SC_BEYOND_MARKS;
  scan->marks_missing = beyond && beyond->marks > count;
  for (size_t i = 0; i < count; ++i) {
    struct mark *mark = sc_array_push(&scan->marks, &scan->mark_count, &scan->mark_cap, sizeof *mark);
    if (!mark)
      return false;
    *mark = (struct mark){.time_ns = beyond->mark[i] / 2, .starts = beyond->mark[i] % 2};
  }
  return true;
}

static enum sc_status scan_trace(const struct sc_reader *whole, const struct sc_analysis_options *options,
                                 struct scan *scan, struct sc_error *err)
{
  struct sc_reader *reader = NULL;
  bool more = true, ok = true;
  enum sc_status status = sc_reader_reopen(whole, &reader, err);
  while (status == SC_OK && more && ok) {
    struct sc_batch batch;
    size_t offset = 0;
    status = sc_reader_next(reader, &batch, &more, err);
    const struct sc_record_head *head;
    while (status == SC_OK && more && ok && (head = sc_batch_next(&batch, &offset))) {
      if (head->kind == SC_RECORD_CALL && options->capture_range)
        ok = scan_call(reader, (const struct sc_record_call *)head, scan);
      else if (head->kind == SC_RECORD_RANGE_PUSH || head->kind == SC_RECORD_RANGE_START)
        scan_range(reader, (const struct sc_record_range *)head, options->from, scan);
      else if (head->kind == SC_RECORD_MARK)
        ok = scan_mark(reader, batch.thread, (const struct sc_record_range *)head, scan);
    }
  }
  sc_reader_close(reader);
  if (status == SC_OK && (!ok || (options->capture_range && !scan_beyond(whole, scan)) || !make_windows(scan)))
    status = sc_error_set(err, SC_ERR_NOMEM, "out of memory while %s was read", sc_reader_path(whole));
  return status;
}

/* The time in the windows, which is what waits are a share of. */
static double window_time_us(const struct scan *scan, const struct sc_trace_live *live, double otherwise_us)
{
  double sum_us = 0;
  for (size_t i = 0; i < scan->window_count; ++i) {
    const struct sc_window *window = &scan->windows[i];
    uint64_t end_ns = window->end_ns == UINT64_MAX ? live->end_mono_ns : window->end_ns;
    if (end_ns < window->start_ns) /* never closed, in a program that did not end cleanly */
      return otherwise_us;
    sum_us += (double)(end_ns - window->start_ns) / 1e3;
  }
  return sum_us;
}

static bool describe_capture(const struct sc_reader *reader, const struct scan *scan, const char *label,
                             struct sc_process *process, struct sc_findings *f)
{
  if (scan->marks_missing &&
      !sc_findings_warn(f,
                        "%scudaProfilerStart and Stop were called more often than could be told after the trace was full: "
                        "which of its last records lie between them is not certain.",
                        label))
    return false;
  if (scan->window_count) {
    process->wall_us = window_time_us(scan, sc_reader_live(reader), process->wall_us);
    return true;
  }
  process->unmeasured = true;
  return sc_findings_warn(f,
                          "%sthe program never called cudaProfilerStart, and only what follows it was to be counted: "
                          "nothing was.",
                          label);
}

static const struct sc_window no_window = {0};

/* What the tracer counted without a record, of everything or of what lies in the windows. */
static void add_beyond(const struct sc_reader *reader, bool within, struct sc_process *process)
{
  const struct sc_trace_beyond *beyond = sc_reader_beyond(reader);
  if (!beyond)
    return;
  memcpy(&process->without_detail, within ? beyond->within : beyond->all, sizeof process->without_detail);
  sc_counts_add(&process->counts, &process->without_detail);
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static bool counted_beyond(const struct sc_reader *reader)
{
  const struct sc_trace_beyond *beyond = sc_reader_beyond(reader);
  for (size_t i = 0; beyond && i < SC_BEYOND_COUNTS; ++i) {
    if (beyond->all[i])
      return true;
  }
  return false;
}

/* A trace without one watched call defined is what the tracer leaves when it could not subscribe; the notes say why.
 * Where there was no room for names either, it has counts all the same. */
static bool names_no_call(const struct sc_reader *reader)
{
  if (counted_beyond(reader))
    return false;
  for (uint32_t id = 1; id <= 0xffff; ++id) {
    if (sc_reader_api(reader, id))
      return false;
  }
  return true;
}

static enum sc_status describe_process(const struct sc_reader *reader, const struct sc_analysis_options *options,
                                       const struct scan *scan, const char *label, struct sc_process *process,
                                       struct sc_findings *findings)
{
  const struct sc_trace_live *live = sc_reader_live(reader);
  if (!describe(reader, process))
    return SC_ERR_NOMEM;
  findings->simulated |= process->simulated;
  process->unmeasured = names_no_call(reader);
  process->start_cost_us = (double)live->overhead_ns / 1e3;
  if (live->call_cost_ns) {
    process->call_cost_us = (double)live->call_cost_ns / 1e3;
    process->launch_cost_us = (double)live->launch_cost_ns / 1e3;
  }
  if (options->capture_range && !describe_capture(reader, scan, label, process, findings))
    return SC_ERR_NOMEM;
  return SC_OK;
}

enum sc_status sc_analysis_read(struct sc_reader *reader, const struct sc_analysis_options *options,
                                struct sc_findings *findings, struct sc_error *err)
{
  struct scan scan = {.from_ns = UINT64_MAX};
  struct sc_step_ends ends;
  struct sc_process *process = NULL;
  char label[64];
  uint64_t gaps = 0;
  enum sc_status status = SC_OK;
  static const struct sc_analysis_options defaults = {0};
  if (!options)
    options = &defaults;
  if (options->from || options->capture_range || may_have_step_marks(reader))
    status = scan_trace(reader, options, &scan, err);
  if (status != SC_OK) {
    free_scan(&scan);
    return status;
  }
  struct sc_analysis *analysis =
      sc_analysis_new_named(options, text_of, api_of, reader, (sc_reader_header(reader)->flags & SC_TRACE_LATE) != 0);
  if (!analysis) {
    status = SC_ERR_NOMEM;
    goto cleanup;
  }
  sc_analysis_stacks(analysis, &stacks, reader);
  if (options->from)
    sc_analysis_from(analysis, scan.from_ns);
  if (options->capture_range)
    sc_analysis_within(analysis, scan.windows ? scan.windows : &no_window, scan.window_count);
  sc_steps_choose(scan.steps, scan.step_count, &ends);
  if (!sc_analysis_steps(analysis, &ends)) {
    status = SC_ERR_NOMEM;
    goto cleanup;
  }
  status = take_records(reader, analysis, &gaps, err);
  if (status != SC_OK)
    goto cleanup;
  status = SC_ERR_NOMEM;
  process = sc_findings_process(findings);
  if (!process)
    goto cleanup;
  snprintf(label, sizeof label, "process %" PRIu32 ": ", sc_reader_header(reader)->pid);
  status = describe_process(reader, options, &scan, label, process, findings);
  if (status == SC_OK) {
    add_beyond(reader, options->capture_range, process);
    status = sc_analysis_finish(analysis, label, process, findings, NULL);
    if (status == SC_OK && !warn_of_modules(reader, process, label, findings))
      status = SC_ERR_NOMEM;
  }
  if (status == SC_OK &&
      (!add_losses(reader, gaps, label, process, findings) || !add_conditions(reader, process, label, findings)))
    status = SC_ERR_NOMEM;
cleanup:
  sc_analysis_free(analysis);
  free_scan(&scan);
  if (status == SC_ERR_NOMEM)
    sc_error_set(err, status, "out of memory while %s was analysed", sc_reader_path(reader));
  return status;
}
