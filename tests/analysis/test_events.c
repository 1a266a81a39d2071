/* SPDX-License-Identifier: Apache-2.0
 * Single events: what is kept, what they refer to, and that a long program's go through the temporary file. */
#include "feed.h"

static const struct sc_analysis_options with_events = {.events = true};

static struct sc_event next_of(const struct feed *f, enum sc_event_kind kind)
{
  struct sc_event event;
  do
    assert_true(sc_process_events_next(f->process, &event));
  while (event.kind != kind);
  return event;
}

static void events_are_not_kept_unless_asked(void **state)
{
  struct feed f;
  (void)state;
  feed_open(&f);
  CALL(&f, "cudaStreamSynchronize", .stream = S1);
  feed_end(&f);
  assert_null(f.process->events);
  assert_int_equal(sc_process_events_count(f.process), 0);
  feed_close(&f);
}

static void a_sync_has_its_site_and_both_its_calls(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_events);
  CALL(&f, "cudaMemcpyAsync", .stream = S1, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
       .src = SC_MEMORY_DEVICE, .duration_ns = 3000, .bytes = 8);
  CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 2000);
  CALL(&f, "cudaDeviceSynchronize", .duration_ns = 500);
  feed_end(&f);
  assert_true(sc_process_events_rewind(f.process));
  struct sc_event event = next_of(&f, SC_EVENT_SYNC);
  assert_int_equal(event.cls, SC_CLASS_PAGEABLE);
  assert_int_equal(event.wait_ns, 5000);
  assert_true(event.end_ns >= event.start_ns + 5000);
  assert_int_equal(event.bytes, 8);
  assert_true(event.read_back);
  assert_true(event.what < f.process->site_count);
  assert_string_equal(f.process->sites[event.what].api, "cudaMemcpyAsync");
  event = next_of(&f, SC_EVENT_SYNC);
  assert_string_equal(f.process->sites[event.what].api, "cudaDeviceSynchronize");
  assert_false(sc_process_events_next(f.process, &event));
  assert_false(sc_process_events_failed(f.process));
  feed_close(&f);
}

static void copies_flow_to_the_sync_that_makes_them_visible(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_events);
  D2H_PINNED(&f, S1);
  D2H_PINNED(&f, S1);
  D2H_PINNED(&f, S2);
  CALL(&f, "cudaStreamSynchronize", .stream = S1);
  CALL(&f, "cudaStreamSynchronize", .stream = S2);
  feed_end(&f);
  assert_true(sc_process_events_rewind(f.process));
  uint64_t first = next_of(&f, SC_EVENT_COPY).flow;
  assert_int_not_equal(first, 0);
  assert_int_equal(next_of(&f, SC_EVENT_COPY).flow, first);
  uint64_t second = next_of(&f, SC_EVENT_COPY).flow;
  assert_int_not_equal(second, first);
  assert_int_equal(next_of(&f, SC_EVENT_SYNC).flow, first);
  assert_int_equal(next_of(&f, SC_EVENT_SYNC).flow, second);
  feed_close(&f);
}

static void a_range_is_one_event_of_its_own_length(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_events);
  feed_push(&f, "", "outer");
  feed_push(&f, "", "inner");
  CALL(&f, "cudaStreamSynchronize", .stream = S1);
  feed_pop(&f, "");
  feed_end(&f);
  assert_true(sc_process_events_rewind(f.process));
  struct sc_event inner = next_of(&f, SC_EVENT_RANGE), outer = {0};
  assert_string_equal(f.process->ranges[inner.what].path, "outer/inner");
  assert_false(inner.unfinished);
  outer = next_of(&f, SC_EVENT_RANGE);
  assert_string_equal(f.process->ranges[outer.what].path, "outer");
  assert_true(outer.unfinished);
  assert_true(outer.start_ns <= inner.start_ns && inner.start_ns < inner.end_ns);
  feed_close(&f);
}

static void a_poll_wait_is_an_event_beside_the_syncs(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_events);
  CALL(&f, "cudaEventQuery", .object = EVENT, .status = 600);
  CALL(&f, "cudaEventQuery", .object = EVENT);
  feed_end(&f);
  assert_true(sc_process_events_rewind(f.process));
  struct sc_event event = next_of(&f, SC_EVENT_POLL);
  assert_int_equal(f.process->sites[event.what].kind, SC_SITE_POLL);
  feed_close(&f);
}

static void many_events_come_back_in_order(void **state)
{
  enum { SYNCS = 50000 }; /* three times what is kept in memory */
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_events);
  for (uint64_t i = 0; i < SYNCS; ++i)
    CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 100 + i);
  feed_end(&f);
  assert_int_equal(sc_process_events_count(f.process), SYNCS);
  for (int round = 0; round < 2; ++round) { /* they can be read again */
    struct sc_event event;
    uint64_t seen = 0;
    assert_true(sc_process_events_rewind(f.process));
    while (sc_process_events_next(f.process, &event))
      assert_int_equal(event.wait_ns, 100 + seen++);
    assert_int_equal(seen, SYNCS);
  }
  feed_close(&f);
}

/* Sites are sorted again once symbols are known: events must still find theirs. */
static void sites_may_be_put_into_another_order(void **state)
{
  struct feed f;
  (void)state;
  feed_open_as(&f, &with_events);
  CALL(&f, "cudaStreamSynchronize", .stream = S1, .duration_ns = 10);
  CALL(&f, "cudaDeviceSynchronize", .duration_ns = 9000);
  feed_end(&f);
  struct sc_site first = f.process->sites[0];
  f.process->sites[0] = f.process->sites[1];
  f.process->sites[1] = first;
  assert_true(sc_process_events_rewind(f.process));
  assert_string_equal(f.process->sites[next_of(&f, SC_EVENT_SYNC).what].api, "cudaStreamSynchronize");
  assert_string_equal(f.process->sites[next_of(&f, SC_EVENT_SYNC).what].api, "cudaDeviceSynchronize");
  feed_close(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(events_are_not_kept_unless_asked),
      cmocka_unit_test(a_sync_has_its_site_and_both_its_calls),
      cmocka_unit_test(copies_flow_to_the_sync_that_makes_them_visible),
      cmocka_unit_test(a_range_is_one_event_of_its_own_length),
      cmocka_unit_test(a_poll_wait_is_an_event_beside_the_syncs),
      cmocka_unit_test(many_events_come_back_in_order),
      cmocka_unit_test(sites_may_be_put_into_another_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
