/* SPDX-License-Identifier: Apache-2.0
 * A whole trace into one process of the findings: records to the engine, losses, damage and notes to the warnings. */
#include "analysis/internal.h"

#include <inttypes.h>
#include <stdio.h>
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
  process->ended_cleanly = live->end_mono_ns != 0;
  if (live->end_mono_ns > header->start_mono_ns)
    process->wall_us = (double)(live->end_mono_ns - header->start_mono_ns) / 1e3;
  process->host = sc_strndup(header->host, sizeof header->host);
  return process->host && copy_text(&process->trace_path, sc_reader_path(reader)) &&
         copy_text(&process->command, sc_reader_meta(reader, "command")) &&
         copy_text(&process->rank, sc_reader_meta(reader, "rank")) &&
         copy_text(&process->local_rank, sc_reader_meta(reader, "local_rank"));
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
  if (records || live->lost_chunks)
    ok &= sc_findings_warn(f, "%s%" PRIu64 " records and %" PRIu64 " chunks were lost%s. Counts are too low.", label,
                           records, live->lost_chunks,
                           live->full ? " (the disk was full or the trace reached its limit)" : "");
  else if (live->full)
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
  if (!process->ended_cleanly)
    ok &= sc_findings_warn(
        f,
        "%sthe program did not end cleanly (killed, _exit, or still running): every call that had returned is counted.",
        label);
  return ok;
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

enum sc_status sc_analysis_read(struct sc_reader *reader, const struct sc_analysis_options *options,
                                struct sc_findings *findings, struct sc_error *err)
{
  struct sc_analysis *analysis =
      sc_analysis_new_named(options, text_of, api_of, reader, (sc_reader_header(reader)->flags & SC_TRACE_LATE) != 0);
  struct sc_process *process = NULL;
  char label[64];
  uint64_t gaps = 0;
  enum sc_status status = SC_ERR_NOMEM;
  if (!analysis)
    goto cleanup;
  status = take_records(reader, analysis, &gaps, err);
  if (status != SC_OK) {
    sc_analysis_free(analysis);
    return status;
  }
  status = SC_ERR_NOMEM;
  process = sc_findings_process(findings);
  if (!process || !describe(reader, process))
    goto cleanup;
  findings->simulated |= process->simulated;
  snprintf(label, sizeof label, "process %" PRIu64 ": ", process->pid);
  if (!add_losses(reader, gaps, label, process, findings) || !add_conditions(reader, process, label, findings))
    goto cleanup;
  status = sc_analysis_finish(analysis, label, process, findings, NULL);
cleanup:
  sc_analysis_free(analysis);
  if (status == SC_ERR_NOMEM)
    sc_error_set(err, status, "out of memory while %s was analysed", sc_reader_path(reader));
  return status;
}
