/* SPDX-License-Identifier: Apache-2.0
 * What is counted in a program that is attached to while it runs at full speed: what it did itself between two marks. */
#include "attached.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_support.h"
#include "trace/trace.h"

#define THREADS 4

/* A mark of `turns` on each thread is in the trace, whole and no more. */
static void expect_mark(const char *keep, const char *range_name, uint64_t occurrences, uint64_t turns) {
  struct sc_findings *findings = trace_read(keep);
  const struct sc_range_findings *range = trace_range(findings, range_name);
  if (range == NULL)
    fail_msg("there is no range %s in the trace", range_name);
  if (range->occurrences != occurrences || range->unfinished != 0 || range->total.syncs != occurrences * turns ||
      range->total.read_backs != occurrences * turns || range->min != turns || range->max != turns ||
      range->total.uncertain != 0)
    fail_msg("%llu of %s with %llu syncs, %llu to %llu each, %llu uncertain; expected %llu with %llu each",
             (unsigned long long)range->occurrences, range_name, (unsigned long long)range->total.syncs,
             (unsigned long long)range->min, (unsigned long long)range->max,
             (unsigned long long)range->total.uncertain, (unsigned long long)occurrences, (unsigned long long)turns);
  sc_findings_free(findings);
}

/* A dormant program in which counting is under way; its trace goes to "kept". */
static void count_dormant(struct program *program, struct command *command) {
  program_start_dormant(program, NULL);
  command_start(command, program->pid, "kept", NULL);
  command_counts(command);
}

static void test_counts_are_the_programs_own(void **state) {
  struct program program;
  struct command command;
  (void)state;
  count_dormant(&program, &command);
  assert_string_equal(program_ask(&program, "mark 50"), "marked 50");
  command_end(&command);
  expect_mark("kept", "marked", THREADS, 50);
  expect_mark("kept", "registered", THREADS, 50); /* its domain and name were made before anybody counted */
  assert_int_equal(trace_flags("kept"), SC_TRACE_LATE | SC_TRACE_SIMULATED);
  assert_non_null(strstr(command.out, "read-backs, in process"));
  assert_non_null(strstr(command.out, "attached late"));
  program_end(&program);
}

static void test_all_syncs_while_counting_are_counted(void **state) {
  struct program program;
  struct command command;
  unsigned long long before, now, after;
  (void)state;
  program_start_dormant(&program, NULL);
  assert_int_equal(sscanf(program_ask(&program, "hold"), "held %llu", &before), 1);
  command_start(&command, program.pid, "kept", NULL);
  command_counts(&command);
  assert_string_equal(program_ask(&program, "go"), "going");
  wait_until(sscanf(program_ask(&program, "turns"), "turns %llu", &now) == 1 && now >= before + 1000);
  assert_int_equal(sscanf(program_ask(&program, "hold"), "held %llu", &after), 1);
  command_end(&command);
  struct sc_findings *findings = trace_read("kept");
  assert_true(after >= before + 1000);
  assert_int_equal(findings->processes[0].counts.syncs, after - before);
  assert_int_equal(findings->processes[0].counts.uncertain, 0);
  sc_findings_free(findings);
  program_end(&program);
}

static void test_each_time_has_a_trace_of_its_own(void **state) {
  struct program program;
  (void)state;
  program_start_dormant(&program, NULL);
  for (int i = 1; i <= 4; i++) {
    struct command command;
    char keep[16];
    (void)snprintf(keep, sizeof(keep), "kept-%d", i);
    command_start(&command, program.pid, keep, NULL);
    command_counts(&command);
    (void)program_ask(&program, "mark %d", 10 * i);
    command_end(&command);
    (void)program_ask(&program, "mark 7"); /* nobody counts */
    expect_mark(keep, "marked", THREADS, (uint64_t)(10 * i));
    expect_mark(keep, "registered", THREADS, (uint64_t)(10 * i));
  }
  program_end(&program);
}

static void test_seconds_end_it(void **state) {
  struct program program;
  struct command command;
  (void)state;
  program_start_dormant(&program, NULL);
  command_start(&command, program.pid, "kept", LIST("--seconds", "0.3"));
  assert_int_equal(command_wait(&command), 0);
  assert_non_null(strstr(command.err, "for 0.3 s"));
  struct sc_findings *findings = trace_read("kept");
  assert_true(findings->processes[0].counts.syncs > 0);
  assert_true(findings->processes[0].ended_cleanly);
  assert_true(findings->processes[0].wall_us > 0.25e6);
  sc_findings_free(findings);
  program_end(&program);
}

/* "outer" is open on every thread and "early" on the main one, since before. */
static void test_ranges_open_before_are_not_guessed(void **state) {
  struct program program;
  struct command command;
  (void)state;
  count_dormant(&program, &command);
  assert_string_equal(program_ask(&program, "work 5"), "worked 5");
  assert_string_equal(program_ask(&program, "mark 6"), "marked 6");
  assert_string_equal(program_ask(&program, "end"), "ended"); /* closes "outer", and ends the process */
  assert_int_equal(program_wait(&program), 0);
  assert_int_equal(command_wait(&command), 0);
  assert_non_null(strstr(command.err, "ended"));
  expect_mark("kept", "work", 1, 5);
  expect_mark("kept", "marked", THREADS, 6);
  struct sc_findings *findings = trace_read("kept");
  assert_null(trace_range(findings, "outer"));
  assert_null(trace_range(findings, "early"));
  assert_true(findings->processes[0].ended_cleanly);
  for (size_t i = 0; i < findings->processes[0].range_count; i++)
    assert_true(findings->processes[0].ranges[i].depth <= 1); /* "registered" in "marked", nothing around */
  sc_findings_free(findings);
}

static void test_a_killed_program_leaves_what_it_did(void **state) {
  struct program program;
  struct command command;
  (void)state;
  count_dormant(&program, &command);
  assert_string_equal(program_ask(&program, "mark 30"), "marked 30");
  kill(program.pid, SIGKILL);
  assert_true(WIFSIGNALED(program_wait(&program)));
  assert_int_equal(command_wait(&command), 0);
  expect_mark("kept", "marked", THREADS, 30);
  assert_non_null(strstr(command.out, "did not end cleanly"));
}

/* Nobody adds to the trace. */
static bool is_quiet(const char *path) {
  struct stat before, after;
  assert_int_equal(stat(path, &before), 0);
  nap(100);
  assert_int_equal(stat(path, &after), 0);
  return before.st_size == after.st_size && before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
         before.st_mtim.tv_nsec == after.st_mtim.tv_nsec;
}

static void test_a_killed_command_stops_counting(void **state) {
  struct program program;
  struct command command;
  char path[400], host[128];
  (void)state;
  count_dormant(&program, &command);
  assert_string_equal(program_ask(&program, "mark 20"), "marked 20");
  kill(command.pid, SIGKILL);
  assert_int_equal(command_wait(&command), 128 + SIGKILL);
  gethostname(host, sizeof(host));
  (void)snprintf(path, sizeof(path), "%s/kept/synccount-%s-%ld.sctrace", attached_folder, host, (long)program.pid);
  wait_until(trace_is_closed("kept"));
  assert_true(is_quiet(path));
  expect_mark("kept", "marked", THREADS, 20);
  struct sc_findings *findings = trace_read("kept");
  assert_true(findings->processes[0].ended_cleanly); /* closed by the process, which goes on */
  sc_findings_free(findings);
  command_start(&command, program.pid, "again", NULL);
  command_counts(&command);
  assert_string_equal(program_ask(&program, "mark 10"), "marked 10");
  command_end(&command);
  expect_mark("again", "marked", THREADS, 10);
  program_end(&program);
}

static void test_a_program_stopped_meanwhile_is_reported_as_far_as_it_came(void **state) {
  struct program program;
  struct command command;
  (void)state;
  count_dormant(&program, &command);
  assert_string_equal(program_ask(&program, "mark 25"), "marked 25");
  program_stop(&program);
  uint64_t asked = sc_clock_mono_ns();
  command_end(&command);
  assert_true(sc_clock_mono_ns() - asked < 20 * 1000000000ull); /* an answer is awaited for 30 s */
  assert_non_null(strstr(command.err, "is stopped (Ctrl-Z or SIGSTOP)"));
  assert_non_null(strstr(command.err, "The report is of what it has done up to now"));
  assert_non_null(strstr(command.out, "read-backs, in process"));
  expect_mark("kept", "marked", THREADS, 25);
  assert_false(trace_is_closed("kept"));
  program_continue(&program); /* it ends counting, and can be counted again */
  wait_until(trace_is_closed("kept"));
  command_start(&command, program.pid, "again", NULL);
  command_counts(&command);
  assert_string_equal(program_ask(&program, "mark 10"), "marked 10");
  command_end(&command);
  expect_mark("kept", "marked", THREADS, 25);
  expect_mark("again", "marked", THREADS, 10);
  program_end(&program);
}

static void test_a_stop_that_ends_in_time_is_waited_for(void **state) {
  struct program program;
  struct command command;
  (void)state;
  count_dormant(&program, &command);
  assert_string_equal(program_ask(&program, "mark 5"), "marked 5");
  program_stop(&program);
  kill(command.pid, SIGINT);
  nap(100); /* it may have asked by now, and a stop is believed at the second look, half a second later */
  program_continue(&program);
  assert_int_equal(command_wait(&command), 0);
  expect_mark("kept", "marked", THREADS, 5);
  wait_until(trace_is_closed("kept"));
  program_end(&program);
}

static void test_options_reach_the_tracer(void **state) {
  struct program program;
  struct command command;
  (void)state;
  program_start_dormant(&program, NULL);
  command_start(&command, program.pid, "kept", LIST("--stacks", "none", "--api", "driver", "--max-trace", "64K"));
  command_counts(&command);
  (void)program_ask(&program, "mark 2000");
  command_end(&command);
  char *stacks = trace_meta("kept", "stacks");
  assert_string_equal(stacks, "none");
  free(stacks);
  assert_non_null(strstr(command.err, "the trace is kept in"));
  assert_null(strstr(command.out, "cudaStreamSynchronize")); /* the driver's calls alone */
  assert_non_null(strstr(command.out, "details")); /* the trace was full, and the count went on */
  program_end(&program);
}

static void test_a_program_without_the_library_can_be_given_it(void **state) {
  struct program program;
  struct command command;
  char path[64], environment[65536];
  long child = 0;
  (void)state;
  program_start(&program, LIST(LOOPING, "4", "early"), NULL);
  assert_string_equal(program_line(&program), "ready");
  assert_string_equal(program_ask(&program, "load " TRACER_FILE), "loaded");
  (void)program_socket(&program);
  command_start(&command, program.pid, "kept", NULL);
  command_counts(&command);
  assert_string_equal(program_ask(&program, "work 9"), "worked 9");
  command_end(&command);
  struct sc_findings *findings = trace_read("kept");
  assert_true(findings->processes[0].counts.syncs > 9);
  assert_int_equal(findings->processes[0].range_count, 0); /* its NVTX was in use before */
  sc_findings_free(findings);
  assert_non_null(strstr(command.out, "ranges not available"));
  /* What it starts is not traced for it. */
  assert_int_equal(sscanf(program_ask(&program, "exec"), "child %ld", &child), 1);
  wait_for_program((pid_t)child, "sleep");
  (void)snprintf(path, sizeof(path), "/proc/%ld/environ", child);
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  size_t n = fread(environment, 1, sizeof(environment) - 1, file);
  fclose(file);
  for (size_t i = 0; i < n; i++)
    environment[i] = environment[i] == '\0' ? '\n' : environment[i];
  environment[n] = '\0';
  assert_null(strstr(environment, "CUDA_INJECTION64_PATH"));
  kill((pid_t)child, SIGKILL);
  program_end(&program);
}

static void test_nothing_is_left_behind(void **state) {
  struct program program;
  struct command command;
  char find[200], found[400] = "";
  (void)state;
  program_start_dormant(&program, NULL);
  command_start(&command, program.pid, NULL, LIST("--seconds", "0.1"));
  assert_int_equal(command_wait(&command), 0);
  program_end(&program);
  (void)snprintf(find, sizeof(find), "find '%s' -mindepth 1 -not -name 'command-*' -not -name 'synccount-%ld'",
                 attached_folder, (long)geteuid());
  FILE *pipe = popen(find, "re");
  assert_non_null(pipe);
  size_t n = fread(found, 1, sizeof(found) - 1, pipe);
  found[n] = '\0';
  pclose(pipe);
  assert_string_equal(found, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, attached_setup, attached_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(test_counts_are_the_programs_own),
    TEST(test_all_syncs_while_counting_are_counted),
    TEST(test_each_time_has_a_trace_of_its_own),
    TEST(test_seconds_end_it),
    TEST(test_ranges_open_before_are_not_guessed),
    TEST(test_a_killed_program_leaves_what_it_did),
    TEST(test_a_killed_command_stops_counting),
    TEST(test_a_program_stopped_meanwhile_is_reported_as_far_as_it_came),
    TEST(test_a_stop_that_ends_in_time_is_waited_for),
    TEST(test_options_reach_the_tracer),
    TEST(test_a_program_without_the_library_can_be_given_it),
    TEST(test_nothing_is_left_behind),
  };
  signal(SIGPIPE, SIG_IGN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
