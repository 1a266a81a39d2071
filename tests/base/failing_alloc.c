/* SPDX-License-Identifier: Apache-2.0
 * Counts allocations down to the one that fails. */
#include "base/failing_alloc.h"

#include <stdarg.h>

/* The linker's names for the wrapped functions and for the real ones. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
int __real_vasprintf(char **out, const char *format, va_list arguments);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
int __wrap_vasprintf(char **out, const char *format, va_list arguments);

static long left = -1; /* allocations that still succeed; -1: all */
static bool once;      /* after the one that fails, all succeed again */
static bool failed;    /* one did */

void failing_alloc_begin(long succeed, bool only_one)
{
  once = only_one;
  failed = false;
  left = succeed;
}

bool failing_alloc_end(void)
{
  left = -1;
  return failed;
}

static bool fails(void)
{
  if (left < 0)
    return false;
  if (left > 0) {
    --left;
    return false;
  }
  left = once ? -1 : 0;
  failed = true;
  return true;
}

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }
char *__wrap_strdup(const char *text) { return fails() ? NULL : __real_strdup(text); }
char *__wrap_strndup(const char *text, size_t size) { return fails() ? NULL : __real_strndup(text, size); }
int __wrap_vasprintf(char **out, const char *format, va_list arguments)
{
  return fails() ? -1 : __real_vasprintf(out, format, arguments);
}

void *failing_malloc(size_t size) { return __wrap_malloc(size); }
