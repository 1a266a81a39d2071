/* SPDX-License-Identifier: Apache-2.0
 * Why a program, or a part of it, was not traced. */
#ifndef SC_CLI_WHY_H
#define SC_CLI_WHY_H

#include "analysis/findings.h"
#include "cli/folder.h"

/* Adds what the tracer left in the folder about processes that it was in and did not trace. */
enum sc_status why_add_untraced(const struct folder *folder, struct sc_findings *notes,
                                struct sc_error *err) SC_NODISCARD;

struct why_question {
  const char *program; /* as it was to be run: looked up in PATH */
  const char *folder;  /* where its traces were to be */
  bool no_follow;
  bool traced; /* there are traces, though nothing was counted in them: they say why themselves */
};
/* Adds, of a run in which nothing was measured, what is known about the program that explains it. */
enum sc_status why_add_nothing(const struct why_question *question, struct sc_findings *notes,
                               struct sc_error *err) SC_NODISCARD;

#endif
