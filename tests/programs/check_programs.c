/* SPDX-License-Identifier: Apache-2.0
 * check_programs CHECK...: runs test programs under the tracer and compares its counts with what each program knows it
 * did. One line a check, PASS, FAIL or SKIP. Exit status 0, 1 if any failed, 2 on bad usage, 77 if all were skipped. */
#include "checker.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_runtime(struct checker *c) { check_sequences(c, "runtime"); }
static void check_per_thread(struct checker *c) { check_sequences(c, "per-thread"); }
static void check_static(struct checker *c) { check_sequences(c, "static"); }
static void check_driver(struct checker *c) { check_sequences(c, "driver"); }

static const struct {
  const char *name;
  void (*function)(struct checker *c);
  const char *help;
} checks[] = {
  { "runtime", check_runtime, "the table of sequences, runtime API" },
  { "per-thread", check_per_thread, "the same, built with per-thread default streams" },
  { "static", check_static, "the same, with the static runtime library" },
  { "driver", check_driver, "the table of sequences, driver API" },
  { "threads", check_threads, "64 threads calling at once" },
  { "fork", check_fork, "fork with and without exec, before and after CUDA is used" },
  { "end", check_killed, "SIGKILL, abort, SIGSEGV and _exit in mid-run" },
  { "late", check_late, "the tracer loaded by hand into a program that has used CUDA" },
  { "untouched", check_untouched, "a program that never uses CUDA" },
};

static int usage(FILE *to, int status) {
  fprintf(
      to,
      "usage: check_programs [--tracer LIBRARY] [--programs FOLDER] [--may-skip ROW,...] [--keep] CHECK...\nchecks:\n");
  for (size_t i = 0; i < SC_COUNTOF(checks); i++)
    fprintf(to, "  %-12s %s\n", checks[i].name, checks[i].help);
  return status;
}

/* The folder of this program, where the other programs lie too. */
static bool own_folder(char *folder, size_t size) {
  ssize_t n = readlink("/proc/self/exe", folder, size - 1);
  if (n <= 0)
    return false;
  folder[n] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash != NULL)
    *slash = '\0';
  return slash != NULL;
}

int main(int argc, char **argv) {
  static const struct option options[] = {
    { "tracer", required_argument, NULL, 't' },   { "programs", required_argument, NULL, 'p' },
    { "may-skip", required_argument, NULL, 's' }, { "keep", no_argument, NULL, 'k' },
    { "help", no_argument, NULL, 'h' },           { 0 },
  };
  char folder[PATH_MAX / 2], tracer[PATH_MAX];
  struct checker c = { .may_skip = "*" };
  if (!own_folder(folder, sizeof folder)) {
    fprintf(stderr, "check_programs: cannot tell where this program lies\n");
    return 2;
  }
  snprintf(tracer, sizeof tracer, "%s/../lib/libsynccount.so", folder);
  c.programs = folder;
  c.tracer = tracer;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
    switch (option) {
    case 't': c.tracer = optarg; break;
    case 'p': c.programs = optarg; break;
    case 's': c.may_skip = optarg; break;
    case 'k': c.keep = true; break;
    case 'h': return usage(stdout, 0);
    default: return usage(stderr, 2);
    }
  if (optind == argc)
    return usage(stderr, 2);
  if (access(c.tracer, R_OK) != 0) {
    fprintf(stderr, "check_programs: there is no tracer at %s: build it, or name it with --tracer\n", c.tracer);
    return 2;
  }
  for (int i = optind; i < argc; i++) {
    size_t j = 0;
    while (j < SC_COUNTOF(checks) && strcmp(checks[j].name, argv[i]) != 0)
      j++;
    if (j == SC_COUNTOF(checks)) {
      fprintf(stderr, "check_programs: no check is called %s\n", argv[i]);
      return usage(stderr, 2);
    }
    checks[j].function(&c);
  }
  printf("%u passed, %u failed, %u skipped\n", c.passed, c.failed, c.skipped);
  return c.failed > 0 ? 1 : c.passed == 0 ? 77 : 0;
}
