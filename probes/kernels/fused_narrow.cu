/* SPDX-License-Identifier: Apache-2.0
 * The fused layer's GEMM for few rows an expert, on every target: bound by the reading of W. Tiles of W are A of the tensor
 * cores' multiplication and rows of A its B, so that 8 rows waste nothing; both go through shared memory in a ring of
 * asynchronous copies, each warp's tiles for itself, the rows of A for all. */
#include "fused_gemm.cuh"

constexpr uint32_t NARROW_WARPS = SC_NARROW_THREADS / SC_WARP;

/* ROWS of A by TILES tiles of W. With fewer tiles than warps SHARERS warps share a tile's columns. */
template <int ROWS, int TILES> struct Narrow {
  static constexpr uint32_t STEP_TILES = SC_NARROW_STEP_TILES(ROWS), STEP = STEP_TILES * SC_TILE_COLUMNS; /* along k */
  static constexpr uint32_t SHARERS = NARROW_WARPS / TILES, WARP_TILES = STEP_TILES / SHARERS;
  static constexpr uint32_t W_BYTES = WARP_TILES * SC_TILE_BYTES; /* a warp's, a step */
  static constexpr uint32_t ROW_BYTES = STEP * sizeof(bf16);
  static constexpr uint32_t STAGE_BYTES = NARROW_WARPS * W_BYTES + ROWS * ROW_BYTES;
  static constexpr int STAGES = SC_NARROW_STAGES(ROWS);
  static_assert(STAGES * STAGE_BYTES == SC_NARROW_SHARED(ROWS, TILES), "what the host asks for");
  static constexpr uint32_t ROW_TILES = ROWS / 8;
  float sum[ROW_TILES][4];
};

/* What a thread copies, and from where. */
template <int ROWS, int TILES> struct NarrowSource {
  using N = Narrow<ROWS, TILES>;
  static constexpr uint32_t PIECES = N::STEP / 8, COPIES = ROWS * PIECES / SC_NARROW_THREADS;
  const uint8_t *w;   /* this warp's tiles; NULL: no such columns */
  const bf16 *row[COPIES]; /* NULL: not in use */
  const void *any; /* a valid address, where nothing is read */
  uint32_t k_tiles, k;
};

template <int ROWS, int TILES>
__device__ __forceinline__ void narrow_load(const NarrowSource<ROWS, TILES> &from, uint32_t step, uint32_t stage)
{
  using N = Narrow<ROWS, TILES>;
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP;
  const uint32_t tile = step * N::STEP_TILES + warp / TILES * N::WARP_TILES;
  const uint32_t tiles = from.w && tile < from.k_tiles ? min(N::WARP_TILES, from.k_tiles - tile) : 0;
#pragma unroll
  for (uint32_t i = 0; i < N::W_BYTES / 16; i += SC_WARP) {
    const uint32_t piece = i + lane;
    if (piece < tiles * (SC_TILE_BYTES / 16))
      cp_async_16(stage + warp * N::W_BYTES + piece * 16, from.w + (uint64_t)tile * SC_TILE_BYTES + piece * 16, true);
  }
  const uint32_t a = stage + NARROW_WARPS * N::W_BYTES;
#pragma unroll
  for (uint32_t i = 0; i < NarrowSource<ROWS, TILES>::COPIES; i++) {
    const uint32_t at = i * SC_NARROW_THREADS + threadIdx.x, row = at / NarrowSource<ROWS, TILES>::PIECES,
                   piece = at % NarrowSource<ROWS, TILES>::PIECES, column = step * N::STEP + piece * 8;
    const bool there = from.row[i] != nullptr && column < from.k;
    cp_async_16(a + row * N::ROW_BYTES + ((piece ^ row % 8) * 16), there ? (const void *)(from.row[i] + column) : from.any, there);
  }
}

template <int ROWS, int TILES>
__device__ __forceinline__ void narrow_multiply(Narrow<ROWS, TILES> &n, const uint8_t *stage, uint32_t step,
                                                uint32_t k_tiles)
{
  using N = Narrow<ROWS, TILES>;
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP, share = warp / TILES * N::WARP_TILES;
  const uint32_t a = shared_address(stage + NARROW_WARPS * N::W_BYTES);
#pragma unroll
  for (uint32_t i = 0; i < N::WARP_TILES; i++) {
    if (step * N::STEP_TILES + share + i >= k_tiles)
      break;
    const TileWords tile = read_tile(stage + warp * N::W_BYTES + i * SC_TILE_BYTES, lane);
#pragma unroll
    for (int pair = 0; pair < 2; pair++) { /* 32 columns: what one ldmatrix brings */
      uint32_t w[2][4];
      unpack_tile(tile, 2 * pair, w[0]);
      unpack_tile(tile, 2 * pair + 1, w[1]);
#pragma unroll
      for (uint32_t t = 0; t < N::ROW_TILES; t++) {
        uint32_t b[4];
        const uint32_t row = t * 8 + lane % 8, piece = (share + i) * 8 + pair * 4 + lane / 8;
        ldmatrix_x4(b, a + row * N::ROW_BYTES + ((piece ^ row % 8) * 16));
        mma_m16n8k16(n.sum[t], w[0], b[0], b[1]);
        mma_m16n8k16(n.sum[t], w[1], b[2], b[3]);
      }
    }
  }
}

/* The sums of warps that share a tile, added in the order of the warps into the first one's. */
template <int ROWS, int TILES> __device__ __forceinline__ void narrow_add_shares(Narrow<ROWS, TILES> &n, float *shared)
{
  using N = Narrow<ROWS, TILES>;
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP;
  constexpr uint32_t SUMS = N::ROW_TILES * 4;
  if (warp >= TILES)
#pragma unroll
    for (uint32_t i = 0; i < SUMS; i++)
      shared[((warp - TILES) * SUMS + i) * SC_WARP + lane] = n.sum[i / 4][i % 4];
  __syncthreads();
  if (warp < TILES)
#pragma unroll
    for (uint32_t share = 1; share < N::SHARERS; share++)
#pragma unroll
      for (uint32_t i = 0; i < SUMS; i++)
        n.sum[i / 4][i % 4] += shared[(((share - 1) * TILES + warp) * SUMS + i) * SC_WARP + lane];
  __syncthreads();
}

/* Out by way of shared memory: 16 columns of a row a thread. */
template <int ROWS, int TILES, bool UP>
__device__ __forceinline__ void narrow_store(const sc_fused_gemm &p, const Narrow<ROWS, TILES> &n, const Piece &piece,
                                             uint32_t width, float *shared)
{
  using N = Narrow<ROWS, TILES>;
  constexpr uint32_t PITCH = TILES * SC_TILE_ROWS + 4; /* a quad's rows in other banks */
  const uint32_t lane = threadIdx.x % SC_WARP, warp = threadIdx.x / SC_WARP;
  if (warp < TILES)
#pragma unroll
    for (uint32_t t = 0; t < N::ROW_TILES; t++)
#pragma unroll
      for (uint32_t i = 0; i < 2; i++) {
        float *out = shared + (t * 8 + lane % 4 * 2 + i) * PITCH + warp * SC_TILE_ROWS + lane / 4;
        out[0] = n.sum[t][i];
        out[8] = n.sum[t][2 + i];
      }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < ROWS * (width / 16); i += SC_NARROW_THREADS) {
    const uint32_t row = i / (width / 16), part = i % (width / 16), column = piece.column + part * 16;
    if (row >= (uint32_t)piece.rows.rows || column >= p.n)
      continue;
    const float *sums = shared + row * PITCH + part * (TILES * SC_TILE_ROWS / (width / 16));
    float value[16];
    finish<UP>(p, (uint32_t)piece.rows.expert, column,
               [&](uint32_t at) { return *reinterpret_cast<const float4 *>(sums + at); }, value);
    store<UP>(p, value, (uint64_t)piece.block * ROWS + row, column);
  }
}

/* One block of rows by the columns of TILES tiles. */
template <int ROWS, int TILES, bool UP> __device__ __forceinline__ void narrow_gemm(const sc_fused_gemm &p)
{
  using N = Narrow<ROWS, TILES>;
  SC_DYNAMIC_SHARED(fused_shared);
  const uint32_t warp = threadIdx.x / SC_WARP, tile_columns = tile_width(p, UP), width = TILES * tile_columns;
  const uint32_t column_blocks = (p.n + width - 1) / width;
  if (blockIdx.x / column_blocks >= (uint32_t)*p.block_count)
    return;
  const Piece piece = piece_of(p, blockIdx.x, column_blocks, width);

  NarrowSource<ROWS, TILES> from;
  const uint32_t row_tile = piece.column / tile_columns + warp % TILES;
  from.any = p.a;
  from.k = p.k;
  from.k_tiles = (p.k + SC_TILE_COLUMNS - 1) / SC_TILE_COLUMNS;
  from.w = row_tile * tile_columns < p.n ? tiles_of_w(p, (uint32_t)piece.rows.expert, row_tile) : nullptr;
#pragma unroll
  for (uint32_t i = 0; i < from.COPIES; i++) {
    const uint32_t row = (i * SC_NARROW_THREADS + threadIdx.x) / from.PIECES;
    from.row[i] =
        row < (uint32_t)piece.rows.rows ? row_of_a<UP>(p, (uint64_t)piece.block * ROWS + row) : nullptr;
  }

  N n = {};
  const uint32_t steps = (from.k_tiles + N::STEP_TILES - 1) / N::STEP_TILES;
  const uint32_t ring = shared_address(fused_shared);
  for (uint32_t step = 0; step < N::STAGES - 1; step++) {
    if (step < steps)
      narrow_load<ROWS, TILES>(from, step, ring + step * N::STAGE_BYTES);
    cp_async_commit();
  }
  for (uint32_t step = 0, stage = 0; step < steps; step++, stage = stage + 1 == N::STAGES ? 0 : stage + 1) {
    cp_async_wait<N::STAGES - 2>();
    __syncthreads();
    const uint32_t next = step + N::STAGES - 1, into = stage == 0 ? N::STAGES - 1 : stage - 1;
    if (next < steps)
      narrow_load<ROWS, TILES>(from, next, ring + into * N::STAGE_BYTES);
    cp_async_commit();
    narrow_multiply<ROWS, TILES>(n, fused_shared + stage * N::STAGE_BYTES, step, from.k_tiles);
  }
  cp_async_wait<0>();
  __syncthreads();
  float *shared = reinterpret_cast<float *>(fused_shared);
  if (N::SHARERS > 1)
    narrow_add_shares<ROWS, TILES>(n, shared);
  narrow_store<ROWS, TILES, UP>(p, n, piece, width, shared);
}

#define NARROW_KERNEL(name, rows, tiles, up)                                                                    \
  extern "C" __global__ void __launch_bounds__(SC_NARROW_THREADS, 2) name(const __grid_constant__ sc_fused_gemm p) \
  {                                                                                                             \
    narrow_gemm<rows, tiles, up>(p);                                                                            \
  }

NARROW_KERNEL(sc_fused_up_8_split, 8, SC_NARROW_SPLIT_TILES, true)
NARROW_KERNEL(sc_fused_up_8, 8, SC_NARROW_TILES, true)
NARROW_KERNEL(sc_fused_up_16, 16, SC_NARROW_TILES, true)
NARROW_KERNEL(sc_fused_up_32, 32, SC_NARROW_TILES, true)
NARROW_KERNEL(sc_fused_up_64, 64, SC_NARROW_TILES, true)
NARROW_KERNEL(sc_fused_down_8_split, 8, SC_NARROW_SPLIT_TILES, false)
NARROW_KERNEL(sc_fused_down_8, 8, SC_NARROW_TILES, false)
NARROW_KERNEL(sc_fused_down_16, 16, SC_NARROW_TILES, false)
NARROW_KERNEL(sc_fused_down_32, 32, SC_NARROW_TILES, false)
NARROW_KERNEL(sc_fused_down_64, 64, SC_NARROW_TILES, false)
