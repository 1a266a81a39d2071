/* SPDX-License-Identifier: Apache-2.0
 * The gate is a word that only the closing side changes. Entering stores `busy` and then reads the gate; closing shuts
 * the gate and then reads every `busy`. That needs a full barrier on both sides; membarrier(2) lets the closing side
 * pay for both, so that entering costs two plain memory accesses. Without it, entering pays for a fence. */
#include "tracer/thread.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tracer/beyond.h"
#include "tracer/nvtx.h"
#include "tracer/stacks.h"

struct sc_gate *_Atomic sc_thread_gate; /* set once, before the first sc_threads_start, by which time threads may ask */
bool sc_thread_fence;                   /* set before it */
__thread struct sc_thread *sc_thread_current;

static struct sc_writer *writer; /* of the session; changed while the gate is shut and nobody is inside */
static uint32_t last_session;
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sc_thread *registry;
static pthread_key_t end_key;
static bool end_key_made;

static __thread bool beginning; /* our own allocations may come back to us through somebody's hook */

static void thread_ended(void *value);

static int membarrier(int command) { return (int)syscall(SYS_membarrier, command, 0, 0); }

bool sc_threads_prepare(void) {
  long page = sysconf(_SC_PAGESIZE);
  if (sc_thread_gate != NULL)
    return true;
  void *memory = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return false;
  (void)madvise(memory, (size_t)page, MADV_WIPEONFORK); /* where the kernel cannot, the fork handler does it */
  sc_thread_fence = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0;
  end_key_made = pthread_key_create(&end_key, thread_ended) == 0;
  struct sc_gate *gate = memory;
  atomic_store_explicit(&gate->alive, 1, memory_order_relaxed);
  atomic_store_explicit(&sc_thread_gate, gate, memory_order_release);
  return true;
}

/* The thread's name as the kernel knows it; people find their threads by it. */
static void put_name(struct sc_thread *thread) {
  char name[17] = "";
  if (thread->out != NULL && prctl(PR_GET_NAME, name, 0, 0, 0) == 0 && name[0] != '\0')
    sc_writer_text(thread->out, SC_RECORD_THREAD, 0, name, strlen(name));
}

/* What is known of the calling thread, made when it is first seen; the registry lock is held. NULL when memory is out. */
static struct sc_thread *enlist(void) {
  struct sc_thread *thread = sc_thread_current;
  if (thread != NULL)
    return thread;
  thread = calloc(1, sizeof(*thread));
  if (thread == NULL)
    return NULL;
  thread->next = registry;
  registry = thread;
  return thread;
}

/* The thread comes into a session with the stream `out`, knowing nothing of an earlier one. It is inside from here on, so
 * that the session does not end under it; the registry lock is held. */
static void join(struct sc_thread *thread, uint32_t session, struct sc_writer_thread *out) {
  atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
  sc_stacks_thread_ended(thread);
  sc_beyond_thread_ended(thread);
  thread->session = session;
  thread->out = out;
  thread->open = (struct sc_open_call){ .watch = NULL };
  thread->fresh = true;
  thread->began_before = 0;
  thread->memory = (struct sc_memory_cache){ .generation = 0 };
  thread->context = NULL;
  thread->context_uid = 0;
  thread->device = 255;
}

/* What a thread's stream begins with. */
static void introduce(struct sc_thread *thread) {
  sc_thread_current = thread;
  if (end_key_made)
    (void)pthread_setspecific(end_key, thread);
  put_name(thread);
  sc_nvtx_replay(thread);
  sc_thread_leave(thread);
}

struct sc_thread *sc_thread_begin(void) {
  struct sc_thread *thread = sc_thread_current;
  if (beginning || (thread != NULL && atomic_load_explicit(&thread->busy, memory_order_relaxed) != 0))
    return NULL;
  int saved = errno;
  beginning = true;
  pthread_mutex_lock(&registry_lock);
  uint32_t session = sc_threads_session(); /* it cannot end while we hold the lock */
  thread = session != 0 ? enlist() : NULL;
  if (thread != NULL)
    join(thread, session, sc_writer_thread_begin(writer));
  pthread_mutex_unlock(&registry_lock);
  if (thread != NULL)
    introduce(thread);
  beginning = false;
  errno = saved;
  return thread;
}

void sc_threads_start(struct sc_writer *to, struct sc_writer_thread *mine) {
  pthread_mutex_lock(&registry_lock);
  writer = to;
  uint32_t session = ++last_session;
  struct sc_thread *thread = mine != NULL ? enlist() : NULL;
  if (thread != NULL)
    join(thread, session, mine);
  pthread_mutex_unlock(&registry_lock);
  if (thread != NULL)
    introduce(thread);
  else
    sc_writer_thread_end(mine);
  atomic_store_explicit(&sc_thread_gate->open, session, memory_order_release);
}

void sc_thread_lose(void) {
  struct sc_trace_live *live = sc_writer_live(writer);
  __atomic_fetch_add(&live->lost_records, 1, __ATOMIC_RELAXED);
}

/* pthread calls this when the thread ends. It may be called again if a later destructor used CUDA. */
static void thread_ended(void *value) {
  struct sc_thread *thread = value;
  sc_thread_current = NULL;
  if (atomic_load_explicit(&sc_thread_gate->alive, memory_order_relaxed) == 0) /* a forked child: not ours to touch */
    return;
  pthread_mutex_lock(&registry_lock);
  for (struct sc_thread **at = &registry; *at != NULL; at = &(*at)->next)
    if (*at == thread) {
      *at = thread->next;
      break;
    }
  if (thread->session == sc_threads_session()) /* otherwise the stream went with its session */
    sc_writer_thread_end(thread->out);
  pthread_mutex_unlock(&registry_lock);
  sc_stacks_thread_ended(thread);
  sc_beyond_thread_ended(thread);
  free(thread);
}

static bool somebody_is_inside(void) {
  bool inside = false;
  pthread_mutex_lock(&registry_lock);
  for (struct sc_thread *thread = registry; thread != NULL; thread = thread->next)
    inside = inside || (thread != sc_thread_current && atomic_load_explicit(&thread->busy, memory_order_acquire) != 0);
  pthread_mutex_unlock(&registry_lock);
  return inside;
}

/* The lock is free between two looks: threads go on beginning and ending. */
bool sc_threads_are_out(void) {
  const struct timespec pause = { 0, 100 * 1000 };
  for (int attempt = 0; attempt < 5000; attempt++) { /* half a second: one that long inside is stopped or stuck */
    if (!somebody_is_inside())
      return true;
    (void)nanosleep(&pause, NULL);
  }
  return false;
}

bool sc_threads_stop(void) {
  if (!sc_threads_recording())
    return true;
  pthread_mutex_lock(&registry_lock); /* a thread that is just coming in has its stream before the gate shuts */
  atomic_store_explicit(&sc_thread_gate->open, 0, memory_order_seq_cst);
  pthread_mutex_unlock(&registry_lock);
  if (sc_thread_fence)
    atomic_thread_fence(memory_order_seq_cst);
  else
    (void)membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  return sc_threads_are_out();
}

void sc_threads_forked(void) {
  if (sc_thread_gate != NULL) { /* where the kernel did not wipe it */
    atomic_store_explicit(&sc_thread_gate->open, 0, memory_order_relaxed);
    atomic_store_explicit(&sc_thread_gate->alive, 0, memory_order_relaxed);
  }
  sc_thread_current = NULL;
}
