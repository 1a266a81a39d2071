/* SPDX-License-Identifier: Apache-2.0
 * The calling thread's Python frames, read without the GIL. A thread's own frames below a C call cannot change while it
 * is in that call, so they are read as memory, by offsets that belong to the version of Python: from _Py_DebugOffsets
 * where there are some, else from a table. They are trusted only once they have been checked against the C API. The
 * GIL is never waited for; the check is made where it is held anyway. */
#ifndef SC_TRACER_PYTHON_H
#define SC_TRACER_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

struct sc_python_frame {
  uint64_t code;     /* the code object */
  uint64_t identity; /* hash: equal for the same instruction of the same code */
  int64_t at;        /* bytes from the code's start to the instruction */
};

/* When tracing starts. Finds the interpreter, if there is one; checks the offsets if this thread holds the GIL, else
 * asks the interpreter to have them checked. */
void sc_python_prepare(void);

/* The frames of the calling thread, innermost first: at most SC_STACK_PYTHON_MAX. *hash is of all of them. 0 with no
 * flag: no Python on this thread. SC_STACK_PYTHON_MISSING: there is, and it cannot be read (yet, or any more). */
size_t sc_python_take(struct sc_python_frame frames[SC_STACK_PYTHON_MAX], uint64_t *hash, uint32_t *flags);

struct sc_python_line {
  char file[2048], function[512]; /* UTF-8, cut if longer; "" if it cannot be read */
  uint32_t line, first_line;      /* 0: not known */
};
/* What a frame of the calling thread that was just taken stands for. */
void sc_python_describe(const struct sc_python_frame *frame, struct sc_python_line *out);

enum sc_python_state {
  SC_PYTHON_ABSENT = 0, /* no interpreter in this process when tracing started */
  SC_PYTHON_UNCHECKED,
  SC_PYTHON_CHECKED, /* the offsets are right */
  SC_PYTHON_REFUSED, /* they are not, or there are none for this version */
};
enum sc_python_state sc_python_state(void);
/* "3.12.1"; "" if there is no Python. */
const char *sc_python_version(void);
/* An address inside the interpreter's code; 0 if there is none. */
uintptr_t sc_python_code(void);

/* ---- for the tests: the decoders of line tables, of each format -------------------------------------- */
enum sc_python_lines {
  SC_PYTHON_LNOTAB,    /* 3.9 */
  SC_PYTHON_LINETABLE, /* 3.10 */
  SC_PYTHON_LOCATIONS, /* 3.11 and later */
};
/* The line of the instruction `at` bytes from the start, by a table of `size` bytes; 0: it has none. */
uint32_t sc_python_line_of(enum sc_python_lines format, const uint8_t *table, size_t size, uint32_t first_line,
                           int64_t at);

#endif
