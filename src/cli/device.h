/* SPDX-License-Identifier: Apache-2.0
 * Which device a run uses: the GPU if CUDA initialises, the simulation if there is none at all, an error in between. */
#ifndef SC_CLI_DEVICE_H
#define SC_CLI_DEVICE_H

#include "cli/settings.h"

struct device {
  bool simulated;
  bool chosen_for_want; /* simulated because the machine has no NVIDIA device */
  unsigned ordinal;
  bool has_memory;
  uint64_t memory_bytes; /* of the GPU; of the host when simulated */
};

/* SC_ERR_DEVICE with cause and remedy; SC_ERR_USAGE for options that contradict the device. */
enum sc_status device_choose(const struct settings *settings, struct device *out, struct sc_error *err) SC_NODISCARD;

#endif
