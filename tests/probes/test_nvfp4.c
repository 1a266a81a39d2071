/* SPDX-License-Identifier: Apache-2.0
 * NVFP4, bit by bit: every code, every tie, every product, golden block, golden offsets, weight order. */
#include "test_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../probes/reference/nvfp4.h"

static const float e2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

static void codes_decode_to_the_eight_magnitudes(void **state)
{
  (void)state;
  for (unsigned code = 0; code < 16; ++code) {
    float expected = code & 8 ? -e2m1[code & 7] : e2m1[code & 7];
    assert_true(nvfp4_decode((uint8_t)code) == expected);
    if (code != 8) /* -0 may come back as either zero's code; its value is 0 */
      assert_int_equal(nvfp4_encode(expected), code);
  }
}

/* Halfway between neighbours the even code wins; a hair beside it, the nearer one. */
static void every_tie_goes_to_the_even_code(void **state)
{
  (void)state;
  for (unsigned code = 0; code < 7; ++code) {
    float tie = (e2m1[code] + e2m1[code + 1]) / 2;
    unsigned even = code % 2 == 0 ? code : code + 1;
    assert_int_equal(nvfp4_encode(tie), even);
    assert_int_equal(nvfp4_encode(-tie) & 7, even);
    assert_int_equal(nvfp4_encode(nextafterf(tie, 0)), code);
    assert_int_equal(nvfp4_encode(nextafterf(tie, 10)), code + 1);
  }
}

static void values_beyond_six_saturate_and_nan_is_six(void **state)
{
  (void)state;
  assert_int_equal(nvfp4_encode(7), 7);
  assert_int_equal(nvfp4_encode(1e30f), 7);
  assert_int_equal(nvfp4_encode(INFINITY), 7);
  assert_int_equal(nvfp4_encode(-INFINITY), 15);
  assert_int_equal(nvfp4_encode(NAN), 7);
}

static void scales_round_and_saturate(void **state)
{
  (void)state;
  assert_int_equal(nvfp4_encode_scale(464.1f), 0x7e);
  assert_int_equal(nvfp4_encode_scale(448), 0x7e);
  assert_int_equal(nvfp4_encode_scale(0x1p-10f), 0);
  assert_int_equal(nvfp4_encode_scale(0x1p-9f), 1);
  assert_int_equal(nvfp4_encode_scale(105), 0x6d); /* 104: 105 is nearer to it than to 112 */
  assert_true(nvfp4_decode_scale(0x6d) == 104);
  assert_true(nvfp4_decode_scale(1) == 0x1p-9f);
}

/* The low 16 bits of a float that is a bf16 are zero. */
static void all_products_are_exact_in_bf16(void **state)
{
  (void)state;
  unsigned products = 0;
  for (unsigned code = 0; code < 16; ++code) {
    for (unsigned scale = 0; scale < 256; ++scale) {
      if ((scale & 0x7f) == 0x7f)
        continue; /* NaN */
      double exact = (double)nvfp4_decode((uint8_t)code) * (double)nvfp4_decode_scale((uint8_t)scale);
      float product = (float)exact;
      uint32_t bits;
      memcpy(&bits, &product, sizeof bits);
      assert_true((double)product == exact);
      assert_int_equal(bits & 0xffff, 0);
      ++products;
    }
  }
  assert_int_equal(products, 16 * 254);
}

static void the_golden_block(void **state)
{
  (void)state;
  float x[32], amax = 0;
  for (int i = 0; i < 32; ++i) {
    x[i] = (float)(((i * 7) % 32) - 16) / 8 * (i < 16 ? 1 : 0.25f);
    amax = fmaxf(amax, fabsf(x[i]));
  }
  static const uint8_t codes[16] = {0xdf, 0x4a, 0xe6, 0x1c, 0x75, 0xae, 0x63, 0xdf,
                                    0x50, 0xe7, 0x2b, 0xf6, 0x9d, 0x74, 0xce, 0x62};
  uint8_t out[16], scales[2];
  assert_true(nvfp4_global(amax) == 1344);
  nvfp4_quantise(x, 1, 32, 1344, out, scales);
  assert_int_equal(scales[0], 0x7e);
  assert_int_equal(scales[1], 0x6d);
  assert_memory_equal(out, codes, sizeof codes);
}

static void pairs_pack_low_nibble_first(void **state)
{
  (void)state;
  float x[16] = {1, 6};
  uint8_t codes[8];
  assert_int_equal(nvfp4_quantise_block(x, 448, codes), 0x7e); /* 448 * 6 / 6 = 448; factor 1 / (448 / 448) = 1 */
  assert_int_equal(codes[0], 0x72);
}

static void a_zero_block_has_zero_scale_and_codes(void **state)
{
  (void)state;
  float x[16] = {0};
  x[3] = -0.0f;
  uint8_t codes[8];
  memset(codes, 0xaa, sizeof codes);
  assert_int_equal(nvfp4_quantise_block(x, nvfp4_global(0), codes), 0);
  for (size_t i = 0; i < sizeof codes; ++i)
    assert_int_equal(codes[i], 0);
  assert_true(nvfp4_global(0) == 1);
}

static void the_golden_swizzle_offsets(void **state)
{
  (void)state;
  static const struct {
    size_t row, block, offset;
  } golden[] = {{0, 0, 0},   {0, 3, 3},   {0, 4, 512},   {1, 0, 16},     {31, 0, 496},   {32, 0, 4},
                {33, 2, 22}, {96, 3, 15}, {127, 3, 511}, {128, 0, 1024}, {129, 5, 1553}, {200, 7, 1675}};
  for (size_t i = 0; i < sizeof golden / sizeof *golden; ++i)
    assert_int_equal(nvfp4_swizzled_offset(golden[i].row, golden[i].block, 8), golden[i].offset);
}

static void the_swizzle_is_a_padded_permutation(void **state)
{
  (void)state;
  size_t rows = 200, blocks = 6, bytes = nvfp4_swizzled_bytes(rows, blocks);
  assert_int_equal(bytes, 256 * 8);
  uint8_t *scales = malloc(rows * blocks), *swizzled = malloc(bytes);
  assert_true(scales && swizzled);
  memset(scales, 1, rows * blocks);
  memset(swizzled, 7, bytes);
  nvfp4_swizzle(scales, rows, blocks, swizzled);
  size_t ones = 0;
  for (size_t i = 0; i < bytes; ++i) {
    assert_true(swizzled[i] <= 1);
    ones += swizzled[i];
  }
  assert_int_equal(ones, rows * blocks);
  free(scales);
  free(swizzled);
}

static void weights_come_out_up_then_gate(void **state)
{
  (void)state;
  static const int interleaved[] = {1, 10, 2, 20, 3, 30, 4, 40}, packed[] = {1, 2, 3, 4, 10, 20, 30, 40},
                   wanted[] = {10, 20, 30, 40, 1, 2, 3, 4};
  int out[8];
  nvfp4_reorder_w13(NVFP4_W13_INTERLEAVED, true, interleaved, 8, sizeof *out, out);
  assert_memory_equal(out, wanted, sizeof wanted);
  nvfp4_reorder_w13(NVFP4_W13_PACKED, true, packed, 8, sizeof *out, out);
  assert_memory_equal(out, wanted, sizeof wanted);
  nvfp4_reorder_w13(NVFP4_W13_INTERLEAVED, false, packed, 8, sizeof *out, out);
  assert_memory_equal(out, packed, sizeof packed);
}

static void decoding_inverts_encoding_within_a_half_step(void **state)
{
  (void)state;
  enum { ROWS = 3, COLUMNS = 64 };
  float x[ROWS * COLUMNS], back[ROWS * COLUMNS], amax = 0;
  uint8_t codes[ROWS * COLUMNS / 2], scales[ROWS * COLUMNS / 16];
  for (int i = 0; i < ROWS * COLUMNS; ++i) {
    x[i] = sinf((float)i * 0.7f) * (1 + (float)(i % 5));
    amax = fmaxf(amax, fabsf(x[i]));
  }
  float global = nvfp4_global(amax);
  nvfp4_quantise(x, ROWS, COLUMNS, global, codes, scales);
  nvfp4_dequantise(codes, scales, ROWS, COLUMNS, global, back);
  for (int i = 0; i < ROWS * COLUMNS; ++i) {
    /* The widest gap between codes is 2 (4 to 6), half of it 1, in units of the block's scale; the scale's own rounding
     * can move the top code by 1/16. */
    float step = nvfp4_decode_scale(scales[i / 16]) / global;
    assert_true(fabsf(back[i] - x[i]) <= step * 1.4f);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(codes_decode_to_the_eight_magnitudes),
      cmocka_unit_test(every_tie_goes_to_the_even_code),
      cmocka_unit_test(values_beyond_six_saturate_and_nan_is_six),
      cmocka_unit_test(scales_round_and_saturate),
      cmocka_unit_test(all_products_are_exact_in_bf16),
      cmocka_unit_test(the_golden_block),
      cmocka_unit_test(pairs_pack_low_nibble_first),
      cmocka_unit_test(a_zero_block_has_zero_scale_and_codes),
      cmocka_unit_test(the_golden_swizzle_offsets),
      cmocka_unit_test(the_swizzle_is_a_padded_permutation),
      cmocka_unit_test(weights_come_out_up_then_gate),
      cmocka_unit_test(decoding_inverts_encoding_within_a_half_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
