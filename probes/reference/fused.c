/* SPDX-License-Identifier: Apache-2.0
 * The fused NVFP4 layer on the CPU. */
#include "reference/fused.h"

#include <stdlib.h>

void sc_ref_fp4_amax(enum sc_dtype dtype, const void *x, uint64_t n, float *result)
{
  for (uint64_t i = 0; i < n; i++)
    *result = fmaxf(*result, fabsf(sc_ref_load(dtype, x, i)));
}

void sc_ref_fp4_globals(const float *amaxes, float *globals, uint64_t n)
{
  for (uint64_t i = 0; i < n; i++)
    globals[i] = nvfp4_global(amaxes[i]);
}

void sc_ref_fp4_alphas(const float *a_global, const float *w_globals, float *alphas, uint64_t n)
{
  for (uint64_t i = 0; i < n; i++)
    alphas[i] = 1.0f / ((a_global ? *a_global : 1.0f) * w_globals[i]);
}

struct quantise_job {
  const void *x;
  uint8_t *codes, *scales;
  enum sc_dtype dtype;
  float global;
};

static void quantise_range(void *ctx, uint64_t first, uint64_t last)
{
  const struct quantise_job *job = ctx;
  for (uint64_t i = first; i < last; i++) {
    float value[NVFP4_BLOCK];
    for (int j = 0; j < NVFP4_BLOCK; j++)
      value[j] = sc_ref_load(job->dtype, job->x, i * NVFP4_BLOCK + (uint64_t)j);
    job->scales[i] = nvfp4_quantise_block(value, job->global, job->codes + i * (NVFP4_BLOCK / 2));
  }
}

void sc_ref_fp4_quantise(enum sc_dtype dtype, const void *x, uint8_t *codes, uint8_t *scales, uint64_t rows,
                         uint32_t columns, float global)
{
  struct quantise_job job = {x, codes, scales, dtype, global};
  sc_ref_parallel(rows * (columns / NVFP4_BLOCK), quantise_range, &job);
}

void sc_ref_fp4_round_trip(enum sc_dtype dtype, const void *x, uint16_t *out, uint64_t n, float global)
{
  for (uint64_t i = 0; i < n; i += NVFP4_BLOCK) {
    float value[NVFP4_BLOCK];
    uint8_t codes[NVFP4_BLOCK / 2];
    for (uint64_t j = 0; j < NVFP4_BLOCK; j++)
      value[j] = sc_ref_load(dtype, x, i + j);
    const uint8_t scale = nvfp4_quantise_block(value, global, codes);
    nvfp4_dequantise(codes, &scale, 1, NVFP4_BLOCK, 1.0f, value);
    for (uint64_t j = 0; j < NVFP4_BLOCK; j++)
      out[i + j] = sc_ref_to_bf16(value[j]);
  }
}

/* ---- tiles (kernels/fp4.cuh describes them) ---- */

enum { TILE_CODES = SC_TILE_ROWS * SC_TILE_COLUMNS / 2, TILE_BLOCKS = SC_TILE_COLUMNS / NVFP4_BLOCK };

static uint64_t k_tiles(uint32_t columns) { return (columns + SC_TILE_COLUMNS - 1) / SC_TILE_COLUMNS; }

uint64_t sc_ref_fp4_tiled_bytes(uint64_t rows, uint32_t columns)
{
  return rows / SC_TILE_ROWS * k_tiles(columns) * SC_TILE_BYTES;
}

/* Row `row` of the matrix stands in row *in of row of tiles *tile. */
static void place_of_row(uint64_t row, uint64_t rows, bool gated, uint64_t *tile, uint32_t *in)
{
  const uint64_t half = gated ? rows / 2 : rows, within = row % half;
  const uint32_t height = gated ? SC_TILE_ROWS / 2 : SC_TILE_ROWS;
  *tile = within / height;
  *in = (uint32_t)(within % height) + (row < half ? 0 : height);
}

/* Offset of the tile that holds `column` in row of tiles `row_tile`. */
static uint64_t place_of_tile(uint64_t row_tile, uint32_t column, uint64_t rows, uint32_t columns)
{
  const uint64_t within = row_tile % SC_TILE_GROUP, group = row_tile - within, behind = rows / SC_TILE_ROWS - group,
                 height = behind < SC_TILE_GROUP ? behind : SC_TILE_GROUP;
  return (group * k_tiles(columns) + column / SC_TILE_COLUMNS * height + within) * SC_TILE_BYTES;
}

/* Where a tile has the code in row `in`, column `column`: the first of two words, which pair of a block, which of the
 * two. */
struct code_place {
  uint32_t words; /* offset in the tile */
  uint32_t block, pair, high;
};

static struct code_place place_of_code(uint32_t in, uint32_t column)
{
  const uint32_t block = column / NVFP4_BLOCK, k = column % NVFP4_BLOCK, lane = in % 8 * 4 + k % 8 / 2;
  return (struct code_place){lane * 16 + block / 2 * 8, block, in / 8 + k / 8 * 2, k % 2};
}

static uint32_t rotate_right(uint32_t word, uint32_t bits) { return word >> bits | word << (-bits & 31); }

static void put_code(uint8_t *tile, struct code_place at, uint32_t code)
{
  uint32_t word[2];
  const uint32_t placed = ((code & 7) << 6 | code >> 3 << 15) << 16 * at.high,
                 bits = rotate_right(placed, SC_TILE_ROTATION(at.block, at.pair));
  memcpy(word, tile + at.words, sizeof word);
  if (at.pair < 3) {
    word[at.block % 2] |= bits;
  } else {
    word[0] |= bits & SC_TILE_FIRST;
    word[1] |= bits & ~SC_TILE_FIRST;
  }
  memcpy(tile + at.words, word, sizeof word);
}

static uint8_t get_code(const uint8_t *tile, struct code_place at)
{
  uint32_t word[2];
  memcpy(word, tile + at.words, sizeof word);
  const uint32_t from = at.pair < 3 ? word[at.block % 2] : (word[0] & SC_TILE_FIRST) | (word[1] & ~SC_TILE_FIRST),
                 codes = rotate_right(from, -SC_TILE_ROTATION(at.block, at.pair) & 31) >> 16 * at.high;
  return (uint8_t)((codes >> 6 & 7) | (codes >> 12 & 8));
}

/* E4M3 with 5 bits of exponent, bias 23, so that none is subnormal. */
static uint8_t tile_scale(uint8_t scale)
{
  uint8_t exponent = scale >> 3 & 15, fraction = scale & 7;
  if (exponent > 0)
    return (uint8_t)((exponent + 16) << 3 | fraction);
  if (fraction == 0)
    return 0;
  for (exponent = 3; fraction < 8; exponent--)
    fraction = (uint8_t)(fraction << 1);
  return (uint8_t)((exponent + 14) << 3 | (fraction & 7));
}

/* A row's four scales share a word. */
static void put_scale(uint8_t *tile, uint32_t in, uint32_t block, uint8_t scale)
{
  uint32_t word;
  uint8_t *at = tile + TILE_CODES + in * sizeof word;
  memcpy(&word, at, sizeof word);
  word |= rotate_right((uint32_t)scale << (block % 2 ? 20 : 4), block < 2 ? 0 : 8);
  memcpy(at, &word, sizeof word);
}

static uint8_t get_scale(const uint8_t *tile, uint32_t in, uint32_t block)
{
  uint32_t word;
  memcpy(&word, tile + TILE_CODES + in * sizeof word, sizeof word);
  return (uint8_t)(rotate_right(word, block < 2 ? 0 : 24) >> (block % 2 ? 20 : 4) & 255);
}

static uint8_t scale_of_tile(uint8_t scale)
{
  const uint8_t exponent = scale >> 3, fraction = scale & 7;
  if (scale == 0)
    return 0;
  return exponent > 16 ? (uint8_t)((exponent - 16) << 3 | fraction) : (uint8_t)((8 | fraction) >> (17 - exponent));
}

void sc_ref_fp4_tile(const uint8_t *codes, const uint8_t *scales, uint8_t *tiles, uint64_t rows, uint32_t columns,
                     bool gated)
{
  memset(tiles, 0, sc_ref_fp4_tiled_bytes(rows, columns));
  for (uint64_t row = 0; row < rows; row++) {
    uint64_t row_tile;
    uint32_t in;
    place_of_row(row, rows, gated, &row_tile, &in);
    for (uint32_t column = 0; column < columns; column++) {
      uint8_t *tile = tiles + place_of_tile(row_tile, column, rows, columns);
      const uint32_t block = column / NVFP4_BLOCK;
      const uint8_t scale = scales[nvfp4_swizzled_offset(row, block, columns / NVFP4_BLOCK)];
      if (column % NVFP4_BLOCK == 0)
        put_scale(tile, in, block % TILE_BLOCKS, tile_scale(scale));
      if (scale)
        put_code(tile, place_of_code(in, column % SC_TILE_COLUMNS),
                 codes[(row * columns + column) / 2] >> column % 2 * 4 & 15u);
    }
  }
}

void sc_ref_fp4_untile(const uint8_t *tiles, uint8_t *codes, uint8_t *scales, uint64_t rows, uint32_t columns,
                       bool gated)
{
  memset(codes, 0, rows * columns / 2);
  memset(scales, 0, nvfp4_swizzled_bytes(rows, columns / NVFP4_BLOCK));
  for (uint64_t row = 0; row < rows; row++) {
    uint64_t row_tile;
    uint32_t in;
    place_of_row(row, rows, gated, &row_tile, &in);
    for (uint32_t column = 0; column < columns; column++) {
      const uint8_t *tile = tiles + place_of_tile(row_tile, column, rows, columns);
      const uint32_t block = column / NVFP4_BLOCK;
      const uint8_t code = get_code(tile, place_of_code(in, column % SC_TILE_COLUMNS));
      codes[(row * columns + column) / 2] |= (uint8_t)(code << column % 2 * 4);
      scales[nvfp4_swizzled_offset(row, block, columns / NVFP4_BLOCK)] =
          scale_of_tile(get_scale(tile, in, block % TILE_BLOCKS));
    }
  }
}

void sc_ref_fused_align(const int32_t *chosen, int32_t *slot_choice, int32_t *inverse, struct sc_fused_block *blocks,
                        int32_t *block_count, uint64_t n, uint32_t experts, uint32_t block_rows)
{
  int32_t block = 0;
  for (uint32_t e = 0; e < experts; e++) {
    const uint64_t first = (uint64_t)block * block_rows;
    uint64_t row = first;
    for (uint64_t i = 0; i < n; i++)
      if (chosen[i] == (int32_t)e) {
        inverse[i] = (int32_t)row;
        slot_choice[row++] = (int32_t)i;
      }
    const int32_t count = (int32_t)((row - first + block_rows - 1) / block_rows);
    for (int32_t i = 0; i < count; i++) {
      const uint64_t left = row - first - (uint64_t)i * block_rows;
      blocks[block + i] =
          (struct sc_fused_block){(int32_t)e, block, count, (int32_t)(left < block_rows ? left : block_rows)};
    }
    block += count;
  }
  *block_count = block;
}

/* Row of W, less its global scale. */
static void unpack_row(const uint8_t *codes, const uint8_t *scales, uint64_t row, uint32_t columns, float *out)
{
  for (uint32_t block = 0; block < columns / NVFP4_BLOCK; block++) {
    const uint8_t scale = scales[nvfp4_swizzled_offset(row, block, columns / NVFP4_BLOCK)];
    nvfp4_dequantise(codes + row * (columns / 2) + block * 8, &scale, 1, NVFP4_BLOCK, 1.0f, out + block * NVFP4_BLOCK);
  }
}

/* ---- the GEMM twin ---- */

enum {
  COLUMNS = 16, /* columns of W at a time: a block of the intermediate */
  ROWS = 4,     /* rows of A at a time: more sums would not fit the registers of AVX2 */
  LANES = 8,    /* of AVX2; a vector that the processor does not have goes through memory */
  CHUNK = 256,  /* products summed before they join the total: shorter sums round less */
};
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float))));

/* All rows of one expert, unpacked, and the columns that threads share out. */
struct gemm_job {
  const struct sc_fused_gemm *p;
  const float *a;                /* [rows][k] */
  const uint8_t *codes, *scales; /* the expert's, out of their tiles */
  uint64_t row0, rows;           /* padded rows */
  uint64_t used;                 /* the first of them */
  uint32_t expert;
  bool up;
  _Atomic bool failed;
};

/* Adds the products of rows first .. end-1 of w[k][COLUMNS] to total[ROWS][2]. */
static inline __attribute__((always_inline)) void add_chunk(const float *a, const float *w, uint32_t k, uint32_t first,
                                                            uint32_t end, lanes total[ROWS][2])
{
  lanes sum[ROWS][2] = {{{0}}};
  for (uint32_t i = first; i < end; i++) {
    const lanes low = *(const lanes *)(w + (size_t)i * COLUMNS),
                high = *(const lanes *)(w + (size_t)i * COLUMNS + LANES);
    for (uint32_t r = 0; r < ROWS; r++) {
      sum[r][0] += low * a[(size_t)r * k + i];
      sum[r][1] += high * a[(size_t)r * k + i];
    }
  }
  for (uint32_t r = 0; r < ROWS; r++) {
    total[r][0] += sum[r][0];
    total[r][1] += sum[r][1];
  }
}

/* out[ROWS][COLUMNS] = a[ROWS][k] w[k][COLUMNS], in the same order from call to call. */
__attribute__((target_clones("default", "arch=x86-64-v3"))) static void multiply_tile(const float *a, const float *w,
                                                                                      uint32_t k, float *out)
{
  lanes total[ROWS][2] = {{{0}}};
  for (uint32_t first = 0; first < k; first += CHUNK)
    add_chunk(a, w, k, first, first + CHUNK < k ? first + CHUNK : k, total);
  memcpy(out, total, sizeof total);
}

/* COLUMNS rows of W from `row` on, as [k][COLUMNS]; `line` has room for one. */
static void unpack_w(const struct gemm_job *job, uint32_t row, float *line, float *out)
{
  const uint32_t k = job->p->k;
  for (uint32_t c = 0; c < COLUMNS; c++) {
    unpack_row(job->codes, job->scales, row + c, k, line);
    for (uint32_t i = 0; i < k; i++)
      out[(size_t)i * COLUMNS + c] = line[i];
  }
}

static void scale_and_bias(float *values, float alpha, const float *bias)
{
  for (uint32_t c = 0; c < COLUMNS; c++)
    values[c] = values[c] * alpha + (bias ? bias[c] : 0.0f);
}

static void store_up(const struct gemm_job *job, uint64_t row, uint32_t column, const float *up, const float *gate)
{
  const struct sc_fused_gemm *p = job->p;
  const struct sc_activation act = {p->gated ? SC_ACT_GATED : SC_ACT_RELU2, p->act_alpha, p->act_beta, p->act_limit};
  float h[COLUMNS];
  sc_ref_activate(SC_F32, gate, up, h, COLUMNS, &act);
  uint16_t *out = (uint16_t *)p->out + row * p->n + column;
  if (p->out_global != NULL)
    sc_ref_fp4_round_trip(SC_F32, h, out, COLUMNS, *p->out_global);
  else
    for (uint32_t c = 0; c < COLUMNS; c++)
      out[c] = sc_ref_to_bf16(h[c]);
}

/* COLUMNS columns of the output from `column` on, all rows. w: their columns of W, and behind them the gate's. */
static void multiply_columns(const struct gemm_job *job, uint32_t column, const float *w)
{
  const struct sc_fused_gemm *p = job->p;
  const bool gated = job->up && p->gated;
  const float alpha = p->alpha[job->expert];
  const float *bias = p->bias ? p->bias + (size_t)job->expert * p->w_rows + column : NULL;
  float out[ROWS][COLUMNS], gate[ROWS][COLUMNS];
  for (uint64_t r0 = 0; r0 < job->rows; r0 += ROWS) {
    multiply_tile(job->a + r0 * p->k, w, p->k, out[0]);
    if (gated)
      multiply_tile(job->a + r0 * p->k, w + (size_t)p->k * COLUMNS, p->k, gate[0]);
    for (uint64_t r = 0; r < ROWS && r0 + r < job->used; r++) {
      const uint64_t row = job->row0 + r0 + r;
      scale_and_bias(out[r], alpha, bias);
      if (gated)
        scale_and_bias(gate[r], alpha, bias ? bias + p->n : NULL);
      if (job->up)
        store_up(job, row, column, out[r], gated ? gate[r] : out[r]);
      else
        for (uint32_t c = 0; c < COLUMNS; c++)
          sc_ref_store(p->out_bf16 ? SC_BF16 : SC_F32, p->out, row * p->n + column + c, out[r][c]);
    }
  }
}

/* The groups of COLUMNS that begin in columns first .. last-1. */
static void gemm_range(void *ctx, uint64_t first, uint64_t last)
{
  struct gemm_job *job = ctx;
  const struct sc_fused_gemm *p = job->p;
  const size_t size = (size_t)p->k * COLUMNS;
  float *w = sc_calloc_array(2 * size + p->k, sizeof *w);
  if (w == NULL) {
    job->failed = true;
    return;
  }
  for (uint64_t column = (first + COLUMNS - 1) / COLUMNS * COLUMNS; column < last; column += COLUMNS) {
    unpack_w(job, (uint32_t)column, w + 2 * size, w);
    if (job->up && p->gated)
      unpack_w(job, p->n + (uint32_t)column, w + 2 * size, w + size);
    multiply_columns(job, (uint32_t)column, w);
  }
  free(w);
}

/* One expert: blocks first .. end-1 of block_rows padded rows; the last one alone has rows that are not in use. */
static bool gemm_of_expert(const struct sc_fused_gemm *p, int32_t first, int32_t end, uint32_t block_rows, bool up)
{
  const bool gated = up && p->gated;
  const uint32_t expert = (uint32_t)p->blocks[first].expert;
  const uint64_t row0 = (uint64_t)first * block_rows, rows = (uint64_t)(end - first) * block_rows;
  const uint64_t used = rows - block_rows + (uint64_t)p->blocks[end - 1].rows;
  float *a = sc_calloc_array(rows * p->k, sizeof *a);
  uint8_t *codes = sc_calloc_array((uint64_t)p->w_rows * p->k / 2, 1),
          *scales = sc_calloc_array(nvfp4_swizzled_bytes(p->w_rows, p->k / NVFP4_BLOCK), 1);
  struct gemm_job job = {.p = p,
                         .a = a,
                         .codes = codes,
                         .scales = scales,
                         .row0 = row0,
                         .rows = rows,
                         .used = used,
                         .expert = expert,
                         .up = up};
  job.failed = !a || !codes || !scales;
  if (!job.failed) {
    for (uint64_t r = 0; r < used; r++) {
      const uint64_t from = up ? (uint64_t)p->slot_choice[row0 + r] / p->top_k : row0 + r;
      for (uint32_t i = 0; i < p->k; i++)
        a[r * p->k + i] = sc_ref_load(SC_BF16, p->a, from * p->k + i);
    }
    sc_ref_fp4_untile(p->w + expert * sc_ref_fp4_tiled_bytes(p->w_rows, p->k), codes, scales, p->w_rows, p->k, gated);
    sc_ref_parallel(p->n, gemm_range, &job);
  }
  free(a);
  free(codes);
  free(scales);
  return !job.failed;
}

bool sc_ref_fused_gemm(const struct sc_fused_gemm *p, uint32_t block_rows, bool up)
{
  for (int32_t block = 0; block < *p->block_count; block += p->blocks[block].count)
    if (!gemm_of_expert(p, block, block + p->blocks[block].count, block_rows, up))
      return false;
  return true;
}

/* ---- the oracle ---- */

/* One expert over the choices that fell on it; `picks` are positions in chosen. */
struct oracle {
  const struct sc_ref_fused *layer;
  struct sc_ref_fp4_expert expert;
  const float *x; /* what is multiplied: [tokens][hidden], less its global scale */
  const uint32_t *picks;
  uint32_t pick_count;
  double *h;     /* [pick][intermediate] */
  float *h_back; /* the same as the second GEMM sees it, less its global scale */
  double *y;
  double scale13, scale2;
  _Atomic bool failed;
};

static double dot_double(const float *a, const float *b, uint32_t n)
{
  double sum[8] = {0};
  for (uint32_t i = 0; i < n; i += 8) /* n is a multiple of 16 */
    for (uint32_t lane = 0; lane < 8; lane++)
      sum[lane] += (double)a[i + lane] * (double)b[i + lane];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

static void oracle_up(void *ctx, uint64_t first, uint64_t last)
{
  struct oracle *o = ctx;
  const struct sc_ref_fused *layer = o->layer;
  const uint32_t k = layer->hidden, n = layer->intermediate;
  float *rows = sc_calloc_array((size_t)k * 2, sizeof *rows);
  if (rows == NULL) {
    o->failed = true;
    return;
  }
  for (uint64_t i = first; i < last; i++) {
    unpack_row(o->expert.w13, o->expert.scales13, i, k, rows);
    if (layer->gated)
      unpack_row(o->expert.w13, o->expert.scales13, n + i, k, rows + k);
    for (uint32_t p = 0; p < o->pick_count; p++) {
      const float *x = o->x + (size_t)(o->picks[p] / layer->top_k) * k;
      const double up = dot_double(rows, x, k) * o->scale13 + (o->expert.bias13 ? (double)o->expert.bias13[i] : 0.0);
      double gate = up;
      if (layer->gated)
        gate = dot_double(rows + k, x, k) * o->scale13 + (o->expert.bias13 ? (double)o->expert.bias13[n + i] : 0.0);
      o->h[(size_t)p * n + i] = (layer->activate ? layer->activate : sc_ref_activation)(&layer->activation, gate, up);
      if (layer->gates)
        layer->gates[(size_t)o->picks[p] * n + i] = gate;
      if (layer->ups)
        layer->ups[(size_t)o->picks[p] * n + i] = up;
    }
  }
  free(rows);
}

/* The intermediate as the second GEMM sees it. It stays in full precision until it is rounded once. */
static void oracle_round(void *ctx, uint64_t first, uint64_t last)
{
  struct oracle *o = ctx;
  for (uint64_t block = first; block < last; block++) {
    float h[NVFP4_BLOCK];
    uint8_t codes[NVFP4_BLOCK / 2];
    for (uint32_t i = 0; i < NVFP4_BLOCK; i++)
      h[i] = (float)o->h[block * NVFP4_BLOCK + i];
    float *out = o->h_back + block * NVFP4_BLOCK;
    if (o->layer->a_fp4) {
      const uint8_t scale = nvfp4_quantise_block(h, o->layer->intermediate_global, codes);
      nvfp4_dequantise(codes, &scale, 1, NVFP4_BLOCK, 1.0f, out);
    } else {
      for (uint32_t i = 0; i < NVFP4_BLOCK; i++)
        out[i] = sc_ref_from_bf16(sc_ref_to_bf16(h[i]));
    }
  }
}

static void oracle_down(void *ctx, uint64_t first, uint64_t last)
{
  struct oracle *o = ctx;
  const struct sc_ref_fused *layer = o->layer;
  const uint32_t n = layer->intermediate;
  float *row = sc_calloc_array(n, sizeof *row);
  if (row == NULL) {
    o->failed = true;
    return;
  }
  for (uint64_t c = first; c < last; c++) {
    unpack_row(o->expert.w2, o->expert.scales2, c, n, row);
    for (uint32_t p = 0; p < o->pick_count; p++) {
      double sum = 0;
      if (layer->plain_intermediate)
        for (uint32_t i = 0; i < n; i++)
          sum += (double)row[i] * o->h[(size_t)p * n + i];
      else
        sum = dot_double(row, o->h_back + (size_t)p * n, n);
      const size_t token = o->picks[p] / layer->top_k;
      o->y[token * layer->hidden + c] += (double)layer->weights[o->picks[p]] *
                                         (sum * o->scale2 + (o->expert.bias2 ? (double)o->expert.bias2[c] : 0.0));
    }
  }
  free(row);
}

/* x as it is multiplied, less its global scale. */
static bool round_input(const struct sc_ref_fused *layer, float *out)
{
  const size_t n = (size_t)layer->tokens * layer->hidden;
  if (!layer->a_fp4) {
    for (size_t i = 0; i < n; i++)
      out[i] = sc_ref_from_bf16(sc_ref_to_bf16(layer->x[i]));
    return true;
  }
  uint8_t *codes = sc_calloc_array(n / 2, 1), *scales = sc_calloc_array(n / NVFP4_BLOCK, 1);
  const bool ok = codes != NULL && scales != NULL;
  if (ok) {
    nvfp4_quantise(layer->x, layer->tokens, layer->hidden, layer->x_global, codes, scales);
    nvfp4_dequantise(codes, scales, layer->tokens, layer->hidden, 1.0f, out);
  }
  free(codes);
  free(scales);
  return ok;
}

enum sc_status sc_ref_fused_layer(const struct sc_ref_fused *layer, double *y, double *intermediate_amax,
                                  struct sc_error *err)
{
  const size_t inputs = (size_t)layer->tokens * layer->hidden, choices = (size_t)layer->tokens * layer->top_k;
  const double a13 = layer->a_fp4 ? (double)layer->x_global : 1.0;
  const double a2 = layer->a_fp4 && !layer->plain_intermediate ? (double)layer->intermediate_global : 1.0;
  enum sc_status status = SC_OK;
  double amax = 0;
  float *x = sc_calloc_array(inputs, sizeof *x),
        *h_back = sc_calloc_array((size_t)layer->tokens * layer->intermediate, sizeof *h_back);
  double *h = sc_calloc_array((size_t)layer->tokens * layer->intermediate, sizeof *h);
  uint32_t *picks = sc_calloc_array(choices, sizeof *picks);
  if (!x || !h || !h_back || !picks || !round_input(layer, x)) {
    status = sc_error_set(err, SC_ERR_NOMEM,
                          "the CPU reference of the fused layer needs more memory than this host gives; "
                          "choose a smaller --hidden or --intermediate");
    goto cleanup;
  }
  memset(y, 0, inputs * sizeof *y);
  for (uint32_t e = 0; e < layer->experts; e++) {
    struct oracle o = {.layer = layer, .x = x, .picks = picks, .h = h, .h_back = h_back, .y = y};
    for (size_t i = 0; i < choices && o.pick_count < layer->tokens; i++) /* a token chooses an expert once at most */
      if (layer->chosen[i] == (int32_t)e)
        picks[o.pick_count++] = (uint32_t)i;
    if (o.pick_count == 0)
      continue;
    status = layer->expert(layer->ctx, e, &o.expert, err);
    if (status != SC_OK)
      goto cleanup;
    o.scale13 = 1.0 / (a13 * (double)o.expert.global13);
    o.scale2 = 1.0 / (a2 * (double)o.expert.global2);
    sc_ref_parallel(layer->intermediate, oracle_up, &o);
    for (size_t i = 0; i < (size_t)o.pick_count * layer->intermediate; i++)
      amax = fmax(amax, fabs(h[i]));
    sc_ref_parallel((uint64_t)o.pick_count * layer->intermediate / NVFP4_BLOCK, oracle_round, &o);
    sc_ref_parallel(layer->hidden, oracle_down, &o);
    if (o.failed) {
      status = sc_error_set(err, SC_ERR_NOMEM, "no host memory to unpack a row of weights");
      goto cleanup;
    }
  }
  if (intermediate_amax)
    *intermediate_amax = amax;
cleanup:
  free(x);
  free(h);
  free(h_back);
  free(picks);
  return status;
}
