/* SPDX-License-Identifier: Apache-2.0
 * Whose trace a file is, by its content; and what is said of a report of Nsight Systems. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "import/import.h"

static char folder[64];

static int make_folder(void **state)
{
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/synccount-recognise-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
  (void)state;
  return rmdir(folder);
}

static const char *path_of(const char *name)
{
  static char path[160];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static enum sc_import_kind kind_of(const char *name, const char *bytes, size_t n, bool packed)
{
  const char *path = path_of(name);
  enum sc_import_kind kind = SC_IMPORT_NONE;
  struct sc_error err = {0};
  if (packed) {
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, bytes, (unsigned)n), n);
    gzclose(file);
  } else {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
  }
  if (sc_import_recognise(path, &kind, &err) != SC_OK)
    fail_msg("%s", err.message);
  unlink(path);
  return kind;
}
#define KIND(name, text) kind_of((name), (text), strlen(text), false)

static void the_content_decides_and_not_the_name(void **state)
{
  static const char sqlite[32] = "SQLite format 3";
  (void)state;
  assert_int_equal(kind_of("trace.json", sqlite, sizeof sqlite, false), SC_IMPORT_NSYS_SQLITE);
  assert_int_equal(kind_of("x.nsys-rep", sqlite, sizeof sqlite, false), SC_IMPORT_NSYS_SQLITE);
  assert_int_equal(KIND("a.sqlite", "{\"schemaVersion\": 1, \"traceEvents\": []}"), SC_IMPORT_KINETO);
  assert_int_equal(KIND("a.nsys-rep", "\xef\xbb\xbf \n{\"displayTimeUnit\":\"ms\",\"traceEvents\":[{\"ph\":\"X\"}]}"),
                   SC_IMPORT_KINETO);
  assert_int_equal(KIND("a", "[{\"name\":\"x\",\"ph\":\"X\",\"ts\":1}]"), SC_IMPORT_KINETO);
  /* a range that is called like us does not make it ours */
  assert_int_equal(
      KIND("a.json", "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"synccount\",\"args\":{\"f\":\"synccount/x.py\"}}]}"),
      SC_IMPORT_KINETO);
  const char *text = "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0}]";
  assert_int_equal(kind_of("a.gz", text, strlen(text), true), SC_IMPORT_KINETO);
}

static void files_of_ours_and_of_nobody_are_none(void **state)
{
  char trace[4096] = SC_TRACE_MAGIC;
  (void)state;
  assert_int_equal(kind_of("a.sctrace", trace, sizeof trace, false), SC_IMPORT_NONE);
  assert_int_equal(kind_of("a.nsys-rep", trace, sizeof trace, false), SC_IMPORT_NONE);
  assert_int_equal(KIND("a.json", "{ \"schema\": \"synccount/report/1\", \"note\": \"\\\"traceEvents\\\"\" }"),
                   SC_IMPORT_NONE);
  assert_int_equal(KIND("a.json",
                        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"generator\":\"synccount\",\"version\":\"0.1.0\"},"
                        "\"traceEvents\":[{\"ph\":\"M\"}]}"),
                   SC_IMPORT_NONE);
  assert_int_equal(KIND("a.json", ""), SC_IMPORT_NONE);
  assert_int_equal(KIND("a.nsys-rep", ""), SC_IMPORT_NONE);
  assert_int_equal(KIND("a.json", "{}"), SC_IMPORT_NONE);
  assert_int_equal(KIND("a.json", "[1, 2]"), SC_IMPORT_NONE);
  assert_int_equal(KIND("a.json", "traceEvents"), SC_IMPORT_NONE);
  assert_int_equal(KIND("a.sqlite", "SQLite format 2, or so it says"), SC_IMPORT_NONE);
  assert_int_equal(kind_of("a.gz", "\x1f\x8b\x08\x00nonsense", 12, false), SC_IMPORT_NONE);
}

static void a_report_of_nsight_systems_gets_the_export_command(void **state)
{
  static const char *const names[] = {"a.nsys-rep", "b.qdrep", "c.d.qdstrm"};
  static const char *const exported[] = {"a.sqlite", "b.sqlite", "c.d.sqlite"};
  static const char bytes[] = "\x01\x02\x00\xff whatever";
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    struct sc_error err = {0};
    char want[600];
    assert_int_equal(kind_of(names[i], bytes, sizeof bytes, false), SC_IMPORT_NSYS_REP);
    assert_int_equal(sc_import_read(path_of(names[i]), SC_IMPORT_NSYS_REP, NULL, NULL, &err), SC_ERR_FORMAT);
    snprintf(want, sizeof want, "nsys export --type sqlite -o '%s/%s' '%s/%s'", folder, exported[i], folder, names[i]);
    if (!strstr(err.message, want))
      fail_msg("'%s' is not in '%s'", want, err.message);
  }
}

static void what_cannot_be_read_is_an_error(void **state)
{
  enum sc_import_kind kind = SC_IMPORT_KINETO;
  struct sc_error err = {0};
  (void)state;
  assert_int_equal(sc_import_recognise(path_of("missing"), &kind, &err), SC_ERR_IO);
  assert_non_null(strstr(err.message, "missing"));
  assert_int_equal(sc_import_recognise(folder, &kind, &err), SC_ERR_IO);
  assert_int_equal(mkfifo(path_of("pipe"), 0600), 0); /* nobody writes: it must not be waited for */
  alarm(20);
  assert_int_equal(sc_import_recognise(path_of("pipe"), &kind, &err), SC_ERR_IO);
  alarm(0);
  unlink(path_of("pipe"));
  assert_int_equal(kind, SC_IMPORT_KINETO); /* written only on success */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_content_decides_and_not_the_name),
      cmocka_unit_test(files_of_ours_and_of_nobody_are_none),
      cmocka_unit_test(a_report_of_nsight_systems_gets_the_export_command),
      cmocka_unit_test(what_cannot_be_read_is_an_error),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
