/* SPDX-License-Identifier: Apache-2.0
 * fork, exec, and a wait that passes signals on. */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANCESTORS_MAX 64 /* steps from a sender up to the program */

extern char **environ;

static const int passed[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
static sigset_t mask_before;

/* One that we were started to ignore (nohup, a background job of a script) is ignored by the program as well. */
static void passed_signals(sigset_t *set)
{
  sigemptyset(set);
  for (size_t i = 0; i < SC_COUNTOF(passed); ++i) {
    struct sigaction now;
    if (sigaction(passed[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
      sigaddset(set, passed[i]);
  }
}

void launch_hold(void)
{
  sigset_t set;
  passed_signals(&set);
  sigprocmask(SIG_BLOCK, &set, &mask_before);
}

void launch_release(void) { sigprocmask(SIG_SETMASK, &mask_before, NULL); }

/* ---- environment ------------------------------------------------------------------------------- */

static bool same_name(const char *entry, const char *change)
{
  size_t length = strcspn(change, "=");
  return strncmp(entry, change, length) == 0 && entry[length] == '=';
}

char **launch_environment(const char *const *changes)
{
  size_t count = 0, used = 0, added = 0;
  while (environ[count])
    ++count;
  while (changes && changes[added])
    ++added;
  char **list = sc_calloc_array(count + added + 1, sizeof *list);
  if (!list)
    return NULL;
  for (size_t i = 0; i < count; ++i) {
    bool replaced = false;
    for (size_t j = 0; j < added && !replaced; ++j)
      replaced = same_name(environ[i], changes[j]);
    if (!replaced)
      list[used++] = environ[i];
  }
  for (size_t j = 0; j < added; ++j) {
    if (strchr(changes[j], '='))
      list[used++] = (char *)changes[j];
  }
  return list;
}

/* ---- the program's side ------------------------------------------------------------------------ */

/* Between fork and exec. errors gets errno if exec fails. */
static _Noreturn void become(const struct launch *launch, char **environment, const struct sigaction *child_action,
                             int errors)
{
  sigaction(SIGCHLD, child_action, NULL);
  sigprocmask(SIG_SETMASK, &mask_before, NULL);
  execvpe(launch->argv[0], launch->argv, environment);
  int reason = errno;
  if (write(errors, &reason, sizeof reason) < 0)
    _exit(126);
  _exit(127);
}

/* ---- our side ---------------------------------------------------------------------------------- */

static pid_t parent_of(pid_t pid)
{
  char path[32], text[512];
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0)
    close(fd);
  if (n <= 0)
    return 0;
  text[n] = '\0';
  const char *name_end = strrchr(text, ')'); /* the name may hold anything */
  long parent = 0;
  return name_end && sscanf(name_end + 1, " %*c %ld", &parent) == 1 ? (pid_t)parent : 0;
}

static bool comes_from(pid_t sender, pid_t program)
{
  for (int i = 0; sender > 1 && i < ANCESTORS_MAX; ++i) {
    if (sender == program)
      return true;
    sender = parent_of(sender);
  }
  return false;
}

/* A signal of the kernel's (the terminal's) went to the whole process group, and so did one that the program sends to
 * its own group. */
static void pass_on(const siginfo_t *info, pid_t program)
{
  bool sent = info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
  if (sent && !comes_from(info->si_pid, program))
    kill(program, info->si_signo);
}

/* One that came with the program's end must not end us before the report. */
static void forget_pending(const sigset_t *set)
{
  const struct timespec at_once = {0};
  while (sigtimedwait(set, NULL, &at_once) > 0)
    ;
}

static int wait_for(pid_t program)
{
  sigset_t set;
  int status = 0;
  passed_signals(&set);
  sigaddset(&set, SIGCHLD);
  for (;;) {
    siginfo_t info;
    pid_t got = waitpid(program, &status, WNOHANG);
    if (got == program || (got < 0 && errno != EINTR)) {
      forget_pending(&set);
      return status;
    }
    if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD)
      pass_on(&info, program);
  }
}

static enum sc_status cannot_start(const struct launch *launch, int reason, struct launch_end *out,
                                   struct sc_error *err)
{
  const char *name = launch->argv[0];
  out->status = reason == ENOENT || reason == ENOTDIR ? 127 : 126;
  if (reason == ENOENT)
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "cannot run '%s': it was not found%s. Give its path, or check PATH and a script's first line",
                        name, strchr(name, '/') ? ", or its interpreter was not" : " in PATH");
  return sc_error_set(err, SC_ERR_SYSTEM, "cannot run '%s': %s", name, strerror(reason));
}

static enum sc_status start(const struct launch *launch, const struct sigaction *child_action, pid_t *program,
                            struct launch_end *out, struct sc_error *err)
{
  int errors[2], reason = 0;
  enum sc_status status = SC_OK;
  char **environment = launch_environment(launch->environment);
  if (!environment)
    return sc_error_no_memory(err);
  if (pipe2(errors, O_CLOEXEC) != 0) {
    free(environment);
    return sc_error_set(err, SC_ERR_SYSTEM, "cannot make a pipe: %s", strerror(errno));
  }
  *program = fork();
  if (*program == 0)
    become(launch, environment, child_action, errors[1]);
  reason = *program < 0 ? errno : 0;
  close(errors[1]);
  ssize_t got = 0;
  while (*program > 0 && (got = read(errors[0], &reason, sizeof reason)) < 0 && errno == EINTR)
    ;
  if (*program < 0)
    status = cannot_start(launch, reason, out, err);
  else if (got == (ssize_t)sizeof reason) {
    while (waitpid(*program, NULL, 0) < 0 && errno == EINTR)
      ;
    status = cannot_start(launch, reason, out, err);
  }
  close(errors[0]);
  free(environment);
  return status;
}

enum sc_status launch_run(const struct launch *launch, struct launch_end *out, struct sc_error *err)
{
  const struct sigaction by_default = {.sa_handler = SIG_DFL};
  struct sigaction child_action;
  sigset_t child, mask;
  pid_t program = -1;
  *out = (struct launch_end){.status = 126};
  /* An ignored SIGCHLD would take the program's status away from us; a blocked one is what we wait with. */
  sigaction(SIGCHLD, &by_default, &child_action);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &mask);
  enum sc_status status = start(launch, &child_action, &program, out, err);
  if (status == SC_OK) {
    int end = wait_for(program);
    out->signal = WIFSIGNALED(end) ? WTERMSIG(end) : 0;
    out->status = out->signal ? 128 + out->signal : WEXITSTATUS(end);
  }
  sigprocmask(SIG_SETMASK, &mask, NULL);
  sigaction(SIGCHLD, &child_action, NULL);
  return status;
}
