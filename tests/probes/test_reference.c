/* SPDX-License-Identifier: Apache-2.0
 * The CPU reference: the oracle must be right by itself, so each operation is held against its definition, written the
 * plainest way, or against numbers worked out elsewhere. */
#include <stdlib.h>

#include "reference/reference.h"
#include "test_support.h"

static uint64_t counter;

static uint32_t bits(void) { return sc_ref_hash(UINT64_C(0x0123456789abcdef), counter++); }

static float number(float scale) { return ((float)(bits() >> 8) * 0x1p-23f - 1.0f) * scale; }

static void *zeroed(size_t count, size_t size)
{
  void *memory = sc_calloc_array(count ? count : 1, size);
  assert_non_null(memory);
  return memory;
}

/* ---- numbers ---- */

static void bf16_rounds_to_nearest_even(void **state)
{
  (void)state;
  assert_int_equal(sc_ref_to_bf16(1.0f), 0x3f80);
  assert_int_equal(sc_ref_to_bf16(-2.5f), 0xc020);
  assert_int_equal(sc_ref_to_bf16(0x1.01p0f), 0x3f80);     /* halfway, down to even */
  assert_int_equal(sc_ref_to_bf16(0x1.03p0f), 0x3f82);     /* halfway, up to even */
  assert_int_equal(sc_ref_to_bf16(0x1.010002p0f), 0x3f81); /* just above halfway */
  assert_int_equal(sc_ref_to_bf16(-0.0f), 0x8000);
  assert_int_equal(sc_ref_to_bf16(0x1.fffffep127f), 0x7f80); /* overflows to infinity */
  assert_int_equal(sc_ref_to_bf16(INFINITY), 0x7f80);
  assert_true(isnan(sc_ref_from_bf16(sc_ref_to_bf16(NAN))));
  for (uint32_t i = 0; i < 0x10000; i++) /* every pattern that is no NaN survives the way there and back */
    if (!isnan(sc_ref_from_bf16((uint16_t)i)))
      assert_int_equal(sc_ref_to_bf16(sc_ref_from_bf16((uint16_t)i)), i);
}

/* Worked out by an independent program (Python, arbitrary precision integers). */
static void hash_matches_known_values(void **state)
{
  (void)state;
  assert_int_equal(sc_ref_stream_key(0, 0), UINT64_C(0xa706dd2f4d197e6f));
  assert_int_equal(sc_ref_stream_key(42, 7), UINT64_C(0x6eab8625df268fbc));
  assert_int_equal(sc_ref_hash(sc_ref_stream_key(0, 0), 0), UINT32_C(0x4181dbf0));
  assert_int_equal(sc_ref_hash(sc_ref_stream_key(42, 7), 123456789), UINT32_C(0x25477200));
  assert_int_equal(sc_ref_hash(sc_ref_stream_key(42, 7), UINT64_C(0x300000005)), UINT32_C(0x61427dc6));
}

static void uniform_is_the_hash_scaled_and_does_not_depend_on_the_start(void **state)
{
  (void)state;
  enum { N = 5000 };
  /* across a change of the index's upper half */
  const uint64_t first = (UINT64_C(3) << 32) - N / 2, key = sc_ref_stream_key(9, 8);
  float all[N], tail[N / 4];
  sc_ref_uniform(SC_F32, all, first, N, 9, 8, 0.25f);
  sc_ref_uniform(SC_F32, tail, first + N - N / 4, N / 4, 9, 8, 0.25f);
  assert_memory_equal(tail, all + N - N / 4, sizeof tail);
  double sum = 0.0, square = 0.0;
  for (uint64_t i = 0; i < N; i++) {
    const float expected = ((float)(sc_ref_hash(key, first + i) >> 8) / 8388608.0f - 1.0f) * 0.25f;
    assert_memory_equal(&all[i], &expected, sizeof expected);
    assert_true(all[i] >= -0.25f && all[i] < 0.25f);
    sum += (double)all[i];
    square += (double)all[i] * (double)all[i];
  }
  assert_true(fabs(sum / N) < 0.01);
  assert_true(fabs(square / N - 0.0625 / 3) < 0.001);
}

static void fill_in_bf16_is_the_rounded_uniform(void **state)
{
  (void)state;
  enum { N = 9001 };
  float *expected = zeroed(N, sizeof *expected);
  uint16_t *got = zeroed(N, sizeof *got);
  sc_ref_uniform(SC_BF16, expected, 0, N, 1, 2, 3.0f);
  sc_ref_fill(SC_BF16, got, N, 1, 2, 3.0f);
  for (size_t i = 0; i < N; i++)
    assert_true(sc_ref_from_bf16(got[i]) == expected[i]);
  free(expected);
  free(got);
}

/* ---- routing ---- */

static void softmax_sums_to_one_and_keeps_the_ratios(void **state)
{
  (void)state;
  const float logits[2][3] = {{1.0f, 2.0f, 3.0f}, {1000.0f, 1000.0f, -1000.0f}};
  float probs[2][3];
  sc_ref_softmax(SC_F32, logits, probs[0], 2, 3);
  assert_true(fabs((double)probs[0][2] - 0.66524096) < 1e-7);
  assert_true(fabs((double)probs[0][0] - 0.09003057) < 1e-7);
  assert_true(probs[1][0] == 0.5f && probs[1][1] == 0.5f && probs[1][2] == 0.0f);
}

static void topk_prefers_the_lower_index_among_equals(void **state)
{
  (void)state;
  const float probs[2][6] = {{0.1f, 0.3f, 0.3f, 0.0f, 0.3f, 0.1f}, {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f}};
  int32_t chosen[2][4];
  float weights[2][4];
  sc_ref_topk(probs[0], chosen[0], weights[0], 2, 6, 4);
  const int32_t expected[2][4] = {{1, 2, 4, 0}, {0, 1, 2, 3}};
  assert_memory_equal(chosen, expected, sizeof expected);
  assert_true(weights[0][0] == 0.3f && weights[0][3] == 0.1f);
}

static void topk_puts_nan_last_and_stays_in_range(void **state)
{
  (void)state;
  const float probs[2][4] = {{NAN, 0.2f, NAN, 0.1f}, {NAN, NAN, NAN, NAN}};
  int32_t chosen[2][3];
  float weights[2][3];
  sc_ref_topk(probs[0], chosen[0], weights[0], 2, 4, 3);
  const int32_t expected[2][3] = {{1, 3, 0}, {0, 1, 2}};
  assert_memory_equal(chosen, expected, sizeof expected);
}

static void topk_equals_a_stable_sort(void **state)
{
  (void)state;
  enum { ROWS = 50, EXPERTS = 40, K = 7 };
  float probs[ROWS * EXPERTS], weights[ROWS * K];
  int32_t chosen[ROWS * K];
  for (size_t i = 0; i < ROWS * EXPERTS; i++)
    probs[i] = (float)(bits() % 16);
  sc_ref_topk(probs, chosen, weights, ROWS, EXPERTS, K);
  for (size_t r = 0; r < ROWS; r++) {
    bool taken[EXPERTS] = {false};
    for (size_t j = 0; j < K; j++) { /* selection: the first of the largest that remain */
      int32_t best = -1;
      for (int32_t e = 0; e < EXPERTS; e++)
        if (!taken[e] && (best < 0 || probs[r * EXPERTS + (size_t)e] > probs[r * EXPERTS + (size_t)best]))
          best = e;
      taken[best] = true;
      assert_int_equal(chosen[r * K + j], best);
    }
  }
}

static void override_spreads_as_it_says(void **state)
{
  (void)state;
  enum { ROWS = 40000, EXPERTS = 5 };
  float *probs = zeroed(ROWS * EXPERTS, sizeof *probs), *weights = zeroed(ROWS * 2, sizeof *weights);
  int32_t *chosen = zeroed(ROWS * 2, sizeof *chosen);
  for (size_t i = 0; i < ROWS * EXPERTS; i++)
    probs[i] = (float)i;
  size_t count[EXPERTS] = {0};
  sc_ref_route_override(probs, chosen, weights, ROWS, EXPERTS, 2, SC_ROUTE_UNIFORM, 3, 4);
  for (size_t r = 0; r < ROWS; r++) {
    count[chosen[r * 2]]++;
    assert_int_equal(chosen[r * 2 + 1], (chosen[r * 2] + 1) % EXPERTS);
    assert_true(weights[r * 2] == probs[r * EXPERTS + (size_t)chosen[r * 2]]);
  }
  for (int e = 0; e < EXPERTS; e++)
    assert_in_range(count[e], ROWS / EXPERTS - 400, ROWS / EXPERTS + 400);

  size_t skewed[EXPERTS] = {0};
  sc_ref_route_override(probs, chosen, weights, ROWS, EXPERTS, 1, SC_ROUTE_SKEWED, 3, 4);
  for (size_t r = 0; r < ROWS; r++)
    skewed[chosen[r]]++;
  const size_t expected[EXPERTS] = {ROWS / 2, ROWS / 4, ROWS / 8, ROWS / 16, ROWS / 16};
  for (int e = 0; e < EXPERTS; e++)
    assert_in_range(skewed[e], expected[e] - 500, expected[e] + 500);

  sc_ref_route_override(probs, chosen, weights, ROWS, EXPERTS, 1, SC_ROUTE_ONE_EXPERT, 3, 4);
  for (size_t r = 0; r < ROWS; r++)
    assert_int_equal(chosen[r], 3 % EXPERTS);
  free(probs);
  free(weights);
  free(chosen);
}

static void renormalized_weights_sum_to_one_and_zeros_stay_finite(void **state)
{
  (void)state;
  float weights[2][3] = {{0.1f, 0.2f, 0.1f}, {0.0f, 0.0f, 0.0f}};
  sc_ref_renormalize(weights[0], 2, 3);
  assert_true(fabsf(weights[0][1] - 0.5f) < 1e-6f && fabsf(weights[0][0] - 0.25f) < 1e-6f);
  assert_true(weights[1][0] == 0.0f && weights[1][2] == 0.0f);
}

/* ---- masks, sort, bounds ---- */

static void masks_select_what_equals(void **state)
{
  (void)state;
  const int32_t chosen[8] = {0, 2, 1, 0, 2, 2, 3, 1};
  uint8_t mask[8], rows[4];
  int32_t positions[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  sc_ref_mask_equal(chosen, mask, 8, 2);
  assert_int_equal(sc_ref_mask_any(mask, 8), 1);
  assert_int_equal(sc_ref_mask_count(mask, 8), 3);
  sc_ref_mask_rows(mask, rows, 4, 2);
  const uint8_t expected_rows[4] = {1, 0, 1, 0};
  assert_memory_equal(rows, expected_rows, 4);
  sc_ref_mask_compact(mask, positions, 8);
  const int32_t expected[8] = {1, 4, 5, -1, -1, -1, -1, -1};
  assert_memory_equal(positions, expected, sizeof expected);
  sc_ref_mask_equal(chosen, mask, 8, 9);
  assert_int_equal(sc_ref_mask_any(mask, 8), 0);
}

static void sort_of(const int32_t *chosen, int32_t *keys, int32_t *order, int32_t *inverse, size_t n, uint32_t experts)
{
  const size_t tiles = (n + SC_SORT_TILE - 1) / SC_SORT_TILE;
  uint32_t *hist = zeroed(tiles * experts, sizeof *hist), *offsets = zeroed(tiles * experts, sizeof *offsets);
  sc_ref_sort_histogram(chosen, hist, n, experts);
  sc_ref_sort_offsets(hist, offsets, (uint32_t)tiles, experts);
  sc_ref_sort_scatter(chosen, offsets, keys, order, inverse, n, experts);
  free(hist);
  free(offsets);
}

static void sort_is_stable_across_tiles(void **state)
{
  (void)state;
  static const size_t sizes[] = {1, SC_SORT_TILE - 1, SC_SORT_TILE, SC_SORT_TILE + 1, 3 * SC_SORT_TILE + 17};
  static const uint32_t experts[] = {1, 5, 1024};
  for (size_t s = 0; s < SC_COUNTOF(sizes); s++)
    for (size_t x = 0; x < SC_COUNTOF(experts); x++) {
      const size_t n = sizes[s];
      int32_t *chosen = zeroed(n, 4), *keys = zeroed(n, 4), *order = zeroed(n, 4), *inverse = zeroed(n, 4);
      for (size_t i = 0; i < n; i++)
        chosen[i] = (int32_t)(bits() % experts[x]);
      sort_of(chosen, keys, order, inverse, n, experts[x]);
      for (size_t i = 0; i < n; i++) {
        assert_int_equal(keys[i], chosen[order[i]]);
        assert_int_equal(inverse[order[i]], i);
        if (i > 0)
          assert_true(keys[i - 1] < keys[i] || (keys[i - 1] == keys[i] && order[i - 1] < order[i]));
      }
      free(chosen);
      free(keys);
      free(order);
      free(inverse);
    }
}

static void bounds_are_the_ends_of_each_slice(void **state)
{
  (void)state;
  const int32_t keys[6] = {1, 1, 1, 3, 4, 4};
  int64_t bounds[6];
  sc_ref_search_bounds(keys, bounds, 6, 6);
  const int64_t expected[6] = {0, 3, 3, 4, 6, 6};
  assert_memory_equal(bounds, expected, sizeof expected);
  sc_ref_search_bounds(keys, bounds, 0, 6);
  for (int e = 0; e < 6; e++)
    assert_int_equal(bounds[e], 0);
}

/* The property on which bit-identical outputs rest. */
static void masked_adds_and_sorted_combine_give_the_same_bits(void **state)
{
  (void)state;
  enum { TOKENS = 60, EXPERTS = 9, K = 4, HIDDEN = 37, N = TOKENS * K };
  for (int t = SC_F32; t <= SC_BF16; t++) {
    const enum sc_dtype dtype = (enum sc_dtype)t;
    const size_t size = sc_dtype_size(dtype);
    int32_t chosen[N], keys[N], order[N], inverse[N];
    float weights[N];
    char *out = zeroed(N * HIDDEN, size), *masked = zeroed(TOKENS * HIDDEN, size),
         *sorted = zeroed(TOKENS * HIDDEN, size);
    for (int i = 0; i < N; i++) {
      chosen[i] = i % K == 0 ? (int32_t)(bits() % EXPERTS) : (chosen[i - 1] + 2) % EXPERTS; /* distinct: 9 is odd */
      weights[i] = number(1.0f);
    }
    for (int i = 0; i < N * HIDDEN; i++)
      sc_ref_store(dtype, out, (uint64_t)i, number(1.0f));
    sort_of(chosen, keys, order, inverse, N, EXPERTS);
    sc_ref_combine(dtype, out, inverse, weights, sorted, TOKENS, K, HIDDEN);
    for (int32_t e = 0; e < EXPERTS; e++) {
      int32_t rows[TOKENS];
      float picked[TOKENS];
      uint64_t n = 0, first = N;
      for (int32_t i = 0; i < N; i++)
        if (chosen[i] == e) {
          rows[n] = i / K;
          picked[n++] = weights[i];
          first = (uint64_t)inverse[i] < first ? (uint64_t)inverse[i] : first;
        }
      if (n > 0)
        sc_ref_weighted_add(dtype, masked, out + first * HIDDEN * size, rows, picked, n, HIDDEN);
    }
    assert_memory_equal(masked, sorted, TOKENS * HIDDEN * size);
    free(out);
    free(masked);
    free(sorted);
  }
}

static void gather_rows_divides_positions(void **state)
{
  (void)state;
  const float x[3][2] = {{0, 1}, {10, 11}, {20, 21}};
  const int32_t positions[4] = {5, 0, 3, 4};
  float out[4][2];
  sc_ref_gather_rows(SC_F32, x, positions, out, 4, 2, 2);
  const float expected[4][2] = {{20, 21}, {0, 1}, {10, 11}, {20, 21}};
  assert_memory_equal(out, expected, sizeof expected);
}

static void compare_counts_words(void **state)
{
  (void)state;
  const uint16_t a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 3, 5};
  assert_int_equal(sc_ref_compare(a, b, 4), 2);
  assert_int_equal(sc_ref_compare(a, a, 4), 0);
}

/* ---- the expert ---- */

static const struct sc_activation_name *find(const char *name)
{
  for (const struct sc_activation_name *a = sc_activation_names; a->name != NULL; a++)
    if (strcmp(a->name, name) == 0)
      return a;
  fail_msg("no activation %s", name);
  return NULL;
}

/* Values from the definitions in vLLM's activation table, computed in Python. */
static void activations_match_known_values(void **state)
{
  (void)state;
  struct sc_activation silu = find("silu")->defaults,
                       oai = {SC_ACT_GATED, 1.702f, 1.0f, 7.0f}; /* as gpt-oss states them */
  struct sc_activation bare = find("swigluoai")->defaults;
  struct sc_activation unset = find("swigluoai_uninterleave")->defaults, relu2 = find("relu2_no_mul")->defaults;
  assert_true(fabs(sc_ref_activation(&silu, 1.5, -2.0) - -2.452723428580931) < 1e-12);
  assert_true(fabs(sc_ref_activation(&oai, 1.5, -2.0) - -1.3916621984470765) < 1e-6);
  assert_true(fabs(sc_ref_activation(&oai, 9.0, 12.0) - 55.99962502642654) < 1e-4);
  assert_true(fabs(sc_ref_activation(&oai, -9.0, -12.0) - 1.201906791935106e-05) <
              1e-6); /* gate has no lower clamp, up has */
  assert_true(sc_ref_activation(&unset, 1.5, -2.0) == sc_ref_activation(&silu, 1.5, -2.0));
  assert_true(sc_ref_activation(&bare, 9.0, -12.0) ==
              sc_ref_activation(&silu, 9.0, -12.0)); /* no name implies numbers */
  assert_true(sc_ref_activation(&relu2, -3.0, 99.0) == 0.0 && sc_ref_activation(&relu2, 3.0, 99.0) == 9.0);
  silu.limit = 2.0f;
  assert_true(fabs(sc_ref_activation(&silu, 5.0, -7.0) - -3.5231883119115293) < 1e-12);
}

static void activations_keep_nan(void **state)
{
  (void)state;
  for (const struct sc_activation_name *a = sc_activation_names; a->name != NULL; a++) {
    const float gate = NAN, up = 1.0f;
    float out = 0.0f;
    sc_ref_activate(SC_F32, &gate, &up, &out, 1, &a->defaults);
    assert_true(isnan(out));
    assert_true(isnan(sc_ref_activation(&a->defaults, NAN, 1.0)));
  }
}

/* The fast loop against double, over the whole range, the far tails included. */
static void fast_activation_is_close_to_double(void **state)
{
  (void)state;
  enum { N = 200000 };
  float *gate = zeroed(N, sizeof *gate), *up = zeroed(N, sizeof *up), *out = zeroed(N, sizeof *out);
  uint16_t *gate16 = zeroed(N, 2), *up16 = zeroed(N, 2), *out16 = zeroed(N, 2);
  for (const struct sc_activation_name *a = sc_activation_names; a->name != NULL; a++) {
    const struct sc_activation act = a->defaults;
    for (size_t i = 0; i < N; i++) {
      gate[i] = number(i % 3 == 0 ? 120.0f : 4.0f);
      up[i] = number(10.0f);
      gate16[i] = sc_ref_to_bf16(gate[i]);
      up16[i] = sc_ref_to_bf16(up[i]);
    }
    sc_ref_activate(SC_F32, gate, up, out, N, &act);
    sc_ref_activate(SC_BF16, gate16, up16, out16, N, &act);
    for (size_t i = 0; i < N; i++) {
      const double exact = sc_ref_activation(&act, (double)gate[i], (double)up[i]);
      const double exact16 =
          sc_ref_activation(&act, (double)sc_ref_from_bf16(gate16[i]), (double)sc_ref_from_bf16(up16[i]));
      assert_true(fabs((double)out[i] - exact) <= 4e-6 * fabs(exact) + 1e-30);
      assert_true(fabs((double)sc_ref_from_bf16(out16[i]) - exact16) <= 0x1.02p-8 * fabs(exact16) + 1e-30);
    }
  }
  free(gate);
  free(up);
  free(out);
  free(gate16);
  free(up16);
  free(out16);
}

/* ---- the layer ---- */

/* Every weight written out and multiplied the long way. */
static void layer_equals_the_long_way(void **state)
{
  (void)state;
  struct sc_shape shape = {.hidden = 70,
                           .intermediate = 90,
                           .experts = 5,
                           .top_k = 2,
                           .dtype = SC_BF16,
                           .renormalize = true,
                           .gated = true,
                           .activation = {SC_ACT_GATED, 1.7f, 1.0f, 0.8f},
                           .seed = 99};
  enum { TOKENS = 7, LAYER = 3 };
  const uint32_t h = shape.hidden, m = shape.intermediate;
  float *x = zeroed(TOKENS * h, 4), *router = zeroed(shape.experts * h, 4), *gate = zeroed(shape.experts * m * h, 4),
        *up = zeroed(shape.experts * m * h, 4), *down = zeroed(shape.experts * h * m, 4), weights[TOKENS * 2];
  int32_t chosen[TOKENS * 2];
  double *y = zeroed(TOKENS * h, 8), *logits = zeroed(TOKENS * shape.experts, 8), ref_weights[TOKENS * 2];
  sc_ref_uniform(SC_BF16, x, 0, TOKENS * h, 99, 0 * 8 + 0, (float)sqrt(3.0));
  sc_ref_uniform(SC_BF16, router, 0, shape.experts * h, 99, LAYER * 8 + 1, (float)sqrt(3.0 / h));
  sc_ref_uniform(SC_BF16, gate, 0, shape.experts * m * h, 99, LAYER * 8 + 2, (float)sqrt(3.0 / h));
  sc_ref_uniform(SC_BF16, up, 0, shape.experts * m * h, 99, LAYER * 8 + 3, (float)sqrt(3.0 / h));
  sc_ref_uniform(SC_BF16, down, 0, shape.experts * h * m, 99, LAYER * 8 + 4, (float)sqrt(3.0 / m));
  assert_int_equal(sc_ref_logits(&shape, LAYER, TOKENS, logits, NULL), SC_OK);
  for (int i = 0; i < TOKENS * 2; i++) {
    chosen[i] = i % 2 == 0 ? (int32_t)(bits() % 5) : (chosen[i - 1] + 3) % 5;
    weights[i] = number(1.0f);
  }
  assert_int_equal(sc_ref_layer(&shape, LAYER, TOKENS, chosen, weights, y, NULL), SC_OK);
  sc_ref_weights(&shape, logits, TOKENS, chosen, ref_weights);
  for (uint32_t t = 0; t < TOKENS; t++) {
    double sum = 0.0, picked = 0.0, *expected = zeroed(h, 8);
    for (uint32_t e = 0; e < shape.experts; e++) {
      double logit = 0.0;
      for (uint32_t c = 0; c < h; c++)
        logit += (double)x[t * h + c] * (double)router[e * h + c];
      assert_true(fabs(logit - logits[t * shape.experts + e]) < 1e-12);
      sum += exp(logit);
    }
    for (uint32_t j = 0; j < 2; j++)
      picked += exp(logits[t * shape.experts + (uint32_t)chosen[t * 2 + j]]) / sum;
    for (uint32_t j = 0; j < 2; j++) {
      const uint32_t e = (uint32_t)chosen[t * 2 + j];
      assert_true(fabs(ref_weights[t * 2 + j] - exp(logits[t * shape.experts + e]) / sum / picked) < 1e-12);
      for (uint32_t i = 0; i < m; i++) {
        double g = 0.0, u = 0.0;
        for (uint32_t c = 0; c < h; c++) {
          g += (double)gate[(e * m + i) * h + c] * (double)x[t * h + c];
          u += (double)up[(e * m + i) * h + c] * (double)x[t * h + c];
        }
        g = fmin(g, (double)0.8f);
        u = fmax(fmin(u, (double)0.8f), -(double)0.8f);
        const double act = (u + 1.0) * g / (1.0 + exp(-(double)1.7f * g));
        for (uint32_t c = 0; c < h; c++)
          expected[c] += (double)weights[t * 2 + j] * act * (double)down[(e * h + c) * m + i];
      }
    }
    for (uint32_t c = 0; c < h; c++)
      assert_true(fabs(expected[c] - y[t * h + c]) < 1e-11);
    free(expected);
  }
  free(x);
  free(router);
  free(gate);
  free(up);
  free(down);
  free(y);
  free(logits);
}

static void an_expert_is_the_same_whatever_their_number(void **state)
{
  (void)state;
  struct sc_shape few = {.hidden = 16,
                         .intermediate = 24,
                         .experts = 2,
                         .top_k = 1,
                         .dtype = SC_F32,
                         .gated = true,
                         .activation = {SC_ACT_GATED, 1.0f, 0.0f, INFINITY},
                         .seed = 5};
  struct sc_shape many = few;
  many.experts = 64;
  const int32_t chosen[3] = {1, 0, 1};
  const float weights[3] = {1.0f, 0.5f, 0.25f};
  double a[3 * 16], b[3 * 16];
  assert_int_equal(sc_ref_layer(&few, 1, 3, chosen, weights, a, NULL), SC_OK);
  assert_int_equal(sc_ref_layer(&many, 1, 3, chosen, weights, b, NULL), SC_OK);
  assert_memory_equal(a, b, sizeof a);
}

/* ---- the judgement ---- */

static void judgement_refuses_what_is_wrong(void **state)
{
  (void)state;
  enum { N = 64 };
  double ref[N];
  float out[N];
  struct sc_difference d;
  for (int i = 0; i < N; i++)
    out[i] = (float)(ref[i] = sin(i + 1.0));
  d = sc_ref_difference(SC_F32, out, ref, N);
  assert_true(sc_ref_close(SC_F32, &d));
  out[5] += 1e-3f; /* one element off */
  d = sc_ref_difference(SC_F32, out, ref, N);
  assert_false(sc_ref_close(SC_F32, &d));
  out[5] = NAN; /* never written */
  d = sc_ref_difference(SC_F32, out, ref, N);
  assert_false(sc_ref_close(SC_F32, &d));
  assert_false(sc_ref_close(SC_BF16, &d));
  memset(out, 0, sizeof out); /* a zero output */
  d = sc_ref_difference(SC_F32, out, ref, N);
  assert_false(sc_ref_close(SC_BF16, &d));
  for (int i = 0; i < N; i++)
    out[i] = (float)(-ref[i]);
  d = sc_ref_difference(SC_F32, out, ref, N);
  assert_true(d.cosine < -0.99);
  assert_false(sc_ref_close(SC_BF16, &d));
  memset(ref, 0, sizeof ref); /* against nothing, nothing is proved */
  memset(out, 0, sizeof out);
  d = sc_ref_difference(SC_F32, out, ref, N);
  assert_false(sc_ref_close(SC_F32, &d));
}

static void mark(void *ctx, uint64_t first, uint64_t last)
{
  for (uint64_t i = first; i < last; i++)
    ((uint8_t *)ctx)[i]++;
}

static void parallel_visits_every_element_once(void **state)
{
  (void)state;
  static const uint64_t sizes[] = {0, 1, 63, 64, 127, 128, 1001, 100003};
  for (size_t s = 0; s < SC_COUNTOF(sizes); s++) {
    uint8_t *seen = zeroed(sizes[s], 1);
    sc_ref_parallel(sizes[s], mark, seen);
    for (uint64_t i = 0; i < sizes[s]; i++)
      assert_int_equal(seen[i], 1);
    free(seen);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bf16_rounds_to_nearest_even),
      cmocka_unit_test(hash_matches_known_values),
      cmocka_unit_test(uniform_is_the_hash_scaled_and_does_not_depend_on_the_start),
      cmocka_unit_test(fill_in_bf16_is_the_rounded_uniform),
      cmocka_unit_test(softmax_sums_to_one_and_keeps_the_ratios),
      cmocka_unit_test(topk_prefers_the_lower_index_among_equals),
      cmocka_unit_test(topk_puts_nan_last_and_stays_in_range),
      cmocka_unit_test(topk_equals_a_stable_sort),
      cmocka_unit_test(override_spreads_as_it_says),
      cmocka_unit_test(renormalized_weights_sum_to_one_and_zeros_stay_finite),
      cmocka_unit_test(masks_select_what_equals),
      cmocka_unit_test(sort_is_stable_across_tiles),
      cmocka_unit_test(bounds_are_the_ends_of_each_slice),
      cmocka_unit_test(masked_adds_and_sorted_combine_give_the_same_bits),
      cmocka_unit_test(gather_rows_divides_positions),
      cmocka_unit_test(compare_counts_words),
      cmocka_unit_test(activations_match_known_values),
      cmocka_unit_test(activations_keep_nan),
      cmocka_unit_test(fast_activation_is_close_to_double),
      cmocka_unit_test(layer_equals_the_long_way),
      cmocka_unit_test(an_expert_is_the_same_whatever_their_number),
      cmocka_unit_test(judgement_refuses_what_is_wrong),
      cmocka_unit_test(parallel_visits_every_element_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
