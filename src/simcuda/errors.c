/* SPDX-License-Identifier: Apache-2.0
 * Error numbers, names and texts (one numbering serves driver and runtime), and the look-up of entry points by name. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define ERRORS(X)                                                                                                      \
  X(0, "CUDA_SUCCESS", "cudaSuccess", "no error")                                                                      \
  X(1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue", "invalid argument")                                        \
  X(2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "out of memory")                                       \
  X(3, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError", "initialization error")                           \
  X(4, "CUDA_ERROR_DEINITIALIZED", "cudaErrorCudartUnloading", "driver shutting down")                                 \
  X(5, "CUDA_ERROR_PROFILER_DISABLED", "cudaErrorProfilerDisabled",                                                    \
    "profiler disabled while using external profiling tool")                                                           \
  X(9, NULL, "cudaErrorInvalidConfiguration", "invalid configuration argument")                                        \
  X(12, NULL, "cudaErrorInvalidPitchValue", "invalid pitch argument")                                                  \
  X(13, NULL, "cudaErrorInvalidSymbol", "invalid device symbol")                                                       \
  X(17, NULL, "cudaErrorInvalidDevicePointer", "invalid device pointer")                                               \
  X(21, NULL, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy")                                  \
  X(34, "CUDA_ERROR_STUB_LIBRARY", "cudaErrorStubLibrary", "CUDA driver is a stub library")                            \
  X(35, NULL, "cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version")           \
  X(46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "cudaErrorDevicesUnavailable",                                                \
    "CUDA-capable device(s) is/are busy or unavailable")                                                               \
  X(52, NULL, "cudaErrorMissingConfiguration", "__global__ function call is not configured")                           \
  X(98, NULL, "cudaErrorInvalidDeviceFunction", "invalid device function")                                             \
  X(100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice", "no CUDA-capable device is detected")                            \
  X(101, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice", "invalid device ordinal")                              \
  X(200, "CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage", "device kernel image is invalid")                  \
  X(201, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized", "invalid device context")                       \
  X(209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice",                                            \
    "no kernel image is available for execution on the device")                                                        \
  X(301, "CUDA_ERROR_FILE_NOT_FOUND", "cudaErrorFileNotFound", "file not found")                                       \
  X(304, "CUDA_ERROR_OPERATING_SYSTEM", "cudaErrorOperatingSystem",                                                    \
    "OS call failed or operation not supported on this OS")                                                            \
  X(400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle", "invalid resource handle")                     \
  X(401, "CUDA_ERROR_ILLEGAL_STATE", "cudaErrorIllegalState",                                                          \
    "the operation cannot be performed in the present state")                                                          \
  X(500, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound", "named symbol not found")                                  \
  X(600, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady", "device not ready")                                              \
  X(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", "an illegal memory access was encountered")          \
  X(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorLaunchOutOfResources",                                        \
    "too many resources requested for launch")                                                                         \
  X(702, "CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout", "the launch timed out and was terminated")             \
  X(704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "cudaErrorPeerAccessAlreadyEnabled",                                \
    "peer access is already enabled")                                                                                  \
  X(705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled")    \
  X(708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cudaErrorSetOnActiveProcess",                                           \
    "cannot set while device is active in this process")                                                               \
  X(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "cudaErrorContextIsDestroyed", "context is destroyed")                     \
  X(710, "CUDA_ERROR_ASSERT", "cudaErrorAssert", "device-side assert triggered")                                       \
  X(712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "cudaErrorHostMemoryAlreadyRegistered",                          \
    "part or all of the requested memory range is already mapped")                                                     \
  X(713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "cudaErrorHostMemoryNotRegistered",                                  \
    "pointer does not correspond to a registered memory region")                                                       \
  X(719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", "unspecified launch failure")                           \
  X(800, "CUDA_ERROR_NOT_PERMITTED", "cudaErrorNotPermitted", "operation not permitted")                               \
  X(801, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported", "operation not supported")                               \
  X(802, "CUDA_ERROR_SYSTEM_NOT_READY", "cudaErrorSystemNotReady", "system not yet initialized")                       \
  X(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "cudaErrorSystemDriverMismatch",                                         \
    "system has unsupported display driver / cuda driver combination")                                                 \
  X(900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cudaErrorStreamCaptureUnsupported",                                 \
    "operation not permitted when stream is capturing")                                                                \
  X(901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "cudaErrorStreamCaptureInvalidated",                                 \
    "operation failed due to a previous error during capture")                                                         \
  X(902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "cudaErrorStreamCaptureMerge",                                             \
    "operation would result in a merge of separate capture sequences")                                                 \
  X(903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "cudaErrorStreamCaptureUnmatched",                                     \
    "capture was not ended in the same stream as it began")                                                            \
  X(904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work") \
  X(905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "cudaErrorStreamCaptureIsolation",                                     \
    "dependency created on uncaptured work in another stream")                                                         \
  X(906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "cudaErrorStreamCaptureImplicit",                                       \
    "operation would make the legacy stream depend on a capturing blocking stream")                                    \
  X(907, "CUDA_ERROR_CAPTURED_EVENT", "cudaErrorCapturedEvent",                                                        \
    "operation not permitted on an event last recorded in a capturing stream")                                         \
  X(908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "cudaErrorStreamCaptureWrongThread",                                \
    "attempt to terminate a thread-local capture sequence from another thread")                                        \
  X(909, "CUDA_ERROR_TIMEOUT", "cudaErrorTimeout", "wait operation timed out")                                         \
  X(999, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown", "unknown error")

static const struct {
  int number;
  const char *driver, *runtime, *text;
} errors[] = {
#define ROW(number, driver, runtime, text) {number, driver, runtime, text},
    ERRORS(ROW)
#undef ROW
};
enum { ERROR_COUNT = sizeof errors / sizeof errors[0] };

static int index_of(int number)
{
  for (int i = 0; i < ERROR_COUNT; i++)
    if (errors[i].number == number)
      return i;
  return -1;
}

const char *simcuda_error_name(int number, bool runtime)
{
  int i = index_of(number);

  return i < 0 ? NULL : runtime ? errors[i].runtime : errors[i].driver;
}

const char *simcuda_error_text(int number)
{
  int i = index_of(number);

  return i < 0 ? NULL : errors[i].text;
}

int simcuda_error_number(const char *text)
{
  char *end;
  long number = strtol(text, &end, 10);

  if (end != text)
    return *end == '\0' && number > 0 && number < 10000 ? (int)number : -1;
  for (int i = 0; i < ERROR_COUNT; i++)
    if (strcmp(errors[i].runtime, text) == 0 || (errors[i].driver != NULL && strcmp(errors[i].driver, text) == 0))
      return errors[i].number;
  return -1;
}

static int give(const char **out, const char *text)
{
  if (out == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  *out = text;
  return text != NULL ? 0 : CUDA_ERROR_INVALID_VALUE;
}
DRIVER(cuGetErrorName, (CUresult error, const char **name), (error, name),
       give(name, simcuda_error_name((int)error, false)))
DRIVER(cuGetErrorString, (CUresult error, const char **text), (error, text), give(text, simcuda_error_text((int)error)))

/* ---- entry points by name ---- */

/* "cuMemAlloc" means the newest version that is here: _v4 to _v2, then the plain name; in each the per-thread form if
 * asked for. */
static void *entry_point(const char *name, bool per_thread)
{
  static const char *const versions[] = {"_v4", "_v3", "_v2", ""}, *const threads[] = {"_ptsz", "_ptds", ""};
  void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), *found = NULL;
  char full[160];

  if (library == NULL)
    return NULL;
  for (size_t v = 0; v < 4 && found == NULL; v++)
    for (size_t t = per_thread ? 0 : 2; t < 3 && found == NULL; t++) {
      int n = snprintf(full, sizeof full, "%s%s%s", name, versions[v], threads[t]);
      if (n > 0 && (size_t)n < sizeof full)
        found = dlsym(library, full);
    }
  dlclose(library); /* it stays loaded: this code is in it */
  return found;
}

static int get_proc_address(const char *name, void **function, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
  if (name == NULL || function == NULL || strncmp(name, "cu", 2) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *function = entry_point(name, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (status != NULL)
    *status = *function != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function != NULL ? 0 : CUDA_ERROR_NOT_FOUND;
}
DRIVER(cuGetProcAddress_v2,
       (const char *name, void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status),
       (name, function, version, flags, status), get_proc_address(name, function, flags, status))
