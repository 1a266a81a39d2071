/* SPDX-License-Identifier: Apache-2.0
 * Which calls make the host wait: the table that was measured on a GPU, row by row, with a kernel that cannot end
 * running on the same stream, on a non-blocking stream, or on a blocking one. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

enum { BYTES = 1 << 20 };

static struct {
  void *device, *device2, *pool, *managed, *pinned, *pageable, *registered;
  cudaArray_t array;
  cudaStream_t same, other; /* same: where async calls go; non-blocking */
  int failures;
} t;

static void check(cudaError_t error)
{
  if (error != cudaSuccess)
    t.failures++;
}

#define CALL(name, call)         \
  static void name(void *unused) \
  {                              \
    (void)unused;                \
    check(call);                 \
  }
CALL(memcpy_d2h, cudaMemcpy(t.pageable, t.device, 16, cudaMemcpyDeviceToHost))
CALL(memcpy_d2h_pinned, cudaMemcpy(t.pinned, t.device, 16, cudaMemcpyDeviceToHost))
CALL(memcpy_h2d, cudaMemcpy(t.device, t.pageable, 16, cudaMemcpyHostToDevice))
CALL(memcpy_h2d_pinned, cudaMemcpy(t.device, t.pinned, 16, cudaMemcpyHostToDevice))
CALL(memcpy_h2d_large, cudaMemcpy(t.device, t.pageable, BYTES, cudaMemcpyHostToDevice))
CALL(memcpy_h2h, cudaMemcpy(t.pageable, t.pinned, 16, cudaMemcpyHostToHost))
CALL(memcpy_d2d, cudaMemcpy(t.device2, t.device, BYTES, cudaMemcpyDeviceToDevice))
CALL(memcpy_managed_to_pageable, cudaMemcpy(t.pageable, t.managed, 16, cudaMemcpyDefault))
CALL(memcpy_2d_d2h, cudaMemcpy2D(t.pageable, 8, t.device, 16, 8, 4, cudaMemcpyDeviceToHost))
CALL(memcpy_empty, cudaMemcpy(t.pageable, t.device, 0, cudaMemcpyDeviceToHost))
CALL(async_d2h_pageable, cudaMemcpyAsync(t.pageable, t.device, 1, cudaMemcpyDeviceToHost, t.same))
CALL(async_d2h_pageable_large, cudaMemcpyAsync(t.pageable, t.device, BYTES, cudaMemcpyDeviceToHost, t.same))
CALL(async_d2h_pinned, cudaMemcpyAsync(t.pinned, t.device, BYTES, cudaMemcpyDeviceToHost, t.same))
CALL(async_d2h_registered, cudaMemcpyAsync(t.registered, t.device, BYTES, cudaMemcpyDeviceToHost, t.same))
CALL(async_d2h_managed, cudaMemcpyAsync(t.managed, t.device, BYTES, cudaMemcpyDefault, t.same))
CALL(async_h2d_pageable, cudaMemcpyAsync(t.device, t.pageable, 16, cudaMemcpyHostToDevice, t.same))
CALL(async_h2d_pageable_large, cudaMemcpyAsync(t.device, t.pageable, BYTES, cudaMemcpyHostToDevice, t.same))
CALL(async_h2d_pinned, cudaMemcpyAsync(t.device, t.pinned, BYTES, cudaMemcpyHostToDevice, t.same))
CALL(memset_device, cudaMemset(t.device, 0, BYTES))
CALL(memset_pinned, cudaMemset(t.pinned, 0, BYTES))
CALL(memset_managed, cudaMemset(t.managed, 0, BYTES))
CALL(memset_async_pinned, cudaMemsetAsync(t.pinned, 0, BYTES, t.same))
CALL(free_null, cudaFree(NULL))
CALL(free_async, cudaFreeAsync(t.pool, t.same))
CALL(device_synchronize, cudaDeviceSynchronize())
CALL(legacy_synchronize, cudaStreamSynchronize(NULL))
CALL(stream_synchronize, cudaStreamSynchronize(t.same))

static void free_device(void *unused)
{
  void *p;

  (void)unused;
  check(cudaMalloc(&p, 100));
  check(cudaFree(p));
}
static void free_managed(void *unused)
{
  void *p;

  (void)unused;
  check(cudaMallocManaged(&p, 100, cudaMemAttachGlobal));
  check(cudaFree(p));
}
static void free_pool(void *unused)
{
  void *p;

  (void)unused;
  check(cudaMallocAsync(&p, 100, t.other));
  check(cudaFree(p));
}
static void free_host(void *unused)
{
  void *p;

  (void)unused;
  check(cudaMallocHost(&p, 100));
  check(cudaFreeHost(p));
}
static void free_array(void *unused)
{
  struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t array;

  (void)unused;
  check(cudaMallocArray(&array, &desc, 16, 16, 0));
  check(cudaFreeArray(array));
}
static void unregister(void *unused)
{
  static char memory[100];

  (void)unused;
  check(cudaHostRegister(memory, sizeof memory, 0));
  check(cudaHostUnregister(memory));
}
static void allocate(void *unused)
{
  void *a, *b;

  (void)unused;
  check(cudaMalloc(&a, BYTES));
  check(cudaMallocHost(&b, BYTES)); /* freed when nothing runs any more: never, in this test */
}
static void destroy_stream(void *unused)
{
  cudaStream_t stream;
  cudaEvent_t event;

  (void)unused;
  check(cudaStreamCreate(&stream));
  check(cudaEventCreate(&event));
  check(cudaEventDestroy(event));
  check(cudaStreamDestroy(stream));
}

enum { NO = 0, YES = 1, NOT_ASKED = -1 };
static const struct row {
  const char *name;
  void (*call)(void *);
  int same, non_blocking,
      blocking; /* with the kernel on the call's own stream, another non-blocking one, a blocking one */
} rows[] = {
    {"cudaMemcpy D2H pageable", memcpy_d2h, YES, NO, YES},
    {"cudaMemcpy D2H pinned", memcpy_d2h_pinned, YES, NO, YES},
    {"cudaMemcpy H2D pageable", memcpy_h2d, YES, NO, YES},
    {"cudaMemcpy H2D pinned", memcpy_h2d_pinned, YES, NO, YES},
    {"cudaMemcpy H2D 1 MB", memcpy_h2d_large, YES, NO, YES},
    {"cudaMemcpy H2H", memcpy_h2h, YES, NO, YES},
    {"cudaMemcpy D2D", memcpy_d2d, NO, NO, NO},
    {"cudaMemcpy managed to pageable", memcpy_managed_to_pageable, YES, NO, YES},
    {"cudaMemcpy2D D2H", memcpy_2d_d2h, YES, NO, YES},
    {"cudaMemcpy of 0 bytes", memcpy_empty, NO, NO, NO},
    {"cudaMemcpyAsync D2H pageable 1 B", async_d2h_pageable, YES, NO, NO},
    {"cudaMemcpyAsync D2H pageable 1 MB", async_d2h_pageable_large, YES, NO, NO},
    {"cudaMemcpyAsync D2H pinned", async_d2h_pinned, NO, NO, NO},
    {"cudaMemcpyAsync D2H registered", async_d2h_registered, NO, NO, NO},
    {"cudaMemcpyAsync to managed", async_d2h_managed, NO, NO, NO},
    {"cudaMemcpyAsync H2D pageable 16 B", async_h2d_pageable, NO, NO, NO},
    {"cudaMemcpyAsync H2D pageable 1 MB", async_h2d_pageable_large, NO, NO, NO},
    {"cudaMemcpyAsync H2D pinned", async_h2d_pinned, NO, NO, NO},
    {"cudaMemset device", memset_device, NO, NO, NO},
    {"cudaMemset pinned", memset_pinned, YES, NO, YES},
    {"cudaMemset managed", memset_managed, YES, NO, YES},
    {"cudaMemsetAsync pinned", memset_async_pinned, NO, NO, NO},
    {"cudaFree", free_device, YES, YES, YES},
    {"cudaFree managed", free_managed, YES, YES, YES},
    {"cudaFree of NULL", free_null, NO, NO, NO},
    {"cudaFree of a cudaMallocAsync pointer", free_pool, NO, NO, NO},
    {"cudaFreeAsync", free_async, NO, NOT_ASKED, NOT_ASKED},
    {"cudaFreeHost", free_host, YES, YES, YES},
    {"cudaFreeArray", free_array, YES, YES, YES},
    {"cudaHostUnregister", unregister, YES, YES, YES},
    {"cudaMalloc, cudaMallocHost", allocate, NO, NO, NO},
    {"cudaStreamDestroy, cudaEventDestroy", destroy_stream, NO, NO, NO},
    {"cudaDeviceSynchronize", device_synchronize, YES, YES, YES},
    {"cudaStreamSynchronize of stream 0", legacy_synchronize, YES, NO, YES},
    {"cudaStreamSynchronize", stream_synchronize, YES, NO, NO},
};

/* The synchronous calls' own stream is the legacy one. */
static bool uses_legacy(const struct row *row)
{
  return strstr(row->name, "Async") == NULL && strcmp(row->name, "cudaStreamSynchronize") != 0;
}

static void expect(const struct row *row, const char *where, cudaStream_t gate, int expected)
{
  if (expected == NOT_ASKED)
    return;
  t.failures = 0;
  bool blocked = blocks(gate, expected == YES, row->call, NULL);
  if (blocked != (expected == YES) || t.failures != 0)
    fail_msg("%s, kernel on %s: %s, expected to %s; %d calls failed", row->name, where,
             blocked ? "blocked" : "did not block", expected == YES ? "block" : "return", t.failures);
}

static void calls_block_as_measured(void **state)
{
  cudaStream_t blocking;

  (void)state;
  OK(cudaStreamCreate(&blocking));
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    expect(&rows[i], "its own stream", uses_legacy(&rows[i]) ? NULL : t.same, rows[i].same);
    expect(&rows[i], "a non-blocking stream", t.other, rows[i].non_blocking);
    expect(&rows[i], "a blocking stream", blocking, rows[i].blocking);
  }
  OK(cudaStreamDestroy(blocking));
}

/* The source of an async upload from pageable memory is read before the call returns. */
static void a_pageable_upload_is_staged(void **state)
{
  struct gate gate = {0};
  int value = 41, back = 0;

  (void)state;
  launch_pass(&gate, t.same);
  OK(cudaMemcpyAsync(t.device, &value, sizeof value, cudaMemcpyHostToDevice, t.same));
  value = 99;
  atomic_store(&gate.open, true);
  OK(cudaStreamSynchronize(t.same));
  OK(cudaMemcpy(&back, t.device, sizeof back, cudaMemcpyDeviceToHost));
  assert_int_equal(back, 41);
}

/* One from pinned memory is read when its turn comes. */
static void a_pinned_upload_is_not_staged(void **state)
{
  struct gate gate = {0};
  int *value = t.pinned, back = 0;

  (void)state;
  *value = 41;
  launch_pass(&gate, t.same);
  OK(cudaMemcpyAsync(t.device, value, sizeof *value, cudaMemcpyHostToDevice, t.same));
  *value = 99;
  atomic_store(&gate.open, true);
  OK(cudaStreamSynchronize(t.same));
  OK(cudaMemcpy(&back, t.device, sizeof back, cudaMemcpyDeviceToHost));
  assert_int_equal(back, 99);
}

static int set_up(void **state)
{
  if (load_kernels(state) != 0)
    return 1;
  t.pageable = calloc(1, BYTES);
  t.registered = calloc(1, BYTES);
  return t.pageable == NULL || cudaMalloc(&t.device, BYTES) != 0 || cudaMalloc(&t.device2, BYTES) != 0 ||
         cudaMallocManaged(&t.managed, BYTES, cudaMemAttachGlobal) != 0 || cudaMallocHost(&t.pinned, BYTES) != 0 ||
         cudaHostRegister(t.registered, BYTES, 0) != 0 ||
         cudaStreamCreateWithFlags(&t.same, cudaStreamNonBlocking) != 0 ||
         cudaStreamCreateWithFlags(&t.other, cudaStreamNonBlocking) != 0 || cudaMallocAsync(&t.pool, 100, t.same) != 0;
}

static int tear_down(void **state)
{
  (void)state;
  cudaHostUnregister(t.registered);
  free(t.registered);
  free(t.pageable);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_block_as_measured),
      cmocka_unit_test(a_pageable_upload_is_staged),
      cmocka_unit_test(a_pinned_upload_is_not_staged),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
