/* SPDX-License-Identifier: Apache-2.0
 * The runtime's initialisation, last error, versions and devices. */
#include <string.h>

#include "rt.h"

#include <cudaProfiler.h>
#include <cuda_profiler_api.h>

static __thread int last_error;
static __thread bool bound;
static __thread int wanted_device; /* cudaSetDevice's, 0 until then */

int rt_note(int error)
{
  if (error != 0)
    last_error = error;
  return error;
}

static int use_device(int device)
{
  CUcontext primary;
  int error = (int)cuDevicePrimaryCtxRetain(&primary, device);

  if (error == 0)
    error = (int)cuCtxSetCurrent(primary);
  if (error == 0) {
    wanted_device = device;
    bound = true;
  }
  return error;
}

/* A context that the program made current through the driver is used as it is. */
int rt_bind(void)
{
  CUcontext current = NULL;

  if (__builtin_expect(bound, 1))
    return 0;
  int error = (int)cuInit(0);
  if (error == 0)
    error = (int)cuCtxGetCurrent(&current);
  if (error == 0 && current == NULL)
    error = use_device(wanted_device);
  bound = error == 0;
  return rt_note(error);
}

/* ---- errors and versions ---- */

static int take_last_error(void)
{
  int error = last_error;

  last_error = 0;
  return error;
}
SIMCUDA_ENTRY(cudaGetLastError, cudaError_t, SIMCUDA_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020, NULL,
              false, 0, RT_SAME, NULL, (void), take_last_error())
SIMCUDA_ENTRY(cudaPeekAtLastError, cudaError_t, SIMCUDA_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020,
              NULL, false, 0, RT_SAME, NULL, (void), last_error)

SIMCUDA_EXPORT const char *cudaGetErrorName(cudaError_t error)
{
  const char *name = simcuda_error_name((int)error, true);

  return name != NULL ? name : "unrecognized error code";
}

SIMCUDA_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
  const char *text = simcuda_error_text((int)error);

  return text != NULL ? text : "unrecognized error code";
}

static int runtime_version(int *version)
{
  if (version == NULL)
    return cudaErrorInvalidValue;
  *version = CUDART_VERSION;
  return 0;
}
RUNTIME_EARLY(cudaRuntimeGetVersion, v3020, (int *version), (version), runtime_version(version))
RUNTIME_EARLY(cudaDriverGetVersion, v3020, (int *version), (version), cuDriverGetVersion(version))

/* ---- devices ---- */

/* Counting devices initialises the driver, but makes no context. */
static int count_devices(int *count)
{
  int error = (int)cuInit(0);

  if (count == NULL)
    return cudaErrorInvalidValue;
  if (error == 0)
    error = (int)cuDeviceGetCount(count);
  if (error != 0)
    *count = 0;
  return error;
}
RUNTIME_(cudaGetDeviceCount, cudaGetDeviceCount_v3020, false, rt_note((int)cuInit(0)), rt_note, NULL, (int *count),
         (count), count_devices(count))

static int set_device(int device)
{
  int count = 0, error = (int)cuDeviceGetCount(&count);

  if (error == 0 && (device < 0 || device >= count))
    error = cudaErrorInvalidDevice;
  return error != 0 ? error : use_device(device);
}
RUNTIME_(cudaSetDevice, cudaSetDevice_v3020, false, rt_note((int)cuInit(0)), rt_note, NULL, (int device), (device),
         set_device(device))

static int get_device(int *device)
{
  CUdevice current = 0;

  if (device == NULL)
    return cudaErrorInvalidValue;
  int error = (int)cuCtxGetDevice(&current);
  if (error == 0)
    *device = current;
  return error;
}
RUNTIME(cudaGetDevice, v3020, (int *device), (device), get_device(device))

static int init_device(int device)
{
  CUcontext primary;

  return (int)cuDevicePrimaryCtxRetain(&primary, device);
}
RUNTIME(cudaInitDevice, v12000, (int device, unsigned deviceFlags, unsigned flags), (device, deviceFlags, flags),
        init_device(device))

RUNTIME0(cudaDeviceSynchronize, v3020, cuCtxSynchronize())
#if CUDART_VERSION < 13000
RUNTIME0(cudaThreadSynchronize, v3020, cuCtxSynchronize())
#endif

/* The context is gone afterwards; the next call of any thread makes a new one. Threads bound to the old one find it
 * dead. */
static int reset_device(void)
{
  CUdevice device;
  int error = (int)cuCtxGetDevice(&device);

  if (error == 0)
    error = (int)cuDevicePrimaryCtxReset_v2(device);
  if (error == 0)
    error = (int)cuCtxSetCurrent(NULL);
  bound = false;
  return error;
}
RUNTIME0(cudaDeviceReset, v3020, reset_device())

static int set_flags(unsigned flags)
{
  CUdevice device;
  int error = (int)cuCtxGetDevice(&device);

  return error != 0 ? error : (int)cuDevicePrimaryCtxSetFlags_v2(device, flags & ~(unsigned)cudaDeviceMapHost);
}
RUNTIME(cudaSetDeviceFlags, v3020, (unsigned flags), (flags), set_flags(flags))

static int get_flags(unsigned *flags)
{
  CUdevice device;
  int active, error = (int)cuCtxGetDevice(&device);

  if (flags == NULL)
    return cudaErrorInvalidValue;
  if (error == 0)
    error = (int)cuDevicePrimaryCtxGetState(device, flags, &active);
  if (error == 0)
    *flags |= cudaDeviceMapHost;
  return error;
}
RUNTIME(cudaGetDeviceFlags, v7000, (unsigned *flags), (flags), get_flags(flags))

RUNTIME(cudaDeviceGetAttribute, v5000, (int *value, enum cudaDeviceAttr attr, int device), (value, attr, device),
        cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device))
RUNTIME(cudaDeviceGetPCIBusId, v4010, (char *pciBusId, int len, int device), (pciBusId, len, device),
        cuDeviceGetPCIBusId(pciBusId, len, device))
RUNTIME(cudaDeviceGetByPCIBusId, v4010, (int *device, const char *pciBusId), (device, pciBusId),
        cuDeviceGetByPCIBusId(device, pciBusId))
RUNTIME(cudaDeviceCanAccessPeer, v4000, (int *canAccessPeer, int device, int peerDevice),
        (canAccessPeer, device, peerDevice), cuDeviceCanAccessPeer(canAccessPeer, device, peerDevice))
RUNTIME(cudaDeviceGetStreamPriorityRange, v5050, (int *least, int *greatest), (least, greatest),
        cuCtxGetStreamPriorityRange(least, greatest))

/* The fields of cudaDeviceProp that are plain attributes. */
#define PROPERTIES(X)                                                                                                 \
  X(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)                                                                   \
  X(regsPerBlock, MAX_REGISTERS_PER_BLOCK)                                                                            \
  X(warpSize, WARP_SIZE) X(memPitch, MAX_PITCH) X(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK) X(                       \
      maxThreadsDim[0], MAX_BLOCK_DIM_X) X(maxThreadsDim[1], MAX_BLOCK_DIM_Y) X(maxThreadsDim[2], MAX_BLOCK_DIM_Z)    \
      X(maxGridSize[0], MAX_GRID_DIM_X) X(maxGridSize[1], MAX_GRID_DIM_Y) X(maxGridSize[2], MAX_GRID_DIM_Z) X(        \
          totalConstMem, TOTAL_CONSTANT_MEMORY) X(major, COMPUTE_CAPABILITY_MAJOR) X(minor, COMPUTE_CAPABILITY_MINOR) \
          X(textureAlignment, TEXTURE_ALIGNMENT) X(multiProcessorCount, MULTIPROCESSOR_COUNT) X(                      \
              integrated, INTEGRATED) X(canMapHostMemory, CAN_MAP_HOST_MEMORY)                                        \
              X(concurrentKernels, CONCURRENT_KERNELS) X(ECCEnabled, ECC_ENABLED) X(pciBusID, PCI_BUS_ID) X(          \
                  pciDeviceID, PCI_DEVICE_ID) X(pciDomainID, PCI_DOMAIN_ID) X(asyncEngineCount, ASYNC_ENGINE_COUNT)   \
                  X(unifiedAddressing, UNIFIED_ADDRESSING) X(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH) X(              \
                      l2CacheSize, L2_CACHE_SIZE) X(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)      \
                      X(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED) X(                                    \
                          sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)                           \
                          X(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR) X(managedMemory, MANAGED_MEMORY) \
                              X(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED)                             \
                                  X(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)                               \
                                      X(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)   \
                                          X(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)                \
                                              X(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR)            \
                                                  X(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)      \
                                                      X(hostRegisterSupported, HOST_REGISTER_SUPPORTED)               \
                                                          X(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)

static int get_properties(struct cudaDeviceProp *properties, int device)
{
  CUuuid uuid;
  int value = 0, error;

  if (properties == NULL)
    return cudaErrorInvalidValue;
  memset(properties, 0, sizeof *properties);
  if ((error = (int)cuDeviceGetName(properties->name, sizeof properties->name, device)) != 0 ||
      (error = (int)cuDeviceTotalMem_v2(&properties->totalGlobalMem, device)) != 0 ||
      (error = (int)cuDeviceGetUuid_v2(&uuid, device)) != 0)
    return error;
  memcpy(properties->uuid.bytes, uuid.bytes, sizeof uuid.bytes);
#define COPY(field, attribute)                                                                   \
  if ((error = (int)cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_##attribute, device)) != 0) \
    return error;                                                                                \
  properties->field = (__typeof__(properties->field))value;
  PROPERTIES(COPY)
#undef COPY
  return 0;
}
#if CUDART_VERSION >= 13000
RUNTIME(cudaGetDeviceProperties, v12000, (struct cudaDeviceProp * prop, int device), (prop, device),
        get_properties(prop, device))
#else
#undef cudaGetDeviceProperties
RUNTIME_(cudaGetDeviceProperties_v2, cudaGetDeviceProperties_v2_v12000, false, rt_bind(), rt_note, NULL,
         (struct cudaDeviceProp * prop, int device), (prop, device), get_properties(prop, device))
#endif

/* Nothing profiles here that could be told to start: accepted, so that a program that frames its steps runs. */
RUNTIME0(cudaProfilerStart, v4000, cuProfilerStart())
RUNTIME0(cudaProfilerStop, v4000, cuProfilerStop())

/* ---- the driver's functions by name ---- */

static int entry_point(const char *symbol, void **function, unsigned version, unsigned long long flags,
                       enum cudaDriverEntryPointQueryResult *status, bool per_thread)
{
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;

  if (symbol == NULL || function == NULL)
    return cudaErrorInvalidValue;
  if (flags == cudaEnableDefault && per_thread)
    flags = cudaEnablePerThreadDefaultStream;
  int error = (int)cuGetProcAddress_v2(symbol, function, (int)version, flags, &found);
  if (status != NULL) {
    *status = (enum cudaDriverEntryPointQueryResult)found;
    return error == CUDA_ERROR_NOT_FOUND ? 0 : error; /* the caller reads the status */
  }
  return error;
}
#undef cudaGetDriverEntryPoint
#undef cudaGetDriverEntryPointByVersion
RUNTIME_PT(cudaGetDriverEntryPoint, _ptsz, v11030, v11030,
           (const char *symbol, void **funcPtr, unsigned long long flags,
            enum cudaDriverEntryPointQueryResult *driverStatus),
           (symbol, funcPtr, flags, driverStatus),
           entry_point(symbol, funcPtr, CUDA_VERSION, flags, driverStatus, per_thread))
RUNTIME_PT(cudaGetDriverEntryPointByVersion, _ptsz, v12050, v12050,
           (const char *symbol, void **funcPtr, unsigned cudaVersion, unsigned long long flags,
            enum cudaDriverEntryPointQueryResult *driverStatus),
           (symbol, funcPtr, cudaVersion, flags, driverStatus),
           entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus, per_thread))
