/* SPDX-License-Identifier: Apache-2.0
 * A blocked matrix product: op(A) and op(B) are packed in slices of K_SLICE along k, tiles are computed from the packed
 * slices and added up in fp32, and the finished block goes to C. Only K_SLICE and the loop in gemm_micro.h fix the
 * order of the sum. */
#include "gemm.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "hooks.h"

#ifdef __clang__
#define GEMM_UNROLL _Pragma("unroll")
#else
#define GEMM_UNROLL _Pragma("GCC unroll 16")
#endif

#define MICRO_NAME micro_avx512
#define MICRO_TARGET __attribute__((target("avx512f,fma")))
#define MICRO_LANES 16
#define MICRO_ROWS 2
#define MICRO_COLUMNS 12
#include "gemm_micro.h"

#define MICRO_NAME micro_avx2
#define MICRO_TARGET __attribute__((target("avx2,fma")))
#define MICRO_LANES 8
#define MICRO_ROWS 2
#define MICRO_COLUMNS 6
#include "gemm_micro.h"

#define MICRO_NAME micro_sse2
#define MICRO_TARGET
#define MICRO_LANES 4
#define MICRO_ROWS 2
#define MICRO_COLUMNS 4
#include "gemm_micro.h"

enum {
  K_SLICE = 384,
  M_BLOCK = 384, /* multiples of every tile's rows and columns */
  N_BLOCK = 768,
  MAX_TILE = 32 * 12
};

static const struct micro {
  void (*run)(int64_t k, const float *a, const float *b, float *out);
  int rows, columns;
} micros[] = {{micro_avx512, 32, 12}, {micro_avx2, 16, 6}, {micro_sse2, 8, 4}};

static const struct micro *best_micro(void)
{
  if (__builtin_cpu_supports("avx512f"))
    return &micros[0];
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &micros[1] : &micros[2];
}

static float from_bf16(uint16_t bits)
{
  uint32_t wide = (uint32_t)bits << 16;
  float value;

  memcpy(&value, &wide, sizeof value);
  return value;
}

/* To the nearest, ties to even; a NaN stays one. */
static uint16_t to_bf16(float value)
{
  uint32_t bits;

  memcpy(&bits, &value, sizeof bits);
  if (value != value)
    return (uint16_t)((bits >> 16) | 0x40);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* ---- packing ---- */

/* Not instrumented for threads: packing and adding are most of what a sanitizer build would spend on a product.
 * Addresses are. */
#define GEMM_HOT __attribute__((no_sanitize("thread")))

/* One panel: `lines` (at most `width`) lines of op(X), `k` elements each; line l, element p is at x[l * across + p *
 * along]. Written element by element, `width` lines beside each other, missing lines as zeros. */
#define PACK(name, type, convert)                                                                                      \
  GEMM_HOT static void name(const type *x, int64_t across, int64_t along, int lines, int width, int64_t k, float *out) \
  {                                                                                                                    \
    for (int64_t p = 0; p < k; p++) {                                                                                  \
      const type *row = x + p * along;                                                                                 \
      for (int line = 0; line < lines; line++)                                                                         \
        out[p * width + line] = convert(row[line * across]);                                                           \
      for (int line = lines; line < width; line++)                                                                     \
        out[p * width + line] = 0.0f;                                                                                  \
    }                                                                                                                  \
  }
#define SAME(value) (value)
PACK(pack_f32, float, SAME)
PACK(pack_bf16, uint16_t, from_bf16)

struct operand {
  const void *data;
  enum gemm_type type;
  int64_t across, along; /* steps between lines (rows of op(A), columns of op(B)) and along k */
};

static void pack(const struct operand *x, int64_t first, int64_t count, int64_t k_first, int64_t k, int width,
                 float *out)
{
  for (int64_t done = 0; done < count; done += width, out += width * k) {
    int lines = count - done < width ? (int)(count - done) : width;
    int64_t at = (first + done) * x->across + k_first * x->along;
    if (x->type == GEMM_F32)
      pack_f32((const float *)x->data + at, x->across, x->along, lines, width, k, out);
    else
      pack_bf16((const uint16_t *)x->data + at, x->across, x->along, lines, width, k, out);
  }
}

/* ---- one block of C ---- */

struct buffers {
  float a[M_BLOCK * K_SLICE];
  float b[K_SLICE * N_BLOCK];
  float sums[M_BLOCK * N_BLOCK]; /* column by column, M_BLOCK apart */
  float tile[MAX_TILE];
};

struct job {
  const struct gemm *gemm;
  const struct micro *micro;
  float alpha, beta;
  int64_t m_block, n_block, m_blocks, n_blocks, blocks;
  atomic_int_fast64_t next;
};

GEMM_HOT static void add_tiles(const struct micro *micro, struct buffers *buffers, int64_t m, int64_t n, int64_t k)
{
  for (int64_t column = 0; column < n; column += micro->columns)
    for (int64_t row = 0; row < m; row += micro->rows) {
      micro->run(k, buffers->a + row * k, buffers->b + column * k, buffers->tile);
      int64_t columns = n - column < micro->columns ? n - column : micro->columns;
      int64_t rows = m - row < micro->rows ? m - row : micro->rows;
      for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
          buffers->sums[(column + j) * M_BLOCK + row + i] += buffers->tile[j * micro->rows + i];
    }
}

/* beta 0 overwrites: what was in C, NaN included, must not matter. */
GEMM_HOT static void store(const struct job *job, const float *sums, int64_t batch, int64_t row, int64_t column,
                           int64_t m, int64_t n)
{
  const struct gemm *g = job->gemm;

  for (int64_t j = 0; j < n; j++) {
    int64_t at = batch * g->stride_c + (column + j) * g->ldc + row;
    for (int64_t i = 0; i < m; i++) {
      float value = job->alpha * sums[j * M_BLOCK + i];
      if (g->out == GEMM_F32) {
        float *c = (float *)g->c + at + i;
        *c = job->beta == 0.0f ? value : value + job->beta * *c;
      } else {
        uint16_t *c = (uint16_t *)g->c + at + i;
        *c = to_bf16(job->beta == 0.0f ? value : value + job->beta * from_bf16(*c));
      }
    }
  }
}

static size_t type_bytes(enum gemm_type type) { return type == GEMM_F32 ? 4 : 2; }

static void do_block(const struct job *job, int64_t index, struct buffers *buffers)
{
  const struct gemm *g = job->gemm;
  int64_t batch = index / (job->m_blocks * job->n_blocks), rest = index % (job->m_blocks * job->n_blocks);
  int64_t row = rest % job->m_blocks * job->m_block, column = rest / job->m_blocks * job->n_block;
  int64_t m = g->m - row < job->m_block ? g->m - row : job->m_block,
          n = g->n - column < job->n_block ? g->n - column : job->n_block;
  struct operand a = {(const char *)g->a + (size_t)(batch * g->stride_a) * type_bytes(g->in), g->in,
                      g->transpose_a ? g->lda : 1, g->transpose_a ? 1 : g->lda};
  struct operand b = {(const char *)g->b + (size_t)(batch * g->stride_b) * type_bytes(g->in), g->in,
                      g->transpose_b ? 1 : g->ldb, g->transpose_b ? g->ldb : 1};

  for (int64_t j = 0; j < n; j++)
    memset(buffers->sums + j * M_BLOCK, 0, (size_t)m * sizeof(float));
  if (job->alpha != 0.0f)
    for (int64_t k = 0; k < g->k; k += K_SLICE) {
      int64_t slice = g->k - k < K_SLICE ? g->k - k : K_SLICE;
      pack(&a, row, m, k, slice, job->micro->rows, buffers->a);
      pack(&b, column, n, k, slice, job->micro->columns, buffers->b);
      add_tiles(job->micro, buffers, m, n, slice);
    }
  store(job, buffers->sums, batch, row, column, m, n);
}

/* ---- threads ---- */

static pthread_key_t buffers_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  int threads; /* helpers that were started */
  struct job *job;
  uint64_t round; /* one more with each job */
  int busy;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
static pthread_mutex_t pool_user = PTHREAD_MUTEX_INITIALIZER;

static struct buffers *own_buffers(void)
{
  struct buffers *mine = pthread_getspecific(buffers_key);

  if (mine == NULL) {
    if (posix_memalign((void **)&mine, 64, sizeof *mine) != 0)
      abort(); /* work on a device has nobody to report to */
    pthread_setspecific(buffers_key, mine);
  }
  return mine;
}

static void take_blocks(struct job *job)
{
  struct buffers *buffers = own_buffers();

  for (int64_t index; (index = atomic_fetch_add(&job->next, 1)) < job->blocks;)
    do_block(job, index, buffers);
}

static void *help(void *unused)
{
  uint64_t seen = 0;

  (void)unused;
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    while (pool.round == seen || pool.job == NULL)
      pthread_cond_wait(&pool.work, &pool.lock);
    seen = pool.round;
    struct job *job = pool.job;
    pool.busy++;
    pthread_mutex_unlock(&pool.lock);
    take_blocks(job);
    pthread_mutex_lock(&pool.lock);
    if (--pool.busy == 0)
      pthread_cond_signal(&pool.done);
  }
  return NULL;
}

static int wanted_threads(void)
{
  cpu_set_t cpus;
  int count = simcuda_threads();

  if (count == 0)
    count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
  return count > SIMCUDA_MAX_THREADS ? SIMCUDA_MAX_THREADS : count;
}

static void start(void)
{
  int helpers = wanted_threads() - 1;
  pthread_attr_t attributes;
  sigset_t all, before;

  pthread_key_create(&buffers_key, free);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < helpers; i++) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, help, NULL) != 0)
      break;
    pool.threads++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
}

static void share(struct job *job)
{
  pthread_mutex_lock(&pool.lock);
  pool.job = job;
  pool.round++;
  pthread_cond_broadcast(&pool.work);
  pthread_mutex_unlock(&pool.lock);
  take_blocks(job);
  pthread_mutex_lock(&pool.lock);
  pool.job = NULL; /* a helper that comes late finds nothing */
  while (pool.busy != 0)
    pthread_cond_wait(&pool.done, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
}

/* Smaller blocks when there are too few for the threads; a block's size changes nothing in its elements. */
static void divide(struct job *job, int threads)
{
  const struct gemm *g = job->gemm;

  job->m_block = M_BLOCK;
  job->n_block = N_BLOCK;
  for (;;) {
    job->m_blocks = (g->m + job->m_block - 1) / job->m_block;
    job->n_blocks = (g->n + job->n_block - 1) / job->n_block;
    job->blocks = job->m_blocks * job->n_blocks * g->batch;
    if (job->blocks >= 2 * threads || (job->m_block == M_BLOCK / 4 && job->n_block == N_BLOCK / 8))
      return;
    if (job->n_block > N_BLOCK / 8 && g->n > job->n_block / 2)
      job->n_block /= 2;
    else if (job->m_block > M_BLOCK / 4)
      job->m_block /= 2;
    else
      job->n_block /= 2;
  }
}

void gemm_run(const struct gemm *gemm)
{
  enum { WORTH_SHARING = 1 << 18 }; /* multiplications: below it the hand-over costs more than it gains */
  struct job job = {.gemm = gemm,
                    .micro = best_micro(),
                    .alpha = gemm->alpha_pointer != NULL ? *gemm->alpha_pointer : gemm->alpha,
                    .beta = gemm->beta_pointer != NULL ? *gemm->beta_pointer : gemm->beta};

  pthread_once(&once, start);
  bool large = (double)gemm->m * gemm->n * gemm->k * gemm->batch >= WORTH_SHARING;
  if (pool.threads == 0 || !large || pthread_mutex_trylock(&pool_user) != 0) {
    divide(&job, 1);
    take_blocks(&job);
    return;
  }
  divide(&job, pool.threads + 1);
  share(&job);
  pthread_mutex_unlock(&pool_user);
}
