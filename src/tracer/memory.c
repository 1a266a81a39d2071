/* SPDX-License-Identifier: Apache-2.0
 * The interval set is a treap ordered by address under one mutex. Copies ask it on every call, so each thread keeps
 * its last answers, allocated ranges and gaps alike, and believes them as long as the set's generation stands still:
 * programs that allocate up front and then loop take no lock at all. */
#include "tracer/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"

struct node {
  struct sc_block block;
  struct node *left, *right;
  uint32_t priority;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *root;
static uint32_t seed = 2463534242u;
/* From 1, so that a zeroed cache is stale. Stored under the lock; a reader's acquire pairs with these releases. */
static _Atomic uint64_t generation = 1;

static uint32_t next_priority(void) { /* xorshift: no state of the program's is touched */
  seed ^= seed << 13;
  seed ^= seed >> 17;
  seed ^= seed << 5;
  return seed;
}

static void changed(void) {
  atomic_store_explicit(&generation, atomic_load_explicit(&generation, memory_order_relaxed) + 1, memory_order_release);
}

/* Everything below `key` to *left, the rest to *right, by each block's low end. */
static void split(struct node *tree, uintptr_t key, struct node **left, struct node **right) {
  while (tree != NULL) {
    if (tree->block.low < key) {
      *left = tree;
      left = &tree->right;
      tree = tree->right;
    } else {
      *right = tree;
      right = &tree->left;
      tree = tree->left;
    }
  }
  *left = *right = NULL;
}

static struct node *join(struct node *left, struct node *right) {
  struct node *tree = NULL, **at = &tree;
  while (left != NULL && right != NULL) {
    if (left->priority > right->priority) {
      *at = left;
      at = &left->right;
      left = left->right;
    } else {
      *at = right;
      at = &right->left;
      right = right->left;
    }
  }
  *at = left != NULL ? left : right;
  return tree;
}

static void insert(struct node *node) {
  struct node **at = &root;
  while (*at != NULL && (*at)->priority >= node->priority)
    at = node->block.low < (*at)->block.low ? &(*at)->left : &(*at)->right;
  split(*at, node->block.low, &node->left, &node->right);
  *at = node;
}

/* The last block that starts at or below `address`, and the start of the one after it. */
static struct node *floor_of(uintptr_t address, uintptr_t *next_low) {
  struct node *found = NULL;
  *next_low = UINTPTR_MAX;
  for (struct node *at = root; at != NULL;) {
    if (at->block.low <= address) {
      found = at;
      at = at->right;
    } else {
      *next_low = at->block.low;
      at = at->left;
    }
  }
  return found;
}

static void unlink_node(struct node *node) {
  struct node **at = &root;
  while (*at != node)
    at = node->block.low < (*at)->block.low ? &(*at)->left : &(*at)->right;
  *at = join(node->left, node->right);
}

/* The first block that overlaps [low, high). */
static struct node *overlapping(uintptr_t low, uintptr_t high) {
  uintptr_t next_low;
  struct node *below = floor_of(low, &next_low);
  if (below != NULL && below->block.high > low)
    return below;
  if (next_low >= high)
    return NULL;
  return floor_of(next_low, &next_low);
}

bool sc_memory_add(const struct sc_block *block) {
  if (block->high <= block->low)
    return true;
  struct node *node = malloc(sizeof(*node));
  if (node == NULL)
    return false;
  node->block = *block;
  pthread_mutex_lock(&lock);
  for (struct node *stale; (stale = overlapping(block->low, block->high)) != NULL;) {
    unlink_node(stale);
    free(stale);
  }
  node->priority = next_priority();
  insert(node);
  changed();
  pthread_mutex_unlock(&lock);
  return true;
}

bool sc_memory_take(uintptr_t address, struct sc_block *out) {
  uintptr_t next_low;
  pthread_mutex_lock(&lock);
  struct node *node = floor_of(address, &next_low);
  if (node != NULL && node->block.high <= address)
    node = NULL;
  if (node != NULL) {
    *out = node->block;
    unlink_node(node);
    changed();
  }
  pthread_mutex_unlock(&lock);
  free(node);
  return node != NULL;
}

void sc_memory_forget(uintptr_t low, uintptr_t high) {
  if (high <= low)
    return;
  pthread_mutex_lock(&lock);
  for (struct node *node; (node = overlapping(low, high)) != NULL;) {
    struct sc_block before = node->block, after = node->block;
    before.high = low;
    after.low = high;
    unlink_node(node);
    free(node);
    const struct sc_block *rest[] = { &before, &after };
    for (size_t i = 0; i < 2; i++) {
      struct node *piece = rest[i]->high > rest[i]->low ? malloc(sizeof(*piece)) : NULL;
      if (piece != NULL) {
        piece->block = *rest[i];
        piece->priority = next_priority();
        insert(piece);
      }
    }
  }
  changed();
  pthread_mutex_unlock(&lock);
}

void sc_memory_forget_context(const void *context) {
  if (context == NULL)
    return;
  pthread_mutex_lock(&lock);
  /* Rare (a context goes): walk by address, so that no recursion depends on the set's size. */
  uintptr_t next_low = 0;
  for (;;) {
    struct node *node = next_low == UINTPTR_MAX ? NULL : overlapping(next_low, UINTPTR_MAX);
    if (node == NULL)
      break;
    next_low = node->block.high;
    if (node->block.context == context) {
      unlink_node(node);
      free(node);
    }
  }
  changed();
  pthread_mutex_unlock(&lock);
}

static uint8_t cached_kind(const struct sc_memory_cache *cache, uintptr_t address, bool *found) {
  for (size_t i = 0; i < SC_MEMORY_CACHE; i++)
    if (address >= cache->entry[i].low && address < cache->entry[i].high) {
      *found = true;
      return cache->entry[i].kind;
    }
  *found = false;
  return SC_MEMORY_UNTRACKED;
}

uint8_t sc_memory_kind(struct sc_memory_cache *cache, uintptr_t address) {
  uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
  bool found;
  if (cache->generation != now)
    *cache = (struct sc_memory_cache){ .generation = now };
  uint8_t kind = cached_kind(cache, address, &found);
  if (found)
    return kind;

  uintptr_t low = 0, high;
  pthread_mutex_lock(&lock);
  const struct node *node = floor_of(address, &high);
  if (node != NULL && address < node->block.high) {
    low = node->block.low;
    high = node->block.high;
    kind = node->block.kind;
  } else {
    if (node != NULL)
      low = node->block.high;
    kind = SC_MEMORY_UNTRACKED;
  }
  now = atomic_load_explicit(&generation, memory_order_relaxed);
  pthread_mutex_unlock(&lock);

  if (cache->generation != now)
    *cache = (struct sc_memory_cache){ .generation = now };
  unsigned slot = cache->next++ % SC_MEMORY_CACHE;
  cache->entry[slot].low = low;
  cache->entry[slot].high = high;
  cache->entry[slot].kind = kind;
  return kind;
}

/* ---- handles: few, and asked for rarely -------------------------------------------------------------- */
struct handle {
  struct handle *next;
  uint64_t handle, value;
  enum sc_handle_class kind;
};
#define BUCKETS 256
static struct handle *buckets[BUCKETS];
static _Atomic unsigned handle_count[8]; /* of each class: a class without members is answered without the lock */
static pthread_mutex_t handle_lock = PTHREAD_MUTEX_INITIALIZER;

static struct handle **handle_slot(enum sc_handle_class kind, uint64_t handle) {
  uint64_t hash = (handle + (uint64_t)kind) * 0x9e3779b97f4a7c15u;
  struct handle **at = &buckets[hash >> 56];
  while (*at != NULL && ((*at)->handle != handle || (*at)->kind != kind))
    at = &(*at)->next;
  return at;
}

void sc_handle_set(enum sc_handle_class kind, uint64_t handle, uint64_t value) {
  pthread_mutex_lock(&handle_lock);
  struct handle **at = handle_slot(kind, handle);
  if (*at == NULL && (*at = calloc(1, sizeof(**at))) != NULL) {
    (*at)->handle = handle;
    (*at)->kind = kind;
    atomic_fetch_add_explicit(&handle_count[kind], 1, memory_order_relaxed);
  }
  if (*at != NULL)
    (*at)->value = value;
  pthread_mutex_unlock(&handle_lock);
}

bool sc_handle_get(enum sc_handle_class kind, uint64_t handle, uint64_t *value) {
  if (atomic_load_explicit(&handle_count[kind], memory_order_relaxed) == 0)
    return false;
  pthread_mutex_lock(&handle_lock);
  const struct handle *found = *handle_slot(kind, handle);
  if (found != NULL && value != NULL)
    *value = found->value;
  pthread_mutex_unlock(&handle_lock);
  return found != NULL;
}

void sc_handle_drop(enum sc_handle_class kind, uint64_t handle) {
  if (atomic_load_explicit(&handle_count[kind], memory_order_relaxed) == 0)
    return;
  pthread_mutex_lock(&handle_lock);
  struct handle **at = handle_slot(kind, handle), *gone = *at;
  if (gone != NULL) {
    *at = gone->next;
    atomic_fetch_sub_explicit(&handle_count[kind], 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&handle_lock);
  free(gone);
}

/* ---- a new session ----------------------------------------------------------------------------------- */
static void reset_handles(void) {
  pthread_mutex_lock(&handle_lock);
  for (size_t i = 0; i < BUCKETS; i++)
    while (buckets[i] != NULL) {
      struct handle *gone = buckets[i];
      buckets[i] = gone->next;
      free(gone);
    }
  for (size_t i = 0; i < SC_COUNTOF(handle_count); i++)
    atomic_store_explicit(&handle_count[i], 0, memory_order_relaxed);
  pthread_mutex_unlock(&handle_lock);
}

void sc_memory_reset(void) {
  pthread_mutex_lock(&lock);
  while (root != NULL) {
    struct node *gone = root;
    root = join(gone->left, gone->right);
    free(gone);
  }
  changed();
  pthread_mutex_unlock(&lock);
  reset_handles();
}
