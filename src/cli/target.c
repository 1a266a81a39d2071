/* SPDX-License-Identifier: Apache-2.0
 * /proc, and a Unix socket. */
#include "cli/target.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/proc.h"

#define ANSWER_MS 30000 /* loading CUPTI from a slow disk takes seconds */
#define LOOK_MS 500     /* between two looks whether it is stopped */
#define LIBRARY "libsynccount.so"

/* ---- who it is --------------------------------------------------------------------------------- */

/* "mnt:[4026531840]" as a new string; NULL if it cannot be read. process: a number, or "self". */
static char *namespace_of(const char *root, const char *process, const char *kind)
{
  char text[64];
  char *path = sc_asprintf("%s/proc/%s/ns/%s", root, process, kind);
  ssize_t n = path ? readlink(path, text, sizeof text - 1) : -1;
  free(path);
  return n > 0 ? sc_strndup(text, (size_t)n) : NULL;
}

static enum sc_status nobody(pid_t pid, struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_MEASURE,
                      "there is no process %ld: give the number of a running one ('pgrep -a python' lists some)",
                      (long)pid);
}

static enum sc_status identify(const char *root, pid_t pid, struct target *out, struct sc_error *err)
{
  struct proc_status status;
  if (!proc_status_read(root, pid, 0, &status))
    return nobody(pid, err);
  memcpy(out->name, status.name, sizeof out->name);
  out->uid = status.user;
  out->gid = status.group;
  out->inner = status.inner;
  if (status.state == 'Z' || status.state == 'X')
    return sc_error_set(err, SC_ERR_MEASURE, "process %ld (%s) has ended; its parent has not taken note yet", (long)pid,
                        out->name);
  if (status.process != pid)
    return sc_error_set(err, SC_ERR_MEASURE, "%ld is a thread of process %ld (%s): attach to that", (long)pid,
                        (long)status.process, out->name);
  return SC_OK;
}

static enum sc_status check_owner(const struct target *target, struct sc_error *err)
{
  if (target->uid == geteuid() || geteuid() == 0)
    return SC_OK;
  return sc_error_set(err, SC_ERR_MEASURE,
                      "process %ld (%s) belongs to user %lu, and you are user %lu: run synccount as that user, or as "
                      "root",
                      (long)target->pid, target->name, (unsigned long)target->uid, (unsigned long)geteuid());
}

/* Paths, process numbers and sockets mean something else in a container. */
static enum sc_status check_namespaces(const char *root, const struct target *target, struct sc_error *err)
{
  static const char *const kinds[] = {"mnt", "pid"};
  static const char *const names[] = {"mount", "pid"};
  char process[24];
  enum sc_status status = SC_OK;
  snprintf(process, sizeof process, "%ld", (long)target->pid);
  for (size_t i = 0; i < SC_COUNTOF(kinds) && status == SC_OK; ++i) {
    char *ours = namespace_of(root, "self", kinds[i]), *theirs = namespace_of(root, process, kinds[i]);
    if (ours && theirs && strcmp(ours, theirs) != 0)
      status = sc_error_set(err, SC_ERR_MEASURE,
                            "process %ld (%s) lives in another %s namespace (a container, or a service with folders of "
                            "its own): run synccount in there, as 'synccount attach %ld' behind 'docker exec' or "
                            "'nsenter -t %ld -m -p'",
                            (long)target->pid, target->name, names[i], (long)target->inner, (long)target->pid);
    free(ours);
    free(theirs);
  }
  return status;
}

/* ---- what is in it ----------------------------------------------------------------------------- */

static enum sc_status cannot_look(const struct target *target, struct sc_error *err)
{
  const int reason = errno;
  if (reason == ENOENT || reason == ESRCH)
    return nobody(target->pid, err);
  return sc_error_set(err, SC_ERR_MEASURE,
                      "cannot look into process %ld (%s): %s. %s; a process that may not be looked at (setuid, or by its "
                      "own wish) is closed to everybody else",
                      (long)target->pid, target->name, strerror(reason),
                      geteuid() != 0                         ? "Run synccount as root"
                      : reason == EACCES || reason == EPERM ? "Root may not here: in a container it needs CAP_SYS_PTRACE"
                                                             : "Root was refused as well");
}

static bool begins(const char *path, const char *name)
{
  return strncmp(proc_base_name(path), name, strlen(name)) == 0;
}

static enum sc_status look_at_maps(const char *root, struct target *out, struct sc_error *err)
{
  struct proc_maps maps = {0};
  if (!proc_maps_read(root, out->pid, &maps))
    return errno == ENOMEM ? sc_error_no_memory(err) : cannot_look(out, err);
  for (size_t i = 0; i < maps.count; ++i) {
    out->has_library |= begins(maps.at[i].path, LIBRARY);
    out->has_cuda |= begins(maps.at[i].path, "libcuda.so");
  }
  proc_maps_free(&maps);
  return SC_OK;
}

static bool take_variable(const char *entry, const char *name, char **out)
{
  const size_t length = strlen(name);
  if (strncmp(entry, name, length) != 0 || entry[length] != '=')
    return true;
  free(*out);
  return (*out = sc_strdup(entry + length + 1)) != NULL;
}

/* As it was started: what it changed since cannot be seen. */
static enum sc_status look_at_environment(const char *root, struct target *out, struct sc_error *err)
{
  struct sc_buf text = {0};
  char *dormant = NULL, *preload = NULL;
  bool ok = proc_read(root, out->pid, "environ", &text) || !text.failed; /* without it, the usual folders */
  for (size_t at = 0; ok && at < text.len; at += strlen(text.data + at) + 1) {
    const char *entry = text.data + at;
    ok = take_variable(entry, "XDG_RUNTIME_DIR", &out->runtime) && take_variable(entry, "TMPDIR", &out->temporary) &&
         take_variable(entry, "SYNCCOUNT_DORMANT", &dormant) && take_variable(entry, "LD_PRELOAD", &preload) &&
         take_variable(entry, "CUDA_INJECTION64_PATH", &out->other_tool);
  }
  out->by_itself = (preload && strstr(preload, LIBRARY)) || (out->other_tool && begins(out->other_tool, LIBRARY));
  out->will_sleep = dormant && strcmp(dormant, "1") == 0;
  if (out->other_tool && begins(out->other_tool, LIBRARY)) {
    free(out->other_tool);
    out->other_tool = NULL;
  }
  free(dormant);
  free(preload);
  sc_buf_free(&text);
  return ok ? SC_OK : sc_error_no_memory(err);
}

enum sc_status target_examine(const char *root, pid_t pid, struct target *out, struct sc_error *err)
{
  *out = (struct target){.root = root, .pid = pid};
  enum sc_status status = identify(root, pid, out, err);
  if (status == SC_OK)
    status = check_owner(out, err);
  if (status == SC_OK)
    status = check_namespaces(root, out, err);
  if (status == SC_OK)
    status = look_at_maps(root, out, err);
  if (status == SC_OK)
    status = look_at_environment(root, out, err);
  return status;
}

void target_free(struct target *target)
{
  free(target->other_tool);
  free(target->runtime);
  free(target->temporary);
  *target = (struct target){0};
}

/* ---- is it stopped ----------------------------------------------------------------------------- */

static bool is_stopped(const struct target *target)
{
  struct proc_status status;
  return proc_status_read(target->root, target->pid, 0, &status) && status.state == 'T';
}

static enum sc_status stopped(const struct target *target, struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_MEASURE,
                      "process %ld (%s) is stopped (Ctrl-Z or SIGSTOP) and cannot answer: let it go on with 'fg' or "
                      "'kill -CONT %ld'",
                      (long)target->pid, target->name, (long)target->pid);
}

enum sc_status target_check_runs(const struct target *target, struct sc_error *err)
{
  return is_stopped(target) ? stopped(target, err) : SC_OK;
}

/* Why nothing was heard of it. */
static enum sc_status silent(const struct target *target, struct sc_error *err)
{
  struct proc_status status, tracer;
  if (!proc_status_read(target->root, target->pid, 0, &status) || (status.state != 'T' && status.tracer == 0))
    return sc_error_set(err, SC_ERR_MEASURE,
                        "process %ld (%s) has not answered at its socket for %d s: let it go on if something holds it "
                        "up",
                        (long)target->pid, target->name, ANSWER_MS / 1000);
  if (status.tracer == 0)
    return stopped(target, err);
  const bool named = proc_status_read(target->root, status.tracer, 0, &tracer);
  return sc_error_set(err, SC_ERR_MEASURE,
                      "process %ld (%s) does not answer at its socket, and process %ld (%s) traces it: let that "
                      "debugger go on or detach",
                      (long)target->pid, target->name, (long)status.tracer, named ? tracer.name : "name unknown");
}

/* ---- its socket -------------------------------------------------------------------------------- */

/* Whoever listens there must be the process itself. */
static bool connect_at(const struct target *target, const char *path, int *out)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct ucred peer = {0};
  socklen_t size = sizeof peer;
  memcpy(address.sun_path, path, strlen(path) + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return false;
  if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == target->pid &&
      peer.uid == target->uid) {
    *out = fd;
    return true;
  }
  close(fd);
  return false;
}

static bool connect_by(const struct target *target, const char *runtime, const char *temporary, int *fd)
{
  char folder[SC_CONTROL_PATH], path[SC_CONTROL_PATH];
  for (unsigned place = 0; place < SC_CONTROL_PLACES; ++place) {
    if (sc_control_place(place, runtime, temporary, target->uid, target->pid, folder, path) &&
        connect_at(target, path, fd))
      return true;
  }
  return false;
}

bool target_connect(const struct target *target, int *fd)
{
  return connect_by(target, target->runtime, target->temporary, fd) ||
         connect_by(target, getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), fd);
}

enum sc_status target_explain(const struct target *target, const char *library, struct sc_error *err)
{
  const long pid = (long)target->pid;
  if (!target->has_library)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "process %ld (%s) does not have " LIBRARY " in it. Start it with LD_PRELOAD=%s and "
                        "SYNCCOUNT_DORMANT=1, or load the library now: synccount attach --inject %ld",
                        pid, target->name, library, pid);
  if (target->other_tool)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "process %ld (%s) gives CUDA's injection to %s (CUDA_INJECTION64_PATH): start it without that "
                        "tool",
                        pid, target->name, target->other_tool);
  if (target->will_sleep || !target->has_cuda)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "CUDA has not started in process %ld (%s), so there is nothing to count: attach again once it "
                        "uses the GPU",
                        pid, target->name);
  return sc_error_set(err, SC_ERR_MEASURE,
                      "process %ld (%s) is counted from its start ('synccount run', or LD_PRELOAD alone): its report "
                      "comes at its end. To attach instead, start it with SYNCCOUNT_DORMANT=1",
                      pid, target->name);
}

/* ---- speaking ---------------------------------------------------------------------------------- */

static bool send_all(int fd, const void *bytes, size_t size)
{
  const char *at = bytes;
  while (size > 0) {
    ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) /* a request is smaller than any socket's buffer */
      return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

/* At most size bytes, fewer if that is all there is. -1: nothing came in time, or at two looks it was stopped. 0: the
 * connection was closed. */
static ssize_t receive(const struct target *target, int fd, void *bytes, size_t size)
{
  const uint64_t deadline = sc_clock_mono_ns() + ANSWER_MS * 1000000ull;
  bool was_stopped = false;
  size_t got = 0;
  while (got < size) {
    struct pollfd in = {.fd = fd, .events = POLLIN};
    int ready = poll(&in, 1, LOOK_MS);
    if (ready <= 0) {
      const bool now_stopped = ready == 0 && is_stopped(target);
      if (sc_clock_mono_ns() >= deadline || (was_stopped && now_stopped))
        return -1;
      was_stopped = now_stopped;
      continue;
    }
    ssize_t n = recv(fd, (char *)bytes + got, size - got, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n <= 0)
      return (ssize_t)got;
    got += (size_t)n;
    const struct sc_control_head *head = bytes;
    if (got >= sizeof *head && head->size < size && got >= head->size) /* another version's, which is shorter */
      return (ssize_t)got;
  }
  return (ssize_t)got;
}

static enum sc_status wrong_version(const struct target *target, const struct sc_control_reply *reply,
                                    struct sc_error *err)
{
  const bool told = reply->head.size >= offsetof(struct sc_control_reply, other) && reply->release[0];
  if (told && strncmp(reply->release, SC_VERSION, sizeof reply->release) == 0)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "the library in process %ld (%s) is of another build of version %s: use the synccount that belongs "
                        "to it, or start the program again with this one's library",
                        (long)target->pid, target->name, SC_VERSION);
  return sc_error_set(err, SC_ERR_MEASURE,
                      "the library in process %ld (%s) is of %s%.*s and this synccount is %s: use the synccount that "
                      "belongs to it, or start the program again with this one's library",
                      (long)target->pid, target->name, told ? "version " : "another version",
                      told ? (int)sizeof reply->release : 0, told ? reply->release : "", SC_VERSION);
}

enum sc_status target_ask(const struct target *target, int fd, enum sc_control_command command,
                          struct sc_control_request *request, struct sc_control_reply *reply, enum target_says *says,
                          struct sc_error *err)
{
  request->head =
      (struct sc_control_head){.version = SC_CONTROL_VERSION, .size = sizeof *request, .what = (uint32_t)command};
  memcpy(request->head.magic, SC_CONTROL_MAGIC, sizeof request->head.magic);
  snprintf(request->release, sizeof request->release, "%s", SC_VERSION);
  memset(reply, 0, sizeof *reply);
  ssize_t got = send_all(fd, request, sizeof *request) ? receive(target, fd, reply, sizeof *reply) : 0;
  *says = got < 0 ? TARGET_SILENT : (size_t)got < sizeof reply->head ? TARGET_GONE : TARGET_ANSWERS;
  if (*says == TARGET_SILENT)
    return silent(target, err);
  if (*says == TARGET_GONE)
    return sc_error_set(err, SC_ERR_MEASURE,
                        "process %ld (%s) closed the connection: it has ended, or executed another program",
                        (long)target->pid, target->name);
  if (memcmp(reply->head.magic, SC_CONTROL_MAGIC, sizeof reply->head.magic) != 0 ||
      reply->head.version != SC_CONTROL_VERSION || (size_t)got != sizeof *reply ||
      reply->head.what == SC_CONTROL_FOREIGN)
    return wrong_version(target, reply, err);
  reply->text[sizeof reply->text - 1] = '\0';
  return SC_OK;
}
