/* SPDX-License-Identifier: Apache-2.0
 * synccount doctor: what would work here and what not, each with a remedy. What can be tried is tried, in a child: a
 * guess from files would be wrong where it matters. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/folder.h"
#include "cli/place.h"
#include "host/host.h"

#define TRIAL_SECONDS 60
#define ENOUGH_DISK (64u << 20)

static const struct cli_option options[] = {
    {CLI_HELP, 'h', "help", NULL, "print this text"},
    {.id = CLI_END},
};

enum state { GOOD, NOTE, BAD };
struct doctor {
  bool bad; /* something prevents measuring */
  struct place place;
  struct folder folder;
  struct sc_host *host;
};

/* remedy may be NULL. */
static void SC_PRINTF(4, 5) say(struct doctor *doctor, enum state state, const char *remedy, const char *format, ...)
{
  static const char *const words[] = {"ok", "note", "BAD"};
  va_list args;
  doctor->bad |= state == BAD;
  printf("  %-6s", words[state]);
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  printf("\n");
  if (remedy)
    printf("        -> %s\n", remedy);
}

/* ---- the device and its driver ------------------------------------------------------------------ */

static void look_at_device(struct doctor *doctor)
{
  const struct sc_host *host = doctor->host;
  char found[SC_HOST_FOUND];
  if (sc_host_has_nvidia(place_sysroot(), found))
    say(doctor, GOOD, NULL, "NVIDIA device: %s", found);
  else
    say(doctor, NOTE, "the main command counts on the simulated device; programs of your own need a GPU",
        "no NVIDIA device on this machine");
  if (host->driver)
    say(doctor, GOOD, NULL, "driver %s%s%s%s", host->driver, host->driver_kind ? " (" : "",
        host->driver_kind ? host->driver_kind : "", host->driver_kind ? ")" : "");
  if (host->mps == SC_HOST_YES)
    say(doctor, NOTE, "times are those of a shared GPU", "MPS: a control daemon is running");
}

/* ---- a process traced for the trial --------------------------------------------------------------- */

/* What a CUDA program does first, with the tracer where the driver looks for it. Leaves through exit, so that the
 * tracer closes its file. 2: no libcuda, 3: cuInit refused. */
static _Noreturn void be_a_program(const char *tracer, const char *folder)
{
  int null = open("/dev/null", O_RDWR);
  if (null >= 0) {
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
  }
  alarm(TRIAL_SECONDS);
  setenv("CUDA_INJECTION64_PATH", tracer, 1);
  setenv("SYNCCOUNT_OUTPUT", folder, 1);
  unsetenv("SYNCCOUNT_FOLLOW");
  unsetenv("SYNCCOUNT_DORMANT");
  unsetenv("CUDA_LAUNCH_BLOCKING"); /* told apart from what the trial says */
  void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = NULL;
  if (libcuda)
    *(void **)&init = dlsym(libcuda, "cuInit");
  if (!init)
    exit(2);
  exit(init(0) == 0 ? 0 : 3);
}

static enum sc_status read_trial(struct doctor *doctor, struct sc_error *err)
{
  char **names;
  size_t count;
  enum sc_status status = folder_names(doctor->folder.path, "*" SC_TRACE_SUFFIX, &names, &count, err);
  if (status != SC_OK)
    return status;
  char *path = count ? folder_file(&doctor->folder, names[0]) : NULL;
  struct sc_findings *findings = sc_findings_new();
  struct sc_reader *reader = NULL;
  folder_free_names(names, count);
  if (!count)
    say(doctor, BAD, "is the driver older than CUDA 12.0?", "tracing: the driver did not load the tracer");
  else if (!path || !findings)
    status = sc_error_no_memory(err);
  else
    status = sc_reader_open(path, &reader, err);
  if (reader && status == SC_OK)
    status = sc_analysis_read(reader, NULL, findings, err);
  if (reader && status == SC_OK && !findings->processes[0].unmeasured) {
    say(doctor, GOOD, NULL, "tracing works: CUPTI %s, %s", sc_reader_meta(reader, "cupti_version"),
        sc_reader_meta(reader, "cupti"));
    if (findings->simulated)
      say(doctor, NOTE, "leave build/lib/simcuda out of LD_LIBRARY_PATH", "SIMULATED: libcuda.so.1 is the stand-in");
  }
  for (size_t i = 0; reader && status == SC_OK && i < findings->warning_count; ++i) {
    const char *text = strstr(findings->warnings[i], ": "); /* behind "process N" */
    say(doctor, findings->processes[0].unmeasured ? BAD : NOTE, NULL, "tracing: %s",
        text ? text + 2 : findings->warnings[i]);
  }
  sc_reader_close(reader);
  sc_findings_free(findings);
  free(path);
  return status;
}

static enum sc_status try_tracing(struct doctor *doctor, struct sc_error *err)
{
  char *tracer = realpath(doctor->place.tracer, NULL);
  enum sc_status status =
      tracer ? folder_open(NULL, &doctor->folder, err)
             : sc_error_set(err, SC_ERR_SYSTEM, "cannot use %s: %s", doctor->place.tracer, strerror(errno));
  int end = 0;
  if (status == SC_OK) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
      be_a_program(tracer, doctor->folder.path);
    while (pid > 0 && waitpid(pid, &end, 0) < 0 && errno == EINTR)
      ;
    if (pid < 0)
      status = sc_error_set(err, SC_ERR_SYSTEM, "cannot fork: %s", strerror(errno));
  }
  free(tracer);
  if (status != SC_OK)
    return status;
  if (WIFEXITED(end) && WEXITSTATUS(end) == 2)
    say(doctor, BAD, "install the NVIDIA driver, or give the container its libraries (--gpus all)",
        "libcuda.so.1, the driver's library, cannot be loaded");
  else if (WIFEXITED(end) && WEXITSTATUS(end) == 3)
    say(doctor, BAD, "run 'synccount --device cuda': it tells the driver's own error; nvidia-smi must work",
        "cuInit fails");
  else if (!WIFEXITED(end))
    say(doctor, BAD, "nvidia-smi must work; see the kernel's log (dmesg)", "cuInit %s",
        WIFSIGNALED(end) && WTERMSIG(end) == SIGALRM ? "does not return" : "kills the process");
  else
    status = read_trial(doctor, err);
  folder_close(&doctor->folder);
  return status;
}

#define LISTED_MAX 16

/* One library has several names in a toolkit: each is listed once. */
static void list_one(struct doctor *doctor, const char *path, char **listed, size_t *count)
{
  char *real = realpath(path, NULL);
  for (size_t i = 0; real && i < *count; ++i) {
    if (strcmp(listed[i], real) == 0) {
      free(real);
      return;
    }
  }
  if (!real || *count == LISTED_MAX) {
    free(real);
    return;
  }
  listed[(*count)++] = real;
  say(doctor, GOOD, NULL, "libcupti: %s", path);
}

/* In the tracer's order: SYNCCOUNT_CUPTI, the loader's path, toolkits. Wheels are found beside what a process loads. */
static void list_cupti(struct doctor *doctor)
{
  static const char *const names[] = {"libcupti.so.13", "libcupti.so.12"};
  static const char *const below[] = {"lib64", "extras/CUPTI/lib64", "targets/x86_64-linux/lib"};
  const char *roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"),  "/usr/local/cuda",
                         "/opt/cuda",         "/usr/local/cuda-13", "/usr/local/cuda-12"};
  const char *wanted = getenv("SYNCCOUNT_CUPTI");
  char *listed[LISTED_MAX];
  size_t count = 0;
  if (wanted && *wanted)
    say(doctor, access(wanted, R_OK) == 0 ? GOOD : BAD, NULL, "SYNCCOUNT_CUPTI=%s%s", wanted,
        access(wanted, R_OK) == 0 ? "" : " cannot be read");
  for (size_t i = 0; i < SC_COUNTOF(roots) * SC_COUNTOF(below) * SC_COUNTOF(names); ++i) {
    const char *root = roots[i / SC_COUNTOF(names) / SC_COUNTOF(below)];
    char path[PATH_MAX];
    if (!root || !*root)
      continue;
    snprintf(path, sizeof path, "%s%s/%s/%s", place_sysroot(), root, below[i / SC_COUNTOF(names) % SC_COUNTOF(below)],
             names[i % SC_COUNTOF(names)]);
    if (access(path, R_OK) == 0)
      list_one(doctor, path, listed, &count);
  }
  if (!count)
    say(doctor, NOTE,
        "fine for Python programs whose wheels bring one; else install cuda-cupti, or set SYNCCOUNT_CUPTI",
        "libcupti: none in the toolkit's folders");
  while (count)
    free(listed[--count]);
}

/* ---- other tools, permissions, surroundings ------------------------------------------------------- */

static void look_at_environment(struct doctor *doctor)
{
  const char *cuda = getenv("CUDA_INJECTION64_PATH"), *nvtx = getenv("NVTX_INJECTION64_PATH");
  const char *preload = getenv("LD_PRELOAD"), *blocking = getenv("CUDA_LAUNCH_BLOCKING");
  if (cuda && !strstr(cuda, "libsynccount.so"))
    say(doctor, BAD, "unset it: CUPTI has room for one tool in a process", "CUDA_INJECTION64_PATH=%s", cuda);
  if (nvtx && !strstr(nvtx, "libsynccount.so"))
    say(doctor, NOTE, "unset it to see ranges", "NVTX_INJECTION64_PATH=%s: that tool gets the ranges", nvtx);
  if (preload && *preload)
    say(doctor, NOTE, NULL, "LD_PRELOAD=%s: stays in front of the tracer", preload);
  if (blocking && *blocking && strcmp(blocking, "0") != 0)
    say(doctor, NOTE, "unset it: no time is typical with it", "CUDA_LAUNCH_BLOCKING=%s: every launch waits", blocking);
  if (!cuda && !nvtx)
    say(doctor, GOOD, NULL, "no other tool is injected into CUDA or NVTX");
}

static void look_at_ptrace(struct doctor *doctor)
{
  const int scope = place_yama_scope();
  if (scope < 0)
    say(doctor, GOOD, NULL, "ptrace: no restriction by Yama");
  else if (scope == 0)
    say(doctor, GOOD, NULL, "ptrace_scope 0: own processes may be attached to");
  else
    say(doctor, NOTE,
        "only loading the tracer into a running process needs it: as root, or sysctl kernel.yama.ptrace_scope=0",
        "ptrace_scope %d", scope);
}

/* The first GPU's instances are files of the driver. */
static bool has_mig_instances(void)
{
  char **names, *folder = sc_asprintf("%s/proc/driver/nvidia/capabilities/gpu0/mig", place_sysroot());
  size_t count = 0;
  if (folder && folder_names(folder, "gi*", &names, &count, NULL) == SC_OK)
    folder_free_names(names, count);
  free(folder);
  return count > 0;
}

static void look_around(struct doctor *doctor)
{
  const struct sc_host *host = doctor->host;
  const char *parent = getenv("TMPDIR");
  struct statvfs disk;
  parent = parent && *parent ? parent : "/tmp";
  if (host->wsl == SC_HOST_YES)
    say(doctor, NOTE, "counts are the same; each wait costs a multiple", "WSL: submissions cross the hypervisor");
  if (host->container)
    say(doctor, NOTE, "what a program starts in another container is not traced", "container: %s", host->container);
  if (has_mig_instances())
    say(doctor, NOTE, NULL, "MIG: a GPU is cut up; times are those of a part");
  if (host->cpu_quota_set == SC_HOST_YES)
    say(doctor, NOTE, "a throttled process waits longer", "CPU quota: %.4g CPUs", host->cpu_quota);
  if (access(parent, W_OK | X_OK) != 0)
    say(doctor, BAD, "point TMPDIR at a folder that can be written", "%s cannot be written", parent);
  else if (statvfs(parent, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < ENOUGH_DISK)
    say(doctor, NOTE, "traces grow by 64 bytes a call: point TMPDIR elsewhere, or give --keep-traces",
        "%s has less than 64 MiB left", parent);
  else
    say(doctor, GOOD, NULL, "traces can be written to %s", parent);
}

static void look_at_python(struct doctor *doctor)
{
  char *argv[] = {(char *)"/usr/bin/env", (char *)"python3", (char *)"--version", NULL};
  const struct child child = {.argv = argv};
  struct child_result result = {0};
  if (child_run(&child, &result, NULL) != SC_OK || result.status != 0 || !result.lines.data) {
    say(doctor, NOTE, NULL, "no python3 in PATH");
  } else {
    result.lines.data[strcspn(result.lines.data, "\n")] = '\0';
    say(doctor, GOOD, NULL, "%s", result.lines.data);
  }
  sc_buf_free(&result.lines);
}

/* ---- the command -------------------------------------------------------------------------------- */

static enum sc_status examine(struct doctor *doctor, struct sc_error *err)
{
  enum sc_status status = place_find(&doctor->place, err);
  if (status == SC_OK)
    status = sc_host_read(place_sysroot(), &doctor->host, err);
  if (status != SC_OK)
    return status;
  printf("synccount " SC_VERSION ", kernel %s\n", doctor->host->kernel ? doctor->host->kernel : "unknown");
  look_at_device(doctor);
  status = try_tracing(doctor, err);
  if (status != SC_OK)
    return status;
  list_cupti(doctor);
  look_at_environment(doctor);
  look_at_ptrace(doctor);
  look_around(doctor);
  look_at_python(doctor);
  return SC_OK;
}

static bool no_options(void *context, enum cli_option_id id, const char *argument, struct sc_error *err)
{
  (void)context, (void)id, (void)argument, (void)err;
  return false; /* --help is served before */
}

static int run(int argc, char **argv)
{
  struct doctor doctor = {0};
  struct sc_error err = {0};
  int first;
  bool done;
  int result = cli_parse(&cli_doctor, argc, argv, no_options, NULL, &first, &done);
  if (done)
    return result;
  if (first < argc)
    return cli_usage(&cli_doctor, "'%s' is too much: this command takes options only", argv[first]);
  enum sc_status status = examine(&doctor, &err);
  folder_close(&doctor.folder);
  sc_host_free(doctor.host);
  place_free(&doctor.place);
  if (status != SC_OK)
    return cli_fail(&err);
  return doctor.bad ? CLI_UNMEASURED : CLI_OK;
}

const struct cli_command cli_doctor = {
    .name = "doctor",
    .summary = "Tell what would work on this machine and what not, with remedies.",
    .description = "Loads the driver and the tracer in a process made for it, and looks at libcupti, other\n"
                   "tools, permissions and surroundings. Exits with 3 if something prevents measuring.",
    .options = options,
    .run = run,
};
