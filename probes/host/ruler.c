/* SPDX-License-Identifier: Apache-2.0
 * One sampling function a method. Each waits until the device is idle before its clock starts. */
#include <jansson.h>
#include <stdlib.h>

#include "host/ruler.h"

enum {
  WARM_SAMPLES = 10, /* untimed, at the start of each block: a forward has just run */
  OTHER_SHARE = 5,   /* the other methods get a fifth of the round trip's samples */
  MAPPED_TIMEOUT_NS = 1000000000,
};

struct method;

struct row {
  const struct method *method;
  uint32_t *block_sizes;
  double *samples;
  size_t count, planned;
  bool failed; /* a time-out: given up */
};

struct sc_ruler {
  const struct sc_gpu *gpu;
  uint32_t blocks, blocks_done;
  uint8_t *device_byte, *pinned, *pageable;
  uint32_t *mapped, *mapped_device, mapped_value;
  cudaEvent_t spin, block;
  struct row *rows;
};

/* Writes the time of one sample; *usable false when the method cannot work here. */
typedef enum sc_status sample_fn(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err);

static double since(uint64_t start_ns) { return (double)(sc_clock_mono_ns() - start_ns) / 1e3; }

static enum sc_status launch(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err)
{
  (void)usable;
  const uint64_t start = sc_clock_mono_ns();
  SC_TRY(sc_launch_tiny(r->gpu, r->device_byte, err));
  *us = since(start);
  return sc_gpu_sync(r->gpu, err);
}

static enum sc_status readback(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err)
{
  (void)usable;
  const uint64_t start = sc_clock_mono_ns();
  SC_CUDA(cudaMemcpyAsync(r->pinned, r->device_byte, 1, cudaMemcpyDeviceToHost, r->gpu->stream));
  SC_CUDA(cudaStreamSynchronize(r->gpu->stream));
  *us = since(start);
  return SC_OK;
}

static enum sc_status launch_readback(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err)
{
  (void)usable;
  const uint64_t start = sc_clock_mono_ns();
  SC_TRY(sc_launch_tiny(r->gpu, r->device_byte, err));
  SC_CUDA(cudaMemcpyAsync(r->pinned, r->device_byte, 1, cudaMemcpyDeviceToHost, r->gpu->stream));
  SC_CUDA(cudaStreamSynchronize(r->gpu->stream));
  *us = since(start);
  return SC_OK;
}

static enum sc_status memcpy_blocking(struct sc_ruler *r, uint8_t *to, double *us, struct sc_error *err)
{
  const uint64_t start = sc_clock_mono_ns();
  SC_CUDA(cudaMemcpy(to, r->device_byte, 1, cudaMemcpyDeviceToHost));
  *us = since(start);
  return SC_OK;
}

static enum sc_status memcpy_pageable(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err)
{
  (void)usable;
  return memcpy_blocking(r, r->pageable, us, err);
}

static enum sc_status memcpy_pinned(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err)
{
  (void)usable;
  return memcpy_blocking(r, r->pinned, us, err);
}

static enum sc_status stream_sync_idle(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err)
{
  (void)usable;
  const uint64_t start = sc_clock_mono_ns();
  SC_CUDA(cudaStreamSynchronize(r->gpu->stream));
  *us = since(start);
  return SC_OK;
}

static enum sc_status event_wait(struct sc_ruler *r, cudaEvent_t event, double *us, struct sc_error *err)
{
  const uint64_t start = sc_clock_mono_ns();
  SC_TRY(sc_launch_tiny(r->gpu, r->device_byte, err));
  SC_CUDA(cudaEventRecord(event, r->gpu->stream));
  SC_CUDA(cudaEventSynchronize(event));
  *us = since(start);
  return SC_OK;
}

static enum sc_status event_spin(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err)
{
  (void)usable;
  return event_wait(r, r->spin, us, err);
}

static enum sc_status event_block(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err)
{
  (void)usable;
  return event_wait(r, r->block, us, err);
}

/* The clock is looked at only now and then, so that the spin sees the flag early; but it is looked at. */
static enum sc_status mapped_spin(struct sc_ruler *r, double *us, bool *usable, struct sc_error *err)
{
  const uint32_t value = ++r->mapped_value;
  const uint64_t start = sc_clock_mono_ns();
  SC_TRY(sc_launch_write_flag(r->gpu, r->mapped_device, value, err));
  for (uint32_t spins = 1; __atomic_load_n(r->mapped, __ATOMIC_ACQUIRE) != value; spins++)
    if (spins % 1024 == 0 && sc_clock_mono_ns() - start > MAPPED_TIMEOUT_NS) {
      *usable = false;
      break;
    }
  *us = since(start);
  return sc_gpu_sync(r->gpu, err);
}

struct method {
  const char *name;
  sample_fn *sample;
};
static const struct method methods[] = {
    {"launch+readback", launch_readback}, /* the round trip: first, and with the most samples */
    {"launch", launch},
    {"readback", readback},
    {"memcpy-pageable", memcpy_pageable},
    {"memcpy-pinned", memcpy_pinned},
    {"stream-sync-idle", stream_sync_idle},
    {"event-spin", event_spin},
    {"event-block", event_block},
    {"mapped-spin", mapped_spin},
};

static enum sc_status open_device_side(struct sc_ruler *r, struct sc_error *err)
{
  SC_CUDA(cudaMalloc((void **)&r->device_byte, 1));
  SC_CUDA(cudaMemset(r->device_byte, 0, 1));
  SC_CUDA(cudaHostAlloc((void **)&r->pinned, 1, cudaHostAllocDefault));
  SC_CUDA(cudaHostAlloc((void **)&r->mapped, sizeof *r->mapped, cudaHostAllocMapped));
  *r->mapped = 0;
  SC_CUDA(cudaHostGetDevicePointer((void **)&r->mapped_device, r->mapped, 0));
  SC_CUDA(cudaEventCreateWithFlags(&r->spin, cudaEventDisableTiming));
  SC_CUDA(cudaEventCreateWithFlags(&r->block, cudaEventDisableTiming | cudaEventBlockingSync));
  return SC_OK;
}

static enum sc_status open_rows(struct sc_ruler *r, const struct sc_options *options, struct sc_error *err)
{
  r->rows = sc_calloc_array(SC_COUNTOF(methods), sizeof *r->rows);
  r->pageable = malloc(1);
  bool complete = r->rows != NULL && r->pageable != NULL;
  for (size_t i = 0; complete && i < SC_COUNTOF(methods); i++) {
    struct row *row = &r->rows[i];
    const uint32_t others = options->samples / OTHER_SHARE;
    row->method = &methods[i];
    row->planned = i == 0 ? options->samples : others > options->blocks ? others : options->blocks;
    row->block_sizes = sc_calloc_array(options->blocks, sizeof *row->block_sizes);
    row->samples = sc_calloc_array(row->planned, sizeof *row->samples);
    complete = row->block_sizes != NULL && row->samples != NULL;
  }
  return complete
             ? SC_OK
             : sc_error_set(err, SC_ERR_NOMEM, "no memory for %u samples; choose fewer --samples", options->samples);
}

/* A method that times out is given up for good. */
static enum sc_status take_samples(struct sc_ruler *r, struct row *row, uint32_t count, double *out,
                                   struct sc_error *err)
{
  for (uint32_t i = 0; i < count && !row->failed; i++) {
    double us;
    bool usable = true;
    SC_TRY(row->method->sample(r, &us, &usable, err));
    row->failed = !usable;
    if (out != NULL)
      out[i] = us;
  }
  return SC_OK;
}

enum sc_status sc_ruler_open(struct sc_ruler **ruler, const struct sc_gpu *gpu, const struct sc_options *options,
                             struct sc_error *err)
{
  struct sc_ruler *r = sc_calloc_array(1, sizeof *r);
  *ruler = NULL;
  if (r == NULL)
    return sc_error_set(err, SC_ERR_NOMEM, "no memory for the ruler");
  r->gpu = gpu;
  r->blocks = options->blocks;
  enum sc_status status = open_rows(r, options, err);
  if (status == SC_OK)
    status = open_device_side(r, err);
  for (size_t i = 0; status == SC_OK && i < SC_COUNTOF(methods); i++)
    status = take_samples(r, &r->rows[i], WARM_SAMPLES, NULL, err);
  if (status == SC_OK)
    *ruler = r;
  else
    sc_ruler_close(r);
  return status;
}

void sc_ruler_close(struct sc_ruler *r)
{
  if (r == NULL)
    return;
  if (r->device_byte)
    cudaFree(r->device_byte);
  if (r->pinned)
    cudaFreeHost(r->pinned);
  if (r->mapped)
    cudaFreeHost(r->mapped);
  if (r->spin)
    cudaEventDestroy(r->spin);
  if (r->block)
    cudaEventDestroy(r->block);
  for (size_t i = 0; r->rows && i < SC_COUNTOF(methods); i++) {
    free(r->rows[i].block_sizes);
    free(r->rows[i].samples);
  }
  free(r->rows);
  free(r->pageable);
  free(r);
}

enum sc_status sc_ruler_block(struct sc_ruler *r, uint32_t block, struct sc_error *err)
{
  SC_TRY(sc_gpu_sync(r->gpu, err));
  for (size_t i = 0; i < SC_COUNTOF(methods); i++) {
    struct row *row = &r->rows[i];
    const uint32_t count = sc_share(row->planned, block, r->blocks);
    SC_TRY(take_samples(r, row, WARM_SAMPLES, NULL, err));
    SC_TRY(take_samples(r, row, count, row->samples + row->count, err));
    if (row->failed)
      continue;
    row->block_sizes[block] = count;
    row->count += count;
  }
  r->blocks_done = block + 1;
  return SC_OK;
}

json_t *sc_ruler_document(const struct sc_ruler *r, json_t *warnings)
{
  json_t *out = json_array();
  for (size_t i = 0; i < SC_COUNTOF(methods); i++) {
    const struct row *row = &r->rows[i];
    if (row->failed) {
      json_array_append_new(warnings, json_sprintf("ruler row %s: the host did not see the device's write within 1 s",
                                                   row->method->name));
      continue;
    }
    json_t *sizes = json_array(), *samples = json_array();
    for (uint32_t b = 0; b < r->blocks_done; b++)
      json_array_append_new(sizes, json_integer(row->block_sizes[b]));
    for (size_t s = 0; s < row->count; s++)
      json_array_append_new(samples, json_real(row->samples[s]));
    json_array_append_new(
        out, json_pack("{s:s, s:o, s:o}", "method", row->method->name, "block_sizes", sizes, "samples_us", samples));
  }
  return out;
}
