/* SPDX-License-Identifier: Apache-2.0
 * At exit, and only where CUDA or HIP is in the process without us: one line on stderr, and one file in the folder that
 * SYNCCOUNT_OUTPUT names, for `synccount run` to read. */
#include "tracer/untraced.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/message.h"
#include "tracer/start.h"

#define NOT_INITIALIZED 3 /* CUDA_ERROR_NOT_INITIALIZED */

static char own_path[PATH_MAX];

bool sc_untraced_wanted(bool first) {
  const char *follow = getenv("SYNCCOUNT_FOLLOW"), *noted = getenv("SYNCCOUNT_FIRST");
  char self[24];
  if (follow == NULL || strcmp(follow, "0") != 0)
    return true;
  (void)snprintf(self, sizeof(self), "%ld", (long)getpid());
  if (noted != NULL)
    return strcmp(noted, self) == 0;
  if (first)
    (void)setenv("SYNCCOUNT_FIRST", self, 0);
  return true;
}

static bool loaded(const char *library) {
  void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != NULL)
    (void)dlclose(handle);
  return handle != NULL;
}

static bool hip_is_there(void) {
  static const char *const names[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so" };
  for (size_t i = 0; i < SC_COUNTOF(names); i++)
    if (loaded(names[i]))
      return true;
  return false;
}

/* A library that is linked and never used is no reason to say anything. The call answers "not initialised" without
 * starting anything. */
static bool cuda_was_used(void) {
  void *libcuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void *symbol = libcuda != NULL ? dlsym(libcuda, "cuDeviceGetCount") : NULL;
  int (*get_count)(int *count), count;
  memcpy(&get_count, &symbol, sizeof(get_count));
  return get_count != NULL && get_count(&count) != NOT_INITIALIZED;
}

static bool find_reason(char *text, size_t size) {
  const char *injected = getenv("CUDA_INJECTION64_PATH");
  if (injected == NULL && cuda_was_used()) { /* our constructor had set it */
    (void)snprintf(text, size,
                   "it removed CUDA_INJECTION64_PATH from its environment before it used CUDA; leave that variable alone");
    return true;
  }
  if (injected != NULL && strcmp(injected, own_path) != 0 && cuda_was_used()) {
    (void)snprintf(text, size,
                   "CUDA_INJECTION64_PATH=%.400s gives CUDA's injection to another library; unset it, or run without that "
                   "tool",
                   injected);
    return true;
  }
  if (hip_is_there()) {
    (void)snprintf(text, size, "it uses HIP (libamdhip64.so): only NVIDIA's CUDA calls can be counted");
    return true;
  }
  return false;
}

/* Named like a trace, so that it is found with them. */
static void leave_file(const char *folder, const char *line) {
  char path[PATH_MAX];
  int n = snprintf(path, sizeof(path), "%s/synccount-%ld.untraced", folder, (long)getpid());
  int fd = n > 0 && (size_t)n < sizeof(path) ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  if (fd < 0)
    return;
  ssize_t written = write(fd, line, strlen(line));
  (void)written; /* nobody to tell */
  (void)close(fd);
}

static void tell(void) {
  char reason[600], line[900];
  struct sc_tracer_options options;
  int saved = errno;
  if (sc_tracer_awaited() && find_reason(reason, sizeof(reason))) {
    sc_tracer_options_read(&options);
    (void)snprintf(line, sizeof(line), "process %ld (%.64s) was not traced, because %s", (long)getpid(),
                   program_invocation_short_name, reason);
    sc_tracer_say(&options, "%s", line);
    if (getenv("SYNCCOUNT_OUTPUT") != NULL)
      leave_file(options.output, line);
  }
  errno = saved;
}

void sc_untraced_watch(const char *self) {
  (void)snprintf(own_path, sizeof(own_path), "%s", self);
  (void)atexit(tell);
}
