/* SPDX-License-Identifier: Apache-2.0
 * How fast an Nsight Systems export becomes findings, and whether memory grows with it. Writes databases of two sizes
 * as nsys export makes them, reads each in a process of its own, and prints rows a second and the largest resident set.
 * The counts are checked, too.
 *
 *   bench_nsys [--rows N,M] [--folder DIR] */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "import/import.h"

#define LIMIT_ROWS 1e6 /* a second of one core */
#define THREADS 4
#define THREAD(n) (((int64_t)1 << 48) + ((int64_t)4321 << 24) + 4321 + (n))
#define PROCESS (((int64_t)1 << 48) + ((int64_t)4321 << 24))

static void die(const char *what, const char *why)
{
  fprintf(stderr, "bench_nsys: %s: %s\n", what, why);
  exit(2);
}

/* ---- a database: an op is a range with three launches and an upload; every fourth one reads a value back -----------
 */

enum { RUNTIME, KERNEL, MEMCPY, SYNC, NVTX, TABLES };
static const char *const inserts[TABLES] = {
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1,?2,0,?3,?4,?5,0,NULL)",
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
    "(?1,?2,0,1,NULL,7,?3,?4,1,1,1,0,32,0,0,0,128,1,1,128,1,1,0,0,0,0,0,0,NULL)",
    ("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY "
     "(start,end,deviceId,contextId,streamId,correlationId,globalPid,bytes,copyKind,"
     "srcKind,dstKind,copyCount) VALUES (?1,?2,0,1,7,?3,?4,4096,?5,?6,?7,1)"),
    "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (?1,?2,0,1,NULL,7,?3,?4,NULL,3,4294967295,0)",
    "INSERT INTO NVTX_EVENTS VALUES "
    "(?1,?2,59,NULL,NULL,NULL,?3,?4,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL)",
};
static const char schema[] =
    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "INSERT INTO StringIds VALUES "
    "(1,'cudaLaunchKernel_v7000'),(2,'cudaMemcpyAsync_v3020'),(3,'cudaStreamSynchronize_v3020'),"
    "(4,'cudaEventRecord_v3020');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT "
    "NULL, "
    "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId "
    "INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, greenContextId, streamId, "
    "correlationId, "
    "globalPid, demangledName, shortName, mangledName, launchType, registersPerThread, staticSharedMemory, "
    "dynamicSharedMemory, localMemoryPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, localMemoryTotal, gridId, "
    "sharedMemoryExecuted, graphNodeId, graphId, clusterX, clusterY);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, greenContextId, streamId, "
    "correlationId, "
    "globalPid, bytes, copyKind, deprecatedSrcId, srcKind, dstKind, srcDeviceId, srcContextId, dstDeviceId, "
    "dstContextId, "
    "migrationCause, graphNodeId, virtualAddress, copyCount);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, deviceId, contextId, greenContextId, streamId, "
    "correlationId, globalPid, deprecatedSyncType, syncType, eventId, eventSyncId);"
    "CREATE TABLE NVTX_EVENTS (start, end, eventType, rangeId, category, color, text, globalTid, endGlobalTid, textId, "
    "domainId, uint64Value, int64Value, doubleValue, uint32Value, int32Value, floatValue, jsonTextId, jsonText, "
    "binaryData);";

struct database {
  sqlite3 *db;
  sqlite3_stmt *insert[TABLES];
  int64_t now, correlation;
  uint64_t rows, syncs;
};

static void insert(struct database *d, int table, int count, const int64_t *values, const char *text)
{
  for (int i = 0; i < count; ++i)
    sqlite3_bind_int64(d->insert[table], i + 1, values[i]);
  if (text)
    sqlite3_bind_text(d->insert[table], 3, text, -1, SQLITE_TRANSIENT);
  if (sqlite3_step(d->insert[table]) != SQLITE_DONE)
    die("cannot write the database", sqlite3_errmsg(d->db));
  sqlite3_reset(d->insert[table]);
  ++d->rows;
}

static void call(struct database *d, int thread, int64_t name)
{
  insert(d, RUNTIME, 5, (int64_t[]){d->now, d->now + 4000, THREAD(thread), ++d->correlation, name}, NULL);
  d->now += 5000;
}

static void work(struct database *d, int table, int count, int64_t kind, int64_t from, int64_t to)
{
  insert(d, table, count, (int64_t[]){d->now, d->now + 3000, d->correlation, PROCESS, kind, from, to}, NULL);
}

static void op(struct database *d, int thread, uint64_t number)
{
  char name[64];
  int64_t start = d->now;
  for (int i = 0; i < 3; ++i) {
    call(d, thread, 1);
    work(d, KERNEL, 4, 0, 0, 0);
  }
  call(d, thread, 4);
  call(d, thread, 2);
  work(d, MEMCPY, 7, 1, 1, 2);
  if (number % 4 == 0) {
    call(d, thread, 2);
    work(d, MEMCPY, 7, 2, 2, 1);
    call(d, thread, 3);
    work(d, SYNC, 4, 0, 0, 0);
    ++d->syncs;
  }
  snprintf(name, sizeof name, "aten::op%d, op_id = %" PRIu64, (int)(number % 50), number);
  insert(d, NVTX, 4, (int64_t[]){start, d->now, 0, THREAD(thread)}, name);
}

static uint64_t write_database(const char *path, uint64_t *rows)
{
  struct database d = {.now = 1000};
  char *message = NULL;
  if (sqlite3_open(path, &d.db) != SQLITE_OK || sqlite3_exec(d.db, schema, NULL, NULL, &message) != SQLITE_OK)
    die("cannot write the database", message ? message : sqlite3_errmsg(d.db));
  for (int i = 0; i < TABLES; ++i) {
    if (sqlite3_prepare_v2(d.db, inserts[i], -1, &d.insert[i], NULL) != SQLITE_OK)
      die(inserts[i], sqlite3_errmsg(d.db));
  }
  sqlite3_exec(d.db, "BEGIN", NULL, NULL, NULL);
  for (uint64_t i = 0; d.rows < *rows; ++i)
    op(&d, (int)(i % THREADS), i);
  if (sqlite3_exec(d.db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
    die("cannot write the database", sqlite3_errmsg(d.db));
  for (int i = 0; i < TABLES; ++i)
    sqlite3_finalize(d.insert[i]);
  sqlite3_close(d.db);
  *rows = d.rows;
  return d.syncs;
}

/* ---- reading
 * ---------------------------------------------------------------------------------------------------------- */

/* In a process of its own, so that its largest resident set is that of this file alone. */
static void read_database(const char *path, uint64_t want_syncs)
{
  struct sc_error err = {0};
  struct sc_findings *findings = sc_findings_new();
  if (!findings || sc_import_nsys(path, NULL, findings, &err) != SC_OK)
    die("cannot read the database", findings ? err.message : "out of memory");
  if (findings->process_count != 1 || findings->processes[0].counts.syncs != want_syncs ||
      findings->processes[0].counts.read_backs != want_syncs)
    die("wrong count", "the importer is broken");
  sc_findings_free(findings);
}

static double seconds(const struct timeval *time) { return (double)time->tv_sec + (double)time->tv_usec / 1e6; }

static bool measure(const char *folder, uint64_t rows)
{
  char path[4096];
  struct stat info;
  struct rusage usage;
  int status;
  double cpu = 0;
  long rss = 0;
  snprintf(path, sizeof path, "%s/bench-nsys-%d.sqlite", folder, (int)getpid());
  uint64_t syncs = write_database(path, &rows);
  if (stat(path, &info) != 0)
    die(path, strerror(errno));
  for (int i = 0; i < 3; ++i) { /* the first one reads the file into the page cache; the least disturbed one counts */
    pid_t pid = fork();
    if (pid == 0) {
      read_database(path, syncs);
      _exit(0);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
      die("the reading process", "did not end well");
    double this_cpu = seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
    cpu = i == 0 || this_cpu < cpu ? this_cpu : cpu;
    rss = usage.ru_maxrss > rss ? usage.ru_maxrss : rss;
  }
  unlink(path);
  printf("%9" PRIu64 " rows %6.0f MB: %5.2f M rows/s of one core (%.2f s cpu), max RSS %.0f MiB\n", rows,
         (double)info.st_size / 1e6, (double)rows / cpu / 1e6, cpu, (double)rss / 1024);
  return (double)rows / cpu >= LIMIT_ROWS;
}

int main(int argc, char **argv)
{
  static const struct option options[] = {
      {"rows", required_argument, NULL, 'r'}, {"folder", required_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};
  const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", *list = "1000000,4000000";
  uint64_t *rows;
  size_t count;
  struct sc_error err;
  bool fast = true;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (c == 'r')
      list = optarg;
    else if (c == 'f')
      folder = optarg;
    else
      return 2;
  }
  if (sc_parse_u64_list(list, 100000000, &rows, &count, &err) != SC_OK)
    die("--rows", err.message);
  for (size_t i = 0; i < count; ++i)
    fast &= measure(folder, rows[i]);
  free(rows);
  if (!fast)
    fprintf(stderr, "bench_nsys: slower than %.0f rows a second\n", LIMIT_ROWS);
  return fast ? 0 : 1;
}
