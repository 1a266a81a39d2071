/* SPDX-License-Identifier: Apache-2.0
 * A stack's number is its place in a table that is filled without a lock: who finds its hash there knows the number;
 * who puts it there writes the records. So a number may be used by one thread while another still writes what it
 * stands for; readers gather all definitions first.
 *
 * Native frames cost microseconds to walk, so each thread remembers its last stacks by stack pointer, call and Python
 * frames, with the places on the stack where every return address was. If all of them still hold what they held, it
 * is the same stack. Several can have one key: a program without Python that comes to one depth by several ways. Walks
 * have a budget: a program whose stacks never repeat is not slowed down by them. */
#include "tracer/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tracer/about.h"
#include "tracer/names.h"
#include "tracer/native.h"
#include "tracer/python.h"
#include "tracer/watch.h"

#define STACKS 32768u
#define FRAMES 32768u
#define FILES 1024u
#define PROBES 32u           /* places of a table that are looked at */
#define SETS 32u             /* of the stacks that a thread remembers, by their keys; */
#define WAYS 8u              /* in each so many, whose keys are one cache line */
#define WALKS_FREE 50000000u /* ns that a thread may spend on walks before */
#define WALKS_SHARE 50u      /* they must be less than 1/50 of its time */

bool sc_stacks_wanted;
static bool with_python, with_native;
static struct sc_trace_live *live;
static uint64_t started_ns;
static _Atomic int told; /* what the trace was told of Python: enum sc_python_state */

static _Atomic uint64_t *stack_keys, *frame_keys, *file_keys; /* 0: free */

#define FILES_OF_STACK 8u /* files of one stack that are watched for being replaced */
struct watched_file {
  uint64_t address, start, stamp;
};
struct remembered { /* in the order in which it is read */
  uint32_t id, count, files;
  uint32_t slots[SC_STACK_NATIVE_MAX]; /* from the stack pointer */
  uint64_t addresses[SC_STACK_NATIVE_MAX];
  struct watched_file file[FILES_OF_STACK];
};

struct sc_stack_cache { /* of one thread */
  uint64_t keys[SETS][WAYS]; /* 0: free */
  uint8_t next[SETS];        /* the way to be used again once none is free */
  uint64_t walked_ns;
  struct remembered entries[SETS][WAYS];
};

/* The number of a key, and whether the caller has put it there and must define it. 0: no room near its place. */
static uint32_t number_of(_Atomic uint64_t *keys, uint32_t size, uint64_t key, bool *fresh) {
  *fresh = false;
  if (key == 0)
    key = 1;
  for (uint32_t i = 0; i < PROBES; i++) {
    uint32_t at = (uint32_t)(key + i) & (size - 1);
    uint64_t found = atomic_load_explicit(&keys[at], memory_order_relaxed);
    if (found == 0 && atomic_compare_exchange_strong(&keys[at], &found, key)) {
      *fresh = true;
      return at + 1;
    }
    if (found == key)
      return at + 1;
  }
  return 0;
}

/* ---- definitions ------------------------------------------------------------------------------------- */
static uint32_t text_id(struct sc_thread *thread, const char *text) {
  return text[0] != '\0' ? sc_name_id(sc_name_intern(text), thread) : 0;
}

static uint32_t frame_id(struct sc_thread *thread, const struct sc_python_frame *frame) {
  struct sc_python_line line;
  bool fresh;
  uint32_t id = number_of(frame_keys, FRAMES, frame->identity, &fresh);
  if (fresh) {
    sc_python_describe(frame, &line);
    uint32_t file = text_id(thread, line.file), function = text_id(thread, line.function);
    sc_writer_frame(thread->out, id, file, function, line.line, line.first_line);
  }
  return id;
}

static uint32_t file_id(struct sc_thread *thread, const struct sc_native_file *found) {
  struct sc_native_file file = *found;
  uint64_t key = sc_hash_mix(file.base, file.start);
  bool fresh;
  for (const char *at = file.path; *at != '\0'; at++)
    key = sc_hash_mix(key, (unsigned char)*at);
  uint32_t id = number_of(file_keys, FILES, key, &fresh);
  if (fresh) {
    sc_native_build_id(&file);
    sc_writer_module(thread->out, id, text_id(thread, file.path), file.base, file.build_id, file.build_id_length);
  }
  return id;
}

static void define_stack(struct sc_thread *thread, uint32_t id, uint32_t flags, const struct sc_python_frame *python,
                         size_t python_count, const struct sc_native_frame *native, size_t native_count) {
  uint32_t ids[SC_STACK_PYTHON_MAX];
  struct sc_stack_address addresses[SC_STACK_NATIVE_MAX];
  for (size_t i = 0; i < python_count; i++)
    ids[i] = frame_id(thread, &python[i]);
  struct sc_native_file file = { .path = NULL }, before;
  for (size_t i = 0; i < native_count; i++) {
    addresses[i] = (struct sc_stack_address){ .offset = native[i].address };
    before = file;
    if (!sc_native_file(native[i].address, &file))
      file.path = NULL;
    else if (before.path != NULL && file.start == before.start)
      addresses[i].module = addresses[i - 1].module;
    else
      addresses[i].module = file_id(thread, &file);
    if (addresses[i].module != 0)
      addresses[i].offset -= file.base;
  }
  sc_writer_stack(thread->out, id, flags, ids, python_count, addresses, native_count);
}

/* Once it is known whether Python can be read, the trace is told. */
static void tell_of_python(struct sc_thread *thread) {
  char text[256];
  int state = sc_python_state(), before = SC_PYTHON_UNCHECKED;
  if ((state != SC_PYTHON_CHECKED && state != SC_PYTHON_REFUSED) ||
      atomic_load_explicit(&told, memory_order_relaxed) == state ||
      !atomic_compare_exchange_strong(&told, &before, state))
    return;
  sc_about_put(thread->out, "python", sc_python_version());
  if (state == SC_PYTHON_CHECKED)
    return;
  (void)snprintf(text, sizeof(text),
                 "Python %s keeps its frames in a way that is not known here: there are no Python lines. Counts do not "
                 "depend on them",
                 sc_python_version());
  sc_writer_text(thread->out, SC_RECORD_NOTE, SC_NOTE_TEXT, text, strlen(text));
}

/* ---- what a thread remembers ------------------------------------------------------------------------- */
static struct sc_stack_cache *cache_of(struct sc_thread *thread) {
  if (thread->stacks == NULL) {
    void *memory =
        mmap(NULL, sizeof(struct sc_stack_cache), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    thread->stacks = memory == MAP_FAILED ? NULL : memory;
  }
  return thread->stacks;
}

void sc_stacks_thread_ended(struct sc_thread *thread) {
  if (thread->stacks != NULL)
    (void)munmap(thread->stacks, sizeof(struct sc_stack_cache));
  thread->stacks = NULL;
}

/* Every return address is where it was, and so is every file they lie in: a plug-in that was loaded in the place of
 * another one could have its code at the same addresses. */
static bool still_there(const struct remembered *entry, uint64_t pointer) {
  uint64_t start;
  for (uint32_t i = 0; i < entry->count; i++)
    if (sc_native_slot(pointer + entry->slots[i]) != entry->addresses[i])
      return false;
  for (uint32_t i = 0; i < entry->files; i++)
    if (sc_native_stamp(entry->file[i].address, &start) != entry->file[i].stamp || start != entry->file[i].start)
      return false;
  return true;
}

/* Looking a file up is the dearest part of knowing a stack again. A file stays loaded for as long as one that was
 * linked against it, so of PyTorch's only its Python module has to be looked at. A file is left out for one that is
 * still in, so whatever hangs together keeps one that is looked at. */
static uint32_t leave_out_kept(struct watched_file *files, uint32_t count) {
  for (uint32_t i = 0; i < count;) {
    uint32_t by = 0;
    while (by < count && !(by != i && sc_native_keeps(files[by].address, files[i].address)))
      by++;
    if (by == count)
      i++;
    else
      files[i] = files[--count];
  }
  return count;
}

/* The files of a stack that was just walked; what they are goes into the stack's hash. */
static uint64_t note_files(struct remembered *entry, const struct sc_native_frame *frames, size_t count) {
  uint64_t hash = 1;
  entry->files = 0;
  for (size_t i = 0; i < count && entry->files < FILES_OF_STACK; i++) {
    uint64_t start, stamp = sc_native_stamp(frames[i].address, &start);
    uint32_t known = 0;
    while (known < entry->files && entry->file[known].start != start)
      known++;
    if (known < entry->files)
      continue;
    entry->file[known].address = frames[i].address;
    entry->file[known].start = start;
    entry->file[known].stamp = stamp;
    entry->files++;
    hash = sc_hash_mix(sc_hash_mix(hash, start), stamp);
  }
  entry->files = leave_out_kept(entry->file, entry->files);
  return hash;
}

/* Slots lie above the stack pointer of the same thread's same key: memory of a stack that is in use. */
static bool remember(struct remembered *entry, uint64_t pointer, uint32_t id, const struct sc_native_frame *frames,
                     size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (frames[i].slot < pointer || frames[i].slot - pointer > UINT32_MAX)
      return false; /* not known, or on another stack */
    entry->slots[i] = (uint32_t)(frames[i].slot - pointer);
    entry->addresses[i] = frames[i].address;
  }
  entry->count = (uint32_t)count;
  entry->id = id;
  return true;
}

/* Whether the stack is remembered; *id: its number, which is 0 if the table of numbers was full. */
static bool recall(const struct sc_stack_cache *cache, uint32_t set, uint64_t key, uint64_t pointer, uint32_t *id) {
  for (uint32_t way = 0; way < WAYS; way++)
    if (cache->keys[set][way] == key && still_there(&cache->entries[set][way], pointer)) {
      *id = cache->entries[set][way].id;
      return true;
    }
  return false;
}

/* A way for another stack: a free one, or the one that was filled the longest ago. */
static uint32_t make_room(struct sc_stack_cache *cache, uint32_t set) {
  for (uint32_t way = 0; way < WAYS; way++)
    if (cache->keys[set][way] == 0)
      return way;
  uint32_t way = cache->next[set]++ % WAYS;
  cache->keys[set][way] = 0;
  return way;
}

static bool may_walk(const struct sc_stack_cache *cache, uint64_t now) {
  return cache->walked_ns < WALKS_FREE + (now - started_ns) / WALKS_SHARE;
}

/* ---- taking ------------------------------------------------------------------------------------------ */
struct taken {
  struct sc_python_frame python[SC_STACK_PYTHON_MAX];
  struct sc_native_frame native[SC_STACK_NATIVE_MAX];
  size_t python_count, native_count;
  uint64_t hash;
  uint32_t flags;
  bool walked;
};

static uint32_t intern(struct sc_thread *thread, const struct taken *t) {
  bool fresh;
  if (t->python_count == 0 && t->native_count == 0 && t->flags == 0)
    return 0;
  uint32_t id = number_of(stack_keys, STACKS, sc_hash_mix(t->hash, t->flags), &fresh);
  if (fresh)
    define_stack(thread, id, t->flags, t->python, t->python_count, t->native, t->native_count);
  return id;
}

static void walk_native(struct sc_stack_cache *cache, struct taken *t, uint64_t now) {
  bool cut;
  t->native_count = sc_native_walk(t->native, &cut);
  if (cut)
    t->flags |= SC_STACK_NATIVE_CUT;
  for (size_t i = 0; i < t->native_count; i++)
    t->hash = sc_hash_mix(t->hash, t->native[i].address);
  cache->walked_ns += sc_clock_mono_ns() - now;
  t->walked = true;
}

static uint32_t take_with_native(struct sc_thread *thread, const struct sc_watch *watch, struct taken *t, uint64_t now) {
  struct sc_stack_cache *cache = cache_of(thread);
  uint64_t pointer = (uintptr_t)__builtin_frame_address(0);
  uint64_t key = sc_hash_mix(sc_hash_mix(t->hash, pointer), (uint64_t)watch->api << 32 | t->flags) | 1;
  if (cache == NULL) {
    t->flags |= SC_STACK_NATIVE_MISSING;
    return intern(thread, t);
  }
  uint32_t set = (uint32_t)(key >> 16) & (SETS - 1), id;
  if (recall(cache, set, key, pointer, &id))
    return id;
  if (!may_walk(cache, now)) {
    t->flags |= SC_STACK_NATIVE_MISSING;
    return intern(thread, t);
  }
  uint32_t way = make_room(cache, set);
  struct remembered *entry = &cache->entries[set][way];
  walk_native(cache, t, now);
  t->hash = sc_hash_mix(t->hash, note_files(entry, t->native, t->native_count));
  id = intern(thread, t);
  if (((t->flags & SC_STACK_NATIVE_CUT) == 0 || t->native_count == SC_STACK_NATIVE_MAX) &&
      remember(entry, pointer, id, t->native, t->native_count))
    cache->keys[set][way] = key;
  return id;
}

static void count_time(const struct taken *t, uint64_t spent) {
  if (t->walked) {
    __atomic_fetch_add(&live->stack_walks, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&live->stack_walk_ns, spent, __ATOMIC_RELAXED);
  } else if (spent > __atomic_load_n(&live->stack_longest_ns, __ATOMIC_RELAXED)) {
    __atomic_store_n(&live->stack_longest_ns, spent, __ATOMIC_RELAXED); /* of two threads at once, one may be lost */
  }
  __atomic_fetch_add(&live->stacks, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&live->stack_ns, spent, __ATOMIC_RELAXED);
}

uint32_t sc_stack_take(struct sc_thread *thread, const struct sc_watch *watch) {
  struct taken taken;
  if (thread->out == NULL)
    return 0;
  int saved = errno;
  uint64_t now = sc_clock_mono_ns();
  taken.python_count = taken.native_count = 0;
  taken.hash = 0;
  taken.flags = 0;
  taken.walked = false;
  if (with_python) {
    taken.python_count = sc_python_take(taken.python, &taken.hash, &taken.flags);
    tell_of_python(thread);
  }
  uint32_t id = with_native ? take_with_native(thread, watch, &taken, now) : intern(thread, &taken);
  if ((taken.flags & (SC_STACK_PYTHON_MISSING | SC_STACK_NATIVE_MISSING)) != 0)
    __atomic_fetch_add(&live->stacks_missing, 1, __ATOMIC_RELAXED);
  count_time(&taken, sc_clock_mono_ns() - now);
  errno = saved;
  return id;
}

/* Zeroed: no key has a number in a new trace. */
static _Atomic uint64_t *make_table(_Atomic uint64_t *before, uint32_t size) {
  if (before != NULL && madvise((void *)before, size * sizeof(uint64_t), MADV_DONTNEED) == 0)
    return before;
  void *memory =
      mmap(NULL, size * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

void sc_stacks_prepare(bool python, bool native, struct sc_writer *writer, struct sc_writer_thread *thread) {
  if (python)
    sc_python_prepare();
  with_python = python && sc_python_state() != SC_PYTHON_ABSENT;
  with_native = native && sc_native_prepare();
  if (native && !with_native && thread != NULL) {
    static const char text[] = "no native frames: they need libgcc_s.so.1 and glibc 2.35 or newer";
    sc_writer_text(thread, SC_RECORD_NOTE, SC_NOTE_TEXT, text, sizeof(text) - 1);
  }
  if (with_native)
    sc_native_stop_at(sc_python_code());
  stack_keys = make_table(stack_keys, STACKS);
  frame_keys = make_table(frame_keys, FRAMES);
  file_keys = make_table(file_keys, FILES);
  live = sc_writer_live(writer);
  started_ns = sc_clock_mono_ns();
  atomic_store_explicit(&told, SC_PYTHON_UNCHECKED, memory_order_relaxed);
  sc_stacks_wanted =
      (with_python || with_native) && stack_keys != NULL && frame_keys != NULL && file_keys != NULL;
  sc_about_put(thread, "stacks", !sc_stacks_wanted ? "none" : with_python && with_native ? "python,native"
                                                   : with_python                         ? "python"
                                                                                         : "native");
}
