/* SPDX-License-Identifier: Apache-2.0
 * Names and lines for native frames, from the files that the traced program had loaded. */
#ifndef SC_CLI_SYMBOLS_H
#define SC_CLI_SYMBOLS_H

#include "analysis/analysis.h"

/* Looks up every native frame of every site, then lets the sites be described again. A file that is gone, or is another
 * build than the one that ran, leaves its frames as they are: "libx.so+0x1234". Without libdw it does nothing. */
enum sc_status symbols_look_up(struct sc_findings *findings, struct sc_error *err) SC_NODISCARD;

#endif
