/* SPDX-License-Identifier: Apache-2.0
 * The environment of the simulation: settings, and the faults it was told to show. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

struct sim_settings sim_settings = {
    .memory_bytes = (uint64_t)8 << 30, .devices = 1, .lost_after = -1, .capability = 90};

enum { MAX_FAULTS = 32 };
struct fault {
  char *call;
  int error;                /* of SIMCUDA_FAIL */
  enum sim_pairing pairing; /* of SIMCUDA_UNPAIRED */
  uint64_t nth;             /* 0: each call */
  atomic_uint_fast64_t seen;
};
static struct fault failures[MAX_FAULTS], unpaired[MAX_FAULTS];
static unsigned failure_count, unpaired_count;
static atomic_uint_fast64_t submissions;
static atomic_bool lost;

void simcuda_complain(const char *format, ...)
{
  char line[512];
  va_list list;

  va_start(list, format);
  int n = vsnprintf(line, sizeof line - 1, format, list);
  va_end(list);
  if (n < 0)
    return;
  size_t length = (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
  line[length++] = '\n';
  if (write(STDERR_FILENO, line, length) < 0)
    return; /* nowhere left to say so */
}

/* "8G", "512M", "123": bytes. */
static bool parse_bytes(const char *text, uint64_t *bytes)
{
  char *end;

  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || text[0] == '-')
    return false;
  unsigned shift = 0;
  switch (*end) {
  case 'T': shift += 10; /* fall through */
  case 'G': shift += 10; /* fall through */
  case 'M': shift += 10; /* fall through */
  case 'k':
  case 'K':
    shift += 10;
    end++;
    break;
  case '\0': break;
  default: return false;
  }
  if (*end != '\0' || value > (UINT64_MAX >> shift) || value << shift > (uint64_t)1 << 46)
    return false;
  *bytes = (uint64_t)value << shift;
  return true;
}

/* "120us", "1.5ms", "0": nanoseconds, at most ten seconds. */
static bool parse_time(const char *text, uint64_t *ns)
{
  static const struct {
    const char *unit;
    double scale;
  } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  char *end;

  errno = 0;
  double value = strtod(text, &end);
  if (errno != 0 || end == text || !(value >= 0))
    return false;
  if (*end == '\0' && value == 0) {
    *ns = 0;
    return true;
  }
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strcmp(end, units[i].unit) == 0 && value * units[i].scale <= 1e10) {
      *ns = (uint64_t)(value * units[i].scale + 0.5);
      return true;
    }
  return false;
}

static bool parse_integer(const char *text, int64_t low, int64_t high, int64_t *value)
{
  char *end;

  errno = 0;
  long long parsed = strtoll(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || parsed < low || parsed > high)
    return false;
  *value = parsed;
  return true;
}

/* "12.0" -> 120 */
static bool parse_capability(const char *text, int *capability)
{
  const char *dot = strchr(text, '.');

  if (dot == NULL || dot == text || dot - text > 2 || strspn(text, "0123456789") != (size_t)(dot - text) ||
      dot[1] < '0' || dot[1] > '9' || dot[2] != '\0')
    return false;
  *capability = (int)strtol(text, NULL, 10) * 10 + (dot[1] - '0');
  return true;
}

/* Splits off "@n" at the end of `item`; true unless n is no positive number. */
static bool take_ordinal(char *item, uint64_t *nth)
{
  char *at = strrchr(item, '@');
  int64_t value;

  *nth = 0;
  if (at == NULL)
    return true;
  if (!parse_integer(at + 1, 1, INT64_MAX, &value))
    return false;
  *at = '\0';
  *nth = (uint64_t)value;
  return true;
}

static bool parse_failure(char *item, struct fault *fault)
{
  if (!take_ordinal(item, &fault->nth))
    return false;
  char *equals = strchr(item, '=');
  if (equals == NULL || equals == item)
    return false;
  *equals = '\0';
  fault->error = simcuda_error_number(equals + 1);
  fault->call = item;
  return fault->error > 0;
}

static bool parse_unpaired(char *item, struct fault *fault)
{
  if (!take_ordinal(item, &fault->nth))
    return false;
  char *colon = strchr(item, ':');
  fault->pairing = SIM_ENTER_ONLY;
  if (colon != NULL) {
    *colon = '\0';
    if (strcmp(colon + 1, "exit") == 0)
      fault->pairing = SIM_EXIT_ONLY;
    else if (strcmp(colon + 1, "enter") != 0)
      return false;
  }
  fault->call = item;
  return item[0] != '\0';
}

/* Parses a comma-separated list; its copy is kept for the life of the process, since the faults point into it. */
static bool parse_faults(const char *text, bool (*parse)(char *, struct fault *), struct fault *faults, unsigned *count)
{
  char *copy = strdup(text), *rest = copy, *item;

  if (copy == NULL)
    return false;
  while ((item = strsep(&rest, ",")) != NULL)
    if (*count == MAX_FAULTS || !parse(item, &faults[(*count)++])) {
      *count = 0;
      free(copy);
      return false;
    }
  return true;
}

static int refuse(const char *variable, const char *value, const char *expected)
{
  simcuda_complain("simcuda: %s=%s was not understood: expected %s; correct or unset it", variable, value, expected);
  return CUDA_ERROR_INVALID_VALUE;
}

static int load(void)
{
  const char *text;
  int64_t number;

  if ((text = getenv("SIMCUDA_ROUND_TRIP")) != NULL && !parse_time(text, &sim_settings.round_trip_ns))
    return refuse("SIMCUDA_ROUND_TRIP", text, "a time like 120us, at most 10s");
  if ((text = getenv("SIMCUDA_MEMORY")) != NULL && !parse_bytes(text, &sim_settings.memory_bytes))
    return refuse("SIMCUDA_MEMORY", text, "a size like 8G, at most 64T");
  if ((text = getenv("SIMCUDA_DEVICES")) != NULL) {
    if (!parse_integer(text, 0, SIM_MAX_DEVICES, &number))
      return refuse("SIMCUDA_DEVICES", text, "a number from 0 to 16");
    sim_settings.devices = (int)number;
  }
  if ((text = getenv("SIMCUDA_CAPABILITY")) != NULL && !parse_capability(text, &sim_settings.capability))
    return refuse("SIMCUDA_CAPABILITY", text, "a compute capability like 9.0");
  if ((text = getenv("SIMCUDA_LOST")) != NULL) {
    if (!parse_integer(text, 0, INT64_MAX, &sim_settings.lost_after))
      return refuse("SIMCUDA_LOST", text, "a number of submissions");
    atomic_store(&lost, sim_settings.lost_after == 0);
  }
  if ((text = getenv("SIMCUDA_QUEUE")) != NULL) {
    if (!parse_integer(text, 0, INT32_MAX, &number))
      return refuse("SIMCUDA_QUEUE", text, "a number of submissions, 0 for no limit");
    sim_settings.queue = (int)number;
  }
  if ((text = getenv("SIMCUDA_THREADS")) != NULL) {
    if (!parse_integer(text, 1, SIMCUDA_MAX_THREADS, &number))
      return refuse("SIMCUDA_THREADS", text, "a number from 1 to 16");
    sim_settings.threads = (int)number;
  }
  if ((text = getenv("SIMCUDA_CUPTI_VERSION")) != NULL) {
    if (!parse_integer(text, 1, UINT32_MAX, &number))
      return refuse("SIMCUDA_CUPTI_VERSION", text, "a number like 130001");
    sim_settings.cupti_version = (uint32_t)number;
  }
  if ((text = getenv("SIMCUDA_FAIL")) != NULL && !parse_faults(text, parse_failure, failures, &failure_count))
    return refuse("SIMCUDA_FAIL", text, "call=error[@n],... with an error's number or name");
  if ((text = getenv("SIMCUDA_UNPAIRED")) != NULL && !parse_faults(text, parse_unpaired, unpaired, &unpaired_count))
    return refuse("SIMCUDA_UNPAIRED", text, "call[:enter|:exit][@n],...");
  if ((text = getenv("SIMCUDA_SUBSCRIBER")) != NULL && text[0] != '\0' &&
      (sim_settings.subscriber = strdup(text)) == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (failure_count != 0 || sim_settings.lost_after >= 0)
    atomic_fetch_or(&simcuda_watch, SIMCUDA_WATCH_FAULTS);
  return 0;
}

static int load_result;
static void load_once(void) { load_result = load(); }

int sim_settings_load(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, load_once);
  return load_result;
}

int simcuda_threads(void) { return sim_settings_load() == 0 ? sim_settings.threads : 1; }
uint32_t simcuda_cupti_version(void) { return sim_settings_load() == 0 ? sim_settings.cupti_version : 0; }

/* A fault for cuMemAlloc means cuMemAlloc_v2 and the per-thread forms as well. */
static bool names_call(const char *wanted, const char *name)
{
  size_t length = strlen(wanted);

  if (strncmp(name, wanted, length) != 0)
    return false;
  const char *rest = name + length;
  return rest[0] == '\0' || strncmp(rest, "_pt", 3) == 0 ||
         (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '0' && rest[2] <= '9');
}

static struct fault *due(struct fault *faults, unsigned count, const char *name)
{
  for (unsigned i = 0; i < count; i++)
    if (names_call(faults[i].call, name)) {
      uint64_t seen = atomic_fetch_add(&faults[i].seen, 1) + 1;
      if (faults[i].nth == 0 || faults[i].nth == seen)
        return &faults[i];
    }
  return NULL;
}

/* What still answers on a lost device: nothing that asks the device. */
static bool survives_loss(const char *name)
{
  static const char *const names[] = {"cudaGetLastError", "cudaPeekAtLastError", "cudaDriverGetVersion",
                                      "cudaRuntimeGetVersion", "cuDriverGetVersion"};

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i], name) == 0)
      return true;
  return false;
}

int sim_fault_for(const char *name)
{
  if (atomic_load(&lost) && !survives_loss(name))
    return CUDA_ERROR_DEVICE_UNAVAILABLE;
  struct fault *fault = due(failures, failure_count, name);
  return fault != NULL ? fault->error : 0;
}

enum sim_pairing sim_pairing_for(const char *name)
{
  if (unpaired_count == 0)
    return SIM_PAIRED;
  struct fault *fault = due(unpaired, unpaired_count, name);
  return fault != NULL ? fault->pairing : SIM_PAIRED;
}

void sim_count_submission(void)
{
  if (sim_settings.lost_after >= 0 && (int64_t)(atomic_fetch_add(&submissions, 1) + 1) >= sim_settings.lost_after)
    atomic_store(&lost, true);
}
