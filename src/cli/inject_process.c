/* SPDX-License-Identifier: Apache-2.0
 * What /proc tells of a process before anything is done to it, and the reasons to leave it alone. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/inject_parts.h"
#include "cli/place.h"

#define PROC_PATH 64

static enum sc_status is_gone(pid_t pid, struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_SYSTEM, "there is no process %ld (any more)", (long)pid);
}

enum sc_status inject_status_read(pid_t pid, pid_t thread, struct proc_status *out, struct sc_error *err)
{
  return proc_status_read("", pid, thread, out) ? SC_OK : is_gone(pid, err);
}

enum sc_status inject_maps_read(pid_t pid, struct proc_maps *out, struct sc_error *err)
{
  struct proc_maps maps = {0};
  if (!proc_maps_read("", pid, &maps))
    return errno == EACCES || errno == EPERM ? inject_forbidden(pid, pid, err)
           : errno == ENOMEM                 ? sc_error_no_memory(err)
                                             : is_gone(pid, err);
  if (maps.count == 0)
    return sc_error_set(err, SC_ERR_SYSTEM, "process %ld has no memory: it is ending, or a kernel thread", (long)pid);
  *out = maps;
  return SC_OK;
}

/* The first executable mapping of a file so named. */
static const struct proc_map *find_named(const struct proc_maps *maps, const char *pattern)
{
  for (size_t i = 0; i < maps->count; ++i) {
    if (maps->at[i].executable && maps->at[i].path[0] == '/' && sc_match(pattern, proc_base_name(maps->at[i].path)))
      return &maps->at[i];
  }
  return NULL;
}

/* ---- refusals -------------------------------------------------------------------------------------- */

static bool is_traced(pid_t pid, pid_t thread, struct sc_error *err)
{
  struct proc_status status, tracer;
  if (inject_status_read(pid, thread, &status, NULL) != SC_OK || status.tracer == 0)
    return false;
  bool named = inject_status_read(status.tracer, status.tracer, &tracer, NULL) == SC_OK;
  sc_error_set(err, SC_ERR_SYSTEM,
               "process %ld is being traced by process %ld (%s), and only one can: detach that one (a debugger, strace "
               "or another attach), then try again",
               (long)pid, (long)status.tracer, named ? tracer.name : "name unknown");
  return true;
}

enum sc_status inject_forbidden(pid_t pid, pid_t thread, struct sc_error *err)
{
  struct proc_status status;
  enum sc_status found = inject_status_read(pid, thread, &status, err);
  if (found != SC_OK)
    return found;
  if (is_traced(pid, thread, err))
    return SC_ERR_SYSTEM;
  const int scope = place_yama_scope();
  if (scope == 3)
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld may not be attached to: kernel.yama.ptrace_scope is 3, which forbids it to "
                        "everybody until the next boot; start the program with SYNCCOUNT_DORMANT=1 instead",
                        (long)pid);
  uid_t self = geteuid();
  if (self != 0 && status.user != self) {
    const struct passwd *user = getpwuid(status.user);
    return sc_error_set(
        err, SC_ERR_SYSTEM,
        "process %ld (%s) belongs to user %s (%lu), not to you: run this as that user or as root (sudo)", (long)pid,
        status.name, user ? user->pw_name : "?", (unsigned long)status.user);
  }
  if (self != 0 && scope > 0)
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld may not be attached to: kernel.yama.ptrace_scope is %d, which allows it %s; use "
                        "sudo, give synccount CAP_SYS_PTRACE, or run `sysctl kernel.yama.ptrace_scope=0` as root",
                        (long)pid, scope, scope == 1 ? "to a program's parents only" : "with CAP_SYS_PTRACE only");
  if (self != 0)
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld (%s) does not let itself be attached to (it is setuid, holds capabilities, or has "
                        "asked for it by prctl): run this as root (sudo)",
                        (long)pid, status.name);
  return sc_error_set(err, SC_ERR_SYSTEM,
                      "process %ld may not be attached to although this is root: CAP_SYS_PTRACE is missing (in a "
                      "container: start it with --cap-add SYS_PTRACE), or a security module forbids it",
                      (long)pid);
}

enum sc_status inject_process_check(pid_t pid, struct sc_error *err)
{
  struct proc_status status;
  if (pid <= 0)
    return sc_error_set(err, SC_ERR_USAGE, "%ld is not a process id", (long)pid);
  if (pid == getpid())
    return sc_error_set(err, SC_ERR_USAGE, "process %ld is synccount itself: name the program to attach to", (long)pid);
  enum sc_status found = inject_status_read(pid, pid, &status, err);
  if (found != SC_OK)
    return found;
  if (status.process != pid)
    return sc_error_set(err, SC_ERR_USAGE, "%ld is a thread of process %ld: use that number", (long)pid,
                        (long)status.process);
  if (status.state == 'Z' || status.state == 'X')
    return sc_error_set(err, SC_ERR_SYSTEM, "process %ld (%s) has ended; its parent has not yet taken notice",
                        (long)pid, status.name);
  if (is_traced(pid, pid, err))
    return SC_ERR_SYSTEM;
  if (status.state == 'T')
    return sc_error_set(err, SC_ERR_SYSTEM, "process %ld (%s) is stopped: let it run (kill -CONT %ld), then try again",
                        (long)pid, status.name, (long)pid);
  return SC_OK;
}

/* ---- the program ------------------------------------------------------------------------------------ */

struct executable {
  Elf64_Ehdr header;
  bool read, dynamic; /* has a loader of its own */
};

static struct executable look_at_executable(pid_t pid)
{
  struct executable exe = {0};
  char path[PROC_PATH];
  snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return exe;
  exe.read = pread(fd, &exe.header, sizeof exe.header, 0) == (ssize_t)sizeof exe.header &&
             memcmp(exe.header.e_ident, ELFMAG, SELFMAG) == 0;
  bool walk = exe.read && exe.header.e_ident[EI_CLASS] == ELFCLASS64 && exe.header.e_phentsize == sizeof(Elf64_Phdr) &&
              exe.header.e_phoff < LONG_MAX / 2;
  for (unsigned i = 0; walk && i < exe.header.e_phnum && !exe.dynamic; ++i) {
    Elf64_Phdr segment;
    off_t place = (off_t)(exe.header.e_phoff + (uint64_t)i * sizeof segment);
    walk = pread(fd, &segment, sizeof segment, place) == (ssize_t)sizeof segment;
    exe.dynamic = walk && segment.p_type == PT_INTERP;
  }
  close(fd);
  return exe;
}

static enum sc_status check_architecture(pid_t pid, const struct executable *exe, struct sc_error *err)
{
  if (!exe->read)
    return SC_OK; /* other checks are to find out */
  if (exe->header.e_ident[EI_CLASS] != ELFCLASS64)
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld is a 32-bit program, and libsynccount.so a 64-bit library, as CUDA is: there is "
                        "nothing to attach to",
                        (long)pid);
  if (exe->header.e_machine != EM_X86_64)
    return sc_error_set(err, SC_ERR_SYSTEM, "process %ld is not an x86-64 program (ELF machine %u): not supported",
                        (long)pid, exe->header.e_machine);
  return SC_OK;
}

/* A program without a loader has no libc mapped; one that was started by calling the loader has no PT_INTERP. */
enum sc_status inject_program_check(pid_t pid, const struct proc_maps *maps, const struct proc_map **libc,
                                    const struct proc_map **libdl, struct sc_error *err)
{
  struct executable exe = look_at_executable(pid);
  enum sc_status status = check_architecture(pid, &exe, err);
  if (status != SC_OK)
    return status;
  const struct proc_map *glibc = find_named(maps, "libc.so.6");
  if (!glibc)
    glibc = find_named(maps, "libc-2.*.so");
  if (!glibc && (find_named(maps, "ld-musl-*") || find_named(maps, "libc.musl-*")))
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld uses the musl C library, and libsynccount.so needs glibc, as CUDA does: run the "
                        "program on a glibc system",
                        (long)pid);
  if (!glibc && exe.read && !exe.dynamic)
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld is a static program: it has no loader that could load a library; link it "
                        "dynamically (without -static)",
                        (long)pid);
  if (!glibc)
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld has no C library that is known here (no libc.so.6 among its mappings): start the "
                        "program with LD_PRELOAD=libsynccount.so and SYNCCOUNT_DORMANT=1 instead",
                        (long)pid);
  if (!find_named(maps, "libcuda.so*"))
    return sc_error_set(err, SC_ERR_SYSTEM,
                        "process %ld has no CUDA in it (no libcuda.so among its mappings): attach once it has started "
                        "CUDA, or name the process that does (a launcher's child)",
                        (long)pid);
  *libc = glibc;
  *libdl = find_named(maps, "libdl.so.2");
  if (!*libdl)
    *libdl = find_named(maps, "libdl-2.*.so");
  return SC_OK;
}

/* ---- the library ------------------------------------------------------------------------------------- */

static bool same_bytes(const char *path, const char *other)
{
  bool same = false;
  FILE *a = fopen(path, "re"), *b = fopen(other, "re");
  while (a && b) {
    char left[8192], right[8192];
    size_t n = fread(left, 1, sizeof left, a);
    if (n != fread(right, 1, sizeof right, b) || memcmp(left, right, n) != 0)
      break;
    if (n < sizeof left) {
      same = !ferror(a) && !ferror(b);
      break;
    }
  }
  if (a)
    fclose(a);
  if (b)
    fclose(b);
  return same;
}

/* The same path may be another file, or none, below another root or in another mount namespace. */
enum sc_status inject_library_check(pid_t pid, const char *library, struct sc_error *err)
{
  struct stat ours, theirs;
  if (library[0] != '/')
    return sc_error_set(err, SC_ERR_USAGE, "%s: the library's path must be absolute", library);
  if (stat(library, &ours) != 0)
    return sc_error_set(err, SC_ERR_IO, "%s: %s", library, strerror(errno));
  char *path = sc_asprintf("/proc/%ld/root%s", (long)pid, library);
  if (!path)
    return sc_error_no_memory(err);
  enum sc_status status = SC_OK;
  if (stat(path, &theirs) != 0) {
    if (errno == EACCES || errno == EPERM)
      status = inject_forbidden(pid, pid, err);
    else
      status = sc_error_set(err, SC_ERR_SYSTEM,
                            "process %ld sees other files (a container or chroot), and there is no %s among them: copy "
                            "it to that path there, or bind-mount it",
                            (long)pid, library);
  } else if ((ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) && !same_bytes(library, path)) {
    status = sc_error_set(err, SC_ERR_SYSTEM,
                          "process %ld sees another file at %s (a container or chroot with another version): use the "
                          "synccount of the same version there and here",
                          (long)pid, library);
  }
  free(path);
  return status;
}

/* A library of that name is taken for it, wherever it lies: two of them in one process would count twice. */
const struct proc_map *inject_library_map(pid_t pid, const char *library, const struct proc_maps *maps)
{
  struct stat wanted, found;
  bool known = stat(library, &wanted) == 0;
  for (size_t i = 0; i < maps->count; ++i) {
    const struct proc_map *map = &maps->at[i];
    if (!map->executable || map->path[0] != '/')
      continue;
    if (strcmp(proc_base_name(map->path), proc_base_name(library)) == 0)
      return map;
    char *path = sc_asprintf("/proc/%ld/root%s", (long)pid, map->path);
    bool same = path && known && stat(path, &found) == 0 && found.st_dev == wanted.st_dev &&
                found.st_ino == wanted.st_ino; /* by a symbolic link's other name */
    free(path);
    if (same)
      return map;
  }
  return NULL;
}
