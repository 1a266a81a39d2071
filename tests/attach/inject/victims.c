/* SPDX-License-Identifier: Apache-2.0
 * Starting and ending the victims. */
#include "victims.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void sleep_ms(unsigned ms)
{
  struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  while (nanosleep(&rest, &rest) != 0)
    ;
}

const char *victim_file(const char *name)
{
  static char paths[8][4096];
  static unsigned next;
  char *path = paths[next++ % 8];
  const char *build = getenv("SC_BUILD");
  snprintf(path, sizeof paths[0], "%s/tests/inject/%s", build ? build : "build", name);
  char *full = realpath(path, NULL);
  if (full)
    snprintf(path, sizeof paths[0], "%s", full);
  free(full);
  return path;
}

struct victim victim_start(const char *program, const char *mode, const char *argument, uint32_t ready)
{
  struct victim victim = {.fd = memfd_create("victim", 0)};
  char name[64], number[16];
  assert_true(victim.fd >= 0 && ftruncate(victim.fd, sizeof *victim.page) == 0);
  victim.page = mmap(NULL, sizeof *victim.page, PROT_READ | PROT_WRITE, MAP_SHARED, victim.fd, 0);
  assert_ptr_not_equal(victim.page, MAP_FAILED);
  snprintf(number, sizeof number, "%d", victim.fd);
  snprintf(name, sizeof name, "inject_%s", program);
  const char *path = victim_file(name);
  victim.pid = fork();
  if (victim.pid == 0) {
    setenv("SC_VICTIM_FD", number, 1);
    execl(path, name, mode, argument, (char *)NULL);
    _exit(127);
  }
  for (unsigned i = 0; victim.page->ready < ready; ++i) {
    int status;
    if (i > PATIENCE_MS || waitpid(victim.pid, &status, WNOHANG) == victim.pid)
      fail_msg("%s %s does not come to its work (is %s there?)", name, mode, path);
    sleep_ms(1);
  }
  return victim;
}

static void forget(struct victim *victim)
{
  munmap(victim->page, sizeof *victim->page);
  close(victim->fd);
  *victim = (struct victim){0};
}

void victim_kill(struct victim *victim)
{
  kill(victim->pid, SIGKILL);
  waitpid(victim->pid, NULL, 0);
  forget(victim);
}

void victim_stop(struct victim *victim, int signal)
{
  int status = 0;
  victim->page->stop = 1;
  pid_t ended = 0;
  for (unsigned i = 0; i < PATIENCE_MS && !ended; ++i) {
    if (signal)
      kill(victim->pid, signal);
    ended = waitpid(victim->pid, &status, WNOHANG);
    if (!ended)
      sleep_ms(1);
  }
  uint32_t errors = victim->page->errors;
  int32_t value = victim->page->error_value[0];
  if (!ended) {
    victim_kill(victim);
    fail_msg("the victim does not end");
  }
  forget(victim);
  if (errors)
    fail_msg("the victim saw %u things it should not have; the first: %d", errors, value);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("the victim ended with wait status 0x%x", (unsigned)status);
}

void victim_goes_on(const struct victim *victim, int thread, uint64_t turns)
{
  uint64_t from = victim->page->turns[thread];
  for (unsigned i = 0; victim->page->turns[thread] - from < turns; ++i) {
    if (i > PATIENCE_MS)
      fail_msg("thread %d of the victim stands still after %lu turns", thread,
               (unsigned long)(victim->page->turns[thread] - from));
    sleep_ms(1);
  }
}

struct inject_outcome victim_inject(const struct victim *victim, const char *library)
{
  struct sc_error err = {0};
  struct inject_outcome outcome = {0};
  uint32_t before = victim->page->started;
  if (inject_library_told(victim->pid, victim_file(library), &outcome, &err) != SC_OK)
    fail_msg("%s", err.message);
  assert_int_equal(victim->page->started, before + 1);
  assert_int_equal(victim->page->started_on, outcome.thread);
  assert_int_equal(victim->page->misaligned, 0);
  return outcome;
}

/* Tried on a child, as root or not, under Yama or seccomp: whatever forbids it there forbids it all. */
void victim_need_ptrace(void)
{
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  long seized = ptrace(PTRACE_SEIZE, child, NULL, NULL);
  int error = errno;
  kill(child, SIGKILL);
  waitpid(child, NULL, __WALL);
  const char *only = getenv("SC_TEST"); /* for the work on one of them */
  if (only)
    cmocka_set_test_filter(only);
  if (seized != 0) {
    printf("SKIPPED: ptrace is forbidden here (%s), even for a process's own child\n", strerror(error));
    exit(77);
  }
}
