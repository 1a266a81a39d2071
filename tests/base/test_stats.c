/* SPDX-License-Identifier: Apache-2.0
 * Statistics against values worked out by hand or known from tables. */
#include "test_support.h"

#include <math.h>

#include "base/base.h"

static void close_to(double value, double expected, double tolerance)
{
  if (!(fabs(value - expected) <= tolerance))
    fail_msg("%.12g is not within %g of %.12g", value, tolerance, expected);
}

static void quantiles_interpolate(void **state)
{
  (void)state;
  double values[] = {4, 1, NAN, 3, 2};
  sc_stats_sort(values, 5);
  assert_true(isnan(values[4]));
  close_to(sc_stats_quantile(values, 4, 0.5), 2.5, 0);
  close_to(sc_stats_quantile(values, 4, 0), 1, 0);
  close_to(sc_stats_quantile(values, 4, 1), 4, 0);
  close_to(sc_stats_quantile(values, 4, 0.1), 1.3, 1e-12);
  assert_true(isnan(sc_stats_quantile(values, 0, 0.5)));
  assert_true(isnan(sc_stats_mean(values, 0)));
  close_to(sc_stats_mean(values, 4), 2.5, 0);
}

/* x = 1..5, y = 2.2 4.1 6.2 7.9 10.1: Sxy 19.6 and Sxx 10 give slope 1.96 and intercept 0.22; the residuals
 * 0.02 -0.04 0.10 -0.16 0.08 have the square sum 0.044; sqrt(0.044 / 3 / 10) x t(3) = 3.182 gives 0.12186. */
static void a_line_has_its_interval(void **state)
{
  (void)state;
  double x[] = {1, 2, 3, 4, 5}, y[] = {2.2, 4.1, 6.2, 7.9, 10.1};
  struct sc_fit fit;
  assert_true(sc_stats_fit(x, y, 5, &fit));
  close_to(fit.slope, 1.96, 1e-9);
  close_to(fit.intercept, 0.22, 1e-9);
  close_to(fit.high - fit.slope, 0.12186, 1e-4);
  close_to(fit.slope - fit.low, fit.high - fit.slope, 1e-12);
  double same[] = {1, 1, 1};
  assert_false(sc_stats_fit(same, y, 3, &fit));
  assert_false(sc_stats_fit(x, y, 2, &fit));
}

static void histogram_is_exact_for_small_counts(void **state)
{
  (void)state;
  struct sc_hist hist = {0};
  assert_true(isnan(sc_hist_quantile(&hist, 0.5)));
  for (uint64_t i = 0; i < 10; ++i)
    sc_hist_add(&hist, i < 5 ? 12 : 14);
  close_to(sc_hist_quantile(&hist, 0.5), 13, 0);
  close_to(sc_hist_quantile(&hist, 0), 12, 0);
  close_to(sc_hist_quantile(&hist, 1), 14, 0);
  close_to(hist.sum, 130, 0);
  sc_hist_free(&hist);
}

static void histogram_is_within_a_32nd(void **state)
{
  (void)state;
  for (unsigned shift = 0; shift < 64; ++shift) {
    struct sc_hist hist = {0};
    uint64_t value = (UINT64_C(1) << shift) | (UINT64_C(1) << shift) >> 2;
    sc_hist_add(&hist, value);
    sc_hist_add(&hist, 0);
    sc_hist_add(&hist, UINT64_MAX);
    close_to(sc_hist_quantile(&hist, 0.5), (double)value, (double)value / 32);
    sc_hist_free(&hist);
  }
}

static void histogram_keeps_min_and_max(void **state)
{
  (void)state;
  struct sc_hist hist = {0};
  sc_hist_add(&hist, 1000003);
  assert_int_equal(hist.min, 1000003);
  assert_int_equal(hist.max, 1000003);
  close_to(sc_hist_quantile(&hist, 0.99), 1000003, 0); /* held between min and max */
  sc_hist_free(&hist);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quantiles_interpolate),
      cmocka_unit_test(a_line_has_its_interval),
      cmocka_unit_test(histogram_is_exact_for_small_counts),
      cmocka_unit_test(histogram_is_within_a_32nd),
      cmocka_unit_test(histogram_keeps_min_and_max),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
