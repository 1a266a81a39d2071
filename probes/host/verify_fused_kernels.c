/* SPDX-License-Identifier: Apache-2.0
 * The fused layer's kernels against their twins on the CPU, bit for bit: all but the GEMMs, whose sums have another
 * order and which the gates judge (verify_fused.c). */
#include <float.h>
#include <stdio.h>

#include "host/check.h"
#include "host/verify.h"
#include "reference/fused.h"

/* Magnitudes from 2^-40 to 2^40, both signs. */
static float any_magnitude(struct sc_check *c)
{
  return ldexpf(sc_check_float(c, 1.0f), (int)(sc_check_bits(c) % 81) - 40);
}

static enum sc_status check_amax(struct sc_check *c, enum sc_dtype dtype, size_t n, float before, struct sc_error *err)
{
  const size_t size = sc_dtype_size(dtype);
  void *x = sc_check_host(c, n, size), *in, *out;
  char detail[64];
  if (x == NULL)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < n; i++)
    sc_ref_store(dtype, x, i, any_magnitude(c));
  float expected = before;
  sc_ref_fp4_amax(dtype, x, n, &expected);
  SC_TRY(sc_check_device(c, x, n * size, &in, err));
  SC_TRY(sc_check_device(c, &before, sizeof before, &out, err));
  SC_TRY(sc_launch_fp4_amax(c->gpu, dtype, in, n, out, err));
  snprintf(detail, sizeof detail, "%zu values, from %.3g", n, (double)before);
  return sc_check_exact(c, sc_kernel_name(SC_K_FP4_AMAX_F32 + dtype), detail, out, &expected, sizeof expected, err);
}

/* Of zero, of the smallest and largest numbers, and of a thousand in between; with and without an activation's scale.
 */
static enum sc_status check_scales(struct sc_check *c, struct sc_error *err)
{
  enum { N = 1003 };
  static const float special[] = {0.0f, FLT_MIN, 1e-40f, FLT_MAX, 2688.0f, 6.0f, 1.0f};
  float amaxes[N], globals[N], alphas[N];
  const float a_global = fabsf(any_magnitude(c)) + 1e-20f;
  void *in, *out_globals, *out_alphas, *in_global;
  for (size_t i = 0; i < N; i++)
    amaxes[i] = i < SC_COUNTOF(special) ? special[i] : fabsf(any_magnitude(c));
  sc_ref_fp4_globals(amaxes, globals, N);
  SC_TRY(sc_check_device(c, amaxes, sizeof amaxes, &in, err));
  SC_TRY(sc_check_device(c, NULL, sizeof globals, &out_globals, err));
  SC_TRY(sc_check_device(c, NULL, sizeof alphas, &out_alphas, err));
  SC_TRY(sc_check_device(c, &a_global, sizeof a_global, &in_global, err));
  SC_TRY(sc_launch_fp4_globals(c->gpu, in, out_globals, N, err));
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_FP4_GLOBALS), "1003 largest magnitudes, 0 among them", out_globals,
                        globals, sizeof globals, err));
  sc_ref_fp4_alphas(&a_global, globals, alphas, N);
  SC_TRY(sc_launch_fp4_alphas(c->gpu, in_global, out_globals, out_alphas, N, err));
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_FP4_ALPHAS), "activation's and weights' scales", out_alphas, alphas,
                        sizeof alphas, err));
  sc_ref_fp4_alphas(NULL, globals, alphas, N);
  SC_TRY(sc_launch_fp4_alphas(c->gpu, NULL, out_globals, out_alphas, N, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_FP4_ALPHAS), "weights' scales alone", out_alphas, alphas, sizeof alphas,
                        err);
}

enum kind_of_block { ORDINARY, ZERO, ONE_LARGE, TIES, TINY, WIDE, KINDS_OF_BLOCK };

/* One block of 16. Ties: with the encode scale 448 a block whose largest magnitude is 6 has the factor 1, so that these
 * values lie exactly between two codes. */
static void fill_block(struct sc_check *c, enum kind_of_block kind, float *x)
{
  static const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  for (int i = 0; i < NVFP4_BLOCK; i++) {
    switch (kind) {
    case ZERO: x[i] = i % 2 ? 0.0f : -0.0f; break;
    case ONE_LARGE: x[i] = i == 11 ? -0x1.fep127f /* the largest bf16 */ : sc_check_float(c, 1.0f); break;
    case TIES:
      x[i] = (i == 0 ? 6.0f : ties[sc_check_bits(c) % SC_COUNTOF(ties)]) * (sc_check_bits(c) % 2 ? 1.0f : -1.0f);
      break;
    case TINY: x[i] = sc_check_float(c, 1e-38f); break; /* subnormal, most of them: the scale rounds to 0 */
    case WIDE: x[i] = any_magnitude(c); break;
    case ORDINARY:
    case KINDS_OF_BLOCK: x[i] = sc_check_float(c, 6.0f); break;
    }
  }
}

/* n values, every kind of block in turn. */
static void fill_blocks(struct sc_check *c, enum sc_dtype dtype, void *x, size_t n)
{
  for (size_t block = 0; block < n / NVFP4_BLOCK; block++) {
    float values[NVFP4_BLOCK];
    fill_block(c, (enum kind_of_block)(block % KINDS_OF_BLOCK), values);
    for (size_t i = 0; i < NVFP4_BLOCK; i++)
      sc_ref_store(dtype, x, block * NVFP4_BLOCK + i, values[i]);
  }
}

static enum sc_status check_quantise(struct sc_check *c, enum sc_dtype dtype, size_t rows, uint32_t columns,
                                     float global, struct sc_error *err)
{
  const size_t n = rows * columns, size = sc_dtype_size(dtype);
  void *x = sc_check_host(c, n, size), *in, *in_global, *out_codes, *out_scales;
  uint8_t *codes = sc_check_host(c, n / 2, 1), *scales = sc_check_host(c, n / NVFP4_BLOCK, 1);
  char detail[64];
  if (!x || !codes || !scales)
    return sc_check_no_memory(err);
  fill_blocks(c, dtype, x, n);
  sc_ref_fp4_quantise(dtype, x, codes, scales, rows, columns, global);
  SC_TRY(sc_check_device(c, x, n * size, &in, err));
  SC_TRY(sc_check_device(c, &global, sizeof global, &in_global, err));
  SC_TRY(sc_check_device(c, NULL, n / 2, &out_codes, err));
  SC_TRY(sc_check_device(c, NULL, n / NVFP4_BLOCK, &out_scales, err));
  SC_TRY(sc_launch_fp4_quantise(c->gpu, dtype, in, out_codes, out_scales, rows, columns, in_global, err));
  snprintf(detail, sizeof detail, "codes, %zu x %u, scale %.4g", rows, columns, (double)global);
  SC_TRY(sc_check_exact(c, sc_kernel_name(SC_K_FP4_QUANTISE_F32 + dtype), detail, out_codes, codes, n / 2, err));
  snprintf(detail, sizeof detail, "scales, %zu x %u, scale %.4g", rows, columns, (double)global);
  return sc_check_exact(c, sc_kernel_name(SC_K_FP4_QUANTISE_F32 + dtype), detail, out_scales, scales, n / NVFP4_BLOCK,
                        err);
}

/* Halfway between two bf16 numbers too, subnormals, and what rounds to infinity. */
static enum sc_status check_to_bf16(struct sc_check *c, struct sc_error *err)
{
  enum { N = 70001 };
  float *x = sc_check_host(c, N, sizeof *x);
  uint16_t *expected = sc_check_host(c, N, sizeof *expected);
  void *in, *out;
  if (!x || !expected)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < N; i++) {
    uint32_t bits = sc_check_bits(c);
    bits = i % 3 == 0 ? (bits & 0xffff0000u) | 0x8000u : bits;
    bits = (bits & 0x7f800000u) == 0x7f800000u ? 0x7f7fffffu : bits; /* no NaN: its bits are nobody's business */
    memcpy(&x[i], &bits, sizeof bits);
    expected[i] = sc_ref_to_bf16(x[i]);
  }
  SC_TRY(sc_check_device(c, x, N * sizeof *x, &in, err));
  SC_TRY(sc_check_device(c, NULL, N * sizeof *expected, &out, err));
  SC_TRY(sc_launch_fp4_to_bf16(c->gpu, in, out, N, err));
  return sc_check_exact(c, sc_kernel_name(SC_K_FP4_TO_BF16), "70001 values, every third a tie", out, expected,
                        N * sizeof *expected, err);
}

static enum sc_status check_reorder(struct sc_check *c, enum nvfp4_w13_layout layout, size_t rows, size_t row_bytes,
                                    struct sc_error *err)
{
  const size_t bytes = rows * row_bytes;
  uint8_t *from = sc_check_host(c, bytes, 1), *expected = sc_check_host(c, bytes, 1);
  void *in, *out;
  char detail[64];
  if (!from || !expected)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < bytes; i++)
    from[i] = (uint8_t)sc_check_bits(c);
  nvfp4_reorder_w13(layout, true, from, rows, row_bytes, expected);
  SC_TRY(sc_check_device(c, from, bytes, &in, err));
  SC_TRY(sc_check_device(c, NULL, bytes, &out, err));
  SC_TRY(sc_launch_fp4_reorder(c->gpu, in, out, rows, row_bytes, (uint32_t)layout, err));
  snprintf(detail, sizeof detail, "%s, %zu rows of %zu bytes", layout == NVFP4_W13_PACKED ? "packed" : "interleaved",
           rows, row_bytes);
  return sc_check_exact(c, sc_kernel_name(SC_K_FP4_REORDER_W13), detail, out, expected, bytes, err);
}

static enum sc_status check_swizzle(struct sc_check *c, size_t rows, uint32_t blocks, struct sc_error *err)
{
  const size_t bytes = nvfp4_swizzled_bytes(rows, blocks);
  uint8_t *scales = sc_check_host(c, rows * blocks, 1), *expected = sc_check_host(c, bytes, 1);
  void *in, *out;
  char detail[64];
  if (!scales || !expected)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < rows * blocks; i++)
    scales[i] = (uint8_t)sc_check_bits(c);
  nvfp4_swizzle(scales, rows, blocks, expected);
  SC_TRY(sc_check_device(c, scales, rows * blocks, &in, err));
  SC_TRY(sc_check_device(c, NULL, bytes, &out, err));
  SC_TRY(sc_launch_fp4_swizzle(c->gpu, in, out, rows, blocks, err));
  snprintf(detail, sizeof detail, "%zu x %u, %zu bytes of padding", rows, blocks, bytes - rows * blocks);
  return sc_check_exact(c, sc_kernel_name(SC_K_FP4_SWIZZLE), detail, out, expected, bytes, err);
}

/* Scales of every kind, 0 and subnormal ones among them; under a scale of 0 codes that are not 0. */
static enum sc_status check_tile(struct sc_check *c, size_t rows, uint32_t columns, bool gated, struct sc_error *err)
{
  const size_t code_bytes = rows * columns / 2, scale_bytes = nvfp4_swizzled_bytes(rows, columns / NVFP4_BLOCK),
               bytes = sc_ref_fp4_tiled_bytes(rows, columns);
  uint8_t *codes = sc_check_host(c, code_bytes, 1), *scales = sc_check_host(c, scale_bytes, 1),
          *expected = sc_check_host(c, bytes, 1);
  void *in_codes, *in_scales, *out;
  char detail[64];
  if (!codes || !scales || !expected)
    return sc_check_no_memory(err);
  for (size_t i = 0; i < code_bytes; i++)
    codes[i] = (uint8_t)sc_check_bits(c);
  for (size_t i = 0; i < scale_bytes; i++)
    scales[i] = (uint8_t)(sc_check_bits(c) % (i % 3 == 0 ? 9 : 0x7f));
  sc_ref_fp4_tile(codes, scales, expected, rows, columns, gated);
  SC_TRY(sc_check_device(c, codes, code_bytes, &in_codes, err));
  SC_TRY(sc_check_device(c, scales, scale_bytes, &in_scales, err));
  SC_TRY(sc_check_device(c, NULL, bytes, &out, err));
  SC_TRY(sc_launch_fp4_tile(c->gpu, in_codes, in_scales, out, rows, columns, gated, err));
  snprintf(detail, sizeof detail, "%zu x %u%s", rows, columns, gated ? ", [up; gate]" : "");
  return sc_check_exact(c, sc_kernel_name(SC_K_FP4_TILE), detail, out, expected, bytes, err);
}

static enum sc_status check_round_trip(struct sc_check *c, enum sc_dtype dtype, size_t n, float global,
                                       struct sc_error *err)
{
  const size_t size = sc_dtype_size(dtype);
  void *x = sc_check_host(c, n, size), *in, *in_global, *out;
  uint16_t *expected = sc_check_host(c, n, sizeof *expected);
  char detail[64];
  if (!x || !expected)
    return sc_check_no_memory(err);
  fill_blocks(c, dtype, x, n);
  sc_ref_fp4_round_trip(dtype, x, expected, n, global);
  SC_TRY(sc_check_device(c, x, n * size, &in, err));
  SC_TRY(sc_check_device(c, &global, sizeof global, &in_global, err));
  SC_TRY(sc_check_device(c, NULL, n * sizeof *expected, &out, err));
  SC_TRY(sc_launch_fp4_round_trip(c->gpu, dtype, in, out, n, in_global, err));
  snprintf(detail, sizeof detail, "%zu values, scale %.4g", n, (double)global);
  return sc_check_exact(c, sc_kernel_name(SC_K_FP4_ROUND_TRIP_F32 + dtype), detail, out, expected, n * sizeof *expected,
                        err);
}

struct align_case {
  size_t tokens;
  uint32_t experts, top_k, chosen_from; /* only the first of the experts are chosen: the rest stay empty */
  uint32_t block_rows;
};

/* What lies behind the rows in use must stay as it was: the buffers are compared whole. */
static enum sc_status check_align(struct sc_check *c, const struct align_case *a, struct sc_error *err)
{
  const size_t n = a->tokens * a->top_k, rows = n + (size_t)a->experts * (a->block_rows - 1),
               block_room = rows / a->block_rows + 1;
  int32_t *chosen = sc_check_choices(c, a->tokens, a->chosen_from, a->top_k);
  int32_t *slots = sc_check_host(c, rows, sizeof *slots), *inverse = sc_check_host(c, n, sizeof *inverse), count;
  struct sc_fused_block *blocks = sc_check_host(c, block_room, sizeof *blocks);
  void *in, *out_slots, *out_inverse, *out_blocks, *out_count;
  char detail[64];
  if (!chosen || !slots || !inverse || !blocks)
    return sc_check_no_memory(err);
  memset(slots, 0xff, rows * sizeof *slots);
  memset(blocks, 0xff, block_room * sizeof *blocks);
  sc_ref_fused_align(chosen, slots, inverse, blocks, &count, n, a->experts, a->block_rows);
  SC_TRY(sc_check_device(c, chosen, n * sizeof *chosen, &in, err));
  SC_TRY(sc_check_device(c, NULL, rows * sizeof *slots, &out_slots, err));
  SC_TRY(sc_check_device(c, NULL, n * sizeof *inverse, &out_inverse, err));
  SC_TRY(sc_check_device(c, NULL, block_room * sizeof *blocks, &out_blocks, err));
  SC_TRY(sc_check_device(c, NULL, sizeof count, &out_count, err));
  SC_TRY(sc_launch_fused_align(c->gpu, in, out_slots, out_inverse, out_blocks, out_count, n, a->experts, a->block_rows,
                               err));
  snprintf(detail, sizeof detail, "slots, %zu choices, %u of %u experts, %u", n, a->chosen_from, a->experts,
           a->block_rows);
  const char *name = sc_kernel_name(SC_K_FUSED_ALIGN);
  SC_TRY(sc_check_exact(c, name, detail, out_slots, slots, rows * sizeof *slots, err));
  SC_TRY(sc_check_exact(c, name, "inverse", out_inverse, inverse, n * sizeof *inverse, err));
  SC_TRY(sc_check_exact(c, name, "blocks", out_blocks, blocks, block_room * sizeof *blocks, err));
  return sc_check_exact(c, name, "number of blocks", out_count, &count, sizeof count, err);
}

static enum sc_status check_all(struct sc_check *c, struct sc_error *err)
{
  static const size_t amax_sizes[] = {1, 31, 257, 300007};
  static const size_t swizzles[][2] = {{1, 1}, {128, 4}, {129, 5}, {200, 6}, {384, 20}, {2880, 180}};
  static const struct align_case aligns[] = {
      {1, 4, 1, 4, 8},    {16, 4, 2, 4, 16},   {33, 5, 3, 5, 128},     {100, 1, 1, 1, 32},    {257, 8, 1, 3, 16},
      {300, 8, 2, 2, 64}, {700, 16, 1, 1, 128}, {512, 256, 8, 256, 16}, {31, 256, 8, 200, 8}, {4096, 128, 4, 128, 128},
  };
  for (int dtype = SC_F32; dtype <= SC_BF16; dtype++)
    for (size_t i = 0; i < SC_COUNTOF(amax_sizes); i++)
      SC_CHECK(check_amax(c, (enum sc_dtype)dtype, amax_sizes[i], i == 2 ? 0x1p50f : 0.0f, err));
  SC_CHECK(check_scales(c, err));
  for (int dtype = SC_F32; dtype <= SC_BF16; dtype++) {
    SC_CHECK(check_quantise(c, (enum sc_dtype)dtype, 1, 16, 448.0f, err));
    SC_CHECK(check_quantise(c, (enum sc_dtype)dtype, 37, 1856, 448.0f, err)); /* the scale that makes ties */
    SC_CHECK(check_quantise(c, (enum sc_dtype)dtype, 129, 320, 31.7f, err));
    SC_CHECK(check_quantise(c, (enum sc_dtype)dtype, 5, 96, nvfp4_global(FLT_MAX), err));
    SC_CHECK(check_quantise(c, (enum sc_dtype)dtype, 5, 96, nvfp4_global(1e-30f), err));
    SC_CHECK(check_round_trip(c, (enum sc_dtype)dtype, 37 * 1856, 448.0f, err)); /* the scale that makes ties */
    SC_CHECK(check_round_trip(c, (enum sc_dtype)dtype, 16 * 501, 31.7f, err));
  }
  SC_CHECK(check_to_bf16(c, err));
  for (int layout = NVFP4_W13_INTERLEAVED; layout <= NVFP4_W13_PACKED; layout++) {
    SC_CHECK(check_reorder(c, (enum nvfp4_w13_layout)layout, 2, 1, err));
    SC_CHECK(check_reorder(c, (enum nvfp4_w13_layout)layout, 194, 37, err));
    SC_CHECK(check_reorder(c, (enum nvfp4_w13_layout)layout, 5760, 180, err));
  }
  for (size_t i = 0; i < SC_COUNTOF(swizzles); i++)
    SC_CHECK(check_swizzle(c, swizzles[i][0], (uint32_t)swizzles[i][1], err));
  SC_CHECK(check_tile(c, 16, 16, false, err));
  SC_CHECK(check_tile(c, 208, 80, false, err));
  SC_CHECK(check_tile(c, 96, 1104, true, err));
  SC_CHECK(check_tile(c, 5760, 2880, true, err));
  for (size_t i = 0; i < SC_COUNTOF(aligns); i++)
    SC_CHECK(check_align(c, &aligns[i], err));
  return SC_OK;
}

enum sc_status sc_verify_fused_kernels(const struct sc_gpu *gpu, uint64_t seed, bool *ok, struct sc_error *err)
{
  struct sc_check c = {.gpu = gpu, .key = sc_ref_stream_key(seed, UINT64_MAX - 1)};
  const enum sc_status status = check_all(&c, err);
  *ok = *ok && c.failed == 0 && c.passed > 0;
  return status;
}
