/* SPDX-License-Identifier: Apache-2.0
 * What a shape needs in memory, told before anything is allocated. */
#include "config/config.h"

/* *total += a * b * c; false on overflow. */
static bool add_product(uint64_t *total, uint64_t a, uint64_t b, uint64_t c)
{
  uint64_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product) &&
         !__builtin_add_overflow(*total, product, total);
}

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* Bytes of `rows` by `columns` weights as the fused layer holds them: tiles of 16 x 64, of each code half a byte and
 * for 16 of them a scale; a last tile is whole. */
static uint64_t tiled_bytes(uint64_t rows, uint64_t columns)
{
  const uint64_t tile_rows = 16, tile_columns = 64,
                 tile_bytes = tile_rows * tile_columns / 2 + tile_rows * tile_columns / 16;
  return round_up(rows, tile_rows) / tile_rows * (round_up(columns, tile_columns) / tile_columns) * tile_bytes;
}

/* What the fused layer adds: its weights, and the rows of every choice, with each expert's part padded to blocks of at
 * most 128, which are taken where no choice makes more than 8 rows. */
static bool add_nvfp4(const struct sc_config_shape *s, uint64_t element, uint64_t first_rows, uint64_t *layer,
                      uint64_t *fixed)
{
  const uint64_t rows13 = first_rows * s->intermediate, slots = s->tokens * s->top_k;
  const uint64_t padded = slots + 127 * (slots < s->experts ? slots : s->experts);
  const uint64_t rows = padded < 8 * slots ? padded : 8 * slots;
  bool fits =
      add_product(layer, s->experts, tiled_bytes(rows13, s->hidden) + tiled_bytes(s->hidden, s->intermediate), 1);
  if (s->nvfp4_biases)
    fits = fits && add_product(layer, s->experts, rows13 + s->hidden, 4);
  /* Intermediate, in bf16, and output of every padded row, x once more; and one expert's checkpoint while weights are
   * loaded, with its codes and scales as they come and in order. */
  return fits && add_product(fixed, rows, s->intermediate, 2) && add_product(fixed, rows, s->hidden, element) &&
         add_product(fixed, s->tokens, s->hidden, 2) && add_product(fixed, rows13, s->hidden, element + 2);
}

bool sc_config_memory(const struct sc_config_shape *s, struct sc_config_memory *out)
{
  const uint64_t element = s->dtype == SC_CONFIG_BF16 ? 2 : 4;
  const uint64_t first_rows = s->gated ? 2 : 1; /* gate and up, or up alone */
  uint64_t layer = 0, fixed = 0;
  /* Within these limits no single factor below overflows; the products are checked. */
  if (s->hidden > SC_CONFIG_MAX_WIDTH || s->intermediate > SC_CONFIG_MAX_WIDTH || s->experts > SC_CONFIG_MAX_EXPERTS ||
      s->top_k > SC_CONFIG_MAX_EXPERTS || s->tokens > SC_CONFIG_MAX_TOKENS)
    return false;
  const uint64_t slots = s->tokens * s->top_k;

  /* Of each layer's forward the probe keeps the output, the masked loop's to compare it with, and the choices. */
  bool fits = add_product(&layer, s->experts * (first_rows + 1), s->hidden * element, s->intermediate) &&
              add_product(&layer, s->experts, s->hidden, element) /* router */ &&
              add_product(&layer, 2 * s->tokens, s->hidden, element) && add_product(&layer, slots, 4, 1);

  /* The input, the gathered and combined rows of the slots, an expert's inner rows for all tokens. */
  fits = fits && add_product(&fixed, s->tokens + 2 * slots, s->hidden, element) &&
         add_product(&fixed, first_rows + 1, s->tokens * element, s->intermediate) &&
         add_product(&fixed, s->tokens, s->experts, 8) /* logits and probabilities */ &&
         add_product(&fixed, slots, 64, 1) /* routing, masks, and what sorts them */;
  if (s->nvfp4)
    fits = fits && add_nvfp4(s, element, first_rows, &layer, &fixed);
  if (!fits)
    return false;
  out->layer_bytes = layer;
  out->fixed_bytes = fixed;
  return true;
}

uint64_t sc_config_layers_that_fit(const struct sc_config_memory *memory, uint64_t wanted, uint64_t available)
{
  if (memory->fixed_bytes >= available || memory->layer_bytes == 0)
    return 0;
  uint64_t fit = (available - memory->fixed_bytes) / memory->layer_bytes;
  return fit < wanted ? fit : wanted;
}
