/* SPDX-License-Identifier: Apache-2.0
 * The clock that the device runs at now. CUDA tells the highest one alone; the driver's NVML, bound late, the present one. Its
 * header is not part of every toolkit, and these three functions have not changed since they are there. */
#include "host/gpu.h"

#include <dlfcn.h>

enum { NVML_SUCCESS = 0, NVML_CLOCK_SM = 1 };

unsigned sc_gpu_sm_clock_mhz(const char *pci_bus_id)
{
  unsigned mhz = 0;
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), *device = NULL;
  if (library == NULL)
    return 0;
  int (*init)(void), (*shutdown)(void), (*find)(const char *, void **), (*clock)(void *, int, unsigned *);
  *(void **)&init = dlsym(library, "nvmlInit_v2");
  *(void **)&shutdown = dlsym(library, "nvmlShutdown");
  *(void **)&find = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
  *(void **)&clock = dlsym(library, "nvmlDeviceGetClockInfo");
  if (init && shutdown && find && clock && init() == NVML_SUCCESS) {
    if (find(pci_bus_id, &device) != NVML_SUCCESS || clock(device, NVML_CLOCK_SM, &mhz) != NVML_SUCCESS)
      mhz = 0;
    shutdown();
  }
  dlclose(library);
  return mhz;
}
