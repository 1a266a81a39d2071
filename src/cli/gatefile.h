/* SPDX-License-Identifier: Apache-2.0
 * A YAML gate into what `check` works with: settings that were not given on the command line, and expectations. */
#ifndef SC_CLI_GATEFILE_H
#define SC_CLI_GATEFILE_H

#include "cli/settings.h"
#include "gate/gate.h"

/* True if an operand is a gate by its name: it ends with .yaml or .yml, or there is no such file and a shipped gate has
 * this name. */
bool gatefile_is_one(const char *operand, const char *configs_folder);
/* Reads it; a bare name is looked up in configs_folder. */
enum sc_status gatefile_read(const char *operand, const char *configs_folder, struct sc_config_gate **out,
                             struct sc_error *err) SC_NODISCARD;
/* Appends its expectations and exceptions. SC_ERR_CONFIG with file, line and column. */
enum sc_status gatefile_expectations(const struct sc_config_gate *file, const char *path, struct sc_gate *gate,
                                     struct sc_error *err) SC_NODISCARD;
/* Fills settings that nobody gave. Lists are moved out of the file; texts stay its own, so it must outlive settings. */
enum sc_status gatefile_settings(struct sc_config_gate *file, const char *path, struct settings *settings,
                                 struct sc_error *err) SC_NODISCARD;

#endif
