/* SPDX-License-Identifier: Apache-2.0
 * Numbers as people read them, and what may be shown at all. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/content.h"

void sc_put_count(struct sc_buf *buf, uint64_t n)
{
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0 && length > 4)
      sc_buf_puts(buf, ",");
    sc_buf_append(buf, &digits[i], 1);
  }
}

void sc_put_number(struct sc_buf *buf, double value)
{
  if (isnan(value)) {
    sc_buf_puts(buf, "-");
  } else if (value >= 0 && value < 1e15 && value == floor(value)) {
    sc_put_count(buf, (uint64_t)value);
  } else {
    sc_buf_printf(buf, "%.2f", value);
  }
}

/* A number stays on the line of its unit. */
static void tighten(struct sc_buf *buf, size_t from)
{
  for (size_t i = from; i < buf->len; i++)
    if (buf->data[i] == ' ')
      buf->data[i] = SC_TIGHT_SPACE;
}

void sc_put_time(struct sc_buf *buf, double us)
{
  char text[SC_TIME_TEXT];
  size_t from = buf->len;

  sc_buf_puts(buf, isnan(us) ? "-" : sc_format_time_us(us, text));
  tighten(buf, from);
}

void sc_put_given_time(struct sc_buf *buf, double us)
{
  sc_buf_printf(buf, us < 1000 ? "%.6g%cus" : "%.6g%cms", us < 1000 ? us : us / 1000, SC_TIGHT_SPACE);
}

void sc_put_range(struct sc_buf *buf, double low, double high)
{
  char a[SC_TIME_TEXT], b[SC_TIME_TEXT];
  const char *unit_a, *unit_b;
  size_t from = buf->len;

  if (isnan(low) || isnan(high)) {
    sc_buf_puts(buf, "-");
    return;
  }
  sc_format_time_us(low, a);
  sc_format_time_us(high, b);
  unit_a = strchr(a, ' ');
  unit_b = strchr(b, ' ');
  /* "0.97-1.09 ms"; where the units differ both stand: "982 us-1.09 ms" */
  if (unit_a && unit_b && strcmp(unit_a, unit_b) == 0)
    sc_buf_append(buf, a, (size_t)(unit_a - a));
  else
    sc_buf_puts(buf, a);
  sc_buf_printf(buf, "-%s", b);
  tighten(buf, from);
}

void sc_put_share(struct sc_buf *buf, double part, double whole)
{
  double percent = 100.0 * part / whole;

  if (isnan(percent) || isinf(percent))
    sc_buf_puts(buf, "-");
  else
    sc_buf_printf(buf, percent < 9.95 ? "%.1f%c%%" : "%.0f%c%%", percent, SC_TIGHT_SPACE);
}

const char *sc_plural(uint64_t n) { return n == 1 ? "" : "s"; }

bool sc_run_has_forward(const struct sc_findings *findings, const struct sc_run *run)
{
  return !sc_findings_simulated(findings) && run->verified && !isnan(run->forward_p50_us);
}

bool sc_run_has_floor(const struct sc_findings *findings, const struct sc_run *run)
{
  return !sc_findings_simulated(findings) && run->counted && !isnan(run->floor_mean_us);
}

const struct sc_ruler_row *sc_round_trip(const struct sc_findings *findings)
{
  return sc_findings_simulated(findings) ? NULL : sc_findings_ruler(findings, "launch+readback");
}

void sc_put_variant(struct sc_buf *buf, const char *variant, bool capital)
{
  size_t n = variant ? strlen(variant) : 0, from = buf->len;

  /* The known ones are words of ours; from a damaged trace there may be anything. */
  if (n == 0 || n > 24 || strspn(variant, "abcdefghijklmnopqrstuvwxyz0123456789-+") != n) {
    sc_put_name(buf, variant, 24);
    return;
  }
  sc_buf_puts(buf, variant);
  if (capital && !buf->failed && variant[0] >= 'a')
    buf->data[from] = (char)(buf->data[from] - 'a' + 'A');
}
