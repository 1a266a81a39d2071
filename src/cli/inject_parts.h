/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files that load a library into a running program (x86-64): what the process is, where its functions
 * are, one thread of it, and calls made on that thread. */
#ifndef SC_CLI_INJECT_PARTS_H
#define SC_CLI_INJECT_PARTS_H

#include <signal.h>
#include <sys/user.h>

#include "cli/inject.h"
#include "cli/proc.h"

/* ---- the process, from /proc (inject_process.c) ---------------------------------------------------- */
/* SC_ERR_SYSTEM with the reason if there is no such thread. */
enum sc_status inject_status_read(pid_t pid, pid_t thread, struct proc_status *out,
                                  struct sc_error *err) SC_NODISCARD;

/* SC_ERR_SYSTEM if it may not be looked at, or has none: it is ending, or a kernel thread. */
enum sc_status inject_maps_read(pid_t pid, struct proc_maps *out, struct sc_error *err) SC_NODISCARD;

/* What can be refused without touching it: gone, stopped, traced, another user's, no CUDA in it, no loader, other
 * architecture, and a library that it cannot see. *libc and *libdl point into maps; *libdl may be NULL. */
enum sc_status inject_process_check(pid_t pid, struct sc_error *err) SC_NODISCARD;
enum sc_status inject_program_check(pid_t pid, const struct proc_maps *maps, const struct proc_map **libc,
                                    const struct proc_map **libdl, struct sc_error *err) SC_NODISCARD;
enum sc_status inject_library_check(pid_t pid, const char *library, struct sc_error *err) SC_NODISCARD;
/* The mapping of the file at `library`, as the process sees it; NULL: not loaded. */
const struct proc_map *inject_library_map(pid_t pid, const char *library, const struct proc_maps *maps);
/* Why ptrace, or a look into /proc/PID, was refused with EPERM or EACCES. Returns SC_ERR_SYSTEM. */
enum sc_status inject_forbidden(pid_t pid, pid_t thread, struct sc_error *err) SC_NODISCARD;

/* ---- functions (inject_elf.c) ---------------------------------------------------------------------- */
/* The address in the process of an exported function of the file that `map` maps. *address 0: it has none of that
 * name. The bytes there are compared with the file's, so that a file replaced on disk is not trusted. */
enum sc_status inject_find_function(pid_t pid, const struct proc_maps *maps, const struct proc_map *map,
                                    const char *name, uint64_t *address, struct sc_error *err) SC_NODISCARD;

/* True if the file itself exports such a function. */
enum sc_status inject_file_exports(const char *path, const char *name, bool *found, struct sc_error *err) SC_NODISCARD;

/* ---- system calls (inject_syscalls.c) ---------------------------------------------------------------- */
/* 0: not at this one. Else the lower the better: 1 waits without limit, 2 is as good as it is, 3 would begin a wait
 * with a limit anew. entry: at its entry, where a call that must not be interrupted will do as well. */
int inject_call_rank(pid_t pid, long number, const uint64_t args[6], bool entry);
/* The kernel ends it with EINTR after a mere stop, where it restarts others. */
bool inject_call_ends_with_eintr(long number);

/* ---- one thread (inject_thread.c) ------------------------------------------------------------------- */
#define INJECT_XSTATE_MAX 32768 /* 11 KiB with AMX */

enum inject_stop {
  INJECT_GONE,    /* the thread or the process is no more */
  INJECT_TIMEOUT, /* still running */
  INJECT_TRAP,    /* by PTRACE_INTERRUPT, or a stop of the whole process */
  INJECT_SYSCALL, /* at the entry or exit of a system call */
  INJECT_SIGNAL,  /* before a signal's delivery */
};

struct inject_thread {
  pid_t pid, id;
  int memory;            /* /proc/PID/mem, the caller's */
  uint64_t since;        /* when it was taken from its work, CLOCK_MONOTONIC ns */
  int signal;            /* of the last INJECT_SIGNAL */
  siginfo_t signal_info; /* likewise */
  uint64_t instruction;  /* address of a `syscall` in the program: the one it was found at */
  long number;           /* of that call */
  bool at_entry;         /* stopped before that call was made: it is free to become another */
  bool masked;           /* signals are held back */
  bool stopping;         /* SIGSTOP came to it: to be passed on with the next step */
  bool exact;            /* it is in a wait with a limit, the rest of which the kernel keeps */
  bool restart_lost;     /* another wait on it has taken that place: its own begins anew */
  uint64_t held;         /* set of signals that the mask does not hold back and that came meanwhile */
  /* what it was doing, all of it put back at the end */
  struct user_regs_struct regs;
  uint64_t mask, shadow;
  size_t xstate_size, shadow_size;
  _Alignas(64) uint8_t xstate[INJECT_XSTATE_MAX];
};

/* Finds a thread of thread->pid at a system call as inject.h wants it, stops it there and saves its state; an error
 * after `limit_ns`. pid and memory are set by the caller. SIGCHLD must be blocked. */
enum sc_status inject_thread_take(pid_t pid, uint64_t limit_ns, struct inject_thread *thread,
                                  struct sc_error *err) SC_NODISCARD;
/* Puts everything back and lets it go. False: it is gone. */
bool inject_thread_release(struct inject_thread *thread);
/* The same before its signals were held back, when the stop was one's delivery: with that signal. */
void inject_thread_deliver(struct inject_thread *thread);
/* Lets it go as it is. */
void inject_thread_abandon(struct inject_thread *thread);

bool inject_thread_get(const struct inject_thread *thread, struct user_regs_struct *regs);
bool inject_thread_set(const struct inject_thread *thread, const struct user_regs_struct *regs);
/* Registers, vector state and shadow stack as they were; it stays stopped. */
bool inject_thread_restore(struct inject_thread *thread);
/* The registers with which the program goes on without a tracer. */
void inject_thread_resumption(const struct inject_thread *thread, struct user_regs_struct *regs);
/* Blocks every signal on it but those of faults, and SIGURG. */
bool inject_thread_hold(struct inject_thread *thread);
/* Keeps the signal of this stop for the release. */
void inject_thread_keep_signal(struct inject_thread *thread);
/* Until the next signal or stop, or system call if wanted. */
enum inject_stop inject_thread_run(struct inject_thread *thread, bool syscalls, uint64_t deadline);
/* Stops it wherever it is; another stop may come first. */
enum inject_stop inject_thread_stop(struct inject_thread *thread, uint64_t deadline);
/* Makes one system call, at a `syscall` instruction. INJECT_SYSCALL: done, stopped at its exit. INJECT_SIGNAL: a signal
 * came first, before they were held back. stack 0: its own. */
enum inject_stop inject_thread_syscall(struct inject_thread *thread, uint64_t instruction, uint64_t stack, long number,
                                       const uint64_t args[6], uint64_t deadline, long *result);
/* Stopped in a wait for a lock that it was not given: to break it off there leaves no lock held. */
bool inject_thread_waits_for_lock(struct inject_thread *thread);
bool inject_thread_read(const struct inject_thread *thread, uint64_t address, void *bytes, size_t size);
bool inject_thread_write(const struct inject_thread *thread, uint64_t address, const void *bytes, size_t size);

/* ---- calls on it (inject_call.c) -------------------------------------------------------------------- */
struct inject_caller;

enum inject_result {
  INJECT_RETURNED,
  INJECT_FAULTED, /* a fault in the call; the thread can be put back */
  INJECT_STUCK,   /* waits for a lock that nobody gave away; it can be put back without harm */
  INJECT_LEFT,    /* did not return in time and was let go: it will put itself back when it returns */
  INJECT_ENDED,   /* the thread or the process is no more */
};

/* Makes room for the calls in memory of its own in the process. SC_OK and *out NULL: a signal came first, and the
 * thread was let go with it: take one again. On an error the thread was released. */
enum sc_status inject_caller_open(struct inject_thread *thread, struct inject_caller **out,
                                  struct sc_error *err) SC_NODISCARD;
/* Calls function(a, b). may_give_up: a call that waits for a lock at the deadline is taken back (INJECT_STUCK);
 * otherwise it is let go (INJECT_LEFT), for a function that holds locks must not be cut off. */
enum inject_result inject_call(struct inject_caller *caller, uint64_t function, uint64_t a, uint64_t b,
                               uint64_t limit_ns, bool may_give_up, uint64_t *result);
/* From here on the int at `address`, the thread's errno, is put back at the end. */
void inject_caller_keep_errno(struct inject_caller *caller, uint64_t address);
/* Address in the process of a copy of text, valid until the next one; 0: no room. */
uint64_t inject_caller_text(struct inject_caller *caller, const char *text);
/* "SIGSEGV at 0x10", of the last INJECT_FAULTED. */
const char *inject_caller_fault(const struct inject_caller *caller);
/* Gives the room back and releases the thread, except after INJECT_LEFT and INJECT_ENDED. Frees it in every case.
 * False: the thread or the process is no more. */
bool inject_caller_close(struct inject_caller *caller);

#endif
