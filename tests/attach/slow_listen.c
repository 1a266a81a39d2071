/* SPDX-License-Identifier: Apache-2.0
 * Preloaded: listen(2) takes 300 ms longer, so that a socket's file is there for a while before its maker is done. */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int listen(int fd, int backlog) {
  const struct timespec pause = { 0, 300 * 1000 * 1000 };
  (void)nanosleep(&pause, NULL);
  return (int)syscall(SYS_listen, fd, backlog);
}
