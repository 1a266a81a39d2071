/* SPDX-License-Identifier: Apache-2.0
 * The CPU quota of this process's control group: the smallest one on the way from the group to the root that can be
 * seen. */
#include <stdlib.h>
#include <string.h>

#include "host/internal.h"

/* Whether text, a comma-separated list, holds word. */
static bool list_has(const char *text, const char *word)
{
  size_t length = strlen(word);
  for (const char *at = text; at; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
      return true;
  }
  return false;
}

/* The group's path in one hierarchy, from /proc/self/cgroup ("0::/a/b" or "4:cpu,cpuacct:/a/b"); a new string or NULL.
 */
static char *group_path(const char *cgroup, bool v2)
{
  char *copy = sc_strdup(cgroup), *cursor = copy, *path = NULL;
  for (char *line; !path && (line = sc_next_line(&cursor));) {
    char *id = strsep(&line, ":"), *controllers = line ? strsep(&line, ":") : NULL;
    if (!line)
      continue;
    if (v2 ? strcmp(id, "0") == 0 && !*controllers : list_has(controllers, "cpu"))
      path = sc_strdup(line);
  }
  free(copy);
  return path;
}

/* Where the hierarchy is mounted and which of its folders is the mount's root, from /proc/self/mountinfo. */
struct mount {
  char *point, *root;
};

static bool find_mount(const char *mountinfo, bool v2, struct mount *mount)
{
  char *copy = sc_strdup(mountinfo), *cursor = copy;
  bool found = false;
  for (char *line; !found && (line = sc_next_line(&cursor));) {
    char *tail = strstr(line, " - ");
    if (!tail)
      continue;
    *tail = '\0';
    tail += 3;
    char *type = strsep(&tail, " ");
    if (tail)
      strsep(&tail, " "); /* the source */
    if (v2 ? strcmp(type, "cgroup2") != 0 : strcmp(type, "cgroup") != 0 || !tail || !list_has(tail, "cpu"))
      continue;
    char *fields[5] = {NULL}; /* id, parent, device, root, mount point */
    for (size_t i = 0; i < SC_COUNTOF(fields) && line; ++i)
      fields[i] = strsep(&line, " ");
    if (!fields[4])
      continue;
    mount->root = sc_strdup(fields[3]);
    mount->point = sc_strdup(fields[4]);
    found = mount->root && mount->point;
  }
  free(copy);
  return found;
}

/* One folder's quota in CPUs. SC_HOST_NO: it sets none. */
static enum sc_host_answer folder_quota(const char *sysroot, const char *folder, bool v2, double *cpus)
{
  char *quota = host_file(sysroot, v2 ? "%s/cpu.max" : "%s/cpu.cfs_quota_us", folder), *period_text = NULL,
       *rest = quota;
  enum sc_host_answer answer = SC_HOST_UNKNOWN;
  double amount, period;
  if (!quota)
    return SC_HOST_UNKNOWN;
  if (v2) {
    strsep(&rest, " ");
    period_text = sc_strdup(rest);
  } else {
    period_text = host_file(sysroot, "%s/cpu.cfs_period_us", folder);
  }
  if (strcmp(quota, "max") == 0 || strcmp(quota, "-1") == 0) {
    answer = SC_HOST_NO;
  } else if (period_text && sc_parse_double(quota, &amount) && sc_parse_double(period_text, &period) && amount > 0 &&
             period > 0) {
    *cpus = amount / period;
    answer = SC_HOST_YES;
  }
  free(quota);
  free(period_text);
  return answer;
}

static void note(struct sc_host *host, enum sc_host_answer answer, double cpus)
{
  if (answer == SC_HOST_YES && (host->cpu_quota_set != SC_HOST_YES || cpus < host->cpu_quota)) {
    host->cpu_quota_set = SC_HOST_YES;
    host->cpu_quota = cpus;
  } else if (answer == SC_HOST_NO && host->cpu_quota_set == SC_HOST_UNKNOWN) {
    host->cpu_quota_set = SC_HOST_NO;
  }
}

/* From the group's folder up to the mount point. */
static void walk(const char *sysroot, const struct mount *mount, const char *path, bool v2, struct sc_host *host)
{
  size_t root = strlen(mount->root);
  if (strcmp(mount->root, "/") != 0 && strncmp(path, mount->root, root) == 0 && (path[root] == '/' || !path[root]))
    path += root;
  if (strncmp(path, "/..", 3) == 0) /* the group lies outside of the namespace that is mounted here */
    path = "";
  char *folder = sc_asprintf("%s%s", mount->point, strcmp(path, "/") == 0 ? "" : path);
  if (!folder)
    return;
  size_t top = strlen(mount->point);
  /* A group without a file of its own sets no quota, but only if the group can be seen at all. */
  if (host_exists(sysroot, "%s/cgroup.procs", folder))
    note(host, SC_HOST_NO, 0);
  for (;;) {
    double cpus = 0;
    enum sc_host_answer answer = folder_quota(sysroot, folder, v2, &cpus);
    note(host, answer, cpus);
    char *slash = strrchr(folder, '/');
    if (strlen(folder) <= top || !slash)
      break;
    *slash = '\0';
  }
  free(folder);
}

void host_read_quota(const char *sysroot, struct sc_host *host)
{
  char *cgroup = host_file(sysroot, "/proc/self/cgroup"), *mountinfo = host_file(sysroot, "/proc/self/mountinfo");
  for (int v2 = 0; cgroup && mountinfo && v2 < 2; ++v2) {
    struct mount mount = {NULL, NULL};
    char *path = group_path(cgroup, v2);
    if (path && find_mount(mountinfo, v2, &mount))
      walk(sysroot, &mount, path, v2, host);
    free(path);
    free(mount.point);
    free(mount.root);
  }
  free(cgroup);
  free(mountinfo);
}
