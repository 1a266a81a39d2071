/* SPDX-License-Identifier: Apache-2.0
 * A libcuda of two calls: cuInit, which injects as the driver does, and cuStreamSynchronize, which returns at once. */
#include <cupti.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static void (*emit)(const CUpti_CallbackData *data);
static uint32_t correlation;

EXPORT CUresult CUDAAPI cuInit(unsigned flags) {
  const char *path = getenv("CUDA_INJECTION64_PATH");
  static int initialised;
  (void)flags;
  if (initialised++ != 0)
    return CUDA_SUCCESS;
  if (path != NULL) {
    void *tool = dlopen(path, RTLD_NOW);
    int (*initialise)(void) = NULL;
    if (tool != NULL)
      *(void **)&initialise = dlsym(tool, "InitializeInjection");
    if (initialise != NULL && initialise() != 1)
      return CUDA_ERROR_UNKNOWN; /* what a driver would do is not documented: it must not come to this */
  }
  void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (cupti != NULL)
    *(void **)&emit = dlsym(cupti, "fake_cupti_emit");
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  CUresult result = CUDA_SUCCESS;
  cuStreamSynchronize_params params = { .hStream = stream };
  CUpti_CallbackData data = {
    .callbackSite = CUPTI_API_ENTER,
    .functionName = "cuStreamSynchronize",
    .functionParams = &params,
    .functionReturnValue = &result,
    .correlationId = __atomic_add_fetch(&correlation, 1, __ATOMIC_RELAXED),
  };
  if (emit == NULL)
    return result;
  emit(&data);
  data.callbackSite = CUPTI_API_EXIT;
  emit(&data);
  return result;
}
