/* SPDX-License-Identifier: Apache-2.0
 * The probe's JSON documents (probes/PROTOCOL.md) into findings. Kept documents are read again by `report`, so nothing
 * in them is trusted. */
#ifndef SC_CLI_DOCUMENT_H
#define SC_CLI_DOCUMENT_H

#include "analysis/findings.h"

struct document;

/* SC_ERR_IO if it cannot be read, SC_ERR_FORMAT with path and place if it is no document of the probe. Free with
 * document_free. */
enum sc_status document_read(const char *path, struct document **out, struct sc_error *err) SC_NODISCARD;
void document_free(struct document *document); /* accepts NULL */

/* What the probe said of the device. Texts are NULL and numbers 0 when absent; valid as long as the document. */
struct document_device {
  const char *name, *compute_capability, *pci_bus_id, *schedule_flag;
  uint64_t total_memory_bytes, multiprocessors, l2_bytes, driver_version, runtime_version, cublas_version, sm_clock_khz,
      sm_clock_max_khz;
  bool has_ordinal, has_integrated, integrated, has_mig, mig;
  uint64_t ordinal;
};
void document_device(const struct document *document, struct document_device *out);

/* Each adds its part to findings: SC_ERR_FORMAT if a value is missing, malformed or contradicts what is there already.
 * A run that both documents hold is filled from both: forward times from pass "times", hits and forwards from pass
 * "counts". */
enum sc_status document_add_runs(const struct document *document, struct sc_findings *findings,
                                 struct sc_error *err) SC_NODISCARD;
enum sc_status document_add_ruler(const struct document *document, struct sc_findings *findings,
                                  struct sc_error *err) SC_NODISCARD;
enum sc_status document_add_controls(const struct document *document, struct sc_findings *findings,
                                     struct sc_error *err) SC_NODISCARD;
/* Points that the probe left out become warnings; *count of them is added to. */
enum sc_status document_add_skipped(const struct document *document, struct sc_findings *findings, size_t *count,
                                    struct sc_error *err) SC_NODISCARD;

/* What the probe could not measure becomes warnings. An absent list is an empty one. */
enum sc_status document_add_warnings(const struct document *document, struct sc_findings *findings,
                                     struct sc_error *err) SC_NODISCARD;

#endif
