/* SPDX-License-Identifier: Apache-2.0
 * The library in real processes: what it needs, what it leaves alone, how it fails, and what survives a sudden end.
 * CUDA and CUPTI are the ones in fake/, which fail as they are told to. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test_support.h"
#include "trace/trace.h"

#define TRACES_MAX 8

struct trace { /* what one file says */
  uint64_t calls, pushes, threads, lost, full, end_ns;
  uint32_t flags, note;
  char note_text[600], meta_command[400], meta_cupti[400], meta_rank[32], range[64];
};

static char folder[64];           /* of the test that runs */
static char out[8192], err[8192]; /* what the program said */
static struct trace traces[TRACES_MAX];
static size_t trace_count;

/* ---- running ----------------------------------------------------------------------------------------- */
static void slurp(const char *name, char *text, size_t size) {
  char path[600];
  (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *file = fopen(path, "re");
  size_t n = file != NULL ? fread(text, 1, size - 1, file) : 0;
  text[n] = '\0';
  if (file != NULL)
    fclose(file);
  (void)unlink(path);
}

static void to_file(const char *name, int fd) {
  char path[200];
  (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, fd) < 0)
    _exit(99);
}

/* Runs argv with our library preloaded; `settings` is "NAME=value" strings. Returns waitpid's status. */
static int run_with(const char *preload, const char *const *settings, const char *const *argv) {
  pid_t child = fork();
  int status = -1;
  assert_true(child >= 0);
  if (child == 0) {
    to_file("out", 1);
    to_file("err", 2);
    if (chdir(folder) != 0)
      _exit(99);
    setenv("LD_PRELOAD", preload, 1);
    setenv("LD_LIBRARY_PATH", FAKE_FOLDER, 1);
    setenv("SYNCCOUNT_OUTPUT", folder, 1);
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i++)
      putenv((char *)(uintptr_t)settings[i]);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(98);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  slurp("out", out, sizeof(out));
  slurp("err", err, sizeof(err));
  return status;
}

#define RUN(settings, ...) run_with(TRACER, settings, (const char *const[]){ VICTIM, __VA_ARGS__, NULL })
#define SETTINGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define assert_exit(status, code)                                                                                      \
  do {                                                                                                                 \
    int status_ = (status);                                                                                            \
    if (!WIFEXITED(status_) || WEXITSTATUS(status_) != (code))                                                         \
      fail_msg("ended with status 0x%x, expected exit %d; it said: %s", status_, code, err);                           \
  } while (0)

/* ---- reading ----------------------------------------------------------------------------------------- */
static void copy_meta(const struct sc_reader *reader, const char *key, char *to, size_t size) {
  const char *value = sc_reader_meta(reader, key);
  (void)snprintf(to, size, "%s", value != NULL ? value : "");
}

static void read_trace(const char *path, struct trace *trace) {
  struct sc_error error = { .status = SC_OK };
  struct sc_reader *reader;
  struct sc_batch batch;
  struct sc_damage damage;
  bool more;
  memset(trace, 0, sizeof(*trace));
  trace->note = UINT32_MAX;
  if (sc_reader_open(path, &reader, &error) != SC_OK)
    fail_msg("%s", error.message);
  while (sc_reader_next(reader, &batch, &more, &error) == SC_OK && more) {
    const struct sc_record_head *head;
    bool calls = false;
    for (size_t offset = 0; (head = sc_batch_next(&batch, &offset)) != NULL;) {
      trace->calls += head->kind == SC_RECORD_CALL;
      calls = calls || head->kind == SC_RECORD_CALL;
      trace->threads += head->kind == SC_RECORD_THREAD;
      if (head->kind == SC_RECORD_RANGE_PUSH) {
        const char *name = sc_reader_string(reader, ((const struct sc_record_range *)(const void *)head)->name, NULL);
        trace->pushes++;
        (void)snprintf(trace->range, sizeof(trace->range), "%s", name != NULL ? name : "?");
      }
      if (head->kind == SC_RECORD_NOTE) {
        const struct sc_record_text *text = (const struct sc_record_text *)(const void *)head;
        trace->note = text->id;
        (void)snprintf(trace->note_text, sizeof(trace->note_text), "%.*s", (int)text->length, text->text);
      }
    }
  }
  if (error.status != SC_OK)
    fail_msg("%s", error.message);
  sc_reader_damage(reader, &damage);
  if (damage.chunks + damage.records + damage.truncated != 0)
    fail_msg("%s is damaged: %s", path, damage.first);
  trace->flags = sc_reader_header(reader)->flags;
  trace->lost = sc_reader_live(reader)->lost_records;
  trace->full = sc_reader_live(reader)->full;
  trace->end_ns = sc_reader_live(reader)->end_mono_ns;
  copy_meta(reader, "command", trace->meta_command, sizeof(trace->meta_command));
  copy_meta(reader, "cupti", trace->meta_cupti, sizeof(trace->meta_cupti));
  copy_meta(reader, "rank", trace->meta_rank, sizeof(trace->meta_rank));
  sc_reader_close(reader);
}

/* Reads, and removes, every trace in the folder; by number of calls, the fewest first. */
static void read_traces(void) {
  DIR *dir = opendir(folder);
  struct dirent *entry;
  trace_count = 0;
  assert_non_null(dir);
  while ((entry = readdir(dir)) != NULL) {
    char path[400];
    if (strstr(entry->d_name, SC_TRACE_SUFFIX) == NULL)
      continue;
    assert_true(trace_count < TRACES_MAX);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
    struct trace trace;
    read_trace(path, &trace);
    size_t at = trace_count++;
    for (; at > 0 && traces[at - 1].calls > trace.calls; at--)
      traces[at] = traces[at - 1];
    traces[at] = trace;
    (void)unlink(path);
  }
  closedir(dir);
}

static struct trace *only_trace(void) {
  read_traces();
  if (trace_count != 1)
    fail_msg("%zu traces were left, not 1; the program said: %s", trace_count, err);
  return &traces[0];
}

static size_t lines_of(const char *text) {
  size_t lines = 0;
  for (; *text != '\0'; text++)
    lines += *text == '\n';
  return lines;
}

static int setup(void **state) {
  (void)state;
  (void)snprintf(folder, sizeof(folder), "/tmp/sc-process-XXXXXX");
  return mkdtemp(folder) != NULL ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  (void)chmod(folder, 0700);
  read_traces();
  return rmdir(folder);
}

/* ---- what is exported, what is needed ---------------------------------------------------------------- */
static void shell(const char *command, char *text, size_t size) {
  FILE *pipe = popen(command, "re");
  assert_non_null(pipe);
  size_t n = fread(text, 1, size - 1, pipe);
  text[n] = '\0';
  assert_int_equal(pclose(pipe), 0);
}

static void test_exactly_three_symbols_are_exported(void **state) {
  (void)state;
  char text[4096];
  shell("nm -D --defined-only '" TRACER_FILE "' | awk '{print $3}' | sort | tr '\\n' ' '", text, sizeof(text));
  assert_string_equal(text, "InitializeInjection InitializeInjectionNvtx InitializeInjectionNvtx2 ");
}

static void test_library_is_light_and_stays(void **state) {
  (void)state;
  char text[8192];
  if (SANITIZED)
    skip();
  shell("readelf -d '" TRACER_FILE "'", text, sizeof(text));
  assert_non_null(strstr(text, "NODELETE"));
  assert_null(strstr(text, "STATIC_TLS")); /* a late dlopen may find none left */
  shell("readelf -d '" TRACER_FILE "' | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\].*/\\1/p' | grep -v -e '^libc\\.so' -e "
        "'^libdl\\.' -e '^libpthread\\.' -e '^ld-linux' || true",
        text, sizeof(text));
  assert_string_equal(text, "");
}

static void test_program_without_cuda_pays_a_constructor(void **state) {
  (void)state;
  char expected[1000];
  assert_exit(RUN(NULL, "none"), 0);
  (void)snprintf(expected, sizeof(expected), "threads 1 cuda " TRACER_FILE " nvtx " TRACER_FILE "\n");
  assert_string_equal(out, expected);
  assert_string_equal(err, "");
  read_traces();
  assert_int_equal(trace_count, 0);
}

static void test_settings_of_other_tools_are_left_alone(void **state) {
  (void)state;
  assert_exit(RUN(SETTINGS("CUDA_INJECTION64_PATH=/other/tool.so", "NVTX_INJECTION64_PATH="), "none"), 0);
  assert_string_equal(out, "threads 1 cuda /other/tool.so nvtx \n");
}

/* ---- a plain run ------------------------------------------------------------------------------------- */
static void test_plain_run(void **state) {
  (void)state;
  assert_exit(RUN(SETTINGS("RANK=3"), "sync", "7"), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->calls, 7);
  assert_int_equal(trace->flags, 0);
  assert_true(trace->end_ns != 0);
  assert_string_equal(trace->meta_command, VICTIM " sync 7");
  assert_string_equal(trace->meta_cupti, FAKE_FOLDER "/libcupti.so.13");
  assert_string_equal(trace->meta_rank, "3");
  assert_string_equal(out, "");
  assert_int_equal(lines_of(err), 1);
  assert_non_null(strstr(err, "synccount report "));
}

static void test_a_file_under_stderrs_number_is_the_programs(void **state) {
  (void)state;
  char path[400];
  struct stat st;
  (void)snprintf(path, sizeof(path), "%s/own", folder);
  assert_exit(RUN(NULL, "own-stderr", "3", path), 0);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_size, 0);
  (void)unlink(path);
  assert_int_equal(only_trace()->calls, 3);
}

static void test_ranges_nested_deeply_before_cuda_are_kept(void **state) {
  (void)state;
  assert_exit(RUN(NULL, "deep-ranges", "200"), 0);
  assert_int_equal(only_trace()->pushes, 200);
  assert_exit(RUN(NULL, "deep-ranges", "1500"), 0); /* deeper ones without their name, so that their pops end them */
  assert_int_equal(only_trace()->pushes, 1500);
}

static void test_quiet_says_nothing(void **state) {
  (void)state;
  assert_exit(RUN(SETTINGS("SYNCCOUNT_QUIET=1"), "sync", "2"), 0);
  assert_string_equal(err, "");
  assert_int_equal(only_trace()->calls, 2);
}

/* A file of the name that the program's own number gives is there before it: the shell that becomes it makes one. */
static void test_traces_are_never_overwritten(void **state) {
  (void)state;
  char host[128], script[400], path[400], text[8] = "";
  gethostname(host, sizeof(host));
  (void)snprintf(script, sizeof(script), "printf mine >'synccount-%s-'$$.sctrace; echo $$; exec '" VICTIM "' sync 1",
                 host);
  assert_exit(run_with(TRACER, NULL, (const char *const[]){ "/bin/sh", "-c", script, NULL }), 0);
  (void)snprintf(path, sizeof(path), "synccount-%s-%ld.sctrace", host, atol(out));
  slurp(path, text, sizeof(text));
  assert_string_equal(text, "mine");
  assert_non_null(strstr(err, "-2.sctrace"));
  assert_int_equal(only_trace()->calls, 1);
}

static void test_bad_values_are_named_and_ignored(void **state) {
  (void)state;
  assert_exit(RUN(SETTINGS("SYNCCOUNT_MAX_TRACE=lots"), "sync", "3"), 0);
  assert_non_null(strstr(err, "SYNCCOUNT_MAX_TRACE=lots"));
  struct trace *trace = only_trace();
  assert_int_equal(trace->calls, 3);
  assert_non_null(strstr(trace->note_text, "SYNCCOUNT_MAX_TRACE=lots"));
}

static void test_range_opened_before_cuda_starts_is_recorded(void **state) {
  (void)state;
  assert_exit(RUN(NULL, "early-range", "2"), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->calls, 2);
  assert_int_equal(trace->pushes, 1);
  assert_string_equal(trace->range, "early");
}

static void test_late_start_is_marked(void **state) {
  (void)state;
  assert_exit(RUN(NULL, "late"), 0);
  assert_int_equal(only_trace()->flags, SC_TRACE_LATE);
}

/* ---- what prevents tracing --------------------------------------------------------------------------- */
static void expect_untraced(const char *const *settings, uint32_t note, const char *in_note, const char *in_err) {
  assert_exit(RUN(settings, "sync", "5"), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->calls, 0);
  assert_int_equal(trace->note, note);
  assert_true(trace->end_ns != 0);
  assert_non_null(strstr(trace->meta_command, "sync 5"));
  if (strstr(trace->note_text, in_note) == NULL)
    fail_msg("the note says: %s", trace->note_text);
  if (strstr(err, in_err) == NULL || lines_of(err) != 1)
    fail_msg("on stderr: %s", err);
}

static void test_taken_slot_is_named(void **state) {
  (void)state;
  expect_untraced(SETTINGS("FAKE_CUPTI_SUBSCRIBE=39", "FAKE_CUPTI_HOLDER=CUPTI for Nosy Profiler"), SC_NOTE_SLOT_TAKEN,
                  "CUPTI for Nosy Profiler", "\"CUPTI for Nosy Profiler\" holds it");
}

static void test_too_old_cupti_is_named(void **state) {
  (void)state;
  expect_untraced(SETTINGS("FAKE_CUPTI_VERSION=12", "SYNCCOUNT_CUPTI=" FAKE_FOLDER "/libcupti.so.13"),
                  SC_NOTE_OLD_CUPTI, "version 12", "is too old");
}

static void test_refusing_driver_is_named(void **state) {
  (void)state;
  expect_untraced(SETTINGS("FAKE_CUPTI_SUBSCRIBE=15"), SC_NOTE_DRIVER, "CUPTI_ERROR_NOT_INITIALIZED (15)",
                  "the driver is older than this CUPTI");
}

static void test_missing_cupti_is_named(void **state) {
  (void)state;
  assert_exit(
      run_with(TRACER ":" HIDE, SETTINGS("SYNCCOUNT_CUPTI=/nowhere/libcupti.so.13"), SETTINGS(VICTIM, "sync", "5")), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->calls, 0);
  assert_int_equal(trace->note, SC_NOTE_NO_CUPTI);
  assert_non_null(strstr(err, "no libcupti.so.13 or .12 was found"));
  assert_non_null(strstr(err, "SYNCCOUNT_CUPTI did not load"));
}

static void test_refused_callbacks_are_noted(void **state) {
  (void)state;
  assert_exit(RUN(SETTINGS("FAKE_CUPTI_REFUSE=1"), "sync", "5"), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->note, SC_NOTE_DRIVER);
  assert_non_null(strstr(trace->note_text, "first: cuStreamSynchronize"));
}

static void test_unwritable_folder_leaves_the_program_alone(void **state) {
  (void)state;
  assert_exit(RUN(SETTINGS("SYNCCOUNT_OUTPUT=/proc/nowhere"), "sync", "5"), 0);
  assert_int_equal(lines_of(err), 1);
  assert_non_null(strstr(err, "/proc/nowhere/"));
  read_traces();
  assert_int_equal(trace_count, 0);
}

/* ---- no room ----------------------------------------------------------------------------------------- */
static void test_file_size_limit_is_no_signal(void **state) {
  (void)state;
  assert_exit(RUN(NULL, "limit", "20000"), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->full, 1);
  assert_true(trace->calls > 1000);
  assert_int_equal(trace->calls + trace->lost, 20000);
  assert_non_null(strstr(err, "records lost"));
  assert_int_equal(lines_of(err), 1);
}

static void test_max_trace_is_kept(void **state) {
  (void)state;
  assert_exit(RUN(SETTINGS("SYNCCOUNT_MAX_TRACE=256K"), "sync", "20000"), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->full, 1);
  assert_true(trace->calls > 1000 && trace->calls < 4096);
  assert_int_equal(trace->calls + trace->lost, 20000);
}

static void test_full_disk_is_no_signal(void **state) {
  (void)state;
  char disk[128], setting[160];
  (void)snprintf(disk, sizeof(disk), "%s/disk", folder);
  assert_int_equal(mkdir(disk, 0700), 0);
  if (mount("tmpfs", disk, "tmpfs", 0, "size=300k") != 0) {
    (void)rmdir(disk);
    skip(); /* only root may mount; the writer's own tests fill a disk in another way */
  }
  (void)snprintf(setting, sizeof(setting), "SYNCCOUNT_OUTPUT=%s", disk);
  int status = RUN(SETTINGS(setting), "sync", "20000");
  char kept[64];
  (void)snprintf(kept, sizeof(kept), "%s", folder);
  (void)snprintf(folder, sizeof(folder), "%.60s", disk);
  read_traces();
  (void)snprintf(folder, sizeof(folder), "%s", kept);
  (void)umount(disk);
  (void)rmdir(disk);
  assert_exit(status, 0);
  assert_int_equal(trace_count, 1);
  assert_int_equal(traces[0].full, 1);
  assert_true(traces[0].calls > 1000);
  assert_int_equal(traces[0].calls + traces[0].lost, 20000);
}

/* ---- sudden ends ------------------------------------------------------------------------------------- */
static void expect_survivors(const char *mode, int signal) {
  int status = RUN(NULL, mode, "2500");
  if (signal != 0 && (!WIFSIGNALED(status) || WTERMSIG(status) != signal))
    fail_msg("%s ended with 0x%x", mode, status);
  struct trace *trace = only_trace();
  assert_int_equal(trace->calls, 2500);
  assert_int_equal(trace->lost, 0);
  assert_int_equal(trace->end_ns, 0);
}

static void test_sigkill_keeps_what_had_returned(void **state) {
  (void)state;
  expect_survivors("kill", SIGKILL);
}

static void test_abort_keeps_what_had_returned(void **state) {
  (void)state;
  expect_survivors("abort", SIGABRT);
}

static void test_underscore_exit_keeps_what_had_returned(void **state) {
  (void)state;
  expect_survivors("_exit", 0);
}

/* ---- fork -------------------------------------------------------------------------------------------- */
static void test_forked_child_is_silent(void **state) {
  (void)state;
  assert_exit(RUN(NULL, "fork", "3"), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->calls, 3);
  assert_int_equal(trace->pushes, 0);
  assert_int_equal(lines_of(err), 1);
}

static void test_child_of_a_raw_fork_is_silent(void **state) {
  (void)state;
  assert_exit(RUN(NULL, "fork-raw", "3"), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->calls, 3);
  assert_int_equal(trace->pushes, 0);
}

static void test_child_that_execs_is_traced_anew(void **state) {
  (void)state;
  assert_exit(RUN(NULL, "fork-exec", "3"), 0);
  read_traces();
  assert_int_equal(trace_count, 2);
  assert_int_equal(traces[0].calls, 3);
  assert_int_equal(traces[1].calls, 4);
}

static void test_child_that_starts_cuda_first_is_traced(void **state) {
  (void)state;
  assert_exit(RUN(NULL, "fork-first", "6"), 0);
  assert_int_equal(only_trace()->calls, 6);
}

/* ---- threads ----------------------------------------------------------------------------------------- */
static void test_64_threads(void **state) {
  (void)state;
  assert_exit(RUN(NULL, "threads", "64", "3000"), 0);
  struct trace *trace = only_trace();
  assert_int_equal(trace->calls, 64 * 3000);
  assert_int_equal(trace->threads, 1 + 64); /* the one that initialised CUDA among them */
  assert_int_equal(trace->lost, 0);
}

/* The file is sealed while threads are in mid-call: read_trace fails on a checksum that does not match. */
static void test_exit_while_threads_run(void **state) {
  (void)state;
  for (int i = 0; i < 10; i++) {
    assert_exit(RUN(NULL, "into-exit", "8"), 0);
    struct trace *trace = only_trace();
    assert_true(trace->calls >= 8); /* each thread has returned from one */
    assert_true(trace->end_ns != 0);
  }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
    T(test_exactly_three_symbols_are_exported),
    T(test_library_is_light_and_stays),
    T(test_program_without_cuda_pays_a_constructor),
    T(test_settings_of_other_tools_are_left_alone),
    T(test_plain_run),
    T(test_quiet_says_nothing),
    T(test_a_file_under_stderrs_number_is_the_programs),
    T(test_ranges_nested_deeply_before_cuda_are_kept),
    T(test_traces_are_never_overwritten),
    T(test_bad_values_are_named_and_ignored),
    T(test_range_opened_before_cuda_starts_is_recorded),
    T(test_late_start_is_marked),
    T(test_taken_slot_is_named),
    T(test_too_old_cupti_is_named),
    T(test_refusing_driver_is_named),
    T(test_missing_cupti_is_named),
    T(test_refused_callbacks_are_noted),
    T(test_unwritable_folder_leaves_the_program_alone),
    T(test_file_size_limit_is_no_signal),
    T(test_max_trace_is_kept),
    T(test_full_disk_is_no_signal),
    T(test_sigkill_keeps_what_had_returned),
    T(test_abort_keeps_what_had_returned),
    T(test_underscore_exit_keeps_what_had_returned),
    T(test_forked_child_is_silent),
    T(test_child_of_a_raw_fork_is_silent),
    T(test_child_that_execs_is_traced_anew),
    T(test_child_that_starts_cuda_first_is_traced),
    T(test_64_threads),
    T(test_exit_while_threads_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
