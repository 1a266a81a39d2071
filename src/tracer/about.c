/* SPDX-License-Identifier: Apache-2.0
 * Read from /proc and the environment: asking CUDA would start it, or come back to us. */
#include "tracer/about.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sc_about_put(struct sc_writer_thread *thread, const char *key, const char *value) {
  if (thread == NULL || value == NULL || value[0] == '\0')
    return;
  struct sc_buf text = { .data = NULL };
  sc_buf_append(&text, key, strlen(key) + 1);
  sc_buf_puts(&text, value);
  if (!text.failed)
    sc_writer_text(thread, SC_RECORD_META, 0, text.data, text.len);
  sc_buf_free(&text);
}

/* At most `limit` bytes of a file that may be a procfs one. */
static bool read_file(const char *path, size_t limit, struct sc_buf *out) {
  char part[4096];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  while (out->len < limit) {
    ssize_t n = read(fd, part, sizeof(part));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    sc_buf_append(out, part, (size_t)n);
  }
  (void)close(fd);
  return out->data != NULL && !out->failed;
}

static bool is_plain(const char *word) {
  static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  return word[0] != '\0' && word[strspn(word, safe)] == '\0';
}

/* The command as a shell would take it again. */
static void put_command(struct sc_writer_thread *thread) {
  struct sc_buf raw = { .data = NULL }, line = { .data = NULL };
  if (read_file("/proc/self/cmdline", SC_TRACE_STRING_MAX / 2, &raw)) {
    for (const char *word = raw.data; word < raw.data + raw.len; word += strlen(word) + 1) {
      if (line.len > 0)
        sc_buf_puts(&line, " ");
      if (is_plain(word)) {
        sc_buf_puts(&line, word);
        continue;
      }
      sc_buf_puts(&line, "'");
      for (const char *at = word; *at != '\0'; at++) {
        if (*at == '\'')
          sc_buf_puts(&line, "'\\''");
        else
          sc_buf_append(&line, at, 1);
      }
      sc_buf_puts(&line, "'");
    }
    if (!line.failed)
      sc_about_put(thread, "command", line.data);
  }
  sc_buf_free(&raw);
  sc_buf_free(&line);
}

static void put_paths(struct sc_writer_thread *thread) {
  char path[PATH_MAX];
  if (getcwd(path, sizeof(path)) != NULL)
    sc_about_put(thread, "cwd", path);
  ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (n > 0) {
    path[n] = '\0';
    sc_about_put(thread, "exe", path);
  }
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ...": the first word of digits
 * and dots. */
static void put_driver(struct sc_writer_thread *thread) {
  struct sc_buf text = { .data = NULL };
  if (read_file("/proc/driver/nvidia/version", 4096, &text)) {
    char *line_end = strchr(text.data, '\n');
    if (line_end != NULL)
      *line_end = '\0';
    char *rest = text.data, *word;
    while ((word = strsep(&rest, " \t")) != NULL)
      if (strchr(word, '.') != NULL && word[0] != '.' && word[strspn(word, "0123456789.")] == '\0') {
        sc_about_put(thread, "driver_version", word);
        break;
      }
  }
  sc_buf_free(&text);
}

static void put_first(struct sc_writer_thread *thread, const char *key, const char *const *variables, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char *value = getenv(variables[i]);
    if (value != NULL && value[0] != '\0') {
      sc_about_put(thread, key, value);
      return;
    }
  }
}

void sc_about_process(struct sc_writer_thread *thread) {
  static const char *const ranks[] = { "RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                       "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID" };
  static const char *const local_ranks[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                             "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID" };
  static const char *const blocking[] = { "CUDA_LAUNCH_BLOCKING" };
  static const char *const modules[] = { "SYNCCOUNT_TORCH_MODULES" };
  sc_about_put(thread, "synccount_version", SC_VERSION);
  put_command(thread);
  put_paths(thread);
  put_driver(thread);
  put_first(thread, "rank", ranks, SC_COUNTOF(ranks));
  put_first(thread, "local_rank", local_ranks, SC_COUNTOF(local_ranks));
  put_first(thread, "launch_blocking", blocking, SC_COUNTOF(blocking));
  put_first(thread, "torch_modules", modules, SC_COUNTOF(modules));
}
