/* SPDX-License-Identifier: Apache-2.0
 * A libcupti that fails as it is told to by the environment:
 *   FAKE_CUPTI_VERSION    what cuptiGetVersion says (130001)
 *   FAKE_CUPTI_SUBSCRIBE  result of cuptiSubscribe (0)
 *   FAKE_CUPTI_HOLDER     name of the subscriber that holds the slot
 *   FAKE_CUPTI_REFUSE     cuptiEnableCallback of this many ids fails
 * Its only call is cuStreamSynchronize, which the libcuda beside it makes. */
#include <cupti.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static CUpti_CallbackFunc callback;
static void *callback_user;
static int enabled;

static long setting(const char *name, long otherwise) {
  const char *value = getenv(name);
  return value != NULL ? strtol(value, NULL, 10) : otherwise;
}

EXPORT CUptiResult cuptiGetVersion(uint32_t *version) {
  *version = (uint32_t)setting("FAKE_CUPTI_VERSION", 130001);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function, void *user) {
  CUptiResult result = (CUptiResult)setting("FAKE_CUPTI_SUBSCRIBE", 0);
  if (result != CUPTI_SUCCESS)
    return result;
  callback = function;
  callback_user = user;
  *subscriber = (CUpti_SubscriberHandle)&callback;
  return CUPTI_SUCCESS;
}

struct params { /* CUpti_SubscriberParams, which CUDA 12's headers lack */
  size_t size;
  const char *name;
  char *old_name;
  size_t old_name_size;
};
EXPORT CUptiResult fake_subscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function, void *user,
                                     struct params *params) __asm__("cuptiSubscribe_v2");
CUptiResult fake_subscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function, void *user,
                              struct params *params) {
  const char *holder = getenv("FAKE_CUPTI_HOLDER");
  if (holder != NULL && params != NULL && params->old_name != NULL && params->old_name_size > 0) {
    strncpy(params->old_name, holder, params->old_name_size - 1);
    params->old_name[params->old_name_size - 1] = '\0';
  }
  return cuptiSubscribe(subscriber, function, user);
}

EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  (void)subscriber;
  __atomic_store_n(&callback, NULL, __ATOMIC_RELEASE);
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                       CUpti_CallbackId cbid) {
  static long refused;
  (void)subscriber;
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || cbid != CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize)
    return domain == CUPTI_CB_DOMAIN_RESOURCE ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
  if (refused < setting("FAKE_CUPTI_REFUSE", 0)) {
    refused++;
    return CUPTI_ERROR_UNKNOWN;
  }
  enabled = enable != 0;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **name) {
  if (cbid > CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize)
    return CUPTI_ERROR_INVALID_PARAMETER;
  *name = domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize
              ? "cuStreamSynchronize"
              : "cuNothing";
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *device) {
  (void)context;
  *device = 0;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
  *text = result == CUPTI_ERROR_NOT_INITIALIZED ? "CUPTI_ERROR_NOT_INITIALIZED" : "CUPTI_ERROR_UNKNOWN";
  return CUPTI_SUCCESS;
}

EXPORT void fake_cupti_emit(const CUpti_CallbackData *data);
void fake_cupti_emit(const CUpti_CallbackData *data) {
  CUpti_CallbackFunc function = __atomic_load_n(&callback, __ATOMIC_ACQUIRE);
  if (function != NULL && enabled)
    function(callback_user, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, data);
}
