/* SPDX-License-Identifier: Apache-2.0
 * The instructions that CUDA C has no name for: asynchronous copies, matrix operations, barriers in shared memory. One
 * function each, by the names of the PTX manual. Device code only. */
#pragma once

#include <cstdint>

/* An address in shared memory as instructions take it. */
__device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/* The block's dynamic shared memory, as bytes. */
#define SC_DYNAMIC_SHARED(name) extern __shared__ __align__(1024) uint8_t name[]

/* ---- every target ---- */

/* 16 bytes from global to shared memory; zeros when not `there`, and then `from` is not read. */
__device__ __forceinline__ void cp_async_16(uint32_t to, const void *from, bool there)
{
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Of `a` the bits of the mask, of `b` the others. */
__device__ __forceinline__ uint32_t select_bits(uint32_t mask, uint32_t a, uint32_t b)
{
  uint32_t out;
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(out) : "r"(mask), "r"(a), "r"(b));
  return out;
}

/* The same value, which the compiler keeps rather than computes again where it is used. */
__device__ __forceinline__ uint32_t keep(uint32_t value)
{
  asm volatile("mov.b32 %0, %0;" : "+r"(value));
  return value;
}

/* Nothing that reads the value moves before this. */
__device__ __forceinline__ void hold(float &value) { asm volatile("" : "+f"(value)); }

/* Until no more than N of this thread's groups are under way. */
template <int N> __device__ __forceinline__ void cp_async_wait()
{
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Four 8 x 8 matrices of 16-bit values: lane l gives the address of row l % 8 of matrix l / 8, and gets, of each matrix,
 * the pair of columns 2 (l % 4), 2 (l % 4) + 1 of row l / 4. */
__device__ __forceinline__ void ldmatrix_x4(uint32_t out[4], uint32_t row)
{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(row)
               : "memory");
}

/* c[16][8] += a[16][16] b[16][8]. Lane l, r = l / 4, q = l % 4: a = (r; 2q) (r + 8; 2q) (r; 2q + 8) (r + 8; 2q + 8),
 * b = (2q; r) (2q + 8; r), pairs along k; c = (r; 2q) (r; 2q + 1) (r + 8; 2q) (r + 8; 2q + 1). */
__device__ __forceinline__ void mma_m16n8k16(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* ---- sm_90a ---- */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t arrivals)
{
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* What initialised barriers need before other threads and the copy engine see them. */
__device__ __forceinline__ void mbarrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier)
{
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* One arrival, and `bytes` more to come by bulk copies. */
__device__ __forceinline__ void mbarrier_arrive_expect(uint32_t barrier, uint32_t bytes)
{
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* One arrival, when this thread's copies (cp_async_16) so far are done. */
__device__ __forceinline__ void cp_async_arrive(uint32_t barrier)
{
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

/* Until the phase of this parity has ended. */
__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity)
{
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

/* `bytes`, a multiple of 16, by the copy engine; they count as arrived on the barrier. */
__device__ __forceinline__ void bulk_copy(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

/* Between ordinary accesses to shared memory and those of the tensor cores and the copy engine. */
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* A barrier of `threads` threads of the block, numbered 1 to 15. */
__device__ __forceinline__ void barrier_sync(uint32_t number, uint32_t threads)
{
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

template <int REGISTERS> __device__ __forceinline__ void more_registers()
{
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> __device__ __forceinline__ void fewer_registers()
{
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmma_wait()
{
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/* Describes B as rows of n, 128 bytes (64 values along k) each, whose 16-byte pieces are swizzled: piece p of row n
 * stands at p ^ (n % 8). `to` is a multiple of 1024; a step of 16 along k is 2 more. */
__device__ __forceinline__ uint64_t wgmma_rows_of_128(uint32_t to)
{
  const uint64_t eight_rows = 1024 >> 4, swizzle_128 = 1;
  return (uint64_t)((to & 0x3ffff) >> 4) | (uint64_t)1 << 16 | eight_rows << 32 | swizzle_128 << 62;
}

/* c[64][N] += a[64][16] b[16][N], a in registers, b in shared memory. Warp w of the four has rows 16 w to 16 w + 15 of a
 * and c, laid out as in mma_m16n8k16, c as N / 8 such tiles. */
template <int N> __device__ __forceinline__ void wgmma_m64k16(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b);

template <> __device__ __forceinline__ void wgmma_m64k16<32>(float (&c)[16], const uint32_t (&a)[4], uint64_t b)
{
  asm volatile("{\n"
               ".reg .pred add;\n"
               "setp.eq.u32 add, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
               "{%16, %17, %18, %19}, %20, add, 1, 1, 0;\n"
               "}"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                 "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                 "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

template <> __device__ __forceinline__ void wgmma_m64k16<64>(float (&c)[32], const uint32_t (&a)[4], uint64_t b)
{
  asm volatile("{\n"
               ".reg .pred add;\n"
               "setp.eq.u32 add, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
               "{%32, %33, %34, %35}, %36, add, 1, 1, 0;\n"
               "}"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                 "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                 "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]),
                 "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
                 "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
                 "+f"(c[30]), "+f"(c[31])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

template <> __device__ __forceinline__ void wgmma_m64k16<128>(float (&c)[64], const uint32_t (&a)[4], uint64_t b)
{
  asm volatile("{\n"
               ".reg .pred add;\n"
               "setp.eq.u32 add, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
               "{%64, %65, %66, %67}, %68, add, 1, 1, 0;\n"
               "}"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                 "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                 "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]),
                 "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
                 "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
                 "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]),
                 "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]),
                 "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
                 "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]),
                 "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]),
                 "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#endif
