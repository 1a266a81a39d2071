/* SPDX-License-Identifier: Apache-2.0
 * PyTorch profiler traces: the rules of counting, the dialects, and what is said about what is missing. */
#include "import/kineto/kineto_trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define D2H_PAGEABLE "Memcpy DtoH (Device -> Pageable)"
#define D2H_PINNED "Memcpy DtoH (Device -> Pinned)"
#define H2D_PAGEABLE "Memcpy HtoD (Pageable -> Device)"

static void copy_put(struct trace *t, const char *kind, int stream)
{
  call_put(t, "cudaMemcpyAsync");
  device_put(t, "gpu_memcpy", kind, stream, 4);
}

static void stream_sync_put(struct trace *t, int stream)
{
  call_put(t, "cudaStreamSynchronize");
  if (stream)
    sync_put(t, "Stream Sync", stream);
}

/* ---- the same rules ------------------------------------------------------------------------------ */

static void each_sequence_has_its_count(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t); /* pinned copy, nothing waits */
  copy_put(&t, D2H_PINNED, 7);
  trace_read(&t);
  expect_counts(&t, 0, 0, 0, 0, 0);
  trace_close(&t);

  trace_open(&t); /* .item() of today's PyTorch */
  copy_put(&t, D2H_PINNED, 7);
  stream_sync_put(&t, 7);
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.process->counts.read_backs, 1);
  trace_close(&t);

  trace_open(&t); /* .tolist() */
  copy_put(&t, D2H_PAGEABLE, 7);
  stream_sync_put(&t, 7);
  trace_read(&t);
  expect_counts(&t, 1, 0, 0, 1, 0);
  assert_int_equal(t.process->counts.wait_ns, 10000); /* of both calls */
  trace_close(&t);

  trace_open(&t); /* another stream's synchronise is its own sync */
  copy_put(&t, D2H_PAGEABLE, 7);
  stream_sync_put(&t, 20);
  trace_read(&t);
  expect_counts(&t, 2, 1, 0, 1, 0);
  trace_close(&t);

  trace_open(&t); /* a launch in between */
  copy_put(&t, D2H_PAGEABLE, 7);
  call_put(&t, "cudaLaunchKernel");
  stream_sync_put(&t, 7);
  trace_read(&t);
  expect_counts(&t, 2, 1, 0, 1, 0);
  trace_close(&t);

  trace_open(&t); /* .to(device) */
  copy_put(&t, H2D_PAGEABLE, 7);
  stream_sync_put(&t, 7);
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.process->counts.blocking_uploads, 1);
  trace_close(&t);

  trace_open(&t); /* cudaMemcpy to the host and its synchronise; device to device */
  call_put(&t, "cudaMemcpy");
  device_put(&t, "gpu_memcpy", D2H_PINNED, 7, 64);
  stream_sync_put(&t, 7);
  call_put(&t, "cudaMemcpy");
  device_put(&t, "gpu_memcpy", "Memcpy DtoD (Device -> Device)", 7, 64);
  trace_read(&t);
  expect_counts(&t, 1, 0, 1, 0, 0);
  trace_close(&t);

  trace_open(&t); /* device and event */
  call_put(&t, "cudaDeviceSynchronize");
  sync_put(&t, "Context Sync", -1);
  call_put(&t, "cudaEventSynchronize");
  sync_put(&t, "Event Sync", -1);
  trace_read(&t);
  expect_counts(&t, 2, 2, 0, 0, 0);
  trace_close(&t);
}

static void a_stream_that_waits_for_an_event_is_no_wait(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "cudaLaunchKernel");
  call_put(&t, "cudaStreamWaitEvent");
  sync_put(&t, "Stream Wait Event", 7);
  trace_read(&t);
  expect_counts(&t, 0, 0, 0, 0, 0);
  assert_false(warned(&t, "have no call in the trace"));
  trace_close(&t);
}

static void a_driver_call_belongs_to_the_runtime_call_around_it(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "cudaStreamSynchronize");
  sync_put(&t, "Stream Sync", 7);
  event_put(&t,
            "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":\"cuStreamSynchronize\",\"pid\":7,\"tid\":7,\"ts\":1001,"
            "\"dur\":2,\"args\":{\"correlation\":1}}");
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":\"cuLaunchKernel\",\"pid\":7,\"tid\":7,\"ts\":1020,"
                "\"dur\":2,\"args\":{\"correlation\":9}}"); /* Triton's own */
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.process->counts.launches, 1);
  assert_int_equal(t.process->counts.api_calls, 2);
  trace_close(&t);
}

/* Whole microseconds: two calls begin in the same one, and the first of them lasts none. */
static void calls_of_one_microsecond_keep_their_order(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaStreamSynchronize\",\"pid\":7,\"tid\":7,"
                "\"ts\":1000,\"dur\":3,\"args\":{\"correlation\":2}}");
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAsync\",\"pid\":7,\"tid\":7,"
                "\"ts\":1000,\"dur\":0,\"args\":{\"correlation\":1}}");
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"" D2H_PAGEABLE "\",\"pid\":0,\"tid\":7,\"ts\":1000,"
                "\"dur\":1,\"args\":{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":1,\"bytes\":4}}");
  t.corr = 2;
  sync_put(&t, "Stream Sync", 7);
  trace_read(&t);
  expect_counts(&t, 1, 0, 0, 1, 0);
  trace_close(&t);
}

static void events_may_come_in_any_order(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  t.now = 5000;
  t.corr = 10;
  stream_sync_put(&t, 7);
  host_put(&t, "cpu_op", "aten::item", 900);
  t.now = 3000;
  t.corr = 8;
  copy_put(&t, D2H_PAGEABLE, 7);
  t.now = 1000;
  t.corr = 6;
  call_put(&t, "cudaLaunchKernel");
  trace_read(&t);
  expect_counts(&t, 1, 0, 0, 1, 0);
  assert_int_equal(t.process->counts.launches, 1);
  trace_close(&t);
}

/* ---- what the trace lacks ------------------------------------------------------------------------- */

static void without_sync_events_the_operator_tells_the_stream(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  copy_put(&t, D2H_PAGEABLE, 7);
  stream_sync_put(&t, 0);
  host_put(&t, "cpu_op", "aten::_local_scalar_dense", 995);
  trace_read(&t);
  expect_counts(&t, 1, 0, 0, 1, 0);
  assert_true(warned(&t, "does not say which stream 1 stream synchronises were for. 1 were taken"));
  assert_true(warned(&t, "enable_cuda_sync_events=True"));
  trace_close(&t);
}

static void without_sync_events_and_operator_it_stays_uncertain(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  copy_put(&t, D2H_PAGEABLE, 7);
  host_put(&t, "cpu_op", "aten::copy_", 995); /* the synchronise is not in it */
  stream_sync_put(&t, 0);
  trace_read(&t);
  expect_counts(&t, 2, 1, 0, 1, 1);
  assert_true(warned(&t, "0 were taken"));
  trace_close(&t);

  trace_open(&t); /* two times the same operator are not one */
  copy_put(&t, D2H_PAGEABLE, 7);
  host_put(&t, "cpu_op", "aten::copy_", 995);
  t.now += 5;
  double from = t.now - 1;
  stream_sync_put(&t, 0);
  host_put(&t, "cpu_op", "aten::copy_", from);
  trace_read(&t);
  expect_counts(&t, 2, 1, 0, 1, 1);
  trace_close(&t);
}

static void copies_without_device_work_are_uncertain(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "cudaMemcpyAsync");
  call_put(&t, "cudaDeviceSynchronize");
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 1);
  assert_true(warned(&t, "no copies of the device (gpu_memcpy)"));
  trace_close(&t);
}

static void memory_of_no_known_kind_is_uncertain(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  copy_put(&t, "Memcpy DtoH (Device -> Unknown)", 7);
  trace_read(&t);
  expect_counts(&t, 0, 0, 0, 0, 1);
  trace_close(&t);
}

static void frees_and_queries_are_not_guessed(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "cudaFree"); /* of NULL, or not */
  call_put(&t, "cudaEventQuery");
  call_put(&t, "cudaEventQuery");
  trace_read(&t);
  expect_counts(&t, 0, 0, 0, 0, 1);
  assert_int_equal(t.process->counts.poll_waits, 0);
  assert_true(warned(&t, "what 1 calls of cudaFree and the like freed"));
  assert_true(warned(&t, "what 2 queries of streams and events answered"));
  trace_close(&t);
}

static void synchronises_without_a_call_are_told(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "cudaLaunchKernel");
  t.corr = 99;
  sync_put(&t, "Stream Sync", 7);
  trace_read(&t);
  expect_counts(&t, 0, 0, 0, 0, 0);
  assert_true(warned(&t, "1 synchronises have no call in the trace"));
  trace_close(&t);
}

static void no_cuda_call_is_not_zero_syncs(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  t.before = "\"distributedInfo\": {\"rank\": 5},";
  host_put(&t, "cpu_op", "aten::add", 900);
  trace_read(&t);
  assert_true(t.process->unmeasured);
  assert_int_equal(t.process->pid, 7);
  assert_string_equal(t.process->rank, "5");
  assert_true(warned(&t, "1 events, and no CUDA call among them"));
  trace_close(&t);

  trace_open(&t); /* not even an event */
  trace_read(&t);
  assert_true(t.process->unmeasured);
  trace_close(&t);
}

static void calls_of_other_vendors_are_named(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "hipMemcpyWithStream");
  call_put(&t, "hipDeviceSynchronize");
  trace_read(&t);
  assert_true(t.process->unmeasured);
  assert_true(warned(&t, "2 calls are not CUDA's and are not in the count: they are of HIP (AMD)"));
  trace_close(&t);

  trace_open(&t);
  call_put(&t, "cudaDeviceSynchronize");
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"xpu_runtime\",\"name\":\"urEnqueueKernelLaunch\",\"pid\":7,\"tid\":7,\"ts\":1,"
                "\"dur\":1,\"args\":{}}");
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_true(warned(&t, "1 calls are not CUDA's"));
  trace_close(&t);
}

/* ---- dialects ------------------------------------------------------------------------------------- */

static void the_dialect_of_2021_is_read(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"cudaMemcpyAsync\",\"pid\":\"24572\",\"tid\":\"24572\","
                "\"ts\":\"1622222222222222\",\"dur\":\"21\",\"args\":{\"cbid\":41,\"correlation\":\"5\"}}");
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"Memcpy\",\"name\":\"" D2H_PAGEABLE "\",\"pid\":0,\"tid\":\"stream 7\","
                "\"ts\":1622222222222230,\"dur\":2,\"args\":{\"device\":\"0\",\"context\":1,\"stream\":\"7\","
                "\"correlation\":5,\"external id\":5,\"bytes\":\"4\"}}");
  event_put(&t,
            "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"cudaStreamSynchronize\",\"pid\":\"24572\",\"tid\":\"24572\","
            "\"ts\":1622222222222250,\"dur\":9,\"args\":{\"cbid\":131,\"correlation\":6}}");
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"aten::_local_scalar_dense\",\"pid\":24572,\"tid\":24572,"
                "\"ts\":1622222222222220,\"dur\":60,\"args\":{\"Input dims\":[[]]}}");
  trace_read(&t);
  expect_counts(&t, 1, 0, 0, 1, 0);
  assert_int_equal(t.process->pid, 24572);
  assert_int_equal(t.process->site_count, 1);
  assert_string_equal(t.process->sites[0].pattern, "scalar read-back");
  trace_close(&t);
}

static void the_time_of_day_is_known_of_both_clocks(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t); /* from a time of day on */
  t.after = ", \"baseTimeNanoseconds\": 1735632360000000000";
  call_put(&t, "cudaDeviceSynchronize");
  trace_read(&t);
  assert_true(t.process->clock_offset_ns == 1735632360000000000);
  trace_close(&t);

  trace_open(&t); /* times of day: findings count from the first */
  t.now = 1695835542514261;
  call_put(&t, "cudaDeviceSynchronize");
  trace_read(&t);
  assert_true(t.process->clock_offset_ns / 1000000000 == 1695835542);
  assert_int_equal(t.process->counts.wait_ns, 5000);
  trace_close(&t);

  trace_open(&t); /* nobody knows */
  call_put(&t, "cudaDeviceSynchronize");
  trace_read(&t);
  assert_true(t.process->clock_offset_ns == 0);
  trace_close(&t);
}

static void begin_and_end_events_are_paired(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  event_put(&t, "{\"ph\":\"B\",\"cat\":\"user_annotation\",\"name\":\"outer\",\"pid\":7,\"tid\":7,\"ts\":10}");
  event_put(&t, "{\"ph\":\"B\",\"cat\":\"Trace\",\"name\":\"of no interest\",\"pid\":7,\"tid\":7,\"ts\":10}");
  event_put(&t,
            "{\"ph\":\"B\",\"cat\":\"cuda_runtime\",\"name\":\"cudaGetDeviceCount\",\"pid\":7,\"tid\":7,\"ts\":11}");
  event_put(&t, "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":12}");
  event_put(&t, "{\"ph\":\"B\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,"
                "\"ts\":20,\"args\":{\"correlation\":3}}");
  event_put(&t, "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":32.5}");
  event_put(&t, "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":39}"); /* of no interest */
  event_put(&t, "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":40}");
  event_put(&t, "{\"ph\":\"B\",\"cat\":\"user_annotation\",\"name\":\"open\",\"pid\":7,\"tid\":7,\"ts\":50}");
  event_put(&t,
            "{\"ph\":\"B\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,\"ts\":60}");
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.process->counts.wait_ns, 12500);
  assert_int_equal(t.process->range_count, 2);
  assert_string_equal(t.process->ranges[0].path, "outer");
  assert_int_equal(t.process->ranges[0].total.syncs, 1);
  assert_int_equal(t.process->ranges[1].unfinished, 1);
  assert_true(warned(&t, "1 calls are begun and never ended"));
  assert_int_equal(t.process->lost_records, 1);
  trace_close(&t);
}

static void an_array_alone_is_a_trace(void **state)
{
  struct trace t;
  struct sc_error err;
  enum sc_status status;
  static const char text[] = "[{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,"
                             "\"tid\":7,\"ts\":1,\"dur\":1}]";
  (void)state;
  trace_open(&t);
  text_try(text, strlen(text), 3, &t, &status, &err);
  assert_int_equal(status, SC_OK);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.findings->lost_chunks, 0);
  text_try(text, strlen(text) - 1, 3, &t, &status, &err); /* allowed by the format, and yet: was that all? */
  assert_int_equal(status, SC_OK);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.findings->lost_chunks, 1);
  assert_true(warned(&t, "has no closing bracket"));
  text_try(text, strlen(text) - 2, 3, &t, &status, &err); /* inside an event */
  assert_int_equal(status, SC_ERR_FORMAT);
  trace_close(&t);
}

static void members_may_stand_before_and_after_the_events(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  t.before = "\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"]}\\\"\"}], \"INFO\": [\"x\"],";
  t.after = ", \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": \"12\", \"pg\": [{\"rank\": 3}]}, "
            "\"baseTimeNanoseconds\": 1735632360000000000, \"displayTimeUnit\": \"ms\"";
  event_put(&t,
            "{\"name\":\"process_name\",\"ph\":\"M\",\"ts\":1,\"pid\":7,\"tid\":0,\"args\":{\"name\":\"python3\"}}");
  event_put(&t,
            "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":7,\"args\":{\"name\":\"thread 7 (pt_main)\"}}");
  event_put(&t, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"GPU 0\"}}");
  call_put(&t, "cudaDeviceSynchronize");
  trace_read(&t);
  assert_string_equal(t.process->rank, "12");
  assert_string_equal(t.process->command, "python3");
  assert_int_equal(t.process->thread_count, 1);
  assert_string_equal(t.process->threads[0].name, "pt_main");
  assert_int_equal(t.findings->process_count, 1);
  trace_close(&t);
}

static void a_later_member_of_the_same_name_wins(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  event_put(&t, "{\"ph\":\"i\",\"ph\":\"X\",\"cat\":\"kernel\",\"cat\":\"cuda_runtime\",\"name\":3,\"name\":"
                "\"cudaDeviceSynchronize\",\"pid\":1,\"pid\":7,\"tid\":7,\"ts\":1,\"dur\":2,\"dur\":8}");
  trace_read(&t);
  assert_int_equal(t.findings->lost_records, 1); /* a name that is no text: not believed */
  trace_close(&t);
  trace_open(&t);
  event_put(&t, "{\"ph\":\"i\",\"ph\":\"X\",\"cat\":\"kernel\",\"cat\":\"cuda_runtime\",\"name\":\"x\",\"name\":"
                "\"cudaDeviceSynchronize\",\"pid\":1,\"pid\":7,\"tid\":7,\"ts\":1,\"dur\":2,\"dur\":8}");
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.process->pid, 7);
  assert_int_equal(t.process->counts.wait_ns, 8000);
  trace_close(&t);
}

/* ---- ranges, steps, sites --------------------------------------------------------------------------- */

static void profiler_steps_are_steps(void **state)
{
  struct trace t;
  struct sc_analysis_options options = {.warmup = 1};
  (void)state;
  trace_open(&t);
  t.options = &options;
  for (int step = 0; step < 3; ++step) {
    char name[32];
    double from = t.now;
    snprintf(name, sizeof name, "ProfilerStep#%d", 551 + step);
    for (int i = 0; i <= step; ++i)
      call_put(&t, "cudaDeviceSynchronize");
    host_put(&t, "user_annotation", name, from);
  }
  trace_read(&t);
  assert_true(t.process->has_steps);
  assert_int_equal(t.process->steps, 3);
  assert_int_equal(t.process->warmup, 1);
  assert_int_equal(t.process->step_min, 2);
  assert_int_equal(t.process->step_max, 3);
  assert_int_equal(t.process->range_count, 1);
  assert_string_equal(t.process->ranges[0].path, "ProfilerStep");
  assert_string_equal(t.process->ranges[0].level, "step");
  trace_close(&t);
}

static void a_rule_of_the_caller_comes_first(void **state)
{
  struct trace t;
  struct sc_level_rule rules[] = {{"Profiler*", "layer"}};
  struct sc_analysis_options options = {.levels = rules, .level_count = 1};
  (void)state;
  trace_open(&t);
  t.options = &options;
  call_put(&t, "cudaDeviceSynchronize");
  host_put(&t, "user_annotation", "ProfilerStep#1", 990);
  trace_read(&t);
  assert_string_equal(t.process->ranges[0].level, "layer");
  trace_close(&t);
}

static void annotations_and_modules_are_ranges(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "cudaDeviceSynchronize");
  host_put(&t, "python_function", "nn.Module: MoeLayer_3", 998);
  call_put(&t, "cudaDeviceSynchronize");
  host_put(&t, "user_annotation", "forward", 990);
  trace_read(&t);
  assert_int_equal(t.process->range_count, 2);
  assert_string_equal(t.process->ranges[0].path, "forward");
  assert_int_equal(t.process->ranges[0].total.syncs, 2);
  assert_string_equal(t.process->ranges[1].path, "forward/MoeLayer_3");
  assert_int_equal(t.process->ranges[1].total.syncs, 1);
  trace_close(&t);
}

static void python_functions_are_the_frames_of_sites(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  for (int i = 0; i < 2; ++i) {
    double from = t.now - 4;
    char name[96];
    copy_put(&t, D2H_PINNED, 7);
    stream_sync_put(&t, 7);
    snprintf(name, sizeof name, "<built-in method item of Tensor object at 0x7f%d3c0>", i);
    host_put(&t, "cpu_op", "aten::_local_scalar_dense", from + 3);
    host_put(&t, "cpu_op", "aten::item", from + 2);
    host_put(&t, "python_function", name, from + 1.5);
    host_put(&t, "python_function", "torch/_tensor.py(31): wrapped", from + 1);
    host_put(&t, "python_function", "model/moe (old).py(118): Moe.forward", from);
    t.now += 100;
  }
  trace_read(&t);
  expect_counts(&t, 2, 2, 0, 0, 0);
  assert_int_equal(t.process->site_count, 1); /* the built-in's address does not tell sites apart */
  const struct sc_site *site = &t.process->sites[0];
  assert_int_equal(site->count, 2);
  assert_int_equal(site->python_count, 3);
  assert_string_equal(site->python[0].function, "<built-in method item of Tensor object>");
  assert_null(site->python[0].file);
  assert_string_equal(site->python[2].file, "model/moe (old).py");
  assert_string_equal(site->python[2].function, "Moe.forward");
  assert_int_equal(site->python[2].line, 118);
  assert_int_equal(site->native_count, 2);
  assert_string_equal(site->native[0].function, "aten::_local_scalar_dense");
  assert_string_equal(site->pattern, "scalar read-back");
  assert_ptr_equal(sc_site_frame(site), &site->python[2]); /* not PyTorch's own */
  assert_true(warned(&t, "a Python line is where its function begins"));
  assert_false(warned(&t, "no Python functions"));
  trace_close(&t);
}

static void without_python_operators_tell_sites_apart(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  for (int i = 0; i < 3; ++i) {
    double from = t.now - 4;
    copy_put(&t, D2H_PINNED, 7);
    stream_sync_put(&t, 7);
    host_put(&t, "cpu_op", i == 2 ? "aten::nonzero" : "aten::_local_scalar_dense", from);
    t.now += 100;
  }
  trace_read(&t);
  assert_int_equal(t.process->site_count, 2);
  for (size_t i = 0; i < 2; ++i) {
    const struct sc_site *site = &t.process->sites[i];
    bool nonzero = strcmp(site->native[0].function, "aten::nonzero") == 0;
    assert_int_equal(site->count, nonzero ? 1 : 2);
    assert_string_equal(site->pattern, nonzero ? "nonzero, boolean-mask index" : "scalar read-back");
  }
  assert_true(warned(&t, "no Python functions in the trace (with_stack=True)"));
  trace_close(&t);
}

static void the_device_idles_from_the_work_before_a_sync_to_the_next(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "cudaLaunchKernel");
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1005,\"dur\":10,\"args\":"
                "{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":1}}");
  call_put(&t, "cudaDeviceSynchronize");
  call_put(&t, "cudaLaunchKernel");
  event_put(&t, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":20,\"ts\":1027.5,\"dur\":1,\"args\":"
                "{\"device\":0,\"context\":1,\"stream\":20,\"correlation\":3}}");
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.process->drain_gaps, 1);
  assert_true(fabs(t.process->drain_gap_total_us - 12.5) < 0.001);
  trace_close(&t);
}

static void several_processes_in_one_trace_are_told(void **state)
{
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "cudaDeviceSynchronize");
  event_put(&t,
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":8,\"tid\":8,\"ts\":1,"
            "\"dur\":1}");
  trace_read(&t);
  assert_int_equal(t.findings->process_count, 2);
  assert_int_equal(t.findings->processes[0].pid, 7);
  assert_int_equal(t.findings->processes[1].pid, 8);
  assert_int_equal(t.findings->processes[1].counts.syncs, 1);
  assert_true(warned(&t, "calls of 2 processes"));
  trace_close(&t);
}

/* ---- bad input --------------------------------------------------------------------------------------- */

static void events_that_cannot_be_used_are_counted(void **state)
{
  static const char *const bad[] = {
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,\"dur\":1}",
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,\"ts\":\"soon\"}",
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,\"ts\":-5,\"dur\":"
      "1}",
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,\"ts\":NaN,"
      "\"dur\":1}",
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,\"ts\":1e99}",
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,\"ts\":6e15}",
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"tid\":7,\"ts\":5,\"dur\":1}",
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":[1],\"ts\":5}",
      "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,\"ts\":5,\"dur\":{"
      "}}",
      "{\"cat\":\"cuda_runtime\",\"name\":\"cudaDeviceSynchronize\",\"pid\":7,\"tid\":7,\"ts\":5,\"dur\":1}",
      "{\"ph\":\"E\",\"pid\":7}",
      "17",
      "[{\"ph\":\"X\"}]",
      "null",
  };
  struct trace t;
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(bad); ++i) {
    trace_open(&t);
    call_put(&t, "cudaDeviceSynchronize");
    event_put(&t, "%s", bad[i]);
    trace_read(&t);
    expect_counts(&t, 1, 1, 0, 0, 0);
    assert_int_equal(t.findings->lost_records, 1);
    assert_int_equal(t.process->lost_records, 1);
    assert_true(warned(&t, "1 events could not be used; the first, at byte "));
    trace_close(&t);
  }
}

static void what_is_of_no_interest_may_be_anything(void **state)
{
  static const char *const odd[] = {
      "{}",
      "{\"ph\":\"C\",\"name\":\"memory\",\"ts\":\"never\"}",
      "{\"ph\":\"X\",\"cat\":\"Trace\",\"ts\":1,\"dur\":1,\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\",\"name\":\"x\"}",
      "{\"ph\":\"i\",\"s\":\"g\",\"pid\":\"\",\"tid\":\"\",\"name\":\"Record Window End\",\"ts\":1}",
      "{\"ph\":\"s\",\"id\":1,\"cat\":\"ac2g\",\"args\":[1,{\"a\":null}]}",
      "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":[],\"ts\":1,\"dur\":1,\"args\":{\"stream\":\"0x0\",\"device\":1e99}}",
  };
  struct trace t;
  (void)state;
  trace_open(&t);
  call_put(&t, "cudaDeviceSynchronize");
  for (size_t i = 0; i < SC_COUNTOF(odd); ++i)
    event_put(&t, "%s", odd[i]);
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.findings->lost_records, 0);
  trace_close(&t);
}

static void errors_name_file_place_and_remedy(void **state)
{
  static const struct {
    const char *text, *message;
  } rows[] = {
      {"{\"a\":1}", "'folder/trace.json' is no PyTorch profiler trace: it has no 'traceEvents'"},
      {"{\"traceEvents\":{}}",
       "'folder/trace.json' is no PyTorch profiler trace: at byte 15: 'traceEvents' is no array"},
      {"12", "'folder/trace.json' is no PyTorch profiler trace: it is neither an object nor an array"},
      {"{\"traceEvents\":[{\"ph\":\"X\"",
       "'folder/trace.json' is no whole PyTorch profiler trace: at byte 25: the text "
       "ends before its last bracket. It was cut off: copy it again, or let the "
       "profiler finish writing it."},
      {"{\"traceEvents\":[{\"ph\" \"X\"}]}",
       "'folder/trace.json' is no whole PyTorch profiler trace: at byte 22: expected "
       "a colon, found '\"'. It is damaged: copy it again, or export it anew."},
      {"{\"traceEvents\":[]} x", "'folder/trace.json' is no whole PyTorch profiler trace: at byte 19: expected nothing "
                                 "more, found 'x'. It is damaged: copy it again, or export it anew."},
  };
  struct trace t;
  (void)state;
  trace_open(&t);
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i) {
    struct sc_error err = {0};
    enum sc_status status;
    text_try(rows[i].text, strlen(rows[i].text), 5, &t, &status, &err);
    assert_int_equal(status, SC_ERR_FORMAT);
    assert_string_equal(err.message, rows[i].message);
  }
  trace_close(&t);
}

static void every_beginning_of_a_trace_is_refused(void **state)
{
  struct trace t;
  struct sc_buf text = {0};
  (void)state;
  trace_open(&t);
  copy_put(&t, D2H_PAGEABLE, 7);
  stream_sync_put(&t, 7);
  host_put(&t, "python_function", "a\\u00e9.py(3): f", 990);
  sc_buf_printf(&text, "{\"distributedInfo\":{\"rank\":1},\"traceEvents\":[%s],\"x\":[1]}", t.events.data);
  for (size_t n = 0; n < text.len; ++n) {
    struct sc_error err = {0};
    enum sc_status status;
    text_try(text.data, n, 11, &t, &status, &err);
    assert_int_equal(status, SC_ERR_FORMAT);
    assert_non_null(strstr(err.message, "It was cut off"));
  }
  sc_buf_free(&text);
  trace_close(&t);
}

static void hostile_names_pass(void **state)
{
  static char huge[65537];
  struct trace t;
  (void)state;
  memset(huge, 'n', sizeof huge - 1);
  trace_open(&t);
  call_put(&t, "cudaDeviceSynchronize");
  host_put(&t, "user_annotation", huge, 999);
  host_put(&t, "user_annotation", "\xff\xfe</script>\\\"\\u0000x", 998);
  host_put(&t, "python_function", huge, 997);
  host_put(&t, "python_function", "(1): ", 996);
  host_put(&t, "cpu_op", "", 995);
  call_put(&t, huge);
  trace_read(&t);
  expect_counts(&t, 1, 1, 0, 0, 0);
  assert_int_equal(t.process->range_count, 2);
  assert_string_equal(t.process->ranges[0].path, "\xff\xfe</script>\"");
  assert_true(strlen(t.process->ranges[1].name) <= 256);
  trace_close(&t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_sequence_has_its_count),
      cmocka_unit_test(a_stream_that_waits_for_an_event_is_no_wait),
      cmocka_unit_test(a_driver_call_belongs_to_the_runtime_call_around_it),
      cmocka_unit_test(calls_of_one_microsecond_keep_their_order),
      cmocka_unit_test(events_may_come_in_any_order),
      cmocka_unit_test(without_sync_events_the_operator_tells_the_stream),
      cmocka_unit_test(without_sync_events_and_operator_it_stays_uncertain),
      cmocka_unit_test(copies_without_device_work_are_uncertain),
      cmocka_unit_test(memory_of_no_known_kind_is_uncertain),
      cmocka_unit_test(frees_and_queries_are_not_guessed),
      cmocka_unit_test(synchronises_without_a_call_are_told),
      cmocka_unit_test(no_cuda_call_is_not_zero_syncs),
      cmocka_unit_test(calls_of_other_vendors_are_named),
      cmocka_unit_test(the_dialect_of_2021_is_read),
      cmocka_unit_test(the_time_of_day_is_known_of_both_clocks),
      cmocka_unit_test(begin_and_end_events_are_paired),
      cmocka_unit_test(an_array_alone_is_a_trace),
      cmocka_unit_test(members_may_stand_before_and_after_the_events),
      cmocka_unit_test(a_later_member_of_the_same_name_wins),
      cmocka_unit_test(profiler_steps_are_steps),
      cmocka_unit_test(a_rule_of_the_caller_comes_first),
      cmocka_unit_test(annotations_and_modules_are_ranges),
      cmocka_unit_test(python_functions_are_the_frames_of_sites),
      cmocka_unit_test(without_python_operators_tell_sites_apart),
      cmocka_unit_test(the_device_idles_from_the_work_before_a_sync_to_the_next),
      cmocka_unit_test(several_processes_in_one_trace_are_told),
      cmocka_unit_test(events_that_cannot_be_used_are_counted),
      cmocka_unit_test(what_is_of_no_interest_may_be_anything),
      cmocka_unit_test(errors_name_file_place_and_remedy),
      cmocka_unit_test(every_beginning_of_a_trace_is_refused),
      cmocka_unit_test(hostile_names_pass),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
