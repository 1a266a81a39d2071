/* SPDX-License-Identifier: Apache-2.0
 * From an open trace to a closed one. What prevents tracing is written into the trace, so that the command line can say
 * why; the program goes on as if we were not there. */
#include "tracer/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/trace.h"
#include "tracer/about.h"
#include "tracer/callback.h"
#include "tracer/cost.h"
#include "tracer/cupti.h"
#include "tracer/nvtx.h"
#include "tracer/stacks.h"
#include "tracer/thread.h"
#include "tracer/watch.h"

enum { /* CUPTI_CBID_RESOURCE_... */
       CONTEXT_DESTROY_STARTING = 2,
       CU_INIT_FINISHED = 5,
};
#define NAMES_TRIED 1000

static struct sc_cupti cupti;
static const struct sc_watch_table *table;
/* Read in forked children: set when it can be used, and cleared before any of it goes. A writer that stays between two
 * sessions is one that a thread was still inside when its session ended. */
static struct sc_writer *_Atomic writer;
static char path[4096];

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
static bool open_trace(const struct sc_tracer_options *options, uint32_t flags, struct sc_error *err) {
  char host[256];
  host_name(host, sizeof(host));
  for (int attempt = 1; attempt <= NAMES_TRIED; attempt++) {
    char number[16] = "";
    if (attempt > 1)
      (void)snprintf(number, sizeof(number), "-%d", attempt);
    int n = snprintf(path, sizeof(path), "%s/synccount-%s-%ld%s" SC_TRACE_SUFFIX, options->output, host, (long)getpid(),
                     number);
    if (n < 0 || (size_t)n >= sizeof(path)) {
      (void)sc_error_set(err, SC_ERR_LIMIT, "the folder of the trace (SYNCCOUNT_OUTPUT) is too long a path");
      return false;
    }
    if (access(path, F_OK) == 0)
      continue;
    struct sc_writer_options with = { .path = path, .flags = flags, .max_bytes = options->max_bytes,
                                       .counts_beyond = true };
    struct sc_writer *opened;
    if (sc_writer_open(&with, &opened, err) == SC_OK) {
      atomic_store_explicit(&writer, opened, memory_order_release);
      return true;
    }
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

/* ---- what the trace says of itself -------------------------------------------------------------------- */
static void put_note(struct sc_writer_thread *thread, enum sc_note note, const char *text) {
  if (thread != NULL)
    sc_writer_text(thread, SC_RECORD_NOTE, note, text, strlen(text));
}

/* ---- the calls that are watched ---------------------------------------------------------------------- */
/* Made once for each choice of APIs and kept: a callback on its way out of an earlier session may still look at it. */
static const struct sc_watch_table *table_for(enum sc_watch_apis apis) {
  static struct {
    int (*names)(int domain, uint32_t cbid, const char **name);
    struct sc_watch_table *table;
  } made[SC_WATCH_BOTH + 1];
  if (made[apis].table != NULL && made[apis].names == cupti.callback_name)
    return made[apis].table;
  struct sc_watch_table *fresh = malloc(sizeof(*fresh));
  if (fresh == NULL || !sc_watch_build(fresh, cupti.callback_name, apis)) {
    free(fresh);
    return NULL;
  }
  made[apis].names = cupti.callback_name;
  made[apis].table = fresh;
  return fresh;
}

static void put_apis(struct sc_writer_thread *thread) {
  for (unsigned domain = SC_DOMAIN_DRIVER; thread != NULL && domain <= SC_DOMAIN_RUNTIME; domain++)
    for (uint32_t cbid = 0; cbid < table->count[domain]; cbid++) {
      const struct sc_watch *watch = &table->of_domain[domain][cbid];
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

static void note_refusals(struct sc_writer_thread *thread, unsigned refused, const char *first) {
  char note[700];
  if (refused == 0)
    return;
  (void)snprintf(note, sizeof(note),
                 "cuptiEnableCallback refused %u of the watched calls (first: %s); they are not counted", refused,
                 first);
  put_note(thread, SC_NOTE_DRIVER, note);
}

/* Enables what the table wants; an id that CUPTI refuses is not watched, and the trace says so. The gate is still shut: a
 * program that is running is recorded from one moment on, not call by call. The runtime first, all the same: a driver call
 * that is seen before the runtime call around it would count as one of its own. */
static void enable_all(struct sc_writer_thread *thread) {
  static const int domains[] = { SC_DOMAIN_RUNTIME, SC_DOMAIN_DRIVER };
  unsigned refused = 0;
  char first[512] = "";
  for (size_t i = 0; i < SC_COUNTOF(domains); i++)
    for (uint32_t cbid = 0; cbid < table->count[domains[i]]; cbid++) {
      const struct sc_watch *watch = &table->of_domain[domains[i]][cbid];
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
  note_refusals(thread, refused, first);
}

/* ---- begin ------------------------------------------------------------------------------------------- */
/* The calling thread's stream, in which the process is described, goes on if the thread is the program's. */
static void open_gate(struct sc_writer_thread *thread, bool joins) {
  if (joins) {
    sc_threads_start(writer, thread);
    return;
  }
  static const char name[] = "synccount";
  if (thread != NULL)
    sc_writer_text(thread, SC_RECORD_THREAD, 0, name, sizeof(name) - 1);
  sc_writer_thread_end(thread);
  sc_threads_start(writer, NULL);
}

/* True when calls are recorded from here on. */
static bool begin_tracing(const struct sc_tracer_options *options, const struct sc_session_how *how,
                          struct sc_writer_thread *thread, const void *simulated, char why[SC_SESSION_WHY]) {
  struct sc_cupti_failure failure;
  char number[16];
  if (!sc_cupti_bind(&cupti, options->cupti, simulated, sc_callback, &failure)) {
    put_note(thread, failure.note, failure.text);
    (void)snprintf(why, SC_SESSION_WHY, "%s", failure.sentence);
    return false;
  }
  sc_about_put(thread, "cupti", cupti.path);
  (void)snprintf(number, sizeof(number), "%u", cupti.version);
  sc_about_put(thread, "cupti_version", number);
  table = table_for(options->apis);
  if (table == NULL) {
    (void)cupti.unsubscribe(cupti.subscriber);
    put_note(thread, SC_NOTE_DRIVER, "cuptiGetCallbackName knows no call that is watched, or memory is out");
    (void)snprintf(why, SC_SESSION_WHY,
                   "not tracing: %.800s knows no call that is watched; set SYNCCOUNT_CUPTI to another libcupti.so",
                   cupti.path);
    return false;
  }
  put_apis(thread);
  sc_callback_prepare(&cupti, table, writer, how->late);
  sc_stacks_prepare(options->python, options->native, writer, thread);
  enable_all(thread);
  if (how->late && !how->joins) /* the program runs, and the time is that of a thread of ours */
    sc_callback_await_one();
  open_gate(thread, how->joins);
  return true;
}

/* An earlier session's writer that a thread was still inside. False: it still is. */
static bool settle(void) {
  struct sc_writer *old = atomic_load_explicit(&writer, memory_order_relaxed);
  if (old == NULL)
    return true;
  if (!sc_threads_are_out())
    return false;
  atomic_store_explicit(&writer, NULL, memory_order_release);
  sc_writer_free(old);
  return true;
}

static void describe(struct sc_writer_thread *thread, const struct sc_tracer_options *options, const char *simcuda) {
  char ranges[600];
  sc_about_process(thread);
  sc_about_put(thread, "simcuda", simcuda);
  if (options->complaint[0] != '\0')
    put_note(thread, SC_NOTE_TEXT, options->complaint);
  if (sc_nvtx_obstacle(ranges, sizeof(ranges)))
    put_note(thread, SC_NOTE_TEXT, ranges);
}

enum sc_session sc_session_begin(const struct sc_tracer_options *options, const struct sc_session_how *how,
                                 char why[SC_SESSION_WHY]) {
  uint64_t began = sc_clock_mono_ns();
  struct sc_error err = { .status = SC_OK };
  const void *simulated = NULL;
  if (!settle()) {
    (void)snprintf(why, SC_SESSION_WHY, "not tracing: a thread of the program has been stopped inside the tracer since "
                                        "the last time; let it go on, and try again");
    return SC_SESSION_NONE;
  }
  const char *simcuda = simulated_version(&simulated);
  uint32_t flags = (how->late ? SC_TRACE_LATE : 0u) | (simcuda != NULL ? SC_TRACE_SIMULATED : 0u);
  if (!sc_threads_prepare() || !open_trace(options, flags, &err)) {
    (void)snprintf(why, SC_SESSION_WHY, "not tracing: %s", err.status == SC_OK ? "out of memory" : err.message);
    return SC_SESSION_NONE;
  }
  struct sc_trace_live *live = sc_writer_live(writer);
  /* What is said about the process comes first in this thread's stream, whose calls may follow. */
  struct sc_writer_thread *thread = sc_writer_thread_begin(writer);
  describe(thread, options, simcuda);
  bool tracing = begin_tracing(options, how, thread, simulated, why);
  if (!tracing)
    sc_writer_thread_end(thread);
  __atomic_fetch_add(&live->overhead_ns, sc_clock_mono_ns() - began, __ATOMIC_RELAXED);
  return tracing ? SC_SESSION_RUNS : SC_SESSION_UNTRACED;
}

/* ---- end --------------------------------------------------------------------------------------------- */
/* Nobody is inside. */
static void let_go(void) {
  struct sc_writer *done = atomic_load_explicit(&writer, memory_order_relaxed);
  atomic_store_explicit(&writer, NULL, memory_order_release);
  sc_writer_free(done);
}

void sc_session_finish(bool measure, struct sc_session_end *out) {
  struct sc_trace_live *live = sc_writer_live(writer);
  if (measure)
    sc_cost_measure(&cupti, live);
  (void)cupti.unsubscribe(cupti.subscriber); /* never cuptiFinalize: it waits for the device, and others may use CUPTI */
  out->closed = sc_threads_stop();
  out->lost = __atomic_load_n(&live->lost_records, __ATOMIC_RELAXED);
  out->uncounted = __atomic_load_n(&live->uncounted, __ATOMIC_RELAXED);
  out->full = __atomic_load_n(&live->full, __ATOMIC_RELAXED) != 0;
  (void)snprintf(out->path, sizeof(out->path), "%s", path);
  if (out->closed)
    let_go();
}

void sc_session_give_up(bool keep) {
  if (!keep)
    (void)unlink(path);
  let_go();
}

void sc_session_forked(void) { sc_writer_abandon(atomic_load_explicit(&writer, memory_order_relaxed)); }
