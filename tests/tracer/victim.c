/* SPDX-License-Identifier: Apache-2.0
 * The program that is traced: makes a known number of calls and ends in many ways. */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#define STREAM ((CUstream)(uintptr_t)0x100)

static void sync_times(long count) {
  for (long i = 0; i < count; i++)
    if (cuStreamSynchronize(STREAM) != CUDA_SUCCESS)
      _exit(10);
}

static int threads_now(void) {
  char line[256];
  int threads = -1;
  FILE *file = fopen("/proc/self/status", "re");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL)
    if (sscanf(line, "Threads: %d", &threads) == 1)
      break;
  if (file != NULL)
    fclose(file);
  return threads;
}

static void *thread_syncs(void *argument) {
  sync_times((long)(intptr_t)argument);
  return NULL;
}

static atomic_long under_way;

static void *endless(void *argument) {
  (void)argument;
  sync_times(1);
  for (atomic_fetch_add(&under_way, 1);;)
    sync_times(1);
  return NULL;
}

static int run_threads(long count, long syncs) {
  pthread_t threads[256];
  for (long i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, thread_syncs, (void *)(intptr_t)syncs) != 0)
      return 11;
  for (long i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  return 0;
}

/* Leaves main while other threads are in mid-call. */
static int run_into_exit(long count) {
  pthread_t thread;
  for (long i = 0; i < count; i++)
    if (pthread_create(&thread, NULL, endless, NULL) != 0)
      return 11;
  while (atomic_load(&under_way) < count)
    usleep(1000);
  return 0;
}

static int run_fork(long syncs, char *const exec_argv[], int raw) {
  int status = 0;
  pid_t child = raw ? (pid_t)syscall(SYS_fork) : fork();
  if (child == 0) {
    sync_times(syncs);
    nvtxRangePushA("in the child");
    nvtxRangePop();
    if (exec_argv != NULL)
      execv("/proc/self/exe", exec_argv);
    exit(0);
  }
  return child < 0 || waitpid(child, &status, 0) != child ? 12
         : WIFEXITED(status)                              ? WEXITSTATUS(status)
                                                          : 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  long count = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
  struct rlimit limit = { 200000, 200000 };
  if (strcmp(mode, "none") == 0) { /* no CUDA at all: says what it sees */
    printf("threads %d cuda %s nvtx %s\n", threads_now(),
           getenv("CUDA_INJECTION64_PATH") != NULL ? getenv("CUDA_INJECTION64_PATH") : "-",
           getenv("NVTX_INJECTION64_PATH") != NULL ? getenv("NVTX_INJECTION64_PATH") : "-");
    return 0;
  }
  if (strcmp(mode, "fork-first") == 0) { /* CUDA starts in the child only */
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
      if (cuInit(0) != CUDA_SUCCESS)
        _exit(13);
      sync_times(count);
      exit(0);
    }
    return waitpid(child, &status, 0) == child ? status : 12;
  }
  if (strcmp(mode, "late") == 0) { /* the tracer is loaded by hand, after CUDA has started */
    unsetenv("CUDA_INJECTION64_PATH");
    if (cuInit(0) != CUDA_SUCCESS)
      return 13;
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *tracer = path != NULL && setenv("CUDA_INJECTION64_PATH", path, 1) == 0 ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialise)(void) = NULL;
    if (tracer != NULL)
      *(void **)&initialise = dlsym(tracer, "InitializeInjection");
    return initialise != NULL && initialise() == 1 && initialise() == 1 ? 0 : 16; /* the second time does nothing */
  }
  if (strcmp(mode, "early-range") == 0)
    nvtxRangePushA("early");
  if (strcmp(mode, "deep-ranges") == 0) /* as many as it makes synchronises; popped after them */
    for (long i = 0; i < count; i++)
      nvtxRangePushA("deep");
  if (strcmp(mode, "own-stderr") == 0 && argc > 3) { /* a file of its own under stderr's number */
    (void)close(STDERR_FILENO);
    if (open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0600) != STDERR_FILENO)
      return 17;
  }
  if (strcmp(mode, "limit") == 0 && setrlimit(RLIMIT_FSIZE, &limit) != 0)
    return 14;
  errno = 4711;
  if (cuInit(0) != CUDA_SUCCESS)
    return 13;
  if (errno != 4711)
    return 15;
  if (strcmp(mode, "threads") == 0)
    return run_threads(count, argc > 3 ? strtol(argv[3], NULL, 10) : 1);
  if (strcmp(mode, "into-exit") == 0)
    return run_into_exit(count);
  sync_times(count);
  if (strcmp(mode, "kill") == 0)
    kill(getpid(), SIGKILL);
  if (strcmp(mode, "abort") == 0)
    abort();
  if (strcmp(mode, "_exit") == 0)
    _exit(0);
  if (strcmp(mode, "fork") == 0 || strcmp(mode, "fork-raw") == 0)
    return run_fork(5, NULL, mode[4] != '\0');
  if (strcmp(mode, "fork-exec") == 0)
    return run_fork(0, (char *const[]){ argv[0], (char[]){ "sync" }, (char[]){ "4" }, NULL }, 0);
  return 0;
}
