/* SPDX-License-Identifier: Apache-2.0
 * A preloaded CUPTI subscriber with every runtime and driver callback enabled. The tracer enables a few of them only,
 * and knows a driver call as nested only while it is inside a runtime call that it watches: this library lists every
 * runtime call that the tracer does not watch and that makes a driver call which it does. Such a driver call would be
 * counted as the program's own.
 *
 * NESTING_OUTPUT names the file that gets the result, one line each:
 *   calls RUNTIME DRIVER NESTED     how many callbacks were seen
 *   counted RUNTIME-CALL DRIVER-CALL N    a driver call that the tracer would count: wrong
 *   followed RUNTIME-CALL DRIVER-CALL N   one it follows for memory kinds and captures only
 *   uneven RUNTIME-CALL LAUNCHES N  a successful launch that made not one driver launch but LAUNCHES: the tracer, which
 *                                   counts those of the driver alone, would be wrong
 *   launches N                      successful runtime launches that made exactly one */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cupti.h>

#include "trace/calls.h"

#define DEPTH_MAX 64
#define PAIRS_MAX 256

struct pair {
  char runtime[96], driver[96];
  enum pair_kind { COUNTED, FOLLOWED, UNEVEN } kind;
  unsigned long long count;
};

static struct {
  CUpti_SubscriberHandle subscriber;
  atomic_ullong runtime, driver, nested, launches;
  pthread_mutex_t lock;
  struct pair pairs[PAIRS_MAX]; /* under lock */
  size_t pair_count;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local struct {
  CUpti_CallbackDomain domain;
  const char *name; /* CUPTI's own, valid for ever */
} stack[DEPTH_MAX];
static _Thread_local unsigned depth, driver_launches; /* the latter in the outermost call */

static bool is_launch(const char *name) {
  enum sc_op op = sc_call_op(name);
  return op == SC_OP_LAUNCH || op == SC_OP_GRAPH_LAUNCH;
}

/* As src/tracer has it: recorded, asked or counted; followed; or not watched at all. */
static bool is_counted(enum sc_op op) {
  return op != SC_OP_NONE && op != SC_OP_IGNORED && op != SC_OP_ALLOC && op != SC_OP_REGISTER && op != SC_OP_CAPTURE &&
         op != SC_OP_MAP && op != SC_OP_EVENT_RECORD;
}
static bool is_watched(enum sc_op op) { return op != SC_OP_NONE && op != SC_OP_IGNORED; }

static void add_pair(const char *runtime, const char *driver, enum pair_kind kind) {
  pthread_mutex_lock(&state.lock);
  size_t i = 0;
  while (i < state.pair_count &&
         (strcmp(state.pairs[i].runtime, runtime) != 0 || strcmp(state.pairs[i].driver, driver) != 0))
    i++;
  if (i == state.pair_count && i < PAIRS_MAX) {
    struct pair *pair = &state.pairs[state.pair_count++];
    snprintf(pair->runtime, sizeof pair->runtime, "%s", runtime);
    snprintf(pair->driver, sizeof pair->driver, "%s", driver);
    pair->kind = kind;
  }
  if (i < PAIRS_MAX)
    state.pairs[i].count++;
  pthread_mutex_unlock(&state.lock);
}

static void enter(CUpti_CallbackDomain domain, const char *name) {
  bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  atomic_fetch_add_explicit(runtime ? &state.runtime : &state.driver, 1, memory_order_relaxed);
  if (!runtime && depth > 0 && depth <= DEPTH_MAX && stack[0].domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    enum sc_op op = sc_call_op(name);
    atomic_fetch_add_explicit(&state.nested, 1, memory_order_relaxed);
    /* A runtime call may make another one; the tracer drops what is inside any that it watches. */
    bool inside_watched = false;
    for (unsigned i = 0; i < depth; i++)
      inside_watched = inside_watched || is_watched(sc_call_op(stack[i].name));
    if (!inside_watched && is_watched(op))
      add_pair(stack[0].name, name, is_counted(op) ? COUNTED : FOLLOWED);
  }
  if (depth == 0)
    driver_launches = 0;
  driver_launches += !runtime && is_launch(name);
  if (depth < DEPTH_MAX) {
    stack[depth].domain = domain;
    stack[depth].name = name;
  }
  depth++;
}

static void leave(CUpti_CallbackDomain domain, const CUpti_CallbackData *call) {
  if (depth == 0 || --depth > 0 || domain != CUPTI_CB_DOMAIN_RUNTIME_API || !is_launch(call->functionName))
    return;
  char count[16];
  int status = 0;
  memcpy(&status, call->functionReturnValue, sizeof status);
  if (status != 0)
    return;
  snprintf(count, sizeof count, "%u", driver_launches);
  if (driver_launches == 1)
    atomic_fetch_add_explicit(&state.launches, 1, memory_order_relaxed);
  else
    add_pair(call->functionName, count, UNEVEN);
}

static void CUPTIAPI callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
  (void)user, (void)id;
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API && domain != CUPTI_CB_DOMAIN_DRIVER_API)
    return;
  const CUpti_CallbackData *call = data;
  if (call->callbackSite == CUPTI_API_ENTER)
    enter(domain, call->functionName);
  else
    leave(domain, call);
}

static void write_result(void) {
  const char *path = getenv("NESTING_OUTPUT");
  FILE *file = path != NULL ? fopen(path, "w") : NULL;
  if (file == NULL)
    return;
  fprintf(file, "calls %llu %llu %llu\n", atomic_load(&state.runtime), atomic_load(&state.driver),
          atomic_load(&state.nested));
  fprintf(file, "launches %llu\n", atomic_load(&state.launches));
  pthread_mutex_lock(&state.lock);
  static const char *const kinds[] = { "counted", "followed", "uneven" };
  for (size_t i = 0; i < state.pair_count; i++)
    fprintf(file, "%s %s %s %llu\n", kinds[state.pairs[i].kind], state.pairs[i].runtime, state.pairs[i].driver,
            state.pairs[i].count);
  pthread_mutex_unlock(&state.lock);
  fclose(file);
}

__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void) {
  static atomic_flag started = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set(&started))
    return 1;
  void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (cupti == NULL)
    cupti = dlopen("libcupti.so.13", RTLD_NOW);
  if (cupti == NULL) {
    fprintf(stderr, "nesting: %s\n", dlerror());
    return 0;
  }
  __typeof__(cuptiSubscribe) *subscribe = (__typeof__(cuptiSubscribe) *)dlsym(cupti, "cuptiSubscribe");
  __typeof__(cuptiEnableDomain) *enable = (__typeof__(cuptiEnableDomain) *)dlsym(cupti, "cuptiEnableDomain");
  CUptiResult result =
      subscribe != NULL && enable != NULL ? subscribe(&state.subscriber, callback, NULL) : CUPTI_ERROR_UNKNOWN;
  if (result == CUPTI_SUCCESS)
    result = enable(1, state.subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
  if (result == CUPTI_SUCCESS)
    result = enable(1, state.subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  if (result != CUPTI_SUCCESS) {
    fprintf(stderr, "nesting: CUPTI says %d\n", (int)result);
    return 0;
  }
  atexit(write_result);
  return 1;
}

__attribute__((constructor)) static void preload(void) {
  Dl_info info;
  if (getenv("CUDA_INJECTION64_PATH") == NULL && dladdr((void *)&InitializeInjection, &info) != 0)
    setenv("CUDA_INJECTION64_PATH", info.dli_fname, 1);
}
