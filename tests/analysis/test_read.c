/* SPDX-License-Identifier: Apache-2.0
 * From a trace file to findings: the whole way through writer and reader, what the process was, and what was lost. */
#include "test_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "trace/make_trace.h"

#define S1 0x5000u

struct read {
  struct sc_reader *reader;
  struct sc_findings *findings;
  struct sc_process *process;
};

static struct read read_trace_as(struct make_trace *t, const struct sc_analysis_options *options)
{
  struct read r = {.reader = mt_reader(t), .findings = sc_findings_new()};
  struct sc_error err = {0};
  if (sc_analysis_read(r.reader, options, r.findings, &err) != SC_OK)
    fail_msg("%s", err.message);
  assert_int_equal(r.findings->process_count, 1);
  r.process = &r.findings->processes[0];
  return r;
}

static struct read read_trace(struct make_trace *t) { return read_trace_as(t, NULL); }

static void done(struct read *r, struct make_trace *t)
{
  sc_findings_free(r->findings);
  sc_reader_close(r->reader);
  mt_free(t);
}

static bool warned(const struct read *r, const char *text)
{
  for (size_t i = 0; i < r->findings->warning_count; ++i) {
    if (strstr(r->findings->warnings[i], text))
      return true;
  }
  return false;
}

static const struct sc_range_findings *range_of(const struct read *r, const char *path)
{
  for (size_t i = 0; i < r->process->range_count; ++i) {
    if (strcmp(r->process->ranges[i].path, path) == 0)
      return &r->process->ranges[i];
  }
  fail_msg("no range \"%s\"", path);
  return NULL;
}

/* One .item() as PyTorch makes it. */
static void item(struct make_trace *t, struct sc_writer_thread *thread, uint64_t now_ns)
{
  mt_call(t, thread, "cudaMemcpyAsync_v3020",
          (struct mt_call){.start_ns = now_ns,
                           .duration_ns = 100,
                           .stream = S1,
                           .bytes = 1,
                           .direction = SC_DIRECTION_D2H,
                           .dst = SC_MEMORY_PINNED,
                           .src = SC_MEMORY_DEVICE});
  mt_call(t, thread, "cudaStreamSynchronize_v3020",
          (struct mt_call){.start_ns = now_ns + 200, .duration_ns = 50, .stream = S1});
}

static void a_trace_becomes_one_process(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *a = mt_thread(t), *b = mt_thread(t);
  mt_meta(a, "command", "python train.py");
  mt_meta(a, "rank", "3");
  mt_meta(a, "local_rank", "1");
  mt_name(b, "worker");
  mt_push(t, a, "synccount", "forward", 1000);
  mt_launch(a, 3);
  item(t, a, 2000);
  mt_pop(t, a, "synccount", 3000);
  mt_launch(b, 5);
  item(t, b, 4000);
  mt_launch(b, 2); /* after the last record: the chunk carries them */
  struct read r = read_trace(t);
  assert_string_equal(r.process->command, "python train.py");
  assert_string_equal(r.process->rank, "3");
  assert_string_equal(r.process->local_rank, "1");
  assert_string_equal(r.process->trace_path, sc_reader_path(r.reader));
  assert_int_equal(r.process->pid, sc_reader_header(r.reader)->pid);
  assert_true(r.process->ended_cleanly);
  assert_false(r.process->attached_late || r.process->simulated || r.findings->simulated);
  assert_true(r.process->wall_us > 0);
  assert_int_equal(r.process->counts.syncs, 2);
  assert_int_equal(r.process->counts.read_backs, 2);
  assert_int_equal(r.process->counts.wait_ns, 100);
  assert_int_equal(r.process->counts.launches, 10);
  assert_int_equal(r.process->thread_count, 2);
  assert_string_equal(r.process->threads[1].name, "worker");
  assert_int_equal(r.process->threads[1].launches, 7);
  assert_int_equal(range_of(&r, "forward")->total.launches, 3);
  assert_string_equal(range_of(&r, "forward")->level, "step");
  assert_int_equal(r.findings->warning_count, 0);
  assert_int_equal(r.findings->lost_records + r.findings->lost_chunks, 0);
  done(&r, t);
}

static void counts_do_not_depend_on_where_chunks_end(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *a = mt_thread(t);
  const unsigned items = 5000; /* far more than a chunk holds, with a range record now and then to move the boundary */
  for (unsigned i = 0; i < items; ++i) {
    bool in_range = i % 7 == 0;
    if (in_range)
      mt_push(t, a, NULL, "seventh", 1000 + i * 1000);
    mt_launch(a, i % 3);
    item(t, a, 1000 + i * 1000);
    mt_call(t, a, "cudaMemcpyAsync_v3020",
            (struct mt_call){.start_ns = 1500 + i * 1000,
                             .stream = S1,
                             .bytes = 8,
                             .direction = SC_DIRECTION_D2H,
                             .dst = SC_MEMORY_PAGEABLE,
                             .src = SC_MEMORY_DEVICE});
    mt_call(t, a, "cudaStreamSynchronize_v3020", (struct mt_call){.start_ns = 1600 + i * 1000, .stream = S1});
    if (in_range)
      mt_pop(t, a, NULL, 1900 + i * 1000);
  }
  struct read r = read_trace(t);
  assert_int_equal(r.process->counts.syncs, 2 * items);
  assert_int_equal(r.process->counts.by_class[SC_CLASS_PAGEABLE], items);
  assert_int_equal(r.process->counts.by_class[SC_CLASS_EXPLICIT], items);
  uint64_t launches = 0;
  for (unsigned i = 0; i < items; ++i)
    launches += i % 3;
  assert_int_equal(r.process->counts.launches, launches);
  const struct sc_range_findings *seventh = range_of(&r, "seventh");
  assert_int_equal(seventh->occurrences, (items + 6) / 7);
  assert_int_equal(seventh->min, 2);
  assert_int_equal(seventh->max, 2);
  done(&r, t);
}

static void a_killed_process_is_read_to_its_last_record(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *a = mt_thread(t);
  mt_push(t, a, NULL, "step", 900);
  for (unsigned i = 0; i < 10; ++i)
    item(t, a, 1000 + i * 1000);
  mt_launch(a, 4);
  mt_kill(t);
  struct read r = read_trace(t);
  assert_false(r.process->ended_cleanly);
  assert_int_equal(r.process->counts.syncs, 10);
  assert_int_equal(r.process->counts.launches, 4);
  assert_true(fabs(r.process->wall_us - (10250 - 900) / 1e3) < 1e-9); /* of the records: there is no end time */
  assert_int_equal(range_of(&r, "step")->unfinished, 1);
  assert_true(warned(&r, "did not end cleanly"));
  assert_int_equal(r.findings->lost_records, 0);
  done(&r, t);
}

static void late_and_simulated_are_said(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(SC_TRACE_LATE | SC_TRACE_SIMULATED);
  item(t, mt_thread(t), 1000);
  struct read r = read_trace(t);
  assert_true(r.process->attached_late && r.process->simulated && r.findings->simulated);
  assert_true(warned(&r, "recording began after the program had used CUDA"));
  done(&r, t);
}

static void a_late_free_of_memory_that_may_be_a_pools_is_uncertain(void **state)
{
  (void)state;
  for (unsigned late = 0; late <= 1; ++late) {
    struct make_trace *t = mt_new(late ? SC_TRACE_LATE : 0);
    struct sc_writer_thread *a = mt_thread(t);
    mt_call(t, a, "cudaFree_v3020", (struct mt_call){.start_ns = 1000, .object = 0x1000}); /* made before */
    mt_call(t, a, "cuMemFree_v2", (struct mt_call){.start_ns = 2000, .object = 0x2000});
    mt_call(t, a, "cudaFree_v3020", (struct mt_call){.start_ns = 3000, .object = 0x3000, .dst = SC_MEMORY_DEVICE});
    mt_call(t, a, "cudaFreeArray_v3020", (struct mt_call){.start_ns = 4000, .object = 0x4000}); /* never from a pool */
    mt_call(t, a, "cudaFreeHost_v3020", (struct mt_call){.start_ns = 5000, .object = 0x5000});
    struct read r = read_trace(t);
    assert_int_equal(r.process->counts.by_class[SC_CLASS_IMPLICIT], late ? 3 : 5);
    assert_int_equal(r.process->counts.uncertain, late ? 2 : 0);
    done(&r, t);
  }
}

static void cuda_launch_blocking_is_warned_of(void **state)
{
  (void)state;
  static const struct {
    const char *value;
    bool warns;
  } rows[] = {{"1", true}, {"0", false}};
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i) {
    struct make_trace *t = mt_new(0);
    struct sc_writer_thread *a = mt_thread(t);
    mt_meta(a, "launch_blocking", rows[i].value);
    item(t, a, 1000);
    struct read r = read_trace(t);
    assert_int_equal(warned(&r, "CUDA_LAUNCH_BLOCKING=1"), rows[i].warns);
    done(&r, t);
  }
}

static void notes_become_warnings_with_a_remedy(void **state)
{
  (void)state;
  static const struct {
    enum sc_note note;
    const char *text, *says, *remedy;
  } rows[] = {
      {SC_NOTE_TEXT, "SYNCCOUNT_MAX_TRACE=x is no size", "SYNCCOUNT_MAX_TRACE=x is no size", ""},
      {SC_NOTE_SLOT_TAKEN, "Kineto", "taken by Kineto", "Run the program without that profiler"},
      {SC_NOTE_SLOT_TAKEN, "", "taken by another tool", "Run the program without that profiler"},
      {SC_NOTE_NO_CUPTI, "looked for here and there", "looked for here and there", "SYNCCOUNT_CUPTI"},
      {SC_NOTE_OLD_CUPTI, "libcupti.so.12, version 18", "version 18", "newer libcupti.so"},
      {SC_NOTE_DRIVER, "cuptiSubscribe: 999", "cuptiSubscribe: 999", "nvidia-smi"},
      {SC_NOTE_UNKNOWN_MEMORY, "cuMemMap", "cuMemMap", "uncertain"},
  };
  for (size_t i = 0; i < SC_COUNTOF(rows); ++i) {
    struct make_trace *t = mt_new(0);
    struct sc_writer_thread *a = mt_thread(t);
    mt_note(a, rows[i].note, rows[i].text);
    mt_note(a, rows[i].note, rows[i].text); /* said once */
    struct read r = read_trace(t);
    assert_int_equal(r.findings->warning_count, 1);
    assert_non_null(strstr(r.findings->warnings[0], "process "));
    assert_non_null(strstr(r.findings->warnings[0], rows[i].says));
    assert_non_null(strstr(r.findings->warnings[0], rows[i].remedy));
    done(&r, t);
  }
}

static void losses_become_numbers_and_a_warning(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  item(t, mt_thread(t), 1000);
  sc_writer_live(mt_writer(t))->lost_records = 17;
  sc_writer_live(mt_writer(t))->lost_chunks = 2;
  sc_writer_live(mt_writer(t))->full = 1;
  struct read r = read_trace(t);
  assert_int_equal(r.findings->lost_records, 17);
  assert_int_equal(r.findings->lost_chunks, 2);
  assert_int_equal(r.process->lost_records, 17);
  assert_true(warned(&r, "17 records and 2 chunks were lost (the disk was full"));
  done(&r, t);
}

/* A byte in the middle of a full chunk is flipped: the chunk is lost, the rest is counted, and nothing merges across
 * the gap. */
static void damage_becomes_a_number_and_a_warning(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *a = mt_thread(t);
  for (unsigned i = 0; i < 3000; ++i)
    item(t, a, 1000 + i * 1000);
  size_t size;
  unsigned char *bytes = mt_bytes(t, &size);
  bytes[size / 2] ^= 0x10;
  struct sc_reader *reader;
  struct sc_error err = {0};
  assert_int_equal(sc_reader_open_memory(bytes, size, "damaged.sctrace", &reader, &err), SC_OK);
  struct read r = {.reader = reader, .findings = sc_findings_new()};
  assert_int_equal(sc_analysis_read(reader, NULL, r.findings, &err), SC_OK);
  r.process = &r.findings->processes[0];
  assert_int_equal(r.findings->lost_chunks, 1);
  assert_true(warned(&r, "the trace is damaged: 1 chunks"));
  assert_true(r.process->counts.syncs < 3000 && r.process->counts.syncs > 1000);
  done(&r, t);
  free(bytes);
}

static void nothing_is_concluded_across_a_lost_chunk(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *a = mt_thread(t);
  for (unsigned i = 0; i < 6000; ++i)
    mt_call(t, a, "cudaStreamSynchronize_v3020", (struct mt_call){.start_ns = 1000 + i * 1000, .stream = S1});
  size_t size;
  unsigned char *bytes = mt_bytes(t, &size);
  for (unsigned damaged = 0; damaged <= 1; ++damaged) {
    if (damaged)
      bytes[size / 2] ^= 0x10;
    struct sc_reader *reader;
    struct sc_findings *findings = sc_findings_new();
    assert_int_equal(sc_reader_open_memory(bytes, size, "damaged.sctrace", &reader, NULL), SC_OK);
    assert_int_equal(sc_analysis_read(reader, NULL, findings, NULL), SC_OK);
    assert_int_equal(findings->lost_chunks, damaged);
    /* The first synchronise, and the first after the gap, have none before them that would make them idle. */
    const struct sc_counts *counts = &findings->processes[0].counts;
    assert_int_equal(counts->syncs - counts->idle_syncs, 1 + damaged);
    sc_findings_free(findings);
    sc_reader_close(reader);
  }
  free(bytes);
  mt_free(t);
}

static void two_traces_are_two_processes(void **state)
{
  (void)state;
  struct make_trace *one = mt_new(0), *two = mt_new(0);
  struct sc_error err = {0};
  item(one, mt_thread(one), 1000);
  struct sc_writer_thread *thread = mt_thread(two);
  item(two, thread, 1000);
  item(two, thread, 2000);
  struct sc_findings *findings = sc_findings_new();
  struct sc_reader *first = mt_reader(one), *second = mt_reader(two);
  assert_int_equal(sc_analysis_read(first, NULL, findings, &err), SC_OK);
  assert_int_equal(sc_analysis_read(second, NULL, findings, &err), SC_OK);
  assert_int_equal(findings->process_count, 2);
  assert_int_equal(findings->processes[0].counts.syncs, 1);
  assert_int_equal(findings->processes[1].counts.syncs, 2);
  sc_findings_free(findings);
  sc_reader_close(first);
  sc_reader_close(second);
  mt_free(one);
  mt_free(two);
}

/* Every flipped byte of a small trace: no crash, no hang, and never more syncs than there were. */
static void every_flipped_byte_is_survived(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *a = mt_thread(t);
  mt_push(t, a, "synccount", "forward", 500);
  item(t, a, 1000);
  mt_range_start(t, a, NULL, "span", 9, 1500);
  item(t, a, 2000);
  mt_range_end(t, a, NULL, 9, 2500);
  mt_note(a, SC_NOTE_DRIVER, "something");
  mt_pop(t, a, "synccount", 3000);
  mt_kill(t); /* an open chunk has no checksum: the engine sees the damage */
  size_t size;
  unsigned char *bytes = mt_bytes(t, &size);
  for (size_t i = 0; i < size; ++i) {
    struct sc_reader *reader;
    unsigned char old = bytes[i];
    if (old == 0 && i % 64 > 1) /* most zeros are padding; one bit of them now and then is enough */
      continue;
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[i] = (unsigned char)(old ^ 1u << bit);
      if (sc_reader_open_memory(bytes, size, "flipped.sctrace", &reader, NULL) != SC_OK)
        continue;
      struct sc_findings *findings = sc_findings_new();
      assert_int_equal(sc_analysis_read(reader, NULL, findings, NULL), SC_OK);
      assert_true(findings->processes[0].counts.syncs <= 4);
      sc_findings_free(findings);
      sc_reader_close(reader);
    }
    bytes[i] = old;
  }
  free(bytes);
  mt_free(t);
}

static void profiler(struct make_trace *t, struct sc_writer_thread *thread, bool starts, uint64_t now_ns)
{
  mt_call(t, thread, starts ? "cudaProfilerStart_v4000" : "cudaProfilerStop_v4000",
          (struct mt_call){.start_ns = now_ns, .duration_ns = 100});
}

/* The profiler is one for all threads, whoever starts it, and a file holds its threads one after the other. */
static void a_capture_range_counts_all_threads_between_start_and_stop(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *a = mt_thread(t), *b = mt_thread(t);
  mt_push(t, a, NULL, "outer", 500);
  item(t, a, 1000);
  profiler(t, a, true, 2000);
  mt_push(t, a, NULL, "inner", 2200);
  item(t, a, 2500);
  mt_pop(t, a, NULL, 2900);
  profiler(t, a, false, 3000);
  item(t, a, 3500);
  profiler(t, a, true, 4000);
  profiler(t, a, true, 4200); /* changes nothing */
  item(t, a, 4500);
  mt_pop(t, a, NULL, 5500);
  item(t, b, 1500);
  item(t, b, 1850); /* its synchronise is made while the start has not returned */
  item(t, b, 2300);
  item(t, b, 2600);
  item(t, b, 3600);
  item(t, b, 4800);
  struct read r = read_trace_as(t, &(struct sc_analysis_options){.capture_range = true});
  assert_int_equal(r.process->counts.syncs, 2 + 3);
  assert_int_equal(range_of(&r, "outer")->total.syncs, 2);
  assert_int_equal(range_of(&r, "outer")->occurrences, 1);
  assert_int_equal(range_of(&r, "outer")->max, 2);
  assert_int_equal(range_of(&r, "outer/inner")->total.syncs, 1);
  assert_int_equal(r.process->threads[1].syncs, 3);
  assert_false(r.process->unmeasured);
  done(&r, t);
}

static void a_capture_range_that_never_began_measured_nothing(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *a = mt_thread(t);
  mt_push(t, a, NULL, "outer", 500);
  item(t, a, 1000);
  profiler(t, a, false, 1500); /* a stop alone */
  mt_pop(t, a, NULL, 2000);
  struct read r = read_trace_as(t, &(struct sc_analysis_options){.capture_range = true});
  assert_true(r.process->unmeasured);
  assert_int_equal(r.process->counts.syncs, 0);
  assert_int_equal(r.process->range_count, 0);
  assert_true(warned(&r, "never called cudaProfilerStart"));
  done(&r, t);
}

/* The range is on the first thread, at a time when the second has some of its steps behind it. */
static void the_end_of_the_warm_up_holds_for_all_threads(void **state)
{
  (void)state;
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *a = mt_thread(t), *b = mt_thread(t);
  for (uint64_t i = 0; i < 4; ++i) {
    mt_push(t, b, NULL, "synccount.step", 1000 * i + 1000);
    item(t, b, 1000 * i + 1100);
    mt_pop(t, b, NULL, 1000 * i + 1900);
  }
  mt_push(t, a, NULL, "train", 3000);
  mt_pop(t, a, NULL, 3001);
  struct read r = read_trace_as(t, &(struct sc_analysis_options){.from = "train"});
  assert_int_equal(r.process->steps, 4);
  assert_int_equal(r.process->warmup, 2);
  done(&r, t);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_trace_becomes_one_process),
      cmocka_unit_test(a_capture_range_counts_all_threads_between_start_and_stop),
      cmocka_unit_test(a_capture_range_that_never_began_measured_nothing),
      cmocka_unit_test(the_end_of_the_warm_up_holds_for_all_threads),
      cmocka_unit_test(counts_do_not_depend_on_where_chunks_end),
      cmocka_unit_test(a_killed_process_is_read_to_its_last_record),
      cmocka_unit_test(late_and_simulated_are_said),
      cmocka_unit_test(a_late_free_of_memory_that_may_be_a_pools_is_uncertain),
      cmocka_unit_test(cuda_launch_blocking_is_warned_of),
      cmocka_unit_test(notes_become_warnings_with_a_remedy),
      cmocka_unit_test(losses_become_numbers_and_a_warning),
      cmocka_unit_test(damage_becomes_a_number_and_a_warning),
      cmocka_unit_test(nothing_is_concluded_across_a_lost_chunk),
      cmocka_unit_test(two_traces_are_two_processes),
      cmocka_unit_test(every_flipped_byte_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
