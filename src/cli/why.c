/* SPDX-License-Identifier: Apache-2.0
 * Explanations from what can be seen after the fact: the program's file, and the tracer's own notes. */
#include "cli/why.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NOTE_MAX 1024
#define HEADERS_MAX 128

/* ---- what the tracer left ---------------------------------------------------------------------- */

static bool add_note(const char *path, struct sc_findings *notes)
{
  char text[NOTE_MAX];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0)
    close(fd);
  if (n <= 0)
    return true; /* gone, or never written whole */
  text[n] = '\0';
  struct sc_buf line = {0};
  sc_buf_put_printable(&line, text, strlen(text));
  bool ok = !line.failed && sc_findings_warn(notes, "%s.", line.data);
  sc_buf_free(&line);
  return ok;
}

enum sc_status why_add_untraced(const struct folder *folder, struct sc_findings *notes, struct sc_error *err)
{
  char **names;
  size_t count;
  enum sc_status status = folder_names(folder->path, "*.untraced", &names, &count, err);
  if (status != SC_OK)
    return status;
  for (size_t i = 0; i < count && status == SC_OK; ++i) {
    char *path = folder_file(folder, names[i]);
    if (!path || !add_note(path, notes))
      status = sc_error_no_memory(err);
    free(path);
  }
  folder_free_names(names, count);
  return status;
}

/* ---- the program's file ------------------------------------------------------------------------ */

/* Where a shell would find it, as a new string; NULL if it is nowhere or memory is out. */
static char *look_up(const char *program)
{
  const char *path = getenv("PATH");
  if (strchr(program, '/'))
    return sc_strdup(program);
  for (const char *at = path ? path : "/bin:/usr/bin";; ++at) {
    size_t length = strcspn(at, ":");
    char *file = length ? sc_asprintf("%.*s/%s", (int)length, at, program) : sc_strdup(program);
    if (!file || access(file, X_OK) == 0)
      return file;
    free(file);
    at += length;
    if (!*at)
      return NULL;
  }
}

static bool is_static(int fd, const Elf64_Ehdr *header)
{
  size_t count = header->e_phnum < HEADERS_MAX ? header->e_phnum : HEADERS_MAX;
  for (size_t i = 0; i < count; ++i) {
    Elf64_Phdr segment;
    if (pread(fd, &segment, sizeof segment, (off_t)(header->e_phoff + i * header->e_phentsize)) !=
        (ssize_t)sizeof segment)
      return false;
    if (segment.p_type == PT_INTERP)
      return false;
  }
  return count > 0;
}

#ifdef __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static const char *elf_obstacle(int fd)
{
  union {
    Elf64_Ehdr header;
    unsigned char bytes[EI_NIDENT];
  } file;
  if (pread(fd, &file, sizeof file, 0) != (ssize_t)sizeof file || memcmp(file.bytes, ELFMAG, SELFMAG) != 0)
    return NULL;
  if (file.bytes[EI_CLASS] != ELFCLASS64 || file.header.e_machine != MACHINE)
    return "is built for another kind of machine (32 bits, or emulated): the tracer cannot be loaded into it";
  if (is_static(fd, &file.header))
    return "is statically linked: there is no loader that could preload the tracer. Link it dynamically";
  return NULL;
}

static const char *privilege_obstacle(const char *path, const struct stat *info)
{
  if (((info->st_mode & S_ISUID) && info->st_uid != geteuid()) ||
      ((info->st_mode & S_ISGID) && (info->st_mode & S_IXGRP) && info->st_gid != getegid()))
    return "is setuid or setgid: the loader ignores LD_PRELOAD for it. Run it as the user that it becomes";
  if (geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
    return "has file capabilities: the loader ignores LD_PRELOAD for it. Run a copy without them";
  return NULL;
}

/* What prevents that a library is preloaded into this file, as a sentence that begins with its name; a new string, or
 * NULL if nothing is known to. *script is set if it is a script. */
static char *not_preloaded(const char *path, bool *script)
{
  struct stat info;
  char start[2] = "";
  const char *obstacle = NULL;
  *script = false;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (stat(path, &info) == 0)
    obstacle = privilege_obstacle(path, &info);
  if (fd >= 0 && !obstacle) {
    *script = read(fd, start, 2) == 2 && memcmp(start, "#!", 2) == 0;
    obstacle = elf_obstacle(fd);
  }
  if (fd >= 0)
    close(fd);
  return obstacle ? sc_asprintf("%s %s", path, obstacle) : NULL;
}

/* ---- nothing was measured ---------------------------------------------------------------------- */

static bool explain(const struct why_question *question, const char *path, struct sc_findings *notes)
{
  bool script = false;
  char *obstacle = path ? not_preloaded(path, &script) : NULL;
  bool ok = true;
  if (obstacle)
    ok = sc_findings_warn(notes, "%s.", obstacle);
  else if (question->no_follow)
    ok = sc_findings_warn(notes, "%s did not use CUDA itself, and --no-follow leaves out what it starts%s.",
                          question->program, script ? " (it is a script)" : "");
  else
    ok = sc_findings_warn(
        notes,
        "No process of %s%s used CUDA where the tracer could see it. If one should have: does it reach "
        "the GPU (nvidia-smi), does something on the way clear LD_PRELOAD and "
        "CUDA_INJECTION64_PATH (env -i, sudo, ssh, a container), and can it make its trace in %s (another "
        "user, chroot, a full disk, a limit on files)?",
        question->program, script ? ", a script," : "", question->folder);
  free(obstacle);
  return ok;
}

enum sc_status why_add_nothing(const struct why_question *question, struct sc_findings *notes, struct sc_error *err)
{
  if (question->traced || notes->warning_count) /* said already */
    return SC_OK;
  char *path = look_up(question->program);
  bool ok = explain(question, path, notes);
  free(path);
  return ok ? SC_OK : sc_error_no_memory(err);
}
