/* SPDX-License-Identifier: Apache-2.0
 * Figures of the main command's report: syncs over experts with their laws, the ruler, the floor in the forward, and
 * syncs by layer and expert. */
#include "report/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/content.h"

/* The largest of 1, 2, 5 times a power of ten that cuts `span` into at least `parts` pieces. */
static double nice_step(double span, unsigned parts)
{
  double raw = span / parts, power = pow(10, floor(log10(raw)));

  return (raw >= 5 * power ? 5 : raw >= 2 * power ? 2 : 1) * power;
}

static void open_figure(struct sc_buf *html, const char *caption)
{
  sc_buf_puts(html, "<figure><figcaption>");
  sc_buf_puts(html, caption);
  sc_buf_puts(html, "</figcaption>\n");
}

/* ---- syncs over experts --------------------------------------------------------------------------------------- */

enum { PLOT_W = 640, PLOT_H = 330, PLOT_LEFT = 54, PLOT_RIGHT = 196, PLOT_TOP = 14, PLOT_BOTTOM = 46, SERIES_MAX = 8 };

struct series {
  const char *variant;
  const struct sc_law *law; /* NULL or not stated: none */
  double label_y;
};

struct plot {
  const struct sc_findings *f;
  struct series series[SERIES_MAX];
  size_t count;
  double max_x, max_y;
};

static double plot_x(const struct plot *plot, double experts)
{
  return PLOT_LEFT + experts / plot->max_x * (PLOT_W - PLOT_LEFT - PLOT_RIGHT);
}

static double plot_y(const struct plot *plot, double syncs)
{
  return PLOT_H - PLOT_BOTTOM - syncs / plot->max_y * (PLOT_H - PLOT_TOP - PLOT_BOTTOM);
}

static bool is_of(const struct sc_run *run, const struct series *series)
{
  return run->counted && run->variant && strcmp(run->variant, series->variant) == 0;
}

static void gather_series(struct plot *plot, const struct sc_findings *f)
{
  for (size_t i = 0; i < f->run_count; i++) {
    const struct sc_run *run = &f->runs[i];
    size_t k = 0;

    if (!run->counted || !run->variant || isnan(run->per_layer_mean))
      continue;
    if ((double)run->experts > plot->max_x)
      plot->max_x = (double)run->experts;
    if (run->per_layer_mean > plot->max_y)
      plot->max_y = run->per_layer_mean;
    while (k < plot->count && strcmp(plot->series[k].variant, run->variant) != 0)
      k++;
    if (k == plot->count && k < SERIES_MAX)
      plot->series[plot->count++] = (struct series){.variant = run->variant};
  }
  for (size_t k = 0; k < plot->count; k++)
    for (size_t i = 0; i < f->law_count; i++)
      if (f->laws[i].variant && strcmp(f->laws[i].variant, plot->series[k].variant) == 0)
        plot->series[k].law = &f->laws[i];
}

static void put_axes(struct sc_buf *html, const struct plot *plot)
{
  double step_x = fmax(1, nice_step(plot->max_x, 4)), step_y = fmax(1, nice_step(plot->max_y, 4));

  for (double y = 0; y <= plot->max_y; y += step_y)
    sc_buf_printf(html, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" class=\"end\">%.0f</text>\n",
                  PLOT_LEFT, plot_y(plot, y), PLOT_W - PLOT_RIGHT, PLOT_LEFT - 8, plot_y(plot, y) + 4, y);
  for (double x = 0; x <= plot->max_x; x += step_x)
    sc_buf_printf(html, "<text x=\"%.1f\" y=\"%d\" class=\"mid\">%.0f</text>\n", plot_x(plot, x),
                  PLOT_H - PLOT_BOTTOM + 18, x);
  sc_buf_printf(html, "<text x=\"%d\" y=\"%d\" class=\"mid\">experts</text>\n",
                (PLOT_LEFT + PLOT_W - PLOT_RIGHT) / 2, PLOT_H - 8);
  sc_buf_printf(html, "<text class=\"mid\" transform=\"translate(14 %d) rotate(-90)\">syncs a layer</text>\n",
                (PLOT_TOP + PLOT_H - PLOT_BOTTOM) / 2);
}

static void put_series(struct sc_buf *html, const struct plot *plot, size_t k)
{
  const struct series *series = &plot->series[k];
  const struct sc_law *law = series->law;

  if (law && law->stated)
    sc_buf_printf(html, "<path class=\"line v%zu\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", k % 4, plot_x(plot, 0),
                  plot_y(plot, law->intercept), plot_x(plot, plot->max_x),
                  plot_y(plot, law->slope * plot->max_x + law->intercept));
  for (size_t i = 0; i < plot->f->run_count; i++) {
    const struct sc_run *run = &plot->f->runs[i];

    if (is_of(run, series))
      sc_buf_printf(html, "<circle class=\"v%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n", k % 4,
                    plot_x(plot, (double)run->experts), plot_y(plot, run->per_layer_mean));
  }
}

static double last_value(const struct plot *plot, const struct series *series)
{
  double experts = -1, value = 0;

  for (size_t i = 0; i < plot->f->run_count; i++) {
    const struct sc_run *run = &plot->f->runs[i];

    if (is_of(run, series) && (double)run->experts > experts) {
      experts = (double)run->experts;
      value = run->per_layer_mean;
    }
  }
  return value;
}

/* Labels stand beside the lines' ends, the lowest first, none on another. */
static void put_labels(struct sc_buf *html, struct plot *plot)
{
  bool done[SERIES_MAX] = {false};
  double below = PLOT_H - PLOT_BOTTOM + 30;

  for (size_t n = 0; n < plot->count; n++) {
    size_t lowest = SERIES_MAX;

    for (size_t k = 0; k < plot->count; k++)
      if (!done[k] && (lowest == SERIES_MAX || last_value(plot, &plot->series[k]) < last_value(plot, &plot->series[lowest])))
        lowest = k;
    const struct series *series = &plot->series[lowest];
    double y = fmin(plot_y(plot, last_value(plot, series)) + 4, below - 17);

    done[lowest] = true;
    below = y;
    sc_buf_printf(html, "<text x=\"%d\" y=\"%.1f\" class=\"label v%zu\">", PLOT_W - PLOT_RIGHT + 10, y, lowest % 4);
    sc_html_put_name(html, series->variant, 24);
    if (series->law && series->law->stated && series->law->text) {
      sc_buf_puts(html, ": ");
      sc_html_put_name(html, series->law->text, 40);
    }
    sc_buf_puts(html, "</text>\n");
  }
}

static void put_laws(struct sc_buf *html, const struct sc_findings *f)
{
  struct plot plot = {.f = f};

  gather_series(&plot, f);
  if (plot.count == 0)
    return;
  plot.max_x *= 1.06;
  plot.max_y = fmax(1, plot.max_y * 1.06);
  open_figure(html, "Syncs a layer over the number of experts. Lines are the fitted laws, points what was counted.");
  sc_html_open_scroll(html, "Plot, may scroll sideways");
  sc_buf_printf(html, "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\"><title>Syncs a layer over experts</title><desc>",
                PLOT_W, PLOT_H);
  for (size_t k = 0; k < plot.count; k++) {
    sc_html_put_name(html, plot.series[k].variant, 0);
    sc_buf_puts(html, ":");
    for (size_t i = 0; i < f->run_count; i++)
      if (is_of(&f->runs[i], &plot.series[k]))
        sc_buf_printf(html, " %g at %" PRIu64 " experts,", f->runs[i].per_layer_mean, f->runs[i].experts);
    sc_buf_puts(html, " ");
    sc_html_put_name(html, plot.series[k].law ? plot.series[k].law->text : "no law", 0);
    sc_buf_puts(html, ". ");
  }
  sc_buf_puts(html, "</desc>\n");
  put_axes(html, &plot);
  for (size_t k = 0; k < plot.count; k++)
    put_series(html, &plot, k);
  put_labels(html, &plot);
  sc_buf_puts(html, "</svg></div></figure>\n");
}

/* ---- the ruler -------------------------------------------------------------------------------------------------- */

enum { RULER_W = 640, RULER_LEFT = 150, RULER_RIGHT = 90, RULER_ROW = 26, RULER_TOP = 8 };

struct log_axis {
  double low, high; /* us */
};

static double axis_x(const struct log_axis *axis, double us)
{
  double at = log(fmax(us, axis->low) / axis->low) / log(axis->high / axis->low);

  return RULER_LEFT + at * (RULER_W - RULER_LEFT - RULER_RIGHT);
}

static bool row_is_whole(const struct sc_ruler_row *row)
{
  return row->method && row->min_us > 0 && row->p10_us > 0 && row->p50_us > 0 && row->p90_us > 0 &&
         isfinite(row->p99_us) && isfinite(row->mean_us);
}

static bool ruler_axis(const struct sc_findings *f, struct log_axis *axis)
{
  *axis = (struct log_axis){INFINITY, 0};
  for (size_t i = 0; i < f->ruler_count; i++) {
    if (!row_is_whole(&f->ruler[i]))
      continue;
    axis->low = fmin(axis->low, f->ruler[i].min_us);
    axis->high = fmax(axis->high, f->ruler[i].p99_us);
  }
  axis->low *= 0.9;
  axis->high *= 1.1;
  return axis->high > axis->low;
}

static void put_ruler_ticks(struct sc_buf *html, const struct log_axis *axis, int bottom)
{
  static const int steps[] = {1, 2, 5};

  for (int power = -3; power < 7; power++) {
    for (size_t i = 0; i < SC_COUNTOF(steps); i++) {
      double us = steps[i] * pow(10, power);

      if (us < axis->low || us > axis->high)
        continue;
      sc_buf_printf(html, "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" class=\"mid\">%g</text>\n",
                    axis_x(axis, us), RULER_TOP, bottom, axis_x(axis, us), bottom + 16, us);
    }
  }
  sc_buf_printf(html, "<text x=\"%d\" y=\"%d\" class=\"end\">us</text>\n", RULER_W - RULER_RIGHT + 26, bottom + 16);
}

static void put_ruler_row(struct sc_buf *html, const struct log_axis *axis, const struct sc_ruler_row *row, double y)
{
  sc_buf_printf(html, "<text x=\"%d\" y=\"%.1f\" class=\"end\">", RULER_LEFT - 8, y + 4);
  sc_html_put_name(html, row->method, 20);
  sc_buf_printf(html, "</text><path class=\"whisker\" d=\"M%.1f %.1fH%.1f\"/>", axis_x(axis, row->min_us), y,
                axis_x(axis, row->p99_us));
  sc_buf_printf(html, "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"12\"/>",
                axis_x(axis, row->p10_us), y - 6, fmax(1, axis_x(axis, row->p90_us) - axis_x(axis, row->p10_us)));
  sc_buf_printf(html, "<path class=\"median\" d=\"M%.1f %.1fv16\"/><text x=\"%d\" y=\"%.1f\">",
                axis_x(axis, row->p50_us), y - 8, RULER_W - RULER_RIGHT + 8, y + 4);
  sc_html_put_time(html, row->p50_us);
  sc_buf_puts(html, "</text>\n");
}

static void put_block_means(struct sc_buf *html, const struct log_axis *axis, const struct sc_ruler_row *row, double y)
{
  sc_buf_printf(html, "<text x=\"%d\" y=\"%.1f\" class=\"end\">its block means</text>", RULER_LEFT - 8, y + 4);
  for (uint64_t i = 0; i < row->blocks && i < 200; i++)
    sc_buf_printf(html, "<circle class=\"mean\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>",
                  axis_x(axis, fmin(row->block_means_us[i], axis->high)), y);
  sc_buf_puts(html, "\n");
}

/* Of the round trip alone: it is what the floor and its range come from. */
static bool shows_blocks(const struct sc_ruler_row *row)
{
  return row->block_means_us && strcmp(row->method, "launch+readback") == 0;
}

static void put_ruler(struct sc_buf *html, const struct sc_findings *f)
{
  struct log_axis axis;
  size_t rows = 0;

  if (sc_findings_simulated(f) || !ruler_axis(f, &axis))
    return;
  for (size_t i = 0; i < f->ruler_count; i++)
    rows += row_is_whole(&f->ruler[i]) ? 1 + shows_blocks(&f->ruler[i]) : 0;
  int bottom = RULER_TOP + (int)rows * RULER_ROW;
  open_figure(html, "Round trips on this host: box from p10 to p90, line from the shortest to p99, bar and number the "
                    "median. The scale is logarithmic.");
  sc_html_open_scroll(html, "Plot, may scroll sideways");
  sc_buf_printf(html, "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\"><title>Distribution of round trips"
                      "</title><desc>",
                RULER_W, bottom + 24);
  for (size_t i = 0; i < f->ruler_count; i++) {
    if (!row_is_whole(&f->ruler[i]))
      continue;
    sc_html_put_name(html, f->ruler[i].method, 0);
    sc_buf_puts(html, ": median ");
    sc_html_put_time(html, f->ruler[i].p50_us);
    sc_buf_puts(html, ". ");
  }
  sc_buf_puts(html, "</desc>\n");
  put_ruler_ticks(html, &axis, bottom);
  double y = RULER_TOP + RULER_ROW / 2.0;
  for (size_t i = 0; i < f->ruler_count; i++) {
    const struct sc_ruler_row *row = &f->ruler[i];

    if (!row_is_whole(row))
      continue;
    put_ruler_row(html, &axis, row, y);
    y += RULER_ROW;
    if (shows_blocks(row)) {
      put_block_means(html, &axis, row, y);
      y += RULER_ROW;
    }
  }
  sc_buf_puts(html, "</svg></div></figure>\n");
}

/* ---- the floor in the forward --------------------------------------------------------------------------------- */

enum { BAR_W = 640, BAR_LEFT = 190, BAR_RIGHT = 200, BAR_ROW = 26, BARS_MAX = 60 };

static bool has_bar(const struct sc_findings *f, const struct sc_run *run)
{
  return sc_run_has_forward(f, run) && sc_run_has_floor(f, run) && run->forward_p50_us > 0;
}

static void put_bar(struct sc_buf *html, const struct sc_run *run, double longest_us, bool name_tokens, double y)
{
  double scale = (BAR_W - BAR_LEFT - BAR_RIGHT) / longest_us;
  double floor_us = fmin(run->floor_mean_us, run->forward_p50_us);
  struct sc_buf share = {0};

  sc_buf_printf(html, "<text x=\"%d\" y=\"%.1f\" class=\"end\">", BAR_LEFT - 8, y + 4);
  sc_html_put_name(html, run->variant, 24);
  sc_buf_printf(html, ", E=%" PRIu64, run->experts);
  if (name_tokens)
    sc_buf_printf(html, ", T=%" PRIu64, run->tokens);
  sc_buf_printf(html,
                "</text><rect class=\"rest\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"16\"/>"
                "<rect class=\"wait\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"16\"/><text x=\"%.1f\" y=\"%.1f\">",
                BAR_LEFT, y - 8, fmax(1, run->forward_p50_us * scale), BAR_LEFT, y - 8, floor_us * scale,
                BAR_LEFT + run->forward_p50_us * scale + 8, y + 4);
  if (run->floor_mean_us > 0)
    sc_html_put_time(html, run->floor_mean_us);
  else
    sc_buf_puts(html, "none");
  sc_buf_puts(html, " of ");
  sc_html_put_time(html, run->forward_p50_us);
  if (run->floor_mean_us > 0) {
    sc_put_share(&share, run->floor_mean_us, run->forward_p50_us);
    html->failed |= share.failed;
    sc_buf_puts(html, ", ");
    sc_html_put_doc_text(html, share.data ? share.data : "");
    sc_buf_free(&share);
  }
  sc_buf_puts(html, "</text>\n");
}

static void put_floor(struct sc_buf *html, const struct sc_findings *f)
{
  double longest_us = 0;
  size_t bars = 0;
  bool name_tokens = false;

  for (size_t i = 0; i < f->run_count; i++) {
    if (!has_bar(f, &f->runs[i]))
      continue;
    bars++;
    longest_us = fmax(longest_us, f->runs[i].forward_p50_us);
    name_tokens |= f->runs[i].tokens != f->runs[0].tokens;
  }
  if (!bars)
    return;
  if (bars > BARS_MAX)
    bars = BARS_MAX;
  open_figure(html, "The floor (coloured: read-backs x mean round trip) in the measured forward (the whole bar).");
  sc_html_open_scroll(html, "Plot, may scroll sideways");
  sc_buf_printf(html, "<svg class=\"plot\" viewBox=\"0 0 %d %zu\" role=\"img\"><title>Floor against measured forward"
                      "</title><desc>The numbers stand beside the bars and in the table of runs.</desc>\n",
                BAR_W, bars * BAR_ROW + 8);
  double y = 4 + BAR_ROW / 2.0;
  for (size_t i = 0; i < f->run_count && bars; i++) {
    if (!has_bar(f, &f->runs[i]))
      continue;
    put_bar(html, &f->runs[i], longest_us, name_tokens, y);
    y += BAR_ROW;
    bars--;
  }
  sc_buf_puts(html, "</svg></div></figure>\n");
}

/* ---- syncs by layer and expert ------------------------------------------------------------------------------------ */

enum { HEAT_LEFT = 74, HEAT_TOP = 22, HEAT_BOTTOM = 22, HEAT_OUTSIDE = 30 };

struct heat {
  const struct sc_run *run;
  double cell_w, cell_h, max;
};

static double per_forward(const struct heat *heat, uint64_t syncs)
{
  return (double)syncs / (double)heat->run->forwards;
}

static uint64_t outside_of(const struct sc_run *run, uint64_t layer)
{
  return run->by_layer_outside ? run->by_layer_outside[layer] : 0; /* see has_heat */
}

static void put_cell(struct sc_buf *html, const struct heat *heat, double x, double width, uint64_t layer, uint64_t syncs)
{
  if (syncs)
    sc_buf_printf(html, "<rect class=\"hot\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill-opacity=\"%.2f\"/>",
                  x, HEAT_TOP + (double)layer * heat->cell_h, width, heat->cell_h,
                  0.15 + 0.85 * per_forward(heat, syncs) / heat->max);
}

/* Equal neighbours are one rectangle: most rows are. */
static void put_heat_row(struct sc_buf *html, const struct heat *heat, uint64_t layer)
{
  const uint64_t *row = heat->run->by_layer_expert[layer];
  uint64_t from = 0;

  for (uint64_t expert = 1; expert <= heat->run->experts; expert++) {
    if (expert < heat->run->experts && row[expert] == row[from])
      continue;
    put_cell(html, heat, HEAT_LEFT + (double)from * heat->cell_w, (double)(expert - from) * heat->cell_w, layer,
             row[from]);
    from = expert;
  }
  put_cell(html, heat, HEAT_LEFT + (double)heat->run->experts * heat->cell_w + HEAT_OUTSIDE / 2.0, HEAT_OUTSIDE / 2.0,
           layer, outside_of(heat->run, layer));
}

static void put_heat_grid(struct sc_buf *html, const struct heat *heat)
{
  double bottom = HEAT_TOP + (double)heat->run->layers * heat->cell_h;
  double right = HEAT_LEFT + (double)heat->run->experts * heat->cell_w;

  sc_buf_puts(html, "<path class=\"cells\" d=\"");
  for (uint64_t i = 0; i <= heat->run->experts; i++)
    sc_buf_printf(html, "M%.1f %dV%.1f", HEAT_LEFT + (double)i * heat->cell_w, HEAT_TOP, bottom);
  for (uint64_t i = 0; i <= heat->run->layers; i++)
    sc_buf_printf(html, "M%d %.1fH%.1f", HEAT_LEFT, HEAT_TOP + (double)i * heat->cell_h, right);
  sc_buf_printf(html, "\"/><path class=\"cells\" d=\"M%.1f %dh%.1fV%.1fh-%.1fz\"/>\n", right + HEAT_OUTSIDE / 2.0,
                HEAT_TOP, HEAT_OUTSIDE / 2.0, bottom, HEAT_OUTSIDE / 2.0);
  sc_buf_printf(html, "<text x=\"%d\" y=\"%.1f\" class=\"end\">layer 0</text>", HEAT_LEFT - 6,
                HEAT_TOP + heat->cell_h / 2 + 4);
  if (heat->run->layers > 1)
    sc_buf_printf(html, "<text x=\"%d\" y=\"%.1f\" class=\"end\">%" PRIu64 "</text>", HEAT_LEFT - 6,
                  bottom - heat->cell_h / 2 + 4, heat->run->layers - 1);
  sc_buf_printf(html,
                "<text x=\"%d\" y=\"%d\">expert 0 to %" PRIu64 "</text><text x=\"%.1f\" y=\"%.1f\" class=\"end\">"
                "outside experts</text>\n",
                HEAT_LEFT, HEAT_TOP - 7, heat->run->experts - 1, right + HEAT_OUTSIDE, bottom + 16);
}

static void put_heat_of(struct sc_buf *html, const struct sc_run *run)
{
  struct heat heat = {.run = run, .cell_w = fmax(2, fmin(28, 520.0 / (double)run->experts)),
                      .cell_h = fmax(5, fmin(18, 240.0 / (double)run->layers))};

  for (uint64_t layer = 0; layer < run->layers; layer++) {
    for (uint64_t expert = 0; expert < run->experts; expert++)
      heat.max = fmax(heat.max, per_forward(&heat, run->by_layer_expert[layer][expert]));
    heat.max = fmax(heat.max, per_forward(&heat, outside_of(run, layer)));
  }
  double width = fmax(240, HEAT_LEFT + (double)run->experts * heat.cell_w + HEAT_OUTSIDE + 4);
  double height = HEAT_TOP + (double)run->layers * heat.cell_h + HEAT_BOTTOM;
  sc_buf_puts(html, "<figure><figcaption>Syncs by layer and expert, ");
  sc_html_put_name(html, run->variant, 24);
  sc_buf_printf(html, ", E=%" PRIu64 ", %" PRIu64 " token%s: ", run->experts, run->tokens, sc_plural(run->tokens));
  if (heat.max > 0)
    sc_buf_printf(html, "the strongest cell has %g a forward, an empty one none.</figcaption>\n", heat.max);
  else
    sc_buf_puts(html, "none anywhere.</figcaption>\n");
  sc_html_open_scroll(html, "Heat map, may scroll sideways");
  sc_buf_printf(html, "<svg class=\"heat\" style=\"width:%.0fpx\" viewBox=\"0 0 %.0f %.0f\" role=\"img\"><title>Syncs by layer and "
                      "expert</title><desc>",
                width, width, height);
  sc_buf_printf(html, "%" PRIu64 " syncs in %" PRIu64 " forwards of %" PRIu64 " layers; %" PRIu64
                      " of them outside of experts.</desc>\n",
                run->counts.syncs, run->forwards, run->layers, run->outside_experts);
  for (uint64_t layer = 0; layer < run->layers; layer++)
    put_heat_row(html, &heat, layer);
  put_heat_grid(html, &heat);
  sc_buf_puts(html, "</svg></div></figure>\n");
}

static bool has_heat(const struct sc_run *run)
{
  /* Reports of old do not say in which layers those outside of experts were. */
  return run->counted && run->by_layer_expert && run->forwards && run->experts && run->layers &&
         (run->by_layer_outside || run->outside_experts == 0);
}

/* Of each variant and token count the largest number of experts. */
static bool is_largest(const struct sc_findings *f, const struct sc_run *run)
{
  for (size_t i = 0; i < f->run_count; i++) {
    const struct sc_run *other = &f->runs[i];

    if (has_heat(other) && strcmp(other->variant, run->variant) == 0 && other->tokens == run->tokens &&
        other->experts > run->experts)
      return false;
  }
  return true;
}

static void put_heats(struct sc_buf *html, const struct sc_findings *f, size_t budget)
{
  size_t before = html->len, left_out = 0;

  for (size_t i = 0; i < f->run_count && !html->failed; i++) {
    size_t at = html->len;

    if (!has_heat(&f->runs[i]) || !is_largest(f, &f->runs[i]))
      continue;
    put_heat_of(html, &f->runs[i]);
    if (html->len - before <= budget)
      continue;
    html->len = at; /* too large a figure: the tables have its numbers */
    html->data[at] = '\0';
    left_out++;
  }
  if (left_out)
    sc_buf_printf(html, "<p class=\"note\">%zu heat maps would make this page too large; JSON has by_layer_expert.</p>\n",
                  left_out);
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

enum sc_status sc_figure_put(struct sc_buf *html, const struct sc_findings *findings, enum sc_figure figure,
                             size_t index, size_t budget, struct sc_error *err)
{
  enum sc_status status = SC_OK;

  switch (figure) {
  case SC_FIGURE_LAWS: put_laws(html, findings); break;
  case SC_FIGURE_FLOOR: put_floor(html, findings); break;
  case SC_FIGURE_HEAT: put_heats(html, findings, budget); break;
  case SC_FIGURE_RULER: put_ruler(html, findings); break;
  case SC_FIGURE_TIMELINE: status = sc_figure_timeline(html, findings, index, budget, err); break;
  }
  if (status == SC_OK && html->failed)
    status = sc_error_set(err, SC_ERR_NOMEM, "no memory to draw a figure");
  return status;
}
