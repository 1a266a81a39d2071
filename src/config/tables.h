/* SPDX-License-Identifier: Apache-2.0
 * What configurations and gates have in common. */
#ifndef SC_CONFIG_TABLES_H
#define SC_CONFIG_TABLES_H

#include "config/config.h"
#include "config/fields.h"

extern const char *const config_variant_words[];
extern const struct field config_run_fields[]; /* offsets are those of struct sc_config */
void config_release(struct sc_config *config); /* what it points to */

#endif
