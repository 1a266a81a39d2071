/* SPDX-License-Identifier: Apache-2.0
 * The MoE runs: one table per shape, what they were expected to count, experts and ops, laws, verification. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/content.h"

static bool equal_text(const char *a, const char *b) { return (!a && !b) || (a && b && strcmp(a, b) == 0); }

/* Everything but variant and experts: what one table holds. */
static bool same_shape(const struct sc_run *a, const struct sc_run *b)
{
  return a->tokens == b->tokens && a->top_k == b->top_k && a->hidden == b->hidden &&
         a->intermediate == b->intermediate && a->layers == b->layers && a->model_layers == b->model_layers &&
         a->seed == b->seed && equal_text(a->dtype, b->dtype) && equal_text(a->routing, b->routing) &&
         equal_text(a->activation, b->activation);
}

/* What fused-nvfp4 is: stands below the table, since the other variants of the same table have no such thing. */
static bool same_quantisation(const struct sc_run *a, const struct sc_run *b)
{
  return equal_text(a->variant, b->variant) && equal_text(a->act_quant, b->act_quant) &&
         equal_text(a->nvfp4_path, b->nvfp4_path);
}

static bool shape_is_new(const struct sc_findings *f, size_t run)
{
  for (size_t i = 0; i < run; i++)
    if (same_shape(&f->runs[i], &f->runs[run]))
      return false;
  return true;
}

static void shape_heading(struct sc_doc *doc, const struct sc_run *run)
{
  struct sc_buf text = {0};

  sc_put_count(&text, run->tokens);
  sc_buf_printf(&text, " token%s, top-%llu, hidden %llu, intermediate %llu, ", sc_plural(run->tokens),
                (unsigned long long)run->top_k, (unsigned long long)run->hidden, (unsigned long long)run->intermediate);
  if (run->model_layers > run->layers)
    sc_buf_printf(&text, "%llu of %llu layers run", (unsigned long long)run->layers,
                  (unsigned long long)run->model_layers);
  else
    sc_buf_printf(&text, "%llu layer%s", (unsigned long long)run->layers, sc_plural(run->layers));
  if (run->dtype) {
    sc_buf_puts(&text, ", ");
    sc_put_prose(&text, run->dtype);
  }
  if (run->activation) {
    sc_buf_puts(&text, ", ");
    sc_put_prose(&text, run->activation);
  }
  if (run->routing) {
    sc_buf_puts(&text, ", routing: ");
    sc_put_prose(&text, run->routing);
    sc_buf_printf(&text, ", seed %llu", (unsigned long long)run->seed);
  }
  sc_doc_take(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, &text);
}

/* ---- the table --------------------------------------------------------------------------------- */

static void run_columns(struct sc_doc *doc, const struct sc_findings *f)
{
  sc_doc_table(doc, 2);
  sc_doc_column(doc, false, "variant");
  sc_doc_column(doc, true, "E");
  sc_doc_column(doc, true, "syncs\na layer");
  sc_doc_column(doc, true, "expected");
  sc_doc_column(doc, true, "bound\n3E");
  sc_doc_column(doc, true, "syncs a\nforward");
  sc_doc_column(doc, true, "floor a\nforward");
  sc_doc_column(doc, true, "floor's\nrange");
  sc_doc_column(doc, true, "forward\np50");
  sc_doc_column(doc, true, "floor's\nshare");
  sc_doc_column(doc, true, "equals\nmasked");
  for (size_t i = 0; i < f->assumed_count; i++) {
    struct sc_buf head = {0};

    sc_buf_puts(&head, "floor at\n");
    sc_put_given_time(&head, f->assumed_us[i]);
    sc_doc_column_take(doc, true, &head);
  }
}

static void count_cells(struct sc_doc *doc, const struct sc_run *run)
{
  enum sc_tone tone = isnan(run->expected_per_layer) ? SC_TONE_PLAIN : run->exact ? SC_TONE_GOOD : SC_TONE_BAD;
  struct sc_buf layer = {0}, expected = {0}, bound = {0}, forward = {0};

  if (!run->counted) {
    sc_buf_puts(&layer, "not counted");
    tone = SC_TONE_PLAIN;
  } else {
    sc_put_count(&layer, run->per_layer_min);
    if (run->per_layer_max != run->per_layer_min) {
      sc_buf_puts(&layer, "-");
      sc_put_count(&layer, run->per_layer_max);
    }
  }
  sc_doc_cell_take(doc, tone, &layer);
  sc_put_number(&expected, run->expected_per_layer);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &expected);
  sc_put_number(&bound, run->bound_per_layer);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &bound);
  sc_put_number(&forward, run->counted ? run->per_forward : NAN);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &forward);
}

static void time_cells(struct sc_doc *doc, const struct sc_findings *f, const struct sc_run *run)
{
  bool has_floor = sc_run_has_floor(f, run), has_forward = sc_run_has_forward(f, run);
  bool omitted = !run->verified && !sc_findings_simulated(f);
  struct sc_buf floor = {0}, range = {0}, forward = {0}, share = {0};

  sc_put_time(&floor, has_floor ? run->floor_mean_us : NAN);
  sc_doc_cell_take(doc, SC_TONE_STRONG, &floor);
  sc_put_range(&range, has_floor && run->floor_mean_us > 0 ? run->floor_low_us : NAN, run->floor_high_us);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &range);
  if (omitted)
    sc_buf_puts(&forward, "omitted"); /* why stands in the first lines */
  else
    sc_put_time(&forward, has_forward ? run->forward_p50_us : NAN);
  sc_doc_cell_take(doc, omitted ? SC_TONE_BAD : SC_TONE_PLAIN, &forward);
  sc_put_share(&share, has_floor && has_forward ? run->floor_mean_us : NAN, run->forward_p50_us);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &share);
  sc_doc_cell(doc, run->output_matches_masked == 0 ? SC_TONE_BAD : SC_TONE_PLAIN, "%s",
              run->output_matches_masked == 1   ? "yes"
              : run->output_matches_masked == 0 ? "NO"
                                                : "-");
  for (size_t i = 0; i < f->assumed_count; i++) {
    struct sc_buf assumed = {0};

    sc_put_time(&assumed, run->assumed_floor_us && run->counted ? run->assumed_floor_us[i] : NAN);
    sc_doc_cell_take(doc, SC_TONE_STRONG, &assumed);
  }
}

/* ---- below the table ----------------------------------------------------------------------------- */

/* Fewer experts hit than there are: why the count is below 3E. */
static void note_hit(struct sc_doc *doc, const struct sc_run *run)
{
  uint64_t low, high;
  struct sc_buf line = {0};

  if (!run->hit || !run->layers || !equal_text(run->variant, "masked"))
    return;
  low = high = run->hit[0];
  for (uint64_t i = 1; i < run->layers; i++) {
    low = run->hit[i] < low ? run->hit[i] : low;
    high = run->hit[i] > high ? run->hit[i] : high;
  }
  if (low >= run->experts)
    return;
  sc_put_variant(&line, run->variant, true);
  sc_buf_printf(&line, ", E=%llu: ", (unsigned long long)run->experts);
  sc_put_count(&line, low);
  if (high != low) {
    sc_buf_puts(&line, " to ");
    sc_put_count(&line, high);
  }
  sc_buf_printf(&line,
                " of %llu experts got tokens in a layer; one without costs 1 sync instead of 3: E+2*hit, not 3E.",
                (unsigned long long)run->experts);
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_NOTE, &line);
}

/* Calls that stand beside the count; a calm run has none. */
static void note_beside(struct sc_doc *doc, const struct sc_run *run)
{
  const struct {
    uint64_t n;
    const char *what;
  } parts[] = {{run->counts.poll_waits, "poll waits"},
               {run->counts.failed, "failed"},
               {run->counts.lifecycle, "lifecycle"},
               {run->counts.captured, "captured"}};
  struct sc_buf line = {0};
  bool any = false, first = true;

  for (size_t i = 0; i < SC_COUNTOF(parts); i++)
    any |= parts[i].n > 0;
  if (!run->counted || !any)
    return;
  sc_put_variant(&line, run->variant, true);
  sc_buf_printf(&line, ", E=%llu: beside the count, in all traced forwards:", (unsigned long long)run->experts);
  for (size_t i = 0; i < SC_COUNTOF(parts); i++) {
    if (!parts[i].n)
      continue;
    sc_buf_puts(&line, first ? " " : ", ");
    sc_put_count(&line, parts[i].n);
    sc_buf_printf(&line, " %s", parts[i].what);
    first = false;
  }
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_NOTE, &line);
}

/* "w4a4" and "w4a16" are the words of those who quantise; here is what they mean. */
static void note_quantisation(struct sc_doc *doc, const struct sc_findings *f, size_t first, size_t index)
{
  const struct sc_run *run = &f->runs[index];
  struct sc_buf line = {0};

  if (!run->act_quant)
    return;
  for (size_t i = first; i < index; i++)
    if (same_shape(&f->runs[i], run) && same_quantisation(&f->runs[i], run))
      return;
  sc_put_variant(&line, run->variant, true);
  sc_buf_puts(&line, ": ");
  sc_put_prose(&line, run->act_quant);
  sc_buf_printf(&line, ", weights%s in NVFP4", equal_text(run->act_quant, "w4a4") ? " and activations" : " alone");
  if (run->nvfp4_path) {
    sc_buf_puts(&line, ", ");
    sc_put_prose(&line, run->nvfp4_path);
    sc_buf_puts(&line, " path");
  }
  sc_buf_puts(&line, ".");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_NOTE, &line);
}

static bool same_reason(const struct sc_run *a, const struct sc_run *b)
{
  return same_shape(a, b) && equal_text(a->variant, b->variant) && a->output_matches_masked < 0 &&
         equal_text(a->not_comparable, b->not_comparable);
}

/* Once for all expert counts that share variant and reason. */
static void note_not_comparable(struct sc_doc *doc, const struct sc_findings *f, size_t first, size_t index)
{
  const struct sc_run *run = &f->runs[index];
  struct sc_buf line = {0};
  size_t alike = 0;

  if (run->output_matches_masked >= 0 || !run->not_comparable)
    return;
  for (size_t i = first; i < f->run_count; i++) {
    if (!same_reason(&f->runs[i], run))
      continue;
    if (i < index)
      return;
    alike++;
  }
  sc_put_variant(&line, run->variant, true);
  if (alike == 1)
    sc_buf_printf(&line, ", E=%llu", (unsigned long long)run->experts);
  sc_buf_puts(&line, ": output not comparable with the masked loop's: ");
  sc_put_prose(&line, run->not_comparable);
  sc_buf_puts(&line, ".");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_NOTE, &line);
}

static void shape_table(struct sc_doc *doc, const struct sc_findings *f, size_t first)
{
  shape_heading(doc, &f->runs[first]);
  run_columns(doc, f);
  for (size_t i = first; i < f->run_count; i++) {
    const struct sc_run *run = &f->runs[i];
    struct sc_buf name = {0};

    if (!same_shape(run, &f->runs[first]))
      continue;
    sc_doc_row(doc, 0);
    sc_put_variant(&name, run->variant, false);
    sc_doc_cell_take(doc, SC_TONE_PLAIN, &name);
    sc_doc_cell(doc, SC_TONE_PLAIN, "%llu", (unsigned long long)run->experts);
    count_cells(doc, run);
    time_cells(doc, f, run);
  }
  sc_doc_table_end(doc);
  sc_doc_put(doc, SC_BLOCK_LINE, SC_TONE_PLAIN,
             "Forward times are this C layer's, not PyTorch's: counts carry over, shares do not.");
  for (size_t i = first; i < f->run_count; i++) {
    if (!same_shape(&f->runs[i], &f->runs[first]))
      continue;
    note_hit(doc, &f->runs[i]);
    note_beside(doc, &f->runs[i]);
    note_quantisation(doc, f, first, i);
    note_not_comparable(doc, f, first, i);
  }
}

static void floor_note(struct sc_doc *doc, const struct sc_findings *f)
{
  const struct sc_ruler_row *trip = sc_round_trip(f);
  struct sc_buf line = {0};
  bool any = f->assumed_count > 0;

  for (size_t i = 0; i < f->run_count; i++)
    any |= sc_run_has_floor(f, &f->runs[i]);
  if (!any)
    return;
  sc_doc_put(doc, SC_BLOCK_GAP, SC_TONE_PLAIN, "%s", "");
  sc_buf_puts(&line, "Floor: the read-backs and blocking uploads of one forward x the mean round trip");
  if (trip && !isnan(trip->mean_us)) {
    sc_buf_puts(&line, ", here ");
    sc_put_time(&line, trip->mean_us);
    if (trip->blocks)
      sc_buf_printf(&line, "; its range is the lowest to the highest of %llu block means",
                    (unsigned long long)trip->blocks);
  } else {
    sc_buf_puts(&line, " that is assumed");
  }
  sc_buf_puts(&line,
              ". An estimate for syncs that each wait for a kernel queued just before; neither a bound nor a promised "
              "saving.");
  sc_doc_take(doc, SC_BLOCK_LINE, SC_TONE_PLAIN, &line);
}

/* ---- experts and ops ----------------------------------------------------------------------------- */

/* Totals over the traced forwards, told as one forward's where that is a whole number or a mean. */
static void a_forward_cell(struct sc_doc *doc, const struct sc_run *run, uint64_t total)
{
  struct sc_buf text = {0};

  sc_put_number(&text, run->forwards ? (double)total / (double)run->forwards : NAN);
  sc_doc_cell_take(doc, SC_TONE_PLAIN, &text);
}

static size_t find_op(const struct sc_run *run, const char *name)
{
  size_t op = 0;

  while (op < run->by_op_count && !equal_text(run->by_op[op].name, name))
    op++;
  return op;
}

/* "in 6 of 8 layers": the masked loop asks `any` of every expert once a layer, and `nonzero` of those with tokens. */
static void tokens_cell(struct sc_doc *doc, const struct sc_run *run, uint64_t expert)
{
  size_t any = find_op(run, "any"), nonzero = find_op(run, "nonzero");
  uint64_t asked, hit;
  double per_forward = (double)(run->forwards ? run->forwards : 1);

  if (any == run->by_op_count || nonzero == run->by_op_count) {
    sc_doc_cell(doc, SC_TONE_PLAIN, "-");
    return;
  }
  asked = run->by_expert_op[expert][any];
  hit = run->by_expert_op[expert][nonzero];
  if (hit == 0)
    sc_doc_cell(doc, SC_TONE_NOTE, "no tokens");
  else
    sc_doc_cell(doc, SC_TONE_PLAIN, "%.4g of %.4g layers", (double)hit / per_forward, (double)asked / per_forward);
}

static bool has_expert_syncs(const struct sc_run *run)
{
  for (uint64_t i = 0; run->by_expert && i < run->experts; i++)
    if (run->by_expert[i])
      return true;
  return false;
}

static void expert_table(struct sc_doc *doc, const struct sc_run *run)
{
  struct sc_buf title = {0};

  sc_buf_puts(&title, "Syncs of one forward by expert: ");
  sc_put_variant(&title, run->variant, false);
  sc_buf_printf(&title, ", E=%llu, ", (unsigned long long)run->experts);
  sc_put_count(&title, run->tokens);
  sc_buf_printf(&title, " token%s, %llu layer%s", sc_plural(run->tokens), (unsigned long long)run->layers,
                sc_plural(run->layers));
  sc_doc_take(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, &title);
  sc_doc_table(doc, 1);
  sc_doc_column(doc, true, "expert");
  sc_doc_column(doc, true, "syncs");
  for (size_t op = 0; run->by_expert_op && op < run->by_op_count; op++) {
    struct sc_buf head = {0};

    sc_put_name(&head, run->by_op[op].name, 24);
    sc_doc_column_take(doc, true, &head);
  }
  sc_doc_column(doc, true, "got tokens in");
  for (uint64_t expert = 0; expert < run->experts; expert++) {
    sc_doc_row(doc, 0);
    sc_doc_cell(doc, SC_TONE_PLAIN, "%llu", (unsigned long long)expert);
    a_forward_cell(doc, run, run->by_expert[expert]);
    for (size_t op = 0; run->by_expert_op && op < run->by_op_count; op++)
      a_forward_cell(doc, run, run->by_expert_op[expert][op]);
    if (run->by_expert_op)
      tokens_cell(doc, run, expert);
    else
      sc_doc_cell(doc, SC_TONE_PLAIN, "-");
  }
  sc_doc_table_end(doc);
}

static void op_line(struct sc_doc *doc, const struct sc_run *run)
{
  struct sc_buf line = {0};
  double forwards = run->forwards ? (double)run->forwards : NAN;

  sc_put_variant(&line, run->variant, false);
  sc_buf_printf(&line, ", E=%llu, ", (unsigned long long)run->experts);
  sc_put_count(&line, run->tokens);
  sc_buf_printf(&line, " token%s: ", sc_plural(run->tokens));
  for (size_t op = 0; op < run->by_op_count; op++) {
    sc_put_name(&line, run->by_op[op].name, 24);
    sc_buf_puts(&line, " ");
    sc_put_number(&line, (double)run->by_op[op].count / forwards);
    sc_buf_puts(&line, ", ");
  }
  sc_buf_puts(&line, "outside experts ");
  sc_put_number(&line, (double)run->outside_experts / forwards);
  sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
}

static void per_expert_part(struct sc_doc *doc, const struct sc_findings *f)
{
  bool headed = false;

  for (size_t i = 0; i < f->run_count; i++) {
    if (!f->runs[i].counted)
      continue;
    if (!headed)
      sc_doc_put(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, "Syncs of one forward by op");
    headed = true;
    op_line(doc, &f->runs[i]);
  }
  for (size_t i = 0; i < f->run_count; i++)
    if (f->runs[i].counted && has_expert_syncs(&f->runs[i]))
      expert_table(doc, &f->runs[i]);
}

/* ---- laws, verification --------------------------------------------------------------------------- */

static void laws_part(struct sc_doc *doc, const struct sc_findings *f)
{
  if (!f->law_count)
    return;
  sc_doc_put(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, "Syncs per layer, fitted over E");
  for (size_t i = 0; i < f->law_count; i++) {
    struct sc_buf line = {0};

    sc_put_variant(&line, f->laws[i].variant, false);
    sc_buf_puts(&line, ": ");
    sc_put_prose(&line, f->laws[i].text);
    sc_doc_take(doc, SC_BLOCK_ITEM, SC_TONE_PLAIN, &line);
  }
}

static bool variant_is_new(const struct sc_findings *f, size_t run)
{
  for (size_t i = 0; i < run; i++)
    if (equal_text(f->runs[i].variant, f->runs[run].variant))
      return false;
  return true;
}

static void verified_line(struct sc_doc *doc, const struct sc_findings *f, const char *variant)
{
  struct sc_buf line = {0};
  size_t good = 0, all = 0;
  uint64_t tokens = 0;
  double error = NAN, cosine = NAN;

  for (size_t i = 0; i < f->run_count; i++) {
    const struct sc_run *run = &f->runs[i];

    if (!equal_text(run->variant, variant))
      continue;
    all++;
    if (!run->verified)
      continue;
    good++;
    tokens = run->verified_tokens > tokens ? run->verified_tokens : tokens;
    error = fmax(error, run->rel_error); /* fmax and fmin pass a NaN over */
    cosine = fmin(cosine, run->cosine);
  }
  sc_put_variant(&line, variant, false);
  if (good < all)
    sc_buf_printf(&line, ": NOT VERIFIED in %zu of %zu configurations", all - good, all);
  else
    sc_buf_printf(&line, ": verified in %zu configuration%s", all, sc_plural(all));
  if (good) {
    sc_buf_printf(&line, "%s on %llu tokens", good < all ? "; the others verified" : "", (unsigned long long)tokens);
    if (!isnan(error))
      sc_buf_printf(&line, ", relative error <= %.2g", error);
    if (!isnan(cosine))
      sc_buf_printf(&line, ", cosine >= %.8f", floor(cosine * 1e8) / 1e8);
  }
  sc_doc_take(doc, SC_BLOCK_ITEM, good < all ? SC_TONE_BAD : SC_TONE_PLAIN, &line);
}

void sc_content_verified(struct sc_doc *doc, const struct sc_findings *f)
{
  if (!f->run_count)
    return;
  sc_doc_put(doc, SC_BLOCK_HEADING, SC_TONE_PLAIN, "Compared with the CPU reference");
  for (size_t i = 0; i < f->run_count; i++)
    if (variant_is_new(f, i))
      verified_line(doc, f, f->runs[i].variant);
}

void sc_content_runs(struct sc_doc *doc, const struct sc_findings *f, bool per_expert)
{
  if (!f->run_count)
    return;
  for (size_t i = 0; i < f->run_count; i++)
    if (shape_is_new(f, i))
      shape_table(doc, f, i);
  floor_note(doc, f);
  if (per_expert)
    per_expert_part(doc, f);
  laws_part(doc, f);
  sc_doc_figure(doc, SC_FIGURE_LAWS, 0);
  sc_doc_figure(doc, SC_FIGURE_FLOOR, 0);
  sc_doc_figure(doc, SC_FIGURE_HEAT, 0);
}
