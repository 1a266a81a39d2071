/* SPDX-License-Identifier: Apache-2.0
 * Traces, folders of them, sessions and JSON reports, as operands of a command, into findings. */
#include "cli/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/folder.h"
#include "import/import.h"
#include "report/report.h"
#include "trace/trace.h"

static enum sc_status add_folder(const char *path, const struct sc_analysis_options *how, struct sc_findings *findings,
                                 struct sc_error *err)
{
  char **names;
  size_t count, read = 0;
  enum sc_status status = folder_names(path, "*" SC_TRACE_SUFFIX, &names, &count, err);
  if (status != SC_OK)
    return status;
  if (count == 0)
    status = sc_error_set(err, SC_ERR_IO,
                          "folder '%s' holds no trace (*" SC_TRACE_SUFFIX
                          "): give the folder that --keep-traces or SYNCCOUNT_OUTPUT named",
                          path);
  for (size_t i = 0; status == SC_OK && i < count; ++i) {
    char *file = sc_asprintf("%s/%s", path, names[i]);
    struct sc_error why = {0};
    status = file ? session_add_trace(file, how, findings, &why) : sc_error_no_memory(&why);
    if (status == SC_OK)
      ++read;
    else if (status == SC_ERR_FORMAT || status == SC_ERR_IO)
      status = session_count_loss(&why, findings, err);
    else
      sc_error_set(err, status, "%s", why.message);
    if (status == SC_OK && !read && i + 1 == count) /* nothing is left to report */
      status = sc_error_set(err, why.status, "%s", why.message);
    free(file);
  }
  folder_free_names(names, count);
  return status;
}

static bool starts_as_ours(const char *path)
{
  char magic[sizeof SC_TRACE_MAGIC - 1];
  FILE *file = fopen(path, "rb");
  bool ours = file && fread(magic, sizeof magic, 1, file) == 1 && memcmp(magic, SC_TRACE_MAGIC, sizeof magic) == 0;
  if (file)
    fclose(file);
  return ours;
}

/* A report has no single occurrences that could be left out. */
static enum sc_status add_report(const char *path, const struct sc_analysis_options *how, struct sc_findings *findings,
                                 struct sc_error *err)
{
  enum sc_status status = sc_report_read_json(path, findings, err);
  if (status == SC_OK && how && (how->warmup || how->from) &&
      !sc_findings_warn(findings, "%s: a report is as it was written: --warmup and --from leave nothing out of it.",
                        path))
    status = sc_error_no_memory(err);
  return status;
}

/* Other tools' traces are told by their content. */
static enum sc_status add_file(const char *path, const struct sc_analysis_options *how, struct sc_findings *findings,
                               struct sc_error *err)
{
  enum sc_import_kind kind;
  if (sc_report_is_json(path))
    return add_report(path, how, findings, err);
  enum sc_status status = sc_import_recognise(path, &kind, err);
  if (status != SC_OK)
    return status;
  if (kind != SC_IMPORT_NONE)
    return sc_import_read(path, kind, how, findings, err);
  status = session_add_trace(path, how, findings, err);
  if (status == SC_ERR_FORMAT && !starts_as_ours(path))
    return sc_error_set(err, status,
                        "'%s' is no trace: it is neither synccount's (*" SC_TRACE_SUFFIX
                        ", a JSON report), nor an SQLite export of Nsight Systems, nor a trace of PyTorch's profiler "
                        "(JSON, plain or gzip)",
                        path);
  return status;
}

static bool is_import(const char *path)
{
  enum sc_import_kind kind;
  return sc_report_is_json(path) || (sc_import_recognise(path, &kind, NULL) == SC_OK && kind != SC_IMPORT_NONE);
}

/* The folder whose session an operand is or belongs to, as a new string; NULL if there is none. */
static char *session_of(const char *operand)
{
  struct stat info;
  char *folder = sc_strdup(operand);
  if (!folder || stat(operand, &info) != 0)
    goto none;
  if (!S_ISDIR(info.st_mode)) {
    if (is_import(operand)) /* it may lie beside a session, and is of none */
      goto none;
    char *slash = strrchr(folder, '/');
    if (slash)
      slash[slash == folder] = '\0';
    else
      strcpy(folder, "."); /* an operand is never empty here */
  }
  if (session_is_there(folder))
    return folder;
none:
  free(folder);
  return NULL;
}

/* ---- a folder that the ranks of one job share ----------------------------------------------------- */

/* One that was killed, or that runs still, has traces and no session. */
static enum sc_status add_rank(const char *path, bool first, const struct sc_analysis_options *how,
                               struct sc_findings *findings, struct session_outcome *outcome, struct sc_error *err)
{
  if (session_is_there(path))
    return first ? session_load(path, how, findings, outcome, err) : session_add(path, how, findings, outcome, err);
  struct sc_error why = {0};
  enum sc_status status = add_folder(path, how, findings, &why);
  if (status != SC_OK && status != SC_ERR_IO)
    return sc_error_set(err, status, "%s", why.message);
  if (!sc_findings_warn(findings, "%s: the synccount of this rank was killed, or still runs%s", path,
                        status == SC_ERR_IO ? ", and there are no traces to read" : ": what is there was read"))
    return sc_error_no_memory(err);
  return SC_OK;
}

/* *ranks is false if the folder is no such one: then nothing was done. */
static enum sc_status add_ranks(const char *path, const struct sc_analysis_options *how, struct sc_findings *findings,
                                struct session_outcome *outcome, bool *ranks, struct sc_error *err)
{
  char **names = NULL;
  size_t count = 0;
  bool first = true;
  enum sc_status status = folder_ranks(path, &names, &count, err);
  *ranks = status == SC_OK && count > 0;
  for (size_t i = 0; status == SC_OK && i < count; ++i) {
    char *folder = sc_asprintf("%s/%s", path, names[i]);
    status = folder ? add_rank(folder, first, how, findings, outcome, err) : sc_error_no_memory(err);
    first &= !folder || !session_is_there(folder);
    free(folder);
  }
  folder_free_names(names, count);
  return status;
}

static enum sc_status add_operand(const char *operand, const struct sc_analysis_options *how,
                                  struct sc_findings *findings, struct session_outcome *outcome, struct sc_error *err)
{
  struct stat info;
  bool ranks = false;
  if (stat(operand, &info) != 0)
    return sc_error_set(err, SC_ERR_IO, "cannot read '%s': %s", operand, strerror(errno));
  if (S_ISDIR(info.st_mode)) {
    enum sc_status status = add_ranks(operand, how, findings, outcome, &ranks, err);
    if (status != SC_OK || ranks)
      return status;
  }
  return S_ISDIR(info.st_mode) ? add_folder(operand, how, findings, err) : add_file(operand, how, findings, err);
}

struct identity { /* of an operand */
  bool known;
  dev_t device;
  ino_t inode;
};

/* Whether an operand is the same file or folder as one before it: it would count twice. Fills in all[index]. What cannot
 * be looked at is told when it is read. */
static bool came_before(struct identity *all, size_t index, const char *operand)
{
  struct stat info;
  if (stat(operand, &info) != 0)
    return false;
  all[index] = (struct identity){true, info.st_dev, info.st_ino};
  for (size_t i = 0; i < index; ++i) {
    if (all[i].known && all[i].device == info.st_dev && all[i].inode == info.st_ino)
      return true;
  }
  return false;
}

enum sc_status load_operands(char *const *operands, size_t count, const struct sc_analysis_options *how,
                             struct sc_findings *findings, struct session_outcome *outcome, struct sc_error *err)
{
  char *session = session_of(operands[0]);
  bool one = session != NULL;
  for (size_t i = 1; i < count && one; ++i) {
    char *other = session_of(operands[i]);
    one = other && strcmp(other, session) == 0;
    free(other);
  }
  struct identity *all = sc_calloc_array(count, sizeof *all);
  enum sc_status status = all ? SC_OK : sc_error_no_memory(err);
  if (one && status == SC_OK)
    status = session_load(session, how, findings, outcome, err);
  for (size_t i = 0; status == SC_OK && i < count; ++i) {
    if (!came_before(all, i, operands[i]))
      status = one ? SC_OK : add_operand(operands[i], how, findings, outcome, err);
    else if (!sc_findings_warn(findings, "'%s' is given more than once, and read once.", operands[i]))
      status = sc_error_no_memory(err);
  }
  if (!one)
    outcome->nothing = findings->run_count == 0 && !session_measured(findings);
  free(all);
  free(session);
  return status;
}
