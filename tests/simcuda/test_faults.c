/* SPDX-License-Identifier: Apache-2.0
 * What the environment sets and breaks. The libraries read it once, so each case runs in a process of its own: this
 * program, called again with the name of the case. */
#include <cuda.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"

/* ---- cases: 0 is good, else the line that was not ---- */

#define WANT(condition) \
  do {                  \
    if (!(condition))   \
      return __LINE__;  \
  } while (0)

static int second_malloc_fails(void)
{
  void *a, *b;

  WANT(cudaMalloc(&a, 4) == cudaSuccess);
  WANT(cudaMalloc(&b, 4) == cudaErrorMemoryAllocation);
  WANT(cudaGetLastError() == cudaErrorMemoryAllocation);
  WANT(cudaMalloc(&b, 4) == cudaSuccess);
  WANT(cudaFree(a) == cudaSuccess && cudaFree(b) == cudaSuccess);
  return 0;
}

static int every_driver_alloc_fails(void)
{
  void *a;

  for (int i = 0; i < 3; i++)
    WANT(cudaMalloc(&a, 4) == cudaErrorLaunchFailure); /* comes up through the runtime */
  return 0;
}

static int no_device(void)
{
  int count = -1;

  WANT(cuInit(0) == CUDA_ERROR_NO_DEVICE);
  WANT(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  WANT(cudaDeviceSynchronize() == cudaErrorNoDevice);
  return 0;
}

static int another_capability(void)
{
  struct cudaDeviceProp prop;
  int major = 0, minor = -1;

  WANT(cudaGetDeviceProperties(&prop, 0) == cudaSuccess && prop.major == 12 && prop.minor == 0);
  WANT(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess && major == 12);
  WANT(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) == cudaSuccess && minor == 0);
  return 0;
}

static int three_devices(void)
{
  int count = 0, device = -1, can = 0;
  void *p;

  WANT(cudaGetDeviceCount(&count) == cudaSuccess && count == 3);
  WANT(cudaSetDevice(2) == cudaSuccess && cudaGetDevice(&device) == cudaSuccess && device == 2);
  WANT(cudaMalloc(&p, 100) == cudaSuccess);
  struct cudaPointerAttributes a;
  WANT(cudaPointerGetAttributes(&a, p) == cudaSuccess && a.device == 2);
  WANT(cudaDeviceCanAccessPeer(&can, 0, 2) == cudaSuccess && can == 1);
  WANT(cudaSetDevice(3) == cudaErrorInvalidDevice);
  WANT(cudaFree(p) == cudaSuccess);
  return 0;
}

static int lost_after_two(void)
{
  int *device, count, version;

  WANT(cudaMalloc((void **)&device, 4) == cudaSuccess);
  WANT(cudaMemset(device, 0, 4) == cudaSuccess);
  WANT(cudaDeviceSynchronize() == cudaSuccess);
  WANT(cudaMemset(device, 0, 4) == cudaSuccess);
  WANT(cudaDeviceSynchronize() == cudaErrorDevicesUnavailable);
  WANT(cudaMemset(device, 0, 4) == cudaErrorDevicesUnavailable);
  WANT(cudaGetDeviceCount(&count) == cudaErrorDevicesUnavailable);
  WANT(cudaGetLastError() == cudaErrorDevicesUnavailable);
  WANT(cudaDriverGetVersion(&version) == cudaSuccess);
  return 0;
}

static int slot_is_taken(void)
{
  CUpti_SubscriberHandle subscriber;

  WANT(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)1, NULL) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
#ifdef CUpti_SubscriberParams_STRUCT_SIZE /* from CUDA 13 on the holder can be asked for */
  char holder[64] = "";
  CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                   .oldSubscriberName = holder,
                                   .oldSubscriberSize = sizeof holder};

  WANT(cuptiSubscribe_v2(&subscriber, (CUpti_CallbackFunc)1, NULL, &params) ==
       CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  WANT(strcmp(holder, "Nsight Systems") == 0);
#endif
  return 0;
}

static int enters, exits;
static void count_sites(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
  (void)userdata, (void)cbid;
  if (domain != CUPTI_CB_DOMAIN_RUNTIME_API)
    return;
  if (((const CUpti_CallbackData *)data)->callbackSite == CUPTI_API_ENTER)
    enters++;
  else
    exits++;
}

static int subscribe(void)
{
  CUpti_SubscriberHandle subscriber;

  WANT(cuptiSubscribe(&subscriber, count_sites, NULL) == CUPTI_SUCCESS);
  WANT(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) == CUPTI_SUCCESS);
  return 0;
}

static int exit_is_missing_once(void)
{
  WANT(subscribe() == 0);
  for (int i = 0; i < 3; i++)
    WANT(cudaDeviceSynchronize() == cudaSuccess);
  WANT(enters == 3 && exits == 2);
  return 0;
}

static int enter_is_missing(void)
{
  WANT(subscribe() == 0);
  WANT(cudaDeviceSynchronize() == cudaSuccess);
  WANT(enters == 0 && exits == 1);
  return 0;
}

static int a_failing_call_has_both_callbacks(void)
{
  WANT(subscribe() == 0);
  WANT(cudaDeviceSynchronize() == cudaErrorLaunchTimeout);
  WANT(enters == 1 && exits == 1);
  return 0;
}

static int little_memory(void)
{
  size_t available, total;
  void *p;

  WANT(cudaMemGetInfo(&available, &total) == cudaSuccess && total == 64u << 20);
  WANT(cudaMalloc(&p, 65u << 20) == cudaErrorMemoryAllocation);
  WANT(cudaMalloc(&p, 64u << 20) == cudaSuccess);
  return 0;
}

/* Each wait that learns something costs 2 ms; a pageable copy and the synchronise behind it learn one thing. */
static int round_trip(void)
{
  int *device, pageable, *pinned;
  cudaStream_t stream;

  WANT(cudaMalloc((void **)&device, 4) == cudaSuccess && cudaMallocHost((void **)&pinned, 4) == cudaSuccess);
  WANT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
       cudaDeviceSynchronize() == cudaSuccess);
  double start = now_us();
  WANT(cudaMemsetAsync(device, 0, 4, stream) == cudaSuccess);
  WANT(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  WANT(cudaStreamSynchronize(stream) == cudaSuccess);
  double after_pinned = now_us();
  WANT(after_pinned - start >= 2000);
  WANT(cudaMemcpyAsync(&pageable, device, 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  double after_copy = now_us();
  WANT(after_copy - after_pinned >= 2000);
  double least = 1e9; /* of several: the machine may be busy */
  for (int i = 0; i < 20; i++) {
    double before = now_us();
    WANT(cudaStreamSynchronize(stream) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
    if (now_us() - before < least)
      least = now_us() - before;
  }
  WANT(least < 1500);
  start = now_us();
  WANT(cudaMemcpy(&pageable, device, 4, cudaMemcpyDeviceToHost) == cudaSuccess);
  WANT(now_us() - start >= 2000);
  return 0;
}

static int misunderstood(void)
{
  WANT(cuInit(0) == CUDA_ERROR_INVALID_VALUE);
  WANT(cudaDeviceSynchronize() == cudaErrorInvalidValue);
  return 0;
}

static int other_version(void)
{
  uint32_t version;

  WANT(cuptiGetVersion(&version) == CUPTI_SUCCESS && version == 120001);
  return 0;
}

static int injected_once(void)
{
  WANT(getenv("TEST_INJECTED") == NULL);
  WANT(cuInit(0) == CUDA_SUCCESS && cuInit(0) == CUDA_SUCCESS && cudaDeviceSynchronize() == cudaSuccess);
  WANT(getenv("TEST_INJECTED") != NULL && strcmp(getenv("TEST_INJECTED"), "once") == 0);
  return 0;
}

static int failing_injection_is_silent(void)
{
  WANT(cuInit(0) == CUDA_SUCCESS && cudaDeviceSynchronize() == cudaSuccess);
  return 0;
}

__attribute__((unused)) static int overrun_is_reported(void)
{
  int *device;

  WANT(load_kernels(NULL) == 0);
  WANT(cudaMalloc((void **)&device, 6) == cudaSuccess);
  launch_add(device + 1, 1, NULL); /* four bytes, of which two are the block's */
  WANT(cudaFree(device) == cudaErrorIllegalAddress);
  return 0;
}

static const struct test_case {
  const char *name;
  int (*run)(void);
  const char *variable, *value;
  const char *says; /* on stderr; NULL: nothing may be said */
} cases[] = {
    {"second_malloc_fails", second_malloc_fails, "SIMCUDA_FAIL", "cudaMalloc=cudaErrorMemoryAllocation@2", NULL},
    {"second_malloc_fails", second_malloc_fails, "SIMCUDA_FAIL", "cudaFreeHost=1,cudaMalloc=2@2", NULL},
    {"every_driver_alloc_fails", every_driver_alloc_fails, "SIMCUDA_FAIL", "cuMemAlloc=CUDA_ERROR_LAUNCH_FAILED", NULL},
    {"no_device", no_device, "SIMCUDA_DEVICES", "0", NULL},
    {"three_devices", three_devices, "SIMCUDA_DEVICES", "3", NULL},
    {"another_capability", another_capability, "SIMCUDA_CAPABILITY", "12.0", NULL},
    {"lost_after_two", lost_after_two, "SIMCUDA_LOST", "2", NULL},
    {"slot_is_taken", slot_is_taken, "SIMCUDA_SUBSCRIBER", "Nsight Systems", NULL},
    {"exit_is_missing_once", exit_is_missing_once, "SIMCUDA_UNPAIRED", "cudaDeviceSynchronize@2", NULL},
    {"enter_is_missing", enter_is_missing, "SIMCUDA_UNPAIRED", "cudaDeviceSynchronize:exit", NULL},
    {"a_failing_call_has_both_callbacks", a_failing_call_has_both_callbacks, "SIMCUDA_FAIL",
     "cudaDeviceSynchronize=702", NULL},
    {"little_memory", little_memory, "SIMCUDA_MEMORY", "64M", NULL},
    {"round_trip", round_trip, "SIMCUDA_ROUND_TRIP", "2ms", NULL},
    {"misunderstood", misunderstood, "SIMCUDA_ROUND_TRIP", "fast", "SIMCUDA_ROUND_TRIP=fast was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_MEMORY", "-5", "SIMCUDA_MEMORY=-5 was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_DEVICES", "17", "SIMCUDA_DEVICES=17 was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_CAPABILITY", "sm_90", "SIMCUDA_CAPABILITY=sm_90 was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_FAIL", "cudaMalloc", "SIMCUDA_FAIL=cudaMalloc was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_FAIL", "cudaMalloc=nonsense", "was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_FAIL", "cudaMalloc=2@0", "was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_UNPAIRED", "cudaMalloc:both", "was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_THREADS", "0", "was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_CUPTI_VERSION", "new", "was not understood"},
    {"misunderstood", misunderstood, "SIMCUDA_LOST", "soon", "was not understood"},
    {"other_version", other_version, "SIMCUDA_CUPTI_VERSION", "120001", NULL},
    {"injected_once", injected_once, "CUDA_INJECTION64_PATH", INJECTED, NULL},
    {"failing_injection_is_silent", failing_injection_is_silent, "CUDA_INJECTION64_PATH", "/no/such/library.so", NULL},
    {"failing_injection_is_silent", failing_injection_is_silent, "CUDA_INJECTION64_PATH", "libm.so.6", NULL},
#ifndef __SANITIZE_ADDRESS__ /* which stops the kernel itself */
    {"overrun_is_reported", overrun_is_reported, "SIMCUDA_DEVICES", "1", "behind the end of a block of 6 bytes"},
#endif
};

static void run_case(const struct test_case *test)
{
  int output[2], status;
  char said[2000];
  size_t length = 0;
  ssize_t got;

  assert_int_equal(pipe(output), 0);
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(output[1], STDERR_FILENO);
    close(output[0]);
    close(output[1]);
    setenv(test->variable, test->value, 1);
    execl("/proc/self/exe", "test_simcuda_faults", test->name, (char *)NULL);
    _exit(127);
  }
  close(output[1]);
  while (length < sizeof said - 1 && (got = read(output[0], said + length, sizeof said - 1 - length)) > 0)
    length += (size_t)got;
  said[length] = '\0';
  close(output[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("%s with %s=%s: status %#x; it said: %s", test->name, test->variable, test->value, (unsigned)status, said);
  if (test->says == NULL ? said[0] != '\0' : strstr(said, test->says) == NULL)
    fail_msg("%s with %s=%s said: %s", test->name, test->variable, test->value, said);
}

static void the_environment_sets_and_breaks_as_written(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    run_case(&cases[i]);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_environment_sets_and_breaks_as_written)};

  if (argc != 2)
    return cmocka_run_group_tests(tests, NULL, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (strcmp(cases[i].name, argv[1]) == 0) {
      int line = cases[i].run();
      if (line != 0)
        fprintf(stderr, "%s: line %d\n", argv[1], line);
      return line != 0;
    }
  return 2;
}
