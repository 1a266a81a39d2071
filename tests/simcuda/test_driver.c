/* SPDX-License-Identifier: Apache-2.0
 * The driver API on its own: what a C program that knows no runtime sees. */
#include <cuda.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"

static CUdevice device;
static CUcontext context;

static int set_up(void **state)
{
  CUdeviceptr p;
  int count;

  (void)state;
  if (cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED || cuMemAlloc(&p, 4) != CUDA_ERROR_NOT_INITIALIZED)
    return 1;
  if (cuInit(1) != CUDA_ERROR_INVALID_VALUE || cuInit(0) != CUDA_SUCCESS ||
      cuMemAlloc(&p, 4) != CUDA_ERROR_INVALID_CONTEXT)
    return 2;
  return cuDeviceGet(&device, 0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
         cuCtxSetCurrent(context) != CUDA_SUCCESS;
}

static void a_kernel_of_a_module_runs(void **state)
{
  CUmodule module;
  CUfunction function;
  CUdeviceptr p;
  int value = 5, back = 0;

  (void)state;
  OK(cuModuleLoadData(&module, "image"));
  OK(cuModuleGetFunction(&function, module, "test_add"));
  FAILS(cuModuleGetFunction(&function, module, "missing"), CUDA_ERROR_NOT_FOUND);
  OK(cuMemAlloc(&p, 4));
  OK(cuMemsetD32(p, 37, 1));
  void *args[] = {&p, &value};
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
  OK(cuMemcpyDtoH(&back, p, 4));
  assert_int_equal(back, 42);
  FAILS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, args, (void **)1), CUDA_ERROR_NOT_SUPPORTED);
  FAILS(cuLaunchKernel((CUfunction)&back, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL), CUDA_ERROR_INVALID_HANDLE);
  OK(cuMemFree(p));
  OK(cuModuleUnload(module));
  FAILS(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
}

static void fills_write_elements_of_their_width(void **state)
{
  CUdeviceptr p;
  unsigned char back[16];

  (void)state;
  OK(cuMemAlloc(&p, 16));
  OK(cuMemsetD8(p, 1, 16));
  OK(cuMemsetD16(p + 4, 0x0302, 2));
  OK(cuMemsetD32Async(p + 12, 0x07060504, 1, NULL));
  OK(cuMemcpyDtoH(back, p, 16));
  const unsigned char expected[16] = {1, 1, 1, 1, 2, 3, 2, 3, 1, 1, 1, 1, 4, 5, 6, 7};
  assert_memory_equal(back, expected, 16);
  FAILS(cuMemsetD32(p + 1, 0, 1), CUDA_ERROR_INVALID_VALUE); /* not aligned */
  OK(cuMemFree(p));
}

static void copies_between_all_sides(void **state)
{
  CUdeviceptr a, b;
  int host = 11, back = 0;

  (void)state;
  OK(cuMemAlloc(&a, 4));
  OK(cuMemAlloc(&b, 4));
  OK(cuMemcpyHtoD(a, &host, 4));
  OK(cuMemcpyDtoD(b, a, 4));
  OK(cuMemcpy((CUdeviceptr)(uintptr_t)&back, b, 4));
  assert_int_equal(back, 11);
  OK(cuMemcpyPeer(a, context, b, context, 4));
  FAILS(cuMemcpyDtoD(b, (CUdeviceptr)(uintptr_t)&host, 4), CUDA_ERROR_INVALID_VALUE);
  CUarray array;
  CUDA_ARRAY_DESCRIPTOR shape = {.Width = 4, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
  char line[8];
  OK(cuArrayCreate(&array, &shape));
  OK(cuMemcpyHtoA(array, 0, "abcdefgh", 8));
  OK(cuMemcpyAtoH(line, array, 2, 4));
  assert_memory_equal(line, "cdef", 4);
  FAILS(cuMemcpyAtoH(line, array, 6, 4), CUDA_ERROR_INVALID_VALUE);
  OK(cuArrayDestroy(array));
  FAILS(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  OK(cuMemFree(a));
  OK(cuMemFree(b));
}

static void contexts_are_stacked_and_keep_their_streams_apart(void **state)
{
  CUcontext second, current;
  CUstream stream, second_stream;

  (void)state;
  OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
#if CUDA_VERSION >= 13000
  OK(cuCtxCreate(&second, NULL, 0, device));
#else
  OK(cuCtxCreate(&second, 0, device));
#endif
  OK(cuCtxGetCurrent(&current));
  assert_ptr_equal(current, second);
  OK(cuStreamCreate(&second_stream, CU_STREAM_DEFAULT));
  CUcontext of_stream;
  OK(cuStreamGetCtx(second_stream, &of_stream));
  assert_ptr_equal(of_stream, second);
  CUevent event;
  OK(cuEventCreate(&event, 0));
  OK(cuCtxPopCurrent(&current));
  assert_ptr_equal(current, second);
  FAILS(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE); /* of another context */
  OK(cuCtxDestroy(second));
  FAILS(cuStreamSynchronize(second_stream), CUDA_ERROR_INVALID_HANDLE);
  FAILS(cuCtxSetCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuStreamSynchronize(stream));
  OK(cuStreamDestroy(stream));
  OK(cuCtxSynchronize());
}

static void *synchronize_without_context(void *out)
{
  *(int *)out = (int)cuCtxSynchronize();
  return NULL;
}

static void a_new_thread_has_no_context(void **state)
{
  pthread_t thread;
  int error = -1;

  (void)state;
  assert_int_equal(pthread_create(&thread, NULL, synchronize_without_context, &error), 0);
  pthread_join(thread, NULL);
  assert_int_equal(error, CUDA_ERROR_INVALID_CONTEXT);
}

#if CUDA_VERSION >= 13000 /* cuCtxSynchronize_v2 is new there */
static void synchronising_a_named_context_works_from_a_thread_without_one(void **state)
{
  CUresult (*synchronize)(CUcontext) = NULL;

  (void)state;
  OK(cuGetProcAddress("cuCtxSynchronize_v2", (void **)&synchronize, CUDA_VERSION, 0, NULL));
  OK(synchronize(context));
  FAILS(synchronize((CUcontext)&synchronize), CUDA_ERROR_INVALID_CONTEXT);
}
#endif

/* A child of a process that has used CUDA cannot use it, and ends without hanging. */
static void a_forked_child_is_refused(void **state)
{
  struct gate gate = {0};
  int status;

  (void)state;
  assert_int_equal(load_kernels(state), 0);
  launch_pass(&gate, NULL);
  assert_true(wait_for(&gate.reached));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    CUdeviceptr p;
    bool refused = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuMemAlloc(&p, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                   cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
    exit(refused ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  atomic_store(&gate.open, true);
  OK(cuCtxSynchronize());
}

/* The process may end with work unfinished. */
static void an_endless_kernel_does_not_keep_the_process_alive(void **state)
{
  int status;

  (void)state;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    execl("/proc/self/exe", "test_simcuda_driver", "endless", (char *)NULL);
    _exit(127);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_kernel_of_a_module_runs),
      cmocka_unit_test(fills_write_elements_of_their_width),
      cmocka_unit_test(copies_between_all_sides),
      cmocka_unit_test(contexts_are_stacked_and_keep_their_streams_apart),
      cmocka_unit_test(a_new_thread_has_no_context),
#if CUDA_VERSION >= 13000
      cmocka_unit_test(synchronising_a_named_context_works_from_a_thread_without_one),
#endif
      cmocka_unit_test(a_forked_child_is_refused),
      cmocka_unit_test(an_endless_kernel_does_not_keep_the_process_alive),
  };

  if (argc == 2 && strcmp(argv[1], "endless") == 0) {
    static struct gate never;
    if (load_kernels(NULL) != 0)
      return 1;
    launch_pass(&never, NULL);
    return wait_for(&never.reached) ? 0 : 1;
  }
  return cmocka_run_group_tests(tests, set_up, NULL);
}
