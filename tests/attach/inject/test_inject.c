/* SPDX-License-Identifier: Apache-2.0
 * A library is loaded into programs at work, and they notice nothing: no interrupted call, no lost signal, no changed
 * register, no stall. */
#include "victims.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GOOD "libinject_good.so"
#define MS 1000000u

/* ---- busy programs -------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Four threads allocate at full speed, a fifth waits in poll: that one is chosen, every time. */
static void twenty_programs_that_allocate_go_on(void **state)
{
  (void)state;
  uint64_t away[20];
  for (size_t i = 0; i < SC_COUNTOF(away); ++i) {
    struct victim victim = victim_start("victim", "churn", NULL, 5);
    struct inject_outcome outcome = victim_inject(&victim, GOOD);
    assert_int_equal(outcome.thread, victim.page->waiter);
    assert_true(outcome.loaded);
    assert_int_equal(victim.page->constructed, 1);
    away[i] = outcome.away_ns;
    for (int thread = 0; thread < 4; ++thread)
      victim_goes_on(&victim, thread, 2);
    victim_stop(&victim, 0);
  }
  qsort(away, SC_COUNTOF(away), sizeof away[0], by_value);
  printf("away: shortest %.1f ms, median %.1f ms, longest %.1f ms\n", (double)away[0] / MS, (double)away[10] / MS,
         (double)away[19] / MS);
  assert_true(away[0] < 100 * MS); /* the others depend on what else the machine has to do */
}

static void a_library_that_is_there_is_only_started_again(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "churn", NULL, 5);
  for (int i = 0; i < 10; ++i)
    assert_int_equal(victim_inject(&victim, GOOD).loaded, i == 0);
  assert_int_equal(victim.page->constructed, 1);
  assert_int_equal(victim.page->started, 10);
  victim_goes_on(&victim, 0, 2);
  victim_stop(&victim, 0);
}

static void a_busy_thread_is_met_at_its_next_call(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "busy", NULL, 1);
  struct inject_outcome outcome = victim_inject(&victim, GOOD);
  assert_int_equal(outcome.thread, victim.pid);
  victim_goes_on(&victim, 0, 100);
  victim_stop(&victim, 0);
}

/* ---- waits ------------------------------------------------------------------------------------------------ */

static void a_wait_goes_on(const char *mode, int signal)
{
  struct victim victim = victim_start("victim", mode, NULL, 1);
  for (int i = 0; i < 5; ++i) {
    sleep_ms(37);
    (void)victim_inject(&victim, GOOD);
  }
  if (!signal)
    victim_goes_on(&victim, 0, 3);
  victim_stop(&victim, signal);
}

static void nanosleep_sleeps_its_time(void **state)
{
  (void)state;
  a_wait_goes_on("nanosleep", 0);
}

static void poll_waits_its_time(void **state)
{
  (void)state;
  a_wait_goes_on("poll", 0);
}

static void read_gets_every_byte(void **state)
{
  (void)state;
  a_wait_goes_on("read", 0);
}

static void recv_with_a_time_limit_gets_every_byte(void **state)
{
  (void)state;
  a_wait_goes_on("recv", 0);
}

static void epoll_wait_is_not_interrupted(void **state)
{
  (void)state;
  a_wait_goes_on("epoll", 0);
}

static void pause_ends_by_signals_alone(void **state)
{
  (void)state;
  a_wait_goes_on("pause", SIGUSR1);
}

/* ---- registers -------------------------------------------------------------------------------------------- */

static void registers_red_zone_and_errno_are_kept(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "registers", "2", 1);
  for (int i = 0; i < 20; ++i) {
    (void)victim_inject(&victim, GOOD);
    victim_goes_on(&victim, 0, 2);
  }
  assert_int_equal(victim.page->queued, 0); /* no signal of ours reached it */
  victim_stop(&victim, 0);
}

/* ---- signals ---------------------------------------------------------------------------------------------- */

static void wait_for(_Atomic uint32_t *count, uint32_t wanted, const char *what)
{
  for (unsigned i = 0; *count < wanted; ++i) {
    if (i > PATIENCE_MS)
      fail_msg("%u %s arrived, of %u", *count, what, wanted);
    sleep_ms(1);
  }
}

#define STORMY_INJECTIONS 20

/* One may find no moment for it in such weather, and say so. Returns how many did. */
static int inject_in_a_storm(const struct victim *victim)
{
  int done = 0;
  for (int i = 0; i < STORMY_INJECTIONS; ++i) {
    struct sc_error err = {0};
    if (inject_library(victim->pid, victim_file(GOOD), &err) == SC_OK)
      ++done;
    else if (!strstr(err.message, "try again"))
      _exit(0);
  }
  return done;
}

/* Queued signals, and plain ones that are each sent after the one before has arrived, while alarms come all the time
 * and libraries are loaded: in a child, so that both go on at once. */
static void no_signal_is_lost(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "signals", NULL, 1);
  uint32_t queued = 0, plain = 0;
  pid_t injector = fork();
  if (injector == 0)
    _exit(inject_in_a_storm(&victim));
  int status;
  pid_t ended = 0;
  while (!ended) {
    queued += sigqueue(victim.pid, SIGRTMIN, (union sigval){0}) == 0;
    if (victim.page->users == plain)
      plain += kill(victim.pid, SIGUSR1) == 0;
    ended = waitpid(injector, &status, WNOHANG);
    sleep_ms(2);
  }
  wait_for(&victim.page->queued, queued, "queued signals");
  wait_for(&victim.page->users, plain, "plain signals");
  printf("%d of %d injections; %u queued, %u plain signals, %u alarms\n", WEXITSTATUS(status), STORMY_INJECTIONS,
         queued, plain, victim.page->alarms);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) > 0);
  assert_int_equal(victim.page->started, WEXITSTATUS(status));
  assert_int_equal(victim.page->queued, queued);
  assert_int_equal(victim.page->users, plain);
  assert_true(victim.page->alarms > 10);
  victim_stop(&victim, 0);
}

/* A handler may have interrupted malloc: its thread is not used, though it seems to wait best. */
static void a_thread_in_a_handler_is_passed_over(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "handler", NULL, 1);
  struct inject_outcome outcome = victim_inject(&victim, GOOD);
  assert_int_not_equal(outcome.thread, victim.page->waiter);
  assert_int_equal(outcome.thread, victim.pid);
  victim_kill(&victim);
}

/* ---- when it goes wrong ------------------------------------------------------------------------------------ */

static void expect_failure(const struct victim *victim, const char *library, const char *words)
{
  struct sc_error err = {0};
  if (inject_library(victim->pid, victim_file(library), &err) == SC_OK)
    fail_msg("%s was loaded", library);
  if (!strstr(err.message, words))
    fail_msg("not \"%s\" in: %s", words, err.message);
}

static void a_fault_in_the_library_does_not_end_the_program(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "registers", "2", 1);
  expect_failure(&victim, "libinject_faults.so", "InitializeInjection failed with SIGSEGV at 0x10");
  victim_goes_on(&victim, 0, 5);
  (void)victim_inject(&victim, GOOD); /* no lock was held */
  victim_stop(&victim, 0);
}

static void the_loaders_own_words_are_passed_on(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "registers", "2", 1);
  expect_failure(&victim, "libinject_lacks.so", "undefined symbol: nobody_has_this_function");
  (void)victim_inject(&victim, GOOD);
  victim_stop(&victim, 0);
}

static void a_program_without_calls_is_given_up_in_time(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "spin", NULL, 1);
  uint64_t begin = sc_clock_mono_ns();
  expect_failure(&victim, GOOD, "none of process");
  uint64_t took = sc_clock_mono_ns() - begin;
  assert_true(took < 15000ull * MS); /* it is given 5 s; the machine may be busy */
  assert_int_equal(victim.page->constructed, 0);
  victim_goes_on(&victim, 0, 100);
  victim_stop(&victim, 0);
}

/* The loader's lock is another thread's for seconds: the wait is taken back, and the program is as before. */
static void a_lock_that_is_kept_is_not_waited_for_for_ever(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "locked", victim_file("libinject_slower.so"), 1);
  expect_failure(&victim, GOOD, "dlsym waited on thread");
  assert_int_equal(victim.page->constructed, 1); /* its own */
  wait_for(&victim.page->constructed_done, 1, "constructors");
  (void)victim_inject(&victim, GOOD);
  victim_stop(&victim, 0);
}

/* Left in the call, the thread puts itself back, to the last bit: it complains otherwise. */
static void a_thread_left_in_a_slow_constructor_comes_back(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "registers", "2", 1);
  expect_failure(&victim, "libinject_slower.so", "it was left alone");
  assert_int_equal(victim.page->constructed_done, 0);
  wait_for(&victim.page->constructed_done, 1, "constructors");
  victim_goes_on(&victim, 0, 20);
  (void)victim_inject(&victim, GOOD);
  victim_stop(&victim, 0);
}

/* The child of the child that injects; 0: none. */
static pid_t child_of(pid_t parent)
{
  char path[64];
  int child = 0;
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
  FILE *file = fopen(path, "re");
  if (!file)
    return 0;
  if (fscanf(file, "%d", &child) != 1)
    child = 0;
  fclose(file);
  return child;
}

static pid_t inject_in_background(const struct victim *victim, const char *library)
{
  pid_t injector = fork();
  if (injector == 0)
    _exit(inject_library(victim->pid, victim_file(library), NULL) != SC_OK);
  return injector;
}

static void a_killed_tracer_leaves_the_thread_to_put_itself_back(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "registers", "2", 1);
  pid_t injector = inject_in_background(&victim, "libinject_slow.so");
  wait_for(&victim.page->constructed, 1, "constructors");
  pid_t tracer = child_of(injector);
  assert_true(tracer > 0);
  assert_int_equal(kill(tracer, SIGKILL), 0);
  int status;
  assert_int_equal(waitpid(injector, &status, 0), injector);
  assert_int_equal(WEXITSTATUS(status), 1);
  assert_int_equal(victim.page->constructed_done, 0);
  wait_for(&victim.page->constructed_done, 1, "constructors");
  victim_goes_on(&victim, 0, 20);
  (void)victim_inject(&victim, GOOD);
  victim_stop(&victim, 0);
}

/* Ctrl-C, or a kill of the command, does not reach the one that holds the thread. */
static void an_interrupted_command_finishes_its_work(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "registers", "2", 1);
  pid_t injector = inject_in_background(&victim, "libinject_slow.so");
  wait_for(&victim.page->constructed, 1, "constructors");
  kill(child_of(injector), SIGINT);
  kill(child_of(injector), SIGTERM);
  kill(injector, SIGKILL);
  waitpid(injector, NULL, 0);
  wait_for(&victim.page->started, 1, "calls of InitializeInjection");
  victim_goes_on(&victim, 0, 20);
  victim_stop(&victim, 0);
}

/* Ctrl-Z and fg, while the library is being loaded. */
static void a_stop_of_the_process_meanwhile_is_a_stop(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "registers", "2", 1);
  pid_t injector = inject_in_background(&victim, "libinject_slow.so");
  int status;
  wait_for(&victim.page->constructed, 1, "constructors");
  kill(victim.pid, SIGSTOP);
  sleep_ms(200);
  kill(victim.pid, SIGCONT);
  assert_int_equal(waitpid(injector, &status, 0), injector);
  assert_int_equal(status, 0);
  victim_goes_on(&victim, 0, 20);
  /* and a stop that lasts: the thread joins it when it has come back */
  kill(victim.pid, SIGSTOP);
  assert_int_equal(waitpid(victim.pid, &status, WUNTRACED), victim.pid);
  assert_true(WIFSTOPPED(status));
  kill(victim.pid, SIGCONT);
  victim_goes_on(&victim, 0, 20);
  victim_stop(&victim, 0);
}

/* At any moment; whatever it was, there is an answer, and nothing is left behind. */
static void a_program_may_end_meanwhile(void **state)
{
  (void)state;
  int failed = 0;
  for (int i = 0; i < 24; ++i) {
    char delay[16];
    struct sc_error err = {0};
    snprintf(delay, sizeof delay, "%d", i * 400);
    struct victim victim = victim_start("victim", "exits", delay, 1);
    enum sc_status status = inject_library(victim.pid, victim_file(GOOD), &err);
    failed += status != SC_OK;
    if (status != SC_OK && !err.message[0])
      fail_msg("no words for status %d", (int)status);
    victim_stop(&victim, 0);
  }
  assert_true(failed > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(twenty_programs_that_allocate_go_on),
      cmocka_unit_test(a_library_that_is_there_is_only_started_again),
      cmocka_unit_test(a_busy_thread_is_met_at_its_next_call),
      cmocka_unit_test(nanosleep_sleeps_its_time),
      cmocka_unit_test(poll_waits_its_time),
      cmocka_unit_test(read_gets_every_byte),
      cmocka_unit_test(recv_with_a_time_limit_gets_every_byte),
      cmocka_unit_test(epoll_wait_is_not_interrupted),
      cmocka_unit_test(pause_ends_by_signals_alone),
      cmocka_unit_test(registers_red_zone_and_errno_are_kept),
      cmocka_unit_test(no_signal_is_lost),
      cmocka_unit_test(a_thread_in_a_handler_is_passed_over),
      cmocka_unit_test(a_fault_in_the_library_does_not_end_the_program),
      cmocka_unit_test(the_loaders_own_words_are_passed_on),
      cmocka_unit_test(a_program_without_calls_is_given_up_in_time),
      cmocka_unit_test(a_lock_that_is_kept_is_not_waited_for_for_ever),
      cmocka_unit_test(a_thread_left_in_a_slow_constructor_comes_back),
      cmocka_unit_test(a_killed_tracer_leaves_the_thread_to_put_itself_back),
      cmocka_unit_test(an_interrupted_command_finishes_its_work),
      cmocka_unit_test(a_stop_of_the_process_meanwhile_is_a_stop),
      cmocka_unit_test(a_program_may_end_meanwhile),
  };
  victim_need_ptrace();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
