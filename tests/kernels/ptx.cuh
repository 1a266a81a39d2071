/* SPDX-License-Identifier: Apache-2.0
 * The instructions of probes/kernels/ptx.cuh on the emulated block, by what the PTX manual says of them. */
#pragma once

#include "emulated.h"

#ifdef SC_EMULATE_SM_90A
#define __CUDA_ARCH_FEAT_SM90_ALL 1
#endif
#define SC_DYNAMIC_SHARED(name) uint8_t *const name = emulated::shared

inline uint32_t shared_address(const void *pointer)
{
  return (uint32_t)(static_cast<const uint8_t *>(pointer) - emulated::shared);
}

inline uint32_t keep(uint32_t value) { return value; }
inline void hold(float &) {}

inline uint32_t select_bits(uint32_t mask, uint32_t a, uint32_t b) { return (mask & a) | (~mask & b); }

/* Value `which` of a pair of bf16. */
inline float emulated_bf16(uint32_t pair, unsigned which)
{
  return emulated_bits<float>((which ? pair >> 16 : pair & 0xffffu) << 16);
}

/* ---- cp.async ---- */

inline void emulated_copy(std::vector<emulated::Copy> &copies)
{
  for (const emulated::Copy &copy : copies) {
    if (copy.there)
      memcpy(emulated::shared + copy.to, copy.from, 16);
    else
      memset(emulated::shared + copy.to, 0, 16);
  }
  copies.clear();
}

inline void cp_async_16(uint32_t to, const void *from, bool there)
{
  if (to % 16 != 0 || to + 16 > emulated::SHARED_BYTES || (there && (uintptr_t)from % 16 != 0))
    emulated::give_up("cp.async to or from an address that is no multiple of 16");
  memset(emulated::shared + to, 0xff, 16);
  emulated::current->copies.push_back({to, from, there});
}

inline void cp_async_commit()
{
  emulated::current->groups.push_back(emulated::current->copies);
  emulated::current->copies.clear();
}

template <int N> void cp_async_wait()
{
  auto &groups = emulated::current->groups;
  for (; groups.size() > N; groups.pop_front())
    emulated_copy(groups.front());
}

/* ---- a warp's matrix operations ---- */

inline void ldmatrix_x4(uint32_t out[4], uint32_t row)
{
  struct Lane {
    uint32_t *out, row;
  } own = {out, row};
  emulated::meet(emulated::warp(), emulated::WARP, emulated::lane(), &own, [](void **all) {
    for (unsigned l = 0; l < emulated::WARP; l++)
      for (unsigned matrix = 0; matrix < 4; matrix++)
        memcpy(&static_cast<Lane *>(all[l])->out[matrix],
               emulated::shared + static_cast<Lane *>(all[matrix * 8 + l / 4])->row + l % 4 * 4, 4);
  });
}

inline void mma_m16n8k16(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
  struct Lane {
    float *c;
    const uint32_t *a;
    uint32_t b[2];
  } own = {c, a, {b0, b1}};
  emulated::meet(emulated::warp(), emulated::WARP, emulated::lane(), &own, [](void **all) {
    float left[16][16], right[16][8];
    for (unsigned l = 0; l < emulated::WARP; l++) {
      const Lane &lane = *static_cast<Lane *>(all[l]);
      for (unsigned i = 0; i < 8; i++) /* registers (r; 2q) (r + 8; 2q) (r; 2q + 8) (r + 8; 2q + 8) */
        left[l / 4 + i / 2 % 2 * 8][l % 4 * 2 + i / 4 * 8 + i % 2] = emulated_bf16(lane.a[i / 2], i % 2);
      for (unsigned i = 0; i < 4; i++)
        right[l % 4 * 2 + i / 2 * 8 + i % 2][l / 4] = emulated_bf16(lane.b[i / 2], i % 2);
    }
    for (unsigned l = 0; l < emulated::WARP; l++)
      for (unsigned i = 0; i < 4; i++) {
        float &sum = static_cast<Lane *>(all[l])->c[i];
        double total = (double)sum;
        for (unsigned k = 0; k < 16; k++)
          total += (double)left[l / 4 + i / 2 * 8][k] * (double)right[k][l % 4 * 2 + i % 2];
        sum = (float)total;
      }
  });
}

/* ---- barriers in shared memory ---- */

inline emulated::Barrier &emulated_barrier(uint32_t at)
{
  const auto found = emulated::block.mbarriers.find(at);
  if (found == emulated::block.mbarriers.end())
    emulated::give_up("no mbarrier was initialised there");
  return found->second;
}

inline void emulated_end_phase(emulated::Barrier &barrier)
{
  if (barrier.pending < 0)
    emulated::give_up("more arrivals at an mbarrier than it was initialised for");
  if (barrier.pending > 0 || barrier.bytes != 0)
    return;
  barrier.phase ^= 1;
  barrier.pending = barrier.expected;
  emulated::block.progress++;
}

inline void mbarrier_init(uint32_t barrier, uint32_t arrivals)
{
  emulated::block.mbarriers[barrier] = {(int)arrivals, (int)arrivals, 0, 0};
}

inline void mbarrier_init_fence() {}

inline void mbarrier_arrive_expect(uint32_t at, uint32_t bytes)
{
  emulated::Barrier &barrier = emulated_barrier(at);
  barrier.bytes += bytes;
  barrier.pending--;
  emulated_end_phase(barrier);
}

inline void mbarrier_arrive(uint32_t at) { mbarrier_arrive_expect(at, 0); }

/* The copies are done when somebody waits for the barrier, not before. */
inline void cp_async_arrive(uint32_t at)
{
  emulated_barrier(at);
  emulated::block.arrivals[at].push_back(emulated::current->copies);
  emulated::current->copies.clear();
}

inline void mbarrier_wait(uint32_t at, uint32_t parity)
{
  while (emulated_barrier(at).phase == parity) {
    auto &arrivals = emulated::block.arrivals[at];
    if (arrivals.empty()) {
      emulated::yield();
      continue;
    }
    emulated_copy(arrivals.front());
    arrivals.pop_front();
    mbarrier_arrive(at);
  }
}

inline void bulk_copy(uint32_t to, const void *from, uint32_t bytes, uint32_t at)
{
  emulated::Barrier &barrier = emulated_barrier(at);
  if (to % 16 != 0 || bytes % 16 != 0 || (uintptr_t)from % 16 != 0)
    emulated::give_up("a bulk copy to, from or of what is no multiple of 16");
  memcpy(emulated::shared + to, from, bytes);
  barrier.bytes -= bytes;
  emulated_end_phase(barrier);
}

inline void fence_proxy_async() {}

inline void barrier_sync(uint32_t number, uint32_t threads)
{
  emulated::meet(emulated::block.barriers[number], threads, emulated::WARPGROUP, nullptr, [](void **) {});
}

template <int> void more_registers() {}
template <int> void fewer_registers() {}

/* ---- wgmma ---- */

inline void wgmma_fence() {}

inline uint64_t wgmma_rows_of_128(uint32_t to)
{
  if (to % 1024 != 0)
    emulated::give_up("B of a wgmma is not on a multiple of 1024");
  return to >> 4;
}

template <int N> void wgmma_m64k16(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b)
{
  struct Thread {
    float *c;
    const uint32_t *a;
    uint64_t b;
  } own = {c, a, b};
  emulated::Warpgroup &group = emulated::warpgroup();
  emulated::meet(group.meeting, emulated::WARPGROUP, emulated::current->number % emulated::WARPGROUP, &own,
                 [&](void **all) {
                   emulated::Wgmma wgmma;
                   wgmma.n = N;
                   wgmma.b = static_cast<Thread *>(all[0])->b;
                   for (unsigned t = 0; t < emulated::WARPGROUP; t++) {
                     const Thread &thread = *static_cast<Thread *>(all[t]);
                     if (thread.b != wgmma.b)
                       emulated::give_up("threads give a wgmma different descriptors");
                     wgmma.c[t] = thread.c;
                     wgmma.a[t] = thread.a;
                   }
                   group.open.push_back(wgmma);
                 });
}

inline void emulated_multiply(const emulated::Wgmma &wgmma)
{
  static float right[256][16];
  const uint32_t start = (uint32_t)(wgmma.b << 4), tile = start & ~1023u, offset = start & 1023u;
  for (int n = 0; n < wgmma.n; n++)
    for (unsigned k = 0; k < 16; k++) {
      const uint32_t byte = offset + k * 2, piece = byte / 16 ^ (unsigned)n % 8;
      uint16_t value;
      memcpy(&value, emulated::shared + tile + n * 128 + piece * 16 + byte % 16, sizeof value);
      right[n][k] = emulated_bf16(value, 0);
    }
  for (unsigned t = 0; t < emulated::WARPGROUP; t++)
    for (int i = 0; i < wgmma.n / 2; i++) { /* tiles of 8 columns: (r; 2q) (r; 2q + 1) (r + 8; 2q) (r + 8; 2q + 1) */
      const int column = i / 4 * 8 + (int)(t % 4) * 2 + i % 2;
      double total = (double)wgmma.c[t][i];
      for (unsigned k = 0; k < 16; k++) {
        const unsigned holder = t / 4 * 4 + k % 8 / 2; /* the lane of the quad that has column k of a */
        total += (double)emulated_bf16(wgmma.a[holder][k / 8 * 2 + i / 2 % 2], k % 2) * (double)right[column][k];
      }
      wgmma.c[t][i] = (float)total;
    }
}

inline void wgmma_commit()
{
  emulated::Warpgroup &group = emulated::warpgroup();
  emulated::meet(group.meeting, emulated::WARPGROUP, emulated::current->number % emulated::WARPGROUP, nullptr,
                 [&](void **) {
                   group.groups.push_back(group.open);
                   group.open.clear();
                 });
}

template <int N> void wgmma_wait()
{
  emulated::Warpgroup &group = emulated::warpgroup();
  emulated::meet(group.meeting, emulated::WARPGROUP, emulated::current->number % emulated::WARPGROUP, nullptr,
                 [&](void **) {
                   for (; group.groups.size() > N; group.groups.pop_front())
                     for (const emulated::Wgmma &wgmma : group.groups.front())
                       emulated_multiply(wgmma);
                 });
}
