/* SPDX-License-Identifier: Apache-2.0
 * PyTorch profiler (Kineto) Chrome traces, plain or gzip: a stream of events, in no order, goes to the feed one at a
 * time. What is kept here is small: threads, names, and events that were begun and have not ended. */
#include "import/import.h"
#include "import/intern.h"
#include "import/kineto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define PROCESSES_MAX 4096 /* processes, and devices, which have the look of processes */
#define THREADS_MAX 65536  /* likewise */
#define BEGUN_MAX 1024     /* events of a thread that were begun and have not ended */
#define BEGUN_ALL_MAX (1u << 20)
#define NAMES_MAX (1u << 18)               /* names whose meaning is remembered; of others it is found out each time */
#define TIME_OF_DAY_NS 1000000000000000000 /* in 2001: what is later is no time since a machine started */
#define NONE UINT32_MAX

struct begun { /* the beginning of an event of phase B */
  enum kineto_category category;
  uint32_t id; /* api, string or frame */
  int64_t start_ns, correlation;
};

struct thread {
  int64_t pid, tid;
  uint32_t feed;  /* NONE: no event of a host's thread so far */
  uint32_t label; /* intern number, 0 none */
  struct begun *begun;
  size_t begun_count, begun_cap;
};

struct process {
  int64_t pid;
  uint32_t feed; /* NONE: likewise */
  uint32_t label;
  bool calls; /* it made one */
};

struct meaning {             /* of a name, by intern number - 1 */
  uint32_t api, frame, text; /* of the feed; NONE: not asked yet */
};

struct damage {
  uint64_t count, offset; /* of the first */
  char what[96];
};

struct reader {
  struct sc_json *json;
  struct sc_feed *feed;
  const char *path, *name; /* name: its last part, for warnings */
  bool failed;             /* out of memory, or a limit: error says which */
  struct sc_error error;

  struct process *processes;
  size_t process_count, process_cap;
  struct thread *threads;
  size_t thread_count, thread_cap;
  uint32_t *thread_slots; /* index + 1 */
  size_t thread_slot_count, last_thread;
  size_t begun_count; /* of all threads */
  uint32_t labels_left_out;

  struct sc_intern names, labels;
  struct meaning *meanings;
  size_t meaning_count, meaning_cap;

  struct kineto_event event;
  struct damage damage;
  uint64_t events;
  int64_t first_ns, base_ns; /* the earliest time; the time of day at 0, 0 if the trace does not say */
  uint64_t queries, copies_called, frees, foreign_calls, begun_forever;
  char foreign[64]; /* whose the first was */
  bool has_events, bare, unclosed;
  char rank[32];
};

/* ---- failure and damage ------------------------------------------------------------------------- */

static void run_out(struct reader *r)
{
  if (!r->failed)
    sc_error_set(&r->error, SC_ERR_NOMEM, "out of memory while '%s' was read", r->path);
  r->failed = true;
}

static void note_damage(struct reader *r, uint64_t offset, const char *what)
{
  if (r->damage.count++ == 0) {
    r->damage.offset = offset;
    snprintf(r->damage.what, sizeof r->damage.what, "%s", what);
  }
}

/* ---- processes and threads ------------------------------------------------------------------------ */

static struct process *process_of(struct reader *r, int64_t pid)
{
  for (size_t i = r->process_count; i > 0; --i) {
    if (r->processes[i - 1].pid == pid)
      return &r->processes[i - 1];
  }
  if (r->process_count == PROCESSES_MAX) {
    if (!r->failed)
      sc_error_set(&r->error, SC_ERR_LIMIT, "'%s' has events of more than %d processes", r->path, PROCESSES_MAX);
    r->failed = true;
    return NULL;
  }
  struct process *process = sc_array_push(&r->processes, &r->process_count, &r->process_cap, sizeof *process);
  if (!process) {
    run_out(r);
    return NULL;
  }
  process->pid = pid;
  process->feed = NONE;
  return process;
}

/* A trace is of one process, and its device work does not say so: the feed's process 0 is there from the beginning, and
 * stands for the first process that something happened in. */
static uint32_t feed_process(struct reader *r, struct process *process, bool calls)
{
  if (process->feed == NONE) {
    bool taken = false;
    for (size_t i = 0; i < r->process_count; ++i)
      taken |= r->processes[i].feed == 0 && (r->processes[i].calls || !calls);
    process->feed =
        taken ? sc_feed_process(r->feed, (uint64_t)process->pid, process->pid > 0 ? (uint64_t)process->pid : 0) : 0;
    if (!taken && process->pid > 0)
      sc_feed_process_pid(r->feed, 0, (uint64_t)process->pid);
  }
  process->calls |= calls;
  return process->feed;
}

static size_t thread_slot(const struct reader *r, int64_t pid, int64_t tid)
{
  uint64_t hash = ((uint64_t)pid * 0x9e3779b97f4a7c15u ^ (uint64_t)tid) * 0x9fb21c651e98df25u;
  size_t i = (hash >> 32) & (r->thread_slot_count - 1);
  while (r->thread_slots[i] &&
         !(r->threads[r->thread_slots[i] - 1].tid == tid && r->threads[r->thread_slots[i] - 1].pid == pid))
    i = (i + 1) & (r->thread_slot_count - 1);
  return i;
}

static bool grow_threads(struct reader *r)
{
  size_t count = r->thread_slot_count ? r->thread_slot_count * 2 : 256;
  uint32_t *slots = sc_calloc_array(count, sizeof *slots);
  if (!slots)
    return false;
  free(r->thread_slots);
  r->thread_slots = slots;
  r->thread_slot_count = count;
  for (size_t i = 0; i < r->thread_count; ++i)
    r->thread_slots[thread_slot(r, r->threads[i].pid, r->threads[i].tid)] = (uint32_t)i + 1;
  return true;
}

static struct thread *thread_of(struct reader *r, int64_t pid, int64_t tid)
{
  if (r->last_thread < r->thread_count && r->threads[r->last_thread].tid == tid &&
      r->threads[r->last_thread].pid == pid)
    return &r->threads[r->last_thread];
  if (r->thread_count * 2 >= r->thread_slot_count && !grow_threads(r)) {
    run_out(r);
    return NULL;
  }
  size_t slot = thread_slot(r, pid, tid);
  if (!r->thread_slots[slot]) {
    if (r->thread_count == THREADS_MAX) {
      if (!r->failed)
        sc_error_set(&r->error, SC_ERR_LIMIT, "'%s' has events of more than %d threads", r->path, THREADS_MAX);
      r->failed = true;
      return NULL;
    }
    struct thread *thread = sc_array_push(&r->threads, &r->thread_count, &r->thread_cap, sizeof *thread);
    if (!thread) {
      run_out(r);
      return NULL;
    }
    *thread = (struct thread){.pid = pid, .tid = tid, .feed = NONE};
    r->thread_slots[slot] = (uint32_t)r->thread_count;
  }
  r->last_thread = r->thread_slots[slot] - 1;
  return &r->threads[r->last_thread];
}

/* The thread that this event is of, known to the feed. NULL: failed. */
static struct thread *host_thread(struct reader *r, bool calls)
{
  const struct kineto_event *e = &r->event;
  struct thread *thread = thread_of(r, e->pid, e->tid);
  if (!thread || (thread->feed != NONE && !calls))
    return thread;
  struct process *process = process_of(r, e->pid);
  if (!process)
    return NULL;
  uint32_t index = feed_process(r, process, calls);
  if (thread->feed == NONE)
    thread->feed = sc_feed_thread(r->feed, index, (uint64_t)e->tid, e->tid > 0 ? (uint32_t)e->tid : 0);
  return thread;
}

/* ---- names --------------------------------------------------------------------------------------- */

static struct meaning *meaning_of(struct reader *r)
{
  static _Thread_local struct meaning unkept;
  const struct kineto_event *e = &r->event;
  uint32_t number = r->names.count < NAMES_MAX ? sc_intern_add(&r->names, e->name, e->name_length, NULL)
                                               : sc_intern_find(&r->names, e->name, e->name_length);
  if (number == 0) {
    if (r->names.count < NAMES_MAX)
      run_out(r);
    unkept = (struct meaning){NONE, NONE, NONE};
    return &unkept;
  }
  while (r->meaning_count < number) {
    struct meaning *meaning = sc_array_push(&r->meanings, &r->meaning_count, &r->meaning_cap, sizeof *meaning);
    if (!meaning) {
      run_out(r);
      unkept = (struct meaning){NONE, NONE, NONE};
      return &unkept;
    }
    *meaning = (struct meaning){NONE, NONE, NONE};
  }
  return &r->meanings[number - 1];
}

static uint32_t api_of(struct reader *r)
{
  struct meaning *meaning = meaning_of(r);
  if (meaning->api == NONE)
    meaning->api = sc_feed_api(r->feed, r->event.name);
  return meaning->api;
}

/* A profiler step's name has its number in it: as a range it is one and the same. */
static uint32_t range_of(struct reader *r)
{
  struct meaning *meaning = meaning_of(r);
  if (meaning->text == NONE) {
    static const char step[] = "ProfilerStep#";
    const char *name = r->event.name;
    size_t length = strncmp(name, step, sizeof step - 1) == 0 ? sizeof step - 2 : r->event.name_length;
    const char *module = r->event.category == KINETO_PYTHON ? kineto_module(name) : NULL;
    meaning->text = module ? sc_feed_string(r->feed, module, strlen(module)) : sc_feed_string(r->feed, name, length);
  }
  return meaning->text;
}

static uint32_t frame_of(struct reader *r)
{
  struct meaning *meaning = meaning_of(r);
  if (meaning->frame == NONE) {
    struct kineto_function function = {.function = r->event.name};
    if (r->event.category == KINETO_PYTHON)
      kineto_function_parse(r->event.name, &function);
    meaning->frame = sc_feed_frame(r->feed, function.file, function.function, function.line);
  }
  return meaning->frame;
}

/* ---- events of the host --------------------------------------------------------------------------- */

static bool is_module(const struct kineto_event *e) { return e->category == KINETO_PYTHON && kineto_module(e->name); }

/* What the feed knows this name as. False: the call does not matter. */
static bool identify(struct reader *r, uint32_t *id)
{
  const struct kineto_event *e = &r->event;
  if (e->category == KINETO_CALL) {
    *id = api_of(r);
    if (*id == 0)
      return false;
    enum sc_op op = sc_call_op(e->name);
    r->queries += op == SC_OP_QUERY_EVENT || op == SC_OP_QUERY_STREAM;
    r->copies_called += op == SC_OP_COPY || op == SC_OP_COPY_ASYNC;
    r->frees += (op == SC_OP_FREE || op == SC_OP_FREE_HOST) && !strstr(e->name, "Array");
    return true;
  }
  *id = e->category == KINETO_ANNOTATION || is_module(e) ? range_of(r) : frame_of(r);
  return true;
}

static void emit(struct reader *r, const struct thread *thread, const struct begun *event, uint64_t end_ns)
{
  uint64_t start_ns = (uint64_t)event->start_ns;
  switch (event->category) {
  case KINETO_CALL:
    sc_feed_call(r->feed, &(struct sc_feed_call){.thread = thread->feed,
                                                 .api = event->id,
                                                 .start_ns = start_ns,
                                                 .end_ns = end_ns,
                                                 .correlation = (uint64_t)event->correlation});
    break;
  case KINETO_ANNOTATION: /* and torch.nn.Module's calls */
    sc_feed_range(r->feed, &(struct sc_feed_range){
                               .thread = thread->feed, .name = event->id, .start_ns = start_ns, .end_ns = end_ns});
    break;
  case KINETO_PYTHON: sc_feed_ran(r->feed, thread->feed, event->id, start_ns, end_ns); break;
  default: sc_feed_operator(r->feed, thread->feed, event->id, start_ns, end_ns); break;
  }
}

static void begin(struct reader *r, struct thread *thread, const struct begun *event)
{
  if (thread->begun_count == BEGUN_MAX || r->begun_count == BEGUN_ALL_MAX) {
    note_damage(r, r->event.offset, "too many events are begun and not ended");
    return;
  }
  struct begun *place = sc_array_push(&thread->begun, &thread->begun_count, &thread->begun_cap, sizeof *place);
  if (!place) {
    run_out(r);
    return;
  }
  *place = *event;
  ++r->begun_count;
}

/* An E need not repeat what its B said: they pair by their order, so what does not matter is begun and ended as well.
 */
static void begin_nothing(struct reader *r)
{
  const struct kineto_event *e = &r->event;
  struct thread *thread = e->has_pid && e->has_tid ? thread_of(r, e->pid, e->tid) : NULL;
  if (thread)
    begin(r, thread, &(struct begun){.category = KINETO_OTHER, .id = NONE});
}

static void end_begun(struct reader *r)
{
  const struct kineto_event *e = &r->event;
  if (!e->has_start || !e->has_pid || !e->has_tid) {
    note_damage(r, e->offset, "an event of phase E without time, process or thread");
    return;
  }
  struct thread *thread = thread_of(r, e->pid, e->tid);
  if (!thread || thread->begun_count == 0)
    return;
  struct begun *event = &thread->begun[--thread->begun_count];
  --r->begun_count;
  if (event->id != NONE)
    emit(r, thread, event, e->start_ns > event->start_ns ? (uint64_t)e->start_ns : (uint64_t)event->start_ns);
}

static bool is_whole(struct reader *r, bool needs_thread)
{
  const struct kineto_event *e = &r->event;
  const char *what = e->wrong                                                        ? e->wrong
                     : !e->has_start                                                 ? "an event without 'ts'"
                     : e->start_ns < 0                                               ? "'ts' is negative"
                     : needs_thread && (!e->has_pid || !e->has_tid)                  ? "an event without 'pid' or 'tid'"
                     : e->start_ns > INT64_MAX / 2 || e->duration_ns > INT64_MAX / 2 ? "'ts' or 'dur' is out of range"
                                                                                     : NULL;
  if (what)
    note_damage(r, e->offset, what);
  else if (e->start_ns < r->first_ns)
    r->first_ns = e->start_ns;
  return !what;
}

static uint64_t end_of(const struct kineto_event *e)
{
  return (uint64_t)e->start_ns + (e->duration_ns > 0 ? (uint64_t)e->duration_ns : 0);
}

static void on_host(struct reader *r)
{
  const struct kineto_event *e = &r->event;
  struct begun event = {.category = is_module(e) ? KINETO_ANNOTATION : e->category,
                        .start_ns = e->start_ns,
                        .correlation = e->correlation};
  if (!is_whole(r, true)) {
    if (e->phase == 'B')
      begin_nothing(r);
    return;
  }
  bool matters = identify(r, &event.id);
  if (!matters && e->phase == 'X')
    return;
  struct thread *thread = host_thread(r, e->category == KINETO_CALL && matters);
  if (!thread)
    return;
  if (e->phase == 'X') {
    emit(r, thread, &event, end_of(e));
    return;
  }
  if (!matters)
    event.id = NONE;
  begin(r, thread, &event);
}

static void on_foreign(struct reader *r, const char *vendor)
{
  if (r->foreign_calls++ == 0)
    snprintf(r->foreign, sizeof r->foreign, "%s", vendor ? vendor : "another vendor");
}

/* ---- events of the device -------------------------------------------------------------------------- */

static uint32_t small(int64_t value, uint32_t otherwise)
{
  return value >= 0 && value < UINT32_MAX ? (uint32_t)value : otherwise;
}

static void on_device(struct reader *r)
{
  const struct kineto_event *e = &r->event;
  static const enum sc_feed_work_kind kinds[] = {[KINETO_KERNEL] = SC_FEED_KERNEL,
                                                 [KINETO_COPY] = SC_FEED_COPY,
                                                 [KINETO_MEMSET] = SC_FEED_MEMSET,
                                                 [KINETO_SYNC] = SC_FEED_SYNC};
  /* A stream that waits for an event is no wait of the host. */
  if ((e->category == KINETO_SYNC && strcmp(e->name, "Stream Wait Event") == 0) || !is_whole(r, false))
    return;
  uint32_t device = e->device >= 0 && e->device < SC_FEED_NO_DEVICE ? (uint32_t)e->device : SC_FEED_NO_DEVICE;
  struct sc_feed_work work = {.process = 0,
                              .kind = kinds[e->category],
                              .correlation = e->correlation > 0 ? (uint64_t)e->correlation : 0,
                              .start_ns = (uint64_t)e->start_ns,
                              .end_ns = end_of(e),
                              .device = device,
                              .context = small(e->context, 0),
                              .stream = e->has_stream ? small(e->stream, SC_FEED_NO_STREAM) : SC_FEED_NO_STREAM,
                              .bytes = e->bytes > 0 ? (uint64_t)e->bytes : 0};
  if (e->category == KINETO_COPY)
    kineto_copy_kinds(e->name, &work.direction, &work.src, &work.dst);
  else if (e->category == KINETO_MEMSET)
    work.dst = kineto_memset_kind(e->name);
  sc_feed_work(r->feed, &work);
}

/* ---- metadata -------------------------------------------------------------------------------------- */

static uint32_t label_of(struct reader *r)
{
  if (r->labels.count >= NAMES_MAX)
    return 0;
  uint32_t label = sc_intern_add(&r->labels, r->event.label, r->event.label_length, NULL);
  if (label == 0)
    run_out(r);
  return label;
}

/* Devices and streams have names as processes and threads do: which of them are hosts' is known at the end. */
static void on_metadata(struct reader *r)
{
  const struct kineto_event *e = &r->event;
  if (!e->has_pid || e->label_length == 0)
    return;
  if (strcmp(e->name, "process_name") == 0 && r->process_count < PROCESSES_MAX) {
    struct process *process = process_of(r, e->pid);
    if (process)
      process->label = label_of(r);
  } else if (strcmp(e->name, "thread_name") == 0 && e->has_tid && r->thread_count < THREADS_MAX) {
    struct thread *thread = thread_of(r, e->pid, e->tid);
    if (thread)
      thread->label = label_of(r);
  }
}

/* "thread 4037 (python3.8)" -> "python3.8" */
static const char *inner_name(const char *label, size_t *length)
{
  const char *open = strchr(label, '(');
  if (strncmp(label, "thread ", 7) == 0 && open && *length > 1 && label[*length - 1] == ')') {
    *length -= (size_t)(open + 1 - label) + 1;
    return open + 1;
  }
  return label;
}

static bool first_has_calls(const struct reader *r)
{
  for (size_t i = 0; i < r->process_count; ++i) {
    if (r->processes[i].feed == 0 && r->processes[i].calls)
      return true;
  }
  return false;
}

static void hand_over_names(struct reader *r)
{
  bool calls = first_has_calls(r);
  for (size_t i = 0; i < r->thread_count; ++i) {
    const struct sc_intern_entry *label = sc_intern_get(&r->labels, r->threads[i].label);
    if (!label || r->threads[i].feed == NONE)
      continue;
    size_t length = label->length;
    const char *name = inner_name(label->bytes, &length);
    sc_feed_thread_name(r->feed, r->threads[i].feed, name, length);
  }
  for (size_t i = 0; i < r->process_count; ++i) {
    const struct process *process = &r->processes[i];
    const struct sc_intern_entry *label = sc_intern_get(&r->labels, process->label);
    if (process->feed == NONE || (process->feed == 0 && calls && !process->calls))
      continue;
    if (label)
      sc_feed_fact(r->feed, process->feed, SC_FEED_COMMAND, label->bytes, label->length);
    if (*r->rank)
      sc_feed_fact(r->feed, process->feed, SC_FEED_RANK, r->rank, strlen(r->rank));
  }
}

/* ---- the text ---------------------------------------------------------------------------------------- */

static void on_event(struct reader *r)
{
  const struct kineto_event *e = &r->event;
  ++r->events;
  if (e->phase == 'E') {
    end_begun(r);
    return;
  }
  if (e->phase == 'M') {
    on_metadata(r);
    return;
  }
  if (e->phase == 0 && e->has_category && e->category != KINETO_OTHER)
    note_damage(r, e->offset, "an event without 'ph'");
  if (e->phase != 'X' && e->phase != 'B')
    return;
  bool foreign = e->category == KINETO_FOREIGN || (e->category == KINETO_CALL && !kineto_is_cuda(e->name));
  bool device = e->category >= KINETO_KERNEL;
  if (foreign)
    on_foreign(r, kineto_vendor(e->name));
  if (device && e->phase == 'B')
    note_damage(r, e->offset, "device work of phase B");
  if (foreign || device || e->category == KINETO_OTHER) {
    if (e->phase == 'B')
      begin_nothing(r);
    else if (device)
      on_device(r);
    return;
  }
  on_host(r);
}

/* Inside the array of events. False: the text or the reader failed. */
static bool read_events(struct reader *r)
{
  struct sc_json_token token;
  enum sc_json_kind kind;
  r->has_events = true;
  while ((kind = sc_json_next(r->json, &token)) != SC_JSON_ARRAY_END) {
    if (kind == SC_JSON_FAIL)
      return false;
    if (kind != SC_JSON_OBJECT) {
      note_damage(r, token.offset, "something that is no object among the events");
      if (kind == SC_JSON_ARRAY && !sc_json_leave(r->json))
        return false;
      continue;
    }
    r->event.offset = token.offset;
    if (!kineto_event_read(r->json, &r->event))
      return false;
    on_event(r);
    if (r->failed || sc_feed_failed(r->feed))
      return false;
  }
  return true;
}

static bool read_distributed(struct reader *r)
{
  struct sc_json_token token;
  enum sc_json_kind kind = sc_json_next(r->json, &token);
  if (kind != SC_JSON_OBJECT)
    return kind == SC_JSON_ARRAY ? sc_json_leave(r->json) : kind != SC_JSON_FAIL;
  while ((kind = sc_json_next(r->json, &token)) == SC_JSON_KEY) {
    if (token.length != 4 || memcmp(token.text, "rank", 4) != 0) {
      if (!sc_json_skip(r->json))
        return false;
      continue;
    }
    kind = sc_json_next(r->json, &token);
    int64_t rank;
    if ((kind == SC_JSON_NUMBER || kind == SC_JSON_STRING) && sc_json_fixed(token.text, token.length, 0, &rank))
      snprintf(r->rank, sizeof r->rank, "%" PRId64, rank);
    if ((kind == SC_JSON_OBJECT || kind == SC_JSON_ARRAY) && !sc_json_leave(r->json))
      return false;
    if (kind == SC_JSON_FAIL)
      return false;
  }
  return kind == SC_JSON_OBJECT_END;
}

static bool read_base(struct reader *r)
{
  struct sc_json_token token;
  enum sc_json_kind kind = sc_json_next(r->json, &token);
  if (kind == SC_JSON_OBJECT || kind == SC_JSON_ARRAY)
    return sc_json_leave(r->json);
  if (kind == SC_JSON_NUMBER && (!sc_json_fixed(token.text, token.length, 0, &r->base_ns) || r->base_ns < 0))
    r->base_ns = 0;
  return kind != SC_JSON_FAIL;
}

static bool read_members(struct reader *r)
{
  struct sc_json_token token;
  enum sc_json_kind kind;
  while ((kind = sc_json_next(r->json, &token)) == SC_JSON_KEY) {
    bool ok;
    if (token.length == 11 && memcmp(token.text, "traceEvents", 11) == 0) {
      kind = sc_json_next(r->json, &token);
      if (kind != SC_JSON_ARRAY && kind != SC_JSON_FAIL && !r->failed) {
        sc_error_set(&r->error, SC_ERR_FORMAT,
                     "'%s' is no PyTorch profiler trace: at byte %" PRIu64 ": 'traceEvents' is no array", r->path,
                     token.offset);
        r->failed = true;
      }
      ok = kind == SC_JSON_ARRAY && read_events(r);
    } else if (token.length == 15 && memcmp(token.text, "distributedInfo", 15) == 0) {
      ok = read_distributed(r);
    } else if (token.length == 19 && memcmp(token.text, "baseTimeNanoseconds", 19) == 0) {
      ok = read_base(r);
    } else {
      ok = sc_json_skip(r->json);
    }
    if (!ok)
      return false;
  }
  return kind == SC_JSON_OBJECT_END;
}

/* The array alone may lack its closing bracket, by the format's own rules; then nobody knows whether that was its end.
 */
static bool read_text(struct reader *r)
{
  struct sc_json_token token;
  enum sc_json_kind kind = sc_json_next(r->json, &token);
  bool ok = false;
  if (kind == SC_JSON_OBJECT) {
    ok = read_members(r);
  } else if (kind == SC_JSON_ARRAY) {
    r->bare = true;
    ok = read_events(r);
    if (!ok && !r->failed && sc_json_ended(r->json) && sc_json_depth(r->json) == 1 && r->events) {
      r->unclosed = true;
      return true;
    }
  } else if (kind != SC_JSON_FAIL) {
    sc_error_set(&r->error, SC_ERR_FORMAT, "'%s' is no PyTorch profiler trace: it is neither an object nor an array",
                 r->path);
    r->failed = true;
  }
  return ok && sc_json_next(r->json, &token) == SC_JSON_END;
}

static enum sc_status say_failure(struct reader *r, struct sc_error *err)
{
  struct sc_error why;
  if (r->failed) {
    if (err)
      *err = r->error;
    return r->error.status;
  }
  enum sc_status status = sc_json_error(r->json, &why);
  if (status == SC_ERR_FORMAT)
    return sc_error_set(err, status, "'%s' is no whole PyTorch profiler trace: %s. %s", r->path, why.message,
                        sc_json_ended(r->json) ? "It was cut off: copy it again, or let the profiler finish writing it."
                                               : "It is damaged: copy it again, or export it anew.");
  return sc_error_set(err, status, "cannot read '%s': %s", r->path, why.message);
}

/* ---- what has to be said ------------------------------------------------------------------------------ */

static bool warn_losses(const struct reader *r, struct sc_process *process, struct sc_findings *f)
{
  bool ok = true;
  uint64_t lost = r->damage.count + r->begun_forever;
  if (r->damage.count)
    ok &= sc_findings_warn(
        f, "%s: %" PRIu64 " events could not be used; the first, at byte %" PRIu64 ": %s. Counts may be too low.",
        r->name, r->damage.count, r->damage.offset, r->damage.what);
  if (r->begun_forever)
    ok &= sc_findings_warn(f, "%s: %" PRIu64 " calls are begun and never ended. They are not in the count.", r->name,
                           r->begun_forever);
  if (r->unclosed)
    ok &=
        sc_findings_warn(f, "%s: the array of events has no closing bracket: the file may have been cut off.", r->name);
  process->lost_records += lost;
  process->lost_chunks += r->unclosed;
  f->lost_records += lost;
  f->lost_chunks += r->unclosed;
  return ok;
}

static bool warn_streams(const struct reader *r, const struct sc_feed_totals *totals, struct sc_findings *f)
{
  bool ok = true;
  if (totals->streams_taken || totals->streams_unknown)
    ok &=
        sc_findings_warn(f,
                         "%s: the trace does not say which stream %" PRIu64 " stream synchronises were for. %" PRIu64
                         " were taken to be for the copy that the same PyTorch operator made just before%s. To have it "
                         "in the trace: experimental_config=torch._C._profiler._ExperimentalConfig("
                         "enable_cuda_sync_events=True).",
                         r->name, totals->streams_taken + totals->streams_unknown, totals->streams_taken,
                         totals->streams_unknown ? "; the others are counted as syncs of their own" : "");
  if (totals->syncs_without_call)
    ok &= sc_findings_warn(
        f,
        "%s: %" PRIu64 " synchronises have no call in the trace: they were made through the driver API, of which "
        "the PyTorch profiler records launches alone, or before recording began. They are not in the "
        "count.",
        r->name, totals->syncs_without_call);
  return ok;
}

static bool warn_missing(const struct reader *r, const struct sc_feed_totals *totals, struct sc_findings *f)
{
  bool ok = warn_streams(r, totals, f);
  size_t processes = 0;
  for (size_t i = 0; i < r->process_count; ++i)
    processes += r->processes[i].calls;
  if (r->copies_called && totals->copies == 0)
    ok &= sc_findings_warn(f,
                           "%s: the trace has no copies of the device (gpu_memcpy): direction, bytes and memory of "
                           "%" PRIu64 " copies are not known. Profile with ProfilerActivity.CUDA.",
                           r->name, r->copies_called);
  if (r->frees)
    ok &=
        sc_findings_warn(f,
                         "%s: the trace does not say what %" PRIu64
                         " calls of cudaFree and the like freed: NULL and memory of a pool wait for nothing. They are "
                         "uncertain, not in the count.",
                         r->name, r->frees);
  if (r->queries)
    ok &= sc_findings_warn(f,
                           "%s: the trace does not say what %" PRIu64
                           " queries of streams and events answered: poll waits are not counted.",
                           r->name, r->queries);
  if (totals->frames)
    ok &= sc_findings_warn(f,
                           "%s: a Python line is where its function begins: the PyTorch profiler does not record the "
                           "line of the call.",
                           r->name);
  else if (totals->operators)
    ok &= sc_findings_warn(f,
                           "%s: there are no Python functions in the trace (with_stack=True): sites are told apart by "
                           "PyTorch operator.",
                           r->name);
  if (processes > 1)
    ok &= sc_findings_warn(f,
                           "%s: the trace has calls of %zu processes, and its device work does not say whose it is: it "
                           "is taken to be the first one's. Give one trace for each process.",
                           r->name, processes);
  return ok;
}

/* That nothing was counted has been said already; here is why. */
static bool warn_nothing(const struct reader *r, struct sc_findings *f)
{
  if (r->foreign_calls)
    return true;
  return sc_findings_warn(f,
                          "%s: %" PRIu64 " events, and no CUDA call among them that matters here. Profile with "
                          "ProfilerActivity.CUDA while the program uses the GPU.",
                          r->name, r->events);
}

static bool warn_foreign(const struct reader *r, struct sc_findings *f)
{
  if (!r->foreign_calls)
    return true;
  return sc_findings_warn(f, "%s: %" PRIu64 " calls are not CUDA's and are not in the count: they are of %s.", r->name,
                          r->foreign_calls, r->foreign);
}

static void end_the_begun(struct reader *r)
{
  for (size_t i = 0; i < r->thread_count; ++i) {
    struct thread *thread = &r->threads[i];
    for (size_t k = 0; k < thread->begun_count; ++k) {
      const struct begun *event = &thread->begun[k];
      r->begun_forever += event->category == KINETO_CALL && event->id != NONE;
      if (event->category == KINETO_ANNOTATION)
        emit(r, thread, event, UINT64_MAX);
    }
  }
}

/* Newer traces count from a time of day that they name, older ones are times of day. */
static void set_clock(struct reader *r)
{
  if (r->base_ns)
    sc_feed_clock(r->feed, 0, (uint64_t)r->base_ns);
  else if (r->first_ns != INT64_MAX && r->first_ns >= TIME_OF_DAY_NS)
    sc_feed_clock(r->feed, (uint64_t)r->first_ns, (uint64_t)r->first_ns);
}

/* The profiler's steps are steps, unless the caller has another name for them. False: out of memory. */
static bool with_steps(const struct sc_analysis_options *options, struct sc_analysis_options *out,
                       struct sc_level_rule **rules)
{
  *out = options ? *options : (struct sc_analysis_options){0};
  *rules = sc_calloc_array(out->level_count + 1, sizeof **rules);
  if (!*rules)
    return false;
  for (size_t i = 0; i < out->level_count; ++i)
    (*rules)[i] = out->levels[i];
  (*rules)[out->level_count] = (struct sc_level_rule){"ProfilerStep", "step"};
  out->levels = *rules;
  ++out->level_count;
  return true;
}

static enum sc_status finish(struct reader *r, const struct sc_analysis_options *options, struct sc_findings *f,
                             struct sc_error *err)
{
  struct sc_analysis_options own;
  struct sc_level_rule *rules = NULL;
  size_t before = f->process_count;
  end_the_begun(r);
  hand_over_names(r);
  set_clock(r);
  if (!with_steps(options, &own, &rules))
    return sc_error_set(err, SC_ERR_NOMEM, "out of memory while '%s' was read", r->path);
  enum sc_status status = sc_feed_finish(r->feed, r->path, &own, f, err);
  free(rules);
  if (status != SC_OK)
    return status;
  struct sc_feed_totals totals = sc_feed_totals(r->feed);
  struct sc_process *process = &f->processes[before]; /* there is one: at least it says that nothing was counted */
  bool ok = warn_foreign(r, f) && warn_losses(r, process, f) &&
            (process->unmeasured ? warn_nothing(r, f) : warn_missing(r, &totals, f));
  return ok ? SC_OK : sc_error_set(err, SC_ERR_NOMEM, "out of memory while '%s' was read", r->path);
}

/* ---- the way in ---------------------------------------------------------------------------------------- */

static void free_reader(struct reader *r)
{
  for (size_t i = 0; i < r->thread_count; ++i)
    free(r->threads[i].begun);
  free(r->threads);
  free(r->thread_slots);
  free(r->processes);
  free(r->meanings);
  sc_intern_free(&r->names);
  sc_intern_free(&r->labels);
  sc_json_free(r->json);
  sc_feed_free(r->feed);
  free(r);
}

enum sc_status sc_kineto_read(sc_json_read *read, void *context, const char *path,
                              const struct sc_analysis_options *options, struct sc_findings *findings,
                              struct sc_error *err)
{
  enum sc_status status = SC_ERR_NOMEM;
  struct reader *r = calloc(1, sizeof *r);
  if (!r)
    return sc_error_set(err, SC_ERR_NOMEM, "out of memory while '%s' was read", path);
  const char *slash = strrchr(path, '/');
  r->path = path;
  r->first_ns = INT64_MAX;
  r->name = slash && slash[1] ? slash + 1 : path;
  r->json = sc_json_new(read, context);
  r->feed = sc_feed_new();
  if (r->feed)
    sc_feed_options(r->feed, options);
  if (!r->json || !r->feed) {
    sc_error_set(err, SC_ERR_NOMEM, "out of memory while '%s' was read", path);
    goto cleanup;
  }
  sc_feed_process(r->feed, 0, 0);
  if (!read_text(r) && !sc_feed_failed(r->feed)) {
    status = say_failure(r, err);
    goto cleanup;
  }
  if (!r->has_events && !sc_feed_failed(r->feed)) {
    status = sc_error_set(err, SC_ERR_FORMAT, "'%s' is no PyTorch profiler trace: it has no 'traceEvents'", path);
    goto cleanup;
  }
  status = finish(r, options, findings, err);
cleanup:
  free_reader(r);
  return status;
}

static ptrdiff_t read_gzip(void *context, void *bytes, size_t size, struct sc_error *err)
{
  gzFile file = context;
  errno = 0;
  int got = gzread(file, bytes, size < (1u << 30) ? (unsigned)size : 1u << 30), code = Z_OK;
  if (got > 0)
    return got;
  int number = errno;
  const char *why = gzerror(file, &code);
  if (code == Z_OK || code == Z_STREAM_END)
    return 0;
  if (code == Z_BUF_ERROR)
    sc_error_set(err, SC_ERR_FORMAT, "its gzip data end too early. It was cut off: copy it again");
  else if (code == Z_DATA_ERROR)
    sc_error_set(err, SC_ERR_FORMAT, "its gzip data are damaged. Copy it again");
  else
    sc_error_set(err, code == Z_MEM_ERROR ? SC_ERR_NOMEM : SC_ERR_IO, "%s", code == Z_ERRNO ? strerror(number) : why);
  return -1;
}

enum sc_status sc_import_kineto(const char *path, const struct sc_analysis_options *options,
                                struct sc_findings *findings, struct sc_error *err)
{
  errno = 0;
  gzFile file = gzopen(path, "rb"); /* reads what is not gzip as it is */
  if (!file)
    return sc_error_set(err, errno ? SC_ERR_IO : SC_ERR_NOMEM, "cannot read '%s': %s", path,
                        errno ? strerror(errno) : "out of memory");
  gzbuffer(file, 1u << 18);
  enum sc_status status = sc_kineto_read(read_gzip, file, path, options, findings, err);
  gzclose(file);
  return status;
}
