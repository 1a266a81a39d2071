/* SPDX-License-Identifier: Apache-2.0
 * JSON values and where they go. */
#include "base/json.h"

#include <string.h>

json_t *sc_json_text(const char *text)
{
  struct sc_buf buf = {0};

  if (!text)
    return json_null();
  /* jansson refuses invalid UTF-8. */
  sc_buf_put_valid(&buf, text, strlen(text));
  json_t *value = buf.failed ? NULL : json_stringn(buf.data ? buf.data : "", buf.len);
  sc_buf_free(&buf);
  return value;
}

json_t *sc_json_count(uint64_t n) { return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n); }

void sc_json_put(json_t *object, const char *key, json_t *value, bool *ok)
{
  if (json_object_set_new(object, key, value) != 0) /* drops the value, too, when the object is NULL */
    *ok = false;
}

void sc_json_push(json_t *array, json_t *value, bool *ok)
{
  if (json_array_append_new(array, value) != 0)
    *ok = false;
}
