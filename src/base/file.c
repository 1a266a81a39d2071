/* SPDX-License-Identifier: Apache-2.0
 * Files without a name. */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

FILE *sc_temporary_file(void)
{
  const char *folder = getenv("TMPDIR");
  char *name = sc_asprintf("%s/synccount-XXXXXX", folder && *folder ? folder : "/tmp");
  int fd = name ? mkstemp(name) : -1, reason = errno;
  if (fd >= 0)
    (void)unlink(name);
  free(name);
  FILE *file = fd >= 0 ? fdopen(fd, "w+b") : NULL;
  if (!file && fd >= 0) {
    reason = errno;
    (void)close(fd);
  }
  errno = file ? errno : reason;
  return file;
}
