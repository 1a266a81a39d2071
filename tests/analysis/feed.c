/* SPDX-License-Identifier: Apache-2.0
 * Feeds the engine by hand. */
#include "feed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void feed_open_as(struct feed *f, const struct sc_analysis_options *options)
{
  *f = (struct feed){.now_ns = 1000};
  f->analysis = sc_analysis_new(options);
  assert_non_null(f->analysis);
  feed_thread(f, 1);
}

void feed_open_with(struct feed *f, size_t max_ranges)
{
  feed_open_as(f, &(struct sc_analysis_options){.max_ranges = max_ranges});
}

void feed_open(struct feed *f) { feed_open_with(f, 0); }

static struct sc_record_head take_head(struct feed *f, uint16_t kind)
{
  struct sc_record_head head = {
      .kind = kind, .units = 1, .submissions = f->launches + f->others, .launches = f->launches};
  f->launches = f->others = 0;
  return head;
}

void feed_thread(struct feed *f, uint64_t serial)
{
  if (f->launches + f->others)
    sc_analysis_tail(f->analysis, f->thread, f->launches + f->others, f->launches);
  f->launches = f->others = 0;
  f->thread = sc_analysis_thread(f->analysis, serial, (uint32_t)(1000 + serial));
  assert_non_null(f->thread);
}

void feed_launches(struct feed *f, uint32_t count) { f->launches += count; }
void feed_submissions(struct feed *f, uint32_t count) { f->others += count; }

static uint32_t api_id(struct feed *f, const char *name)
{
  for (uint32_t i = 0; i < f->name_count; ++i) {
    if (strcmp(f->names[i], name) == 0)
      return i + 1;
  }
  assert_true(f->name_count < SC_COUNTOF(f->names));
  f->names[f->name_count] = name;
  assert_true(sc_analysis_api(f->analysis, ++f->name_count, SC_OP_NONE, name));
  return f->name_count;
}

static uint32_t string_id(struct feed *f, const char *text)
{
  if (!text)
    return 0;
  for (uint32_t i = 0; i < f->string_count; ++i) {
    if (strcmp(f->strings[i], text) == 0)
      return i + 1;
  }
  assert_true(f->string_count < SC_COUNTOF(f->strings));
  f->strings[f->string_count] = text;
  assert_true(sc_analysis_string(f->analysis, ++f->string_count, text, strlen(text)));
  return f->string_count;
}

void feed_call(struct feed *f, struct fed_call call)
{
  bool query = strstr(call.name, "Query") != NULL;
  uint32_t device = call.device ? call.device - 1u : 255u;
  struct sc_record_call record = {
      .head = take_head(f, SC_RECORD_CALL),
      .start_ns = f->now_ns,
      .duration_ns = call.duration_ns,
      .stream = call.stream,
      .object = call.object,
      .bytes = query || call.bytes || call.empty ? call.bytes : 64,
      .api = api_id(f, call.name) | device << 16 | (uint32_t)call.flags << 24,
      .status = call.status,
      .direction = call.direction,
      .memory = (uint8_t)(call.dst | call.src << 4),
  };
  f->now_ns += call.duration_ns + 10;
  sc_analysis_record(f->analysis, f->thread, &record.head);
}

static void feed_range_record(struct feed *f, enum sc_record_kind kind, uint64_t handle, const char *domain,
                              const char *name)
{
  struct sc_record_range record = {.head = take_head(f, (uint16_t)kind), .time_ns = f->now_ns, .handle = handle};
  record.name = string_id(f, name);
  record.domain = string_id(f, domain);
  f->now_ns += 10;
  sc_analysis_record(f->analysis, f->thread, &record.head);
}

void feed_push(struct feed *f, const char *domain, const char *name)
{
  feed_range_record(f, SC_RECORD_RANGE_PUSH, 0, domain, name);
}
void feed_pop(struct feed *f, const char *domain) { feed_range_record(f, SC_RECORD_RANGE_POP, 0, domain, NULL); }
void feed_start(struct feed *f, uint64_t handle, const char *domain, const char *name)
{
  feed_range_record(f, SC_RECORD_RANGE_START, handle, domain, name);
}
void feed_stop(struct feed *f, uint64_t handle) { feed_range_record(f, SC_RECORD_RANGE_END, handle, NULL, NULL); }

void feed_end(struct feed *f)
{
  struct sc_error err = {0};
  feed_thread(f, 1); /* hands in what no record carried */
  f->findings = sc_findings_new();
  assert_non_null(f->findings);
  f->process = sc_findings_process(f->findings);
  assert_non_null(f->process);
  f->process->ended_cleanly = f->whole;
  f->process->trace_start_ns = f->whole;
  if (sc_analysis_finish(f->analysis, NULL, f->process, f->findings, &err) != SC_OK)
    fail_msg("%s", err.message);
}

void feed_close(struct feed *f)
{
  sc_findings_free(f->findings);
  sc_analysis_free(f->analysis);
}

const struct sc_range_findings *feed_range(const struct feed *f, const char *path)
{
  for (size_t i = 0; i < f->process->range_count; ++i) {
    if (strcmp(f->process->ranges[i].path, path) == 0)
      return &f->process->ranges[i];
  }
  fail_msg("no range \"%s\"", path);
  return NULL;
}

bool feed_warned(const struct feed *f, const char *text)
{
  for (size_t i = 0; i < f->findings->warning_count; ++i) {
    if (strstr(f->findings->warnings[i], text))
      return true;
  }
  return false;
}
