/* SPDX-License-Identifier: Apache-2.0
 * Traces, folders of them and sessions, as operands of a command, into findings. */
#ifndef SC_CLI_LOAD_H
#define SC_CLI_LOAD_H

#include "cli/session.h"

/* All operands are of one session: its findings. Otherwise each trace is a process. outcome is zeroed. */
enum sc_status load_operands(char *const *operands, size_t count, const struct sc_analysis_options *how,
                             struct sc_findings *findings, struct session_outcome *outcome,
                             struct sc_error *err) SC_NODISCARD;

#endif
