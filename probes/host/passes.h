/* SPDX-License-Identifier: Apache-2.0
 * The passes, and the document they fill. */
#ifndef SC_PROBE_PASSES_H
#define SC_PROBE_PASSES_H

#include "host/verify.h"

struct json_t;

/* Samples of one quantity, in time order. */
struct sc_samples {
  double *us;
  size_t count, capacity;
};

struct sc_result {
  const struct sc_variant *variant;
  struct sc_point point;
  struct sc_verification verified;
  char skipped[128]; /* why this point was not run; empty when it was */
  uint32_t *hit;     /* [layers], read after the last forward */
  uint32_t forwards;
  struct sc_samples forward;
  int matches; /* -1 not known, 0, 1 */
  bool kept;   /* masked: its output is there to compare with */
};

enum { SC_CONTROL_STEPS = 4 };
struct sc_control {
  struct sc_point point;
  bool measured;
  struct sc_samples dense, steps[SC_CONTROL_STEPS];
  uint32_t *extra[SC_CONTROL_STEPS]; /* [layers]: idle read-backs added */
  uint64_t syncs[SC_CONTROL_STEPS];  /* a forward: the bounds' own and those added */
};

struct sc_session {
  const struct sc_options *options;
  struct sc_gpu *gpu;
  struct sc_model model;
  const struct sc_variant *variants[SC_MAX_VARIANTS];
  size_t variant_count;
  struct sc_result *results; /* points x variants; the variants of one point stand together */
  size_t result_count;
  struct sc_control *controls; /* one a point */
  size_t point_count;
  struct sc_ruler *ruler;
};

/* Opens model and results for the options' grid. SC_ERR_USAGE when no point can run. */
enum sc_status sc_session_open(struct sc_session *session, struct sc_gpu *gpu, const struct sc_options *options,
                               struct sc_error *err) SC_NODISCARD;
void sc_session_close(struct sc_session *session);
bool sc_session_verified(const struct sc_session *session);

enum sc_status sc_pass_times(struct sc_session *session, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_pass_counts(struct sc_session *session, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_pass_ruler(struct sc_session *session, struct sc_error *err) SC_NODISCARD;
/* Prints its lines to stdout; *ok false when anything is wrong. */
enum sc_status sc_pass_verify(struct sc_gpu *gpu, struct sc_options *options, bool *ok,
                              struct sc_error *err) SC_NODISCARD;

/* Parts of passes: session.c */
enum sc_status sc_verify_results(struct sc_session *session, struct sc_error *err) SC_NODISCARD;
/* After a forward of this result's variant: keeps masked's output, or compares with it. */
enum sc_status sc_settle_output(struct sc_session *session, struct sc_result *result,
                                struct sc_error *err) SC_NODISCARD;
bool sc_samples_reserve(struct sc_samples *samples, size_t capacity) SC_NODISCARD;
void sc_progress(const struct sc_session *session, const char *format, ...) SC_PRINTF(2, 3);

/* ---- document.c ---- */
/* Writes the whole document, under a temporary name first; to stdout when path is NULL. `failure` NULL: it went well.
 */
enum sc_status sc_document_write(const char *path, const struct sc_session *session, const struct sc_options *options,
                                 const char *failure, struct sc_error *err) SC_NODISCARD;

#endif
