/* SPDX-License-Identifier: Apache-2.0
 * Raw sites to what people see: stacks become frames, sites of the same frames become one, costliest first. */
#include "analysis/engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODULE_IDS 16384u /* module ids that are remembered; traces have at most as many */

struct built {
  struct sc_site site;
  const struct sc_node *node;
  uint64_t key, in_steps, wait_ns, drain_ns;
  struct sc_hist wait, drain;
};

struct builder {
  const struct sc_analysis *analysis;
  struct sc_process *process;
  uint32_t *modules; /* [MODULE_IDS]: index + 1 in process->modules */
  struct built *built;
  size_t count;
  uint64_t *keys; /* by raw site */
};

static uint64_t hash_number(uint64_t hash, uint64_t number) { return sc_hash_bytes(hash, &number, sizeof number); }

/* ---- frames ----------------------------------------------------------------------------------- */

static bool add_python(const struct builder *b, const struct sc_stack *stack, struct sc_site *site)
{
  site->python = sc_calloc_array(stack->python_count, sizeof *site->python);
  if (!site->python)
    return false;
  for (size_t i = 0; i < stack->python_count; ++i) {
    struct sc_stack_frame frame;
    if (!b->analysis->stacks->frame(b->analysis->stack_context, stack->python[i], &frame))
      continue; /* its definition was lost */
    struct sc_frame *out = &site->python[site->python_count++];
    out->file = sc_strdup(frame.file);
    out->function = sc_strdup(frame.function ? frame.function : "?");
    out->line = frame.line;
    out->module = SIZE_MAX;
    if ((frame.file && !out->file) || !out->function)
      return false;
  }
  return true;
}

static char *hexadecimal(const uint8_t *bytes, size_t n)
{
  struct sc_buf text = {0};
  for (size_t i = 0; i < n; ++i)
    sc_buf_printf(&text, "%02x", bytes[i]);
  if (text.failed) {
    sc_buf_free(&text);
    return NULL;
  }
  return text.data;
}

/* False: out of memory. *index is SIZE_MAX for a module that is not defined. */
static bool module_index(struct builder *b, uint32_t id, size_t *index)
{
  struct sc_module module;
  *index = SIZE_MAX;
  if (id >= MODULE_IDS || !b->analysis->stacks->module(b->analysis->stack_context, id, &module))
    return true;
  if (!b->modules[id]) {
    struct sc_process *p = b->process;
    struct sc_module_findings *out = sc_array_push(&p->modules, &p->module_count, &p->module_cap, sizeof *out);
    if (!out)
      return false;
    out->path = sc_strdup(module.path ? module.path : "?");
    out->build_id = module.build_id_length ? hexadecimal(module.build_id, module.build_id_length) : NULL;
    if (!out->path || (module.build_id_length && !out->build_id))
      return false;
    b->modules[id] = (uint32_t)p->module_count;
  }
  *index = b->modules[id] - 1;
  return true;
}

static const char *base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_of_cuda(const char *path)
{
  static const char *const names[] = {"libcupti.so", "libcuda.so", "libcudart.so"};
  for (size_t i = 0; i < SC_COUNTOF(names); ++i) {
    if (strncmp(base_name(path), names[i], strlen(names[i])) == 0)
      return true;
  }
  return false;
}

/* Frames that the trace itself names. */
static bool add_named(const struct builder *b, const struct sc_stack *stack, struct sc_site *site)
{
  for (size_t i = 0; i < stack->native_count; ++i) {
    struct sc_stack_frame frame;
    if (!b->analysis->stacks->native(b->analysis->stack_context, stack->native[i].offset, &frame))
      continue;
    if (frame.file && site->native_count == 0 && is_of_cuda(frame.file))
      continue;
    struct sc_frame *out = &site->native[site->native_count++];
    out->file = sc_strdup(frame.file);
    out->function = sc_strdup(frame.function ? frame.function : "?");
    out->line = frame.line;
    out->module = SIZE_MAX;
    if ((frame.file && !out->file) || !out->function)
      return false;
  }
  return true;
}

/* CUDA's own frames, which every stack begins with, tell nothing and are left out. */
static bool add_native(struct builder *b, const struct sc_stack *stack, struct sc_site *site)
{
  site->native = sc_calloc_array(stack->native_count, sizeof *site->native);
  if (!site->native)
    return false;
  if (b->analysis->stacks->native)
    return add_named(b, stack, site);
  for (size_t i = 0; i < stack->native_count; ++i) {
    const struct sc_stack_address *address = &stack->native[i];
    size_t module;
    if (!module_index(b, address->module, &module))
      return false;
    const char *path = module == SIZE_MAX ? NULL : b->process->modules[module].path;
    if (path && site->native_count == 0 && is_of_cuda(path))
      continue;
    struct sc_frame *out = &site->native[site->native_count++];
    out->module = module;
    out->offset = address->offset;
    out->function = sc_asprintf("%s+0x%" PRIx64, path ? base_name(path) : "?", address->offset);
    if (!out->function)
      return false;
  }
  return true;
}

/* ---- one site ---------------------------------------------------------------------------------- */

static char *path_of(const struct sc_node *node)
{
  const struct sc_node *chain[SC_RANGE_DEPTH + 2];
  size_t count = 0;
  struct sc_buf path = {0};
  for (; node && node->parent && count < SC_COUNTOF(chain); node = node->parent)
    chain[count++] = node;
  sc_buf_puts(&path, "");
  while (count) {
    sc_buf_puts(&path, chain[--count]->name);
    if (count)
      sc_buf_puts(&path, "/");
  }
  if (path.failed) {
    sc_buf_free(&path);
    return NULL;
  }
  return path.data;
}

static char *api_name(const struct sc_analysis *a, uint32_t id)
{
  struct sc_call_name parsed;
  enum sc_op op;
  const char *name = a->names ? a->names[id] : NULL;
  if (!name && !(a->api_of && a->api_of(a->context, id, &op, &name)))
    return sc_strdup("(other calls)"); /* of the sites that were gathered */
  sc_call_parse_name(name, &parsed);
  return sc_strdup(parsed.base);
}

static const char *memory_name(const struct raw_site *raw)
{
  if (raw->direction == SC_DIRECTION_NONE && raw->memory == SC_MEMORY_UNKNOWN)
    return NULL;
  return sc_memory_name(raw->memory);
}

/* What makes two raw sites one: where they are, and what they do. */
static uint64_t key_of(const struct builder *b, const struct built *built)
{
  const struct sc_site *site = &built->site;
  uint64_t hash = sc_hash_text(SC_HASH_SEED, site->api);
  hash = sc_hash_text(sc_hash_text(hash, site->direction), site->memory);
  hash = hash_number(hash_number(hash, site->kind), site->cls);
  for (size_t i = 0; i < site->python_count; ++i)
    hash = hash_number(sc_hash_text(sc_hash_text(hash, site->python[i].file), site->python[i].function),
                       site->python[i].line);
  if (site->python_count)
    return hash;
  for (size_t i = 0; i < site->native_count; ++i) {
    size_t module = site->native[i].module;
    hash = sc_hash_text(hash, module == SIZE_MAX ? NULL : b->process->modules[module].path);
    hash = hash_number(hash, site->native[i].offset);
    if (module == SIZE_MAX)
      hash = sc_hash_text(sc_hash_text(hash, site->native[i].file), site->native[i].function);
  }
  return site->native_count ? hash : sc_hash_text(hash, site->range);
}

static bool build(struct builder *b, struct raw_site *raw)
{
  const struct sc_analysis *a = b->analysis;
  struct built *out = &b->built[b->count++];
  struct sc_site *site = &out->site;
  struct sc_stack stack;
  const char *memory = memory_name(raw), *direction = sc_direction_name(raw->direction);
  *site = (struct sc_site){.kind = (enum sc_site_kind)raw->kind,
                           .cls = (enum sc_class)raw->cls,
                           .count = raw->count,
                           .bytes = raw->bytes,
                           .read_backs = raw->read_backs,
                           .blocking_uploads = raw->uploads,
                           .idle_syncs = raw->idle,
                           .merged = raw->merged,
                           .per_step = NAN,
                           .wait_p50_us = NAN,
                           .wait_total_us = NAN,
                           .drain_gap_total_us = NAN,
                           .drain_gap_p50_us = NAN};
  out->node = raw->node;
  out->in_steps = b->process->step_source == SC_STEPS_RANGES ? raw->in_steps : raw->in_marked;
  out->wait_ns = raw->wait_ns;
  out->wait = raw->wait;
  raw->wait = (struct sc_hist){0};
  out->drain_ns = raw->drain_ns;
  out->drain = raw->drain;
  raw->drain = (struct sc_hist){0};
  site->api = api_name(a, raw->api);
  site->memory = sc_strdup(memory);
  site->direction = sc_strdup(direction);
  site->range = path_of(raw->node);
  if (!site->api || !site->range || (memory && !site->memory) || (direction && !site->direction))
    return false;
  if (raw->stack && a->stacks->stack(a->stack_context, raw->stack, &stack)) {
    if (stack.python_count && !add_python(b, &stack, site))
      return false;
    if (stack.native_count && !add_native(b, &stack, site))
      return false;
  }
  out->key = key_of(b, out);
  b->keys[out - b->built] = out->key;
  return true;
}

/* ---- all of them -------------------------------------------------------------------------------- */

static int by_key(const void *left, const void *right)
{
  const struct built *a = left, *b = right;
  if (a->key != b->key)
    return a->key < b->key ? -1 : 1;
  return (a->site.count < b->site.count) - (a->site.count > b->site.count); /* the frames of the busiest stand for all */
}

static void take_in(struct built *into, struct built *from)
{
  into->site.count += from->site.count;
  into->site.read_backs += from->site.read_backs;
  into->site.blocking_uploads += from->site.blocking_uploads;
  into->site.idle_syncs += from->site.idle_syncs;
  into->site.merged += from->site.merged;
  if (from->site.bytes > into->site.bytes)
    into->site.bytes = from->site.bytes;
  into->in_steps += from->in_steps;
  into->wait_ns += from->wait_ns;
  into->node = sc_tree_common(into->node, from->node);
  sc_hist_merge(&into->wait, &from->wait);
  sc_hist_free(&from->wait);
  into->drain_ns += from->drain_ns;
  sc_hist_merge(&into->drain, &from->drain);
  sc_hist_free(&from->drain);
  sc_site_free(&from->site);
  from->site = (struct sc_site){0};
}

static void merge_equal(struct builder *b)
{
  size_t kept = 0;
  qsort(b->built, b->count, sizeof *b->built, by_key);
  for (size_t i = 0; i < b->count; ++i) {
    if (kept && b->built[kept - 1].key == b->built[i].key)
      take_in(&b->built[kept - 1], &b->built[i]);
    else
      b->built[kept++] = b->built[i];
  }
  b->count = kept;
}

/* Last: what the merged ones amount to. The site then belongs to the process. */
static bool emit(struct builder *b, struct built *built)
{
  struct sc_process *p = b->process;
  struct sc_site *site = &built->site;
  char *range = path_of(built->node);
  if (!range)
    return false;
  free(site->range);
  site->range = *range ? range : NULL;
  if (!*range)
    free(range);
  if (site->kind != SC_SITE_REFUSED) {
    site->wait_total_us = (double)built->wait_ns / 1e3;
    site->wait_p50_us = sc_hist_quantile(&built->wait, 0.5) / 1e3;
  }
  if (built->drain.count) {
    site->drain_gap_total_us = (double)built->drain_ns / 1e3;
    site->drain_gap_p50_us = sc_hist_quantile(&built->drain, 0.5) / 1e3;
  }
  if (p->has_steps && p->steps > p->warmup)
    site->per_step = (double)built->in_steps / (double)(p->steps - p->warmup);
  struct sc_site *out = sc_array_push(&p->sites, &p->site_count, &p->site_cap, sizeof *out);
  if (!out)
    return false;
  *out = *site;
  out->serial = (uint32_t)(built - b->built);
  *site = (struct sc_site){0};
  return true;
}

/* The serial of each raw site's site: the merged ones are sorted by key. NULL: out of memory. */
static uint32_t *serials(const struct builder *b, size_t raw_count)
{
  uint32_t *out = sc_calloc_array(raw_count, sizeof *out);
  for (size_t i = 0; out && i < raw_count; ++i) {
    size_t low = 0, high = b->count;
    while (high - low > 1) {
      size_t middle = low + (high - low) / 2;
      *(b->built[middle].key <= b->keys[i] ? &low : &high) = middle;
    }
    out[i] = (uint32_t)low;
  }
  return out;
}

bool sc_sites_finish(struct sc_analysis *a, struct sc_process *process, uint32_t **serial_of)
{
  struct builder b = {.analysis = a, .process = process};
  bool ok = true;
  if (a->sites.count == 0)
    return true;
  b.keys = sc_calloc_array(a->sites.count, sizeof *b.keys);
  b.modules = sc_calloc_array(MODULE_IDS, sizeof *b.modules);
  b.built = sc_calloc_array(a->sites.count, sizeof *b.built);
  ok = b.modules && b.built && b.keys;
  for (size_t i = 0; i < a->sites.count && ok; ++i)
    ok = build(&b, &a->sites.sites[i]);
  if (ok)
    merge_equal(&b);
  for (size_t i = 0; i < b.count && ok; ++i)
    ok = emit(&b, &b.built[i]);
  if (ok && serial_of)
    ok = (*serial_of = serials(&b, a->sites.count)) != NULL;
  ok = ok && sc_sites_describe(process);
  for (size_t i = 0; b.built && i < b.count; ++i) {
    sc_hist_free(&b.built[i].wait);
    sc_hist_free(&b.built[i].drain);
    sc_site_free(&b.built[i].site);
  }
  free(b.built);
  free(b.keys);
  free(b.modules);
  return ok;
}
