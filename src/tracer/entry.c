/* SPDX-License-Identifier: Apache-2.0
 * libsynccount.so from outside: a constructor and three exported functions. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/nvtx.h"
#include "tracer/start.h"
#include "tracer/untraced.h"

#define SC_EXPORT __attribute__((visibility("default")))

SC_EXPORT int InitializeInjection(void);
SC_EXPORT int InitializeInjectionNvtx(sc_nvtx_get_table get_table);
SC_EXPORT int InitializeInjectionNvtx2(sc_nvtx_get_table get_table);

static bool find_self(char path[static PATH_MAX]) {
  Dl_info info;
  return dladdr((const void *)find_self, &info) != 0 && info.dli_fname != NULL &&
         realpath(info.dli_fname, path) != NULL;
}

/* Points CUDA (if asked) and NVTX at this library, unless they point somewhere already. The driver wants a
 * full path. */
static void point_here(bool cuda) {
  char path[PATH_MAX];
  bool set_cuda = cuda && getenv("CUDA_INJECTION64_PATH") == NULL, set_nvtx = getenv("NVTX_INJECTION64_PATH") == NULL;
  if ((!set_cuda && !set_nvtx && !cuda) || !find_self(path))
    return;
  if (set_cuda)
    (void)setenv("CUDA_INJECTION64_PATH", path, 0);
  if (set_nvtx)
    (void)setenv("NVTX_INJECTION64_PATH", path, 0);
  if (cuda)
    sc_untraced_watch(path);
}

/* Under LD_PRELOAD: CUDA and NVTX find us when, and if, the program comes to use them. That is all a program pays that
 * never does. */
__attribute__((constructor)) static void preloaded(void) {
  int saved = errno;
  if (sc_untraced_wanted(true))
    point_here(true);
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

/* Always 1: whatever happened to us, the program goes on. */
int InitializeInjection(void) {
  const void *caller = __builtin_extract_return_addr(__builtin_return_address(0));
  int saved = errno;
  if (sc_untraced_wanted(false)) {
    point_here(false); /* injected without LD_PRELOAD: for NVTX copies not yet initialised */
    sc_tracer_start(!called_by_driver(caller));
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
