/* SPDX-License-Identifier: Apache-2.0
 * Writes the parts of PyTorch profiler traces that tests are made of. */
#include "import/kineto/kineto_trace.h"

#include <stdio.h>
#include <string.h>

ptrdiff_t text_read(void *context, void *bytes, size_t size, struct sc_error *err)
{
  struct text_source *s = context;
  size_t n = s->size - s->at < s->step ? s->size - s->at : s->step;
  (void)err;
  if (n > size)
    n = size;
  memcpy(bytes, s->bytes + s->at, n);
  s->at += n;
  return (ptrdiff_t)n;
}

void trace_open(struct trace *t) { *t = (struct trace){.now = 1000, .before = "", .after = ""}; }

void trace_close(struct trace *t)
{
  sc_buf_free(&t->events);
  sc_findings_free(t->findings);
  *t = (struct trace){0};
}

void event_put(struct trace *t, const char *format, ...)
{
  char text[70000];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  assert_true(n > 0 && (size_t)n < sizeof text);
  sc_buf_printf(&t->events, "%s\n", t->events.len ? "," : "");
  sc_buf_append(&t->events, text, (size_t)n);
}

void call_put(struct trace *t, const char *name)
{
  event_put(t,
            "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"%s\", \"pid\": 7, \"tid\": 7, \"ts\": %.3f, "
            "\"dur\": 5.000, \"args\": {\"cbid\": 1, \"correlation\": %llu}}",
            name, t->now, (unsigned long long)++t->corr);
  t->now += 10;
}

void device_put(struct trace *t, const char *category, const char *name, int stream, int bytes)
{
  event_put(t,
            "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d, \"ts\": %.3f, \"dur\": 2.0, "
            "\"args\": {\"device\": 0, \"context\": 1, \"stream\": %d, \"correlation\": %llu, \"bytes\": %d}}",
            category, name, stream, t->now - 5, stream, (unsigned long long)t->corr, bytes);
}

void sync_put(struct trace *t, const char *kind, int stream)
{
  event_put(
      t,
      "{\"ph\": \"X\", \"cat\": \"cuda_sync\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d, \"ts\": %.3f, \"dur\": 1, "
      "\"args\": {\"cuda_sync_kind\": \"%s\", \"stream\": %d, \"correlation\": %llu, \"device\": 0, \"context\": 1}}",
      kind, stream, t->now - 8, kind, stream, (unsigned long long)t->corr);
}

void host_put(struct trace *t, const char *category, const char *name, double from)
{
  event_put(t,
            "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 7, \"tid\": 7, \"ts\": %.3f, \"dur\": %.3f, "
            "\"args\": {}}",
            category, name, from, t->now - from);
}

void text_try(const char *text, size_t size, size_t step, struct trace *t, enum sc_status *status, struct sc_error *err)
{
  struct text_source source = {.bytes = text, .size = size, .step = step};
  sc_findings_free(t->findings);
  t->findings = sc_findings_new();
  assert_non_null(t->findings);
  *status = sc_kineto_read(text_read, &source, "folder/trace.json", t->options, t->findings, err);
  t->process = *status == SC_OK && t->findings->process_count ? &t->findings->processes[0] : NULL;
}

enum sc_status trace_try(struct trace *t, struct sc_error *err)
{
  struct sc_buf text = {0};
  enum sc_status status;
  sc_buf_printf(&text, "{%s\"traceEvents\": [%s\n]%s}\n", t->before, t->events.data ? t->events.data : "", t->after);
  assert_false(text.failed);
  text_try(text.data, text.len, 4096, t, &status, err);
  sc_buf_free(&text);
  return status;
}

void trace_read(struct trace *t)
{
  struct sc_error err = {0};
  enum sc_status status = trace_try(t, &err);
  if (status != SC_OK)
    fail_msg("%s", err.message);
  assert_non_null(t->process);
}

bool warned(const struct trace *t, const char *part)
{
  for (size_t i = 0; i < t->findings->warning_count; ++i) {
    if (strstr(t->findings->warnings[i], part))
      return true;
  }
  return false;
}

void expect_counts(const struct trace *t, uint64_t syncs, uint64_t explicit_, uint64_t copy, uint64_t pageable,
                   uint64_t uncertain)
{
  const struct sc_counts *c = &t->process->counts;
  assert_int_equal(c->by_class[SC_CLASS_EXPLICIT], explicit_);
  assert_int_equal(c->by_class[SC_CLASS_COPY], copy);
  assert_int_equal(c->by_class[SC_CLASS_PAGEABLE], pageable);
  assert_int_equal(c->syncs, syncs);
  assert_int_equal(c->uncertain, uncertain);
}
