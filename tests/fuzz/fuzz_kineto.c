/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: PyTorch profiler traces, from the bytes of the JSON to the findings. The bytes come in pieces whose size
 * follows from how many there are, so that tokens are cut everywhere. */
#include <stdlib.h>
#include <string.h>

#include "import/kineto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
  const uint8_t *bytes;
  size_t size, at, step;
};

static ptrdiff_t read_source(void *context, void *bytes, size_t size, struct sc_error *err)
{
  struct source *s = context;
  size_t n = s->size - s->at < s->step ? s->size - s->at : s->step;
  (void)err;
  if (n > size)
    n = size;
  memcpy(bytes, s->bytes + s->at, n);
  s->at += n;
  return (ptrdiff_t)n;
}

/* What must hold of whatever was found. */
static void check(const struct sc_findings *findings)
{
  for (size_t i = 0; i < findings->process_count; ++i) {
    const struct sc_process *process = &findings->processes[i];
    uint64_t by_class = 0, by_site = 0;
    for (size_t c = 0; c < SC_CLASS_COUNT; ++c)
      by_class += process->counts.by_class[c];
    for (size_t s = 0; s < process->site_count; ++s)
      by_site += process->sites[s].kind == SC_SITE_SYNC ? process->sites[s].count : 0;
    if (by_class != process->counts.syncs || by_site != process->counts.syncs)
      abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct source source = {.bytes = data, .size = size, .step = size % 97 + 1};
  struct sc_error err = {0};
  struct sc_findings *findings = sc_findings_new();
  if (!findings)
    return 0;
  if (sc_kineto_read(read_source, &source, "fuzz.json", NULL, findings, &err) == SC_OK)
    check(findings);
  else if (err.status == SC_OK || !err.message[0])
    abort(); /* a failure says why */
  sc_findings_free(findings);
  return 0;
}
