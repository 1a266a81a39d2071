/* SPDX-License-Identifier: Apache-2.0
 * A lock that a signal handler of the program may want too: with signals let in while it is held, a handler that pushes a range
 * would wait for its own thread. */
#ifndef SC_TRACER_LOCK_H
#define SC_TRACER_LOCK_H

#include <pthread.h>
#include <signal.h>

/* *before receives the thread's signal mask, for sc_unlock. */
static inline void sc_lock(pthread_mutex_t *mutex, sigset_t *before) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, before);
  pthread_mutex_lock(mutex);
}

static inline void sc_unlock(pthread_mutex_t *mutex, const sigset_t *before) {
  pthread_mutex_unlock(mutex);
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
