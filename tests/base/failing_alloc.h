/* SPDX-License-Identifier: Apache-2.0
 * Allocations that fail when told to. Link sc_failing_alloc: its options make the linker wrap malloc, calloc, realloc,
 * strdup, strndup and vasprintf, in what is linked statically; shared libraries keep their own. */
#ifndef SC_FAILING_ALLOC_H
#define SC_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* From now on `succeed` allocations do, and the next one fails; only_one: those after it succeed again. */
void failing_alloc_begin(long succeed, bool only_one);
/* All succeed again. True if one failed. */
bool failing_alloc_end(void);

/* For a library that takes its allocator as a function. */
void *failing_malloc(size_t size);

#endif
