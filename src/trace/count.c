/* SPDX-License-Identifier: Apache-2.0
 * Calls to counts: which of them block, which are one sync together, and what they waited for.
 * DESIGN.md 'Words' is the law here; each of its sentences has a test in tests/analysis. */
#include "trace/count.h"

#include <string.h>

#define NOT_READY 600 /* cudaErrorNotReady, CUDA_ERROR_NOT_READY */

static bool same_stream(struct sc_count_stream a, struct sc_count_stream b) {
  if (a.handle == 0 || a.handle != b.handle)
    return false;
  return a.handle > SC_STREAM_PER_THREAD || a.device == b.device || a.device == SC_DEVICE_UNKNOWN ||
         b.device == SC_DEVICE_UNKNOWN;
}

void sc_counts_add(struct sc_counts *into, const struct sc_counts *from) {
  uint64_t *to = (uint64_t *)into;
  const uint64_t *values = (const uint64_t *)from;
  for (size_t i = 0; i < SC_COUNTS_FIELDS; ++i)
    to[i] += values[i];
}

void sc_call_kind_set(struct sc_call_kind *kind, enum sc_op op, const char *name, bool late) {
  struct sc_call_name parsed;
  sc_call_parse_name(name, &parsed);
  kind->known = true;
  kind->op = (uint8_t)(op == SC_OP_NONE ? sc_call_op(name) : op);
  kind->direction = (uint8_t)sc_call_direction(name);
  kind->per_thread = parsed.per_thread;
  kind->may_be_pool = late && (strcmp(parsed.base, "cudaFree") == 0 || strcmp(parsed.base, "cuMemFree") == 0);
}

/* Adds to what was counted for the call that is being followed, wherever that was. */
static void add_late(struct sc_counter *c, const struct sc_counts *late) {
  if (c->where_count == 0 || c->hooks == NULL)
    sc_counts_add(c->counts, late);
  else
    c->hooks->late(c->context, late);
}

static bool is_host(uint32_t memory) { return memory == SC_MEMORY_PAGEABLE || memory == SC_MEMORY_PINNED; }
static bool is_device(uint32_t memory) {
  return memory == SC_MEMORY_DEVICE || memory == SC_MEMORY_MANAGED || memory == SC_MEMORY_ARRAY;
}

/* What the record says, then what the name says, then what the memory on both sides says. */
static unsigned direction_of(const struct sc_record_call *call, const struct sc_call_kind *kind) {
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

static struct sc_count_stream stream_of(const struct sc_record_call *call, const struct sc_call_kind *kind) {
  uint64_t handle = call->stream;
  /* A call that takes no stream works on the default one. */
  if (handle == 0 && !(SC_CALL_FLAGS(call) & SC_CALL_NO_ARGUMENTS))
    handle = kind->per_thread ? SC_STREAM_PER_THREAD : SC_STREAM_LEGACY;
  return (struct sc_count_stream){.handle = handle, .device = SC_CALL_DEVICE(call)};
}

/* The device got work that is not known to be an upload: what came directly before is no longer "directly before". */
static void note_submissions(struct sc_counter *c) {
  c->submitted = true;
  c->follow = SC_FOLLOW_NONE;
  c->where_count = 0;
  c->upload.handle = 0;
}

static void submit(struct sc_counter *c) {
  ++c->counts->submissions;
  note_submissions(c);
}

static void drop_copy(struct sc_counter *c, size_t index) {
  memmove(&c->copies[index], &c->copies[index + 1], (--c->copy_count - index) * sizeof *c->copies);
}

static void add_copy(struct sc_counter *c, struct sc_count_stream stream, const struct sc_record_call *call) {
  struct sc_count_copy copy = {.stream = stream, .bytes = call->bytes, .memory = SC_CALL_DST(call)};
  size_t i = 0;
  while (i < c->copy_count && !same_stream(c->copies[i].stream, stream))
    ++i;
  if (i < c->copy_count) {
    copy.bytes += c->copies[i].bytes;
    copy.flow = c->copies[i].flow;
  } else if (i == SC_COUNT_COPIES)
    i = 0; /* the oldest gives way */
  if (i < c->copy_count)
    drop_copy(c, i);
  if (c->hooks && c->hooks->copy)
    copy.flow = c->hooks->copy(c->context, copy.flow, call);
  c->copies[c->copy_count++] = copy;
}

static void is_read_back(struct sc_sync_facts *facts, const struct sc_count_copy *copy) {
  facts->read_back = true;
  facts->direction = SC_DIRECTION_D2H;
  facts->memory = copy->memory;
  facts->bytes += copy->bytes;
  facts->flow = copy->flow;
}

/* Takes the copies on this stream out of those nobody has waited for: the sync is their read-back. */
static void take_copies(struct sc_counter *c, struct sc_count_stream stream, struct sc_sync_facts *facts) {
  for (size_t i = 0; i < c->copy_count; ++i) {
    if (same_stream(c->copies[i].stream, stream)) {
      is_read_back(facts, &c->copies[i]);
      drop_copy(c, i);
      return;
    }
  }
}

static void take_copies_of_device(struct sc_counter *c, uint32_t device, struct sc_sync_facts *facts) {
  size_t kept = 0, before = c->copy_count;
  for (size_t i = 0; i < before; ++i) {
    uint32_t other = c->copies[i].stream.device;
    if (device != SC_DEVICE_UNKNOWN && other != SC_DEVICE_UNKNOWN && other != device)
      c->copies[kept++] = c->copies[i];
    else
      is_read_back(facts, &c->copies[i]);
  }
  c->copy_count = kept;
}

static void count_sync(struct sc_counter *c, enum sc_class cls, const struct sc_record_call *call,
                       const struct sc_sync_facts *facts) {
  ++c->counts->syncs;
  ++c->counts->by_class[cls];
  c->counts->wait_ns += call->duration_ns;
  c->counts->sleeping_syncs += (SC_CALL_FLAGS(call) & SC_CALL_OBJECT_BLOCKING) != 0;
  c->counts->read_backs += facts->read_back;
  c->counts->blocking_uploads += facts->upload;
  c->counts->idle_syncs += facts->idle;
  c->follow = SC_FOLLOW_NONE;
  c->where_count = 0;
  c->upload.handle = 0;
  c->submitted = false;
  c->synced = true;
  if (c->hooks != NULL)
    c->hooks->sync(c->context, cls, call, facts);
}

static void covers_stream(struct sc_counter *c, struct sc_count_stream stream) {
  c->synced_all = false;
  c->synced_stream = stream;
}

static void covers_device(struct sc_counter *c, const struct sc_record_call *call) {
  c->synced_all = true;
  c->synced_stream = (struct sc_count_stream){.device = SC_CALL_DEVICE(call)};
}

static bool covered_by_last(const struct sc_counter *c, const struct sc_record_call *call) {
  uint32_t device = SC_CALL_DEVICE(call);
  return c->synced && !c->submitted && c->synced_all &&
         (c->synced_stream.device == device || c->synced_stream.device == SC_DEVICE_UNKNOWN || device == SC_DEVICE_UNKNOWN);
}

static void sync_stream(struct sc_counter *c, const struct sc_record_call *call, const struct sc_call_kind *kind) {
  struct sc_count_stream stream = stream_of(call, kind);
  if (c->follow == SC_FOLLOW_MERGES && stream.handle == 0)
    ++c->counts->uncertain; /* it may be part of the sync before it, or not */
  bool follows = c->follow != SC_FOLLOW_NONE && same_stream(c->follow_stream, stream);
  if (follows && c->follow == SC_FOLLOW_MERGES) {
    add_late(c, &(struct sc_counts){.wait_ns = call->duration_ns});
    if (c->hooks != NULL)
      c->hooks->join(c->context, call);
    c->follow = SC_FOLLOW_NONE;
    c->where_count = 0;
    return;
  }
  if (follows)
    add_late(c, &(struct sc_counts){.uncertain = UINT64_MAX}); /* minus one */
  struct sc_sync_facts facts = {.idle = covered_by_last(c, call) ||
                                     (c->synced && !c->submitted && same_stream(c->synced_stream, stream))};
  bool upload = same_stream(c->upload, stream);
  take_copies(c, stream, &facts);
  if (upload && !facts.read_back) {
    facts.upload = true;
    facts.direction = SC_DIRECTION_H2D;
    facts.memory = c->uploaded.memory;
    facts.bytes = c->uploaded.bytes;
  }
  count_sync(c, SC_CLASS_EXPLICIT, call, &facts);
  covers_stream(c, stream);
}

static void sync_device(struct sc_counter *c, const struct sc_record_call *call) {
  struct sc_sync_facts facts = {.idle = covered_by_last(c, call)};
  take_copies_of_device(c, SC_CALL_DEVICE(call), &facts);
  count_sync(c, SC_CLASS_EXPLICIT, call, &facts);
  covers_device(c, call);
}

/* On which stream the event was recorded is not in the trace. The thread's last copy is taken to be before it, as
 * programs write it; nothing else is concluded about the stream. */
static void sync_event(struct sc_counter *c, const struct sc_record_call *call) {
  struct sc_sync_facts facts = {.idle = covered_by_last(c, call)};
  if (c->copy_count)
    is_read_back(&facts, &c->copies[--c->copy_count]);
  count_sync(c, SC_CLASS_EXPLICIT, call, &facts);
  covers_stream(c, (struct sc_count_stream){0});
}

/* A copy that blocks: itself a sync, and a read-back when it brings data to the host. */
static void blocking_copy(struct sc_counter *c, enum sc_class cls, unsigned direction, struct sc_count_stream stream,
                          const struct sc_record_call *call) {
  struct sc_sync_facts facts = {0};
  ++c->counts->submissions;
  c->counts->d2h_copies += direction == SC_DIRECTION_D2H;
  take_copies(c, stream, &facts);
  facts.read_back |= direction == SC_DIRECTION_D2H;
  facts.upload = direction == SC_DIRECTION_H2D && !facts.read_back;
  facts.direction = direction; /* what is told of it is the blocking copy itself */
  facts.memory = direction == SC_DIRECTION_H2D ? SC_CALL_SRC(call) : SC_CALL_DST(call);
  facts.bytes = call->bytes;
  count_sync(c, cls, call, &facts);
  covers_stream(c, stream);
  if (direction == SC_DIRECTION_D2H) {
    c->follow = SC_FOLLOW_MERGES;
    c->follow_stream = stream;
  }
}

static bool no_bytes(uint32_t flags, uint64_t bytes) { return bytes == 0 && !(flags & SC_CALL_NO_ARGUMENTS); }

static bool moves_nothing(const struct sc_record_call *call) { return no_bytes(SC_CALL_FLAGS(call), call->bytes); }

static void copy_sync(struct sc_counter *c, const struct sc_record_call *call, const struct sc_call_kind *kind) {
  if (moves_nothing(call))
    return;
  unsigned direction = direction_of(call, kind);
  if (direction == SC_DIRECTION_D2D) {
    submit(c);
  } else if (direction != SC_DIRECTION_NONE || is_host(SC_CALL_SRC(call))) {
    blocking_copy(c, SC_CLASS_COPY, direction, stream_of(call, kind), call);
  } else { /* device to device or not: a synchronise that follows would not settle it */
    submit(c);
    ++c->counts->uncertain;
  }
}

static void copy_async(struct sc_counter *c, const struct sc_record_call *call, const struct sc_call_kind *kind) {
  if (moves_nothing(call))
    return;
  unsigned direction = direction_of(call, kind);
  bool to_device = direction == SC_DIRECTION_H2D || direction == SC_DIRECTION_D2D;
  struct sc_count_stream stream = stream_of(call, kind);
  uint32_t dst = SC_CALL_DST(call);
  if (!to_device && dst == SC_MEMORY_PAGEABLE) {
    blocking_copy(c, SC_CLASS_PAGEABLE, direction, stream, call);
    return;
  }
  submit(c);
  if (direction == SC_DIRECTION_H2D) {
    c->upload = stream;
    c->uploaded = (struct sc_count_copy){.bytes = call->bytes, .memory = SC_CALL_SRC(call)};
  }
  if (direction == SC_DIRECTION_D2H) {
    ++c->counts->d2h_copies;
    add_copy(c, stream, call);
  }
  if (!to_device && dst == SC_MEMORY_UNKNOWN) {
    ++c->counts->uncertain;
    c->follow = SC_FOLLOW_SETTLES;
    c->follow_stream = stream;
  }
}

static void memset_sync(struct sc_counter *c, const struct sc_record_call *call, const struct sc_call_kind *kind) {
  if (moves_nothing(call))
    return;
  uint32_t dst = SC_CALL_DST(call);
  if (is_host(dst) || dst == SC_MEMORY_MANAGED) {
    struct sc_count_stream stream = stream_of(call, kind);
    struct sc_sync_facts facts = {0};
    ++c->counts->submissions;
    take_copies(c, stream, &facts);
    count_sync(c, SC_CLASS_COPY, call, &facts);
    covers_stream(c, stream);
    return;
  }
  submit(c);
  c->counts->uncertain += dst == SC_MEMORY_UNKNOWN;
}

static void free_memory(struct sc_counter *c, const struct sc_record_call *call, const struct sc_call_kind *kind) {
  uint32_t flags = SC_CALL_FLAGS(call);
  if (flags & (SC_CALL_NULL_POINTER | SC_CALL_POOL_POINTER))
    return;
  /* NULL or not; from a pool or not. */
  if (flags & SC_CALL_NO_ARGUMENTS || (kind->may_be_pool && SC_CALL_DST(call) == SC_MEMORY_UNKNOWN)) {
    ++c->counts->uncertain;
    return;
  }
  count_sync(c, SC_CLASS_IMPLICIT, call, &(struct sc_sync_facts){.idle = covered_by_last(c, call)});
  covers_device(c, call);
}

/* Queries come merged from the tracer (bytes: "not ready" answers, status: of the last one) and one by one from
 * importers, and a merged record may have been cut in two at a chunk's end. */
static void query(struct sc_counter *c, const struct sc_record_call *call, const struct sc_call_kind *kind) {
  bool ready = call->status == 0;
  uint64_t not_ready = call->bytes;
  if (call->status == NOT_READY && not_ready == 0)
    not_ready = 1;
  c->counts->api_calls += not_ready + ready - 1; /* one was counted by the caller */
  uint64_t object = kind->op == SC_OP_QUERY_EVENT ? call->object : stream_of(call, kind).handle;
  bool goes_on = c->poll.open && c->poll.op == kind->op && c->poll.object == object;
  bool waited = ready && (not_ready > 0 || goes_on);
  c->counts->poll_waits += waited;
  if (waited && c->hooks != NULL)
    c->hooks->beside(c->context, SC_BESIDE_POLL, call);
  c->poll.open = !ready;
  c->poll.op = kind->op;
  c->poll.object = object;
}

static bool is_query(enum sc_op op) { return op == SC_OP_QUERY_STREAM || op == SC_OP_QUERY_EVENT; }

bool sc_call_could_block(enum sc_op op, unsigned direction, uint32_t dst, uint32_t flags, uint64_t bytes) {
  switch (op) {
  case SC_OP_SYNC_STREAM:
  case SC_OP_SYNC_EVENT:
  case SC_OP_SYNC_DEVICE: return true;
  case SC_OP_COPY: return direction != SC_DIRECTION_D2D && !no_bytes(flags, bytes);
  case SC_OP_COPY_ASYNC:
    return dst == SC_MEMORY_PAGEABLE && direction != SC_DIRECTION_H2D && direction != SC_DIRECTION_D2D &&
           !no_bytes(flags, bytes);
  case SC_OP_MEMSET: return is_host(dst) || dst == SC_MEMORY_MANAGED;
  case SC_OP_FREE:
  case SC_OP_FREE_HOST:
  case SC_OP_UNREGISTER: return !(flags & (SC_CALL_NULL_POINTER | SC_CALL_POOL_POINTER));
  default: return false;
  }
}

/* What `captured` counts. */
static bool could_block(enum sc_op op, const struct sc_record_call *call, const struct sc_call_kind *kind) {
  return sc_call_could_block(op, direction_of(call, kind), SC_CALL_DST(call), SC_CALL_FLAGS(call), call->bytes);
}

static void dispatch(struct sc_counter *c, const struct sc_record_call *call, const struct sc_call_kind *kind) {
  switch ((enum sc_op)kind->op) {
  case SC_OP_SYNC_STREAM: sync_stream(c, call, kind); break;
  case SC_OP_SYNC_EVENT: sync_event(c, call); break;
  case SC_OP_SYNC_DEVICE: sync_device(c, call); break;
  case SC_OP_COPY: copy_sync(c, call, kind); break;
  case SC_OP_COPY_ASYNC: copy_async(c, call, kind); break;
  case SC_OP_MEMSET: memset_sync(c, call, kind); break;
  case SC_OP_MEMSET_ASYNC:
    if (!moves_nothing(call))
      submit(c);
    break;
  case SC_OP_FREE:
  case SC_OP_FREE_HOST:
  case SC_OP_UNREGISTER: free_memory(c, call, kind); break;
  case SC_OP_LAUNCH:
  case SC_OP_GRAPH_LAUNCH: /* from importers; the tracer counts them in the next record's head */
    ++c->counts->launches;
    submit(c);
    break;
  case SC_OP_HOST_FUNC:
    ++c->counts->host_functions;
    submit(c);
    break;
  case SC_OP_PREFETCH: submit(c); break;
  case SC_OP_LIFECYCLE: ++c->counts->lifecycle; break;
  default: /* asynchronous frees, allocations, event records, names we do not know: neither block nor submit */ break;
  }
}

void sc_counter_call(struct sc_counter *c, const struct sc_record_call *call, const struct sc_call_kind *kind) {
  enum sc_op op = (enum sc_op)kind->op;
  ++c->counts->api_calls;
  if (is_query(op) && (call->status == 0 || call->status == NOT_READY)) {
    query(c, call, kind);
    return;
  }
  c->poll.open = false;
  if (is_query(op)) /* failed: the answers before it were answers */
    c->counts->api_calls += call->bytes;
  if (call->status != 0) {
    ++c->counts->failed;
    if (sc_call_was_refused(call->status) && c->hooks != NULL && could_block(op, call, kind))
      c->hooks->beside(c->context, SC_BESIDE_REFUSED, call);
  }
  else if (SC_CALL_FLAGS(call) & SC_CALL_CAPTURED)
    c->counts->captured += could_block(op, call, kind);
  else
    dispatch(c, call, kind);
}

void sc_counter_submissions(struct sc_counter *c, uint32_t submissions, uint32_t launches) {
  c->counts->submissions += submissions;
  c->counts->launches += launches;
  c->counts->api_calls += launches;
  c->poll.open = false;
  note_submissions(c);
}

void sc_counter_gap(struct sc_counter *c) {
  note_submissions(c);
  c->synced = false;
  c->poll.open = false;
  c->copy_count = 0;
}
