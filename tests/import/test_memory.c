/* SPDX-License-Identifier: Apache-2.0
 * Every allocation of an import fails once: it says that memory is out or does without, and leaks and crashes never
 * (ASan judges). The allocators are wrapped by the linker: see CMakeLists.txt. SQLite's own are not. */
#include "import/make_nsys.h"

#include <stdlib.h>
#include <string.h>

/* The linker's names for the wrapped functions and for the real ones. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
int __real_vasprintf(char **out, const char *format, va_list arguments);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
int __wrap_vasprintf(char **out, const char *format, va_list arguments);

static long left = -1; /* allocations that still succeed; -1: all */
static bool only_one;  /* after the one that fails, all succeed again */
static bool failed;    /* one did */
static bool fails(void)
{
  if (left < 0)
    return false;
  if (left > 0) {
    --left;
    return false;
  }
  left = only_one ? -1 : 0;
  failed = true;
  return true;
}
void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }
char *__wrap_strdup(const char *text) { return fails() ? NULL : __real_strdup(text); }
char *__wrap_strndup(const char *text, size_t size) { return fails() ? NULL : __real_strndup(text, size); }
int __wrap_vasprintf(char **out, const char *format, va_list arguments)
{
  return fails() ? -1 : __real_vasprintf(out, format, arguments);
}

/* One of everything that the importer looks at. */
static void fill(struct nsys_file *f)
{
  nsys_begin(f);
  for (int i = 0; i < 3; ++i) {
    int64_t start = f->now;
    LAUNCH(f, 7);
    D2H(f, 7, "PAGEABLE");
    SYNC(f, 7);
    nsys_call(f, "cudaFree_v3020");
    nsys_sql(f, "INSERT INTO NVTX_EVENTS VALUES (%lld,%lld,%d,'range %d',%lld,NULL,NULL,%d)", (long long)start,
             (long long)f->now, i == 1 ? 160 : 159, i, (long long)f->thread, i);
    ++f->thread;
  }
  nsys_sql(f, "CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER);"
              "INSERT INTO StringIds VALUES (703,'f'),(704,'/opt/program'),(705,'worker');"
              "INSERT INTO CUDA_CALLCHAINS VALUES (5,703,704,0);"
              "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET callchainId = 5 WHERE start < 30000;"
              "CREATE TABLE ThreadNames (nameId INTEGER, globalTid INTEGER);"
              "CREATE TABLE PROCESSES (globalPid INTEGER, name TEXT);"
              "CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);"
              "INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COMMAND','python');"
              "CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);"
              "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname','host'),('NvDriverVersion','580');"
              "CREATE TABLE TARGET_INFO_GPU (name TEXT); INSERT INTO TARGET_INFO_GPU VALUES ('a device')");
  nsys_sql(f, "INSERT INTO ThreadNames VALUES (705,%lld); INSERT INTO PROCESSES VALUES (%lld,'program')",
           (long long)f->thread - 1, (long long)NSYS_GLOBAL);
}

static long run_out(const char *path, bool once)
{
  long failures = 0;
  for (long allocations = 0;; ++allocations) {
    struct sc_findings *findings = sc_findings_new();
    struct sc_error error = {0};
    assert_non_null(findings);
    only_one = once;
    failed = false;
    left = allocations;
    enum sc_status status = sc_import_nsys(path, NULL, findings, &error);
    left = -1;
    if (status != SC_OK) {
      assert_int_equal(status, SC_ERR_NOMEM);
      assert_non_null(strstr(error.message, "out of memory"));
      ++failures;
    } else {
      assert_int_equal(findings->process_count, 1);
    }
    sc_findings_free(findings);
    if (!failed)
      return failures;
    assert_true(allocations < 100000);
  }
}

static void running_out_of_memory_is_told_wherever_it_happens(void **state)
{
  struct nsys_file f;
  (void)state;
  fill(&f);
  assert_true(run_out(f.path, false) > 200);
  assert_true(run_out(f.path, true) > 200);
  nsys_read(&f, SC_OK);
  assert_int_equal(f.process->counts.syncs, 3);
  assert_string_equal(f.process->command, "python");
  nsys_end(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(running_out_of_memory_is_told_wherever_it_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
