/* SPDX-License-Identifier: Apache-2.0
 * The inner product of one tile, included once per instruction set with:
 *   MICRO_NAME, MICRO_TARGET (an attribute or nothing), MICRO_LANES (floats of a vector), MICRO_ROWS (vectors),
 * MICRO_COLUMNS a: k steps of MICRO_ROWS * MICRO_LANES floats; b: k steps of MICRO_COLUMNS floats; out: the tile,
 * column by column, unscaled. Every element of every tile, also of one at the matrix's edge, runs through this loop in
 * this order. */

/* Not instrumented: it touches packed buffers of its own thread only, and must stay fast in sanitizer builds. */
MICRO_TARGET __attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static void MICRO_NAME(
    int64_t k, const float *restrict a, const float *restrict b, float *restrict out)
{
  typedef float vector __attribute__((vector_size(4 * MICRO_LANES), aligned(4)));
  vector sum[MICRO_COLUMNS][MICRO_ROWS] = {0};

  for (int64_t step = 0; step < k; step++) {
    vector left[MICRO_ROWS];
    GEMM_UNROLL
    for (int row = 0; row < MICRO_ROWS; row++)
      left[row] = *(const vector *)(a + row * MICRO_LANES);
    GEMM_UNROLL
    for (int column = 0; column < MICRO_COLUMNS; column++) {
      GEMM_UNROLL
      for (int row = 0; row < MICRO_ROWS; row++)
        sum[column][row] += left[row] * b[column];
    }
    a += MICRO_ROWS * MICRO_LANES;
    b += MICRO_COLUMNS;
  }
  GEMM_UNROLL
  for (int column = 0; column < MICRO_COLUMNS; column++) {
    GEMM_UNROLL
    for (int row = 0; row < MICRO_ROWS; row++)
      *(vector *)(out + (column * MICRO_ROWS + row) * MICRO_LANES) = sum[column][row];
  }
}

#undef MICRO_NAME
#undef MICRO_TARGET
#undef MICRO_LANES
#undef MICRO_ROWS
#undef MICRO_COLUMNS
