/* SPDX-License-Identifier: Apache-2.0
 * XXH3 over headers whose checksum field counts as 0. */
#include "trace/checksum.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint32_t digest_two(const void *first, size_t first_size, const void *second, size_t second_size) {
  XXH3_state_t state;

  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, first, first_size);
  XXH3_64bits_update(&state, second, second_size);
  return (uint32_t)XXH3_64bits_digest(&state);
}

uint32_t sc_checksum_header(const struct sc_trace_header *header, size_t size) {
  struct sc_trace_header copy = *header;

  copy.checksum = 0;
  return digest_two(&copy, sizeof copy, (const char *)header + sizeof copy, size - sizeof copy);
}

uint32_t sc_checksum_chunk(const struct sc_trace_chunk *header, const void *bytes, size_t committed) {
  struct sc_trace_chunk copy = *header;

  copy.checksum = 0;
  copy.flags = (uint16_t)(copy.flags & ~SC_CHUNK_OPEN);
  return digest_two(&copy, sizeof copy, bytes, committed);
}
