/* SPDX-License-Identifier: Apache-2.0
 * The fused layer's GEMM for every target: tiles of W are A of the tensor cores' multiplication and rows of A its B, so
 * that 8 rows waste nothing. Both go through shared memory in a ring of asynchronous copies. sm_90a has its own,
 * fused_wgmma.cu. */
#include "fused_gemm.cuh"

#ifndef __CUDA_ARCH_FEAT_SM90_ALL

constexpr uint32_t MMA_WARPS = SC_MMA_THREADS / SC_WARP;

/* ROWS of A by TILES tiles of W. With fewer tiles than warps SHARERS warps share a tile's columns. */
template <int ROWS, int TILES> struct Mma {
  static constexpr uint32_t STEP_TILES = SC_MMA_STEP_TILES(ROWS), STEP = STEP_TILES * SC_TILE_COLUMNS; /* along k */
  static constexpr uint32_t SHARERS = MMA_WARPS / TILES, WARP_TILES = STEP_TILES / SHARERS;
  static constexpr uint32_t W_BYTES = STEP_TILES * TILES * SC_TILE_BYTES;
  static constexpr uint32_t ROW_BYTES = STEP * sizeof(bf16);
  static constexpr uint32_t STAGE_BYTES = W_BYTES + ROWS * ROW_BYTES;
  static constexpr int STAGES = SC_MMA_STAGES(ROWS);
  static_assert(STAGES * STAGE_BYTES == SC_MMA_SHARED(ROWS, TILES), "what the host asks for");
  static constexpr uint32_t ROW_TILES = ROWS / 8;
  float sum[ROW_TILES][4];
};

/* What a thread copies, and from where. */
template <int ROWS, int TILES> struct MmaSource {
  using M = Mma<ROWS, TILES>;
  static constexpr uint32_t PIECES = M::STEP / 8, COPIES = ROWS * PIECES / SC_MMA_THREADS;
  TileRow w;
  uint32_t tiles;          /* of W that there are */
  const bf16 *row[COPIES]; /* NULL: not in use */
  const void *any;         /* a valid address, where nothing is read */
  uint32_t k_tiles, k;
};

template <int ROWS, int TILES>
__device__ __forceinline__ void mma_load(const MmaSource<ROWS, TILES> &from, uint32_t step, uint32_t stage)
{
  using M = Mma<ROWS, TILES>;
  constexpr uint32_t TILE_PIECES = SC_TILE_BYTES / 16;
#pragma unroll
  for (uint32_t i = 0; i < M::W_BYTES / 16; i += SC_MMA_THREADS) {
    const uint32_t piece = i + threadIdx.x, k_tile = piece / (TILES * TILE_PIECES),
                   within = piece % (TILES * TILE_PIECES);
    if (k_tile < M::STEP_TILES && step * M::STEP_TILES + k_tile < from.k_tiles && within < from.tiles * TILE_PIECES)
      cp_async_16(stage + piece * 16,
                  from.w.first + (uint64_t)(step * M::STEP_TILES + k_tile) * from.w.stride + within * 16, true);
  }
  const uint32_t a = stage + M::W_BYTES;
#pragma unroll
  for (uint32_t i = 0; i < MmaSource<ROWS, TILES>::COPIES; i++) {
    const uint32_t at = i * SC_MMA_THREADS + threadIdx.x, row = at / MmaSource<ROWS, TILES>::PIECES,
                   piece = at % MmaSource<ROWS, TILES>::PIECES, column = step * M::STEP + piece * 8;
    const bool there = from.row[i] != nullptr && column < from.k;
    cp_async_16(a + row * M::ROW_BYTES + ((piece ^ row % 8) * 16),
                there ? (const void *)(from.row[i] + column) : from.any, there);
  }
}

template <int ROWS, int TILES>
__device__ __forceinline__ void mma_multiply(Mma<ROWS, TILES> &m, const uint8_t *stage, uint32_t step, uint32_t k_tiles)
{
  using M = Mma<ROWS, TILES>;
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP, share = warp / TILES * M::WARP_TILES;
  const uint32_t a = shared_address(stage + M::W_BYTES);
  const TilePlace place = tile_place(lane);
#pragma unroll
  for (uint32_t i = 0; i < M::WARP_TILES; i++) {
    if (step * M::STEP_TILES + share + i >= k_tiles)
      break;
    const TileWords tile = read_tile(stage + ((share + i) * TILES + warp % TILES) * SC_TILE_BYTES, place);
#pragma unroll
    for (int half = 0; half < 2; half++) { /* 32 columns: what one ldmatrix brings */
      uint32_t w[2][4];
      unpack_tile(tile, half, w);
#pragma unroll
      for (uint32_t t = 0; t < M::ROW_TILES; t++) {
        uint32_t b[4];
        const uint32_t row = t * 8 + lane % 8, piece = (share + i) * 8 + half * 4 + lane / 8;
        ldmatrix_x4(b, a + row * M::ROW_BYTES + ((piece ^ row % 8) * 16));
        mma_m16n8k16(m.sum[t], w[0], b[0], b[1]);
        mma_m16n8k16(m.sum[t], w[1], b[2], b[3]);
      }
    }
  }
}

/* The sums of warps that share a tile, added in the order of the warps into the first one's. */
template <int ROWS, int TILES> __device__ __forceinline__ void mma_add_shares(Mma<ROWS, TILES> &m, float *shared)
{
  using M = Mma<ROWS, TILES>;
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP;
  constexpr uint32_t SUMS = M::ROW_TILES * 4;
  if (warp >= TILES)
#pragma unroll
    for (uint32_t i = 0; i < SUMS; i++)
      shared[((warp - TILES) * SUMS + i) * SC_WARP + lane] = m.sum[i / 4][i % 4];
  __syncthreads();
  if (warp < TILES)
#pragma unroll
    for (uint32_t share = 1; share < M::SHARERS; share++)
#pragma unroll
      for (uint32_t i = 0; i < SUMS; i++)
        m.sum[i / 4][i % 4] += shared[(((share - 1) * TILES + warp) * SUMS + i) * SC_WARP + lane];
  __syncthreads();
}

/* Out by way of shared memory: 16 columns of a row a thread. */
template <int ROWS, int TILES, bool UP, bool GATED>
__device__ __forceinline__ void mma_store(const sc_fused_gemm &p, const Mma<ROWS, TILES> &m, const Piece &piece,
                                          float *shared)
{
  using M = Mma<ROWS, TILES>;
  constexpr uint32_t tile_columns = GATED ? 8 : 16, PITCH = TILES * SC_TILE_ROWS + 4; /* a quad's rows in other banks */
  constexpr uint32_t parts = TILES * tile_columns / 16;
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP;
  if (warp < TILES) {
    const Finish finish =
        finish_of(p, (uint32_t)piece.block.expert, piece.column + warp * tile_columns, tile_columns, lane);
#pragma unroll
    for (uint32_t t = 0; t < M::ROW_TILES; t++)
#pragma unroll
      for (uint32_t i = 0; i < 2; i++) {
        float *out = shared + (t * 8 + lane % 4 * 2 + i) * PITCH + warp * tile_columns + lane / 4;
        const float2 value = finish_two<UP, GATED>(p, finish, m.sum[t][i], m.sum[t][2 + i]);
        out[0] = value.x;
        if (!GATED)
          out[8] = value.y;
      }
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < ROWS * parts; i += SC_MMA_THREADS) {
    const uint32_t row = i / parts, part = i % parts, column = piece.column + part * 16;
    if (row >= (uint32_t)piece.block.rows || column >= p.n)
      continue;
    float value[16];
#pragma unroll
    for (uint32_t c = 0; c < 16; c += 4)
      *reinterpret_cast<float4 *>(value + c) = *reinterpret_cast<const float4 *>(shared + row * PITCH + part * 16 + c);
    store<UP>(p, value, (uint64_t)piece.index * ROWS + row, column);
  }
}

/* One block of rows by the columns of TILES tiles. */
template <int ROWS, int TILES, bool UP> __device__ __forceinline__ void mma_gemm(const sc_fused_gemm &p)
{
  using M = Mma<ROWS, TILES>;
  SC_DYNAMIC_SHARED(fused_shared);
  const uint32_t tile_columns = tile_width(p, UP), width = TILES * tile_columns;
  const uint32_t column_blocks = (p.n + width - 1) / width;
  if (blockIdx.x / column_blocks >= (uint32_t)*p.block_count)
    return;
  const Piece piece = piece_of(p, blockIdx.x, column_blocks, width);

  MmaSource<ROWS, TILES> from;
  const uint32_t row_tile = piece.column / tile_columns;
  from.any = p.a;
  from.k = p.k;
  from.k_tiles = (p.k + SC_TILE_COLUMNS - 1) / SC_TILE_COLUMNS;
  from.w = tiles_of_w(p, (uint32_t)piece.block.expert, row_tile);
  from.tiles = min((uint32_t)TILES, p.n / tile_columns - row_tile);
#pragma unroll
  for (uint32_t i = 0; i < from.COPIES; i++) {
    const uint32_t row = (i * SC_MMA_THREADS + threadIdx.x) / from.PIECES;
    from.row[i] = row < (uint32_t)piece.block.rows ? row_of_a<UP>(p, (uint64_t)piece.index * ROWS + row) : nullptr;
  }

  M m = {};
  const uint32_t steps = (from.k_tiles + M::STEP_TILES - 1) / M::STEP_TILES;
  const uint32_t ring = shared_address(fused_shared);
  for (uint32_t step = 0; step < M::STAGES - 1; step++) {
    if (step < steps)
      mma_load<ROWS, TILES>(from, step, ring + step * M::STAGE_BYTES);
    cp_async_commit();
  }
  for (uint32_t step = 0, stage = 0; step < steps; step++, stage = stage + 1 == M::STAGES ? 0 : stage + 1) {
    cp_async_wait<M::STAGES - 2>();
    __syncthreads();
    const uint32_t next = step + M::STAGES - 1, into = stage == 0 ? M::STAGES - 1 : stage - 1;
    if (next < steps)
      mma_load<ROWS, TILES>(from, next, ring + into * M::STAGE_BYTES);
    cp_async_commit();
    mma_multiply<ROWS, TILES>(m, fused_shared + stage * M::STAGE_BYTES, step, from.k_tiles);
  }
  cp_async_wait<0>();
  __syncthreads();
  float *shared = reinterpret_cast<float *>(fused_shared);
  if (M::SHARERS > 1)
    mma_add_shares<ROWS, TILES>(m, shared);
  if (UP && p.gated)
    mma_store<ROWS, TILES, UP, UP>(p, m, piece, shared);
  else
    mma_store<ROWS, TILES, UP, false>(p, m, piece, shared);
}

#define FUSED_THREADS(rows) SC_MMA_THREADS
#define FUSED_BLOCKS 2 /* of a multiprocessor */
#define FUSED_GEMM(rows, split, up) mma_gemm<rows, split ? SC_FUSED_SPLIT_TILES : SC_MMA_TILES, up>(p)

#endif
