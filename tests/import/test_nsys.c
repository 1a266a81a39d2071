/* SPDX-License-Identifier: Apache-2.0
 * Nsight Systems exports: the counts of DESIGN.md's sequences, ranges, sites, drain gaps; other schemas; hostile files.
 */
#include "import/make_nsys.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEST(name) static void name(void **state)
#define BEGIN(f)      \
  struct nsys_file f; \
  (void)state;        \
  nsys_begin(&f)

#define PAGEABLE "PAGEABLE"
#define PINNED "PINNED"

static void expect(struct nsys_file *f, uint64_t explicit_, uint64_t copy, uint64_t pageable)
{
  nsys_read(f, SC_OK);
  const struct sc_counts *c = &f->process->counts;
  assert_int_equal(c->by_class[SC_CLASS_EXPLICIT], explicit_);
  assert_int_equal(c->by_class[SC_CLASS_COPY], copy);
  assert_int_equal(c->by_class[SC_CLASS_PAGEABLE], pageable);
  assert_int_equal(c->by_class[SC_CLASS_IMPLICIT], 0);
  assert_int_equal(c->syncs, explicit_ + copy + pageable);
}

static const struct sc_range_findings *range_of(const struct nsys_file *f, const char *path)
{
  for (size_t i = 0; i < f->process->range_count; ++i) {
    if (strcmp(f->process->ranges[i].path, path) == 0)
      return &f->process->ranges[i];
  }
  fail_msg("no range %s", path);
  return NULL;
}

static void range(struct nsys_file *f, int64_t start, int64_t end, int type, const char *name)
{
  nsys_sql(f, "INSERT INTO NVTX_EVENTS VALUES (%lld,%lld,%d,%Q,%lld,NULL,NULL,0)", (long long)start, (long long)end,
           type, name, (long long)f->thread);
}

/* ---- the table of sequences ------------------------------------------------------------------------- */

TEST(an_async_copy_to_pinned_memory_is_no_sync)
{
  BEGIN(f);
  D2H(&f, 7, PINNED);
  expect(&f, 0, 0, 0);
  assert_int_equal(f.process->counts.d2h_copies, 1);
  assert_int_equal(f.process->counts.uncertain, 0);
  nsys_end(&f);
}

TEST(a_pinned_copy_launches_and_a_synchronise_are_one)
{
  BEGIN(f);
  D2H(&f, 7, PINNED);
  LAUNCH(&f, 7);
  SYNC(&f, 7);
  expect(&f, 1, 0, 0);
  assert_int_equal(f.process->counts.read_backs, 1);
  assert_int_equal(f.process->counts.launches, 1);
  assert_int_equal(f.process->counts.api_calls, 3);
  nsys_end(&f);
}

TEST(a_pageable_copy_and_its_synchronise_are_one)
{
  BEGIN(f);
  D2H(&f, 7, PAGEABLE);
  SYNC(&f, 7);
  expect(&f, 0, 0, 1);
  assert_int_equal(f.process->counts.wait_ns, 20000);
  assert_int_equal(f.process->sites[0].merged, 1);
  nsys_end(&f);
}

TEST(two_pageable_copies_and_a_synchronise_are_two)
{
  BEGIN(f);
  D2H(&f, 7, PAGEABLE);
  D2H(&f, 7, PAGEABLE);
  SYNC(&f, 7);
  expect(&f, 0, 0, 2);
  nsys_end(&f);
}

TEST(a_pageable_copy_a_launch_and_a_synchronise_are_two)
{
  BEGIN(f);
  D2H(&f, 7, PAGEABLE);
  LAUNCH(&f, 7);
  SYNC(&f, 7);
  expect(&f, 1, 0, 1);
  nsys_end(&f);
}

TEST(a_synchronise_of_another_stream_does_not_merge)
{
  BEGIN(f);
  D2H(&f, 7, PAGEABLE);
  SYNC(&f, 13);
  expect(&f, 1, 0, 1);
  nsys_end(&f);
}

TEST(a_blocking_copy_and_its_own_synchronise_are_one_copy)
{
  BEGIN(f);
  nsys_call(&f, "cudaMemcpy_v3020");
  nsys_copy(&f, "DTOH", "DEVICE", PAGEABLE, 7, 64);
  SYNC(&f, 7);
  nsys_call(&f, "cudaMemcpy_v3020");
  nsys_copy(&f, "HTOD", PAGEABLE, "DEVICE", 7, 64);
  nsys_call(&f, "cudaMemcpy_v3020");
  nsys_copy(&f, "DTOD", "DEVICE", "DEVICE", 7, 64);
  expect(&f, 0, 2, 0);
  nsys_end(&f);
}

TEST(device_and_event_synchronises_count_and_do_not_merge)
{
  BEGIN(f);
  D2H(&f, 7, PAGEABLE);
  nsys_call(&f, "cudaDeviceSynchronize_v3020");
  nsys_sync(&f, "CONTEXT_SYNCHRONIZE", 4294967295);
  nsys_call(&f, "cudaEventSynchronize_v3020");
  nsys_sync(&f, "EVENT_SYNCHRONIZE", 4294967295);
  expect(&f, 2, 0, 1);
  nsys_end(&f);
}

TEST(waiting_on_the_device_for_an_event_is_no_host_wait)
{
  BEGIN(f);
  nsys_call(&f, "cudaStreamWaitEvent_v3020");
  nsys_sync(&f, "STREAM_WAIT_EVENT", 7);
  LAUNCH(&f, 7);
  expect(&f, 0, 0, 0);
  nsys_end(&f);
}

/* Nsight Systems 2025.3 writes the type of a stream synchronise as that of a stream wait. */
TEST(a_synchronise_is_known_by_its_call_and_not_by_its_type)
{
  BEGIN(f);
  D2H(&f, 7, PAGEABLE);
  nsys_call(&f, "cudaStreamSynchronize_v3020");
  nsys_sync(&f, "STREAM_WAIT_EVENT", 7);
  expect(&f, 0, 0, 1);
  nsys_end(&f);
}

TEST(an_upload_and_its_synchronise_are_a_blocking_upload)
{
  BEGIN(f);
  H2D(&f, 7, PAGEABLE);
  SYNC(&f, 7);
  expect(&f, 1, 0, 0);
  assert_int_equal(f.process->counts.blocking_uploads, 1);
  nsys_end(&f);
}

TEST(a_copy_on_one_thread_and_a_synchronise_on_another_do_not_merge)
{
  BEGIN(f);
  D2H(&f, 7, PAGEABLE);
  ++f.thread;
  SYNC(&f, 7);
  expect(&f, 1, 0, 1);
  assert_int_equal(f.process->thread_count, 2);
  nsys_end(&f);
}

TEST(a_copy_whose_work_is_missing_is_uncertain)
{
  BEGIN(f);
  nsys_call(&f, "cudaMemcpyAsync_v3020");
  expect(&f, 0, 0, 0);
  assert_int_equal(f.process->counts.uncertain, 1);
  nsys_end(&f);
}

TEST(managed_memory_moved_by_the_driver_is_no_copy_of_a_call)
{
  BEGIN(f);
  LAUNCH(&f, 7);
  nsys_copy(&f, "UVM_DTOH", "MANAGED", PAGEABLE, 7, 4096);
  expect(&f, 0, 0, 0);
  assert_int_equal(f.process->counts.d2h_copies, 0);
  nsys_end(&f);
}

TEST(queries_that_were_not_ready_and_then_were_are_a_poll_wait)
{
  BEGIN(f);
  LAUNCH(&f, 7);
  nsys_call_status(&f, "cudaEventQuery_v3020", 600);
  nsys_call_status(&f, "cudaEventQuery_v3020", 600);
  nsys_call_status(&f, "cudaEventQuery_v3020", 0);
  nsys_call_status(&f, "cudaEventQuery_v3020", 0);
  expect(&f, 0, 0, 0);
  assert_int_equal(f.process->counts.poll_waits, 1);
  assert_int_equal(f.process->counts.failed, 0);
  nsys_end(&f);
}

TEST(a_refused_synchronise_is_failed)
{
  BEGIN(f);
  nsys_call_status(&f, "cudaStreamSynchronize_v3020", 900);
  expect(&f, 0, 0, 0);
  assert_int_equal(f.process->counts.failed, 1);
  nsys_end(&f);
}

TEST(work_that_is_captured_into_a_graph_is_none)
{
  BEGIN(f);
  nsys_call(&f, "cudaStreamBeginCapture_v10000");
  nsys_call(&f, "cudaLaunchKernel_v7000");
  nsys_call(&f, "cudaMemcpyAsync_v3020");
  nsys_call(&f, "cudaStreamEndCapture_v10000");
  LAUNCH(&f, 7);
  expect(&f, 0, 0, 0);
  assert_int_equal(f.process->counts.launches, 1);
  assert_int_equal(f.process->counts.uncertain, 0);
  nsys_end(&f);
}

TEST(a_driver_call_inside_a_runtime_call_belongs_to_it)
{
  BEGIN(f);
  SYNC(&f, 7);
  int64_t start = f.now - 10000;
  nsys_sql(&f, "INSERT INTO StringIds VALUES (900,'cuStreamSynchronize')");
  nsys_sql(&f, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%lld,%lld,1,%lld,%lld,900,0,NULL)", (long long)start,
           (long long)f.now, (long long)f.thread, (long long)f.correlation);
  nsys_sql(&f, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%lld,%lld,1,%lld,777777,900,0,NULL)",
           (long long)start + 100, (long long)f.now - 100, (long long)f.thread);
  expect(&f, 1, 0, 0);
  assert_int_equal(f.process->counts.api_calls, 1);
  nsys_call(&f, "cuStreamSynchronize"); /* alone it counts */
  nsys_sync(&f, "STREAM_SYNCHRONIZE", 7);
  expect(&f, 2, 0, 0);
  nsys_end(&f);
}

TEST(frees_are_judged_where_memory_use_was_recorded)
{
  BEGIN(f);
  int64_t real = nsys_call(&f, "cudaFree_v3020"), pool = nsys_call(&f, "cudaFree_v3020");
  nsys_call(&f, "cudaFree_v3020"); /* of NULL */
  expect(&f, 0, 0, 0);
  assert_int_equal(f.process->counts.uncertain, 3);
  assert_true(nsys_warned(&f, "--cuda-memory-usage=true"));
  nsys_sql(
      &f,
      "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER, contextId "
      "INTEGER, memKind INTEGER, memoryOperationType INTEGER, correlationId INTEGER, localMemoryPoolAddress INTEGER)");
  nsys_sql(&f, "CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INTEGER, name TEXT)");
  nsys_sql(&f, "INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES (8,'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION'),"
               "(9,'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION')");
  nsys_sql(
      &f,
      "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (2000,%lld,0,1,23,9,%lld,NULL),(2001,%lld,0,1,23,9,%lld,4096)",
      (long long)NSYS_GLOBAL, (long long)real, (long long)NSYS_GLOBAL, (long long)pool);
  nsys_read(&f, SC_OK);
  assert_int_equal(f.process->counts.by_class[SC_CLASS_IMPLICIT], 1);
  assert_int_equal(f.process->counts.uncertain, 0);
  assert_false(nsys_warned(&f, "--cuda-memory-usage=true"));
  nsys_end(&f);
}

/* ---- ranges ------------------------------------------------------------------------------------------------ */

TEST(push_pop_ranges_nest_by_their_times)
{
  BEGIN(f);
  for (int i = 0; i < 3; ++i) {
    int64_t start = f.now;
    SYNC(&f, 7);
    int64_t inner = f.now + 500;
    SYNC(&f, 7);
    range(&f, inner, f.now, 159, "synccount.layer:0"); /* in the file the inner one comes first */
    range(&f, start, f.now, 159, "synccount.step");
    range(&f, start, start, 159, "empty");
    range(&f, start, f.now, 134, "a mark is no range");
  }
  expect(&f, 6, 0, 0);
  assert_int_equal(range_of(&f, "synccount.step")->occurrences, 3);
  assert_int_equal(range_of(&f, "synccount.step")->total.syncs, 6);
  assert_int_equal(range_of(&f, "synccount.step")->self.syncs, 3);
  assert_int_equal(range_of(&f, "synccount.step/synccount.layer:0")->total.syncs, 3);
  assert_int_equal(range_of(&f, "synccount.step/synccount.layer:0")->min, 1);
  assert_string_equal(range_of(&f, "synccount.step/synccount.layer:0")->level, "layer");
  assert_int_equal(range_of(&f, "synccount.step/empty")->total.syncs, 0);
  assert_true(f.process->has_steps);
  assert_int_equal(f.process->steps, 3);
  assert_float_equal(f.process->step_median, 2, 0);
  assert_int_equal(f.process->range_count, 3);
  nsys_end(&f);
}

/* The second thread comes later in the file, and holds what ends the warm-up of both. */
TEST(the_range_that_ends_the_warm_up_is_looked_for_on_all_threads)
{
  BEGIN(f);
  const struct sc_analysis_options options = {.from = "measured"};
  int64_t first = f.now;
  SYNC(&f, 7);
  range(&f, first, f.now, 159, "synccount.step");
  int64_t second = f.now;
  ++f.thread;
  range(&f, second + 1, second + 100, 159, "measured");
  --f.thread;
  SYNC(&f, 7);
  SYNC(&f, 7);
  range(&f, second + 200, f.now, 159, "synccount.step");
  struct sc_findings *findings = sc_findings_new();
  struct sc_error error = {0};
  ++f.thread;
  SYNC(&f, 7);
  assert_int_equal(sc_import_nsys(f.path, &options, findings, &error), SC_OK);
  assert_int_equal(findings->processes[0].steps, 2);
  assert_int_equal(findings->processes[0].warmup, 1);
  assert_float_equal(findings->processes[0].step_median, 2, 0);
  sc_findings_free(findings);
  nsys_end(&f);
}

TEST(a_start_end_range_counts_for_the_thread_that_started_it)
{
  BEGIN(f);
  int64_t start = f.now;
  SYNC(&f, 7);
  ++f.thread;
  SYNC(&f, 7);
  --f.thread;
  SYNC(&f, 7);
  range(&f, start, f.now, 160, "loading");
  SYNC(&f, 7);
  expect(&f, 4, 0, 0);
  assert_true(range_of(&f, "loading")->spanning);
  assert_int_equal(range_of(&f, "loading")->total.syncs, 2);
  nsys_end(&f);
}

TEST(a_range_without_an_end_is_unfinished)
{
  BEGIN(f);
  nsys_sql(&f, "INSERT INTO NVTX_EVENTS VALUES (%lld,NULL,159,'open',%lld,NULL,NULL,0)", (long long)f.now,
           (long long)f.thread);
  SYNC(&f, 7);
  expect(&f, 1, 0, 0);
  assert_int_equal(range_of(&f, "open")->unfinished, 1);
  assert_int_equal(range_of(&f, "open")->total.syncs, 1);
  nsys_end(&f);
}

TEST(domains_and_registered_names_are_looked_up)
{
  BEGIN(f);
  int64_t start = f.now;
  SYNC(&f, 7);
  nsys_sql(&f, "INSERT INTO StringIds VALUES (801,'ncclAllReduce'), (802, 'NCCL')");
  nsys_sql(&f, "INSERT INTO NVTX_EVENTS VALUES (%lld,%lld,159,NULL,%lld,NULL,801,3)", (long long)start,
           (long long)f.now, (long long)f.thread);
  nsys_sql(&f, "INSERT INTO NVTX_EVENTS VALUES (1,NULL,175,NULL,%lld,NULL,802,3)", (long long)f.thread);
  start = f.now;
  SYNC(&f, 7);
  nsys_sql(&f, "INSERT INTO NVTX_EVENTS VALUES (%lld,%lld,159,'x',%lld,NULL,NULL,9)", (long long)start,
           (long long)f.now, (long long)f.thread);
  expect(&f, 2, 0, 0);
  assert_string_equal(range_of(&f, "ncclAllReduce")->domain, "NCCL");
  assert_string_equal(range_of(&f, "x")->domain, "domain 9");
  nsys_end(&f);
}

TEST(the_numbers_of_emit_nvtx_are_left_out_of_names)
{
  BEGIN(f);
  for (int i = 0; i < 3; ++i) {
    char name[64];
    int64_t start = f.now;
    SYNC(&f, 7);
    snprintf(name, sizeof name, "aten::to, %sop_id = %d", i ? "seq = 5, " : "", i);
    range(&f, start, f.now, 159, name);
  }
  int64_t start = f.now;
  SYNC(&f, 7);
  range(&f, start, f.now, 159, "load, seq = all");
  expect(&f, 4, 0, 0);
  assert_int_equal(range_of(&f, "aten::to")->occurrences, 3);
  assert_int_equal(range_of(&f, "load, seq = all")->occurrences, 1);
  nsys_end(&f);
}

/* ---- sites, drain gaps --------------------------------------------------------------------------------------- */

TEST(call_chains_are_the_native_frames_of_sites)
{
  BEGIN(f);
  nsys_sql(&f,
           "CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, unresolved INTEGER, originalIP "
           "INTEGER, stackDepth INTEGER, PRIMARY KEY (id, stackDepth))");
  nsys_sql(&f, "INSERT INTO StringIds VALUES (701,'cudaStreamSynchronize'),(702,'/usr/lib/libcudart.so.13'),"
               "(703,'wait_for_it(int)'),(704,'/opt/app/program'),(705,'main')");
  nsys_sql(
      &f, "INSERT INTO CUDA_CALLCHAINS VALUES (5,705,704,0,1,2),(5,703,704,0,1,1),(5,701,702,0,1,0),(6,705,704,0,1,0)");
  SYNC(&f, 7);
  SYNC(&f, 7);
  nsys_sql(&f, "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET callchainId = 5");
  SYNC(&f, 7);
  nsys_sql(&f, "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET callchainId = 6 WHERE callchainId IS NULL");
  expect(&f, 3, 0, 0);
  assert_int_equal(f.process->site_count, 2);
  const struct sc_site *site = f.process->sites[0].count == 2 ? &f.process->sites[0] : &f.process->sites[1];
  assert_int_equal(site->count, 2);
  assert_int_equal(site->native_count, 2);
  assert_string_equal(site->native[0].function, "wait_for_it(int)");
  assert_string_equal(site->native[0].file, "/opt/app/program");
  assert_string_equal(site->native[1].function, "main");
  assert_int_equal(site->python_count, 0);
  nsys_end(&f);
}

TEST(a_drain_gap_reaches_from_the_last_work_to_the_next)
{
  BEGIN(f);
  LAUNCH(&f, 7); /* ends at +7 us of its call */
  int64_t end_of_first = f.now - 3000;
  SYNC(&f, 7);
  nsys_call(&f, "cudaDeviceSynchronize_v3020"); /* the same gap: counted once */
  LAUNCH(&f, 7);
  int64_t start_of_second = f.now - 7000;
  SYNC(&f, 7); /* nothing comes after: not measured */
  expect(&f, 3, 0, 0);
  assert_float_equal(f.process->drain_gap_total_us, (double)(start_of_second - end_of_first) / 1e3, 1e-9);
  assert_int_equal(f.process->drain_gaps, 2);
  double total = 0;
  for (size_t i = 0; i < f.process->site_count; ++i)
    total += f.process->sites[i].drain_gap_total_us;
  assert_float_equal(total, f.process->drain_gap_total_us, 1e-9);
  nsys_end(&f);
}

TEST(work_on_another_stream_leaves_no_gap)
{
  BEGIN(f);
  LAUNCH(&f, 7);
  LAUNCH(&f, 13);
  nsys_sql(&f, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end + 1000000 WHERE streamId = 13");
  SYNC(&f, 7);
  LAUNCH(&f, 7);
  expect(&f, 1, 0, 0);
  assert_float_equal(f.process->drain_gap_total_us, 0, 0);
  nsys_end(&f);
}

TEST(without_device_work_there_are_no_drain_gaps)
{
  BEGIN(f);
  SYNC(&f, 7);
  expect(&f, 1, 0, 0);
  assert_true(isnan(f.process->drain_gap_total_us));
  assert_true(isnan(f.process->sites[0].drain_gap_p50_us));
  nsys_end(&f);
}

TEST(the_device_of_a_synchronise_is_that_of_its_contexts_work)
{
  BEGIN(f);
  LAUNCH(&f, 7);
  SYNC(&f, 7); /* recorded as of device 0, as Nsight Systems does */
  LAUNCH(&f, 7);
  nsys_sql(&f, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 1, contextId = 2");
  nsys_sql(&f, "UPDATE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SET contextId = 2");
  nsys_sql(&f, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1,2,0,1,7,0,%lld)", (long long)NSYS_GLOBAL);
  expect(&f, 1, 0, 0);
  assert_int_equal(f.process->drain_gaps, 1);
  nsys_end(&f);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

TEST(processes_are_told_apart_and_named)
{
  BEGIN(f);
  const int64_t other = ((int64_t)1 << 48) + ((int64_t)55 << 24);
  SYNC(&f, 7);
  f.thread = other + 56;
  nsys_call(&f, "cudaStreamSynchronize_v3020");
  nsys_call(&f, "cudaDeviceSynchronize_v3020");
  nsys_sql(&f, "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)");
  nsys_sql(&f, "INSERT INTO PROCESSES VALUES (%lld,55,'trainer'),(%lld,%d,'server'),(7,1,'init')", (long long)other,
           (long long)NSYS_GLOBAL, NSYS_PID);
  nsys_sql(&f, "CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER)");
  nsys_sql(&f, "INSERT INTO StringIds VALUES (600,'worker')");
  nsys_sql(&f, "INSERT INTO ThreadNames VALUES (600,20,%lld),(600,20,12345)", (long long)other + 56);
  nsys_read(&f, SC_OK);
  assert_int_equal(f.findings->process_count, 2);
  const struct sc_process *first = &f.findings->processes[0], *second = &f.findings->processes[1];
  assert_int_equal(first->pid, NSYS_PID);
  assert_string_equal(first->command, "server");
  assert_int_equal(first->counts.syncs, 1);
  assert_int_equal(second->pid, 55);
  assert_string_equal(second->command, "trainer");
  assert_int_equal(second->counts.syncs, 2);
  assert_int_equal(second->threads[0].tid, 56);
  assert_string_equal(second->threads[0].name, "worker");
  nsys_end(&f);
}

TEST(one_process_has_the_command_that_was_profiled)
{
  BEGIN(f);
  SYNC(&f, 7);
  nsys_sql(&f, "CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT)");
  nsys_sql(&f,
           "INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COMMAND','python'),('PROCESS_0:ARGUMENT_0','train.py'),"
           "('PROCESS_0:ENVIRONMENT_VARIABLE','SECRET=1')");
  nsys_read(&f, SC_OK);
  assert_string_equal(f.process->command, "python train.py");
  nsys_end(&f);
}

/* When the first sync was, in the findings. */
static uint64_t first_start(struct nsys_file *f, int64_t *offset)
{
  const struct sc_analysis_options options = {.events = true};
  struct sc_findings *findings = sc_findings_new();
  struct sc_error error = {0};
  struct sc_event event = {0};
  if (sc_import_nsys(f->path, &options, findings, &error) != SC_OK)
    fail_msg("%s", error.message);
  *offset = findings->processes[0].clock_offset_ns;
  assert_true(sc_process_events_rewind(&findings->processes[0]));
  assert_true(sc_process_events_next(&findings->processes[0], &event));
  assert_int_equal(event.kind, SC_EVENT_SYNC);
  sc_findings_free(findings);
  return event.start_ns;
}

TEST(times_are_those_of_the_session_and_the_day_is_known)
{
  BEGIN(f);
  int64_t offset;
  SYNC(&f, 7); /* from 2000 */
  assert_int_equal(first_start(&f, &offset), 2000);
  assert_int_equal(offset, 0);
  nsys_sql(&f, "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)");
  nsys_sql(&f, "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1779782330000000000)");
  assert_int_equal(first_start(&f, &offset), 2000);
  assert_true(offset == 1779782330000000000);
  /* what lies before the session's start makes the clock begin there */
  nsys_sql(&f, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (-5000,-4000,0,1,7,0,%lld)", (long long)NSYS_GLOBAL);
  assert_int_equal(first_start(&f, &offset), 7001);
  assert_true(offset == 1779782330000000000 - 5001);
  nsys_end(&f);
}

/* ---- what is missing ------------------------------------------------------------------------------------------------
 */

TEST(missing_tables_are_said_to_be_not_recorded)
{
  BEGIN(f);
  nsys_call(&f, "cudaMemcpyAsync_v3020");
  nsys_call(&f, "cudaStreamSynchronize_v3020");
  nsys_sql(&f, "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY; DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; DROP TABLE "
               "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION; DROP TABLE NVTX_EVENTS");
  expect(&f, 1, 0, 0);
  assert_int_equal(f.process->counts.uncertain, 1);
  assert_true(nsys_warned(&f, "copies on the device"));
  assert_true(nsys_warned(&f, "synchronisations"));
  assert_true(nsys_warned(&f, "NVTX ranges"));
  assert_true(nsys_warned(&f, "--cudabacktrace=all"));
  nsys_end(&f);
}

TEST(an_export_without_cuda_calls_is_unmeasured_and_not_zero)
{
  BEGIN(f);
  nsys_sql(&f, "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME");
  range(&f, 1, 2, 159, "x");
  nsys_read(&f, SC_OK);
  assert_true(f.process->unmeasured);
  assert_true(nsys_warned(&f, "--trace=cuda,nvtx"));
  nsys_end(&f);
}

TEST(enumerations_that_are_missing_have_their_usual_numbers)
{
  BEGIN(f);
  D2H(&f, 7, PAGEABLE);
  SYNC(&f, 7);
  nsys_sql(&f, "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyKind = 2, srcKind = 2, dstKind = 0");
  nsys_sql(
      &f,
      "DROP TABLE ENUM_CUDA_MEM_KIND; DROP TABLE ENUM_CUDA_MEMCPY_OPER; DROP TABLE ENUM_CUPTI_SYNC_TYPE; DROP TABLE "
      "ENUM_NSYS_EVENT_TYPE");
  range(&f, 1, f.now, 59, "all");
  expect(&f, 0, 0, 1);
  assert_int_equal(range_of(&f, "all")->total.syncs, 1);
  nsys_end(&f);
}

TEST(work_of_no_named_process_is_used_if_there_is_only_one)
{
  BEGIN(f);
  D2H(&f, 7, PAGEABLE);
  nsys_sql(&f, "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN globalPid");
  expect(&f, 0, 0, 1);
  f.thread = ((int64_t)1 << 48) + ((int64_t)55 << 24) + 55;
  nsys_call(&f, "cudaDeviceSynchronize_v3020");
  nsys_read(&f, SC_OK);
  assert_int_equal(f.findings->process_count, 2);
  assert_int_equal(f.process->counts.uncertain, 1);
  assert_true(nsys_warned(&f, "name no process"));
  nsys_end(&f);
}

/* ---- files by others
 * -------------------------------------------------------------------------------------------------- */

static void read_data(struct nsys_file *f, const char *name)
{
  (void)name;
  const char *source = getenv("SC_SOURCE");
  assert_non_null(source);
  snprintf(f->path, sizeof f->path, "%s/tests/import/data/%s", source, name);
  nsys_read(f, SC_OK);
}

/* The figures are those of count_nsys.py. */
TEST(a_training_on_two_gpus_counts_as_written_down)
{
  struct nsys_file f = {0};
  (void)state;
  read_data(&f, "mfu_2gpu.sqlite");
  assert_int_equal(f.findings->process_count, 2);
  const struct sc_process *p = &f.findings->processes[0];
  assert_int_equal(p[0].pid, 144);
  assert_int_equal(p[0].counts.by_class[SC_CLASS_EXPLICIT], 3);
  assert_int_equal(p[0].counts.blocking_uploads, 3);
  assert_int_equal(p[0].counts.syncs, 3);
  assert_int_equal(p[0].counts.launches, 369);
  assert_int_equal(p[0].counts.api_calls, 503);
  assert_int_equal(p[0].counts.wait_ns, 29980449);
  assert_float_equal(p[0].drain_gap_total_us, 268.896, 1e-9);
  assert_int_equal(p[1].pid, 145);
  assert_int_equal(p[1].counts.syncs, 4);
  assert_int_equal(p[1].counts.blocking_uploads, 4);
  assert_int_equal(p[1].counts.launches, 367);
  assert_int_equal(p[1].counts.api_calls, 509);
  assert_int_equal(p[1].counts.wait_ns, 37727059);
  assert_float_equal(p[1].drain_gap_total_us, 400.960, 1e-9);
  assert_string_equal(p[0].host, "modal");
  assert_string_equal(p[0].command, "python3");
  assert_string_equal(p[0].sites[0].range, "aten::to/aten::_to_copy/aten::copy_");
  sc_findings_free(f.findings);
}

TEST(an_export_of_six_tables_counts_as_written_down)
{
  struct nsys_file f = {0};
  (void)state;
  read_data(&f, "healthy_1pct.sqlite");
  assert_int_equal(f.process->counts.syncs, 0);
  assert_int_equal(f.process->counts.launches, 400);
  assert_int_equal(f.process->counts.api_calls, 400);
  assert_true(nsys_warned(&f, "not recorded there: NVTX ranges"));
  sc_findings_free(f.findings);
}

/* ---- hostile files
 * ------------------------------------------------------------------------------------------------------ */

TEST(rows_with_wrong_types_are_left_out_and_counted)
{
  BEGIN(f);
  SYNC(&f, 7);
  nsys_sql(&f, "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL");
  nsys_sql(
      &f,
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid)");
  nsys_sql(&f,
           "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('soon',1,0,1,7,1,1),(NULL,NULL,NULL,NULL,NULL,NULL,NULL),"
           "(x'00ff','x','y','z',1e300,-5,'w'),(9223372036854775807,-9223372036854775808,-1,-1,-1,-1,-1),(1.5,2.5,0,1,"
           "7,1,%lld)",
           (long long)NSYS_GLOBAL);
  nsys_sql(&f,
           "INSERT INTO NVTX_EVENTS VALUES (1,2,159,x'6162',%lld,NULL,NULL,0),(3,4,159,NULL,%lld,NULL,99999,0),"
           "('a',2,159,'t',%lld,NULL,NULL,0)",
           (long long)f.thread, (long long)f.thread, (long long)f.thread);
  expect(&f, 1, 0, 0);
  assert_true(nsys_warned(&f, "4 rows of CUPTI_ACTIVITY_KIND_KERNEL were left out"));
  assert_true(nsys_warned(&f, "1 rows of NVTX_EVENTS were left out"));
  assert_int_equal(f.process->lost_records, 5);
  assert_int_equal(f.findings->lost_records, 5);
  assert_int_equal(range_of(&f, "(no name)")->occurrences, 2);
  nsys_end(&f);
}

TEST(calls_at_impossible_times_are_lost)
{
  static const char *const times[] = {"x'00', 2", "2, 1", "-9223372036854775808, 1", "1, 9223372036854775807"};
  for (size_t i = 0; i < SC_COUNTOF(times); ++i) {
    BEGIN(f);
    SYNC(&f, 7);
    nsys_sql(&f, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT %s, 0, globalTid, 77, nameId, 0, NULL FROM "
                 "CUPTI_ACTIVITY_KIND_RUNTIME", times[i]);
    expect(&f, 1, 0, 0);
    assert_int_equal(f.process->lost_records, 1);
    assert_int_equal(f.findings->lost_records, 1);
    nsys_end(&f);
  }
}

TEST(changes_that_lie_beside_the_file_are_not_passed_over)
{
  static const char *const suffixes[] = {"-wal", "-journal"};
  for (size_t i = 0; i < SC_COUNTOF(suffixes); ++i) {
    char beside[160];
    BEGIN(f);
    SYNC(&f, 7);
    snprintf(beside, sizeof beside, "%s%s", f.path, suffixes[i]);
    FILE *file = fopen(beside, "wb");
    assert_non_null(file);
    expect(&f, 1, 0, 0); /* an empty one is of nobody */
    assert_int_equal(fwrite("\x37\x7f\x06\x82", 4, 1, file), 1);
    fclose(file);
    nsys_read(&f, SC_ERR_FORMAT);
    assert_non_null(strstr(f.error.message, suffixes[i]));
    unlink(beside);
    nsys_end(&f);
  }
}

TEST(calls_whose_name_is_missing_are_told)
{
  BEGIN(f);
  SYNC(&f, 7);
  SYNC(&f, 7);
  nsys_sql(&f, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1,2,0,%lld,0,424242,0,NULL)", (long long)f.thread);
  expect(&f, 2, 0, 0);
  assert_true(nsys_warned(&f, "1 calls have no name there"));
  assert_int_equal(f.process->lost_records, 1); /* an upper bound must not pass */
  nsys_sql(&f, "DROP TABLE StringIds");
  nsys_read(&f, SC_OK);
  assert_true(f.process->unmeasured);
  assert_true(nsys_warned(&f, "3 calls have no name there"));
  nsys_end(&f);
}

TEST(huge_and_strange_texts_are_taken)
{
  BEGIN(f);
  SYNC(&f, 7);
  nsys_sql(&f, "INSERT INTO NVTX_EVENTS VALUES (1,%lld,159,hex(zeroblob(2000000)),%lld,NULL,NULL,0)", (long long)f.now,
           (long long)f.thread);
  nsys_sql(&f, "INSERT INTO NVTX_EVENTS VALUES (2,%lld,159,'a' || char(0) || 'b',%lld,NULL,NULL,0)", (long long)f.now,
           (long long)f.thread);
  nsys_sql(&f, "INSERT INTO NVTX_EVENTS VALUES (3,%lld,159,CAST(x'ff41fe' AS TEXT),%lld,NULL,NULL,0)", (long long)f.now,
           (long long)f.thread);
  expect(&f, 1, 0, 0);
  assert_int_equal(f.process->range_count, 3);
  nsys_end(&f);
}

/* Each end would have to look at all that are open: this would take minutes. */
TEST(very_many_open_ranges_are_cut_and_told)
{
  BEGIN(f);
  nsys_sql(&f,
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) INSERT INTO NVTX_EVENTS "
           "SELECT i, NULL, 159, 'open', %lld, NULL, NULL, 0 FROM n",
           (long long)f.thread);
  f.now = 200000;
  SYNC(&f, 7);
  nsys_sql(&f,
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) INSERT INTO NVTX_EVENTS "
           "SELECT 300000 + 10 * i, 300005 + 10 * i, 160, 'short', %lld, NULL, NULL, 0 FROM n",
           (long long)f.thread + 1);
  expect(&f, 1, 0, 0);
  assert_true(nsys_warned(&f, "95904 ranges were left out: more than 4096 were open"));
  assert_int_equal(range_of(&f, "short")->occurrences, 100000);
  nsys_end(&f);
}

/* 60000 names in a table that has to be read through for each of them would take minutes. */
TEST(a_table_of_strings_without_a_key_is_indexed)
{
  BEGIN(f);
  SYNC(&f, 7);
  nsys_sql(&f, "ALTER TABLE StringIds RENAME TO old; CREATE TABLE StringIds (id INTEGER, value TEXT); "
               "INSERT INTO StringIds SELECT * FROM old; DROP TABLE old");
  nsys_sql(&f,
           "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 60999) INSERT INTO StringIds "
           "SELECT i, 'range ' || (i %% 10) FROM n");
  nsys_sql(&f,
           "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 60999) INSERT INTO NVTX_EVENTS "
           "SELECT 100000 + 10 * i, 100005 + 10 * i, 159, NULL, %lld, NULL, i, 0 FROM n",
           (long long)f.thread);
  alarm(60);
  expect(&f, 1, 0, 0);
  alarm(0);
  assert_int_equal(range_of(&f, "range 3")->occurrences, 6000);
  nsys_end(&f);
}

TEST(a_view_in_the_place_of_a_table_is_not_run)
{
  BEGIN(f);
  SYNC(&f, 7);
  nsys_sql(&f, "DROP TABLE NVTX_EVENTS");
  nsys_sql(
      &f,
      "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, "
      "59 AS eventType, 1 AS globalTid FROM n");
  expect(&f, 1, 0, 0); /* or it would never end */
  assert_true(nsys_warned(&f, "NVTX ranges"));
  nsys_end(&f);
}

TEST(a_table_without_a_needed_column_is_an_error_that_names_it)
{
  BEGIN(f);
  SYNC(&f, 7);
  nsys_sql(&f, "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN globalTid");
  nsys_read(&f, SC_ERR_FORMAT);
  assert_non_null(strstr(f.error.message, "CUPTI_ACTIVITY_KIND_RUNTIME has no column globalTid"));
  assert_int_equal(f.findings->process_count, 0);
  nsys_end(&f);
}

TEST(another_database_is_told_from_an_export)
{
  BEGIN(f);
  sqlite3_close(f.db);
  unlink(f.path);
  assert_int_equal(sqlite3_open(f.path, &f.db), SQLITE_OK);
  nsys_sql(&f, "CREATE TABLE holidays (day)");
  nsys_read(&f, SC_ERR_FORMAT);
  assert_non_null(strstr(f.error.message, "no Nsight Systems export"));
  nsys_end(&f);
}

/* Every kind of cut and of flipped byte gives findings or an error, never a crash (run under the sanitizers as well).
 */
TEST(damaged_files_give_an_error_or_findings)
{
  BEGIN(f);
  for (int i = 0; i < 40; ++i) {
    D2H(&f, 7, PAGEABLE);
    SYNC(&f, 7);
    range(&f, f.now - 500, f.now, 159, "some range");
  }
  sqlite3_close(f.db);
  f.db = NULL;
  FILE *file = fopen(f.path, "rb");
  assert_non_null(file);
  static unsigned char bytes[1 << 20], changed[1 << 20];
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_in_range(size, 20000, sizeof bytes - 1);
  const char *wanted = getenv("SC_DAMAGE_ROUNDS"); /* by hand: many more */
  unsigned seed = 12345, errors = 0;
  int rounds = wanted ? atoi(wanted) : 400;
  for (int round = 0; round < rounds; ++round) {
    size_t length = round % 4 == 0 ? (size_t)rand_r(&seed) % size : size;
    memcpy(changed, bytes, size);
    for (int i = 0; i < round % 4 * 8; ++i)
      changed[(size_t)rand_r(&seed) % (round % 2 ? 8192 : size)] = (unsigned char)rand_r(&seed);
    file = fopen(f.path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(changed, 1, length, file), length);
    fclose(file);
    struct sc_findings *findings = sc_findings_new();
    struct sc_error error = {0};
    enum sc_status status = sc_import_nsys(f.path, NULL, findings, &error);
    if (status != SC_OK) {
      ++errors;
      assert_true(error.message[0] != '\0');
      assert_non_null(strstr(error.message, f.path));
    }
    sc_findings_free(findings);
  }
  assert_in_range(errors, rounds / 4, rounds);
  nsys_end(&f);
}

TEST(reading_leaves_nothing_beside_the_file_and_changes_nothing)
{
  BEGIN(f);
  SYNC(&f, 7);
  char other[160];
  struct stat before, after;
  assert_int_equal(chmod(f.path, 0400), 0);
  assert_int_equal(stat(f.path, &before), 0);
  expect(&f, 1, 0, 0);
  assert_int_equal(stat(f.path, &after), 0);
  assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
  static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
  for (size_t i = 0; i < SC_COUNTOF(suffixes); ++i) {
    snprintf(other, sizeof other, "%s%s", f.path, suffixes[i]);
    assert_int_not_equal(access(other, F_OK), 0);
  }
  nsys_end(&f);
}

TEST(a_path_with_characters_of_uris_is_opened)
{
  BEGIN(f);
  SYNC(&f, 7);
  char odd[160];
  snprintf(odd, sizeof odd, "%s?mode=rw#%%41", f.path);
  assert_int_equal(rename(f.path, odd), 0);
  struct sc_findings *findings = sc_findings_new();
  struct sc_error error = {0};
  if (sc_import_nsys(odd, NULL, findings, &error) != SC_OK)
    fail_msg("%s", error.message);
  assert_int_equal(findings->processes[0].counts.syncs, 1);
  sc_findings_free(findings);
  unlink(odd);
  nsys_end(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_async_copy_to_pinned_memory_is_no_sync),
      cmocka_unit_test(a_pinned_copy_launches_and_a_synchronise_are_one),
      cmocka_unit_test(a_pageable_copy_and_its_synchronise_are_one),
      cmocka_unit_test(two_pageable_copies_and_a_synchronise_are_two),
      cmocka_unit_test(a_pageable_copy_a_launch_and_a_synchronise_are_two),
      cmocka_unit_test(a_synchronise_of_another_stream_does_not_merge),
      cmocka_unit_test(a_blocking_copy_and_its_own_synchronise_are_one_copy),
      cmocka_unit_test(device_and_event_synchronises_count_and_do_not_merge),
      cmocka_unit_test(waiting_on_the_device_for_an_event_is_no_host_wait),
      cmocka_unit_test(a_synchronise_is_known_by_its_call_and_not_by_its_type),
      cmocka_unit_test(an_upload_and_its_synchronise_are_a_blocking_upload),
      cmocka_unit_test(a_copy_on_one_thread_and_a_synchronise_on_another_do_not_merge),
      cmocka_unit_test(a_copy_whose_work_is_missing_is_uncertain),
      cmocka_unit_test(managed_memory_moved_by_the_driver_is_no_copy_of_a_call),
      cmocka_unit_test(queries_that_were_not_ready_and_then_were_are_a_poll_wait),
      cmocka_unit_test(a_refused_synchronise_is_failed),
      cmocka_unit_test(work_that_is_captured_into_a_graph_is_none),
      cmocka_unit_test(a_driver_call_inside_a_runtime_call_belongs_to_it),
      cmocka_unit_test(frees_are_judged_where_memory_use_was_recorded),
      cmocka_unit_test(push_pop_ranges_nest_by_their_times),
      cmocka_unit_test(the_range_that_ends_the_warm_up_is_looked_for_on_all_threads),
      cmocka_unit_test(a_start_end_range_counts_for_the_thread_that_started_it),
      cmocka_unit_test(a_range_without_an_end_is_unfinished),
      cmocka_unit_test(domains_and_registered_names_are_looked_up),
      cmocka_unit_test(the_numbers_of_emit_nvtx_are_left_out_of_names),
      cmocka_unit_test(call_chains_are_the_native_frames_of_sites),
      cmocka_unit_test(a_drain_gap_reaches_from_the_last_work_to_the_next),
      cmocka_unit_test(work_on_another_stream_leaves_no_gap),
      cmocka_unit_test(without_device_work_there_are_no_drain_gaps),
      cmocka_unit_test(the_device_of_a_synchronise_is_that_of_its_contexts_work),
      cmocka_unit_test(processes_are_told_apart_and_named),
      cmocka_unit_test(one_process_has_the_command_that_was_profiled),
      cmocka_unit_test(times_are_those_of_the_session_and_the_day_is_known),
      cmocka_unit_test(missing_tables_are_said_to_be_not_recorded),
      cmocka_unit_test(an_export_without_cuda_calls_is_unmeasured_and_not_zero),
      cmocka_unit_test(enumerations_that_are_missing_have_their_usual_numbers),
      cmocka_unit_test(work_of_no_named_process_is_used_if_there_is_only_one),
      cmocka_unit_test(a_training_on_two_gpus_counts_as_written_down),
      cmocka_unit_test(an_export_of_six_tables_counts_as_written_down),
      cmocka_unit_test(rows_with_wrong_types_are_left_out_and_counted),
      cmocka_unit_test(calls_at_impossible_times_are_lost),
      cmocka_unit_test(changes_that_lie_beside_the_file_are_not_passed_over),
      cmocka_unit_test(calls_whose_name_is_missing_are_told),
      cmocka_unit_test(huge_and_strange_texts_are_taken),
      cmocka_unit_test(very_many_open_ranges_are_cut_and_told),
      cmocka_unit_test(a_table_of_strings_without_a_key_is_indexed),
      cmocka_unit_test(a_view_in_the_place_of_a_table_is_not_run),
      cmocka_unit_test(a_table_without_a_needed_column_is_an_error_that_names_it),
      cmocka_unit_test(another_database_is_told_from_an_export),
      cmocka_unit_test(damaged_files_give_an_error_or_findings),
      cmocka_unit_test(reading_leaves_nothing_beside_the_file_and_changes_nothing),
      cmocka_unit_test(a_path_with_characters_of_uris_is_opened),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
