/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: the trace reader, read as a tool would read it. */
#include <stdlib.h>
#include <string.h>

#include "trace/checksum.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

/* Looks at every byte that the reader vouches for. */
static void look(const void *bytes, size_t n) {
  const unsigned char *at = bytes;
  uint64_t sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += at[i];
  sink += sum;
}

static void look_at_string(const struct sc_reader *reader, uint32_t id) {
  size_t length;
  const char *text = sc_reader_string(reader, id, &length);

  if (text)
    look(text, length + 1);
}

static void look_at_record(const struct sc_reader *reader, const struct sc_record_head *head) {
  switch (head->kind) {
  case SC_RECORD_CALL: {
    const struct sc_api *api = sc_reader_api(reader, SC_CALL_API((const struct sc_record_call *)(const void *)head));

    if (api)
      look(api->name, strlen(api->name));
    break;
  }
  case SC_RECORD_RANGE_PUSH:
  case SC_RECORD_RANGE_START: {
    const struct sc_record_range *range = (const void *)head;

    look_at_string(reader, range->name);
    look_at_string(reader, range->domain);
    break;
  }
  case SC_RECORD_NOTE:
  case SC_RECORD_THREAD: {
    const struct sc_record_text *text = (const void *)head;

    look(text->text, text->length);
    break;
  }
  default:
    break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct sc_reader *reader = NULL;
  struct sc_error err = {0};
  struct sc_damage damage;
  struct sc_batch batch;
  bool more = true;
  size_t batches = 0;

  if (sc_reader_open_memory(data, size, "input", &reader, &err) != SC_OK) {
    if (err.message[0] == '\0' || reader)
      abort();
    return 0;
  }
  while (sc_reader_next(reader, &batch, &more, &err) == SC_OK && more) {
    const struct sc_record_head *head;
    size_t offset = 0;

    if (++batches > size / SC_TRACE_SLOT || batch.size > size) /* as much as the file can hold, not more */
      abort();
    look(batch.bytes, batch.size);
    while ((head = sc_batch_next(&batch, &offset)))
      look_at_record(reader, head);
    if (offset != batch.size)
      abort();
  }
  sc_reader_damage(reader, &damage);
  look(damage.first, strlen(damage.first));
  if (sc_reader_meta(reader, "command"))
    look(sc_reader_meta(reader, "command"), strlen(sc_reader_meta(reader, "command")));
  sc_reader_close(reader);
  return 0;
}

#if defined(SC_LIBFUZZER)
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

static void repair_header(uint8_t *data, size_t size) {
  struct sc_trace_header header;

  if (size < sizeof header)
    return;
  memcpy(&header, data, sizeof header);
  memcpy(header.magic, SC_TRACE_MAGIC, sizeof header.magic);
  if (header.header_size != sizeof header)
    return; /* longer headers keep what they have */
  header.checksum = sc_checksum_header(&header, sizeof header);
  memcpy(data, &header, sizeof header);
}

static void repair_chunks(uint8_t *data, size_t size) {
  for (size_t at = SC_TRACE_SLOT; at < size && size - at >= sizeof(struct sc_trace_chunk); at += SC_TRACE_SLOT) {
    struct sc_trace_chunk chunk;

    memcpy(&chunk, data + at, sizeof chunk);
    if (chunk.magic != SC_CHUNK_MAGIC || chunk.committed > size - at - sizeof chunk)
      continue;
    chunk.checksum = sc_checksum_chunk(&chunk, data + at + sizeof chunk, chunk.committed);
    memcpy(data + at, &chunk, sizeof chunk);
  }
}

/* A random change, after which most inputs have the checksums that a hostile writer would give them. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max);
  if (seed % 4 != 0) {
    repair_header(data, size);
    repair_chunks(data, size);
  }
  return size;
}
#endif
