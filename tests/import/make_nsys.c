/* SPDX-License-Identifier: Apache-2.0
 * The tables as Nsight Systems 2026.2 makes them, without the columns that nobody reads. */
#include "import/make_nsys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char schema[] =
    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, "
    "globalTid "
    "INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, "
    "streamId "
    "INTEGER, correlationId INTEGER, globalPid INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, "
    "streamId "
    "INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind "
    "INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId "
    "INTEGER, "
    "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, "
    "endGlobalTid "
    "INTEGER, textId INTEGER, domainId INTEGER);"
    /* numbers of our own: they are to be joined by name */
    "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT INTO ENUM_CUDA_MEM_KIND VALUES "
    "(21,'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE'),(22,'CUDA_MEMOPR_MEMORY_KIND_PINNED'),"
    "(23,'CUDA_MEMOPR_MEMORY_KIND_DEVICE'),(24,'CUDA_MEMOPR_MEMORY_KIND_MANAGED'),(25,'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN'"
    ");"
    "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (31,'CUDA_MEMCPY_KIND_HTOD'),(32,'CUDA_MEMCPY_KIND_DTOH'),"
    "(33,'CUDA_MEMCPY_KIND_DTOD'),(34,'CUDA_MEMCPY_KIND_HTOH'),(35,'CUDA_MEMCPY_KIND_UVM_DTOH');"
    "CREATE TABLE ENUM_CUPTI_SYNC_TYPE (id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT INTO ENUM_CUPTI_SYNC_TYPE VALUES (41,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE'),"
    "(42,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE'),"
    "(43,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE'),"
    "(44,'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT');"
    "CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES (159,'NvtxPushPopRange'),(160,'NvtxStartEndRange'),(134,'NvtxMark'),"
    "(175,'NvtxDomainCreate');";

void nsys_begin(struct nsys_file *f)
{
  const char *folder = getenv("TMPDIR");
  *f = (struct nsys_file){.now = 1000, .thread = NSYS_GLOBAL + NSYS_PID};
  snprintf(f->path, sizeof f->path, "%s/synccount-nsys-XXXXXX", folder && *folder ? folder : "/tmp");
  int fd = mkstemp(f->path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
  nsys_sql(f, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
  nsys_sql(f, "%s", schema);
}

void nsys_sql(struct nsys_file *f, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  char *sql = sqlite3_vmprintf(format, list), *message = NULL;
  va_end(list);
  if (sqlite3_exec(f->db, sql, NULL, NULL, &message) != SQLITE_OK)
    fail_msg("%s: %s", sql, message);
  sqlite3_free(sql);
}

int64_t nsys_call_status(struct nsys_file *f, const char *name, int status)
{
  f->now += 1000;
  ++f->correlation;
  nsys_sql(
      f,
      "INSERT INTO StringIds SELECT (SELECT coalesce(max(id), 100) + 1 FROM StringIds), %Q WHERE NOT EXISTS (SELECT 1 "
      "FROM StringIds WHERE value = %Q)",
      name, name);
  nsys_sql(
      f,
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT %lld,%lld,0,%lld,%lld,id,%d,NULL FROM StringIds WHERE value = %Q",
      (long long)f->now, (long long)f->now + 10000, (long long)f->thread, (long long)f->correlation, status, name);
  f->now += 10000;
  return f->correlation;
}

int64_t nsys_call(struct nsys_file *f, const char *name) { return nsys_call_status(f, name, 0); }

void nsys_kernel(struct nsys_file *f, int stream)
{
  long long start = f->now - 7000;
  nsys_sql(f, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%lld,%lld,0,1,%d,%lld,%lld)", start, start + 4000, stream,
           (long long)f->correlation, (long long)NSYS_GLOBAL);
}

void nsys_copy(struct nsys_file *f, const char *kind, const char *src, const char *dst, int stream, int bytes)
{
  long long start = f->now - 7000;
  nsys_sql(f,
           "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT %lld,%lld,0,1,%d,%lld,%lld,%d,k.id,s.id,d.id FROM "
           "ENUM_CUDA_MEMCPY_OPER k, ENUM_CUDA_MEM_KIND s, ENUM_CUDA_MEM_KIND d WHERE k.name='CUDA_MEMCPY_KIND_%s' AND "
           "s.name='CUDA_MEMOPR_MEMORY_KIND_%s' AND d.name='CUDA_MEMOPR_MEMORY_KIND_%s'",
           start, start + 4000, stream, (long long)f->correlation, (long long)NSYS_GLOBAL, bytes, kind, src, dst);
}

void nsys_sync(struct nsys_file *f, const char *type, int64_t stream)
{
  nsys_sql(f,
           "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SELECT %lld,%lld,0,1,%lld,%lld,%lld,id FROM "
           "ENUM_CUPTI_SYNC_TYPE "
           "WHERE name='CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_%s'",
           (long long)f->now - 9000, (long long)f->now - 1000, (long long)stream, (long long)f->correlation,
           (long long)NSYS_GLOBAL, type);
}

static void forget(struct nsys_file *f)
{
  sc_findings_free(f->findings);
  f->findings = NULL;
  f->process = NULL;
}

void nsys_read(struct nsys_file *f, enum sc_status wanted)
{
  forget(f);
  f->findings = sc_findings_new();
  assert_non_null(f->findings);
  enum sc_status status = sc_import_nsys(f->path, NULL, f->findings, &f->error);
  if (status != wanted)
    fail_msg("%s instead of %s: %s", sc_status_name(status), sc_status_name(wanted), f->error.message);
  if (f->findings->process_count)
    f->process = &f->findings->processes[0];
  if (wanted == SC_OK)
    assert_non_null(f->process);
}

bool nsys_warned(const struct nsys_file *f, const char *text)
{
  for (size_t i = 0; i < f->findings->warning_count; ++i) {
    if (strstr(f->findings->warnings[i], text))
      return true;
  }
  return false;
}

void nsys_end(struct nsys_file *f)
{
  forget(f);
  sqlite3_close(f->db);
  unlink(f->path);
}
