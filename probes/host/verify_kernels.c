/* SPDX-License-Identifier: Apache-2.0
 * Every kernel against its reference, at sizes that reach past a warp, a block and a tile, and at sizes of one. Integer
 * results and single roundings must be exact; sums and exponentials must be close. Outputs are poisoned first. (Those
 * of the fused layer: verify_fused_kernels.c.) */
#include <stdio.h>
#include <stdlib.h>

#include "host/check.h"
#include "host/verify.h"

static uint8_t *random_mask(struct sc_check *c, size_t n, uint32_t one_in)
{
  uint8_t *out = sc_check_host(c, n, 1);
  for (size_t i = 0; out != NULL && i < n; i++)
    out[i] = sc_check_bits(c) % one_in == 0;
  return out;
}

static enum sc_status check_fill(struct sc_check *c, enum sc_dtype dtype, struct sc_error *err)
{
  const size_t n = 300007, bytes = n * sc_dtype_size(dtype);
  const uint64_t seed = (uint64_t)sc_check_bits(c) << 31 | sc_check_bits(c);
  void *expected = sc_check_host(c, n, sc_dtype_size(dtype)), *out;
  if (expected == NULL)
    return sc_check_no_memory(err);
  sc_ref_fill(dtype, expected, n, seed, 12345678901u, 0.37f);
  SC_TRY(sc_check_device(c, NULL, bytes, &out, err));
  SC_TRY(sc_launch_fill(c->gpu, dtype, out, n, seed, 12345678901u, 0.37f, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_FILL_F32 + dtype), "300007 elements", out, expected, bytes, err);
}

static enum sc_status check_softmax(struct sc_check *c, enum sc_dtype dtype, uint32_t experts, struct sc_error *err)
{
  const size_t rows = 37, n = rows * experts;
  char detail[64];
  void *logits = sc_check_values(c, dtype, n, 20.0f), *in, *out;
  float *rounded = sc_check_host(c, n, sizeof *rounded);
  double *expected = sc_check_host(c, n, sizeof *expected);
  if (!logits || !rounded || !expected)
    return sc_check_no_memory(err);
  sc_ref_softmax(dtype, logits, rounded, rows, experts);
  for (size_t i = 0; i < n; i++)
    expected[i] = (double)rounded[i];
  SC_TRY(sc_check_device(c, logits, n * sc_dtype_size(dtype), &in, err));
  SC_TRY(sc_check_device(c, NULL, n * sizeof(float), &out, err));
  SC_TRY(sc_launch_softmax(c->gpu, dtype, in, out, rows, experts, err));
  snprintf(detail, sizeof detail, "%zu rows of %u experts", rows, experts);
  return sc_check_close(c, sc_kernel_name(SC_K_SOFTMAX_F32 + dtype), detail, SC_F32, out, expected, n, err);
}

/* Eight levels only, so that ties are everywhere, and a NaN here and there. */
static enum sc_status check_topk(struct sc_check *c, uint32_t experts, uint32_t k, struct sc_error *err)
{
  const size_t rows = 131, n = rows * k;
  char detail[64];
  float *probs = sc_check_host(c, rows * experts, sizeof *probs), *weights = sc_check_host(c, n, sizeof *weights);
  int32_t *chosen = sc_check_host(c, n, sizeof *chosen);
  void *in, *out_chosen, *out_weights;
  if (!probs || !weights || !chosen)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < rows * experts; i++)
    probs[i] = sc_check_bits(c) % 97 == 0 ? NAN : (float)(sc_check_bits(c) % 8) / 8.0f;
  sc_ref_topk(probs, chosen, weights, rows, experts, k);
  SC_TRY(sc_check_device(c, probs, rows * experts * sizeof *probs, &in, err));
  SC_TRY(sc_check_device(c, NULL, n * sizeof *chosen, &out_chosen, err));
  SC_TRY(sc_check_device(c, NULL, n * sizeof *weights, &out_weights, err));
  SC_TRY(sc_launch_topk(c->gpu, in, out_chosen, out_weights, rows, experts, k, err));
  snprintf(detail, sizeof detail, "choices, top-%u of %u, with ties", k, experts);
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_TOPK), detail, out_chosen, chosen, n * sizeof *chosen, err));
  snprintf(detail, sizeof detail, "weights, top-%u of %u", k, experts);
  return sc_check_exact(c, sc_kernel_name(SC_K_TOPK), detail, out_weights, weights, n * sizeof *weights, err);
}

static enum sc_status check_override(struct sc_check *c, enum sc_route_mode mode, struct sc_error *err)
{
  enum { ROWS = 1000, EXPERTS = 13, K = 3 };
  float *probs = sc_check_values(c, SC_F32, ROWS * EXPERTS, 1.0f),
        *weights = sc_check_host(c, ROWS * K, sizeof *weights);
  int32_t *chosen = sc_check_host(c, ROWS * K, sizeof *chosen);
  void *in, *out_chosen, *out_weights;
  if (!probs || !weights || !chosen)
    return sc_check_no_memory(err);
  const uint64_t seed = sc_check_bits(c);
  sc_ref_route_override(probs, chosen, weights, ROWS, EXPERTS, K, mode, seed, 77);
  SC_TRY(sc_check_device(c, probs, ROWS * EXPERTS * sizeof *probs, &in, err));
  SC_TRY(sc_check_device(c, NULL, ROWS * K * sizeof *chosen, &out_chosen, err));
  SC_TRY(sc_check_device(c, NULL, ROWS * K * sizeof *weights, &out_weights, err));
  SC_TRY(sc_launch_route_override(c->gpu, in, out_chosen, out_weights, ROWS, EXPERTS, K, mode, seed, 77, err));
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_ROUTE_OVERRIDE), sc_route_name(mode), out_chosen, chosen,
                        ROWS * K * sizeof *chosen, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_ROUTE_OVERRIDE), "weights", out_weights, weights,
                        ROWS * K * sizeof *weights, err);
}

static enum sc_status check_renormalize(struct sc_check *c, struct sc_error *err)
{
  enum { ROWS = 999, K = 8 };
  float *weights = sc_check_values(c, SC_F32, ROWS * K, 1.0f);
  double *expected = sc_check_host(c, ROWS * K, sizeof *expected);
  void *out;
  if (!weights || !expected)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < ROWS * K; i++)
    weights[i] = weights[i] * weights[i] + 1e-3f;
  SC_TRY(sc_check_device(c, weights, ROWS * K * sizeof *weights, &out, err));
  SC_TRY(sc_launch_renormalize(c->gpu, out, ROWS, K, err));
  sc_ref_renormalize(weights, ROWS, K);
  for (size_t i = 0; i < ROWS * K; i++)
    expected[i] = (double)weights[i];
  return sc_check_close(c, sc_kernel_name(SC_K_RENORMALIZE), "999 rows, top-8", SC_F32, out, expected, ROWS * K, err);
}

/* The one launch against the four, bit for bit: logits of a few levels, so that there are ties, and a NaN in some rows. */
static enum sc_status check_route(struct sc_check *c, enum sc_dtype dtype, uint32_t experts, uint32_t k,
                                  enum sc_route_mode mode, struct sc_error *err)
{
  const size_t rows = 131, n = rows * k;
  void *logits = sc_check_host(c, rows * experts, sc_dtype_size(dtype)), *in, *probs, *out[2], *out_weights[2];
  int32_t *chosen = sc_check_host(c, n, sizeof *chosen);
  float *weights = sc_check_host(c, n, sizeof *weights);
  const uint64_t seed = sc_check_bits(c);
  char detail[64];
  if (!logits || !chosen || !weights)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < rows * experts; i++)
    sc_ref_store(dtype, logits, i,
                 sc_check_bits(c) % 1009 == 0 ? NAN : i % 2 ? sc_check_float(c, 8.0f) : (float)(sc_check_bits(c) % 8));
  SC_TRY(sc_check_device(c, logits, rows * experts * sc_dtype_size(dtype), &in, err));
  SC_TRY(sc_check_device(c, NULL, rows * experts * sizeof(float), &probs, err));
  for (int i = 0; i < 2; i++) {
    SC_TRY(sc_check_device(c, NULL, n * sizeof *chosen, &out[i], err));
    SC_TRY(sc_check_device(c, NULL, n * sizeof *weights, &out_weights[i], err));
  }
  SC_TRY(sc_launch_softmax(c->gpu, dtype, in, probs, rows, experts, err));
  SC_TRY(sc_launch_topk(c->gpu, probs, out[0], out_weights[0], rows, experts, k, err));
  if (mode != SC_ROUTE_ROUTER)
    SC_TRY(sc_launch_route_override(c->gpu, probs, out[0], out_weights[0], rows, experts, k, mode, seed, 77, err));
  SC_TRY(sc_launch_renormalize(c->gpu, out_weights[0], rows, k, err));
  SC_TRY(sc_launch_route(c->gpu, dtype, in, out[1], out_weights[1], rows, experts, k, mode, true, seed, 77, err));
  SC_TRY(sc_check_fetch(c, chosen, out[0], n * sizeof *chosen, err));
  SC_TRY(sc_check_fetch(c, weights, out_weights[0], n * sizeof *weights, err));
  const char *name = sc_kernel_name(SC_K_ROUTE_F32 + dtype);
  snprintf(detail, sizeof detail, "choices, top-%u of %u, %s", k, experts, sc_route_name(mode));
  SC_TRY(sc_check_exact(c, name, detail, out[1], chosen, n * sizeof *chosen, err));
  snprintf(detail, sizeof detail, "weights, top-%u of %u, %s", k, experts, sc_route_name(mode));
  return sc_check_exact(c, name, detail, out_weights[1], weights, n * sizeof *weights, err);
}

static enum sc_status check_mask_equal(struct sc_check *c, struct sc_error *err)
{
  enum { ROWS = 5003, K = 3, EXPERTS = 11 };
  const size_t n = ROWS * K;
  int32_t *chosen = sc_check_choices(c, ROWS, EXPERTS, K);
  uint8_t *mask = sc_check_host(c, n, 1), *rows = sc_check_host(c, ROWS, 1);
  void *in, *out_mask, *out_rows;
  if (!chosen || !mask || !rows)
    return sc_check_no_memory(err);
  sc_ref_mask_equal(chosen, mask, n, 7);
  sc_ref_mask_rows(mask, rows, ROWS, K);
  SC_TRY(sc_check_device(c, chosen, n * sizeof *chosen, &in, err));
  SC_TRY(sc_check_device(c, NULL, n, &out_mask, err));
  SC_TRY(sc_check_device(c, NULL, ROWS, &out_rows, err));
  SC_TRY(sc_launch_mask_equal(c->gpu, in, out_mask, n, 7, err));
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_MASK_EQUAL), "15009 choices", out_mask, mask, n, err));
  SC_TRY(sc_launch_mask_rows(c->gpu, out_mask, out_rows, ROWS, K, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_MASK_ROWS), "5003 rows of 3", out_rows, rows, ROWS, err);
}

/* one_in 0: an empty mask; 1: a full one. */
static enum sc_status check_mask(struct sc_check *c, size_t n, uint32_t one_in, struct sc_error *err)
{
  uint8_t *mask = random_mask(c, n, one_in ? one_in : 1);
  int32_t *positions = sc_check_host(c, n, sizeof *positions);
  void *in, *out_any, *out_count, *out_positions;
  char detail[64];
  if (!mask || !positions)
    return sc_check_no_memory(err);
  if (one_in == 0)
    memset(mask, 0, n);
  const uint8_t any = sc_ref_mask_any(mask, n);
  const int32_t count = sc_ref_mask_count(mask, n);
  memset(positions, 0xff, n * sizeof *positions); /* what lies behind the last position stays as it was */
  sc_ref_mask_compact(mask, positions, n);
  SC_TRY(sc_check_device(c, mask, n, &in, err));
  SC_TRY(sc_check_device(c, NULL, 1, &out_any, err));
  SC_TRY(sc_check_device(c, NULL, sizeof count, &out_count, err));
  SC_TRY(sc_check_device(c, NULL, n * sizeof *positions, &out_positions, err));
  SC_TRY(sc_launch_mask_any(c->gpu, in, out_any, n, err));
  SC_TRY(sc_launch_mask_count(c->gpu, in, out_count, n, err));
  SC_TRY(sc_launch_mask_compact(c->gpu, in, out_positions, n, err));
  snprintf(detail, sizeof detail, "%d of %zu set", count, n);
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_MASK_ANY), detail, out_any, &any, 1, err));
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_MASK_COUNT), detail, out_count, &count, sizeof count, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_MASK_COMPACT), detail, out_positions, positions, n * sizeof *positions,
                        err);
}

static enum sc_status check_gather_weights(struct sc_check *c, struct sc_error *err)
{
  enum { N = 777, SOURCE = 5000 };
  float *weights = sc_check_values(c, SC_F32, SOURCE, 1.0f), *expected = sc_check_host(c, N, sizeof *expected);
  int32_t *positions = sc_check_choices(c, N, SOURCE, 1);
  void *in, *in_positions, *out;
  if (!weights || !expected || !positions)
    return sc_check_no_memory(err);
  sc_ref_gather_weights(weights, positions, expected, N);
  SC_TRY(sc_check_device(c, weights, SOURCE * sizeof *weights, &in, err));
  SC_TRY(sc_check_device(c, positions, N * sizeof *positions, &in_positions, err));
  SC_TRY(sc_check_device(c, NULL, N * sizeof *expected, &out, err));
  SC_TRY(sc_launch_gather_weights(c->gpu, in, in_positions, out, N, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_GATHER_WEIGHTS), "777 of 5000", out, expected, N * sizeof *expected,
                        err);
}

static enum sc_status check_gather_rows(struct sc_check *c, enum sc_dtype dtype, uint32_t hidden, uint32_t divisor,
                                        struct sc_error *err)
{
  enum { TOKENS = 97 };
  const size_t n = TOKENS * 3, size = sc_dtype_size(dtype), bytes = n * hidden * size;
  char detail[64];
  void *x = sc_check_values(c, dtype, (size_t)TOKENS * hidden, 1.0f), *expected = sc_check_host(c, n * hidden, size);
  int32_t *positions = sc_check_choices(c, n, TOKENS * divisor, 1);
  void *in, *in_positions, *out;
  if (!x || !expected || !positions)
    return sc_check_no_memory(err);
  sc_ref_gather_rows(dtype, x, positions, expected, n, divisor, hidden);
  SC_TRY(sc_check_device(c, x, (size_t)TOKENS * hidden * size, &in, err));
  SC_TRY(sc_check_device(c, positions, n * sizeof *positions, &in_positions, err));
  SC_TRY(sc_check_device(c, NULL, bytes, &out, err));
  SC_TRY(sc_launch_gather_rows(c->gpu, dtype, in, in_positions, out, n, divisor, hidden, err));
  snprintf(detail, sizeof detail, "%zu rows of %u, divisor %u", n, hidden, divisor);
  return sc_check_exact(c, sc_kernel_name(SC_K_GATHER_ROWS_F32 + dtype), detail, out, expected, bytes, err);
}

static enum sc_status check_activate(struct sc_check *c, enum sc_dtype dtype, const char *name,
                                     struct sc_activation act, struct sc_error *err)
{
  const size_t n = 70001, size = sc_dtype_size(dtype);
  void *gate = sc_check_values(c, dtype, n, 12.0f), *up = sc_check_values(c, dtype, n, 12.0f);
  double *expected = sc_check_host(c, n, sizeof *expected);
  void *in_gate, *in_up, *out;
  char detail[64];
  if (!gate || !up || !expected)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < n; i++)
    expected[i] = sc_ref_activation(&act, (double)sc_ref_load(dtype, gate, i), (double)sc_ref_load(dtype, up, i));
  SC_TRY(sc_check_device(c, gate, n * size, &in_gate, err));
  SC_TRY(sc_check_device(c, up, n * size, &in_up, err));
  SC_TRY(sc_check_device(c, NULL, n * size, &out, err));
  SC_TRY(sc_launch_activate(c->gpu, dtype, in_gate, in_up, out, n, &act, err));
  snprintf(detail, sizeof detail, "%s, limit %.3g", name, (double)act.limit);
  return sc_check_close(c, sc_kernel_name(SC_K_ACTIVATE_F32 + dtype), detail, dtype, out, expected, n, err);
}

static enum sc_status check_weighted_add(struct sc_check *c, enum sc_dtype dtype, uint32_t hidden, struct sc_error *err)
{
  enum { TOKENS = 211, N = 70 };
  const size_t size = sc_dtype_size(dtype), bytes = (size_t)TOKENS * hidden * size;
  char detail[64];
  void *y = sc_check_values(c, dtype, (size_t)TOKENS * hidden, 1.0f),
       *add = sc_check_values(c, dtype, (size_t)N * hidden, 1.0f);
  float *weights = sc_check_values(c, SC_F32, N, 1.0f);
  int32_t *rows = sc_check_host(c, N, sizeof *rows);
  void *out, *in, *in_rows, *in_weights;
  if (!y || !add || !weights || !rows)
    return sc_check_no_memory(err);
  for (int32_t i = 0; i < N; i++)
    rows[i] = i * 3; /* distinct, as rows of one expert are */
  SC_TRY(sc_check_device(c, y, bytes, &out, err));
  SC_TRY(sc_check_device(c, add, (size_t)N * hidden * size, &in, err));
  SC_TRY(sc_check_device(c, rows, N * sizeof *rows, &in_rows, err));
  SC_TRY(sc_check_device(c, weights, N * sizeof *weights, &in_weights, err));
  SC_TRY(sc_launch_weighted_add(c->gpu, dtype, out, in, in_rows, in_weights, N, hidden, err));
  sc_ref_weighted_add(dtype, y, add, rows, weights, N, hidden);
  snprintf(detail, sizeof detail, "%d rows of %u", N, hidden);
  return sc_check_exact(c, sc_kernel_name(SC_K_WEIGHTED_ADD_F32 + dtype), detail, out, y, bytes, err);
}

/* The sort's four kernels in a row, each compared. */
static enum sc_status check_sort(struct sc_check *c, size_t rows, uint32_t experts, uint32_t k, struct sc_error *err)
{
  const size_t n = rows * k, tiles = sc_sort_tiles(n), table = tiles * experts;
  char detail[64];
  int32_t *chosen = sc_check_choices(c, rows, experts, k), *keys = sc_check_host(c, n, sizeof *keys);
  int32_t *order = sc_check_host(c, n, sizeof *order), *inverse = sc_check_host(c, n, sizeof *inverse);
  uint32_t *hist = sc_check_host(c, table, sizeof *hist), *offsets = sc_check_host(c, table, sizeof *offsets);
  int64_t *bounds = sc_check_host(c, experts, sizeof *bounds);
  void *in, *d_hist, *d_offsets, *d_keys, *d_order, *d_inverse, *d_bounds;
  if (!chosen || !keys || !order || !inverse || !hist || !offsets || !bounds)
    return sc_check_no_memory(err);
  sc_ref_sort_histogram(chosen, hist, n, experts);
  sc_ref_sort_offsets(hist, offsets, (uint32_t)tiles, experts);
  sc_ref_sort_scatter(chosen, offsets, keys, order, inverse, n, experts);
  sc_ref_search_bounds(keys, bounds, n, experts);
  SC_TRY(sc_check_device(c, chosen, n * sizeof *chosen, &in, err));
  SC_TRY(sc_check_device(c, NULL, table * sizeof *hist, &d_hist, err));
  SC_TRY(sc_check_device(c, NULL, table * sizeof *offsets, &d_offsets, err));
  SC_TRY(sc_check_device(c, NULL, n * sizeof *keys, &d_keys, err));
  SC_TRY(sc_check_device(c, NULL, n * sizeof *order, &d_order, err));
  SC_TRY(sc_check_device(c, NULL, n * sizeof *inverse, &d_inverse, err));
  SC_TRY(sc_check_device(c, NULL, experts * sizeof *bounds, &d_bounds, err));
  SC_TRY(sc_launch_sort_histogram(c->gpu, in, d_hist, n, experts, err));
  SC_TRY(sc_launch_sort_offsets(c->gpu, d_hist, d_offsets, (uint32_t)tiles, experts, err));
  SC_TRY(sc_launch_sort_scatter(c->gpu, in, d_offsets, d_keys, d_order, d_inverse, n, experts, err));
  SC_TRY(sc_launch_search_bounds(c->gpu, d_keys, d_bounds, n, experts, err));
  snprintf(detail, sizeof detail, "%zu choices of %u experts", n, experts);
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_SORT_HISTOGRAM), detail, d_hist, hist, table * sizeof *hist, err));
  SC_TRY(
      sc_check_exact(c, sc_kernel_name(SC_K_SORT_OFFSETS), detail, d_offsets, offsets, table * sizeof *offsets, err));
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_SORT_SCATTER), "keys", d_keys, keys, n * sizeof *keys, err));
  SC_TRY(
      sc_check_exact(c, sc_kernel_name(SC_K_SORT_SCATTER), "order (stable)", d_order, order, n * sizeof *order, err));
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_SORT_SCATTER), "inverse", d_inverse, inverse, n * sizeof *inverse, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_SEARCH_BOUNDS), detail, d_bounds, bounds, experts * sizeof *bounds, err);
}

static enum sc_status check_combine(struct sc_check *c, enum sc_dtype dtype, uint32_t k, uint32_t hidden,
                                    struct sc_error *err)
{
  enum { TOKENS = 150, EXPERTS = 16 };
  const size_t n = (size_t)TOKENS * k, size = sc_dtype_size(dtype), bytes = (size_t)TOKENS * hidden * size;
  char detail[64];
  int32_t *chosen = sc_check_choices(c, TOKENS, EXPERTS, k), *keys = sc_check_host(c, n, sizeof *keys);
  int32_t *order = sc_check_host(c, n, sizeof *order), *inverse = sc_check_host(c, n, sizeof *inverse);
  uint32_t *hist = sc_check_host(c, (size_t)sc_sort_tiles(n) * EXPERTS, sizeof *hist);
  uint32_t *offsets = sc_check_host(c, (size_t)sc_sort_tiles(n) * EXPERTS, sizeof *offsets);
  void *sorted_out = sc_check_values(c, dtype, n * hidden, 1.0f),
       *expected = sc_check_host(c, (size_t)TOKENS * hidden, size);
  float *weights = sc_check_values(c, SC_F32, n, 1.0f);
  void *in, *in_inverse, *in_weights, *out;
  if (!chosen || !keys || !order || !inverse || !hist || !offsets || !sorted_out || !expected || !weights)
    return sc_check_no_memory(err);
  sc_ref_sort_histogram(chosen, hist, n, EXPERTS);
  sc_ref_sort_offsets(hist, offsets, sc_sort_tiles(n), EXPERTS);
  sc_ref_sort_scatter(chosen, offsets, keys, order, inverse, n, EXPERTS);
  sc_ref_combine(dtype, sorted_out, inverse, weights, expected, TOKENS, k, hidden);
  SC_TRY(sc_check_device(c, sorted_out, n * hidden * size, &in, err));
  SC_TRY(sc_check_device(c, inverse, n * sizeof *inverse, &in_inverse, err));
  SC_TRY(sc_check_device(c, weights, n * sizeof *weights, &in_weights, err));
  SC_TRY(sc_check_device(c, NULL, bytes, &out, err));
  SC_TRY(sc_launch_combine(c->gpu, dtype, in, in_inverse, in_weights, out, TOKENS, k, hidden, err));
  snprintf(detail, sizeof detail, "%d tokens, top-%u, width %u", TOKENS, k, hidden);
  return sc_check_exact(c, sc_kernel_name(SC_K_COMBINE_F32 + dtype), detail, out, expected, bytes, err);
}

static enum sc_status check_gemm(struct sc_check *c, enum sc_dtype dtype, uint32_t rows, uint32_t out, uint32_t in,
                                 struct sc_error *err)
{
  const size_t size = sc_dtype_size(dtype), n = (size_t)rows * out;
  char detail[64];
  void *x = sc_check_values(c, dtype, (size_t)rows * in, 1.0f), *w = sc_check_values(c, dtype, (size_t)out * in, 1.0f);
  double *expected = sc_check_host(c, n, sizeof *expected);
  void *d_x, *d_w, *d_y;
  if (!x || !w || !expected)
    return sc_check_no_memory(err);
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t o = 0; o < out; o++)
      for (uint32_t i = 0; i < in; i++)
        expected[(size_t)r * out + o] +=
            (double)sc_ref_load(dtype, x, (size_t)r * in + i) * (double)sc_ref_load(dtype, w, (size_t)o * in + i);
  SC_TRY(sc_check_device(c, x, (size_t)rows * in * size, &d_x, err));
  SC_TRY(sc_check_device(c, w, (size_t)out * in * size, &d_w, err));
  SC_TRY(sc_check_device(c, NULL, n * size, &d_y, err));
  SC_TRY(sc_gpu_gemm(c->gpu, dtype, rows, out, in, d_x, d_w, d_y, false, err));
  snprintf(detail, sizeof detail, "%s, %u x %u x %u", dtype == SC_F32 ? "fp32" : "bf16", rows, out, in);
  SC_TRY(sc_check_close(c, "cublasGemmEx", detail, dtype, d_y, expected, n, err));
  SC_TRY(sc_gpu_gemm(c->gpu, dtype, rows, out, in, d_x, d_w, d_y, true, err));
  for (size_t i = 0; i < n; i++)
    expected[i] *= 2.0;
  return sc_check_close(c, "cublasGemmEx", "added to its output", dtype, d_y, expected, n, err);
}

static enum sc_status check_compare(struct sc_check *c, struct sc_error *err)
{
  enum { N = 200001 };
  uint16_t *a = sc_check_host(c, N, sizeof *a), *b = sc_check_host(c, N, sizeof *b);
  uint64_t expected = 0, *zero = sc_check_host(c, 1, sizeof *zero);
  void *d_a, *d_b, *d_count;
  if (!a || !b || !zero)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < N; i++) {
    a[i] = (uint16_t)sc_check_bits(c);
    b[i] = sc_check_bits(c) % 100 == 0 ? (uint16_t)(a[i] ^ 1) : a[i];
    expected += a[i] != b[i];
  }
  SC_TRY(sc_check_device(c, a, N * sizeof *a, &d_a, err));
  SC_TRY(sc_check_device(c, b, N * sizeof *b, &d_b, err));
  SC_TRY(sc_check_device(c, zero, sizeof *zero, &d_count, err));
  SC_TRY(sc_launch_compare(c->gpu, d_a, d_b, d_count, N, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_COMPARE), "200001 words", d_count, &expected, sizeof expected, err);
}

static enum sc_status check_ruler_kernels(struct sc_check *c, struct sc_error *err)
{
  const uint8_t before = 41, after = 42;
  const uint32_t flag = 0xfeedbeef;
  void *value, *flags;
  SC_TRY(sc_check_device(c, &before, 1, &value, err));
  SC_TRY(sc_launch_tiny(c->gpu, value, err));
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_TINY), "one byte", value, &after, 1, err));
  SC_TRY(sc_check_device(c, NULL, sizeof flag, &flags, err));
  SC_TRY(sc_launch_write_flag(c->gpu, flags, flag, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_WRITE_FLAG), "one word", flags, &flag, sizeof flag, err);
}

static enum sc_status check_routing(struct sc_check *c, struct sc_error *err)
{
  static const uint32_t experts[] = {1, 4, 37, 256, 1024};
  static const uint32_t top[][2] = {{1, 1}, {4, 1}, {4, 4}, {37, 2}, {256, 8}, {1024, 64}};
  for (size_t i = 0; i < SC_COUNTOF(experts); i++)
    for (int dtype = SC_F32; dtype <= SC_BF16; dtype++)
      SC_CHECK(check_softmax(c, (enum sc_dtype)dtype, experts[i], err));
  for (size_t i = 0; i < SC_COUNTOF(top); i++)
    SC_CHECK(check_topk(c, top[i][0], top[i][1], err));
  for (int mode = SC_ROUTE_UNIFORM; mode <= SC_ROUTE_ONE_EXPERT; mode++)
    SC_CHECK(check_override(c, (enum sc_route_mode)mode, err));
  SC_CHECK(check_renormalize(c, err));
  for (int dtype = SC_F32; dtype <= SC_BF16; dtype++)
    for (size_t i = 0; i < SC_COUNTOF(top); i++)
      for (int mode = SC_ROUTE_ROUTER; mode <= SC_ROUTE_ONE_EXPERT; mode++)
        SC_CHECK(check_route(c, (enum sc_dtype)dtype, top[i][0], top[i][1], (enum sc_route_mode)mode, err));
  return SC_OK;
}

static enum sc_status check_dispatch(struct sc_check *c, struct sc_error *err)
{
  static const size_t masks[] = {1, 31, 1023, 1025, 8192, 8193, 32773};
  static const size_t sorts[][3] = {{1, 1, 1},      {7, 4, 1},      {4095, 4, 1}, {4096, 16, 1}, {4097, 8, 1},
                                    {4096, 256, 8}, {999, 1024, 5}, {5000, 3, 2}, {9000, 128, 4}};
  SC_CHECK(check_mask_equal(c, err));
  for (size_t i = 0; i < SC_COUNTOF(masks); i++)
    for (uint32_t one_in = 0; one_in <= 7; one_in += one_in < 1 ? 1 : 6)
      SC_CHECK(check_mask(c, masks[i], one_in, err));
  SC_CHECK(check_gather_weights(c, err));
  for (size_t i = 0; i < SC_COUNTOF(sorts); i++)
    SC_CHECK(check_sort(c, sorts[i][0], (uint32_t)sorts[i][1], (uint32_t)sorts[i][2], err));
  SC_CHECK(check_compare(c, err));
  SC_CHECK(check_ruler_kernels(c, err));
  return SC_OK;
}

/* The kernels that exist for both types. */
static enum sc_status check_typed(struct sc_check *c, enum sc_dtype dtype, struct sc_error *err)
{
  SC_CHECK(check_fill(c, dtype, err));
  for (const struct sc_activation_name *a = sc_activation_names; a->name != NULL; a++) {
    SC_CHECK(check_activate(c, dtype, a->name, a->defaults, err));
    if (a->gated)
      SC_CHECK(check_activate(c, dtype, a->name, (struct sc_activation){SC_ACT_GATED, 1.3f, 0.5f, 4.0f}, err));
  }
  SC_CHECK(check_gather_rows(c, dtype, 512, 1, err));
  SC_CHECK(check_gather_rows(c, dtype, 7168, 8, err));
  SC_CHECK(check_gather_rows(c, dtype, 37, 2, err));
  SC_CHECK(check_weighted_add(c, dtype, 512, err));
  SC_CHECK(check_weighted_add(c, dtype, 37, err));
  SC_CHECK(check_combine(c, dtype, 1, 512, err));
  SC_CHECK(check_combine(c, dtype, 2, 37, err));
  SC_CHECK(check_combine(c, dtype, 8, 300, err));
  SC_CHECK(check_gemm(c, dtype, 1, 64, 512, err));
  SC_CHECK(check_gemm(c, dtype, 33, 70, 130, err));
  return SC_OK;
}

enum sc_status sc_verify_kernels(const struct sc_gpu *gpu, uint64_t seed, bool *ok, struct sc_error *err)
{
  struct sc_check c = {.gpu = gpu, .key = sc_ref_stream_key(seed, UINT64_MAX)};
  enum sc_status status = check_routing(&c, err);
  if (status == SC_OK)
    status = check_dispatch(&c, err);
  for (int dtype = SC_F32; status == SC_OK && dtype <= SC_BF16; dtype++)
    status = check_typed(&c, (enum sc_dtype)dtype, err);
  *ok = c.failed == 0 && c.passed > 0;
  return status;
}
