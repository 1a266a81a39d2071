/* SPDX-License-Identifier: Apache-2.0
 * Pass counts: each variant at each point, warmed up, then forwards inside their ranges. Whoever traces this process
 * counts; the probe itself does not. */
#include <stdio.h>

#include "host/passes.h"

static enum sc_status count_point(struct sc_session *s, struct sc_result *r, struct sc_error *err)
{
  char name[96];
  snprintf(name, sizeof name, "run:%s:E=%u:T=%u", r->variant->name, r->point.experts, r->point.tokens);
  sc_progress(s, "counting %s, %u experts, %u tokens", r->variant->name, r->point.experts, r->point.tokens);
  sc_gpu_push(s->gpu, name);
  s->gpu->ranges = false;
  for (uint32_t n = 0; n < s->options->warmup; n++)
    SC_TRY(sc_forward(r->variant, &r->point, err));
  SC_TRY(sc_gpu_sync(s->gpu, err));
  s->gpu->ranges = true;
  for (uint32_t n = 0; n < s->options->forwards; n++) {
    SC_TRY(sc_forward(r->variant, &r->point, err));
    SC_TRY(sc_gpu_sync(s->gpu, err)); /* outside `forward` */
  }
  sc_gpu_pop(s->gpu);
  r->forwards = s->options->forwards;
  SC_TRY(sc_read_hits(&r->point, r->hit, err));
  return sc_settle_output(s, r, err);
}

enum sc_status sc_pass_counts(struct sc_session *s, struct sc_error *err)
{
  SC_TRY(sc_verify_results(s, err));
  for (size_t i = 0; i < s->result_count; i++)
    if (!s->results[i].skipped[0])
      SC_TRY(count_point(s, &s->results[i], err));
  return SC_OK;
}
