/* SPDX-License-Identifier: Apache-2.0
 * Every allocation of an import fails once, for good or for this once: it says that memory is out, or does without, and
 * leaks and crashes never (ASan judges). */
#include "base/failing_alloc.h"
#include "import/kineto/kineto_trace.h"

#include <string.h>

/* One of everything that the importer looks at. */
static void fill(struct trace *t)
{
  t->before = "\"distributedInfo\": {\"rank\": 2}, \"baseTimeNanoseconds\": 5,";
  for (int i = 0; i < 2; ++i) {
    t->now += 10;
    double from = t->now - 1;
    call_put(t, "cudaLaunchKernel");
    device_put(t, "kernel", "k", 7, 0);
    call_put(t, "cudaMemcpyAsync");
    device_put(t, "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 7, 4);
    call_put(t, "cudaStreamSynchronize");
    host_put(t, "cpu_op", "aten::item", from + 0.5);
    host_put(t, "python_function", "a.py(3): f", from + 0.4);
    host_put(t, "python_function", "nn.Module: Linear_0", from + 0.3);
    host_put(t, "user_annotation", "ProfilerStep#3", from);
  }
  call_put(t, "cudaFree");
  call_put(t, "cudaEventQuery");
  call_put(t, "hipFree");
  event_put(t, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":7,\"args\":{\"name\":\"main\"}}");
  event_put(t, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7,\"tid\":0,\"args\":{\"name\":\"python\"}}");
  event_put(t, "{\"ph\":\"B\",\"cat\":\"user_annotation\",\"name\":\"open\",\"pid\":7,\"tid\":8,\"ts\":1}");
  event_put(t, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\"}"); /* damage */
}

static long run_out(const char *text, size_t size, bool once)
{
  long failures = 0;
  for (long allocations = 0;; ++allocations) {
    struct text_source source = {.bytes = text, .size = size, .step = 4096};
    struct sc_findings *findings = sc_findings_new();
    struct sc_error error = {0};
    assert_non_null(findings);
    failing_alloc_begin(allocations, once);
    enum sc_status status = sc_kineto_read(text_read, &source, "trace.json", NULL, findings, &error);
    bool failed = failing_alloc_end();
    if (status != SC_OK) {
      assert_int_equal(status, SC_ERR_NOMEM);
      assert_non_null(strstr(error.message, "out of memory"));
      ++failures;
    } else {
      assert_int_equal(findings->process_count, 1);
      assert_int_equal(findings->processes[0].counts.syncs, 2);
    }
    sc_findings_free(findings);
    if (!failed)
      return failures;
    assert_true(allocations < 100000);
  }
}

static void running_out_of_memory_is_told_wherever_it_happens(void **state)
{
  struct trace t;
  struct sc_buf text = {0};
  (void)state;
  trace_open(&t);
  fill(&t);
  trace_read(&t);
  expect_counts(&t, 2, 0, 0, 2, 1);
  assert_int_equal(t.findings->lost_records, 1);
  sc_buf_printf(&text, "{%s\"traceEvents\": [%s]}", t.before, t.events.data);
  assert_false(text.failed);
  assert_true(run_out(text.data, text.len, false) > 50);
  assert_true(run_out(text.data, text.len, true) > 50);
  sc_buf_free(&text);
  trace_close(&t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(running_out_of_memory_is_told_wherever_it_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
