/* SPDX-License-Identifier: Apache-2.0
 * Growing buffers, arrays, and text for people. */
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for n more bytes and a NUL. */
static bool buf_reserve(struct sc_buf *buf, size_t n)
{
  if (buf->failed || n >= SIZE_MAX / 2 - buf->len) {
    buf->failed = true;
    return false;
  }
  size_t need = buf->len + n + 1;
  if (need <= buf->cap)
    return true;
  size_t cap = buf->cap ? buf->cap : 64;
  while (cap < need)
    cap *= 2;
  char *data = realloc(buf->data, cap);
  if (!data) {
    buf->failed = true;
    return false;
  }
  buf->data = data;
  buf->cap = cap;
  return true;
}

void sc_buf_append(struct sc_buf *buf, const void *bytes, size_t n)
{
  if (!buf_reserve(buf, n))
    return;
  if (n)
    memcpy(buf->data + buf->len, bytes, n);
  buf->len += n;
  buf->data[buf->len] = '\0';
}

void sc_buf_puts(struct sc_buf *buf, const char *text) { sc_buf_append(buf, text, strlen(text)); }

static void buf_vprintf(struct sc_buf *buf, const char *format, va_list args)
{
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  if (length < 0)
    buf->failed = true;
  else if (buf_reserve(buf, (size_t)length)) {
    vsnprintf(buf->data + buf->len, (size_t)length + 1, format, again);
    buf->len += (size_t)length;
  }
  va_end(again);
}

void sc_buf_printf(struct sc_buf *buf, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  buf_vprintf(buf, format, args);
  va_end(args);
}

void sc_buf_free(struct sc_buf *buf)
{
  free(buf->data);
  *buf = (struct sc_buf){0};
}

void *sc_calloc_array(size_t count, size_t size) { return calloc(count ? count : 1, size); }

void *sc_array_push(void *array, size_t *count, size_t *capacity, size_t size)
{
  void *data;
  memcpy(&data, array, sizeof data); /* array is the address of some T*: read it without aliasing rules in the way */
  if (*count == *capacity) {
    size_t cap = *capacity ? *capacity * 2 : 8;
    if (cap < *capacity || cap > SIZE_MAX / size)
      return NULL;
    data = realloc(data, cap * size);
    if (!data)
      return NULL;
    memcpy(array, &data, sizeof data);
    *capacity = cap;
  }
  void *element = (char *)data + *count * size;
  memset(element, 0, size);
  ++*count;
  return element;
}

char *sc_strdup(const char *text) { return text ? strdup(text) : NULL; }

char *sc_strndup(const char *text, size_t n) { return text ? strndup(text, n) : NULL; }

char *sc_asprintf(const char *format, ...)
{
  struct sc_buf buf = {0};
  va_list args;
  va_start(args, format);
  buf_vprintf(&buf, format, args);
  va_end(args);
  if (buf.failed) {
    sc_buf_free(&buf);
    return NULL;
  }
  return buf.data;
}

bool sc_match(const char *pattern, const char *text)
{
  /* One remembered star is enough: a later one makes an earlier one's choice final. */
  const char *star = NULL, *retry = NULL;
  while (*text) {
    if (*pattern == '*') {
      star = pattern++;
      retry = text;
    } else if (*pattern == '?' || *pattern == *text) {
      ++pattern;
      ++text;
    } else if (star) {
      pattern = star + 1;
      text = ++retry;
    } else {
      return false;
    }
  }
  while (*pattern == '*')
    ++pattern;
  return !*pattern;
}

char *sc_format_time_us(double us, char buf[static SC_TIME_TEXT])
{
  static const struct {
    double limit, scale;
    const char *unit;
  } units[] = {{0.9995, 1e3, "ns"}, {999.5, 1.0, "us"}, {999.5e3, 1e-3, "ms"}, {INFINITY, 1e-6, "s"}};
  if (isnan(us)) {
    snprintf(buf, SC_TIME_TEXT, "not measured");
    return buf;
  }
  if (isinf(us) || us == 0) {
    snprintf(buf, SC_TIME_TEXT, us == 0 ? "0 us" : us > 0 ? "inf" : "-inf");
    return buf;
  }
  size_t i = 0;
  while (i + 1 < SC_COUNTOF(units) && fabs(us) >= units[i].limit)
    ++i;
  double value = us * units[i].scale, size = fabs(value);
  int digits = i == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  snprintf(buf, SC_TIME_TEXT, size < 1e9 ? "%.*f %s" : "%.*e %s", digits, value, units[i].unit);
  return buf;
}

size_t sc_utf8_length(const char *text, size_t n)
{
  const unsigned char *s = (const unsigned char *)text;
  if (n == 0)
    return 0;
  if (s[0] < 0x80)
    return 1;
  size_t length = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
  if (length == 0 || length > n)
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  /* Overlong forms, surrogates, beyond U+10FFFF. */
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
      (s[0] == 0xf4 && s[1] > 0x8f))
    return 0;
  return length;
}

bool sc_starts_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

char *sc_next_line(char **rest)
{
  char *line = *rest;
  if (!line || !*line)
    return NULL;
  char *end = strchr(line, '\n');
  if (end)
    *end++ = '\0';
  *rest = end;
  return line;
}

/* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069: they turn the direction of the text around them, or break its
 * line. */
static bool steers_text(const char *text, size_t length)
{
  const unsigned char *s = (const unsigned char *)text;
  if (length != 3 || s[0] != 0xe2)
    return false;
  if (s[1] == 0x80)
    return s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae);
  return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9;
}

void sc_buf_put_printable(struct sc_buf *buf, const char *text, size_t n)
{
  for (size_t i = 0; i < n;) {
    size_t length = sc_utf8_length(text + i, n - i);
    unsigned char first = (unsigned char)text[i];
    /* C1 control characters (U+0080..U+009F) steer some terminals too. */
    bool control = first < 0x20 || first == 0x7f || (length == 2 && first == 0xc2 && (unsigned char)text[i + 1] < 0xa0);
    control |= steers_text(text + i, length);
    if (length == 0 || control) {
      for (size_t k = 0; k < (length ? length : 1); ++k)
        sc_buf_printf(buf, "\\x%02x", (unsigned char)text[i + k]);
      i += length ? length : 1;
    } else {
      sc_buf_append(buf, text + i, length);
      i += length;
    }
  }
}

void sc_buf_put_valid(struct sc_buf *buf, const char *text, size_t n)
{
  static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
  for (size_t i = 0; i < n;) {
    size_t length = sc_utf8_length(text + i, n - i);
    if (length)
      sc_buf_append(buf, text + i, length);
    else
      sc_buf_puts(buf, replacement);
    i += length ? length : 1;
  }
}

/* Entities where a backslash does not help: HTML, table cells and math are found after backslashes are resolved. */
static const char *markdown_byte(char byte)
{
  switch (byte) {
  case '\\': return "\\\\";
  case '`': return "\\`";
  case '*': return "\\*";
  case '_': return "\\_";
  case '[': return "\\[";
  case ']': return "\\]";
  case '~': return "\\~";
  case '#': return "\\#";
  case '!': return "\\!";
  case '<': return "&lt;";
  case '>': return "&gt;";
  case '&': return "&amp;";
  case '|': return "&#124;";
  case '$': return "&#36;";
  default: return NULL;
  }
}

/* Outside of code a space without width keeps mentions and references apart. */
const char *sc_markdown_escape(const char *text, size_t at, bool in_code)
{
  const char *here = text + at;
  if (here[0] == ':' && here[1] == '/' && here[2] == '/')
    return "&#58;";
  if (here[0] == '.' && at >= 3 && strncasecmp(here - 3, "www", 3) == 0)
    return "&#46;";
  if (here[0] == '@')
    return in_code ? "&#64;" : "@&#8203;";
  if (here[0] == '#' && !in_code && here[1] >= '0' && here[1] <= '9')
    return "\\#&#8203;";
  return markdown_byte(here[0]);
}
