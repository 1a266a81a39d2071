/* SPDX-License-Identifier: Apache-2.0
 * The JSON scanner: a window over the text that slides as tokens are taken. A token is always whole in the window, or,
 * when a string is longer than anybody needs, its beginning is in a buffer of its own. */
#include "import/json_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW (1u << 20)
#define WORD_MAX 512 /* bytes of a number */

enum state {
  WANT_VALUE,   /* the outermost one, or after a colon */
  WANT_ELEMENT, /* of an array, or its end */
  WANT_KEY,     /* of an object, or its end */
  WANT_COMMA,   /* or an end */
  WANT_NOTHING, /* after the outermost value */
};

struct sc_json {
  sc_json_read *read;
  void *context;
  unsigned char *window; /* [WINDOW + 8]: the 8 bytes let strings be searched a word at a time */
  unsigned char *at, *end;
  uint64_t base; /* offset of the window's first byte */
  char *cut;     /* [SC_JSON_TEXT_MAX] once it is needed */
  enum state state;
  uint32_t depth;
  uint64_t arrays[SC_JSON_DEPTH / 64]; /* which of the open ones are arrays */
  bool begun, failed, ended, eof;
  struct sc_error error;
};

struct sc_json *sc_json_new(sc_json_read *read, void *context)
{
  struct sc_json *j = calloc(1, sizeof *j);
  if (!j)
    return NULL;
  j->window = malloc(WINDOW + 8);
  if (!j->window) {
    free(j);
    return NULL;
  }
  j->at = j->end = j->window;
  memset(j->end, 0, 8);
  j->read = read;
  j->context = context;
  j->state = WANT_VALUE;
  return j;
}

void sc_json_free(struct sc_json *j)
{
  if (!j)
    return;
  free(j->window);
  free(j->cut);
  free(j);
}

uint32_t sc_json_depth(const struct sc_json *j) { return j->depth; }
uint64_t sc_json_offset(const struct sc_json *j) { return j->base + (uint64_t)(j->at - j->window); }
bool sc_json_ended(const struct sc_json *j) { return j->ended; }

enum sc_status sc_json_error(const struct sc_json *j, struct sc_error *err)
{
  if (!j->failed)
    return SC_OK;
  if (err)
    *err = j->error;
  return j->error.status;
}

/* ---- failure ------------------------------------------------------------------------------------ */

static enum sc_json_kind SC_PRINTF(2, 3) fail(struct sc_json *j, const char *format, ...)
{
  char what[256];
  va_list args;
  if (j->failed)
    return SC_JSON_FAIL;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  j->failed = true;
  sc_error_set(&j->error, SC_ERR_FORMAT, "at byte %" PRIu64 ": %s", sc_json_offset(j), what);
  return SC_JSON_FAIL;
}

static enum sc_json_kind fail_ended(struct sc_json *j, const char *where)
{
  if (!j->failed)
    j->ended = true;
  return fail(j, "the text ends %s", where);
}

static enum sc_json_kind fail_found(struct sc_json *j, const char *expected)
{
  unsigned char c = *j->at;
  if (c >= 0x20 && c < 0x7f)
    return fail(j, "expected %s, found '%c'", expected, c);
  return fail(j, "expected %s, found the byte 0x%02x", expected, c);
}

/* ---- the window --------------------------------------------------------------------------------- */

/* Gets more bytes behind those from `keep` on, which move to the front. False: there are none, or reading failed. */
static bool refill(struct sc_json *j, const unsigned char *keep)
{
  size_t kept = (size_t)(j->end - keep);
  if (j->failed || j->eof)
    return false;
  j->base += (uint64_t)(keep - j->window);
  memmove(j->window, keep, kept);
  j->at = j->window + (j->at - keep);
  j->end = j->window + kept;
  ptrdiff_t got = j->read(j->context, j->end, WINDOW - kept, &j->error);
  if (got < 0) {
    j->failed = true;
    if (j->error.status == SC_OK)
      j->error.status = SC_ERR_IO;
    return false;
  }
  j->eof = got == 0;
  j->end += got;
  memset(j->end, 0, 8);
  return got > 0;
}

/* To the next byte that is no white space. False at the end. */
static bool skip_space(struct sc_json *j)
{
  for (;;) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t'))
      ++j->at;
    if (j->at < j->end)
      return true;
    if (!refill(j, j->at))
      return false;
  }
}

/* ---- strings and words -------------------------------------------------------------------------- */

#define EACH(byte) (0x0101010101010101u * (byte))
#define HAS_ZERO(word) (((word)-EACH(1)) & ~(word)&EACH(0x80))

/* The first quote or backslash from p on, or end. Reads up to 7 bytes past end. */
static unsigned char *find_special(unsigned char *p, const unsigned char *end)
{
  while (p < end) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    uint64_t found = HAS_ZERO(word ^ EACH((uint64_t)'"')) | HAS_ZERO(word ^ EACH((uint64_t)'\\'));
    if (found) {
      p += __builtin_ctzll(found) / 8; /* little-endian; the lowest marked byte is a true one */
      return p < end ? p : (unsigned char *)end;
    }
    p += sizeof word;
  }
  return (unsigned char *)end;
}

static bool keep_beginning(struct sc_json *j, const unsigned char *start)
{
  if (!j->cut)
    j->cut = malloc(SC_JSON_TEXT_MAX);
  if (!j->cut) {
    j->failed = true;
    sc_error_no_memory(&j->error);
    return false;
  }
  memcpy(j->cut, start, SC_JSON_TEXT_MAX);
  return true;
}

/* j->at is behind the opening quote; afterwards behind the closing one. The text is from *start to *stop in the window
 * unless it is cut. */
static bool scan_string(struct sc_json *j, bool wanted, unsigned char **start, unsigned char **stop, bool *escaped,
                        bool *cut)
{
  size_t from = (size_t)(j->at - j->window); /* of what must stay in the window */
  unsigned char *p = j->at;
  *escaped = *cut = false;
  for (;;) {
    p = find_special(p, j->end);
    if (p < j->end && *p == '"')
      break;
    if (p < j->end && p + 1 < j->end) {
      *escaped = true;
      p += 2;
      continue;
    }
    /* More is needed: for the end, or for what follows a backslash. */
    bool backslash = p < j->end;
    unsigned char *keep = j->window + from;
    if (!wanted || *cut || p - keep >= SC_JSON_TEXT_MAX) {
      if (wanted && !*cut && !keep_beginning(j, keep))
        return false;
      *cut = true;
      keep = p;
    }
    j->at = p;
    if (!refill(j, keep)) {
      if (backslash)
        j->at = j->end;
      fail_ended(j, "inside a string");
      return false;
    }
    from = 0;
    p = j->at;
  }
  *start = j->window + from;
  *stop = p;
  j->at = p + 1;
  if (wanted && !*cut && p - *start > SC_JSON_TEXT_MAX) {
    *cut = true;
    return keep_beginning(j, *start);
  }
  return true;
}

static bool string_token(struct sc_json *j, struct sc_json_token *token)
{
  unsigned char *start, *stop;
  token->offset = sc_json_offset(j);
  ++j->at;
  if (!scan_string(j, true, &start, &stop, &token->escaped, &token->cut))
    return false;
  token->text = token->cut ? j->cut : (char *)start;
  token->length = token->cut ? SC_JSON_TEXT_MAX : (size_t)(stop - start);
  return true;
}

static bool skip_string(struct sc_json *j)
{
  unsigned char *start, *stop;
  bool escaped, cut;
  ++j->at;
  return scan_string(j, false, &start, &stop, &escaped, &cut);
}

static bool in_word(unsigned char c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

static bool is_word(const struct sc_json_token *token, const char *word)
{
  return token->length == strlen(word) && memcmp(token->text, word, token->length) == 0;
}

/* Numbers and the names of constants. */
static enum sc_json_kind word_token(struct sc_json *j, struct sc_json_token *token)
{
  size_t length = 0;
  token->offset = sc_json_offset(j);
  for (;;) {
    while (j->at + length < j->end && length <= WORD_MAX && in_word(j->at[length]))
      ++length;
    if (j->at + length < j->end || length > WORD_MAX)
      break;
    if (!refill(j, j->at)) {
      if (j->failed)
        return SC_JSON_FAIL;
      break;
    }
  }
  if (length == 0)
    return fail_found(j, "a value");
  if (length > WORD_MAX)
    return fail(j, "a number of more than %d digits", WORD_MAX);
  token->text = (char *)j->at;
  token->length = length;
  unsigned char first = *j->at;
  j->at += length;
  if ((first >= '0' && first <= '9') || first == '-' || is_word(token, "NaN") || is_word(token, "nan") ||
      is_word(token, "Infinity") || is_word(token, "inf"))
    return SC_JSON_NUMBER;
  if (is_word(token, "true"))
    return SC_JSON_TRUE;
  if (is_word(token, "false"))
    return SC_JSON_FALSE;
  if (is_word(token, "null"))
    return SC_JSON_NULL;
  j->at -= length;
  return fail(j, "'%.*s%s' is no value", (int)(length < 32 ? length : 32), token->text, length < 32 ? "" : "...");
}

/* ---- structure ---------------------------------------------------------------------------------- */

static bool in_array(const struct sc_json *j)
{
  return j->depth && (j->arrays[(j->depth - 1) / 64] >> (j->depth - 1) % 64 & 1);
}

static bool open_one(struct sc_json *j, bool array)
{
  if (j->depth == SC_JSON_DEPTH) {
    fail(j, "nested deeper than %d", SC_JSON_DEPTH);
    return false;
  }
  uint64_t bit = (uint64_t)1 << j->depth % 64, *word = &j->arrays[j->depth / 64];
  *word = array ? *word | bit : *word & ~bit;
  ++j->depth;
  ++j->at;
  return true;
}

static void value_done(struct sc_json *j) { j->state = j->depth ? WANT_COMMA : WANT_NOTHING; }

static bool close_one(struct sc_json *j)
{
  if (j->depth == 0 || in_array(j) != (*j->at == ']')) {
    fail_found(j, j->depth == 0 ? "a value" : in_array(j) ? "a comma or ']'" : "a comma or '}'");
    return false;
  }
  ++j->at;
  --j->depth;
  value_done(j);
  return true;
}

static enum sc_json_kind close_token(struct sc_json *j)
{
  enum sc_json_kind kind = *j->at == ']' ? SC_JSON_ARRAY_END : SC_JSON_OBJECT_END;
  return close_one(j) ? kind : SC_JSON_FAIL;
}

static enum sc_json_kind value_token(struct sc_json *j, struct sc_json_token *token)
{
  switch (*j->at) {
  case '{':
  case '[': {
    bool array = *j->at == '[';
    token->offset = sc_json_offset(j);
    if (!open_one(j, array))
      return SC_JSON_FAIL;
    j->state = array ? WANT_ELEMENT : WANT_KEY;
    return array ? SC_JSON_ARRAY : SC_JSON_OBJECT;
  }
  case '"':
    if (!string_token(j, token))
      return SC_JSON_FAIL;
    value_done(j);
    return SC_JSON_STRING;
  default: {
    enum sc_json_kind kind = word_token(j, token);
    if (kind != SC_JSON_FAIL)
      value_done(j);
    return kind;
  }
  }
}

/* The colon is taken together with the key. */
static enum sc_json_kind key_token(struct sc_json *j, struct sc_json_token *token)
{
  if (*j->at != '"')
    return fail_found(j, "a key in double quotes");
  if (!string_token(j, token))
    return SC_JSON_FAIL;
  while (j->at == j->end || *j->at != ':') {
    if (j->at == j->end) {
      /* The key has to stay: it moves to the front of the window with what follows it. */
      bool inside = !token->cut;
      unsigned char *keep = inside ? (unsigned char *)token->text : j->at;
      if (j->at - keep > (ptrdiff_t)WINDOW / 2)
        return fail(j, "expected a colon");
      if (!refill(j, keep))
        return fail_ended(j, "after a key");
      if (inside)
        token->text = (char *)j->window;
    } else if (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t') {
      ++j->at;
    } else {
      return fail_found(j, "a colon");
    }
  }
  ++j->at;
  j->state = WANT_VALUE;
  return SC_JSON_KEY;
}

static bool closes(unsigned char c) { return c == '}' || c == ']'; }

/* White space, and the comma if one is due. False: failed, or (kind END) the text is over. */
static bool to_token(struct sc_json *j, enum sc_json_kind *kind)
{
  if (!j->begun) {
    j->begun = true;
    while (j->end - j->at < 3 && refill(j, j->at)) {
    }
    if (j->end - j->at >= 3 && memcmp(j->at, "\xef\xbb\xbf", 3) == 0)
      j->at += 3; /* a byte order mark */
  }
  for (;;) {
    if (!skip_space(j)) {
      bool over = !j->failed && j->state == WANT_NOTHING;
      *kind = over ? SC_JSON_END : fail_ended(j, j->depth ? "before its last bracket" : "where a value should be");
      return false;
    }
    if (j->state != WANT_COMMA || *j->at != ',')
      break;
    ++j->at;
    j->state = in_array(j) ? WANT_ELEMENT : WANT_KEY; /* a bracket after a comma is let pass */
  }
  *kind = SC_JSON_FAIL;
  if (j->state == WANT_NOTHING) {
    fail_found(j, "nothing more");
    return false;
  }
  return true;
}

enum sc_json_kind sc_json_next(struct sc_json *j, struct sc_json_token *token)
{
  token->kind = SC_JSON_FAIL;
  token->text = NULL;
  token->length = 0;
  token->escaped = token->cut = false;
  if (j->failed || !to_token(j, &token->kind))
    return token->kind;
  if (closes(*j->at) && j->state != WANT_VALUE) {
    token->offset = sc_json_offset(j);
    token->kind = close_token(j);
  } else if (j->state == WANT_KEY) {
    token->kind = key_token(j, token);
  } else if (j->state == WANT_COMMA) {
    token->kind = fail_found(j, in_array(j) ? "a comma or ']'" : "a comma or '}'");
  } else {
    token->kind = value_token(j, token);
  }
  return token->kind;
}

/* ---- reading over what nobody wants ------------------------------------------------------------- */

/* Until no more than `depth` are open. */
static bool skip_to_depth(struct sc_json *j, uint32_t depth)
{
  static const bool special[256] = {['"'] = true, ['{'] = true, ['['] = true, ['}'] = true, [']'] = true};
  while (j->depth > depth) {
    unsigned char *p = j->at;
    while (p < j->end && !special[*p])
      ++p;
    j->at = p;
    if (p == j->end) {
      if (!refill(j, p)) {
        fail_ended(j, "before its last bracket");
        return false;
      }
    } else if (*p == '"') {
      if (!skip_string(j))
        return false;
    } else if (closes(*p)) {
      if (!close_one(j))
        return false;
    } else if (!open_one(j, *p == '[')) {
      return false;
    }
  }
  return true;
}

bool sc_json_skip(struct sc_json *j)
{
  struct sc_json_token token;
  enum sc_json_kind kind = SC_JSON_FAIL;
  if (j->failed || !to_token(j, &kind))
    return false;
  if (*j->at == '"' && (j->state == WANT_VALUE || j->state == WANT_ELEMENT)) {
    if (!skip_string(j))
      return false;
    value_done(j);
    return true;
  }
  uint32_t depth = j->depth;
  kind = sc_json_next(j, &token);
  if (kind == SC_JSON_OBJECT || kind == SC_JSON_ARRAY)
    return skip_to_depth(j, depth);
  return kind != SC_JSON_FAIL;
}

bool sc_json_leave(struct sc_json *j) { return !j->failed && j->depth && skip_to_depth(j, j->depth - 1); }

/* ---- values ------------------------------------------------------------------------------------- */

static int hex4(const char *text)
{
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    char c = text[i];
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0)
      return -1;
    value = value * 16 + digit;
  }
  return value;
}

static size_t put_utf8(char *out, uint32_t c)
{
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = n - 1; i > 0; --i, c >>= 6)
    out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)(lead[n] | c);
  return n;
}

/* \uXXXX at text, a pair of them for what lies beyond 16 bits; half a pair becomes U+FFFD. Returns the bytes used, 0 if
 * it is none. */
static size_t unescape_unicode(const char *text, size_t length, char *out, size_t *written)
{
  int high = length >= 6 ? hex4(text + 2) : -1;
  if (high < 0)
    return 0;
  int low = high >= 0xd800 && high < 0xdc00 && length >= 12 && text[6] == '\\' && text[7] == 'u' ? hex4(text + 8) : -1;
  if (low >= 0xdc00 && low < 0xe000) {
    *written = put_utf8(out, 0x10000 + (((uint32_t)high - 0xd800) << 10) + ((uint32_t)low - 0xdc00));
    return 12;
  }
  *written = put_utf8(out, high >= 0xd800 && high < 0xe000 ? 0xfffd : (uint32_t)high);
  return 6;
}

size_t sc_json_unescape(char *text, size_t length)
{
  static const char plain[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
  size_t out = 0;
  for (size_t i = 0; i < length;) {
    size_t used = 0, written = 0;
    if (text[i] == '\\' && i + 1 < length) {
      const char *found = text[i + 1] ? strchr(plain, text[i + 1]) : NULL;
      if (found) {
        text[out] = means[found - plain];
        used = 2;
        written = 1;
      } else if (text[i + 1] == 'u') {
        used = unescape_unicode(text + i, length - i, text + out, &written);
      }
    }
    if (used == 0) {
      text[out] = text[i];
      used = written = 1;
    }
    i += used;
    out += written;
  }
  return out;
}

static bool fixed_by_double(const char *text, size_t length, unsigned decimals, int64_t *out)
{
  char copy[WORD_MAX + 1], *end;
  if (length > WORD_MAX || memchr(text, 'x', length) || memchr(text, 'X', length))
    return false;
  memcpy(copy, text, length);
  copy[length] = '\0';
  double value = strtod(copy, &end);
  if (*end || end == copy)
    return false;
  for (unsigned i = 0; i < decimals; ++i)
    value *= 10;
  if (!isfinite(value) || value >= 9.2e18 || value <= -9.2e18)
    return false;
  *out = (int64_t)llround(value);
  return true;
}

bool sc_json_fixed(const char *text, size_t length, unsigned decimals, int64_t *out)
{
  bool negative = length && *text == '-', rounded = false;
  size_t i = negative;
  uint64_t value = 0;
  unsigned digits = 0, places = 0;
  for (; i < length && text[i] >= '0' && text[i] <= '9' && digits <= 18; ++i, ++digits)
    value = value * 10 + (uint64_t)(text[i] - '0');
  if (digits == 0)
    return false;
  if (i < length && text[i] == '.') {
    for (++i; i < length && text[i] >= '0' && text[i] <= '9'; ++i) {
      if (places == decimals) {
        if (!rounded)
          value += text[i] >= '5';
        rounded = true;
        continue;
      }
      value = value * 10 + (uint64_t)(text[i] - '0');
      ++places;
      ++digits;
      if (digits > 19)
        return false;
    }
  }
  if (i < length) /* an exponent, more digits than a uint64_t holds, or no number at all */
    return fixed_by_double(text, length, decimals, out);
  for (; places < decimals; ++places, ++digits) {
    if (digits >= 19)
      return false;
    value *= 10;
  }
  if (value > (uint64_t)INT64_MAX)
    return false;
  *out = negative ? -(int64_t)value : (int64_t)value;
  return true;
}
