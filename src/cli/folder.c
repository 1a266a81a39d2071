/* SPDX-License-Identifier: Apache-2.0
 * Session folders: made, listed, and removed without leaving or touching anything else. */
#include "cli/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/session.h"
#include "trace/format.h"

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

enum sc_status folder_names(const char *path, const char *pattern, char ***out, size_t *count, struct sc_error *err)
{
  char **names = NULL;
  size_t used = 0, capacity = 0;
  DIR *dir = opendir(path);
  if (!dir)
    return sc_error_set(err, SC_ERR_IO, "cannot list folder '%s': %s", path, strerror(errno));
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || !sc_match(pattern, entry->d_name))
      continue;
    char *name = sc_strdup(entry->d_name);
    char **slot = name ? sc_array_push(&names, &used, &capacity, sizeof *names) : NULL;
    if (!slot) {
      free(name);
      folder_free_names(names, used);
      closedir(dir);
      return sc_error_set(err, SC_ERR_NOMEM, "out of memory while listing '%s'", path);
    }
    *slot = name;
  }
  closedir(dir);
  if (used)
    qsort(names, used, sizeof *names, by_text);
  *out = names;
  *count = used;
  return SC_OK;
}

void folder_free_names(char **names, size_t count)
{
  for (size_t i = 0; i < count; ++i)
    free(names[i]);
  free(names);
}

char *folder_file(const struct folder *folder, const char *name) { return sc_asprintf("%s/%s", folder->path, name); }

FILE *folder_read_file(const char *path)
{
  struct stat info;
  FILE *file = NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return NULL;
  if (fstat(fd, &info) == 0 && !S_ISREG(info.st_mode))
    errno = S_ISDIR(info.st_mode) ? EISDIR : ESPIPE;
  else
    file = fdopen(fd, "r");
  if (!file) {
    int reason = errno;
    close(fd);
    errno = reason;
  }
  return file;
}

static enum sc_status open_temporary(struct folder *out, struct sc_error *err)
{
  const char *parent = getenv("TMPDIR");
  char *path = sc_asprintf("%s/synccount-XXXXXX", parent && *parent ? parent : "/tmp");
  if (!path)
    return sc_error_set(err, SC_ERR_NOMEM, "out of memory");
  if (!mkdtemp(path)) {
    sc_error_set(err, SC_ERR_SYSTEM,
                 "cannot make a temporary folder %s: %s. Point TMPDIR at a folder that can be written", path,
                 strerror(errno));
    free(path);
    return SC_ERR_SYSTEM;
  }
  *out = (struct folder){path, true};
  return SC_OK;
}

/* Traces of two sessions side by side could not be told apart later. */
static enum sc_status refuse_used(const char *path, struct sc_error *err)
{
  char **names;
  size_t count;
  enum sc_status status = folder_names(path, "*", &names, &count, err);
  if (status != SC_OK)
    return status;
  for (size_t i = 0; i < count && status == SC_OK; ++i) {
    if (strcmp(names[i], SESSION_FILE) == 0 || sc_match("*" SC_TRACE_SUFFIX, names[i]))
      status = sc_error_set(err, SC_ERR_USAGE, "--keep-traces: '%s' already holds traces (%s): give a new folder", path,
                            names[i]);
  }
  folder_free_names(names, count);
  return status;
}

static enum sc_status open_kept(const char *keep, struct folder *out, struct sc_error *err)
{
  if (mkdir(keep, 0777) != 0 && errno != EEXIST)
    return sc_error_set(err, SC_ERR_USAGE, "--keep-traces: cannot make folder '%s': %s", keep, strerror(errno));
  /* The probe runs elsewhere: it gets the whole path. */
  char *path = realpath(keep, NULL);
  if (!path)
    return sc_error_set(err, SC_ERR_USAGE, "--keep-traces: cannot use '%s': %s", keep, strerror(errno));
  enum sc_status status = refuse_used(path, err);
  if (status == SC_OK && access(path, W_OK | X_OK) != 0)
    status = sc_error_set(err, SC_ERR_USAGE, "--keep-traces: cannot write into '%s': %s", keep, strerror(errno));
  if (status != SC_OK) {
    free(path);
    return status;
  }
  *out = (struct folder){path, false};
  return SC_OK;
}

enum sc_status folder_open(const char *keep, struct folder *out, struct sc_error *err)
{
  return keep ? open_kept(keep, out, err) : open_temporary(out, err);
}

void folder_close(struct folder *folder)
{
  char **names;
  size_t count;
  if (folder->path && folder->temporary && folder_names(folder->path, "*", &names, &count, NULL) == SC_OK) {
    for (size_t i = 0; i < count; ++i) {
      char *file = folder_file(folder, names[i]);
      if (file)
        unlink(file);
      free(file);
    }
    folder_free_names(names, count);
    rmdir(folder->path);
  }
  free(folder->path);
  *folder = (struct folder){0};
}
