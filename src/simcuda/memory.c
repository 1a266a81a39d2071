/* SPDX-License-Identifier: Apache-2.0
 * Device, managed and pinned memory: host memory between guard pages, filled with 0xff so that a value nobody wrote
 * shows as NaN, and the sorted list of blocks that tells a pointer's kind. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define HIDE(start, bytes) __asan_poison_memory_region(start, bytes)
#define SHOW(start, bytes) __asan_unpoison_memory_region(start, bytes)
#else
#define HIDE(start, bytes) ((void)(start), (void)(bytes))
#define SHOW(start, bytes) ((void)(start), (void)(bytes))
#endif

enum { PAGE = 4096, FILL = 0xff, GUARD = 0xa5 };
/* Above this size the 0xff pages are mapped copy-on-write from one small file, so that a large model that is allocated
 * but hardly touched does not fill the machine's memory. */
static const size_t FILL_LAZILY_FROM = (size_t)64 << 20;
static const size_t FILL_FILE_BYTES = (size_t)8 << 20;

static struct sim_block **blocks; /* by ascending base */
static size_t block_count, block_room;
static uint64_t used_bytes[SIM_MAX_DEVICES];
static uint64_t last_block_id;

static size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

/* Index of the first block whose base is above the address. */
static size_t upper_bound(const char *address)
{
  size_t low = 0, high = block_count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (blocks[middle]->base <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const struct sim_block *sim_block_at(const void *pointer)
{
  size_t above = upper_bound(pointer);

  if (above == 0)
    return NULL;
  const struct sim_block *block = blocks[above - 1];
  return (size_t)((const char *)pointer - block->base) < block->bytes ? block : NULL;
}

enum sim_memory sim_kind_of(const void *pointer)
{
  const struct sim_block *block = sim_block_at(pointer);

  return block != NULL ? block->kind : SIM_PAGEABLE;
}

bool sim_range_ok(const void *pointer, size_t bytes)
{
  const struct sim_block *block = sim_block_at(pointer);

  return block != NULL && bytes <= block->bytes - (size_t)((const char *)pointer - block->base);
}

static int insert(struct sim_block *block)
{
  if (block_count == block_room) {
    size_t room = block_room == 0 ? 64 : 2 * block_room;
    struct sim_block **grown = realloc(blocks, room * sizeof *grown);
    if (grown == NULL)
      return CUDA_ERROR_OUT_OF_MEMORY;
    blocks = grown;
    block_room = room;
  }
  size_t at = upper_bound(block->base);
  memmove(&blocks[at + 1], &blocks[at], (block_count - at) * sizeof *blocks);
  blocks[at] = block;
  block_count++;
  block->id = ++last_block_id;
  return 0;
}

static bool on_device(enum sim_memory kind)
{
  return kind == SIM_DEVICE || kind == SIM_MANAGED || kind == SIM_POOL || kind == SIM_ARRAY;
}

/* An unlinked file of 0xff, made once; -1 when there can be none. */
static int fill_file(void)
{
  static int file = -2;

  if (file != -2)
    return file;
  file = memfd_create("simcuda-fill", MFD_CLOEXEC);
  if (file < 0)
    return file = -1;
  void *map = MAP_FAILED;
  if (ftruncate(file, (off_t)FILL_FILE_BYTES) == 0)
    map = mmap(NULL, FILL_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) {
    close(file);
    return file = -1;
  }
  memset(map, FILL, FILL_FILE_BYTES);
  munmap(map, FILL_FILE_BYTES);
  return file;
}

static bool fill(char *start, size_t bytes)
{
  int file = bytes >= FILL_LAZILY_FROM ? fill_file() : -1;

  if (file < 0) {
    memset(start, FILL, bytes);
    return true;
  }
  for (size_t done = 0; done < bytes; done += FILL_FILE_BYTES) {
    size_t part = bytes - done < FILL_FILE_BYTES ? bytes - done : FILL_FILE_BYTES;
    if (mmap(start + done, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
      return false;
  }
  return true;
}

/* Pages for `bytes`, an unreadable page on either side. The guard bytes behind an odd size are checked at the free. */
static int map_block(struct sim_block *block)
{
  size_t body = round_up(block->bytes, PAGE);

  block->map_bytes = body + 2 * PAGE;
  block->map = mmap(NULL, block->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block->map == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  block->base = (char *)block->map + PAGE;
  if (mprotect(block->base, body, PROT_READ | PROT_WRITE) != 0 || !fill(block->base, body)) {
    munmap(block->map, block->map_bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memset(block->base + block->bytes, GUARD, body - block->bytes);
  HIDE(block->base + block->bytes, body - block->bytes);
  return 0;
}

int sim_alloc(CUcontext context, enum sim_memory kind, size_t bytes, unsigned flags, void **pointer)
{
  uint64_t room = sim_settings.memory_bytes - used_bytes[context->device];

  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > (size_t)1 << 46 || (on_device(kind) && bytes > room))
    return CUDA_ERROR_OUT_OF_MEMORY;
  struct sim_block *block = calloc(1, sizeof *block);
  if (block == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *block =
      (struct sim_block){.bytes = bytes, .kind = kind, .flags = flags, .device = context->device, .context = context};
  int error = map_block(block);
  if (error == 0 && (error = insert(block)) != 0)
    munmap(block->map, block->map_bytes);
  if (error != 0) {
    free(block);
    return error;
  }
  if (on_device(kind))
    used_bytes[context->device] += bytes;
  *pointer = block->base;
  return 0;
}

int sim_register(CUcontext context, void *pointer, size_t bytes, unsigned flags)
{
  if (pointer == NULL || bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  size_t above = upper_bound((char *)pointer + bytes - 1);
  if (above != 0 && blocks[above - 1]->base + blocks[above - 1]->bytes > (char *)pointer)
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  struct sim_block *block = calloc(1, sizeof *block);
  if (block == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *block = (struct sim_block){.base = pointer,
                              .bytes = bytes,
                              .kind = SIM_REGISTERED,
                              .flags = flags,
                              .device = context->device,
                              .context = context};
  int error = insert(block);
  if (error != 0)
    free(block);
  return error;
}

struct sim_block *sim_block_take(void *pointer)
{
  size_t above = upper_bound(pointer);

  if (above == 0 || blocks[above - 1]->base != pointer)
    return NULL;
  struct sim_block *block = blocks[above - 1];
  memmove(&blocks[above - 1], &blocks[above], (block_count - above) * sizeof *blocks);
  block_count--;
  if (on_device(block->kind))
    used_bytes[block->device] -= block->bytes;
  return block;
}

int sim_block_free(struct sim_block *block)
{
  int error = 0;

  if (block->map != NULL) {
    size_t body = round_up(block->bytes, PAGE);
    SHOW(block->base + block->bytes, body - block->bytes);
    for (size_t i = block->bytes; i < body && error == 0; i++)
      if ((unsigned char)block->base[i] != GUARD) {
        simcuda_complain("simcuda: something wrote %zu bytes behind the end of a block of %zu bytes at %p",
                         i - block->bytes + 1, block->bytes, (void *)block->base);
        error = CUDA_ERROR_ILLEGAL_ADDRESS;
      }
    munmap(block->map, block->map_bytes);
  }
  free(block);
  return error;
}

void sim_memory_info(int device, size_t *free_bytes, size_t *total_bytes)
{
  *total_bytes = sim_settings.memory_bytes;
  *free_bytes = sim_settings.memory_bytes - used_bytes[device];
}
