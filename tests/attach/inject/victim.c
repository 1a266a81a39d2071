/* SPDX-License-Identifier: Apache-2.0
 * Programs to load a library into. Each knows what it must see and counts in its page what it should not have. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "shared.h"

static struct victim_page *page;

static uint64_t now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void complain(int value)
{
  uint32_t n = page->errors++;
  if (n < 4)
    page->error_value[n] = value;
}

static void start(pthread_t *thread, void *(*function)(void *), intptr_t argument)
{
  if (pthread_create(thread, NULL, function, (void *)argument) != 0)
    _exit(70);
}

/* ---- threads that allocate -------------------------------------------------------------------------- */

static void *churn(void *argument)
{
  int self = (int)(intptr_t)argument;
  unsigned seed = (unsigned)self + 1;
  void *kept[64] = {0};
  page->ready++;
  while (!page->stop) {
    for (int i = 0; i < 200; ++i) {
      unsigned at = (seed = seed * 1664525u + 1013904223u) >> 26;
      free(kept[at]);
      size_t size = 16 + (seed >> 8) % 30000;
      kept[at] = malloc(size);
      if (!kept[at])
        complain(1);
      else
        memset(kept[at], self, size < 64 ? size : 64);
    }
    page->turns[self]++;
  }
  for (int i = 0; i < 64; ++i)
    free(kept[i]);
  return NULL;
}

static void *wait_in_poll(void *argument)
{
  (void)argument;
  page->waiter = gettid();
  page->ready++;
  while (!page->stop) {
    if (poll(NULL, 0, 500) != 0)
      complain(errno);
  }
  return NULL;
}

/* As CUDA's own thread does: without limit. */
static void *serve(void *argument)
{
  struct pollfd end = {.fd = (int)(intptr_t)argument, .events = POLLIN};
  page->waiter = gettid();
  page->ready++;
  if (poll(&end, 1, -1) != 1)
    complain(errno);
  return NULL;
}

static void run_churn(void)
{
  pthread_t threads[5];
  int ends[2];
  if (pipe(ends) != 0)
    _exit(71);
  for (int i = 0; i < 4; ++i)
    start(&threads[i], churn, i);
  start(&threads[4], serve, ends[0]);
  for (int i = 0; i < 4; ++i)
    pthread_join(threads[i], NULL);
  close(ends[1]);
  pthread_join(threads[4], NULL);
}

/* ---- one thread that waits --------------------------------------------------------------------------- */

#define NAP_MS 300

static void check_time(uint64_t begin)
{
  if (now_ns() - begin < NAP_MS * 1000000ull)
    complain(-1); /* woken too early */
}

static void run_nanosleep(void)
{
  page->ready++;
  while (!page->stop) {
    uint64_t begin = now_ns();
    const struct timespec nap = {.tv_nsec = NAP_MS * 1000000};
    if (nanosleep(&nap, NULL) != 0)
      complain(errno);
    check_time(begin);
    page->turns[0]++;
  }
}

static void run_poll(void)
{
  page->ready++;
  while (!page->stop) {
    uint64_t begin = now_ns();
    if (poll(NULL, 0, NAP_MS) != 0)
      complain(errno);
    check_time(begin);
    page->turns[0]++;
  }
}

static void *feed(void *argument)
{
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  int fd = (int)(intptr_t)argument;
  for (char byte = 0; !page->stop; ++byte) {
    struct timespec nap = {.tv_nsec = 200 * 1000000};
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
    if (write(fd, &byte, 1) != 1)
      complain(2);
  }
  close(fd);
  return NULL;
}

/* Every byte arrives, in order, and no call is interrupted. kind: r read, v recv with a time limit, e epoll */
static void run_reader(char kind)
{
  int ends[2];
  pthread_t feeder;
  char expected = 0, byte;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    _exit(71);
  const struct timeval limit = {.tv_sec = 100};
  if (kind == 'v')
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
  start(&feeder, feed, ends[1]);
  page->ready++;
  for (;;) {
    if (kind == 'e' && epoll_wait(set, &event, 1, -1) != 1)
      complain(errno);
    ssize_t got = kind == 'v' ? recv(ends[0], &byte, 1, 0) : read(ends[0], &byte, 1);
    if (got == 0)
      break;
    if (got < 0)
      complain(errno);
    else if (byte != expected++)
      complain(3);
    page->turns[0]++;
  }
  pthread_join(feeder, NULL);
}

/* ---- signals ----------------------------------------------------------------------------------------- */

static void count_signal(int signal)
{
  if (signal == SIGALRM)
    page->alarms++;
  else if (signal == SIGUSR1)
    page->users++;
  else
    page->queued++;
}

static void handle(int signal)
{
  struct sigaction action = {.sa_handler = count_signal};
  sigaction(signal, &action, NULL);
}

/* Every pause ends by a signal that was handled. */
static void run_pause(void)
{
  handle(SIGUSR1);
  page->ready++;
  while (!page->stop) {
    uint32_t before = page->users;
    pause();
    if (page->users == before && !page->stop)
      complain(4);
    page->turns[0]++;
  }
}

/* One thread between short waits; alarms come at every moment. */
static void run_signals(void)
{
  const struct itimerval often = {.it_interval = {.tv_usec = 2500}, .it_value = {.tv_usec = 2500}};
  handle(SIGUSR1);
  handle(SIGALRM);
  handle(SIGRTMIN);
  setitimer(ITIMER_REAL, &often, NULL);
  page->ready++;
  while (!page->stop) {
    if (poll(NULL, 0, 20) != 0 && errno != EINTR)
      complain(errno);
    page->turns[0]++;
  }
}

/* ---- busy ones ---------------------------------------------------------------------------------------- */

static void run_busy(bool calls)
{
  page->ready++;
  for (unsigned i = 1; !page->stop; ++i) {
    for (volatile int j = 0; j < 20000; ++j)
      ;
    if (calls && i % 100 == 0)
      syscall(SYS_sched_yield);
    page->turns[0]++;
  }
}

/* ---- registers ---------------------------------------------------------------------------------------- */

struct registers {
  uint64_t general[8]; /* rbx rbp r12 r13 r14 r15 r8 r9 */
  uint8_t vectors[16][32];
  uint64_t red_zone[16];
  uint64_t flags;
};
/* Fills every register, and 128 bytes below the stack, from `in`, sleeps a millisecond or so, and stores them in `out`.
 * Returns what nanosleep returned. */
long victim_registers(const struct registers *in, struct registers *out, const struct timespec *nap);
__asm__(
    ".text\n.globl victim_registers\nvictim_registers:\n"
    " push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rsi\n push %rdi\n push %rdx\n"
    " mov %rdi, %rax\n"
    ".set .Li, 0\n.rept 16\n mov 576 + 8*.Li(%rax), %rcx\n mov %rcx, -128 + 8*.Li(%rsp)\n .set .Li, .Li + 1\n.endr\n"
    " vmovdqu 64(%rax), %ymm0\n vmovdqu 96(%rax), %ymm1\n vmovdqu 128(%rax), %ymm2\n vmovdqu 160(%rax), %ymm3\n"
    " vmovdqu 192(%rax), %ymm4\n vmovdqu 224(%rax), %ymm5\n vmovdqu 256(%rax), %ymm6\n vmovdqu 288(%rax), %ymm7\n"
    " vmovdqu 320(%rax), %ymm8\n vmovdqu 352(%rax), %ymm9\n vmovdqu 384(%rax), %ymm10\n vmovdqu 416(%rax), %ymm11\n"
    " vmovdqu 448(%rax), %ymm12\n vmovdqu 480(%rax), %ymm13\n vmovdqu 512(%rax), %ymm14\n vmovdqu 544(%rax), %ymm15\n"
    " mov 0(%rax), %rbx\n mov 8(%rax), %rbp\n mov 16(%rax), %r12\n mov 24(%rax), %r13\n mov 32(%rax), %r14\n"
    " mov 40(%rax), %r15\n mov 48(%rax), %r8\n mov 56(%rax), %r9\n"
    " mov %rdx, %rdi\n xor %esi, %esi\n std\n stc\n mov $35, %eax\n"
    " syscall\n"
    " mov 16(%rsp), %rsi\n" /* out */
    " mov %rbx, 0(%rsi)\n mov %rbp, 8(%rsi)\n mov %r12, 16(%rsi)\n mov %r13, 24(%rsi)\n mov %r14, 32(%rsi)\n"
    " mov %r15, 40(%rsi)\n mov %r8, 48(%rsi)\n mov %r9, 56(%rsi)\n"
    ".set .Li, 0\n.rept 16\n mov -128 + 8*.Li(%rsp), %rcx\n mov %rcx, 576 + 8*.Li(%rsi)\n .set .Li, .Li + 1\n.endr\n"
    " pushfq\n pop %rcx\n mov %rcx, 704(%rsi)\n cld\n"
    " vmovdqu %ymm0, 64(%rsi)\n vmovdqu %ymm1, 96(%rsi)\n vmovdqu %ymm2, 128(%rsi)\n vmovdqu %ymm3, 160(%rsi)\n"
    " vmovdqu %ymm4, 192(%rsi)\n vmovdqu %ymm5, 224(%rsi)\n vmovdqu %ymm6, 256(%rsi)\n vmovdqu %ymm7, 288(%rsi)\n"
    " vmovdqu %ymm8, 320(%rsi)\n vmovdqu %ymm9, 352(%rsi)\n vmovdqu %ymm10, 384(%rsi)\n vmovdqu %ymm11, 416(%rsi)\n"
    " vmovdqu %ymm12, 448(%rsi)\n vmovdqu %ymm13, 480(%rsi)\n vmovdqu %ymm14, 512(%rsi)\n vmovdqu %ymm15, 544(%rsi)\n"
    " vzeroupper\n"
    " pop %rdx\n pop %rdi\n pop %rsi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
    " ret\n");
_Static_assert(offsetof(struct registers, red_zone) == 576 && offsetof(struct registers, flags) == 704,
               "as the code has it");

/* Its own ways with the signals that a tracer likes to use. */
static void set_signals(void)
{
  handle(SIGSEGV);
  handle(SIGURG);
  signal(SIGTRAP, SIG_IGN);
}

static void check_signals(void)
{
  struct sigaction fault, urgent, trap;
  sigaction(SIGSEGV, NULL, &fault);
  sigaction(SIGURG, NULL, &urgent);
  sigaction(SIGTRAP, NULL, &trap);
  if (fault.sa_handler != count_signal || urgent.sa_handler != count_signal || trap.sa_handler != SIG_IGN)
    complain(16);
}

static void run_registers(long nap_ms)
{
  unsigned seed = 1;
  set_signals();
  page->ready++;
  while (!page->stop) {
    struct registers in, out = {0};
    const struct timespec nap = {.tv_sec = nap_ms / 1000, .tv_nsec = nap_ms % 1000 * 1000000};
    for (size_t i = 0; i < sizeof in; ++i)
      ((uint8_t *)&in)[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    uint64_t begin = now_ns();
    errno = 12345;
    long result = victim_registers(&in, &out, &nap);
    if (now_ns() - begin < (uint64_t)nap_ms * 1000000u)
      complain(10);
    if (errno != 12345)
      complain(11);
    if (result != 0)
      complain((int)result);
    if (memcmp(in.general, out.general, sizeof in.general) != 0)
      complain(12);
    if (memcmp(in.vectors, out.vectors, sizeof in.vectors) != 0)
      complain(13);
    if (memcmp(in.red_zone, out.red_zone, sizeof in.red_zone) != 0)
      complain(14);
    if ((out.flags & 0x401) != 0x401) /* direction and carry */
      complain(15);
    check_signals();
    page->turns[0]++;
  }
}

/* ---- threads that must not be chosen ------------------------------------------------------------------- */

static void wait_in_handler(int signal)
{
  (void)signal;
  page->waiter = gettid();
  page->ready++;
  while (!page->stop)
    poll(NULL, 0, -1);
}

static void *be_interrupted(void *argument)
{
  (void)argument;
  raise(SIGUSR2);
  return NULL;
}

/* The thread in the handler waits without limit, which looks best; the main one naps. */
static void run_handler(void)
{
  struct sigaction action = {.sa_handler = wait_in_handler};
  pthread_t thread;
  sigaction(SIGUSR2, &action, NULL);
  start(&thread, be_interrupted, 0);
  while (!page->stop)
    poll(NULL, 0, 100);
}

static void *load_slowly(void *argument)
{
  void *library = dlopen(argument, RTLD_NOW);
  if (!library)
    complain(20);
  return library;
}

/* One thread keeps the loader's lock for seconds, one waits in poll. */
static void run_locked(char *library)
{
  pthread_t thread, waiter;
  pthread_create(&thread, NULL, load_slowly, library);
  while (!page->constructed)
    poll(NULL, 0, 1);
  start(&waiter, wait_in_poll, 0);
  pthread_join(thread, NULL);
  pthread_join(waiter, NULL);
}

/* ---- circumstances ------------------------------------------------------------------------------------ */

static void forbid_opens(void)
{
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    complain(30);
}

static void *die_soon(void *argument)
{
  while (!page->ready)
    usleep(100);
  usleep((useconds_t)(intptr_t)argument);
  _exit(0);
}

int main(int argc, char **argv)
{
  const char *mode = argc > 1 ? argv[1] : "";
  char *argument = argc > 2 ? argv[2] : (char *)"";
  pthread_t thread;
  page = victim_page();
  if (!page)
    return 64;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (strcmp(mode, "churn") == 0)
    run_churn();
  else if (strcmp(mode, "nanosleep") == 0)
    run_nanosleep();
  else if (strcmp(mode, "poll") == 0)
    run_poll();
  else if (strcmp(mode, "read") == 0 || strcmp(mode, "recv") == 0 || strcmp(mode, "epoll") == 0)
    run_reader(strcmp(mode, "recv") == 0 ? 'v' : mode[0]);
  else if (strcmp(mode, "pause") == 0)
    run_pause();
  else if (strcmp(mode, "signals") == 0)
    run_signals();
  else if (strcmp(mode, "busy") == 0)
    run_busy(true);
  else if (strcmp(mode, "spin") == 0)
    run_busy(false);
  else if (strcmp(mode, "registers") == 0)
    run_registers(atol(argument));
  else if (strcmp(mode, "handler") == 0)
    run_handler();
  else if (strcmp(mode, "locked") == 0)
    run_locked(argument);
  else if (strcmp(mode, "filtered") == 0) {
    forbid_opens();
    run_poll();
  } else if (strcmp(mode, "exits") == 0) {
    start(&thread, die_soon, atol(argument));
    run_churn();
  } else if (strcmp(mode, "nobody") == 0) { /* closed to its own user too, for it was root's */
    if (setgid(65534) != 0 || setuid(65534) != 0)
      return 65;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* which that cleared */
    run_poll();
  } else if (strcmp(mode, "chroot") == 0) {
    if (chroot(argument) != 0)
      return 65;
    run_poll();
  } else {
    return 66;
  }
  return page->errors != 0;
}
