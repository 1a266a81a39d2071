/* SPDX-License-Identifier: Apache-2.0
 * Open addressing over numbers; texts are copied one by one. */
#include "import/intern.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const unsigned char *bytes, size_t length)
{
  uint64_t hash = length * 0x9e3779b97f4a7c15u, word;
  for (; length >= sizeof word; length -= sizeof word, bytes += sizeof word) {
    memcpy(&word, bytes, sizeof word);
    hash = sc_hash_mix(hash, word);
  }
  word = 0;
  memcpy(&word, bytes, length);
  hash = (hash ^ word) * 0x9fb21c651e98df25u;
  return hash ^ hash >> 29;
}

static uint32_t *slot_of(const struct sc_intern *in, uint64_t hash, const void *bytes, size_t length)
{
  size_t i = hash & (in->slot_count - 1);
  for (;; i = (i + 1) & (in->slot_count - 1)) {
    if (!in->slots[i])
      return &in->slots[i];
    const struct sc_intern_entry *e = &in->entries[in->slots[i] - 1];
    if (e->hash == hash && e->length == length && memcmp(e->bytes, bytes, length) == 0)
      return &in->slots[i];
  }
}

static bool grow(struct sc_intern *in)
{
  size_t count = in->slot_count ? in->slot_count * 2 : 256;
  uint32_t *slots = sc_calloc_array(count, sizeof *slots);
  if (!slots)
    return false;
  for (size_t i = 0; i < in->count; ++i) {
    size_t at = in->entries[i].hash & (count - 1);
    while (slots[at])
      at = (at + 1) & (count - 1);
    slots[at] = (uint32_t)i + 1;
  }
  free(in->slots);
  in->slots = slots;
  in->slot_count = count;
  return true;
}

uint32_t sc_intern_add(struct sc_intern *in, const void *bytes, size_t length, bool *added)
{
  if (added)
    *added = false;
  if (length > UINT32_MAX || in->count >= UINT32_MAX / 2 || (in->count * 2 >= in->slot_count && !grow(in)))
    return 0;
  uint64_t hash = hash_of(bytes, length);
  uint32_t *slot = slot_of(in, hash, bytes, length);
  if (*slot)
    return *slot;
  char *copy = malloc(length + 1);
  struct sc_intern_entry *e = copy ? sc_array_push(&in->entries, &in->count, &in->capacity, sizeof *e) : NULL;
  if (!e) {
    free(copy);
    return 0;
  }
  memcpy(copy, bytes, length);
  copy[length] = '\0';
  *e = (struct sc_intern_entry){.hash = hash, .bytes = copy, .length = (uint32_t)length};
  in->bytes += length;
  *slot = (uint32_t)in->count;
  if (added)
    *added = true;
  return *slot;
}

uint32_t sc_intern_find(const struct sc_intern *in, const void *bytes, size_t length)
{
  return in->slot_count ? *slot_of(in, hash_of(bytes, length), bytes, length) : 0;
}

const struct sc_intern_entry *sc_intern_get(const struct sc_intern *in, uint32_t number)
{
  return number && number <= in->count ? &in->entries[number - 1] : NULL;
}

void sc_intern_free(struct sc_intern *in)
{
  for (size_t i = 0; i < in->count; ++i)
    free(in->entries[i].bytes);
  free(in->entries);
  free(in->slots);
  *in = (struct sc_intern){0};
}
