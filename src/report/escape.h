/* SPDX-License-Identifier: Apache-2.0
 * Foreign text in the formats that have no library to write them: printable first (control characters, bidirectional
 * ones and invalid UTF-8 become \xNN), then escaped for the format. text may be NULL: nothing is put. */
#ifndef SC_REPORT_ESCAPE_H
#define SC_REPORT_ESCAPE_H

#include "base/base.h"

void sc_escape_json(struct sc_buf *buf, const char *text); /* with its quotes */
void sc_escape_csv(struct sc_buf *buf, const char *text);  /* one field, RFC 4180; quoted where it must be */
void sc_escape_html(struct sc_buf *buf, const char *text); /* for text and quoted attributes */
const char *sc_escape_html_byte(char byte);                /* what stands for this byte there; NULL: itself */
void sc_escape_folded(struct sc_buf *buf, const char *text); /* one frame of a folded stack */

#endif
