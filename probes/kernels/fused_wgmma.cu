/* SPDX-License-Identifier: Apache-2.0
 * The fused layer's GEMM for sm_90a. Tiles of W are A of the multiplication, unpacked in registers, rows of A its B in
 * shared memory. One warpgroup loads, the others multiply: by wgmma, so that each of their warps unpacks one tile while
 * the one before is being multiplied, or few rows by mma.sync. A block stays, one on each multiprocessor, and takes one
 * piece of the output after the other, so that the next piece is being loaded while the last one is stored. */
#include "fused_gemm.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr uint32_t WARPGROUP = 128;

/* ROWS of A by TILES tiles of W. SHARERS warpgroups share the columns of the same tiles, SETS have tiles of their own.
 * In a step a warp has UNITS tiles of W: of as many k tiles, or of one k tile two (HALVES). */
template <int ROWS, int TILES> struct Wgmma {
  static constexpr uint32_t GROUPS = SC_WGMMA_GROUPS(ROWS);
  static constexpr uint32_t STEP_TILES = SC_WGMMA_STEP_TILES(ROWS, TILES);
  static constexpr uint32_t HALVES = ROWS == 128 ? 2 : 1, SHARERS = TILES == SC_FUSED_SPLIT_TILES ? GROUPS : 1;
  static constexpr uint32_t SETS = GROUPS / SHARERS, UNITS = STEP_TILES * HALVES / SHARERS;
  static constexpr uint32_t SET_TILES = 4 * HALVES;
  static_assert(SETS * SET_TILES == TILES, "every tile has its warp");
  static constexpr uint32_t A_BYTES = ROWS * SC_TILE_COLUMNS * sizeof(bf16),
                            W_BYTES = TILES * SC_TILE_BYTES; /* a k tile */
  static constexpr uint32_t W_AT = STEP_TILES * A_BYTES, STAGE_BYTES = W_AT + STEP_TILES * W_BYTES;
  static constexpr uint32_t STAGES = SC_WGMMA_STAGES(ROWS, TILES);
  static constexpr uint32_t ROUND = SC_WGMMA_ROUND(ROWS), PITCH = SET_TILES * SC_TILE_ROWS, OUT_FLOATS = ROUND * PITCH;
  static constexpr uint32_t OUT_AT = STAGES * STAGE_BYTES, BARRIERS_AT = OUT_AT + GROUPS * OUT_FLOATS * sizeof(float);
  static_assert(BARRIERS_AT + STAGES * 16 == SC_WGMMA_SHARED(ROWS, TILES), "what the host asks for");
};

/* A ring of stages: `full` when a step's bytes are there, `empty` when it has been multiplied. */
template <class W> struct WgmmaRing {
  uint32_t stages, full, empty; /* addresses in shared memory */
  uint32_t stage, parity;
};

template <class W> __device__ __forceinline__ void next_stage(WgmmaRing<W> &ring)
{
  if (++ring.stage == W::STAGES) {
    ring.stage = 0;
    ring.parity ^= 1;
  }
}

/* ---- the warpgroup that loads ---- */

template <int ROWS, int TILES, bool UP>
__device__ __forceinline__ void wgmma_load(const sc_fused_gemm &p, const Piece &piece, uint32_t tile_columns,
                                           uint32_t k_tiles, WgmmaRing<Wgmma<ROWS, TILES>> &ring)
{
  using W = Wgmma<ROWS, TILES>;
  /* A thread copies one piece of 16 bytes of every 16th row; rows of a step's k tiles follow each other. */
  constexpr uint32_t PIECES = SC_TILE_COLUMNS / 8, PASS = WARPGROUP / PIECES, PASSES = W::STEP_TILES * ROWS / PASS;
  constexpr uint32_t GROUPS = (TILES + SC_TILE_GROUP - 1) / SC_TILE_GROUP, COPIES = W::STEP_TILES * GROUPS;
  const uint32_t thread = threadIdx.x % WARPGROUP, part = thread % PIECES, first_row = thread / PIECES;
  const uint32_t rows = (uint32_t)piece.block.rows, padded = ROWS == 128 && rows <= 64 ? 64 : W::STEP_TILES * ROWS;
  const bf16 *from[PASSES];
  uint32_t in_use = 0; /* bit i: pass i's row. Others are zeros, and so is what is behind K: what stands in W's place
                          then does not matter */
#pragma unroll
  for (uint32_t i = 0; i < PASSES; i++) {
    const uint32_t at = first_row + i * PASS, r = at % ROWS;
    in_use |= (uint32_t)(r < rows) << i;
    from[i] = (r < rows ? row_of_a<UP>(p, (uint64_t)piece.index * ROWS + r) : static_cast<const bf16 *>(p.a)) +
              at / ROWS * SC_TILE_COLUMNS + part * 8;
  }
  const uint32_t to = first_row * (SC_TILE_COLUMNS * sizeof(bf16)) + ((part ^ first_row % 8) * 16);
  const uint32_t row_tile = piece.column / tile_columns, tiles = min((uint32_t)TILES, p.n / tile_columns - row_tile);
  /* This thread's copy of W: of k tile `k_part` of a step, group `group`. Four warps share the copies. */
  const uint32_t copy = thread % SC_WARP * 4 + thread / SC_WARP, group = copy % GROUPS * SC_TILE_GROUP,
                 k_part = copy / GROUPS;
  const bool copies = copy < COPIES && group < tiles;
  const TileRow w = tiles_of_w(p, (uint32_t)piece.block.expert, copies ? row_tile + group : row_tile);
  const uint32_t w_bytes = min((uint32_t)SC_TILE_GROUP, tiles - (copies ? group : 0)) * SC_TILE_BYTES;
  const uint32_t w_to = W::W_AT + k_part * W::W_BYTES + group * SC_TILE_BYTES;
  for (uint32_t k_tile = 0; k_tile < k_tiles; k_tile += W::STEP_TILES, next_stage(ring)) {
    const uint32_t stage = ring.stages + ring.stage * W::STAGE_BYTES, full = ring.full + ring.stage * 8;
    mbarrier_wait(ring.empty + ring.stage * 8, ring.parity ^ 1);
    if (thread == 0)
      mbarrier_arrive_expect(full, min(W::STEP_TILES, k_tiles - k_tile) * tiles * SC_TILE_BYTES);
    if (copies && k_tile + k_part < k_tiles)
      bulk_copy(stage + w_to, w.first + (uint64_t)(k_tile + k_part) * w.stride, w_bytes, full);
#pragma unroll
    for (uint32_t i = 0; i < PASSES; i++) {
      const uint32_t column = (k_tile + (first_row + i * PASS) / ROWS) * SC_TILE_COLUMNS + part * 8;
      if (i * PASS < padded)
        cp_async_16(stage + to + i * PASS * (SC_TILE_COLUMNS * sizeof(bf16)), from[i],
                    column < p.k && (in_use >> i & 1) != 0);
      from[i] += W::STEP_TILES * SC_TILE_COLUMNS;
    }
    cp_async_arrive(full);
  }
}

/* ---- the warpgroups that multiply ---- */

/* Sums of N rows of A: of the warp's tile, or of its two. */
template <class W, int N> struct WgmmaSums {
  float half[W::HALVES][N / 2];
};

/* Where a lane finds its part of its warp's first tile of a stage. */
template <class W> __device__ __forceinline__ TilePlace place_in_stage(uint32_t lane, uint32_t share)
{
  const uint32_t warp = threadIdx.x / SC_WARP, tile = warp / 4 % W::SETS * W::SET_TILES + warp % 4;
  const uint32_t at = W::W_AT + share * W::W_BYTES + tile * SC_TILE_BYTES;
  const TilePlace in_tile = tile_place(lane);
  return {keep(in_tile.codes + at), keep(in_tile.scales + at)};
}

/* Up to this many rows by mma.sync: wgmma's descriptors and waits are more work than it saves. */
constexpr int WGMMA_MMA_ROWS = 16;

template <class W, int N>
__device__ __forceinline__ void wgmma_multiply_few(WgmmaSums<W, N> &sums, const uint8_t *shared, uint32_t k_tiles,
                                                   WgmmaRing<W> &ring)
{
  static_assert(W::HALVES == 1, "one tile of W at a time");
  constexpr uint32_t ROW_BYTES = SC_TILE_COLUMNS * sizeof(bf16);
  const uint32_t lane = keep(threadIdx.x % SC_WARP);
  const uint32_t share = W::SHARERS == 1 ? 0 : threadIdx.x / WARPGROUP / W::SETS * W::UNITS;
  const TilePlace place = place_in_stage<W>(lane, share);
  const uint32_t row = ring.stages + share * W::A_BYTES + lane % 8 * ROW_BYTES;
  const uint32_t b_at[2] = {keep(row + ((lane / 8) ^ lane % 8) * 16), keep(row + ((4 + lane / 8) ^ lane % 8) * 16)};
  for (uint32_t k_tile = 0; k_tile < k_tiles; k_tile += W::STEP_TILES) {
    const uint8_t *stage = shared + ring.stage * W::STAGE_BYTES;
    mbarrier_wait(ring.full + ring.stage * 8, ring.parity);
#pragma unroll
    for (uint32_t i = 0; i < W::UNITS; i++) {
      const TileWords tile = read_tile(stage + i * W::W_BYTES, place);
#pragma unroll
      for (int half = 0; half < 2; half++) { /* 32 columns: what one ldmatrix brings */
        uint32_t a[2][4];
        unpack_tile(tile, half, a);
#pragma unroll
        for (uint32_t t = 0; t < N / 8; t++) {
          uint32_t b[4];
          ldmatrix_x4(b, b_at[half] + ring.stage * W::STAGE_BYTES + i * W::A_BYTES + t * 8 * ROW_BYTES);
          float(&sum)[4] = *reinterpret_cast<float(*)[4]>(&sums.half[0][t * 4]);
          mma_m16n8k16(sum, a[0], b[0], b[1]);
          mma_m16n8k16(sum, a[1], b[2], b[3]);
        }
      }
    }
    __syncwarp();
    if (lane == 0)
      mbarrier_arrive(ring.empty + ring.stage * 8);
    next_stage(ring);
  }
}

template <class W, int N>
__device__ __forceinline__ void wgmma_multiply(WgmmaSums<W, N> &sums, const uint8_t *shared, uint32_t k_tiles,
                                               WgmmaRing<W> &ring)
{
  static_assert(W::SHARERS == 1 && W::UNITS % 2 == 0, "registers of units take turns");
  static_assert(W::STAGE_BYTES % 1024 == 0 && W::A_BYTES % 1024 == 0, "B's swizzle repeats every 1024 bytes");
  const uint32_t lane = keep(threadIdx.x % SC_WARP);
  const TilePlace place = place_in_stage<W>(lane, 0);
  uint32_t a[2][4][4], before = 0;
  for (uint32_t k_tile = 0; k_tile < k_tiles; k_tile += W::STEP_TILES) {
    const uint8_t *stage = shared + ring.stage * W::STAGE_BYTES;
    mbarrier_wait(ring.full + ring.stage * 8, ring.parity);
    fence_proxy_async(); /* A came by copies that are ordinary writes */
#pragma unroll
    for (uint32_t i = 0; i < W::UNITS; i++) {
      const uint32_t k = W::HALVES == 2 ? 0 : i, half = W::HALVES == 2 ? i : 0;
      const TileWords tile = read_tile(stage + k * W::W_BYTES + half * 4 * SC_TILE_BYTES, place);
      const uint64_t b = wgmma_rows_of_128(shared_address(stage) + k * W::A_BYTES);
      wgmma_wait<1>(); /* the last use of a[i % 2] has ended; with i 1, that of the stage before */
      if (i == 1 && k_tile > 0 && lane == 0)
        mbarrier_arrive(ring.empty + before * 8);
      unpack_tile(tile, 0, &a[i % 2][0]);
      unpack_tile(tile, 1, &a[i % 2][2]);
      wgmma_fence();
#pragma unroll
      for (int t = 0; t < 4; t++)
        wgmma_m64k16<N>(sums.half[half], a[i % 2][t], b + 2 * t);
      wgmma_commit();
    }
    before = ring.stage;
    next_stage(ring);
  }
  wgmma_wait<0>();
#pragma unroll
  for (uint32_t half = 0; half < W::HALVES; half++)
#pragma unroll
    for (int i = 0; i < N / 2; i++)
      hold(sums.half[half][i]);
  if (lane == 0)
    mbarrier_arrive(ring.empty + before * 8);
}

/* Where column `column` of a warpgroup's for row `row` of A stands: neither a quad's writes nor the reads of 8 rows
 * meet in a bank. */
template <class W> __device__ __forceinline__ uint32_t wgmma_out(uint32_t row, uint32_t column)
{
  return row * W::PITCH + (column ^ (row / 2 % 4 * 8 + row % 2 * 4));
}

/* What sharers have summed is added in their order; the first of them has it then. */
template <class W, int N> __device__ __forceinline__ void wgmma_add_shares(WgmmaSums<W, N> &sums, float *outs)
{
  static_assert(W::HALVES == 1 && N / 2 * WARPGROUP <= W::OUT_FLOATS, "room for a warpgroup's sums");
  const uint32_t group = threadIdx.x / WARPGROUP, set = group % W::SETS, thread = threadIdx.x % WARPGROUP;
  barrier_sync(1 + set, W::SHARERS * WARPGROUP); /* what stands there has been read */
  if (group >= W::SETS)
#pragma unroll
    for (int i = 0; i < N / 2; i++)
      outs[group * W::OUT_FLOATS + i * WARPGROUP + thread] = sums.half[0][i];
  barrier_sync(1 + set, W::SHARERS * WARPGROUP);
  if (group < W::SETS)
#pragma unroll
    for (uint32_t sharer = 1; sharer < W::SHARERS; sharer++)
#pragma unroll
      for (int i = 0; i < N / 2; i++)
        sums.half[0][i] += outs[(sharer * W::SETS + set) * W::OUT_FLOATS + i * WARPGROUP + thread];
}

/* Out by way of shared memory, ROUND rows at a time, 16 columns of a row a thread. */
template <class W, int N, bool UP, bool GATED>
__device__ __forceinline__ void wgmma_store(const sc_fused_gemm &p, const WgmmaSums<W, N> &sums, const Piece &piece,
                                            uint64_t first_row, float *out)
{
  constexpr int END = (int)W::ROUND < N ? (int)W::ROUND : N;
  constexpr uint32_t tile_columns = GATED ? 8 : 16, parts = W::SET_TILES * tile_columns / 16;
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP, set = warp / 4;
  const uint32_t first_column = piece.column + set * parts * 16;
  Finish finish[W::HALVES];
#pragma unroll
  for (int half = 0; half < (int)W::HALVES; half++)
    finish[half] = finish_of(p, (uint32_t)piece.block.expert, first_column + (half * 4 + warp % 4) * tile_columns,
                             tile_columns, lane);
#pragma unroll
  for (int first = 0; first < N; first += END) {
    barrier_sync(8 + set, WARPGROUP); /* what stands there has been read */
#pragma unroll
    for (int half = 0; half < (int)W::HALVES; half++)
#pragma unroll
      for (int i = 0; i < END / 4; i++) {
        const int at = first / 4 + i; /* rows 8 (at / 2) + 2q + at % 2 */
        const uint32_t row = i / 2 * 8 + lane % 4 * 2 + i % 2, column = (half * 4 + warp % 4) * tile_columns + lane / 4;
        const float2 value = finish_two<UP, GATED>(p, finish[half], sums.half[half][at / 2 * 4 + at % 2],
                                                   sums.half[half][at / 2 * 4 + 2 + at % 2]);
        out[wgmma_out<W>(row, column)] = value.x;
        if (!GATED)
          out[wgmma_out<W>(row, column + 8)] = value.y;
      }
    barrier_sync(8 + set, WARPGROUP);
    for (uint32_t i = threadIdx.x % WARPGROUP; i < END * parts; i += WARPGROUP) {
      const uint32_t row = i % END, part = i / END, column = first_column + part * 16;
      if (first + row >= (uint32_t)piece.block.rows || column >= p.n)
        continue;
      float value[16];
#pragma unroll
      for (uint32_t c = 0; c < 16; c += 4)
        *reinterpret_cast<float4 *>(value + c) =
            *reinterpret_cast<const float4 *>(out + wgmma_out<W>(row, part * 16 + c));
      store<UP>(p, value, first_row + first + row, column);
    }
  }
}

template <class W, int N, bool UP>
__device__ __forceinline__ void wgmma_piece(const sc_fused_gemm &p, const Piece &piece, uint64_t first_row,
                                            uint32_t k_tiles, const uint8_t *shared, float *outs, WgmmaRing<W> &ring)
{
  WgmmaSums<W, N> sums = {};
  if constexpr (N <= WGMMA_MMA_ROWS)
    wgmma_multiply_few<W, N>(sums, shared, k_tiles, ring);
  else
    wgmma_multiply<W, N>(sums, shared, k_tiles, ring);
  if constexpr (W::SHARERS > 1)
    wgmma_add_shares<W, N>(sums, outs);
  const uint32_t group = threadIdx.x / WARPGROUP;
  if (group >= W::SETS)
    return;
  if (UP && p.gated)
    wgmma_store<W, N, UP, UP>(p, sums, piece, first_row, outs + group * W::OUT_FLOATS);
  else
    wgmma_store<W, N, UP, false>(p, sums, piece, first_row, outs + group * W::OUT_FLOATS);
}

template <int ROWS, int TILES, bool UP> __device__ __forceinline__ void wgmma_gemm(const sc_fused_gemm &p)
{
  using W = Wgmma<ROWS, TILES>;
  SC_DYNAMIC_SHARED(fused_shared);
  const uint32_t tile_columns = tile_width(p, UP), width = TILES * tile_columns;
  const uint32_t column_blocks = (p.n + width - 1) / width, k_tiles = (p.k + SC_TILE_COLUMNS - 1) / SC_TILE_COLUMNS;
  const uint32_t pieces = (uint32_t)*p.block_count * column_blocks;
  const uint32_t barriers = shared_address(fused_shared) + W::BARRIERS_AT;
  WgmmaRing<W> ring = {shared_address(fused_shared), barriers, barriers + W::STAGES * 8, 0, 0};
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < W::STAGES; i++) {
      mbarrier_init(ring.full + i * 8, WARPGROUP + 1); /* each loading thread, and the one that expects W */
      mbarrier_init(ring.empty + i * 8, W::GROUPS * WARPGROUP / SC_WARP);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x >= W::GROUPS * WARPGROUP) {
    if constexpr (ROWS == 128)
      fewer_registers<56>();
    for (uint32_t index = blockIdx.x; index < pieces; index += gridDim.x)
      wgmma_load<ROWS, TILES, UP>(p, piece_of(p, index, column_blocks, width), tile_columns, k_tiles, ring);
  } else {
    if constexpr (ROWS == 128)
      more_registers<224>();
    float *outs = reinterpret_cast<float *>(fused_shared + W::OUT_AT);
    for (uint32_t index = blockIdx.x; index < pieces; index += gridDim.x) {
      const Piece piece = piece_of(p, index, column_blocks, width);
      const uint64_t first_row = (uint64_t)piece.index * ROWS;
      if (ROWS == 128 && piece.block.rows <= 64)
        wgmma_piece<W, ROWS == 128 ? 64 : ROWS, UP>(p, piece, first_row, k_tiles, fused_shared, outs, ring);
      else
        wgmma_piece<W, ROWS, UP>(p, piece, first_row, k_tiles, fused_shared, outs, ring);
    }
  }
}

#define FUSED_THREADS(rows) SC_WGMMA_THREADS(rows)
#define FUSED_BLOCKS 1 /* of a multiprocessor */
#define FUSED_GEMM(rows, split, up) wgmma_gemm<rows, split ? SC_FUSED_SPLIT_TILES : SC_WGMMA_TILES, up>(p)

#endif
