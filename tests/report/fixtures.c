/* SPDX-License-Identifier: Apache-2.0
 * Hand-built findings for the writers' tests. */
#include "fixtures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

enum { LAYERS = 8, FORWARDS = 3 };

static void *must(void *pointer)
{
  assert_non_null(pointer);
  return pointer;
}

static char *dup(const char *text) { return must(sc_strdup(text)); }

/* Without the tool's own version, which changes with every release. */
static struct sc_findings *new_findings(void)
{
  struct sc_findings *f = must(sc_findings_new());

  free(f->version);
  f->version = dup("1.2.3-test");
  return f;
}

static void add_ruler(struct sc_findings *f, const char *method, double p50)
{
  struct sc_ruler_row *row = must(sc_array_push(&f->ruler, &f->ruler_count, &f->ruler_cap, sizeof *row));

  *row = (struct sc_ruler_row){.method = dup(method),
                               .samples = 5000,
                               .blocks = 12,
                               .min_us = 0.9 * p50,
                               .p10_us = 0.95 * p50,
                               .p50_us = p50,
                               .mean_us = 1.05 * p50,
                               .p90_us = 1.15 * p50,
                               .p99_us = 1.7 * p50};
  row->block_means_us = must(sc_calloc_array(12, sizeof *row->block_means_us));
  for (int i = 0; i < 12; i++)
    row->block_means_us[i] = p50 * (1.0 + 0.01 * (i % 3));
}

static void add_rulers(struct sc_findings *f)
{
  add_ruler(f, "launch+readback", 10.21);
  add_ruler(f, "launch", 3.51);
  add_ruler(f, "readback", 6.99);
  add_ruler(f, "memcpy-pageable", 7.85);
  add_ruler(f, "memcpy-pinned", 7.04);
  add_ruler(f, "stream-sync-idle", 0.5);
  add_ruler(f, "event-spin", 9.06);
  add_ruler(f, "event-block", 26.55);
  add_ruler(f, "mapped-spin", 7.1);
}

static void add_fields(struct sc_findings *f)
{
  assert_true(sc_findings_text(f, "host", "cpu", "Intel Xeon Platinum 8480+"));
  assert_true(sc_findings_text(f, "host", "kernel", "Linux 6.18"));
  assert_true(sc_findings_text(f, "host", "virtualization", "kvm"));
  assert_true(sc_findings_text(f, "host", "container", "docker"));
  assert_true(sc_findings_text(f, "host", "driver", "580.159.04"));
  assert_true(sc_findings_text(f, "host", "cuda", "13.0"));
  assert_true(sc_findings_number(f, "host", "cupti", 130001));
  assert_true(sc_findings_text(f, "host.pcie", "link_speed", "16.0 GT/s"));
  assert_true(sc_findings_number(f, "host.pcie", "link_width", 16));
  assert_true(sc_findings_number(f, "host.pcie", "generation", 4));
  assert_true(sc_findings_text(f, "host.pcie", "max_link_speed", "32.0 GT/s"));
  assert_true(sc_findings_number(f, "host.pcie", "max_link_width", 16));
  assert_true(sc_findings_text(f, "device", "name", "NVIDIA H200"));
  assert_true(sc_findings_number(f, "device", "ordinal", 0));
  assert_true(sc_findings_text(f, "device", "compute_capability", "9.0"));
  assert_true(sc_findings_number(f, "conditions", "gpu_numa_node", 0));
  assert_true(sc_findings_text(f, "conditions", "gpu_numa_cpus", "0-15"));
  assert_true(sc_findings_bool(f, "conditions", "gpu_numa_allowed", true));
  assert_true(sc_findings_number(f, "conditions", "cgroup_cpu_quota", 15.5));
  assert_true(sc_findings_text(f, "conditions", "governor", NULL));
  assert_true(sc_findings_bool(f, "conditions", "smt", false));
  assert_true(sc_findings_bool(f, "conditions", "mps", false));
  assert_true(sc_findings_number(f, "conditions", "sm_clock_before", 345e6));
  assert_true(sc_findings_number(f, "device", "sm_clock_max", 1980e6));
}

/* by_op, by_expert and by_expert_op of the masked loop: any for every expert, the other two for those that are hit. */
static void fill_masked(struct sc_run *run)
{
  static const char *const ops[] = {"any", "nonzero", "mask-index"};

  run->by_op_count = 3;
  run->by_op = must(sc_calloc_array(3, sizeof *run->by_op));
  run->by_expert = must(sc_calloc_array(run->experts, sizeof *run->by_expert));
  run->by_expert_op = must(sc_calloc_array(run->experts, sizeof *run->by_expert_op));
  run->by_layer_expert = must(sc_calloc_array(run->layers, sizeof *run->by_layer_expert));
  run->by_layer_outside = must(sc_calloc_array(run->layers, sizeof *run->by_layer_outside));
  for (uint64_t layer = 0; layer < run->layers; layer++)
    run->by_layer_expert[layer] = must(sc_calloc_array(run->experts, sizeof **run->by_layer_expert));
  for (size_t op = 0; op < 3; op++)
    run->by_op[op].name = dup(ops[op]);
  for (uint64_t e = 0; e < run->experts; e++) {
    run->by_expert_op[e] = must(sc_calloc_array(3, sizeof **run->by_expert_op));
    for (uint64_t layer = 0; layer < run->layers; layer++) {
      bool hit = e < run->hit[layer];

      for (size_t op = 0; op < 3; op++) {
        uint64_t n = op == 0 || hit ? run->forwards : 0;

        run->by_expert_op[e][op] += n;
        run->by_expert[e] += n;
        run->by_layer_expert[layer][e] += n;
        run->by_op[op].count += n;
      }
    }
  }
}

static void fill_counts(struct sc_run *run, bool masked, bool fused)
{
  uint64_t total = 0;

  run->per_layer_min = UINT64_MAX;
  for (uint64_t layer = 0; layer < run->layers; layer++) {
    uint64_t n = masked ? run->experts + 2 * run->hit[layer] : fused ? 0 : 1;

    total += n;
    run->per_layer_min = n < run->per_layer_min ? n : run->per_layer_min;
    run->per_layer_max = n > run->per_layer_max ? n : run->per_layer_max;
  }
  run->counted = true;
  run->exact = true;
  run->per_forward = (double)total;
  run->per_layer_mean = (double)total / (double)run->layers;
  run->expected_per_layer = run->per_layer_mean;
  run->bound_per_layer = masked ? 3.0 * (double)run->experts : NAN;
  run->counts = (struct sc_counts){.syncs = total * FORWARDS,
                                   .read_backs = total * FORWARDS,
                                   .launches = 40 * total,
                                   .submissions = 43 * total,
                                   .api_calls = 46 * total,
                                   .d2h_copies = total * FORWARDS,
                                   .wait_ns = 7000 * total * FORWARDS};
  run->counts.by_class[masked ? SC_CLASS_EXPLICIT : SC_CLASS_PAGEABLE] = total * FORWARDS;
}

/* hit: the experts that get tokens in every layer. */
static struct sc_run *add_run(struct sc_findings *f, const char *variant, uint64_t experts, uint64_t tokens,
                              uint64_t hit)
{
  struct sc_run *run = must(sc_array_push(&f->runs, &f->run_count, &f->run_cap, sizeof *run));
  bool masked = strcmp(variant, "masked") == 0, fused = strcmp(variant, "fused-nvfp4") == 0;

  sc_run_init(run);
  run->variant = dup(variant);
  run->experts = experts;
  run->tokens = tokens;
  run->top_k = 1;
  run->hidden = 512;
  run->intermediate = 1408;
  run->layers = run->model_layers = LAYERS;
  run->forwards = FORWARDS;
  run->dtype = dup("fp32");
  run->routing = dup("router");
  run->activation = dup("silu");
  run->hit = must(sc_calloc_array(LAYERS, sizeof *run->hit));
  for (int i = 0; i < LAYERS; i++)
    run->hit[i] = hit;
  run->verified = true;
  run->cosine = 0.99999999;
  run->rel_error = masked ? 2.1e-7 : 2.3e-7;
  run->verified_tokens = 16;
  fill_counts(run, masked, fused);
  if (masked) {
    fill_masked(run);
  } else if (fused) {
    run->counts.launches = 7 * run->layers * FORWARDS;
    run->act_quant = dup("w4a4");
    run->nvfp4_path = dup("portable");
    run->not_comparable = dup("NVFP4 rounds weights and activations");
    run->cosine = 0.9999871;
    run->rel_error = 3.1e-5;
  } else {
    run->by_op_count = 1;
    run->by_op = must(sc_calloc_array(1, sizeof *run->by_op));
    run->by_op[0].name = dup("bounds");
    run->by_op[0].count = run->outside_experts = run->counts.syncs;
    run->output_matches_masked = 1;
  }
  run->floor_mean_us = run->per_forward * 10.72;
  run->floor_low_us = run->per_forward * 10.21;
  run->floor_high_us = run->per_forward * 10.41;
  run->floor_blocks = 12;
  run->forward_p50_us = masked  ? 2900.0 * (double)experts
                        : fused ? 900.0 + 100.0 * (double)experts
                                : 2000.0 + 800.0 * (double)experts;
  run->forward_p10_us = 0.98 * run->forward_p50_us;
  run->forward_p90_us = 1.04 * run->forward_p50_us;
  run->forward_samples = 20;
  return run;
}

static void add_costs(struct sc_findings *f, uint64_t experts, double marginal)
{
  struct sc_marginal *m = must(sc_array_push(&f->marginal, &f->marginal_count, &f->marginal_cap, sizeof *m));
  struct sc_control *c = must(sc_array_push(&f->controls, &f->control_count, &f->control_cap, sizeof *c));

  *m = (struct sc_marginal){
      .experts = experts, .tokens = 4096, .mean_us = marginal, .low_us = 0.9 * marginal, .high_us = 1.1 * marginal};
  *c = (struct sc_control){.experts = experts,
                           .tokens = 4096,
                           .dense_us = 3100,
                           .sorted_us = 2000.0 + 800.0 * (double)experts,
                           .masked_us = 2900.0 * (double)experts,
                           .step_count = 4};
  c->steps = must(sc_calloc_array(4, sizeof *c->steps));
  for (uint64_t i = 0; i < 4; i++) {
    c->steps[i].syncs = i * experts * LAYERS;
    c->steps[i].p50_us = c->sorted_us + marginal * (double)c->steps[i].syncs;
  }
}

static void add_law(struct sc_findings *f, const char *variant, bool stated, double slope, double intercept,
                    const char *text)
{
  struct sc_law *law = must(sc_array_push(&f->laws, &f->law_count, &f->law_cap, sizeof *law));

  *law = (struct sc_law){
      .variant = dup(variant), .stated = stated, .slope = slope, .intercept = intercept, .text = dup(text)};
}

struct sc_findings *fixture_full(void)
{
  struct sc_findings *f = new_findings();

  add_rulers(f);
  add_fields(f);
  for (uint64_t experts = 4; experts <= 16; experts *= 2) {
    add_run(f, "masked", experts, 4096, experts);
    add_run(f, "sorted", experts, 4096, experts);
    add_run(f, "fused-nvfp4", experts, 4096, experts);
    add_costs(f, experts, experts == 16 ? 21.4 : 9.8);
  }
  add_law(f, "masked", true, 3, 0, "3.00 E + 0");
  add_law(f, "sorted", true, 0, 1, "0.00 E + 1");
  add_law(f, "fused-nvfp4", true, 0, 0, "0.00 E + 0");
  return f;
}

struct sc_findings *fixture_minimal(void) { return new_findings(); }

static void add_assumed(struct sc_findings *f, const double *values, size_t n)
{
  f->assumed_us = must(sc_calloc_array(n, sizeof *f->assumed_us));
  f->assumed_count = n;
  memcpy(f->assumed_us, values, n * sizeof *values);
  for (size_t i = 0; i < f->run_count; i++) {
    f->runs[i].assumed_floor_us = must(sc_calloc_array(n, sizeof *values));
    for (size_t k = 0; k < n; k++)
      f->runs[i].assumed_floor_us[k] = f->runs[i].per_forward * values[k];
  }
}

struct sc_findings *fixture_simulated(void)
{
  struct sc_findings *f = fixture_full();

  f->simulated = true;
  add_assumed(f, (const double[]){120}, 1);
  return f;
}

struct sc_findings *fixture_not_verified(void)
{
  struct sc_findings *f = fixture_full();

  for (size_t i = 0; i < f->run_count; i++) {
    if (strcmp(f->runs[i].variant, "sorted") != 0)
      continue;
    f->runs[i].verified = false;
    f->runs[i].rel_error = 0.31;
    f->runs[i].not_verified = dup("relative error 0.31, at most 1e-05 is allowed");
  }
  return f;
}

struct sc_findings *fixture_lost(void)
{
  struct sc_findings *f = fixture_full();

  f->lost_records = 1234;
  f->lost_chunks = 2;
  assert_true(sc_findings_warn(f, "the disk was full: recording stopped after 4,096 records"));
  return f;
}

struct sc_findings *fixture_hit(void)
{
  struct sc_findings *f = new_findings();
  struct sc_run *run;

  add_rulers(f);
  add_run(f, "masked", 4, 1, 1);
  run = add_run(f, "masked", 8, 1, 1);
  run->per_layer_max = 11;
  run->per_forward = 81;
  run->counts.syncs = 243;
  run->exact = false;
  run = add_run(f, "sorted", 8, 1, 1);
  run->output_matches_masked = -1;
  run->not_comparable = dup("hidden is no multiple of 4");
  add_law(f, "masked", false, NAN, NAN, "no single law: hit < E at E = 4, 8");
  return f;
}

struct sc_findings *fixture_assumed(void)
{
  struct sc_findings *f = fixture_full();

  add_assumed(f, (const double[]){26, 116}, 2);
  return f;
}

struct sc_findings *fixture_ruler(void)
{
  struct sc_findings *f = new_findings();

  add_rulers(f);
  add_fields(f);
  return f;
}

/* ---- a traced program ---------------------------------------------------------------------------- */

static struct sc_range_findings *add_range(struct sc_process *p, const char *path, const char *level, uint64_t depth,
                                           uint64_t occurrences, uint64_t each, uint64_t self)
{
  struct sc_range_findings *r = must(sc_array_push(&p->ranges, &p->range_count, &p->range_cap, sizeof *r));
  const char *slash = strrchr(path, '/');

  *r = (struct sc_range_findings){.path = dup(path),
                                  .name = dup(slash ? slash + 1 : path),
                                  .domain = dup("synccount"),
                                  .level = sc_strdup(level),
                                  .depth = depth,
                                  .occurrences = occurrences,
                                  .min = each,
                                  .max = each,
                                  .median = (double)each};
  r->total.syncs = r->total.by_class[SC_CLASS_EXPLICIT] = each * occurrences;
  r->self.syncs = r->self.by_class[SC_CLASS_EXPLICIT] = self * occurrences;
  r->total.wait_ns = 7000 * each * occurrences;
  r->total.launches = 20 * each * occurrences;
  return r;
}

static void add_layer_ranges(struct sc_process *p, int layer, uint64_t experts)
{
  char path[96];

  snprintf(path, sizeof path, "forward/layer:%d", layer);
  add_range(p, path, "layer", 1, 40, 3 * experts, 0);
  for (uint64_t e = 0; e < experts; e++) {
    static const char *const ops[] = {"any", "nonzero", "mask-index"};

    snprintf(path, sizeof path, "forward/layer:%d/expert:%d", layer, (int)e);
    add_range(p, path, "expert", 2, 40, 3, 0);
    for (size_t op = 0; op < 3; op++) {
      snprintf(path, sizeof path, "forward/layer:%d/expert:%d/%s", layer, (int)e, ops[op]);
      add_range(p, path, "op", 3, 40, 1, 1);
    }
  }
}

static void add_thread(struct sc_process *p, uint64_t tid, const char *name, uint64_t syncs)
{
  struct sc_thread_findings *t = must(sc_array_push(&p->threads, &p->thread_count, &p->thread_cap, sizeof *t));

  *t = (struct sc_thread_findings){.tid = tid,
                                   .serial = p->thread_count,
                                   .name = dup(name),
                                   .launches = 20 * syncs,
                                   .syncs = syncs,
                                   .poll_waits = 1,
                                   .wait_us = 7.0 * (double)syncs,
                                   .wall_us = 2e6};
}

static void set(char **place, const char *text)
{
  free(*place);
  *place = dup(text);
}

static struct sc_site *add_site(struct sc_process *p)
{
  struct sc_site *s = must(sc_array_push(&p->sites, &p->site_count, &p->site_cap, sizeof *s));

  *s = (struct sc_site){.id = dup("9f1c22d0"),
                        .api = dup("cudaStreamSynchronize"),
                        .pattern = dup("scalar read-back"),
                        .remedy = dup("keep the value on the device"),
                        .range = dup("forward/layer:0"),
                        .direction = dup("device-to-host"),
                        .memory = dup("pinned"),
                        .cls = SC_CLASS_EXPLICIT,
                        .count = 3840,
                        .bytes = 1,
                        .per_step = 96,
                        .wait_p50_us = 6.9,
                        .wait_total_us = 26880,
                        .drain_gap_p50_us = NAN,
                        .drain_gap_total_us = NAN};
  s->python = must(sc_calloc_array(1, sizeof *s->python));
  s->python_count = 1;
  s->python[0] = (struct sc_frame){.file = dup("model/moe.py"), .function = dup("forward"), .line = 163};
  return s;
}

struct sc_findings *fixture_process(void)
{
  struct sc_findings *f = new_findings();
  struct sc_process *p = must(sc_findings_process(f));

  p->host = dup("gpu-1");
  p->command = dup("python train.py --epochs 1");
  p->rank = dup("3");
  p->pid = 4242;
  p->wall_us = 2.4e6;
  p->ended_cleanly = true;
  p->start_cost_us = 13000;
  p->call_cost_us = 0.5;
  p->launch_cost_us = 0.25;
  p->counts = (struct sc_counts){.syncs = 3842,
                                 .read_backs = 3840,
                                 .idle_syncs = 2,
                                 .poll_waits = 3,
                                 .uncertain = 1,
                                 .failed = 0,
                                 .lifecycle = 2,
                                 .launches = 76800,
                                 .submissions = 81000,
                                 .d2h_copies = 3840,
                                 .api_calls = 85012,
                                 .wait_ns = 26894000};
  p->counts.by_class[SC_CLASS_EXPLICIT] = 3840;
  p->counts.by_class[SC_CLASS_PAGEABLE] = 2;
  add_thread(p, 4242, "python", 3840);
  add_thread(p, 4250, "pt_autograd_0", 2);
  add_thread(p, 4251, "silent", 0);
  p->threads[2].poll_waits = 0;
  add_range(p, "forward", NULL, 0, 40, 96, 0);
  for (int layer = 0; layer < LAYERS; layer++)
    add_layer_ranges(p, layer, 4);
  add_site(p);
  p->has_steps = true;
  p->steps = 40;
  p->warmup = 2;
  p->step_min = p->step_max = 96;
  p->step_median = 96;
  return f;
}

struct sc_findings *fixture_traced(void)
{
  static const struct {
    const char *api, *pattern, *remedy, *direction, *memory, *file, *function;
    uint64_t line, count, bytes, read_backs, uploads;
    enum sc_class cls;
    enum sc_site_kind kind;
    double per_step, p50_us;
  } sites[] = {
      {"cudaMemcpyAsync", ".tolist(), .cpu()", "Copy once into pinned memory, or do without.", "device-to-host", "pageable",
       "/srv/a-rather-long-project-name/models/mixture_of_experts/dispatch_layers.py",
       "SortedDispatchMoE.forward_with_capacity", 1167, 380, 64, 380, 0, SC_CLASS_PAGEABLE, SC_SITE_SYNC, 10, 1280.4},
      {"cudaStreamSynchronize", "scalar read-back", "Keep the decision on the device.", "device-to-host", "pinned", "train.py",
       "step", 41, 76, 1, 76, 0, SC_CLASS_EXPLICIT, SC_SITE_SYNC, 2, 38.2},
      {"cudaStreamSynchronize", "scalar read-back", "Keep the decision on the device.", "device-to-host", "pinned", "train.py",
       "log", 60, 38, 8, 38, 0, SC_CLASS_EXPLICIT, SC_SITE_SYNC, 1, 8.1},
      {"cudaStreamSynchronize", "blocking upload", "Use pinned memory and do not wait.", "host-to-device", "pageable", "data.py",
       "collate", 9, 38, 4194304, 0, 38, SC_CLASS_EXPLICIT, SC_SITE_SYNC, 1, 410},
      {"cudaEventQuery", "poll loop", "Wait once.", NULL, NULL, "data.py", "ready", 30, 7, 0, 0, 0, SC_CLASS_EXPLICIT,
       SC_SITE_POLL, NAN, 90},
  };
  struct sc_findings *f = fixture_process();
  struct sc_process *p = &f->processes[0];

  add_rulers(f);
  p->counts.blocking_uploads = 38;
  for (size_t i = 0; i < SC_COUNTOF(sites); i++) {
    struct sc_site *s = add_site(p);

    free(s->python[0].file);
    free(s->python[0].function);
    free(s->direction);
    free(s->memory);
    set(&s->api, sites[i].api);
    set(&s->pattern, sites[i].pattern);
    set(&s->remedy, sites[i].remedy);
    s->direction = sites[i].direction ? dup(sites[i].direction) : NULL;
    s->memory = sites[i].memory ? dup(sites[i].memory) : NULL;
    s->python[0] = (struct sc_frame){
        .file = dup(sites[i].file), .function = dup(sites[i].function), .line = sites[i].line, .module = SIZE_MAX};
    s->cls = sites[i].cls;
    s->kind = sites[i].kind;
    s->count = sites[i].count;
    s->bytes = sites[i].bytes;
    s->read_backs = sites[i].read_backs;
    s->blocking_uploads = sites[i].uploads;
    s->per_step = sites[i].per_step;
    s->wait_p50_us = sites[i].p50_us;
    s->wait_total_us = sites[i].p50_us * (double)sites[i].count;
  }
  p->sites[0].read_backs = p->sites[0].count;
  return f;
}

void fixture_add_allowed(struct sc_findings *f)
{
  add_range(&f->processes[0], "synccount.allow:logging", "allow", 0, 40, 0, 0);
}

/* ---- names meant to harm ------------------------------------------------------------------------- */

static void replace(char **slot, const char *name)
{
  free(*slot);
  *slot = dup(name);
}

static void hostile_process(struct sc_process *p, const char *name)
{
  char **slots[] = {&p->host,
                    &p->command,
                    &p->rank,
                    &p->local_rank,
                    &p->threads[0].name,
                    &p->ranges[1].path,
                    &p->ranges[1].name,
                    &p->ranges[1].domain,
                    &p->sites[0].id,
                    &p->sites[0].api,
                    &p->sites[0].pattern,
                    &p->sites[0].remedy,
                    &p->sites[0].range,
                    &p->sites[0].direction,
                    &p->sites[0].memory,
                    &p->sites[0].python[0].file,
                    &p->sites[0].python[0].function};

  for (size_t i = 0; i < SC_COUNTOF(slots); i++)
    replace(slots[i], name);
}

struct sc_findings *fixture_hostile(const char *name)
{
  struct sc_findings *f = fixture_process();
  struct sc_run *run;

  add_rulers(f);
  add_fields(f);
  hostile_process(&f->processes[0], name);
  run = add_run(f, "masked", 4, 4096, 4);
  replace(&run->dtype, name);
  replace(&run->routing, name);
  replace(&run->activation, name);
  replace(&run->by_op[0].name, name);
  run->verified = false;
  run->not_verified = dup(name);
  run = add_run(f, "sorted", 4, 4096, 4);
  replace(&run->variant, name);
  run->output_matches_masked = -1;
  run->not_comparable = dup(name);
  add_ruler(f, name, 1);
  add_law(f, name, false, NAN, NAN, name);
  assert_true(sc_findings_text(f, "host", "cpu", name));
  assert_true(sc_findings_text(f, "conditions", "governor", name));
  assert_true(sc_findings_text(f, "conditions", name, name));
  assert_true(sc_findings_warn(f, "%s", name));
  return f;
}

char *render(const struct sc_findings *findings, const char *format, const struct sc_report_options *options)
{
  const struct sc_report_format *found = sc_report_format_find(format);
  struct sc_out *out = must(sc_out_memory());
  struct sc_error err = {0};
  char *text;

  assert_non_null(found);
  if (sc_report_write(findings, found, options, out, &err) != SC_OK)
    fail_msg("%s: %s", format, err.message);
  text = dup(sc_out_text(out, NULL));
  sc_out_free(out);
  return text;
}
