/* SPDX-License-Identifier: Apache-2.0
 * How fast a trace becomes findings, and whether memory grows with it. Writes traces of two sizes with the tracer's
 * writer, reads each in a process of its own, and prints records a second and the largest resident set. The counts are
 * checked, too.
 *
 *   bench_analysis [--records N,M] [--folder DIR] */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/analysis.h"

#define EXPERTS 8
#define LAYERS 8
#define S1 0x5000u

enum { COPY = 1, SYNC, QUERY };

struct shape { /* what one trace is made of */
  const char *name, *text;
  void (*fill)(struct sc_writer_thread *thread, uint64_t records, uint64_t *syncs);
};

static void die(const char *what, const char *why)
{
  fprintf(stderr, "bench_analysis: %s: %s\n", what, why);
  exit(2);
}

static uint64_t now_ns = 1000000;

static void call(struct sc_writer_thread *thread, uint32_t api, uint64_t bytes, uint8_t direction, uint8_t memory)
{
  struct sc_record_call *record = sc_writer_reserve(thread, 1);
  if (!record)
    die("cannot write the trace", "no room");
  struct sc_record_head head = {.kind = SC_RECORD_CALL, .units = 1};
  *record = (struct sc_record_call){.head = head,
                                    .start_ns = now_ns,
                                    .duration_ns = 5000,
                                    .stream = S1,
                                    .bytes = bytes,
                                    .api = api,
                                    .direction = direction,
                                    .memory = memory};
  now_ns += 6000;
  sc_writer_commit(thread, 1);
}

static void range(struct sc_writer_thread *thread, enum sc_record_kind kind, uint32_t name)
{
  struct sc_record_range *record = sc_writer_reserve(thread, 1);
  if (!record)
    die("cannot write the trace", "no room");
  struct sc_record_head head = {.kind = (uint16_t)kind, .units = 1};
  *record = (struct sc_record_range){.head = head, .time_ns = now_ns, .name = name, .domain = 1};
  now_ns += 100;
  sc_writer_commit(thread, 1);
}

static void read_back(struct sc_writer_thread *thread)
{
  sc_writer_submission(thread, true);
  call(thread, COPY, 1, SC_DIRECTION_D2H, SC_MEMORY_PINNED | SC_MEMORY_DEVICE << 4);
  call(thread, SYNC, 0, 0, 0);
}

/* Calls alone: what a program without NVTX ranges leaves. */
static void fill_calls(struct sc_writer_thread *thread, uint64_t records, uint64_t *syncs)
{
  for (uint64_t i = 0; i < records / 2; ++i) {
    read_back(thread);
    ++*syncs;
  }
}

/* The masked loop as the probe makes it: half of all records are range records, in 4 levels below a forward. */
static void fill_masked(struct sc_writer_thread *thread, uint64_t records, uint64_t *syncs)
{
  enum { FORWARD = 2, ANY, NONZERO, MASK, FIRST_LAYER, FIRST_EXPERT = FIRST_LAYER + LAYERS };
  const uint64_t of_forward = 2 + LAYERS * (2 + EXPERTS * (2 + 3 * 4));
  for (uint64_t done = 0; done + of_forward <= records; done += of_forward) {
    range(thread, SC_RECORD_RANGE_PUSH, FORWARD);
    for (uint32_t layer = 0; layer < LAYERS; ++layer) {
      range(thread, SC_RECORD_RANGE_PUSH, FIRST_LAYER + layer);
      for (uint32_t expert = 0; expert < EXPERTS; ++expert) {
        range(thread, SC_RECORD_RANGE_PUSH, FIRST_EXPERT + expert);
        for (uint32_t op = ANY; op <= MASK; ++op) {
          range(thread, SC_RECORD_RANGE_PUSH, op);
          read_back(thread);
          ++*syncs;
          range(thread, SC_RECORD_RANGE_POP, 0);
        }
        range(thread, SC_RECORD_RANGE_POP, 0);
      }
      range(thread, SC_RECORD_RANGE_POP, 0);
    }
    range(thread, SC_RECORD_RANGE_POP, 0);
  }
}

static void define_names(struct sc_writer_thread *thread)
{
  static const char *const names[] = {"synccount", "forward", "any", "nonzero", "mask-index"};
  uint32_t id = 0;
  char name[32];
  sc_writer_api(thread, COPY, 2, 41, SC_OP_COPY_ASYNC, "cudaMemcpyAsync_v3020");
  sc_writer_api(thread, SYNC, 2, 131, SC_OP_SYNC_STREAM, "cudaStreamSynchronize_v3020");
  for (size_t i = 0; i < SC_COUNTOF(names); ++i)
    sc_writer_text(thread, SC_RECORD_STRING, ++id, names[i], strlen(names[i]));
  for (int i = 0; i < LAYERS + EXPERTS; ++i) {
    int length = snprintf(name, sizeof name, i < LAYERS ? "layer:%d" : "expert:%d", i < LAYERS ? i : i - LAYERS);
    sc_writer_text(thread, SC_RECORD_STRING, ++id, name, (size_t)length);
  }
}

static uint64_t write_trace(const char *path, const struct shape *shape, uint64_t records)
{
  struct sc_writer_options options = {.path = path};
  struct sc_writer *writer;
  struct sc_error err;
  uint64_t syncs = 0;
  if (sc_writer_open(&options, &writer, &err) != SC_OK)
    die("cannot write the trace", err.message);
  struct sc_writer_thread *thread = sc_writer_thread_begin(writer);
  if (!thread)
    die("cannot write the trace", "no room");
  define_names(thread);
  shape->fill(thread, records, &syncs);
  sc_writer_thread_end(thread);
  if (sc_writer_live(writer)->lost_records)
    die("cannot write the trace", "the disk is full");
  sc_writer_close(writer);
  return syncs;
}

static double seconds(const struct timeval *time) { return (double)time->tv_sec + (double)time->tv_usec / 1e6; }

/* In a process of its own, so that its largest resident set is that of this trace alone. */
static void read_trace(const char *path, uint64_t want_syncs)
{
  struct sc_reader *reader = NULL;
  struct sc_error err = {0};
  struct sc_findings *findings = sc_findings_new();
  if (!findings || sc_reader_open(path, &reader, &err) != SC_OK ||
      sc_analysis_read(reader, NULL, findings, &err) != SC_OK)
    die("cannot read the trace", findings ? err.message : "out of memory");
  if (findings->processes[0].counts.syncs != want_syncs || findings->lost_records || findings->lost_chunks)
    die("wrong count", "the analysis is broken");
  sc_findings_free(findings);
  sc_reader_close(reader);
}

static void measure(const char *folder, const struct shape *shape, uint64_t records)
{
  char path[4096];
  struct stat info;
  struct rusage usage;
  int status;
  snprintf(path, sizeof path, "%s/bench-analysis-%d.sctrace", folder, (int)getpid());
  uint64_t syncs = write_trace(path, shape, records);
  if (stat(path, &info) != 0)
    die(path, strerror(errno));
  double wall = 0, cpu = 0;
  long rss = 0;
  for (int i = 0; i < 3; ++i) { /* the first one reads the file into the page cache; the least disturbed one counts */
    uint64_t start = sc_clock_mono_ns();
    pid_t pid = fork();
    if (pid == 0) {
      read_trace(path, syncs);
      _exit(0);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
      die("the reading process", "did not end well");
    double this_wall = (double)(sc_clock_mono_ns() - start) / 1e9,
           this_cpu = seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
    wall = i == 0 || this_wall < wall ? this_wall : wall;
    cpu = i == 0 || this_cpu < cpu ? this_cpu : cpu;
    rss = usage.ru_maxrss > rss ? usage.ru_maxrss : rss;
  }
  unlink(path);
  printf("  %9" PRIu64 " records %6.0f MB: %6.1f M records/s of one core (%.3f s cpu, %.3f s wall), max RSS %.1f MiB\n",
         records, (double)info.st_size / 1e6, (double)records / cpu / 1e6, cpu, wall, (double)rss / 1024);
  fflush(stdout);
}

int main(int argc, char **argv)
{
  static const struct option options[] = {
      {"records", required_argument, NULL, 'r'}, {"folder", required_argument, NULL, 'f'}, {0}};
  static const struct shape shapes[] = {
      {"calls", "a copy and a synchronise, no ranges", fill_calls},
      {"masked", "the masked loop with its NVTX ranges: about half are range records", fill_masked},
  };
  const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", *list = "2000000,20000000";
  uint64_t *records;
  size_t count;
  struct sc_error err;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (option == 'r')
      list = optarg;
    else if (option == 'f')
      folder = optarg;
    else
      return 2;
  }
  if (sc_parse_u64_list(list, UINT64_C(1) << 40, &records, &count, &err) != SC_OK)
    die("--records", err.message);
  for (size_t i = 0; i < SC_COUNTOF(shapes); ++i) {
    printf("%s: %s\n", shapes[i].name, shapes[i].text);
    fflush(stdout);
    for (size_t j = 0; j < count; ++j)
      measure(folder, &shapes[i], records[j]);
  }
  free(records);
  return 0;
}
