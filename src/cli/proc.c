/* SPDX-License-Identifier: Apache-2.0
 * Files below /proc/PID, read whole. */
#include "cli/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool proc_read(const char *root, pid_t pid, const char *file, struct sc_buf *out)
{
  char bytes[4096];
  char *path = sc_asprintf("%s/proc/%ld/%s", root, (long)pid, file);
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  ssize_t n = -1;
  free(path);
  while (fd >= 0 && ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))) {
    if (n > 0)
      sc_buf_append(out, bytes, (size_t)n);
  }
  int reason = out->failed ? ENOMEM : errno;
  if (fd >= 0)
    close(fd);
  errno = reason;
  return fd >= 0 && n == 0 && !out->failed;
}

/* ---- status ------------------------------------------------------------------------------------ */

static pid_t last_number(const char *text)
{
  pid_t last = 0;
  for (int value, used; sscanf(text, "%d%n", &value, &used) == 1; text += used)
    last = value;
  return last;
}

static void take_line(const char *line, struct proc_status *out)
{
  unsigned effective;
  int value;
  if (sscanf(line, "Name:\t%63[^\n]", out->name) == 1)
    return;
  if (sscanf(line, "State:\t%c", &out->state) == 1)
    return;
  if (sscanf(line, "Tgid:\t%d", &value) == 1)
    out->process = value;
  else if (sscanf(line, "TracerPid:\t%d", &value) == 1)
    out->tracer = value;
  else if (sscanf(line, "Seccomp:\t%d", &value) == 1)
    out->seccomp = (unsigned)value;
  else if (sscanf(line, "Uid:\t%*u\t%u", &effective) == 1)
    out->user = effective;
  else if (sscanf(line, "Gid:\t%*u\t%u", &effective) == 1)
    out->group = effective;
  else if (strncmp(line, "NSpid:", 6) == 0)
    out->inner = last_number(line + 6);
}

bool proc_status_read(const char *root, pid_t pid, pid_t thread, struct proc_status *out)
{
  char file[48] = "status";
  struct sc_buf text = {0};
  struct proc_status found = {.process = pid, .inner = pid};
  if (thread != 0)
    snprintf(file, sizeof file, "task/%ld/status", (long)thread);
  bool ok = proc_read(root, pid, file, &text);
  int reason = errno;
  char *rest = text.data;
  for (const char *line; ok && (line = sc_next_line(&rest));)
    take_line(line, &found);
  sc_buf_free(&text);
  if (ok && !found.state) { /* it went meanwhile */
    ok = false;
    reason = ESRCH;
  }
  if (ok)
    *out = found;
  errno = reason;
  return ok;
}

/* ---- mappings ---------------------------------------------------------------------------------- */

static bool add_map(const char *line, struct proc_maps *maps)
{
  static const char gone[] = " (deleted)";
  char rights[5] = "";
  int used = 0;
  unsigned long start, end, offset;
  if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &start, &end, rights, &offset, &used) != 4 || !used)
    return true; /* not a line of ours to understand */
  struct proc_map *map = sc_array_push(&maps->at, &maps->count, &maps->capacity, sizeof *map);
  if (!map)
    return false;
  size_t length = strlen(line + used);
  *map = (struct proc_map){.start = start, .end = end, .offset = offset, .executable = rights[2] == 'x'};
  if (length >= sizeof gone - 1 && memcmp(line + used + length - (sizeof gone - 1), gone, sizeof gone - 1) == 0) {
    map->deleted = true;
    length -= sizeof gone - 1;
  }
  map->path = sc_strndup(line + used, length);
  return map->path != NULL;
}

bool proc_maps_read(const char *root, pid_t pid, struct proc_maps *out)
{
  struct sc_buf text = {0};
  struct proc_maps maps = {0};
  bool ok = proc_read(root, pid, "maps", &text);
  int reason = errno;
  char *rest = text.data;
  for (const char *line; ok && (line = sc_next_line(&rest));) {
    ok = add_map(line, &maps);
    reason = ENOMEM;
  }
  sc_buf_free(&text);
  if (ok)
    *out = maps;
  else
    proc_maps_free(&maps);
  errno = reason;
  return ok;
}

void proc_maps_free(struct proc_maps *maps)
{
  for (size_t i = 0; i < maps->count; ++i)
    free(maps->at[i].path);
  free(maps->at);
  *maps = (struct proc_maps){0};
}

const char *proc_base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}
