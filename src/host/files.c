/* SPDX-License-Identifier: Apache-2.0
 * Small files and folders below a sysroot. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/internal.h"

#define MAX_FILE_BYTES (256u << 10)

static char *full_path(const char *sysroot, const char *format, va_list args)
{
  struct sc_buf path = {0};
  char rest[512];
  if (vsnprintf(rest, sizeof rest, format, args) >= (int)sizeof rest)
    return NULL;
  sc_buf_printf(&path, "%s%s", sysroot, rest);
  return path.failed ? NULL : path.data;
}

static char *trim(char *text)
{
  char *end = text + strlen(text);
  while (end > text && strchr(" \t\r\n", end[-1]))
    --end;
  *end = '\0';
  size_t blank = strspn(text, " \t\r\n");
  memmove(text, text + blank, strlen(text + blank) + 1);
  return text;
}

static char *read_all(const char *path)
{
  FILE *file = fopen(path, "re");
  if (!file)
    return NULL;
  struct sc_buf buf = {0};
  char piece[4096];
  size_t got;
  while (buf.len < MAX_FILE_BYTES && (got = fread(piece, 1, sizeof piece, file)) > 0)
    sc_buf_append(&buf, piece, got);
  fclose(file);
  if (buf.failed || buf.len == 0) {
    sc_buf_free(&buf);
    return NULL;
  }
  return buf.data; /* a NUL inside, as in /proc/1/environ, only ends the text early for those who take it as one */
}

char *host_file(const char *sysroot, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *path = full_path(sysroot, format, args);
  va_end(args);
  char *text = path ? read_all(path) : NULL;
  free(path);
  if (text && !trim(text)[0]) {
    free(text);
    text = NULL;
  }
  return text;
}

bool host_exists(const char *sysroot, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *path = full_path(sysroot, format, args);
  va_end(args);
  bool exists = path && access(path, F_OK) == 0;
  free(path);
  return exists;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

char **host_names(const char *sysroot, const char *folder, const char *pattern, size_t *count)
{
  char **names = NULL, *path = sc_asprintf("%s%s", sysroot, folder);
  size_t capacity = 0;
  *count = 0;
  DIR *dir = path ? opendir(path) : NULL;
  free(path);
  if (!dir)
    return NULL;
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (!sc_match(pattern, entry->d_name))
      continue;
    char *name = sc_strdup(entry->d_name);
    char **slot = name ? sc_array_push(&names, count, &capacity, sizeof *names) : NULL;
    if (!slot) {
      free(name);
      break;
    }
    *slot = name;
  }
  closedir(dir);
  if (*count)
    qsort(names, *count, sizeof *names, by_text);
  return names;
}

void host_names_free(char **names, size_t count)
{
  for (size_t i = 0; i < count; ++i)
    free(names[i]);
  free(names);
}

char *host_value(const char *text, const char *key)
{
  size_t length = strlen(key);
  for (const char *line = text; line && *line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, key, length) != 0)
      continue;
    const char *at = line + length;
    at += strspn(at, " \t");
    if (*at != ':')
      continue;
    char *value = sc_strndup(at + 1, strcspn(at + 1, "\n"));
    if (value && !trim(value)[0]) {
      free(value);
      value = NULL;
    }
    return value;
  }
  return NULL;
}
