/* SPDX-License-Identifier: Apache-2.0
 * The fused NVFP4 layer. Grids are sized by what the host knows, tokens * k + E * (block - 1) padded rows; the counts
 * themselves stay on the device. */
#include "host/fused.h"

#include <stdlib.h>

static uint32_t rows13(const struct sc_fused_shape *s) { return s->gated ? 2 * s->intermediate : s->intermediate; }

static uint64_t scale_bytes13(const struct sc_fused_shape *s)
{
  return nvfp4_swizzled_bytes(rows13(s), s->hidden / NVFP4_BLOCK);
}

static uint64_t scale_bytes2(const struct sc_fused_shape *s)
{
  return nvfp4_swizzled_bytes(s->hidden, s->intermediate / NVFP4_BLOCK);
}

/* Small blocks waste few rows when an expert has a handful of tokens; large ones read each weight less often. */
static uint32_t block_rows(const struct sc_fused_shape *s, uint32_t tokens, uint32_t experts)
{
  return (uint64_t)tokens * s->top_k > (uint64_t)experts * SC_FUSED_ROWS_SMALL ? SC_FUSED_ROWS_LARGE
                                                                               : SC_FUSED_ROWS_SMALL;
}

static uint64_t padded_bound(const struct sc_fused_shape *s, uint32_t tokens, uint32_t experts, uint32_t block)
{
  const uint64_t choices = (uint64_t)tokens * s->top_k, used = choices < experts ? choices : experts;
  return (choices + used * (block - 1)) / block * block; /* every expert's part is a multiple of the block */
}

const char *sc_fused_unsupported(const struct sc_fused_shape *s)
{
  if (s->hidden % NVFP4_BLOCK != 0 || s->intermediate % NVFP4_BLOCK != 0)
    return "NVFP4 has a scale for every 16 values: --hidden and --intermediate must be multiples of 16";
  return NULL;
}

void sc_fused_plan_weights(struct sc_fused_weights *w, const struct sc_fused_shape *s, struct sc_plan *plan)
{
  const uint64_t experts = s->experts, size13 = (uint64_t)rows13(s) * s->hidden / 2,
                 size2 = (uint64_t)s->hidden * s->intermediate / 2;
  w->w13 = sc_plan_take(plan, experts, size13);
  w->scales13 = sc_plan_take(plan, experts, scale_bytes13(s));
  w->w2 = sc_plan_take(plan, experts, size2);
  w->scales2 = sc_plan_take(plan, experts, scale_bytes2(s));
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
  /* Whichever block a smaller point takes, its padded rows are no more than this. */
  const uint64_t choices = (uint64_t)max_tokens * s->top_k,
                 rows = padded_bound(s, max_tokens, s->experts, SC_FUSED_ROWS_LARGE);
  const uint64_t size = sc_dtype_size(s->dtype), matrix = (uint64_t)rows13(s) * s->hidden;
  f->max_tokens = max_tokens;
  f->x_codes = s->a_fp4 ? sc_plan_take(plan, (uint64_t)max_tokens * s->hidden / 2, 1) : NULL;
  f->x_scales = s->a_fp4 ? sc_plan_take(plan, (uint64_t)max_tokens * s->hidden / NVFP4_BLOCK, 1) : NULL;
  f->x_bf16 = !s->a_fp4 && s->dtype == SC_F32 ? sc_plan_take(plan, (uint64_t)max_tokens * s->hidden, 2) : NULL;
  f->slot_choice = sc_plan_take(plan, rows, sizeof *f->slot_choice);
  f->inverse = sc_plan_take(plan, choices, sizeof *f->inverse);
  f->block_expert = sc_plan_take(plan, rows / SC_FUSED_ROWS_SMALL, sizeof *f->block_expert);
  f->padded_rows = sc_plan_take(plan, 1, sizeof *f->padded_rows);
  f->intermediate = sc_plan_take(plan, rows * s->intermediate, 2); /* bf16 when calibrating, whatever comes later */
  f->intermediate_scales = sc_plan_take(plan, rows * s->intermediate / NVFP4_BLOCK, 1);
  f->slots = sc_plan_take(plan, rows * s->hidden, size);
  f->checkpoint = sc_plan_take(plan, matrix, size);
  const uint64_t largest =
      matrix > (uint64_t)s->hidden * s->intermediate ? matrix : (uint64_t)s->hidden * s->intermediate;
  f->codes = sc_plan_take(plan, largest / 2, 1);
  f->scales = sc_plan_take(plan, largest / NVFP4_BLOCK, 1);
  f->ordered_scales = sc_plan_take(plan, largest / NVFP4_BLOCK, 1);
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
  uint8_t *w13 = w->w13 + (uint64_t)expert * rows * s->hidden / 2;
  uint8_t *w2 = w->w2 + (uint64_t)expert * s->hidden * s->intermediate / 2;
  const uint8_t *ordered = f->scales;
  SC_TRY(lay_out_checkpoint(gpu, s, f->checkpoint, gate, up, err));
  SC_TRY(quantise(gpu, s, f->checkpoint, rows, s->hidden, w->amax13 + expert, w->global13 + expert,
                  s->gated ? f->codes : w13, f->scales, err));
  if (s->gated) {
    SC_TRY(sc_launch_fp4_reorder(gpu, f->codes, w13, rows, s->hidden / 2, layout, err));
    SC_TRY(sc_launch_fp4_reorder(gpu, f->scales, f->ordered_scales, rows, blocks13, layout, err));
    ordered = f->ordered_scales;
  }
  SC_TRY(sc_launch_fp4_swizzle(gpu, ordered, w->scales13 + expert * scale_bytes13(s), rows, blocks13, err));
  SC_TRY(
      quantise(gpu, s, down, s->hidden, s->intermediate, w->amax2 + expert, w->global2 + expert, w2, f->scales, err));
  return sc_launch_fp4_swizzle(gpu, f->scales, w->scales2 + expert * scale_bytes2(s), s->hidden,
                               s->intermediate / NVFP4_BLOCK, err);
}

static enum sc_status prepare_input(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                                    const struct sc_fused_weights *w, const struct sc_fused_scratch *f, const void *x,
                                    uint32_t tokens, struct sc_error *err)
{
  if (s->a_fp4)
    return sc_launch_fp4_quantise(gpu, s->dtype, x, f->x_codes, f->x_scales, tokens, s->hidden, w->global_a, err);
  return f->x_bf16 ? sc_launch_fp4_to_bf16(gpu, x, f->x_bf16, (uint64_t)tokens * s->hidden, err) : SC_OK;
}

static struct sc_fused_gemm common_arguments(const struct sc_fused_shape *s, const struct sc_fused_scratch *f)
{
  return (struct sc_fused_gemm){.slot_choice = f->slot_choice,
                                .block_expert = f->block_expert,
                                .padded_rows = f->padded_rows,
                                .top_k = s->top_k,
                                .gated = s->gated,
                                .act_kind = s->activation.kind,
                                .act_alpha = s->activation.alpha,
                                .act_beta = s->activation.beta,
                                .act_limit = s->activation.limit,
                                .out_bf16 = s->dtype == SC_BF16};
}

/* The first GEMM with its activation. calibrating: the intermediate is stored in bf16. */
static enum sc_status up_gemm(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                              const struct sc_fused_weights *w, const struct sc_fused_scratch *f, const void *x,
                              uint64_t padded, uint32_t block, bool calibrating, struct sc_error *err)
{
  struct sc_fused_gemm p = common_arguments(s, f);
  p.a = s->a_fp4 ? f->x_codes : f->x_bf16 ? f->x_bf16 : x;
  p.a_scales = f->x_scales;
  p.w = w->w13;
  p.w_scales = w->scales13;
  p.alpha = w->alpha13;
  p.bias = w->bias13;
  p.out_global = s->a_fp4 && !calibrating ? w->global_a + 1 : NULL;
  p.out = f->intermediate;
  p.out_scales = f->intermediate_scales;
  p.w_scale_bytes = scale_bytes13(s);
  p.k = s->hidden;
  p.n = s->intermediate;
  p.w_rows = rows13(s);
  return sc_launch_fused_gemm(gpu, &p, padded, block, s->a_fp4, true, err);
}

static enum sc_status down_gemm(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                                const struct sc_fused_weights *w, const struct sc_fused_scratch *f, uint64_t padded,
                                uint32_t block, struct sc_error *err)
{
  struct sc_fused_gemm p = common_arguments(s, f);
  p.a = f->intermediate;
  p.a_scales = f->intermediate_scales;
  p.w = w->w2;
  p.w_scales = w->scales2;
  p.alpha = w->alpha2;
  p.bias = w->bias2;
  p.out = f->slots;
  p.w_scale_bytes = scale_bytes2(s);
  p.k = s->intermediate;
  p.n = s->hidden;
  p.w_rows = s->hidden;
  return sc_launch_fused_gemm(gpu, &p, padded, block, s->a_fp4, false, err);
}

enum sc_status sc_fused_calibrate(const struct sc_gpu *gpu, const struct sc_fused_shape *s,
                                  const struct sc_fused_weights *w, const struct sc_fused_scratch *f, const void *x,
                                  uint32_t tokens, const int32_t *chosen, struct sc_error *err)
{
  const uint64_t choices = (uint64_t)tokens * s->top_k;
  const uint32_t block = block_rows(s, tokens, s->experts);
  const uint64_t padded = padded_bound(s, tokens, s->experts, block);
  const float *const global_x = s->a_fp4 ? w->global_a : NULL, *const global_h = s->a_fp4 ? w->global_a + 1 : NULL;
  SC_CUDA(cudaMemsetAsync(w->amax_a, 0, 2 * sizeof *w->amax_a, gpu->stream));
  SC_TRY(sc_launch_fp4_amax(gpu, s->dtype, x, (uint64_t)tokens * s->hidden, w->amax_a, err));
  SC_TRY(sc_launch_fp4_globals(gpu, w->amax_a, w->global_a, 1, err));
  SC_TRY(sc_launch_fp4_alphas(gpu, global_x, w->global13, w->alpha13, s->experts, err));
  SC_TRY(prepare_input(gpu, s, w, f, x, tokens, err));
  SC_TRY(sc_launch_fused_align(gpu, chosen, f->slot_choice, f->inverse, f->block_expert, f->padded_rows, choices,
                               s->experts, block, err));
  /* Rows beyond those in use are not written: zeros do not move the largest magnitude. */
  SC_CUDA(cudaMemsetAsync(f->intermediate, 0, padded * s->intermediate * 2, gpu->stream));
  SC_TRY(up_gemm(gpu, s, w, f, x, padded, block, true, err));
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
  const uint32_t block = block_rows(s, tokens, experts);
  const uint64_t padded = padded_bound(s, tokens, experts, block);
  SC_TRY(prepare_input(gpu, s, w, f, x, tokens, err));
  SC_TRY(sc_launch_fused_align(gpu, chosen, f->slot_choice, f->inverse, f->block_expert, f->padded_rows, choices,
                               experts, block, err));
  SC_TRY(up_gemm(gpu, s, w, f, x, padded, block, false, err));
  SC_TRY(down_gemm(gpu, s, w, f, padded, block, err));
  return sc_launch_combine(gpu, s->dtype, f->slots, f->inverse, choice_weights, output, tokens, s->top_k, s->hidden,
                           err);
}

/* ---- for verification ---- */

enum sc_status sc_fused_copy_expert(void *ctx, uint32_t expert, struct sc_ref_fp4_expert *out, struct sc_error *err)
{
  struct sc_fused_copy *copy = ctx;
  const struct sc_fused_shape *s = copy->shape;
  const struct sc_fused_weights *w = copy->weights;
  const uint64_t rows = rows13(s), codes13 = rows * s->hidden / 2, codes2 = (uint64_t)s->hidden * s->intermediate / 2;
  struct sc_plan plan = {0};
  for (int pass = 0; pass < 2; pass++) {
    const struct {
      uint64_t size;
      const void *device;
    } parts[] = {{codes13, w->w13},
                 {scale_bytes13(s), w->scales13},
                 {codes2, w->w2},
                 {scale_bytes2(s), w->scales2},
                 {sizeof(float), w->global13},
                 {sizeof(float), w->global2},
                 {w->bias13 ? rows * sizeof(float) : 0, w->bias13},
                 {w->bias2 ? s->hidden * sizeof(float) : 0, w->bias2}};
    void *host[SC_COUNTOF(parts)];
    for (size_t i = 0; i < SC_COUNTOF(parts); i++) {
      host[i] = sc_plan_take(&plan, parts[i].size, 1);
      if (pass == 1 && parts[i].size > 0)
        SC_CUDA(cudaMemcpy(host[i], (const char *)parts[i].device + expert * parts[i].size, parts[i].size,
                           cudaMemcpyDeviceToHost));
    }
    if (pass == 0) {
      if (copy->bytes == NULL)
        copy->bytes = sc_calloc_array(plan.bytes, 1);
      if (copy->bytes == NULL)
        return sc_error_set(err, SC_ERR_NOMEM, "no host memory for the weights of one expert");
      plan = (struct sc_plan){.base = (char *)copy->bytes};
    } else {
      *out = (struct sc_ref_fp4_expert){host[0],
                                        host[1],
                                        host[2],
                                        host[3],
                                        *(float *)host[4],
                                        *(float *)host[5],
                                        w->bias13 ? host[6] : NULL,
                                        w->bias2 ? host[7] : NULL};
    }
  }
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
