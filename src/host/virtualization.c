/* SPDX-License-Identifier: Apache-2.0
 * Hypervisor, WSL and container, in systemd-detect-virt's words. */
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "host/internal.h"

/* How firmware tables start on virtual machines. On bare metal of the same vendor the CPU's hypervisor flag is not set.
 */
static const struct {
  const char *prefix, *name;
} dmi_names[] = {
    {"KVM", "kvm"},
    {"OpenStack", "kvm"},
    {"KubeVirt", "kvm"},
    {"Amazon EC2", "amazon"},
    {"QEMU", "qemu"},
    {"VMware", "vmware"},
    {"VMW", "vmware"},
    {"innotek GmbH", "oracle"},
    {"VirtualBox", "oracle"},
    {"Xen", "xen"},
    {"Bochs", "bochs"},
    {"Parallels", "parallels"},
    {"BHYVE", "bhyve"},
    {"Hyper-V", "microsoft"},
    {"Apple Virtualization", "apple"},
    {"Google Compute Engine", "google"},
};

static const char *from_dmi(const char *sysroot)
{
  static const char *const files[] = {"product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version"};
  for (size_t i = 0; i < SC_COUNTOF(files); ++i) {
    char *text = host_file(sysroot, "/sys/class/dmi/id/%s", files[i]);
    for (size_t j = 0; text && j < SC_COUNTOF(dmi_names); ++j) {
      if (strncmp(text, dmi_names[j].prefix, strlen(dmi_names[j].prefix)) == 0) {
        free(text);
        return dmi_names[j].name;
      }
    }
    free(text);
  }
  return NULL;
}

/* The CPU's own answer; asked on the running machine only, not for a made-up tree. */
static const char *from_cpuid(const char *sysroot)
{
#if defined(__x86_64__)
  static const struct {
    const char *signature, *name;
  } vendors[] = {{"KVMKVMKVM", "kvm"},       {"Linux KVM Hv", "kvm"},       {"TCGTCGTCGTCG", "qemu"},
                 {"VMwareVMware", "vmware"}, {"Microsoft Hv", "microsoft"}, {"XenVMMXenVMM", "xen"},
                 {"bhyve bhyve ", "bhyve"},  {"ACRNACRNACRN", "acrn"}};
  if (*sysroot)
    return NULL;
  union {
    unsigned words[3];
    char text[13];
  } signature = {{0}};
  unsigned eax;
  __cpuid(0x40000000u, eax, signature.words[0], signature.words[1], signature.words[2]);
  signature.text[12] = '\0';
  for (size_t i = 0; i < SC_COUNTOF(vendors); ++i) {
    if (strcmp(signature.text, vendors[i].signature) == 0)
      return vendors[i].name;
  }
#else
  (void)sysroot;
#endif
  return NULL;
}

/* Whether text, a blank-separated list, holds word. */
static bool has_word(const char *text, const char *word)
{
  size_t length = strlen(word);
  for (const char *at = text; (at = strstr(at, word)); at += length) {
    if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
      return true;
  }
  return false;
}

static char *hypervisor(const char *sysroot, const char *cpuinfo)
{
  char *flags = cpuinfo ? host_value(cpuinfo, "flags") : NULL; /* x86 alone has this line */
  bool x86 = flags != NULL, guest = x86 && has_word(flags, "hypervisor");
  free(flags);
  char *kind = host_file(sysroot, "/sys/hypervisor/type"); /* Xen without the CPU flag (PV) */
  if (kind)
    return kind;
  if (x86 && !guest)
    return sc_strdup("none");
  if (!x86) { /* no CPU flag to ask: firmware may say yes, its silence says nothing */
    char *product = host_file(sysroot, "/sys/class/dmi/id/product_name");
    bool metal = product && strstr(product, ".metal");
    free(product);
    return sc_strdup(metal ? NULL : from_dmi(sysroot));
  }
  const char *name = from_dmi(sysroot);
  if (!name)
    name = from_cpuid(sysroot);
  return sc_strdup(name ? name : "vm-other");
}

static char *container_from_cgroup(const char *sysroot)
{
  static const struct {
    const char *part, *name;
  } kinds[] = {{"kubepods", "kubernetes"},
               {"docker", "docker"},
               {"libpod", "podman"},
               {"lxc", "lxc"},
               {"containerd", "containerd"}};
  char *cgroup = host_file(sysroot, "/proc/1/cgroup");
  char *name = NULL;
  for (size_t i = 0; cgroup && !name && i < SC_COUNTOF(kinds); ++i) {
    if (strstr(cgroup, kinds[i].part))
      name = sc_strdup(kinds[i].name);
  }
  free(cgroup);
  return name;
}

static char *container(const char *sysroot)
{
  char *name = host_file(sysroot, "/run/systemd/container");
  if (name)
    return name;
  if (host_exists(sysroot, "/.dockerenv"))
    return sc_strdup("docker");
  if (host_exists(sysroot, "/run/.containerenv"))
    return sc_strdup("podman");
  return container_from_cgroup(sysroot);
}

void host_read_virtualization(const char *sysroot, const char *cpuinfo, struct sc_host *host)
{
  host->virtualization = hypervisor(sysroot, cpuinfo);
  host->container = container(sysroot);
  char *version = host_file(sysroot, "/proc/version");
  if (host_exists(sysroot, "/dev/dxg") ||
      (version && (strcasestr(version, "microsoft") || strcasestr(version, "WSL2"))))
    host->wsl = SC_HOST_YES;
  else if (version)
    host->wsl = SC_HOST_NO;
  free(version);
}
