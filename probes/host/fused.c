/* SPDX-License-Identifier: Apache-2.0
 * The fused NVFP4 layer. Grids are sized by what the host knows, the blocks that any routing can fill; the counts
 * themselves stay on the device. */
#include "host/fused.h"

#include <stdlib.h>

static uint32_t rows13(const struct sc_fused_shape *s) { return s->gated ? 2 * s->intermediate : s->intermediate; }

static uint64_t bytes13(const struct sc_fused_shape *s) { return sc_ref_fp4_tiled_bytes(rows13(s), s->hidden); }

static uint64_t bytes2(const struct sc_fused_shape *s) { return sc_ref_fp4_tiled_bytes(s->hidden, s->intermediate); }

/* Few rows an expert: blocks that waste few, since reading W is what takes time. Many: blocks that use what they have
 * read often. */
static uint32_t block_rows(const struct sc_gpu *gpu, const struct sc_fused_shape *s, uint32_t tokens, uint32_t experts)
{
  static const struct {
    uint32_t average, rows;
  } up_to[] = {{4, 8}, {8, 16}, {20, 32}, {40, 64}};
  for (size_t i = 0; i < SC_COUNTOF(up_to); i++)
    if ((uint64_t)tokens * s->top_k <= (uint64_t)experts * up_to[i].average)
      return up_to[i].rows;
  return gpu->wgmma ? SC_WGMMA_MOST_ROWS : 64;
}

/* Blocks of `block` rows that any routing can fill. */
static uint64_t block_bound(const struct sc_fused_shape *s, uint32_t tokens, uint32_t experts, uint32_t block)
{
  const uint64_t choices = (uint64_t)tokens * s->top_k, used = choices < experts ? choices : experts;
  return (choices + used * (block - 1)) / block;
}

const char *sc_fused_unsupported(const struct sc_fused_shape *s)
{
  if (s->hidden % NVFP4_BLOCK != 0 || s->intermediate % NVFP4_BLOCK != 0)
    return "NVFP4 has a scale for every 16 values: --hidden and --intermediate must be multiples of 16";
  return NULL;
}

void sc_fused_plan_weights(struct sc_fused_weights *w, const struct sc_fused_shape *s, struct sc_plan *plan)
{
  const uint64_t experts = s->experts;
  w->w13 = sc_plan_take(plan, experts, bytes13(s));
  w->w2 = sc_plan_take(plan, experts, bytes2(s));
  float **const numbers[] = {&w->amax13, &w->amax2, &w->global13, &w->global2, &w->alpha13, &w->alpha2};
  for (size_t i = 0; i < SC_COUNTOF(numbers); i++)
    *numbers[i] = sc_plan_take(plan, experts, sizeof(float));
  w->bias13 = s->biases ? sc_plan_take(plan, experts * rows13(s), sizeof(float)) : NULL;
  w->bias2 = s->biases ? sc_plan_take(plan, experts * s->hidden, sizeof(float)) : NULL;
  w->amax_a = sc_plan_take(plan, 2, sizeof(float));
  w->global_a = sc_plan_take(plan, 2, sizeof(float));
}

void sc_fused_plan_scratch(struct sc_fused_scratch *f, const struct sc_fused_shape *s, uint32_t max_tokens,
                           struct sc_plan *plan)
{
  /* Whichever block a smaller point takes, its padded rows are no more than this: large blocks go with many choices an
   * expert, so that no choice makes more than 8 rows. */
  const uint64_t choices = (uint64_t)max_tokens * s->top_k,
                 large = block_bound(s, max_tokens, s->experts, SC_WGMMA_MOST_ROWS) * SC_WGMMA_MOST_ROWS,
                 rows = large < 8 * choices ? large : 8 * choices;
  const uint64_t size = sc_dtype_size(s->dtype), matrix = (uint64_t)rows13(s) * s->hidden,
                 second = (uint64_t)s->hidden * s->intermediate, largest = matrix > second ? matrix : second;
  const uint64_t swizzled13 = nvfp4_swizzled_bytes(rows13(s), s->hidden / NVFP4_BLOCK),
                 swizzled2 = nvfp4_swizzled_bytes(s->hidden, s->intermediate / NVFP4_BLOCK);
  f->max_tokens = max_tokens;
  f->x_bf16 = s->a_fp4 || s->dtype == SC_F32 ? sc_plan_take(plan, (uint64_t)max_tokens * s->hidden, 2) : NULL;
  f->slot_choice = sc_plan_take(plan, rows, sizeof *f->slot_choice);
  f->inverse = sc_plan_take(plan, choices, sizeof *f->inverse);
  f->blocks = sc_plan_take(plan, rows / 8, sizeof *f->blocks);
  f->block_count = sc_plan_take(plan, 1, sizeof *f->block_count);
  f->intermediate = sc_plan_take(plan, rows * s->intermediate, 2);
  f->slots = sc_plan_take(plan, rows * s->hidden, size);
  f->checkpoint = sc_plan_take(plan, matrix, size);
  f->codes = sc_plan_take(plan, largest / 2, 1);
  f->scales = sc_plan_take(plan, largest / NVFP4_BLOCK, 1);
  f->ordered_codes = sc_plan_take(plan, matrix / 2, 1);
  f->ordered_scales = sc_plan_take(plan, matrix / NVFP4_BLOCK, 1);
  f->swizzled_scales = sc_plan_take(plan, swizzled13 > swizzled2 ? swizzled13 : swizzled2, 1);
}

/* Gate and up as a checkpoint holds them: rows interleaved or packed. */
static enum sc_status lay_out_checkpoint(const struct sc_gpu *gpu, const struct sc_fused_shape *s, void *checkpoint,
                                         const void *gate, const void *up, struct sc_error *err)
{
  const size_t row = s->hidden * sc_dtype_size(s->dtype), rows = s->intermediate;
  const bool interleaved = s->gated && s->layout == NVFP4_W13_INTERLEAVED;
  const size_t pitch = interleaved ? 2 * row : row;
  SC_CUDA(cudaMemcpy2DAsync(checkpoint, pitch, gate, row, row, rows, cudaMemcpyDeviceToDevice, gpu->stream));
  if (s->gated)
    SC_CUDA(cudaMemcpy2DAsync((char *)checkpoint + (interleaved ? row : rows * row), pitch, up, row, row, rows,
                              cudaMemcpyDeviceToDevice, gpu->stream));
  return SC_OK;
}

static enum sc_status quantise(const struct sc_gpu *gpu, const struct sc_fused_shape *s, const void *x, uint64_t rows,
                               uint32_t columns, float *amax, float *global, uint8_t *codes, uint8_t *scales,
                               struct sc_error *err)
{
  SC_CUDA(cudaMemsetAsync(amax, 0, sizeof *amax, gpu->stream));
  SC_TRY(sc_launch_fp4_amax(gpu, s->dtype, x, rows * columns, amax, err));
  SC_TRY(sc_launch_fp4_globals(gpu, amax, global, 1, err));
  return sc_launch_fp4_quantise(gpu, s->dtype, x, codes, scales, rows, columns, global, err);
}

enum sc_status sc_fused_load(const struct sc_gpu *gpu, const struct sc_fused_shape *s, const struct sc_fused_weights *w,
                             const struct sc_fused_scratch *f, uint32_t expert, const void *gate, const void *up,
                             const void *down, struct sc_error *err)
{
  const uint32_t rows = rows13(s), layout = (uint32_t)s->layout, blocks13 = s->hidden / NVFP4_BLOCK;
  const uint8_t *codes = f->codes, *scales = f->scales;
  SC_TRY(lay_out_checkpoint(gpu, s, f->checkpoint, gate, up, err));
  SC_TRY(quantise(gpu, s, f->checkpoint, rows, s->hidden, w->amax13 + expert, w->global13 + expert, f->codes, f->scales,
                  err));
  if (s->gated) {
    SC_TRY(sc_launch_fp4_reorder(gpu, f->codes, f->ordered_codes, rows, s->hidden / 2, layout, err));
    SC_TRY(sc_launch_fp4_reorder(gpu, f->scales, f->ordered_scales, rows, blocks13, layout, err));
    codes = f->ordered_codes;
    scales = f->ordered_scales;
  }
  SC_TRY(sc_launch_fp4_swizzle(gpu, scales, f->swizzled_scales, rows, blocks13, err));
  SC_TRY(
      sc_launch_fp4_tile(gpu, codes, f->swizzled_scales, w->w13 + expert * bytes13(s), rows, s->hidden, s->gated, err));
  SC_TRY(quantise(gpu, s, down, s->hidden, s->intermediate, w->amax2 + expert, w->global2 + expert, f->codes, f->scales,
                  err));
  SC_TRY(sc_launch_fp4_swizzle(gpu, f->scales, f->swizzled_scales, s->hidden, s->intermediate / NVFP4_BLOCK, err));
  return sc_launch_fp4_tile(gpu, f->codes, f->swizzled_scales, w->w2 + expert * bytes2(s), s->hidden, s->intermediate,
                            false, err);
}

static enum sc_status prepare_input(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                                    const struct sc_fused_weights *w, const struct sc_fused_scratch *f, const void *x,
                                    uint32_t tokens, struct sc_error *err)
{
  const uint64_t n = (uint64_t)tokens * s->hidden;
  if (s->a_fp4)
    return sc_launch_fp4_round_trip(gpu, s->dtype, x, f->x_bf16, n, w->global_a, err);
  return f->x_bf16 ? sc_launch_fp4_to_bf16(gpu, x, f->x_bf16, n, err) : SC_OK;
}

static struct sc_fused_gemm common_arguments(const struct sc_fused_shape *s, const struct sc_fused_scratch *f)
{
  return (struct sc_fused_gemm){.slot_choice = f->slot_choice,
                                .blocks = f->blocks,
                                .block_count = f->block_count,
                                .top_k = s->top_k,
                                .gated = s->gated,
                                .act_alpha = s->activation.alpha,
                                .act_beta = s->activation.beta,
                                .act_limit = s->activation.limit,
                                .out_bf16 = s->dtype == SC_BF16};
}

/* The first GEMM with its activation. calibrating: the intermediate is stored in bf16. */
static enum sc_status up_gemm(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                              const struct sc_fused_weights *w, const struct sc_fused_scratch *f, const void *x,
                              uint64_t blocks, uint32_t block, bool calibrating, struct sc_error *err)
{
  struct sc_fused_gemm p = common_arguments(s, f);
  p.a = f->x_bf16 ? f->x_bf16 : x;
  p.w = w->w13;
  p.alpha = w->alpha13;
  p.bias = w->bias13;
  p.out_global = s->a_fp4 && !calibrating ? w->global_a + 1 : NULL;
  p.out = f->intermediate;
  p.k = s->hidden;
  p.n = s->intermediate;
  p.w_rows = rows13(s);
  return sc_launch_fused_gemm(gpu, &p, blocks, block, true, err);
}

static enum sc_status down_gemm(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                                const struct sc_fused_weights *w, const struct sc_fused_scratch *f, uint64_t blocks,
                                uint32_t block, struct sc_error *err)
{
  struct sc_fused_gemm p = common_arguments(s, f);
  p.a = f->intermediate;
  p.w = w->w2;
  p.alpha = w->alpha2;
  p.bias = w->bias2;
  p.out = f->slots;
  p.k = s->intermediate;
  p.n = s->hidden;
  p.w_rows = s->hidden;
  return sc_launch_fused_gemm(gpu, &p, blocks, block, false, err);
}

enum sc_status sc_fused_calibrate(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                                  const struct sc_fused_weights *w, const struct sc_fused_scratch *f, const void *x,
                                  uint32_t tokens, const int32_t *chosen, struct sc_error *err)
{
  const uint64_t choices = (uint64_t)tokens * s->top_k;
  const uint32_t block = block_rows(gpu, s, tokens, s->experts);
  const uint64_t blocks = block_bound(s, tokens, s->experts, block), padded = blocks * block;
  const float *const global_x = s->a_fp4 ? w->global_a : NULL, *const global_h = s->a_fp4 ? w->global_a + 1 : NULL;
  SC_CUDA(cudaMemsetAsync(w->amax_a, 0, 2 * sizeof *w->amax_a, gpu->stream));
  SC_TRY(sc_launch_fp4_amax(gpu, s->dtype, x, (uint64_t)tokens * s->hidden, w->amax_a, err));
  SC_TRY(sc_launch_fp4_globals(gpu, w->amax_a, w->global_a, 1, err));
  SC_TRY(sc_launch_fp4_alphas(gpu, global_x, w->global13, w->alpha13, s->experts, err));
  SC_TRY(prepare_input(gpu, s, w, f, x, tokens, err));
  SC_TRY(sc_launch_fused_align(gpu, chosen, f->slot_choice, f->inverse, f->blocks, f->block_count, choices, s->experts,
                               block, err));
  /* Rows beyond those in use are not written: zeros do not move the largest magnitude. */
  SC_CUDA(cudaMemsetAsync(f->intermediate, 0, padded * s->intermediate * 2, gpu->stream));
  SC_TRY(up_gemm(gpu, s, w, f, x, blocks, block, true, err));
  SC_TRY(sc_launch_fp4_amax(gpu, SC_BF16, f->intermediate, padded * s->intermediate, w->amax_a + 1, err));
  SC_TRY(sc_launch_fp4_globals(gpu, w->amax_a + 1, w->global_a + 1, 1, err));
  return sc_launch_fp4_alphas(gpu, global_h, w->global2, w->alpha2, s->experts, err);
}

enum sc_status sc_fused_set_scales(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                                   const struct sc_fused_weights *w, const float globals[2], struct sc_error *err)
{
  const float *const global_x = s->a_fp4 ? w->global_a : NULL, *const global_h = s->a_fp4 ? w->global_a + 1 : NULL;
  SC_CUDA(cudaMemcpyAsync(w->global_a, globals, 2 * sizeof *globals, cudaMemcpyHostToDevice,
                          gpu->stream)); /* pageable: read on return */
  SC_TRY(sc_launch_fp4_alphas(gpu, global_x, w->global13, w->alpha13, s->experts, err));
  return sc_launch_fp4_alphas(gpu, global_h, w->global2, w->alpha2, s->experts, err);
}

enum sc_status sc_fused_forward(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                                const struct sc_fused_weights *w, const struct sc_fused_scratch *f, const void *x,
                                uint32_t tokens, uint32_t experts, const int32_t *chosen, const float *choice_weights,
                                void *output, struct sc_error *err)
{
  const uint64_t choices = (uint64_t)tokens * s->top_k;
  const uint32_t block = block_rows(gpu, s, tokens, experts);
  const uint64_t blocks = block_bound(s, tokens, experts, block);
  SC_TRY(prepare_input(gpu, s, w, f, x, tokens, err));
  SC_TRY(sc_launch_fused_align(gpu, chosen, f->slot_choice, f->inverse, f->blocks, f->block_count, choices, experts,
                               block, err));
  SC_TRY(up_gemm(gpu, s, w, f, x, blocks, block, false, err));
  SC_TRY(down_gemm(gpu, s, w, f, blocks, block, err));
  return sc_launch_combine(gpu, s->dtype, f->slots, f->inverse, choice_weights, output, tokens, s->top_k, s->hidden,
                           err);
}

/* ---- for verification ---- */

/* Where the parts of one expert stand on the host: copied from the device as they are, and made of them. */
enum {
  COPY_W13,
  COPY_W2,
  COPY_GLOBAL13,
  COPY_GLOBAL2,
  COPY_BIAS13,
  COPY_BIAS2,
  COPIED,
  MADE_CODES13 = COPIED,
  MADE_SCALES13,
  MADE_CODES2,
  MADE_SCALES2,
  COPY_PARTS
};

static void lay_out_copy(const struct sc_fused_shape *s, const uint64_t sizes[COPIED], void *parts[COPY_PARTS],
                         struct sc_plan *plan)
{
  const uint64_t rows = rows13(s);
  for (size_t i = 0; i < COPIED; i++)
    parts[i] = sc_plan_take(plan, sizes[i], 1);
  parts[MADE_CODES13] = sc_plan_take(plan, rows * s->hidden / 2, 1);
  parts[MADE_SCALES13] = sc_plan_take(plan, nvfp4_swizzled_bytes(rows, s->hidden / NVFP4_BLOCK), 1);
  parts[MADE_CODES2] = sc_plan_take(plan, (uint64_t)s->hidden * s->intermediate / 2, 1);
  parts[MADE_SCALES2] = sc_plan_take(plan, nvfp4_swizzled_bytes(s->hidden, s->intermediate / NVFP4_BLOCK), 1);
}

enum sc_status sc_fused_copy_expert(void *ctx, uint32_t expert, struct sc_ref_fp4_expert *out, struct sc_error *err)
{
  struct sc_fused_copy *copy = ctx;
  const struct sc_fused_shape *s = copy->shape;
  const struct sc_fused_weights *w = copy->weights;
  const uint64_t sizes[COPIED] = {bytes13(s),
                                  bytes2(s),
                                  sizeof(float),
                                  sizeof(float),
                                  w->bias13 ? rows13(s) * sizeof(float) : 0,
                                  w->bias2 ? s->hidden * sizeof(float) : 0};
  const void *const device[COPIED] = {w->w13, w->w2, w->global13, w->global2, w->bias13, w->bias2};
  void *parts[COPY_PARTS];
  struct sc_plan plan = {0};
  lay_out_copy(s, sizes, parts, &plan);
  if (copy->bytes == NULL)
    copy->bytes = sc_calloc_array(plan.bytes, 1);
  if (copy->bytes == NULL)
    return sc_error_set(err, SC_ERR_NOMEM, "no host memory for the weights of one expert");
  plan = (struct sc_plan){.base = (char *)copy->bytes};
  lay_out_copy(s, sizes, parts, &plan);
  for (size_t i = 0; i < COPIED; i++)
    if (sizes[i] > 0)
      SC_CUDA(cudaMemcpy(parts[i], (const char *)device[i] + expert * sizes[i], sizes[i], cudaMemcpyDeviceToHost));
  sc_ref_fp4_untile(parts[COPY_W13], parts[MADE_CODES13], parts[MADE_SCALES13], rows13(s), s->hidden, s->gated);
  sc_ref_fp4_untile(parts[COPY_W2], parts[MADE_CODES2], parts[MADE_SCALES2], s->hidden, s->intermediate, false);
  *out = (struct sc_ref_fp4_expert){parts[MADE_CODES13],
                                    parts[MADE_SCALES13],
                                    parts[MADE_CODES2],
                                    parts[MADE_SCALES2],
                                    *(float *)parts[COPY_GLOBAL13],
                                    *(float *)parts[COPY_GLOBAL2],
                                    w->bias13 ? parts[COPY_BIAS13] : NULL,
                                    w->bias2 ? parts[COPY_BIAS2] : NULL};
  return SC_OK;
}

void sc_fused_copy_close(struct sc_fused_copy *copy)
{
  free(copy->bytes);
  copy->bytes = NULL;
}

enum sc_status sc_fused_read_globals(const struct sc_gpu *gpu, const struct sc_fused_weights *w, float globals[2],
                                     struct sc_error *err)
{
  SC_TRY(sc_gpu_sync(gpu, err));
  SC_CUDA(cudaMemcpy(globals, w->global_a, 2 * sizeof *globals, cudaMemcpyDeviceToHost));
  return SC_OK;
}
