/* SPDX-License-Identifier: Apache-2.0
 * Records in, findings out. No file format, no output format, no CUDA. */
#ifndef SC_ANALYSIS_H
#define SC_ANALYSIS_H

#include "analysis/findings.h"
#include "trace/trace.h"

struct sc_analysis_options {
  size_t max_ranges; /* 0: 4096 nodes; further range paths are gathered in "(other ranges)" and warned of */
};

/* ---- one process ---------------------------------------------------------------------------
 * Feed calls and ranges thread by thread or mixed: each thread's own order matters, threads' does not.
 * Traces (sc_analysis_read) and importers (sc_analysis_call, ...) use the same engine. */
struct sc_analysis;
struct sc_analysis *sc_analysis_new(const struct sc_analysis_options *options) SC_NODISCARD;
void sc_analysis_free(struct sc_analysis *analysis);

/* Reads a whole trace, appends one sc_process to findings, adds losses, damage and notes as warnings. */
enum sc_status sc_analysis_read(struct sc_reader *reader, const struct sc_analysis_options *options, struct sc_findings *findings, struct sc_error *err) SC_NODISCARD;

/* ---- the MoE runs of the main command -------------------------------------------------------
 * A traced probe opens one range "run:<variant>:E=<experts>:T=<tokens>" (domain "synccount") around each configuration;
 * inside, each measured forward is a range "forward", with "layer:<i>", "expert:<j>" and the ops below it. Warm-up is outside
 * "forward". Looks the run up by that name in process and fills run->counted, counts, per_layer, by_op, by_expert, exact.
 * run's shape and hit must be set. SC_ERR_MEASURE if there is no such range, no forward in it, or records were lost. */
enum sc_status sc_runs_count(struct sc_run *run, const struct sc_process *process, struct sc_error *err) SC_NODISCARD;
/* expected_per_layer and bound_per_layer from variant, experts, hit. */
void sc_runs_expect(struct sc_run *run);
/* Floors of every run from the ruler row "launch+readback" (block means), and from findings->assumed_us. */
bool sc_runs_floor(struct sc_findings *findings);
/* The law of each variant over its expert counts; replaces findings->laws. */
bool sc_runs_laws(struct sc_findings *findings);
/* Ruler row from samples in time order, cut into `blocks` blocks whose sizes are given. samples_us is sorted in place at the end. */
bool sc_ruler_from_samples(struct sc_ruler_row *row, const char *method, double *samples_us, const size_t *block_sizes, size_t blocks);
/* Marginal cost from control points: pairs (syncs per forward, forward time of each repeat). NaNs if n < 3. */
void sc_marginal_fit(struct sc_marginal *marginal, const double *syncs, const double *forward_us, size_t n);
/* True if the mean of the first and the last third of the row's blocks differ by more than 20 %. */
bool sc_ruler_drifts(const struct sc_ruler_row *row, double *first_us, double *last_us);

#endif
