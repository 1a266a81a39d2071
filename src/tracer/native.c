/* SPDX-License-Identifier: Apache-2.0
 * Neither CUDA's libraries nor PyTorch keep frame pointers, so the walk is the unwinder's of libgcc, which reads the
 * tables that every x86-64 file carries for exceptions. It is late-bound: a program that does not have it is not made
 * to link it. */
#include "tracer/native.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tracer/peek.h"

#define WALK_NS 2000000u /* what one walk may take; the first one may read tables from disk */
#define NOTES_MAX 4096u
#define PAGE 4096u

enum { GO_ON = 0, END_OF_STACK = 5 }; /* _Unwind_Reason_Code */

/* struct dl_find_object of glibc 2.35's <dlfcn.h>, which older headers lack. */
struct found_object {
  unsigned long long flags;
  void *start, *end;
  struct link_map *map;
  void *eh_frame;
  unsigned long long reserved[8];
};

static int (*find_object)(void *address, struct found_object *out);
static int (*backtrace_by)(int (*visit)(void *context, void *argument), void *argument);
static uintptr_t (*context_ip)(void *context);
static uintptr_t (*context_cfa)(void *context);
static uintptr_t own_start, own_end, stop_start, stop_end;
static char program[4096];

static bool range_of(uintptr_t address, uintptr_t *start, uintptr_t *end) {
  struct found_object found;
  if (find_object((void *)address, &found) != 0)
    return false;
  *start = (uintptr_t)found.start;
  *end = (uintptr_t)found.end;
  return true;
}

static bool prepare(void) {
  void *symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");
  void *library = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_LOCAL);
  struct sc_native_frame frames[SC_STACK_NATIVE_MAX];
  bool cut;
  if (symbol == NULL || library == NULL)
    return false;
  memcpy(&find_object, &symbol, sizeof(symbol));
  symbol = dlsym(library, "_Unwind_Backtrace");
  memcpy(&backtrace_by, &symbol, sizeof(symbol));
  symbol = dlsym(library, "_Unwind_GetIP");
  memcpy(&context_ip, &symbol, sizeof(symbol));
  symbol = dlsym(library, "_Unwind_GetCFA");
  memcpy(&context_cfa, &symbol, sizeof(symbol));
  if (backtrace_by == NULL || context_ip == NULL || context_cfa == NULL ||
      !range_of((uintptr_t)sc_native_prepare, &own_start, &own_end))
    return false;
  ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
  program[n > 0 ? n : 0] = '\0';
  (void)sc_native_walk(frames, &cut); /* what it does only once is done here */
  return true;
}

bool sc_native_prepare(void) {
  static bool prepared; /* in an earlier session; only the thread that starts one comes here */
  prepared = prepared || prepare();
  return prepared;
}

void sc_native_stop_at(uintptr_t address) {
  if (address == 0 || find_object == NULL || !range_of(address, &stop_start, &stop_end))
    stop_start = stop_end = 0;
}

struct walk {
  struct sc_native_frame *frames;
  size_t count;
  uint64_t deadline;
  unsigned steps;
  bool cut;
};

/* Words of other functions' frames, which a sanitizer watches. */
__attribute__((no_sanitize("address", "thread"))) uint64_t sc_native_slot(uint64_t slot) {
  return *(const volatile uint64_t *)(uintptr_t)slot;
}

static int visit(void *context, void *argument) {
  struct walk *walk = argument;
  uintptr_t address = context_ip(context), cfa = context_cfa(context);
  if (address == 0 || (address >= stop_start && address < stop_end))
    return END_OF_STACK;
  if (walk->count == 0 && address >= own_start && address < own_end && walk->steps++ < 16)
    return GO_ON;
  if (walk->count == SC_STACK_NATIVE_MAX || (walk->count % 8 == 7 && sc_clock_mono_ns() > walk->deadline)) {
    walk->cut = true;
    return END_OF_STACK;
  }
  uint64_t slot = cfa - 8;
  bool there = sc_peek_plausible(slot) && sc_native_slot(slot) == address;
  walk->frames[walk->count++] = (struct sc_native_frame){ .address = address, .slot = there ? slot : 0 };
  return GO_ON;
}

size_t sc_native_walk(struct sc_native_frame frames[SC_STACK_NATIVE_MAX], bool *cut) {
  struct walk walk = { .frames = frames, .deadline = sc_clock_mono_ns() + WALK_NS };
  (void)backtrace_by(visit, &walk);
  *cut = walk.cut;
  return walk.count;
}

/* ---- files ------------------------------------------------------------------------------------------- */
uint64_t sc_native_stamp(uint64_t address, uint64_t *start) {
  struct found_object found;
  uint64_t tail = 0;
  *start = 0;
  if (find_object((void *)(uintptr_t)address, &found) != 0)
    return 0;
  *start = (uintptr_t)found.start;
  /* A file that is loaded where another was has another name, or is the same file: the end of the name tells. */
  size_t length = strlen(found.map->l_name);
  if (length >= sizeof(tail))
    memcpy(&tail, found.map->l_name + length - sizeof(tail), sizeof(tail));
  return ((uintptr_t)found.map ^ (uint64_t)length << 48 ^ tail) | 1;
}

/* What a file says of itself to the loader. */
struct dynamic {
  const Elf64_Dyn *first;
  const char *texts;
  uint64_t size; /* of texts, which end with a 0 */
};

static bool find_dynamic(const struct found_object *found, struct dynamic *out) {
  uint64_t start = (uintptr_t)found->start, end = (uintptr_t)found->end, texts = 0;
  *out = (struct dynamic){ .first = found->map->l_ld };
  if (out->first == NULL)
    return false;
  for (const Elf64_Dyn *at = out->first; at->d_tag != DT_NULL; at++)
    if (at->d_tag == DT_STRTAB)
      texts = at->d_un.d_ptr;
    else if (at->d_tag == DT_STRSZ)
      out->size = at->d_un.d_val;
  if (texts < start) /* the loader has not made it an address */
    texts += found->map->l_addr;
  if (texts < start || texts >= end || out->size == 0 || out->size > end - texts)
    return false;
  out->texts = (const char *)(uintptr_t)texts;
  return out->texts[out->size - 1] == '\0';
}

/* The name by which files ask for this one. */
static const char *name_of(const struct found_object *found, const struct dynamic *dynamic) {
  for (const Elf64_Dyn *at = dynamic->first; at->d_tag != DT_NULL; at++)
    if (at->d_tag == DT_SONAME && at->d_un.d_val < dynamic->size)
      return dynamic->texts + at->d_un.d_val;
  const char *slash = strrchr(found->map->l_name, '/');
  return slash != NULL ? slash + 1 : found->map->l_name;
}

bool sc_native_keeps(uint64_t address, uint64_t other) {
  struct found_object mine, theirs;
  struct dynamic my_dynamic, their_dynamic;
  if (find_object((void *)(uintptr_t)address, &mine) != 0 || find_object((void *)(uintptr_t)other, &theirs) != 0 ||
      mine.map == theirs.map || !find_dynamic(&mine, &my_dynamic) || !find_dynamic(&theirs, &their_dynamic))
    return false;
  const char *name = name_of(&theirs, &their_dynamic);
  for (const Elf64_Dyn *at = my_dynamic.first; at->d_tag != DT_NULL; at++)
    if (at->d_tag == DT_NEEDED && at->d_un.d_val < my_dynamic.size &&
        strcmp(my_dynamic.texts + at->d_un.d_val, name) == 0)
      return true;
  return false;
}

bool sc_native_file(uint64_t address, struct sc_native_file *out) {
  struct found_object found;
  if (find_object((void *)(uintptr_t)address, &found) != 0)
    return false;
  *out = (struct sc_native_file){ .path = found.map->l_name[0] != '\0' ? found.map->l_name : program,
                                  .base = found.map->l_addr,
                                  .start = (uintptr_t)found.start };
  return true;
}

/* The GNU build id among the notes of one segment. */
static bool take_build_id(const unsigned char *notes, size_t size, struct sc_native_file *file) {
  size_t at = 0;
  while (size - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    memcpy(&note, notes + at, sizeof(note));
    at += sizeof(note);
    size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3, text = ((size_t)note.n_descsz + 3) & ~(size_t)3;
    if (name > size - at || text > size - at - name)
      return false;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + at, "GNU", 4) == 0 &&
        note.n_descsz <= sizeof(file->build_id)) {
      memcpy(file->build_id, notes + at + name, note.n_descsz);
      file->build_id_length = (uint8_t)note.n_descsz;
      return true;
    }
    at += name + text;
  }
  return false;
}

/* Bytes of the file's memory; mostly they are in its first page, which is read once. */
static bool read_part(const struct sc_native_file *file, const unsigned char page[PAGE], uint64_t address, void *out,
                      size_t n) {
  uint64_t offset = address - file->start;
  if (offset >= PAGE || n > PAGE - offset)
    return sc_peek(address, out, n);
  memcpy(out, page + offset, n);
  return true;
}

void sc_native_build_id(struct sc_native_file *file) {
  Elf64_Ehdr header;
  Elf64_Phdr segment;
  unsigned char page[PAGE], notes[NOTES_MAX];
  file->build_id_length = 0;
  if (!sc_peek(file->start, page, sizeof(page)) || memcmp(page, ELFMAG, SELFMAG) != 0)
    return;
  memcpy(&header, page, sizeof(header));
  if (header.e_phentsize != sizeof(segment))
    return;
  for (unsigned i = 0; i < header.e_phnum && i < 64; i++) {
    if (!read_part(file, page, file->start + header.e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
      return;
    size_t size = segment.p_memsz < sizeof(notes) ? segment.p_memsz : sizeof(notes);
    if (segment.p_type == PT_NOTE && read_part(file, page, file->base + segment.p_vaddr, notes, size) &&
        take_build_id(notes, size, file))
      return;
  }
}
