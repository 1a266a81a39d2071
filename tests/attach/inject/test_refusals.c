/* SPDX-License-Identifier: Apache-2.0
 * Each refusal names what was found and what to do, and leaves the process alone. */
#include "victims.h"

#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/proc.h"

#define GOOD "libinject_good.so"
#define NOBODY 65534

/* Every word in it. */
static void expect_words(const struct sc_error *err, const char *const *words)
{
  for (; *words; ++words) {
    if (!strstr(err->message, *words))
      fail_msg("not \"%s\" in: %s", *words, err->message);
  }
}

#define expect_refusal(pid, library, ...) refused(pid, library, (const char *const[]){__VA_ARGS__, NULL})
static void refused(pid_t pid, const char *library, const char *const *words)
{
  struct sc_error err = {0};
  if (inject_library(pid, library, &err) == SC_OK)
    fail_msg("not refused");
  expect_words(&err, words);
}

static void a_process_that_is_not_there(void **state)
{
  (void)state;
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT);
  expect_refusal(child, victim_file(GOOD), "has ended");
  waitpid(child, NULL, 0);
  expect_refusal(child, victim_file(GOOD), "there is no process");
  expect_refusal(0, victim_file(GOOD), "not a process id");
  expect_refusal(getpid(), victim_file(GOOD), "is synccount itself");
}

static void a_kernel_thread(void **state)
{
  (void)state;
  char name[32] = "";
  FILE *file = fopen("/proc/2/comm", "re");
  if (!file || !fgets(name, sizeof name, file) || strcmp(name, "kthreadd\n") != 0 || geteuid() != 0) {
    if (file)
      fclose(file);
    skip();
  }
  fclose(file);
  expect_refusal(2, victim_file(GOOD), "kernel thread");
}

static void a_thread_of_a_process(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "churn", NULL, 5);
  char number[32];
  snprintf(number, sizeof number, "thread of process %d", (int)victim.pid);
  expect_refusal(victim.page->waiter, victim_file(GOOD), number);
  victim_stop(&victim, 0);
}

static void a_stopped_process(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "poll", NULL, 1);
  kill(victim.pid, SIGSTOP);
  waitpid(victim.pid, NULL, WUNTRACED);
  expect_refusal(victim.pid, victim_file(GOOD), "is stopped", "kill -CONT");
  kill(victim.pid, SIGCONT);
  victim_stop(&victim, 0);
}

static void a_traced_process_names_its_tracer(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "poll", NULL, 1);
  assert_int_equal(ptrace(PTRACE_SEIZE, victim.pid, NULL, NULL), 0);
  char number[64];
  snprintf(number, sizeof number, "traced by process %d (test_attach_inj", (int)getpid());
  expect_refusal(victim.pid, victim_file(GOOD), number, "detach");
  assert_int_equal(ptrace(PTRACE_INTERRUPT, victim.pid, NULL, NULL), 0);
  waitpid(victim.pid, NULL, __WALL);
  assert_int_equal(ptrace(PTRACE_DETACH, victim.pid, NULL, NULL), 0);
  victim_stop(&victim, 0);
}

static void a_program_without_cuda(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim_plain", "poll", NULL, 1);
  expect_refusal(victim.pid, victim_file(GOOD), "no CUDA in it", "once it has started CUDA");
  victim_stop(&victim, 0);
}

static void a_static_program(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim_static", "", NULL, 1);
  expect_refusal(victim.pid, victim_file(GOOD), "static program", "-static");
  victim_stop(&victim, 0);
}

/* Whether the child has become the program of that name (15 bytes of it). */
static bool executes(pid_t child, const char *name)
{
  struct proc_status status;
  return proc_status_read("", child, 0, &status) && strcmp(status.name, name) == 0;
}

static void a_32_bit_program(void **state)
{
  (void)state;
  const char *path = victim_file("inject_victim_narrow");
  pid_t child = fork();
  if (child == 0) {
    execl(path, path, (char *)NULL);
    _exit(127);
  }
  for (unsigned i = 0; !executes(child, "inject_victim_n"); ++i) {
    if (waitpid(child, NULL, WNOHANG) == child) {
      print_message("SKIPPED: this kernel runs no 32-bit programs\n");
      skip();
    }
    assert_true(i < PATIENCE_MS);
    sleep_ms(1);
  }
  expect_refusal(child, victim_file(GOOD), "32-bit program");
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

static void a_library_that_is_none(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "poll", NULL, 1);
  expect_refusal(victim.pid, "libinject_good.so", "must be absolute");
  expect_refusal(victim.pid, "/nowhere/libsynccount.so", "/nowhere/libsynccount.so: No such file");
  expect_refusal(victim.pid, victim_file("libcuda.so.1"), "has no InitializeInjection");
  expect_refusal(victim.pid, victim_file("inject_victim"), "has no InitializeInjection");
  expect_refusal(victim.pid, "/etc/passwd", "has no InitializeInjection");
  assert_int_equal(victim.page->constructed, 0);
  victim_stop(&victim, 0);
}

static void need_root(void)
{
  if (geteuid() != 0) {
    print_message("SKIPPED: only root can become others\n");
    skip();
  }
}

/* The refusal's words are checked here, but the attempt is made as user nobody, in a child. */
static void refused_as_nobody(const struct victim *victim, const char *const *words)
{
  const char *library = victim_file(GOOD);
  struct sc_error *err = mmap(NULL, sizeof *err, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(err, MAP_FAILED);
  pid_t child = fork();
  if (child == 0) {
    if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
      _exit(1);
    _exit(inject_library(victim->pid, library, err) == SC_OK);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  expect_words(err, words);
  munmap(err, sizeof *err);
  assert_int_equal(victim->page->constructed, 0);
}

static void another_users_process(void **state)
{
  (void)state;
  need_root();
  struct victim victim = victim_start("victim", "poll", NULL, 1);
  refused_as_nobody(&victim, (const char *const[]){"belongs to user root (0)", "sudo", NULL});
  victim_stop(&victim, 0);
}

/* The folder of the build may be closed to others. */
static bool nobody_can_read(const char *path)
{
  int status;
  pid_t child = fork();
  if (child == 0)
    _exit(setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || access(path, R_OK) != 0);
  return waitpid(child, &status, 0) == child && status == 0;
}

/* One that gave up being root may hold root's secrets: its own user may not look, root may. */
static void a_process_that_closes_itself(void **state)
{
  (void)state;
  need_root();
  struct victim victim = victim_start("victim", "nobody", NULL, 1);
  refused_as_nobody(&victim, (const char *const[]){"does not let itself be attached to", "as root", NULL});
  if (nobody_can_read(victim_file(GOOD)))
    (void)victim_inject(&victim, GOOD);
  else
    expect_refusal(victim.pid, victim_file(GOOD), "could not load", "Permission denied");
  victim_stop(&victim, 0);
}

/* In another root, where the library's path does not exist, or is another file. */
static void a_process_that_sees_other_files(void **state)
{
  (void)state;
  need_root();
  char root[] = "/tmp/inject-root-XXXXXX", folder[4200], copy[4400];
  assert_non_null(mkdtemp(root));
  struct victim victim = victim_start("victim", "chroot", root, 1);
  expect_refusal(victim.pid, victim_file(GOOD), "sees other files", "bind-mount");
  snprintf(folder, sizeof folder, "mkdir -p %s$(dirname %s) && echo other >%s%s", root, victim_file(GOOD), root,
           victim_file(GOOD));
  assert_int_equal(system(folder), 0);
  expect_refusal(victim.pid, victim_file(GOOD), "sees another file", "same version");
  /* a copy of the same file will do; it needs no other library than those loaded */
  snprintf(copy, sizeof copy, "cp %s %s%s", victim_file(GOOD), root, victim_file(GOOD));
  assert_int_equal(system(copy), 0);
  (void)victim_inject(&victim, GOOD);
  victim_stop(&victim, 0);
  snprintf(copy, sizeof copy, "rm -r %s", root);
  assert_int_equal(system(copy), 0);
}

static void a_filtered_process_says_so(void **state)
{
  (void)state;
  struct victim victim = victim_start("victim", "filtered", NULL, 1);
  expect_refusal(victim.pid, victim_file(GOOD), "Operation not permitted", "seccomp filter");
  victim_goes_on(&victim, 0, 1);
  victim_stop(&victim, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_process_that_is_not_there),
      cmocka_unit_test(a_kernel_thread),
      cmocka_unit_test(a_thread_of_a_process),
      cmocka_unit_test(a_stopped_process),
      cmocka_unit_test(a_traced_process_names_its_tracer),
      cmocka_unit_test(a_program_without_cuda),
      cmocka_unit_test(a_static_program),
      cmocka_unit_test(a_32_bit_program),
      cmocka_unit_test(a_library_that_is_none),
      cmocka_unit_test(another_users_process),
      cmocka_unit_test(a_process_that_closes_itself),
      cmocka_unit_test(a_process_that_sees_other_files),
      cmocka_unit_test(a_filtered_process_says_so),
  };
  victim_need_ptrace();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
