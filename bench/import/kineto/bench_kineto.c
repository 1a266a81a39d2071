/* SPDX-License-Identifier: Apache-2.0
 * How fast a PyTorch profiler trace becomes findings, and whether memory grows with it. Writes a trace in Kineto's
 * layout (operators, calls, flows, kernels with their arguments, copies, synchronises, Python functions with --stacks;
 * the host's operators first, then the rest, as Kineto has them), reads it in a process of its own, and prints
 * megabytes of JSON a second and the largest resident set. The counts are checked.
 *
 *   bench_kineto [--megabytes N,M] [--stacks] [--gzip] [--folder DIR] */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "import/import.h"

#define PID 4711
#define GROUPS_IN_STEP 512
#define GROUP_US 200.0
#define SPEED_LIMIT 150.0 /* MB/s */
#define RSS_LIMIT_MB 400.0

struct out {
  gzFile gzip;
  FILE *file;
  uint64_t bytes;
  bool first;
};

static void die(const char *what, const char *why)
{
  fprintf(stderr, "bench_kineto: %s: %s\n", what, why);
  exit(2);
}

static void SC_PRINTF(2, 3) put(struct out *out, const char *format, ...)
{
  char text[4096];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (out->gzip ? gzwrite(out->gzip, text, (unsigned)n) != n : fwrite(text, 1, (size_t)n, out->file) != (size_t)n)
    die("cannot write the trace", strerror(errno));
  out->bytes += (uint64_t)n;
}

static void head(struct out *out, const char *category, const char *name, int64_t pid, int64_t tid, double ts,
                 double dur)
{
  put(out,
      "%s\n  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %" PRId64 ", \"tid\": %" PRId64
      ",\n    \"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      ",
      out->first ? "" : ",", category, name, pid, tid, ts, dur);
  out->first = false;
}

static void tail(struct out *out) { put(out, "\n    }\n  }"); }

static void operator(struct out *out, const char *name, double ts, double dur, uint64_t id)
{
  head(out, "cpu_op", name, PID, PID, ts, dur);
  put(out,
      "\"External id\": %" PRIu64 ",\"Record function id\": 0, \"Ev Idx\": %" PRIu64
      ", \"Input Dims\": [[8, 128, 4096], [4096, 4096], []], \"Input type\": [\"c10::BFloat16\", \"c10::BFloat16\", "
      "\"Scalar\"]",
      id, id);
  tail(out);
}

static void python(struct out *out, const char *name, double ts, double dur, uint64_t id)
{
  head(out, "python_function", name, PID, PID, ts, dur);
  put(out, "\"Python parent id\": %" PRIu64 ", \"Python id\": %" PRIu64 ", \"Ev Idx\": %" PRIu64, id - 1, id, id);
  tail(out);
}

static void call(struct out *out, const char *name, double ts, double dur, uint64_t correlation)
{
  head(out, "cuda_runtime", name, PID, PID, ts, dur);
  put(out, "\"External id\": %" PRIu64 ",\"cbid\": 211, \"correlation\": %" PRIu64, correlation, correlation);
  tail(out);
  put(out,
      ",\n  {\n    \"ph\": \"s\", \"id\": %" PRIu64 ", \"pid\": %d, \"tid\": %d, \"ts\": %.3f,\n    \"cat\": \"ac2g\", "
      "\"name\": \"ac2g\"\n  }",
      correlation, PID, PID, ts);
}

static void kernel(struct out *out, double ts, double dur, uint64_t correlation)
{
  head(out, "kernel",
       "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>"
       "(cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8::Params)",
       0, 7, ts, dur);
  put(out,
      "\"External id\": %" PRIu64
      ",\"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": "
      "%" PRIu64 ",\n      \"registers per thread\": 96,\n      \"shared memory\": 49152,\n      \"blocks per SM\": "
      "7.757576,\n      \"warps per SM\": 62.060608,\n      \"grid\": [1024, 1, 1],\n      \"block\": [256, 1, 1],\n   "
      "   "
      "\"est. achieved occupancy %%\": 62",
      correlation, correlation);
  tail(out);
}

/* Four linear layers, and in one group of eight the read-back of one value. */
static void host_group(struct out *out, uint64_t group, bool stacks)
{
  double ts = 1000.0 + (double)group * GROUP_US;
  if (group % GROUPS_IN_STEP == 0) {
    char name[64];
    snprintf(name, sizeof name, "ProfilerStep#%" PRIu64, group / GROUPS_IN_STEP);
    head(out, "user_annotation", name, PID, PID, ts, GROUP_US * GROUPS_IN_STEP - 1);
    put(out, "\"External id\": %" PRIu64 ",\"Record function id\": 0, \"Ev Idx\": %" PRIu64, group, group);
    tail(out);
  }
  if (stacks) {
    python(out, "train.py(41): step", ts, 190, group * 16 + 1);
    python(out, "torch/nn/modules/module.py(1747): _call_impl", ts + 1, 188, group * 16 + 2);
    python(out, "model/moe.py(118): forward", ts + 2, 186, group * 16 + 3);
    for (int i = 0; i < 8; ++i)
      python(out, i % 2 ? "torch/nn/functional.py(2100): linear" : "<built-in function linear>", ts + 3 + i * 20, 19,
             group * 16 + 4 + (uint64_t)i);
  }
  for (int i = 0; i < 4; ++i) {
    operator(out, "aten::linear", ts + 5 + i * 40, 30, group * 8 + (uint64_t)i * 2);
    operator(out, "aten::addmm", ts + 6 + i * 40, 28, group * 8 + (uint64_t)i * 2 + 1);
  }
  if (group % 8 == 7) {
    operator(out, "aten::item", ts + 170, 14, group * 8);
    operator(out, "aten::_local_scalar_dense", ts + 171, 12, group * 8 + 1);
  }
}

static void device_group(struct out *out, uint64_t group)
{
  double ts = 1000.0 + (double)group * GROUP_US;
  uint64_t correlation = group * 8 + 1;
  for (int i = 0; i < 4; ++i, ++correlation) {
    call(out, "cudaLaunchKernel", ts + 10 + i * 40, 5, correlation);
    kernel(out, ts + 18 + i * 40, 20, correlation);
  }
  if (group % 8 != 7)
    return;
  call(out, "cudaMemcpyAsync", ts + 172, 4, correlation);
  head(out, "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 0, 7, ts + 175, 1);
  put(out,
      "\"External id\": %" PRIu64 ",\"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": %" PRIu64
      ",\n      \"bytes\": 4, \"memory bandwidth (GB/s)\": 0.0020",
      correlation, correlation);
  tail(out);
  call(out, "cudaStreamSynchronize", ts + 177, 5, correlation + 1);
}

static uint64_t write_trace(const char *path, uint64_t bytes, bool stacks, bool gzip, uint64_t *groups)
{
  /* How many groups make so many bytes: by what the first 64 take. */
  struct out probe = {.file = fopen("/dev/null", "w"), .first = true};
  if (!probe.file)
    die("cannot write to /dev/null", strerror(errno));
  for (uint64_t i = 0; i < 64; ++i) {
    host_group(&probe, 1000000 + i, stacks);
    device_group(&probe, 1000000 + i);
  }
  fclose(probe.file);
  *groups = bytes * 64 / probe.bytes / 8 * 8;
  struct out out = {.first = true};
  if (gzip)
    out.gzip = gzopen(path, "wb1");
  else
    out.file = fopen(path, "w");
  if (!out.gzip && !out.file)
    die("cannot write the trace", strerror(errno));
  put(&out, "\n{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"rank\": 3},\n  \"traceEvents\": [");
  for (uint64_t i = 0; i < *groups; ++i)
    host_group(&out, i, stacks);
  for (uint64_t i = 0; i < *groups; ++i)
    device_group(&out, i);
  put(&out, "\n  ],\n  \"baseTimeNanoseconds\": 1735632360000000000\n}\n");
  if (out.gzip ? gzclose(out.gzip) != Z_OK : fclose(out.file) != 0)
    die("cannot write the trace", strerror(errno));
  return out.bytes;
}

struct result {
  double seconds, cpu_seconds, rss_mb;
  uint64_t syncs, launches;
};

static void read_trace(const char *path, int fd)
{
  struct result result = {0};
  struct sc_error err = {0};
  struct sc_findings *findings = sc_findings_new();
  uint64_t start = sc_clock_mono_ns();
  if (!findings || sc_import_read(path, SC_IMPORT_KINETO, NULL, findings, &err) != SC_OK)
    die("cannot read the trace", err.message);
  result.seconds = (double)(sc_clock_mono_ns() - start) / 1e9;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  result.rss_mb = (double)usage.ru_maxrss / 1024;
  result.cpu_seconds = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
                       (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
  result.syncs = findings->processes[0].counts.syncs;
  result.launches = findings->processes[0].counts.launches;
  if (write(fd, &result, sizeof result) != (ssize_t)sizeof result)
    _exit(2);
  _exit(0);
}

static bool measure(const char *path, uint64_t megabytes, bool stacks, bool gzip)
{
  uint64_t groups;
  uint64_t bytes = write_trace(path, megabytes * 1000000, stacks, gzip, &groups);
  int ends[2];
  struct result result = {0};
  struct stat st;
  if (pipe(ends) != 0 || stat(path, &st) != 0)
    die("cannot start", strerror(errno));
  pid_t pid = fork();
  if (pid == 0)
    read_trace(path, ends[1]);
  close(ends[1]);
  ssize_t got = read(ends[0], &result, sizeof result);
  close(ends[0]);
  waitpid(pid, NULL, 0);
  unlink(path);
  if (got != (ssize_t)sizeof result)
    die("the reading process failed", "see above");
  double speed = (double)bytes / 1e6 / result.cpu_seconds; /* of one core: others may have had it in between */
  printf(
      "%8.0f MB of JSON%s%s: %6.2f s, %.2f s of CPU: %5.0f MB a second of CPU; largest resident set %.0f MB; %" PRIu64
      " syncs\n",
      (double)bytes / 1e6, gzip ? " in gzip" : "", stacks ? " with stacks" : "", result.seconds, result.cpu_seconds,
      speed, result.rss_mb, result.syncs);
  bool right = result.syncs == groups / 8 && result.launches == groups * 4;
  if (!right)
    printf("         WRONG: expected %" PRIu64 " syncs and %" PRIu64 " launches\n", groups / 8, groups * 4);
  return right && result.rss_mb < RSS_LIMIT_MB && (gzip || speed >= SPEED_LIMIT);
}

int main(int argc, char **argv)
{
  static const struct option options[] = {{"megabytes", required_argument, NULL, 'm'},
                                          {"stacks", no_argument, NULL, 's'},
                                          {"gzip", no_argument, NULL, 'z'},
                                          {"folder", required_argument, NULL, 'd'},
                                          {0}};
  const char *sizes = "100,1000", *folder = getenv("TMPDIR");
  bool stacks = false, gzip = false, ok = true;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
    case 'm': sizes = optarg; break;
    case 's': stacks = true; break;
    case 'z': gzip = true; break;
    case 'd': folder = optarg; break;
    default: return 2;
    }
  }
  uint64_t *list = NULL;
  size_t count = 0;
  struct sc_error err;
  if (sc_parse_u64_list(sizes, 1000000, &list, &count, &err) != SC_OK)
    die("--megabytes", err.message);
  char *path = sc_asprintf("%s/bench_kineto-%d.json", folder && *folder ? folder : "/tmp", (int)getpid());
  if (!path)
    die("cannot start", "out of memory");
  for (size_t i = 0; i < count; ++i)
    ok &= measure(path, list[i], stacks, gzip);
  free(path);
  free(list);
  return ok ? 0 : 1;
}
