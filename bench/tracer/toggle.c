/* SPDX-License-Identifier: Apache-2.0
 * The tracer with a switch in front: one subscription whose callback is, block by block, empty or the tracer's own. A
 * shared library, as the product is, so that thread-local storage and calls cost what they cost there. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/trace.h"
#include "tracer/callback.h"
#include "tracer/cupti.h"
#include "tracer/stacks.h"
#include "tracer/thread.h"
#include "tracer/watch.h"

#include "toggle.h"

static struct sc_cupti cupti;
static struct sc_watch_table table;
static struct sc_writer *writer;
static volatile bool recording;

static void callback(void *user, int domain, uint32_t cbid, const void *data) {
  if (recording)
    sc_callback(user, domain, cbid, data);
}

__attribute__((visibility("default"))) int toggle_begin(const char *path, const void *simulated) {
  struct sc_cupti_failure failure;
  struct sc_error err;
  if (!sc_cupti_bind(&cupti, NULL, simulated, callback, &failure)) {
    fprintf(stderr, "bench: %s\n", failure.sentence);
    return 0;
  }
  if (sc_writer_open(&(struct sc_writer_options){ .path = path, .counts_beyond = true }, &writer, &err) != SC_OK) {
    fprintf(stderr, "bench: %s\n", err.message);
    return 0;
  }
  if (!sc_threads_prepare() || !sc_watch_build(&table, cupti.callback_name, SC_WATCH_BOTH))
    return 0;
  sc_callback_prepare(&cupti, &table, writer, false);
  sc_threads_start(writer, NULL);
  for (unsigned domain = SC_DOMAIN_DRIVER; domain <= SC_DOMAIN_RUNTIME; domain++)
    for (uint32_t cbid = 0; cbid < table.count[domain]; cbid++)
      if (table.of_domain[domain][cbid].action != SC_ACTION_NONE)
        (void)cupti.enable(1, cupti.subscriber, (int)domain, cbid);
  return 1;
}

__attribute__((visibility("default"))) void toggle_set(int on) { recording = on != 0; }

__attribute__((visibility("default"))) int toggle_native(void) {
  sc_stacks_prepare(false, true, writer, NULL);
  if (!sc_stacks_wanted) {
    fprintf(stderr, "bench: no native stacks here: they need libgcc_s.so.1 and glibc 2.35 or newer\n");
    return 0;
  }
  sc_stacks_wanted = false;
  return 1;
}

__attribute__((visibility("default"))) void toggle_stacks(int on) { sc_stacks_wanted = on != 0; }

__attribute__((visibility("default"))) struct toggle_counts toggle_counts(void) {
  const struct sc_trace_live *live = sc_writer_live(writer);
  return (struct toggle_counts){ .taken = __atomic_load_n(&live->stacks, __ATOMIC_RELAXED),
                                 .walked = __atomic_load_n(&live->stack_walks, __ATOMIC_RELAXED),
                                 .missing = __atomic_load_n(&live->stacks_missing, __ATOMIC_RELAXED) };
}
