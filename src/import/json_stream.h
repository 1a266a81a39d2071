/* SPDX-License-Identifier: Apache-2.0
 * A JSON text of any size, one token at a time in fixed memory. Strict about structure; lenient where profilers are not
 * careful: NaN and Infinity are numbers, bytes that are no UTF-8 and bare control characters stay in strings, a comma
 * before a closing bracket is let pass. */
#ifndef SC_IMPORT_JSON_STREAM_H
#define SC_IMPORT_JSON_STREAM_H

#include "base/base.h"

#define SC_JSON_DEPTH 512      /* deeper nesting is an error */
#define SC_JSON_TEXT_MAX 65536 /* bytes of a string that are kept; the rest is read over */

/* Where the bytes come from: how many were read into bytes, 0 at the end, negative with *err filled. */
typedef ptrdiff_t sc_json_read(void *context, void *bytes, size_t size, struct sc_error *err);

enum sc_json_kind {
  SC_JSON_FAIL, /* sc_json_error says why; so does every later call */
  SC_JSON_END,  /* the whole text was read */
  SC_JSON_OBJECT,
  SC_JSON_OBJECT_END,
  SC_JSON_ARRAY,
  SC_JSON_ARRAY_END,
  SC_JSON_KEY, /* its value comes next */
  SC_JSON_STRING,
  SC_JSON_NUMBER,
  SC_JSON_TRUE,
  SC_JSON_FALSE,
  SC_JSON_NULL,
};

struct sc_json_token {
  enum sc_json_kind kind;
  char
      *text; /* KEY, STRING, NUMBER: as in the file, between the quotes; valid until the next call, may be written to */
  size_t length;
  bool escaped;    /* there is a backslash in it: sc_json_unescape */
  bool cut;        /* it is longer than SC_JSON_TEXT_MAX */
  uint64_t offset; /* of its first byte in the (unpacked) text */
};

struct sc_json;
/* context is the caller's and must outlive the scanner. NULL: out of memory. */
struct sc_json *sc_json_new(sc_json_read *read, void *context) SC_NODISCARD;
void sc_json_free(struct sc_json *json); /* accepts NULL */

enum sc_json_kind sc_json_next(struct sc_json *json, struct sc_json_token *token);
/* Reads over the next value, whatever it is; not over a key or an end. Of what is inside, only brackets and strings are
 * looked at. False: failed. */
bool sc_json_skip(struct sc_json *json);
/* Reads on to the end of the innermost object or array that is open. False: failed. */
bool sc_json_leave(struct sc_json *json);

uint32_t sc_json_depth(const struct sc_json *json);  /* objects and arrays that are open */
uint64_t sc_json_offset(const struct sc_json *json); /* bytes read so far */
bool sc_json_ended(const struct sc_json *json);      /* it failed because the text ends too early */
/* "at byte 123: expected a comma, found 'x'", or what the reading function said. SC_OK if nothing failed. */
enum sc_status sc_json_error(const struct sc_json *json, struct sc_error *err);

/* Escapes resolved in place; returns the new length. What is no valid escape is left as it is. */
size_t sc_json_unescape(char *text, size_t length);
/* A number in units of 10^-decimals, rounded: "12.3456" with 3 decimals is 12346. False: no number, not finite, or
 * beyond int64_t. */
bool sc_json_fixed(const char *text, size_t length, unsigned decimals, int64_t *out);

#endif
