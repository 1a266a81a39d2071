/* SPDX-License-Identifier: Apache-2.0
 * What the writer writes, the reader gives back. */
#include "test_support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/make_trace.h"

/* The next batch, which must be there. */
static struct sc_batch next_batch(struct sc_reader *reader) {
  struct sc_batch batch = {0};
  struct sc_error err = {0};
  bool more = false;

  assert_int_equal(sc_reader_next(reader, &batch, &more, &err), SC_OK);
  assert_true(more);
  return batch;
}

static void assert_end(struct sc_reader *reader) {
  struct sc_batch batch;
  struct sc_damage damage;
  bool more = true;

  assert_int_equal(sc_reader_next(reader, &batch, &more, NULL), SC_OK);
  assert_false(more);
  sc_reader_damage(reader, &damage);
  assert_string_equal(damage.first, "");
  assert_int_equal(damage.chunks + damage.records + damage.truncated, 0);
}

static const void *next_of_kind(const struct sc_batch *batch, size_t *offset, enum sc_record_kind kind) {
  const struct sc_record_head *head;

  while ((head = sc_batch_next(batch, offset)))
    if (head->kind == kind)
      return head;
  return NULL;
}

static void a_call_comes_back_as_it_was_written(void **state) {
  struct make_trace *t = mt_new(SC_TRACE_SIMULATED);
  struct sc_writer_thread *thread = mt_thread(t);
  struct sc_reader *reader;
  const struct sc_record_call *call;
  const struct sc_api *api;
  struct sc_batch batch;
  size_t offset = 0;

  (void)state;
  mt_launch(thread, 2);
  mt_submit(thread, 1);
  mt_call(t, thread, "cuMemcpyDtoHAsync_v2_ptsz",
          (struct mt_call){.start_ns = 1000, .duration_ns = 42, .stream = SC_STREAM_PER_THREAD, .bytes = 8, .status = 901,
                           .dst = SC_MEMORY_PINNED, .src = SC_MEMORY_DEVICE, .flags = SC_CALL_CAPTURED, .device = 3});
  mt_launch(thread, 5);
  reader = mt_reader(t);
  assert_int_equal(sc_reader_header(reader)->flags, SC_TRACE_SIMULATED);
  assert_int_equal(sc_reader_header(reader)->pid, getpid());
  assert_true(sc_reader_live(reader)->end_mono_ns >= sc_reader_header(reader)->start_mono_ns);
  batch = next_batch(reader);
  assert_int_equal(batch.thread, 1);
  assert_int_equal(batch.tid, gettid());
  assert_int_equal(batch.lost, 0);
  assert_int_equal(batch.tail_submissions, 5);
  assert_int_equal(batch.tail_launches, 5);
  call = next_of_kind(&batch, &offset, SC_RECORD_CALL);
  assert_non_null(call);
  assert_int_equal(call->start_ns, 1000);
  assert_int_equal(call->duration_ns, 42);
  assert_int_equal(call->stream, SC_STREAM_PER_THREAD);
  assert_int_equal(call->bytes, 8);
  assert_int_equal(call->status, 901);
  assert_int_equal(call->direction, SC_DIRECTION_D2H);
  assert_int_equal(SC_CALL_DST(call), SC_MEMORY_PINNED);
  assert_int_equal(SC_CALL_SRC(call), SC_MEMORY_DEVICE);
  assert_int_equal(SC_CALL_FLAGS(call), SC_CALL_CAPTURED);
  assert_int_equal(SC_CALL_DEVICE(call), 3);
  api = sc_reader_api(reader, SC_CALL_API(call));
  assert_non_null(api);
  assert_string_equal(api->name, "cuMemcpyDtoHAsync_v2_ptsz");
  assert_int_equal(api->op, SC_OP_COPY_ASYNC);
  assert_int_equal(api->domain, 1);
  assert_true(api->per_thread);
  assert_end(reader);
  sc_reader_close(reader);
  mt_free(t);
}

static void submissions_belong_to_the_record_that_follows_them(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  struct sc_reader *reader;
  uint64_t launches = 0, submissions = 0, calls = 0;
  bool more;

  (void)state;
  for (int i = 0; i < 5000; i++) { /* several chunk changes */
    mt_launch(thread, 3);
    mt_submit(thread, 1);
    mt_call(t, thread, "cudaStreamSynchronize_v3020", (struct mt_call){.start_ns = (uint64_t)i});
  }
  mt_launch(thread, 7);
  reader = mt_reader(t);
  for (;;) {
    struct sc_batch batch;
    const struct sc_record_head *head;
    size_t offset = 0;

    assert_int_equal(sc_reader_next(reader, &batch, &more, NULL), SC_OK);
    if (!more)
      break;
    assert_int_equal(batch.lost, 0);
    while ((head = sc_batch_next(&batch, &offset))) {
      submissions += head->submissions;
      launches += head->launches;
      if (head->kind != SC_RECORD_CALL)
        continue;
      /* The API record in front of the first call took its four. */
      assert_int_equal(head->submissions, calls == 0 ? 0 : 4);
      assert_int_equal(((const struct sc_record_call *)(const void *)head)->start_ns, calls);
      calls++;
    }
    submissions += batch.tail_submissions;
    launches += batch.tail_launches;
  }
  assert_int_equal(calls, 5000);
  assert_int_equal(launches, 5000 * 3 + 7);
  assert_int_equal(submissions, 5000 * 4 + 7);
  assert_end(reader);
  sc_reader_close(reader);
  mt_free(t);
}

static void a_string_defined_in_a_later_chunk_is_known_in_an_earlier_one(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *first = mt_thread(t), *second = mt_thread(t);
  uint32_t id = mt_string(t, second, "defined by the second thread");
  struct sc_reader *reader;
  struct sc_batch batch;
  size_t length;

  (void)state;
  mt_push(t, first, NULL, "defined by the second thread", 5); /* known to the writer: not defined again */
  mt_meta(second, "command", "python train.py");
  reader = mt_reader(t);
  batch = next_batch(reader);
  assert_int_equal(batch.thread, 1);
  assert_string_equal(sc_reader_string(reader, id, &length), "defined by the second thread");
  assert_int_equal(length, strlen("defined by the second thread"));
  assert_string_equal(sc_reader_meta(reader, "command"), "python train.py");
  assert_null(sc_reader_meta(reader, "comm"));
  assert_null(sc_reader_string(reader, id + 1, NULL));
  assert_null(sc_reader_string(reader, UINT32_MAX, NULL));
  assert_null(sc_reader_api(reader, 1));
  assert_null(sc_reader_api(reader, UINT32_MAX));
  sc_reader_close(reader);
  mt_free(t);
}

static void long_texts_are_cut_between_characters(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  char *text = malloc(SC_TRACE_STRING_MAX + 100);
  const struct sc_record_text *record;
  struct sc_reader *reader;
  struct sc_batch batch = {0};
  size_t length = 0, offset = 0;

  (void)state;
  assert_non_null(text);
  memset(text, 'x', SC_TRACE_STRING_MAX + 100);
  memcpy(text + SC_TRACE_STRING_MAX - 2, "\xe2\x82\xac", 3); /* a euro sign across the limit */
  sc_writer_text(thread, SC_RECORD_STRING, 1, text, SC_TRACE_STRING_MAX + 100);
  memset(text, 0x80, SC_TRACE_STRING_MAX + 100); /* no UTF-8 at all */
  sc_writer_text(thread, SC_RECORD_STRING, 2, text, SC_TRACE_STRING_MAX + 100);
  memset(text, 'y', SC_TRACE_STRING_MAX);
  sc_writer_text(thread, SC_RECORD_STRING, 3, text, SC_TRACE_STRING_MAX);
  sc_writer_text(thread, SC_RECORD_STRING, 4, "", 0);
  reader = mt_reader(t);
  assert_non_null(sc_reader_string(reader, 1, &length));
  assert_int_equal(length, SC_TRACE_STRING_MAX - 2);
  assert_non_null(sc_reader_string(reader, 2, &length));
  assert_int_equal(length, SC_TRACE_STRING_MAX);
  assert_non_null(sc_reader_string(reader, 3, &length));
  assert_int_equal(length, SC_TRACE_STRING_MAX);
  assert_string_equal(sc_reader_string(reader, 4, &length), "");
  assert_int_equal(length, 0);
  for (uint32_t id = 1; id <= 4; id++) { /* the flag says which */
    while (!(record = next_of_kind(&batch, &offset, SC_RECORD_STRING)))
      batch = next_batch(reader), offset = 0;
    assert_int_equal(record->id, id);
    assert_int_equal(record->flags, id <= 2 ? SC_STRING_CUT : 0);
  }
  sc_reader_close(reader);
  mt_free(t);
  free(text);
}

static void a_poll_record_is_changed_in_place(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  struct sc_record_call *call;
  const struct sc_record_call *read;
  struct sc_reader *reader;
  struct sc_batch batch;
  size_t offset = 0;

  (void)state;
  assert_null(sc_writer_last_call(thread)); /* nothing recorded */
  mt_call(t, thread, "cudaEventQuery", (struct mt_call){.start_ns = 10, .bytes = 1, .status = 600, .object = 9});
  call = sc_writer_last_call(thread);
  assert_non_null(call);
  call->bytes++;
  call->duration_ns = 77;
  mt_submit(thread, 1);
  assert_null(sc_writer_last_call(thread)); /* something was submitted since */
  mt_call(t, thread, "cudaEventQuery", (struct mt_call){.start_ns = 100});
  assert_non_null(sc_writer_last_call(thread));
  mt_push(t, thread, NULL, "range", 200);
  assert_null(sc_writer_last_call(thread)); /* the last record is no call */
  reader = mt_reader(t);
  batch = next_batch(reader);
  read = next_of_kind(&batch, &offset, SC_RECORD_CALL);
  assert_non_null(read);
  assert_int_equal(read->bytes, 2);
  assert_int_equal(read->duration_ns, 77);
  assert_null(sc_writer_last_call(thread)); /* closed */
  assert_end(reader);
  sc_reader_close(reader);
  mt_free(t);
}

static void the_last_call_does_not_outlive_its_chunk(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  struct sc_record_call *before, *after;

  (void)state;
  mt_api(t, thread, "cudaStreamQuery"); /* one unit, so that the chunk of 63 units is full after 62 calls */
  for (int i = 0; i < 62; i++)
    mt_call(t, thread, "cudaStreamQuery", (struct mt_call){.start_ns = (uint64_t)i});
  before = sc_writer_last_call(thread);
  assert_non_null(before);
  mt_call(t, thread, "cudaStreamQuery", (struct mt_call){.start_ns = 62});
  after = sc_writer_last_call(thread);
  assert_non_null(after);
  assert_int_equal(after->start_ns, 62);
  mt_free(t);
}

static void a_thread_of_few_records_costs_one_small_slot(void **state) {
  struct make_trace *t = mt_new(0);
  unsigned char *bytes;
  size_t size;

  (void)state;
  for (int i = 0; i < 1000; i++) {
    struct sc_writer_thread *thread = mt_thread(t);

    mt_call(t, thread, "cudaStreamSynchronize", (struct mt_call){.start_ns = 1});
    sc_writer_thread_end(thread);
  }
  bytes = mt_bytes(t, &size);
  assert_true(size <= 1001 * (size_t)sysconf(_SC_PAGESIZE));
  free(bytes);
  mt_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_call_comes_back_as_it_was_written),
    cmocka_unit_test(submissions_belong_to_the_record_that_follows_them),
    cmocka_unit_test(a_string_defined_in_a_later_chunk_is_known_in_an_earlier_one),
    cmocka_unit_test(long_texts_are_cut_between_characters),
    cmocka_unit_test(a_poll_record_is_changed_in_place),
    cmocka_unit_test(the_last_call_does_not_outlive_its_chunk),
    cmocka_unit_test(a_thread_of_few_records_costs_one_small_slot),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
