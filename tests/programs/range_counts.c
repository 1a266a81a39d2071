/* SPDX-License-Identifier: Apache-2.0
 * range_counts TRACE...: every range of the traces with its counts by class, tab-separated under a header line. For
 * checks that compare the tracer's count of a range with what somebody else counted there. */
#include <stdio.h>
#include <string.h>

#include "analysis/analysis.h"

typedef unsigned long long llu;

static void print_range(const struct sc_process *process, const struct sc_range_findings *range) {
  const struct sc_counts *n = &range->total;
  struct sc_buf path = { 0 };
  sc_buf_put_printable(&path, range->path, strlen(range->path));
  printf("%llu\t%s\t%s\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\n", (llu)process->pid,
         path.failed ? "?" : path.data, range->domain != NULL ? range->domain : "", (llu)range->occurrences,
         (llu)n->syncs, (llu)n->by_class[SC_CLASS_EXPLICIT], (llu)n->by_class[SC_CLASS_COPY],
         (llu)n->by_class[SC_CLASS_PAGEABLE], (llu)n->by_class[SC_CLASS_IMPLICIT], (llu)n->read_backs,
         (llu)n->poll_waits, (llu)n->uncertain, (llu)n->failed, (llu)n->launches);
  sc_buf_free(&path);
}

int main(int argc, char **argv) {
  struct sc_findings *findings = sc_findings_new();
  struct sc_error error = { .message = "out of memory" };
  int status = findings == NULL ? 2 : 0;
  if (argc < 2) {
    fprintf(stderr, "usage: range_counts TRACE...\n");
    status = 2;
  }
  for (int i = 1; i < argc && status == 0; i++) {
    struct sc_reader *reader = NULL;
    if (sc_reader_open(argv[i], &reader, &error) != SC_OK || sc_analysis_read(reader, NULL, findings, &error) != SC_OK)
      status = 2;
    sc_reader_close(reader);
  }
  if (status != 0) {
    fprintf(stderr, "range_counts: %s\n", error.message);
    goto cleanup;
  }
  printf("pid\tpath\tdomain\toccurrences\tsyncs\texplicit\tcopy\tpageable\timplicit\tread_backs\tpoll_"
         "waits\tuncertain\tfailed\tlaunches\n");
  for (size_t i = 0; i < findings->process_count; i++)
    for (size_t j = 0; j < findings->processes[i].range_count; j++)
      print_range(&findings->processes[i], &findings->processes[i].ranges[j]);
  for (size_t i = 0; i < findings->warning_count; i++)
    fprintf(stderr, "range_counts: %s\n", findings->warnings[i]);
  if (findings->lost_records + findings->lost_chunks > 0) {
    fprintf(stderr, "range_counts: records were lost: these counts are too low\n");
    status = 3;
  }
cleanup:
  sc_findings_free(findings);
  return status;
}
