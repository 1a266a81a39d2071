/* SPDX-License-Identifier: Apache-2.0
 * The ruler: what each way of waiting costs on this host, sampled in blocks between the forwards. */
#ifndef SC_PROBE_RULER_H
#define SC_PROBE_RULER_H

#include "host/gpu.h"
#include "host/options.h"

struct sc_ruler; /* opaque */

/* Makes memory, events and sample arrays, and warms every method up. *ruler is NULL on failure. */
enum sc_status sc_ruler_open(struct sc_ruler **ruler, const struct sc_gpu *gpu, const struct sc_options *options,
                             struct sc_error *err) SC_NODISCARD;
void sc_ruler_close(struct sc_ruler *ruler);
/* Samples block number `block` of every method, on an idle device. Blocks run once each, in order. */
enum sc_status sc_ruler_block(struct sc_ruler *ruler, uint32_t block, struct sc_error *err) SC_NODISCARD;
/* The document's "ruler" array; methods that could not be measured are absent, and named in `warnings`. NULL: no
 * memory. */
struct json_t *sc_ruler_document(const struct sc_ruler *ruler, struct json_t *warnings);

/* Share of n that falls to part i of `parts`, so that all parts add up to n. */
static inline uint32_t sc_share(uint64_t n, uint32_t i, uint32_t parts)
{
  return (uint32_t)(n * (i + 1) / parts - n * i / parts);
}

#endif
