/* SPDX-License-Identifier: Apache-2.0
 * What the checks of the test programs share: see checker.h. */
#include "checker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rows.h"

static void line(const char *verdict, const char *name, const char *format, va_list arguments) {
  printf("%s %s: ", verdict, name);
  vprintf(format, arguments);
  putchar('\n');
  fflush(stdout);
}

void check_pass(struct checker *c, const char *name, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  line("PASS", name, format, arguments);
  va_end(arguments);
  c->passed++;
}

void check_fail(struct checker *c, const char *name, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  line("FAIL", name, format, arguments);
  va_end(arguments);
  c->failed++;
}

void check_skip(struct checker *c, const char *name, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  line("SKIP", name, format, arguments);
  va_end(arguments);
  c->skipped++;
}

/* In the child: never returns. */
static void exec_program(const struct checker *c, const char *const argv[]) {
  char path[1024];
  if (strchr(argv[0], '/') != NULL)
    snprintf(path, sizeof path, "%s", argv[0]);
  else
    snprintf(path, sizeof path, "%s/%s", c->programs, argv[0]);
  execv(path, (char *const *)(uintptr_t)argv);
  dprintf(STDERR_FILENO, "cannot execute %s: %s\n", path, strerror(errno));
  _exit(127);
}

static void exec_traced(const struct checker *c, const struct traced *t, const char *const argv[],
                        const char *const *extra, int out, int err) {
  char value[1024];
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  const char *preload = getenv("LD_PRELOAD");
  snprintf(value, sizeof value, "%s%s%s", c->tracer, preload != NULL && *preload ? ":" : "",
           preload != NULL ? preload : "");
  setenv("LD_PRELOAD", value, 1);
  setenv("SYNCCOUNT_OUTPUT", t->folder, 1);
  /* Instrumented builds: the tracer comes before the sanitizer's runtime, and killed programs leave memory behind. */
  setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0:handle_segv=0:handle_abort=0", 1);
  setenv("TSAN_OPTIONS", "handle_segv=0:handle_abort=0:halt_on_error=1", 1);
  for (; extra != NULL && *extra != NULL; extra++)
    putenv((char *)(uintptr_t)*extra);
  exec_program(c, argv);
}

/* Waits for a child for `seconds` at most, then kills it: false. */
static bool wait_for(pid_t pid, unsigned seconds, int *status) {
  const struct timespec nap = { .tv_nsec = 10 * 1000 * 1000 };
  uint64_t deadline = sc_clock_mono_ns() + seconds * UINT64_C(1000000000);
  while (waitpid(pid, status, WNOHANG) == 0) {
    if (sc_clock_mono_ns() > deadline) {
      kill(pid, SIGKILL);
      waitpid(pid, status, 0);
      return false;
    }
    nanosleep(&nap, NULL);
  }
  return true;
}

bool plain_run(struct checker *c, const char *check, const char *const argv[]) {
  int status = 0;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    exec_program(c, argv);
  }
  bool ended = pid > 0 && wait_for(pid, 60, &status);
  if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return true;
  check_skip(c, check, "without the tracer, %s %s here (status %#x)", argv[0], ended ? "fails" : "does not end",
             (unsigned)status);
  return false;
}

bool traced_start(struct checker *c, const char *check, struct traced *t, const char *const argv[],
                  const char *const *extra) {
  int out[2] = { -1, -1 }, err[2] = { -1, -1 };
  const char *base = getenv("TMPDIR");
  memset(t, 0, sizeof *t);
  t->out_fd = t->err_fd = -1;
  snprintf(t->folder, sizeof t->folder, "%s/synccount-test-XXXXXX", base != NULL && *base ? base : "/tmp");
  if (mkdtemp(t->folder) == NULL) {
    check_fail(c, check, "no folder for traces at %s: %s", t->folder, strerror(errno));
    t->folder[0] = '\0';
    return false;
  }
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    check_fail(c, check, "no pipe: %s", strerror(errno));
    goto cleanup;
  }
  fflush(stdout);
  t->pid = fork();
  if (t->pid == 0)
    exec_traced(c, t, argv, extra, out[1], err[1]);
  if (t->pid < 0) {
    check_fail(c, check, "no process: %s", strerror(errno));
    goto cleanup;
  }
  t->running = true;
  t->out_fd = out[0];
  t->err_fd = err[0];
  out[0] = err[0] = -1;
cleanup:
  for (int i = 0; i < 2; i++) {
    if (out[i] >= 0)
      close(out[i]);
    if (err[i] >= 0)
      close(err[i]);
  }
  return t->running;
}

/* Takes what there is from one pipe; false at its end. */
static bool drain(int fd, struct sc_buf *buf) {
  char bytes[4096];
  ssize_t n = read(fd, bytes, sizeof bytes);
  if (n > 0)
    sc_buf_append(buf, bytes, (size_t)n);
  return n > 0 || (n < 0 && errno == EINTR);
}

bool traced_wait(struct checker *c, const char *check, struct traced *t, unsigned seconds) {
  uint64_t deadline = sc_clock_mono_ns() + seconds * UINT64_C(1000000000);
  struct pollfd fds[2] = { { .fd = t->out_fd, .events = POLLIN }, { .fd = t->err_fd, .events = POLLIN } };
  bool timed_out = false;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (!timed_out && sc_clock_mono_ns() > deadline) {
      timed_out = true;
      kill(t->pid, SIGKILL);
    }
    if (poll(fds, 2, 100) < 0 && errno != EINTR)
      break;
    struct sc_buf *bufs[2] = { &t->out, &t->err };
    for (int i = 0; i < 2; i++)
      if (fds[i].fd >= 0 && fds[i].revents != 0 && !drain(fds[i].fd, bufs[i]))
        fds[i].fd = -1;
    /* A grandchild may hold the pipes open: the program's own end is enough. */
    siginfo_t info = { 0 };
    if (waitid(P_PID, (id_t)t->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == t->pid &&
        poll(fds, 2, 0) == 0)
      break;
  }
  while (waitpid(t->pid, &t->status, 0) < 0 && errno == EINTR)
    continue;
  t->running = false;
  if (timed_out)
    check_fail(c, check, "did not end within %u s", seconds);
  return !timed_out;
}

static bool read_one(struct checker *c, const char *check, struct traced *t, const char *path) {
  struct sc_error error = { .message = "" };
  struct sc_reader *reader = NULL;
  enum sc_status status = sc_reader_open(path, &reader, &error);
  if (status == SC_OK)
    status = sc_analysis_read(reader, NULL, t->findings, &error);
  if (status == SC_OK) {
    struct sc_damage damage;
    sc_reader_damage(reader, &damage);
    if (damage.chunks + damage.records + damage.truncated > 0) {
      check_fail(c, check, "%s is damaged: %s", path, damage.first);
      status = SC_ERR_FORMAT;
    }
  } else {
    check_fail(c, check, "%s: %s", path, error.message);
  }
  sc_reader_close(reader);
  return status == SC_OK;
}

bool traced_read(struct checker *c, const char *check, struct traced *t) {
  bool ok = true;
  DIR *dir = opendir(t->folder);
  t->findings = sc_findings_new();
  if (dir == NULL || t->findings == NULL) {
    check_fail(c, check, "cannot read %s", t->folder);
    ok = false;
    goto cleanup;
  }
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    char path[1024];
    size_t length = strlen(entry->d_name), suffix = strlen(SC_TRACE_SUFFIX);
    if (length <= suffix || strcmp(entry->d_name + length - suffix, SC_TRACE_SUFFIX) != 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", t->folder, entry->d_name);
    t->trace_files++;
    ok = read_one(c, check, t, path) && ok;
  }
cleanup:
  if (dir != NULL)
    closedir(dir);
  return ok;
}

/* The first lines of what the program said, for a message. */
static const char *excerpt(const struct sc_buf *buf) {
  static char text[400];
  snprintf(text, sizeof text, "%s", buf->data != NULL ? buf->data : "");
  for (char *p = text; *p; p++)
    if (*p == '\n')
      *p = p[1] ? '|' : '\0';
  return text;
}

bool traced_run(struct checker *c, const char *check, struct traced *t, const char *const argv[],
                const char *const *extra, int exit_status) {
  if (!traced_start(c, check, t, argv, extra) || !traced_wait(c, check, t, 120))
    return false;
  if (!WIFEXITED(t->status) || WEXITSTATUS(t->status) != exit_status) {
    check_fail(c, check, "%s ended with %s %d, expected status %d; it said: %s", argv[0],
               WIFEXITED(t->status) ? "status" : "signal",
               WIFEXITED(t->status) ? WEXITSTATUS(t->status) : WTERMSIG(t->status), exit_status, excerpt(&t->err));
    return false;
  }
  return traced_read(c, check, t);
}

void traced_end(struct checker *c, struct traced *t) {
  if (t->running) {
    kill(t->pid, SIGKILL);
    waitpid(t->pid, &t->status, 0);
  }
  if (t->out_fd >= 0)
    close(t->out_fd);
  if (t->err_fd >= 0)
    close(t->err_fd);
  sc_buf_free(&t->out);
  sc_buf_free(&t->err);
  sc_findings_free(t->findings);
  t->findings = NULL;
  if (t->folder[0] == '\0')
    return;
  if (c->keep) {
    fprintf(stderr, "traces kept: %s\n", t->folder);
    return;
  }
  DIR *dir = opendir(t->folder);
  for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", t->folder, entry->d_name);
    unlink(path); /* "." and ".." refuse, as they should */
  }
  if (dir != NULL)
    closedir(dir);
  rmdir(t->folder);
}

const struct sc_range_findings *traced_range(const struct sc_process *process, const char *name) {
  for (size_t i = 0; i < process->range_count; i++) {
    const struct sc_range_findings *range = &process->ranges[i];
    if (range->domain != NULL && strcmp(range->domain, SC_ROW_DOMAIN) == 0 && strcmp(range->name, name) == 0)
      return range;
  }
  return NULL;
}

const struct sc_process *traced_process(const struct traced *t, pid_t pid) {
  for (size_t i = 0; i < t->findings->process_count; i++)
    if (t->findings->processes[i].pid == (uint64_t)pid)
      return &t->findings->processes[i];
  return NULL;
}

bool traced_complete(struct checker *c, const char *check, const struct traced *t) {
  if (t->findings->lost_records + t->findings->lost_chunks == 0)
    return true;
  check_fail(c, check, "%llu records and %llu chunks were lost", (unsigned long long)t->findings->lost_records,
             (unsigned long long)t->findings->lost_chunks);
  return false;
}
