/* SPDX-License-Identifier: Apache-2.0
 * Session folders: made, listed, and removed without leaving or touching anything else. */
#include "cli/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/session.h"
#include "trace/format.h"

#define CLAIM ".synccount-session" /* there while a session is being made */
#define ROOM 65536                 /* bytes it holds for what is written once the disk is full */
#define ROOM_LEAST 4096

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

/* As much as there is: without it a session is made all the same, unless the disk fills up. Above a file size limit there
 * would be a signal. */
static void reserve_room(int fd)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < ROOM)
    return;
  for (off_t size = ROOM; size >= ROOM_LEAST && posix_fallocate(fd, 0, size) != 0; size /= 2)
    continue;
}

void folder_use_room(const struct folder *folder)
{
  char *mark = folder->claimed ? folder_file(folder, CLAIM) : NULL;
  if (mark && truncate(mark, 0) != 0)
    unlink(mark);
  free(mark);
}

/* Two that find the folder empty at the same time: one of them makes the mark. */
static enum sc_status claim(struct folder *folder, struct sc_error *err)
{
  char *mark = folder_file(folder, CLAIM);
  if (!mark)
    return sc_error_no_memory(err);
  int fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  int reason = errno;
  free(mark);
  if (fd >= 0) {
    reserve_room(fd);
    close(fd);
    folder->claimed = true;
    return SC_OK;
  }
  if (reason == EEXIST)
    return sc_error_set(err, SC_ERR_USAGE, "--keep-traces: '%s' is used by another synccount: give a new folder",
                        folder->path);
  return sc_error_set(err, SC_ERR_USAGE, "--keep-traces: cannot write into '%s': %s", folder->path, strerror(reason));
}

static enum sc_status open_temporary(struct folder *out, struct sc_error *err)
{
  const char *parent = getenv("TMPDIR");
  char *path = sc_asprintf("%s/synccount-XXXXXX", parent && *parent ? parent : "/tmp");
  if (!path)
    return sc_error_no_memory(err);
  if (!mkdtemp(path)) {
    sc_error_set(err, SC_ERR_SYSTEM,
                 "cannot make a temporary folder %s: %s. Point TMPDIR at a folder that can be written", path,
                 strerror(errno));
    free(path);
    return SC_ERR_SYSTEM;
  }
  *out = (struct folder){.path = path, .temporary = true};
  (void)claim(out, NULL); /* on a full disk it is a folder all the same */
  return SC_OK;
}

/* ---- a folder that is kept ------------------------------------------------------------------------ */

static bool is_session_part(const char *name)
{
  return strcmp(name, SESSION_FILE) == 0 || strcmp(name, CLAIM) == 0 || sc_match("*" SC_TRACE_SUFFIX, name);
}

static bool is_job_part(const char *name) { return sc_match(FOLDER_JOB "*", name) || sc_match(FOLDER_RANK "*", name); }

/* Traces of two sessions side by side could not be told apart later. of_job: the name that this job's folder bears;
 * NULL where it may be no job's. */
static enum sc_status refuse_used(const char *path, const char *of_job, const struct job *job, struct sc_error *err)
{
  const char *remedy =
      job && job->ranked && !job->id
          ? ". Ranks of one job can share it once SYNCCOUNT_JOB names the job, the same for all of them"
          : "";
  const char *foreign = NULL;
  char **names;
  size_t count;
  enum sc_status status = folder_names(path, "*", &names, &count, err);
  if (status != SC_OK)
    return status;
  for (size_t i = 0; i < count && status == SC_OK; ++i) {
    const char *name = names[i];
    if (strcmp(name, CLAIM) == 0)
      status = sc_error_set(err, SC_ERR_USAGE,
                            "--keep-traces: '%s' is used by another synccount, or by one that was killed: give a new "
                            "folder%s",
                            path, remedy);
    else if (is_session_part(name) || (!of_job && is_job_part(name)))
      status = sc_error_set(err, SC_ERR_USAGE, "--keep-traces: '%s' already holds traces (%s): give a new folder%s",
                            path, name, remedy);
    else if (of_job && sc_match(FOLDER_JOB "*", name) && strcmp(name, of_job) != 0)
      status = sc_error_set(err, SC_ERR_USAGE,
                            "--keep-traces: '%s' already holds traces of another job (%s, this one is %s): give a new "
                            "folder",
                            path, name, of_job);
    else if (!foreign && name[0] != '.' && !(of_job && is_job_part(name)))
      foreign = name;
  }
  if (status == SC_OK && foreign) /* somebody's folder, be it /etc or a home */
    status = sc_error_set(err, SC_ERR_USAGE,
                          "--keep-traces: '%s' holds other files (%s): give a new folder, such as %s/traces, or an "
                          "empty one",
                          path, foreign, strcmp(path, "/") == 0 ? "" : path);
  folder_free_names(names, count);
  return status;
}

static enum sc_status make_folder(const char *path, struct sc_error *err)
{
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    return sc_error_set(err, SC_ERR_USAGE, "--keep-traces: cannot make folder '%s': %s", path, strerror(errno));
  return SC_OK;
}

static enum sc_status whole_path(const char *path, char **out, struct sc_error *err)
{
  *out = realpath(path, NULL);
  if (!*out)
    return sc_error_set(err, SC_ERR_USAGE, "--keep-traces: cannot use '%s': %s", path, strerror(errno));
  if (access(*out, W_OK | X_OK) == 0)
    return SC_OK;
  sc_error_set(err, SC_ERR_USAGE, "--keep-traces: cannot write into '%s': %s", path, strerror(errno));
  free(*out);
  *out = NULL;
  return SC_ERR_USAGE;
}

static enum sc_status open_kept(const char *keep, const struct job *job, struct folder *out, struct sc_error *err)
{
  struct folder folder = {0};
  enum sc_status status = make_folder(keep, err);
  /* The program runs elsewhere: it gets the whole path. */
  if (status == SC_OK)
    status = whole_path(keep, &folder.path, err);
  if (status == SC_OK)
    status = refuse_used(folder.path, NULL, job, err);
  if (status == SC_OK)
    status = claim(&folder, err);
  if (status == SC_OK)
    *out = folder;
  else
    free(folder.path);
  return status;
}

static enum sc_status make_rank(const char *path, const char *rank_path, const struct job *job, struct sc_error *err)
{
  if (mkdir(rank_path, 0777) == 0)
    return SC_OK;
  if (errno == EEXIST)
    return sc_error_set(err, SC_ERR_USAGE,
                        "--keep-traces: '%s' already holds traces of rank %s of this job: give a new folder", path,
                        job->rank);
  return sc_error_set(err, SC_ERR_USAGE, "--keep-traces: cannot make folder '%s': %s", rank_path, strerror(errno));
}

/* The job's mark and the rank's folder are folders, whose making is all or nothing, on every file system. */
static enum sc_status open_shared(const char *path, const struct job *job, struct folder *out, struct sc_error *err)
{
  struct folder rank = {.path = sc_asprintf("%s/" FOLDER_RANK "%s", path, job->rank)};
  char *of_job = sc_asprintf(FOLDER_JOB "%s", job->id), *mark = sc_asprintf("%s/" FOLDER_JOB "%s", path, job->id);
  enum sc_status status = rank.path && of_job && mark ? refuse_used(path, of_job, job, err) : sc_error_no_memory(err);
  if (status == SC_OK)
    status = make_folder(mark, err);
  if (status == SC_OK) /* again: of two jobs that began together each sees the other by now */
    status = refuse_used(path, of_job, job, err);
  if (status == SC_OK)
    status = make_rank(path, rank.path, job, err);
  if (status == SC_OK)
    status = claim(&rank, err);
  free(of_job);
  free(mark);
  if (status == SC_OK)
    *out = rank;
  else
    free(rank.path);
  return status;
}

enum sc_status folder_open(const char *keep, struct folder *out, struct sc_error *err)
{
  return keep ? open_kept(keep, NULL, out, err) : open_temporary(out, err);
}

enum sc_status folder_open_rank(const char *keep, const struct job *job, struct folder *out, struct sc_error *err)
{
  char *path = NULL;
  if (!keep)
    return open_temporary(out, err);
  if (!job->id)
    return open_kept(keep, job, out, err);
  enum sc_status status = make_folder(keep, err);
  if (status == SC_OK)
    status = whole_path(keep, &path, err);
  if (status == SC_OK)
    status = open_shared(path, job, out, err);
  free(path);
  return status;
}

enum sc_status folder_ranks(const char *path, char ***out, size_t *count, struct sc_error *err)
{
  size_t kept = 0;
  enum sc_status status = folder_names(path, FOLDER_RANK "*", out, count, err);
  for (size_t i = 0; status == SC_OK && i < *count; ++i) {
    struct stat info;
    char *file = sc_asprintf("%s/%s", path, (*out)[i]);
    if (file && stat(file, &info) == 0 && S_ISDIR(info.st_mode)) {
      char *name = (*out)[i];
      (*out)[i] = (*out)[kept];
      (*out)[kept++] = name;
    }
    free(file);
  }
  for (size_t i = kept; status == SC_OK && i < *count; ++i)
    free((*out)[i]);
  if (status == SC_OK)
    *count = kept;
  return status;
}

static void release(const struct folder *folder)
{
  char *mark = folder->claimed ? folder_file(folder, CLAIM) : NULL;
  if (mark)
    unlink(mark);
  free(mark);
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
  if (folder->path)
    release(folder);
  free(folder->path);
  *folder = (struct folder){0};
}
