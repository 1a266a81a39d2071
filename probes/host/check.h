/* SPDX-License-Identifier: Apache-2.0
 * What the checks of pass verify share: random inputs, poisoned device buffers, comparisons, one line on stdout each.
 */
#ifndef SC_PROBE_CHECK_H
#define SC_PROBE_CHECK_H

#include "host/gpu.h"

enum { SC_CHECK_BUFFERS = 48 };

/* The device and host buffers of one check, and the tally of all. */
struct sc_check {
  const struct sc_gpu *gpu;
  uint64_t key, counter; /* random numbers */
  void *device[SC_CHECK_BUFFERS], *host[SC_CHECK_BUFFERS];
  size_t device_count, host_count;
  unsigned passed, failed;
};

uint32_t sc_check_bits(struct sc_check *c);
float sc_check_float(struct sc_check *c, float scale); /* -scale .. scale */
/* n values, or choices: the k of a row distinct. NULL: no memory. */
void *sc_check_values(struct sc_check *c, enum sc_dtype dtype, size_t n, float scale);
int32_t *sc_check_choices(struct sc_check *c, size_t rows, uint32_t experts, uint32_t k);

/* Zeroed host memory that lives until the check ends; NULL: none left. */
void *sc_check_host(struct sc_check *c, size_t count, size_t size);
enum sc_status sc_check_no_memory(struct sc_error *err);
/* Device memory with a copy of `content`, or poisoned (NaN in both types, -1 in integers) when that is NULL. `out` is
 * where the pointer goes, of whatever type. */
enum sc_status sc_check_device(struct sc_check *c, const void *content, size_t bytes, void *out,
                               struct sc_error *err) SC_NODISCARD;
/* Waits for the stream and copies back. */
enum sc_status sc_check_fetch(struct sc_check *c, void *host, const void *device, size_t bytes,
                              struct sc_error *err) SC_NODISCARD;
void sc_check_release(struct sc_check *c);

/* One line; `error` is what the check measured. The second prints what it is given. */
void sc_check_report(struct sc_check *c, bool ok, const char *name, const char *detail, double error);
void sc_check_line(struct sc_check *c, bool ok, const char *format, ...) SC_PRINTF(3, 4);
/* Copies the result back and wants every byte of it; or that it is close. */
enum sc_status sc_check_exact(struct sc_check *c, const char *name, const char *detail, const void *device,
                              const void *expected, size_t bytes, struct sc_error *err) SC_NODISCARD;
enum sc_status sc_check_close(struct sc_check *c, const char *name, const char *detail, enum sc_dtype dtype,
                              const void *device, const double *expected, size_t n, struct sc_error *err) SC_NODISCARD;

/* Runs one check and drops its buffers whatever came of it; returns from the calling function on failure. It has `c`.
 */
#define SC_CHECK(call)                          \
  do {                                          \
    const enum sc_status check_status = (call); \
    sc_check_release(c);                        \
    if (check_status != SC_OK)                  \
      return check_status;                      \
  } while (0)

#endif
