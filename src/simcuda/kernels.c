/* SPDX-License-Identifier: Apache-2.0
 * Kernels: the program's table, libraries and modules (which all offer that same table), attributes, launches. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct CUlib_st {
  uint32_t magic;
};

/* Handles are the elements of this array, so that any pointer can be told from one without following it. A kernel has
 * one handle whatever library it was asked of; libcublas's are added to the same array. */
static struct sim_kernel handles[SIM_MAX_KERNELS];
static unsigned handle_count; /* lock held */
static struct sim_pool libraries = {.bytes = sizeof(struct CUlib_st)};

struct sim_kernel *sim_kernel_handle(const void *handle)
{
  uintptr_t offset = (uintptr_t)handle - (uintptr_t)handles;

  if (offset >= sizeof handles || offset % sizeof handles[0] != 0)
    return NULL;
  struct sim_kernel *kernel = &handles[offset / sizeof handles[0]];
  return kernel->kernel != NULL ? kernel : NULL;
}

const struct simcuda_kernel *simcuda_kernel_of(const void *handle)
{
  const struct sim_kernel *kernel = sim_kernel_handle(handle);

  return kernel != NULL ? kernel->kernel : NULL;
}

static struct sim_kernel *handle_for(const struct simcuda_kernel *kernel)
{
  for (unsigned i = 0; i < handle_count; i++)
    if (handles[i].kernel == kernel)
      return &handles[i];
  if (handle_count == SIM_MAX_KERNELS)
    return NULL;
  handles[handle_count].kernel = kernel;
  return &handles[handle_count++];
}

void *simcuda_add_kernel(const struct simcuda_kernel *kernel)
{
  pthread_mutex_lock(&sim_lock);
  void *handle = handle_for(kernel);
  pthread_mutex_unlock(&sim_lock);
  return handle;
}

static const struct simcuda_kernel *program_kernels(void)
{
  static _Atomic(const struct simcuda_kernel *) table;
  const struct simcuda_kernel *known = atomic_load_explicit(&table, memory_order_relaxed);

  if (known == NULL) {
    known = dlsym(RTLD_DEFAULT, "simcuda_kernels");
    atomic_store_explicit(&table, known, memory_order_relaxed);
  }
  return known;
}

void *simcuda_find_kernel(const char *name)
{
  const struct simcuda_kernel *kernel = program_kernels();

  for (; kernel != NULL && kernel->name != NULL; kernel++)
    if (strcmp(kernel->name, name) == 0)
      return simcuda_add_kernel(kernel);
  return NULL;
}

static int find(void **handle, const char *name)
{
  if (handle == NULL || name == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  void *found = simcuda_find_kernel(name);
  if (found == NULL)
    return CUDA_ERROR_NOT_FOUND;
  *handle = found;
  return 0;
}

/* ---- libraries and modules: both are the same empty object ---- */

/* Loading may initialise lazily but needs no context, except for modules. */
static int load(void **library, const void *code, bool needs_context)
{
  CUcontext context;
  int error = needs_context ? sim_context(&context) : sim_ready();

  if (error != 0)
    return error;
  if (library == NULL || code == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  CUlibrary made = NULL;
  if ((error = sim_capture_forbid_unsafe()) == 0 && (made = sim_pool_get(&libraries)) == NULL)
    error = CUDA_ERROR_OUT_OF_MEMORY;
  if (error == 0) {
    made->magic = SIM_LIBRARY_MAGIC;
    *library = made;
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}

static int check_library(const void *library)
{
  const struct CUlib_st *it = library;
  int error = sim_ready();

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  error = it != NULL && it->magic == SIM_LIBRARY_MAGIC ? 0 : CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_unlock(&sim_lock);
  return error;
}

static int unload(void *library)
{
  CUlibrary it = library;
  int error = check_library(it);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  it->magic = 0;
  sim_pool_put(&libraries, it);
  pthread_mutex_unlock(&sim_lock);
  return 0;
}

static int get_kernel(void **kernel, void *library, const char *name)
{
  int error = check_library(library);

  return error != 0 ? error : find(kernel, name);
}

DRIVER(cuLibraryLoadData,
       (CUlibrary * library, const void *code, CUjit_option *jit_options, void **jit_values, unsigned jit_count,
        CUlibraryOption *options, void **values, unsigned count),
       (library, code, jit_options, jit_values, jit_count, options, values, count), load((void **)library, code, false))
DRIVER(cuLibraryUnload, (CUlibrary library), (library), unload(library))
DRIVER(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name), (kernel, library, name),
       get_kernel((void **)kernel, library, name))
/* The simulation knows no device variables. */
DRIVER(cuLibraryGetGlobal, (CUdeviceptr * pointer, size_t *bytes, CUlibrary library, const char *name),
       (pointer, bytes, library, name), check_library(library) != 0 ? check_library(library) : CUDA_ERROR_NOT_FOUND)
DRIVER(cuModuleLoadData, (CUmodule * module, const void *image), (module, image), load((void **)module, image, true))
DRIVER(cuModuleLoadDataEx, (CUmodule * module, const void *image, unsigned count, CUjit_option *options, void **values),
       (module, image, count, options, values), load((void **)module, image, true))
DRIVER(cuModuleLoadFatBinary, (CUmodule * module, const void *image), (module, image),
       load((void **)module, image, true))
DRIVER(cuModuleUnload, (CUmodule module), (module), unload(module))
DRIVER(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name), (function, module, name),
       get_kernel((void **)function, module, name))
DRIVER(cuModuleGetGlobal_v2, (CUdeviceptr * pointer, size_t *bytes, CUmodule module, const char *name),
       (pointer, bytes, module, name), check_library(module) != 0 ? check_library(module) : CUDA_ERROR_NOT_FOUND)
DRIVER(cuLibraryGetModule, (CUmodule * module, CUlibrary library), (module, library),
       module == NULL ? CUDA_ERROR_INVALID_VALUE : (*module = (CUmodule)library, check_library(library)))

static int kernel_function(CUfunction *function, CUkernel kernel)
{
  if (function == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (sim_kernel_handle(kernel) == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  *function = (CUfunction)kernel;
  return 0;
}
DRIVER(cuKernelGetFunction, (CUfunction * function, CUkernel kernel), (function, kernel),
       kernel_function(function, kernel))

static int kernel_name(const char **name, const void *handle)
{
  const struct simcuda_kernel *kernel = simcuda_kernel_of(handle);

  if (name == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (kernel == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->name;
  return 0;
}
DRIVER(cuFuncGetName, (const char **name, CUfunction function), (name, function), kernel_name(name, function))
DRIVER(cuKernelGetName, (const char **name, CUkernel kernel), (name, kernel), kernel_name(name, kernel))

/* ---- attributes ---- */

enum { MAX_THREADS = 1024, STATIC_SHARED_LIMIT = 49152, DYNAMIC_SHARED_LIMIT = 232448 };

static int get_attribute(int *value, CUfunction_attribute attribute, const void *handle)
{
  const struct sim_kernel *kernel = sim_kernel_handle(handle);

  if (value == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (kernel == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  switch ((int)attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = MAX_THREADS; return 0;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; return 0;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 90; return 0;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = kernel->max_dynamic_shared != 0 ? kernel->max_dynamic_shared : STATIC_SHARED_LIMIT;
    return 0;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; return 0;
  default: break;
  }
  if ((int)attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  *value = 0;
  return 0;
}
DRIVER(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function),
       (value, attribute, function), get_attribute(value, attribute, function))
DRIVER(cuKernelGetAttribute, (int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device),
       (value, attribute, kernel, device), get_attribute(value, attribute, kernel))

static int set_attribute(const void *handle, CUfunction_attribute attribute, int value)
{
  struct sim_kernel *kernel = sim_kernel_handle(handle);

  if (kernel == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > DYNAMIC_SHARED_LIMIT)
      return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sim_lock);
    kernel->max_dynamic_shared = value;
    pthread_mutex_unlock(&sim_lock);
    return 0;
  }
  return (int)attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX ? 0 : CUDA_ERROR_INVALID_VALUE;
}
DRIVER(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
       (function, attribute, value), set_attribute(function, attribute, value))
DRIVER(cuKernelSetAttribute, (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device),
       (attribute, value, kernel, device), set_attribute(kernel, attribute, value))
DRIVER(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config), (function, config),
       sim_kernel_handle(function) != NULL ? 0 : CUDA_ERROR_INVALID_HANDLE)

static int occupancy(int *blocks, const void *function, int block_size, size_t shared)
{
  if (sim_kernel_handle(function) == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  if (blocks == NULL || block_size <= 0 || block_size > MAX_THREADS)
    return CUDA_ERROR_INVALID_VALUE;
  int by_threads = 2048 / ((block_size + 31) / 32 * 32);
  size_t by_shared = shared == 0 ? 32 : (DYNAMIC_SHARED_LIMIT + 1024) / (shared + 1024);
  *blocks = by_threads < 32 ? by_threads : 32;
  if (by_shared < (size_t)*blocks)
    *blocks = (int)by_shared;
  return 0;
}
DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, CUfunction function, int size, size_t shared),
       (blocks, function, size, shared), occupancy(blocks, function, size, shared))
DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *blocks, CUfunction function, int size, size_t shared, unsigned flags),
       (blocks, function, size, shared, flags), occupancy(blocks, function, size, shared))

/* ---- launches ---- */

struct launch {
  const struct simcuda_kernel *kernel;
  unsigned grid[3], block[3];
  size_t shared;
  void *args[32];
  max_align_t values[];
};

static void run_launch(void *payload)
{
  struct launch *launch = payload;

  launch->kernel->run(launch->grid, launch->block, launch->shared, launch->args);
}

static size_t slot_bytes(unsigned bytes) { return (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t); }

static struct sim_op *new_launch(const struct simcuda_kernel *kernel, void **parameters)
{
  size_t slots = 0;

  for (unsigned i = 0; i < kernel->arg_count; i++)
    slots += slot_bytes(kernel->arg_bytes[i]);
  struct sim_op *op = sim_op_new(sizeof(struct launch) + slots * sizeof(max_align_t), run_launch, NULL);
  if (op == NULL)
    return NULL;
  struct launch *launch = sim_payload(op);
  launch->kernel = kernel;
  max_align_t *value = launch->values;
  for (unsigned i = 0; i < kernel->arg_count; i++) {
    memcpy(value, parameters[i], kernel->arg_bytes[i]);
    launch->args[i] = value;
    value += slot_bytes(kernel->arg_bytes[i]);
  }
  return op;
}

static bool shape_ok(const unsigned grid[3], const unsigned block[3])
{
  uint64_t threads = (uint64_t)block[0] * block[1];

  return grid[0] != 0 && grid[1] != 0 && grid[2] != 0 && grid[0] <= 2147483647u && grid[1] <= 65535 &&
         grid[2] <= 65535 && block[0] != 0 && block[1] != 0 && block[2] != 0 && block[0] <= MAX_THREADS &&
         block[1] <= MAX_THREADS && block[2] <= 64 && threads * block[2] <= MAX_THREADS;
}

static int launch(const void *function, const unsigned grid[3], const unsigned block[3], size_t shared, CUstream handle,
                  void **parameters, void **extra, bool per_thread)
{
  CUcontext context;
  CUstream stream;
  int error = sim_context(&context);

  if (error != 0)
    return error;
  const struct sim_kernel *kernel = sim_kernel_handle(function);
  if (kernel == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  if (extra != NULL)
    return CUDA_ERROR_NOT_SUPPORTED; /* a packed buffer says nothing of where its arguments are */
  if (!shape_ok(grid, block) || kernel->kernel->arg_count > 32 ||
      (kernel->kernel->arg_count != 0 && parameters == NULL))
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_lock);
  size_t shared_limit = kernel->max_dynamic_shared != 0 ? (size_t)kernel->max_dynamic_shared : STATIC_SHARED_LIMIT;
  if (shared > shared_limit)
    error = CUDA_ERROR_INVALID_VALUE;
  else
    error = sim_stream_of(context, handle, per_thread, &stream);
  struct sim_op *op = error == 0 ? new_launch(kernel->kernel, parameters) : NULL;
  if (error == 0 && op == NULL)
    error = CUDA_ERROR_OUT_OF_MEMORY;
  if (error == 0) {
    struct launch *work = sim_payload(op);
    memcpy(work->grid, grid, sizeof work->grid);
    memcpy(work->block, block, sizeof work->block);
    work->shared = shared;
    sim_count_submission();
    error = sim_submit(stream, op, NULL);
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}

static const char *symbol(const void *function)
{
  const struct simcuda_kernel *kernel = simcuda_kernel_of(function);

  return kernel != NULL ? kernel->name : NULL;
}

#define GRID ((const unsigned[3]){gx, gy, gz})
#define BLOCK ((const unsigned[3]){bx, by, bz})
#define LAUNCH_DECL                                                                                                    \
  (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
   CUstream stream, void **parameters, void **extra)
#define LAUNCH_ARGS (function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
#define LAUNCH_WORK launch(function, GRID, BLOCK, shared, stream, parameters, extra, per_thread)
DRIVER_(cuLaunchKernel, false, symbol(function), LAUNCH_DECL, LAUNCH_ARGS, LAUNCH_WORK)
DRIVER_(cuLaunchKernel_ptsz, true, symbol(function), LAUNCH_DECL, LAUNCH_ARGS, LAUNCH_WORK)

#define COOPERATIVE_DECL                                                                                               \
  (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
   CUstream stream, void **parameters)
#define COOPERATIVE_ARGS (function, gx, gy, gz, bx, by, bz, shared, stream, parameters)
#define COOPERATIVE_WORK launch(function, GRID, BLOCK, shared, stream, parameters, NULL, per_thread)
DRIVER_(cuLaunchCooperativeKernel, false, symbol(function), COOPERATIVE_DECL, COOPERATIVE_ARGS, COOPERATIVE_WORK)
DRIVER_(cuLaunchCooperativeKernel_ptsz, true, symbol(function), COOPERATIVE_DECL, COOPERATIVE_ARGS, COOPERATIVE_WORK)

/* Launch attributes (clusters, priorities, programmatic launch) change when a grid runs, not what it computes. */
static int launch_ex(const CUlaunchConfig *c, const void *function, void **parameters, void **extra, bool per_thread)
{
  if (c == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  return launch(function, (const unsigned[3]){c->gridDimX, c->gridDimY, c->gridDimZ},
                (const unsigned[3]){c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes, c->hStream,
                parameters, extra, per_thread);
}
#define EX_DECL (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
#define EX_ARGS (config, function, parameters, extra)
DRIVER_(cuLaunchKernelEx, false, symbol(function), EX_DECL, EX_ARGS,
        launch_ex(config, function, parameters, extra, per_thread))
DRIVER_(cuLaunchKernelEx_ptsz, true, symbol(function), EX_DECL, EX_ARGS,
        launch_ex(config, function, parameters, extra, per_thread))
