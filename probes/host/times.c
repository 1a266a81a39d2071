/* SPDX-License-Identifier: Apache-2.0
 * Pass times: rounds of one ruler block and some forwards of every variant and control, so that whatever drifts drifts
 * for all of them alike. The host's clock; the device is idle before and after each forward. */
#include <stdlib.h>

#include "host/passes.h"
#include "host/ruler.h"

static enum sc_status begin(const struct sc_session *s, uint64_t *start, struct sc_error *err)
{
  SC_TRY(sc_gpu_sync(s->gpu, err));
  *start = sc_clock_mono_ns();
  return SC_OK;
}

static enum sc_status end(const struct sc_session *s, uint64_t start, struct sc_samples *samples, struct sc_error *err)
{
  SC_TRY(sc_gpu_sync(s->gpu, err));
  const uint64_t stop = sc_clock_mono_ns();
  if (samples != NULL && samples->count < samples->capacity)
    samples->us[samples->count++] = (double)(stop - start) / 1e3;
  return SC_OK;
}

/* samples NULL: a warm-up. */
static enum sc_status time_variant(const struct sc_session *s, const struct sc_result *r, struct sc_samples *samples,
                                   struct sc_error *err)
{
  uint64_t start;
  SC_TRY(begin(s, &start, err));
  SC_TRY(sc_forward(r->variant, &r->point, err));
  return end(s, start, samples, err);
}

static enum sc_status time_dense(const struct sc_session *s, struct sc_control *c, struct sc_samples *samples,
                                 struct sc_error *err)
{
  uint64_t start;
  SC_TRY(begin(s, &start, err));
  SC_TRY(sc_forward_dense(&c->point, err));
  return end(s, start, samples, err);
}

static enum sc_status time_step(const struct sc_session *s, struct sc_control *c, int step, struct sc_samples *samples,
                                struct sc_error *err)
{
  uint64_t start;
  SC_TRY(begin(s, &start, err));
  SC_TRY(sc_forward_sorted_syncs(&c->point, c->extra[step], err));
  return end(s, start, samples, err);
}

/* The steps' totals are a third, two thirds and all of the masked loop's E + 2 * hit a layer, the one sync of sorted
 * dispatch included; the first step is sorted dispatch as it is. */
static enum sc_status plan_controls(struct sc_session *s, struct sc_control *c, const uint32_t *hit,
                                    struct sc_error *err)
{
  const uint32_t layers = s->model.layers;
  bool complete = sc_samples_reserve(&c->dense, s->options->repeats);
  for (int i = 0; complete && i < SC_CONTROL_STEPS; i++) {
    c->extra[i] = sc_calloc_array(layers, sizeof *c->extra[i]);
    complete = c->extra[i] != NULL && sc_samples_reserve(&c->steps[i], s->options->repeats);
    for (uint32_t layer = 0; complete && layer < layers; layer++) {
      const uint32_t masked = c->point.experts + 2 * hit[layer];
      const uint32_t total = (masked * (uint32_t)i + 1) / (SC_CONTROL_STEPS - 1);
      c->extra[i][layer] = total > 1 ? total - 1 : 0;
      c->syncs[i] += 1 + c->extra[i][layer];
    }
  }
  c->measured = complete;
  return complete ? SC_OK : sc_error_set(err, SC_ERR_NOMEM, "no host memory for the controls' samples");
}

static bool timed(const struct sc_result *r) { return !r->skipped[0] && r->verified.ok; }

static enum sc_status warm_up(struct sc_session *s, struct sc_error *err)
{
  for (size_t i = 0; i < s->result_count; i++) {
    const struct sc_result *r = &s->results[i];
    sc_progress(s, "warming up %s, %u experts, %u tokens", r->variant->name, r->point.experts, r->point.tokens);
    for (uint32_t n = 0; timed(r) && n < s->options->warmup; n++)
      SC_TRY(time_variant(s, r, NULL, err));
  }
  return SC_OK;
}

/* The controls need sorted dispatch, and hits, which do not depend on the variant: one forward tells them. */
static enum sc_status open_controls(struct sc_session *s, struct sc_error *err)
{
  for (size_t p = 0; s->options->controls && p < s->point_count; p++) {
    struct sc_control *c = &s->controls[p];
    const struct sc_result *r = &s->results[p * s->variant_count];
    bool all = true;
    for (size_t v = 0; v < s->variant_count; v++)
      all = all && timed(&r[v]);
    if (!all)
      continue;
    for (uint32_t layer = 0; layer < s->model.layers; layer++)
      SC_TRY(sc_layer_route(&c->point, layer, err));
    SC_TRY(sc_read_hits(&c->point, r->hit, err));
    SC_TRY(plan_controls(s, c, r->hit, err));
    for (uint32_t n = 0; n < s->options->warmup; n++) {
      SC_TRY(time_dense(s, c, NULL, err));
      SC_TRY(time_step(s, c, SC_CONTROL_STEPS - 1, NULL, err));
    }
  }
  return SC_OK;
}

/* One repeat of everything at one point. */
static enum sc_status repeat_point(struct sc_session *s, size_t p, struct sc_error *err)
{
  for (size_t v = 0; v < s->variant_count; v++) {
    struct sc_result *r = &s->results[p * s->variant_count + v];
    if (!timed(r))
      continue;
    SC_TRY(time_variant(s, r, &r->forward, err));
    if (r->forward.count == 1) { /* what is compared is the output of a timed forward */
      SC_TRY(sc_read_hits(&r->point, r->hit, err));
      SC_TRY(sc_settle_output(s, r, err));
    }
  }
  struct sc_control *c = &s->controls[p];
  if (!c->measured)
    return SC_OK;
  SC_TRY(time_dense(s, c, &c->dense, err));
  for (int step = 0; step < SC_CONTROL_STEPS; step++)
    SC_TRY(time_step(s, c, step, &c->steps[step], err));
  return SC_OK;
}

static enum sc_status measure(struct sc_session *s, struct sc_error *err)
{
  const uint32_t rounds = s->options->blocks;
  for (uint32_t round = 0; round < rounds; round++) {
    sc_progress(s, "measuring, round %u of %u", round + 1, rounds);
    SC_TRY(sc_ruler_block(s->ruler, round, err));
    const uint32_t repeats = sc_share(s->options->repeats, round, rounds);
    for (uint32_t n = 0; n < repeats; n++)
      for (size_t p = 0; p < s->point_count; p++)
        SC_TRY(repeat_point(s, p, err));
  }
  for (size_t i = 0; i < s->result_count; i++)
    s->results[i].forwards = (uint32_t)s->results[i].forward.count;
  return SC_OK;
}

enum sc_status sc_pass_times(struct sc_session *s, struct sc_error *err)
{
  SC_TRY(sc_verify_results(s, err));
  SC_TRY(sc_ruler_open(&s->ruler, s->gpu, s->options, err));
  s->gpu->ranges = false; /* nothing is counted in this pass, and a range is host work */
  SC_TRY(warm_up(s, err));
  SC_TRY(open_controls(s, err));
  return measure(s, err);
}

enum sc_status sc_pass_ruler(struct sc_session *s, struct sc_error *err)
{
  SC_TRY(sc_ruler_open(&s->ruler, s->gpu, s->options, err));
  for (uint32_t block = 0; block < s->options->blocks; block++) {
    sc_progress(s, "ruler, block %u of %u", block + 1, s->options->blocks);
    SC_TRY(sc_ruler_block(s->ruler, block, err));
  }
  return SC_OK;
}
