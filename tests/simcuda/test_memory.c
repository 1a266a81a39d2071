/* SPDX-License-Identifier: Apache-2.0
 * Memory: what it holds when new, its limits, kinds of pointers, and copies of each shape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

static void new_memory_reads_as_nan(void **state)
{
  static const size_t sizes[] = {4, 1000, 1 << 20, (size_t)65 << 20};
  float back;

  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    char *p;
    OK(cudaMalloc((void **)&p, sizes[i]));
    for (size_t at = 0; at + 4 <= sizes[i]; at += sizes[i] > 4096 ? sizes[i] / 7 / 4 * 4 : 4) {
      OK(cudaMemcpy(&back, p + at, sizeof back, cudaMemcpyDeviceToHost));
      assert_true(isnan(back));
    }
    OK(cudaMemset(p, 0, sizes[i]));
    OK(cudaMemcpy(&back, p + sizes[i] - 4, sizeof back, cudaMemcpyDeviceToHost));
    assert_true(back == 0);
    OK(cudaFree(p));
  }
}

static void memory_ends(void **state)
{ /* SIMCUDA_MEMORY is 8G unless set */
  size_t available, total, before;
  void *a, *b;

  (void)state;
  OK(cudaMemGetInfo(&before, &total));
  assert_int_equal(total, (size_t)8 << 30);
  OK(cudaMalloc(&a, (size_t)5 << 30)); /* not touched, so not paid for */
  OK(cudaMemGetInfo(&available, &total));
  assert_int_equal(before - available, (size_t)5 << 30);
  FAILS(cudaMalloc(&b, (size_t)4 << 30), cudaErrorMemoryAllocation);
  FAILS(cudaGetLastError(), cudaErrorMemoryAllocation);
  OK(cudaFree(a));
  OK(cudaMalloc(&b, (size_t)4 << 30));
  OK(cudaFree(b));
  OK(cudaMemGetInfo(&available, &total));
  assert_int_equal(before, available);
}

static void pointers_know_their_kind(void **state)
{
  struct cudaPointerAttributes a;
  char pageable[16], registered[64];
  void *device, *managed, *pinned, *pool, *mapped;

  (void)state;
  OK(cudaMalloc(&device, 100));
  OK(cudaMallocManaged(&managed, 100, cudaMemAttachGlobal));
  OK(cudaMallocHost(&pinned, 100));
  OK(cudaMallocAsync(&pool, 100, NULL));
  OK(cudaHostRegister(registered, sizeof registered, 0));
  OK(cudaPointerGetAttributes(&a, device));
  assert_int_equal(a.type, cudaMemoryTypeDevice);
  assert_null(a.hostPointer);
  OK(cudaPointerGetAttributes(&a, (char *)pinned + 99));
  assert_int_equal(a.type, cudaMemoryTypeHost);
  OK(cudaPointerGetAttributes(&a, registered + 5));
  assert_int_equal(a.type, cudaMemoryTypeHost);
  OK(cudaPointerGetAttributes(&a, managed));
  assert_int_equal(a.type, cudaMemoryTypeManaged);
  OK(cudaPointerGetAttributes(&a, pool));
  assert_int_equal(a.type, cudaMemoryTypeDevice);
  OK(cudaPointerGetAttributes(&a, pageable));
  assert_int_equal(a.type, cudaMemoryTypeUnregistered);
  OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  assert_ptr_equal(mapped, pinned);
  FAILS(cudaHostGetDevicePointer(&mapped, pageable, 0), cudaErrorInvalidValue);
  FAILS(cudaHostRegister(registered + 8, 8, 0), cudaErrorHostMemoryAlreadyRegistered);
  OK(cudaHostUnregister(registered));
  FAILS(cudaHostUnregister(registered), cudaErrorHostMemoryNotRegistered);
  OK(cudaFree(device));
  OK(cudaFree(managed));
  OK(cudaFreeHost(pinned));
  OK(cudaFreeAsync(pool, NULL));
  OK(cudaDeviceSynchronize());
}

static void wrong_pointers_are_refused(void **state)
{
  char host[16];
  char *device;
  void *pinned;

  (void)state;
  OK(cudaMalloc((void **)&device, 16));
  OK(cudaMallocHost(&pinned, 16));
  FAILS(cudaMemcpy(host, device, 17, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(host, device + 8, 9, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(host, host, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(host, host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(NULL, device, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  FAILS(cudaMemcpy(host, device, 4, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
  FAILS(cudaMemset(host, 0, 4), cudaErrorInvalidValue);
  FAILS(cudaMemcpy2D(device, 16, host, 16, 4, SIZE_MAX / 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  FAILS(cudaMemset2D(device, (size_t)1 << 60, 0, 4, 17), cudaErrorInvalidValue);
  FAILS(cudaFree(device + 1), cudaErrorInvalidValue);
  FAILS(cudaFree(pinned), cudaErrorInvalidValue);
  FAILS(cudaFreeHost(device), cudaErrorInvalidValue);
  FAILS(cudaFree(host), cudaErrorInvalidValue);
  OK(cudaFree(device));
  FAILS(cudaFree(device), cudaErrorInvalidValue);
  OK(cudaFreeHost(pinned));
  cudaGetLastError();
}

static void areas_are_copied_row_by_row(void **state)
{
  enum { ROWS = 5, WIDTH = 12 };
  char *device, host[ROWS][20], back[ROWS][WIDTH];
  size_t pitch;

  (void)state;
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < 20; j++)
      host[i][j] = (char)(10 * i + j);
  OK(cudaMallocPitch((void **)&device, &pitch, WIDTH, ROWS));
  assert_true(pitch >= WIDTH);
  OK(cudaMemcpy2D(device, pitch, host, 20, WIDTH, ROWS, cudaMemcpyHostToDevice));
  OK(cudaMemset2D(device + pitch, pitch, 7, 3, 2)); /* three bytes of rows 1 and 2 */
  OK(cudaMemcpy2DAsync(back, WIDTH, device, pitch, WIDTH, ROWS, cudaMemcpyDefault, NULL));
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < WIDTH; j++)
      assert_int_equal(back[i][j], (i == 1 || i == 2) && j < 3 ? 7 : 10 * i + j);
  FAILS(cudaMemcpy2D(device, pitch, host, 8, WIDTH, ROWS, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  OK(cudaFree(device));
}

static void arrays_and_volumes_are_copied(void **state)
{
  enum { W = 6, H = 4, D = 3 };
  struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindSigned};
  int host[D][H][W], back[D][H][W];
  cudaArray_t array;

  (void)state;
  for (int i = 0; i < D * H * W; i++)
    (&host[0][0][0])[i] = i;
  OK(cudaMalloc3DArray(&array, &desc, (struct cudaExtent){W, H, D}, 0));
  struct cudaMemcpy3DParms in = {
      .srcPtr = {host, W * 4, W, H}, .dstArray = array, .extent = {W, H, D}, .kind = cudaMemcpyHostToDevice};
  OK(cudaMemcpy3D(&in));
  struct cudaPitchedPtr volume;
  OK(cudaMalloc3D(&volume, (struct cudaExtent){W * 4, H, D}));
  struct cudaMemcpy3DParms across = {
      .srcArray = array, .dstPtr = volume, .extent = {W, H, D}, .kind = cudaMemcpyDeviceToDevice};
  OK(cudaMemcpy3D(&across));
  memset(back, 0, sizeof back);
  struct cudaMemcpy3DParms out = {
      .srcPtr = volume, .dstPtr = {back, W * 4, W * 4, H}, .extent = {W * 4, H, D}, .kind = cudaMemcpyDeviceToHost};
  OK(cudaMemcpy3DAsync(&out, NULL));
  assert_memory_equal(host, back, sizeof host);
  int row[W];
  OK(cudaMemcpy2DFromArray(row, sizeof row, array, 0, 2, sizeof row, 1, cudaMemcpyDeviceToHost));
  assert_memory_equal(row, host[0][2], sizeof row);
  OK(cudaFreeArray(array));
  OK(cudaFree(volume.ptr));
}

static void a_batch_copies_each_of_its_pieces(void **state)
{
  struct cudaMemcpyAttributes attributes = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
  int *device, host[2] = {3, 4}, back[2] = {0};
  size_t sizes[2] = {4, 4}, index = 0;
  cudaStream_t stream;

  (void)state;
  OK(cudaStreamCreate(&stream));
  OK(cudaMalloc((void **)&device, 8));
#if CUDART_VERSION >= 13000
  void *const up[2] = {device + 1, device};
  const void *const from[2] = {host, host + 1};
#define BATCH(stream) cudaMemcpyBatchAsync(up, from, sizes, 2, &attributes, &index, 1, stream)
#else
  void *up[2] = {device + 1, device}, *from[2] = {host, host + 1};
  size_t failed;
#define BATCH(stream) cudaMemcpyBatchAsync(up, from, sizes, 2, &attributes, &index, 1, &failed, stream)
#endif
  OK(BATCH(stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(back, device, 8, cudaMemcpyDeviceToHost));
  assert_int_equal(back[0], 4);
  assert_int_equal(back[1], 3);
  FAILS(BATCH(NULL), cudaErrorInvalidValue);
  cudaGetLastError();
  OK(cudaFree(device));
  OK(cudaStreamDestroy(stream));
}

static void stream_ordered_memory_lives_until_its_turn(void **state)
{
  struct gate gate = {0};
  int *p, back = 0;
  cudaStream_t stream;

  (void)state;
  OK(cudaStreamCreate(&stream));
  OK(cudaMallocAsync((void **)&p, 4, stream));
  launch_pass(&gate, stream);
  OK(cudaMemsetAsync(p, 0, 4, stream));
  launch_add(p, 6, stream);
  int *pinned;
  OK(cudaMallocHost((void **)&pinned, 4));
  OK(cudaMemcpyAsync(pinned, p, 4, cudaMemcpyDeviceToHost, stream));
  OK(cudaFreeAsync(p, stream));
  FAILS(cudaMemcpy(&back, p, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  atomic_store(&gate.open, true);
  OK(cudaStreamSynchronize(stream));
  assert_int_equal(*pinned, 6);
  cudaGetLastError();
  OK(cudaFreeHost(pinned));
  OK(cudaStreamDestroy(stream));
}

static void the_device_describes_itself_as_simulated(void **state)
{
  struct cudaDeviceProp properties;
  int count, value, device = -1;
  char id[20];

  (void)state;
  OK(cudaGetDeviceCount(&count));
  assert_int_equal(count, 1);
  OK(cudaGetDeviceProperties(&properties, 0));
  assert_string_equal(properties.name, "synccount simulated device");
  assert_int_equal(properties.totalGlobalMem, (size_t)8 << 30);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  assert_int_equal(value, properties.multiProcessorCount);
  OK(cudaDeviceGetPCIBusId(id, sizeof id, 0));
  OK(cudaDeviceGetByPCIBusId(&device, id));
  assert_int_equal(device, 0);
  FAILS(cudaSetDevice(1), cudaErrorInvalidDevice);
  FAILS(cudaGetDeviceProperties(&properties, 1), cudaErrorInvalidDevice);
  OK(cudaRuntimeGetVersion(&value));
  assert_int_equal(value, CUDART_VERSION);
  assert_string_equal(cudaGetErrorName(cudaErrorStreamCaptureUnsupported), "cudaErrorStreamCaptureUnsupported");
  assert_string_equal(cudaGetErrorString(cudaErrorNotReady), "device not ready");
  cudaGetLastError();
}

static void driver_functions_are_found_by_name(void **state)
{
  enum cudaDriverEntryPointQueryResult status;
  void *function = NULL, *same = NULL;

  (void)state;
  OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, CUDART_VERSION, cudaEnableDefault, &status));
  assert_int_equal(status, cudaDriverEntryPointSuccess);
  OK(cudaGetDriverEntryPointByVersion("cuMemAlloc_v2", &same, CUDART_VERSION, cudaEnableDefault, &status));
  assert_ptr_equal(function, same);
  OK(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, CUDART_VERSION, cudaEnableDefault, &status));
  assert_int_equal(status, cudaDriverEntryPointSymbolNotFound);
  assert_null(function);
}

static void a_reset_device_can_be_used_again(void **state)
{
  void *p;

  (void)state;
  OK(cudaDeviceReset());
  OK(cudaMalloc(&p, 100));
  OK(cudaFree(p));
  OK(cudaDeviceSynchronize());
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(new_memory_reads_as_nan),
      cmocka_unit_test(memory_ends),
      cmocka_unit_test(pointers_know_their_kind),
      cmocka_unit_test(wrong_pointers_are_refused),
      cmocka_unit_test(areas_are_copied_row_by_row),
      cmocka_unit_test(arrays_and_volumes_are_copied),
      cmocka_unit_test(a_batch_copies_each_of_its_pieces),
      cmocka_unit_test(stream_ordered_memory_lives_until_its_turn),
      cmocka_unit_test(the_device_describes_itself_as_simulated),
      cmocka_unit_test(driver_functions_are_found_by_name),
      cmocka_unit_test(a_reset_device_can_be_used_again),
  };
  return cmocka_run_group_tests(tests, load_kernels, NULL);
}
