/* SPDX-License-Identifier: Apache-2.0
 * NVFP4 on the CPU: the format's own operations, in the order of the kernels, as their oracle.
 *
 * A value is e2m1 x E4M3 scale (one per 16 values along a row) x FP32 (one per tensor or expert). "global" is the
 * encode scale g = 2688 / amax (448 x 6 / amax): stored codes are those of x * g, so that a decoded value is code *
 * scale / g. Rows are packed two codes a byte, element 2i in the low nibble. Conversions are the toolkit's (cuda_fp4.h,
 * cuda_fp8.h). */
#ifndef SC_NVFP4_H
#define SC_NVFP4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVFP4_BLOCK 16

/* Encode scale of values whose largest magnitude is amax; 1 when amax is 0, finite however small it is. */
float nvfp4_global(float amax);

uint8_t nvfp4_encode(float value);       /* E2M1 code 0..15: nearest, ties to the even code, saturating, NaN -> +6 */
float nvfp4_decode(uint8_t code);        /* of the low 4 bits */
uint8_t nvfp4_encode_scale(float value); /* E4M3: nearest even, saturating at 448 */
float nvfp4_decode_scale(uint8_t scale);

/* One block: returns the scale byte, writes 8 bytes of codes. A block of zeros has scale 0 and codes 0. */
uint8_t nvfp4_quantise_block(const float x[NVFP4_BLOCK], float global, uint8_t codes[NVFP4_BLOCK / 2]);

/* rows x columns, row-major, columns a multiple of 16: codes[rows * columns / 2], scales[rows * columns / 16] in row
 * order. */
void nvfp4_quantise(const float *x, size_t rows, size_t columns, float global, uint8_t *codes, uint8_t *scales);
void nvfp4_dequantise(const uint8_t *codes, const uint8_t *scales, size_t rows, size_t columns, float global, float *x);

/* The 128x4 swizzle of block scales: rows padded to 128, blocks (columns / 16) padded to 4, padding 0. */
size_t nvfp4_swizzled_bytes(size_t rows, size_t blocks);
size_t nvfp4_swizzled_offset(size_t row, size_t block, size_t blocks);
void nvfp4_swizzle(const uint8_t *scales, size_t rows, size_t blocks, uint8_t *swizzled);

/* Gated checkpoints hold gate and up rows interleaved (gate0, up0, ...) or packed ([gate; up]); the kernel takes [up;
 * gate]. Reorders 2n rows of row_bytes each (weights, row-order scales, or biases: whatever belongs to rows), from
 * source to destination; they do not overlap. Not gated: rows are copied as they are. */
enum nvfp4_w13_layout { NVFP4_W13_INTERLEAVED, NVFP4_W13_PACKED };
void nvfp4_reorder_w13(enum nvfp4_w13_layout layout, bool gated, const void *source, size_t rows, size_t row_bytes,
                       void *destination);

#endif
