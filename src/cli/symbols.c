/* SPDX-License-Identifier: Apache-2.0
 * By libdw, here and not in the traced process: reading tables of debug information takes time and memory. */
#include "cli/symbols.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifdef SC_HAVE_LIBDW
#include <elfutils/libdwfl.h>

typedef char *demangler(const char *name, char *buffer, size_t *length, int *status);

struct file { /* one module of a process */
  Dwfl *session;
  Dwfl_Module *module; /* NULL: not there, or another build */
  GElf_Addr bias;
  bool tried;
};

static demangler *find_demangler(void)
{
  void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
  demangler *demangle = NULL;
  memcpy(&demangle, &symbol, sizeof demangle);
  return demangle;
}

static bool is_build(Dwfl_Module *module, const char *wanted)
{
  const unsigned char *bytes;
  GElf_Addr address;
  int n = dwfl_module_build_id(module, &bytes, &address);
  if (!wanted)
    return n <= 0;
  if (n <= 0 || strlen(wanted) != (size_t)n * 2)
    return false;
  for (int i = 0; i < n; ++i) {
    static const char digits[] = "0123456789abcdef";
    if (wanted[2 * i] != digits[bytes[i] >> 4] || wanted[2 * i + 1] != digits[bytes[i] & 15])
      return false;
  }
  return true;
}

static void open_file(const struct sc_process *process, const struct sc_module_findings *found, struct file *file)
{
  static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                           .find_debuginfo = dwfl_standard_find_debuginfo,
                                           .section_address = dwfl_offline_section_address};
  file->tried = true;
  bool relative = found->path[0] != '/' && process->cwd;
  char *path = relative ? sc_asprintf("%s/%s", process->cwd, found->path) : sc_strdup(found->path);
  file->session = path ? dwfl_begin(&callbacks) : NULL;
  if (file->session) {
    dwfl_report_begin(file->session);
    Dwfl_Module *module = dwfl_report_offline(file->session, path, path, -1);
    dwfl_report_end(file->session, NULL, NULL);
    if (module && is_build(module, found->build_id) && dwfl_module_getelf(module, &file->bias))
      file->module = module;
  }
  free(path);
}

/* False: out of memory. */
static bool set_function(struct sc_frame *frame, const char *name, demangler *demangle)
{
  int status = -1;
  char *plain = demangle && strncmp(name, "_Z", 2) == 0 ? demangle(name, NULL, NULL, &status) : NULL;
  char *copy = sc_strdup(plain && status == 0 ? plain : name);
  free(plain);
  if (!copy)
    return false;
  free(frame->function);
  frame->function = copy;
  return true;
}

static bool look_up(const struct file *file, struct sc_frame *frame, demangler *demangle)
{
  GElf_Addr address = file->bias + frame->offset - 1; /* a return address may be the next line's, or function's */
  const char *name = dwfl_module_addrname(file->module, address);
  Dwfl_Line *line = dwfl_module_getsrc(file->module, address);
  int number = 0;
  const char *source = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
  if (name && !set_function(frame, name, demangle))
    return false;
  if (source) {
    char *copy = sc_strdup(source);
    if (!copy)
      return false;
    free(frame->file);
    frame->file = copy;
    frame->line = number > 0 ? (uint64_t)number : 0;
  }
  return true;
}

static bool look_up_process(struct sc_process *process, demangler *demangle)
{
  if (process->module_count == 0)
    return true;
  struct file *files = sc_calloc_array(process->module_count, sizeof *files);
  bool ok = files != NULL;
  for (size_t i = 0; i < process->site_count && ok; ++i) {
    struct sc_site *site = &process->sites[i];
    for (size_t j = 0; j < site->native_count && ok; ++j) {
      struct sc_frame *frame = &site->native[j];
      if (frame->module >= process->module_count)
        continue;
      struct file *file = &files[frame->module];
      if (!file->tried)
        open_file(process, &process->modules[frame->module], file);
      if (file->module)
        ok = look_up(file, frame, demangle);
    }
  }
  for (size_t i = 0; files && i < process->module_count; ++i) {
    if (files[i].session)
      dwfl_end(files[i].session);
  }
  free(files);
  return ok && sc_sites_describe(process);
}

enum sc_status symbols_look_up(struct sc_findings *findings, struct sc_error *err)
{
  demangler *demangle = NULL;
  unsetenv("DEBUGINFOD_URLS"); /* libdw would ask servers, and wait for them */
  for (size_t i = 0; i < findings->process_count; ++i) {
    if (findings->processes[i].module_count && !demangle)
      demangle = find_demangler();
    if (!look_up_process(&findings->processes[i], demangle))
      return sc_error_set(err, SC_ERR_NOMEM, "out of memory while symbols were looked up");
  }
  return SC_OK;
}

#else

enum sc_status symbols_look_up(struct sc_findings *findings, struct sc_error *err)
{
  (void)findings;
  (void)err;
  return SC_OK;
}

#endif
