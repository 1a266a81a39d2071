/* SPDX-License-Identifier: Apache-2.0
 * The trace reader. Files come from killed processes and from strangers: everything is checked before it is used.
 *
 * Two decisions shape it:
 * - The file is read into one window with pread, not mapped: a mapped file that shrinks is a SIGBUS, and bytes that
 *   change after they were checked are a hole. A copy costs a few nanoseconds a record.
 * - A thread may use a string that another thread defined in a chunk further on in the file. So opening makes a first
 *   pass over the chunk headers and reads only the chunks flagged SC_CHUNK_DEFINES; the second pass, sc_reader_next,
 *   reads every chunk once. (Definitions in a chunk that lost its flag are still taken, only later.) */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/checksum.h"

enum {
  WINDOW = SC_TRACE_CHUNK_MAX, /* read at once (less of a smaller file); a chunk always fits */
  HOLE_SLOTS = 1024,           /* this many unused slots on end: ask the file system where data goes on */
  BLOCK = 16384,               /* of texts */
  PAGE_ITEMS = 1024,           /* tables grow by pages of this many ids, so that one huge id costs one page */
  STRING_PAGES = 1024,         /* limit: a million strings */
  API_PAGES = 64,              /* ids of 16 bits */
  STACK_PAGES = 256,           /* a quarter of a million stacks, and as many frames; modules are fewer */
  MODULE_PAGES = 16,
  METAS_MAX = 1024,
  THREADS_MAX = 1 << 20,       /* beyond it missing chunks are not noticed */
};
#define TEXT_BYTES_MAX ((size_t)256 << 20) /* of all strings, names and metas together */

struct block { /* texts are carved from blocks, which are freed as a whole */
  struct block *next;
  char bytes[];
};

struct text {
  const char *bytes; /* NULL: not defined */
  size_t length;
};

struct meta {
  const char *key, *value;
};

struct stack_item {
  struct sc_stack stack;
  bool defined;
};

struct frame_item {
  uint32_t file, function, line, first_line;
  bool defined;
};

struct module_item {
  uint64_t base;
  uint32_t path;
  bool defined;
  uint8_t build_id_length, build_id[sizeof((struct sc_record_module *)NULL)->build_id];
};

struct thread_state { /* an open-addressing table by serial; 0 is an empty place, no thread has it */
  uint64_t thread, next_sequence, lost;
};

struct sc_reader {
  char *path;
  int fd; /* -1: memory */
  const unsigned char *memory;
  uint64_t size, offset; /* of the file; of the next chunk */
  unsigned char *window;
  uint64_t window_offset;
  size_t window_size, window_capacity;
  struct sc_trace_header header;
  struct sc_trace_live live;
  struct sc_trace_beyond beyond;
  void *strings[STRING_PAGES]; /* pages of struct text */
  void *apis[API_PAGES];       /* pages of struct sc_api */
  void *stacks[STACK_PAGES];   /* pages of struct stack_item */
  void *frames[STACK_PAGES];   /* pages of struct frame_item */
  void *modules[MODULE_PAGES]; /* pages of struct module_item */
  struct meta *metas;
  size_t meta_count, meta_capacity;
  uint32_t last_string; /* the highest id */
  size_t text_bytes; /* in all blocks */
  struct block *blocks;
  char *free_text; /* in the first block, */
  size_t free_bytes;
  struct thread_state *threads;
  size_t thread_count, thread_capacity;
  uint64_t *homes; /* offsets of the threads' homes, which come last */
  size_t home_count, home_capacity, home_next;
  uint64_t chunks; /* that were found */
  struct sc_damage damage;
};

/* ---- bytes ------------------------------------------------------------------------------------- */

/* Reads up to n bytes; *got is less only at the end of the file, which may have moved since it was opened. */
static enum sc_status read_at(struct sc_reader *reader, uint64_t offset, void *out, size_t n, size_t *got,
                              struct sc_error *err) {
  *got = 0;
  if (offset >= reader->size)
    return SC_OK;
  if (n > reader->size - offset)
    n = (size_t)(reader->size - offset);
  if (reader->memory) {
    memcpy(out, reader->memory + offset, n);
    *got = n;
    return SC_OK;
  }
  while (*got < n) {
    ssize_t r = pread(reader->fd, (char *)out + *got, n - *got, (off_t)(offset + *got));

    if (r < 0 && errno == EINTR)
      continue;
    if (r < 0)
      return sc_error_set(err, SC_ERR_IO, "cannot read %s at byte %llu: %s", reader->path,
                          (unsigned long long)(offset + *got), strerror(errno));
    if (r == 0) { /* the file shrank: what is gone is gone */
      reader->size = offset + *got;
      reader->damage.truncated = 1;
      break;
    }
    *got += (size_t)r;
  }
  return SC_OK;
}

/* Points *out at n bytes of the file (n <= WINDOW), or at the *got that are left. Valid until the next view. */
static enum sc_status view(struct sc_reader *reader, uint64_t offset, size_t n, unsigned char **out, size_t *got,
                           struct sc_error *err) {
  enum sc_status status;

  if (offset < reader->window_offset || offset - reader->window_offset > reader->window_size ||
      n > reader->window_size - (size_t)(offset - reader->window_offset)) {
    reader->window_size = 0;
    status = read_at(reader, offset, reader->window, reader->window_capacity, &reader->window_size, err);
    if (status != SC_OK)
      return status;
    reader->window_offset = offset;
  }
  *out = reader->window + (offset - reader->window_offset);
  *got = reader->window_size - (size_t)(offset - reader->window_offset);
  if (*got > n)
    *got = n;
  return SC_OK;
}

SC_PRINTF(3, 4)
static void note_damage(struct sc_reader *reader, uint64_t *counter, const char *format, ...) {
  va_list arguments;

  ++*counter;
  if (reader->damage.first[0])
    return;
  va_start(arguments, format);
  vsnprintf(reader->damage.first, sizeof reader->damage.first, format, arguments);
  va_end(arguments);
}

/* ---- definitions --------------------------------------------------------------------------------- */

enum taken { TAKEN, MALFORMED, CONFLICT, OVER_LIMIT };

/* A NUL-terminated copy that lives as long as the reader; NULL if the limit is reached or memory is out. */
static const char *keep_text(struct sc_reader *reader, const char *text, size_t length) {
  char *copy;

  if (length >= reader->free_bytes) { /* what is left of the old block is given up: at most one text */
    size_t size = length < BLOCK / 2 ? BLOCK : length + 1;
    struct block *block;

    if (size > TEXT_BYTES_MAX - reader->text_bytes || !(block = malloc(sizeof *block + size)))
      return NULL;
    block->next = reader->blocks;
    reader->blocks = block;
    reader->text_bytes += size;
    reader->free_text = block->bytes;
    reader->free_bytes = size;
  }
  copy = reader->free_text;
  memcpy(copy, text, length);
  copy[length] = '\0';
  reader->free_text += length + 1;
  reader->free_bytes -= length + 1;
  return copy;
}

/* The address of item id in a paged table; NULL if its page does not exist. */
static void *find_item(void *const *pages, size_t page_count, uint32_t id, size_t size) {
  size_t page = id / PAGE_ITEMS;

  return page < page_count && pages[page] ? (char *)pages[page] + (id % PAGE_ITEMS) * size : NULL;
}

/* Likewise, but makes the page; NULL if id is beyond the table or memory is out. */
static void *make_item(void **pages, size_t page_count, uint32_t id, size_t size) {
  size_t page = id / PAGE_ITEMS;

  if (page < page_count && !pages[page])
    pages[page] = sc_calloc_array(PAGE_ITEMS, size);
  return find_item(pages, page_count, id, size);
}

static enum taken take_string(struct sc_reader *reader, uint32_t id, const char *text, size_t length) {
  struct text *item;

  if (id == 0)
    return MALFORMED;
  item = make_item(reader->strings, STRING_PAGES, id, sizeof *item);
  if (!item)
    return OVER_LIMIT;
  if (item->bytes) /* the first pass has seen it, or somebody defines it again */
    return item->length == length && memcmp(item->bytes, text, length) == 0 ? TAKEN : CONFLICT;
  item->bytes = keep_text(reader, text, length);
  item->length = length;
  if (item->bytes && id > reader->last_string)
    reader->last_string = id;
  return item->bytes ? TAKEN : OVER_LIMIT;
}

static enum taken take_api(struct sc_reader *reader, const struct sc_record_api *record) {
  size_t length = strnlen(record->name, record->length);
  struct sc_call_name parsed;
  struct sc_api *item;
  const char *name;

  if (record->id == 0 || record->id > UINT16_MAX || length == 0)
    return MALFORMED;
  item = make_item(reader->apis, API_PAGES, record->id, sizeof *item);
  if (!item)
    return OVER_LIMIT;
  if (item->name)
    return item->cbid == record->cbid && item->domain == record->domain && strlen(item->name) == length &&
               memcmp(item->name, record->name, length) == 0
             ? TAKEN
             : CONFLICT;
  name = keep_text(reader, record->name, length);
  if (!name)
    return OVER_LIMIT;
  sc_call_parse_name(name, &parsed);
  *item = (struct sc_api){.id = record->id,
                          .cbid = record->cbid,
                          .domain = record->domain,
                          .op = record->op < SC_OP_COUNT ? (enum sc_op)record->op : SC_OP_NONE,
                          .name = name,
                          .per_thread = parsed.per_thread};
  if (item->op == SC_OP_NONE) /* the writer did not know the name, or knew an op that we do not */
    item->op = sc_call_op(name);
  return TAKEN;
}

static enum taken take_meta(struct sc_reader *reader, const char *text, size_t length) {
  size_t key = strnlen(text, length);
  struct meta *item;
  const char *copy;

  if (key == 0 || key == length)
    return MALFORMED;
  for (size_t i = 0; i < reader->meta_count; i++)
    if (strcmp(reader->metas[i].key, text) == 0) /* the first one counts */
      return TAKEN;
  if (reader->meta_count >= METAS_MAX)
    return OVER_LIMIT;
  copy = keep_text(reader, text, length);
  if (!copy)
    return OVER_LIMIT;
  item = sc_array_push(&reader->metas, &reader->meta_count, &reader->meta_capacity, sizeof *item);
  if (!item)
    return OVER_LIMIT;
  item->key = copy;
  item->value = copy + key + 1;
  return TAKEN;
}

static enum taken take_module(struct sc_reader *reader, const struct sc_record_module *record) {
  struct module_item *item, taken = {.base = record->base, .path = record->path, .defined = true};

  if (record->id == 0 || record->build_id_length > sizeof record->build_id)
    return MALFORMED;
  taken.build_id_length = record->build_id_length;
  memcpy(taken.build_id, record->build_id, record->build_id_length);
  item = make_item(reader->modules, MODULE_PAGES, record->id, sizeof *item);
  if (!item)
    return OVER_LIMIT;
  if (item->defined)
    return item->base == taken.base && item->path == taken.path && item->build_id_length == taken.build_id_length &&
               memcmp(item->build_id, taken.build_id, sizeof taken.build_id) == 0
             ? TAKEN
             : CONFLICT;
  *item = taken;
  return TAKEN;
}

static enum taken take_frame(struct sc_reader *reader, const struct sc_record_frame *record) {
  struct frame_item *item;

  if (record->id == 0)
    return MALFORMED;
  item = make_item(reader->frames, STACK_PAGES, record->id, sizeof *item);
  if (!item)
    return OVER_LIMIT;
  if (item->defined)
    return item->file == record->file && item->function == record->function && item->line == record->line &&
               item->first_line == record->first_line
             ? TAKEN
             : CONFLICT;
  *item = (struct frame_item){record->file, record->function, record->line, record->first_line, true};
  return TAKEN;
}

/* Room for n bytes that hold the arrays of a stack, aligned; from the same blocks as texts. */
static void *keep_aligned(struct sc_reader *reader, const void *bytes, size_t n) {
  char room[SC_STACK_NATIVE_MAX * sizeof(struct sc_stack_address) + SC_STACK_PYTHON_MAX * sizeof(uint32_t) + 8] = {0};
  char *kept = (char *)(uintptr_t)keep_text(reader, room, n + 7);

  if (!kept)
    return NULL;
  kept += -(uintptr_t)kept & 7;
  memcpy(kept, bytes, n);
  return kept;
}

static enum taken take_stack(struct sc_reader *reader, const struct sc_record_stack *record, size_t size) {
  size_t native_bytes = record->native * sizeof *record->frames, python_bytes = record->python * sizeof(uint32_t);
  struct stack_item *item;
  char *kept;

  if (record->id == 0 || record->native > SC_STACK_NATIVE_MAX || record->python > SC_STACK_PYTHON_MAX ||
      native_bytes + python_bytes > size - sizeof *record)
    return MALFORMED;
  item = make_item(reader->stacks, STACK_PAGES, record->id, sizeof *item);
  if (!item)
    return OVER_LIMIT;
  if (item->defined)
    return item->stack.flags == record->flags && item->stack.native_count == record->native &&
               item->stack.python_count == record->python &&
               memcmp(item->stack.native, record->frames, native_bytes + python_bytes) == 0
             ? TAKEN
             : CONFLICT;
  kept = keep_aligned(reader, record->frames, native_bytes + python_bytes);
  if (!kept)
    return OVER_LIMIT;
  *item = (struct stack_item){.stack = {.flags = record->flags,
                                        .python_count = record->python,
                                        .native_count = record->native,
                                        .native = (void *)kept,
                                        .python = (void *)(kept + native_bytes)},
                              .defined = true};
  return TAKEN;
}

/* Takes in what a record defines, and checks every kind whose fields say how long it is. */
static enum taken take_record(struct sc_reader *reader, const struct sc_record_head *head) {
  size_t size = (size_t)head->units * SC_TRACE_UNIT;

  switch (head->kind) {
  case SC_RECORD_STRING:
  case SC_RECORD_META:
  case SC_RECORD_THREAD:
  case SC_RECORD_NOTE: {
    const struct sc_record_text *record = (const void *)head;

    if (record->length > size - offsetof(struct sc_record_text, text))
      return MALFORMED;
    if (head->kind == SC_RECORD_STRING)
      return take_string(reader, record->id, record->text, record->length);
    if (head->kind == SC_RECORD_META)
      return take_meta(reader, record->text, record->length);
    return TAKEN;
  }
  case SC_RECORD_API: {
    const struct sc_record_api *record = (const void *)head;

    if (record->length > size - offsetof(struct sc_record_api, name))
      return MALFORMED;
    return take_api(reader, record);
  }
  case SC_RECORD_MODULE:
    return take_module(reader, (const void *)head);
  case SC_RECORD_FRAME:
    return take_frame(reader, (const void *)head);
  case SC_RECORD_STACK:
    return take_stack(reader, (const void *)head, size);
  default:
    return TAKEN;
  }
}

/* ---- chunks -------------------------------------------------------------------------------------- */

enum found {
  FOUND_END,
  FOUND_UNUSED,  /* a slot without a chunk */
  FOUND_DAMAGE,  /* noted; go on at offset + step */
  FOUND_UNKNOWN, /* a chunk of a kind that we do not know */
  FOUND_RECORDS,
};

struct chunk {
  struct sc_trace_chunk header;
  unsigned char *bytes;
  size_t usable; /* bytes of records that are there and, in a closed chunk, match the checksum */
  uint64_t step; /* to the next place to look at */
};

static bool plausible(const struct sc_reader *reader, const struct sc_trace_chunk *header) {
  return header->magic == SC_CHUNK_MAGIC && header->size >= reader->header.slot_size &&
         header->size <= SC_TRACE_CHUNK_MAX && header->size % reader->header.slot_size == 0;
}

/* True if a chunk, an unused slot or the file's end is at offset: then the size that led there can be believed. */
static bool is_boundary(struct sc_reader *reader, uint64_t offset) {
  struct sc_trace_chunk header;
  size_t got;

  if (offset >= reader->size)
    return offset == reader->size;
  if (read_at(reader, offset, &header, sizeof header, &got, NULL) != SC_OK || got < sizeof header)
    return false;
  return header.magic == 0 || plausible(reader, &header);
}

static enum found damaged(struct sc_reader *reader, struct chunk *chunk, const char *what) {
  note_damage(reader, &reader->damage.chunks, "%s in the chunk at byte %llu", what, (unsigned long long)reader->offset);
  if (!plausible(reader, &chunk->header) || !is_boundary(reader, reader->offset + chunk->header.size))
    chunk->step = reader->header.slot_size;
  return FOUND_DAMAGE;
}

/* Why the chunk's header cannot be right, or NULL. available: bytes of it that are in the file. */
static const char *check_chunk(const struct sc_trace_chunk *header, const unsigned char *bytes, size_t available) {
  size_t room = header->size - sizeof *header;

  if (header->committed > room || header->committed % SC_TRACE_UNIT)
    return "impossible record count";
  if (!(header->flags & SC_CHUNK_OPEN)) {
    if (header->committed > available - sizeof *header)
      return "records missing";
    if (sc_checksum_chunk(header, bytes, header->committed) != header->checksum)
      return "wrong checksum";
  }
  if (header->kind == SC_CHUNK_RECORDS && header->thread == 0)
    return "no thread";
  return NULL;
}

/* What the got bytes at `at` begin: FOUND_RECORDS for any chunk whose size can be believed. */
static enum found examine_header(struct sc_reader *reader, struct chunk *chunk, const unsigned char *at, size_t got) {
  memset(chunk, 0, sizeof *chunk);
  chunk->step = reader->header.slot_size;
  if (got == 0)
    return FOUND_END;
  memcpy(&chunk->header, at, got < sizeof chunk->header ? got : sizeof chunk->header);
  if (chunk->header.magic == 0)
    return FOUND_UNUSED;
  if (got < sizeof chunk->header) {
    reader->damage.truncated = 1;
    return damaged(reader, chunk, "cut off header");
  }
  if (!plausible(reader, &chunk->header))
    return damaged(reader, chunk, chunk->header.magic == SC_CHUNK_MAGIC ? "impossible size" : "no header");
  chunk->step = chunk->header.size;
  return FOUND_RECORDS;
}

/* The same, with as much of the chunk at `at` as the file has. */
static enum found examine_whole(struct sc_reader *reader, struct chunk *chunk, unsigned char *at, size_t got) {
  uint32_t size = chunk->header.size;
  enum found found = examine_header(reader, chunk, at, got);
  const char *problem;

  if (found != FOUND_RECORDS)
    return found;
  if (chunk->header.size != size) /* the program still runs, and began a chunk here just now */
    return damaged(reader, chunk, "changing header");
  if (got < size && chunk->header.kind != SC_CHUNK_VOID)
    reader->damage.truncated = 1;
  chunk->bytes = at + sizeof chunk->header;
  problem = check_chunk(&chunk->header, chunk->bytes, got);
  if (problem)
    return damaged(reader, chunk, problem);
  chunk->usable = chunk->header.committed;
  if (chunk->usable > got - sizeof chunk->header) /* open and cut off: whole records up to there are as good as any */
    chunk->usable = (got - sizeof chunk->header) / SC_TRACE_UNIT * SC_TRACE_UNIT;
  return chunk->header.kind == SC_CHUNK_RECORDS ? FOUND_RECORDS : FOUND_UNKNOWN;
}

/* Looks at what is at reader->offset. */
static enum sc_status examine(struct sc_reader *reader, struct chunk *chunk, enum found *found, struct sc_error *err) {
  unsigned char *at;
  size_t got;
  enum sc_status status = view(reader, reader->offset, sizeof chunk->header, &at, &got, err);

  if (status != SC_OK)
    return status;
  *found = examine_header(reader, chunk, at, got);
  if (*found != FOUND_RECORDS)
    return SC_OK;
  status = view(reader, reader->offset, chunk->header.size, &at, &got, err);
  if (status == SC_OK)
    *found = examine_whole(reader, chunk, at, got);
  return status;
}

/* Where to look after an unused slot. A hostile file may be one large hole: hop over it. */
static uint64_t after_unused(const struct sc_reader *reader, uint64_t offset, unsigned *run) {
  uint64_t next = offset + reader->header.slot_size;

  if (++*run >= HOLE_SLOTS && !reader->memory) {
    off_t data = lseek(reader->fd, (off_t)next, SEEK_DATA);

    *run = 0;
    if (data < 0)
      return errno == ENXIO ? reader->size : next;
    if ((uint64_t)data > next)
      next = (uint64_t)data - (uint64_t)data % reader->header.slot_size;
  }
  return next;
}

/* Checks and takes in every record; returns the bytes that can be walked. Malformed records lose their kind. */
static size_t take_records(struct sc_reader *reader, struct chunk *chunk) {
  size_t at = 0;

  while (chunk->usable - at >= SC_TRACE_UNIT) {
    struct sc_record_head *head = (struct sc_record_head *)(void *)(chunk->bytes + at);
    size_t size = (size_t)head->units * SC_TRACE_UNIT;
    enum taken taken;

    if (size == 0 || size > chunk->usable - at) {
      note_damage(reader, &reader->damage.records, "a record of impossible length at byte %llu",
                  (unsigned long long)(reader->offset + sizeof chunk->header + at));
      break;
    }
    if (head->kind != SC_RECORD_CALL && (taken = take_record(reader, head)) != TAKEN) {
      note_damage(reader, &reader->damage.records, "%s at byte %llu",
                  taken == MALFORMED  ? "a malformed record"
                  : taken == CONFLICT ? "a second, different definition"
                                      : "a definition beyond the reader's limits",
                  (unsigned long long)(reader->offset + sizeof chunk->header + at));
      head->kind = 0;
    }
    at += size;
  }
  return at;
}

/* The first pass, over headers alone but for chunks that define something. Notes no damage: the second pass does. */
static enum sc_status gather_definitions(struct sc_reader *reader, struct sc_error *err) {
  struct sc_damage before = reader->damage;
  uint64_t first = reader->offset;
  enum sc_status status = SC_OK;
  unsigned unused = 0;

  while (reader->offset < reader->size) {
    struct sc_trace_chunk header;
    struct chunk chunk;
    enum found found;
    size_t got;

    status = read_at(reader, reader->offset, &header, sizeof header, &got, err);
    if (status != SC_OK || got < sizeof header)
      break;
    if (header.magic == 0) {
      reader->offset = after_unused(reader, reader->offset, &unused);
      continue;
    }
    unused = 0;
    chunk.step = plausible(reader, &header) ? header.size : reader->header.slot_size;
    if (plausible(reader, &header) && header.flags & SC_CHUNK_DEFINES) {
      status = examine(reader, &chunk, &found, err);
      if (status != SC_OK)
        break;
      if (found == FOUND_RECORDS)
        take_records(reader, &chunk);
    }
    reader->offset += chunk.step;
  }
  reader->offset = first;
  before.truncated |= reader->damage.truncated; /* a file that shrank meanwhile shows it only once */
  reader->damage = before;
  reader->window_size = 0; /* records that were found malformed are marked there */
  return status;
}

/* ---- open ---------------------------------------------------------------------------------------- */

static enum sc_status check_version(const struct sc_trace_header *header, const char *path, struct sc_error *err) {
  if (header->version_min > SC_TRACE_VERSION)
    return sc_error_set(err, SC_ERR_VERSION,
                        "%s is of trace format %u, which needs a reader of version %u; this one reads %u to %u: use the "
                        "synccount that wrote it, or a newer one",
                        path, header->version, header->version_min, SC_TRACE_VERSION_MIN, SC_TRACE_VERSION);
  if (header->version < SC_TRACE_VERSION_MIN)
    return sc_error_set(err, SC_ERR_VERSION,
                        "%s is of trace format %u; this synccount reads %u to %u: record it again, or use an older one",
                        path, header->version, SC_TRACE_VERSION_MIN, SC_TRACE_VERSION);
  return SC_OK;
}

static bool header_sizes_ok(const struct sc_trace_header *header) {
  uint32_t slot = header->slot_size;

  return slot >= SC_TRACE_SLOT && slot <= SC_TRACE_SLOT_MAX && (slot & (slot - 1)) == 0 &&
         header->header_size >= sizeof *header && header->header_size % SC_TRACE_UNIT == 0 &&
         header->header_size <= slot - sizeof(struct sc_trace_live);
}

/* The program may still run: chunks that its counter knows of by now are to be in reach. */
static void look_again_at_size(struct sc_reader *reader) {
  struct stat st;

  if (!reader->memory && fstat(reader->fd, &st) == 0 && (uint64_t)st.st_size > reader->size)
    reader->size = (uint64_t)st.st_size;
}

/* What lies behind the live counters, as far as this reader knows it and the file has it. */
static void take_beyond(struct sc_reader *reader, const unsigned char *slot, size_t got) {
  size_t offset = reader->header.header_size + sizeof reader->live, slot_size = reader->header.slot_size;

  if (offset + sizeof reader->beyond > (got < slot_size ? got : slot_size) ||
      reader->live.beyond_size < sizeof reader->beyond)
    reader->live.beyond_size = 0;
  else
    memcpy(&reader->beyond, slot + offset, sizeof reader->beyond);
}

/* Magic, checksum, version: three different errors, so that a stranger, a damaged and a newer file are told apart. */
static enum sc_status read_header(struct sc_reader *reader, struct sc_error *err) {
  struct sc_trace_header *header = &reader->header;
  unsigned char *at;
  size_t got;
  enum sc_status status = view(reader, 0, SC_TRACE_SLOT_MAX, &at, &got, err);

  if (status != SC_OK)
    return status;
  if (got < sizeof header->magic || memcmp(at, SC_TRACE_MAGIC, sizeof header->magic) != 0)
    return sc_error_set(err, SC_ERR_FORMAT, "%s is not a synccount trace (it does not begin with SYNCTRC); give a %s file",
                        reader->path, SC_TRACE_SUFFIX);
  if (got < sizeof *header)
    return sc_error_set(err, SC_ERR_FORMAT, "%s ends within its header, after %zu bytes: it was cut off; copy it again",
                        reader->path, got);
  memcpy(header, at, sizeof *header);
  if (!header_sizes_ok(header) || header->header_size > got ||
      sc_checksum_header((const struct sc_trace_header *)(void *)at, header->header_size) != header->checksum)
    return sc_error_set(err, SC_ERR_FORMAT, "%s has a damaged header (wrong checksum); copy it again", reader->path);
  status = check_version(header, reader->path, err);
  if (status != SC_OK)
    return status;
  header->host[sizeof header->host - 1] = '\0';
  if (got - header->header_size >= sizeof reader->live)
    memcpy(&reader->live, at + header->header_size, sizeof reader->live);
  take_beyond(reader, at, got);
  look_again_at_size(reader);
  if (reader->size < header->slot_size)
    reader->damage.truncated = 1;
  reader->offset = header->slot_size;
  return SC_OK;
}

static enum sc_status start(struct sc_reader *reader, struct sc_error *err) {
  enum sc_status status;

  /* Slots are at multiples of 4096 of the window's start, so that every record is aligned for its struct. */
  reader->window_capacity =
    reader->size < WINDOW ? (size_t)(reader->size / SC_TRACE_SLOT + 1) * SC_TRACE_SLOT : WINDOW;
  reader->window = aligned_alloc(SC_TRACE_UNIT, reader->window_capacity);
  if (!reader->window || !reader->path)
    return sc_error_set(err, SC_ERR_NOMEM, "no memory to read a trace");
  status = read_header(reader, err);
  return status == SC_OK ? gather_definitions(reader, err) : status;
}

static enum sc_status open_file(struct sc_reader *reader, struct sc_error *err) {
  struct stat st;

  reader->fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* NONBLOCK: a FIFO must not hang us */
  if (reader->fd < 0)
    return sc_error_set(err, SC_ERR_IO, "cannot open %s: %s", reader->path, strerror(errno));
  if (fstat(reader->fd, &st) != 0)
    return sc_error_set(err, SC_ERR_IO, "cannot examine %s: %s", reader->path, strerror(errno));
  if (!S_ISREG(st.st_mode))
    return sc_error_set(err, SC_ERR_FORMAT, "%s is not a regular file; give a %s file", reader->path, SC_TRACE_SUFFIX);
  reader->size = (uint64_t)st.st_size;
  return SC_OK;
}

static enum sc_status finish_open(struct sc_reader *reader, enum sc_status status, struct sc_reader **out) {
  if (status == SC_OK)
    *out = reader;
  else
    sc_reader_close(reader);
  return status;
}

enum sc_status sc_reader_open(const char *path, struct sc_reader **out, struct sc_error *err) {
  struct sc_reader *reader = calloc(1, sizeof *reader);
  enum sc_status status;

  if (!reader)
    return sc_error_set(err, SC_ERR_NOMEM, "no memory to read a trace");
  reader->fd = -1;
  reader->path = sc_strdup(path);
  status = reader->path ? open_file(reader, err) : sc_error_set(err, SC_ERR_NOMEM, "no memory to read a trace");
  if (status == SC_OK)
    status = start(reader, err);
  return finish_open(reader, status, out);
}

enum sc_status sc_reader_open_memory(const void *bytes, size_t size, const char *name, struct sc_reader **out,
                                     struct sc_error *err) {
  static const unsigned char nothing[1];
  struct sc_reader *reader = calloc(1, sizeof *reader);

  if (!reader)
    return sc_error_set(err, SC_ERR_NOMEM, "no memory to read a trace");
  reader->fd = -1;
  reader->path = sc_strdup(name);
  reader->memory = size ? bytes : nothing;
  reader->size = size;
  return finish_open(reader, start(reader, err), out);
}

enum sc_status sc_reader_reopen(const struct sc_reader *reader, struct sc_reader **out, struct sc_error *err) {
  return reader->memory ? sc_reader_open_memory(reader->memory, reader->size, reader->path, out, err)
                        : sc_reader_open(reader->path, out, err);
}

void sc_reader_close(struct sc_reader *reader) {
  if (!reader)
    return;
  while (reader->blocks) {
    struct block *next = reader->blocks->next;

    free(reader->blocks);
    reader->blocks = next;
  }
  for (size_t page = 0; page < STRING_PAGES; page++)
    if (reader->strings[page])
      free(reader->strings[page]);
  for (size_t page = 0; page < API_PAGES; page++)
    free(reader->apis[page]);
  for (size_t page = 0; page < STACK_PAGES; page++) {
    free(reader->stacks[page]);
    free(reader->frames[page]);
  }
  for (size_t page = 0; page < MODULE_PAGES; page++)
    free(reader->modules[page]);
  free(reader->metas);
  free(reader->threads);
  free(reader->homes);
  free(reader->window);
  free(reader->path);
  if (reader->fd >= 0)
    close(reader->fd);
  free(reader);
}

/* ---- batches ------------------------------------------------------------------------------------- */

static struct thread_state *find_thread(struct thread_state *table, size_t capacity, uint64_t thread) {
  size_t at = (size_t)((thread * 0x9e3779b97f4a7c15u) >> 32) & (capacity - 1);

  while (table[at].thread && table[at].thread != thread)
    at = (at + 1) & (capacity - 1);
  return &table[at];
}

/* The state of a thread, made when first seen; NULL when there are too many threads or memory is out. */
static struct thread_state *thread_state(struct sc_reader *reader, uint64_t thread) {
  struct thread_state *state;

  if (reader->thread_count * 2 >= reader->thread_capacity) {
    size_t capacity = reader->thread_capacity ? reader->thread_capacity * 2 : 64;
    struct thread_state *table = capacity <= THREADS_MAX * 2 ? sc_calloc_array(capacity, sizeof *table) : NULL;

    if (!table)
      return NULL;
    for (size_t i = 0; i < reader->thread_capacity; i++)
      if (reader->threads[i].thread)
        *find_thread(table, capacity, reader->threads[i].thread) = reader->threads[i];
    free(reader->threads);
    reader->threads = table;
    reader->thread_capacity = capacity;
  }
  state = find_thread(reader->threads, reader->thread_capacity, thread);
  if (!state->thread) {
    state->thread = thread;
    reader->thread_count++;
  }
  return state;
}

/* True if the chunk is a home and was put off until all other chunks have been read. */
static bool put_off(struct sc_reader *reader, const struct chunk *chunk) {
  uint64_t *place;

  if (!(chunk->header.flags & SC_CHUNK_HOME) || reader->home_count >= THREADS_MAX)
    return false;
  place = sc_array_push(&reader->homes, &reader->home_count, &reader->home_capacity, sizeof *place);
  if (!place)
    return false;
  *place = reader->offset;
  return true;
}

/* Turns a chunk into a batch. False if it repeats a chunk that its thread has had. */
static bool make_batch(struct sc_reader *reader, struct chunk *chunk, struct sc_batch *batch) {
  const struct sc_trace_chunk *header = &chunk->header;
  struct thread_state *state = thread_state(reader, header->thread);
  const uint16_t open_home = SC_CHUNK_OPEN | SC_CHUNK_HOME;
  bool repeated = state && header->sequence < state->next_sequence;
  uint64_t missing = 0;

  if (repeated) {
    /* Killed between appending its home and emptying it: only what was submitted since is new. */
    if ((header->flags & open_home) != open_home || header->sequence + 1 != state->next_sequence) {
      note_damage(reader, &reader->damage.chunks, "an older chunk of its thread at byte %llu",
                  (unsigned long long)reader->offset);
      return false;
    }
    chunk->usable = 0;
  } else if (state) {
    /* Of each missing chunk we know only that it was, and that there is room for it in the file. */
    uint64_t slots = reader->size / reader->header.slot_size;

    missing = header->sequence - state->next_sequence;
    missing = (missing < slots ? missing : slots) + state->lost;
    state->next_sequence = header->sequence + 1;
    state->lost = 0;
  }
  batch->thread = header->thread;
  batch->tid = header->tid;
  batch->lost = header->lost + missing;
  batch->bytes = chunk->bytes;
  batch->size = take_records(reader, chunk);
  if (!repeated && chunk->usable < header->committed)
    note_damage(reader, &reader->damage.chunks, "the file ends in the chunk at byte %llu",
                (unsigned long long)reader->offset);
  if (state && !repeated && batch->size < header->committed) /* the rest of this chunk is a gap before the next one */
    state->lost = 1;
  batch->tail_submissions = header->submissions;
  batch->tail_launches = header->launches;
  return true;
}

/* One step through the file: *made if it gave a batch, *end if there is no more. */
static enum sc_status step(struct sc_reader *reader, struct sc_batch *batch, bool *made, bool *end, unsigned *unused,
                           struct sc_error *err) {
  bool homes_only = reader->offset >= reader->size;
  struct chunk chunk;
  enum found found;
  enum sc_status status;

  *made = false;
  *end = homes_only && reader->home_next == reader->home_count;
  if (*end)
    return SC_OK;
  if (homes_only)
    reader->offset = reader->homes[reader->home_next++];
  status = examine(reader, &chunk, &found, err);
  if (status != SC_OK)
    return status;
  reader->chunks += !homes_only && found != FOUND_UNUSED && found != FOUND_END;
  if (found == FOUND_RECORDS && (homes_only || !put_off(reader, &chunk)))
    *made = make_batch(reader, &chunk, batch);
  if (homes_only || found == FOUND_END)
    reader->offset = reader->size;
  else if (found == FOUND_UNUSED)
    reader->offset = after_unused(reader, reader->offset, unused);
  else
    reader->offset += chunk.step;
  if (found != FOUND_UNUSED)
    *unused = 0;
  return SC_OK;
}

/* At the end: chunks that the writer counted and the file does not hold, be it that it was cut off between two of them or
 * that zeros lie where they were. */
static void note_missing(struct sc_reader *reader) {
  uint64_t missing = reader->live.chunks > reader->chunks ? reader->live.chunks - reader->chunks : 0;

  reader->chunks = UINT64_MAX; /* once */
  if (missing == 0)
    return;
  missing = missing < UINT32_MAX ? missing : UINT32_MAX; /* a number out of thin air */
  note_damage(reader, &reader->damage.chunks, "%llu of %llu written chunks are not in the file",
              (unsigned long long)missing, (unsigned long long)reader->live.chunks);
  reader->damage.chunks += missing - 1;
}

enum sc_status sc_reader_next(struct sc_reader *reader, struct sc_batch *batch, bool *more, struct sc_error *err) {
  enum sc_status status;
  bool made = false, end = false;
  unsigned unused = 0;

  do
    status = step(reader, batch, &made, &end, &unused, err);
  while (status == SC_OK && !made && !end);
  if (status == SC_OK && end)
    note_missing(reader);
  if (status == SC_OK)
    *more = made;
  return status;
}

const struct sc_record_head *sc_batch_next(const struct sc_batch *batch, size_t *offset) {
  const struct sc_record_head *head;
  size_t size;

  if (*offset > batch->size || batch->size - *offset < SC_TRACE_UNIT)
    return NULL;
  head = (const struct sc_record_head *)(const void *)(batch->bytes + *offset);
  size = (size_t)head->units * SC_TRACE_UNIT;
  if (size == 0 || size > batch->size - *offset)
    return NULL;
  *offset += size;
  return head;
}

/* ---- what was found ------------------------------------------------------------------------------ */

const struct sc_trace_header *sc_reader_header(const struct sc_reader *reader) { return &reader->header; }
const struct sc_trace_beyond *sc_reader_beyond(const struct sc_reader *reader) {
  return reader->live.beyond_size ? &reader->beyond : NULL;
}

const struct sc_trace_live *sc_reader_live(const struct sc_reader *reader) { return &reader->live; }
const char *sc_reader_path(const struct sc_reader *reader) { return reader->path; }
void sc_reader_damage(const struct sc_reader *reader, struct sc_damage *out) { *out = reader->damage; }

const char *sc_reader_string(const struct sc_reader *reader, uint32_t id, size_t *length) {
  const struct text *item = find_item(reader->strings, STRING_PAGES, id, sizeof *item);

  if (!item || !item->bytes)
    return NULL;
  if (length)
    *length = item->length;
  return item->bytes;
}

uint32_t sc_reader_last_string(const struct sc_reader *reader) { return reader->last_string; }

const struct sc_api *sc_reader_api(const struct sc_reader *reader, uint32_t id) {
  const struct sc_api *item = find_item(reader->apis, API_PAGES, id, sizeof *item);

  return item && item->name ? item : NULL;
}

bool sc_reader_stack(const struct sc_reader *reader, uint32_t id, struct sc_stack *out) {
  const struct stack_item *item = find_item(reader->stacks, STACK_PAGES, id, sizeof *item);

  if (!item || !item->defined)
    return false;
  *out = item->stack;
  return true;
}

bool sc_reader_frame(const struct sc_reader *reader, uint32_t id, struct sc_stack_frame *out) {
  const struct frame_item *item = find_item(reader->frames, STACK_PAGES, id, sizeof *item);

  if (!item || !item->defined)
    return false;
  *out = (struct sc_stack_frame){.file = sc_reader_string(reader, item->file, NULL),
                                 .function = sc_reader_string(reader, item->function, NULL),
                                 .line = item->line,
                                 .first_line = item->first_line};
  return true;
}

bool sc_reader_module(const struct sc_reader *reader, uint32_t id, struct sc_module *out) {
  const struct module_item *item = find_item(reader->modules, MODULE_PAGES, id, sizeof *item);

  if (!item || !item->defined)
    return false;
  *out = (struct sc_module){.path = sc_reader_string(reader, item->path, NULL),
                            .base = item->base,
                            .build_id = item->build_id,
                            .build_id_length = item->build_id_length};
  return true;
}

const char *sc_reader_meta(const struct sc_reader *reader, const char *key) {
  for (size_t i = 0; i < reader->meta_count; i++)
    if (strcmp(reader->metas[i].key, key) == 0)
      return reader->metas[i].value;
  return NULL;
}
