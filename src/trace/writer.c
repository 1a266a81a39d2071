/* SPDX-License-Identifier: Apache-2.0
 * The trace writer. It runs inside other people's processes, so: libc and pthread only; no signal raised, errno kept;
 * every page that a record may touch has its disk block before the first store; a killed process leaves a readable file.
 *
 * Record path (writer_inline.h): a store into the thread's chunk, which is mapped from the file (its home), and a release
 * store of its committed count. A full home is appended to the file with pwrite and used again: a page fault for each
 * page of trace, and mmap and munmap for each chunk, would cost three times as much, and take the process's mmap lock
 * from the program. Everything here is the slow path, taken once per chunk, under one lock. */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "trace/checksum.h"
#include "trace/writer_inline.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; headers older than glibc 2.35 lack it */
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

enum {
  FD_MIN = 100,              /* out of the way of programs that expect low numbers or close them */
  SLAB_BYTES = 16384,        /* thread structs are carved from blocks of this size */
  RETRY_AFTER = 1024,        /* lost records before a refused mapping is asked for again */
  PATH_BYTES = 4096,
};

struct sc_writer {
  pthread_mutex_t lock; /* guards all below but `full`; never held by a record that has room */
  int fd;
  dev_t device; /* which file fd was opened on: a program may close our descriptor and reuse its number */
  ino_t inode;
  uint32_t slot_size;
  uint64_t max_bytes;
  uint64_t next; /* first byte that no chunk has: where the file ends, or will */
  uint64_t serials;
  bool closed;
  bool full; /* relaxed atomic: recording has stopped for want of room */
  struct sc_writer_thread *threads, *free_threads;
  struct sc_writer_thread *slabs; /* the blocks they are carved from: the first of each links to the next */
  struct sc_trace_live *live; /* in the mapped slot 0; &forgotten once abandoned */
  struct sc_trace_beyond *beyond; /* behind it; likewise */
  struct sc_trace_live forgotten;
  struct sc_trace_beyond forgotten_beyond;
  char path[PATH_BYTES]; /* absolute */
};

/* ---- leaving no trace in the program: errno, signals, cancellation --------------------------- */

/* While the lock is held no handler of the program may run on this thread (it could call CUDA and come back here),
 * and no cancellation may unwind it. */
struct quiet {
  sigset_t signals;
  int cancel, error;
};

static void quiet_begin(struct quiet *quiet) {
  sigset_t all;

  quiet->error = errno;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &quiet->signals);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel);
}

static void quiet_end(struct quiet *quiet) {
  int ignored;

  pthread_setcancelstate(quiet->cancel, &ignored);
  pthread_sigmask(SIG_SETMASK, &quiet->signals, NULL);
  errno = quiet->error;
}

static void count(uint64_t *counter, uint64_t n) { __atomic_fetch_add(counter, n, __ATOMIC_RELAXED); }

static bool is_full(const struct sc_writer *writer) { return __atomic_load_n(&writer->full, __ATOMIC_RELAXED); }

static void stop_recording(struct sc_writer *writer) {
  __atomic_store_n(&writer->full, true, __ATOMIC_RELAXED);
  __atomic_store_n(&writer->live->full, 1, __ATOMIC_RELAXED);
}

/* ---- the file --------------------------------------------------------------------------------- */

static bool is_our_file(const struct sc_writer *writer, int fd) {
  struct stat st;

  return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == writer->device && st.st_ino == writer->inode;
}

/* Makes sure that fd still is our file. A program that closed it (daemons close all) gets its file opened again. */
static bool hold_file(struct sc_writer *writer) {
  int fd;

  if (is_our_file(writer, writer->fd))
    return true;
  fd = open(writer->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (!is_our_file(writer, fd)) {
    if (fd >= 0)
      close(fd);
    return false;
  }
  writer->fd = fd; /* the old number is somebody else's by now: not closed */
  return true;
}

/* The largest size the file may have: above RLIMIT_FSIZE the kernel would send SIGXFSZ. */
static uint64_t size_limit(const struct sc_writer *writer) {
  uint64_t limit = INT64_MAX;
  struct rlimit rlimit;

  if (getrlimit(RLIMIT_FSIZE, &rlimit) == 0 && rlimit.rlim_cur != RLIM_INFINITY && rlimit.rlim_cur < limit)
    limit = rlimit.rlim_cur;
  if (writer->max_bytes && writer->max_bytes < limit)
    limit = writer->max_bytes;
  return limit;
}

/* Checks that `size` more bytes may be added to our file. 0 or an errno value. */
static int may_add(struct sc_writer *writer, size_t size) {
  uint64_t limit = size_limit(writer);

  if (!hold_file(writer))
    return EBADF;
  return writer->next > limit || size > limit - writer->next ? EFBIG : 0;
}

/* After a failure: gives back what was half added. Shrinking needs no room; if it fails, readers skip the rest. */
static void drop_half_added(struct sc_writer *writer) {
  if (ftruncate(writer->fd, (off_t)writer->next) != 0)
    return;
}

/* Writes zeros over file bytes: allocates what a mapped store will need, and reports a failure. 0 or an errno value. */
static int write_zeros(const struct sc_writer *writer, uint64_t offset, size_t size) {
  static const char zeros[4096]; /* sizes are multiples of it */

  for (size_t done = 0; done < size; done += sizeof zeros) {
    ssize_t n = pwrite(writer->fd, zeros, sizeof zeros, (off_t)(offset + done));

    if (n != (ssize_t)sizeof zeros)
      return n < 0 ? errno : ENOSPC;
  }
  return 0;
}

/* Maps fresh bytes of the file so that no forked child has them and no store into them can fault for want of disk:
 * some file systems (copy on write, compressed) promise blocks and still refuse them at the first store, which would
 * be a SIGBUS. 0 or an errno value. */
static int map_range(const struct sc_writer *writer, uint64_t offset, size_t size, void **out) {
  void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, writer->fd, (off_t)offset);
  int error = 0;

  if (at == MAP_FAILED)
    return errno;
  if (madvise(at, size, MADV_DONTFORK) != 0)
    error = errno;
  else if (madvise(at, size, MADV_POPULATE_WRITE) != 0)
    error = errno == EINVAL ? write_zeros(writer, offset, size) /* a kernel that does not know it */
            : errno == EFAULT ? ENOSPC                          /* the SIGBUS that was avoided */
                              : errno;
  if (error) {
    munmap(at, size);
    return error;
  }
  *out = at;
  return 0;
}

/* Adds bytes to the file's end and maps them. Blocks are allocated, never only promised: a store into a hole of a full
 * disk is a SIGBUS. 0 or an errno value. */
static int add_mapped(struct sc_writer *writer, size_t size, void **out) {
  int error = may_add(writer, size);

  if (error)
    return error;
  do
    error = posix_fallocate(writer->fd, (off_t)writer->next, (off_t)size);
  while (error == EINTR); /* signals are blocked; a debugger's stop still interrupts */
  if (!error)
    error = map_range(writer, writer->next, size, out);
  if (error)
    drop_half_added(writer);
  else
    writer->next += size;
  return error;
}

/* ---- chunks ------------------------------------------------------------------------------------- */

static uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

/* 4, 16, then 64 KiB: a thread of a few calls costs a page, a busy one changes chunks once per 1,023 records. */
static uint32_t home_size(const struct sc_writer *writer, const struct sc_writer_thread *thread, uint32_t units) {
  uint32_t size = thread->sequence == 0 ? SC_TRACE_SLOT : thread->sequence == 1 ? 4 * SC_TRACE_SLOT : SC_TRACE_CHUNK;
  uint32_t need = (uint32_t)sizeof(struct sc_trace_chunk) + units * SC_TRACE_UNIT;

  return round_up(size < need ? need : size, writer->slot_size);
}

/* Seals a chunk in place. Only its own thread may: a thread that is stopped in the middle of a commit, or of a change to
 * its last record, would make the checksum wrong later. */
static void seal(struct sc_trace_chunk *chunk, uint16_t flags) {
  struct sc_trace_chunk sealed = *chunk;

  sealed.flags = flags;
  chunk->checksum = sc_checksum_chunk(&sealed, chunk + 1, chunk->committed);
  __atomic_store_n(&chunk->flags, flags, __ATOMIC_RELEASE);
}

/* Starts the thread on an empty chunk: the limit first opens the way for records when all else is in place. */
static void enter_chunk(struct sc_writer_thread *thread, struct sc_trace_chunk *chunk) {
  thread->chunk = chunk;
  thread->last = NULL;
  thread->cursor = (unsigned char *)(chunk + 1);
  __atomic_store_n(&thread->limit, (unsigned char *)chunk + chunk->size, __ATOMIC_RELAXED);
  thread->sequence++;
  thread->lost = thread->retry = 0;
  thread->denied = false;
}

/* Gives the thread a new home. The one it had stays in the file as an ordinary chunk. 0 or an errno value. */
static int move_home(struct sc_writer *writer, struct sc_writer_thread *thread, uint32_t units) {
  uint32_t size = home_size(writer, thread, units);
  struct sc_trace_chunk *old = thread->chunk, *fresh;
  void *at = NULL;
  int error = add_mapped(writer, size, &at);

  if (error)
    return error;
  fresh = at;
  fresh->kind = SC_CHUNK_RECORDS;
  fresh->flags = SC_CHUNK_OPEN | SC_CHUNK_HOME;
  fresh->size = size;
  fresh->tid = thread->tid;
  fresh->thread = thread->serial;
  fresh->sequence = thread->sequence;
  fresh->lost = thread->lost;
  if (old) { /* what was submitted since the last record belongs to the next one */
    fresh->submissions = old->submissions;
    fresh->launches = old->launches;
    old->submissions = old->launches = 0;
  }
  /* The magic comes last: without it the slot counts as unused. */
  __atomic_store_n(&fresh->magic, SC_CHUNK_MAGIC, __ATOMIC_RELEASE);
  __atomic_fetch_add(&writer->live->chunks, 1, __ATOMIC_RELEASE);
  enter_chunk(thread, fresh);
  if (old) {
    size_t old_size = old->size;

    seal(old, old->flags & (uint16_t)~(SC_CHUNK_OPEN | SC_CHUNK_HOME));
    munmap(old, old_size);
  }
  return 0;
}

/* Writes all of two or three pieces. 0 or an errno value. */
static int write_pieces(int fd, const struct iovec *pieces, int count, uint64_t offset) {
  size_t total = 0;
  ssize_t n;

  for (int i = 0; i < count; i++)
    total += pieces[i].iov_len;
  n = pwritev(fd, pieces, count, (off_t)offset);
  return n == (ssize_t)total ? 0 : n < 0 ? errno : ENOSPC; /* regular files are cut short only for want of room */
}

/* Appends the full home to the file as a closed chunk, and empties it. 0 or an errno value.
 *
 * Killed at any point, the file is sound: the copy is VOID, which readers skip, until it is whole. Then home and copy
 * have the same sequence number, and readers take only the copy. Then the home is empty, then it is the next one. */
static int empty_home(struct sc_writer *writer, struct sc_writer_thread *thread) {
  static const char zeros[SC_TRACE_SLOT_MAX];
  struct sc_trace_chunk *home = thread->chunk, copy = *home, hidden;
  uint32_t used = (uint32_t)sizeof copy + home->committed;
  int error;

  copy.flags &= (uint16_t)~(SC_CHUNK_OPEN | SC_CHUNK_HOME);
  copy.size = round_up(used, writer->slot_size);
  copy.submissions = copy.launches = 0; /* they stay in the home, for its next record */
  copy.checksum = sc_checksum_chunk(&copy, home + 1, copy.committed);
  hidden = copy;
  hidden.kind = SC_CHUNK_VOID;
  hidden.flags = SC_CHUNK_OPEN;
  hidden.committed = 0;
  error = may_add(writer, copy.size);
  if (!error) {
    const struct iovec whole[] = {
      {&hidden, sizeof hidden}, {home + 1, home->committed}, {(void *)(uintptr_t)zeros, copy.size - used}};
    const struct iovec header[] = {{&copy, sizeof copy}};

    error = write_pieces(writer->fd, whole, 3, writer->next);
    if (!error)
      error = write_pieces(writer->fd, header, 1, writer->next);
    if (error)
      drop_half_added(writer);
  }
  if (error)
    return error;
  writer->next += copy.size;
  __atomic_fetch_add(&writer->live->chunks, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&home->committed, 0, __ATOMIC_RELEASE);
  home->flags = SC_CHUNK_OPEN | SC_CHUNK_HOME;
  home->lost = thread->lost;
  __atomic_store_n(&home->sequence, thread->sequence, __ATOMIC_RELEASE);
  enter_chunk(thread, home);
  return 0;
}

/* Makes room for `units` in the thread's chunk, which has too little. */
static bool make_room(struct sc_writer_thread *thread, uint32_t units) {
  struct sc_writer *writer = thread->writer;
  uint64_t start = sc_clock_mono_ns();
  int error;

  pthread_mutex_lock(&writer->lock);
  if (writer->closed || is_full(writer))
    error = ENOSPC;
  else if (thread->chunk && thread->chunk->size >= SC_TRACE_CHUNK)
    error = empty_home(writer, thread);
  else
    error = move_home(writer, thread, units);
  if (error && !thread->denied) {
    count(&writer->live->lost_chunks, 1);
    thread->denied = true;
  }
  if (error == ENOMEM || error == EAGAIN) { /* too many mappings: says nothing about the disk */
    thread->retry = thread->lost + RETRY_AFTER;
  } else if (error) {
    thread->retry = UINT64_MAX;
    if (!writer->closed)
      stop_recording(writer);
  }
  pthread_mutex_unlock(&writer->lock);
  count(&writer->live->overhead_ns, sc_clock_mono_ns() - start);
  return !error;
}

static void *lose(struct sc_writer_thread *thread) {
  thread->lost++;
  thread->last = NULL; /* no longer the thread's last record */
  count(&thread->writer->live->lost_records, 1);
  return NULL;
}

void *sc_writer_reserve_slow(struct sc_writer_thread *thread, uint32_t units) {
  struct sc_writer *writer = thread->writer;
  struct quiet quiet;
  bool ok;

  if (!writer) /* a forked child */
    return NULL;
  if (units > (SC_TRACE_CHUNK - sizeof(struct sc_trace_chunk)) / SC_TRACE_UNIT)
    return lose(thread);
  if (thread->lost < thread->retry)
    return lose(thread);
  quiet_begin(&quiet);
  ok = make_room(thread, units);
  quiet_end(&quiet);
  return ok ? thread->cursor : lose(thread);
}

/* ---- threads ---------------------------------------------------------------------------------- */

/* From blocks that a forked child sees as zeros, whichever way it was forked. The lock is held. */
static struct sc_writer_thread *allocate_thread(struct sc_writer *writer) {
  struct sc_writer_thread *thread = writer->free_threads;

  if (!thread) {
    struct sc_writer_thread *slab =
      mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (slab == MAP_FAILED)
      return NULL;
    /* Where the kernel lacks it, sc_writer_abandon alone protects the parent's file. */
    (void)madvise(slab, SLAB_BYTES, MADV_WIPEONFORK);
    slab->next = writer->slabs;
    writer->slabs = slab;
    for (size_t i = 1; i < SLAB_BYTES / sizeof *slab; i++) {
      slab[i].next = thread;
      thread = &slab[i];
    }
  }
  writer->free_threads = thread->next;
  memset(thread, 0, sizeof *thread);
  return thread;
}

/* The list can be walked forward at any moment of a change: a fork copies it as it is, without the lock. */
static void link_thread(struct sc_writer *writer, struct sc_writer_thread *thread) {
  thread->next = writer->threads;
  thread->link = &writer->threads;
  if (thread->next)
    thread->next->link = &thread->next;
  __atomic_store_n(&writer->threads, thread, __ATOMIC_RELEASE);
}

static void unlink_thread(struct sc_writer_thread *thread) {
  __atomic_store_n(thread->link, thread->next, __ATOMIC_RELEASE);
  if (thread->next)
    thread->next->link = thread->link;
}

struct sc_writer_thread *sc_writer_thread_begin(struct sc_writer *writer) {
  struct sc_writer_thread *thread;
  struct quiet quiet;

  quiet_begin(&quiet);
  pthread_mutex_lock(&writer->lock);
  thread = writer->closed ? NULL : allocate_thread(writer);
  if (thread) {
    thread->writer = writer;
    thread->serial = ++writer->serials;
    thread->tid = (uint32_t)syscall(SYS_gettid);
    link_thread(writer, thread);
  }
  pthread_mutex_unlock(&writer->lock);
  if (thread)
    make_room(thread, 0); /* at once, so that a thread which only launches is in the file; without room it counts losses */
  else
    count(&writer->live->lost_chunks, 1);
  quiet_end(&quiet);
  return thread;
}

void sc_writer_thread_end(struct sc_writer_thread *thread) {
  struct sc_writer *writer = thread ? thread->writer : NULL;
  struct quiet quiet;

  if (!writer)
    return;
  quiet_begin(&quiet);
  pthread_mutex_lock(&writer->lock);
  unlink_thread(thread); /* from here sc_writer_close does not see it */
  pthread_mutex_unlock(&writer->lock);
  if (thread->chunk) {
    size_t size = thread->chunk->size;

    if (!thread->sealed)
      seal(thread->chunk, thread->chunk->flags & (uint16_t)~SC_CHUNK_OPEN);
    munmap(thread->chunk, size);
  }
  memset(thread, 0, sizeof *thread);
  pthread_mutex_lock(&writer->lock);
  thread->next = writer->free_threads;
  writer->free_threads = thread;
  pthread_mutex_unlock(&writer->lock);
  quiet_end(&quiet);
}

void sc_writer_thread_stop(struct sc_writer_thread *thread) {
  __atomic_store_n(&thread->limit, NULL, __ATOMIC_RELAXED);
  thread->last = NULL;
  thread->retry = UINT64_MAX;
}

/* ---- records ------------------------------------------------------------------------------------ */

void *sc_writer_reserve(struct sc_writer_thread *thread, uint32_t units) {
  return sc_writer_reserve_inline(thread, units);
}

void sc_writer_commit(struct sc_writer_thread *thread, uint32_t units) { sc_writer_commit_inline(thread, units); }

struct sc_record_call *sc_writer_last_call(struct sc_writer_thread *thread) {
  return sc_writer_last_call_inline(thread);
}

void sc_writer_submission(struct sc_writer_thread *thread, bool launch) {
  (void)sc_writer_submission_inline(thread, launch);
}

/* Reserves a zeroed record of `fixed` bytes with `length` bytes of text from `text_offset` on. */
static void *reserve_text(struct sc_writer_thread *thread, enum sc_record_kind kind, size_t text_offset,
                          const char *text, size_t length, uint32_t *units) {
  struct sc_record_head *head;

  *units = round_up((uint32_t)(text_offset + length), SC_TRACE_UNIT) / SC_TRACE_UNIT;
  head = sc_writer_reserve_inline(thread, *units);
  if (!head)
    return NULL;
  memset(head, 0, (size_t)*units * SC_TRACE_UNIT);
  head->kind = (uint16_t)kind;
  head->units = (uint16_t)*units;
  if (length)
    memcpy((char *)head + text_offset, text, length);
  return head;
}

static void commit_definition(struct sc_writer_thread *thread, uint32_t units) {
  /* Before the commit: a reader that sees the record also sees that the chunk has definitions. */
  __atomic_or_fetch(&thread->chunk->flags, SC_CHUNK_DEFINES, __ATOMIC_RELAXED);
  sc_writer_commit_inline(thread, units);
}

/* Where to cut a text that is too long: not inside a UTF-8 sequence. */
static size_t cut_length(const char *text, size_t max) {
  size_t n = max;

  while (n > 0 && max - n < 4 && ((unsigned char)text[n] & 0xc0) == 0x80)
    n--;
  return ((unsigned char)text[n] & 0xc0) == 0x80 ? max : n; /* not UTF-8 at all: a plain cut */
}

void sc_writer_text(struct sc_writer_thread *thread, enum sc_record_kind kind, uint32_t id, const char *text,
                    size_t length) {
  struct sc_record_text *record;
  bool cut = length > SC_TRACE_STRING_MAX;
  uint32_t units;

  if (cut)
    length = cut_length(text, SC_TRACE_STRING_MAX);
  record = reserve_text(thread, kind, offsetof(struct sc_record_text, text), text, length, &units);
  if (!record)
    return;
  record->id = id;
  record->length = (uint32_t)length;
  record->flags = cut ? SC_STRING_CUT : 0;
  if (kind == SC_RECORD_STRING || kind == SC_RECORD_META)
    commit_definition(thread, units);
  else
    sc_writer_commit_inline(thread, units);
}

void sc_writer_api(struct sc_writer_thread *thread, uint32_t id, uint8_t domain, uint32_t cbid, enum sc_op op,
                   const char *name) {
  struct sc_record_api *record;
  size_t length = strnlen(name, SC_TRACE_STRING_MAX);
  uint32_t units;

  record = reserve_text(thread, SC_RECORD_API, offsetof(struct sc_record_api, name), name, length, &units);
  if (!record)
    return;
  record->id = id;
  record->cbid = cbid;
  record->domain = domain;
  record->op = (uint8_t)op;
  record->length = (uint16_t)length;
  commit_definition(thread, units);
}

void sc_writer_module(struct sc_writer_thread *thread, uint32_t id, uint32_t path, uint64_t base,
                      const uint8_t *build_id, size_t build_id_length) {
  struct sc_record_module *record;
  uint32_t units;

  record = reserve_text(thread, SC_RECORD_MODULE, sizeof *record, NULL, 0, &units);
  if (!record)
    return;
  record->id = id;
  record->path = path;
  record->base = base;
  if (build_id_length <= sizeof record->build_id) {
    record->build_id_length = (uint8_t)build_id_length;
    if (build_id_length)
      memcpy(record->build_id, build_id, build_id_length);
  }
  commit_definition(thread, units);
}

void sc_writer_frame(struct sc_writer_thread *thread, uint32_t id, uint32_t file, uint32_t function, uint32_t line,
                     uint32_t first_line) {
  struct sc_record_frame *record;
  uint32_t units;

  record = reserve_text(thread, SC_RECORD_FRAME, sizeof *record, NULL, 0, &units);
  if (!record)
    return;
  record->id = id;
  record->file = file;
  record->function = function;
  record->line = line;
  record->first_line = first_line;
  commit_definition(thread, units);
}

void sc_writer_stack(struct sc_writer_thread *thread, uint32_t id, uint32_t flags, const uint32_t *python,
                     size_t python_count, const struct sc_stack_address *native, size_t native_count) {
  struct sc_record_stack *record;
  size_t native_bytes;
  uint32_t units;

  if (native_count > SC_STACK_NATIVE_MAX) {
    native_count = SC_STACK_NATIVE_MAX;
    flags |= SC_STACK_NATIVE_CUT;
  }
  if (python_count > SC_STACK_PYTHON_MAX) {
    python_count = SC_STACK_PYTHON_MAX;
    flags |= SC_STACK_PYTHON_CUT;
  }
  native_bytes = native_count * sizeof *native;
  record = reserve_text(thread, SC_RECORD_STACK, sizeof *record + native_bytes + python_count * sizeof *python, NULL, 0,
                        &units);
  if (!record)
    return;
  record->id = id;
  record->flags = flags;
  record->native = (uint16_t)native_count;
  record->python = (uint16_t)python_count;
  if (native_count)
    memcpy(record->frames, native, native_bytes);
  if (python_count)
    memcpy((char *)record->frames + native_bytes, python, python_count * sizeof *python);
  commit_definition(thread, units);
}

/* ---- the whole ---------------------------------------------------------------------------------- */

struct sc_trace_live *sc_writer_live(struct sc_writer *writer) { return writer->live; }

struct sc_trace_beyond *sc_writer_beyond(struct sc_writer *writer) { return writer->beyond; }

static void fill_header(struct sc_trace_header *header, const struct sc_writer_options *options, uint32_t slot_size) {
  header->version = SC_TRACE_VERSION;
  header->version_min = SC_TRACE_VERSION_MIN;
  header->header_size = sizeof *header;
  header->slot_size = slot_size;
  header->flags = options->flags;
  header->pid = (uint32_t)getpid();
  header->ppid = (uint32_t)getppid();
  header->start_mono_ns = sc_clock_mono_ns();
  header->start_real_ns = sc_clock_real_ns();
  if (gethostname(header->host, sizeof header->host - 1) != 0)
    header->host[0] = '\0';
  memcpy(header->magic, SC_TRACE_MAGIC, sizeof header->magic);
  header->checksum = sc_checksum_header(header, sizeof *header);
}

static enum sc_status absolute_path(char out[PATH_BYTES], const char *path, struct sc_error *err) {
  size_t used = 0, length = strlen(path);

  if (path[0] != '/') { /* the program may change its folder before the file is opened again */
    if (!getcwd(out, PATH_BYTES - 1))
      return sc_error_set(err, SC_ERR_IO, "cannot find the current folder for trace %s: %s", path, strerror(errno));
    used = strlen(out);
    out[used++] = '/';
  }
  if (length >= PATH_BYTES - used)
    return sc_error_set(err, SC_ERR_LIMIT, "the trace's path is longer than %d bytes; use a shorter one", PATH_BYTES - 1);
  memcpy(out + used, path, length + 1);
  return SC_OK;
}

static enum sc_status create_file(struct sc_writer *writer, struct sc_error *err) {
  struct stat st;
  int high, flags;

  writer->fd = open(writer->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (writer->fd < 0)
    return sc_error_set(err, SC_ERR_IO, "cannot create trace %s: %s; choose a folder that can be written and a new name",
                        writer->path, strerror(errno));
  high = fcntl(writer->fd, F_DUPFD_CLOEXEC, FD_MIN);
  if (high >= 0) {
    close(writer->fd);
    writer->fd = high;
  }
  /* A copy-on-write file system (btrfs) would need new blocks whenever a home is written back: ask it not to. Others
   * refuse, which is fine: they write in place. */
  if (ioctl(writer->fd, FS_IOC_GETFLAGS, &flags) == 0) {
    flags |= FS_NOCOW_FL;
    (void)ioctl(writer->fd, FS_IOC_SETFLAGS, &flags);
  }
  if (fstat(writer->fd, &st) != 0)
    return sc_error_set(err, SC_ERR_IO, "cannot examine trace %s: %s", writer->path, strerror(errno));
  writer->device = st.st_dev;
  writer->inode = st.st_ino;
  return SC_OK;
}

static enum sc_status map_first_slot(struct sc_writer *writer, struct sc_trace_header **out, struct sc_error *err) {
  void *at = NULL;
  int error = add_mapped(writer, writer->slot_size, &at);

  if (error)
    return sc_error_set(err, SC_ERR_IO, "no room for trace %s: %s; free disk space, or raise the file size limit",
                        writer->path, strerror(error));
  *out = at;
  return SC_OK;
}

enum sc_status sc_writer_open(const struct sc_writer_options *options, struct sc_writer **out, struct sc_error *err) {
  struct sc_trace_header *header = NULL;
  enum sc_status status = SC_OK;
  long page = sysconf(_SC_PAGESIZE);
  struct quiet quiet;
  /* Mapped, not allocated: it outlives the writer (late threads look at it), which a leak checker would report. */
  struct sc_writer *writer =
    mmap(NULL, sizeof *writer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (writer == MAP_FAILED)
    return sc_error_set(err, SC_ERR_NOMEM, "no memory for the trace writer");
  quiet_begin(&quiet);
  writer->fd = -1;
  writer->slot_size = page > SC_TRACE_SLOT ? (uint32_t)page : SC_TRACE_SLOT;
  writer->max_bytes = options->max_bytes;
  if (options->counts_beyond && writer->max_bytes && writer->max_bytes < writer->slot_size)
    writer->max_bytes = writer->slot_size; /* counts need the first slot, however little room records may have */
  writer->live = &writer->forgotten;
  writer->beyond = &writer->forgotten_beyond;
  pthread_mutex_init(&writer->lock, NULL);
  if (writer->slot_size > SC_TRACE_SLOT_MAX)
    status = sc_error_set(err, SC_ERR_SYSTEM, "pages of %ld bytes are not supported (at most %u)", page, SC_TRACE_SLOT_MAX);
  if (status == SC_OK)
    status = absolute_path(writer->path, options->path, err);
  if (status == SC_OK)
    status = create_file(writer, err);
  if (status == SC_OK)
    status = map_first_slot(writer, &header, err);
  if (status != SC_OK)
    goto cleanup;
  fill_header(header, options, writer->slot_size);
  writer->live = (struct sc_trace_live *)(void *)(header + 1);
  writer->beyond = (struct sc_trace_beyond *)(void *)(writer->live + 1);
  writer->live->beyond_size = options->counts_beyond ? sizeof *writer->beyond : 0;
  *out = writer;

cleanup:
  if (status != SC_OK) {
    if (writer->fd >= 0) {
      unlink(writer->path);
      close(writer->fd);
    }
    munmap(writer, sizeof *writer);
  }
  quiet_end(&quiet);
  return status;
}

void sc_writer_close(struct sc_writer *writer) {
  uint32_t tid = (uint32_t)syscall(SYS_gettid);
  struct quiet quiet;

  if (!writer)
    return;
  quiet_begin(&quiet);
  pthread_mutex_lock(&writer->lock);
  if (!writer->closed) {
    writer->closed = true;
    for (struct sc_writer_thread *thread = writer->threads; thread; thread = thread->next) {
      __atomic_store_n(&thread->limit, NULL, __ATOMIC_RELAXED); /* its next record takes the slow path and is refused */
      if (thread->chunk && thread->tid == tid) {
        seal(thread->chunk, thread->chunk->flags & (uint16_t)~SC_CHUNK_OPEN);
        thread->sealed = true;
      }
    }
    writer->live->end_mono_ns = sc_clock_mono_ns();
    if (is_our_file(writer, writer->fd))
      close(writer->fd);
    writer->fd = -1;
  }
  pthread_mutex_unlock(&writer->lock);
  quiet_end(&quiet);
}

void sc_writer_free(struct sc_writer *writer) {
  struct sc_writer_thread *thread, *slab;
  struct quiet quiet;

  if (!writer)
    return;
  sc_writer_close(writer);
  quiet_begin(&quiet);
  thread = writer->threads;
  writer->threads = writer->free_threads = NULL; /* first: a child forked from here on has no list to walk */
  for (; thread; thread = thread->next) {
    if (!thread->chunk)
      continue;
    size_t size = thread->chunk->size;

    if (!thread->sealed)
      seal(thread->chunk, thread->chunk->flags & (uint16_t)~SC_CHUNK_OPEN);
    munmap(thread->chunk, size);
  }
  while ((slab = writer->slabs)) {
    writer->slabs = slab->next;
    munmap(slab, SLAB_BYTES);
  }
  if (writer->live != &writer->forgotten)
    munmap((char *)writer->live - sizeof(struct sc_trace_header), writer->slot_size);
  pthread_mutex_destroy(&writer->lock);
  munmap(writer, sizeof *writer);
  quiet_end(&quiet);
}

void sc_writer_abandon(struct sc_writer *writer) {
  struct sc_writer_thread *thread, *next;
  int saved = errno;

  if (!writer)
    return;
  /* No lock: the thread that held it may not exist here. Where fork wiped the thread structs the walk ends at once. */
  for (thread = writer->threads; thread; thread = next) {
    next = thread->next;
    memset(thread, 0, sizeof *thread);
  }
  writer->threads = writer->free_threads = writer->slabs = NULL;
  writer->closed = true;
  writer->live = &writer->forgotten;
  writer->beyond = &writer->forgotten_beyond;
  pthread_mutex_init(&writer->lock, NULL);
  if (is_our_file(writer, writer->fd))
    close(writer->fd);
  writer->fd = -1;
  errno = saved;
}
