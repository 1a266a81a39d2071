# SPDX-License-Identifier: Apache-2.0
# A machine that has a device which does not work must not be measured on a simulation.
# The shell that plays the probe here has leaks of its own.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
export ASAN_OPTIONS
sim=$build/lib/simcuda
mkdir -p bare/dev broken/dev
: >broken/dev/nvidia0
export SYNCCOUNT_SYSROOT

SYNCCOUNT_SYSROOT=$work/broken
LD_LIBRARY_PATH=$sim SIMCUDA_DEVICES=0 expect 3 "$synccount" --experts 4
has err "cuInit gave error 100"
has err "Check nvidia-smi"
has err "/dev/nvidia0"
has err "--device sim"
[ ! -s out ] || fail "a report in spite of the error"

# No device at all: the simulation, with a notice; but not when a GPU was asked for, and not for the ruler.
SYNCCOUNT_SYSROOT=$work/bare
LD_LIBRARY_PATH=$sim SIMCUDA_DEVICES=0 expect 3 "$synccount" --device cuda --experts 4
has err "no NVIDIA device"
LD_LIBRARY_PATH=$sim SIMCUDA_DEVICES=0 expect 3 "$synccount" ruler
has err "the ruler measures"
# The failure is for the trial alone: the run itself has to work.
cat >probe <<PROBE
#!/bin/sh
unset SIMCUDA_DEVICES
exec "$build/bin/synccount-probe" "\$@"
PROBE
chmod +x probe
SYNCCOUNT_PROBE=$work/probe LD_LIBRARY_PATH=$sim SIMCUDA_DEVICES=0 expect 0 "$synccount" --experts 4 --layers 2 --hidden 32 --intermediate 64 --tokens 64
has err "no NVIDIA device: running on the simulated one"
has out SIMULATED

# A device that is not there.
LD_LIBRARY_PATH=$sim expect 3 "$synccount" --device cuda:7 --experts 4
has err "there is no device cuda:7: CUDA shows 1 device"
