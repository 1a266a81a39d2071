/* SPDX-License-Identifier: Apache-2.0
 * The first lines: the answer, and at once whatever makes it doubtful. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/content.h"

enum { ANSWER_LINES = 8, PROCESS_LINES = 8, DOUBT_LINES = 8 };

static void answer_round_trip(struct sc_doc *doc, const struct sc_findings *f)
{
  const struct sc_ruler_row *trip = sc_round_trip(f), *launch = sc_findings_ruler(f, "launch");
  struct sc_buf line = {0};

  if (!trip || isnan(trip->p50_us))
    return;
  sc_buf_puts(&line, "A read-back costs ");
  sc_put_time(&line, trip->p50_us);
  sc_buf_puts(&line, " on this host");
  if (launch && launch->p50_us < trip->p50_us) {
    double rest = trip->p50_us - launch->p50_us;

    if (trip->p50_us < 999.5) {
      sc_buf_printf(&line, " (launch %.1f + copy and wait %.1f)", launch->p50_us, rest);
    } else {
      sc_buf_puts(&line, " (launch ");
      sc_put_time(&line, launch->p50_us);
      sc_buf_puts(&line, " + copy and wait ");
      sc_put_time(&line, rest);
      sc_buf_puts(&line, ")");
    }
  }
  sc_buf_puts(&line, ".");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_STRONG, &line);
}

static bool same_point(const struct sc_run *a, const struct sc_run *b)
{
  return a->experts == b->experts && a->tokens == b->tokens && a->layers == b->layers && a->hidden == b->hidden &&
         a->intermediate == b->intermediate && a->top_k == b->top_k;
}

static void put_floor(struct sc_buf *line, const struct sc_findings *f, const struct sc_run *run)
{
  if (sc_run_has_floor(f, run)) {
    sc_buf_puts(line, ", floor ");
    sc_put_time(line, run->floor_mean_us);
    if (sc_run_has_forward(f, run)) {
      sc_buf_puts(line, " of ");
      sc_put_time(line, run->forward_p50_us);
    }
  } else if (run->assumed_floor_us && run->counted) {
    size_t i = 0;

    while (i < f->assumed_count && isnan(run->assumed_floor_us[i])) /* another report assumed that */
      i++;
    if (i == f->assumed_count)
      return;
    sc_buf_puts(line, ", floor ");
    sc_put_time(line, run->assumed_floor_us[i]);
    sc_buf_puts(line, " if a round trip costs ");
    sc_put_given_time(line, f->assumed_us[i]);
  }
}

/* "Masked, E=4: 96 syncs a forward, floor 1.02 ms of 12.1 ms; sorted: 8" */
static void answer_point(struct sc_doc *doc, const struct sc_findings *f, size_t first, bool name_tokens)
{
  const struct sc_run *run = &f->runs[first];
  struct sc_buf line = {0};

  sc_put_variant(&line, run->variant, true);
  sc_buf_printf(&line, ", E=%llu", (unsigned long long)run->experts);
  if (name_tokens) {
    sc_buf_puts(&line, ", ");
    sc_put_count(&line, run->tokens);
    sc_buf_printf(&line, " token%s", sc_plural(run->tokens));
  }
  if (run->counted) {
    sc_buf_puts(&line, ": ");
    sc_put_number(&line, run->per_forward);
    sc_buf_printf(&line, " sync%s a forward", run->per_forward == 1 ? "" : "s");
    put_floor(&line, f, run);
  } else {
    sc_buf_puts(&line, ": syncs not counted");
  }
  for (size_t i = first + 1; i < f->run_count; i++) {
    const struct sc_run *other = &f->runs[i];

    if (!same_point(run, other))
      continue;
    sc_buf_puts(&line, "; ");
    sc_put_variant(&line, other->variant, false);
    sc_buf_puts(&line, ": ");
    if (other->counted)
      sc_put_number(&line, other->per_forward);
    else
      sc_buf_puts(&line, "not counted");
  }
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_STRONG, &line);
}

static void answer_runs(struct sc_doc *doc, const struct sc_findings *f)
{
  size_t lines = 0;
  bool name_tokens = false;

  for (size_t i = 1; i < f->run_count; i++)
    name_tokens |= f->runs[i].tokens != f->runs[0].tokens;
  for (size_t i = 0; i < f->run_count; i++) {
    bool said = false;

    for (size_t k = 0; k < i && !said; k++)
      said = same_point(&f->runs[k], &f->runs[i]);
    if (said)
      continue;
    if (lines++ < ANSWER_LINES)
      answer_point(doc, f, i, name_tokens);
  }
  if (lines > ANSWER_LINES)
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_PLAIN, "and %zu more in the tables below.", lines - ANSWER_LINES);
}

static void answer_process(struct sc_doc *doc, const struct sc_findings *f, const struct sc_process *p)
{
  struct sc_buf line = {0};

  if (p->unmeasured) {
    sc_buf_puts(&line, "nothing measured");
  } else {
    sc_put_count(&line, p->counts.syncs);
    sc_buf_printf(&line, " sync%s", sc_plural(p->counts.syncs));
  }
  if (p->counts.syncs) {
    sc_buf_puts(&line, ", ");
    sc_put_count(&line, p->counts.read_backs);
    sc_buf_puts(&line, p->counts.read_backs == 1 ? " of them a read-back" : " of them read-backs");
  }
  sc_buf_printf(&line, ", in process %llu", (unsigned long long)p->pid);
  if (p->command) {
    sc_buf_puts(&line, " (");
    sc_put_name(&line, p->command, 60);
    sc_buf_puts(&line, ")");
  }
  if (p->counts.syncs && !sc_process_is_simulated(f, p)) {
    size_t waiting;

    (void)sc_process_longest_wait(p, &waiting);
    sc_buf_puts(&line, waiting > 1 ? "; its threads together waited " : "; it waited ");
    sc_put_time(&line, (double)p->counts.wait_ns / 1000.0);
    if (!isnan(p->wall_us) && waiting <= 1) {
      sc_buf_puts(&line, " of ");
      sc_put_time(&line, p->wall_us);
    }
  }
  sc_buf_puts(&line, ".");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_STRONG, &line);
}

static void answer_processes(struct sc_doc *doc, const struct sc_findings *f)
{
  uint64_t syncs = 0;

  for (size_t i = 0; i < f->process_count; i++)
    syncs += f->processes[i].counts.syncs;
  if (f->process_count > 1) {
    struct sc_buf line = {0};

    sc_put_count(&line, syncs);
    sc_buf_printf(&line, " sync%s in %zu processes.", sc_plural(syncs), f->process_count);
    sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_STRONG, &line);
  }
  for (size_t i = 0; i < f->process_count && i < PROCESS_LINES; i++)
    answer_process(doc, f, &f->processes[i]);
  if (f->process_count > PROCESS_LINES)
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_PLAIN, "and %zu more processes below.", f->process_count - PROCESS_LINES);
}

static void answer_nothing(struct sc_doc *doc, const struct sc_findings *f)
{
  struct sc_buf line = {0};

  sc_buf_puts(&line, "Nothing was measured");
  if (f->simulated && f->assumed_count) {
    sc_buf_puts(&line, ": the round trip of ");
    sc_put_given_time(&line, f->assumed_us[0]);
    sc_buf_puts(&line, " is a setting of the simulated device");
  }
  sc_buf_puts(&line, ".");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
}

/* ---- doubts ------------------------------------------------------------------------------------ */

static void put_point(struct sc_buf *line, const struct sc_run *run)
{
  sc_put_variant(line, run->variant, false);
  sc_buf_printf(line, ", E=%llu, ", (unsigned long long)run->experts);
  sc_put_count(line, run->tokens);
  sc_buf_printf(line, " token%s", sc_plural(run->tokens));
}

static void doubt_verified(struct sc_doc *doc, const struct sc_findings *f)
{
  size_t lines = 0;

  for (size_t i = 0; i < f->run_count; i++) {
    const struct sc_run *run = &f->runs[i];
    struct sc_buf line = {0};

    if (run->verified || ++lines > DOUBT_LINES)
      continue;
    sc_buf_puts(&line, "NOT VERIFIED: ");
    put_point(&line, run);
    sc_buf_puts(&line, ": ");
    sc_put_prose(&line, run->not_verified ? run->not_verified : "it was not compared with the CPU reference");
    sc_buf_puts(&line, "; its times are omitted.");
    sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
  }
  if (lines > DOUBT_LINES)
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_BAD, "NOT VERIFIED: %zu more configurations.", lines - DOUBT_LINES);
}

static void doubt_count(struct sc_doc *doc, const struct sc_run *run)
{
  struct sc_buf line = {0};

  if (!run->counted || run->exact || isnan(run->expected_per_layer))
    return;
  sc_buf_puts(&line, "UNEXPECTED COUNT: ");
  put_point(&line, run);
  sc_buf_puts(&line, ": ");
  sc_put_count(&line, run->per_layer_min);
  if (run->per_layer_max != run->per_layer_min) {
    sc_buf_puts(&line, " to ");
    sc_put_count(&line, run->per_layer_max);
  }
  sc_buf_puts(&line, " syncs a layer counted, ");
  sc_put_number(&line, run->expected_per_layer);
  sc_buf_puts(&line, " expected.");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
}

static void doubt_output(struct sc_doc *doc, const struct sc_run *run)
{
  struct sc_buf line = {0};

  if (run->output_matches_masked != 0)
    return;
  sc_buf_puts(&line, "OUTPUT DIFFERS: ");
  put_point(&line, run);
  sc_buf_puts(&line, ": its output is not bit for bit the masked loop's.");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
}

static void doubt_uncertain(struct sc_doc *doc, const struct sc_run *run)
{
  struct sc_buf line = {0};

  if (!run->counted || run->counts.uncertain == 0)
    return;
  sc_buf_puts(&line, "UNCERTAIN: ");
  put_point(&line, run);
  sc_buf_puts(&line, ": ");
  sc_put_count(&line, run->counts.uncertain);
  sc_buf_puts(&line, " copies to memory of unknown kind may or may not have blocked; they are not in the count.");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
}

static void doubt_losses(struct sc_doc *doc, const struct sc_findings *f)
{
  struct sc_buf line = {0};
  bool complete = f->run_count == 0 && f->process_count > 0;

  if (!f->lost_records && !f->lost_chunks)
    return;
  for (size_t i = 0; i < f->process_count; i++)
    complete &= sc_process_is_whole(&f->processes[i]);
  if (complete) {
    sc_buf_puts(&line, "NO ROOM for ");
    sc_put_count(&line, f->lost_records);
    sc_buf_puts(&line, " records of the trace: the totals are complete, the details are not.");
    sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
    return;
  }
  sc_buf_puts(&line, "LOST: ");
  sc_put_count(&line, f->lost_records);
  sc_buf_printf(&line, " record%s and ", sc_plural(f->lost_records));
  sc_put_count(&line, f->lost_chunks);
  sc_buf_printf(&line, " chunk%s of the trace; every count is a lower bound.", sc_plural(f->lost_chunks));
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
}

void sc_content_answer(struct sc_doc *doc, const struct sc_findings *f)
{
  if (sc_findings_simulated(f))
    sc_doc_put(doc, SC_BLOCK_BANNER, SC_TONE_BAD,
               "SIMULATED: no GPU was used. Counts are those of the calls made; nothing here is a speed.");
  if (!f->process_count)
    answer_round_trip(doc, f);
  answer_runs(doc, f);
  answer_processes(doc, f);
  if (f->process_count)
    answer_round_trip(doc, f);
  if (!sc_round_trip(f) && !f->run_count && !f->process_count)
    answer_nothing(doc, f);
  doubt_verified(doc, f);
  for (size_t i = 0; i < f->run_count; i++) {
    doubt_count(doc, &f->runs[i]);
    doubt_output(doc, &f->runs[i]);
    doubt_uncertain(doc, &f->runs[i]);
  }
  doubt_losses(doc, f);
}
