/* SPDX-License-Identifier: Apache-2.0
 * Order statistics, a straight line with its interval, and a histogram of fixed size. */
#include "base/base.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *left, const void *right)
{
  double a = *(const double *)left, b = *(const double *)right;
  if (isnan(a) || isnan(b))
    return isnan(a) - isnan(b);
  return (a > b) - (a < b);
}

void sc_stats_sort(double *values, size_t n)
{
  if (n > 1)
    qsort(values, n, sizeof *values, compare_doubles);
}

double sc_stats_quantile(const double *sorted, size_t n, double q)
{
  if (n == 0 || !(q >= 0 && q <= 1))
    return NAN;
  double position = q * (double)(n - 1);
  size_t below = (size_t)position;
  if (below + 1 >= n)
    return sorted[n - 1];
  double part = position - (double)below;
  return part == 0 ? sorted[below] : sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

double sc_stats_mean(const double *values, size_t n)
{
  double sum = 0;
  for (size_t i = 0; i < n; ++i)
    sum += values[i];
  return n ? sum / (double)n : NAN;
}

/* Student's t, two-sided 95 %. Rows between the listed ones take the row below: never too narrow. */
static double t_95(size_t freedom)
{
  static const double small[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080,
                                 2.074, 2.069,  2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (freedom < SC_COUNTOF(small))
    return small[freedom];
  return freedom < 40 ? 2.042 : freedom < 60 ? 2.021 : freedom < 120 ? 2.000 : freedom < 1000 ? 1.980 : 1.962;
}

bool sc_stats_fit(const double *x, const double *y, size_t n, struct sc_fit *fit)
{
  if (n < 3)
    return false;
  double mean_x = sc_stats_mean(x, n), mean_y = sc_stats_mean(y, n), sxx = 0, sxy = 0;
  for (size_t i = 0; i < n; ++i) {
    sxx += (x[i] - mean_x) * (x[i] - mean_x);
    sxy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (!(sxx > 0) || !isfinite(sxy))
    return false;
  double slope = sxy / sxx, intercept = mean_y - slope * mean_x, residual = 0;
  for (size_t i = 0; i < n; ++i) {
    double error = y[i] - intercept - slope * x[i];
    residual += error * error;
  }
  double half = t_95(n - 2) * sqrt(residual / (double)(n - 2) / sxx);
  *fit = (struct sc_fit){.slope = slope, .intercept = intercept, .low = slope - half, .high = slope + half};
  return true;
}

/* Values below 64 have a bucket each; every further power of two has 32. */
static unsigned bucket_of(uint64_t value)
{
  if (value < 64)
    return (unsigned)value;
  unsigned exponent = 63u - (unsigned)__builtin_clzll(value); /* >= 6 */
  return 64u + (exponent - 6u) * 32u + (unsigned)((value >> (exponent - 5u)) & 31u);
}

/* The middle of a bucket. */
static double bucket_value(unsigned bucket)
{
  if (bucket < 64)
    return bucket;
  unsigned exponent = (bucket - 64u) / 32u + 6u, part = (bucket - 64u) % 32u;
  double width = ldexp(1.0, (int)exponent - 5);
  return (32.0 + part) * width + (width - 1) / 2;
}

void sc_hist_add(struct sc_hist *hist, uint64_t value)
{
  if (hist->count == 0 || value < hist->min)
    hist->min = value;
  if (value > hist->max)
    hist->max = value;
  ++hist->count;
  hist->sum += (double)value;
  if (!hist->buckets)
    hist->buckets = calloc(SC_HIST_BUCKETS, sizeof *hist->buckets);
  if (hist->buckets) {
    uint32_t *bucket = &hist->buckets[bucket_of(value)];
    if (*bucket != UINT32_MAX)
      ++*bucket;
  }
}

void sc_hist_merge(struct sc_hist *into, const struct sc_hist *from)
{
  if (from->count == 0)
    return;
  if (into->count == 0 || from->min < into->min)
    into->min = from->min;
  if (from->max > into->max)
    into->max = from->max;
  into->count += from->count;
  into->sum += from->sum;
  if (!into->buckets)
    into->buckets = calloc(SC_HIST_BUCKETS, sizeof *into->buckets);
  for (unsigned i = 0; into->buckets && from->buckets && i < SC_HIST_BUCKETS; ++i) {
    uint32_t room = UINT32_MAX - into->buckets[i];
    into->buckets[i] += from->buckets[i] < room ? from->buckets[i] : room;
  }
}

double sc_hist_quantile(const struct sc_hist *hist, double q)
{
  if (hist->count == 0 || !hist->buckets || !(q >= 0 && q <= 1))
    return NAN;
  uint64_t total = 0, seen = 0;
  for (unsigned i = 0; i < SC_HIST_BUCKETS; ++i)
    total += hist->buckets[i];
  /* The median of an even count is the mean of the two in the middle, as people expect of whole counts. */
  double position = q * (double)(total - 1), low = NAN;
  uint64_t rank = (uint64_t)position;
  bool between = position > (double)rank;
  for (unsigned i = 0; i < SC_HIST_BUCKETS; ++i) {
    seen += hist->buckets[i];
    if (seen > rank && isnan(low)) {
      low = bucket_value(i);
      if (!between || seen > rank + 1)
        break;
    } else if (seen > rank + 1) {
      low += (position - (double)rank) * (bucket_value(i) - low);
      break;
    }
  }
  return fmin(fmax(low, (double)hist->min), (double)hist->max);
}

void sc_hist_free(struct sc_hist *hist)
{
  free(hist->buckets);
  *hist = (struct sc_hist){0};
}
