/* SPDX-License-Identifier: Apache-2.0
 * A CUPTI of a few functions. Its names come from the real library where that is installed, else from what the test has
 * called. */
#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test_support.h"
#include "tracer/thread.h"

static struct sc_cupti cupti;
static struct sc_watch_table table;
static struct sc_writer *writer;
static char folder[64], path[128];
static struct harness_records now;
static size_t calls_before, ranges_before, notes_before;
static uint32_t last_correlation = 1000;
static int context_object;

/* Context 1 is on device 0, every other one on device 3. */
static int device_of_context(void *context, uint32_t *device) {
  *device = context == &context_object ? 0 : 3;
  return 0;
}

static void find_names(void) {
  static const char *const paths[] = { "libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so",
                                       "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so" };
  for (size_t i = 0; i < SC_COUNTOF(paths) && cupti.callback_name == NULL; i++) {
    void *handle = dlopen(paths[i], RTLD_NOW);
    if (handle != NULL)
      *(void **)&cupti.callback_name = dlsym(handle, "cuptiGetCallbackName");
  }
  if (cupti.callback_name == NULL)
    fail_msg("no libcupti was found to take the names from");
}

void harness_begin(bool late) {
  struct sc_error err = { .status = SC_OK };
  (void)snprintf(folder, sizeof(folder), "/tmp/sc-tracer-XXXXXX");
  if (mkdtemp(folder) == NULL)
    fail_msg("mkdtemp");
  (void)snprintf(path, sizeof(path), "%s/t.sctrace", folder);
  find_names();
  cupti.device_of_context = device_of_context;
  assert_true(sc_threads_prepare());
  if (sc_writer_open(&(struct sc_writer_options){ .path = path, .counts_beyond = true }, &writer, &err) != SC_OK)
    fail_msg("%s", err.message);
  assert_true(sc_watch_build(&table, cupti.callback_name, SC_WATCH_BOTH));
  struct sc_writer_thread *thread = sc_writer_thread_begin(writer);
  for (unsigned domain = 1; domain <= 2; domain++)
    for (uint32_t cbid = 0; cbid < table.count[domain]; cbid++) {
      const char *name = NULL;
      if (table.of_domain[domain][cbid].api != 0 && cupti.callback_name((int)domain, cbid, &name) == 0)
        sc_writer_api(thread, table.of_domain[domain][cbid].api, (uint8_t)domain, cbid,
                      (enum sc_op)table.of_domain[domain][cbid].op, name);
    }
  sc_writer_thread_end(thread);
  sc_callback_prepare(&cupti, &table, writer, late);
  sc_threads_start(writer, NULL);
}

void harness_end(void) {
  assert_true(sc_threads_stop());
  (void)unlink(path);
  (void)rmdir(folder);
}

const char *harness_path(void) { return path; }

void harness_pause(void) {
  assert_true(sc_threads_stop());
  sc_callback_prepare(&cupti, &table, writer, true);
}

void harness_go_on(void) { sc_threads_start(writer, NULL); }

static void callback(const struct harness_call *call, CUpti_ApiCallbackSite site, int *status) {
  static uint64_t slot;
  CUpti_CallbackData data = {
    .callbackSite = site,
    .functionName = call->name,
    .functionParams = call->params,
    .functionReturnValue = status,
    .context = call->context != NULL ? call->context : (void *)&context_object,
    .contextUid = call->context != NULL ? 2 : 1,
    .correlationData = &slot,
    .correlationId = call->correlation,
  };
  sc_callback(NULL, call->domain, call->cbid, &data);
}

void harness_enter(const struct harness_call *call) { callback(call, CUPTI_API_ENTER, NULL); }
void harness_exit(const struct harness_call *call, int status) { callback(call, CUPTI_API_EXIT, &status); }

void harness_resource(uint32_t cbid) {
  CUpti_ResourceData data = { .context = (CUcontext)&context_object };
  sc_callback(NULL, SC_DOMAIN_RESOURCE, cbid, &data);
}

void harness_do(int domain, uint32_t cbid, const char *name, const void *params, int status) {
  struct harness_call call = {
    .domain = domain, .cbid = cbid, .name = name, .params = params, .correlation = ++last_correlation
  };
  harness_enter(&call);
  harness_exit(&call, status);
}

/* ---- reading back ------------------------------------------------------------------------------------ */
static void take_range(struct sc_reader *reader, const struct sc_record_range *range, size_t seen) {
  if (seen < ranges_before)
    return;
  size_t i = now.range_count++;
  const char *name = sc_reader_string(reader, range->name, NULL),
             *domain = sc_reader_string(reader, range->domain, NULL);
  now.ranges[i] = *range;
  (void)snprintf(now.names[i], sizeof(now.names[i]), "%s", name != NULL ? name : "");
  (void)snprintf(now.domains[i], sizeof(now.domains[i]), "%s", domain != NULL ? domain : "");
}

static void read_all(size_t *calls, size_t *ranges, size_t *notes) {
  struct sc_error err = { .status = SC_OK };
  struct sc_reader *reader;
  struct sc_batch batch;
  bool more;
  memset(&now, 0, sizeof(now));
  *calls = *ranges = *notes = 0;
  if (sc_reader_open(path, &reader, &err) != SC_OK)
    fail_msg("%s", err.message);
  while (sc_reader_next(reader, &batch, &more, &err) == SC_OK && more) {
    const struct sc_record_head *head;
    for (size_t offset = 0; (head = sc_batch_next(&batch, &offset)) != NULL;) {
      if (head->kind == SC_RECORD_CALL && (*calls)++ >= calls_before && now.call_count < SC_COUNTOF(now.calls))
        now.calls[now.call_count++] = *(const struct sc_record_call *)(const void *)head;
      if (((head->kind >= SC_RECORD_RANGE_PUSH && head->kind <= SC_RECORD_RANGE_END) ||
           head->kind == SC_RECORD_MARK) &&
          now.range_count < SC_COUNTOF(now.ranges))
        take_range(reader, (const struct sc_record_range *)(const void *)head, (*ranges)++);
      if (head->kind == SC_RECORD_NOTE && (*notes)++ >= notes_before && now.note_count < SC_COUNTOF(now.notes)) {
        const struct sc_record_text *text = (const struct sc_record_text *)(const void *)head;
        now.note_ids[now.note_count] = text->id;
        (void)snprintf(now.notes[now.note_count++], sizeof(now.notes[0]), "%.*s", (int)text->length, text->text);
      }
    }
    now.tail_submissions += batch.tail_submissions;
    now.tail_launches += batch.tail_launches;
  }
  assert_int_equal(err.status, SC_OK);
  now.lost = sc_reader_live(reader)->lost_records;
  struct sc_damage damage;
  sc_reader_damage(reader, &damage);
  if (damage.chunks + damage.records + damage.truncated != 0)
    fail_msg("damaged trace: %s", damage.first);
  sc_reader_close(reader);
}

void harness_mark(void) {
  calls_before = ranges_before = notes_before = 0;
  size_t calls, ranges, notes;
  read_all(&calls, &ranges, &notes);
  calls_before = calls;
  ranges_before = ranges;
  notes_before = notes;
}

const struct harness_records *harness_read(void) {
  size_t calls, ranges, notes;
  read_all(&calls, &ranges, &notes);
  return &now;
}

struct sc_record_call harness_one(void) {
  const struct harness_records *records = harness_read();
  if (records->call_count != 1)
    fail_msg("%zu calls were recorded, not 1", records->call_count);
  return records->calls[0];
}

const char *harness_api(const struct sc_record_call *call) {
  for (unsigned domain = 1; domain <= 2; domain++)
    for (uint32_t cbid = 0; cbid < table.count[domain]; cbid++) {
      const char *name = NULL;
      if (table.of_domain[domain][cbid].api == SC_CALL_API(call) && cupti.callback_name((int)domain, cbid, &name) == 0)
        return name;
    }
  return "";
}
