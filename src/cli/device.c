/* SPDX-License-Identifier: Apache-2.0
 * CUDA is tried in a forked child, so that this process never holds a context, survives a driver that crashes, and gets
 * the driver's own error instead of a guess. */
#include "cli/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/place.h"
#include "host/host.h"

#define TRY_SECONDS 60

enum trial_stage { TRIAL_LOAD, TRIAL_INIT, TRIAL_DEVICES, TRIAL_DONE };

/* What the child sends back: one write, less than PIPE_BUF. */
struct trial {
  enum trial_stage stage; /* the one that failed, or TRIAL_DONE */
  int code;               /* CUresult */
  int count;
  uint64_t memory_bytes;
  bool simulated;
  char text[512];
};

/* The driver API by hand: the prototypes are stable, and the command line is built without linking CUDA. */
typedef int init_function(unsigned flags);
typedef int count_function(int *count);
typedef int get_function(int *device, int ordinal);
typedef int memory_function(size_t *bytes, int device);
typedef int text_function(int code, const char **text);

static void *symbol(void *library, const char *name) { return dlsym(library, name); }

static void try_cuda(unsigned ordinal, struct trial *trial)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *text = dlerror();
    snprintf(trial->text, sizeof trial->text, "%s", text ? text : "dlopen failed");
    return;
  }
  init_function *init = (init_function *)symbol(library, "cuInit");
  count_function *device_count = (count_function *)symbol(library, "cuDeviceGetCount");
  get_function *get = (get_function *)symbol(library, "cuDeviceGet");
  memory_function *memory = (memory_function *)symbol(library, "cuDeviceTotalMem_v2");
  text_function *error_text = (text_function *)symbol(library, "cuGetErrorString");
  if (!init || !device_count || !get || !memory) {
    snprintf(trial->text, sizeof trial->text,
             "libcuda.so.1 lacks cuInit, cuDeviceGetCount, cuDeviceGet or cuDeviceTotalMem_v2");
    return;
  }
  trial->simulated = symbol(library, "simcuda_version") != NULL;
  trial->stage = TRIAL_INIT;
  trial->code = init(0);
  int device;
  size_t bytes;
  if (trial->code == 0) {
    trial->stage = TRIAL_DEVICES;
    trial->code = device_count(&trial->count);
  }
  if (trial->code == 0) {
    trial->stage = TRIAL_DONE;
    if (get(&device, (int)ordinal) == 0 && memory(&bytes, device) == 0)
      trial->memory_bytes = bytes;
  }
  const char *text = NULL;
  if (trial->code != 0 && error_text && error_text(trial->code, &text) == 0 && text)
    snprintf(trial->text, sizeof trial->text, "%s", text);
}

static _Noreturn void child_side(unsigned ordinal, int answer, pid_t parent)
{
  struct trial trial = {.stage = TRIAL_LOAD};
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a driver that hangs must not outlive an interrupted command */
  if (getppid() != parent)
    _exit(1);
  /* A profiler that the user has set up would start inside this trial. */
  unsetenv("CUDA_INJECTION64_PATH");
  unsetenv("NVTX_INJECTION64_PATH");
  try_cuda(ordinal, &trial);
  if (write(answer, &trial, sizeof trial) != (ssize_t)sizeof trial)
    _exit(1);
  _exit(0);
}

static enum sc_status trial_failed(const char *what, struct sc_error *err)
{
  return sc_error_set(
      err, SC_ERR_DEVICE,
      "trying to initialise CUDA %s. Look at the system log (dmesg) and nvidia-smi, or give --device sim", what);
}

static enum sc_status run_trial(unsigned ordinal, struct trial *out, struct sc_error *err)
{
  int ends[2], wait_status;
  if (pipe(ends) != 0)
    return sc_error_set(err, SC_ERR_SYSTEM, "cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  pid_t self = getpid(), pid = fork();
  if (pid == 0) {
    close(ends[0]);
    child_side(ordinal, ends[1], self);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return sc_error_set(err, SC_ERR_SYSTEM, "cannot fork: %s", strerror(errno));
  }
  struct pollfd fd = {ends[0], POLLIN, 0};
  bool in_time = poll(&fd, 1, TRY_SECONDS * 1000) > 0;
  ssize_t got = in_time ? read(ends[0], out, sizeof *out) : 0;
  close(ends[0]);
  if (!in_time)
    kill(pid, SIGKILL);
  while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
    ;
  if (!in_time)
    return trial_failed("took more than 60 seconds", err);
  if (got != (ssize_t)sizeof *out)
    return trial_failed(WIFSIGNALED(wait_status) ? "crashed inside the driver" : "gave no answer", err);
  return SC_OK;
}

static const char *remedy(const struct trial *trial)
{
  if (trial->stage == TRIAL_LOAD)
    return "Install the driver's user-space libraries; in a container, start it with the GPU passed through (--gpus "
           "all)";
  switch (trial->code) {
  case 35: return "The driver is older than this CUDA: update it";
  case 100: return "Check nvidia-smi, the permissions of /dev/nvidia*, and CUDA_VISIBLE_DEVICES";
  case 802: return "The fabric manager is not ready: start nvidia-fabricmanager";
  case 803: return "The driver's library and kernel module differ: reload the module or restart the machine";
  case 804: return "This driver cannot be used with this GPU by forward compatibility: use the driver's own libcuda";
  default: return "Check nvidia-smi and the system log (dmesg)";
  }
}

static void cause(const struct trial *trial, char out[static 640])
{
  if (trial->stage == TRIAL_LOAD)
    snprintf(out, 640, "libcuda.so.1 cannot be loaded: %s", trial->text);
  else if (trial->stage == TRIAL_INIT || trial->stage == TRIAL_DEVICES)
    snprintf(out, 640, "%s gave error %d%s%s%s", trial->stage == TRIAL_INIT ? "cuInit" : "cuDeviceGetCount",
             trial->code, trial->text[0] ? " (" : "", trial->text, trial->text[0] ? ")" : "");
  else
    snprintf(out, 640, "CUDA initialises but shows no device");
}

static enum sc_status no_cuda(const struct settings *settings, const struct trial *trial, struct device *out,
                              struct sc_error *err)
{
  char found[SC_HOST_FOUND], why[640];
  bool nvidia = sc_host_has_nvidia(place_sysroot(), found);
  cause(trial, why);
  if (settings->device == DEVICE_AUTO && !nvidia) {
    *out = (struct device){.simulated = true, .chosen_for_want = true};
    return SC_OK;
  }
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  return sc_error_set(
      err, SC_ERR_DEVICE, "CUDA does not work here: %s. This machine has %s%s%s. %s, or give --device sim", why,
      nvidia ? found : "no NVIDIA device (no /dev/nvidia*, no /dev/dxg, no PCI display device of vendor 0x10de)",
      visible ? ", and CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "", remedy(trial));
}

static void host_memory(struct device *device)
{
  struct sc_host *host;
  if (sc_host_read(place_sysroot(), &host, NULL) != SC_OK)
    return;
  device->has_memory = host->has_memory_available;
  device->memory_bytes = host->memory_available_bytes;
  sc_host_free(host);
}

static enum sc_status choose_cuda(const struct settings *settings, struct device *out, struct sc_error *err)
{
  struct trial trial;
  enum sc_status status = run_trial(settings->ordinal, &trial, err);
  if (status != SC_OK)
    return status;
  if (trial.stage != TRIAL_DONE || trial.count <= 0)
    return no_cuda(settings, &trial, out, err);
  if (settings->ordinal >= (unsigned)trial.count)
    return sc_error_set(err, SC_ERR_DEVICE,
                        "there is no device cuda:%u: CUDA shows %d device%s here (cuda:0%s). Give one of them",
                        settings->ordinal, trial.count, trial.count == 1 ? "" : "s", trial.count == 1 ? "" : " and up");
  *out = (struct device){.simulated = trial.simulated,
                         .ordinal = settings->ordinal,
                         .has_memory = trial.memory_bytes > 0,
                         .memory_bytes = trial.memory_bytes};
  return SC_OK;
}

enum sc_status device_choose(const struct settings *settings, struct device *out, struct sc_error *err)
{
  struct device device = {.simulated = true};
  enum sc_status status = settings->device == DEVICE_SIM ? SC_OK : choose_cuda(settings, &device, err);
  if (status != SC_OK)
    return status;
  if (!device.simulated && !isnan(settings->sim_round_trip_us))
    return sc_error_set(
        err, SC_ERR_USAGE,
        "--sim-round-trip is for the simulated device, and this run is on the GPU: leave it out, or give --device sim");
  if (device.simulated && !device.has_memory)
    host_memory(&device);
  *out = device;
  return SC_OK;
}
