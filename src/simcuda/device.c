/* SPDX-License-Identifier: Apache-2.0
 * Initialisation, injection, devices and contexts. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

CUcontext sim_contexts;
static struct sim_pool made_contexts = {.bytes = sizeof(struct CUctx_st)}; /* by cuCtxCreate */
static struct CUctx_st primaries[SIM_MAX_DEVICES];
static uint32_t last_context_id;

static atomic_int init_state; /* 0: cuInit not called, 1: done */
static int init_result;
static atomic_bool forked;

/* The contexts of this thread (cuCtxPushCurrent makes a stack), innermost last, and its per-thread default streams. */
enum { CONTEXT_STACK = 16 };
struct thread_stream {
  CUcontext context;
  CUstream stream;
  struct thread_stream *next;
};
static __thread CUcontext stack[CONTEXT_STACK];
static __thread int stack_depth;
static pthread_key_t thread_streams;
static __thread struct thread_stream *own_streams; /* the key's value, for speed */

static void drop_thread_streams(void *list)
{
  pthread_mutex_lock(&sim_lock);
  for (struct thread_stream *each = list, *next; each != NULL; each = next) {
    next = each->next;
    if (each->stream->magic == SIM_STREAM_MAGIC && !each->stream->destroyed) {
      each->stream->destroyed = true;
      pthread_cond_signal(&each->stream->wake);
      sim_stream_release(each->stream);
    }
    free(each);
  }
  pthread_mutex_unlock(&sim_lock);
}

/* CUDA does not survive fork: the child gets errors, as on a GPU, and never waits for threads that it does not have. */
static void lock_for_fork(void) { pthread_mutex_lock(&sim_lock); }
static void unlock_in_parent(void) { pthread_mutex_unlock(&sim_lock); }
static void unlock_in_child(void)
{
  if (atomic_load(&init_state) != 0)
    atomic_store(&forked, true);
  pthread_mutex_unlock(&sim_lock);
}

bool sim_forked(void) { return atomic_load(&forked); }

static void inject(void)
{
  const char *path = getenv("CUDA_INJECTION64_PATH");

  if (path == NULL || path[0] == '\0')
    return;
  void *library = dlopen(path, RTLD_NOW);
  int (*initialize)(void) = library != NULL ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (initialize == NULL)
    return;
  initialize();
  __asm__ volatile(""); /* no tail call: a tool may look at its return address to see that libcuda called it */
}

static void initialize(void)
{
  init_result = sim_settings_load();
  if (init_result == 0 && sim_settings.devices == 0)
    init_result = CUDA_ERROR_NO_DEVICE;
  if (init_result == 0) {
    pthread_key_create(&thread_streams, drop_thread_streams);
    pthread_atfork(lock_for_fork, unlock_in_parent, unlock_in_child);
  }
  atomic_store(&init_state, 1);
}

static int do_init(unsigned flags)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT, injected = PTHREAD_ONCE_INIT;
  static __thread bool injecting; /* InitializeInjection may call cuInit itself */

  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (sim_forked())
    return CUDA_ERROR_NOT_INITIALIZED;
  pthread_once(&once, initialize);
  if (init_result == 0 && !injecting) {
    injecting = true;
    pthread_once(&injected, inject);
    injecting = false;
  }
  return init_result;
}

int sim_ready(void)
{
  if (atomic_load_explicit(&init_state, memory_order_acquire) == 0 || init_result != 0 || sim_forked())
    return CUDA_ERROR_NOT_INITIALIZED;
  return 0;
}

int sim_context(CUcontext *context)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (stack_depth == 0 || stack[stack_depth - 1] == NULL)
    return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack[stack_depth - 1];
  return (*context)->magic == SIM_CONTEXT_MAGIC ? 0 : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool sim_context_is_live(CUcontext context)
{
  for (CUcontext each = sim_contexts; each != NULL; each = each->next)
    if (each == context)
      return true;
  return false;
}

void *simcuda_current_context(uint32_t *id)
{
  CUcontext context = stack_depth > 0 ? stack[stack_depth - 1] : NULL;

  *id = context != NULL ? context->id : 0;
  return context;
}

uint32_t simcuda_context_id(void *context, int *device)
{
  uint32_t id = 0;

  pthread_mutex_lock(&sim_lock);
  if (sim_context_is_live(context)) {
    id = ((CUcontext)context)->id;
    *device = ((CUcontext)context)->device;
  }
  pthread_mutex_unlock(&sim_lock);
  return id;
}

static int open_context(CUcontext context, int device, unsigned flags)
{
  context->magic = SIM_CONTEXT_MAGIC;
  context->id = ++last_context_id;
  context->device = device;
  context->flags = flags;
  context->streams = NULL;
  int error = sim_stream_new(context, CU_STREAM_DEFAULT, 0, &context->legacy);
  if (error == 0)
    error = sim_stream_new(context, CU_STREAM_NON_BLOCKING, 0, &context->reaper);
  if (error != 0)
    return error;
  context->legacy->legacy = true;
  context->next = sim_contexts;
  sim_contexts = context;
  return 0;
}

static void close_context(CUcontext context)
{
  sim_wait_context(context);
  for (CUcontext *link = &sim_contexts; *link != NULL; link = &(*link)->next)
    if (*link == context) {
      *link = context->next;
      break;
    }
  for (CUstream stream = context->streams, next; stream != NULL; stream = next) {
    next = stream->next;
    if (!stream->destroyed) {
      stream->destroyed = true;
      pthread_cond_signal(&stream->wake);
      sim_stream_release(stream);
    }
  }
  context->magic = 0;
}

static bool is_device(CUdevice device) { return device >= 0 && device < sim_settings.devices; }

static int per_thread_stream(CUcontext context, CUstream *stream)
{
  for (struct thread_stream *each = own_streams; each != NULL; each = each->next)
    if (each->context == context && each->stream->magic == SIM_STREAM_MAGIC && !each->stream->destroyed) {
      *stream = each->stream;
      return 0;
    }
  struct thread_stream *mine = calloc(1, sizeof *mine);
  if (mine == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  int error = sim_stream_new(context, CU_STREAM_DEFAULT, 0, &mine->stream);
  if (error != 0) {
    free(mine);
    return error;
  }
  mine->stream->per_thread = true;
  mine->context = context;
  mine->next = own_streams;
  own_streams = mine;
  pthread_setspecific(thread_streams, mine);
  *stream = mine->stream;
  return 0;
}

int sim_stream_of(CUcontext context, CUstream handle, bool per_thread, CUstream *stream)
{
  if (handle == CU_STREAM_PER_THREAD || (handle == NULL && per_thread))
    return per_thread_stream(context, stream);
  if (handle == NULL || handle == CU_STREAM_LEGACY) {
    *stream = context->legacy;
    return 0;
  }
  if (handle->magic != SIM_STREAM_MAGIC || handle->destroyed)
    return CUDA_ERROR_INVALID_HANDLE;
  *stream = handle;
  return 0;
}

/* ---- entry points: initialisation, devices ---- */

DRIVER(cuInit, (unsigned flags), (flags), do_init(flags))

static int get_version(int *version)
{
  if (version == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return 0;
}
DRIVER(cuDriverGetVersion, (int *version), (version), get_version(version))

static int get_device(CUdevice *device, int ordinal)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (device == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(ordinal))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return 0;
}
DRIVER(cuDeviceGet, (CUdevice * device, int ordinal), (device, ordinal), get_device(device, ordinal))

static int get_count(int *count)
{
  int error = sim_ready();

  if (error == 0 && count == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0)
    *count = sim_settings.devices;
  return error;
}
DRIVER(cuDeviceGetCount, (int *count), (count), get_count(count))

/* Checks shared by all queries of one device. */
static int about_device(const void *out, CUdevice device)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  if (out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  return is_device(device) ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

static int get_name(char *name, int length, CUdevice device)
{
  int error = about_device(name, device);

  if (error == 0 && length <= 0)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0)
    snprintf(name, (size_t)length, "synccount simulated device");
  return error;
}
DRIVER(cuDeviceGetName, (char *name, int length, CUdevice device), (name, length, device),
       get_name(name, length, device))

static int get_uuid(CUuuid *uuid, CUdevice device)
{
  int error = about_device(uuid, device);

  if (error == 0) {
    memcpy(uuid->bytes, "synccount sim 00", sizeof uuid->bytes);
    uuid->bytes[15] = (char)('0' + device);
  }
  return error;
}
DRIVER(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), (uuid, device), get_uuid(uuid, device))

static int total_memory(size_t *bytes, CUdevice device)
{
  int error = about_device(bytes, device);

  if (error == 0)
    *bytes = sim_settings.memory_bytes;
  return error;
}
DRIVER(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device), (bytes, device), total_memory(bytes, device))

/* Plausible, and never those of a product. What is not listed is 0. */
static const struct {
  CUdevice_attribute attribute;
  int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 128},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 16 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
};

static int get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
  int error = about_device(value, device);

  if (error != 0)
    return error;
  if ((int)attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  *value = 0;
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
    *value = 0xfe;
  else if (attribute == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)
    *value = device;
  else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
    *value = sim_settings.capability / 10;
  else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    *value = sim_settings.capability % 10;
  for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
    if (attributes[i].attribute == attribute)
      *value = attributes[i].value;
  return 0;
}
DRIVER(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device), (value, attribute, device),
       get_attribute(value, attribute, device))

/* No machine has a bus 0000:fe with such devices, so nobody takes its PCIe link for the simulation's. */
static int get_pci_id(char *text, int length, CUdevice device)
{
  int error = about_device(text, device);

  if (error == 0 && length < 13)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0)
    snprintf(text, (size_t)length, "0000:FE:%02X.0", (unsigned)device);
  return error;
}
DRIVER(cuDeviceGetPCIBusId, (char *text, int length, CUdevice device), (text, length, device),
       get_pci_id(text, length, device))

static int get_by_pci_id(CUdevice *device, const char *text)
{
  unsigned domain, bus, slot;
  int error = sim_ready();

  if (error != 0)
    return error;
  if (device == NULL || text == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3 || domain != 0 || bus != 0xfe || !is_device((CUdevice)slot))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = (CUdevice)slot;
  return 0;
}
DRIVER(cuDeviceGetByPCIBusId, (CUdevice * device, const char *text), (device, text), get_by_pci_id(device, text))

static int can_access_peer(int *can, CUdevice device, CUdevice peer)
{
  int error = about_device(can, device);

  if (error == 0 && !is_device(peer))
    error = CUDA_ERROR_INVALID_DEVICE;
  if (error == 0)
    *can = device != peer;
  return error;
}
DRIVER(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer), (can, device, peer),
       can_access_peer(can, device, peer))

/* ---- entry points: contexts ---- */

static int retain_primary(CUcontext *context, CUdevice device)
{
  int error = about_device(context, device);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  CUcontext primary = &primaries[device];
  if (primary->magic != SIM_CONTEXT_MAGIC) {
    primary->primary = true;
    primary->retained = 0;
    error = open_context(primary, device, primary->flags);
  }
  if (error == 0) {
    primary->retained++;
    *context = primary;
  }
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device),
       retain_primary(context, device))

static int end_primary(CUdevice device, bool reset)
{
  int error = about_device(&device, device);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  CUcontext primary = &primaries[device];
  if (primary->magic != SIM_CONTEXT_MAGIC)
    error = reset ? 0 : CUDA_ERROR_INVALID_CONTEXT;
  else if (reset || --primary->retained == 0)
    close_context(primary);
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER(cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device), end_primary(device, false))
DRIVER(cuDevicePrimaryCtxReset_v2, (CUdevice device), (device), end_primary(device, true))

static int primary_state(CUdevice device, unsigned *flags, int *active)
{
  int error = about_device(flags, device);

  if (error == 0 && active == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0) {
    pthread_mutex_lock(&sim_lock);
    *flags = primaries[device].flags;
    *active = primaries[device].magic == SIM_CONTEXT_MAGIC;
    pthread_mutex_unlock(&sim_lock);
  }
  return error;
}
DRIVER(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active), (device, flags, active),
       primary_state(device, flags, active))

static int primary_flags(CUdevice device, unsigned flags)
{
  int error = about_device(&device, device);

  if (error == 0 && (flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0) {
    pthread_mutex_lock(&sim_lock);
    primaries[device].flags = flags;
    pthread_mutex_unlock(&sim_lock);
  }
  return error;
}
DRIVER(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags), (device, flags), primary_flags(device, flags))

static int create_context(CUcontext *context, unsigned flags, CUdevice device)
{
  int error = about_device(context, device);

  if (error != 0)
    return error;
  if (stack_depth == CONTEXT_STACK)
    return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&sim_lock);
  CUcontext made = sim_pool_get(&made_contexts);
  error = made != NULL ? open_context(made, device, flags) : CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_unlock(&sim_lock);
  if (error != 0)
    return error;
  stack[stack_depth++] = made;
  *context = made;
  return 0;
}
#if CUDA_VERSION >= 12050
DRIVER(cuCtxCreate_v4, (CUcontext * context, CUctxCreateParams *parameters, unsigned flags, CUdevice device),
       (context, parameters, flags, device), create_context(context, flags, device))
#endif
DRIVER(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device), (context, flags, device),
       create_context(context, flags, device))

/* The structure of a destroyed context is not used again: threads may still have it current, and find its magic gone.
 */
static int destroy_context(CUcontext context)
{
  int error = sim_ready();

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if (!sim_context_is_live(context) || context->primary)
    error = CUDA_ERROR_INVALID_CONTEXT;
  else
    close_context(context);
  pthread_mutex_unlock(&sim_lock);
  if (error == 0 && stack_depth > 0 && stack[stack_depth - 1] == context)
    stack_depth--;
  return error;
}
DRIVER(cuCtxDestroy_v2, (CUcontext context), (context), destroy_context(context))

static int check_context(CUcontext context)
{
  int error = sim_ready();

  if (error == 0 && context != NULL) {
    pthread_mutex_lock(&sim_lock);
    error = sim_context_is_live(context) ? 0 : CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_unlock(&sim_lock);
  }
  return error;
}

static int set_current(CUcontext context)
{
  int error = check_context(context);

  if (error != 0)
    return error;
  if (stack_depth == 0)
    stack_depth = 1;
  stack[stack_depth - 1] = context;
  return 0;
}
DRIVER(cuCtxSetCurrent, (CUcontext context), (context), set_current(context))

static int push_current(CUcontext context)
{
  int error = context == NULL ? CUDA_ERROR_INVALID_CONTEXT : check_context(context);

  if (error == 0 && stack_depth == CONTEXT_STACK)
    error = CUDA_ERROR_OUT_OF_MEMORY;
  if (error == 0)
    stack[stack_depth++] = context;
  return error;
}
DRIVER(cuCtxPushCurrent_v2, (CUcontext context), (context), push_current(context))

static int pop_current(CUcontext *context)
{
  int error = sim_ready();

  if (error == 0 && stack_depth == 0)
    error = CUDA_ERROR_INVALID_CONTEXT;
  if (error == 0) {
    stack_depth--;
    if (context != NULL)
      *context = stack[stack_depth];
  }
  return error;
}
DRIVER(cuCtxPopCurrent_v2, (CUcontext * context), (context), pop_current(context))

static int get_current(CUcontext *context)
{
  int error = sim_ready();

  if (error == 0 && context == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0) {
    *context = stack_depth > 0 ? stack[stack_depth - 1] : NULL;
    if (*context != NULL && (*context)->magic != SIM_CONTEXT_MAGIC)
      *context = NULL;
  }
  return error;
}
DRIVER(cuCtxGetCurrent, (CUcontext * context), (context), get_current(context))

static int get_context_device(CUdevice *device)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error == 0 && device == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0)
    *device = context->device;
  return error;
}
DRIVER(cuCtxGetDevice, (CUdevice * device), (device), get_context_device(device))

static int get_context_flags(unsigned *flags)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error == 0 && flags == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0)
    *flags = context->flags;
  return error;
}
DRIVER(cuCtxGetFlags, (unsigned *flags), (flags), get_context_flags(flags))

static int get_context_id(CUcontext context, unsigned long long *id)
{
  CUcontext current;
  int error = context != NULL ? check_context(context) : sim_context(&current);

  if (error == 0 && id == NULL)
    error = CUDA_ERROR_INVALID_VALUE;
  if (error == 0)
    *id = context != NULL ? context->id : current->id;
  return error;
}
DRIVER(cuCtxGetId, (CUcontext context, unsigned long long *id), (context, id), get_context_id(context, id))

static int priority_range(int *least, int *greatest)
{
  CUcontext context;
  int error = sim_context(&context);

  if (error == 0 && least != NULL)
    *least = 0;
  if (error == 0 && greatest != NULL)
    *greatest = -5;
  return error;
}
DRIVER(cuCtxGetStreamPriorityRange, (int *least, int *greatest), (least, greatest), priority_range(least, greatest))

static int synchronize(CUcontext context)
{
  int error = context != NULL ? check_context(context) : sim_context(&context);

  if (error != 0)
    return error;
  pthread_mutex_lock(&sim_lock);
  if ((error = sim_capture_forbid_any(context)) == 0)
    sim_wait_context(context);
  pthread_mutex_unlock(&sim_lock);
  return error;
}
DRIVER0(cuCtxSynchronize, synchronize(NULL))
#if CUDA_VERSION >= 13000
DRIVER(cuCtxSynchronize_v2, (CUcontext context), (context), synchronize(context))
#endif

DRIVER0(cuProfilerStart, sim_ready())
DRIVER0(cuProfilerStop, sim_ready())
