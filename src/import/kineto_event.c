/* SPDX-License-Identifier: Apache-2.0
 * One event of a Kineto trace. Members come in any order, numbers as numbers or as text, and what does not matter is
 * read over without being looked at. A later member of the same name wins. */
#include "import/kineto.h"

#include <string.h>

/* ---- categories: of today's Kineto, then of that of 2021, which had none for some ----------------- */

#define CATEGORY(text, category)     \
  {                                  \
    text, sizeof(text) - 1, category \
  }
static const struct {
  const char *name;
  size_t length;
  enum kineto_category category;
} categories[] = {
    CATEGORY("cuda_runtime", KINETO_CALL),
    CATEGORY("cpu_op", KINETO_OPERATOR),
    CATEGORY("kernel", KINETO_KERNEL),
    CATEGORY("python_function", KINETO_PYTHON),
    CATEGORY("cuda_driver", KINETO_CALL),
    CATEGORY("gpu_memcpy", KINETO_COPY),
    CATEGORY("gpu_memset", KINETO_MEMSET),
    CATEGORY("cuda_sync", KINETO_SYNC),
    CATEGORY("user_annotation", KINETO_ANNOTATION),
    CATEGORY("Runtime", KINETO_CALL),
    CATEGORY("Driver", KINETO_CALL),
    CATEGORY("runtime", KINETO_CALL),
    CATEGORY("Operator", KINETO_OPERATOR),
    CATEGORY("Kernel", KINETO_KERNEL),
    CATEGORY("Memcpy", KINETO_COPY),
    CATEGORY("Memset", KINETO_MEMSET),
    CATEGORY("User_annotation", KINETO_ANNOTATION),
    CATEGORY("python function", KINETO_PYTHON),
    CATEGORY("mtia_runtime", KINETO_FOREIGN),
    CATEGORY("xpu_runtime", KINETO_FOREIGN),
    CATEGORY("xpu_driver", KINETO_FOREIGN),
    CATEGORY("hpu_op", KINETO_FOREIGN),
    CATEGORY("glow_runtime", KINETO_FOREIGN),
    CATEGORY("privateuse1_runtime", KINETO_FOREIGN),
    CATEGORY("privateuse1_driver", KINETO_FOREIGN),
};

static enum kineto_category category_of(const struct sc_json_token *token)
{
  for (size_t i = 0; i < SC_COUNTOF(categories); ++i) {
    if (categories[i].length == token->length && memcmp(categories[i].name, token->text, token->length) == 0)
      return categories[i].category;
  }
  return KINETO_OTHER;
}

/* ---- values ------------------------------------------------------------------------------------- */

/* The next value as a token; objects and arrays are read over (their kind is kept). False: the text failed. */
static bool take_value(struct sc_json *json, struct sc_json_token *token)
{
  enum sc_json_kind kind = sc_json_next(json, token);
  if (kind == SC_JSON_OBJECT || kind == SC_JSON_ARRAY) {
    if (!sc_json_leave(json))
      return false;
    token->text = NULL;
    token->length = 0;
  }
  return kind != SC_JSON_FAIL;
}

static void set_wrong(struct kineto_event *event, const char *what)
{
  if (!event->wrong)
    event->wrong = what;
}

/* Null leaves it absent. */
static bool take_number(struct sc_json *json, unsigned decimals, int64_t *out, bool *has, const char **wrong,
                        const char *what)
{
  struct sc_json_token token;
  if (!take_value(json, &token))
    return false;
  if (token.kind == SC_JSON_NULL)
    return true;
  if ((token.kind == SC_JSON_NUMBER || token.kind == SC_JSON_STRING) &&
      sc_json_fixed(token.text, token.length, decimals, out))
    *has = true;
  else if (wrong && !*wrong)
    *wrong = what;
  return true;
}

/* What is no number in an argument is as good as absent: other vendors write addresses there. */
static bool take_argument(struct sc_json *json, int64_t *out, bool *has)
{
  return take_number(json, 0, out, has, NULL, NULL);
}

static int64_t hash_of(const char *text, size_t length)
{
  const uint64_t negative = (uint64_t)1 << 63; /* no number that a system gives */
  return (int64_t)(sc_hash_bytes(SC_HASH_SEED, text, length) | negative);
}

/* A process or a thread: a number, a number as text, or a name. */
static bool take_id(struct sc_json *json, int64_t *out, bool *has, const char **wrong, const char *what)
{
  struct sc_json_token token;
  if (!take_value(json, &token))
    return false;
  bool number =
      (token.kind == SC_JSON_NUMBER || token.kind == SC_JSON_STRING) && sc_json_fixed(token.text, token.length, 0, out);
  if (!number && token.kind == SC_JSON_STRING)
    *out = hash_of(token.text, token.length);
  *has = number || token.kind == SC_JSON_STRING;
  if (!*has && token.kind != SC_JSON_NULL && !*wrong)
    *wrong = what;
  return true;
}

/* At most max - 1 bytes, no NUL inside, cut where a character ends. */
static size_t copy_text(char *out, size_t max, struct sc_json_token *token)
{
  size_t length = token->escaped ? sc_json_unescape(token->text, token->length) : token->length;
  if (length >= max) {
    length = max - 1;
    while (length > max - 4 && ((unsigned char)token->text[length] & 0xc0) == 0x80)
      --length;
  }
  const char *nul = memchr(token->text, '\0', length);
  if (nul)
    length = (size_t)(nul - token->text);
  memcpy(out, token->text, length);
  out[length] = '\0';
  return length;
}

/* ---- members ------------------------------------------------------------------------------------- */

static bool is(const struct sc_json_token *token, const char *key)
{
  return token->length == strlen(key) && memcmp(token->text, key, token->length) == 0;
}

static bool take_label(struct sc_json *json, struct kineto_event *event)
{
  struct sc_json_token token;
  if (!take_value(json, &token))
    return false;
  if (token.kind == SC_JSON_STRING)
    event->label_length = copy_text(event->label, sizeof event->label, &token);
  return true;
}

static bool take_arguments(struct sc_json *json, struct kineto_event *event)
{
  struct sc_json_token token;
  bool ignored;
  enum sc_json_kind kind = sc_json_next(json, &token);
  if (kind != SC_JSON_OBJECT)
    return kind == SC_JSON_ARRAY ? sc_json_leave(json) : kind != SC_JSON_FAIL;
  while (sc_json_next(json, &token) == SC_JSON_KEY) {
    bool ok;
    if (is(&token, "correlation"))
      ok = take_argument(json, &event->correlation, &ignored);
    else if (is(&token, "stream"))
      ok = take_argument(json, &event->stream, &event->has_stream);
    else if (is(&token, "device"))
      ok = take_argument(json, &event->device, &ignored);
    else if (is(&token, "context"))
      ok = take_argument(json, &event->context, &ignored);
    else if (is(&token, "bytes") || is(&token, "Bytes"))
      ok = take_argument(json, &event->bytes, &ignored);
    else if (is(&token, "name"))
      ok = take_label(json, event);
    else
      ok = sc_json_skip(json);
    if (!ok)
      return false;
  }
  return token.kind == SC_JSON_OBJECT_END;
}

/* Kernels' names are long, and nobody asks for them. */
static bool take_name(struct sc_json *json, struct kineto_event *event)
{
  struct sc_json_token token;
  if (event->has_category && (event->category == KINETO_KERNEL || event->category == KINETO_OTHER) &&
      event->phase != 'M')
    return sc_json_skip(json);
  if (!take_value(json, &token))
    return false;
  if (token.kind == SC_JSON_STRING)
    event->name_length = copy_text(event->name, sizeof event->name, &token);
  else
    set_wrong(event, "'name' is no text");
  return true;
}

static bool take_phase_or_category(struct sc_json *json, struct kineto_event *event, bool phase)
{
  struct sc_json_token token;
  if (!take_value(json, &token))
    return false;
  if (token.kind != SC_JSON_STRING) {
    set_wrong(event, phase ? "'ph' is no text" : "'cat' is no text");
  } else if (phase) {
    event->phase = token.length == 1 ? *token.text : '?';
  } else {
    event->has_category = true;
    event->category = category_of(&token);
  }
  return true;
}

static bool take_member(struct sc_json *json, const struct sc_json_token *key, struct kineto_event *event)
{
  if (is(key, "args"))
    return take_arguments(json, event);
  if (is(key, "ts"))
    return take_number(json, 3, &event->start_ns, &event->has_start, &event->wrong, "'ts' is no time");
  if (is(key, "dur"))
    return take_number(json, 3, &event->duration_ns, &event->has_duration, &event->wrong, "'dur' is no time");
  if (is(key, "pid"))
    return take_id(json, &event->pid, &event->has_pid, &event->wrong, "'pid' is no number or text");
  if (is(key, "tid"))
    return take_id(json, &event->tid, &event->has_tid, &event->wrong, "'tid' is no number or text");
  if (is(key, "name"))
    return take_name(json, event);
  if (is(key, "ph"))
    return take_phase_or_category(json, event, true);
  if (is(key, "cat"))
    return take_phase_or_category(json, event, false);
  return sc_json_skip(json);
}

bool kineto_event_read(struct sc_json *json, struct kineto_event *event)
{
  struct sc_json_token token;
  event->phase = 0;
  event->category = KINETO_OTHER;
  event->has_category = event->has_start = event->has_duration = event->has_pid = event->has_tid = false;
  event->has_stream = false;
  event->start_ns = event->duration_ns = event->pid = event->tid = 0;
  event->correlation = event->context = event->stream = event->bytes = 0;
  event->device = -1;
  event->name[0] = event->label[0] = '\0';
  event->name_length = event->label_length = 0;
  event->wrong = NULL;
  while (sc_json_next(json, &token) == SC_JSON_KEY) {
    if (!take_member(json, &token, event))
      return false;
  }
  return token.kind == SC_JSON_OBJECT_END;
}
