/* SPDX-License-Identifier: Apache-2.0
 * A preloaded library that takes CUPTI's one subscriber slot before anybody else: what another profiler does to the
 * tracer. */
#include <dlfcn.h>
#include <stdio.h>

#include <cupti.h>

static void CUPTIAPI ignore(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
  (void)user, (void)domain, (void)id, (void)data;
}

static void *find(const char *library, const char *name) {
  void *cupti = dlopen(library, RTLD_NOW);
  void *symbol = cupti != NULL ? dlsym(cupti, name) : NULL;
  if (symbol == NULL)
    fprintf(stderr, "holder: no %s: %s\n", name, dlerror());
  return symbol;
}

__attribute__((constructor)) static void hold(void) {
  static CUpti_SubscriberHandle subscriber;
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
  static CUpti_SubscriberParams parameters = { .structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                               .subscriberName = "slot-holder" };
  void *symbol = find("libcupti.so.13", "cuptiSubscribe_v2");
  CUptiResult result =
    symbol == NULL ? CUPTI_SUCCESS
                   : ((__typeof__(cuptiSubscribe_v2) *)symbol)(&subscriber, ignore, NULL, &parameters);
#else /* CUDA 12: a subscriber has no name */
  void *symbol = find("libcupti.so.12", "cuptiSubscribe");
  CUptiResult result =
    symbol == NULL ? CUPTI_SUCCESS : ((__typeof__(cuptiSubscribe) *)symbol)(&subscriber, ignore, NULL);
#endif
  if (result != CUPTI_SUCCESS)
    fprintf(stderr, "holder: CUPTI says %d\n", (int)result);
}
