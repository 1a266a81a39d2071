/* SPDX-License-Identifier: Apache-2.0
 * Which tool a trace is from, by its first bytes, and who reads it. */
#include "import/import.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define OURS 256   /* bytes in which a JSON file of ours says that it is */
#define LOOK 65536 /* bytes of a JSON file that are searched for the keys that tell whose it is */

/* ---- Nsight Systems ---------------------------------------------------------------------------- */

static const char sqlite_magic[16] = "SQLite format 3";

/* Its own formats are not published. Bytes that are nobody's in a file that is named like a report of it are taken for
 * one: all that hangs on it is which error is given. */
static bool is_nsys_report(const char *path, const char *bytes, size_t n)
{
  static const char *const suffixes[] = {".nsys-rep", ".qdrep", ".qdstrm"};
  size_t length = strlen(path);
  bool named = false;
  for (size_t i = 0; i < SC_COUNTOF(suffixes); ++i)
    named |= length > strlen(suffixes[i]) && strcmp(path + length - strlen(suffixes[i]), suffixes[i]) == 0;
  bool ours = n >= 8 && memcmp(bytes, SC_TRACE_MAGIC, 8) == 0;
  return named && n > 0 && !ours;
}

/* ---- Chrome trace JSON ------------------------------------------------------------------------- */

static bool holds(const char *text, size_t n, const char *what) { return memmem(text, n, what, strlen(what)) != NULL; }

static bool is_kineto(const char *text, size_t n)
{
  size_t at = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  while (at < n && isspace((unsigned char)text[at]))
    ++at;
  if (at == n || (text[at] != '{' && text[at] != '['))
    return false;
  if (holds(text, n < OURS ? n : OURS, "\"synccount/report/") ||
      holds(text, n < OURS ? n : OURS, "\"generator\":\"synccount\""))
    return false; /* a report or a Chrome trace of ours */
  if (text[at] == '[')
    return holds(text, n, "\"ph\"");
  return holds(text, n, "\"traceEvents\"") || holds(text, n, "\"baseTimeNanoseconds\"") ||
         (holds(text, n, "\"deviceProperties\"") && holds(text, n, "\"schemaVersion\""));
}

/* ---- the choice -------------------------------------------------------------------------------- */

/* The file's first bytes, unpacked if it is gzip. */
static enum sc_status first_bytes(const char *path, char *bytes, size_t *n, struct sc_error *err)
{
  struct stat info;
  if (stat(path, &info) != 0)
    return sc_error_set(err, SC_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) /* a pipe would be waited for, and cannot be read twice */
    return sc_error_set(err, SC_ERR_IO, "cannot read '%s': it is no regular file", path);
  errno = 0;
  gzFile file = gzopen(path, "rb");
  if (!file)
    return sc_error_set(err, errno ? SC_ERR_IO : SC_ERR_NOMEM, "cannot read '%s': %s", path,
                        errno ? strerror(errno) : "out of memory");
  int got = gzread(file, bytes, LOOK); /* damaged gzip: what came before the damage */
  int error = errno;
  *n = got > 0 ? (size_t)got : 0;
  int code = Z_OK;
  if (got < 0)
    gzerror(file, &code);
  gzclose(file);
  if (code == Z_ERRNO)
    return sc_error_set(err, SC_ERR_IO, "cannot read '%s': %s", path, strerror(error));
  return SC_OK;
}

enum sc_status sc_import_recognise(const char *path, enum sc_import_kind *out, struct sc_error *err)
{
  size_t n = 0;
  char *bytes = malloc(LOOK);
  if (!bytes)
    return sc_error_no_memory(err);
  enum sc_status status = first_bytes(path, bytes, &n, err);
  if (status == SC_OK) {
    if (n >= sizeof sqlite_magic && memcmp(bytes, sqlite_magic, sizeof sqlite_magic) == 0)
      *out = SC_IMPORT_NSYS_SQLITE;
    else if (is_kineto(bytes, n))
      *out = SC_IMPORT_KINETO;
    else
      *out = is_nsys_report(path, bytes, n) ? SC_IMPORT_NSYS_REP : SC_IMPORT_NONE;
  }
  free(bytes);
  return status;
}

/* "/tmp/a.nsys-rep" -> "/tmp/a.sqlite" */
static enum sc_status refuse_report(const char *path, struct sc_error *err)
{
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  int stem = dot && (!slash || dot > slash + 1) ? (int)(dot - path) : (int)strlen(path);
  return sc_error_set(err, SC_ERR_FORMAT,
                      "'%s' is an Nsight Systems report, whose format only Nsight Systems reads. Export it, then give "
                      "the exported file: nsys export --type sqlite -o '%.*s.sqlite' '%s'",
                      path, stem, path, path);
}

static enum sc_status read_kind(const char *path, enum sc_import_kind kind, const struct sc_analysis_options *options,
                                struct sc_findings *findings, struct sc_error *err)
{
  switch (kind) {
  case SC_IMPORT_NSYS_SQLITE: return sc_import_nsys(path, options, findings, err);
  case SC_IMPORT_NSYS_REP: return refuse_report(path, err);
  case SC_IMPORT_KINETO: return sc_import_kineto(path, options, findings, err);
  case SC_IMPORT_NONE: break;
  }
  return sc_error_set(err, SC_ERR_FORMAT, "'%s' is no trace of a kind that can be read", path);
}

enum sc_status sc_import_read(const char *path, enum sc_import_kind kind, const struct sc_analysis_options *options,
                              struct sc_findings *findings, struct sc_error *err)
{
  enum sc_status status = read_kind(path, kind, options, findings, err);
  if (status == SC_OK && options && options->capture_range &&
      !sc_findings_warn(findings, "%s: --capture-range is for our own traces: all of this one was counted.", path))
    status = sc_error_no_memory(err);
  return status;
}
