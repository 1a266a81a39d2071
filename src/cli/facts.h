/* SPDX-License-Identifier: Apache-2.0
 * Host, device and conditions as fields of the findings. */
#ifndef SC_CLI_FACTS_H
#define SC_CLI_FACTS_H

#include "analysis/findings.h"
#include "cli/document.h"

struct facts_input {
  const char *sysroot;
  bool simulated;
  double sim_round_trip_us;             /* when simulated; NaN if not known */
  const struct document_device *device; /* as the probe saw it; NULL if unknown */
  const char *cupti;                    /* version from the trace; NULL if not traced */
};
/* Adds what is known and nothing else. */
enum sc_status facts_add(const struct facts_input *input, struct sc_findings *findings,
                         struct sc_error *err) SC_NODISCARD;

#endif
