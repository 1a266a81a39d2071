/* SPDX-License-Identifier: Apache-2.0
 * What is known of the machine, one field each. How people are told is the report's. */
#include "cli/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "host/host.h"

/* Each returns false when memory is out; an unknown value adds nothing and is true. */

static bool text(struct sc_findings *f, const char *group, const char *key, const char *value)
{
  return !value || !*value || sc_findings_text(f, group, key, value);
}

/* 0 is not known. */
static bool number(struct sc_findings *f, const char *group, const char *key, uint64_t value)
{
  return value == 0 || sc_findings_number(f, group, key, (double)value);
}

static bool answer(struct sc_findings *f, const char *key, enum sc_host_answer value)
{
  return value == SC_HOST_UNKNOWN || sc_findings_bool(f, "conditions", key, value == SC_HOST_YES);
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
  return text(f, "host.pcie", "bus_id", bus_id) && text(f, "host.pcie", "link_speed", pci->link_speed) &&
         number(f, "host.pcie", "link_width", pci->link_width) &&
         number(f, "host.pcie", "generation", pci->generation) &&
         text(f, "host.pcie", "max_link_speed", pci->max_link_speed) &&
         number(f, "host.pcie", "max_link_width", pci->max_link_width);
}

static bool device_fields(struct sc_findings *f, const struct document_device *device, bool simulated)
{
  if (!device)
    return true;
  bool ok = text(f, "device", "name", device->name);
  if (device->has_ordinal)
    ok = ok && sc_findings_number(f, "device", "ordinal", (double)device->ordinal);
  if (simulated) /* the rest is made up by the simulation */
    return ok;
  ok = ok && text(f, "device", "compute_capability", device->compute_capability) &&
       number(f, "device", "total_memory_bytes", device->total_memory_bytes) &&
       number(f, "device", "multiprocessors", device->multiprocessors) &&
       number(f, "device", "l2_bytes", device->l2_bytes) &&
       number(f, "device", "cublas_version", device->cublas_version);
  return ok && (!device->has_integrated || sc_findings_bool(f, "device", "integrated", device->integrated));
}

/* Where the GPU hangs, and whether this process may run there. */
static bool numa_conditions(struct sc_findings *f, const struct sc_host *host, const struct sc_host_pci *pci)
{
  if (!pci->has_numa_node)
    return true;
  enum sc_host_answer near =
      host->cpus_allowed ? sc_host_cpus_overlap(host->cpus_allowed, pci->node_cpus) : SC_HOST_UNKNOWN;
  return sc_findings_number(f, "conditions", "gpu_numa_node", (double)pci->numa_node) &&
         text(f, "conditions", "gpu_numa_cpus", pci->node_cpus) && answer(f, "gpu_numa_allowed", near);
}

/* In Hz. */
static bool clock_rate(struct sc_findings *f, const char *group, const char *key, uint64_t khz)
{
  return khz == 0 || sc_findings_number(f, group, key, (double)khz * 1e3);
}

/* What only a real device has. */
static bool gpu_conditions(struct sc_findings *f, const struct sc_host *host, const struct document_device *device)
{
  if (!answer(f, "mps", host->mps))
    return false;
  if (!device)
    return true;
  return text(f, "conditions", "schedule_flag", device->schedule_flag) &&
         (!device->has_mig || sc_findings_bool(f, "conditions", "mig", device->mig)) &&
         clock_rate(f, "conditions", "sm_clock_before", device->sm_clock_khz) &&
         clock_rate(f, "device", "sm_clock_max", device->sm_clock_max_khz);
}

static bool condition_fields(struct sc_findings *f, const struct sc_host *host, const struct sc_host_pci *pci,
                             const struct facts_input *input)
{
  bool ok = numa_conditions(f, host, pci) && text(f, "conditions", "cpus_allowed", host->cpus_allowed);
  if (host->cpu_quota_set == SC_HOST_YES) /* else there is none, or it is not known: JSON has no number for either */
    ok = ok && sc_findings_number(f, "conditions", "cgroup_cpu_quota", host->cpu_quota);
  ok = ok && text(f, "conditions", "governor", host->governor) && answer(f, "smt", host->smt) &&
       answer(f, "wsl", host->wsl);
  if (!input->simulated)
    return ok && gpu_conditions(f, host, input->device);
  return ok && (isnan(input->sim_round_trip_us) ||
                sc_findings_number(f, "conditions", "sim_round_trip_us", input->sim_round_trip_us));
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
