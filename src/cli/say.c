/* SPDX-License-Identifier: Apache-2.0
 * Messages to people: standard error, whole lines, one write each. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static void write_line(const struct sc_buf *buf)
{
  const char *text = buf->failed ? "synccount: out of memory\n" : buf->data;
  size_t left = buf->failed ? 25 : buf->len;
  while (left) {
    ssize_t wrote = write(STDERR_FILENO, text, left);
    if (wrote < 0 && errno != EINTR)
      return; /* nowhere left to say it */
    if (wrote > 0) {
      text += wrote;
      left -= (size_t)wrote;
    }
  }
}

/* A message may hold names and bytes of files: none of them steers the terminal or begins a line. Lines end in the tail
 * alone. */
static void say(const char *format, va_list args, const char *tail)
{
  char text[2048];
  vsnprintf(text, sizeof text, format, args);
  struct sc_buf buf = {0};
  sc_buf_puts(&buf, "synccount: ");
  sc_buf_put_printable(&buf, text, strlen(text));
  sc_buf_printf(&buf, "%s\n", tail);
  fflush(stdout); /* keeps the order on a terminal */
  write_line(&buf);
  sc_buf_free(&buf);
}

void cli_say(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  say(format, args, "");
  va_end(args);
}

int cli_usage(const struct cli_command *command, const char *format, ...)
{
  char tail[128];
  const char *name = command && command->name ? command->name : "";
  snprintf(tail, sizeof tail, "\nTry 'synccount help%s%s'.", *name ? " " : "", name);
  va_list args;
  va_start(args, format);
  say(format, args, tail);
  va_end(args);
  return CLI_USAGE;
}

int cli_fail(const struct sc_error *err)
{
  cli_say("%s", err->message[0] ? err->message : sc_status_text(err->status));
  switch (err->status) {
  case SC_OK: return CLI_OK;
  case SC_ERR_USAGE:
  case SC_ERR_CONFIG:
  case SC_ERR_IO: /* an input file that cannot be read; output errors have their own path */
  case SC_ERR_FORMAT:
  case SC_ERR_VERSION:
  case SC_ERR_LIMIT: return CLI_USAGE; /* what was asked for is too large */
  default: return CLI_UNMEASURED;
  }
}
