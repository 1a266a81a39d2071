/* SPDX-License-Identifier: Apache-2.0
 * What a terminal shows: the answer first, within its width, calm without colours, nothing claimed that was not
 * measured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "test_support.h"

static char *text_of(const struct sc_findings *f)
{
  return render(f, "text", &(struct sc_report_options){.width = 100});
}

#define assert_says(text, part)                     \
  do {                                              \
    if (!strstr(text, part))                        \
      fail_msg("missing: %s\nin:\n%s", part, text); \
  } while (0)
#define assert_silent(text, part)                           \
  do {                                                      \
    if (strstr(text, part))                                 \
      fail_msg("not to be there: %s\nin:\n%s", part, text); \
  } while (0)

static void starts_with(const char *text, const char *start)
{
  if (strncmp(text, start, strlen(start)) != 0)
    fail_msg("expected to start with: %s\ngot:\n%.300s", start, text);
}

static void first_lines_are_the_answer(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text = text_of(f);

  (void)state;
  starts_with(text, "A read-back costs 10.2 us on this host (launch 3.5 + copy and wait 6.7).\n"
                    "Masked, E=4: 96 syncs a forward, floor 1.03 ms of 11.6 ms; sorted: 8; fused-nvfp4: 0\n");
  free(text);
  sc_findings_free(f);
}

static void every_table_of_runs_says_what_carries_over(void **state)
{
  struct sc_findings *f = fixture_full();
  static const char line[] = "\nForward times are this C layer's, not PyTorch's: counts carry over, shares do not.\n";
  char *text;

  (void)state;
  f->runs[6].tokens = f->runs[7].tokens = f->runs[8].tokens = 1; /* two token counts: two tables */
  text = text_of(f);
  assert_says(text, line);
  assert_says(strstr(text, line) + 1, line);
  assert_says(text,
              "\n4096 tokens, top-1, hidden 512, intermediate 1408, 8 layers, fp32, silu, routing: router, seed 0\n");
  assert_says(text, "\n1 token, top-1,");
  assert_says(text, "Masked, E=16, 1 token: 384 syncs a forward");
  free(text);
  sc_findings_free(f);
}

static void fewer_layers_than_the_model_has_are_named(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text;

  (void)state;
  for (size_t i = 0; i < f->run_count; i++)
    f->runs[i].model_layers = 32;
  text = text_of(f);
  assert_says(text, "8 of 32 layers run");
  free(text);
  sc_findings_free(f);
}

static void simulated_comes_first_and_no_speed_is_printed(void **state)
{
  static const char *const speeds[] = {"A read-back costs", "11.6 ms",    "10.2", "Ruler",
                                       "Marginal",          "From dense", "p50",  "DRIFT"};
  struct sc_findings *f = fixture_simulated();
  char *text;

  (void)state;
  f->ruler[0].block_means_us[0] = 100; /* would be a drift */
  text = text_of(f);
  starts_with(text, "SIMULATED");
  for (size_t i = 0; i < SC_COUNTOF(speeds); i++)
    assert_silent(text, speeds[i]);
  assert_says(
      text,
      "Masked, E=4: 96 syncs a forward, floor 11.5 ms if a round trip costs 120 us; sorted: 8; fused-nvfp4:\n  0\n");
  free(text);
  sc_findings_free(f);
}

static void a_simulated_process_shows_counts_and_no_waits(void **state)
{
  struct sc_findings *f = fixture_process();
  char *text;

  (void)state;
  f->processes[0].simulated = true;
  text = text_of(f);
  starts_with(text, "SIMULATED");
  assert_says(text, "3842 syncs");
  assert_silent(text, "wait  ");
  assert_silent(text, "waited");
  assert_silent(text, "26.9 ms");
  free(text);
  sc_findings_free(f);
}

static void not_verified_is_said_at_once_and_its_times_are_omitted(void **state)
{
  struct sc_findings *f = fixture_not_verified();
  char *text = text_of(f), *said = strstr(text, "NOT VERIFIED: sorted, E=4, 4096 tokens: relative error 0.31");

  (void)state;
  assert_non_null(said);
  assert_true(said < strstr(text, "variant"));
  assert_says(text, "omitted");
  assert_silent(text, " 5.20 ms    1.6 %");
  assert_says(text, "sorted: NOT VERIFIED in 3 of 3 configurations");
  assert_says(text, "masked: verified in 3 configurations on 16 tokens");
  free(text);
  sc_findings_free(f);
}

static void a_count_that_differs_from_the_law_is_said_at_once(void **state)
{
  struct sc_findings *f = fixture_hit();
  char *text = text_of(f),
       *said = strstr(text, "UNEXPECTED COUNT: masked, E=8, 1 token: 10 to 11 syncs a layer counted, 10 expected.");

  (void)state;
  assert_non_null(said);
  assert_true(said < strstr(text, "variant"));
  assert_silent(text, "UNEXPECTED COUNT: masked, E=4");
  free(text);
  sc_findings_free(f);
}

static void experts_without_tokens_are_explained(void **state)
{
  struct sc_findings *f = fixture_hit();
  char *text = render(f, "text", &(struct sc_report_options){.width = 120, .per_expert = true});

  (void)state;
  assert_says(text,
              "Masked, E=4: 1 of 4 experts got tokens in a layer; one without costs 1 sync instead of 3: E+2*hit,");
  assert_says(text, "any 32, nonzero 8, mask-index 8, outside experts 0");
  assert_says(text, "     0     24    8        8           8  8 of 8 layers\n");
  assert_says(text, "     1      8    8        0           0      no tokens\n");
  free(text);
  text = text_of(f);
  assert_silent(text, "no tokens");
  free(text);
  sc_findings_free(f);
}

static void losses_make_every_count_a_lower_bound(void **state)
{
  struct sc_findings *f = fixture_lost();
  char *text = text_of(f),
       *said = strstr(text, "LOST: 1234 records and 2 chunks of the trace; every count is a lower bound.");

  (void)state;
  assert_non_null(said);
  assert_true(said < strstr(text, "variant"));
  assert_says(text, "Warnings\n  the disk was full: recording stopped after 4,096 records\n");
  free(text);
  sc_findings_free(f);
}

static void marginal_cost_far_from_the_round_trip_is_said(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text = text_of(f);

  (void)state;
  assert_says(text, "E=16, 4096 tokens: one more sync costs 21.4 us in this layer");
  assert_silent(text, "E=4, 4096 tokens: one more sync costs");
  free(text);
  f->marginal[0].mean_us = 5.0; /* below 10.7 / 1.5 */
  text = text_of(f);
  assert_says(text, "E=4, 4096 tokens: one more sync costs 5.00 us in this layer");
  free(text);
  sc_findings_free(f);
}

static void a_drifting_ruler_is_warned_of(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text = text_of(f);

  (void)state;
  assert_silent(text, "DRIFT");
  free(text);
  for (int i = 8; i < 12; i++)
    f->ruler[0].block_means_us[i] *= 1.5;
  text = text_of(f);
  assert_says(text, "DRIFT: the round trip was 10.3 us in the first third of the run and 15.5 us in the last");
  free(text);
  text = render(f, "json", NULL);
  assert_says(text, "\"DRIFT: the round trip was 10.3 us in");
  free(text);
  sc_findings_free(f);
}

static void assumed_round_trips_add_a_column_each(void **state)
{
  struct sc_findings *f = fixture_assumed();
  char *text = render(f, "text", &(struct sc_report_options){.width = 160});

  (void)state;
  assert_says(text, "equals  floor at  floor at\n");
  assert_says(text, "masked     26 us    116 us\n");
  assert_says(text, "-   2.50 ms   11.1 ms\n");
  free(text);
  /* Too wide for 80: a second part, with the key columns again, and no column is lost. */
  text = render(f, "text", &(struct sc_report_options){.width = 80});
  assert_says(text, "\n\n                 forward  floor's  equals  floor at  floor at\nvariant       E      p50");
  free(text);
  sc_findings_free(f);
}

static void nothing_measured_is_said(void **state)
{
  struct sc_findings *f = fixture_minimal();
  char *text = text_of(f);

  (void)state;
  assert_string_equal(text, "Nothing was measured.\n");
  free(text);
  sc_findings_free(f);
}

static void a_simulated_ruler_is_a_setting(void **state)
{
  struct sc_findings *f = fixture_ruler();
  char *text;

  (void)state;
  f->simulated = true;
  f->assumed_us = calloc(1, sizeof *f->assumed_us);
  assert_non_null(f->assumed_us);
  f->assumed_us[0] = 120;
  f->assumed_count = 1;
  text = text_of(f);
  assert_says(text, "\n\nNothing was measured: the round trip of 120 us is a setting of the simulated device.\n");
  assert_silent(text, "10.2");
  free(text);
  sc_findings_free(f);
}

static void costs_that_could_not_be_fitted_have_no_section(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text;

  (void)state;
  for (size_t i = 0; i < 3; i++) {
    f->marginal[i].mean_us = f->marginal[i].low_us = f->marginal[i].high_us = NAN;
    f->controls[i].dense_us = f->controls[i].sorted_us = f->controls[i].masked_us = NAN;
  }
  text = text_of(f);
  assert_silent(text, "Marginal");
  assert_silent(text, "From dense");
  free(text);
  sc_findings_free(f);
}

static void calls_beside_the_count_of_a_run_are_named(void **state)
{
  struct sc_findings *f = fixture_full();
  char *text;

  (void)state;
  f->runs[0].counts.poll_waits = 2;
  f->runs[0].counts.failed = 1;
  f->runs[1].counts.uncertain = 4;
  text = text_of(f);
  assert_says(text, "\nMasked, E=4: beside the count, in all traced forwards: 2 poll waits, 1 failed\n");
  assert_says(text,
              "\nUNCERTAIN: sorted, E=4, 4096 tokens: 4 copies to memory of unknown kind may or may not have blocked;");
  free(text);
  sc_findings_free(f);
}

static void the_ruler_alone_looks_whole(void **state)
{
  struct sc_findings *f = fixture_ruler();
  char *text = text_of(f);

  (void)state;
  starts_with(text, "A read-back costs 10.2 us on this host (launch 3.5 + copy and wait 6.7).\n\nRuler: ");
  assert_says(text, "launch + 1-byte copy + stream sync: the round trip   9.19   9.70  10.21  11.74  17.36     5000\n");
  assert_says(text, "Host and device\n  synccount: 1.2.3-test\n  CPU: Intel Xeon Platinum 8480+\n");
  assert_says(text, "Conditions known to move the round trip\n  GPU on NUMA node 0; its CPUs: 0-15\n");
  assert_silent(text, "Lost");
  assert_silent(text, "Compared with");
  free(text);
  sc_findings_free(f);
}

static void facts_read_like_facts(void **state)
{
  struct sc_findings *f = fixture_ruler();
  char *text;

  (void)state;
  assert_true(sc_findings_number(f, "device", "total_memory_bytes", 150754820096.0));
  text = text_of(f);
  assert_says(text, "\n  total memory: 140.4 GiB\n");
  assert_says(text, "\n  SM clock at most: 1980 MHz\n");
  assert_says(text,
              "\n  PCIe: 16.0 GT/s x16 (Gen4); the device could do 32.0 GT/s x16 (an idle link may be slowed down)\n");
  assert_silent(text, "max link");
  assert_silent(text, "link width");
  assert_silent(text, "generation");
  assert_says(text, "\n  GPU on NUMA node 0; its CPUs: 0-15\n");
  assert_silent(text, "NUMA allowed");
  assert_says(text, "\n  governor: not known\n  SMT: no\n  MPS: no\n");
  free(text);
  text = render(f, "json", NULL);
  assert_says(text, "\"total_memory_bytes\": 150754820096");
  assert_says(text, "\"max_link_width\": 16");
  assert_says(text, "\"gpu_numa_cpus\": \"0-15\"");
  free(text);
  sc_findings_free(f);
}

static void facts_that_cost_time_say_so(void **state)
{
  struct sc_findings *f = fixture_ruler();
  char *text;

  (void)state;
  assert_true(sc_findings_text(f, "host.pcie", "max_link_speed", "16.0 GT/s"));
  assert_true(sc_findings_bool(f, "conditions", "gpu_numa_allowed", false));
  assert_true(sc_findings_text(f, "conditions", "governor", "powersave"));
  assert_true(sc_findings_bool(f, "conditions", "wsl", true));
  assert_true(sc_findings_bool(f, "conditions", "mps", true));
  assert_true(sc_findings_bool(f, "conditions", "mig", true));
  assert_true(sc_findings_number(f, "conditions", "sim_round_trip_us", 26));
  text = render(f, "text", &(struct sc_report_options){.width = 200});
  assert_says(text, "\n  PCIe: 16.0 GT/s x16 (Gen4)\n");
  assert_says(text, "Conditions known to move the round trip\n"
                    "  GPU on NUMA node 0; this process may run on none of its CPUs: pin it there (numactl -N 0)\n"
                    "  CPU quota of the control group: 15.5 CPUs; a throttled process waits longer\n"
                    "  CPU frequency governor: powersave; 'performance' wakes up faster\n"
                    "  SMT: no\n"
                    "  WSL: each submission crosses the hypervisor, round trips are long\n"
                    "  MPS: a control daemon is running, the GPU may be shared\n"
                    "  MIG: this is a part of a GPU\n"
                    "  SM clock before the run: 345 MHz\n"
                    "  Simulated device: it plays a round trip of 26.0 us\n");
  free(text);
  sc_findings_free(f);
}

/* A report that somebody else wrote or cut: what one fact's sentence would say of another is said by itself. */
static void facts_without_their_neighbours_are_told_plainly(void **state)
{
  struct sc_findings *f = fixture_minimal();
  char *text;

  (void)state;
  assert_true(sc_findings_text(f, "host.pcie", "link_speed", "32.0 GT/s"));
  assert_true(sc_findings_number(f, "host.pcie", "max_link_width", 16));
  assert_true(sc_findings_text(f, "conditions", "gpu_numa_node", "near"));
  assert_true(sc_findings_text(f, "conditions", "gpu_numa_cpus", "0-15"));
  assert_true(sc_findings_text(f, "conditions", "mps", "maybe"));
  assert_true(sc_findings_text(f, "device", "sm_clock_max", "fast"));
  text = text_of(f);
  assert_says(text, "\n  PCIe link speed: 32.0 GT/s\n  PCIe max link width: 16\n");
  assert_says(text, "\n  SM clock max: fast\n");
  assert_says(text, "\n  GPU NUMA node: near\n  GPU NUMA CPUs: 0-15\n  MPS: maybe\n");
  free(text);
  assert_true(sc_findings_number(f, "host.pcie", "link_width", 16));
  assert_true(sc_findings_text(f, "host.pcie", "generation", "fifth"));
  text = text_of(f);
  assert_says(text, "\n  PCIe: 32.0 GT/s x16\n  PCIe generation: fifth\n");
  free(text);
  sc_findings_free(f);
}

static void quiet_is_the_answer_and_what_makes_it_doubtful(void **state)
{
  struct sc_findings *f = fixture_lost();
  char *text = render(f, "text", &(struct sc_report_options){.width = 100, .quiet = true});

  (void)state;
  starts_with(text, "A read-back costs");
  assert_says(text, "LOST: 1234");
  assert_says(text, "Warnings\n");
  assert_silent(text, "variant");
  assert_silent(text, "Ruler");
  free(text);
  sc_findings_free(f);
}

/* ---- processes ------------------------------------------------------------------------------------ */

static void long_lists_end_with_what_was_left_out(void **state)
{
  struct sc_findings *f = fixture_process();
  struct sc_process *p = &f->processes[0];
  char *text;

  (void)state;
  for (size_t i = 0; i < p->range_count; i++) /* no two siblings are alike any more */
    p->ranges[i].total.syncs += i;
  text = text_of(f);
  assert_says(text, "\nand 57 more ranges; JSON has them all.\n"); /* 1 + 8 * 17 of them, 80 are shown */
  free(text);
  sc_findings_free(f);
}

static void equal_ranges_stand_in_one_row(void **state)
{
  struct sc_findings *f = fixture_process();
  char *text = text_of(f);

  (void)state;
  assert_says(text, "\n  layer:0 to 7     12 syncs x 40 each   3840     0  26.9 ms\n");
  assert_says(text, "\n    expert:0 to 3  3 syncs x 40 each    3840     0  26.9 ms\n");
  assert_says(text, "\n      any          1 sync x 40 each     1280  1280  8.96 ms\n");
  free(text);
  sc_findings_free(f);
}

/* Layer 3 has one sync more, in one expert's `any`: it may not hide among its neighbours. */
static void a_range_that_differs_has_its_own_row(void **state)
{
  struct sc_findings *f = fixture_process();
  struct sc_process *p = &f->processes[0];
  char *text;

  (void)state;
  for (size_t i = 0; i < p->range_count; i++) {
    struct sc_range_findings *r = &p->ranges[i];

    if (strcmp(r->path, "forward/layer:3") == 0 || strcmp(r->path, "forward/layer:3/expert:1") == 0 ||
        strcmp(r->path, "forward/layer:3/expert:1/any") == 0) {
      r->max++;
      r->total.syncs++;
    }
  }
  text = text_of(f);
  assert_says(text, "\n  layer:0 to 2 ");
  assert_says(text, "\n  layer:3          12-13 syncs x 40 ");
  assert_says(text, "\n  layer:4 to 7 ");
  assert_says(text, "\n    expert:1 ");
  free(text);
  sc_findings_free(f);
}

static void a_range_that_never_ended_is_not_zero_syncs(void **state)
{
  struct sc_findings *f = fixture_process();
  struct sc_range_findings *r = &f->processes[0].ranges[0];
  char *text;

  (void)state;
  r->median = NAN;
  r->min = r->max = 0;
  r->occurrences = r->unfinished = 1;
  text = text_of(f);
  assert_says(text, "forward            not finished x 1 ");
  free(text);
  sc_findings_free(f);
}

static void what_is_beside_the_count_is_listed(void **state)
{
  struct sc_findings *f = fixture_process();
  char *text;

  (void)state;
  fixture_add_allowed(f);
  text = text_of(f);
  starts_with(text,
              "3842 syncs, 3840 of them read-backs, in process 4242 (python train.py --epochs 1); its threads\n  together waited 26.9 ms.");
  assert_says(text, "  3842 syncs: 3840 explicit, 2 pageable; of them 3840 read-backs, 2 with nothing outstanding\n");
  assert_says(text, "  3 poll waits, 1 uncertain, 0 failed, 2 lifecycle: listed, not in the count\n");
  assert_says(text, "Process 4242 on gpu-1, rank 3: python train.py --epochs 1\n");
  assert_says(text, "  waited 26.9 ms inside them, summed over 2 threads; thread 4242 longest, 26.9 ms, 1.1 % of 2.40 s\n    wall time\n");
  assert_says(text, "  the tracer cost about 23.3 ms: 8212 recorded calls at 500 ns and 76,800 launches at 250 ns");
  assert_says(text, "allowed: logging: no syncs in 40 occurrences; in the count");
  assert_says(text, "  4250  pt_autograd_0      2  14.0 us         0.0 %           1        40\n");
  assert_silent(text, "silent"); /* a thread without syncs, launches and polls */
  assert_says(text, "model/moe.py:163 in forward");
  assert_says(text, "40 steps (2 of warm-up left out): 96 syncs each");
  free(text);
  sc_findings_free(f);
}

static void waits_are_a_round_trip_and_the_rest(void **state)
{
  struct sc_findings *f = fixture_traced();
  char *text = text_of(f);

  (void)state;
  assert_says(text, "A read-back costs 10.2 us on this host");
  assert_says(text, "38.2 us = 10.2 + 28.0");
  assert_says(text, "1.28 ms = 10.2 us + 1.27 ms");
  assert_says(text, "8.10 us < round trip");
  assert_says(text, "380      10   487 ms"); /* the costliest */
  assert_silent(text, "90.0 us ="); /* a poll wait is none of the kind */
  assert_says(text, "The rest is mostly GPU work that was still running.");
  /* 3840 read-backs and 38 uploads; 96 + 10 + 2 + 1 + 1 a step */
  assert_says(text, "  floor 41.6 ms, 1.18 ms a step: 3878 read-backs and blocking uploads at 10.7 us, this host's mean\n");
  free(text);
  sc_findings_free(f);
}

static void each_remedy_is_given_once(void **state)
{
  struct sc_findings *f = fixture_traced();
  char *text = text_of(f), *first;

  (void)state;
  assert_says(text, "  scalar read-back: keep the value on the device\n"); /* another one of the same pattern */
  first = strstr(text, "  scalar read-back: Keep the decision on the device.\n");
  assert_non_null(first);
  assert_null(strstr(first + 30, "Keep the decision on the device."));
  assert_says(text, "  poll loop: Wait once.\n");
  free(text);
  sc_findings_free(f);
}

static void a_simulated_wait_has_no_round_trip(void **state)
{
  struct sc_findings *f = fixture_traced();
  char *text;

  (void)state;
  f->simulated = true;
  text = text_of(f);
  assert_silent(text, "round trip");
  assert_silent(text, "floor");
  assert_says(text, "model/moe.py:163 in forward");
  free(text);
  sc_findings_free(f);
}

static void totals_without_details_are_told_apart(void **state)
{
  struct sc_findings *f = fixture_process();
  char *text;

  (void)state;
  f->lost_records = f->processes[0].lost_records = 12000;
  f->processes[0].without_detail.syncs = 1500;
  f->processes[0].counts_whole = true;
  text = text_of(f);
  assert_says(text, "NO ROOM for 12,000 records of the trace: the totals are complete, the details are not.");
  assert_says(text, "2 with nothing outstanding; 1500");
  assert_silent(text, "lower bound");
  assert_silent(text, "of 2.40 s"); /* the longest waiting thread's share would be too low */
  free(text);
  f->processes[0].counts_whole = false;
  text = text_of(f);
  assert_says(text, "every count is a lower bound");
  free(text);
  sc_findings_free(f);
}

static void memory_of_unknown_kind_is_called_so(void **state)
{
  struct sc_findings *f = fixture_traced();
  struct sc_site *s = &f->processes[0].sites[1];
  char *text;

  (void)state;
  free(s->memory);
  s->memory = sc_strdup("unknown");
  text = text_of(f);
  assert_says(text, "memory of unknown kind");
  free(text);
  sc_findings_free(f);
}

static void several_processes_are_summed_first(void **state)
{
  struct sc_findings *f = fixture_process();
  struct sc_process *p = sc_findings_process(f);
  char *text;

  (void)state;
  p->pid = 4243;
  p->counts.syncs = p->counts.by_class[SC_CLASS_COPY] = 1;
  text = text_of(f);
  starts_with(text, "3843 syncs in 2 processes.\n");
  assert_says(text, "\n1 sync, 0 of them read-backs, in process 4243;");
  free(text);
  p->counts.read_backs = 1;
  text = text_of(f);
  assert_says(text, "\n1 sync, 1 of them a read-back, in process 4243;");
  free(text);
  sc_findings_free(f);
}

/* ---- form --------------------------------------------------------------------------------------- */

static struct sc_findings *(*const makers[])(void) = {fixture_full,         fixture_minimal, fixture_simulated,
                                                      fixture_not_verified, fixture_lost,    fixture_hit,
                                                      fixture_assumed,      fixture_ruler,   fixture_process};

static void no_line_is_wider_than_the_terminal_or_ends_in_blanks(void **state)
{
  static const unsigned widths[] = {80, 100, 120};

  (void)state;
  for (size_t m = 0; m < SC_COUNTOF(makers); m++) {
    for (size_t k = 0; k < SC_COUNTOF(widths); k++) {
      struct sc_findings *f = makers[m]();
      char *text = render(f, "text", &(struct sc_report_options){.width = widths[k], .per_expert = true});

      for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");

        if (n > widths[k] || (n && line[n - 1] == ' '))
          fail_msg("width %u: '%.*s'", widths[k], (int)n, line);
        line += n + (line[n] == '\n');
      }
      assert_null(strstr(text, "\n\n\n"));
      free(text);
      sc_findings_free(f);
    }
  }
}

static void colours_change_nothing_but_colour(void **state)
{
  (void)state;
  for (size_t m = 0; m < SC_COUNTOF(makers); m++) {
    struct sc_findings *f = makers[m]();
    char *plain = render(f, "text", &(struct sc_report_options){.width = 100});
    char *colored = render(f, "text", &(struct sc_report_options){.width = 100, .color = true});
    size_t to = 0;

    assert_null(strchr(plain, '\033'));
    assert_non_null(strchr(colored, '\033'));
    for (size_t i = 0; colored[i]; i++) {
      if (colored[i] == '\033')
        i += strcspn(colored + i, "m");
      else
        colored[to++] = colored[i];
    }
    colored[to] = '\0';
    assert_string_equal(colored, plain);
    free(plain);
    free(colored);
    sc_findings_free(f);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_lines_are_the_answer),
      cmocka_unit_test(every_table_of_runs_says_what_carries_over),
      cmocka_unit_test(fewer_layers_than_the_model_has_are_named),
      cmocka_unit_test(simulated_comes_first_and_no_speed_is_printed),
      cmocka_unit_test(a_simulated_process_shows_counts_and_no_waits),
      cmocka_unit_test(not_verified_is_said_at_once_and_its_times_are_omitted),
      cmocka_unit_test(a_count_that_differs_from_the_law_is_said_at_once),
      cmocka_unit_test(experts_without_tokens_are_explained),
      cmocka_unit_test(losses_make_every_count_a_lower_bound),
      cmocka_unit_test(marginal_cost_far_from_the_round_trip_is_said),
      cmocka_unit_test(a_drifting_ruler_is_warned_of),
      cmocka_unit_test(assumed_round_trips_add_a_column_each),
      cmocka_unit_test(nothing_measured_is_said),
      cmocka_unit_test(a_simulated_ruler_is_a_setting),
      cmocka_unit_test(costs_that_could_not_be_fitted_have_no_section),
      cmocka_unit_test(calls_beside_the_count_of_a_run_are_named),
      cmocka_unit_test(the_ruler_alone_looks_whole),
      cmocka_unit_test(facts_read_like_facts),
      cmocka_unit_test(facts_that_cost_time_say_so),
      cmocka_unit_test(facts_without_their_neighbours_are_told_plainly),
      cmocka_unit_test(quiet_is_the_answer_and_what_makes_it_doubtful),
      cmocka_unit_test(long_lists_end_with_what_was_left_out),
      cmocka_unit_test(equal_ranges_stand_in_one_row),
      cmocka_unit_test(a_range_that_differs_has_its_own_row),
      cmocka_unit_test(a_range_that_never_ended_is_not_zero_syncs),
      cmocka_unit_test(what_is_beside_the_count_is_listed),
      cmocka_unit_test(memory_of_unknown_kind_is_called_so),
      cmocka_unit_test(several_processes_are_summed_first),
      cmocka_unit_test(waits_are_a_round_trip_and_the_rest),
      cmocka_unit_test(each_remedy_is_given_once),
      cmocka_unit_test(a_simulated_wait_has_no_round_trip),
      cmocka_unit_test(totals_without_details_are_told_apart),
    cmocka_unit_test(waits_are_a_round_trip_and_the_rest),
    cmocka_unit_test(each_remedy_is_given_once),
    cmocka_unit_test(a_simulated_wait_has_no_round_trip),
    cmocka_unit_test(totals_without_details_are_told_apart),
      cmocka_unit_test(no_line_is_wider_than_the_terminal_or_ends_in_blanks),
      cmocka_unit_test(colours_change_nothing_but_colour),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
