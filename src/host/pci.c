/* SPDX-License-Identifier: Apache-2.0
 * The link and the NUMA node of one PCI device, and CPU lists. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/internal.h"

/* "32.0 GT/s PCIe" -> "32.0 GT/s"; newer kernels add the word. "Unknown" and 0 widths (255 lanes too) are not known. */
static void read_speed(const char *sysroot, const char *device, const char *file, char out[static 24])
{
  char *text = host_file(sysroot, "/sys/bus/pci/devices/%s/%s", device, file);
  const char *unit = text ? strstr(text, " GT/s") : NULL;
  if (unit && isdigit((unsigned char)text[0]) && unit - text < 12)
    snprintf(out, 24, "%.*s GT/s", (int)(unit - text), text);
  free(text);
}

static uint64_t read_width(const char *sysroot, const char *device, const char *file)
{
  char *text = host_file(sysroot, "/sys/bus/pci/devices/%s/%s", device, file);
  uint64_t width = 0;
  if (text && (!sc_parse_u64(text[0] == 'x' ? text + 1 : text, &width) || width > 32))
    width = 0;
  free(text);
  return width;
}

static uint64_t generation(const char *speed)
{
  static const struct {
    const char *speed;
    uint64_t generation;
  } speeds[] = {{"2.5 GT/s", 1}, {"5.0 GT/s", 2},  {"5 GT/s", 2},  {"8.0 GT/s", 3},  {"8 GT/s", 3}, {"16.0 GT/s", 4},
                {"16 GT/s", 4},  {"32.0 GT/s", 5}, {"32 GT/s", 5}, {"64.0 GT/s", 6}, {"64 GT/s", 6}};
  for (size_t i = 0; i < SC_COUNTOF(speeds); ++i) {
    if (strcmp(speed, speeds[i].speed) == 0)
      return speeds[i].generation;
  }
  return 0;
}

/* sysfs spells "dddd:bb:dd.f" in lower case; the driver may give a domain of eight digits. False if it is no bus id. */
static bool sysfs_name(const char *bus_id, char out[static 16])
{
  unsigned domain, bus, device, function;
  char end;
  if (sscanf(bus_id, "%8x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &end) != 4)
    return false;
  return snprintf(out, 16, "%04x:%02x:%02x.%x", domain, bus, device, function) < 16;
}

void sc_host_pci_read(const char *sysroot, const char *bus_id, struct sc_host_pci *out)
{
  char device[16];
  *out = (struct sc_host_pci){0};
  if (!sysfs_name(bus_id, device))
    return;
  read_speed(sysroot, device, "current_link_speed", out->link_speed);
  read_speed(sysroot, device, "max_link_speed", out->max_link_speed);
  out->link_width = read_width(sysroot, device, "current_link_width");
  out->max_link_width = read_width(sysroot, device, "max_link_width");
  out->generation = generation(out->link_speed);
  char *node = host_file(sysroot, "/sys/bus/pci/devices/%s/numa_node", device); /* -1: the firmware did not say */
  out->has_numa_node = node && sc_parse_u64(node, &out->numa_node);
  free(node);
  if (!out->has_numa_node)
    return;
  char *cpus = host_file(sysroot, "/sys/devices/system/node/node%llu/cpulist", (unsigned long long)out->numa_node);
  if (cpus && strlen(cpus) < sizeof out->node_cpus)
    memcpy(out->node_cpus, cpus, strlen(cpus) + 1);
  free(cpus);
}

/* Takes "a" or "a-b" off the front of *list. False if it is malformed. */
static bool next_interval(const char **list, unsigned long *low, unsigned long *high)
{
  char *end;
  if (!isdigit((unsigned char)**list))
    return false;
  *low = *high = strtoul(*list, &end, 10);
  if (*end == '-') {
    if (!isdigit((unsigned char)end[1]))
      return false;
    *high = strtoul(end + 1, &end, 10);
  }
  if (*end == ',')
    ++end;
  else if (*end)
    return false;
  *list = end;
  return *low <= *high;
}

enum sc_host_answer sc_host_cpus_overlap(const char *a, const char *b)
{
  enum sc_host_answer answer = SC_HOST_NO;
  unsigned long low, high, other_low, other_high;
  if (!*a || !*b)
    return SC_HOST_UNKNOWN;
  while (*a) {
    if (!next_interval(&a, &low, &high))
      return SC_HOST_UNKNOWN;
    for (const char *other = b; *other;) {
      if (!next_interval(&other, &other_low, &other_high))
        return SC_HOST_UNKNOWN;
      if (low <= other_high && other_low <= high)
        answer = SC_HOST_YES;
    }
  }
  return answer;
}
