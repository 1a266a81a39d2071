/* SPDX-License-Identifier: Apache-2.0
 * Writes the trace fuzzer's corpus: sound traces of each shape, and one of each kind of damage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"
#include "trace/checksum.h"
#include "trace/make_trace.h"

struct input {
  unsigned char *bytes;
  size_t size;
};

static void seal_header(struct input *input) {
  struct sc_trace_header *header = (void *)input->bytes;

  header->checksum = sc_checksum_header(header, sizeof *header);
}

/* Two threads with every kind of record; the same bytes on every machine and in every run. */
static struct input make_input(bool killed, int calls) {
  struct make_trace *t = mt_new(SC_TRACE_SIMULATED);
  struct sc_writer_thread *threads[2] = {mt_thread(t), mt_thread(t)};
  struct sc_trace_header *header;
  struct sc_trace_live *live;
  struct input input;

  mt_meta(threads[0], "command", "python train.py");
  mt_name(threads[0], "main");
  mt_note(threads[0], SC_NOTE_SLOT_TAKEN, "another tool");
  mt_range_start(t, threads[1], NULL, "process range", 7, 5);
  for (int i = 0; i < calls; i++) {
    mt_launch(threads[i % 2], 2);
    mt_push(t, threads[i % 2], "synccount", "layer:0", (uint64_t)i);
    mt_call(t, threads[i % 2], "cuMemcpyDtoHAsync_v2_ptsz", (struct mt_call){.start_ns = (uint64_t)i, .bytes = 8});
    mt_pop(t, threads[i % 2], "synccount", (uint64_t)i);
  }
  mt_range_end(t, threads[1], NULL, 7, 100);
  if (killed)
    mt_kill(t);
  input.bytes = mt_bytes(t, &input.size);
  header = (void *)input.bytes;
  live = (void *)(header + 1);
  memset(header->host, 0, sizeof header->host);
  strcpy(header->host, "host");
  header->pid = header->ppid = 1;
  header->start_mono_ns = header->start_real_ns = 1000;
  live->end_mono_ns = killed ? 0 : 2000;
  live->overhead_ns = 0;
  seal_header(&input);
  for (size_t at = SC_TRACE_SLOT; at < input.size;) {
    struct sc_trace_chunk *chunk = (void *)(input.bytes + at);

    chunk->tid = (uint32_t)chunk->thread;
    if (!(chunk->flags & SC_CHUNK_OPEN))
      chunk->checksum = sc_checksum_chunk(chunk, chunk + 1, chunk->committed);
    at += chunk->size;
  }
  mt_free(t);
  return input;
}

static void save(const char *folder, const char *name, const struct input *input, size_t size) {
  char path[4096];
  FILE *file;

  snprintf(path, sizeof path, "%s/%s", folder, name);
  file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(input->bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

/* A sound input with one field of its first chunk changed, and resealed. */
static void save_changed(const char *folder, const char *name, void (*change)(struct sc_trace_chunk *)) {
  struct input input = make_input(false, 4);
  struct sc_trace_chunk *chunk = (void *)(input.bytes + SC_TRACE_SLOT);

  change(chunk);
  if (chunk->committed < SC_TRACE_SLOT)
    chunk->checksum = sc_checksum_chunk(chunk, chunk + 1, chunk->committed);
  save(folder, name, &input, input.size);
  free(input.bytes);
}

static void huge_size(struct sc_trace_chunk *chunk) { chunk->size = 0xfffff000u; }
static void huge_committed(struct sc_trace_chunk *chunk) { chunk->committed = 0xffffffc0u; }
static void unknown_kind(struct sc_trace_chunk *chunk) { chunk->kind = 99; }
static void far_sequence(struct sc_trace_chunk *chunk) { chunk->sequence = UINT64_MAX; }
static void no_units(struct sc_trace_chunk *chunk) { ((struct sc_record_head *)(void *)(chunk + 1))->units = 0; }
static void long_text(struct sc_trace_chunk *chunk) {
  ((struct sc_record_text *)(void *)(chunk + 1))->length = UINT32_MAX;
}

int main(int argc, char **argv) {
  struct input input;

  if (argc != 2) {
    fprintf(stderr, "usage: make_reader_corpus FOLDER\n");
    return 2;
  }
  input = make_input(false, 4);
  save(argv[1], "closed", &input, input.size);
  save(argv[1], "cut-in-header", &input, 200);
  save(argv[1], "cut-in-live", &input, 300);
  save(argv[1], "cut-in-chunk", &input, SC_TRACE_SLOT + 500);
  free(input.bytes);
  input = make_input(true, 4);
  save(argv[1], "killed", &input, input.size);
  free(input.bytes);
  input = make_input(false, 60);
  save(argv[1], "several-chunks", &input, input.size);
  free(input.bytes);
  save_changed(argv[1], "chunk-huge-size", huge_size);
  save_changed(argv[1], "chunk-huge-committed", huge_committed);
  save_changed(argv[1], "chunk-unknown-kind", unknown_kind);
  save_changed(argv[1], "chunk-far-sequence", far_sequence);
  save_changed(argv[1], "record-no-units", no_units);
  save_changed(argv[1], "record-long-text", long_text);
  return 0;
}
