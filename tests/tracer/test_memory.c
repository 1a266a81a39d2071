/* SPDX-License-Identifier: Apache-2.0
 * The interval set against a plain list, its caches, handles, and streams in capture. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"
#include "tracer/capture.h"
#include "tracer/memory.h"

#define MODEL_MAX 512
static struct sc_block model[MODEL_MAX];
static size_t model_count;

static void model_remove(size_t i) { model[i] = model[--model_count]; }

static void model_add(const struct sc_block *block) {
  for (size_t i = 0; i < model_count;)
    if (model[i].low < block->high && block->low < model[i].high)
      model_remove(i);
    else
      i++;
  assert_true(model_count < MODEL_MAX);
  model[model_count++] = *block;
}

static uint8_t model_kind(uintptr_t address) {
  for (size_t i = 0; i < model_count; i++)
    if (address >= model[i].low && address < model[i].high)
      return model[i].kind;
  return SC_MEMORY_UNTRACKED;
}

static bool model_take(uintptr_t address) {
  for (size_t i = 0; i < model_count; i++)
    if (address >= model[i].low && address < model[i].high) {
      model_remove(i);
      return true;
    }
  return false;
}

static void model_forget(uintptr_t low, uintptr_t high) {
  for (size_t i = 0, n = model_count; i < n;) {
    struct sc_block old = model[i];
    if (!(old.low < high && low < old.high)) {
      i++;
      continue;
    }
    model_remove(i);
    n--;
    struct sc_block before = old, after = old;
    before.high = low;
    after.low = high;
    if (before.high > before.low)
      model[model_count++] = before;
    if (after.high > after.low)
      model[model_count++] = after;
    i = 0;
    n = model_count;
  }
}

static uint32_t random_state = 12345;
static uint32_t next_random(uint32_t below) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % below;
}

static void test_random_operations_agree_with_a_list(void **state) {
  (void)state;
  static const char contexts[3];
  struct sc_memory_cache cache = { .generation = 0 };
  for (int step = 0; step < 200000; step++) {
    uintptr_t at = 0x1000 + next_random(4000);
    uint32_t what = next_random(100);
    if (what < 8 && model_count < MODEL_MAX - 8) {
      struct sc_block block = { .low = at,
                                .high = at + 1 + next_random(60),
                                .kind = (uint8_t)(1 + next_random(4)),
                                .context = &contexts[next_random(3)] };
      assert_true(sc_memory_add(&block));
      model_add(&block);
    } else if (what < 14) {
      struct sc_block taken;
      assert_int_equal(sc_memory_take(at, &taken), model_take(at));
    } else if (what == 14) {
      uintptr_t to = at + next_random(100);
      sc_memory_forget(at, to);
      if (to > at)
        model_forget(at, to);
    } else if (what == 15 && next_random(20) == 0) {
      const char *context = &contexts[next_random(3)];
      sc_memory_forget_context(context);
      for (size_t i = 0; i < model_count;)
        if (model[i].context == context)
          model_remove(i);
        else
          i++;
    } else {
      assert_int_equal(sc_memory_kind(&cache, at), model_kind(at));
    }
  }
  sc_memory_forget(0, UINTPTR_MAX);
}

static void test_cache_answers_only_as_long_as_nothing_changed(void **state) {
  (void)state;
  struct sc_memory_cache cache = { .generation = 0 };
  struct sc_block block = { .low = 100, .high = 200, .kind = SC_MEMORY_PINNED }, taken;
  assert_int_equal(sc_memory_kind(&cache, 150), SC_MEMORY_UNTRACKED);
  assert_true(sc_memory_add(&block));
  assert_int_equal(sc_memory_kind(&cache, 150), SC_MEMORY_PINNED);
  assert_int_equal(sc_memory_kind(&cache, 99), SC_MEMORY_UNTRACKED);
  assert_int_equal(sc_memory_kind(&cache, 200), SC_MEMORY_UNTRACKED);
  assert_true(sc_memory_take(100, &taken));
  assert_int_equal(taken.kind, SC_MEMORY_PINNED);
  assert_int_equal(sc_memory_kind(&cache, 150), SC_MEMORY_UNTRACKED);
}

static void test_many_blocks_do_not_recurse_or_slow_down(void **state) {
  (void)state;
  struct sc_memory_cache cache = { .generation = 0 };
  enum { N = 200000 };
  for (uintptr_t i = 0; i < N; i++) { /* ascending: the worst order for a plain tree */
    struct sc_block block = { .low = 0x100000 + i * 16, .high = 0x100000 + i * 16 + 8, .kind = SC_MEMORY_DEVICE };
    assert_true(sc_memory_add(&block));
  }
  for (uintptr_t i = 0; i < N; i += 997)
    assert_int_equal(sc_memory_kind(&cache, 0x100000 + i * 16 + 7), SC_MEMORY_DEVICE);
  assert_int_equal(sc_memory_kind(&cache, 0x100000 + 8), SC_MEMORY_UNTRACKED);
  sc_memory_forget(0, UINTPTR_MAX);
  assert_int_equal(sc_memory_kind(&cache, 0x100000), SC_MEMORY_UNTRACKED);
}

/* Threads that allocate, ask and free each their own addresses always get their own answers. */
static void *own_addresses(void *argument) {
  uintptr_t base = ((uintptr_t)argument + 1) << 32;
  struct sc_memory_cache cache = { .generation = 0 };
  for (int i = 0; i < 3000; i++) {
    struct sc_block block = { .low = base + (uintptr_t)(i % 7) * 64,
                              .high = base + (uintptr_t)(i % 7) * 64 + 64,
                              .kind = SC_MEMORY_PINNED },
                    taken;
    if (!sc_memory_add(&block) || sc_memory_kind(&cache, block.low + 5) != SC_MEMORY_PINNED ||
        !sc_memory_take(block.low, &taken) || sc_memory_kind(&cache, block.low) != SC_MEMORY_UNTRACKED)
      return (void *)1;
  }
  return NULL;
}

static void test_threads_see_their_own_changes(void **state) {
  (void)state;
  pthread_t threads[8];
  for (uintptr_t i = 0; i < 8; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, own_addresses, (void *)i), 0);
  for (size_t i = 0; i < 8; i++) {
    void *wrong;
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    assert_null(wrong);
  }
}

static void test_handles_are_kept_by_class(void **state) {
  (void)state;
  uint64_t value = 0;
  assert_false(sc_handle_get(SC_HANDLE_POOL, 1, &value));
  for (uint64_t i = 0; i < 2000; i++)
    sc_handle_set(i % 2 ? SC_HANDLE_POOL : SC_HANDLE_ARRAY, i, i * 3);
  for (uint64_t i = 0; i < 2000; i++) {
    assert_true(sc_handle_get(i % 2 ? SC_HANDLE_POOL : SC_HANDLE_ARRAY, i, &value));
    assert_int_equal(value, i * 3);
    assert_false(sc_handle_get(i % 2 ? SC_HANDLE_ARRAY : SC_HANDLE_POOL, i, &value));
  }
  for (uint64_t i = 0; i < 2000; i++)
    sc_handle_drop(i % 2 ? SC_HANDLE_POOL : SC_HANDLE_ARRAY, i);
  assert_false(sc_handle_get(SC_HANDLE_ARRAY, 0, NULL));
}

static void test_two_captures_at_once_end_apart(void **state) {
  (void)state;
  static const char a_thread;
  struct sc_stream_key one = { 10, NULL }, two = { 20, NULL }, three = { 30, NULL },
                       mine = { SC_STREAM_PER_THREAD, &a_thread }, others = { SC_STREAM_PER_THREAD, NULL };
  sc_capture_begin(one);
  sc_capture_begin(two);
  sc_capture_record(7, two);
  sc_capture_wait(three, 7);
  sc_capture_wait(mine, 7);
  assert_true(sc_capture_holds(three));
  assert_true(sc_capture_holds(mine));
  assert_false(sc_capture_holds(others)); /* another thread's default stream */
  sc_capture_end(three);                  /* did not begin it */
  assert_true(sc_capture_holds(three));
  sc_capture_end(two);
  assert_false(sc_capture_holds(three));
  assert_true(sc_capture_holds(one));
  assert_true(sc_capture_any());
  sc_capture_end(one);
  assert_false(sc_capture_any());
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_random_operations_agree_with_a_list),
    cmocka_unit_test(test_cache_answers_only_as_long_as_nothing_changed),
    cmocka_unit_test(test_many_blocks_do_not_recurse_or_slow_down),
    cmocka_unit_test(test_threads_see_their_own_changes),
    cmocka_unit_test(test_handles_are_kept_by_class),
    cmocka_unit_test(test_two_captures_at_once_end_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
