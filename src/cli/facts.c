/* SPDX-License-Identifier: Apache-2.0
 * What is known of the machine, one field each, with a line for people where the bare value would not tell them much.
 */
#include "cli/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"

#define LINE_TEXT 320

/* Each returns false when memory is out; an unknown value adds nothing and is true. */

static bool text(struct sc_findings *f, const char *group, const char *key, const char *value)
{
  return !value || !*value || sc_findings_text(f, group, key, value, NULL);
}

static bool answer(struct sc_findings *f, const char *key, enum sc_host_answer value, const char *line)
{
  return value == SC_HOST_UNKNOWN ||
         sc_findings_bool(f, "conditions", key, value == SC_HOST_YES, value == SC_HOST_YES ? line : NULL);
}

/* 13000 -> "13.0" */
static bool cuda_version(struct sc_findings *f, const char *key, uint64_t version)
{
  char dotted[32];
  if (version == 0)
    return true;
  snprintf(dotted, sizeof dotted, "%" PRIu64 ".%" PRIu64, version / 1000, version % 1000 / 10);
  return text(f, "host", key, dotted);
}

static bool host_fields(struct sc_findings *f, const struct sc_host *host, const struct facts_input *input)
{
  const struct document_device *device = input->device;
  bool ok = text(f, "host", "cpu", host->cpu) && text(f, "host", "kernel", host->kernel) &&
            text(f, "host", "virtualization", host->virtualization) && text(f, "host", "container", host->container);
  if (!input->simulated) /* a driver that the run did not use is no fact about the run */
    ok = ok && text(f, "host", "driver", host->driver) && text(f, "host", "driver_kind", host->driver_kind);
  if (device && !input->simulated)
    ok = ok && cuda_version(f, "cuda", device->runtime_version) &&
         cuda_version(f, "cuda_of_driver", device->driver_version);
  return ok && (input->simulated || text(f, "host", "cupti", input->cupti));
}

static bool pci_fields(struct sc_findings *f, const char *bus_id, const struct sc_host_pci *pci)
{
  char line[LINE_TEXT];
  bool ok = text(f, "host.pcie", "bus_id", bus_id);
  if (pci->link_speed[0] && pci->link_width) {
    int n = snprintf(line, sizeof line, "PCIe: %s x%" PRIu64, pci->link_speed, pci->link_width);
    if (pci->generation)
      n += snprintf(line + n, sizeof line - (size_t)n, " (Gen%" PRIu64 ")", pci->generation);
    if (pci->max_link_width > pci->link_width ||
        (pci->max_link_speed[0] && strcmp(pci->max_link_speed, pci->link_speed) != 0))
      snprintf(line + n, sizeof line - (size_t)n,
               "; the device could do %s x%" PRIu64 " (an idle link may be slowed down)",
               pci->max_link_speed[0] ? pci->max_link_speed : pci->link_speed,
               pci->max_link_width ? pci->max_link_width : pci->link_width);
    ok = ok && sc_findings_text(f, "host.pcie", "link_speed", pci->link_speed, line);
  } else {
    ok = ok && text(f, "host.pcie", "link_speed", pci->link_speed);
  }
  if (pci->link_width)
    ok = ok && sc_findings_number(f, "host.pcie", "link_width", (double)pci->link_width, NULL);
  if (pci->generation)
    ok = ok && sc_findings_number(f, "host.pcie", "generation", (double)pci->generation, NULL);
  return ok;
}

static bool device_number(struct sc_findings *f, const char *key, uint64_t value)
{
  return value == 0 || sc_findings_number(f, "device", key, (double)value, NULL);
}

static bool device_fields(struct sc_findings *f, const struct document_device *device, bool simulated)
{
  if (!device)
    return true;
  bool ok = text(f, "device", "name", device->name);
  if (device->has_ordinal)
    ok = ok && sc_findings_number(f, "device", "ordinal", (double)device->ordinal, NULL);
  if (simulated) /* the rest is made up by the simulation */
    return ok;
  ok = ok && text(f, "device", "compute_capability", device->compute_capability) &&
       device_number(f, "total_memory_bytes", device->total_memory_bytes) &&
       device_number(f, "multiprocessors", device->multiprocessors) && device_number(f, "l2_bytes", device->l2_bytes) &&
       device_number(f, "cublas_version", device->cublas_version);
  return ok && (!device->has_integrated || sc_findings_bool(f, "device", "integrated", device->integrated, NULL));
}

/* Where the GPU hangs, and whether this process may run there. */
static bool numa_condition(struct sc_findings *f, const struct sc_host *host, const struct sc_host_pci *pci)
{
  char line[LINE_TEXT];
  if (!pci->has_numa_node)
    return true;
  enum sc_host_answer near =
      host->cpus_allowed ? sc_host_cpus_overlap(host->cpus_allowed, pci->node_cpus) : SC_HOST_UNKNOWN;
  int n = snprintf(line, sizeof line, "GPU on NUMA node %" PRIu64, pci->numa_node);
  if (near == SC_HOST_NO)
    snprintf(line + n, sizeof line - (size_t)n,
             "; this process may run on none of its CPUs: pin it there (numactl -N %" PRIu64 ")", pci->numa_node);
  else if (near == SC_HOST_YES)
    snprintf(line + n, sizeof line - (size_t)n, "; its CPUs: %s", pci->node_cpus);
  return sc_findings_number(f, "conditions", "gpu_numa_node", (double)pci->numa_node, line);
}

static bool quota_condition(struct sc_findings *f, const struct sc_host *host)
{
  char line[LINE_TEXT];
  if (host->cpu_quota_set != SC_HOST_YES)
    return true; /* none, or not known: JSON has no number for either */
  snprintf(line, sizeof line, "CPU quota of the control group: %.4g CPUs; a throttled process waits longer",
           host->cpu_quota);
  return sc_findings_number(f, "conditions", "cgroup_cpu_quota", host->cpu_quota, line);
}

static bool power_conditions(struct sc_findings *f, const struct sc_host *host)
{
  char line[LINE_TEXT];
  bool ok = true;
  if (host->governor) {
    snprintf(line, sizeof line, "CPU frequency governor: %.100s%s", host->governor,
             strcmp(host->governor, "performance") == 0 ? "" : "; 'performance' wakes up faster");
    ok = sc_findings_text(f, "conditions", "governor", host->governor, line);
  }
  return ok && answer(f, "smt", host->smt, NULL);
}

/* What only a real device has. */
static bool gpu_conditions(struct sc_findings *f, const struct sc_host *host, const struct document_device *device)
{
  char line[LINE_TEXT];
  bool ok = answer(f, "mps", host->mps, "MPS: a control daemon is running, the GPU may be shared");
  if (!device)
    return ok;
  ok = ok && text(f, "conditions", "schedule_flag", device->schedule_flag);
  if (device->has_mig)
    ok = ok &&
         sc_findings_bool(f, "conditions", "mig", device->mig, device->mig ? "MIG: this is a part of a GPU" : NULL);
  if (device->sm_clock_khz) {
    snprintf(line, sizeof line, "SM clock before the run: %.0f MHz", (double)device->sm_clock_khz / 1e3);
    ok = ok && sc_findings_number(f, "conditions", "sm_clock_before", (double)device->sm_clock_khz * 1e3, line);
  }
  if (device->sm_clock_max_khz) {
    snprintf(line, sizeof line, "SM clock at most: %.0f MHz", (double)device->sm_clock_max_khz / 1e3);
    ok = ok && sc_findings_number(f, "device", "sm_clock_max", (double)device->sm_clock_max_khz * 1e3, line);
  }
  return ok;
}

static bool condition_fields(struct sc_findings *f, const struct sc_host *host, const struct sc_host_pci *pci,
                             const struct facts_input *input)
{
  char line[LINE_TEXT], time[SC_TIME_TEXT];
  bool ok = numa_condition(f, host, pci) && text(f, "conditions", "cpus_allowed", host->cpus_allowed) &&
            quota_condition(f, host) && power_conditions(f, host);
  ok = ok && answer(f, "wsl", host->wsl, "WSL: each submission crosses the hypervisor, round trips are long");
  if (!input->simulated)
    return ok && gpu_conditions(f, host, input->device);
  if (isnan(input->sim_round_trip_us))
    return ok;
  snprintf(line, sizeof line, "Simulated device: it plays a round trip of %s",
           sc_format_time_us(input->sim_round_trip_us, time));
  return ok && sc_findings_number(f, "conditions", "sim_round_trip_us", input->sim_round_trip_us, line);
}

enum sc_status facts_add(const struct facts_input *input, struct sc_findings *findings, struct sc_error *err)
{
  struct sc_host *host;
  struct sc_host_pci pci = {0};
  enum sc_status status = sc_host_read(input->sysroot, &host, err);
  if (status != SC_OK)
    return status;
  const char *bus_id = input->simulated || !input->device ? NULL : input->device->pci_bus_id;
  if (bus_id)
    sc_host_pci_read(input->sysroot, bus_id, &pci);
  if (!host_fields(findings, host, input) || (bus_id && !pci_fields(findings, bus_id, &pci)) ||
      !device_fields(findings, input->device, input->simulated) || !condition_fields(findings, host, &pci, input))
    status = sc_error_no_memory(err);
  sc_host_free(host);
  return status;
}
