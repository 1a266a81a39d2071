/* SPDX-License-Identifier: Apache-2.0
 * NVTX calls a tool through tables of function pointers, one set in each executable and library that uses it. We fill
 * the ranges, marks, domains and registered strings of each; categories and payloads stay no-ops. Handles are ours to
 * invent: a registered string is its interned name, a domain a small struct that lives until the process ends. */
#include "tracer/nvtx.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "tracer/lock.h"
#include "tracer/names.h"
#include "tracer/self.h"
#include "tracer/start.h"
#include "tracer/thread.h"

struct domain { /* what an nvtxDomainHandle_t points to */
  struct domain *next;
  const struct sc_name *name;
};

static struct domain *domains; /* insert-only; a domain created twice under one name is one */
static pthread_mutex_t domains_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t last_range;
static _Atomic unsigned attached; /* copies of NVTX that call us */

/* Ranges that this thread opened while nothing was recorded (before cuInit): they are put at the front of its records,
 * so that what runs inside them is attributed. The first few have their place in the thread; a deeper stack gets pages of
 * its own, which malloc is not asked for: a signal handler may push. What is deeper still is only counted: its pops must
 * not end others. */
#define PENDING_FEW 16
#define PENDING_MAX 1024
struct pending {
  const struct sc_name *name;
  const struct domain *domain;
  uint64_t time_ns;
};
static __thread struct pending pending_few[PENDING_FEW], *pending_more; /* NULL: not needed yet */
static __thread unsigned pending_count, pending_deeper;

/* Depths, as push and pop return them. A program that pushes in more domains than this on one thread gets 0. */
#define DEPTHS_MAX 8
static __thread struct {
  const struct domain *domain;
  bool used;
  int open;
} depths[DEPTHS_MAX];

static int *depth_of(const struct domain *domain) {
  for (size_t i = 0; i < DEPTHS_MAX; i++) {
    if (!depths[i].used) {
      depths[i].used = true;
      depths[i].domain = domain;
    }
    if (depths[i].domain == domain)
      return &depths[i].open;
  }
  return NULL;
}

static uint32_t domain_id(const struct domain *domain, struct sc_thread *thread) {
  return domain == NULL ? 0 : sc_name_id(domain->name, thread);
}

static void put(struct sc_thread *thread, enum sc_record_kind kind, const struct domain *domain,
                const struct sc_name *name, uint64_t handle, uint64_t time_ns) {
  uint32_t name_id = sc_name_id(name, thread), of_domain = domain_id(domain, thread);
  struct sc_record_range *record = sc_thread_reserve(thread, 1);
  if (record == NULL)
    return;
  *record = (struct sc_record_range){ .head = { .kind = (uint16_t)kind, .units = 1 },
                                      .time_ns = time_ns,
                                      .handle = handle,
                                      .name = name_id,
                                      .domain = of_domain };
  sc_writer_commit_inline(thread->out, 1);
}

static struct pending *pending_at(unsigned i) {
  return i < PENDING_FEW ? &pending_few[i] : &pending_more[i - PENDING_FEW];
}

#define PENDING_BYTES ((PENDING_MAX - PENDING_FEW) * sizeof(struct pending))

static void keep_pending(const struct pending *range) {
  if (pending_count == PENDING_FEW && pending_more == NULL) {
    void *pages = mmap(NULL, PENDING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pending_more = pages == MAP_FAILED ? NULL : pages;
  }
  if (pending_deeper > 0 || pending_count == PENDING_MAX || (pending_count >= PENDING_FEW && pending_more == NULL))
    pending_deeper++;
  else
    *pending_at(pending_count++) = *range;
}

static void forget_pages(void) {
  if (pending_more != NULL)
    (void)munmap(pending_more, PENDING_BYTES);
  pending_more = NULL;
}

static void pop_pending(const struct domain *domain) {
  if (pending_deeper > 0) { /* of which domain it is, nobody knows any more */
    pending_deeper--;
    return;
  }
  for (unsigned i = pending_count; i-- > 0;)
    if (pending_at(i)->domain == domain) {
      for (pending_count--; i < pending_count; i++)
        *pending_at(i) = *pending_at(i + 1);
      break;
    }
  if (pending_count == 0)
    forget_pages();
}

void sc_nvtx_replay(struct sc_thread *thread) {
  for (unsigned i = 0; i < pending_count; i++) {
    const struct pending *range = pending_at(i);
    put(thread, SC_RECORD_RANGE_PUSH, range->domain, range->name, 0, range->time_ns);
  }
  for (; pending_deeper > 0; pending_deeper--) /* so that their pops find something to end */
    put(thread, SC_RECORD_RANGE_PUSH, NULL, NULL, 0, sc_clock_mono_ns());
  pending_count = 0;
  forget_pages();
}

/* A range that is opened now is recorded, or may be when CUDA starts. In a dormant process it is not: what is open when
 * somebody attaches is not known. */
static bool awaited(void) { return sc_tracer_awaited() && !sc_tracer_dormant(); }

static bool wanted(void) { return sc_threads_recording() || awaited(); }

/* Domains and registered strings are made once and used for ever: a dormant process keeps them. */
static bool kept(void) { return wanted() || sc_tracer_dormant(); }

/* ---- what every entry point comes down to ------------------------------------------------------------ */
static int push(const struct domain *domain, const struct sc_name *name) {
  int saved = errno;
  struct sc_thread *thread = sc_thread_enter();
  if (thread != NULL) {
    put(thread, SC_RECORD_RANGE_PUSH, domain, name, 0, sc_clock_mono_ns());
    sc_thread_leave(thread);
  } else if (awaited()) {
    keep_pending(&(struct pending){ name, domain, sc_clock_mono_ns() });
  }
  int *depth = depth_of(domain);
  errno = saved;
  return depth == NULL ? 0 : (*depth)++;
}

static int pop(const struct domain *domain) {
  int saved = errno;
  struct sc_thread *thread = sc_thread_enter();
  if (thread != NULL) {
    put(thread, SC_RECORD_RANGE_POP, domain, NULL, 0, sc_clock_mono_ns());
    sc_thread_leave(thread);
  } else {
    pop_pending(domain);
  }
  int *depth = depth_of(domain);
  errno = saved;
  if (depth == NULL)
    return 0;
  return *depth > 0 ? --*depth : -1;
}

static nvtxRangeId_t start(const struct domain *domain, const struct sc_name *name) {
  int saved = errno;
  uint64_t id = atomic_fetch_add_explicit(&last_range, 1, memory_order_relaxed) + 1;
  struct sc_thread *thread = sc_thread_enter();
  if (thread != NULL) {
    put(thread, SC_RECORD_RANGE_START, domain, name, id, sc_clock_mono_ns());
    sc_thread_leave(thread);
  }
  errno = saved;
  return id;
}

static void end(const struct domain *domain, nvtxRangeId_t id) {
  int saved = errno;
  struct sc_thread *thread = sc_thread_enter();
  if (thread != NULL) {
    put(thread, SC_RECORD_RANGE_END, domain, NULL, id, sc_clock_mono_ns());
    sc_thread_leave(thread);
  }
  errno = saved;
}

/* Programs mark whatever they like; only marks that are meant for us are kept. */
#define OUR_DOMAIN "synccount"
static bool is_ours(const struct domain *domain, const struct sc_name *name) {
  const char *text = domain == NULL ? sc_name_text(name) : sc_name_text(domain->name);
  return domain == NULL ? strncmp(text, OUR_DOMAIN ".", sizeof(OUR_DOMAIN)) == 0 : strcmp(text, OUR_DOMAIN) == 0;
}

static void mark(const struct domain *domain, const struct sc_name *name) {
  if (name == NULL || !is_ours(domain, name))
    return;
  int saved = errno;
  struct sc_thread *thread = sc_thread_enter();
  if (thread != NULL) {
    put(thread, SC_RECORD_MARK, domain, name, 0, sc_clock_mono_ns());
    sc_thread_leave(thread);
  }
  errno = saved;
}

static const struct sc_name *name_of(const char *text) { return wanted() ? sc_name_intern(text) : NULL; }

static const struct sc_name *name_of_wide(const wchar_t *text) { return wanted() ? sc_name_intern_wide(text) : NULL; }

static const struct sc_name *name_of_attributes(const nvtxEventAttributes_t *event) {
  if (event == NULL || event->size < offsetof(nvtxEventAttributes_t, message) + sizeof(event->message) || !wanted())
    return NULL;
  switch (event->messageType) {
  case NVTX_MESSAGE_TYPE_ASCII: return sc_name_intern(event->message.ascii);
  case NVTX_MESSAGE_TYPE_UNICODE: return sc_name_intern_wide(event->message.unicode);
  case NVTX_MESSAGE_TYPE_REGISTERED: return (const struct sc_name *)event->message.registered;
  default: return NULL;
  }
}

/* ---- entry points ------------------------------------------------------------------------------------ */
static nvtxRangeId_t range_start_ex(const nvtxEventAttributes_t *event) {
  return start(NULL, name_of_attributes(event));
}
static nvtxRangeId_t range_start_a(const char *text) { return start(NULL, name_of(text)); }
static nvtxRangeId_t range_start_w(const wchar_t *text) { return start(NULL, name_of_wide(text)); }
static void range_end(nvtxRangeId_t id) { end(NULL, id); }
/* Of the default domain: a text that is not ours is not even interned. */
static void mark_a(const char *text) {
  if (text != NULL && strncmp(text, OUR_DOMAIN ".", sizeof(OUR_DOMAIN)) == 0)
    mark(NULL, name_of(text));
}
static void mark_ex(const nvtxEventAttributes_t *event) {
  if (event != NULL && event->messageType == NVTX_MESSAGE_TYPE_ASCII &&
      event->size >= offsetof(nvtxEventAttributes_t, message) + sizeof(event->message))
    mark_a(event->message.ascii);
  else
    mark(NULL, name_of_attributes(event));
}
static int range_push_ex(const nvtxEventAttributes_t *event) { return push(NULL, name_of_attributes(event)); }
static int range_push_a(const char *text) { return push(NULL, name_of(text)); }
static int range_push_w(const wchar_t *text) { return push(NULL, name_of_wide(text)); }
static int range_pop(void) { return pop(NULL); }

static nvtxRangeId_t domain_start_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  return start((const struct domain *)domain, name_of_attributes(event));
}
static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) { end((const struct domain *)domain, id); }
static int domain_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  return push((const struct domain *)domain, name_of_attributes(event));
}
static void domain_mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  if (domain == NULL)
    mark_ex(event);
  else
    mark((const struct domain *)domain, name_of_attributes(event));
}
static int domain_pop(nvtxDomainHandle_t domain) { return pop((const struct domain *)domain); }

static nvtxStringHandle_t register_string(const struct sc_name *name) { return (nvtxStringHandle_t)(uintptr_t)name; }
static nvtxStringHandle_t register_a(nvtxDomainHandle_t domain, const char *text) {
  (void)domain;
  return register_string(kept() ? sc_name_intern(text) : NULL);
}
static nvtxStringHandle_t register_w(nvtxDomainHandle_t domain, const wchar_t *text) {
  (void)domain;
  return register_string(kept() ? sc_name_intern_wide(text) : NULL);
}

static nvtxDomainHandle_t create_domain(const struct sc_name *name) {
  struct domain *domain;
  sigset_t before;
  if (name == NULL)
    return NULL;
  int saved = errno;
  sc_lock(&domains_lock, &before);
  for (domain = domains; domain != NULL && domain->name != name; domain = domain->next)
    ;
  if (domain == NULL && (domain = calloc(1, sizeof(*domain))) != NULL) {
    domain->name = name;
    domain->next = domains;
    domains = domain;
  }
  sc_unlock(&domains_lock, &before);
  errno = saved;
  return (nvtxDomainHandle_t)domain;
}
static nvtxDomainHandle_t create_a(const char *text) { return create_domain(kept() ? sc_name_intern(text) : NULL); }
static nvtxDomainHandle_t create_w(const wchar_t *text) { return create_domain(kept() ? sc_name_intern_wide(text) : NULL); }

/* ---- tables ------------------------------------------------------------------------------------------ */
#define ENTRY(id, function)                                                                                            \
  { id, (NvtxFunctionPointer)(function) }
struct entry {
  unsigned id;
  NvtxFunctionPointer function;
};
static const struct entry core[] = {
  ENTRY(NVTX_CBID_CORE_MarkEx, mark_ex),              ENTRY(NVTX_CBID_CORE_MarkA, mark_a),
  ENTRY(NVTX_CBID_CORE_RangeStartEx, range_start_ex), ENTRY(NVTX_CBID_CORE_RangeStartA, range_start_a),
  ENTRY(NVTX_CBID_CORE_RangeStartW, range_start_w),   ENTRY(NVTX_CBID_CORE_RangeEnd, range_end),
  ENTRY(NVTX_CBID_CORE_RangePushEx, range_push_ex),   ENTRY(NVTX_CBID_CORE_RangePushA, range_push_a),
  ENTRY(NVTX_CBID_CORE_RangePushW, range_push_w),     ENTRY(NVTX_CBID_CORE_RangePop, range_pop),
};
static const struct entry core2[] = {
  ENTRY(NVTX_CBID_CORE2_DomainMarkEx, domain_mark_ex),
  ENTRY(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start_ex),
  ENTRY(NVTX_CBID_CORE2_DomainRangeEnd, domain_end),
  ENTRY(NVTX_CBID_CORE2_DomainRangePushEx, domain_push_ex),
  ENTRY(NVTX_CBID_CORE2_DomainRangePop, domain_pop),
  ENTRY(NVTX_CBID_CORE2_DomainRegisterStringA, register_a),
  ENTRY(NVTX_CBID_CORE2_DomainRegisterStringW, register_w),
  ENTRY(NVTX_CBID_CORE2_DomainCreateA, create_a),
  ENTRY(NVTX_CBID_CORE2_DomainCreateW, create_w),
};

/* False if this copy of NVTX has no such module. */
static bool fill(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module, const struct entry *entries,
                 size_t count) {
  NvtxFunctionTable table = NULL;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(module, &table, &size) == 0 || table == NULL)
    return false;
  for (size_t i = 0; i < count; i++)
    if (entries[i].id < size && table[entries[i].id] != NULL)
      *table[entries[i].id] = entries[i].function;
  return true;
}

int sc_nvtx_attach(sc_nvtx_get_table get_table) {
  if (get_table == NULL)
    return 0;
  const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
  if (callbacks == NULL || callbacks->struct_size < sizeof(*callbacks) || callbacks->GetModuleFunctionTable == NULL)
    return 0;
  if (!fill(callbacks, NVTX_CB_MODULE_CORE, core, SC_COUNTOF(core)))
    return 0;
  (void)fill(callbacks, NVTX_CB_MODULE_CORE2, core2, SC_COUNTOF(core2)); /* the old libnvToolsExt may have none */
  atomic_fetch_add_explicit(&attached, 1, memory_order_relaxed);
  return 1;
}

/* ---- what is missing --------------------------------------------------------------------------------- */
static _Atomic bool late;

void sc_nvtx_came_late(void) { atomic_store_explicit(&late, true, memory_order_relaxed); }

bool sc_nvtx_obstacle(char *text, size_t size) {
  const char *tool = getenv("NVTX_INJECTION64_PATH");
  bool some = atomic_load_explicit(&attached, memory_order_relaxed) != 0;
  if (tool != NULL && tool[0] != '\0' && !some && !sc_self_is(tool)) {
    (void)snprintf(text, size,
                   "ranges not available: NVTX_INJECTION64_PATH=%.400s gives NVTX to another tool; run the program "
                   "without that tool",
                   tool);
    return true;
  }
  if (!atomic_load_explicit(&late, memory_order_relaxed))
    return false;
  (void)snprintf(text, size,
                 "ranges not available%s: the tracer was loaded into the running program, and NVTX takes up with a tool "
                 "at its first use or never. To have all ranges, start the program with LD_PRELOAD=libsynccount.so (its "
                 "path) and SYNCCOUNT_DORMANT=1",
                 some ? " from those parts of the program that used NVTX before" : "");
  return true;
}

void sc_nvtx_forked(void) { pthread_mutex_init(&domains_lock, NULL); }
