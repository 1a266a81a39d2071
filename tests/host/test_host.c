/* SPDX-License-Identifier: Apache-2.0
 * The host's facts on made-up trees: each fact where it is, and absent where it is not. */
#include "test_support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/host.h"

static char root[64];

static int make_tree(void **state)
{
  (void)state;
  snprintf(root, sizeof root, "/tmp/synccount-host-XXXXXX");
  return mkdtemp(root) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
  (void)info, (void)type, (void)where;
  return remove(path);
}

static int remove_tree(void **state)
{
  (void)state;
  return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes root/path and the folders on the way. */
static void put(const char *path, const char *text)
{
  char full[512];
  snprintf(full, sizeof full, "%s%s", root, path);
  for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); ++slash) {
    *slash = '\0';
    mkdir(full, 0700);
    *slash = '/';
  }
  FILE *file = fopen(full, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

static struct sc_host *read_host(void)
{
  struct sc_host *host = NULL;
  struct sc_error err = {0};
  assert_int_equal(sc_host_read(root, &host, &err), SC_OK);
  return host;
}

static void an_empty_tree_gives_no_facts(void **state)
{
  (void)state;
  struct sc_host *host = read_host();
  assert_null(host->cpu);
  assert_null(host->kernel);
  assert_null(host->virtualization);
  assert_null(host->container);
  assert_null(host->driver);
  assert_null(host->driver_kind);
  assert_null(host->cpus_allowed);
  assert_null(host->governor);
  assert_int_equal(host->wsl, SC_HOST_UNKNOWN);
  assert_int_equal(host->smt, SC_HOST_UNKNOWN);
  assert_int_equal(host->cpu_quota_set, SC_HOST_UNKNOWN);
  assert_false(host->has_memory_available);
  sc_host_free(host);
  struct sc_host_pci pci;
  sc_host_pci_read(root, "0000:41:00.0", &pci);
  assert_string_equal(pci.link_speed, "");
  assert_int_equal(pci.link_width, 0);
  assert_int_equal(pci.generation, 0);
  assert_false(pci.has_numa_node);
  char found[SC_HOST_FOUND];
  assert_false(sc_host_has_nvidia(root, found));
}

static void a_bare_metal_host_is_described(void **state)
{
  (void)state;
  put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8468\nflags\t\t: fpu vme sse2\n");
  put("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
  put("/proc/version", "Linux version 6.8.0-45-generic (buildd@x)\n");
  put("/proc/self/status", "Name:\tx\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-15,32-47\n");
  put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 "
                                     "UTC 2024\nGCC version:  gcc 12\n");
  put("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
  put("/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance\n");
  put("/sys/devices/system/cpu/smt/active", "1\n");
  put("/sys/class/dmi/id/sys_vendor",
      "Amazon EC2\n"); /* a vendor of virtual machines, but the CPU says that this is none */
  put("/proc/meminfo", "MemTotal:       100 kB\nMemAvailable:    90 kB\n");
  struct sc_host *host = read_host();
  assert_string_equal(host->cpu, "Intel(R) Xeon(R) Platinum 8468");
  assert_string_equal(host->kernel, "6.8.0-45-generic");
  assert_string_equal(host->virtualization, "none");
  assert_null(host->container);
  assert_string_equal(host->driver, "550.54.15");
  assert_string_equal(host->driver_kind, "proprietary");
  assert_string_equal(host->cpus_allowed, "0-15,32-47");
  assert_string_equal(host->governor, "performance");
  assert_int_equal(host->smt, SC_HOST_YES);
  assert_int_equal(host->wsl, SC_HOST_NO);
  assert_true(host->has_memory_available);
  assert_int_equal(host->memory_available_bytes, 90 * 1024);
  sc_host_free(host);
}

static void the_open_kernel_module_is_told_apart(void **state)
{
  (void)state;
  put("/proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@y)\n");
  struct sc_host *host = read_host();
  assert_string_equal(host->driver, "580.159.04");
  assert_string_equal(host->driver_kind, "open");
  sc_host_free(host);
  put("/proc/driver/nvidia/version", "NVRM version: no number here x86_64\n");
  host = read_host();
  assert_null(host->driver);
  assert_null(host->driver_kind);
  sc_host_free(host);
}

static void an_arm_host_without_a_model_name_repeats_its_numbers(void **state)
{
  (void)state;
  put("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  struct sc_host *host = read_host();
  assert_string_equal(host->cpu, "Arm implementer 0x41 part 0xd4f");
  assert_null(host->virtualization); /* no flag to ask, and the firmware is silent */
  sc_host_free(host);
}

static void guests_are_named_by_firmware_and_else_called_other(void **state)
{
  (void)state;
  static const struct {
    const char *file, *text, *name;
  } cases[] = {
      {"product_name", "KVM\n", "kvm"},
      {"sys_vendor", "QEMU\n", "qemu"},
      {"product_name", "VMware Virtual Platform\n", "vmware"},
      {"sys_vendor", "Amazon EC2\n", "amazon"},
      {"product_name", "Google Compute Engine\n", "google"},
      {"product_version", "Hyper-V UEFI Release v4.0\n", "microsoft"},
      {"sys_vendor", "Nobody Knows\n", "vm-other"},
  };
  put("/proc/cpuinfo", "model name\t: x\nflags\t\t: fpu hypervisor\n");
  for (size_t i = 0; i < SC_COUNTOF(cases); ++i) {
    char path[64], full[160];
    snprintf(path, sizeof path, "/sys/class/dmi/id/%s", cases[i].file);
    put(path, cases[i].text);
    struct sc_host *host = read_host();
    assert_string_equal(host->virtualization, cases[i].name);
    sc_host_free(host);
    snprintf(full, sizeof full, "%s%s", root, path);
    assert_int_equal(unlink(full), 0);
  }
  put("/proc/cpuinfo", "model name\t: x\nflags\t\t: fpu hypervisors\n"); /* another word that holds it */
  struct sc_host *host = read_host();
  assert_string_equal(host->virtualization, "none");
  sc_host_free(host);
}

static void wsl_is_seen_by_its_device_or_its_kernel(void **state)
{
  (void)state;
  put("/proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x)\n");
  struct sc_host *host = read_host();
  assert_int_equal(host->wsl, SC_HOST_YES);
  sc_host_free(host);
  put("/proc/version", "Linux version 6.1.0\n");
  put("/dev/dxg", "");
  host = read_host();
  assert_int_equal(host->wsl, SC_HOST_YES);
  sc_host_free(host);
}

static void containers_are_named(void **state)
{
  (void)state;
  put("/proc/1/cgroup", "0::/kubepods/burstable/pod1\n");
  struct sc_host *host = read_host();
  assert_string_equal(host->container, "kubernetes");
  sc_host_free(host);
  put("/run/.containerenv", "");
  host = read_host();
  assert_string_equal(host->container, "podman");
  sc_host_free(host);
  put("/.dockerenv", "");
  host = read_host();
  assert_string_equal(host->container, "docker");
  sc_host_free(host);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void a_cgroup_v2_quota_is_the_smallest_on_the_way_up(void **state)
{
  (void)state;
  put("/proc/self/cgroup", "0::/a.slice/b.scope\n");
  put("/proc/self/mountinfo", V2_MOUNT);
  put("/sys/fs/cgroup/a.slice/cpu.max", "150000 100000\n");
  put("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "800000 100000\n");
  struct sc_host *host = read_host();
  assert_int_equal(host->cpu_quota_set, SC_HOST_YES);
  assert_true(host->cpu_quota == 1.5);
  sc_host_free(host);
  put("/sys/fs/cgroup/a.slice/cpu.max", "max 100000\n");
  put("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "max 100000\n");
  host = read_host();
  assert_int_equal(host->cpu_quota_set, SC_HOST_NO);
  sc_host_free(host);
}

static void a_container_sees_its_quota_at_the_mounts_root(void **state)
{
  (void)state;
  put("/proc/self/cgroup", "0::/\n");
  put("/proc/self/mountinfo", V2_MOUNT);
  put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  struct sc_host *host = read_host();
  assert_int_equal(host->cpu_quota_set, SC_HOST_YES);
  assert_true(host->cpu_quota == 0.5);
  sc_host_free(host);
  put("/proc/self/cgroup", "0::/../other\n"); /* outside of the namespace */
  host = read_host();
  assert_int_equal(host->cpu_quota_set, SC_HOST_YES);
  sc_host_free(host);
}

static void a_group_without_a_cpu_file_sets_no_quota(void **state)
{
  (void)state;
  put("/proc/self/cgroup", "0::/x\n");
  put("/proc/self/mountinfo", V2_MOUNT);
  struct sc_host *host = read_host();
  assert_int_equal(host->cpu_quota_set, SC_HOST_UNKNOWN); /* the group itself cannot be seen */
  sc_host_free(host);
  put("/sys/fs/cgroup/x/cgroup.procs", "1\n");
  host = read_host();
  assert_int_equal(host->cpu_quota_set, SC_HOST_NO);
  sc_host_free(host);
}

static void a_cgroup_v1_quota_is_read_below_the_mounts_root(void **state)
{
  (void)state;
  put("/proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:cpuset:/docker/abc\n");
  put("/proc/self/mountinfo", "32 31 0:29 /docker/abc /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                              "33 31 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  struct sc_host *host = read_host();
  assert_int_equal(host->cpu_quota_set, SC_HOST_YES);
  assert_true(host->cpu_quota == 4);
  sc_host_free(host);
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  host = read_host();
  assert_int_equal(host->cpu_quota_set, SC_HOST_NO);
  sc_host_free(host);
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "0\n"); /* nonsense is not a quota */
  host = read_host();
  assert_int_equal(host->cpu_quota_set, SC_HOST_UNKNOWN);
  sc_host_free(host);
}

static void several_governors_are_all_named(void **state)
{
  (void)state;
  put("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
  put("/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n");
  put("/sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance\n");
  struct sc_host *host = read_host();
  assert_string_equal(host->governor, "performance, powersave");
  sc_host_free(host);
}

static void mps_is_running_where_a_program_would_look_for_it(void **state)
{
  (void)state;
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  struct sc_host *host = read_host();
  assert_int_equal(host->mps, SC_HOST_NO);
  sc_host_free(host);
  put("/tmp/nvidia-mps/control", "");
  host = read_host();
  assert_int_equal(host->mps, SC_HOST_YES);
  sc_host_free(host);
  setenv("CUDA_MPS_PIPE_DIRECTORY", "/elsewhere", 1);
  host = read_host();
  assert_int_equal(host->mps, SC_HOST_NO);
  sc_host_free(host);
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

#define DEVICE "/sys/bus/pci/devices/0000:41:00.0/"

static void a_pci_link_is_read_whatever_spelling_the_bus_id_has(void **state)
{
  (void)state;
  static const char *const spellings[] = {"0000:41:00.0", "00000000:41:00.0"};
  put(DEVICE "current_link_speed", "32.0 GT/s PCIe\n");
  put(DEVICE "max_link_speed", "32.0 GT/s PCIe\n");
  put(DEVICE "current_link_width", "8\n");
  put(DEVICE "max_link_width", "16\n");
  put(DEVICE "numa_node", "1\n");
  put("/sys/devices/system/node/node1/cpulist", "48-95\n");
  for (size_t i = 0; i < SC_COUNTOF(spellings); ++i) {
    struct sc_host_pci pci;
    sc_host_pci_read(root, spellings[i], &pci);
    assert_string_equal(pci.link_speed, "32.0 GT/s");
    assert_string_equal(pci.max_link_speed, "32.0 GT/s");
    assert_int_equal(pci.generation, 5);
    assert_int_equal(pci.link_width, 8);
    assert_int_equal(pci.max_link_width, 16);
    assert_true(pci.has_numa_node);
    assert_int_equal(pci.numa_node, 1);
    assert_string_equal(pci.node_cpus, "48-95");
  }
  put("/sys/bus/pci/devices/0000:c1:00.0/current_link_width", "16\n");
  struct sc_host_pci pci;
  sc_host_pci_read(root, "0000:C1:00.0", &pci);
  assert_int_equal(pci.link_width, 16);
}

static void what_a_pci_device_does_not_say_is_absent(void **state)
{
  (void)state;
  struct sc_host_pci pci;
  put(DEVICE "current_link_speed", "Unknown\n");
  put(DEVICE "current_link_width", "63\n");
  put(DEVICE "numa_node", "-1\n");
  sc_host_pci_read(root, "0000:41:00.0", &pci);
  assert_string_equal(pci.link_speed, "");
  assert_int_equal(pci.link_width, 0);
  assert_int_equal(pci.generation, 0);
  assert_false(pci.has_numa_node);
  static const char *const wrong[] = {"", "41", "0000:41:00.0/../..", "../../x", "0000:41:00"};
  for (size_t i = 0; i < SC_COUNTOF(wrong); ++i) {
    sc_host_pci_read(root, wrong[i], &pci);
    assert_int_equal(pci.link_width, 0);
  }
}

static void cpu_lists_overlap_or_not(void **state)
{
  (void)state;
  static const struct {
    const char *a, *b;
    enum sc_host_answer answer;
  } cases[] = {
      {"0-15", "16-31", SC_HOST_NO},  {"0-15", "15", SC_HOST_YES},  {"0,2,4", "1,3", SC_HOST_NO},
      {"0-3,8-11", "9", SC_HOST_YES}, {"", "1", SC_HOST_UNKNOWN},   {"1", "", SC_HOST_UNKNOWN},
      {"a", "1", SC_HOST_UNKNOWN},    {"1-", "1", SC_HOST_UNKNOWN}, {"3-1", "1", SC_HOST_UNKNOWN},
      {"1", "1;2", SC_HOST_UNKNOWN},
  };
  for (size_t i = 0; i < SC_COUNTOF(cases); ++i)
    assert_int_equal(sc_host_cpus_overlap(cases[i].a, cases[i].b), cases[i].answer);
}

static void an_nvidia_device_is_found_by_any_of_its_three_signs(void **state)
{
  (void)state;
  char found[SC_HOST_FOUND];
  put("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n"); /* another vendor's display */
  put("/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
  put("/sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n"); /* NVIDIA's, but audio */
  put("/sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
  assert_false(sc_host_has_nvidia(root, found));
  put("/sys/bus/pci/devices/0000:41:00.0/vendor", "0x10de\n");
  put("/sys/bus/pci/devices/0000:41:00.0/class", "0x030200\n");
  assert_true(sc_host_has_nvidia(root, found));
  assert_string_equal(found, "PCI device 0000:41:00.0");
  put("/dev/dxg", "");
  assert_true(sc_host_has_nvidia(root, found));
  assert_string_equal(found, "/dev/dxg");
  put("/dev/nvidiactl", "");
  assert_true(sc_host_has_nvidia(root, found));
  assert_string_equal(found, "/dev/nvidiactl");
}

static void this_machine_is_read_without_a_sysroot(void **state)
{
  (void)state;
  struct sc_host *host = NULL;
  struct sc_error err = {0};
  assert_int_equal(sc_host_read("", &host, &err), SC_OK);
  assert_non_null(host->kernel);
  assert_non_null(host->cpus_allowed);
  assert_true(host->has_memory_available);
  sc_host_free(host);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)
  const struct CMUnitTest tests[] = {
      TEST(an_empty_tree_gives_no_facts),
      TEST(a_bare_metal_host_is_described),
      TEST(the_open_kernel_module_is_told_apart),
      TEST(an_arm_host_without_a_model_name_repeats_its_numbers),
      TEST(guests_are_named_by_firmware_and_else_called_other),
      TEST(wsl_is_seen_by_its_device_or_its_kernel),
      TEST(containers_are_named),
      TEST(a_cgroup_v2_quota_is_the_smallest_on_the_way_up),
      TEST(a_container_sees_its_quota_at_the_mounts_root),
      TEST(a_group_without_a_cpu_file_sets_no_quota),
      TEST(a_cgroup_v1_quota_is_read_below_the_mounts_root),
      TEST(several_governors_are_all_named),
      TEST(mps_is_running_where_a_program_would_look_for_it),
      TEST(a_pci_link_is_read_whatever_spelling_the_bus_id_has),
      TEST(what_a_pci_device_does_not_say_is_absent),
      TEST(cpu_lists_overlap_or_not),
      TEST(an_nvidia_device_is_found_by_any_of_its_three_signs),
      TEST(this_machine_is_read_without_a_sysroot),
  };
  return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
