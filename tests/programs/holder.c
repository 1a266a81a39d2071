/* SPDX-License-Identifier: Apache-2.0
 * A preloaded library that takes CUPTI's one subscriber slot before anybody else: what another profiler does to the
 * tracer. */
#include <dlfcn.h>
#include <stdio.h>

#include <cupti.h>

static void CUPTIAPI ignore(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
  (void)user, (void)domain, (void)id, (void)data;
}

__attribute__((constructor)) static void hold(void) {
  static CUpti_SubscriberHandle subscriber;
  static CUpti_SubscriberParams parameters = { .structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                               .subscriberName = "slot-holder" };
  void *cupti = dlopen("libcupti.so.13", RTLD_NOW);
  void *symbol = cupti != NULL ? dlsym(cupti, "cuptiSubscribe_v2") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "holder: no cuptiSubscribe_v2: %s\n", dlerror());
    return;
  }
  CUptiResult result = ((__typeof__(cuptiSubscribe_v2) *)symbol)(&subscriber, ignore, NULL, &parameters);
  if (result != CUPTI_SUCCESS)
    fprintf(stderr, "holder: CUPTI says %d\n", (int)result);
}
