/* SPDX-License-Identifier: Apache-2.0
 * The tool that test_nvtx brings with it: NVTX's headers declare this pointer weak and empty. */
#include "tracer/nvtx.h"

static int attach(sc_nvtx_get_table get_table) { return sc_nvtx_attach(get_table); }

extern int (*InitializeInjectionNvtx2_fnptr)(sc_nvtx_get_table get_table);
int (*InitializeInjectionNvtx2_fnptr)(sc_nvtx_get_table get_table) = attach;
