/* SPDX-License-Identifier: Apache-2.0
 * Where a process's socket is. */
#include "trace/control.h"

#include <stdio.h>

bool sc_control_place(unsigned place, const char *runtime, const char *temporary, uid_t uid, pid_t pid,
                      char folder[static SC_CONTROL_PATH], char socket[static SC_CONTROL_PATH]) {
  const char *const roots[SC_CONTROL_PLACES] = {runtime, temporary, "/tmp"};
  char user[24] = "";
  int n;

  if (place >= SC_CONTROL_PLACES || !roots[place] || roots[place][0] != '/')
    return false;
  if (place > 0) /* other users have theirs beside it */
    (void)snprintf(user, sizeof user, "-%lu", (unsigned long)uid);
  n = snprintf(folder, SC_CONTROL_PATH, "%s/synccount%s", roots[place], user);
  if (n < 0 || (size_t)n >= SC_CONTROL_PATH)
    return false;
  n = snprintf(socket, SC_CONTROL_PATH, "%s/%ld.socket", folder, (long)pid);
  return n > 0 && (size_t)n < SC_CONTROL_PATH;
}
