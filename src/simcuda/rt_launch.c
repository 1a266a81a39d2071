/* SPDX-License-Identifier: Apache-2.0
 * The runtime's libraries, kernels and launches, and what nvcc's start-up code registers. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rt.h"

/* ---- what nvcc registers: host stubs of kernels, and variables ---- */

struct stub {
  const void *host;
  char *name;
  struct stub *next;
};
struct variable {
  const void *host;
  size_t bytes;
  CUdeviceptr memory; /* 0 until its first use */
  struct variable *next;
};
static struct stub *stubs;
static struct variable *variables;
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;

void *rt_function(const void *function)
{
  char name[512] = "";

  if (simcuda_kernel_of(function) != NULL)
    return (void *)(uintptr_t)function;
  pthread_mutex_lock(&registry);
  for (const struct stub *each = stubs; each != NULL; each = each->next)
    if (each->host == function && strlen(each->name) < sizeof name) {
      strcpy(name, each->name);
      break;
    }
  pthread_mutex_unlock(&registry);
  return name[0] != '\0' ? simcuda_find_kernel(name) : NULL;
}

int rt_symbol(const void *symbol, void **pointer, size_t *bytes)
{
  struct variable *found = NULL;
  int error = cudaErrorInvalidSymbol;

  pthread_mutex_lock(&registry);
  for (struct variable *each = variables; each != NULL && found == NULL; each = each->next)
    if (each->host == symbol)
      found = each;
  if (found != NULL) {
    error = 0;
    if (found->memory == 0 &&
        (error = (int)cuMemAlloc_v2(&found->memory, found->bytes)) == 0) /* as on a device: starts as 0 */
      error = (int)cuMemsetD8_v2(found->memory, 0, found->bytes);
    *pointer = (void *)(uintptr_t)found->memory;
    *bytes = found->bytes;
  }
  pthread_mutex_unlock(&registry);
  return error;
}

SIMCUDA_EXPORT void **__cudaRegisterFatBinary(void *image);
SIMCUDA_EXPORT void **__cudaRegisterFatBinary(void *image)
{
  void **handle = malloc(sizeof *handle);

  if (handle != NULL)
    *handle = image;
  return handle;
}
SIMCUDA_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
SIMCUDA_EXPORT void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
SIMCUDA_EXPORT void __cudaUnregisterFatBinary(void **handle);
SIMCUDA_EXPORT void __cudaUnregisterFatBinary(void **handle) { free(handle); }
SIMCUDA_EXPORT char __cudaInitModule(void **handle);
SIMCUDA_EXPORT char __cudaInitModule(void **handle) { return handle != NULL; }

SIMCUDA_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                           void *tid, void *bid, void *block, void *grid, int *warp);
SIMCUDA_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                           void *tid, void *bid, void *block, void *grid, int *warp)
{
  struct stub *stub = malloc(sizeof *stub);

  (void)handle, (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
  if (stub == NULL || (stub->name = strdup(name)) == NULL) {
    free(stub);
    return; /* its launches will fail with an invalid device function */
  }
  stub->host = host;
  pthread_mutex_lock(&registry);
  stub->next = stubs;
  stubs = stub;
  pthread_mutex_unlock(&registry);
}

SIMCUDA_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                                      size_t bytes, int constant, int global);
SIMCUDA_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                                      size_t bytes, int constant, int global)
{
  struct variable *variable = malloc(sizeof *variable);

  (void)handle, (void)device, (void)name, (void)external, (void)constant, (void)global;
  if (variable == NULL)
    return;
  *variable = (struct variable){.host = host, .bytes = bytes};
  pthread_mutex_lock(&registry);
  variable->next = variables;
  variables = variable;
  pthread_mutex_unlock(&registry);
}

/* ---- the launch configuration of <<< >>> ---- */

static __thread struct {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} configurations[8];
static __thread unsigned configuration_depth;

SIMCUDA_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
SIMCUDA_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
  if (configuration_depth == 8)
    return 1;
  configurations[configuration_depth].grid = grid;
  configurations[configuration_depth].block = block;
  configurations[configuration_depth].shared = shared;
  configurations[configuration_depth++].stream = stream;
  return 0;
}

SIMCUDA_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
SIMCUDA_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
  if (configuration_depth == 0)
    return cudaErrorMissingConfiguration;
  configuration_depth--;
  *grid = configurations[configuration_depth].grid;
  *block = configurations[configuration_depth].block;
  *shared = configurations[configuration_depth].shared;
  *(cudaStream_t *)stream = configurations[configuration_depth].stream;
  return cudaSuccess;
}

/* ---- libraries ---- */

/* CUPTI knows the runtime's library calls from CUDA 12.9 on; before, the driver calls inside them are the outermost. */
#if CUDART_VERSION >= 12090
#define LIBRARY(fn, decl, args, work) RUNTIME(fn, v12060, decl, args, work)
#else
#define LIBRARY(fn, decl, args, work)                 \
  SIMCUDA_EXPORT cudaError_t fn decl;                 \
  cudaError_t fn decl                                 \
  {                                                   \
    int bound = rt_bind();                            \
    return rt_note(bound != 0 ? bound : (int)(work)); \
  }
#endif

LIBRARY(cudaLibraryLoadData,
        (cudaLibrary_t * library, const void *code, enum cudaJitOption *jitOptions, void **jitOptionsValues,
         unsigned numJitOptions, enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
         unsigned numLibraryOptions),
        (library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions, libraryOptionValues,
         numLibraryOptions),
        cuLibraryLoadData((CUlibrary *)library, code, (CUjit_option *)(void *)jitOptions, jitOptionsValues,
                          numJitOptions, (CUlibraryOption *)(void *)libraryOptions, libraryOptionValues,
                          numLibraryOptions))
LIBRARY(cudaLibraryUnload, (cudaLibrary_t library), (library), cuLibraryUnload((CUlibrary)library))
LIBRARY(cudaLibraryGetKernel, (cudaKernel_t * pKernel, cudaLibrary_t library, const char *name),
        (pKernel, library, name), cuLibraryGetKernel((CUkernel *)pKernel, (CUlibrary)library, name))
LIBRARY(cudaLibraryGetGlobal, (void **dptr, size_t *bytes, cudaLibrary_t library, const char *name),
        (dptr, bytes, library, name), cuLibraryGetGlobal((CUdeviceptr *)(void *)dptr, bytes, (CUlibrary)library, name))

static int kernel_of_stub(void **kernel, const void *function)
{
  if (kernel == NULL)
    return cudaErrorInvalidValue;
  void *found = rt_function(function);
  if (found == NULL)
    return cudaErrorInvalidDeviceFunction;
  *kernel = found;
  return 0;
}
RUNTIME(cudaGetKernel, v12000, (cudaKernel_t * kernelPtr, const void *entryFuncAddr), (kernelPtr, entryFuncAddr),
        kernel_of_stub((void **)kernelPtr, entryFuncAddr))
RUNTIME(cudaGetFuncBySymbol, v11000, (cudaFunction_t * functionPtr, const void *symbolPtr), (functionPtr, symbolPtr),
        kernel_of_stub((void **)functionPtr, symbolPtr))

static int function_name(const char **name, const void *function)
{
  void *kernel = rt_function(function);

  if (kernel == NULL)
    return cudaErrorInvalidDeviceFunction;
  return (int)cuFuncGetName(name, kernel);
}
RUNTIME(cudaFuncGetName, v12030, (const char **name, const void *func), (name, func), function_name(name, func))

/* ---- attributes ---- */

static int get_attributes(struct cudaFuncAttributes *out, const void *function)
{
  void *kernel = rt_function(function);
  int value = 0, error;

  if (out == NULL)
    return cudaErrorInvalidValue;
  if (kernel == NULL)
    return cudaErrorInvalidDeviceFunction;
  memset(out, 0, sizeof *out);
#define COPY(field, attribute)                                                               \
  if ((error = (int)cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_##attribute, kernel)) != 0) \
    return error;                                                                            \
  out->field = (__typeof__(out->field))value;
  COPY(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
  COPY(sharedSizeBytes, SHARED_SIZE_BYTES)
  COPY(constSizeBytes, CONST_SIZE_BYTES)
  COPY(localSizeBytes, LOCAL_SIZE_BYTES)
  COPY(numRegs, NUM_REGS)
  COPY(ptxVersion, PTX_VERSION)
  COPY(binaryVersion, BINARY_VERSION)
  COPY(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES)
  COPY(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT)
#undef COPY
  return 0;
}
RUNTIME(cudaFuncGetAttributes, v3020, (struct cudaFuncAttributes * attr, const void *func), (attr, func),
        get_attributes(attr, func))

static int set_attribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
  void *kernel = rt_function(function);

  if (kernel == NULL)
    return cudaErrorInvalidDeviceFunction;
  return (int)cuFuncSetAttribute(kernel, (CUfunction_attribute)attribute, value);
}
RUNTIME(cudaFuncSetAttribute, v9000, (const void *func, enum cudaFuncAttribute attr, int value), (func, attr, value),
        set_attribute(func, attr, value))

static int occupancy(int *blocks, const void *function, int size, size_t shared, unsigned flags)
{
  void *kernel = rt_function(function);

  if (kernel == NULL)
    return cudaErrorInvalidDeviceFunction;
  return (int)cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, size, shared, flags);
}
RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor, v6050,
        (int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize),
        (numBlocks, func, blockSize, dynamicSMemSize), occupancy(numBlocks, func, blockSize, dynamicSMemSize, 0))
RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, v7000,
        (int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize, unsigned flags),
        (numBlocks, func, blockSize, dynamicSMemSize, flags),
        occupancy(numBlocks, func, blockSize, dynamicSMemSize, flags))

/* ---- launches ---- */

static const char *symbol(const void *function)
{
  const struct simcuda_kernel *kernel = simcuda_kernel_of(rt_function(function));

  return kernel != NULL ? kernel->name : NULL;
}

static bool shape_ok(dim3 grid, dim3 block)
{
  return grid.x != 0 && grid.y != 0 && grid.z != 0 && block.x != 0 && block.y != 0 && block.z != 0 && block.x <= 1024 &&
         block.y <= 1024 && block.z <= 64 && (uint64_t)block.x * block.y * block.z <= 1024;
}

static int launch(const void *function, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream,
                  bool cooperative, bool per_thread)
{
  void *kernel = rt_function(function);

  if (kernel == NULL)
    return cudaErrorInvalidDeviceFunction;
  if (!shape_ok(grid, block))
    return cudaErrorInvalidConfiguration;
  if (shared > 0xffffffffu)
    return cudaErrorInvalidValue;
  if (cooperative)
    return (int)TWIN(cuLaunchCooperativeKernel, _ptsz)(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                       (unsigned)shared, stream, args);
  return (int)TWIN(cuLaunchKernel, _ptsz)(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared,
                                          stream, args, NULL);
}

#define LAUNCH(fn, twin, version, twin_version, cooperative)                                              \
  RUNTIME_(fn, fn##_##version, false, rt_bind(), rt_note, symbol(func), LAUNCH_DECL, LAUNCH_ARGS,         \
           launch(func, gridDim, blockDim, args, sharedMem, stream, cooperative, per_thread))             \
  RUNTIME_(twin, twin##_##twin_version, true, rt_bind(), rt_note, symbol(func), LAUNCH_DECL, LAUNCH_ARGS, \
           launch(func, gridDim, blockDim, args, sharedMem, stream, cooperative, per_thread))
#define LAUNCH_DECL (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream)
#define LAUNCH_ARGS (func, gridDim, blockDim, args, sharedMem, stream)
LAUNCH(cudaLaunchKernel, cudaLaunchKernel_ptsz, v7000, v7000, false)
LAUNCH(cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz, v9000, v9000, true)

#if CUDART_VERSION >= 13000
/* What nvcc 13's <<< >>> calls. It has a callback id, but the toolkit's headers name no parameter struct for it. */
typedef cudaLaunchKernel_v7000_params __cudaLaunchKernel_v13000_params, __cudaLaunchKernel_ptsz_v13000_params;
#define HANDLE_DECL \
  (cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream)
#define HANDLE_ARGS (kernel, gridDim, blockDim, args, sharedMem, stream)
RUNTIME_(__cudaLaunchKernel, __cudaLaunchKernel_v13000, false, rt_bind(), rt_note, symbol(kernel), HANDLE_DECL,
         HANDLE_ARGS, launch(kernel, gridDim, blockDim, args, sharedMem, stream, false, per_thread))
RUNTIME_(__cudaLaunchKernel_ptsz, __cudaLaunchKernel_ptsz_v13000, true, rt_bind(), rt_note, symbol(kernel), HANDLE_DECL,
         HANDLE_ARGS, launch(kernel, gridDim, blockDim, args, sharedMem, stream, false, per_thread))
#endif
/* Asked once per kernel, before its first launch. An unknown kernel is refused here and again at the launch. */
SIMCUDA_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
SIMCUDA_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
  return (cudaError_t)rt_note(kernel_of_stub((void **)kernel, function));
}

static int launch_ex(const cudaLaunchConfig_t *config, const void *function, void **args, bool per_thread)
{
  void *kernel = rt_function(function);

  if (config == NULL)
    return cudaErrorInvalidValue;
  if (kernel == NULL)
    return cudaErrorInvalidDeviceFunction;
  if (!shape_ok(config->gridDim, config->blockDim))
    return cudaErrorInvalidConfiguration;
  CUlaunchConfig driver = {.gridDimX = config->gridDim.x,
                           .gridDimY = config->gridDim.y,
                           .gridDimZ = config->gridDim.z,
                           .blockDimX = config->blockDim.x,
                           .blockDimY = config->blockDim.y,
                           .blockDimZ = config->blockDim.z,
                           .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
                           .hStream = config->stream};
  return (int)TWIN(cuLaunchKernelEx, _ptsz)(&driver, kernel, args, NULL);
}
#define EX_DECL (const cudaLaunchConfig_t *config, const void *func, void **args)
RUNTIME_(cudaLaunchKernelExC, cudaLaunchKernelExC_v11060, false, rt_bind(), rt_note, symbol(func), EX_DECL,
         (config, func, args), launch_ex(config, func, args, per_thread))
RUNTIME_(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC_ptsz_v11060, true, rt_bind(), rt_note, symbol(func), EX_DECL,
         (config, func, args), launch_ex(config, func, args, per_thread))
