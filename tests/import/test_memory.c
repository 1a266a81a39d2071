/* SPDX-License-Identifier: Apache-2.0
 * Every allocation of an import fails once: it says that memory is out or does without, and leaks and crashes never
 * (ASan judges). SQLite's own are not among them. */
#include "base/failing_alloc.h"
#include "import/make_nsys.h"

#include <string.h>

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
    failing_alloc_begin(allocations, once);
    enum sc_status status = sc_import_nsys(path, NULL, findings, &error);
    bool failed = failing_alloc_end();
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
