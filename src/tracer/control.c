/* SPDX-License-Identifier: Apache-2.0
 * One thread does everything here, sleeping in poll(2). It makes no CUDA call, and its one lock covers a few file
 * operations. The program may close our descriptors or take their numbers (daemons close all): each is looked at before
 * it is used. */
#include "tracer/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/control.h"
#include "tracer/start.h"

enum {
  FD_MIN = 100,       /* out of the way of programs that expect low numbers or close them */
  CLIENTS_MAX = 8,    /* more wait in the socket's queue */
  PATIENCE_MS = 5000, /* for a request that does not come */
  RETRY_MS = 1000,    /* when the socket was lost and cannot be made again */
  CLOSING_S = 2,      /* what the end of the process gives a socket that is being made */
  STACK_BYTES = 1024 * 1024, /* loading CUPTI runs on it */
};

struct wire { /* a descriptor, and what it was when we opened it. fd is read in forked children */
  _Atomic int fd; /* -1: none */
  ino_t inode;
};

struct client {
  struct wire wire;
  pid_t pid;
  bool counts;       /* it started what is being counted */
  size_t got;        /* of `request` */
  uint64_t deadline; /* ns; 0: none */
  struct sc_control_request request;
};

static struct wire listener = { .fd = -1 };
static struct client clients[CLIENTS_MAX];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* the socket's file is made, or removed; for these three: */
static char socket_path[SC_CONTROL_PATH];
static struct stat socket_file;
static bool socket_there;    /* socket_path is ours */
static _Atomic bool closing; /* the process ends: no socket is made any more */
static struct sc_session_end ended;
static struct sc_control_reply reply;

/* ---- descriptors ------------------------------------------------------------------------------------- */
/* Takes fd over, to a number out of the way. */
static bool hold(struct wire *wire, int fd) {
  struct stat info;
  int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);
  if (high >= 0) {
    (void)close(fd);
    fd = high;
  }
  if (fstat(fd, &info) != 0) {
    (void)close(fd);
    return false;
  }
  wire->inode = info.st_ino;
  atomic_store_explicit(&wire->fd, fd, memory_order_release);
  return true;
}

/* The descriptor, if it still is what we opened; else -1. */
static int held(const struct wire *wire) {
  struct stat info;
  int fd = atomic_load_explicit(&wire->fd, memory_order_acquire);
  return fd >= 0 && fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) && info.st_ino == wire->inode ? fd : -1;
}

static void let_go(struct wire *wire) {
  int fd = held(wire);
  atomic_store_explicit(&wire->fd, -1, memory_order_release);
  if (fd >= 0)
    (void)close(fd);
}

/* ---- the socket -------------------------------------------------------------------------------------- */
/* A folder that nobody else can enter, made if need be. */
static bool private_folder(const char *path) {
  struct stat info;
  if (mkdir(path, 0700) != 0 && errno != EEXIST)
    return false;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  bool good = fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
  if (fd >= 0)
    (void)close(fd);
  return good;
}

/* Whether a living process (of another pid namespace) listens there. */
static bool answers(const struct sockaddr_un *address) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool alive = fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN);
  if (fd >= 0)
    (void)close(fd);
  return alive;
}

/* Makes the socket under another name, so that whoever sees its file is heard. */
static bool listen_at(const char *path) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  memcpy(address.sun_path, path, strlen(path) + 1);
  if (answers(&address))
    return false;
  char *suffix = strrchr(address.sun_path, '.');
  memcpy(suffix, ".making", sizeof(".making")); /* as long as .socket */
  (void)unlink(address.sun_path);               /* left by a process that was killed */
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return false;
  (void)fchmod(fd, 0600); /* the file is made with the socket's own mode */
  if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
    (void)close(fd);
    return false;
  }
  struct stat made;
  if (chmod(address.sun_path, 0600) != 0 || listen(fd, CLIENTS_MAX) != 0 || lstat(address.sun_path, &made) != 0) {
    (void)unlink(address.sun_path);
    (void)close(fd);
    return false;
  }
  if (!hold(&listener, fd) || rename(address.sun_path, path) != 0) {
    (void)unlink(address.sun_path);
    let_go(&listener);
    return false;
  }
  socket_file = made;
  return true;
}

static bool listen_somewhere(void) {
  char folder[SC_CONTROL_PATH], path[SC_CONTROL_PATH];
  bool made = false;
  (void)pthread_mutex_lock(&making);
  for (unsigned place = 0; place < SC_CONTROL_PLACES && !made && !atomic_load(&closing); place++)
    made = sc_control_place(place, getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), geteuid(), getpid(), folder, path) &&
           private_folder(folder) && listen_at(path);
  if (made) {
    memcpy(socket_path, path, sizeof(path));
    socket_there = true;
  }
  (void)pthread_mutex_unlock(&making);
  return made;
}

void sc_control_close(void) {
  struct stat info;
  struct timespec until;
  atomic_store(&closing, true);
  (void)clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += CLOSING_S;
  if (pthread_mutex_timedlock(&making, &until) != 0) /* on a filesystem that hangs */
    return;
  if (socket_there && lstat(socket_path, &info) == 0 && info.st_dev == socket_file.st_dev &&
      info.st_ino == socket_file.st_ino)
    (void)unlink(socket_path);
  socket_there = false;
  (void)pthread_mutex_unlock(&making);
}

void sc_control_forked(void) {
  (void)pthread_mutex_init(&making, NULL); /* the thread that may have held it is not in the child */
  socket_there = false;
  let_go(&listener);
  for (size_t i = 0; i < CLIENTS_MAX; i++)
    let_go(&clients[i].wire);
}

/* ---- requests ---------------------------------------------------------------------------------------- */
static void answer(enum sc_control_answer what, const char *text) {
  reply.head = (struct sc_control_head){ .version = SC_CONTROL_VERSION, .size = sizeof(reply), .what = (uint32_t)what };
  memcpy(reply.head.magic, SC_CONTROL_MAGIC, sizeof(reply.head.magic));
  (void)snprintf(reply.release, sizeof(reply.release), "%s", SC_VERSION);
  (void)snprintf(reply.text, sizeof(reply.text), "%s", text);
}

static const struct client *who_counts(void) {
  for (size_t i = 0; i < CLIENTS_MAX; i++)
    if (atomic_load_explicit(&clients[i].wire.fd, memory_order_relaxed) >= 0 && clients[i].counts)
      return &clients[i];
  return NULL;
}

static void serve_start(struct client *client) {
  struct sc_tracer_options options;
  char why[SC_SESSION_WHY];
  const struct client *other = who_counts();
  if (other != NULL) {
    reply.other = (uint32_t)other->pid;
    answer(SC_CONTROL_BUSY, "");
    return;
  }
  sc_tracer_options_read(&options);
  sc_tracer_options_take(&options, &client->request);
  client->counts = sc_tracer_wake(&options, why);
  answer(client->counts ? SC_CONTROL_DONE : SC_CONTROL_REFUSED, client->counts ? "" : why);
}

/* Ends what the client started. False: it had ended already, with the process. */
static bool stop_counting(struct client *client) {
  client->counts = false;
  return sc_tracer_sleep_again(&ended);
}

static void serve_stop(struct client *client) {
  if (!client->counts || !stop_counting(client)) {
    answer(SC_CONTROL_REFUSED, "nothing is being counted for this connection");
    return;
  }
  reply.lost = ended.lost;
  reply.flags = (ended.full ? SC_CONTROL_FULL : 0u) | (ended.closed ? 0u : SC_CONTROL_LEFT_OPEN);
  answer(SC_CONTROL_DONE, "");
}

static bool is_text(const char *text, size_t size) { return memchr(text, '\0', size) != NULL; }

static bool is_sound(const struct sc_control_request *request) {
  return is_text(request->release, sizeof(request->release)) && is_text(request->api, sizeof(request->api)) &&
         is_text(request->stacks, sizeof(request->stacks)) && is_text(request->max_trace, sizeof(request->max_trace)) &&
         is_text(request->output, sizeof(request->output)) &&
         (request->head.what != SC_CONTROL_START || request->output[0] == '/');
}

static bool is_foreign(const struct sc_control_head *head) {
  return head->version != SC_CONTROL_VERSION || head->size != sizeof(struct sc_control_request);
}

static void serve(struct client *client) {
  const struct sc_control_request *request = &client->request;
  memset(&reply, 0, sizeof(reply));
  if (is_foreign(&request->head) || !is_sound(request) || strcmp(request->release, SC_VERSION) != 0) {
    answer(SC_CONTROL_FOREIGN, "");
    return;
  }
  switch (request->head.what) {
  case SC_CONTROL_STATUS: {
    const struct client *other = who_counts();
    reply.other = other != NULL ? (uint32_t)other->pid : 0;
    answer(SC_CONTROL_DONE, "");
    return;
  }
  case SC_CONTROL_START: serve_start(client); return;
  case SC_CONTROL_STOP: serve_stop(client); return;
  default: answer(SC_CONTROL_FOREIGN, "");
  }
}

/* ---- connections ------------------------------------------------------------------------------------- */
static void drop(struct client *client) {
  if (client->counts)
    (void)stop_counting(client);
  let_go(&client->wire);
}

static uint64_t patience(void) { return sc_clock_mono_ns() + (uint64_t)PATIENCE_MS * 1000000u; }

static void take_connection(int listening) {
  struct ucred peer = { .pid = 0 };
  socklen_t size = sizeof(peer);
  struct client *client = NULL;
  for (size_t i = 0; i < CLIENTS_MAX && client == NULL; i++)
    if (atomic_load_explicit(&clients[i].wire.fd, memory_order_relaxed) < 0)
      client = &clients[i];
  int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0)
    return;
  bool welcome = client != NULL && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                 (peer.uid == geteuid() || peer.uid == 0);
  if (!welcome) {
    (void)close(fd);
    return;
  }
  client->pid = peer.pid;
  client->counts = false;
  client->got = 0;
  client->deadline = patience();
  (void)hold(&client->wire, fd);
}

static void take_bytes(struct client *client) {
  int fd = held(&client->wire);
  char *into = (char *)&client->request;
  ssize_t n = fd < 0 ? 0 : recv(fd, into + client->got, sizeof(client->request) - client->got, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0) {
    drop(client);
    return;
  }
  client->got += (size_t)n;
  client->deadline = patience();
  const struct sc_control_head *head = &client->request.head;
  if (client->got < sizeof(*head))
    return;
  bool ours = memcmp(head->magic, SC_CONTROL_MAGIC, sizeof(head->magic)) == 0;
  if (ours && !is_foreign(head) && client->got < sizeof(client->request))
    return;
  if (!ours) {
    drop(client);
    return;
  }
  bool foreign = is_foreign(head);
  serve(client);
  client->got = 0;
  client->deadline = client->counts ? 0 : patience();
  fd = held(&client->wire); /* counting may have taken a while */
  if (fd < 0 || send(fd, &reply, sizeof(reply), MSG_NOSIGNAL) != (ssize_t)sizeof(reply) || foreign)
    drop(client);
}

/* ---- the thread -------------------------------------------------------------------------------------- */
/* ms until the next deadline; -1: there is none. Whoever missed one is dropped. */
static int next_deadline(void) {
  uint64_t now = sc_clock_mono_ns(), next = UINT64_MAX;
  for (size_t i = 0; i < CLIENTS_MAX; i++) {
    struct client *client = &clients[i];
    if (atomic_load_explicit(&client->wire.fd, memory_order_relaxed) < 0 || client->deadline == 0)
      continue;
    if (client->deadline <= now)
      drop(client);
    else if (client->deadline < next)
      next = client->deadline;
  }
  return next == UINT64_MAX ? -1 : (int)((next - now) / 1000000u) + 1;
}

static void attend(void) {
  struct pollfd fds[1 + CLIENTS_MAX];
  bool room = false;
  int timeout = next_deadline();
  for (size_t i = 0; i < CLIENTS_MAX; i++) {
    fds[1 + i] = (struct pollfd){ .fd = held(&clients[i].wire), .events = POLLIN };
    if (fds[1 + i].fd < 0 && atomic_load_explicit(&clients[i].wire.fd, memory_order_relaxed) >= 0)
      drop(&clients[i]); /* the program closed it */
    room = room || fds[1 + i].fd < 0;
  }
  fds[0] = (struct pollfd){ .fd = room ? held(&listener) : -1, .events = POLLIN };
  if (poll(fds, SC_COUNTOF(fds), timeout) <= 0)
    return;
  for (size_t i = 0; i < CLIENTS_MAX; i++)
    if (fds[1 + i].fd >= 0 && fds[1 + i].revents != 0)
      take_bytes(&clients[i]);
  if (fds[0].fd >= 0 && fds[0].revents != 0 && held(&listener) == fds[0].fd)
    take_connection(fds[0].fd);
}

static void *run(void *unused) {
  const struct timespec pause = { RETRY_MS / 1000, 0 };
  bool was_there = false;
  (void)unused;
  (void)prctl(PR_SET_NAME, "synccount", 0, 0, 0);
  for (;;) {
    if (held(&listener) < 0 && !listen_somewhere()) {
      if (!was_there) /* no folder will do: nobody can attach */
        return NULL;
      (void)nanosleep(&pause, NULL);
      continue;
    }
    was_there = true;
    attend();
  }
  return NULL;
}

bool sc_control_open(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  for (size_t i = 0; i < CLIENTS_MAX; i++)
    atomic_init(&clients[i].wire.fd, -1);
  if (pthread_attr_init(&attributes) != 0)
    return false;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: the program's signals go to the program's threads */
  (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
  int failed = pthread_create(&thread, &attributes, run, NULL);
  if (failed == EINVAL && pthread_attr_setstacksize(&attributes, 8 * STACK_BYTES) == 0) /* large thread-local storage */
    failed = pthread_create(&thread, &attributes, run, NULL);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attributes);
  return failed == 0;
}
