/* SPDX-License-Identifier: Apache-2.0
 * Why attach refuses, and what it says to do: one test for each reason. */
#include "attached.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/target.h"
#include "test_support.h"

static void start_looping(struct program *program, const char *const *settings) {
  program_start(program, LIST(LOOPING, "1"), settings);
  assert_string_equal(program_line(program), "ready");
}

static void test_no_such_process(void **state) {
  (void)state;
  pid_t gone = fork();
  if (gone == 0)
    _exit(0);
  waitpid(gone, NULL, 0);
  command_expect(gone, NULL, 3, "there is no process");
}

static void test_ended_process(void **state) {
  (void)state;
  pid_t zombie = fork();
  if (zombie == 0)
    _exit(0);
  siginfo_t info;
  assert_int_equal(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
  command_expect(zombie, NULL, 3, "has ended");
  waitpid(zombie, NULL, 0);
}

static void test_a_thread_is_no_process(void **state) {
  struct program program;
  char command[100], number[16] = "", text[64];
  (void)state;
  start_looping(&program, NULL);
  (void)snprintf(command, sizeof(command), "ls /proc/%ld/task | sort -n | tail -n 1", (long)program.pid);
  FILE *pipe = popen(command, "re");
  assert_non_null(pipe);
  assert_non_null(fgets(number, sizeof(number), pipe));
  pclose(pipe);
  (void)snprintf(text, sizeof(text), "is a thread of process %ld", (long)program.pid);
  command_expect((pid_t)atol(number), NULL, 3, text);
  program_end(&program);
}

static void test_no_library_in_it(void **state) {
  struct program program;
  (void)state;
  start_looping(&program, NULL);
  command_expect(program.pid, NULL, 3, "does not have libsynccount.so in it. Start it with LD_PRELOAD=");
  command_expect(program.pid, NULL, 3, "synccount attach --inject ");
  program_end(&program);
}

static void test_nothing_to_inject_into(void **state) {
  struct program program;
  (void)state;
  program_start(&program, LIST("/bin/sleep", "60"), NULL);
  wait_for_program(program.pid, "sleep");
  command_expect(program.pid, LIST("--inject"), 3, "has no CUDA in it");
}

static void test_a_stopped_process_is_named_at_once(void **state) {
  struct program program;
  struct command command;
  char remedy[32];
  (void)state;
  program_start_dormant(&program, NULL);
  (void)snprintf(remedy, sizeof(remedy), "'kill -CONT %ld'", (long)program.pid);
  program_stop(&program);
  uint64_t asked = sc_clock_mono_ns();
  command_expect(program.pid, NULL, 3, "is stopped (Ctrl-Z or SIGSTOP) and cannot answer");
  command_expect(program.pid, LIST("--inject"), 3, remedy);
  assert_true(sc_clock_mono_ns() - asked < 20 * 1000000000ull); /* an answer is awaited for 30 s */
  program_continue(&program);
  command_start(&command, program.pid, NULL, LIST("--seconds", "0.2"));
  assert_int_equal(command_wait(&command), 0);
  program_end(&program);
}

/* It stops when it has been asked to begin. */
static void test_a_process_that_stops_instead_of_an_answer(void **state) {
  struct sc_control_request request = { .output = "/nowhere" };
  struct sc_control_reply reply;
  struct sc_error err = { .status = SC_OK };
  struct program program;
  struct target target;
  enum target_says says = TARGET_ANSWERS;
  int fd = -1;
  (void)state;
  program_start_dormant(&program, NULL);
  assert_int_equal(target_examine("", program.pid, &target, &err), SC_OK);
  assert_int_equal(target_check_runs(&target, &err), SC_OK);
  assert_true(target_connect(&target, &fd));
  program_stop(&program);
  assert_int_equal(target_ask(&target, fd, SC_CONTROL_START, &request, &reply, &says, &err), SC_ERR_MEASURE);
  assert_int_equal(says, TARGET_SILENT);
  assert_non_null(strstr(err.message, "is stopped (Ctrl-Z or SIGSTOP)"));
  close(fd);
  target_free(&target);
  program_continue(&program);
  program_end(&program);
}

static void test_counted_from_its_start(void **state) {
  struct program program;
  (void)state;
  start_looping(&program, LIST("LD_PRELOAD=" PRELOAD, "SYNCCOUNT_QUIET=1"));
  assert_int_equal(count_sockets(program.pid), 0); /* a traced process has no socket */
  command_expect(program.pid, NULL, 3, "is counted from its start");
  command_expect(program.pid, LIST("--inject"), 3, "SYNCCOUNT_DORMANT=1");
  program_end(&program);
}

static void test_another_tool_has_the_injection(void **state) {
  struct program program;
  (void)state;
  start_looping(&program, LIST("LD_PRELOAD=" PRELOAD, "SYNCCOUNT_DORMANT=1", "CUDA_INJECTION64_PATH=/other/tool.so"));
  command_expect(program.pid, NULL, 3, "gives CUDA's injection to /other/tool.so");
  program_end(&program);
}

static void test_slot_is_taken(void **state) {
  struct program program;
  (void)state;
  program_start_dormant(&program, LIST("SIMCUDA_SUBSCRIBER=Nosy Profiler"));
  command_expect(program.pid, NULL, 3, "\"Nosy Profiler\" holds it; run the program without that profiler");
  command_expect(program.pid, NULL, 3, "\"Nosy Profiler\" holds it"); /* the refusal left nothing behind */
  program_end(&program);
}

/* Somebody who speaks another version listens where our socket would be: this test. */
static void test_other_version(void **state) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct sc_control_request request;
  struct sc_control_reply reply = { .head = { .version = 7, .size = 48 }, .release = "9.9.9" };
  struct command command;
  char folder[SC_CONTROL_PATH];
  (void)state;
  memcpy(reply.head.magic, SC_CONTROL_MAGIC, sizeof(reply.head.magic));
  assert_true(sc_control_place(1, NULL, attached_folder, geteuid(), getpid(), folder, address.sun_path));
  assert_int_equal(mkdir(folder, 0700), 0);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(listen(listener, 1), 0);
  command_start(&command, getpid(), NULL, NULL);
  int fd = accept(listener, NULL, NULL);
  assert_int_equal(recv(fd, &request, sizeof(request), MSG_WAITALL), sizeof(request));
  assert_int_equal(request.head.what, SC_CONTROL_START);
  assert_int_equal(send(fd, &reply, 48, 0), 48);
  assert_int_equal(command_wait(&command), 3);
  assert_non_null(strstr(command.err, "is of version 9.9.9 and this synccount is " SC_VERSION));
  close(fd);
  close(listener);
  unlink(address.sun_path);
}

/* An impostor: a live process listens at the place of another one. */
static void test_the_process_itself_must_answer(void **state) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct program program;
  char folder[SC_CONTROL_PATH];
  (void)state;
  start_looping(&program, NULL);
  assert_true(sc_control_place(1, NULL, attached_folder, geteuid(), program.pid, folder, address.sun_path));
  assert_int_equal(mkdir(folder, 0700), 0);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(listen(listener, 1), 0);
  command_expect(program.pid, NULL, 3, "does not have libsynccount.so in it");
  close(listener);
  program_end(&program);
}

static void test_root_writes_into_the_users_folder(void **state) {
  (void)state;
  if (geteuid() != 0)
    skip();
  struct program program;
  struct command command;
  assert_int_equal(chmod(attached_folder, 0777), 0);
  program_start(&program,
                LIST("/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", LOOPING, "1"),
                LIST("LD_PRELOAD=" PRELOAD, "SYNCCOUNT_DORMANT=1"));
  const char *line = program_line(&program);
  assert_string_equal(line, "ready");
  char folder[SC_CONTROL_PATH], path[SC_CONTROL_PATH];
  struct stat info;
  assert_true(sc_control_place(1, NULL, attached_folder, 65534, program.pid, folder, path));
  wait_until(lstat(path, &info) == 0);
  command_start(&command, program.pid, NULL, LIST("--seconds", "0.2"));
  int status = command_wait(&command);
  if (status != 0)
    fail_msg("ended with %d: %s", status, command.err);
  assert_non_null(strstr(command.out, "read-backs, in process"));
  program_end(&program);
}

/* ---- a /proc of our own: other users and containers -------------------------------------------------- */
static void put_file(const char *name, const char *text) {
  char path[300];
  (void)snprintf(path, sizeof(path), "%s/proc/%s", attached_folder, name);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void put_folder(const char *name) {
  char path[300];
  (void)snprintf(path, sizeof(path), "%s/%s", attached_folder, name);
  assert_int_equal(mkdir(path, 0755), 0);
}

static void put_namespace(const char *process, const char *kind, int number) {
  char path[300], target[64];
  (void)snprintf(path, sizeof(path), "%s/proc/%s/ns/%s", attached_folder, process, kind);
  (void)snprintf(target, sizeof(target), "%s:[%d]", kind, number);
  assert_int_equal(symlink(target, path), 0);
}

static void put_process(unsigned long uid, int mount, int pid_space) {
  char status[300];
  static const char *const folders[] = { "proc", "proc/4711", "proc/4711/ns", "proc/self", "proc/self/ns" };
  for (size_t i = 0; i < SC_COUNTOF(folders); i++)
    put_folder(folders[i]);
  (void)snprintf(status, sizeof(status),
                 "Name:\tserver\nState:\tS (sleeping)\nTgid:\t4711\nPid:\t4711\nUid:\t%lu\t%lu\t%lu\t%lu\n"
                 "Gid:\t7\t7\t7\t7\nNSpid:\t4711\t23\n",
                 uid, uid, uid, uid);
  put_file("4711/status", status);
  put_file("4711/maps", "7f00-7f01 r-xp 0 08:01 1 /usr/lib/libcuda.so.1\n");
  put_file("4711/environ", "");
  put_namespace("self", "mnt", 1);
  put_namespace("self", "pid", 2);
  put_namespace("4711", "mnt", mount);
  put_namespace("4711", "pid", pid_space);
}

static void expect_refusal(const char *text) {
  struct target target;
  struct sc_error err = { .status = SC_OK };
  assert_int_equal(target_examine(attached_folder, 4711, &target, &err), SC_ERR_MEASURE);
  if (strstr(err.message, text) == NULL)
    fail_msg("it says: %s", err.message);
  target_free(&target);
}

static void test_another_mount_namespace(void **state) {
  (void)state;
  put_process(geteuid(), 9, 2);
  expect_refusal("process 4711 (server) lives in another mount namespace");
  expect_refusal("'synccount attach 23'");
}

static void test_another_pid_namespace(void **state) {
  (void)state;
  put_process(geteuid(), 1, 9);
  expect_refusal("lives in another pid namespace");
}

static void test_other_users_process(void **state) {
  (void)state;
  if (geteuid() == 0) { /* root may: look as somebody else */
    assert_int_equal(chmod(attached_folder, 0755), 0);
    put_process(1234, 1, 2);
    assert_int_equal(seteuid(65534), 0);
    expect_refusal("belongs to user 1234, and you are user 65534: run synccount as that user, or as root");
    assert_int_equal(seteuid(0), 0);
  } else {
    put_process(geteuid() + 1ul, 1, 2);
    expect_refusal("run synccount as that user, or as root");
  }
}

static void test_what_is_seen_of_a_process(void **state) {
  struct target target;
  struct sc_error err = { .status = SC_OK };
  (void)state;
  put_process(geteuid(), 1, 2);
  put_file("4711/maps", "7f00-7f01 r-xp 0 08:01 1 /a b/libsynccount.so (deleted)\n7f02-7f03 rw-p 0 00:00 0\n"
                        "7f03-7f04 r-xp 0 08:01 1 /usr/lib/libcudart.so.13");
  assert_int_equal(target_examine(attached_folder, 4711, &target, &err), SC_OK);
  assert_string_equal(target.name, "server");
  assert_true(target.has_library);
  assert_false(target.has_cuda);
  assert_false(target.will_sleep);
  assert_null(target.other_tool);
  target_free(&target);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, attached_setup, attached_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(test_no_such_process),
    TEST(test_ended_process),
    TEST(test_a_thread_is_no_process),
    TEST(test_no_library_in_it),
    TEST(test_nothing_to_inject_into),
    TEST(test_a_stopped_process_is_named_at_once),
    TEST(test_a_process_that_stops_instead_of_an_answer),
    TEST(test_counted_from_its_start),
    TEST(test_another_tool_has_the_injection),
    TEST(test_slot_is_taken),
    TEST(test_other_version),
    TEST(test_the_process_itself_must_answer),
    TEST(test_root_writes_into_the_users_folder),
    TEST(test_another_mount_namespace),
    TEST(test_another_pid_namespace),
    TEST(test_other_users_process),
    TEST(test_what_is_seen_of_a_process),
  };
  signal(SIGPIPE, SIG_IGN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
