/* SPDX-License-Identifier: Apache-2.0
 * The fused layer's GEMM for many rows an expert, on sm_90a: bound by the tensor cores. Tiles of W are A of wgmma,
 * unpacked in registers, rows of A its B in shared memory. One warpgroup loads, two multiply; each of these unpacks one
 * half of its tiles while the other half is being multiplied. Blocks stay and take one piece after the other, so that the
 * next piece is being loaded while the last one is stored. */
#include "fused_gemm.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr uint32_t WARPGROUP = 128;
constexpr uint32_t WIDE_STAGES = SC_WIDE_STAGES, WIDE_ROW_BYTES = SC_TILE_COLUMNS * sizeof(bf16);
constexpr uint32_t WIDE_A_BYTES = SC_WIDE_ROWS * WIDE_ROW_BYTES;
constexpr uint32_t WIDE_STAGE_BYTES = WIDE_A_BYTES + SC_WIDE_TILES * SC_TILE_BYTES;
constexpr int WIDE_LAG = 2; /* steps whose copies are under way before the first of them is waited for */
constexpr uint32_t WIDE_TILES = SC_WIDE_TILES / 2; /* of a warpgroup */
constexpr uint32_t WIDE_OUT_FLOATS = SC_WIDE_OUT_BYTES / sizeof(float);
constexpr int WIDE_ROUND = WIDE_OUT_FLOATS / (WIDE_TILES * SC_TILE_ROWS); /* 64 rows */
static_assert(WIDE_STAGE_BYTES % 1024 == 0, "B's swizzle repeats every 1024 bytes");
static_assert(WIDE_STAGES * WIDE_STAGE_BYTES + 2 * SC_WIDE_OUT_BYTES + WIDE_STAGES * 16 == SC_WIDE_SHARED,
              "what the host asks for");

/* A ring of stages: `full` when a step's bytes are there, `empty` when it has been multiplied. */
struct WideRing {
  uint32_t stages, full, empty; /* addresses in shared memory */
  uint32_t stage, parity;
};

__device__ __forceinline__ WideRing wide_ring(const uint8_t *shared)
{
  const uint32_t stages = shared_address(shared),
                 barriers = stages + WIDE_STAGES * WIDE_STAGE_BYTES + 2 * SC_WIDE_OUT_BYTES;
  return {stages, barriers, barriers + WIDE_STAGES * 8, 0, 0};
}

/* `steps` stages before the present one. */
__device__ __forceinline__ uint32_t stage_before(const WideRing &ring, uint32_t steps)
{
  return ring.stage >= steps ? ring.stage - steps : ring.stage + WIDE_STAGES - steps;
}

__device__ __forceinline__ void next_stage(WideRing &ring)
{
  if (++ring.stage == WIDE_STAGES) {
    ring.stage = 0;
    ring.parity ^= 1;
  }
}

/* ---- the warpgroup that loads ---- */

/* When all but the last N steps' copies of this thread are done, the last of those stands `behind` stages back: for the
 * tensor cores to see, and for who waits to know. */
template <int N> __device__ __forceinline__ void wide_announce(const WideRing &ring, uint32_t behind)
{
  cp_async_wait<N>();
  fence_proxy_async();
  mbarrier_arrive(ring.full + stage_before(ring, behind) * 8);
}

template <bool UP>
__device__ __forceinline__ void wide_load(const sc_fused_gemm &p, const Piece &piece, uint32_t tile_columns,
                                          uint32_t k_tiles, WideRing &ring, uint32_t &steps)
{
  constexpr uint32_t PIECES = WIDE_ROW_BYTES / 16, PASS = WARPGROUP / PIECES, PASSES = SC_WIDE_ROWS / PASS;
  const uint32_t thread = threadIdx.x % WARPGROUP, part = thread % PIECES, first_row = thread / PIECES;
  const uint32_t rows = (uint32_t)piece.rows.rows, padded = (rows + 63) / 64 * 64;
  const bf16 *row[PASSES];
#pragma unroll
  for (uint32_t i = 0; i < PASSES; i++) {
    const uint32_t r = first_row + i * PASS;
    row[i] = r < rows ? row_of_a<UP>(p, (uint64_t)piece.block * SC_WIDE_ROWS + r) + part * 8 : nullptr;
  }
  const uint32_t row_tile = piece.column / tile_columns;
  const uint32_t tiles = min((uint32_t)SC_WIDE_TILES, p.n / tile_columns - row_tile);
  const uint8_t *w =
      thread < tiles ? tiles_of_w(p, (uint32_t)piece.rows.expert, row_tile + thread) : nullptr;
  for (uint32_t k_tile = 0; k_tile < k_tiles; k_tile++, steps++, next_stage(ring)) {
    const uint32_t stage = ring.stages + ring.stage * WIDE_STAGE_BYTES, full = ring.full + ring.stage * 8;
    mbarrier_wait(ring.empty + ring.stage * 8, ring.parity ^ 1);
    if (thread == 0)
      mbarrier_arrive_expect(full, tiles * SC_TILE_BYTES);
    if (w != nullptr)
      bulk_copy(stage + WIDE_A_BYTES + thread * SC_TILE_BYTES, w + (uint64_t)k_tile * SC_TILE_BYTES, SC_TILE_BYTES, full);
    const uint32_t column = k_tile * SC_TILE_COLUMNS;
    const bool inside = column + part * 8 < p.k;
#pragma unroll
    for (uint32_t i = 0; i < PASSES; i++) {
      const uint32_t r = first_row + i * PASS;
      const bool there = inside && row[i] != nullptr;
      if (r < padded)
        cp_async_16(stage + r * WIDE_ROW_BYTES + ((part ^ r % 8) * 16), there ? (const void *)(row[i] + column) : p.a, there);
    }
    cp_async_commit();
    if (steps >= WIDE_LAG)
      wide_announce<WIDE_LAG>(ring, WIDE_LAG);
  }
}

/* The last N steps. */
template <int N> __device__ __forceinline__ void wide_announce_rest(const WideRing &ring, uint32_t steps)
{
  if (steps >= N)
    wide_announce<N - 1>(ring, N);
  if constexpr (N > 1)
    wide_announce_rest<N - 1>(ring, steps);
}

/* ---- the warpgroups that multiply ---- */

/* Sums of ROWS rows of A: tiles 0 to 3 of the warpgroup, then 4 to 7, one of each a warp. */
template <int ROWS> struct WideSums {
  float half[2][ROWS / 2];
};

template <int ROWS>
__device__ __forceinline__ void wide_multiply(WideSums<ROWS> &sums, const uint8_t *shared, uint32_t k_tiles,
                                              WideRing &ring)
{
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP; /* 0 to 7 */
  const uint32_t first_tile = warp / 4 * WIDE_TILES + warp % 4;
  uint32_t a[2][4][4], before = 0;
  for (uint32_t k_tile = 0; k_tile < k_tiles; k_tile++) {
    const uint8_t *stage = shared + ring.stage * WIDE_STAGE_BYTES;
    mbarrier_wait(ring.full + ring.stage * 8, ring.parity);
    const uint64_t b = wgmma_rows_of_128(shared_address(stage));
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const TileWords tile = read_tile(stage + WIDE_A_BYTES + (first_tile + half * 4) * SC_TILE_BYTES, lane);
      wgmma_wait<1>(); /* the last use of a[half] has ended; with half 1, that of the stage before */
      if (half == 1 && k_tile > 0 && lane == 0)
        mbarrier_arrive(ring.empty + before * 8);
#pragma unroll
      for (int t = 0; t < 4; t++)
        unpack_tile(tile, t, a[half][t]);
      wgmma_fence();
#pragma unroll
      for (int t = 0; t < 4; t++)
        wgmma_m64k16<ROWS>(sums.half[half], a[half][t], b + 2 * t);
      wgmma_commit();
    }
    before = ring.stage;
    next_stage(ring);
  }
  wgmma_wait<0>();
  if (lane == 0)
    mbarrier_arrive(ring.empty + before * 8);
}

/* Where the sum of row `tile_row` of the warpgroup's tiles for row `row` of A stands: neither a quad's writes nor the reads
 * of 8 rows meet in a bank. */
__device__ __forceinline__ uint32_t wide_out(uint32_t row, uint32_t tile_row)
{
  return row * WIDE_TILES * SC_TILE_ROWS + (tile_row ^ (row / 2 % 4 * 8 + row % 2 * 4));
}

/* Out by way of shared memory, WIDE_ROUND rows at a time, 16 columns of a row a thread. */
template <int ROWS, bool UP>
__device__ __forceinline__ void wide_store(const sc_fused_gemm &p, const WideSums<ROWS> &sums, const Piece &piece,
                                           uint32_t tile_columns, float *out)
{
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP, group = warp / 4;
  const uint32_t parts = WIDE_TILES * tile_columns / 16, first_column = piece.column + group * parts * 16;
#pragma unroll
  for (int first = 0; first < ROWS; first += WIDE_ROUND) {
    constexpr int END = WIDE_ROUND < ROWS ? WIDE_ROUND : ROWS;
    barrier_sync(1 + group, WARPGROUP); /* what stands there has been read */
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int i = 0; i < END / 4; i++) {
        const int at = first / 4 + i; /* rows 8 (at / 2) + 2q + at % 2 */
        if (at >= ROWS / 4)
          continue;
        const uint32_t row = i / 2 * 8 + lane % 4 * 2 + i % 2, tile_row = (half * 4 + warp % 4) * SC_TILE_ROWS + lane / 4;
        out[wide_out(row, tile_row)] = sums.half[half][at / 2 * 4 + at % 2];
        out[wide_out(row, tile_row + 8)] = sums.half[half][at / 2 * 4 + 2 + at % 2];
      }
    barrier_sync(1 + group, WARPGROUP);
    for (uint32_t i = threadIdx.x % WARPGROUP; i < END * parts; i += WARPGROUP) {
      const uint32_t row = i % END, part = i / END, column = first_column + part * 16;
      if (first + row >= (uint32_t)piece.rows.rows || column >= p.n)
        continue;
      const uint32_t tile_row = part * (WIDE_TILES * SC_TILE_ROWS / parts);
      float value[16];
      finish<UP>(p, (uint32_t)piece.rows.expert, column,
                 [&](uint32_t c) { return *reinterpret_cast<const float4 *>(out + wide_out(row, tile_row + c)); }, value);
      store<UP>(p, value, (uint64_t)piece.block * SC_WIDE_ROWS + first + row, column);
    }
  }
}

template <int ROWS, bool UP>
__device__ __forceinline__ void wide_piece(const sc_fused_gemm &p, const Piece &piece, uint32_t tile_columns,
                                           uint32_t k_tiles, const uint8_t *shared, float *out, WideRing &ring)
{
  WideSums<ROWS> sums = {};
  wide_multiply<ROWS>(sums, shared, k_tiles, ring);
  wide_store<ROWS, UP>(p, sums, piece, tile_columns, out);
}

template <bool UP> __device__ __forceinline__ void wide_gemm(const sc_fused_gemm &p)
{
  SC_DYNAMIC_SHARED(fused_shared);
  const uint32_t tile_columns = tile_width(p, UP), width = SC_WIDE_TILES * tile_columns;
  const uint32_t column_blocks = (p.n + width - 1) / width, k_tiles = (p.k + SC_TILE_COLUMNS - 1) / SC_TILE_COLUMNS;
  const uint32_t pieces = (uint32_t)*p.block_count * column_blocks, group = threadIdx.x / WARPGROUP;
  WideRing ring = wide_ring(fused_shared);
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < WIDE_STAGES; i++) {
      mbarrier_init(ring.full + i * 8, WARPGROUP + 1); /* each loading thread, and the one that expects W */
      mbarrier_init(ring.empty + i * 8, 2 * WARPGROUP / SC_WARP);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  if (group == 2) {
    fewer_registers<56>();
    uint32_t steps = 0;
    for (uint32_t index = blockIdx.x; index < pieces; index += gridDim.x)
      wide_load<UP>(p, piece_of(p, index, column_blocks, width), tile_columns, k_tiles, ring, steps);
    wide_announce_rest<WIDE_LAG>(ring, steps);
  } else {
    more_registers<224>();
    float *out = reinterpret_cast<float *>(fused_shared + WIDE_STAGES * WIDE_STAGE_BYTES) + group * WIDE_OUT_FLOATS;
    for (uint32_t index = blockIdx.x; index < pieces; index += gridDim.x) {
      const Piece piece = piece_of(p, index, column_blocks, width);
      if (piece.rows.rows > 64)
        wide_piece<128, UP>(p, piece, tile_columns, k_tiles, fused_shared, out, ring);
      else
        wide_piece<64, UP>(p, piece, tile_columns, k_tiles, fused_shared, out, ring);
    }
  }
}

#else

/* Other targets have no wgmma; the host never launches these there. */
template <bool UP> __device__ __forceinline__ void wide_gemm(const sc_fused_gemm &) { __trap(); }

#endif

extern "C" __global__ void __launch_bounds__(SC_WIDE_THREADS, 1)
    sc_fused_up_wide(const __grid_constant__ sc_fused_gemm p)
{
  wide_gemm<true>(p);
}

extern "C" __global__ void __launch_bounds__(SC_WIDE_THREADS, 1)
    sc_fused_down_wide(const __grid_constant__ sc_fused_gemm p)
{
  wide_gemm<false>(p);
}
