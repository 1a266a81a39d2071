/* SPDX-License-Identifier: Apache-2.0
 * Every allocation fails once: the analysis says it is out of memory or does without, and leaks and crashes never (ASan
 * judges). */
#include "test_support.h"

#include <string.h>

#include "analysis/analysis.h"
#include "base/failing_alloc.h"

enum { COPY = 1, SYNC, FORWARD = 1, LAYER, EXPERT, ANY, RUN, DOMAIN, STEP };
static const char *const strings[] = {"forward",   "layer:0",       "expert:0", "any", "run:masked:E=1:T=1",
                                      "synccount", "synccount.step"};

static void range(struct sc_analysis *a, struct sc_analysis_thread *t, enum sc_record_kind kind, uint32_t name)
{
  struct sc_record_range record = {.head = {.kind = (uint16_t)kind, .units = 1, .submissions = 1, .launches = 1},
                                   .time_ns = 5,
                                   .handle = name,
                                   .name = name,
                                   .domain = DOMAIN};
  sc_analysis_record(a, t, &record.head);
}

static void call(struct sc_analysis *a, struct sc_analysis_thread *t, uint32_t api)
{
  struct sc_record_call record = {.head = {.kind = SC_RECORD_CALL, .units = 1},
                                  .start_ns = 5,
                                  .stream = 0x5000,
                                  .bytes = 1,
                                  .api = api,
                                  .direction = SC_DIRECTION_D2H,
                                  .memory = SC_MEMORY_UNKNOWN};
  sc_analysis_record(a, t, &record.head);
}

static void feed(struct sc_analysis *a, struct sc_analysis_thread *t)
{
  struct sc_record_text note = {
      .head = {.kind = SC_RECORD_NOTE, .units = 1}, .id = SC_NOTE_DRIVER, .length = 4, .text = "why"};
  static const uint32_t pushed[] = {RUN, FORWARD, LAYER, EXPERT, ANY};
  sc_analysis_record(a, t, &note.head);
  range(a, t, SC_RECORD_RANGE_START, STEP);
  for (size_t i = 0; i < SC_COUNTOF(pushed); ++i)
    range(a, t, SC_RECORD_RANGE_PUSH, pushed[i]);
  for (int i = 0; i < 3; ++i) {
    call(a, t, COPY);
    call(a, t, SYNC);
  }
  for (size_t i = 0; i < SC_COUNTOF(pushed); ++i)
    range(a, t, SC_RECORD_RANGE_POP, 0);
  call(a, t, COPY);
  range(a, t, SC_RECORD_RANGE_END, STEP);
}

static enum sc_status count_runs(struct sc_findings *f)
{
  struct sc_run *run = sc_array_push(&f->runs, &f->run_count, &f->run_cap, sizeof *run);
  if (!run)
    return SC_ERR_NOMEM;
  sc_run_init(run);
  run->variant = sc_strdup("masked");
  run->experts = run->tokens = run->layers = run->forwards = 1;
  run->hit = sc_calloc_array(1, sizeof *run->hit);
  if (!run->variant || !run->hit)
    return SC_ERR_NOMEM;
  run->hit[0] = 1;
  enum sc_status status = sc_runs_count(run, &f->processes[0], NULL);
  if (status == SC_OK && !(sc_runs_floor(f) && sc_runs_laws(f)))
    status = SC_ERR_NOMEM;
  return status;
}

/* The whole way. Everything is freed, wherever it stopped. */
static enum sc_status analyse(uint64_t *syncs)
{
  enum sc_status status = SC_ERR_NOMEM;
  struct sc_findings *findings = sc_findings_new();
  struct sc_analysis *a = sc_analysis_new(NULL);
  struct sc_analysis_thread *t = a ? sc_analysis_thread(a, 1, 100) : NULL;
  struct sc_process *process = findings ? sc_findings_process(findings) : NULL;
  bool ready = t && process && sc_analysis_thread_name(t, "main", 4) &&
               sc_analysis_api(a, COPY, SC_OP_NONE, "cudaMemcpyAsync") &&
               sc_analysis_api(a, SYNC, SC_OP_NONE, "cudaStreamSynchronize");
  for (uint32_t i = 0; ready && i < SC_COUNTOF(strings); ++i)
    ready = sc_analysis_string(a, i + 1, strings[i], strlen(strings[i]));
  if (ready) {
    feed(a, t);
    status = sc_analysis_finish(a, NULL, process, findings, NULL);
    if (status == SC_OK)
      status = count_runs(findings);
    if (status == SC_OK)
      *syncs = findings->runs[0].counts.syncs;
  }
  sc_analysis_free(a);
  sc_findings_free(findings);
  return status;
}

static void fail_each(bool only_one)
{
  uint64_t syncs = 0;
  assert_int_equal(analyse(&syncs), SC_OK);
  assert_int_equal(syncs, 3);
  long tried = 0;
  enum sc_status status;
  do {
    failing_alloc_begin(tried++, only_one);
    syncs = 0;
    status = analyse(&syncs);
    bool all_succeeded = !failing_alloc_end();
    if (status == SC_OK) {
      assert_int_equal(syncs, 3); /* never a wrong count instead */
      if (all_succeeded)
        break;
    } else {
      assert_int_equal(status, SC_ERR_NOMEM);
    }
  } while (tried < 10000);
  assert_true(tried > 40 && tried < 10000); /* it went through all of them */
}

static void every_failed_allocation_is_said(void **state)
{
  (void)state;
  fail_each(false);
}

static void one_failed_allocation_is_not_forgotten(void **state)
{
  (void)state;
  fail_each(true);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_failed_allocation_is_said),
      cmocka_unit_test(one_failed_allocation_is_not_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
