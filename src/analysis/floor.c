/* SPDX-License-Identifier: Apache-2.0
 * Times: the ruler's rows, the floor of a forward, and the marginal cost of a sync. */
#include "analysis/analysis.h"

#include <math.h>
#include <stdlib.h>

struct price { /* of one round trip */
  double low_us, mean_us, high_us;
  uint64_t blocks;
};

/* A floor is a sum of round trips, and a sum has a mean, not a median; each block weighs the same, whatever its size.
 */
static struct price price_of(const struct sc_ruler_row *row)
{
  struct price price = {.low_us = NAN, .mean_us = NAN, .high_us = NAN};
  if (!row || !row->block_means_us)
    return price;
  double sum = 0;
  for (uint64_t i = 0; i < row->blocks; ++i) {
    double mean = row->block_means_us[i];
    if (!isfinite(mean)) /* a block without samples */
      continue;
    sum += mean;
    price.low_us = price.blocks == 0 || mean < price.low_us ? mean : price.low_us;
    price.high_us = price.blocks == 0 || mean > price.high_us ? mean : price.high_us;
    ++price.blocks;
  }
  if (price.blocks)
    price.mean_us = sum / (double)price.blocks;
  return price;
}

bool sc_ruler_from_samples(struct sc_ruler_row *row, const char *method, double *samples_us, const size_t *block_sizes,
                           size_t blocks)
{
  size_t count = 0;
  *row = (struct sc_ruler_row){.method = sc_strdup(method), .blocks = blocks};
  if (blocks)
    row->block_means_us = sc_calloc_array(blocks, sizeof *row->block_means_us);
  if (!row->method || (blocks && !row->block_means_us)) {
    free(row->method);
    free(row->block_means_us);
    *row = (struct sc_ruler_row){0};
    return false;
  }
  for (size_t i = 0; i < blocks; ++i) {
    row->block_means_us[i] = sc_stats_mean(samples_us + count, block_sizes[i]);
    count += block_sizes[i];
  }
  row->samples = count;
  row->mean_us = price_of(row).mean_us;
  sc_stats_sort(samples_us, count);
  row->min_us = sc_stats_quantile(samples_us, count, 0);
  row->p10_us = sc_stats_quantile(samples_us, count, 0.10);
  row->p50_us = sc_stats_quantile(samples_us, count, 0.50);
  row->p90_us = sc_stats_quantile(samples_us, count, 0.90);
  row->p99_us = sc_stats_quantile(samples_us, count, 0.99);
  return true;
}

bool sc_runs_floor(struct sc_findings *findings)
{
  struct price price = price_of(sc_findings_ruler(findings, "launch+readback"));
  for (size_t i = 0; i < findings->run_count; ++i) {
    struct sc_run *run = &findings->runs[i];
    double trips = run->counted && run->forwards
                       ? (double)(run->counts.read_backs + run->counts.blocking_uploads) / (double)run->forwards
                       : NAN;
    run->floor_low_us = trips * price.low_us;
    run->floor_mean_us = trips * price.mean_us;
    run->floor_high_us = trips * price.high_us;
    run->floor_blocks = price.blocks;
    free(run->assumed_floor_us);
    run->assumed_floor_us = NULL;
    if (findings->assumed_count == 0)
      continue;
    run->assumed_floor_us = sc_calloc_array(findings->assumed_count, sizeof *run->assumed_floor_us);
    if (!run->assumed_floor_us)
      return false;
    for (size_t j = 0; j < findings->assumed_count; ++j)
      run->assumed_floor_us[j] = trips * findings->assumed_us[j];
  }
  return true;
}

void sc_marginal_fit(struct sc_marginal *marginal, const double *syncs, const double *forward_us, size_t n)
{
  struct sc_fit fit;
  bool fitted = sc_stats_fit(syncs, forward_us, n, &fit);
  marginal->mean_us = fitted ? fit.slope : NAN;
  marginal->low_us = fitted ? fit.low : NAN;
  marginal->high_us = fitted ? fit.high : NAN;
}

bool sc_ruler_drifts(const struct sc_ruler_row *row, double *first_us, double *last_us)
{
  *first_us = *last_us = NAN;
  size_t third = row->block_means_us ? (size_t)row->blocks / 3 : 0;
  if (third == 0)
    return false;
  *first_us = sc_stats_mean(row->block_means_us, third);
  *last_us = sc_stats_mean(row->block_means_us + row->blocks - third, third);
  return fmax(*first_us, *last_us) > 1.2 * fmin(*first_us, *last_us);
}
