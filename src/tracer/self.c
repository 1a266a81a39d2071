/* SPDX-License-Identifier: Apache-2.0
 * Our own path, as the loader knows it. */
#include "tracer/self.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *loaded_as(void) {
  Dl_info info;
  return dladdr((const void *)loaded_as, &info) != 0 ? info.dli_fname : NULL;
}

bool sc_self_path(char path[static PATH_MAX]) {
  const char *name = loaded_as();
  return name != NULL && realpath(name, path) != NULL;
}

bool sc_self_is(const char *path) {
  const char *name = loaded_as();
  struct stat ours, theirs;
  if (path == NULL || name == NULL)
    return false;
  if (strcmp(path, name) == 0)
    return true;
  return stat(name, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
         ours.st_ino == theirs.st_ino;
}

bool sc_self_preloaded(void) {
  const char *preload = getenv("LD_PRELOAD"), *name = loaded_as();
  if (preload == NULL || name == NULL)
    return false;
  const char *slash = strrchr(name, '/');
  return strstr(preload, slash != NULL ? slash + 1 : name) != NULL;
}
