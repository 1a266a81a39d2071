/* SPDX-License-Identifier: Apache-2.0
 * From InitializeInjection to exit. What prevents tracing is said on one line of stderr; the program goes on as if we were
 * not there. */
#include "tracer/start.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tracer/control.h"
#include "tracer/names.h"
#include "tracer/nvtx.h"
#include "tracer/thread.h"

enum state {
  STATE_WAITING = 0, /* CUDA has not started */
  STATE_STARTING,
  STATE_TRACING,
  STATE_FAILED,
  STATE_DORMANT,
  STATE_STOPPING, /* from TRACING back to DORMANT */
  STATE_DEAD,     /* a forked child of a traced process, or at exit */
};
static _Atomic int state;
static _Atomic bool dormant; /* for good: set before CUDA starts, or by who injected us */

static struct sc_tracer_options options; /* of sc_tracer_start */
static pid_t traced_pid;

static bool change(int from, int to) { return atomic_compare_exchange_strong(&state, &from, to); }

bool sc_tracer_awaited(void) {
  int now = atomic_load_explicit(&state, memory_order_relaxed);
  return now == STATE_WAITING || now == STATE_STARTING;
}

/* ---- fork -------------------------------------------------------------------------------------------- */
static void in_child(void) {
  sc_names_forked();
  sc_nvtx_forked();
  if (atomic_load_explicit(&state, memory_order_relaxed) == STATE_WAITING)
    return; /* the child is traced on its own account if it starts CUDA */
  atomic_store_explicit(&state, STATE_DEAD, memory_order_relaxed);
  sc_control_forked();
  sc_threads_forked();
  sc_session_forked();
}

static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, in_child); }

void sc_tracer_watch_forks(void) { (void)pthread_once(&forks_watched, watch_forks); }

/* ---- the end of the process -------------------------------------------------------------------------- */
static void say_where(const struct sc_session_end *end) {
  if (end->lost > 0 || end->full)
    sc_tracer_say(&options, "trace in %s, incomplete: %llu records lost%s; see it with: synccount report %s", end->path,
                  (unsigned long long)end->lost,
                  !end->full            ? ""
                  : end->uncounted == 0 ? " for want of room (disk, file size limit or SYNCCOUNT_MAX_TRACE): totals are "
                                          "counted all the same, details are missing"
                                        : " (no room: disk, file size limit or SYNCCOUNT_MAX_TRACE)",
                  end->path);
  else
    sc_tracer_say(&options, "trace in %s%s; see it with: synccount report %s", end->path,
                  end->closed ? "" : " (left open: a thread was still in a callback)", end->path);
}

/* The state that the process ends in: nothing starts or stops any more. Whoever is starting or stopping gets two seconds
 * to be done: no lock is waited for, since that might be one that the thread which exits holds. */
static int die(void) {
  const struct timespec pause = { 0, 1000 * 1000 };
  for (int attempt = 0; attempt < 2000; attempt++) {
    int was = atomic_load(&state);
    if (was == STATE_STARTING || was == STATE_STOPPING)
      (void)nanosleep(&pause, NULL);
    else if (change(was, STATE_DEAD))
      return was;
  }
  atomic_store(&state, STATE_DEAD);
  return STATE_DEAD;
}

static void at_exit(void) {
  static struct sc_session_end end; /* large, and this runs on the program's stack */
  if (getpid() != traced_pid)
    return;
  int saved = errno;
  sc_control_close();
  int was = die();
  if (was == STATE_FAILED) {
    sc_session_give_up(true);
  } else if (was == STATE_TRACING) {
    sc_session_finish(!sc_tracer_dormant(), &end);
    if (!sc_tracer_dormant())
      say_where(&end);
  }
  errno = saved;
}

/* ---- start ------------------------------------------------------------------------------------------- */
static void start(bool late) {
  char why[SC_SESSION_WHY];
  const struct sc_session_how how = { .late = late, .joins = true };
  sc_tracer_options_read(&options);
  if (options.complaint[0] != '\0')
    sc_tracer_say(&options, "%s", options.complaint);
  traced_pid = getpid();
  enum sc_session session = sc_session_begin(&options, &how, why);
  if (session != SC_SESSION_RUNS)
    sc_tracer_say(&options, "%s", why);
  if (session != SC_SESSION_NONE)
    (void)atexit(at_exit);
  atomic_store(&state, session == SC_SESSION_RUNS ? STATE_TRACING
                       : session == SC_SESSION_UNTRACED ? STATE_FAILED
                                                        : STATE_DEAD);
}

void sc_tracer_start(bool late) {
  if (!change(STATE_WAITING, STATE_STARTING))
    return;
  int saved = errno;
  sc_tracer_watch_forks();
  start(late);
  errno = saved;
}

/* ---- dormant ----------------------------------------------------------------------------------------- */
void sc_tracer_will_sleep(void) { atomic_store_explicit(&dormant, true, memory_order_relaxed); }

bool sc_tracer_dormant(void) { return atomic_load_explicit(&dormant, memory_order_relaxed); }

void sc_tracer_sleep(void) {
  if (!change(STATE_WAITING, STATE_STARTING))
    return;
  int saved = errno;
  sc_tracer_will_sleep();
  sc_tracer_watch_forks();
  traced_pid = getpid();
  atomic_store(&state, STATE_DORMANT);
  if (sc_control_open())
    (void)atexit(at_exit);
  errno = saved;
}

bool sc_tracer_wake(const struct sc_tracer_options *with, char why[SC_SESSION_WHY]) {
  const struct sc_session_how how = { .late = true };
  if (!change(STATE_DORMANT, STATE_STARTING)) {
    (void)snprintf(why, SC_SESSION_WHY, "the process is about to end");
    return false;
  }
  enum sc_session session = sc_session_begin(with, &how, why);
  if (session == SC_SESSION_UNTRACED)
    sc_session_give_up(false);
  (void)change(STATE_STARTING, session == SC_SESSION_RUNS ? STATE_TRACING : STATE_DORMANT);
  return session == SC_SESSION_RUNS;
}

bool sc_tracer_sleep_again(struct sc_session_end *out) {
  if (!change(STATE_TRACING, STATE_STOPPING))
    return false;
  sc_session_finish(false, out);
  (void)change(STATE_STOPPING, STATE_DORMANT);
  return true;
}
