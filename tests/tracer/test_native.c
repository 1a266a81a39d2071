/* SPDX-License-Identifier: Apache-2.0
 * What is known of the files of native frames. */
#include <dlfcn.h>
#include <string.h>

#include "tracer/native.h"

#include "test_support.h"

static int in_this_program;

static uint64_t address_in(const char *library, const char *name)
{
  void *handle = dlopen(library, RTLD_LAZY);
  void *symbol = handle ? dlsym(handle, name) : NULL;

  assert_non_null(symbol);
  return (uintptr_t)symbol;
}

static int prepare(void **state)
{
  (void)state;
  return sc_native_prepare() ? 0 : -1;
}

static void a_file_keeps_what_it_was_linked_against(void **state)
{
  uint64_t program = (uintptr_t)&in_this_program, libc = address_in("libc.so.6", "gnu_get_libc_version"),
           resolver = address_in("libresolv.so.2", "__b64_ntop");

  (void)state;
  assert_true(sc_native_keeps(program, libc));
  assert_true(sc_native_keeps(resolver, libc));
  assert_false(sc_native_keeps(program, resolver)); /* it was asked for by dlopen: it can go */
  assert_false(sc_native_keeps(libc, program));
  assert_false(sc_native_keeps(libc, resolver));
}

static void a_file_does_not_keep_itself(void **state)
{
  uint64_t program = (uintptr_t)&in_this_program, libc = address_in("libc.so.6", "gnu_get_libc_version");

  (void)state;
  assert_false(sc_native_keeps(program, program));
  assert_false(sc_native_keeps(libc, libc));
}

static void what_lies_in_no_file_keeps_nothing(void **state)
{
  uint64_t libc = address_in("libc.so.6", "gnu_get_libc_version");
  int local;

  (void)state;
  assert_false(sc_native_keeps(0, libc));
  assert_false(sc_native_keeps((uintptr_t)&local, libc));
  assert_false(sc_native_keeps((uintptr_t)&in_this_program, (uintptr_t)&local));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_keeps_what_it_was_linked_against),
    cmocka_unit_test(a_file_does_not_keep_itself),
    cmocka_unit_test(what_lies_in_no_file_keeps_nothing),
  };

  return cmocka_run_group_tests(tests, prepare, NULL);
}
