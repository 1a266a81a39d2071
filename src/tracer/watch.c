/* SPDX-License-Identifier: Apache-2.0
 * Names, not numbers: the ids of _ptsz, _ptds, _v2 and later versions differ from toolkit to toolkit, the names do
 * not. */
#include "tracer/watch.h"

#include <stdlib.h>
#include <string.h>

/* CUPTI answers "invalid" beyond its last id. A gap is crossed, should a version have one. */
#define GAP_MAX 64u
#define ID_LIMIT 16384u

/* A launch of the runtime is one launch of the driver, with a callback of its own: that one is counted, and the most frequent
 * call of all pays for two callbacks less. (tests/gpu/run nesting fails if a runtime launch is not exactly one.) */
static uint8_t action_of(uint8_t domain, enum sc_op op) {
  switch (op) {
  case SC_OP_SYNC_STREAM:
  case SC_OP_SYNC_EVENT:
  case SC_OP_SYNC_DEVICE:
  case SC_OP_COPY:
  case SC_OP_COPY_ASYNC:
  case SC_OP_MEMSET:
  case SC_OP_MEMSET_ASYNC:
  case SC_OP_FREE:
  case SC_OP_FREE_HOST:
  case SC_OP_UNREGISTER:
  case SC_OP_FREE_ASYNC:
  case SC_OP_HOST_FUNC:
  case SC_OP_PREFETCH:
  case SC_OP_PROFILER_START:
  case SC_OP_PROFILER_STOP:
  case SC_OP_LIFECYCLE: return SC_ACTION_RECORD;
  case SC_OP_QUERY_STREAM:
  case SC_OP_QUERY_EVENT: return SC_ACTION_QUERY;
  case SC_OP_LAUNCH:
  case SC_OP_GRAPH_LAUNCH: return domain == SC_DOMAIN_DRIVER ? SC_ACTION_LAUNCH : SC_ACTION_NONE;
  default: return SC_ACTION_NONE;
  }
}

void sc_watch_classify(uint8_t domain, const char *name, struct sc_watch *out) {
  struct sc_call_name parsed;
  sc_call_parse_name(name, &parsed);
  *out = (struct sc_watch){ .domain = domain, .per_thread = parsed.per_thread };
  out->layout = sc_layout_find(domain, name);
  out->op = (uint8_t)sc_call_op(name);
  out->action = action_of(domain, (enum sc_op)out->op);
  out->direction = (uint8_t)sc_call_direction(name);
  out->role = out->layout != NULL ? out->layout->role : SC_ROLE_NONE;
  /* A pointer that an unknown form of an allocation gives out is one that we do not know. Arrays have handles, not
   * pointers. */
  if (out->op == SC_OP_ALLOC && out->layout == NULL && strstr(parsed.base, "Array") == NULL)
    out->role = SC_ROLE_IMPORT;
  if (out->action == SC_ACTION_NONE && out->role != SC_ROLE_NONE)
    out->action = SC_ACTION_FOLLOW;
}

static void narrow(struct sc_watch *watch, enum sc_watch_apis apis) {
  if (apis == SC_WATCH_DRIVER && watch->domain == SC_DOMAIN_RUNTIME)
    watch->action = SC_ACTION_NONE;
  if (apis != SC_WATCH_RUNTIME)
    return;
  bool launch = watch->op == SC_OP_LAUNCH || watch->op == SC_OP_GRAPH_LAUNCH;
  if (watch->domain == SC_DOMAIN_RUNTIME)
    watch->action = launch ? SC_ACTION_LAUNCH : watch->action; /* there is no driver call to count it by */
  else if (watch->action != SC_ACTION_NONE)
    watch->action = watch->role != SC_ROLE_NONE ? SC_ACTION_FOLLOW : SC_ACTION_NONE;
}

static bool grow(struct sc_watch_table *table, unsigned domain, uint32_t cbid) {
  uint32_t count = table->count[domain];
  if (cbid < count)
    return true;
  uint32_t wanted = cbid + 256;
  struct sc_watch *more = realloc(table->of_domain[domain], wanted * sizeof(*more));
  if (more == NULL)
    return false;
  memset(more + count, 0, (wanted - count) * sizeof(*more));
  table->of_domain[domain] = more;
  table->count[domain] = wanted;
  return true;
}

bool sc_watch_build(struct sc_watch_table *table, int (*name_of)(int domain, uint32_t cbid, const char **name),
                    enum sc_watch_apis apis) {
  bool any = false;
  *table = (struct sc_watch_table){ .apis = 0 };
  for (unsigned domain = SC_DOMAIN_DRIVER; domain <= SC_DOMAIN_RUNTIME; domain++) {
    uint32_t unknown = 0;
    for (uint32_t cbid = 1; cbid < ID_LIMIT && unknown < GAP_MAX; cbid++) {
      const char *name = NULL;
      if (name_of((int)domain, cbid, &name) != 0 || name == NULL) {
        unknown++;
        continue;
      }
      unknown = 0;
      if (!grow(table, domain, cbid))
        return false;
      struct sc_watch *watch = &table->of_domain[domain][cbid];
      sc_watch_classify((uint8_t)domain, name, watch);
      narrow(watch, apis);
      any = any || watch->action != SC_ACTION_NONE;
      if (watch->action == SC_ACTION_RECORD || watch->action == SC_ACTION_QUERY)
        watch->api = (uint16_t)++table->apis;
    }
  }
  return any;
}
