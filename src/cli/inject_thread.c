/* SPDX-License-Identifier: Apache-2.0
 * One thread of a running process, by ptrace: found at a harmless system call, stopped there, put back as it was. No
 * other thread is stopped, and this one sees no interrupted call that it would not have seen otherwise. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/inject_parts.h"

#ifndef NT_X86_SHSTK
#define NT_X86_SHSTK 0x204
#endif
#define USER_CODE 0x33 /* the code segment of 64-bit programs */
#define MS 1000000u
#define STOP_NS (1500 * MS)   /* a thread that does not stop in this time is in the kernel's hands */
#define HANDLER_SCAN 32768    /* bytes of stack that are searched for a signal's frame */
#define SIGNAL_FRAME_WORDS 25 /* up to the segment registers */

/* What the kernel returns inside, for a call that an interrupt broke off and that is to go on if no handler runs. */
enum { RESTART_SYS = -512, RESTART_NOINTR = -513, RESTART_NOHAND = -514, RESTART_BLOCK = -516 };

static int rank_regs(pid_t pid, const struct user_regs_struct *regs, bool entry)
{
  const uint64_t args[6] = {regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9};
  return inject_call_rank(pid, (long)regs->orig_rax, args, entry);
}

/* ---- ptrace ----------------------------------------------------------------------------------------- */

static long trace(int request, pid_t id, uintptr_t address, uintptr_t data)
{
  return ptrace((enum __ptrace_request)request, id, (void *)address, (void *)data);
}

bool inject_thread_get(const struct inject_thread *thread, struct user_regs_struct *regs)
{
  return trace(PTRACE_GETREGS, thread->id, 0, (uintptr_t)regs) == 0;
}

bool inject_thread_set(const struct inject_thread *thread, const struct user_regs_struct *regs)
{
  return trace(PTRACE_SETREGS, thread->id, 0, (uintptr_t)regs) == 0;
}

bool inject_thread_read(const struct inject_thread *thread, uint64_t address, void *bytes, size_t size)
{
  return pread(thread->memory, bytes, size, (off_t)address) == (ssize_t)size;
}

/* Newer kernels can be told to refuse writes to code by /proc/PID/mem, but not these. */
static bool poke(const struct inject_thread *thread, uint64_t address, const uint8_t *bytes, size_t size)
{
  for (size_t done = 0; done < size; done += sizeof(long)) {
    long word = 0;
    size_t n = size - done < sizeof word ? size - done : sizeof word;
    if (n < sizeof word && !inject_thread_read(thread, address + done, &word, sizeof word))
      return false;
    memcpy(&word, bytes + done, n);
    if (trace(PTRACE_POKEDATA, thread->id, address + done, (uintptr_t)word) != 0)
      return false;
  }
  return true;
}

bool inject_thread_write(const struct inject_thread *thread, uint64_t address, const void *bytes, size_t size)
{
  return pwrite(thread->memory, bytes, size, (off_t)address) == (ssize_t)size || poke(thread, address, bytes, size);
}

static bool resume(const struct inject_thread *thread, int request, int signal)
{
  return trace(request, thread->id, 0, (uintptr_t)signal) == 0;
}

static enum inject_stop what_stop(struct inject_thread *thread, int status)
{
  if (!WIFSTOPPED(status))
    return INJECT_GONE;
  if (status >> 16)
    return INJECT_TRAP;
  if (WSTOPSIG(status) == (SIGTRAP | 0x80))
    return INJECT_SYSCALL;
  thread->signal = WSTOPSIG(status);
  if (trace(PTRACE_GETSIGINFO, thread->id, 0, (uintptr_t)&thread->signal_info) != 0)
    memset(&thread->signal_info, 0, sizeof thread->signal_info);
  return INJECT_SIGNAL;
}

/* SIGCHLD is blocked: a stop that comes between the look and the wait is not missed. */
static enum inject_stop wait_stop(struct inject_thread *thread, uint64_t deadline)
{
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  for (;;) {
    int status;
    pid_t got = waitpid(thread->id, &status, __WALL | WNOHANG);
    if (got == thread->id)
      return what_stop(thread, status);
    if (got < 0 && errno != EINTR)
      return INJECT_GONE;
    uint64_t now = sc_clock_mono_ns();
    if (now >= deadline)
      return INJECT_TIMEOUT;
    uint64_t left = deadline - now;
    const struct timespec limit = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
    sigtimedwait(&child, NULL, &limit);
  }
}

enum inject_stop inject_thread_run(struct inject_thread *thread, bool syscalls, uint64_t deadline)
{
  int signal = thread->stopping ? SIGSTOP : 0;
  thread->stopping = false;
  if (!resume(thread, syscalls ? PTRACE_SYSCALL : PTRACE_CONT, signal))
    return INJECT_GONE;
  return wait_stop(thread, deadline);
}

enum inject_stop inject_thread_stop(struct inject_thread *thread, uint64_t deadline)
{
  if (trace(PTRACE_INTERRUPT, thread->id, 0, 0) != 0)
    return INJECT_GONE;
  return wait_stop(thread, deadline);
}

/* Some calls return EINTR after a mere stop. As the kernel does for others, they are made to go on unless a handler
 * runs; with a limit of time it begins anew. */
static void mend_interrupted(const struct inject_thread *thread)
{
  struct user_regs_struct regs;
  if (!inject_thread_get(thread, &regs) || (long)regs.orig_rax < 0 || (long)regs.rax != -EINTR ||
      !inject_call_ends_with_eintr((long)regs.orig_rax))
    return;
  regs.rax = (unsigned long)RESTART_NOHAND;
  inject_thread_set(thread, &regs);
}

void inject_thread_abandon(struct inject_thread *thread)
{
  mend_interrupted(thread);
  trace(PTRACE_DETACH, thread->id, 0, 0);
}

/* ---- is it at a good place ---------------------------------------------------------------------------- */

/* A signal's frame on its stack: the handler may have interrupted malloc or the loader. The frame is known by the
 * segment registers in it and by its return address, which is the C library's call of sigreturn. */
static bool in_handler(const struct inject_thread *thread, uint64_t stack)
{
  static const uint8_t restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  static uint64_t words[HANDLER_SCAN / 8];
  ssize_t got = pread(thread->memory, words, sizeof words, (off_t)(stack & ~(uint64_t)7));
  size_t count = got > 0 ? (size_t)got / 8 : 0;
  for (size_t i = 0; i + SIGNAL_FRAME_WORDS <= count; ++i) {
    const uint64_t *frame = words + i;
    uint8_t code[sizeof restorer];
    if (frame[24] == 0x002b000000000033u && frame[1] <= 7 && frame[2] == 0 && (frame[23] & 2) &&
        inject_thread_read(thread, frame[0], code, sizeof code) && memcmp(code, restorer, sizeof code) == 0)
      return true;
  }
  return false;
}

/* A wait that was stopped before goes on by restart_syscall, which does not tell its number: the instruction in front
 * of the `syscall` may. 0: it does not. */
static long restarted_call(const struct inject_thread *thread, const struct user_regs_struct *regs)
{
  uint8_t code[5]; /* mov $number, %eax */
  uint32_t number = 0;
  if ((long)regs->orig_rax != SYS_restart_syscall)
    return (long)regs->orig_rax;
  if (!inject_thread_read(thread, regs->rip - 7, code, sizeof code) || code[0] != 0xb8)
    return 0;
  memcpy(&number, code + 1, sizeof number);
  return number == SYS_poll || number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_futex ? number
                                                                                                               : 0;
}

/* The C library made it: its thread-local storage begins with its own address. */
static bool has_own_storage(const struct inject_thread *thread, const struct user_regs_struct *regs)
{
  uint64_t self = 0;
  return regs->fs_base && inject_thread_read(thread, regs->fs_base, &self, sizeof self) && self == regs->fs_base;
}

/* Right behind a `syscall`, and not at the first instruction of a handler that the call led to. */
static bool is_fit(const struct inject_thread *thread, bool entry, bool handlers)
{
  struct user_regs_struct regs;
  uint8_t code[2];
  return inject_thread_get(thread, &regs) && (long)regs.orig_rax >= 0 && regs.cs == USER_CODE &&
         inject_thread_read(thread, regs.rip - 2, code, 2) && code[0] == 0x0f && code[1] == 0x05 &&
         has_own_storage(thread, &regs) && rank_regs(thread->pid, &regs, entry) &&
         ((long)regs.orig_rax != SYS_restart_syscall || restarted_call(thread, &regs)) &&
         (handlers || !in_handler(thread, regs.rsp));
}

static bool save(struct inject_thread *thread, bool entry)
{
  struct iovec state = {thread->xstate, sizeof thread->xstate}, shadow = {&thread->shadow, sizeof thread->shadow};
  thread->at_entry = entry;
  thread->masked = thread->stopping = false;
  thread->held = 0;
  if (!inject_thread_get(thread, &thread->regs) ||
      trace(PTRACE_GETREGSET, thread->id, NT_X86_XSTATE, (uintptr_t)&state) != 0 ||
      trace(PTRACE_GETSIGMASK, thread->id, sizeof thread->mask, (uintptr_t)&thread->mask) != 0)
    return false;
  thread->xstate_size = state.iov_len;
  thread->shadow_size = trace(PTRACE_GETREGSET, thread->id, NT_X86_SHSTK, (uintptr_t)&shadow) == 0 ? shadow.iov_len : 0;
  thread->instruction = thread->regs.rip - 2;
  thread->number = restarted_call(thread, &thread->regs);
  /* A wait without limit loses nothing when it begins anew, and the calls need not be watched. */
  thread->exact = (long)thread->regs.rax == RESTART_BLOCK && rank_regs(thread->pid, &thread->regs, entry) != 1;
  thread->restart_lost = !thread->exact;
  if (entry) { /* as it was before the instruction */
    thread->regs.rip -= 2;
    thread->regs.rax = thread->regs.orig_rax;
    thread->regs.orig_rax = (unsigned long)-1;
  }
  return true;
}

/* ---- taking one ------------------------------------------------------------------------------------- */

enum taken { TAKEN, NOT_FIT, NOT_ALLOWED };

static void let_go(struct inject_thread *thread, enum inject_stop stop)
{
  if (stop == INJECT_SIGNAL)
    trace(PTRACE_DETACH, thread->id, 0, (uintptr_t)thread->signal);
  else if (stop != INJECT_GONE && stop != INJECT_TIMEOUT) /* what does not stop is let go when this process ends */
    inject_thread_abandon(thread);
}

/* Signals that come first are passed on. */
static enum inject_stop catch (struct inject_thread *thread) {
  uint64_t deadline = sc_clock_mono_ns() + STOP_NS; enum inject_stop stop = inject_thread_stop(thread, deadline);
  while (stop == INJECT_SIGNAL){if (trace(PTRACE_INTERRUPT, thread->id, 0, 0) != 0 ||
                                    !resume(thread, PTRACE_CONT, thread->signal)) return INJECT_GONE;
                                stop = wait_stop(thread, deadline);}
if (stop == INJECT_TRAP) mend_interrupted(thread);
return stop;
}

/* Lets it run from call to call until it makes a good one. */
static enum inject_stop follow(struct inject_thread *thread, uint64_t deadline, bool handlers, bool *found)
{
  bool entry = false;
  int signal = 0;
  for (;;) {
    if (!resume(thread, PTRACE_SYSCALL, signal))
      return INJECT_GONE;
    enum inject_stop stop = wait_stop(thread, deadline);
    signal = stop == INJECT_SIGNAL ? thread->signal : 0;
    if (stop == INJECT_SYSCALL) {
      entry = !entry;
      *found = entry && is_fit(thread, true, handlers);
    }
    if (*found || stop == INJECT_GONE || stop == INJECT_TRAP)
      return stop;
    if (stop == INJECT_TIMEOUT)
      return catch (thread);
    if (sc_clock_mono_ns() > deadline)
      return stop;
  }
}

/* 0: nobody's, or gone. */
static pid_t tracer_of(pid_t pid, pid_t id)
{
  struct proc_status status;
  return inject_status_read(pid, id, &status, NULL) == SC_OK ? status.tracer : 0;
}

/* slice 0: only if it waits in a good call now. */
static enum taken try_thread(struct inject_thread *thread, pid_t id, uint64_t slice, bool handlers)
{
  thread->id = id;
  if (trace(PTRACE_SEIZE, id, 0, PTRACE_O_TRACESYSGOOD) != 0) {
    if (errno != EPERM)
      return NOT_FIT;
    if (tracer_of(thread->pid, id) != getpid()) /* else it did not stop when it was asked to before */
      return NOT_ALLOWED;
  }
  thread->since = sc_clock_mono_ns();
  bool found = false, entry = false;
  enum inject_stop stop = catch (thread);
  if (stop == INJECT_TRAP)
    found = is_fit(thread, false, handlers);
  if (!found && slice && stop == INJECT_TRAP) {
    stop = follow(thread, sc_clock_mono_ns() + slice, handlers, &entry);
    thread->since = sc_clock_mono_ns();
    found = entry || (stop == INJECT_TRAP && is_fit(thread, false, handlers));
  }
  if (found && save(thread, entry))
    return TAKEN;
  let_go(thread, stop);
  return NOT_FIT;
}

struct candidate {
  pid_t id;
  int rank; /* 0: in no good call */
  bool runs;
};

static int by_rank(const void *left, const void *right)
{
  const struct candidate *a = left, *b = right;
  return a->rank != b->rank ? a->rank - b->rank : (int)(b->id - a->id); /* the main thread last */
}

static void look_at_thread(pid_t pid, struct candidate *candidate)
{
  char path[64], line[256] = "";
  unsigned long args[6];
  long number;
  snprintf(path, sizeof path, "/proc/%ld/task/%ld/syscall", (long)pid, (long)candidate->id);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
  if (fd >= 0)
    close(fd);
  candidate->runs = got <= 0 || strncmp(line, "running", 7) == 0;
  if (sscanf(line, "%ld %lx %lx %lx %lx %lx %lx", &number, &args[0], &args[1], &args[2], &args[3], &args[4],
             &args[5]) == 7) {
    const uint64_t values[6] = {args[0], args[1], args[2], args[3], args[4], args[5]};
    candidate->rank = inject_call_rank(pid, number, values, false);
  }
}

static struct candidate *list_threads(pid_t pid, size_t *count)
{
  char path[64];
  struct candidate *list = NULL;
  size_t capacity = 0;
  *count = 0;
  snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
  DIR *folder = opendir(path);
  if (!folder)
    return NULL;
  for (struct dirent *entry; (entry = readdir(folder));) {
    uint64_t id;
    if (!sc_parse_u64(entry->d_name, &id))
      continue;
    struct candidate *candidate = sc_array_push(&list, count, &capacity, sizeof *candidate);
    if (!candidate)
      break;
    candidate->id = (pid_t)id;
    look_at_thread(pid, candidate);
  }
  closedir(folder);
  if (*count)
    qsort(list, *count, sizeof *list, by_rank);
  return list;
}

/* One pass: those that wait first, then, for a slice each, those that run, and at last the others. */
static enum taken try_threads(struct inject_thread *thread, const struct candidate *list, size_t count, uint64_t slice,
                              bool handlers, uint64_t deadline)
{
  bool refused = false, tried = false;
  for (int pass = 0; pass < 3; ++pass) {
    if (pass > 0 && !slice)
      break;
    for (size_t i = 0; i < count && sc_clock_mono_ns() < deadline; ++i) {
      if ((pass == 0) != (list[i].rank > 0) || (pass > 0 && (pass == 1) != list[i].runs))
        continue;
      enum taken taken = try_thread(thread, list[i].id, pass ? slice : 0, handlers);
      if (taken == TAKEN)
        return TAKEN;
      pid_t tracer = taken == NOT_ALLOWED ? tracer_of(thread->pid, list[i].id) : 0;
      if (taken == NOT_ALLOWED && !tracer)
        return NOT_ALLOWED;
      tried |= taken == NOT_FIT;
      refused |= taken == NOT_ALLOWED;
    }
  }
  return refused && !tried ? NOT_ALLOWED : NOT_FIT;
}

static enum sc_status nothing_fit(pid_t pid, size_t count, uint64_t limit_ns, struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_SYSTEM,
                      "none of process %ld's %zu threads made, within %.1f s, a system call at which a library can be "
                      "loaded safely (poll, nanosleep, read of a pipe and the like): nothing was changed; try again at "
                      "another time, or start the program with SYNCCOUNT_DORMANT=1 and attach without --inject",
                      (long)pid, count, (double)limit_ns / 1e9);
}

enum sc_status inject_thread_take(pid_t pid, uint64_t limit_ns, struct inject_thread *thread, struct sc_error *err)
{
  uint64_t begin = sc_clock_mono_ns(), slice = 0;
  for (;;) {
    size_t count;
    uint64_t now = sc_clock_mono_ns();
    struct candidate *list = list_threads(pid, &count);
    pid_t first = count ? list[0].id : 0;
    enum taken taken = NOT_FIT;
    if (list)
      taken = try_threads(thread, list, count, slice, now - begin > limit_ns / 2, begin + limit_ns);
    free(list);
    if (taken == TAKEN)
      return SC_OK;
    if (taken == NOT_ALLOWED)
      return inject_forbidden(pid, first, err);
    struct proc_status status;
    enum sc_status found = inject_status_read(pid, pid, &status, err);
    if (found != SC_OK)
      return found;
    if (status.state == 'Z' || status.state == 'X')
      return sc_error_set(err, SC_ERR_SYSTEM, "process %ld ended just now", (long)pid);
    if (sc_clock_mono_ns() - begin >= limit_ns)
      return nothing_fit(pid, count, limit_ns, err);
    slice = slice ? (slice < 200 * MS ? slice * 2 : slice) : 5 * MS;
    poll(NULL, 0, 1);
  }
}

/* ---- its system calls, and back again ---------------------------------------------------------------- */

bool inject_thread_hold(struct inject_thread *thread)
{
  /* a blocked fault would cost the program its handler; SIGURG says that a call returned */
  static const int open[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGURG};
  uint64_t mask = ~(uint64_t)0;
  for (size_t i = 0; i < SC_COUNTOF(open); ++i)
    mask &= ~((uint64_t)1 << (open[i] - 1));
  thread->masked = trace(PTRACE_SETSIGMASK, thread->id, sizeof mask, (uintptr_t)&mask) == 0;
  return thread->masked;
}

/* A stop of the process is passed on at once: kept, it would undo the SIGCONT that came after it. */
void inject_thread_keep_signal(struct inject_thread *thread)
{
  if (thread->signal == SIGSTOP)
    thread->stopping = true;
  else
    thread->held |= (uint64_t)1 << (thread->signal - 1);
}

enum inject_stop inject_thread_syscall(struct inject_thread *thread, uint64_t instruction, uint64_t stack, long number,
                                       const uint64_t args[6], uint64_t deadline, long *result)
{
  struct user_regs_struct regs = thread->regs;
  bool entered = thread->at_entry && instruction == thread->instruction;
  regs.rip = entered ? instruction + 2 : instruction;
  regs.orig_rax = entered ? (unsigned long)number : (unsigned long)-1;
  regs.rax = entered ? (unsigned long)-ENOSYS : (unsigned long)number;
  regs.rsp = stack ? stack : regs.rsp;
  regs.rdi = args[0], regs.rsi = args[1], regs.rdx = args[2];
  regs.r10 = args[3], regs.r8 = args[4], regs.r9 = args[5];
  thread->at_entry = false;
  if (!inject_thread_set(thread, &regs))
    return INJECT_GONE;
  for (;;) {
    enum inject_stop stop = inject_thread_run(thread, true, deadline);
    if (stop == INJECT_SIGNAL && thread->masked)
      inject_thread_keep_signal(thread);
    else if (stop == INJECT_SYSCALL && entered)
      break;
    else if (stop == INJECT_SYSCALL)
      entered = true;
    else if (stop != INJECT_TRAP)
      return stop;
  }
  if (!inject_thread_get(thread, &regs))
    return INJECT_GONE;
  *result = (long)regs.rax;
  return INJECT_SYSCALL;
}

bool inject_thread_restore(struct inject_thread *thread)
{
  struct iovec state = {thread->xstate, thread->xstate_size}, shadow = {&thread->shadow, thread->shadow_size};
  struct user_regs_struct regs = thread->regs;
  if ((long)regs.rax == RESTART_BLOCK &&
      thread->restart_lost) { /* the wait begins anew; resumed, it would end with EINTR */
    regs.rax = (unsigned long)RESTART_NOHAND;
    regs.orig_rax = (unsigned long)thread->number;
  }
  if (thread->shadow_size)
    trace(PTRACE_SETREGSET, thread->id, NT_X86_SHSTK, (uintptr_t)&shadow);
  return trace(PTRACE_SETREGSET, thread->id, NT_X86_XSTATE, (uintptr_t)&state) == 0 && inject_thread_set(thread, &regs);
}

/* A last stop, so that the kernel itself decides, as after every stop, whether the interrupted call goes on or a
 * handler runs first. */
bool inject_thread_release(struct inject_thread *thread)
{
  if (!inject_thread_restore(thread))
    return false;
  if (thread->masked)
    trace(PTRACE_SETSIGMASK, thread->id, sizeof thread->mask, (uintptr_t)&thread->mask);
  thread->masked = false;
  if (trace(PTRACE_INTERRUPT, thread->id, 0, 0) == 0 && resume(thread, PTRACE_CONT, 0) &&
      wait_stop(thread, sc_clock_mono_ns() + STOP_NS) == INJECT_GONE)
    return false;
  for (int signal = 1; signal <= 64; ++signal) {
    if (thread->held >> (signal - 1) & 1)
      syscall(SYS_tgkill, thread->pid, thread->id, signal);
  }
  return trace(PTRACE_DETACH, thread->id, 0, 0) == 0;
}

void inject_thread_deliver(struct inject_thread *thread)
{
  inject_thread_restore(thread);
  trace(PTRACE_DETACH, thread->id, 0, (uintptr_t)thread->signal);
}

/* What a thread must continue with that nobody traces: the kernel's own way to restart a call. */
void inject_thread_resumption(const struct inject_thread *thread, struct user_regs_struct *regs)
{
  *regs = thread->regs;
  if ((long)regs->orig_rax < 0)
    return;
  switch ((long)regs->rax) {
  case RESTART_SYS:
  case RESTART_NOINTR:
  case RESTART_NOHAND:
  case RESTART_BLOCK: /* anew: what the kernel remembers of it will be another call's by then */
    regs->rax = (unsigned long)thread->number;
    regs->rip -= 2;
    break;
  }
}

/* At the exit of the call, or on the way to a signal: either comes first. */
bool inject_thread_waits_for_lock(struct inject_thread *thread)
{
  struct user_regs_struct regs;
  return inject_thread_get(thread, &regs) && (long)regs.orig_rax == SYS_futex &&
         ((long)regs.rax == RESTART_SYS || (long)regs.rax == RESTART_BLOCK);
}
