/* SPDX-License-Identifier: Apache-2.0
 * See attached.h. */
#include "attached.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/proc.h"
#include "test_support.h"
#include "trace/trace.h"

#define STARTED_MAX 32

char attached_folder[64];
static pid_t started[STARTED_MAX];
static size_t started_count;
static int command_number;

void nap(int ms) { nanosleep(&(struct timespec){ ms / 1000, (ms % 1000) * 1000000L }, NULL); }

static void remember(pid_t pid) {
  assert_true(started_count < STARTED_MAX);
  started[started_count++] = pid;
}

static void forget(pid_t pid) {
  for (size_t i = 0; i < started_count; i++)
    if (started[i] == pid)
      started[i] = started[--started_count];
}

int attached_setup(void **state) {
  (void)state;
  (void)snprintf(attached_folder, sizeof(attached_folder), "/tmp/sc-attach-XXXXXX");
  started_count = 0;
  return mkdtemp(attached_folder) != NULL ? 0 : -1;
}

int attached_teardown(void **state) {
  char command[128];
  (void)state;
  for (size_t i = 0; i < started_count; i++) {
    kill(started[i], SIGKILL);
    waitpid(started[i], NULL, 0);
  }
  (void)snprintf(command, sizeof(command), "rm -rf '%s'", attached_folder);
  return system(command);
}

/* ---- programs ---------------------------------------------------------------------------------------- */
static void set_surroundings(const char *const *settings) {
  setenv("TMPDIR", attached_folder, 1);
  unsetenv("XDG_RUNTIME_DIR");
  unsetenv("LD_PRELOAD");
  unsetenv("CUDA_INJECTION64_PATH");
  unsetenv("NVTX_INJECTION64_PATH");
  unsetenv("SYNCCOUNT_DORMANT");
  setenv("SYNCCOUNT_OUTPUT", attached_folder, 1);
  if (SANITIZED)
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
  for (size_t i = 0; settings != NULL && settings[i] != NULL; i++)
    putenv((char *)(uintptr_t)settings[i]);
}

void program_start(struct program *program, const char *const *argv, const char *const *settings) {
  int in[2], out[2];
  *program = (struct program){ .pid = -1 };
  assert_int_equal(pipe2(in, O_CLOEXEC), 0);
  assert_int_equal(pipe2(out, O_CLOEXEC), 0);
  program->pid = fork();
  assert_true(program->pid >= 0);
  if (program->pid == 0) {
    setenv("LD_LIBRARY_PATH", SIMCUDA_FOLDER, 1);
    set_surroundings(settings);
    if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0)
      _exit(99);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(98);
  }
  close(in[0]);
  close(out[1]);
  program->in = in[1];
  program->out = out[0];
  remember(program->pid);
}

const char *program_line(struct program *program) {
  static char line[4096];
  for (;;) {
    char *end = memchr(program->rest, '\n', program->rest_length);
    if (end != NULL) {
      size_t length = (size_t)(end - program->rest);
      memcpy(line, program->rest, length);
      line[length] = '\0';
      program->rest_length -= length + 1;
      memmove(program->rest, end + 1, program->rest_length);
      return line;
    }
    struct pollfd in = { .fd = program->out, .events = POLLIN };
    if (poll(&in, 1, PATIENCE_MS) <= 0)
      fail_msg("the program says nothing");
    ssize_t n = read(program->out, program->rest + program->rest_length, sizeof(program->rest) - program->rest_length);
    if (n <= 0)
      fail_msg("the program ended");
    program->rest_length += (size_t)n;
  }
}

const char *program_ask(struct program *program, const char *format, ...) {
  char line[4200];
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(line, sizeof(line) - 1, format, arguments);
  va_end(arguments);
  line[n++] = '\n';
  assert_int_equal(write(program->in, line, (size_t)n), n);
  return program_line(program);
}

const char *program_socket(const struct program *program) {
  static char path[200];
  struct stat info;
  (void)snprintf(path, sizeof(path), "%s/synccount-%ld/%ld.socket", attached_folder, (long)geteuid(),
                 (long)program->pid);
  wait_until(lstat(path, &info) == 0);
  return path;
}

static bool is_program(pid_t pid, const char *name) {
  struct proc_status status;
  return proc_status_read("", pid, 0, &status) && strcmp(status.name, name) == 0;
}

void wait_for_program(pid_t pid, const char *name) { wait_until(is_program(pid, name)); }

void program_start_dormant(struct program *program, const char *const *more) {
  static const char preload[] = "LD_PRELOAD=" PRELOAD;
  const char *settings[16] = { preload, "SYNCCOUNT_DORMANT=1" };
  for (size_t i = 0; more != NULL && more[i] != NULL; i++)
    settings[2 + i] = more[i];
  program_start(program, LIST(LOOPING, "4", "early"), settings);
  assert_string_equal(program_line(program), "ready");
  (void)program_socket(program);
}

int program_wait(struct program *program) {
  int status = -1;
  for (int waited = 0; waitpid(program->pid, &status, WNOHANG) == 0; waited += 5) {
    if (waited > PATIENCE_MS)
      fail_msg("the program does not end");
    nap(5);
  }
  forget(program->pid);
  close(program->in);
  close(program->out);
  return status;
}

void program_stop(const struct program *program) {
  int status;
  assert_int_equal(kill(program->pid, SIGSTOP), 0);
  assert_int_equal(waitpid(program->pid, &status, WUNTRACED), program->pid);
  assert_true(WIFSTOPPED(status));
}

void program_continue(const struct program *program) { assert_int_equal(kill(program->pid, SIGCONT), 0); }

void program_end(struct program *program) {
  assert_string_equal(program_ask(program, "end"), "ended");
  assert_int_equal(program_wait(program), 0);
}

/* ---- commands ---------------------------------------------------------------------------------------- */
static void output_of(const struct command *command, const char *which, char path[static 200]) {
  (void)snprintf(path, 200, "%s/command-%d.%s", attached_folder, command->number, which);
}

static void slurp(const struct command *command, const char *which, char *text, size_t size) {
  char path[200];
  output_of(command, which, path);
  FILE *file = fopen(path, "re");
  size_t n = file != NULL ? fread(text, 1, size - 1, file) : 0;
  text[n] = '\0';
  if (file != NULL)
    fclose(file);
}

static void to_file(const struct command *command, const char *which, int fd) {
  char path[200];
  output_of(command, which, path);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, fd) < 0)
    _exit(99);
}

void command_start(struct command *command, pid_t pid, const char *keep, const char *const *arguments) {
  const char *argv[24] = { SYNCCOUNT, "attach" };
  char number[24], folder[200];
  size_t count = 2;
  *command = (struct command){ .number = ++command_number };
  (void)snprintf(number, sizeof(number), "%ld", (long)pid);
  (void)snprintf(folder, sizeof(folder), "%s/%s", attached_folder, keep != NULL ? keep : "");
  if (keep != NULL) {
    argv[count++] = "--keep-traces";
    argv[count++] = folder;
  }
  for (size_t i = 0; arguments != NULL && arguments[i] != NULL; i++)
    argv[count++] = arguments[i];
  argv[count++] = number;
  command->pid = fork();
  assert_true(command->pid >= 0);
  if (command->pid == 0) {
    set_surroundings(NULL);
    to_file(command, "out", 1);
    to_file(command, "err", 2);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(98);
  }
  remember(command->pid);
}

void command_counts(struct command *command) {
  for (int waited = 0; waited < PATIENCE_MS; waited += 5) {
    slurp(command, "err", command->err, sizeof(command->err));
    if (strstr(command->err, "counting in process") != NULL)
      return;
    if (waitpid(command->pid, NULL, WNOHANG) != 0) {
      forget(command->pid);
      fail_msg("synccount attach does not count: %s", command->err);
    }
    nap(5);
  }
  fail_msg("synccount attach does not say that it counts: %s", command->err);
}

int command_wait(struct command *command) {
  int status = -1;
  for (int waited = 0; waitpid(command->pid, &status, WNOHANG) == 0; waited += 5) {
    if (waited > PATIENCE_MS)
      fail_msg("synccount attach does not end");
    nap(5);
  }
  forget(command->pid);
  slurp(command, "out", command->out, sizeof(command->out));
  slurp(command, "err", command->err, sizeof(command->err));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void command_end(struct command *command) {
  kill(command->pid, SIGINT);
  int status = command_wait(command);
  if (status != 0)
    fail_msg("synccount attach ended with %d: %s", status, command->err);
}

void command_expect(pid_t pid, const char *const *arguments, int status, const char *text) {
  struct command command;
  command_start(&command, pid, NULL, arguments);
  int got = command_wait(&command);
  if (got != status || strstr(command.err, text) == NULL)
    fail_msg("synccount attach ended with %d, not %d, and said: %s\n... where this was expected: %s", got, status,
             command.err, text);
}

/* ---- traces ------------------------------------------------------------------------------------------ */
static void find_trace(const char *keep, char path[static 400]) {
  char folder[200];
  struct dirent *entry;
  size_t found = 0;
  (void)snprintf(folder, sizeof(folder), "%s/%s", attached_folder, keep);
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  while ((entry = readdir(dir)) != NULL)
    if (strstr(entry->d_name, SC_TRACE_SUFFIX) != NULL) {
      (void)snprintf(path, 400, "%s/%.150s", folder, entry->d_name);
      found++;
    }
  closedir(dir);
  assert_int_equal(found, 1);
}

static struct sc_reader *open_trace(const char *keep) {
  char path[400];
  struct sc_error err = { .status = SC_OK };
  struct sc_reader *reader = NULL;
  find_trace(keep, path);
  if (sc_reader_open(path, &reader, &err) != SC_OK)
    fail_msg("%s", err.message);
  return reader;
}

struct sc_findings *trace_read(const char *keep) {
  struct sc_error err = { .status = SC_OK };
  struct sc_damage damage;
  struct sc_reader *reader = open_trace(keep);
  struct sc_findings *findings = sc_findings_new();
  assert_non_null(findings);
  if (sc_analysis_read(reader, NULL, findings, &err) != SC_OK)
    fail_msg("%s", err.message);
  sc_reader_damage(reader, &damage);
  if (damage.chunks + damage.records + damage.truncated != 0)
    fail_msg("the trace is damaged: %s", damage.first);
  sc_reader_close(reader);
  assert_int_equal(findings->process_count, 1);
  assert_int_equal(findings->lost_records, 0);
  return findings;
}

const struct sc_range_findings *trace_range(const struct sc_findings *findings, const char *name) {
  const struct sc_process *process = &findings->processes[0];
  const struct sc_range_findings *found = NULL;
  for (size_t i = 0; i < process->range_count; i++) {
    const char *path = process->ranges[i].path, *slash = strrchr(path, '/');
    if (strcmp(slash != NULL ? slash + 1 : path, name) != 0)
      continue;
    if (found != NULL)
      fail_msg("the range %s is there twice: %s (%llu syncs) and %s (%llu)", name, found->path,
               (unsigned long long)found->total.syncs, path, (unsigned long long)process->ranges[i].total.syncs);
    found = &process->ranges[i];
  }
  return found;
}

uint64_t trace_driver_calls(const char *keep) {
  struct sc_reader *reader = open_trace(keep);
  struct sc_batch batch;
  struct sc_error err;
  bool more = true;
  uint64_t count = 0;
  while (more) {
    const struct sc_record_head *head;
    if (sc_reader_next(reader, &batch, &more, &err) != SC_OK)
      fail_msg("%s", err.message);
    for (size_t offset = 0; more && (head = sc_batch_next(&batch, &offset)) != NULL;) {
      if (head->kind != SC_RECORD_CALL)
        continue;
      const struct sc_api *api = sc_reader_api(reader, SC_CALL_API((const struct sc_record_call *)(const void *)head));
      count += api != NULL && strncmp(api->name, "cuda", 4) != 0;
    }
  }
  sc_reader_close(reader);
  return count;
}

bool trace_is_closed(const char *keep) {
  struct sc_reader *reader = open_trace(keep);
  bool closed = sc_reader_live(reader)->end_mono_ns != 0;
  sc_reader_close(reader);
  return closed;
}

uint32_t trace_flags(const char *keep) {
  struct sc_reader *reader = open_trace(keep);
  uint32_t flags = sc_reader_header(reader)->flags;
  sc_reader_close(reader);
  return flags;
}

char *trace_meta(const char *keep, const char *key) {
  struct sc_reader *reader = open_trace(keep);
  struct sc_batch batch;
  struct sc_error err;
  bool more = true;
  while (more && sc_reader_next(reader, &batch, &more, &err) == SC_OK)
    continue;
  char *value = sc_strdup(sc_reader_meta(reader, key));
  sc_reader_close(reader);
  return value;
}

/* ---- /proc ------------------------------------------------------------------------------------------- */
static int count_entries(pid_t pid, const char *what, const char *link) {
  char path[64];
  int count = 0;
  struct dirent *entry;
  (void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, what);
  DIR *dir = opendir(path);
  if (dir == NULL)
    return -1;
  while ((entry = readdir(dir)) != NULL) {
    char target[64] = "";
    if (entry->d_name[0] == '.')
      continue;
    if (link != NULL && readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) < 0)
      continue;
    count += link == NULL || strncmp(target, link, strlen(link)) == 0;
  }
  closedir(dir);
  return count;
}

int count_fds(pid_t pid) { return count_entries(pid, "fd", NULL); }
int count_sockets(pid_t pid) { return count_entries(pid, "fd", "socket:"); }
int count_threads(pid_t pid) { return count_entries(pid, "task", NULL); }

int count_mappings(pid_t pid) {
  char path[64], line[4400];
  int count = 0;
  (void)snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
  FILE *file = fopen(path, "re");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL)
    count++;
  if (file != NULL)
    fclose(file);
  return count;
}
