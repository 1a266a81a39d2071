/* SPDX-License-Identifier: Apache-2.0
 * The part of CUPTI that a callback-based tool uses: one subscriber, callbacks by id or domain, names, time. */
#include <cupti.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "hooks.h"

/* CUPTI's prototypes carry no visibility; the version script decides what is exported. */
#pragma GCC visibility push(default)

static const char *const driver_names[] = {
#include "driver_names.inc"
};
static const char *const runtime_names[] = {
#include "runtime_names.inc"
};
enum {
  DRIVER_NAMES = sizeof driver_names / sizeof driver_names[0],
  RUNTIME_NAMES = sizeof runtime_names / sizeof runtime_names[0]
};

struct CUpti_Subscriber_st { /* atomic: a callback on its way may meet the next subscription */
  _Atomic(CUpti_CallbackFunc) callback;
  void *_Atomic userdata;
};
static struct CUpti_Subscriber_st subscriber; /* there is only one */
static atomic_bool subscribed;
static __thread CUptiResult last_error;

static CUptiResult note(CUptiResult result)
{
  if (result != CUPTI_SUCCESS)
    last_error = result;
  return result;
}

static const char *name_of(CUpti_CallbackDomain domain, uint32_t cbid)
{
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
    return cbid < DRIVER_NAMES ? driver_names[cbid] : NULL;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API)
    return cbid < RUNTIME_NAMES ? runtime_names[cbid] : NULL;
  return NULL;
}

static void deliver(struct simcuda_call *call, bool exit)
{
  CUpti_CallbackData data = {.callbackSite = exit ? CUPTI_API_EXIT : CUPTI_API_ENTER,
                             .functionName = call->name,
                             .functionParams = call->params,
                             .functionReturnValue = exit ? &call->result : NULL,
                             .symbolName = call->symbol,
                             .correlationData = &call->slot,
                             .correlationId = call->correlation};

  data.context = simcuda_current_context(&data.contextUid);
  CUpti_CallbackFunc callback = atomic_load_explicit(&subscriber.callback, memory_order_acquire);
  callback(atomic_load_explicit(&subscriber.userdata, memory_order_relaxed), (CUpti_CallbackDomain)call->domain,
           call->cbid, &data);
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
  if (version == NULL)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  uint32_t wanted = simcuda_cupti_version();
  *version = wanted != 0 ? wanted : CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

static CUptiResult subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *userdata,
                             const char *name, const char **holder)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

  if (handle == NULL || callback == NULL)
    return CUPTI_ERROR_INVALID_PARAMETER;
  pthread_mutex_lock(&lock);
  CUptiResult result = CUPTI_SUCCESS;
  if (!atomic_load(&subscribed)) {
    atomic_store(&subscriber.userdata, userdata);
    atomic_store(&subscriber.callback, callback);
  }
  *holder = simcuda_subscribe(deliver, name);
  if (*holder != NULL)
    result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  else {
    atomic_store(&subscribed, true);
    *handle = &subscriber;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *userdata)
{
  const char *holder;

  return note(subscribe(handle, callback, userdata, NULL, &holder));
}

#ifdef CUpti_SubscriberParams_STRUCT_SIZE /* from CUDA 13 on */
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *userdata,
                              CUpti_SubscriberParams *params)
{
  const char *holder = NULL;

  if (params != NULL && params->structSize < CUpti_SubscriberParams_STRUCT_SIZE)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  CUptiResult result = subscribe(handle, callback, userdata, params != NULL ? params->subscriberName : NULL, &holder);
  if (holder != NULL && params != NULL && params->oldSubscriberName != NULL && params->oldSubscriberSize > 0) {
    strncpy(params->oldSubscriberName, holder, params->oldSubscriberSize - 1);
    params->oldSubscriberName[params->oldSubscriberSize - 1] = '\0';
  }
  return note(result);
}
#endif

static bool ours(CUpti_SubscriberHandle handle) { return handle == &subscriber && atomic_load(&subscribed); }

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
  if (!ours(handle))
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  simcuda_unsubscribe();
  atomic_store(&subscribed, false);
  return CUPTI_SUCCESS;
}

/* The simulation calls back in the two API domains; the others may be enabled and stay silent. */
CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId cbid)
{
  if (!ours(handle) || domain <= CUPTI_CB_DOMAIN_INVALID || domain >= CUPTI_CB_DOMAIN_SIZE)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API && domain != CUPTI_CB_DOMAIN_RUNTIME_API)
    return CUPTI_SUCCESS;
  if (cbid == 0 || name_of(domain, cbid) == NULL) /* 0 has a name, INVALID, and stands for nothing */
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  simcuda_enable((enum simcuda_domain)domain, cbid, enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
  if (!ours(handle) || domain <= CUPTI_CB_DOMAIN_INVALID || domain >= CUPTI_CB_DOMAIN_SIZE)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  for (uint32_t cbid = 1; cbid < SIMCUDA_MAX_CBID; cbid++)
    if (name_of(domain, cbid) != NULL)
      simcuda_enable((enum simcuda_domain)domain, cbid, enable != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle)
{
  CUptiResult result = cuptiEnableDomain(enable, handle, CUPTI_CB_DOMAIN_DRIVER_API);

  return result != CUPTI_SUCCESS ? result : cuptiEnableDomain(enable, handle, CUPTI_CB_DOMAIN_RUNTIME_API);
}

CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                  CUpti_CallbackId cbid)
{
  if (!ours(handle) || enable == NULL || name_of(domain, cbid) == NULL)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  *enable = simcuda_enabled((enum simcuda_domain)domain, cbid);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
  const char *found = name_of(domain, cbid);

  if (name == NULL || found == NULL)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  *name = found;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSupportedDomains(size_t *count, CUpti_DomainTable *table)
{
  static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API};

  if (count == NULL || table == NULL)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  *count = sizeof domains / sizeof domains[0];
  *table = domains;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *device)
{
  uint32_t current;
  int ordinal = 0;

  if (device == NULL)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  if (context == NULL)
    context = simcuda_current_context(&current);
  if (context == NULL || simcuda_context_id(context, &ordinal) == 0)
    return note(CUPTI_ERROR_INVALID_CONTEXT);
  *device = (uint32_t)ordinal;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id)
{
  int ordinal;

  if (id == NULL)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  *id = simcuda_context_id(context, &ordinal);
  return *id != 0 ? CUPTI_SUCCESS : note(CUPTI_ERROR_INVALID_CONTEXT);
}

/* The clock of the real one: CLOCK_REALTIME in nanoseconds. */
CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
  struct timespec now;

  if (timestamp == NULL)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  clock_gettime(CLOCK_REALTIME, &now);
  *timestamp = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetLastError(void)
{
  CUptiResult error = last_error;

  last_error = CUPTI_SUCCESS;
  return error;
}

#define RESULTS(X)                                                                                          \
  X(CUPTI_SUCCESS)                                                                                          \
  X(CUPTI_ERROR_INVALID_PARAMETER)                                                                          \
  X(CUPTI_ERROR_INVALID_DEVICE) X(CUPTI_ERROR_INVALID_CONTEXT) X(CUPTI_ERROR_INVALID_OPERATION)             \
      X(CUPTI_ERROR_OUT_OF_MEMORY) X(CUPTI_ERROR_MAX_LIMIT_REACHED) X(CUPTI_ERROR_NOT_INITIALIZED)          \
          X(CUPTI_ERROR_NOT_COMPATIBLE) X(CUPTI_ERROR_NOT_SUPPORTED) X(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) \
              X(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) X(CUPTI_ERROR_UNKNOWN)

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
  if (text == NULL)
    return note(CUPTI_ERROR_INVALID_PARAMETER);
  switch (result) {
#define CASE(code) \
  case code: *text = #code; return CUPTI_SUCCESS;
    RESULTS(CASE)
#undef CASE
  default: *text = "CUPTI_ERROR_UNKNOWN"; return note(CUPTI_ERROR_INVALID_PARAMETER);
  }
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **text) { return cuptiGetResultString(result, text); }

/* Nothing to take down: the real one detaches itself, and so does this. */
CUptiResult cuptiFinalize(void)
{
  if (atomic_load(&subscribed))
    cuptiUnsubscribe(&subscriber);
  return CUPTI_SUCCESS;
}

/* ---- the activity API has nothing to offer here, and says so ---- */

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return (void)kind, note(CUPTI_ERROR_NOT_SUPPORTED); }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return (void)kind, note(CUPTI_ERROR_NOT_SUPPORTED); }
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete)
{
  return (void)request, (void)complete, note(CUPTI_ERROR_NOT_SUPPORTED);
}
CUptiResult cuptiActivityFlushAll(uint32_t flag) { return (void)flag, CUPTI_SUCCESS; }
