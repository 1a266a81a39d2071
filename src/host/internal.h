/* SPDX-License-Identifier: Apache-2.0
 * Shared inside the host room: small files below a sysroot. */
#ifndef SC_HOST_INTERNAL_H
#define SC_HOST_INTERNAL_H

#include "host/host.h"

/* The text of a small file without surrounding white space; NULL if it cannot be read, is empty, or memory is out. At
 * most 256 KiB are read. The caller frees it. */
char *host_file(const char *sysroot, const char *format, ...) SC_NODISCARD SC_PRINTF(2, 3);
bool host_exists(const char *sysroot, const char *format, ...) SC_PRINTF(2, 3);

/* Names in a folder that match a sc_match pattern, sorted; *count 0 if there are none. Free with host_names_free. */
char **host_names(const char *sysroot, const char *folder, const char *pattern, size_t *count) SC_NODISCARD;
void host_names_free(char **names, size_t count);

/* The value of the first line "key<white space>: value" or "key:\tvalue" in text, as a new string; NULL if there is
 * none. */
char *host_value(const char *text, const char *key) SC_NODISCARD;

/* Each fills its fields of host; NULL values are left where nothing is known. */
void host_read_virtualization(const char *sysroot, const char *cpuinfo, struct sc_host *host);
void host_read_quota(const char *sysroot, struct sc_host *host);

#endif
