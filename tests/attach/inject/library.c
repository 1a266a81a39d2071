/* SPDX-License-Identifier: Apache-2.0
 * Stands for libsynccount.so: says that it was started, and leaves as little as it can as it was. Variants by macro. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shared.h"

#define EXPORT __attribute__((visibility("default")))
EXPORT int InitializeInjection(void);

#ifdef LIBRARY_SECONDS
static void sleep_long(void)
{
  struct timespec rest = {.tv_sec = LIBRARY_SECONDS / 10, .tv_nsec = LIBRARY_SECONDS % 10 * 100000000};
  while (nanosleep(&rest, &rest) != 0)
    ;
}
#endif

__attribute__((constructor)) static void loaded(void)
{
  struct victim_page *page = victim_page();
  if (page)
    page->constructed++;
#ifdef LIBRARY_SECONDS
  sleep_long();
#endif
  if (page)
    page->constructed_done++;
}

#ifdef LIBRARY_LACKS
extern int nobody_has_this_function(void);
#endif

static void *nothing(void *argument) { return argument; }

/* Every vector register, the flags of floating point, errno, some stack. */
static void make_a_mess(void)
{
  volatile char stack[100000];
  memset((char *)stack, 0x5a, sizeof stack);
  __asm__ volatile("vpcmpeqb %%xmm0, %%xmm0, %%xmm0\n vmovdqa %%xmm0, %%xmm1\n vmovdqa %%xmm0, %%xmm7\n"
                   "vmovdqa %%xmm0, %%xmm8\n vmovdqa %%xmm0, %%xmm15\n vzeroupper\n fldpi\n fstp %%st(0)\n" ::
                       : "xmm0", "xmm1", "xmm7", "xmm8", "xmm15", "memory");
  errno = ENOTEMPTY;
}

int InitializeInjection(void)
{
  struct victim_page *page = victim_page();
  pthread_t thread;
  if (page && (uintptr_t)__builtin_frame_address(0) % 16 != 0)
    page->misaligned++;
#ifdef LIBRARY_FAULTS
  int *volatile nowhere = (int *)16;
  *nowhere = 1;
#endif
#ifdef LIBRARY_LACKS
  nobody_has_this_function();
#endif
  if (pthread_create(&thread, NULL, nothing, NULL) == 0) /* as the real one does */
    pthread_join(thread, NULL);
  make_a_mess();
  if (page) {
    page->started_on = gettid();
    page->started++;
  }
  return 1;
}
