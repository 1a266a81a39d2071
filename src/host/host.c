/* SPDX-License-Identifier: Apache-2.0
 * CPU, kernel, driver, power and memory of the machine, and whether it has an NVIDIA device at all. */
#include "host/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/internal.h"

/* Arm kernels give numbers instead of a name. They are repeated as they stand: a table of names would age. */
static char *cpu_model(const char *cpuinfo)
{
  char *model = host_value(cpuinfo, "model name");
  if (model)
    return model;
  char *implementer = host_value(cpuinfo, "CPU implementer"), *part = host_value(cpuinfo, "CPU part");
  if (implementer && part)
    model = sc_asprintf("Arm implementer %s part %s", implementer, part);
  free(implementer);
  free(part);
  return model;
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build": the first word of the line that
 * is digits and dots with at least one dot. */
static void read_driver(const char *sysroot, struct sc_host *host)
{
  char *text = host_file(sysroot, "/proc/driver/nvidia/version");
  char *line = text ? host_value(text, "NVRM version") : NULL;
  char *rest = line;
  for (char *word; rest && (word = strsep(&rest, " \t"));) {
    if (word[strspn(word, "0123456789.")] == '\0' && strchr(word, '.') && word[0] != '.') {
      host->driver = sc_strdup(word);
      break;
    }
    if (strcmp(word, "Open") == 0)
      host->driver_kind = sc_strdup("open");
  }
  if (host->driver && !host->driver_kind)
    host->driver_kind = sc_strdup("proprietary");
  free(line);
  free(text);
}

/* The governors of all frequency policies, each once: hosts with mixed cores may have more than one. */
static char *read_governor(const char *sysroot)
{
  size_t count;
  char **policies = host_names(sysroot, "/sys/devices/system/cpu/cpufreq", "policy*", &count);
  struct sc_buf list = {0};
  for (size_t i = 0; i < count; ++i) {
    char *governor = host_file(sysroot, "/sys/devices/system/cpu/cpufreq/%s/scaling_governor", policies[i]);
    if (governor && !(list.data && strstr(list.data, governor)))
      sc_buf_printf(&list, "%s%s", list.len ? ", " : "", governor);
    free(governor);
  }
  host_names_free(policies, count);
  if (list.failed)
    sc_buf_free(&list);
  return list.data;
}

static enum sc_host_answer read_smt(const char *sysroot)
{
  char *active = host_file(sysroot, "/sys/devices/system/cpu/smt/active");
  enum sc_host_answer answer = !active                    ? SC_HOST_UNKNOWN
                               : strcmp(active, "1") == 0 ? SC_HOST_YES
                               : strcmp(active, "0") == 0 ? SC_HOST_NO
                                                          : SC_HOST_UNKNOWN;
  free(active);
  return answer;
}

/* A CUDA program uses MPS when the control daemon's pipe is where the program looks for it. */
static enum sc_host_answer read_mps(const char *sysroot)
{
  const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
  return host_exists(sysroot, "%s/control", folder && *folder ? folder : "/tmp/nvidia-mps") ? SC_HOST_YES : SC_HOST_NO;
}

static void read_memory(const char *sysroot, struct sc_host *host)
{
  char *meminfo = host_file(sysroot, "/proc/meminfo");
  char *value = meminfo ? host_value(meminfo, "MemAvailable") : NULL;
  uint64_t kib;
  if (value) {
    value[strspn(value, "0123456789")] = '\0';
    if (sc_parse_u64(value, &kib) && kib <= UINT64_MAX / 1024) {
      host->has_memory_available = true;
      host->memory_available_bytes = kib * 1024;
    }
  }
  free(value);
  free(meminfo);
}

enum sc_status sc_host_read(const char *sysroot, struct sc_host **out, struct sc_error *err)
{
  struct sc_host *host = calloc(1, sizeof *host);
  if (!host)
    return sc_error_set(err, SC_ERR_NOMEM, "out of memory while reading the host's facts");
  char *cpuinfo = host_file(sysroot, "/proc/cpuinfo");
  char *status = host_file(sysroot, "/proc/self/status");
  if (cpuinfo)
    host->cpu = cpu_model(cpuinfo);
  if (status)
    host->cpus_allowed = host_value(status, "Cpus_allowed_list");
  host->kernel = host_file(sysroot, "/proc/sys/kernel/osrelease");
  host_read_virtualization(sysroot, cpuinfo, host);
  host_read_quota(sysroot, host);
  read_driver(sysroot, host);
  host->governor = read_governor(sysroot);
  host->smt = read_smt(sysroot);
  host->mps = read_mps(sysroot);
  read_memory(sysroot, host);
  free(cpuinfo);
  free(status);
  *out = host;
  return SC_OK;
}

void sc_host_free(struct sc_host *host)
{
  if (!host)
    return;
  free(host->cpu);
  free(host->kernel);
  free(host->virtualization);
  free(host->container);
  free(host->driver);
  free(host->driver_kind);
  free(host->cpus_allowed);
  free(host->governor);
  free(host);
}

static bool nvidia_display(const char *sysroot, const char *device)
{
  char *vendor = host_file(sysroot, "/sys/bus/pci/devices/%s/vendor", device);
  char *class = host_file(sysroot, "/sys/bus/pci/devices/%s/class", device);
  bool yes = vendor && class && strcmp(vendor, "0x10de") == 0 && strncmp(class, "0x03", 4) == 0;
  free(vendor);
  free(class);
  return yes;
}

bool sc_host_has_nvidia(const char *sysroot, char found[static SC_HOST_FOUND])
{
  size_t count;
  bool present = false;
  char **names = host_names(sysroot, "/dev", "nvidia*", &count);
  if (count) {
    snprintf(found, SC_HOST_FOUND, "/dev/%s", names[0]);
    present = true;
  }
  host_names_free(names, count);
  if (!present && host_exists(sysroot, "/dev/dxg")) {
    snprintf(found, SC_HOST_FOUND, "/dev/dxg");
    present = true;
  }
  if (present)
    return true;
  names = host_names(sysroot, "/sys/bus/pci/devices", "*:*", &count);
  for (size_t i = 0; i < count && !present; ++i) {
    if (nvidia_display(sysroot, names[i])) {
      snprintf(found, SC_HOST_FOUND, "PCI device %s", names[i]);
      present = true;
    }
  }
  host_names_free(names, count);
  return present;
}
