/* SPDX-License-Identifier: Apache-2.0
 * One section for each traced process: totals, threads, the tree of ranges, sites. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/content.h"

enum { RANGE_ROWS = 80, QUIET_RANGES = 20, THREAD_ROWS = 40, DEEPEST_INDENT = 16, RANK_ROWS = 64, RANKS_NAMED = 8 };

/* ---- totals ------------------------------------------------------------------------------------ */

static void process_heading(struct sc_doc *doc, const struct sc_process *p)
{
  struct sc_buf line = {0};

  sc_buf_printf(&line, "Process %llu", (unsigned long long)p->pid);
  if (p->host) {
    sc_buf_puts(&line, " on ");
    sc_put_name(&line, p->host, 40);
  }
  if (p->rank) {
    sc_buf_puts(&line, ", rank ");
    sc_put_name(&line, p->rank, 16);
  }
  if (p->local_rank) {
    sc_buf_puts(&line, ", local rank ");
    sc_put_name(&line, p->local_rank, 16);
  }
  if (p->command) {
    sc_buf_puts(&line, ": ");
    sc_put_name(&line, p->command, 160);
  }
  sc_doc_take(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, &line);
}

/* ", 3 things", or nothing for none; count and noun go together. */
static void put_part(struct sc_buf *line, uint64_t n, const char *noun, bool plural)
{
  if (!n)
    return;
  if (line->len)
    sc_buf_puts(line, ", ");
  sc_put_count(line, n);
  sc_buf_printf(line, " %s%s", noun, plural ? sc_plural(n) : "");
}

static void syncs_line(struct sc_doc *doc, const struct sc_process *p)
{
  const struct sc_counts *c = &p->counts;
  struct sc_buf line = {0}, classes = {0}, kinds = {0};

  sc_put_count(&line, c->syncs);
  sc_buf_printf(&line, " sync%s", sc_plural(c->syncs));
  for (int i = 0; i < SC_CLASS_COUNT; i++)
    put_part(&classes, c->by_class[i], sc_class_name((enum sc_class)i), false);
  if (classes.len)
    sc_buf_printf(&line, ": %s", classes.data);
  put_part(&kinds, c->read_backs, "read-back", true);
  put_part(&kinds, c->blocking_uploads, "blocking upload", true);
  put_part(&kinds, c->idle_syncs, "with nothing outstanding", false);
  if (kinds.len)
    sc_buf_printf(&line, "; of them %s", kinds.data);
  if (p->without_detail.syncs) {
    sc_buf_puts(&line, "; ");
    sc_put_count(&line, p->without_detail.syncs);
    sc_buf_puts(&line, " found no room for details");
  }
  line.failed |= classes.failed || kinds.failed;
  sc_buf_free(&classes);
  sc_buf_free(&kinds);
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
}

static void wait_line(struct sc_doc *doc, const struct sc_process *p)
{
  size_t waiting;
  const struct sc_thread_findings *longest = sc_process_longest_wait(p, &waiting);
  struct sc_buf line = {0};

  sc_buf_puts(&line, "waited ");
  sc_put_time(&line, (double)p->counts.wait_ns / 1000.0);
  sc_buf_puts(&line, " inside them");
  if (waiting > 1)
    sc_buf_printf(&line, ", summed over %zu threads; thread %llu longest, ", waiting,
                  (unsigned long long)longest->tid);
  else if (longest && !isnan(p->wall_us) && !p->without_detail.syncs)
    sc_buf_puts(&line, ", ");
  if (waiting > 1)
    sc_put_time(&line, longest->wait_us);
  if (longest && !isnan(p->wall_us) && !p->without_detail.syncs) {
    sc_buf_puts(&line, waiting > 1 ? ", " : "");
    sc_put_share(&line, longest->wait_us, p->wall_us);
    sc_buf_puts(&line, " of ");
    sc_put_time(&line, p->wall_us);
    sc_buf_puts(&line, " wall time");
  }
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
}

/* What the read-backs and blocking uploads would cost, had each waited for a tiny kernel alone. */
static void floor_line(struct sc_doc *doc, const struct sc_findings *f, const struct sc_process *p)
{
  struct sc_process_floor floor;
  struct sc_buf line = {0};

  if (!sc_process_floor(f, p, &floor))
    return;
  sc_buf_puts(&line, "floor ");
  sc_put_time(&line, floor.total_us);
  if (!isnan(floor.per_step_us)) {
    sc_buf_puts(&line, ", ");
    sc_put_time(&line, floor.per_step_us);
    sc_buf_puts(&line, " a step");
  }
  sc_buf_puts(&line, ": ");
  sc_put_count(&line, floor.round_trips);
  sc_buf_printf(&line, " read-back%s and blocking uploads at %.1f us, this host's mean round trip; an estimate, not what "
                       "would be saved",
                sc_plural(floor.round_trips), floor.round_trip_us);
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
}

/* How long the device had nothing to run because the host waited before it gave it more. */
static void drain_line(struct sc_doc *doc, const struct sc_process *p)
{
  struct sc_buf line = {0};

  if (isnan(p->drain_gap_total_us))
    return;
  sc_buf_puts(&line, "drain gaps: the device had nothing to run for ");
  sc_put_time(&line, p->drain_gap_total_us);
  sc_buf_puts(&line, " around ");
  sc_put_count(&line, p->drain_gaps);
  sc_buf_printf(&line, " sync%s, median ", sc_plural(p->drain_gaps));
  sc_put_time(&line, p->drain_gap_p50_us);
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
}

/* What being traced cost: rates measured in the process, times what was recorded. */
static void cost_line(struct sc_doc *doc, const struct sc_process *p)
{
  uint64_t launches = p->counts.launches, calls;
  double cost_us = sc_process_tracer_cost(p, &calls);
  struct sc_buf line = {0};

  if (isnan(p->start_cost_us))
    return;
  if (isnan(p->call_cost_us)) {
    sc_buf_puts(&line, "the tracer's cost was not measured");
  } else {
    sc_buf_puts(&line, "the tracer cost about ");
    sc_put_time(&line, cost_us);
    sc_buf_puts(&line, ": ");
    sc_put_count(&line, calls);
    sc_buf_printf(&line, " recorded call%s at ", sc_plural(calls));
    sc_put_time(&line, p->call_cost_us);
    if (launches) {
      sc_buf_puts(&line, " and ");
      sc_put_count(&line, launches);
      sc_buf_printf(&line, " launch%s at ", launches == 1 ? "" : "es");
      sc_put_time(&line, p->launch_cost_us);
    }
    sc_buf_puts(&line, ", as timed in this process when it ended");
  }
  sc_buf_puts(&line, "; starting it took ");
  sc_put_time(&line, p->start_cost_us);
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
}

static void totals_lines(struct sc_doc *doc, const struct sc_findings *f, const struct sc_process *p, bool simulated)
{
  const struct sc_counts *c = &p->counts;
  struct sc_buf work = {0}, beside = {0};

  syncs_line(doc, p);
  if (!simulated && c->syncs)
    wait_line(doc, p);
  if (!simulated)
    floor_line(doc, f, p);
  if (!simulated)
    drain_line(doc, p);
  sc_put_count(&beside, c->poll_waits);
  sc_buf_printf(&beside, " poll wait%s, ", sc_plural(c->poll_waits));
  sc_put_count(&beside, c->uncertain);
  sc_buf_puts(&beside, " uncertain, ");
  sc_put_count(&beside, c->failed);
  sc_buf_puts(&beside, " failed, ");
  sc_put_count(&beside, c->lifecycle);
  sc_buf_puts(&beside, " lifecycle");
  put_part(&beside, c->captured, "captured", false);
  sc_buf_puts(&beside, ": listed, not in the count");
  sc_doc_take(doc, SC_BLOCK_ITEM, c->uncertain ? SC_TONE_BAD : SC_TONE_PLAIN, &beside);

  put_part(&work, c->launches, "launch", false);
  if (work.data && c->launches != 1)
    sc_buf_puts(&work, "es");
  put_part(&work, c->submissions, "submission", true);
  put_part(&work, c->d2h_copies, "device-to-host cop", false);
  if (c->d2h_copies)
    sc_buf_puts(&work, c->d2h_copies == 1 ? "y" : "ies");
  put_part(&work, c->host_functions, "host function", true);
  put_part(&work, c->api_calls, "watched API call", true);
  if (!work.data)
    sc_buf_puts(&work, "no submissions recorded");
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &work);
  if (!simulated)
    cost_line(doc, p);
}

static const char *step_bounds(enum sc_step_source source)
{
  return source == SC_STEPS_OPTIMIZER ? "the end of one optimizer step" : "the end of one forward";
}

static void state_lines(struct sc_doc *doc, const struct sc_process *p, bool simulated)
{
  if (p->has_steps) {
    struct sc_buf line = {0};

    sc_put_count(&line, p->steps);
    sc_buf_printf(&line, " step%s", sc_plural(p->steps));
    if (p->step_source != SC_STEPS_RANGES)
      sc_buf_printf(&line, " from %s to the next, all threads", step_bounds(p->step_source));
    if (p->warmup) {
      sc_buf_puts(&line, " (");
      sc_put_count(&line, p->warmup);
      sc_buf_puts(&line, " of warm-up left out)");
    }
    sc_buf_puts(&line, ": ");
    if (isnan(p->step_median)) {
      sc_buf_puts(&line, "none is left to tell the syncs of");
    } else {
      sc_put_count(&line, p->step_min);
      if (p->step_max != p->step_min) {
        sc_buf_puts(&line, " to ");
        sc_put_count(&line, p->step_max);
        sc_buf_puts(&line, ", median ");
        sc_put_number(&line, p->step_median);
      }
      sc_buf_printf(&line, " sync%s each", p->step_min == 1 && p->step_max == 1 ? "" : "s");
    }
    sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
  }
  if (p->stacks) {
    struct sc_buf line = {0};

    sc_put_count(&line, p->stacks);
    sc_buf_printf(&line, " stack%s taken", sc_plural(p->stacks));
    if (!simulated) {
      sc_buf_puts(&line, ", ");
      sc_put_time(&line, (double)p->stack_ns / (double)p->stacks / 1000.0);
      sc_buf_puts(&line, " each, in no wait");
    }
    put_part(&line, p->stacks_missing, "not in full", false);
    sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
  }
  /* The warnings say what this means; here stands only whose process it was. */
  if (p->attached_late)
    sc_doc_put(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, "attached late");
  if (!p->ended_cleanly)
    sc_doc_put(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, "did not end its trace");
}

/* ---- threads ------------------------------------------------------------------------------------ */

/* A thread that made no call that matters is noise to people; JSON has it. */
static bool thread_is_silent(const struct sc_thread_findings *t)
{
  return !t->syncs && !t->launches && !t->poll_waits;
}

static void thread_row(struct sc_doc *doc, const struct sc_thread_findings *t, double wall_us, bool simulated)
{
  struct sc_buf name = {0}, syncs = {0}, wait = {0}, share = {0}, polls = {0}, launches = {0};

  sc_doc_row(doc, 0);
  sc_doc_cell(doc, SC_TONE_PLAIN, "%llu", (unsigned long long)t->tid);
  if (t->name)
    sc_put_name(&name, t->name, 24);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &name);
  sc_put_count(&syncs, t->syncs);
  sc_doc_cell_take(doc, SC_TONE_STRONG, &syncs);
  sc_put_time(&wait, simulated || !t->syncs ? NAN : t->wait_us);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &wait);
  sc_put_share(&share, simulated || !t->syncs ? NAN : t->wait_us, wall_us);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &share);
  sc_put_count(&polls, t->poll_waits);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &polls);
  sc_put_count(&launches, t->launches);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &launches);
}

static void threads_table(struct sc_doc *doc, const struct sc_process *p, bool all, bool simulated)
{
  size_t rows = 0, limit = all ? SIZE_MAX : THREAD_ROWS;

  for (size_t i = 0; i < p->thread_count; i++)
    rows += all || !thread_is_silent(&p->threads[i]);
  if (!rows)
    return;
  sc_doc_put(doc, SC_BLOCK_GAP, SC_TONE_PLAIN, "%s", "");
  sc_doc_table(doc, 1);
  sc_doc_column(doc, true, "thread");
  sc_doc_column(doc, false, "name");
  sc_doc_column(doc, true, "syncs");
  sc_doc_column(doc, true, "wait");
  sc_doc_column(doc, true, "of wall time");
  sc_doc_column(doc, true, "poll waits");
  sc_doc_column(doc, true, "launches");
  for (size_t i = 0, shown = 0; i < p->thread_count && shown < limit; i++) {
    if (!all && thread_is_silent(&p->threads[i]))
      continue;
    thread_row(doc, &p->threads[i], p->wall_us, simulated);
    shown++;
  }
  sc_doc_table_end(doc);
  if (rows > limit)
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_NOTE, "and %zu more threads; --threads and JSON have them all.",
               rows - limit);
}

/* ---- the tree of ranges ----------------------------------------------------------------------------
 * Siblings that differ in their number alone (layer:0 to layer:7) and have equal subtrees stand in one row. */

struct tree {
  struct sc_doc *doc;
  const struct sc_process *process;
  size_t *ends; /* [range_count]: one past what is below each range */
  size_t *loud; /* [range_count + 1]: ranges before each that have a sync or are not finished */
  bool simulated;
  bool hide_quiet; /* ranges without a sync in them */
  size_t rows, left_out, quiet;
};

/* Once for all: the tree may be as deep as it is long. */
static bool measure_tree(struct tree *tree)
{
  const struct sc_process *p = tree->process;

  tree->ends = sc_calloc_array(p->range_count, sizeof *tree->ends);
  tree->loud = sc_calloc_array(p->range_count + 1, sizeof *tree->loud);
  if (!tree->ends || !tree->loud)
    return false;
  for (size_t i = p->range_count; i-- > 0;) {
    size_t end = i + 1;

    while (end < p->range_count && p->ranges[end].depth > p->ranges[i].depth)
      end = tree->ends[end];
    tree->ends[i] = end;
  }
  for (size_t i = 0; i < p->range_count; i++)
    tree->loud[i + 1] = tree->loud[i] + (p->ranges[i].total.syncs || p->ranges[i].unfinished);
  return true;
}

/* Length of the name without the number at its end; *number is that number. */
static size_t name_stem(const char *name, uint64_t *number)
{
  size_t n = name ? strlen(name) : 0, stem = n;

  while (stem && name[stem - 1] >= '0' && name[stem - 1] <= '9')
    stem--;
  return stem < n && sc_parse_u64(name + stem, number) ? stem : SIZE_MAX;
}

static bool same_text(const char *a, const char *b) { return (!a && !b) || (a && b && strcmp(a, b) == 0); }

static bool same_counts(const struct sc_range_findings *a, const struct sc_range_findings *b)
{
  bool same_median = a->median == b->median || (isnan(a->median) && isnan(b->median));

  return a->occurrences == b->occurrences && a->unfinished == b->unfinished && a->spanning == b->spanning &&
         a->total.syncs == b->total.syncs && a->self.syncs == b->self.syncs && a->min == b->min && a->max == b->max &&
         same_median;
}

struct sibling {
  const char *name;
  size_t length;
};

/* Names below two siblings: equal, or equal behind their own names ("layers.0.mlp", "layers.1.mlp"). */
static bool same_name_below(struct sibling x0, const char *x, struct sibling y0, const char *y)
{
  if (x0.length && x && y && strncmp(x, x0.name, x0.length) == 0 && x[x0.length] == '.' &&
      strncmp(y, y0.name, y0.length) == 0)
    return strcmp(x + x0.length, y + y0.length) == 0;
  return same_text(x, y);
}

/* Whether the sibling at b continues the sibling at a: next number, same everything else all the way down. */
static bool continues(const struct tree *tree, size_t a, size_t b)
{
  const struct sc_range_findings *x = &tree->process->ranges[a], *y = &tree->process->ranges[b];
  size_t n = tree->ends[a] - a, stem;
  uint64_t from, to;

  stem = name_stem(x->name, &from);
  if (x->depth != y->depth || stem == SIZE_MAX || name_stem(y->name, &to) != stem || to != from + 1 ||
      strncmp(x->name, y->name, stem) != 0 || !same_text(x->domain, y->domain) || tree->ends[b] - b != n)
    return false;
  const struct sibling above_x = {x->name, strlen(x->name)}, above_y = {y->name, strlen(y->name)};
  for (size_t i = 0; i < n; i++) {
    if (!same_counts(&x[i], &y[i]))
      return false;
    if (i && (x[i].depth != y[i].depth || !same_name_below(above_x, x[i].name, above_y, y[i].name)))
      return false;
  }
  return true;
}

/* No sync in it, nor in the start/end ranges below it, whose calls are not in its total. */
static bool is_quiet(const struct tree *tree, size_t at, size_t size)
{
  return tree->loud[at] == tree->loud[at + size];
}

/* One row for `count` equal siblings and for all their equal copies elsewhere in the tree. */
static void range_row(struct tree *tree, const size_t *nodes, size_t node_count, const char *last_name)
{
  const struct sc_range_findings *r = &tree->process->ranges[nodes[0]];
  const struct sc_range_findings *top = &tree->process->ranges[0];
  struct sc_buf name = {0}, each = {0}, total = {0}, self = {0}, wait = {0};
  uint64_t wait_ns = 0, total_syncs = 0, self_syncs = 0;
  uint64_t depth = r->depth > top->depth ? r->depth - top->depth : 0, number;

  for (size_t i = 0; i < node_count; i++) {
    const struct sc_range_findings *node = &tree->process->ranges[nodes[i]];

    wait_ns += node->total.wait_ns;
    total_syncs += node->total.syncs;
    self_syncs += node->self.syncs;
  }
  sc_doc_row(tree->doc, (unsigned)(depth < DEEPEST_INDENT ? depth : DEEPEST_INDENT));
  sc_put_name(&name, r->name ? r->name : r->path, 56);
  if (last_name)
    sc_buf_printf(&name, " to %s", last_name + name_stem(last_name, &number));
  if (r->spanning)
    sc_buf_puts(&name, " (start/end)");
  sc_doc_cell_take(tree->doc, SC_TONE_PLAIN, &name);
  if (isnan(r->median)) {
    sc_buf_puts(&each, "not finished x ");
  } else {
    sc_put_count(&each, r->min);
    if (r->max != r->min) {
      sc_buf_puts(&each, "-");
      sc_put_count(&each, r->max);
    }
    sc_buf_printf(&each, " sync%s x ", r->min == 1 && r->max == 1 ? "" : "s");
  }
  sc_put_count(&each, r->occurrences);
  sc_buf_puts(&each, node_count > 1 ? " each" : "");
  sc_doc_cell_take(tree->doc, SC_TONE_STRONG, &each);
  sc_put_count(&total, total_syncs);
  sc_doc_cell_take(tree->doc, SC_TONE_PLAIN, &total);
  sc_put_count(&self, self_syncs);
  sc_doc_cell_take(tree->doc, SC_TONE_PLAIN, &self);
  sc_put_time(&wait, tree->simulated || !total_syncs ? NAN : (double)wait_ns / 1000.0);
  sc_doc_cell_take(tree->doc, SC_TONE_PLAIN, &wait);
}

/* The nodes from..to of the copies that start at bases[]; offsets count from bases[0]. */
static void put_level(struct tree *tree, const size_t *bases, size_t base_count, size_t from, size_t to)
{
  const struct sc_process *p = tree->process;

  for (size_t at = from; at < to;) {
    size_t size = tree->ends[bases[0] + at] - (bases[0] + at), merged = 1, last = at;
    size_t *nodes;

    if (size > to - at)
      size = to - at;
    while (last + size < to && continues(tree, bases[0] + last, bases[0] + last + size)) {
      last += size;
      merged++;
    }
    if (tree->hide_quiet && is_quiet(tree, bases[0] + at, size)) {
      tree->quiet += merged * size * base_count;
      at += merged * size;
      continue;
    }
    if (tree->rows >= RANGE_ROWS) {
      tree->left_out += merged * size * base_count;
      at += merged * size;
      continue;
    }
    nodes = sc_calloc_array(merged * base_count, sizeof *nodes);
    if (!nodes) {
      tree->doc->failed = true;
      return;
    }
    for (size_t i = 0; i < base_count; i++)
      for (size_t k = 0; k < merged; k++)
        nodes[i * merged + k] = bases[i] + at + k * size;
    tree->rows++;
    range_row(tree, nodes, merged * base_count, merged > 1 ? p->ranges[bases[0] + last].name : NULL);
    if (size > 1)
      put_level(tree, nodes, merged * base_count, 1, size);
    free(nodes);
    at += merged * size;
  }
}

static void ranges_table(struct sc_doc *doc, const struct sc_process *p, bool simulated)
{
  struct tree tree = {.doc = doc, .process = p, .simulated = simulated};
  size_t base = 0, quiet = 0;

  if (!p->range_count)
    return;
  if (!measure_tree(&tree)) {
    doc->failed = true;
    goto cleanup;
  }
  for (size_t i = 0; i < p->range_count; i++)
    quiet += is_quiet(&tree, i, tree.ends[i] - i);
  tree.hide_quiet = quiet > QUIET_RANGES && quiet < p->range_count;
  sc_doc_put(doc, SC_BLOCK_GAP, SC_TONE_PLAIN, "%s", "");
  sc_doc_table(doc, 1);
  sc_doc_column(doc, false, "range");
  sc_doc_column(doc, false, "an occurrence");
  sc_doc_column(doc, true, "syncs");
  sc_doc_column(doc, true, "own");
  sc_doc_column(doc, true, "wait");
  put_level(&tree, &base, 1, 0, p->range_count);
  sc_doc_table_end(doc);
  if (tree.left_out)
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_NOTE, "and %zu more ranges; JSON has them all.", tree.left_out);
  if (tree.quiet)
    sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_NOTE, "and %zu ranges without a sync; JSON has them all.", tree.quiet);
cleanup:
  free(tree.ends);
  free(tree.loud);
}

/* ---- allowed syncs -------------------------------------------------------------------------------- */

static void allowed_lines(struct sc_doc *doc, const struct sc_process *p)
{
  struct sc_allowed *list;
  size_t count;

  if (!sc_process_allowed(p, &list, &count)) {
    doc->failed = true;
    return;
  }
  if (count)
    sc_doc_put(doc, SC_BLOCK_GAP, SC_TONE_PLAIN, "%s", "");
  for (size_t i = 0; i < count; i++) {
    struct sc_buf line = {0};

    sc_buf_puts(&line, "allowed: ");
    sc_put_name(&line, list[i].reason, 80);
    sc_buf_puts(&line, ": ");
    if (list[i].syncs)
      sc_put_count(&line, list[i].syncs);
    else
      sc_buf_puts(&line, "no");
    sc_buf_printf(&line, " sync%s in ", sc_plural(list[i].syncs));
    sc_put_count(&line, list[i].occurrences);
    sc_buf_printf(&line, " occurrence%s; in the count", sc_plural(list[i].occurrences));
    sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
  }
  free(list);
}

/* ---- ranks ------------------------------------------------------------------------------------------ */

static void rank_row(struct sc_doc *doc, const struct sc_rank *rank, bool simulated)
{
  struct sc_buf name = {0}, syncs = {0}, step = {0}, wait = {0}, share = {0};
  double wait_us = simulated ? NAN : rank->wait_us;

  sc_doc_row(doc, 0);
  sc_put_name(&name, rank->rank, 16);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &name);
  sc_doc_cell(doc, SC_TONE_PLAIN, "%zu", rank->processes);
  sc_put_count(&syncs, rank->syncs);
  sc_doc_cell_take(doc, SC_TONE_STRONG, &syncs);
  sc_put_number(&step, rank->step_median);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &step);
  sc_put_time(&wait, wait_us);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &wait);
  sc_put_share(&share, wait_us, rank->wall_us);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &share);
}

/* "rank 1: 24", for those that differ from the others. */
static void differing_line(struct sc_doc *doc, const struct sc_ranks *ranks)
{
  struct sc_buf line = {0};
  size_t named = 0;

  sc_buf_puts(&line, "The counts differ: ");
  for (size_t i = 0; i < ranks->count; i++) {
    const struct sc_rank *rank = &ranks->list[i];

    if (ranks->has_usual && rank->syncs == ranks->usual)
      continue;
    if (++named > RANKS_NAMED)
      continue;
    sc_buf_puts(&line, named > 1 ? ", rank " : "rank ");
    sc_put_name(&line, rank->rank, 16);
    sc_buf_puts(&line, " has ");
    sc_put_count(&line, rank->syncs);
  }
  if (named > RANKS_NAMED)
    sc_buf_printf(&line, " and %zu more ranks differ", named - RANKS_NAMED);
  if (ranks->has_usual) {
    sc_buf_puts(&line, ", the others have ");
    sc_put_count(&line, ranks->usual);
  }
  sc_buf_puts(&line, ".");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_BAD, &line);
}

static void waits_line(struct sc_doc *doc, const struct sc_ranks *ranks)
{
  struct sc_buf line = {0};

  if (!ranks->waits_most || ranks->waits_most == ranks->waits_least)
    return;
  sc_buf_puts(&line, "Rank ");
  sc_put_name(&line, ranks->waits_most->rank, 16);
  sc_buf_puts(&line, " waits most (");
  sc_put_time(&line, ranks->waits_most->wait_us);
  sc_buf_puts(&line, "), rank ");
  sc_put_name(&line, ranks->waits_least->rank, 16);
  sc_buf_puts(&line, " least (");
  sc_put_time(&line, ranks->waits_least->wait_us);
  sc_buf_puts(&line, "), each on its longest waiting thread.");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_PLAIN, &line);
}

void sc_content_ranks(struct sc_doc *doc, const struct sc_findings *f)
{
  bool simulated = sc_findings_simulated(f);
  struct sc_ranks ranks;

  if (!sc_findings_ranks(f, &ranks)) {
    doc->failed = true;
    return;
  }
  if (ranks.count > 1) {
    sc_doc_put(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, "%zu ranks", ranks.count);
    sc_doc_table(doc, 1);
    sc_doc_column(doc, false, "rank");
    sc_doc_column(doc, true, "processes");
    sc_doc_column(doc, true, "syncs");
    sc_doc_column(doc, true, "a step");
    sc_doc_column(doc, true, "wait");
    sc_doc_column(doc, true, "of wall time");
    for (size_t i = 0; i < ranks.count && i < RANK_ROWS; i++)
      rank_row(doc, &ranks.list[i], simulated);
    sc_doc_table_end(doc);
    if (ranks.count > RANK_ROWS)
      sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_NOTE, "and %zu more ranks; JSON has them all.", ranks.count - RANK_ROWS);
    if (ranks.min != ranks.max)
      differing_line(doc, &ranks);
    if (!simulated)
      waits_line(doc, &ranks);
  }
  sc_ranks_free(&ranks);
}

void sc_content_processes(struct sc_doc *doc, const struct sc_findings *f, const struct sc_report_options *options)
{
  const struct sc_ruler_row *trip = sc_round_trip(f);

  for (size_t i = 0; i < f->process_count; i++) {
    const struct sc_process *p = &f->processes[i];
    bool simulated = sc_process_is_simulated(f, p);

    process_heading(doc, p);
    if (p->unmeasured)
      sc_doc_put(doc, SC_BLOCK_ITEM, SC_TONE_BAD, "not measured: the warnings say why");
    else
      totals_lines(doc, f, p, simulated);
    state_lines(doc, p, simulated);
    sc_doc_figure(doc, SC_FIGURE_TIMELINE, i);
    sc_content_sites(doc, p, simulated, trip, options->width);
    ranges_table(doc, p, simulated);
    allowed_lines(doc, p);
    threads_table(doc, p, options->threads, simulated);
  }
}
