/* SPDX-License-Identifier: Apache-2.0
 * Function calls on a stopped thread of another process. They run on a stack of their own, from a few instructions in a
 * page of their own. These know all that the thread must get back: if the tracer is killed in the middle, or leaves a
 * call that does not return, the thread finishes the call and puts itself back. */
#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "cli/inject_parts.h"
#include "cli/inject_stub.h"

#define MS 1000000u
#define SYSCALL_NS (10000ull * MS) /* for one system call: mmap may wait for the process's memory lock */
#define STOP_NS (200 * MS)
#define AGAIN_NS (300 * MS) /* a call past its time that is not in a wait for a lock gets some more, */
#define AGAIN_TIMES 3       /* so many times */
#define STACK_BYTES (1u << 20)
#define ERESTART_BLOCK 516 /* a wait with a limit was broken off; the kernel keeps one of these per thread */
#define ABI_FLAGS 0x202    /* interrupts on, direction forwards, nothing else */

#define ROOM_BYTES (INJECT_TEXT_PLACE + 2 * 4096)

/* As inject_stub.S reads it. */
struct stub_state {
  uint64_t mask, errno_place, errno_value, flags, rsp, rip, rax, rbx, rcx, rdx, rsi, rdi, rbp;
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
};
_Static_assert(offsetof(struct stub_state, rsp) == 32 && offsetof(struct stub_state, r15) == 160,
               "inject_stub.S counts on it");
_Static_assert(INJECT_TEXT_PLACE - INJECT_XSTATE_PLACE >= INJECT_XSTATE_MAX, "room for the vector state");

#define HIDDEN __attribute__((visibility("hidden")))
extern const uint8_t inject_stub[] HIDDEN, inject_stub_syscall[] HIDDEN, inject_stub_returned[] HIDDEN,
    inject_stub_end[] HIDDEN;

struct inject_caller {
  struct inject_thread *thread;
  uint64_t room, stack; /* in the process; stack: its lowest address, 0: none yet */
  uint64_t errno_place;
  int32_t errno_value;
  bool lost; /* the thread is not ours any more */
  char fault[64];
};

static uint64_t syscall_place(const struct inject_caller *caller)
{
  return caller->room + (uint64_t)(inject_stub_syscall - inject_stub);
}

static uint64_t returned_place(const struct inject_caller *caller)
{
  return caller->room + (uint64_t)(inject_stub_returned - inject_stub);
}

/* ---- opening ---------------------------------------------------------------------------------------- */

static bool write_state(struct inject_caller *caller)
{
  struct user_regs_struct regs;
  inject_thread_resumption(caller->thread, &regs);
  const struct stub_state state = {.mask = caller->thread->mask,
                                   .errno_place = caller->errno_place,
                                   .errno_value = (uint32_t)caller->errno_value,
                                   .flags = regs.eflags,
                                   .rsp = regs.rsp,
                                   .rip = regs.rip,
                                   .rax = regs.rax,
                                   .rbx = regs.rbx,
                                   .rcx = regs.rcx,
                                   .rdx = regs.rdx,
                                   .rsi = regs.rsi,
                                   .rdi = regs.rdi,
                                   .rbp = regs.rbp,
                                   .r8 = regs.r8,
                                   .r9 = regs.r9,
                                   .r10 = regs.r10,
                                   .r11 = regs.r11,
                                   .r12 = regs.r12,
                                   .r13 = regs.r13,
                                   .r14 = regs.r14,
                                   .r15 = regs.r15};
  return inject_thread_write(caller->thread, caller->room + INJECT_STATE_PLACE, &state, sizeof state);
}

static bool fill_room(struct inject_caller *caller)
{
  const struct inject_thread *thread = caller->thread;
  return inject_thread_write(thread, caller->room, inject_stub, (size_t)(inject_stub_end - inject_stub)) &&
         inject_thread_write(thread, caller->room + INJECT_XSTATE_PLACE, thread->xstate, thread->xstate_size) &&
         write_state(caller);
}

/* Below the red zone, for the time in which the calls have no stack yet, or none any more. */
static uint64_t borrowed_stack(const struct inject_caller *caller)
{
  return (caller->thread->regs.rsp - 512) & ~(uint64_t)15;
}

static enum sc_status refused(const struct inject_thread *thread, const char *what, long result, struct sc_error *err)
{
  struct proc_status status = {0};
  bool filtered = inject_status_read(thread->pid, thread->id, &status, NULL) == SC_OK && status.seccomp == 2;
  return sc_error_set(err, SC_ERR_SYSTEM, "process %ld: no memory for the call, %s in it: %s%s", (long)thread->pid,
                      what, strerror((int)-result),
                      filtered ? "; it runs under a seccomp filter, which may forbid that: start the program with "
                                 "SYNCCOUNT_DORMANT=1 instead"
                               : " (a security module may forbid new code in it)");
}

static enum sc_status ended(const struct inject_thread *thread, struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_SYSTEM, "process %ld, or its thread %ld, ended just now", (long)thread->pid,
                      (long)thread->id);
}

/* The first call is made by the program's own `syscall`; a kill of this process before the next line but one leaves the
 * thread with the result of this mmap instead of its own. From then on it is as it was, or can put itself back. */
static enum sc_status map_room(struct inject_caller *caller, bool *signal, struct sc_error *err)
{
  struct inject_thread *thread = caller->thread;
  const uint64_t args[6] = {0, ROOM_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0};
  long result = 0;
  enum inject_stop stop =
      inject_thread_syscall(thread, thread->instruction, 0, SYS_mmap, args, sc_clock_mono_ns() + SYSCALL_NS, &result);
  *signal = stop == INJECT_SIGNAL;
  if (*signal) {
    inject_thread_deliver(thread);
    return SC_OK;
  }
  if (stop == INJECT_TIMEOUT && inject_thread_stop(thread, sc_clock_mono_ns() + SYSCALL_NS) == INJECT_GONE)
    return ended(thread, err);
  if (stop == INJECT_GONE || !inject_thread_restore(thread))
    return ended(thread, err);
  if (stop == INJECT_SYSCALL && result > 0) {
    caller->room = (uint64_t)result;
    return SC_OK;
  }
  inject_thread_release(thread);
  return refused(thread, "mmap", stop == INJECT_SYSCALL ? result : -11, err);
}

static enum sc_status map_stack(struct inject_caller *caller, struct sc_error *err)
{
  const uint64_t args[6] = {
      0, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, (uint64_t)-1, 0};
  long result = 0;
  enum inject_stop stop = inject_thread_syscall(caller->thread, syscall_place(caller), borrowed_stack(caller), SYS_mmap,
                                                args, sc_clock_mono_ns() + SYSCALL_NS, &result);
  if (stop == INJECT_GONE)
    return ended(caller->thread, err);
  if (stop == INJECT_SYSCALL && result > 0) {
    caller->stack = (uint64_t)result;
    return SC_OK;
  }
  return refused(caller->thread, "mmap of a stack", stop == INJECT_SYSCALL ? result : -11, err);
}

enum sc_status inject_caller_open(struct inject_thread *thread, struct inject_caller **out, struct sc_error *err)
{
  struct inject_caller *caller = calloc(1, sizeof *caller);
  bool signal = false;
  *out = NULL;
  if (!caller) {
    inject_thread_release(thread);
    return sc_error_no_memory(err);
  }
  caller->thread = thread;
  enum sc_status status = map_room(caller, &signal, err);
  if (status != SC_OK || signal) {
    free(caller);
    return status;
  }
  if (!fill_room(caller))
    status = sc_error_set(err, SC_ERR_SYSTEM, "process %ld: its memory cannot be written", (long)thread->pid);
  else if (!inject_thread_hold(thread))
    status = ended(thread, err);
  else
    status = map_stack(caller, err);
  if (status == SC_OK)
    *out = caller;
  else
    inject_caller_close(caller);
  return status;
}

/* ---- calling ---------------------------------------------------------------------------------------- */

static bool is_fault(const struct inject_thread *thread)
{
  switch (thread->signal) {
  case SIGSEGV:
  case SIGBUS:
  case SIGILL:
  case SIGFPE:
  case SIGTRAP:
  case SIGSYS: return thread->signal_info.si_code > 0; /* else somebody sent it */
  default: return false;
  }
}

static enum inject_result take_fault(struct inject_caller *caller)
{
  const struct inject_thread *thread = caller->thread;
  snprintf(caller->fault, sizeof caller->fault, "SIG%s at 0x%lx", sigabbrev_np(thread->signal),
           (unsigned long)(uintptr_t)thread->signal_info.si_addr);
  return INJECT_FAULTED;
}

/* Its state is as good as put back: the code in the room does the rest when the call returns. */
static enum inject_result leave(struct inject_caller *caller)
{
  inject_thread_abandon(caller->thread);
  caller->lost = true;
  return INJECT_LEFT;
}

/* The kernel keeps the rest of one interrupted wait for each thread. A sleep, or a broken off wait, in a call of ours
 * takes the place of the thread's own. */
static void notice_wait(struct inject_thread *thread, const struct user_regs_struct *regs)
{
  long number = (long)regs->orig_rax;
  thread->restart_lost |=
      number == SYS_nanosleep || number == SYS_clock_nanosleep || (number >= 0 && (long)regs->rax == -ERESTART_BLOCK);
}

enum progress { GOES_ON, DONE, FAULT, GONE };

static enum progress look_at_stop(struct inject_caller *caller, enum inject_stop stop, uint64_t *result)
{
  struct inject_thread *thread = caller->thread;
  struct user_regs_struct regs;
  if (stop == INJECT_GONE)
    return GONE;
  if (stop == INJECT_TIMEOUT)
    return GOES_ON;
  if (stop == INJECT_SIGNAL && is_fault(thread))
    return FAULT;
  if (!inject_thread_get(thread, &regs))
    return GONE;
  notice_wait(thread, &regs);
  if (stop == INJECT_SIGNAL && thread->signal == SIGURG && thread->signal_info.si_code == SI_TKILL &&
      regs.rip == returned_place(caller)) {
    *result = regs.r12;
    return DONE;
  }
  if (stop == INJECT_SIGNAL)
    inject_thread_keep_signal(thread);
  return GOES_ON;
}

static void set_call(const struct inject_caller *caller, uint64_t function, uint64_t a, uint64_t b,
                     struct user_regs_struct *regs)
{
  *regs = caller->thread->regs;
  regs->rip = caller->room;
  regs->rsp = caller->stack + STACK_BYTES - 256;
  regs->rbx = function;
  regs->rdi = a;
  regs->rsi = b;
  regs->rax = regs->rbp = 0;
  regs->orig_rax = (unsigned long)-1;
  regs->eflags = ABI_FLAGS;
}

enum inject_result inject_call(struct inject_caller *caller, uint64_t function, uint64_t a, uint64_t b,
                               uint64_t limit_ns, bool may_give_up, uint64_t *result)
{
  struct inject_thread *thread = caller->thread;
  struct user_regs_struct regs;
  uint64_t deadline = sc_clock_mono_ns() + limit_ns;
  set_call(caller, function, a, b, &regs);
  if (!inject_thread_set(thread, &regs)) {
    caller->lost = true;
    return INJECT_ENDED;
  }
  enum progress progress = GOES_ON;
  for (int late = 0; progress == GOES_ON;) {
    enum inject_stop stop = inject_thread_run(thread, thread->exact, deadline);
    bool late_stop = stop == INJECT_TIMEOUT;
    if (late_stop)
      stop = inject_thread_stop(thread, sc_clock_mono_ns() + STOP_NS);
    progress = look_at_stop(caller, stop, result);
    if (!late_stop || progress != GOES_ON)
      continue;
    if (may_give_up && inject_thread_waits_for_lock(thread))
      return INJECT_STUCK;
    if (stop == INJECT_TIMEOUT || ++late > AGAIN_TIMES)
      return leave(caller);
    deadline = sc_clock_mono_ns() + AGAIN_NS;
  }
  if (progress == FAULT)
    return take_fault(caller);
  caller->lost |= progress == GONE;
  return progress == DONE ? INJECT_RETURNED : INJECT_ENDED;
}

void inject_caller_keep_errno(struct inject_caller *caller, uint64_t address)
{
  if (address && inject_thread_read(caller->thread, address, &caller->errno_value, sizeof caller->errno_value)) {
    caller->errno_place = address;
    (void)write_state(caller);
  }
}

uint64_t inject_caller_text(struct inject_caller *caller, const char *text)
{
  uint64_t place = caller->room + INJECT_TEXT_PLACE;
  size_t size = strlen(text) + 1;
  return size <= ROOM_BYTES - INJECT_TEXT_PLACE && inject_thread_write(caller->thread, place, text, size) ? place : 0;
}

const char *inject_caller_fault(const struct inject_caller *caller) { return caller->fault; }

/* ---- closing ---------------------------------------------------------------------------------------- */

static void unmap(struct inject_caller *caller, uint64_t instruction, uint64_t stack, uint64_t place, size_t size)
{
  const uint64_t args[6] = {place, size};
  long result;
  if (!caller->thread->masked && !caller->lost)
    caller->lost = !inject_thread_hold(caller->thread);
  if (!caller->lost && inject_thread_syscall(caller->thread, instruction, stack, SYS_munmap, args,
                                             sc_clock_mono_ns() + SYSCALL_NS, &result) == INJECT_GONE)
    caller->lost = true;
}

bool inject_caller_close(struct inject_caller *caller)
{
  struct inject_thread *thread = caller->thread;
  if (!caller->lost && caller->errno_place)
    (void)inject_thread_write(thread, caller->errno_place, &caller->errno_value, sizeof caller->errno_value);
  if (caller->stack)
    unmap(caller, syscall_place(caller), borrowed_stack(caller), caller->stack, STACK_BYTES);
  unmap(caller, thread->instruction, 0, caller->room, ROOM_BYTES); /* as map_room: the last moment to be killed in */
  bool released = !caller->lost && inject_thread_release(thread);
  free(caller);
  return released;
}
