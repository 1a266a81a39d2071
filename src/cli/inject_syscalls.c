/* SPDX-License-Identifier: Apache-2.0
 * At which system calls a library may be loaded. */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "cli/inject_parts.h"

/* Neither malloc nor the loader makes these, so a thread that is at one holds none of their locks. */
enum call_kind {
  WAITS = 1,      /* a thread spends its time in it: may be interrupted there */
  PASSES = 2,     /* good at its entry alone: short, or an interruption would be noticed */
  NOT_FILES = 4,  /* only on pipes, sockets and the like: the loader reads files */
  EINTR_ENDS = 8, /* the kernel never restarts it after a stop: it is made to */
};
static const struct {
  long number;
  unsigned kind;
  int timeout; /* index of the argument that is negative or NULL when it waits without limit; -1: none such */
} calls[] = {
    {SYS_poll, WAITS, 2},
    {SYS_ppoll, WAITS, 2},
    {SYS_select, WAITS, 4},
    {SYS_pselect6, WAITS, 4},
    {SYS_epoll_wait, WAITS | EINTR_ENDS, 3},
    {SYS_epoll_pwait, WAITS | EINTR_ENDS, 3},
    {441 /* epoll_pwait2 */, WAITS | EINTR_ENDS, 3},
    {SYS_nanosleep, WAITS, -1},
    {SYS_clock_nanosleep, WAITS, -1},
    {SYS_restart_syscall, WAITS, -1}, /* the rest of a wait with a limit: no lock has one */
    {SYS_pause, WAITS, -1},
    {SYS_rt_sigsuspend, WAITS, -1},
    {SYS_rt_sigtimedwait, WAITS | EINTR_ENDS, -1},
    {SYS_accept, WAITS | EINTR_ENDS, -1},
    {SYS_accept4, WAITS | EINTR_ENDS, -1},
    {SYS_recvfrom, WAITS | EINTR_ENDS, -1},
    {SYS_recvmsg, WAITS | EINTR_ENDS, -1},
    {SYS_wait4, WAITS, -1},
    {SYS_waitid, WAITS, -1},
    {SYS_read, WAITS | NOT_FILES | EINTR_ENDS, -1},
    {SYS_readv, WAITS | NOT_FILES | EINTR_ENDS, -1},
    {SYS_semop, PASSES | EINTR_ENDS, -1},
    {SYS_semtimedop, PASSES | EINTR_ENDS, -1},
    {SYS_io_getevents, PASSES | EINTR_ENDS, -1},
    {SYS_sendto, PASSES | EINTR_ENDS, -1},
    {SYS_sendmsg, PASSES | EINTR_ENDS, -1},
    {SYS_recvmmsg, PASSES | EINTR_ENDS, -1},
    {SYS_ioctl, PASSES, -1},
    {SYS_write, PASSES, -1},
    {SYS_writev, PASSES, -1},
    {SYS_sched_yield, PASSES, -1},
    {SYS_clock_gettime, PASSES, -1},
    {SYS_gettimeofday, PASSES, -1},
    {SYS_getrusage, PASSES, -1},
    {SYS_times, PASSES, -1},
    {SYS_getpid, PASSES, -1},
    {SYS_gettid, PASSES, -1},
    {SYS_getppid, PASSES, -1},
    {SYS_getuid, PASSES, -1},
    {SYS_geteuid, PASSES, -1},
};

static unsigned call_kind(long number, int *timeout)
{
  for (size_t i = 0; i < SC_COUNTOF(calls); ++i) {
    if (calls[i].number == number) {
      *timeout = calls[i].timeout;
      return calls[i].kind;
    }
  }
  return 0;
}

static bool is_file(pid_t pid, uint64_t fd)
{
  char path[64];
  struct stat found;
  snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, (int)fd);
  return stat(path, &found) != 0 || S_ISREG(found.st_mode) || S_ISBLK(found.st_mode) || S_ISDIR(found.st_mode);
}

/* 0: none of the above; else the lower the better. A wait without limit is mostly that of a thread which serves the
 * others and is not missed; one with a limit may start anew. */
int inject_call_rank(pid_t pid, long number, const uint64_t args[6], bool entry)
{
  int timeout = -1;
  unsigned kind = call_kind(number, &timeout);
  if (!kind || (!entry && !(kind & WAITS)) || ((kind & NOT_FILES) && is_file(pid, args[0])))
    return 0;
  if (timeout < 0)
    return 2;
  bool pointer = number == SYS_ppoll || number == SYS_select || number == SYS_pselect6 || number == 441;
  bool forever = pointer ? args[timeout] == 0 : (int32_t)args[timeout] < 0;
  return forever ? 1 : kind & EINTR_ENDS ? 3 : 2;
}

bool inject_call_ends_with_eintr(long number)
{
  int timeout;
  return (call_kind(number, &timeout) & EINTR_ENDS) != 0;
}
