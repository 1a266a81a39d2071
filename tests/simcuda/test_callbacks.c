/* SPDX-License-Identifier: Apache-2.0
 * Callbacks as a tool sees them through CUPTI: pairing, nesting, correlation, parameters, results. */
#include <cuda.h>
#include <cupti.h>
#include <pthread.h>
#include <string.h>

#include "kernels.h"

struct event {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId cbid;
  bool exit;
  char name[64], symbol[64];
  uint32_t correlation, context;
  uint64_t *slot, slot_value;
  int result;
  cudaMemcpyAsync_v3020_params copy; /* of cudaMemcpyAsync */
};
enum { MOST = 256 };
static struct event events[MOST];
static unsigned event_count;
static CUpti_SubscriberHandle subscriber;

static void on_call(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
  const CUpti_CallbackData *call = data;
  struct event *event = &events[event_count < MOST ? event_count++ : MOST - 1];

  *(int *)userdata += 1;
  *event = (struct event){.domain = domain,
                          .cbid = cbid,
                          .exit = call->callbackSite == CUPTI_API_EXIT,
                          .correlation = call->correlationId,
                          .context = call->contextUid,
                          .slot = call->correlationData,
                          .slot_value = *call->correlationData};
  strncpy(event->name, call->functionName, sizeof event->name - 1);
  if (call->symbolName != NULL)
    strncpy(event->symbol, call->symbolName, sizeof event->symbol - 1);
  if (event->exit)
    event->result = *(const int *)call->functionReturnValue;
  else
    *call->correlationData = 1000 + event_count;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid == CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020)
    event->copy = *(const cudaMemcpyAsync_v3020_params *)call->functionParams;
}
static int delivered;

static void enable(bool runtime, bool driver)
{
  OK(cuptiEnableDomain(runtime, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
  OK(cuptiEnableDomain(driver, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
  event_count = 0;
}

static void a_driver_call_nests_in_its_runtime_call_with_the_same_correlation_id(void **state)
{
  cudaStream_t stream;

  (void)state;
  OK(cudaStreamCreate(&stream));
  enable(true, true);
  OK(cudaStreamSynchronize(stream));
  enable(false, false);
  OK(cudaStreamSynchronize(stream));
  assert_int_equal(event_count, 0);
  enable(true, true);
  OK(cudaStreamSynchronize(stream));
  OK(cudaStreamSynchronize(stream));
  assert_int_equal(event_count, 8);
  static const struct {
    const char *name;
    bool exit;
  } expected[4] = {{"cudaStreamSynchronize", false},
                   {"cuStreamSynchronize", false},
                   {"cuStreamSynchronize", true},
                   {"cudaStreamSynchronize", true}};
  for (unsigned i = 0; i < 8; i++) {
    assert_string_equal(events[i].name, expected[i % 4].name);
    assert_int_equal(events[i].exit, expected[i % 4].exit);
    assert_int_equal(events[i].correlation, events[i / 4 * 4].correlation);
    assert_int_not_equal(events[i].context, 0);
  }
  assert_int_equal(events[0].domain, CUPTI_CB_DOMAIN_RUNTIME_API);
  assert_int_equal(events[0].cbid, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
  assert_int_equal(events[1].domain, CUPTI_CB_DOMAIN_DRIVER_API);
  assert_int_equal(events[1].cbid, CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize);
  assert_int_not_equal(events[0].correlation, 0);
  assert_int_not_equal(events[0].correlation, events[4].correlation);
  enable(false, false);
  OK(cudaStreamDestroy(stream));
}

static void each_call_has_a_slot_of_its_own_from_enter_to_exit(void **state)
{
  (void)state;
  enable(true, true);
  OK(cudaDeviceSynchronize());
  assert_int_equal(event_count, 4);
  assert_ptr_equal(events[0].slot, events[3].slot);
  assert_ptr_equal(events[1].slot, events[2].slot);
  assert_ptr_not_equal(events[0].slot, events[1].slot);
  assert_int_equal(events[0].slot_value, 0);
  assert_int_equal(events[3].slot_value, 1001);
  assert_int_equal(events[2].slot_value, 1002);
  enable(false, false);
}

static void parameters_and_results_are_those_of_the_call(void **state)
{
  int *device, back;
  cudaStream_t stream;

  (void)state;
  OK(cudaMalloc((void **)&device, 4));
  OK(cudaStreamCreate(&stream));
  enable(true, false);
  OK(cudaMemcpyAsync(&back, device, 4, cudaMemcpyDeviceToHost, stream));
  FAILS(cudaMemcpyAsync(&back, device, 5, cudaMemcpyDeviceToHost, stream), cudaErrorInvalidValue);
  assert_int_equal(event_count, 4);
  assert_ptr_equal(events[0].copy.dst, &back);
  assert_ptr_equal(events[0].copy.src, device);
  assert_int_equal(events[0].copy.count, 4);
  assert_int_equal(events[0].copy.kind, cudaMemcpyDeviceToHost);
  assert_ptr_equal(events[0].copy.stream, stream);
  assert_int_equal(events[1].result, cudaSuccess);
  assert_int_equal(events[2].copy.count, 5);
  assert_int_equal(events[3].result, cudaErrorInvalidValue);
  enable(false, false);
  cudaGetLastError();
  OK(cudaFree(device));
  OK(cudaStreamDestroy(stream));
}

static void launches_name_their_kernel(void **state)
{
  int *device;

  (void)state;
  OK(cudaMalloc((void **)&device, 4));
  enable(true, true);
  launch_add(device, 1, NULL);
  assert_int_equal(event_count, 4);
  for (int i = 0; i < 4; i++)
    assert_string_equal(events[i].symbol, "test_add");
  enable(false, false);
  OK(cudaFree(device));
}

static void one_id_can_be_enabled_alone(void **state)
{
  uint32_t on = 7;

  (void)state;
  enable(false, false);
  OK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize));
  OK(cudaDeviceSynchronize());
  OK(cudaStreamSynchronize(NULL));
  assert_int_equal(event_count, 2);
  assert_string_equal(events[0].name, "cuCtxSynchronize");
  OK(cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize));
  assert_int_equal(on, 1);
  OK(cuptiEnableCallback(0, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize));
  OK(cudaDeviceSynchronize());
  assert_int_equal(event_count, 2);
  assert_int_not_equal(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, 5000), CUPTI_SUCCESS);
  assert_int_not_equal(cuptiEnableCallback(1, subscriber, (CUpti_CallbackDomain)77, 1), CUPTI_SUCCESS);
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);

static void per_thread_forms_have_ids_of_their_own(void **state)
{
  (void)state;
  enable(true, true);
  OK(cudaStreamSynchronize_ptsz(NULL));
  assert_int_equal(event_count, 4);
  assert_int_equal(events[0].cbid, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_ptsz_v7000);
  assert_int_equal(events[1].cbid, CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz);
  enable(false, false);
}

static CUcontext shared_context;
static void *use_the_driver(void *unused)
{
  OK(cuCtxSetCurrent(shared_context));
  OK(cuCtxSynchronize());
  return unused;
}

/* A driver call that the program makes itself is a call of its own. */
static void a_direct_driver_call_has_its_own_correlation_id(void **state)
{
  pthread_t thread;

  (void)state;
  OK(cudaDeviceSynchronize());
  OK(cuCtxGetCurrent(&shared_context));
  enable(true, true);
  OK(cudaDeviceSynchronize());
  OK(cuCtxSynchronize());
  assert_int_equal(event_count, 6);
  assert_int_not_equal(events[4].correlation, events[0].correlation);
  event_count = 0;
  assert_int_equal(pthread_create(&thread, NULL, use_the_driver, NULL), 0);
  pthread_join(thread, NULL);
  assert_int_equal(event_count, 4);
  assert_int_not_equal(events[0].correlation, events[2].correlation);
  enable(false, false);
}

enum { HOLDER_NAME = 64 };

/* holder, NULL or HOLDER_NAME bytes, gets the name of the tool that has the slot; CUDA 12's CUPTI tells nobody. */
static CUptiResult subscribe_as(const char *name, CUpti_SubscriberHandle *handle, char *holder)
{
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
  CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                   .subscriberName = name,
                                   .oldSubscriberName = holder,
                                   .oldSubscriberSize = holder ? HOLDER_NAME : 0};
  return cuptiSubscribe_v2(handle, on_call, &delivered, &params);
#else
  (void)name, (void)holder;
  return cuptiSubscribe(handle, on_call, &delivered);
#endif
}

static void there_is_one_slot_and_its_holder_is_named(void **state)
{
  CUpti_SubscriberHandle second;
  char holder[HOLDER_NAME] = "";

  (void)state;
  FAILS(cuptiSubscribe(&second, on_call, &delivered), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  FAILS(subscribe_as("other", &second, holder), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
  assert_string_equal(holder, "CUPTI for test");
#endif
  OK(cuptiUnsubscribe(subscriber));
  FAILS(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), CUPTI_ERROR_INVALID_PARAMETER);
  event_count = 0;
  OK(cudaDeviceSynchronize());
  assert_int_equal(event_count, 0);
  OK(subscribe_as("test", &subscriber, NULL));
  FAILS(cuptiSubscribe(&second, NULL, &delivered), CUPTI_ERROR_INVALID_PARAMETER);
  FAILS(cuptiGetLastError(), CUPTI_ERROR_INVALID_PARAMETER);
  OK(cuptiGetLastError());
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
  CUpti_SubscriberParams params = {.structSize = 3};
  FAILS(cuptiSubscribe_v2(&second, on_call, &delivered, &params), CUPTI_ERROR_INVALID_PARAMETER);
  FAILS(cuptiGetLastError(), CUPTI_ERROR_INVALID_PARAMETER);
#endif
}

static void small_questions_are_answered(void **state)
{
  uint32_t version = 0, device = 9, id = 0;
  uint64_t first = 0, second = 0;
  const char *text = NULL;
  CUcontext context;

  (void)state;
  OK(cuptiGetVersion(&version));
  assert_int_equal(version, CUPTI_API_VERSION);
  OK(cuCtxGetCurrent(&context));
  OK(cuptiGetDeviceId(context, &device));
  assert_int_equal(device, 0);
  OK(cuptiGetContextId(context, &id));
  assert_int_not_equal(id, 0);
  OK(cuptiGetTimestamp(&first));
  OK(cuptiGetTimestamp(&second));
  assert_true(second >= first && first > 1500000000000000000u);
  OK(cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text));
  assert_string_equal(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
}

static int set_up(void **state)
{
  return load_kernels(state) != 0 || subscribe_as("test", &subscriber, NULL) != CUPTI_SUCCESS;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_driver_call_nests_in_its_runtime_call_with_the_same_correlation_id),
      cmocka_unit_test(each_call_has_a_slot_of_its_own_from_enter_to_exit),
      cmocka_unit_test(parameters_and_results_are_those_of_the_call),
      cmocka_unit_test(launches_name_their_kernel),
      cmocka_unit_test(one_id_can_be_enabled_alone),
      cmocka_unit_test(per_thread_forms_have_ids_of_their_own),
      cmocka_unit_test(a_direct_driver_call_has_its_own_correlation_id),
      cmocka_unit_test(there_is_one_slot_and_its_holder_is_named),
      cmocka_unit_test(small_questions_are_answered),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
