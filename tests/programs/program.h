/* SPDX-License-Identifier: Apache-2.0
 * What the test programs share: rows as NVTX ranges, checked calls, the gate that keeps a stream busy, the embedded
 * kernels. These are ordinary CUDA programs: they know nothing of the tracer. */
#ifndef SC_TEST_PROGRAM_H
#define SC_TEST_PROGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A row is done, skipped (something is missing here: say what) or failed (a call did not do what the row needs). Each
 * row prints one line on stdout: "row NAME done", "row NAME skip WHY", "row NAME fail WHY". */
struct row_run {
  const char *name;
  bool open; /* its range is open on some thread */
  bool skipped, failed;
  char why[512];
};
void row_begin(struct row_run *run); /* pushes the range on the calling thread */
void row_end(struct row_run *run);   /* pops it; does nothing if it is not open */
void row_skip(struct row_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
void row_fail(struct row_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
void row_report(const struct row_run *run);

/* True if the command line asks for this row: no names at all, or this one among them. */
bool row_wanted(const char *name, int argc, char **argv);

/* Runs function(argument) on a new thread and waits for it. False if no thread could be made. */
bool run_on_thread(void *(*function)(void *), void *argument);

/* A host function that keeps its stream busy until the gate is opened, or for 20 seconds at most: a program that fails
 * in between must not hang. */
struct gate {
  atomic_bool open;
};
void gate_wait(void *gate); /* as cudaHostFn_t and CUhostFn */
void gate_open(struct gate *gate);

/* The kernels of kernels.cu as a fatbin image for cudaLibraryLoadData and cuModuleLoadData. */
extern const unsigned char test_kernels_image[];
extern const size_t test_kernels_size;

/* One call of the runtime; a failure is said on stderr, and the function returns `result`. */
#define CHECK_OR_RETURN(result, call)                                                   \
  do {                                                                                  \
    cudaError_t status_ = (call);                                                       \
    if (status_ != cudaSuccess) {                                                       \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(status_)); \
      return (result);                                                                  \
    }                                                                                   \
  } while (0)

/* One checked call inside a row function that has `run` and can leave by `goto out`. */
#define ROW_OK(run, text_of, call)                                                     \
  do {                                                                                 \
    int row_status_ = (int)(call);                                                     \
    if (row_status_ != 0) {                                                            \
      row_fail((run), "%s:%d: %s: %s", "line", __LINE__, #call, text_of(row_status_)); \
      goto out;                                                                        \
    }                                                                                  \
  } while (0)
/* The call must be refused: neither success nor not-ready (600). */
#define ROW_REFUSED(run, text_of, call)                                                                \
  do {                                                                                                 \
    int row_status_ = (int)(call);                                                                     \
    if (row_status_ == 0 || row_status_ == 600) {                                                      \
      row_fail((run), "%s:%d: %s was not refused: %s", "line", __LINE__, #call, text_of(row_status_)); \
      goto out;                                                                                        \
    }                                                                                                  \
  } while (0)
/* The call belongs to what not every device or library offers. */
#define ROW_OR_SKIP(run, text_of, call)                       \
  do {                                                        \
    int row_status_ = (int)(call);                            \
    if (row_status_ != 0) {                                   \
      row_skip((run), "%s: %s", #call, text_of(row_status_)); \
      goto out;                                               \
    }                                                         \
  } while (0)

#endif
