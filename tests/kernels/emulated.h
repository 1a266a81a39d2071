/* SPDX-License-Identifier: Apache-2.0
 * A CUDA block on the CPU, enough of one to run the fused layer's kernels as they are written: a fiber a thread, and
 * everything that threads do together (barriers, shuffles, matrix operations) as a meeting at which the last to come
 * does the work. What is asynchronous on a device is done here as late as the rules allow: a cp.async when it is waited
 * for, a wgmma at its wait, with what its registers hold then; what a cp.async is going to overwrite is poisoned when
 * it is issued. A bulk copy is done at once. So a kernel that forgets a wait, or lets a buffer go too early, computes
 * something else. Data races between threads that happen to be run in a good order, and what ptxas makes of the code,
 * are not seen: the device has the last word. */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include <ucontext.h>

#include <vector_types.h>

#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

/* Runs `kernel` for every thread of every block, one block after the other. The threads of a block start in an order
 * that `seed` rotates. Ends the program with a message at a deadlock, and where the kernel writes behind `shared`
 * bytes. */
void emulate(unsigned blocks, unsigned threads, size_t shared, unsigned seed, const std::function<void()> &kernel);

namespace emulated
{

constexpr size_t SHARED_BYTES = 256 * 1024;
constexpr unsigned WARP = 32, WARPGROUP = 128;

struct Copy {
  uint32_t to;
  const void *from;
  bool there;
};

struct Thread {
  ucontext_t context;
  std::vector<char> stack;
  unsigned number;
  bool done;
  std::vector<Copy> copies; /* not yet in a group */
  std::deque<std::vector<Copy>> groups;
};

/* The threads of a warp, a warpgroup or the block meet here. */
struct Meeting {
  unsigned arrived = 0;
  uint64_t held = 0; /* so far */
  void *arguments[WARPGROUP] = {};
};

struct Wgmma {
  float *c[WARPGROUP];
  const uint32_t *a[WARPGROUP];
  uint64_t b;
  int n;
};

struct Warpgroup {
  Meeting meeting;
  std::vector<Wgmma> open;
  std::deque<std::vector<Wgmma>> groups;
};

struct Barrier { /* mbarrier */
  int expected, pending;
  long bytes;
  unsigned phase;
};

struct Block {
  unsigned number, blocks, threads;
  Meeting warps[32], barriers[16];
  Warpgroup warpgroups[8];
  std::map<uint32_t, Barrier> mbarriers;
  std::map<uint32_t, std::deque<std::vector<Copy>>> arrivals; /* at them, of copies under way */
  uint64_t progress;                                          /* moves whenever something ends that others wait for */
};

extern Block block;
extern Thread *current;
extern uint8_t shared[SHARED_BYTES];

void yield();
[[noreturn]] void give_up(const char *why);

template <typename Work> void meet(Meeting &meeting, unsigned count, unsigned place, void *argument, Work work)
{
  if (place < WARPGROUP)
    meeting.arguments[place] = argument;
  if (++meeting.arrived == count) {
    work(meeting.arguments);
    meeting.arrived = 0;
    meeting.held++;
    block.progress++;
  } else {
    for (const uint64_t now = meeting.held; meeting.held == now;)
      yield();
  }
}

inline unsigned lane() { return current->number % WARP; }
inline Meeting &warp() { return block.warps[current->number / WARP]; }
inline Warpgroup &warpgroup() { return block.warpgroups[current->number / WARPGROUP]; }

/* What every lane gets of what every lane brings. */
template <typename Value, typename From> Value exchange(Value value, From from)
{
  struct Both {
    Value in, out;
  } both = {value, value};
  meet(warp(), WARP, lane(), &both, [&](void **all) {
    for (unsigned l = 0; l < WARP; l++)
      static_cast<Both *>(all[l])->out = static_cast<Both *>(all[from(l)])->in;
  });
  return both.out;
}

} /* namespace emulated */

/* ---- what CUDA C gives device code ---- */

#undef __global__
#undef __device__
#undef __forceinline__
#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__

struct EmulatedIndex {
  unsigned x;
};
#define threadIdx (EmulatedIndex{emulated::current->number})
#define blockIdx (EmulatedIndex{emulated::block.number})
#define blockDim (EmulatedIndex{emulated::block.threads})
#define gridDim (EmulatedIndex{emulated::block.blocks})

using std::max;
using std::min;

inline void __syncthreads()
{
  emulated::meet(emulated::block.barriers[0], emulated::block.threads, emulated::WARPGROUP, nullptr, [](void **) {});
}

inline void __syncwarp()
{
  emulated::meet(emulated::warp(), emulated::WARP, emulated::WARPGROUP, nullptr, [](void **) {});
}

template <typename Value> Value __shfl_xor_sync(unsigned, Value value, int offset)
{
  return emulated::exchange(value, [=](unsigned l) { return l ^ (unsigned)offset; });
}

inline unsigned __ballot_sync(unsigned, bool vote)
{
  struct Both {
    bool in;
    unsigned out;
  } both = {vote, 0};
  emulated::meet(emulated::warp(), emulated::WARP, emulated::lane(), &both, [](void **all) {
    unsigned votes = 0;
    for (unsigned l = 0; l < emulated::WARP; l++)
      votes |= (unsigned)static_cast<Both *>(all[l])->in << l;
    for (unsigned l = 0; l < emulated::WARP; l++)
      static_cast<Both *>(all[l])->out = votes;
  });
  return both.out;
}

template <typename Value> Value atomicAdd(Value *at, Value more)
{
  const Value before = *at;
  *at = before + more;
  return before;
}

template <typename Value> Value atomicMax(Value *at, Value other)
{
  const Value before = *at;
  *at = std::max(before, other);
  return before;
}

template <typename To, typename From> To emulated_bits(From from)
{
  To to;
  static_assert(sizeof to == sizeof from);
  memcpy(&to, &from, sizeof to);
  return to;
}
inline unsigned __float_as_uint(float value) { return emulated_bits<unsigned>(value); }
inline float __uint_as_float(unsigned bits) { return emulated_bits<float>(bits); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline int __clz(int value) { return value ? __builtin_clz((unsigned)value) : 32; }
[[noreturn]] inline void __trap() { emulated::give_up("__trap"); }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
