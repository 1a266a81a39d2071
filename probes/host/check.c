/* SPDX-License-Identifier: Apache-2.0
 * Buffers, random inputs and comparisons of the checks of pass verify. */
#include "host/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t sc_check_bits(struct sc_check *c) { return sc_ref_hash(c->key, c->counter++); }

float sc_check_float(struct sc_check *c, float scale)
{
  return ((float)(sc_check_bits(c) >> 8) * 0x1p-23f - 1.0f) * scale;
}

void *sc_check_host(struct sc_check *c, size_t count, size_t size)
{
  void *buffer = c->host_count < SC_CHECK_BUFFERS ? sc_calloc_array(count ? count : 1, size) : NULL;
  if (buffer != NULL)
    c->host[c->host_count++] = buffer;
  return buffer;
}

enum sc_status sc_check_no_memory(struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_NOMEM, "no host memory to verify a kernel");
}

enum sc_status sc_check_device(struct sc_check *c, const void *content, size_t bytes, void *out, struct sc_error *err)
{
  void *buffer = NULL;
  if (c->device_count == SC_CHECK_BUFFERS)
    return sc_error_set(err, SC_ERR_INTERNAL, "a kernel check needs more than %d buffers", SC_CHECK_BUFFERS);
  SC_CUDA(cudaMalloc(&buffer, bytes ? bytes : 1));
  c->device[c->device_count++] = buffer;
  if (content != NULL)
    SC_CUDA(cudaMemcpy(buffer, content, bytes, cudaMemcpyHostToDevice));
  else
    SC_CUDA(cudaMemset(buffer, 0xff, bytes ? bytes : 1));
  SC_CUDA(cudaDeviceSynchronize()); /* the probe's stream does not wait for the default one */
  memcpy(out, &buffer, sizeof buffer);
  return SC_OK;
}

enum sc_status sc_check_fetch(struct sc_check *c, void *host, const void *device, size_t bytes, struct sc_error *err)
{
  SC_TRY(sc_gpu_sync(c->gpu, err));
  SC_CUDA(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
  return SC_OK;
}

void sc_check_release(struct sc_check *c)
{
  while (c->device_count > 0)
    cudaFree(c->device[--c->device_count]);
  while (c->host_count > 0)
    free(c->host[--c->host_count]);
}

static void count(struct sc_check *c, bool ok)
{
  if (ok)
    c->passed++;
  else
    c->failed++;
  printf("%-6s ", ok ? "ok" : "WRONG");
}

void sc_check_report(struct sc_check *c, bool ok, const char *name, const char *detail, double error)
{
  count(c, ok);
  printf("%-24s %-40s %s %.3g\n", name, detail, "error", error);
}

void sc_check_line(struct sc_check *c, bool ok, const char *format, ...)
{
  va_list args;
  count(c, ok);
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
}

/* Fraction of bytes that differ, 0 when equal. */
static double differing(const void *a, const void *b, size_t bytes)
{
  size_t n = 0;
  for (size_t i = 0; i < bytes; i++)
    n += ((const uint8_t *)a)[i] != ((const uint8_t *)b)[i];
  return bytes ? (double)n / (double)bytes : 0.0;
}

enum sc_status sc_check_exact(struct sc_check *c, const char *name, const char *detail, const void *device,
                              const void *expected, size_t bytes, struct sc_error *err)
{
  void *got = sc_check_host(c, bytes, 1);
  if (got == NULL)
    return sc_check_no_memory(err);
  SC_TRY(sc_check_fetch(c, got, device, bytes, err));
  const double difference = differing(got, expected, bytes);
  sc_check_report(c, difference == 0.0, name, detail, difference);
  return SC_OK;
}

enum sc_status sc_check_close(struct sc_check *c, const char *name, const char *detail, enum sc_dtype dtype,
                              const void *device, const double *expected, size_t n, struct sc_error *err)
{
  void *got = sc_check_host(c, n, sc_dtype_size(dtype));
  if (got == NULL)
    return sc_check_no_memory(err);
  SC_TRY(sc_check_fetch(c, got, device, n * sc_dtype_size(dtype), err));
  const struct sc_difference difference = sc_ref_difference(dtype, got, expected, n);
  sc_check_report(c, sc_ref_close(dtype, &difference), name, detail, difference.rel_error);
  return SC_OK;
}

void *sc_check_values(struct sc_check *c, enum sc_dtype dtype, size_t n, float scale)
{
  void *out = sc_check_host(c, n, sc_dtype_size(dtype));
  for (size_t i = 0; out != NULL && i < n; i++)
    sc_ref_store(dtype, out, i, sc_check_float(c, scale));
  return out;
}

int32_t *sc_check_choices(struct sc_check *c, size_t rows, uint32_t experts, uint32_t k)
{
  int32_t *out = sc_check_host(c, rows * k, sizeof *out);
  for (size_t r = 0; out != NULL && r < rows; r++) {
    const uint32_t first = sc_check_bits(c) % experts; /* distinct, since k <= experts */
    for (uint32_t j = 0; j < k; j++)
      out[r * k + j] = (int32_t)((first + j) % experts);
  }
  return out;
}
