/* SPDX-License-Identifier: Apache-2.0
 * The writer in a hostile world: killed, forked, out of disk, over its limits, robbed of its descriptor, 64 threads. */
#include "test_support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/make_trace.h"

/* ---- helpers ------------------------------------------------------------------------------------ */

struct tally {
  uint64_t calls, batches, lost, threads_seen; /* threads_seen: bit i for serial i + 1, up to 64 */
  bool in_order; /* each thread's start_ns are 0, 1, 2... */
  struct sc_damage damage;
  struct sc_trace_live live;
};

static struct tally read_all(const char *path) {
  static uint64_t expected[70000];
  struct tally tally = {.in_order = true};
  struct sc_reader *reader = NULL;
  struct sc_error err = {0};
  struct sc_batch batch;
  bool more;

  memset(expected, 0, sizeof expected);
  if (sc_reader_open(path, &reader, &err) != SC_OK)
    fail_msg("%s", err.message);
  for (;;) {
    const struct sc_record_head *head;
    size_t offset = 0;

    assert_int_equal(sc_reader_next(reader, &batch, &more, &err), SC_OK);
    if (!more)
      break;
    tally.batches++;
    tally.lost += batch.lost;
    assert_in_range(batch.thread, 1, 69999);
    if (batch.thread <= 64)
      tally.threads_seen |= (uint64_t)1 << (batch.thread - 1);
    while ((head = sc_batch_next(&batch, &offset)))
      if (head->kind == SC_RECORD_CALL) {
        tally.calls++;
        if (((const struct sc_record_call *)(const void *)head)->start_ns != expected[batch.thread]++)
          tally.in_order = false;
      }
  }
  sc_reader_damage(reader, &tally.damage);
  tally.live = *sc_reader_live(reader);
  sc_reader_close(reader);
  return tally;
}

static void assert_sound(const struct tally *tally) {
  assert_string_equal(tally->damage.first, "");
  assert_int_equal(tally->damage.chunks + tally->damage.records + tally->damage.truncated, 0);
  assert_true(tally->in_order);
}

/* Writes one call numbered start_ns; false if it was lost. */
static bool write_call(struct sc_writer_thread *thread, uint64_t start_ns) {
  struct sc_record_call *record = sc_writer_reserve(thread, 1);

  if (!record)
    return false;
  memset(record, 0, sizeof *record);
  record->head.kind = SC_RECORD_CALL;
  record->head.units = 1;
  record->start_ns = start_ns;
  sc_writer_commit(thread, 1);
  return true;
}

/* Folder for a test's files; the caller frees and removes it. */
static char *new_folder(void) {
  const char *parent = getenv("TMPDIR");
  char *folder = sc_asprintf("%s/scwriter-XXXXXX", parent && *parent ? parent : "/tmp");

  assert_non_null(folder);
  assert_non_null(mkdtemp(folder));
  return folder;
}

static char *in_folder(const char *folder, const char *name) {
  char *path = sc_asprintf("%s/%s", folder, name);

  assert_non_null(path);
  return path;
}

static void remove_folder(char *folder, char *path) {
  unlink(path);
  assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
  free(path);
  free(folder);
}

static struct sc_writer *open_writer(const char *path, uint64_t max_bytes) {
  struct sc_writer *writer = NULL;
  struct sc_error err = {0};

  if (sc_writer_open(&(struct sc_writer_options){.path = path, .max_bytes = max_bytes}, &writer, &err) != SC_OK)
    fail_msg("%s", err.message);
  return writer;
}

/* Runs body in a child; its return value is the child's exit status. Any signal or other status fails the test. */
static int in_child(int (*body)(void *), void *argument) {
  pid_t pid = fork();
  int status;

  assert_true(pid >= 0);
  if (pid == 0) {
    alarm(100);
    _exit(body(argument));
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (!WIFEXITED(status))
    fail_msg("the child died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status);
}

/* ---- sudden ends ---------------------------------------------------------------------------------- */

/* Shared with the child that is killed: how many records each thread had committed at least. */
enum { VICTIM_THREADS = 4, VICTIM_LEAST = 5000 };

struct shared {
  uint64_t committed[VICTIM_THREADS];
};

static bool all_have_written(struct shared *shared) {
  for (int i = 0; i < VICTIM_THREADS; i++)
    if (__atomic_load_n(&shared->committed[i], __ATOMIC_ACQUIRE) < VICTIM_LEAST)
      return false;
  return true;
}

struct victim {
  struct shared *shared;
  struct sc_writer *writer;
  int index;
};

static void *write_until_killed(void *argument) {
  struct victim *victim = argument;
  struct sc_writer_thread *thread = sc_writer_thread_begin(victim->writer);

  for (uint64_t i = 0; write_call(thread, i); i++) {
    __atomic_store_n(&victim->shared->committed[victim->index], i + 1, __ATOMIC_RELEASE);
    while (i == VICTIM_LEAST && !all_have_written(victim->shared)) /* do not use up the room before all have begun */
      usleep(100);
  }
  return NULL;
}

static void kill_in_mid_write(void) {
  char *folder = new_folder(), *path = in_folder(folder, "killed.sctrace");
  struct shared *shared =
    mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  uint64_t least = 0;
  struct tally tally;
  pid_t pid;
  int status;

  assert_ptr_not_equal(shared, MAP_FAILED);
  pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    struct sc_writer *writer = open_writer(path, 64 << 20);
    struct victim victims[VICTIM_THREADS];
    pthread_t threads[VICTIM_THREADS];

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails before it kills */
    for (int i = 0; i < VICTIM_THREADS; i++) {
      victims[i] = (struct victim){shared, writer, i};
      if (pthread_create(&threads[i], NULL, write_until_killed, &victims[i]) != 0)
        _exit(1);
    }
    pause();
    _exit(1);
  }
  for (int waited = 0; !all_have_written(shared); waited++) {
    if (waited > 600000)
      fail_msg("the victim does not write");
    usleep(100);
  }
  assert_int_equal(kill(pid, SIGKILL), 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  for (int i = 0; i < VICTIM_THREADS; i++)
    least += shared->committed[i];
  tally = read_all(path);
  assert_sound(&tally);
  assert_in_range(tally.calls, least, least + VICTIM_THREADS); /* each thread may have been between its commit and its note */
  assert_int_equal(tally.threads_seen, 0xf);
  assert_int_equal(tally.live.end_mono_ns, 0); /* and the file says that it had no clean end */
  munmap(shared, sizeof *shared);
  remove_folder(folder, path);
}

static void every_committed_record_survives_sigkill(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) /* to meet different moments of a chunk's change */
    kill_in_mid_write();
}

static int record_and_end_without_closing(void *argument) {
  struct sc_writer_thread *thread = sc_writer_thread_begin(open_writer(argument, 0));

  for (uint64_t i = 0; i < 3000; i++)
    write_call(thread, i);
  sc_writer_submission(thread, true);
  return 0; /* _exit */
}

static void records_survive_an_exit_without_close(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "exit.sctrace");
  struct tally tally;

  (void)state;
  assert_int_equal(in_child(record_and_end_without_closing, path), 0);
  tally = read_all(path);
  assert_sound(&tally);
  assert_int_equal(tally.calls, 3000);
  assert_int_equal(tally.live.end_mono_ns, 0);
  remove_folder(folder, path);
}

/* ---- fork ------------------------------------------------------------------------------------------- */

struct forked {
  struct sc_writer *writer;
  struct sc_writer_thread *thread;
  const char *path; /* for the child's own file */
};

/* What a child does that knows of the fork. */
static int child_with_a_file_of_its_own(void *argument) {
  struct forked *forked = argument;
  struct sc_writer *own = NULL;
  struct sc_writer_thread *thread;

  sc_writer_abandon(forked->writer);
  sc_writer_live(forked->writer)->lost_records = 99; /* leads nowhere */
  if (write_call(forked->thread, 0) || sc_writer_last_call(forked->thread))
    return 1;
  sc_writer_submission(forked->thread, true);
  sc_writer_thread_end(forked->thread);
  if (sc_writer_thread_begin(forked->writer))
    return 2;
  sc_writer_close(forked->writer);
  if (sc_writer_open(&(struct sc_writer_options){.path = forked->path}, &own, NULL) != SC_OK)
    return 3;
  thread = sc_writer_thread_begin(own);
  for (uint64_t i = 0; i < 100; i++)
    if (!write_call(thread, i))
      return 4;
  sc_writer_close(own);
  return 0;
}

static void a_forked_child_leaves_the_parents_file_alone(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "parent.sctrace"), *own = in_folder(folder, "child.sctrace");
  struct sc_writer *writer = open_writer(path, 0);
  struct forked forked = {writer, sc_writer_thread_begin(writer), own};
  struct tally tally;

  (void)state;
  for (uint64_t i = 0; i < 50; i++)
    assert_true(write_call(forked.thread, i));
  assert_int_equal(in_child(child_with_a_file_of_its_own, &forked), 0);
  for (uint64_t i = 50; i < 3000; i++) /* the parent goes on */
    assert_true(write_call(forked.thread, i));
  sc_writer_close(writer);
  tally = read_all(path);
  assert_sound(&tally);
  assert_int_equal(tally.calls, 3000);
  assert_int_equal(tally.live.lost_records, 0);
  tally = read_all(own);
  assert_sound(&tally);
  assert_int_equal(tally.calls, 100);
  unlink(own);
  free(own);
  remove_folder(folder, path);
}

static void a_child_that_nobody_told_of_the_fork_records_nothing(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "parent.sctrace");
  struct sc_writer *writer = open_writer(path, 0);
  struct sc_writer_thread *thread = sc_writer_thread_begin(writer);
  struct tally tally;
  int status;
  pid_t pid;

  (void)state;
  assert_true(write_call(thread, 0));
  pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* no atfork handler would run */
  assert_true(pid >= 0);
  if (pid == 0) {
    bool wrote = write_call(thread, 1) || sc_writer_last_call(thread);

    sc_writer_submission(thread, true);
    sc_writer_thread_end(thread);
    _exit(wrote);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  sc_writer_close(writer);
  tally = read_all(path);
  assert_sound(&tally);
  assert_int_equal(tally.calls, 1);
  remove_folder(folder, path);
}

struct busy {
  struct sc_writer *writer;
  bool stop;
};

static void *register_and_end(void *argument) {
  struct busy *busy = argument;

  while (!__atomic_load_n(&busy->stop, __ATOMIC_RELAXED))
    sc_writer_thread_end(sc_writer_thread_begin(busy->writer));
  return NULL;
}

static int abandon_at_once(void *argument) {
  struct busy *busy = argument;

  sc_writer_abandon(busy->writer);
  return sc_writer_thread_begin(busy->writer) ? 1 : 0;
}

/* The list of threads changes while it is copied by fork; the lock is held by a thread that the child lacks. */
static void a_fork_amid_changing_threads_is_survived(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "busy.sctrace");
  struct busy busy = {.writer = open_writer(path, 0)};
  pthread_t threads[3];

  (void)state;
  for (int i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, register_and_end, &busy), 0);
  for (int i = 0; i < 100; i++)
    assert_int_equal(in_child(abandon_at_once, &busy), 0);
  __atomic_store_n(&busy.stop, true, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  sc_writer_close(busy.writer);
  remove_folder(folder, path);
}

/* ---- threads ------------------------------------------------------------------------------------------ */

enum { CROWD = 64, CROWD_RECORDS = 3000 };

struct member {
  struct sc_writer *writer;
  pthread_barrier_t *start;
  bool end, ok;
};

static void *write_in_a_crowd(void *argument) {
  struct member *member = argument;
  struct sc_writer_thread *thread;

  pthread_barrier_wait(member->start);
  thread = sc_writer_thread_begin(member->writer);
  member->ok = thread != NULL;
  for (uint64_t i = 0; i < CROWD_RECORDS; i++) {
    sc_writer_submission(thread, true);
    member->ok &= write_call(thread, i);
  }
  if (member->end)
    sc_writer_thread_end(thread);
  return NULL;
}

static void sixty_four_threads_write_at_once(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "crowd.sctrace");
  struct sc_writer *writer = open_writer(path, 0);
  struct member members[CROWD];
  pthread_t threads[CROWD];
  pthread_barrier_t start;
  struct tally tally;

  (void)state;
  pthread_barrier_init(&start, NULL, CROWD);
  for (int i = 0; i < CROWD; i++) {
    members[i] = (struct member){.writer = writer, .start = &start, .end = i % 2 == 0};
    assert_int_equal(pthread_create(&threads[i], NULL, write_in_a_crowd, &members[i]), 0);
  }
  for (int i = 0; i < CROWD; i++) {
    pthread_join(threads[i], NULL);
    assert_true(members[i].ok);
  }
  sc_writer_close(writer);
  tally = read_all(path);
  assert_sound(&tally);
  assert_int_equal(tally.calls, CROWD * CROWD_RECORDS);
  assert_int_equal(tally.threads_seen, UINT64_MAX);
  assert_int_equal(tally.lost + tally.live.lost_records + tally.live.lost_chunks, 0);
  pthread_barrier_destroy(&start);
  remove_folder(folder, path);
}

static void *write_until_refused(void *argument) {
  struct sc_writer_thread *thread = sc_writer_thread_begin(argument);
  uint64_t i = 0;

  while (write_call(thread, i))
    i++;
  for (int late = 0; late < 1000; late++) { /* a thread that outlives the close does no harm */
    sc_writer_submission(thread, true);
    write_call(thread, i);
  }
  sc_writer_thread_end(thread);
  return NULL;
}

/* At exit the program's other threads still run. */
static void closing_under_running_threads_leaves_a_sound_file(void **state) {
  (void)state;
  for (int round = 0; round < 50; round++) {
    char *folder = new_folder(), *path = in_folder(folder, "running.sctrace");
    struct sc_writer *writer = open_writer(path, 0);
    pthread_t threads[4];
    struct tally tally;

    for (int i = 0; i < 4; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, write_until_refused, writer), 0);
    usleep(200 * (useconds_t)(round % 10));
    sc_writer_close(writer);
    for (int i = 0; i < 4; i++)
      pthread_join(threads[i], NULL);
    tally = read_all(path);
    assert_sound(&tally);
    assert_true(tally.live.end_mono_ns != 0);
    remove_folder(folder, path);
  }
}

static void *live_briefly(void *argument) {
  struct sc_writer *writer = argument;

  for (int i = 0; i < 500; i++) {
    struct sc_writer_thread *thread = sc_writer_thread_begin(writer);

    write_call(thread, 0);
    sc_writer_thread_end(thread);
  }
  return NULL;
}

static void thousands_of_short_threads_get_a_page_each(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "short.sctrace");
  struct sc_writer *writer = open_writer(path, 0);
  pthread_t threads[4];
  struct tally tally;
  struct stat st;

  (void)state;
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, live_briefly, writer), 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  sc_writer_close(writer);
  tally = read_all(path);
  assert_sound(&tally);
  assert_int_equal(tally.calls, 2000);
  assert_int_equal(tally.batches, 2000);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_size, 2001 * sysconf(_SC_PAGESIZE));
  remove_folder(folder, path);
}

/* ---- no room -------------------------------------------------------------------------------------------- */

struct room {
  const char *path;
  uint64_t limit;
};

/* Writes ten times what fits in limit, then checks the writer's own account. */
static int write_beyond_the_limit(const struct room *room, struct sc_writer *writer) {
  struct sc_writer_thread *thread = sc_writer_thread_begin(writer), *second;
  uint64_t total = room->limit / SC_TRACE_UNIT * 10, written = 0;

  errno = 4711;
  while (written < total && write_call(thread, written))
    written++;
  for (uint64_t i = written + 1; i < total; i++)
    if (write_call(thread, i))
      return 2; /* recording has stopped: no record after the first loss */
  if (errno != 4711)
    return 3;
  if (written * SC_TRACE_UNIT > room->limit || written == 0)
    return 4;
  if (sc_writer_live(writer)->lost_records != total - written || sc_writer_live(writer)->full != 1)
    return 5;
  second = sc_writer_thread_begin(writer);
  if (!second || write_call(second, 0) || sc_writer_live(writer)->lost_records != total - written + 1)
    return 6;
  if (sc_writer_live(writer)->lost_chunks != 2)
    return 7;
  sc_writer_close(writer);
  return 0;
}

static void assert_stopped_file(const char *path, uint64_t limit) {
  struct tally tally = read_all(path);
  struct stat st;

  assert_sound(&tally);
  assert_true(tally.calls > 0);
  assert_int_equal(tally.live.full, 1);
  assert_int_equal(tally.live.lost_records, limit / SC_TRACE_UNIT * 10 - tally.calls + 1);
  assert_int_equal(stat(path, &st), 0);
  assert_true((uint64_t)st.st_size <= limit);
}

static int record_under_rlimit(void *argument) {
  struct room *room = argument;
  struct sc_writer *writer = NULL;
  struct rlimit limit = {room->limit, room->limit};

  if (sc_writer_open(&(struct sc_writer_options){.path = room->path}, &writer, NULL) != SC_OK)
    return 1;
  signal(SIGXFSZ, SIG_DFL); /* would end this child */
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
    return 1;
  return write_beyond_the_limit(room, writer);
}

static void a_file_size_limit_stops_recording_without_a_signal(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "limited.sctrace");
  struct room room = {path, 1000000}; /* no multiple of a page */

  (void)state;
  assert_int_equal(in_child(record_under_rlimit, &room), 0);
  assert_stopped_file(path, room.limit);
  remove_folder(folder, path);
}

static int open_under_zero_rlimit(void *argument) {
  struct sc_writer *writer = NULL;
  struct sc_error err = {0};
  struct rlimit limit = {0, 0};

  if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
    return 1;
  if (sc_writer_open(&(struct sc_writer_options){.path = argument}, &writer, &err) != SC_ERR_IO)
    return 2;
  return strstr(err.message, argument) ? 0 : 3;
}

static void an_open_that_finds_no_room_leaves_no_file(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "none.sctrace");

  (void)state;
  assert_int_equal(in_child(open_under_zero_rlimit, path), 0);
  assert_int_equal(access(path, F_OK), -1);
  remove_folder(folder, path);
}

static int record_under_max_bytes(void *argument) {
  struct room *room = argument;
  struct sc_writer *writer = NULL;

  if (sc_writer_open(&(struct sc_writer_options){.path = room->path, .max_bytes = room->limit}, &writer, NULL) != SC_OK)
    return 1;
  return write_beyond_the_limit(room, writer);
}

static void max_bytes_stops_recording(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "limited.sctrace");
  struct room room = {path, 777777};

  (void)state;
  assert_int_equal(in_child(record_under_max_bytes, &room), 0);
  assert_stopped_file(path, room.limit);
  remove_folder(folder, path);
}

/* Makes the system call fail as on a file system, and a kernel, that know neither fallocate nor MADV_POPULATE_WRITE. */
static bool forbid_allocation_calls(void) {
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 3, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23 /* MADV_POPULATE_WRITE */, 2, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int record_without_allocation_calls(void *argument) {
  if (!forbid_allocation_calls())
    return 77;
  return record_under_rlimit(argument);
}

static void a_file_system_without_fallocate_is_as_safe(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "emulated.sctrace");
  struct room room = {path, 500000};
  int status = in_child(record_without_allocation_calls, &room);

  (void)state;
  if (status == 77) {
    print_message("skipped: seccomp filters are not allowed here\n");
    remove_folder(folder, path);
    skip();
  }
  assert_int_equal(status, 0);
  assert_stopped_file(path, room.limit);
  remove_folder(folder, path);
}

struct full_disk {
  char *folder;
  bool emulated;
};

/* A tmpfs of 1 MiB in a mount name space of this child's own. 77: not allowed here. */
static int record_on_a_full_disk(void *argument) {
  struct full_disk *disk = argument;
  struct room room = {in_folder(disk->folder, "full.sctrace"), 1 << 20};
  struct sc_writer *writer = NULL;
  struct tally tally;
  int status;

  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("none", disk->folder, "tmpfs", 0, "size=1m") != 0)
    return 77;
  if (disk->emulated && !forbid_allocation_calls())
    return 77;
  if (sc_writer_open(&(struct sc_writer_options){.path = room.path}, &writer, NULL) != SC_OK)
    return 1;
  status = write_beyond_the_limit(&room, writer);
  if (status)
    return status;
  tally = read_all(room.path); /* the mount ends with this child */
  assert_sound(&tally);
  if (tally.calls * SC_TRACE_UNIT < (1 << 20) * 3 / 4) /* and most of the room was used */
    return 8;
  return tally.live.full == 1 && tally.live.lost_records == room.limit / SC_TRACE_UNIT * 10 - tally.calls + 1 ? 0 : 9;
}

static void a_full_disk_stops_recording_without_a_signal(void **state) {
  struct full_disk disk = {new_folder(), false};
  int plain = in_child(record_on_a_full_disk, &disk), emulated;

  (void)state;
  disk.emulated = true;
  emulated = in_child(record_on_a_full_disk, &disk);
  rmdir(disk.folder);
  free(disk.folder);
  if (plain == 77 || emulated == 77) {
    print_message("skipped: mounting a small tmpfs (or a seccomp filter) is not allowed here; run as root\n");
    skip();
  }
  assert_int_equal(plain, 0);
  assert_int_equal(emulated, 0);
}

static int open_as_nobody(void *argument) {
  struct sc_writer *writer = NULL;
  struct sc_error err = {0};

  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
    return 77;
  if (sc_writer_open(&(struct sc_writer_options){.path = argument}, &writer, &err) != SC_ERR_IO)
    return 1;
  return strstr(err.message, argument) && strstr(err.message, strerror(EACCES)) ? 0 : 2;
}

static void a_folder_that_cannot_be_written_is_an_error_that_names_it(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "refused.sctrace");

  (void)state;
  assert_int_equal(chmod(folder, 0555), 0);
  assert_int_equal(in_child(open_as_nobody, path), 0);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(chmod(folder, 0700), 0);
  remove_folder(folder, path);
}

static void a_missing_folder_is_an_error(void **state) {
  struct sc_writer *writer = NULL;
  struct sc_error err = {0};

  (void)state;
  assert_int_equal(sc_writer_open(&(struct sc_writer_options){.path = "/no/such/folder/x.sctrace"}, &writer, &err), SC_ERR_IO);
  assert_non_null(strstr(err.message, "/no/such/folder/x.sctrace"));
  assert_null(writer);
}

static void an_existing_file_is_never_overwritten(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "mine.sctrace"), content[8] = "";
  struct sc_writer *writer = NULL;
  struct sc_error err = {0};
  FILE *file = fopen(path, "w");

  (void)state;
  assert_non_null(file);
  fputs("mine", file);
  fclose(file);
  assert_int_equal(sc_writer_open(&(struct sc_writer_options){.path = path}, &writer, &err), SC_ERR_IO);
  file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(content, sizeof content, file));
  fclose(file);
  assert_string_equal(content, "mine");
  remove_folder(folder, path);
}

static void the_file_is_private_to_the_user(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "mode.sctrace");
  struct stat st;

  (void)state;
  umask(0);
  sc_writer_close(open_writer(path, 0));
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  remove_folder(folder, path);
}

/* ---- manners ---------------------------------------------------------------------------------------------- */

/* A daemon closes every descriptor; the number is then reused for a file of the program's own. */
static int lose_the_descriptor(void *argument) {
  const char *folder = argument;
  char *path = in_folder(folder, "trace.sctrace"), *mine = in_folder(folder, "mine");
  struct sc_writer *writer = NULL;
  struct sc_writer_thread *thread;
  struct stat st;
  uint64_t i = 0;

  if (sc_writer_open(&(struct sc_writer_options){.path = path}, &writer, NULL) != SC_OK)
    return 1;
  thread = sc_writer_thread_begin(writer);
  for (int fd = 3; fd < 1024; fd++)
    close(fd);
  for (int fd = 3; fd < 200; fd++) { /* whatever number the trace had now belongs to this file */
    int opened = open(mine, O_RDWR | O_CREAT, 0600);

    if (opened < 0)
      return 2;
  }
  if (chdir("/") != 0)
    return 3;
  for (; i < 50000; i++)
    if (!write_call(thread, i))
      return 4;
  sc_writer_close(writer);
  if (stat(mine, &st) != 0 || st.st_size != 0)
    return 5; /* we wrote into the program's file */
  return fcntl(150, F_GETFD) >= 0 ? 0 : 6; /* and closed none of its descriptors */
}

static void a_program_that_closes_all_descriptors_is_still_recorded(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "trace.sctrace"), *mine = in_folder(folder, "mine");
  struct tally tally;

  (void)state;
  assert_int_equal(in_child(lose_the_descriptor, folder), 0);
  tally = read_all(path);
  assert_sound(&tally);
  assert_int_equal(tally.calls, 50000);
  assert_true(tally.live.end_mono_ns != 0);
  unlink(mine);
  free(mine);
  remove_folder(folder, path);
}

static void errno_signals_and_cancellation_are_as_before(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "errno.sctrace");
  struct sc_writer *writer;
  struct sc_writer_thread *thread;
  sigset_t before, after;
  int cancel;

  (void)state;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  errno = 4711;
  writer = open_writer(path, 0);
  assert_int_equal(errno, 4711);
  thread = sc_writer_thread_begin(writer);
  assert_int_equal(errno, 4711);
  for (uint64_t i = 0; i < 5000; i++)
    write_call(thread, i);
  sc_writer_text(thread, SC_RECORD_NOTE, SC_NOTE_TEXT, "note", 4);
  assert_int_equal(errno, 4711);
  sc_writer_thread_end(thread);
  sc_writer_close(writer);
  assert_int_equal(errno, 4711);
  sc_writer_abandon(writer);
  assert_int_equal(errno, 4711);
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  for (int sig = 1; sig <= SIGRTMAX; sig++)
    assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
  assert_int_equal(cancel, PTHREAD_CANCEL_ENABLE);
  remove_folder(folder, path);
}

static void a_record_larger_than_a_chunk_is_a_counted_loss(void **state) {
  struct make_trace *t = mt_new(0);
  struct sc_writer_thread *thread = mt_thread(t);

  (void)state;
  assert_null(sc_writer_reserve(thread, SC_TRACE_CHUNK / SC_TRACE_UNIT));
  assert_null(sc_writer_reserve(thread, UINT32_MAX));
  assert_int_equal(sc_writer_live(mt_writer(t))->lost_records, 2);
  assert_non_null(sc_writer_reserve(thread, SC_TRACE_CHUNK / SC_TRACE_UNIT - 1)); /* the largest that fits */
  mt_free(t);
}

static void null_threads_and_writers_are_harmless(void **state) {
  (void)state;
  assert_null(sc_writer_reserve(NULL, 1));
  assert_null(sc_writer_last_call(NULL));
  sc_writer_submission(NULL, true);
  sc_writer_thread_end(NULL);
  sc_writer_close(NULL);
  sc_writer_abandon(NULL);
}

static void a_closed_writer_takes_no_more(void **state) {
  char *folder = new_folder(), *path = in_folder(folder, "closed.sctrace");
  struct sc_writer *writer = open_writer(path, 0);
  struct sc_writer_thread *thread = sc_writer_thread_begin(writer);
  struct tally tally;

  (void)state;
  assert_true(write_call(thread, 0));
  sc_writer_close(writer);
  sc_writer_close(writer);
  assert_false(write_call(thread, 1));
  sc_writer_submission(thread, true);
  sc_writer_thread_end(thread);
  assert_null(sc_writer_thread_begin(writer));
  assert_int_equal(sc_writer_live(writer)->lost_records, 1);
  tally = read_all(path);
  assert_sound(&tally);
  assert_int_equal(tally.calls, 1);
  remove_folder(folder, path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_committed_record_survives_sigkill),
    cmocka_unit_test(records_survive_an_exit_without_close),
    cmocka_unit_test(a_forked_child_leaves_the_parents_file_alone),
    cmocka_unit_test(a_child_that_nobody_told_of_the_fork_records_nothing),
    cmocka_unit_test(a_fork_amid_changing_threads_is_survived),
    cmocka_unit_test(sixty_four_threads_write_at_once),
    cmocka_unit_test(closing_under_running_threads_leaves_a_sound_file),
    cmocka_unit_test(thousands_of_short_threads_get_a_page_each),
    cmocka_unit_test(a_file_size_limit_stops_recording_without_a_signal),
    cmocka_unit_test(an_open_that_finds_no_room_leaves_no_file),
    cmocka_unit_test(max_bytes_stops_recording),
    cmocka_unit_test(a_file_system_without_fallocate_is_as_safe),
    cmocka_unit_test(a_full_disk_stops_recording_without_a_signal),
    cmocka_unit_test(a_folder_that_cannot_be_written_is_an_error_that_names_it),
    cmocka_unit_test(a_missing_folder_is_an_error),
    cmocka_unit_test(an_existing_file_is_never_overwritten),
    cmocka_unit_test(the_file_is_private_to_the_user),
    cmocka_unit_test(a_program_that_closes_all_descriptors_is_still_recorded),
    cmocka_unit_test(errno_signals_and_cancellation_are_as_before),
    cmocka_unit_test(a_record_larger_than_a_chunk_is_a_counted_loss),
    cmocka_unit_test(null_threads_and_writers_are_harmless),
    cmocka_unit_test(a_closed_writer_takes_no_more),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
