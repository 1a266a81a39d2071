/* SPDX-License-Identifier: Apache-2.0
 * What the names in a Kineto trace say. */
#include "import/kineto.h"

#include <ctype.h>
#include <string.h>

/* ---- device work ------------------------------------------------------------------------------ */

static uint8_t memory_of(const char *text, size_t length)
{
  static const struct {
    const char *name;
    uint8_t memory;
  } kinds[] = {
      {"Pageable", SC_MEMORY_PAGEABLE},      {"Pinned", SC_MEMORY_PINNED},
      {"Device", SC_MEMORY_DEVICE},          {"Array", SC_MEMORY_ARRAY},
      {"Managed", SC_MEMORY_MANAGED},        {"Device Static", SC_MEMORY_DEVICE},
      {"Managed Static", SC_MEMORY_MANAGED},
  };
  for (size_t i = 0; i < SC_COUNTOF(kinds); ++i) {
    if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, text, length) == 0)
      return kinds[i].memory;
  }
  return SC_MEMORY_UNKNOWN; /* also "Host", which HIP writes, and "Unknown" */
}

/* Arrays lie on the device. */
static uint8_t direction_of(const char *kind)
{
  if (strlen(kind) < 4 || kind[1] != 't' || kind[2] != 'o')
    return SC_DIRECTION_NONE;
  bool from_host = kind[0] == 'H', to_host = kind[3] == 'H';
  if (!strchr("HDAP", kind[0]) || !strchr("HDAP", kind[3]))
    return SC_DIRECTION_NONE;
  if (from_host)
    return to_host ? SC_DIRECTION_H2H : SC_DIRECTION_H2D;
  return to_host ? SC_DIRECTION_D2H : SC_DIRECTION_D2D;
}

void kineto_copy_kinds(const char *name, uint8_t *direction, uint8_t *src, uint8_t *dst)
{
  *direction = SC_DIRECTION_NONE;
  *src = *dst = SC_MEMORY_UNKNOWN;
  if (!sc_starts_with(name, "Memcpy "))
    return;
  *direction = direction_of(name + 7);
  const char *open = strchr(name, '('), *arrow = open ? strstr(open, " -> ") : NULL;
  const char *close = arrow ? strrchr(arrow, ')') : NULL;
  if (!close)
    return;
  *src = memory_of(open + 1, (size_t)(arrow - open - 1));
  *dst = memory_of(arrow + 4, (size_t)(close - arrow - 4));
}

uint8_t kineto_memset_kind(const char *name)
{
  const char *open = strchr(name, '('), *close = open ? strrchr(open, ')') : NULL;
  return close ? memory_of(open + 1, (size_t)(close - open - 1)) : SC_MEMORY_UNKNOWN;
}

/* ---- calls ------------------------------------------------------------------------------------ */

bool kineto_is_cuda(const char *name)
{
  return sc_starts_with(name, "cuda") || (sc_starts_with(name, "cu") && isupper((unsigned char)name[2]));
}

const char *kineto_vendor(const char *name)
{
  static const struct {
    const char *prefix, *vendor;
  } vendors[] = {{"hip", "HIP (AMD)"},
                 {"musa", "MUSA (Moore Threads)"},
                 {"tops", "TopsRider (Enflame)"},
                 {"ze", "Level Zero (Intel)"},
                 {"ur", "Unified Runtime (Intel)"},
                 {"mtia", "MTIA"},
                 {"acl", "Ascend CL (Huawei)"},
                 {"cn", "Cambricon"}};
  if (kineto_is_cuda(name))
    return "CUDA";
  for (size_t i = 0; i < SC_COUNTOF(vendors); ++i) {
    size_t n = strlen(vendors[i].prefix);
    if (sc_starts_with(name, vendors[i].prefix) && (isupper((unsigned char)name[n]) || name[n] == '_'))
      return vendors[i].vendor;
  }
  return NULL;
}

/* ---- Python ----------------------------------------------------------------------------------- */

/* " at 0x7f12ab" out of "<built-in method item of Tensor object at 0x7f12ab>". */
static void drop_addresses(char *name)
{
  for (char *at = name; (at = strstr(at, " at 0x")) != NULL;) {
    char *end = at + 6;
    while (isxdigit((unsigned char)*end))
      ++end;
    memmove(at, end, strlen(end) + 1);
  }
}

bool kineto_function_parse(char *name, struct kineto_function *out)
{
  drop_addresses(name);
  *out = (struct kineto_function){.function = name};
  for (char *found = name, *next; (next = strstr(found, "): ")) != NULL; found = next + 1) {
    char *digit = next;
    uint64_t line = 0;
    while (digit > name && isdigit((unsigned char)digit[-1]))
      --digit;
    if (digit == next || next - digit > 9 || digit - name < 2 || digit[-1] != '(')
      continue;
    for (const char *d = digit; d < next; ++d)
      line = line * 10 + (uint64_t)(*d - '0');
    digit[-1] = '\0';
    *out = (struct kineto_function){.file = name, .function = next + 3, .line = (uint32_t)line};
    return true;
  }
  return false;
}

const char *kineto_module(const char *name)
{
  static const char prefix[] = "nn.Module: ";
  return sc_starts_with(name, prefix) && name[sizeof prefix - 1] ? name + sizeof prefix - 1 : NULL;
}
