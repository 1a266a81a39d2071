/* SPDX-License-Identifier: Apache-2.0
 * What a report for people says, in which order: the same for every format that people read. */
#ifndef SC_REPORT_CONTENT_H
#define SC_REPORT_CONTENT_H

#include "report/doc.h"
#include "report/report.h"

/* Builds the whole document. SC_ERR_NOMEM; the caller frees doc in any case. */
enum sc_status sc_report_content(struct sc_doc *doc, const struct sc_findings *findings,
                                 const struct sc_report_options *options, struct sc_error *err) SC_NODISCARD;

/* The parts, each silent when it has nothing to say. */
void sc_content_answer(struct sc_doc *doc, const struct sc_findings *findings); /* the first lines and the doubts */
void sc_content_runs(struct sc_doc *doc, const struct sc_findings *findings, bool per_expert);
void sc_content_cost(struct sc_doc *doc, const struct sc_findings *findings); /* marginal cost, decomposition */
void sc_content_verified(struct sc_doc *doc, const struct sc_findings *findings);
void sc_content_drift(struct sc_doc *doc, const struct sc_findings *findings);
void sc_content_host(struct sc_doc *doc, const struct sc_findings *findings); /* ruler, host, conditions */
/* The facts of "host", "device" or "conditions", an item each. Order and words depend on the facts alone: those of a
 * trace and those of its JSON report are told alike. */
void sc_content_facts(struct sc_doc *doc, const struct sc_findings *findings, const char *group);
bool sc_content_has_facts(const struct sc_findings *findings, const char *group);
void sc_content_ranks(struct sc_doc *doc, const struct sc_findings *findings); /* where there are several */
/* Of one process: where its syncs come from, and what to do. trip: sc_round_trip of all. */
void sc_content_sites(struct sc_doc *doc, const struct sc_process *process, bool simulated,
                      const struct sc_ruler_row *trip, unsigned width);
void sc_content_processes(struct sc_doc *doc, const struct sc_findings *findings,
                          const struct sc_report_options *options);

/* ---- numbers -------------------------------------------------------------------------------- */
void sc_put_count(struct sc_buf *buf, uint64_t n);                /* 12,020 */
void sc_put_number(struct sc_buf *buf, double value);             /* at most two decimals, "-" for NaN */
void sc_put_time(struct sc_buf *buf, double us);                  /* sc_format_time_us, "-" for NaN */
void sc_put_given_time(struct sc_buf *buf, double us);            /* as the user gave it: "26 us", not "26.0 us" */
void sc_put_range(struct sc_buf *buf, double low, double high);   /* "0.97-1.09 ms", both ends in one unit */
void sc_put_share(struct sc_buf *buf, double part, double whole); /* "8 %", "-" when either is not measured */
/* The sentence that warns of a drifting ruler; false, and nothing put, when it does not drift. */
bool sc_put_drift(struct sc_buf *buf, const struct sc_findings *findings);
const char *sc_plural(uint64_t n); /* "s" unless n is 1 */

/* SC_ERR_SYSTEM: sc_process_events_rewind or _failed said that events are lost. */
enum sc_status sc_report_events_lost(struct sc_error *err);

/* ---- what may be shown ------------------------------------------------------------------------ */
/* Times of the forward may be shown: measured on a device, and the variant verified. */
bool sc_run_has_forward(const struct sc_findings *findings, const struct sc_run *run);
/* A floor from a measured ruler; assumed round trips are apart. */
bool sc_run_has_floor(const struct sc_findings *findings, const struct sc_run *run);
/* The ruler row "launch+readback" of a real device, or NULL. */
const struct sc_ruler_row *sc_round_trip(const struct sc_findings *findings);
/* "masked" -> "Masked": the word a sentence begins with. */
void sc_put_variant(struct sc_buf *buf, const char *variant, bool capital);

#endif
