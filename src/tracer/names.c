/* SPDX-License-Identifier: Apache-2.0
 * Buckets are lists that only grow at their head. The string record is committed before the id is published, so an id
 * in any thread's record has its text in the file, even if the process is killed in between. */
#include "tracer/names.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracer/lock.h"

struct sc_name {
  const struct sc_name *next;
  uint64_t hash;
  _Atomic uint64_t id; /* session << 32 | number in its trace; 0: in none. Released after the record was committed */
  uint32_t length;
  char text[];
};

#define BUCKETS 8192u
static const struct sc_name *_Atomic buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t count, last_id, last_session;

/* FNV-1a: names are short. Of a longer one than the writer keeps, one byte more is looked at: it cuts, and says so. */
static uint64_t hash_of(const char *text, size_t *length) {
  *length = strnlen(text, SC_TRACE_STRING_MAX + 1);
  uint64_t hash = sc_hash_bytes(SC_HASH_SEED, text, *length);
  return hash ^ (hash >> 29);
}

static const struct sc_name *find(const struct sc_name *from, uint64_t hash, const char *text, size_t length) {
  for (; from != NULL; from = from->next)
    if (from->hash == hash && from->length == length && memcmp(from->text, text, length) == 0)
      return from;
  return NULL;
}

static const struct sc_name *add(const char *text, size_t length, uint64_t hash) {
  struct sc_name *name = malloc(sizeof(*name) + length + 1);
  if (name == NULL)
    return NULL;
  const struct sc_name *_Atomic *bucket = &buckets[hash % BUCKETS];
  name->hash = hash;
  name->length = (uint32_t)length;
  atomic_init(&name->id, 0);
  memcpy(name->text, text, length);
  name->text[length] = '\0';
  name->next = atomic_load_explicit(bucket, memory_order_relaxed);
  atomic_store_explicit(bucket, name, memory_order_release); /* pairs with the acquire in sc_name_intern */
  count++;
  return name;
}

const struct sc_name *sc_name_intern(const char *text) {
  size_t length;
  sigset_t before;
  if (text == NULL)
    text = "";
  uint64_t hash = hash_of(text, &length);
  const struct sc_name *_Atomic *bucket = &buckets[hash % BUCKETS];
  const struct sc_name *name = find(atomic_load_explicit(bucket, memory_order_acquire), hash, text, length);
  if (name != NULL)
    return name;
  sc_lock(&lock, &before);
  name = find(atomic_load_explicit(bucket, memory_order_relaxed), hash, text, length);
  if (name == NULL && count >= SC_NAMES_MAX) {
    static const char more[] = "(more names)";
    hash = hash_of(more, &length);
    name = find(atomic_load_explicit(&buckets[hash % BUCKETS], memory_order_relaxed), hash, more, length);
    text = more;
  }
  if (name == NULL)
    name = add(text, length, hash);
  sc_unlock(&lock, &before);
  return name;
}

size_t sc_name_put_utf8(uint32_t c, char *out) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  if (c < 0x800) {
    out[0] = (char)(0xc0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3f));
    return 2;
  }
  if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000))
    c = 0xfffd;
  if (c < 0x10000) {
    out[0] = (char)(0xe0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3f));
    out[2] = (char)(0x80 | (c & 0x3f));
    return 3;
  }
  out[0] = (char)(0xf0 | c >> 18);
  out[1] = (char)(0x80 | (c >> 12 & 0x3f));
  out[2] = (char)(0x80 | (c >> 6 & 0x3f));
  out[3] = (char)(0x80 | (c & 0x3f));
  return 4;
}

const struct sc_name *sc_name_intern_wide(const wchar_t *text) {
  char small[512];
  size_t n = text == NULL ? 0 : wcslen(text), used = 0;
  if (n > SC_TRACE_STRING_MAX)
    n = SC_TRACE_STRING_MAX;
  char *utf8 = n < sizeof(small) / 4 ? small : malloc(4 * n + 1);
  if (utf8 == NULL)
    return NULL;
  for (size_t i = 0; i < n; i++)
    used += sc_name_put_utf8((uint32_t)text[i], utf8 + used);
  utf8[used] = '\0';
  const struct sc_name *name = sc_name_intern(utf8);
  if (utf8 != small)
    free(utf8);
  return name;
}

const char *sc_name_text(const struct sc_name *name) { return name == NULL ? "" : name->text; }

uint32_t sc_name_id(const struct sc_name *name, struct sc_thread *thread) {
  sigset_t before;
  if (name == NULL)
    return 0;
  struct sc_name *mine = (struct sc_name *)(uintptr_t)name; /* only the id changes */
  uint64_t known = atomic_load_explicit(&mine->id, memory_order_acquire);
  if (known >> 32 == thread->session)
    return (uint32_t)known;
  if (thread->out == NULL)
    return 0;
  sc_lock(&lock, &before);
  if (last_session != thread->session) { /* a new trace numbers its strings from 1 */
    last_session = thread->session;
    last_id = 0;
  }
  known = atomic_load_explicit(&mine->id, memory_order_relaxed);
  if (known >> 32 != thread->session) {
    known = (uint64_t)thread->session << 32 | ++last_id;
    sc_writer_text(thread->out, SC_RECORD_STRING, last_id, mine->text, mine->length);
    atomic_store_explicit(&mine->id, known, memory_order_release);
  }
  sc_unlock(&lock, &before);
  return (uint32_t)known;
}

void sc_names_forked(void) { pthread_mutex_init(&lock, NULL); }
