/* SPDX-License-Identifier: Apache-2.0
 * The feed's front: names, processes, threads and stacks get numbers, events go to be sorted. */
#include "import/feed.h"

#include <stdlib.h>
#include <string.h>

#include "import/feed_internal.h"

#define OTHER_NAMES "(other names)"

static void no_memory(struct sc_feed *f)
{
  if (f->failure.status == SC_OK)
    sc_error_no_memory(&f->failure);
}

bool sc_feed_failed(const struct sc_feed *f) { return f->failure.status != SC_OK; }

void feed_sort(struct sc_feed *f, struct sc_sorter *sorter, const void *item)
{
  const void *none;
  if (sc_sorter_add(sorter, item) || sc_feed_failed(f))
    return;
  if (sc_sorter_next(sorter, &none, &f->failure) == SC_OK) /* it keeps what made it fail */
    no_memory(f);
}

/* ---- orders ---------------------------------------------------------------------------------------- */

#define BY(field)               \
  if ((a->field) != (b->field)) \
  return (a->field) < (b->field) ? -1 : 1

static struct sc_key link_key(const void *item)
{
  const struct event *event = item;
  return (struct sc_key){.high = event->process, .low = event->link};
}

static int by_link(const void *left, const void *right)
{
  const struct event *a = left, *b = right;
  BY(kind); /* calls before work */
  BY(start_ns);
  BY(order);
  return 0;
}

static struct sc_key thread_key(const void *item)
{
  const struct event *event = item;
  return (struct sc_key){.high = (uint64_t)event->process << 32 | event->thread, .low = event->start_ns};
}

static int by_nesting(const void *left, const void *right)
{
  const struct event *a = left, *b = right;
  BY(kind);
  if (a->kind == EVENT_CALL) { /* times may be of whole microseconds: the driver's call is inside the runtime's */
    BY(flags & EVENT_DRIVER);
    BY(stream);
  }
  if (a->end_ns != b->end_ns) /* the outer one first */
    return a->end_ns > b->end_ns ? -1 : 1;
  BY(order);
  return 0;
}

static struct sc_key submission_key(const void *item)
{
  const struct device_work *work = item;
  return (struct sc_key){.high = (uint64_t)work->process << 32 | work->device, .low = work->submit_ns};
}

static int by_time(const void *left, const void *right)
{
  const struct device_work *a = left, *b = right;
  BY(start_ns);
  BY(end_ns);
  return 0;
}

static const struct sc_order link_order = {sizeof(struct event), link_key, by_link};
static const struct sc_order thread_order = {sizeof(struct event), thread_key, by_nesting};
static const struct sc_order submission_order = {sizeof(struct device_work), submission_key, by_time};

/* ---- construction ---------------------------------------------------------------------------------- */

struct sc_feed *sc_feed_new(void)
{
  struct sc_feed *f = calloc(1, sizeof *f);
  if (!f)
    return NULL;
  f->linked = sc_sorter_new(&link_order, SORT_MEMORY);
  f->events = sc_sorter_new(&thread_order, SORT_MEMORY);
  f->works = sc_sorter_new(&submission_order, WORK_MEMORY);
  f->first_ns = UINT64_MAX;
  f->natives = sc_calloc_array(SC_STACK_NATIVE_MAX, sizeof *f->natives);
  if (f->linked && f->events && f->works && f->natives)
    return f;
  sc_feed_free(f);
  return NULL;
}

void sc_feed_free(struct sc_feed *f)
{
  if (!f)
    return;
  for (size_t i = 0; i < f->process_count; ++i) {
    for (size_t j = 0; j < SC_FEED_FACTS; ++j)
      free(f->processes[i].facts[j]);
  }
  for (size_t i = 0; i < f->thread_count; ++i)
    free(f->threads[i].name);
  free(f->processes);
  free(f->threads);
  free(f->api);
  free(f->natives);
  sc_intern_free(&f->strings);
  sc_intern_free(&f->apis);
  sc_intern_free(&f->process_keys);
  sc_intern_free(&f->thread_keys);
  sc_intern_free(&f->frames);
  sc_intern_free(&f->stacks);
  sc_sorter_free(f->linked);
  sc_sorter_free(f->events);
  sc_sorter_free(f->works);
  free(f);
}

/* ---- names ----------------------------------------------------------------------------------------- */

static uint32_t intern(struct sc_feed *f, struct sc_intern *in, const void *bytes, size_t length)
{
  uint32_t number = sc_intern_add(in, bytes, length, NULL);
  if (!number)
    no_memory(f);
  return number;
}

uint32_t sc_feed_string(struct sc_feed *f, const char *text, size_t length)
{
  if (!text || sc_feed_failed(f))
    return 0;
  if (length > SC_TRACE_STRING_MAX)
    length = SC_TRACE_STRING_MAX;
  if (f->strings.bytes < STRING_BYTES_MAX && f->strings.count < STRINGS_MAX)
    return intern(f, &f->strings, text, length);
  uint32_t known = sc_intern_find(&f->strings, text, length);
  if (known)
    return known;
  ++f->other_names;
  return intern(f, &f->strings, OTHER_NAMES, strlen(OTHER_NAMES));
}

/* What no tracer of ours would record, the importers leave out as well: the counts of calls are the same. */
static bool matters(enum sc_op op, const struct feed_api *api)
{
  switch (op) {
  case SC_OP_NONE:
  case SC_OP_ALLOC:
  case SC_OP_REGISTER:
  case SC_OP_MAP:
  case SC_OP_EVENT_RECORD:
  case SC_OP_IGNORED:
  case SC_OP_PROFILER_START:
  case SC_OP_PROFILER_STOP:
  case SC_OP_COUNT: return false;
  case SC_OP_CAPTURE: return api->capture != 0;
  default: return true;
  }
}

static struct feed_api describe_api(const char *base)
{
  static const char *const null_or_pool[] = {"cudaFree", "cudaFreeHost", "cuMemFree", "cu64MemFree", "cuMemFreeHost"};
  struct feed_api api = {.op = sc_call_op(base), .driver = sc_starts_with(base, "cu") && !sc_starts_with(base, "cuda")};
  for (size_t i = 0; i < SC_COUNTOF(null_or_pool); ++i)
    api.may_be_null |= strcmp(base, null_or_pool[i]) == 0;
  if (strstr(base, "StreamBeginCapture"))
    api.capture = 1;
  else if (strstr(base, "StreamEndCapture"))
    api.capture = -1;
  return api;
}

uint32_t sc_feed_api(struct sc_feed *f, const char *name)
{
  struct sc_call_name parsed;
  char key[sizeof parsed.base + 8];
  bool added;
  if (!name || sc_feed_failed(f))
    return 0;
  sc_call_parse_name(name, &parsed);
  struct feed_api api = describe_api(parsed.base);
  if (!matters(api.op, &api))
    return 0;
  size_t length = strlen(parsed.base);
  memcpy(key, parsed.base, length + 1);
  if (parsed.per_thread)
    memcpy(key + length, "_ptsz", sizeof "_ptsz");
  uint32_t id = sc_intern_add(&f->apis, key, strlen(key), &added);
  struct feed_api *slot = added ? sc_array_push(&f->api, &f->api_count, &f->api_cap, sizeof *slot) : NULL;
  if (!id || (added && !slot)) {
    no_memory(f);
    return 0;
  }
  if (slot)
    *slot = api;
  return id;
}

/* ---- processes and threads -------------------------------------------------------------------------- */

uint32_t sc_feed_process(struct sc_feed *f, uint64_t key, uint64_t pid)
{
  bool added;
  if (sc_feed_failed(f))
    return 0;
  uint32_t number = sc_intern_add(&f->process_keys, &key, sizeof key, &added);
  struct feed_process *process =
      added ? sc_array_push(&f->processes, &f->process_count, &f->process_cap, sizeof *process) : NULL;
  if (!number || (added && !process)) {
    no_memory(f);
    return 0;
  }
  if (process) {
    process->pid = pid;
    process->from_ns = UINT64_MAX;
  }
  return number - 1;
}

void sc_feed_process_pid(struct sc_feed *f, uint32_t process, uint64_t pid)
{
  if (!sc_feed_failed(f) && process < f->process_count)
    f->processes[process].pid = pid;
}

uint32_t sc_feed_thread(struct sc_feed *f, uint32_t process, uint64_t key, uint32_t tid)
{
  uint64_t keys[2] = {process, key};
  bool added;
  if (sc_feed_failed(f) || process >= f->process_count)
    return 0;
  uint32_t number = sc_intern_add(&f->thread_keys, keys, sizeof keys, &added);
  struct feed_thread *thread =
      added ? sc_array_push(&f->threads, &f->thread_count, &f->thread_cap, sizeof *thread) : NULL;
  if (!number || (added && !thread)) {
    no_memory(f);
    return 0;
  }
  if (thread)
    *thread = (struct feed_thread){.process = process, .tid = tid};
  return number - 1;
}

static void replace(struct sc_feed *f, char **into, const char *text, size_t length)
{
  char *copy = sc_strndup(text, length);
  if (!copy) {
    no_memory(f);
    return;
  }
  free(*into);
  *into = copy;
}

void sc_feed_thread_name(struct sc_feed *f, uint32_t thread, const char *name, size_t length)
{
  if (!sc_feed_failed(f) && thread < f->thread_count)
    replace(f, &f->threads[thread].name, name, length);
}

void sc_feed_fact(struct sc_feed *f, uint32_t process, enum sc_feed_fact fact, const char *text, size_t length)
{
  if (!sc_feed_failed(f) && process < f->process_count)
    replace(f, &f->processes[process].facts[fact], text, length);
}

/* ---- events ------------------------------------------------------------------------------------------ */

void sc_feed_clock(struct sc_feed *f, uint64_t zero_ns, uint64_t real_ns)
{
  f->zero_ns = zero_ns;
  f->real_ns = real_ns;
}

static void add(struct sc_feed *f, struct sc_sorter *sorter, struct event *event)
{
  if (event->start_ns < f->first_ns)
    f->first_ns = event->start_ns;
  event->order = f->order++;
  if (event->end_ns < event->start_ns)
    event->end_ns = event->start_ns;
  feed_sort(f, sorter, event);
}

void sc_feed_call(struct sc_feed *f, const struct sc_feed_call *call)
{
  if (sc_feed_failed(f) || call->api == 0 || call->api > f->api_count || call->thread >= f->thread_count)
    return;
  int32_t status = call->status > INT16_MAX || call->status < INT16_MIN ? INT16_MAX : call->status;
  struct event event = {.start_ns = call->start_ns,
                        .end_ns = call->end_ns,
                        .link = call->correlation,
                        .process = f->threads[call->thread].process,
                        .thread = call->thread,
                        .what = call->api,
                        .extra = call->stack,
                        .stream = (uint32_t)call->correlation,
                        .status = (int16_t)status,
                        .kind = EVENT_CALL,
                        .flags = f->api[call->api - 1].driver ? EVENT_DRIVER : 0,
                        .device = SC_FEED_NO_DEVICE};
  ++f->totals.calls;
  add(f, call->correlation ? f->linked : f->events, &event);
}

/* Records of synchronises name device 0 whatever the device; their context is right, and so is the device of real work.
 */
static void learn_device(struct feed_process *process, const struct sc_feed_work *work)
{
  size_t count = process->context_count;
  if (work->context == 0 || work->device >= SC_FEED_NO_DEVICE ||
      (count && process->contexts[count - 1].context == work->context))
    return;
  for (size_t i = 0; i < count; ++i) {
    if (process->contexts[i].context == work->context)
      return;
  }
  if (count < CONTEXTS_MAX)
    process->contexts[process->context_count++] =
        (struct feed_context){.context = work->context, .device = (uint8_t)work->device};
}

static void count_work(struct sc_feed *f, const struct sc_feed_work *work)
{
  switch (work->kind) {
  case SC_FEED_KERNEL: ++f->totals.kernels; break;
  case SC_FEED_COPY: ++f->totals.copies; break;
  case SC_FEED_MEMSET: ++f->totals.memsets; break;
  case SC_FEED_SYNC: ++f->totals.syncs; break;
  case SC_FEED_FREE:
  case SC_FEED_FREE_POOL: f->processes[work->process].frees_known = true; break;
  }
}

void sc_feed_work(struct sc_feed *f, const struct sc_feed_work *work)
{
  if (sc_feed_failed(f) || work->process >= f->process_count)
    return;
  struct event event = {.start_ns = work->start_ns,
                        .end_ns = work->end_ns,
                        .link = work->correlation,
                        .bytes = work->bytes,
                        .process = work->process,
                        .extra = work->context,
                        .stream = work->stream,
                        .kind = EVENT_WORK,
                        .work = (uint8_t)work->kind,
                        .device = work->device < SC_FEED_NO_DEVICE ? (uint8_t)work->device : SC_FEED_NO_DEVICE,
                        .direction = work->direction,
                        .memory = (uint8_t)(work->dst | work->src << 4)};
  count_work(f, work);
  if (work->kind == SC_FEED_KERNEL || work->kind == SC_FEED_COPY || work->kind == SC_FEED_MEMSET)
    learn_device(&f->processes[work->process], work);
  add(f, f->linked, &event);
}

void sc_feed_options(struct sc_feed *f, const struct sc_analysis_options *options)
{
  f->from = options ? options->from : NULL;
}

static void look_for_from(struct sc_feed *f, const struct sc_feed_range *range)
{
  struct feed_process *process = &f->processes[f->threads[range->thread].process];
  const struct sc_intern_entry *name = sc_intern_get(&f->strings, range->name);
  if (range->start_ns < process->from_ns && name && sc_match(f->from, name->bytes))
    process->from_ns = range->start_ns;
}

void sc_feed_range(struct sc_feed *f, const struct sc_feed_range *range)
{
  if (sc_feed_failed(f) || range->thread >= f->thread_count)
    return;
  struct event event = {.start_ns = range->start_ns,
                        .end_ns = range->end_ns,
                        .process = f->threads[range->thread].process,
                        .thread = range->thread,
                        .what = range->name,
                        .extra = range->domain,
                        .kind = range->spanning ? EVENT_SPAN : EVENT_RANGE};
  if (f->from)
    look_for_from(f, range);
  ++f->totals.ranges;
  add(f, f->events, &event);
}

/* ---- stacks ------------------------------------------------------------------------------------------- */

uint32_t sc_feed_frame(struct sc_feed *f, const char *file, const char *function, uint32_t line)
{
  struct feed_frame frame = {.file = file ? sc_feed_string(f, file, strlen(file)) : 0,
                             .function = function ? sc_feed_string(f, function, strlen(function)) : 0,
                             .line = line};
  if (sc_feed_failed(f))
    return 0;
  if (f->frames.count < FRAMES_MAX)
    return intern(f, &f->frames, &frame, sizeof frame);
  return sc_intern_find(&f->frames, &frame, sizeof frame);
}

uint32_t sc_feed_stack(struct sc_feed *f, const uint32_t *python, size_t python_count, const uint32_t *native,
                       size_t native_count)
{
  struct feed_stack stack;
  if (python_count > SC_STACK_PYTHON_MAX)
    python_count = SC_STACK_PYTHON_MAX;
  if (native_count > SC_STACK_NATIVE_MAX)
    native_count = SC_STACK_NATIVE_MAX;
  size_t count = python_count + native_count, length = offsetof(struct feed_stack, frames) + count * sizeof(uint32_t);
  if (sc_feed_failed(f) || count == 0)
    return 0;
  stack.python = (uint32_t)python_count;
  stack.native = (uint32_t)native_count;
  if (python_count)
    memcpy(stack.frames, python, python_count * sizeof(uint32_t));
  if (native_count)
    memcpy(stack.frames + python_count, native, native_count * sizeof(uint32_t));
  if (f->stacks.bytes < STACK_BYTES_MAX)
    return intern(f, &f->stacks, &stack, length);
  uint32_t known = sc_intern_find(&f->stacks, &stack, length);
  f->other_stacks += known == 0;
  return known;
}

static void add_frame(struct sc_feed *f, enum event_kind kind, uint32_t thread, uint32_t frame, uint64_t start_ns,
                      uint64_t end_ns)
{
  if (sc_feed_failed(f) || thread >= f->thread_count || frame == 0)
    return;
  struct event event = {.start_ns = start_ns,
                        .end_ns = end_ns,
                        .process = f->threads[thread].process,
                        .thread = thread,
                        .what = frame,
                        .kind = (uint8_t)kind};
  ++*(kind == EVENT_FRAME ? &f->totals.frames : &f->totals.operators);
  add(f, f->events, &event);
}

void sc_feed_ran(struct sc_feed *f, uint32_t thread, uint32_t frame, uint64_t start_ns, uint64_t end_ns)
{
  add_frame(f, EVENT_FRAME, thread, frame, start_ns, end_ns);
}

void sc_feed_operator(struct sc_feed *f, uint32_t thread, uint32_t frame, uint64_t start_ns, uint64_t end_ns)
{
  add_frame(f, EVENT_OPERATOR, thread, frame, start_ns, end_ns);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

struct sc_feed_totals sc_feed_totals(const struct sc_feed *f) { return f->totals; }

enum sc_status sc_feed_finish(struct sc_feed *f, const char *path, const struct sc_analysis_options *options,
                              struct sc_findings *findings, struct sc_error *err)
{
  struct sc_error failure = f->failure;
  if (failure.status == SC_OK)
    feed_join(f, &failure);
  if (failure.status == SC_OK)
    feed_replay(f, path, options, findings, &failure);
  if (failure.status == SC_OK)
    return SC_OK;
  return sc_error_set(err, failure.status, "while '%s' was read: %s", path, failure.message);
}
