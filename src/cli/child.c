/* SPDX-License-Identifier: Apache-2.0
 * fork, exec, and a poll loop over the child's output, its end, and the signals that would end us. */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch.h"

#define KEPT_OUTPUT (16u << 10)
#define GRACE_MS 2000

/* Those that would end us. One that is ignored (nohup, a background job) is left alone: blocked, it would become
 * pending and look like an interruption. */
static void fatal_signals(sigset_t *set)
{
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  struct sigaction action;
  sigemptyset(set);
  for (size_t i = 0; i < SC_COUNTOF(signals); ++i) {
    if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
      sigaddset(set, signals[i]);
  }
}

void child_hold_signals(void)
{
  sigset_t set;
  fatal_signals(&set);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

void child_release_signals(void)
{
  sigset_t set;
  fatal_signals(&set);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool child_interrupted(void)
{
  sigset_t set, pending;
  fatal_signals(&set);
  return sigpending(&pending) == 0 && sigandset(&pending, &pending, &set) == 0 && !sigisemptyset(&pending);
}

/* ---- the child's side -------------------------------------------------------------------------- */

/* Runs between fork and exec: async-signal-safe calls only. errors gets errno if exec fails. */
static _Noreturn void become(const struct child *child, char **environment, pid_t parent, int output, int errors)
{
  sigset_t set;
  int null = open("/dev/null", O_RDONLY);
  setpgid(0, 0);                    /* its own group: the whole of it can be killed */
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* and it goes when we are killed without a chance to do so */
  if (getppid() != parent)
    _exit(127);
  if (null >= 0)
    dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  fatal_signals(&set);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  execve(child->argv[0], child->argv, environment);
  int reason = errno;
  if (write(errors, &reason, sizeof reason) < 0)
    _exit(126);
  _exit(127);
}

/* ---- what it writes ---------------------------------------------------------------------------- */

struct output {
  struct sc_buf lines; /* finished ones */
  struct sc_buf piece; /* since the last \n or \r */
  const char *title;
  bool shown; /* a progress line stands on the terminal */
};

static void show_progress(struct output *output, const char *text)
{
  if (!output->title)
    return;
  fprintf(stderr, "\r\033[K%s: %.60s", output->title, text);
  fflush(stderr);
  output->shown = true;
}

static void clear_progress(struct output *output)
{
  if (output->shown)
    fputs("\r\033[K", stderr);
  output->shown = false;
}

static void take_line(struct output *output)
{
  sc_buf_append(&output->lines, output->piece.data ? output->piece.data : "", output->piece.len);
  sc_buf_puts(&output->lines, "\n");
  if (output->lines.len > KEPT_OUTPUT) { /* the end of a long complaint is what explains it */
    size_t surplus = output->lines.len - KEPT_OUTPUT;
    memmove(output->lines.data, output->lines.data + surplus, KEPT_OUTPUT + 1);
    output->lines.len = KEPT_OUTPUT;
  }
}

static void take_output(struct output *output, const char *bytes, size_t n)
{
  for (size_t i = 0; i < n; ++i) {
    if (bytes[i] == '\n')
      take_line(output);
    else if (bytes[i] == '\r')
      show_progress(output, output->piece.data ? output->piece.data : "");
    else if (bytes[i] && output->piece.len < KEPT_OUTPUT)
      sc_buf_append(&output->piece, &bytes[i], 1);
    if ((bytes[i] == '\n' || bytes[i] == '\r') && output->piece.data) {
      output->piece.len = 0;
      output->piece.data[0] = '\0';
    }
  }
}

/* ---- our side ---------------------------------------------------------------------------------- */

struct running {
  pid_t pid;
  int output; /* read end; -1 once it has ended */
  int signals;
  bool reaped;
  int wait_status;
  unsigned limit_s; /* 0: none */
  uint64_t start_ns;
};

static void kill_group(const struct running *running, int signal)
{
  if (kill(-running->pid, signal) != 0)
    kill(running->pid, signal);
}

/* True when it is gone within ms. */
static bool reap_within(struct running *running, int ms)
{
  for (int waited = 0; !running->reaped && waited <= ms; waited += 10) {
    pid_t got = waitpid(running->pid, &running->wait_status, WNOHANG);
    if (got == running->pid || (got < 0 && errno == ECHILD))
      running->reaped = true;
    else
      poll(NULL, 0, 10);
  }
  return running->reaped;
}

static void stop(struct running *running)
{
  kill_group(running, SIGTERM);
  if (!reap_within(running, GRACE_MS)) {
    kill_group(running, SIGKILL);
    while (waitpid(running->pid, &running->wait_status, 0) < 0 && errno == EINTR)
      ;
    running->reaped = true;
  }
  kill_group(running, SIGKILL); /* whoever it left in its group */
}

/* Until the child has closed its output and ended. A grandchild that keeps the pipe does not hold us: the child's end
 * counts. */
static enum sc_status attend(struct running *running, struct output *output, struct sc_error *err)
{
  while (!running->reaped) {
    struct pollfd fds[2] = {{running->signals, POLLIN, 0}, {running->output, POLLIN, 0}};
    int ready = poll(fds, running->output >= 0 ? 2 : 1, running->output >= 0 ? 200 : 10);
    if (ready > 0 && fds[0].revents) /* left pending: it ends us once everything is tidied up */
      return sc_error_set(err, SC_ERR_SYSTEM, "interrupted");
    if (running->limit_s && sc_clock_mono_ns() - running->start_ns > running->limit_s * UINT64_C(1000000000))
      return sc_error_set(err, SC_ERR_SYSTEM, "it was not done after %u seconds", running->limit_s);
    if (ready > 0 && running->output >= 0 && fds[1].revents) {
      char bytes[4096];
      ssize_t got = read(running->output, bytes, sizeof bytes);
      if (got > 0) {
        take_output(output, bytes, (size_t)got);
        continue;
      }
      if (got == 0 || errno != EINTR) {
        close(running->output);
        running->output = -1;
      }
    }
    if (waitpid(running->pid, &running->wait_status, WNOHANG) == running->pid)
      running->reaped = true;
  }
  return SC_OK;
}

/* What is still in the pipe, or not yet taken, after the child's end. */
static void drain(struct running *running, struct output *output)
{
  char bytes[4096];
  ssize_t got;
  if (running->output >= 0) {
    fcntl(running->output, F_SETFL, O_NONBLOCK);
    while ((got = read(running->output, bytes, sizeof bytes)) > 0)
      take_output(output, bytes, (size_t)got);
  }
  if (output->piece.len) /* a last line without its end */
    take_line(output);
}

static enum sc_status start(const struct child *child, struct running *running, struct sc_error *err)
{
  int output[2] = {-1, -1}, errors[2] = {-1, -1}, reason = 0;
  enum sc_status status = SC_OK;
  char **environment = launch_environment(child->environment);
  if (!environment)
    return sc_error_no_memory(err);
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0) {
    status = sc_error_set(err, SC_ERR_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    goto cleanup;
  }
  pid_t self = getpid();
  running->pid = fork();
  if (running->pid == 0)
    become(child, environment, self, output[1], errors[1]);
  if (running->pid < 0) {
    status = sc_error_set(err, SC_ERR_SYSTEM, "cannot start %s: %s", child->argv[0], strerror(errno));
    goto cleanup;
  }
  setpgid(running->pid, running->pid); /* both sides do it: whichever comes first */
  close(errors[1]);
  errors[1] = -1;
  if (read(errors[0], &reason, sizeof reason) == (ssize_t)sizeof reason) {
    while (waitpid(running->pid, &running->wait_status, 0) < 0 && errno == EINTR)
      ;
    status = sc_error_set(err, SC_ERR_SYSTEM, "cannot start %s: %s", child->argv[0], strerror(reason));
    goto cleanup;
  }
  running->output = output[0];
  output[0] = -1;
cleanup:
  for (int i = 0; i < 2; ++i) {
    if (output[i] >= 0)
      close(output[i]);
    if (errors[i] >= 0)
      close(errors[i]);
  }
  free(environment);
  return status;
}

enum sc_status child_run(const struct child *child, struct child_result *out, struct sc_error *err)
{
  sigset_t set;
  struct running running = {.output = -1, .limit_s = child->limit_s, .start_ns = sc_clock_mono_ns()};
  const char *term = getenv("TERM"); /* a dumb one cannot clear the line */
  bool progress = child->title && isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
  struct output output = {.title = progress ? child->title : NULL};
  fatal_signals(&set);
  running.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (running.signals < 0)
    return sc_error_set(err, SC_ERR_SYSTEM, "cannot watch for signals: %s", strerror(errno));
  enum sc_status status = start(child, &running, err);
  if (status == SC_OK) {
    show_progress(&output, "starting");
    status = attend(&running, &output, err);
    if (status == SC_OK)
      drain(&running, &output);
    else
      stop(&running);
    clear_progress(&output);
  }
  if (running.output >= 0)
    close(running.output);
  close(running.signals);
  sc_buf_free(&output.piece);
  if (status == SC_OK && output.lines.failed)
    status = sc_error_no_memory(err);
  if (status != SC_OK) {
    sc_buf_free(&output.lines);
    return status;
  }
  *out = (struct child_result){.status = WIFEXITED(running.wait_status) ? WEXITSTATUS(running.wait_status) : -1,
                               .signal = WIFSIGNALED(running.wait_status) ? WTERMSIG(running.wait_status) : 0,
                               .lines = output.lines};
  return SC_OK;
}
