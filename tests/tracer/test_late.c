/* SPDX-License-Identifier: Apache-2.0
 * Recording that begins in the middle: what was allocated before is of unknown kind, and says so instead of
 * guessing. */
#include "harness.h"

#include <stdlib.h>

#include "test_support.h"

#define STREAM ((cudaStream_t)(uintptr_t)0x5000)

static char before[64], after[64];
static char *const device = (char *)(uintptr_t)0x7f0000000000;

static int begin(void **state) {
  (void)state;
  harness_begin(true);
  return 0;
}

static int end(void **state) {
  (void)state;
  harness_end();
  return 0;
}

static struct sc_record_call copy(void *dst, const void *src, enum cudaMemcpyKind kind) {
  harness_mark();
  RUNTIME(cudaMemcpyAsync_v3020, 0, .dst = dst, .src = src, .count = 16, .kind = kind, .stream = STREAM);
  return harness_one();
}

static void test_memory_from_before_is_unknown(void **state) {
  (void)state;
  struct sc_record_call call = copy(before, device, cudaMemcpyDeviceToHost);
  assert_int_equal(call.direction, SC_DIRECTION_D2H);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_UNKNOWN);
  call = copy(before, device, cudaMemcpyDefault);
  assert_int_equal(call.direction, SC_DIRECTION_NONE);
  assert_int_equal(SC_CALL_FLAGS(&call), SC_CALL_UNKNOWN_DIRECTION);
  harness_mark();
  RUNTIME(cudaMemset_v3020, 0, .devPtr = device, .value = 0, .count = 8);
  call = harness_one();
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_UNKNOWN);
}

static void test_memory_allocated_since_is_known(void **state) {
  (void)state;
  void *result = after;
  RUNTIME(cudaHostAlloc_v3020, 0, .pHost = &result, .size = sizeof(after));
  struct sc_record_call call = copy(after, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PINNED);
}

/* CUPTI's word that cuInit has only now finished: nothing can have been allocated before. */
static void test_initialisation_that_finishes_later_means_not_late(void **state) {
  (void)state;
  harness_resource(CUPTI_CBID_RESOURCE_CU_INIT_FINISHED);
  struct sc_record_call call = copy(before, device, cudaMemcpyDeviceToHost);
  assert_int_equal(SC_CALL_DST(&call), SC_MEMORY_PAGEABLE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_memory_from_before_is_unknown),
    cmocka_unit_test(test_memory_allocated_since_is_known),
    cmocka_unit_test(test_initialisation_that_finishes_later_means_not_late),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
