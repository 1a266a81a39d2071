/* SPDX-License-Identifier: Apache-2.0
 * NVTX ranges, through the program's own copy of NVTX, whose tables the tracer fills. */
#include <errno.h>
#include <wchar.h>

#include <nvtx3/nvToolsExt.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "harness.h"
#include "test_support.h"

static int begin(void **state) {
  (void)state;
  unsetenv("NVTX_INJECTION64_PATH"); /* it would come before the tool in nvtx_injection.c */
  return 0;
}

static int end(void **state) {
  (void)state;
  harness_end();
  return 0;
}

static int mark(void **state) {
  (void)state;
  harness_mark();
  return 0;
}

static nvtxEventAttributes_t named(const char *text) {
  return (nvtxEventAttributes_t){ .version = NVTX_VERSION,
                                  .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                  .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                  .message.ascii = text };
}

static void expect(const struct harness_records *records, size_t at, uint16_t kind, const char *name,
                   const char *domain) {
  assert_true(at < records->range_count);
  assert_int_equal(records->ranges[at].head.kind, kind);
  assert_string_equal(records->names[at], name);
  assert_string_equal(records->domains[at], domain);
}

/* First: nothing is recorded yet. */
static void test_ranges_open_when_recording_starts_are_put_first(void **state) {
  (void)state;
  nvtxDomainHandle_t domain = nvtxDomainCreateA("early domain");
  nvtxEventAttributes_t inner = named("inner");
  assert_int_equal(nvtxRangePushA("outer"), 0);
  nvtxRangePushA("closed before");
  nvtxRangePop();
  assert_int_equal(nvtxDomainRangePushEx(domain, &inner), 0);
  harness_begin(false);
  RUNTIME_VOID(cudaDeviceSynchronize_v3020, 0);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->range_count, 2);
  expect(records, 0, SC_RECORD_RANGE_PUSH, "outer", "");
  expect(records, 1, SC_RECORD_RANGE_PUSH, "inner", "early domain");
  assert_true(records->ranges[0].time_ns <= records->ranges[1].time_ns &&
              records->ranges[1].time_ns <= records->calls[0].start_ns);
  assert_int_equal(nvtxRangePop(), 0);
  assert_int_equal(nvtxDomainRangePop(domain), 0);
}

static void test_nested_ranges_return_their_depth(void **state) {
  (void)state;
  assert_int_equal(nvtxRangePushA("a"), 0);
  assert_int_equal(nvtxRangePushA("b"), 1);
  RUNTIME_VOID(cudaDeviceSynchronize_v3020, 0);
  assert_int_equal(nvtxRangePop(), 1);
  assert_int_equal(nvtxRangePop(), 0);
  assert_true(nvtxRangePop() < 0);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->range_count, 5);
  expect(records, 0, SC_RECORD_RANGE_PUSH, "a", "");
  expect(records, 1, SC_RECORD_RANGE_PUSH, "b", "");
  expect(records, 2, SC_RECORD_RANGE_POP, "", "");
  assert_int_equal(records->call_count, 1);
}

static void test_domains_and_registered_strings(void **state) {
  (void)state;
  nvtxDomainHandle_t domain = nvtxDomainCreateA("synccount"), same = nvtxDomainCreateW(L"synccount");
  nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "layer:3");
  nvtxEventAttributes_t event = { .version = NVTX_VERSION,
                                  .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                  .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                  .message.registered = registered };
  assert_ptr_equal(domain, same);
  assert_int_equal(nvtxRangePushA("default domain"), 0);
  assert_int_equal(nvtxDomainRangePushEx(domain, &event), 0); /* depths are per domain */
  assert_int_equal(nvtxDomainRangePop(domain), 0);
  assert_int_equal(nvtxRangePop(), 0);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->range_count, 4);
  expect(records, 1, SC_RECORD_RANGE_PUSH, "layer:3", "synccount");
  expect(records, 2, SC_RECORD_RANGE_POP, "", "synccount");
  expect(records, 3, SC_RECORD_RANGE_POP, "", "");
}

static void test_only_marks_meant_for_us_are_recorded(void **state) {
  (void)state;
  nvtxDomainHandle_t ours = nvtxDomainCreateA("synccount"), other = nvtxDomainCreateA("synccount.other");
  nvtxEventAttributes_t event = named("step-end:0"), plain = named("synccount.step-end");
  nvtxEventAttributes_t wide = named(NULL);
  wide.messageType = NVTX_MESSAGE_TYPE_UNICODE;
  wide.message.unicode = L"synccount.wide";
  nvtxDomainMarkEx(ours, &event);
  nvtxDomainMarkEx(other, &event);
  nvtxMarkEx(&plain);
  nvtxMarkA("synccount.step-end");
  nvtxMarkA("synccount");
  nvtxMarkA("epoch 3");
  nvtxMarkA(NULL);
  nvtxMarkEx(&wide);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->range_count, 4);
  expect(records, 0, SC_RECORD_MARK, "step-end:0", "synccount");
  expect(records, 1, SC_RECORD_MARK, "synccount.step-end", "");
  expect(records, 2, SC_RECORD_MARK, "synccount.step-end", "");
  expect(records, 3, SC_RECORD_MARK, "synccount.wide", "");
  assert_true(records->ranges[0].time_ns <= records->ranges[1].time_ns && records->ranges[0].time_ns > 0);
  assert_int_equal(records->ranges[0].handle, 0);
}

static void test_start_end_ranges_have_ids(void **state) {
  (void)state;
  nvtxEventAttributes_t event = named("second");
  nvtxRangeId_t first = nvtxRangeStartA("first"), second = nvtxRangeStartEx(&event);
  nvtxRangeEnd(first);
  nvtxRangeEnd(second);
  const struct harness_records *records = harness_read();
  assert_true(first != second);
  assert_int_equal(records->range_count, 4);
  expect(records, 0, SC_RECORD_RANGE_START, "first", "");
  expect(records, 1, SC_RECORD_RANGE_START, "second", "");
  assert_int_equal(records->ranges[2].handle, first);
  assert_int_equal(records->ranges[3].handle, second);
}

static void test_wide_names_become_utf8(void **state) {
  (void)state;
  nvtxRangePushW(L"Gr\u00f6\u00dfe \u2713 \U0001F600");
  nvtxRangePop();
  expect(harness_read(), 0, SC_RECORD_RANGE_PUSH, "Gr\u00f6\u00dfe \u2713 \U0001F600", "");
}

static void test_marks_are_ignored(void **state) {
  (void)state;
  nvtxMarkA("mark");
  assert_int_equal(harness_read()->range_count, 0);
}

static void test_ranges_without_a_name(void **state) {
  (void)state;
  nvtxEventAttributes_t event = { .version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE };
  nvtxEventAttributes_t too_small = {
    .version = NVTX_VERSION, .size = 4, .messageType = NVTX_MESSAGE_TYPE_ASCII, .message.ascii = (const char *)1
  };
  nvtxRangePushEx(&event);
  nvtxRangePushEx(&too_small); /* of a version that we do not know: its message is not looked at */
  nvtxRangePop();
  nvtxRangePop();
  const struct harness_records *records = harness_read();
  assert_int_equal(records->range_count, 4);
  assert_int_equal(records->ranges[0].name, 0);
  assert_int_equal(records->ranges[1].name, 0);
}

static void test_a_name_is_written_once(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    nvtxRangePushA("again");
    nvtxRangePop();
  }
  const struct harness_records *records = harness_read();
  assert_int_equal(records->ranges[0].name, records->ranges[2].name);
  assert_int_equal(records->ranges[0].name, records->ranges[4].name);
}

static void test_a_very_long_name_is_cut(void **state) {
  (void)state;
  char *text = malloc(60000);
  assert_non_null(text);
  memset(text, 'x', 59999);
  text[59999] = '\0';
  nvtxRangePushA(text);
  nvtxRangePop();
  free(text);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->range_count, 2);
  assert_int_equal(strspn(records->names[0], "x"), 63); /* as much as the harness keeps */
}

/* Names made by many threads at once: each push has its own thread's name, and every name its text. */
static void *push_many(void *argument) {
  char name[32];
  for (int i = 0; i < 500; i++) {
    (void)snprintf(name, sizeof(name), "n%d", i);
    nvtxRangePushA(name);
    nvtxRangePop();
  }
  return argument;
}

static void test_threads_share_names(void **state) {
  (void)state;
  pthread_t threads[8];
  for (size_t i = 0; i < 8; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, push_many, NULL), 0);
  for (size_t i = 0; i < 8; i++)
    assert_int_equal(pthread_join(threads[i], NULL), 0);
  const struct harness_records *records = harness_read();
  assert_int_equal(records->range_count, 256); /* as many as the harness keeps */
  for (size_t i = 0; i < records->range_count; i++)
    if (records->ranges[i].head.kind == SC_RECORD_RANGE_PUSH)
      assert_int_equal(records->names[i][0], 'n');
}

/* ---- signals ---- */
static volatile sig_atomic_t handled;

static void push_in_handler(int number) {
  char name[32];
  int saved = errno;
  (void)number;
  (void)snprintf(name, sizeof(name), "signal %d", (int)++handled);
  nvtxRangePushA(name);
  nvtxRangePop();
  errno = saved;
}

/* A handler that pushes a name not seen yet must not find its own thread holding the lock. Without the signal mask this hung
 * within a second; the test's time limit ends it then. */
static void test_a_signal_handler_may_push_new_names(void **state) {
  (void)state;
  const struct sigaction action = { .sa_handler = push_in_handler };
  const struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
  char name[32];
  assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
  assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
  for (int i = 0; i < 1000000 && handled < 200; i++) {
    (void)snprintf(name, sizeof(name), "program %d", i % 20000);
    nvtxRangePushA(name);
    nvtxRangePop();
  }
  assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
  assert_true(handled > 0);
  signal(SIGALRM, SIG_DFL);
}

int main(void) {
#define T(name) cmocka_unit_test_setup(name, mark)
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ranges_open_when_recording_starts_are_put_first),
    T(test_nested_ranges_return_their_depth),
    T(test_domains_and_registered_strings),
    T(test_only_marks_meant_for_us_are_recorded),
    T(test_start_end_ranges_have_ids),
    T(test_wide_names_become_utf8),
    T(test_marks_are_ignored),
    T(test_ranges_without_a_name),
    T(test_a_name_is_written_once),
    T(test_a_very_long_name_is_cut),
    T(test_threads_share_names),
    T(test_a_signal_handler_may_push_new_names),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
