/* SPDX-License-Identifier: Apache-2.0
 * What the passes share: the grid of points, verification before anything is measured, outputs compared. */
#include <stdio.h>
#include <stdlib.h>

#include "host/passes.h"
#include "host/ruler.h"

bool sc_samples_reserve(struct sc_samples *samples, size_t capacity)
{
  samples->us = sc_calloc_array(capacity ? capacity : 1, sizeof *samples->us);
  samples->capacity = samples->us ? capacity : 0;
  return samples->us != NULL;
}

void sc_progress(const struct sc_session *session, const char *format, ...)
{
  if (!session->options->progress)
    return;
  char line[256];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  fprintf(stderr, "%-78s\r", line);
  fflush(stderr);
}

static enum sc_status open_results(struct sc_session *s, struct sc_error *err)
{
  const struct sc_options *o = s->options;
  s->point_count = o->expert_count * o->token_count;
  s->results = sc_calloc_array(s->point_count * s->variant_count, sizeof *s->results);
  s->controls = sc_calloc_array(s->point_count, sizeof *s->controls);
  if (s->results == NULL || s->controls == NULL)
    return sc_error_set(err, SC_ERR_NOMEM, "no host memory for the results of %zu points", s->point_count);
  size_t possible = 0;
  const char *reason = "";
  for (size_t p = 0; p < s->point_count; p++) {
    const struct sc_point point = {&s->model, (uint32_t)o->experts[p / o->token_count],
                                   (uint32_t)o->tokens[p % o->token_count]};
    s->controls[p].point = point;
    for (size_t v = 0; v < s->variant_count; v++) {
      struct sc_result *r = &s->results[s->result_count++];
      *r = (struct sc_result){.variant = s->variants[v], .point = point, .matches = -1};
      r->hit = sc_calloc_array(s->model.layers, sizeof *r->hit);
      if (r->hit == NULL || !sc_samples_reserve(&r->forward, o->repeats))
        return sc_error_set(err, SC_ERR_NOMEM, "no host memory for %u repeats; choose fewer --repeats", o->repeats);
      if (r->variant->supports == NULL || r->variant->supports(&point, r->skipped, sizeof r->skipped))
        possible++;
      else
        reason = r->skipped;
    }
  }
  return possible > 0 ? SC_OK : sc_error_set(err, SC_ERR_USAGE, "no point of --experts can run: %s", reason);
}

enum sc_status sc_session_open(struct sc_session *session, struct sc_gpu *gpu, const struct sc_options *options,
                               struct sc_error *err)
{
  session->options = options;
  session->gpu = gpu;
  SC_TRY(sc_variants_parse(options->variants, session->variants, &session->variant_count, err));
  if (options->pass == SC_PASS_RULER)
    return SC_OK;
  sc_progress(session, "making weights");
  SC_TRY(sc_model_open(&session->model, gpu, options, options->dtype, err));
  if (session->model.has_fused)
    SC_TRY(sc_fused_prepare(&session->model, err));
  return open_results(session, err);
}

void sc_session_close(struct sc_session *session)
{
  for (size_t i = 0; i < session->result_count; i++) {
    free(session->results[i].hit);
    free(session->results[i].forward.us);
  }
  for (size_t p = 0; session->controls && p < session->point_count; p++) {
    free(session->controls[p].dense.us);
    for (int i = 0; i < SC_CONTROL_STEPS; i++) {
      free(session->controls[p].steps[i].us);
      free(session->controls[p].extra[i]);
    }
  }
  free(session->results);
  free(session->controls);
  sc_ruler_close(session->ruler);
  sc_model_close(&session->model);
  *session = (struct sc_session){0};
}

bool sc_session_verified(const struct sc_session *session)
{
  for (size_t i = 0; i < session->result_count; i++)
    if (!session->results[i].skipped[0] && !session->results[i].verified.ok)
      return false;
  return true;
}

/* Outside every range: verification is no part of what is counted. */
enum sc_status sc_verify_results(struct sc_session *session, struct sc_error *err)
{
  enum sc_status status = SC_OK;
  session->gpu->ranges = false;
  for (size_t i = 0; status == SC_OK && i < session->result_count; i++) {
    struct sc_result *r = &session->results[i];
    const struct sc_result *before = i >= session->variant_count ? r - session->variant_count : NULL;
    const bool known = before != NULL && before->point.experts == r->point.experts; /* only the tokens differ */
    if (r->skipped[0])
      continue;
    sc_progress(session, "verifying %s, %u experts", r->variant->name, r->point.experts);
    if (known)
      r->verified = before->verified;
    else
      status = sc_verify_variant(r->variant, &session->model, r->point.experts, &r->verified, err);
  }
  session->gpu->ranges = true;
  return status;
}

enum sc_status sc_settle_output(struct sc_session *session, struct sc_result *result, struct sc_error *err)
{
  const size_t place = (size_t)(result - session->results) % session->variant_count;
  const struct sc_result *first = result - place; /* of this point */
  if (result->variant == sc_variant_masked) {
    SC_TRY(sc_keep_output(&result->point, err));
    result->kept = true;
    return SC_OK;
  }
  if (!first->kept || result->variant->reference != NULL || sc_not_comparable(&session->model) != NULL)
    return SC_OK;
  bool matches;
  SC_TRY(sc_output_matches(&result->point, &matches, err));
  result->matches = matches;
  return SC_OK;
}
