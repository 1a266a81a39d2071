/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: the analysis engine. Each 64 bytes of the input are a record as a damaged open chunk could hold it; what
 * must hold of any findings is checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS_MAX 4096 /* of one input: enough for every limit but the number of paths, which is lowered below */
#define THREADS 4
#define RANGES 24
#define must(truth) must_hold((truth), __LINE__)

static const char *const names[] = {
    "cudaStreamSynchronize_v3020",
    "cudaStreamSynchronize_ptsz_v7000",
    "cudaEventSynchronize",
    "cudaDeviceSynchronize_v3020",
    "cudaMemcpy_v3020",
    "cudaMemcpy_ptds_v7000",
    "cudaMemcpyAsync_v3020",
    "cuMemcpyDtoHAsync_v2",
    "cudaMemset_v3020",
    "cudaMemsetAsync_v3020",
    "cudaStreamQuery_v3020",
    "cudaEventQuery",
    "cudaFree_v3020",
    "cudaFreeHost_v3020",
    "cudaHostUnregister_v4000",
    "cudaFreeAsync_v11020",
    "cudaLaunchKernel_v7000",
    "cudaGraphLaunch_v10000",
    "cudaLaunchHostFunc_v10000",
    "cudaMemPrefetchAsync_v8000",
    "cuModuleUnload",
    "cuMemcpy",
    "cuUnheardOf",
};
static const char *const texts[] = {"synccount", "run:masked:E=4:T=1", "forward", "layer:0", "expert:0",
                                    "any",       "synccount.step",     "a/b",     "compiled:a", "profiler:torch"};

static void must_hold(bool truth, int line)
{
  if (truth)
    return;
  fprintf(stderr, "fuzz_analysis.c:%d does not hold\n", line);
  abort();
}

/* Names are in range more often than not, and small: random ids would never meet again. */
static void take(struct sc_analysis *analysis, const uint8_t *bytes)
{
  union {
    struct sc_record_head head;
    struct sc_record_call call;
    struct sc_record_range range;
  } record;
  memcpy(&record, bytes, sizeof record);
  struct sc_analysis_thread *thread = sc_analysis_thread(analysis, 1 + record.head.stack % THREADS, 100);
  must(thread != NULL);
  record.head.units = 1;
  record.head.kind = (uint16_t)(record.head.kind % 13);
  if (record.head.kind == 12)
    record.head.kind = SC_RECORD_MARK;
  if (record.head.kind == 11) {
    sc_analysis_gap(analysis, thread);
    return;
  }
  if (record.head.kind == SC_RECORD_CALL) {
    record.call.api = (record.call.api & ~0xffffu) | (record.call.api & 0xffffu) % (SC_COUNTOF(names) + 2);
    record.call.stream %= 5;
    record.call.object %= 5;
  } else if ((record.head.kind >= SC_RECORD_RANGE_PUSH && record.head.kind <= SC_RECORD_RANGE_END) ||
             record.head.kind == SC_RECORD_MARK) {
    record.range.name %= SC_COUNTOF(texts) + 2;
    record.range.domain %= 3;
    record.range.handle %= 16;
  }
  sc_analysis_record(analysis, thread, &record.head);
}

/* Sums may wrap with absurd submissions and durations; syncs cannot. */
static void check(const struct sc_process *process, size_t records)
{
  uint64_t classes = 0, of_threads = 0, outside = process->counts.syncs;
  for (size_t i = 0; i < SC_CLASS_COUNT; ++i)
    classes += process->counts.by_class[i];
  must(classes == process->counts.syncs && classes <= records);
  must(process->counts.read_backs + process->counts.blocking_uploads <= process->counts.syncs);
  must(process->counts.idle_syncs <= process->counts.syncs);
  must(process->counts.uncertain <= records && process->counts.failed <= records &&
       process->counts.poll_waits <= records);
  for (size_t i = 0; i < process->thread_count; ++i)
    of_threads += process->threads[i].syncs;
  must(of_threads == process->counts.syncs);
  for (size_t i = 0; i < process->range_count; ++i) {
    const struct sc_range_findings *range = &process->ranges[i];
    must(range->path && range->name && range->domain);
    must(range->self.syncs <= range->total.syncs && range->total.syncs <= process->counts.syncs);
    must(range->min <= range->max && range->unfinished <= range->occurrences && range->total.uncertain <= records);
    must(i == 0 || range->depth <= range[-1].depth + 1);
    if (!range->spanning) {
      must(range->self.syncs <= outside); /* every sync is in one push/pop range's own count, or in none */
      outside -= range->self.syncs;
    }
  }
  must(process->range_count <= 4 * RANGES); /* and what gathers the rest */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct sc_analysis_options options = {.max_ranges = RANGES};
  struct sc_analysis *analysis = sc_analysis_new(&options);
  struct sc_findings *findings = sc_findings_new();
  struct sc_process *process = findings ? sc_findings_process(findings) : NULL;
  size_t records = size / SC_TRACE_UNIT < RECORDS_MAX ? size / SC_TRACE_UNIT : RECORDS_MAX;
  must(analysis && process);
  for (uint32_t i = 0; i < SC_COUNTOF(names); ++i)
    must(sc_analysis_api(analysis, i, SC_OP_NONE, names[i]));
  for (uint32_t i = 0; i < SC_COUNTOF(texts); ++i)
    must(sc_analysis_string(analysis, i + 1, texts[i], strlen(texts[i])));
  for (size_t i = 0; i < records; ++i)
    take(analysis, data + i * SC_TRACE_UNIT);
  must(sc_analysis_finish(analysis, "fuzz: ", process, findings, NULL) == SC_OK);
  check(process, records);
  sc_analysis_free(analysis);
  sc_findings_free(findings);
  return 0;
}
