/* SPDX-License-Identifier: Apache-2.0
 * Escaping by format. */
#include "report/escape.h"

#include <string.h>

/* Puts text with every byte of `special` replaced by what `replace` says. */
static void put_replaced(struct sc_buf *buf, const char *text, const char *special, const char *(*replace)(char byte))
{
  while (*text) {
    size_t n = strcspn(text, special);

    sc_buf_append(buf, text, n);
    text += n;
    if (*text)
      sc_buf_puts(buf, replace(*text++));
  }
}

static void put(struct sc_buf *buf, const char *text, const char *special, const char *(*replace)(char byte))
{
  struct sc_buf clean = {0};

  if (!text)
    return;
  sc_buf_put_printable(&clean, text, strlen(text));
  if (clean.data)
    put_replaced(buf, clean.data, special, replace);
  buf->failed |= clean.failed;
  sc_buf_free(&clean);
}

static const char *in_json(char byte) { return byte == '"' ? "\\\"" : "\\\\"; }

void sc_escape_json(struct sc_buf *buf, const char *text)
{
  sc_buf_puts(buf, "\"");
  put(buf, text, "\"\\", in_json);
  sc_buf_puts(buf, "\"");
}

static const char *in_csv(char byte)
{
  (void)byte;
  return "\"\"";
}

void sc_escape_csv(struct sc_buf *buf, const char *text)
{
  bool quoted = text && (strpbrk(text, ",\"\r\n") || *text == ' ' || (*text && text[strlen(text) - 1] == ' '));

  sc_buf_puts(buf, quoted ? "\"" : "");
  put(buf, text, "\"", in_csv);
  sc_buf_puts(buf, quoted ? "\"" : "");
}

const char *sc_escape_html_byte(char byte)
{
  switch (byte) {
  case '<': return "&lt;";
  case '>': return "&gt;";
  case '&': return "&amp;";
  case '"': return "&quot;";
  case '\'': return "&#39;";
  default: return NULL;
  }
}

void sc_escape_html(struct sc_buf *buf, const char *text) { put(buf, text, "<>&\"'", sc_escape_html_byte); }

static const char *in_folded(char byte)
{
  (void)byte;
  return ":"; /* what such tools put in its place themselves */
}

void sc_escape_folded(struct sc_buf *buf, const char *text) { put(buf, text, ";", in_folded); }
