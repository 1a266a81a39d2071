/* SPDX-License-Identifier: Apache-2.0
 * The tree of range paths of one process. A path is made of push/pop ranges; a start/end range is a leaf under the
 * push/pop range in which it was started. What the limits shut out is gathered in one child "(other ranges)" of the
 * range it would have been under, so that the inclusive counts above stay exact. */
#include "analysis/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODULES_FACTOR 16 /* so many times the limit of other ranges */

enum { SLOT_IDS_PUSH, SLOT_IDS_SPANNING, SLOT_TEXT_PUSH, SLOT_TEXT_SPANNING };

static const char *level_name(enum sc_level level) /* NULL for SC_LEVEL_NONE */
{
  static const char *const names[] = {NULL, SC_LEVEL_WORDS, "allow"};
  return names[level];
}

void sc_tree_init(struct sc_tree *tree, const struct sc_analysis_options *options, sc_text_of *text_of,
                  const void *context)
{
  *tree = (struct sc_tree){.text_of = text_of, .context = context};
  if (options)
    tree->options = *options;
  tree->limit = tree->options.max_ranges ? tree->options.max_ranges : SC_RANGES_DEFAULT;
}

void sc_tree_free(struct sc_tree *tree)
{
  free(tree->range_of);
  struct sc_node *node = tree->root.first_child;
  while (node) { /* depth first without recursion: go down, free on the way up */
    if (node->first_child) {
      struct sc_node *down = node->first_child;
      node->first_child = NULL;
      node = down;
      continue;
    }
    struct sc_node *next = node->next ? node->next : node->parent == &tree->root ? NULL : node->parent;
    sc_spread_free(&node->per_occurrence);
    free(node->name);
    free(node->domain);
    free(node);
    node = next;
  }
  sc_spread_free(&tree->root.per_occurrence); /* it stands in for nodes that memory was out for */
  free(tree->slots);
  *tree = (struct sc_tree){0};
}

/* ---- lookup ------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

static struct sc_tree_slot *find_slot(struct sc_tree_slot *slots, size_t count, const struct sc_node *parent,
                                      uint64_t key, uint32_t kind)
{
  size_t i = mix(key ^ mix((uintptr_t)parent + kind)) & (count - 1);
  while (slots[i].node && !(slots[i].parent == parent && slots[i].key == key && slots[i].kind == kind))
    i = (i + 1) & (count - 1);
  return &slots[i];
}

static struct sc_node *lookup(const struct sc_tree *tree, const struct sc_node *parent, uint64_t key, uint32_t kind)
{
  return tree->slot_count ? find_slot(tree->slots, tree->slot_count, parent, key, kind)->node : NULL;
}

static bool grow_slots(struct sc_tree *tree)
{
  size_t count = tree->slot_count ? tree->slot_count * 2 : 256;
  struct sc_tree_slot *slots = sc_calloc_array(count, sizeof *slots);
  if (!slots)
    return false;
  for (size_t i = 0; i < tree->slot_count; ++i) {
    const struct sc_tree_slot *old = &tree->slots[i];
    if (old->node)
      *find_slot(slots, count, old->parent, old->key, old->kind) = *old;
  }
  free(tree->slots);
  tree->slots = slots;
  tree->slot_count = count;
  return true;
}

/* Many ids may name the same text (a program that formats its names): beyond this the text is looked up each time. */
static bool may_remember(const struct sc_tree *tree) { return tree->slot_used / 8 < tree->limit; }

static void remember(struct sc_tree *tree, const struct sc_node *parent, uint64_t key, uint32_t kind,
                     struct sc_node *node)
{
  if (tree->slot_used * 4 >= tree->slot_count * 3 && !grow_slots(tree)) {
    tree->failed = true;
    return;
  }
  *find_slot(tree->slots, tree->slot_count, parent, key, kind) =
      (struct sc_tree_slot){.parent = parent, .key = key, .kind = kind, .node = node};
  ++tree->slot_used;
}

/* ---- levels -------------------------------------------------------------------------------- */

static bool is_below(const struct sc_node *parent, enum sc_level level)
{
  for (; parent; parent = parent->parent) {
    if (parent->level == level)
      return true;
  }
  return false;
}

static enum sc_level level_named(const char *name)
{
  for (int level = SC_LEVEL_RUN; level <= SC_LEVEL_OP; ++level) {
    if (strcmp(level_name((enum sc_level)level), name) == 0)
      return (enum sc_level)level;
  }
  return SC_LEVEL_NONE;
}

bool sc_analysis_has_level(const char *name) { return level_named(name) != SC_LEVEL_NONE; }

/* "model.layers.3" is a layer, "mlp.experts.7" an expert: the names that lists of modules have in most models. */
static enum sc_level level_of_module(const char *name)
{
  static const struct {
    const char *list;
    enum sc_level level;
  } lists[] = {{"layers", SC_LEVEL_LAYER}, {"layer", SC_LEVEL_LAYER}, {"h", SC_LEVEL_LAYER},
               {"blocks", SC_LEVEL_LAYER}, {"block", SC_LEVEL_LAYER}, {"experts", SC_LEVEL_EXPERT}};
  const char *number = strrchr(name, '.');
  if (!number || number[1] == '\0' || number[1 + strspn(number + 1, "0123456789")] != '\0')
    return SC_LEVEL_NONE;
  const char *list = number;
  while (list > name && list[-1] != '.')
    --list;
  for (size_t i = 0; i < SC_COUNTOF(lists); ++i) {
    if ((size_t)(number - list) == strlen(lists[i].list) && strncmp(list, lists[i].list, strlen(lists[i].list)) == 0)
      return lists[i].level;
  }
  return SC_LEVEL_NONE;
}

static enum sc_level level_of(const struct sc_tree *tree, const struct sc_node *parent, const char *domain,
                              const char *name)
{
  for (size_t i = 0; i < tree->options.level_count; ++i) {
    if (sc_match(tree->options.levels[i].pattern, name))
      return level_named(tree->options.levels[i].level);
  }
  if (strcmp(name, "synccount.step") == 0)
    return SC_LEVEL_STEP;
  if (sc_starts_with(name, "synccount.layer:"))
    return SC_LEVEL_LAYER;
  if (sc_starts_with(name, "synccount.allow:"))
    return SC_LEVEL_ALLOW;
  if (strcmp(domain, SC_MODULE_DOMAIN) == 0)
    return level_of_module(name);
  if (strcmp(domain, SC_DOMAIN_NAME) != 0)
    return SC_LEVEL_NONE;
  if (sc_starts_with(name, "run:"))
    return SC_LEVEL_RUN;
  if (strcmp(name, "forward") == 0)
    return SC_LEVEL_STEP;
  if (sc_starts_with(name, "layer:"))
    return SC_LEVEL_LAYER;
  if (sc_starts_with(name, "expert:"))
    return SC_LEVEL_EXPERT;
  /* Every other name of the domain inside a layer is an op: any, nonzero, mask-index, bounds, and what comes. */
  return is_below(parent, SC_LEVEL_LAYER) ? SC_LEVEL_OP : SC_LEVEL_NONE;
}

/* ---- nodes --------------------------------------------------------------------------------- */

static struct sc_node *add_node(struct sc_tree *tree, struct sc_node *parent, const char *domain, const char *name,
                                size_t length)
{
  struct sc_node *node = calloc(1, sizeof *node);
  if (node) {
    node->name = sc_strndup(name, length < SC_RANGE_NAME_MAX ? length : SC_RANGE_NAME_MAX);
    node->domain = sc_strndup(domain, SC_RANGE_NAME_MAX);
  }
  if (!node || !node->name || !node->domain) {
    if (node) {
      free(node->name);
      free(node->domain);
      free(node);
    }
    tree->failed = true;
    return NULL;
  }
  node->parent = parent;
  node->depth = parent->depth + 1;
  if (parent->last_child)
    parent->last_child->next = node;
  else
    parent->first_child = node;
  parent->last_child = node;
  node->serial = (uint32_t)tree->count++;
  return node;
}

struct sc_node *sc_tree_backward(struct sc_tree *tree)
{
  if (!tree->backward)
    tree->backward = add_node(tree, &tree->root, SC_MODULE_DOMAIN, "backward", strlen("backward"));
  return tree->backward ? tree->backward : &tree->root;
}

/* What is gathered inside what was gathered already stays there. */
static struct sc_node *other_child(struct sc_tree *tree, struct sc_node *parent, bool spanning)
{
  if (parent->parent && parent->parent->other[spanning] == parent)
    return parent;
  if (!parent->other[spanning]) {
    parent->other[spanning] = add_node(tree, parent, "", SC_RANGES_OTHER, strlen(SC_RANGES_OTHER));
    if (parent->other[spanning]) {
      parent->other[spanning]->spanning = spanning;
      parent->other[spanning]->in_step = parent->in_step;
    }
  }
  return parent->other[spanning] ? parent->other[spanning] : parent;
}

static struct sc_node *child_by_text(struct sc_tree *tree, struct sc_node *parent, bool spanning, uint32_t domain_id,
                                     uint32_t name_id)
{
  size_t length = 0, domain_length = 0;
  const char *name = tree->text_of(tree->context, name_id, &length);
  const char *domain = domain_id ? tree->text_of(tree->context, domain_id, &domain_length) : "";
  if (!name) { /* its definition was lost */
    name = "(unknown name)";
    length = strlen(name);
  }
  if (!domain) {
    domain = "(unknown domain)";
    domain_length = strlen(domain);
  }
  uint64_t hash = sc_hash_bytes(sc_hash_bytes(SC_HASH_SEED, domain, domain_length) ^ 0x2f, name, length);
  uint32_t kind = spanning ? SLOT_TEXT_SPANNING : SLOT_TEXT_PUSH;
  struct sc_node *node = lookup(tree, parent, hash, kind);
  if (node)
    return node;
  /* A model has more modules than people write ranges, and their number does not grow with time. */
  bool module = strcmp(domain, SC_MODULE_DOMAIN) == 0;
  bool deep = parent->depth >= SC_RANGE_DEPTH;
  if (deep || (module ? tree->module_count / MODULES_FACTOR : tree->count - tree->module_count) >= tree->limit) {
    ++*(deep ? &tree->too_deep : &tree->gathered);
    return other_child(tree, parent, spanning);
  }
  node = add_node(tree, parent, domain, name, length);
  if (!node)
    return parent;
  tree->module_count += module;
  node->spanning = spanning;
  enum sc_level level = level_of(tree, parent, node->domain, node->name);
  node->level = level != SC_LEVEL_NONE && is_below(parent, level) ? SC_LEVEL_NONE : level;
  node->starts = tree->options.from && sc_match(tree->options.from, node->name);
  node->in_step = parent->in_step || level == SC_LEVEL_STEP;
  remember(tree, parent, hash, kind, node);
  return node;
}

struct sc_node *sc_tree_child(struct sc_tree *tree, struct sc_node *parent, bool spanning, uint32_t domain,
                              uint32_t name)
{
  uint64_t ids = (uint64_t)domain << 32 | name;
  if (parent->hint[spanning].node && parent->hint[spanning].ids == ids)
    return parent->hint[spanning].node;
  uint32_t kind = spanning ? SLOT_IDS_SPANNING : SLOT_IDS_PUSH;
  struct sc_node *node = lookup(tree, parent, ids, kind);
  if (!node) {
    node = child_by_text(tree, parent, spanning, domain, name);
    if (node == parent || node == parent->other[spanning])
      return node; /* counted each time, so not remembered */
    if (may_remember(tree))
      remember(tree, parent, ids, kind, node);
  }
  parent->hint[spanning].ids = ids;
  parent->hint[spanning].node = node;
  return node;
}

const struct sc_node *sc_tree_common(const struct sc_node *a, const struct sc_node *b)
{
  while (a != b) {
    if (a->depth >= b->depth)
      a = a->parent;
    else
      b = b->parent;
  }
  return a;
}

/* ---- out ----------------------------------------------------------------------------------- */

/* Never open while something was counted. */
static bool is_unseen(const struct sc_node *node)
{
  return node->occurrences == 0 && node->total.api_calls == 0 && node->total.submissions == 0;
}

static bool emit(const struct sc_tree *tree, const struct sc_node *node, const char *prefix, struct sc_process *process)
{
  if (is_unseen(node)) /* neither was what is below it */
    return true;
  if (tree->range_of)
    tree->range_of[node->serial] = (uint32_t)process->range_count;
  struct sc_range_findings *range =
      sc_array_push(&process->ranges, &process->range_count, &process->range_cap, sizeof *range);
  if (!range)
    return false;
  const char *level = level_name(node->level);
  range->path = *prefix ? sc_asprintf("%s/%s", prefix, node->name) : sc_strdup(node->name);
  range->name = sc_strdup(node->name);
  range->domain = sc_strdup(node->domain);
  range->level = sc_strdup(level);
  range->depth = node->depth - 1;
  range->occurrences = node->occurrences;
  range->unfinished = node->unfinished;
  range->spanning = node->spanning;
  range->total = node->total;
  range->self = node->self;
  range->min = node->per_occurrence.min;
  range->max = node->per_occurrence.max;
  range->median = sc_spread_median(&node->per_occurrence);
  if (!range->path || !range->name || !range->domain || (level && !range->level))
    return false;
  char *path = sc_strdup(range->path); /* the array may move while the children are added */
  bool ok = path != NULL;
  for (const struct sc_node *child = node->first_child; child && ok; child = child->next)
    ok = emit(tree, child, path, process);
  free(path);
  return ok;
}

/* Depth is limited (SC_RANGE_DEPTH and one gathering child), so recursion is. */
static void add_up(struct sc_node *node)
{
  node->total = node->self;
  for (struct sc_node *child = node->first_child; child; child = child->next) {
    add_up(child);
    if (!child->spanning) /* its calls are in the push/pop ranges' own counts already */
      sc_counts_add(&node->total, &child->total);
  }
}

bool sc_tree_finish(struct sc_tree *tree, struct sc_process *process)
{
  add_up(&tree->root);
  for (const struct sc_node *child = tree->root.first_child; child; child = child->next) {
    if (!emit(tree, child, "", process))
      return false;
  }
  return !tree->failed;
}
