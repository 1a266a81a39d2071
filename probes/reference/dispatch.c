/* SPDX-License-Identifier: Apache-2.0
 * Masks, compaction, gathering, the stable sort by expert and the two ways of adding up contributions. Exact, but for
 * the additions, which round as the kernels do. */
#include "reference/reference.h"

void sc_ref_mask_equal(const int32_t *chosen, uint8_t *mask, uint64_t n, int32_t expert)
{
  for (uint64_t i = 0; i < n; i++)
    mask[i] = chosen[i] == expert;
}

uint8_t sc_ref_mask_any(const uint8_t *mask, uint64_t n)
{
  uint8_t found = 0;
  for (uint64_t i = 0; i < n; i++)
    found |= mask[i];
  return found != 0;
}

void sc_ref_mask_rows(const uint8_t *mask, uint8_t *rows, uint64_t row_count, uint32_t k)
{
  for (uint64_t row = 0; row < row_count; row++)
    rows[row] = sc_ref_mask_any(mask + row * k, k);
}

int32_t sc_ref_mask_count(const uint8_t *mask, uint64_t n)
{
  int32_t count = 0;
  for (uint64_t i = 0; i < n; i++)
    count += mask[i] != 0;
  return count;
}

void sc_ref_mask_compact(const uint8_t *mask, int32_t *positions, uint64_t n)
{
  uint64_t at = 0;
  for (uint64_t i = 0; i < n; i++)
    if (mask[i])
      positions[at++] = (int32_t)i;
}

void sc_ref_gather_weights(const float *weights, const int32_t *positions, float *out, uint64_t n)
{
  for (uint64_t i = 0; i < n; i++)
    out[i] = weights[positions[i]];
}

void sc_ref_gather_rows(enum sc_dtype dtype, const void *x, const int32_t *positions, void *out, uint64_t n,
                        uint32_t divisor, uint32_t hidden)
{
  const size_t row_bytes = (size_t)hidden * sc_dtype_size(dtype);
  for (uint64_t i = 0; i < n; i++)
    memcpy((char *)out + i * row_bytes, (const char *)x + (uint32_t)positions[i] / divisor * row_bytes, row_bytes);
}

/* out += weight * in, the product and the sum each rounded to float. Separate loops: no contraction into one fma. */
static void add_scaled_f32(float *restrict out, const float *restrict in, float weight, uint32_t n)
{
  for (uint32_t c = 0; c < n; c++) {
    const float scaled = weight * in[c];
    out[c] = out[c] + scaled;
  }
}

static void add_scaled_bf16(uint16_t *restrict out, const uint16_t *restrict in, float weight, uint32_t n)
{
  for (uint32_t c = 0; c < n; c++) {
    const float scaled = sc_ref_from_bf16(sc_ref_to_bf16(weight * sc_ref_from_bf16(in[c])));
    out[c] = sc_ref_to_bf16(sc_ref_from_bf16(out[c]) + scaled);
  }
}

static void add_scaled(enum sc_dtype dtype, void *out, uint64_t out_row, const void *in, uint64_t in_row, float weight,
                       uint32_t hidden)
{
  if (dtype == SC_F32)
    add_scaled_f32((float *)out + out_row * hidden, (const float *)in + in_row * hidden, weight, hidden);
  else
    add_scaled_bf16((uint16_t *)out + out_row * hidden, (const uint16_t *)in + in_row * hidden, weight, hidden);
}

void sc_ref_weighted_add(enum sc_dtype dtype, void *y, const void *expert_out, const int32_t *rows,
                         const float *weights, uint64_t n, uint32_t hidden)
{
  for (uint64_t i = 0; i < n; i++)
    add_scaled(dtype, y, (uint32_t)rows[i], expert_out, i, weights[i], hidden);
}

void sc_ref_sort_histogram(const int32_t *chosen, uint32_t *hist, uint64_t n, uint32_t experts)
{
  const uint64_t tiles = (n + SC_SORT_TILE - 1) / SC_SORT_TILE;
  memset(hist, 0, tiles * experts * sizeof *hist);
  for (uint64_t i = 0; i < n; i++)
    hist[i / SC_SORT_TILE * experts + (uint32_t)chosen[i]]++;
}

void sc_ref_sort_offsets(const uint32_t *hist, uint32_t *offsets, uint32_t tiles, uint32_t experts)
{
  uint32_t running = 0;
  for (uint32_t e = 0; e < experts; e++)
    for (uint32_t tile = 0; tile < tiles; tile++) {
      offsets[(uint64_t)tile * experts + e] = running;
      running += hist[(uint64_t)tile * experts + e];
    }
}

void sc_ref_sort_scatter(const int32_t *chosen, const uint32_t *offsets, int32_t *keys, int32_t *order,
                         int32_t *inverse, uint64_t n, uint32_t experts)
{
  uint32_t next[SC_MAX_EXPERTS];
  for (uint64_t i = 0; i < n; i++) {
    if (i % SC_SORT_TILE == 0)
      memcpy(next, offsets + i / SC_SORT_TILE * experts, experts * sizeof *next);
    const uint32_t at = next[chosen[i]]++;
    keys[at] = chosen[i];
    order[at] = (int32_t)i;
    inverse[i] = (int32_t)at;
  }
}

void sc_ref_search_bounds(const int32_t *keys, int64_t *bounds, uint64_t n, uint32_t experts)
{
  uint64_t at = 0;
  for (uint32_t e = 0; e < experts; e++) {
    while (at < n && keys[at] <= (int32_t)e)
      at++;
    bounds[e] = (int64_t)at;
  }
}

void sc_ref_combine(enum sc_dtype dtype, const void *sorted_out, const int32_t *inverse, const float *weights, void *y,
                    uint64_t rows, uint32_t k, uint32_t hidden)
{
  memset(y, 0, rows * hidden * sc_dtype_size(dtype));
  for (uint64_t row = 0; row < rows; row++) {
    int64_t last = -1;
    for (uint32_t round = 0; round < k; round++) { /* the next place in ascending order */
      uint32_t next = k;
      for (uint32_t j = 0; j < k; j++)
        if (inverse[row * k + j] > last && (next == k || inverse[row * k + j] < inverse[row * k + next]))
          next = j;
      if (next == k)
        break;
      last = inverse[row * k + next];
      add_scaled(dtype, y, row, sorted_out, (uint64_t)last, weights[row * k + next], hidden);
    }
  }
}

uint64_t sc_ref_compare(const uint16_t *a, const uint16_t *b, uint64_t n)
{
  uint64_t differ = 0;
  for (uint64_t i = 0; i < n; i++)
    differ += a[i] != b[i];
  return differ;
}
