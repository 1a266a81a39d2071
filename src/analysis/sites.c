/* SPDX-License-Identifier: Apache-2.0
 * Where syncs come from, while records come in: one raw site for each stack, call, class and kind of copy. Stacks are
 * numbers here; what they stand for is looked up at the end (sites_finish.c). A sync without a stack belongs to the
 * range it was made in instead. */
#include "analysis/engine.h"

#include <stdlib.h>
#include <string.h>

static bool same_site(const struct raw_site *a, const struct raw_site *b)
{
  return a->stack == b->stack && a->api == b->api && a->kind == b->kind && a->cls == b->cls &&
         a->direction == b->direction && a->memory == b->memory && a->scope == b->scope;
}

static uint64_t hash_site(const struct raw_site *site)
{
  uint64_t kinds =
      (uint64_t)site->kind << 24 | (uint64_t)site->cls << 16 | (uint64_t)site->direction << 8 | site->memory;
  return sc_hash_mix(sc_hash_mix((uint64_t)site->stack << 32 | site->api, kinds), (uintptr_t)site->scope);
}

static bool allocate(struct sc_sites *sites)
{
  if (!sites->sites)
    sites->sites = sc_calloc_array(SITES_MAX + SC_CLASS_COUNT * 3, sizeof *sites->sites);
  if (!sites->slots)
    sites->slots = sc_calloc_array(SITE_SLOTS, sizeof *sites->slots);
  return sites->sites && sites->slots;
}

void sc_sites_free(struct sc_sites *sites)
{
  for (size_t i = 0; i < sites->count; ++i) {
    sc_hist_free(&sites->sites[i].wait);
    sc_hist_free(&sites->sites[i].drain);
  }
  free(sites->sites);
  free(sites->slots);
  *sites = (struct sc_sites){0};
}

/* The site of this key; NULL when memory is out. */
static struct raw_site *find_site(struct sc_analysis *a, const struct raw_site *key, const struct sc_node *node)
{
  struct sc_sites *sites = &a->sites;
  if (!allocate(sites)) {
    a->failed = true;
    return NULL;
  }
  size_t i = hash_site(key) & (SITE_SLOTS - 1);
  while (sites->slots[i] && !same_site(&sites->sites[sites->slots[i] - 1], key))
    i = (i + 1) & (SITE_SLOTS - 1);
  if (sites->slots[i])
    return &sites->sites[sites->slots[i] - 1];
  struct raw_site rest = {.kind = key->kind, .cls = key->cls};
  if (sites->count >= SITES_MAX && !same_site(&rest, key)) {
    ++sites->gathered;
    return find_site(a, &rest, node); /* one for each kind and class: there is room for these */
  }
  struct raw_site *site = &sites->sites[sites->count++];
  *site = *key;
  site->node = node;
  sites->slots[i] = (uint32_t)sites->count;
  return site;
}

/* In a step, and not in one of the warm-up. (A step in which the warm-up ends counts from there on.) */
static bool in_counted_step(const struct sc_analysis_thread *t, const struct sc_record_call *call)
{
  const struct sc_analysis *a = t->analysis;
  return t->node->in_step && t->steps >= a->warmup && a->from_ns != UINT64_MAX && call->start_ns >= a->from_ns;
}

static struct raw_site *site_of(struct sc_analysis_thread *t, const struct raw_site *key,
                                const struct sc_record_call *call)
{
  struct raw_site *site = t->site && same_site(t->site, key) ? t->site : find_site(t->analysis, key, t->node);
  if (!site)
    return NULL;
  if (site->node != t->node)
    site->node = sc_tree_common(site->node, t->node);
  ++site->count;
  site->in_steps += in_counted_step(t, call);
  site->in_marked += sc_steps_in_counted(t, call->start_ns);
  return site;
}

static uint32_t index_of(const struct sc_analysis *a, const struct raw_site *site)
{
  return (uint32_t)(site - a->sites.sites);
}

void sc_sites_settle(struct sc_analysis_thread *t)
{
  if (!t->site_open)
    return;
  if (t->analysis->events) {
    t->event.wait_ns = t->site_wait_ns;
    sc_events_add(t->analysis->events, &t->event);
  }
  t->site_open = false;
  t->site->wait_ns += t->site_wait_ns;
  sc_hist_add(&t->site->wait, t->site_wait_ns);
}

static const struct sc_node *scope_of(const struct sc_analysis_thread *t, uint32_t stack)
{
  return stack ? NULL : t->node;
}

void sc_sites_sync(struct sc_analysis_thread *t, enum sc_class cls, const struct sc_record_call *call,
                   const struct sc_sync_facts *facts)
{
  struct raw_site key = {.stack = t->analysis->stacks ? call->head.stack : 0,
                         .api = SC_CALL_API(call),
                         .kind = SC_SITE_SYNC,
                         .cls = (uint8_t)cls,
                         .direction = (uint8_t)facts->direction,
                         .memory = facts->memory};
  key.scope = scope_of(t, key.stack);
  sc_steps_sync(t, call->start_ns);
  sc_sites_settle(t);
  if (t->outside)
    return;
  struct raw_site *site = site_of(t, &key, call);
  if (!site)
    return;
  if (facts->bytes > site->bytes)
    site->bytes = facts->bytes;
  site->read_backs += facts->read_back;
  site->uploads += facts->upload;
  site->idle += facts->idle;
  t->site = site;
  t->site_open = true;
  t->site_wait_ns = call->duration_ns;
  if (t->analysis->tally)
    sc_tally_sync(t, site, call);
  t->event = (struct sc_event){.start_ns = call->start_ns,
                               .end_ns = call->start_ns + call->duration_ns,
                               .bytes = facts->bytes,
                               .flow = facts->flow,
                               .thread = t->index,
                               .what = index_of(t->analysis, site),
                               .kind = SC_EVENT_SYNC,
                               .cls = (uint8_t)cls,
                               .direction = (uint8_t)facts->direction,
                               .memory = facts->memory,
                               .read_back = facts->read_back};
}

void sc_sites_join(struct sc_analysis_thread *t, const struct sc_record_call *call)
{
  if (!t->site_open)
    return;
  t->site_wait_ns += call->duration_ns;
  t->event.end_ns = call->start_ns + call->duration_ns;
  ++t->site->merged;
  if (t->analysis->tally)
    sc_tally_join(t, call->duration_ns);
}

void sc_sites_beside(struct sc_analysis_thread *t, enum sc_site_kind kind, const struct sc_record_call *call)
{
  if (t->outside)
    return;
  struct raw_site key = {
      .stack = t->analysis->stacks ? call->head.stack : 0, .api = SC_CALL_API(call), .kind = (uint8_t)kind};
  key.scope = scope_of(t, key.stack);
  struct raw_site *site = site_of(t, &key, call);
  if (site && kind == SC_SITE_POLL) {
    site->wait_ns += call->duration_ns;
    sc_hist_add(&site->wait, call->duration_ns);
    if (t->analysis->events)
      sc_events_add(t->analysis->events, &(struct sc_event){.start_ns = call->start_ns,
                                                            .end_ns = call->start_ns + call->duration_ns,
                                                            .wait_ns = call->duration_ns,
                                                            .thread = t->index,
                                                            .what = index_of(t->analysis, site),
                                                            .kind = SC_EVENT_POLL});
  }
}
