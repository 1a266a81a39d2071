/* SPDX-License-Identifier: Apache-2.0
 * Figures of the HTML report: inline SVG, each with a text alternative; colours come from the page's style. A figure
 * without data is left out. */
#ifndef SC_REPORT_FIGURES_H
#define SC_REPORT_FIGURES_H

#include "report/doc.h"
#include "report/report.h"

/* index: of the process, for the timeline; budget: bytes that the figure may take. SC_ERR_NOMEM; SC_ERR_SYSTEM where
 * events cannot be read back. */
enum sc_status sc_figure_put(struct sc_buf *html, const struct sc_findings *findings, enum sc_figure figure,
                             size_t index, size_t budget, struct sc_error *err) SC_NODISCARD;

/* figures_time.c */
enum sc_status sc_figure_timeline(struct sc_buf *html, const struct sc_findings *findings, size_t process,
                                  size_t budget, struct sc_error *err) SC_NODISCARD;

/* Text of a document as HTML: its names become <code>. */
void sc_html_put_doc_text(struct sc_buf *html, const char *text);
/* A foreign name, at most max characters of it (0: 96), without an element around it: for SVG and attributes. */
void sc_html_put_name(struct sc_buf *html, const char *name, size_t max);
void sc_html_put_time(struct sc_buf *html, double us); /* sc_format_time_us, "-" for NaN */
/* Opens a <div> that scrolls sideways, by keyboard as well; label: what it is, for who cannot see it. */
void sc_html_open_scroll(struct sc_buf *html, const char *label);

#endif
