/* SPDX-License-Identifier: Apache-2.0
 * Threads, forks and sudden ends: what had returned is in the trace, and nobody's trace holds what another process did.
 */
#include "checker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long llu;

/* ---- threads ------------------------------------------------------------------------------ */

#define THREADS 64
#define THREAD_ITEMS 500

void check_threads(struct checker *c) {
  const char *name = "threads";
  const char *argv[] = { "threads", "64", "500", NULL };
  struct traced t;
  if (!traced_run(c, name, &t, argv, NULL, 0) || !traced_complete(c, name, &t))
    goto cleanup;
  const struct sc_process *process = traced_process(&t, t.pid);
  const struct sc_range_findings *work = process != NULL ? traced_range(process, "work") : NULL;
  if (work == NULL) {
    check_fail(c, name, "no trace, or no range \"work\" in it");
    goto cleanup;
  }
  size_t exact = 0;
  for (size_t i = 0; i < process->thread_count; i++)
    exact += process->threads[i].syncs == THREAD_ITEMS;
  const uint64_t expected = (uint64_t)THREADS * THREAD_ITEMS;
  if (work->occurrences != THREADS || work->total.syncs != expected || work->total.read_backs != expected ||
      work->total.by_class[SC_CLASS_EXPLICIT] != expected || work->min != THREAD_ITEMS || work->max != THREAD_ITEMS ||
      exact != THREADS)
    check_fail(c, name,
               "%llu ranges, %llu syncs, %llu read-backs, %llu to %llu a range, %zu threads with %d; expected %d, "
               "%llu, %llu, %d, %d",
               (llu)work->occurrences, (llu)work->total.syncs, (llu)work->total.read_backs, (llu)work->min,
               (llu)work->max, exact, THREAD_ITEMS, THREADS, (llu)expected, (llu)expected, THREAD_ITEMS, THREADS);
  else
    check_pass(c, name, "%d threads at once, %llu syncs, %d on each", THREADS, (llu)expected, THREAD_ITEMS);
cleanup:
  traced_end(c, &t);
}

/* ---- forks -------------------------------------------------------------------------------- */

/* The counts that the processes of one mode of `forking` must show; child -1: it may leave no trace. */
static void check_fork_mode(struct checker *c, const char *mode, uint64_t parent_syncs, int child_syncs) {
  char name[32];
  const char *argv[] = { "forking", mode, NULL };
  struct traced t;
  long child_pid = 0;
  snprintf(name, sizeof name, "fork/%s", mode);
  /* What a forked child may do beside CUDA is the driver's business: only what works without the tracer must with it.
   */
  if (!plain_run(c, name, argv))
    return;
  if (!traced_run(c, name, &t, argv, NULL, 0) || !traced_complete(c, name, &t))
    goto cleanup;
  if (t.out.data == NULL || sscanf(t.out.data, "child %ld", &child_pid) != 1) {
    check_fail(c, name, "the program did not name its child");
    goto cleanup;
  }
  const struct sc_process *parent = traced_process(&t, t.pid), *child = traced_process(&t, (pid_t)child_pid);
  if (parent == NULL || parent->counts.syncs != parent_syncs || parent->counts.read_backs != parent_syncs)
    check_fail(c, name, "the parent's trace has %llu syncs, expected %llu",
               parent != NULL ? (llu)parent->counts.syncs : 0, (llu)parent_syncs);
  else if (child_syncs < 0 && child != NULL && child->counts.syncs > 0)
    check_fail(c, name, "the child made no CUDA call, its trace has %llu syncs", (llu)child->counts.syncs);
  else if (child_syncs >= 0 && (child == NULL || child->counts.syncs != (uint64_t)child_syncs))
    check_fail(c, name, "the child's trace has %llu syncs, expected %d", child != NULL ? (llu)child->counts.syncs : 0,
               child_syncs);
  else if (t.findings->process_count != (child != NULL ? 2u : 1u))
    check_fail(c, name, "%zu processes left traces", t.findings->process_count);
  else if (traced_range(parent, "in the child") != NULL)
    check_fail(c, name, "the child wrote into the parent's trace");
  else
    check_pass(c, name, "parent %llu syncs, child %s", (llu)parent_syncs,
               child_syncs < 0    ? "silent"
               : child_syncs == 7 ? "7 in its own file"
                                  : "?");
cleanup:
  traced_end(c, &t);
}

void check_fork(struct checker *c) {
  check_fork_mode(c, "fork", 40, -1);
  check_fork_mode(c, "exec", 40, 7);
  check_fork_mode(c, "early", 40, 7);
}

/* ---- sudden ends -------------------------------------------------------------------------- */

struct progress {
  char path[256];
  volatile uint64_t *value;
};

static bool progress_begin(struct checker *c, const char *name, struct progress *p) {
  snprintf(p->path, sizeof p->path, "/tmp/synccount-progress-%ld", (long)getpid());
  int fd = open(p->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  p->value = fd >= 0 && ftruncate(fd, sizeof *p->value) == 0
                 ? mmap(NULL, sizeof *p->value, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                 : MAP_FAILED;
  if (fd >= 0)
    close(fd);
  if (p->value == MAP_FAILED) {
    check_fail(c, name, "cannot map %s", p->path);
    unlink(p->path);
    return false;
  }
  return true;
}

static void progress_end(struct progress *p) {
  munmap((void *)(uintptr_t)p->value, sizeof *p->value);
  unlink(p->path);
}

/* Lets the program run until it has done a good number, then kills it in mid-run. */
static void kill_in_mid_run(const struct traced *t, const struct progress *p) {
  const struct timespec nap = { .tv_nsec = 1000000 };
  for (int i = 0; i < 60000 && *p->value < 1000; i++)
    nanosleep(&nap, NULL);
  kill(t->pid, SIGKILL);
}

static bool ended_as_planned(int status, int signal) {
  return signal != 0 ? WIFSIGNALED(status) && WTERMSIG(status) == signal
                     : WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_end(struct checker *c, const char *mode, int signal) {
  char name[32];
  struct progress p;
  struct traced t;
  snprintf(name, sizeof name, "end/%s", signal == SIGKILL ? "sigkill" : mode);
  if (!progress_begin(c, name, &p))
    return;
  const char *argv[] = { "killed", mode, p.path, NULL };
  bool ok = traced_start(c, name, &t, argv, NULL);
  if (ok && signal == SIGKILL)
    kill_in_mid_run(&t, &p);
  ok = ok && traced_wait(c, name, &t, 120) && traced_read(c, name, &t) && traced_complete(c, name, &t);
  if (!ok)
    goto cleanup;
  const struct sc_process *process = traced_process(&t, t.pid);
  const struct sc_range_findings *range = process != NULL ? traced_range(process, "counted") : NULL;
  const uint64_t returned = *p.value;
  /* One more may have been recorded than the program could write down: the call had returned inside CUDA. */
  const uint64_t most = signal == SIGKILL ? returned + 1 : returned;
  if (!ended_as_planned(t.status, signal))
    check_fail(c, name, "the program ended with status %#x", (unsigned)t.status);
  else if (range == NULL)
    check_fail(c, name, "%llu calls returned, and the trace has no range \"counted\"", (llu)returned);
  else if (returned < 1000)
    check_fail(c, name, "only %llu calls had returned", (llu)returned);
  else if (range->total.syncs < returned || range->total.syncs > most)
    check_fail(c, name, "%llu calls had returned, the trace has %llu syncs", (llu)returned, (llu)range->total.syncs);
  else if (process->ended_cleanly)
    check_fail(c, name, "the trace says that the process ended cleanly");
  else
    check_pass(c, name, "%llu calls had returned, %llu syncs in the trace", (llu)returned, (llu)range->total.syncs);
cleanup:
  traced_end(c, &t);
  progress_end(&p);
}

void check_killed(struct checker *c) {
  check_end(c, "endless", SIGKILL);
  check_end(c, "abort", SIGABRT);
  check_end(c, "segv", SIGSEGV);
  check_end(c, "exit", 0);
}

/* ---- started late ------------------------------------------------------------------------- */

static void check_late_range(struct checker *c, const struct sc_process *process, const char *range_name,
                             uint64_t syncs, uint64_t uncertain) {
  char name[64];
  snprintf(name, sizeof name, "late/%s", range_name);
  const struct sc_range_findings *range = traced_range(process, range_name);
  if (range == NULL)
    check_fail(c, name, "the trace has no such range");
  else if (range->total.syncs != syncs || range->total.uncertain != uncertain)
    check_fail(c, name, "%llu syncs, %llu uncertain; expected %llu, %llu", (llu)range->total.syncs,
               (llu)range->total.uncertain, (llu)syncs, (llu)uncertain);
  else
    check_pass(c, name, "%llu syncs, %llu uncertain", (llu)syncs, (llu)uncertain);
}

void check_late(struct checker *c) {
  const char *name = "late";
  char library[1100], nvtx[1200];
  struct traced t;
  snprintf(library, sizeof library, "%s", c->tracer);
  snprintf(nvtx, sizeof nvtx, "NVTX_INJECTION64_PATH=%s", c->tracer);
  const char *argv[] = { "late", library, NULL };
  /* Not preloaded: the program loads it itself. */
  const char *extra[] = { "LD_PRELOAD=", nvtx, NULL };
  if (!traced_run(c, name, &t, argv, extra, 0) || !traced_complete(c, name, &t))
    goto cleanup;
  const struct sc_process *process = traced_process(&t, t.pid);
  if (process == NULL) {
    check_fail(c, name, "no trace");
    goto cleanup;
  }
  if (!process->attached_late)
    check_fail(c, name, "the trace does not say that the tracer came late");
  check_late_range(c, process, "unknown", 0, 1);
  check_late_range(c, process, "unknown_synced", 1, 0);
  check_late_range(c, process, "known", 0, 0);
cleanup:
  traced_end(c, &t);
}

/* ---- no CUDA at all ----------------------------------------------------------------------- */

void check_untouched(struct checker *c) {
  const char *name = "untouched";
  const char *argv[] = { "/bin/true", NULL };
  struct traced t;
  if (!traced_run(c, name, &t, argv, NULL, 0))
    goto cleanup;
  if (t.trace_files != 0 || t.err.len != 0 || t.out.len != 0)
    check_fail(c, name, "a program without CUDA left %zu trace files and %zu bytes of output", t.trace_files,
               t.out.len + t.err.len);
  else
    check_pass(c, name, "a program without CUDA leaves no file and no word");
cleanup:
  traced_end(c, &t);
}
