/* SPDX-License-Identifier: Apache-2.0
 * The reference operations as the simulated device's kernels: what cudaLaunchKernel was given, unpacked. The grid is
 * ignored: each operation covers all of its n elements, as the kernel's grid-stride loop does. A test compares
 * arg_bytes with the parameters in the compiled kernels. */
#include "reference/adapters.h"
#include "reference/fused.h"
#include "reference/reference.h"
#include "reference/simcuda_kernels.h"

#undef KERNEL
#define KERNEL(name) static void name(KERNEL_ARGUMENTS)

KERNEL(fill_f32)
{
  UNUSED_SHAPE;
  sc_ref_fill(SC_F32, POINTER(void, 0), VALUE(uint64_t, 1), VALUE(uint64_t, 2), VALUE(uint64_t, 3), VALUE(float, 4));
}

KERNEL(fill_bf16)
{
  UNUSED_SHAPE;
  sc_ref_fill(SC_BF16, POINTER(void, 0), VALUE(uint64_t, 1), VALUE(uint64_t, 2), VALUE(uint64_t, 3), VALUE(float, 4));
}

KERNEL(softmax_f32)
{
  UNUSED_SHAPE;
  sc_ref_softmax(SC_F32, POINTER(const void, 0), POINTER(float, 1), VALUE(uint64_t, 2), VALUE(uint32_t, 3));
}

KERNEL(softmax_bf16)
{
  UNUSED_SHAPE;
  sc_ref_softmax(SC_BF16, POINTER(const void, 0), POINTER(float, 1), VALUE(uint64_t, 2), VALUE(uint32_t, 3));
}

KERNEL(topk)
{
  UNUSED_SHAPE;
  sc_ref_topk(POINTER(const float, 0), POINTER(int32_t, 1), POINTER(float, 2), VALUE(uint64_t, 3), VALUE(uint32_t, 4),
              VALUE(uint32_t, 5));
}

KERNEL(route_override)
{
  UNUSED_SHAPE;
  sc_ref_route_override(POINTER(const float, 0), POINTER(int32_t, 1), POINTER(float, 2), VALUE(uint64_t, 3),
                        VALUE(uint32_t, 4), VALUE(uint32_t, 5), (enum sc_route_mode)VALUE(uint32_t, 6),
                        VALUE(uint64_t, 7), VALUE(uint64_t, 8));
}

KERNEL(renormalize)
{
  UNUSED_SHAPE;
  sc_ref_renormalize(POINTER(float, 0), VALUE(uint64_t, 1), VALUE(uint32_t, 2));
}

static void route(enum sc_dtype dtype, void *const *args)
{
  sc_ref_route(dtype, POINTER(const void, 0), POINTER(int32_t, 1), POINTER(float, 2), VALUE(uint64_t, 3),
               VALUE(uint32_t, 4), VALUE(uint32_t, 5), (enum sc_route_mode)VALUE(uint32_t, 6), VALUE(uint32_t, 7),
               VALUE(uint64_t, 8), VALUE(uint64_t, 9));
}

KERNEL(route_f32)
{
  UNUSED_SHAPE;
  route(SC_F32, args);
}

KERNEL(route_bf16)
{
  UNUSED_SHAPE;
  route(SC_BF16, args);
}

KERNEL(mask_equal)
{
  UNUSED_SHAPE;
  sc_ref_mask_equal(POINTER(const int32_t, 0), POINTER(uint8_t, 1), VALUE(uint64_t, 2), VALUE(int32_t, 3));
}

KERNEL(mask_any)
{
  UNUSED_SHAPE;
  *POINTER(uint8_t, 1) = sc_ref_mask_any(POINTER(const uint8_t, 0), VALUE(uint64_t, 2));
}

KERNEL(mask_rows)
{
  UNUSED_SHAPE;
  sc_ref_mask_rows(POINTER(const uint8_t, 0), POINTER(uint8_t, 1), VALUE(uint64_t, 2), VALUE(uint32_t, 3));
}

KERNEL(mask_count)
{
  UNUSED_SHAPE;
  *POINTER(int32_t, 1) = sc_ref_mask_count(POINTER(const uint8_t, 0), VALUE(uint64_t, 2));
}

KERNEL(mask_compact)
{
  UNUSED_SHAPE;
  sc_ref_mask_compact(POINTER(const uint8_t, 0), POINTER(int32_t, 1), VALUE(uint64_t, 2));
}

KERNEL(gather_weights)
{
  UNUSED_SHAPE;
  sc_ref_gather_weights(POINTER(const float, 0), POINTER(const int32_t, 1), POINTER(float, 2), VALUE(uint64_t, 3));
}

static void gather_rows(enum sc_dtype dtype, void *const *args)
{
  sc_ref_gather_rows(dtype, POINTER(const void, 0), POINTER(const int32_t, 1), POINTER(void, 2), VALUE(uint64_t, 3),
                     VALUE(uint32_t, 4), VALUE(uint32_t, 5));
}

KERNEL(gather_rows_f32)
{
  UNUSED_SHAPE;
  gather_rows(SC_F32, args);
}

KERNEL(gather_rows_bf16)
{
  UNUSED_SHAPE;
  gather_rows(SC_BF16, args);
}

static void activate(enum sc_dtype dtype, void *const *args)
{
  const struct sc_activation act = {(enum sc_act_kind)VALUE(uint32_t, 4), VALUE(float, 5), VALUE(float, 6),
                                    VALUE(float, 7)};
  sc_ref_activate(dtype, POINTER(const void, 0), POINTER(const void, 1), POINTER(void, 2), VALUE(uint64_t, 3), &act);
}

KERNEL(activate_f32)
{
  UNUSED_SHAPE;
  activate(SC_F32, args);
}

KERNEL(activate_bf16)
{
  UNUSED_SHAPE;
  activate(SC_BF16, args);
}

static void weighted_add(enum sc_dtype dtype, void *const *args)
{
  sc_ref_weighted_add(dtype, POINTER(void, 0), POINTER(const void, 1), POINTER(const int32_t, 2),
                      POINTER(const float, 3), VALUE(uint64_t, 4), VALUE(uint32_t, 5));
}

KERNEL(weighted_add_f32)
{
  UNUSED_SHAPE;
  weighted_add(SC_F32, args);
}

KERNEL(weighted_add_bf16)
{
  UNUSED_SHAPE;
  weighted_add(SC_BF16, args);
}

KERNEL(sort_histogram)
{
  UNUSED_SHAPE;
  sc_ref_sort_histogram(POINTER(const int32_t, 0), POINTER(uint32_t, 1), VALUE(uint64_t, 2), VALUE(uint32_t, 3));
}

KERNEL(sort_offsets)
{
  UNUSED_SHAPE;
  sc_ref_sort_offsets(POINTER(const uint32_t, 0), POINTER(uint32_t, 1), VALUE(uint32_t, 2), VALUE(uint32_t, 3));
}

KERNEL(sort_scatter)
{
  UNUSED_SHAPE;
  sc_ref_sort_scatter(POINTER(const int32_t, 0), POINTER(const uint32_t, 1), POINTER(int32_t, 2), POINTER(int32_t, 3),
                      POINTER(int32_t, 4), VALUE(uint64_t, 5), VALUE(uint32_t, 6));
}

KERNEL(search_bounds)
{
  UNUSED_SHAPE;
  sc_ref_search_bounds(POINTER(const int32_t, 0), POINTER(int64_t, 1), VALUE(uint64_t, 2), VALUE(uint32_t, 3));
}

static void combine(enum sc_dtype dtype, void *const *args)
{
  sc_ref_combine(dtype, POINTER(const void, 0), POINTER(const int32_t, 1), POINTER(const float, 2), POINTER(void, 3),
                 VALUE(uint64_t, 4), VALUE(uint32_t, 5), VALUE(uint32_t, 6));
}

KERNEL(combine_f32)
{
  UNUSED_SHAPE;
  combine(SC_F32, args);
}

KERNEL(combine_bf16)
{
  UNUSED_SHAPE;
  combine(SC_BF16, args);
}

KERNEL(tiny)
{
  UNUSED_SHAPE;
  (*POINTER(uint8_t, 0))++;
}

KERNEL(write_flag)
{
  UNUSED_SHAPE;
  __atomic_store_n(POINTER(uint32_t, 0), VALUE(uint32_t, 1), __ATOMIC_RELEASE);
}

KERNEL(compare)
{
  UNUSED_SHAPE;
  *POINTER(unsigned long long, 2) +=
      sc_ref_compare(POINTER(const uint16_t, 0), POINTER(const uint16_t, 1), VALUE(uint64_t, 3));
}

__attribute__((visibility("default"))) const struct simcuda_kernel simcuda_kernels[] = {
    {"sc_fill_f32", fill_f32, 5, {8, 8, 8, 8, 4}},
    {"sc_fill_bf16", fill_bf16, 5, {8, 8, 8, 8, 4}},
    {"sc_softmax_f32", softmax_f32, 4, {8, 8, 8, 4}},
    {"sc_softmax_bf16", softmax_bf16, 4, {8, 8, 8, 4}},
    {"sc_topk", topk, 6, {8, 8, 8, 8, 4, 4}},
    {"sc_route_override", route_override, 9, {8, 8, 8, 8, 4, 4, 4, 8, 8}},
    {"sc_renormalize", renormalize, 3, {8, 8, 4}},
    {"sc_route_f32", route_f32, 10, {8, 8, 8, 8, 4, 4, 4, 4, 8, 8}},
    {"sc_route_bf16", route_bf16, 10, {8, 8, 8, 8, 4, 4, 4, 4, 8, 8}},
    {"sc_mask_equal", mask_equal, 4, {8, 8, 8, 4}},
    {"sc_mask_any", mask_any, 3, {8, 8, 8}},
    {"sc_mask_rows", mask_rows, 4, {8, 8, 8, 4}},
    {"sc_mask_count", mask_count, 3, {8, 8, 8}},
    {"sc_mask_compact", mask_compact, 3, {8, 8, 8}},
    {"sc_gather_weights", gather_weights, 4, {8, 8, 8, 8}},
    {"sc_gather_rows_f32", gather_rows_f32, 6, {8, 8, 8, 8, 4, 4}},
    {"sc_gather_rows_bf16", gather_rows_bf16, 6, {8, 8, 8, 8, 4, 4}},
    {"sc_activate_f32", activate_f32, 8, {8, 8, 8, 8, 4, 4, 4, 4}},
    {"sc_activate_bf16", activate_bf16, 8, {8, 8, 8, 8, 4, 4, 4, 4}},
    {"sc_weighted_add_f32", weighted_add_f32, 6, {8, 8, 8, 8, 8, 4}},
    {"sc_weighted_add_bf16", weighted_add_bf16, 6, {8, 8, 8, 8, 8, 4}},
    {"sc_sort_histogram", sort_histogram, 4, {8, 8, 8, 4}},
    {"sc_sort_offsets", sort_offsets, 4, {8, 8, 4, 4}},
    {"sc_sort_scatter", sort_scatter, 7, {8, 8, 8, 8, 8, 8, 4}},
    {"sc_search_bounds", search_bounds, 4, {8, 8, 8, 4}},
    {"sc_combine_f32", combine_f32, 7, {8, 8, 8, 8, 8, 4, 4}},
    {"sc_combine_bf16", combine_bf16, 7, {8, 8, 8, 8, 8, 4, 4}},
    {"sc_tiny", tiny, 1, {8}},
    {"sc_write_flag", write_flag, 2, {8, 4}},
    {"sc_compare", compare, 4, {8, 8, 8, 8}},
#define FUSED_ROW(function, name, count, ...) {name, function, count, __VA_ARGS__},
    SC_FUSED_ADAPTER_MAP(FUSED_ROW)
#undef FUSED_ROW
        {NULL, NULL, 0, {0}},
};
