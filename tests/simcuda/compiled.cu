/* SPDX-License-Identifier: Apache-2.0
 * A program as nvcc makes it: it registers its fatbin, kernels and variables before main, and launches with <<< >>>. On
 * the stand-ins it loads, its variables work, a kernel that it offers a twin of runs, and one without is refused. */
#include <cstdio>

extern "C" __global__ void compiled_twice(int *value) { *value *= 2; }
extern "C" __global__ void compiled_unknown(int *value) { *value = 0; }
__device__ int variable[4];

struct simcuda_kernel {
  const char *name;
  void (*run)(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void *const *args);
  unsigned arg_count;
  unsigned short arg_bytes[32];
};
static void run_twice(const unsigned *, const unsigned *, size_t, void *const *args)
{
  **static_cast<int **>(args[0]) *= 2;
}
extern "C" {
extern const simcuda_kernel simcuda_kernels[];
const simcuda_kernel simcuda_kernels[] = {
    {"compiled_twice", run_twice, 1, {sizeof(int *)}},
    {nullptr, nullptr, 0, {0}},
};
}

#define CHECK(condition) \
  if (!(condition)) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorName(cudaGetLastError())); \
    return 1; \
  }

int main() {
  int *device, back = 21, four[4] = {1, 2, 3, 4}, got[4] = {0};

  CHECK(cudaMalloc(&device, sizeof *device) == cudaSuccess);
  CHECK(cudaMemcpy(device, &back, sizeof back, cudaMemcpyHostToDevice) == cudaSuccess);
  compiled_twice<<<1, 1>>>(device);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemcpy(&back, device, sizeof back, cudaMemcpyDeviceToHost) == cudaSuccess && back == 42);
  compiled_unknown<<<1, 1>>>(device);
  CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
  CHECK(cudaMemcpyFromSymbol(got, variable, sizeof got) == cudaSuccess && got[3] == 0);
  CHECK(cudaMemcpyToSymbol(variable, four, sizeof four) == cudaSuccess);
  CHECK(cudaMemcpyFromSymbol(got, variable, 2 * sizeof(int), 2 * sizeof(int)) == cudaSuccess);
  CHECK(got[0] == 3 && got[1] == 4);
  CHECK(cudaMemcpyToSymbol(variable, four, sizeof four, 4) == cudaErrorInvalidValue);
  return 0;
}
