/* SPDX-License-Identifier: Apache-2.0
 * The table of variants, and the controls beside it. */
#include <stdio.h>
#include <string.h>

#include "host/variants.h"

static enum sc_status plain_sorted(const struct sc_point *point, uint32_t layer, struct sc_error *err)
{
  return sc_layer_sorted(point, layer, 0, err);
}

static bool enough_experts(const struct sc_point *point, char *reason, size_t size)
{
  if (point->experts >= point->model->shape.top_k)
    return true;
  snprintf(reason, size, "top-%u needs at least as many experts, not %u", point->model->shape.top_k, point->experts);
  return false;
}

static bool fused_possible(const struct sc_point *point, char *reason, size_t size)
{
  const char *why = sc_fused_unsupported(&point->model->fused_shape);
  if (why == NULL)
    return enough_experts(point, reason, size);
  snprintf(reason, size, "%s", why);
  return false;
}

const struct sc_variant sc_variants[] = {
    {"masked", sc_layer_masked, enough_experts, NULL, true},
    {"sorted", plain_sorted, enough_experts, NULL, true},
    {"fused-nvfp4", sc_layer_fused, fused_possible, sc_fused_reference, false},
    {NULL, NULL, NULL, NULL, false},
};
const struct sc_variant *const sc_variant_masked = &sc_variants[0];

static bool listed(const char *list, const char *name)
{
  const size_t length = strlen(name);
  for (const char *at = list; at != NULL; at = strchr(at, ','), at = at ? at + 1 : NULL)
    if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
      return true;
  return false;
}

enum sc_status sc_variants_parse(const char *list, const struct sc_variant *chosen[SC_MAX_VARIANTS], size_t *count,
                                 struct sc_error *err)
{
  size_t n = 0, names = 1;
  for (const struct sc_variant *v = sc_variants; v->name != NULL; v++)
    if (listed(list, v->name))
      chosen[n++] = v;
  for (const char *at = list; *at; at++)
    names += *at == ',';
  if (n != names)
    return sc_error_set(err, SC_ERR_USAGE,
                        "--variants: \"%s\" names an unknown variant, none, or one twice; known are "
                        "masked, sorted and fused-nvfp4",
                        list);
  *count = n;
  return SC_OK;
}

enum sc_status sc_forward_dense(const struct sc_point *point, struct sc_error *err)
{
  const struct sc_model *m = point->model;
  for (uint32_t layer = 0; layer < m->layers; layer++)
    for (uint32_t e = 0; e < m->shape.top_k; e++)
      SC_TRY(sc_layer_expert(point, layer, e, point->tokens, m->input, sc_model_output(m, layer), e > 0, err));
  return SC_OK;
}

enum sc_status sc_forward_sorted_syncs(const struct sc_point *point, const uint32_t *extra, struct sc_error *err)
{
  for (uint32_t layer = 0; layer < point->model->layers; layer++)
    SC_TRY(sc_layer_sorted(point, layer, extra[layer], err));
  return SC_OK;
}
