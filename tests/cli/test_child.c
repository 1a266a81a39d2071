/* SPDX-License-Identifier: Apache-2.0
 * Running a program and waiting for it: statuses, output, environment, stubborn and forgetful children. */
#include "test_support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"

static enum sc_status run_shell(const char *script, const char *const *environment, struct child_result *out,
                                struct sc_error *err)
{
  char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, NULL};
  const struct child child = {.argv = argv, .environment = environment};
  return child_run(&child, out, err);
}

static struct child_result run_ok(const char *script, const char *const *environment)
{
  struct child_result result = {0};
  struct sc_error err = {0};
  if (run_shell(script, environment, &result, &err) != SC_OK)
    fail_msg("%s", err.message);
  return result;
}

static void exit_statuses_and_signals_are_told_apart(void **state)
{
  (void)state;
  struct child_result result = run_ok("exit 7", NULL);
  assert_int_equal(result.status, 7);
  assert_int_equal(result.signal, 0);
  sc_buf_free(&result.lines);
  result = run_ok("kill -KILL $$", NULL);
  assert_int_equal(result.status, -1);
  assert_int_equal(result.signal, SIGKILL);
  sc_buf_free(&result.lines);
}

static void both_outputs_are_kept_and_progress_is_not(void **state)
{
  (void)state;
  struct child_result result = run_ok("echo one; printf 'working\\r' >&2; echo two >&2; printf three", NULL);
  assert_string_equal(result.lines.data, "one\ntwo\nthree\n");
  sc_buf_free(&result.lines);
  result = run_ok(":", NULL);
  assert_int_equal(result.lines.len, 0);
  sc_buf_free(&result.lines);
}

static void the_end_of_a_long_complaint_is_kept(void **state)
{
  (void)state;
  struct child_result result =
      run_ok("i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i + 1)); done; echo last", NULL);
  assert_true(result.lines.len <= 16384);
  assert_string_equal(result.lines.data + result.lines.len - 5, "last\n");
  sc_buf_free(&result.lines);
}

static void environment_entries_replace_join_and_remove(void **state)
{
  (void)state;
  setenv("SC_TEST_OLD", "old", 1);
  setenv("SC_TEST_GONE", "x", 1);
  setenv("SC_TEST_OLDER", "stays", 1);
  static const char *const environment[] = {"SC_TEST_OLD=new", "SC_TEST_GONE", "SC_TEST_MORE=more", NULL};
  struct child_result result =
      run_ok("echo $SC_TEST_OLD:${SC_TEST_GONE-unset}:$SC_TEST_MORE:$SC_TEST_OLDER", environment);
  assert_string_equal(result.lines.data, "new:unset:more:stays\n");
  sc_buf_free(&result.lines);
}

static void standard_input_is_empty(void **state)
{
  (void)state;
  struct child_result result = run_ok("cat; echo end", NULL);
  assert_string_equal(result.lines.data, "end\n");
  sc_buf_free(&result.lines);
}

static void a_grandchild_that_keeps_the_pipe_does_not_hold_us(void **state)
{
  (void)state;
  time_t start = time(NULL);
  struct child_result result = run_ok("sleep 30 & echo done", NULL);
  assert_true(time(NULL) - start < 15);
  assert_string_equal(result.lines.data, "done\n");
  sc_buf_free(&result.lines);
}

static void a_program_that_is_not_there_is_named(void **state)
{
  (void)state;
  char *argv[] = {(char *)"/nonexistent/program", NULL};
  const struct child child = {.argv = argv};
  struct child_result result = {0};
  struct sc_error err = {0};
  assert_int_equal(child_run(&child, &result, &err), SC_ERR_SYSTEM);
  assert_non_null(strstr(err.message, "/nonexistent/program"));
  assert_non_null(strstr(err.message, "No such file"));
}

/* In a process of its own, since the signal ends it. The child ignores SIGTERM: it has to be killed. */
static void a_held_signal_ends_the_child_first_and_us_afterwards(void **state)
{
  (void)state;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t pid = fork();
  if (pid == 0) {
    struct child_result result = {0};
    struct sc_error err = {0};
    char script[128];
    snprintf(script, sizeof script, "trap '' TERM; echo $$ >&%d; kill -TERM %d; while :; do sleep 1; done", ends[1],
             (int)getpid());
    child_hold_signals();
    enum sc_status status = run_shell(script, NULL, &result, &err);
    const char *note = status == SC_ERR_SYSTEM && child_interrupted() ? "tidied\n" : "wrong\n";
    if (write(ends[1], note, strlen(note)) < 0)
      _exit(1);
    child_release_signals(); /* here it ends */
    _exit(0);
  }
  close(ends[1]);
  char text[64] = "";
  size_t used = 0;
  for (ssize_t got; used < sizeof text - 1 && (got = read(ends[0], text + used, sizeof text - 1 - used)) > 0;)
    used += (size_t)got;
  close(ends[0]);
  int wait_status;
  assert_int_equal(waitpid(pid, &wait_status, 0), pid);
  assert_true(WIFSIGNALED(wait_status));
  assert_int_equal(WTERMSIG(wait_status), SIGTERM);
  assert_non_null(strstr(text, "tidied"));
  assert_int_equal(kill(atoi(text), 0), -1); /* the child is gone */
}

/* nohup, and a shell's background jobs: blocked, an ignored signal would be pending and end the run. */
static void an_ignored_signal_stays_ignored(void **state)
{
  (void)state;
  char script[64];
  void (*old)(int) = signal(SIGHUP, SIG_IGN);
  child_hold_signals();
  snprintf(script, sizeof script, "kill -HUP %d; sleep 0.3; echo done", (int)getpid());
  struct child_result result = run_ok(script, NULL);
  assert_string_equal(result.lines.data, "done\n");
  assert_false(child_interrupted());
  child_release_signals();
  signal(SIGHUP, old);
  sc_buf_free(&result.lines);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exit_statuses_and_signals_are_told_apart),
      cmocka_unit_test(both_outputs_are_kept_and_progress_is_not),
      cmocka_unit_test(the_end_of_a_long_complaint_is_kept),
      cmocka_unit_test(environment_entries_replace_join_and_remove),
      cmocka_unit_test(standard_input_is_empty),
      cmocka_unit_test(a_grandchild_that_keeps_the_pipe_does_not_hold_us),
      cmocka_unit_test(a_program_that_is_not_there_is_named),
      cmocka_unit_test(a_held_signal_ends_the_child_first_and_us_afterwards),
      cmocka_unit_test(an_ignored_signal_stays_ignored),
  };
  return cmocka_run_group_tests_name("cli_child", tests, NULL, NULL);
}
