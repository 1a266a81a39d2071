/* SPDX-License-Identifier: Apache-2.0
 * Where a function of a library lies in a running process: the file's dynamic symbols, by libelf, and the process's
 * mappings. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/inject_parts.h"

#ifdef SC_HAVE_LIBDW
#include <gelf.h>

#define COMPARED_BYTES 32

/* The file as the process has it: map_files serves a deleted one too, but wants privileges. */
static int open_mapped(pid_t pid, const struct proc_map *map)
{
  char *path =
      sc_asprintf("/proc/%ld/map_files/%lx-%lx", (long)pid, (unsigned long)map->start, (unsigned long)map->end);
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  free(path);
  if (fd >= 0)
    return fd;
  path = sc_asprintf("/proc/%ld/root%s", (long)pid, map->path);
  fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  free(path);
  return fd;
}

/* A version that is not the default one is for programs linked long ago. */
static bool is_hidden(Elf_Data *versions, size_t index)
{
  GElf_Versym version;
  return versions && gelf_getversym(versions, (int)index, &version) && (version & 0x8000) != 0;
}

static Elf_Data *section_data(Elf *elf, GElf_Word type, GElf_Shdr *header)
{
  for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
    if (gelf_getshdr(section, header) && header->sh_type == type)
      return elf_getdata(section, NULL);
  }
  return NULL;
}

/* The value of an exported function; 0: none. */
static uint64_t find_symbol(Elf *elf, const char *name, uint64_t *size)
{
  GElf_Shdr header, version_header;
  Elf_Data *data = section_data(elf, SHT_DYNSYM, &header);
  Elf_Data *versions = section_data(elf, SHT_GNU_versym, &version_header);
  uint64_t value = 0;
  size_t count = data && header.sh_entsize ? data->d_size / header.sh_entsize : 0;
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF || !symbol.st_value ||
        GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
      continue;
    const char *found = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (!found || strcmp(found, name) != 0 || (value && is_hidden(versions, i)))
      continue;
    value = symbol.st_value;
    *size = symbol.st_size;
  }
  return value;
}

/* Place in the file of an address of code; false: no segment holds it. */
static bool file_offset(Elf *elf, uint64_t value, uint64_t *offset)
{
  size_t count;
  if (elf_getphdrnum(elf, &count) != 0)
    return false;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD && (segment.p_flags & PF_X) &&
        value >= segment.p_vaddr && value - segment.p_vaddr < segment.p_filesz) {
      *offset = segment.p_offset + (value - segment.p_vaddr);
      return true;
    }
  }
  return false;
}

static uint64_t mapped_address(const struct proc_maps *maps, const struct proc_map *map, uint64_t offset)
{
  for (size_t i = (size_t)(map - maps->at); i < maps->count; ++i) {
    const struct proc_map *one = &maps->at[i];
    if (one->executable && strcmp(one->path, map->path) == 0 && offset >= one->offset &&
        offset - one->offset < one->end - one->start)
      return one->start + (offset - one->offset);
  }
  return 0;
}

/* SC_ERR_SYSTEM: not the same code. */
static enum sc_status compare(pid_t pid, int file, uint64_t offset, uint64_t address, uint64_t size,
                              const struct proc_map *map, struct sc_error *err)
{
  char path[64], expected[COMPARED_BYTES], found[COMPARED_BYTES];
  size_t wanted = size && size < COMPARED_BYTES ? (size_t)size : COMPARED_BYTES;
  snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
  int memory = open(path, O_RDONLY | O_CLOEXEC);
  if (memory < 0)
    return inject_forbidden(pid, pid, err);
  bool read = pread(memory, found, wanted, (off_t)address) == (ssize_t)wanted;
  close(memory);
  if (read && pread(file, expected, wanted, (off_t)offset) == (ssize_t)wanted && memcmp(expected, found, wanted) == 0)
    return SC_OK;
  return sc_error_set(err, SC_ERR_SYSTEM,
                      "%s on disk is not what process %ld has loaded (it was replaced or patched since): restart the "
                      "program",
                      map->path, (long)pid);
}

enum sc_status inject_find_function(pid_t pid, const struct proc_maps *maps, const struct proc_map *map,
                                    const char *name, uint64_t *address, struct sc_error *err)
{
  enum sc_status status = SC_OK;
  uint64_t size = 0, offset = 0, found = 0;
  int file = open_mapped(pid, map);
  Elf *elf = file >= 0 && elf_version(EV_CURRENT) != EV_NONE ? elf_begin(file, ELF_C_READ, NULL) : NULL;
  if (!elf) {
    status = sc_error_set(err, SC_ERR_SYSTEM, "%s, which process %ld has loaded%s, cannot be read: %s", map->path,
                          (long)pid, map->deleted ? " and which was deleted since (restart the program)" : "",
                          file < 0 ? strerror(errno) : elf_errmsg(-1));
    goto cleanup;
  }
  uint64_t value = find_symbol(elf, name, &size);
  if (value && file_offset(elf, value, &offset))
    found = mapped_address(maps, map, offset);
  if (found)
    status = compare(pid, file, offset, found, size, map, err);
  if (status == SC_OK)
    *address = found;
cleanup:
  elf_end(elf);
  if (file >= 0)
    close(file);
  return status;
}

enum sc_status inject_file_exports(const char *path, const char *name, bool *found, struct sc_error *err)
{
  uint64_t size;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return sc_error_set(err, SC_ERR_IO, "%s: %s", path, strerror(errno));
  Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_begin(file, ELF_C_READ, NULL) : NULL;
  *found = elf && find_symbol(elf, name, &size) != 0;
  elf_end(elf);
  close(file);
  return SC_OK;
}

#else

enum sc_status inject_file_exports(const char *path, const char *name, bool *found, struct sc_error *err)
{
  (void)path;
  (void)name;
  (void)err;
  *found = true; /* not known; inject_find_function says why */
  return SC_OK;
}

enum sc_status inject_find_function(pid_t pid, const struct proc_maps *maps, const struct proc_map *map,
                                    const char *name, uint64_t *address, struct sc_error *err)
{
  (void)maps;
  (void)address;
  return sc_error_set(err, SC_ERR_SYSTEM,
                      "process %ld: this synccount was built without libelf, which finds %s in %s; build it with "
                      "libdw-dev installed, or start the program with SYNCCOUNT_DORMANT=1",
                      (long)pid, name, map->path);
}

#endif
