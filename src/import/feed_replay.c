/* SPDX-License-Identifier: Apache-2.0
 * Each thread's events, in its order, to the analysis: as the records that our tracer would have written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/feed_internal.h"

#define RANGES_OPEN_MAX 4096 /* of a thread, all at once: the analysis keeps fewer apart */
#define FRAMES_OPEN_MAX 1024 /* deeper calls of Python are not in stacks */

struct open_range {
  uint64_t end_ns, handle; /* handle: of a start/end range, else 0 */
  uint32_t domain;
};

struct open_frame {
  uint64_t end_ns, serial; /* serial: of this one time that it ran */
  uint32_t frame;
};
struct open_frames {
  struct open_frame list[FRAMES_OPEN_MAX];
  size_t count;
};

struct replay {
  struct sc_feed *feed;
  const struct sc_analysis_options *options;
  struct sc_findings *findings;
  struct drains *drains;
  const char *path;
  uint64_t base_ns; /* what is taken off every time: findings are on the trace's own clock */

  /* one process */
  struct sc_analysis *analysis; /* NULL: none is open */
  uint32_t process;
  bool has_calls;
  uint8_t *strings; /* bit by id: defined in this analysis */

  /* one thread */
  struct sc_analysis_thread *thread; /* NULL: none is open */
  uint32_t thread_index;
  uint64_t call_end_ns; /* of the last outermost call */
  uint64_t handles;     /* start/end ranges so far */
  uint32_t capturing;
  struct open_range *ranges;
  size_t range_count, range_cap;
  uint64_t next_end_ns; /* of the open ranges, the earliest */
  struct open_frames frames, operators;
  uint64_t serials; /* of frames and operators so far */
  uint32_t stack;   /* of the open frames; UINT32_MAX: not known */
  struct {
    uint64_t operator, stream; /* the serial of the innermost operator; 0: none */
    uint8_t device;
  } copy; /* the thread's last one whose stream is known */

  uint64_t processes; /* that were appended */
  uint64_t left_out;  /* ranges, of all threads */
};

/* ---- stacks, for the analysis ------------------------------------------------------------------------ */

static bool stack_of(const void *context, uint32_t id, struct sc_stack *out)
{
  const struct sc_feed *f = context;
  const struct sc_intern_entry *entry = sc_intern_get(&f->stacks, id);
  if (!entry)
    return false;
  const struct feed_stack *stack = (const struct feed_stack *)(const void *)entry->bytes;
  for (uint32_t i = 0; i < stack->native; ++i)
    f->natives[i] = (struct sc_stack_address){.offset = stack->frames[stack->python + i]};
  *out = (struct sc_stack){
      .python_count = stack->python, .native_count = stack->native, .python = stack->frames, .native = f->natives};
  return true;
}

static const char *text_of(const struct sc_feed *f, uint32_t id)
{
  const struct sc_intern_entry *entry = sc_intern_get(&f->strings, id);
  return entry ? entry->bytes : NULL;
}

static bool frame_of(const void *context, uint32_t id, struct sc_stack_frame *out)
{
  const struct sc_feed *f = context;
  const struct sc_intern_entry *entry = sc_intern_get(&f->frames, id);
  if (!entry)
    return false;
  const struct feed_frame *frame = (const struct feed_frame *)(const void *)entry->bytes;
  *out = (struct sc_stack_frame){
      .file = text_of(f, frame->file), .function = text_of(f, frame->function), .line = frame->line};
  return true;
}

static bool native_of(const void *context, uint64_t offset, struct sc_stack_frame *out)
{
  return offset <= UINT32_MAX && frame_of(context, (uint32_t)offset, out);
}

static const struct sc_stack_source source = {.stack = stack_of, .frame = frame_of, .native = native_of};

/* ---- ranges and frames --------------------------------------------------------------------------------- */

static bool define_string(struct replay *r, uint32_t id)
{
  const struct sc_intern_entry *entry = sc_intern_get(&r->feed->strings, id);
  uint8_t bit = (uint8_t)(1u << (id & 7));
  if (!entry || r->strings[id >> 3] & bit)
    return true;
  r->strings[id >> 3] |= bit;
  return sc_analysis_string(r->analysis, id, entry->bytes, entry->length);
}

static void range_record(struct replay *r, enum sc_record_kind kind, uint64_t time_ns, const struct open_range *range,
                         uint32_t name)
{
  struct sc_record_range record = {.head = {.kind = (uint16_t)kind, .units = 1},
                                   .time_ns = time_ns - r->base_ns,
                                   .handle = range->handle,
                                   .name = name,
                                   .domain = range->domain};
  sc_analysis_record(r->analysis, r->thread, &record.head);
}

static void update_next_end(struct replay *r)
{
  r->next_end_ns = UINT64_MAX;
  for (size_t i = 0; i < r->range_count; ++i) {
    if (r->ranges[i].end_ns < r->next_end_ns)
      r->next_end_ns = r->ranges[i].end_ns;
  }
}

/* Ends what has ended by now, in the order of the ends; of those that end together the innermost, which was opened
 * last, goes first. */
static void end_ranges(struct replay *r, uint64_t now_ns)
{
  while (r->range_count && r->next_end_ns <= now_ns && r->next_end_ns != UINT64_MAX) {
    size_t i = r->range_count - 1;
    while (r->ranges[i].end_ns != r->next_end_ns)
      --i;
    struct open_range closed = r->ranges[i];
    memmove(&r->ranges[i], &r->ranges[i + 1], (--r->range_count - i) * sizeof *r->ranges);
    update_next_end(r);
    range_record(r, closed.handle ? SC_RECORD_RANGE_END : SC_RECORD_RANGE_POP, closed.end_ns, &closed, 0);
  }
}

static bool begin_range(struct replay *r, const struct event *event)
{
  if (!define_string(r, event->what) || !define_string(r, event->extra))
    return false;
  if (r->range_count == RANGES_OPEN_MAX) {
    ++r->left_out;
    return true;
  }
  struct open_range *range = sc_array_push(&r->ranges, &r->range_count, &r->range_cap, sizeof *range);
  if (!range)
    return false;
  *range = (struct open_range){
      .end_ns = event->end_ns, .handle = event->kind == EVENT_SPAN ? ++r->handles : 0, .domain = event->extra};
  if (range->end_ns < r->next_end_ns)
    r->next_end_ns = range->end_ns;
  range_record(r, range->handle ? SC_RECORD_RANGE_START : SC_RECORD_RANGE_PUSH, event->start_ns, range, event->what);
  return true;
}

static void end_frames(struct replay *r, struct open_frames *open, uint64_t now_ns)
{
  while (open->count && open->list[open->count - 1].end_ns <= now_ns) {
    --open->count;
    r->stack = UINT32_MAX;
  }
}

static void begin_frame(struct replay *r, struct open_frames *open, const struct event *event)
{
  uint64_t end_ns = event->end_ns;
  end_frames(r, open, event->start_ns);
  if (open->count == FRAMES_OPEN_MAX)
    return;
  if (open->count && open->list[open->count - 1].end_ns < end_ns)
    end_ns = open->list[open->count - 1].end_ns; /* times are rounded: a callee ends with its caller at the latest */
  open->list[open->count++] = (struct open_frame){.end_ns = end_ns, .serial = ++r->serials, .frame = event->what};
  r->stack = UINT32_MAX;
}

static size_t innermost(const struct open_frames *open, uint32_t *ids, size_t max)
{
  size_t count = 0;
  for (; count < max && count < open->count; ++count)
    ids[count] = open->list[open->count - 1 - count].frame;
  return count;
}

static uint32_t stack_now(struct replay *r, uint64_t now_ns)
{
  uint32_t python[SC_STACK_PYTHON_MAX], native[SC_STACK_NATIVE_MAX];
  end_frames(r, &r->frames, now_ns);
  end_frames(r, &r->operators, now_ns);
  if (r->stack != UINT32_MAX)
    return r->stack;
  size_t python_count = innermost(&r->frames, python, SC_COUNTOF(python));
  size_t native_count = innermost(&r->operators, native, SC_COUNTOF(native));
  r->stack = sc_feed_stack(r->feed, python, python_count, native, native_count);
  return r->stack;
}

/* ---- calls ------------------------------------------------------------------------------------------------ */

/* What can be a sync, or stand beside them: only these need to be known where they come from. */
static bool needs_stack(enum sc_op op)
{
  switch (op) {
  case SC_OP_SYNC_STREAM:
  case SC_OP_SYNC_EVENT:
  case SC_OP_SYNC_DEVICE:
  case SC_OP_COPY:
  case SC_OP_COPY_ASYNC:
  case SC_OP_MEMSET:
  case SC_OP_QUERY_STREAM:
  case SC_OP_QUERY_EVENT:
  case SC_OP_FREE:
  case SC_OP_FREE_HOST:
  case SC_OP_UNREGISTER: return true;
  default: return false;
  }
}

static uint32_t flags_of_free(const struct replay *r, const struct event *event, const struct feed_api *api)
{
  if (event->flags & EVENT_FREE_POOL)
    return SC_CALL_POOL_POINTER;
  if (event->flags & EVENT_FREE_KNOWN || !api->may_be_null)
    return 0;
  /* The memory that was freed is recorded, and for this call there is none: it was given NULL. */
  return r->feed->processes[r->process].frees_known ? SC_CALL_NULL_POINTER : SC_CALL_NO_ARGUMENTS;
}

/* Work that is captured into a graph does nothing on the device. */
static bool is_captured(const struct replay *r, const struct event *event, enum sc_op op)
{
  switch (op) {
  case SC_OP_COPY:
  case SC_OP_COPY_ASYNC:
  case SC_OP_MEMSET:
  case SC_OP_MEMSET_ASYNC:
  case SC_OP_LAUNCH:
  case SC_OP_GRAPH_LAUNCH:
  case SC_OP_HOST_FUNC:
  case SC_OP_PREFETCH: return r->capturing && !(event->flags & EVENT_JOINED);
  default: return false;
  }
}

static uint32_t flags_of(const struct replay *r, const struct event *event, const struct feed_api *api)
{
  uint32_t flags = is_captured(r, event, api->op) ? SC_CALL_CAPTURED : 0;
  switch (api->op) {
  case SC_OP_FREE:
  case SC_OP_FREE_HOST:
  case SC_OP_UNREGISTER: return flags | flags_of_free(r, event, api);
  case SC_OP_COPY:
  case SC_OP_COPY_ASYNC:
  case SC_OP_MEMSET:
  case SC_OP_MEMSET_ASYNC:
    if (!(event->flags & EVENT_JOINED))
      flags |= SC_CALL_NO_ARGUMENTS;
    break;
  default:
    if (event->link == 0) /* the stream is not known */
      flags |= SC_CALL_NO_ARGUMENTS;
  }
  return flags;
}

/* Which stream a synchronise was for, where the trace does not say: that of the copy which the same operator made just
 * before it. */
static void settle_stream(struct replay *r, enum sc_op op, struct sc_record_call *call)
{
  if (op != SC_OP_COPY && op != SC_OP_COPY_ASYNC && op != SC_OP_SYNC_STREAM)
    return;
  end_frames(r, &r->operators, call->start_ns + r->base_ns);
  uint64_t operator= r->operators.count ? r->operators.list[r->operators.count - 1].serial : 0;
  if (op != SC_OP_SYNC_STREAM) {
    if (call->stream) {
      r->copy.operator= operator;
      r->copy.stream = call->stream;
      r->copy.device = SC_CALL_DEVICE(call);
    }
  } else if (call->stream == 0 && operator&& operator== r->copy.operator) {
    call->stream = r->copy.stream;
    call->api = SC_CALL_API(call) | (uint32_t)r->copy.device << 16 |
                (SC_CALL_FLAGS(call) & ~(uint32_t)SC_CALL_NO_ARGUMENTS) << 24;
    ++r->feed->totals.streams_taken;
  } else if (call->stream == 0) {
    ++r->feed->totals.streams_unknown;
  }
}

static void follow_capture(struct replay *r, const struct event *event, const struct feed_api *api)
{
  if (event->status != 0)
    return;
  if (api->capture > 0)
    ++r->capturing;
  else if (r->capturing)
    --r->capturing;
}

static void take_call(struct replay *r, const struct event *event)
{
  const struct feed_api *api = &r->feed->api[event->what - 1];
  if (event->start_ns < r->call_end_ns) /* inside another call */
    return;
  r->call_end_ns = event->end_ns;
  r->has_calls = true;
  if (api->capture) {
    follow_capture(r, event, api);
    return;
  }
  uint32_t flags = flags_of(r, event, api);
  if ((api->op == SC_OP_LAUNCH || api->op == SC_OP_GRAPH_LAUNCH) && (flags & SC_CALL_CAPTURED))
    return;
  struct sc_record_call record = {.head = {.kind = SC_RECORD_CALL, .units = 1},
                                  .start_ns = event->start_ns - r->base_ns,
                                  .duration_ns = event->end_ns - event->start_ns,
                                  .stream = event->link,
                                  .bytes = event->bytes,
                                  .api = event->what | (uint32_t)event->device << 16 | flags << 24,
                                  .status = event->status,
                                  .direction = event->direction,
                                  .memory = event->memory};
  settle_stream(r, (enum sc_op)api->op, &record);
  if (needs_stack(api->op))
    record.head.stack = event->extra ? event->extra : stack_now(r, event->start_ns);
  uint64_t before = sc_analysis_syncs(r->thread), gap_ns;
  sc_analysis_record(r->analysis, r->thread, &record.head);
  if (sc_analysis_syncs(r->thread) > before && drains_take(r->drains, event->device, event->end_ns, &gap_ns))
    sc_analysis_drain(r->thread, gap_ns);
}

/* ---- threads and processes ---------------------------------------------------------------------------------- */

static void end_thread(struct replay *r)
{
  if (!r->thread)
    return;
  end_ranges(r, UINT64_MAX - 1);
  r->thread = NULL;
}

static bool begin_thread(struct replay *r, uint32_t index)
{
  const struct feed_thread *thread = &r->feed->threads[index];
  r->thread_index = index;
  r->thread = sc_analysis_thread(r->analysis, (uint64_t)index + 1, thread->tid);
  r->call_end_ns = 0;
  r->capturing = 0;
  r->range_count = 0;
  r->next_end_ns = UINT64_MAX;
  r->frames.count = r->operators.count = 0;
  r->copy.operator= 0;
  r->stack = UINT32_MAX;
  return r->thread && (!thread->name || sc_analysis_thread_name(r->thread, thread->name, strlen(thread->name)));
}

static bool take_fact(char **out, const char *fact)
{
  *out = sc_strdup(fact);
  return *out || !fact;
}

static bool describe(const struct replay *r, const struct feed_process *from, struct sc_process *process)
{
  process->pid = from->pid;
  if (r->feed->real_ns)
    process->clock_offset_ns = (int64_t)(r->feed->real_ns + r->base_ns - r->feed->zero_ns);
  process->ended_cleanly = true; /* a trace that was exported is whole */
  process->trace_path = sc_strdup(r->path);
  return process->trace_path && take_fact(&process->command, from->facts[SC_FEED_COMMAND]) &&
         take_fact(&process->host, from->facts[SC_FEED_HOST]) && take_fact(&process->rank, from->facts[SC_FEED_RANK]) &&
         take_fact(&process->local_rank, from->facts[SC_FEED_LOCAL_RANK]) &&
         take_fact(&process->cwd, from->facts[SC_FEED_CWD]);
}

static enum sc_status end_process(struct replay *r, struct sc_error *err)
{
  enum sc_status status = SC_OK;
  end_thread(r);
  if (r->analysis && r->has_calls) {
    const struct feed_process *from = &r->feed->processes[r->process];
    struct sc_process *process = sc_findings_process(r->findings);
    char label[64];
    snprintf(label, sizeof label, "process %" PRIu64 ": ", from->pid);
    if (!process || !describe(r, from, process))
      status = sc_error_no_memory(err);
    else
      status = sc_analysis_finish(r->analysis, label, process, r->findings, err);
    if (status == SC_OK && drains_cut(r->drains) &&
        !sc_findings_warn(r->findings, "%sdrain gaps were not measured: more than %u pieces of device work.", label,
                          DRAIN_WORK_MAX))
      status = sc_error_no_memory(err);
    ++r->processes;
  }
  sc_analysis_free(r->analysis);
  r->analysis = NULL;
  return status;
}

static bool define_apis(struct replay *r)
{
  for (size_t i = 0; i < r->feed->api_count; ++i) {
    const struct sc_intern_entry *name = sc_intern_get(&r->feed->apis, (uint32_t)i + 1);
    if (!sc_analysis_api(r->analysis, (uint32_t)i + 1, r->feed->api[i].op, name->bytes))
      return false;
  }
  return true;
}

static enum sc_status begin_process(struct replay *r, uint32_t process, struct sc_error *err)
{
  uint64_t from_ns = r->feed->processes[process].from_ns;
  r->process = process;
  r->has_calls = false;
  r->handles = 0;
  memset(r->strings, 0, r->feed->strings.count / 8 + 1);
  r->analysis = sc_analysis_new(r->options);
  if (!r->analysis || !define_apis(r))
    return sc_error_no_memory(err);
  sc_analysis_stacks(r->analysis, &source, r->feed);
  if (r->feed->from)
    sc_analysis_from(r->analysis, from_ns == UINT64_MAX ? from_ns : from_ns - r->base_ns);
  return drains_load(r->drains, process, err);
}

static enum sc_status take_event(struct replay *r, const struct event *event, struct sc_error *err)
{
  if (r->analysis && event->process != r->process) {
    enum sc_status status = end_process(r, err);
    if (status != SC_OK)
      return status;
  }
  if (!r->analysis) {
    enum sc_status status = begin_process(r, event->process, err);
    if (status != SC_OK)
      return status;
  }
  if (r->thread && event->thread != r->thread_index)
    end_thread(r);
  if (!r->thread && !begin_thread(r, event->thread))
    return sc_error_no_memory(err);
  if (event->start_ns >= r->next_end_ns)
    end_ranges(r, event->start_ns);
  switch ((enum event_kind)event->kind) {
  case EVENT_FRAME: begin_frame(r, &r->frames, event); break;
  case EVENT_OPERATOR: begin_frame(r, &r->operators, event); break;
  case EVENT_RANGE:
  case EVENT_SPAN: return begin_range(r, event) ? SC_OK : sc_error_no_memory(err);
  case EVENT_CALL: take_call(r, event); break;
  case EVENT_WORK: break;
  }
  return SC_OK;
}

/* A trace without a single call says nothing about syncs: that is not 0 of them. */
static bool add_unmeasured(struct replay *r)
{
  static const struct feed_process nobody;
  const struct sc_feed *f = r->feed;
  struct sc_process *process = sc_findings_process(r->findings);
  if (!process || !describe(r, f->process_count ? &f->processes[0] : &nobody, process))
    return false;
  process->unmeasured = true;
  return sc_findings_warn(r->findings, "%s: nothing was counted: this trace holds no CUDA API calls.", r->path);
}

static bool warn_limits(struct replay *r)
{
  const struct sc_feed *f = r->feed;
  bool ok = true;
  if (f->other_names)
    ok &= sc_findings_warn(r->findings,
                           "%s: %" PRIu64 " names were replaced by \"(other names)\": this trace has more different "
                           "ones than are kept apart.",
                           r->path, f->other_names);
  if (f->other_stacks)
    ok &= sc_findings_warn(r->findings,
                           "%s: %" PRIu64 " calls have no stack: this trace has more different ones than are kept.",
                           r->path, f->other_stacks);
  if (r->left_out)
    ok &= sc_findings_warn(r->findings,
                           "%s: %" PRIu64 " ranges were left out: more than %d were open at once on one thread.",
                           r->path, r->left_out, RANGES_OPEN_MAX);
  return ok;
}

enum sc_status feed_replay(struct sc_feed *feed, const char *path, const struct sc_analysis_options *options,
                           struct sc_findings *findings, struct sc_error *err)
{
  enum sc_status status = SC_OK;
  const void *item = NULL;
  struct replay *r = calloc(1, sizeof *r);
  if (!r)
    return sc_error_no_memory(err);
  *r = (struct replay){.feed = feed, .options = options, .findings = findings, .path = path};
  r->base_ns = feed->first_ns <= feed->zero_ns ? feed->first_ns - 1 : feed->zero_ns;
  r->drains = drains_new(feed->works);
  r->strings = sc_calloc_array(feed->strings.count / 8 + 1, 1);
  if (!r->drains || !r->strings) {
    status = sc_error_no_memory(err);
    goto cleanup;
  }
  do {
    status = sc_sorter_next(feed->events, &item, err);
    if (status == SC_OK && item)
      status = take_event(r, item, err);
    if (status == SC_OK && feed->failure.status != SC_OK)
      status = sc_error_set(err, feed->failure.status, "%s", feed->failure.message);
  } while (status == SC_OK && item);
  if (status == SC_OK)
    status = end_process(r, err);
  if (status == SC_OK && ((r->processes == 0 && !add_unmeasured(r)) || !warn_limits(r)))
    status = sc_error_no_memory(err);
cleanup:
  sc_analysis_free(r->analysis);
  drains_free(r->drains);
  free(r->strings);
  free(r->ranges);
  free(r);
  return status;
}
