/* SPDX-License-Identifier: Apache-2.0
 * Opening the device, launching, GEMMs, ranges, and what a failed call means. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/gpu.h"

extern const unsigned char sc_probe_fatbin[], sc_probe_native_fatbin[]; /* fatbin.S */

enum { WORKSPACE_BYTES = 32 << 20 }; /* what cuBLAS recommends on Hopper; 256-byte aligned as cudaMalloc is */

static const char *const kernel_names[SC_K_COUNT] = {
#define SC_KERNEL_NAME(id, name) [SC_K_##id] = name,
    SC_KERNEL_MAP(SC_KERNEL_NAME)
#undef SC_KERNEL_NAME
};

const char *sc_kernel_name(enum sc_kernel kernel) { return kernel_names[kernel]; }

/* What a user can do about it. */
static const char *remedy(cudaError_t code)
{
  switch (code) {
  case cudaErrorMemoryAllocation: return "reduce --layers, --experts, --tokens or --hidden, or free device memory";
  case cudaErrorNoDevice:
    return "check that a GPU is visible (nvidia-smi, CUDA_VISIBLE_DEVICES), or use the simulated device";
  case cudaErrorInsufficientDriver:
    return "no NVIDIA driver was found, or one too old (nvidia-smi shows it): install or update it, or use the "
           "simulated device";
  case cudaErrorInvalidDevice: return "choose another --device";
  case cudaErrorNoKernelImageForDevice: return "rebuild with this device's target in SYNCCOUNT_CUDA_TARGETS";
  default: return "run under compute-sanitizer, or look into the system log (dmesg) for an Xid";
  }
}

enum sc_status sc_gpu_failed(struct sc_error *err, cudaError_t code, const char *call, const char *file, int line)
{
  const enum sc_status status = code == cudaErrorMemoryAllocation ? SC_ERR_NOMEM : SC_ERR_DEVICE;
  return sc_error_set(err, status, "%s failed at %s:%d: %s (%s, %d); %s", call, file, line, cudaGetErrorName(code),
                      cudaGetErrorString(code), (int)code, remedy(code));
}

enum sc_status sc_gpu_blas_failed(struct sc_error *err, cublasStatus_t code, const char *call, const char *file,
                                  int line)
{
  return sc_error_set(err, SC_ERR_DEVICE,
                      "%s failed at %s:%d: %s (%d); check that libcublas and the driver fit together, and "
                      "that device memory is free",
                      call, file, line, cublasGetStatusString(code), (int)code);
}

/* Kernels first .. SC_K_COUNT - 1 out of one fatbin. */
static enum sc_status load_kernels(struct sc_gpu *gpu, const unsigned char *fatbin, cudaLibrary_t *library, int first,
                                   struct sc_error *err)
{
  SC_CUDA(cudaLibraryLoadData(library, fatbin, NULL, NULL, 0, NULL, NULL, 0));
  for (int k = first; k < SC_K_COUNT; k++) {
    const cudaError_t code = cudaLibraryGetKernel(&gpu->kernels[k], *library, kernel_names[k]);
    if (code != cudaSuccess)
      return sc_gpu_failed(err, code, kernel_names[k], __FILE_NAME__, __LINE__);
  }
  return SC_OK;
}

/* The native conversions are machine code of two targets, which run on no other device: sm_100a and sm_120a. */
static enum sc_status load_native_fp4(struct sc_gpu *gpu, struct sc_error *err)
{
  struct cudaDeviceProp prop;
  SC_CUDA(cudaGetDeviceProperties(&prop, gpu->ordinal));
  if (prop.minor != 0 || (prop.major != 10 && prop.major != 12))
    return sc_error_set(err, SC_ERR_DEVICE,
                        "--nvfp4-path native has code for devices of compute capability 10.0 and 12.0 alone; device "
                        "%d (%s) has %d.%d; leave the option out: the portable path runs everywhere",
                        gpu->ordinal, prop.name, prop.major, prop.minor);
  return load_kernels(gpu, sc_probe_native_fatbin, &gpu->native_library, SC_K_FP4_AMAX_F32, err);
}

static enum sc_status read_capability(struct sc_gpu *gpu, struct sc_error *err)
{
  int major = 0, minor = 0, multiprocessors = 0;
  SC_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu->ordinal));
  SC_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu->ordinal));
  SC_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, gpu->ordinal));
  gpu->multiprocessors = multiprocessors > 0 ? (unsigned)multiprocessors : 1;
  gpu->wgmma = SC_PROBE_SM_90A && major == 9 && minor == 0;
  return SC_OK;
}

enum sc_status sc_gpu_open(struct sc_gpu *gpu, int ordinal, bool native_fp4, struct sc_error *err)
{
  int count = 0;
  char bus[64];
  SC_CUDA(cudaGetDeviceCount(&count));
  if (ordinal >= count)
    return sc_error_set(err, SC_ERR_DEVICE,
                        "there is no CUDA device %d: %d found, numbered from 0; choose another --device", ordinal,
                        count);
  gpu->ordinal = ordinal;
  SC_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal));
  gpu->sm_clock_mhz = sc_gpu_sm_clock_mhz(bus);
  SC_CUDA(cudaSetDevice(ordinal));
  SC_CUDA(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking));
  SC_TRY(read_capability(gpu, err));
  SC_TRY(load_kernels(gpu, sc_probe_fatbin, &gpu->library, 0, err));
  if (native_fp4)
    SC_TRY(load_native_fp4(gpu, err));
  SC_TRY(sc_launch_fused_prepare(gpu, err));
  SC_CUDA(cudaMalloc(&gpu->workspace, WORKSPACE_BYTES));
  SC_CUBLAS(cublasCreate(&gpu->blas));
  SC_CUBLAS(cublasSetStream(gpu->blas, gpu->stream));
  SC_CUBLAS(cublasSetWorkspace(gpu->blas, gpu->workspace, WORKSPACE_BYTES)); /* after the stream, which resets it */
  SC_CUBLAS(cublasSetMathMode(gpu->blas, CUBLAS_DEFAULT_MATH));              /* fp32 stays fp32: no TF32 */
  gpu->domain = nvtxDomainCreateA("synccount");
  gpu->ranges = true;
  return SC_OK;
}

void sc_gpu_close(struct sc_gpu *gpu)
{
  if (gpu->stream)
    cudaStreamSynchronize(gpu->stream);
  if (gpu->blas)
    cublasDestroy(gpu->blas);
  if (gpu->workspace)
    cudaFree(gpu->workspace);
  if (gpu->native_library)
    cudaLibraryUnload(gpu->native_library);
  if (gpu->library)
    cudaLibraryUnload(gpu->library);
  if (gpu->stream)
    cudaStreamDestroy(gpu->stream);
  if (gpu->domain)
    nvtxDomainDestroy(gpu->domain);
  *gpu = (struct sc_gpu){0};
}

uint64_t sc_gpu_blocks(uint64_t n)
{
  const uint64_t blocks = (n + SC_BLOCK - 1) / SC_BLOCK;
  return blocks < SC_MAX_GRID ? blocks : SC_MAX_GRID;
}

enum sc_status sc_gpu_launch_shared(const struct sc_gpu *gpu, enum sc_kernel kernel, uint64_t blocks, unsigned threads,
                                    unsigned shared, void **args, struct sc_error *err)
{
  if (blocks == 0)
    return SC_OK;
  const struct dim3 grid = {(unsigned)blocks, 1, 1}, block = {threads, 1, 1};
  const cudaError_t code =
      cudaLaunchKernel((const void *)gpu->kernels[kernel], grid, block, args, shared, gpu->stream);
  if (code != cudaSuccess)
    return sc_gpu_failed(err, code, kernel_names[kernel], __FILE_NAME__, __LINE__);
  return SC_OK;
}

enum sc_status sc_gpu_launch(const struct sc_gpu *gpu, enum sc_kernel kernel, uint64_t blocks, unsigned threads,
                             void **args, struct sc_error *err)
{
  return sc_gpu_launch_shared(gpu, kernel, blocks, threads, 0, args, err);
}

enum sc_status sc_gpu_sync(const struct sc_gpu *gpu, struct sc_error *err)
{
  SC_CUDA(cudaStreamSynchronize(gpu->stream));
  return SC_OK;
}

/* cuBLAS is column-major: y^T[out][rows] = w[out][in] x^T[in][rows], w stored with its rows as columns. */
enum sc_status sc_gpu_gemm(const struct sc_gpu *gpu, enum sc_dtype dtype, uint64_t rows, uint32_t out, uint32_t in,
                           const void *x, const void *w, void *y, bool accumulate, struct sc_error *err)
{
  const cudaDataType type = dtype == SC_F32 ? CUDA_R_32F : CUDA_R_16BF;
  const float one = 1.0f, beta = accumulate ? 1.0f : 0.0f;
  SC_CUBLAS(cublasGemmEx(gpu->blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)out, (int)rows, (int)in, &one, w, type, (int)in, x,
                         type, (int)in, &beta, y, type, (int)out, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  return SC_OK;
}

void sc_gpu_push(const struct sc_gpu *gpu, const char *name)
{
  if (!gpu->ranges)
    return;
  const nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                       .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                       .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                       .message.ascii = name};
  nvtxDomainRangePushEx(gpu->domain, &event);
}

void sc_gpu_pop(const struct sc_gpu *gpu)
{
  if (gpu->ranges)
    nvtxDomainRangePop(gpu->domain);
}

static const char *schedule_name(unsigned flags)
{
  switch (flags & cudaDeviceScheduleMask) {
  case cudaDeviceScheduleSpin: return "spin";
  case cudaDeviceScheduleYield: return "yield";
  case cudaDeviceScheduleBlockingSync: return "blocking";
  default: return "auto";
  }
}

/* An attribute that this CUDA does not know is absent, not an error. */
static void put_attribute(json_t *object, const char *key, const struct sc_gpu *gpu, enum cudaDeviceAttr attribute)
{
  int value;
  if (cudaDeviceGetAttribute(&value, attribute, gpu->ordinal) == cudaSuccess)
    json_object_set_new(object, key, json_integer(value));
  else
    (void)cudaGetLastError();
}

static enum sc_status describe(json_t *out, const struct sc_gpu *gpu, struct sc_error *err)
{
  struct cudaDeviceProp prop;
  char bus[64] = "", capability[32];
  int driver = 0, runtime = 0, blas = 0;
  unsigned flags = 0;
  size_t available = 0, total = 0;
  SC_CUDA(cudaGetDeviceProperties(&prop, gpu->ordinal));
  SC_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, gpu->ordinal));
  SC_CUDA(cudaDriverGetVersion(&driver));
  SC_CUDA(cudaRuntimeGetVersion(&runtime));
  SC_CUDA(cudaGetDeviceFlags(&flags));
  SC_CUDA(cudaMemGetInfo(&available, &total));
  SC_CUBLAS(cublasGetVersion(gpu->blas, &blas));
  snprintf(capability, sizeof capability, "%d.%d", prop.major, prop.minor);
  json_object_set_new(out, "ordinal", json_integer(gpu->ordinal));
  json_object_set_new(out, "name", json_string(prop.name));
  json_object_set_new(out, "compute_capability", json_string(capability));
  json_object_set_new(out, "total_memory_bytes", json_integer((json_int_t)total));
  json_object_set_new(out, "pci_bus_id", json_string(bus));
  json_object_set_new(out, "driver_version", json_integer(driver));
  json_object_set_new(out, "runtime_version", json_integer(runtime));
  json_object_set_new(out, "cublas_version", json_integer(blas));
  json_object_set_new(out, "schedule_flag", json_string(schedule_name(flags)));
  json_object_set_new(out, "integrated", json_boolean(prop.integrated));
  json_object_set_new(out, "mig",
                      json_boolean(strstr(prop.name, " MIG ") != NULL)); /* the runtime names an instance so */
  put_attribute(out, "multiprocessors", gpu, cudaDevAttrMultiProcessorCount);
  put_attribute(out, "l2_bytes", gpu, cudaDevAttrL2CacheSize);
  json_object_set_new(out, "sm_clock_khz", gpu->sm_clock_mhz ? json_integer((json_int_t)gpu->sm_clock_mhz * 1000) : json_null());
  put_attribute(out, "sm_clock_max_khz", gpu, cudaDevAttrClockRate);
  return SC_OK;
}

json_t *sc_gpu_describe(const struct sc_gpu *gpu, struct sc_error *err)
{
  json_t *out = json_object();
  if (out == NULL) {
    sc_error_set(err, SC_ERR_NOMEM, "no memory for the description of the device");
    return NULL;
  }
  if (describe(out, gpu, err) != SC_OK) {
    json_decref(out);
    return NULL;
  }
  return out;
}
