/* SPDX-License-Identifier: Apache-2.0
 * Inside the room: the writers behind the format table. */
#ifndef SC_REPORT_WRITERS_H
#define SC_REPORT_WRITERS_H

#include "report/report.h"

enum sc_status sc_report_write_text(const struct sc_findings *findings, const struct sc_report_options *options,
                                    struct sc_out *out, struct sc_error *err);
enum sc_status sc_report_write_markdown(const struct sc_findings *findings, const struct sc_report_options *options,
                                        struct sc_out *out, struct sc_error *err);
enum sc_status sc_report_write_json(const struct sc_findings *findings, const struct sc_report_options *options,
                                    struct sc_out *out, struct sc_error *err);
enum sc_status sc_report_write_html(const struct sc_findings *findings, const struct sc_report_options *options,
                                    struct sc_out *out, struct sc_error *err);
enum sc_status sc_report_write_chrome(const struct sc_findings *findings, const struct sc_report_options *options,
                                      struct sc_out *out, struct sc_error *err);
enum sc_status sc_report_write_folded(const struct sc_findings *findings, const struct sc_report_options *options,
                                      struct sc_out *out, struct sc_error *err);
enum sc_status sc_report_write_folded_count(const struct sc_findings *findings, const struct sc_report_options *options,
                                            struct sc_out *out, struct sc_error *err);
enum sc_status sc_report_write_csv(const struct sc_findings *findings, const struct sc_report_options *options,
                                   struct sc_out *out, struct sc_error *err);
enum sc_status sc_report_write_csv_syncs(const struct sc_findings *findings, const struct sc_report_options *options,
                                         struct sc_out *out, struct sc_error *err);

#endif
