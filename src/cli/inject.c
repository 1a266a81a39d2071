/* SPDX-License-Identifier: Apache-2.0
 * The order of an injection: refuse what can be refused unseen, find the functions, take a thread, make the calls. All
 * of it in a child process that an interrupt from the terminal does not reach. */
#include "cli/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/inject_parts.h"

#define MS 1000000ull
#define TAKE_NS (5000 * MS)
#define PROBE_NS (2000 * MS)
#define CALL_NS (4000 * MS)
#define OLD_INTERFACE 0x80000000u /* what __libc_dlopen_mode wants to hear */
#define PROBE_BYTES 20000         /* more than malloc serves from a thread's own cache */

struct injection {
  pid_t pid;
  const char *library;
  struct proc_maps maps;
  /* addresses in the process; 0: it has none */
  uint64_t dlopen, dlsym, dlerror, errno_location, start;
  uint64_t mode;
  struct inject_thread *thread;
  struct inject_caller *caller;
  struct inject_outcome outcome;
};

/* ---- finding ----------------------------------------------------------------------------------------- */

static enum sc_status find_in(struct injection *it, const struct proc_map *map, const char *name, uint64_t *address,
                              struct sc_error *err)
{
  if (!map || *address)
    return SC_OK;
  return inject_find_function(it->pid, &it->maps, map, name, address, err);
}

/* In the C library since glibc 2.34, before in libdl, and before that, without libdl, by the name it gave itself. */
static enum sc_status find_loader(struct injection *it, const struct proc_map *libc, const struct proc_map *libdl,
                                  struct sc_error *err)
{
  const struct {
    const struct proc_map *map;
    const char *name;
    uint64_t *address;
  } wanted[] = {{libc, "__errno_location", &it->errno_location},
                {libc, "dlopen", &it->dlopen},
                {libc, "dlsym", &it->dlsym},
                {libc, "dlerror", &it->dlerror},
                {libdl, "dlopen", &it->dlopen},
                {libdl, "dlsym", &it->dlsym},
                {libdl, "dlerror", &it->dlerror}};
  for (size_t i = 0; i < SC_COUNTOF(wanted); ++i) {
    enum sc_status status = find_in(it, wanted[i].map, wanted[i].name, wanted[i].address, err);
    if (status != SC_OK)
      return status;
  }
  it->mode = RTLD_NOW | RTLD_LOCAL;
  if (it->dlopen && it->dlsym)
    return SC_OK;
  it->dlopen = it->dlsym = it->dlerror = 0;
  it->mode |= OLD_INTERFACE;
  enum sc_status status = find_in(it, libc, "__libc_dlopen_mode", &it->dlopen, err);
  if (status == SC_OK)
    status = find_in(it, libc, "__libc_dlsym", &it->dlsym, err);
  if (status == SC_OK && (!it->dlopen || !it->dlsym))
    status = sc_error_set(err, SC_ERR_SYSTEM,
                          "process %ld: its C library (%s) has no dlopen, so nothing can be loaded into it; start the "
                          "program with SYNCCOUNT_DORMANT=1 instead",
                          (long)it->pid, libc->path);
  return status;
}

static enum sc_status lacks_entry(const char *path, struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_SYSTEM, "%s has no InitializeInjection: it is not libsynccount.so, or damaged", path);
}

static enum sc_status prepare(struct injection *it, struct sc_error *err)
{
  const struct proc_map *libc = NULL, *libdl = NULL;
  enum sc_status status = inject_process_check(it->pid, err);
  if (status == SC_OK)
    status = inject_maps_read(it->pid, &it->maps, err);
  if (status == SC_OK)
    status = inject_program_check(it->pid, &it->maps, &libc, &libdl, err);
  if (status != SC_OK)
    return status;
  const struct proc_map *loaded = inject_library_map(it->pid, it->library, &it->maps);
  bool exports = false;
  if (loaded) {
    status = inject_find_function(it->pid, &it->maps, loaded, "InitializeInjection", &it->start, err);
    if (status == SC_OK && !it->start)
      status = lacks_entry(loaded->path, err);
  } else {
    status = inject_library_check(it->pid, it->library, err);
    if (status == SC_OK)
      status = inject_file_exports(it->library, "InitializeInjection", &exports, err);
    if (status == SC_OK && !exports)
      status = lacks_entry(it->library, err);
  }
  return status == SC_OK ? find_loader(it, libc, libdl, err) : status;
}

/* ---- calling ----------------------------------------------------------------------------------------- */

/* Says what a call that did not return means for the process. */
static enum sc_status not_returned(const struct injection *it, enum inject_result result, const char *call,
                                   struct sc_error *err)
{
  long pid = it->pid, thread = it->thread->id;
  switch (result) {
  case INJECT_FAULTED:
    return sc_error_set(
        err, SC_ERR_SYSTEM,
        "process %ld: %s failed with %s on thread %ld; the thread was put back and the program runs on, "
        "but what %s was doing is half done (a lock may be held): restart the program when you can",
        pid, call, inject_caller_fault(it->caller), thread, call);
  case INJECT_STUCK:
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld: %s waited on thread %ld for a lock that another thread keeps; it was taken back, "
                        "and the program is as before: try again later",
                        pid, call, thread);
  case INJECT_LEFT:
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld: %s did not return on thread %ld within %.0f s (it waits for something); it was "
                        "left alone, and the thread goes back to its own work as soon as it returns: then try "
                        "`synccount attach --inject %ld` again",
                        pid, call, thread, (double)CALL_NS / 1e9, pid);
  default:
    return sc_error_set(err, SC_ERR_SYSTEM, "process %ld, or its thread %ld, ended during %s", pid, thread, call);
  }
}

static enum sc_status call(struct injection *it, const char *name, uint64_t function, uint64_t a, uint64_t b,
                           bool may_give_up, uint64_t *result, struct sc_error *err)
{
  enum inject_result outcome =
      inject_call(it->caller, function, a, b, may_give_up ? PROBE_NS : CALL_NS, may_give_up, result);
  return outcome == INJECT_RETURNED ? SC_OK : not_returned(it, outcome, name, err);
}

/* The loader's lock and malloc's, one after the other, by calls that hold nothing when they wait. A dlopen that had to
 * wait for malloc would hold the loader's lock. */
static enum sc_status probe_locks(struct injection *it, struct sc_error *err)
{
  uint64_t malloc_at = 0, free_at = 0, block = 0;
  uint64_t name = inject_caller_text(it->caller, "malloc");
  if (it->mode & OLD_INTERFACE || !name)
    return SC_OK;
  enum sc_status status = call(it, "dlsym", it->dlsym, 0, name, true, &malloc_at, err);
  if (status != SC_OK)
    return status;
  name = inject_caller_text(it->caller, "free");
  status = call(it, "dlsym", it->dlsym, 0, name, true, &free_at, err);
  if (status != SC_OK || !malloc_at || !free_at)
    return status;
  status = call(it, "malloc", malloc_at, PROBE_BYTES, 0, true, &block, err);
  if (status == SC_OK)
    status = call(it, "free", free_at, block, 0, true, &block, err);
  return status;
}

static enum sc_status say_loader_error(struct injection *it, struct sc_error *err)
{
  uint64_t text = 0;
  char words[512] = "";
  if (it->dlerror && call(it, "dlerror", it->dlerror, 0, 0, false, &text, err) != SC_OK)
    return err->status;
  for (size_t i = 0; text && i < sizeof words - 1; ++i) { /* it may end just before an unmapped page */
    if (!inject_thread_read(it->thread, text + i, &words[i], 1) || !words[i])
      break;
  }
  struct proc_status status = {0};
  bool filtered = inject_status_read(it->pid, it->thread->id, &status, NULL) == SC_OK && status.seccomp == 2;
  return sc_error_set(err, SC_ERR_SYSTEM, "process %ld could not load %s: %s%s; the program runs on as before",
                      (long)it->pid, it->library, words[0] ? words : "its loader did not say why",
                      filtered ? " (it runs under a seccomp filter, which may forbid that)" : "");
}

static enum sc_status load(struct injection *it, struct sc_error *err)
{
  uint64_t handle = 0, path = inject_caller_text(it->caller, it->library);
  if (!path)
    return sc_error_set(err, SC_ERR_USAGE, "%s: the path is too long", it->library);
  enum sc_status status = call(it, "dlopen", it->dlopen, path, it->mode, false, &handle, err);
  if (status == SC_OK && !handle)
    return say_loader_error(it, err);
  if (status != SC_OK)
    return status;
  it->outcome.loaded = true;
  uint64_t name = inject_caller_text(it->caller, "InitializeInjection");
  status = call(it, "dlsym", it->dlsym, handle, name, false, &it->start, err);
  return status == SC_OK && !it->start ? lacks_entry(it->library, err) : status;
}

static enum sc_status make_calls(struct injection *it, struct sc_error *err)
{
  uint64_t result = 0;
  enum sc_status status = SC_OK;
  if (it->errno_location) {
    status = call(it, "__errno_location", it->errno_location, 0, 0, true, &result, err);
    if (status == SC_OK)
      inject_caller_keep_errno(it->caller, result);
  }
  if (status == SC_OK)
    status = probe_locks(it, err);
  if (status == SC_OK && !it->start)
    status = load(it, err);
  return status == SC_OK ? call(it, "InitializeInjection", it->start, 0, 0, false, &result, err) : status;
}

/* A signal may come between the stop and the first call: it is delivered, and a thread taken anew. */
static enum sc_status take_caller(struct injection *it, struct sc_error *err)
{
  uint64_t begin = sc_clock_mono_ns();
  enum sc_status status = SC_OK;
  while (status == SC_OK && !it->caller) {
    uint64_t spent = sc_clock_mono_ns() - begin;
    if (spent >= TAKE_NS)
      return sc_error_set(err, SC_ERR_SYSTEM,
                          "process %ld gets so many signals that none of its threads could be used: try again later",
                          (long)it->pid);
    status = inject_thread_take(it->pid, TAKE_NS - spent, it->thread, err);
    if (status == SC_OK)
      status = inject_caller_open(it->thread, &it->caller, err);
  }
  return status;
}

static enum sc_status inject(struct injection *it, struct sc_error *err)
{
  char path[64];
  enum sc_status status = prepare(it, err);
  if (status != SC_OK)
    return status;
  it->thread = aligned_alloc(_Alignof(struct inject_thread), sizeof *it->thread);
  if (!it->thread)
    return sc_error_no_memory(err);
  memset(it->thread, 0, sizeof *it->thread);
  it->thread->pid = it->pid;
  snprintf(path, sizeof path, "/proc/%ld/mem", (long)it->pid);
  it->thread->memory = open(path, O_RDWR | O_CLOEXEC);
  if (it->thread->memory < 0)
    return errno == ENOENT ? inject_process_check(it->pid, err) : inject_forbidden(it->pid, it->pid, err);
  status = take_caller(it, err);
  if (status == SC_OK) {
    status = make_calls(it, err);
    bool released = inject_caller_close(it->caller);
    it->outcome.away_ns = sc_clock_mono_ns() - it->thread->since;
    it->outcome.thread = it->thread->id;
    if (status == SC_OK && !released)
      status = sc_error_set(err, SC_ERR_SYSTEM, "process %ld, or its thread %ld, ended just now", (long)it->pid,
                            (long)it->thread->id);
  }
  close(it->thread->memory);
  return status;
}

/* ---- the child process --------------------------------------------------------------------------------- */

struct answer {
  struct sc_error error; /* status SC_OK: none */
  struct inject_outcome outcome;
};

/* Ends by itself within the limits above, whatever becomes of its parent. */
static _Noreturn void be_the_child(pid_t pid, const char *library, int to)
{
  static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP, SIGALRM};
  struct answer answer = {0};
  struct injection it = {.pid = pid, .library = library};
  sigset_t child;
  setsid();
  (void)setpriority(PRIO_PROCESS, 0, -20); /* on a busy machine, where it is allowed: the thread waits for us often */
  for (size_t i = 0; i < SC_COUNTOF(ignored); ++i)
    signal(ignored[i], SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  answer.error.status = inject(&it, &answer.error);
  answer.outcome = it.outcome;
  ssize_t written;
  do
    written = write(to, &answer, sizeof answer);
  while (written < 0 && errno == EINTR);
  _exit(0);
}

static enum sc_status child_died(pid_t pid, int how, struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_SYSTEM,
                      "the process that loads the library into process %ld was ended by signal %d: if that was while a "
                      "thread was stopped there, the thread finishes the call and goes back to its work by itself",
                      (long)pid, WIFSIGNALED(how) ? WTERMSIG(how) : 0);
}

enum sc_status inject_library_told(pid_t pid, const char *library, struct inject_outcome *out, struct sc_error *err)
{
  int ends[2], how = 0;
  struct answer answer;
  if (pid == getpid()) /* the child would not know itself */
    return inject_process_check(pid, err);
  if (pipe2(ends, O_CLOEXEC) != 0)
    return sc_error_set(err, SC_ERR_SYSTEM, "no pipe: %s", strerror(errno));
  pid_t child = fork();
  if (child == 0)
    be_the_child(pid, library, ends[1]);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return sc_error_set(err, SC_ERR_SYSTEM, "no new process: %s", strerror(errno));
  }
  ssize_t got;
  do
    got = read(ends[0], &answer, sizeof answer);
  while (got < 0 && errno == EINTR);
  close(ends[0]);
  while (waitpid(child, &how, 0) < 0 && errno == EINTR)
    ;
  if (got != (ssize_t)sizeof answer)
    return child_died(pid, how, err);
  if (answer.error.status == SC_OK && out)
    *out = answer.outcome;
  if (answer.error.status != SC_OK && err)
    *err = answer.error;
  return answer.error.status;
}

enum sc_status inject_library(pid_t pid, const char *library, struct sc_error *err)
{
  return inject_library_told(pid, library, NULL, err);
}
