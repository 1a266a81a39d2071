/* SPDX-License-Identifier: Apache-2.0
 * Loading into a running program where nobody has written down how: every architecture but x86-64. */
#include "cli/inject.h"

enum sc_status inject_library_told(pid_t pid, const char *library, struct inject_outcome *out, struct sc_error *err)
{
  (void)library;
  (void)out;
  return sc_error_set(err, SC_ERR_SYSTEM,
                      "process %ld: a library can be loaded into a running program on x86-64 only; start the program "
                      "with LD_PRELOAD=libsynccount.so and SYNCCOUNT_DORMANT=1, then attach without --inject",
                      (long)pid);
}

enum sc_status inject_library(pid_t pid, const char *library, struct sc_error *err)
{
  return inject_library_told(pid, library, NULL, err);
}
