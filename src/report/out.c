/* SPDX-License-Identifier: Apache-2.0
 * The output handle: a FILE or memory, with the first failure kept. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

enum { FLUSH_AT = 1 << 16 };

struct sc_out {
  FILE *file;        /* NULL: memory */
  struct sc_buf buf; /* not yet written, or all of it */
  int error;         /* errno of the first failed write */
};

static struct sc_out *out_new(FILE *file)
{
  struct sc_out *out = calloc(1, sizeof *out);

  if (out)
    out->file = file;
  return out;
}

struct sc_out *sc_out_file(FILE *file) { return out_new(file); }

struct sc_out *sc_out_memory(void) { return out_new(NULL); }

static void drain(struct sc_out *out)
{
  if (!out->file || out->buf.failed)
    return;
  if (out->buf.len && !out->error) {
    errno = 0;
    if (fwrite(out->buf.data, 1, out->buf.len, out->file) != out->buf.len)
      out->error = errno ? errno : EIO;
  }
  out->buf.len = 0;
}

void sc_out_write(struct sc_out *out, const void *bytes, size_t n)
{
  if (out->error)
    return;
  sc_buf_append(&out->buf, bytes, n);
  if (out->buf.len >= FLUSH_AT)
    drain(out);
}

void sc_out_puts(struct sc_out *out, const char *text) { sc_out_write(out, text, strlen(text)); }

void sc_out_repeat(struct sc_out *out, char byte, size_t n)
{
  char block[64];

  memset(block, byte, sizeof block);
  while (n) {
    size_t part = n < sizeof block ? n : sizeof block;

    sc_out_write(out, block, part);
    n -= part;
  }
}

enum sc_status sc_out_flush(struct sc_out *out, struct sc_error *err)
{
  if (out->buf.failed)
    return sc_error_set(err, SC_ERR_NOMEM, "the report does not fit into memory");
  drain(out);
  if (out->file && !out->error) {
    errno = 0;
    if (fflush(out->file) != 0 || ferror(out->file))
      out->error = errno ? errno : EIO;
  }
  if (out->error) {
    return sc_error_set(err, SC_ERR_IO, "the report could not be written: %s; what was written of it is incomplete",
                        strerror(out->error));
  }
  return SC_OK;
}

const char *sc_out_text(const struct sc_out *out, size_t *len)
{
  bool held = !out->file && out->buf.data;

  if (len)
    *len = held ? out->buf.len : 0;
  return held ? out->buf.data : "";
}

void sc_out_free(struct sc_out *out)
{
  if (!out)
    return;
  sc_buf_free(&out->buf);
  free(out);
}
