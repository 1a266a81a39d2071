/* SPDX-License-Identifier: Apache-2.0
 * The frame around every entry point: nesting and correlation ids, the subscriber's callbacks, injected errors. */
#include "hooks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

atomic_uint simcuda_watch;

static _Atomic(simcuda_deliver_fn) deliver;
static char holder[64];
static pthread_mutex_t slot_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uchar enabled[SIMCUDA_DOMAINS][SIMCUDA_MAX_CBID];
static atomic_uint last_correlation;

/* initial-exec: the stand-ins are loaded at program start or soon after, and two words of static TLS are always left.
 */
static __thread struct {
  unsigned depth;
  uint32_t correlation;
} thread __attribute__((tls_model("initial-exec")));

SIMCUDA_EXPORT const char *simcuda_version(void) { return "simcuda " SC_VERSION; }

int simcuda_call_begin(struct simcuda_call *call)
{
  unsigned watch = atomic_load_explicit(&simcuda_watch, memory_order_acquire);

  /* A driver call inside a runtime call belongs to it: same correlation id, as measured on a GPU. */
  if (thread.depth++ == 0)
    thread.correlation = atomic_fetch_add_explicit(&last_correlation, 1, memory_order_relaxed) + 1;
  call->correlation = thread.correlation;
  if ((watch & SIMCUDA_WATCH_CALLBACKS) &&
      atomic_load_explicit(&enabled[call->domain][call->cbid], memory_order_relaxed)) {
    enum sim_pairing pairing = sim_pairing_for(call->name);
    simcuda_deliver_fn fn = atomic_load_explicit(&deliver, memory_order_acquire);
    if (fn != NULL && pairing != SIM_EXIT_ONLY)
      fn(call, false);
    call->delivered = pairing != SIM_ENTER_ONLY;
  }
  return (watch & SIMCUDA_WATCH_FAULTS) ? sim_fault_for(call->name) : 0;
}

void simcuda_call_end(struct simcuda_call *call, int result)
{
  /* Whoever got the ENTER gets the EXIT, also when the id was disabled in between. */
  if (call->delivered) {
    simcuda_deliver_fn fn = atomic_load_explicit(&deliver, memory_order_acquire);
    call->result = result;
    if (fn != NULL)
      fn(call, true);
  }
  thread.depth--;
}

const char *simcuda_subscribe(simcuda_deliver_fn fn, const char *name)
{
  const char *taken = NULL;

  sim_settings_load();
  pthread_mutex_lock(&slot_lock);
  if (sim_settings.subscriber != NULL)
    taken = sim_settings.subscriber;
  else if (atomic_load(&deliver) != NULL)
    taken = holder;
  else {
    snprintf(holder, sizeof holder, "CUPTI for %s", name != NULL ? name : "unknown");
    atomic_store_explicit(&deliver, fn, memory_order_release);
    atomic_fetch_or_explicit(&simcuda_watch, SIMCUDA_WATCH_CALLBACKS, memory_order_release);
  }
  pthread_mutex_unlock(&slot_lock);
  return taken;
}

void simcuda_unsubscribe(void)
{
  pthread_mutex_lock(&slot_lock);
  atomic_fetch_and(&simcuda_watch, ~(unsigned)SIMCUDA_WATCH_CALLBACKS);
  atomic_store(&deliver, NULL);
  for (int domain = 0; domain < SIMCUDA_DOMAINS; domain++)
    for (int cbid = 0; cbid < SIMCUDA_MAX_CBID; cbid++)
      atomic_store_explicit(&enabled[domain][cbid], 0, memory_order_relaxed);
  pthread_mutex_unlock(&slot_lock);
}

int simcuda_enable(enum simcuda_domain domain, uint32_t cbid, bool on)
{
  if (domain <= 0 || domain >= SIMCUDA_DOMAINS || cbid >= SIMCUDA_MAX_CBID)
    return CUDA_ERROR_INVALID_VALUE;
  atomic_store_explicit(&enabled[domain][cbid], on, memory_order_relaxed);
  return 0;
}

bool simcuda_enabled(enum simcuda_domain domain, uint32_t cbid)
{
  return domain > 0 && domain < SIMCUDA_DOMAINS && cbid < SIMCUDA_MAX_CBID && atomic_load(&enabled[domain][cbid]) != 0;
}
