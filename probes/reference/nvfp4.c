/* SPDX-License-Identifier: Apache-2.0
 * NVFP4 on the CPU. Formulas: FlashInfer's quantization_utils (scale and exact output scale), the swizzle of
 * CUTLASS' SM100 block-scaled layouts. */
#include "nvfp4.h"

#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/base.h"

static float half_raw_to_float(__half_raw half)
{
  /* Both formats are subsets of half's normal and subnormal numbers; only NaN (E4M3 0x7f) has no number. */
  unsigned exponent = half.x >> 10 & 31u, mantissa = half.x & 1023u;
  float magnitude = exponent == 31 ? (mantissa ? NAN : INFINITY)
                    : exponent     ? ldexpf((float)(1024u + mantissa), (int)exponent - 25)
                                   : ldexpf((float)mantissa, -24);
  return half.x & 0x8000u ? -magnitude : magnitude;
}

float nvfp4_global(float amax) { return amax > 0 ? fminf(448.0f * 6.0f / amax, FLT_MAX) : 1.0f; }

uint8_t nvfp4_encode(float value) { return __nv_cvt_float_to_fp4(value, __NV_E2M1, cudaRoundNearest) & 15u; }

float nvfp4_decode(uint8_t code) { return half_raw_to_float(__nv_cvt_fp4_to_halfraw(code & 15u, __NV_E2M1)); }

uint8_t nvfp4_encode_scale(float value) { return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3); }

float nvfp4_decode_scale(uint8_t scale) { return half_raw_to_float(__nv_cvt_fp8_to_halfraw(scale, __NV_E4M3)); }

uint8_t nvfp4_quantise_block(const float x[NVFP4_BLOCK], float global, uint8_t codes[NVFP4_BLOCK / 2])
{
  float amax = 0;
  for (int i = 0; i < NVFP4_BLOCK; ++i)
    amax = fmaxf(amax, fabsf(x[i]));
  uint8_t scale = nvfp4_encode_scale(amax * (global * (1.0f / 6.0f)));
  float decoded = nvfp4_decode_scale(scale);
  /* A scale that rounds to 0 can carry nothing: its codes are 0 as well, so that no reader multiplies garbage. */
  float factor = decoded > 0 ? fminf(1.0f / (decoded * (1.0f / global)), FLT_MAX) : 0.0f;
  for (int i = 0; i < NVFP4_BLOCK; i += 2) {
    uint8_t low = factor > 0 ? nvfp4_encode(x[i] * factor) : 0, high = factor > 0 ? nvfp4_encode(x[i + 1] * factor) : 0;
    codes[i / 2] = (uint8_t)(low | high << 4);
  }
  return scale;
}

void nvfp4_quantise(const float *x, size_t rows, size_t columns, float global, uint8_t *codes, uint8_t *scales)
{
  size_t blocks = rows * (columns / NVFP4_BLOCK);
  for (size_t i = 0; i < blocks; ++i)
    scales[i] = nvfp4_quantise_block(x + i * NVFP4_BLOCK, global, codes + i * (NVFP4_BLOCK / 2));
}

/* The toolkit's conversions, called once for each code there is: the reference unpacks hundreds of millions. */
static float code_values[16], scale_values[256];
static pthread_once_t values_once = PTHREAD_ONCE_INIT;

static void fill_values(void)
{
  for (unsigned i = 0; i < SC_COUNTOF(code_values); ++i)
    code_values[i] = nvfp4_decode((uint8_t)i);
  for (unsigned i = 0; i < SC_COUNTOF(scale_values); ++i)
    scale_values[i] = nvfp4_decode_scale((uint8_t)i);
}

void nvfp4_dequantise(const uint8_t *codes, const uint8_t *scales, size_t rows, size_t columns, float global, float *x)
{
  pthread_once(&values_once, fill_values);
  for (size_t block = 0; block < rows * columns / NVFP4_BLOCK; ++block) {
    const uint8_t *from = codes + block * (NVFP4_BLOCK / 2);
    for (size_t i = 0; i < NVFP4_BLOCK; ++i)
      x[block * NVFP4_BLOCK + i] = code_values[from[i / 2] >> (i % 2 ? 4 : 0) & 15] * scale_values[scales[block]] / global;
  }
}

static size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

size_t nvfp4_swizzled_bytes(size_t rows, size_t blocks) { return round_up(rows, 128) * round_up(blocks, 4); }

size_t nvfp4_swizzled_offset(size_t row, size_t block, size_t blocks)
{
  size_t tile = row / 128 * (round_up(blocks, 4) / 4) + block / 4;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

void nvfp4_swizzle(const uint8_t *scales, size_t rows, size_t blocks, uint8_t *swizzled)
{
  memset(swizzled, 0, nvfp4_swizzled_bytes(rows, blocks));
  for (size_t row = 0; row < rows; ++row)
    for (size_t block = 0; block < blocks; ++block)
      swizzled[nvfp4_swizzled_offset(row, block, blocks)] = scales[row * blocks + block];
}

void nvfp4_reorder_w13(enum nvfp4_w13_layout layout, bool gated, const void *source, size_t rows, size_t row_bytes,
                       void *destination)
{
  const unsigned char *from = source;
  unsigned char *to = destination;
  size_t half = rows / 2;
  for (size_t row = 0; row < rows; ++row) {
    size_t gate_or_up = row % half, wanted = row;
    if (gated && layout == NVFP4_W13_INTERLEAVED)
      wanted = 2 * gate_or_up + (row < half ? 1 : 0); /* up rows first */
    else if (gated)
      wanted = row < half ? half + gate_or_up : gate_or_up;
    memcpy(to + row * row_bytes, from + wanted * row_bytes, row_bytes);
  }
}
