/* SPDX-License-Identifier: Apache-2.0
 * One start of synccount-probe: with or without the tracer, on the GPU or on the simulated device. */
#ifndef SC_CLI_PASSES_H
#define SC_CLI_PASSES_H

#include "cli/device.h"
#include "cli/folder.h"
#include "cli/place.h"
#include "cli/settings.h"

#define PASSES_SIM_ROUND_TRIP_US 10.0

struct passes {
  const struct settings *settings;
  const struct plan *plan; /* NULL for the ruler alone */
  const struct place *place;
  const struct device *device;
  const struct folder *folder;
};

enum passes_kind {
  PASS_TIMES,
  PASS_COUNTS,
  PASS_RULER,
  PASS_RULER_BESIDE /* for a report that does without as well: short, silent, and stopped when it takes too long */
};

/* Runs the probe; its document lies in the folder afterwards, and the trace of the traced pass. A verification that
 * failed is in the document and no error. SC_ERR_MEASURE with the probe's own words, SC_ERR_DEVICE, SC_ERR_SYSTEM. */
enum sc_status passes_run(const struct passes *passes, enum passes_kind kind, struct sc_error *err) SC_NODISCARD;
const char *passes_document(enum passes_kind kind); /* file name in the folder */
double passes_sim_round_trip(const struct settings *settings);

#endif
