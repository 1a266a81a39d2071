/* SPDX-License-Identifier: Apache-2.0
 * From InitializeInjection to exit. Everything that prevents tracing is written into the trace (so that the command
 * line can say why) and onto one line of stderr; the program goes on as if we were not there. */
#include "tracer/start.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/trace.h"
#include "tracer/about.h"
#include "tracer/beyond.h"
#include "tracer/callback.h"
#include "tracer/cost.h"
#include "tracer/cupti.h"
#include "tracer/message.h"
#include "tracer/names.h"
#include "tracer/nvtx.h"
#include "tracer/stacks.h"
#include "tracer/thread.h"
#include "tracer/watch.h"

enum { /* CUPTI_CBID_RESOURCE_... */
       CONTEXT_DESTROY_STARTING = 2,
       CU_INIT_FINISHED = 5,
};
#define NAMES_TRIED 1000

enum state {
  STATE_WAITING = 0, /* CUDA has not started */
  STATE_STARTING,
  STATE_TRACING,
  STATE_FAILED,
  STATE_DEAD, /* a forked child of a traced process, or at exit */
};
static _Atomic int state;

static struct sc_tracer_options options;
static struct sc_cupti cupti;
static struct sc_watch_table table;
static struct sc_writer *writer;
static char path[4096];
static pid_t traced_pid;

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
  sc_threads_forked();
  sc_writer_abandon(writer);
}

static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, in_child); }

void sc_tracer_watch_forks(void) { (void)pthread_once(&forks_watched, watch_forks); }

/* ---- the file ---------------------------------------------------------------------------------------- */
static void host_name(char *name, size_t size) {
  if (gethostname(name, size) != 0)
    (void)snprintf(name, size, "localhost");
  name[size - 1] = '\0';
  for (char *at = name; *at != '\0'; at++)
    if (*at == '/' || (unsigned char)*at <= ' ')
      *at = '_';
}

/* synccount-<host>-<pid>.sctrace in the asked folder; -2, -3, ... when pids come again. */
static bool open_trace(uint32_t flags, struct sc_error *err) {
  char host[256];
  host_name(host, sizeof(host));
  for (int attempt = 1; attempt <= NAMES_TRIED; attempt++) {
    char number[16] = "";
    if (attempt > 1)
      (void)snprintf(number, sizeof(number), "-%d", attempt);
    int n = snprintf(path, sizeof(path), "%s/synccount-%s-%ld%s" SC_TRACE_SUFFIX, options.output, host, (long)getpid(),
                     number);
    if (n < 0 || (size_t)n >= sizeof(path)) {
      (void)sc_error_set(err, SC_ERR_LIMIT, "SYNCCOUNT_OUTPUT is too long a path");
      return false;
    }
    if (access(path, F_OK) == 0)
      continue;
    struct sc_writer_options with = { .path = path, .flags = flags, .max_bytes = options.max_bytes,
                                      .counts_beyond = true };
    if (sc_writer_open(&with, &writer, err) == SC_OK)
      return true;
    if (access(path, F_OK) != 0) /* otherwise somebody was faster: the next number */
      return false;
  }
  (void)sc_error_set(err, SC_ERR_LIMIT, "%s and %d more of its kind exist; choose another SYNCCOUNT_OUTPUT", path,
                     NAMES_TRIED - 1);
  return false;
}

/* ---- the stand-in libraries -------------------------------------------------------------------------- */
/* The stand-in libcuda names itself; a real one has no such symbol. */
static const char *simulated_version(const void **symbol) {
  void *libcuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  *symbol = libcuda != NULL ? dlsym(libcuda, "simcuda_version") : NULL;
  if (*symbol == NULL)
    return NULL;
  const char *(*version)(void);
  memcpy(&version, symbol, sizeof(version));
  const char *text = version();
  return text != NULL ? text : "unknown";
}

/* ---- start ------------------------------------------------------------------------------------------- */
static void put_note(struct sc_writer_thread *thread, enum sc_note note, const char *text) {
  if (thread != NULL)
    sc_writer_text(thread, SC_RECORD_NOTE, note, text, strlen(text));
}

static void put_apis(struct sc_writer_thread *thread) {
  for (unsigned domain = SC_DOMAIN_DRIVER; thread != NULL && domain <= SC_DOMAIN_RUNTIME; domain++)
    for (uint32_t cbid = 0; cbid < table.count[domain]; cbid++) {
      const struct sc_watch *watch = &table.of_domain[domain][cbid];
      const char *name = NULL;
      if (watch->api != 0 && cupti.callback_name((int)domain, cbid, &name) == 0 && name != NULL)
        sc_writer_api(thread, watch->api, (uint8_t)domain, cbid, (enum sc_op)watch->op, name);
    }
}

/* "cudaFree_v3020: CUPTI_ERROR_UNKNOWN (999)" */
static void describe_refusal(int domain, uint32_t cbid, int result, char *text, size_t size) {
  const char *name = NULL;
  char why[160];
  sc_cupti_result(&cupti, result, why, sizeof(why));
  if (cupti.callback_name(domain, cbid, &name) != 0 || name == NULL)
    name = "?";
  (void)snprintf(text, size, "%.200s: %s", name, why);
}

static void note_refusals(unsigned refused, const char *first) {
  char note[700];
  struct sc_thread *self = refused > 0 ? sc_thread_enter() : NULL;
  if (self == NULL)
    return;
  (void)snprintf(note, sizeof(note),
                 "cuptiEnableCallback refused %u of the watched calls (first: %s); they are not counted", refused,
                 first);
  put_note(self->out, SC_NOTE_DRIVER, note);
  sc_thread_leave(self);
}

/* Enables what the table wants; an id that CUPTI refuses is not watched, and the trace says so. The runtime first: a
 * driver call that is seen before the runtime call around it would count as one of its own. */
static void enable_all(void) {
  static const int domains[] = { SC_DOMAIN_RUNTIME, SC_DOMAIN_DRIVER };
  unsigned refused = 0;
  char first[512] = "";
  for (size_t i = 0; i < SC_COUNTOF(domains); i++)
    for (uint32_t cbid = 0; cbid < table.count[domains[i]]; cbid++) {
      const struct sc_watch *watch = &table.of_domain[domains[i]][cbid];
      if (watch->action == SC_ACTION_NONE)
        continue;
      int result = cupti.enable(1, cupti.subscriber, domains[i], cbid);
      /* Names without a layout are entry points of long ago: no program misses them. */
      if (result != 0 && watch->layout != NULL && refused++ == 0)
        describe_refusal(domains[i], cbid, result, first, sizeof(first));
    }
  /* So that memory of a context that goes is forgotten; without it a reset is still seen by its name. */
  (void)cupti.enable(1, cupti.subscriber, SC_DOMAIN_RESOURCE, CONTEXT_DESTROY_STARTING);
  (void)cupti.enable(1, cupti.subscriber, SC_DOMAIN_RESOURCE, CU_INIT_FINISHED);
  note_refusals(refused, first);
}

static void at_exit(void);

/* True when callbacks arrive; `thread`, in which the process is described, then is this thread's stream. */
static bool begin_tracing(struct sc_writer_thread *thread, const void *simulated, bool late) {
  struct sc_cupti_failure failure;
  char number[16];
  if (!sc_cupti_bind(&cupti, options.cupti, simulated, sc_callback, &failure)) {
    put_note(thread, failure.note, failure.text);
    sc_tracer_say(&options, "%s", failure.sentence);
    return false;
  }
  sc_about_put(thread, "cupti", cupti.path);
  (void)snprintf(number, sizeof(number), "%u", cupti.version);
  sc_about_put(thread, "cupti_version", number);
  if (!sc_watch_build(&table, cupti.callback_name, options.apis)) {
    (void)cupti.unsubscribe(cupti.subscriber);
    put_note(thread, SC_NOTE_DRIVER, "cuptiGetCallbackName knows no call that is watched, or memory is out");
    sc_tracer_say(&options, "not tracing: %s knows no call that is watched; set SYNCCOUNT_CUPTI to another libcupti.so",
                  cupti.path);
    return false;
  }
  put_apis(thread);
  sc_callback_prepare(&cupti, &table, late);
  sc_beyond_prepare(writer, &table, late);
  sc_stacks_prepare(options.python, options.native, writer, thread);
  sc_threads_start(writer, thread);
  enable_all();
  return true;
}

static void start(bool late) {
  uint64_t began = sc_clock_mono_ns();
  struct sc_error err = { .status = SC_OK };
  const void *simulated = NULL;
  sc_tracer_options_read(&options);
  if (options.complaint[0] != '\0')
    sc_tracer_say(&options, "%s", options.complaint);
  const char *simcuda = simulated_version(&simulated);
  traced_pid = getpid();
  if (!sc_threads_prepare() ||
      !open_trace((late ? SC_TRACE_LATE : 0u) | (simcuda != NULL ? SC_TRACE_SIMULATED : 0u), &err)) {
    sc_tracer_say(&options, "not tracing: %s", err.status == SC_OK ? "out of memory" : err.message);
    atomic_store_explicit(&state, STATE_FAILED, memory_order_relaxed);
    return;
  }
  /* What is said about the process comes first in this thread's stream, whose calls follow. */
  struct sc_writer_thread *thread = sc_writer_thread_begin(writer);
  sc_about_process(thread);
  sc_about_put(thread, "simcuda", simcuda);
  if (options.complaint[0] != '\0')
    put_note(thread, SC_NOTE_TEXT, options.complaint);
  bool tracing = begin_tracing(thread, simulated, late);
  if (!tracing)
    sc_writer_thread_end(thread);
  __atomic_fetch_add(&sc_writer_live(writer)->overhead_ns, sc_clock_mono_ns() - began, __ATOMIC_RELAXED);
  atomic_store_explicit(&state, tracing ? STATE_TRACING : STATE_FAILED, memory_order_relaxed);
  (void)atexit(at_exit);
}

void sc_tracer_start(bool late) {
  int expected = STATE_WAITING;
  if (!atomic_compare_exchange_strong(&state, &expected, STATE_STARTING))
    return;
  int saved = errno;
  sc_tracer_watch_forks();
  start(late);
  errno = saved;
}

/* ---- end --------------------------------------------------------------------------------------------- */
static void at_exit(void) {
  int was = atomic_exchange(&state, STATE_DEAD);
  if (was == STATE_DEAD || getpid() != traced_pid)
    return;
  int saved = errno;
  if (was == STATE_FAILED) {
    sc_writer_close(writer);
    errno = saved;
    return;
  }
  sc_cost_measure(&cupti, sc_writer_live(writer));
  (void)cupti.unsubscribe(cupti.subscriber); /* never cuptiFinalize: it waits for the device, and others may use
                                              CUPTI */
  bool closed = sc_threads_stop();
  const struct sc_trace_live *live = sc_writer_live(writer);
  uint64_t lost = __atomic_load_n(&live->lost_records, __ATOMIC_RELAXED),
           full = __atomic_load_n(&live->full, __ATOMIC_RELAXED);
  if (lost > 0 || full != 0)
    sc_tracer_say(&options, "trace in %s, incomplete: %llu records lost%s; see it with: synccount report %s", path,
                  (unsigned long long)lost,
                  full == 0                ? ""
                  : live->uncounted == 0 ? " for want of room (disk, file size limit or SYNCCOUNT_MAX_TRACE): totals are "
                                             "counted all the same, details are missing"
                                           : " (no room: disk, file size limit or SYNCCOUNT_MAX_TRACE)",
                  path);
  else
    sc_tracer_say(&options, "trace in %s%s; see it with: synccount report %s", path,
                  closed ? "" : " (left open: a thread was still in a callback)", path);
  errno = saved;
}
