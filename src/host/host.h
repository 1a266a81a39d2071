/* SPDX-License-Identifier: Apache-2.0
 * host: what machine this is, from /proc, /sys and /dev. Uses base alone; nothing here needs CUDA.
 *
 * What is not known is NULL, SC_HOST_UNKNOWN or has its has_ flag false: it is never guessed. Every function takes a
 * sysroot that is put in front of each path: "" for this machine, a folder with a made-up tree for tests. */
#ifndef SC_HOST_H
#define SC_HOST_H

#include "base/base.h"

enum sc_host_answer { SC_HOST_UNKNOWN, SC_HOST_NO, SC_HOST_YES };

struct sc_host {
  char *cpu;            /* model name */
  char *kernel;         /* release, as of uname -r */
  char *virtualization; /* systemd's words: "none", "kvm", "microsoft", "vmware", "amazon", ..., "vm-other" */
  char *container;      /* "docker", "podman", "kubernetes", "lxc", ... */
  char *driver;         /* of the NVIDIA kernel module: "580.159.04" */
  char *driver_kind;    /* "open" or "proprietary" */
  char *cpus_allowed;   /* list of this process: "0-15,32-47" */
  char *governor;       /* cpufreq, or several: "performance, powersave" */
  enum sc_host_answer wsl, smt, mps;
  enum sc_host_answer cpu_quota_set; /* cgroup v1 or v2 */
  double cpu_quota;                  /* CPUs, when set */
  bool has_memory_available;
  uint64_t memory_available_bytes;
};

/* Owned by the caller; free with sc_host_free. The only failure is SC_ERR_NOMEM. */
enum sc_status sc_host_read(const char *sysroot, struct sc_host **out, struct sc_error *err) SC_NODISCARD;
void sc_host_free(struct sc_host *host); /* accepts NULL */

struct sc_host_pci {
  char link_speed[24], max_link_speed[24]; /* "32.0 GT/s"; "" if not known */
  uint64_t link_width, max_link_width;     /* lanes; 0 if not known */
  uint64_t generation;                     /* of the current speed: 5 for 32 GT/s; 0 if not known */
  bool has_numa_node;
  uint64_t numa_node;
  char node_cpus[128]; /* CPUs of that node as a list; "" if not known or too long */
};
/* bus_id as CUDA or the driver spell it: "0000:41:00.0", "00000000:41:00.0", any case. */
void sc_host_pci_read(const char *sysroot, const char *bus_id, struct sc_host_pci *out);

/* True if two CPU lists ("0-3,8") have a CPU in common; SC_HOST_UNKNOWN if one is no list. */
enum sc_host_answer sc_host_cpus_overlap(const char *a, const char *b);

/* True if the machine shows any NVIDIA device: /dev/nvidia*, /dev/dxg, or a PCI display device of vendor 0x10de. found
 * says which one. */
#define SC_HOST_FOUND 64
bool sc_host_has_nvidia(const char *sysroot, char found[static SC_HOST_FOUND]);

#endif
