/* SPDX-License-Identifier: Apache-2.0
 * External merge sort. Until the first run is written nothing but memory is used. */
#include "import/sorter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_BUFFER 262144u /* bytes of each run that are in memory while runs are merged */

struct run {
  uint64_t next, end;    /* bytes of the file that were not read yet */
  unsigned char *buffer; /* [RUN_BUFFER], at: the run's first item, left: bytes from there */
  unsigned char *at;
  size_t left;
};

struct entry { /* an item in memory: what most comparisons need, without going to the item */
  struct sc_key key;
  size_t index;
};

struct sc_sorter {
  struct sc_order order;
  size_t size, capacity, count; /* of an item in bytes; items in memory */
  struct entry *entries;        /* [count] in order, once sorted */
  unsigned char *items;         /* grows up to capacity */
  size_t allocated;
  FILE *file;
  uint64_t file_bytes;
  struct run *runs;
  size_t run_count, run_cap;
  size_t *heap; /* runs that still have items, the one with the least first */
  size_t heap_count;
  bool reading, advance; /* advance: the heap's first was given out */
  size_t given;          /* of items, when no run was written */
  struct sc_error failure;
};

struct sc_sorter *sc_sorter_new(const struct sc_order *order, size_t memory)
{
  struct sc_sorter *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->order = *order;
  s->size = order->item_size;
  s->capacity = memory / s->size > 2 ? memory / s->size : 2;
  return s;
}

void sc_sorter_free(struct sc_sorter *s)
{
  if (!s)
    return;
  for (size_t i = 0; i < s->run_count; ++i)
    free(s->runs[i].buffer);
  free(s->runs);
  free(s->heap);
  free(s->items);
  free(s->entries);
  if (s->file)
    fclose(s->file);
  free(s);
}

static bool fail(struct sc_sorter *s, enum sc_status status, const char *what)
{
  if (s->failure.status == SC_OK)
    sc_error_set(&s->failure, status, status == SC_ERR_NOMEM ? "out of memory" : "%s: %s", what, strerror(errno));
  return false;
}

static bool goes_first(const struct sc_sorter *s, const struct entry *a, const struct entry *b)
{
  if (a->key.high != b->key.high)
    return a->key.high < b->key.high;
  if (a->key.low != b->key.low)
    return a->key.low < b->key.low;
  return s->order.compare(s->items + a->index * s->size, s->items + b->index * s->size) <= 0;
}

/* Where the run that begins at `from` ends: tables of a trace are mostly in order already. */
static size_t run_end(const struct sc_sorter *s, const struct entry *list, size_t from)
{
  size_t i = from + 1;
  while (i < s->count && goes_first(s, &list[i - 1], &list[i]))
    ++i;
  return i < s->count ? i : s->count;
}

/* Merges pairs of runs of `from` into `into`. Returns the number of runs that are left. */
static size_t merge_pairs(const struct sc_sorter *s, const struct entry *from, struct entry *into)
{
  size_t runs = 0;
  for (size_t at = 0; at < s->count; ++runs) {
    size_t left = at, middle = run_end(s, from, at), right = middle;
    size_t end = middle < s->count ? run_end(s, from, middle) : middle;
    for (; at < end; ++at)
      into[at] =
          right == end || (left < middle && goes_first(s, &from[left], &from[right])) ? from[left++] : from[right++];
  }
  return runs;
}

/* A natural merge sort of keys; the items stay where they are. */
static bool sort_items(struct sc_sorter *s)
{
  struct entry *other = sc_calloc_array(s->count + 1, sizeof *other);
  s->entries = sc_calloc_array(s->count + 1, sizeof *s->entries);
  if (!s->entries || !other) {
    free(other);
    return fail(s, SC_ERR_NOMEM, NULL);
  }
  for (size_t i = 0; i < s->count; ++i)
    s->entries[i] = (struct entry){.key = s->order.key(s->items + i * s->size), .index = i};
  while (run_end(s, s->entries, 0) < s->count) {
    size_t runs = merge_pairs(s, s->entries, other);
    struct entry *merged = other;
    other = s->entries;
    s->entries = merged;
    if (runs <= 1)
      break;
  }
  free(other);
  return true;
}

static bool write_items(struct sc_sorter *s)
{
  for (size_t i = 0; i < s->count; ++i) {
    if (fwrite(s->items + s->entries[i].index * s->size, s->size, 1, s->file) != 1)
      return false;
  }
  return fflush(s->file) == 0;
}

static bool write_run(struct sc_sorter *s)
{
  static const char what[] = "cannot write the temporary file that a large trace is sorted in (set TMPDIR to a folder "
                             "with more room)";
  if (!s->file && !(s->file = sc_temporary_file()))
    return fail(s, SC_ERR_IO, what);
  if (!sort_items(s))
    return false;
  struct run *run = sc_array_push(&s->runs, &s->run_count, &s->run_cap, sizeof *run);
  if (!run)
    return fail(s, SC_ERR_NOMEM, NULL);
  run->next = s->file_bytes;
  s->file_bytes += s->count * s->size;
  run->end = s->file_bytes;
  if (!write_items(s))
    return fail(s, SC_ERR_IO, what);
  free(s->entries);
  s->entries = NULL;
  s->count = 0;
  return true;
}

bool sc_sorter_add(struct sc_sorter *s, const void *item)
{
  if (s->failure.status != SC_OK)
    return false;
  if (s->count == s->allocated) {
    size_t wanted = s->allocated ? s->allocated * 2 : 1024;
    if (wanted > s->capacity)
      wanted = s->capacity;
    if (s->count == wanted) {
      if (!write_run(s))
        return false;
    } else {
      unsigned char *grown = realloc(s->items, wanted * s->size);
      if (!grown)
        return fail(s, SC_ERR_NOMEM, NULL);
      s->items = grown;
      s->allocated = wanted;
    }
  }
  memcpy(s->items + s->count++ * s->size, item, s->size);
  return true;
}

/* ---- merging ------------------------------------------------------------------------------------- */

static bool refill(struct sc_sorter *s, struct run *run)
{
  uint64_t rest = run->end - run->next;
  size_t most = RUN_BUFFER / s->size * s->size, wanted = rest < most ? (size_t)rest : most, got = 0;
  while (got < wanted) {
    ssize_t n = pread(fileno(s->file), run->buffer + got, wanted - got, (off_t)(run->next + got));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      errno = n == 0 ? EIO : errno;
      return fail(s, SC_ERR_IO, "cannot read the temporary file that a large trace is sorted in");
    }
    got += (size_t)n;
  }
  run->next += wanted;
  run->at = run->buffer;
  run->left = wanted;
  return true;
}

static bool comes_before(const struct sc_sorter *s, size_t left, size_t right)
{
  const void *a = s->runs[s->heap[left]].at, *b = s->runs[s->heap[right]].at;
  struct sc_key first = s->order.key(a), second = s->order.key(b);
  if (first.high != second.high)
    return first.high < second.high;
  return first.low != second.low ? first.low < second.low : s->order.compare(a, b) < 0;
}

static void sift_down(struct sc_sorter *s, size_t at)
{
  for (;;) {
    size_t least = at, child = 2 * at + 1;
    for (size_t i = child; i < child + 2 && i < s->heap_count; ++i) {
      if (comes_before(s, i, least))
        least = i;
    }
    if (least == at)
      return;
    size_t other = s->heap[at];
    s->heap[at] = s->heap[least];
    s->heap[least] = other;
    at = least;
  }
}

static bool start_merge(struct sc_sorter *s)
{
  if (s->count && !write_run(s))
    return false;
  free(s->items);
  s->items = NULL;
  s->heap = sc_calloc_array(s->run_count, sizeof *s->heap);
  if (!s->heap)
    return fail(s, SC_ERR_NOMEM, NULL);
  for (size_t i = 0; i < s->run_count; ++i) {
    s->runs[i].buffer = malloc(RUN_BUFFER);
    if (!s->runs[i].buffer)
      return fail(s, SC_ERR_NOMEM, NULL);
    if (!refill(s, &s->runs[i]))
      return false;
    s->heap[s->heap_count++] = i;
  }
  for (size_t i = s->heap_count / 2; i-- > 0;)
    sift_down(s, i);
  return true;
}

/* Past the item that was given out. */
static bool step(struct sc_sorter *s)
{
  struct run *run = &s->runs[s->heap[0]];
  run->at += s->size;
  run->left -= s->size;
  if (run->left == 0 && run->next < run->end && !refill(s, run))
    return false;
  if (run->left == 0)
    s->heap[0] = s->heap[--s->heap_count];
  sift_down(s, 0);
  return true;
}

static bool begin_reading(struct sc_sorter *s)
{
  s->reading = true;
  if (s->run_count)
    return start_merge(s);
  return sort_items(s);
}

enum sc_status sc_sorter_next(struct sc_sorter *s, const void **item, struct sc_error *err)
{
  *item = NULL;
  if (s->failure.status == SC_OK && !s->reading)
    (void)begin_reading(s);
  if (s->failure.status == SC_OK && s->advance) {
    s->advance = false;
    (void)step(s);
  }
  if (s->failure.status != SC_OK)
    return sc_error_set(err, s->failure.status, "%s", s->failure.message);
  if (s->run_count == 0) {
    if (s->given < s->count)
      *item = s->items + s->entries[s->given++].index * s->size;
  } else if (s->heap_count) {
    *item = s->runs[s->heap[0]].at;
    s->advance = true;
  }
  return SC_OK;
}
