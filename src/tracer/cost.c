/* SPDX-License-Identifier: Apache-2.0
 * The difference between calls with a callback and calls without, taken in turn so that a change of the clock meets
 * both; then the part of a record that such a call does not reach. */
#include "tracer/cost.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracer/thread.h"
#include "tracer/watch.h"

enum { ROUNDS = 5, CALLS = 100, RECORDS = 1000, NAMES_TRIED = 1024 };

typedef int get_version(int *version);

static get_version *find_call(void) {
  void *libcuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void *symbol = libcuda != NULL ? dlsym(libcuda, "cuDriverGetVersion") : NULL;
  get_version *call = NULL;
  memcpy(&call, &symbol, sizeof(call));
  return call;
}

static bool find_id(const struct sc_cupti *cupti, uint32_t *out) {
  for (uint32_t cbid = 1; cbid < NAMES_TRIED; cbid++) {
    const char *name = NULL;
    if (cupti->callback_name(SC_DOMAIN_DRIVER, cbid, &name) == 0 && name != NULL &&
        strcmp(name, "cuDriverGetVersion") == 0) {
      *out = cbid;
      return true;
    }
  }
  return false;
}

static double time_calls(get_version *call) {
  int version;
  uint64_t start = sc_clock_mono_ns();
  for (int i = 0; i < CALLS; i++)
    (void)call(&version);
  return (double)(sc_clock_mono_ns() - start) / CALLS;
}

/* What a callback pair adds to a call, in ns: between the quickest rounds, which nothing interrupted. */
static double callback_cost(const struct sc_cupti *cupti, get_version *call, uint32_t cbid) {
  double with = 1e18, without = 1e18;
  for (int i = 0; i < ROUNDS; i++) {
    double bare = time_calls(call);
    if (cupti->enable(1, cupti->subscriber, SC_DOMAIN_DRIVER, cbid) != 0)
      return -1;
    double watched = time_calls(call);
    (void)cupti->enable(0, cupti->subscriber, SC_DOMAIN_DRIVER, cbid);
    without = bare < without ? bare : without;
    with = watched < with ? watched : with;
  }
  return with - without;
}

/* Two clocks and the filling of a record, into memory of our own: nothing gets into the trace. */
static double record_cost(void) {
  struct sc_record_call record;
  uint64_t start = sc_clock_mono_ns();
  for (int i = 0; i < RECORDS; i++) {
    uint64_t began = sc_clock_mono_ns();
    record = (struct sc_record_call){ .start_ns = began, .duration_ns = sc_clock_mono_ns() - began };
    __asm__ volatile("" : : "r"(&record) : "memory"); /* it is filled as if somebody read it */
  }
  return (double)(sc_clock_mono_ns() - start) / RECORDS;
}

/* Both gates that a callback pair passes. A thread that was never seen is not made one for this. */
static double gate_cost(void) {
  if (sc_thread_current == NULL)
    return 0;
  uint64_t start = sc_clock_mono_ns();
  for (int i = 0; i < 2 * RECORDS; i++) {
    struct sc_thread *thread = sc_thread_enter();
    if (thread != NULL)
      sc_thread_leave(thread);
  }
  return (double)(sc_clock_mono_ns() - start) / RECORDS;
}

void sc_cost_measure(const struct sc_cupti *cupti, struct sc_trace_live *live) {
  uint32_t cbid;
  get_version *call = find_call();
  if (call == NULL || !find_id(cupti, &cbid))
    return;
  double callback = callback_cost(cupti, call, cbid);
  if (callback <= 0)
    return;
  double launch = callback + gate_cost();
  live->launch_cost_ns = (uint64_t)(launch + 0.5);
  live->call_cost_ns = (uint64_t)(launch + record_cost() + 0.5);
}
