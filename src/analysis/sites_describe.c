/* SPDX-License-Identifier: Apache-2.0
 * What a site looks like and what to do about it, its id, and the order of sites. All of it follows from the findings
 * alone, so it can be done again once symbols have given native frames their names. */
#include "analysis/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCALAR_BYTES 16 /* a read-back of no more is one value */

const char *sc_site_kind_name(enum sc_site_kind kind)
{
  static const char *const names[] = {"sync", "poll", "refused"};
  return (unsigned)kind < SC_COUNTOF(names) ? names[kind] : "unknown";
}

/* ---- files -------------------------------------------------------------------------------------- */

static const char *after(const char *text, const char *part)
{
  const char *found = NULL;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
    found = at + strlen(part);
  return found;
}

/* Behind "/lib/python3.12/", or NULL. */
static const char *in_library(const char *file)
{
  const char *version = after(file, "/lib/python3.");
  const char *slash = version ? strchr(version, '/') : NULL;
  return slash ? slash + 1 : NULL;
}

/* PyTorch's profiler leaves the folder of installed packages out: its own files are "torch/...". */
static const char *in_packages(const char *file)
{
  if (strncmp(file, "torch/", 6) == 0)
    return file;
  const char *site = after(file, "/site-packages/");
  return site ? site : after(file, "/dist-packages/");
}

const char *sc_process_file(const struct sc_process *process, const char *file)
{
  if (!file)
    return NULL;
  const char *packages = in_packages(file), *library = in_library(file);
  if (packages || library)
    return packages ? packages : library;
  size_t length = process->cwd ? strlen(process->cwd) : 0;
  if (length > 1 && strncmp(file, process->cwd, length) == 0 && file[length] == '/')
    return file + length + 1;
  return file;
}

const struct sc_frame *sc_site_frame(const struct sc_site *site)
{
  for (size_t i = 0; i < site->python_count; ++i) {
    const char *file = site->python[i].file;
    if (file && strncmp(file, "<frozen ", 8) != 0 && !in_packages(file) && !in_library(file))
      return &site->python[i];
  }
  if (site->python_count)
    return &site->python[0];
  return site->native_count ? &site->native[0] : NULL;
}

/* ---- patterns ----------------------------------------------------------------------------------- */

struct pattern {
  const char *name, *remedy;
};

static bool native_has(const struct sc_site *site, const char *part)
{
  for (size_t i = 0; i < site->native_count; ++i) {
    if (site->native[i].function && strstr(site->native[i].function, part))
      return true;
  }
  return false;
}

static bool most(const struct sc_site *site, uint64_t of) { return of * 2 > site->count; }

static struct pattern scalar_pattern(const struct sc_site *site)
{
  /* bool(tensor) goes through is_nonzero: the innermost call decides. */
  if (native_has(site, "nonzero") && !native_has(site, "_local_scalar_dense"))
    return (struct pattern){"nonzero, boolean-mask index",
                            "The size of the result is read back. Use torch.where, a masked operation or "
                            "sizes that are known in advance."};
  return (struct pattern){"scalar read-back",
                          "One value is brought to the host (.item(), bool(), if tensor:). Keep the decision on the "
                          "device, or gather the values and read them once."};
}

static struct pattern read_back_pattern(const struct sc_site *site)
{
  if (site->bytes <= SCALAR_BYTES)
    return scalar_pattern(site);
  return (struct pattern){"read-back",
                          "The host waits for a copy at once. Copy into pinned memory without waiting and wait where "
                          "the values are needed."};
}

static struct pattern pageable_pattern(const struct sc_site *site)
{
  if (site->direction && strcmp(site->direction, "host-to-host") == 0)
    return (struct pattern){"pageable async copy", "An async copy to pageable memory blocks. Pin the destination."};
  if (site->bytes <= SCALAR_BYTES && most(site, site->read_backs) && native_has(site, "_local_scalar_dense"))
    return scalar_pattern(site); /* older PyTorch reads the value of .item() into a variable on its stack */
  if (most(site, site->merged))
    return (struct pattern){".tolist(), .cpu()",
                            "The values are copied to pageable memory and waited for. Copy once into pinned memory "
                            "with non_blocking=True, or do without them on the host."};
  return (struct pattern){"pageable async copy",
                          "An async copy to pageable memory blocks until it is done. Pin the destination "
                          "(pin_memory, cudaHostAlloc)."};
}

static bool api_is(const struct sc_site *site, const char *part) { return strstr(site->api, part) != NULL; }

static struct pattern implicit_pattern(const struct sc_site *site)
{
  if (api_is(site, "Unregister"))
    return (struct pattern){"cudaHostUnregister", "It waits for the whole device. Keep the memory registered."};
  if (api_is(site, "FreeHost"))
    return (struct pattern){"pinned memory freed",
                            "It waits for the whole device. Keep pinned buffers and use them again."};
  return (struct pattern){"cudaFree, allocator",
                          "It waits for the whole device. Use a caching allocator or cudaFreeAsync; in PyTorch, an "
                          "allocator that runs out frees its cache (empty_cache, retries after out of memory)."};
}

static struct pattern copy_pattern(const struct sc_site *site)
{
  if (most(site, site->read_backs))
    return site->bytes <= SCALAR_BYTES ? scalar_pattern(site) : read_back_pattern(site);
  if (most(site, site->blocking_uploads))
    return (struct pattern){"blocking upload", "Upload from pinned memory with an async copy (non_blocking=True)."};
  if (api_is(site, "emset"))
    return (struct pattern){"memset of host memory", "Set host memory on the host, or use an async memset."};
  return (struct pattern){"blocking copy", "Use the async form of the copy, and pinned memory on the host's side."};
}

static struct pattern explicit_pattern(const struct sc_site *site)
{
  bool device =
      api_is(site, "DeviceSynchronize") || api_is(site, "CtxSynchronize") || api_is(site, "ThreadSynchronize");
  if (most(site, site->idle_syncs))
    return (struct pattern){"nothing outstanding",
                            "Nothing was submitted on this thread since the last synchronise: leave this one out."};
  if (device)
    return (struct pattern){"device-wide synchronise", "It waits for every stream. Wait for one stream or event."};
  if (api_is(site, "EventSynchronize"))
    return (struct pattern){"event wait",
                            "Let the device wait instead (cudaStreamWaitEvent), or wait later, when it is done."};
  if (most(site, site->read_backs))
    return read_back_pattern(site);
  if (most(site, site->blocking_uploads))
    return (struct pattern){"blocking upload",
                            "The host waits for an upload. Use pinned memory and do not wait "
                            "(.to(device, non_blocking=True))."};
  return (struct pattern){"stream synchronise",
                          "Wait for an event that is recorded right after what is needed, or later."};
}

static struct pattern pattern_of(const struct sc_site *site)
{
  if (site->kind == SC_SITE_REFUSED)
    return (struct pattern){"sync while a stream captures",
                            "A capture allows no wait. Do it before the capture begins or after it ends."};
  if (site->kind == SC_SITE_POLL)
    return (struct pattern){"poll loop",
                            "The host asks again and again. Wait once (cudaEventSynchronize), or let the device order "
                            "the work (cudaStreamWaitEvent)."};
  switch (site->cls) {
  case SC_CLASS_EXPLICIT: return explicit_pattern(site);
  case SC_CLASS_COPY: return copy_pattern(site);
  case SC_CLASS_PAGEABLE: return pageable_pattern(site);
  default: return implicit_pattern(site);
  }
}

static bool set_text(char **place, const char *text)
{
  char *copy = sc_strdup(text);
  if (!copy)
    return false;
  free(*place);
  *place = copy;
  return true;
}

/* ---- ids: file, function, call, class, and which of those that have all these in common ---------------- */

struct entry {
  struct sc_site *site;
  const struct sc_frame *frame;
  uint64_t base;
};

static uint64_t base_of(const struct sc_process *process, const struct entry *entry)
{
  const struct sc_site *site = entry->site;
  uint64_t hash = sc_hash_text(SC_HASH_SEED, entry->frame ? sc_process_file(process, entry->frame->file) : "");
  hash = sc_hash_text(hash, entry->frame ? entry->frame->function : site->range);
  hash = sc_hash_text(hash, site->api);
  return sc_hash_text(hash, site->kind == SC_SITE_SYNC ? sc_class_name(site->cls) : sc_site_kind_name(site->kind));
}

static int compare_texts(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : ""); }

static int compare_frames(const struct sc_frame *a, size_t a_count, const struct sc_frame *b, size_t b_count)
{
  for (size_t i = 0; i < a_count && i < b_count; ++i) {
    int order = compare_texts(a[i].function, b[i].function);
    if (order == 0 && a[i].line != b[i].line)
      order = a[i].line < b[i].line ? -1 : 1;
    if (order == 0)
      order = compare_texts(a[i].file, b[i].file);
    if (order == 0 && a[i].offset != b[i].offset)
      order = a[i].offset < b[i].offset ? -1 : 1;
    if (order)
      return order;
  }
  return (a_count > b_count) - (a_count < b_count);
}

/* Equal bases together, in the order of their lines: the first, second... of its function. */
static int by_place(const void *left, const void *right)
{
  const struct entry *a = left, *b = right;
  if (a->base != b->base)
    return a->base < b->base ? -1 : 1;
  uint64_t a_line = a->frame ? a->frame->line : 0, b_line = b->frame ? b->frame->line : 0;
  if (a_line != b_line)
    return a_line < b_line ? -1 : 1;
  int order = compare_frames(a->site->python, a->site->python_count, b->site->python, b->site->python_count);
  if (order == 0)
    order = compare_texts(a->site->direction, b->site->direction);
  if (order == 0)
    order = compare_texts(a->site->memory, b->site->memory);
  if (order == 0)
    order = compare_frames(a->site->native, a->site->native_count, b->site->native, b->site->native_count);
  return order ? order : compare_texts(a->site->range, b->site->range);
}

static bool name_sites(struct sc_process *process)
{
  struct entry *entries = sc_calloc_array(process->site_count, sizeof *entries);
  bool ok = entries != NULL;
  for (size_t i = 0; i < process->site_count && ok; ++i) {
    entries[i].site = &process->sites[i];
    entries[i].frame = sc_site_frame(&process->sites[i]);
    entries[i].base = base_of(process, &entries[i]);
  }
  if (ok)
    qsort(entries, process->site_count, sizeof *entries, by_place);
  for (size_t i = 0, ordinal = 0; i < process->site_count && ok; ++i) {
    ordinal = i && entries[i].base == entries[i - 1].base ? ordinal + 1 : 0;
    uint64_t id = (entries[i].base ^ ordinal) * 0x9fb21c651e98df25u;
    char *text = sc_asprintf("%016" PRIx64, id ^ id >> 32);
    ok = text != NULL;
    if (ok) {
      free(entries[i].site->id);
      entries[i].site->id = text;
    }
  }
  free(entries);
  return ok;
}

/* ---- order --------------------------------------------------------------------------------------- */

static double cost_of(const struct sc_site *site) { return isnan(site->wait_total_us) ? 0 : site->wait_total_us; }

static int by_count(const void *left, const void *right)
{
  const struct sc_site *a = left, *b = right;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  if (a->count != b->count)
    return a->count > b->count ? -1 : 1;
  return strcmp(a->id, b->id);
}

static int by_cost(const void *left, const void *right)
{
  const struct sc_site *a = left, *b = right;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  if (cost_of(a) != cost_of(b))
    return cost_of(a) > cost_of(b) ? -1 : 1;
  return by_count(left, right);
}

bool sc_sites_describe(struct sc_process *process)
{
  if (process->site_count == 0)
    return true;
  for (size_t i = 0; i < process->site_count; ++i) {
    struct pattern pattern = pattern_of(&process->sites[i]);
    if (!set_text(&process->sites[i].pattern, pattern.name) || !set_text(&process->sites[i].remedy, pattern.remedy))
      return false;
  }
  if (!name_sites(process))
    return false;
  /* Waits on the simulated device are no times. */
  qsort(process->sites, process->site_count, sizeof *process->sites, process->simulated ? by_count : by_cost);
  return true;
}
