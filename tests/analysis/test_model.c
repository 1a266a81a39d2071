/* SPDX-License-Identifier: Apache-2.0
 * The engine against a slow model that keeps every event and looks back: thousands of random programs must give the
 * same counts, in the process, in every range, for every occurrence. The model knows no state machine and no shortcut.
 */
#include "feed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS 60
#define THREADS 2
#define NAMES 3

enum event_kind {
  PUSH,
  POP,
  LAUNCH,
  PINNED_D2H,
  PAGEABLE_D2H,
  UNKNOWN_D2H,
  UPLOAD,
  MEMCPY,
  UPLOAD_NOW,
  STREAM_SYNC,
  DEVICE_SYNC,
  FREE_DEVICE,
  FREE_NULL,
  HOST_FUNCTION,
  FAILED_SYNC,
  CAPTURED_COPY,
  UNLOAD,
  NOT_READY,
  READY,
  EVENT_KINDS
};

struct event {
  enum event_kind kind;
  unsigned thread, name;
  uint64_t stream, duration_ns;
  int open_range; /* model: index of the PUSH that is innermost when the event happens, -1 none */
  int parent;     /* of a PUSH: the one around it */
  bool closed;    /* of a PUSH */
};

static const char *const range_names[NAMES] = {"a", "b", "c"};
static const uint64_t streams[] = {S1, S2, SC_STREAM_LEGACY};

/* xorshift: the same programs on every machine. */
static uint64_t random_state;
static unsigned pick(unsigned n)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (unsigned)(random_state >> 33) % n;
}

static void make_program(struct event *events, uint64_t seed)
{
  random_state = seed * 0x9e3779b97f4a7c15u + 1;
  unsigned favourite = pick(EVENT_KINDS), depth[THREADS] = {0};
  for (unsigned i = 0; i < EVENTS; ++i) {
    struct event *event = &events[i];
    *event = (struct event){.kind = (enum event_kind)(pick(4) == 0 ? favourite : pick(EVENT_KINDS)),
                            .thread = pick(8) ? 0 : 1,
                            .name = pick(NAMES),
                            .stream = streams[pick(pick(2) ? 1 : 3)],
                            .duration_ns = 1 + pick(1000)};
    if (event->kind == POP && depth[event->thread] == 0)
      event->kind = PUSH;
    if (event->kind == MEMCPY || event->kind == UPLOAD_NOW)
      event->stream = SC_STREAM_LEGACY;
    depth[event->thread] += event->kind == PUSH;
    depth[event->thread] -= event->kind == POP;
  }
}

/* ---- the model ------------------------------------------------------------------------------------ */

static bool submits(const struct event *e)
{
  return e->kind == LAUNCH || e->kind == PINNED_D2H || e->kind == PAGEABLE_D2H || e->kind == UNKNOWN_D2H ||
         e->kind == UPLOAD || e->kind == MEMCPY || e->kind == UPLOAD_NOW || e->kind == HOST_FUNCTION;
}

static bool blocks(const struct event *e)
{
  return e->kind == PAGEABLE_D2H || e->kind == MEMCPY || e->kind == UPLOAD_NOW || e->kind == STREAM_SYNC ||
         e->kind == DEVICE_SYNC || e->kind == FREE_DEVICE;
}

static bool brings_data(const struct event *e)
{
  return e->kind == PINNED_D2H || e->kind == PAGEABLE_D2H || e->kind == UNKNOWN_D2H || e->kind == MEMCPY;
}

/* The thread's last submission or blocking call before event i, or -1. */
static int last_before(const struct event *events, int i)
{
  for (int j = i - 1; j >= 0; --j) {
    if (events[j].thread == events[i].thread && (submits(&events[j]) || blocks(&events[j])))
      return j;
  }
  return -1;
}

/* The copy that a stream synchronise joins, or -1. */
static int joins(const struct event *events, int i)
{
  int last = last_before(events, i);
  if (events[i].kind != STREAM_SYNC || last < 0 || events[last].stream != events[i].stream)
    return -1;
  return events[last].kind == PAGEABLE_D2H || events[last].kind == MEMCPY ? last : -1;
}

static bool is_sync(const struct event *events, int i) { return blocks(&events[i]) && joins(events, i) < 0; }

/* Whether a device-to-host copy before i, on this stream or any, has not been made visible by anything in between. */
static bool copy_pending(const struct event *events, int i, bool any_stream)
{
  for (int j = i - 1; j >= 0; --j) {
    const struct event *e = &events[j];
    if (e->thread != events[i].thread)
      continue;
    if (e->kind == DEVICE_SYNC)
      return false;
    bool shown = e->kind == STREAM_SYNC || e->kind == PAGEABLE_D2H || e->kind == MEMCPY || e->kind == UPLOAD_NOW;
    if (any_stream ? (e->kind == PINNED_D2H || e->kind == UNKNOWN_D2H)
                   : (e->stream == events[i].stream && (e->kind == PINNED_D2H || e->kind == UNKNOWN_D2H))) {
      bool later_shown = false; /* for "any stream": by a sync of the copy's own stream */
      for (int k = j + 1; k < i; ++k)
        later_shown |= events[k].thread == e->thread && events[k].stream == e->stream &&
                       (events[k].kind == STREAM_SYNC || events[k].kind == PAGEABLE_D2H || events[k].kind == MEMCPY ||
                        events[k].kind == UPLOAD_NOW);
      if (!later_shown)
        return true;
    } else if (!any_stream && shown && e->stream == events[i].stream) {
      return false;
    }
  }
  return false;
}

static bool poll_wait(const struct event *events, int i)
{
  if (events[i].kind != READY)
    return false;
  for (int j = i - 1; j >= 0; --j) {
    if (events[j].thread != events[i].thread || events[j].kind == PUSH || events[j].kind == POP)
      continue;
    return events[j].kind == NOT_READY && events[j].stream == events[i].stream;
  }
  return false;
}

static bool is_uncertain(const struct event *events, int i)
{
  if (events[i].kind != UNKNOWN_D2H)
    return false;
  for (int j = i + 1; j < EVENTS; ++j) {
    if (events[j].thread == events[i].thread && (submits(&events[j]) || blocks(&events[j])))
      return !(events[j].kind == STREAM_SYNC && events[j].stream == events[i].stream);
  }
  return true;
}

static enum sc_class class_of(const struct event *e)
{
  switch (e->kind) {
  case PAGEABLE_D2H: return SC_CLASS_PAGEABLE;
  case MEMCPY:
  case UPLOAD_NOW: return SC_CLASS_COPY;
  case FREE_DEVICE: return SC_CLASS_IMPLICIT;
  default: return SC_CLASS_EXPLICIT;
  }
}

/* What event i adds to the ranges that were open when it happened; a joined synchronise adds its wait to its copy's. */
static struct sc_counts counts_of(const struct event *events, int i)
{
  const struct event *e = &events[i];
  struct sc_counts c = {0};
  c.api_calls = e->kind != PUSH && e->kind != POP;
  c.launches = e->kind == LAUNCH;
  c.submissions = submits(e);
  c.d2h_copies = brings_data(e);
  c.host_functions = e->kind == HOST_FUNCTION;
  c.failed = e->kind == FAILED_SYNC;
  c.captured = e->kind == CAPTURED_COPY;
  c.lifecycle = e->kind == UNLOAD;
  c.poll_waits = poll_wait(events, i);
  c.uncertain = is_uncertain(events, i);
  if (is_sync(events, i)) {
    int last = last_before(events, i);
    c.syncs = c.by_class[class_of(e)] = 1;
    c.wait_ns = e->duration_ns;
    c.read_backs = e->kind == PAGEABLE_D2H || e->kind == MEMCPY ||
                   ((e->kind == STREAM_SYNC || e->kind == UPLOAD_NOW) && copy_pending(events, i, false)) ||
                   (e->kind == DEVICE_SYNC && copy_pending(events, i, true));
    c.blocking_uploads =
        !c.read_backs && (e->kind == UPLOAD_NOW || (e->kind == STREAM_SYNC && last >= 0 &&
                                                    events[last].kind == UPLOAD && events[last].stream == e->stream));
    if (last >= 0 && !(events[last].kind != PAGEABLE_D2H && events[last].kind != MEMCPY &&
                       events[last].kind != UPLOAD_NOW && submits(&events[last])))
      c.idle_syncs =
          e->kind == STREAM_SYNC || e->kind == DEVICE_SYNC || e->kind == FREE_DEVICE; /* refined by the caller */
  }
  for (int j = i + 1; j < EVENTS; ++j) {
    if (joins(events, j) == i && events[j].thread == e->thread)
      c.wait_ns += events[j].duration_ns;
  }
  /* Idle: nothing was submitted since the thread's last sync, and that one covered what this one waits for. */
  if (c.idle_syncs) {
    int j = last_before(events, i);
    while (j >= 0 && joins(events, j) >= 0) /* a joined synchronise covers what its copy covered */
      j = joins(events, j);
    bool all = events[j].kind == DEVICE_SYNC || events[j].kind == FREE_DEVICE;
    c.idle_syncs = all || (e->kind == STREAM_SYNC && events[j].stream == e->stream);
  }
  return c;
}

/* Innermost open range of each event, by replay. */
static void open_ranges(struct event *events)
{
  int open[THREADS] = {-1, -1};
  for (int i = 0; i < EVENTS; ++i) {
    struct event *e = &events[i];
    int *top = &open[e->thread];
    e->open_range = *top;
    if (e->kind == PUSH) {
      e->parent = *top;
      *top = i;
    } else if (e->kind == POP) {
      events[*top].closed = true;
      *top = events[*top].parent;
    }
  }
}

static void path_of(const struct event *events, int push, char *path, size_t size)
{
  if (push < 0) {
    *path = '\0';
    return;
  }
  char above[256];
  path_of(events, events[push].parent, above, sizeof above);
  if (snprintf(path, size, "%s%s%s", above, *above ? "/" : "", range_names[events[push].name]) >= (int)size)
    fail_msg("path too long");
}

static bool is_inside(const struct event *events, int i, int push)
{
  for (int open = events[i].open_range; open >= 0; open = events[open].parent) {
    if (open == push)
      return true;
  }
  return false;
}

/* ---- the comparison --------------------------------------------------------------------------------- */

static void play(struct feed *f, const struct event *e)
{
  if (f->thread != sc_analysis_thread(f->analysis, e->thread + 1, 0)) {
    /* not feed_thread: launches stay with the thread, as in a real trace */
    f->thread = sc_analysis_thread(f->analysis, e->thread + 1, 1001 + e->thread);
  }
  uint64_t s = e->stream, d = e->duration_ns;
  switch (e->kind) {
  case PUSH: feed_push(f, NULL, range_names[e->name]); break;
  case POP: feed_pop(f, NULL); break;
  case LAUNCH: feed_launches(f, 1); break;
  case PINNED_D2H: D2H_PINNED(f, s); break;
  case PAGEABLE_D2H:
    CALL(f, "cudaMemcpyAsync", .stream = s, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
         .src = SC_MEMORY_DEVICE, .duration_ns = d);
    break;
  case UNKNOWN_D2H: D2H_UNKNOWN(f, s); break;
  case UPLOAD: H2D_ASYNC(f, s, SC_MEMORY_PINNED); break;
  case MEMCPY:
    CALL(f, "cudaMemcpy", .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE, .src = SC_MEMORY_DEVICE,
         .duration_ns = d);
    break;
  case UPLOAD_NOW:
    CALL(f, "cudaMemcpy", .direction = SC_DIRECTION_H2D, .dst = SC_MEMORY_DEVICE, .src = SC_MEMORY_PAGEABLE,
         .duration_ns = d);
    break;
  case STREAM_SYNC: CALL(f, "cudaStreamSynchronize", .stream = s, .duration_ns = d); break;
  case DEVICE_SYNC: CALL(f, "cudaDeviceSynchronize", .duration_ns = d); break;
  case FREE_DEVICE: CALL(f, "cudaFree", .object = 0x1000, .dst = SC_MEMORY_DEVICE, .duration_ns = d); break;
  case FREE_NULL: CALL(f, "cudaFree", .flags = SC_CALL_NULL_POINTER); break;
  case HOST_FUNCTION: CALL(f, "cudaLaunchHostFunc", .stream = s); break;
  case FAILED_SYNC: CALL(f, "cudaStreamSynchronize", .stream = s, .status = 900); break;
  case CAPTURED_COPY:
    CALL(f, "cudaMemcpyAsync", .stream = s, .direction = SC_DIRECTION_D2H, .dst = SC_MEMORY_PAGEABLE,
         .src = SC_MEMORY_DEVICE, .flags = SC_CALL_CAPTURED);
    break;
  case UNLOAD: CALL(f, "cuModuleUnload"); break;
  case NOT_READY: CALL(f, "cudaStreamQuery", .stream = s, .bytes = 1, .status = 600); break;
  case READY: CALL(f, "cudaStreamQuery", .stream = s); break;
  case EVENT_KINDS: break;
  }
}

static void same_counts(const struct sc_counts *got, const struct sc_counts *want, const char *what, uint64_t seed)
{
  if (memcmp(got, want, sizeof *got) == 0)
    return;
  uint64_t g[sizeof *got / 8], w[sizeof *got / 8];
  memcpy(g, got, sizeof g);
  memcpy(w, want, sizeof w);
  for (size_t i = 0; i < SC_COUNTOF(g); ++i) {
    if (g[i] != w[i])
      print_error("seed %llu, %s: counter %zu is %llu, the model says %llu\n", (unsigned long long)seed, what, i,
                  (unsigned long long)g[i], (unsigned long long)w[i]);
  }
  fail();
}

/* Every range path of the model: inclusive, self, occurrences, and the spread over the finished ones. */
static void compare_ranges(const struct feed *f, const struct event *events, uint64_t seed)
{
  for (size_t r = 0; r < f->process->range_count; ++r) {
    const struct sc_range_findings *range = &f->process->ranges[r];
    struct sc_counts total = {0}, self = {0};
    uint64_t occurrences = 0, unfinished = 0, min = UINT64_MAX, max = 0;
    char path[256];
    for (int push = 0; push < EVENTS; ++push) {
      if (events[push].kind != PUSH)
        continue;
      path_of(events, push, path, sizeof path);
      if (strcmp(path, range->path) != 0)
        continue;
      uint64_t syncs = 0;
      for (int i = push + 1; i < EVENTS; ++i) {
        if (events[i].thread != events[push].thread || !is_inside(events, i, push))
          continue;
        struct sc_counts counts = counts_of(events, i);
        sc_counts_add(&total, &counts);
        if (events[i].open_range == push)
          sc_counts_add(&self, &counts);
        syncs += counts.syncs;
      }
      ++occurrences;
      unfinished += !events[push].closed;
      if (events[push].closed) {
        min = syncs < min ? syncs : min;
        max = syncs > max ? syncs : max;
      }
    }
    same_counts(&range->total, &total, range->path, seed);
    same_counts(&range->self, &self, range->path, seed);
    assert_int_equal(range->occurrences, occurrences);
    assert_int_equal(range->unfinished, unfinished);
    if (occurrences > unfinished) {
      assert_int_equal(range->min, min);
      assert_int_equal(range->max, max);
    }
  }
}

static void random_programs_count_as_the_model_says(void **state)
{
  (void)state;
  static struct event events[EVENTS];
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    struct feed f;
    struct sc_counts all = {0}, of_thread[THREADS] = {{0}};
    size_t paths = 0;
    char path[256], other[256];
    make_program(events, seed);
    open_ranges(events);
    feed_open(&f);
    uint32_t waiting[THREADS] = {0};
    for (int i = 0; i < EVENTS; ++i) {
      f.launches = waiting[events[i].thread];
      play(&f, &events[i]);
      waiting[events[i].thread] = f.launches;
      struct sc_counts counts = counts_of(events, i);
      sc_counts_add(&all, &counts);
      sc_counts_add(&of_thread[events[i].thread], &counts);
    }
    f.launches = 0;
    for (uint64_t t = 0; t < THREADS; ++t)
      sc_analysis_tail(f.analysis, sc_analysis_thread(f.analysis, t + 1, 0), waiting[t], waiting[t]);
    feed_end(&f);
    same_counts(&f.process->counts, &all, "process", seed);
    for (size_t i = 0; i < f.process->thread_count; ++i)
      assert_int_equal(f.process->threads[i].syncs, of_thread[f.process->threads[i].serial - 1].syncs);
    compare_ranges(&f, events, seed);
    for (int i = 0; i < EVENTS; ++i) { /* and no range is missing */
      if (events[i].kind != PUSH)
        continue;
      path_of(events, i, path, sizeof path);
      bool first = true;
      for (int j = 0; j < i && first; ++j) {
        if (events[j].kind == PUSH) {
          path_of(events, j, other, sizeof other);
          first = strcmp(path, other) != 0;
        }
      }
      paths += first;
    }
    assert_int_equal(f.process->range_count, paths);
    feed_close(&f);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs_count_as_the_model_says)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
