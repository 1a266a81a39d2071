/* SPDX-License-Identifier: Apache-2.0
 * forking MODE: 20 read-backs, a child, 20 read-backs more. Prints the child's process id.
 *   fork    the child runs on in this image, opens and closes a range and exits; it makes no CUDA call (CUDA forbids
 * it) exec    the child executes this program again as "forking child": 7 read-backs of its own early   fork before
 * CUDA is used at all; the child makes 7 read-backs, the parent 40 child   7 read-backs */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "items.h"

static int child_items(void) {
  struct items items = { 0 };
  return items_begin(&items) && items_many(&items, 7) ? 0 : 1;
}

static int child(const char *mode) {
  if (strcmp(mode, "early") == 0)
    return child_items();
  if (strcmp(mode, "exec") == 0) {
    execl("/proc/self/exe", "forking", "child", (char *)NULL);
    return 127;
  }
  struct row_run run = { .name = "in the child" };
  row_begin(&run);
  row_end(&run);
  return 0;
}

int main(int argc, char **argv) {
  const char *mode = argc == 2 ? argv[1] : "";
  bool early = strcmp(mode, "early") == 0;
  struct items items = { 0 };
  if (strcmp(mode, "child") == 0)
    return child_items();
  if (!early && strcmp(mode, "fork") != 0 && strcmp(mode, "exec") != 0) {
    fprintf(stderr, "usage: forking fork|exec|early|child\n");
    return 2;
  }
  if (!early && (!items_begin(&items) || !items_many(&items, 20)))
    return 3;
  fflush(NULL);
  pid_t pid = fork();
  if (pid < 0)
    return 3;
  if (pid == 0)
    exit(child(mode)); /* exit handlers run in the child as well: they must not touch the parent's trace */
  printf("child %ld\n", (long)pid);
  if (early && !items_begin(&items))
    return 3;
  bool ok = items_many(&items, early ? 40 : 20);
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fprintf(stderr, "the child ended with status %#x\n", (unsigned)status);
    return 1;
  }
  return ok ? 0 : 1;
}
