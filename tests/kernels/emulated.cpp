/* SPDX-License-Identifier: Apache-2.0
 * See emulated.h. */
#include "emulated.h"

namespace emulated
{

Block block;
Thread *current;
alignas(1024) uint8_t shared[SHARED_BYTES];

static constexpr size_t STACK_BYTES = 128 * 1024;
static constexpr int PATIENCE = 100; /* rounds in which nothing moves */
static constexpr uint8_t POISON = 0xff;
static ucontext_t scheduler;
static std::vector<Thread> threads;
static const std::function<void()> *body;

void yield() { swapcontext(&current->context, &scheduler); }

void give_up(const char *why)
{
  fprintf(stderr, "emulated block %u: %s\n", block.number, why);
  abort();
}

static void enter()
{
  (*body)();
  current->done = true;
  block.progress++;
  yield();
}

static void start(Thread &thread, unsigned number)
{
  thread.number = number;
  thread.done = false;
  thread.copies.clear();
  thread.groups.clear();
  thread.stack.resize(STACK_BYTES);
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.data();
  thread.context.uc_stack.ss_size = thread.stack.size();
  thread.context.uc_link = nullptr;
  makecontext(&thread.context, enter, 0);
}

/* Every thread in turn, until all are done: each round begins with another one, goes up or down, and leaves out some
 * warps, as one that is slow. */
static void run_block(uint32_t random)
{
  int idle = 0;
  for (unsigned left = 1; left > 0;) {
    const uint64_t before = block.progress;
    random = random * 1664525u + 1013904223u;
    const unsigned first = (random >> 8) % block.threads, slow = random >> 20;
    left = 0;
    for (unsigned i = 0; i < block.threads; i++) {
      current = &threads[(first + (random >> 31 ? block.threads - i : i)) % block.threads];
      if (current->done)
        continue;
      if ((slow ^ current->number / WARP) % 4 == 0) {
        left++;
        continue;
      }
      swapcontext(&scheduler, &current->context);
      left += !current->done;
    }
    idle = block.progress == before ? idle + 1 : 0;
    if (left > 0 && idle > PATIENCE)
      give_up("threads wait for each other");
  }
}

} /* namespace emulated */

void emulate(unsigned blocks, unsigned threads, size_t shared, unsigned seed, const std::function<void()> &kernel)
{
  using namespace emulated;
  emulated::threads.resize(std::max<size_t>(emulated::threads.size(), threads));
  body = &kernel;
  for (unsigned number = 0; number < blocks; number++) {
    block = Block{};
    block.number = number;
    block.blocks = blocks;
    block.threads = threads;
    memset(emulated::shared, POISON, SHARED_BYTES);
    for (unsigned i = 0; i < threads; i++)
      start(emulated::threads[i], i);
    run_block(seed + number);
    if (std::any_of(emulated::shared + shared, emulated::shared + SHARED_BYTES, [](uint8_t b) { return b != POISON; }))
      give_up("shared memory was written behind what was asked for");
  }
}
