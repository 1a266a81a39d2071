/* SPDX-License-Identifier: Apache-2.0
 * Temporary files: in TMPDIR, without a name, to be written and read. */
#include "test_support.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static size_t entries(const char *folder) {
  size_t count = 0;
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  while (readdir(dir) != NULL)
    count++;
  closedir(dir);
  return count;
}

static void it_can_be_written_and_read_and_has_no_name(void **state) {
  (void)state;
  char folder[] = "/tmp/synccount-test-XXXXXX", text[8] = "";
  assert_non_null(mkdtemp(folder));
  assert_int_equal(setenv("TMPDIR", folder, 1), 0);
  FILE *file = sc_temporary_file();
  assert_non_null(file);
  assert_int_equal(entries(folder), 2); /* . and .. */
  assert_true(fputs("kept", file) >= 0);
  rewind(file);
  assert_string_equal(fgets(text, sizeof(text), file), "kept");
  fclose(file);
  assert_int_equal(rmdir(folder), 0);
}

static void a_folder_that_is_not_there_is_named_by_errno(void **state) {
  (void)state;
  assert_int_equal(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
  assert_null(sc_temporary_file());
  assert_int_equal(errno, ENOENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_can_be_written_and_read_and_has_no_name),
    cmocka_unit_test(a_folder_that_is_not_there_is_named_by_errno),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
