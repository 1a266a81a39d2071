/* SPDX-License-Identifier: Apache-2.0
 * Bytes and operations of a layer: what is counted, and nothing else, so that shares of the roofline are comparable. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

static uint64_t rows13(const struct bench_shape *s) { return s->gated ? 2 * s->intermediate : s->intermediate; }

uint64_t bench_expert_parameters(const struct bench_shape *s) { return (rows13(s) + s->intermediate) * s->hidden; }

uint64_t bench_expert_bytes(const struct bench_shape *s)
{
  const uint64_t parameters = bench_expert_parameters(s), globals = 2;
  const uint64_t biases = s->biases ? rows13(s) + s->hidden : 0;
  return parameters / 2 + parameters / NVFP4_BLOCK + (globals + biases) * sizeof(float);
}

uint64_t bench_activation_bytes(const struct bench_shape *s, uint64_t tokens)
{
  return 2 * tokens * s->hidden * sc_dtype_size(SC_BF16);
}

uint64_t bench_flops(const struct bench_shape *s, uint64_t tokens)
{
  return 2 * tokens * s->top_k * bench_expert_parameters(s);
}

double bench_expected_hit(const struct bench_shape *s, uint64_t tokens)
{
  const double missed = 1.0 - (double)s->top_k / (double)s->experts;
  return (double)s->experts * (1.0 - pow(missed, (double)tokens));
}

uint32_t bench_hit(const struct bench_shape *s, const int32_t *chosen, uint64_t tokens)
{
  uint64_t last[SC_MAX_EXPERTS] = {0}; /* the token, from 1, that chose it last */
  uint32_t hit = 0;
  for (uint64_t t = 0; t < tokens; t++)
    for (uint64_t j = 0; j < s->top_k; j++) {
      const int32_t expert = chosen[t * s->top_k + j];
      if (expert < 0 || (uint64_t)expert >= s->experts || last[expert] == t + 1)
        return UINT32_MAX;
      hit += last[expert] == 0;
      last[expert] = t + 1;
    }
  return hit;
}
