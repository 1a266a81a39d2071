/* SPDX-License-Identifier: Apache-2.0
 * What is trusted when:
 * - Before the check everything is read with sc_peek, which survives wrong pointers.
 * - The check compares each frame of one thread (code, file, function, line, and where the chain ends) with what the C
 *   API says. It runs where this thread holds the GIL: when tracing starts, at the end of a call, or in a pending call,
 *   which the interpreter makes on its main thread soon after it is asked; asking needs no GIL.
 * - After it, frames and code objects are read directly. They are alive: this thread is below them.
 * - Nothing is read once the interpreter is shutting down, when it frees other threads' states. */
#include "tracer/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracer/names.h"
#include "tracer/peek.h"

#define MAX SC_STACK_PYTHON_MAX
#define STEPS (4 * MAX)      /* frames looked at, those that are the interpreter's own included */
#define TABLE_MAX (1u << 20) /* bytes of a line table */
#define NONE UINT16_MAX

struct offsets {
  uint8_t minor;          /* of 3.x */
  uint8_t lines;          /* enum sc_python_lines */
  uint8_t unit;           /* bytes per step of f_lasti; 0: the frame holds a pointer to the instruction */
  uint16_t state_frame;   /* in PyThreadState: the frame, or what holds it */
  uint16_t holder_frame;  /* there: the frame. NONE: the state holds it */
  uint16_t previous, code, instruction, owner; /* in a frame. NONE: frames have no owner */
  uint16_t file, name, first_line, table, start; /* in a code object */
  uint16_t type;                     /* in any object */
  uint16_t bytes_size, bytes_data;   /* in a bytes object */
  uint16_t text_length, text_state, text_ascii, text_compact; /* in a str: of ASCII, and of any other text */
};
#define OWNED_BY_C 3 /* this and above: no frame of the program */
#define TAGS 3u      /* from 3.14 on, of a frame's reference to its code */

static const struct offsets table[] = {
  { 9, SC_PYTHON_LNOTAB, 1, 24, NONE, 24, 32, 104, NONE, 104, 112, 40, 120, 0, 8, 16, 32, 16, 32, 48, 72 },
  { 10, SC_PYTHON_LINETABLE, 2, 24, NONE, 24, 32, 96, NONE, 104, 112, 40, 120, 0, 8, 16, 32, 16, 32, 48, 72 },
  { 11, SC_PYTHON_LOCATIONS, 0, 56, 8, 48, 32, 56, 69, 112, 128, 72, 136, 184, 8, 16, 32, 16, 32, 48, 72 },
  { 12, SC_PYTHON_LOCATIONS, 0, 56, 0, 8, 0, 56, 70, 112, 128, 68, 136, 192, 8, 16, 32, 16, 32, 40, 56 },
};

static struct offsets o; /* set once, before anything else here is used */

static struct {
  void *(*this_state)(void);    /* of this thread, GIL or not; NULL on a thread that is not Python's */
  void *(*current_state)(void); /* of whoever holds the GIL; from 3.12 on, this thread's if it does */
  int (*finalizing)(void);
  int (*initialized)(void);
  int (*add_pending)(int (*function)(void *), void *argument);
  const char *(*get_version)(void);
  void *(*eval_frame)(void);
  void *(*frame_back)(void *frame);
  void *(*frame_code)(void *frame);
  int (*frame_line)(void *frame);
  void *(*attribute)(void *object, const char *name);
  const char *(*utf8)(void *text, long *size);
  void (*decref)(void *object);
  void (*fetch)(void **type, void **value, void **traceback);
  void (*restore)(void *type, void *value, void *traceback);
  int (*gc_disable)(void); /* NULL before 3.10, where the check makes no objects */
  int (*gc_enable)(void);
  void *code_type;
} api;

static _Atomic int state;
static _Atomic bool asked; /* a check is pending */
static char version[48];
static bool free_threaded;

/* ---- line tables ------------------------------------------------------------------------------------- */
struct bytes { /* of a table, from memory that is read a piece at a time, or from `here` */
  const uint8_t *here;
  uint64_t address;
  size_t size, next, begin, filled;
  uint8_t piece[256];
};

static int next_byte(struct bytes *b) {
  if (b->next >= b->size)
    return -1;
  size_t i = b->next++;
  if (b->here != NULL)
    return b->here[i];
  if (i >= b->begin + b->filled) {
    size_t n = b->size - i < sizeof(b->piece) ? b->size - i : sizeof(b->piece);
    b->begin = i;
    b->filled = n;
    if (!sc_peek(b->address + i, b->piece, n)) {
      b->size = b->next = 0;
      return -1;
    }
  }
  return b->piece[i - b->begin];
}

static int64_t signed_varint(struct bytes *b) {
  uint64_t value = 0;
  int byte = 0x40;
  for (unsigned shift = 0; (byte & 0x40) != 0 && shift < 36; shift += 6) {
    byte = next_byte(b);
    if (byte < 0)
      return 0;
    value |= (uint64_t)(byte & 0x3f) << shift;
  }
  return (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static uint32_t as_line(int64_t line) { return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0; }

/* 3.11: entries of a first byte, 1 code length(3 bits, plus one, in units of 2), and bytes without the top bit. */
static uint32_t locations_line(struct bytes *b, int64_t line, int64_t at) {
  int64_t end = 0;
  int byte = next_byte(b);
  while (byte >= 0) {
    unsigned code = (unsigned)byte >> 3 & 15;
    end += 2 * ((byte & 7) + 1);
    if (code == 13 || code == 14)
      line += signed_varint(b);
    else if (code >= 10 && code <= 12)
      line += code - 10;
    if (at < end)
      return code == 15 ? 0 : as_line(line);
    do
      byte = next_byte(b);
    while (byte >= 0 && (byte & 0x80) == 0);
  }
  return 0;
}

/* 3.10: pairs of how many bytes and how many lines further; -128: these bytes have no line. */
static uint32_t linetable_line(struct bytes *b, int64_t line, int64_t at) {
  int64_t end = 0;
  for (;;) {
    int bytes = next_byte(b), lines = next_byte(b);
    if (bytes < 0 || lines < 0)
      return 0;
    end += bytes;
    if (lines != 128)
      line += (int8_t)lines;
    if (at < end)
      return lines == 128 ? 0 : as_line(line);
  }
}

/* 3.9: the same pairs, each saying where the next line begins. */
static uint32_t lnotab_line(struct bytes *b, int64_t line, int64_t at) {
  int64_t begin = 0;
  for (;;) {
    int bytes = next_byte(b), lines = next_byte(b);
    if (bytes < 0 || lines < 0 || (begin += bytes) > at)
      return as_line(line);
    line += (int8_t)lines;
  }
}

static uint32_t line_from(enum sc_python_lines format, struct bytes *b, uint32_t first_line, int64_t at) {
  if (at < 0) /* the frame has not begun */
    return first_line;
  switch (format) {
  case SC_PYTHON_LNOTAB: return lnotab_line(b, first_line, at);
  case SC_PYTHON_LINETABLE: return linetable_line(b, first_line, at);
  default: return locations_line(b, first_line, at);
  }
}

uint32_t sc_python_line_of(enum sc_python_lines format, const uint8_t *lines, size_t size, uint32_t first_line,
                           int64_t at) {
  struct bytes b = { .here = lines, .size = size };
  return line_from(format, &b, first_line, at);
}

/* ---- objects ----------------------------------------------------------------------------------------- */
/* Guarded: before the check. Otherwise a plain load. */
static inline __attribute__((always_inline)) bool load(bool guarded, uint64_t at, void *out, size_t n) {
  if (guarded)
    return sc_peek(at, out, n);
  memcpy(out, (const void *)(uintptr_t)at, n);
  return true;
}

static inline __attribute__((always_inline)) bool load_pointer(bool guarded, uint64_t at, uint64_t *out) {
  return load(guarded, at, out, sizeof(*out));
}

/* `length` characters of `kind` bytes each, as UTF-8; stops where `out` is full. */
static void copy_wide(bool guarded, uint64_t data, size_t length, unsigned kind, char *out, size_t size) {
  size_t used = 0;
  for (size_t i = 0; i < length && used + 5 <= size; i++) {
    uint32_t c = 0; /* little-endian */
    if (!load(guarded, data + i * kind, &c, kind))
      break;
    used += sc_name_put_utf8(c, out + used);
  }
  out[used] = '\0';
}

static void read_text(bool guarded, uint64_t object, char *out, size_t size) {
  uint64_t length;
  uint32_t bits;
  out[0] = '\0';
  if (!sc_peek_plausible(object) || !load_pointer(guarded, object + o.text_length, &length) ||
      !load(guarded, object + o.text_state, &bits, sizeof(bits)))
    return;
  unsigned kind = bits >> 2 & 7;
  bool compact = (bits & 32) != 0, ascii = (bits & 64) != 0;
  if (!compact || length > INT32_MAX || (kind != 1 && kind != 2 && kind != 4))
    return;
  if (!ascii) {
    copy_wide(guarded, object + o.text_compact, length, kind, out, size);
    return;
  }
  if (length >= size)
    length = size - 1;
  if (!load(guarded, object + o.text_ascii, out, length))
    length = 0;
  out[length] = '\0';
}

static uint32_t read_line(bool guarded, const struct sc_python_frame *frame, uint64_t lines, uint32_t first_line) {
  struct bytes b = { .here = NULL };
  uint64_t size;
  if (!sc_peek_plausible(lines) || !load_pointer(guarded, lines + o.bytes_size, &size) || size > TABLE_MAX)
    return 0;
  b.address = lines + o.bytes_data;
  b.here = guarded ? NULL : (const uint8_t *)(uintptr_t)b.address;
  b.size = size;
  return line_from((enum sc_python_lines)o.lines, &b, first_line, frame->at);
}

static void describe(bool guarded, const struct sc_python_frame *frame, struct sc_python_line *out) {
  uint64_t file = 0, name = 0, lines = 0;
  int32_t first = 0;
  out->file[0] = out->function[0] = '\0';
  out->line = out->first_line = 0;
  if (!load_pointer(guarded, frame->code + o.file, &file) || !load_pointer(guarded, frame->code + o.name, &name) ||
      !load_pointer(guarded, frame->code + o.table, &lines) ||
      !load(guarded, frame->code + o.first_line, &first, sizeof(first)))
    return;
  read_text(guarded, file, out->file, sizeof(out->file));
  read_text(guarded, name, out->function, sizeof(out->function));
  out->first_line = as_line(first);
  out->line = read_line(guarded, frame, lines, out->first_line);
}

/* Unguarded as the walk that took the frame: sc_peek is a system call, and a new stack has hundreds of words. */
void sc_python_describe(const struct sc_python_frame *frame, struct sc_python_line *out) {
  describe(api.finalizing(), frame, out);
}

/* ---- the walk ---------------------------------------------------------------------------------------- */
/* A code object's address is used again once it is freed, so what it says of itself belongs to its identity: where it is
 * from, and how its table of lines begins. */
static inline __attribute__((always_inline)) bool identify(bool guarded, struct sc_python_frame *frame) {
  uint64_t file, name, lines, length, size, tail = 0, begin[2] = { 0, 0 };
  int32_t first;
  if (!load_pointer(guarded, frame->code + o.file, &file) || !load_pointer(guarded, frame->code + o.name, &name) ||
      !load_pointer(guarded, frame->code + o.table, &lines) ||
      !load(guarded, frame->code + o.first_line, &first, sizeof(first)) || !sc_peek_plausible(file) ||
      !sc_peek_plausible(lines) || !load_pointer(guarded, file + o.text_length, &length) ||
      !load_pointer(guarded, lines + o.bytes_size, &size))
    return false;
  if (length >= 8 && length < INT32_MAX && !load_pointer(guarded, file + o.text_ascii + length - 8, &tail))
    return false;
  if (size > INT32_MAX || !load_pointer(guarded, lines + o.bytes_data, &begin[0])) /* there are 8 bytes, used or not */
    return false;
  if (size < 8)
    begin[0] &= ((uint64_t)1 << 8 * size) - 1;
  else if (!load_pointer(guarded, lines + o.bytes_data + (size < 16 ? size - 8 : 8), &begin[1]))
    return false;
  uint64_t hash = sc_hash_mix(sc_hash_mix(frame->code, (uint64_t)frame->at), file ^ (uint64_t)(uint32_t)first << 48);
  hash = sc_hash_mix(sc_hash_mix(hash, name ^ length << 48), lines ^ tail);
  frame->identity = sc_hash_mix(sc_hash_mix(hash, begin[0] ^ size << 48), begin[1]);
  return true;
}

static inline __attribute__((always_inline)) bool read_instruction(bool guarded, uint64_t at,
                                                                   struct sc_python_frame *out) {
  if (o.unit != 0) {
    int32_t last;
    if (!load(guarded, at + o.instruction, &last, sizeof(last)))
      return false;
    out->at = last < 0 ? -1 : (int64_t)last * o.unit;
    return true;
  }
  uint64_t instruction;
  if (!load_pointer(guarded, at + o.instruction, &instruction))
    return false;
  out->at = (int64_t)(instruction - (out->code + o.start));
  return out->at >= -2 && out->at < INT32_MAX;
}

/* 1: a frame of the program. 0: one of the interpreter's own. -1: this is no frame. */
static inline __attribute__((always_inline)) int read_frame(bool guarded, uint64_t at, struct sc_python_frame *out) {
  uint64_t type;
  if (o.owner != NONE) {
    uint8_t owner;
    if (!load(guarded, at + o.owner, &owner, sizeof(owner)))
      return -1;
    if (owner >= OWNED_BY_C)
      return 0;
  }
  if (!load_pointer(guarded, at + o.code, &out->code))
    return -1;
  out->code &= ~(uint64_t)TAGS;
  if (!sc_peek_plausible(out->code) || !load_pointer(guarded, out->code + o.type, &type) ||
      type != (uint64_t)(uintptr_t)api.code_type)
    return -1;
  return read_instruction(guarded, at, out) && identify(guarded, out) ? 1 : -1;
}

/* False if something was not what it should be: then nothing of it is used. */
static inline __attribute__((always_inline)) bool walk(bool guarded, uint64_t thread,
                                                       struct sc_python_frame frames[MAX], size_t *count, bool *cut) {
  uint64_t at;
  *count = 0;
  *cut = false;
  if (!load_pointer(guarded, thread + o.state_frame, &at))
    return false;
  if (o.holder_frame != NONE && (!sc_peek_plausible(at) || !load_pointer(guarded, at + o.holder_frame, &at)))
    return false;
  for (unsigned step = 0; at != 0; step++) {
    if (step == STEPS || *count == MAX) {
      *cut = true;
      return true;
    }
    if (!sc_peek_plausible(at) || api.finalizing())
      return false;
    int found = read_frame(guarded, at, &frames[*count]);
    if (found < 0)
      return false;
    *count += (size_t)found;
    if (!load_pointer(guarded, at + o.previous, &at))
      return false;
  }
  return true;
}

/* ---- the check: the GIL is held by the calling thread ------------------------------------------------ */
static bool text_is(void *object, const char *attribute, const char *ours) {
  void *text = api.attribute(object, attribute);
  bool same = false;
  if (text != NULL) {
    long size = 0;
    const char *theirs = api.utf8(text, &size);
    same = theirs != NULL && strlen(ours) == (size_t)size && memcmp(theirs, ours, (size_t)size) == 0;
    api.decref(text);
  }
  return same;
}

static bool frame_agrees(void *theirs, const struct sc_python_frame *ours) {
  struct sc_python_line line;
  void *code = api.frame_code(theirs); /* a new reference */
  bool same = code == (void *)(uintptr_t)ours->code;
  if (same) {
    describe(true, ours, &line);
    int their_line = api.frame_line(theirs); /* -1: it has none */
    same = (their_line > 0 ? their_line : 0) == (int)line.line && text_is(code, "co_filename", line.file) &&
           text_is(code, o.minor >= 11 ? "co_qualname" : "co_name", line.function);
  }
  if (code != NULL)
    api.decref(code);
  return same;
}

static bool frames_agree(const struct sc_python_frame *ours, size_t count, bool cut) {
  void *theirs = api.eval_frame(); /* borrowed */
  bool same = theirs != NULL && count > 0;
  for (size_t i = 0; i < count && same; i++) {
    same = theirs != NULL && frame_agrees(theirs, &ours[i]);
    void *back = theirs != NULL ? api.frame_back(theirs) : NULL; /* a new reference */
    if (i > 0 && theirs != NULL)
      api.decref(theirs);
    theirs = back;
  }
  same = same && (cut || theirs == NULL);
  if (theirs != NULL && count > 0)
    api.decref(theirs);
  return same;
}

static void check(void *thread) {
  struct sc_python_frame frames[MAX];
  void *type = NULL, *value = NULL, *traceback = NULL;
  size_t count;
  bool cut;
  /* Making a frame object could start a collection, which runs anything. */
  int collects = api.gc_disable != NULL && api.gc_enable != NULL ? api.gc_disable() : 0;
  api.fetch(&type, &value, &traceback);
  if (api.eval_frame() != NULL) { /* without a frame there is nothing to compare: a later check */
    bool same = walk(true, (uint64_t)(uintptr_t)thread, frames, &count, &cut) && frames_agree(frames, count, cut);
    atomic_store_explicit(&state, same ? SC_PYTHON_CHECKED : SC_PYTHON_REFUSED, memory_order_release);
  }
  api.restore(type, value, traceback);
  if (collects)
    (void)api.gc_enable();
}

/* This thread's state if it holds the GIL. */
static void *holder(void) {
  void *mine = api.this_state();
  return mine != NULL && mine == api.current_state() ? mine : NULL;
}

static int pending_check(void *unused) {
  int saved = errno;
  (void)unused;
  atomic_store_explicit(&asked, false, memory_order_relaxed);
  void *mine = api.finalizing() ? NULL : holder();
  if (mine != NULL && atomic_load_explicit(&state, memory_order_relaxed) == SC_PYTHON_UNCHECKED)
    check(mine);
  errno = saved;
  return 0;
}

static void seek_check(void) {
  if (!api.initialized() || api.finalizing())
    return;
  void *mine = holder();
  if (mine != NULL)
    check(mine);
  else if (!atomic_exchange_explicit(&asked, true, memory_order_relaxed) && api.add_pending(pending_check, NULL) != 0)
    atomic_store_explicit(&asked, false, memory_order_relaxed); /* the queue is full: the next call asks again */
}

/* ---- taking ------------------------------------------------------------------------------------------ */
size_t sc_python_take(struct sc_python_frame frames[MAX], uint64_t *hash, uint32_t *flags) {
  int now = atomic_load_explicit(&state, memory_order_acquire);
  size_t count = 0;
  bool cut;
  *hash = 0;
  if (now == SC_PYTHON_ABSENT)
    return 0;
  if (now == SC_PYTHON_UNCHECKED) {
    seek_check();
    now = atomic_load_explicit(&state, memory_order_acquire);
  }
  void *thread = api.finalizing() ? NULL : api.this_state();
  if (thread == NULL) {
    if (api.finalizing())
      *flags |= SC_STACK_PYTHON_MISSING;
    return 0;
  }
  if (now != SC_PYTHON_CHECKED || !walk(false, (uint64_t)(uintptr_t)thread, frames, &count, &cut)) {
    *flags |= SC_STACK_PYTHON_MISSING;
    return 0;
  }
  if (cut)
    *flags |= SC_STACK_PYTHON_CUT;
  for (size_t i = 0; i < count; i++)
    *hash = sc_hash_mix(*hash, frames[i].identity);
  return count;
}

/* ---- finding it -------------------------------------------------------------------------------------- */
static void find(void *target, const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  memcpy(target, &symbol, sizeof(symbol));
}

static bool find_api(void) {
  find(&api.this_state, "PyGILState_GetThisThreadState");
  if (api.this_state == NULL)
    return false;
  find(&api.current_state, "PyThreadState_GetUnchecked"); /* 3.13 */
  if (api.current_state == NULL)
    find(&api.current_state, "_PyThreadState_UncheckedGet");
  find(&api.finalizing, "Py_IsFinalizing"); /* 3.13 */
  if (api.finalizing == NULL)
    find(&api.finalizing, "_Py_IsFinalizing");
  find(&api.initialized, "Py_IsInitialized");
  find(&api.add_pending, "Py_AddPendingCall");
  find(&api.get_version, "Py_GetVersion");
  find(&api.eval_frame, "PyEval_GetFrame");
  find(&api.frame_back, "PyFrame_GetBack");
  find(&api.frame_code, "PyFrame_GetCode");
  find(&api.frame_line, "PyFrame_GetLineNumber");
  find(&api.attribute, "PyObject_GetAttrString");
  find(&api.utf8, "PyUnicode_AsUTF8AndSize");
  find(&api.decref, "Py_DecRef");
  find(&api.fetch, "PyErr_Fetch");
  find(&api.restore, "PyErr_Restore");
  find(&api.gc_disable, "PyGC_Disable");
  find(&api.gc_enable, "PyGC_Enable");
  find(&api.code_type, "PyCode_Type");
  return api.get_version != NULL;
}

static bool api_is_whole(void) {
  return api.current_state != NULL && api.finalizing != NULL && api.initialized != NULL && api.add_pending != NULL &&
         api.eval_frame != NULL && api.frame_back != NULL && api.frame_code != NULL && api.frame_line != NULL &&
         api.attribute != NULL && api.utf8 != NULL && api.decref != NULL && api.fetch != NULL && api.restore != NULL &&
         api.code_type != NULL;
}

/* Where each offset stands in _Py_DebugOffsets, which begins _PyRuntime, in words from its start: by version. */
enum { DEBUG_VERSION = 1, DEBUG_FREE_THREADED = 2, DEBUG_WORDS = 93 };
static const struct debug_words {
  uint8_t minor;
  uint8_t state_frame, previous, code, instruction, owner;
  uint8_t file, name, table, first_line, start; /* name: the qualified one */
  uint8_t type, bytes_size, bytes_data, text_state, text_length, text_ascii;
} debug_words[] = {
  { 13, 23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70 },
  { 14, 26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80 },
  { 15, 26, 40, 41, 42, 44, 48, 50, 51, 52, 56, 59, 87, 88, 90, 91, 92 },
};

/* One offset; `ok` becomes false if it cannot be one. */
static uint16_t debug_offset(const uint64_t *words, uint8_t word, bool *ok) {
  *ok &= words[word] < NONE;
  return (uint16_t)words[word];
}

static bool read_debug_offsets(const struct debug_words *w) {
  const void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
  uint64_t words[DEBUG_WORDS];
  bool ok = true;
  if (runtime == NULL || !sc_peek((uint64_t)(uintptr_t)runtime, words, sizeof(words)) ||
      memcmp(words, "xdebugpy", 8) != 0 || words[DEBUG_VERSION] >> 16 != (0x300u | w->minor))
    return false;
  if (words[DEBUG_FREE_THREADED] != 0) { /* each thread may run a copy of its own of a function's code */
    free_threaded = true;
    return false;
  }
  o = (struct offsets){
    .minor = w->minor,
    .lines = SC_PYTHON_LOCATIONS,
    .state_frame = debug_offset(words, w->state_frame, &ok),
    .holder_frame = NONE,
    .previous = debug_offset(words, w->previous, &ok),
    .code = debug_offset(words, w->code, &ok),
    .instruction = debug_offset(words, w->instruction, &ok),
    .owner = debug_offset(words, w->owner, &ok),
    .file = debug_offset(words, w->file, &ok),
    .name = debug_offset(words, w->name, &ok),
    .first_line = debug_offset(words, w->first_line, &ok),
    .table = debug_offset(words, w->table, &ok),
    .start = debug_offset(words, w->start, &ok),
    .type = debug_offset(words, w->type, &ok),
    .bytes_size = debug_offset(words, w->bytes_size, &ok),
    .bytes_data = debug_offset(words, w->bytes_data, &ok),
    .text_length = debug_offset(words, w->text_length, &ok),
    .text_state = debug_offset(words, w->text_state, &ok),
    .text_ascii = debug_offset(words, w->text_ascii, &ok),
    /* the UTF-8 copy's length and address are between */
    .text_compact = (uint16_t)(debug_offset(words, w->text_ascii, &ok) + 16),
  };
  return ok;
}

static bool find_offsets(void) {
  char *end;
  if (strncmp(version, "3.", 2) != 0)
    return false;
  unsigned long minor = strtoul(version + 2, &end, 10);
  for (size_t i = 0; i < SC_COUNTOF(table); i++)
    if (table[i].minor == minor) {
      o = table[i];
      return true;
    }
  for (size_t i = 0; i < SC_COUNTOF(debug_words); i++)
    if (debug_words[i].minor == minor)
      return read_debug_offsets(&debug_words[i]);
  return false;
}

void sc_python_prepare(void) {
  if (atomic_load_explicit(&state, memory_order_relaxed) != SC_PYTHON_ABSENT || !find_api())
    return;
  const char *text = api.get_version();
  size_t length = text != NULL ? strcspn(text, " +") : 0;
  if (length >= sizeof(version))
    length = sizeof(version) - 1;
  if (text != NULL)
    memcpy(version, text, length);
  version[length] = '\0';
  bool known = api_is_whole() && find_offsets();
  if (free_threaded && length + sizeof(" (free-threaded)") <= sizeof(version))
    memcpy(version + length, " (free-threaded)", sizeof(" (free-threaded)"));
  atomic_store_explicit(&state, known ? SC_PYTHON_UNCHECKED : SC_PYTHON_REFUSED, memory_order_release);
  if (known)
    seek_check();
}

enum sc_python_state sc_python_state(void) {
  return (enum sc_python_state)atomic_load_explicit(&state, memory_order_acquire);
}

const char *sc_python_version(void) { return version; }

uintptr_t sc_python_code(void) { return (uintptr_t)api.eval_frame; }
