/* SPDX-License-Identifier: Apache-2.0
 * A made-up program: copies and waits in layers, an event wait, a poll, a device synchronise. */
#include "programs.h"

#include <stdio.h>
#include <string.h>

#include "../analysis/feed.h"

static void one_layer(struct feed *f, uint64_t i, const char *name)
{
  feed_push(f, "synccount", name ? name : i % 2 ? "layer:1" : "layer:0");
  feed_launches(f, 3);
  D2H_PINNED(f, S1);
  D2H_PINNED(f, S1);
  f->now_ns += 4000;
  CALL(f, "cudaStreamSynchronize_v3020", .stream = S1, .duration_ns = 9000 + 1000 * (i % 7));
  if (i % 5 == 0) {
    CALL(f, "cudaEventQuery_v3020", .object = EVENT, .status = 600, .bytes = 3);
    CALL(f, "cudaEventQuery_v3020", .object = EVENT, .duration_ns = 500);
  }
  if (i % 11 == 0)
    CALL(f, "cudaDeviceSynchronize_v3020", .duration_ns = 250000);
  f->now_ns += 20000 + 700 * (i % 13);
  feed_pop(f, "synccount");
}

static struct sc_findings *end_program(struct feed *f)
{
  struct sc_findings *findings = f->findings;
  sc_analysis_free(f->analysis);
  return findings;
}

struct sc_findings *model_findings(void)
{
  static char names[4][10][40]; /* they outlive the feed */
  struct feed f;

  feed_open(&f);
  for (int layer = 0; layer < 4; layer++) {
    snprintf(names[layer][8], sizeof names[layer][8], "layers.%d", layer);
    snprintf(names[layer][9], sizeof names[layer][9], "layers.%d.moe", layer);
    feed_push(&f, "synccount.torch", names[layer][8]);
    feed_push(&f, "synccount.torch", names[layer][9]);
    D2H_PINNED(&f, S1);
    CALL(&f, "cudaStreamSynchronize_v3020", .stream = S1, .duration_ns = 9000);
    for (int expert = 0; expert < 8; expert++) {
      snprintf(names[layer][expert], sizeof names[layer][expert], "layers.%d.moe.experts.%d", layer, expert);
      feed_push(&f, "synccount.torch", names[layer][expert]);
      feed_launches(&f, 3);
      feed_pop(&f, "synccount.torch");
    }
    feed_pop(&f, "synccount.torch");
    feed_pop(&f, "synccount.torch");
  }
  feed_end(&f);
  return end_program(&f);
}

struct sc_findings *program_findings(uint64_t syncs, unsigned threads, const char *name)
{
  const struct sc_analysis_options options = {.events = true};
  struct feed f;

  feed_open_as(&f, &options);
  for (unsigned thread = 1; thread <= threads; thread++) {
    feed_thread(&f, thread);
    f.now_ns = 1000000 * thread;
    const char *title = name ? name : thread == 1 ? "python" : "pt_autograd_0";
    assert_true(sc_analysis_thread_name(f.thread, title, strlen(title)));
    feed_start(&f, thread, "", name ? name : "epoch");
    for (uint64_t i = 0; i < syncs / threads; i++)
      one_layer(&f, i, name);
    feed_stop(&f, thread);
  }
  feed_end(&f);
  struct sc_process *p = &f.findings->processes[0];
  p->pid = 4242;
  p->command = sc_strdup(name ? name : "python train.py");
  p->ended_cleanly = true;
  return end_program(&f);
}
