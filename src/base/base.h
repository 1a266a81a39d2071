/* SPDX-License-Identifier: Apache-2.0
 * base: errors, strings, arrays, statistics, clock. No CUDA, no policy. */
#ifndef SC_BASE_H
#define SC_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SC_NODISCARD __attribute__((warn_unused_result))
#define SC_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define SC_COUNTOF(a) (sizeof(a) / sizeof((a)[0]))

/* ---- errors -------------------------------------------------------------------------------
 * Every fallible function returns an enum sc_status and fills *err (may be NULL) with one
 * sentence that says what was tried, what was found, and what to do. Only cli prints and exits. */
#define SC_STATUS_MAP(X)                                              \
  X(SC_OK, "success")                                                 \
  X(SC_ERR_NOMEM, "out of memory")                                    \
  X(SC_ERR_USAGE, "usage error")                                      \
  X(SC_ERR_CONFIG, "configuration error")                             \
  X(SC_ERR_IO, "input or output error")                               \
  X(SC_ERR_FORMAT, "not in the expected format, or damaged")          \
  X(SC_ERR_VERSION, "unsupported format version")                     \
  X(SC_ERR_LIMIT, "a limit was exceeded")                             \
  X(SC_ERR_DEVICE, "no usable CUDA device")                           \
  X(SC_ERR_MEASURE, "could not measure")                              \
  X(SC_ERR_SYSTEM, "a system call failed")                            \
  X(SC_ERR_INTERNAL, "internal error")

enum sc_status {
#define SC_STATUS_ENUM(name, text) name,
  SC_STATUS_MAP(SC_STATUS_ENUM)
#undef SC_STATUS_ENUM
};

struct sc_error {
  enum sc_status status;
  char message[1024]; /* NUL-terminated; truncated with "..." when longer */
};

/* "SC_ERR_IO" and "input or output error"; never NULL. */
const char *sc_status_name(enum sc_status status);
const char *sc_status_text(enum sc_status status);

/* Fills *err (if not NULL) and returns status, so that `return sc_error_set(err, ...)` works. */
enum sc_status sc_error_set(struct sc_error *err, enum sc_status status, const char *format, ...) SC_PRINTF(3, 4);
/* The same with SC_ERR_NOMEM and "out of memory", where there is no more to say. */
enum sc_status sc_error_no_memory(struct sc_error *err);
/* Puts "prefix: " in front of an existing message. */
void sc_error_prefix(struct sc_error *err, const char *format, ...) SC_PRINTF(2, 3);

/* ---- growing byte buffer ------------------------------------------------------------------
 * A failed allocation sets `failed` and later calls do nothing: check once, at the end. `data`
 * is NUL-terminated whenever it is not NULL. Owned by the caller; sc_buf_free makes it reusable. */
struct sc_buf {
  char *data;
  size_t len, cap;
  bool failed;
};
void sc_buf_append(struct sc_buf *buf, const void *bytes, size_t n);
void sc_buf_puts(struct sc_buf *buf, const char *text);
void sc_buf_printf(struct sc_buf *buf, const char *format, ...) SC_PRINTF(2, 3);
void sc_buf_free(struct sc_buf *buf);

/* ---- memory and arrays --------------------------------------------------------------------
 * NULL on overflow or when memory is out; the caller owns the result and frees it with free(). */
void *sc_calloc_array(size_t count, size_t size) SC_NODISCARD __attribute__((malloc, alloc_size(1, 2)));
/* Makes room for one more element: returns a pointer to the zeroed new element and updates
 * array, count and capacity, or NULL (array unchanged). `array` is the address of a T*. */
void *sc_array_push(void *array, size_t *count, size_t *capacity, size_t size) SC_NODISCARD;
char *sc_strdup(const char *text) SC_NODISCARD;             /* NULL for NULL */
char *sc_strndup(const char *text, size_t n) SC_NODISCARD;
char *sc_asprintf(const char *format, ...) SC_NODISCARD SC_PRINTF(1, 2);

/* ---- strings in: strict, whole-string parsers; false on anything else, *out then unchanged -- */
bool sc_parse_u64(const char *text, uint64_t *out);              /* decimal digits only, no sign */
bool sc_parse_double(const char *text, double *out);             /* finite */
bool sc_parse_time_us(const char *text, double *out_us);   /* "26us" "1.5ms" "0.2s" "800ns"; a unit is required; >= 0 */
bool sc_parse_size(const char *text, uint64_t *out_bytes); /* "64", "64K", "64M", "64G" (1024-based, KiB accepted) */
/* "4,8,16" -> array of positive numbers, each at most max. The caller frees *out. */
enum sc_status sc_parse_u64_list(const char *text, uint64_t max, uint64_t **out, size_t *count,
                                 struct sc_error *err) SC_NODISCARD;
bool sc_starts_with(const char *text, const char *start);
/* The text's lines one by one, without their ends. Changes the text and *rest. NULL: there is no more. */
char *sc_next_line(char **rest);
/* Shell-style pattern with * and ? over whole strings, no other metacharacters. */
bool sc_match(const char *pattern, const char *text);

/* ---- strings out --------------------------------------------------------------------------
 * A time with a sensible number of digits and a unit: "842 ns", "10.2 us", "1.51 ms", "2.3 s".
 * A NaN is "not measured". Returns buf. */
#define SC_TIME_TEXT 24
char *sc_format_time_us(double us, char buf[static SC_TIME_TEXT]);
/* Copies text for a terminal or Markdown: control characters, bidirectional ones and invalid UTF-8 become \xNN. */
void sc_buf_put_printable(struct sc_buf *buf, const char *text, size_t n);
/* Copies text; each byte that is part of no valid UTF-8 sequence becomes U+FFFD. */
void sc_buf_put_valid(struct sc_buf *buf, const char *text, size_t n);
/* What stands in GitHub's Markdown for the byte text[at] of foreign, printable text, so that it can neither break a
 * table, nor make a link, mention, reference or tag. NULL: itself. in_code: inside <code>, where GitHub looks for no
 * mention. text is NUL-terminated. */
const char *sc_markdown_escape(const char *text, size_t at, bool in_code);
/* Number of bytes of the valid UTF-8 sequence at text (1..4), 0 if invalid. n: bytes that remain. */
size_t sc_utf8_length(const char *text, size_t n);

/* ---- hashing ---------------------------------------------------------------------------------
 * FNV-1a, begun with SC_HASH_SEED. The ids of sites are such values: they must not change. */
#define SC_HASH_SEED UINT64_C(0xcbf29ce484222325)
static inline uint64_t sc_hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
  const unsigned char *at = (const unsigned char *)bytes;
  for (size_t i = 0; i < n; ++i)
    hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
  return hash;
}
/* One number more, for hash tables: faster than its bytes, and no value to keep. */
static inline uint64_t sc_hash_mix(uint64_t hash, uint64_t value)
{
  hash = (hash ^ value) * UINT64_C(0x9fb21c651e98df25);
  return hash ^ hash >> 32;
}
/* With an end that no UTF-8 text has, so that "ab" and "c" differ from "a" and "bc". NULL counts as "". */
static inline uint64_t sc_hash_text(uint64_t hash, const char *text)
{
  for (; text && *text; ++text)
    hash = sc_hash_bytes(hash, text, 1);
  return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

/* ---- files ---------------------------------------------------------------------------------
 * An empty file to write and read, in TMPDIR or /tmp, without a name: gone when it is closed, or with the process. NULL:
 * errno says why. */
FILE *sc_temporary_file(void) SC_NODISCARD;

/* ---- clock --------------------------------------------------------------------------------- */
uint64_t sc_clock_mono_ns(void); /* CLOCK_MONOTONIC */
uint64_t sc_clock_real_ns(void); /* CLOCK_REALTIME */

/* ---- statistics: n == 0 gives NaN everywhere ------------------------------------------------ */
void sc_stats_sort(double *values, size_t n); /* ascending; NaN last */
/* Linear interpolation between order statistics of a SORTED array; q in 0..1. */
double sc_stats_quantile(const double *sorted, size_t n, double q);
double sc_stats_mean(const double *values, size_t n);
/* Least squares y = slope x + intercept with the slope's two-sided 95 % confidence interval
 * (Student's t, n - 2 degrees of freedom). False if n < 3 or all x are equal. */
struct sc_fit {
  double slope, intercept, low, high;
};
bool sc_stats_fit(const double *x, const double *y, size_t n, struct sc_fit *fit);

/* Log-linear histogram of unsigned values: exact below 64, within 1/32 above. Fixed memory. */
#define SC_HIST_BUCKETS (64 + 58 * 32)
struct sc_hist {
  uint64_t count, min, max;
  double sum;
  uint32_t *buckets; /* allocated at the first add; NULL when empty or out of memory */
};
void sc_hist_add(struct sc_hist *hist, uint64_t value);
void sc_hist_merge(struct sc_hist *into, const struct sc_hist *from);
double sc_hist_quantile(const struct sc_hist *hist, double q); /* NaN when empty */
void sc_hist_free(struct sc_hist *hist);

#endif
