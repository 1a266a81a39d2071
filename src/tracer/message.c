/* SPDX-License-Identifier: Apache-2.0
 * Environment in, lines on stderr out. */
#include "tracer/message.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void complain(struct sc_tracer_options *options, const char *variable, const char *value, const char *wanted) {
  size_t used = strlen(options->complaint);
  (void)snprintf(options->complaint + used, sizeof(options->complaint) - used, "%s%s=%.64s is not %s and was ignored",
                 used == 0 ? "" : "; ", variable, value, wanted);
}

/* `first`, `second`, or both with a comma between, in any order: bits 1 and 2 of *out. */
static bool parse_words(const char *text, const char *first, const char *second, unsigned *out) {
  unsigned words = 0;
  for (;; text++) {
    size_t n = strcspn(text, ",");
    if (n == strlen(first) && strncmp(text, first, n) == 0)
      words |= 1;
    else if (n == strlen(second) && strncmp(text, second, n) == 0)
      words |= 2;
    else
      return false;
    text += n;
    if (*text == '\0')
      break;
  }
  *out = words;
  return true;
}

_Static_assert(SC_WATCH_RUNTIME == 1 && SC_WATCH_DRIVER == 2, "bits of parse_words");
static bool read_apis(const char *value, struct sc_tracer_options *options) {
  unsigned words;
  if (!parse_words(value, "runtime", "driver", &words))
    return false;
  options->apis = (enum sc_watch_apis)words;
  return true;
}

/* Or "none". */
static bool read_stacks(const char *value, struct sc_tracer_options *options) {
  unsigned words = 0;
  if (strcmp(value, "none") != 0 && !parse_words(value, "python", "native", &words))
    return false;
  options->python = (words & 1) != 0;
  options->native = (words & 2) != 0;
  return true;
}

static void take_max_trace(struct sc_tracer_options *options, const char *value) {
  if (value != NULL && value[0] != '\0' && !sc_parse_size(value, &options->max_bytes))
    complain(options, "SYNCCOUNT_MAX_TRACE", value, "a size such as 64M");
}

static void take_api(struct sc_tracer_options *options, const char *value) {
  if (value != NULL && value[0] != '\0' && !read_apis(value, options))
    complain(options, "SYNCCOUNT_API", value, "runtime, driver or both with a comma");
}

static void take_stacks(struct sc_tracer_options *options, const char *value) {
  if (value != NULL && value[0] != '\0' && !read_stacks(value, options))
    complain(options, "SYNCCOUNT_STACKS", value, "python, native, python,native or none");
}

/* A variable that is 1, 0, or set to something that it must not be. */
static bool take_switch(struct sc_tracer_options *options, const char *variable) {
  const char *value = getenv(variable);
  if (value != NULL && value[0] != '\0' && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
    complain(options, variable, value, "0 or 1");
  return value != NULL && strcmp(value, "1") == 0;
}

void sc_tracer_options_read(struct sc_tracer_options *options) {
  *options =
      (struct sc_tracer_options){ .output = ".", .apis = SC_WATCH_BOTH, .python = true, .native = true };
  options->quiet = take_switch(options, "SYNCCOUNT_QUIET");
  const char *value = getenv("SYNCCOUNT_OUTPUT");
  if (value != NULL && value[0] != '\0')
    options->output = value;
  value = getenv("SYNCCOUNT_CUPTI");
  if (value != NULL && value[0] != '\0')
    options->cupti = value;
  take_max_trace(options, getenv("SYNCCOUNT_MAX_TRACE"));
  take_api(options, getenv("SYNCCOUNT_API"));
  (void)take_switch(options, "SYNCCOUNT_FOLLOW");
  (void)take_switch(options, "SYNCCOUNT_DORMANT");
  take_stacks(options, getenv("SYNCCOUNT_STACKS"));
}

void sc_tracer_options_take(struct sc_tracer_options *options, const struct sc_control_request *asked) {
  options->output = asked->output;
  options->quiet = true;
  take_max_trace(options, asked->max_trace);
  take_api(options, asked->api);
  take_stacks(options, asked->stacks);
}

static struct {
  bool remembered, there;
  dev_t device;
  ino_t inode;
} first_stderr;

void sc_tracer_remember_stderr(void) {
  struct stat now;
  first_stderr.there = fstat(STDERR_FILENO, &now) == 0;
  if (first_stderr.there) {
    first_stderr.device = now.st_dev;
    first_stderr.inode = now.st_ino;
  }
  first_stderr.remembered = true;
}

static bool stderr_is_the_same(void) {
  struct stat now;
  return !first_stderr.remembered ||
         (first_stderr.there && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == first_stderr.device &&
          now.st_ino == first_stderr.inode);
}

/* A reader that has gone, or a log at its size limit, must not end the program for a line of ours. The signal that the
 * write made is taken back; one that was pending before stays. */
static void write_quietly(const char *text, size_t size) {
  const struct timespec now = { 0, 0 };
  sigset_t made, before, pending;
  sigemptyset(&made);
  sigaddset(&made, SIGPIPE);
  sigaddset(&made, SIGXFSZ);
  if (pthread_sigmask(SIG_BLOCK, &made, &before) != 0)
    return;
  if (sigpending(&pending) == 0) {
    if (sigismember(&pending, SIGPIPE) == 1)
      sigdelset(&made, SIGPIPE);
    if (sigismember(&pending, SIGXFSZ) == 1)
      sigdelset(&made, SIGXFSZ);
  }
  if (write(STDERR_FILENO, text, size) < 0 && (errno == EPIPE || errno == EFBIG)) /* nobody to tell */
    while (sigtimedwait(&made, NULL, &now) < 0 && errno == EINTR)
      continue;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void sc_tracer_say(const struct sc_tracer_options *options, const char *format, ...) {
  if (options->quiet)
    return;
  int saved = errno;
  char line[1400] = "synccount: ";
  size_t used = strlen(line);
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
  va_end(args);
  if (n >= 0) {
    used += (size_t)n < sizeof(line) - used - 1 ? (size_t)n : sizeof(line) - used - 2;
    line[used++] = '\n';
    if (stderr_is_the_same())
      write_quietly(line, used);
  }
  errno = saved;
}
