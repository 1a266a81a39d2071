/* SPDX-License-Identifier: Apache-2.0
 * The end of a process: totals into the findings, and what a reader of the counts has to be told. */
#include "analysis/engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN_NAMED 3 /* threads named in the notice of hidden waits */

static bool emit_thread(const struct sc_analysis_thread *t, struct sc_process *process)
{
  struct sc_thread_findings *out =
      sc_array_push(&process->threads, &process->thread_count, &process->thread_cap, sizeof *out);
  if (!out)
    return false;
  out->tid = t->tid;
  out->serial = t->serial;
  out->name = sc_strdup(t->name);
  out->launches = t->total.launches;
  out->syncs = t->total.syncs;
  out->poll_waits = t->total.poll_waits;
  out->d2h_copies = t->total.d2h_copies;
  out->host_functions = t->total.host_functions;
  out->wait_us = (double)t->total.wait_ns / 1e3;
  out->wall_us = t->last_ns ? (double)(t->last_ns - t->first_ns) / 1e3 : NAN;
  return out->name || !t->name;
}

/* What happened, and what to do about it, around the note's own text. */
static const struct {
  const char *before, *after, *without; /* without: when the note has no text */
} note_words[] = {
    [SC_NOTE_TEXT] = {"", "", "an empty note"},
    [SC_NOTE_SLOT_TAKEN] = {"nothing was counted: CUPTI has room for one subscriber, and it was taken by ",
                            ". Run the program without that profiler.", "another tool"},
    [SC_NOTE_NO_CUPTI] = {"nothing was counted: no libcupti was found (",
                          "). Install the CUDA toolkit's CUPTI, or set SYNCCOUNT_CUPTI to its path.", "nowhere"},
    [SC_NOTE_OLD_CUPTI] = {"nothing was counted: libcupti is too old (",
                           "). Set SYNCCOUNT_CUPTI to a newer libcupti.so.", "its version is not known"},
    [SC_NOTE_DRIVER] =
        {"the driver or CUPTI refused: ",
         ". Counts may be missing: check that the driver works (nvidia-smi) and is not older than CUPTI.",
         "it did not say why"},
    [SC_NOTE_UNKNOWN_MEMORY] = {"memory of a kind that could not be followed is in use (",
                                "). Copies that touch it may be \"uncertain\": its kind is not known.",
                                "VMM, a pool or IPC"},
};

static bool warn_notes(const struct sc_analysis *a, const char *label, struct sc_findings *findings)
{
  bool ok = true;
  for (size_t i = 0; i < a->note_count && ok; ++i) {
    const struct note *note = &a->notes[i];
    uint32_t id = note->id < SC_COUNTOF(note_words) ? note->id : SC_NOTE_TEXT;
    const char *text = *note->text ? note->text : note_words[id].without;
    struct sc_buf line = {0};
    sc_buf_puts(&line, label);
    sc_buf_puts(&line, note_words[id].before);
    sc_buf_put_printable(&line, text, strlen(text));
    sc_buf_puts(&line, note_words[id].after);
    ok = !line.failed && sc_findings_warn(findings, "%s", line.data);
    sc_buf_free(&line);
  }
  return ok;
}

/* The last calls of a thread may be missing: the program was killed, the trace full, or only a part of its life was
 * recorded, by us or by another tool. */
static bool is_cut(const struct sc_analysis *a, const struct sc_process *process)
{
  return !process->ended_cleanly || process->attached_late || a->windows || process->without_detail.api_calls ||
         !process->trace_start_ns;
}

static bool warn_hidden_waits(const struct sc_analysis *a, const struct sc_process *process, const char *label,
                              struct sc_findings *findings)
{
  uint64_t threads = 0, copies = 0, functions = 0, others = 0;
  struct sc_buf names = {0};
  for (const struct sc_analysis_thread *t = a->threads; t; t = t->next) {
    others += t->total.syncs ? t->total.host_functions : 0;
    if (t->total.syncs || !(t->total.d2h_copies || t->total.host_functions))
      continue;
    if (++threads <= HIDDEN_NAMED) {
      sc_buf_printf(&names, "%s%" PRIu32, threads > 1 ? ", " : "", t->tid);
      if (t->name)
        sc_buf_printf(&names, " (%s)", t->name);
    }
    copies += t->total.d2h_copies;
    functions += t->total.host_functions;
  }
  bool ok = true;
  if (threads > HIDDEN_NAMED)
    sc_buf_printf(&names, " and %" PRIu64 " more", threads - HIDDEN_NAMED);
  if (threads)
    ok = !names.failed &&
         sc_findings_warn(findings,
                          "%s%" PRIu64 " device-to-host copies and %" PRIu64
                          " host functions on thread%s %s without a blocking call there: the host may wait "
                          "for them on its own lock or on mapped memory (as JAX and DeepEP do), or another thread "
                          "waits%s. Hidden waits are not in the count.",
                          label, copies, functions, threads == 1 ? "" : "s", names.data,
                          is_cut(a, process) ? ", or recording ended before the call that does" : "");
  if (others)
    ok &=
        sc_findings_warn(findings,
                         "%s%" PRIu64 " host function%s (cudaLaunchHostFunc, cudaStreamAddCallback) beside blocking "
                         "calls: a thread that waits for what such a function does waits in no CUDA call. Hidden waits "
                         "are not in the count.",
                         label, others, others == 1 ? "" : "s");
  sc_buf_free(&names);
  return ok;
}

static bool warn_ranges(const struct sc_analysis *a, const char *label, struct sc_findings *f)
{
  bool ok = true;
  if (a->tree.gathered)
    ok &= sc_findings_warn(f,
                           "%s%" PRIu64 " ranges were gathered in \"" SC_RANGES_OTHER
                           "\": more than %zu different range paths. "
                           "Give ranges names without numbers that grow.",
                           label, a->tree.gathered, a->tree.limit);
  if (a->tree.too_deep)
    ok &= sc_findings_warn(f,
                           "%s%" PRIu64 " ranges nested deeper than %d were gathered in \"" SC_RANGES_OTHER
                           "\": is a range pushed and never popped?",
                           label, a->tree.too_deep, SC_RANGE_DEPTH);
  if (a->unbalanced)
    ok &= sc_findings_warn(
        f,
        "%s%" PRIu64
        " range pops had no push on their thread: the ranges were opened before recording began, or on another thread.",
        label, a->unbalanced);
  uint64_t ends = a->unknown_ends + a->early_count;
  if (ends)
    ok &= sc_findings_warn(
        f,
        "%s%" PRIu64
        " start/end ranges were ended whose start is not in the trace: they were started before recording began.",
        label, ends);
  if (a->still_open)
    ok &= sc_findings_warn(
        f,
        "%s%" PRIu64
        " ranges were still open at the end of the trace: their syncs are counted, but they are left out of minimum, "
        "median and maximum.",
        label, a->still_open);
  if (a->dropped_spans)
    ok &= sc_findings_warn(
        f, "%s%" PRIu64 " start/end ranges were not followed: more than %d were open at once on one thread.", label,
        a->dropped_spans, SPANS_MAX);
  if (a->crossed_spans)
    ok &= sc_findings_warn(
        f,
        "%s%" PRIu64
        " start/end ranges were ended by another thread than their own: their counts are those of the thread that "
        "started them, and may be off by the calls around the end.",
        label, a->crossed_spans);
  return ok;
}

static bool warn_counts(const struct sc_analysis *a, const struct sc_process *process, const char *label,
                        struct sc_findings *f)
{
  const struct sc_counts *counts = &process->counts;
  bool ok = warn_notes(a, label, f) && warn_ranges(a, label, f) && warn_hidden_waits(a, process, label, f) &&
            sc_marks_warn(a, label, f);
  if (counts->uncertain)
    ok &= sc_findings_warn(f,
                           "%s%" PRIu64 " calls could not be judged: the kind of memory or the direction of the copy "
                           "is not known. They are not in the count.",
                           label, counts->uncertain);
  if (counts->sleeping_syncs)
    ok &=
        sc_findings_warn(f,
                         "%s%" PRIu64 " of the waits slept instead of spinning (cudaDeviceScheduleBlockingSync, or an "
                         "event made with cudaEventBlockingSync): each pays for waking up, tens of microseconds.",
                         label, counts->sleeping_syncs);
  if (a->from_ns == UINT64_MAX)
    ok &= sc_findings_warn(f, "%sno range matches '%s', which was to end the warm-up: every step is left out.", label,
                           a->tree.options.from);
  if (a->sites.gathered)
    ok &= sc_findings_warn(f,
                           "%s%" PRIu64 " syncs came from more different places than are kept apart (%u); they are "
                           "listed by class alone.",
                           label, a->sites.gathered, SITES_MAX);
  if (a->nameless)
    ok &= sc_findings_warn(
        f, "%s%" PRIu64 " calls have no name in the trace (its first chunk is damaged?) and are not in the count.",
        label, a->nameless);
  return ok;
}

/* Events leave the engine: they know indices of sites and ranges from now on. */
static void hand_events_over(struct sc_analysis *a, uint32_t *serial_of, struct sc_process *process)
{
  sc_events_finish(a->events, serial_of, a->sites.count, a->tree.range_of, a->tree.count);
  a->tree.range_of = NULL;
  process->events = a->events;
  a->events = NULL;
}

enum sc_status sc_analysis_finish(struct sc_analysis *a, const char *label, struct sc_process *process,
                                  struct sc_findings *findings, struct sc_error *err)
{
  uint64_t first = UINT64_MAX, last = 0;
  uint32_t *serial_of = NULL;
  bool ok = !a->failed && !a->tree.failed; /* memory was out while records came in: nothing here can be trusted */
  if (!label)
    label = "";
  for (struct sc_analysis_thread *t = a->threads; t && ok; t = t->next) {
    sc_scope_finish(a, t);
    sc_sites_settle(t);
    sc_counts_add(&process->counts, &t->total);
    if (t->first_ns && t->first_ns < first)
      first = t->first_ns;
    if (t->last_ns > last)
      last = t->last_ns;
    ok = emit_thread(t, process);
  }
  if (isnan(process->wall_us) && last > 0)
    process->wall_us = (double)(last - first) / 1e3;
  if (ok && (a->events || a->tally))
    ok = (a->tree.range_of = sc_calloc_array(a->tree.count + 1, sizeof *a->tree.range_of)) != NULL;
  for (size_t i = 0; ok && a->tree.range_of && i < a->tree.count; ++i)
    a->tree.range_of[i] = UINT32_MAX; /* of a node that was never seen open */
  ok = ok && sc_tree_finish(&a->tree, process);
  ok = ok && sc_steps_finish(a, process);
  if (a->drain.count) {
    process->drain_gap_total_us = (double)a->drain_ns / 1e3;
    process->drain_gap_p50_us = sc_hist_quantile(&a->drain, 0.5) / 1e3;
    process->drain_gaps = a->drain.count;
  }
  ok = ok && sc_sites_finish(a, process, a->events || a->tally ? &serial_of : NULL);
  if (ok && a->tally)
    ok = sc_tally_finish(a, serial_of, process);
  if (ok && a->events) {
    hand_events_over(a, serial_of, process);
    serial_of = NULL;
  }
  free(serial_of);
  ok = ok && warn_counts(a, process, label, findings);
  if (!ok || a->failed)
    return sc_error_set(err, SC_ERR_NOMEM, "out of memory while the findings of a process were put together");
  return SC_OK;
}
