/* SPDX-License-Identifier: Apache-2.0
 * Relative to /proc/self/exe, so that an installed tree may be moved and needs no setting. */
#include "cli/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *place_sysroot(void)
{
  const char *root = getenv("SYNCCOUNT_SYSROOT");
  return root ? root : "";
}

int place_yama_scope(void)
{
  char text = 0, *path = sc_asprintf("%s/proc/sys/kernel/yama/ptrace_scope", place_sysroot());
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  ssize_t got = fd < 0 ? -1 : read(fd, &text, 1);
  if (fd >= 0)
    close(fd);
  free(path);
  return got == 1 && text >= '0' && text <= '3' ? text - '0' : -1;
}

/* The first of folder/candidate that exists, as a new string. */
static enum sc_status find(const char *folder, const char *const *candidates, char **out, struct sc_error *err)
{
  struct sc_buf tried = {0};
  for (size_t i = 0; candidates[i]; ++i) {
    char *path = sc_asprintf("%s/%s", folder, candidates[i]);
    if (path && access(path, F_OK) == 0) {
      *out = path;
      sc_buf_free(&tried);
      return SC_OK;
    }
    sc_buf_printf(&tried, "%s%s", i ? " and " : "", path ? path : candidates[i]);
    free(path);
  }
  sc_error_set(err, SC_ERR_SYSTEM,
               "a part of synccount is missing: looked for %s. Build all of it ('make') or install it again",
               tried.failed ? candidates[0] : tried.data);
  sc_buf_free(&tried);
  return SC_ERR_SYSTEM;
}

/* The path as people would write it, in the place of the one given; that one where it cannot be found out. */
static char *without_dots(char *path)
{
  char *plain = realpath(path, NULL);
  if (!plain)
    return path;
  free(path);
  return plain;
}

enum sc_status place_find(struct place *out, struct sc_error *err)
{
  /* Beside the binary in a build tree, in the folders of the installation else. */
  static const char *const probes[] = {"synccount-probe", SC_INSTALLED_PROBE, NULL};
  static const char *const tracers[] = {"../lib/libsynccount.so", SC_INSTALLED_TRACER, NULL};
  static const char *const simcudas[] = {"../lib/simcuda", SC_INSTALLED_SIMCUDA, NULL};
  static const char *const configs[] = {"../share/synccount/configs", SC_INSTALLED_CONFIGS, NULL};
  static const char *const pythons[] = {"../share/synccount/python", SC_INSTALLED_PYTHON, NULL};
  char exe[PATH_MAX];
  struct place place = {0};
  enum sc_status status = SC_OK;
  ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (length <= 0)
    return sc_error_set(err, SC_ERR_SYSTEM, "cannot read /proc/self/exe: %s", strerror(errno));
  exe[length] = '\0';
  *strrchr(exe, '/') = '\0';

  const char *probe = getenv("SYNCCOUNT_PROBE");
  if (probe && *probe)
    status = (place.probe = sc_strdup(probe)) ? SC_OK : sc_error_no_memory(err);
  else
    status = find(exe, probes, &place.probe, err);
  if (status == SC_OK)
    status = find(exe, tracers, &place.tracer, err);
  if (status == SC_OK)
    status = find(exe, simcudas, &place.simcuda, err);
  if (status == SC_OK)
    status = find(exe, configs, &place.configs, err);
  if (status == SC_OK)
    place.configs = without_dots(place.configs); /* messages name this folder */
  if (status == SC_OK)
    status = find(exe, pythons, &place.python, err);
  if (status != SC_OK) {
    place_free(&place);
    return status;
  }
  *out = place;
  return SC_OK;
}

void place_free(struct place *place)
{
  free(place->probe);
  free(place->tracer);
  free(place->simcuda);
  free(place->configs);
  free(place->python);
  *place = (struct place){0};
}
