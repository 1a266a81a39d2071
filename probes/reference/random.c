/* SPDX-License-Identifier: Apache-2.0
 * The counter-based hash and the uniform numbers made from it; the twin of kernels/random.cuh, bit for bit. */
#include "reference/reference.h"

static uint64_t mix64(uint64_t x)
{
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static inline uint32_t mix32(uint32_t x)
{
  x = (x ^ (x >> 16)) * UINT32_C(0x7feb352d);
  x = (x ^ (x >> 15)) * UINT32_C(0x846ca68b);
  return x ^ (x >> 16);
}

uint64_t sc_ref_stream_key(uint64_t seed, uint64_t stream) { return mix64(seed ^ mix64(stream)); }

static inline uint32_t hash_parts(uint32_t low, uint32_t key_low, uint32_t high)
{
  return mix32(mix32(low + key_low) ^ high);
}

static inline uint32_t hash_high(uint64_t key, uint64_t i)
{
  return (uint32_t)(key >> 32) ^ ((uint32_t)(i >> 32) * UINT32_C(0x9e3779b9));
}

uint32_t sc_ref_hash(uint64_t key, uint64_t i) { return hash_parts((uint32_t)i, (uint32_t)key, hash_high(key, i)); }

/* 24 random bits as a float in [-1, 1), exactly, times scale. */
static inline float uniform(uint32_t hash, float scale)
{
  return ((float)(int32_t)(hash >> 8) * 0x1p-23f - 1.0f) * scale;
}

/* Elements of one stretch whose index has the same upper half: 32-bit arithmetic that vectorises. */
static void uniform_stretch(float *out, uint32_t first, uint32_t count, uint32_t key_low, uint32_t high, float scale)
{
  for (uint32_t i = 0; i < count; i++)
    out[i] = uniform(hash_parts(first + i, key_low, high), scale);
}

void sc_ref_uniform(enum sc_dtype dtype, float *out, uint64_t first, uint64_t count, uint64_t seed, uint64_t stream,
                    float scale)
{
  const uint64_t key = sc_ref_stream_key(seed, stream);
  for (uint64_t done = 0; done < count;) {
    const uint64_t i = first + done;
    uint64_t stretch = (UINT64_C(1) << 32) - (i & UINT32_MAX); /* up to where the upper half changes */
    if (stretch > count - done)
      stretch = count - done;
    if (stretch > UINT32_MAX)
      stretch = UINT32_MAX;
    uniform_stretch(out + done, (uint32_t)i, (uint32_t)stretch, (uint32_t)key, hash_high(key, i), scale);
    done += stretch;
  }
  if (dtype == SC_BF16)
    for (uint64_t i = 0; i < count; i++)
      out[i] = sc_ref_from_bf16(sc_ref_to_bf16(out[i]));
}

struct fill_job {
  enum sc_dtype dtype;
  void *out;
  uint64_t seed, stream;
  float scale;
};

static void fill_range(void *ctx, uint64_t first, uint64_t last)
{
  const struct fill_job *job = ctx;
  if (job->dtype == SC_F32) {
    sc_ref_uniform(SC_F32, (float *)job->out + first, first, last - first, job->seed, job->stream, job->scale);
    return;
  }
  float chunk[4096];
  for (uint64_t at = first; at < last;) {
    const uint64_t n = last - at < SC_COUNTOF(chunk) ? last - at : SC_COUNTOF(chunk);
    sc_ref_uniform(SC_F32, chunk, at, n, job->seed, job->stream, job->scale);
    uint16_t *out = (uint16_t *)job->out + at;
    for (uint64_t i = 0; i < n; i++)
      out[i] = sc_ref_to_bf16(chunk[i]);
    at += n;
  }
}

void sc_ref_fill(enum sc_dtype dtype, void *out, uint64_t count, uint64_t seed, uint64_t stream, float scale)
{
  struct fill_job job = {dtype, out, seed, stream, scale};
  sc_ref_parallel(count, fill_range, &job);
}
