/* SPDX-License-Identifier: Apache-2.0
 * Error codes and messages, and the clock. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
  const char *name, *text;
} status_table[] = {
#define SC_STATUS_ROW(name, text) {#name, text},
    SC_STATUS_MAP(SC_STATUS_ROW)
#undef SC_STATUS_ROW
};

const char *sc_status_name(enum sc_status status)
{
  return (size_t)status < SC_COUNTOF(status_table) ? status_table[status].name : "SC_ERR_UNKNOWN";
}

const char *sc_status_text(enum sc_status status)
{
  return (size_t)status < SC_COUNTOF(status_table) ? status_table[status].text : "unknown error";
}

/* A cut message says so: the reader must not take half a path for a whole one. */
static void mark_cut(struct sc_error *err, int length)
{
  if (length >= (int)sizeof err->message)
    memcpy(err->message + sizeof err->message - 4, "...", 4);
}

enum sc_status sc_error_set(struct sc_error *err, enum sc_status status, const char *format, ...)
{
  if (!err)
    return status;
  err->status = status;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(err->message, sizeof err->message, format, args);
  va_end(args);
  mark_cut(err, length);
  return status;
}

enum sc_status sc_error_no_memory(struct sc_error *err) { return sc_error_set(err, SC_ERR_NOMEM, "out of memory"); }

void sc_error_prefix(struct sc_error *err, const char *format, ...)
{
  if (!err)
    return;
  char old[sizeof err->message], prefix[sizeof err->message];
  memcpy(old, err->message, sizeof old);
  va_list args;
  va_start(args, format);
  vsnprintf(prefix, sizeof prefix, format, args);
  va_end(args);
  size_t used = strnlen(prefix, sizeof prefix - 3); /* room for ": " and the NUL */
  memcpy(err->message, prefix, used);
  mark_cut(err, (int)used + snprintf(err->message + used, sizeof err->message - used, ": %s", old));
}

static uint64_t clock_ns(clockid_t id)
{
  struct timespec now;
  clock_gettime(id, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sc_clock_mono_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
uint64_t sc_clock_real_ns(void) { return clock_ns(CLOCK_REALTIME); }
