/* SPDX-License-Identifier: Apache-2.0
 * Builds small traces with the real writer. */
#include "trace/make_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test_support.h"

struct names { /* id = index + 1 */
  char **texts;
  size_t count, capacity;
};

struct make_trace {
  struct sc_writer *writer;
  char *folder, *path;
  struct names apis, strings;
  bool ended;
};

/* The id of text; *fresh if it was not known. */
static uint32_t intern(struct names *names, const char *text, bool *fresh) {
  char **place;

  *fresh = false;
  for (size_t i = 0; i < names->count; i++)
    if (strcmp(names->texts[i], text) == 0)
      return (uint32_t)i + 1;
  place = sc_array_push(&names->texts, &names->count, &names->capacity, sizeof *place);
  assert_non_null(place);
  *place = sc_strdup(text);
  assert_non_null(*place);
  *fresh = true;
  return (uint32_t)names->count;
}

struct make_trace *mt_new(uint32_t flags) {
  struct make_trace *t = calloc(1, sizeof *t);
  const char *parent = getenv("TMPDIR");
  struct sc_error err = {0};

  assert_non_null(t);
  t->folder = sc_asprintf("%s/sctrace-XXXXXX", parent && *parent ? parent : "/tmp");
  assert_non_null(t->folder);
  assert_non_null(mkdtemp(t->folder));
  t->path = sc_asprintf("%s/test%s", t->folder, SC_TRACE_SUFFIX);
  assert_non_null(t->path);
  if (sc_writer_open(&(struct sc_writer_options){.path = t->path, .flags = flags}, &t->writer, &err) != SC_OK)
    fail_msg("%s", err.message);
  return t;
}

struct sc_writer *mt_writer(struct make_trace *t) { return t->writer; }

struct sc_writer_thread *mt_thread(struct make_trace *t) {
  struct sc_writer_thread *thread = sc_writer_thread_begin(t->writer);

  assert_non_null(thread);
  return thread;
}

uint32_t mt_api(struct make_trace *t, struct sc_writer_thread *thread, const char *name) {
  bool fresh;
  uint32_t id = intern(&t->apis, name, &fresh);
  uint8_t domain = strncmp(name, "cuda", 4) == 0 || name[0] == '_' ? 2 : 1;

  if (fresh)
    sc_writer_api(thread, id, domain, id, sc_call_op(name), name);
  return id;
}

uint32_t mt_string(struct make_trace *t, struct sc_writer_thread *thread, const char *text) {
  bool fresh;
  uint32_t id = intern(&t->strings, text, &fresh);

  if (fresh)
    sc_writer_text(thread, SC_RECORD_STRING, id, text, strlen(text));
  return id;
}

void mt_call(struct make_trace *t, struct sc_writer_thread *thread, const char *name, struct mt_call call) {
  uint32_t api = mt_api(t, thread, name);
  struct sc_record_call *record = sc_writer_reserve(thread, 1);

  assert_non_null(record);
  *record = (struct sc_record_call){
    .head = {.kind = SC_RECORD_CALL, .units = 1},
    .start_ns = call.start_ns,
    .duration_ns = call.duration_ns,
    .stream = call.stream,
    .object = call.object,
    .bytes = call.bytes,
    .api = api | (uint32_t)call.device << 16 | (uint32_t)call.flags << 24,
    .status = call.status,
    .direction = call.direction ? call.direction : (uint8_t)sc_call_direction(name),
    .memory = (uint8_t)(call.dst | call.src << 4),
  };
  sc_writer_commit(thread, 1);
}

void mt_launch(struct sc_writer_thread *thread, unsigned n) {
  while (n--)
    sc_writer_submission(thread, true);
}

void mt_submit(struct sc_writer_thread *thread, unsigned n) {
  while (n--)
    sc_writer_submission(thread, false);
}

static void range(struct make_trace *t, struct sc_writer_thread *thread, enum sc_record_kind kind, const char *domain,
                  const char *name, uint64_t handle, uint64_t ns) {
  uint32_t name_id = name ? mt_string(t, thread, name) : 0;
  uint32_t domain_id = domain && *domain ? mt_string(t, thread, domain) : 0;
  struct sc_record_range *record = sc_writer_reserve(thread, 1);

  assert_non_null(record);
  *record = (struct sc_record_range){.head = {.kind = (uint16_t)kind, .units = 1},
                                     .time_ns = ns,
                                     .handle = handle,
                                     .name = name_id,
                                     .domain = domain_id};
  sc_writer_commit(thread, 1);
}

void mt_push(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, const char *name, uint64_t ns) {
  range(t, thread, SC_RECORD_RANGE_PUSH, domain, name, 0, ns);
}

void mt_pop(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, uint64_t ns) {
  range(t, thread, SC_RECORD_RANGE_POP, domain, NULL, 0, ns);
}

void mt_mark(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, const char *name, uint64_t ns) {
  range(t, thread, SC_RECORD_MARK, domain, name, 0, ns);
}

void mt_range_start(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, const char *name,
                    uint64_t handle, uint64_t ns) {
  range(t, thread, SC_RECORD_RANGE_START, domain, name, handle, ns);
}

void mt_range_end(struct make_trace *t, struct sc_writer_thread *thread, const char *domain, uint64_t handle, uint64_t ns) {
  range(t, thread, SC_RECORD_RANGE_END, domain, NULL, handle, ns);
}

void mt_meta(struct sc_writer_thread *thread, const char *key, const char *value) {
  struct sc_buf text = {0};

  sc_buf_append(&text, key, strlen(key) + 1);
  sc_buf_puts(&text, value);
  assert_false(text.failed);
  sc_writer_text(thread, SC_RECORD_META, 0, text.data, text.len);
  sc_buf_free(&text);
}

void mt_name(struct sc_writer_thread *thread, const char *name) {
  sc_writer_text(thread, SC_RECORD_THREAD, 0, name, strlen(name));
}

void mt_note(struct sc_writer_thread *thread, enum sc_note note, const char *text) {
  sc_writer_text(thread, SC_RECORD_NOTE, note, text, strlen(text));
}

const char *mt_close(struct make_trace *t) {
  if (!t->ended)
    sc_writer_close(t->writer);
  t->ended = true;
  return t->path;
}

const char *mt_kill(struct make_trace *t) {
  t->ended = true; /* the mappings stay until the test ends; the file has every committed byte */
  return t->path;
}

struct sc_reader *mt_reader(struct make_trace *t) {
  struct sc_reader *reader = NULL;
  struct sc_error err = {0};

  if (sc_reader_open(mt_close(t), &reader, &err) != SC_OK)
    fail_msg("%s", err.message);
  return reader;
}

unsigned char *mt_bytes(struct make_trace *t, size_t *size) {
  FILE *file = fopen(mt_close(t), "rb");
  unsigned char *bytes;
  long length;

  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  length = ftell(file);
  assert_true(length > 0);
  rewind(file);
  bytes = malloc((size_t)length);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, (size_t)length, file), length);
  fclose(file);
  *size = (size_t)length;
  return bytes;
}

static void free_names(struct names *names) {
  for (size_t i = 0; i < names->count; i++)
    free(names->texts[i]);
  free(names->texts);
}

void mt_free(struct make_trace *t) {
  mt_close(t);
  unlink(t->path);
  rmdir(t->folder);
  free_names(&t->apis);
  free_names(&t->strings);
  free(t->path);
  free(t->folder);
  free(t);
}
