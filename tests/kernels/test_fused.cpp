/* SPDX-License-Identifier: Apache-2.0
 * The fused layer's own kernels on the emulated block, against their twins: tiles and blocks of rows bit for bit, the
 * GEMMs as far as another order of sums goes. Every kind of block, shapes with ragged edges, padding poisoned. */
#include "emulated.h"

#include <sys/mman.h>

#include "fused.cu"

#define static /* of array parameters, which C++ does not know */
extern "C" {
#include "reference/fused.h"
}
#undef static

namespace
{

uint64_t state = 1;
int failures;

uint32_t random_bits()
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 32);
}

float random_value() { return (float)random_bits() * 0x1p-31f - 1.0f; }

struct Case {
  int rows; /* of a block */
  bool split, up, gated, fp32, round_trip;
  uint32_t k, n, experts, tokens, top_k;
};

/* An array that ends where a page begins that nobody may touch. */
template <typename T> class Guarded
{
public:
  Guarded() = default;
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;
  ~Guarded()
  {
    if (pages != nullptr)
      munmap(pages, bytes + PAGE);
  }
  void resize(size_t new_count)
  {
    count = new_count;
    const size_t used = (count * sizeof(T) + 15) / 16 * 16;
    bytes = (used + PAGE - 1) / PAGE * PAGE;
    pages =
        static_cast<char *>(mmap(nullptr, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages == MAP_FAILED || mprotect(pages + bytes, PAGE, PROT_NONE) != 0)
      emulated::give_up("no memory");
    first = reinterpret_cast<T *>(pages + bytes - used);
  }
  T *data() { return first; }
  T *begin() { return first; }
  T *end() { return first + count; }
  T &operator[](size_t i) { return first[i]; }

private:
  static constexpr size_t PAGE = 4096;
  char *pages = nullptr;
  T *first = nullptr;
  size_t bytes = 0, count = 0;
};

/* One GEMM's operands. */
struct Operands {
  Guarded<uint8_t> tiles;
  Guarded<int32_t> slots;
  Guarded<sc_fused_block> blocks;
  int32_t block_count;
  Guarded<uint16_t> a;
  Guarded<float> alpha, bias;
  float global;
  sc_fused_gemm arguments;
};

/* Random codes; scales of every kind, 0 and subnormal ones among them. Returns whether the kernel's tiles are the
 * twin's. */
bool make_tiles(const Case &c, Operands &o, uint32_t w_rows)
{
  const size_t codes_bytes = (size_t)w_rows * c.k / 2, scales_bytes = nvfp4_swizzled_bytes(w_rows, c.k / 16),
               bytes = sc_ref_fp4_tiled_bytes(w_rows, c.k);
  const bool gated = c.up && c.gated;
  std::vector<uint8_t> codes(codes_bytes), scales(scales_bytes), expected(bytes);
  bool same = true;
  o.tiles.resize(c.experts * bytes);
  std::fill(o.tiles.begin(), o.tiles.end(), 0xee);
  for (uint32_t e = 0; e < c.experts; e++) {
    for (uint8_t &byte : codes)
      byte = (uint8_t)random_bits();
    for (uint8_t &scale : scales) {
      const uint32_t kind = random_bits() % 20;
      scale = (uint8_t)(kind == 0   ? 0
                        : kind < 4  ? 1 + random_bits() % 7
                        : kind == 4 ? 0x7e
                                    : 0x28 + random_bits() % 24);
    }
    emulate(3, SC_BLOCK, 0, e,
            [&] { sc_fp4_tile(codes.data(), scales.data(), &o.tiles[e * bytes], w_rows, c.k, gated); });
    sc_ref_fp4_tile(codes.data(), scales.data(), expected.data(), w_rows, c.k, gated);
    same = same && memcmp(expected.data(), &o.tiles[e * bytes], bytes) == 0;
  }
  return same;
}

/* A third of the tokens choose the first experts, so that some experts have several blocks. */
bool make_rows(const Case &c, Operands &o)
{
  const uint64_t choices = (uint64_t)c.tokens * c.top_k, rows = choices + (uint64_t)c.experts * (c.rows - 1);
  std::vector<int32_t> chosen(choices), inverse(choices, -1), slots(rows, -1), expected_inverse(choices, -1);
  std::vector<sc_fused_block> blocks(rows / c.rows + 1);
  int32_t count = -1;
  for (uint32_t t = 0; t < c.tokens; t++) {
    const uint32_t first = random_bits() % 3 == 0 ? 0 : random_bits() % c.experts;
    for (uint32_t j = 0; j < c.top_k; j++)
      chosen[t * c.top_k + j] = (int32_t)((first + j) % c.experts);
  }
  memset(blocks.data(), 0xff, blocks.size() * sizeof blocks[0]);
  o.slots.resize(slots.size());
  std::copy(slots.begin(), slots.end(), o.slots.begin());
  o.blocks.resize(blocks.size());
  std::copy(blocks.begin(), blocks.end(), o.blocks.begin());
  emulate(c.experts, SC_FUSED_ALIGN_THREADS, 0, 1, [&] {
    sc_fused_align(chosen.data(), o.slots.data(), inverse.data(), o.blocks.data(), &o.block_count, choices, c.experts,
                   (uint32_t)c.rows);
  });
  sc_ref_fused_align(chosen.data(), slots.data(), expected_inverse.data(), blocks.data(), &count, choices, c.experts,
                     (uint32_t)c.rows);
  return count == o.block_count && std::equal(slots.begin(), slots.end(), o.slots.begin()) &&
         inverse == expected_inverse && memcmp(blocks.data(), o.blocks.data(), blocks.size() * sizeof blocks[0]) == 0;
}

uint16_t to_bf16(float value) { return emulated_bits<uint16_t>(__float2bfloat16_rn(value)); }

void make_rest(const Case &c, Operands &o, uint32_t w_rows)
{
  const uint64_t padded = (uint64_t)o.block_count * c.rows;
  o.a.resize((c.up ? c.tokens : padded) * c.k);
  for (uint16_t &value : o.a)
    value = to_bf16(random_value());
  for (int32_t b = 0; !c.up && b < o.block_count; b++) /* rows that are not in use are NaN */
    for (int r = o.blocks[b].rows; r < c.rows; r++)
      memset(&o.a[((uint64_t)b * c.rows + r) * c.k], 0xff, c.k * 2);
  o.alpha.resize(c.experts);
  o.bias.resize((size_t)c.experts * w_rows);
  for (float &value : o.alpha)
    value = 0.01f + 0.005f * random_value();
  for (float &value : o.bias)
    value = random_value();
  o.global = 200.0f;
  o.arguments = {};
  o.arguments.a = o.a.data();
  o.arguments.slot_choice = o.slots.data();
  o.arguments.blocks = o.blocks.data();
  o.arguments.block_count = &o.block_count;
  o.arguments.w = o.tiles.data();
  o.arguments.alpha = o.alpha.data();
  o.arguments.bias = random_bits() % 4 ? o.bias.data() : nullptr;
  o.arguments.out_global = c.round_trip ? &o.global : nullptr;
  o.arguments.k = c.k;
  o.arguments.n = c.n;
  o.arguments.w_rows = w_rows;
  o.arguments.top_k = c.top_k;
  o.arguments.gated = c.gated;
  o.arguments.out_bf16 = !c.fp32;
  o.arguments.act_alpha = 1.702f;
  o.arguments.act_beta = 1.0f;
  o.arguments.act_limit = 3.0f;
}

void (*kernel_of(const Case &c))(sc_fused_gemm)
{
  switch (c.rows) {
  case 8: return c.split ? c.up ? sc_fused_up_8_split : sc_fused_down_8_split : c.up ? sc_fused_up_8 : sc_fused_down_8;
  case 16: return c.up ? sc_fused_up_16 : sc_fused_down_16;
  case 32: return c.up ? sc_fused_up_32 : sc_fused_down_32;
  case 64: return c.up ? sc_fused_up_64 : sc_fused_down_64;
  default: return c.up ? sc_fused_up_128 : sc_fused_down_128;
  }
}

#ifdef SC_EMULATE_SM_90A
constexpr bool STAYS = true; /* blocks take one piece after the other */
constexpr uint32_t TILES = SC_WGMMA_TILES;
constexpr int MOST_ROWS = SC_WGMMA_MOST_ROWS;
#define THREADS(rows) SC_WGMMA_THREADS(rows)
#define SHARED(rows, tiles) SC_WGMMA_SHARED(rows, tiles)
#else
constexpr bool STAYS = false;
constexpr uint32_t TILES = SC_MMA_TILES;
constexpr int MOST_ROWS = 64;
#define THREADS(rows) SC_MMA_THREADS
#define SHARED(rows, tiles) SC_MMA_SHARED(rows, tiles)
#endif

std::vector<uint8_t> run_kernel(const Case &c, Operands &o)
{
  const uint32_t tiles = c.split ? (uint32_t)SC_FUSED_SPLIT_TILES : TILES, width = tiles * (c.up && c.gated ? 8 : 16),
                 column_blocks = (c.n + width - 1) / width;
  std::vector<uint8_t> out((size_t)o.block_count * c.rows * c.n * 4, 0xff);
  sc_fused_gemm arguments = o.arguments;
  arguments.out = out.data();
  emulate(STAYS ? 3 : ((uint32_t)o.block_count + 2) * column_blocks, THREADS(c.rows), (size_t)SHARED(c.rows, tiles),
          random_bits(), [&] { kernel_of(c)(arguments); });
  return out;
}

std::vector<uint8_t> run_twin(const Case &c, Operands &o)
{
  std::vector<uint8_t> out((size_t)o.block_count * c.rows * c.n * 4, 0xff);
  sc_fused_gemm arguments = o.arguments;
  arguments.out = out.data();
  if (!sc_ref_fused_gemm(&arguments, (uint32_t)c.rows, c.up))
    emulated::give_up("no memory");
  return out;
}

void test(const Case &c)
{
  Operands o;
  const uint32_t w_rows = c.up && c.gated ? 2 * c.n : c.n;
  const bool tiled = make_tiles(c, o, w_rows), aligned = make_rows(c, o);
  make_rest(c, o, w_rows);
  const std::vector<uint8_t> out = run_kernel(c, o), expected = run_twin(c, o);
  const enum sc_dtype type = c.up || !c.fp32 ? SC_BF16 : SC_F32;
  const size_t count = (size_t)o.block_count * c.rows * c.n;
  double worst = 0, largest = 0;
  size_t written = 0, wrong_place = 0, beyond = 0;
  for (size_t i = 0; i < count; i++) {
    const double want = (double)sc_ref_load(type, expected.data(), i);
    largest = std::isnan(want) ? largest : std::max(largest, fabs(want));
  }
  for (size_t i = 0; i < count; i++) {
    const double got = (double)sc_ref_load(type, out.data(), i), want = (double)sc_ref_load(type, expected.data(), i);
    wrong_place += std::isnan(got) != std::isnan(want);
    if (std::isnan(want))
      continue;
    /* What another order of sums may make, and where that is stored otherwise one step of bf16; with NVFP4 one of E2M1.
     */
    const double step = c.round_trip      ? 0.2 * largest
                        : type == SC_BF16 ? std::min(0x1p-7 * fabs(want), 0x1p-8 * largest)
                                          : 0.0;
    const double error = std::isnan(got) ? INFINITY : fabs(got - want);
    written++;
    beyond += error > std::max(step, 1e-5 * largest);
    worst = std::max(worst, error);
  }
  const bool ok = tiled && aligned && wrong_place == 0 && written > 0 && beyond == 0;
  failures += !ok;
  printf("%s %s %3d rows%s%s%s, k %u, n %u, %u experts, %u tokens, top-%u: %zu values in %d blocks, error %.2g of "
         "%.3g%s%s\n",
         ok ? "ok    " : "WRONG ", c.up ? c.gated ? "up     " : "ungated" : "down   ", c.rows, c.split ? " split" : "",
         c.fp32 ? " fp32" : "", c.round_trip ? " w4a4" : "", c.k, c.n, c.experts, c.tokens, c.top_k, written,
         o.block_count, worst, largest, tiled ? "" : ", tiles differ", aligned ? "" : ", blocks differ");
}

} /* namespace */

int main()
{
  static const struct {
    int rows;
    bool split;
    uint32_t tokens;
  } kinds[] = {{8, true, 16}, {8, false, 16}, {16, false, 32}, {32, false, 64}, {64, false, 128}, {128, false, 220}};
  for (const auto &kind : kinds) {
    if (kind.rows > MOST_ROWS)
      continue;
    test({kind.rows, kind.split, true, true, false, false, 48, 80, 3, kind.tokens, 2});
    test({kind.rows, kind.split, true, true, false, false, 704, 208, 3, kind.tokens, 1});
    test({kind.rows, kind.split, true, false, false, false, 320, 144, 2, kind.tokens, 2});
    test({kind.rows, kind.split, true, true, false, true, 128, 96, 3, kind.tokens, 2});
    test({kind.rows, kind.split, false, true, false, false, 576, 272, 3, kind.tokens, 2});
    test({kind.rows, kind.split, false, true, true, false, 1104, 144, 3, kind.tokens, 1});
  }
  for (const uint32_t tokens : {192u, 193u, 200u}) /* last blocks of 64, 65 and 72 rows */
    if (MOST_ROWS == 128) {
      test({128, false, true, true, false, false, 128, 96, 1, tokens, 1});
      test({128, false, false, true, false, false, 128, 96, 1, tokens, 1});
    }
  return failures != 0;
}
