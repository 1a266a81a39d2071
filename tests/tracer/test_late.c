/* SPDX-License-Identifier: Apache-2.0
 * Recording that begins in the middle: what was allocated before is of unknown kind, and says so instead of
 * guessing. */
#include "harness.h"

#include <pthread.h>
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

/* ---- calls that are under way when recording begins --------------------------------------------------- */
#define SYNCHRONIZE(id) \
  { RT_ID(cudaStreamSynchronize_v3020), PARAMS(cudaStreamSynchronize_v3020, .stream = STREAM), id, NULL }
#define DRIVER_SYNCHRONIZE(id) { DR_ID(cuStreamSynchronize), PARAMS(cuStreamSynchronize, .hStream = STREAM), id, NULL }

static void both(const struct harness_call *call) {
  harness_enter(call);
  harness_exit(call, 0);
}

static void test_call_entered_before_is_not_counted_by_its_driver_calls(void **state) {
  const struct harness_call earlier = SYNCHRONIZE(100), inside = DRIVER_SYNCHRONIZE(100), next = SYNCHRONIZE(101);
  (void)state;
  harness_pause();
  harness_enter(&earlier);
  harness_mark();
  harness_go_on();
  both(&inside);
  both(&inside);
  harness_exit(&earlier, 0);
  assert_int_equal(harness_read()->call_count, 0);
  both(&next);
  struct sc_record_call call = harness_one();
  assert_string_equal(harness_api(&call), "cudaStreamSynchronize_v3020");
}

static void *one_call(void *call) {
  both(call);
  return NULL;
}

/* The entry came before there were callbacks; that others have made later calls tells. */
static void test_call_entered_unseen_is_known_by_its_number(void **state) {
  struct harness_call later = SYNCHRONIZE(0xfffffffe), inside = DRIVER_SYNCHRONIZE(0xfffffff0), next = SYNCHRONIZE(3);
  pthread_t other;
  (void)state;
  harness_pause();
  assert_int_equal(pthread_create(&other, NULL, one_call, &later), 0);
  assert_int_equal(pthread_join(other, NULL), 0);
  harness_mark();
  harness_go_on();
  both(&inside);
  assert_int_equal(harness_read()->call_count, 0);
  both(&next); /* numbers begin again */
  assert_int_equal(harness_one().status, 0);
}

static void test_first_calls_of_a_session_are_counted(void **state) {
  const struct harness_call earlier = SYNCHRONIZE(200);
  struct harness_call first = DRIVER_SYNCHRONIZE(201), unnumbered = DRIVER_SYNCHRONIZE(0),
                      late_entry = SYNCHRONIZE(199), old = DRIVER_SYNCHRONIZE(198);
  pthread_t other;
  (void)state;
  harness_pause();
  both(&earlier);
  harness_mark();
  harness_go_on();
  both(&first);
  assert_int_equal(harness_read()->call_count, 1);
  both(&old); /* whatever its number, once the thread has been seen outside of a call */
  assert_int_equal(harness_read()->call_count, 2);
  assert_int_equal(pthread_create(&other, NULL, one_call, &unnumbered), 0);
  assert_int_equal(pthread_join(other, NULL), 0);
  assert_int_equal(harness_read()->call_count, 3);
  assert_int_equal(pthread_create(&other, NULL, one_call, &late_entry), 0);
  assert_int_equal(pthread_join(other, NULL), 0);
  assert_int_equal(harness_read()->call_count, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_memory_from_before_is_unknown),
    cmocka_unit_test(test_memory_allocated_since_is_known),
    cmocka_unit_test(test_initialisation_that_finishes_later_means_not_late),
    cmocka_unit_test(test_call_entered_before_is_not_counted_by_its_driver_calls),
    cmocka_unit_test(test_call_entered_unseen_is_known_by_its_number),
    cmocka_unit_test(test_first_calls_of_a_session_are_counted),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
