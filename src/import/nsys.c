/* SPDX-License-Identifier: Apache-2.0
 * Nsight Systems exports (nsys export --type sqlite). Which tables and columns there are differs between versions, and
 * a table in which nothing was recorded is left out: every one is looked for, and what is missing is said. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/feed.h"
#include "import/import.h"
#include "import/nsys_db.h"

/* Times are relative to the session's start and may lie before it, by 13 days at most. The feed takes no negative ones.
 */
#define TIME_BIAS ((int64_t)1 << 50)
#define CHAINS_MAX (4u << 20) /* call chains that are kept apart */

/* globalTid: the machine and its kind, the process, the thread. globalPid: the same with thread 0. */
#define PID_BITS 24
#define PID_MASK 0xffffff

struct name {   /* a call's name */
  uint32_t api; /* of the feed; 0: it does not matter */
  enum sc_op op;
};

struct nsys {
  struct nsys_db db;
  struct nsys_strings strings;
  struct sc_feed *feed;
  struct sc_findings *findings;
  struct nsys_map memory_kinds, copy_kinds, event_types, memory_operations; /* by the trace's numbers */
  struct nsys_map name_index;                                               /* StringIds id -> names */
  struct name *names;
  size_t name_count, name_cap;
  struct nsys_map texts;      /* StringIds id -> the feed's string */
  struct nsys_map threads;    /* globalTid -> the feed's thread */
  struct nsys_map processes;  /* globalTid without its thread -> the feed's process */
  struct nsys_map with_calls; /* likewise, of those that made calls */
  struct nsys_map domains;    /* of the process that the domain was made in, and its number -> the feed's string */
  struct nsys_map chains;     /* call chain id -> the feed's stack */
  uint64_t nameless, copies, stream_syncs, frees, queries;
  bool has_status, has_chains, has_ranges, has_frees;
  uint64_t unplaced; /* device work of no known process */
  uint64_t lost;     /* rows that were left out */
};

/* Rows whose values make no sense are left out, and that is said. */
static bool warn_odd(struct nsys *n, const char *table, uint64_t odd)
{
  n->lost += odd;
  return odd == 0 || sc_findings_warn(n->findings,
                                      "%s: %" PRIu64 " rows of %s were left out: they lack a time or a thread, or hold "
                                      "something else in its place.",
                                      n->db.path, odd, table);
}

/* A time that can be one. */
static bool time_of(const struct nsys_rows *rows, int column, int64_t *out)
{
  return nsys_integer(rows, column, out) && *out > -TIME_BIAS && *out <= INT64_MAX - TIME_BIAS;
}

static uint64_t biased(int64_t time)
{
  if (time <= -TIME_BIAS)
    time = 1 - TIME_BIAS;
  if (time > INT64_MAX - TIME_BIAS)
    time = INT64_MAX - TIME_BIAS;
  return (uint64_t)(time + TIME_BIAS);
}

/* ---- enumerations: by name, since the numbers differ between versions ------------------------------------ */

struct meaning {
  const char *part; /* of the name */
  uint32_t value;
  int64_t number; /* where the export has no table of names */
};

enum { COPY_NOT_OF_A_CALL = 255 }; /* the driver moved managed memory */
enum { RANGE_PUSH_POP = 1, RANGE_START_END, DOMAIN_CREATE };
enum { MEMORY_ALLOCATED, MEMORY_FREED };

/* The first that the name holds wins. */
static const struct meaning memory_kinds[] = {
    {"PAGEABLE", SC_MEMORY_PAGEABLE, 0}, {"PINNED", SC_MEMORY_PINNED, 1}, {"MANAGED", SC_MEMORY_MANAGED, 4},
    {"DEVICE", SC_MEMORY_DEVICE, 2},     {"ARRAY", SC_MEMORY_ARRAY, 3},   {"UNKNOWN", SC_MEMORY_UNKNOWN, 7},
    {NULL, SC_MEMORY_DEVICE, 5},         {NULL, SC_MEMORY_MANAGED, 6},
};
static const struct meaning copy_kinds[] = {
    {"UVM_HTOD", COPY_NOT_OF_A_CALL, 11}, {"UVM_DTOH", COPY_NOT_OF_A_CALL, 12}, {"UVM_DTOD", COPY_NOT_OF_A_CALL, 13},
    {"HTOD", SC_DIRECTION_H2D, 1},        {"DTOH", SC_DIRECTION_D2H, 2},        {"HTOA", SC_DIRECTION_H2D, 3},
    {"ATOH", SC_DIRECTION_D2H, 4},        {"ATOA", SC_DIRECTION_D2D, 5},        {"ATOD", SC_DIRECTION_D2D, 6},
    {"DTOA", SC_DIRECTION_D2D, 7},        {"DTOD", SC_DIRECTION_D2D, 8},        {"HTOH", SC_DIRECTION_H2H, 9},
    {"PTOP", SC_DIRECTION_D2D, 10},
};
static const struct meaning event_types[] = {
    {"NvtxPushPopRange", RANGE_PUSH_POP, 59},  {"NvtxStartEndRange", RANGE_START_END, 60},
    {"NvtxtPushPopRange", RANGE_PUSH_POP, 70}, {"NvtxtStartEndRange", RANGE_START_END, 71},
    {"NvtxDomainCreate", DOMAIN_CREATE, 75},
};
static const struct meaning memory_operations[] = {{"DEALLOCATION", MEMORY_FREED, 1},
                                                   {"ALLOCATION", MEMORY_ALLOCATED, 0}};

static bool contains(const char *text, size_t length, const char *part)
{
  return memmem(text, length, part, strlen(part)) != NULL;
}

static enum sc_status load_enum(struct nsys *n, const char *name, const struct meaning *meanings, size_t count,
                                struct nsys_map *map, struct sc_error *err)
{
  const struct nsys_table table = {name, {"id", "name"}, 2};
  struct nsys_rows rows;
  bool more = false;
  enum sc_status status = nsys_rows_open(&n->db, &table, NULL, &rows, err);
  for (size_t i = 0; status == SC_OK && !rows.statement && i < count; ++i) {
    if (!nsys_map_put(map, meanings[i].number, meanings[i].value))
      status = sc_error_no_memory(err);
  }
  while (status == SC_OK && (status = nsys_rows_next(&rows, &more, err)) == SC_OK && more) {
    int64_t id;
    size_t length, i = 0;
    const char *text = nsys_text(&rows, 1, &length);
    if (!text || !nsys_integer(&rows, 0, &id))
      continue;
    while (i < count && !(meanings[i].part && contains(text, length, meanings[i].part)))
      ++i;
    if (i < count && !nsys_map_put(map, id, meanings[i].value))
      status = sc_error_no_memory(err);
  }
  nsys_rows_close(&rows);
  return status;
}

static enum sc_status load_enums(struct nsys *n, struct sc_error *err)
{
#define LOAD(name, field) \
  if (status == SC_OK)    \
  status = load_enum(n, name, field, SC_COUNTOF(field), &n->field, err)
  enum sc_status status = SC_OK;
  LOAD("ENUM_CUDA_MEM_KIND", memory_kinds);
  LOAD("ENUM_CUDA_MEMCPY_OPER", copy_kinds);
  LOAD("ENUM_NSYS_EVENT_TYPE", event_types);
  LOAD("ENUM_CUDA_DEV_MEM_EVENT_OPER", memory_operations);
  return status;
#undef LOAD
}

/* What a number of an enumeration means; `otherwise` where the column is missing, NULL, or means nothing to us. */
static uint32_t meaning_of(const struct nsys_rows *rows, int column, struct nsys_map *map, uint32_t otherwise)
{
  int64_t number;
  uint32_t value;
  return nsys_integer(rows, column, &number) && nsys_map_get(map, number, &value) ? value : otherwise;
}

/* ---- processes, threads, strings -------------------------------------------------------------------------- */

static bool process_of(struct nsys *n, int64_t global, uint32_t *out)
{
  int64_t key = global >> PID_BITS;
  if (nsys_map_get(&n->processes, key, out))
    return true;
  *out = sc_feed_process(n->feed, (uint64_t)key, (uint64_t)(key & PID_MASK));
  return nsys_map_put(&n->processes, key, *out);
}

static bool thread_of(struct nsys *n, int64_t global, uint32_t *out)
{
  uint32_t process;
  if (nsys_map_get(&n->threads, global, out))
    return true;
  if (!process_of(n, global, &process))
    return false;
  *out = sc_feed_thread(n->feed, process, (uint64_t)global, (uint32_t)(global & PID_MASK));
  return nsys_map_put(&n->threads, global, *out);
}

/* PyTorch's emit_nvtx numbers every call of an op in its range's name: "aten::to, seq = 12, op_id = 34". Without the
 * numbers they are one range. */
static size_t without_numbers(const char *text, size_t length)
{
  static const char *const marks[] = {", seq = ", ", op_id = "};
  for (size_t i = 0; i < SC_COUNTOF(marks); ++i) {
    const char *at = memmem(text, length, marks[i], strlen(marks[i]));
    size_t end = at ? (size_t)(at - text) + strlen(marks[i]) : length;
    if (at && end < length && text[end] >= '0' && text[end] <= '9')
      length = (size_t)(at - text);
  }
  return length;
}

/* The feed's string of a StringIds id; 0 if it is not there. */
static enum sc_status text_of(struct nsys *n, int64_t id, bool is_range, uint32_t *out, struct sc_error *err)
{
  const char *text;
  size_t length;
  if (nsys_map_get(&n->texts, id, out))
    return SC_OK;
  enum sc_status status = nsys_string(&n->strings, id, &text, &length, err);
  if (status != SC_OK)
    return status;
  *out = text ? sc_feed_string(n->feed, text, is_range ? without_numbers(text, length) : length) : 0;
  return nsys_map_put(&n->texts, id, *out) ? SC_OK : sc_error_no_memory(err);
}

/* ---- call chains -------------------------------------------------------------------------------------------- */

enum { CHAIN_ID, CHAIN_DEPTH, CHAIN_SYMBOL, CHAIN_MODULE };
static const struct nsys_table callchains = {"CUDA_CALLCHAINS", {"id", "stackDepth", "symbol", "module"}, 3};

struct chain {
  int64_t id;
  uint32_t frames[SC_STACK_NATIVE_MAX];
  size_t count;
};

static bool end_chain(struct nsys *n, const struct chain *chain)
{
  if (chain->count == 0 || n->chains.count >= CHAINS_MAX)
    return true;
  return nsys_map_put(&n->chains, chain->id, sc_feed_stack(n->feed, NULL, 0, chain->frames, chain->count));
}

static enum sc_status copy_text(struct nsys *n, const struct nsys_rows *rows, int column, char **out,
                                struct sc_error *err)
{
  int64_t id;
  const char *text = NULL;
  size_t length;
  *out = NULL;
  enum sc_status status = SC_OK;
  if (nsys_integer(rows, column, &id))
    status = nsys_string(&n->strings, id, &text, &length, err);
  if (text && !(*out = sc_strndup(text, length)))
    status = sc_error_no_memory(err);
  return status;
}

static enum sc_status add_frame(struct nsys *n, const struct nsys_rows *rows, struct chain *chain, struct sc_error *err)
{
  char *symbol = NULL, *module = NULL;
  enum sc_status status = copy_text(n, rows, CHAIN_SYMBOL, &symbol, err);
  if (status == SC_OK)
    status = copy_text(n, rows, CHAIN_MODULE, &module, err);
  if (status == SC_OK && symbol && chain->count < SC_STACK_NATIVE_MAX)
    chain->frames[chain->count++] = sc_feed_frame(n->feed, module, symbol, 0);
  free(symbol);
  free(module);
  return status;
}

static enum sc_status read_chains(struct nsys *n, struct sc_error *err)
{
  struct nsys_rows rows;
  struct chain chain = {0};
  bool more = false;
  enum sc_status status = nsys_rows_open(&n->db, &callchains, "ORDER BY id, stackDepth", &rows, err);
  while (status == SC_OK && (status = nsys_rows_next(&rows, &more, err)) == SC_OK && more) {
    int64_t id;
    if (!nsys_integer(&rows, CHAIN_ID, &id))
      continue;
    if (id != chain.id) {
      if (!end_chain(n, &chain))
        status = sc_error_no_memory(err);
      chain = (struct chain){.id = id};
    }
    if (status == SC_OK)
      status = add_frame(n, &rows, &chain, err);
    n->has_chains = true;
  }
  if (status == SC_OK && !end_chain(n, &chain))
    status = sc_error_no_memory(err);
  nsys_rows_close(&rows);
  return status;
}

/* ---- API calls ------------------------------------------------------------------------------------------------ */

enum { CALL_START, CALL_END, CALL_THREAD, CALL_NAME, CALL_CORRELATION, CALL_STATUS, CALL_CHAIN };
static const struct nsys_table call_tables[] = {
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     {"start", "end", "globalTid", "nameId", "correlationId", "returnValue", "callchainId"},
     4},
    /* of old versions; newer ones have the driver's calls in the table above */
    {"CUPTI_ACTIVITY_KIND_DRIVER",
     {"start", "end", "globalTid", "nameId", "correlationId", "returnValue", "callchainId"},
     4},
};

static enum sc_status name_of(struct nsys *n, int64_t id, const struct name **out, struct sc_error *err)
{
  uint32_t index;
  const char *text;
  size_t length;
  if (nsys_map_get(&n->name_index, id, &index)) {
    *out = &n->names[index];
    return SC_OK;
  }
  enum sc_status status = nsys_string(&n->strings, id, &text, &length, err);
  if (status != SC_OK)
    return status;
  struct name *name = sc_array_push(&n->names, &n->name_count, &n->name_cap, sizeof *name);
  if (!name || !nsys_map_put(&n->name_index, id, (uint32_t)n->name_count - 1))
    return sc_error_no_memory(err);
  name->op = text ? sc_call_op(text) : SC_OP_COUNT; /* COUNT: it has no name */
  name->api = text ? sc_feed_api(n->feed, text) : 0;
  *out = name;
  return SC_OK;
}

static void count_call(struct nsys *n, enum sc_op op)
{
  switch (op) {
  case SC_OP_COPY:
  case SC_OP_COPY_ASYNC: ++n->copies; break;
  case SC_OP_SYNC_STREAM: ++n->stream_syncs; break;
  case SC_OP_QUERY_STREAM:
  case SC_OP_QUERY_EVENT: ++n->queries; break;
  case SC_OP_FREE:
  case SC_OP_FREE_HOST: ++n->frees; break;
  case SC_OP_COUNT: ++n->nameless; break;
  default: break;
  }
}

static enum sc_status take_call(struct nsys *n, const struct nsys_rows *rows, uint64_t *odd, struct sc_error *err)
{
  int64_t start, end, thread, id, number;
  const struct name *name = NULL;
  uint32_t ignored;
  struct sc_feed_call call = {0};
  if (!time_of(rows, CALL_START, &start) || !time_of(rows, CALL_END, &end) || end < start ||
      !nsys_integer(rows, CALL_THREAD, &thread) || !nsys_integer(rows, CALL_NAME, &id)) {
    ++*odd;
    return SC_OK;
  }
  enum sc_status status = name_of(n, id, &name, err);
  if (status != SC_OK)
    return status;
  count_call(n, name->op);
  if (!name->api)
    return SC_OK;
  if (!thread_of(n, thread, &call.thread) || (!nsys_map_get(&n->with_calls, thread >> PID_BITS, &ignored) &&
                                              !nsys_map_put(&n->with_calls, thread >> PID_BITS, 1)))
    return sc_error_no_memory(err);
  call.api = name->api;
  call.start_ns = biased(start);
  call.end_ns = biased(end);
  if (nsys_integer(rows, CALL_CORRELATION, &number) && number > 0)
    call.correlation = (uint64_t)number;
  if (nsys_integer(rows, CALL_STATUS, &number))
    call.status = number < INT16_MIN || number > INT16_MAX ? INT16_MAX : (int32_t)number;
  if (n->chains.count && nsys_integer(rows, CALL_CHAIN, &number))
    (void)nsys_map_get(&n->chains, number, &call.stack);
  sc_feed_call(n->feed, &call);
  return SC_OK;
}

static enum sc_status read_calls(struct nsys *n, const struct nsys_table *table, struct sc_error *err)
{
  struct nsys_rows rows;
  bool more = false;
  uint64_t odd = 0;
  enum sc_status status = nsys_rows_open(&n->db, table, NULL, &rows, err);
  if (rows.statement && nsys_has(&rows, CALL_STATUS))
    n->has_status = true;
  while (status == SC_OK && !sc_feed_failed(n->feed) && (status = nsys_rows_next(&rows, &more, err)) == SC_OK && more)
    status = take_call(n, &rows, &odd, err);
  nsys_rows_close(&rows);
  return status == SC_OK && !warn_odd(n, table->name, odd) ? sc_error_no_memory(err) : status;
}

/* ---- device work ------------------------------------------------------------------------------------------------ */

/* The columns that all these tables begin with. A free has no end, which is that of its call. */
enum { WORK_START, WORK_CORRELATION, WORK_END, WORK_DEVICE, WORK_CONTEXT, WORK_STREAM, WORK_PROCESS, WORK_OWN };
#define WORK_COLUMNS "start", "correlationId", "end", "deviceId", "contextId", "streamId", "globalPid"

enum { COPY_KIND = WORK_OWN, COPY_BYTES, COPY_SRC, COPY_DST };
enum { SET_BYTES = WORK_OWN, SET_KIND };
enum { MEMORY_OPERATION = WORK_OWN, MEMORY_KIND, MEMORY_POOL, MEMORY_IMPORTED };

static bool add_copy(struct nsys *n, const struct nsys_rows *rows, struct sc_feed_work *work)
{
  int64_t bytes;
  uint32_t direction = meaning_of(rows, COPY_KIND, &n->copy_kinds, SC_DIRECTION_NONE);
  if (direction == COPY_NOT_OF_A_CALL) {
    work->kind = SC_FEED_KERNEL;
    return true;
  }
  bool to_host = direction == SC_DIRECTION_D2H || direction == SC_DIRECTION_H2H;
  bool from_host = direction == SC_DIRECTION_H2D || direction == SC_DIRECTION_H2H;
  bool known = direction != SC_DIRECTION_NONE;
  work->direction = (uint8_t)direction;
  work->dst =
      (uint8_t)meaning_of(rows, COPY_DST, &n->memory_kinds, known && !to_host ? SC_MEMORY_DEVICE : SC_MEMORY_UNKNOWN);
  work->src =
      (uint8_t)meaning_of(rows, COPY_SRC, &n->memory_kinds, known && !from_host ? SC_MEMORY_DEVICE : SC_MEMORY_UNKNOWN);
  if (nsys_integer(rows, COPY_BYTES, &bytes) && bytes > 0)
    work->bytes = (uint64_t)bytes;
  return true;
}

static bool add_memset(struct nsys *n, const struct nsys_rows *rows, struct sc_feed_work *work)
{
  int64_t bytes;
  work->dst = (uint8_t)meaning_of(rows, SET_KIND, &n->memory_kinds, SC_MEMORY_UNKNOWN);
  if (nsys_integer(rows, SET_BYTES, &bytes) && bytes > 0)
    work->bytes = (uint64_t)bytes;
  return true;
}

static bool has_address(const struct nsys_rows *rows, int column)
{
  int64_t address;
  return nsys_integer(rows, column, &address) && address != 0;
}

static bool add_free(struct nsys *n, const struct nsys_rows *rows, struct sc_feed_work *work)
{
  if (meaning_of(rows, MEMORY_OPERATION, &n->memory_operations, MEMORY_ALLOCATED) != MEMORY_FREED)
    return false;
  work->dst = (uint8_t)meaning_of(rows, MEMORY_KIND, &n->memory_kinds, SC_MEMORY_UNKNOWN);
  if (has_address(rows, MEMORY_POOL) || has_address(rows, MEMORY_IMPORTED))
    work->kind = SC_FEED_FREE_POOL;
  return true;
}

static const struct work_table {
  struct nsys_table table;
  enum sc_feed_work_kind kind;
  bool (*add)(struct nsys *n, const struct nsys_rows *rows, struct sc_feed_work *work); /* false: leave it out */
} work_tables[] = {
    {{"CUPTI_ACTIVITY_KIND_KERNEL", {WORK_COLUMNS}, 3}, SC_FEED_KERNEL, NULL},
    {{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {WORK_COLUMNS}, 3}, SC_FEED_KERNEL, NULL},
    {{"CUPTI_ACTIVITY_KIND_MEMCPY", {WORK_COLUMNS, "copyKind", "bytes", "srcKind", "dstKind"}, 3},
     SC_FEED_COPY,
     add_copy},
    {{"CUPTI_ACTIVITY_KIND_MEMSET", {WORK_COLUMNS, "bytes", "memKind"}, 3}, SC_FEED_MEMSET, add_memset},
    /* Its syncType is not looked at: Nsight Systems 2025.3 writes stream synchronises as 2, which its own table of
     * names calls a stream wait. What waits is known by the call's name; this tells the stream. */
    {{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {WORK_COLUMNS}, 1}, SC_FEED_SYNC, NULL},
    {{"CUDA_GPU_MEMORY_USAGE_EVENTS",
      {WORK_COLUMNS, "memoryOperationType", "memKind", "localMemoryPoolAddress", "importedMemoryPoolAddress"},
      1},
     SC_FEED_FREE,
     add_free},
};

/* The process that made calls, if a single one did. */
static bool only_process(struct nsys *n, uint32_t *process)
{
  int64_t key;
  if (n->with_calls.count != 1)
    return false;
  memcpy(&key, sc_intern_get(&n->with_calls.keys, 1)->bytes, sizeof key);
  return nsys_map_get(&n->processes, key, process);
}

/* Without a globalPid the work is the only process's, if there is only one. */
static bool place_work(struct nsys *n, const struct nsys_rows *rows, uint32_t *process, bool *known)
{
  int64_t global;
  *known = true;
  if (nsys_integer(rows, WORK_PROCESS, &global))
    return process_of(n, global, process);
  *process = 0;
  *known = only_process(n, process);
  return true;
}

static uint32_t small(const struct nsys_rows *rows, int column, uint32_t otherwise)
{
  int64_t number;
  return nsys_integer(rows, column, &number) && number >= 0 && number < UINT32_MAX ? (uint32_t)number : otherwise;
}

static enum sc_status take_work(struct nsys *n, const struct work_table *from, const struct nsys_rows *rows,
                                uint64_t *odd, struct sc_error *err)
{
  int64_t start, end, correlation = 0;
  struct sc_feed_work work = {.kind = from->kind};
  bool known;
  if (!time_of(rows, WORK_START, &start)) {
    ++*odd;
    return SC_OK;
  }
  if (!nsys_integer(rows, WORK_END, &end))
    end = start;
  if (!place_work(n, rows, &work.process, &known))
    return sc_error_no_memory(err);
  if (!known) {
    ++n->unplaced;
    return SC_OK;
  }
  work.start_ns = biased(start);
  work.end_ns = biased(end);
  if (nsys_integer(rows, WORK_CORRELATION, &correlation) && correlation > 0)
    work.correlation = (uint64_t)correlation;
  work.device = small(rows, WORK_DEVICE, SC_FEED_NO_DEVICE);
  work.context = small(rows, WORK_CONTEXT, 0);
  work.stream = small(rows, WORK_STREAM, SC_FEED_NO_STREAM);
  if (from->add && !from->add(n, rows, &work))
    return SC_OK;
  n->has_frees |= work.kind == SC_FEED_FREE || work.kind == SC_FEED_FREE_POOL;
  sc_feed_work(n->feed, &work);
  return SC_OK;
}

static enum sc_status read_work(struct nsys *n, const struct work_table *from, struct sc_error *err)
{
  struct nsys_rows rows;
  bool more = false;
  uint64_t odd = 0;
  enum sc_status status = nsys_rows_open(&n->db, &from->table, NULL, &rows, err);
  while (status == SC_OK && !sc_feed_failed(n->feed) && (status = nsys_rows_next(&rows, &more, err)) == SC_OK && more)
    status = take_work(n, from, &rows, &odd, err);
  nsys_rows_close(&rows);
  return status == SC_OK && !warn_odd(n, from->table.name, odd) ? sc_error_no_memory(err) : status;
}

/* ---- NVTX ----------------------------------------------------------------------------------------------------------
 */

enum { NVTX_START, NVTX_TYPE, NVTX_THREAD, NVTX_END, NVTX_TEXT, NVTX_TEXT_ID, NVTX_DOMAIN };
static const struct nsys_table nvtx = {
    "NVTX_EVENTS", {"start", "eventType", "globalTid", "end", "text", "textId", "domainId"}, 3};

static enum sc_status label_of(struct nsys *n, const struct nsys_rows *rows, bool is_range, uint32_t *out,
                               struct sc_error *err)
{
  int64_t id;
  size_t length;
  const char *text = nsys_text(rows, NVTX_TEXT, &length);
  *out = 0;
  if (text)
    *out = sc_feed_string(n->feed, text, is_range ? without_numbers(text, length) : length);
  else if (nsys_integer(rows, NVTX_TEXT_ID, &id))
    return text_of(n, id, is_range, out, err);
  return SC_OK;
}

/* A domain's number is its process's own. */
static int64_t domain_key(int64_t thread, int64_t domain)
{
  return (int64_t)((uint64_t)(thread >> PID_BITS) * 0x9e3779b97f4a7c15u ^ (uint64_t)domain);
}

static enum sc_status domain_of(struct nsys *n, int64_t thread, int64_t domain, uint32_t *out, struct sc_error *err)
{
  char name[48];
  *out = 0;
  if (domain == 0 || nsys_map_get(&n->domains, domain_key(thread, domain), out))
    return SC_OK;
  /* It was made before recording began: it has a number, and no name. */
  int length = snprintf(name, sizeof name, "domain %" PRId64, domain);
  *out = sc_feed_string(n->feed, name, (size_t)length);
  return nsys_map_put(&n->domains, domain_key(thread, domain), *out) ? SC_OK : sc_error_no_memory(err);
}

static enum sc_status take_nvtx(struct nsys *n, const struct nsys_rows *rows, bool domains, uint64_t *odd,
                                struct sc_error *err)
{
  int64_t start, end, thread, domain = 0;
  struct sc_feed_range range = {0};
  uint32_t type = meaning_of(rows, NVTX_TYPE, &n->event_types, 0);
  if (type == 0 || domains != (type == DOMAIN_CREATE))
    return SC_OK;
  if (!time_of(rows, NVTX_START, &start) || !nsys_integer(rows, NVTX_THREAD, &thread)) {
    *odd += !domains;
    return SC_OK;
  }
  (void)nsys_integer(rows, NVTX_DOMAIN, &domain);
  enum sc_status status = label_of(n, rows, !domains, &range.name, err);
  if (status != SC_OK)
    return status;
  if (domains)
    return range.name && !nsys_map_put(&n->domains, domain_key(thread, domain), range.name) ? sc_error_no_memory(err)
                                                                                            : SC_OK;
  status = domain_of(n, thread, domain, &range.domain, err);
  if (status != SC_OK)
    return status;
  if (!thread_of(n, thread, &range.thread))
    return sc_error_no_memory(err);
  if (range.name == 0)
    range.name = sc_feed_string(n->feed, "(no name)", strlen("(no name)"));
  range.start_ns = biased(start);
  range.end_ns = nsys_integer(rows, NVTX_END, &end) ? biased(end) : UINT64_MAX;
  range.spanning = type == RANGE_START_END;
  sc_feed_range(n->feed, &range);
  n->has_ranges = true;
  return SC_OK;
}

static enum sc_status read_nvtx(struct nsys *n, bool domains, struct sc_error *err)
{
  struct nsys_rows rows;
  bool more = false;
  uint64_t odd = 0;
  enum sc_status status = nsys_rows_open(&n->db, &nvtx, NULL, &rows, err);
  while (status == SC_OK && !sc_feed_failed(n->feed) && (status = nsys_rows_next(&rows, &more, err)) == SC_OK && more)
    status = take_nvtx(n, &rows, domains, &odd, err);
  nsys_rows_close(&rows);
  return status == SC_OK && !warn_odd(n, nvtx.name, odd) ? sc_error_no_memory(err) : status;
}

/* ---- names of threads, processes and the machine
 * --------------------------------------------------------------------- */

static enum sc_status name_threads(struct nsys *n, struct sc_error *err)
{
  static const struct nsys_table table = {"ThreadNames", {"globalTid", "nameId"}, 2};
  struct nsys_rows rows;
  bool more = false;
  enum sc_status status = nsys_rows_open(&n->db, &table, NULL, &rows, err);
  while (status == SC_OK && (status = nsys_rows_next(&rows, &more, err)) == SC_OK && more) {
    int64_t global, id;
    uint32_t thread;
    const char *text;
    size_t length;
    if (!nsys_integer(&rows, 0, &global) || !nsys_integer(&rows, 1, &id) || !nsys_map_get(&n->threads, global, &thread))
      continue;
    status = nsys_string(&n->strings, id, &text, &length, err);
    if (text)
      sc_feed_thread_name(n->feed, thread, text, length);
  }
  nsys_rows_close(&rows);
  return status;
}

static enum sc_status name_processes(struct nsys *n, struct sc_error *err)
{
  static const struct nsys_table table = {"PROCESSES", {"globalPid", "name"}, 2};
  struct nsys_rows rows;
  bool more = false;
  enum sc_status status = nsys_rows_open(&n->db, &table, NULL, &rows, err);
  while (status == SC_OK && (status = nsys_rows_next(&rows, &more, err)) == SC_OK && more) {
    int64_t global;
    uint32_t process;
    size_t length;
    const char *text = nsys_text(&rows, 1, &length);
    if (text && nsys_integer(&rows, 0, &global) && nsys_map_get(&n->processes, global >> PID_BITS, &process))
      sc_feed_fact(n->feed, process, SC_FEED_COMMAND, text, length);
  }
  nsys_rows_close(&rows);
  return status;
}

/* The command that was profiled: the process's, if a single one used CUDA. */
static enum sc_status read_command(struct nsys *n, struct sc_error *err)
{
  static const struct nsys_table table = {"META_DATA_CAPTURE", {"name", "value"}, 2};
  static const char prefix[] = "PROCESS_0:";
  struct nsys_rows rows;
  struct sc_buf command = {0};
  uint32_t process = 0;
  bool more = false;
  enum sc_status status = nsys_rows_open(&n->db, &table, NULL, &rows, err);
  while (status == SC_OK && (status = nsys_rows_next(&rows, &more, err)) == SC_OK && more) {
    size_t length, value_length;
    const char *name = nsys_text(&rows, 0, &length), *value = nsys_text(&rows, 1, &value_length);
    if (!name || !value || length < sizeof prefix || memcmp(name, prefix, sizeof prefix - 1) != 0 ||
        command.len > 65536)
      continue;
    name += sizeof prefix - 1;
    if (strcmp(name, "COMMAND") == 0 || (strncmp(name, "ARGUMENT_", 9) == 0 && command.len)) {
      if (command.len)
        sc_buf_puts(&command, " ");
      sc_buf_append(&command, value, value_length);
    }
  }
  nsys_rows_close(&rows);
  if (status == SC_OK && command.failed)
    status = sc_error_no_memory(err);
  if (status == SC_OK && command.len && only_process(n, &process))
    sc_feed_fact(n->feed, process, SC_FEED_COMMAND, command.data, command.len);
  sc_buf_free(&command);
  return status;
}

/* The first row's text of a column, where another column is `key` (NULL: any row). The caller frees *out; NULL: none.
 */
static enum sc_status read_text(struct nsys *n, const struct nsys_table *table, const char *key, char **out,
                                struct sc_error *err)
{
  struct nsys_rows rows;
  bool more = false;
  *out = NULL;
  enum sc_status status = nsys_rows_open(&n->db, table, NULL, &rows, err);
  while (status == SC_OK && !*out && (status = nsys_rows_next(&rows, &more, err)) == SC_OK && more) {
    size_t length, name_length;
    const char *value = nsys_text(&rows, 0, &length), *name = key ? nsys_text(&rows, 1, &name_length) : NULL;
    if (!value || (key && (!name || strcmp(name, key) != 0)))
      continue;
    *out = sc_strndup(value, length);
    if (!*out)
      status = sc_error_no_memory(err);
  }
  nsys_rows_close(&rows);
  return status;
}

static bool set_once(struct sc_findings *findings, const char *group, const char *key, const char *value)
{
  return !value || sc_findings_field(findings, group, key) || sc_findings_text(findings, group, key, value);
}

/* The time of day at the session's start. */
static enum sc_status read_clock(struct nsys *n, struct sc_error *err)
{
  static const struct nsys_table table = {"TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, 0};
  struct nsys_rows rows;
  bool more = false;
  int64_t real = 0;
  enum sc_status status = nsys_rows_open(&n->db, &table, NULL, &rows, err);
  if (status == SC_OK)
    status = nsys_rows_next(&rows, &more, err);
  if (more && !nsys_integer(&rows, 0, &real))
    real = 0;
  nsys_rows_close(&rows);
  sc_feed_clock(n->feed, (uint64_t)TIME_BIAS, real > 0 ? (uint64_t)real : 0);
  return status;
}

static enum sc_status describe(struct nsys *n, struct sc_error *err)
{
  static const struct nsys_table gpus = {"TARGET_INFO_GPU", {"name"}, 0};
  static const struct nsys_table system = {"TARGET_INFO_SYSTEM_ENV", {"value", "name"}, 0};
  char *gpu = NULL, *host = NULL, *driver = NULL;
  enum sc_status status = read_clock(n, err);
  if (status == SC_OK)
    status = name_threads(n, err);
  if (status == SC_OK)
    status = name_processes(n, err);
  if (status == SC_OK)
    status = read_command(n, err);
  if (status == SC_OK)
    status = read_text(n, &gpus, NULL, &gpu, err);
  if (status == SC_OK)
    status = read_text(n, &system, "Hostname", &host, err);
  if (status == SC_OK)
    status = read_text(n, &system, "NvDriverVersion", &driver, err);
  for (size_t i = 0; status == SC_OK && host && i < n->processes.count; ++i)
    sc_feed_fact(n->feed, n->processes.values[i], SC_FEED_HOST, host, strlen(host));
  if (status == SC_OK &&
      (!set_once(n->findings, "device", "name", gpu) || !set_once(n->findings, "host", "driver", driver)))
    status = sc_error_no_memory(err);
  free(gpu);
  free(host);
  free(driver);
  return status;
}

/* ---- what the trace cannot tell
 * ---------------------------------------------------------------------------------------- */

static void lacks(struct sc_buf *text, const char *what) { sc_buf_printf(text, "%s%s", text->len ? "; " : "", what); }

static bool warn_missing(const struct nsys *n)
{
  struct sc_feed_totals totals = sc_feed_totals(n->feed);
  struct sc_buf text = {0};
  bool ok = true;
  if (totals.calls == 0 && n->nameless == 0)
    return sc_findings_warn(n->findings,
                            "%s: no CUDA API calls were recorded there (nsys profile --trace=cuda,nvtx "
                            "records them).",
                            n->db.path);
  if (n->copies && totals.copies == 0)
    lacks(&text, "copies on the device (whether a copy blocked, and for what memory, is not known)");
  if (n->stream_syncs && totals.syncs == 0)
    lacks(&text,
          "synchronisations (which stream one was for is not known: none is taken to be part of the copy before it)");
  if (n->frees && !n->has_frees)
    lacks(&text, "memory use (frees of NULL and of pool memory, which do not wait, cannot be told from others: nsys "
                 "profile --cuda-memory-usage=true records it)");
  if (n->queries && !n->has_status)
    lacks(&text, "what calls returned (failed calls and poll waits cannot be seen)");
  if (!n->has_ranges)
    lacks(&text, "NVTX ranges (nothing can be given to steps or layers)");
  if (!n->has_chains)
    lacks(&text,
          "call chains (places are told by range and call alone: nsys profile --cudabacktrace=all records them)");
  if (text.len)
    ok = !text.failed && sc_findings_warn(n->findings, "%s: not recorded there: %s.", n->db.path, text.data);
  if (ok && n->nameless)
    ok = sc_findings_warn(n->findings,
                          "%s: %" PRIu64 " calls have no name there (StringIds lacks it) and are not counted.",
                          n->db.path, n->nameless);
  if (ok && n->unplaced)
    ok = sc_findings_warn(n->findings,
                          "%s: %" PRIu64
                          " pieces of device work name no process, and several processes made calls: they "
                          "were left out.",
                          n->db.path, n->unplaced);
  sc_buf_free(&text);
  return ok;
}

/* ---- all of it
 * ------------------------------------------------------------------------------------------------------------ */

static enum sc_status check_export(const struct nsys *n, struct sc_error *err)
{
  static const struct nsys_table any[] = {{"META_DATA_EXPORT", {"name"}, 0},
                                          {"CUPTI_ACTIVITY_KIND_RUNTIME", {"start"}, 0},
                                          {"NVTX_EVENTS", {"start"}, 0},
                                          {"TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, 0}};
  for (size_t i = 0; i < SC_COUNTOF(any); ++i) {
    struct nsys_rows rows;
    enum sc_status status = nsys_rows_open(&n->db, &any[i], NULL, &rows, err);
    bool there = rows.statement != NULL;
    nsys_rows_close(&rows);
    if (status != SC_OK || there)
      return status;
  }
  return sc_error_set(err, SC_ERR_FORMAT,
                      "'%s' is an SQLite database, but no Nsight Systems export: it has none of the tables of one. "
                      "Export a report by: nsys export --type sqlite -o REPORT.sqlite REPORT.nsys-rep",
                      n->db.path);
}

static enum sc_status read_all(struct nsys *n, struct sc_error *err)
{
  enum sc_status status = check_export(n, err);
  if (status == SC_OK)
    status = nsys_strings_open(&n->db, &n->strings, err);
  if (status == SC_OK)
    status = load_enums(n, err);
  if (status == SC_OK)
    status = read_chains(n, err);
  for (size_t i = 0; status == SC_OK && i < SC_COUNTOF(call_tables); ++i)
    status = read_calls(n, &call_tables[i], err);
  for (size_t i = 0; status == SC_OK && i < SC_COUNTOF(work_tables); ++i)
    status = read_work(n, &work_tables[i], err);
  if (status == SC_OK)
    status = read_nvtx(n, true, err);
  if (status == SC_OK)
    status = read_nvtx(n, false, err);
  return status == SC_OK ? describe(n, err) : status;
}

/* Whose the rows were that were left out is not known: each process of the file may lack them. */
static void tell_losses(const struct nsys *n, size_t first)
{
  const uint64_t lost = n->lost + n->nameless;
  n->findings->lost_records += lost;
  for (size_t i = first; i < n->findings->process_count; ++i)
    n->findings->processes[i].lost_records += lost;
}

enum sc_status sc_import_nsys(const char *path, const struct sc_analysis_options *options, struct sc_findings *findings,
                              struct sc_error *err)
{
  struct nsys n = {.findings = findings, .feed = sc_feed_new()};
  const size_t before = findings->process_count;
  enum sc_status status = n.feed ? nsys_open(path, &n.db, err) : sc_error_no_memory(err);
  if (n.feed)
    sc_feed_options(n.feed, options);
  if (status == SC_OK)
    status = read_all(&n, err);
  if (status == SC_OK)
    status = sc_feed_finish(n.feed, path, options, findings, err);
  if (status == SC_OK)
    tell_losses(&n, before);
  if (status == SC_OK && !warn_missing(&n))
    status = sc_error_no_memory(err);
  nsys_strings_close(&n.strings);
  nsys_close(&n.db);
  sc_feed_free(n.feed);
  struct nsys_map *maps[] = {&n.memory_kinds, &n.copy_kinds, &n.event_types, &n.memory_operations,
                             &n.name_index,   &n.texts,      &n.threads,     &n.processes,
                             &n.with_calls,   &n.domains,    &n.chains};
  for (size_t i = 0; i < SC_COUNTOF(maps); ++i)
    nsys_map_free(maps[i]);
  free(n.names);
  return status;
}
