/* SPDX-License-Identifier: Apache-2.0
 * The order of a report for people: the answer, the tables, the conditions, then what went wrong. */
#include "report/content.h"

static void warnings_part(struct sc_doc *doc, const struct sc_findings *f)
{
  if (!f->warning_count)
    return;
  sc_doc_put(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, "Warnings");
  for (size_t i = 0; i < f->warning_count; i++) {
    struct sc_buf line = {0};

    sc_put_prose(&line, f->warnings[i]);
    sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_BAD, &line);
  }
}

static void losses_part(struct sc_doc *doc, const struct sc_findings *f)
{
  bool traced = f->process_count > 0;

  for (size_t i = 0; i < f->run_count; i++)
    traced |= f->runs[i].counted;
  if (!traced)
    return;
  sc_doc_put(doc, SC_BLOCK_GAP, SC_TONE_PLAIN, "%s", "");
  if (f->lost_records || f->lost_chunks)
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_BAD, "Lost from the traces: %llu records, %llu chunks.",
               (unsigned long long)f->lost_records, (unsigned long long)f->lost_chunks);
  else
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_PLAIN, "Lost from the traces: nothing.");
}

enum sc_status sc_report_content(struct sc_doc *doc, const struct sc_findings *findings,
                                 const struct sc_report_options *options, struct sc_error *err)
{
  sc_content_answer(doc, findings);
  if (!options->quiet) {
    sc_content_runs(doc, findings, options->per_expert);
    sc_content_cost(doc, findings);
    sc_content_ranks(doc, findings);
    sc_content_processes(doc, findings, options);
    sc_content_host(doc, findings);
    sc_content_verified(doc, findings);
  }
  sc_content_drift(doc, findings);
  warnings_part(doc, findings);
  if (!options->quiet)
    losses_part(doc, findings);
  if (doc->failed)
    return sc_error_set(err, SC_ERR_NOMEM, "no memory to lay out the report");
  return SC_OK;
}

enum sc_status sc_report_events_lost(struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_SYSTEM,
                      "cannot keep the events in a temporary file, or read them back: is the folder for temporary files full?");
}
