/* SPDX-License-Identifier: Apache-2.0
 * Terminal or file, and never half a file. */
#include "cli/output.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/child.h"

#define NARROWEST 40u /* terminals that say less are left to wrap by themselves */

static unsigned terminal_width(int fd)
{
  struct winsize size;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static bool wants_color(int fd)
{
  const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(fd) && !(none && *none) && term && strcmp(term, "dumb") != 0;
}

struct content { /* a report, or text that is complete already */
  const struct settings *settings;
  const struct sc_findings *findings;
  const struct sc_buf *text;
};

/* ---- text that is complete already, on a terminal ------------------------------------------------- */

/* Where the lines that continue a line begin: below its text, which stands behind a word and two blanks or more
 * ("FAILED        masked: ..."), else two columns further in. */
static size_t hang_of(const char *line, size_t n)
{
  size_t indent = strspn(line, " "), word = indent + strcspn(line + indent, " \n"), gap = strspn(line + word, " ");
  return gap >= 2 && word + gap < n ? word + gap : indent + 2;
}

/* Bytes of the line that fit: up to the last blank before `columns`, or all of a word that is longer. */
static size_t fits(const char *line, size_t n, size_t columns)
{
  size_t blank = 0, seen = 0, i = 0;
  for (; i < n && seen <= columns; ++i) {
    seen += ((unsigned char)line[i] & 0xc0) != 0x80; /* code points */
    if (seen > columns)
      break;
    if (line[i] == ' ' && i > 0 && line[i - 1] != ' ')
      blank = i;
  }
  if (i == n)
    return n;
  return blank ? blank : i + strcspn(line + i, " \n");
}

static void wrap_line(struct sc_buf *out, const char *line, size_t n, size_t width)
{
  const size_t hang = hang_of(line, n) < width / 2 ? hang_of(line, n) : 2;
  const size_t indent = strspn(line, " ");
  size_t used = indent < n ? indent + fits(line + indent, n - indent, width - (indent < width / 2 ? indent : 0)) : n;
  sc_buf_append(out, line, used);
  while (used < n) {
    while (used < n && line[used] == ' ')
      ++used;
    if (used == n)
      break;
    size_t more = fits(line + used, n - used, width - hang);
    sc_buf_printf(out, "\n%*s", (int)hang, "");
    sc_buf_append(out, line + used, more);
    used += more;
  }
  sc_buf_puts(out, "\n");
}

void output_wrap(struct sc_buf *out, const char *text, unsigned width)
{
  for (const char *line = text; *line;) {
    size_t n = strcspn(line, "\n");
    wrap_line(out, line, n, width);
    line += n + (line[n] == '\n');
  }
}

static enum sc_status write_text(const struct sc_buf *text, FILE *file, struct sc_error *err)
{
  errno = 0;
  if (fwrite(text->data ? text->data : "", 1, text->len, file) != text->len || fflush(file) != 0)
    return sc_error_set(err, SC_ERR_IO, "the output could not be written: %s", strerror(errno ? errno : EIO));
  return SC_OK;
}

static enum sc_status write_complete(const struct content *content, FILE *file, struct sc_error *err)
{
  unsigned width = file == stdout || file == stderr ? terminal_width(fileno(file)) : 0;
  struct sc_buf wrapped = {0};
  if (strcmp(content->settings->format->name, "text") != 0 || width < NARROWEST || !content->text->data)
    return write_text(content->text, file, err);
  output_wrap(&wrapped, content->text->data, width);
  enum sc_status status = wrapped.failed ? sc_error_no_memory(err) : write_text(&wrapped, file, err);
  sc_buf_free(&wrapped);
  return status;
}

static enum sc_status write_report(const struct content *content, FILE *file, struct sc_error *err)
{
  const struct settings *settings = content->settings;
  if (content->text)
    return write_complete(content, file, err);
  const bool terminal = file == stdout || file == stderr;
  const int fd = fileno(file);
  const struct sc_report_options options = {.width = terminal ? terminal_width(fd) : 0,
                                            .color = terminal && wants_color(fd),
                                            .per_expert = settings->per_expert,
                                            .quiet = settings->quiet,
                                            .threads = settings->threads};
  struct sc_out *out = sc_out_file(file);
  if (!out)
    return sc_error_no_memory(err);
  enum sc_status status = sc_report_write(content->findings, settings->format, &options, out, err);
  sc_out_free(out);
  return status;
}

static enum sc_status cannot_write(const char *path, struct sc_error *err)
{
  return sc_error_set(err, SC_ERR_SYSTEM, "cannot write the report to '%s': %s", path, strerror(errno));
}

/* A device, a pipe or a link (/dev/stdout is one) is written to as it is: it cannot, or must not, be replaced. */
static enum sc_status write_special(const struct content *content, const char *path, struct sc_error *err)
{
  FILE *file = fopen(path, "we");
  if (!file)
    return cannot_write(path, err);
  enum sc_status status = write_report(content, file, err);
  if (fclose(file) != 0 && status == SC_OK)
    status = cannot_write(path, err);
  return status;
}

static enum sc_status write_file(const struct content *content, const char *path, struct sc_error *err)
{
  char *temporary = sc_asprintf("%s.XXXXXX", path);
  FILE *file = NULL;
  enum sc_status status = SC_OK;
  if (!temporary)
    return sc_error_no_memory(err);
  int fd = mkstemp(temporary);
  if (fd < 0) {
    status = cannot_write(path, err);
    free(temporary);
    return status;
  }
  mode_t mask = umask(0);
  umask(mask);
  if (fchmod(fd, 0666 & ~mask) != 0 || !(file = fdopen(fd, "w"))) {
    status = cannot_write(path, err);
    close(fd);
    goto cleanup;
  }
  status = write_report(content, file, err);
  if (fclose(file) != 0 && status == SC_OK)
    status = cannot_write(path, err);
  if (status == SC_OK && rename(temporary, path) != 0)
    status = cannot_write(path, err);
cleanup:
  if (status != SC_OK)
    unlink(temporary);
  free(temporary);
  return status;
}

static bool is_replaced(const char *path)
{
  struct stat info;
  return lstat(path, &info) != 0 || S_ISREG(info.st_mode);
}

enum sc_status output_check_file(const char *path, struct sc_error *err)
{
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return cannot_write(path, err);
  }
  if (!is_replaced(path)) /* not opened: that would wake a pipe's reader, or empty a link's file */
    return access(path, W_OK) == 0 || errno == ENOENT ? SC_OK : cannot_write(path, err);
  const char *slash = strrchr(path, '/');
  char *folder = slash
                     ? sc_strndup(path, slash == path ? 1 : (size_t)(slash - path))
                     : sc_strdup(".");
  if (!folder)
    return sc_error_no_memory(err);
  enum sc_status status = access(folder, W_OK | X_OK) == 0 ? SC_OK : cannot_write(path, err);
  free(folder);
  return status;
}

enum sc_status output_check(const struct settings *settings, struct sc_error *err)
{
  return settings->output ? output_check_file(settings->output, err) : SC_OK;
}

static enum sc_status put(const struct content *content, const char *path, struct sc_error *err)
{
  enum sc_status status;
  const bool replaced = path && is_replaced(path);
  signal(SIGXFSZ, SIG_IGN); /* a file size limit is a failed write with a reason */
  /* A pipe may wait for its reader, and there is nothing to tidy up any more. 'run' lets go of its program's signals.
   */
  if (!replaced && !content->settings->to_stderr)
    child_release_signals();
  if (!path)
    status = write_report(content, content->settings->to_stderr ? stderr : stdout, err);
  else if (replaced)
    status = write_file(content, path, err);
  else
    status = write_special(content, path, err);
  if (status == SC_ERR_IO) { /* the writer's word for a failed write; for exit statuses SC_ERR_IO means an input file */
    status = SC_ERR_SYSTEM;
    if (err)
      err->status = status;
  }
  return status;
}

enum sc_status output_report(const struct settings *settings, const struct sc_findings *findings, struct sc_error *err)
{
  return put(&(struct content){.settings = settings, .findings = findings}, settings->output, err);
}

enum sc_status output_text(const struct settings *settings, const struct sc_buf *text, const char *path,
                           struct sc_error *err)
{
  if (text->failed)
    return sc_error_set(err, SC_ERR_NOMEM, "out of memory while the output was laid out");
  return put(&(struct content){.settings = settings, .text = text}, path, err);
}
