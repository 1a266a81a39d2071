/* SPDX-License-Identifier: Apache-2.0
 * Real traces by others, counted by count_kineto.py: the importer finds the same, through the file and gzip as users
 * have them, and the same again when the trace has no sync events. */
#include "import/kineto/kineto_trace.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "import/import.h"

static const char *const files[] = {"alexnet.json.gz", "event_sync.json.gz", "simple_add.json.gz",
                                    "rank_0.json.gz",  "amd_mi250.json.gz",  "no_gpu.json.gz"};

static char *path_of(const char *name)
{
  const char *source = getenv("SC_SOURCE");
  assert_non_null(source);
  char *path = sc_asprintf("%s/tests/import/kineto/%s", source, name);
  assert_non_null(path);
  return path;
}

static uint64_t expected(const json_t *counts, const char *key)
{
  const json_t *value = json_object_get(counts, key);
  assert_true(json_is_integer(value));
  return (uint64_t)json_integer_value(value);
}

static void compare(const struct sc_findings *findings, const json_t *counts)
{
  const struct sc_process *process = &findings->processes[0];
  const struct sc_counts *c = &process->counts;
  assert_int_equal(findings->process_count, 1);
  assert_int_equal(c->syncs, expected(counts, "syncs"));
  assert_int_equal(c->by_class[SC_CLASS_EXPLICIT], expected(counts, "explicit"));
  assert_int_equal(c->by_class[SC_CLASS_COPY], expected(counts, "copy"));
  assert_int_equal(c->by_class[SC_CLASS_PAGEABLE], expected(counts, "pageable"));
  assert_int_equal(c->by_class[SC_CLASS_IMPLICIT], expected(counts, "implicit"));
  assert_int_equal(c->read_backs, expected(counts, "read_backs"));
  assert_int_equal(c->blocking_uploads, expected(counts, "blocking_uploads"));
  assert_int_equal(c->uncertain, expected(counts, "uncertain"));
  assert_int_equal(c->launches, expected(counts, "launches"));
  assert_int_equal(c->submissions, expected(counts, "submissions"));
  assert_int_equal(c->api_calls, expected(counts, "api_calls"));
  assert_int_equal(process->unmeasured, expected(counts, "api_calls") == 0);
  if (!process->unmeasured)
    assert_int_equal(process->steps, expected(counts, "steps"));
  assert_int_equal(findings->lost_records, 0);
}

static json_t *load_expected(void)
{
  char *path = path_of("expected.json");
  json_error_t error;
  json_t *all = json_load_file(path, 0, &error);
  assert_non_null(all);
  free(path);
  return all;
}

static const json_t *of_file(const json_t *all, const char *file)
{
  const json_t *counts = json_object_get(all, file);
  assert_non_null(counts);
  return counts;
}

static void real_traces_have_the_counts_that_a_script_found(void **state)
{
  json_t *all = load_expected();
  (void)state;
  assert_int_equal(json_object_size(all), SC_COUNTOF(files));
  for (size_t i = 0; i < SC_COUNTOF(files); ++i) {
    char *name = sc_asprintf("data/%s", files[i]), *path = path_of(name);
    enum sc_import_kind kind;
    struct sc_error err = {0};
    struct sc_findings *findings = sc_findings_new();
    assert_int_equal(sc_import_recognise(path, &kind, &err), SC_OK);
    assert_int_equal(kind, SC_IMPORT_KINETO);
    if (sc_import_read(path, kind, NULL, findings, &err) != SC_OK)
      fail_msg("%s", err.message);
    compare(findings, of_file(all, files[i]));
    sc_findings_free(findings);
    free(name);
    free(path);
  }
  json_decref(all);
}

static char *unpack(const char *path, size_t *size)
{
  struct sc_buf text = {0};
  char part[65536];
  gzFile file = gzopen(path, "rb");
  assert_non_null(file);
  for (int n; (n = gzread(file, part, sizeof part)) > 0;)
    sc_buf_append(&text, part, (size_t)n);
  assert_int_equal(gzclose(file), Z_OK);
  assert_false(text.failed);
  *size = text.len;
  return text.data;
}

/* Most traces have no sync events: the same ones, with the category struck out. */
static void real_traces_have_the_same_counts_without_sync_events(void **state)
{
  json_t *all = load_expected();
  size_t struck = 0;
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(files); ++i) {
    char *name = sc_asprintf("data/%s", files[i]), *path = path_of(name);
    struct trace t;
    struct sc_error err = {0};
    enum sc_status status;
    size_t size;
    char *text = unpack(path, &size);
    for (char *at = text; (at = strstr(at, "\"cuda_sync\"")) != NULL; ++struck)
      memcpy(at, "\"cuda_zero\"", 11);
    trace_open(&t);
    text_try(text, size, 1u << 16, &t, &status, &err);
    assert_int_equal(status, SC_OK);
    compare(t.findings, of_file(all, files[i]));
    trace_close(&t);
    free(text);
    free(name);
    free(path);
  }
  assert_true(struck > 80);
  json_decref(all);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static char *read_file(const char *path, size_t *size)
{
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  char *bytes = malloc(1u << 20);
  assert_non_null(bytes);
  *size = fread(bytes, 1, 1u << 20, file);
  fclose(file);
  return bytes;
}

static void damaged_gzip_is_an_error_that_says_so(void **state)
{
  char *path = path_of("data/alexnet.json.gz"), copy[] = "/tmp/kineto-XXXXXX";
  size_t size;
  char *bytes = read_file(path, &size);
  struct sc_error err = {0};
  struct sc_findings *findings = sc_findings_new();
  int fd = mkstemp(copy);
  (void)state;
  assert_true(fd >= 0);
  close(fd);
  for (size_t n = 100; n < size; n += size / 7) { /* cut off */
    write_file(copy, bytes, n);
    assert_int_equal(sc_import_read(copy, SC_IMPORT_KINETO, NULL, findings, &err), SC_ERR_FORMAT);
    assert_non_null(strstr(err.message, "cut off"));
    assert_non_null(strstr(err.message, copy));
  }
  write_file(copy, bytes, size - 4); /* all of the text, not all of gzip's own */
  assert_int_equal(sc_import_read(copy, SC_IMPORT_KINETO, NULL, findings, &err), SC_ERR_FORMAT);
  assert_non_null(strstr(err.message, "cut off"));
  bytes[size / 2] ^= 0x55;
  write_file(copy, bytes, size);
  assert_int_equal(sc_import_read(copy, SC_IMPORT_KINETO, NULL, findings, &err), SC_ERR_FORMAT);
  assert_int_equal(findings->process_count, 0);
  unlink(copy);
  assert_int_equal(sc_import_read(copy, SC_IMPORT_KINETO, NULL, findings, &err), SC_ERR_IO);
  assert_non_null(strstr(err.message, "No such file"));
  sc_findings_free(findings);
  free(bytes);
  free(path);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(real_traces_have_the_counts_that_a_script_found),
      cmocka_unit_test(real_traces_have_the_same_counts_without_sync_events),
      cmocka_unit_test(damaged_gzip_is_an_error_that_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
