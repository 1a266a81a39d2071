/* SPDX-License-Identifier: Apache-2.0
 * The trace file's checksums, shared by the writer and the reader. Private to this room. */
#ifndef SC_TRACE_CHECKSUM_H
#define SC_TRACE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

/* Over size bytes of a file header, its checksum field taken as 0. size is at least sizeof(struct sc_trace_header). */
uint32_t sc_checksum_header(const struct sc_trace_header *header, size_t size);

/* Over a chunk's header as it is when closed (checksum 0, not OPEN) and its committed bytes. */
uint32_t sc_checksum_chunk(const struct sc_trace_chunk *header, const void *bytes, size_t committed);

#endif
