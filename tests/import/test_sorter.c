/* SPDX-License-Identifier: Apache-2.0
 * The external sort: the same order in memory and on disk, ties by the comparison, a full disk as an error. */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>

#include "import/sorter.h"

struct item {
  uint64_t high, low, tie;
  char rest[40];
};

static struct sc_key key_of(const void *item)
{
  const struct item *i = item;
  return (struct sc_key){.high = i->high, .low = i->low};
}

static int by_tie(const void *left, const void *right)
{
  const struct item *a = left, *b = right;
  return a->tie < b->tie ? -1 : a->tie > b->tie;
}

static const struct sc_order order = {sizeof(struct item), key_of, by_tie};

static int whole(const void *left, const void *right)
{
  const struct item *a = left, *b = right;
  if (a->high != b->high)
    return a->high < b->high ? -1 : 1;
  if (a->low != b->low)
    return a->low < b->low ? -1 : 1;
  return by_tie(left, right);
}

static void fill(struct item *items, size_t count, unsigned seed, unsigned spread)
{
  for (size_t i = 0; i < count; ++i) {
    items[i] = (struct item){.high = (unsigned)rand_r(&seed) % 3, .low = (unsigned)rand_r(&seed) % spread, .tie = i};
    snprintf(items[i].rest, sizeof items[i].rest, "%zu", i);
  }
}

/* memory decides how many runs there are. */
static void sorts_like_qsort(size_t count, size_t memory, unsigned spread)
{
  struct item *items = sc_calloc_array(count + 1, sizeof *items);
  const void *got;
  struct sc_error err;
  assert_non_null(items);
  fill(items, count, (unsigned)(count + memory), spread);
  struct sc_sorter *sorter = sc_sorter_new(&order, memory);
  assert_non_null(sorter);
  for (size_t i = 0; i < count; ++i)
    assert_true(sc_sorter_add(sorter, &items[i]));
  qsort(items, count, sizeof *items, whole);
  for (size_t i = 0; i < count; ++i) {
    assert_int_equal(sc_sorter_next(sorter, &got, &err), SC_OK);
    assert_non_null(got);
    assert_memory_equal(got, &items[i], sizeof *items);
  }
  for (int i = 0; i < 2; ++i) { /* the end stays the end */
    assert_int_equal(sc_sorter_next(sorter, &got, &err), SC_OK);
    assert_null(got);
  }
  sc_sorter_free(sorter);
  free(items);
}

static void what_fits_into_memory_is_sorted(void **state)
{
  static const size_t counts[] = {0, 1, 2, 3, 7, 64, 1000, 20000};
  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(counts); ++i) {
    sorts_like_qsort(counts[i], 64 << 20, 1);
    sorts_like_qsort(counts[i], 64 << 20, 5);
    sorts_like_qsort(counts[i], 64 << 20, 1u << 30);
  }
}

static void what_does_not_fit_is_sorted_on_disk(void **state)
{
  (void)state;
  sorts_like_qsort(2, 1, 100);    /* the smallest runs there are */
  sorts_like_qsort(2001, 1, 100); /* a thousand of them */
  sorts_like_qsort(30000, 640, 1000);
  sorts_like_qsort(50000, 1 << 20, 3); /* runs that are longer than what is read of one at a time */
  sorts_like_qsort(16384 * 2, 16384 * sizeof(struct item), 1u << 30); /* the last run is full */
}

static void a_sorter_can_be_freed_at_any_time(void **state)
{
  struct item item = {0};
  const void *got;
  (void)state;
  for (size_t memory = 1; memory < 1 << 20; memory *= 64) {
    struct sc_sorter *sorter = sc_sorter_new(&order, memory);
    for (int i = 0; i < 100; ++i)
      assert_true(sc_sorter_add(sorter, &item));
    sc_sorter_free(sorter);
    sorter = sc_sorter_new(&order, memory);
    for (int i = 0; i < 100; ++i)
      assert_true(sc_sorter_add(sorter, &item));
    assert_int_equal(sc_sorter_next(sorter, &got, NULL), SC_OK);
    sc_sorter_free(sorter);
  }
  sc_sorter_free(NULL);
}

static void no_room_for_the_temporary_file_is_told(void **state)
{
  struct item item = {0};
  struct sc_error err = {0};
  const void *got;
  char *before = sc_strdup(getenv("TMPDIR"));
  (void)state;
  setenv("TMPDIR", "/nonexistent/folder", 1);
  struct sc_sorter *sorter = sc_sorter_new(&order, 1);
  bool ok = true;
  for (int i = 0; i < 10 && ok; ++i)
    ok = sc_sorter_add(sorter, &item);
  assert_false(ok);
  assert_int_equal(sc_sorter_next(sorter, &got, &err), SC_ERR_IO);
  assert_null(got);
  assert_non_null(strstr(err.message, "TMPDIR"));
  sc_sorter_free(sorter);
  if (before)
    setenv("TMPDIR", before, 1);
  else
    unsetenv("TMPDIR");
  free(before);
}

static void a_file_that_may_not_grow_is_told(void **state)
{
  struct item item = {0};
  struct sc_error err = {0};
  struct rlimit before, small;
  const void *got;
  (void)state;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 4096;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  struct sc_sorter *sorter = sc_sorter_new(&order, 2048);
  bool ok = true;
  for (int i = 0; i < 1000 && ok; ++i)
    ok = sc_sorter_add(sorter, &item);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_false(ok);
  assert_int_equal(sc_sorter_next(sorter, &got, &err), SC_ERR_IO);
  assert_non_null(strstr(err.message, "temporary file"));
  sc_sorter_free(sorter);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_fits_into_memory_is_sorted),   cmocka_unit_test(what_does_not_fit_is_sorted_on_disk),
      cmocka_unit_test(a_sorter_can_be_freed_at_any_time), cmocka_unit_test(no_room_for_the_temporary_file_is_told),
      cmocka_unit_test(a_file_that_may_not_grow_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
