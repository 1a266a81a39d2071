/* SPDX-License-Identifier: Apache-2.0
 * The socket of a dormant process: who can reach it, what becomes of it, and what dormant and counting leave of a process
 * that is started and stopped many times. */
#include "attached.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/target.h"
#include "test_support.h"
#include "trace/trace.h"

/* ---- speaking to it without the command -------------------------------------------------------------- */
static int connect_to(const char *path) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(strlen(path) < sizeof(address.sun_path));
  memcpy(address.sun_path, path, strlen(path) + 1);
  if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
  }
  return fd;
}

static void ask(const struct program *program, int fd, enum sc_control_command command, const char *folder,
                struct sc_control_reply *reply) {
  struct target target = { .root = "", .pid = program->pid };
  struct sc_control_request request;
  struct sc_error err = { .status = SC_OK };
  enum target_says says;
  memset(&request, 0, sizeof(request));
  (void)snprintf(request.output, sizeof(request.output), "%s", folder);
  if (target_ask(&target, fd, command, &request, reply, &says, &err) != SC_OK)
    fail_msg("%s", err.message);
}

static void test_socket_is_its_owners_alone(void **state) {
  struct program program;
  struct stat socket, folder;
  char path[200], above[200];
  (void)state;
  program_start_dormant(&program, NULL);
  (void)snprintf(path, sizeof(path), "%s", program_socket(&program));
  assert_int_equal(lstat(path, &socket), 0);
  assert_true(S_ISSOCK(socket.st_mode));
  assert_int_equal(socket.st_mode & 07777, 0600);
  assert_int_equal(socket.st_uid, geteuid());
  (void)snprintf(above, sizeof(above), "%.*s", (int)(strrchr(path, '/') - path), path);
  assert_int_equal(lstat(above, &folder), 0);
  assert_int_equal(folder.st_mode & 07777, 0700);
  program_end(&program);
  assert_int_equal(lstat(path, &socket), -1); /* it goes with the process */
}

static int count_files(const char *folder) {
  int count = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;)
    count += entry->d_name[0] != '.';
  if (dir != NULL)
    closedir(dir);
  return count;
}

/* The program may end at any time, also while the socket is being made. */
static void test_program_that_ends_early_leaves_no_socket(void **state) {
  struct program program;
  char folder[200];
  (void)state;
  (void)snprintf(folder, sizeof(folder), "%s/synccount-%ld", attached_folder, (long)geteuid());
  program_start(&program, LIST(LOOPING, "1"), LIST("LD_PRELOAD=" PRELOAD ":" SLOW_LISTEN, "SYNCCOUNT_DORMANT=1"));
  assert_string_equal(program_line(&program), "ready");
  wait_until(count_files(folder) > 0);
  program_end(&program);
  assert_int_equal(count_files(folder), 0);
}

/* Even where the files' modes would let them: the peer's credentials are asked for. */
static void test_other_users_are_turned_away(void **state) {
  struct program program;
  char path[200], above[200];
  (void)state;
  if (geteuid() != 0)
    skip();
  program_start_dormant(&program, NULL);
  (void)snprintf(path, sizeof(path), "%s", program_socket(&program));
  (void)snprintf(above, sizeof(above), "%.*s", (int)(strrchr(path, '/') - path), path);
  for (int open_door = 0; open_door < 2; open_door++) {
    if (open_door) {
      assert_int_equal(chmod(path, 0666), 0);
      assert_int_equal(chmod(above, 0755), 0);
      assert_int_equal(chmod(attached_folder, 0755), 0);
    }
    pid_t child = fork();
    if (child == 0) {
      char byte;
      struct sc_control_request request = { .head = { .version = SC_CONTROL_VERSION,
                                                      .size = sizeof(request),
                                                      .what = SC_CONTROL_STATUS } };
      memcpy(request.head.magic, SC_CONTROL_MAGIC, sizeof(request.head.magic));
      (void)snprintf(request.release, sizeof(request.release), "%s", SC_VERSION);
      if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(1);
      int fd = connect_to(path);
      if (!open_door)
        _exit(fd < 0 && errno == EACCES ? 0 : 2);
      if (fd < 0)
        _exit(3);
      (void)!send(fd, &request, sizeof(request), MSG_NOSIGNAL);
      _exit(recv(fd, &byte, 1, 0) <= 0 ? 0 : 4); /* closed without a word */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
  int fd = connect_to(path);
  struct sc_control_reply reply;
  ask(&program, fd, SC_CONTROL_STATUS, "", &reply); /* and we are let in */
  assert_int_equal(reply.head.what, SC_CONTROL_DONE);
  close(fd);
  program_end(&program);
}

/* A folder that others can enter is not used. */
static void test_open_folder_is_not_trusted(void **state) {
  struct program program;
  char folder[200], path[300];
  struct stat info;
  (void)state;
  (void)snprintf(folder, sizeof(folder), "%s/synccount-%ld", attached_folder, (long)geteuid());
  assert_int_equal(mkdir(folder, 0700), 0);
  assert_int_equal(chmod(folder, 0777), 0);
  program_start(&program, LIST(LOOPING, "1"), LIST("LD_PRELOAD=" PRELOAD, "SYNCCOUNT_DORMANT=1"));
  assert_string_equal(program_line(&program), "ready");
  (void)snprintf(path, sizeof(path), "/tmp/synccount-%ld/%ld.socket", (long)geteuid(), (long)program.pid);
  wait_until(lstat(path, &info) == 0); /* the next place */
  struct command command;
  command_start(&command, program.pid, NULL, LIST("--seconds", "0.1"));
  assert_int_equal(command_wait(&command), 0);
  program_end(&program);
  assert_int_equal(lstat(path, &info), -1);
}

static void test_runtime_folder_comes_first(void **state) {
  struct program program;
  struct command command;
  char runtime[200], setting[240], path[300];
  struct stat info;
  (void)state;
  (void)snprintf(runtime, sizeof(runtime), "%s/run", attached_folder);
  (void)snprintf(setting, sizeof(setting), "XDG_RUNTIME_DIR=%s", runtime);
  assert_int_equal(mkdir(runtime, 0700), 0);
  program_start(&program, LIST(LOOPING, "1"), LIST("LD_PRELOAD=" PRELOAD, "SYNCCOUNT_DORMANT=1", setting));
  assert_string_equal(program_line(&program), "ready");
  (void)snprintf(path, sizeof(path), "%s/synccount/%ld.socket", runtime, (long)program.pid);
  wait_until(lstat(path, &info) == 0);
  command_start(&command, program.pid, NULL, LIST("--seconds", "0.1")); /* whose own variables name other places */
  assert_int_equal(command_wait(&command), 0);
  program_end(&program);
}

/* A process that was killed leaves its socket; the next one with its number takes the place. */
static void test_stale_socket_is_replaced(void **state) {
  struct program program;
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  char folder[SC_CONTROL_PATH];
  (void)state;
  (void)snprintf(folder, sizeof(folder), "%s/synccount-%ld", attached_folder, (long)geteuid());
  assert_int_equal(mkdir(folder, 0700), 0);
  program_start(&program, LIST("/bin/sh", "-c", "read go; exec \"$0\" 1", LOOPING),
                LIST("LD_PRELOAD=" PRELOAD, "SYNCCOUNT_DORMANT=1"));
  assert_true(sc_control_place(1, NULL, attached_folder, geteuid(), program.pid, folder, address.sun_path));
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
  close(fd);
  assert_string_equal(program_ask(&program, "go"), "ready");
  struct command command;
  command_start(&command, program.pid, NULL, LIST("--seconds", "0.1"));
  assert_int_equal(command_wait(&command), 0);
  program_end(&program);
}

static void test_one_counts_at_a_time(void **state) {
  struct program program;
  struct command first;
  char text[64];
  (void)state;
  program_start_dormant(&program, NULL);
  command_start(&first, program.pid, "kept", NULL);
  command_counts(&first);
  (void)snprintf(text, sizeof(text), "is being counted already, by process %ld", (long)first.pid);
  command_expect(program.pid, NULL, 3, text);
  (void)program_ask(&program, "mark 10"); /* the first goes on */
  command_end(&first);
  struct sc_findings *findings = trace_read("kept");
  assert_int_equal(trace_range(findings, "marked")->total.syncs, 40);
  sc_findings_free(findings);
  program_end(&program);
}

static void test_nonsense_is_turned_away(void **state) {
  struct program program;
  struct sc_control_reply reply;
  struct sc_control_request request;
  char byte;
  (void)state;
  program_start_dormant(&program, NULL);
  int garbage = connect_to(program_socket(&program));
  assert_int_equal(send(garbage, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
  assert_int_equal(recv(garbage, &byte, 1, 0), 0);
  close(garbage);
  int newer = connect_to(program_socket(&program)); /* a head of another version is enough for an answer */
  struct sc_control_head head = { .version = 99, .size = 64, .what = SC_CONTROL_START };
  memcpy(head.magic, SC_CONTROL_MAGIC, sizeof(head.magic));
  assert_int_equal(send(newer, &head, sizeof(head), 0), sizeof(head));
  assert_int_equal(recv(newer, &reply, sizeof(reply), MSG_WAITALL), sizeof(reply));
  assert_int_equal(reply.head.what, SC_CONTROL_FOREIGN);
  assert_string_equal(reply.release, SC_VERSION);
  close(newer);
  int bad = connect_to(program_socket(&program)); /* texts without an end */
  memset(&request, 'x', sizeof(request));
  request.head = (struct sc_control_head){ .version = SC_CONTROL_VERSION, .size = sizeof(request), .what = SC_CONTROL_START };
  memcpy(request.head.magic, SC_CONTROL_MAGIC, sizeof(request.head.magic));
  assert_int_equal(send(bad, &request, sizeof(request), 0), sizeof(request));
  assert_int_equal(recv(bad, &reply, sizeof(reply), MSG_WAITALL), sizeof(reply));
  assert_int_equal(reply.head.what, SC_CONTROL_FOREIGN);
  close(bad);
  int silent[12]; /* more than are served at once: they are closed in the end, and hold nobody up for good */
  for (size_t i = 0; i < SC_COUNTOF(silent); i++)
    silent[i] = connect_to(program_socket(&program));
  int fd = connect_to(program_socket(&program));
  ask(&program, fd, SC_CONTROL_STATUS, "", &reply);
  assert_int_equal(reply.head.what, SC_CONTROL_DONE);
  assert_int_equal(reply.other, 0);
  for (size_t i = 0; i < SC_COUNTOF(silent); i++)
    close(silent[i]);
  close(fd);
  program_end(&program);
}

/* ---- forks ------------------------------------------------------------------------------------------- */
static void test_children_keep_nothing_open(void **state) {
  struct program program;
  struct command command;
  char path[200];
  struct stat info;
  (void)state;
  program_start_dormant(&program, NULL);
  (void)snprintf(path, sizeof(path), "%s", program_socket(&program));
  command_start(&command, program.pid, "kept", NULL);
  command_counts(&command);
  long forked = 0, executed = 0;
  assert_int_equal(sscanf(program_ask(&program, "fork"), "child %ld", &forked), 1);
  assert_int_equal(sscanf(program_ask(&program, "exec"), "child %ld", &executed), 1);
  assert_true(count_sockets(program.pid) >= 2); /* one that listens, one connection */
  wait_until(count_sockets((pid_t)forked) == 0); /* it may not have returned from its fork yet */
  wait_for_program((pid_t)executed, "sleep");
  assert_int_equal(count_sockets((pid_t)executed), 0);
  (void)program_ask(&program, "mark 15"); /* counting goes on, the parent's alone */
  command_end(&command);
  struct sc_findings *findings = trace_read("kept");
  assert_int_equal(trace_range(findings, "marked")->total.syncs, 60);
  sc_findings_free(findings);
  kill((pid_t)executed, SIGKILL);
  /* The parent is killed while the child lives: nobody answers at the socket that is left. */
  kill(program.pid, SIGKILL);
  int status;
  assert_int_equal(waitpid(program.pid, &status, 0), program.pid);
  assert_int_equal(lstat(path, &info), 0);
  assert_int_equal(connect_to(path), -1);
  assert_int_equal(errno, ECONNREFUSED);
  assert_int_equal(kill((pid_t)forked, 0), 0);
  close(program.in);
  close(program.out);
  for (int i = 0; i < 500 && kill((pid_t)forked, 0) == 0; i++)
    nap(10);
  assert_int_equal(lstat(path, &info), 0); /* the child ended by exit(3): the socket is not its own, and still there */
  unlink(path);
}

/* ---- what stays as it was ---------------------------------------------------------------------------- */
static void test_closing_all_descriptors_is_survived(void **state) {
  struct program program;
  struct command command;
  (void)state;
  if (THREADS_WATCHED) /* to close what another thread uses is a race, and the program's own */
    skip();
  program_start_dormant(&program, NULL);
  for (int i = 0; i < 2; i++) {
    assert_string_equal(program_ask(&program, "close"), "closed");
    for (int attempt = 0;; attempt++) { /* it takes a connection that fails to notice */
      command_start(&command, program.pid, NULL, LIST("--seconds", "0.1"));
      int status = command_wait(&command);
      if (status == 0)
        break;
      if (attempt == 200)
        fail_msg("attach still ends with %d: %s", status, command.err);
      nap(50);
    }
  }
  program_end(&program);
}

#define CYCLES 50
static void test_fifty_cycles_at_full_speed(void **state) {
  struct program program;
  struct sc_control_reply reply;
  char folder[200];
  int fds = 0, mappings = 0, threads = 0;
  (void)state;
  program_start_dormant(&program, NULL);
  int fd = connect_to(program_socket(&program));
  for (int i = 0; i < CYCLES; i++) {
    (void)snprintf(folder, sizeof(folder), "%s/cycle-%d", attached_folder, i);
    assert_int_equal(mkdir(folder, 0700), 0);
    ask(&program, fd, SC_CONTROL_START, folder, &reply);
    if (reply.head.what != SC_CONTROL_DONE)
      fail_msg("cycle %d: %s", i, reply.text);
    if (i % 5 == 0)
      (void)program_ask(&program, "mark %d", i + 1);
    ask(&program, fd, SC_CONTROL_STOP, "", &reply);
    assert_int_equal(reply.head.what, SC_CONTROL_DONE);
    assert_int_equal(reply.lost, 0);
    assert_int_equal(reply.flags, 0);
    if (i == 4) { /* what is made once has been made */
      fds = count_fds(program.pid);
      mappings = count_mappings(program.pid);
      threads = count_threads(program.pid);
    }
  }
  assert_int_equal(count_fds(program.pid), fds);
  assert_int_equal(count_threads(program.pid), threads);
  if (!SANITIZED) /* a sanitizer maps as it pleases */
    assert_true(count_mappings(program.pid) <= mappings + 8);
  for (int i = 0; i < CYCLES; i++) {
    (void)snprintf(folder, sizeof(folder), "cycle-%d", i);
    struct sc_findings *findings = trace_read(folder);
    const struct sc_range_findings *range = trace_range(findings, "marked");
    assert_true(findings->processes[0].ended_cleanly);
    assert_int_equal(range != NULL ? range->total.syncs : 0, i % 5 == 0 ? 4 * (i + 1) : 0);
    assert_int_equal(trace_driver_calls(folder), 0); /* the program makes none: parts of calls that began before */
    sc_findings_free(findings);
  }
  close(fd);
  program_end(&program);
}

static void test_loading_twice_changes_nothing(void **state) {
  struct program program;
  struct command command;
  (void)state;
  program_start_dormant(&program, NULL);
  (void)program_ask(&program, "mark 1"); /* the simulated device has all its threads by then */
  int threads = count_threads(program.pid);
  assert_string_equal(program_ask(&program, "load " TRACER_FILE), "loaded");
  assert_string_equal(program_ask(&program, "load " TRACER_FILE), "loaded");
  assert_int_equal(count_threads(program.pid), threads);
  command_start(&command, program.pid, "kept", NULL);
  command_counts(&command);
  assert_string_equal(program_ask(&program, "load " TRACER_FILE), "loaded");
  (void)program_ask(&program, "mark 10");
  command_end(&command);
  struct sc_findings *findings = trace_read("kept");
  assert_int_equal(trace_range(findings, "marked")->total.syncs, 40);
  sc_findings_free(findings);
  program_end(&program);
}

static void test_without_cuda_there_is_nothing(void **state) {
  struct program program;
  char folder[200];
  struct stat info;
  (void)state;
  program_start(&program, LIST("/bin/sleep", "60"), LIST("LD_PRELOAD=" PRELOAD, "SYNCCOUNT_DORMANT=1"));
  nap(SANITIZED ? 1000 : 300);
  assert_int_equal(count_threads(program.pid), 1);
  assert_int_equal(count_sockets(program.pid), 0);
  (void)snprintf(folder, sizeof(folder), "%s/synccount-%ld", attached_folder, (long)geteuid());
  assert_int_equal(lstat(folder, &info), -1);
  command_expect(program.pid, NULL, 3, "CUDA has not started in process");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, attached_setup, attached_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
    TEST(test_socket_is_its_owners_alone),
    TEST(test_program_that_ends_early_leaves_no_socket),
    TEST(test_other_users_are_turned_away),
    TEST(test_open_folder_is_not_trusted),
    TEST(test_runtime_folder_comes_first),
    TEST(test_stale_socket_is_replaced),
    TEST(test_one_counts_at_a_time),
    TEST(test_nonsense_is_turned_away),
    TEST(test_children_keep_nothing_open),
    TEST(test_closing_all_descriptors_is_survived),
    TEST(test_fifty_cycles_at_full_speed),
    TEST(test_loading_twice_changes_nothing),
    TEST(test_without_cuda_there_is_nothing),
  };
  signal(SIGPIPE, SIG_IGN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
