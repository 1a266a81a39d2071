# SPDX-License-Identifier: Apache-2.0
# With a libcuda that works, tracing is tried and works; what stands in the way is BAD, with a remedy, and the status says so.
doctor() {
  env LD_LIBRARY_PATH="$simcuda" "$@" "$synccount" doctor
}
expect 0 doctor
has out "ok    tracing works: CUPTI"
has out "libcupti.so"
has out "SIMULATED: libcuda.so.1 is the stand-in"
has out "no other tool is injected"
expect 3 doctor CUDA_INJECTION64_PATH=/opt/other/tool.so
has out "BAD   CUDA_INJECTION64_PATH=/opt/other/tool.so"
expect 3 doctor SIMCUDA_SUBSCRIBER="Nosy Profiler"
has out "BAD   tracing: nothing was counted"
has out "Nosy Profiler"
expect 3 doctor SIMCUDA_DEVICES=0
has out "BAD   cuInit fails"
expect 3 doctor SYNCCOUNT_CUPTI=/nowhere/libcupti.so
has out "SYNCCOUNT_CUPTI=/nowhere/libcupti.so cannot be read"
expect 0 doctor CUDA_LAUNCH_BLOCKING=1
has out "CUDA_LAUNCH_BLOCKING=1: every launch waits"
# another machine: WSL, a restricted ptrace
mkdir -p root/proc/sys/kernel/yama root/dev
echo 1 >root/proc/sys/kernel/yama/ptrace_scope
: >root/dev/dxg
expect 0 doctor SYNCCOUNT_SYSROOT="$work/root"
has out "note  ptrace_scope 1"
has out "ok    NVIDIA device: /dev/dxg"
expect 2 "$synccount" doctor please
# a driver that is not there
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
  expect 3 "$synccount" doctor
  has out "BAD   libcuda.so.1, the driver's library, cannot be loaded"
fi
