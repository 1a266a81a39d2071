/* SPDX-License-Identifier: Apache-2.0
 * Range and domain names, interned: insert-only, found without a lock. A name lives until the process ends. */
#ifndef SC_TRACER_NAMES_H
#define SC_TRACER_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "tracer/thread.h"

struct sc_name;

/* NULL when memory is out. Beyond SC_NAMES_MAX different names every new one is "(more names)". */
#define SC_NAMES_MAX 131072u
const struct sc_name *sc_name_intern(const char *text);
const struct sc_name *sc_name_intern_wide(const wchar_t *text);
/* The name's string id in the trace, written first if this is its first use; 0 for NULL. */
uint32_t sc_name_id(const struct sc_name *name, struct sc_thread *thread);
/* NUL-terminated; "" for NULL. */
const char *sc_name_text(const struct sc_name *name);
/* Writes a character as UTF-8, at most 4 bytes; what is none becomes U+FFFD. Returns how many. */
size_t sc_name_put_utf8(uint32_t c, char *out);
/* In a forked child, where another thread may have held the lock. */
void sc_names_forked(void);

#endif
