/* SPDX-License-Identifier: Apache-2.0
 * Pass verify: every kernel, then, in one or both types, every variant at every expert count, what can be captured, and
 * the gates of the fused layer. */
#include <stdio.h>

#include "host/passes.h"

static bool has_fused(const struct sc_session *session)
{
  for (size_t i = 0; i < session->variant_count; i++)
    if (session->variants[i]->layer == sc_layer_fused)
      return true;
  return false;
}

static enum sc_status verify_type(struct sc_gpu *gpu, const struct sc_options *options, bool *ok, struct sc_error *err)
{
  struct sc_session session = {0};
  enum sc_status status = sc_session_open(&session, gpu, options, err);
  if (status == SC_OK)
    status = sc_verify_results(&session, err);
  gpu->ranges = false; /* a forward that is refused in its middle leaves ranges open */
  for (size_t i = 0; status == SC_OK && i < session.result_count; i++) {
    const struct sc_result *r = &session.results[i];
    if (r->skipped[0]) {
      printf("skip   layer %s, %u experts: %s\n", r->variant->name, r->point.experts, r->skipped);
      continue;
    }
    printf("%-6s layer %-18s %s, %u experts, top-%u, %s: error %.3g, cosine %.9f%s%s\n",
           r->verified.ok ? "ok" : "WRONG", r->variant->name, sc_dtype_name(options->dtype), r->point.experts,
           options->top_k, options->activation_name->name, r->verified.rel_error, r->verified.cosine,
           r->verified.ok ? "" : ": ", r->verified.reason);
  }
  for (size_t i = 0; status == SC_OK && i < session.result_count; i++) {
    const struct sc_result *r = &session.results[i];
    const struct sc_point point = {&session.model, r->point.experts, SC_VERIFY_TOKENS};
    if (!r->skipped[0] && r->point.tokens == options->tokens[0]) /* one of the points that differ in tokens alone */
      status = sc_verify_capture(r->variant, &point, ok, err);
  }
  if (status == SC_OK && has_fused(&session))
    status = sc_verify_fused(gpu, &session.model.shape, ok, err);
  if (status == SC_OK) {
    *ok = *ok && sc_session_verified(&session);
    if (options->output != NULL)
      status = sc_document_write(options->output, &session, options, NULL, err);
  }
  sc_session_close(&session);
  return status;
}

enum sc_status sc_pass_verify(struct sc_gpu *gpu, struct sc_options *options, bool *ok, struct sc_error *err)
{
  printf("seed %llu (repeat with --seed)\n", (unsigned long long)options->seed);
  gpu->ranges = false;
  SC_TRY(sc_verify_kernels(gpu, options->seed, ok, err));
  SC_TRY(sc_verify_fused_kernels(gpu, options->seed, ok, err));
  const int first = options->dtype_given ? (int)options->dtype : SC_F32, last = options->dtype_given ? first : SC_BF16;
  for (int dtype = first; dtype <= last; dtype++) {
    options->dtype = (enum sc_dtype)dtype;
    SC_TRY(verify_type(gpu, options, ok, err));
  }
  printf("%s\n", *ok ? "verified" : "NOT VERIFIED");
  return SC_OK;
}
