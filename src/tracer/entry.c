/* SPDX-License-Identifier: Apache-2.0
 * libsynccount.so from outside: a constructor and three exported functions. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/message.h"
#include "tracer/nvtx.h"
#include "tracer/self.h"
#include "tracer/start.h"
#include "tracer/untraced.h"

#define SC_EXPORT __attribute__((visibility("default")))

SC_EXPORT int InitializeInjection(void);
SC_EXPORT int InitializeInjectionNvtx(sc_nvtx_get_table get_table);
SC_EXPORT int InitializeInjectionNvtx2(sc_nvtx_get_table get_table);

/* Points what is asked for at this library, unless it points somewhere already. The driver wants a full path. */
static void point_here(bool cuda, bool nvtx) {
  char path[PATH_MAX];
  cuda = cuda && getenv("CUDA_INJECTION64_PATH") == NULL;
  nvtx = nvtx && getenv("NVTX_INJECTION64_PATH") == NULL;
  if ((!cuda && !nvtx) || !sc_self_path(path))
    return;
  if (cuda)
    (void)setenv("CUDA_INJECTION64_PATH", path, 0);
  if (nvtx)
    (void)setenv("NVTX_INJECTION64_PATH", path, 0);
}

/* Under LD_PRELOAD: CUDA and NVTX find us when, and if, the program comes to use them. That is all a program pays that
 * never does. Loaded in any other way we change nothing that the program's children would inherit. */
__attribute__((constructor)) static void loaded(void) {
  char path[PATH_MAX];
  int saved = errno;
  sc_tracer_remember_stderr();
  const char *dormant = getenv("SYNCCOUNT_DORMANT");
  if (dormant != NULL && strcmp(dormant, "1") == 0)
    sc_tracer_will_sleep();
  if (sc_untraced_wanted(true) && sc_self_preloaded()) {
    point_here(true, true);
    if (sc_self_path(path))
      sc_untraced_watch(path);
  }
  errno = saved;
}

/* The driver calls InitializeInjection from inside cuInit. Anybody else who calls it comes late, unless CUPTI tells us
 * afterwards that cuInit has only just finished (callback.c). */
static bool called_by_driver(const void *caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
    return false;
  const char *slash = strrchr(info.dli_fname, '/');
  const char *name = slash != NULL ? slash + 1 : info.dli_fname;
  return (strncmp(name, "libcuda", 7) == 0 && strncmp(name, "libcudart", 9) != 0) ||
         strncmp(name, "libnvidia-", 10) == 0;
}

/* Always 1: whatever happened to us, the program goes on. Called by neither the driver nor a program that names us in
 * CUDA_INJECTION64_PATH, we were put into a running program by somebody who will say when to count. */
int InitializeInjection(void) {
  const void *caller = __builtin_extract_return_addr(__builtin_return_address(0));
  int saved = errno;
  bool by_driver = called_by_driver(caller);
  bool injected = !by_driver && !sc_self_is(getenv("CUDA_INJECTION64_PATH"));
  if (injected || sc_untraced_wanted(false)) {
    if (!by_driver && !sc_self_preloaded())
      sc_nvtx_came_late();
    point_here(false, true); /* for copies of NVTX that are not yet initialised */
    if (injected || sc_tracer_dormant())
      sc_tracer_sleep();
    else
      sc_tracer_start(!by_driver);
  }
  errno = saved;
  return 1;
}

int InitializeInjectionNvtx2(sc_nvtx_get_table get_table) {
  int saved = errno;
  sc_tracer_watch_forks();
  int attached = sc_nvtx_attach(get_table);
  errno = saved;
  return attached;
}

/* The old libnvToolsExt.so. Its tables are found the same way. */
int InitializeInjectionNvtx(sc_nvtx_get_table get_table) { return InitializeInjectionNvtx2(get_table); }
