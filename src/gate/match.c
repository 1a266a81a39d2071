/* SPDX-License-Identifier: Apache-2.0
 * Patterns over sites, ranges, threads and processes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/judge.h"

static bool match_both(const char *pattern, const char *file, const char *suffix)
{
  if (!suffix)
    return sc_match(pattern, file);
  char *text = sc_asprintf("%s:%s", file, suffix);
  bool found = text && sc_match(pattern, text);
  free(text);
  return found;
}

static bool match_frame(const struct sc_process *process, const struct sc_frame *frame, const char *pattern)
{
  const char *relative = frame->file ? sc_process_file(process, frame->file) : NULL;
  const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;
  const char *const files[] = {relative, slash ? slash + 1 : NULL};
  char line[24];
  snprintf(line, sizeof line, "%" PRIu64, frame->line);
  if (frame->function && sc_match(pattern, frame->function))
    return true;
  for (size_t i = 0; i < SC_COUNTOF(files); ++i) {
    if (files[i] && (match_both(pattern, files[i], NULL) || match_both(pattern, files[i], line) ||
                     (frame->function && match_both(pattern, files[i], frame->function))))
      return true;
  }
  return false;
}

bool sc_gate_site_matches(const struct sc_process *process, const struct sc_site *site, const char *pattern)
{
  const struct sc_frame *frame = sc_site_frame(site);
  return (site->id && sc_match(pattern, site->id)) || (site->api && sc_match(pattern, site->api)) ||
         (frame && match_frame(process, frame, pattern));
}

bool range_matches(const struct sc_range_findings *range, const char *pattern)
{
  return sc_match(pattern, strchr(pattern, '/') ? range->path : range->name);
}

bool thread_matches(const struct sc_thread_findings *thread, const char *pattern)
{
  char number[24];
  snprintf(number, sizeof number, "%" PRIu64, thread->tid);
  return sc_match(pattern, number) || (thread->name && sc_match(pattern, thread->name));
}

bool process_matches(const struct sc_process *process, const struct sc_gate_expectation *e)
{
  char number[24];
  snprintf(number, sizeof number, "%" PRIu64, process->pid);
  if (e->rank && !(process->rank && sc_match(e->rank, process->rank)))
    return false;
  return !e->process || sc_match(e->process, number) || (process->command && sc_match(e->process, process->command));
}

size_t *range_parents(const struct sc_process *process)
{
  size_t *parents = sc_calloc_array(process->range_count + 1, sizeof *parents);
  for (size_t i = 0; parents && i < process->range_count; ++i) {
    size_t above = i ? i - 1 : SC_NOWHERE; /* parents stand before their children */
    while (above != SC_NOWHERE && process->ranges[above].depth >= process->ranges[i].depth)
      above = parents[above];
    parents[i] = above;
  }
  return parents;
}
