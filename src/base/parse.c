/* SPDX-License-Identifier: Apache-2.0
 * Strict parsers of what users type: the whole string or nothing. */
#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool sc_parse_u64(const char *text, uint64_t *out)
{
  uint64_t value = 0;
  if (!*text)
    return false;
  for (; *text; ++text) {
    if (*text < '0' || *text > '9')
      return false;
    unsigned digit = (unsigned)(*text - '0');
    if (value > (UINT64_MAX - digit) / 10)
      return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

/* A number at the start of text; *end is what follows. No white space, no hexadecimal, no "nan" or "inf". */
static bool leading_double(const char *text, double *out, const char **end)
{
  char *rest;
  double value = strtod(text, &rest);
  /* strtod also takes white space, hexadecimal, "inf" and "nan": none of their characters is in this set. */
  if (rest == text || (size_t)(rest - text) > strspn(text, "+-.0123456789eE") || !isfinite(value))
    return false;
  *out = value;
  *end = rest;
  return true;
}

bool sc_parse_double(const char *text, double *out)
{
  const char *end;
  double value;
  if (!leading_double(text, &value, &end) || *end)
    return false;
  *out = value;
  return true;
}

bool sc_parse_time_us(const char *text, double *out_us)
{
  static const struct {
    const char *unit;
    double us;
  } units[] = {{"ns", 1e-3}, {"us", 1}, {"\xc2\xb5s", 1}, {"ms", 1e3}, {"s", 1e6}};
  const char *end;
  double value;
  if (!leading_double(text, &value, &end) || signbit(value))
    return false;
  for (size_t i = 0; i < SC_COUNTOF(units); ++i) {
    if (strcmp(end, units[i].unit) == 0 && isfinite(value * units[i].us)) {
      *out_us = value * units[i].us;
      return true;
    }
  }
  return false;
}

bool sc_parse_size(const char *text, uint64_t *out_bytes)
{
  size_t digits = strspn(text, "0123456789");
  char number[24];
  uint64_t value;
  if (digits == 0 || digits >= sizeof number)
    return false;
  memcpy(number, text, digits);
  number[digits] = '\0';
  if (!sc_parse_u64(number, &value))
    return false;
  const char *unit = text + digits;
  if (*unit) {
    const char *letters = "KMGT", *letter = strchr(letters, *unit);
    if (!letter || (strcmp(unit + 1, "") != 0 && strcmp(unit + 1, "iB") != 0 && strcmp(unit + 1, "B") != 0))
      return false;
    unsigned shift = 10u * (unsigned)(letter - letters + 1);
    if (value > UINT64_MAX >> shift)
      return false;
    value <<= shift;
  }
  *out_bytes = value;
  return true;
}

enum sc_status sc_parse_u64_list(const char *text, uint64_t max, uint64_t **out, size_t *count, struct sc_error *err)
{
  uint64_t *list = NULL;
  size_t used = 0, cap = 0;
  enum sc_status status = SC_OK;
  for (const char *at = text;; ++at) {
    size_t length = strcspn(at, ",");
    char number[24];
    uint64_t value = 0;
    bool fits = length < sizeof number;
    if (fits) {
      memcpy(number, at, length);
      number[length] = '\0';
    }
    if (!fits || !sc_parse_u64(number, &value) || value == 0 || value > max) {
      status = sc_error_set(err, SC_ERR_USAGE,
                            "'%s' is not a list of numbers from 1 to %llu: '%.*s' is wrong (example: 4,8,16)", text,
                            (unsigned long long)max, (int)(length > 40 ? 40 : length), at);
      goto cleanup;
    }
    uint64_t *element = sc_array_push(&list, &used, &cap, sizeof *list);
    if (!element) {
      status = sc_error_set(err, SC_ERR_NOMEM, "out of memory while reading a list of numbers");
      goto cleanup;
    }
    *element = value;
    at += length;
    if (!*at)
      break;
  }
  *out = list;
  *count = used;
  return SC_OK;
cleanup:
  free(list);
  return status;
}
