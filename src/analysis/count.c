/* SPDX-License-Identifier: Apache-2.0
 * Calls to counts: which of them block, which are one sync together, and what they waited for.
 * DESIGN.md 'Words' is the law here; each of its sentences has a test in tests/analysis. */
#include "analysis/engine.h"

#include <string.h>

#define CAPTURE_ERROR_FIRST 900 /* cudaErrorStreamCaptureUnsupported and its kin, of both APIs */
#define CAPTURE_ERROR_LAST 908

static bool same_stream(struct stream a, struct stream b)
{
  if (a.handle == 0 || a.handle != b.handle)
    return false;
  return a.handle > SC_STREAM_PER_THREAD || a.device == b.device || a.device == DEVICE_UNKNOWN ||
         b.device == DEVICE_UNKNOWN;
}

/* Adds to what was counted for the call that is being followed, in its ranges. */
static void add_late(struct sc_analysis_thread *t, const struct sc_counts *late)
{
  if (t->where_count == 0 || t->outside) {
    sc_counts_add(&t->fresh, late);
    return;
  }
  sc_counts_add(&t->total, late);
  for (size_t i = 0; i < t->where_count; ++i)
    sc_counts_add(&t->where[i]->self, late);
}

static bool is_host(uint32_t memory) { return memory == SC_MEMORY_PAGEABLE || memory == SC_MEMORY_PINNED; }
static bool is_device(uint32_t memory)
{
  return memory == SC_MEMORY_DEVICE || memory == SC_MEMORY_MANAGED || memory == SC_MEMORY_ARRAY;
}

/* What the record says, then what the name says, then what the memory on both sides says. */
static unsigned direction_of(const struct sc_record_call *call, const struct call_kind *kind)
{
  uint32_t dst = SC_CALL_DST(call), src = SC_CALL_SRC(call);
  if (call->direction != SC_DIRECTION_NONE)
    return call->direction;
  if (kind->direction != SC_DIRECTION_NONE && !(SC_CALL_FLAGS(call) & SC_CALL_UNKNOWN_DIRECTION))
    return kind->direction;
  if (is_host(dst))
    return is_host(src) ? SC_DIRECTION_H2H : SC_DIRECTION_D2H;
  if (is_device(dst) && src != SC_MEMORY_UNKNOWN)
    return is_host(src) ? SC_DIRECTION_H2D : SC_DIRECTION_D2D;
  return SC_DIRECTION_NONE;
}

static struct stream stream_of(const struct sc_record_call *call, const struct call_kind *kind)
{
  uint64_t handle = call->stream;
  /* A call that takes no stream works on the default one. */
  if (handle == 0 && !(SC_CALL_FLAGS(call) & SC_CALL_NO_ARGUMENTS))
    handle = kind->per_thread ? SC_STREAM_PER_THREAD : SC_STREAM_LEGACY;
  return (struct stream){.handle = handle, .device = SC_CALL_DEVICE(call)};
}

/* The device got work that is not known to be an upload: what came directly before is no longer "directly before". */
static void note_submissions(struct sc_analysis_thread *t)
{
  t->submitted = true;
  t->follow = FOLLOW_NONE;
  t->where_count = 0;
  t->upload.handle = 0;
}

static void submit(struct sc_analysis_thread *t)
{
  ++t->fresh.submissions;
  note_submissions(t);
}

static void drop_copy(struct sc_analysis_thread *t, size_t index)
{
  memmove(&t->copies[index], &t->copies[index + 1], (--t->copy_count - index) * sizeof *t->copies);
}

static void add_copy(struct sc_analysis_thread *t, struct stream stream, const struct sc_record_call *call)
{
  struct copy copy = {.stream = stream, .bytes = call->bytes, .memory = SC_CALL_DST(call)};
  size_t i = 0;
  while (i < t->copy_count && !same_stream(t->copies[i].stream, stream))
    ++i;
  if (i < t->copy_count)
    copy.bytes += t->copies[i].bytes;
  else if (i == COPIES_MAX)
    i = 0; /* the oldest gives way */
  if (i < t->copy_count)
    drop_copy(t, i);
  t->copies[t->copy_count++] = copy;
}

static void is_read_back(struct sync_facts *facts, const struct copy *copy)
{
  facts->read_back = true;
  facts->direction = SC_DIRECTION_D2H;
  facts->memory = copy->memory;
  facts->bytes += copy->bytes;
}

/* Takes the copies on this stream out of those nobody has waited for: the sync is their read-back. */
static void take_copies(struct sc_analysis_thread *t, struct stream stream, struct sync_facts *facts)
{
  for (size_t i = 0; i < t->copy_count; ++i) {
    if (same_stream(t->copies[i].stream, stream)) {
      is_read_back(facts, &t->copies[i]);
      drop_copy(t, i);
      return;
    }
  }
}

static void take_copies_of_device(struct sc_analysis_thread *t, uint32_t device, struct sync_facts *facts)
{
  size_t kept = 0, before = t->copy_count;
  for (size_t i = 0; i < before; ++i) {
    uint32_t other = t->copies[i].stream.device;
    if (device != DEVICE_UNKNOWN && other != DEVICE_UNKNOWN && other != device)
      t->copies[kept++] = t->copies[i];
    else
      is_read_back(facts, &t->copies[i]);
  }
  t->copy_count = kept;
}

static void count_sync(struct sc_analysis_thread *t, enum sc_class cls, const struct sc_record_call *call,
                       const struct sync_facts *facts)
{
  ++t->fresh.syncs;
  ++t->fresh.by_class[cls];
  t->fresh.wait_ns += call->duration_ns;
  t->fresh.sleeping_syncs += (SC_CALL_FLAGS(call) & SC_CALL_OBJECT_BLOCKING) != 0;
  t->fresh.read_backs += facts->read_back;
  t->fresh.blocking_uploads += facts->upload;
  t->fresh.idle_syncs += facts->idle;
  t->follow = FOLLOW_NONE;
  t->where_count = 0;
  t->upload.handle = 0;
  t->submitted = false;
  t->synced = true;
  sc_sites_sync(t, cls, call, facts);
}

static void covers_stream(struct sc_analysis_thread *t, struct stream stream)
{
  t->synced_all = false;
  t->synced_stream = stream;
}

static void covers_device(struct sc_analysis_thread *t, const struct sc_record_call *call)
{
  t->synced_all = true;
  t->synced_stream = (struct stream){.device = SC_CALL_DEVICE(call)};
}

static bool covered_by_last(const struct sc_analysis_thread *t, const struct sc_record_call *call)
{
  uint32_t device = SC_CALL_DEVICE(call);
  return t->synced && !t->submitted && t->synced_all &&
         (t->synced_stream.device == device || t->synced_stream.device == DEVICE_UNKNOWN || device == DEVICE_UNKNOWN);
}

static void sync_stream(struct sc_analysis_thread *t, const struct sc_record_call *call, const struct call_kind *kind)
{
  struct stream stream = stream_of(call, kind);
  if (t->follow == FOLLOW_MERGES && stream.handle == 0)
    ++t->fresh.uncertain; /* it may be part of the sync before it, or not */
  bool follows = t->follow != FOLLOW_NONE && same_stream(t->follow_stream, stream);
  if (follows && t->follow == FOLLOW_MERGES) {
    add_late(t, &(struct sc_counts){.wait_ns = call->duration_ns});
    sc_sites_join(t, call->duration_ns);
    t->follow = FOLLOW_NONE;
    t->where_count = 0;
    return;
  }
  if (follows)
    add_late(t, &(struct sc_counts){.uncertain = UINT64_MAX}); /* minus one */
  struct sync_facts facts = {.idle = covered_by_last(t, call) ||
                                     (t->synced && !t->submitted && same_stream(t->synced_stream, stream))};
  bool upload = same_stream(t->upload, stream);
  take_copies(t, stream, &facts);
  if (upload && !facts.read_back) {
    facts.upload = true;
    facts.direction = SC_DIRECTION_H2D;
    facts.memory = t->uploaded.memory;
    facts.bytes = t->uploaded.bytes;
  }
  count_sync(t, SC_CLASS_EXPLICIT, call, &facts);
  covers_stream(t, stream);
}

static void sync_device(struct sc_analysis_thread *t, const struct sc_record_call *call)
{
  struct sync_facts facts = {.idle = covered_by_last(t, call)};
  take_copies_of_device(t, SC_CALL_DEVICE(call), &facts);
  count_sync(t, SC_CLASS_EXPLICIT, call, &facts);
  covers_device(t, call);
}

/* On which stream the event was recorded is not in the trace. The thread's last copy is taken to be before it, as
 * programs write it; nothing else is concluded about the stream. */
static void sync_event(struct sc_analysis_thread *t, const struct sc_record_call *call)
{
  struct sync_facts facts = {.idle = covered_by_last(t, call)};
  if (t->copy_count)
    is_read_back(&facts, &t->copies[--t->copy_count]);
  count_sync(t, SC_CLASS_EXPLICIT, call, &facts);
  covers_stream(t, (struct stream){0});
}

/* A copy that blocks: itself a sync, and a read-back when it brings data to the host. */
static void blocking_copy(struct sc_analysis_thread *t, enum sc_class cls, unsigned direction, struct stream stream,
                          const struct sc_record_call *call)
{
  struct sync_facts facts = {0};
  ++t->fresh.submissions;
  t->fresh.d2h_copies += direction == SC_DIRECTION_D2H;
  take_copies(t, stream, &facts);
  facts.read_back |= direction == SC_DIRECTION_D2H;
  facts.upload = direction == SC_DIRECTION_H2D && !facts.read_back;
  facts.direction = direction; /* what is told of it is the blocking copy itself */
  facts.memory = direction == SC_DIRECTION_H2D ? SC_CALL_SRC(call) : SC_CALL_DST(call);
  facts.bytes = call->bytes;
  count_sync(t, cls, call, &facts);
  covers_stream(t, stream);
  if (direction == SC_DIRECTION_D2H) {
    t->follow = FOLLOW_MERGES;
    t->follow_stream = stream;
  }
}

static bool moves_nothing(const struct sc_record_call *call)
{
  return call->bytes == 0 && !(SC_CALL_FLAGS(call) & SC_CALL_NO_ARGUMENTS);
}

static void copy_sync(struct sc_analysis_thread *t, const struct sc_record_call *call, const struct call_kind *kind)
{
  if (moves_nothing(call))
    return;
  unsigned direction = direction_of(call, kind);
  if (direction == SC_DIRECTION_D2D) {
    submit(t);
  } else if (direction != SC_DIRECTION_NONE || is_host(SC_CALL_SRC(call))) {
    blocking_copy(t, SC_CLASS_COPY, direction, stream_of(call, kind), call);
  } else { /* device to device or not: a synchronise that follows would not settle it */
    submit(t);
    ++t->fresh.uncertain;
  }
}

static void copy_async(struct sc_analysis_thread *t, const struct sc_record_call *call, const struct call_kind *kind)
{
  if (moves_nothing(call))
    return;
  unsigned direction = direction_of(call, kind);
  bool to_device = direction == SC_DIRECTION_H2D || direction == SC_DIRECTION_D2D;
  struct stream stream = stream_of(call, kind);
  uint32_t dst = SC_CALL_DST(call);
  if (!to_device && dst == SC_MEMORY_PAGEABLE) {
    blocking_copy(t, SC_CLASS_PAGEABLE, direction, stream, call);
    return;
  }
  submit(t);
  if (direction == SC_DIRECTION_H2D) {
    t->upload = stream;
    t->uploaded = (struct copy){.bytes = call->bytes, .memory = SC_CALL_SRC(call)};
  }
  if (direction == SC_DIRECTION_D2H) {
    ++t->fresh.d2h_copies;
    add_copy(t, stream, call);
  }
  if (!to_device && dst == SC_MEMORY_UNKNOWN) {
    ++t->fresh.uncertain;
    t->follow = FOLLOW_SETTLES;
    t->follow_stream = stream;
  }
}

static void memset_sync(struct sc_analysis_thread *t, const struct sc_record_call *call, const struct call_kind *kind)
{
  if (moves_nothing(call))
    return;
  uint32_t dst = SC_CALL_DST(call);
  if (is_host(dst) || dst == SC_MEMORY_MANAGED) {
    struct stream stream = stream_of(call, kind);
    struct sync_facts facts = {0};
    ++t->fresh.submissions;
    take_copies(t, stream, &facts);
    count_sync(t, SC_CLASS_COPY, call, &facts);
    covers_stream(t, stream);
    return;
  }
  submit(t);
  t->fresh.uncertain += dst == SC_MEMORY_UNKNOWN;
}

static void free_memory(struct sc_analysis_thread *t, const struct sc_record_call *call, const struct call_kind *kind)
{
  uint32_t flags = SC_CALL_FLAGS(call);
  if (flags & (SC_CALL_NULL_POINTER | SC_CALL_POOL_POINTER))
    return;
  /* NULL or not; from a pool or not. */
  if (flags & SC_CALL_NO_ARGUMENTS || (kind->may_be_pool && SC_CALL_DST(call) == SC_MEMORY_UNKNOWN)) {
    ++t->fresh.uncertain;
    return;
  }
  count_sync(t, SC_CLASS_IMPLICIT, call, &(struct sync_facts){.idle = covered_by_last(t, call)});
  covers_device(t, call);
}

/* Queries come merged from the tracer (bytes: "not ready" answers, status: of the last one) and one by one from
 * importers, and a merged record may have been cut in two at a chunk's end. */
static void query(struct sc_analysis_thread *t, const struct sc_record_call *call, const struct call_kind *kind)
{
  bool ready = call->status == 0;
  uint64_t not_ready = call->bytes;
  if (call->status == NOT_READY && not_ready == 0)
    not_ready = 1;
  t->fresh.api_calls += not_ready + ready - 1; /* one was counted by the caller */
  uint64_t object = kind->op == SC_OP_QUERY_EVENT ? call->object : stream_of(call, kind).handle;
  bool goes_on = t->poll.open && t->poll.op == kind->op && t->poll.object == object;
  bool waited = ready && (not_ready > 0 || goes_on);
  t->fresh.poll_waits += waited;
  if (waited)
    sc_sites_beside(t, SC_SITE_POLL, call);
  t->poll.open = !ready;
  t->poll.op = kind->op;
  t->poll.object = object;
}

static bool is_query(enum sc_op op) { return op == SC_OP_QUERY_STREAM || op == SC_OP_QUERY_EVENT; }

/* Whether a call of this kind could have been a sync: what `captured` counts. */
static bool could_block(enum sc_op op, const struct sc_record_call *call, const struct call_kind *kind)
{
  unsigned direction = direction_of(call, kind);
  switch (op) {
  case SC_OP_SYNC_STREAM:
  case SC_OP_SYNC_EVENT:
  case SC_OP_SYNC_DEVICE: return true;
  case SC_OP_COPY: return direction != SC_DIRECTION_D2D && !moves_nothing(call);
  case SC_OP_COPY_ASYNC:
    return SC_CALL_DST(call) == SC_MEMORY_PAGEABLE && direction != SC_DIRECTION_H2D && direction != SC_DIRECTION_D2D &&
           !moves_nothing(call);
  case SC_OP_MEMSET: return is_host(SC_CALL_DST(call)) || SC_CALL_DST(call) == SC_MEMORY_MANAGED;
  case SC_OP_FREE:
  case SC_OP_FREE_HOST:
  case SC_OP_UNREGISTER: return !(SC_CALL_FLAGS(call) & (SC_CALL_NULL_POINTER | SC_CALL_POOL_POINTER));
  default: return false;
  }
}

static void dispatch(struct sc_analysis_thread *t, const struct sc_record_call *call, const struct call_kind *kind)
{
  switch ((enum sc_op)kind->op) {
  case SC_OP_SYNC_STREAM: sync_stream(t, call, kind); break;
  case SC_OP_SYNC_EVENT: sync_event(t, call); break;
  case SC_OP_SYNC_DEVICE: sync_device(t, call); break;
  case SC_OP_COPY: copy_sync(t, call, kind); break;
  case SC_OP_COPY_ASYNC: copy_async(t, call, kind); break;
  case SC_OP_MEMSET: memset_sync(t, call, kind); break;
  case SC_OP_MEMSET_ASYNC:
    if (!moves_nothing(call))
      submit(t);
    break;
  case SC_OP_FREE:
  case SC_OP_FREE_HOST:
  case SC_OP_UNREGISTER: free_memory(t, call, kind); break;
  case SC_OP_LAUNCH:
  case SC_OP_GRAPH_LAUNCH: /* from importers; the tracer counts them in the next record's head */
    ++t->fresh.launches;
    submit(t);
    break;
  case SC_OP_HOST_FUNC:
    ++t->fresh.host_functions;
    submit(t);
    break;
  case SC_OP_PREFETCH: submit(t); break;
  case SC_OP_LIFECYCLE: ++t->fresh.lifecycle; break;
  default: /* asynchronous frees, allocations, event records, names we do not know: neither block nor submit */ break;
  }
}

void sc_count_call(struct sc_analysis_thread *t, const struct sc_record_call *call, const struct call_kind *kind)
{
  enum sc_op op = (enum sc_op)kind->op;
  ++t->fresh.api_calls;
  if (is_query(op) && (call->status == 0 || call->status == NOT_READY)) {
    query(t, call, kind);
    return;
  }
  t->poll.open = false;
  if (is_query(op)) /* failed: the answers before it were answers */
    t->fresh.api_calls += call->bytes;
  if (call->status != 0) {
    ++t->fresh.failed;
    if (call->status >= CAPTURE_ERROR_FIRST && call->status <= CAPTURE_ERROR_LAST && could_block(op, call, kind))
      sc_sites_beside(t, SC_SITE_REFUSED, call);
  }
  else if (SC_CALL_FLAGS(call) & SC_CALL_CAPTURED)
    t->fresh.captured += could_block(op, call, kind);
  else
    dispatch(t, call, kind);
}

void sc_count_submissions(struct sc_analysis_thread *t, uint32_t submissions, uint32_t launches)
{
  t->fresh.submissions += submissions;
  t->fresh.launches += launches;
  t->fresh.api_calls += launches;
  t->poll.open = false;
  note_submissions(t);
}

void sc_count_gap(struct sc_analysis_thread *t)
{
  note_submissions(t);
  t->synced = false;
  t->poll.open = false;
  t->copy_count = 0;
}
