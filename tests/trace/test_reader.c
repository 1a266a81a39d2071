/* SPDX-License-Identifier: Apache-2.0
 * The reader against every truncation, every flipped byte, and crafted damage. */
#include "test_support.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/checksum.h"
#include "trace/make_trace.h"

/* ---- a small file of several threads and chunks --------------------------------------------------- */

struct file {
  unsigned char *bytes;
  size_t size;
  uint64_t calls; /* numbered from 1 in start_ns; each is unlike any other */
};

static void numbered_call(struct make_trace *t, struct sc_writer_thread *thread, struct file *file) {
  uint64_t n = ++file->calls;

  mt_call(t, thread, n % 3 ? "cudaStreamSynchronize_v3020" : "cudaMemcpyAsync_v3020",
          (struct mt_call){.start_ns = n, .duration_ns = n * 3, .stream = n * 5, .bytes = n * 7});
}

/* Three threads, two of which outgrow their first chunk, with every kind of record. */
static struct file make_file(bool killed) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *threads[3];
  struct file file = {0};

  for (int i = 0; i < 3; i++)
    threads[i] = mt_thread(t);
  mt_meta(threads[0], "command", "python train.py");
  mt_name(threads[1], "worker");
  mt_note(threads[0], SC_NOTE_OLD_CUPTI, "a note");
  for (int i = 0; i < 70; i++) {
    mt_launch(threads[i % 2], 2);
    mt_push(t, threads[i % 2], "domain", i % 2 ? "a range with a name that needs two units of a record" : "r", 1);
    numbered_call(t, threads[i % 2], &file);
    mt_pop(t, threads[i % 2], "domain", 2);
  }
  numbered_call(t, threads[2], &file);
  mt_launch(threads[2], 1);
  if (killed)
    mt_kill(t);
  file.bytes = mt_bytes(t, &file.size);
  mt_free(t);
  return file;
}

/* The record of call n in the file, to compare with. */
static const struct sc_record_call *original_call(const struct file *file, uint64_t n) {
  static const struct sc_record_call *found[256];
  static const unsigned char *of;

  if (of != file->bytes) {
    memset(found, 0, sizeof found);
    for (size_t at = SC_TRACE_SLOT; at + 64 <= file->size; at += 64) {
      const struct sc_record_call *call = (const void *)(file->bytes + at);

      if (call->head.kind == SC_RECORD_CALL && call->head.units == 1 && call->start_ns - 1 < file->calls &&
          call->duration_ns == call->start_ns * 3)
        found[call->start_ns] = call;
    }
    of = file->bytes;
  }
  return n < 256 ? found[n] : NULL;
}

struct outcome {
  enum sc_status opened;
  uint64_t calls, different, batches, lost;
  struct sc_damage damage;
};

static volatile uint64_t sink; /* so that every byte is read, for the sanitizers */

/* Reads everything as a tool would, and looks at every byte that it is given. */
static struct outcome read_bytes(const struct file *original, const unsigned char *bytes, size_t size) {
  struct outcome outcome = {0};
  struct sc_reader *reader = NULL;
  struct sc_error err = {0};
  struct sc_batch batch;
  bool more = true;

  outcome.opened = sc_reader_open_memory(bytes, size, "damaged", &reader, &err);
  if (outcome.opened != SC_OK) {
    assert_true(err.message[0] != '\0');
    assert_null(reader);
    return outcome;
  }
  for (;;) {
    const struct sc_record_head *head;
    size_t offset = 0;
    uint64_t sum = 0;

    assert_int_equal(sc_reader_next(reader, &batch, &more, &err), SC_OK);
    if (!more)
      break;
    assert_true(++outcome.batches <= size / SC_TRACE_SLOT); /* never more batches than slots */
    outcome.lost += batch.lost;
    for (size_t i = 0; i < batch.size; i += sizeof sum)
      sum += *(const uint64_t *)(const void *)(batch.bytes + i);
    sink += sum;
    while ((head = sc_batch_next(&batch, &offset))) {
      const struct sc_record_call *call = (const void *)head, *same;
      const struct sc_record_text *text = (const void *)head;

      if (head->kind == SC_RECORD_NOTE || head->kind == SC_RECORD_THREAD) /* consumers rely on this */
        assert_true(text->length <= head->units * 64u - offsetof(struct sc_record_text, text));
      if (head->kind != SC_RECORD_CALL)
        continue;
      outcome.calls++;
      same = original_call(original, call->start_ns);
      if (!same || memcmp(same, call, sizeof *call) != 0)
        outcome.different++;
    }
    assert_int_equal(offset, batch.size); /* a batch can be walked to its end */
  }
  sc_reader_damage(reader, &outcome.damage);
  sc_reader_close(reader);
  return outcome;
}

static bool noticed(const struct outcome *outcome) {
  return outcome->opened != SC_OK || outcome->damage.chunks || outcome->damage.records || outcome->damage.truncated ||
         outcome->lost;
}

static void the_undamaged_file_is_read_in_full(void **state) {
  (void)state;
  for (int killed = 0; killed < 2; killed++) {
    struct file file = make_file(killed);
    struct outcome outcome = read_bytes(&file, file.bytes, file.size);

    assert_int_equal(outcome.opened, SC_OK);
    assert_int_equal(outcome.calls, file.calls);
    assert_int_equal(outcome.different, 0);
    assert_false(noticed(&outcome));
    assert_true(outcome.batches >= 5);
    free(file.bytes);
  }
}

/* Calls in the chunks that lie in front of size. */
static uint64_t calls_before(const struct file *file, size_t size) {
  uint64_t calls = 0;

  for (size_t at = SC_TRACE_SLOT; at < size;) {
    const struct sc_trace_chunk *chunk = (const void *)(file->bytes + at);

    if (chunk->magic != SC_CHUNK_MAGIC || chunk->size > size - at)
      break;
    for (size_t record = at + sizeof *chunk; record < at + sizeof *chunk + chunk->committed;) {
      const struct sc_record_head *head = (const void *)(file->bytes + record);

      calls += head->kind == SC_RECORD_CALL;
      record += head->units * 64u;
    }
    at += chunk->size;
  }
  return calls;
}

/* Cut anywhere: the chunks in front of the cut are read in full, nothing false is read. */
static void every_truncation_gives_what_is_in_front_of_it(void **state) {
  (void)state;
  for (int killed = 0; killed < 2; killed++) {
    struct file file = make_file(killed);
    uint64_t last = 0;

    for (size_t size = 0; size <= file.size; size++) {
      /* A copy of exactly this size, so that a read behind its end is caught by the sanitizers. */
      unsigned char *copy = malloc(size ? size : 1);
      struct outcome outcome;

      assert_non_null(copy);
      memcpy(copy, file.bytes, size);
      outcome = read_bytes(&file, copy, size);
      free(copy);
      assert_int_equal(outcome.opened == SC_OK, size >= sizeof(struct sc_trace_header));
      assert_int_equal(outcome.different, 0);
      assert_true(outcome.calls >= last); /* more of the file never gives less */
      assert_true(outcome.calls >= calls_before(&file, size));
      if (size % SC_TRACE_SLOT && outcome.calls < file.calls && !noticed(&outcome))
        fail_msg("cut to %zu bytes: %llu of %llu calls and no word of it", size, (unsigned long long)outcome.calls,
                 (unsigned long long)file.calls);
      last = outcome.calls;
    }
    assert_int_equal(last, file.calls);
    free(file.bytes);
  }
}

/* Calls check with each byte of the file changed: each bit, then all eight. Of a zero byte (mostly unused room) only
 * the lowest and the highest bit, then all. */
static void for_each_flip(const struct file *file, void (*check)(const struct file *, const struct outcome *, size_t at)) {
  unsigned char *copy = malloc(file->size);

  assert_non_null(copy);
  memcpy(copy, file->bytes, file->size);
  for (size_t at = 0; at < file->size; at++) {
    for (int bit = 0; bit <= 8; bit += bit == 0 && file->bytes[at] == 0 ? 7 : 1) {
      struct outcome outcome;

      copy[at] ^= bit < 8 ? (unsigned char)(1 << bit) : 0xff;
      outcome = read_bytes(file, copy, file->size);
      /* The header has a checksum; nothing else stops a file from being read. */
      assert_int_equal(outcome.opened != SC_OK, at < sizeof(struct sc_trace_header));
      check(file, &outcome, at);
      copy[at] = file->bytes[at];
    }
  }
  free(copy);
}

/* Where chunks are closed no false record is ever given, and no loss of one goes unnoticed. */
static void check_closed(const struct file *file, const struct outcome *outcome, size_t at) {
  assert_int_equal(outcome->different, 0);
  assert_true(outcome->calls <= file->calls);
  if (outcome->calls < file->calls && !noticed(outcome))
    fail_msg("byte %zu changed: %llu of %llu calls and no word of it", at, (unsigned long long)outcome->calls,
             (unsigned long long)file->calls);
}

static void every_changed_byte_of_a_closed_file_is_caught(void **state) {
  struct file file = make_file(false);

  (void)state;
  for_each_flip(&file, check_closed);
  free(file.bytes);
}

/* In an open chunk a changed byte cannot be known; at most that record, or the chunk, is not what it was. */
static void check_open(const struct file *file, const struct outcome *outcome, size_t at) {
  (void)at;
  assert_true(outcome->different <= outcome->calls);
  assert_true(outcome->calls <= file->size / SC_TRACE_UNIT);
}

static void every_changed_byte_of_an_open_file_is_survived(void **state) {
  struct file file = make_file(true);

  (void)state;
  for_each_flip(&file, check_open);
  free(file.bytes);
}

/* ---- crafted files ----------------------------------------------------------------------------------- */

static struct sc_trace_chunk *chunk_at(const struct file *file, size_t offset) {
  struct sc_trace_chunk *chunk = (void *)(file->bytes + offset);

  assert_true(offset + sizeof *chunk <= file->size);
  assert_int_equal(chunk->magic, SC_CHUNK_MAGIC);
  return chunk;
}

static void seal(struct sc_trace_chunk *chunk) {
  chunk->flags &= (uint16_t)~SC_CHUNK_OPEN;
  chunk->checksum = sc_checksum_chunk(chunk, chunk + 1, chunk->committed);
}

static void seal_header(const struct file *file) {
  struct sc_trace_header *header = (void *)file->bytes;

  header->checksum = sc_checksum_header(header, header->header_size);
}

static struct outcome outcome_of(const struct file *file) { return read_bytes(file, file->bytes, file->size); }

static void assert_refused(const struct file *file, size_t size, enum sc_status status, const char *word) {
  struct sc_reader *reader = NULL;
  struct sc_error err = {0};

  assert_int_equal(sc_reader_open_memory(file->bytes, size, "NAME", &reader, &err), status);
  assert_null(reader);
  assert_non_null(strstr(err.message, "NAME"));
  if (!strstr(err.message, word))
    fail_msg("\"%s\" does not say \"%s\"", err.message, word);
}

static void strangers_damage_and_versions_are_told_apart(void **state) {
  struct file file = make_file(false);
  struct sc_trace_header *header = (void *)file.bytes;

  (void)state;
  assert_refused(&file, 0, SC_ERR_FORMAT, "not a synccount trace");
  assert_refused(&file, 8, SC_ERR_FORMAT, "cut off");
  header->version = 7;
  assert_refused(&file, file.size, SC_ERR_FORMAT, "damaged header");
  seal_header(&file);
  assert_int_equal(outcome_of(&file).calls, file.calls); /* newer, but says that we can read it */
  header->version_min = 6;
  seal_header(&file);
  assert_refused(&file, file.size, SC_ERR_VERSION, "needs a reader of version 6; this one reads 1 to 1");
  header->version = header->version_min = 0;
  seal_header(&file);
  assert_refused(&file, file.size, SC_ERR_VERSION, "format 0; this synccount reads 1 to 1");
  header->magic[0] = 'X';
  seal_header(&file);
  assert_refused(&file, file.size, SC_ERR_FORMAT, "not a synccount trace");
  free(file.bytes);
}

static void impossible_header_sizes_are_refused(void **state) {
  static const uint32_t slots[] = {0, 1, 64, 2048, 4097, 131072, 0x80000000u, UINT32_MAX};
  static const uint32_t sizes[] = {0, 192, 255, 300, 4096, 0x80000000u, UINT32_MAX};
  struct file file = make_file(false);
  struct sc_trace_header *header = (void *)file.bytes;

  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(slots); i++) {
    header->slot_size = slots[i];
    seal_header(&file);
    assert_refused(&file, file.size, SC_ERR_FORMAT, "damaged header");
  }
  header->slot_size = SC_TRACE_SLOT;
  for (size_t i = 0; i < SC_COUNTOF(sizes); i++) {
    header->header_size = sizes[i];
    header->checksum = sc_checksum_header(header, sizeof *header);
    assert_refused(&file, file.size, SC_ERR_FORMAT, "damaged header");
  }
  free(file.bytes);
}

static void a_longer_header_of_a_newer_version_is_read(void **state) {
  struct file file = make_file(false);
  struct sc_trace_header *header = (void *)file.bytes;
  struct sc_trace_live *live = (void *)(file.bytes + 512);
  struct sc_reader *reader = NULL;

  (void)state;
  memmove(live, file.bytes + 256, sizeof *live);
  memset(file.bytes + 256, 0x5a, 256);
  live->lost_records = 17;
  header->header_size = 512;
  seal_header(&file);
  assert_int_equal(sc_reader_open_memory(file.bytes, file.size, "newer", &reader, NULL), SC_OK);
  assert_int_equal(sc_reader_live(reader)->lost_records, 17);
  sc_reader_close(reader);
  assert_int_equal(outcome_of(&file).calls, file.calls);
  free(file.bytes);
}

/* Offset of a thread's chunk. */
static size_t find_chunk(const struct file *file, uint64_t thread, uint64_t sequence) {
  for (size_t at = SC_TRACE_SLOT; at < file->size;) {
    struct sc_trace_chunk *chunk = chunk_at(file, at);

    if (chunk->thread == thread && chunk->sequence == sequence)
      return at;
    at += chunk->size;
  }
  fail_msg("no chunk %llu of thread %llu", (unsigned long long)sequence, (unsigned long long)thread);
  return 0;
}

/* Adds bytes behind the file's end. */
static void append(struct file *file, const void *bytes, size_t size) {
  unsigned char *grown = realloc(file->bytes, file->size + size);

  assert_non_null(grown);
  memcpy(grown + file->size, bytes, size);
  file->bytes = grown;
  file->size += size;
}

static void unknown_chunks_and_slots_of_zeros_are_skipped(void **state) {
  static unsigned char slots[4 * SC_TRACE_SLOT];
  struct sc_trace_chunk *chunk = (void *)(slots + SC_TRACE_SLOT);
  struct file file = make_file(false), more = make_file(false);
  struct outcome outcome;

  (void)state;
  memset(slots, 0, sizeof slots);
  *chunk = (struct sc_trace_chunk){.magic = SC_CHUNK_MAGIC, .kind = 77, .size = 2 * SC_TRACE_SLOT, .committed = 6400};
  memset(chunk + 1, 0xee, 6400);
  seal(chunk);
  append(&file, slots, sizeof slots); /* zeros, an unknown chunk, zeros */
  for (size_t at = SC_TRACE_SLOT; at < more.size;) {
    chunk = chunk_at(&more, at);
    chunk->thread += 10;
    seal(chunk);
    at += chunk->size;
  }
  append(&file, more.bytes + SC_TRACE_SLOT, more.size - SC_TRACE_SLOT);
  outcome = outcome_of(&file);
  assert_false(noticed(&outcome));
  assert_int_equal(outcome.calls, 2 * file.calls);
  free(file.bytes);
  free(more.bytes);
}

/* The process was killed while it appended a chunk: the header is there, the rest may not be. */
static void a_void_chunk_is_skipped_even_if_cut_off(void **state) {
  static unsigned char slots[3 * SC_TRACE_SLOT];
  struct sc_trace_chunk *chunk = (void *)slots;

  (void)state;
  for (size_t size = sizeof *chunk; size <= sizeof slots; size += 1000) {
    struct file file = make_file(true);
    struct outcome outcome;

    memset(slots, 0xee, sizeof slots);
    *chunk = (struct sc_trace_chunk){
      .magic = SC_CHUNK_MAGIC, .kind = SC_CHUNK_VOID, .flags = SC_CHUNK_OPEN, .size = sizeof slots, .thread = 1};
    append(&file, slots, size);
    outcome = outcome_of(&file);
    assert_false(noticed(&outcome));
    assert_int_equal(outcome.calls, file.calls);
    free(file.bytes);
  }
}

/* The process was killed after it appended its home and before it emptied it. */
static void a_home_that_was_already_appended_is_not_read_twice(void **state) {
  struct file file = make_file(true);
  size_t at = find_chunk(&file, 3, 0);
  struct sc_trace_chunk *home = chunk_at(&file, at), *copy;
  unsigned char slot[SC_TRACE_SLOT];
  struct sc_reader *reader = NULL;
  struct outcome outcome;
  struct sc_batch batch;
  uint64_t launches = 0;
  bool more;

  (void)state;
  assert_int_equal(home->flags & (SC_CHUNK_OPEN | SC_CHUNK_HOME), SC_CHUNK_OPEN | SC_CHUNK_HOME);
  assert_int_equal(home->launches, 1);
  memcpy(slot, home, sizeof slot);
  copy = (void *)slot;
  copy->flags &= (uint16_t)~SC_CHUNK_HOME;
  copy->submissions = copy->launches = 0;
  seal(copy);
  append(&file, slot, sizeof slot);
  outcome = outcome_of(&file);
  assert_false(noticed(&outcome));
  assert_int_equal(outcome.calls, file.calls);
  assert_int_equal(sc_reader_open_memory(file.bytes, file.size, "x", &reader, NULL), SC_OK);
  while (sc_reader_next(reader, &batch, &more, NULL) == SC_OK && more)
    launches += batch.thread == 3 ? batch.tail_launches : 0;
  assert_int_equal(launches, 1); /* what the home alone has is still given */
  sc_reader_close(reader);
  free(file.bytes);
}

/* A home lies in front of the chunks that were appended before it was last emptied. */
static void a_home_is_read_after_the_other_chunks_of_its_thread(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  const struct sc_trace_chunk *home;
  struct file file = {0};
  struct sc_reader *reader;
  struct sc_batch batch;
  uint64_t next = 0;
  bool more;

  (void)state;
  for (uint64_t i = 0; i < 5000; i++)
    mt_call(t, thread, "cudaFree", (struct mt_call){.start_ns = i});
  file.bytes = mt_bytes(t, &file.size);
  home = chunk_at(&file, 6 * SC_TRACE_SLOT); /* behind slot 0 and the homes of 1 and 4 slots */
  assert_true(home->flags & SC_CHUNK_HOME);
  assert_true(home->sequence > 2);
  assert_int_equal(chunk_at(&file, 6 * SC_TRACE_SLOT + home->size)->sequence, 2);
  reader = mt_reader(t);
  while (sc_reader_next(reader, &batch, &more, NULL) == SC_OK && more) {
    const struct sc_record_head *head;
    size_t offset = 0;

    assert_int_equal(batch.lost, 0);
    while ((head = sc_batch_next(&batch, &offset)))
      if (head->kind == SC_RECORD_CALL)
        assert_int_equal(((const struct sc_record_call *)(const void *)head)->start_ns, next++);
  }
  assert_int_equal(next, 5000);
  sc_reader_close(reader);
  free(file.bytes);
  mt_free(t);
}

static void unknown_records_are_skipped_by_their_units(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  struct file file = {.calls = 1};
  struct sc_record_head *record;
  struct outcome outcome;

  (void)state;
  record = sc_writer_reserve(thread, 5);
  assert_non_null(record);
  memset(record, 0xff, 5 * 64);
  *record = (struct sc_record_head){.kind = 999, .units = 5};
  sc_writer_commit(thread, 5);
  mt_call(t, thread, "cudaFree", (struct mt_call){.start_ns = 1, .duration_ns = 3});
  file.bytes = mt_bytes(t, &file.size);
  outcome = outcome_of(&file);
  assert_false(noticed(&outcome));
  assert_int_equal(outcome.calls, 1);
  free(file.bytes);
  mt_free(t);
}

static void a_missing_chunk_is_a_gap_of_its_thread(void **state) {
  struct file file = make_file(false);
  struct sc_trace_chunk *chunk = chunk_at(&file, find_chunk(&file, 2, 0));
  struct outcome outcome;

  (void)state;
  memset(chunk, 0, chunk->size); /* as if never written */
  outcome = outcome_of(&file);
  assert_int_equal(outcome.lost, 1);
  assert_int_equal(outcome.damage.chunks, 1);
  assert_non_null(strstr(outcome.damage.first, "written chunks are not in the file"));
  assert_true(outcome.calls < file.calls);
  free(file.bytes);
}

/* As a copy to a disk that was full may be: zeros up to the size that the file had. */
static void a_file_that_ends_in_zeros_instead_of_chunks_has_lost_them(void **state) {
  struct file whole = make_file(true);

  (void)state;
  assert_int_equal(outcome_of(&whole).damage.chunks, 0);
  for (size_t at = SC_TRACE_SLOT; at < whole.size; at += chunk_at(&whole, at)->size) {
    struct file file = {.bytes = malloc(whole.size), .size = whole.size};
    struct outcome outcome;

    assert_non_null(file.bytes);
    memcpy(file.bytes, whole.bytes, at);
    memset(file.bytes + at, 0, whole.size - at);
    outcome = outcome_of(&file);
    if (outcome.damage.chunks == 0)
      fail_msg("zeros from byte %zu on, and no word of it", at);
    file.size = at; /* the same, cut off between two chunks */
    outcome = outcome_of(&file);
    if (outcome.damage.chunks == 0)
      fail_msg("cut off at byte %zu, and no word of it", at);
    free(file.bytes);
  }
  free(whole.bytes);
}

/* A file of a writer that counts no chunks reads as it did. */
static void without_a_count_no_chunk_is_missed(void **state) {
  struct file file = make_file(false);
  struct sc_trace_live *live = (void *)(file.bytes + sizeof(struct sc_trace_header));
  struct sc_trace_chunk *chunk = chunk_at(&file, find_chunk(&file, 2, 0));
  struct outcome outcome;

  (void)state;
  live->chunks = 0;
  memset(chunk, 0, chunk->size);
  outcome = outcome_of(&file);
  assert_int_equal(outcome.lost, 1);
  assert_int_equal(outcome.damage.chunks, 0);
  free(file.bytes);
}

static void an_absurd_sequence_number_is_a_bounded_gap(void **state) {
  struct file file = make_file(false);
  struct sc_trace_chunk *chunk = chunk_at(&file, find_chunk(&file, 3, 0));
  struct outcome outcome;

  (void)state;
  chunk->sequence = UINT64_MAX;
  seal(chunk);
  outcome = outcome_of(&file);
  assert_in_range(outcome.lost, 1, file.size / SC_TRACE_SLOT);
  assert_int_equal(outcome.calls, file.calls);
  free(file.bytes);
}

static void a_repeated_chunk_is_damage_and_is_not_read_twice(void **state) {
  struct file file = make_file(false);
  size_t at = find_chunk(&file, 1, 0);
  unsigned char slot[SC_TRACE_SLOT];
  struct outcome outcome;

  (void)state;
  memcpy(slot, file.bytes + at, sizeof slot);
  append(&file, slot, sizeof slot);
  outcome = outcome_of(&file);
  assert_int_equal(outcome.calls, file.calls);
  assert_int_equal(outcome.damage.chunks, 1);
  free(file.bytes);
}

static void after_damage_reading_goes_on_at_a_slot_boundary(void **state) {
  struct file file = make_file(false);
  size_t second = find_chunk(&file, 2, 0);
  struct sc_trace_chunk *chunk = chunk_at(&file, second);
  uint64_t in_chunk = calls_before(&file, second + chunk->size) - calls_before(&file, second);
  struct outcome outcome;

  (void)state;
  chunk->size = SC_TRACE_CHUNK_MAX; /* leads behind the file's end: not to be believed */
  outcome = outcome_of(&file);
  assert_int_equal(outcome.calls, file.calls - in_chunk);
  assert_true(outcome.damage.chunks > 0);
  assert_true(outcome.lost > 0);
  assert_int_equal(outcome.different, 0);
  assert_non_null(strstr(outcome.damage.first, "byte"));
  free(file.bytes);
}

static void a_malformed_record_is_passed_over(void **state) {
  struct file file = make_file(false);
  struct sc_trace_chunk *chunk = chunk_at(&file, SC_TRACE_SLOT);
  struct sc_record_text *text = (void *)(chunk + 1);
  struct outcome outcome;

  (void)state;
  assert_int_equal(text->head.kind, SC_RECORD_META);
  text->length = UINT32_MAX;
  seal(chunk);
  outcome = outcome_of(&file);
  assert_int_equal(outcome.damage.records, 1);
  assert_int_equal(outcome.calls, file.calls);
  text->length = 12;
  text->head.units = 0; /* no length to pass over: the rest of the chunk is lost, the next chunk has a gap */
  seal(chunk);
  outcome = outcome_of(&file);
  assert_int_equal(outcome.damage.records, 1);
  assert_true(outcome.calls < file.calls);
  assert_int_equal(outcome.lost, 1);
  free(file.bytes);
}

/* One thread, one chunk, whose first record is a STRING of id 1, then one of id 2. */
static struct file make_strings(void) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  struct file file = {0};

  mt_string(t, thread, "first");
  mt_string(t, thread, "second");
  mt_api(t, thread, "cudaStreamSynchronize_v3020");
  file.bytes = mt_bytes(t, &file.size);
  mt_free(t);
  return file;
}

static void a_second_definition_does_not_replace_the_first(void **state) {
  struct file file = make_strings();
  struct sc_trace_chunk *chunk = chunk_at(&file, SC_TRACE_SLOT);
  struct sc_record_text *strings = (void *)(chunk + 1);
  struct sc_reader *reader = NULL;
  struct sc_damage damage;
  struct sc_batch batch;
  bool more;

  (void)state;
  strings[1].id = 1;
  seal(chunk);
  assert_int_equal(sc_reader_open_memory(file.bytes, file.size, "x", &reader, NULL), SC_OK);
  assert_int_equal(sc_reader_next(reader, &batch, &more, NULL), SC_OK);
  assert_string_equal(sc_reader_string(reader, 1, NULL), "first");
  sc_reader_damage(reader, &damage);
  assert_int_equal(damage.records, 1);
  sc_reader_close(reader);
  free(file.bytes);
}

static void a_definition_whose_chunk_lost_its_flag_is_taken_later(void **state) {
  struct file file = make_strings();
  struct sc_trace_chunk *chunk = chunk_at(&file, SC_TRACE_SLOT);
  struct sc_reader *reader = NULL;
  struct sc_batch batch;
  bool more;

  (void)state;
  assert_true(chunk->flags & SC_CHUNK_DEFINES);
  chunk->flags = 0;
  seal(chunk);
  assert_int_equal(sc_reader_open_memory(file.bytes, file.size, "x", &reader, NULL), SC_OK);
  assert_null(sc_reader_string(reader, 1, NULL));
  assert_int_equal(sc_reader_next(reader, &batch, &more, NULL), SC_OK);
  assert_string_equal(sc_reader_string(reader, 1, NULL), "first");
  sc_reader_close(reader);
  free(file.bytes);
}

static void an_op_that_the_writer_lacked_or_we_lack_is_asked_by_name(void **state) {
  struct file file = make_strings();
  struct sc_trace_chunk *chunk = chunk_at(&file, SC_TRACE_SLOT);
  struct sc_record_api *api = (void *)((struct sc_record_text *)(void *)(chunk + 1) + 2);
  static const uint8_t ops[] = {SC_OP_NONE, SC_OP_COUNT, 255};

  (void)state;
  assert_int_equal(api->head.kind, SC_RECORD_API);
  for (size_t i = 0; i < SC_COUNTOF(ops); i++) {
    struct sc_reader *reader = NULL;

    api->op = ops[i];
    seal(chunk);
    assert_int_equal(sc_reader_open_memory(file.bytes, file.size, "x", &reader, NULL), SC_OK);
    assert_int_equal(sc_reader_api(reader, 1)->op, SC_OP_SYNC_STREAM);
    sc_reader_close(reader);
  }
  free(file.bytes);
}

/* ---- bounds ---------------------------------------------------------------------------------------------- */

static void huge_ids_do_not_cost_huge_tables(void **state) {
  static const uint32_t ids[] = {1048575, 1048576, 0x7fffffff, UINT32_MAX};
  struct file file = make_strings();
  struct sc_trace_chunk *chunk = chunk_at(&file, SC_TRACE_SLOT);
  struct sc_record_text *strings = (void *)(chunk + 1);
  struct sc_record_api *api = (void *)(strings + 2);

  (void)state;
  for (size_t i = 0; i < SC_COUNTOF(ids); i++) {
    size_t before = mallinfo2().uordblks;
    struct sc_reader *reader = NULL;

    strings[0].id = ids[i];
    api->id = ids[i];
    seal(chunk);
    assert_int_equal(sc_reader_open_memory(file.bytes, file.size, "x", &reader, NULL), SC_OK);
    assert_true(mallinfo2().uordblks - before < 1 << 20);
    if (i == 0)
      assert_string_equal(sc_reader_string(reader, ids[i], NULL), "first");
    else
      assert_null(sc_reader_string(reader, ids[i], NULL));
    assert_null(sc_reader_api(reader, ids[i])); /* api ids have 16 bits */
    sc_reader_close(reader);
  }
  free(file.bytes);
}

static void metas_are_limited(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  struct file file = {0};
  struct outcome outcome;
  char key[16];

  (void)state;
  for (int i = 0; i < 1100; i++) {
    snprintf(key, sizeof key, "key%d", i);
    mt_meta(thread, key, "value");
    mt_meta(thread, key, "another"); /* the first counts */
  }
  file.bytes = mt_bytes(t, &file.size);
  outcome = outcome_of(&file);
  assert_int_equal(outcome.damage.records, 2 * (1100 - 1024));
  assert_non_null(strstr(outcome.damage.first, "limits"));
  free(file.bytes);
  mt_free(t);
}

static char *write_temporary(const struct file *file) {
  char *path = sc_strdup("/tmp/screader-XXXXXX");
  int fd = mkstemp(path);

  assert_true(fd >= 0);
  assert_int_equal(write(fd, file->bytes, file->size), file->size);
  close(fd);
  return path;
}

static void a_huge_hole_is_hopped_over(void **state) {
  struct file file = make_file(false);
  char *path = write_temporary(&file);
  struct sc_reader *reader = NULL;
  struct sc_batch batch;
  bool more = true;
  int batches = 0;

  (void)state;
  if (truncate(path, (off_t)1 << 43) != 0) { /* 8 TiB: reading it would take an hour */
    print_message("skipped: the file system of /tmp has no sparse files of 8 TiB\n");
    unlink(path);
    free(path);
    free(file.bytes);
    skip();
  }
  assert_int_equal(sc_reader_open(path, &reader, NULL), SC_OK);
  for (;; batches++) {
    assert_int_equal(sc_reader_next(reader, &batch, &more, NULL), SC_OK);
    if (!more)
      break;
  }
  assert_true(batches >= 5);
  sc_reader_close(reader);
  unlink(path);
  free(path);
  free(file.bytes);
}

static void a_file_that_shrinks_while_it_is_read_is_no_sigbus(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  struct sc_reader *reader;
  struct sc_damage damage;
  struct sc_batch batch;
  bool more = true;
  int batches = 0;

  (void)state;
  for (uint64_t i = 0; i < 20000; i++)
    mt_call(t, thread, "cudaStreamSynchronize", (struct mt_call){.start_ns = i});
  reader = mt_reader(t);
  assert_int_equal(sc_reader_next(reader, &batch, &more, NULL), SC_OK);
  assert_true(more);
  assert_int_equal(truncate(mt_close(t), 100000), 0);
  for (; more; batches++)
    assert_int_equal(sc_reader_next(reader, &batch, &more, NULL), SC_OK);
  assert_true(batches < 10);
  sc_reader_damage(reader, &damage);
  assert_int_equal(damage.truncated, 1);
  sc_reader_close(reader);
  mt_free(t);
}

/* A trace may be looked at while its program runs. */
static void a_growing_file_can_be_read(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);
  uint64_t written = 0;

  (void)state;
  for (int round = 0; round < 20; round++) {
    struct sc_reader *reader = NULL;
    struct sc_batch batch;
    struct sc_damage damage;
    uint64_t calls = 0;
    bool more;

    for (int i = 0; i < 777; i++)
      mt_call(t, thread, "cudaStreamSynchronize", (struct mt_call){.start_ns = ++written});
    assert_int_equal(sc_reader_open(mt_kill(t), &reader, NULL), SC_OK);
    while (sc_reader_next(reader, &batch, &more, NULL) == SC_OK && more) {
      const struct sc_record_head *head;
      size_t offset = 0;

      while ((head = sc_batch_next(&batch, &offset)))
        calls += head->kind == SC_RECORD_CALL;
    }
    sc_reader_damage(reader, &damage);
    assert_string_equal(damage.first, "");
    assert_int_equal(calls, written);
    sc_reader_close(reader);
  }
  mt_free(t);
}

static void assert_path_refused(const char *path, enum sc_status status) {
  struct sc_reader *reader = NULL;
  struct sc_error err = {0};

  assert_int_equal(sc_reader_open(path, &reader, &err), status);
  assert_null(reader);
  assert_non_null(strstr(err.message, path));
}

static void what_is_no_file_is_refused_by_name(void **state) {
  char folder[] = "/tmp/screader-XXXXXX", fifo[64];

  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  assert_path_refused("/no/such/trace.sctrace", SC_ERR_IO);
  assert_path_refused(folder, SC_ERR_FORMAT);
  assert_path_refused(fifo, SC_ERR_FORMAT); /* and does not wait for a writer */
  assert_path_refused("/dev/null", SC_ERR_FORMAT);
  unlink(fifo);
  rmdir(folder);
}

static void a_walk_over_foreign_bytes_stays_inside(void **state) {
  struct sc_record_head records[8] = {{.kind = SC_RECORD_CALL, .units = 1}, {0}, {0}, {0}, {.units = 9}};
  struct sc_batch batch = {.bytes = (const unsigned char *)records, .size = sizeof records};
  size_t offset = 0;

  (void)state;
  assert_ptr_equal(sc_batch_next(&batch, &offset), records);
  assert_null(sc_batch_next(&batch, &offset)); /* 9 units do not fit */
  batch.size = 63;
  offset = 0;
  assert_null(sc_batch_next(&batch, &offset));
  offset = SIZE_MAX;
  assert_null(sc_batch_next(&batch, &offset));
}

/* ---- what was counted without a record --------------------------------------------------------------- */

static void counts_without_records_are_read_where_the_file_has_them(void **state) {
  static union {
    struct {
      struct sc_trace_header header;
      struct sc_trace_live live;
      struct sc_trace_beyond beyond;
    } whole;
    unsigned char bytes[SC_TRACE_SLOT];
  } file;
  struct sc_reader *reader;
  struct sc_error err = {.status = SC_OK};

  (void)state;
  file.whole.header = (struct sc_trace_header){.version = SC_TRACE_VERSION,
                                               .version_min = SC_TRACE_VERSION_MIN,
                                               .header_size = sizeof file.whole.header,
                                               .slot_size = SC_TRACE_SLOT};
  memcpy(file.whole.header.magic, SC_TRACE_MAGIC, sizeof file.whole.header.magic);
  file.whole.header.checksum = sc_checksum_header(&file.whole.header, sizeof file.whole.header);
  file.whole.beyond.all[0] = 7;
  file.whole.beyond.within[0] = 3;
  for (size_t claimed = 0; claimed <= 2 * sizeof file.whole.beyond; claimed += sizeof file.whole.beyond / 2) {
    file.whole.live.beyond_size = claimed;
    assert_int_equal(sc_reader_open_memory(&file, sizeof file, "beyond", &reader, &err), SC_OK);
    const struct sc_trace_beyond *beyond = sc_reader_beyond(reader);
    assert_int_equal(beyond != NULL, claimed >= sizeof file.whole.beyond);
    if (beyond) {
      assert_int_equal(beyond->all[0], 7);
      assert_int_equal(beyond->within[0], 3);
    }
    sc_reader_close(reader);
  }
  /* Cut off inside of them: none at all. */
  assert_int_equal(sc_reader_open_memory(&file, sizeof file.whole - 8, "beyond", &reader, &err), SC_OK);
  assert_null(sc_reader_beyond(reader));
  sc_reader_close(reader);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_undamaged_file_is_read_in_full),
    cmocka_unit_test(every_truncation_gives_what_is_in_front_of_it),
    cmocka_unit_test(every_changed_byte_of_a_closed_file_is_caught),
    cmocka_unit_test(every_changed_byte_of_an_open_file_is_survived),
    cmocka_unit_test(strangers_damage_and_versions_are_told_apart),
    cmocka_unit_test(impossible_header_sizes_are_refused),
    cmocka_unit_test(a_longer_header_of_a_newer_version_is_read),
    cmocka_unit_test(unknown_chunks_and_slots_of_zeros_are_skipped),
    cmocka_unit_test(a_void_chunk_is_skipped_even_if_cut_off),
    cmocka_unit_test(a_home_that_was_already_appended_is_not_read_twice),
    cmocka_unit_test(a_home_is_read_after_the_other_chunks_of_its_thread),
    cmocka_unit_test(unknown_records_are_skipped_by_their_units),
    cmocka_unit_test(a_missing_chunk_is_a_gap_of_its_thread),
    cmocka_unit_test(a_file_that_ends_in_zeros_instead_of_chunks_has_lost_them),
    cmocka_unit_test(without_a_count_no_chunk_is_missed),
    cmocka_unit_test(an_absurd_sequence_number_is_a_bounded_gap),
    cmocka_unit_test(a_repeated_chunk_is_damage_and_is_not_read_twice),
    cmocka_unit_test(after_damage_reading_goes_on_at_a_slot_boundary),
    cmocka_unit_test(a_malformed_record_is_passed_over),
    cmocka_unit_test(a_second_definition_does_not_replace_the_first),
    cmocka_unit_test(a_definition_whose_chunk_lost_its_flag_is_taken_later),
    cmocka_unit_test(an_op_that_the_writer_lacked_or_we_lack_is_asked_by_name),
    cmocka_unit_test(huge_ids_do_not_cost_huge_tables),
    cmocka_unit_test(metas_are_limited),
    cmocka_unit_test(a_huge_hole_is_hopped_over),
    cmocka_unit_test(a_file_that_shrinks_while_it_is_read_is_no_sigbus),
    cmocka_unit_test(a_growing_file_can_be_read),
    cmocka_unit_test(what_is_no_file_is_refused_by_name),
    cmocka_unit_test(a_walk_over_foreign_bytes_stays_inside),
    cmocka_unit_test(counts_without_records_are_read_where_the_file_has_them),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
